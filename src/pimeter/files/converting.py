"""Files that are not read as they stand: text becomes UTF-8, a JSON document becomes lines, a sheet becomes Parquet."""

from __future__ import annotations

import codecs
import gzip
import json
import re
import shutil
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pimeter.extras import how_to_install
from pimeter.files.columns import DATE, NOTATIONS, bare
from pimeter.files.naming import first_line, listed, shown
from pimeter.files.packing import GZIP, ZSTD, check_unpacked, zip_parts
from pimeter.files.text import numbered

if TYPE_CHECKING:
    import polars as pl

    from pimeter.files.reading import Reading

BYTES_AT_ONCE = 1 << 24
BYTE_ORDER_MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16", codecs.BOM_UTF8: "utf-8-sig"}
LATIN = "cp1252"  # Latin-1 and the signs that Windows adds, such as €
NOT_LATIN = re.compile(rb"[\0\x81\x8d\x8f\x90\x9d]|\xc3[\x80-\xbf]|\xe2[\x80-\xbf]{2}")  # no sign, or é, ’ in UTF-8


def encoding_of(name: str, path: Path, start: bytes, reading: Reading) -> str | None:
    """The encoding of a text file, told or guessed; None for what needs no conversion."""
    if (reading.encoding or "utf-8").lower() not in {"utf-8", "utf8"}:
        return reading.encoding
    marked = BYTE_ORDER_MARKS.get(start[:2]) or BYTE_ORDER_MARKS.get(start[:3])
    if start[1:2] + start[3:4] == b"\0\0":
        return marked or "utf-16-le"
    if marked == "utf-8-sig" and start[3:4] not in {b"{", b"["}:
        return None  # of tables polars leaves the mark out
    if (marked or reading.encoding) is not None or start.startswith((GZIP, ZSTD)):
        return marked
    return _guessed_latin(name, path, reading)


def _guessed_latin(name: str, path: Path, reading: Reading) -> str | None:
    """Latin-1 where a line is not UTF-8, with a note."""
    line = _line_of_latin(name, path)
    if line is None:
        return None
    guess = f"guessed that {name} is in Latin-1 ({LATIN}): line {line:,} is not UTF-8"
    reading.notes.append(f"{guess}; --encoding says otherwise")
    return LATIN


def _line_of_latin(name: str, path: Path) -> int | None:
    """The first line that is not UTF-8, if one is, where all may be Latin-1; otherwise it is refused."""
    decoder, line, is_plain = codecs.getincrementaldecoder("utf-8")(), 1, True
    with path.open("rb") as file:
        while block := file.read(BYTES_AT_ONCE):
            try:
                decoder.decode(block, final=len(block) < BYTES_AT_ONCE)
            except UnicodeDecodeError as why:
                line += why.object.count(b"\n", 0, why.start)
                if is_plain and not NOT_LATIN.search(why.object):
                    return line
                msg = f"{name}: line {line:,} is not UTF-8 text. Save the file as UTF-8, or give its --encoding."
                raise ValueError(msg) from why
            is_plain &= block.isascii()
            line += block.count(b"\n")
    return None


def recoded(name: str, path: Path, start: bytes, encoding: str, copy: Path) -> Path:
    """A copy of a text file in UTF-8."""
    if start[:4] == ZSTD:
        msg = f"{name} is compressed; decompress it first if it is not in UTF-8."
        raise ValueError(msg)
    try:
        with (
            (gzip.open if start[:2] == GZIP else open)(path, "rt", encoding=encoding, newline="") as text,
            copy.open("w", encoding="utf-8", newline="") as made,
        ):
            shutil.copyfileobj(text, made)
    except (LookupError, UnicodeError, EOFError, OSError, zlib.error) as why:
        what = f"{name} cannot be read as {shown(encoding)}: {first_line(why)}"
        msg = f"{what}. Save it as UTF-8, or give its --encoding, such as latin-1 or utf-16."
        raise ValueError(msg) from why
    return copy


