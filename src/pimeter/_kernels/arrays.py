"""Quantiles of NumPy's arrays: bring samples into rows, hand them to the kernel."""

from __future__ import annotations

import math
import operator
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from pimeter import bandwidth
from pimeter._kernels.arguments import arguments, check_absolute, check_sample_counts, weights_shape
from pimeter._kernels.dispatch import kernel
from pimeter._kernels.reference import INFINITE, MISSING, even, hazen, in_order
from pimeter.arrays import real_array

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]

VALUES_FOR_THREADS = 200_000  # from so many on a second thread pays off


def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    *,
    weights: ArrayLike | None = None,
    beta: float | str = "auto",
    reflect: bool = False,
    keepdims: bool = False,
) -> Any:
    """Quantiles of an array along axes, as NumPy would shape them; `pimeter.quantile` documents the parameters."""
    values, width = _floats(a)
    asked = arguments(q, axis, values.ndim, beta)
    samples, kept_shape = _rows(values, asked.axes)
    if samples.shape[1] == 0:
        msg = f"a has shape {values.shape}: no values along axis {axis}; a quantile needs at least one."
        raise ValueError(msg)
    counts = None if weights is None else _counts(weights, values, asked.axes)
    if keepdims:
        kept_shape = tuple(1 if i in asked.axes else n for i, n in enumerate(values.shape))
    flat = checked_quantiles(samples, counts, asked.levels, asked.h, reflect).astype(width, copy=False)
    return flat.T.reshape(asked.shape + kept_shape)[()]


def checked_quantiles(
    samples: NDArray[Any], counts: Array | None, levels: ArrayLike, h: float | None, reflect: bool
) -> Array:
    """Quantiles of each row, (rows, levels), or what is wrong with its values."""
    if counts is not None:
        check_sample_counts(counts)
    if reflect:
        check_absolute(samples)
    # Adding 0 turns -0 into 0: equal values of which the one that came first would be the answer.
    return _quantiles(samples, counts, np.asarray(levels, np.float64), h, reflect) + 0.0


def _floats(a: ArrayLike) -> tuple[NDArray[np.floating], np.dtype[np.floating]]:
    """The values as floats, and the width of the result."""
    values = np.asanyarray(a)
    if isinstance(values, np.ma.MaskedArray):
        msg = "a is a masked array; pass a.compressed(), or weights that are 0 where it is masked."
        raise TypeError(msg)
    values = np.asarray(values)
    if values.dtype.kind not in "fiub":
        msg = f"a has dtype {values.dtype}; quantiles are for real numbers: convert it with a.astype(float)."
        raise TypeError(msg)
    if values.dtype.kind != "f" or values.dtype.itemsize > 8:
        values = values.astype(np.float64)
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    return values, values.dtype


def _rows(values: NDArray[Any], axes: tuple[int, ...]) -> tuple[NDArray[Any], tuple[int, ...]]:
    """One sample a row, contiguous, and the shape of the rest."""
    if len(axes) == values.ndim:
        return _contiguous(values).reshape(1, -1), ()
    others = tuple(i for i in range(values.ndim) if i not in axes)
    shape = tuple(values.shape[i] for i in others)
    length = math.prod(values.shape[i] for i in axes)
    return _contiguous(values.transpose(others + axes)).reshape(math.prod(shape), length), shape


def _contiguous(values: NDArray[Any]) -> NDArray[Any]:
    """Array in one piece, each value where the processor expects it: a view of bytes may begin anywhere."""
    rows = np.ascontiguousarray(values)
    return rows if rows.flags.aligned else rows.copy()


def _counts(weights: ArrayLike, values: NDArray[Any], axes: tuple[int, ...]) -> Array:
    """Weights as rows beside the samples."""
    counts: Array = real_array("weights", weights).astype(np.float64, copy=False)
    counts = np.broadcast_to(counts.reshape(weights_shape(counts.shape, values.shape, axes)), values.shape)
    return _rows(counts, axes)[0]


def _quantiles(samples: NDArray[Any], counts: Array | None, levels: Array, h: float | None, reflect: bool) -> Array:
    """Quantiles of each row, (rows, levels)."""
    if reflect:
        mirrored = np.concatenate([-samples, samples], axis=1)
        twice = None if counts is None else np.concatenate([counts, counts], axis=1)
        inner = _quantiles(mirrored, twice, (1.0 + levels) / 2.0, h, False)
        # The mirror image holds values below the smallest error, the sample does not.
        extremes = _quantiles(samples, counts, np.array([0.0, 1.0]), h, False)
        return np.where(levels == 0.0, extremes[:, :1], np.clip(inner, extremes[:, :1], extremes[:, 1:]))
    listed = levels.tolist()
    if not all(map(operator.lt, listed, listed[1:])):
        rising, back = np.unique(levels, return_inverse=True)
        return _quantiles(samples, counts, rising, h, reflect)[:, back]
    first, last = int(listed[:1] == [0.0]), levels.size - int(listed[-1:] == [1.0])
    middle = levels[first:last]
    if counts is None:
        inner = _each_row(samples, middle, h)
    else:
        inner = np.empty((len(samples), middle.size))
        for i, sample in enumerate(samples):
            inner[i] = _counted(sample, counts[i], middle, h)
    if middle.size == levels.size:
        return inner
    held = samples[None] if counts is None else np.where(counts > 0.0, samples, [[[np.inf]], [[-np.inf]]])
    lowest, highest = held[0].min(axis=1, keepdims=True), held[-1].max(axis=1, keepdims=True)
    return np.concatenate([*[lowest] * first, inner, *[highest] * (levels.size - last)], axis=1)


