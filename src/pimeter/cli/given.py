"""Columns of intervals, quantiles and standard deviations with their levels, and `pimeter recalibrate`."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

import pimeter
from pimeter.cli.app import app
from pimeter.cli.columns import PREDICTIONS, TARGETS, complete_rows, named_or_guessed, refuse_one_for_two
from pimeter.cli.options import (
    GivenLevel,
    Lower,
    Prediction,
    Quantiles,
    Save,
    Std,
    Target,
    Upper,
    as_table,
    reads_files,
)
from pimeter.cli.terminal import progress, say, warnings_as
from pimeter.cli.writing import save_calibration, scattered, tables_and_draft, write_table
from pimeter.files import Reading, Table, shown

if TYPE_CHECKING:
    import polars as pl

CENTRAL = re.compile(  # y-lo-90, upper_0.9
    r"(?:^|[^a-z])(lo|low|lower|hi|high|upper)[-_ ]?(0?\.\d+|\d{2}(?:\.\d+)?)$", re.IGNORECASE
)
QUANTILE = re.compile(  # q0.05, q05, p10, p97.5
    r"(?:^|[^a-z])(?:q|p|quantile|percentile)[-_ ]?(0?\.\d+|\d{1,2}\.\d+|\d{1,3})$", re.IGNORECASE
)
BOUND = re.compile(r"(?:^|(?<=[^a-z]))(lo|low|lower|hi|high|upper)(?=$|[^a-z])", re.IGNORECASE)  # lower, y_hi_90
LOWEST_LEVEL_IN_NAMES, HIGHEST_LEVEL_IN_NAMES = 0.3, 0.9999  # levels of intervals that names tell
NUMBER = re.compile(r"^(0?\.\d+)$")
NO_ROW = "target or no interval"


class GivenColumns(NamedTuple):
    """Columns that say what a probabilistic model said, and their levels."""

    names: tuple[str, ...]
    kind: Literal["intervals", "quantiles", "std"]
    level: float | None  # of intervals
    levels: tuple[float, ...] = ()  # of quantiles

    def values(self, frame: pl.DataFrame) -> dict[str, Any]:
        """Keywords of `measure` and `IntervalCalibrator`."""
        table = frame.select(self.names).to_numpy()
        if self.kind == "intervals":
            return {"intervals": table}
        if self.kind == "quantiles":
            return {"quantiles": table, "levels": list(self.levels)}
        return {"y_pred": table[:, 0], "std": table[:, 1]}


def recalibration_command(file: str, target: str, given: GivenColumns, level: float, options: Sequence[str]) -> str:
    """The command that makes intervals of these columns hold, for new rows."""
    if given.kind == "quantiles":
        named = ["--quantiles", ",".join(given.names)]
    else:
        names = ("--lower", "--upper") if given.kind == "intervals" else ("--prediction", "--std")
        named = [part for pair in zip(names, given.names, strict=True) for part in pair]
    named = ["--target", target, *named, "--level", f"{level:g}", *options]
    return f"pimeter recalibrate {shlex.quote(file)} --apply new.csv --out calibrated.csv {shlex.join(named)}"


def refuse_bounds_alone(table: Table) -> None:
    """Refuse a file without a column of predictions that has bounds of intervals, which have to be named."""
    if any(name.strip().lower() in PREDICTIONS for name in table.columns):
        return
    pairs: dict[str, dict[str, str]] = {}
    for column in table.columns:
        if match := BOUND.search(column):
            side = "lower" if match[1].lower().startswith("lo") else "upper"
            pairs.setdefault(column[: match.start()] + column[match.end() :], {})[side] = column
    found = next((pair for pair in pairs.values() if len(pair) == 2), None)
    if found:
        lower, upper = found["lower"], found["upper"]
        msg = (
            f"{table.name}: no column has a usual name for the prediction, but {shown(lower)} and {shown(upper)} look "
            f"like bounds: give --lower {shlex.quote(lower)} --upper {shlex.quote(upper)} to measure these intervals, "
            "or --prediction NAME."
        )
        raise ValueError(msg)


def given_columns(
    table: Table, asked: dict[str, str | None], level: float | None, notes: list[str]
) -> GivenColumns | None:
    """What --lower, --upper, --quantiles, --std and --prediction name; None if it is a prediction alone."""
    lower, upper, quantiles, std = (asked[name] for name in ("lower", "upper", "quantiles", "std"))
    n_ways = sum(one is not None for one in (lower or upper, quantiles, std))
    if not n_ways:
        return None
    if n_ways > 1 or (lower is None) != (upper is None):
        msg = "give one of --lower with --upper, --quantiles, or --std with --prediction."
        raise ValueError(msg)
    if lower and upper:
        return GivenColumns((lower, upper), "intervals", _central_level(table, lower, upper, level, notes))
    if std:
        prediction = named_or_guessed(table, PREDICTIONS, "prediction", asked["prediction"], notes)
        return GivenColumns((prediction, std), "std", level)
    names = tuple(filter(None, map(str.strip, str(quantiles).split(","))))
    levels = tuple(_quantile_level(table, name) for name in names)
    told = ", ".join(f"{shown(name)} is {p:g}" for name, p in zip(names, levels, strict=True))
    notes.append(f"took levels of quantiles from their names: {told}")
    return GivenColumns(names, "quantiles", level, levels)


def _central_level(table: Table, lower: str, upper: str, level: float | None, notes: list[str]) -> float:
    """The level given, or the one that both names tell."""
    if level is not None:
        return level
    told = {_fraction(match[2]) for name in (lower, upper) if (match := CENTRAL.search(name.strip()))}
    if len(told) > 1:
        levels = " and ".join(f"{one:g}" for one in sorted(told))
        msg = (
            f"{table.name}: {shown(lower)} and {shown(upper)} are named for different levels, {levels}. Take two "
            "bounds of one level, or give --level if the names are wrong."
        )
        raise ValueError(msg)
    found = told.pop() if told else math.nan
    if not LOWEST_LEVEL_IN_NAMES <= found <= HIGHEST_LEVEL_IN_NAMES:
        msg = f"{table.name}: {shown(lower)} and {shown(upper)} do not tell their level; give --level, such as 0.9."
        raise ValueError(msg)
    notes.append(f"took the level {found:g} from the names {shown(lower)} and {shown(upper)}; --level overrules it")
    return found


def _fraction(digits: str) -> float:
    """What digits say: .9 and 0.9 are that, 90 and 97.5 are per cent, 05 is .05 and 975 is .975."""
    if digits.startswith((".", "0.")):
        return float(digits)
    return float(digits) / (1000.0 if "." not in digits and len(digits) == 3 else 100.0)


class ModelBounds(NamedTuple):
    """Columns of the lower and the upper bound of each model, and their level."""

    columns: dict[str, list[str]]
    level: float


def bounds_of_models(table: Table, models: Sequence[str], level: float | None, notes: list[str]) -> ModelBounds:
    """The bounds of all models at one level, in columns named like A-lo-90 and A-hi-90."""
    by_model = _central_columns(table, models)
    held = [{p for p, sides in own.items() if len(sides) == 2} for own in by_model.values()]
    common = set.intersection(*held)
    found = max(common, default=math.nan) if level is None else level
    if found not in common:
        raise ValueError(_why_not_compared(table, dict(zip(models, held, strict=True)), level))
    columns = {name: [own[found]["lower"], own[found]["upper"]] for name, own in by_model.items()}
    if level is None:
        notes.append(
            f"compared intervals of level {found:g}, the highest one that all models have; --level overrules it"
        )
    return ModelBounds(columns, found)


def _central_columns(table: Table, models: Sequence[str]) -> dict[str, dict[float, dict[str, str]]]:
    """Columns of the lower and the upper bound, by model and level, as far as names tell."""
    found: dict[str, dict[float, dict[str, str]]] = {name: {} for name in models}
    for column in table.columns:
        match = CENTRAL.search(column.strip())
        if match and (own := found.get(column.strip()[: match.start()])) is not None:
            side = "lower" if match[1].lower().startswith("lo") else "upper"
            own.setdefault(_fraction(match[2]), {})[side] = column
    return found


def _why_not_compared(table: Table, held: Mapping[str, set[float]], level: float | None) -> str:
    """Which model has no bounds of the level, or none at all; or that no level is common to all."""
    lacking = [name for name, levels in held.items() if (not levels if level is None else level not in levels)]
    if not lacking:
        have = "; ".join(f"{name} has {', '.join(f'{p:g}' for p in sorted(levels))}" for name, levels in held.items())
        return f"{table.name}: the intervals of all models need one level in common; {have}."
    name, digits = lacking[0], f"{90.0 if level is None else 100.0 * level:g}"
    return (
        f"{table.name}: there are no columns {shown(f'{name}-lo-{digits}')} and {shown(f'{name}-hi-{digits}')}; rename "
        "the bounds of all models so, or leave --intervals out to compare points."
    )


def _quantile_level(table: Table, name: str) -> float:
    """The level of a quantile that its column's name tells: q0.05, q05, p10, y-lo-90."""
    text = name.strip()
    if match := CENTRAL.search(text):
        tail = _fraction(match[2]) / 2.0
        return round(0.5 - tail if match[1].lower().startswith("lo") else 0.5 + tail, 12)
    match = QUANTILE.search(text) or NUMBER.match(text)
    found = _fraction(match[1]) if match else math.nan
    if not 0.0 < found < 1.0 or (match and match[1] == "100"):
        msg = f"{table.name}: {shown(name)} does not tell its level; name quantiles like q0.05, p95 or y-lo-90."
        raise ValueError(msg)
    return found


