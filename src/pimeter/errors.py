"""Targets and predictions become columns of residuals, the only thing a neuron ever sees of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pimeter.arrays import real_array
from pimeter.frames import refuse_other_order
from pimeter.validation import check_finite, first_index, not_empty

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.floating]


def absolute_errors(y_true: ArrayLike, y_pred: ArrayLike) -> Floats:
    """Absolute residuals, one column per output.

    One neuron on these learns the half-width of the symmetric interval ``[f - r, f + r]``.

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
        If the shapes differ, nothing is given, or a value is NaN, infinite or not a real number.

    See Also
    --------
    pimeter.paper.sided_errors : Residuals below and above the prediction, as two samples.

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
    absolute: Floats = np.abs(signed_errors(y_true, y_pred))
    return absolute


def horizon_errors(y_true: ArrayLike, y_pred: ArrayLike) -> Floats:
    """Absolute residuals of forecasts, one column per step ahead.

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
        If the shapes do not fit each other, nothing is given, or a value is NaN, infinite or not a real number.

    See Also
    --------
    absolute_errors : Absolute residuals of columns of any other meaning, such as positions.
    ForecastIntervals : Cones from windows with steps that are not known yet.

    Examples
    --------
    A forecaster that expects the last value to stay, rolled over a series:

    >>> import numpy as np
    >>> from pimeter.errors import horizon_errors
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
            f"{n} forecasts of {h} steps, each made one step after the one before, span {n + h - 1} values; "
            f"y_true holds {len(observed)}. Start it at the first step of the first forecast and end it at the last."
        )
        raise ValueError(msg)
    return absolute_errors(np.lib.stride_tricks.sliding_window_view(observed, h), forecast)


def signed_errors(y_true: ArrayLike, y_pred: ArrayLike) -> Floats:
    """Validate both arrays and subtract them in their common float width."""
    refuse_other_order("y_true", y_true, "y_pred", y_pred)
    target, prediction = finite_floats("y_true", y_true), finite_floats("y_pred", y_pred)
    if target.shape != prediction.shape:
        msg = (
            f"y_true and y_pred must have the same shape; got {target.shape} and {prediction.shape}. "
            f"Give one prediction per target; ravel() turns a single column into shape (m,)."
        )
        raise ValueError(msg)
    with np.errstate(over="ignore"):
        error: Floats = target - prediction
    if not np.isfinite(error).all():
        where = first_index(~np.isfinite(error))
        msg = f"y_true[{where}] - y_pred[{where}] is too large for {error.dtype}. Use a wider float or a larger unit."
        raise ValueError(msg)
    return error


def finite_floats(name: str, values: ArrayLike) -> Floats:
    """Finite numbers of shape (m,) or (m, k) as floats, or a ValueError that names the array."""
    array = real_array(name, values)
    if array.ndim not in {1, 2}:
        msg = f"{name} must have shape (m,) or (m, k); got {array.shape}. Reshape it to one column per output."
        raise ValueError(msg)
    not_empty(name, array)
    if array.dtype.kind != "f":
        return array.astype(np.float64)
    check_finite(name, array, "Leave these rows out of y_true and y_pred.")
    return array
