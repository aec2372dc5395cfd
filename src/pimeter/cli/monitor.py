"""`pimeter monitor`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import pimeter
from pimeter.cli.app import app
from pimeter.cli.columns import TARGETS, categories, named_or_guessed, refuse_one_for_two
from pimeter.cli.given import GivenColumns, given_columns, recalibration_command
from pimeter.cli.options import GivenLevel, Json, Lower, Out, Target, Upper, is_level, reads_files
from pimeter.cli.terminal import answer, print_table, progress
from pimeter.cli.writing import about_page, draft_of, write_result
from pimeter.files import FileTable, Reading, opened, shown

if TYPE_CHECKING:
    import polars as pl

    from pimeter.monitoring.explanation import Explanation

EXIT_CODE_OF_ALARM = 3
LOWERS, UPPERS = ("lower", "lower_bound", "lo"), ("upper", "upper_bound", "hi")


@app.command(
    epilog="""Examples:

pimeter monitor log.csv --state watch.json --level 0.9

pimeter monitor log.csv --state watch.json --lower lo-90 --upper hi-90 --by store --id order --out page.html"""
)
@reads_files
def monitor(
    file: Annotated[str, typer.Argument(help="A log of intervals and targets; targets that have not come are empty.")],
    state: Annotated[Path, typer.Option(help="Where to keep what is known: a JSON file, begun if it is not there.")],
    target: Target = None,
    lower: Lower = None,
    upper: Upper = None,
    by: Annotated[str | None, typer.Option(help="Column of subgroups, watched one by one.")] = None,
    ids: Annotated[
        str | None, typer.Option("--id", help="Column of ids. Without it rows may only be added at the end.")
    ] = None,
    level: GivenLevel = None,
    false_alarm_rate: Annotated[
        float | None,
        typer.Option(help="Largest probability of ever raising a false alarm; 0.05 if not given.", callback=is_level),
    ] = None,
    run_length: Annotated[
        int | None, typer.Option(help="Instead of that: rows between false alarms, on average, at least.")
    ] = None,
    tolerance: Annotated[
        float | None, typer.Option(help="How far below the level the coverage may be; else by --calibration-rows.")
    ] = None,
    calibration_rows: Annotated[int | None, typer.Option(help="Number of rows that calibrated the intervals.")] = None,
    restart: Annotated[
        bool, typer.Option("--restart", help="Begin a new watch with the rows that are new: intervals were changed.")
    ] = False,
    out: Out = None,
    json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Watch that intervals go on holding. Exit code 0: no alarm, 3: alarm, 2: something is wrong with the input."""
    notes = reading.notes
    _refuse_same(out, state)
    with opened(file, reading) as table, draft_of(out, file) as draft, progress(2) as tell:
        own = named_or_guessed(table, TARGETS, "target", target, notes)
        bounds = _bounds(table, lower, upper, notes)
        refuse_one_for_two(table, {"target": own, "lower bound": bounds[0], "upper bound": bounds[1]})
        from pimeter.monitoring.log import NEVER, count_log

        settings = {
            "confidence_level": _level(table, bounds, state, level, notes),
            "false_alarm_rate": false_alarm_rate,
            "run_length": run_length,
            "tolerance": tolerance,
            "n_calibration": None if restart and state.exists() else calibration_rows,
            "expire_after": NEVER,
        }
        tell(f"Reading {table.name}")
        frame = table.read([own, *bounds], [name for name in (by, ids) if name is not None])
        _refuse_missing(table, frame, bounds)
        with pimeter.CoverageMonitor.open(state, **_given(settings)) as watch:
            if restart:
                watch._renew(calibration_rows)
            tell("Counting what is new")
            new = count_log(
                watch,
                frame[own].to_numpy(),
                frame.select(bounds).to_numpy(),
                *(None if name is None else categories(frame[name]) for name in (by, ids)),
            )
            columns = {"--target": own, "--lower": bounds[0], "--upper": bounds[1], "--by": by, "--id": ids}
            found = _with_commands(watch.explain(), file, state, columns, reading)
        counts = f"{new.n_new:,} rows were new, and {new.n_counted:,} targets"
        notes.append(f"{counts}; {found.n_waiting:,} rows wait for theirs")
        if draft and out:
            named = {"target": own, "bounds": ", ".join(bounds), "by": by, "id": ids, "state": str(state)}
            write_result(found, draft, out, about_page(file, named))
    answer(found, lambda: show(found), notes, out, as_json=json)
    if found.is_alarm:
        raise typer.Exit(EXIT_CODE_OF_ALARM)


