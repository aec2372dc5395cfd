"""What a CRPS is made of: miscalibration, discrimination and uncertainty, by isotonic quantile regression.

The CRPS is a mean of pinball losses over levels, and each of these is decomposed by quantiles that are calibrated in
hindsight: the best ones that rise with those given (Gneiting, Wolffram, Resin, Kraus, Bracher, Dimitriadis,
Hagenmeyer, Jordan, Lerch, Phipps and Schienle, 2023). Of the decompositions that Arnold, Walz, Ziegel and Gneiting
(2024) compare it is the one by quantile scores; theirs by isotonic distributional regression in the stochastic order
takes a flow through all pairs of rows for each threshold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pimeter.arrays import some_rows
from pimeter.scores import level_weights

if TYPE_CHECKING:
    from pimeter.predictive import Predictive
    from pimeter.protocols import Array

MAX_ROWS_FOR_ISOTONIC = 2000  # rows that are looked at
MIN_ROWS_FOR_ISOTONIC = 50  # below which isotonic regression finds patterns in noise
N_DRAWS = 19  # of targets from the distributions: the largest miscalibration of these is exceeded in 1 of 20 cases
GRID = np.arange(1, 20) / 20  # levels at which normal distributions and samples are looked at


@dataclass(frozen=True)
class Decomposition:
    """``CRPS = miscalibration - discrimination + uncertainty``.

    Attributes
    ----------
    miscalibration : float
        By how much the score falls if the quantiles are replaced by calibrated ones in the same order.
    by_chance : float
        Miscalibration that calibrated distributions exceed on as many rows in one case of twenty.
    discrimination : float
        By how much these calibrated quantiles are better than the same distribution for all rows.
    uncertainty : float
        The score of that distribution: how much targets vary.
    rows : int
        How many rows were looked at.
    """

    miscalibration: float
    by_chance: float
    discrimination: float
    uncertainty: float
    rows: int

    @property
    def crps(self) -> float:
        """The score of the rows and levels that were looked at."""
        return self.miscalibration - self.discrimination + self.uncertainty


def decomposition(target: Array, predictions: Predictive) -> Decomposition | None:
    """Decompose the CRPS of whole distributions with finite quantiles; None for others, and for few rows."""
    if len(target) < MIN_ROWS_FOR_ISOTONIC or not np.isfinite(predictions.values).all():
        return None
    rows = some_rows(len(target), MAX_ROWS_FOR_ISOTONIC)
    y, some = target[rows], predictions.rows(rows)
    has_all = predictions.kind == "normal" or (predictions.kind == "samples" and len(predictions.levels) >= len(GRID))
    levels = GRID if has_all else predictions.levels
    quantiles = np.stack([some.at(float(level)) for level in levels])
    rng = np.random.default_rng(0)
    drawn = [some.from_z(rng.standard_normal(len(y))) for _ in range(N_DRAWS)]
    excess = [_excess(one, quantiles, levels) for one in (y, *drawn)]
    climatology = np.quantile(y, levels, method="inverted_cdf")
    uncertainty, given = (_score(y, own, levels) for own in (climatology[:, None], quantiles))
    return Decomposition(excess[0], max(excess[1:]), uncertainty - given + excess[0], uncertainty, len(y))


def _score(y: Array, quantiles: Array, levels: Array) -> float:
    """The CRPS of quantiles (levels, rows)."""
    beyond = y - quantiles
    losses = np.maximum(levels[:, None] * beyond, (levels[:, None] - 1.0) * beyond).mean(axis=1)
    return float(2.0 * level_weights(levels) @ losses)


def _excess(y: Array, quantiles: Array, levels: Array) -> float:
    """By how much quantiles (levels, rows) score worse than the best ones that keep the order of their values."""
    return _score(y, quantiles, levels) - _score(y, isotonic_quantiles(y, quantiles, levels), levels)


def isotonic_quantiles(y: Array, by: Array, levels: Array) -> Array:
    """Quantiles of y (rows,) at each level that rise with `by` (levels, rows) and have the least pinball loss.

    The value of each row is found by bisection among the sorted targets, for all rows and levels at once: where
    neighbours in the order have the same candidates, the best cut sends those after it to the upper half of these
    (Stout, 2013).
    """
    k, n = by.shape
    order = np.argsort(by, axis=1, kind="stable")
    values, places = np.unique(y, return_inverse=True)
    place, along = places[order].ravel(), np.take_along_axis(by, order, axis=1)
    is_other = np.ones((k, n), bool)
    is_other[:, 1:] = along[:, 1:] > along[:, :-1]
    is_cut, level, rows = is_other.ravel(), np.repeat(levels, n), np.arange(k * n)  # tied rows have the same quantile
    low, high = np.zeros(k * n, np.intp), np.full(k * n, len(values))
    is_start = rows % n == 0
    while (is_open := high - low > 1).any():
        middle = (low + high) // 2
        # What it costs to be at values[middle] rather than at the value before it, in units of their distance.
        cost = np.where(is_open, (place < middle) - level, 0.0)
        before = np.concatenate([[0.0], np.cumsum(cost)])  # of all rows before each one
        is_start[1:] |= (low[1:] != low[:-1]) | (high[1:] != high[:-1])
        starts = np.flatnonzero(is_start)
        stops = np.append(starts[1:], k * n)
        lengths = stops - starts
        at = np.where(is_cut, before[:-1], -np.inf)  # cut before a row: the higher the costs before it the better
        highest = np.maximum.reduceat(at, starts)
        first = np.minimum.reduceat(np.where(at == np.repeat(highest, lengths), rows, k * n), starts)
        goes_up = rows >= np.repeat(np.where(before[stops] >= highest, stops, first), lengths)
        low, high = np.where(is_open & goes_up, middle, low), np.where(is_open & ~goes_up, middle, high)
    found = np.empty((k, n))
    np.put_along_axis(found, order, values[low].reshape(k, n), axis=1)
    return found
