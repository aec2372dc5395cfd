"""Table 4 as the paper made it, and every reason that was tried for the uncertainties after calibration.

The printed neuron on Adult's test rows, on which training also stops and calibrators are fitted, as in the paper's
scripts. What could make uncertainties smaller after calibration, as published: networks that are trained for too long
and too sure of themselves, so that a calibrator has something to undo; neurons that are stopped after a few hundred
steps, on the long way from false answers at the threshold to the farthest ones; neurons that learn from mini-batches,
of which appendix C.4 speaks; Platt's map fitted to probabilities and not to log-odds. Each is tried with each.

Uncertainties are those of the scripts, half of a weight; by the text, whose delta is the weight, they are twice as
large, and PPV's, which has a square of them, more than that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from experiments.classifiers import LEVEL, deviation, like_printed, median, on_tolerances, scores, shuffled
from experiments.data import Array, Split, adult, classification_files
from experiments.printed import BETA, LEARNING_RATE, UNMOVED, after, descended, start
from experiments.protocol import Experiment, Row, Unit, paper_rows
from experiments.table4 import METRICS, TRAINING
from pimeter import calibrated_scores, calibration_error, quantile
from pimeter.paper import outcome_errors

NETWORKS = ("stopped on the test rows", "trained too long")
STEPS = (200, 300, 400)
NEURONS = ("printed", *(f"{n} steps" for n in STEPS), "mini-batches", "pimeter")
FAITHFUL = (NETWORKS[0], "printed")
CALIBRATIONS = ("uncalibrated", "Platt", "temperature")
BATCH = 128
N_EPOCHS = 15  # of mini-batches


@dataclass(frozen=True)
class Settings:
    """Runs; how long networks are trained at most, and too long, in small steps that see few rows each."""

    seed: int = 0
    n_runs: int = 20
    max_epochs: int = 60
    too_long: int = 60
    n_rows: int = 0  # 0: all
    test: float = 0.2
    held_out: float = 0.1


QUICK = Settings(n_runs=1, max_epochs=2, too_long=2, n_rows=4000)


def units(settings: Settings) -> list[Unit]:
    """One run each."""
    return [(i,) for i in range(settings.n_runs)]


def measure(settings: Settings, unit: Unit, rng: np.random.Generator) -> list[Row]:
    """A row for each network, calibration and neuron."""
    X, y, _ = adult()
    if settings.n_rows:
        some = rng.permutation(len(y))[: settings.n_rows]
        X, y = X[some], y[some]
    train, held_out, test = shuffled(len(y), settings.test, settings.held_out, rng)
    known = np.concatenate([train, held_out])
    long = settings.too_long
    ways = {
        NETWORKS[0]: (Split(known, test, test), replace(TRAINING, max_epochs=settings.max_epochs)),
        NETWORKS[1]: (
            Split(known, known[:4000], test),
            replace(TRAINING, learning_rate=0.01, batch_size=64, max_epochs=long, patience=long),
        ),
    }
    found: list[Row] = []
    for network, (split, how) in ways.items():
        true, raw = y[test], scores(X, y, [split], how, rng)[0, test]
        for calibration, score in _calibrated(true, raw).items():
            errors = outcome_errors(true, score)
            error = 100 * calibration_error(true, score, method="lower")
            for neuron, weights in _weights(errors, rng).items():
                row: Row = {"run": int(unit[0]), "network": network, "calibration": calibration, "neuron": neuron}
                found.append({**row, "calibration error": error, **_metrics(true, errors, weights)})
    return found


def _calibrated(true: Array, raw: Array) -> dict[str, Array]:
    """Scores as they are, and by calibrators that were fitted on these very rows."""
    plain = LogisticRegression(C=1e10).fit(raw[:, None], true)
    return {
        "uncalibrated": raw,
        "Platt": calibrated_scores(true, raw, raw, method="sigmoid"),
        "temperature": calibrated_scores(true, raw, raw, method="temperature"),
        "Platt on probabilities": plain.predict_proba(raw[:, None])[:, 1],
    }


def _weights(errors: Sequence[Array], rng: np.random.Generator) -> dict[str, list[float]]:
    """By each way to learn, the weights of the neurons for TN, TP, FN, FP; NaN for NA."""
    unknown = float("nan")
    neurons = [descended(part[:, None], LEVEL) if len(part) else None for part in errors]
    last = [float(one.quantile_[0]) if one else unknown for one in neurons]
    return {
        "printed": [one if abs(one - start(LEVEL)) > UNMOVED else unknown for one in last],
        **{f"{n} steps": [float(after(one, n)[0]) if one else unknown for one in neurons] for n in STEPS},
        "mini-batches": _by_batches(errors, rng),
        "pimeter": [float(quantile(part, LEVEL, reflect=True)) if len(part) else unknown for part in errors],
    }


def _by_batches(errors: Sequence[Array], rng: np.random.Generator) -> list[float]:
    """Adam in mini-batches of all rows; of each batch a neuron sees the errors of its own outcome."""
    values, kind = np.concatenate(errors), np.repeat(np.arange(4), [len(part) for part in errors])
    at, mean, square = np.full(4, start(LEVEL)), np.zeros(4), np.zeros(4)
    path: list[Array] = []
    step = 0
    for _ in range(N_EPOCHS):
        for rows in np.array_split(rng.permutation(len(values)), max(1, len(values) // BATCH)):
            step += 1
            own, e = kind[rows], values[rows]
            output = expit(BETA * (at[own] - e))
            n = np.maximum(np.bincount(own, minlength=4), 1)
            offset = np.bincount(own, output, 4) / n - LEVEL
            slope = BETA * np.bincount(own, output * (1 - output), 4) / n
            gradient = np.where(np.bincount(own, minlength=4) > 0, 2 * offset * slope, 0.0)
            mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
            unbiased, size = mean / (1 - 0.9**step), square / (1 - 0.999**step)
            at = at - LEARNING_RATE * unbiased / (np.sqrt(size) + 1e-8)
        path.append(at)
    return [float(x) for x in np.mean(path[-5:], axis=0)]


def _metrics(true: Array, errors: Sequence[Array], weights: Sequence[float]) -> Mapping[str, float]:
    """Metrics with half of the weights as the uncertainties of rates, propagated as printed."""
    tn, tp, _, fp = (len(part) for part in errors)
    negative, positive = float(np.sum(true == 0)), float(np.sum(true == 1))
    p_n = negative / len(true)
    d_tn, d_tp, _, d_fp = (w / 2 for w in weights)
    r_fp, r_tp, odds = fp / negative, tp / positive, negative / positive
    precision = tp / max(tp + fp, 1)
    series = r_fp / r_tp * d_tp / r_tp + d_fp / r_tp + odds * precision * (d_fp / r_tp) ** 2
    return {
        "R_FP": r_fp,
        "R_FP PIM": d_fp,
        "PPV": precision,
        "PPV PIM": odds * precision**2 * series,
        "ACC": (tn + tp) / len(true),
        "ACC PIM": p_n * d_tn + (1 - p_n) * d_tp,
    }


# What the rows say.

COLUMNS = [name for short in METRICS for name in (short, f"{short} PIM")]
DELTAS = COLUMNS[1::2]


def tables(rows: Sequence[Row]) -> dict[str, Sequence[Row]]:
    """The faithful form beside the paper's; then all that was tried."""
    names = list(dict.fromkeys(str(row["calibration"]) for row in rows))
    return {
        "The neuron as printed; networks stopped, and calibrators fitted, on the test rows: medians over runs": [
            {
                "calibration": name,
                "runs": len(_held(rows, *FAITHFUL, name)),
                **{column: _median(rows, *FAITHFUL, name, column) for column in COLUMNS},
            }
            for name in names[:3]
        ],
        "Deviations of these uncertainties over runs (the printed ones; * outside of half to twice these)": [
            {"calibration": name} | {f"{key} (+-)": _beside(rows, (name, key)) for key in DELTAS}
            for name in CALIBRATIONS
        ],
        "Half-widths of R_FP, all that was tried (medians over runs)": [
            {"network": network, "neuron": neuron}
            | {name: _median(rows, network, neuron, name, "R_FP PIM") for name in names}
            for network, neuron in product(NETWORKS, NEURONS)
        ],
    }


