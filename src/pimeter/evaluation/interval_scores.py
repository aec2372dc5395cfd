"""Scores of given intervals, each with a range, and with what that assumes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pimeter.clusters import INDEPENDENT, Units
from pimeter.evaluation.diagnosis.evidence import exact_range
from pimeter.evaluation.losses import crps_rows, is_distribution, pinball_rows
from pimeter.evaluation.measurement import Score
from pimeter.evaluation.paired import mean_range
from pimeter.evaluation.ranges import CONFIDENCE, NORMAL_90, median_range

if TYPE_CHECKING:
    from pimeter.predictive import Predictive
    from pimeter.protocols import Array, Flags

FINITE_VARIANCE = "; tails that have a variance"
UNSAFE_IF_HEAVY_TAILED = "; excesses as those seen: no range is safe if tails are heavy"
MIN_MISSES = 5.0  # expected, below which nothing is said of the interval score
PRIOR_MISSES = 4.0  # with exponential excesses, that are added to those seen
MISSES_WHERE_NONE_SEEN = -math.log(0.1)  # misses that may be expected where none was seen


def scores(target: Array, predictions: Predictive, bounds: Array, level: float, units: Units) -> dict[str, Score]:
    """Numbers that describe intervals, each with a range."""
    width = bounds[:, 1] - bounds[:, 0]
    below, above = np.maximum(bounds[:, 0] - target, 0.0), np.maximum(target - bounds[:, 1], 0.0)
    found = {}
    for name, is_so, meaning in (
        ("coverage", (below == 0.0) & (above == 0.0), "targets inside their interval"),
        ("misses_below", below > 0.0, "targets below their interval"),
        ("misses_above", above > 0.0, "targets above their interval"),
    ):
        found[name] = _proportion(is_so, units, level, meaning)
    is_finite = bool(np.isfinite(width).all())
    if is_finite:
        found["mean_width"] = _mean_score(width, units, "mean width of the intervals")
    found["median_width"] = _median_score(width, units)
    if is_finite:
        found["interval_score"] = ranged_interval_score(target, bounds[:, 0], bounds[:, 1], level, units)
    if predictions.kind in {"intervals", "quantiles"} and np.isfinite(predictions.values).all():
        found["pinball"] = _pinball(target, predictions, found["interval_score"], level, units)
    if is_distribution(predictions) and np.isfinite(predictions.values).all():
        found["crps"] = _mean_score(
            crps_rows(target, predictions), units, "score of the whole distribution; lower is better"
        )
    return found


def _pinball(target: Array, predictions: Predictive, interval_score: Score, level: float, units: Units) -> Score:
    """Mean pinball loss of the quantiles given; of the bounds of one interval it is a part of the interval score."""
    meaning = "mean pinball loss of the quantiles given; lower is better"
    if len(predictions.levels) == 2:
        part = (1.0 - level) / 4.0
        values = {key: part * getattr(interval_score, key) for key in ("value", "lower", "upper")}
        return replace(interval_score, **values, meaning=meaning)
    weights = np.full(len(predictions.levels), 1.0 / len(predictions.levels))
    return _mean_score(pinball_rows(target, predictions.values, predictions.levels, weights), units, meaning)


def _proportion(is_so: Flags, units: Units, level: float, meaning: str) -> Score:
    """A proportion with an exact range, of fewer rows where these depend on each other."""
    value = float(is_so.mean())
    if units.kind != "rows" and units.refusal:
        return Score(value, math.nan, math.nan, meaning, f"no range: {units.refusal}")
    bounds = exact_range(int(is_so.sum()), len(is_so), CONFIDENCE, design_effect(is_so, units, level))
    return Score(value, *bounds, meaning, INDEPENDENT[units.kind])


def design_effect(is_so: Flags, units: Units, level: float) -> float:
    """How many times fewer independent rows say as much, also of how they vary; as one where that cannot be told."""
    if units.kind == "rows":
        return 1.0
    if units.refusal:
        return float(len(is_so))
    least = float(units.least_effect(len(is_so), level))
    return max(float(units.widened_effect(is_so.astype(np.float64))), least)


def _median_score(width: Array, units: Units) -> Score:
    """The median width, with a range by ranks."""
    lower, upper = median_range(np.sort(width), width, units)
    middle = float(np.median(width))
    assumes = f"no range: {units.refusal or 'too few rows'}" if math.isnan(lower) else INDEPENDENT[units.kind]
    return Score(middle, lower, upper, "median width of the intervals", assumes)


def ranged_interval_score(target: Array, lower: Array, upper: Array, level: float, units: Units) -> Score:
    """Winkler's score: the range of a mean, extended to one that models the excesses on either side."""
    width, beyond = upper - lower, (lower - target, target - upper)
    below, above = (np.maximum(one, 0.0) for one in beyond)
    n, factor = len(width), 2.0 / (1.0 - level)
    found = _mean_score(
        width + factor * (below + above), units, "width plus a penalty for misses (Winkler); lower is better"
    )
    if math.isnan(found.lower):
        return found
    n_independent = units.n_equal or n / design_effect((below + above) > 0.0, units, level)
    if n_independent * (1.0 - level) < MIN_MISSES * (1.0 - 1e-9):
        why = f"no range: fewer than {MIN_MISSES:g} misses are expected"
        return replace(found, lower=math.nan, upper=math.nan, assumes=why)
    if units.kind != "rows":
        return found
    farthest = float(max(below.max(), above.max(), *map(_fall, beyond)))
    sides = [_excess(own[own > 0.0], n, farthest) for own in (below, above)]
    downward = math.hypot(*(max(side[0] - side[1], 0.0) for side in sides))
    upward = math.hypot(*(max(side[2] - side[0], 0.0) for side in sides))
    least = max(min(found.lower, found.value - factor * downward), 0.0)
    most = max(found.upper, found.value + factor * upward)
    return replace(found, lower=least, upper=most, assumes=INDEPENDENT["rows"] + UNSAFE_IF_HEAVY_TAILED)


