"""Tables in files: columns of numbers come in, whole files go out, and what is wrong is said with its place."""

from __future__ import annotations

import codecs
import glob
import gzip
import json
import mmap
import os
import re
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

STDIN = "-"
SEPARATORS = ",\t;|"
PARQUET, JSON_LINES = "parquet", "jsonl"
KINDS = {".parquet": PARQUET, ".pq": PARQUET, ".jsonl": JSON_LINES, ".ndjson": JSON_LINES}
MISSING = ["", "na", "n/a", "nan", "null", "none", "#n/a", "#na", "<na>"]  # words that say that a value is not known
LONGEST = 60  # characters of a name in a message
LONGEST_LINE = 1 << 24  # bytes
MOST_UNPACKED, MOST_TIMES = 1 << 27, 100  # bytes that a packed file may hold, or so many times its own size
GZIP, ZSTD, ZIP = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04"  # first bytes
ZLIB = {bytes([0x78, level]) for level in (0x01, 0x5E, 0x9C, 0xDA)}
ZSTD_BLOCK = 1 << 17  # bytes
N_LISTED = 8  # names in a message
N_INFERRED = 10_000  # rows that tell what a column holds
PATIENCE = 10  # seconds until a scheduler answers
BLOCK = 1 << 20  # bytes that are looked at together
FILE = "file of these rows"  # a column of dask's
BROKEN = "\ufffd"  # what stands for bytes that are no UTF-8


def shown(name: object) -> str:
    """A name in quotes, short and on one line; it cannot reach the terminal's controls."""
    text = str(name)
    return repr(text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…")


def listed(names: Sequence[str]) -> str:
    """The first few names."""
    some = ", ".join(map(shown, names[:N_LISTED]))
    return some if len(names) <= N_LISTED else f"{some} and {len(names) - N_LISTED} more"


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
                frame = self._scan(dict.fromkeys(numbers, pl.Float64())).select(wanted).collect(engine="streaming")
            except pl.exceptions.PolarsError:
                # The slow way: numbers are words at first, so that a wrong one has a place.
                words = self._scan(dict.fromkeys(numbers, pl.String()), n_inferred=None)
                frame = words.select(wanted).collect(engine="streaming")
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as why:
            raise ValueError(self._trouble(why)) from why
        if not frame.height:
            msg = f"{self.name} has no rows."
            raise ValueError(msg)
        known = [_known(frame[name]) for name in wanted if name not in numbers] if self._is_text else []
        return frame.with_columns(*(self._numbers(frame[name]) for name in numbers), *known)

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
            raise ValueError(self._trouble(why)) from why

    def with_interval(self, prediction: str, below: float, above: float) -> pl.LazyFrame:
        """The table as it is, with `lower` and `upper` around the prediction; it is read when it is written."""
        taken = {"lower", "upper"} & set(self.columns)
        if taken:
            msg = f"{self.name} has a column {min(taken)!r} already. Rename it first."
            raise ValueError(msg)
        import polars as pl

        table = self._scan(None)
        has_words = table.collect_schema()[prediction] == pl.String
        number = _as_number(prediction) if has_words else pl.col(prediction).cast(pl.Float64)
        return table.with_columns(lower=number - below, upper=number + above)

    def _scan(self, kinds: dict[str, pl.DataType] | None, n_inferred: int | None = N_INFERRED) -> pl.LazyFrame:
        """All columns, read when asked for; without kinds text files stay words, and JSON has the keys of all lines."""
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
            with_column_names=_without_doubled_quotes,
            glob=False,
        )

    def _numbers(self, column: pl.Series) -> pl.Series:
        """Floats, or a complaint about the first cell that is none."""
        import polars as pl

        held = column.dtype
        if not (held.is_numeric() or held in {pl.Boolean, pl.String, pl.Null}):
            msg = f"{self.name}: column {shown(column.name)} holds {held}, not numbers."
            raise ValueError(msg)
        if held != pl.String:
            known = column.cast(pl.Float64)
            return known.fill_nan(None) if known.is_nan().any() else known  # no copy where there is no need
        found = column.to_frame().select(_as_number(column.name)).to_series()
        unknown = column.str.strip_chars().str.to_lowercase().is_in(MISSING)
        wrong = (found.is_null() & column.is_not_null() & ~unknown).arg_true()
        if len(wrong):
            row = wrong[0]
            what = f"row {row + 1:,} of column {shown(column.name)} holds {shown(column[row])}"
            msg = f"{self.name}: {what}, which is no number."
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
        """Refuse rows of another length than the header's, which would be cut or filled up without a word."""
        import polars as pl

        n = len(self.columns)
        if not self._is_text or _is_regular(self.path, self.kind, n):
            return
        line = pl.col("line")
        other = line.str.count_matches(self.kind, literal=True) != n - 1
        has_quotes, number = (
            _lines(self.path)
            .select(line.str.contains('"', literal=True).any(), pl.col("number").filter(other).min())
            .collect(engine="streaming")
            .row(0)
        )
        if has_quotes:  # a separator within quotes is none
            number, is_quote = _odd_line(_lines(self.path).collect(engine="streaming")["line"], self.kind, n)
            if is_quote:
                what = f"{self.name}: line {number:,} has a quote within a field, or one that is never closed"
                msg = f'{what}. Write a field like 5" pipe as "5"" pipe".'
                raise ValueError(msg)
        if number is not None:
            fields = "1 field" if n == 1 else f"{n} fields"
            msg = f"{self.name}: line {number:,} has not {fields} like the header."
            raise ValueError(msg)

    def _trouble(self, why: BaseException) -> str:
        """What is wrong with a file that polars cannot read, with the line where it is known."""
        import polars as pl

        if self.kind == PARQUET:
            return f"{self.name} is no whole Parquet file: {_first_line(why)}."
        if isinstance(why, OSError):
            return f"{self.name} cannot be read: {why}."
        broken = _lines(self.path).filter(pl.col("line").str.contains(BROKEN, literal=True)).head(1).collect()
        if broken.height:
            return f"{self.name}: line {broken['number'][0]:,} is not UTF-8 text. Save the file as UTF-8."
        if self.kind == JSON_LINES:
            with self.path.open("rb") as file:
                if file.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8:
                    return f"{self.name} begins with a byte order mark. Save it as UTF-8 without one."
            for number, line in _lines(self.path).drop_nulls().collect().iter_rows():
                try:
                    json.loads(line, parse_constant=_not_json)
                except ValueError as wrong:
                    return f"{self.name}: line {number:,} is not JSON: {wrong}."
        return f"{self.name} cannot be read: {_first_line(why)}."


