"""`pimeter classify`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

import pimeter
from pimeter.cli.app import app
from pimeter.cli.columns import (
    TARGETS,
    categories,
    complete_rows,
    named_or_guessed,
    refuse_no_probabilities,
    refuse_one_for_two,
)
from pimeter.cli.options import Json, Out, is_level, reads_files
from pimeter.cli.several_classes import class_columns, several_text
from pimeter.cli.terminal import answer, progress, say, show_scorecard, warnings_as
from pimeter.cli.writing import about_page, draft_of, write_result
from pimeter.files import PARQUET, FileTable, Reading, as_strings, listed, opened, shown

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

    from pimeter.protocols import Array

LABELS = (*TARGETS, "label", "labels", "class", "outcome")
SCORES = ("score", "scores", "y_score", "probability", "proba", "prob", "p", "y_prob", "y_proba")
# Which of two classes is the positive one, where the two say so themselves.
POSITIVE = {"1": ("0", "-1"), "true": ("false",), "yes": ("no",), "positive": ("negative",), "y": ("n",), "t": ("f",)}


@app.command(
    epilog="""Examples:

pimeter classify scores.csv

pimeter classify scores.parquet --label churned --score p_churn --positive yes --by country --out report.html

pimeter classify scores.csv --threshold 0.3 --threshold 0.5 --json

pimeter classify scores.csv --precision 0.95

pimeter classify flowers.csv --label species --score p_setosa,p_versicolor,p_virginica

pimeter classify unlabelled.csv --method calibrated --calibration labelled.csv"""
)
@reads_files
def classify(
    file: Annotated[str, typer.Argument(help="Labels and scores, one row for each.")],
    label: Annotated[str | None, typer.Option(help="Column of the true class. Guessed when obvious.")] = None,
    score: Annotated[
        str | None,
        typer.Option(
            help="Column of the probability of the positive class; for more than two classes one for each, with commas "
            "between. Guessed when obvious."
        ),
    ] = None,
    positive: Annotated[
        str | None, typer.Option(help="The class that scores are about. Guessed for 1 and 0, yes and no, ...")
    ] = None,
    threshold: Annotated[
        list[float] | None, typer.Option(help="Scores above it predict the positive class; give several for several.")
    ] = None,
    precision: Annotated[
        float | None,
        typer.Option(help="Instead of a threshold: the least precision, guaranteed at --level.", callback=is_level),
    ] = None,
    recall: Annotated[
        float | None,
        typer.Option(help="Instead of a threshold: the least recall, guaranteed at --level.", callback=is_level),
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
        float, typer.Option(help="How often intervals should hold the true metric.", callback=is_level)
    ] = 0.95,
    n_resamples: Annotated[
        int, typer.Option(help="Resamples of the bootstrap; more are needed for levels above 0.995.")
    ] = 2000,
    out: Out = None,
    json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Say how good a classifier is, with an interval for each metric."""
    _refuse_two_streams(file, calibration)
    notes = reading.notes
    others = [calibration] if calibration else []
    with (
        opened(file, reading) as table,
        opened(calibration, reading) if calibration else nullcontext() as other,
        draft_of(out, file, *others) as draft,
        progress(2) as step,
    ):
        step(f"Reading {table.name}")
        has_labels = method != "calibrated" or label is not None
        several = _several_classes(table, label, score, notes) if has_labels else None
        if several is not None:
            _refuse_for_several(out, by, threshold, precision, recall, method)
            text = several_text(table, *several, level, n_resamples, notes, as_json=json)
            step("")
            say(notes)
            typer.echo(text)
            return
        columns = _scored_columns(table, label if has_labels else "", score, notes)
        frame = _scored(table, columns, [by] if by else [], notes, may_miss=method == "prediction-powered")
        y_true = None if columns[0] is None else _is_positive(table, frame[columns[0]], positive, notes)
        labelled = _labelled(other, label, score, positive, notes)
        step(f"Judging {frame.height:,} rows")
        scores = frame[columns[1]].to_numpy()
        wanted = {"precision": precision, "recall": recall}
        thresholds = _thresholds(threshold, wanted, y_true, scores, level, notes)
        with warnings_as(notes):
            found = pimeter.scorecard(
                y_true,
                scores,
                by=categories(frame[by]) if by else None,
                threshold=thresholds,
                method=method,
                confidence_level=level,
                calibration=labelled,
                n_resamples=n_resamples,
            )
        if draft and out:
            about = {"label": columns[0], "score": columns[1], "categories": by, "calibration rows": calibration}
            write_result(found, draft, out, about_page(file, about))
    answer(found, lambda: show_scorecard(found), notes, out, as_json=json)


def _refuse_two_streams(file: str, calibration: str | None) -> None:
    """Standard input can be read once."""
    if file == calibration == "-":
        msg = "rows and calibration rows cannot both come from standard input."
        raise ValueError(msg)


def _several_classes(
    table: FileTable, label: str | None, score: str | None, notes: list[str]
) -> tuple[str, dict[str, str]] | None:
    """Column of the label and those of the classes, where there are more than two; else None."""
    usual = [name for name in table.columns if name.strip().lower() in LABELS]
    held = label if label is not None else usual[0] if len(usual) == 1 else None
    if held not in table.columns:
        return None
    columns = class_columns(table, held, score, notes)
    return None if columns is None else (held, columns)


