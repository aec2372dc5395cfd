"""Does the online neuron keep its coverage while errors drift, how near is it to the best, and how fast does it learn?

    python benchmarks/online_streams.py [--quick] [--speed]

The first table has the rivals: adaptive conformal inference (ACI, Gibbs and Candes 2021, gamma = .02) on all errors so
far and on the last 500, and the quantile tracker of conformal PID control (Angelopoulos, Candes and Tibshirani 2023),
the step of which is a fraction of the largest of the last 100 errors, .1 in the paper, .05 besides. Streams: absolute
errors that are autoregressive, GARCH, of a scale that switches, independent, or independent with rare huge ones. The
score is the interval score of [-w, w] around errors, w being the margin before each error, 0 at least, and the first
error itself for all. The numbers of the neuron were chosen on other seeds and with other parameters: AR(.8), AR(.95),
GARCH(.08, .9) and (.2, .7), scales of 3 and 6, exponential, t3 and uniform errors, .5 % of 50 and 2 % of 30 times.

The second one has |t4| errors that stay, drift (four times as large at the end), jump (four times as large from the
middle on) or shrink (to a sixteenth from the middle on). The tables go to `results/online_streams.md`. Times are
medians of ratios of processor time to that of a peer, each pair measured back to back; `--speed` measures these alone,
and keeps the other tables.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
import warnings
from collections.abc import Callable

import numpy as np
from distributions import HELD_OUT, TUNING, Distribution
from provenance import RESULTS, save, sessions
from scipy import stats

import pimeter as pm
from pimeter._kernels import stream
from pimeter._kernels.dispatch import kernel
from pimeter.online import margins

SEED = 20261121
GAMMA, WINDOW, TRAILING = 0.02, 500, 100
N_STREAMS = {2000: 2000, 10_000: 400}  # of each length
LENGTH, IN_BLOCK, ROLLING = 20_000, 1000, 500
LEVELS = (0.9, 0.95)
STREAMS = ("stationary", "drift", "jump", "shrink")
SETTLING = ("normal", "t3", "exponential", "lognormal", "uniform")
UNSEEN = ("shifted t4", "gamma(.5)", "hyperbolic secant", "semicircle", "outliers")


def autoregressive(rng: np.random.Generator, n: int, k: int) -> np.ndarray:
    noise, errors = rng.standard_normal((n, k)), np.empty((n, k))
    errors[0] = noise[0]
    for t in range(1, n):
        errors[t] = 0.9 * errors[t - 1] + np.sqrt(1 - 0.9**2) * noise[t]
    return np.abs(errors)


def garch(rng: np.random.Generator, n: int, k: int) -> np.ndarray:
    errors, variance = rng.standard_normal((n, k)), np.ones(k)
    for t in range(n):
        errors[t] *= np.sqrt(variance)
        variance = 0.05 + 0.1 * errors[t] ** 2 + 0.85 * variance
    return np.abs(errors)


def regimes(rng: np.random.Generator, n: int, k: int) -> np.ndarray:
    is_wide = np.cumsum(rng.random((n, k)) < 0.01, axis=0) % 2 == 1
    return np.abs(rng.standard_normal((n, k))) * np.where(is_wide, 4.0, 1.0)


def rare(rng: np.random.Generator, n: int, k: int) -> np.ndarray:
    return np.abs(rng.standard_normal((n, k))) * np.where(rng.random((n, k)) < 0.01, 100.0, 1.0)


DEPENDENT = {"AR(.9)": autoregressive, "GARCH(.1, .85)": garch, "regimes": regimes}
INDEPENDENT = {
    "normal": lambda rng, n, k: np.abs(rng.standard_normal((n, k))),
    "t4": lambda rng, n, k: np.abs(rng.standard_t(4, (n, k))),
    "rare huge": rare,
}


def neuron(errors: np.ndarray, level: float) -> np.ndarray:
    """The margin that each error met, one stream in each column."""
    found, states = np.empty_like(errors), np.zeros((errors.shape[1], stream.N_FLOATS))
    for t in range(len(errors)):
        found[t] = margins(states) if t else errors[0]
        kernel.learn_columns(errors[t : t + 1], level, stream.ADAPT, 0.0, states)
    return found


def aci(errors: np.ndarray, level: float, window: int) -> np.ndarray:
    """Margins of adaptive conformal inference; the largest error of the window where its level is 1 or more.

    Counts of the errors known, in a binary tree over the sorted stream, find a rank among them.
    """
    n, k = errors.shape
    depth, columns = (n - 1).bit_length(), np.arange(k)
    order = np.argsort(errors, axis=0)
    rising, places = np.take_along_axis(errors, order, axis=0), np.argsort(order, axis=0)
    tree = [np.zeros((2**i, k), np.int32) for i in range(depth + 1)]
    found, alpha = errors.copy(), np.full(k, 1 - level)
    for t in range(n):
        if t:
            n_known = min(t, window)
            rank = np.ceil((1 - alpha) * (n_known + 1))
            left, node = np.clip(rank, 1, n_known).astype(np.intp), np.zeros(k, np.intp)
            for counts in tree[1:]:
                before = counts[2 * node, columns]
                is_beyond = left > before
                left, node = left - before * is_beyond, 2 * node + is_beyond
            found[t] = np.where(rank > 0, rising[node, columns], 0.0)
            alpha += GAMMA * (1 - level - (errors[t] > found[t]))
        for i, counts in enumerate(tree):
            counts[places[t] >> (depth - i), columns] += 1
            if t >= window:
                counts[places[t - window] >> (depth - i), columns] -= 1
    return found


def tracked(errors: np.ndarray, level: float, rate: float) -> np.ndarray:
    """Margins of the quantile tracker of conformal PID control."""
    found = np.empty_like(errors)
    w = errors[0].copy()
    for t, error in enumerate(errors):
        found[t] = w
        step = rate * errors[max(0, t + 1 - TRAILING) : t + 1].max(axis=0)
        w = w + step * ((error > w) - (1 - level))
    return found


def rivals(errors: np.ndarray, level: float) -> dict[str, np.ndarray]:
    return {
        "ACI, all errors": aci(errors, level, len(errors)),
        f"ACI, last {WINDOW}": aci(errors, level, WINDOW),
        "tracker .1": tracked(errors, level, 0.1),
        "tracker .05": tracked(errors, level, 0.05),
    }


def rivals_table(quick: bool) -> list[list[str]]:
    """Mean scores of the neuron over those of each rival, and its coverage beside that of the best one."""
    rows = []
    for length, n_streams in N_STREAMS.items():
        k = 10 if quick else n_streams
        for i, (name, make) in enumerate((DEPENDENT | INDEPENDENT).items()):
            errors = make(np.random.default_rng([SEED, length, i]), length // 5 if quick else length, k)
            for level in LEVELS:
                own = neuron(errors, level)
                ours, theirs = scores(errors, own, level), rivals(errors, level)
                all_scores = {rival: scores(errors, w, level) for rival, w in theirs.items()}
                best = min(all_scores, key=lambda rival: all_scores[rival].mean())
                ratio = ours.mean() / all_scores[best].mean()
                deviation = np.std(ours - ratio * all_scores[best]) / all_scores[best].mean() / np.sqrt(k)
                rows.append(
                    [
                        "dependent" if name in DEPENDENT else "independent",
                        name,
                        str(level),
                        f"{length:,}",
                        *(f"{ours.mean() / one.mean():.3f}" for one in all_scores.values()),
                        f"{ratio:.3f}",
                        f"{deviation:.4f}",
                        f"{np.mean(errors <= own):.3f}",
                        f"{np.mean(errors <= theirs[best]):.3f}",
                    ]
                )
                print(*rows[-1], flush=True)
    return rows


def scales(name: str) -> np.ndarray:
    t = np.arange(LENGTH)
    late = t >= LENGTH // 2
    return {
        "stationary": np.ones(LENGTH),
        "drift": 4.0 ** (t / LENGTH),
        "jump": np.where(late, 4.0, 1.0),
        "shrink": np.where(late, 1 / 16, 1.0),
    }[name]


def weights_before(errors: np.ndarray, level: float) -> np.ndarray:
    """The weight that each error met."""
    neuron = pm.OnlineNeuron(level)
    weights = np.empty(len(errors))
    for i, error in enumerate(errors):
        weights[i] = neuron.quantile_ if i else error
        neuron.learn_one(error)
    return weights


def rolling(errors: np.ndarray, level: float) -> np.ndarray:
    """The quantile of the 500 errors before each error; of all there are at the start."""
    windows = np.lib.stride_tricks.sliding_window_view(errors[:-1], ROLLING)
    later = np.concatenate([np.quantile(part, level, axis=1) for part in np.array_split(windows, 40)])
    start = [np.quantile(errors[: max(i, 1)], level) for i in range(ROLLING)]
    return np.concatenate([start, later])


def scores(errors: np.ndarray, radius: np.ndarray, level: float) -> np.ndarray:
    """Mean interval score of [-radius, radius] around the errors of each stream."""
    margin = np.maximum(radius, 0.0)
    return np.asarray(np.mean(2 * margin + 2 / (1 - level) * np.maximum(errors - margin, 0.0), axis=0))


def follow_table(n_seeds: int) -> list[list[str]]:
    rows = []
    for level in LEVELS:
        best = stats.t(4).ppf((1 + level) / 2)
        for name in STREAMS:
            scale = scales(name)
            blocks, ratios, rolled = [], [], []
            for seed in range(n_seeds):
                errors = scale * np.abs(np.random.default_rng([SEED, seed]).standard_t(4, LENGTH))
                radius = weights_before(errors, level)
                blocks.append((errors <= radius).reshape(-1, IN_BLOCK).mean(axis=1))
                ideal = scores(errors, best * scale, level)
                ratios.append(scores(errors, radius, level) / ideal)
                rolled.append(scores(errors, rolling(errors, level), level) / ideal)
            off = np.abs(np.array(blocks) - level)
            after = LENGTH // IN_BLOCK // 2
            jumps = name in {"jump", "shrink"}
            usual = np.delete(off, after, axis=1) if jumps else off
            whole = np.abs(np.array(blocks).mean(axis=1) - level)
            rows.append(
                [
                    str(level),
                    name,
                    f"{np.mean(usual <= 0.03):.4f}",
                    f"{off[:, after].max():.3f}" if jumps else "",
                    f"{whole.max():.4f}",
                    f"{np.mean(ratios):.4f}",
                    f"{np.mean(rolled):.4f}",
                ]
            )
            print(*rows[-1], flush=True)
    return rows


def settling_table(n_repeats: int, length: int) -> list[list[str]]:
    rows = []
    known = {distribution.name: distribution for distribution in (*TUNING, *HELD_OUT)}
    for number, name in enumerate((*SETTLING, *UNSEEN)):
        distribution: Distribution = known[name]
        for level in (0.5, *LEVELS):
            (exact,) = distribution.quantiles([level], True)
            online, batch = np.empty(n_repeats), np.empty(n_repeats)
            for i in range(n_repeats):
                errors = np.abs(distribution.sample(np.random.default_rng([SEED, number, i]), (length,)))
                online[i] = pm.OnlineNeuron(level, learning_rate="decaying").learn_many(errors).quantile_
                batch[i] = np.quantile(errors, level)
            ratio = float(np.sqrt(np.mean((online - exact) ** 2) / np.mean((batch - exact) ** 2)))
            rows.append(["first" if name in SETTLING else "others", name, str(level), f"{ratio:.3f}"])
            print(*rows[-1], flush=True)
    return rows


def seconds(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def ratio(ours: Callable[[], object], peers: Callable[[], object], repeats: int) -> tuple[float, float, float]:
    ours(), peers()  # warm
    pairs = np.array([(seconds(ours), seconds(peers)) for _ in range(repeats)])
    return float(np.median(pairs[:, 0] / pairs[:, 1])), *np.median(pairs, axis=0).tolist()


def fit_cones(y_true: np.ndarray, y_pred: np.ndarray) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.CoverageWarning)  # 500 windows of 30 steps stand for 17 errors
        pm.ForecastIntervals().fit(y_true, y_pred)


def speed_table(quick: bool) -> list[list[str]]:
    rng = np.random.default_rng(SEED)
    repeats = 3 if quick else 15
    n = 20_000 if quick else 1_000_000
    errors = np.abs(rng.standard_t(4, n))
    rows = []

    def add(what: str, figures: tuple[float, float, float]) -> None:
        value, ours, peers = figures
        rows.append([what, f"{value:.3f}", f"{1e3 * ours:.3g} / {1e3 * peers:.3g} ms"])
        print(*rows[-1], flush=True)

    def sort() -> np.ndarray:
        return np.sort(errors)

    for label, settings in (
        ("default", {}),
        ("decaying", {"learning_rate": "decaying"}),
        ("learning_rate=.01", {"learning_rate": 0.01}),
    ):
        learn = ratio(lambda s=settings: pm.OnlineNeuron(**s).learn_many(errors), sort, repeats)
        add(f"`learn_many`, {label}, {n:,} errors, against numpy.sort of them", learn)

    def one_by_one() -> None:
        neuron = pm.OnlineNeuron()
        for error in errors:
            neuron.learn_one(error)

    add(f"`learn_one` in a loop, {n:,} errors, against numpy.sort of them", ratio(one_by_one, sort, 1 if quick else 3))
    shape = (20, 500, 30) if quick else (1000, 500, 30)
    y_pred = rng.standard_normal(shape)
    y_true = y_pred + rng.standard_normal(shape)
    absolute = np.abs(y_true - y_pred)
    size = " x ".join(f"{k:,}" for k in shape)
    cones = ratio(lambda: fit_cones(y_true, y_pred), lambda: np.quantile(absolute, 0.95, axis=1), 3 if quick else 5)
    add(f"`ForecastIntervals.fit`, {size} (series, windows, steps), against numpy.quantile of absolute errors", cones)
    return rows


def table(header: str, rows: list[list[str]]) -> list[str]:
    lines = [header.split(" | "), ["---"] * len(header.split(" | ")), *rows]
    return [f"| {' | '.join(line)} |" for line in lines] + [""]


def speed_section(quick: bool) -> list[str]:
    asked = (
        "Processor time of all threads together; `fit` has two, numpy.quantile one. Asked for: at most 1 for "
        "`learn_many` at its default, and of elapsed time for `fit`."
    )
    return ["## Speed", "", asked, "", *table("what | ratio | ours / peer", speed_table(quick))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few seeds and short streams, nothing saved")
    parser.add_argument("--speed", action="store_true", help="speed alone; the other tables stay as they are stored")
    arguments = parser.parse_args()
    quick = arguments.quick
    if arguments.speed:
        stored = RESULTS / "online_streams.md"
        text = stored.read_text().partition("## Speed\n")[0] + "\n".join(speed_section(quick))
        if not quick:
            save(__file__, text, earlier=sessions(stored.with_suffix(".json")))
        return
    n_seeds, n_repeats, length = (1, 3, 2000) if quick else (20, 100, 100_000)
    versions = f"numpy {np.__version__}, pimeter {pm.__version__}"
    machine = f"{platform.machine()}, {len(os.sched_getaffinity(0))} threads; Python {platform.python_version()}"
    rivalled, follow = rivals_table(quick), follow_table(n_seeds)
    settled, speed = settling_table(n_repeats, length), speed_section(quick)
    lines = [
        "# The online neuron",
        "",
        f"`python benchmarks/online_streams.py`, seed {SEED}. {machine}, {versions}.",
        "",
        "## Beside other rules",
        "",
        (
            f"Absolute errors, {' and '.join(f'{k:,} streams of {n:,}' for n, k in N_STREAMS.items())}, the default "
            "step: mean interval score over that of each rival, and over the best rival of the cell. Asked for: at "
            "most 1.01 for dependent errors and 1.00 for independent ones."
        ),
        "",
        *table(
            f"errors | stream | level | length | / ACI, all errors | / ACI, last {WINDOW} | / tracker .1 | "
            "/ tracker .05 | / best rival | standard error | coverage | best rival's coverage",
            rivalled,
        ),
        "## Streams that drift",
        "",
        (
            f"|t4| errors, {LENGTH:,} long, {n_seeds} seeds, the default step. Asked for: 99 % of blocks of "
            f"{IN_BLOCK:,} "
            "within .03 of the level, the block after the jump within .06, whole streams within .01; an interval score "
            "of at most 1.02 of that of the true quantile at each time (shrinking streams: not asked for)."
        ),
        "",
        *table(
            f"level | stream | blocks within .03 | worst block after the jump | worst whole stream | interval score / "
            f"true quantile's | of a rolling window of {ROLLING}",
            follow,
        ),
        "## A step that decays",
        "",
        (
            f"{n_repeats} streams of {length:,} absolute errors: root mean square distance from the true quantile, as "
            "a ratio to that of numpy.quantile of the whole stream. Asked for: at most 1.1 on five distributions. The "
            "numbers "
            "of the step were chosen on normal, t4, exponential, lognormal and uniform errors of other seeds; the last "
            "five distributions had no part in that."
        ),
        "",
        *table("distributions | distribution | level | ratio", settled),
        *speed,
    ]
    text = "\n".join(lines)
    print(text)
    if not quick:
        save(__file__, text)


if __name__ == "__main__":
    main()
