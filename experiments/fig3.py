"""Figure 3: the cone around an LSTM's forecasts of General Electric's closes, 30 days ahead from the last 10.

The paper's LSTM maps 10 days to 30 closes and has to learn that tomorrow is near today: "plain", trained until nothing
improves any more, and once more stopped early. Ours, "residual", adds what it says to the last close, so that it knows.

By the text, neurons learn from windows before those that are tested, and prices are scaled by the range of the training
rows. By the scripts, neurons learn from all validation windows, the last one included, and the validation rows are
scaled by their own range (which repeats each window 21 times; not done here). Here the first half of the validation
rows comes before the test, and all windows of the second half are predicted; what was found in either scale is stored
in units of the training rows' range. The paper's baseline takes sigma from the very targets that it predicts.

Beside the paper's pair: pimeter's cone as it was learned ("static"), one that learns each close as it becomes known
("updated"), and baselines with the sigma of the rows that the static cone learns from or, updated, of as many of the
latest errors as there are then.

Times are medians of repeats, in processor time: of the LSTM's inference, all windows at once and one by one, and of the
neurons, by descent from all windows, by descent from windows that do not overlap (the scripts have 140 distinct ones),
and by the root.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
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
PLAIN, EARLY, RESIDUAL = "plain", "plain, stopped early", "residual"
NETWORKS = {
    PLAIN: RecurrentTraining(n_hidden=64, learning_rate=0.005, max_epochs=150, patience=20),
    EARLY: RecurrentTraining(),
    RESIDUAL: RecurrentTraining(residual=True),
}
TRAINING, OWN = "training rows", "validation rows"  # whose range scales the validation rows
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
N_REPEATS = 3  # of what is timed
NEURON_SECONDS, LSTM_SECONDS = 0.4, 3.9  # the paper's
TIMES = {
    "inference_seconds": "the LSTM, all windows at once",
    "one_by_one_seconds": "the LSTM, window by window",
    "printed_seconds": "neurons as printed, all windows",
    "distinct_seconds": "neurons as printed, windows that do not overlap",
    "neuron_seconds": "pimeter's cone, all windows",
}


# What the paper's two times may be of.
AT_ONCE, ONE_BY_ONE = "all windows at once", "window by window, neurons from windows that do not overlap"
PAIRS = {
    AT_ONCE: ("printed_seconds", "inference_seconds"),
    ONE_BY_ONE: ("distinct_seconds", "one_by_one_seconds"),
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
    max_epochs: int = 150


QUICK = Settings(n_trials=1, max_epochs=1)


def units(settings: Settings) -> list[Unit]:
    """One unit per LSTM."""
    return [(network, i) for network in NETWORKS for i in range(settings.n_trials)]


def measure(settings: Settings, unit: Unit, rng: np.random.Generator) -> list[Row]:
    """For each scale a row per step ahead: coverage and width over all test windows, and the last window."""
    load_torch(), quantile(np.ones(3), LEVEL)  # what is loaded or compiled once is nobody's time
    network, trial = str(unit[0]), int(unit[1])
    prices, h, n_past = general_electric(), settings.horizon, settings.n_past

    def windows(scaled: Array, first: int, end: int) -> tuple[Array, Array]:
        """Inputs and targets of all forecasts whose targets lie in the rows [first, end)."""
        origins = np.arange(first, end - h + 1)[:, None]
        return scaled[origins + np.arange(-n_past, 0)], scaled[origins + np.arange(h), -1]

    parts = {TRAINING: prices[: settings.n_train], OWN: prices[settings.n_train :]}
    low, spread = parts[TRAINING].min(), np.ptp(parts[TRAINING])
    how = replace(NETWORKS[network], max_epochs=min(NETWORKS[network].max_epochs, settings.max_epochs))
    began = time.process_time()
    predict, n_epochs = train_lstm(*windows((prices - low) / spread, n_past, settings.n_train), how, rng)
    made: dict[str, Any] = {"epochs": n_epochs, "training_seconds": time.process_time() - began}
    middle = int(settings.share * (len(prices) - settings.n_train))  # rows that calibrate
    rows: list[Row] = []
    for scaling, part in parts.items():
        inputs, y_true = windows((prices - part.min()) / np.ptp(part), settings.n_train, len(prices))
        y_pred = predict(inputs)
        if scaling == TRAINING:
            made |= _times(predict, inputs, y_true, y_pred)
        unit_length = np.ptp(part) / spread  # of this scale, in that of the training rows
        test, forecast, last = y_true[middle:], y_pred[middle:], inputs[middle:, -1, -1:]
        bounds = _bounds(y_true, y_pred, middle, n_past)
        inside = {name: (test >= bounds[name][..., 0]) & (test <= bounds[name][..., 1]) for name in NAMES}
        width = {name: unit_length * np.ptp(bounds[name], axis=-1) for name in NAMES}
        off = {"rmse": test - forecast, "last_close_rmse": test - last}
        for j in range(h):
            row: dict[str, Any] = {"network": network, "scaling": scaling, "trial": trial, "step": j + 1}
            row |= {"n_windows": len(test)}
            row |= {name: unit_length * float(np.sqrt(np.mean(gaps[:, j] ** 2))) for name, gaps in off.items()}
            row |= {f"{name}_coverage": float(inside[name][:, j].mean()) for name in NAMES}
            row |= {f"{name}_width": float(width[name][:, j].mean()) for name in NAMES}
            for name, values in {"last_close": test, "last_forecast": forecast}.items():
                row[name] = float(unit_length * values[-1, j] + (part.min() - low) / spread)
            row |= {f"{name}_last_width": float(width[name][-1, j]) for name in NAMES}
            rows.append(row | made)
    return rows


def _bounds(y_true: Array, y_pred: Array, middle: int, n_past: int) -> dict[str, Array]:
    """Intervals around the forecasts of the windows from `middle` on."""
    n_fit = middle - y_true.shape[1] + 1
    known, errors, forecast = (y_true[:n_fit], y_pred[:n_fit]), y_true - y_pred, y_pred[middle:]
    cone = ForecastIntervals(LEVEL).fit(*known)
    return {
        "static": cone.predict_interval(forecast),
        "printed": _printed(errors[:n_fit], forecast),
        "leaking": _printed(errors, forecast),
        "following": _following(errors, forecast, n_fit, n_past),
        "baseline": baseline_interval(*known, forecast, n_past=n_past, confidence_level=LEVEL),
        "peeking": baseline_interval(y_true[middle:], forecast, n_past=n_past, confidence_level=LEVEL),
        "updated": rolled_forward(cone, y_true, y_pred, middle),
    }


def _times(predict: Callable[[Array], Array], inputs: Array, y_true: Array, y_pred: Array) -> dict[str, float]:
    """Seconds of what is timed, and the steps of the printed neurons."""
    errors = np.abs(y_true - y_pred)
    work: dict[str, Callable[[], object]] = {
        "inference_seconds": lambda: predict(inputs),
        "one_by_one_seconds": lambda: [predict(inputs[i : i + 1]) for i in range(len(inputs))],
        "printed_seconds": lambda: descended(errors, LEVEL),
        "distinct_seconds": lambda: descended(errors[:: errors.shape[1]], LEVEL),
        "neuron_seconds": lambda: ForecastIntervals(LEVEL).fit(y_true, y_pred),
    }
    steps = float(np.mean(descended(errors, LEVEL).n_iter_))
    return {"descent_steps": steps} | {name: _seconds(one) for name, one in work.items()}


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


class Reading(NamedTuple):
    """What the paper's neurons learn from, in the text or in the scripts, and what scales the rows."""

    cone: str
    scaling: str


