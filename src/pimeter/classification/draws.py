"""A number between 0 and 1 for each row, made from a seed and the row itself: neither batch nor order matter."""

from __future__ import annotations

import hashlib
from numbers import Real
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from scipy.sparse import issparse

from pimeter.arrays import even_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

# The constants of splitmix64, whose last steps mix the bits.
STEP, FIRST, SECOND = (np.uint64(c) for c in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
MISSING = {"None", "nan", "NaT", "<NA>"}  # what stands for no value in columns of objects
BITS = np.uint64(11)  # 53 of 64 make a float


def row_draws(X: Any, seed: int) -> Array:
    """Draws in [0, 1), one per row; equal rows have the same one.

    Parameters
    ----------
    X : frame, array, sparse matrix or list, of n rows
        Numbers count by value, whatever their type; everything else by its text.
    seed : int
        Another seed gives other draws.

    Examples
    --------
    >>> from pimeter.classification.draws import row_draws
    >>> row_draws([[1.0, 2.0], [3.0, 4.0]], 0).round(3)
    array([0.422, 0.208])
    >>> row_draws([[3, 4]], 0).round(3)
    array([0.208])
    """
    columns = _columns(X)
    state = np.full(len(columns[0]), np.uint64(seed))
    with np.errstate(over="ignore"):
        for column in columns:
            state = _mixed(state * FIRST + column + STEP)
    return np.asarray((state >> BITS) * 2.0**-53)


def _mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    x = (x ^ (x >> np.uint64(30))) * FIRST
    x = (x ^ (x >> np.uint64(27))) * SECOND
    return x ^ (x >> np.uint64(31))


def _columns(X: Any) -> list[NDArray[np.uint64]]:
    """Columns as 64 bits each."""
    if issparse(X) and hasattr(X, "tocsr"):
        rows = X.tocsr(copy=True).astype(np.float64)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        marks = [
            np.concatenate([rows.indices[a:b], rows.data[a:b]]).tobytes()
            for a, b in zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
        ]
        return [np.array([_digest(mark) for mark in marks], np.uint64)]
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return [_bits(column.to_numpy()) for column in frame.iter_columns()]
    table = even_array("X", X)
    if not table.ndim:
        msg = f"X must have rows, which randomized sets draw by; got {type(X).__name__}."
        raise ValueError(msg)
    flat = table.reshape(len(table), -1)
    return [_bits(flat[:, i]) for i in range(flat.shape[1])]


def _bits(values: NDArray[Any]) -> NDArray[np.uint64]:
    if values.dtype.kind == "O":
        return np.array([_bits_of(value) for value in values], np.uint64)
    if values.dtype.kind in "fiub":
        numbers = values.astype(np.float64) + 0.0  # no -0.0
        numbers[np.isnan(numbers)] = np.nan
        return numbers.view(np.uint64)
    words, codes = np.unique(values.astype(str), return_inverse=True)
    return np.array([_digest(word.encode()) for word in words.tolist()], np.uint64)[codes.reshape(-1)]


def _bits_of(value: Any) -> np.uint64:
    """One object, whatever else its column holds."""
    if isinstance(value, Real | np.bool_):
        return np.uint64(_bits(np.array([float(value)]))[0])
    if not isinstance(value, str) and str(value) in MISSING:
        return np.uint64(_bits(np.array([np.nan]))[0])
    return np.uint64(_digest(str(value).encode()))


def _digest(data: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")
