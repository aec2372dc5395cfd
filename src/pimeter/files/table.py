"""`FileTable`: a table in a file, of which columns are read when they are asked for."""

from __future__ import annotations

import contextlib
import glob
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pimeter.files.columns import CELLS_TO_TRY, UNITS, Notation, bare
from pimeter.files.naming import first_line, listed, shown
from pimeter.files.reading import Reading
from pimeter.files.text import OddLine, is_regular, lines, numbered, odd_line, without_doubled_quotes

if TYPE_CHECKING:
    import polars as pl

PARQUET, ARROW, EXCEL, JSON, JSON_LINES = "parquet", "arrow", "xlsx", "json", "jsonl"
ROWS_TO_INFER = 10_000  # rows that tell what a column holds
REPLACEMENT_SIGN = "\ufffd"  # what stands for bytes that are no UTF-8


@dataclass(frozen=True)
class FileTable:
    """A table in a file, of which only the names of the columns were read."""

    name: str  # what messages call it
    path: Path
    kind: str  # "parquet", "arrow", "xlsx", "jsonl", or the character between the fields of a text file
    columns: tuple[str, ...]
    reading: Reading = field(default_factory=Reading)
    has_header: bool = True  # whether the first line of a text file holds the names of the columns
    notations: dict[str, Notation] = field(default_factory=dict)  # of columns of strings that were read

    def read(self, numbers: Sequence[str], others: Sequence[str] = ()) -> pl.DataFrame:
        """These columns alone: numbers as floats, null for what is missing; others as they are.

        Of a text file or a sheet others are numbers, too, or dates, if all of them are but for those that are missing.
        """
        import polars as pl

        wanted = list(dict.fromkeys([*numbers, *others]))
        self.check(wanted)
        try:
            frame = self._collected(wanted, numbers)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as why:
            raise ValueError(self.trouble(why)) from why
        if not frame.height:
            msg = f"{self.name} has no rows."
            raise ValueError(msg)
        return self._typed(frame, numbers)

    def _typed(self, frame: pl.DataFrame, numbers: Sequence[str]) -> pl.DataFrame:
        """The frame with numbers, dates and truth values in the place of strings that are."""
        import polars as pl

        wanted = frame.columns
        is_loose = self._is_text or self.kind == EXCEL  # other kinds say what is a number
        strings = [one for one in frame if one.dtype == pl.String and (is_loose or one.name in numbers)]
        ways = self._ways(strings, wanted)
        known = [self.numbers(frame[name], ways.get(name)) for name in wanted if name in {*numbers, *ways}]
        self.reading.note_numbers(self.name, [frame[name] for name in ways], ways, self.kind)
        self.notations.update(ways)
        words = [self.reading.as_known(self.name, one) for one in strings if one.name not in {*numbers, *ways}]
        return frame.with_columns(*known, *words)

    def _ways(self, strings: Sequence[pl.Series], wanted: Sequence[str]) -> dict[str, Notation]:
        """How numbers are written in those columns of strings that hold numbers."""
        # Between other signs than commas there are decimal commas: one in any column tells what points are.
        beside = self.scan(None).drop(wanted).head(CELLS_TO_TRY).collect() if self._is_text and self.kind != "," else ()
        found = self.reading.notations([*strings, *beside], self.name, self.kind)
        return {name: way for name, way in found.items() if name in wanted}

    def _collected(self, wanted: Sequence[str], numbers: Sequence[str]) -> pl.DataFrame:
        """These columns: numbers as floats where all are plain, otherwise as they stand in the file."""
        import polars as pl

        # Not beside semicolons and tabs: there are decimal commas, and what looks like a decimal may be a thousand.
        if not self._is_text or (self.kind == "," and not self.reading.tells_numbers):
            with contextlib.suppress(pl.exceptions.PolarsError):
                return self.scan(dict.fromkeys(numbers, pl.Float64())).select(wanted).collect(engine="streaming")
        # The slow way: numbers are strings at first, so that a wrong one has a place.
        strings: dict[str, pl.DataType] = dict.fromkeys(numbers, pl.String())
        return self.scan(None if self._is_text else strings, n_inferred=None).select(wanted).collect(engine="streaming")

    def check(self, columns: Sequence[str]) -> None:
        """Refuse a table without one of these columns, and a text file whose rows are not as long as the header."""
        import polars as pl

        for name in columns:
            self._check_column(name)
        try:
            self._check_fields()
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as why:
            raise ValueError(self.trouble(why)) from why

    def with_columns(self, columns: pl.DataFrame) -> pl.LazyFrame:
        """The table as it is with more columns beside it; it is read when it is written."""
        taken = {*columns.columns} & {*self.columns}
        if taken:
            msg = f"{self.name} has a column {min(taken)!r} already. Rename it first."
            raise ValueError(msg)
        import polars as pl

        return pl.concat([self.scan(None), columns.lazy()], how="horizontal")

    def scan(self, kinds: dict[str, pl.DataType] | None, n_inferred: int | None = ROWS_TO_INFER) -> pl.LazyFrame:
        """All columns, read when asked for; without kinds text stays strings, and JSON has the keys of all lines."""
        import polars as pl

        if self.kind in {PARQUET, EXCEL}:
            return pl.scan_parquet(self.path, glob=False)
        if self.kind == ARROW:
            return pl.scan_ipc(self.path, glob=False)
        if self.kind == JSON_LINES:
            n = None if kinds is None else n_inferred
            return pl.scan_ndjson(glob.escape(str(self.path)), schema_overrides=kinds, infer_schema_length=n)
        return pl.scan_csv(
            self.path,
            has_header=self.has_header,
            separator=self.kind,
            schema_overrides=kinds,
            infer_schema=kinds is not None,
            infer_schema_length=n_inferred,
            with_column_names=without_doubled_quotes if self.has_header else numbered,
            glob=False,
        )

    def numbers(self, column: pl.Series, way: Notation | None = None) -> pl.Series:
        """Floats, or a complaint about the first cell that is none; without a notation in the one that fits most."""
        import polars as pl

        held = column.dtype
        if not (held.is_numeric() or held in {pl.Boolean, pl.String, pl.Null}):
            msg = f"{self.name}: column {shown(column.name)} holds {held}, not numbers."
            raise ValueError(msg)
        if held != pl.String:
            known = column.cast(pl.Float64)
            return known.fill_nan(None) if known.is_nan().any() else known  # no copy where there is no need
        text = bare(column)
        way = way or min(self.reading.allowed, key=lambda one: one.numbers(text).null_count())
        found = way.numbers(text)
        wrong = (found.is_null() & text.is_not_null()).arg_true()
        if len(wrong):
            row = wrong[0]
            what = f"{self.name}: row {row + 1:,} of column {shown(column.name)} holds {shown(column[row])}"
            msg = f"{what}, which is not a number{self._cure(column[row], way)}"
            raise ValueError(msg)
        return found

    def _cure(self, cell: str, way: Notation) -> str:
        """What to do with a cell that is not a number in this notation."""
        if self.reading.tells_numbers:
            return f" with --decimal {way.decimal}" + (f" --thousands {way.thousands}." if way.thousands else ".")
        if re.search(r"\d[., ']\d", cell):
            mark = "comma" if way.decimal == "," else "point"
            return f" like the others, which have a decimal {mark}. Write all in one way."
        if re.search(UNITS, cell):
            return " with the same unit as the others. Write all in one unit, or leave it out."
        return ". Leave the cell empty if it is not known."

    def _check_column(self, name: str) -> None:
        if name not in self.columns:
            msg = f"{self.name} has no column {shown(name)}, only {listed(self.columns)}.{self.doubt}"
            raise ValueError(msg)
        if self._is_text and f"{name}_duplicated_0" in self.columns:
            msg = f"{self.name} has several columns {shown(name)}. Rename all but one."
            raise ValueError(msg)

    @property
    def separator(self) -> str:
        """What stands between the fields of a text file; a comma for other kinds of files."""
        return self.kind if self._is_text else ","

    @property
    def has_decimal_commas(self) -> bool:
        """Whether some of the columns that were read have decimal commas."""
        return any(way.decimal == "," for way in self.notations.values())

    @property
    def _is_text(self) -> bool:
        return len(self.kind) == 1

    def _check_fields(self) -> None:
        """Refuse rows of another length than the header's, which would be cut or filled up silently."""
        n = len(self.columns)
        if not self._is_text or is_regular(self.path, self.kind, n):
            return
        odd = self._odd_line(n)
        if odd is not None and odd.is_quote:
            what = f"{self.name}: line {odd.number:,} has a quote within a field, or one that is never closed"
            msg = f'{what}. Write a field like 5" pipe as "5"" pipe".'
            raise ValueError(msg)
        if odd is not None:
            fields = "1 field" if odd.n_fields == 1 else f"{odd.n_fields} fields"
            like = "the header" if self.has_header else "the first line"
            what = f"{self.name}: line {odd.number:,} has {fields}, expected {n} as in {like}"
            commas = " If there are decimal commas, save the file with semicolons between fields."
            msg = f"{what}.{self.doubt or (commas if self.kind == ',' and odd.n_fields > n else '')}"
            raise ValueError(msg)

    def _odd_line(self, n: int) -> OddLine | None:
        """The first line that does not have n fields, if there is one."""
        import polars as pl

        line = pl.col("line")
        n_fields = line.str.count_matches(self.kind, literal=True) + 1
        other = n_fields != n
        has_quotes, number, found = (
            lines(self.path)
            .select(
                line.str.contains('"', literal=True).any().alias("has quotes"),
                pl.col("number").filter(other).first(),
                n_fields.filter(other).first().alias("fields"),
            )
            .collect(engine="streaming")
            .row(0)
        )
        if has_quotes:  # a separator within quotes is none
            return odd_line(lines(self.path).collect(engine="streaming")["line"], self.kind, n)
        return None if number is None else OddLine(number, found, False)

    @property
    def doubt(self) -> str:
        """What may be wrong with the names of columns, as a sentence to add; empty where nothing seems to be."""
        if not self.has_header:
            return " Its first line is not taken for names; --header says otherwise."
        if self.columns[0].lower().startswith("sep="):
            return " Delete the first line, which is a note to Excel."
        return " Delete the lines above the header, if there are any." if len(self.columns) == 1 else ""

    def trouble(self, why: BaseException) -> str:
        """What is wrong with a file that polars cannot read, with the line where it is known."""
        import polars as pl

        if self.kind in {PARQUET, ARROW}:
            return f"{self.name} is not a complete {self.kind.capitalize()} file: {first_line(why)}."
        if isinstance(why, OSError):
            return f"{self.name} cannot be read: {why}."
        broken = lines(self.path).filter(pl.col("line").str.contains(REPLACEMENT_SIGN, literal=True)).head(1).collect()
        if broken.height:
            line = f"line {broken['number'][0]:,} is not UTF-8 text"
            return f"{self.name}: {line}. Save the file as UTF-8, or give its --encoding."
        if self.kind == JSON_LINES:
            for number, line in lines(self.path).drop_nulls().collect().iter_rows():
                try:
                    json.loads(line, parse_constant=_not_json)
                except ValueError as wrong:
                    return f"{self.name}: line {number:,} is not JSON: {wrong}."
        return f"{self.name} cannot be read: {first_line(why)}."


def _not_json(name: str) -> None:
    msg = f"{name} is not a number there; write null for what is not known"
    raise ValueError(msg)
