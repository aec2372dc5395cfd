"""What classification experiments have in common: splits, features as networks want them, networks on each split."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from experiments.data import Array, Split
from experiments.networks import ClassifierTraining, train_classifiers

LEVEL = 0.95


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
