"""Figure 4: the confusion matrix of Adult as distributions of scores, uncalibrated and after two calibrators.

Networks of two kinds, trained on Adult's own training file, and their scores on Adult's own test file (16,281 rows). A
tenth of the training rows, another one for each network, calibrates; it also stops the training of the first kind, and
the other is trained for too long, as Table 4 suggests of the paper's: does a calibrator gather false answers around the
threshold because there is something to undo? They gather if their mean distance from the threshold is less than before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

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
CALIBRATIONS = ("uncalibrated", "scaling-binning", "Platt")
OUTCOMES = ("true negatives", "false positives", "false negatives", "true positives")
STOPPED, TOO_LONG = "stopped on own rows", "trained too long"


@dataclass(frozen=True)
class Settings:
    """How scores are shown."""

    seed: int = 0
    n_networks: int = 5
    n_bars: int = 20
    max_epochs: int = 60
    too_long: int = 60


QUICK = Settings(n_networks=2, max_epochs=2, too_long=2)


def units(settings: Settings) -> list[Unit]:
    """One for each network."""
    return [(network, i) for network in (STOPPED, TOO_LONG) for i in range(settings.n_networks)]


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
        own = {"calibration error": 100 * calibration_error(y[test], shown)}
        own["distance"] = float(np.abs(np.concatenate([fp, fn])).mean())
        for outcome, held in zip(OUTCOMES, (tn, THRESHOLD + fp, THRESHOLD - fn, 1 - tp), strict=True):
            counts = np.histogram(held, edges)[0]
            rows += [
                {
                    "network": network,
                    "trial": int(unit[1]),
                    "calibration": name,
                    "outcome": outcome,
                    "from": float(low),
                    "to": float(high),
                    "rows": int(count),
                    **own,
                }
                for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True)
            ]
    return rows


# What the rows say.


def tables(rows: Sequence[Row]) -> dict[str, Sequence[Row]]:
    """How many rows each outcome has, and how near the threshold false answers are."""
    return {
        f"Test rows by outcome, calibration error in per cent, and mean distance of false answers from the threshold, "
        f"{THRESHOLD}: means of {n_networks(rows)} networks; sd: over networks": [
            line(rows, name, network) for network in _kinds(rows) for name in CALIBRATIONS
        ]
    }


def n_networks(rows: Sequence[Row]) -> int:
    """Number of networks of each kind."""
    return len({row["trial"] for row in rows})


def _kinds(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(str(row["network"]) for row in rows))


def _counts(rows: Sequence[Row], network: str, calibration: str, outcome: str) -> NDArray[np.intp]:
    """Rows in each bar, (networks, bars)."""
    wanted = (network, calibration, outcome)
    held = [row["rows"] for row in rows if (row["network"], row["calibration"], row["outcome"]) == wanted]
    return np.array(held).reshape(-1, len({row["from"] for row in rows}))


def _by_network(rows: Sequence[Row], calibration: str, network: str, column: str) -> NDArray[np.float64]:
    """What is the same for all bars of a network."""
    held = [row for row in rows if (row["network"], row["calibration"]) == (network, calibration)]
    return np.array(list({row["trial"]: float(row[column]) for row in held}.values()))


def line(rows: Sequence[Row], calibration: str, network: str) -> Row:
    """Networks of one kind after one calibration."""
    total = {outcome: float(_counts(rows, network, calibration, outcome).sum(axis=1).mean()) for outcome in OUTCOMES}
    distance = _by_network(rows, calibration, network, "distance")
    return {
        "network": network,
        "calibration": calibration,
        **{outcome: round(number) for outcome, number in total.items()},
        "accuracy": (total["true negatives"] + total["true positives"]) / sum(total.values()),
        "calibration error": float(_by_network(rows, calibration, network, "calibration error").mean()),
        "distance": float(distance.mean()),
        "distance, sd": float(distance.std(ddof=1)),
    }


class Moved(NamedTuple):
    """How much nearer to the threshold false answers are than before: the mean over networks, its standard error."""

    nearer: float
    error: float

    @property
    def is_nearer(self) -> bool:
        """By two standard errors."""
        return self.nearer > 2 * self.error


def moved(rows: Sequence[Row], calibration: str, network: str) -> Moved:
    """What a calibrator does to the same networks' false answers."""
    before, after = (_by_network(rows, name, network, "distance") for name in (CALIBRATIONS[0], calibration))
    return Moved(float((before - after).mean()), float((before - after).std(ddof=1) / np.sqrt(len(before))))


