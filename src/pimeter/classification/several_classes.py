"""Intervals for several classes: overall, averages over classes, and each class against all others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from pimeter.classification.confusion import ONE_KIND, PSEUDO_COUNT, Cells, Sampling, by_rates, including, resamples
from pimeter.classification.estimates import Estimate
from pimeter.classification.proportions import Proportion, clopper_pearson, normal_quantile, wilson
from pimeter.classification.rates import FN, FP, METRICS, TP, Metric, Rates, builtin, metric_range

if TYPE_CHECKING:
    from pimeter.protocols import Array, Flags

HALF_ROWS = "half a row of each class was added"
NEGLIGIBLE = 1e-12  # part of the total that is nothing, but for rounding
NEGLIGIBLE_VARIANCE = 1e-14  # of a metric between 0 and 1, which is rounding


def by_classes(
    cells: Cells,
    labels: Sequence[object],
    metrics: Mapping[str, Metric],
    method: str,
    confidence_level: float,
    sampling: Sampling,
) -> dict[str, Estimate]:
    """Estimates overall, of averages, and of each class against the others; cells by true, then predicted class."""
    k = len(labels)
    own = [_one_against_rest(k)(part) for part in cells]
    right = np.arange(k) * (k + 1)
    # Right answers as TN, wrong ones as FP: for their proportion two cells are enough.
    both = Cells(*(np.array([c[right].sum(), 0.0, 0.0, c.sum() - c[right].sum()]) for c in cells))
    overall = {name: metric for name, metric in metrics.items() if builtin(metric) == "accuracy"}
    out = by_rates(both, overall, method, confidence_level, sampling)
    recalls = {name: METRICS["tpr"] for name, metric in metrics.items() if builtin(metric) == "balanced_accuracy"}
    averages = {f"macro_{name}": metric for name, metric in metrics.items()} | recalls
    out |= over_classes(cells, k, averages, confidence_level)
    out |= _pooled(cells, own[0], metrics, confidence_level, sampling)
    for i, label in enumerate(labels):
        outcomes = Cells(*(part[:, i] for part in own))
        for name, estimate in by_rates(outcomes, metrics, method, confidence_level, sampling).items():
            out[f"{name}[{label}]"] = estimate
    return out


def _pooled(
    cells: Cells, outcomes: Array, metrics: Mapping[str, Metric], confidence_level: float, sampling: Sampling
) -> dict[str, Estimate]:
    """Micro averages and the correlation of all classes, by bootstrap."""
    against = _one_against_rest(outcomes.shape[1])

    def over_rows(drawn: Array) -> dict[str, Array]:
        table = against(drawn)
        pooled = Rates.of(table.sum(axis=1))
        found = {}
        for name, metric in metrics.items():
            found[f"micro_{name}"] = np.broadcast_to(np.asarray(metric(pooled), np.float64), drawn.shape[1:])
            if builtin(metric) == "mcc":
                found[name] = _multiclass_mcc(table)
        return found

    note = f"{ONE_KIND}: {HALF_ROWS}" if outcomes[TP].sum() in {0.0, cells.rows.sum()} else ""
    values, used = over_rows(cells.sums[:, None]), _padded(cells, outcomes) if note else cells
    intervals = resamples(used, sampling).intervals(over_rows, confidence_level)
    return {name: including(float(values[name][0]), *bounds, "bootstrap", note) for name, bounds in intervals.items()}


def over_classes(cells: Cells, k: int, metrics: Mapping[str, Metric], confidence_level: float) -> dict[str, Estimate]:
    """Estimates of averages over classes, each of them against all others; cells by true, then predicted class."""
    against = _one_against_rest(k)
    own = [against(part) for part in (cells.rows, cells.sums, cells.squares)]
    padded = _padded(cells, own[0])
    more = [against(part) for part in (padded.rows, padded.sums, padded.squares)]
    found = {}
    for name, metric in metrics.items():
        alone = _Jackknife.of(metric, cells, own[1:])
        with_more = _Jackknife.of(metric, padded, more[1:], alone.is_known)
        found[name] = _averaged(alone, with_more, metric_range(metric), confidence_level)
    return found


def _padded(cells: Cells, outcomes: Array) -> Cells:
    """Cells with half a row more of each class that occurs, spread over answers that occur."""
    occurs = outcomes[[TP, FN, FP]].sum(axis=0) > 0.0
    return cells.padded(PSEUDO_COUNT / len(occurs) * np.outer(occurs, occurs).ravel())


class _Jackknife(NamedTuple):
    """A metric of each class against all others and its average over classes, and what they owe to single rows."""

    is_known: Flags  # (k,), classes that the average is of
    values: Array  # (k,)
    variances: Array  # of the values
    mean: float
    bias: float
    variance: float  # of the mean

    @classmethod
    def of(cls, metric: Metric, cells: Cells, outcomes: list[Array], is_known: Flags | None = None) -> _Jackknife:
        """Jackknife of cells, with sums of weights and of squared weights of TN, TP, FN, FP of each class, (4, k).

        A row of true class i and predicted class j is FN of i, FP of j and TN of all others, so that leaving it out is
        the sum of what that does to each class. The variance of a class with a single row is not known: without the
        row it is taken to be in the middle of what is possible, which gives it the largest variance there is.
        """
        sums, squares = outcomes
        k = sums.shape[1]

        def of_each(table: Array) -> Array:
            return np.array(np.broadcast_to(np.asarray(metric(Rates.of(table)), np.float64), (k,)))

        values = of_each(sums)
        known = np.isfinite(values) if is_known is None else is_known
        mean = float(values[known].mean()) if known.any() else np.nan
        middle = sum(metric_range(metric)) / 2.0
        row = cells.mean_weight
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


def _averaged(own: _Jackknife, padded: _Jackknife, limits: tuple[float, float], confidence_level: float) -> Estimate:
    """An average over classes, by two intervals, of which the wider one counts on either side.

    One is the Clopper-Pearson interval of the effective number of rows that the variance of the average implies (Korn
    and Graubard 1998): right where many classes have a part in it. The other adds the squares of the margins of
    Wilson's intervals of single classes (Zou and Donner 2008): right where few rows of one class decide. Classes where
    the metric is not defined may have any value.
    """
    n_known, k = int(own.is_known.sum()), len(own.is_known)
    least, most = limits
    is_bounded = bool(np.isfinite(least))
    left = f"not defined for {k - n_known} of {k} classes, which are left out" if n_known < k else ""
    if left and is_bounded:
        left += "; the interval allows for any value of theirs"
    if not np.isfinite([own.mean, padded.mean]).all():
        return Estimate(own.mean, *(limits if is_bounded else (np.nan, np.nan)), "jackknife", left)
    centre = own.mean - own.bias
    if not is_bounded:  # a metric of the caller's
        half = normal_quantile(confidence_level) * max(own.variance, padded.variance) ** 0.5
        return including(own.mean, centre - half, centre + half, "jackknife", left)
    span = most - least

    def scaled(part: _Jackknife, mean: float) -> tuple[Array, Array]:
        """Values of all classes and then of their mean, between 0 and 1, and their variances."""
        values = (np.append(part.values[own.is_known], mean) - least) / span
        return np.clip(values, 0.0, 1.0), np.append(part.variances[own.is_known], part.variance) / span**2

    values, variances = scaled(own, centre)
    rows = _effective_rows(values, variances, *scaled(padded, padded.mean))
    *each, middle = map(Proportion, values.tolist(), rows.tolist())
    margins = np.array([wilson(one, confidence_level) for one in each]) - values[:-1, None]
    down, up = np.sqrt((margins**2).sum(axis=0)) / n_known
    lower, upper = clopper_pearson(middle, confidence_level)
    lower, upper = min(lower, max(middle.value - down, 0.0)), max(upper, min(middle.value + up, 1.0))
    part = n_known / k
    return including(own.mean, least + span * part * lower, most - span * part * (1.0 - upper), "jackknife", left)


def _effective_rows(value: Array, variance: Array, near: Array, near_variance: Array) -> Array:
    """Rows whose proportion would have this variance, but no more than with half a row more of each class."""
    most = near * (1.0 - near) / np.maximum(near_variance, NEGLIGIBLE_VARIANCE)
    shows = (variance > NEGLIGIBLE_VARIANCE) & (value > 0.0) & (value < 1.0)
    alone = np.divide(value * (1.0 - value), variance, out=np.full(len(value), np.inf), where=shows)
    return np.asarray(np.minimum(most, alone))


def _one_against_rest(k: int) -> Callable[[Array], Array]:
    """Function from cells of k classes, (k k, ...), to TN, TP, FN, FP of each class, (4, k, ...)."""
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
        return np.concatenate([np.where(rest > NEGLIGIBLE * total, rest, 0.0)[None], three])

    return outcomes


def _multiclass_mcc(table: Array) -> Array:
    """Correlation of true and predicted classes (Gorodkin's), from one-against-rest cells (4, k, ...)."""
    total = table[:, 0].sum(axis=0)
    true, predicted, right = table[TP] + table[FN], table[TP] + table[FP], table[TP].sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        top = right * total - (true * predicted).sum(axis=0)
        return np.asarray(top / np.sqrt((total**2 - (true**2).sum(axis=0)) * (total**2 - (predicted**2).sum(axis=0))))
