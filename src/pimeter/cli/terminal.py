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
    from pimeter.evaluation.probabilistic import IntervalMeasurement
    from pimeter.evaluation.results import Result
    from pimeter.evaluation.scorecards import Scorecard


def say_where(out: Path, *, err: bool = False) -> None:
    """Print where the result was written."""
    typer.echo(f"{'Report' if out.suffix.lower() == '.html' else 'Wrote'}: {out}", err=err)


@contextmanager
def progress(n_steps: int) -> Iterator[Callable[[str], object]]:
    """What is going on, and a bar of how many steps are done, on a terminal; nothing elsewhere, and nothing stays."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    what = TextColumn("{task.description}", markup=False)
    columns = (SpinnerColumn(), BarColumn(20), TimeElapsedColumn(), what)
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=n_steps, completed=-1)
        yield lambda text: bar.update(task, description=text, advance=1)


@contextmanager
def warnings_as(notes: list[str]) -> Iterator[None]:
    """Add warnings of what runs within to the notes, instead of showing them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    notes += [str(warning.message) for warning in caught]


def say(notes: Sequence[str]) -> None:
    """Notes go to standard error, when all went well: a mistake is one line."""
    for note in notes:
        typer.echo(f"note: {' '.join(note.split())}", err=True)


def show_measurement(result: Measurement | IntervalMeasurement, findings: Sequence[str] = ()) -> None:
    """Headline, scores, findings to be shown, and advice on the terminal."""
    from pimeter.coverage import rounded
    from pimeter.report.page import UNKNOWN

    rows = [
        (
            name.replace("_", " "),
            rounded(score.value),
            UNKNOWN if math.isnan(score.lower) else f"{rounded(score.lower)} to {rounded(score.upper)}",
        )
        for name, score in result.scores.items()
    ]
    reasons: dict[str, list[str]] = {}
    for name, score in result.scores.items():
        if math.isnan(score.lower):
            reasons.setdefault(score.assumes, []).append(name.replace("_", " "))
    refused = [f"{', '.join(names)}: {reason}." for reason, names in reasons.items()]
    print_table(
        str(result.headline), ("score", "value", "90 % range"), rows, [*refused, *findings, *result.advice, result.code]
    )


def show_given(result: Measurement | IntervalMeasurement) -> None:
    """Headline, scores, what checks found and advice on the terminal."""
    asked = [one for one in result.findings if not math.isnan(one.p_value) or one.name in {"decomposition", "infinite"}]
    show_measurement(result, [f"{one.question} {one.sentence}" for one in asked])


def show_scorecard(found: Scorecard) -> None:
    """Headline, metrics and what they mean on the terminal."""
    from pimeter.report.text import scorecard_table

    table = scorecard_table(found.to_dict())
    print_table(str(found.headline), table.names, table.rows, table.sentences)


def print_table(headline: str, names: Sequence[str], rows: Sequence[Sequence[str]], sentences: Sequence[str]) -> None:
    """A headline, a table whose second column holds numbers, and lines of text."""
    from pimeter.report.text import TextTable

    head, *lines = TextTable(names, rows, sentences).lines
    typer.secho(f"{_wrapped(headline)}\n", bold=True)
    typer.secho(head, dim=True)
    for line in (*lines, ""):
        typer.echo(line)
    for text in sentences:
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
