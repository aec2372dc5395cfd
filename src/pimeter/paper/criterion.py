"""`coverage_width_criterion`: the paper's CWC, width and coverage in one number with a constant to choose."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pimeter.coverage import ROUNDING
from pimeter.interval_arrays import Multioutput, aligned, levels_of, mean_row, over_outputs, relative_weights
from pimeter.validation import finite_numbers

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pimeter.protocols import Array


def coverage_width_criterion(
    y_true: ArrayLike,
    y_interval: ArrayLike,
    confidence_level: ArrayLike,
    *,
    eta: float = 0.1,
    target_range: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    multioutput: Multioutput = "uniform_average",
) -> float | Array:
    """Width in units of the targets' range, at least doubled if the coverage misses its level (the paper's CWC).

    ``NMPIW (1 + gamma exp(-eta (PICP - p)))``: NMPIW is the mean width over the range of the target, gamma is 1 if the
    coverage PICP is below the level p, and 0 otherwise. Lower is better.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, k)
        Observed targets.
    y_interval : array-like of shape (n[, k], 2[, L])
        Lower and upper bounds, for L levels if there is a last axis of levels.
    confidence_level : float or array-like of shape (L,)
        The level p that the intervals aim at. There is no default: at any other level the score means nothing.
    eta : float, default=0.1
        How fast the penalty grows with the missing coverage. The paper's 0.1 makes it a step: the factor is between 2
        and 2.11, however much is missing. With 50 each missing percent of coverage multiplies it by 1.65.
    target_range : float or array-like of shape (k,), optional
        Range of the target. None takes that of `y_true`; give the range of the whole data to compare scores of
        different subsets.
    sample_weight : array-like of shape (n,), optional
        How much each row counts in coverage and width; a row of weight 0 is ignored.
    multioutput : {"uniform_average", "raw_values"}
        The mean over outputs, or one score per output.

    Returns
    -------
    float or ndarray of shape ([k,] [L])
        Without unit.

    Raises
    ------
    ValueError
        If shapes do not fit, a value is NaN, a lower bound is above its upper bound, or the targets have no range.

    See Also
    --------
    interval_score : Joins coverage and width without a constant to choose, and cannot be gamed.

    Examples
    --------
    >>> from pimeter.paper import coverage_width_criterion
    >>> y_true = [0, 2, 6, 10]
    >>> coverage_width_criterion(y_true, [[0, 4], [0, 4], [4, 8], [8, 12]], 0.95)  # all covered: width 4 of range 10
    0.4
    >>> narrow = [[0, 1], [0, 1], [6, 7], [10, 11]]  # 3 of 4
    >>> round(coverage_width_criterion(y_true, narrow, 0.95), 4)
    0.202
    """
    if not (np.isfinite(eta) and eta >= 0):
        msg = f"eta must be a finite number, at least 0; got {eta!r}. The paper takes 0.1."
        raise ValueError(msg)
    given = aligned(y_true, y_interval)
    target, lower, upper = given.target, given.lower, given.upper
    level = levels_of(confidence_level, given.n_levels)
    coverage = mean_row((lower <= target) & (target <= upper), sample_weight)
    with np.errstate(over="ignore"):  # what is too large is refused at the end
        width = mean_row(upper - lower, sample_weight) / _extent(target, target_range, sample_weight)
        is_low = (coverage < level - ROUNDING) & (width > 0.0)  # 0 times a penalty that no float holds is not a number
        penalty = np.where(is_low, np.exp(-eta * (coverage - level)), 0.0)
        return over_outputs(width * (1.0 + penalty), given.outputs, multioutput, lower, upper, penalty)


def _extent(target: Array, target_range: ArrayLike | None, sample_weight: ArrayLike | None) -> Array:
    """Range of each output's target, as given or of the rows that count, in the shape of a mean row."""
    if target_range is None:
        weight = relative_weights(sample_weight, len(target))
        extent = np.asarray(np.ptp(target if weight is None else target[weight > 0], axis=0))
    else:
        extent = finite_numbers("target_range", target_range)
        if extent.ndim and extent.shape != target.shape[1:2]:
            msg = f"target_range must be a number or one per output; got shape {extent.shape}."
            raise ValueError(msg)
        if target.ndim == 3 and extent.ndim:
            extent = extent[:, None]  # beside the levels
    if not ((extent > 0) & (extent < np.inf)).all():
        whose = "y_true" if target_range is None else "target_range"
        msg = (
            f"The width is measured in units of the target's range, positive and finite; that of {whose} is "
            f"{extent.squeeze()}. Give target_range, such as the range of all targets known."
        )
        raise ValueError(msg)
    return extent
