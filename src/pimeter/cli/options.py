"""Options of several commands, refused before anything is read."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from pimeter.cli.writing import RESULTS, form_of
from pimeter.files import Reading, shown


def is_level(level: float | None) -> float | None:
    """A level as it is; before anything is read."""
    if level is None or 0.0 < level < 1.0:
        return level
    msg = f"it must lie between 0 and 1; got {level:g}. 95 % is 0.95."
    raise typer.BadParameter(msg)


LevelOption = Annotated[
    float,
    typer.Option(help="Proportion of new targets that intervals should cover, between 0 and 1.", callback=is_level),
]


def as_result(out: Path | None) -> Path | None:
    """Where a result goes, if its name says in what form; before anything is read."""
    if out is None or out.suffix.lower() in RESULTS:
        return out
    forms = ", ".join(f"{ending} ({what})" for ending, what in RESULTS.items())
    msg = f"{shown(out)} does not say what to write; let it end in one of {forms}."
    raise typer.BadParameter(msg)


def as_table(out: Path) -> Path:
    """Where a table goes, if its name says in what form; before anything is read."""
    if form_of(out).is_table:
        return out
    known = ".csv, .tsv, .jsonl (also .gz or .zst), .json, .parquet or .feather"
    msg = f"{shown(out)} does not say what to write; let it end in {known}."
    raise typer.BadParameter(msg)


Out = Annotated[
    Path | None,
    typer.Option(
        help="Where to write the result: .html is a page, .csv and .parquet are its table, .json is everything.",
        callback=as_result,
    ),
]
Target = Annotated[str | None, typer.Option(help="Column of what happened. Guessed when its name is obvious.")]
GivenLevel = Annotated[
    float | None,
    typer.Option(
        help="Proportion of targets that intervals should cover; told by names such as lo-90, else 0.95.",
        callback=is_level,
    ),
]
Lower = Annotated[str | None, typer.Option(help="Column of lower bounds that a model gave, with --upper.")]
Upper = Annotated[str | None, typer.Option(help="Column of upper bounds.")]
Quantiles = Annotated[
    str | None, typer.Option(help="Columns of quantiles, whose names tell the levels: q0.05,q0.5,q0.95 or p5,p95.")
]
Std = Annotated[str | None, typer.Option(help="Column of standard deviations around the prediction.")]
Prediction = Annotated[str | None, typer.Option(help="Column of what the model said. Guessed when obvious.")]
Groups = Annotated[str | None, typer.Option(help="Column of rows that belong together, such as a patient's.")]

Save = Annotated[Path | None, typer.Option(help="Also write what was calibrated, a .json file for pimeter apply.")]
Json = Annotated[bool, typer.Option("--json", help="Print everything as JSON.")]


def _reading_option(kind: Any, names: str, about: str) -> Any:
    return Annotated[kind, typer.Option(names, help=about, rich_help_panel="How files are read, if not as guessed")]


READING = {
    "encoding": _reading_option(str | None, "--encoding", "Encoding of text: utf-8, latin-1, utf-16, ..."),
    "decimal": _reading_option(str | None, "--decimal", "Decimal mark: . or ,"),
    "thousands": _reading_option(str | None, "--thousands", "What stands between thousands: , or . or ' or a space."),
    "date_format": _reading_option(str | None, "--date-format", "How dates are written, such as %d/%m/%Y."),
    "sheet": _reading_option(str | None, "--sheet", "Sheet of an Excel file: its name or number. Else the first."),
    "header": _reading_option(bool | None, "--header/--no-header", "Whether the first line holds names of columns."),
}


def reads_files(command: Callable[..., None]) -> Callable[..., None]:
    """A command with the options that say how files are read, which it gets as one `reading`."""

    @functools.wraps(command)
    def run(**given: Any) -> None:
        told = {name: given.pop(name) for name in READING}
        command(**given, reading=Reading(**told))

    signature = inspect.signature(command, eval_str=True)
    kinds = {name: one.annotation for name, one in signature.parameters.items() if name != "reading"} | READING
    parameters = [signature.parameters[name] for name in kinds if name not in READING]
    parameters += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=READING[name])
        for name in READING
    ]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = kinds
    return run
