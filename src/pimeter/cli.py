"""The command line: from a file of predictions to an answer in words and a page to send to a colleague.

Only typer is imported at the top, so that help comes at once; each command brings what it needs.
"""

from __future__ import annotations

import math
import shlex
import shutil
import sys
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import pimeter
from pimeter.files import PARQUET, Table, cluster, lazy_frame, listed, matches, opened, replaced, shown, words

if TYPE_CHECKING:
    from pimeter.measurement import Measurement
    from pimeter.results import Result
    from pimeter.scorecards import Scorecard

TARGETS = ("y", "y_true", "target", "actual", "observed", "truth")
PREDICTIONS = ("y_hat", "yhat", "y_pred", "pred", "prediction", "predicted", "forecast")
WINDOWS = ("window", "origin", "cutoff", "issued", "made_on", "forecast_date")
TIMES = ("ds", "date", "datetime", "timestamp", "target_date", "target_time", "valid_date", "valid_time")
MAYBE_TIMES = ("time", "day", "week", "month")  # or parts of a date
STEPS = ("step", "steps", "h", "horizon", "lead", "steps_ahead")
LABELS = (*TARGETS, "label", "labels", "class", "outcome")
SCORES = ("score", "scores", "y_score", "probability", "proba", "prob", "p", "y_prob", "y_proba")
# Which of two classes is the positive one, where the two say so themselves.
POSITIVE = {"1": ("0", "-1"), "true": ("false",), "yes": ("no",), "positive": ("negative",), "y": ("n",), "t": ("f",)}
ALL = "all"
DEMO = "pimeter-demo.html"
NO_PAIR = "target or no prediction"
# What a result becomes, by the ending of its file, and how tables are written.
RESULTS = {".html": "a page", ".csv": "a table", ".parquet": "a table", ".json": "everything"}
TABLES = ("csv", "tsv", "jsonl", "ndjson", "parquet", "pq")
PACKED_ITSELF = ("parquet", "pq")
PLAIN = "uncompressed"
MANY_WORDS = 20  # from which on words that are nearly all numbers are worth a note

app = typer.Typer(
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="How far can predictions be trusted? Give a file with two columns: what happened, and what the model said.",
    epilog="""Examples:

pimeter demo

pimeter measure predictions.csv --out report.html

pimeter interval predictions.csv --apply new.csv --out with-intervals.csv

pimeter plan --level 0.95 --within 0.02

pimeter forecast forecasts.csv --out cone.html

pimeter classify scores.csv --out classifier.html""",
)


def _between(level: float) -> float:
    """A level as it is; before anything is read."""
    if 0.0 < level < 1.0:
        return level
    msg = f"it must lie between 0 and 1; got {level:g}. 95 % is 0.95."
    raise typer.BadParameter(msg)


Level = Annotated[
    float,
    typer.Option(help="Share of new targets that intervals shall cover, between 0 and 1.", callback=_between),
]


def _is_result(out: Path | None) -> Path | None:
    """Where a result goes, if its name says in what form; before anything is read."""
    if out is None or out.suffix.lower() in RESULTS:
        return out
    forms = ", ".join(f"{ending} ({what})" for ending, what in RESULTS.items())
    msg = f"{shown(out)} does not say what to write; let it end in one of {forms}."
    raise typer.BadParameter(msg)


def _is_stride(stride: float | None) -> float | None:
    """A distance between windows; before anything is read."""
    if stride is None or 0.0 < stride < math.inf:
        return stride
    msg = f"it must be more than 0; got {stride:g}. With a window at each step it is 1."
    raise typer.BadParameter(msg)


def _is_table(out: Path) -> Path:
    """Where a table goes, if its name says in what form; before anything is read."""
    ending, compression = _form(out)
    if ending in TABLES and (compression == PLAIN or ending not in PACKED_ITSELF):
        return out
    msg = f"{shown(out)} does not say what to write; let it end in .csv, .tsv, .jsonl (also .gz or .zst) or .parquet."
    raise typer.BadParameter(msg)


