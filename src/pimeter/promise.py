"""What a number of errors can promise: ranks and the exact levels that belong to them."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np


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
        Ranks from 1 to m: the pair nearest to each other that reaches the level; of several such the likeliest.
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
