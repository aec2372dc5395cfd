"""From a path, standard input or a pipe to a `FileTable`; what cannot be one is refused with the reason."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

from pimeter.files.converting import are_values, encoding_of, is_document, json_lines, no_header, recoded, sheet_in
from pimeter.files.naming import shown
from pimeter.files.packing import check_size, check_unpacked, zip_parts
from pimeter.files.reading import Reading
from pimeter.files.table import ARROW, EXCEL, JSON, JSON_LINES, PARQUET, REPLACEMENT_SIGN, FileTable
from pimeter.files.text import lines

STDIN = "-"
SEPARATORS = ",\t;|"
LINES_TO_TRY = 20  # which tell the separator
WORD = re.compile(r"[^\W\d]{4}")  # in no number and no date
KIND_OF_ENDING = {".parquet": PARQUET, ".pq": PARQUET, ".jsonl": JSON_LINES, ".ndjson": JSON_LINES}
KIND_OF_ENDING |= dict.fromkeys((".arrow", ".feather", ".ipc"), ARROW)
ZIP = b"PK\x03\x04"
KIND_OF_START = {b"PAR1": PARQUET, b"ARROW1": ARROW, b"\xd0\xcf\x11\xe0": EXCEL}
SHEETS = {
    "xl/workbook.xml",
    "xl/workbook.bin",
    "content.xml",
}  # parts of a zip file that is one of Excel or LibreOffice
UNREADABLE_STARTS = {
    ZIP: "a zip archive; extract it, or compress it as .gz or .zst",
    b"FEA1": "in the first version of Feather; write it anew with a newer one, or save it as Parquet",
    b"\xff\xff\xff\xff": "an Arrow stream; save it as an Arrow file, or as Parquet",
    b"\x89HDF": "in HDF5; save the table as Parquet",
    b"\x80": "a pickle, which could run any code; save the table as Parquet",
    b"SQLite": "a database; save the table as CSV or Parquet",
    b"%PDF": "a PDF; save the table as CSV",
}
# A header may begin with "<", too.
UNREADABLE_STARTS |= dict.fromkeys(
    (b"<!DOCTYPE", b"<!doctype", b"<html", b"<HTML", b"<?xml", b"<table"),
    "HTML or XML; open it in a spreadsheet, and save it as CSV or .xlsx",
)


@contextmanager
def opened(source: str, reading: Reading | None = None) -> Iterator[FileTable]:
    """The table in a file, or in what comes from standard input or a named pipe, kept in a file meanwhile."""
    path, name = Path(source), "standard input" if source == STDIN else shown(source)
    if source == STDIN and sys.stdin is None:
        msg = "standard input is closed; give a file."
        raise ValueError(msg)
    with ExitStack() as held:

        def scratch() -> Path:
            return Path(held.enter_context(tempfile.TemporaryDirectory(prefix="pimeter-"))) / "table"

        if source == STDIN or path.is_fifo():
            kept = scratch()
            with kept.open("wb") as copy, path.open("rb") if source != STDIN else nullcontext(sys.stdin.buffer) as sent:
                shutil.copyfileobj(sent, copy)
            path = kept
        yield table_in(name, path, reading or Reading(), scratch)


def as_it_stands() -> Path:
    """No place for a copy of a file in another form."""
    msg = "--engine dask reads Parquet files and CSV in UTF-8; leave it out, or save the files as one of these."
    raise ValueError(msg)


def table_in(name: str, path: Path, reading: Reading, scratch: Callable[[], Path] = as_it_stands) -> FileTable:
    """The table in a file, which messages call by this name; `scratch` is where a copy in another form may go."""
    import polars as pl

    start = _start(name, path)
    table = FileTable(name, path, _binary_kind(name, path, start), (), reading)
    try:
        if table.kind == EXCEL:
            table = replace(table, path=sheet_in(name, path, reading, scratch()))
        elif reading.sheet is not None:
            reading.notes.append(f"--sheet says nothing about {name}, which is not an Excel file")
        if not table.kind:
            table = _text_table(table, start, scratch)
        scan = table.scan(None)
        names = tuple(scan.collect_schema().names())
        n_rows = scan.select(pl.len()).collect().item() if table.kind in {PARQUET, ARROW} else 0
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as why:
        raise ValueError(table.trouble(why)) from why
    if any(REPLACEMENT_SIGN in column for column in names):
        raise ValueError(table.trouble(ValueError("its header is not UTF-8 text")))
    if not table.has_header and reading.header is None:
        reading.notes.append(no_header(name, names))
    check_unpacked(name, 8 * n_rows, table.path.stat().st_size)
    return replace(table, columns=names)


def _text_table(table: FileTable, start: bytes, scratch: Callable[[], Path]) -> FileTable:
    """The table in a text file, in UTF-8, with its kind and whether it has a header."""
    import polars as pl

    name, path, reading = table.name, table.path, table.reading
    check_size(name, path, start)
    kind = KIND_OF_ENDING.get(_suffix(path))
    if encoding := encoding_of(name, path, start, reading):
        path = recoded(name, path, start, encoding, scratch())
    head = lines(path).head(LINES_TO_TRY).collect()["line"].fill_null("").to_list()
    kind = kind or _text_kind(head)
    if kind == JSON:
        text = "\n".join(lines(path).collect()["line"].fill_null(""))
        path, kind = json_lines(name, text, scratch()), JSON_LINES
    has_header = reading.header is not False
    if len(kind) == 1 and reading.header is None and head[0] and not WORD.search(head[0]):
        first = pl.read_csv(head[0].encode(), has_header=False, separator=kind, infer_schema=False)
        has_header = not are_values(first.row(0))
    return replace(table, path=path, kind=kind, has_header=has_header)


def _start(name: str, path: Path) -> bytes:
    """The first bytes of a file that can be read."""
    if REPLACEMENT_SIGN in str(path).encode(errors="surrogateescape").decode(errors="replace"):
        msg = f"{name} cannot be read: its name is not UTF-8. Rename it."
        raise ValueError(msg)
    if path.exists() and not path.is_file():
        msg = f"{name} is {'a folder' if path.is_dir() else 'a device'}; give a file."
        raise ValueError(msg)
    try:
        with path.open("rb") as file:
            start = file.read(8)
    except OSError as why:
        msg = f"{name} cannot be read: {why.strerror}."
        raise ValueError(msg) from why
    if not start:
        msg = f"{name} is empty."
        raise ValueError(msg)
    return start


def _suffix(path: Path) -> str:
    """Suffix of the name of a file, but for how it is packed."""
    is_packed = path.suffix.lower() in {".gz", ".zst"}
    return (path.with_suffix("") if is_packed else path).suffix.lower()


def _binary_kind(name: str, path: Path, start: bytes) -> str:
    """The kind of a file that is not text, by how it begins; what holds no table that can be read is refused."""
    found = next((kind for mark, kind in KIND_OF_START.items() if start.startswith(mark)), "")
    if start.startswith(ZIP) and (SHEETS & {*zip_parts(path)} or _suffix(path) == ".xlsx"):
        found = EXCEL
    foreign = next((what for mark, what in UNREADABLE_STARTS.items() if start.startswith(mark)), None)
    if foreign and not found:
        msg = f"{name} is {foreign}."
        raise ValueError(msg)
    return found or ({PARQUET, ARROW} & {KIND_OF_ENDING.get(_suffix(path), "")} or {""}).pop()


def _text_kind(head: Sequence[str]) -> str:
    """The kind of a text file by its first lines: JSON, JSON lines, or the character between fields."""
    first = head[0].strip()
    if first.startswith(("[", "{")):
        return JSON if is_document(first) else JSON_LINES
    plain = [re.sub('"[^"]*"', "", line) for line in head if line]

    def rank(separator: str) -> tuple[bool, bool, int]:
        """How well it would separate: each line has as many, it is no (decimal) comma, the first line has many."""
        counts = [line.count(separator) for line in plain] or [0]
        is_even = counts[0] > 0 and len({*counts}) == 1
        return is_even, is_even and separator != ",", counts[0]

    return max(SEPARATORS, key=rank)
