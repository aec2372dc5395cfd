"""`pimeter interval` and `pimeter plan`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

import pimeter
from pimeter.cli.app import app
from pimeter.cli.columns import (
    PREDICTIONS,
    complete_rows,
    feature_columns,
    named_or_guessed,
    note_on_numbers,
    pair_columns,
    rows_with,
)
from pimeter.cli.options import Groups, LevelOption, Prediction, Save, Target, as_table, reads_files
from pimeter.cli.terminal import print_table, progress, say, warnings_as
from pimeter.cli.writing import save_calibration, scattered, tables_and_draft, write_table
from pimeter.files import FileTable, Reading, as_strings, shown

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from pimeter.protocols import Array
    from pimeter.regression import OnlineIntervals

WidthOption = Literal["constant", "scaled", "grouped", "local", "quantile", "auto"]
TailsOption = Literal["symmetric", "equal", "sided", "lower", "upper"]
MAX_CATEGORIES = 20  # that are shown
LEARNING = ("scaled", "local", "quantile", "auto")  # widths that learn from features


class PredictionRows(NamedTuple):
    """Rows of a file, and which columns a width knows."""

    frame: pl.DataFrame
    prediction: str
    features: Sequence[str]
    by: str | None
    categories: Mapping[str, Any] = MappingProxyType({})  # by their strings, where they are anything else

    @property
    def inputs(self) -> dict[str, Any]:
        """Predictions, features and categories, as the regressor takes them."""
        X = self.frame.select(self.prediction, *self.features)
        labels = as_strings(self.frame[self.by]).fill_null("missing").to_numpy() if self.by else None
        if labels is not None and self.categories:
            import numpy as np

            labels = np.array([self.categories.get(one, one) for one in labels.tolist()])
        return {"X": X if self.features else X.to_numpy(), "by": labels}


@app.command(
    epilog="""Examples:

pimeter interval held-out.csv --apply new.csv --out new-with-intervals.csv

pimeter interval held-out.csv --apply new.csv --out out.parquet --width scaled --features all --tails equal

pimeter interval held-out.csv --apply new.csv --out out.csv --by store --y-min 0

pimeter interval held-out.csv --apply next-week.csv --out out.csv --online --time date

