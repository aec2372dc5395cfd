"""`pimeter measure` and `pimeter demo`."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

import pimeter
from pimeter.cli.app import app
from pimeter.cli.columns import (
    NO_PAIR,
    TARGETS,
    categories,
    complete_rows,
    feature_columns,
    left_out,
    listed_names,
    named_or_guessed,
    note_on_numbers,
    pair_columns,
    refuse_one_for_two,
    rows_with,
)
from pimeter.cli.given import NO_ROW, GivenColumns, given_columns, recalibration_command, refuse_bounds_alone
from pimeter.cli.options import (
    GivenLevel,
    Groups,
    Json,
    Lower,
    Out,
    Prediction,
    Quantiles,
    Std,
    Target,
    Upper,
    as_result,
    reads_files,
)
from pimeter.cli.terminal import answer, progress, say, say_where, show_given, show_measurement, warnings_as
from pimeter.cli.writing import about_page, command_line, draft_of, write_result
from pimeter.files import FileTable, Reading, cluster, lazy_frame, matches, opened, replaced, shown

if TYPE_CHECKING:
    import polars as pl

    from pimeter.evaluation.measurement import Measurement
    from pimeter.evaluation.probabilistic import IntervalMeasurement
    from pimeter.findings import Diagnosis
    from pimeter.protocols import Index

DEMO_PAGE = "pimeter-demo.html"


class _Asked(NamedTuple):
    """What to measure: columns of a table, and the level."""

    columns: tuple[str, ...]  # target and prediction, or what else the model said
    given: GivenColumns | None
    features: list[str]
    by: str | None
    groups: str | None
    time: str | None
    level: float | None
    reading: Reading

    @property
    def lacking(self) -> str:
        """What rows that are left out do not have."""
        return NO_ROW if self.given else NO_PAIR

    def values(self, frame: pl.DataFrame) -> dict[str, Any]:
        """What the model said, and at which level."""
        if self.given:
            return {**self.given.values(frame), "confidence_level": self.given.level}
        return {"y_pred": frame[self.columns[1]].to_numpy(), "confidence_level": self.level}

    @property
    def others(self) -> list[str]:
        """Columns other than target and prediction."""
        return [*self.features, *filter(None, dict.fromkeys([self.by, self.groups, self.time]))]


@app.command(
    epilog="""Examples:

pimeter measure predictions.csv

pimeter measure results.parquet --target sales --prediction model_2 --by store --features all --out report.html

pimeter measure forecasts.csv --time date, or --groups patient for rows that belong together

pimeter measure forecasts.csv --lower y-lo-90 --upper y-hi-90, or --quantiles q0.05,q0.5,q0.95, or --std sd

zcat predictions.csv.gz | pimeter measure - --level 0.9 --json

pimeter measure 'predictions/*.parquet' --engine dask --scheduler tcp://10.0.0.1:8786"""
)
@reads_files
def measure(
    file: Annotated[
        str, typer.Argument(help="CSV, Excel, Parquet, Feather or JSON, also .gz or .zst; - reads standard input.")
    ],
    target: Target = None,
    prediction: Prediction = None,
    lower: Lower = None,
    upper: Upper = None,
    quantiles: Quantiles = None,
    std: Std = None,
    features: Annotated[
        str | None, typer.Option(help="Columns that may tell where the model is weak: a,b or all.")
    ] = None,
    by: Annotated[str | None, typer.Option(help="Column with a category, each of which should be covered.")] = None,
    groups: Groups = None,
    time: Annotated[str | None, typer.Option(help="Column of when each row was: rows near in time may depend.")] = None,
    level: GivenLevel = None,
    out: Out = None,
    json: Json = False,
    engine: Annotated[
        Literal["memory", "dask"], typer.Option(help="dask reads many files, 'dir/*.parquet', part by part.")
    ] = "memory",
    scheduler: Annotated[str | None, typer.Option(help="Address of dask's scheduler, tcp://...; else threads.")] = None,
    *,
    reading: Reading,
) -> None:
    """Say how good a model is, from what happened and what it said."""
    notes = reading.notes
    named = {"lower": lower, "upper": upper, "quantiles": quantiles, "std": std, "prediction": prediction}
    together = {"--groups": groups, "--time": time, **{f"--{name}": named[name] for name in list(named)[:-1]}}
    _check_engine(engine, scheduler, [name for name, value in together.items() if value], reading)
    sources = matches(file) if engine == "dask" else [file]
    with opened(sources[0], reading) as table, draft_of(out, *sources) as draft, progress(3) as step:
        given = given_columns(table, named, level, notes)
        columns = _columns(table, target, prediction, given, notes)
        taken = {*columns, by, groups, time}
        asked = _Asked(columns, given, feature_columns(table, features, taken), by, groups, time, level, reading)
        step(f"Reading {table.name}")
        if engine == "dask":
            result: Measurement | IntervalMeasurement = _lazily(file, asked, scheduler, notes, step)
        else:
            result = _in_memory(table, asked, notes, step)
        sample = None if given else _judged_sample(result, notes)
        with_command = _with_command(result, file, asked)
        if draft and out:
            step(f"Writing {shown(out)}")
            about = {
                "target": columns[0],
                "intervals" if given else "prediction": ", ".join(columns[1:]),
                "features": ", ".join(asked.features),
                "categories": by,
                "groups": groups,
                "time": time,
                "coverage, diagnosis and plots": sample,
            }
            is_page = out.suffix.lower() == ".html"
            write_result(with_command if is_page else result, draft, out, about_page(file, about))
    show = show_given if given else show_measurement
    answer(result, lambda: show(with_command), notes, out, as_json=json)


