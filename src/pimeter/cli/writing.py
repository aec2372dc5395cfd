"""Results and tables in files, in the form that the name of the file says."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from pimeter.files import FileTable, Reading, opened, replaced, shown

if TYPE_CHECKING:
    import polars as pl

    from pimeter.evaluation.results import Result
    from pimeter.protocols import Array
    from pimeter.regression import IntervalCalibrator, IntervalRegressor

# What a result becomes, by the ending of its file, and how tables are written.
RESULTS = {".html": "a page", ".csv": "a table", ".parquet": "a table", ".json": "everything"}
ARROW = ("feather", "arrow")
TABLES = ("csv", "tsv", "jsonl", "ndjson", "json", "parquet", "pq", *ARROW)
PACKED_ITSELF = ("json", "parquet", "pq", *ARROW)
UNCOMPRESSED: Literal["uncompressed"] = "uncompressed"
PACKED: dict[str, Literal["gzip", "zstd"]] = {".gz": "gzip", ".zst": "zstd"}


@contextmanager
def draft_of(out: Path | None, *sources: str) -> Iterator[Path | None]:
    """A draft of the file, or None where nothing is to be written."""
    with replaced(out, *sources) if out else nullcontext() as draft:
        yield draft


@contextmanager
def tables_and_draft(
    calibration: str, new: str, out: Path, reading: Reading
) -> Iterator[tuple[FileTable, FileTable, Path]]:
    """Calibration rows, new rows, and a draft of the file that new rows are written to with their intervals."""
    if calibration == new == "-":
        msg = "calibration rows and new rows cannot both come from standard input."
        raise ValueError(msg)
    with opened(calibration, reading) as past, opened(new, reading) as rows, replaced(out, calibration, new) as draft:
        yield past, rows, draft


def save_calibration(model: IntervalRegressor | IntervalCalibrator, save: Path | None, *sources: str) -> None:
    """Write what was calibrated, if that is asked for, for `pimeter apply`."""
    with draft_of(save, *sources) as draft:
        if draft is not None:
            draft.write_text(model.to_json(), encoding="utf-8")


def scattered(columns: pl.DataFrame, where: pl.Series, bounds: Array) -> pl.DataFrame:
    """Lower and upper bounds (n, 2) in the n rows of two columns where there are some."""
    at = where.arg_true()
    return columns.with_columns(one.scatter(at, bounds[:, i]) for i, one in enumerate(columns))


class Form(NamedTuple):
    """What the name of a file says of its form."""

    ending: str  # without a dot, such as "csv"
    compression: Literal["uncompressed", "gzip", "zstd"]

    @property
    def is_table(self) -> bool:
        """Whether a table can be written in this form."""
        return self.ending in TABLES and (self.compression == UNCOMPRESSED or self.ending not in PACKED_ITSELF)


def form_of(out: Path) -> Form:
    """What the name of a file says."""
    packed = PACKED.get(out.suffix.lower(), UNCOMPRESSED)
    named = out if packed == UNCOMPRESSED else out.with_suffix("")
    return Form(named.suffix.lower().removeprefix("."), packed)


def write_result(result: Result, draft: Path, out: Path, about: Mapping[str, str]) -> None:
    """A result in the form that the name of the file says."""
    ending = form_of(out).ending
    if ending in TABLES and ending != "json":
        write_table(result.to_frame("polars").lazy().fill_nan(None), draft, out)
    else:
        draft.write_text(result.to_json() if ending == "json" else result.to_html(about=about), encoding="utf-8")


def write_table(frame: pl.LazyFrame, draft: Path, out: Path, *, like: FileTable | None = None) -> None:
    """Write a lazy table in the form that the name of the file says; text has separators and decimals of its source."""
    form = form_of(out)
    ending, compression = form.ending, form.compression
    from polars.exceptions import PanicException, PolarsError

    try:
        if ending == "json":
            frame.collect(engine="streaming").write_json(draft)
        elif ending in ARROW:
            frame.sink_ipc(draft)
        elif ending in PACKED_ITSELF:
            frame.sink_parquet(draft)
        elif ending in {"jsonl", "ndjson"}:
            frame.sink_ndjson(draft, compression=compression, check_extension=False)
        else:
            separator = "\t" if ending == "tsv" else like.separator if like else ","
            frame.sink_csv(
                draft,
                separator=separator,
                compression=compression,
                check_extension=False,
                decimal_comma=bool(like and like.has_decimal_commas),
            )
    except (PolarsError, PanicException) as why:  # a full disk, or columns that are broken and were not read before
        msg = f"--out {shown(out)} cannot be written: {why}."
        raise ValueError(msg) from why


def about_page(file: str, columns: Mapping[str, str | None]) -> dict[str, str]:
    """What a page says about its making: file, columns and command."""
    source = {"file": "standard input" if file == "-" else file}
    return {**source, **{key: text for key, text in columns.items() if text}, "command": command_line()}


def noted(notes: list[str]) -> dict[str, str]:
    """Notes for the page, if there are any."""
    return {"notes": "; ".join(notes)} if notes else {}


def command_line() -> str:
    """The command as it was typed, for the page that it writes."""
    return shlex.join(["pimeter", *sys.argv[1:]])
