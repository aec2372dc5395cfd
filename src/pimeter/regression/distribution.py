"""Quantiles and distribution functions around predictions, from signed scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pimeter.arrays import real_array
from pimeter.regression.width import move_out, of_output, rows_of_lines, score_at

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pimeter.conformal.quantile import ScoreQuantile
    from pimeter.conformal.scores import CalibrationScores
    from pimeter.protocols import Array, Index
    from pimeter.regression.width import IntervalShape


def places_asked(y: ArrayLike, size: tuple[int, ...]) -> Array:
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


def move_beyond(
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


def cdf_values(
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
