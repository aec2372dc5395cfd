"""`Reading`: how a file is to be read, and how columns of strings become numbers and dates, which is guessed aloud."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from pimeter.files.columns import (
    COMMA,
    ENGLISH,
    GERMAN,
    NOTATIONS,
    PLAIN,
    UNITS,
    Notation,
    are_true_or_false,
    as_strings,
    bare,
    date_formats,
    notations,
)
from pimeter.files.naming import listed, shown

if TYPE_CHECKING:
    import polars as pl

AMBIGUOUS = {";": COMMA, ",": ENGLISH}  # what 1,234 is between these: whoever has decimal commas needs the semicolon


@dataclass(frozen=True)
class Reading:
    """How a file is to be read, as far as that is told; what is not told is guessed, and the guess becomes a note."""

    encoding: str | None = None
    decimal: str | None = None
    thousands: str | None = None  # what stands between groups of three digits
    date_format: str | None = None  # such as %d/%m/%Y
    sheet: str | None = None  # its name or number
    header: bool | None = None  # whether the first line holds names
    notes: list[str] = field(default_factory=list)

    @property
    def tells_numbers(self) -> bool:
        """Whether it is told how numbers are written."""
        return self.decimal is not None or self.thousands is not None

    @property
    def options(self) -> tuple[str, ...]:
        """The options of a command that tell it so."""
        told = {name: getattr(self, name) for name in ("encoding", "decimal", "thousands", "date_format", "sheet")}
        pairs = [(f"--{name.replace('_', '-')}", value) for name, value in told.items() if value is not None]
        header = {None: (), True: ("--header",), False: ("--no-header",)}[self.header]
        return (*chain.from_iterable(pairs), *header)

    @property
    def allowed(self) -> Sequence[Notation]:
        """Notations that numbers may have."""
        fit = [w for w in NOTATIONS if self.decimal in {None, w.decimal} and self.thousands in {None, w.thousands}]
        return fit or [Notation(self.decimal or ".", self.thousands or "")]

    def notations(self, columns: Sequence[pl.Series], file: str, separator: str) -> dict[str, Notation]:
        """How those columns of strings that hold numbers write them; if possible, all in the same way."""
        fitting = {column.name: found for column in columns if (found := notations(column, self.allowed))}
        common = [way for way in self.allowed if all(way in found for found in fitting.values())]
        possible = dict.fromkeys(fitting, common) if common else fitting
        chosen = {name: ways[0] for name, ways in possible.items()}
        is_open = [name for name, ways in possible.items() if ways[0] == COMMA and ENGLISH in ways]
        return chosen | {name: _meaning_of_commas(file, name, separator) for name in is_open}

    def note_numbers(self, file: str, columns: Sequence[pl.Series], ways: dict[str, Notation], separator: str) -> None:
        """Note how numbers are read that are not written plainly, or may be thousands, with an example of each way."""
        found: dict[tuple[object, ...], tuple[str, list[str]]] = {}
        for column in columns if not self.tells_numbers else ():
            cells, numbers = as_strings(column), ways[column.name].numbers(bare(column))
            plain = PLAIN.numbers(cells)
            odd = (plain.is_null() & numbers.is_not_null()) | (plain != numbers)
            if separator != "," and not odd.any() and notations(cells, [GERMAN]):
                odd = GERMAN.numbers(cells) != numbers
            for row in odd.arg_true()[:1]:
                key = ways[column.name], *re.findall(UNITS, cells[row])
                example = f"{shown(cells[row])} is {numbers[row]:.15g}"
                found.setdefault(key, (example, []))[1].append(column.name)
        self.notes.extend(
            f"guessed how numbers are written in {file}: {example} (column {listed(names)}); --decimal and --thousands "
            "say otherwise"
            for example, names in found.values()
        )

    def as_known(self, file: str, column: pl.Series) -> pl.Series:
        """Strings as dates or truth values where all are, but for those missing; a column of others as it is."""
        import polars as pl

        text = as_strings(column)
        if are_true_or_false(text):
            return text == "true"
        formats = date_formats(text, self.date_format)
        if not formats:
            return column
        how, dates = formats[0], text.str.to_datetime(formats[0])
        if len(formats) > 1 and not dates.is_sorted() and text.str.to_datetime(formats[1]).is_sorted():
            how, dates = formats[1], text.str.to_datetime(formats[1])  # as months and days they are in disorder
        if not how.startswith("%Y") and self.date_format is None:
            row = text.is_not_null().arg_true()[0]
            example = f"{shown(text[row])} is {dates[row]:%Y-%m-%d} (column {shown(column.name)})"
            self.notes.append(f"guessed how dates are written in {file}: {example}; --date-format says otherwise")
        return dates if "%H" in how else dates.cast(pl.Date)


def _meaning_of_commas(file: str, name: str, separator: str) -> Notation:
    """How numbers are written whose commas may be decimal ones or stand between thousands; or a ValueError."""
    if separator not in AMBIGUOUS:
        what = f"{file}: commas in column {shown(name)} may be decimal commas or stand between thousands"
        msg = f"{what}. Give --decimal , or --thousands , to say which."
        raise ValueError(msg)
    return AMBIGUOUS[separator]
