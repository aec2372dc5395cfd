"""`CoverageDisplay` and `ReliabilityDisplay`: how often targets are inside, in subgroups and at several levels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np

from pimeter.arrays import coded
from pimeter.coverage import percent, proportion_bounds
from pimeter.interval_arrays import aligned, levels_of
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

RELIABILITY_LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
TAIL_OF_RANGES = 0.05  # of ranges of coverage: 90 % confidence
MAX_CATEGORIES_TO_DRAW = 12
LONGEST_LABEL = 22  # characters


class CoverageDisplay(Display):
    """Coverage in subgroups of the rows, against the level asked for.

    Parameters
    ----------
    labels : list of str
        What the subgroups are called.
    coverage, lower, upper : ndarray of shape (n_subgroups,)
        Fraction of targets inside, and Clopper-Pearson bounds of it with 90 % confidence, of each by itself.
    confidence_level : float
        The level asked for.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from pimeter.plotting import CoverageDisplay
    >>> shop = ["north", "north", "south", "south"]
    >>> bounds = [[0, 2], [1, 3], [2, 4], [2, 4]]
    >>> CoverageDisplay.from_predictions([1, 2, 3, 5], bounds, 0.9, by=shop).coverage
    array([1. , 0.5])
    """

    def __init__(self, labels: list[str], coverage: Array, lower: Array, upper: Array, confidence_level: float) -> None:
        self.labels, self.coverage, self.lower, self.upper = labels, coverage, lower, upper
        self.confidence_level = confidence_level

    @classmethod
    def from_estimator(
        cls,
        estimator: IntervalPredictor,
        X: FeatureTable,
        y: ArrayLike,
        *,
        by: ArrayLike | None = None,
        confidence_level: float | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Coverage of the intervals that an estimator predicts.

        Parameters
        ----------
        estimator : IntervalRegressor, or any with `predict_interval` and `confidence_level`
            Fitted, on other rows than these.
        X : array or frame of n rows
            Features.
        y : array-like of shape (n,)
            Targets.
        by : array-like of shape (n,), optional
            The subgroup of each row; by default quintiles of the prediction. It is handed to ``width="grouped"``.
        confidence_level : float, optional
            Another level than that of the estimator.
        ax : matplotlib Axes, optional
            Where to draw.

        Returns
        -------
        CoverageDisplay
        """
        level = float(estimator.confidence_level if confidence_level is None else confidence_level)
        needs = by if getattr(estimator, "categories_", None) else None
        return cls.from_predictions(
            y, predicted_bounds(estimator, X, level, needs), level, by=by, y_pred=estimator.predict(X), ax=ax
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_interval: Table,
        confidence_level: float,
        *,
        by: ArrayLike | None = None,
        y_pred: ArrayLike | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Coverage of intervals that are at hand.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Targets.
        y_interval : array-like of shape (n, 2) or frame with columns lower and upper
            Bounds.
        confidence_level : float
            What they were made for.
        by : array-like of shape (n,), optional
            The subgroup of each row; the 12 largest are shown. By default quintiles of the prediction.
        y_pred : array-like of shape (n,), optional
            Predictions; by default the middles of the intervals.
        ax : matplotlib Axes, optional
            Where to draw.

        Returns
        -------
        CoverageDisplay
        """
        given = one_output(aligned(y_true, y_interval), has_levels=False)
        inside = (given.lower <= given.target) & (given.target <= given.upper)
        if by is None:
            middle = given.lower / 2.0 + given.upper / 2.0 if y_pred is None else np.asarray(y_pred, np.float64).ravel()
            rank = np.argsort(np.argsort(middle, kind="stable"), kind="stable")
            codes, names = 5 * rank // len(rank), ["lowest", "2nd", "3rd", "4th", "highest"]
        else:
            found = coded(np.asarray(by))
            codes, names = found.codes, [str(label) for label in found.labels]
        counts, hits = (np.bincount(codes, weights, len(names)) for weights in (None, inside))
        order = np.arange(len(names)) if by is None else np.sort(np.argsort(-counts)[:MAX_CATEGORIES_TO_DRAW])
        order = order[counts[order] > 0]
        low, high = proportion_bounds(hits[order], counts[order], TAIL_OF_RANGES)
        labels = [f"{names[i][:LONGEST_LABEL]} ({int(counts[i]):,})" for i in order]
        return cls(labels, hits[order] / counts[order], low, high, float(confidence_level)).plot(
            ax, is_by=by is not None
        )

    def plot(self, ax: Axes | None = None, *, is_by: bool = True) -> Self:
        """Draw it, on new axes or those given; returns itself."""
        ax = self._begin(ax)
        place, level = np.arange(len(self.labels))[::-1], self.confidence_level
        holds = (self.lower <= level) & (level <= self.upper)
        for part, colour, mark, text in (
            (holds, INSIDE_COLOUR, "o", "consistent"),
            (~holds, OUTSIDE_COLOUR, "X", "not consistent"),
        ):
            ax.hlines(place[part], 100 * self.lower[part], 100 * self.upper[part], color=colour, alpha=0.5, linewidth=3)
            if part.any():
                ax.plot(100 * self.coverage[part], place[part], mark, color=colour, label=text)
        ax.axvline(100 * level, color=LINE_COLOUR, linewidth=1, linestyle="--", label=f"{percent(level)} asked")
        ax.set_yticks(place, [label.replace("$", r"\$") for label in self.labels])
        ax.set(xlabel="targets inside, %", ylabel="" if is_by else "prediction (rows)", ylim=(-0.6, len(place) - 0.4))
        self._legend(3)
        return self


class ReliabilityDisplay(Display):
    """Coverage against the level asked for.

    Parameters
    ----------
    levels, coverage, lower, upper : ndarray of shape (L,)
        Levels asked for, fractions of targets inside, and Clopper-Pearson bounds of these with 90 % confidence, of each
        by itself.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter.plotting import ReliabilityDisplay
    >>> bounds = np.array([[[-1, -2], [1, 2]], [[-1, -2], [1, 2]]])  # row, bound, level
    >>> ReliabilityDisplay.from_predictions([0.0, 1.5], bounds, [0.5, 0.9]).coverage
    array([0.5, 1. ])
    """

    def __init__(self, levels: Array, coverage: Array, lower: Array, upper: Array) -> None:
        self.levels, self.coverage, self.lower, self.upper = levels, coverage, lower, upper

    @classmethod
    def from_estimator(
        cls,
        estimator: IntervalPredictor,
        X: FeatureTable,
        y: ArrayLike,
        *,
        levels: ArrayLike = RELIABILITY_LEVELS,
        by: ArrayLike | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Coverage of the intervals that an estimator predicts at several levels.

        Parameters
        ----------
        estimator : IntervalRegressor, or any whose `predict_interval` takes levels
            Fitted, on other rows than these.
        X : array or frame of n rows
            Features.
        y : array-like of shape (n,)
            Targets.
        levels : array-like of shape (L,), default=(.5, .6, .7, .8, .9, .95, .99)
            Levels asked for, rising.
        by : array-like of shape (n,), optional
            Categories of the rows, for ``width="grouped"``.
        ax : matplotlib Axes, optional
            Where to draw.

        Returns
        -------
        ReliabilityDisplay
        """
        return cls.from_predictions(y, predicted_bounds(estimator, X, levels, by), levels, ax=ax)

    @classmethod
    def from_predictions(
        cls, y_true: ArrayLike, y_interval: Table, levels: ArrayLike, *, ax: Axes | None = None
    ) -> Self:
        """Coverage of intervals that are at hand.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Targets.
        y_interval : array-like of shape (n, 2, L) or frame of ``predict_interval`` at several levels
            Bounds.
        levels : array-like of shape (L,)
            What they were made for, rising.
        ax : matplotlib Axes, optional
            Where to draw.

        Returns
        -------
        ReliabilityDisplay
        """
        given = one_output(aligned(y_true, y_interval), has_levels=True)
        asked = levels_of(levels, given.n_levels)
        hits = ((given.lower <= given.target) & (given.target <= given.upper)).sum(axis=0)
        n = len(given.target)
        return cls(asked, hits / n, *proportion_bounds(hits, np.full(len(asked), n), TAIL_OF_RANGES)).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw it, on new axes or those given; returns itself."""
        ax = self._begin(ax)
        asked = 100 * self.levels
        ax.fill_between(
            asked, 100 * self.lower, 100 * self.upper, color=INSIDE_COLOUR, alpha=0.15, linewidth=0, label="90 % range"
        )
        ax.plot(asked, asked, color=LINE_COLOUR, linewidth=1, linestyle="--", label="as asked for")
        ax.plot(asked, 100 * self.coverage, "o-", color=INSIDE_COLOUR, markersize=4, label="targets inside")
        ax.set(xlabel="level asked for, %", ylabel="targets inside, %")
        self._legend(3)
        return self
