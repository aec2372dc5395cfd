"""The real datasets of the paper, from the folder that PIMETER_DATA names."""

from __future__ import annotations

import csv
import gzip
import os
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

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
    path = folder() / "regression" / f"{name}.csv.gz"
    if not path.exists():
        msg = f"{path.name} is not in the folder regression of PIMETER_DATA."
        raise RefusedError(msg)
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    return table[:, :-1], table[:, -1]


def paper_split(n: int, k: int) -> Split:
    """The paper's k-th split, counted from 0: a tenth of the rows to test, a fifth of the others to validate."""
    rest, test = train_test_split(np.arange(n), test_size=0.1, random_state=k + 1)
    train, validation = train_test_split(rest, test_size=0.2, random_state=k + 1)
    return Split(train, validation, test)


def general_electric() -> Array:
    """Daily open, high, low and close of General Electric, (days, 4), 1962 to 2017."""
    path = folder() / "time_series" / "ge.csv.gz"
    if not path.exists():
        msg = f"{path.name} is not in the folder time_series of PIMETER_DATA."
        raise RefusedError(msg)
    with gzip.open(path, "rt", newline="") as file:
        return np.array(
            [[float(row[name]) for name in ("Open", "High", "Low", "Close")] for row in csv.DictReader(file)]
        )
