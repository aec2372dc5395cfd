"""The baseline of the paper's Figure 3: normal errors of one size at all steps of a forecast."""

from __future__ import annotations

from numbers import Real
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from pimeter.bandwidth import safe_factor
from pimeter.forecast.window_arrays import finite_forecasts, window_errors
from pimeter.validation import one_level

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pimeter.protocols import Array


def baseline_interval(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    y_pred_new: ArrayLike | None = None,
    *,
    n_past: int,
    confidence_level: float = 0.95,
) -> Array:
    """Normal errors of one size at all steps, ``f -+ z_p sigma sqrt(1 + 1/T)``.

    It would be right if forecasts were the mean of the last T observations and these were independent.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n, h) or (n_series, n, h)
        Targets and forecasts of windows of h steps, NaN for targets that are not known.
    y_pred_new : array-like of shape (k, h) or (n_series, k, h), optional
        Forecasts to have intervals: sigma is the standard deviation of all errors of the series. None: those of
        `y_pred`, with sigma that of each window's own errors, as in the paper, which knows the targets it is to
        predict.
    n_past : int
        T, the number of observations that a forecast looks back on.
    confidence_level : float, default=0.95
        Fraction of targets that intervals should cover, between 0 and 1.

    Returns
    -------
    ndarray of shape ([n_series,] k, h, 2)
        Lower and upper bounds.

    See Also
    --------
    pimeter.ForecastIntervals : A neuron per step instead.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter.paper import baseline_interval
    >>> errors = np.random.default_rng(0).standard_normal((200, 3))
    >>> baseline_interval(errors, np.zeros((200, 3)), [[5.0, 6.0, 7.0]], n_past=10).round(1)
    array([[[2.9, 7.1],
            [3.9, 8.1],
            [4.9, 9.1]]])
    """
    level = one_level("confidence_level", confidence_level)
    if isinstance(n_past, bool) or not (isinstance(n_past, Real) and n_past >= 1):
        msg = f"n_past must be the number of observations that a forecast looks back on, at least 1; got {n_past!r}."
        raise ValueError(msg)
    given = window_errors(y_true, y_pred)
    errors, n_series = given.errors, len(given.errors) if given.has_series else None
    forecast = finite_forecasts(y_pred if y_pred_new is None else y_pred_new, n_series, errors.shape[1])
    if y_pred_new is None:
        sigma = _deviation(errors, (1,)).reshape(*forecast.shape[:-1], 1)
    else:
        sigma = _deviation(errors, (1, 2)).reshape(-1, 1, 1)
        sigma = sigma if given.has_series else sigma[0]
    margin = NormalDist().inv_cdf((1.0 + level) / 2.0) * sigma * np.sqrt(1.0 + 1.0 / n_past)
    return np.stack([forecast - margin, forecast + margin], axis=-1)


def _deviation(errors: Array, axes: tuple[int, ...]) -> Array:
    """Standard deviation of the errors that are known."""
    known = np.count_nonzero(~np.isnan(errors), axis=axes)
    if (known < 2).any():
        msg = f"A standard deviation takes at least 2 known errors of a series or window; got {known.min()}."
        raise ValueError(msg)
    factor = safe_factor(float(np.nanmax(np.abs(errors))))
    return np.asarray(np.nanstd(factor * errors, axis=axes, ddof=1) / factor)
