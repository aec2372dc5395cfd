"""Coverage in numbers and words: how many rows it takes, where a quantile lies among ranks, per cents, warnings."""

from __future__ import annotations

import math
import sys
import warnings
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pimeter.validation import one_level

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pimeter.protocols import Array, Flags, Index

ROUNDING = 1e-9  # (m + 1) p is an integer if it is this near to one: in floats 100 * .55 is a little more than 55
MAX_NEEDED = 10**12  # rows that `rows_needed` answers with
MAX_VARIANCE_TO_LIST = 1e10  # variance of a binomial number from which on its probabilities are not listed one by one
# Numbers of rows that `rows_needed` looks at below its bound, and how many at a time.
MAX_ROWS_CHECKED, ROWS_PER_CHECK = 10_000, 200
MIN_WITH_EXPONENT = 1e6  # numbers below it are written without an exponent
RANGE_CONFIDENCE = 0.95  # of the range of a quantile
RANGE = (0.05, 0.95)  # the points of the Beta distribution that a coverage range spans


class CoverageWarning(UserWarning):
    """Intervals that cover less than was asked for, or of which less is known."""


def warn_of_coverage(message: str) -> None:
    """Warn, at the line outside of the library that led here."""
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).startswith("pimeter."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, CoverageWarning, stacklevel=level)


def rows_needed(confidence_level: float, within: float) -> int:
    """Number of held-out rows until the coverage of the set at hand is near the confidence level.

    A margin that is one of m scores covers p on average over calibration sets; of the set at hand the coverage follows
    a Beta distribution. From the returned number of rows on, its 5 % and 95 % points are at most `within` away from p.
    The scores are to be exchangeable with those of new rows and, for the upper point, without ties.

    Parameters
    ----------
    confidence_level : float
        Proportion of new rows that intervals should cover, between 0 and 1.
    within : float
        Largest distance between coverage and confidence level, between 0 and 1.

    Returns
    -------
    int
        Number of calibration rows; ``guarantee="marginal"``, symmetric tails.

    Examples
    --------
    >>> from pimeter import rows_needed
    >>> rows_needed(0.95, within=0.02), rows_needed(0.95, within=0.01)
    (360, 1380)
    """
    from scipy.special import betaincinv

    p, within = one_level("confidence_level", confidence_level), one_level("within", within)

    def is_off(m: float | Index, k: Array | Index) -> Flags:
        """Whether the coverage of the score of rank k of m may be farther away."""
        low, high = (betaincinv(k, m + 1.0 - k, point) for point in RANGE)
        return np.asarray((p - low > within) | (high - p > within))

    def may_be_off(m: float) -> bool:
        """Whether it may with a rank that is rounded up by nothing, or by almost 1."""
        ranks = np.array([(m + 1.0) * p, (m + 1.0) * p + 1.0])
        return bool(is_off(m, np.minimum(ranks, m)).any())

    few = enough = ROWS_PER_CHECK  # fewer are looked at one by one: with one or two rows all ranks are the largest
    while may_be_off(enough):
        few, enough = enough, 2 * enough
        if enough > MAX_NEEDED:
            msg = (
                f"within={within!r} takes more than {MAX_NEEDED:.0e} rows at confidence_level={p!r}; give a larger one."
            )
            raise ValueError(msg)
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (middle, enough) if may_be_off(middle) else (few, middle)
    # Ranks are integers, so enough and too few rows alternate for a while below that; where the while is long, the
    # last few numbers of too few rows are not told from enough.
    for end in range(enough, max(0, enough - MAX_ROWS_CHECKED), -ROWS_PER_CHECK):
        m = np.arange(max(1, end - ROWS_PER_CHECK), end)
        off = np.flatnonzero(is_off(m, np.minimum(np.ceil((m + 1.0) * p - ROUNDING), m)))
        if off.size:
            return int(m[off[-1]] + 1)
    return enough if enough > MAX_ROWS_CHECKED else 1


