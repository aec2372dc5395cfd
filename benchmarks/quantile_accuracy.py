"""How accurate is the neuron? Mean-square errors against other quantile estimators, as ratios on the same samples.

    python benchmarks/quantile_accuracy.py [--quick]

Cells are distribution x sample size x level, for signed values and for absolute ones (`reflect=True`; the others get
the absolute values as they are). Seeds are none that a rule was tuned on (those were below 1000). The summary goes to
`results/quantile_accuracy.md`, every cell to `results/quantile_accuracy.csv`.
"""

from __future__ import annotations

import argparse
import csv
import io
import math
import platform
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy
from distributions import ABSOLUTE_LEVELS, HELD_OUT, LENGTHS, SIGNED_LEVELS, TUNING, Distribution
from provenance import RESULTS, save
from scipy.special import betainc, ndtr

import pimeter as pm
from pimeter.paper import DescendingNeuron

CELLS = RESULTS / "quantile_accuracy.csv"
SEED = 20261115
BATCHES = 10
NUMPY_METHODS = (
    "inverted_cdf",
    "averaged_inverted_cdf",
    "closest_observation",
    "interpolated_inverted_cdf",
    "hazen",
    "weibull",
    "linear",
    "median_unbiased",
    "normal_unbiased",
    "lower",
    "higher",
    "midpoint",
    "nearest",
)

Estimator = Callable[[np.ndarray, np.ndarray, bool], np.ndarray]  # (repeats, m), levels, absolute -> (repeats, levels)


def neuron(x: np.ndarray, levels: np.ndarray, absolute: bool) -> np.ndarray:
    return pm.quantile(x, levels, axis=1, reflect=absolute).T


def numpy_quantile(method: str) -> Estimator:
    return lambda x, levels, _: np.quantile(x, levels, axis=1, method=method).T


def harrell_davis(x: np.ndarray, levels: np.ndarray, _absolute: bool) -> np.ndarray:
    """Harrell-Davis, as `scipy.stats.mstats.hdquantiles` (checked below), for many samples at once."""
    m = x.shape[1]
    weights = np.diff([betainc((m + 1) * p, (m + 1) * (1 - p), np.arange(m + 1) / m) for p in levels], axis=1)
    return np.sort(x, axis=1) @ weights.T


def inverse_kde(x: np.ndarray, levels: np.ndarray, _absolute: bool) -> np.ndarray:
    """Inverse of the distribution function of a Gaussian kernel estimate with Silverman's bandwidth, by bisection."""
    spread = np.minimum(x.std(axis=1, ddof=1), np.subtract(*np.quantile(x, [0.75, 0.25], axis=1)) / 1.349)
    h = 0.9 * spread[:, None] * x.shape[1] ** -0.2
    columns = []
    for p in levels:
        low, high = x.min(axis=1, keepdims=True) - 9 * h, x.max(axis=1, keepdims=True) + 9 * h
        for _ in range(26):
            middle = (low + high) / 2
            below = ndtr((middle - x) / h).mean(axis=1, keepdims=True) < p
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        columns.append((low + high)[:, 0] / 2)
    return np.stack(columns, axis=1)


def fixed_beta(beta: float) -> Estimator:
    return lambda x, levels, absolute: pm.quantile(x, levels, axis=1, beta=beta, reflect=absolute).T