def _held(rows: Sequence[Row], network: str, neuron: str, calibration: str) -> list[Row]:
    wanted = (network, neuron, calibration)
    return [row for row in rows if (row["network"], row["neuron"], row["calibration"]) == wanted]


def _median(rows: Sequence[Row], network: str, neuron: str, calibration: str, column: str) -> float:
    return median([float(row[column]) for row in _held(rows, network, neuron, calibration)])


Cell: TypeAlias = tuple[str, str]  # a calibration and a column


def spread(rows: Sequence[Row], network: str, neuron: str, cell: Cell) -> float:
    """The median absolute deviation over runs."""
    calibration, column = cell
    return deviation([float(row[column]) for row in _held(rows, network, neuron, calibration)])


def printed_spreads() -> dict[Cell, float]:
    """The deviations that the paper prints."""
    paper = paper_rows("table4", "calibration")
    return {(name, key): float(paper[name][f"{key}_deviation"]) for name, key in product(CALIBRATIONS, DELTAS)}


def spreads_met(rows: Sequence[Row], network: str, neuron: str) -> list[Cell]:
    """Printed deviations that a form has, too."""
    return [
        cell
        for cell, printed in printed_spreads().items()
        if like_printed(spread(rows, network, neuron, cell), printed)
    ]


def _beside(rows: Sequence[Row], cell: Cell) -> str:
    star = "" if cell in spreads_met(rows, *FAITHFUL) else "*"
    return f"{spread(rows, *FAITHFUL, cell):.4f} ({printed_spreads()[cell]:.2f}){star}"


