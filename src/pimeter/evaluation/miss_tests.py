"""Tests of what is counted, such as misses: whether they are too many, gather in a subgroup, or come in runs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import bdtr, bdtrc, gammaln

if TYPE_CHECKING:
    from pimeter.protocols import Flags


def binomial_p(k: int, n: int, p: float, effect: float) -> float:
    """Twice the smaller tail, of so many fewer rows as dependence leaves."""
    k, n = round(k / effect), round(n / effect)
    below, above = float(bdtr(k, n, p)), float(bdtrc(k - 1, n, p)) if k else 1.0
    return min(1.0, 2.0 * min(below, above))


def hypergeometric_p(k: int, rows: int, total: int, n: int) -> float:
    """Whether k of some rows inside is by chance, total of n being so: Fisher's exact test, twice the smaller tail."""
    least, most = max(0, rows - (n - total)), min(rows, total)
    k = min(max(k, least), most)  # after rounding
    i = np.arange(least, most + 1)
    log = -np.sum([gammaln(x + 1.0) for x in (i, total - i, rows - i, n - total - rows + i)], axis=0)
    terms = np.exp(log - log.max())
    at, total = k - least, terms.sum()
    below, above = terms[: at + 1].sum() / total, terms[at:].sum() / total  # 1 - below would cancel far out
    return float(min(1.0, 2.0 * min(below, above)))


class LikelihoodRatios(NamedTuple):
    """Christoffersen's likelihood ratios, each chi-square with one degree of freedom."""

    unconditional: float  # of coverage at the level
    independence: float  # of a miss from whether there was one before

    @property
    def conditional(self) -> float:
        """Of both together: chi-square with two degrees of freedom."""
        return self.unconditional + self.independence


def christoffersen(miss: Flags, level: float) -> LikelihoodRatios:
    """Likelihood ratios of misses in the order of time."""
    k, n = int(miss.sum()), len(miss)
    unconditional = 2.0 * (_log_likelihood(k, n, k / n) - _log_likelihood(k, n, 1.0 - level))
    before, after = miss[:-1], miss[1:]
    parts = [(int(after[before == b].sum()), int((before == b).sum())) for b in (False, True)]
    total = sum(one[0] for one in parts), sum(one[1] for one in parts)
    free = sum(_log_likelihood(k, n, k / n if n else 0.0) for k, n in parts)
    independence = max(2.0 * (free - _log_likelihood(*total, total[0] / total[1])), 0.0)
    return LikelihoodRatios(unconditional, independence)


def _log_likelihood(k: int, n: int, p: float) -> float:
    """Log-likelihood of k misses among n rows at a probability p."""
    return (k * math.log(p) if k else 0.0) + ((n - k) * math.log1p(-p) if n - k else 0.0)


def runs_p(miss: Flags) -> float:
    """Probability of so few runs of misses, all orders of the rows being equally likely: exact, hypergeometric."""
    n, k = len(miss), int(miss.sum())
    n_runs = int(miss[0]) + int(np.count_nonzero(miss[1:] & ~miss[:-1]))
    r = np.arange(1, min(k, n - k + 1) + 1)
    # C(k - 1, r - 1) ways to cut the misses into r runs, C(n - k + 1, r) ways to place these among the hits.
    log = gammaln(k) - gammaln(r) - gammaln(k - r + 1) + gammaln(n - k + 2) - gammaln(r + 1) - gammaln(n - k + 2 - r)
    terms = np.exp(log - log.max())
    return float(terms[r <= n_runs].sum() / terms.sum())
