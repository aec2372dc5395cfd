"""Figure 2: the bounds that SQR, QD and a neuron per position find in one trial of Table 1, beside the ideal ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments import table1
from experiments.protocol import Experiment, Row, Unit
from experiments.table1 import TAIL_LEVELS, Array, Settings, problem, trial

POINT = "pairs that f saw"
IDEAL = "ideal"
MEDIAN = "median"
# The paper draws two neurons for the skewed noise, one for the other.
SHOWN = {"normal": ("SQR", "QD", "f + PIM"), "beta": ("SQR", "QD", "f + PIM, sided")}
TITLES = {"normal": "Normal noise", "beta": "Beta(.2, .3) noise"}
COLORS = {"SQR": "#e69f00", "QD": "#cc79a7", "f + PIM": "#0072b2", "f + PIM, sided": "#0072b2"}


def units(settings: Settings) -> list[Unit]:
    """One trial per noise: the first of Table 1, with the same stream."""
    return [(noise, 0) for noise in settings.noises]


def measure(settings: Settings, unit: Unit, rng: np.random.Generator) -> list[Row]:
    """A row per curve and position, and per pair."""
    noise = str(unit[0])
    asked = problem(settings, noise)
    found, x, y = trial(settings, noise, rng)
    curves = {IDEAL: asked.points(TAIL_LEVELS), MEDIAN: asked.points(np.array([0.5, 0.5]))}
    curves |= {name: found[name].bounds for name in SHOWN[noise]}
    drawn = [(name, asked.positions, bounds) for name, bounds in curves.items()]
    drawn.append((POINT, x, np.stack([y, y], axis=1)))
    return [
        {"noise": noise, "curve": name, "x": round(at, 6), "lower": round(lower, 6), "upper": round(upper, 6)}
        for name, positions, bounds in drawn
        for at, (lower, upper) in zip(positions.tolist(), bounds.tolist(), strict=True)
    ]


def tables(rows: Sequence[Row]) -> dict[str, Sequence[Row]]:
    """Distance from the ideal bounds, over all positions and near the middle, where there is hardly any noise."""
    table: list[Row] = []
    for noise in dict.fromkeys(str(row["noise"]) for row in rows):
        for name in SHOWN[noise]:
            x, bounds = _curve(rows, noise, name)
            gap = bounds - _curve(rows, noise, IDEAL)[1]
            table.append(
                {
                    "noise": noise,
                    "method": name,
                    "RMSE": _rms(gap),
                    "RMSE, x from -0.5 to 0.5": _rms(gap[np.abs(x) < 0.5]),
                    "mean width / ideal": float(np.ptp(bounds, axis=1).mean() / _width(rows, noise)),
                }
            )
    return {"The trial that is drawn.": table}


def headline(rows: Sequence[Row]) -> str:
    """What the figure shows, in one sentence."""
    (table,) = tables(rows).values()
    said = [f"{row['method']} {float(row['RMSE']):.3f} ({row['noise']})" for row in table]
    told = [
        f" {TITLES[noise]}: {_collapse([name])}."
        for noise in dict.fromkeys(str(row["noise"]) for row in table)
        for name in SHOWN[noise]
        if _is_crossed(_curve(rows, noise, name)[1])
    ]
    return f"Distance from the ideal bounds in this trial: {', '.join(said)}; Table 1 has all trials.{''.join(told)}"


def _curve(rows: Sequence[Row], noise: str, name: str) -> tuple[Array, Array]:
    held = [row for row in rows if row["noise"] == noise and row["curve"] == name]
    bounds = np.array([[float(row["lower"]), float(row["upper"])] for row in held])
    return np.array([float(row["x"]) for row in held]), bounds


def _is_crossed(bounds: Array) -> bool:
    """Whether training collapsed: the lower bound lies over the upper one at most positions."""
    return bool(np.median(bounds[:, 1] - bounds[:, 0]) < 0)


def _collapse(names: Sequence[str]) -> str:
    return f"{' and '.join(names)}: training collapsed, the bounds crossed"


def _rms(gap: Array) -> float:
    return float(np.sqrt(np.mean(gap**2)))


def _width(rows: Sequence[Row], noise: str) -> float:
    return float(np.ptp(_curve(rows, noise, IDEAL)[1], axis=1).mean())


def figure(rows: Sequence[Row], path: Path) -> None:
    """A panel per noise."""
    from matplotlib.figure import Figure

    noises = list(dict.fromkeys(str(row["noise"]) for row in rows))
    canvas = Figure(figsize=(11, 4.8), layout="constrained")
    panels = canvas.subplots(1, len(noises), squeeze=False)[0]
    shown: dict[str, Any] = {}
    for panel, noise in zip(panels, noises, strict=True):
        x, y = _curve(rows, noise, POINT)
        shown["500 pairs that f saw"] = panel.plot(x, y[:, 0], ".", color="0.6", markersize=2.5, zorder=1)[0]
        x, bounds = _curve(rows, noise, IDEAL)
        shown["ideal bounds"] = panel.plot(x, bounds, color="k", linewidth=2.2)[0]
        shown["median"] = panel.plot(x, _curve(rows, noise, MEDIAN)[1], color="k", linewidth=0.7)[0]
        for name in SHOWN[noise]:
            x, bounds = _curve(rows, noise, name)
            label = "f with a neuron per position (sided for Beta)" if name.startswith("f") else name
            shown[label] = panel.plot(x, bounds, color=COLORS[name], linewidth=1.3)[0]
        low, high = _curve(rows, noise, IDEAL)[1].min(), _curve(rows, noise, IDEAL)[1].max()
        edge = 0.15 * (high - low)
        panel.set(title=TITLES[noise], xlabel="x", xlim=(-2, 2), ylim=(low - edge, high + edge))
        crossed = [name for name in SHOWN[noise] if _is_crossed(_curve(rows, noise, name)[1])]
        if crossed:
            panel.text(0.02, 0.97, _collapse(crossed), transform=panel.transAxes, va="top", color=COLORS[crossed[0]])
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("y")
    canvas.legend(shown.values(), shown.keys(), loc="outside lower center", ncols=6, frameon=False)
    canvas.suptitle("95 % bounds found in one trial")
    canvas.savefig(path, dpi=150)


EXPERIMENT = Experiment(
    name="fig2",
    title="one trial of Table 1, drawn (Figure 2)",
    settings=Settings(widths=()),
    quick=Settings(n_trials=1, n_positions=100, n_draws=200, max_epochs=20, widths=()),
    units=units,
    measure=measure,
    tables=tables,
    headline=headline,
    finding=headline,
    figure=figure,
    unpublished="The paper prints no numbers for this figure.",
    packages=table1.EXPERIMENT.packages,
)
