"""What classification experiments have in common: splits, networks on each, and how results are held to the paper's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from experiments.data import Array, Split
from experiments.networks import ClassifierTraining, train_classifiers
from experiments.protocol import paper_rows

LEVEL = 0.95
HALF_UNIT = 0.005  # of the last digit that Tables 3 and 4 print of a width or an uncertainty


def shuffled(n: int, test: float, held_out: float, rng: np.random.Generator) -> Split:
    """Rows in a new order: fractions of them to test and to stop and calibrate with, the others to train on."""
    order = rng.permutation(n)
    n_test, n_held_out = round(test * n), round(held_out * n)
    return Split(order[n_test + n_held_out :], order[n_test : n_test + n_held_out], order[:n_test])


def scaled(X: Array, split: Split) -> Array:
    """Features with mean 0 and standard deviation 1 on the training rows, whose mean fills what is missing."""
    known = X[split.train]
    mean = np.nanmean(known, axis=0)
    spread = np.nanstd(known, axis=0)
    return np.asarray((np.where(np.isnan(X), mean, X) - mean) / np.where(spread > 0.0, spread, 1.0))


def in_unit_range(X: Array, split: Split) -> Array:
    """Features from 0 to 1 on the training rows, whose mean fills what is missing."""
    known = X[split.train]
    low, high = np.nanmin(known, axis=0), np.nanmax(known, axis=0)
    return np.asarray((np.where(np.isnan(X), np.nanmean(known, axis=0), X) - low) / np.where(high > low, high - low, 1))


def scores(
    X: Array,
    y: Array,
    splits: Sequence[Split],
    how: ClassifierTraining,
    rng: np.random.Generator,
    prepared: Callable[[Array, Split], Array] = scaled,
) -> Array:
    """Probabilities of 1 for all rows by a network for each split, (splits, rows)."""
    features = np.stack([prepared(X, split) for split in splits])
    rows, held_out = (np.stack([split[i] for split in splits]) for i in range(2))
    return train_classifiers(features, np.arange(len(splits)), rows, y[rows], (held_out, y[held_out]), how, rng)


def median(values: Sequence[float]) -> float:
    """Median of those that are known; NaN if none is."""
    known = [value for value in values if not np.isnan(value)]
    return float(np.median(known)) if known else float("nan")


def deviation(values: Sequence[float]) -> float:
    """Median absolute deviation from the median, of those that are known."""
    return median([abs(value - median(values)) for value in values])


def like_printed(ours: float, printed: float, half_unit: float = HALF_UNIT) -> bool:
    """Whether a deviation is at least half and at most twice the printed one, but for rounding."""
    return (printed - half_unit) / 2 <= ours <= 2 * (printed + half_unit)


def reason(tried: Mapping[str, float], published: float, tolerance: float) -> str:
    """Which changes give the published value, or that none was found and what was tried; the nearest first."""
    known = {name: value for name, value in tried.items() if np.isfinite(value)}
    if not known:
        return "none found; nothing was tried"
    order = sorted(known, key=lambda name: abs(known[name] - published))
    met = [name for name in order if abs(known[name] - published) <= tolerance]
    first = ", ".join(f"{name} ({known[name]:.3f})" for name in (met[:2] or order[:4]))
    if met:
        return f"met with {len(met)} of {len(tried)} changes: {first}{', ...' * (len(met) > 2)}"
    more = f" and {len(tried) - 4} farther off" if len(tried) > 4 else ""
    return f"none found; tried: {first}{more}"


def on_tolerances(table: str, key: str) -> str:
    """How near a value has to be, and where the tolerance is so wide that hardly anything would miss."""
    paper = paper_rows(table, key)
    first = next(iter(paper.values()))
    columns = [name.removesuffix("_tolerance") for name in first if name.endswith("_tolerance")]
    chosen = [f"{name} {float(first[f'{name}_tolerance']):g}" for name in columns if f"{name}_deviation" not in first]
    wide = {
        column: [at for at, row in paper.items() if float(row[f"{column}_tolerance"]) >= 0.75 * float(row[column]) > 0]
        for column in columns
    }
    named = [f"{column} ({', '.join(names)})" for column, names in wide.items() if names]
    nil = {column: sum(float(row[column]) == 0 for row in paper.values()) for column in columns}
    return (
        "Tolerances: where a deviation is printed, this and half a unit of the last digit; otherwise set by us, "
        f"rounding included: {', '.join(chosen)}. Hardly to be missed, at three quarters of the value or more: "
        f"{', '.join(named) or 'none'}"
        f"{''.join(f'; {n} values of {column} are printed as 0' for column, n in nil.items() if n)}."
    )
