"""Does a monitor keep quiet while intervals hold, and how soon does it notice that they do not?

    python benchmarks/monitoring.py [--quick] [--peers PYTHON] [--save]

Healthy streams have 10,000 rows; in the others the coverage drops from .90 at a step between 0 and 5,000. Many streams
are followed at once by the formulas of the library, on arrays; a few of each kind are given to the monitor as well, and
have to agree. Settings were chosen on other seeds. `--peers` names a Python with mapie and river; without it the
figures of these are left out. The tests of a day look at 24 rows. `--save` writes `results/monitoring.md`.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from provenance import save
from scipy import stats

import pimeter as pm
from pimeter.monitoring.evidence import LARGEST_CAPITAL, RateEvidence, begun_at, factors, kept_back, stepped
from pimeter.monitoring.sequence import PRIOR_ROWS, log_evidence_against, rate_bounds
from pimeter.monitoring.settings import FEW, MISSES, SUBGROUPS, Settings
from pimeter.monitoring.stream import ABOVE, BELOW, INSIDE, ON_BOUND, Stream

LEVEL, RATE, DAY, YEAR = 0.9, 0.05, 24, 365
BOUND = float(stats.norm.ppf(0.95))
LAST_CHANGE, AFTER = 5000, 2000
STORES = 5
SEED = 20261118
N_AGREE = 3  # streams of each kind that the monitor itself follows
PEERS = Path(__file__).with_name("peermonitors.py")


@dataclass
class Rates:
    """Evidence against one rate, in many streams at once."""

    limit: float
    n: int

    def __post_init__(self) -> None:
        self.capitals = [np.zeros(self.n) for _ in factors(self.limit)[0]]
        self.rows = 0

    def update(self, events: np.ndarray) -> None:
        gains = [np.where(events, yes, no) for yes, no in zip(*factors(self.limit), strict=True)]
        bets = stepped(self.capitals, begun_at(self.rows, is_renewed=False), gains)
        self.capitals = [np.minimum(held, LARGEST_CAPITAL) for held in bets]
        self.rows += 1

    @property
    def value(self) -> np.ndarray:
        return sum(self.capitals) + kept_back(self.rows)


def codes_of(y: np.ndarray, lower: np.ndarray | float, upper: np.ndarray | float) -> np.ndarray:
    found = np.full(y.shape, INSIDE, np.uint8)
    found[(y == lower) | (y == upper)] = ON_BOUND
    found[y < lower] = BELOW
    found[y > upper] = ABOVE
    return found


def alarms(codes: np.ndarray, settings: Settings, stores: np.ndarray | None = None) -> np.ndarray:
    """Row of the first alarm of each stream, inf without one; codes (rows, streams), one store for each row."""
    n = codes.shape[1]
    has = stores is not None
    many, few = Rates(settings.limits.miss, n), Rates(settings.limits.inside, n)
    groups = [Rates(settings.limits.miss, n) for _ in range(STORES)] if has else []
    order = list(dict.fromkeys(stores.tolist())) if has else []
    proportions = {
        store: settings.proportion(SUBGROUPS, has_subgroups=True) / ((j + 1) * (j + 2)) for j, store in enumerate(order)
    }
    seen: list[int] = []
    first = np.full(n, np.inf)
    for i, row in enumerate(codes):
        missed = (row == BELOW) | (row == ABOVE)
        many.update(missed)
        few.update(row == INSIDE)
        total = settings.proportion(MISSES, has_subgroups=has) * many.value
        total += settings.proportion(FEW, has_subgroups=has) * few.value
        if has:
            store = int(stores[i])
            seen += [] if store in seen else [store]
            groups[store].update(missed)
            total += sum(proportions[one] * groups[one].value for one in seen)
            total += settings.proportion(SUBGROUPS, has_subgroups=True) / (len(seen) + 1)
        first[(total >= settings.threshold) & np.isinf(first)] = i + 1
    return first


def agreeing(codes: np.ndarray, settings: Settings, first: np.ndarray, stores: np.ndarray | None = None) -> None:
    """The monitor itself gives the same alarms, for streams with an early one and for the first ones."""
    place = {INSIDE: 0.5, BELOW: -1.0, ABOVE: 2.0, ON_BOUND: 1.0}
    for j in {*range(N_AGREE), int(np.argmin(first))}:
        stream = Stream(settings, has_subgroups=stores is not None)
        for i, code in enumerate(codes[:, j].tolist()):
            stream.update(place[code], 0.0, 1.0, None if stores is None else int(stores[i]))
            if stream.alarm is not None:
                break
        assert (math.inf if stream.alarm is None else stream.alarm.row) == first[j]


# ------------------------------------------------------------------------------------------- healthy streams


def independent(rng: np.random.Generator, rows: int, n: int) -> np.ndarray:
    return codes_of(rng.standard_normal((rows, n)), -BOUND, BOUND)


def autocorrelated(rng: np.random.Generator, rows: int, n: int) -> np.ndarray:
    """An autoregressive series, whose intervals lie around what is expected of the next target."""
    y = np.zeros((rows + 1, n))
    for i in range(rows):
        y[i + 1] = 0.95 * y[i] + rng.standard_normal(n)
    expected = 0.95 * y[:-1]
    return codes_of(y[1:], expected - BOUND, expected + BOUND)


def weekly(rng: np.random.Generator, rows: int, n: int) -> np.ndarray:
    """Level and spread follow the day of the week, and the intervals know that."""
    day = np.arange(rows)[:, None] % 7
    centre, spread = 10.0 + 3.0 * day, 1.0 + 0.5 * day
    return codes_of(centre + spread * rng.standard_normal((rows, n)), centre - BOUND * spread, centre + BOUND * spread)


def heavy(rng: np.random.Generator, rows: int, n: int) -> np.ndarray:
    bound = stats.t(3).ppf(0.95)
    return codes_of(rng.standard_t(3, (rows, n)), -bound, bound)


def discrete(rng: np.random.Generator, rows: int, n: int) -> np.ndarray:
    """Counts between quantiles .05 and .95 of their distribution, bounds included: 96 % are."""
    lower, upper = stats.poisson(4.0).ppf([0.05, 0.95])
    return codes_of(rng.poisson(4.0, (rows, n)).astype(float), lower, upper)


def late(rng: np.random.Generator, rows: int, n: int) -> np.ndarray:
    """Targets come after a geometric time, 5 % never, in the order in which they come."""
    codes = independent(rng, rows, n)
    arrival = np.arange(rows)[:, None] + rng.geometric(1 / 50, (rows, n)) + rng.random((rows, n))
    arrival[rng.random((rows, n)) < 0.05] = np.inf
    kept = int(0.94 * rows)
    order = np.argsort(arrival, axis=0)[:kept]
    return np.take_along_axis(codes, order, axis=0)


def conformal(m: int) -> Callable[[np.random.Generator, int, int], np.ndarray]:
    """Split conformal intervals, each stream with a calibration set of its own."""

    def made(rng: np.random.Generator, rows: int, n: int) -> np.ndarray:
        rank = math.ceil(LEVEL * (m + 1))
        margin = np.sort(np.abs(rng.standard_normal((m, n))), axis=0)[rank - 1]
        return codes_of(rng.standard_normal((rows, n)), -margin, margin)

    return made


HEALTHY = [
    ("independent", independent, {}),
    ("autocorrelated", autocorrelated, {}),
    ("weekly", weekly, {}),
    ("t3", heavy, {}),
    ("discrete", discrete, {}),
    ("5 subgroups", independent, {}),
    ("conformal, 100 rows", conformal(100), {"n_calibration": 100}),
    ("conformal, 1,000 rows", conformal(1000), {"n_calibration": 1000}),
    ("late targets", late, {}),
]


def healthy(rows: int, n: int) -> list[str]:
    """False alarms by kind of stream."""
    found = []
    for i, (name, made, more) in enumerate(HEALTHY):
        rng = np.random.default_rng([SEED, i])
        codes = made(rng, rows, n)
        stores = rng.integers(STORES, size=rows) if name == "5 subgroups" else None
        settings = Settings(confidence_level=LEVEL, false_alarm_rate=RATE, **more)
        first = alarms(codes, settings, stores)
        agreeing(codes, settings, first, stores)
        found.append((name, int(np.isfinite(first).sum()), 1.0 - settings.limits.miss))
    p_values = [float(stats.binom.sf(k - 1, n, RATE)) for _, k, _ in found]
    worst = np.argsort(p_values)
    adjusted = np.maximum.accumulate([(len(found) - j) * p_values[at] for j, at in enumerate(worst)])
    holm = {int(at): min(1.0, float(value)) for at, value in zip(worst, adjusted, strict=True)}
    lines = [
        "| healthy streams | coverage allowed | with an alarm | of them | standard error | Holm |",
        "|---|---|---|---|---|---|",
    ]
    for i, (name, k, least) in enumerate(found):
        error = math.sqrt(max(k, 1) / n * (1.0 - k / n) / n)
        lines.append(f"| {name} | {least:.4f} | {k / n:.4f} | {n:,} | {error:.4f} | {holm[i]:.2g} |")
    return lines


# ------------------------------------------------------------------------------------------------- delays


def changed(rng: np.random.Generator, after: float, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Codes of streams whose coverage drops, and when it does."""
    change = rng.integers(0, LAST_CHANGE, n)
    rows = LAST_CHANGE + AFTER
    rate = np.where(np.arange(rows)[:, None] >= change, 1.0 - after, 1.0 - LEVEL)
    u = rng.random((rows, n))
    return np.where(u < rate / 2, BELOW, np.where(u < rate, ABOVE, INSIDE)).astype(np.uint8), change


