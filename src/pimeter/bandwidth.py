"""beta="auto": how finely the neuron looks at its errors.

The paper's neuron is a smoothed distribution function, `F(w) = mean sigmoid(beta (w - e))`. With one `beta` for all
errors the answer depends on their unit, and quantiles at different levels may cross once `beta` follows the level. Here
the neuron looks through a *map* T instead, piecewise linear between knots and stretched where errors are dense, like a
ruler whose marks stand closer there:

    F(w) = mean sigmoid((T(w) - T(e)) / h),    the quantile at level p is the root of F(w) = shrunk(p).

1. **Units of the map.** With density f at level u, dT = f dx / sqrt(u (1 - u)): the map stabilises the variance, the
   standard error of a quantile is 1/sqrt(m) of it at every level, and the principle "do not resolve finer than the
   standard error" is one number h = c / sqrt(m + 1). If f were known, T would be the angle 2 arcsin sqrt(u), with
   density sin(T)/2 on (0, pi).
2. **Level.** Smoothing that density by a logistic kernel gives exactly 1/2 + (p - 1/2) pi h / sinh(pi h): the root is
   sought at that level, so smoothing adds no bias where f is right.
3. **No crossing.** T and h do not depend on the level, shrunk(p) rises with it, and F rises with w: a higher level can
   never give a lower quantile, in one call or in two.
4. **Density.** Beside each cell of the map a window to the left and one to the right; each density is shrunk towards a
   normal reference, with the smaller a pseudo-count the less normal the sample looks as a whole. Where the two sides
   differ by more than noise the denser one counts, and where a cell differs from both it counts for itself. A sample
   that is rough everywhere gets a smaller c.

The rule is a handful of formulas in the widths of windows: in errors (in units of the sample's spread), in level and in
normal quantiles. They use `+ - * /`, `abs` and powers alone, so that the same lines serve numbers, NumPy arrays and
tensors; `src/native/rule.hpp` and `_kernels/triton/formulas.py` say them once more for their compilers, with the same
names in the same order, and take the numbers below from here. Which windows there are is the knots' matter, measuring
them the kernels'.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Numbers = Any  # floats, NumPy arrays or tensors
Windows = tuple[Numbers, Numbers, Numbers]  # widths left and right of a cell, each with the cell, and of the cell alone

KNOTS = 3  # a window spans this many knots of the map beyond its own cell ...
PACE = 1.0  # ... and PACE m^(-1/3) of the map (plus half a cell): balances noise and curvature in the density
SHARP = 1.45  # c at m = 100: the bandwidth in standard errors of the quantile
GROWTH = 0.14  # c grows like m^GROWTH: smoothing may exceed the standard error as the density gets better known
SHARPEST = 0.7  # c of the roughest samples
ROUGH = 0.04  # mean roughness that divides c by sqrt(2)
SIGNIFICANT = 1.2  # roughness beside a cell, in units of its noise, from which the denser side counts
ISOLATED = 4.0  # difference of a cell to its surroundings, in units of its noise, from which it counts for itself
HALF = 0.1  # excess of either at which this counts by half
SHIFT = 0.95 * math.pi  # pi inside; the density sin(T)/2 stops at 0 and pi, so smoothing shifts levels a little less
BRACKET = 0.75  # the root is kept within this many standard errors (in level) of the plain quantile
SATURATION = 10.0  # the sigmoid is 0 or 1 beyond this (5e-5): what is farther away is only counted
TIED = 1e-9  # least width of a window, of both windows of a cell: tied errors have a finite density ...
LEAST_WIDTH = 1e-100  # ... also where all are tied; and a spread that is less than this of the range is none
LARGEST_KEPT = 1e9  # errors of a sample whose knots are kept for the next: those of larger ones are many
LARGE = 2000  # above this many errors windows hold so many that neither reference nor mean roughness are asked for


class Knots(NamedTuple):
    """The knots of the map for m errors, before any error is seen."""

    level: NDArray[np.float64]  # (J + 1 + 2 KNOTS,) levels of the knots, the first and the last repeated
    normal: NDArray[np.float64]  # their standard normal quantiles; the levels themselves above LARGE
    unit: NDArray[np.float64]  # (J,) level per unit of the map in each cell, about sqrt(u (1 - u))


def knots(m: float) -> Knots:
    """Knots at equal angles, from the level of the smallest error to that of the largest."""
    return _kept_knots(m) if m <= LARGEST_KEPT else _kept_knots.__wrapped__(m)


@lru_cache(maxsize=256)
def _kept_knots(m: float) -> Knots:
    """Knots at equal angles, from the level of the smallest error to that of the largest."""
    edge = math.acos(1.0 - 1.0 / m)
    n_cells = max(2, math.ceil((math.pi - 2.0 * edge) * m ** (1 / 3) * (KNOTS + 0.5) / PACE))
    angle = np.linspace(edge, math.pi - edge, n_cells + 1)
    level = (1.0 - np.cos(angle)) / 2.0
    level = (level + (1.0 - level[::-1])) / 2.0  # symmetric to the last bit
    unit = np.diff(level) / np.diff(angle)
    repeated = np.clip(np.arange(-KNOTS, n_cells + 1 + KNOTS), 0, n_cells)
    if m > LARGE:
        normal = level
    else:
        half = np.array([NormalDist().inv_cdf(u) for u in level[: n_cells // 2 + 1]])
        normal = np.concatenate(
            [half[: (n_cells + 1) // 2], [0.0] * (1 - n_cells % 2), -half[: (n_cells + 1) // 2][::-1]]
        )
    return Knots(level[repeated], normal[repeated], unit)


def safe_factor(largest: float) -> float:
    """A power of 2 that brings errors of extreme size near 1, so that no square or quotient leaves the floats."""
    if largest == 0.0 or 1e-100 < largest < 1e100:
        return 1.0
    return math.ldexp(1.0, -max(math.frexp(largest)[1], -1000))


def _squared(a: Numbers) -> Numbers:
    return a * a


def standard_error(p: Numbers, m: float) -> Numbers:
    """Standard error, in level, of the proportion of m errors below their quantile at level p."""
    return (p * (1.0 - p) / (m + 1.0)) ** 0.5


def shrunk(p: Numbers, h: Numbers) -> Numbers:
    """Where smoothing with h leaves level p: 1/2 + (p - 1/2) pi h / sinh(pi h)."""
    square = _squared(SHIFT * h)
    return 0.5 + (p - 0.5) / (1.0 + square / 6.0 * (1.0 + square / 20.0 * (1.0 + square / 42.0)))


def _positive(a: Numbers) -> Numbers:
    return (a + abs(a)) / 2.0


def _contrast(a: Numbers, b: Numbers) -> Numbers:
    return 2.0 * (a - b) / (a + b)


def widths(left: Numbers, right: Numbers, own: Numbers) -> Windows:
    """Widths in errors of a cell's windows, never quite 0."""
    least = TIED * both((left, right, own)) + LEAST_WIDTH
    return left + least, right + least, own + least