def distances(rows: Sequence[Row], network: str) -> str:
    """Means and standard deviations over networks, uncalibrated and after each calibrator."""
    lines = [line(rows, name, network) for name in CALIBRATIONS]
    return ", ".join(
        f"{one['calibration']} {float(one['distance']):.3f} +- {float(one['distance, sd']):.3f}" for one in lines
    )


def headline(rows: Sequence[Row]) -> str:
    """What the figure shows, in one sentence."""
    said = [
        f"{distances(rows, network)} for networks {network}, with a calibration error of "
        f"{float(line(rows, CALIBRATIONS[0], network)['calibration error']):.1f} %"
        for network in _kinds(rows)
    ]
    return (
        f"Mean distance of false answers on Adult's test rows from the threshold, {THRESHOLD} ({n_networks(rows)} "
        f"networks, +- standard deviation): {'; '.join(said)}."
    )


def finding(rows: Sequence[Row]) -> str:
    """What it means."""
    said = []
    for network in _kinds(rows):
        parts = [
            f"{'nearer' if found.is_nearer else 'not nearer'} after {name} ({found.nearer:.3f}, standard error "
            f"{found.error:.3f})"
            for name in CALIBRATIONS[1:]
            for found in [moved(rows, name, network)]
        ]
        said.append(f"of networks {network}: {' and '.join(parts)}")
    return (
        f"{headline(rows)} The paper reads from this picture that false answers gather around the threshold once "
        "scores are calibrated, and takes their spread for the uncertainty of the rates. False answers are, by two "
        f"standard errors, {'; '.join(said)}. The spread belongs to single rows, not to rates."
    )


STYLES: dict[str, dict[str, Any]] = {
    STOPPED: {"color": "#0072b2", "linewidth": 1.8},
    TOO_LONG: {"color": "#e69f00", "linewidth": 1.4, "linestyle": "--"},
}
MARKERS = {STOPPED: "o", TOO_LONG: "x"}


def figure(rows: Sequence[Row], path: Path) -> None:
    """Distributions of scores, as the paper draws them: a row of panels for each calibration, a column per outcome."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(12, 7.6), layout="constrained")
    panels = canvas.subplots(len(CALIBRATIONS), len(OUTCOMES), sharex="col", squeeze=False)
    for raw, platt in panels[[0, 2]].T:
        platt.sharey(raw)
    for across, name in zip(panels, CALIBRATIONS, strict=True):
        for panel, outcome in zip(across, OUTCOMES, strict=True):
            n_rows = []
            for network, style in STYLES.items():
                counts = _counts(rows, network, name, outcome)
                n_rows.append(f"{counts.sum(axis=1).mean():,.0f}")
                parts = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
                edges = np.linspace(0, 1, parts.shape[1] + 1)
                low, high = (np.append(one, one[-1]) for one in (parts.min(axis=0), parts.max(axis=0)))
                if name == "scaling-binning":  # few values, other ones for each network
                    at = np.broadcast_to(edges[:-1] + np.diff(edges) / 2, parts.shape)
                    panel.plot(at[parts > 0], parts[parts > 0], MARKERS[network], color=style["color"], alpha=0.7)
                else:
                    panel.stairs(parts.mean(axis=0), edges, label=network, **style)
                    panel.fill_between(edges, low, high, step="post", color=style["color"], alpha=0.25, linewidth=0)
            is_low = outcome in {"true negatives", "false negatives"}
            panel.set(xlim=(0, THRESHOLD) if is_low else (THRESHOLD, 1))
            ticks = np.arange(5 + (outcome == OUTCOMES[-1])) / 10  # the last one of a panel is the first of the next
            panel.set_xticks(ticks if is_low else THRESHOLD + ticks)
            panel.set_title(f"{outcome}: {' / '.join(n_rows)} rows", fontsize=10)
            panel.grid(axis="y", alpha=0.25)
            panel.spines[["top", "right"]].set_visible(False)
        across[0].set_ylabel(f"{name}\nproportion of rows")
    for panel in panels.flat:
        panel.set_ylim(bottom=0)
    for panel in panels[-1]:
        panel.set_xlabel("score")
    canvas.legend(
        *panels[0, 0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=len(STYLES),
        frameon=False,
        title=f"{n_networks(rows)} networks of each kind, rows counted in this order: mean and range, one scale per "
        "column\n(scaling-binning leaves few values: a mark for each one of each network, own scale)",
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