def cusum(missed: np.ndarray, after: float, threshold: float | None = None) -> np.ndarray:
    """First row at which a CUSUM that knows the later coverage exceeds a threshold; without one its maximum."""
    q0, q1 = 1.0 - LEVEL, 1.0 - after
    yes, no = math.log(q1 / q0), math.log((1.0 - q1) / (1.0 - q0))
    value, most, first = np.zeros(missed.shape[1]), np.zeros(missed.shape[1]), np.full(missed.shape[1], np.inf)
    for i, row in enumerate(missed):
        value = np.maximum(value, 0.0) + np.where(row, yes, no)
        most = np.maximum(most, value)
        if threshold is not None:
            first[(value >= threshold) & np.isinf(first)] = i + 1
    return most if threshold is None else first


def daily(missed: np.ndarray, n_days: int) -> np.ndarray:
    """First row at which the exact test of the last days, made each day, rejects at .05 over a year's days."""
    counts = np.cumsum(missed, axis=0)
    first = np.full(missed.shape[1], np.inf)
    for close in range(DAY, min(len(missed), YEAR * DAY) + 1, DAY):
        start = max(0, close - n_days * DAY)
        k = counts[close - 1] - (counts[start - 1] if start else 0)
        is_alarm = stats.binom.sf(k - 1, close - start, 1.0 - LEVEL) <= RATE / YEAR
        first[is_alarm & np.isinf(first)] = close
    return first