def _with_command(
    result: Measurement | IntervalMeasurement, file: str, asked: _Asked
) -> Measurement | IntervalMeasurement:
    """The measurement with the command for the intervals it recommends in the place of code."""
    from pimeter.evaluation.measurement import Measurement

    options = result.diagnosis.options
    if not options:
        return result
    if isinstance(result, Measurement):
        return replace(result, diagnosis=_with_interval_command(result, file, asked))
    assert asked.given is not None  # intervals that were measured are in columns
    together = ("--groups", asked.groups) if asked.groups else ()
    level = result.confidence_level
    command = recalibration_command(
        file, asked.columns[0], asked.given, level, [*options, *together, *asked.reading.options]
    )
    return replace(result, diagnosis=replace(result.diagnosis, code=command))


def _with_interval_command(result: Measurement, file: str, asked: _Asked) -> Diagnosis:
    """The diagnosis with the command that makes the intervals which it recommends."""
    options = [*result.diagnosis.options]
    if result.recommended_width == "grouped" and "--by" not in options and asked.by:
        options += ["--by", asked.by]
    elif result.recommended_width not in {"constant", "grouped"} and (features := _looked_at(result, asked)):
        options += ["--features", listed_names(features)]
    options += ["--groups", asked.groups] if asked.groups else []
    options += ["--time", asked.time] if asked.time and "--online" in options else []
    options += asked.reading.options
    before_level = f"pimeter interval {shlex.quote(file)} --apply new.csv --out new-with-intervals.csv --level "
    up_to_level = f"{before_level}{result.confidence_level}"
    command = f"{up_to_level} {shlex.join(['--target', asked.columns[0], '--prediction', asked.columns[1], *options])}"
    return replace(result.diagnosis, code=command, level_span=(len(before_level), len(up_to_level)))


def _looked_at(result: Measurement, asked: _Asked) -> list[str]:
    """Features without those that were left out as ids."""
    from pimeter.evaluation.diagnosis.columns import division_name

    divisions = {one.of for one in result.subgroups}
    return [name for name in asked.features if division_name(name) in divisions]


def _check_engine(engine: str, scheduler: str | None, in_memory: list[str], reading: Reading) -> None:
    """Refuse what only rows in memory can give."""
    if scheduler is not None and engine != "dask":
        msg = f"--scheduler {shown(scheduler)} is for --engine dask; add it, or leave --scheduler out."
        raise ValueError(msg)
    if engine == "dask" and in_memory:
        need = "needs" if len(in_memory) == 1 else "need"
        msg = f"{' and '.join(in_memory)} {need} rows in memory; leave --engine dask out, or measure a sample."
        raise ValueError(msg)
    if engine == "dask" and reading != Reading():
        msg = "--engine dask reads files as they are; leave it out, or the options that say how files are read."
        raise ValueError(msg)


def _columns(
    table: FileTable, target: str | None, prediction: str | None, given: GivenColumns | None, notes: list[str]
) -> tuple[str, ...]:
    """Columns of the target and of what the model said."""
    if given is None:
        if prediction is None:
            refuse_bounds_alone(table)
        return pair_columns(table, target, prediction, notes)
    own = named_or_guessed(table, TARGETS, "target", target, notes)
    refuse_one_for_two(table, {"target": own, **{f"column {name}": name for name in given.names}})
    return own, *given.names


