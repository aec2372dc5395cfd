"""`OnlineIntervals`: intervals of a calibrated model that follow rows in the order of time."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.signal import lfilter
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from pimeter.clusters import moment_numbers
from pimeter.frames import refuse_other_orders
from pimeter.interval_arrays import uncrossed
from pimeter.online import OnlineNeuron
from pimeter.validation import finite_numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from pimeter.protocols import Array, FeatureTable
    from pimeter.regression.regressor import IntervalRegressor

RATES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)  # weights of the newest residual in the mean of recent ones
MAX_HALF_WIDTHS = 2.0  # half-widths beyond which a residual counts no more for the level
MIN_GAIN = 12.0  # least fall of n times the logarithm of the squared residuals for which a level is followed
FOLLOWED_TAILS = ("symmetric", "equal")


class OnlineIntervals(BaseEstimator):
    """Intervals that follow rows in the order of time: around those of a calibrated model, whatever its width.

    Residuals are taken in units of the half-width that the calibrated intervals have at their row, so that what is
    known of the width is kept. A weighted mean of the most recent ones corrects the next prediction, as far as that
    helped in the rows of `fit`: it sees a level that drifts, and residuals that resemble those before. What remains
    is followed by an `OnlineNeuron`, whichever of "adaptive" and "decaying" had the smaller loss in the later half.

    Parameters
    ----------
    intervals : IntervalRegressor
        Calibrated, for one target, with symmetric or equal tails; it stays as it is.

    Attributes
    ----------
    rate_, weight_ : float
        Weight of the newest residual in the mean of recent ones, and how much of that mean corrects a prediction.

    Notes
    -----
    Nothing is guaranteed: that rows go on as they were is an assumption about the series.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter.regression import IntervalRegressor, OnlineIntervals
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(2000, 1))
    >>> y = X[:, 0] + np.linspace(0, 3, 2000) + 0.1 * rng.standard_normal(2000)
    >>> intervals = IntervalRegressor(lambda X: X[:, 0], confidence_level=0.9).calibrate(X[:1000], y[:1000])
    >>> online = OnlineIntervals(intervals).fit(X[:1000], y[:1000])
    >>> bounds = online.follow(X[1000:], y[1000:])
    >>> float(np.mean((bounds[:, 0] <= y[1000:]) & (y[1000:] <= bounds[:, 1])).round(2))
    0.88
    """

    def __init__(self, intervals: IntervalRegressor) -> None:
        self.intervals = intervals

    def fit(self, X: FeatureTable, y: ArrayLike, *, by: ArrayLike | None = None, time: ArrayLike | None = None) -> Self:
        """Learn how rows in the order of time follow each other; those that calibrated will do.

        Parameters
        ----------
        X : array, frame or whatever the model takes, of n rows
            Features, the oldest row first if `time` is not given.
        y : array-like of shape (n,)
            Targets.
        by : array-like of shape (n,), optional
            Categories, where the calibrated intervals need them.
        time : array-like of shape (n,), optional
            When each row was: numbers, dates or ISO strings. Rows are put in this order.

        Returns
        -------
        OnlineIntervals
            Itself.
        """
        if self.intervals.tails not in FOLLOWED_TAILS:
            msg = f'tails="{self.intervals.tails}" cannot be followed; calibrate with tails="symmetric" or "equal".'
            raise ValueError(msg)
        refuse_other_orders({"X": X, "y": y, "by": by, "time": time})
        middle, half = self._shape(X, by)
        scores = (self._targets(y, len(middle)) - middle) / half
        if time is not None:
            scores = scores[np.argsort(moment_numbers(time, len(scores)), kind="stable")]
        near = np.clip(scores, -MAX_HALF_WIDTHS, MAX_HALF_WIDTHS)
        loss, weight, rate = min((*_following(near, rate), rate) for rate in RATES)
        if len(near) * (np.log(max(float(near @ near), 1e-300)) - np.log(max(loss, 1e-300))) < MIN_GAIN:
            weight = 0.0
        recent = _recent(near, rate)
        self._neurons = [self._neuron(sign * (scores - weight * recent[:-1])) for sign in self._signs]
        self.weight_, self.rate_, self._recent = weight, rate, float(recent[-1])
        return self

    def follow(self, X: FeatureTable, y: ArrayLike, *, by: ArrayLike | None = None) -> Array:
        """Intervals of new rows in the order of time, each from the targets before it, which are learned.

        Parameters
        ----------
        X : array, frame or whatever the estimator takes, of n rows
            Features of the rows that follow those of `fit` and of earlier calls, the oldest row first.
        y : array-like of shape (n,)
            Targets.
        by : array-like of shape (n,), optional
            Categories of the rows, where the intervals have some.

        Returns
        -------
        ndarray of shape (n, 2)
            Lower and upper bounds, as `predict_interval` would have given them row by row.
        """
        check_is_fitted(self)
        refuse_other_orders({"X": X, "y": y, "by": by})
        middle, half = self._shape(X, by)
        scores = (self._targets(y, len(middle)) - middle) / half
        bounds = np.empty((len(middle), 2))
        for i, score in enumerate(scores.tolist()):
            bounds[i] = self._bounds()[0]
            level = self.weight_ * self._recent
            for neuron, sign in zip(self._neurons, self._signs, strict=True):
                neuron.learn_one(_seen(sign * (score - level), self._signs))
            self._recent += self.rate_ * (min(max(score, -MAX_HALF_WIDTHS), MAX_HALF_WIDTHS) - self._recent)
        return self._cut(middle[:, None] + half[:, None] * bounds)

    def predict_interval(self, X: FeatureTable, *, by: ArrayLike | None = None) -> Array:
        """Intervals of the rows to come next, in the order of time, from all targets that were learned.

        Parameters
        ----------
        X : array, frame or whatever the estimator takes, of n rows
            Features of the rows to come, the next row first.
        by : array-like of shape (n,), optional
            Categories of the rows, where the intervals have some.

        Returns
        -------
        ndarray of shape (n, 2)
            Lower and upper bounds. The farther ahead a row is, the less of the recent residuals corrects it and the
            wider is its interval, as far as residuals resembled those before them in `fit`.
        """
        check_is_fitted(self)
        middle, half = self._shape(X, by)
        return self._cut(middle[:, None] + half[:, None] * self._bounds(len(middle)))

    def _bounds(self, n: int = 1) -> Array:
        """Both bounds of the next n rows, in half-widths from the middle, (n, 2).

        What a row adds to the mean of recent ones, `rate_`, comes back in the next one times `weight_`, and fades.
        """
        kept = 1.0 - self.rate_ * (1.0 - self.weight_)  # of the mean of recent residuals, in each step
        fading = kept ** np.arange(n)
        level = self.weight_ * self._recent * fading
        unknown = (self.weight_ * self.rate_) ** 2 * (np.cumsum(fading**2) - fading**2)
        wider = np.sqrt(1.0 + unknown)
        margins = [neuron.quantile_ for neuron in self._neurons]
        return np.column_stack(uncrossed(level - wider * margins[0], level + wider * margins[-1]))

    @property
    def _signs(self) -> Sequence[float]:
        """Signs of the residuals that neurons see: 1 for absolute ones, or -1 below and 1 above the prediction."""
        return (1.0,) if self.intervals.tails == "symmetric" else (-1.0, 1.0)

    def _neuron(self, scores: Array) -> OnlineNeuron:
        """A neuron that has seen these scores, with the learning rate that did better in the later half."""
        p, seen = float(self.intervals.confidence_level), _seen(scores, self._signs)
        level = p if len(self._signs) == 1 else (1.0 + p) / 2.0
        half = len(seen) // 2
        candidates: list[tuple[float, OnlineNeuron]] = []
        for rate in ("decaying", "adaptive"):
            neuron = OnlineNeuron(level, learning_rate=rate).learn_many(seen[:half])
            loss = 0.0
            for score in seen[half:].tolist():
                beyond = score - neuron.quantile_ if half else 0.0
                loss += max(level * beyond, (level - 1.0) * beyond)
                neuron.learn_one(score)
            candidates.append((loss, neuron))
        return min(candidates, key=lambda one: one[0])[1]

    def _shape(self, X: FeatureTable, by: ArrayLike | None) -> tuple[Array, Array]:
        """Middle and half-width of the calibrated intervals, before they are cut."""
        uncut = copy(self.intervals)
        uncut._cuts = (-np.inf, np.inf)
        bounds = uncut.predict_interval(X, by=by)
        if bounds.ndim != 2 or not np.isfinite(bounds).all():
            msg = f"intervals must be finite and of one target; got shape {bounds.shape}. Calibrate targets one by one."
            raise ValueError(msg)
        half = (bounds[:, 1] - bounds[:, 0]) / 2.0
        return (bounds[:, 0] + bounds[:, 1]) / 2.0, np.where(half > 0.0, half, 1.0)

    def _targets(self, y: ArrayLike, n: int) -> Array:
        """Finite targets of n rows."""
        target = finite_numbers("y", y)
        if target.shape != (n,) or not n:
            msg = f"y must give one target for each of the {n} rows, at least one; got shape {target.shape}."
            raise ValueError(msg)
        return target

    def _cut(self, bounds: Array) -> Array:
        """Bounds within the least and the largest possible target."""
        return np.asarray(np.clip(bounds, *self.intervals._cuts))


def _seen(score: Any, signs: Sequence[float]) -> Any:
    """What a neuron sees of a score."""
    return abs(score) if len(signs) == 1 else score


def _recent(scores: Array, rate: float) -> Array:
    """Weighted mean of the scores before each, from 0 on, and after the last, (n + 1,)."""
    return np.append(0.0, lfilter([rate], [1.0, rate - 1.0], scores))


def _following(scores: Array, rate: float) -> tuple[float, float]:
    """Squared scores that remain if a part of the mean of recent ones is taken off, and which part is best."""
    recent = _recent(scores, rate)[:-1]
    power = float(recent @ recent)
    weight = min(max(float(recent @ scores) / power, -1.0), 1.0) if power > 0.0 else 0.0
    return float(((scores - weight * recent) ** 2).sum()), weight
