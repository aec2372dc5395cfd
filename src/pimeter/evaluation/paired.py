"""Paired differences between models on the same rows: how large they are, and whether chance explains them.

Every score is a smooth function of means over rows, so a difference of two scores has an influence of each row, and its
standard error is that of their mean. Rows in time get the long-run variance of moments in its place, as in the test
of Diebold and Mariano. The quantile is Student's, with as many degrees of freedom as the tails of the influences leave:
few rows decide about interval scores, and a variance that rests on few rows is itself uncertain. Skewness extends a
range on its side. Dependence in time divides the rows by as much as it multiplies the variance, also for both of these.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import fft
from scipy.special import bdtr, betaincinv, ndtr, ndtri, stdtr, stdtrit

from pimeter.moments import Range

if TYPE_CHECKING:
    from pimeter.protocols import Array, Flags, Index

NORMAL_95 = 1.959963984540054  # standard errors to either side for 95 %
CONFIDENCE_OF_PAIRS = 0.95  # of ranges, for all pairs of models together
POWER = 0.8  # with which so many rows as are needed would tell two models apart
N_MAXIMA = 4000  # of the largest of several normal numbers
MIN_DF = 2.0
JEFFREYS = 0.5  # pseudo-counts of either kind of rows, where a proportion is estimated
N_COSINES, GROWTH = 0.25, 0.6  # N_COSINES * n**GROWTH cosines tell the long-run variance of n rows


class Pairs(NamedTuple):
    """Differences of a score between the first and the second model of each pair."""

    value: Array  # (pairs,)
    lower: Array  # for all pairs together
    upper: Array
    p_value: Array  # adjusted for the number of pairs
    n_needed: Array  # rows that would tell the two apart, were the difference as it seems; infinite for none

    @property
    def is_told(self) -> Flags:
        """Whether chance does not explain the difference."""
        return ((self.lower > 0.0) | (self.upper < 0.0)) & (self.p_value <= 1.0 - CONFIDENCE_OF_PAIRS)


def all_pairs(n_models: int) -> Index:
    """First and second model of each pair, (pairs, 2)."""
    return np.array(list(combinations(range(n_models), 2)))


def of_means(losses: Array, *, moments: Index | None = None) -> Pairs:
    """Differences of the mean losses of models, from one column for each."""
    first, second = all_pairs(losses.shape[1]).T
    return _pairs(losses[:, first] - losses[:, second], moments=moments)


def of_roots(squares: Array, *, moments: Index | None = None) -> Pairs:
    """Differences of the roots of mean squared losses, from one column of squares for each model."""
    root = np.sqrt(squares.mean(axis=0))
    twice = np.where(root > 0.0, 2.0 * root, 1.0)
    return of_means(squares / twice + root / 2.0, moments=moments)


def of_proportions(is_right: Flags, *, moments: Index | None = None) -> Pairs:
    """Differences of proportions: ranges by the rows in which one model alone is right, and McNemar's exact test."""
    first, second = all_pairs(is_right.shape[1]).T
    difference = is_right[:, first].astype(np.float64) - is_right[:, second]
    found, maxima = _pairs(difference, moments=moments), _maxima(difference)
    critical, effect = float(np.quantile(maxima, CONFIDENCE_OF_PAIRS)), np.ones(difference.shape[1])
    if moments is not None:
        centred = difference - found.value
        n_cosines = _n_cosines(moments)
        effect = _long_run_ratio(centred, moments, n_cosines) * (stdtrit(n_cosines, ndtr(critical)) / critical) ** 2
    n_more, n_less = (np.count_nonzero(sign * difference > 0.0, axis=0) / effect for sign in (1.0, -1.0))
    lower, upper = _difference_range(n_more, n_less, len(difference) / effect, float(ndtr(-critical)))
    n_more, n_less = np.round(n_more), np.round(n_less)
    exact = np.minimum(1.0, 2.0 * bdtr(np.minimum(n_more, n_less), (n_more + n_less).astype(np.intp), 0.5))
    return found._replace(lower=lower, upper=upper, p_value=_adjusted(exact, maxima))