@contextmanager
def cluster(address: str | None) -> Iterator[None]:
    """Dask's scheduler at an address for what happens inside; without one, threads here.

    Raises
    ------
    ValueError
        If nobody answers there.
    """
    if address is None:
        yield
        return
    from distributed import Client

    try:
        client = Client(address, timeout=PATIENCE)
    except (OSError, ValueError) as why:
        msg = f"no dask scheduler answers at {shown(address)}: {_first_line(why)}"
        raise ValueError(msg) from why
    with client:
        yield


def lazy_frame(pattern: str, numbers: Sequence[str], others: Sequence[str] = ()) -> Any:
    """These columns of all files that match, as a dask frame: numbers as floats, others as `Table.read` takes them.

    Whether others are numbers is told by the first rows of each file; a word that comes later is refused.

    Raises
    ------
    ValueError
        If they are neither Parquet nor CSV, lack a column, or have rows of another length than the header.
    ImportError
        If dask is not installed.
    """
    try:
        import dask.dataframe as dd
    except ImportError as missing:
        msg = "--engine dask needs dask; install it with: pip install 'pimeter[dask]'"
        raise ImportError(msg) from missing
    import polars as pl

    wanted = list(dict.fromkeys([*numbers, *others]))
    found = matches(pattern)
    tables = [_table(shown(path), Path(path)) for path in found]
    kinds = {table.kind for table in tables}
    if Path(pattern).suffix.lower() not in {".parquet", ".pq", ".csv"} or JSON_LINES in kinds or len(kinds) > 1:
        msg = f"{shown(pattern)}: dask reads .parquet and .csv files, all with the same character between fields."
        raise ValueError(msg)
    for table in tables:
        table.check(wanted)
    if kinds == {PARQUET}:
        return dd.read_parquet(found)[wanted]
    named = [name for name in wanted if name not in numbers]
    heads = [table._scan(None).select(named).head(N_INFERRED).collect() for table in tables]
    guesses = [table._scan({}).collect_schema() for table in tables]
    # A header alone says nothing of what its columns hold.
    files = [(head, guess) for head, guess in zip(heads, guesses, strict=True) if head.height]
    held = {
        name: {guess[name] if guess[name] != pl.String else _known(head[name]).dtype for head, guess in files}
        for name in named
    }
    # Files may differ: whole numbers, decimals and nothing at all are numbers, all else are words.
    floats = [*numbers, *(name for name in named if all(kind.is_numeric() or kind == pl.Null for kind in held[name]))]
    frame = dd.read_csv(
        found,
        sep=kinds.pop(),
        usecols=wanted,
        converters=dict.fromkeys(floats, str),
        na_values=[""],
        keep_default_na=False,
        dtype={name: str for name in named if name not in floats and held[name] != {pl.Boolean}},
        include_path_column=FILE,
    )
    kept = {name: float if name in floats else frame.dtypes[name] for name in wanted}
    return frame.map_partitions(_with_floats, floats, wanted, meta=kept)


