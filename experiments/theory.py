"""The paper's statements without a table: Theorem 1, the error bound of A.1, section 2.3, Theorem 2, its corollary.

Each is simulated as it is printed, and beside it stands what should be done instead. *Theorem 1*: absolute normal
errors, level .95; how far is the weight from the true quantile as the sample grows? *A.1*: is the printed error bound
one for the distance between the trained weight and the root? *Section 2.3*: skewed errors, relocated to median 0 by the
rows that calibrate, or by others. *Theorem 2*: perfectly calibrated scores from Beta(.5, .5); its range for the
accuracy beside Wilson's, and how often F_l = p, normalised by |v_l| as printed, has a root at all. *Corollary*: its two
variances beside the simulated one. *Propagation*: the printed series beside the largest change in the box.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy.special import ndtri

from experiments.printed import BETA, trained
from experiments.protocol import Experiment, Row, Unit
from pimeter import quantile
from pimeter.paper import outcome_errors
from pimeter.paper.outcomes import propagated

LEVEL = 0.95
RATES = {"TN": 0.62, "TP": 0.93, "FN": 0.07, "FP": 0.38}  # about Adult's
DELTAS = {"TN": 0.23, "TP": 0.2, "FN": 0.2, "FP": 0.23}
P_N = 0.24
VARIANCES = ("printed: p_N^2 var(R_TN) + p_P^2 var(R_TP)", "mu (1 - mu) / m")
DRAWN = ("ratio", "ratio, numbers of each class fixed")  # to the simulated deviation where rows, or classes, are drawn
ROUNDING = 1e-6  # of both solvers


@dataclass(frozen=True)
class Settings:
    """Sample lengths and repeats of each simulation."""

    seed: int = 0
    lengths: tuple[int, ...] = (20, 100, 1000, 10_000)
    n_descents: int = 20
    n_repeats: int = 1000


QUICK = Settings(lengths=(20, 100), n_descents=3, n_repeats=50)


def units(settings: Settings) -> list[Unit]:
    """One per statement and size."""
    sized = product(("theorem 1", "section 2.3", "theorem 2", "corollary"), settings.lengths)
    return [*sized, ("propagation", 1)]


def measure(settings: Settings, unit: Unit, rng: np.random.Generator) -> list[Row]:
    """Rows of one statement: form, what was measured, its value, and from how many repeats."""
    name, m = str(unit[0]), int(unit[1])
    found = {
        "theorem 1": _consistency,
        "section 2.3": _relocation,
        "theorem 2": _accuracy,
        "corollary": _variances,
        "propagation": _propagation,
    }[name](settings, m, rng)
    return [{"statement": name, "m": m, **row} for row in found]


def _row(form: str, measured: str, value: float | np.floating[Any], n: int) -> Row:
    return {"form": form, "measured": measured, "value": float(value), "n": n}


def _consistency(settings: Settings, m: int, rng: np.random.Generator) -> list[Row]:
    """Distance from the true quantile, and the printed bound of the distance from the root."""
    errors = np.abs(rng.standard_normal((m, settings.n_descents)))
    truth, n = float(ndtri((1 + LEVEL) / 2)), settings.n_descents
    printed, arrived, bound = trained(errors, LEVEL)
    root = np.asarray(quantile(errors, LEVEL, axis=0, beta=BETA))
    ours = np.asarray(quantile(errors, LEVEL, axis=0, reflect=True))
    moved = np.where(np.isnan(printed), 0.0, printed)  # a neuron that never moved stands next to 0
    forms = {"printed": moved, "root, beta 1000": root, "pimeter": ours}
    rows = [_row(form, "RMSE", np.sqrt(np.mean((w - truth) ** 2)), n) for form, w in forms.items()]
    rows.append(_row("printed", "stalled", float(np.mean(~arrived)), n))
    within = np.abs(moved - root) <= bound + ROUNDING
    rows.append(_row("printed", "distance to the root within the bound of A.1", float(np.mean(within)), n))
    return rows


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
        margin = np.asarray(quantile(np.abs(draws - centre[:, None]), LEVEL, axis=1, beta=BETA))
        low, high = np.maximum(centre - margin, -1.0), np.maximum(centre + margin, -1.0)
        coverage = np.exp(-(low + 1.0)) - np.exp(-(high + 1.0))
        rows.append(_row(form, "coverage", float(coverage.mean()), settings.n_repeats))
        rows.append(_row(form, "half-width", float(margin.mean()), settings.n_repeats))
    return rows


def _accuracy(settings: Settings, n: int, rng: np.random.Generator) -> list[Row]:
    """The range of Theorem 2 and Wilson's for the accuracy of perfectly calibrated scores."""
    from statsmodels.stats.proportion import proportion_confint

    truth = 0.5 + 1.0 / np.pi  # E max(q, 1 - q) of Beta(.5, .5)
    repeats = min(settings.n_repeats, max(50, 2_000_000 // n))
    ranges, intervals, rootless = [], [], []
    for _ in range(repeats):
        score = rng.beta(0.5, 0.5, n)
        true = (rng.uniform(size=n) < score).astype(float)
        tn, tp, _, _ = outcome_errors(true, score)
        if not (len(tn) and len(tp)):
            continue
        accuracy, p_n = (len(tn) + len(tp)) / n, float(np.mean(true == 0))
        radii = [float(quantile(part, LEVEL, reflect=True)) for part in (tn, tp)]
        half = (p_n * radii[0] + (1 - p_n) * radii[1]) / 2
        ranges.append((accuracy - half, accuracy + half))
        intervals.append(proportion_confint(len(tn) + len(tp), n, 1 - LEVEL, method="wilson"))
        rootless.append(min(len(tn) / (n * p_n), len(tp) / (n * (1 - p_n))) < LEVEL)
    rows: list[Row] = []
    for form, bounds in (("printed", np.array(ranges)), ("Wilson", np.array(intervals))):
        rows.append(_row(form, "width", np.median(np.ptp(bounds, axis=1)), len(bounds)))
        holds = np.mean((bounds[:, 0] <= truth) & (truth <= bounds[:, 1]))
        rows.append(_row(form, "holds the accuracy", holds, len(bounds)))
    rows.append(_row("printed", "a neuron's F_l = p has no root", np.mean(rootless), len(rootless)))
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


def _propagation(_settings: Settings, _m: int, _rng: np.random.Generator) -> list[Row]:
    """delta of the precision: as printed, as the library does it, and the largest change in the box."""
    odds, r, d = P_N / (1 - P_N), RATES, DELTAS

    def precision(_tn: float, tp: float, _fn: float, fp: float) -> float:
        return tp * (1 - P_N) / (tp * (1 - P_N) + fp * P_N)

    value = precision(*r.values())
    steps = (r["FP"] / r["TP"] * d["TP"] / r["TP"], d["FP"] / r["TP"], odds * value * (d["FP"] / r["TP"]) ** 2)
    at, delta = np.array(list(r.values())), np.array(list(d.values()))
    corners = [precision(*(at + np.array(signs) * delta)) for signs in product((-1, 1), repeat=4)]
    return [
        _row("printed", "delta of the precision", odds * value**2 * sum(steps), 1),
        _row("pimeter.paper.score_spread", "delta of the precision", propagated(precision, at, delta), 1),
        _row("largest change in the box", "delta of the precision", max(abs(c - value) for c in corners), len(corners)),
    ]


# What the rows say.


def value(rows: Sequence[Row], statement: str, form: str, measured: str, m: int | None = None) -> float:
    """One stored number; of the largest sample where no size is given."""
    held = [r for r in rows if (r["statement"], r["form"], r["measured"]) == (statement, form, measured)]
    return float(
        next(r for r in held if m in (None, r["m"]) and (m or r["m"] == max(int(q["m"]) for q in held)))["value"]
    )


def tables(rows: Sequence[Row]) -> dict[str, Sequence[Row]]:
    """For each statement one table, a column for each size."""
    found: dict[str, Sequence[Row]] = {}
    for statement in dict.fromkeys(str(row["statement"]) for row in rows):
        held = [row for row in rows if row["statement"] == statement]
        cells = dict.fromkeys((str(row["form"]), str(row["measured"])) for row in held)
        found[statement.capitalize()] = [
            {"form": form, "measured": measured}
            | {f"m = {r['m']}": float(r["value"]) for r in held if (r["form"], r["measured"]) == (form, measured)}
            for form, measured in cells
        ]
    return found


def headline(rows: Sequence[Row]) -> str:
    """What the simulations show, in one sentence."""
    few = min(int(row["m"]) for row in rows if row["statement"] == "theorem 1")
    stalled = [value(rows, "theorem 1", "printed", "stalled", m) for m in (few, None)]
    return (
        f"Of the neurons as printed {100 * stalled[0]:.0f} % stall with {few} errors and {100 * stalled[1]:.0f} % with "
        "the most; the range of Theorem 2 does not shrink with the number of rows."
    )


def finding(rows: Sequence[Row]) -> str:
    """What becomes of each statement."""
    most = max(int(row["m"]) for row in rows)
    rmse = {form: value(rows, "theorem 1", form, "RMSE") for form in ("printed", "root, beta 1000", "pimeter")}
    within = value(rows, "theorem 1", "printed", "distance to the root within the bound of A.1")
    width = {form: value(rows, "theorem 2", form, "width") for form in ("printed", "Wilson")}
    rootless = value(rows, "theorem 2", "printed", "a neuron's F_l = p has no root")
    (printed, whole), (fixed, fixed_whole) = (
        [value(rows, "corollary", form, measured) for form in VARIANCES] for measured in DRAWN
    )
    series, ours, box = (
        value(rows, "propagation", form, "delta of the precision")
        for form in ("printed", "pimeter.paper.score_spread", "largest change in the box")
    )
    covered = {
        form: value(rows, "section 2.3", form, "coverage", min(int(row["m"]) for row in rows if row["m"] != 1))
        for form in ("not relocated", "printed: by the rows that calibrate", "by other rows")
    }
    relocated = ", ".join(f"{fraction:.3f} ({form})" for form, fraction in covered.items())
    said = [
        headline(rows),
        f"With {most:,} errors the weight is off by {rmse['printed']:.3f} as printed,",
        f"{rmse['root, beta 1000']:.3f} as the root and {rmse['pimeter']:.3f} by pimeter;",
        f"A.1's bound holds in {100 * within:.0f} % of the descents.",
        f"Section 2.3, the fewest errors: coverage {relocated}.",
        f"Theorem 2 with {most:,} rows: the printed range is {width['printed']:.3f} wide,",
        f"Wilson's interval {width['Wilson']:.3f}; normalised by the size of the class, as printed,",
        f"a neuron has no root in {100 * rootless:.0f} % of the samples.",
        f"Corollary: the printed sum is {printed:.2f} of the simulated deviation, its limit {whole:.2f}; with the",
        f"numbers of each class fixed {fixed:.2f} and {fixed_whole:.2f}.",
        f"Propagation to the precision: {series:.3f} as printed, {ours:.3f} by the library,",
        f"{box:.3f} at most in the box.",
    ]
    return " ".join(said)


EXPERIMENT = Experiment(
    name="theory",
    title="theorems, the error bound, relocation and propagation, simulated as printed",
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
