"""Table 2's public splits, and how intervals on them are judged.

All numbers are in units of the standard deviation of the training targets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pimeter import coverage_score, interval_score, mean_width_score

if TYPE_CHECKING:
    from experiments.data import Array, Official
    from experiments.protocol import Row, Value

LEVEL = 0.95
N_SPLITS = {  # of the public ones
    "yacht": 20,
    "boston": 20,
    "energy": 20,
    "concrete": 20,
    "wine-red": 20,
    "kin8nm": 5,
    "power-plant": 5,
    "naval": 5,
    "protein": 5,
    "song-year": 1,
}
EXPLAINED_ERRORS = 1.645  # standard errors below the level that chance explains, one time in twenty


class Parts(NamedTuple):
    """Training rows and test rows of a split, targets in units of the training targets' standard deviation."""

    X: Array
    y: Array
    new: Array
    y_new: Array
    n_first: int  # test rows that no earlier split tested


def in_units(data: Official, split: int, most_rows: int | None = None) -> Parts:
    """One split of a dataset, of the training rows the first ones at most."""
    X, y, train, test = data
    rows, new = train[split, :most_rows], test[split]
    target = (y - y[rows].mean()) / y[rows].std()
    return Parts(X[rows], target[rows], X[new], target[new], len(np.setdiff1d(new, test[:split])))


def judged(parts: Parts, method: str, bounds: Array) -> dict[str, Value]:
    """How good intervals are."""
    return {
        "method": method,
        "n_train": len(parts.y),
        "n_test": len(parts.y_new),
        "n_first": parts.n_first,
        "picp": float(coverage_score(parts.y_new, bounds)),
        "mpiw": float(mean_width_score(bounds)),
        "score": float(interval_score(parts.y_new, bounds, confidence_level=LEVEL)),
    }


def tables(rows: Sequence[Row]) -> dict[str, Sequence[Row]]:
    """One line per dataset and method."""
    return {
        "Mean over splits, with the standard deviation; the score is the interval score": [
            _line([row for row in rows if (row["dataset"], row["method"]) == cell]) for cell in _cells(rows)
        ]
    }


def _cells(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Datasets in the paper's order, and their methods."""
    found = dict.fromkeys((str(row["dataset"]), str(row["method"])) for row in rows)
    order = [*N_SPLITS, *(name for name, _ in found)]
    return sorted(found, key=lambda cell: order.index(cell[0]))


def _line(held: Sequence[Row]) -> Row:
    values = {key: np.array([float(row[key]) for row in held]) for key in ("picp", "mpiw", "score", "n_first")}
    n = int(values["n_first"].sum())
    return {
        "dataset": held[0]["dataset"],
        "method": held[0]["method"],
        "splits": len(held),
        "picp": float(values["picp"].mean()),
        "picp_sd": float(values["picp"].std()),
        "least": LEVEL - EXPLAINED_ERRORS * float(np.sqrt(LEVEL * (1.0 - LEVEL) / n)),
        "mpiw": float(values["mpiw"].mean()),
        "mpiw_sd": float(values["mpiw"].std()),
        "score": float(values["score"].mean()),
    }
