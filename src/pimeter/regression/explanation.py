"""Why is this interval wide? What features add to its width, and hard calibration rows like it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from pimeter.arrays import as_frame, columns_of, is_sparse, numbers_of
from pimeter.conformal.estimator import check_calibrated
from pimeter.coverage import rounded
from pimeter.regression.distribution import PredictedDistribution

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray

    from pimeter.plotting import IntervalDisplay
    from pimeter.protocols import Array, FeatureTable, Index

N_PERMUTATIONS = 40  # orders in which features are exchanged, each with its reverse
N_NEIGHBOURS = 3
HARD = 0.25  # fraction of the calibration rows with the largest residuals


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
class Explanation:
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


class ExplainedIntervals(PredictedDistribution):
    """The part of `IntervalRegressor` that shows intervals, and says why one is wide."""

    def plot(
        self,
        X: FeatureTable,
        y: ArrayLike | None = None,
        *,
        confidence_level: float | None = None,
        by: ArrayLike | None = None,
        max_rows: int = 60,
        ax: Axes | None = None,
    ) -> IntervalDisplay:
        """Intervals of some rows, in the order of the predictions.

        Parameters
        ----------
        X : array, frame or whatever the estimator takes, of n rows
            Features.
        y : array-like of shape (n,), optional
            Targets, which are shown inside or outside of their intervals.
        confidence_level : float, optional
            Another level than that of the estimator.
        by : array-like of shape (n,), optional
            Categories of the rows, for ``width="grouped"``.
        max_rows : int, default=60
            Rows that are shown; of more, some at random.
        ax : matplotlib Axes, optional
            Where to draw.

        Returns
        -------
        pimeter.plotting.IntervalDisplay
            With the axes as `ax_`.
        """
        from pimeter.plotting import IntervalDisplay

        asked: Any = {"confidence_level": confidence_level, "by": by}
        return IntervalDisplay.from_estimator(self, X, y, **asked, max_rows=max_rows, ax=ax)

    def explain(self, X_row: FeatureTable) -> Explanation:
        """Why the interval of a row is as wide as it is.

        Parameters
        ----------
        X_row : array or frame of one row
            Features, as for `predict_interval`; of one output, and for widths that take no `by` in methods.

        Returns
        -------
        Explanation
            The width beside the typical one, what each feature adds to it, and hard calibration rows like it. It prints
            as a few lines.

        Raises
        ------
        ValueError
            If X_row has more than one row, is sparse, or the interval is infinite.

        Notes
        -----
        Contributions are Shapley values: features of calibration rows (up to 500 are remembered) are exchanged for
        those of the row one by one, in 80 orders drawn with a fixed seed, and each is given the change of the width at
        its turn, on average. They explain the width that the model gives, not what causes residuals to be large.

        Examples
        --------
        >>> import numpy as np
        >>> from pimeter import IntervalRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(size=(2000, 3))
        >>> y = rng.normal(scale=0.5 + 2.0 * X[:, 1])
        >>> model = IntervalRegressor(lambda X: np.zeros(len(X)), width="scaled", random_state=0).calibrate(X, y)
        >>> found = model.explain([[0.5, 0.95, 0.5]])
        >>> found.contributions[0].feature, found.width > 1.3 * found.typical_width
        ('column 1', True)
        """
        check_calibrated(self)
        one, known = self._same_table(X_row), self._remembered
        if _num_samples(one) != 1 or is_sparse(one) or self._n_outputs is not None:
            msg = f"explain takes one row of a model with one output, not sparse; got {_num_samples(one)} rows."
            raise ValueError(msg)
        table = _stacked(one, known.X)
        names, n = list(columns_of(table)), _num_samples(table)
        rng = np.random.default_rng(0)
        orders = [rng.permutation(len(names)) for _ in range(N_PERMUTATIONS)]
        orders += [order[::-1] for order in orders]
        background = rng.integers(1, n, len(orders))
        # Row i of a block has its first i features, in this order, from the row that is explained: row 0 of the table.
        taken = np.repeat(background, len(names) + 1)[:, None] * np.ones(len(names), np.intp)
        for block, order in enumerate(orders):
            for turn, feature in enumerate(order):
                start = block * (len(names) + 1)
                taken[start + turn + 1 : start + len(names) + 1, feature] = 0
        widths = self._width_of(_composed(table, taken)).reshape(len(orders), -1)
        others = _safe_indexing(table, np.arange(1, n))
        typical, own = self._width_of(others), float(self._width_of(one)[0])
        if not np.isfinite(own):
            msg = "the interval is infinite, so that there is no width to explain; use other tails, or y_min and y_max."
            raise ValueError(msg)
        adds = np.zeros(len(names))
        for order, path in zip(orders, widths, strict=True):
            adds[order] += np.diff(path) / len(orders)
        # The rows that were drawn have another mean width than all of them: the difference is divided.
        adds += (own - float(typical.mean()) - adds.sum()) / len(names)
        columns = columns_of(table)
        contributions = [
            Contribution(
                f"column {name}" if as_frame(table) is None else str(name), _plain(columns[name][0]), float(add)
            )
            for name, add in zip(names, adds, strict=True)
        ]
        hard = _hard_rows(columns, np.abs(adds), np.abs(known.target - self.predict(others)), known.rows)
        ranked = sorted(contributions, key=lambda one: -abs(one.width))
        return Explanation(own, float(typical.mean()), tuple(ranked), hard)

    def _width_of(self, X: FeatureTable) -> Array:
        """Widths of the intervals of rows."""
        bounds: Array = self.predict_interval(X)
        return np.asarray(bounds[:, 1] - bounds[:, 0])


def _plain(value: object) -> object:
    """A number of numpy as Python's."""
    return value.item() if isinstance(value, np.generic) else value


def _stacked(one: object, others: Any) -> Any:
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
    hard = np.flatnonzero(residuals >= np.quantile(residuals, 1.0 - HARD))
    nearest = hard[np.argsort(distance[hard], kind="stable")[:N_NEIGHBOURS]]
    return tuple(HardRow(int(rows[i]), float(residuals[i]), float(distance[i])) for i in nearest)
