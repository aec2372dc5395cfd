"""Table 2 with the paper's own network in all rows, so that model and width are not confounded.

One hidden layer with the settings that the search found (protocol 1), 80 % of the training part to train and to stop
on, 20 % for the margins: the paper's neuron as printed, and pimeter's constant and neighbours' widths around the very
same network and rows. "naval-turbine" is Naval as the paper solved it: the last column of the file is the target, the
official one a seventeenth feature. `seen` is the proportion of the test rows that the search
of settings had among its rows: it used the training part of split 0, of which other splits test nine tenths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from experiments import printed, uci_networks
from experiments.data import Array, official
from experiments.uci_networks import OWN, cut, trained
from experiments.uci_splits import LEVEL, in_units, judged, tables
from experiments.uci_tuning import PROTOCOLS, Settings, scaled, tuned
from pimeter import IntervalRegressor, ScaledWidth

if TYPE_CHECKING:
    from experiments.protocol import Row, Unit

PRINTED, CONSTANT, NEIGHBOURS = "the neuron as printed", "pimeter, constant", "pimeter, neighbours"


def measure(settings: Settings, unit: Unit, rng: np.random.Generator) -> list[Row]:
    """A row for each split and width."""
    name = str(unit[0])
    whole = official(name)
    parts = [scaled(in_units(whole, split)) for split in range(settings.n_splits(name))]
    cuts = [cut(own, split, OWN) for split, own in enumerate(parts)]
    stack = trained(parts, cuts, tuned(settings, name, PROTOCOLS[0], len(cuts[0].rows)), rng)
    found: list[Row] = []
    for split, own in enumerate(parts):
        network = stack.network(split)

        def predict(X: Array) -> Array:
            return network(X)[:, 0]  # noqa: B023

        X, y, centre = own.X[cuts[split].calibration], own.y[cuts[split].calibration], predict(own.new)
        weights, arrived, _ = printed.trained(np.abs(y - predict(X))[:, None], LEVEL)
        margin = np.nan_to_num(weights[0])  # a neuron that has not moved covers nothing
        bounds = {PRINTED: np.column_stack([centre - margin, centre + margin])}
        for label, width in ((CONSTANT, "constant"), (NEIGHBOURS, ScaledWidth("neighbours"))):
            model = IntervalRegressor(predict, confidence_level=LEVEL, width=width, random_state=split)
            bounds[label] = np.asarray(model.fit(X, y).predict_interval(own.new))
        seen = float(np.isin(whole.test[split], whole.train[0]).mean())
        found += [
            {
                "dataset": name,
                "split": split,
                **judged(own, label, intervals),
                "seen": seen,
                "arrived": int(arrived[0]) if label == PRINTED else 1,
            }
            for label, intervals in bounds.items()
        ]
    return found


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
    seen = (
        f" The search of settings has seen {100 * np.mean(later):.0f} % of the test rows of later splits."
        if later
        else ""
    )
    stalled = [1 - int(row["arrived"]) for row in rows if row["method"] == PRINTED]
    return f"{headline(rows)} {sum(stalled)} of {len(stalled)} printed neurons stalled.{seen}"


EXPERIMENT = replace(
    uci_networks.PAPER,
    columns="widths",
    title="pimeter's widths and the printed neuron around the paper's network (Table 2, widths)",
    measure=measure,
    tables=tables,
    headline=headline,
    finding=finding,
)
