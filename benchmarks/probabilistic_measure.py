"""Measure given intervals: do ranges contain the truth, are alarms right, and what does it cost?

    python benchmarks/probabilistic_measure.py [--quick] [--seed SEED] [--draws 2000]

Ranges: of every number that `measure` reports for given 90 % intervals (and for nine quantiles: pinball loss and CRPS),
90 % nominal. The truth is that of 2 million rows. Refused ranges do not count. "all levels" are the ranges of the
reliability curve, "categories" those of the coverage in three categories, each right if all of them are; "widened" is
the interval score of widths multiplied by the factor found, of which the truth is that of 100,000 other rows. The parts
of the CRPS have no ranges, raise nothing and are left out, for speed.
Alarms: any finding raised in a report on intervals that are as they should be (with five features, a category, a time),
and the finding that goes with each planted fault.
All cells of a table are judged together (Holm). Constants were chosen on other seeds and partly other distributions.
Cost: `measure` of a million rows and nine quantiles against one `np.sort` of the nine million values, medians.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import NamedTuple

import numpy as np
from provenance import save
from scipy import stats
from scipy.stats import binomtest

import pimeter as pm
from pimeter.evaluation import probabilistic

SEED = 20261119
LEVEL, N_DRAWS, N_TRUTH = 0.9, 2000, 2_000_000
LEVELS = np.arange(1, 10) / 10
ROWS = (50, 200, 2000)
FLOOR, FLOOR_LOGNORMAL = 0.87, 0.80
ERROR = 0.05
COLUMNS = (
    "coverage",
    "misses_below",
    "misses_above",
    "mean_width",
    "median_width",
    "interval_score",
    "pinball",
    "pinball of nine",
    "crps",
    "all levels",
    "categories",
    "widened",
)
N_POOL = 100_000  # rows that tell the true score of wider intervals


def drawn(kind: str, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Targets, and their true quantiles at the levels .05, .1, ..., .9, .95."""
    levels = np.concatenate([[0.05], LEVELS, [0.95]])
    centre, scale = (
        rng.normal(size=n) * 2,
        np.exp(0.5 * rng.normal(size=n)) if kind == "heteroscedastic" else np.ones(n),
    )
    base = {"t3": stats.t(3), "lognormal": stats.lognorm(1)}.get(kind, stats.norm)
    noise = base.ppf(rng.uniform(size=n))
    y = centre + scale * noise
    values = centre[:, None] + scale[:, None] * base.ppf(levels)
    if kind == "discrete":
        y, values = np.round(y), np.round(values)
    return y, values


class Measured(NamedTuple):
    """What `measure` reports, with ranges."""

    scores: dict[str, tuple[float, float, float]]  # value, lower, upper
    reliability: np.ndarray  # (levels, 3)
    categories: np.ndarray  # (categories, 2)
    widened: tuple[float, float, float]  # factor; lower, upper of the score


