"""The regression datasets of Table 2 from their public homes, for those who do not have them.

What comes must be what the results were made with: the number of rows and, for each column, mean, standard deviation
and correlation with the row number, kept in `published/datasets.csv`. They tell wrong, missing and reordered rows, and
do not mind that some homes have more decimals than others. Nothing is kept of a dataset that does not pass.
"""

from __future__ import annotations

import gzip
import io
import os
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.request import urlopen

import numpy as np

from experiments.protocol import RefusedError, parsed

if TYPE_CHECKING:
    from experiments.data import Array

UCI = "https://archive.ics.uci.edu/static/public"
CHECKS = Path(__file__).parent / "published" / "datasets.csv"
CLOSE = 1e-3  # standard deviations by which a mean may be off, and parts of a standard deviation or correlation
SECONDS = 60


@dataclass(frozen=True)
class Source:
    """Where a table is: the file of a zip archive if there is one, its columns, the target's, and those left out."""

    url: str
    n_columns: int
    member: str = ""
    target: int = -1
    left_out: tuple[int, ...] = ()
    other_target: bool = False  # the last column is a second target


SOURCES = {
    "yacht": Source(f"{UCI}/243/yacht+hydrodynamics.zip", 7, "yacht_hydrodynamics.data"),
    "boston": Source("http://lib.stat.cmu.edu/datasets/boston", 14),
    "energy": Source(f"{UCI}/242/data.csv", 10, target=8, left_out=(9,)),
    "concrete": Source(f"{UCI}/165/data.csv", 9),
    "wine-red": Source(f"{UCI}/186/wine+quality.zip", 12, "winequality-red.csv"),
    "kin8nm": Source("https://www.openml.org/data/download/3626/dataset_2175_kin8nm.arff", 9),
    "power-plant": Source(f"{UCI}/294/data.csv", 5),
    "naval": Source(
        f"{UCI}/316/condition+based+maintenance+of+naval+propulsion+plants.zip",
        18,
        "data.txt",
        target=16,
        other_target=True,
    ),
    "protein": Source(
        f"{UCI}/265/physicochemical+properties+of+protein+tertiary+structure.zip", 10, "CASP.csv", target=0
    ),
    "song-year": Source(f"{UCI}/203/yearpredictionmsd.zip", 91, "YearPredictionMSD.txt", target=0),
}
N_SPLITS = {"protein": 5}  # of the benchmark; 20 of the others
N_ROWS = {"song-year": 515_345}
OWN_SPLIT = {"song-year": 463_715}  # rows that train, the others test


def download(names: Iterable[str], folder: Path, sources: Mapping[str, Source] = SOURCES) -> None:
    """Write tables and splits as the experiments want them; each file appears whole or not at all."""
    for name in names:
        if name not in sources:
            msg = f"There is no dataset {name!r}; there are {', '.join(sources)}."
            raise RefusedError(msg)
        table = _arranged(numbers(_fetched(name, sources[name]), sources[name].n_columns), sources[name])
        check(name, table)
        header = [f"f{i}" for i in range(table.shape[1] - 1 - sources[name].other_target)]
        header += ["target", *(["target_turbine"] if sources[name].other_target else [])]
        text = io.StringIO()
        np.savetxt(text, table, "%.10g", ",", header=",".join(header), comments="")
        splits = io.BytesIO()
        np.savez_compressed(splits, allow_pickle=False, **benchmark_splits(name, len(table)))
        _write(folder / "regression" / "splits" / f"{name}.npz", splits.getvalue())
        _write(folder / "regression" / f"{name}.csv.gz", gzip.compress(text.getvalue().encode(), mtime=0))


def numbers(text: str, n_columns: int) -> Array:
    """All lines that hold nothing but numbers, as rows of so many; a row may go on in the next line."""
    found: list[float] = []
    for line in text.splitlines():
        try:
            found += [float(word) for word in line.replace(",", " ").replace(";", " ").split()]
        except ValueError:
            continue  # a title, a comment, a name
    if not found or len(found) % n_columns:
        msg = f"{len(found):,} numbers are no table of {n_columns} columns."
        raise RefusedError(msg)
    return np.array(found).reshape(-1, n_columns)


def benchmark_splits(name: str, n: int) -> dict[str, np.ndarray]:
    """The benchmark's splits: random orders of the rows, cut at nine tenths; Song Year has one of its own."""
    small = np.uint16 if n < 2**16 else np.uint32
    if name in OWN_SPLIT:
        rows = np.arange(n, dtype=small)[None]
        cut = OWN_SPLIT[name]
    else:
        draw = np.random.RandomState(1)
        rows = np.array([draw.choice(n, n, replace=False) for _ in range(N_SPLITS.get(name, 20))], small)
        cut = round(0.9 * n)
    return {"train": rows[:, :cut], "test": rows[:, cut:]}


def described(table: Array) -> Array:
    """Mean, standard deviation and correlation with the row number of each column, (columns, 3)."""
    place = np.linspace(-1.0, 1.0, len(table))
    place /= place.std()
    spread = np.where(np.ptp(table, axis=0) > 0.0, table.std(axis=0), 0.0)
    drift = place @ (table - table.mean(axis=0)) / len(table) / np.where(spread > 0.0, spread, 1.0)
    return np.column_stack([table.mean(axis=0), spread, drift])


def check(name: str, table: Array) -> None:
    """Refuse a table that is not the known one."""
    known = [row for row in parsed(CHECKS.read_text()) if row["dataset"] == name]
    if not known:  # Song Year: no more than its size is known here
        if len(table) != N_ROWS.get(name, len(table)):
            msg = f"{name} has {N_ROWS[name]} rows; what came has {len(table)}."
            raise RefusedError(msg)
        return
    if (len(table), table.shape[1]) != (known[0]["rows"], len(known)):
        msg = f"{name} has {known[0]['rows']} rows and {len(known)} columns; what came has {table.shape}."
        raise RefusedError(msg)
    expected = np.array([[float(row[key]) for key in ("mean", "sd", "drift")] for row in known])
    unit = np.where(expected[:, 1] > 0.0, expected[:, 1], 1.0)
    off = np.abs(described(table) - expected) / np.column_stack([unit, unit, np.ones(len(unit))])
    if off.max() > CLOSE:
        column, what = np.unravel_index(off.argmax(), off.shape)
        which = ("mean", "standard deviation", "correlation with the row number")[what]
        msg = f"{name}: the {which} of column {column} is not the known one; the file has changed, or is another one."
        raise RefusedError(msg)


def _fetched(name: str, source: Source) -> str:
    """The text of a table."""
    try:
        with urlopen(source.url, timeout=SECONDS) as answer:
            content = answer.read()
        if not source.member:
            return str(content.decode("utf-8", "replace"))
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            inside = [path for path in archive.namelist() if path.rpartition("/")[2] == source.member]
            if not inside:
                msg = f"{name}: {source.url} has no file {source.member}."
                raise RefusedError(msg)
            return archive.read(inside[0]).decode("utf-8", "replace")
    except (URLError, OSError, zipfile.BadZipFile) as why:
        msg = f"{name} could not be downloaded from {source.url}: {why}."
        raise RefusedError(msg) from why


def _arranged(table: Array, source: Source) -> Array:
    """Features in their order, then the target, then another target if there is one."""
    columns = [i for i in range(source.n_columns) if i not in source.left_out]
    target = columns[source.target]
    others = [i for i in columns if i != target]
    order = [*others[:-1], target, others[-1]] if source.other_target else [*others, target]
    return np.ascontiguousarray(table[:, order])


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(draft).replace(path)
    finally:
        Path(draft).unlink(missing_ok=True)