def papers_descent(x: np.ndarray, levels: np.ndarray, absolute: bool) -> np.ndarray:
    """The paper's training with its own numbers: beta = 1000, learning rate .005, in the errors' unit."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    settings = {"beta": 1000.0, "learning_rate": 0.005, "max_iter": 1000}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # stalls are part of what is measured
        fits = [DescendingNeuron(p, reflect=absolute, **settings).fit(x.T) for p in levels]
    return np.stack([fit.quantile_ for fit in fits], axis=1)


@dataclass(frozen=True)
class Cell:
    distribution: str
    held_out: bool
    m: int
    absolute: bool
    level: float
    estimator: str
    repeats: int
    squared: np.ndarray  # squared errors of the estimator and of numpy's default, (2, repeats)

    @property
    def ratio(self) -> float:
        ours, numpys = self.squared.mean(axis=1)
        return float(ours / numpys)

    @property
    def lower(self) -> float:
        """Lower 99 % bound of the ratio, by the delta method on paired repeats."""
        ours, numpys = self.squared
        error = np.std(ours - self.ratio * numpys, ddof=1) / (numpys.mean() * math.sqrt(self.repeats))
        return self.ratio - 2.326 * float(error)


def measure(
    estimators: dict[str, tuple[Estimator, int]],
    lengths: tuple[int, ...],
    distributions: list[tuple[Distribution, bool]],
) -> list[Cell]:
    """All cells; `estimators` come with how many repeats they get."""
    cells = []
    for number, (distribution, held_out) in enumerate(distributions):
        print(f"\r{number + 1} of {len(distributions)} distributions: {distribution.name:<20}", end="", flush=True)
        for m in lengths:
            rng = np.random.default_rng([SEED, number, m])
            x = distribution.sample(rng, (max(repeats for _, repeats in estimators.values()), m))
            for absolute, levels in ((False, SIGNED_LEVELS), (True, ABSOLUTE_LEVELS)):
                sample, truth = np.abs(x) if absolute else x, distribution.quantiles(levels, absolute)
                base = (np.quantile(sample, levels, axis=1).T - truth) ** 2
                for name, (estimator, repeats) in estimators.items():
                    error = (estimator(sample[:repeats], np.array(levels), absolute) - truth) ** 2
                    for k, level in enumerate(levels):
                        squared = np.stack([error[:, k], base[:repeats, k]])
                        cells.append(Cell(distribution.name, held_out, m, absolute, level, name, repeats, squared))
    print()
    return cells


def geometric_mean(cells: list[Cell], others: list[Cell] | None = None) -> tuple[float, float]:
    """Geometric mean of the ratio to numpy's default (or to other cells'), and its Monte Carlo standard error."""

    def logs(part: slice) -> float:
        values = [math.log(c.squared[0, part].mean() / c.squared[1, part].mean()) for c in cells]
        against = [math.log(c.squared[0, part].mean() / c.squared[1, part].mean()) for c in others or []]
        return float(np.mean(values) - (np.mean(against) if against else 0.0))

    size = cells[0].repeats // BATCHES
    batches = [logs(slice(i * size, (i + 1) * size)) for i in range(BATCHES)]
    value = math.exp(logs(slice(None)))
    return value, value * float(np.std(batches, ddof=1)) / math.sqrt(BATCHES)


def crossings(distributions: list[tuple[Distribution, bool]], repeats: int) -> tuple[int, int]:
    """Samples in which quantiles at 99 levels, asked for one by one, ever fall; and samples."""
    levels = np.arange(1, 100) / 100
    crossed = total = 0
    for number, (distribution, _) in enumerate(distributions):
        for m in (3, 10, 50, 200, 3000):
            x = distribution.sample(np.random.default_rng([SEED, 1, number, m]), (repeats, m))
            separate = np.stack([pm.quantile(x, p, axis=1) for p in levels])
            crossed += int((np.diff(separate, axis=0) < 0).any(axis=0).sum())
            total += repeats
    return crossed, total


def summary(cells: list[Cell], large: list[Cell], crossed: tuple[int, int], repeats: int) -> str:
    def of(name: str, **fixed: object) -> list[Cell]:
        return [c for c in cells if c.estimator == name and all(getattr(c, key) == v for key, v in fixed.items())]

    versions = f"numpy {np.__version__}, scipy {scipy.__version__}, pimeter {pm.__version__}"
    command = f"`python benchmarks/quantile_accuracy.py`, seed {SEED}; Python {platform.python_version()}, {versions}."
    what = (
        f"Mean-square error, geometric means over m in {LENGTHS}, signed levels {SIGNED_LEVELS}, absolute levels "
        f"{ABSOLUTE_LEVELS}; {repeats} repeats a cell, +- Monte Carlo standard error. "
        "Distributions as in `distributions.py`."
    )
    lines = ["# Accuracy of the neuron", "", command, "", what, ""]
    lines += [
        "| the neuron against | distributions used in tuning | distributions never used | all |",
        "|---|---|---|---|",
    ]
    groups: list[dict[str, object]] = [{"held_out": False}, {"held_out": True}, {}]
    for label, other in (("numpy's default", None), ("Harrell-Davis", "Harrell-Davis")):
        figures = [geometric_mean(of("pimeter", **g), of(other, **g) if other else None) for g in groups]
        lines.append(f"| {label} | " + " | ".join(f"{v:.4f} +- {e:.4f}" for v, e in figures) + " |")
    lines += ["", "| the neuron against numpy's default | " + " | ".join(f"m = {m}" for m in LENGTHS) + " |"]
    lines += ["|---|" + "---|" * len(LENGTHS)]
    for label, absolute in (("signed", False), ("absolute", True)):
        row = [geometric_mean(of("pimeter", m=m, absolute=absolute))[0] for m in LENGTHS if of("pimeter", m=m)]
        lines.append(f"| {label} | " + " | ".join(f"{v:.3f}" for v in row) + " |")

    lines += ["", f"Worst cells against numpy's default, m >= 20, {repeats} paired repeats:", ""]
    lines += [
        "| | ratio | lower 99 % bound | distribution | m | level | bounds above 1.05, 1.10 |",
        "|---|---|---|---|---|---|---|",
    ]
    for label, absolute in (("signed", False), ("absolute", True)):
        candidates = [c for c in of("pimeter", absolute=absolute) if c.m >= 20]
        above = [sum(c.lower > limit for c in candidates) for limit in (1.05, 1.10)]
        for worst in sorted(candidates, key=lambda c: -c.lower)[:3]:
            lines.append(
                f"| {label} | {worst.ratio:.3f} | {worst.lower:.3f} | {worst.distribution} | {worst.m} | "
                f"{worst.level} | "
                f"{above[0]} / {above[1]} of {len(candidates)} |"
            )

    lines += ["", "Every estimator against numpy's default (all distributions; `repeats` says how many):", ""]
    lines += ["| estimator | repeats | signed | absolute | worst cell, m >= 20 |", "|---|---|---|---|---|"]
    names = list(dict.fromkeys(c.estimator for c in cells))
    for name in sorted(names, key=lambda n: geometric_mean(of(n))[0]):
        signed, absolute = (geometric_mean(of(name, absolute=a))[0] for a in (False, True))
        worst_ratio = max(c.ratio for c in of(name) if c.m >= 20)
        lines.append(f"| {name} | {of(name)[0].repeats} | {signed:.3f} | {absolute:.3f} | {worst_ratio:.2f} |")

    lines += ["", "Samples above the size where the rule stops to look at the whole sample (signed and absolute):", ""]
    lines += ["| m | geometric mean | worst cell | its lower 99 % bound |", "|---|---|---|---|"]
    for m in sorted({c.m for c in large}):
        part = [c for c in large if c.m == m]
        worst = max(part, key=lambda c: c.ratio)
        cell = f"{worst.ratio:.3f} ({worst.distribution}, {worst.level})"
        lines.append(f"| {m} | {geometric_mean(part)[0]:.3f} | {cell} | {worst.lower:.3f} |")
    lines += ["", f"Crossing quantiles at 99 levels asked for one by one: {crossed[0]} of {crossed[1]} samples.", ""]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few repeats, two distributions, nothing saved")
    parser.add_argument("--sets", action="store_true", help="only sum up the saved cells by sets of distributions")
    arguments = parser.parse_args()
    quick = arguments.quick
    if arguments.sets:
        by_sets()
        return
    check = np.random.default_rng(0).standard_normal((1, 30))
    from scipy.stats.mstats import hdquantiles

    np.testing.assert_allclose(harrell_davis(check, np.array([0.3, 0.9]), False)[0], hdquantiles(check[0], [0.3, 0.9]))

    many, some, few, descents = (40, 20, 20, 10) if quick else (6000, 1000, 100, 30)
    distributions = [(distribution, False) for distribution in TUNING] + [
        (distribution, True) for distribution in HELD_OUT
    ]
    distributions = [distributions[0], distributions[-1]] if quick else distributions
    estimators: dict[str, tuple[Estimator, int]] = {
        "pimeter": (neuron, many),
        "Harrell-Davis": (harrell_davis, many),
        **{f"numpy {method}": (numpy_quantile(method), some) for method in NUMPY_METHODS},
        "beta = 10": (fixed_beta(10.0), some),
        "beta = 1000": (fixed_beta(1000.0), some),
        "inverse KDE": (inverse_kde, few),
        "the paper's descent": (papers_descent, descents),
    }
    lengths = (10, 20) if quick else LENGTHS
    cells = measure(estimators, lengths, distributions)
    large = measure({"pimeter": (neuron, some)}, (2500,) if quick else (2000, 2001, 5000, 20_000), distributions)
    text = summary(cells, large, crossings(distributions, 5 if quick else 100), many)
    print(text)
    if quick:
        return
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["law", "held_out", "m", "absolute", "level", "estimator", "repeats", "ratio", "lower"])
    for c in cells + large:
        if c.estimator in {"pimeter", "Harrell-Davis"}:
            start = [c.distribution, c.held_out, c.m, c.absolute, c.level, c.estimator, c.repeats]
            writer.writerow([*start, f"{c.ratio:.4f}", f"{c.lower:.4f}"])
    save(__file__, {".md": text, ".csv": file.getvalue()})
    by_sets()


def by_sets() -> None:
    """From the saved cells: how the neuron does on the distributions of each round of tuning."""
    with CELLS.open() as file:
        rows = [row for row in csv.DictReader(file) if int(row["m"]) <= max(LENGTHS)]
    rivals = {
        tuple(row[k] for k in ("law", "m", "absolute", "level")): float(row["ratio"])
        for row in rows
        if row["estimator"] != "pimeter"
    }
    lines = [
        "# The same by sets of distributions",
        "",
        "From `quantile_accuracy.csv`, by `python benchmarks/quantile_accuracy.py --sets`.",
        "",
    ]
    lines += ["Worst cells: m >= 20, ratio to numpy's default and its lower 99 % bound.", ""]
    columns = ("against numpy's default", "against Harrell-Davis", "worst cell, signed", "worst cell, absolute")
    lines += [f"| distributions | {' | '.join(columns)} |"]
    lines += ["|---|---|---|---|---|"]
    sets = {
        "ten, fixed beforehand and tuned on from the start": TUNING[:10],
        "twelve, held out in the first round, tuned on in the second": TUNING[10:],
        "twelve, never tuned on": HELD_OUT,
    }
    for label, distributions in sets.items():
        ours = [
            row
            for row in rows
            if row["estimator"] == "pimeter" and row["law"] in {distribution.name for distribution in distributions}
        ]
        ratios = np.array([float(row["ratio"]) for row in ours])
        against = np.array([rivals[tuple(row[k] for k in ("law", "m", "absolute", "level"))] for row in ours])
        means = [math.exp(np.log(values).mean()) for values in (ratios, ratios / against)]
        worst = []
        for absolute in ("False", "True"):
            candidates = [row for row in ours if row["absolute"] == absolute and int(row["m"]) >= 20]
            row = max(candidates, key=lambda row: float(row["lower"]))
            worst.append(f"{row['ratio']}, {row['lower']} ({row['law']}, m = {row['m']}, {row['level']})")
        lines.append(f"| {label} | {means[0]:.3f} | {means[1]:.3f} | {worst[0]} | {worst[1]} |")
    text = "\n".join([*lines, ""])
    print(text)
    save(__file__, text, name="quantile_accuracy_sets", data=[CELLS])


if __name__ == "__main__":
    main()