Out = Annotated[
    Path | None,
    typer.Option(
        help="Where to write the result: .html is a page, .csv and .parquet are its table, .json is everything.",
        callback=_is_result,
    ),
]
Target = Annotated[str | None, typer.Option(help="Column of what happened. Guessed when its name is obvious.")]
Prediction = Annotated[str | None, typer.Option(help="Column of what the model said. Guessed when obvious.")]


def run() -> None:
    """Run a command; a user's mistake is one line and exit code 2."""
    mistyped: Any = typer.BadParameter.__base__  # commands and options that are wrong: the class has no public name
    try:
        sys.exit(app(prog_name="pimeter", standalone_mode=False) or 0)
    except mistyped as why:
        text = f"{why.format_message()} Try: pimeter --help"
    except (ValueError, OSError, ImportError) as why:  # an extra that is not installed names itself
        text = str(why)
    typer.echo(f"pimeter: {' '.join(text.split())}", err=True)
    sys.exit(2)


@app.callback(invoke_without_command=True)
def _top(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version, and which kernel is in use.")] = False,
) -> None:
    """Without a command there is the version, or help."""
    if context.invoked_subcommand is None:
        if version:
            from pimeter.versions import summary

            typer.echo(summary())
        else:
            typer.echo(context.get_help())


@app.command(
    epilog="""Examples:

pimeter measure predictions.csv

pimeter measure results.parquet --target sales --prediction model_2 --by store --features all --out report.html

zcat predictions.csv.gz | pimeter measure - --level 0.9 --json

pimeter measure 'predictions/*.parquet' --engine dask --scheduler tcp://10.0.0.1:8786"""
)
def measure(
    file: Annotated[
        str, typer.Argument(help="CSV, TSV, Parquet or JSON lines, also .gz or .zst; - reads standard input.")
    ],
    target: Target = None,
    prediction: Prediction = None,
    features: Annotated[
        str | None, typer.Option(help="Columns that may tell where the model is weak: a,b or all.")
    ] = None,
    by: Annotated[str | None, typer.Option(help="Column with a category, each of which shall be covered.")] = None,
    level: Level = 0.95,
    out: Out = None,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    engine: Annotated[
        Literal["memory", "dask"], typer.Option(help="dask reads many files, 'dir/*.parquet', part by part.")
    ] = "memory",
    scheduler: Annotated[str | None, typer.Option(help="Address of dask's scheduler, tcp://...; else threads.")] = None,
) -> None:
    """Say how good a model is, from what happened and what it said."""
    notes: list[str] = []
    is_lazy = engine == "dask"
    if scheduler is not None and not is_lazy:
        msg = f"--scheduler {shown(scheduler)} is for --engine dask; add it, or leave --scheduler out."
        raise ValueError(msg)
    sources = matches(file) if is_lazy else [file]
    with opened(sources[0]) as table, _draft(out, *sources) as draft, _progress() as step:
        columns = _columns(table, target, prediction, notes)
        chosen = _features(table, features, {*columns, by})
        step(f"Reading {table.name}")
        others = [*chosen, *([by] if by else [])]
        if is_lazy:
            whole = lazy_frame(file, columns, others)
            frame = whole.dropna(subset=list(columns))
            step("Measuring")
        else:
            frame = _known(table, table.read(columns, others), columns, notes)
            notes += [note for name in chosen if (note := _nearly_numbers(table, frame[name]))]
            step(f"Measuring {frame.height:,} rows")
        with _warnings(notes), cluster(scheduler):
            result = pimeter.measure(
                *(frame[name] if is_lazy else frame[name].to_numpy() for name in columns),
                X=frame[chosen] if chosen else None,
                by=(frame[by] if is_lazy else frame[by].to_numpy()) if by else None,
                confidence_level=level,
            )
            if is_lazy and (n := len(whole)) > result.n_rows:
                notes.append(_left_out(n - result.n_rows, n, NO_PAIR))
        if (found := result.diagnosis["features"]).value:
            notes.append(found.sentence)
        n_judged = result.diagnosis["width"].rows
        sample = f"{n_judged:,} of {result.n_rows:,} rows, drawn at random" if n_judged < result.n_rows else None
        if sample:
            notes.append(f"coverage, parts of the rows, diagnosis and pictures are of {sample}; radii are of all rows")
        if draft and out:
            step(f"Writing {shown(out)}")
            about = {
                "target": columns[0],
                "prediction": columns[1],
                "features": ", ".join(chosen),
                "categories": by,
                "coverage, diagnosis and pictures": sample,
            }
            _write(result, draft, out, _about(file, about))
    _say(notes)
    if json:
        typer.echo(result.to_json())
    else:
        _show(result)
    if out:
        _say_where(out, err=json)


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
            callback=_is_table,
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
        _progress() as step,
    ):
        columns = _columns(past, target, prediction, notes)
        step(f"Reading {past.name}")
        frame = _known(past, past.read(columns), columns, notes)
        y, y_pred = (frame[name].to_numpy() for name in columns)
        with _warnings(notes):
            model = pimeter.IntervalRegressor(_itself, confidence_level=level).calibrate(y_pred[:, None], y)
        below, above = (abs(float(end)) for end in model.predict_interval(0.0 * y_pred[:1, None])[0])
        given = columns[1] if columns[1] in new.columns else _guess(new, PREDICTIONS, "prediction", prediction, notes)
        step(f"Reading {new.name}")
        predicted = new.read([given])[given]
        finite = predicted.filter(predicted.is_finite())
        if len(finite):
            # What is wrong is said before anything is written.
            model.predict_interval(finite.sort().to_numpy()[[0, -1], None])
        step(f"Writing {shown(out)}")
        _sink(new.with_interval(given, below, above), draft, out)
    if predicted.null_count():
        notes.append(f"{predicted.null_count():,} rows without a prediction have no interval")
    _say(notes)
    from pimeter.coverage import percent

    wrote = f"Wrote {len(predicted):,} rows: {out}"
    if math.isnan(model.guaranteed_level_):
        typer.echo(
            f"Intervals reach ±{model.margin_[1]:.3g} around the prediction. How many new targets they hold is not "
            f"known: rows of {past.name} are copies of others. Leave the copies out, and run this again.\n{wrote}"
        )
        return
    low, high = (percent(end, 3) for end in model.coverage_range_)
    typer.echo(
        f"{percent(model.guaranteed_level_)} of new targets are expected within ±{model.margin_[1]:.3g} of the "
        f"prediction. With {len(y):,} rows the true share lies between {low} and {high} (90 % confidence), "
        f"if new rows resemble these.\n{wrote}"
    )


