"""Are the errors symmetric, around whatever middle? Hogg's measure of skewness, judged by flipping signs.

The seed is fixed, so the same rows give the same answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pimeter.moments import power_of_two

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

N_FLIPS, BATCH = 999, 37  # samples whose signs are drawn anew, and how many of them at a time
ENOUGH = 10  # that are as skewed: no more are needed to see that chance explains it


class Tails(NamedTuple):
    """Means of the largest errors, of the smallest, and of the middle half, in each of some samples."""

    upper: Array
    lower: Array
    middle: Array

    @classmethod
    def of(cls, samples: Array, share: float) -> Tails:
        """Of sorted samples, (samples, m), and the share of the errors that each tail holds."""
        m = samples.shape[1]
        n, quarter = max(1, round(share * m)), m // 4
        ends = samples[:, m - n :], samples[:, :n], samples[:, quarter : m - quarter]
        return cls(*(part.mean(axis=1) for part in ends))

    @property
    def skewness(self) -> Array:
        """How much farther one tail is from the middle than the other, in widths: -1 to 1, and 0 if they are alike."""
        width = self.upper - self.lower
        apart = self.upper + self.lower - 2.0 * self.middle
        return np.divide(apart, width, out=np.zeros_like(width), where=width > 0.0)


def tails(errors: Array, share: float) -> Tails:
    """Tails of one sample."""
    unit = power_of_two(float(np.abs(errors).max()))
    return Tails(*(values * unit for values in Tails.of(np.sort(errors)[None] / unit, share)))


def p_value(errors: Array, share: float) -> float:
    """How often errors that are symmetric have tails as unlike as these.

    Around their true middle errors that are symmetric keep their law if signs are drawn anew. The middle is not known,
    so two estimates of it have their turns, and the larger of the two p-values counts: the middle between the tails is
    best where errors end abruptly, also if they are tied, the mean of the middle half where tails are heavy. With one
    of them alone symmetric errors were called skewed up to 6 % (coin tosses) or 30 % (Cauchy) of the time, at .3 %.
    """
    found = tails(errors, share)
    skewness = abs(float(found.skewness[0])) * (1.0 - 1e-9)
    return max(
        _chance(np.abs(errors - middle), share, skewness)
        for middle in (found.middle, found.upper / 2.0 + found.lower / 2.0)
    )


def _chance(sizes: Array, share: float, skewness: float) -> float:
    """How often errors of these sizes and of random signs are as skewed (Besag and Clifford's sequential p-value)."""
    sizes = sizes / power_of_two(float(sizes.max()))
    rng = np.random.default_rng(len(sizes))
    n_skewed = n_drawn = 0
    while n_drawn < N_FLIPS and n_skewed < ENOUGH:
        signs = rng.integers(2, size=(BATCH, len(sizes)), dtype=np.int8) * 2 - 1
        drawn = Tails.of(np.sort(sizes * signs, axis=1), share)
        n_skewed += int(np.count_nonzero(np.abs(drawn.skewness) >= skewness))
        n_drawn += BATCH
    return (1 + n_skewed) / (1 + n_drawn)
