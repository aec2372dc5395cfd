"""Figure 3: the cone around an LSTM's forecasts of General Electric's closes, 30 days ahead from the last 10.

The paper scaled the validation part with its own range, repeated each window 21 times and tested on a window that the
neurons had learned from. Here prices are scaled by the range of the training rows, neurons learn from the first half of
the validation rows, and all windows of the second half are predicted: with the cone as it was learned ("static"), and
with one that learns each close as it becomes known ("updated"). The baseline takes its sigma from the rows that the
neurons learn from, or, updated, from as many of the latest errors as there are then; the paper's own, which takes it
from the very targets that it predicts, stands beside it. The paper's neurons, trained as printed, learn from the same
rows as the static cone; once more, as in the paper, from all validation windows, the last one included.

Times are medians of repeats, in processor time: of the LSTM's inference, all windows at once and one by one (the
paper's LSTM takes 0.9 ms a window), and of the neurons, by descent from all windows, by descent from windows that do
not overlap (the paper's scripts have 140 distinct ones), and by the root.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from experiments.data import general_electric
from experiments.networks import RecurrentTraining, load_torch, train_lstm
from experiments.printed import descended, start, trained
from experiments.protocol import Experiment, Row, Unit
from pimeter import ForecastIntervals, quantile
from pimeter.evaluation.backtesting import rolled_forward
from pimeter.paper import baseline_interval

Array: TypeAlias = NDArray[np.float64]

LEVEL = 0.95
NAMES = {
    "static": "cone, static",
    "updated": "cone, updated",
    "printed": "the paper's neurons, static",
    "leaking": "the paper's neurons that learned from all windows, also those of the test (the paper's)",
    "baseline": "baseline, static",
    "following": "baseline, updated",
    "peeking": "baseline that knows the test window's errors (the paper's)",
}
FIRST = 5  # steps over which the paper finds the cone narrower
N_REPEATS = 5  # of what is timed
PUBLISHED_RATIO = 0.4 / 3.9
TIMES = {
    "inference_seconds": "the LSTM, all windows at once",
    "one_by_one_seconds": "the LSTM, window by window",
    "printed_seconds": "neurons as printed, all windows",
    "distinct_seconds": "neurons as printed, windows that do not overlap",
    "neuron_seconds": "pimeter's cone, all windows",
}


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
    training = time.process_time() - began
    inputs, y_true = windows(settings.n_train, len(close))
    y_pred = predict(inputs)
    middle = int(settings.share * (len(close) - settings.n_train))  # rows that calibrate
    n_fit = middle - h + 1
    known = y_true[:n_fit], y_pred[:n_fit]
    cone = ForecastIntervals(LEVEL).fit(*known)
    test, forecast = y_true[middle:], y_pred[middle:]
    errors = y_true - y_pred
    neurons = descended(np.abs(errors[:n_fit]), LEVEL)
    times = {
        "inference_seconds": _seconds(lambda: predict(inputs)),
        "one_by_one_seconds": _seconds(lambda: [predict(inputs[i : i + 1]) for i in range(len(inputs))]),
        "printed_seconds": _seconds(lambda: descended(np.abs(errors[:n_fit]), LEVEL)),
        "distinct_seconds": _seconds(lambda: descended(np.abs(errors[::h]), LEVEL)),
        "neuron_seconds": _seconds(lambda: ForecastIntervals(LEVEL).fit(y_true[:n_fit], y_pred[:n_fit])),
    }
    bounds = {
        "static": cone.predict_interval(forecast),
        "printed": _printed(errors[:n_fit], forecast),
        "leaking": _printed(errors, forecast),
        "following": _following(errors, forecast, n_fit, n_past),
        "baseline": baseline_interval(*known, forecast, n_past=n_past, confidence_level=LEVEL),
        "peeking": baseline_interval(test, forecast, n_past=n_past, confidence_level=LEVEL),
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
        row |= {"epochs": n_epochs, "training_seconds": training, "descent_steps": float(np.mean(neurons.n_iter_))}
        rows.append(row | times)
    return rows


def _seconds(work: Callable[[], object]) -> float:
    """Processor time, the median of repeats."""
    found = []
    for _ in range(N_REPEATS):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return float(np.median(found))


def _printed(errors: Array, forecast: Array) -> Array:
    """Bounds of a neuron for each step, trained as printed; one that has not moved stays where it started."""
    weights = trained(np.abs(errors), LEVEL).weights
    margin = np.where(np.isnan(weights), start(LEVEL), weights)
    return np.stack([forecast - margin, forecast + margin], axis=-1)


def _following(errors: Array, forecast: Array, n_windows: int, n_past: int) -> Array:
    """The baseline with the sigma of as many windows as the static one has, the latest that are known in full."""
    h, first = errors.shape[1], len(errors) - len(forecast)
    until = first + np.arange(len(forecast)) - h + 1
    sums, squares = (np.concatenate([[0.0], np.cumsum((errors**k).sum(axis=1))]) for k in (1, 2))
    begins = np.maximum(until - n_windows, 0)
    n = h * (until - begins)
    mean = (sums[until] - sums[begins]) / n
    sigma = np.sqrt((squares[until] - squares[begins]) / n - mean**2)
    margin = (ndtri((1 + LEVEL) / 2) * np.sqrt(1 + 1 / n_past) * sigma)[:, None]
    return np.stack([forecast - margin, forecast + margin], axis=-1)


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
            {"interval": label, **{part: mean(rows, f"{name}_{column}", held) for part, held in parts.items()}}
            for name, label in NAMES.items()
        ]
    whole[
        "Processor time, medians of repeats, means over trials; the paper: 3.9 s for the LSTM, 0.4 s for the neurons"
    ] = [
        {
            "what": words,
            "milliseconds": 1000 * mean(rows, name),
            "ratio to the LSTM": mean(rows, name) / mean(rows, "inference_seconds"),
            "ratio to the LSTM, one by one": mean(rows, name) / mean(rows, "one_by_one_seconds"),
        }
        for name, words in TIMES.items()
    ]
    return whole


def brief(rows: Sequence[Row]) -> dict[str, Sequence[Row]]:
    """The paper's cone and baseline, and ours: over all test windows, and for the last one."""
    first = list(range(1, FIRST + 1))
    forms = {"leaking": "faithful", "peeking": "faithful", "printed": "no leak", "baseline": "no leak"}
    n = int(rows[0]["n_windows"])
    return {
        f"All {n} test windows, and the last one; widths in units of the training rows' range": [
            {
                "form": forms.get(name, "better"),
                "interval": SHORT[name],
                "coverage": mean(rows, f"{name}_coverage"),
                f"width, steps 1 to {FIRST}": mean(rows, f"{name}_width", first),
                "width, all steps": mean(rows, f"{name}_width"),
                "coverage, last window": last_window(rows, name).coverage,
                f"width, steps 1 to {FIRST}, last window": last_window(rows, name).width,
            }
            for name in ("leaking", "peeking", "printed", "baseline", "static", "updated", "following")
        ]
    }