@app.command(
    epilog="""Example:

pimeter plan --level 0.95 --within 0.02"""
)
def plan(
    level: Level = 0.95,
    within: Annotated[float, typer.Option(help="How near the true share shall be to the level.")] = 0.02,
) -> None:
    """Say how many rows to hold out."""
    from pimeter.coverage import percent

    rows = pimeter.rows_needed(level, within)
    least, most = percent(max(level - within, 0.0)), percent(min(level + within, 1.0))
    typer.echo(
        f"Hold out {rows:,} rows: intervals for {percent(level)} then cover between {least} and {most} of "
        "new rows that resemble them (90 % confidence)."
    )


@app.command(
    epilog="""Examples:

pimeter forecast one-step.csv --target sales --prediction model

pimeter forecast paths.parquet --window made_on --step days_ahead --out report.html"""
)
def forecast(
    file: Annotated[str, typer.Argument(help="Forecasts and what then happened, one row for each window and step.")],
    target: Target = None,
    prediction: Prediction = None,
    window: Annotated[
        str | None,
        typer.Option(help="Column that says when a forecast was made: one window at each step, put in its order."),
    ] = None,
    step: Annotated[
        str | None,
        typer.Option(help="Column with the steps ahead: 1, 2, ... Without it the rows of a window in their order."),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(help="Column with the time that a row is about. Guessed when obvious; '' takes none."),
    ] = None,
    stride: Annotated[
        float | None,
        typer.Option(help="How many steps apart windows start. Without it by the times, or 1.", callback=_is_stride),
    ] = None,
    level: Level = 0.95,
    out: Out = None,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Put a cone around forecasts, and say what it would have covered."""
    notes: list[str] = []
    with opened(file) as table, _draft(out, file) as draft, _progress() as tell:
        columns = _columns(table, target, prediction, notes)
        step = step or _guessed(table, STEPS, "step", notes)
        window = window or _guessed(table, WINDOWS, "window", notes)
        if step is not None and window is None:
            window = _guess(table, WINDOWS, "window", None, notes)
        times = [
            name for name in table.columns if name.strip().lower() in TIMES and name not in {*columns, window, step}
        ]
        if not times and time is None:
            from pimeter.windows import tells_time

            maybe = [name for name in table.columns if name.strip().lower() in MAYBE_TIMES]
            maybe = [name for name in maybe if name not in {*columns, window, step}]
            times = [name for name in maybe if tells_time(table.read([], [name])[name])]
        if time is None and len(times) == 1:
            time = times[0]
            notes.append(f"guessed that the time in {table.name} is column {shown(time)}")
        time = time or None
        _apart(table, {"target": columns[0], "prediction": columns[1], "window": window, "step": step, "time": time})
        tell(f"Reading {table.name}")
        from pimeter.windows import Layout, windows

        layout = Layout(*columns, window, step, time)
        y_true, y_pred, names, stride, until_known = windows(table, layout, notes, stride)
        tell(f"Trying the cone on {len(y_true) // 2:,} windows")
        with _warnings(notes):
            found = pimeter.backtest(
                y_true, y_pred, confidence_level=level, stride=stride, until_known=until_known, names=names
            )
        if draft and out:
            about = {"target": columns[0], "prediction": columns[1], "window": window, "step": step, "time": time}
            noted = {"notes": "; ".join(notes)} if notes else {}
            _write(found, draft, out, _about(file, about) | noted)
    _say(notes)
    if json:
        typer.echo(found.to_json())
    else:
        typer.echo(found)
    if out:
        _say_where(out, err=json)


@app.command(
    epilog="""Examples:

pimeter classify scores.csv

pimeter classify scores.parquet --label churned --score p_churn --positive yes --by country --out report.html

pimeter classify scores.csv --threshold 0.3 --threshold 0.5 --json

pimeter classify unlabelled.csv --method calibrated --calibration labelled.csv"""
)
def classify(
    file: Annotated[str, typer.Argument(help="Labels of two classes and scores, one row for each.")],
    label: Annotated[str | None, typer.Option(help="Column of the true class. Guessed when obvious.")] = None,
    score: Annotated[
        str | None, typer.Option(help="Column of the probability of the positive class. Guessed when obvious.")
    ] = None,
    positive: Annotated[
        str | None, typer.Option(help="The class that scores are about. Guessed for 1 and 0, yes and no, ...")
    ] = None,
    threshold: Annotated[
        list[float] | None, typer.Option(help="Scores above it predict the positive class; give several for several.")
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="wilson, clopper-pearson, normal, bootstrap, calibrated (needs no labels), or prediction-powered "
            "(labels for some rows)."
        ),
    ] = "wilson",
    calibration: Annotated[
        str | None, typer.Option(help="For --method calibrated: file of labelled rows that calibrate the scores.")
    ] = None,
    by: Annotated[str | None, typer.Option(help="Column with a category, to compare them.")] = None,
    level: Annotated[
        float, typer.Option(help="How often intervals shall hold the true metric.", callback=_between)
    ] = 0.95,
    n_resamples: Annotated[
        int, typer.Option(help="Resamples of the bootstrap; more are needed for levels above 0.995.")
    ] = 2000,
    out: Out = None,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Say how sure one can be of a classifier's numbers."""
    if file == calibration == "-":
        msg = "rows and calibration rows cannot both come from standard input."
        raise ValueError(msg)
    notes: list[str] = []
    with (
        opened(file) as table,
        opened(calibration) if calibration else nullcontext() as other,
        _draft(out, file, *([calibration] if calibration else [])) as draft,
        _progress() as step,
    ):
        step(f"Reading {table.name}")
        has_labels = method != "calibrated" or label is not None
        columns = _scored_columns(table, label if has_labels else "", score, notes)
        frame = _scored(table, columns, [by] if by else [], notes, may_miss=method == "prediction-powered")
        y_true = None if columns[0] is None else _is_positive(table, frame[columns[0]], positive, notes)
        labelled = None
        if other is not None:
            names = _scored_columns(other, label, score, notes)
            rows = _scored(other, names, [], notes, may_miss=False)
            labelled = (_is_positive(other, rows[names[0]], positive, notes), rows[names[1]].to_numpy())
        step(f"Judging {frame.height:,} rows")
        with _warnings(notes):
            found = pimeter.scorecard(
                y_true,
                frame[columns[1]].to_numpy(),
                by=frame[by].to_numpy() if by else None,
                thresholds=tuple(threshold or (0.5,)),
                method=method,
                confidence_level=level,
                calibration=labelled,
                n_resamples=n_resamples,
            )
        if draft and out:
            about = {"label": columns[0], "score": columns[1], "categories": by, "calibration rows": calibration}
            _write(found, draft, out, _about(file, about))
    _say(notes)
    if json:
        typer.echo(found.to_json())
    else:
        _show_scorecard(found)
    if out:
        _say_where(out, err=json)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where to write the result, as for measure.", callback=_is_result)] = Path(
        DEMO
    ),
) -> None:
    """Train a model on real data, measure it, and write a report."""
    notes: list[str] = []
    with replaced(out) as draft, _progress() as step:
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
        with _warnings(notes):
            result = pimeter.measure(y[held_out], model.predict(X[held_out]), X=features, by=group)
        step(f"Writing {shown(out)}")
        about = {
            "data": "diabetes data that ship with scikit-learn: 442 patients, progression after a year",
            "model": "random forest, trained on every other patient, measured on the others",
            "features": ", ".join(names),
            "categories": "sex, which the data give as two numbers",
            "command": _command(),
        }
        _write(result, draft, out, about)
    _say(notes)
    _show(result)
    _say_where(out)


