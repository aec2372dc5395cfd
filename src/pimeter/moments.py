"""Sums over rows that add up, and the scores that follow from them: mean errors and the explained variance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

NEGLIGIBLE = 1e-100  # a variance that is less than this of the squared errors is none
ROWS_AT_ONCE = 1 << 13  # that stay in the cache
NORMAL = 1.6448536269514722  # standard errors to either side for 90 % confidence
Range = tuple[float, float, float]  # value, lower, upper


class Middle(NamedTuple):
    """Units in which nothing overflows, and what sums are near to, so that nothing cancels."""

    unit: float  # of errors
    near: Array  # (3,) |error|, its square, the error, in that unit
    target_unit: float  # of the targets' distances from the least of them
    least: float  # target
    target: float  # mean distance from it, about, in that unit, as what follows
    target_near: Array  # (2,) squared error, squared distance of the target from its middle
    is_constant: bool  # whether all targets are equal

    @classmethod
    def of(cls, target: Array, errors: Array, largest: float) -> Middle:
        """From the rows themselves."""
        m, low, high = len(errors), float(target.min()), float(target.max())
        unit, target_unit = power_of_two(largest), power_of_two(max(high - low, largest))
        some = errors[:ROWS_AT_ONCE] / unit
        near = np.array([np.abs(some).mean(), (some**2).mean(), some.mean()])
        middle = (
            sum(float(((target[i : i + ROWS_AT_ONCE] - low) / target_unit).sum()) for i in range(0, m, ROWS_AT_ONCE))
            / m
        )
        distances = errors[:ROWS_AT_ONCE] / target_unit, (target[:ROWS_AT_ONCE] - low) / target_unit - middle
        target_near = np.array([(x**2).mean() for x in distances])
        return cls(unit, near, target_unit, low, middle, target_near, low == high)

    def __call__(self, target: Array, errors: Array) -> Moments:
        """Sums over some rows."""
        powers, squares = np.zeros((2, 3)), np.zeros(6)
        for start in range(0, len(errors), ROWS_AT_ONCE):
            own, y = errors[start : start + ROWS_AT_ONCE], target[start : start + ROWS_AT_ONCE]
            x = own / self.unit
            powered = np.stack([np.abs(x), x * x, x]) - self.near[:, None]
            powers += powered.sum(axis=1), np.einsum("ij,ij->i", powered, powered)
            # Targets are counted from the least of them: near each other and far from 0 a unit would take their digits.
            x, y = own / self.target_unit, (y - self.least) / self.target_unit - self.target
            error, base = x * x - self.target_near[0], y * y - self.target_near[1]
            squares += [error.sum(), base.sum(), error @ error, base @ base, error @ base, y.sum()]
        return Moments(self, len(errors), powers, squares)


def power_of_two(size: float) -> float:
    """A unit near this size, in which numbers keep all their digits; 1 for 0."""
    return math.ldexp(0.5, math.frexp(size)[1]) if size else 1.0


@dataclass(frozen=True)
class Moments:
    """Sums of first and second powers around a middle."""

    middle: Middle
    m: int
    powers: Array  # (2, 3)
    squares: Array  # (6,)

    def __add__(self, other: Moments) -> Moments:
        """Two parts of the rows as one."""
        return Moments(self.middle, self.m + other.m, self.powers + other.powers, self.squares + other.squares)

    def errors(self) -> tuple[Range, Range, Range]:
        """Mean absolute error, root of the mean squared error, mean error."""
        m, unit = self.m, self.middle.unit
        means = self.middle.near + self.powers[0] / m
        margins = NORMAL * _standard_error(self.powers[1] - self.powers[0] ** 2 / m, m)
        absolute, squares, signed = np.stack([means, means - margins, means + margins], axis=1)
        return _range(absolute * unit), _range(np.sqrt(np.maximum(squares, 0.0)) * unit), _range(signed * unit)

    def explained(self) -> Range | None:
        """Proportion of the targets' variance that the model explains, with the range of a ratio of means."""
        error, base = self.middle.target_near + self.squares[:2] / self.m
        base -= (self.squares[5] / self.m) ** 2  # the mean of all rows is known now
        if self.middle.is_constant or base <= NEGLIGIBLE * error:
            return None
        ratio = float(error / base)
        weighted = self.squares[0] - ratio * self.squares[1]
        squares = self.squares[2] - 2.0 * ratio * self.squares[4] + ratio**2 * self.squares[3]
        margin = NORMAL * float(_standard_error(squares - weighted**2 / self.m, self.m) / base)
        return 1.0 - ratio, 1.0 - ratio - margin, 1.0 - ratio + margin


def _range(numbers: Array) -> Range:
    value, lower, upper = numbers.tolist()
    return value, lower, upper


def _standard_error(squares: Array, m: int) -> Array:
    """Of means, from the sums of squared distances from them; NaN for a single row."""
    error: Array = np.sqrt(np.maximum(squares, 0.0) / (m - 1) / m) if m > 1 else math.nan * squares
    return error
