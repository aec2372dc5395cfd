"""`quantile`: validate, choose the kernel by the array's type, run."""

from __future__ import annotations

import ctypes
import math
import operator
import os
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise
from numbers import Real
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pimeter import bandwidth
from pimeter._kernels.reference import even, hazen, in_order
from pimeter.arrays import real_array

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]

MISSING, INFINITE = 1, 2  # what a kernel says of a row
MOST = 1e15  # values that counts stand for: beyond, floats no longer count one by one, and rulers get too long
MANY = 200_000  # values from which on rows are worth a second thread
BLOCK = 50_000  # values of rows that are put in order together


@lru_cache(maxsize=1)
def _load_kernel() -> Any:
    """The compiled kernel, or the plain one where numba is missing."""
    try:
        from pimeter._kernels import compiled
    except ModuleNotFoundError as missing:
        if missing.name != "numba":
            raise
        from pimeter._kernels import reference

        return reference.Kernel(bandwidth)
    return compiled.Kernel(bandwidth)


_loading = Lock()


def array_kernel() -> Any:
    """The kernel for NumPy's arrays."""
    with _loading:  # many threads that come first compile once
        return _load_kernel()


def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    *,
    weights: ArrayLike | None = None,
    beta: float | Literal["auto"] = "auto",
    reflect: bool = False,
    keepdims: bool = False,
) -> Any:
    """Quantiles by a single neuron: more accurate than ranking, in `numpy.quantile`'s calling convention.

    Parameters
    ----------
    a : array
        The sample, or samples along `axis`. float16, 32 and 64 give the same width back, integers float64.
    q : float or array of float
        Levels in [0, 1]; 0 and 1 are the minimum and the maximum. The result has the shape of `q` first.
    axis : int, tuple of int or None
        Where the sample lies; None takes all values as one sample.
    weights : array, optional
        **Counts**, as many as values along `axis` or of the shape of `a`: 2 equals the value twice, 0 removes it;
        fractions are allowed.
    beta : "auto" or float
        How sharply the neuron distinguishes: "auto" follows the sample (`pimeter.bandwidth`), so that the quantile
        scales and shifts with it and quantiles of different levels never cross. A number is the paper's beta in the
        sample's own unit: the root of `mean sigmoid(beta (w - a)) = q`, whatever that means for the unit at hand.
    reflect : bool
        The values are absolute errors, whose density goes on below 0 as its mirror image.
    keepdims : bool
        Keep the reduced axes with length 1.

    Returns
    -------
    float or array
        NaN for a sample that holds NaN. Of a sample with infinities, which have no distance to others, a value is
        taken: numpy's "inverted_cdf".

    Notes
    -----
    A higher level never gives a lower quantile, whether asked for in one call or in two (but for rounding, 1e-12 of the
    sample's range), and each level gives the same bits however many others are asked for.

    Examples
    --------
    >>> import numpy as np
    >>> errors = np.random.default_rng(0).standard_normal(200)
    >>> print(round(quantile(errors, 0.9), 2))
    1.3
    >>> quantile(errors.reshape(4, 50), [0.5, 0.9], axis=1).shape
    (2, 4)
    """
    library = type(a).__module__.partition(".")[0]
    if library == "torch":
        _load_tensor_kernel()
        return _tensor_kernel[0].quantile(a, q, axis, weights, beta, reflect, keepdims)
    if library == "dask":
        return _lazy_quantile(a, q, axis, weights, beta, reflect, keepdims)
    values, width = _floats(a)
    levels = _levels(q)
    h = _bandwidth(beta)
    axes = _axes(axis, values.ndim)
    samples, kept_shape = _rows(values, axes)
    if samples.shape[1] == 0:
        msg = f"a has shape {values.shape}: no values along axis {axis}; a quantile needs at least one."
        raise ValueError(msg)
    counts = None if weights is None else _counts(weights, values, axes)
    if keepdims:
        kept_shape = tuple(1 if i in axes else n for i, n in enumerate(values.shape))
    flat = _checked_quantiles(samples, counts, levels.reshape(-1), h, reflect).astype(width, copy=False)
    return flat.T.reshape(levels.shape + kept_shape)[()]