def _itself(X: Any) -> Any:
    """The prediction is the only feature."""
    return X[:, 0]


def _columns(table: Table, target: str | None, prediction: str | None, notes: list[str]) -> tuple[str, str]:
    """Columns of target and prediction."""
    found = (
        _guess(table, TARGETS, "target", target, notes),
        _guess(table, PREDICTIONS, "prediction", prediction, notes),
    )
    _apart(table, dict(zip(("target", "prediction"), found, strict=True)))
    return found


def _apart(table: Table, columns: Mapping[str, str | None]) -> None:
    """Refuse one column for two things."""
    owners: dict[str, str] = {}
    for what, name in columns.items():
        if name is not None and name in owners:
            msg = f"{table.name}: column {shown(name)} cannot be both the {owners[name]} and the {what}."
            raise ValueError(msg)
        if name is not None:
            owners[name] = what


def _guess(table: Table, usual: Sequence[str], what: str, given: str | None, notes: list[str]) -> str:
    """The column that was named, or the only one with a usual name."""
    if given is not None:
        return given
    found = [name for name in table.columns if name.strip().lower() in usual]
    if len(found) != 1:
        why = "several columns have" if found else "no column has"
        columns = listed(found or table.columns)
        msg = f"{table.name}: {why} a usual name for the {what}; give --{what} NAME. Columns: {columns}."
        raise ValueError(msg)
    notes.append(f"guessed that the {what} in {table.name} is column {shown(found[0])}")
    return found[0]


