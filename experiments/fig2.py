"""Figure 2: the bounds that SQR, QD and a neuron per position find in one trial of Table 1, beside the ideal ones.

The trial is a typical one: of the stored trials of Table 1 that whose QD is nearest to their median. The neurons are
trained as printed; for the skewed noise there are two at each position, one for the errors of each sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments import table1
from experiments.printed import start, trained
from experiments.protocol import Experiment, Row, Unit
from experiments.synthetic import LEVEL, TAIL_LEVELS, Array
from experiments.table1 import Settings, problem, trial

POINT = "pairs that f saw"
IDEAL = "ideal"
MEDIAN = "median"
# The paper draws two neurons for the skewed noise, one for the other.
SHOWN = {"normal": ("SQR", "QD", "f + PIM"), "beta": ("SQR", "QD", "f + PIM, sided")}
NEIGHBOURS = 15  # positions of a running mean in the figure
TYPICAL = {"normal": 8, "beta": 2}  # of Table 1's trials
TITLES = {"normal": "Normal noise", "beta": "Beta(.2, .3) noise"}
NEURONS: dict[str, Any] = {"color": "#56b4e9", "linewidth": 2.2}
STYLES: dict[str, dict[str, Any]] = {  # later ones are drawn over earlier ones, and thinner or broken
    "f + PIM": NEURONS,
    "f + PIM, sided": NEURONS,
    "SQR": {"color": "#d55e00", "linewidth": 1.5, "linestyle": "--"},
    "QD": {"color": "#7b3294", "linewidth": 1.5, "linestyle": (0, (3, 1, 1, 1))},
}


def units(settings: Settings) -> list[Unit]:
    """One trial per noise, with the stream that it has in Table 1."""
    return [(noise, TYPICAL[noise] % settings.n_trials) for noise in settings.noises]


def measure(settings: Settings, unit: Unit, rng: np.random.Generator) -> list[Row]:
    """A row per curve and position, and per pair."""
    noise = str(unit[0])
    asked = problem(settings, noise)
    found, x, y = trial(settings, noise, rng)
    curves = {IDEAL: asked.points(TAIL_LEVELS), MEDIAN: asked.points(np.array([0.5, 0.5]))}
    curves |= {name: found[name].bounds for name in ("SQR", "QD")}
    centre = found["f + PIM"].bounds.mean(axis=1)
    errors = asked.draw(np.tile(asked.positions, (settings.n_draws, 1)), rng) - centre
    curves[SHOWN[noise][2]] = centre[:, None] + (_printed(errors) if noise == "normal" else _printed_sides(errors))
    drawn = [(name, asked.positions, bounds) for name, bounds in curves.items()]
    drawn.append((POINT, x, np.stack([y, y], axis=1)))
    return [
        {"noise": noise, "curve": name, "x": round(at, 6), "lower": round(lower, 6), "upper": round(upper, 6)}
        for name, positions, bounds in drawn
        for at, (lower, upper) in zip(positions.tolist(), bounds.tolist(), strict=True)
    ]


def _printed(errors: Array) -> Array:
    """Bounds of one neuron per position; one that has not moved stays where it started."""
    weights = trained(np.abs(errors), LEVEL).weights
    margin = np.where(np.isnan(weights), start(LEVEL), weights)
    return np.stack([-margin, margin], axis=1)


def _printed_sides(errors: Array) -> Array:
    """Bounds of two neurons per position, for the errors of each sign; without any, or unmoved, at the start."""
    return np.stack([-_margins(-errors), _margins(errors)], axis=1)


def _margins(errors: Array) -> Array:
    """Weights of neurons for the positive errors of each column; columns with as many of them train together."""
    sides = [column[column > 0] for column in errors.T]
    lengths = np.array([len(side) for side in sides])
    found = np.full(len(sides), np.nan)
    for m in np.unique(lengths[lengths > 0]):
        same = np.flatnonzero(lengths == m)
        found[same] = trained(np.stack([sides[i] for i in same], axis=1), LEVEL).weights
    return np.where(np.isnan(found), start(LEVEL), found)


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


def finding(rows: Sequence[Row]) -> str:
    """What the figure shows, and where the printed neurons fail."""
    noises = dict.fromkeys(str(row["noise"]) for row in rows)
    return " ".join([headline(rows), *(_on_empty_side(rows, noise) for noise in noises if "sided" in SHOWN[noise][2])])


def _on_empty_side(rows: Sequence[Row], noise: str) -> str:
    """Where f lies beyond all targets, the neuron of that side has no errors to learn from."""
    x, bounds = _curve(rows, noise, SHOWN[noise][2])
    ideal = _curve(rows, noise, IDEAL)[1]
    first = start(LEVEL)
    # The bound of a neuron that has not moved is f with the first weight added.
    empty = (bounds[:, 1] - first >= ideal[:, 1]) | (bounds[:, 0] + first <= ideal[:, 0])
    if not empty.any():
        return ""
    rest = _rms((bounds - ideal)[~empty])
    return (
        f"{TITLES[noise]}: at {int(empty.sum())} of {len(x)} positions f lies beyond the ideal bound, so that the "
        f"neuron of that side has hardly any errors to learn from and stays at its first weight, {first:.3f}; without "
        f"these positions the distance is {rest:.4f}."
    )


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


def _running(gaps: Array) -> Array:
    """Root mean squares of gaps (n, 2) over neighbouring positions, both bounds together."""
    padded = np.pad((gaps**2).mean(axis=1), NEIGHBOURS // 2, mode="edge")
    return np.asarray(np.sqrt(np.lib.stride_tricks.sliding_window_view(padded, NEIGHBOURS).mean(axis=1)))


def figure(rows: Sequence[Row], path: Path) -> None:
    """A column of panels per noise: the bounds, and below, as running RMSE, how far they are from the ideal ones."""
    from matplotlib.figure import Figure

    noises = list(dict.fromkeys(str(row["noise"]) for row in rows))
    canvas = Figure(figsize=(11, 8), layout="constrained")
    panels = canvas.subplots(2, len(noises), squeeze=False, sharex=True, sharey="row", height_ratios=(3, 2))
    shown: dict[str, Any] = {}
    for (panel, below), noise in zip(panels.T, noises, strict=True):
        x, y = _curve(rows, noise, POINT)
        shown[f"{len(x)} pairs that f saw"] = panel.plot(x, y[:, 0], ".", color="0.8", markersize=2.5, zorder=1)[0]
        x, ideal = _curve(rows, noise, IDEAL)
        for name in (name for name in STYLES if name in SHOWN[noise]):
            x, bounds = _curve(rows, noise, name)
            label = "f with neurons as printed (two per position for Beta)" if name.startswith("f") else name
            shown[label] = panel.plot(x, bounds, **STYLES[name])[0]
            below.plot(x, _running(bounds - ideal), **STYLES[name])
        shown["ideal bounds"] = panel.plot(x, ideal, color="k", linewidth=0.8)[0]
        shown["median"] = panel.plot(x, _curve(rows, noise, MEDIAN)[1], "k:", linewidth=0.8)[0]
        panel.set(title=TITLES[noise], xlim=(x[0], x[-1]))
        below.set(xlabel="x", yscale="log")
        below.grid(axis="y", alpha=0.25)
        crossed = [name for name in SHOWN[noise] if _is_crossed(_curve(rows, noise, name)[1])]
        if crossed:
            panel.text(0.02, 0.97, _collapse(crossed), transform=panel.transAxes, va="top")
        for one in (panel, below):
            one.tick_params(labelleft=True)
            one.spines[["top", "right"]].set_visible(False)
    ideals = np.concatenate([_curve(rows, noise, IDEAL)[1] for noise in noises])
    edge = 0.15 * np.ptp(ideals)
    panels[0, 0].set(ylabel="y", ylim=(ideals.min() - edge, ideals.max() + edge))
    panels[1, 0].set_ylabel("RMSE of both bounds\n(running over x, log scale)")
    canvas.legend(shown.values(), shown.keys(), loc="outside lower center", ncols=3, frameon=False)
    canvas.suptitle(f"{LEVEL:.0%} bounds in a typical trial; one scale for both columns")
    canvas.savefig(path, dpi=300)


EXPERIMENT = Experiment(
    name="fig2",
    title="one trial of Table 1, drawn (Figure 2)",
    settings=Settings(widths=()),
    quick=Settings(n_trials=1, n_positions=40, n_draws=100, max_epochs=20, widths=()),
    units=units,
    measure=measure,
    tables=tables,
    headline=headline,
    finding=finding,
    figure=figure,
    unpublished="The paper prints no numbers for this figure.",
    packages=table1.EXPERIMENT.packages,
)
