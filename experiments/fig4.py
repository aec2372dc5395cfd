"""Figure 4: the confusion matrix of Adult as distributions of scores, uncalibrated and after two calibrators.

Two networks, trained on Adult's own training file, and their scores on Adult's own test file (16,281 rows). A tenth of
the training rows calibrates; it also stops the training of the first network, and the other is trained for too long, as
Table 4 suggests of the paper's: does a calibrator gather false answers around the threshold because there is something
to undo?
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.classifiers import scores
from experiments.data import Split, adult, classification_files
from experiments.protocol import Experiment, Row, Unit
from experiments.table4 import TRAINING, calibrations
from pimeter import calibration_error
from pimeter.paper import outcome_errors

if TYPE_CHECKING:
    from numpy.typing import NDArray

THRESHOLD = 0.5
NEAR = 0.2  # of the threshold
CALIBRATIONS = ("uncalibrated", "scaling-binning", "Platt")
OUTCOMES = ("true negatives", "false positives", "false negatives", "true positives")
STOPPED, TOO_LONG = "stopped on own rows", "trained too long"


@dataclass(frozen=True)
class Settings:
    """How scores are shown."""

    seed: int = 0
    n_bars: int = 40
    max_epochs: int = 60
    too_long: int = 60


QUICK = Settings(max_epochs=2, too_long=2)


def units(_settings: Settings) -> list[Unit]:
    """One for each network."""
    return [(STOPPED,), (TOO_LONG,)]


def measure(settings: Settings, unit: Unit, rng: np.random.Generator) -> list[Row]:
    """A row for each calibration, outcome and bar."""
    network = str(unit[0])
    X, y, is_test = adult()
    rest, test = rng.permutation(np.flatnonzero(~is_test)), np.flatnonzero(is_test)
    n_held_out = len(rest) // 10
    train, held_out = rest[n_held_out:], rest[:n_held_out]
    long = settings.too_long
    split, how = {
        STOPPED: (Split(train, held_out, test), replace(TRAINING, max_epochs=settings.max_epochs)),
        # Stopped on rows that it was trained on, a network is never stopped.
        TOO_LONG: (
            Split(train, train[:n_held_out], test),
            replace(TRAINING, learning_rate=0.01, batch_size=64, max_epochs=long, patience=long),
        ),
    }[network]
    score = scores(X, y, [split], how, rng)[0]
    methods = {"scaling-binning": "scaling-binning", "Platt": "sigmoid"}
    rows: list[Row] = []
    edges = np.linspace(0, 1, settings.n_bars + 1)
    for name, shown in calibrations(y[held_out], score[held_out], score[test], methods).items():
        tn, tp, fn, fp = outcome_errors(y[test], shown, threshold=THRESHOLD)
        error = 100 * calibration_error(y[test], shown)
        for outcome, held in zip(OUTCOMES, (tn, THRESHOLD + fp, THRESHOLD - fn, 1 - tp), strict=True):
            counts = np.histogram(held, edges)[0]
            rows += [
                {
                    "network": network,
                    "calibration": name,
                    "outcome": outcome,
                    "from": float(low),
                    "to": float(high),
                    "rows": int(count),
                    "calibration error": error,
                }
                for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True)
            ]
    return rows


# What the rows say.


def tables(rows: Sequence[Row]) -> dict[str, Sequence[Row]]:
    """How many rows each outcome has, and how near the threshold false answers are."""
    return {
        "Test rows by outcome; calibration error in per cent; near: proportion of false answers within .2 of the "
        "threshold": [line(rows, name, network) for network in _networks(rows) for name in CALIBRATIONS]
    }


def _networks(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(str(row["network"]) for row in rows))


def _counts(rows: Sequence[Row], network: str, calibration: str, outcome: str) -> NDArray[np.intp]:
    """Rows in each bar."""
    wanted = (network, calibration, outcome)
    return np.array([row["rows"] for row in rows if (row["network"], row["calibration"], row["outcome"]) == wanted])


def line(rows: Sequence[Row], calibration: str, network: str) -> Row:
    """One network after one calibration."""
    counts = {outcome: _counts(rows, network, calibration, outcome) for outcome in OUTCOMES}
    total = {outcome: int(held.sum()) for outcome, held in counts.items()}
    false = counts["false positives"] + counts["false negatives"]
    middle = (np.arange(len(false)) + 0.5) / len(false)
    own = next(row for row in rows if (row["network"], row["calibration"]) == (network, calibration))
    return {
        "network": network,
        "calibration": calibration,
        **total,
        "accuracy": (total["true negatives"] + total["true positives"]) / sum(total.values()),
        "calibration error": float(own["calibration error"]),
        "near": float(false[np.abs(middle - THRESHOLD) < NEAR].sum() / max(false.sum(), 1)),
    }


def headline(rows: Sequence[Row]) -> str:
    """What the figure shows, in one sentence."""
    said = []
    for network in _networks(rows):
        raw, binned, platt = (100 * float(line(rows, name, network)["near"]) for name in CALIBRATIONS)
        said.append(
            f"{raw:.0f} % ({binned:.0f} % after scaling-binning, {platt:.0f} % after Platt's map) of a network "
            f"{network}, with a calibration error of "
            f"{float(line(rows, CALIBRATIONS[0], network)['calibration error']):.1f} %"
        )
    return f"False answers on Adult's test rows that lie within {NEAR:g} of the threshold: {'; '.join(said)}."


def finding(rows: Sequence[Row]) -> str:
    """What it means."""
    return (
        f"{headline(rows)} The paper reads from this picture that false answers gather around the threshold once "
        "scores are calibrated, and takes their spread for the uncertainty of the rates. They do where a network was "
        "too sure of itself before; and the spread belongs to single rows, not to rates."
    )


STYLES: dict[str, dict[str, Any]] = {
    "uncalibrated": {"color": "#0072b2", "linewidth": 2.2},
    "scaling-binning": {"color": "#e69f00", "linewidth": 1.4},
    "Platt": {"color": "#009e73", "linewidth": 1.6, "linestyle": "--"},
}


def figure(rows: Sequence[Row], path: Path) -> None:
    """Cumulative distributions of scores: a row of panels for each network, a column for each outcome, one scale."""
    from matplotlib.figure import Figure

    networks = _networks(rows)
    canvas = Figure(figsize=(12, 2.9 * len(networks) + 0.6), layout="constrained")
    panels = canvas.subplots(len(networks), len(OUTCOMES), sharey=True, squeeze=False)
    for across, network in zip(panels, networks, strict=True):
        for panel, outcome in zip(across, OUTCOMES, strict=True):
            n_rows = []
            for name, style in STYLES.items():
                counts = _counts(rows, network, name, outcome)
                n_rows.append(f"{counts.sum():,}")
                below = np.concatenate([[0.0], np.cumsum(counts) / max(counts.sum(), 1)])
                how = {"drawstyle": "steps-post"} if name == "scaling-binning" else {}
                panel.plot(np.linspace(0, 1, len(below)), below, label=name, **style, **how)
            is_low = outcome in {"true negatives", "false negatives"}
            panel.set(xlim=(0, THRESHOLD) if is_low else (THRESHOLD, 1), ylim=(0, 1))
            ticks = np.arange(5 + (outcome == OUTCOMES[-1])) / 10  # the last one of a panel is the first of the next
            panel.set_xticks(ticks if is_low else THRESHOLD + ticks)
            panel.set_title(f"{outcome}\n{' / '.join(n_rows)} rows", fontsize=10)
            panel.grid(alpha=0.25)
            panel.spines[["top", "right"]].set_visible(False)
        across[0].set_ylabel(f"network {network}\nproportion of scores below")
    for panel in panels[-1]:
        panel.set_xlabel("score")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    canvas.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=len(labels),
        frameon=False,
        title="rows are counted in this order",
    )
    canvas.savefig(path, dpi=300)


EXPERIMENT = Experiment(
    name="fig4",
    title="the confusion matrix of Adult as distributions of scores (Figure 4)",
    settings=Settings(),
    quick=QUICK,
    units=units,
    measure=measure,
    tables=tables,
    headline=headline,
    finding=finding,
    figure=figure,
    unpublished="The paper prints no numbers here.",
    reads=lambda _: classification_files(["adult"]),
    packages=("pimeter", "numpy", "scipy", "scikit-learn", "torch"),
)