def _with_commands(
    found: Explanation, file: str, state: Path, columns: Mapping[str, str | None], reading: Reading
) -> Explanation:
    """What is known, with commands in the place of code."""
    if not found.code:
        return found
    target, lower, upper = (str(columns[name]) for name in ("--target", "--lower", "--upper"))
    given = GivenColumns((lower, upper), "intervals", found.confidence_level)
    named = [part for name, column in columns.items() if column is not None for part in (name, column)]
    again = ["pimeter", "monitor", file, "--state", str(state), *named, *reading.options, "--restart"]
    code = "\n".join(
        [
            "# since-the-change.csv: the rows of the log from there on",
            recalibration_command("since-the-change.csv", target, given, found.confidence_level, reading.options),
            "# once the log has intervals that were made anew",
            shlex.join(again),
        ]
    )
    return replace(found, diagnosis=replace(found.diagnosis, code=code))


def _given(settings: Mapping[str, float | None]) -> dict[str, float]:
    """Settings that were given."""
    return {name: value for name, value in settings.items() if value is not None}


def _refuse_same(out: Path | None, state: Path) -> None:
    """Refuse to write a page in the place of what is known."""
    if out is not None and out.resolve() == state.resolve():
        msg = f"--out and --state are both {shown(out)}; give each a file of its own."
        raise ValueError(msg)


def _bounds(table: FileTable, lower: str | None, upper: str | None, notes: list[str]) -> tuple[str, str]:
    """Columns of lower and upper bounds."""
    return (
        named_or_guessed(table, LOWERS, "lower", lower, notes),
        named_or_guessed(table, UPPERS, "upper", upper, notes),
    )


def _level(
    table: FileTable, bounds: tuple[str, str], state: Path, level: float | None, notes: list[str]
) -> float | None:
    """The level given, or that of names like lo-90; None if the state knows it."""
    if level is not None or state.exists():
        return level
    asked: dict[str, str | None] = {"lower": bounds[0], "upper": bounds[1], "quantiles": None, "std": None}
    found = given_columns(table, asked, level, notes)
    return None if found is None else found.level


def _refuse_missing(table: FileTable, frame: pl.DataFrame, bounds: tuple[str, str]) -> None:
    """Refuse rows without an interval: they would be missing among the rows that are watched."""
    for name in bounds:
        if frame[name].null_count():
            row = frame[name].is_null().arg_true()[0] + 1
            msg = f"{table.name}: row {row:,} has no {shown(name)}; each row needs an interval, targets may be empty."
            raise ValueError(msg)


def show(found: Explanation) -> None:
    """Headline, figures and what they mean on the terminal."""
    from pimeter.coverage import percent, percent_range

    if not found.n_rows:
        typer.echo(found)
        return
    low, high = percent_range(found.lower, found.upper)
    rows = [
        ("coverage", percent(found.coverage), f"between {low} and {high} %, at all times together (95 % confidence)"),
        ("evidence", f"{found.evidence:.3g}", f"alarm at {found.threshold:.4g}"),
        ("below", f"{found.n_below:,}", f"targets below their lower bound, of {found.n_rows:,}"),
        ("above", f"{found.n_above:,}", "targets above their upper bound"),
    ]
    if found.since is not None:
        rows.append(("since row", f"{found.since:,}", f"between {found.since_lower:,} and {found.since_upper:,}"))
    sentences = [f"{one.question} {one.sentence}" for one in found.findings]
    told = [*sentences, *found.advice, *filter(None, [found.code])]
    print_table(str(found.headline), ("figure", "value", "what it is"), rows, told)
