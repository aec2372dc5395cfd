"""A hash of each row: 64 bits of each value, equal for equal numbers and texts, mixed over the columns."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from pimeter.arrays import even_array, is_sparse

if TYPE_CHECKING:
    import narwhals as nw
    from numpy.typing import ArrayLike, NDArray
    from scipy.sparse import coo_array

    Bits = NDArray[np.uint64]

# The constants of splitmix64, whose last steps mix the bits.
STEP, FIRST, SECOND = (np.uint64(c) for c in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
MISSING = {"None", "nan", "NaT", "<NA>"}  # what stands for no value in columns of objects
ROWS_AT_ONCE = 32_768  # rows that are hashed together: their bits stay in the cache
INTEGERS_AS_FLOATS = 2**53  # integers from here on are not all floats
HASHES_OF_SPARSE_ROW = 12


def row_hashes(X: object, seed: int) -> Bits:
    """A hash of each row of X by itself, another one for another seed."""
    return hashed_rows(columns_of(X), seed)


def table_columns(X: object, y: ArrayLike | None) -> list[NDArray[Any]]:
    """Columns of the target, then those of X."""
    columns = columns_of(X)
    if y is None:
        return columns
    target = even_array("y", y)
    if target.ndim == 0 or len(target) != len(columns[0]):
        msg = f"y has shape {target.shape}, but X has {len(columns[0])} rows: give one target for each row of X."
        raise ValueError(msg)
    return [*target.reshape(len(target), -1).T, *columns]


def columns_of(X: object) -> list[NDArray[Any]]:
    """Columns of a table; of a sparse matrix some hashes of each row, each of some columns."""
    if is_sparse(X) and hasattr(X, "tocoo"):
        return _sparse_columns(X.tocoo(copy=True))
    columns = _columns_of_frame(X)
    if columns is None:
        table = even_array("X", X)
        if not table.ndim:
            msg = f"X must have rows, but it is a {type(X).__name__}: give a table, one row for each target."
            raise ValueError(msg)
        columns = list(table.reshape(len(table), -1).T) if table.size else []
    if not columns or not len(columns[0]):
        msg = "X has no rows or no columns, so there is nothing to compare; give at least one of each."
        raise ValueError(msg)
    return columns


def _columns_of_frame(X: object) -> list[NDArray[Any]] | None:
    """Columns of a frame; None for other tables, and for frames with two columns of one name."""
    if isinstance(X, np.ndarray):
        return None
    import narwhals as nw  # takes long to load

    try:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
    except nw.exceptions.DuplicateError:
        return None
    return [_column_values(column) for column in frame.iter_columns()] if isinstance(frame, nw.DataFrame) else None


def _column_values(column: nw.Series[Any]) -> NDArray[Any]:
    """Of a column; large integers beside missing values are not rounded to floats."""
    if (
        column.dtype.is_integer()
        and column.null_count()
        and max(-(column.min() or 0), column.max() or 0) >= INTEGERS_AS_FLOATS
    ):
        return np.array(column.to_list(), object)
    return column.to_numpy()


def _sparse_columns(X: coo_array) -> list[NDArray[Any]]:
    """Sums of hashes of a row's entries that are not 0, by column modulo a number."""
    X.sum_duplicates()
    bits = value_bits(X.data)
    row, column = X.coords[0], X.coords[-1]
    found = np.zeros((X.shape[0], HASHES_OF_SPARSE_ROW), np.uint64)
    some = bits != 0
    with np.errstate(over="ignore"):
        entries = mixed(mixed(column.astype(np.uint64) * STEP) + bits)
        np.add.at(found, (row[some], column[some] % HASHES_OF_SPARSE_ROW), entries[some])
    return list(found.view("V8").T)


def hashed_rows(columns: Sequence[NDArray[Any]], seed: int = 0) -> Bits:
    """A hash of each row of these columns."""
    n = len(columns[0])
    found = np.full(n, np.uint64(seed))
    with np.errstate(over="ignore"):
        for start in range(0, n, ROWS_AT_ONCE):
            rows = slice(start, start + ROWS_AT_ONCE)
            for column in columns:
                found[rows] = mixed(found[rows] * FIRST + value_bits(column[rows]) + STEP)
    return found