def _with_floats(part: Any, numbers: Sequence[str], wanted: Sequence[str]) -> Any:
    """The wanted columns of a part of a CSV file, with numbers instead of words."""
    import polars as pl

    table = Table(f"a part of {shown(Path(next(iter(part[FILE]), '')).name)}", Path(), "", ())
    floats = {name: table._numbers(pl.Series(name, part[name])).to_numpy() for name in numbers}
    return part.assign(**floats)[wanted]


def matches(pattern: str) -> list[str]:
    """The files that match."""
    found = sorted(glob.glob(pattern))  # noqa: PTH207 - the pattern may be absolute
    if not found:
        msg = f"no file matches {shown(pattern)}."
        raise ValueError(msg)
    return found


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
        yield _table(shown(source), path)
        return
    if source == STDIN and sys.stdin is None:
        msg = "standard input is closed; give a file."
        raise ValueError(msg)
    with tempfile.TemporaryDirectory(prefix="pimeter-") as folder:
        kept = Path(folder) / "input"
        with kept.open("wb") as copy, path.open("rb") if source != STDIN else nullcontext(sys.stdin.buffer) as stream:
            shutil.copyfileobj(stream, copy)
        yield _table("standard input" if source == STDIN else shown(source), kept)


def _table(name: str, path: Path) -> Table:
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
    _check_size(name, path, start)
    table = Table(name, path, "", ())
    try:
        table = Table(name, path, _kind(name, path, start), ())
        scan = table._scan(None)
        names = tuple(scan.collect_schema().names())
        n_rows = scan.select(pl.len()).collect().item() if table.kind == PARQUET else 0
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as why:
        raise ValueError(table._trouble(why)) from why
    if any(BROKEN in column for column in names):
        raise ValueError(table._trouble(ValueError("its header is not UTF-8 text")))
    _check_unpacked(name, 8 * n_rows, path.stat().st_size)
    return Table(name, path, table.kind, names)


def _check_size(name: str, path: Path, start: bytes) -> None:
    """Refuse a line without end and a packed file that is next to nothing, before all of it is in memory."""
    if start == b"PAR1" or KINDS.get(path.suffix) == PARQUET:
        return
    if start == ZIP or start[:2] in ZLIB:
        how = "zip, as files of Excel are" if start == ZIP else "zlib"
        msg = f"{name} is packed by {how}; save it as CSV, or pack it as .gz or .zst."
        raise ValueError(msg)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as held:
        size, endless = len(held), None
        if start == ZSTD:
            size = _zstd_size(held)
        elif start[:2] == GZIP:
            size, endless = _gzip_size(held, _most(size))
        else:
            whole = range(0, size - LONGEST_LINE + 1, LONGEST_LINE)
            endless = next((i for i in whole if held.find(b"\n", i, i + LONGEST_LINE) < 0), None)
    if endless is not None:
        which = "its first line" if endless == 0 else f"a line around byte {endless:,}"
        msg = f"{name}: {which} is longer than {LONGEST_LINE >> 20} MB. Is it a table?"
        raise ValueError(msg)
    _check_unpacked(name, size, path.stat().st_size)


def _check_unpacked(name: str, size: int, n_bytes: int) -> None:
    """Refuse a file of so many bytes that unpacks to this size."""
    most = _most(n_bytes)
    if size > most:
        what = f"{name} unpacks to more than {most >> 20:,} MB, {MOST_TIMES} times its size or more"
        msg = f"{what}. If it is a table, save it as plain CSV."
        raise ValueError(msg)


def _most(n_bytes: int) -> int:
    """Bytes that a packed file of so many may hold."""
    return max(MOST_UNPACKED, MOST_TIMES * n_bytes)


