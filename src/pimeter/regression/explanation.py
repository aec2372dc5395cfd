"""Why is this interval wide? What features add to its width, and hard calibration rows like it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from pimeter.arrays import as_frame, columns_of, numbers_of
from pimeter.coverage import rounded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pimeter.protocols import Array, FeatureTable, Index, IntervalPredictor
    from pimeter.regression.training import Remembered

N_PERMUTATIONS = 40  # orders in which features are exchanged, each with its reverse
N_NEIGHBOURS = 3
HARD_FRACTION = 0.25  # of the calibration rows, those with the largest residuals


class Contribution(NamedTuple):
    """What a feature adds to the width of an interval."""

    feature: str
    value: Any  # of the row
    width: float  # that it adds beside the mean width of calibration rows; negative where it makes it narrower


class HardRow(NamedTuple):
    """A calibration row like the one that is explained, whose residual is large."""

    row: int  # its place among the rows that were given to calibrate, or to fit
    residual: float
    distance: float  # in features that matter, 0 for a row with the same values


@dataclass(frozen=True)
class WidthExplanation:
    """Why an interval is as wide as it is.

    Attributes
    ----------
    width, typical_width : float
        The width of the interval, and the mean width of those of calibration rows.
    contributions : tuple of Contribution
        What each feature adds, the largest first (Shapley values): they sum to the difference of the two widths.
    hard_rows : tuple of HardRow
        Calibration rows that are nearest in the features that matter, among the quarter with the largest residuals.
    """

    width: float
    typical_width: float
    contributions: tuple[Contribution, ...]
    hard_rows: tuple[HardRow, ...]

    def __str__(self) -> str:
        lines = [f"Width {rounded(self.width, 3)}, where {rounded(self.typical_width, 3)} is typical:"]
        for one in self.contributions[:5]:
            value = rounded(one.value, 3) if isinstance(one.value, float) else one.value
            lines.append(f"{one.width:+.3g}  {one.feature} = {value}")
        rows = ", ".join(f"{one.row} (residual {rounded(one.residual, 3)})" for one in self.hard_rows)
        return "\n".join([*lines, *([f"Hard calibration rows like it: {rows}"] if rows else [])])


def explanation_of(row: FeatureTable, known: Remembered, intervals: IntervalPredictor) -> WidthExplanation:
    """Why the interval of a row is as wide as it is, beside those of calibration rows that are known."""
    table = _stacked(row, known.X)
    others = _safe_indexing(table, np.arange(1, _num_samples(table)))
    own, typical = float(_widths(intervals, row)[0]), float(_widths(intervals, others).mean())
    if not np.isfinite(own):
        msg = "the interval is infinite, so that there is no width to explain; use other tails, or y_min and y_max."
        raise ValueError(msg)
    columns, adds = columns_of(table), _shapley_values(table, intervals)
    # The rows that were drawn have another mean width than all of them: the difference is divided.
    adds += (own - typical - adds.sum()) / len(adds)
    features = [f"column {name}" if as_frame(table) is None else str(name) for name in columns]
    contributions = [
        Contribution(feature, _plain(column[0]), float(add))
        for feature, column, add in zip(features, columns.values(), adds, strict=True)
    ]
    residuals = np.abs(known.target - np.asarray(intervals.predict(others), np.float64))
    hard = _hard_rows(columns, np.abs(adds), residuals, known.rows)
    return WidthExplanation(own, typical, tuple(sorted(contributions, key=lambda one: -abs(one.width))), hard)


def _shapley_values(table: Any, intervals: IntervalPredictor) -> Array:
    """What each feature of the first row adds to its width, beside rows drawn from the others."""
    n_features = len(columns_of(table))
    rng = np.random.default_rng(0)
    orders = [rng.permutation(n_features) for _ in range(N_PERMUTATIONS)]
    orders += [order[::-1] for order in orders]
    background = rng.integers(1, _num_samples(table), len(orders))
    # Row i of a block has its first i features, in this order, from the row that is explained: row 0 of the table.
    taken = np.repeat(background, n_features + 1)[:, None] * np.ones(n_features, np.intp)
    for block, order in enumerate(orders):
        for turn, feature in enumerate(order):
            start = block * (n_features + 1)
            taken[start + turn + 1 : start + n_features + 1, feature] = 0
    widths = _widths(intervals, _composed(table, taken)).reshape(len(orders), -1)
    adds = np.zeros(n_features)
    for order, path in zip(orders, widths, strict=True):
        adds[order] += np.diff(path) / len(orders)
    return adds


def _widths(intervals: IntervalPredictor, X: FeatureTable) -> Array:
    """Widths of the intervals of rows."""
    bounds = np.asarray(intervals.predict_interval(X))
    return np.asarray(bounds[:, 1] - bounds[:, 0])


def _plain(value: object) -> object:
    """A number of numpy as Python's."""
    return value.item() if isinstance(value, np.generic) else value


def _stacked(one: FeatureTable, others: Any) -> Any:
    """The row that is explained, and below it the remembered ones, as values of the same kinds."""
    frame = as_frame(one)
    if frame is None:
        return np.concatenate([np.asarray(one), np.asarray(others)])
    import narwhals as nw

    below = nw.from_dict(others, schema=dict(frame.schema), backend=frame.implementation)
    return nw.concat([frame, below]).to_native()


def _composed(table: Any, taken: Index) -> Any:
    """Rows of which each column comes from another row of the table."""
    frame = as_frame(table)
    if frame is None:
        return table[taken, np.arange(table.shape[1])]
    import narwhals as nw

    columns = {
        name: series[taken[:, k].tolist()].to_list()
        for k, (name, series) in enumerate(zip(frame.columns, frame.iter_columns(), strict=True))
    }
    return nw.from_dict(columns, schema=dict(frame.schema), backend=frame.implementation).to_native()


def _hard_rows(columns: dict[Any, NDArray[Any]], weights: Array, residuals: Array, rows: Index) -> tuple[HardRow, ...]:
    """Nearest to the first row, by features that matter, among those with the largest residuals."""
    distance = np.zeros(len(rows))
    for column, weight in zip(columns.values(), weights / (weights.sum() or 1.0), strict=True):
        numbers = numbers_of(column)
        if numbers is None:
            apart = np.array([value != column[0] for value in column[1:].tolist()], np.float64)
        else:
            spread = float(np.nanstd(numbers)) or 1.0
            apart = np.nan_to_num(np.abs(numbers[1:] - numbers[0]) / spread, nan=1.0)
        distance += weight * apart
    hard = np.flatnonzero(residuals >= np.quantile(residuals, 1.0 - HARD_FRACTION))
    nearest = hard[np.argsort(distance[hard], kind="stable")[:N_NEIGHBOURS]]
    return tuple(HardRow(int(rows[i]), float(residuals[i]), float(distance[i])) for i in nearest)