READINGS = {"text": Reading("printed", TRAINING), "scripts": Reading("leaking", OWN)}


def chosen(rows: Sequence[Row], network: str, scaling: str = TRAINING) -> list[Row]:
    """Rows of one kind of LSTM in one scale."""
    return [row for row in rows if (row["network"], row["scaling"]) == (network, scaling)]


def mean(rows: Sequence[Row], column: str, steps: Sequence[int] | None = None) -> float:
    return float(np.mean([float(row[column]) for row in rows if steps is None or int(row["step"]) in steps]))


def first_width(rows: Sequence[Row], name: str, where: str = "width") -> float:
    """Mean width over the first steps."""
    return mean(rows, f"{name}_{where}", range(1, FIRST + 1))


def last_coverage(rows: Sequence[Row], name: str) -> float:
    """Coverage of the steps of the last window, all that the paper draws; here a mean over trials."""
    gaps = [abs(float(row["last_close"]) - float(row["last_forecast"])) for row in rows]
    half = [float(row[f"{name}_last_width"]) / 2 for row in rows]
    return float(np.mean(np.array(gaps) <= np.array(half)))


class Compared(NamedTuple):
    """Coverage of the paper's cone and of its baseline, and the cone's width over the first steps as a part of its."""

    coverage: float
    baseline: float
    width: float


def width_range(rows: Sequence[Row], cone: str) -> str:
    """Width in the last window, as a part of the baseline's, around single LSTMs."""
    ratios = [in_last_window([row for row in rows if row["trial"] == i], cone).width for i in range(n_trials(rows))]
    return f"{min(ratios):.2f} to {max(ratios):.2f}"


