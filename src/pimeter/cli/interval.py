"""`pimeter interval` and `pimeter plan`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import pimeter
from pimeter.cli.app import app
from pimeter.cli.columns import PREDICTIONS, complete_rows, named_or_guessed, pair_columns
from pimeter.cli.options import Level, Prediction, Target, as_table
from pimeter.cli.terminal import progress, say, warnings_as
from pimeter.cli.writing import write_table
from pimeter.files import opened, replaced, shown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@app.command(
    epilog="""Example:

pimeter interval held-out.csv --apply new.csv --out new-with-intervals.csv"""
)
def interval(
    calibration: Annotated[str, typer.Argument(help="Rows that the model was not trained on, with their targets.")],
    apply: Annotated[str, typer.Option(help="New rows with predictions of the same model.")],
    out: Annotated[
        Path,
        typer.Option(
            help="Where to write them: .csv, .tsv, .jsonl (these also with .gz or .zst) or .parquet.",
            callback=as_table,
        ),
    ],
    target: Target = None,
    prediction: Prediction = None,
    level: Level = 0.95,
) -> None:
    """Write `lower` and `upper` beside new predictions."""
    if calibration == apply == "-":
        msg = "calibration rows and new rows cannot both come from standard input."
        raise ValueError(msg)
    notes: list[str] = []
    with (
        opened(calibration) as past,
        opened(apply) as new,
        replaced(out, calibration, apply) as draft,
        progress() as step,
    ):
        columns = pair_columns(past, target, prediction, notes)
        step(f"Reading {past.name}")
        frame = complete_rows(past, past.read(columns), columns, notes)
        y, y_pred = (frame[name].to_numpy() for name in columns)
        with warnings_as(notes):
            model = pimeter.IntervalRegressor(_itself, confidence_level=level).calibrate(y_pred[:, None], y)
        below, above = (abs(float(bound)) for bound in model.predict_interval(0.0 * y_pred[:1, None])[0])
        given = (
            columns[1]
            if columns[1] in new.columns
            else named_or_guessed(new, PREDICTIONS, "prediction", prediction, notes)
        )
        step(f"Reading {new.name}")
        predicted = new.read([given])[given]
        finite = predicted.filter(predicted.is_finite())
        if len(finite):
            # What is wrong is said before anything is written.
            model.predict_interval(finite.sort().to_numpy()[[0, -1], None])
        step(f"Writing {shown(out)}")
        write_table(new.with_interval(given, below, above), draft, out)
    if predicted.null_count():
        notes.append(f"{predicted.null_count():,} rows without a prediction have no interval")
    say(notes)
    from pimeter.coverage import percent

    wrote = f"Wrote {len(predicted):,} rows: {out}"
    if math.isnan(model.guaranteed_level_):
        typer.echo(
            f"Intervals extend ±{model.margin_[1]:.3g} around the prediction. How many new targets they hold is not "
            f"known: rows of {past.name} are copies of others. Leave the copies out, and run this again.\n{wrote}"
        )
        return
    low, high = (percent(bound, 3) for bound in model.coverage_range_)
    typer.echo(
        f"{percent(model.guaranteed_level_)} of new targets are expected within ±{model.margin_[1]:.3g} of the "
        f"prediction. With {len(y):,} rows the true coverage lies between {low} and {high} (90 % confidence), "
        f"if new rows resemble these.\n{wrote}"
    )


@app.command(
    epilog="""Example:

pimeter plan --level 0.95 --within 0.02"""
)
def plan(
    level: Level = 0.95,
    within: Annotated[float, typer.Option(help="How near the true coverage should be to the level.")] = 0.02,
) -> None:
    """Say how many rows to hold out."""
    from pimeter.coverage import percent

    rows = pimeter.rows_needed(level, within)
    least, most = percent(max(level - within, 0.0)), percent(min(level + within, 1.0))
    typer.echo(
        f"Hold out {rows:,} rows: intervals for {percent(level)} then cover between {least} and {most} of "
        "new rows that resemble them (90 % confidence)."
    )


def _itself(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """The prediction is the only feature."""
    column: NDArray[np.float64] = X[:, 0]
    return column