def steadied(values: Mapping[Cell, float]) -> list[bool]:
    """For each uncertainty and calibrator, whether the deviation is smaller than without it."""
    before, *after = CALIBRATIONS
    return [values[name, key] < values[before, key] for key, name in product(DELTAS, after)]


def met(rows: Sequence[Row], network: str, neuron: str, factor: float = 1.0) -> list[Cell]:
    """Printed values that a form gives; uncertainties times a factor, which is 2 where delta is the weight itself."""
    paper = paper_rows("table4", "calibration")
    values = {
        (name, key): (factor if key in DELTAS else 1.0) * _median(rows, network, neuron, name, key)
        for name, key in product(CALIBRATIONS, COLUMNS)
    }
    return [
        (name, key)
        for (name, key), value in values.items()
        if abs(value - float(paper[name][key])) <= float(paper[name][f"{key}_tolerance"])
    ]


def headline(rows: Sequence[Row]) -> str:
    """What the table shows, in one sentence."""
    values = [_median(rows, *FAITHFUL, name, "R_FP PIM") for name in CALIBRATIONS]
    return (
        f"R_FP's uncertainty by the neuron as printed: {values[0]:.2f} "
        f"({spread(rows, *FAITHFUL, (CALIBRATIONS[0], 'R_FP PIM')):.3f}) uncalibrated, {values[1]:.2f} after Platt's "
        f"map, {values[2]:.2f} after temperature scaling."
    )


class Tried(NamedTuple):
    """One form, network and neuron: the printed values that it gives, and the printed deviations."""

    network: str
    neuron: str
    values: list[Cell]
    spreads: list[Cell]

    @property
    def n_met(self) -> int:
        return len(self.values) + len(self.spreads)


def tried(rows: Sequence[Row]) -> list[Tried]:
    """All forms."""
    return [Tried(*form, met(rows, *form), spreads_met(rows, *form)) for form in product(NETWORKS, NEURONS)]


def explained(rows: Sequence[Row]) -> tuple[str, str]:
    """The form that gives all that is printed, or that none does and which is the nearest; and what that one misses."""
    paper = paper_rows("table4", "calibration")
    forms = tried(rows)
    found = max(forms, key=lambda form: form.n_met)
    faithful = next(form for form in forms if (form.network, form.neuron) == FAITHFUL)
    cells = list(product(CALIBRATIONS, COLUMNS))
    whole = len(cells) + len(printed_spreads())
    gained, lost = (
        [cell for cell in here.values if cell not in there.values]
        for here, there in ((found, faithful), (faithful, found))
    )
    left = [
        f"{name} {key} {_median(rows, found.network, found.neuron, name, key):.2f} for {float(paper[name][key]):.2f}"
        for name, key in cells
        if (name, key) not in found.values
    ]
    form = f"networks {found.network}, neurons {found.neuron}"
    return (
        f"met with {form}"
        if found.n_met == whole
        else f"no one form gives all; nearest of {len(forms)}: {form} ({len(found.values)} of {len(cells)} values, "
        f"{len(found.spreads)} of {whole - len(cells)} deviations): meets {len(gained)} of the "
        f"{len(cells) - len(faithful.values)} values missed, misses {len(lost)} others",
        f"it misses {', '.join(left) or 'no value'}",
    )


def finding(rows: Sequence[Row]) -> str:
    """What is met as printed, in which reading, and whether anything that was tried gives all."""
    printed = printed_spreads()
    ours = {cell: spread(rows, *FAITHFUL, cell) for cell in printed}
    here, there = steadied(ours), steadied(printed)
    of_text = [cell for cell in met(rows, *FAITHFUL, 2.0) if cell[1] in DELTAS]
    reason, left = explained(rows)
    return (
        f"{headline(rows)} By the text's delta, the weight itself and not half of it, uncertainties are twice as large "
        f"(PPV's more): {len(of_text)} of {len(printed)} are met. Deviations over runs are {min(ours.values()):.4f} to "
        f"{max(ours.values()):.4f}, where {min(printed.values()):.2f} to {max(printed.values()):.2f} are printed; "
        f"{len(spreads_met(rows, *FAITHFUL))} of {len(printed)} are from half to twice the printed one. Calibration "
        f"makes {sum(here)} of {len(here)} deviations smaller, {sum(there)} of them in print. What gives the printed "
        f"numbers: {reason}; {left}. {on_tolerances('table4', 'calibration')}"
    )


EXPERIMENT = Experiment(
    name="table4",
    columns="paper",
    title="Adult by the neuron as printed, and what was tried for the missed values (Table 4, faithful)",
    settings=Settings(),
    quick=QUICK,
    units=units,
    measure=measure,
    tables=tables,
    headline=headline,
    finding=finding,
    keys=("calibration",),
    reads=lambda _: classification_files(["adult"]),
    packages=("pimeter", "numpy", "scipy", "scikit-learn", "torch"),
)
