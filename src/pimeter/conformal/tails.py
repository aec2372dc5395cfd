"""Which residuals an interval may miss: those on both sides, half of them on either, or those on one side alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


class Tails(NamedTuple):
    """Which score bounds each side of an interval.

    A direction of 0 is the absolute residual, which bounds both sides; -1 and 1 are residuals towards the lower and the
    upper bound, negative on the other side of the prediction.
    """

    directions: tuple[int, ...]
    n_cuts: int = 1  # 2: misses are divided between the two tails of one sample
    is_by_sign: bool = False  # each direction has a sample of its own, the residuals of that sign

    @property
    def has_lower(self) -> bool:
        """Whether there is a lower bound."""
        return min(self.directions) <= 0

    @property
    def has_upper(self) -> bool:
        """Whether there is an upper bound."""
        return max(self.directions) >= 0

    @property
    def is_signed(self) -> bool:
        """Whether residuals count with their sign."""
        return 0 not in self.directions

    @property
    def has_centre(self) -> bool:
        """Whether intervals may lie beside the prediction, so that their middle is not 0."""
        return self.is_signed and not self.is_by_sign

    def level(self, p: float) -> float:
        """Level that the scores of each direction are to reach, for intervals at level p."""
        return (p + self.n_cuts - 1.0) / self.n_cuts

    def bound_levels(self, p: float) -> Array:
        """Levels of signed residuals between which a band of level p lies; with one bound as far on both sides."""
        level = (1.0 + p) / 2.0 if self.has_lower and self.has_upper else p
        return np.sort([1.0 - level, level])

    def scores(self, residuals: Array, direction: int) -> Array:
        """Scores of residuals in one direction; NaN for those that do not count there."""
        if direction == 0:
            return np.abs(residuals)
        towards = residuals * direction
        return np.where(towards > 0.0, towards, np.nan) if self.is_by_sign else towards

    def margins(self, quantiles: list[Array]) -> Array:
        """Quantiles (..., h) of the scores of each direction as margins below and above, (..., h, 2)."""
        margins = np.full((*quantiles[0].shape, 2), np.inf)
        for direction, one in zip(self.directions, quantiles, strict=True):
            if direction <= 0:
                margins[..., 0] = one
            if direction >= 0:
                margins[..., 1] = one
        return margins


TAILS = {
    "symmetric": Tails((0,)),
    "equal": Tails((-1, 1), n_cuts=2),
    "sided": Tails((-1, 1), is_by_sign=True),
    "lower": Tails((-1,)),
    "upper": Tails((1,)),
}
