"""Quantiles of dask arrays: three reads of the data, partial results that merge by addition, nothing gathered.

1. Errors are counted by their leading bits, the same for all arrays: BINS bins for all floats there are.
2. From these counts follows where, for each level, the errors lie that its neuron can feel. There each bin, from its
   smallest error to its largest, is cut into finer ones, the more of them the more errors it holds: errors far away,
   and the gap before them, cost those near the level nothing.
3. The same once more, with the finer bins that matter.

Bins of the third read are so small that their means, counted as often, stand for the errors themselves. Around them are
those of the second read, for tied errors are felt farther away; errors beyond are only counted. Samples of SMALL errors
and less are brought together instead. With a bandwidth of the caller's the second read gives a root, and the third one
step of Newton's method, from all errors.

A chunk is made anew for each read, by a task that holds the chunk's own graph: none waits in memory for the next read.
Where chunks share work, as after `rechunk`, and in collections that are in memory already, they are made once.
Many short samples go another way: they are brought together, chunk by chunk, and solved where they are, in one read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import dask
import dask.array as da
import numpy as np
from dask.core import flatten
from dask.optimization import cull

from pimeter import bandwidth
from pimeter._kernels.arrays import quantile as solve
from pimeter._kernels.arrays import settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

BITS = 14
BINS = 2**BITS  # of the first read
FINE_BINS, MOST_BINS = 2**17, 2**18  # of the others, for one quantile and for all, but never fewer than BINS
SMALL = 2**16  # errors of a sample that may as well be brought together
MOST = 256  # quantiles, samples times levels, up to which the data is read three times
FELT = 41.0  # bandwidths from a root beyond which an error only counts
BLOCK = 2**15  # errors that are put into bins at once: they stay in the cache
FAN_IN = 16  # partial results that are added at once
ASIDE, NEIGHBOURS = 1.0, 6  # looked into, too, on either side: as many errors as are felt, and so many bins beyond
LEAST = 5e-324  # width of a bin
_SIGN = np.int64(2**63 - 1)
_OUTWARD = np.array([-1, 1])


@dataclass(frozen=True)
class Counts:
    """What one read finds for each quantile: numbers add up, and of ends the outer one stays."""

    below: Array  # (Q,) errors below the bins
    bins: Array  # (Q, bins)
    sums: Array  # (Q, bins) of places within a bin, from 0 to 1
    ends: Array  # (2, Q, BINS) the smallest error of each bin of the first read, and the largest with its sign changed
    odd: Array  # (Q, 2) NaN and infinite ones
    held: tuple[tuple[Array, Array], ...] = ()  # errors and their counts, of small samples

    def __add__(self, other: Counts) -> Counts:
        """Two parts of the data as one."""
        return Counts(
            self.below + other.below,
            self.bins + other.bins,
            self.sums + other.sums,
            np.minimum(self.ends, other.ends),
            self.odd + other.odd,
            tuple(
                (np.concatenate([a, c]), np.concatenate([b, d]))
                for (a, b), (c, d) in zip(self.held, other.held, strict=True)
            ),
        )


@dataclass(frozen=True)
class Task:
    """Quantiles of samples (columns), one for each column and level."""

    levels: tuple[float, ...]
    h: Any  # a number, or None for the rule
    reflect: bool
    axes: tuple[int, ...] = (0,)

    def quantiles(self, k: int) -> list[tuple[int, float]]:
        """Column and level of each."""
        return [(column, p) for column in range(k) for p in self.levels]


@dataclass(frozen=True)
class Grid:
    """Bins of one read, cut into finer ones of equal width each."""

    skip: int  # number of the first that is cut
    start: Array  # (cut,)
    width: Array  # (cut,) of their finer bins
    before: NDArray[np.intp]  # (cut + 1,) finer bins up to each of them
    last: Array  # (cut,) the last place in each, in finer bins

    @property
    def stop(self) -> int:
        """Number after the last that is cut."""
        return self.skip + self.start.size

    def places(self, x: Array, bins: NDArray[np.intp]) -> tuple[NDArray[np.intp], Array]:
        """Finer bins of errors that are in these bins, and where in them, from 0 to 1."""
        own = bins - self.skip
        place = (x - self.start.take(own)) / self.width.take(own)
        place = np.minimum(np.maximum(place, 0.0), self.last.take(own))
        whole = place.astype(np.intp)
        return self.before.take(own) + whole, place - whole

    def starts(self) -> tuple[Array, Array]:
        """Where finer bins start, and their widths."""
        n = np.diff(self.before)
        width = np.repeat(self.width, n)
        return np.repeat(self.start, n) + (np.arange(width.size) - np.repeat(self.before[:-1], n)) * width, width

    def means(self, counts: Array, sums: Array) -> tuple[Array, Array]:
        """Of errors in each finer bin, and how many they are."""
        start, width = self.starts()
        counts, sums = counts[: start.size], sums[: start.size]
        return start + width * (sums / np.where(counts > 0.0, counts, 1.0)), counts


def _cut(skip: int, start: Array, width: Array, counts: Array, felt: Array, n_bins: int) -> Grid:
    """Bins that hold errors, cut into so many in all: by errors, by those that are felt, and by width."""
    used = counts > 0.0
    shares = np.stack([counts, felt, width / (width.max() or 1.0)]) * (used & (width > LEAST))
    share = (shares / np.maximum(shares.sum(axis=1, keepdims=True), LEAST)).mean(axis=0)
    n = used + (share * (n_bins - np.count_nonzero(used))).astype(np.intp)
    finer = np.maximum(width / np.maximum(n, 1), LEAST)
    last = np.nextafter(n.astype(np.float64), 0.0)
    return Grid(skip, start, finer, np.concatenate([[0], np.cumsum(n)]), last)


@dataclass(frozen=True)
class Range:
    """Where to count for one quantile, and what is known of its sample."""

    m: float
    ends: tuple[float, float]  # of the sample
    n_bins: int
    is_infinite: bool
    is_missing: bool
    low: float = 0.0
    high: float = 0.0
    grids: tuple[Grid, ...] = ()  # of the second read, and of the third
    root: float = math.nan

    @property
    def is_small(self) -> bool:
        """Few enough to be brought together."""
        return self.m <= SMALL


def _codes(x: Array) -> NDArray[np.int64]:
    """Bins of equal leading bits, rising with x."""
    bits = (x + 0.0).view(np.int64)
    return np.asarray(((bits ^ ((bits >> 63) & _SIGN)) >> (64 - BITS)) + BINS // 2)


def _columns(block: Any, weights: Any, task: Task) -> list[tuple[Array, Array | None]]:
    """Errors and counts of each sample in a block; what does not count is not there. A list holds samples as such."""
    if isinstance(block, list):
        return [(column, None) for column in block]

    values = np.asarray(made(block), np.float64)

    def columns(a: Array) -> Array:
        k = math.prod(n for i, n in enumerate(a.shape) if i not in task.axes)
        return np.moveaxis(a, task.axes, range(len(task.axes))).reshape(a.size // max(k, 1), k)

    x = columns(values)
    if weights is None:
        return [(np.ascontiguousarray(column), None) for column in x.T]
    own = np.asarray(made(weights), np.float64)
    if own.ndim != values.ndim or any(
        n != values.shape[i] for i, n in enumerate(own.shape) if i in task.axes or n != 1
    ):
        msg = f"a chunk of weights has shape {own.shape}, its values have {values.shape}; give both the same chunks."
        raise ValueError(msg)
    w = columns(np.broadcast_to(own, values.shape))
    if not (np.isfinite(w) & (w >= 0.0)).all():
        msg = "weights are counts: finite and at least 0; got a negative, infinite or missing one."
        raise ValueError(msg)
    return [(a[b > 0.0], b[b > 0.0]) for a, b in zip(x.T, w.T, strict=True)]


def _total(counts: Array | None, which: NDArray[np.bool_]) -> float:
    return float(np.count_nonzero(which) if counts is None else counts[which].sum())


def first_read(block: Any, weights: Any, task: Task) -> Counts:
    """Counts by leading bits; once for each sample."""
    samples = _columns(block, weights, task)
    if task.reflect and any((x < 0.0).any() for x, _ in samples):
        msg = "reflect=True takes absolute errors, but a holds negative values; pass abs(a) or reflect=False."
        raise ValueError(msg)
    k = len(samples)
    bins, ends, odd = np.zeros((k, BINS)), np.full((2, k, BINS), np.inf), np.zeros((k, 2))
    for i, sample in enumerate(samples):
        x, counts = sample
        missing = np.isnan(x)
        odd[i] = _total(counts, missing), _total(counts, np.isinf(x))
        if missing.any():
            x, counts = x[~missing], None if counts is None else counts[~missing]
        codes = _codes(x)
        bins[i] = np.bincount(codes, counts, BINS)
        np.minimum.at(ends[0, i], codes, x)
        np.minimum.at(ends[1, i], codes, -x)
    return Counts(np.zeros(k), bins, np.zeros((k, 0)), ends, odd)


def second_plan(found: Counts, task: Task) -> list[Range]:
    """Which bins of the first read matter."""
    ranges = []
    for column, p in task.quantiles(len(found.bins)):
        bins, (missing, infinite) = found.bins[column], found.odd[column]
        m = float(bins.sum() + missing)
        if m == 0.0:
            msg = "no values: all chunks are empty, or all weights are 0; a quantile needs at least one."
            raise ValueError(msg)
        used = np.flatnonzero(bins)
        ends, (low, high) = np.cumsum(bins), found.ends[:, column] * [[1.0], [-1.0]]
        outer = (float(low[used[0]]), float(high[used[-1]])) if used.size else (0.0, 0.0)
        n_bins = int(np.clip(MOST_BINS // (len(found.bins) * len(task.levels)), BINS, FINE_BINS))
        at = Range(m, outer, n_bins, is_missing=missing > 0.0, is_infinite=infinite > 0.0)
        finite = used[np.isfinite(low[used])]
        if missing > 0.0 or m <= SMALL or not finite.size:
            ranges.append(at)
            continue
        if task.h is None or not 0.0 < p < 1.0 or infinite > 0.0:
            ranks = _ranks(task, m, p)
            untied = np.cumsum(np.where(high > low, bins, 0.0))  # ties have no length on the map
            felt = untied[np.minimum(np.searchsorted(ends, ranks), BINS - 1)] + ASIDE * (ranks[1] - ranks[0]) * _OUTWARD
            felt = np.searchsorted(finite, np.searchsorted(untied, felt))
            first, last = finite[np.clip(felt + NEIGHBOURS * _OUTWARD, 0, finite.size - 1)]
            at = replace(at, low=float(low[first]), high=float(high[last]))
        else:
            beta = 1.0 / task.h
            roots = [solve(x[used], p, weights=bins[used], beta=beta, reflect=task.reflect) for x in (low, high)]
            ranks, reach = (0.0, m), FELT * task.h
            at = replace(at, low=max(float(roots[0] - reach), outer[0]), high=min(float(roots[1] + reach), outer[1]))
            first, last = _codes(np.array([at.low, at.high]))
        inner = slice(first, last + 1)
        start = np.where(bins[inner] > 0.0, low[inner], 0.0)
        width = np.where(bins[inner] > 0.0, high[inner] - start, 0.0)
        grid = _cut(int(first), start, width, bins[inner], _felt(ends, bins, ranks)[inner], n_bins)
        ranges.append(replace(at, grids=(grid,)))
    return ranges


def _felt(ends: Array, bins: Array, ranks: tuple[float, float]) -> Array:
    """How many errors of each bin are among some ranks; ends are the ranks of its last ones."""
    return np.asarray(np.maximum(np.minimum(ends, ranks[1]) - np.maximum(ends - bins, ranks[0] - 1.0), 0.0))


def _ranks(task: Task, m: float, p: float) -> tuple[float, float]:
    """Of errors that are felt at level p of a large sample; a few to spare."""
    if task.reflect:
        low, high = _ranks(replace(task, reflect=False), 2.0 * m, (1.0 + p) / 2.0)
        return max(abs(low - m) if low < m else low - m, 1.0) if low >= m else 1.0, max(high - m, m - low)
    if not 0.0 < p < 1.0:
        return (1.0, 2.0) if p == 0.0 else (m - 1.0, m)
    level = bandwidth.knots(m).level
    first, last = bandwidth.near(m, p)
    return max(level[first] * m - 2.0, 1.0), min(level[last + 2 * bandwidth.KNOTS] * m + 2.0, m)


def next_read(block: Any, weights: Any, task: Task, ranges: list[Range]) -> Counts:
    """Counts and sums in the finest bins there are; small samples as they are."""
    samples = _columns(block, weights, task)
    quantiles = task.quantiles(len(samples))
    q = len(quantiles)
    n_bins = ranges[0].n_bins
    below, bins, sums = np.zeros(q), np.zeros((q, n_bins)), np.zeros((q, n_bins))
    held = []
    for i, ((column, _), at) in enumerate(zip(quantiles, ranges, strict=True)):
        x, counts = samples[column]
        if at.is_missing or at.is_small:
            held.append((x, np.ones(x.size) if counts is None else counts) if at.is_small else (x[:0], x[:0]))
            continue
        held.append((x[:0], x[:0]))
        below[i] = _total(counts, x < at.low)
        if at.grids and math.isnan(at.root):
            blocks = [slice(start, start + BLOCK) for start in range(0, max(x.size, 1), BLOCK)]
            placed = [_placed(x[block], None if counts is None else counts[block], at) for block in blocks]
            place, part, own = (np.concatenate(some) for some in zip(*placed, strict=True))
            bins[i] = np.bincount(place, None if counts is None else own, n_bins)
            sums[i] = np.bincount(place, part, n_bins)
    return Counts(below, bins, sums, np.zeros((2, q, 0)), np.zeros((q, 2)), tuple(held))


def _placed(x: Array, counts: Array | None, at: Range) -> tuple[NDArray[np.intp], Array, Array]:
    """Finest bins of errors that have one, where in them times how often they count, and how often they count."""
    inside = np.flatnonzero((x >= at.low) & (x <= at.high))
    x, own = x.take(inside), x[:0] if counts is None else counts.take(inside)
    place, part = at.grids[0].places(x, _codes(x))
    for grid in at.grids[1:]:
        inside = np.flatnonzero((place >= grid.skip) & (place < grid.stop))
        x, own = x.take(inside), own if counts is None else own.take(inside)
        place, part = grid.places(x, place.take(inside))
    return place, part if counts is None else part * own, own


def third_plan(found: Counts, task: Task, ranges: list[Range]) -> list[Range]:
    """Which bins of the second read matter; or, with a given bandwidth, the root in them."""
    k = len(ranges) // len(task.levels)
    plan = []
    for i, ((_, p), at) in enumerate(zip(task.quantiles(k), ranges, strict=True)):
        if not at.grids:
            plan.append(at)
        elif task.h is None or not 0.0 < p < 1.0 or at.is_infinite:
            plan.append(_finer(found.below[i], found.bins[i], at, _ranks(task, at.m, p)))
        else:
            values, counts = _means(found, i, at)
            root = solve(values, p, weights=counts, beta=1.0 / task.h, reflect=task.reflect)
            plan.append(replace(at, root=float(root)))
    return plan


def _finer(below: float, bins: Array, at: Range, ranks: tuple[float, float]) -> Range:
    """Bins of the second read of some ranks, and one to either side, cut once more."""
    start, width = at.grids[0].starts()
    bins = bins[: start.size]
    ends = below + np.cumsum(bins)
    first, last = np.clip(np.searchsorted(ends, ranks) + _OUTWARD, 0, start.size - 1)
    inner = slice(first, last + 1)
    grid = _cut(int(first), start[inner], width[inner], bins[inner], _felt(ends, bins, ranks)[inner], at.n_bins)
    low, high = start[first] - width[first], start[last] + 2.0 * width[last]  # rounding may put errors a bin beyond
    return replace(
        at,
        low=max(float(np.nextafter(low, -np.inf)), at.low),
        high=min(float(np.nextafter(high, np.inf)), at.high),
        grids=(*at.grids, grid),
    )


def _means(found: Counts, i: int, at: Range, around: Counts | None = None) -> tuple[Array, Array]:
    """Means of bins and how often they count, with the wider bins around; what is farther away counts just beyond."""
    wide = found if around is None else around
    below, above = wide.below[i], max(at.m - wide.below[i] - wide.bins[i].sum(), 0.0)
    values, counts = np.empty(0), np.empty(0)
    for grid, own in zip(at.grids, (wide, found), strict=False):
        inner, n_inner = grid.means(own.bins[i], own.sums[i])
        values = np.concatenate([values[: grid.skip], inner, values[grid.stop :]])
        counts = np.concatenate([counts[: grid.skip], n_inner, counts[grid.stop :]])
    x, counts = values[counts > 0.0], counts[counts > 0.0]
    beyond = min([at.low, *x[:1]]), max([at.high, *x[-1:]])
    ends = np.array([-np.inf, np.inf]) if at.is_infinite else np.nextafter(beyond, [-np.inf, np.inf])
    x = np.concatenate([ends[:1], x, ends[1:]])
    counts = np.concatenate([[below], counts, [above]])
    return x[counts > 0.0], counts[counts > 0.0]


def third_read(block: Any, weights: Any, task: Task, ranges: list[Range]) -> Counts:
    """As the second read; around a root, the sums of Newton's method: shares in `below`, slopes in `odd`."""
    block, weights = made(block), made(weights)
    found = next_read(block, weights, task, ranges)
    samples = _columns(block, weights, task)
    for i, ((column, _), at) in enumerate(zip(task.quantiles(len(samples)), ranges, strict=True)):
        if not math.isnan(at.root):
            x, counts = samples[column]
            c = np.ones(x.size) if counts is None else counts
            for mirrored in (x, -x)[: 1 + task.reflect]:
                with np.errstate(over="ignore"):  # of the largest floats
                    distance = np.clip((at.root - mirrored) / task.h, -40.0, 40.0)
                share = 1.0 / (1.0 + np.exp(-distance))
                found.odd[i, 0] += c @ share
                found.odd[i, 1] += c @ (share * (1.0 - share)) / task.h
    return found


