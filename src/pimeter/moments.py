"""Sums over rows that add up, and the scores that follow from them: mean errors and the explained variance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import stdtrit

from pimeter.clusters import Units

if TYPE_CHECKING:
    from pimeter.protocols import Array

NEGLIGIBLE = 1e-100  # a variance that is less than this of the squared errors is none
ROWS_AT_ONCE = 1 << 13  # that stay in the cache
N_RESAMPLES = 399  # of the bootstrap
TAIL = 0.05  # of each side of a range
FREEDOM = 0.7  # of the degrees of freedom by the kurtosis, which is too small in a sample
LARGEST_LOG = math.log(100.0)  # farther no range goes on the scale of logarithms: a single outlier asks for 1e40


class Range(NamedTuple):
    """A number with bounds of a range for it."""

    value: float
    lower: float
    upper: float


class ErrorRanges(NamedTuple):
    """Mean errors with their ranges."""

    absolute: Range  # the mean absolute error
    root_square: Range  # the root of the mean squared error
    signed: Range  # the mean error


class Middle(NamedTuple):
    """Units of measurement in which nothing overflows, and what sums are near to, so that nothing cancels."""

    unit: float  # of errors
    near: Array  # (3,) |error|, its square, the error, in that unit
    target_unit: float  # of the targets' distances from the least of them
    least: float  # target
    target: float  # mean distance from it, about, in that unit, as what follows
    target_near: float  # squared distance of the target from its middle
    is_constant: bool  # whether all targets are equal

    @classmethod
    def of(cls, target: Array, errors: Array, largest: float) -> Middle:
        """Middle of targets and their errors, of which the largest is `largest`."""
        m, low, high = len(errors), float(target.min()), float(target.max())
        unit, target_unit = power_of_two(largest), power_of_two(max(high - low, largest))
        some = errors[:ROWS_AT_ONCE] / unit
        near = np.array([np.abs(some).mean(), (some**2).mean(), some.mean()])
        middle = (
            sum(float(((target[i : i + ROWS_AT_ONCE] - low) / target_unit).sum()) for i in range(0, m, ROWS_AT_ONCE))
            / m
        )
        target_near = float((((target[:ROWS_AT_ONCE] - low) / target_unit - middle) ** 2).mean())
        return cls(unit, near, target_unit, low, middle, target_near, low == high)

    def __call__(self, target: Array, errors: Array, units: Units | None = None) -> Moments:
        """Sums over rows in each unit, or half of one; without units in random parts, which add up."""
        units = units or Units.at_random(len(errors))
        x = errors / self.unit
        # Targets are counted from the least of them: near each other and far from 0 a unit would take their digits.
        y = (target - self.least) / self.target_unit - self.target
        near = self.near
        values = [np.ones(len(x)), np.abs(x) - near[0], x * x - near[1], x - near[2], y * y - self.target_near, y]
        return Moments(self, units, np.stack([units.sums(one) for one in values]))


def power_of_two(size: float) -> float:
    """A unit near this size, in which numbers keep all their digits; 1 for 0."""
    return math.ldexp(0.5, math.frexp(size)[1]) if size else 1.0


@dataclass(frozen=True)
class Moments:
    """Sums in units of the rows: of 1, |error|, its square, the error, the target's square, the target; less middles.

    Ranges hold the score of very many rows with 90 % confidence. The distance of the bounds is the larger of that of
    Student's t and of a bootstrap-t over units, which knows the skewness; on the scale of logarithms where a score
    cannot be negative. Both are stretched as if the variance had the degrees of freedom that the kurtosis leaves it.
    """

    middle: Middle
    units: Units
    sums: Array  # (6, units)

    def __add__(self, other: Moments) -> Moments:
        """Two parts of the rows as one; each has rows in all units."""
        return Moments(self.middle, self.units, self.sums + other.sums)

    @property
    def m(self) -> int:
        """Number of rows."""
        return round(float(self.sums[0].sum()))

    @cached_property
    def errors(self) -> ErrorRanges:
        """Mean errors, in the unit of the targets."""
        absolute, squares, signed = self._ranges()
        roots = [math.sqrt(max(x, 0.0)) for x in squares]
        return ErrorRanges(*(_scaled(values, self.middle.unit) for values in (absolute, roots, signed)))

    def explained(self) -> Range | None:
        """Proportion of the targets' variance that the model explains; None where they do not vary.

        With M the mean squared error and S the rest of the variance it is ``S / (S + M)``: distances of its bounds come
        from those of M and S, each by itself, and their correlation (Zou and Donner's MOVER). Where S is negative, they
        come from the logarithm of the ratio of M to the variance.
        """
        scale = (self.middle.unit / self.middle.target_unit) ** 2
        means = self.sums.sum(axis=1) / self.m
        error = float(self.middle.near[1] + means[2]) * scale
        base = float(self.middle.target_near + means[4] - means[5] ** 2)
        if self.middle.is_constant or base <= NEGLIGIBLE * error:
            return None
        value = 1.0 - error / base
        rows, squares = self.sums[0], self.sums[2] * scale
        targets = self.sums[4] - 2.0 * means[5] * self.sums[5] + means[5] ** 2 * rows
        targets, squares = (own - own.sum() / self.m * rows for own in (targets, squares))
        if self.units.refusal or not error:
            bound = math.nan if self.units.refusal else value
            return Range(value, bound, bound)
        if value < 0.0:
            half_width = min(self._half_width((targets / base - squares / error)[None])[0], LARGEST_LOG)
            bounds = (1.0 - error / base * math.exp(x) for x in (half_width, -half_width))
            return Range(value, *bounds)
        rest, (_, low, high) = base - error, (x * scale for x in self._ranges()[1])
        half_width = self._half_width((targets - squares)[None])[0]
        together = self.units.whole(np.stack([targets - squares, squares]))
        power = np.sqrt(np.square(together).sum(axis=1))
        correlation = float(together[0] @ together[1]) / float(power[0] * power[1] or 1.0)
        least = max(rest - half_width, -0.9 * error)
        down = value - rest / (rest + high), value - least / (least + error)
        up = rest / (rest + low) - value, (rest + half_width) / (rest + half_width + error) - value
        lower, upper = (math.sqrt(max(a * a + b * b - 2.0 * correlation * a * b, 0.0)) for a, b in (down, up))
        return Range(value, value - lower, min(value + upper, 1.0))

    def _half_width(self, totals: Array) -> Array:
        """Half-width of ranges of means, from sums in units whose total is 0."""
        found: Array = self.units.student(totals, FREEDOM) * np.sqrt(self.units.variance(totals)) / self.m
        return found

    def _ranges(self) -> Array:
        """Mean |error|, squared error and error, with bounds, in the unit: (3, 3)."""
        rows, sums = self.sums[0], self.sums[1:4]
        middle = sums.sum(axis=1) / self.m
        means, totals = self.middle.near + middle, sums - middle[:, None] * rows
        if self.units.refusal:
            return np.stack([means, *np.full((2, 3), math.nan)], axis=1)
        deviation = np.sqrt(self.units.variance(totals)) / self.m
        whole_rows, whole = self.units.whole(rows), self.units.whole(totals)
        student = float(stdtrit(self.units.n - 1, 1.0 - TAIL))
        stretch = self.units.student(totals, FREEDOM) / student
        found = np.empty((3, 3))
        for i, (mean, error) in enumerate(zip(means, deviation, strict=True)):
            is_positive = i < 2 and mean > 0.0
            low, high = _bootstrap_t(whole_rows, whole[i], mean if is_positive else None)
            down, up = error * stretch[i] * max(student, high), error * stretch[i] * max(student, -low)
            if is_positive:
                down, up = (mean * math.expm1(min(x / mean, LARGEST_LOG)) for x in (-down, up))
                found[i] = mean, mean + down, mean + up
            else:
                found[i] = mean, mean - down, mean + up
        return found


def _bootstrap_t(rows: Array, totals: Array, mean: float | None) -> tuple[float, float]:
    """5 % and 95 % points of the studentised mean over resampled units; of its logarithm if the mean is given.

    SciPy's bootstrap studentises nothing, and resamples rows, not units of unequal numbers of rows.
    """
    n, weights = len(rows), _resamples(len(rows))
    count, count2, total, squares, both = (
        weights @ np.stack([rows, rows**2, totals, totals**2, totals * rows], axis=1)
    ).T
    shift = total / count
    error = np.sqrt(np.maximum(squares - 2.0 * shift * both + shift**2 * count2, 0.0) * n / (n - 1)) / count
    if mean is not None:
        shift, error = np.log1p(np.maximum(shift / mean, -1.0 + 1e-12)), error / np.maximum(mean + shift, 1e-12 * mean)
    studentised = np.divide(shift, error, out=np.zeros(len(shift)), where=error > 0.0)
    low, high = np.quantile(studentised, [TAIL, 1.0 - TAIL])
    return float(low), float(high)


@lru_cache(maxsize=4)
def _resamples(n: int) -> Array:
    """How often each of n units is drawn in each resample."""
    drawn = np.random.default_rng(n).integers(n, size=(N_RESAMPLES, n)) + n * np.arange(N_RESAMPLES)[:, None]
    return np.bincount(drawn.ravel(), minlength=N_RESAMPLES * n).reshape(N_RESAMPLES, n).astype(np.float64)


def _scaled(numbers: Array | list[float], unit: float) -> Range:
    return Range(*(float(number) * unit for number in numbers))