def _features(table: Table, asked: str | None, taken: set[str | None]) -> list[str]:
    """Names of feature columns; one whose name has a comma is found by its whole name."""
    if asked is None or asked in table.columns:
        return [asked] if asked else []
    if asked == ALL:
        return [name for name in table.columns if name not in taken]
    return list(dict.fromkeys(name.strip() for name in asked.split(",")))


def _nearly_numbers(table: Table, column: Any) -> str | None:
    """A note on a column of many words of which most are numbers."""
    import polars as pl

    if column.dtype != pl.String or column.n_unique() <= MANY_WORDS:
        return None
    known = words(column).drop_nulls()
    is_number = known.cast(pl.Float64, strict=False).is_not_null()
    if 2 * int(is_number.sum()) <= len(known):
        return None
    odd = shown(known.filter(~is_number)[0])
    return f"column {shown(column.name)} of {table.name} holds {odd}, which is no number: it is taken for categories"


def _guessed(table: Table, usual: Sequence[str], what: str, notes: list[str]) -> str | None:
    """The column with a usual name, if there is one; several are refused."""
    found = [name for name in table.columns if name.strip().lower() in usual]
    return _guess(table, usual, what, None, notes) if found else None


def _scored_columns(table: Table, label: str | None, score: str | None, notes: list[str]) -> tuple[str | None, str]:
    """Columns of label and score; an empty label means that there is none."""
    found = (
        None if label == "" else _guess(table, LABELS, "label", label, notes),
        _guess(table, SCORES, "score", score, notes),
    )
    _apart(table, dict(zip(("label", "score"), found, strict=True)))
    return found


