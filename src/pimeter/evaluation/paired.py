"""Paired differences between models on the same rows: how large they are, and whether chance explains them.

Every score is a smooth function of means over rows, so a difference of two scores has an influence of each row, and its
standard error is that of their mean. Rows in the order of time get the long-run variance in its place, as in the test
of Diebold and Mariano. The quantile is Student's, with as many degrees of freedom as the tails of the influences leave:
few rows decide about interval scores, and a variance that rests on few rows is itself uncertain. Skewness extends a
range on its side.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import fft
from scipy.special import bdtr, ndtr, ndtri, stdtr, stdtrit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

NORMAL = 1.959963984540054  # standard errors to either side for 95 %
CONFIDENCE = 0.95  # of ranges, for all pairs of models together
POWER = 0.8  # with which so many rows as are needed would tell two models apart
N_MAXIMA = 4000  # of the largest of several normal numbers
MIN_DF = 2.0
PSEUDO_ROWS = 2  # of a pair of proportions, one for each model (Bonett and Price)
N_COSINES, GROWTH = 0.3, 0.6  # N_COSINES * n**GROWTH cosines tell the long-run variance of n rows


class Pairs(NamedTuple):
    """Differences of a score between the first and the second model of each pair."""

    value: Array  # (pairs,)
    lower: Array  # for all pairs together
    upper: Array
    p_value: Array  # adjusted for the number of pairs
    n_needed: Array  # rows that would tell the two apart, were the difference as it seems; infinite for none

    @property
    def is_told(self) -> NDArray[np.bool_]:
        """Whether chance does not explain the difference."""
        return ((self.lower > 0.0) | (self.upper < 0.0)) & (self.p_value <= 1.0 - CONFIDENCE)


def all_pairs(n_models: int) -> NDArray[np.intp]:
    """First and second model of each pair, (pairs, 2)."""
    return np.array(list(combinations(range(n_models), 2)))


def of_means(losses: Array, *, is_ordered: bool) -> Pairs:
    """Differences of the mean losses of models, from one column for each."""
    first, second = all_pairs(losses.shape[1]).T
    return _pairs(losses[:, first] - losses[:, second], is_ordered=is_ordered)


def of_roots(squares: Array, *, is_ordered: bool) -> Pairs:
    """Differences of the roots of mean squared losses, from one column of squares for each model."""
    root = np.sqrt(squares.mean(axis=0))
    twice = np.where(root > 0.0, 2.0 * root, 1.0)
    return of_means(squares / twice + root / 2.0, is_ordered=is_ordered)


def of_proportions(is_right: NDArray[np.bool_], *, is_ordered: bool) -> Pairs:
    """Differences of proportions: ranges with a pseudo-row in favour of each model, and McNemar's exact test."""
    first, second = all_pairs(is_right.shape[1]).T
    difference = is_right[:, first].astype(np.float64) - is_right[:, second]
    found = _pairs(difference, is_ordered=is_ordered, pseudo_rows=PSEUDO_ROWS)
    if is_ordered:
        return found
    n_more, n_less = np.count_nonzero(difference > 0.0, axis=0), np.count_nonzero(difference < 0.0, axis=0)
    exact = np.minimum(1.0, 2.0 * bdtr(np.minimum(n_more, n_less), n_more + n_less, 0.5))
    return found._replace(p_value=_adjusted(exact, _maxima(difference)))


def of_auc(scores: Array, is_positive: NDArray[np.bool_], *, is_ordered: bool) -> tuple[Array, Pairs]:
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
    return areas, of_means(influence, is_ordered=is_ordered)


def mean_range(difference: Array, confidence: float, *, is_ordered: bool = False) -> tuple[float, float, float]:
    """Mean difference of some rows, which may be in the order of time, and its range."""
    value = float(difference.mean())
    found = _mean_spread(difference[:, None] - value)
    if is_ordered:
        found = _in_time(found, difference[:, None] - value)
    margin = float(stdtrit(found.df[0], (1.0 + confidence) / 2.0) * math.sqrt(found.variance[0]))
    shift = float(found.shift[0])
    return value, value + min(shift, 0.0) - margin, value + max(shift, 0.0) + margin


def chance_of_gain(gain: Array) -> float:
    """How often chance alone gives rows so large a mean gain."""
    value = float(gain.mean())
    found = _mean_spread(gain[:, None] - value)
    if found.variance[0] == 0.0:
        return 0.0 if value > 0.0 else 1.0
    return float(stdtr(found.df[0], -(value + min(float(found.shift[0]), 0.0)) / math.sqrt(found.variance[0])))


class Spread(NamedTuple):
    """How far means may be from what they estimate."""

    variance: Array  # (columns,)
    df: Array  # degrees of freedom of it: twice the rows over the kurtosis less 1
    shift: Array  # by which skewness moves the range (Johnson), which is extended by it on its side


def _mean_spread(centred: Array) -> Spread:
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
    return Spread(unit**2 * squares / max(n - 1, 1), df, unit * third * (1.0 + 2.0 * NORMAL**2) / (6.0 * n))


def _in_time(spread: Spread, centred: Array) -> Spread:
    """With the long-run variance of rows in the order of time."""
    n_cosines = min(len(centred) - 1, max(4, int(N_COSINES * len(centred) ** GROWTH)))
    ratio = _long_run_ratio(centred, n_cosines)
    return Spread(spread.variance * ratio, np.minimum(spread.df, n_cosines), spread.shift)


def _long_run_ratio(centred: Array, n_cosines: int) -> Array:
    """Long-run variance over variance of each column, from equally weighted cosines (Lazarus and others, 2018)."""
    waves = fft.dct(centred, norm="ortho", axis=0)[1 : n_cosines + 1]
    squares = (centred**2).mean(axis=0)
    ratio: Array = np.divide((waves**2).mean(axis=0), squares, out=np.ones_like(squares), where=squares > 0.0)
    return ratio


def _pairs(difference: Array, *, is_ordered: bool, pseudo_rows: int = 0) -> Pairs:
    """From the difference that each row makes, (rows, pairs)."""
    n = len(difference)
    value = difference.mean(axis=0)
    centre, (variance, df, shift) = value, _mean_spread(difference - value)
    if pseudo_rows:
        centre = value * n / (n + pseudo_rows)
        discordant = (np.abs(difference).sum(axis=0) + pseudo_rows) / (n + pseudo_rows)
        variance, df, shift = (discordant - centre**2) / (n + pseudo_rows), np.full_like(df, n), np.zeros_like(df)
    if is_ordered:
        variance, df, shift = _in_time(Spread(variance, df, shift), difference - value)
    error = np.sqrt(variance)
    maxima = _maxima(difference)
    margin = stdtrit(df, ndtr(np.quantile(maxima, CONFIDENCE))) * error
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(centre == 0.0, 0.0, np.abs(centre) / error)
        wanted = np.quantile(maxima, CONFIDENCE) + ndtri(POWER)
        n_needed = np.where(value == 0.0, np.inf, n * (wanted * error / np.abs(value)) ** 2)
    p_value = _adjusted(2.0 * stdtr(df, -t), maxima)
    lower, upper = centre + np.minimum(shift, 0.0) - margin, centre + np.maximum(shift, 0.0) + margin
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


def shown_rows(n: float) -> str:
    """A number of rows in two digits."""
    if not math.isfinite(n):
        return "no number of"
    digits = max(0, math.floor(math.log10(max(n, 1.0))) - 1)
    return f"{math.ceil(n / 10**digits) * 10**digits:,}"
