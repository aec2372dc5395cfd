"""Distributions around predictions: quantiles and distribution functions, from signed scores."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pimeter.arrays import real_array
from pimeter.conformal.estimator import check_calibrated
from pimeter.conformal.overlapping import OverlappingQuantile
from pimeter.conformal.scores import TAILS
from pimeter.regression.training import TrainedIntervals
from pimeter.regression.width import move_out, of_output, rows_of_lines, score_at, write_bounds
from pimeter.validation import one_or_more_levels

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from pimeter.conformal.quantile import ScoreQuantile
    from pimeter.conformal.scores import CalibrationScores
    from pimeter.protocols import Array, FeatureTable, Index
    from pimeter.regression.width import IntervalShape


class PredictedDistribution(TrainedIntervals):
    """The part of `IntervalRegressor` that predicts quantiles and distribution functions."""

    def predict_quantile(self, X: FeatureTable, q: ArrayLike, *, by: ArrayLike | None = None) -> Array:
        """Quantiles of the target's distribution, from signed scores; after weights, of rows of average importance.

        Each is the bound of a one-sided interval: a proportion q of targets or more lies below it for q of .5 and more,
        a proportion 1 - q or more above it for a smaller one, as `guarantee` says. So it is the upper bound of
        ``tails="upper"`` at level q, or the lower bound of ``tails="lower"`` at level 1 - q, and the quantiles at (1 -
        p)/2 and (1 + p)/2 are the bounds of ``tails="equal"`` at level p (not with ``guarantee="training-conditional"``
        or `joint`, which look at both tails or all outputs at once), to the last bit or the next float beyond:
        `predict_cdf` there is q or more for q of .5 and more, q or less for a smaller one, if there are enough rows for
        the level and `guarantee` is not "approximate". A band of quantiles is not moved here, as it is in
        `predict_interval`, but stretched: widths "quantile" and, with signed tails, "local".

        Parameters
        ----------
        X : array, frame or whatever the estimator takes, of n rows
            Features.
        q : float or array-like of shape (L,)
            Levels between 0 and 1. Quantiles of a higher level are never lower.
        by : array-like of shape (n,), optional
            Categories of the rows, for ``width="grouped"``.

        Returns
        -------
        ndarray of shape (n[, k][, L])
        """
        check_calibrated(self)
        levels = one_or_more_levels("q", q)
        labels, prediction, shape = self._around_middles(X, by)
        out = np.empty((*prediction.shape[1:], levels.size))
        both = np.empty((*out.shape[:2], 2))
        for i, level in enumerate(levels.ravel().tolist()):
            side = int(level >= 0.5)
            quantile = self._one_sided(max(level, 1.0 - level), "upper" if side else "lower")
            self._warn_of_few(quantile)
            quantile = quantile.for_rows(labels)
            lines = quantile.lines(labels)
            write_bounds(quantile, prediction, shape, lines, None, both)
            out[..., i] = both[..., side]
            _move_beyond(quantile, prediction, shape, lines, out[..., i], side)
        np.clip(out, *self._cuts, out=out)
        return self._squeezed(out if levels.ndim else out[..., 0])

    def predict_cdf(self, X: FeatureTable, y: ArrayLike, *, by: ArrayLike | None = None) -> Array:
        """Probability that the target lies below y, from signed scores; after weights, in rows of average importance.

        Of m calibration scores, those less than that of y count 1 and equal ones 1/2, as does the new row itself, out
        of m + 1. Of observed targets these are p-values: for exchangeable rows without ties they are spread evenly
        between 0 and 1, so that ``F + 1/(2m + 2) <= a`` has at most probability a.

        Parameters
        ----------
        X : array, frame or whatever the estimator takes, of n rows
            Features.
        y : float or array-like of shape (n,) or (n, g)
            Where to ask: at one value for all rows, at one for each row, or at g for each row. For k outputs of shape
            (n, k) or (n, k, g).
        by : array-like of shape (n,), optional
            Categories of the rows, for ``width="grouped"``.

        Returns
        -------
        ndarray of the shape of y; for a scalar (n,) or (n, k)
        """
        check_calibrated(self)
        labels, prediction, shape = self._around_middles(X, by)
        size = prediction.shape[1:]
        asked = _places(y, size if self._n_outputs is not None else size[:1])
        quantile = self._one_sided(self._quantile.level, "upper")
        if isinstance(quantile, OverlappingQuantile):
            msg = "predict_cdf is not known for groups that overlap; ask predict_quantile, or give one grouping."
            raise ValueError(msg)  # noqa: TRY004
        table = asked.reshape(*size, -1)
        found = _cdf_values(quantile, prediction, shape, quantile.lines(labels), table)
        low, high = self._cuts
        found[table < low] = 0.0
        found[table >= high] = 1.0
        return found.reshape(asked.shape)

    def _around_middles(
        self, X: FeatureTable, by: ArrayLike | None
    ) -> tuple[NDArray[Any] | None, Array, IntervalShape]:
        """Categories of new rows, middles of the bands around predictions of all models, and shapes around these."""
        X = self._same_table(X)
        labels = self._widths()[0].labels(X, by)
        prediction = self._predictions(X)
        band = self._shape(X, prediction)
        return labels, band.middle(prediction), band.without_band()

    def _one_sided(self, level: float, tails: str) -> ScoreQuantile:
        """Quantiles of signed scores; the same categories have a line at all levels, so that quantiles do not cross."""
        return replace(self._quantile, scores=self._scores_seen.signed(), tails=TAILS[tails], level=level)


def _places(y: ArrayLike, size: tuple[int, ...]) -> Array:
    """Where a distribution is asked for: a value for all rows, one for each of `size`, or several for each."""
    asked: Array = real_array("y", y).astype(np.float64)
    if asked.ndim == 0:
        asked = np.full(size, asked)
    if asked.shape[: len(size)] != size or asked.ndim > len(size) + 1:
        msg = f"y has shape {asked.shape}; expected a number, {size}, or {size} with one more axis for several values."
        raise ValueError(msg)
    if np.isnan(asked).any():
        msg = "y contains NaN, where no proportion of targets can be told; leave such values out."
        raise ValueError(msg)
    return asked


def _move_beyond(
    quantile: ScoreQuantile, prediction: Array, shape: IntervalShape, lines: Index | None, bounds: Array, side: int
) -> None:
    """Move bounds (n, k) to where the cdf counts all scores of the margin, ties among them, as passed.

    Where rounding leaves a bound on the margin itself, or short of it, the next float is beyond. With folds bounds have
    more slack than that already.
    """
    if quantile.scores.folds is not None:
        return
    margins = np.broadcast_to(quantile.margins, (len(quantile.margins), bounds.shape[1], 2))
    for j in range(bounds.shape[1]):
        score = score_at(bounds[:, j], prediction[0, :, j], of_output(shape, j).scale, side)
        move_out(bounds[:, j], score <= margins[0 if lines is None else lines, j, side], side)


def _cdf_values(
    quantile: ScoreQuantile, prediction: Array, shape: IntervalShape, lines: Index | None, y: Array
) -> Array:
    """Distribution functions at y (n, k, g)."""
    found, folds = np.empty(y.shape), quantile.scores.folds
    for j in range(y.shape[1]):
        centres = prediction[:, :, j]
        scales = np.ones((1, 1)) if shape.scale is None else shape.scale[..., j]
        if folds is not None:
            scales = folds.averaged(np.broadcast_to(scales, centres.shape))
            centres = folds.averaged(centres)
        for line, rows in rows_of_lines(lines):
            own = scales if scales.shape[1] == 1 else scales[:, rows]
            found[rows, j] = _cdf(quantile.sample(line, j, 1), y[rows, j], centres[:, rows, None], own[..., None])
    return found


def _cdf(sample: CalibrationScores, y: Array, centres: Array, scales: Array) -> Array:
    """Proportion of scores below those of y (n, g) around centres (n_lists, n, 1); ties and the new row count half."""
    total = np.full(y.shape, 0.5)
    counts = np.ones(len(sample)) if sample.counts is None else sample.counts
    for i in range(len(centres)):
        rows = slice(None) if sample.folds is None else sample.folds.list_of_row == i
        order = np.argsort(sample.values[rows])
        scores = sample.values[rows][order]
        below = np.concatenate([[0.0], np.cumsum(counts[rows][order])])
        with np.errstate(over="ignore"):  # beyond all scores either way
            asked = (y - centres[i]) / scales[i]
        first = np.searchsorted(scores, asked)
        total += below[first]
        equal = np.flatnonzero(scores[np.minimum(first, len(scores) - 1)] == asked) if len(scores) else first[:0]
        last = np.searchsorted(scores, asked.flat[equal], side="right")
        total.flat[equal] += (below[last] - below[first.flat[equal]]) / 2.0
    proportions = total / (sample.n_counted + 1.0)
    proportions[np.isinf(y)] = y[np.isinf(y)] > 0.0
    return proportions
