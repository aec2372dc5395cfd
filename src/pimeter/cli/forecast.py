"""`pimeter forecast`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer

import pimeter
from pimeter.cli.app import app
from pimeter.cli.columns import TARGETS, guessed_if_any, named_or_guessed, pair_columns, refuse_one_for_two
from pimeter.cli.options import Json, LevelOption, Out, Prediction, Target, reads_files
from pimeter.cli.panel import PanelColumns, PanelTask, panel_forecast, series_column
from pimeter.cli.terminal import answer, progress, warnings_as
from pimeter.cli.writing import about_page, draft_of, noted, write_result
from pimeter.files import FileTable, Reading, opened, shown

if TYPE_CHECKING:
    from pimeter.evaluation.windows import Layout

WINDOWS = ("window", "origin", "cutoff", "issued", "made_on", "forecast_date")
TIMES = ("ds", "date", "datetime", "timestamp", "target_date", "target_time", "valid_date", "valid_time")
MAYBE_TIMES = ("time", "day", "week", "month")  # or parts of a date
STEPS = ("step", "steps", "h", "horizon", "lead", "steps_ahead")


def _is_stride(stride: float | None) -> float | None:
    """A distance between windows; before anything is read."""
    if stride is None or 0.0 < stride < math.inf:
        return stride
    msg = f"it must be more than 0; got {stride:g}. With a window at each step it is 1."
    raise typer.BadParameter(msg)


@app.command(
    epilog="""Examples:

pimeter forecast one-step.csv --target sales --prediction model

pimeter forecast paths.parquet --window made_on --step days_ahead --out report.html

pimeter forecast panel.csv --apply future.csv --out with-intervals.csv"""
)
@reads_files
def forecast(
    file: Annotated[str, typer.Argument(help="Forecasts and what then happened, one row for each window and step.")],
    target: Target = None,
    prediction: Prediction = None,
    window: Annotated[
        str | None,
        typer.Option(help="Column that says when a forecast was made: one window at each step, put in its order."),
    ] = None,
    step: Annotated[
        str | None,
        typer.Option(help="Column with the steps ahead: 1, 2, ... Without it the rows of a window in their order."),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(help="Column with the time that a row is about. Guessed when obvious; '' takes none."),
    ] = None,
    series: Annotated[
        str | None,
        typer.Option("--id", help="Column that tells several series apart. Guessed when obvious, such as unique_id."),
    ] = None,
    season: Annotated[
        int | None, typer.Option(help="Of several series: steps after which a pattern repeats.", min=2)
    ] = None,
    apply: Annotated[
        str | None,
        typer.Option(help="File with forecasts to come of several series: --out gets them with their intervals."),
    ] = None,
    stride: Annotated[
        float | None,
        typer.Option(help="How many steps apart windows start. Without it by the times, or 1.", callback=_is_stride),
    ] = None,
    level: LevelOption = 0.95,
    out: Out = None,
    json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Put a cone around forecasts, and say what it would have covered."""
    with opened(file, reading) as table:
        told_apart = _series_column(table, series, window, time, reading.notes)
        if told_apart is not None:
            columns = _panel_columns(table, told_apart, window, time, target, prediction, reading.notes)
            panel_forecast(PanelTask(file, table, columns, level, season, apply, out, reading), as_json=json)
            return
        if apply or season:
            msg = "--apply and --season are for several series: name the column that tells them apart with --id."
            raise ValueError(msg)
        with draft_of(out, file) as draft, progress(2) as tell:
            layout = _layout(table, target, prediction, window, step, time, reading.notes)
            tell(f"Reading {table.name}")
            from pimeter.evaluation.windows import windows

            given = windows(table, layout, reading.notes, stride)
            tell(f"Trying the cone on {len(given.y_true) // 2:,} windows")
            with warnings_as(reading.notes):
                found = pimeter.backtest(
                    given.y_true,
                    given.y_pred,
                    confidence_level=level,
                    stride=given.stride,
                    until_known=given.until_known,
                    names=given.names,
                )
            if draft and out:
                write_result(found, draft, out, about_page(file, layout._asdict()) | noted(reading.notes))
    answer(found, lambda: typer.echo(found), reading.notes, out, as_json=json)


def _series_column(
    table: FileTable, named: str | None, window: str | None, time: str | None, notes: list[str]
) -> str | None:
    """The column that tells several series apart; without a name only where windows and times have columns too."""
    has_both = all(
        given or any(name.strip().lower() in usual for name in table.columns)
        for given, usual in ((window, WINDOWS), (time, (*TIMES, *MAYBE_TIMES)))
    )
    return series_column(table, named, notes) if named or has_both else None


def _layout(
    table: FileTable,
    target: str | None,
    prediction: str | None,
    window: str | None,
    step: str | None,
    time: str | None,
    notes: list[str],
) -> Layout:
    """Columns of the forecasts of one series."""
    from pimeter.evaluation.windows import Layout

    columns = pair_columns(table, target, prediction, notes)
    step = step or guessed_if_any(table, STEPS, "step", notes)
    window = window or guessed_if_any(table, WINDOWS, "window", notes)
    if step is not None and window is None:
        window = named_or_guessed(table, WINDOWS, "window", None, notes)
    if time is None:
        time = _time_column(table, {*columns, window, step}, notes)
    found = Layout(*columns, window, step, time or None)
    refuse_one_for_two(table, found._asdict())
    return found


def _panel_columns(
    table: FileTable,
    series: str,
    window: str | None,
    time: str | None,
    target: str | None,
    prediction: str | None,
    notes: list[str],
) -> PanelColumns:
    """Columns of a file of several series, or a ValueError that says which to name."""
    window = named_or_guessed(table, WINDOWS, "window", window, notes)
    target = named_or_guessed(table, TARGETS, "target", target, notes)
    time = time or named_or_guessed(table, (*TIMES, *MAYBE_TIMES), "time", None, notes)
    named = {"series": series, "window": window, "time": time, "target": target, "prediction": prediction}
    refuse_one_for_two(table, named)
    table.check([name for name in named.values() if name is not None])
    return PanelColumns(series, window, time, target, prediction)


def _time_column(table: FileTable, taken: set[str | None], notes: list[str]) -> str | None:
    """The only column with a usual name for a time, or with a name that may be one and values that are."""
    free = [name for name in table.columns if name not in taken]
    times = [name for name in free if name.strip().lower() in TIMES]
    if not times:
        from pimeter.timestamps import tells_time

        maybe = [name for name in free if name.strip().lower() in MAYBE_TIMES]
        times = [name for name in maybe if tells_time(table.read([], [name])[name])]
    if len(times) != 1:
        return None
    notes.append(f"guessed that the time in {table.name} is column {shown(times[0])}")
    return times[0]