def in_last_window(rows: Sequence[Row], cone: str, other: str = "peeking") -> Compared:
    """What the paper draws."""
    width = first_width(rows, cone, "last_width") / first_width(rows, other, "last_width")
    return Compared(last_coverage(rows, cone), last_coverage(rows, other), width)


def in_all_windows(rows: Sequence[Row], cone: str, other: str = "peeking") -> Compared:
    """What one window can only hint at."""
    width = first_width(rows, cone) / first_width(rows, other)
    return Compared(mean(rows, f"{cone}_coverage"), mean(rows, f"{other}_coverage"), width)


def n_trials(rows: Sequence[Row]) -> int:
    """Number of LSTMs of each kind."""
    return len({row["trial"] for row in rows})


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
        whole[f"{title}; means over {n_trials(rows)} LSTMs."] = [
            {"LSTM": network, "scaled by": scaling, "interval": label}
            | {part: mean(held, f"{name}_{column}", one) for part, one in parts.items()}
            for network in NETWORKS
            for scaling in (TRAINING, OWN)
            for held in [chosen(rows, network, scaling)]
            for name, label in NAMES.items()
        ]
    held = chosen(rows, PLAIN)
    whole[
        f"Processor time with the plain LSTM, medians of repeats and LSTMs; the paper: {LSTM_SECONDS} s for the LSTM, "
        f"{NEURON_SECONDS} s for the neurons"
    ] = [
        {
            "what": words,
            "milliseconds": 1000 * seconds(held, name),
            "ratio to the LSTM": seconds(held, name) / seconds(held, "inference_seconds"),
            "ratio to the LSTM, one by one": seconds(held, name) / seconds(held, "one_by_one_seconds"),
        }
        for name, words in TIMES.items()
    ]
    return whole


def brief(rows: Sequence[Row]) -> dict[str, Sequence[Row]]:
    """The paper's cone and baseline, and ours: over all test windows, and for the last one."""
    lines = [
        (f"faithful, {words}", PLAIN, reading.scaling, name)
        for words, reading in READINGS.items()
        for name in (reading.cone, "peeking")
    ]
    lines += [("no leak", PLAIN, TRAINING, "baseline")]
    lines += [("better", RESIDUAL, TRAINING, name) for name in ("static", "baseline", "updated", "following")]
    n = int(rows[0]["n_windows"])
    return {
        f"All {n} test windows, and the last one; widths in units of the training rows' range": [
            {
                "form": form,
                "LSTM": network,
                "interval": SHORT[name],
                "coverage": mean(held, f"{name}_coverage"),
                f"width, steps 1 to {FIRST}": first_width(held, name),
                "width, all steps": mean(held, f"{name}_width"),
                "coverage, last window": last_coverage(held, name),
                f"width, steps 1 to {FIRST}, last window": first_width(held, name, "last_width"),
            }
            for form, network, scaling, name in lines
            for held in [chosen(rows, network, scaling)]
        ]
    }


def headline(rows: Sequence[Row]) -> str:
    """What the tables show of the better form, in one sentence."""
    held = chosen(rows, RESIDUAL)
    static, moved, baseline = (mean(held, f"{name}_coverage") for name in ("static", "updated", "baseline"))
    return (
        f"Around an LSTM that adds to the last close, over {int(rows[0]['n_windows'])} test windows and all steps, the "
        f"static cone covers {static:.3f}, the updated one {moved:.3f}, the baseline {baseline:.3f} where {LEVEL} were "
        "asked for."
    )


def finding(rows: Sequence[Row]) -> str:
    """What becomes of the paper's claims, that of times last."""
    return f"{on_cones(rows)} {on_time(rows)}"


def on_cones(rows: Sequence[Row]) -> str:
    """What becomes of the paper's claims of widths and coverage."""
    said = [_on_reading(rows, words) for words in READINGS]
    return " ".join([*said, _on_networks(rows), headline(rows), _on_better(rows), _against_updated(rows)])


