"""`pimeter apply`: intervals of new rows by a calibration that was saved before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import pimeter
from pimeter.cli.app import app
from pimeter.cli.columns import PREDICTIONS, named_or_guessed
from pimeter.cli.given import given_columns
from pimeter.cli.interval import PredictionRows, interval_bounds, show_intervals
from pimeter.cli.options import Lower, Prediction, Quantiles, Std, Upper, as_table, reads_files
from pimeter.cli.recalibrate import calibrated_bounds, free_names, note_on_gaps, show_calibrated
from pimeter.cli.terminal import progress, say, warnings_as
from pimeter.cli.writing import write_table
from pimeter.files import FileTable, Reading, opened, replaced, shown

if TYPE_CHECKING:
    import polars as pl


@app.command(
    epilog="""Examples:

pimeter apply calibration.json new.csv --out with-intervals.csv

pimeter apply calibration.json new.csv --by store --out with-intervals.parquet"""
)
@reads_files
def apply(
    calibration: Annotated[
        Path, typer.Argument(help="What --save of interval or recalibrate wrote, or to_json() in Python.")
    ],
    new: Annotated[str, typer.Argument(help="New rows with predictions of the same model.")],
    out: Annotated[
        Path, typer.Option(help="Where to write them with lower and upper, as in pimeter interval.", callback=as_table)
    ],
    prediction: Prediction = None,
    by: Annotated[str | None, typer.Option(help="Column with the category, if there were some.")] = None,
    lower: Lower = None,
    upper: Upper = None,
    quantiles: Quantiles = None,
    std: Std = None,
    *,
    reading: Reading,
) -> None:
    """Write `lower` and `upper` beside new rows, by a calibration from a file: neither model nor targets are needed."""
    from pimeter.conformal.portable import owner_of
    from pimeter.coverage import counted

    notes = reading.notes
    try:
        text = calibration.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as why:
        reason = getattr(why, "strerror", why)
        msg = f"{shown(calibration)} cannot be read: {reason}. Give a file that --save or to_json() wrote."
        raise ValueError(msg) from why
    named = {"lower": lower, "upper": upper, "quantiles": quantiles, "std": std, "prediction": prediction}
    with opened(new, reading) as table, replaced(out, str(calibration), new) as draft, progress(2) as step:
        try:
            is_calibrator = owner_of(text) == "IntervalCalibrator"
            model = (pimeter.IntervalCalibrator if is_calibrator else pimeter.IntervalRegressor).from_json(text)
        except ValueError as why:
            msg = f"{shown(calibration)}: {why}"
            raise ValueError(msg) from why
        step(f"Reading {table.name}")
        if isinstance(model, pimeter.IntervalCalibrator):
            bounds = _recalibrated(model, table, named, notes)
        else:
            with warnings_as(notes):
                bounds = _around(model, table, prediction, by, notes)
        step(f"Writing {shown(out)}")
        write_table(table.with_columns(bounds.rename(free_names(table))), draft, out, like=table)
    say([*notes, *note_on_gaps(bounds)])
    if isinstance(model, pimeter.IntervalCalibrator):
        show_calibrated(model)
    else:
        show_intervals(model, bounds, by)
    typer.echo(f"Wrote {counted(bounds.height, 'row')}: {out}")


def _recalibrated(
    model: pimeter.IntervalCalibrator, table: FileTable, named: dict[str, str | None], notes: list[str]
) -> pl.DataFrame:
    """Bounds from columns of what a model says."""
    given = given_columns(table, named, model.confidence_level, notes)
    if given is None:
        msg = "give the columns that were calibrated: --lower with --upper, --quantiles, or --std with --prediction."
        raise ValueError(msg)
    return calibrated_bounds(model, given, table.read(list(given.names), []))


def _around(
    model: pimeter.IntervalRegressor, table: FileTable, prediction: str | None, by: str | None, notes: list[str]
) -> pl.DataFrame:
    """Bounds around a column of predictions."""
    if bool(model.categories_) != (by is not None):
        had = f"{len(model.categories_) - 1} categories" if model.categories_ else "no categories"
        msg = f"the calibration has {had}: {'give --by COLUMN' if by is None else 'leave --by out'}."
        raise ValueError(msg)
    name = named_or_guessed(table, PREDICTIONS, "prediction", prediction, notes)
    known = {str(one.label): one.label for one in model.categories_ if not isinstance(one.label, str)}
    return interval_bounds(model, PredictionRows(table.read([name], [by] if by else []), name, (), by, known))
