"""Intervals from a confusion matrix alone: proportions by a binomial distribution, all else by bootstrap or slopes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pimeter.classification.derivatives import derivatives
from pimeter.classification.estimates import Estimate
from pimeter.classification.proportions import Proportion, clopper_pearson, normal, normal_quantile, proportion, wilson
from pimeter.classification.rates import FN, FP, PROPORTIONS, TN, TP, Metric, Rates, builtin, metric_range
from pimeter.classification.resampling import Resamples

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pimeter.protocols import Array, Flags

BINOMIAL: dict[str, Callable[[Proportion, float], tuple[float, float]]] = {
    "wilson": wilson,
    "clopper-pearson": clopper_pearson,
    "normal": normal,
}
PSEUDO_COUNT = 0.5  # rows that are added to each cell where one is empty: Jeffreys' choice
NO_ROWS = "no rows to take a proportion of"
NO_CLASS = "one of the two classes has no rows"
EMPTY = "an outcome never occurred: half a row was added to each"
LIGHT = "an outcome has less weight than half a row, which was added to each"
ONE_KIND = "all rows have the same answer"
NO_WIDTH = "width zero: not to be believed"


class Cells(NamedTuple):
    """Cells of a confusion matrix: rows, sums of weights and of squared weights."""

    rows: Array
    sums: Array
    squares: Array

    @classmethod
    def counted(cls, codes: NDArray[np.integer], n_cells: int, weights: Array | None) -> Cells:
        """Cells of rows, by the cell of each and its weight."""
        if weights is None:
            rows = np.bincount(codes, minlength=n_cells).astype(np.float64)
            return cls(rows, rows, rows)
        return cls(
            np.bincount(codes[weights > 0.0], minlength=n_cells).astype(np.float64),
            np.bincount(codes, weights, minlength=n_cells).astype(np.float64),
            np.bincount(codes, weights**2, minlength=n_cells).astype(np.float64),
        )

    @property
    def mean_weight(self) -> float:
        """Mean weight of a row."""
        return float(self.sums.sum() / self.rows.sum())

    def padded(self, extra: float | Array) -> Cells:
        """Cells with a few more rows of mean weight in each."""
        weight = self.mean_weight
        return Cells(self.rows + extra, self.sums + extra * weight, self.squares + extra * weight**2)


class Sampling(NamedTuple):
    """How many resamples the bootstrap draws, and from which random numbers."""

    n_resamples: int
    rng: np.random.Generator


def resamples(cells: Cells, sampling: Sampling) -> Resamples:
    """Resampled rows of these cells."""
    return Resamples(cells.rows, cells.sums, cells.squares, sampling.n_resamples, sampling.rng)


def outcome_codes(is_positive: Flags, is_predicted: Flags) -> NDArray[np.int8]:
    """Cell of each row, in the order TN, TP, FN, FP."""
    return np.array([[TN, FP], [FN, TP]], np.int8)[is_positive.astype(np.int8), is_predicted.astype(np.int8)]


def by_rates(
    cells: Cells, metrics: Mapping[str, Metric], method: str, confidence_level: float, sampling: Sampling
) -> dict[str, Estimate]:
    """Estimates of metrics of two classes from cells TN, TP, FN, FP."""
    values = {name: number(name, metric(Rates.of(cells.sums))) for name, metric in metrics.items()}
    each = {name: _at_once(cells, values[name], metric, method, confidence_level) for name, metric in metrics.items()}
    found = {name: one for name, one in each.items() if one is not None}
    rest = {name: metric for name, metric in metrics.items() if name not in found}
    if method == "normal":
        found |= {name: _sloped(cells, values[name], metric, confidence_level) for name, metric in rest.items()}
    else:
        found |= _drawn(cells, values, rest, confidence_level, sampling)
    return {name: found[name] for name in metrics}


def _at_once(cells: Cells, value: float, metric: Metric, method: str, confidence_level: float) -> Estimate | None:
    """An estimate by a binomial interval, or one without a class; None for what has slopes or is resampled."""
    kind = builtin(metric)
    if kind in PROPORTIONS:
        own = proportion(*PROPORTIONS[kind], cells.squares, cells.sums)
        if method != "bootstrap" or not own.n * min(own.value, 1.0 - own.value) >= PSEUDO_COUNT:
            return binomial(own, value, method, confidence_level)
    tn, tp, fn, fp = cells.sums
    if kind and np.isnan(value) and not (tn + fp and tp + fn):
        return Estimate(np.nan, *metric_range(metric), method, NO_CLASS)
    return None


def binomial(own: Proportion, value: float, method: str, confidence_level: float) -> Estimate:
    """A proportion with its binomial interval; the exact one where there is too little to resample."""
    used = "clopper-pearson" if method == "bootstrap" else method
    note = NO_ROWS if not own.n else ONE_KIND if own.value in {0.0, 1.0} else ""
    return Estimate(value, *BINOMIAL[used](own, confidence_level), used, note)


def number(name: str, found: object) -> float:
    """What a metric returned, which has to be a number."""
    try:
        return float(found)  # type: ignore[arg-type]
    except (TypeError, ValueError) as wrong:
        msg = f"The metric {name!r} must return a number for numbers; got {found!r}."
        raise ValueError(msg) from wrong


def _drawn(
    cells: Cells, values: Mapping[str, float], metrics: Mapping[str, Metric], confidence_level: float, draw: Sampling
) -> dict[str, Estimate]:
    """Bootstrap estimates; where a cell weighs less than half a row, all but proportions get half a row in each."""
    found: dict[str, Estimate] = {}
    proportions = {name: metric for name, metric in metrics.items() if builtin(metric) in PROPORTIONS}
    others = {name: metric for name, metric in metrics.items() if name not in proportions}
    is_empty = bool((cells.sums < PSEUDO_COUNT * cells.mean_weight).any())
    for part, extra in ((proportions, 0.0), (others, PSEUDO_COUNT if is_empty else 0.0)):
        if not part:
            continue

        def evaluated(drawn: Array, part: Mapping[str, Metric] = part) -> dict[str, Array]:
            rates = Rates.of(drawn)
            return {
                name: np.broadcast_to(np.asarray(one(rates), np.float64), drawn.shape[1:]) for name, one in part.items()
            }

        bounds = resamples(cells.padded(extra) if extra else cells, draw).intervals(evaluated, confidence_level)
        note = "" if not extra else LIGHT if cells.rows.all() else EMPTY
        found |= {name: including(values[name], *bounds[name], "bootstrap", note) for name in part}
    return found


def including(value: float, lower: float, upper: float, method: str, note: str) -> Estimate:
    """An interval that includes the value itself."""
    if np.isnan(lower):
        return Estimate(value, lower, upper, method, "not defined for these rows")
    if np.isnan(value):
        return Estimate(value, lower, upper, method, f"{note}; not defined without" if note else "not defined")
    return Estimate(value, min(lower, value), max(upper, value), method, note)


def _sloped(cells: Cells, value: float, metric: Metric, confidence_level: float) -> Estimate:
    """Estimate by the slopes of the metric (delta method)."""
    total = cells.sums.sum()
    at = cells.sums / total
    slopes = derivatives(lambda *c: metric(Rates.of(c)), at).first
    variance = float(cells.squares @ (slopes - slopes @ at) ** 2) / total**2
    if not np.isfinite(variance):
        return Estimate(value, np.nan, np.nan, "normal", "an outcome never occurred: no slope there")
    half = normal_quantile(confidence_level) * variance**0.5
    return Estimate(value, value - half, value + half, "normal", "" if half else NO_WIDTH)
