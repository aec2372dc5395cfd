"""`pimeter forecast` for a file of several series: a backtest of the panel, and forecasts to come with intervals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from pimeter.cli.terminal import answer, progress, say_where, warnings_as
from pimeter.cli.writing import about_page, draft_of, noted, write_result, write_table
from pimeter.files import FileTable, Reading, opened, replaced, shown

if TYPE_CHECKING:
    import polars as pl

    from pimeter.forecast import PanelIntervals


class PanelColumns(NamedTuple):
    """Columns of a panel in a file."""

    series: str
    window: str
    time: str
    target: str
    prediction: str | None  # None: all columns of numbers that are none of the others


def series_column(table: FileTable, named: str | None, notes: list[str]) -> str | None:
    """The column that tells series apart: the one named, or the only one with a usual name and several values."""
    if named is not None:
        table.check([named])
        return named
    from pimeter.panel import SERIES

    usual = [name for name in table.columns if name.strip().lower() in SERIES]
    if len(usual) != 1 or table.read([], usual)[usual[0]].n_unique() < 2:
        return None
    notes.append(f"guessed that series in {table.name} are told apart by column {shown(usual[0])}")
    return usual[0]


def panel_settings(columns: PanelColumns, level: float, season_length: int | None) -> PanelIntervals:
    """Intervals for these columns."""
    from pimeter.forecast import PanelIntervals

    return PanelIntervals(
        level,
        id_col=columns.series,
        time_col=columns.time,
        target_col=columns.target,
        cutoff_col=columns.window,
        models=None if columns.prediction is None else [columns.prediction],
        season_length=season_length,
    )


def panel_frame(table: FileTable, columns: PanelColumns, *, is_past: bool = True) -> pl.DataFrame:
    """All columns of a file, with times as dates or numbers."""
    import polars as pl

    from pimeter.timestamps import instants_of

    frame = table.read([], table.columns)
    for name in (columns.time, columns.window):
        if name not in frame.columns and not is_past:  # forecasts to come need no cutoffs
            continue
        held = frame[name]
        if held.dtype.is_numeric() or held.dtype in (pl.Date, pl.Datetime):
            continue
        seconds = instants_of(held)
        if seconds is None:
            msg = f"{table.name}: column {shown(name)} holds neither dates nor numbers; write dates like 2024-12-31."
            raise ValueError(msg)
        frame = frame.with_columns(pl.from_epoch(pl.Series(name, seconds * 1e6).cast(pl.Int64), time_unit="us"))
    return frame


class PanelTask(NamedTuple):
    """What is asked for: intervals of the forecasts of several series in a file, and where they go."""

    file: str
    table: FileTable
    columns: PanelColumns
    level: float
    season_length: int | None
    apply: str | None  # file with forecasts to come
    out: Path | None
    reading: Reading


def _refuse_no_table(task: PanelTask) -> None:
    """Refuse forecasts to come without a table to write them to."""
    if task.apply and (task.out is None or task.out.suffix.lower() not in {".csv", ".parquet"}):
        msg = "--apply writes forecasts with their intervals: name a table with --out, such as with-intervals.csv."
        raise ValueError(msg)


def panel_forecast(task: PanelTask, *, as_json: bool) -> None:
    """Try intervals on newer windows; write forecasts to come with intervals, and the page beside them."""
    from pimeter.evaluation.panel_backtesting import panel_backtest

    table, columns, out, notes = task.table, task.columns, task.out, task.reading.notes
    _refuse_no_table(task)
    page = out.with_suffix(".html") if task.apply and out else out
    with draft_of(page, task.file) as draft, progress(2) as tell:
        tell(f"Reading {table.name}")
        frame = panel_frame(table, columns)
        settings = panel_settings(columns, task.level, task.season_length)
        tell("Trying intervals on newer windows")
        with warnings_as(notes):
            found = panel_backtest(frame, settings)
        if task.apply and out:
            with opened(task.apply, task.reading) as future, replaced(out, task.file, task.apply) as held:
                forecasts = panel_frame(future, columns, is_past=False)
                with warnings_as(notes):
                    bounds = settings.fit(frame).predict_interval(forecasts)
                write_table(bounds.lazy().fill_nan(None), held, out, like=future)
        if draft and page:
            write_result(found, draft, page, about_page(task.file, columns._asdict()) | noted(notes))
    answer(found, lambda: typer.echo(found), notes, page, as_json=as_json)
    if task.apply and out:
        say_where(out, err=as_json)