def _lazy_quantile(
    a: Any, q: ArrayLike, axis: Any, weights: Any, beta: float | str, reflect: bool, keepdims: bool
) -> Any:
    """Of a dask array, series or frame."""
    from pimeter._kernels import dask

    a = dask.as_array(a)
    levels, shape, axes, h = settings(q, axis, a.ndim, beta)
    task = dask.Task(tuple(levels), h, reflect, bandwidth, quantile)
    return dask.quantile(a, levels, shape, axes, weights, keepdims, task)


def _load_tensor_kernel() -> bool:
    with _loading:
        if not _tensor_kernel:
            from pimeter._kernels import torch

            _tensor_kernel.append(torch.Kernel(bandwidth, settings, _checked_quantiles))
    return True


_tensor_kernel: list[Any] = []
_load_tensor_kernel._dynamo_marked_constant = True  # type: ignore[attr-defined] # torch.compile calls, not traces it


def settings(
    q: ArrayLike, axis: int | tuple[int, ...] | None, ndim: int, beta: float | str
) -> tuple[list[float], tuple[int, ...], tuple[int, ...], float | None]:
    """Levels and their shape, axes and bandwidth, as plain numbers."""
    levels = _levels(q)
    return levels.reshape(-1).tolist(), levels.shape, _axes(axis, ndim), _bandwidth(beta)


def _checked_quantiles(
    samples: NDArray[Any], counts: Array | None, levels: ArrayLike, h: float | None, reflect: bool
) -> Array:
    """Quantiles of each row, (rows, levels), or what is wrong with its values."""
    if counts is not None:
        if not (np.isfinite(counts) & (counts >= 0.0)).all():
            msg = "weights are counts: finite and at least 0; got a negative, infinite or missing one."
            raise ValueError(msg)
        with np.errstate(over="ignore"):
            totals = counts.sum(axis=1)
        if (totals > MOST).any():
            msg = f"weights are counts, of {MOST:g} values at most; they add up to {totals.max():g}. Make them smaller."
            raise ValueError(msg)
        if not (totals > 0.0).all():
            msg = "weights are 0 for a whole sample; a quantile needs at least one value that counts."
            raise ValueError(msg)
    if reflect and (samples < 0).any():
        msg = "reflect=True takes absolute errors, but a holds negative values; pass np.abs(a) or reflect=False."
        raise ValueError(msg)
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


def _levels(q: ArrayLike) -> Array:
    levels: Array = real_array("q", q).astype(np.float64, copy=False)
    if levels.size and not (levels.min() >= 0.0 and levels.max() <= 1.0):
        msg = f"q must lie in [0, 1]; got {q!r}. For per cent divide by 100."
        raise ValueError(msg)
    return levels


def _bandwidth(beta: float | str) -> float | None:
    """The bandwidth 1/beta; None for the rule."""
    if isinstance(beta, str):
        if beta == "auto":
            return None
    elif isinstance(beta, Real) and 0.0 < beta < np.inf:
        return 1.0 / float(beta)
    msg = f'beta must be "auto" or a positive number in the unit of 1/a; got {beta!r}.'
    raise ValueError(msg)


def _axes(axis: int | tuple[int, ...] | None, ndim: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(ndim))
    try:
        given = [operator.index(one) for one in (axis if isinstance(axis, tuple | list) else (axis,))]
    except TypeError as wrong:
        msg = f"axis must be a whole number, a tuple of them or None; got {axis!r}."
        raise TypeError(msg) from wrong
    for one in given:
        if not -ndim <= one < ndim:
            raise np.exceptions.AxisError(one, ndim)
    axes = tuple(one % ndim for one in given)
    if len(set(axes)) < len(axes):
        msg = f"repeated axis: axis={axis!r} names one twice."
        raise ValueError(msg)
    return axes