def _each_row(samples: NDArray[Any], levels: Array, h: float | None) -> Array:
    """Each row as it is, by the rule or with a bandwidth of the caller's."""
    if not levels.size:
        return np.empty((len(samples), 0))
    if samples.dtype == np.float16:
        samples = samples.astype(np.float64)
    n_threads = _n_threads(samples.size)
    out: Array
    if h is None:
        out, status = kernel.automatic_rows(samples, levels, n_threads)
    else:
        out, status = kernel.fixed_rows(samples, levels, h, n_threads)
    if status is not None:
        out[status == MISSING] = np.nan
        for i in np.flatnonzero(status == INFINITE):
            out[i] = np.quantile(samples[i].astype(np.float64), levels, method="inverted_cdf")
    return out


def _counted(sample: NDArray[Any], counts: Array, levels: Array, h: float | None) -> Array:
    """One sample with counts."""
    x, counts = sample.astype(np.float64)[counts > 0.0], counts[counts > 0.0]
    if np.isnan(x).any():
        return np.full(levels.size, np.nan)
    x, counts = in_order(x, counts)
    if np.isinf(x).any():
        cumulative = np.cumsum(counts)
        at: Array = x[np.minimum(np.searchsorted(cumulative, levels * cumulative[-1]), x.size - 1)]
        return at
    found: Array
    if h is not None:
        found = kernel.fixed_weighted(x, counts, levels, h, hazen(x, counts, levels))
        return found
    factor = bandwidth.safe_factor(float(np.abs(x).max()))
    found = kernel.weighted_rows(x * factor, counts[None], float(counts.sum()), levels)[0] / factor
    return np.clip(found, x[0], x[-1])


def grouped_quantiles(
    values: NDArray[Any],
    codes: NDArray[np.integer[Any]],
    n: int,
    levels: list[float],
    beta: float | str,
    reflect: bool,
) -> Array:
    """Quantiles of n groups, (groups, levels); groups of equal length are rows of one array."""
    order = np.argsort(codes, kind="stable")
    lengths = np.bincount(codes, minlength=n)
    starts = np.cumsum(lengths) - lengths
    flat = np.empty((n, len(levels)))
    for length in np.unique(lengths):
        equal = np.flatnonzero(lengths == length)
        samples = values[order[starts[equal][:, None] + np.arange(length)]]
        flat[equal] = np.asarray(quantile(samples, levels, 1, beta=beta, reflect=reflect)).T
    return flat


def nearby_quantiles(x: Array, nearness: Array, levels: Array) -> Array:
    """Quantiles of one sample for many places, each with a nearness to every value of its own.

    Parameters
    ----------
    x : ndarray of shape (m,)
        Finite values in rising order.
    nearness : ndarray of shape (n, m)
        Weights of the values at each place, at least one of them positive. They carry ratios only and are turned into
        counts here, in place: their sum is the effective number of values, to two digits.
    levels : ndarray of shape (L,)
        Rising levels.

    Returns
    -------
    ndarray of shape (n, L)
    """
    total = nearness.sum(axis=1)
    effective = total * total / np.einsum("ij,ij->i", nearness, nearness)
    unit = 10.0 ** np.maximum(np.floor(np.log10(effective)) - 1.0, 0.0)
    m = np.maximum(np.round(effective / unit) * unit, 1.0)  # few distinct ones: each has its knots
    nearness *= (m / total)[:, None]
    out = np.empty((len(m), levels.size))
    factor = bandwidth.safe_factor(float(np.abs(x[[0, -1]]).max()))
    sample, nearness = x * factor, even(x, nearness)
    for size in np.unique(m):
        rows = np.flatnonzero(m == size)
        out[rows] = kernel.weighted_rows(sample, nearness[rows], float(size), levels, _n_threads(rows.size * x.size))
    return np.clip(out / factor, x[0], x[-1])


def _n_threads(n_values: int) -> int:
    """Number of threads: as many as there are cores, if there is work for more than one."""
    if n_values < VALUES_FOR_THREADS:
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
