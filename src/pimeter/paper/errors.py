"""Residuals as the paper divides them: below and above a prediction, and by the four outcomes of a classifier."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pimeter.errors import finite_floats, signed_errors
from pimeter.validation import first_index

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from pimeter.protocols import Array, Flags

    Floats = NDArray[np.floating]


def sided_errors(y_true: ArrayLike, y_pred: ArrayLike) -> tuple[Floats, Floats]:
    """Absolute residuals below and above the prediction, as two samples.

    One neuron on each, both at the same level, learns the two margins of the paper's asymmetric interval
    ``[f - r_L, f + r_U]``: of the targets under the prediction the proportion p lies within ``r_L`` of it, of those
    over it the proportion p within ``r_U``.

    Parameters
    ----------
    y_true : array-like of shape (m,)
        Observed targets, of rows that the model was not trained on.
    y_pred : array-like of shape (m,)
        What the model predicts for these rows.

    Returns
    -------
    below : ndarray of shape (m_below,)
        ``y_pred - y_true`` where the target is under the prediction, in the order of the rows.
    above : ndarray of shape (m_above,)
        ``y_true - y_pred`` where the target is over the prediction. Either side may be empty.

    Raises
    ------
    ValueError
        If there are several columns (their sides differ in length, so call this once per column), the shapes differ,
        nothing is given, or a value is NaN, infinite or not a real number.

    See Also
    --------
    absolute_errors : Both sides as one sample.

    Notes
    -----
    An error of exactly zero is on neither side. Every interval around its prediction covers it, so a proportion z of
    zeros raises the coverage from p to ``p + z (1 - p)``; counted on both sides, the zeros would pull the two margins
    in and the coverage down to ``p - z (1 - p)``.

    Examples
    --------
    >>> from pimeter.paper import sided_errors
    >>> below, above = sided_errors([3.0, 5.0, 2.0, 9.0], [2.5, 5.0, 4.0, 6.0])
    >>> below
    array([2.])
    >>> above
    array([0.5, 3. ])
    """
    error = signed_errors(y_true, y_pred)
    if error.ndim == 2:
        msg = (
            f"sided_errors takes one column; got shape {error.shape}. The two sides of different columns differ in "
            f"length: call it once per column, with y_true[:, j] and y_pred[:, j]."
        )
        raise ValueError(msg)
    return -error[error < 0], error[error > 0]


class OutcomeErrors(NamedTuple):
    """Absolute residuals of the four outcomes, which `outcome_errors` returns."""

    true_negative: Array
    true_positive: Array
    false_negative: Array
    false_positive: Array


def outcome_errors(y_true: ArrayLike, y_score: ArrayLike, *, threshold: float = 0.5) -> OutcomeErrors:
    """Absolute residuals of a binary classifier's scores, one sample for each of the four outcomes.

    True predictions are compared with the label, false ones with the threshold that they are on the wrong side of. One
    neuron on each sample learns how spread out the scores of that outcome are.

    Parameters
    ----------
    y_true : array-like of shape (m,)
        Labels, 0 or 1.
    y_score : array-like of shape (m,)
        Scores between 0 and 1; above the threshold the prediction is 1. A score equal to the threshold means 0.
    threshold : float, default=0.5
        Between 0 and 1.

    Returns
    -------
    OutcomeErrors
        A named tuple of `true_negative`, `true_positive`, `false_negative` and `false_positive`: ``|y - score|`` for
        the first two, ``|threshold - score|`` for the last two, in the order of the rows. Each may be empty.

    Raises
    ------
    ValueError
        If the shapes differ, nothing is given, a label is neither 0 nor 1, or a score lies outside of [0, 1].

    See Also
    --------
    score_spread : What follows for rates and metrics, and what does not.

    Examples
    --------
    >>> from pimeter.paper import outcome_errors
    >>> tn, tp, fn, fp = outcome_errors([0, 1, 1, 0, 1], [0.25, 0.75, 0.375, 1.0, 0.5])
    >>> tn, tp, fn, fp
    (array([0.25]), array([0.25]), array([0.125, 0.   ]), array([0.5]))
    """
    if not (isinstance(threshold, Real) and 0.0 <= threshold <= 1.0):
        msg = f"threshold must lie between 0 and 1, as scores do; got {threshold!r}."
        raise ValueError(msg)
    label, score = (finite_floats(*named) for named in (("y_true", y_true), ("y_score", y_score)))
    if label.shape != score.shape or label.ndim != 1:
        msg = f"y_true and y_score must both have shape (m,); got {label.shape} and {score.shape}."
        raise ValueError(msg)
    _refuse("y_true", label, (label != 0.0) & (label != 1.0), "0 or 1")
    _refuse("y_score", score, (score < 0.0) | (score > 1.0), "between 0 and 1")
    is_positive, is_predicted = label == 1.0, score > threshold
    own = np.abs(label - score).astype(np.float64)
    across = np.abs(threshold - score).astype(np.float64)
    return OutcomeErrors(
        true_negative=own[~is_positive & ~is_predicted],
        true_positive=own[is_positive & is_predicted],
        false_negative=across[is_positive & ~is_predicted],
        false_positive=across[~is_positive & is_predicted],
    )


def _refuse(name: str, values: Floats, wrong: Flags, expected: str) -> None:
    if wrong.any():
        msg = f"{name} must be {expected}; {name}[{first_index(wrong)}] is {values[wrong][0]:g}."
        raise ValueError(msg)