def _scored(
    table: Table, columns: tuple[str | None, str], others: Sequence[str], notes: list[str], *, may_miss: bool
) -> Any:
    """Rows that have a score between 0 and 1 and, unless labels may miss, a label, as words."""
    import polars as pl

    label, score = columns
    frame = table.read([score], [*([label] if label else []), *others])
    given = frame[score]
    wrong = ((given < 0.0) | (given > 1.0)).arg_true()
    if len(wrong):
        row = wrong[0]
        msg = (
            f"{table.name}: row {row + 1:,} of column {shown(score)} holds {given[row]:g}; scores lie between 0 and 1."
        )
        raise ValueError(msg)
    if table.kind == PARQUET:
        held = pl.scan_parquet(table.path, glob=False).collect_schema()[score]
        frame = frame.with_columns(given.cast(held if held.is_float() else pl.Float64))  # thresholds are as precise
    if label is None:
        return _known(table, frame, [score], notes, "score")
    frame = frame.with_columns(words(frame[label]).alias(label))
    return _known(table, frame, [score] if may_miss else [label, score], notes, "label or no score")


def _is_positive(table: Table, labels: Any, positive: str | None, notes: list[str]) -> Any:
    """Labels as 1 and 0, NaN where there is none."""
    import numpy as np

    classes = sorted(labels.drop_nulls().unique().to_list())
    where = f"{table.name}: column {shown(labels.name)}"
    is_one = len(classes) == 1 and positive is not None
    if len(classes) != 2 and not is_one:
        hint = ", or --positive to say which of two it is" if len(classes) == 1 else ""
        msg = f"{where} holds {len(classes)} classes ({listed(classes)}); two are needed{hint}."
        raise ValueError(msg)
    if positive is None:
        small = [name.lower() for name in classes]
        usual = [
            name for name, other in zip(classes, small[::-1], strict=True) if other in POSITIVE.get(name.lower(), ())
        ]
        if not usual:
            msg = f"{where} holds {listed(classes)}; say which one scores are about with --positive."
            raise ValueError(msg)
        positive = usual[0]
        notes.append(f"took {shown(positive)} for the positive class in {table.name}")
    elif positive not in classes and not (is_one and classes[0].lower() in POSITIVE.get(positive.lower(), ())):
        msg = f"{where} holds {listed(classes)}; --positive {shown(positive)} is none of them."
        raise ValueError(msg)
    return np.where(labels.is_null().to_numpy(), np.nan, (labels == positive).fill_null(False).to_numpy())