def are_values(fields: Sequence[str | None]) -> bool:
    """Whether fields of a first line are numbers and dates, not names; 0, 1, 2, ... are names that pandas makes."""
    import polars as pl

    text = bare(pl.Series(fields, dtype=pl.String))
    is_value = text.str.contains(DATE)
    for way in NOTATIONS:
        is_value |= way.numbers(text).is_not_null()
    counted = [[str(i + first) for i in range(len(fields))] for first in (0, 1)]
    return bool(is_value.drop_nulls().any() and is_value.drop_nulls().all()) and list(fields) not in counted


def is_document(first: str) -> bool:
    """Whether text that begins with this line is one JSON document, and not JSON lines."""
    try:
        found = json.loads(first) if first.startswith("{") else []
    except (ValueError, RecursionError):
        return first == "{"
    return all(isinstance(held, list | dict) for held in (found.values() if isinstance(found, dict) else ()))


def json_lines(name: str, text: str, copy: Path) -> Path:
    """The rows of a JSON document, as JSON lines."""
    try:
        rows = _rows(json.loads(text, parse_constant=lambda _: None))
    except json.JSONDecodeError as why:
        msg = f"{name} is not JSON: {why}."
        raise ValueError(msg) from why
    except (TypeError, ValueError, RecursionError) as why:
        msg = (
            f'{name} is JSON, but not a table. Write a list of rows, like [{{"y": 1.5, "y_hat": 1.25}}], or JSON lines.'
        )
        raise ValueError(msg) from why
    copy.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return copy


def _rows(found: Any) -> list[dict[str, Any]]:
    """Rows of a list, or of what pandas writes: lists or values by index for each column, or {columns, data}."""
    if isinstance(found, dict) and isinstance(found.get("data"), list):
        names = found.get("columns")
        found = found["data"] if names is None else [dict(zip(names, row, strict=True)) for row in found["data"]]
    if isinstance(found, dict):
        columns = [held.values() if isinstance(held, dict) else held for held in found.values()]
        found = [dict(zip(found, row, strict=True)) for row in zip(*columns, strict=True)]
    if not all(isinstance(row, dict) for row in found):
        raise TypeError
    return list(found)


def sheet_in(name: str, path: Path, reading: Reading, copy: Path) -> Path:
    """A sheet of an Excel file, as Parquet."""
    try:
        import fastexcel
    except ImportError as missing:
        msg = f"{name} is an Excel file, which needs fastexcel: {how_to_install('excel')}. Or save the sheet as CSV."
        raise ImportError(msg) from missing
    import polars as pl

    try:
        check_unpacked(name, sum(zip_parts(path).values()), path.stat().st_size)
        sheet = _sheet(name, fastexcel.read_excel(path).sheet_names, reading)
        frame = _sheet_frame(path, sheet, has_header=reading.header is not False)
        if reading.header is None and are_values(frame.columns):
            frame = _sheet_frame(path, sheet, has_header=False)
            reading.notes.append(no_header(name, frame.columns))
    except (fastexcel.FastExcelError, pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as why:
        msg = f"{name} is not a complete Excel file: {first_line(why)}."
        raise ValueError(msg) from why
    frame.write_parquet(copy)
    return copy


def _sheet(name: str, sheets: list[str], reading: Reading) -> str:
    """The sheet that is told by name or number, or the first."""
    told = reading.sheet
    if told is None:
        if len(sheets) > 1:
            reading.notes.append(
                f"read sheet {shown(sheets[0])} of {name}, one of {listed(sheets)}; --sheet says otherwise"
            )
        return sheets[0]
    if told in sheets:
        return told
    if told.isdecimal() and 0 < int(told) <= len(sheets):
        return sheets[int(told) - 1]
    msg = f"{name} has no sheet {shown(told)}, only {listed(sheets)}."
    raise ValueError(msg)


def _sheet_frame(path: Path, sheet: str, *, has_header: bool) -> pl.DataFrame:
    import polars as pl

    frame = pl.read_excel(path, sheet_name=sheet, has_header=has_header, infer_schema_length=None)
    return frame if has_header else frame.rename(dict(zip(frame.columns, numbered(frame.columns), strict=True)))


def no_header(name: str, columns: Sequence[str]) -> str:
    """A note on a file without names of columns."""
    what = f"guessed that {name} has no header, as its first line holds values: columns are {listed(columns)}"
    return f"{what}; --header says otherwise"