@app.command(
    epilog="""Examples:

pimeter recalibrate held-out.csv --lower lo-90 --upper hi-90 --apply new.csv --out new-calibrated.csv

pimeter recalibrate held-out.csv --prediction mean --std sd --level 0.95 --apply new.csv --out out.parquet"""
)
@reads_files
def recalibrate(
    calibration: Annotated[str, typer.Argument(help="Rows that the model was not trained on, with their targets.")],
    apply: Annotated[str, typer.Option(help="New rows with the same columns of what the model says.")],
    out: Annotated[
        Path,
        typer.Option(
            help="Where to write them with lower and upper (lower_calibrated, ... if they have these already).",
            callback=as_table,
        ),
    ],
    target: Target = None,
    prediction: Prediction = None,
    lower: Lower = None,
    upper: Upper = None,
    quantiles: Quantiles = None,
    std: Std = None,
    level: GivenLevel = None,
    method: Annotated[
        Literal["auto", "additive", "multiplicative", "normalised", "distributional"],
        typer.Option(help="How intervals are made to hold; auto learns it from rows that do not calibrate."),
    ] = "auto",
    save: Save = None,
    *,
    reading: Reading,
) -> None:
    """Make anyone's intervals hold: write `lower` and `upper` beside new rows."""
    notes = reading.notes
    with tables_and_draft(calibration, apply, out, reading) as (past, new, draft), progress(4) as step:
        named = {"lower": lower, "upper": upper, "quantiles": quantiles, "std": std, "prediction": prediction}
        given = given_columns(past, named, level, notes)
        if given is None:
            msg = "give the columns to recalibrate: --lower with --upper, --quantiles, or --std with --prediction."
            raise ValueError(msg)
        own = named_or_guessed(past, TARGETS, "target", target, notes)
        refuse_one_for_two(past, {"target": own, **{f"column {name}": name for name in given.names}})
        written = free_names(new)
        step(f"Reading {past.name}")
        known = complete_rows(past, past.read([own, *given.names], []), [own, *given.names], notes, NO_ROW)
        asked = given.level or level or _highest(given.levels)
        step(f"Calibrating on {known.height:,} rows")
        with warnings_as(notes):
            calibrator = pimeter.IntervalCalibrator(asked, method=method, random_state=0)
            calibrator.fit(known[own].to_numpy(), **given.values(known))
        step(f"Reading {new.name}")
        rows = new.read(list(given.names), [])
        bounds = calibrated_bounds(calibrator, given, rows)
        step(f"Writing {shown(out)}")
        save_calibration(calibrator, save, calibration, apply, str(out))
        write_table(new.with_columns(bounds.rename(written)), draft, out, like=new)
    say([*notes, *note_on_gaps(bounds)])
    show_calibrated(calibrator)
    typer.echo(f"Wrote {bounds.height:,} rows with {' and '.join(map(shown, written.values()))}: {out}")


