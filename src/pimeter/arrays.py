"""What callers hand over becomes an array: masks and missing values are kept, and what is not an array is named."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import narwhals as nw
    from numpy.typing import ArrayLike, NDArray

    from pimeter.protocols import Array, Flags, Index

CONVERT = "Convert it first, such as with astype(float)."


def unmasked(values: Any) -> Any:
    """Values with NaN or None for what is masked: numpy forgets the mask on the way to a plain array."""
    if not (isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values)):  # pandas has masks of its own
        return values
    kind, missing = (np.float64, np.nan) if values.dtype.kind in "fiub" else (object, None)
    known: Any = values.data.astype(kind)
    known[values.mask] = missing  # numpy's filled(None) would write a word of its own
    return known


def library_of(values: object) -> str:
    """The package that defines its class, such as "torch" or "dask", which is not imported to ask."""
    return type(values).__module__.partition(".")[0]


def is_dask(values: object) -> bool:
    """Whether it is a dask collection."""
    return library_of(values) == "dask"


def is_sparse(values: object) -> bool:
    """Whether it is a sparse matrix of SciPy's; where that is not loaded, nothing is."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(values))


def ranks(values: Array) -> Array:
    """Ranks from 1 up, those of tied values their mean, NaN for NaN: as SciPy's, whose statistics take long to load."""
    found = np.full(values.shape, np.nan)
    is_known = ~np.isnan(values)
    _, place, counts = np.unique(values[is_known], return_inverse=True, return_counts=True)
    found[is_known] = (np.cumsum(counts) - (counts - 1) / 2.0)[place]
    return found


def is_missing(label: object) -> bool:
    """Whether it is None, NaN, NaT or pandas' NA, which cannot be compared."""
    return label is None or (not isinstance(label, str | int) and str(label) in {"nan", "NaT", "<NA>"})


def has_missing(labels: NDArray[Any]) -> bool:
    """Whether a label is None, NaN, NaT or pandas' NA."""
    is_other = any(map(is_missing, labels.tolist())) if labels.dtype.kind == "O" else labels != labels  # noqa: PLR0124
    return bool(np.any(is_other))


def even_array(name: str, values: object) -> NDArray[Any]:
    """An array, with NaN or None for what is masked; or a ValueError that names what has rows of unequal length."""
    try:
        array = np.asarray(unmasked(values))
    except ValueError as uneven:
        msg = f"{name} holds rows of unequal length; give each of them as many values, NaN where one is not known."
        raise ValueError(msg) from uneven
    if array.dtype.kind in "US" and isinstance(values, list | tuple):  # NaN would be "nan", and 1 would be "1"
        objects = np.asarray(values, dtype=object)
        if len(set(map(type, objects.ravel().tolist()))) > 1:
            return objects
    return array


def as_frame(table: object) -> nw.DataFrame[Any] | None:
    """A table with named columns, of a library that narwhals knows; None for all else."""
    if isinstance(table, np.ndarray | list | tuple) or not hasattr(table, "columns"):
        return None
    import narwhals as nw  # takes long to load

    try:
        frame = nw.from_native(table, eager_only=True, pass_through=True)
    except nw.exceptions.DuplicateError:  # columns of one name
        return None
    return frame if isinstance(frame, nw.DataFrame) else None


def columns_of(X: object, rows: Index | slice = slice(None)) -> dict[Any, NDArray[Any]]:
    """Some rows of the columns of a frame or a series by name, of an array by position; dates are numpy's."""
    frame = as_frame(X.to_frame() if hasattr(X, "to_frame") and not hasattr(X, "columns") else X)
    if frame is not None:
        named = zip(frame.columns, frame.iter_columns(), strict=True)  # names may be numbers, which would mean rows
        kept = rows if isinstance(rows, slice) else rows.tolist()
        return {name: _column_values(series[kept]) for name, series in named}
    table = even_array("X", X)
    if not table.ndim:
        msg = f"X must have rows, but it is a {type(X).__name__}: give a table, one row for each target."
        raise ValueError(msg)
    return dict(enumerate(table.reshape(len(table), -1)[rows].T)) if table.size else {}


