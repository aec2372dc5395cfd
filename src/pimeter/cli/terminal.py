"""What a command says on the terminal: progress, notes, a headline with a table."""

from __future__ import annotations

import math
import shutil
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from pimeter.evaluation.measurement import Measurement
    from pimeter.evaluation.results import Result
    from pimeter.evaluation.scorecards import Scorecard


def say_where(out: Path, *, err: bool = False) -> None:
    """Where the result is."""
    typer.echo(f"{'Report' if out.suffix.lower() == '.html' else 'Wrote'}: {out}", err=err)


@contextmanager
def progress() -> Iterator[Callable[[str], object]]:
    """What is going on, on a terminal; nothing elsewhere, and nothing stays."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=None)
        yield lambda text: progress.update(task, description=text)


@contextmanager
def warnings_as(notes: list[str]) -> Iterator[None]:
    """Warnings become notes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    notes += [str(warning.message) for warning in caught]


def say(notes: Sequence[str]) -> None:
    """Notes go to standard error, when all went well: a mistake is one line."""
    for note in notes:
        typer.echo(f"note: {' '.join(note.split())}", err=True)


def show_measurement(result: Measurement) -> None:
    """Headline, scores and advice on the terminal."""
    from pimeter.coverage import rounded

    rows = [
        (
            name.replace("_", " "),
            rounded(score.value),
            "not known" if math.isnan(score.lower) else f"{rounded(score.lower)} to {rounded(score.upper)}",
        )
        for name, score in result.scores.items()
    ]
    print_table(str(result.headline), ("score", "value", "90 % range"), rows, [*result.advice, result.code])


def show_scorecard(found: Scorecard) -> None:
    """Headline, metrics and what they mean on the terminal."""
    from pimeter.report.classifier import figure

    given = found.uncertainty["rows"]
    is_single = len({row["threshold"] for row in given}) == 1
    names = [row["metric"].replace("_", " ") + ("" if is_single else f" at {row['threshold']:g}") for row in given]
    rows = [
        (name, figure(row["value"]), f"{figure(row['lower'])} to {figure(row['upper'])}", row["method"])
        for name, row in zip(names, given, strict=True)
    ]
    from pimeter.coverage import percent

    noted: dict[str, list[str]] = {}
    for name, row in zip(names, given, strict=True):
        if row["note"]:
            noted.setdefault(row["note"], []).append(name)
    kind = f"{percent(found.uncertainty['confidence_level'])} interval"
    said = [f"{', '.join(which)}: {note}." for note, which in noted.items()]
    said += [" ".join(filter(None, [one.question, one.sentence, one.advice])) for one in found.findings]
    said += [found.code] if found.code else []
    print_table(str(found.headline), ("metric", "value", kind, "by"), rows, said)


def print_table(headline: str, names: Sequence[str], rows: Sequence[Sequence[str]], said: Sequence[str]) -> None:
    """A headline, a table whose second column holds numbers, and lines of text."""
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    head, *lines = (
        "  ".join(
            cell.rjust(n) if i == 1 else cell.ljust(n) for i, (cell, n) in enumerate(zip(row, widths, strict=True))
        )
        for row in (names, *rows)
    )
    typer.secho(f"{_wrapped(headline)}\n", bold=True)
    typer.secho(head.rstrip(), dim=True)
    for line in (*lines, ""):
        typer.echo(line.rstrip())
    for text in said:
        typer.echo(_wrapped(text))


def _wrapped(text: str) -> str:
    """Lines that fit on the terminal; text as it is for a file or another program."""
    if not sys.stdout.isatty():
        return text
    width = shutil.get_terminal_size().columns
    return "\n".join(
        textwrap.fill(line, width, replace_whitespace=False, break_on_hyphens=False) for line in text.splitlines()
    )


def answer(result: Result, show: Callable[[], None], notes: Sequence[str], out: Path | None, *, as_json: bool) -> None:
    """Notes, then the result as JSON or as it is shown, then where it was written."""
    say(notes)
    if as_json:
        typer.echo(result.to_json())
    else:
        show()
    if out:
        say_where(out, err=as_json)
