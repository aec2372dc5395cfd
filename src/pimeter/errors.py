"""Targets and predictions become columns of errors, the only thing a neuron ever sees of a model."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from pimeter.arrays import real_array

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def absolute_errors(y_true: ArrayLike, y_pred: ArrayLike) -> NDArray[np.floating[Any]]:
    """Sizes of the errors, one column per output.

    One neuron on these learns the half width of the symmetric interval ``[f - r, f + r]``.

    Parameters
    ----------
    y_true : array-like of shape (m,) or (m, k)
        Observed targets, of rows that the model was not trained on.
    y_pred : array-like of the same shape
        What the model predicts for these rows.

    Returns
    -------
    ndarray of the same shape
        ``|y_true - y_pred|``, in the float width of the two arrays; integers give float64.

    Raises
    ------
    ValueError
        If the shapes differ, nothing is given, or a value is NaN, infinite or no real number.

    See Also
    --------
    sided_errors : Errors below and above the prediction, apart.

    Examples
    --------
    >>> from pimeter import absolute_errors
    >>> absolute_errors([3.0, 5.0, 2.0], [2.5, 5.0, 4.0])
    array([0.5, 0. , 2. ])

    Several outputs stay columns, and each column has its own neuron:

    >>> absolute_errors([[3, 10], [5, 30]], [[2, 14], [5, 27]])
    array([[1., 4.],
           [0., 3.]])
    """
    sizes: NDArray[np.floating[Any]] = np.abs(signed_errors(y_true, y_pred))
    return sizes


def sided_errors(y_true: ArrayLike, y_pred: ArrayLike) -> tuple[NDArray[np.floating[Any]], NDArray[np.floating[Any]]]:
    """Sizes of the errors below and above the prediction, as two samples.

    One neuron on each, both at the same level, learns the two half widths of the paper's asymmetric interval
    ``[f - r_L, f + r_U]``: of the targets under the prediction the share p lies within ``r_L`` of it, of those over it
    the share p within ``r_U``.

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
        nothing is given, or a value is NaN, infinite or no real number.

    See Also
    --------
    absolute_errors : Both sides as one sample.

    Notes
    -----
    An error of exactly zero is on neither side. Every interval around its prediction covers it, so a share z of zeros
    raises the coverage from p to ``p + z (1 - p)``; counted on both sides, the zeros would pull the two radii in and
    the coverage down to ``p - z (1 - p)``.

    Examples
    --------
    >>> from pimeter import sided_errors
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


def horizon_errors(y_true: ArrayLike, y_pred: ArrayLike) -> NDArray[np.floating[Any]]:
    """Sizes of the errors of forecasts, one column per step ahead.

    One neuron per column learns a cone: how far targets may be from the forecast one step ahead, two steps, and so on.

    Parameters
    ----------
    y_true : array-like of shape (n, h) or (n + h - 1,)
        What was observed: a window for each forecast, or one long series over which a forecaster was rolled, from the
        first step of the first forecast to the last step of the last.
    y_pred : array-like of shape (n, h)
        Forecasts of h steps; for a series each made one step after the one before.

    Returns
    -------
    ndarray of shape (n, h)
        ``|y_true - y_pred|``, with ``y_true[i + j]`` for step j of forecast i where a series is given.

    Raises
    ------
    ValueError
        If the shapes do not fit each other, nothing is given, or a value is NaN, infinite or no real number.

    See Also
    --------
    absolute_errors : The same for columns of any other meaning, such as positions.
    ForecastIntervals : Cones from windows with steps that are not known yet.

    Examples
    --------
    A forecaster that expects the last value to stay, rolled over a series:

    >>> import numpy as np
    >>> from pimeter import horizon_errors
    >>> series = np.array([3.0, 4.0, 6.0, 5.0, 9.0])
    >>> y_pred = np.stack([np.full(2, last) for last in series[:-2]])  # made after the 1st, 2nd and 3rd value
    >>> horizon_errors(series[1:], y_pred)
    array([[1., 3.],
           [2., 1.],
           [1., 3.]])
    """
    forecast = real_array("y_pred", y_pred)
    if forecast.ndim != 2 or 0 in forecast.shape:
        msg = f"y_pred must have shape (n, h), a row of h steps for each forecast; got {forecast.shape}."
        raise ValueError(msg)
    observed = real_array("y_true", y_true)
    if observed.ndim != 1:
        return absolute_errors(observed, forecast)
    n, h = forecast.shape
    if len(observed) < h:
        msg = f"A horizon of {h} steps is longer than the data: y_true holds {len(observed)} values."
        raise ValueError(msg)
    if len(observed) != n + h - 1:
        msg = (
            f"{n} forecasts of {h} steps, each made one step after the one before, reach over {n + h - 1} values; "
            f"y_true holds {len(observed)}. Start it at the first step of the first forecast and end it at the last."
        )
        raise ValueError(msg)
    return absolute_errors(np.lib.stride_tricks.sliding_window_view(observed, h), forecast)