def _column_values(series: nw.Series[Any]) -> NDArray[Any]:
    """Numbers, with NaN for what is missing unless large integers would lose digits, dates, durations, or objects."""
    import narwhals as nw

    kind = series.dtype
    if kind == nw.Date:  # of dates alone pyarrow makes Python's objects
        return series.cast(nw.Datetime()).to_numpy()
    if kind == nw.Categorical or kind == nw.Enum:  # noqa: PLR1714 (a set does not know an enumeration's values)
        series = series.cast(nw.String())
    if kind.is_integer() and series.null_count() and max(-(series.min() or 0), series.max() or 0) >= 2**53:
        return np.array(series.to_list(), object)
    is_plain = kind.is_numeric() or kind.is_temporal() or kind == nw.Boolean
    return series.to_numpy() if is_plain else np.fromiter(series.to_list(), object, len(series))


def numbers_of(values: NDArray[Any]) -> Array | None:
    """Numbers, truth values, and microseconds of dates and durations as floats, NaN for what is missing; else None."""
    kind = values.dtype.kind
    if kind in "mM":
        return np.where(np.isnat(values), np.nan, values.astype(f"{kind}8[us]").astype(np.int64))
    if kind in "fiub":
        return values.astype(np.float64)
    if kind != "O" or any(isinstance(value, str | bytes) for value in values):
        return None
    try:
        return np.array([np.nan if is_missing(value) else float(value) for value in values], np.float64)
    except (TypeError, ValueError, OverflowError):  # objects that are not numbers
        return None


def label_list(labels: NDArray[Any]) -> list[Any]:
    """Labels as objects, None for what is missing, dates in one unit; a ValueError for what cannot be looked up."""
    if labels.dtype.kind == "M":
        labels = labels.astype("datetime64[us]")
    found = [None if is_missing(label) else label for label in labels.tolist()]
    try:
        set(found)
    except TypeError as why:
        msg = f"categories must be strings or numbers ({why}); give each as one string, such as str(category)."
        raise ValueError(msg) from why
    return found


def is_new(rising: NDArray[np.generic]) -> Flags:
    """Whether values in order are the first of their kind; faster than numpy's unique, which looks values up."""
    return np.append(True, rising[1:] != rising[:-1])


def some_rows(n: int, most: int) -> Index:
    """Which of n rows to look at where all would take long: all if they are few, else some at random, in their order.

    Rows at equal distances would fall in with a rhythm of the data: every 24th of hourly rows is midnight. The same
    numbers give the same rows.
    """
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng([n, most]).choice(n, most, replace=False, shuffle=False))


def taken(rows: Index | None, *columns: Any) -> list[Any]:
    """Some rows of each column, all where none are named; a column that is None stays None."""
    some = slice(None) if rows is None else rows
    return [None if column is None else np.asarray(column)[some] for column in columns]


@dataclass(frozen=True)
class Coded:
    """Labels as numbers."""

    labels: list[Any]  # the distinct ones; None for what is missing
    codes: Index  # number of each row's label among these


def coded(labels: NDArray[Any]) -> Coded:
    """Distinct labels and the number of each row's one among them; a missing label is None."""
    if labels.dtype.kind == "O":
        seen: dict[Any, int] = {}
        codes = [seen.setdefault(label, len(seen)) for label in label_list(labels)]
        return Coded(list(seen), np.array(codes, np.intp))
    distinct, numbers = np.unique(labels, return_inverse=True)
    return Coded(label_list(distinct), numbers.reshape(-1))


def real_array(name: str, values: ArrayLike, remedy: str = CONVERT) -> NDArray[Any]:
    """Real numbers as an array, with NaN for what is masked; or a ValueError that names it."""
    array = even_array(name, values)
    if array.dtype.kind not in "fiub":
        msg = f"{name} must hold real numbers; got dtype {array.dtype}. {remedy}"
        raise ValueError(msg)
    return array
