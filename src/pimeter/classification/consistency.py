"""Do labels contradict the scores? Were scores probabilities, labels would be draws from them: a test, in bins."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.stats import rankdata

from pimeter.classification.platt import log_odds

if TYPE_CHECKING:
    from pimeter.protocols import Array, Flags, Index

LEAST_DRAWS, MOST_DRAWS = 5000, 200_000  # the labels at hand are one of them
DRAWS_BEYOND = 20  # that lie beyond the level asked for, on average
DIGITS_OF_STATISTIC = 9  # draws of the same counts differ by rounding alone


class Consistency(NamedTuple):
    """p-values of labels, were each of them a draw from its score."""

    p_value: float  # of all bins together: perfect scores have one of at most a in a proportion a of samples at most
    by_bin: Array  # (n_bins,), adjusted for their number: perfect scores have any of at most a that often


def positives_pmf(probability: Array) -> Array:
    """Probability of 0, 1, ..., n positives among n independent rows that have different ones (Poisson-binomial).

    Rows are joined in pairs, and pairs again: ``n log(n)^2`` steps, exact but for rounding, of about 1e-14. (SciPy's
    poisson_binom, new in 1.15, takes n^2.)
    """
    parts = np.stack([1.0 - probability, probability], axis=1)
    while len(parts) > 1:
        width = parts.shape[1]
        if len(parts) % 2:
            parts = np.vstack([parts, np.eye(1, width)])  # no rows: 0 positives for certain
        size = next_fast_len(2 * width - 1, real=True)
        both = rfft(parts[::2], size) * rfft(parts[1::2], size)
        parts = irfft(both, size)[:, : 2 * width - 1]
    return np.maximum(parts[0, : len(probability) + 1], 0.0)


def consistency(score: Array, is_positive: Flags, codes: Index, confidence_level: float) -> Consistency:
    """Whether so many positives in each bin, which labels do not choose, are what scores of its rows expect.

    Draws of labels from the scores tell what is unlikely, not an asymptotic distribution that rare positives are far
    from; they are enough to tell p-values of ``1 - confidence_level``. Two things are looked at: the bin whose number
    of positives is the least likely, and whether scores are too low, too high, too bold or too timid on the whole (the
    score test of Cox's level and slope, on sums of bins). Each draw has a rank in both, and the better one has a rank
    among all draws.
    """
    n_draws = min(max(LEAST_DRAWS, math.ceil(DRAWS_BEYOND / (1.0 - confidence_level))), MOST_DRAWS) - 1
    # The same scores have the same draws, in any order; others have others, so that no kind of scores has bad luck.
    digest = hashlib.blake2b(np.sort(score).tobytes(), digest_size=8).digest()
    rng = np.random.default_rng(int.from_bytes(digest, "little"))
    columns = (score, score * (1.0 - score), np.ones(len(score)))
    expected, variance, rows = (np.bincount(codes, column).astype(np.float64) for column in columns)
    counts, chances = [], []  # of the labels at hand and of draws, (1 + draws,) of each bin
    for i, n_positive in enumerate(np.bincount(codes[is_positive], minlength=len(rows))):
        pmf = positives_pmf(score[codes == i])
        below, above = np.cumsum(pmf), np.cumsum(pmf[::-1])[::-1]
        drawn = np.minimum(np.searchsorted(below, rng.random(n_draws), side="right"), len(pmf) - 1)
        counts.append(np.append(n_positive, drawn))
        chances.append(np.minimum(2.0 * np.minimum(below, above), 1.0)[counts[-1]])
    least = np.min(chances, axis=0)
    tilt = _tilt(np.stack(counts, axis=1) - expected, variance, log_odds(expected / rows))
    ranks = np.minimum(rankdata(least, "max"), rankdata(-tilt, "max"))
    by_bin = np.array([np.mean(least <= chance[0]) for chance in chances])
    return Consistency(float(np.mean(ranks <= ranks[0])), by_bin)


def _tilt(gaps: Array, variance: Array, odds: Array) -> Array:
    """Squared level and slope of what scores leave over, (draws, bins), each over its variance."""
    total = variance.sum()
    if not total:
        return np.zeros(len(gaps))
    away = odds - variance @ odds / total
    across = variance @ away**2
    found = gaps.sum(axis=1) ** 2 / total
    if across > 1e-12 * total:
        found += (gaps @ away) ** 2 / across
    return np.asarray(np.round(found, DIGITS_OF_STATISTIC))
