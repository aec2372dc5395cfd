"""Table 2's intervals on the public splits: *pimeter*, by a recipe that was fixed beforehand, and its *peers*.

The recipe is the same for all datasets: the blend of `blackbox.py` in an `IntervalRegressor` with
``width=ScaledWidth("neighbours")``, all other settings at their defaults. Below 3,000 training rows every row trains
and calibrates (``cv=10``); from there on there are enough to hold 20 % out. There is no safety margin. It is the
second one. The first, with ``width="scaled"`` and ``cv=5``, was chosen on training parts alone; its results on test
parts were known when the second was chosen, by interval scores on the training part of split 0 of eight datasets.

All numbers are in units of the standard deviation of the training targets. A unit of work is one split of one dataset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

from experiments import peers
from experiments.blackbox import Blend
from experiments.data import Array, Official, official, official_files
from experiments.protocol import Experiment, RefusedError, Row, Unit, Value
from pimeter import IntervalRegressor, ScaledWidth, coverage_score, interval_score, mean_width_score

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
OURS = "pimeter"
EXPLAINED_ERRORS = 1.645  # standard errors below the level that chance explains, one time in twenty


@dataclass(frozen=True)
class Settings:
    """Which datasets, and the recipe."""

    seed: int = 0
    datasets: tuple[str, ...] = tuple(N_SPLITS)[:-1]
    most_splits: int = 20
    most_rows: int = 100_000  # of the training part
    scale: str = "neighbours"
    cv: int = 10
    cv_below: int = 3_000


def units(settings: Settings) -> list[Unit]:
    """Dataset and split: the first split of all datasets, then the second one, and so on."""
    return [
        (name, split)
        for split in range(settings.most_splits)
        for name in settings.datasets
        if split < N_SPLITS.get(name, 1)
    ]


def measure_ours(settings: Settings, unit: Unit, _rng: np.random.Generator) -> list[Row]:
    """The recipe on one split."""

    def intervals(X: Array, y: Array, new: Array, level: float, seed: int) -> Array:
        model = IntervalRegressor(
            Blend(seed),
            confidence_level=level,
            width=ScaledWidth(settings.scale),
            cv=settings.cv if len(y) < settings.cv_below else None,
            random_state=seed,
        )
        return np.asarray(model.fit(X, y).predict_interval(new))

    return _measured(settings, unit, {OURS: intervals})


def measure_peers(settings: Settings, unit: Unit, _rng: np.random.Generator) -> list[Row]:
    """Other libraries on one split."""
    missing = [package for package in ("mapie", "crepes") if find_spec(package) is None]
    if missing:
        msg = f"The peers need {' and '.join(missing)}: pip install 'pimeter[experiments]'."
        raise RefusedError(msg)
    return _measured(settings, unit, peers.METHODS)


def _measured(settings: Settings, unit: Unit, methods: Mapping[str, peers.Method]) -> list[Row]:
    """One row for each method."""
    name, split = str(unit[0]), int(unit[1])
    parts = in_units(official(name), split, settings.most_rows)
    return [
        {
            "dataset": name,
            "split": split,
            **judged(parts, method, intervals(parts.X, parts.y, parts.new, LEVEL, split)),
        }
        for method, intervals in methods.items()
    ]


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


def headline(rows: Sequence[Row]) -> str:
    """What the table shows, in one sentence."""
    (lines,) = tables(rows).values()
    enough = [float(line["picp"]) >= float(line["least"]) for line in lines]
    return (
        f"{sum(enough)} of {len(enough)} means reach the level or miss it by no more than chance explains; on average "
        f"{np.mean([float(line['picp']) for line in lines]):.3f} of the test rows are covered."
    )


EXPERIMENT = Experiment(
    name="table2",
    columns="pimeter",
    title="intervals on public datasets by one recipe (Table 2, pimeter)",
    settings=Settings(),
    quick=Settings(datasets=("yacht",), most_splits=1, most_rows=220, cv=3),
    units=units,
    measure=measure_ours,
    tables=tables,
    headline=headline,
    finding=headline,
    reads=lambda settings: official_files(settings.datasets),
    by_split=True,
    packages=("pimeter", "numpy", "scipy", "scikit-learn", "lightgbm"),
)
PEERS = replace(
    EXPERIMENT,
    columns="peers",
    title="MAPIE's and crepes' intervals around the same black box (Table 2, peers)",
    measure=measure_peers,
    packages=("numpy", "scipy", "scikit-learn", "lightgbm", "mapie", "crepes"),
)
SONG_YEAR = replace(
    EXPERIMENT,
    columns="song-year",
    title="intervals for the years of songs, 515,345 rows, by the same recipe (Table 2, Song Year)",
    settings=Settings(datasets=("song-year",)),
    quick=Settings(datasets=("song-year-excerpt",), most_rows=100, cv_below=0),
    only_if_named=True,
)