pimeter interval held-out.csv --apply new.csv --out out.csv --save calibration.json"""
)
@reads_files
def interval(
    calibration: Annotated[str, typer.Argument(help="Rows that the model was not trained on, with their targets.")],
    apply: Annotated[str, typer.Option(help="New rows with predictions of the same model.")],
    out: Annotated[
        Path,
        typer.Option(
            help="Where to write them: .csv, .tsv, .jsonl (these also with .gz or .zst), .json, .parquet or .feather.",
            callback=as_table,
        ),
    ],
    target: Target = None,
    prediction: Prediction = None,
    width: Annotated[
        WidthOption | None, typer.Option(help="How widths follow the rows. With --by grouped, otherwise constant.")
    ] = None,
    by: Annotated[str | None, typer.Option(help="Column with a category, each of which is to be covered.")] = None,
    features: Annotated[
        str | None, typer.Option(help="Columns that tell a width where rows are hard: a,b or all.")
    ] = None,
    tails: Annotated[TailsOption, typer.Option(help="How misses are divided, or which bound there is.")] = "symmetric",
    y_min: Annotated[float | None, typer.Option(help="Least possible target; intervals end there.")] = None,
    y_max: Annotated[float | None, typer.Option(help="Largest possible target.")] = None,
    groups: Groups = None,
    count_copies_once: Annotated[
        bool, typer.Option("--count-copies-once", help="Calibration rows that are copies of others count once.")
    ] = False,
    online: Annotated[
        bool, typer.Option("--online", help="Follow calibration rows in the order of time; new rows come after them.")
    ] = False,
    time: Annotated[
        str | None, typer.Option(help="Column of when each row was, for --online; else rows are in order.")
    ] = None,
    level: LevelOption = 0.95,
    save: Save = None,
    *,
    reading: Reading,
) -> None:
    """Write `lower` and `upper` beside new predictions."""
    import numpy as np

    from pimeter.regression import OnlineIntervals
    from pimeter.timestamps import numbered

    width = width or ("grouped" if by else "constant")
    _check_options(width, by, features, time, save, online=online)
    notes = reading.notes
    with tables_and_draft(calibration, apply, out, reading) as (past, new, draft), progress(4) as step:
        columns = pair_columns(past, target, prediction, notes)
        step(f"Reading {past.name}")
        named = feature_columns(past, features, {*columns, *({*past.columns} - {*new.columns})})
        others = [*named, *filter(None, dict.fromkeys([by, groups, time]))]
        known = complete_rows(past, past.read(columns, others), columns, notes)
        known = rows_with(past, known, {"group": groups, "time": time}, notes)
        rows = _telling(past, PredictionRows(known, columns[1], named, by), notes)
        step(f"Calibrating on {known.height:,} rows")
        y = known[columns[0]].to_numpy()
        with warnings_as(notes):
            model = pimeter.IntervalRegressor(
                _itself,
                confidence_level=level,
                width=width,
                tails=tails,
                y_min=y_min,
                y_max=y_max,
                shuffle=not online,
                random_state=0,
            ).calibrate(y=y, groups=_groups(known, groups, rows, y, are_copies=count_copies_once), **rows.inputs)
            moments = numbered(past, known[time], notes) if time else None
            following = OnlineIntervals(model).fit(y=y, time=moments, **rows.inputs) if online else None
        step(f"Reading {new.name}")
        given = _new_rows(new, rows, prediction, notes, time)
        with warnings_as(notes):
            order = _order_in_time(known, new, given, time, notes) if time else np.arange(given.height)
            bounds = interval_bounds(following or model, rows._replace(frame=given[order]))[np.argsort(order)]
        step(f"Writing {shown(out)}")
        save_calibration(model, save, calibration, apply, str(out))
        write_table(new.with_columns(bounds), draft, out, like=new)
    from pimeter.coverage import counted

    if n_empty := bounds["lower"].null_count():
        notes.append(f"{counted(n_empty, 'row')} without a prediction {'has' if n_empty == 1 else 'have'} no interval")
    say(notes)
    if online:
        typer.echo(
            f"Intervals are {_widths(bounds)}. They follow {known.height:,} rows in the order of time, and nothing is "
            "guaranteed of rows to come."
        )
    else:
        show_intervals(model, bounds, by)
    typer.echo(f"Wrote {counted(bounds.height, 'row')}: {out}")


def _check_options(
    width: WidthOption, by: str | None, features: str | None, time: str | None, save: Path | None, *, online: bool
) -> None:
    """Refuse options that do not go together."""
    if (width == "grouped") != (by is not None) or (features is not None and width not in LEARNING):
        which = "--by goes with --width grouped, --features with --width"
        msg = f"{which} {', '.join(LEARNING)}; got --width {width}."
        raise ValueError(msg)
    if time is not None and not online:
        msg = f"--time {shown(time)} says in which order --online follows the rows; add that, or leave --time out."
        raise ValueError(msg)
    if save is not None and (online or width not in {"constant", "grouped"}):
        msg = "--save keeps what applies to predictions alone: with --width constant or grouped, and without --online."
        raise ValueError(msg)


def _groups(
    known: pl.DataFrame, groups: str | None, rows: PredictionRows, y: Array, *, are_copies: bool
) -> NDArray[Any] | None:
    """Which calibration rows belong together: by a column, or as copies of each other."""
    if groups and are_copies:
        msg = f"--count-copies-once and --groups {shown(groups)} both say which rows belong together; give one of them."
        raise ValueError(msg)
    if groups:
        return known[groups].to_numpy()
    return pimeter.duplicate_groups(known.select(rows.prediction, *rows.features), y) if are_copies else None


def _telling(table: FileTable, rows: PredictionRows, notes: list[str]) -> PredictionRows:
    """Rows with those features that tell more than which row it is; categories of single rows are refused."""
    if not (rows.features or rows.by):
        return rows
    import numpy as np

    from pimeter.evaluation.diagnosis.columns import given

    X: Any = rows.frame.select(rows.features) if rows.features else None
    n = rows.frame.height
    found = given(X, rows.inputs["by"], n, np.arange(n))
    if rows.by and found.labels is None:
        why = f"{found.why_no_labels}. Give categories of several rows each"
        msg = f"{table.name}: column {shown(rows.by)} holds no categories: {why}."
        raise ValueError(msg)
    notes += [note for name in rows.features if (note := note_on_numbers(table, rows.frame[name]))] + found.left_out
    return rows._replace(features=[column.place for column in found.columns])


def _new_rows(
    table: FileTable, rows: PredictionRows, prediction: str | None, notes: list[str], time: str | None
) -> pl.DataFrame:
    """New rows with the columns that calibration rows have, of the same kinds, and with their time if it is there."""
    import polars as pl

    name = rows.prediction
    if name not in table.columns:
        name = named_or_guessed(table, PREDICTIONS, "prediction", prediction, notes)
    others = [*rows.features, *filter(None, (rows.by, time if time in table.columns else None))]
    frame = table.read([name], others).rename({name: rows.prediction})
    for held, expected in ((frame[feature], rows.frame[feature].dtype) for feature in rows.features):
        if (held.dtype == pl.String) != (expected == pl.String) and held.null_count() < len(held):
            msg = f"{table.name}: column {shown(held.name)} holds {held.dtype}, and {expected} in the calibration rows."
            raise ValueError(msg)
    return frame


def _order_in_time(
    known: pl.DataFrame, table: FileTable, given: pl.DataFrame, time: str, notes: list[str]
) -> NDArray[np.intp]:
    """Places of the new rows in the order of time, or as they are where the file tells none."""
    import numpy as np
    import polars as pl

    from pimeter.timestamps import numbered

    if time not in given.columns:
        notes.append(f"{table.name} has no column {shown(time)}: its rows are taken in the order of the file")
        return np.arange(given.height)
    before, after = known[time], given[time]
    if after.null_count():
        msg = f"{table.name}: {after.null_count():,} of {given.height:,} rows have no {shown(time)}; leave them out."
        raise ValueError(msg)
    if before.dtype != after.dtype:
        before, after = (one.cast(pl.String) for one in (before, after))
    past, to_come = np.split(numbered(table, pl.concat([before, after]), []), [len(before)])
    n_before = int(np.count_nonzero(to_come < past.max()))
    if n_before:
        notes.append(
            f"{n_before:,} of {given.height:,} rows of {table.name} are of a time before the last calibration row; "
            "intervals are for rows to come"
        )
    return np.argsort(to_come, kind="stable")


def interval_bounds(model: pimeter.IntervalRegressor | OnlineIntervals, rows: PredictionRows) -> pl.DataFrame:
    """Lower and upper bounds; null where there is no prediction."""
    import polars as pl

    predicted = rows.frame[rows.prediction]
    bounds = pl.DataFrame({"lower": predicted, "upper": predicted})
    finite = predicted.is_finite().fill_null(False)
    if not finite.any():
        return bounds
    return scattered(bounds, finite, model.predict_interval(**rows._replace(frame=rows.frame.filter(finite)).inputs))


def _extent(model: pimeter.IntervalRegressor, bounds: pl.DataFrame) -> str:
    """Where intervals lie, or how wide they are, in words."""
    from pimeter.coverage import rounded

    if model.width == "constant":
        below, above = model.margin_.tolist()
        if rounded(below, 3) == rounded(above, 3):
            return f"within ±{rounded(above, 3)} of the prediction"
        lower, upper = (
            f"{rounded(abs(distance), 3)} {'below' if distance < 0.0 else 'above'}" for distance in (-below, above)
        )
        if math.isinf(above):
            return f"{'at most' if below >= 0.0 else 'at least'} {lower} the prediction"
        if math.isinf(below):
            return f"{'at most' if above >= 0.0 else 'at least'} {upper} the prediction"
        return f"between {lower} and {upper} the prediction"
    return f"in intervals that are {_widths(bounds)}"


def _widths(bounds: pl.DataFrame) -> str:
    """How wide intervals are, in words."""
    from pimeter.coverage import rounded

    widths = (bounds["upper"] - bounds["lower"]).drop_nulls()
    if not widths.is_finite().all():
        return "without a bound on one side"
    least, half, most = (rounded(widths.quantile(p) or 0.0, 3) for p in (0.0, 0.5, 1.0))
    return f"{least} to {most} wide, half of them at most {half}"


def show_intervals(model: pimeter.IntervalRegressor, bounds: pl.DataFrame, by: str | None) -> None:
    """What the intervals hold, all together and of each category."""
    from pimeter.coverage import counted, percent, percent_range

    where, n = _extent(model, bounds), model.n_calibration_
    sentence = f"{percent(model.guaranteed_level_)} of new targets are expected {where}."
    if math.isnan(model.guaranteed_level_):
        why = model.guarantee_reason_.rstrip(".")
        sentence = f"How many new targets lie {where} is not known: {why}."
    if by:
        _show_categories(model, sentence, by)
        return
    if not any(map(math.isnan, model.coverage_range_)):
        low, high = percent_range(*model.coverage_range_.tolist())
        within = f"the true coverage lies between {low} and {high} % (90 % confidence)"
        sentence += f" With {counted(n, 'row')} {within}, if new rows resemble these."
    typer.echo(sentence)


def _show_categories(model: pimeter.IntervalRegressor, sentence: str, by: str) -> None:
    """A table of categories: the largest, the small ones together, and those never seen."""
    from pimeter.coverage import percent
    from pimeter.report.page import UNKNOWN

    lines = [(one, *margin) for one, margin in zip(model.categories_, model.margin_, strict=True)]
    own = sorted((line for line in lines[:-1] if line[0].source == "own"), key=lambda line: -line[0].rows)
    small = [line for line in lines[:-1] if line[0].source != "own"]
    kept = own[:MAX_CATEGORIES]
    if small:
        n = sum(line[0].rows for line in small)
        kept.append((small[0][0]._replace(label=f"({len(small):,} small)", rows=n), *small[0][1:]))
    table = [
        (
            str(one.label),
            f"{one.rows:,}",
            f"{_signed(-below)} to {_signed(above)}",
            UNKNOWN if math.isnan(one.level) else percent(one.level),
            one.note or "its own",
        )
        for one, below, above in [*kept, lines[-1]]
    ]
    more = [f"{len(own) - MAX_CATEGORIES:,} more categories have scores of their own."] if own[MAX_CATEGORIES:] else []
    print_table(sentence, (by, "rows", "margin", "guaranteed", "scores"), table, more)


def _signed(distance: float) -> str:
    """How far a bound lies above the prediction."""
    from pimeter.coverage import rounded

    return f"{'-' if distance < 0.0 else '+'}{rounded(abs(distance), 3)}"


@app.command(
    epilog="""Example:

pimeter plan --level 0.95 --within 0.02"""
)
def plan(
    level: LevelOption = 0.95,
    within: Annotated[float, typer.Option(help="How near the true coverage should be to the level.")] = 0.02,
) -> None:
    """Say how many rows to hold out."""
    from pimeter.coverage import counted, percent, rounded

    rows = pimeter.rows_needed(level, within)
    least, most = rounded(100.0 * max(level - within, 0.0)), percent(min(level + within, 1.0))
    typer.echo(
        f"Hold out {counted(rows, 'row')}: {percent(level)} intervals then cover between {least} and {most} of "
        "new rows that resemble them (90 % confidence)."
    )


def _itself(X: NDArray[Any]) -> Array:
    """The prediction is the first column."""
    import numpy as np

    return np.asarray(X[:, 0], np.float64)
