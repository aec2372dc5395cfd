"""Lines of a text file: whether each has as many fields as the header, and which one does not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pimeter.files.packing import GZIP, ZSTD

if TYPE_CHECKING:
    import polars as pl

BYTES_AT_ONCE = 1 << 20


class OddLine(NamedTuple):
    """A line that does not have the fields of the header."""

    number: int
    n_fields: int
    is_quote: bool  # whether a quote is why


def is_regular(path: Path, separator: str, n: int) -> bool:
    """Whether a text file is seen at first sight to have n fields in each line: it is not packed, without quotes."""
    import numpy as np

    text = np.memmap(path, np.uint8, mode="r")
    if bytes(text[:2]) == GZIP or bytes(text[:4]) == ZSTD:
        return False
    n_fields = 0  # that ended in the line so far
    for start in range(0, len(text), BYTES_AT_ONCE):
        block = text[start : start + BYTES_AT_ONCE]
        is_break = block == ord("\n")
        stops = np.flatnonzero((block == ord(separator)) | is_break)
        if (block == ord('"')).any() or (is_break[stops] != ((np.arange(len(stops)) + n_fields) % n == n - 1)).any():
            return False
        n_fields = (n_fields + len(stops)) % n
    return n_fields == (n - 1 if text[-1] != ord("\n") else 0)


def odd_line(lines: Iterable[str | None], separator: str, n: int) -> OddLine | None:
    """The first line that does not have n fields, if there is one.

    Readers agree on a field between quotes, and on quotes within one that hold no separator and no line break.
    """
    between = re.escape(separator)
    plain = f'[^"{between}\n]'
    field = f'(?:"[^"]*+")*+(?:{plain}++(?:"{plain}*+"{plain}*+)*+)?+'
    row = re.compile(f"{field}(?:{between}{field}){{{n - 1}}}")
    for number, text in _rows(lines):
        if text and not row.fullmatch(text):
            rest = re.sub(f"{field}(?:{between}{field})*", "", text, count=1)
            n_fields = re.sub('"[^"]*"', "", text).count(separator) + 1
            return OddLine(number + text.count("\n") - rest.count("\n"), n_fields, rest.startswith('"'))
    return None


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


def lines(path: Path) -> pl.LazyFrame:
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


def numbered(names: list[str]) -> list[str]:
    """Names of columns that have none."""
    return [f"column_{i}" for i in range(1, len(names) + 1)]


def without_doubled_quotes(names: list[str]) -> list[str]:
    """A quote within quotes is written twice; polars leaves it so in the header."""
    return [name.replace('""', '"') for name in names]
