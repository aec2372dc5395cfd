"""The neuron's formula in plain NumPy, many rows at once: what native code is held to, and what runs without it."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pimeter import bandwidth
from pimeter._kernels.stream import learn_columns
from pimeter.bandwidth import BRACKET, KNOTS, LARGE, LEAST_WIDTH, SATURATION, Knots

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Status = NDArray[np.uint8]

__all__ = [  # what a kernel for arrays has; `native.py` has the same
    "automatic_rows",
    "fixed_rows",
    "fixed_weighted",
    "learn_columns",
    "order_statistics",
    "place",
    "sorted_groups",
    "weighted_rows",
]

MAX_STEPS = 200
NEWTON_STEPS = 30  # from then on by halves, which always comes to an end
TOLERANCE = 1e-5  # of h, for the last step of Newton's method: what is left is its square
PLATEAU = 1e-15  # a function this near to its level is at it: between distant errors all of a gap is
STEEP = 40.0  # the sigmoid with a bandwidth of the caller's is 0 or 1 beyond this
WIDE = 100.0  # units of a map, of which pi are ordinary: beyond, rounding at a far knot matters
NARROWEST = 1e-200  # width of windows, in errors that are not extreme, beside which slopes would leave the floats
MISSING, INFINITE = 1, 2  # what a kernel says of a row
TINY = 2.0**900  # one by the size of counts that are next to nothing
VALUES_AT_ONCE = 50_000  # values of rows that are solved together
NO_COUNTS = np.empty(0)
NO_CODES = np.empty(0, np.uint8)
QUARTILES = np.array([0.25, 0.75])


def activation(z: Array, end: float) -> Array:
    """The sigmoid, stretched a little so that it is exactly 0 or 1 from +-end on."""
    floor = 1.0 / (1.0 + math.exp(end))
    return (1.0 / (1.0 + np.exp(-np.clip(z, -end, end))) - floor) / (1.0 - 2.0 * floor)


def hazen(x: Array, counts: Array, level: Array) -> Array:
    """Hazen's quantiles of sorted values: the i-th stands at i - 1/2.

    A value with a count stands at the middle of its counts, from half a count after its start to half a count before
    its end if it is counted more than once: as so many copies would.
    """
    if not counts.size:
        return np.asarray(np.interp(level * x.size, np.arange(x.size) + 0.5, x))
    cumulative = np.cumsum(counts)
    half = np.minimum(counts, 1.0) / 2.0
    unit = TINY if cumulative[-1] < 1.0 / TINY else 1.0  # slopes between the least of counts would be infinite
    stands = np.stack([cumulative - counts + half, cumulative - half], axis=1).ravel() * unit
    return np.asarray(np.interp(level * (cumulative[-1] * unit), stands, np.repeat(x, 2)))


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
    n_tied = np.diff(starts, append=x.size)
    return np.repeat(np.add.reduceat(counts, starts, axis=-1) / n_tied, n_tied, axis=-1)


class Sorted(NamedTuple):
    """Sorted samples of equal size, one a row, or a single one with counts; more errors may lie below and above."""

    x: Array  # (rows, n)
    counts: Array  # (n,) or none
    below: float
    m: float

    def hazen(self, level: Array) -> Array:
        """Plain quantiles, (rows, levels)."""
        if self.counts.size:
            return hazen(self.x[0], self.counts, level)[None]
        return self.at(_ranks(level, self.below, self.m, self.x.shape[1]))

    def at(self, ranks: Ranks) -> Array:
        """Values between order statistics."""
        first, after, part = ranks
        low, high = self.x.take(first, axis=1), self.x.take(after, axis=1)
        return np.minimum(low + part * (high - low), high)  # the sum may round beyond the next value

    @property
    def is_plain(self) -> bool:
        """Whether it is small and without counts, so that ranks are a matter of its size alone."""
        return self.m <= LARGE and not self.counts.size

    @property
    def quartiles(self) -> Array:
        """The first and the third, (rows, 2)."""
        return self.at(_ranks_of_quartiles(self.x.shape[1])) if self.is_plain else self.hazen(QUARTILES)

    def at_knots(self, knots: Knots) -> Array:
        """Plain quantiles at the levels of the knots."""
        return self.at(_ranks_of_knots(self.x.shape[1])) if self.is_plain else self.hazen(knots.level)


class Ranks(NamedTuple):
    """Between which order statistics some quantiles lie, and where between them."""

    first: NDArray[np.intp]
    after: NDArray[np.intp]
    part: Array


def _ranks(level: Array, below: float, m: float, n: int) -> Ranks:
    """Where Hazen quantiles lie among n order statistics."""
    rank = np.minimum(np.maximum(level * m - below - 0.5, 0.0), n - 1.0)
    first = np.minimum(rank.astype(np.intp), n - 2)
    return Ranks(first, first + 1, rank - first)


@lru_cache(maxsize=64)
def _ranks_of_knots(n: int) -> Ranks:
    return _ranks(bandwidth.knots(max(float(n), 3.0)).level, 0.0, float(n), n)


@lru_cache(maxsize=64)
def _ranks_of_quartiles(n: int) -> Ranks:
    return _ranks(QUARTILES, 0.0, float(n), n)


def _bracketed(p: float, m: float) -> Array:
    """A level, and those between which its root is kept."""
    error = BRACKET * bandwidth.standard_error(p, m)
    return np.array([p, p - error, p + error])


@lru_cache(maxsize=256)
def _bracketed_ranks(p: float, n: int) -> tuple[Ranks, NDArray[np.intp]]:
    """Ranks of a level and its bracket in a small sample, and their cells."""
    level = _bracketed(p, float(n))
    return _ranks(level, 0.0, float(n), n), _cells(bandwidth.knots(max(float(n), 3.0)).level[KNOTS:-KNOTS], level)


class Map(NamedTuple):
    """The map of a sample: piecewise linear from errors to positions, with its bandwidth."""

    knots: Array  # (J + 1,) errors
    at: Array  # (J + 1,) positions
    slopes: Array  # (J,) positions per error
    h: float
    m: float

    def position(self, x: Array) -> Array:
        """Where errors lie on the map; the first and the last cell have no end."""
        j = np.clip(np.searchsorted(self.knots, x, side="right") - 1, 0, self.slopes.size - 1)
        return self.at[j] + (x - self.knots[j]) * self.slopes[j]

    def error(self, t: Array) -> Array:
        """Errors that lie at these positions of the map."""
        j = np.clip(np.searchsorted(self.at, t, side="right") - 1, 0, self.slopes.size - 1)
        return self.knots[j] + (t - self.at[j]) / self.slopes[j]


def fit_map(x: Array, counts: Array) -> Map | None:
    """The map of one sorted sample; None where there is no spread to measure."""
    m = float(counts.sum()) if counts.size else float(x.size)
    sample, knots = Sorted(x[None], counts, 0.0, m), bandwidth.knots(max(m, 3.0))
    if x.size < 2 or not (unit := _unit(sample, sample.at_knots(knots)))[0, 0]:
        return None
    inner, slopes, h = _fitted(sample, knots, unit)
    at = np.concatenate([[0.0], np.cumsum(np.diff(inner[0]) * slopes[0])])
    return Map(inner[0], at, slopes[0], float(np.ravel(h)[0]), m)


def spread(x: Array, counts: Array, least: float = LEAST_WIDTH) -> float:
    """The smaller of the standard deviation and the normal-consistent interquartile range of a sorted sample.

    0 for too few errors, and where it is less than the least part of their range.
    """
    m = float(counts.sum()) if counts.size else float(x.size)
    return float(_spreads(Sorted(x[None], counts, 0.0, m), least)[0, 0]) if x.size > 1 else 0.0


def _spreads(sample: Sorted, least: float = LEAST_WIDTH) -> Array:
    """The smaller of the standard deviation and the normal-consistent interquartile range of each row, (rows, 1)."""
    x, counts, _, m = sample
    if m < 3.0:
        return np.zeros((len(x), 1))
    low, high = sample.quartiles.T
    quartiles = ((high - low) / 1.349)[:, None]
    is_none = quartiles <= least * (x[:, -1:] - x[:, :1])
    deviation = (x - x[:, x.shape[1] // 2, None]) / np.where(is_none, 1.0, quartiles)
    weighted = deviation * counts if counts.size else deviation
    mean, square = weighted.sum(axis=1), np.einsum("ij,ij->i", weighted, deviation)
    deviations = np.sqrt((square - mean * mean / m) / (m - 1.0))[:, None]
    return np.where(is_none, 0.0, quartiles * np.minimum(deviations, 1.0))


def _unit(sample: Sorted, at_knots: Array) -> Array:
    """Units in which errors are measured, (rows, 1); 0 for rows without a spread."""
    if sample.m <= LARGE:
        return _spreads(sample)
    return _power_of_two(at_knots[:, -1:] - at_knots[:, :1], np.zeros(1))


def _power_of_two(width: Array, otherwise: Array) -> Array:
    """The one below a width, dividing by which changes no bits; or another unit where there is as good as no width."""
    return np.where(width > NARROWEST, np.ldexp(0.5, np.frexp(width)[1]), otherwise)


def _windows(a: Array) -> bandwidth.Windows:
    """Widths of the windows left and right of each cell, each with the cell itself, and of the cell alone."""
    n = a.shape[-1] - 2 * KNOTS - 1
    before, start, end = a[..., :n], a[..., KNOTS : KNOTS + n], a[..., KNOTS + 1 : KNOTS + 1 + n]
    return end - before, a[..., 2 * KNOTS + 1 :] - start, end - start


@lru_cache(maxsize=256)
def _small(m: float) -> tuple[bandwidth.Windows, bandwidth.Windows, Array]:
    """Windows in level and in normal quantiles of a small sample's map, and how much each cell counts in means.

    All are (1, J): NumPy is fastest with arrays of the same shape, which those of a single row are.
    """
    level, normal, unit = (a[None] for a in bandwidth.knots(m))
    return _windows(level), _windows(normal), unit / unit.sum()


@lru_cache(maxsize=16)
def _cells_of_ranks(m: int) -> NDArray[np.intp]:
    """Cells of the map in which the errors of a small sample lie: a matter of their ranks alone."""
    return _cells(bandwidth.knots(max(float(m), 3.0)).level[KNOTS:-KNOTS], (np.arange(m) + 0.5) / m)


def _fitted(sample: Sorted, knots: Knots, unit: Array) -> tuple[Array, Array, Array]:
    """Knots of the rows' maps in errors, slopes, and the bandwidth: (rows, J + 1), (rows, J), (rows, 1)."""
    m, at_knots = sample.m, sample.at_knots(knots)
    if m > LARGE:
        level = normal = _windows(knots.level)
    else:
        level, normal, weights = _small(max(m, 3.0))
    left, right, own = _windows(at_knots)
    if m > LARGE:  # cells have a unit each: beside a spread that is 1e90 times as large no window has a width
        unit = _power_of_two(bandwidth.both((left, right, own)), unit)
    measured = left / unit, right / unit, own / unit
    error = bandwidth.widths(*measured)
    if m > LARGE:
        h, pseudo_count = np.full((len(unit), 1), bandwidth.large_resolution(m)), 0.0
    else:
        distance = bandwidth.distance_from_normal(bandwidth.both(measured), bandwidth.both(normal))
        rough = bandwidth.roughness(error, level, normal, m)
        means = zip(*((a * weights).sum(axis=1).tolist() for a in (distance, rough)), strict=True)
        h, pseudo_count = np.array([bandwidth.resolution(distance, rough, m) for distance, rough in means]).T[..., None]
    slopes = bandwidth.slope(error, level, normal, knots.unit, pseudo_count, m) / unit
    return at_knots[:, KNOTS:-KNOTS], slopes, h


