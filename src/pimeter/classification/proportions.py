"""Intervals for a proportion of so many rows: Wilson's, Clopper and Pearson's, and the normal one."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

from pimeter.coverage import proportion_bounds

if TYPE_CHECKING:
    from pimeter.protocols import Array


class Proportion(NamedTuple):
    """A proportion of rows, and the effective number of rows that it is based on."""

    value: float  # NaN where there are no rows
    n: float


def proportion(counted: Sequence[int], among: Sequence[int], squares: Array, sums: Array) -> Proportion:
    """Proportion of cells among others, and the number of equally weighted rows whose proportion would vary as much.

    That is no more than Kish's ``(sum w)^2 / sum w^2``: a rare answer that met small weights makes nothing surer.
    """
    others = [cell for cell in among if cell not in counted]
    inside, outside = sums[list(counted)].sum(), sums[others].sum()
    every = inside + outside
    if not every:
        return Proportion(float("nan"), 0.0)
    value = float(inside / every)
    in_squares, out_squares = squares[list(counted)].sum(), squares[others].sum()
    most = float(every**2 / (in_squares + out_squares))
    if not inside or not outside:
        return Proportion(value, most)
    variance = (in_squares * (1.0 - value) ** 2 + out_squares * value**2) / every**2
    return Proportion(value, min(float(value * (1.0 - value) / variance), most))


def normal_quantile(confidence_level: float) -> float:
    """Standard errors to either side for a two-sided interval."""
    return NormalDist().inv_cdf((1.0 + confidence_level) / 2.0)


def wilson(found: Proportion, confidence_level: float) -> tuple[float, float]:
    """Wilson's score interval: all proportions that the one found is not too far from; everything without rows."""
    value, n = found
    if not n:
        return 0.0, 1.0
    z2 = normal_quantile(confidence_level) ** 2
    centre = (value + z2 / (2.0 * n)) / (1.0 + z2 / n)
    half = (z2 / n * (value * (1.0 - value) + z2 / (4.0 * n))) ** 0.5 / (1.0 + z2 / n)
    # At the edges the two terms are equal, and rounding must not leave the edge out.
    return (0.0 if value == 0.0 else max(centre - half, 0.0)), (1.0 if value == 1.0 else min(centre + half, 1.0))


def clopper_pearson(found: Proportion, confidence_level: float) -> tuple[float, float]:
    """The exact interval, which with equal weights covers at least as often as it says; everything without rows."""
    if not found.n:
        return 0.0, 1.0
    lower, upper = proportion_bounds(found.value * found.n, found.n, (1.0 - confidence_level) / 2.0)
    return float(lower), float(upper)


def normal(found: Proportion, confidence_level: float) -> tuple[float, float]:
    """The paper's ``z sqrt(mu (1 - mu) / n)`` to either side; of width zero where the proportion is 0 or 1."""
    value, n = found
    if not n:
        return 0.0, 1.0
    half = normal_quantile(confidence_level) * (value * (1.0 - value) / n) ** 0.5
    return value - half, value + half