def _refuse_for_several(out: Path | None, by: str | None, *others: object) -> None:
    """Refuse options that are about two classes."""
    threshold, precision, recall, method = others
    given = {
        "--out": out,
        "--by": by,
        "--threshold": threshold,
        "--precision": precision,
        "--recall": recall,
        "--method": None if method == "wilson" else method,
    }
    unused = [name for name, value in given.items() if value is not None]
    if unused:
        msg = f"{unused[0]} is for two classes; of several the likeliest is predicted. Leave it out, or save --json."
        raise ValueError(msg)


def _thresholds(
    given: list[float] | None,
    wanted: Mapping[str, float | None],
    y_true: Array | None,
    score: Array,
    level: float,
    notes: list[str],
) -> list[float]:
    """Thresholds given, or the one that keeps a precision or a recall, or .5."""
    import numpy as np

    from pimeter.coverage import percent

    asked = {name: value for name, value in wanted.items() if value is not None}
    if not asked:
        return given or [0.5]
    if len(asked) > 1 or given or y_true is None or np.isnan(y_true).any():
        msg = "give one of --threshold, --precision and --recall; the latter two need a label for each row."
        raise ValueError(msg)
    ((name, value),) = asked.items()
    control = pimeter.RiskController(name, value, confidence_level=level)
    with warnings_as([]):
        control.fit(y_true, score)
    if control.guarantee_reason_:
        raise ValueError(control.guarantee_reason_)
    found = max(float(control.threshold_), 0.0)
    if found > control.threshold_ and (score == 0.0).any():
        msg = f"a {name} of {percent(value)} is kept only by declaring all rows positive, also those with a score of 0."
        raise ValueError(msg)
    notes.append(
        f"a threshold of {found:.6g} keeps a {name} of {percent(value)} or more among rows like these, with "
        f"{percent(level)} confidence; {percent(control.answered_, 3)} of the rows are above it. Intervals of metrics "
        "at this threshold do not allow for the choice"
    )
    return [found]


def _scored_columns(table: FileTable, label: str | None, score: str | None, notes: list[str]) -> tuple[str | None, str]:
    """Columns of label and score; an empty label means that there is none."""
    found = (
        None if label == "" else named_or_guessed(table, LABELS, "label", label, notes),
        named_or_guessed(table, SCORES, "score", score, notes),
    )
    refuse_one_for_two(table, dict(zip(("label", "score"), found, strict=True)))
    return found


def _labelled(
    table: FileTable | None, label: str | None, score: str | None, positive: str | None, notes: list[str]
) -> tuple[Array, Array] | None:
    """Labels and scores of rows that calibrate, if a file of them is given."""
    if table is None:
        return None
    own, scored = _scored_columns(table, label or None, score, notes)
    rows = _scored(table, (own, scored), [], notes, may_miss=False)
    return _is_positive(table, rows[str(own)], positive, notes), rows[scored].to_numpy()


def _scored(
    table: FileTable, columns: tuple[str | None, str], others: Sequence[str], notes: list[str], *, may_miss: bool
) -> pl.DataFrame:
    """Rows that have a score between 0 and 1 and, unless labels may miss, a label, as strings."""
    import polars as pl

    label, score = columns
    frame = table.read([score], [*([label] if label else []), *others])
    refuse_no_probabilities(table, frame[score])
    if table.kind == PARQUET:
        held = pl.scan_parquet(table.path, glob=False).collect_schema()[score]
        frame = frame.with_columns(
            frame[score].cast(held if held.is_float() else pl.Float64)
        )  # thresholds are as precise
    if label is None:
        return complete_rows(table, frame, [score], notes, "score")
    frame = frame.with_columns(as_strings(frame[label]).alias(label))
    return complete_rows(table, frame, [score] if may_miss else [label, score], notes, "label or no score")


def _is_positive(table: FileTable, labels: pl.Series, positive: str | None, notes: list[str]) -> Array:
    """Labels as 1 and 0, NaN where there is none."""
    import numpy as np

    positive = _positive_class(table, labels, positive, notes)
    return np.where(labels.is_null().to_numpy(), np.nan, (labels == positive).fill_null(False).to_numpy())


def _is_positive_of(name: str, other: str) -> bool:
    """Whether two classes say themselves that the first is the positive one."""
    return other.lower() in POSITIVE.get(name.lower(), ())


def _positive_class(table: FileTable, labels: pl.Series, positive: str | None, notes: list[str]) -> str:
    """The class that was named, or the one of two that says so itself."""
    classes = sorted(labels.drop_nulls().unique().to_list())
    where = f"{table.name}: column {shown(labels.name)}"
    is_one = len(classes) == 1 and positive is not None
    if len(classes) != 2 and not is_one:
        held, hint = f"{len(classes)} classes", ""
        if len(classes) == 1:
            held, hint = "one class", ", or --positive to say which of two it is"
        msg = f"{where} holds {held} ({listed(classes)}); two are needed{hint}."
        raise ValueError(msg)
    if positive is not None:
        if positive not in classes and not (is_one and _is_positive_of(positive, classes[0])):
            msg = f"{where} holds {listed(classes)}; --positive {shown(positive)} is none of them."
            raise ValueError(msg)
        return positive
    usual = [name for name, other in zip(classes, reversed(classes), strict=True) if _is_positive_of(name, other)]
    if not usual:
        msg = f"{where} holds {listed(classes)}; say which one scores are about with --positive."
        raise ValueError(msg)
    notes.append(f"took {shown(usual[0])} for the positive class in {table.name}")
    return str(usual[0])
