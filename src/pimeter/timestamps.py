"""Times in columns of a table: dates, numbers and strings that tell them, in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pimeter.arrays import coded
from pimeter.files import FileTable, shown

if TYPE_CHECKING:
    import polars as pl

    from pimeter.protocols import Array, Index

CYCLE = 60  # numbers of hours, days, weeks or months that begin anew are no more than this
# Day, time and offset from UTC: the letters of the first two are in the order of time, unless offsets differ.
MOMENT = r"^(\d{4}-\d{2}(?:-\d{2})?)(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)(Z| ?[+-]\d{2}(?::?\d{2})?)?)?$"


def tells_time(column: pl.Series) -> bool:
    """Whether values are dates, or numbers of moments that do not begin anew as hours, days and months do."""
    if column.null_count() or instants_of(column) is None:
        return False
    return not column.dtype.is_numeric() or column.n_unique() > CYCLE


def instants_of(column: pl.Series) -> Array | None:
    """Numbers as they are, and seconds of dates and times; None for other strings."""
    import polars as pl

    kind = column.dtype
    if kind.is_numeric():
        return column.cast(pl.Float64()).to_numpy()
    if kind in (pl.Date, pl.Datetime):
        return column.cast(pl.Datetime("us", getattr(kind, "time_zone", None))).to_physical().to_numpy() / 1e6
    if kind.is_temporal():
        return column.to_physical().cast(pl.Float64()).to_numpy()
    return _seconds(column.cast(pl.String())) if kind in (pl.String, pl.Categorical, pl.Enum) else None


def _seconds(words: pl.Series) -> Array | None:
    """Seconds of dates in strings, all of one time zone; None where some are none."""
    day, time, offset = words.str.extract_groups(MOMENT).struct.unnest()
    if day.has_nulls() or offset.n_unique() != 1:
        return None
    letters = (day + ("T" + time).fill_null("")).to_numpy().astype(str)
    try:
        seconds = letters.astype("datetime64[us]").astype(np.int64) / 1e6
    except ValueError:  # no such day
        return None
    digits = "".join(filter(str.isdigit, offset[0] or "")).ljust(4, "0")
    behind = (-1.0 if "-" in (offset[0] or "") else 1.0) * (3600.0 * int(digits[:2]) + 60.0 * int(digits[2:]))
    return np.asarray(seconds - behind)


def is_dated(column: pl.Series) -> bool:
    """Whether a column holds dates, or strings that may tell them."""
    import polars as pl

    kind = column.dtype
    return kind in (pl.Date, pl.Datetime) or not (kind.is_numeric() or kind.is_temporal())


def numbered(table: FileTable, moments: pl.Series, notes: list[str], what: str = "rows") -> Index:
    """Number of each row's moment, or window: numbers and dates in their own order, other strings as they come."""
    import polars as pl

    kind = moments.dtype
    if kind.is_numeric() or kind.is_temporal():
        return moments.rank("dense").to_numpy().astype(np.intp) - 1
    msg = f"{table.name}: column {shown(moments.name)} holds {kind}; give numbers, dates or strings."
    if kind not in (pl.String, pl.Categorical, pl.Enum, pl.Binary):
        raise ValueError(msg)
    try:
        words = moments.cast(pl.String())
    except pl.exceptions.PolarsError as why:  # bytes that are not text
        raise ValueError(msg) from why
    day, time, offset = words.str.extract_groups(MOMENT).struct.unnest()
    if not day.has_nulls() and offset.n_unique() == 1:
        return (day + time.fill_null("")).rank("dense").to_numpy().astype(np.intp) - 1
    notes.append(
        f"column {shown(moments.name)} of {table.name} holds strings, so {what} are taken in the order of the file; "
        "dates like 2024-12-31 and 2024-12-31 09:00, all of one time zone, are put in their own order; "
        "--date-format reads others"
    )
    return coded(words.to_numpy().astype(object)).codes
