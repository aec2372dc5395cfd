"""Measure given intervals: do ranges contain the truth, are alarms right, and what does it cost?

    python benchmarks/probabilistic_measure.py [--quick] [--seed SEED]

Ranges: of every number that `measure` reports for given 90 % intervals (and for nine quantiles: pinball loss and CRPS),
90 % nominal. The truth is that of 4 million rows. Refused ranges do not count.
Alarms: any finding raised in a report on intervals that are as they should be (with five features, a category, a time),
and the finding that goes with each planted fault.
All cells of a table are judged together (Holm). Constants were chosen on other seeds and partly other distributions.
Cost: `measure` of a million rows and nine quantiles against one `np.sort` of the nine million values, medians.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from importlib.metadata import version

import numpy as np
from provenance import save
from scipy import stats
from scipy.stats import binomtest

import pimeter as pm

SEED = 20261119
LEVEL, N_DRAWS, N_TRUTH = 0.9, 2000, 4_000_000
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
)


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


def measured(y: np.ndarray, values: np.ndarray) -> dict[str, tuple[float, float, float]]:
    found = pm.measure(y, intervals=values[:, [0, -1]], confidence_level=LEVEL).scores
    of_quantiles = pm.measure(y, quantiles=values[:, 1:-1], levels=LEVELS, confidence_level=0.8).scores
    found |= {"crps": of_quantiles["crps"], "pinball of nine": of_quantiles["pinball"]}
    return {name: (found[name].value, found[name].lower, found[name].upper) for name in COLUMNS}


def ranges(n_draws: int, seed: int, rows: tuple[int, ...]) -> list[dict]:
    cells = []
    for i, kind in enumerate(("normal", "t3", "lognormal", "discrete", "heteroscedastic")):
        parts = [measured(*drawn(kind, np.random.default_rng([seed, i, k]), N_TRUTH // 8)) for k in range(8)]
        truth = {name: np.mean([part[name][0] for part in parts]) for name in COLUMNS}
        for n in rows:
            rng = np.random.default_rng([seed, i, n, 7])
            hits, known = dict.fromkeys(COLUMNS, 0), dict.fromkeys(COLUMNS, 0)
            for _ in range(n_draws):
                for name, (_, low, high) in measured(*drawn(kind, rng, n)).items():
                    known[name] += not np.isnan(low)
                    slack = 1e-3 * abs(truth[name]) if name in {"mean_width", "median_width"} else 0.0
                    hits[name] += low - slack <= truth[name] <= high + slack
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


def cost(n: int) -> float:
    """CPU time of `measure` over that of a sort, in pairs."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=n)
    quantiles = rng.normal(size=(n, 1)) * 0.1 + stats.norm.ppf(LEVELS)
    ratios = []
    for _ in range(5):
        values = rng.normal(size=9 * n)
        start = time.process_time()
        np.sort(values)
        middle = time.process_time()
        pm.measure(y, quantiles=quantiles, levels=LEVELS)
        ratios.append((time.process_time() - middle) / (middle - start))
    return statistics.median(ratios)


def holm(cells: list[dict]) -> int:
    ordered = sorted(cell["p_value"] for cell in cells)
    return next((k for k, p in enumerate(ordered) if p > ERROR / (len(cells) - k)), len(cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few draws of few rows; nothing is written")
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    n_draws = 20 if options.quick else N_DRAWS
    lines = [f"# Given intervals, measured\n\nSeed {options.seed}, {n_draws:,} draws a cell, Python "]
    lines[0] += f"{platform.python_version()}, numpy {version('numpy')}.\n"
    lines += ["## Alarms\n", "| planted | raised in | any finding |", "|---|---|---|"]
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
    lines += ["## Coverage of ranges (nominal .9)\n", f"| distribution | rows | {names} |", "|" + "---|" * 11]
    for k in range(0, len(cells), len(COLUMNS)):
        own = cells[k : k + len(COLUMNS)]
        texts = [f"{c['coverage']:.3f}" if c["given"] else "refused" for c in own]
        lines.append(f"| {own[0]['kind']} | {own[0]['rows']} | {' | '.join(texts)} |")
    asked = [c for c in cells if c["rows"] >= 50]
    lines.append(
        f"\nBelow {FLOOR} (lognormal with 50 rows: {FLOOR_LOGNORMAL}) among {len(asked)} cells with 50 rows or more, "
        f"judged together (Holm): {holm(asked)}. Lowest: {min(c['coverage'] for c in asked if c['given']):.3f}.\n"
    )
    ratio = cost(20_000 if options.quick else 1_000_000)
    lines.append(f"## Cost\n\n`measure` of a million rows and nine quantiles: {ratio:.2f} of one sort of their values.")
    print("\n".join(lines[-3:]))
    if not options.quick:
        save(__file__, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