def _gzip_size(packed: mmap.mmap, most: int) -> tuple[int, int | None]:
    """Bytes that a gzip file unpacks to, not counted much beyond `most`, and where a line without end is, if one is."""
    size = 0
    with gzip.open(packed) as text:
        try:
            while size <= most and (block := text.read(LONGEST_LINE)):
                if len(block) == LONGEST_LINE and b"\n" not in block:
                    return size, size
                size += len(block)
        except (EOFError, OSError, zlib.error):
            pass  # what is broken is said later, with its place
    return size, None


def _zstd_size(packed: mmap.mmap) -> int:
    """Bytes that frames of Zstandard (RFC 8878) unpack to at most: each block tells its size, or holds 128 kB."""

    def number(n_bytes: int) -> int:
        return int.from_bytes(packed[place : place + n_bytes], "little")

    total = place = 0
    while place + 8 < len(packed):
        magic = number(4)
        place += 4
        if magic >> 4 == 0x184D2A5:  # a frame to skip
            place += 4 + number(4)
            continue
        descriptor = number(1)
        is_single = descriptor >> 5 & 1
        place += 2 - is_single + (0, 1, 2, 4)[descriptor & 3] + (is_single, 2, 4, 8)[descriptor >> 6]
        is_last = magic != int.from_bytes(ZSTD, "little")  # broken: said later
        while not is_last and place < len(packed):
            header = number(3)
            is_last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
            total += ZSTD_BLOCK if kind == 2 else size
            place += 3 + (1 if kind == 1 else size)
        place += 4 * (descriptor >> 2 & 1)
    return total


def _kind(name: str, path: Path, start: bytes) -> str:
    """By how the file begins where that is unmistakable, by its name, or by its first line."""
    if start == b"PAR1":
        return PARQUET
    is_packed = path.suffix.lower() in {".gz", ".zst"}
    ending = (path.with_suffix("") if is_packed else path).suffix.lower()
    if ending in KINDS:
        return KINDS[ending]
    first = _lines(path).head(1).collect()["line"].fill_null("").item().strip()
    if first == "[" or first.startswith(("[{", "[[")):
        msg = f"{name} is one JSON array; write a line for each row instead, {{...}} and no commas between."
        raise ValueError(msg)
    if first.startswith("{"):
        return JSON_LINES
    return max(SEPARATORS, key=re.sub('"[^"]*"', "", first).count)


def _is_regular(path: Path, separator: str, n: int) -> bool:
    """Whether a text file is seen at first sight to have n fields in each line: it is not packed, without quotes."""
    import numpy as np

    text = np.memmap(path, np.uint8, mode="r")
    if bytes(text[:2]) == GZIP or bytes(text[:4]) == ZSTD:
        return False
    n_fields = 0  # that ended in the line so far
    for start in range(0, len(text), BLOCK):
        block = text[start : start + BLOCK]
        is_end = block == ord("\n")
        ends = np.flatnonzero((block == ord(separator)) | is_end)
        if (block == ord('"')).any() or (is_end[ends] != ((np.arange(len(ends)) + n_fields) % n == n - 1)).any():
            return False
        n_fields = (n_fields + len(ends)) % n
    return n_fields == (n - 1 if text[-1] != ord("\n") else 0)


def _odd_line(lines: Iterable[str | None], separator: str, n: int) -> tuple[int | None, bool]:
    """Number of the first line that has not n fields, if there is one, and whether a quote is why.

    Readers agree on a field between quotes, and on quotes within one that hold no separator and no end of a line.
    """
    between = re.escape(separator)
    plain = f'[^"{between}\n]'
    field = f'(?:"[^"]*+")*+(?:{plain}++(?:"{plain}*+"{plain}*+)*+)?+'
    row = re.compile(f"{field}(?:{between}{field}){{{n - 1}}}")
    for number, text in _rows(lines):
        if text and not row.fullmatch(text):
            rest = re.sub(f"{field}(?:{between}{field})*", "", text, count=1)
            return number + text.count("\n") - rest.count("\n"), rest.startswith('"')
    return None, False


def _rows(lines: Iterable[str | None]) -> Iterator[tuple[int, str]]:
    """Rows, which go on while a quote is open, with the number of their first line."""
    held: list[str] = []
    is_open = False
    for number, line in enumerate(lines, 1):
        held.append(line or "")
        is_open ^= held[-1].count('"') % 2 == 1
        if not is_open:
            yield number - len(held) + 1, "\n".join(held)
            held = []
    if held:
        yield number - len(held) + 1, "\n".join(held)


