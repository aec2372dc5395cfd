"""A hash of each row of a table, equal for equal rows whatever library and types they come in."""

from __future__ import annotations

import hashlib
import math
from contextlib import suppress
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from pimeter.arrays import columns_of, even_array, is_missing, is_sparse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from pimeter.protocols import Array, Hashes

    ColumnValues = NDArray[Any]

# The constants of splitmix64, whose last steps mix the bits.
HASH_STEP, FIRST, SECOND = (np.uint64(c) for c in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
ROWS_AT_ONCE = 32_768  # rows that are hashed together: their bits stay in the cache
HASHES_OF_SPARSE_ROW = 12


def row_keys(X: object, y: ArrayLike | None = None) -> Hashes | None:
    """A hash of each row by itself, equal for equal rows; None for what is not a table."""
    try:
        return hashes(compared_columns(X, y))
    except (TypeError, ValueError):
        return None


def row_draws(X: object, seed: int) -> Array:
    """A number in [0, 1) for each row, made from the row itself and a seed: neither batch nor order matter."""
    bits = hashes(compared_columns(X, None), seed) >> np.uint64(11)  # 53 of 64 bits make a float
    return np.asarray(bits * 2.0**-53)


def compared_columns(X: object, y: ArrayLike | None) -> list[ColumnValues]:
    """Columns of the target, then those of X; of a sparse matrix some hashes of each row, each of some columns."""
    columns = _sparse_columns(X) if is_sparse(X) and hasattr(X, "tocoo") else list(columns_of(X).values())
    if not columns or not len(columns[0]):
        msg = "X has no rows or no columns, so there is nothing to compare; give at least one of each."
        raise ValueError(msg)
    if y is None:
        return columns
    target = even_array("y", y)
    if target.ndim == 0 or len(target) != len(columns[0]):
        msg = f"y has shape {target.shape}, but X has {len(columns[0])} rows: give one target for each row of X."
        raise ValueError(msg)
    return [*target.reshape(len(target), -1).T, *columns]


def _sparse_columns(X: Any) -> list[ColumnValues]:
    """Sums of hashes of a row's entries that are not 0, by column modulo a number."""
    X = X.tocoo(copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    row, column = X.coords[0], X.coords[-1]
    found = np.zeros((X.shape[0], HASHES_OF_SPARSE_ROW), np.uint64)
    entries = _mixed(_mixed(column.astype(np.uint64) * HASH_STEP) + value_bits(X.data))
    np.add.at(found, (row, column % HASHES_OF_SPARSE_ROW), entries)
    return list(found.view("V8").T)


def hashes(columns: Sequence[ColumnValues], seed: int = 0) -> Hashes:
    """A hash of each row of these columns."""
    found = np.full(len(columns[0]), np.uint64(seed))
    for start in range(0, len(found), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        for column in columns:
            found[rows] = _mixed(found[rows] * FIRST + value_bits(column[rows]) + HASH_STEP)
    return found


def _mixed(x: Hashes) -> Hashes:
    """Bits of which each depends on all bits given."""
    x = (x ^ (x >> np.uint64(30))) * FIRST
    x = (x ^ (x >> np.uint64(27))) * SECOND
    return x ^ (x >> np.uint64(31))


def value_bits(values: ColumnValues) -> Hashes:
    """64 bits of each value: equal for equal numbers, whatever their type, and for equal texts."""
    kind = values.dtype.kind
    if kind in "mM" or values.dtype == "V8":
        return np.ascontiguousarray(values).view(np.uint64)
    if kind in "fiub":
        numbers = values.astype(np.float64) + 0.0  # no -0.0
        if kind == "f":
            numbers[np.isnan(numbers)] = np.nan
        bits = numbers.view(np.uint64)
        if kind in "fb" or values.dtype.itemsize < 8:
            return bits
        with np.errstate(invalid="ignore"):  # the float next to the largest integer is none
            rest = (values - numbers.astype(values.dtype)).view(np.uint64)
        return np.where(rest == 0, bits, _mixed(bits) + rest) if rest.any() else bits
    objects = values.tolist()
    try:
        found = {value: _bits(value) for value in set(objects)}
    except TypeError:  # lists and the like cannot be looked up
        return np.array([_bits(value) for value in objects], np.uint64)
    return np.array([found[value] for value in objects], np.uint64)


def _bits(value: Any) -> int:
    """64 bits of one object."""
    if isinstance(value, np.ndarray | list | tuple):  # a long array's text would leave out its middle
        held = np.ravel(value) if isinstance(value, np.ndarray) else np.fromiter(value, object, len(value))
        return bits_of_bytes(f"{type(value).__name__} {held.shape}".encode() + value_bits(held).tobytes())
    if is_missing(value):
        value = math.nan
    if isinstance(value, Real | np.bool_):
        with suppress(OverflowError):
            value = float(value) if float(value) == value else value
        number = np.array([value])
        if number.dtype.kind != "O":  # as that of fractions, and of integers of more than 64 bits
            return int(value_bits(number)[0])
    return bits_of_bytes(str(value).encode())


def bits_of_bytes(data: bytes) -> int:
    """64 bits of some bytes."""
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")