class Search(NamedTuple):
    """Where the smoothed distribution function of one row is p: what is sought, and within which bounds."""

    p: float
    h: float
    low: float
    high: float

    def step(self, t: float, cdf: float, slope: float, a: float, b: float, n_steps: int) -> tuple[float, bool]:
        """The next try after t, within (a, b) by bisection where Newton's method on the logit scale fails.

        The second answer says whether it is the last.
        """
        p, h, low, high = self
        move = -math.inf if cdf < p else math.inf
        if 0.0 < cdf < 1.0 and slope > 0.0:
            move = (math.log(cdf / (1.0 - cdf)) - math.log(p / (1.0 - p))) * cdf * (1.0 - cdf) / slope
        new = min(max(t - move, low), high)
        if abs(cdf - p) <= PLATEAU:
            return t, True
        if abs(move) <= TOLERANCE * h or (t == low and cdf >= p) or (t == high and cdf <= p):
            return new, True
        if n_steps >= NEWTON_STEPS or not a < new < b:
            new = 0.5 * max(a, low) + 0.5 * min(b, high)
        return new, new == t


@np.errstate(over="ignore")  # errors very many bandwidths away count whole
def _roots(
    positions: Array, counts: Array, below: float, m: float, end: float, starts: Sequence[float], where: list[Search]
) -> list[float]:
    """Where each row's smoothed distribution function has the level sought, kept in [low, high]."""
    t, a, b = list(starts), [-math.inf] * len(starts), [math.inf] * len(starts)
    # Sigmoids as 1/2 + tanh(z/2)/2, whose derivative is (1 - tanh^2)/4, or 0 from +-end on; stretched as activations.
    half, most = end / 2.0, math.tanh(end / 2.0)
    total = float(counts.sum()) if counts.size else float(positions.shape[1])
    left, held = list(range(len(starts))), positions
    sharpness = np.array([[0.5 / own.h] for own in where])
    for n_steps in range(MAX_STEPS):
        z = np.array([t[i] for i in left])[:, None] - held
        z *= sharpness
        np.minimum(z, half, out=z)
        np.maximum(z, -half, out=z)
        is_flat = np.abs(z) >= half
        np.tanh(z, out=z)
        if counts.size:
            sums = z @ counts, (z * z) @ counts, is_flat @ counts
        else:
            sums = z.sum(axis=1), np.einsum("ij,ij->i", z, z), is_flat.sum(axis=1)
        going = []
        for k, (i, first, second, n_flat) in enumerate(zip(left, *(one.tolist() for one in sums), strict=True)):
            own = (below + (total + first / most) / 2.0) / m
            rise = (total - second - n_flat * (1.0 - most * most)) / (4.0 * most * where[i].h * m)
            (b if own > where[i].p else a)[i] = t[i]
            t[i], is_last = where[i].step(t[i], own, rise, a[i], b[i], n_steps)
            if not is_last:
                going.append(k)
        if not going:
            break
        if len(going) < len(left):
            left, held, sharpness = [left[k] for k in going], held[going], sharpness[going]
    return t