def mixed(x: Bits) -> Bits:
    """Bits of which each depends on all bits given."""
    x = (x ^ (x >> np.uint64(30))) * FIRST
    x = (x ^ (x >> np.uint64(27))) * SECOND
    return x ^ (x >> np.uint64(31))


def value_bits(values: NDArray[Any]) -> Bits:
    """64 bits of each value: equal for equal numbers, whatever their type, and for equal texts."""
    kind = values.dtype.kind
    if kind == "O":
        return _bits_of_objects(values.tolist())
    if kind in "fiub":
        numbers = values.astype(np.float64) + 0.0  # no -0.0
        if kind == "f":
            numbers[np.isnan(numbers)] = np.nan
        bits = numbers.view(np.uint64)
        if kind in "iu" and values.dtype.itemsize == 8:
            beyond = np.flatnonzero(np.abs(numbers) >= INTEGERS_AS_FLOATS)
            bits[beyond] = _bits_of_large(values[beyond], bits[beyond])
        return bits
    if kind in "mM":
        return values.astype(np.int64).view(np.uint64)
    if kind == "V" and values.dtype.itemsize == 8:
        return np.ascontiguousarray(values).view(np.uint64)
    texts, codes = np.unique(values.astype(str), return_inverse=True)
    return np.array([digest(text.encode()) for text in texts.tolist()], np.uint64)[codes.reshape(-1)]


def _bits_of_large(values: NDArray[Any], bits: Bits) -> Bits:
    """Of integers that are floats the bits of these, of others a hash that no float has but by chance."""
    with np.errstate(over="ignore"):
        magnitude = values.astype(np.uint64)
        magnitude = np.where(values < 0, ~magnitude + np.uint64(1), magnitude)
        is_float = (
            magnitude // (magnitude & (~magnitude + np.uint64(1))) < INTEGERS_AS_FLOATS
        )  # without the factors of 2
        return np.where(is_float, bits, mixed(mixed(magnitude ^ STEP) + (values < 0).astype(np.uint64)))


def _bits_of_objects(values: list[Any]) -> Bits:
    """64 bits of each object, whatever the column holds."""
    if set(map(type, values)) <= {str, float, type(None)}:  # each text once
        known = {value: _bits_of(value) for value in dict.fromkeys(values)}
        return np.fromiter(map(known.__getitem__, values), np.uint64, len(values))
    return np.fromiter(map(_bits_of, values), np.uint64, len(values))


def _bits_of(value: object) -> int:
    """64 bits of one object."""
    if isinstance(value, Integral) and abs(int(value)) >= INTEGERS_AS_FLOATS:
        return _bits_of_integer(int(value))
    if isinstance(value, Real | np.bool_):
        try:
            return int(value_bits(np.array([float(value)]))[0])
        except OverflowError:
            return digest(repr(value).encode())
    if isinstance(value, np.ndarray | list | tuple):  # a long array's text would leave out its middle
        held = value_bits(value.reshape(-1)) if isinstance(value, np.ndarray) else _bits_of_objects(list(value))
        return digest(f"{type(value).__name__} {np.shape(held)}".encode() + held.tobytes())
    if not isinstance(value, str) and str(value) in MISSING:
        return int(value_bits(np.array([np.nan]))[0])
    return digest(str(value).encode())


def _bits_of_integer(value: int) -> int:
    for kind in (np.int64, np.uint64):
        if np.iinfo(kind).min <= value <= np.iinfo(kind).max:
            return int(value_bits(np.array([value], kind))[0])
    try:
        if float(value) == value:
            return int(value_bits(np.array([float(value)]))[0])
    except OverflowError:
        pass
    return digest(hex(value).encode())


def digest(data: bytes) -> int:
    """64 bits of some bytes."""
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")