class Truth:
    """True values of scores and coverages, and rows that tell the score of wider intervals."""

    def __init__(self, kind: str, seed: list[int]) -> None:
        parts = []
        for k in range(8):
            y, values = drawn(kind, np.random.default_rng([*seed, k]), N_TRUTH // 8)
            parts.append(measured(y, values, np.full(len(y), "a")))
        self.scores = {name: np.mean([part.scores[name][0] for part in parts]) for name in parts[0].scores}
        self.reliability = np.mean([part.reliability[:, 0] for part in parts], axis=0)
        y, values = drawn(kind, np.random.default_rng([*seed, 8]), N_POOL)
        low, high = values[:, 0], values[:, -1]
        self.half = (high - low) / 2
        self.away = np.abs(y - (low + high) / 2) / self.half

    def score(self, factor: float) -> float:
        """Interval score of widths multiplied by a factor."""
        return 2 * np.mean(self.half * (factor + np.maximum(self.away - factor, 0) / (1 - LEVEL)))

    def is_hit(self, one: Measured) -> dict[str, bool | None]:
        """Whether each range contains the truth; None where there is no range."""
        found: dict[str, bool | None] = {}
        for name, (_, low, high) in one.scores.items():
            slack = 1e-3 * abs(self.scores[name]) if name in {"mean_width", "median_width"} else 0.0
            found[name] = None if np.isnan(low) else bool(low - slack <= self.scores[name] <= high + slack)
        held = (one.reliability[:, 1] <= self.reliability) & (self.reliability <= one.reliability[:, 2])
        found["all levels"] = bool(held.all())
        truth = self.scores["coverage"]
        found["categories"] = bool(((one.categories[:, 0] <= truth) & (truth <= one.categories[:, 1])).all())
        factor, low, high = one.widened
        found["widened"] = None if np.isnan(low) else bool(low <= self.score(factor) <= high)
        return found


@contextmanager
def no_alternatives() -> Iterator[None]:
    """Half of the time is spent on alternatives, which are looked at once."""
    own, probabilistic.alternatives = probabilistic.alternatives, lambda *_: ()
    yield
    probabilistic.alternatives = own


def measured(y: np.ndarray, values: np.ndarray, by: np.ndarray) -> Measured:
    of_intervals = pm.measure(y, intervals=values[:, [0, -1]], confidence_level=LEVEL, by=by)
    with no_alternatives():
        of_quantiles = pm.measure(y, quantiles=values[:, 1:-1], levels=LEVELS, confidence_level=0.8)
    found = {**of_intervals.scores, "crps": of_quantiles.scores["crps"]}
    found["pinball of nine"] = of_quantiles.scores["pinball"]
    widened = next(one for one in of_intervals.alternatives if one.name == "widened by")
    return Measured(
        {name: (one.value, one.lower, one.upper) for name, one in found.items()},
        np.array([(one.coverage, one.lower, one.upper) for one in of_quantiles.reliability]),
        np.array([(one.lower, one.upper) for one in of_intervals.subgroups if one.of == "by"]),
        (widened.value, widened.lower, widened.upper),
    )


def ranges(n_draws: int, seed: int, rows: tuple[int, ...]) -> list[dict]:
    cells = []
    for i, kind in enumerate(("normal", "t3", "lognormal", "discrete", "heteroscedastic")):
        truth = Truth(kind, [seed, i])
        for n in rows:
            rng = np.random.default_rng([seed, i, n, 7])
            hits, known = dict.fromkeys(COLUMNS, 0), dict.fromkeys(COLUMNS, 0)
            for _ in range(n_draws):
                y, values = drawn(kind, rng, n)
                for name, hit in truth.is_hit(measured(y, values, rng.choice(list("abc"), n))).items():
                    known[name] += hit is not None
                    hits[name] += bool(hit)
            for name in COLUMNS:
                floor = FLOOR_LOGNORMAL if (kind, n) == ("lognormal", 50) else FLOOR
                p_value = binomtest(hits[name], known[name], floor, alternative="less").pvalue if known[name] else 1.0
                coverage = hits[name] / known[name] if known[name] else float("nan")
                cells.append({"kind": kind, "rows": n, "score": name, "coverage": coverage, "p_value": p_value})
                cells[-1]["given"] = known[name] / n_draws
            print(kind, n, *(f"{c['score']} {c['coverage']:.3f}" for c in cells[-len(COLUMNS) :]), flush=True)
    return cells


def alarms(fault: str, rng: np.random.Generator, n: int = 1000) -> tuple[set[str], tuple[str, ...]]:
    """Findings raised for a planted fault, and those of which one is right."""
    X, by = rng.normal(size=(n, 5)), rng.choice(list("abcde"), n)
    centre, noise = X[:, 0], rng.normal(size=n)
    half, wanted = stats.norm.ppf(0.95), ()
    said: dict = {}
    if fault == "widths x .85":
        half, wanted = 0.85 * half, ("coverage",)
    elif fault == "misses at one end":
        centre, wanted = centre + 10, ("balance",)
        said = {"intervals": np.stack([centre - 20, centre - 10 + stats.norm.ppf(0.9)], axis=1)}
        centre = centre - 10
    elif fault == "a subgroup at 78 %":
        noise, wanted = np.where(by == "a", stats.norm.ppf(0.95) / stats.norm.ppf(0.89), 0.9156) * noise, ("subgroups",)
    elif fault == "misses in runs":
        miss = np.zeros(n, bool)
        for i in range(n):
            miss[i] = rng.uniform() < (0.4 if i and miss[i - 1] else 0.1 * 0.6 / 0.9)
        noise, wanted = np.where(miss, 2.0 * half * rng.choice([-1, 1], n), 0.0), ("runs",)
    elif fault == "t3 with normal quantiles":
        noise, wanted = rng.standard_t(3, n) / 3**0.5, ("calibration",)
        said = {"quantiles": centre[:, None] + stats.norm.ppf(LEVELS), "levels": LEVELS}
    elif fault == "none, nine quantiles":
        said = {"quantiles": centre[:, None] + stats.norm.ppf(LEVELS), "levels": LEVELS}
    said = said or {"intervals": np.stack([centre - half, centre + half], axis=1), "confidence_level": LEVEL}
    if "intervals" in said:
        said["confidence_level"] = LEVEL
    found = pm.measure(centre + noise, **said, X=X, by=by, time=np.arange(n))
    return set(found.diagnosis.raised), wanted


FAULTS = (
    "widths x .85", "misses at one end", "a subgroup at 78 %", "misses in runs", "t3 with normal quantiles",
)  # fmt: skip


def cost(n: int) -> tuple[float, float]:
    """Processor and wall time of `measure` over those of a sort, in pairs: medians."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=n)
    quantiles = rng.normal(size=(n, 1)) * 0.1 + stats.norm.ppf(LEVELS)
    ratios = []
    for _ in range(5):
        values = rng.normal(size=9 * n)
        at = [(time.process_time(), time.perf_counter())]
        np.sort(values)
        at.append((time.process_time(), time.perf_counter()))
        pm.measure(y, quantiles=quantiles, levels=LEVELS)
        at.append((time.process_time(), time.perf_counter()))
        ratios.append([(end - middle) / (middle - start) for start, middle, end in zip(*at, strict=True)])
    by_processor, by_clock = np.median(ratios, axis=0)
    return float(by_processor), float(by_clock)


def holm(cells: list[dict]) -> int:
    ordered = sorted(cell["p_value"] for cell in cells)
    return next((k for k, p in enumerate(ordered) if p > ERROR / (len(cells) - k)), len(cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few draws of few rows; nothing is written")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--draws", type=int, default=N_DRAWS, help="of each cell")
    options = parser.parse_args()
    n_draws = 20 if options.quick else options.draws
    lines = [f"# Given intervals, measured\n\nSeed {options.seed}, {n_draws:,} draws a cell, Python "]
    lines[0] += f"{platform.python_version()}, numpy {version('numpy')}.\n"
    lines += ["## Alarms\n", "| planted | raised in | any finding |", "|---|---|---|"]
    by_processor, by_clock = cost(20_000 if options.quick else 1_000_000)
    probabilistic.decomposition = lambda *_: None  # it has no range, raises nothing, and takes most of the time
    rates = []
    for i, fault in enumerate(("none", "none, nine quantiles", *FAULTS)):
        rng = np.random.default_rng([options.seed, 100, i])
        found = [alarms(fault, rng) for _ in range(n_draws)]
        right = np.mean([any(name in raised for name in wanted) for raised, wanted in found])
        any_raised = np.mean([bool(raised) for raised, _ in found])
        lines.append(f"| {fault} | {'' if i < 2 else f'{right:.3f}'} | {any_raised:.3f} |")
        print(lines[-1], flush=True)
        if i < 2:
            count = round(any_raised * n_draws)
            rates.append({"p_value": binomtest(count, n_draws, 0.05, alternative="greater").pvalue})
    lines.append(f"\nFalse alarms above 5 %, judged together (Holm): {holm(rates)} of {len(rates)} cells.\n")
    cells = ranges(n_draws, options.seed, ROWS[:1] if options.quick else (30, *ROWS))
    names = " | ".join(COLUMNS)
    lines += [
        "## Coverage of ranges (nominal .9)\n",
        f"| distribution | rows | {names} |",
        "|" + "---|" * (2 + len(COLUMNS)),
    ]
    for k in range(0, len(cells), len(COLUMNS)):
        own = cells[k : k + len(COLUMNS)]
        texts = [f"{c['coverage']:.3f}" if c["given"] else "refused" for c in own]
        lines.append(f"| {own[0]['kind']} | {own[0]['rows']} | {' | '.join(texts)} |")
    asked = [c for c in cells if c["rows"] >= 50]
    lines.append(
        f"\nBelow {FLOOR} (lognormal with 50 rows: {FLOOR_LOGNORMAL}) among {len(asked)} cells with 50 rows or more, "
        f"judged together (Holm): {holm(asked)}. Lowest: {min(c['coverage'] for c in asked if c['given']):.3f}.\n"
    )
    lines += ["## Cost\n", "| a million rows, nine quantiles | processor time | wall time |", "|---|---|---|"]
    lines.append(f"| `measure` over one `np.sort` of the values | {by_processor:.2f} | {by_clock:.2f} |")
    lines.append("\nMedians of 5 pairs. The isotonic part looks at 2,000 rows.")
    print("\n".join(lines[-6:]))
    if not options.quick:
        save(__file__, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
