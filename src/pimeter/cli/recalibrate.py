"""`pimeter recalibrate`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

import pimeter
from pimeter.cli.app import app
from pimeter.cli.columns import TARGETS, complete_rows, named_or_guessed, refuse_one_for_two, rows_with
from pimeter.cli.given import NO_ROW, GivenColumns, given_columns
from pimeter.cli.options import (
    GivenLevel,
    Groups,
    Lower,
    Prediction,
    Quantiles,
    Save,
    Std,
    Target,
    Upper,
    as_table,
    reads_files,
)
from pimeter.cli.terminal import progress, say, warnings_as
from pimeter.cli.writing import save_calibration, scattered, tables_and_draft, write_table
from pimeter.files import FileTable, Reading, shown

if TYPE_CHECKING:
    import polars as pl


@app.command(
    epilog="""Examples:

pimeter recalibrate held-out.csv --lower lo-90 --upper hi-90 --apply new.csv --out new-calibrated.csv

pimeter recalibrate held-out.csv --prediction mean --std sd --level 0.95 --apply new.csv --out out.parquet"""
)
@reads_files
def recalibrate(
    calibration: Annotated[str, typer.Argument(help="Rows that the model was not trained on, with their targets.")],
    apply: Annotated[str, typer.Option(help="New rows with the same columns of what the model says.")],
    out: Annotated[
        Path,
        typer.Option(
            help="Where to write them with lower and upper (lower_calibrated, ... if they have these already).",
            callback=as_table,
        ),
    ],
    target: Target = None,
    prediction: Prediction = None,
    lower: Lower = None,
    upper: Upper = None,
    quantiles: Quantiles = None,
    std: Std = None,
    level: GivenLevel = None,
    method: Annotated[
        Literal["auto", "additive", "multiplicative", "normalised", "distributional"],
        typer.Option(help="How intervals are made to hold; auto learns it from rows that do not calibrate."),
    ] = "auto",
    groups: Groups = None,
    save: Save = None,
    *,
    reading: Reading,
) -> None:
    """Make anyone's intervals hold: write `lower` and `upper` beside new rows."""
    notes = reading.notes
    with tables_and_draft(calibration, apply, out, reading) as (past, new, draft), progress(4) as step:
        named = {"lower": lower, "upper": upper, "quantiles": quantiles, "std": std, "prediction": prediction}
        given = given_columns(past, named, level, notes)
        if given is None:
            msg = "give the columns to recalibrate: --lower with --upper, --quantiles, or --std with --prediction."
            raise ValueError(msg)
        own = named_or_guessed(past, TARGETS, "target", target, notes)
        columns = {f"column {name}": name for name in given.names}
        refuse_one_for_two(past, {"target": own, **columns, "column of groups": groups})
        together = [groups] if groups else []
        written = free_names(new)
        step(f"Reading {past.name}")
        known = past.read([own, *given.names], together)
        known = complete_rows(past, known, [own, *given.names], notes, NO_ROW)
        known = rows_with(past, known, {"group": groups}, notes)
        asked = given.level or level or _highest(given.levels)
        step(f"Calibrating on {known.height:,} rows")
        with warnings_as(notes):
            calibrator = pimeter.IntervalCalibrator(asked, method=method, random_state=0)
            own_groups = known[groups].to_numpy() if groups else None
            calibrator.fit(known[own].to_numpy(), **given.values(known), groups=own_groups)
        step(f"Reading {new.name}")
        rows = new.read(list(given.names), [])
        bounds = calibrated_bounds(calibrator, given, rows)
        step(f"Writing {shown(out)}")
        save_calibration(calibrator, save, calibration, apply, str(out))
        write_table(new.with_columns(bounds.rename(written)), draft, out, like=new)
    say([*notes, *note_on_gaps(bounds)])
    show_calibrated(calibrator)
    typer.echo(f"Wrote {bounds.height:,} rows with {' and '.join(map(shown, written.values()))}: {out}")


def free_names(new: FileTable) -> dict[str, str]:
    """Names of the columns that bounds are written to, which the file must not have yet."""
    for suffix in ("", "_calibrated"):
        names = {name: name + suffix for name in ("lower", "upper")}
        taken = [name for name in names.values() if name in new.columns]
        if not taken:
            return names
    msg = f"{new.name} has {' and '.join(map(shown, taken))} already, where bounds are written; rename them."
    raise ValueError(msg)


def _highest(levels: Sequence[float]) -> float:
    """Level of the outermost pair of quantiles; .95 without any."""
    pairs = [high for high in levels if any(math.isclose(low, 1.0 - high) for low in levels) and high > 0.5]
    return round(2.0 * max(pairs) - 1.0, 12) if pairs else 0.95


def calibrated_bounds(calibrator: pimeter.IntervalCalibrator, given: GivenColumns, rows: pl.DataFrame) -> pl.DataFrame:
    """Lower and upper bounds; null where something is missing."""
    import polars as pl

    is_complete = rows.select(~pl.any_horizontal(pl.col(given.names).is_null())).to_series()
    found = pl.DataFrame({name: pl.Series([None] * rows.height, dtype=pl.Float64) for name in ("lower", "upper")})
    if not is_complete.any():
        return found
    return scattered(found, is_complete, calibrator.predict_interval(**given.values(rows.filter(is_complete))))


def note_on_gaps(bounds: pl.DataFrame) -> list[str]:
    """A note on rows that have no interval, if there are some."""
    from pimeter.coverage import counted

    n = bounds["lower"].null_count()
    return [f"{counted(n, 'row')} without all columns {'has' if n == 1 else 'have'} no interval"] if n else []


def show_calibrated(calibrator: pimeter.IntervalCalibrator) -> None:
    """Print what is guaranteed of the recalibrated intervals."""
    from pimeter.coverage import percent

    level = calibrator.guaranteed_level_
    if math.isnan(level):
        typer.echo(f"Nothing is guaranteed of these intervals: {calibrator.guarantee_reason_}.")
    else:
        typer.echo(
            f"{percent(level)} of new targets are expected inside, calibrated on {calibrator.n_calibration_:,} rows."
        )
