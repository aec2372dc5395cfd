"""`IntervalDisplay`: targets with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np

from pimeter.arrays import some_rows
from pimeter.interval_arrays import aligned
from pimeter.plotting.display import (
    INSIDE_COLOUR,
    LINE_COLOUR,
    OUTSIDE_COLOUR,
    Display,
    one_output,
    predicted_bounds,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from pimeter.protocols import Array, FeatureTable, IntervalPredictor, Table


class IntervalDisplay(Display):
    """Targets of some rows with their intervals, in the order of the predictions.

    Parameters
    ----------
    lower, upper, y_pred : ndarray of shape (n,)
        Bounds and predictions of the rows that are shown.
    y_true : ndarray of shape (n,) or None
        Their targets.
    n_rows : int
        How many rows there are in all.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from pimeter.plotting import IntervalDisplay
    >>> display = IntervalDisplay.from_predictions([1.0, 2.0, 5.0], [[0, 2], [1, 3], [2, 4]])
    >>> display.ax_.get_ylabel()
    'target'
    """

    def __init__(self, lower: Array, upper: Array, y_pred: Array, y_true: Array | None, n_rows: int) -> None:
        self.lower, self.upper, self.y_pred, self.y_true, self.n_rows = lower, upper, y_pred, y_true, n_rows

    @classmethod
    def from_estimator(
        cls,
        estimator: IntervalPredictor,
        X: FeatureTable,
        y: ArrayLike | None = None,
        *,
        confidence_level: float | None = None,
        by: ArrayLike | None = None,
        max_rows: int = 60,
        ax: Axes | None = None,
    ) -> Self:
        """Intervals that an estimator predicts.

        Parameters
        ----------
        estimator : IntervalRegressor, or any with `predict_interval` and `predict`
            Fitted.
        X : array or frame of n rows
            Features.
        y : array-like of shape (n,), optional
            Targets.
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
        IntervalDisplay
        """
        bounds, prediction = (
            predicted_bounds(estimator, X, confidence_level, by),
            np.asarray(estimator.predict(X), np.float64),
        )
        return cls.from_predictions(y, bounds, y_pred=prediction, max_rows=max_rows, ax=ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike | None,
        y_interval: Table,
        *,
        y_pred: ArrayLike | None = None,
        max_rows: int = 60,
        ax: Axes | None = None,
    ) -> Self:
        """Intervals that are at hand.

        Parameters
        ----------
        y_true : array-like of shape (n,) or None
            Targets.
        y_interval : array-like of shape (n, 2) or frame with columns lower and upper
            Bounds.
        y_pred : array-like of shape (n,), optional
            Predictions; by default the middles of the intervals.
        max_rows : int, default=60
            Rows that are shown; of more, some at random.
        ax : matplotlib Axes, optional
            Where to draw.

        Returns
        -------
        IntervalDisplay
        """
        n = len(np.asarray(y_interval)) if y_true is None else len(np.asarray(y_true))
        given = one_output(aligned(np.zeros(n) if y_true is None else y_true, y_interval), has_levels=False)
        middle = np.clip(given.lower, -1e300, 1e300) / 2.0 + np.clip(given.upper, -1e300, 1e300) / 2.0
        prediction = middle if y_pred is None else np.asarray(y_pred, np.float64).ravel()
        rows = some_rows(n, max_rows)
        rows = rows[np.argsort(prediction[rows], kind="stable")]
        target = None if y_true is None else given.target[rows]
        return cls(given.lower[rows], given.upper[rows], prediction[rows], target, n).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw it, on new axes or those given; returns itself."""
        ax = self._begin(ax)
        place = np.arange(len(self.lower))
        known = [self.y_pred, *([] if self.y_true is None else [self.y_true])]
        known += [bound[np.isfinite(bound)] for bound in (self.lower, self.upper)]
        least, most = np.concatenate(known).min(), np.concatenate(known).max()
        pad = 0.05 * (most - least) or 1.0
        low, high = (np.clip(bound, least - pad, most + pad) for bound in (self.lower, self.upper))
        ax.vlines(place, low, high, color=INSIDE_COLOUR, alpha=0.35, linewidth=3, label="interval")
        ax.plot(place, self.y_pred, "_", color=LINE_COLOUR, markersize=5, label="prediction")
        if self.y_true is not None:
            inside = (self.lower <= self.y_true) & (self.y_true <= self.upper)
            ax.plot(place[inside], self.y_true[inside], ".", color=INSIDE_COLOUR, markersize=5, label="inside")
            ax.plot(
                place[~inside], self.y_true[~inside], "x", color=OUTSIDE_COLOUR, markersize=6, markeredgewidth=2,
                label="outside",
            )  # fmt: skip
        shown = f"{len(place):,} of {self.n_rows:,}" if len(place) < self.n_rows else f"{len(place):,}"
        ax.set(xlabel=f"{shown} rows, by prediction", ylabel="target", xticks=[])
        self._legend(4)
        return self
