"""`ForecastIntervals`: cones around forecasts, one neuron for each step ahead, that follow a series which drifts."""

from __future__ import annotations

from numbers import Real
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from pimeter.arrays import real_array
from pimeter.conformal.estimator import Replaceable
from pimeter.conformal.guarantee import rank_guarantee
from pimeter.conformal.scores import TAILS
from pimeter.conformal.steps import (
    as_columns,
    box_scores,
    coverage_ranges,
    deviation,
    effective_numbers,
    known_quantile,
    learned_boxes,
    n_missing,
    series_blocks,
    smoothed,
    step_quantiles,
    window_errors,
    windows_until_known,
)
from pimeter.coverage import counted, percent, warn_of_coverage
from pimeter.online import LARGEST_ERROR, LEARNING_RATES, learn_columns, margins, started
from pimeter.validation import one_or_more_levels

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from pimeter.boxes import Box

    Array = NDArray[np.float64]

MOST_ERRORS_AT_FIT = 30_000  # of which `fit` finds the effective number: it takes ten times as long as margins


class ForecastIntervals(Replaceable, BaseEstimator):
    """Intervals around forecasts of h steps, from the errors of earlier forecasts by whatever forecaster.

    One neuron per step ahead learns how far targets are from the forecast (the paper's cone). `update` lets each of
    them follow the series. Windows overlap and series drift, so ranks guarantee nothing here; `n_effective_` and
    `coverage_range_` say how much so many windows tell while errors go on as they were.

    Parameters
    ----------
    confidence_level : float, default=0.95
        Proportion of targets that intervals shall cover, at each step by itself, or with `joint` of whole paths.
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

    Attributes
    ----------
    margin_ : ndarray of shape ([n_series,] h, 2)
        How far intervals lie below and above the forecast now.
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
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "confidence_level": [Interval(Real, 0, 1, closed="neither")],
        "tails": [StrOptions(set(TAILS))],
        "joint": ["boolean"],
        "smooth": ["boolean"],
        "learning_rate": LEARNING_RATES,
    }

    def __init__(
        self,
        confidence_level: float = 0.95,
        *,
        tails: Literal["symmetric", "equal", "sided", "lower", "upper"] = "symmetric",
        joint: bool = False,
        smooth: bool = False,
        learning_rate: Literal["adaptive", "decaying"] | float = "adaptive",
    ) -> None:
        self.confidence_level = confidence_level
        self.tails = tails
        self.joint = joint
        self.smooth = smooth
        self.learning_rate = learning_rate

    def fit(self, y_true: ArrayLike, y_pred: ArrayLike, *, stride: float = 1.0) -> Self:
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
            it, and a stride that is too small only makes `n_effective_` smaller than need be.

        Returns
        -------
        ForecastIntervals
            Itself; as it was before if anything is wrong with the input.

        Warns
        -----
        CoverageWarning
            If errors depend on each other so much that there are effectively fewer than the level takes.
        """
        draft = self._draft()
        draft._fit(y_true, y_pred, stride)
        draft._warn_of_few()
        return self._become(draft)

    def _draft(self) -> Self:
        """A copy to work on, after a look at the settings."""
        self._validate_params()
        return super()._draft()

    def _fit(self, y_true: ArrayLike, y_pred: ArrayLike, stride: float) -> None:
        """Set everything that the cone is known by."""
        tails, p = TAILS[self.tails], float(self.confidence_level)
        errors, has_series = window_errors(y_true, y_pred)
        n_series, h, n = errors.shape
        until_known = windows_until_known(h, stride)
        missing = n_missing(errors)
        boxes: list[Box] = []
        if self.joint:
            boxes = learned_boxes(errors[..., : n // 2], tails, p, is_smooth=self.smooth)
            seen = box_scores(boxes, errors[..., n // 2 :])
            if np.isnan(seen).all(axis=-1).any():
                msg = "joint=True needs windows of which all steps are known; the later half of the windows has none."
                raise ValueError(msg)
            quantiles = [known_quantile(seen, p)]
        else:
            seen, quantiles = errors, step_quantiles(errors, tails, p)
        self._errors, self._seen, self._quantiles = errors, seen, quantiles
        self._cone, self._tails, self._fitted_with = boxes, tails, (p, self.learning_rate)
        self._is_smooth = self.smooth
        self._states: list[Array] = []
        self._shape = (n_series if has_series else None, h)
        self.n_windows_, self.n_missing_ = n, missing
        self._seen_by = TAILS["symmetric"] if boxes else tails  # the joint neuron sees absolute scores
        self._overlaps = until_known[-1:] if boxes else until_known
        self._n_effective_by_series: Array | None = None

    def update(self, y_true: ArrayLike, y_pred: ArrayLike) -> Self:
        """Learn from what has happened since; each step ahead follows its own errors.

        Parameters
        ----------
        y_true : array-like of shape (n, h) or (n_series, n, h)
            Targets in the order in which they became known. NaN for what is not known yet or was given before: each
            error is to be given once. With `joint` only windows of which all steps are known count.
        y_pred : array-like of the same shape
            Their forecasts.

        Returns
        -------
        ForecastIntervals
            Itself; as it was before if anything is wrong with the input.
        """
        check_is_fitted(self)
        errors, has_series = window_errors(y_true, y_pred)
        n_series, h = self._shape
        if has_series != (n_series is not None) or errors.shape[:2] != (n_series or 1, h):
            expected = f"(n, {h})" if n_series is None else f"({n_series}, n, {h})"
            msg = f"update takes windows of the horizon and series of fit, {expected}; got {np.shape(y_true)}."
            raise ValueError(msg)
        p, learning_rate = self._fitted_with
        tails = self._seen_by
        seen = box_scores(self._cone, errors) if self._cone else errors
        states = self._states or [
            started(as_columns(tails.scores(self._seen, direction)), weights.ravel(), learning_rate)
            for direction, weights in zip(tails.directions, self._quantiles, strict=True)
        ]
        self._states = [
            learn_columns(as_columns(tails.scores(seen, direction)), tails.level(p), learning_rate, state)
            for direction, state in zip(tails.directions, states, strict=True)
        ]
        return self

    def predict_interval(self, y_pred: ArrayLike, confidence_level: ArrayLike | None = None) -> Array:
        """Intervals around new forecasts.

        Parameters
        ----------
        y_pred : array-like of shape (n, h) or (n_series, n, h)
            Forecasts.
        confidence_level : float or array-like of shape (L,), optional
            Other levels than that of the estimator. Updated neurons know their own level only.

        Returns
        -------
        ndarray of shape ([n_series,] n, h, 2[, L])
            Lower and upper bounds.
        """
        check_is_fitted(self)
        forecast = self._forecast(y_pred)
        asked = self._fitted_with[0] if confidence_level is None else confidence_level
        levels = one_or_more_levels("confidence_level", asked)
        margins = np.stack([self._margins(p) for p in levels.ravel().tolist()], axis=-1)  # ([series,] h, 2, levels)
        lower, upper = (forecast[..., None] + sign * margins[..., None, :, i, :] for i, sign in enumerate((-1.0, 1.0)))
        crossed = lower > upper  # possible below 50 %, and while signed neurons learn
        with np.errstate(invalid="ignore"):  # bounds that are both infinite do not cross
            middle = np.where(crossed, 0.5 * lower + 0.5 * upper, 0.0)
        bounds = np.stack([np.where(crossed, middle, lower), np.where(crossed, middle, upper)], axis=-2)
        return np.asarray(bounds[..., 0] if levels.ndim == 0 else bounds)

    def baseline_interval(self, y_pred: ArrayLike, *, n_past: int, y_true: ArrayLike | None = None) -> Array:
        """The paper's baseline: normal errors of one size at all steps, ``f -+ z_p sigma sqrt(1 + 1/T)``.

        It would be right if forecasts were the mean of the last T observations and these were independent.

        Parameters
        ----------
        y_pred : array-like of shape (n, h) or (n_series, n, h)
            Forecasts.
        n_past : int
            T, the number of observations that a forecast looks back on.
        y_true : array-like of the same shape, optional
            None: sigma is the standard deviation of the errors of `fit`. Given: of each window's own errors, as in the
            paper, which looks at the targets that it is to predict.

        Returns
        -------
        ndarray of shape ([n_series,] n, h, 2)
            Lower and upper bounds, with both tails whatever `tails` is.
        """
        check_is_fitted(self)
        forecast = self._forecast(y_pred)
        if not (isinstance(n_past, Real) and n_past >= 1):
            msg = f"n_past must be the number of observations that a forecast looks back on, at least 1; got {n_past}."
            raise ValueError(msg)
        if y_true is None:
            sigma = deviation(self._errors, (1, 2))
            sigma = sigma[0] if self._shape[0] is None else sigma[:, None, None]
        else:
            errors, _ = window_errors(y_true, y_pred)
            sigma = deviation(errors, (1,)).reshape(*forecast.shape[:-1], 1)
        p = self._fitted_with[0]
        margin = NormalDist().inv_cdf((1.0 + p) / 2.0) * sigma * np.sqrt(1.0 + 1.0 / n_past)
        return np.stack([forecast - margin, forecast + margin], axis=-1)

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
        points = coverage_ranges(self._n_effective(), self._fitted_with[0], self._seen_by.n_cuts)
        return points[0] if self._shape[0] is None else points

    @property
    def margin_(self) -> Array:
        """How far intervals lie below and above the forecast now."""
        check_is_fitted(self)
        return self._margins(self._fitted_with[0])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_quantiles")

    def _margins(self, p: float) -> Array:
        """Margins at this level, ([series,] h, 2)."""
        quantiles = self._quantiles_at(p)
        if self._cone:
            factors = quantiles[0][:, 0].tolist()
            margins = np.stack([box.margins(factor) for box, factor in zip(self._cone, factors, strict=True)])
        else:
            margins = self._tails.margins(quantiles)
            margins = smoothed(margins, self._tails) if self._is_smooth else margins
        return margins[0] if self._shape[0] is None else margins

    def _quantiles_at(self, p: float) -> list[Array]:
        """Quantiles of scores at this level, one for each direction, as they were fitted or are after updates."""
        fitted = self._fitted_with[0]
        if self._states:
            if p != fitted:
                msg = (
                    f"confidence_level={p:.6g} is not the level {fitted:.6g} that the updated neurons follow. Fit a "
                    "second ForecastIntervals at that level."
                )
                raise ValueError(msg)
            found = [margins(state).reshape(self._quantiles[0].shape) for state in self._states]
            is_absolute = bool(self._cone) or not self._tails.has_centre
            # A step down may lead below 0, where no absolute error is.
            return [np.maximum(one, 0.0) for one in found] if is_absolute else found
        if p == fitted:
            return self._quantiles
        return [known_quantile(self._seen, p)] if self._cone else step_quantiles(self._errors, self._tails, p)

    def _n_effective(self) -> Array:
        """Effective number of errors of each series: found when first asked for, as it takes longer than margins."""
        if self._n_effective_by_series is None:
            seen = self._seen
            parts = [(seen[part], [one[part] for one in self._quantiles]) for part in series_blocks(seen)]
            found = [effective_numbers(part, self._seen_by, own, self._overlaps) for part, own in parts]
            self._n_effective_by_series = np.concatenate(found)
        return self._n_effective_by_series

    def _warn_of_few(self) -> None:
        """Warn if errors, of many the last steps of series drawn at random, are effectively too few for the level."""
        p, n_series, seen = self._fitted_with[0], self._shape[0], self._seen
        if seen.size <= MOST_ERRORS_AT_FIT:
            found = self._n_effective()
        else:
            n_some = min(len(seen), max(1, MOST_ERRORS_AT_FIT // seen.shape[-1]))
            some = np.random.default_rng(0).choice(len(seen), n_some, replace=False)
            quantiles = [one[some, -1:] for one in self._quantiles]
            found = effective_numbers(seen[some, -1:], self._seen_by, quantiles, self._overlaps[-1:])
        needed = rank_guarantee(0.0, p, n_cuts=self._seen_by.n_cuts).needed
        n_short = np.count_nonzero(found < needed)
        if n_short:
            whose = "" if n_series is None else f" of {n_short} of {len(found)} series"
            warn_of_coverage(
                f"{counted(seen.shape[-1], 'window')}{whose} {'is' if seen.shape[-1] == 1 else 'are'} as good as about "
                f"{counted(found.min(), 'independent error', 3)} (n_effective_); {percent(p, 6)} takes {needed}. Take "
                "more windows, or a lower confidence_level."
            )

    def _forecast(self, y_pred: ArrayLike) -> Array:
        """Finite forecasts of the horizon and series of `fit`."""
        n_series, h = self._shape
        forecast = real_array("y_pred", y_pred).astype(np.float64, copy=False)
        fits = forecast.ndim == (2 if n_series is None else 3) and forecast.shape[-1] == h
        if not fits or (n_series is not None and len(forecast) != n_series):
            expected = f"(n, {h})" if n_series is None else f"({n_series}, n, {h})"
            msg = f"y_pred must have shape {expected}, as in fit; got {forecast.shape}. One path is y_pred[None]."
            raise ValueError(msg)
        wrong = ~(np.abs(forecast) <= LARGEST_ERROR)
        if wrong.any():
            n_wrong = np.count_nonzero(wrong)
            what = f"NaN or infinite, or beyond {LARGEST_ERROR:g}"
            msg = f"y_pred must be finite; {n_wrong} of {forecast.size} values are {what}."
            raise ValueError(msg)
        return forecast