def _known(table: Table, frame: Any, columns: Sequence[str], notes: list[str], what: str = NO_PAIR) -> Any:
    """The rows that have all of these columns."""
    if not any(frame[name].null_count() for name in columns):
        return frame
    kept = frame.drop_nulls(list(columns))
    if not kept.height:
        empty = next((name for name in columns if frame[name].null_count() == frame.height), None)
        why = (
            f"column {shown(empty)} has no {'number' if frame[empty].dtype.is_numeric() else 'label'}"
            if empty
            else f"each row has no {what}"
        )
        msg = f"{table.name}: {why}; all {frame.height:,} rows are missing."
        raise ValueError(msg)
    notes.append(_left_out(frame.height - kept.height, frame.height, what))
    return kept


def _left_out(n: int, of: int, what: str) -> str:
    return f"left out {n:,} of {of:,} rows that have no {what}"


@contextmanager
def _draft(out: Path | None, *sources: str) -> Iterator[Path | None]:
    with replaced(out, *sources) if out else nullcontext() as draft:
        yield draft


def _form(out: Path) -> tuple[str, str]:
    """What the name of a file says: its ending, and how it is packed."""
    packed = {".gz": "gzip", ".zst": "zstd"}.get(out.suffix.lower())
    named = out.with_suffix("") if packed else out
    return named.suffix.lower().removeprefix("."), packed or PLAIN


def _write(result: Result, draft: Path, out: Path, about: Mapping[str, str]) -> None:
    """A result in the form that the name of the file says."""
    ending, _ = _form(out)
    if ending in TABLES:
        _sink(result.to_frame("polars").lazy().fill_nan(None), draft, out)
    else:
        draft.write_text(result.to_json() if ending == "json" else result.to_html(about=about), encoding="utf-8")


def _sink(frame: Any, draft: Path, out: Path) -> None:
    """Write a lazy table in the form that the name of the file says."""
    ending, compression = _form(out)
    from polars.exceptions import PanicException, PolarsError

    try:
        if ending in PACKED_ITSELF:
            frame.sink_parquet(draft)
        elif ending in {"jsonl", "ndjson"}:
            frame.sink_ndjson(draft, compression=compression, check_extension=False)
        else:
            separator = "\t" if ending == "tsv" else ","
            frame.sink_csv(draft, separator=separator, compression=compression, check_extension=False)
    except (PolarsError, PanicException) as why:  # a full disk, or columns that are broken and were not read before
        msg = f"--out {shown(out)} cannot be written: {why}."
        raise ValueError(msg) from why


def _say_where(out: Path, *, err: bool = False) -> None:
    """Where the result is."""
    typer.echo(f"{'Report' if out.suffix.lower() == '.html' else 'Wrote'}: {out}", err=err)


@contextmanager
def _progress() -> Iterator[Any]:
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
def _warnings(notes: list[str]) -> Iterator[None]:
    """Warnings become notes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    notes += [str(warning.message) for warning in caught]


def _say(notes: list[str]) -> None:
    """Notes go to standard error, when all went well: a mistake is one line."""
    for note in notes:
        typer.echo(f"note: {' '.join(note.split())}", err=True)


def _show(result: Measurement) -> None:
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
    _print(str(result.headline), ("score", "value", "90 % range"), rows, [*result.advice, result.code])


def _show_scorecard(found: Scorecard) -> None:
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
    _print(str(found.headline), ("metric", "value", kind, "by"), rows, said)


def _print(headline: str, names: Sequence[str], rows: Sequence[Sequence[str]], said: Sequence[str]) -> None:
    """A headline, a table whose second column holds numbers, and lines of text."""
    sizes = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    head, *lines = (
        "  ".join(
            cell.rjust(n) if i == 1 else cell.ljust(n) for i, (cell, n) in enumerate(zip(row, sizes, strict=True))
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


def _about(file: str, columns: Mapping[str, str | None]) -> dict[str, str]:
    """What a page says about its making: file, columns and command."""
    source = {"file": "standard input" if file == "-" else file}
    return {**source, **{key: text for key, text in columns.items() if text}, "command": _command()}


def _command() -> str:
    return shlex.join(["pimeter", *sys.argv[1:]])