def free_names(new: Table) -> dict[str, str]:
    """Names of the columns that bounds are written to, which the file must not have yet."""
    for suffix in ("", "_calibrated"):
        names = {name: name + suffix for name in ("lower", "upper")}
        taken = [name for name in names.values() if name in new.columns]
        if not taken:
            return names
    msg = f"{new.name} has {' and '.join(map(shown, taken))} already, where bounds are written; rename them."
    raise ValueError(msg)


def _highest(levels: Sequence[float]) -> float:
    """Level of the outermost pair of quantiles; .95 without any."""
    pairs = [high for high in levels if any(math.isclose(low, 1.0 - high) for low in levels) and high > 0.5]
    return round(2.0 * max(pairs) - 1.0, 12) if pairs else 0.95


def calibrated_bounds(calibrator: pimeter.IntervalCalibrator, given: GivenColumns, rows: pl.DataFrame) -> pl.DataFrame:
    """Lower and upper bounds; null where something is missing."""
    import polars as pl

    is_complete = rows.select(~pl.any_horizontal(pl.col(given.names).is_null())).to_series()
    found = pl.DataFrame({name: pl.Series([None] * rows.height, dtype=pl.Float64) for name in ("lower", "upper")})
    if not is_complete.any():
        return found
    return scattered(found, is_complete, calibrator.predict_interval(**given.values(rows.filter(is_complete))))


def note_on_gaps(bounds: pl.DataFrame) -> list[str]:
    """A note on rows that have no interval, if there are some."""
    from pimeter.coverage import counted

    n = bounds["lower"].null_count()
    return [f"{counted(n, 'row')} without all columns {'has' if n == 1 else 'have'} no interval"] if n else []


def show_calibrated(calibrator: pimeter.IntervalCalibrator) -> None:
    """Print what is guaranteed of the recalibrated intervals."""
    from pimeter.coverage import percent

    level = calibrator.guaranteed_level_
    if math.isnan(level):
        typer.echo(f"Nothing is guaranteed of these intervals: {calibrator.guarantee_reason_}.")
    else:
        typer.echo(
            f"{percent(level)} of new targets are expected inside, calibrated on {calibrator.n_calibration_:,} rows."
        )
