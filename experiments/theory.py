"""The paper's statements without a table: Theorems 1 and 2, section 2.3, the lemma, its corollary, the propagation.

Each is simulated as it is printed, and beside it stands what should be done instead. *Theorem 1*: absolute normal
errors, level .95; how far is the weight from the true quantile as the sample grows, and as beta does? *Section 2.3*:
skewed errors, relocated to median 0 by the rows that calibrate, or by others. *Theorem 2*: perfectly calibrated scores
from Beta(.5, .5), in the usual sense, P(Y = 1 | q) = q, or in the printed one, P([Y^] = Y | Y^ = q) = q. Beside the
quantiles r of the errors stand the half-widths of the rates that they should be, and Wilson's interval of the accuracy;
how often has F_l = p, normalised by |v_l| as printed, a root at all? *Proof of theorem 2*: are P(Y^ > tau) and
P([Y^] = Y) equal? *Lemma*: how normal are the rates? *Corollary*: its two variances beside the simulated one.
*Propagation*: the printed series beside the largest change in the box, and beside rates that are drawn.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy.special import ndtri
from sklearn.exceptions import ConvergenceWarning

from experiments.printed import Array, printed_neuron
from experiments.protocol import Experiment, Row, Unit, Value
from pimeter import quantile
from pimeter.paper import outcome_errors
from pimeter.paper.outcomes import propagated

LEVEL = 0.95
Z = float(ndtri((1 + LEVEL) / 2))  # also the true quantile of absolute normal errors
BETAS = (1e3, 1e4, 1e5)  # the paper's, and nearer to infinity
RATES = {"TN": 0.62, "TP": 0.93, "FN": 0.07, "FP": 0.38}  # about Adult's
CLASSES = {"TN": "N", "TP": "P", "FN": "P", "FP": "N"}
P_N = 0.24
N_ADULT = 9_769  # its test rows
DELTAS = {
    "PIM's": {"TN": 0.23, "TP": 0.2, "FN": 0.2, "FP": 0.23},
    "binomial": {
        name: Z * float(np.sqrt(rate * (1 - rate) / (N_ADULT * (P_N if CLASSES[name] == "N" else 1 - P_N))))
        for name, rate in RATES.items()
    },
}
METRICS = ("R*_TP", "R*_TN", "F1")
VARIANCES = ("printed: p_N^2 var(R_TN) + p_P^2 var(R_TP)", "mu (1 - mu) / m")
DRAWN = ("ratio", "ratio, numbers of each class fixed")  # to the simulated deviation where rows, or classes, are drawn
USUAL, PRINTED = "theorem 2", "theorem 2, premise as printed"
TEXT, SCRIPTS, WILSON = "delta = r (text)", "delta = r / 2 (scripts, tables)", "Wilson"
LEMMA, HALF = "normal, by the lemma", "half-width of"
PROOF, SIDES = "proof of theorem 2", ("P(Y^ > tau)", "P([Y^] = Y)")
PREMISES = {USUAL: "usual premise", PRINTED: "premise as printed"}
SCORES = {"Beta(.5, .5)": (0.5, 0.5), "Beta(3, 1)": (3.0, 1.0)}
SERIES, BOX, SAMPLED = "printed", "largest change in the box", "half-width of independent normal rates"


@dataclass(frozen=True)
class Settings:
    """Sample lengths and repeats of each simulation."""

    seed: int = 0
    lengths: tuple[int, ...] = (20, 100, 1000, 10_000)
    n_descents: int = 100
    n_repeats: int = 1000


QUICK = Settings(lengths=(20, 100), n_descents=3, n_repeats=50)


def units(settings: Settings) -> list[Unit]:
    """One per statement and size."""
    sized = product(("theorem 1", "section 2.3", USUAL, PRINTED, "lemma", "corollary"), settings.lengths)
    return [*sized, (PROOF, 1000 * settings.n_repeats), ("propagation", N_ADULT)]


def measure(settings: Settings, unit: Unit, rng: np.random.Generator) -> list[Row]:
    """Rows of one statement: form, beta where it matters, what was measured, its value, and from how many repeats."""
    name, m = str(unit[0]), int(unit[1])
    measured: dict[str, Callable[[Settings, int, np.random.Generator], list[Row]]] = {
        "theorem 1": _consistency,
        "section 2.3": _relocation,
        USUAL: _accuracy,
        PRINTED: lambda *of: _accuracy(*of, premise=PRINTED),
        PROOF: _identity,
        "lemma": _normality,
        "corollary": _variances,
        "propagation": _propagation,
    }
    return [{"statement": name, "m": m, **row} for row in measured[name](settings, m, rng)]


def _row(form: str, measured: str, value: float | np.floating[Any], n: int, beta: float | str = "") -> Row:
    return {"form": form, "beta": beta, "measured": measured, "value": float(value), "n": n}


def _consistency(settings: Settings, m: int, rng: np.random.Generator) -> list[Row]:
    """Distance of weights from the true quantile, by beta, for the same errors."""
    errors, n = np.abs(rng.standard_normal((m, settings.n_descents))), settings.n_descents

    def off(weights: Array) -> float:
        return float(np.sqrt(np.mean((weights - Z) ** 2)))

    rows: list[Row] = []
    for beta in BETAS:
        neuron = printed_neuron(LEVEL).set_params(beta=beta)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # counted
            neuron.fit(errors)
        rows.append(_row("printed", "RMSE", off(np.asarray(neuron.quantile_)), n, beta))
        rows.append(_row("printed", "stalled", float(np.mean(~np.asarray(neuron.converged_))), n, beta))
        rows.append(_row("root", "RMSE", off(np.asarray(quantile(errors, LEVEL, axis=0, beta=beta))), n, beta))
    ours = np.asarray(quantile(errors, LEVEL, axis=0, reflect=True))
    return [*rows, _row("pimeter", "RMSE", off(ours), n, "auto")]


def _relocation(settings: Settings, m: int, rng: np.random.Generator) -> list[Row]:
    """Coverage and half-width of f -+ r for skewed errors of mean 0, with and without relocation."""
    draws = rng.standard_exponential((settings.n_repeats, m)) - 1.0
    others = rng.standard_exponential((settings.n_repeats, m)) - 1.0
    rows: list[Row] = []
    centres = {
        "not relocated": np.zeros(settings.n_repeats),
        "printed: by the rows that calibrate": np.median(draws, axis=1),
        "by other rows": np.median(others, axis=1),
    }
    for form, centre in centres.items():
        margin = np.asarray(quantile(np.abs(draws - centre[:, None]), LEVEL, axis=1, beta=BETAS[0]))
        low, high = np.maximum(centre - margin, -1.0), np.maximum(centre + margin, -1.0)
        coverage = np.exp(-(low + 1.0)) - np.exp(-(high + 1.0))
        rows.append(_row(form, "coverage", float(coverage.mean()), settings.n_repeats, BETAS[0]))
        rows.append(_row(form, "half-width", float(margin.mean()), settings.n_repeats, BETAS[0]))
    return rows


def calibrated(n: int, parameters: tuple[float, float], premise: str, rng: np.random.Generator) -> tuple[Array, Array]:
    """Scores from a beta distribution, and true classes of which they are the probabilities that the premise says."""
    score = rng.beta(*parameters, n)
    chosen = rng.uniform(size=n) < score
    return score, (chosen if premise == USUAL else chosen == (score > 0.5)).astype(float)


def _accuracy(settings: Settings, n: int, rng: np.random.Generator, *, premise: str = USUAL) -> list[Row]:
    """The quantiles of Theorem 2 beside the half-widths of the rates, and as ranges of the accuracy beside Wilson's."""
    from statsmodels.stats.proportion import proportion_confint

    confidence = 0.5 + 1.0 / np.pi  # E max(q, 1 - q) of Beta(.5, .5)
    truth = confidence if premise == USUAL else 0.5
    repeats = min(settings.n_repeats, max(50, 2_000_000 // n))
    ranges: dict[str, list[tuple[float, float]]] = {TEXT: [], SCRIPTS: [], WILSON: []}
    quantiles, rates, rootless = [], [], []
    for _ in range(repeats):
        score, true = calibrated(n, SCORES["Beta(.5, .5)"], premise, rng)
        parts = dict(zip(RATES, outcome_errors(true, score), strict=True))
        right, n_negative = len(parts["TN"]) + len(parts["TP"]), int(np.sum(true == 0))
        if not (len(parts["TN"]) and len(parts["TP"])):
            continue
        size = {"N": n_negative, "P": n - n_negative}
        r = {name: float(quantile(e, LEVEL, reflect=True)) if len(e) else np.nan for name, e in parts.items()}
        delta = (size["N"] * r["TN"] + size["P"] * r["TP"]) / n
        for form, half in ((TEXT, delta), (SCRIPTS, delta / 2)):
            ranges[form].append((right / n - half, right / n + half))
        ranges[WILSON].append(proportion_confint(right, n, 1 - LEVEL, method="wilson"))
        own = {name: len(e) / size[CLASSES[name]] for name, e in parts.items()}
        quantiles.append([*r.values()])
        rates.append([Z * np.sqrt(rate * (1 - rate) / size[CLASSES[name]]) for name, rate in own.items()])
        rootless.append(min(own["TN"], own["TP"]) < LEVEL)
    rows = [
        _row(form, f"{HALF} R_{name}", value, len(found))
        for form, found in (("r", quantiles), (LEMMA, rates))
        for name, value in zip(RATES, np.nanmedian(found, axis=0), strict=True)
    ]
    for form, bounds in ((form, np.array(found)) for form, found in ranges.items()):
        rows.append(_row(form, "width of the accuracy", np.median(np.ptp(bounds, axis=1)), len(bounds)))
        holds = np.mean((bounds[:, 0] <= truth) & (truth <= bounds[:, 1]))
        rows.append(_row(form, "holds the accuracy", holds, len(bounds)))
    return [*rows, _row("r", "F_l = p of a true outcome has no root", np.mean(rootless), len(rootless))]


def _identity(_settings: Settings, n: int, rng: np.random.Generator) -> list[Row]:
    """The two probabilities that the proof of Theorem 2 equates."""
    rows: list[Row] = []
    for (name, parameters), (premise, said) in product(SCORES.items(), PREMISES.items()):
        score, true = calibrated(n, parameters, premise, rng)
        predicted = score > 0.5
        for side, value in zip(SIDES, (np.mean(predicted), np.mean(predicted == true)), strict=True):
            rows.append(_row(f"{said}, {name}", side, value, n))
    return rows


def _normality(settings: Settings, m: int, rng: np.random.Generator) -> list[Row]:
    """Rates less their mean, by the deviation that the lemma gives: their own deviation, and how many are within z."""
    repeats = 20 * settings.n_repeats
    negatives = rng.binomial(m, P_N, repeats)
    rows: list[Row] = []
    for name, size in (("TN", negatives), ("TP", m - negatives)):  # R_FP and R_FN are 1 less these
        held, rate = size[size > 0], RATES[name]
        away = (rng.binomial(held, rate) / held - rate) / np.sqrt(rate * (1 - rate) / held)
        rows.append(_row(f"R_{name}", "deviation by the lemma's", np.std(away), len(held)))
        rows.append(
            _row(f"R_{name}", f"within {Z:.2f} of the lemma's deviations", np.mean(np.abs(away) <= Z), len(held))
        )
    return rows


def _variances(settings: Settings, m: int, rng: np.random.Generator) -> list[Row]:
    """Standard deviations of the accuracy, as a ratio to the simulated one."""
    repeats = 20 * settings.n_repeats
    mean = P_N * RATES["TN"] + (1 - P_N) * RATES["TP"]
    parts = [p * RATES[rate] * (1 - RATES[rate]) for p, rate in ((P_N, "TN"), (1 - P_N, "TP"))]
    variances = dict(zip(VARIANCES, (sum(parts) / m, mean * (1 - mean) / m), strict=True))
    rows: list[Row] = []
    for measured in DRAWN:
        negatives = rng.binomial(m, P_N, repeats) if measured == DRAWN[0] else np.full(repeats, round(m * P_N))
        right = rng.binomial(negatives, RATES["TN"]) + rng.binomial(m - negatives, RATES["TP"])
        simulated = np.std(right / m)
        rows += [_row(form, measured, np.sqrt(one) / simulated, repeats) for form, one in variances.items()]
    return rows


def metric(name: str, tn: Any, tp: Any, fn: Any, fp: Any) -> Any:
    """Precision, negative predictive value or F1, by the four rates."""
    tn, tp, fn, fp = P_N * tn, (1 - P_N) * tp, (1 - P_N) * fn, P_N * fp
    return {"R*_TP": tp / (tp + fp), "R*_TN": tn / (tn + fn), "F1": 2 * tp / (2 * tp + fn + fp)}[name]


def series(name: str, rates: Mapping[str, float], delta: Mapping[str, float]) -> float:
    """The printed delta of R*_TP or R*_TN."""
    true, false, odds = ("TP", "FP", P_N / (1 - P_N)) if name == "R*_TP" else ("TN", "FN", (1 - P_N) / P_N)
    value, step = metric(name, *rates.values()), delta[false] / rates[true]
    first = rates[false] / rates[true] * delta[true] / rates[true] + step
    return float(odds * value**2 * (first + odds * value * step**2))


def _propagation(settings: Settings, _m: int, rng: np.random.Generator) -> list[Row]:
    """delta of three metrics: as printed (F1: by the general formula), at most in the box, and of rates drawn."""
    n, at = 200 * settings.n_repeats, np.array([*RATES.values()])
    rows: list[Row] = []
    for (kind, delta), name in product(DELTAS.items(), METRICS):
        half = np.array([*delta.values()])
        printed = propagated(lambda *r: metric("F1", *r), at, half) if name == "F1" else series(name, RATES, delta)
        corners = [
            metric(name, *np.clip(at + np.array(signs) * half, 0.0, 1.0)) for signs in product((-1, 1), repeat=4)
        ]
        drawn = metric(name, *np.clip(at + half / Z * rng.standard_normal((n, 4)), 0.0, 1.0).T)
        low, high = np.quantile(drawn, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
        box = max(abs(corner - metric(name, *at)) for corner in corners)
        found = ((SERIES, printed, 1), (BOX, box, len(corners)), (SAMPLED, (high - low) / 2, n))
        rows += [_row(form, f"delta {name}, rates' deltas {kind}", value, repeats) for form, value, repeats in found]
    return rows


# What the rows say.


def value(
    rows: Sequence[Row], statement: str, form: str, measured: str, m: int | None = None, beta: float | None = None
) -> float:
    """One stored number; of the largest sample where no size is given."""
    held = [
        r
        for r in rows
        if (r["statement"], r["form"], r["measured"]) == (statement, form, measured) and beta in (None, r["beta"])
    ]
    at = max(int(r["m"]) for r in held) if m is None else m
    return float(next(r for r in held if r["m"] == at)["value"])


def lengths(rows: Sequence[Row], statement: str) -> list[int]:
    """Sample lengths of a statement, the shortest first."""
    return sorted({int(row["m"]) for row in rows if row["statement"] == statement})


def rootless(rows: Sequence[Row]) -> float:
    """In what part of the longest samples a neuron of Theorem 2 has no root, by the usual premise."""
    return value(rows, USUAL, "r", "F_l = p of a true outcome has no root")


def ratios_of_deltas(rows: Sequence[Row], form: str) -> list[float]:
    """The printed deltas of all metrics by those of another form."""
    names = [f"delta {name}, rates' deltas {kind}" for kind, name in product(DELTAS, METRICS)]
    return [value(rows, "propagation", SERIES, name) / value(rows, "propagation", form, name) for name in names]


def tables(rows: Sequence[Row]) -> dict[str, Sequence[Row]]:
    """For each statement one table, a column for each size; for each form where there is one size."""
    found: dict[str, dict[tuple[str, ...], dict[str, Value]]] = {}
    for r in rows:
        form, measured, beta = str(r["form"]), str(r["measured"]), _said(r["beta"])
        title = f"{r['statement']}{', rates' if measured.startswith(HALF) else ''}".capitalize()
        line: dict[str, Value] = {"form": form, **({"beta": beta} if beta else {}), "measured": measured}
        column = f"m = {r['m']}"
        if len(lengths(rows, str(r["statement"]))) == 1:
            line, column = {"measured": measured}, form
        found.setdefault(title, {}).setdefault(tuple(map(str, line.values())), line)[column] = float(r["value"])
    return {title: list(lines.values()) for title, lines in found.items()}


def _said(beta: float | str) -> str:
    return beta if isinstance(beta, str) else f"{beta:,.0f}"


def headline(rows: Sequence[Row]) -> str:
    """What the simulations show, in one sentence."""
    few, most = (pick(lengths(rows, "theorem 1")) for pick in (min, max))
    early, late = (value(rows, "theorem 1", "printed", "stalled", m, BETAS[0]) for m in (few, most))
    return (
        f"Of the neurons as printed {100 * early:.0f} % stall with {few} errors and {100 * late:.0f} % with "
        f"{most:,}; the range of Theorem 2 does not shrink with the number of rows."
    )


def finding(rows: Sequence[Row]) -> str:
    """What becomes of each statement."""
    most, few = max(lengths(rows, "theorem 1")), min(lengths(rows, "section 2.3"))
    off = {
        form: ", ".join(f"{value(rows, 'theorem 1', form, 'RMSE', beta=beta):.3f}" for beta in BETAS)
        for form in ("printed", "root")
    }
    width = {form: value(rows, USUAL, form, "width of the accuracy") for form in (TEXT, SCRIPTS, WILSON)}
    (printed, whole), (fixed, fixed_whole) = (
        [value(rows, "corollary", form, measured) for form in VARIANCES] for measured in DRAWN
    )
    covered = {
        form: value(rows, "section 2.3", form, "coverage", few)
        for form in ("not relocated", "printed: by the rows that calibrate", "by other rows")
    }
    relocated = ", ".join(f"{fraction:.3f} ({form})" for form, fraction in covered.items())
    box, drawn = (ratios_of_deltas(rows, form) for form in (BOX, SAMPLED))
    said = [
        headline(rows),
        f"With {most:,} errors and beta {', '.join(_said(beta) for beta in BETAS)} the RMSE of the weight is",
        f"{off['printed']} as printed and {off['root']} as the root;",
        f"{value(rows, 'theorem 1', 'pimeter', 'RMSE'):.3f} by pimeter.",
        f"Section 2.3, {few} errors: coverage {relocated}.",
        f"Theorem 2 with {max(lengths(rows, USUAL)):,} rows: the range of the accuracy is {width[TEXT]:.3f} wide by",
        f"the text, {width[SCRIPTS]:.3f} by the scripts, Wilson's interval {width[WILSON]:.3f}; normalised by the size",
        f"of the class, as printed, a neuron has no root in {100 * rootless(rows):.0f} % of the samples.",
        f"Corollary: the printed sum is {printed:.2f} of the simulated deviation, its limit {whole:.2f}; with the",
        f"numbers of each class fixed {fixed:.2f} and {fixed_whole:.2f}.",
        f"Propagation: the printed deltas are {min(box):.2f} to {max(box):.2f} times the largest change in the box and",
        f"{min(drawn):.2f} to {max(drawn):.2f} times the half-width of independent normal rates.",
    ]
    return " ".join(said)


EXPERIMENT = Experiment(
    name="theory",
    title="theorems, lemma and corollary, relocation and propagation, simulated as printed",
    settings=Settings(),
    quick=QUICK,
    units=units,
    measure=measure,
    tables=tables,
    headline=headline,
    finding=finding,
    unpublished="The paper proves these statements and measures none of them.",
    packages=("pimeter", "numpy", "scipy", "scikit-learn", "statsmodels"),
)