def _fall(beyond: Array) -> float:
    """How fast targets become rare on a side: the mean distance of the tenth farthest out from the least of them.

    A miss of which none was seen would be about that far beyond its bound.
    """
    tail = np.sort(beyond)[-max(len(beyond) // 10, 2) :]
    return float((tail - tail[0]).mean())


def _excess(excess: Array, n: int, farthest: float) -> tuple[float, float, float]:
    """Mean excess over n rows on one side, and its bounds: a count times a mean, both Gamma on the log scale."""
    from scipy.special import digamma, polygamma

    k = len(excess)
    if k == 0:
        return 0.0, 0.0, MISSES_WHERE_NONE_SEEN / n * farthest
    mean, variance = float(excess.mean()), float(excess.var(ddof=1)) if k > 1 else 0.0
    heavier = max((PRIOR_MISSES + k * variance / mean**2) / (PRIOR_MISSES + k), 1.0)
    middle = math.log((k + 1) / n * mean) + float(digamma(k + 1)) - math.log(k + 1) + math.log(k) - float(digamma(k))
    away = NORMAL_90 * math.sqrt(float(polygamma(1, k + 1.0)) + heavier * float(polygamma(1, float(k))))
    return k * mean / n, math.exp(middle - away), math.exp(middle + away)


def _mean_score(values: Array, units: Units, meaning: str) -> Score:
    """A mean with its range."""
    if units.kind == "rows" and not units.refusal:
        found = mean_range(values, CONFIDENCE)
        return Score(found.value, found.lower, found.upper, meaning, INDEPENDENT["rows"] + FINITE_VARIANCE)
    mean = float(values.mean())
    if units.refusal:
        return Score(mean, math.nan, math.nan, meaning, f"no range: {units.refusal}")
    margin = NORMAL_90 * units.factor() * math.sqrt(float(units.variance(units.sums(values - mean)))) / len(values)
    return Score(mean, mean - margin, mean + margin, meaning, INDEPENDENT[units.kind] + FINITE_VARIANCE)
