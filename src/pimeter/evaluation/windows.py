"""A table of forecasts, one row for each window and step, becomes windows of targets and predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pimeter.files import FileTable, shown
from pimeter.forecast.window_arrays import windows_until_known
from pimeter.panel import (
    column_of_ids,
    column_of_targets,
    crossing_column,
    has_several,
    is_time_part,
    panel_error,
    separating_column,
)
from pimeter.timestamps import instants_of, is_dated, numbered

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from pimeter.protocols import Array, Flags, Index

MIN_FRACTION_IN_COMMON = 0.5  # of the targets, that neighbouring windows have in common if one is made at each step
DAY = 86_400.0  # seconds
MAX_PLACES_PER_ROW = 20  # windows times steps, above which a column is not taken for steps


class Layout(NamedTuple):
    """Names of the columns of a table of forecasts."""

    target: str
    prediction: str
    window: str | None = None  # when a forecast was made
    step: str | None = None  # how many steps ahead
    time: str | None = None  # which moment a forecast is about

    @property
    def used(self) -> list[str]:
        """Names of the columns that were given."""
        return [name for name in self if name is not None]


class ForecastWindows(NamedTuple):
    """Windows of one series, the oldest first; NaN for what is not known."""

    y_true: Array  # (windows, steps)
    y_pred: Array
    names: list[str] | None  # what windows are called
    stride: float  # steps between their starts
    until_known: Index | None = None  # windows until the target of each step is known, by dates


def windows(table: FileTable, layout: Layout, notes: list[str], stride: float | None = None) -> ForecastWindows:
    """Windows of targets and predictions, and how many steps apart they start unless that is given.

    Raises
    ------
    ValueError
        If a window, a step or all of a column is missing, a value is infinite, a step is none or comes twice, or the
        table holds several series.
    """
    numbers = [layout.target, layout.prediction, *([layout.step] if layout.step else [])]
    frame = table.read(numbers, [name for name in (layout.window, layout.time) if name is not None])
    _check(table, frame, numbers[:2], [name for name in (layout.window, layout.step) if name is not None])
    places = _places(table, layout, frame, notes)
    y_true, y_pred = _placed(table, layout, frame, places, notes)
    until_known = None if places.instants is None else _until_known(layout, frame, places)
    is_told = stride is not None
    if stride is None:
        stride = _found_stride(layout, y_true, places, notes)
    if layout.window is not None:
        assumed = windows_until_known(y_true.shape[1], stride)
        if until_known is not None and is_told:
            until_known = np.maximum(until_known, assumed)
        _note_when_known(layout, assumed, until_known, notes)
    return ForecastWindows(y_true, y_pred, _names(layout, frame, places), stride, until_known)


class _Places(NamedTuple):
    """Where each row of a table belongs."""

    rows: Index  # number of its window
    steps: Index  # steps ahead, from 0
    moments: Index | None  # number of the moment that it is about; None: not known
    instants: Array | None  # that moment, as a number or in seconds


def _places(table: FileTable, layout: Layout, frame: pl.DataFrame, notes: list[str]) -> _Places:
    """Window, step and moment of each row; or a ValueError if the table holds several series."""
    rows = np.arange(frame.height)
    if layout.window is not None:
        rows = numbered(table, frame[layout.window], notes, "windows")
    steps = None if layout.step is None else _steps(table, frame[layout.step])
    moments = _moments(table, frame, layout.time, rows, notes)
    _refuse_ids(table, layout, rows, steps)
    moments = _one_series(table, layout, frame, rows, steps, moments, notes)
    if moments is None and steps is None and layout.window is not None:
        _refuse_crossing(table, layout, rows)
    instants = None if moments is None or layout.time is None else instants_of(frame[layout.time])
    by_time = moments is not None and steps is None
    if moments is not None and layout.window is None:
        rows = moments
    if steps is None:
        steps = _found_steps(table, layout, rows, moments, instants)
        _note_steps(layout, steps, notes, by_time=by_time)
    return _Places(rows, steps, moments, instants)


def _note_steps(layout: Layout, steps: Index, notes: list[str], *, by_time: bool) -> None:
    """Say what rows were taken for, where no column tells steps."""
    order = f"the order of {shown(layout.time) if by_time else 'the file'}"
    notes.append(
        f"took the rows of each {shown(layout.window)} for steps 1, 2, ... ahead, in {order}"
        if steps.any()
        else f"took each row for a forecast one step ahead, in {order}; name the column of steps with --step"
    )


def _found_steps(table: FileTable, layout: Layout, rows: Index, moments: Index | None, instants: Array | None) -> Index:
    """Steps ahead where no column tells them: in the order of time, or as rows come."""
    if moments is None or layout.window is None:
        return _counted(rows)
    return _in_time(table, layout, rows, moments, instants)


def _names(layout: Layout, frame: pl.DataFrame, places: _Places) -> list[str] | None:
    """What windows are called: as their column says, or by the time of their rows."""
    called = layout.window or (layout.time if places.moments is not None else None)
    if called is None:
        return None
    _, first = np.unique(places.rows, return_index=True)
    return [str(name) for name in frame[called].gather(first)]


def _placed(
    table: FileTable, layout: Layout, frame: pl.DataFrame, places: _Places, notes: list[str]
) -> tuple[Array, Array]:
    """Targets and predictions, each at its window and step."""
    rows, steps = places.rows, places.steps
    n, h = int(rows.max()) + 1, int(steps.max()) + 1
    if n * h > MAX_PLACES_PER_ROW * frame.height + 1000:
        which = shown(layout.step or layout.window)
        msg = f"{table.name}: {n:,} windows of {h:,} steps have only {frame.height:,} rows; is {which} the step?"
        raise ValueError(msg)
    where = rows * h + steps
    y_true, y_pred = np.full((2, n, h), np.nan)
    for values, name in ((y_true, layout.target), (y_pred, layout.prediction)):
        values.ravel()[where] = frame[name].cast(float).to_numpy()
    n_empty = int(np.isnan(y_pred).all(axis=0).sum())
    if n_empty:
        msg = f"{table.name}: {n_empty:,} of the steps 1 to {h:,} have no prediction at all; number steps 1, 2, ..."
        raise ValueError(msg)
    n_gaps = int(np.isnan(y_pred).any(axis=1).sum())
    if n_gaps:
        notes.append(f"{n_gaps:,} of {n:,} windows have no prediction for some steps, which are not known then")
    return y_true, y_pred


def _note_when_known(layout: Layout, assumed: Index, found: Index | None, notes: list[str]) -> None:
    """Say when targets are assumed to be known, where dates do not tell or tell otherwise than the stride."""
    if found is None:
        later = "1 window" if assumed[0] == 1 else f"{assumed[0]:,} windows"
        notes.append(
            f"the target of step 1 is assumed to be known {later} after its forecast; dates of windows (--window) "
            "and of targets (--time) would tell"
        )
    elif (found != assumed).any():
        which = f"by the dates of {shown(layout.window)} and {shown(layout.time)}"
        notes.append(f"{which} the target of step 1 is known {found[0]:,} windows after its forecast")


def _until_known(layout: Layout, frame: pl.DataFrame, places: _Places) -> Index | None:
    """How many windows later the target of each step is known, at most; None unless windows and times are dates.

    It is known to the first window that is made at its time or later. Where first steps are less than a step away,
    times name the begin of what they are about, such as a day, which is known at its end.
    """
    rows, steps, instants = places.rows, places.steps, places.instants
    if layout.window is None or layout.time is None or instants is None:
        return None
    made = instants_of(frame[layout.window])
    if made is None or not (is_dated(frame[layout.window]) and is_dated(frame[layout.time])):
        return None
    if (instants <= made).any():
        return None
    unit = _unit_of_steps(rows, steps, instants, made)
    lead = np.median((instants - made - unit * steps)[steps == steps.min()])
    due = instants + unit if lead < 0.9 * unit else instants
    cutoffs = np.unique(made)
    later = np.searchsorted(cutoffs, due) - rows
    is_seen = later + rows < len(cutoffs)
    until = np.ones(int(steps.max()) + 1, np.intp)
    for step in range(len(until)):
        here = steps == step
        seen = here & is_seen
        until[step] = max(1, later[seen if seen.any() else here].max(initial=1))
    return np.maximum.accumulate(until)


def _unit_of_steps(rows: Index, steps: Index, instants: Array, made: Array) -> float:
    """Seconds from step to step; of single steps a day if targets are days and windows are not, else 0."""
    order = np.lexsort([steps, rows])
    follows = np.diff(rows[order]) == 0
    if follows.any():
        return float(np.median((np.diff(instants[order]) / np.maximum(np.diff(steps[order]), 1))[follows]))
    return DAY if not (instants % DAY).any() and (made % DAY).any() else 0.0


def _moments(table: FileTable, frame: pl.DataFrame, time: str | None, rows: Index, notes: list[str]) -> Index | None:
    """Numbers of the moments that rows are about, in the order of time; None where that is not known."""
    if time is None:
        return None
    if frame[time].null_count():
        notes.append(f"column {shown(time)} of {table.name} is missing in some rows, so it is not used")
        return None
    unordered: list[str] = []
    moments = numbered(table, frame[time], unordered)
    is_of_windows = not has_several(rows, moments) and len(np.unique(rows)) < len(rows)  # when they were made
    return None if unordered or is_of_windows else moments


def _one_series(
    table: FileTable,
    layout: Layout,
    frame: pl.DataFrame,
    rows: Index,
    steps: Index | None,
    moments: Index | None,
    notes: list[str],
) -> Index | None:
    """Refuse a table in which rows have the same place, or a moment has several targets, as another column explains.

    Gives the moments back, or None where they do not tell the rows of a window apart.
    """
    within = steps if steps is not None else moments
    if within is None:
        return None
    place = within if layout.window is None else rows * (int(within.max()) + 1) + within
    _, first = np.unique(place, return_index=True)
    if len(first) < len(place):
        column = separating_column(table, layout.used, place)
        if column is not None and (steps is not None or not is_time_part(column.name)):
            raise panel_error(table, column)
        if steps is not None:
            twice = int(np.setdiff1d(np.arange(len(place)), first)[0]) + 1
            msg = f"{table.name}: row {twice:,} repeats window and step of an earlier row. Keep one of them."
            raise ValueError(msg)
        where = " and ".join(shown(name) for name in (layout.window, layout.time) if name is not None)
        notes.append(f"several rows have the same {where}, so rows are taken in the order of the file")
        return None
    if moments is not None:
        _check_targets(table, layout, frame, moments, notes)
    return moments


def _check_targets(table: FileTable, layout: Layout, frame: pl.DataFrame, moments: Index, notes: list[str]) -> None:
    """Refuse a table in which a moment has several targets, as another column explains; otherwise ask."""
    known = frame[layout.target].is_not_null().to_numpy()
    target = frame[layout.target].rank("dense").fill_null(0).to_numpy().astype(np.intp)
    if not has_several(moments[known], target[known]):
        return
    column = column_of_targets(table, layout.used, moments, frame[layout.target])
    if column is not None and not is_time_part(column.name):
        raise panel_error(table, column)
    if column is None:
        notes.append(f"a {shown(layout.time)} has several targets in {table.name}: is it one series?")


def _refuse_ids(table: FileTable, layout: Layout, rows: Index, steps: Index | None) -> None:
    """Refuse a table with a column whose name and values are those of series."""
    named = column_of_ids(table, layout.used, rows, _counted(rows) if steps is None else steps)
    if named is not None:
        raise panel_error(table, named)


def _refuse_crossing(table: FileTable, layout: Layout, rows: Index) -> None:
    """Refuse a table without times and steps in which a column divides all windows in the same way."""
    crossing = crossing_column(table, layout.used, rows, _counted(rows))
    if crossing is not None:
        raise panel_error(table, crossing)


def _in_time(table: FileTable, layout: Layout, rows: Index, moments: Index, instants: Array | None) -> Index:
    """Steps ahead in the order of time; or a ValueError where a window leaves out a moment.

    Steps are even by the time that passes, or as moments are counted, such as those of working days and months.
    """
    order = np.lexsort([moments, rows])
    steps = np.empty_like(rows)
    steps[order] = _counted(rows[order])
    follows = np.diff(rows[order]) == 0
    uneven = [~_is_usual(np.diff(clock[order])[follows]) for clock in (instants, moments) if clock is not None]
    fewest = min(uneven, key=np.count_nonzero)
    if fewest.any():
        row = order[1:][follows][fewest][0] + 1
        msg = (
            f"{table.name}: a window leaves out times of column {shown(layout.time)} before row {row:,}, so steps "
            "cannot be counted. Name a column of steps with --step, or add the rows with an empty prediction."
        )
        raise ValueError(msg)
    return steps


def _is_usual(gaps: Array) -> Flags:
    """Whether each is the median one."""
    return np.isclose(gaps, np.median(gaps), rtol=1e-6, atol=0.0) if gaps.size else np.ones(0, np.bool_)


def _found_stride(layout: Layout, y_true: Array, places: _Places, notes: list[str]) -> float:
    """Steps between the starts of windows: by their moments, or 1."""
    n, h = y_true.shape
    if n < 2 or h < 2:
        return 1.0
    if places.moments is None:
        _note_other_stride(y_true, notes)
        return 1.0
    order = np.lexsort([places.steps, places.rows])
    row, step = places.rows[order], places.steps[order]
    follows = np.diff(row) == 0
    times = [clock[order] for clock in (places.instants, places.moments) if clock is not None]
    units = [np.diff(time)[follows] / np.diff(step)[follows] for time in times]
    best = next((i for i, each in enumerate(units) if _is_usual(each).all()), -1)
    unit = float(np.median(units[best]))
    starts = (times[best] - unit * step)[np.r_[True, ~follows]]
    between = np.diff(starts) / unit
    stride = float(between.min()) if between.min() > 0.0 else float(between.mean())
    if not stride > 0.0:
        return 1.0
    if not np.isclose(stride, 1.0):
        notes.append(f"windows start {stride:.4g} steps apart or more, by column {shown(layout.time)}")
    return stride


def _note_other_stride(y_true: Array, notes: list[str]) -> None:
    """Say that windows do not seem to be made at each step, which is assumed."""
    one, other = y_true[:-1, 1:], y_true[1:, :-1]
    is_known = ~np.isnan(one) & ~np.isnan(other)
    if is_known.any() and np.mean((one == other)[is_known]) < MIN_FRACTION_IN_COMMON:
        notes.append(
            "targets of neighbouring windows are not those of a window at each step, which is assumed; say with "
            "--stride how many steps apart windows start"
        )


def _check(table: FileTable, frame: pl.DataFrame, columns: Sequence[str], places: Sequence[str]) -> None:
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


def _steps(table: FileTable, given: pl.Series) -> Index:
    """How many steps ahead each row is, from 0, by the column of steps, which are 1, 2, ...; or a ValueError."""
    values = given.to_numpy()
    with np.errstate(invalid="ignore"):  # what is not an integer is refused below
        steps = values.astype(np.intp) - 1
    wrong = np.flatnonzero((values != steps + 1) | (steps < 0))
    if wrong.size:
        row = int(wrong[0])
        msg = f"{table.name}: row {row + 1:,} of column {shown(given.name)} holds {values[row]:g}; steps are 1, 2, ..."
        raise ValueError(msg)
    return steps


def _counted(rows: Index) -> Index:
    """Steps ahead as the rows of each window come."""
    order = np.argsort(rows, kind="stable")
    steps = np.empty_like(rows)
    steps[order] = np.arange(len(rows)) - np.searchsorted(rows[order], rows[order])
    return steps