def _rows(values: NDArray[Any], axes: tuple[int, ...]) -> tuple[NDArray[Any], tuple[int, ...]]:
    """One sample a row, contiguous, and the shape of the rest."""
    if len(axes) == values.ndim:
        return np.ascontiguousarray(values).reshape(1, -1), ()
    others = tuple(i for i in range(values.ndim) if i not in axes)
    shape = tuple(values.shape[i] for i in others)
    length = math.prod(values.shape[i] for i in axes)
    return np.ascontiguousarray(values.transpose(others + axes)).reshape(math.prod(shape), length), shape


def _counts(weights: ArrayLike, values: NDArray[Any], axes: tuple[int, ...]) -> Array:
    """Weights as rows beside the samples."""
    counts: Array = real_array("weights", weights).astype(np.float64, copy=False)
    if counts.shape != values.shape:
        if counts.ndim != 1 or len(axes) != 1 or counts.size != values.shape[axes[0]]:
            msg = (
                f"weights have shape {counts.shape}; expected that of a, {values.shape}, or one weight for each value "
                "along one axis."
            )
            raise ValueError(msg)
        shape = [1] * values.ndim
        shape[axes[0]] = counts.size
        counts = np.broadcast_to(counts.reshape(shape), values.shape)
    return _rows(counts, axes)[0]


def _quantiles(samples: NDArray[Any], counts: Array | None, levels: Array, h: float | None, reflect: bool) -> Array:
    """Quantiles of each row, (rows, levels)."""
    if reflect:
        mirrored = np.concatenate([-samples, samples], axis=1)
        twice = None if counts is None else np.concatenate([counts, counts], axis=1)
        inner = _quantiles(mirrored, twice, (1.0 + levels) / 2.0, h, False)
        # The mirror image holds values below the smallest error, the sample does not.
        ends = _quantiles(samples, counts, np.array([0.0, 1.0]), h, False)
        return np.where(levels == 0.0, ends[:, :1], np.clip(inner, ends[:, :1], ends[:, 1:]))
    if not (levels.size == 1 or (levels[1:] > levels[:-1]).all()):
        rising, back = np.unique(levels, return_inverse=True)
        return _quantiles(samples, counts, rising, h, reflect)[:, back]
    first, last = (int(levels[0] == 0.0), levels.size - int(levels[-1] == 1.0)) if levels.size else (0, 0)
    middle = levels[first:last]
    if counts is None:
        inner = _each_row(samples, middle) if h is None else _fixed_rows(samples, middle, h)
    else:
        inner = np.empty((len(samples), middle.size))
        for i, sample in enumerate(samples):
            inner[i] = _counted(sample, counts[i], middle, h)
    if middle.size == levels.size:
        return inner
    held = samples[None] if counts is None else np.where(counts > 0.0, samples, [[[np.inf]], [[-np.inf]]])
    lowest, highest = held[0].min(axis=1, keepdims=True), held[-1].max(axis=1, keepdims=True)
    return np.concatenate([*[lowest] * first, inner, *[highest] * (levels.size - last)], axis=1)


def _each_row(samples: NDArray[Any], levels: Array) -> Array:
    """The rule on each row as it is, blocks of rows in threads."""
    kernel = array_kernel()
    out = np.empty((len(samples), levels.size))
    if not levels.size:
        return out
    if samples.dtype == np.float16 or samples.shape[1] <= bandwidth.LARGE:  # no need to compile for each width
        samples = samples.astype(np.float64, copy=False)
    samples = unlocked(samples)
    if samples.size < MANY or len(samples) == 1:
        status = kernel.automatic_rows(samples, levels, out)
    else:
        edges = np.linspace(0, len(samples), 4 * _n_threads() + 1).astype(int)
        blocks = [slice(a, b) for a, b in pairwise(edges) if a < b]
        tasks = [_pool().submit(kernel.automatic_rows, samples[block], levels, out[block]) for block in blocks]
        status = np.concatenate([task.result() for task in tasks])
    if status.any():
        out[status == MISSING] = np.nan
        for i in np.flatnonzero(status == INFINITE):
            out[i] = np.quantile(samples[i].astype(np.float64), levels, method="inverted_cdf")
    return out


