"""Three reads of the data: what each counts in a chunk, which bins the next one cuts, and the quantiles in the end.

Nothing here knows of dask but that a chunk may be a `Source`: partial results are `Counts`, which merge by addition.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pimeter import bandwidth
from pimeter._kernels.arguments import check_absolute, check_counts
from pimeter._kernels.arrays import quantile as solve
from pimeter._kernels.dask.bins import BINS, MAX_SMALL, Counts, Range, Task, codes_of, cut
from pimeter._kernels.dask.sources import Source, made

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Chunk = Array | Source | list[Array]  # values, what makes them, or samples as such

FINE_BINS, MAX_BINS = 2**17, 2**18  # of the second and third read, for one quantile and for all, but at least BINS
SUPPORT = 41.0  # bandwidths from a root beyond which an error only counts
ERRORS_AT_ONCE = 2**15  # that are put into bins: they stay in the cache
MARGIN, NEIGHBOURS = 1.0, 6  # counted, too, on either side: as many errors as are relevant, and so many bins beyond
_OUTWARD = np.array([-1, 1])


def _columns(block: Chunk, weights: Chunk | None, task: Task) -> list[tuple[Array, Array | None]]:
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
    check_counts(w)
    return [(a[b > 0.0], b[b > 0.0]) for a, b in zip(x.T, w.T, strict=True)]


def _total(counts: Array | None, which: NDArray[np.bool_]) -> float:
    return float(np.count_nonzero(which) if counts is None else counts[which].sum())


def first_read(block: Chunk, weights: Chunk | None, task: Task) -> Counts:
    """Counts by leading bits; once for each sample."""
    samples = _columns(block, weights, task)
    if task.reflect:
        for x, _ in samples:
            check_absolute(x)
    k = len(samples)
    bins, extremes, odd = np.zeros((k, BINS)), np.full((2, k, BINS), np.inf), np.zeros((k, 2))
    for i, sample in enumerate(samples):
        x, counts = sample
        missing = np.isnan(x)
        odd[i] = _total(counts, missing), _total(counts, np.isinf(x))
        if missing.any():
            x, counts = x[~missing], None if counts is None else counts[~missing]
        codes = codes_of(x)
        bins[i] = np.bincount(codes, counts, BINS)
        np.minimum.at(extremes[0, i], codes, x)
        np.minimum.at(extremes[1, i], codes, -x)
    return Counts(np.zeros(k), bins, np.zeros((k, 0)), extremes, odd)


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
        last_ranks, (low, high) = np.cumsum(bins), found.extremes[:, column] * [[1.0], [-1.0]]
        outer = (float(low[used[0]]), float(high[used[-1]])) if used.size else (0.0, 0.0)
        n_bins = int(np.clip(MAX_BINS // (len(found.bins) * len(task.levels)), BINS, FINE_BINS))
        at = Range(m, outer, n_bins, is_missing=missing > 0.0, is_infinite=infinite > 0.0)
        finite = used[np.isfinite(low[used])]
        if missing > 0.0 or m <= MAX_SMALL or not finite.size:
            ranges.append(at)
            continue
        if task.h is None or not 0.0 < p < 1.0 or infinite > 0.0:
            ranks = _ranks(task, m, p)
            untied = np.cumsum(np.where(high > low, bins, 0.0))  # ties have no length on the map
            near = untied[np.minimum(np.searchsorted(last_ranks, ranks), BINS - 1)]
            near = near + MARGIN * (ranks[1] - ranks[0]) * _OUTWARD
            places = np.searchsorted(finite, np.searchsorted(untied, near))
            first, last = finite[np.clip(places + NEIGHBOURS * _OUTWARD, 0, finite.size - 1)]
            at = replace(at, low=float(low[first]), high=float(high[last]))
        else:
            beta = 1.0 / task.h
            roots = [solve(x[used], p, weights=bins[used], beta=beta, reflect=task.reflect) for x in (low, high)]
            ranks, margin = (0.0, m), SUPPORT * task.h
            at = replace(at, low=max(float(roots[0] - margin), outer[0]), high=min(float(roots[1] + margin), outer[1]))
            first, last = codes_of(np.array([at.low, at.high]))
        inner = slice(first, last + 1)
        start = np.where(bins[inner] > 0.0, low[inner], 0.0)
        width = np.where(bins[inner] > 0.0, high[inner] - start, 0.0)
        grid = cut(int(first), start, width, bins[inner], _n_relevant(last_ranks, bins, ranks)[inner], n_bins)
        ranges.append(replace(at, grids=(grid,)))
    return ranges


def _n_relevant(last_ranks: Array, bins: Array, ranks: tuple[float, float]) -> Array:
    """How many errors of each bin are among some ranks, given the rank of the last error in each."""
    inside = np.minimum(last_ranks, ranks[1]) - np.maximum(last_ranks - bins, ranks[0] - 1.0)
    return np.asarray(np.maximum(inside, 0.0))


def _ranks(task: Task, m: float, p: float) -> tuple[float, float]:
    """First and last rank of the errors that matter at level p of a large sample; a few to spare."""
    if task.reflect:
        low, high = _ranks(replace(task, reflect=False), 2.0 * m, (1.0 + p) / 2.0)
        return max(abs(low - m) if low < m else low - m, 1.0) if low >= m else 1.0, max(high - m, m - low)
    if not 0.0 < p < 1.0:
        return (1.0, 2.0) if p == 0.0 else (m - 1.0, m)
    level = bandwidth.knots(m).level
    first, last = bandwidth.near(m, p)
    return max(level[first] * m - 2.0, 1.0), min(level[last + 2 * bandwidth.KNOTS] * m + 2.0, m)


def next_read(block: Chunk, weights: Chunk | None, task: Task, ranges: list[Range]) -> Counts:
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
            blocks = [slice(start, start + ERRORS_AT_ONCE) for start in range(0, max(x.size, 1), ERRORS_AT_ONCE)]
            placed = [_placed(x[block], None if counts is None else counts[block], at) for block in blocks]
            place, part, own = (np.concatenate(some) for some in zip(*placed, strict=True))
            bins[i] = np.bincount(place, None if counts is None else own, n_bins)
            sums[i] = np.bincount(place, part, n_bins)
    return Counts(below, bins, sums, np.zeros((2, q, 0)), np.zeros((q, 2)), tuple(held))


def _placed(x: Array, counts: Array | None, at: Range) -> tuple[NDArray[np.intp], Array, Array]:
    """Finest bins of errors that have one, where in them times how often they count, and how often they count."""
    inside = np.flatnonzero((x >= at.low) & (x <= at.high))
    x, own = x.take(inside), x[:0] if counts is None else counts.take(inside)
    place, part = at.grids[0].places(x, codes_of(x))
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
            values, counts = means_of(found, i, at)
            root = solve(values, p, weights=counts, beta=1.0 / task.h, reflect=task.reflect)
            plan.append(replace(at, root=float(root)))
    return plan


def _finer(below: float, bins: Array, at: Range, ranks: tuple[float, float]) -> Range:
    """Bins of the second read of some ranks, and one to either side, cut once more."""
    start, width = at.grids[0].starts()
    bins = bins[: start.size]
    last_ranks = below + np.cumsum(bins)
    first, last = np.clip(np.searchsorted(last_ranks, ranks) + _OUTWARD, 0, start.size - 1)
    inner = slice(first, last + 1)
    grid = cut(
        int(first), start[inner], width[inner], bins[inner], _n_relevant(last_ranks, bins, ranks)[inner], at.n_bins
    )
    low, high = start[first] - width[first], start[last] + 2.0 * width[last]  # rounding may put errors a bin beyond
    return replace(
        at,
        low=max(float(np.nextafter(low, -np.inf)), at.low),
        high=min(float(np.nextafter(high, np.inf)), at.high),
        grids=(*at.grids, grid),
    )


def means_of(found: Counts, i: int, at: Range, around: Counts | None = None) -> tuple[Array, Array]:
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
    outer = np.array([-np.inf, np.inf]) if at.is_infinite else np.nextafter(beyond, [-np.inf, np.inf])
    x = np.concatenate([outer[:1], x, outer[1:]])
    counts = np.concatenate([[below], counts, [above]])
    return x[counts > 0.0], counts[counts > 0.0]


def third_read(block: Chunk, weights: Chunk | None, task: Task, ranges: list[Range]) -> Counts:
    """Counts within the ranges, as `next_read` has them; around a root, the sums of Newton's method in `odd`."""
    block, weights = made(block), made(weights)
    found = next_read(block, weights, task, ranges)
    samples = _columns(block, weights, task)
    for i, ((column, _), at) in enumerate(zip(task.quantiles(len(samples)), ranges, strict=True)):
        if task.h is not None and not math.isnan(at.root):
            x, counts = samples[column]
            c = np.ones(x.size) if counts is None else counts
            for mirrored in (x, -x)[: 1 + task.reflect]:
                with np.errstate(over="ignore"):  # of the largest floats
                    distance = np.clip((at.root - mirrored) / task.h, -40.0, 40.0)
                output = 1.0 / (1.0 + np.exp(-distance))
                found.odd[i, 0] += c @ output
                found.odd[i, 1] += c @ (output * (1.0 - output)) / task.h
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
        elif task.h is not None and not math.isnan(at.root):
            sides = 1.0 + task.reflect
            output, slope = found.odd[i] / (sides * at.m)
            step = (output - ((1.0 + p) / 2.0 if task.reflect else p)) / slope if slope > 0.0 else 0.0
            answers[i] = np.clip(at.root - np.clip(step, -task.h, task.h), *at.extremes)
        else:
            values, counts = found.held[i] if at.is_small else means_of(found, i, at, around)
            answers[i] = solve(
                values, p, weights=None if (counts == 1.0).all() else counts, beta=beta, reflect=task.reflect
            )
    return np.moveaxis(answers.reshape(*kept, len(task.levels)), -1, 0)
