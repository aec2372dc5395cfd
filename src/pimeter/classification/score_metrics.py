"""Metrics of scores rather than of a threshold, with intervals: ROC AUC, average precision, Brier score, log loss."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import expit, logit, stdtrit

from pimeter.classification.estimates import Estimate
from pimeter.classification.proportions import normal_quantile
from pimeter.coverage import counted

if TYPE_CHECKING:
    from pimeter.protocols import Array, Flags

MIN_ROWS_OF_CLASS = 10  # below which nothing is said
MIN_FREEDOM = 6.0  # that a variance is taken to have; with fewer intervals of good classifiers are too wide
BISECTION_STEPS = 60


def by_scores(names: list[str], is_positive: Flags, score: Array, confidence_level: float) -> dict[str, Estimate]:
    """Estimates of some of `SCORE_METRICS`."""
    n_positive = int(np.count_nonzero(is_positive))
    refuse_few_of_a_class(", ".join(names), n_positive, len(score) - n_positive)
    return {name: SCORE_METRICS[name](is_positive, score, confidence_level) for name in names}


def refuse_few_of_a_class(what: str, n_positive: int, n_negative: int) -> None:
    """Refuse rows of which too few are of one class."""
    if min(n_positive, n_negative) < MIN_ROWS_OF_CLASS:
        msg = (
            f"{what} needs at least {MIN_ROWS_OF_CLASS} rows of each class; got {n_positive:,} of the positive one and "
            f"{n_negative:,} of the other. Label more rows, or ask for metrics at a threshold, such as recall."
        )
        raise ValueError(msg)


def roc_auc(is_positive: Flags, score: Array, confidence_level: float) -> Estimate:
    """Probability that a positive row has a higher score than a negative one, ties half; by DeLong's variance.

    Where no pair is out of order, DeLong's variance is 0: then Newcombe's score interval (2006), by the variance that
    an AUC has with exponential scores.
    """
    place = placements(is_positive, score)
    parts = [_Mean.of(place[is_positive]), _Mean.of(place[~is_positive])]
    value = parts[0].mean
    variance = sum(part.variance for part in parts)
    if not (0.0 < value < 1.0 and variance > 0.0):
        return Estimate(value, *_newcombe(value, parts[0].n, parts[1].n, confidence_level), "newcombe")
    freedom = variance**2 / sum(part.variance**2 / part.freedom for part in parts)
    return Estimate(value, *_on_logit(value, math.sqrt(variance), freedom, confidence_level), "delong")


def placements(is_positive: Flags, score: Array) -> Array:
    """Fraction of the rows of the other class that each row is in the right order with; ties count half."""
    found = np.empty(len(score))
    for own, sign in ((is_positive, 1.0), (~is_positive, -1.0)):
        ordered = np.sort(sign * score[~own])
        low, high = (np.searchsorted(ordered, sign * score[own], side) for side in ("left", "right"))
        found[own] = (low + high) / (2.0 * len(ordered))
    return found


def average_precision(is_positive: Flags, score: Array, confidence_level: float) -> Estimate:
    """Mean of the precision at the scores of positive rows; by the variance of the influence of each row."""
    value, influence = _precision_influence(is_positive, score)
    n = int(np.count_nonzero(is_positive))
    error = math.sqrt(float(influence @ influence) * n / (n - 1))
    if not (value < 1.0 and error > 0.0):  # no negative row above a positive one: as if the next one were
        lower = (1.0 - confidence_level) / 2.0
        return Estimate(value, lower ** (1.0 / n), 1.0, "clopper-pearson", "no negative row is above a positive one")
    freedom = min(n - 1.0, _freedom(influence))
    return Estimate(value, *_on_logit(value, error, freedom, confidence_level), "influence")


def _precision_influence(is_positive: Flags, score: Array) -> tuple[float, Array]:
    """Average precision, and how it changes with the weight of each row (in the order of falling scores)."""
    order = np.argsort(-score, kind="stable")
    y, falling = is_positive[order].astype(np.float64), -score[order]
    above = np.searchsorted(falling, falling, "right").astype(np.intp)  # rows with as high a score, or a higher one
    precision = np.cumsum(y)[above - 1] / above
    n = y.sum()
    value = float(y @ precision / n)
    first = np.searchsorted(falling, falling, "left")

    def not_above(values: Array) -> Array:
        """Sum of values of rows with as high a score as this one, or a lower one."""
        found: Array = np.append(np.cumsum(values[::-1])[::-1], 0.0)[first]
        return found

    gained, lost = not_above(y / above), not_above(y * precision / above)
    return value, (y * (precision - value) + y * gained - lost) / n


def brier(is_positive: Flags, score: Array, confidence_level: float) -> Estimate:
    """Mean squared distance of scores from labels of 0 and 1."""
    return _mean_loss((score - is_positive) ** 2, confidence_level, 1.0)


def log_loss(is_positive: Flags, score: Array, confidence_level: float) -> Estimate:
    """Mean of minus the logarithm of the probability that was given to the true class."""
    with np.errstate(divide="ignore"):
        losses = -np.log(np.where(is_positive, score, 1.0 - score))
    if np.isinf(losses).any():
        n = int(np.count_nonzero(np.isinf(losses)))
        note = f"{counted(n, 'row')} had probability 0 for what happened"
        return Estimate(math.inf, math.nan, math.nan, "student", note)
    return _mean_loss(losses, confidence_level, math.inf)


def _mean_loss(losses: Array, confidence_level: float, most: float) -> Estimate:
    """Student's interval with the degrees of freedom that kurtosis leaves, shifted for skewness (Johnson 1978)."""
    found = _Mean.of(losses)
    if not found.variance:
        return Estimate(found.mean, math.nan, math.nan, "student", "all rows have the same loss")
    z = normal_quantile(confidence_level)
    centred = losses - found.mean
    shift = float((centred**3).mean() / (centred**2).mean()) * (1.0 + 2.0 * z**2) / (6.0 * found.n)
    half = float(stdtrit(found.freedom, (1.0 + confidence_level) / 2.0)) * math.sqrt(found.variance)
    lower, upper = found.mean + min(shift - half, 0.0), found.mean + max(shift + half, 0.0)
    return Estimate(found.mean, max(lower, 0.0), min(upper, most), "student")


