"""Table 2's networks, trained by ourselves: the paper's neuron around one hidden layer, and quality-driven ensembles.

*paper* trains with the settings that `uci_tuning.py` found: 80 % of the training part for the network, 20 % for the
neuron. The network stops early on the neuron's rows, as in the paper, or on rows of its own; the neuron learns by
descent or as the root, for both signs together or for each by itself. Protocol and signs are chosen by CWC on the
neuron's rows, and all variants are in the rows. *qd* trains five networks with two outputs and the quality-driven loss,
tuned, too; bounds are the mean of theirs, farther out by 1.96 standard deviations.

Networks of all splits are trained at once. A unit of work is a dataset.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

from experiments import uci_tuning
from experiments.data import Array, Official, official
from experiments.stacked import LayerTraining, Member, Stack
from experiments.uci_splits import LEVEL, Parts, in_units, judged, tables
from experiments.uci_tuning import BETA, PROTOCOLS, START, Settings, cwc, driven, ensemble, scaled, squared, tuned
from pimeter import QuantileNeuron
from pimeter.paper import DescendingNeuron, sided_errors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from experiments.protocol import Row, Unit

LEARNING_RATE = 0.005  # of the neuron
NEURONS: Mapping[str, QuantileNeuron] = {
    "descent": DescendingNeuron(LEVEL, beta=BETA, learning_rate=LEARNING_RATE),
    "root": QuantileNeuron(LEVEL, beta=BETA),
}
QD_TUNED, QD_PLAIN = "QD-Ens, ours", "QD-Ens, not tuned"
CALIBRATION, OWN, TEST = "the neuron's rows", "own rows", "test rows"  # what networks stop on


def units(settings: Settings) -> list[Unit]:
    """One unit of work per dataset."""
    return [(name,) for name in settings.datasets]


class Cut(NamedTuple):
    """Rows of a split's training part: for the network, to stop on, for the neuron."""

    rows: NDArray[np.intp]
    stop: NDArray[np.intp]
    calibration: NDArray[np.intp]


def cut(parts: Parts, split: int, stops_on: str) -> Cut:
    """80 % for the network, of which 15 % are to stop on if it has rows of its own for that."""
    n = len(parts.y)
    rows, calibration = train_test_split(np.arange(n), test_size=0.2, random_state=split + 1)
    if stops_on == OWN:
        rows, stop = train_test_split(rows, test_size=0.15, random_state=split + 1)
        return Cut(rows, stop, calibration)
    return Cut(rows, calibration if stops_on == CALIBRATION else n + np.arange(len(parts.y_new)), calibration)


def trained(parts: Sequence[Parts], cuts: Sequence[Cut], how: LayerTraining, rng: np.random.Generator) -> Stack:
    """A network for each split."""
    members = [Member(k, own.rows, own.stop, how, int(rng.integers(2**31))) for k, own in enumerate(cuts)]
    stack = Stack(*stacked(parts), members, squared)
    stack.train(how.max_epochs)
    return stack


def stacked(parts: Sequence[Parts]) -> tuple[Array, Array]:
    """Features and targets of all splits, training part first."""
    features = np.stack([np.concatenate([own.X, own.new]) for own in parts])
    return features, np.stack([np.concatenate([own.y, own.y_new]) for own in parts])


def measure_paper(settings: Settings, unit: Unit, rng: np.random.Generator) -> list[Row]:
    """All variants of the paper's intervals on all splits."""
    name = str(unit[0])
    whole = official(name)
    found = [
        {"dataset": name, **row}
        for stops_on in (CALIBRATION, OWN)
        for row in variants(settings, name, whole, stops_on, NEURONS, rng)
    ]
    best: dict[tuple[int, str], int] = {}
    for i in sorted(range(len(found)), key=lambda i: -float(found[i]["cwc"])):
        best[found[i]["split"], found[i]["method"]] = i
    return [{**row, "chosen": int(best[row["split"], row["method"]] == i)} for i, row in enumerate(found)]


