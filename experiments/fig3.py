"""Figure 3: the cone around an LSTM's forecasts of General Electric's closes, 30 days ahead from the last 10.

The paper scaled the validation part with its own range, repeated each window 21 times and tested on a window that the
neurons had learned from. Here prices are scaled by the range of the training rows, neurons learn from the first half of
the validation rows, and all windows of the second half are predicted: with the cone as it was learned ("static"), and
with one that learns each close as it becomes known ("updated"). The baseline takes its sigma from the rows that the
neurons learn from; the paper's own, which takes it from the very targets that it predicts, stands beside it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from experiments.data import general_electric
from experiments.networks import RecurrentTraining, load_torch, train_lstm
from experiments.protocol import Experiment, Row, Unit
from pimeter import ForecastIntervals, quantile
from pimeter.evaluation.backtesting import rolled_forward

Array: TypeAlias = NDArray[np.float64]

LEVEL = 0.95
NAMES = {
    "static": "cone, static",
    "updated": "cone, updated",
    "baseline": "baseline",
    "peeking": "baseline that knows the test window's errors (the paper's)",
}
FIRST = 5  # steps over which the paper finds the cone narrower


@dataclass(frozen=True)
class Settings:
    """The paper's settings; of the validation rows the first `share` calibrate and the others test."""

    seed: int = 1
    n_trials: int = 3
    n_past: int = 10
    horizon: int = 30
    n_train: int = 9840
    share: float = 0.5
    max_epochs: int = 30


QUICK = Settings(n_trials=1, max_epochs=1)


def units(settings: Settings) -> list[Unit]:
    """One unit per LSTM."""
    return [(i,) for i in range(settings.n_trials)]


def measure(settings: Settings, unit: Unit, rng: np.random.Generator) -> list[Row]:
    """A row per step ahead: coverage and width over all test windows, and the last window."""
    load_torch(), quantile(np.ones(3), LEVEL)  # what is loaded or compiled once is nobody's time
    prices, h, n_past = general_electric(), settings.horizon, settings.n_past
    low, high = prices[: settings.n_train].min(), prices[: settings.n_train].max()
    scaled = (prices - low) / (high - low)
    close = scaled[:, -1]

    def windows(first: int, end: int) -> tuple[Array, Array]:
        """Inputs and targets of all forecasts whose targets lie in the rows [first, end)."""
        origins = np.arange(first, end - h + 1)[:, None]
        return scaled[origins + np.arange(-n_past, 0)], close[origins + np.arange(h)]

    began = time.process_time()
    how = RecurrentTraining(max_epochs=settings.max_epochs)
    predict, n_epochs = train_lstm(*windows(n_past, settings.n_train), how, rng)
    trained = time.process_time()
    inputs, y_true = windows(settings.n_train, len(close))
    y_pred = predict(inputs)
    inferred = time.process_time()
    middle = int(settings.share * (len(close) - settings.n_train))  # rows that calibrate
    n_fit = middle - h + 1
    cone = ForecastIntervals(LEVEL).fit(y_true[:n_fit], y_pred[:n_fit])
    fitted = time.process_time()

    test, forecast = y_true[middle:], y_pred[middle:]
    bounds = {
        "static": cone.predict_interval(forecast),
        "baseline": cone.baseline_interval(forecast, n_past=n_past),
        "peeking": cone.baseline_interval(forecast, n_past=n_past, y_true=test),
        "updated": rolled_forward(cone, y_true, y_pred, middle),
    }
    inside = {name: (test >= bounds[name][..., 0]) & (test <= bounds[name][..., 1]) for name in NAMES}
    width = {name: np.ptp(bounds[name], axis=-1) for name in NAMES}
    rows: list[Row] = []
    for j in range(h):
        row: dict[str, Any] = {"trial": int(unit[0]), "step": j + 1, "n_windows": len(test)}
        row |= {f"{name}_coverage": float(inside[name][:, j].mean()) for name in NAMES}
        row |= {f"{name}_width": float(width[name][:, j].mean()) for name in NAMES}
        row |= {"last_close": float(test[-1, j]), "last_forecast": float(forecast[-1, j])}
        row |= {f"{name}_last_width": float(width[name][-1, j]) for name in NAMES}
        row |= {"epochs": n_epochs, "training_seconds": trained - began}
        rows.append(row | {"inference_seconds": inferred - trained, "neuron_seconds": fitted - inferred})
    return rows


# What the rows say.


def tables(rows: Sequence[Row]) -> dict[str, Sequence[Row]]:
    """Coverage and width of all test windows by step, and of the last one: means over trials."""
    steps = list(dict.fromkeys(int(row["step"]) for row in rows))
    shown = [step for step in steps if step <= FIRST or step % 5 == 0]
    parts = {f"step {step}": [step] for step in shown} | {f"steps 1 to {FIRST}": steps[:FIRST], "all steps": steps}
    whole: dict[str, Sequence[Row]] = {}
    n = int(rows[0]["n_windows"])
    for title, column in (
        (f"Coverage of {n} test windows", "coverage"),
        ("Width over these windows, in units of the training rows' range", "width"),
        ("Width for the last window", "last_width"),
    ):
        whole[f"{title}; means over trials."] = [
            {"interval": label, **{part: _mean(rows, f"{name}_{column}", held) for part, held in parts.items()}}
            for name, label in NAMES.items()
        ]
    return whole


