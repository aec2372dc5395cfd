"""Options of several commands, refused before anything is read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pimeter.cli.writing import PACKED_ITSELF, PLAIN, RESULTS, TABLES, form_of
from pimeter.files import shown


def is_level(level: float) -> float:
    """A level as it is; before anything is read."""
    if 0.0 < level < 1.0:
        return level
    msg = f"it must lie between 0 and 1; got {level:g}. 95 % is 0.95."
    raise typer.BadParameter(msg)


Level = Annotated[
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
    ending, compression = form_of(out)
    if ending in TABLES and (compression == PLAIN or ending not in PACKED_ITSELF):
        return out
    msg = f"{shown(out)} does not say what to write; let it end in .csv, .tsv, .jsonl (also .gz or .zst) or .parquet."
    raise typer.BadParameter(msg)


Out = Annotated[
    Path | None,
    typer.Option(
        help="Where to write the result: .html is a page, .csv and .parquet are its table, .json is everything.",
        callback=as_result,
    ),
]
Target = Annotated[str | None, typer.Option(help="Column of what happened. Guessed when its name is obvious.")]
Prediction = Annotated[str | None, typer.Option(help="Column of what the model said. Guessed when obvious.")]


Json = Annotated[bool, typer.Option("--json", help="Print everything as JSON.")]