def _in_memory(
    table: FileTable, asked: _Asked, notes: list[str], step: Callable[[str], object]
) -> Measurement | IntervalMeasurement:
    """The measurement of rows that are read at once."""
    whole = table.read(asked.columns, asked.others)
    frame = complete_rows(table, whole, asked.columns, notes, asked.lacking)
    together = [name for name in (asked.groups, asked.time) if name]
    frame = rows_with(table, frame, {"group": asked.groups, "time": asked.time}, notes)
    notes += [note for name in asked.features if (note := note_on_numbers(table, frame[name]))]
    step(f"Measuring {frame.height:,} rows")
    from pimeter.timestamps import numbered

    target = frame[asked.columns[0]].to_numpy()
    given = {
        **asked.values(frame),
        "X": frame[asked.features] if asked.features else None,
        "by": categories(frame[asked.by]) if asked.by else None,
        "groups": frame[asked.groups].to_numpy() if asked.groups else None,
        "time": numbered(table, frame[asked.time], notes) if asked.time else None,
    }
    with warnings_as(notes):
        if asked.given:
            measured: IntervalMeasurement = pimeter.measure(target, **given)
            return measured
        from pimeter.evaluation.diagnosis.evidence import RowNames
        from pimeter.evaluation.measuring import measured_points

        return measured_points(target, **given, names=RowNames(_numbers(whole, [*asked.columns, *together])))


def _numbers(frame: pl.DataFrame, columns: list[str]) -> Index:
    """Numbers of the rows that have all of these columns."""
    import polars as pl

    return frame.select(pl.all_horizontal(pl.col(columns).is_not_null()).arg_true()).to_series().to_numpy()


def _lazily(
    pattern: str, asked: _Asked, scheduler: str | None, notes: list[str], step: Callable[[str], object]
) -> Measurement:
    """The measurement of rows that dask reads part by part."""
    whole = lazy_frame(pattern, asked.columns, asked.others)
    frame = whole.dropna(subset=list(asked.columns))
    step("Measuring")
    with warnings_as(notes), cluster(scheduler):
        target, prediction = (frame[name] for name in asked.columns)
        result: Measurement = pimeter.measure(
            target,
            prediction,
            X=frame[asked.features] if asked.features else None,
            by=frame[asked.by] if asked.by else None,
            confidence_level=asked.level,
        )
        if (n := len(whole)) > result.n_rows:
            notes.append(left_out(n - result.n_rows, n, NO_PAIR))
    return result


def _judged_sample(result: Measurement | IntervalMeasurement, notes: list[str]) -> str | None:
    """Which rows are judged where they are not all, also as a note."""
    if (found := result.diagnosis["features"]).value:
        notes.append(found.sentence)
    n_judged = result.diagnosis["width"].rows
    if n_judged >= result.n_rows:
        return None
    sample = f"{n_judged:,} of {result.n_rows:,} rows, drawn at random"
    notes.append(f"coverage, subgroups, diagnosis and plots are of {sample}; margins are of all rows")
    return sample


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where to write the result, as for measure.", callback=as_result)] = Path(
        DEMO_PAGE
    ),
) -> None:
    """Train a model on real data, measure it, and write a report."""
    notes: list[str] = []
    with replaced(out) as draft, progress(3) as step:
        step("Training a random forest on half of 442 patients")
        from sklearn.datasets import load_diabetes
        from sklearn.ensemble import RandomForestRegressor

        X, y = load_diabetes(return_X_y=True)
        names = load_diabetes().feature_names
        trained, held_out = slice(0, None, 2), slice(1, None, 2)
        model = RandomForestRegressor(min_samples_leaf=5, random_state=0).fit(X[trained], y[trained])
        step("Measuring it on the other half")
        import polars as pl

        features = pl.DataFrame(X[held_out], schema=names)
        group = ["group 1" if value > 0 else "group 2" for value in features["sex"]]
        with warnings_as(notes):
            result = pimeter.measure(y[held_out], model.predict(X[held_out]), X=features, by=group)
        step(f"Writing {shown(out)}")
        about = {
            "data": "diabetes data that ship with scikit-learn: 442 patients, progression after a year",
            "model": "random forest, trained on every other patient, measured on the others",
            "features": ", ".join(names),
            "categories": "sex, which the data give as two numbers",
            "command": command_line(),
        }
        write_result(result, draft, out, about)
    say(notes)
    show_measurement(result)
    say_where(out)
