"""`Table`: a table in a file, of which columns are read when they are asked for."""

from __future__ import annotations

import codecs
import glob
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pimeter.files.columns import MISSING, as_number, as_numbers_if_all_are
from pimeter.files.naming import first_line, listed, shown
from pimeter.files.text import OddLine, is_regular, lines, odd_line, without_doubled_quotes

if TYPE_CHECKING:
    import polars as pl

PARQUET, JSON_LINES = "parquet", "jsonl"
ROWS_TO_INFER = 10_000  # rows that tell what a column holds
BROKEN = "\ufffd"  # what stands for bytes that are no UTF-8


@dataclass(frozen=True)
class Table:
    """A table in a file, of which only the names of the columns were read.

    Attributes
    ----------
    name : str
        What messages call it.
    path : Path
        Where it is.
    kind : str
        "parquet", "jsonl", or the character between the fields of a text file.
    columns : tuple of str
        Names of its columns.
    """

    name: str
    path: Path
    kind: str
    columns: tuple[str, ...]

    def read(self, numbers: Sequence[str], others: Sequence[str] = ()) -> pl.DataFrame:
        """These columns alone: numbers as floats, null for what is missing; others as they are.

        Of a text file others are numbers, too, if all of them are but for those that are missing.

        Raises
        ------
        ValueError
            If there are no rows, a column is missing, a number is none, or the file is broken.
        """
        import polars as pl

        wanted = list(dict.fromkeys([*numbers, *others]))
        self.check(wanted)
        try:
            try:
                frame = self.scan(dict.fromkeys(numbers, pl.Float64())).select(wanted).collect(engine="streaming")
            except pl.exceptions.PolarsError:
                # The slow way: numbers are strings at first, so that a wrong one has a place.
                strings = self.scan(dict.fromkeys(numbers, pl.String()), n_inferred=None)
                frame = strings.select(wanted).collect(engine="streaming")
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as why:
            raise ValueError(self.trouble(why)) from why
        if not frame.height:
            msg = f"{self.name} has no rows."
            raise ValueError(msg)
        known = [as_numbers_if_all_are(frame[name]) for name in wanted if name not in numbers] if self._is_text else []
        return frame.with_columns(*(self.numbers(frame[name]) for name in numbers), *known)

    def check(self, columns: Sequence[str]) -> None:
        """Refuse a table without one of these columns, and a text file whose rows are not as long as the header.

        Raises
        ------
        ValueError
            If it is so, or the file is broken.
        """
        import polars as pl

        for name in columns:
            self._check_column(name)
        try:
            self._check_fields()
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as why:
            raise ValueError(self.trouble(why)) from why

    def with_interval(self, prediction: str, below: float, above: float) -> pl.LazyFrame:
        """The table as it is, with `lower` and `upper` around the prediction; it is read when it is written."""
        taken = {"lower", "upper"} & set(self.columns)
        if taken:
            msg = f"{self.name} has a column {min(taken)!r} already. Rename it first."
            raise ValueError(msg)
        import polars as pl

        table = self.scan(None)
        is_text = table.collect_schema()[prediction] == pl.String
        number = as_number(prediction) if is_text else pl.col(prediction).cast(pl.Float64)
        return table.with_columns(lower=number - below, upper=number + above)

    def scan(self, kinds: dict[str, pl.DataType] | None, n_inferred: int | None = ROWS_TO_INFER) -> pl.LazyFrame:
        """All columns, read when asked for; without kinds text stays strings, and JSON has the keys of all lines."""
        import polars as pl

        if self.kind == PARQUET:
            return pl.scan_parquet(self.path, glob=False)
        if self.kind == JSON_LINES:
            n = None if kinds is None else n_inferred
            return pl.scan_ndjson(glob.escape(str(self.path)), schema_overrides=kinds, infer_schema_length=n)
        return pl.scan_csv(
            self.path,
            separator=self.kind,
            schema_overrides=kinds,
            infer_schema=kinds is not None,
            infer_schema_length=n_inferred,
            with_column_names=without_doubled_quotes,
            glob=False,
        )

    def numbers(self, column: pl.Series) -> pl.Series:
        """Floats, or a complaint about the first cell that is none."""
        import polars as pl

        held = column.dtype
        if not (held.is_numeric() or held in {pl.Boolean, pl.String, pl.Null}):
            msg = f"{self.name}: column {shown(column.name)} holds {held}, not numbers."
            raise ValueError(msg)
        if held != pl.String:
            known = column.cast(pl.Float64)
            return known.fill_nan(None) if known.is_nan().any() else known  # no copy where there is no need
        found = column.to_frame().select(as_number(column.name)).to_series()
        unknown = column.str.strip_chars().str.to_lowercase().is_in(MISSING)
        wrong = (found.is_null() & column.is_not_null() & ~unknown).arg_true()
        if len(wrong):
            row = wrong[0]
            what = f"row {row + 1:,} of column {shown(column.name)} holds {shown(column[row])}"
            msg = f"{self.name}: {what}, which is not a number."
            raise ValueError(msg)
        return found

    def _check_column(self, name: str) -> None:
        if name not in self.columns:
            msg = f"{self.name} has no column {shown(name)}, only {listed(self.columns)}."
            raise ValueError(msg)
        if self._is_text and f"{name}_duplicated_0" in self.columns:
            msg = f"{self.name} has several columns {shown(name)}. Rename all but one."
            raise ValueError(msg)

    @property
    def _is_text(self) -> bool:
        return self.kind not in {PARQUET, JSON_LINES}

    def _check_fields(self) -> None:
        """Refuse rows of another length than the header's, which would be cut or filled up silently."""
        import polars as pl

        n = len(self.columns)
        if not self._is_text or is_regular(self.path, self.kind, n):
            return
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
        odd = None if number is None else OddLine(number, found, False)
        if has_quotes:  # a separator within quotes is none
            odd = odd_line(lines(self.path).collect(engine="streaming")["line"], self.kind, n)
        if odd is not None and odd.is_quote:
            what = f"{self.name}: line {odd.number:,} has a quote within a field, or one that is never closed"
            msg = f'{what}. Write a field like 5" pipe as "5"" pipe".'
            raise ValueError(msg)
        if odd is not None:
            fields = "1 field" if odd.n_fields == 1 else f"{odd.n_fields} fields"
            msg = f"{self.name}: line {odd.number:,} has {fields}, expected {n} as in the header."
            raise ValueError(msg)

    def trouble(self, why: BaseException) -> str:
        """What is wrong with a file that polars cannot read, with the line where it is known."""
        import polars as pl

        if self.kind == PARQUET:
            return f"{self.name} is not a complete Parquet file: {first_line(why)}."
        if isinstance(why, OSError):
            return f"{self.name} cannot be read: {why}."
        broken = lines(self.path).filter(pl.col("line").str.contains(BROKEN, literal=True)).head(1).collect()
        if broken.height:
            return f"{self.name}: line {broken['number'][0]:,} is not UTF-8 text. Save the file as UTF-8."
        if self.kind == JSON_LINES:
            with self.path.open("rb") as file:
                if file.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8:
                    return f"{self.name} begins with a byte order mark. Save it as UTF-8 without one."
            for number, line in lines(self.path).drop_nulls().collect().iter_rows():
                try:
                    json.loads(line, parse_constant=_not_json)
                except ValueError as wrong:
                    return f"{self.name}: line {number:,} is not JSON: {wrong}."
        return f"{self.name} cannot be read: {first_line(why)}."


def _not_json(name: str) -> None:
    msg = f"{name} is not a number there; write null for what is not known"
    raise ValueError(msg)
