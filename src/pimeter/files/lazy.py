"""Tables in many files as dask frames, and the scheduler that reads them."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pimeter.extras import how_to_install
from pimeter.files.columns import are_plain, are_true_or_false
from pimeter.files.naming import first_line, shown
from pimeter.files.opening import SEPARATORS, table_in
from pimeter.files.reading import Reading
from pimeter.files.table import PARQUET, ROWS_TO_INFER, FileTable

if TYPE_CHECKING:
    import dask.dataframe as dd
    import polars as pl

SCHEDULER_TIMEOUT = 10  # seconds until a scheduler answers
FILE = "file of these rows"  # a column of dask's
PLAINLY = Reading(decimal=".", thousands="")  # a part of a column tells too little for a guess


@contextmanager
def cluster(address: str | None) -> Iterator[None]:
    """Dask's scheduler at an address for what happens inside; without one, threads here."""
    if address is None:
        yield
        return
    from distributed import Client

    try:
        client = Client(address, timeout=SCHEDULER_TIMEOUT)
    except (OSError, ValueError) as why:
        msg = f"no dask scheduler answers at {shown(address)}: {first_line(why)}"
        raise ValueError(msg) from why
    with client:
        yield


def lazy_frame(pattern: str, numbers: Sequence[str], others: Sequence[str] = ()) -> dd.DataFrame:
    """These columns of all files that match, as a dask frame: numbers as floats, others as `FileTable.read` takes them.

    Whether others are numbers is told by the first rows of each file; a string that comes later is refused.
    """
    dd = _dask_dataframe()
    wanted = list(dict.fromkeys([*numbers, *others]))
    tables = _checked_tables(pattern, wanted)
    paths = [str(table.path) for table in tables]
    if tables[0].kind == PARQUET:
        return dd.read_parquet(paths)[wanted]
    heads = [table.scan(None).head(ROWS_TO_INFER).collect() for table in tables]
    # Files may differ: integers, decimals and nothing at all are numbers, all else but truth values are strings.
    floats = [*dict.fromkeys([*numbers, *_that_are(are_plain, wanted, heads)])]
    strings = [name for name in wanted if name not in {*floats, *_that_are(are_true_or_false, wanted, heads)}]
    frame = dd.read_csv(
        paths,
        sep=tables[0].kind,
        usecols=wanted,
        converters=dict.fromkeys(floats, str),
        na_values=[""],
        keep_default_na=False,
        dtype=dict.fromkeys(strings, str),
        include_path_column=FILE,
    )
    kept = {name: float if name in floats else frame.dtypes[name] for name in wanted}
    return frame.map_partitions(_with_floats, floats, wanted, meta=kept)


def _that_are(kind: Callable[[pl.Series], bool], names: Sequence[str], heads: Sequence[pl.DataFrame]) -> list[str]:
    """Names of the columns that are of a kind in each file."""
    return [name for name in names if all(kind(head[name]) for head in heads)]


def _dask_dataframe() -> ModuleType:
    try:
        import dask.dataframe as dd
    except ImportError as missing:
        msg = f"--engine dask needs dask: {how_to_install('dask')}."
        raise ImportError(msg) from missing
    module: ModuleType = dd
    return module


def _checked_tables(pattern: str, wanted: Sequence[str]) -> list[FileTable]:
    """The tables that match, all of one kind that dask reads, with these columns."""
    tables = [table_in(shown(path), Path(path), Reading()) for path in matches(pattern)]
    kinds = {table.kind for table in tables}
    is_known = Path(pattern).suffix.lower() in {".parquet", ".pq", ".csv"} and kinds <= {PARQUET, *SEPARATORS}
    if not is_known or len(kinds) > 1 or not all(table.has_header for table in tables):
        what = f"{shown(pattern)}: dask reads .parquet and .csv files with a header"
        msg = f"{what}, all with the same character between fields."
        raise ValueError(msg)
    for table in tables:
        table.check(wanted)
    return tables


def _with_floats(part: Any, numbers: Sequence[str], wanted: Sequence[str]) -> Any:
    """The wanted columns of a part of a CSV file, with numbers instead of strings."""
    import polars as pl

    table = FileTable(f"a part of {shown(Path(next(iter(part[FILE]), '')).name)}", Path(), "", (), PLAINLY)
    floats = {name: table.numbers(pl.Series(name, part[name])).to_numpy() for name in numbers}
    return part.assign(**floats)[wanted]


def matches(pattern: str) -> list[str]:
    """The files that match."""
    found = sorted(glob.glob(pattern))  # noqa: PTH207 - the pattern may be absolute
    if not found:
        msg = f"no file matches {shown(pattern)}."
        raise ValueError(msg)
    return found