def unlocked(x: NDArray[Any]) -> NDArray[Any]:
    """The same memory, not marked read-only: kernels do not write in it, but numba would compile for it once more."""
    if x.flags.writeable or not x.size:
        return x
    memory = (ctypes.c_char * x.nbytes).from_address(x.ctypes.data)
    return np.frombuffer(memoryview(memory), x.dtype).reshape(x.shape)


def _fixed_rows(samples: NDArray[Any], levels: Array, h: float) -> Array:
    """Each row with a bandwidth of the caller's, rows in threads.

    Rows are put in order first: sums in another order round differently, and in a gap between errors, where the share
    is all but flat, that moves the root by far more than its last bits.
    """
    out, n = np.empty((len(samples), levels.size)), samples.shape[1]
    if not levels.size:
        return out
    ranks = np.clip(levels * n - 0.5, 0.0, n - 1.0)
    first = ranks.astype(np.intp)
    after = np.minimum(first + 1, n - 1)
    kernel = array_kernel()

    def solve(start: int) -> None:
        block = np.sort(samples[start : start + step].astype(np.float64), axis=1)
        low, high = block[:, 0], block[:, -1]  # NaN are last
        with np.errstate(over="ignore", invalid="ignore"):
            gap = block[:, after] - block[:, first]
            guess = block[:, first] + np.where(np.isinf(gap), 0.0, (ranks - first) * gap)
        is_finite, found = np.isfinite(low) & np.isfinite(high), out[start : start + step]
        found[is_finite] = kernel.fixed_rows(block[is_finite], levels, h, guess[is_finite])
        for i in np.flatnonzero(~is_finite):
            found[i] = np.nan if np.isnan(high[i]) else np.quantile(block[i], levels, method="inverted_cdf")

    step = max(1, min(math.ceil(len(samples) / (4 * _n_threads())), BLOCK // n))
    starts = range(0, len(samples), step)
    if samples.size < MANY or len(samples) == 1:
        for start in starts:
            solve(start)
    else:
        for task in [_pool().submit(solve, start) for start in starts]:
            task.result()
    return out


def _counted(sample: NDArray[Any], counts: Array, levels: Array, h: float | None) -> Array:
    """One sample with counts."""
    x, counts = sample.astype(np.float64)[counts > 0.0], counts[counts > 0.0]
    if np.isnan(x).any():
        return np.full(levels.size, np.nan)
    x, counts = in_order(x, counts)
    if np.isinf(x).any():
        ends = np.cumsum(counts)
        at: Array = x[np.minimum(np.searchsorted(ends, levels * ends[-1]), x.size - 1)]
        return at
    if h is not None:
        return np.asarray(array_kernel().fixed(x, counts, levels, h, hazen(x, counts, levels)))
    factor = bandwidth.safe_factor(float(np.abs(x).max()))
    found: Array = array_kernel().automatic(x * factor, counts, levels) / factor
    return np.clip(found, x[0], x[-1])


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
    m = np.maximum(np.round(effective / unit) * unit, 1.0)  # few distinct ones: each has its ruler
    nearness *= (m / total)[:, None]
    out = np.empty((len(m), levels.size))
    factor = bandwidth.safe_factor(float(np.abs(x[[0, -1]]).max()))
    sample, nearness = x * factor, even(x, nearness)
    tasks = [
        _pool().submit(_nearby, sample, nearness, rows, float(size), levels, out)
        for size in np.unique(m)
        for rows in np.array_split(np.flatnonzero(m == size), _n_threads())
    ]
    for task in tasks:
        task.result()
    return np.clip(out / factor, x[0], x[-1])


def _nearby(x: Array, nearness: Array, rows: NDArray[np.intp], m: float, levels: Array, out: Array) -> None:
    """Places of one effective number of values."""
    found = np.empty((len(rows), levels.size))
    array_kernel().weighted_rows(x, nearness[rows], m, levels, found)
    out[rows] = found


def _n_threads() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_n_threads(), thread_name_prefix="pimeter")


def _forget_threads() -> None:
    """A forked child has none of its parent's threads, which may hold a lock for ever."""
    global _loading  # noqa: PLW0603
    _pool.cache_clear()
    _loading = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)