def headline(rows: Sequence[Row]) -> str:
    """What the tables show, in one sentence."""
    static, moved, baseline = (mean(rows, f"{name}_coverage") for name in ("static", "updated", "baseline"))
    return (
        f"Over {int(rows[0]['n_windows'])} test windows and all steps the static cone covers {static:.3f}, the updated "
        f"one {moved:.3f}, the baseline {baseline:.3f} where {LEVEL} were asked for."
    )


def finding(rows: Sequence[Row]) -> str:
    """What becomes of the paper's claims, that of times last."""
    return f"{on_cones(rows)} {on_time(rows)}"


def on_cones(rows: Sequence[Row]) -> str:
    """What becomes of the paper's claims of widths and coverage."""
    first = list(range(1, FIRST + 1))
    said = [_on_last_window(rows), headline(rows)]
    widths = {name: mean(rows, f"{name}_width", first) for name in NAMES}
    for name in ("static", "updated"):
        parts = [f"{widths[name] / widths[other]:.2f} of {words}" for other, words in _BASELINES.items()]
        said.append(f"Over the first {FIRST} steps the {name} cone has {' and '.join(parts)}.")
    off = {name: abs(mean(rows, f"{name}_coverage") - LEVEL) for name in ("static", "updated", "peeking")}
    nearer = [f"the {name} cone" for name in ("static", "updated") if off[name] < off["peeking"]]
    said.append(
        f"The paper's baseline covers {mean(rows, 'peeking_coverage'):.3f}; nearer to {LEVEL} than that: "
        f"{' and '.join(nearer) or 'none of the cones'}."
    )
    said.append(_against_updated(rows))
    last = [int(row["step"]) for row in rows]
    spread = [mean(rows, "updated_coverage", [step]) for step in (1, max(last))]
    said.append(
        f"By step, the updated cone covers from {spread[0]:.3f} (step 1) to {spread[1]:.3f} (step {max(last)})."
    )
    return " ".join(said)