def _cells(inner: Array, level: NDArray[np.floating]) -> NDArray[np.intp]:
    """Cells of the map in which the Hazen quantiles at some levels lie."""
    return np.minimum(np.maximum(np.searchsorted(inner, level, side="right") - 1, 0), inner.size - 2)


class Maps(NamedTuple):
    """The maps of some rows with as many cells each."""

    knots: Array  # (rows, J + 1) errors
    at: Array  # (rows, J + 1) positions
    slopes: Array  # (rows, J)
    wide: NDArray[np.intp]  # rows with an error far from all others

    @classmethod
    def laid(cls, knots: Array, slopes: Array, lengths: Array, wide: NDArray[np.intp], origin: int) -> Maps:
        """The map with positions that count from a cell."""
        at = np.zeros(knots.shape)
        lengths[:, origin:].cumsum(axis=1, out=at[:, origin + 1 :])
        if origin:
            (-lengths[:, :origin][:, ::-1]).cumsum(axis=1, out=at[:, :origin][:, ::-1])
        return cls(knots, at, slopes, wide)

    def positions(self, x: Array, cells: NDArray[np.intp]) -> Array:
        """Positions of values in these cells: from the left knot, in a wide map from the nearer one."""
        found: Array = self.at.take(cells, axis=1) + (x - self.knots.take(cells, axis=1)) * self.slopes.take(
            cells, axis=1
        )
        for i in self.wide:
            is_right = x[i] - self.knots[i, cells] > self.knots[i, cells + 1] - x[i]
            near = cells + is_right
            found[i] = self.at[i, near] + (x[i] - self.knots[i, near]) * self.slopes[i, cells]
        return found

    def error(self, i: int, t: float) -> float:
        """The value at a position of a row."""
        at = self.at[i]
        j = min(max(int(at.searchsorted(t, "right")) - 1, 0), self.slopes.shape[1] - 1)
        near = j + (t - at[j] > at[j + 1] - t)
        return float(self.knots[i, near] + (t - at[near]) / self.slopes[i, j])


