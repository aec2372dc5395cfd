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
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

LEAST_DRAWS, MOST_DRAWS = 5000, 200_000  # the labels at hand are one of them
DRAWS_BEYOND = 20  # that lie beyond the level asked for, on average
DIGITS = 9  # of a statistic: draws of the same counts differ by rounding alone


class Consistency(NamedTuple):
    """p-values of labels, were each of them a draw from its score.

    Attributes
    ----------
    p_value : float
        Of all bins together. Perfect scores have one of at most ``a`` in a proportion ``a`` of samples at most,
        whatever the scores and however rare the positives.
    by_bin : ndarray of shape (n_bins,)
        Of each bin, adjusted for their number: perfect scores have any of at most ``a`` in a proportion ``a`` of
        samples.
    """

    p_value: float
    by_bin: Array


def positives_pmf(probability: Array) -> Array:
    """Probability of 0, 1, ..., n positives among n independent rows that have different ones (Poisson-binomial).

    Rows are joined in pairs, and pairs again: ``n log(n)^2`` steps, exact but for rounding, of about 1e-14.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter.classification.consistency import positives_pmf
    >>> positives_pmf(np.array([0.5, 0.1])).round(2)
    array([0.45, 0.5 , 0.05])
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


class Calibrated(NamedTuple):
    """What numbers of positives in bins would be, were scores probabilities.

    Attributes
    ----------
    chances : list of ndarray
        For each bin the two-sided p-value of 0, 1, ... positives.
    drawn : ndarray of shape (n_draws, n_bins)
        Numbers of positives of labels that are drawn from the scores.
    expected, variance, odds : ndarray of shape (n_bins,)
        Mean and variance of the number of positives, and log-odds of the mean score.
    """

    chances: list[Array]
    drawn: NDArray[np.intp]
    expected: Array
    variance: Array
    odds: Array

    @classmethod
    def of(cls, score: Array, codes: NDArray[np.intp], confidence_level: float) -> Calibrated:
        """From scores and the bin of each row, with draws enough to tell p-values of ``1 - confidence_level``."""
        n_draws = min(max(LEAST_DRAWS, math.ceil(DRAWS_BEYOND / (1.0 - confidence_level))), MOST_DRAWS) - 1
        # The same scores have the same draws, in any order; others have others, so that no kind of scores has bad luck.
        digest = hashlib.blake2b(np.sort(score).tobytes(), digest_size=8).digest()
        rng = np.random.default_rng(int.from_bytes(digest, "little"))
        chances, drawn = [], []
        for i in range(int(codes.max()) + 1):
            pmf = positives_pmf(score[codes == i])
            below, above = np.cumsum(pmf), np.cumsum(pmf[::-1])[::-1]
            chances.append(np.minimum(2.0 * np.minimum(below, above), 1.0))
            drawn.append(np.minimum(np.searchsorted(below, rng.random(n_draws), side="right"), len(pmf) - 1))
        columns = (score, score * (1.0 - score), np.ones(len(score)))
        expected, variance, rows = (np.bincount(codes, column).astype(np.float64) for column in columns)
        return cls(chances, np.stack(drawn, axis=1), expected, variance, log_odds(expected / rows))

    def judged(self, counts: NDArray[np.intp]) -> Consistency:
        """Numbers of positives (n_bins,), judged as one more draw.

        Two things are looked at: the bin whose number of positives is the least likely, and whether scores are too low,
        too high, too bold or too timid on the whole (the score test of Cox's level and slope, on sums of bins). Each
        draw has a rank in both, and the better one has a rank among all draws.
        """
        every = np.vstack([counts, self.drawn])
        chances = np.stack([chance[column] for chance, column in zip(self.chances, every.T, strict=True)], axis=1)
        least = chances.min(axis=1)
        tilt = _tilt(every - self.expected, self.variance, self.odds)
        ranks = np.minimum(rankdata(least, "max"), rankdata(-tilt, "max"))
        by_bin = np.array([np.mean(least <= chance) for chance in chances[0]])
        return Consistency(float(np.mean(ranks <= ranks[0])), by_bin)


def consistency(
    score: Array, is_positive: NDArray[np.bool_], codes: NDArray[np.intp], confidence_level: float
) -> Consistency:
    """Whether so many positives in each bin are what scores of its rows expect.

    Draws of labels from the scores tell what is unlikely, not an asymptotic distribution that rare positives are far
    from.

    Parameters
    ----------
    score : ndarray of shape (n,)
        Scores between 0 and 1.
    is_positive : ndarray of bool, shape (n,)
        Labels.
    codes : ndarray of int, shape (n,)
        Bin of each row, which must not depend on labels.
    confidence_level : float
        Draws are enough to tell p-values of ``1 - confidence_level``.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter.classification.consistency import consistency
    >>> score = np.repeat([0.01, 0.02], 100)
    >>> codes = np.arange(200) // 100
    >>> expected, many = np.arange(200) % 67 == 0, np.arange(200) % 20 == 0
    >>> [consistency(score, is_positive, codes, 0.95).p_value < 0.05 for is_positive in (expected, many)]
    [False, True]
    """
    counts = np.bincount(codes[is_positive], minlength=int(codes.max()) + 1)
    return Calibrated.of(score, codes, confidence_level).judged(counts)


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
    return np.asarray(np.round(found, DIGITS))