def percent(proportion: float, digits: int = 4) -> str:
    """A proportion in per cent, with more digits where these would make 100 of a proportion below 1."""
    return f"{rounded(100.0 * proportion, digits, whole=100.0)} %"


def percent_range(low: float, high: float) -> tuple[str, str]:
    """Two fractions in per cent, with as many decimals as it takes to tell them apart, and from 0 and 100.

    Examples
    --------
    >>> from pimeter.coverage import percent_range
    >>> percent_range(0.9349, 0.9642), percent_range(0.9493, 0.9507)
    (('93', '96'), ('94.9', '95.1'))
    """
    decimals = max(0, math.ceil(-math.log10(max(100.0 * (high - low), 1e-6))))
    low_text, high_text = (
        text if fraction in {0.0, 1.0} or 0.0 < float(text) < 100.0 else rounded(100.0 * fraction, 2, whole=100.0)
        for fraction, text in ((fraction, f"{100.0 * fraction:.{decimals}f}") for fraction in (low, high))
    )
    return low_text, high_text


def counted(n: float, noun: str, digits: int = 6) -> str:
    """A number and what is counted, in the singular or the plural.

    Examples
    --------
    >>> from pimeter.coverage import counted
    >>> counted(1, "row"), counted(2000, "row"), counted(1.25, "independent error", 3)
    ('1 row', '2,000 rows', '1.25 independent errors')
    """
    text = f"{n:,}" if isinstance(n, int) else f"{n:.{digits}g}"
    return f"{text} {noun}" if text == "1" else f"{text} {noun}s"


def rounded(value: float, digits: int = 4, *, whole: float = 1.0) -> str:
    """A number with so many digits, or with more where these would make a whole of what is less.

    Examples
    --------
    >>> from pimeter.coverage import rounded
    >>> rounded(98765.4, 3), rounded(0.99996), rounded(12345678.9)
    ('98800', '0.99996', '1.235e+07')
    """
    while value < whole <= float(f"{value:.{digits}g}"):
        digits += 1
    text = f"{value:.{digits}g}"
    return f"{float(text):.0f}" if "e+" in text and abs(float(text)) < MIN_WITH_EXPONENT else text


def rounded_up(n: float) -> str:
    """A number of rows in two digits, not less than it is.

    Examples
    --------
    >>> from pimeter.coverage import rounded_up
    >>> rounded_up(7.2), rounded_up(1234.0)
    ('8', '1,300')
    """
    if not math.isfinite(n):
        return "no number of"
    unit = 10 ** max(0, math.floor(math.log10(max(n, 1.0))) - 1)
    return f"{math.ceil(n / unit) * unit:,}"


def tail_levels(levels: Array) -> Array:
    """Levels of the quantiles that bound central intervals: lower ones, then upper ones.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter.coverage import tail_levels
    >>> tail_levels(np.array([0.5, 0.9])).round(3)
    array([0.25, 0.05, 0.75, 0.95])
    """
    return np.concatenate([(1.0 - levels) / 2.0, (1.0 + levels) / 2.0])


def proportion_bounds(inside: ArrayLike, rows: ArrayLike, tail: float) -> tuple[Array, Array]:
    """Clopper and Pearson's bounds of proportions, each missed with a probability of `tail`; (0, 1) without rows.

    Rows may be effective ones, which are not integers: SciPy's binomtest refuses them, and statsmodels, whose
    proportion_confint takes them, is not a dependency.

    Examples
    --------
    >>> from pimeter.coverage import proportion_bounds
    >>> [bound.round(3) for bound in proportion_bounds([0, 9], [10, 10], 0.025)]
    [array([0.   , 0.555]), array([0.308, 0.997])]
    """
    from scipy.special import betaincinv

    k, rest = np.asarray(inside, np.float64), np.subtract(rows, inside)
    lower = np.where(k > 0.0, betaincinv(np.maximum(k, ROUNDING), rest + 1.0, tail), 0.0)
    upper = np.where(rest > 0.0, betaincinv(k + 1.0, np.maximum(rest, ROUNDING), 1.0 - tail), 1.0)
    return lower, upper