def on_time(rows: Sequence[Row]) -> str:
    """What the neurons cost beside the LSTM, and why the paper's ratio is another."""
    took = {name: 1000 * mean(rows, name) for name in TIMES}
    slow = took["one_by_one_seconds"]
    return (
        f"In processor time the LSTM predicts all validation windows in {took['inference_seconds']:.0f} ms at once, "
        f"and in {slow:.0f} ms one by one; the neurons as printed take {took['printed_seconds']:.0f} ms, "
        f"{mean(rows, 'descent_steps'):,.0f} steps each, from windows that do not overlap "
        f"{took['distinct_seconds']:.0f} ms, and pimeter's cone {took['neuron_seconds']:.1f} ms. As ratios to the LSTM "
        f"one by one: {took['printed_seconds'] / slow:.2f}, {took['distinct_seconds'] / slow:.2f} and "
        f"{took['neuron_seconds'] / slow:.3f}; the paper: {PUBLISHED_RATIO:.2f} (0.4 s and 3.9 s)."
    )


class LastWindow(NamedTuple):
    """Of one interval around the last window: coverage of its steps, and width over the first of them."""

    coverage: float
    width: float


def last_window(rows: Sequence[Row], name: str) -> LastWindow:
    """What the paper draws: one window, here means over trials."""
    gaps = [abs(float(row["last_close"]) - float(row["last_forecast"])) for row in rows]
    half = [float(row[f"{name}_last_width"]) / 2 for row in rows]
    width = mean(rows, f"{name}_last_width", range(1, FIRST + 1))
    return LastWindow(float(np.mean(np.array(gaps) <= np.array(half))), width)


def _on_last_window(rows: Sequence[Row]) -> str:
    """The paper's claims in the paper's setting, and over all windows."""
    first = list(range(1, FIRST + 1))
    cone, baseline = (last_window(rows, name) for name in ("leaking", "peeking"))
    widths, covered = (
        [mean(rows, f"{name}_{column}", steps) for name in ("leaking", "peeking")]
        for column, steps in (("width", first), ("coverage", None))
    )
    return (
        "In the last test window, drawn as the paper draws one, its neurons and its baseline, both of which know that "
        f"window, cover {cone.coverage:.2f} and {baseline.coverage:.2f} of the steps, and over the first {FIRST} the "
        f"cone has {cone.width / baseline.width:.2f} of the baseline's width; over all windows they cover "
        f"{covered[0]:.3f} and {covered[1]:.3f}, and the ratio of widths is {widths[0] / widths[1]:.2f}."
    )


def _against_updated(rows: Sequence[Row]) -> str:
    """What updating alone does for the baseline, and what the descent does for the cone."""
    first = list(range(1, FIRST + 1))
    covered = {name: mean(rows, f"{name}_coverage") for name in NAMES}
    ratio = mean(rows, "updated_width", first) / mean(rows, "following_width", first)
    return (
        f"Updated as well, the baseline covers {covered['following']:.3f}, and the updated cone has {ratio:.2f} of its "
        f"width over the first {FIRST} steps. The paper's neurons, trained as printed on the same rows as the static "
        f"cone, cover {covered['printed']:.3f}; having learned from the test windows as well, as in the paper, "
        f"{covered['leaking']:.3f}."
    )


