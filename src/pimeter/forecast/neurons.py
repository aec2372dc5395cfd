"""The neurons of a cone, one for each step ahead: how they are fitted, what they learn, and the margins they give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from sklearn.base import BaseEstimator

from pimeter.conformal.estimator import Replaceable
from pimeter.conformal.scores import TAILS
from pimeter.forecast.boxes import box_scores, learned_boxes
from pimeter.forecast.limits import check_within, within_limits
from pimeter.forecast.memory import Memory, Newest, check_magnitudes
from pimeter.forecast.steps import effective_numbers, known_quantile, smoothed, step_quantiles
from pimeter.forecast.window_arrays import as_columns, n_missing, series_blocks, window_errors, windows_until_known
from pimeter.interval_arrays import uncrossed
from pimeter.online import learn_columns, margins, started

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pimeter.forecast.boxes import Box
    from pimeter.protocols import Array, FeatureTable

NO_CONTEXT = "features are for a cone with a context: ForecastIntervals(context='recent')."


class StepNeurons(Replaceable, BaseEstimator):
    """What is behind a cone; the settings and what a caller sees are those of `ForecastIntervals`."""

    confidence_level: float
    tails: Literal["symmetric", "equal", "sided", "lower", "upper"]
    joint: bool
    smooth: bool
    learning_rate: Literal["adaptive", "decaying"] | float
    context: Literal["recent"] | None
    y_min: float | None
    y_max: float | None

    def _fit(self, y_true: ArrayLike, y_pred: ArrayLike, stride: float, features: FeatureTable | None) -> None:
        """Set everything that the cone is known by."""
        tails, p = TAILS[self.tails], float(self.confidence_level)
        given = window_errors(y_true, y_pred)
        errors = given.errors
        n_series, h, n = errors.shape
        until_known = windows_until_known(h, stride)
        missing = n_missing(errors)
        self._limits = (self.y_min, self.y_max)
        check_within(y_true, *self._limits)
        if features is not None and self.context is None:
            raise ValueError(NO_CONTEXT)
        # A path is one error of the joint neuron: all steps of a window arrive together, when the last one is known.
        until_learned = np.full_like(until_known, until_known[-1]) if self.joint else until_known
        self._newest = Newest.of(errors, y_pred, until_learned, is_learned=self.context is None)
        self._memory: Memory | None = None
        if self.context is not None:
            check_magnitudes(errors, y_pred)
            start = Memory.started(errors, y_pred, until_known, features, tails)
            self._memory, errors = start.memory, start.standardised
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
        self._cone, self._tails = boxes, tails
        self._level, self._rate = p, self.learning_rate
        self._is_smooth = self.smooth
        self._states: list[Array] = []
        self._shape = (n_series if given.has_series else None, h)
        self.n_windows_, self.n_missing_ = n, missing
        self._seen_by = TAILS["symmetric"] if boxes else tails  # the joint neuron sees absolute scores
        self._overlaps = until_known[-1:] if boxes else until_known
        self._n_effective_by_series: Array | None = None

    def _checked_errors(self, y_true: ArrayLike, y_pred: ArrayLike) -> Array:
        """Errors (series, h, n) of windows of the horizon and series of `fit`."""
        given = window_errors(y_true, y_pred)
        errors = given.errors
        n_series, h = self._shape
        if given.has_series != (n_series is not None) or errors.shape[:2] != (n_series or 1, h):
            expected = f"(n, {h})" if n_series is None else f"({n_series}, n, {h})"
            msg = f"update takes windows of the horizon and series of fit, {expected}; got {np.shape(y_true)}."
            raise ValueError(msg)
        check_within(y_true, *self._limits)
        if self._memory is not None:
            check_magnitudes(errors, y_pred)
        return errors

    def _features(self, given: FeatureTable | None, n: int) -> Array:
        """Features of n windows; none without a context."""
        if self._memory is not None:
            return self._memory.features(given, n)
        if given is not None:
            raise ValueError(NO_CONTEXT)
        return np.zeros((n, 0))

    def _learn(self, errors: Array, forecasts: Array, features: Array) -> None:
        """Learn rows of errors (series, h, n), with a context one after the other."""
        if self._memory is None:
            self._follow(box_scores(self._cone, errors) if self._cone else errors)
            return
        p = self._level
        for i in range(errors.shape[-1]):
            now = (errors[..., i].ravel(), forecasts[..., i].ravel(), features[i])
            found = self._memory.learn(*now, self._quantiles_at(p), self._tails.level(p))
            self._follow(found.reshape(*errors.shape[:2], 1))

    def _follow(self, seen: Array) -> None:
        """Let neurons learn what they see, (series, h, n)."""
        p, learning_rate, tails = self._level, self._rate, self._seen_by
        states = self._states or [
            started(as_columns(tails.scores(self._seen, direction)), weights.ravel(), learning_rate)
            for direction, weights in zip(tails.directions, self._quantiles, strict=True)
        ]
        self._states = [
            learn_columns(as_columns(tails.scores(seen, direction)), tails.level(p), learning_rate, state)
            for direction, state in zip(tails.directions, states, strict=True)
        ]

    def _intervals(self, forecast: Array, margins: Array, features: Array) -> Array:
        """Bounds ([series,] n, h, 2, levels) at this moment, for margins ([series,] h, 2, levels)."""
        scale: Array | float = 1.0
        if self._memory is not None:
            expected = self._memory.centre_and_scale(forecast, features)
            forecast, scale = forecast + expected.centre, expected.scale[..., None]
        lower, upper = (
            forecast[..., None] + sign * scale * margins[..., None, :, i, :] for i, sign in enumerate((-1.0, 1.0))
        )
        return within_limits(np.stack(uncrossed(lower, upper), axis=-2), *self._limits)

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
        fitted = self._level
        if self._states:
            if p != fitted:
                msg = (
                    f"confidence_level={p:.6g} is not the level {fitted:.6g} that the updated neurons follow. Fit a "
                    "second ForecastIntervals at that level."
                )
                raise ValueError(msg)
            found = [margins(state).reshape(self._quantiles[0].shape) for state in self._states]
            found = found if self._memory is None else self._memory.widened(found)
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