def _through_map(sample: Sorted, knots: Knots, unit: Array, levels: Array) -> Array | None:
    """Quantiles of rows with a spread; None if an error outside the part of a sample that x is might matter.

    Positions count from the cell of each level's plain quantile: seen from an error that is far away, all others would
    stand in one place; and so a level gives the same bits whatever else is asked for.
    """
    x, counts, below, m = sample
    n, is_large = x.shape[1], m > LARGE
    inner_level = knots.level[KNOTS:-KNOTS]
    inner, slopes, h = _fitted(sample, knots, unit)
    lengths = (inner[:, 1:] - inner[:, :-1]) * slopes
    if counts.size:
        own_cells = np.minimum(np.maximum(np.searchsorted(inner[0], x[0], side="right") - 1, 0), slopes.shape[1] - 1)
    elif is_large:
        own_cells = _cells(inner_level, (np.arange(n) + (below + 0.5)) / m)
    else:
        own_cells = _cells_of_ranks(n)
    wide = np.flatnonzero(lengths.sum(axis=1) > WIDE)
    support = SATURATION * h[:, 0]
    h_of = h[:, 0].tolist()
    out = np.empty((len(x), levels.size))
    for k, p in enumerate(levels.tolist()):
        if sample.is_plain:
            ranks, cells = _bracketed_ranks(p, n)
            found = sample.at(ranks)
        else:
            three = _bracketed(p, m)
            found, cells = sample.hazen(three), _cells(inner_level, three)
        if is_large and (found[:, 2] - found[:, 1] <= NARROWEST).all():
            out[:, k] = found[:, 0]
            continue
        maps = Maps.laid(inner, slopes, lengths, wide, int(cells[0]))
        positions, at = maps.positions(x, own_cells), maps.at
        t_here, t_low, t_high = maps.positions(found, cells).T
        low, high = t_low - support, t_high + support
        if (below > 0.0 and (low < at[:, 0]).any()) or (below + n < m and not counts.size and (high > at[:, -1]).any()):
            return None
        first, last = 0, n  # short rows as a whole: sums of other parts would round with the rows beside
        if is_large:
            first, last = (int(positions[0].searchsorted(*end)) for end in ((low[0],), (high[0], "right")))
        n_before = below + (float(counts[:first].sum()) if counts.size else first)
        sought = [bandwidth.shrunk(p, own) for own in h_of]
        where = [Search(*own) for own in zip(sought, h_of, t_low.tolist(), t_high.tolist(), strict=True)]
        roots = _roots(positions[:, first:last], counts[first:last], n_before, m, SATURATION, t_here.tolist(), where)
        for i, (t, (_, least, most)) in enumerate(zip(roots, found.tolist(), strict=True)):
            out[i, k] = min(max(maps.error(i, t), least), most)
    return out


