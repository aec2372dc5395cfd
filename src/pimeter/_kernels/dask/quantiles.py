"""`quantile` of dask arrays, series and frames: three reads, or one where samples are short."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import dask
import dask.array as da
import numpy as np

from pimeter._kernels.arguments import arguments, weights_shape
from pimeter._kernels.arrays import quantile as solve
from pimeter._kernels.dask.bins import Task
from pimeter._kernels.dask.reads import first_read, means_of, next_read, second_plan, solved, third_plan, third_read
from pimeter._kernels.dask.sources import as_array, sources, summed

if TYPE_CHECKING:
    from dask.delayed import Delayed
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]

MAX_QUANTILES = 256  # samples times levels, up to which the data is read three times


class LazySample(NamedTuple):
    """What stands for the errors of a column near one level."""

    errors: Array
    counts: Array  # how often each counts
    quantile: float


def three_reads(
    blocks: Sequence[object], weights: Sequence[object] | None, task: Task
) -> tuple[Delayed, Delayed, Delayed]:
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


def quantile(
    a: da.Array,
    q: ArrayLike,
    axis: int | tuple[int, ...] | None,
    weights: da.Array | ArrayLike | None,
    beta: float | str,
    reflect: bool,
    keepdims: bool,
) -> da.Array:
    """Lazy quantiles of a dask array, series or frame, with the arguments of `pimeter.quantile`."""
    a = as_array(a)
    asked = arguments(q, axis, a.ndim, beta)
    levels, shape, axes = asked.levels, asked.shape, asked.axes
    task = Task(tuple(levels), asked.h, reflect)
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
    is_long = k * len(levels) <= MAX_QUANTILES and any(len(a.chunks[i]) > 1 for i in axes)
    if is_long or any(math.isnan(a.shape[i]) for i in axes):
        if k * len(levels) > MAX_QUANTILES:
            msg = (
                f"a has chunks of unknown size and asks for {k * len(levels):,} quantiles; up to {MAX_QUANTILES} are "
                "found so. Call a.compute_chunk_sizes() first."
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


def _solve_block(x: Array, *weights: Array, task: Task, axes: tuple[int, ...]) -> Array:
    beta = "auto" if task.h is None else 1.0 / task.h
    own = weights[0] if weights else None
    found: Array = solve(x, list(task.levels), axes, weights=own, beta=beta, reflect=task.reflect)
    return found


def _assembled(a: da.Array, weights: da.Array | None, others: tuple[int, ...], task: Task) -> da.Array:
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


def _counts(weights: da.Array | ArrayLike, a: da.Array, axes: tuple[int, ...]) -> da.Array:
    """Weights as an array with the chunks of a."""
    is_lazy = type(weights).__module__.startswith("dask")
    w = as_array(weights) if is_lazy else da.asarray(np.asarray(weights, np.float64))
    is_one_each = w.ndim == 1 and a.ndim > 1 and len(axes) == 1
    if any(math.isnan(n) for n in (*w.shape, *a.shape)):
        if is_one_each:
            w = w[tuple(slice(None) if i == axes[0] else None for i in range(a.ndim))]
        if not is_lazy or w.ndim != a.ndim or any(w.numblocks[i] != a.numblocks[i] for i in axes):
            msg = (
                "chunks have unknown lengths: give weights as a dask collection with the same chunks as a, or call "
                "compute_chunk_sizes() of both first."
            )
            raise ValueError(msg)
        return w
    w = da.broadcast_to(w.reshape(weights_shape(w.shape, a.shape, axes)), a.shape)
    return w if w.chunks == a.chunks else w.rechunk(a.chunks)


def samples(errors: da.Array, weights: da.Array | ArrayLike | None, task: Task) -> list[LazySample]:
    """What stands for the errors of each column near the one level."""
    x = as_array(errors)
    x = x if x.ndim == 1 or x.numblocks[1] == 1 else x.rechunk({1: -1})
    counts = None if weights is None else list(sources(_counts(weights, x, (0,))).ravel())
    found, at, around = dask.compute(*three_reads(list(sources(x).ravel()), counts, task))
    if any(one.is_missing or one.is_infinite for one in at):
        msg = "errors hold NaN or infinite values; a neuron learns from finite ones: drop such rows first."
        raise ValueError(msg)
    answers = solved(found, task, at, (len(at),), around)[0]
    means = [found.held[i] if one.is_small else means_of(found, i, one, around) for i, one in enumerate(at)]
    return [LazySample(values, counts, float(w)) for (values, counts), w in zip(means, answers, strict=True)]
