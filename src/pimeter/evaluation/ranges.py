"""Ranges of what depends on single residuals: the coverage, the width and the interval score of a margin, a median."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betaincinv, digamma, polygamma

from pimeter.clusters import MIN_EXPECTED_MISSES
from pimeter.coverage import RANGE, effective_ranks

if TYPE_CHECKING:
    from pimeter.clusters import Units
    from pimeter.evaluation.diagnosis.crossfit import CrossFit
    from pimeter.protocols import Array, Index

CONFIDENCE = 0.9  # of all ranges of a single model, that of the headline
MIN_EXPECTED_FOR_EXCESS = 4.0  # misses, below which a margin may be at the edge of all residuals, with none beyond it
TAIL_ROWS = 5  # that tell how residuals fall off beyond a margin, at least
PRIOR_ROWS = 4.0  # with an exponential tail, that are added to those
WIDER = 1.05  # than an exponential tail asks for, as tails differ from it
TIED = 1e-8  # residuals that differ by less, relative to their spread, are equal but for rounding
LARGEST_LOG = 600.0
NORMAL_90 = 1.6448536269514722  # standard errors to either side for 90 %


@dataclass(frozen=True)
class MarginRanges:
    """Bounds of what margins do, at each level, (levels, 2); NaN where so few rows cannot tell."""

    coverage: Array
    margin: Array
    interval_score: Array

    @classmethod
    def of(cls, fit: CrossFit, units: Units) -> MarginRanges:
        """From cross-fitted rows in units that are independent of each other."""
        m, levels = len(fit.absolute), fit.levels
        effect = np.ones(len(levels))
        coverage = fit.coverage_ranges
        if units.kind != "rows":
            effect = np.maximum(_beyond(fit.absolute, fit.margin, units)[0], units.least_effect(m, levels))
            coverage = _rarer(coverage, fit, effect)
        of_bounds = margin_ranks(m, levels, effect)
        is_sure, bounds = of_bounds.confidence >= CONFIDENCE, fit.order_statistics(of_bounds.ranks.ravel())
        if units.kind == "groups":  # by their number, not by how calm they seem
            is_sure = margin_ranks(m, levels, m / units.n_equal).confidence >= CONFIDENCE
        margin = np.where(is_sure[:, None], bounds.reshape(-1, 2), math.nan)
        score = _interval_scores(fit, units)
        # Of groups by their number alone: what their rows seem to say is most wrong where it is most optimistic.
        n_expected = (units.n_equal or m / effect) * (1.0 - levels) * (1.0 + 1e-9)
        is_few = n_expected < MIN_EXPECTED_MISSES
        score[:, 0] = np.where(n_expected < MIN_EXPECTED_FOR_EXCESS, 2.0 * fit.margin, score[:, 0])
        score[is_few] = math.nan
        margin[is_few & (units.kind == "groups")] = math.nan
        if units.refusal:
            score[:] = math.nan
            if units.kind != "rows":
                coverage, margin = np.full((2, len(levels), 2), math.nan)
        return cls(coverage, margin, score)


@dataclass(frozen=True)
class MarginRanks:
    """Bounds of margins, as ranks among absolute residuals."""

    ranks: Index  # (levels, 2) of the lower and the upper bound
    confidence: Array  # (levels,) how often the true margin lies between them


def margin_ranks(m: int, levels: Array, effect: Array | float = 1.0) -> MarginRanks:
    """Ranks of the bounds of margins, and how confident these are; rows vary more by a design effect."""
    cells = zip(levels, np.broadcast_to(effect, levels.shape), strict=True)
    found = [effective_ranks(m, float(p), float(one), CONFIDENCE) for p, one in cells]
    ranks = np.array([(one.low, one.high) for one in found], np.intp)
    return MarginRanks(ranks, np.array([one.level for one in found]))


def median_range(ordered: Array, residuals: Array, units: Units) -> tuple[float, float]:
    """Bounds of the median of residuals, from ranks."""
    if units.refusal and units.kind != "rows":
        return math.nan, math.nan
    middle = ordered[(len(ordered) - 1) // 2]
    effect = 1.0
    if units.kind != "rows":
        effect = float(units.widened_effect((residuals > middle).astype(np.float64), CONFIDENCE))
    ranks = effective_ranks(len(ordered), 0.5, effect, CONFIDENCE)
    if ranks.level < CONFIDENCE:
        return math.nan, math.nan
    return float(ordered[ranks.low - 1]), float(ordered[ranks.high - 1])


def _rarer(coverage: Array, fit: CrossFit, effect: Array) -> Array:
    """Ranges of the coverage of independent rows as of so many fewer."""
    m = len(fit.absolute)
    rank = np.searchsorted(fit.ordered, fit.margin, "right")
    upper_rank = np.minimum(rank + fit.is_tied, m)
    lower = betaincinv(rank / effect, (m + 1 - rank) / effect, RANGE[0])
    upper = betaincinv(upper_rank / effect, (m + 1 - upper_rank) / effect, RANGE[1])
    return np.stack([np.minimum(lower, coverage[:, 0]), np.where(coverage[:, 1] >= 1.0, 1.0, upper)], axis=1)


def _beyond(absolute: Array, thresholds: Array, units: Units) -> tuple[Array, Array]:
    """Design effects of counts and of excesses beyond rising thresholds, (thresholds,), larger for few units."""
    n = units.n * (2 if units.kind == "time" else 1)
    place = np.searchsorted(thresholds, absolute)  # so many thresholds are below
    shape, near = (n, len(thresholds) + 1), float(thresholds[0])
    unit = float(absolute.max() - near) or 1.0
    x = np.maximum(absolute - near, 0.0) / unit
    cells = (np.arange(len(x)) if units.codes is None else units.codes) * shape[1] + place
    count, first, second = (
        np.cumsum(np.bincount(cells, own, n * shape[1]).reshape(shape)[:, :0:-1], axis=1, dtype=np.float64)[:, ::-1].T
        for own in (np.ones(len(x)), x, x * x)
    )
    rows = units.sums(np.ones(len(x)))
    u = ((thresholds - near) / unit)[:, None]
    excess = first - count * u
    mean = excess.sum(axis=1) / len(x)
    squares = (second - 2.0 * u * first + count * u**2).sum(axis=1) - len(x) * mean**2
    beyond = count - count.sum(axis=1, keepdims=True) / len(x) * rows, excess - mean[:, None] * rows
    effects = (
        units.effect_of_counts(count, rows),
        np.maximum(units.variance(beyond[1]) / np.maximum(squares, 1e-300), 1),
    )
    wider = [units.stretch(own, CONFIDENCE) ** 2 for own in beyond]
    return wider[0] * effects[0], wider[1] * effects[1]


def _interval_scores(fit: CrossFit, units: Units) -> Array:
    """Bounds of the expected interval score of the margins on fresh rows, (levels, 2).

    It is twice the margin plus ``2 / (1 - p)`` times the probability that a residual lies beyond it, times the mean
    excess there. The former is known from ranks, whatever the distribution; the latter from the residuals beyond the
    margin, if they fall off exponentially, or as much more heavily as seen. Where few are beyond, from those beyond a
    lower threshold, by an exponential tail; for the lower bound by a uniform one, where that is less. Both vary on the
    scale of logarithms as Gamma variables do. `MarginRanges.of` leaves the penalty out of lower bounds where so few
    misses are expected that residuals may gather at an edge just beyond the margin.
    """
    ordered, m = fit.ordered, len(fit.ordered)
    first_of_tail = ordered[-min(TAIL_ROWS, m)]
    rounding = TIED * (first_of_tail - ordered[0])
    lowest = np.searchsorted(ordered, first_of_tail - rounding)
    u = np.minimum(fit.margin, ordered[max(lowest - 1, 0)])
    n = (m - np.searchsorted(ordered, u + rounding, "right")).astype(np.float64)
    near, unit = float(u[0]), float(ordered[-1] - u[0]) or 1.0
    x = np.maximum(ordered - near, 0.0) / unit
    start = (m - n).astype(np.intp)
    first, second = (np.append(np.cumsum(own[::-1])[::-1], 0.0)[start] for own in (x, x * x))
    at = (u - near) / unit
    is_known = n > 0.0
    n = np.maximum(n, 1.0)
    mean = np.where(is_known, np.maximum(first / n - at, 0.0), 0.0)
    is_known &= mean > 0.0
    mean = np.where(is_known, mean, 1.0)
    variance = np.maximum(second / n - 2.0 * at * first / n + at**2 - mean**2, 0.0) * n / np.maximum(n - 1.0, 1.0)
    heavier = np.maximum((PRIOR_ROWS + n * variance / mean**2) / (PRIOR_ROWS + n), 1.0)
    effect = np.ones(len(u)) if units.kind == "rows" else _beyond(fit.absolute, u, units)[1]
    rows = np.maximum(n / effect, 1.0)
    # From u to the margin the tail falls by as much per unit; if residuals there are tied, by as much per step.
    next_up, farther = ordered[np.minimum(start, m - 1)], (fit.margin - u) / unit
    is_tied = np.searchsorted(ordered, next_up + rounding, "right") - start > 1
    step = np.where(is_tied, (next_up - u) / unit, 1.0)

    def log_excess(mean: Array) -> Array:
        """Logarithm of the mean excess over the margin, zeros among it, from that over u."""
        by_step = farther / step * np.log(np.maximum(1.0 - step / mean, 0.5 / (n + 1.0)))
        return np.asarray(np.log(mean) + np.where(is_tied, by_step, -farther / mean))

    wide, middle = WIDER * NORMAL_90, log_excess(mean)
    # A bounded tail, such as a uniform one, has less beyond the margin.
    bounded = np.log(mean) + 2.0 * np.log(np.maximum(1.0 - farther / (2.0 * mean), 0.5 / (n + 1.0)))
    spread = np.sqrt(heavier * polygamma(1, rows))
    penalties = []
    for sign in (-1.0, 1.0):
        bias = np.log(rows) - digamma(rows), digamma(rows + 1.0) - np.log(rows + 1.0)
        log_factor = bias[0] + sign * wide * spread * (heavier**0.25 if sign > 0.0 else 1.0)
        of_mean = log_excess(mean * np.exp(np.clip(log_factor, -LARGEST_LOG, LARGEST_LOG))) - middle
        of_number = bias[1] + sign * wide * np.sqrt(polygamma(1, rows + 1.0))
        nearest = middle if sign > 0.0 else np.minimum(middle, bounded)
        penalties.append(nearest + sign * np.hypot(of_mean, of_number) + np.log((n + 1.0) / m))
    log_penalties = np.minimum(np.stack(penalties, axis=1), LARGEST_LOG)
    excess = np.where(is_known[:, None], np.exp(log_penalties), 0.0) * unit
    return np.asarray(2.0 * fit.margin[:, None] + 2.0 / (1.0 - fit.levels)[:, None] * excess)