class _Mean(NamedTuple):
    """A mean, its variance, and the degrees of freedom of that."""

    mean: float
    variance: float
    freedom: float
    n: int

    @classmethod
    def of(cls, values: Array) -> _Mean:
        mean = float(values.mean())
        return cls(mean, float(values.var(ddof=1)) / len(values), _freedom(values - mean), len(values))


def _freedom(centred: Array) -> float:
    """Degrees of freedom of a variance of so many values with this kurtosis."""
    n, squares = len(centred), centred**2
    middle = float(squares.mean())
    kurtosis = float((squares**2).mean()) / middle**2 if middle else math.inf
    return float(np.clip(2.0 * n / max(kurtosis - 1.0, 1e-9), MIN_FREEDOM, n - 1.0))


def _on_logit(value: float, error: float, freedom: float, confidence_level: float) -> tuple[float, float]:
    """Student's interval on the scale of log-odds."""
    half = float(stdtrit(freedom, (1.0 + confidence_level) / 2.0)) * error / (value * (1.0 - value))
    return float(expit(logit(value) - half)), float(expit(logit(value) + half))


def _newcombe(value: float, n_positive: int, n_negative: int, confidence_level: float) -> tuple[float, float]:
    """All areas that the one found is not too far from."""
    z, n = normal_quantile(confidence_level), (n_positive + n_negative) / 2.0

    def is_far(area: float) -> bool:
        pairs = 1.0 + (n - 1.0) * ((1.0 - area) / (2.0 - area) + area / (1.0 + area))
        return (value - area) ** 2 > z**2 * area * (1.0 - area) * pairs / (n_positive * n_negative)

    bounds = []
    for far in (0.0, 1.0):
        near, away = value, far
        for _ in range(BISECTION_STEPS):
            middle = (near + away) / 2.0
            near, away = (near, middle) if is_far(middle) else (middle, away)
        bounds.append(near)
    return min(bounds[0], value), max(bounds[1], value)


SCORE_METRICS: dict[str, Callable[[Flags, Array, float], Estimate]] = {
    "roc_auc": roc_auc,
    "average_precision": average_precision,
    "brier": brier,
    "log_loss": log_loss,
}
