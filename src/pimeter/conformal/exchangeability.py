"""Rows that are not exchangeable with new ones: those in the order of their dates may drift."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import narwhals as nw

from pimeter.arrays import as_frame
from pimeter.coverage import warn_of_coverage

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pimeter.protocols import FeatureTable

MIN_DATED_ROWS = 10  # rows that chance does not put in the order of their dates


def warn_of_shuffled_dates(X: FeatureTable, y: ArrayLike) -> None:
    """Say that rows which are in the order of their dates are shuffled."""
    where = next((f"the index of {name}" for name, table in (("X", X), ("y", y)) if _is_dated(table)), None)
    where = where or _dated_column(X)
    if where is not None:
        warn_of_coverage(
            f"rows are in the order of their dates ({where}), and fit shuffles them: it calibrates on rows between "
            "those that it trains on, and rows to come may be covered far less often. Set shuffle=False, which "
            "calibrates on the last rows, or cv=TimeSeriesSplit(5). If time does not matter, shuffle the rows "
            "yourself."
        )


def _is_dated(table: Any) -> bool:
    """Whether a frame or series of pandas has dates for its index, and they rise."""
    index = getattr(table, "index", None)
    kind = str(getattr(index, "dtype", ""))
    if not kind.startswith(("datetime64", "period")) or len(table) < MIN_DATED_ROWS:
        return False
    return bool(table.index.is_monotonic_increasing and table.index[0] < table.index[-1])


def _dated_column(X: FeatureTable) -> str | None:
    """The first column of a frame with dates that rise."""
    frame = as_frame(X)
    for column in [] if frame is None or len(frame) < MIN_DATED_ROWS else frame.iter_columns():
        is_date = isinstance(column.dtype, nw.Date | nw.Datetime)
        if is_date and not column.null_count() and column.is_sorted() and column[0] < column[-1]:
            return f"column {column.name!r}"
    return None