def outcome_errors(
    y_true: ArrayLike, y_score: ArrayLike, *, threshold: float = 0.5
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Sizes of a binary classifier's errors, one sample for each of the four outcomes.

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
    true_negative, true_positive, false_negative, false_positive : ndarray
        ``|y - score|`` for the first two, ``|threshold - score|`` for the last two, in the order of the rows. Each may
        be empty.

    Raises
    ------
    ValueError
        If the shapes differ, nothing is given, a label is neither 0 nor 1, or a score lies outside of [0, 1].

    See Also
    --------
    classification_uncertainty : What follows for rates and metrics, with ``method="pim"``, and what does not.

    Examples
    --------
    >>> from pimeter import outcome_errors
    >>> tn, tp, fn, fp = outcome_errors([0, 1, 1, 0, 1], [0.25, 0.75, 0.375, 1.0, 0.5])
    >>> tn, tp, fn, fp
    (array([0.25]), array([0.25]), array([0.125, 0.   ]), array([0.5]))
    """
    if not (isinstance(threshold, Real) and 0.0 <= threshold <= 1.0):
        msg = f"threshold must lie between 0 and 1, as scores do; got {threshold!r}."
        raise ValueError(msg)
    label, score = (_finite_floats(*named) for named in (("y_true", y_true), ("y_score", y_score)))
    if label.shape != score.shape or label.ndim != 1:
        msg = f"y_true and y_score must both have shape (m,); got {label.shape} and {score.shape}."
        raise ValueError(msg)
    for name, wrong, expected in (
        ("y_true", (label != 0.0) & (label != 1.0), "0 or 1"),
        ("y_score", (score < 0.0) | (score > 1.0), "between 0 and 1"),
    ):
        if wrong.any():
            values = label if name == "y_true" else score
            msg = f"{name} must be {expected}; {name}[{_first(wrong)}] is {values[wrong][0]:g}."
            raise ValueError(msg)
    is_positive, is_predicted = label == 1.0, score > threshold
    own = np.abs(label - score).astype(np.float64)
    across = np.abs(threshold - score).astype(np.float64)
    return (
        own[~is_positive & ~is_predicted],
        own[is_positive & is_predicted],
        across[is_positive & ~is_predicted],
        across[~is_positive & is_predicted],
    )


def signed_errors(y_true: ArrayLike, y_pred: ArrayLike) -> NDArray[np.floating[Any]]:
    """Validate both arrays and subtract them in their common float width."""
    target, prediction = _finite_floats("y_true", y_true), _finite_floats("y_pred", y_pred)
    if target.shape != prediction.shape:
        msg = (
            f"y_true and y_pred must have the same shape; got {target.shape} and {prediction.shape}. "
            f"Give one prediction per target; ravel() turns a single column into shape (m,)."
        )
        raise ValueError(msg)
    with np.errstate(over="ignore"):
        error: NDArray[np.floating[Any]] = target - prediction
    if not np.isfinite(error).all():
        where = _first(~np.isfinite(error))
        msg = f"y_true[{where}] - y_pred[{where}] is too large for {error.dtype}. Use a wider float or a larger unit."
        raise ValueError(msg)
    return error


def _finite_floats(name: str, values: ArrayLike) -> NDArray[np.floating[Any]]:
    """Finite numbers of shape (m,) or (m, k) as floats, or a ValueError that names the array."""
    array = real_array(name, values)
    if array.ndim not in {1, 2}:
        msg = f"{name} must have shape (m,) or (m, k); got {array.shape}. Reshape it to one column per output."
        raise ValueError(msg)
    if array.size == 0:
        msg = f"{name} must hold at least one value; got shape {array.shape}. Give the rows of a held-out set."
        raise ValueError(msg)
    if array.dtype.kind != "f":
        return array.astype(np.float64)
    if not np.isfinite(array).all():
        bad = ~np.isfinite(array)
        where = _first(bad)
        msg = (
            f"{name} must be finite; {name}[{where}] is {array[bad][0]} ({bad.sum()} such of {array.size} values). "
            f"Leave these rows out of y_true and y_pred."
        )
        raise ValueError(msg)
    return array


def _first(mask: NDArray[np.bool_]) -> str:
    """Index of the first True, as one writes it: 3, or 3, 1."""
    return ", ".join(str(i) for i in np.argwhere(mask)[0])