_BASELINES = {
    "baseline": "the width of the baseline",
    "peeking": "that of the paper's, which knows the errors of the test window",
}


def mean(rows: Sequence[Row], column: str, steps: Sequence[int] | None = None) -> float:
    return float(np.mean([float(row[column]) for row in rows if steps is None or int(row["step"]) in steps]))


LINES: dict[str, dict[str, Any]] = {
    "static": {"color": "#56b4e9", "linewidth": 4},
    "updated": {"color": "#009e73"},
    "printed": {"color": "#cc79a7"},
    "leaking": {"color": "#e69f00"},
    "baseline": {"color": "#0072b2", "linestyle": "--"},
    "following": {"color": "#009e73", "linestyle": "--"},
    "peeking": {"color": "#e69f00", "linestyle": "--"},
}
NEAR = 0.9  # coverage that is drawn once more, larger
SHORT = {
    "static": "pimeter's cone, static",
    "updated": "pimeter's cone, updated",
    "printed": "neurons as printed, static",
    "leaking": "neurons as printed, which also learned from test windows (the paper's)",
    "baseline": "baseline, static",
    "following": "baseline, updated",
    "peeking": "baseline with the test window's own errors (the paper's)",
}


def figure(rows: Sequence[Row], path: Path) -> None:
    """The last window of the first trial, and coverage and width by step over all test windows."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(13, 6.2), layout="constrained")
    panels = canvas.subplot_mosaic("wnx;wcx", height_ratios=(3, 2))
    window, near, coverage, width = (panels[key] for key in "wncx")
    trials = sorted({int(row["trial"]) for row in rows})
    steps = np.array(sorted({int(row["step"]) for row in rows}))

    def column(name: str, trial: int) -> Array:
        return np.array([float(row[name]) for row in rows if row["trial"] == trial])

    forecast = column("last_forecast", trials[0])
    handles: dict[str, Any] = {}
    for name in ("static", "updated", "leaking", "peeking"):
        half = column(f"{name}_last_width", trials[0]) / 2
        window.plot(steps, np.stack([forecast - half, forecast + half], axis=1), **LINES[name])
    (handles["forecast of the LSTM"],) = window.plot(steps, forecast, color="#d55e00", linewidth=2)
    (handles["what happened"],) = window.plot(
        steps, column("last_close", trials[0]), "k.-", markersize=4, linewidth=0.8
    )
    window.set_title("The last test window, first LSTM\n(pimeter's cones and the paper's pair)")
    window.set(ylabel="close, in units of the training rows' range")
    for panel, kind, title in (
        (near, "coverage", f"Coverage of {int(rows[0]['n_windows'])} test windows; above: from {NEAR} up"),
        (coverage, "coverage", ""),
        (width, "width", "Mean width over these windows"),
    ):
        for name in NAMES:
            values = np.array([column(f"{name}_{kind}", trial) for trial in trials])
            (handles[SHORT[name]],) = panel.plot(steps, values.mean(axis=0), **LINES[name])
            panel.fill_between(
                steps, values.min(axis=0), values.max(axis=0), color=LINES[name]["color"], alpha=0.15, lw=0
            )
        if title:
            panel.set_title(f"{title}\n(mean and range of {len(trials)} LSTMs)")
    for panel in (near, coverage):
        asked = panel.axhline(LEVEL, color="0.4", linewidth=1, linestyle=":", zorder=0)
    handles[f"{LEVEL:.0%}, as asked for"] = asked
    near.set_ylim(NEAR, 1.005)
    width.set_ylim(bottom=0)
    near.tick_params(labelbottom=False)
    for panel in panels.values():
        panel.set_xlabel("" if panel is near else "days ahead")
        panel.spines[["top", "right"]].set_visible(False)
    canvas.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3, frameon=False)
    canvas.savefig(path, dpi=300)


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