def variants(
    settings: Settings,
    name: str,
    whole: Official,
    stops_on: str,
    neurons: Mapping[str, QuantileNeuron],
    rng: np.random.Generator,
) -> list[dict[str, Any]]:
    """The paper's intervals by both protocols, with both kinds of tails, by each neuron, on each split."""
    parts = [scaled(in_units(whole, split)) for split in range(settings.n_splits(name))]
    cuts = [cut(own, split, stops_on) for split, own in enumerate(parts)]
    found: list[dict[str, Any]] = []
    for protocol in PROTOCOLS:
        how = tuned(settings, name, protocol, len(cuts[0].rows))
        predicted = trained(parts, cuts, how, rng).outputs()[:, :, 0]
        for split, (own, at) in enumerate(zip(parts, cuts, strict=True)):
            known, new = predicted[split, at.calibration], predicted[split, len(own.y) :]
            y = own.y[at.calibration]
            for solver, neuron in neurons.items():
                for tails in ("symmetric", "sided"):
                    below, above = radii(y - known, neuron, tails)
                    bounds = np.column_stack([new - below, new + above])
                    row = judged(own, f"paper: stops on {stops_on}, {solver}", bounds)
                    covered = float(np.mean((y >= known - below) & (y <= known + above)))
                    settled = {"protocol": protocol, "tails": tails, "own_picp": covered}
                    found.append({"split": split, **row, **settled, "cwc": cwc(y, known, below, above)})
    return found


def radii(errors: Array, neuron: QuantileNeuron, tails: str) -> tuple[float, float]:
    """How far intervals extend down and up."""
    sides = [np.abs(errors)] if tails == "symmetric" else list(sided_errors(errors, np.zeros(len(errors))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # own_picp says which have stalled
        found = [float(neuron.fit(side).quantile_) if len(side) else 0.0 for side in sides]
    return found[0], found[-1]


def measure_qd(settings: Settings, unit: Unit, rng: np.random.Generator) -> list[Row]:
    """Quality-driven ensembles on each split, with the settings that were found and with the plain ones."""
    name = str(unit[0])
    whole = official(name)
    parts = [scaled(in_units(whole, split)) for split in range(settings.n_splits(name))]
    groups = uci_tuning.member_rows(np.arange(len(parts[0].y)), settings.n_members)
    found: list[Row] = []
    for method, is_tuned in ((QD_TUNED, settings.is_tuned), (QD_PLAIN, False)):
        how = tuned(replace(settings, is_tuned=is_tuned), name, uci_tuning.QD, len(groups[0][0]))
        members = [
            Member(k, rows, stop, how, int(rng.integers(2**31))) for k in range(len(parts)) for rows, stop in groups
        ]
        stack = Stack(*stacked(parts), members, driven, start=START)
        stack.train(how.max_epochs)
        outputs = stack.outputs()[:, len(parts[0].y) :].reshape(len(parts), len(groups), -1, 2)
        found += [
            {"dataset": name, "split": split, **judged(own, method, ensemble(outputs[split]))}
            for split, own in enumerate(parts)
        ]
    return found


def chosen_tables(rows: Sequence[Row]) -> dict[str, Sequence[Row]]:
    """The variants that were chosen on the neuron's rows, then the coverage of its own errors."""
    chosen = [row for row in rows if row["chosen"]]
    own: list[Row] = [
        {
            "dataset": name,
            "method": method,
            "own errors covered": float(np.mean([float(row["own_picp"]) for row in held])),
        }
        for name, method in dict.fromkeys((str(row["dataset"]), str(row["method"])) for row in chosen)
        for held in [[row for row in chosen if (row["dataset"], row["method"]) == (name, method)]]
    ]
    return {**tables(chosen), "Fraction of its own calibration errors that the neuron covers": own}


def paper_headline(rows: Sequence[Row]) -> str:
    """What the root does beside descent, in one sentence."""

    def covered(solver: str) -> float:
        method = f"paper: stops on own rows, {solver}"
        return float(np.mean([float(row["picp"]) for row in rows if row["chosen"] and row["method"] == method]))

    return (
        f"With rows of their own to stop on, intervals by the root cover {covered('root'):.3f} of the test rows on "
        f"average, those by descent {covered('descent'):.3f}."
    )


def qd_headline(rows: Sequence[Row]) -> str:
    """What the ensembles do, in one sentence."""
    tuned_, plain = (
        float(np.mean([float(row["picp"]) for row in rows if row["method"] == method]))
        for method in (QD_TUNED, QD_PLAIN)
    )
    return f"Quality-driven ensembles cover {tuned_:.3f} of the test rows, not tuned {plain:.3f}."


PAPER = replace(
    uci_tuning.EXPERIMENT,
    columns="paper",
    title="the paper's neuron around its network (Table 2, paper)",
    units=units,
    measure=measure_paper,
    tables=chosen_tables,
    headline=paper_headline,
    finding=paper_headline,
    reads=uci_tuning.files,
)
QD = replace(
    PAPER,
    columns="qd",
    title="quality-driven ensembles (Table 2, QD-Ens, ours)",
    measure=measure_qd,
    tables=tables,
    headline=qd_headline,
    finding=qd_headline,
)
