"""The neuron's formula, once, in plain NumPy: what every other kernel is held to, and what runs without numba."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pimeter._kernels import counting, stream

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import NDArray

    Array = NDArray[np.float64]


PLATEAU = 1e-15  # a share this near to its level is at it
TINY = 2.0**900  # one by the size of counts that are next to nothing


def activation(z: Array, end: float) -> Array:
    """The sigmoid, stretched a little so that it is exactly 0 or 1 from +-end on."""
    floor = 1.0 / (1.0 + math.exp(end))
    return (1.0 / (1.0 + np.exp(-np.clip(z, -end, end))) - floor) / (1.0 - 2.0 * floor)


def hazen(x: Array, counts: Array, level: Array) -> Array:
    """Hazen's quantiles of sorted values: the i-th stands at i - 1/2.

    A value with a count stands at the middle of its share, from half a count after its start to half a count before
    its end if it is counted more than once: as so many copies would.
    """
    if not counts.size:
        return np.asarray(np.interp(level * x.size, np.arange(x.size) + 0.5, x))
    ends = np.cumsum(counts)
    half = np.minimum(counts, 1.0) / 2.0
    unit = TINY if ends[-1] < 1.0 / TINY else 1.0  # slopes between the least of counts would be infinite
    stands = np.stack([ends - counts + half, ends - half], axis=1).ravel() * unit
    return np.asarray(np.interp(level * (ends[-1] * unit), stands, np.repeat(x, 2)))


def in_order(x: Array, counts: Array) -> tuple[Array, Array]:
    """Values in rising order and their counts, tied values by count: the order they came in leaves no trace in sums."""
    order = np.lexsort([counts, x])
    return x[order], even(x[order], counts[order])


def even(x: Array, counts: Array) -> Array:
    """Counts (..., m) of sorted values, those of tied values replaced by their mean: among equals there is no order.

    Whole counts are copies, which have none anyway.
    """
    starts = np.flatnonzero(np.append(True, x[1:] != x[:-1]))
    if starts.size == x.size or (counts == np.rint(counts)).all():
        return counts
    sizes = np.diff(starts, append=x.size)
    return np.repeat(np.add.reduceat(counts, starts, axis=-1) / sizes, sizes, axis=-1)


class Scale(NamedTuple):
    """A ruler laid on a sample: piecewise linear from errors to positions, with its rule."""

    marks: Array  # (J + 1,) errors
    at: Array  # (J + 1,) positions
    slopes: Array  # (J,) positions per error
    h: float
    m: float

    def position(self, x: Array) -> Array:
        """Where errors lie on the ruler; the first and the last cell have no end."""
        j = np.clip(np.searchsorted(self.marks, x, side="right") - 1, 0, self.slopes.size - 1)
        return self.at[j] + (x - self.marks[j]) * self.slopes[j]

    def error(self, t: Array) -> Array:
        """The way back."""
        j = np.clip(np.searchsorted(self.at, t, side="right") - 1, 0, self.slopes.size - 1)
        return self.marks[j] + (t - self.at[j]) / self.slopes[j]


def spread(x: Array, counts: Array, least: float) -> float:
    """The smaller of the standard deviation and the normal-consistent interquartile range.

    0 for too few errors, and where it is less than the least part of their range.
    """
    m = counts.sum() if counts.size else float(x.size)
    if x.size < 2 or m < 3:
        return 0.0
    low, high = hazen(x, counts, np.array([0.25, 0.75]))
    quartiles = float(high - low) / 1.349
    if quartiles <= least * float(x[-1] - x[0]):
        return 0.0
    w = counts if counts.size else np.ones(x.size)
    deviation = (x - x[x.size // 2]) / quartiles
    square = w @ deviation**2 - (w @ deviation) ** 2 / m
    return quartiles * min(math.sqrt(square / (m - 1.0)), 1.0)


def scale(x: Array, counts: Array, rule: Any) -> Scale | None:
    """The ruler of a sorted sample; None where there is no spread to measure."""

    def windows(a: Array) -> tuple[Array, Array, Array]:
        """Widths of the windows left and right of each cell, each with the cell itself, and of the cell alone."""
        k, n = rule.MARKS, a.size - 2 * rule.MARKS - 1
        before, start, end, after = a[:n], a[k : k + n], a[k + 1 : k + 1 + n], a[2 * k + 1 :]
        return end - before, after - start, end - start

    m = float(counts.sum()) if counts.size else float(x.size)
    ruler = rule.ruler(max(m, 3.0))
    marks = hazen(x, counts, ruler.level)
    unit_of_errors: Any = spread(x, counts, rule.LEAST) if m <= rule.LARGE else float(marks[-1] - marks[0])
    if unit_of_errors == 0.0:
        return None
    if m > rule.LARGE:  # cells have a unit each: beside a spread that is 1e90 times as large no window has a width
        both = rule.both(windows(marks))
        unit_of_errors = np.where(both > 0.0, both, unit_of_errors)
    level, normal = windows(ruler.level), windows(ruler.normal)
    left, right, own = windows(marks)
    measured = left / unit_of_errors, right / unit_of_errors, own / unit_of_errors
    error = rule.widths(*measured)
    h, worth = rule.large_resolution(m), 0.0
    if m <= rule.LARGE:
        strange = np.average(rule.strangeness(rule.both(measured), rule.both(normal)), weights=ruler.unit)
        rough = np.average(rule.roughness(error, level, normal, m), weights=ruler.unit)
        h, worth = rule.resolution(strange, rough, m)
    slopes = rule.slope(error, level, normal, ruler.unit, worth, m) / unit_of_errors
    marks = marks[rule.MARKS : -rule.MARKS]
    return Scale(marks, np.concatenate([[0.0], np.cumsum(np.diff(marks) * slopes)]), slopes, h, m)


def _root(
    positions: Array, counts: Array, h: float, end: float, p: float, start: float, low: float, high: float
) -> float:
    """Root of the smoothed share in [low, high], or the end that is nearest to it, by bisection.

    Between distant errors the share may be flat, and at its level all along: then it is `start`.
    """
    w = counts if counts.size else np.ones(positions.size)
    m = float(w.sum())

    @np.errstate(over="ignore")  # errors very many bandwidths away count whole
    def excess(t: float) -> float:
        return float(w @ activation((t - positions) / h, end)) / m - p  # in whole numbers where activations are

    if abs(excess(start)) <= PLATEAU:
        return start
    if excess(low) >= 0.0:
        return low
    if excess(high) <= 0.0:
        return high
    while True:
        middle = 0.5 * low + 0.5 * high
        if not low < middle < high:
            return middle
        if excess(middle) > 0.0:
            high = middle
        else:
            low = middle


class Kernel:
    """The formula for one rule, a module like `pimeter.bandwidth`; streams and counts have plain lines already."""

    learn = staticmethod(stream.learn)
    learn_columns = staticmethod(stream.learn_columns)
    counting = counting

    def __init__(self, rule: ModuleType) -> None:
        self._rule: Any = rule

    def automatic_rows(self, x: Array, levels: Array, out: Array) -> NDArray[np.int8]:
        """Quantiles of each row at rising levels; says of each row whether it holds NaN (1) or infinities (2)."""
        status = np.where(np.isnan(x).any(axis=1), 1, np.where(np.isinf(x).any(axis=1), 2, 0)).astype(np.int8)
        for i in np.flatnonzero(status == 0):
            factor = self._rule.safe_factor(float(np.abs(x[i]).max()))
            found = self.automatic(np.sort(x[i].astype(np.float64) * factor), np.empty(0), levels) / factor
            out[i] = np.clip(found, x[i].min(), x[i].max())  # scaled errors may become 0
        return status

    def automatic(self, x: Array, counts: Array, levels: Array) -> Array:
        """Quantiles of a sorted finite sample by the rule."""
        rule, ruler = self._rule, scale(x, counts, self._rule)
        if ruler is None:
            return hazen(x, counts, levels)
        positions = ruler.position(x)
        quantiles = np.empty(levels.size)
        for k, p in enumerate(levels):
            error = rule.BRACKET * rule.standard_error(p, ruler.m)
            low, here, high = hazen(x, counts, np.array([p - error, p, p + error]))
            bracket = ruler.position(np.array([here, low, high]))
            t = _root(positions, counts, ruler.h, rule.SATURATION, rule.shrunk(p, ruler.h), *bracket)
            quantiles[k] = np.clip(ruler.error(np.array(t)), low, high)
        return quantiles

    def weighted_rows(self, x: Array, counts: Array, m: float, levels: Array, out: Array) -> None:  # noqa: ARG002
        """Quantiles of one sorted finite sample for each row of counts, which sum to m."""
        for i, own in enumerate(counts):
            held = own > 0.0
            out[i] = self.automatic(x[held], own[held], levels)

    def fixed(self, x: Array, counts: Array, levels: Array, h: float, starts: Array) -> Array:
        """Roots of the paper's own share, mean sigmoid((w - x)/h), kept in the sample's range."""
        low, high = float(x.min()), float(x.max())
        return np.array(
            [_root(x, counts, h, 40.0, p, start, low, high) for p, start in zip(levels, starts, strict=True)]
        )

    def fixed_rows(self, x: Array, levels: Array, h: float, starts: Array) -> Array:
        """The same for each row of x, without counts."""
        found = [self.fixed(row, np.empty(0), levels, h, start) for row, start in zip(x, starts, strict=True)]
        return np.array(found).reshape(starts.shape)
