"""From a path, standard input or a pipe to a `Table`; what cannot be one is refused with the reason."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from pimeter.files.naming import shown
from pimeter.files.packing import PARQUET_START, check_size, check_unpacked
from pimeter.files.table import BROKEN, JSON_LINES, PARQUET, Table
from pimeter.files.text import lines

STDIN = "-"
SEPARATORS = ",\t;|"
KINDS = {".parquet": PARQUET, ".pq": PARQUET, ".jsonl": JSON_LINES, ".ndjson": JSON_LINES}


@contextmanager
def opened(source: str) -> Iterator[Table]:
    """The table in a file, or in what comes from standard input or a named pipe, kept in a file meanwhile.

    Raises
    ------
    ValueError
        If there is no such file, or no table in it.
    """
    path = Path(source)
    if source != STDIN and not path.is_fifo():
        yield table_in(shown(source), path)
        return
    if source == STDIN and sys.stdin is None:
        msg = "standard input is closed; give a file."
        raise ValueError(msg)
    with tempfile.TemporaryDirectory(prefix="pimeter-") as folder:
        kept = Path(folder) / "input"
        with kept.open("wb") as copy, path.open("rb") if source != STDIN else nullcontext(sys.stdin.buffer) as stream:
            shutil.copyfileobj(stream, copy)
        yield table_in("standard input" if source == STDIN else shown(source), kept)


def table_in(name: str, path: Path) -> Table:
    """The table in a file, which messages call by this name."""
    import polars as pl

    if BROKEN in str(path).encode(errors="surrogateescape").decode(errors="replace"):
        msg = f"{name} cannot be read: its name is not UTF-8. Rename it."
        raise ValueError(msg)
    if path.exists() and not path.is_file():
        msg = f"{name} is {'a folder' if path.is_dir() else 'a device'}; give a file."
        raise ValueError(msg)
    try:
        with path.open("rb") as file:
            start = file.read(4)
    except OSError as why:
        msg = f"{name} cannot be read: {why.strerror}."
        raise ValueError(msg) from why
    if not start:
        msg = f"{name} is empty."
        raise ValueError(msg)
    check_size(name, path, start)
    table = Table(name, path, "", ())
    try:
        table = Table(name, path, _kind(name, path, start), ())
        scan = table.scan(None)
        names = tuple(scan.collect_schema().names())
        n_rows = scan.select(pl.len()).collect().item() if table.kind == PARQUET else 0
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as why:
        raise ValueError(table.trouble(why)) from why
    if any(BROKEN in column for column in names):
        raise ValueError(table.trouble(ValueError("its header is not UTF-8 text")))
    check_unpacked(name, 8 * n_rows, path.stat().st_size)
    return Table(name, path, table.kind, names)


def _kind(name: str, path: Path, start: bytes) -> str:
    """By how the file begins where that is unmistakable, by its name, or by its first line."""
    if start == PARQUET_START:
        return PARQUET
    is_packed = path.suffix.lower() in {".gz", ".zst"}
    ending = (path.with_suffix("") if is_packed else path).suffix.lower()
    if ending in KINDS:
        return KINDS[ending]
    first = lines(path).head(1).collect()["line"].fill_null("").item().strip()
    if first == "[" or first.startswith(("[{", "[[")):
        msg = f"{name} is one JSON array; write a line for each row instead, {{...}} and no commas between."
        raise ValueError(msg)
    if first.startswith("{"):
        return JSON_LINES
    return max(SEPARATORS, key=re.sub('"[^"]*"', "", first).count)