def delays(first: np.ndarray, change: np.ndarray) -> tuple[float, float]:
    """Median of the rows from the change to the alarm, and how many alarms came before the change."""
    is_late = first > change
    return float(np.median((first - change)[is_late])), float(1.0 - is_late.mean())


def peers_of(
    python: str | None, healthy_codes: np.ndarray, streams: dict[float, np.ndarray]
) -> dict[str, dict[str, list[float]]]:
    """First alarms of mapie's and river's monitors, found in an environment of their own."""
    if python is None:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        given = Path(folder) / "streams.npz"
        misses = {str(after): (codes == BELOW) | (codes == ABOVE) for after, codes in streams.items()}
        np.savez(given, healthy=(healthy_codes == BELOW) | (healthy_codes == ABOVE), **misses)
        done = subprocess.run([python, PEERS, given], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def detection(n: int, n_peers: int, python: str | None) -> list[str]:
    """Delays of ours, of references and of peers."""
    drops = (0.8, 0.7)
    streams = {after: changed(np.random.default_rng([SEED, 100, round(100 * after)]), after, n) for after in drops}
    calm = independent(np.random.default_rng([SEED, 101]), 10_000, n)
    calm_missed = (calm == BELOW) | (calm == ABOVE)
    rows: dict[str, list[tuple[float, float]]] = {}
    false_alarms: dict[str, float] = {}
    guaranteed = {
        "CoverageMonitor, default",
        "CoverageMonitor, misses alone",
        "exact test of the day, corrected for a year",
        "exact test of 30 days, corrected for a year",
    }
    watches = {"CoverageMonitor, default": (MISSES, FEW), "CoverageMonitor, misses alone": (MISSES,)}
    for name, watch in watches.items():
        settings = Settings(confidence_level=LEVEL, false_alarm_rate=RATE, watch=watch)
        false_alarms[name] = float(np.isfinite(our_alarms(calm, settings)).mean())
        rows[name] = [delays(our_alarms(codes, settings), change) for codes, change in streams.values()]
    known = "CUSUM that knows the coverage, tuned to .05 in 10,000 rows (reference)"
    rows[known] = []
    for after, (codes, change) in streams.items():
        tuned = float(np.quantile(cusum(calm_missed, after), 1.0 - RATE))
        missed = (codes == BELOW) | (codes == ABOVE)
        rows[known].append(delays(cusum(missed, after, tuned), change))
    false_alarms[known] = RATE
    for n_days, name in (
        (1, "exact test of the day, corrected for a year"),
        (30, "exact test of 30 days, corrected for a year"),
    ):
        false_alarms[name] = float(np.isfinite(daily(calm_missed, n_days)).mean())
        rows[name] = [
            delays(daily((codes == BELOW) | (codes == ABOVE), n_days), change) for codes, change in streams.values()
        ]
    some = slice(0, n_peers)
    theirs = peers_of(python, calm[:, some], {after: codes[:, some] for after, (codes, _) in streams.items()})
    for name, by_kind in theirs.items():
        false_alarms[name] = float(np.isfinite([float(one) for one in by_kind["healthy"]]).mean())
        rows[name] = []
        for after, (_, change) in streams.items():
            first = np.array([float(one) for one in by_kind[str(after)]])
            rows[name].append(delays(first, change[: len(first)]))
        guaranteed |= {name} if name.startswith("MAPIE") else set()
    lines = [
        "| monitor | guaranteed | median delay .90 to .80 | .90 to .70 | early alarms | healthy, with alarms | n |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, found in rows.items():
        medians = " | ".join("never" if math.isinf(one) else f"{one:.0f}" for one, _ in found)
        early = ", ".join(f"{one:.3f}" for _, one in found)
        number = len(theirs[name]["healthy"]) if name in theirs else n
        is_sure = "yes" if name in guaranteed else "no"
        lines.append(f"| {name} | {is_sure} | {medians} | {early} | {false_alarms[name]:.4f} | {number:,} |")
    return lines


def our_alarms(codes: np.ndarray, settings: Settings) -> np.ndarray:
    """First alarms with or without the watch over too few misses."""
    if FEW in settings.watch:
        return alarms(codes, settings)
    many = Rates(settings.limits.miss, codes.shape[1])
    first = np.full(codes.shape[1], np.inf)
    for i, row in enumerate(codes):
        many.update((row == BELOW) | (row == ABOVE))
        first[(many.value >= settings.threshold) & np.isinf(first)] = i + 1
    return first


def since(n: int) -> list[str]:
    """How far `since_` is from the change."""
    lines = [
        "| coverage after the change | median distance of `since_` | 90 % point | signed | range holds it | n |",
        "|---|---|---|---|---|---|",
    ]
    for after in (0.8, 0.7):
        codes, change = changed(np.random.default_rng([SEED, 200, round(100 * after)]), after, n)
        settings = Settings(confidence_level=LEVEL)
        off, held = [], []
        for j in range(n):
            stream = Stream(settings, has_subgroups=False)
            for code in codes[:, j].tolist():
                stream.update({INSIDE: 0.5, BELOW: -1.0, ABOVE: 2.0}[code], 0.0, 1.0)
                if stream.alarm is not None:
                    break
            if stream.alarm is not None and stream.alarm.row > change[j]:
                off.append(stream.alarm.since.row - change[j])
                held.append(stream.alarm.since.lower <= change[j] <= stream.alarm.since.upper)
        distance = np.abs(off)
        lines.append(
            f"| {after} | {np.median(distance):.0f} | {np.quantile(distance, 0.9):.0f} | {np.median(off):+.0f} | "
            f"{np.mean(held):.3f} | {len(off)} |"
        )
    return lines


def sequence(rows: int, n: int) -> list[str]:
    """How often the confidence sequence ever misses, and how wide it is."""
    scale = 1.0 / math.sqrt(PRIOR_ROWS * LEVEL * (1.0 - LEVEL))
    number = np.arange(1, rows + 1)
    lines = ["| coverage | ever misses the mean coverage so far | standard error | streams |", "|---|---|---|---|"]
    for name, rate in (("0.9", 0.1), ("0.8", 0.2), ("changes from .95 to .85 halfway", None)):
        rng = np.random.default_rng([SEED, 300, 0 if rate is None else round(100 * rate)])
        rates = np.full(rows, rate) if rate is not None else np.where(np.arange(rows) < rows // 2, 0.05, 0.15)
        mean = np.cumsum(rates) / number
        ever = np.zeros(n, bool)
        count = np.zeros(n, np.int64)
        is_missed = rng.random((rows, n)) < rates[:, None]
        for i in range(rows):  # the counts of all streams at once
            count += is_missed[i]
            extremes = np.array([count.min(), count.max()])
            if (log_evidence_against(mean[i], extremes, i + 1, scale) < math.log(20.0)).all():
                continue  # nor is there enough between them
            distinct, place = np.unique(count, return_inverse=True)
            ever |= (log_evidence_against(mean[i], distinct, i + 1, scale) >= math.log(20.0))[place]
        lines.append(f"| {name} | {ever.mean():.4f} | {math.sqrt(ever.mean() * (1 - ever.mean()) / n):.4f} | {n:,} |")
    lines += ["", "| rows | width over that of an exact interval (Clopper and Pearson) of that time |", "|---|---|"]
    for m in (100, 1000, 10_000):
        k = m // 10
        low, high = rate_bounds(k, m, 1.0 - LEVEL)
        exact = stats.beta.ppf(0.975, k + 1, m - k) - stats.beta.ppf(0.025, k, m - k + 1)
        lines.append(f"| {m:,} | {float(high - low) / exact:.3f} |")
    return lines


def cost(most: int) -> list[str]:
    """Time of an update, and memory."""
    y = np.random.default_rng(SEED).standard_normal(100_000)
    targets = y.tolist()
    intervals = np.tile([-BOUND, BOUND], (len(y), 1))
    single, batch, kernel = [], [], []
    for _ in range(5):
        monitor = pm.CoverageMonitor(LEVEL)
        start = time.process_time()
        for target in targets[:20_000]:
            monitor.update(target, (-BOUND, BOUND))
        single.append((time.process_time() - start) / 20_000)
        monitor = pm.CoverageMonitor(LEVEL)
        start = time.process_time()
        monitor.update(y[:20_000], intervals[:20_000])
        batch.append((time.process_time() - start) / 20_000)
        evidence = RateEvidence(0.1)
        start = time.process_time()
        for target in targets[:20_000]:
            evidence.update(target > BOUND)
        kernel.append((time.process_time() - start) / 20_000)
    lines = ["| what | figure |", "|---|---|"]
    lines.append(f"| one update of one row, microseconds of CPU time (median of 5) | {1e6 * np.median(single):.2f} |")
    lines.append(f"| a row within an update of many | {1e6 * np.median(batch):.2f} |")
    lines.append(f"| evidence against one rate alone | {1e6 * np.median(kernel):.2f} |")
    monitor, at = pm.CoverageMonitor(LEVEL), 100_000
    for done in range(len(y), most + 1, len(y)):
        monitor.update(y, intervals)
        if done == at:
            kilobytes = len(json.dumps(monitor._stream.to_dict())) / 1024
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            lines.append(
                f"| after {done:.0e} rows: state as JSON, KiB; largest memory of the process, MiB | "
                f"{kilobytes:.1f}; {peak:.0f} |"
            )
            at *= 10
    return lines


CHILD = """
import sys
import pimeter as pm

with pm.CoverageMonitor.open(sys.argv[1], confidence_level=0.9) as monitor:
    print("ready", flush=True)
    for i in range(monitor.n_seen_, 10**6):
        if sys.argv[2] == "ids":
            if not monitor._waiting().known([str(i)]):
                monitor.expect(i, (0.0, 1.0))
            monitor.observe(i, 0.5)
        else:
            monitor.update(0.5, (0.0, 1.0))
        print(i + 1, flush=True)
"""


def killed(n: int) -> list[str]:
    """Kill a process that keeps its state at random moments, and count what is lost or counted twice."""
    lines = [
        "| rows | killed | lost beyond the one in flight | counted twice | rows counted |",
        "|---|---|---|---|---|",
    ]
    for i, kind in enumerate(("ids", "plain")):
        lost = twice = done = 0
        rng = np.random.default_rng([SEED, 400, i])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "watch.json"
            for _ in range(n):
                with subprocess.Popen(
                    [sys.executable, "-c", CHILD, path, kind], stdout=subprocess.PIPE, text=True
                ) as child:
                    assert child.stdout.readline() == "ready\n"
                    time.sleep(rng.uniform(0.0, 0.5))
                    child.kill()
                    printed = child.stdout.read().split("\n")[:-1]  # the last line may be cut off
                said = max([done, *map(int, printed)])
                with pm.CoverageMonitor.open(path) as monitor:
                    seen = monitor.n_seen_
                    assert monitor._stream.counts.rows == seen
                lost += max(0, said - seen)
                twice += max(0, seen - said - 1)
                done = seen
        lines.append(
            f"| {'expect and observe, by id' if kind == 'ids' else 'update'} | {n} | {lost} | {twice} | {done:,} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few and short streams, nothing saved")
    parser.add_argument("--peers", help="a Python with mapie and river")
    parser.add_argument("--save", action="store_true", help="write results/monitoring.md")
    asked = parser.parse_args()
    rows, n, n_peers, most, n_killed = (1000, 50, 5, 100_000, 2) if asked.quick else (10_000, 2000, 50, 10_000_000, 100)
    sections = {
        "False alarms": lambda: healthy(rows, n),
        "Delay after a drop of coverage at a random step": lambda: detection(n, n_peers, asked.peers),
        "Since when": lambda: since(10 if asked.quick else 300),
        "Confidence sequence of coverage (95 %)": lambda: sequence(rows, n),
        "Cost": lambda: cost(most),
        "Killed at random moments": lambda: killed(n_killed),
    }
    about = f"Intervals at {LEVEL}, false_alarm_rate {RATE}, streams of {rows:,} rows; numpy {np.__version__}."
    blocks = ["# Monitoring", about]
    for title, made in sections.items():
        block = "\n".join([f"## {title}", "", *made()])
        print(block, flush=True)
        blocks.append(block)
    text = "\n\n".join([*blocks, ""])
    if asked.save and not asked.quick:
        save(__file__, text, uses=["pimeter.monitoring.monitor"])
    else:
        print("Nothing saved.", np.__name__)


if __name__ == "__main__":
    main()