def _difference_range(n_more: Array, n_less: Array, n: Array, tail: float) -> tuple[Array, Array]:
    """Range of the difference of two proportions of the same rows, from their Jeffreys ranges (MOVER)."""
    more, less = n_more / n, n_less / n
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = -np.sqrt(np.nan_to_num(more * less / ((1.0 - more) * (1.0 - less))))
    lowers, uppers = [], []
    for k in (n_more, n_less):
        a, b = k + JEFFREYS, n - k + JEFFREYS
        lowers.append(np.where(k > 0.0, betaincinv(a, b, tail), 0.0))
        uppers.append(np.where(k < n, betaincinv(a, b, 1.0 - tail), 1.0))

    def away(of_more: Array, of_less: Array) -> Array:
        return np.sqrt(np.maximum(of_more**2 + of_less**2 - 2.0 * correlation * of_more * of_less, 0.0))

    value = more - less
    lower = value - away(more - lowers[0], uppers[1] - less)
    upper = value + away(uppers[0] - more, less - lowers[1])
    return np.maximum(lower, -1.0), np.minimum(upper, 1.0)


class Compared(NamedTuple):
    """A score of each model, and its differences between all pairs of them."""

    values: Array
    pairs: Pairs


def of_auc(scores: Array, is_positive: Flags, *, moments: Index | None = None) -> Compared:
    """Areas under the ROC curve of each column of scores, and their differences by DeLong's variance."""
    n, n_positive = len(scores), int(np.count_nonzero(is_positive))
    influence, areas = np.empty_like(scores), np.empty(scores.shape[1])
    for i, score in enumerate(scores.T):
        for own, other, sign in ((is_positive, ~is_positive, 1.0), (~is_positive, is_positive, -1.0)):
            ordered = np.sort(score[other])
            below = (np.searchsorted(ordered, score[own]) + np.searchsorted(ordered, score[own], "right")) / 2.0
            place = below / len(ordered) if sign > 0.0 else 1.0 - below / len(ordered)
            areas[i] = place.mean()
            influence[own, i] = areas[i] + (place - areas[i]) * n / (n_positive if sign > 0.0 else n - n_positive)
    return Compared(areas, of_means(influence, moments=moments))


def mean_range(difference: Array, confidence: float, *, moments: Index | None = None) -> Range:
    """Mean difference of some rows and its range; rows in time are in the order of their moments, by their numbers."""
    value = float(difference.mean())
    found = _mean_spread(difference[:, None] - value)
    if moments is not None:
        found = _in_time(found, difference[:, None] - value, moments)
    margin = float(stdtrit(found.df[0], (1.0 + confidence) / 2.0) * math.sqrt(found.variance[0]))
    shift = float(found.shift[0])
    return Range(value, value + min(shift, 0.0) - margin, value + max(shift, 0.0) + margin)


def chance_of_gain(gain: Array) -> float:
    """How often chance alone gives rows so large a mean gain."""
    value = float(gain.mean())
    found = _mean_spread(gain[:, None] - value)
    if found.variance[0] == 0.0:
        return 0.0 if value > 0.0 else 1.0
    return float(stdtr(found.df[0], -(value + min(float(found.shift[0]), 0.0)) / math.sqrt(found.variance[0])))


class MeanUncertainty(NamedTuple):
    """How far means may be from what they estimate."""

    variance: Array  # (columns,)
    df: Array  # degrees of freedom of it: twice the rows over the kurtosis less 1
    shift: Array  # by which skewness moves the range (Johnson), which is extended by it on its side


def _mean_spread(centred: Array) -> MeanUncertainty:
    """Standard error of the mean of each column."""
    n = len(centred)
    unit = np.maximum(np.abs(centred).max(axis=0), np.finfo(np.float64).tiny)  # fourth powers of small numbers vanish
    centred = centred / unit
    square = centred * centred
    squares, fourths = square.mean(axis=0), np.einsum("ij,ij->j", square, square) / n
    thirds = np.einsum("ij,ij->j", square, centred) / n
    known = squares > 0.0
    kurtosis = np.divide(fourths, squares**2, out=np.full_like(squares, np.inf), where=known)
    df = np.clip(2.0 * n / np.maximum(kurtosis - 1.0, 1e-9), MIN_DF, max(n - 1.0, MIN_DF))
    third = np.divide(thirds, squares, out=np.zeros_like(squares), where=known)
    return MeanUncertainty(unit**2 * squares / max(n - 1, 1), df, unit * third * (1.0 + 2.0 * NORMAL_95**2) / (6.0 * n))