def _on_reading(rows: Sequence[Row], words: str) -> str:
    """The paper's claims in the paper's setting, and over all windows."""
    cone, scaling = READINGS[words]
    held = chosen(rows, PLAIN, scaling)
    last, everywhere = in_last_window(held, cone), in_all_windows(held, cone)
    steps = max(int(row["step"]) for row in held)
    first, final = (mean(held, f"{cone}_width", [step]) for step in (1, steps))
    return (
        f"By the {words} (plain LSTM, {'earlier windows' if cone == 'printed' else 'all validation windows'} to learn "
        f"from, scaled by the range of the {scaling}), in the last window the cone and the paper's baseline, which "
        f"knows that window's errors, cover {last.coverage:.2f} and {last.baseline:.2f} of the steps, and over the "
        f"first {FIRST} steps the cone has {last.width:.2f} of the baseline's width; over all windows they cover "
        f"{everywhere.coverage:.3f} and {everywhere.baseline:.3f}, and the ratio is {everywhere.width:.2f}. One step "
        f"ahead the cone has {first / final:.2f} of its width at step {steps}."
    )


def _on_networks(rows: Sequence[Row]) -> str:
    """What the ratio of widths in the last window depends on: how near to the last close the LSTM has learned to be."""
    said = []
    for network in NETWORKS:
        ratios = [in_last_window(chosen(rows, network, scaling), cone).width for cone, scaling in READINGS.values()]
        held = chosen(rows, network)
        off = mean(held, "rmse", [1]) / mean(held, "last_close_rmse", [1])
        spread = width_range(held, READINGS["text"].cone)
        said.append(
            f"{network}: {' and '.join(f'{ratio:.2f}' for ratio in ratios)} (text, by LSTM: {spread}), "
            f"{mean(held, 'epochs'):.0f} epochs, "
            f"{off:.2f} times the error of the last close itself one step ahead"
        )
    return (
        "That ratio in the last window by text and scripts depends on how well the LSTM has learned that tomorrow is "
        f"near today ({'; '.join(said)})."
    )


def _on_better(rows: Sequence[Row]) -> str:
    """Width and coverage of pimeter's cones beside both baselines."""
    held = chosen(rows, RESIDUAL)
    said = []
    for name in ("static", "updated"):
        parts = [
            f"{first_width(held, name) / first_width(held, other):.2f} of {words}"
            for other, words in _BASELINES.items()
        ]
        said.append(f"Over the first {FIRST} steps the {name} cone has {' and '.join(parts)}.")
    off = {name: abs(mean(held, f"{name}_coverage") - LEVEL) for name in ("static", "updated", "peeking")}
    nearer = [f"the {name} cone" for name in ("static", "updated") if off[name] < off["peeking"]]
    last = max(int(row["step"]) for row in held)
    spread = [mean(held, "updated_coverage", [step]) for step in (1, last)]
    said.append(
        f"The paper's baseline covers {mean(held, 'peeking_coverage'):.3f}; nearer to {LEVEL} than that: "
        f"{' and '.join(nearer) or 'none of the cones'}. By step, the updated cone covers from {spread[0]:.3f} (step "
        f"1) to {spread[1]:.3f} (step {last})."
    )
    return " ".join(said)


def _against_updated(rows: Sequence[Row]) -> str:
    """What updating alone does for the baseline."""
    updated = in_all_windows(chosen(rows, RESIDUAL), "updated", "following")
    return (
        f"Updated as well, the baseline covers {updated.baseline:.3f}, and the updated cone has {updated.width:.2f} of "
        f"its width over the first {FIRST} steps."
    )


_BASELINES = {
    "baseline": "the width of the baseline",
    "peeking": "that of the paper's, which knows the errors of the test window",
}


class Cost(NamedTuple):
    """Seconds of the neurons and of the LSTM."""

    neurons: float
    network: float

    @property
    def ratio(self) -> float:
        return self.neurons / self.network

    def __str__(self) -> str:
        return f"{self.ratio:.2f} ({self.neurons:.2g} s of {self.network:.2g} s)"


PUBLISHED_COST = Cost(NEURON_SECONDS, LSTM_SECONDS)


def seconds(rows: Sequence[Row], name: str) -> float:
    """Median over LSTMs."""
    return float(np.median([float(row[name]) for row in rows]))


def costs(rows: Sequence[Row]) -> dict[str, Cost]:
    """What the paper's neurons cost beside its LSTM, in both readings of the paper's two times."""
    held = chosen(rows, PLAIN)
    return {words: Cost(*(seconds(held, name) for name in pair)) for words, pair in PAIRS.items()}


def cost_range(rows: Sequence[Row], words: str) -> str:
    """The ratios of single LSTMs."""
    neurons, network = PAIRS[words]
    ratios = [float(row[neurons]) / float(row[network]) for row in chosen(rows, PLAIN)]
    return f"{min(ratios):.2f} to {max(ratios):.2f}"


