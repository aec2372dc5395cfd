"""Columns of text as numbers, dates or strings, with null for what says that a value is not known."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from pimeter.files.naming import shown

if TYPE_CHECKING:
    import polars as pl

NO_VALUE = ["", "na", "n/a", "nan", "null", "none", "#n/a", "#na", "<na>"]  # strings that say that it is not known
UNITS = r"(%|€|\$|£|¥|EUR|USD|GBP|CHF|JPY)"  # beside a number
READ_AS = {"\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2019": "'", "\u2212": "-"}  # signs and how they are read
CELLS_TO_TRY = 100  # which tell most columns of strings from numbers and dates
DAYS = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%y", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d-%m-%Y", "%d-%b-%Y", "%d %b %Y")
CLOCKS = ("", " %H:%M", " %H:%M:%S%.f", "T%H:%M", "T%H:%M:%S%.f")
DATE = (  # with a year of four digits, but for 31.12.24: other short ones may be numbers of versions
    r"^(?:\d{4}[-/]\d{2}[-/]\d{2}|\d{2}\.\d{2}\.\d{2}|"
    r"\d{1,2}(?:\.\d{1,2}\.|/\d{1,2}/|-\d{1,2}-|[- ][A-Za-z]{3}[- ])\d{4})"
    r"(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?)?$"
)


class Notation(NamedTuple):
    """How numbers are written."""

    decimal: str
    thousands: str = ""  # between groups of three digits

    def numbers(self, text: pl.Series) -> pl.Series:
        """Cells without white space around them as floats; null for those that are not numbers in this notation."""
        import polars as pl

        if self != PLAIN:
            decimal, between = re.escape(self.decimal), re.escape(self.thousands)
            whole = rf"(?:\d+|[1-9]\d{{0,2}}(?:{between}\d{{3}})+)" if between else r"\d+"
            is_number = text.str.contains(rf"^[+-]?(?:{whole}(?:{decimal}\d*)?|{decimal}\d+)(?:[eE][+-]?\d+)?$")
            plain = text.str.replace_all(self.thousands, "", literal=True) if between else text
            text = plain.str.replace(self.decimal, ".", literal=True).set(~is_number, None)
        return text.cast(pl.Float64, strict=False).fill_nan(None)


PLAIN = Notation(".")
COMMA, ENGLISH, GERMAN = Notation(","), Notation(".", ","), Notation(",", ".")
NOTATIONS = (PLAIN, COMMA, ENGLISH, GERMAN, *(Notation(mark, between) for between in "' " for mark in ",."))


def bare(column: pl.Series) -> pl.Series:
    """Cells without white space, and without the unit where all have the same one; null for what is missing."""
    import polars as pl

    text = column.str.strip_chars()
    numbers = text.cast(pl.Float64, strict=False)
    if numbers.null_count() == text.null_count() and not numbers.is_nan().any():
        return text  # plain numbers
    text = (
        text.set(text.str.to_lowercase().is_in(NO_VALUE), None)
        .str.replace_many(READ_AS)
        .str.replace(r"^\((.*)\)$", "-$1")
    )
    has_unit = text.str.contains(f"^[+-]?{UNITS}|{UNITS}$").drop_nulls()
    if has_unit.all() and text.str.extract(UNITS).drop_nulls().n_unique() == 1:
        text = text.str.replace(rf"^([+-]?)\s*{UNITS}?\s*(.*?)\s*{UNITS}?$", "$1$3")
    return text


def notations(column: pl.Series, allowed: Sequence[Notation] = NOTATIONS) -> list[Notation]:
    """The ways of writing numbers in which all cells of a column of strings are numbers, but for those missing."""
    found, text = list(allowed), column
    for cells in (column.head(CELLS_TO_TRY), column):
        text, tried, found = bare(cells) if found else text, found, []
        for way in tried:  # numbers without thousands fit all ways with the same decimal mark
            if Notation(way.decimal) in found or way.numbers(text).null_count() == text.null_count():
                found.append(way)
    return found if text.null_count() < len(text) else []


def are_plain(column: pl.Series) -> bool:
    """Whether all cells of a column of strings are plain numbers or missing, or none holds anything."""
    return column.null_count() == len(column) or bool(notations(column, [PLAIN]))


def are_true_or_false(column: pl.Series) -> bool:
    """Whether all cells of a column of strings are truth values or empty."""
    return column.null_count() < len(column) and column.is_in(["true", "false"]).all()


def date_formats(column: pl.Series, given: str | None = None) -> list[str]:
    """Formats by which all cells of a column of strings are dates, but for those missing."""
    found = [day + clock for day in DAYS for clock in CLOCKS] if given is None else [given]
    for cells in (column.head(CELLS_TO_TRY), column):
        known = as_strings(cells).drop_nulls()
        if given is None and not known.str.contains(DATE).all():
            return []
        found = [how for how in found if not known.str.to_datetime(how, strict=False).null_count()]
    return found if len(known) else []


def as_strings(column: pl.Series) -> pl.Series:
    """A column as strings, numbers and truth values in their shortest form; null for what is missing.

    Examples
    --------
    >>> import polars as pl
    >>> from pimeter.files import as_strings
    >>> [as_strings(pl.Series(values)).to_list() for values in ([1.0, 0.5], [" yes", "n/a"], [True, None])]
    [['1', '0.5'], ['yes', None], ['true', None]]
    """
    import polars as pl

    if column.dtype.is_nested():
        msg = f"column {shown(column.name)} holds {column.dtype}, neither strings nor numbers."
        raise ValueError(msg)
    if column.dtype.is_float():
        return column.fill_nan(None).cast(pl.String).str.replace(r"\.0$", "")
    text = column.cast(pl.String).str.strip_chars()
    return text.set(text.str.to_lowercase().is_in(NO_VALUE), None)
