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

import numpy as np

from experiments import peers
from experiments.blackbox import Blend
from experiments.data import Array, official, official_files
from experiments.protocol import Experiment, RefusedError, Row, Unit
from experiments.uci_splits import LEVEL, N_SPLITS, in_units, judged, tables
from pimeter import IntervalRegressor, ScaledWidth

OURS = "pimeter"


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


def headline(rows: Sequence[Row]) -> str:
    """What the table shows, in one sentence."""
    (lines,) = tables(rows).values()
    enough = [float(line["picp"]) >= float(line["least"]) for line in lines]
    return (
        f"{sum(enough)} of {len(enough)} means meet the level or miss it by no more than chance explains; on average "
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