def headline(rows: Sequence[Row]) -> str:
    """What the tables show, in one sentence."""
    static, moved, baseline = (_mean(rows, f"{name}_coverage") for name in ("static", "updated", "baseline"))
    return (
        f"Over {int(rows[0]['n_windows'])} test windows and all steps the static cone covers {static:.3f}, the updated "
        f"one {moved:.3f}, the baseline {baseline:.3f} where {LEVEL} were asked for."
    )


def finding(rows: Sequence[Row]) -> str:
    """What becomes of the paper's claims."""
    first = list(range(1, FIRST + 1))
    said = [headline(rows)]
    widths = {name: _mean(rows, f"{name}_width", first) for name in NAMES}
    for name in ("static", "updated"):
        parts = [f"{widths[name] / widths[other]:.2f} of {words}" for other, words in _BASELINES.items()]
        said.append(f"Over the first {FIRST} steps the {name} cone has {' and '.join(parts)}.")
    narrower = [widths[name] < widths[other] for name in ("static", "updated") for other in _BASELINES]
    verdict = "holds" if all(narrower) else "holds in part" if any(narrower) else "does not hold"
    said.append(f"The paper's claim that the cone is narrower than the baseline there {verdict}.")
    off = {name: abs(_mean(rows, f"{name}_coverage") - LEVEL) for name in ("static", "updated", "peeking")}
    nearer = [f"the {name} cone" for name in ("static", "updated") if off[name] < off["peeking"]]
    said.append(
        f"Its baseline covers {_mean(rows, 'peeking_coverage'):.3f}; nearer to {LEVEL} than that: "
        f"{' and '.join(nearer) or 'none of the cones'}."
    )
    last = [int(row["step"]) for row in rows]
    spread = [_mean(rows, "updated_coverage", [step]) for step in (1, max(last))]
    said.append(
        f"By step, the updated cone covers from {spread[0]:.3f} (step 1) to {spread[1]:.3f} (step {max(last)})."
    )
    neurons, network = _mean(rows, "neuron_seconds"), _mean(rows, "inference_seconds")
    said.append(
        f"The neurons take {1000 * neurons:.1f} ms of CPU time to learn, the LSTM {1000 * network:.1f} ms to "
        f"predict all validation windows (ratio {neurons / network:.2f}; the paper: 0.4 s and 3.9 s)."
    )
    return " ".join(said)


_BASELINES = {
    "baseline": "the width of the baseline",
    "peeking": "that of the paper's, which knows the errors of the test window",
}


def _mean(rows: Sequence[Row], column: str, steps: Sequence[int] | None = None) -> float:
    return float(np.mean([float(row[column]) for row in rows if steps is None or int(row["step"]) in steps]))


LINES: dict[str, dict[str, Any]] = {
    "static": {"color": "#0072b2"},
    "updated": {"color": "#009e73"},
    "baseline": {"color": "0.35", "linestyle": "--"},
    "peeking": {"color": "0.35", "linestyle": ":"},
}


def figure(rows: Sequence[Row], path: Path) -> None:
    """The last window of the first trial, and coverage and width by step over all test windows."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(13, 4.6), layout="constrained")
    window, coverage, width = canvas.subplots(1, 3)
    own = [row for row in rows if row["trial"] == 0]
    steps = np.array([int(row["step"]) for row in own])

    def column(name: str) -> Array:
        return np.array([float(row[name]) for row in own])

    forecast = column("last_forecast")
    for name in NAMES:
        half = column(f"{name}_last_width") / 2
        if name == "static":
            window.fill_between(steps, forecast - half, forecast + half, color=LINES[name]["color"], alpha=0.18, lw=0)
        for sign in (-1, 1):
            window.plot(steps, forecast + sign * half, **LINES[name], linewidth=1.2)
    window.plot(steps, forecast, color="#d55e00", label="forecast of the LSTM")
    window.plot(steps, column("last_close"), "k.-", markersize=4, linewidth=0.8, label="what happened")
    window.legend(frameon=False, loc="upper left")
    window.set(title="The last test window", ylabel="close, in units of the training rows' range")
    for panel, kind, title in (
        (coverage, "coverage", f"Coverage of {int(own[0]['n_windows'])} test windows"),
        (width, "width", "Mean width over these windows"),
    ):
        for name, label in NAMES.items():
            values = [_mean(rows, f"{name}_{kind}", [step]) for step in steps.tolist()]
            panel.plot(steps, values, label=label, **LINES[name])
        panel.set_title(title)
    coverage.axhline(LEVEL, color="0.7", linewidth=0.8, zorder=0)
    coverage.annotate(f"{LEVEL:.0%}", (steps[-1], LEVEL), (4, -3), textcoords="offset points", color="0.5")
    width.set_ylim(bottom=0)
    for panel in (window, coverage, width):
        panel.set_xlabel("days ahead")
        panel.spines[["top", "right"]].set_visible(False)
    handles, labels = width.get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    canvas.savefig(path, dpi=150)


EXPERIMENT = Experiment(
    name="fig3",
    title="cones around an LSTM's forecasts of a share price (Figure 3)",
    settings=Settings(),
    quick=QUICK,
    units=units,
    measure=measure,
    tables=tables,
    headline=headline,
    finding=finding,
    figure=figure,
    reads=lambda _: ("time_series/ge.csv.gz",),
    unpublished="The paper prints two times here (0.4 s for the neurons, 3.9 s for the LSTM) and no other numbers.",
    packages=("pimeter", "numpy", "scipy", "scikit-learn", "torch"),
)
