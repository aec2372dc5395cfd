"""`ForecastIntervals`: cones around forecasts, one neuron for each step ahead, that follow a series which drifts."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from pimeter.conformal.scores import TAILS
from pimeter.constraints import Level
from pimeter.forecast.memory import forecast_columns
from pimeter.forecast.paths import ConePaths
from pimeter.forecast.steps import coverage_ranges, warn_of_few
from pimeter.forecast.window_arrays import finite_forecasts
from pimeter.frames import refuse_other_orders
from pimeter.online import LEARNING_RATES
from pimeter.validation import check_limits, one_or_more_levels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from pimeter.protocols import Array, FeatureTable


class ForecastIntervals(ConePaths):
    """Intervals around forecasts of h steps, from the errors of earlier forecasts by whatever forecaster.

    One neuron per step ahead learns how far targets are from the forecast (the paper's cone). `update` lets each of
    them follow the series. Windows overlap and series drift, so ranks guarantee nothing here; `n_effective_` and
    `coverage_range_` say how much so many windows tell while errors go on as they were.

    Parameters
    ----------
    confidence_level : float, default=0.95
        Proportion of targets that intervals should cover, at each step by itself, or with `joint` of whole paths.
    tails : {"symmetric", "equal", "sided", "lower", "upper"}, default="symmetric"
        ``[f - r, f + r]`` with one neuron on absolute errors; signed errors with half of the misses in either tail; the
        paper's two neurons, each sign separately at the confidence level; one bound, the other being infinite.
    joint : bool, default=False
        Whole paths: the first half of the windows learns the shape of the cone, and one more neuron learns from the
        others how large it has to be to hold all steps of a window at once.
    smooth : bool, default=False
        Smooth margins along the horizon, by a parabola through seven steps (Savitzky-Golay): neighbouring steps
        resemble each other, and few windows make margins jump.
    learning_rate : {"adaptive", "decaying"} or float, default="adaptive"
        How neurons learn in `update`: "adaptive" follows errors that drift, "decaying" converges to their quantile, a
        number is a fixed step in the errors' own unit (with `joint` in that of the cone's size), see `OnlineNeuron`.
        Unlike there, a margin does not follow the newest errors: those of later steps are old before they are known.
    context : {"recent"} or None, default=None
        "recent": what was known when a forecast was made moves and scales its interval. The newest errors, the
        forecast, how it differs from the newest ones, and `features` predict the error to come and how large it may
        be, by regressions that learn with each update; the neurons see what remains. For series whose errors resemble
        those before. `fit` then stops when the window after its last one is made: targets that were not known by then
        are left aside, and come with `follow` or `update`.
    y_min, y_max : float, optional
        Targets are never below or above: intervals end there.

    Attributes
    ----------
    margin_ : ndarray of shape ([n_series,] h, 2)
        How far intervals lie below and above the forecast now; with `context` below and above their centre, in scales.
    n_windows_ : int
        Windows of `fit`.
    n_missing_ : int
        Errors of `fit` that were not known (NaN) and skipped.
    n_effective_ : float or ndarray of shape (n_series,)
        About how many independent errors the neurons of a series have, at most `n_windows_`: those seen, divided by how
        much more a mean of them varies than one of independent ones, for the step that has the fewest. That is
        estimated from the autocorrelation of the errors themselves (of their ranks, and of whether they are inside),
        so it knows of windows that overlap and of errors that last. Fewer than four errors, and errors that are all
        the same, say nothing of that and count as one. With ``tails="sided"`` of one sign, with `joint` of
        the later half of the windows.
    coverage_range_ : ndarray of shape ([n_series,] 2)
        5 % and 95 % points of the coverage of new errors, at any one step, that so many independent errors would give.
        An estimate, no guarantee: it assumes that errors go on as they were, and that their dependence shows in the
        windows at hand. In simulations of normal autoregressive errors and random walks it had the true coverage inside
        in 87 % of the draws or more; with bursts, volatility that comes and goes, or few weeks of errors that repeat
        weekly only in 69 to 81 % (the least of each).

    See Also
    --------
    horizon_errors : The errors alone.
    OnlineNeuron : What follows a step.

    Notes
    -----
    With `context` and without `smooth`, updated by each row, at most ``(1 - p) T + c (101 + d (2 + log2(B / b)))`` of T
    targets of a step miss their interval, whatever the series: d is how many windows later the target is known, c the
    number of tails that are learned (2 with equal ones, else 1), b the largest absolute standardised error of `fit` and
    B that of all.
    Misses count against the interval as it was when the window was made; while there are 100 more than allowed, a
    margin is twice the largest standardised error. Of bounded errors B is bounded: a scale is at least 8e-5 of the mean
    absolute error of `fit`.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter import ForecastIntervals
    >>> rng = np.random.default_rng(0)
    >>> series = np.cumsum(rng.standard_normal(2000))
    >>> windows = np.lib.stride_tricks.sliding_window_view(series, 6)
    >>> y_pred = np.repeat(windows[:, :1], 5, axis=1)  # the last value stays
    >>> y_true = windows[:, 1:]
    >>> cone = ForecastIntervals(0.9).fit(y_true[:1000], y_pred[:1000])
    >>> cone.margin_[:, 1].round(1)  # a random walk: 1.64 times the root of the step
    array([1.5, 2.3, 2.8, 3.3, 3.7])
    >>> cone.predict_interval(y_pred[1000:]).shape
    (995, 5, 2)

    As time goes by: one step of the newest window is known, two of the one before, and so on.

    >>> newest = np.where(np.arange(5) == 0, y_true[1000:1001], np.nan)
    >>> cone.update(newest, y_pred[1000:1001]).margin_[:, 1].round(1)
    array([1.5, 2.3, 2.8, 3.3, 3.7])

    Errors that resemble those before: half of the width is enough.

    >>> lasting, zeros = np.zeros((1500, 1)), np.zeros((1500, 1))
    >>> for t in range(1, 1500):
    ...     lasting[t] = 0.9 * lasting[t - 1] + rng.standard_normal()
    >>> for context in (None, "recent"):
    ...     cone = ForecastIntervals(0.9, context=context).fit(lasting[:1000], zeros[:1000])
    ...     print(np.diff(cone.follow(lasting[1000:], zeros[1000:])).mean().round(1))
    7.4
    3.6
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "confidence_level": [Level()],
        "tails": [StrOptions(set(TAILS))],
        "joint": ["boolean"],
        "smooth": ["boolean"],
        "learning_rate": LEARNING_RATES,
        "context": [StrOptions({"recent"}), None],
        "y_min": [Real, None],
        "y_max": [Real, None],
    }

    def __init__(
        self,
        confidence_level: float = 0.95,
        *,
        tails: Literal["symmetric", "equal", "sided", "lower", "upper"] = "symmetric",
        joint: bool = False,
        smooth: bool = False,
        learning_rate: Literal["adaptive", "decaying"] | float = "adaptive",
        context: Literal["recent"] | None = None,
        y_min: float | None = None,
        y_max: float | None = None,
    ) -> None:
        self.confidence_level = confidence_level
        self.tails = tails
        self.joint = joint
        self.smooth = smooth
        self.learning_rate = learning_rate
        self.context = context
        self.y_min = y_min
        self.y_max = y_max

    def fit(
        self, y_true: ArrayLike, y_pred: ArrayLike, *, stride: float = 1.0, features: FeatureTable | None = None
    ) -> Self:
        """Learn from windows of forecasts and what then happened; forgets all updates.

        Parameters
        ----------
        y_true : array-like of shape (n, h) or (n_series, n, h)
            Targets of each window, the oldest window first. NaN where a step is not known: it is skipped and counted.
        y_pred : array-like of the same shape
            Their forecasts, by a model that was not trained on these targets.
        stride : float, default=1
            How many steps after the one before a window starts: 1 if one is made at each step, h if windows follow each
            other without overlap, 1/24 for hourly windows of daily steps. Steps that overlap equally many windows
            have one estimate of their dependence, which makes `n_effective_` more certain; margins do not depend on
            it, and a stride that is too small only makes `n_effective_` smaller than need be. With `context` it says
            when a target is known, and must not be too large.
        features : array-like of shape (n, q) or (n, h, q), or frame of n rows, optional
            With `context`: what else was known when each window was made, of all its steps or of each. Dates in a frame
            become the time of the day, the week and the year.

        Returns
        -------
        ForecastIntervals
            Itself; as it was before if anything is wrong with the input.

        Warns
        -----
        CoverageWarning
            If errors depend on each other so much that there are effectively fewer than the level takes.
        """
        refuse_other_orders({"y_true": y_true, "y_pred": y_pred, "features": features})
        draft = self._draft()
        draft._fit(y_true, y_pred, stride, features)
        level, n_series = draft._level, draft._shape[0]
        warn_of_few(draft._seen, draft._seen_by, draft._quantiles, draft._overlaps, level, n_series)
        return self._become(draft)

    def _draft(self) -> Self:
        """A copy to work on, after a look at the settings."""
        self._validate_params()
        check_limits(self.y_min, self.y_max)
        if self.context is not None and self.joint:
            msg = "context='recent' is for each step by itself; leave out joint=True, or the context."
            raise ValueError(msg)
        return super()._draft()

    def update(self, y_true: ArrayLike, y_pred: ArrayLike, *, features: FeatureTable | None = None) -> Self:
        """Learn from what has happened since; each step ahead follows its own errors.

        Parameters
        ----------
        y_true : array-like of shape (n, h) or (n_series, n, h)
            Targets in the order in which they became known. NaN for what is not known yet or was given before: each
            error is to be given once. With `joint` only windows of which all steps are known count. With `context` each
            row is what became known until the next window was made: step 1 of the newest window, step 2 of the one
            before (with a stride of 1), and so on.
        y_pred : array-like of the same shape
            Their forecasts.
        features : array-like or frame of n rows, optional
            With `context`: what was known when the newest window was made before each row became known, in the columns
            that `fit` was given.

        Returns
        -------
        ForecastIntervals
            Itself; as it was before if anything is wrong with the input.
        """
        check_is_fitted(self)
        refuse_other_orders({"y_true": y_true, "y_pred": y_pred, "features": features})
        errors = self._checked_errors(y_true, y_pred)
        rows, table = forecast_columns(y_pred, errors), self._features(features, errors.shape[-1])
        self._newest = self._newest.forgotten()
        self._learn(errors, rows, table)
        return self

    def follow(self, y_true: ArrayLike, y_pred: ArrayLike, *, features: FeatureTable | None = None) -> Array:
        """Intervals of the windows after those of `fit`, each from what was known when it was made; and learn them.

        With `joint` a window is learned as a whole path, when its last step is known.

        Parameters
        ----------
        y_true : array-like of shape (n, h) or (n_series, n, h)
            Targets of each window, NaN for what is not known yet.
        y_pred : array-like of the same shape
            Their forecasts, all of them known.
        features : array-like or frame of n rows, optional
            With `context`: what was known when each window was made, in the columns that `fit` was given.

        Returns
        -------
        ndarray of shape ([n_series,] n, h, 2)
            Lower and upper bounds; the cone then knows what is known when the next window is made.
        """
        check_is_fitted(self)
        refuse_other_orders({"y_true": y_true, "y_pred": y_pred, "features": features})
        errors = self._checked_errors(y_true, y_pred)
        forecast = finite_forecasts(y_pred, *self._shape)
        table, every = self._features(features, errors.shape[-1]), forecast_columns(forecast, errors)
        followed = self._newest.followed(errors, every)
        found = []
        for i in range(errors.shape[-1]):
            now = slice(i, i + 1)
            found.append(self._intervals(forecast[..., now, :], self._margins(self._level)[..., None], table[now]))
            self._learn(followed.arriving.errors[..., now], followed.arriving.forecasts[..., now], table[now])
        self._newest = followed.newest
        return np.concatenate(found, axis=-4)[..., 0]

    def predict_interval(
        self, y_pred: ArrayLike, confidence_level: ArrayLike | None = None, *, features: FeatureTable | None = None
    ) -> Array:
        """Intervals around new forecasts.

        Parameters
        ----------
        y_pred : array-like of shape (n, h) or (n_series, n, h)
            Forecasts.
        confidence_level : float or array-like of shape (L,), optional
            Other levels than that of the estimator. Updated neurons know their own level only.
        features : array-like or frame of n rows, optional
            With `context`: what is known when each of these windows is made, in the columns that `fit` was given.

        Returns
        -------
        ndarray of shape ([n_series,] n, h, 2[, L])
            Lower and upper bounds.
        """
        check_is_fitted(self)
        refuse_other_orders({"y_pred": y_pred, "features": features})
        forecast = finite_forecasts(y_pred, *self._shape)
        asked = self._level if confidence_level is None else confidence_level
        levels = one_or_more_levels("confidence_level", asked)
        margins = np.stack([self._margins(p) for p in levels.ravel().tolist()], axis=-1)  # ([series,] h, 2, levels)
        bounds = self._intervals(forecast, margins, self._features(features, forecast.shape[-2]))
        return np.asarray(bounds[..., 0] if levels.ndim == 0 else bounds)

    def plot(
        self,
        y_pred: ArrayLike,
        y_true: ArrayLike | None = None,
        *,
        confidence_level: ArrayLike | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """The cone around one forecast.

        Parameters
        ----------
        y_pred : array-like of shape (h,)
            The forecast.
        y_true : array-like of shape (h,), optional
            What happened, NaN for what is not known yet.
        confidence_level : float or array-like of shape (L,), optional
            Other levels than that of the estimator, a band for each.
        ax : matplotlib Axes, optional
            Where to draw.

        Returns
        -------
        matplotlib Axes
        """
        from pimeter.forecast.panel_plot import draw_cone

        levels = np.atleast_1d(self._level if confidence_level is None else confidence_level)
        bounds = self.predict_interval(np.reshape(y_pred, (1, -1)), levels)[0]
        return draw_cone(np.asarray(y_pred, np.float64).ravel(), bounds, levels, y_true, ax)

    @property
    def n_effective_(self) -> float | Array:
        """About how many independent errors the neurons of each series have."""
        check_is_fitted(self)
        found = self._n_effective()
        return float(found[0]) if self._shape[0] is None else found

    @property
    def coverage_range_(self) -> Array:
        """5 % and 95 % points of the coverage that so many independent errors would give: an estimate, no guarantee."""
        check_is_fitted(self)
        points = coverage_ranges(self._n_effective(), self._level, self._seen_by.n_cuts)
        return points[0] if self._shape[0] is None else points

    @property
    def margin_(self) -> Array:
        """How far intervals lie below and above the forecast now."""
        check_is_fitted(self)
        return self._margins(self._level)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_quantiles")
