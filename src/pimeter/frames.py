"""Columns as a data frame, of the library that the caller's table is from, and one column of a table.

narwhals is imported where there are frames: arrays do without it, and it takes long to load.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from pimeter.arrays import as_frame, is_sparse

if TYPE_CHECKING:
    from collections.abc import Iterator

    import narwhals as nw
    from numpy.typing import NDArray

    from pimeter.protocols import Columns, FeatureTable


def library_of(table: object) -> Any:
    """What narwhals calls the library of a frame; pandas for what is not a frame."""
    frame = as_frame(table)
    return "pandas" if frame is None else frame.implementation


def frame_of(columns: Columns, library: Any = "pandas") -> Any:
    """A frame of these columns, or an ImportError if the library is not installed."""
    import narwhals as nw

    try:
        return nw.from_dict(columns, backend=library).to_native()
    except ImportError as missing:
        msg = (
            f"a frame needs {library}, which is not installed: pip install {library}. The numbers come without it, too."
        )
        raise ImportError(msg) from missing


def named_columns(name: str, frame: nw.DataFrame[Any], columns: tuple[str, ...] | None = None) -> NDArray[Any]:
    """Columns of a frame as an array: those of these names, or all; or a ValueError that says which there are."""
    missing = [column for column in columns or () if column not in frame.columns]
    if missing:
        msg = (
            f"{name} is a frame without {' and '.join(missing)}; it has columns {frame.columns[:9]}. Rename them, or "
            "give an array."
        )
        raise ValueError(msg)
    return (frame if columns is None else frame.select(*columns)).to_numpy()


def column_names(table: object) -> list[object]:
    """Names of columns; scikit-learn looks at strings alone, and pyarrow's columns are the data."""
    return list(getattr(table, "column_names", getattr(table, "columns", [])))


def column_of(X: FeatureTable, by: str | int) -> NDArray[Any]:
    """Values of the column `by`: a name in a frame, a position in an array."""
    frame = as_frame(X)
    if frame is not None:
        if by not in frame.columns:
            msg = f"by={by!r} is not a column of X, which has {frame.columns}."
            raise ValueError(msg)
        return frame.get_column(by).to_numpy()
    table: Any = X if is_sparse(X) else np.asarray(X)
    if not isinstance(by, Integral) or table.ndim != 2 or not -table.shape[1] <= by < table.shape[1]:
        msg = f"by={by!r} is not the position of a column of X, which is an array of shape {table.shape}."
        raise ValueError(msg)
    return table.tocsc()[:, [by]].toarray().ravel() if is_sparse(X) else table[:, by]


def column_values(table: Any) -> Any:
    """Columns of a frame by name: arrays of numbers and dates, lists of all else; other tables as they are."""
    frame = as_frame(table)
    if frame is None:
        return table
    columns = zip(frame.columns, frame.iter_columns(), strict=True)
    return {name: one.to_list() if _has_objects(one) else one.to_numpy() for name, one in columns}


def refuse_other_order(name: str, first: object, other_name: str, other: object) -> None:
    """Refuse pandas objects with the same labels in another order: rows are matched by position."""
    own: Any = getattr(first, "index", None)
    its: Any = getattr(other, "index", None)
    if not (hasattr(own, "equals") and hasattr(its, "equals")) or own.equals(its) or len(own) != len(its):
        return
    if len(own.difference(its, sort=False)) == 0:
        msg = (
            f"{name} and {other_name} have the same index in another order, and rows are matched by position. Give "
            f"{other_name}.loc[{name}.index], or, if positions are right, {other_name}.to_numpy()."
        )
        raise ValueError(msg)


def refuse_other_orders(given: Mapping[str, object]) -> None:
    """Refuse arguments with the same labels of rows as the first that has some, in another order.

    Of a mapping, such as intervals by level, each value is looked at.
    """
    labelled = [(name, one) for key, value in given.items() for name, one in _labelled(key, value)]
    for name, one in labelled[1:]:
        refuse_other_order(*labelled[0], name, one)


def _labelled(name: str, given: object) -> Iterator[tuple[str, object]]:
    """What has an index as pandas' objects have, and how the caller names it."""
    if hasattr(getattr(given, "index", None), "equals"):
        yield name, given
    elif isinstance(given, Mapping):
        for key, value in given.items():
            yield from _labelled(f"{name}[{key!r}]", value)


def refuse_lazy(X: object) -> None:
    """Refuse a table whose rows are not there yet."""
    if hasattr(X, "collect") and not hasattr(X, "__len__"):
        msg = f"X is a {type(X).__name__}, whose rows are not computed yet; expected a table. Give X.collect()."
        raise TypeError(msg)


def check_pair(X: object, y: object) -> None:
    """Refuse a table that is lazy, and one with the labels of the targets in another order."""
    refuse_lazy(X)
    refuse_other_order("X", X, "y", y)


def columns_without_numbers(X: object) -> list[str]:
    """Names of a frame's columns that hold strings, dates and the like; of an array none."""
    frame = as_frame(X)
    if frame is None:
        return []
    import narwhals as nw

    return [name for name, kind in frame.schema.items() if not (kind.is_numeric() or kind == nw.Boolean)]


def _has_objects(series: nw.Series[Any]) -> bool:
    """Whether an array of the values would hold objects, or something else for what is missing."""
    return bool(series.is_null().any()) or not (series.dtype.is_numeric() or series.dtype.is_temporal())
