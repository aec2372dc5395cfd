"""The real data of the experiments, in the folder that PIMETER_DATA names."""

from __future__ import annotations

import csv
import gzip
import os
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from experiments.protocol import RefusedError

Array: TypeAlias = NDArray[np.float64]


def general_electric() -> Array:
    """Daily open, high, low and close of General Electric, (days, 4), 1962 to 2017."""
    folder = os.environ.get("PIMETER_DATA")
    path = Path(folder or "") / "time_series" / "ge.csv.gz"
    if not folder or not path.exists():
        msg = f"This experiment reads real data: set PIMETER_DATA to a folder with {path.parent.name}/{path.name}."
        raise RefusedError(msg)
    with gzip.open(path, "rt", newline="") as file:
        return np.array(
            [[float(row[name]) for name in ("Open", "High", "Low", "Close")] for row in csv.DictReader(file)]
        )