def _sorted_quantiles(x: Array, counts: Array, m: float, levels: Array) -> Array:
    """Quantiles by the rule of sorted finite rows, or of one with counts."""
    if x.shape[1] == 1:
        return np.repeat(x, levels.size, axis=1)
    sample, knots = Sorted(x, counts, 0.0, m), bandwidth.knots(max(m, 3.0))
    unit = _unit(sample, sample.at_knots(knots) if m > LARGE else x)
    is_spread = unit[:, 0] > 0.0
    if is_spread.all():
        solved = _through_map(sample, knots, unit, levels)
        assert solved is not None
        return solved
    out = sample.hazen(levels)
    if is_spread.any():
        out[is_spread] = _sorted_quantiles(x[is_spread], counts, m, levels)
    return out


def _sorted_blocks(x: NDArray[np.floating], status: Status) -> Iterator[tuple[slice, Array]]:
    """Finite rows, sorted, and where they are: blocks of them, or single ones beside others that are not finite."""
    rows = max(1, VALUES_AT_ONCE // x.shape[1])
    for start in range(0, len(x), rows):
        block = slice(start, start + rows)
        ordered = x[block].astype(np.float64)
        ordered.sort(axis=1)  # NaN are last
        low, high = ordered.take([0, -1], axis=1).T
        if np.isfinite(low).all() and np.isfinite(high).all():
            yield block, ordered
            continue
        status[block] = np.where(np.isnan(high), MISSING, np.where(np.isinf(low) | np.isinf(high), INFINITE, 0))
        for i in np.flatnonzero(status[block] == 0) + start:
            yield slice(i, i + 1), ordered[i - start : i - start + 1]


def automatic_rows(
    x: NDArray[np.floating],
    levels: Array,
    n_threads: int = 1,  # noqa: ARG001
) -> tuple[Array, Status | None]:
    """Quantiles of each row, in any order, at rising levels; and which rows hold NaN (1) or infinities (2), if any."""
    out, n = np.empty((len(x), levels.size)), x.shape[1]
    status = np.zeros(len(x), np.uint8)
    if n > LARGE:
        for i, row in enumerate(x):
            found = _long_sample(row, levels)
            if found is None:
                _short_rows(x[i : i + 1], levels, out[i : i + 1], status[i : i + 1])
            else:
                out[i] = found
    else:
        _short_rows(x, levels, out, status)
    return out, status if status.any() else None


def _short_rows(x: NDArray[np.floating], levels: Array, out: Array, status: Status) -> None:
    """Write quantiles by the rule of rows that are sorted as a whole, and which of them are not finite."""
    for block, ordered in _sorted_blocks(x, status):
        extremes = ordered.take([0, -1], axis=1)
        factors = [bandwidth.safe_factor(max(-low, high)) for low, high in extremes.tolist()]
        if any(factor != 1.0 for factor in factors):
            factor = np.array(factors)[:, None]
            found = _sorted_quantiles(ordered * factor, NO_COUNTS, float(x.shape[1]), levels) / factor
            out[block] = np.clip(found, extremes[:, :1], extremes[:, 1:])  # scaled errors may become 0
        else:
            out[block] = _sorted_quantiles(ordered, NO_COUNTS, float(x.shape[1]), levels)


class Near(NamedTuple):
    """Cells of a long sample's map near some of its levels, and the pivots that bound the errors there."""

    first: int
    last: int
    low: int  # -1 for none
    high: int  # as many as there are pivots for none
    levels: slice


def _ranges_near(knots: Knots, m: float, n_pivots: int, levels: Array) -> list[Near]:
    """Ranges of errors that the quantiles depend on; what overlaps becomes one."""
    ranges: list[Near] = []
    n_cells = knots.unit.size
    for k, p in enumerate(levels.tolist()):
        first, last = bandwidth.near(m, p)
        u, v = float(knots.level[first]), float(knots.level[last + 2 * KNOTS])
        below, above = (3.0 * math.sqrt(one * (1.0 - one) * n_pivots) + 2.0 for one in (u, v))
        low = max(int(u * n_pivots - below), -1) if first > 0 else -1
        high = min(int(v * n_pivots + above) + 1, n_pivots) if last < n_cells else n_pivots
        if ranges and low <= ranges[-1].high:
            before = ranges.pop()
            ranges.append(
                Near(
                    before.first,
                    max(before.last, last),
                    before.low,
                    max(before.high, high),
                    slice(before.levels.start, k + 1),
                )
            )
        else:
            ranges.append(Near(first, last, low, high, slice(k, k + 1)))
    return ranges


def _long_sample(x: NDArray[np.floating], levels: Array) -> Array | None:
    """Quantiles of a long finite sample in any order from the errors near each level alone.

    None where that would be about everything, does not span enough of the map, or where there are NaN and infinities.
    """
    m = float(x.size)
    n_pivots = int(m**0.75)
    pivots = np.sort(x[:: x.size // n_pivots][:n_pivots])
    knots = bandwidth.knots(m)
    ranges = _ranges_near(knots, m, n_pivots, levels)
    n_near = sum(min(near.high, n_pivots) - max(near.low, 0) for near in ranges)
    if n_near > 0.75 * n_pivots or not np.isfinite(x).all():
        return None
    out = np.empty(levels.size)
    for first, last, low, high, own in ranges:
        is_near = x >= pivots[low] if low >= 0 else np.ones(x.size, bool)
        below = x.size - int(np.count_nonzero(is_near))
        if high < n_pivots:
            is_near &= x <= pivots[high]
        near = np.sort(x[is_near].astype(np.float64))
        part = Knots(*(knots.level[first : last + 2 * KNOTS + 1],) * 2, knots.unit[first:last])
        if near.size < 2 or (below and part.level[0] * m < below + 1.0):
            return None
        if below + near.size < m and part.level[-1] * m > below + near.size - 1.0:
            return None
        if bandwidth.safe_factor(float(np.abs(near[[0, -1]]).max())) != 1.0:
            return None
        sample = Sorted(near[None], NO_COUNTS, float(below), m)
        at_knots = sample.at_knots(part)
        unit = _unit(sample, at_knots)
        found = _through_map(sample, part, unit, levels[own]) if unit[0, 0] else sample.hazen(levels[own])
        if found is None:
            return None
        out[own] = found[0]
    return out


def order_statistics(x: Array, ranks: NDArray[np.intp], n_threads: int = 1) -> Array:  # noqa: ARG001
    """Values of these ranks, from 1 up, in any order; none of the values is NaN."""
    return np.asarray(np.partition(x, np.unique(ranks - 1))[ranks - 1])


def sorted_groups(x: Array, group: NDArray[np.uint8] = NO_CODES, n_groups: int = 1) -> list[Array]:
    """Finite values of each group, sorted; without codes all are of one group."""
    return [np.sort(x[group == own] if group.size else x) for own in range(n_groups)]


def place(x: Array, group: NDArray[np.uint8], bounds: Array, places: NDArray[np.uint8]) -> None:
    """How many of its group's bounds, (groups, bounds), rising and fewer than 255, lie below each value."""
    for own, at in enumerate(bounds):
        rows = np.flatnonzero(group == own)
        places[rows] = np.searchsorted(at, x[rows])


def weighted_rows(x: Array, counts: Array, m: float, levels: Array, n_threads: int = 1) -> Array:  # noqa: ARG001
    """Quantiles of one sorted finite sample for each row of counts, which sum to m."""
    out = np.empty((len(counts), levels.size))
    for i, own in enumerate(counts):
        held = own > 0.0
        out[i] = _sorted_quantiles(x[None, held], own[held], float(own.sum()), levels)[0]
    return out


def fixed_rows(
    x: NDArray[np.floating],
    levels: Array,
    h: float,
    n_threads: int = 1,  # noqa: ARG001
) -> tuple[Array, Status | None]:
    """Roots of the paper's own function, mean sigmoid((w - x)/h), of each row, in any order, kept in its range.

    Sums are of sorted rows: in another order they round differently, and in a gap between errors, where it is all but
    flat, that moves the root by far more than its last bits. The second answer says which rows hold NaN (1) or
    infinities (2), if any.
    """
    out, n = np.empty((len(x), levels.size)), x.shape[1]
    status = np.zeros(len(x), np.uint8)
    ranks = np.clip(levels * n - 0.5, 0.0, n - 1.0)
    first = ranks.astype(np.intp)
    after = np.minimum(first + 1, n - 1)
    for block, ordered in _sorted_blocks(x, status):
        with np.errstate(over="ignore", invalid="ignore"):
            gap = ordered[:, after] - ordered[:, first]
            starts = ordered[:, first] + np.where(np.isinf(gap), 0.0, (ranks - first) * gap)
        out[block] = _fixed(ordered, NO_COUNTS, levels, h, starts)
    return out, status if status.any() else None


def fixed_weighted(x: Array, counts: Array, levels: Array, h: float, starts: Array) -> Array:
    """Roots of mean sigmoid((w - x)/h) = level of one sorted finite sample with counts, from these starts."""
    roots: Array = _fixed(x[None], counts, levels, h, starts[None])[0]
    return roots


def _fixed(x: Array, counts: Array, levels: Array, h: float, starts: Array) -> Array:
    out = np.empty(starts.shape)
    m = float(counts.sum()) if counts.size else float(x.shape[1])
    extremes = list(zip(x[:, 0].tolist(), x[:, -1].tolist(), strict=True))
    for k, p in enumerate(levels.tolist()):
        where = [Search(p, h, *one) for one in extremes]
        out[:, k] = _roots(x, counts, 0.0, m, STEEP, starts[:, k].tolist(), where)
    return out
