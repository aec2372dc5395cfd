"""Columns of a file: named, guessed by their usual names, and rows that have a value in each."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any

from pimeter.files import FileTable, as_strings, listed, shown

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

TARGETS = ("y", "y_true", "target", "actual", "observed", "truth")
PREDICTIONS = ("y_hat", "yhat", "y_pred", "pred", "prediction", "predicted", "forecast")
ALL_COLUMNS = "all"
NO_PAIR = "target or no prediction"
MIN_DISTINCT_STRINGS = 20  # from which on strings that are nearly all numbers deserve a note


def pair_columns(table: FileTable, target: str | None, prediction: str | None, notes: list[str]) -> tuple[str, str]:
    """Columns of target and prediction."""
    found = (
        named_or_guessed(table, TARGETS, "target", target, notes),
        named_or_guessed(table, PREDICTIONS, "prediction", prediction, notes),
    )
    refuse_one_for_two(table, dict(zip(("target", "prediction"), found, strict=True)))
    return found


def refuse_one_for_two(table: FileTable, columns: Mapping[str, str | None]) -> None:
    """Refuse one column for two things."""
    owners: dict[str, str] = {}
    for what, name in columns.items():
        if name is not None and name in owners:
            msg = f"{table.name}: column {shown(name)} cannot be both the {owners[name]} and the {what}."
            raise ValueError(msg)
        if name is not None:
            owners[name] = what


def named_or_guessed(table: FileTable, usual: Sequence[str], what: str, given: str | None, notes: list[str]) -> str:
    """The column that was named, or the only one with a usual name."""
    if given is not None:
        return given
    found = [name for name in table.columns if name.strip().lower() in usual]
    if len(found) != 1:
        why = "several columns have" if found else "no column has"
        columns = listed(found or table.columns)
        msg = f"{table.name}: {why} a usual name for the {what}; give --{what} NAME. Columns: {columns}.{table.doubt}"
        raise ValueError(msg)
    notes.append(f"guessed that the {what} in {table.name} is column {shown(found[0])}")
    return found[0]


def feature_columns(table: FileTable, asked: str | None, taken: set[str | None]) -> list[str]:
    """Names of feature columns; one whose name has a comma is found by its whole name."""
    if asked is None or asked in table.columns:
        return [asked] if asked else []
    if asked == ALL_COLUMNS:
        return [name for name in table.columns if name not in taken]
    return list(dict.fromkeys(names_in(asked)))


def names_in(text: str) -> list[str]:
    """Names with commas between; one in double quotes may have some."""
    try:
        (found,) = csv.reader([text], skipinitialspace=True)
    except (csv.Error, ValueError) as wrong:
        msg = f"{shown(text)} must be names with commas between, those with commas in double quotes."
        raise ValueError(msg) from wrong
    return [name.strip() for name in found if name.strip()]


def listed_names(names: Iterable[str]) -> str:
    """Names as `names_in` reads them."""
    text = StringIO()
    csv.writer(text, lineterminator="").writerow(names)
    return text.getvalue()


def note_on_numbers(table: FileTable, column: pl.Series) -> str | None:
    """A note on a column of many strings of which most are numbers."""
    import polars as pl

    if column.dtype != pl.String or column.n_unique() <= MIN_DISTINCT_STRINGS:
        return None
    known = as_strings(column).drop_nulls()
    is_number = known.cast(pl.Float64, strict=False).is_not_null()
    if 2 * int(is_number.sum()) <= len(known):
        return None
    odd = shown(known.filter(~is_number)[0])
    return f"column {shown(column.name)} of {table.name} holds {odd}, which is not a number: it is taken for categories"


def refuse_no_probabilities(table: FileTable, column: pl.Series) -> None:
    """Refuse scores that are not between 0 and 1, with the row of the first."""
    wrong = ((column < 0.0) | (column > 1.0)).arg_true()
    if len(wrong):
        where = f"{table.name}: row {wrong[0] + 1:,} of column {shown(column.name)}"
        msg = f"{where} holds {column[wrong[0]]:g}; scores lie between 0 and 1."
        raise ValueError(msg)


def categories(column: pl.Series) -> NDArray[Any]:
    """A category of each row; dates as strings, as they stand in most files."""
    return (as_strings(column) if column.dtype.is_temporal() else column).to_numpy()


def guessed_if_any(table: FileTable, usual: Sequence[str], what: str, notes: list[str]) -> str | None:
    """The column with a usual name, if there is one; several are refused."""
    found = [name for name in table.columns if name.strip().lower() in usual]
    return named_or_guessed(table, usual, what, None, notes) if found else None


def complete_rows(
    table: FileTable, frame: pl.DataFrame, columns: Sequence[str], notes: list[str], what: str = NO_PAIR
) -> pl.DataFrame:
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
    notes.append(left_out(frame.height - kept.height, frame.height, what))
    return kept


def rows_with(
    table: FileTable, frame: pl.DataFrame, columns: Mapping[str, str | None], notes: list[str]
) -> pl.DataFrame:
    """The rows that have all of these columns, of which some may not have been asked for."""
    asked = {what: name for what, name in columns.items() if name}
    return complete_rows(table, frame, list(asked.values()), notes, " or no ".join(asked))


def left_out(n: int, of: int, what: str) -> str:
    """A note on rows that lack something."""
    return f"left out {n:,} of {of:,} rows that have no {what}"