class QuantileRanks(NamedTuple):
    """Ranks of two errors that have a quantile between them, and the probability that they do."""

    low: int
    high: int
    level: float


@lru_cache(maxsize=256)
def quantile_ranks(m: int, p: float, level: float = RANGE_CONFIDENCE) -> QuantileRanks:
    """Ranks of two of m errors that have the quantile at level p between them, and the probability that they do.

    Whatever the distribution, the number of independent errors below their quantile is binomial, so the quantile lies
    between the errors of ranks ``low`` and ``high`` with the probability that this number is one of ``low, ..., high -
    1``; with jumps that is a lower bound. The pair is the nearest to each other that has the `level`, of several such
    the likeliest; of more than some 1e10 errors that with equal tails, which is nearly as near. Where no pair has it,
    it is the smallest and the largest error.
    """
    if m * p * (1.0 - p) > MAX_VARIANCE_TO_LIST:
        from scipy.stats import binom

        least, most = (float(binom.ppf(tail, m, p)) for tail in ((1.0 - level) / 2.0, (1.0 + level) / 2.0))
        return QuantileRanks(int(least), int(most) + 1, float(binom.cdf(most, m, p) - binom.cdf(least - 1.0, m, p)))
    found = binomial_cdf(m, p)  # of the number of errors under the quantile
    first, below = found.first, found.below
    low = np.arange(max(first, 1), min(first + below.size, m + 1))
    start = below[low - first]
    end = np.searchsorted(below, start + level)  # below[high - first] is the first to have the level
    reached = (end < below.size) & (first + end <= m)
    if not reached.any():
        return QuantileRanks(1, m, max(0.0, 1.0 - p**m - (1.0 - p) ** m))
    low, end = low[reached], end[reached]
    probability = below[end] - start[reached]
    distance = first + end - low
    best = np.lexsort([-probability, distance])[0]
    return QuantileRanks(int(low[best]), int(first + end[best]), float(probability[best]))


def effective_ranks(m: int, p: float, effect: float, level: float) -> QuantileRanks:
    """`quantile_ranks` of m errors that vary as much as m over a design effect independent ones.

    The smallest and the largest of these are the smallest and the largest of all.
    """
    n = max(int(m / effect), 1)
    found = quantile_ranks(n, p, level)
    if n == m:
        return found
    low = math.floor(found.low / (n + 1) * (m + 1)) if found.low > 1 else 1
    high = math.ceil(found.high / (n + 1) * (m + 1)) if found.high < n else m
    return QuantileRanks(low, high, found.level)


class BinomialCdf(NamedTuple):
    """The binomial distribution function, from the smallest count that matters on."""

    first: int  # the smallest count whose probability is not next to nothing
    below: Array  # below[i]: probability of fewer than first + i


def binomial_cdf(m: int, p: float) -> BinomialCdf:
    """Probabilities of fewer than each count of m rows that are counted with probability p.

    They come from the ratios of neighbouring terms. At m = 1e6 SciPy's bdtr takes 50 times as long and is 1e-9 off.
    """
    farthest = 9.0 * math.sqrt(m * p * (1.0 - p)) + 40.0  # what is farther away is less likely than 1e-15
    first, last = max(0, math.floor(m * p - farthest)), min(m, math.ceil(m * p + farthest))
    count = np.arange(first, last)
    steps = np.log1p(((m - count) * p - (count + 1) * (1.0 - p)) / ((count + 1) * (1.0 - p)))
    logarithm = np.concatenate([[0.0], np.cumsum(steps)])
    terms = np.exp(logarithm - logarithm.max())
    below = np.concatenate([[0.0], np.cumsum(terms)])
    return BinomialCdf(first, below / below[-1])