def on_time(rows: Sequence[Row]) -> str:
    """What the neurons cost beside the LSTM, and why the paper's ratio may be another."""
    held = chosen(rows, PLAIN)
    said = [f"{words} {cost}, by LSTM {cost_range(rows, words)}" for words, cost in costs(rows).items()]
    ours = seconds(held, "neuron_seconds")
    return (
        f"In processor time, the neurons as printed ({mean(held, 'descent_steps'):,.0f} steps each from all windows) "
        f"take, of the plain LSTM's inference: {'; '.join(said)}; the paper: {PUBLISHED_COST}. Medians over LSTMs: "
        f"where one neuron creeps, all others wait for it. Pimeter's cone takes {1000 * ours:.1f} ms, "
        f"{ours / seconds(held, 'inference_seconds'):.2f} of the inference of all windows at once."
    )


SHORT = {
    "static": "pimeter's cone, static",
    "updated": "pimeter's cone, updated",
    "printed": "neurons as printed, from earlier windows",
    "leaking": "neurons as printed, from all windows",
    "baseline": "baseline, static",
    "following": "baseline, updated",
    "peeking": "the paper's baseline, from the test window's own errors",
}
LINES: dict[str, dict[str, Any]] = {
    "printed": {"color": "#0072b2", "linewidth": 2},
    "leaking": {"color": "#56b4e9", "linewidth": 2},
    "static": {"color": "#cc79a7", "linewidth": 2},
    "updated": {"color": "#007a5a", "linewidth": 2},
    "baseline": {"color": "#cc79a7", "linestyle": "--"},
    "following": {"color": "#007a5a", "linestyle": "--"},
    "peeking": {"color": "#e69f00", "linestyle": (0, (3, 1, 1, 1))},
}
# Rows of panels: kind of LSTM, scale, and what is drawn.
ROWS = {
    "By the text: plain LSTM": (PLAIN, TRAINING, ("printed", "baseline", "peeking")),
    "By the scripts: plain LSTM, own scale": (PLAIN, OWN, ("leaking", "peeking")),
    "Ours: LSTM adds to last close": (RESIDUAL, TRAINING, ("static", "updated", "baseline", "following", "peeking")),
}


def figure(rows: Sequence[Row], path: Path) -> None:
    """The last window of the first trial, and coverage and width by step over all test windows."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(12, 10), layout="constrained")
    panels = canvas.subplots(len(ROWS), 3, sharex=True, sharey="col")
    steps = np.array(sorted({int(row["step"]) for row in rows}))
    handles: dict[str, Any] = {}
    for (window, coverage, width), (words, (network, scaling, names)) in zip(panels, ROWS.items(), strict=True):
        held = chosen(rows, network, scaling)
        own = [[row for row in held if row["trial"] == trial] for trial in range(n_trials(held))]
        forecast, closes = ([float(row[name]) for row in own[0]] for name in ("last_forecast", "last_close"))
        for name in names:
            half = np.array([float(row[f"{name}_last_width"]) for row in own[0]]) / 2
            window.plot(steps, np.stack([forecast - half, forecast + half], axis=1), **LINES[name])
            for panel, kind in ((coverage, "coverage"), (width, "width")):
                values = np.array([[float(row[f"{name}_{kind}"]) for row in trial] for trial in own])
                (handles[SHORT[name]],) = panel.plot(steps, values.mean(axis=0), **LINES[name])
                span, color = (values.min(axis=0), values.max(axis=0)), LINES[name]["color"]
                panel.fill_between(steps, *span, color=color, alpha=0.15, linewidth=0)
        (handles["forecast of the LSTM"],) = window.plot(steps, forecast, color="#d55e00", linewidth=1.2)
        (handles["what happened"],) = window.plot(steps, closes, "k.-", markersize=4, linewidth=0.8)
        handles[f"{LEVEL:.0%}, as asked for"] = coverage.axhline(LEVEL, color="0.4", linewidth=1, linestyle=":")
        window.set_title(words, loc="left", fontsize=11)
        window.set_ylabel("close, last window, first LSTM")
        coverage.set_ylabel("coverage")
        width.set_ylabel("mean width")
        for panel in (window, coverage, width):
            panel.tick_params(labelbottom=True, labelleft=True)
            panel.spines[["top", "right"]].set_visible(False)
    panels[0, 2].set_ylim(bottom=0)
    for panel in panels[-1]:
        panel.set_xlabel("days ahead")
    canvas.suptitle(
        f"Coverage and width: {int(rows[0]['n_windows']):,} test windows, mean and range of {n_trials(rows)} LSTMs; "
        "prices in units of the training rows' range; one scale per column"
    )
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
    unpublished=f"The paper prints two times here, {PUBLISHED_COST}, and no other numbers.",
    packages=("pimeter", "numpy", "scipy", "scikit-learn", "torch"),
)