def solved(
    found: Counts,
    task: Task,
    ranges: list[Range],
    kept: tuple[int, ...],
    around: Counts | None = None,
) -> Array:
    """The quantiles, levels first."""
    answers = np.empty(len(ranges))
    for i, ((_, p), at) in enumerate(zip(task.quantiles(len(ranges) // len(task.levels)), ranges, strict=True)):
        beta = "auto" if task.h is None else 1.0 / task.h
        if at.is_missing:
            answers[i] = math.nan
        elif not math.isnan(at.root):
            sides = 1.0 + task.reflect
            share, slope = found.odd[i] / (sides * at.m)
            step = (share - ((1.0 + p) / 2.0 if task.reflect else p)) / slope if slope > 0.0 else 0.0
            answers[i] = np.clip(at.root - np.clip(step, -task.h, task.h), *at.ends)
        else:
            values, counts = found.held[i] if at.is_small else _means(found, i, at, around)
            answers[i] = solve(
                values, p, weights=None if (counts == 1.0).all() else counts, beta=beta, reflect=task.reflect
            )
    return np.moveaxis(answers.reshape(*kept, len(task.levels)), -1, 0)


def summed(parts: list[Any], addition: Callable[..., Any] = lambda some: sum(some[1:], some[0])) -> Any:
    """One delayed sum, by a tree."""
    add = dask.delayed(addition, pure=True, traverse=True)
    while len(parts) > 1:
        parts = [add(parts[i : i + FAN_IN]) for i in range(0, len(parts), FAN_IN)]
    return parts[0]


class Source:
    """A chunk that is made each time it is asked for."""

    def __init__(self, graph: dict[Any, Any], key: Any) -> None:
        self._graph, self._key = graph, key

    def load(self) -> Any:
        """The chunk."""
        return dask.get(self._graph, self._key)


def _is_work(node: Any) -> bool:
    return type(node).__name__ not in {"DataNode", "Future"} and callable(getattr(node, "func", node))


def sources(x: Any) -> NDArray[Any]:
    """The chunks in their grid: sources, or delayed ones where sources would repeat work of others."""
    delayed = np.asarray(x.to_delayed())
    held = dict(x.__dask_graph__()).values()
    if any(type(getattr(node, "value", node)).__module__.startswith("distributed") for node in held):
        return delayed  # a client keeps them already, and its own optimizer would take them for granted
    ready = x.optimize() if hasattr(x, "optimize") else dask.optimize(x)[0]  # frames know better
    graph = dict(ready.__dask_graph__())
    work = {key for key, node in graph.items() if _is_work(node)}
    parts = [(key, cull(graph, [key])[0]) for key in flatten(ready.__dask_keys__())]
    if sum(len(work & part.keys()) for _, part in parts) > len(work):
        return delayed
    made_anew = np.empty(len(parts), object)
    made_anew[:] = [Source(dict(part), key) for key, part in parts]
    return made_anew.reshape(delayed.shape)


def made(block: Any) -> Any:
    """A chunk, whichever way it comes."""
    return block.load() if isinstance(block, Source) else block


def three_reads(blocks: Sequence[Any], weights: Sequence[Any] | None, task: Task) -> tuple[Any, Any, Any]:
    """Delayed `Counts` of the last read of some blocks, the ranges they are for, and `Counts` of the read before."""
    first, second, third, plan_second, plan_third = (
        dask.delayed(f, pure=True) for f in (first_read, next_read, third_read, second_plan, third_plan)
    )
    pairs = list(zip(blocks, [None] * len(blocks) if weights is None else weights, strict=True))
    counts = summed([first(block, w, task) for block, w in pairs])
    ranges = plan_second(counts, task)
    around = summed([second(block, w, task, ranges) for block, w in pairs])
    ranges = plan_third(around, task, ranges)
    counts = summed([third(block, w, task, ranges) for block, w in pairs])
    return counts, ranges, around


def as_array(a: Any) -> Any:
    """A dask array of a dask array, series or frame."""
    return a.to_dask_array() if hasattr(a, "to_dask_array") else a


def quantile(a: Any, q: Any, axis: Any, weights: Any, beta: Any, reflect: bool, keepdims: bool) -> Any:
    """Lazy quantiles; see `pimeter.quantile`."""
    a = as_array(a)
    levels, shape, axes, h = settings(q, axis, a.ndim, beta)
    task = Task(tuple(levels), h, reflect)
    if a.dtype.kind not in "fiub":
        msg = f"a has dtype {a.dtype}; quantiles are for real numbers: convert it with a.astype(float)."
        raise TypeError(msg)
    width = a.dtype if a.dtype.kind == "f" and a.dtype.itemsize <= 8 else np.dtype(np.float64)
    others = tuple(i for i in range(a.ndim) if i not in axes)
    kept = tuple(a.shape[i] for i in others)
    if any(a.shape[i] == 0 for i in axes):
        msg = f"a has shape {a.shape}: no values along axis {axes}; a quantile needs at least one."
        raise ValueError(msg)
    k = math.prod(kept)
    if not levels:
        return da.zeros(shape + tuple(1 if i in axes else n for i, n in enumerate(a.shape) if keepdims or i in others))
    if math.isnan(k):
        msg = "a has chunks of unknown size along an axis that is kept; call a.compute_chunk_sizes() first."
        raise ValueError(msg)
    w = None if weights is None else _counts(weights, a, axes)
    is_long = k * len(levels) <= MOST and any(len(a.chunks[i]) > 1 for i in axes)
    if is_long or any(math.isnan(a.shape[i]) for i in axes):
        if k * len(levels) > MOST:
            msg = (
                f"a has chunks of unknown size and asks for {k * len(levels):,} quantiles; up to {MOST} are found so. "
                "Call a.compute_chunk_sizes() first."
            )
            raise ValueError(msg)
        flat = _assembled(a, w, others, replace(task, axes=axes))
    else:
        together = (
            {i: -1 if i in axes else "auto" for i in range(a.ndim)} if any(len(a.chunks[i]) > 1 for i in axes) else {}
        )
        x = a.rechunk(together) if together else a
        own = [] if w is None else [w.rechunk(x.chunks)]
        flat = da.map_blocks(
            _solve_block,
            x,
            *own,
            task=task,
            axes=axes,
            dtype=np.float64,
            drop_axis=list(axes),
            new_axis=0,
            chunks=((len(levels),), *(x.chunks[i] for i in others)),
        )
    flat = flat.astype(width)
    if keepdims:
        for i in axes:
            flat = da.expand_dims(flat, 1 + i)
    if len(shape) == 1:
        return flat
    return flat[0] if not shape else flat.reshape(shape + flat.shape[1:])


def _solve_block(x: Any, *weights: Any, task: Task, axes: tuple[int, ...]) -> Any:
    beta = "auto" if task.h is None else 1.0 / task.h
    own = weights[0] if weights else None
    return solve(x, list(task.levels), axes, weights=own, beta=beta, reflect=task.reflect)


def _assembled(a: Any, weights: Any, others: tuple[int, ...], task: Task) -> Any:
    """Three reads for each chunk of the axes that are kept."""
    order = others + task.axes
    blocks = sources(a).transpose(order)
    counts = None if weights is None else np.broadcast_to(sources(weights).transpose(order), blocks.shape)
    chunks = [a.chunks[i] for i in others]
    grid = np.empty(blocks.shape[: len(others)], object)
    for place in np.ndindex(grid.shape):
        kept = tuple(int(chunks[i][place[i]]) for i in range(len(others)))
        own = None if counts is None else list(np.ravel(counts[place]))
        found, ranges, around = three_reads(list(np.ravel(blocks[place])), own, task)
        answer = dask.delayed(solved, pure=True)(found, task, ranges, kept, around)
        grid[place] = da.from_delayed(answer, (len(task.levels), *kept), dtype=np.float64)
    return da.block(grid.tolist()) if others else grid[()]


def _counts(weights: Any, a: Any, axes: tuple[int, ...]) -> Any:
    """Weights as an array with the chunks of a."""
    is_lazy = type(weights).__module__.startswith("dask")
    w = as_array(weights) if is_lazy else da.asarray(np.asarray(weights, np.float64))
    is_one_each = w.ndim == 1 and a.ndim > 1 and len(axes) == 1
    if any(math.isnan(n) for n in (*w.shape, *a.shape)):
        if is_one_each:
            w = w[tuple(slice(None) if i == axes[0] else None for i in range(a.ndim))]
        if not is_lazy or w.ndim != a.ndim or any(w.numblocks[i] != a.numblocks[i] for i in axes):
            msg = (
                "chunks have unknown sizes: give weights as a dask collection with the same chunks as a, or call "
                "compute_chunk_sizes() of both first."
            )
            raise ValueError(msg)
        return w
    if is_one_each and w.size == a.shape[axes[0]]:
        w = da.broadcast_to(w.reshape([-1 if i == axes[0] else 1 for i in range(a.ndim)]), a.shape)
    if w.shape != a.shape:
        msg = (
            f"weights have shape {w.shape}; expected that of a, {a.shape}, or one weight for each value along one axis."
        )
        raise ValueError(msg)
    return w if w.chunks == a.chunks else w.rechunk(a.chunks)


def samples(errors: Any, weights: Any, task: Task) -> list[tuple[Array, Array, float]]:
    """For each column what stands for its errors near the one level, how often each counts, and the quantile."""
    x = as_array(errors)
    x = x if x.ndim == 1 or x.numblocks[1] == 1 else x.rechunk({1: -1})
    counts = None if weights is None else list(sources(_counts(weights, x, (0,))).ravel())
    found, at, around = dask.compute(*three_reads(list(sources(x).ravel()), counts, task))
    if any(one.is_missing or one.is_infinite for one in at):
        msg = "errors hold NaN or infinite values; a neuron learns from finite ones: drop such rows first."
        raise ValueError(msg)
    answers = solved(found, task, at, (len(at),), around)[0]
    means = [found.held[i] if one.is_small else _means(found, i, one, around) for i, one in enumerate(at)]
    return [(values, counts, float(w)) for (values, counts), w in zip(means, answers, strict=True)]
