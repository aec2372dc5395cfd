"""Columns of intervals, quantiles and standard deviations, with the levels that their names tell."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pimeter.cli.columns import PREDICTIONS, listed_names, named_or_guessed, names_in
from pimeter.files import FileTable, shown

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
        named = ["--quantiles", listed_names(given.names)]
    else:
        names = ("--lower", "--upper") if given.kind == "intervals" else ("--prediction", "--std")
        named = [part for pair in zip(names, given.names, strict=True) for part in pair]
    named = ["--target", target, *named, "--level", f"{level:g}", *options]
    return f"pimeter recalibrate {shlex.quote(file)} --apply new.csv --out calibrated.csv {shlex.join(named)}"


def refuse_bounds_alone(table: FileTable) -> None:
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
    table: FileTable, asked: dict[str, str | None], level: float | None, notes: list[str]
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
    names = tuple(names_in(str(quantiles)))
    levels = tuple(_quantile_level(table, name) for name in names)
    told = ", ".join(f"{shown(name)} is {p:g}" for name, p in zip(names, levels, strict=True))
    notes.append(f"took levels of quantiles from their names: {told}")
    return GivenColumns(names, "quantiles", level, levels)


def _central_level(table: FileTable, lower: str, upper: str, level: float | None, notes: list[str]) -> float:
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


def bounds_of_models(table: FileTable, models: Sequence[str], level: float | None, notes: list[str]) -> ModelBounds:
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


def _central_columns(table: FileTable, models: Sequence[str]) -> dict[str, dict[float, dict[str, str]]]:
    """Columns of the lower and the upper bound, by model and level, as far as names tell."""
    found: dict[str, dict[float, dict[str, str]]] = {name: {} for name in models}
    for column in table.columns:
        match = CENTRAL.search(column.strip())
        if match and (own := found.get(column.strip()[: match.start()])) is not None:
            side = "lower" if match[1].lower().startswith("lo") else "upper"
            own.setdefault(_fraction(match[2]), {})[side] = column
    return found


def _why_not_compared(table: FileTable, held: Mapping[str, set[float]], level: float | None) -> str:
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


def _quantile_level(table: FileTable, name: str) -> float:
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
