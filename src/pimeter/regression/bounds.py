"""Bounds of intervals and values of distribution functions, from predictions, their shapes and quantiles of scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pimeter.coverage import percent, warn_of_coverage
from pimeter.regression.width import IntervalShape

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pimeter.conformal.quantile import ScoreQuantile

    Array = NDArray[np.float64]
    Index = NDArray[np.intp]

ROUNDINGS = 6.0  # units in the last place that difference, quotient, product and sum may take from a bound


def write_bounds(
    quantile: ScoreQuantile,
    prediction: Array,
    shape: IntervalShape,
    lines: Index | None,
    importance: Array | None,
    out: Array,
) -> None:
    """Bounds of intervals, into `out` (n, k, 2).

    Parameters
    ----------
    quantile : ScoreQuantile
        Margins.
    prediction : ndarray of shape (models, n, k)
        Predictions of all models.
    shape : IntervalShape
        Of parts of the same shape.
    lines : ndarray of shape (n,) or None
        Line of each row in the table of groups.
    importance : ndarray of shape (n,) or None
        Importance weights of the rows.
    out : ndarray of shape (n, k, 2)
        Lower and upper bounds.
    """
    if quantile.scores.folds is not None:
        _write_fold_bounds(quantile, prediction, shape, lines, out)
        return
    margins = np.broadcast_to(quantile.margins, (len(quantile.margins), *out.shape[1:]))
    for j in range(out.shape[1]):
        if importance is not None:
            every = np.zeros(len(importance), np.intp) if lines is None else lines
            own = quantile.weighted_margins(every, j, importance)
        else:
            own = margins[0 if lines is None else lines, j].T
        around = of_output(shape, j)
        for side, band in enumerate((around.lower, around.upper)):
            _write_side(out[:, j, side], prediction[0, :, j], own[side], around.scale, band, side)
        if around.lower is not None or quantile.tails.n_cuts > 1:
            _uncross(out[:, j])


def of_output(shape: IntervalShape, output: int) -> IntervalShape:
    """Of the only model and one output."""
    return shape.each(lambda part: part[0, :, output])


def _write_side(
    bound: Array, prediction: Array, margin: Array, scale: Array | None, band: Array | None, side: int
) -> None:
    """Lower (0) or upper (1) bounds, into `bound`: no target whose score is within the margin is lost by rounding."""
    # If a difference, rounded, is at most r, then the difference is less than the next float above r, and what is less
    # than a number is at most that number rounded: so nothing is lost by going back.
    distance = np.nextafter(margin, np.inf)
    if scale is not None:
        distance = np.nextafter(distance * scale, np.inf)
    if band is not None:
        distance = np.nextafter(distance + band, np.inf)
    (np.add if side else np.subtract)(prediction, distance, out=bound)
    if band is None:
        # Coming back from the bound, rounding may leave less than the margin, whose score the cdf would miss.
        move_out(bound, score_at(bound, prediction, scale, side) < margin, side)


def score_at(bound: Array, prediction: Array, scale: Array | None, side: int) -> Array:
    """How far the cdf takes a bound to be from the prediction, in units of the scale, towards its side."""
    with np.errstate(over="ignore"):
        residual = bound - prediction if side else prediction - bound
        return residual if scale is None else residual / scale


def move_out(bounds: Array, where: NDArray[np.bool_], side: int) -> None:
    """Move some of the bounds by one float away from the middle, in place."""
    bounds[where] = np.nextafter(bounds[where], np.inf if side else -np.inf)


def _uncross(bounds: Array) -> None:
    """Bounds (n, 2) that crossed meet in the middle."""
    lower, upper = bounds.T
    crossed = lower > upper
    if crossed.any():
        bounds[crossed] = (0.5 * lower[crossed] + 0.5 * upper[crossed])[:, None]


def _write_fold_bounds(
    quantile: ScoreQuantile, prediction: Array, shape: IntervalShape, lines: Index | None, out: Array
) -> None:
    """Bounds among the predictions of all folds."""
    folds = quantile.scores.folds
    assert folds is not None
    for j in range(out.shape[1]):
        centres = folds.averaged(prediction[:, :, j])
        of_lists = IntervalShape(*(None if part is None else folds.averaged(part[..., j]) for part in shape))
        for line, rows in rows_of_lines(lines):
            centre, own = centres[:, rows], IntervalShape(*(None if a is None else a[:, rows] for a in of_lists))
            start, end = (0.0 if band is None else band for band in (own.lower, own.upper))
            found = np.empty((centre.shape[1], 2))
            found[:, 0] = -quantile.fold_bound(line, j, 0, start - centre, own.scale)
            found[:, 1] = quantile.fold_bound(line, j, 1, centre + end, own.scale)
            _uncross(found)
            largest = np.maximum(np.abs(centre).max(axis=0)[:, None], np.abs(found))
            slack = np.spacing(largest, where=np.isfinite(found), out=np.zeros_like(found))
            out[rows, j] = found + np.array([-ROUNDINGS, ROUNDINGS]) * slack


def guaranteed_levels(quantile: ScoreQuantile, lines: Index | None, importance: Array) -> Array:
    """Coverage that is guaranteed to new rows of their own importance, the least over outputs; warns of heavy ones.

    A guarantee is an average over all rows, those among them that are too heavy counting as covered. Without these, a
    fraction h, ``(p - h) / (1 - h)`` is left to the others; on each side of the prediction h is not known.
    """
    every = np.zeros(len(importance), np.intp) if lines is None else lines
    found, n_heavy = np.full(len(importance), np.nan), 0
    for line in np.unique(every).tolist():
        rows = np.flatnonzero(every == line)
        heavy = quantile.are_too_heavy(line, importance[rows])
        n_heavy += int(np.count_nonzero(heavy))
        if not heavy.any():
            found[rows] = quantile.guaranteed(line)
        elif not heavy.all() and not quantile.tails.is_by_sign:
            fraction = float(heavy.mean())
            found[rows[~heavy]] = max(0.0, (quantile.guaranteed(line) - fraction) / (1.0 - fraction))
    if n_heavy:
        warn_of_coverage(
            f"importance_weight of {n_heavy} of {len(every)} new rows is so large that the calibration rows cannot "
            f"guarantee {percent(quantile.level, 6)} for them; their intervals go as far as the largest score."
        )
    return found


def rows_of_lines(lines: Index | None) -> list[tuple[int, Any]]:
    """Each line of the table of groups, and the rows of it."""
    if lines is None:
        return [(0, slice(None))]
    return [(line, np.flatnonzero(lines == line)) for line in np.unique(lines).tolist()]