def _lines(path: Path) -> pl.LazyFrame:
    """Lines of a text file, decompressed, with their numbers; null for empty ones."""
    import polars as pl

    return pl.scan_csv(
        path,
        has_header=False,
        separator="\x01",
        quote_char=None,
        schema={"line": pl.String},
        encoding="utf8-lossy",
        row_index_name="number",
        row_index_offset=1,
        extra_columns="ignore",  # a line may hold the separator
        truncate_ragged_lines=True,
        glob=False,
    )


def _without_doubled_quotes(names: list[str]) -> list[str]:
    """A quote within quotes is written twice; polars leaves it so in the header."""
    return [name.replace('""', '"') for name in names]


def _as_number(name: str) -> pl.Expr:
    """A column as floats; null for what is no number."""
    import polars as pl

    return pl.col(name).cast(pl.String).str.strip_chars().cast(pl.Float64, strict=False).fill_nan(None)


def _known(column: pl.Series) -> pl.Series:
    """Words as floats where they are all numbers or say that there is none; a column of other words as it is."""
    import polars as pl

    if column.dtype != pl.String:
        return column
    found = column.to_frame().select(_as_number(column.name)).to_series()
    is_number = found.is_not_null()
    return found if is_number.any() and (is_number | words(column).is_null()).all() else column


def words(column: pl.Series) -> pl.Series:
    """A column as words, numbers and truth values in their shortest form; null for what is missing.

    Examples
    --------
    >>> import polars as pl
    >>> from pimeter.files import words
    >>> [words(pl.Series(values)).to_list() for values in ([1.0, 0.5], [" yes", "n/a"], [True, None])]
    [['1', '0.5'], ['yes', None], ['true', None]]
    """
    import polars as pl

    if column.dtype.is_nested():
        msg = f"column {shown(column.name)} holds {column.dtype}, neither words nor numbers."
        raise ValueError(msg)
    if column.dtype.is_float():
        return column.fill_nan(None).cast(pl.String).str.replace(r"\.0$", "")
    text = column.cast(pl.String).str.strip_chars()
    return text.set(text.str.to_lowercase().is_in(MISSING), None)


def _not_json(name: str) -> None:
    msg = f"{name} is no number there; write null for what is not known"
    raise ValueError(msg)


def _first_line(why: BaseException) -> str:
    return str(why).partition("\n")[0].rstrip(".")


def _is_same(path: Path, source: str) -> bool:
    """Whether a source, maybe standard input, is this very file."""
    there = Path("/dev/stdin" if source == STDIN else source)
    return there.exists() and path.samefile(there)


@contextmanager
def replaced(path: Path, *sources: str) -> Iterator[Path]:
    """A file to write to, which takes the place of another when all went well and leaves nothing behind otherwise.

    A link stays one, and what is written to a pipe or a device goes there.

    Raises
    ------
    ValueError
        If nothing can be written there or it is one of the sources, which is said before anything else is done; or not
        all of it can be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pimeter.files import replaced
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replaced(Path(folder) / "page.html") as draft:
    ...         _ = draft.write_text("whole or not at all")
    ...     [path.name for path in Path(folder).iterdir()]
    ['page.html']
    """
    place = Path(os.path.realpath(path))
    is_stream = path.exists() and not path.is_file()
    try:
        if path.is_dir():
            raise IsADirectoryError(0, "it is a folder")
        if path.is_file() and any(_is_same(path, source) for source in sources):
            raise FileExistsError(0, "it is read by the same command; write to another file")
        handle, name = tempfile.mkstemp(prefix=".pimeter-", dir=None if is_stream else place.parent)
    except OSError as why:
        msg = f"{shown(path)} cannot be written: {why.strerror}."
        raise ValueError(msg) from why
    draft = Path(name)
    try:
        os.close(handle)
        yield draft
        if is_stream:
            with draft.open("rb") as made, path.open("wb") as stream:
                shutil.copyfileobj(made, stream)
        else:
            mask = os.umask(0)
            os.umask(mask)
            draft.chmod(place.stat().st_mode & 0o7777 if place.exists() else 0o666 & ~mask)  # not as a temporary file
            draft.replace(place)
    except OSError as why:  # such as a disk that is full
        msg = f"{shown(path)} cannot be written: {why.strerror or why}."
        raise ValueError(msg) from why
    finally:
        draft.unlink(missing_ok=True)
