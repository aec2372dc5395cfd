"""The real datasets of the paper, from the folder that PIMETER_DATA names."""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from experiments.download import benchmark_splits
from experiments.protocol import RefusedError

Array: TypeAlias = NDArray[np.float64]


class Split(NamedTuple):
    """Rows to train on, rows whose errors the neuron learns from, rows to test on."""

    train: NDArray[np.intp]
    validation: NDArray[np.intp]
    test: NDArray[np.intp]


def folder() -> Path:
    """Where the data is."""
    named = os.environ.get("PIMETER_DATA")
    if not named or not Path(named).is_dir():
        msg = f"This experiment needs real data: PIMETER_DATA must name its folder; it is {named!r}."
        raise RefusedError(msg)
    return Path(named)


def regression(name: str) -> tuple[Array, Array]:
    """Features and target. The last column is the target, as in the paper, which for naval is not the official one."""
    _, table = _table(name)
    return table[:, :-1], table[:, -1]


def classification(name: str) -> tuple[Array, Array]:
    """Features, NaN where they are missing, and labels 0 and 1 as the paper codes them."""
    table = np.genfromtxt(_found("classification", f"{name}.csv.gz"), delimiter=",", skip_header=1)
    return table[:, :-1], table[:, -1]


def adult() -> tuple[Array, Array, NDArray[np.bool_]]:
    """Features of all 48,842 rows of Adult, a column for each word of a category; labels; which rows are its test set.

    A missing category is one more word.
    """
    parts = []
    for name in ("adult-train", "adult-test"):
        with gzip.open(_found("classification", f"{name}.csv.gz"), "rt", newline="") as file:
            parts.append(list(csv.DictReader(file)))
    rows = [row for part in parts for row in part]
    columns = []
    for name in (name for name in rows[0] if name != "target"):
        words = np.array([row[name] for row in rows])
        if all(word.replace(".", "", 1).isdecimal() for word in words):
            columns.append(words.astype(np.float64)[:, None])
        else:
            columns.append((words[:, None] == np.unique(words)).astype(np.float64))
    y = np.array([float(row["target"]) for row in rows])
    return np.hstack(columns), y, np.arange(len(y)) >= len(parts[0])


def classification_files(names: Iterable[str]) -> list[str]:
    """What these datasets are read from."""
    parts = (["adult-train", "adult-test"] if name == "adult" else [name] for name in names)
    return [f"classification/{part}.csv.gz" for own in parts for part in own]


class Official(NamedTuple):
    """Features and target of the public benchmark, and its splits: row numbers, (splits, rows)."""

    X: Array
    y: Array
    train: NDArray[np.intp]
    test: NDArray[np.intp]


def official(name: str) -> Official:
    """The benchmark of Hernandez-Lobato and Adams: features f0, f1 and so on, the column named target.

    Splits that are not there are made as the benchmark made its own. "naval-turbine" is Naval as the paper solved it:
    the last column is the target, and the official one a seventeenth feature.
    """
    name, is_last = name.removesuffix(TURBINE), name.endswith(TURBINE)
    columns, table = _table(name)
    held = folder() / "regression" / "splits" / f"{name}.npz"
    splits = np.load(held) if held.exists() else benchmark_splits(name, len(table))
    train, test = (splits[part].astype(np.intp) for part in ("train", "test"))
    if is_last:
        return Official(table[:, :-1], table[:, -1], train, test)
    is_feature = np.array([column.startswith("f") for column in columns])
    return Official(table[:, is_feature], table[:, columns.index("target")], train, test)


TURBINE = "-turbine"


def official_files(names: Iterable[str]) -> list[str]:
    """What these datasets are read from."""
    own = dict.fromkeys(name.removesuffix(TURBINE) for name in names)
    return [file for name in own for file in (f"regression/{name}.csv.gz", f"regression/splits/{name}.npz")]


def _table(name: str) -> tuple[list[str], Array]:
    """Names of the columns, and the numbers."""
    path = _found("regression", f"{name}.csv.gz")
    with gzip.open(path, "rt") as file:
        columns = next(file).strip().split(",")
    return columns, np.loadtxt(path, delimiter=",", skiprows=1)


def _found(*parts: str) -> Path:
    """A file of the data."""
    path = folder().joinpath(*parts)
    if not path.exists():
        msg = f"{path.name} is not in the folder {'/'.join(parts[:-1])} of PIMETER_DATA."
        raise RefusedError(msg)
    return path


def paper_split(n: int, k: int) -> Split:
    """The paper's k-th split, counted from 0: a tenth of the rows to test, 20 % of the others to validate."""
    rest, test = train_test_split(np.arange(n), test_size=0.1, random_state=k + 1)
    train, validation = train_test_split(rest, test_size=0.2, random_state=k + 1)
    return Split(train, validation, test)


def general_electric() -> Array:
    """Daily open, high, low and close of General Electric, (days, 4), 1962 to 2017."""
    with gzip.open(_found("time_series", "ge.csv.gz"), "rt", newline="") as file:
        return np.array(
            [[float(row[name]) for name in ("Open", "High", "Low", "Close")] for row in csv.DictReader(file)]
        )