def _n_cosines(moments: Index) -> int:
    """How many cosines tell the long-run variance of rows at these moments, which are in rising order."""
    n = int(moments[-1]) + 1
    return max(min(n - 1, max(4, int(N_COSINES * n**GROWTH))), 1)


def _in_time(spread: MeanUncertainty, centred: Array, moments: Index) -> MeanUncertainty:
    """The spread of means of rows in the order of time, by their long-run variance: as of fewer independent rows."""
    n_cosines = _n_cosines(moments)
    ratio = _long_run_ratio(centred, moments, n_cosines)
    fewer = np.maximum(ratio, 1.0)
    df = np.minimum(np.maximum(spread.df / fewer, MIN_DF), n_cosines)
    return MeanUncertainty(spread.variance * ratio, df, spread.shift * fewer)


def _long_run_ratio(centred: Array, moments: Index, n_cosines: int) -> Array:
    """Long-run variance over variance of each column, from equally weighted cosines (Lazarus and others, 2018).

    Of the sums of rows of one moment, which may have all in common; at most the number of rows, as for one moment.
    """
    m, n = len(centred), int(moments[-1]) + 1
    if n < 2:
        return np.full(centred.shape[1], float(m))
    series = np.stack([np.bincount(moments, own) for own in centred.T], axis=1) / math.sqrt(m / n)
    waves = fft.dct(series, norm="ortho", axis=0)[1 : n_cosines + 1]
    squares = (centred**2).mean(axis=0)
    ratio: Array = np.divide((waves**2).mean(axis=0), squares, out=np.ones_like(squares), where=squares > 0.0)
    return ratio


def _pairs(difference: Array, *, moments: Index | None = None) -> Pairs:
    """Mean differences with ranges and p-values, from the difference that each row makes, (rows, pairs)."""
    n = len(difference)
    value = difference.mean(axis=0)
    spread = _mean_spread(difference - value)
    if moments is not None:
        spread = _in_time(spread, difference - value, moments)
    error, maxima = np.sqrt(spread.variance), _maxima(difference)
    critical = np.quantile(maxima, CONFIDENCE_OF_PAIRS)
    margin = stdtrit(spread.df, ndtr(critical)) * error
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(value == 0.0, 0.0, np.abs(value) / error)
        n_needed = np.where(value == 0.0, np.inf, n * ((critical + ndtri(POWER)) * error / np.abs(value)) ** 2)
    p_value = _adjusted(2.0 * stdtr(spread.df, -t), maxima)
    lower = value + np.minimum(spread.shift, 0.0) - margin
    upper = value + np.maximum(spread.shift, 0.0) + margin
    return Pairs(value, lower, upper, p_value, n_needed)


def _maxima(difference: Array) -> Array:
    """The largest of as many normal numbers as there are pairs, correlated as these are: draws."""
    n_pairs = difference.shape[1]
    if n_pairs == 1:
        return np.asarray(np.abs(ndtri((np.arange(N_MAXIMA) + 0.5) / N_MAXIMA)))
    deviation = difference.std(axis=0)
    centred = (difference - difference.mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0)
    values, vectors = np.linalg.eigh(centred.T @ centred / len(difference))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    draws = np.random.default_rng(0).standard_normal((N_MAXIMA, n_pairs))
    return np.asarray(np.abs(draws @ root.T).max(axis=1))


def _adjusted(p_value: Array, maxima: Array) -> Array:
    """How often the largest of all pairs is as improbable as each of these."""
    if np.size(p_value) == 1:
        return p_value
    ordered = np.sort(maxima)
    beyond = len(ordered) - np.searchsorted(ordered, -ndtri(np.minimum(p_value, 1.0) / 2.0))
    return np.asarray(np.maximum((beyond + 1.0) / (len(ordered) + 1.0), p_value))
