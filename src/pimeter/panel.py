"""One series or several? What tells the series of a panel apart in a table of forecasts: their windows would mix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pimeter.files import FileTable, listed, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from pimeter.protocols import Flags, Index

SERIES = ("unique_id", "series", "series_id", "series_name", "item_id", "ts_id", "timeseries_id", "time_series_id")
# These may also number the rows, windows or steps of one series.
IDS = (
    "id", "item", "product", "product_id", "sku", "sku_id", "store", "store_id", "shop", "shop_id", "site", "site_id",
    "station", "station_id", "sensor", "sensor_id", "meter", "meter_id", "location", "location_id", "region", "country",
    "entity", "entity_id", "customer", "customer_id", "symbol", "ticker",
)  # fmt: skip
TIME_PARTS = (
    "hour", "minute", "second", "time", "period", "slot", "quarter", "half_hour",
    "day", "weekday", "day_of_week", "dayofweek", "dow", "week", "month",
)  # fmt: skip
CROSSED = 0.9  # of windows and series, that have all their rows
MIN_REPEATS = 10  # times that come several times within a series, each with one target: no chance


def panel_error(table: FileTable, column: pl.Series) -> ValueError:
    """What to say of a panel: the column that makes it one, and what to do."""
    values = ["missing" if value is None else str(value) for value in column.unique(maintain_order=True)]
    msg = (
        f"{table.name} is a panel: column {shown(column.name)} tells {len(values):,} series apart ({listed(values)}), "
        f"whose windows would mix. With cutoffs and times --id {column.name} takes all of them; else keep the "
        f"rows where {shown(column.name)} is "
        f"{shown(values[0])}, and likewise for each of the others. If it tells no series apart, leave that column out."
    )
    return ValueError(msg)


def column_of_ids(table: FileTable, used: Sequence[str], window: Index, step: Index) -> pl.Series | None:
    """A column that by its name tells series apart, has several values, and numbers no rows, windows or steps."""
    for name in table.columns:
        plain = name.strip().lower()
        if name in used or plain not in (*SERIES, *IDS):
            continue
        column = table.read([], [name])[name]
        code = _codes(column)
        n_values = len(np.unique(code))
        numbers = [np.arange(len(code)), *([window, step] if plain in IDS else [])]
        if n_values > 1 and not any(_is_numbering(code, other) for other in numbers):
            return column
    return None


def separating_column(table: FileTable, used: Sequence[str], place: Index) -> pl.Series | None:
    """The column that tells rows of the same place apart, if any: likely names first, then strings, then few values."""
    return next((column for column in _candidates(table, used) if not _repeats(place, _codes(column)).any()), None)


def crossing_column(table: FileTable, used: Sequence[str], window: Index, step: Index) -> pl.Series | None:
    """The column that divides the rows of each window into the same values, all equally often but for a few rows.

    Where each comes once per window it may count the steps: it is taken for one of series if it holds the same strings
    in the same order in each window, or numbers that are not evenly spaced.
    """
    n_windows = len(np.unique(window))
    for column in _candidates(table, used):
        code = _codes(column)
        _, counts = np.unique(_joined(window, code), return_counts=True)
        usual = np.median(counts)
        is_crossed = np.count_nonzero(counts == usual) >= CROSSED * n_windows * column.n_unique()
        if n_windows < 2 or not is_crossed or is_time_part(column.name):
            continue
        if usual > 1 or (not has_several(step, code) and not _is_even(column)):
            return column
    return None


def column_of_targets(table: FileTable, used: Sequence[str], moment: Index, target: pl.Series) -> pl.Series | None:
    """The column within each of whose values a moment has one target, where it has several in the whole table."""
    known = target.is_not_null().to_numpy()
    y = _codes(target)[known]
    for column in _candidates(table, used):
        both = _joined(moment[known], _codes(column)[known])
        _, counts = np.unique(both, return_counts=True)
        if (counts > 1).sum() >= MIN_REPEATS and not has_several(both, y):
            return column
    return None


def has_several(group: Index, value: Index) -> bool:
    """Whether any group has several values."""
    return bool(len(np.unique(_joined(group, value))) > len(np.unique(group)))


def is_time_part(name: str) -> bool:
    """Whether a column completes a date, such as that of hours."""
    return name.strip().lower() in TIME_PARTS


def _candidates(table: FileTable, used: Sequence[str]) -> list[pl.Series]:
    """Columns of strings or integers with several values, fewer than there are rows."""
    names = [name for name in table.columns if name not in used]
    if not names:
        return []
    import polars as pl

    found = []
    for column in table.read([], names):
        kind = column.dtype
        is_string = kind in (pl.String, pl.Categorical, pl.Enum)
        is_integer = kind.is_integer() or (
            kind.is_float() and bool((column.fill_nan(None) % 1 == 0).fill_null(True).all())
        )
        n_values = column.n_unique() if is_string or is_integer else 0
        if 1 < n_values < len(column):
            is_usual = column.name.strip().lower() in (*SERIES, *IDS)
            found.append(((not is_usual, not is_string, n_values), column))
    return [column for _, column in sorted(found, key=lambda pair: pair[0])]


def _is_even(column: pl.Series) -> bool:
    """Whether values are numbers at one distance from each other, as steps are."""
    if not column.dtype.is_numeric():
        return False
    gaps = np.diff(np.unique(column.drop_nulls().to_numpy()))
    return bool(gaps.size and gaps.min() == gaps.max())


def _codes(column: pl.Series) -> Index:
    return column.rank("dense").fill_null(0).to_numpy().astype(np.intp)


def _joined(one: Index, other: Index) -> Index:
    """A number for each pair."""
    return one * (int(other.max(initial=0)) + 1) + other


def _repeats(place: Index, code: Index) -> Flags:
    """Whether each pair that there is comes several times."""
    _, counts = np.unique(_joined(place, code), return_counts=True)
    return counts > 1


def _is_numbering(code: Index, other: Index) -> bool:
    """Whether two codes divide the rows in the same way."""
    n = len(np.unique(_joined(code, other)))
    return n == len(np.unique(code)) == len(np.unique(other))