def both(windows: Windows) -> Numbers:
    """Width from the left window's start to the right one's end."""
    return windows[0] + windows[1] - windows[2]


def noise(level: Numbers, m: float) -> Numbers:
    """Relative variance of the density in a window that spans this much level."""
    return 1.0 / (m * level)


def distance_from_normal(error: Numbers, normal: Numbers) -> Numbers:
    """Squared relative distance of a window's density to the normal one."""
    return _squared(_contrast(normal, error + LEAST_WIDTH))


def roughness(error: Windows, level: Windows, normal: Windows, m: float, noises: float = 1.0) -> Numbers:
    """Squared relative difference of the densities on both sides of a cell, beyond so many times its noise."""
    difference = _contrast(normal[0] * error[1], normal[1] * error[0])
    return _squared(difference) - noises * (noise(level[0], m) + noise(level[1], m))


def resolution(distance: Numbers, rough: Numbers, m: float) -> tuple[Numbers, Numbers]:
    """Bandwidth h on the map, and the pseudo-count of the normal reference, from the sample's means.

    The reference counts as much as it would take for noise to explain how far the sample's densities are from it.
    """
    c = SHARP * (m / 100.0) ** GROWTH / (1.0 + _positive(rough) / ROUGH) ** 0.5
    return (SHARPEST + _positive(c - SHARPEST)) / (m + 1.0) ** 0.5, 1.0 / (distance + TIED)


def large_resolution(m: float) -> Numbers:
    """Bandwidth h on the map for more than LARGE errors."""
    return SHARP / (m + 1.0) ** 0.5


def near(m: float, p: float) -> tuple[int, int]:
    """Cells [first, last) of a large sample's map whose errors may affect level p, with a third to spare."""
    n_cells = knots(m).unit.size
    edge = math.acos(1.0 - 1.0 / m)
    step = (math.pi - 2.0 * edge) / n_cells
    extent = int(1.3 * (SATURATION * large_resolution(m) + 2.0 * BRACKET / math.sqrt(m)) / step) + 1
    cell = int((math.acos(1.0 - 2.0 * p) - edge) / step)
    return min(max(cell - extent, 0), n_cells - 1), max(min(cell + 1 + extent, n_cells), 1)


def _beyond(excess: Numbers) -> Numbers:
    """How much an excess over noise counts, from 0 to 1."""
    above = _positive(excess)
    return above / (above + HALF)


def isolation(error: Windows, level: Windows, normal: Windows, m: float) -> Numbers:
    """Squared relative difference of a cell's own density to that of all its surroundings, beyond noise."""
    difference = _contrast(normal[2] * both(error), both(normal) * error[2])
    return _squared(difference) - ISOLATED * (noise(level[2], m) - noise(both(level), m))


def slope(error: Windows, level: Windows, normal: Windows, unit: Numbers, pseudo_count: Numbers, m: float) -> Numbers:
    """Units of the map per unit of error in a cell, from its windows."""
    left, right, own = level[0] / error[0], level[1] / error[1], level[2] / error[2]
    count_left, count_right = m * level[0], m * level[1]
    shrunk_left = (count_left * left + pseudo_count * level[0] / normal[0]) / (count_left + pseudo_count)
    shrunk_right = (count_right * right + pseudo_count * level[1] / normal[1]) / (count_right + pseudo_count)
    denser = (left + right + abs(left - right)) / 2.0
    split = _beyond(roughness(error, level, normal, m, SIGNIFICANT))
    density = (1.0 - split) * (shrunk_left + shrunk_right) / 2.0 + split * denser
    alone = _beyond(isolation(error, level, normal, m))
    return ((1.0 - alone) * density + alone * own) / unit
