"""A table of forecasts, one row for each window and step, becomes windows of targets and predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pimeter.files import Table, shown
from pimeter.forecast import windows_until_known
from pimeter.panel import (
    column_of_ids,
    column_of_targets,
    crossing_column,
    has_several,
    is_time_part,
    panel_error,
    separating_column,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Numbers = NDArray[np.intp]
    Clocks = Sequence[Array | Numbers | None]  # the time of each row, and the number of its moment

SHARED = 0.5  # of the targets, that neighbouring windows have in common if one is made at each step
DAY = 86_400.0  # seconds
CYCLE = 60  # numbers of hours, days, weeks or months that begin anew are no more than this
SPARSE = 20  # windows times steps for each row from which on the column of steps is no such column
# Day, time and offset from UTC: the letters of the first two are in the order of time, unless offsets differ.
MOMENT = r"^(\d{4}-\d{2}(?:-\d{2})?)(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)(Z| ?[+-]\d{2}(?::?\d{2})?)?)?$"


class Layout(NamedTuple):
    """Names of the columns of a table of forecasts."""

    target: str
    prediction: str
    window: str | None = None  # when a forecast was made
    step: str | None = None  # how many steps ahead
    time: str | None = None  # which moment a forecast is about

    @property
    def used(self) -> list[str]:
        """Those that there are."""
        return [name for name in self if name is not None]


class Windows(NamedTuple):
    """Windows of one series, the oldest first; NaN for what is not known."""

    y_true: Array  # (windows, steps)
    y_pred: Array
    names: list[str] | None  # what windows are called
    stride: float  # steps between their starts
    until_known: Numbers | None = None  # windows until the target of each step is known, by dates


def windows(table: Table, layout: Layout, notes: list[str], stride: float | None = None) -> Windows:
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
    rows = np.arange(frame.height) if layout.window is None else _order(table, frame[layout.window], notes)
    steps = None if layout.step is None else _steps(table, frame[layout.step])
    moments = _moments(table, frame, layout.time, rows, notes)
    named = column_of_ids(table, layout.used, rows, _counted(rows) if steps is None else steps)
    if named is not None:
        raise panel_error(table, named)
    moments = _one_series(table, layout, frame, rows, steps, moments, notes)
    if moments is None and steps is None and layout.window is not None:
        _refuse_crossing(table, layout, rows)
    instants = None if moments is None or layout.time is None else _instants(frame[layout.time])
    by_time = moments is not None and steps is None
    if moments is not None and layout.window is None:
        rows = moments
    if steps is None:
        if moments is None or layout.window is None:
            steps = _counted(rows)
        else:
            steps = _in_time(table, layout, rows, moments, instants)
        order = f"the order of {shown(layout.time) if by_time else 'the file'}"
        notes.append(
            f"took the rows of each {shown(layout.window)} for steps 1, 2, ... ahead, in {order}"
            if steps.any()
            else f"took each row for a forecast one step ahead, in {order}; name the column of steps with --step"
        )
    y_true, y_pred = _placed(table, layout, frame, rows, steps, notes)
    until_known = None if instants is None else _until_known(layout, frame, rows, steps, instants)
    is_told = stride is not None
    if stride is None:
        stride = _found_stride(layout, y_true, rows, steps, [instants, moments], notes)
    if layout.window is not None:
        assumed = windows_until_known(y_true.shape[1], stride)
        if until_known is not None and is_told:
            until_known = np.maximum(until_known, assumed)
        _note_when_known(layout, assumed, until_known, notes)
    called = layout.window or (layout.time if moments is not None else None)
    if called is None:
        return Windows(y_true, y_pred, None, stride, until_known)
    _, first = np.unique(rows, return_index=True)
    return Windows(y_true, y_pred, [str(name) for name in frame[called].gather(first)], stride, until_known)


def _placed(
    table: Table, layout: Layout, frame: pl.DataFrame, rows: Numbers, steps: Numbers, notes: list[str]
) -> tuple[Array, Array]:
    """Targets and predictions, each at its window and step."""
    n, h = int(rows.max()) + 1, int(steps.max()) + 1
    if n * h > SPARSE * frame.height + 1000:
        which = shown(layout.step or layout.window)
        msg = f"{table.name}: {n:,} windows of {h:,} steps have only {frame.height:,} rows; is {which} the step?"
        raise ValueError(msg)
    places = rows * h + steps
    y_true, y_pred = np.full((2, n, h), np.nan)
    for values, name in ((y_true, layout.target), (y_pred, layout.prediction)):
        values.ravel()[places] = frame[name].cast(float).to_numpy()
    n_empty = int(np.isnan(y_pred).all(axis=0).sum())
    if n_empty:
        msg = f"{table.name}: {n_empty:,} of the steps 1 to {h:,} have no prediction at all; number steps 1, 2, ..."
        raise ValueError(msg)
    n_gaps = int(np.isnan(y_pred).any(axis=1).sum())
    if n_gaps:
        notes.append(f"{n_gaps:,} of {n:,} windows have no prediction for some steps, which are not known then")
    return y_true, y_pred


def _note_when_known(layout: Layout, assumed: Numbers, found: Numbers | None, notes: list[str]) -> None:
    """Say when targets are taken for known, where dates do not tell or tell otherwise than the stride."""
    if found is None:
        later = "1 window" if assumed[0] == 1 else f"{assumed[0]:,} windows"
        notes.append(
            f"the target of step 1 is taken for known {later} after its forecast; with dates of windows (--window) and "
            "of targets (--time) it is found by them"
        )
    elif (found != assumed).any():
        which = f"by the dates of {shown(layout.window)} and {shown(layout.time)}"
        notes.append(f"{which} the target of step 1 is known {found[0]:,} windows after its forecast")


def tells_time(column: pl.Series) -> bool:
    """Whether values are dates, or numbers of moments that do not begin anew as hours, days and months do."""
    if column.null_count() or _instants(column) is None:
        return False
    return not column.dtype.is_numeric() or column.n_unique() > CYCLE


def _instants(column: pl.Series) -> Array | None:
    """Numbers as they are, and seconds of dates and times; None for words."""
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
    """Seconds of dates in words, all of one time zone; None where some are none."""
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


def _is_dated(column: pl.Series) -> bool:
    import polars as pl

    kind = column.dtype
    return kind in (pl.Date, pl.Datetime) or not (kind.is_numeric() or kind.is_temporal())


def _until_known(layout: Layout, frame: pl.DataFrame, rows: Numbers, steps: Numbers, instants: Array) -> Numbers | None:
    """How many windows later the target of each step is known, at most; None unless windows and times are dates.

    It is known to the first window that is made at its time or later. Where first steps are less than a step away,
    times name the begin of what they are about, such as a day, which is known at its end.
    """
    if layout.window is None or layout.time is None:
        return None
    made = _instants(frame[layout.window])
    if made is None or not (_is_dated(frame[layout.window]) and _is_dated(frame[layout.time])):
        return None
    if (instants <= made).any():
        return None
    order = np.lexsort([steps, rows])
    follows = np.diff(rows[order]) == 0
    if follows.any():
        unit = float(np.median((np.diff(instants[order]) / np.maximum(np.diff(steps[order]), 1))[follows]))
    else:
        unit = DAY if not (instants % DAY).any() and (made % DAY).any() else 0.0
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


def _moments(table: Table, frame: pl.DataFrame, time: str | None, rows: Numbers, notes: list[str]) -> Numbers | None:
    """Numbers of the moments that rows are about, in the order of time; None where that is not known."""
    if time is None:
        return None
    if frame[time].null_count():
        notes.append(f"column {shown(time)} of {table.name} is missing in some rows, so it is not used")
        return None
    unordered: list[str] = []
    moments = _order(table, frame[time], unordered)
    is_of_windows = not has_several(rows, moments) and len(np.unique(rows)) < len(rows)  # when they were made
    return None if unordered or is_of_windows else moments


def _one_series(
    table: Table,
    layout: Layout,
    frame: pl.DataFrame,
    rows: Numbers,
    steps: Numbers | None,
    moments: Numbers | None,
    notes: list[str],
) -> Numbers | None:
    """Refuse a table in which rows have the same place, or a moment has several targets, as another column explains.

    Gives the moments back, or None where they do not tell the rows of a window apart.
    """
    within = steps if steps is not None else moments
    if within is None:
        return None
    place = within if layout.window is None else rows * (int(within.max()) + 1) + within
    _, first, counts = np.unique(place, return_index=True, return_counts=True)
    if (counts > 1).any():
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
    known = frame[layout.target].is_not_null().to_numpy()
    target = frame[layout.target].rank("dense").fill_null(0).to_numpy().astype(np.intp)
    if moments is not None and has_several(moments[known], target[known]):
        column = column_of_targets(table, layout.used, moments, frame[layout.target])
        if column is not None and not is_time_part(column.name):
            raise panel_error(table, column)
        if column is None:
            notes.append(f"a {shown(layout.time)} has several targets in {table.name}: is it one series?")
    return moments


def _refuse_crossing(table: Table, layout: Layout, rows: Numbers) -> None:
    """Refuse a table without times and steps in which a column parts all windows alike."""
    crossing = crossing_column(table, layout.used, rows, _counted(rows))
    if crossing is not None:
        raise panel_error(table, crossing)


def _in_time(table: Table, layout: Layout, rows: Numbers, moments: Numbers, instants: Array | None) -> Numbers:
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


def _is_usual(gaps: Array) -> NDArray[np.bool_]:
    """Whether each is the median one."""
    return np.isclose(gaps, np.median(gaps), rtol=1e-6, atol=0.0) if gaps.size else np.ones(0, np.bool_)


def _found_stride(
    layout: Layout, y_true: Array, rows: Numbers, steps: Numbers, clocks: Clocks, notes: list[str]
) -> float:
    """Steps between the starts of windows: by their moments, or 1."""
    n, h = y_true.shape
    if n < 2 or h < 2:
        return 1.0
    if clocks[-1] is None:
        one, other = y_true[:-1, 1:], y_true[1:, :-1]
        is_known = ~np.isnan(one) & ~np.isnan(other)
        if is_known.any() and np.mean((one == other)[is_known]) < SHARED:
            notes.append(
                "targets of neighbouring windows are not those of a window at each step, which is assumed; say with "
                "--stride how many steps apart windows start"
            )
        return 1.0
    order = np.lexsort([steps, rows])
    row, step = rows[order], steps[order]
    follows = np.diff(row) == 0
    times = [clock[order] for clock in clocks if clock is not None]
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


def _counted(rows: Numbers) -> Numbers:
    """Steps ahead as the rows of each window come."""
    order = np.argsort(rows, kind="stable")
    steps = np.empty_like(rows)
    steps[order] = np.arange(len(rows)) - np.searchsorted(rows[order], rows[order])
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
