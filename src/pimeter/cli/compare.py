"""`pimeter compare`."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

import pimeter
from pimeter.cli.app import app
from pimeter.cli.columns import (
    TARGETS,
    categories,
    complete_rows,
    feature_columns,
    named_or_guessed,
    names_in,
    refuse_one_for_two,
    rows_with,
)
from pimeter.cli.given import bounds_of_models
from pimeter.cli.options import GivenLevel, Json, Out, Target, reads_files
from pimeter.cli.terminal import answer, print_table, progress
from pimeter.cli.writing import about_page, draft_of, write_result
from pimeter.files import Reading, opened, shown

if TYPE_CHECKING:
    from pimeter.evaluation.comparison import Comparison

DEFAULT_LEVEL = 0.95


@app.command(
    epilog="""Examples:

pimeter compare predictions.csv --models ridge,forest

pimeter compare predictions.parquet --models ridge,forest,network --by country --time date --out comparison.html

pimeter compare forecasts.csv --models ARIMA,ETS --intervals, for columns ARIMA-lo-90, ARIMA-hi-90, ETS-lo-90, ..."""
)
@reads_files
def compare(
    file: Annotated[str, typer.Argument(help="Targets, and a column of predictions for each model.")],
    models: Annotated[str, typer.Option(help="Columns of predictions, separated by commas; two or more.")],
    target: Target = None,
    features: Annotated[str | None, typer.Option(help="Columns that may tell where which model is better.")] = None,
    by: Annotated[str | None, typer.Option(help="Column with a category, to compare models in each.")] = None,
    time: Annotated[str | None, typer.Option(help="Column of dates or numbers that put rows in order.")] = None,
    intervals: Annotated[
        bool, typer.Option("--intervals", help="Compare intervals: columns such as ridge-lo-90 and ridge-hi-90.")
    ] = False,
    level: GivenLevel = None,
    out: Out = None,
    json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Say which of several models is better, by how much, and where."""
    names = _two_or_more(models)
    notes = reading.notes
    with opened(file, reading) as table, draft_of(out, file) as draft, progress(2) as step:
        step(f"Reading {table.name}")
        own = named_or_guessed(table, TARGETS, "target", target, notes)
        columns = {name: [name] for name in names}
        if intervals:
            bounds = bounds_of_models(table, list(columns), level, notes)
            columns, level = bounds.columns, bounds.level
        predicted = list(chain.from_iterable(columns.values()))
        refuse_one_for_two(table, {"target": own, **{f"column {name}": name for name in predicted}})
        others = feature_columns(table, features, {own, *names, *predicted, by, time})
        frame = table.read([own, *predicted], list(dict.fromkeys([*others, *filter(None, (by, time))])))
        frame = complete_rows(table, frame, [own, *predicted], notes, "target or no prediction")
        frame = rows_with(table, frame, {"time": time}, notes)
        step(f"Comparing {len(names)} models on {frame.height:,} rows")
        from pimeter.timestamps import numbered

        found = pimeter.compare(
            frame[own].to_numpy(),
            {name: frame.select(own_columns).to_numpy().squeeze() for name, own_columns in columns.items()},
            X=frame.select(others) if others else None,
            by=categories(frame[by]) if by else None,
            time=numbered(table, frame[time], notes) if time else None,
            confidence_level=level or DEFAULT_LEVEL,
        )
        if draft and out:
            write_result(found, draft, out, about_page(file, {"target": own, "models": ", ".join(names)}))
    answer(found, lambda: show(found), notes, out, as_json=json)


def _two_or_more(models: str) -> list[str]:
    """Names of models, with commas between."""
    names = names_in(models)
    if len(set(names)) < 2:
        msg = f"--models {shown(models)} names {len(set(names))} column; give two or more, separated by commas."
        raise ValueError(msg)
    return names


def show(found: Comparison) -> None:
    """Headline, scores, differences and what they mean on the terminal."""
    from pimeter.coverage import rounded

    rows = [
        (
            one.score.replace("_", " "),
            rounded(one.value),
            f"{rounded(one.lower)} to {rounded(one.upper)}",
            f"{one.model} less {one.other}",
            one.better,
        )
        for one in found.contrasts
    ]
    sentences = [" ".join(filter(None, [one.question, one.sentence])) for one in found.findings[-1:]]
    names = ("score", "difference", "95 % range", "models", "better")
    print_table(str(found.headline), names, rows, [*sentences, *found.advice])
