"""A table of forecasts, one row for each window and step, becomes windows of targets and predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pimeter.files import Table, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Numbers = NDArray[np.intp]

SPARSE = 20  # windows times steps for each row from which on the column of steps is no such column
# Day, time and offset from UTC: the letters of the first two are in the order of time, unless offsets differ.
MOMENT = r"^(\d{4}-\d{2}(?:-\d{2})?)(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)(Z| ?[+-]\d{2}(?::?\d{2})?)?)?$"


def windows(
    table: Table, frame: pl.DataFrame, columns: Sequence[str], window: str | None, step: str | None, notes: list[str]
) -> tuple[Array, Array, list[str] | None]:
    """Targets and predictions of shape (windows, steps), NaN for what is not known; what windows are called.

    Raises
    ------
    ValueError
        If a window, a step or all of a column is missing, a value is infinite, a step is none or comes twice.
    """
    _check(table, frame, columns, [name for name in (window, step) if name is not None])
    rows = np.arange(frame.height) if window is None else _order(table, frame[window], notes)
    steps = _counted(rows, window, notes) if step is None else _steps(table, frame[step])
    n, h = int(rows.max()) + 1, int(steps.max()) + 1
    if n * h > SPARSE * frame.height + 1000:
        msg = f"{table.name}: {n:,} windows of {h:,} steps have only {frame.height:,} rows; is {shown(step)} the step?"
        raise ValueError(msg)
    places = rows * h + steps
    first, counts = np.unique(places, return_counts=True)
    if (counts > 1).any():
        twice = int(np.flatnonzero(places == first[counts > 1][0])[1]) + 1
        msg = (
            f"{table.name}: row {twice:,} repeats window and step of an earlier row. The command takes one series: "
            "keep the rows of one."
        )
        raise ValueError(msg)
    y_true, y_pred = np.full((2, n, h), np.nan)
    for values, name in zip((y_true, y_pred), columns, strict=True):
        values.ravel()[places] = frame[name].cast(float).to_numpy()
    n_empty = int(np.isnan(y_pred).all(axis=0).sum())
    if n_empty:
        msg = f"{table.name}: {n_empty:,} of the steps 1 to {h:,} have no prediction at all; number steps 1, 2, ..."
        raise ValueError(msg)
    n_gaps = int(np.isnan(y_pred).any(axis=1).sum())
    if n_gaps:
        notes.append(f"{n_gaps:,} of {n:,} windows have no prediction for some steps, which are not known then")
    if window is None:
        return y_true, y_pred, None
    _, first = np.unique(rows, return_index=True)
    return y_true, y_pred, [str(name) for name in frame[window].gather(first)]


def _check(table: Table, frame: pl.DataFrame, columns: Sequence[str], places: Sequence[str]) -> None:
    """Refuse rows without a place, infinite values, and columns without a number."""
    for name in places:
        given = frame[name]
        missing = (given.is_null() | given.is_nan() if given.dtype.is_float() else given.is_null()).arg_true()
        if len(missing):
            msg = f"{table.name}: column {shown(name)} is missing in row {missing[0] + 1:,}."
            raise ValueError(msg)
    for name in columns:
        wrong = frame[name].is_infinite().fill_null(value=False).arg_true()
        if len(wrong):
            msg = f"{table.name}: row {wrong[0] + 1:,} of column {shown(name)} is infinite."
            raise ValueError(msg)
        if frame[name].null_count() == frame.height:
            msg = f"{table.name}: column {shown(name)} has no number; all {frame.height:,} rows are missing."
            raise ValueError(msg)


def _steps(table: Table, given: pl.Series) -> Numbers:
    """Steps ahead from 0."""
    values = given.to_numpy()
    with np.errstate(invalid="ignore"):  # what is no whole number is refused below
        steps = values.astype(np.intp) - 1
    wrong = np.flatnonzero((values != steps + 1) | (steps < 0))
    if wrong.size:
        row = int(wrong[0])
        msg = f"{table.name}: row {row + 1:,} of column {shown(given.name)} holds {values[row]:g}; steps are 1, 2, ..."
        raise ValueError(msg)
    return steps


def _counted(rows: Numbers, window: str | None, notes: list[str]) -> Numbers:
    """Steps ahead as the rows of each window come."""
    order = np.argsort(rows, kind="stable")
    steps = np.empty_like(rows)
    steps[order] = np.arange(len(rows)) - np.searchsorted(rows[order], rows[order])
    if steps.any():
        notes.append(f"took the rows of each {shown(window)} for steps 1, 2, ... ahead, in the order of the file")
    else:
        notes.append("took each row for a forecast one step ahead; name the column of steps with --step")
    return steps


def _order(table: Table, window: pl.Series, notes: list[str]) -> Numbers:
    """Number of each row's window: numbers and dates in their own order, other words as they come."""
    import polars as pl

    kind = window.dtype
    if kind.is_numeric() or kind.is_temporal():
        return window.rank("dense").to_numpy().astype(np.intp) - 1
    msg = f"{table.name}: column {shown(window.name)} holds {kind}; give numbers, dates or words for windows."
    if kind not in (pl.String, pl.Categorical, pl.Enum, pl.Binary):
        raise ValueError(msg)
    try:
        words = window.cast(pl.String())
    except pl.exceptions.PolarsError as why:  # bytes that are no text
        raise ValueError(msg) from why
    day, time, offset = words.str.extract_groups(MOMENT).struct.unnest()
    if not day.has_nulls() and offset.n_unique() == 1:
        return (day + time.fill_null("")).rank("dense").to_numpy().astype(np.intp) - 1
    notes.append(
        f"column {shown(window.name)} of {table.name} holds words, so windows are taken in the order of the file; "
        "dates like 2024-12-31 and 2024-12-31 09:00, all of one time zone, are put in their own order"
    )
    names, first, number = np.unique(words.to_numpy().astype(str), return_index=True, return_inverse=True)
    rank = np.empty(len(names), np.intp)
    rank[np.argsort(first)] = np.arange(len(names))
    return rank[number]
