"""Intervals from a confusion matrix alone: shares of rows by a binomial law, all else by bootstrap or slopes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from pimeter.classification.derivatives import derivatives
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
NO_CLASS = "one of the two classes has no rows"
EMPTY = "an outcome never occurred: half a row was added to each"
LIGHT = "an outcome has less weight than half a row, which was added to each"
ONE_KIND = "all rows have the same answer"
NO_WIDTH = "width zero: not to be believed"
HALF_ROWS = "half a row of each class was added"
NEGLIGIBLE = 1e-14  # variance of a metric between 0 and 1 that is none, but for rounding


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
    tn, tp, fn, fp = cells.sums
    if not (tn + fp and tp + fn):
        unknown = [name for name in rest if np.isnan(values[name]) and builtin(rest[name])]
        found |= {name: Estimate(np.nan, *bounds(rest.pop(name)), method, NO_CLASS) for name in unknown}
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
    recalls = {name: METRICS["tpr"] for name, metric in metrics.items() if builtin(metric) == "balanced_accuracy"}
    averages = {f"macro_{name}": metric for name, metric in metrics.items()} | recalls
    out |= over_classes(cells, k, averages, confidence_level)
    n_right = own[0][TP].sum()
    note = f"{ONE_KIND}: {HALF_ROWS}" if n_right in {0.0, cells.rows.sum()} else ""
    values, used = over_rows(cells.sums[:, None]), _padded(cells, own[0]) if note else cells
    for name, ends in Resamples(*used, *sampling).intervals(over_rows, confidence_level).items():
        out[name] = _around(float(values[name][0]), *ends, "bootstrap", note)
    for i, label in enumerate(labels):
        outcomes = Cells(*(part[:, i] for part in own))
        for name, estimate in by_rates(outcomes, metrics, method, confidence_level, sampling).items():
            out[f"{name}[{label}]"] = estimate
    return out


def over_classes(cells: Cells, k: int, metrics: Mapping[str, Metric], confidence_level: float) -> dict[str, Estimate]:
    """Estimates of averages over classes, each of them against all others; cells as in `by_classes`."""
    against = _one_against_rest(k)
    own = [against(part) for part in cells]
    padded = _padded(cells, own[0])
    more = [against(part) for part in padded]
    found = {}
    for name, metric in metrics.items():
        alone = _Jackknife.of(metric, cells, own[1:])
        with_more = _Jackknife.of(metric, padded, more[1:], alone.is_known)
        found[name] = _averaged(alone, with_more, bounds(metric), confidence_level)
    return found


def _padded(cells: Cells, outcomes: Array) -> Cells:
    """With half a row more of each class that occurs, spread over answers that occur."""
    occurs = outcomes[[TP, FN, FP]].sum(axis=0) > 0.0
    return cells.padded(PSEUDO / len(occurs) * np.outer(occurs, occurs).ravel())


class _Jackknife(NamedTuple):
    """A metric of each class against all others and its average over classes, and what they owe to single rows."""

    is_known: NDArray[np.bool_]  # (k,), classes that the average is of
    values: Array  # (k,)
    variances: Array  # of the values
    mean: float
    bias: float
    variance: float  # of the mean

    @classmethod
    def of(
        cls, metric: Metric, cells: Cells, outcomes: list[Array], is_known: NDArray[np.bool_] | None = None
    ) -> _Jackknife:
        """From cells, and sums of weights and of their squares of TN, TP, FN, FP of each class, (4, k).

        A row of true class i and predicted class j is FN of i, FP of j and TN of all others, so that leaving it out is
        the sum of what that does to each class. A class that has a single row has no variance of its own: without the
        row it is taken to be in the middle of what is possible, which gives it the largest variance there is.
        """
        sums, squares = outcomes
        k = sums.shape[1]

        def of_each(table: Array) -> Array:
            return np.array(np.broadcast_to(np.asarray(metric(Rates.of(table)), np.float64), (k,)))

        values = of_each(sums)
        known = np.isfinite(values) if is_known is None else is_known
        mean = float(values[known].mean()) if known.any() else np.nan
        middle = sum(bounds(metric)) / 2.0
        row = cells.typical
        change, defined = np.zeros((4, k)), np.zeros((4, k))
        for outcome in range(4):
            less = sums.copy()
            taken = np.minimum(row, less[outcome])
            less[outcome] -= taken
            found = of_each(less)
            usable = known & (taken > 0.0)
            scale = np.divide(row, taken, out=np.zeros(k), where=usable)
            is_left = usable & np.isfinite(found)
            defined[outcome] = np.where(is_left, found - values, 0.0) * scale
            instead = np.where(is_left, found, middle if np.isfinite(middle) else mean)
            change[outcome] = np.where(usable, instead - values, 0.0) * scale
        shrunk = 1.0 - 1.0 / cells.rows.sum()
        total, n_known = cells.sums.sum(), max(int(known.sum()), 1)
        variances = shrunk * (squares / row**2 * (change - (sums * change).sum(axis=0) / total) ** 2).sum(axis=0)
        moved, in_value = (_by_cell(part).ravel() / n_known for part in (change, defined))
        variance = shrunk * float(cells.squares / row**2 @ (moved - cells.sums @ moved / total) ** 2)
        return cls(known, values, variances, mean, shrunk * float(cells.sums @ in_value) / row, variance)


def _by_cell(change: Array) -> Array:
    """What a row less in each cell (true, predicted) changes in the sum over classes, from its parts (4, k)."""
    tn, tp, fn, fp = change
    found = tn.sum() + (fn - tn)[:, None] + (fp - tn)
    np.fill_diagonal(found, tn.sum() + tp - tn)
    return np.asarray(found)


def _averaged(own: _Jackknife, padded: _Jackknife, ends: tuple[float, float], confidence_level: float) -> Estimate:
    """An average over classes, by two intervals, of which the wider one counts on either side.

    One is the Clopper-Pearson interval of as many rows as the variance of the average is worth (Korn and Graubard
    1998): right where many classes have a part in it. The other adds the squares of how far Wilson's intervals of
    single classes reach to either side (Zou and Donner 2008): right where few rows of one class decide. Classes where
    the metric is not defined may have any value.
    """
    n_known, k = int(own.is_known.sum()), len(own.is_known)
    least, most = ends
    is_bounded = bool(np.isfinite(least))
    left = f"not defined for {k - n_known} of {k} classes, which are left out" if n_known < k else ""
    if left and is_bounded:
        left += "; the interval allows for any value of theirs"
    if not np.isfinite([own.mean, padded.mean]).all():
        return Estimate(own.mean, *(ends if is_bounded else (np.nan, np.nan)), "jackknife", left)
    centre = own.mean - own.bias
    if not is_bounded:  # a metric of one's own
        half = normal_quantile(confidence_level) * max(own.variance, padded.variance) ** 0.5
        return _around(own.mean, centre - half, centre + half, "jackknife", left)
    span = most - least

    def shares(part: _Jackknife, mean: float) -> tuple[Array, Array]:
        """Of all classes and then of their mean: values between 0 and 1, and their variances."""
        values = (np.append(part.values[own.is_known], mean) - least) / span
        return np.clip(values, 0.0, 1.0), np.append(part.variances[own.is_known], part.variance) / span**2

    values, variances = shares(own, centre)
    rows = _worth(values, variances, *shares(padded, padded.mean))
    *each, middle = map(Share, values.tolist(), rows.tolist())
    reach = np.array([wilson(one, confidence_level) for one in each]) - values[:-1, None]
    down, up = np.sqrt((reach**2).sum(axis=0)) / n_known
    lower, upper = clopper_pearson(middle, confidence_level)
    lower, upper = min(lower, max(middle.value - down, 0.0)), max(upper, min(middle.value + up, 1.0))
    share = n_known / k
    return _around(own.mean, least + span * share * lower, most - span * share * (1.0 - upper), "jackknife", left)


def _worth(value: Array, variance: Array, near: Array, near_variance: Array) -> Array:
    """Rows whose share would have this variance, but no more than with half a row more of each class.

    Few rows, all alike, do not show how they vary.
    """
    most = near * (1.0 - near) / np.maximum(near_variance, NEGLIGIBLE)
    shows = (variance > NEGLIGIBLE) & (value > 0.0) & (value < 1.0)
    alone = np.divide(value * (1.0 - value), variance, out=np.full(len(value), np.inf), where=shows)
    return np.asarray(np.minimum(most, alone))


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
