"""What a number of errors can promise: ranks and the exact levels that belong to them."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from numbers import Real
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

Guarantee = bool | Literal["set"]

ROUNDING = 1e-9  # (m + 1) p is a whole number if it is this near to one: in floats 100 * .55 is a little more than 55
CONFIDENCE = 0.95  # of guarantee="set"
MOST = 10**12  # rows that `rows_needed` answers with
LONG = 1e10  # variance of a binomial number from which on its probabilities are not listed one by one
ALTERNATING, BLOCK = 10_000, 200  # numbers of rows that it looks at one by one, and together
RANGE = (0.05, 0.95)  # the points of the Beta law that a coverage range spans
STRAYS = 0.15  # standard errors by which a neuron's place follows t, see `neuron_level` ...
AHEAD, BEHIND = 0.2, 0.45  # ... and ranks that it goes ahead, and stays behind for a single error beyond it


class CoverageWarning(UserWarning):
    """Intervals that cover less than was asked for, or of which less is known."""


def rank(m: float, p: float) -> int:
    """Rank of the error that covers a share p of new rows, ``ceil((m + 1) p)``; beyond m if m are too few.

    Examples
    --------
    >>> from pimeter.promise import rank
    >>> rank(99, 0.55), rank(19, 0.95), rank(12, 0.95)
    (55, 19, 13)
    """
    return math.ceil((m + 1.0) * p - ROUNDING)


def rank_below(m: float, p: float) -> int:
    """Rank of the error just below the place ``(m + 1) p``, at least 1."""
    return max(1, math.floor((m + 1.0) * p + ROUNDING))


def neuron_level(m: float, p: float) -> float:
    """Level at which a neuron, kept between the errors of ranks `rank_below` and `rank`, covers p on average.

    The place ``(m + 1) p`` divides the way between the two errors in t and 1 - t. A neuron sees farther than that way,
    so what it does with t is decided by where it is put: its place is moved by the normal quantile of t, in units of a
    part of its standard error. A part of a long way covers more than the same part of short ones, and the way is
    longest where hardly an error lies beyond: there it stays a little behind, elsewhere it goes a little ahead.

    The three constants were chosen by trial on 13 laws, p from .8 to .99 and m from 20 to 217. On seeds not looked at
    before, p = .95 and m = 30, 50, 100, the mean width is .991 of that of plain interpolation at the same place over
    normal, Laplace, t3, uniform and exponential errors, and .997 over normal, t2, uniform and tied errors and
    exponential ones around their median; none of the 30 cells covers less than p - 3 standard errors
    (`benchmarks/regression_peers.py`).
    """
    place = (m + 1.0) * p
    t = place - rank_below(m, p)
    if t > ROUNDING:
        beyond = m + 1.0 - place
        place += STRAYS * math.sqrt(place * (1.0 - p)) * NormalDist().inv_cdf(t) + AHEAD - BEHIND / beyond
    return min(max(place, 0.0) / m, 1.0)


def rescaled_weights(weights: Array) -> Array:
    """Importance weights as counts: they carry ratios only, so they sum to the effective number of rows.

    That number is ``(sum w)^2 / sum w^2``. In these units a typical new row weighs 1.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter.promise import rescaled_weights
    >>> rescaled_weights(np.array([3.0, 3.0, 3.0]))
    array([1., 1., 1.])
    >>> print(rescaled_weights(np.array([2.0, 1.0, 1.0])).sum().round(2))
    2.67
    """
    scaled = weights / weights.max()
    counts: Array = scaled * (scaled.sum() / (scaled @ scaled))
    return counts


@dataclass(frozen=True)
class Promise:
    """What the errors of one neuron can promise about new rows that are exchangeable with them.

    Attributes
    ----------
    m : float
        Number of errors; of weighted ones the effective number.
    rank : int
        Rank of the error that is the radius, at most m.
    level : float
        Coverage that is promised on average over calibration sets and new rows (with ``guarantee="set"`` for this set,
        with 95 % confidence); NaN where nothing is.
    needed : int
        Number of errors from which on the confidence level itself can be promised.
    coverage_range : tuple of float
        5 % and 95 % points of the coverage of the set at hand; with ties they are lower bounds. With
        ``guarantee=False`` the 5 % point of the rank below the neuron and the 95 % point of that above.
    """

    m: float
    rank: int
    level: float
    needed: int
    coverage_range: tuple[float, float]

    @property
    def is_kept(self) -> bool:
        """Whether there are enough errors for the level asked for."""
        return self.m >= self.needed


@lru_cache(maxsize=4096)
def promise(
    m: float, p: float, *, guarantee: Guarantee = True, n_cuts: int = 1, confidence: float = CONFIDENCE
) -> Promise:
    """What m errors promise at confidence level p.

    Parameters
    ----------
    m : float
        Number of errors, of weighted ones the effective number; 0 promises nothing.
    p : float
        Confidence level, between 0 and 1.
    guarantee : bool or "set", default=True
        True: the least rank whose mean coverage is p. "set": the least rank that covers p with the given confidence
        over calibration sets. False: a neuron between the ranks next to ``(m + 1) p``, of which the lower one's
        coverage is promised.
    n_cuts : {1, 2}, default=1
        Whether the errors beyond the rank are cut off at one end of the sample or, with (1 - p)/2 each, at both.
    confidence : float, default=0.95
        Of ``guarantee="set"``.

    Examples
    --------
    >>> from pimeter.promise import promise
    >>> enough = promise(100, 0.95)
    >>> enough.rank, enough.level, [round(end, 3) for end in enough.coverage_range]
    (96, 0.95, [0.911, 0.98])
    >>> few = promise(12, 0.95)
    >>> few.rank, round(few.level, 3), few.needed
    (12, 0.923, 19)
    """
    needed = _needed(p, guarantee == "set", n_cuts, confidence)
    if m <= 0:
        return Promise(0.0, 0, math.nan, needed, (math.nan, math.nan))

    def coverage(place: float) -> float:
        """Mean coverage within the error at this place, or within the two at this place from either end."""
        return (n_cuts * place - (n_cuts - 1) * (m + 1.0)) / (m + 1.0)

    level = (p + n_cuts - 1.0) / n_cuts
    if guarantee == "set":
        first, below = _shares(int(m), p)
        inside = first + int(np.searchsorted(below, confidence))  # fewer than this many lie within, with confidence
        place = float(inside if n_cuts == 1 else math.ceil((m + 1.0 + inside) / 2.0))
        least, promised = place, p if m >= needed else math.nan
    elif guarantee:
        least = place = rank(m, level)
        promised = p if m >= needed else min(p, coverage(m))
    else:
        least, place = rank_below(m, level), rank(m, level)
        promised = coverage(min(least, m))
    low, high = (_point(coverage(min(k, m)), m, point) for k, point in zip((least, place), RANGE, strict=True))
    return Promise(m, min(math.ceil(place - ROUNDING), math.floor(m)), promised, needed, (low, high))


def _point(mean: float, m: float, point: float) -> float:
    """Point of the Beta law with this mean that m errors give the coverage."""
    from scipy.special import betaincinv

    inside = mean * (m + 1.0)
    return float(betaincinv(inside, m + 1.0 - inside, point)) if inside > 0.0 else 0.0


@lru_cache(maxsize=256)
def _needed(p: float, for_set: bool, n_cuts: int, confidence: float) -> int:
    """Fewest errors that can promise p."""
    if not for_set:
        level = (p + n_cuts - 1.0) / n_cuts
        enough = max(1, math.ceil(level / (1.0 - level) - ROUNDING))
        return enough - (enough > 1 and rank(enough - 1, level) < enough)  # near 1 the odds are rounded by more

    # All m errors, or all but the two at the ends, have to exceed p with confidence: 1 - confidence >= the share of
    # calibration sets where not even the outermost errors are beyond the quantile.
    def is_enough(m: int) -> bool:
        return p**m + (n_cuts - 1) * m * p ** (m - 1) * (1.0 - p) <= (1.0 - confidence) * (1.0 + ROUNDING)

    few = max(n_cuts, math.floor(math.log(1.0 - confidence) / math.log(p)))
    if is_enough(few):
        return few
    enough = 2 * few
    while not is_enough(enough):
        few, enough = enough, 2 * enough
    return few + bisect_left(range(few, enough), True, key=is_enough)


def rows_needed(confidence_level: float, within: float) -> int:
    """Number of held-out rows until the coverage of the set at hand is near the confidence level.

    A radius that is one of m errors covers p on average over calibration sets; of the set at hand the coverage follows
    a Beta law. From the returned number of rows on, its 5 % and 95 % points are at most `within` away from p. The
    errors are to be exchangeable with those of new rows and, for the upper point, without ties.

    Parameters
    ----------
    confidence_level : float
        Share of new rows that intervals shall cover, between 0 and 1.
    within : float
        Largest distance between coverage and confidence level, between 0 and 1.

    Returns
    -------
    int
        Number of calibration rows; ``guarantee=True``, symmetric tails.

    Examples
    --------
    >>> from pimeter import rows_needed
    >>> rows_needed(0.95, within=0.02), rows_needed(0.95, within=0.01)
    (360, 1380)
    """
    from scipy.special import betaincinv

    p, within = checked_share("confidence_level", confidence_level), checked_share("within", within)

    def is_off(m: Any, k: Any) -> Any:
        """Whether the coverage of the error of rank k of m may be farther away."""
        low, high = (betaincinv(k, m + 1.0 - k, point) for point in RANGE)
        return (p - low > within) | (high - p > within)

    def may_be_off(m: float) -> bool:
        """Whether it may with a rank that is rounded up by nothing, or by almost 1."""
        ranks = np.array([(m + 1.0) * p, (m + 1.0) * p + 1.0])
        return bool(is_off(m, np.minimum(ranks, m)).any())

    few = enough = BLOCK  # fewer are looked at one by one: with one or two rows all ranks are the largest
    while may_be_off(enough):
        few, enough = enough, 2 * enough
        if enough > MOST:
            msg = f"within={within!r} takes more than {MOST:.0e} rows at confidence_level={p!r}; give a larger one."
            raise ValueError(msg)
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (middle, enough) if may_be_off(middle) else (few, middle)
    # Ranks are whole numbers, so enough and too few rows alternate for a while below that; where the while is long, the
    # last few numbers of too few rows are not told from enough.
    for end in range(enough, max(0, enough - ALTERNATING), -BLOCK):
        m = np.arange(max(1, end - BLOCK), end)
        off = np.flatnonzero(is_off(m, np.minimum(np.ceil((m + 1.0) * p - ROUNDING), m)))
        if off.size:
            return int(m[off[-1]] + 1)
    return enough if enough > ALTERNATING else 1


def checked_share(name: str, value: float) -> float:
    """A number between 0 and 1, or a ValueError that names it."""
    if isinstance(value, bool) or not (isinstance(value, Real) and 0.0 < value < 1.0):
        msg = f"{name} must lie between 0 and 1; got {value!r}. For per cent divide by 100."
        raise ValueError(msg)
    return float(value)


def percent(share: float, digits: int = 4) -> str:
    """A share in per cent, with more digits where these would make 100 of a share below 1.

    Examples
    --------
    >>> from pimeter.promise import percent
    >>> percent(0.95), percent(0.99996), percent(1.0)
    ('95 %', '99.996 %', '100 %')
    """
    return f"{rounded(100.0 * share, digits, whole=100.0)} %"


def rounded(value: float, digits: int = 4, *, whole: float = 1.0) -> str:
    """A number with so many digits, or with more where these would make a whole of what is less.

    Examples
    --------
    >>> from pimeter.promise import rounded
    >>> rounded(0.95), rounded(0.99996), rounded(1.0), rounded(1.00004)
    ('0.95', '0.99996', '1', '1')
    """
    while value < whole <= float(f"{value:.{digits}g}"):
        digits += 1
    return f"{value:.{digits}g}"


def cross_validated_level(level: float, n: float, n_cuts: int = 1) -> float:
    """What is proven of CV+ with ranks for a level, n rows in folds of equal size: ``2 level - 1 - sqrt(2/n)``.

    Each end that is cut off has its own proof, so that two cuts subtract the root twice. For learners that hardly
    change if a fold is left out, coverage is about the level itself.
    """
    return max(0.0, 2.0 * level - 1.0 - n_cuts * math.sqrt(2.0 / n))


def shortage(promise: Promise, p: float, of: str = "") -> str:
    """Sentence for a warning where there are too few errors: what they can promise, and how many are needed."""
    can = "nothing" if math.isnan(promise.level) else percent(promise.level, 3)
    return f"{promise.m:.6g} errors{of} can promise {can}, not {percent(p, 6)}; {promise.needed} are needed"


@lru_cache(maxsize=256)
def quantile_ranks(m: int, p: float, level: float = 0.95) -> tuple[int, int, float]:
    """Ranks of two errors that have the quantile at level p between them, whatever the law of the errors.

    The number of m independent errors below their quantile is binomial, so the quantile lies between the errors of
    ranks ``low`` and ``high`` with the probability that this number is one of ``low, ..., high - 1``.

    Parameters
    ----------
    m : int
        Number of errors, at least 1.
    p : float
        Level of the quantile, between 0 and 1.
    level : float, default=0.95
        Least probability that the two errors shall have the quantile between them.

    Returns
    -------
    low, high : int
        Ranks from 1 to m: the pair nearest to each other that reaches the level; of several such the likeliest. Of more
        than some 1e10 errors the pair with equal tails, which is nearly as near.
        Where no pair reaches it, the smallest and the largest error.
    exact_level : float
        The probability that the pair has. For a law with jumps it is a lower bound.

    Examples
    --------
    >>> from pimeter.promise import quantile_ranks
    >>> low, high, exact_level = quantile_ranks(100, 0.5)
    >>> low, high, round(exact_level, 4)
    (40, 60, 0.954)

    Twenty errors are too few to have their 95 % quantile inside with confidence:

    >>> low, high, exact_level = quantile_ranks(20, 0.95)
    >>> low, high, round(exact_level, 4)
    (1, 20, 0.6415)
    """
    if m * p * (1.0 - p) > LONG:
        from scipy.stats import binom

        least, most = (float(binom.ppf(tail, m, p)) for tail in ((1.0 - level) / 2.0, (1.0 + level) / 2.0))
        return int(least), int(most) + 1, float(binom.cdf(most, m, p) - binom.cdf(least - 1.0, m, p))
    first, below = _shares(m, p)  # below[i]: probability of fewer than first + i errors under the quantile
    low = np.arange(max(first, 1), min(first + below.size, m + 1))
    start = below[low - first]
    end = np.searchsorted(below, start + level)  # below[high - first] is the first to reach the level
    reached = (end < below.size) & (first + end <= m)
    if not reached.any():
        return 1, m, max(0.0, 1.0 - p**m - (1.0 - p) ** m)
    low, end = low[reached], end[reached]
    probability = below[end] - start[reached]
    distance = first + end - low
    best = np.lexsort([-probability, distance])[0]
    return int(low[best]), int(first + end[best]), float(probability[best])


def _shares(m: int, p: float) -> tuple[int, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """Smallest count that matters, and the probabilities of fewer than it, than it plus 1, ... up to all.

    Binomial, from the ratios of neighbouring terms: no factorial, so nothing is lost to cancellation at m = 1e7.
    """
    reach = 9.0 * math.sqrt(m * p * (1.0 - p)) + 40.0  # what is farther away is less likely than 1e-15
    first, last = max(0, math.floor(m * p - reach)), min(m, math.ceil(m * p + reach))
    count = np.arange(first, last)
    steps = np.log1p(((m - count) * p - (count + 1) * (1.0 - p)) / ((count + 1) * (1.0 - p)))
    logarithm = np.concatenate([[0.0], np.cumsum(steps)])
    terms = np.exp(logarithm - logarithm.max())
    below = np.concatenate([[0.0], np.cumsum(terms)])
    return first, below / below[-1]
