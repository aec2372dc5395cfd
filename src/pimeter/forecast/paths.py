"""What people do with cones: sums and means over the horizon, sample paths, and quantiles of single steps.

Errors of one window belong together: a sum of them is a sum along a path that happened. Paths to come are past paths
of errors, whose values at each step are replaced by those of the same rank in that step's own distribution, stretched
on either side of its median to the bounds of the cone: they have the margins of the cone and the dependence of the past
(rank reordering, known as the Schaake shuffle).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Literal

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from pimeter.arrays import ranks
from pimeter.coverage import counted
from pimeter.dependence import autocorrelation, variance_inflation
from pimeter.forecast.limits import within_limits
from pimeter.forecast.neurons import StepNeurons
from pimeter.forecast.window_arrays import finite_forecasts
from pimeter.quantiles import quantile
from pimeter.validation import integer, one_or_more_levels

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike

    from pimeter.protocols import Array, FeatureTable, Flags, Index

MIN_PATHS = 2  # whole windows that dependence is learned from
LEAST_PATHS = 100  # of which margins are exact
MOST_STRETCH = 100.0  # by which a side of a step's distribution is stretched or shrunk at most


class ConePaths(StepNeurons):
    """Cones whose steps are taken together."""

    @abstractmethod
    def predict_interval(self, y_pred: ArrayLike, confidence_level: ArrayLike | None = None) -> Array:
        """Intervals around new forecasts, step by step."""

    def sum_interval(
        self,
        y_pred: ArrayLike,
        *,
        of: Literal["sum", "mean"] = "sum",
        weights: ArrayLike | None = None,
        features: FeatureTable | None = None,
    ) -> Array:
        """Intervals of the sum or the mean of targets over the horizon, such as weekly demand from daily forecasts.

        Parameters
        ----------
        y_pred : array-like of shape (n, h) or (n_series, n, h)
            Forecasts.
        of : {"sum", "mean"}, default="sum"
            What the interval is of.
        weights : array-like of shape (h,), optional
            What each step counts: 0 leaves a step out, prices make a turnover.
        features : array-like or frame of n rows, optional
            With `context`: what is known when each of these windows is made, in the columns that `fit` was given.

        Returns
        -------
        ndarray of shape ([n_series,] n, 2)
            Lower and upper bounds at the level of the estimator, with half of the misses on either side.
        """
        check_is_fitted(self)
        counts = step_weights(of, weights, self._shape[1])
        p = self._level
        used = counts != 0.0
        found = [middle_of_sums(paths @ counts[used], p) for paths in self._future_paths(y_pred, features, used)]
        return np.array(found).reshape(*np.shape(y_pred)[:-1], 2)

    def sample_paths(
        self,
        y_pred: ArrayLike,
        n_paths: int = 100,
        *,
        features: FeatureTable | None = None,
        random_state: int | None = None,
    ) -> Array:
        """Paths that targets may take, with the margins of the cone and the dependence of past windows.

        Parameters
        ----------
        y_pred : array-like of shape (n, h) or (n_series, n, h)
            Forecasts.
        n_paths : int, default=100
            For each forecast. Past windows are drawn equally often; 100 paths or more have the margins of the cone
            exactly, and so have as many as there are windows.
        features : array-like or frame of n rows, optional
            With `context`: what is known when each of these windows is made, in the columns that `fit` was given.
        random_state : int, optional
            Which windows are drawn, and in which order.

        Returns
        -------
        ndarray of shape ([n_series,] n, n_paths, h)
            Values at each step.

        Notes
        -----
        Margins that do not know the forecast are right on average, not for each forecast. Where a high forecast is
        followed by a low error, as a seasonal naive one is, the highest value of a path comes out too high:
        ``context="recent"`` learns how errors depend on the forecast, `PanelIntervals` with a `season_length` also on
        earlier seasons.
        """
        check_is_fitted(self)
        n_paths = integer("n_paths", n_paths, at_least=1)
        rng = check_random_state(random_state)
        exact = self._tails.bound_levels(self._level)
        found = [redrawn(paths, n_paths, exact, rng) for paths in self._future_paths(y_pred, features)]
        return np.array(found).reshape(*np.shape(y_pred)[:-1], n_paths, self._shape[1])

    def predict_quantile(self, y_pred: ArrayLike, levels: ArrayLike, *, features: FeatureTable | None = None) -> Array:
        """Quantiles of targets at each step, such as the order that a newsvendor places.

        Parameters
        ----------
        y_pred : array-like of shape (n, h) or (n_series, n, h)
            Forecasts.
        levels : float or array-like of shape (L,)
            Proportions of targets that should lie below: where a unit short costs 3 and a unit over 1, 3/4.
        features : array-like or frame of n rows, optional
            With `context`: what is known when each of these windows is made, in the columns that `fit` was given.

        Returns
        -------
        ndarray of shape ([n_series,] n, h[, L])
            From the distribution that paths are drawn from, so that the bounds of the cone are its quantiles.
        """
        check_is_fitted(self)
        given = one_or_more_levels("levels", levels)
        found = [np.quantile(paths, given, axis=0, method="hazen") for paths in self._future_paths(y_pred, features)]
        moved = np.moveaxis(np.array(found), 1, -1) if given.ndim else np.array(found)
        return np.asarray(moved.reshape(*np.shape(y_pred), *given.shape))

    def _future_paths(
        self, y_pred: ArrayLike, features: FeatureTable | None, used: Flags | None = None
    ) -> Iterator[Array]:
        """All paths (n_paths, h) of each forecast, in the order of series and windows; with `used` of some steps."""
        if self._cone:
            msg = "sums and sample paths take a cone that is fitted step by step: joint=False."
            raise ValueError(msg)
        forecast = finite_forecasts(y_pred, *self._shape)
        table = self._features(features, forecast.shape[-2])
        off, scale = np.zeros_like(forecast), np.ones_like(forecast)
        if self._memory is not None:
            expected = self._memory.centre_and_scale(forecast, table)
            off, scale = expected.centre, expected.scale
        p, h = self._level, self._shape[1]
        steps = np.arange(h) if used is None else np.flatnonzero(used)
        for i, own in enumerate(self._margins(p).reshape(-1, h, 2)):
            paths = stretched_paths(self._errors[i][steps], own[steps], self._tails.bound_levels(p))
            rows = [each.reshape(len(self._errors), -1, h)[i][:, steps] for each in (forecast, off, scale)]
            for centre, moved, unit in zip(*rows, strict=True):
                yield within_limits(centre + moved + unit * paths, *self._limits)


def step_weights(of: str, weights: ArrayLike | None, h: int) -> Array:
    """What each of h steps counts in a sum or a mean."""
    if of not in ("sum", "mean"):
        msg = f'of must be "sum" or "mean"; got {of!r}.'
        raise ValueError(msg)
    counts = np.ones(h) if weights is None else np.asarray(weights, np.float64)
    if counts.shape != (h,) or not np.isfinite(counts).all() or not counts.any():
        msg = f"weights must hold {counted(h, 'finite number')}, not all 0; got {weights!r}."
        raise ValueError(msg)
    if of == "sum":
        return counts
    if not counts.sum() > 0.0:
        msg = f"the weights of a mean must add up to more than 0; got {weights!r}."
        raise ValueError(msg)
    return np.asarray(counts / counts.sum())


def middle_of_sums(sums: Array, p: float) -> Array:
    """Lower and upper quantile of sums along windows in the order of time, a little further out where they say little.

    Sums of windows that overlap are as good as few independent ones, m of them, between whose quantiles less than p
    of new ones lie on average: levels are as for ``p (m + 1/2) / m``.
    """
    inflation = float(variance_inflation(autocorrelation(ranks(sums))))
    m = len(sums) / inflation
    level = min(p * (m + 0.5) / m, 1.0 - 1.0 / len(sums))
    level = max(level, p)
    return np.asarray(quantile(sums, np.array([(1.0 - level) / 2.0, (1.0 + level) / 2.0])), np.float64)


def stretched_paths(errors: Array, margins: Array, at: Array) -> Array:
    """Past paths (n, h) of errors (h, n), reordered by rank to distributions with these margins at two levels."""
    whole = errors.T[~np.isnan(errors).any(axis=0)]
    if len(whole) < MIN_PATHS:
        msg = f"sums and paths need at least {MIN_PATHS} windows of which all steps are known; got {len(whole)}."
        raise ValueError(msg)
    levels = np.array([at[0], 0.5, at[1]])
    found = np.empty_like(whole)
    for j, own in enumerate(errors):
        known = np.sort(own[~np.isnan(own)])
        place = (ranks(whole[:, j]) - 0.5) / len(whole)
        values = np.interp(place, (np.arange(len(known)) + 0.5) / len(known), known)
        lower, median, upper = np.quantile(values, levels, method="hazen")
        below = _stretch(median - lower, median + margins[j, 0])
        above = _stretch(upper - median, margins[j, 1] - median)
        found[:, j] = median + (values - median) * np.where(values < median, below, above)
    return found


def _stretch(now: float, wanted: float) -> float:
    """By which one side of a distribution is to be multiplied; 1 where it has no width, or no bound."""
    if not (now > 0.0 and 0.0 <= wanted < np.inf):
        return 1.0
    return float(np.clip(wanted / now, 1.0 / MOST_STRETCH, MOST_STRETCH))


def redrawn(paths: Array, n_paths: int, exact: Array, rng: np.random.RandomState) -> Array:
    """So many of past paths (n, h), with their quantiles at exact levels."""
    drawn = paths[_drawn(len(paths), n_paths, rng)]
    if n_paths < LEAST_PATHS or n_paths % len(paths) == 0:
        return np.asarray(drawn)
    places = np.argsort(np.argsort(drawn, axis=0, kind="stable"), axis=0)
    at = (np.arange(len(paths)) + 0.5) / len(paths)
    columns = [margins_kept(own, at, exact, n_paths) for own in np.sort(paths, axis=0).T]
    return np.take_along_axis(np.stack(columns, axis=1), places, axis=0)


def margins_kept(quantiles: Array, at: Array, exact: Array, n: int) -> Array:
    """n values in order of a distribution with these quantiles, which at exact levels are theirs by Hazen's rule."""
    values = np.interp((np.arange(n) + 0.5) / n, at, np.maximum.accumulate(quantiles))
    bounds = np.interp(exact, at, np.maximum.accumulate(quantiles))
    for level, bound in zip(exact.tolist(), bounds.tolist(), strict=True):
        place = min(max(level * n - 0.5, 0.0), n - 1.0)
        below = min(int(place), n - 2)
        if below < 0:  # a single value
            continue
        part = place - below
        least, most = values[max(below - 1, 0)], values[min(below + 2, n - 1)]
        gap = min(
            float(values[below + 1] - values[below]),
            (bound - least) / part if part > 0.0 and below > 0 else np.inf,
            (most - bound) / (1.0 - part) if part < 1.0 and below < n - 2 else np.inf,
        )
        if part < 1.0:
            values[below] = bound - part * gap
        if part > 0.0:
            values[below + 1] = bound + (1.0 - part) * gap
    return values


def _drawn(n: int, n_paths: int, rng: np.random.RandomState) -> Index:
    """Which of n past paths each new one is: all equally often, but for what is left over."""
    some = np.concatenate([np.tile(np.arange(n), n_paths // n), rng.choice(n, n_paths % n, replace=False)])
    return np.asarray(rng.permutation(some), np.intp)
