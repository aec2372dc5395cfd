"""Table 2 with the paper's own network in all rows, so that model and width are not confounded.

One hidden layer with the settings that the search found (protocol 1), 80 % of the training part to train and to stop
on, 20 % for the margins: the paper's neuron as printed, and pimeter's constant and neighbours' widths around the very
same network and rows. "naval-turbine" is Naval as the paper solved it: the last column of the file is the target, the
official one a seventeenth feature; it takes Naval's settings. `seen` is the proportion of the test rows that the search
of settings had among its rows: it used the training part of split 0, of which other splits test nine tenths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import train_test_split

from experiments.data import Array, official, official_files
from experiments.networks import squared_error, train_layer
from experiments.printed import trained
from experiments.protocol import Experiment, Row, Unit
from experiments.uci import LEVEL, N_SPLITS, in_units, judged, tables
from experiments.uci_networks import Settings as Networks
from experiments.uci_networks import scaled, tuned
from pimeter import IntervalRegressor, ScaledWidth

PRINTED, CONSTANT, NEIGHBOURS = "the neuron as printed", "pimeter, constant", "pimeter, neighbours"


@dataclass(frozen=True)
class Settings:
    """Which datasets, and how many of their splits."""

    seed: int = 0
    datasets: tuple[str, ...] = (*tuple(N_SPLITS)[:-1], "naval-turbine")
    most_splits: int = 20
    is_tuned: bool = True
    max_epochs: int = 2_000


def units(settings: Settings) -> list[Unit]:
    """Dataset and split, split by split; Protein has five."""
    return [
        (name, split)
        for split in range(settings.most_splits)
        for name in settings.datasets
        if split < (5 if name == "protein" else settings.most_splits)
    ]


def measure(settings: Settings, unit: Unit, rng: np.random.Generator) -> list[Row]:
    """A row for each width."""
    name, split = str(unit[0]), int(unit[1])
    whole = official(name)
    parts = scaled(in_units(whole, split))
    rows, calibration = train_test_split(np.arange(len(parts.y)), test_size=0.2, random_state=split)
    rows, stop = train_test_split(rows, test_size=0.15, random_state=split)
    network = Networks(is_tuned=settings.is_tuned, max_epochs=settings.max_epochs)
    how = tuned(network, name.removesuffix("-turbine"), 1, len(rows))
    known, held = ((parts.X[part], parts.y[part]) for part in (rows, stop))
    layer = train_layer(known, held, squared_error, how, rng)

    def predict(new: Array) -> Array:
        return layer(new)[:, 0]

    X, y, centre = parts.X[calibration], parts.y[calibration], predict(parts.new)
    weights, arrived, _ = trained(np.abs(y - predict(X))[:, None], LEVEL)
    margin = np.nan_to_num(weights[0])  # a neuron that has not moved covers nothing
    bounds = {PRINTED: np.column_stack([centre - margin, centre + margin])}
    for label, width in ((CONSTANT, "constant"), (NEIGHBOURS, ScaledWidth("neighbours"))):
        model = IntervalRegressor(predict, confidence_level=LEVEL, width=width, random_state=split)
        bounds[label] = np.asarray(model.fit(X, y).predict_interval(parts.new))
    seen = float(np.isin(whole.test[split], whole.train[0]).mean())
    return [
        {
            "dataset": name,
            "split": split,
            **judged(parts, label, own),
            "seen": seen,
            "arrived": int(arrived[0]) if label == PRINTED else 1,
        }
        for label, own in bounds.items()
    ]


def headline(rows: Sequence[Row]) -> str:
    """Coverage and interval score of the widths around one network, in one sentence."""
    names = list(dict.fromkeys(str(row["dataset"]) for row in rows))

    def mean(method: str, key: str, name: str) -> float:
        held = [row for row in rows if (row["method"], row["dataset"]) == (method, name)]
        return float(np.mean([float(row[key]) for row in held]))

    covered = {
        label: np.mean([mean(label, "picp", name) for name in names]) for label in (PRINTED, CONSTANT, NEIGHBOURS)
    }
    ratios = [mean(NEIGHBOURS, "score", name) / mean(CONSTANT, "score", name) for name in names]
    said = ", ".join(f"{label} {fraction:.3f}" for label, fraction in covered.items())
    return (
        f"Around the paper's own network, mean coverage over {len(names)} datasets: {said}; the interval score of the "
        f"neighbours' width is {min(ratios):.2f} to {max(ratios):.2f} of the constant one's (median "
        f"{np.median(ratios):.2f})."
    )


def finding(rows: Sequence[Row]) -> str:
    """What the width does apart from the model, and how much the search of settings had seen."""
    later = [float(row["seen"]) for row in rows if int(row["split"]) > 0]
    seen = f" Of the test rows of later splits the search of settings had seen {np.mean(later):.2f}." if later else ""
    stalled = [1 - int(row["arrived"]) for row in rows if row["method"] == PRINTED]
    return f"{headline(rows)} {sum(stalled)} of {len(stalled)} printed neurons stalled.{seen}"


EXPERIMENT = Experiment(
    name="table2",
    columns="widths",
    title="pimeter's widths and the printed neuron around the paper's network (Table 2, widths)",
    settings=Settings(),
    quick=Settings(datasets=("yacht",), most_splits=1, is_tuned=False, max_epochs=3),
    units=units,
    measure=measure,
    tables=tables,
    headline=headline,
    finding=finding,
    reads=lambda settings: [
        *official_files(settings.datasets),
        *(["experiments/results/table2-tuning.csv"] if settings.is_tuned else []),
    ],
    by_split=True,
    packages=("pimeter", "numpy", "scipy", "scikit-learn", "torch"),
)
