"""Intervals from a confusion matrix alone: shares of rows by a binomial law, all else by bootstrap or slopes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from pimeter.classification.propagation import derivatives
from pimeter.classification.rates import (
    FN,
    FP,
    METRICS,
    SHARES,
    TN,
    TP,
    Metric,
    Rates,
    Share,
    bounds,
    builtin,
    clopper_pearson,
    normal,
    normal_quantile,
    share,
    wilson,
)
from pimeter.classification.resampling import Resamples

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

BINOMIAL: dict[str, Callable[[Share, float], tuple[float, float]]] = {
    "wilson": wilson,
    "clopper-pearson": clopper_pearson,
    "normal": normal,
}
PSEUDO = 0.5  # rows that are added to each cell where one is empty: Jeffreys' choice
ROUNDING = 1e-12  # part of the total that is nothing, but for rounding
NO_ROWS = "no rows to take a share of"
EMPTY = "an outcome never occurred: half a row was added to each"
LIGHT = "an outcome has less weight than half a row, which was added to each"
ONE_KIND = "all rows have the same answer"
NO_WIDTH = "width zero: not to be believed"
BARE = "a class is always right or never"
HALF_ROWS = "half a row of each class was added"


@dataclass(frozen=True)
class Estimate:
    """A metric with its interval.

    Attributes
    ----------
    value, lower, upper : float
        NaN where it is not known.
    method : str
        How the interval was made.
    note : str
        What to know about it; empty if nothing.
    """

    value: float
    lower: float
    upper: float
    method: str
    note: str = ""


class Cells(NamedTuple):
    """Cells of a confusion matrix: rows, sums of weights and of squared weights."""

    rows: Array
    sums: Array
    squares: Array

    @classmethod
    def counted(cls, codes: NDArray[Any], n_cells: int, weights: Array | None) -> Cells:
        """From the cell of each row."""
        if weights is None:
            rows = np.bincount(codes, minlength=n_cells).astype(np.float64)
            return cls(rows, rows, rows)
        return cls(
            np.bincount(codes[weights > 0.0], minlength=n_cells).astype(np.float64),
            np.bincount(codes, weights, minlength=n_cells).astype(np.float64),
            np.bincount(codes, weights**2, minlength=n_cells).astype(np.float64),
        )

    @property
    def typical(self) -> float:
        """Mean weight of a row."""
        return float(self.sums.sum() / self.rows.sum())

    def padded(self, extra: float | Array) -> Cells:
        """With a few more rows of typical weight in each cell."""
        typical = self.typical
        return Cells(self.rows + extra, self.sums + extra * typical, self.squares + extra * typical**2)


class Sampling(NamedTuple):
    """How to draw."""

    n_resamples: int
    rng: np.random.Generator


def outcome_codes(is_positive: NDArray[np.bool_], is_predicted: NDArray[np.bool_]) -> NDArray[np.int8]:
    """Cell of each row, in the order TN, TP, FN, FP."""
    return np.array([[TN, FP], [FN, TP]], np.int8)[is_positive.astype(np.int8), is_predicted.astype(np.int8)]


def by_rates(
    cells: Cells, metrics: Mapping[str, Metric], method: str, confidence_level: float, sampling: Sampling
) -> dict[str, Estimate]:
    """Estimates of metrics of two classes from cells TN, TP, FN, FP."""
    values = {name: _number(name, metric(Rates.of(cells.sums))) for name, metric in metrics.items()}
    found: dict[str, Estimate] = {}
    rest: dict[str, Metric] = {}
    for name, metric in metrics.items():
        if builtin(metric) not in SHARES:
            rest[name] = metric
            continue
        own = share(*SHARES[builtin(metric)], cells.squares, cells.sums)
        is_bare = not own.n or own.value in {0.0, 1.0}
        if method == "bootstrap" and own.n * min(own.value, 1.0 - own.value) >= PSEUDO:
            rest[name] = metric
            continue
        used = "clopper-pearson" if method == "bootstrap" else method
        note = NO_ROWS if not own.n else ONE_KIND if is_bare else ""
        found[name] = Estimate(values[name], *BINOMIAL[used](own, confidence_level), used, note)
    if method == "normal":
        found |= {name: _sloped(cells, values[name], rest[name], confidence_level) for name in rest}
    else:
        found |= _drawn(cells, values, rest, confidence_level, sampling)
    return {name: found[name] for name in metrics}


def _number(name: str, found: Any) -> float:
    try:
        return float(found)
    except (TypeError, ValueError) as wrong:
        msg = f"The metric {name!r} must return a number for numbers; got {found!r}."
        raise ValueError(msg) from wrong


def _drawn(
    cells: Cells, values: Mapping[str, float], metrics: Mapping[str, Metric], confidence_level: float, draw: Sampling
) -> dict[str, Estimate]:
    """By bootstrap; where a cell is empty, or of less weight than half a row, all but shares get half a row of each."""
    found: dict[str, Estimate] = {}
    shares = {name: metric for name, metric in metrics.items() if builtin(metric) in SHARES}
    others = {name: metric for name, metric in metrics.items() if name not in shares}
    is_empty = bool((cells.sums < PSEUDO * cells.typical).any())
    for part, extra in ((shares, 0.0), (others, PSEUDO if is_empty else 0.0)):
        if not part:
            continue

        def evaluated(drawn: Array, part: Mapping[str, Metric] = part) -> dict[str, Any]:
            rates = Rates.of(drawn)
            return {
                name: np.broadcast_to(np.asarray(one(rates), np.float64), drawn.shape[1:]) for name, one in part.items()
            }

        ends = Resamples(*(cells.padded(extra) if extra else cells), *draw).intervals(evaluated, confidence_level)
        note = "" if not extra else LIGHT if cells.rows.all() else EMPTY
        found |= {name: _around(values[name], *ends[name], "bootstrap", note) for name in part}
    return found


def _around(value: float, lower: float, upper: float, method: str, note: str) -> Estimate:
    """An interval that reaches to the value itself."""
    if np.isnan(lower):
        return Estimate(value, lower, upper, method, "not defined for these rows")
    if np.isnan(value):
        return Estimate(value, lower, upper, method, f"{note}; not defined without" if note else "not defined")
    return Estimate(value, min(lower, value), max(upper, value), method, note)


def _sloped(cells: Cells, value: float, metric: Metric, confidence_level: float) -> Estimate:
    """By the slopes of the metric (delta method)."""
    total = cells.sums.sum()
    at = cells.sums / total
    slopes, _ = derivatives(lambda *c: metric(Rates.of(c)), at)
    variance = float(cells.squares @ (slopes - slopes @ at) ** 2) / total**2
    if not np.isfinite(variance):
        return Estimate(value, np.nan, np.nan, "normal", "an outcome never occurred: no slope there")
    half = normal_quantile(confidence_level) * variance**0.5
    return Estimate(value, value - half, value + half, "normal", "" if half else NO_WIDTH)


def by_classes(
    cells: Cells,
    labels: list[Any],
    metrics: Mapping[str, Metric],
    method: str,
    confidence_level: float,
    sampling: Sampling,
) -> dict[str, Estimate]:
    """Estimates for several classes: overall, averages over classes, and each class against all others.

    Cells are ordered by the true class, then by the predicted one.
    """
    k = len(labels)
    against = _one_against_rest(k)
    own = [against(part) for part in cells]
    recalls = {name: METRICS["tpr"] for name, metric in metrics.items() if builtin(metric) == "balanced_accuracy"}
    averages = {f"macro_{name}": metric for name, metric in metrics.items()} | recalls

    def over_classes(drawn: Array) -> dict[str, Any]:
        each = Rates.of(against(drawn))
        found = {}
        for name, metric in averages.items():
            per_class = np.broadcast_to(np.asarray(metric(each), np.float64), (k, drawn.shape[1]))
            known = np.isfinite(per_class)
            with np.errstate(invalid="ignore"):
                found[name] = np.where(known, per_class, 0.0).sum(axis=0) / known.sum(axis=0)
        return found

    def over_rows(drawn: Array) -> dict[str, Any]:
        table = against(drawn)
        pooled = Rates.of(table.sum(axis=1))
        found = {}
        for name, metric in metrics.items():
            found[f"micro_{name}"] = np.broadcast_to(np.asarray(metric(pooled), np.float64), drawn.shape[1:])
            if builtin(metric) == "mcc":
                found[name] = _multiclass_mcc(table)
        return found

    right = np.arange(k) * (k + 1)
    # Right answers as TN, wrong ones as FP: for their share two cells are enough.
    both = Cells(*(np.array([c[right].sum(), 0.0, 0.0, c.sum() - c[right].sum()]) for c in cells))
    overall = {name: metric for name, metric in metrics.items() if builtin(metric) == "accuracy"}
    out = by_rates(both, overall, method, confidence_level, sampling)
    _, tp, fn, fp = own[0]
    occurs = tp + fn + fp > 0.0
    padded = cells.padded(PSEUDO / k * np.outer(tp + fn > 0.0, occurs).ravel())
    note = f"{ONE_KIND}: {HALF_ROWS}" if tp.sum() in {0.0, cells.rows.sum()} else ""
    bare = note or (f"{BARE}: {HALF_ROWS}" if np.any(occurs & (tp * fn * fp == 0.0)) else "")
    each = Rates.of(own[1])
    unknown = {name: k - np.isfinite(metric(each) + np.zeros(k)).sum() for name, metric in averages.items()}
    for averaged, why in ((over_classes, bare), (over_rows, note)):
        used = padded if why else cells
        values, centres = averaged(cells.sums[:, None]), averaged(used.sums[:, None])
        for name, ends in Resamples(*used, *sampling).intervals(averaged, confidence_level).items():
            # Half rows in many classes would move an average farther than it is uncertain: only their width is wanted.
            moved = 0.0 if note else float(values[name][0] - centres[name][0])
            least, most = bounds(averages[name]) if name in averages else (-np.inf, np.inf)
            lower, upper = (float(np.clip(end + moved, least, most)) for end in ends)
            left = f"not defined for {unknown[name]} of {k} classes, which are left out" if unknown.get(name) else ""
            notes = "; ".join(filter(None, (why, left)))
            out[name] = _around(float(values[name][0]), lower, upper, "bootstrap", notes)
    for i, label in enumerate(labels):
        outcomes = Cells(*(part[:, i] for part in own))
        for name, estimate in by_rates(outcomes, metrics, method, confidence_level, sampling).items():
            out[f"{name}[{label}]"] = estimate
    return out


def _one_against_rest(k: int) -> Callable[[Array], Array]:
    """Function from cells of k classes, (k k, ...), to TN, TP, FN, FP of each class, (4, k, ...).

    A cell is TN of nearly all classes, so that TN is what the others leave of the total.
    """
    true, predicted = np.divmod(np.arange(k * k), k)
    is_right = true == predicted
    right, wrong = np.flatnonzero(is_right), np.flatnonzero(~is_right)
    row = np.concatenate([true[right], k + true[wrong], 2 * k + predicted[wrong]])
    column = np.concatenate([right, wrong, wrong])
    against: Any = sparse.csr_array((np.ones(len(row)), (row, column)), shape=(3 * k, k * k))

    def outcomes(cells: Array) -> Array:
        total = cells.sum(axis=0)
        three = (against @ cells).reshape(3, k, *cells.shape[1:])
        rest = total - three.sum(axis=0)
        return np.concatenate([np.where(rest > ROUNDING * total, rest, 0.0)[None], three])

    return outcomes


def _multiclass_mcc(table: Array) -> Array:
    """Correlation of true and predicted classes (Gorodkin's), from one-against-rest cells (4, k, ...)."""
    total = table[:, 0].sum(axis=0)
    true, predicted, right = table[TP] + table[FN], table[TP] + table[FP], table[TP].sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        top = right * total - (true * predicted).sum(axis=0)
        return np.asarray(top / np.sqrt((total**2 - (true**2).sum(axis=0)) * (total**2 - (predicted**2).sum(axis=0))))
