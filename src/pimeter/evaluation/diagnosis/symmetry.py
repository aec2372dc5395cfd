"""Are the residuals symmetric, around whatever centre? Hogg's measure of skewness, judged by flipping signs.

The seed is fixed, so the same rows give the same answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pimeter.evaluation.diagnosis.check import sequential_test
from pimeter.moments import power_of_two

if TYPE_CHECKING:
    from pimeter.protocols import Array, Index


class TailMeans(NamedTuple):
    """Means of the largest residuals, of the smallest, and of the middle half, in each of some samples."""

    upper: Array
    lower: Array
    middle: Array

    @classmethod
    def of(cls, samples: Array, fraction: float) -> TailMeans:
        """Means of sorted samples, (samples, m), of which each tail holds this fraction of the residuals."""
        m = samples.shape[1]
        n, quarter = max(1, round(fraction * m)), m // 4
        slices = samples[:, m - n :], samples[:, :n], samples[:, quarter : m - quarter]
        return cls(*(held.mean(axis=1) for held in slices))

    @property
    def skewness(self) -> Array:
        """How much farther one tail is from the middle than the other, in widths: -1 to 1, 0 if equally far."""
        width = self.upper - self.lower
        apart = self.upper + self.lower - 2.0 * self.middle
        return np.divide(apart, width, out=np.zeros_like(width), where=width > 0.0)


def tails(residuals: Array, fraction: float) -> TailMeans:
    """Mean residuals of the two tails, of this fraction each, and of the middle half."""
    unit = power_of_two(float(np.abs(residuals).max()))
    return TailMeans(*(values * unit for values in TailMeans.of(np.sort(residuals)[None] / unit, fraction)))


def p_value(residuals: Array, fraction: float, units: Index | None = None) -> float:
    """How often residuals that are symmetric have tails as unlike as these.

    Around their true centre residuals that are symmetric keep their distribution if signs are drawn anew. The centre is
    not known, so two estimates of it have their turns, and the larger of the two p-values counts: the middle between
    the tails is best where residuals stop abruptly, also if they are tied, the mean of the middle half where tails are
    heavy. With one of them alone symmetric residuals were called skewed up to 6 % (coin tosses) or 30 % (Cauchy) of the
    time, at .3 %. Rows of one unit, which depend on each other, have one sign.
    """
    found = tails(residuals, fraction)
    skewness = abs(float(found.skewness[0])) * (1.0 - 1e-9)
    return max(
        _chance(residuals - middle, fraction, skewness, units)
        for middle in (found.middle, found.upper / 2.0 + found.lower / 2.0)
    )


def _chance(centred: Array, fraction: float, skewness: float, units: Index | None) -> float:
    """How often residuals of these absolute values and random signs are as skewed."""
    centred = (np.abs(centred) if units is None else centred) / power_of_two(float(np.abs(centred).max()))
    rng = np.random.default_rng(len(centred))
    n_signs = len(centred) if units is None else int(units.max()) + 1

    def drawn(n: int) -> Array:
        signs = rng.integers(2, size=(n, n_signs), dtype=np.int8) * 2 - 1
        samples = centred * (signs if units is None else signs[:, units])
        return np.abs(TailMeans.of(np.sort(samples, axis=1), fraction).skewness)

    return sequential_test(skewness, drawn).p_value
