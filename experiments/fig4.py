"""Figure 4: the confusion matrix of Adult as distributions of scores, uncalibrated and after two calibrators.

One network, trained on Adult's own training file, and its scores on Adult's own test file (16,281 rows). A tenth of the
training rows stops the training and calibrates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from experiments.classifiers import scores
from experiments.data import Split, adult, classification_files
from experiments.protocol import Experiment, Row, Unit
from experiments.table4 import TRAINING, calibrations
from pimeter import calibration_error
from pimeter.paper import outcome_errors

THRESHOLD = 0.5
CALIBRATIONS = ("uncalibrated", "scaling-binning", "Platt")
OUTCOMES = ("true negatives", "false positives", "false negatives", "true positives")


@dataclass(frozen=True)
class Settings:
    """How scores are shown."""

    seed: int = 0
    n_bars: int = 40
    max_epochs: int = 60


QUICK = Settings(max_epochs=2)


def units(_settings: Settings) -> list[Unit]:
    """All at once."""
    return [("adult",)]


def measure(settings: Settings, _unit: Unit, rng: np.random.Generator) -> list[Row]:
    """A row for each calibration, outcome and bar."""
    X, y, is_test = adult()
    rest, test = rng.permutation(np.flatnonzero(~is_test)), np.flatnonzero(is_test)
    n_held_out = len(rest) // 10
    split = Split(rest[n_held_out:], rest[:n_held_out], test)
    score = scores(X, y, [split], replace(TRAINING, max_epochs=settings.max_epochs), rng)[0]
    methods = {"scaling-binning": "scaling-binning", "Platt": "sigmoid"}
    rows: list[Row] = []
    edges = np.linspace(0, 1, settings.n_bars + 1)
    for name, shown in calibrations(y[split.validation], score[split.validation], score[test], methods).items():
        tn, tp, fn, fp = outcome_errors(y[test], shown, threshold=THRESHOLD)
        error = 100 * calibration_error(y[test], shown)
        for outcome, held in zip(OUTCOMES, (tn, THRESHOLD + fp, THRESHOLD - fn, 1 - tp), strict=True):
            counts = np.histogram(held, edges)[0]
            rows += [
                {
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
    names = list(dict.fromkeys(str(row["calibration"]) for row in rows))
    return {
        "Test rows by outcome; calibration error in per cent; share of false answers within .2 of the threshold": [
            line(rows, name) for name in names
        ]
    }


def line(rows: Sequence[Row], name: str) -> Row:
    held = [row for row in rows if row["calibration"] == name]
    counts = {outcome: sum(int(row["rows"]) for row in held if row["outcome"] == outcome) for outcome in OUTCOMES}
    false = [row for row in held if str(row["outcome"]).startswith("false")]
    near = [
        row
        for row in false
        if float(row["to"]) <= THRESHOLD + 0.2 + 1e-9 and float(row["from"]) >= THRESHOLD - 0.2 - 1e-9
    ]
    fraction = sum(int(row["rows"]) for row in near) / max(sum(int(row["rows"]) for row in false), 1)
    return {
        "calibration": name,
        **counts,
        "accuracy": (counts["true negatives"] + counts["true positives"]) / sum(counts.values()),
        "calibration error": float(held[0]["calibration error"]),
        "false answers near the threshold": fraction,
    }


def headline(rows: Sequence[Row]) -> str:
    """What the figure shows, in one sentence."""
    raw, binned, platt = (line(rows, name) for name in CALIBRATIONS)
    key = "false answers near the threshold"
    return (
        f"Of the false answers on Adult's test rows {100 * float(raw[key]):.0f} % lie within .2 of the threshold, "
        f"{100 * float(platt[key]):.0f} % after Platt's map; the calibration error is "
        f"{float(raw['calibration error']):.1f} %, {float(platt['calibration error']):.1f} % after Platt's map and "
        f"{float(binned['calibration error']):.1f} % after "
        "scaling-binning."
    )


def finding(rows: Sequence[Row]) -> str:
    """What it means."""
    return (
        f"{headline(rows)} The paper reads from this picture that false answers gather around the threshold once "
        "scores are calibrated, and takes their spread for the uncertainty of the rates. A network that is stopped on "
        "rows of its own is near calibrated to begin with, and the spread belongs to single rows, not to rates."
    )


def figure(rows: Sequence[Row], path: Path) -> None:
    """A row for each calibration, a column for each outcome."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(str(row["calibration"]) for row in rows))
    canvas = Figure(figsize=(12, 7), layout="constrained")
    panels = canvas.subplots(len(names), 4, sharex=True, sharey="col")
    for line, name in zip(panels, names, strict=True):
        for panel, outcome in zip(line, OUTCOMES, strict=True):
            held = [row for row in rows if (row["calibration"], row["outcome"]) == (name, outcome)]
            counts = np.array([int(row["rows"]) for row in held])
            left = np.array([float(row["from"]) for row in held])
            colour = "#0072b2" if outcome.startswith("true") else "#d55e00"
            panel.bar(left, counts / max(counts.sum(), 1), 1 / len(left), align="edge", color=colour)
            panel.axvline(THRESHOLD, color="0.2", linestyle="--", linewidth=1)
            panel.set_title(f"{outcome}: {counts.sum():,}", loc="left", fontsize=10)
            panel.spines[["top", "right"]].set_visible(False)
        line[0].set_ylabel(f"{name}\nproportion of these rows")
    for panel in panels[-1]:
        panel.set_xlabel("score")
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
