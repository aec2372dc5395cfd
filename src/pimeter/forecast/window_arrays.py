"""Windows of forecasts as arrays: checked, subtracted from their targets, and when these are known."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pimeter.arrays import real_array
from pimeter.coverage import ROUNDING
from pimeter.frames import refuse_other_order

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pimeter.protocols import Array, Index

LARGEST_ERROR = 1e300  # up to which distances and steps of online learning stay finite
ONE_PATH = "One-step forecasts are y[:, None], one path of h steps is y[None]; of a Series take to_numpy() first."
SCORES_AT_A_TIME = 250_000  # what fits into a cache is not read twice


class WindowErrors(NamedTuple):
    """Errors of windows of forecasts."""

    errors: Array  # (series, h, n), signed; NaN where not known
    has_series: bool  # whether there was an axis of series


def window_errors(y_true: ArrayLike, y_pred: ArrayLike) -> WindowErrors:
    """Targets less forecasts, of windows that were checked."""
    refuse_other_order("y_true", y_true, "y_pred", y_pred)
    target, forecast = real_array("y_true", y_true), real_array("y_pred", y_pred)
    if target.ndim not in {2, 3} or target.shape != forecast.shape or target.size == 0:
        msg = (
            "y_true and y_pred must have the same shape (n, h) or (n_series, n, h), windows of h steps; got "
            f"{target.shape} and {forecast.shape}. {ONE_PATH}"
        )
        raise ValueError(msg)
    has_series = target.ndim == 3
    if not has_series:
        target, forecast = target[None], forecast[None]
    n_series, n, h = target.shape
    errors = np.empty((n_series, h, n))
    for part in series_blocks(errors):
        block = errors[part]
        with np.errstate(over="ignore", invalid="ignore"):
            block[:] = np.subtract(target[part], forecast[part], dtype=np.float64).transpose(0, 2, 1)
            fine = np.abs(block) <= LARGEST_ERROR
        if not fine.all() and (
            np.isinf(target[part]).any() or np.isinf(forecast[part]).any() or not (fine | np.isnan(block)).all()
        ):
            msg = (
                "y_true and y_pred must be finite, or NaN where a step is not known; got infinite values, or errors "
                f"of more than {LARGEST_ERROR:g}."
            )
            raise ValueError(msg)
    return WindowErrors(errors, has_series)


def n_missing(errors: Array) -> int:
    """Number of errors not known; a ValueError where a step has none at all."""
    missing = [np.isnan(errors[part]) for part in series_blocks(errors)]
    if not any(part.any() for part in missing):
        return 0
    known = errors.shape[-1] - np.concatenate([np.count_nonzero(part, axis=-1) for part in missing])
    if not known.all():
        series, step = np.argwhere(known == 0)[0]
        of = "" if len(errors) == 1 else f" of series {series}"
        msg = f"Step {step + 1}{of} is NaN in all windows; each step needs at least one known error."
        raise ValueError(msg)
    return int(errors.size - known.sum())


def finite_forecasts(y_pred: ArrayLike, n_series: int | None, h: int) -> Array:
    """Finite forecasts ([n_series,] n, h) of the horizon and series of `fit`."""
    forecast: Array = real_array("y_pred", y_pred).astype(np.float64, copy=False)
    fits = forecast.ndim == (2 if n_series is None else 3) and forecast.shape[-1] == h
    if not fits or (n_series is not None and len(forecast) != n_series):
        expected = f"(n, {h})" if n_series is None else f"({n_series}, n, {h})"
        msg = f"y_pred must have shape {expected}, as in fit; got {forecast.shape}. One path is y_pred[None]."
        raise ValueError(msg)
    wrong = ~(np.abs(forecast) <= LARGEST_ERROR)
    if wrong.any():
        n_wrong = np.count_nonzero(wrong)
        what = f"NaN or infinite, or beyond {LARGEST_ERROR:g}"
        msg = f"y_pred must be finite; {n_wrong} of {forecast.size} values are {what}."
        raise ValueError(msg)
    return forecast


def windows_until_known(h: int, stride: float) -> Index:
    """How many windows later the target of each of h steps is known, if windows start `stride` steps apart.

    Raises
    ------
    ValueError
        If the stride is not a positive number.

    Examples
    --------
    >>> from pimeter.forecast.window_arrays import windows_until_known
    >>> windows_until_known(4, 1).tolist(), windows_until_known(4, 3).tolist(), windows_until_known(2, 1 / 24).tolist()
    ([1, 2, 3, 4], [1, 1, 1, 2], [24, 48])
    """
    if isinstance(stride, bool) or not (isinstance(stride, Real) and 0.0 < stride < np.inf):
        msg = f"stride must be how many steps windows are apart, more than 0; got {stride!r}. One at each step is 1."
        raise ValueError(msg)
    return np.ceil(np.arange(1, h + 1) / float(stride) - ROUNDING).astype(np.intp)


def series_blocks(errors: Array, at_a_time: int = SCORES_AT_A_TIME) -> list[slice]:
    """Blocks of series, whose errors (series, h, n) fit into a cache."""
    size = max(1, at_a_time // max(1, errors.shape[1] * errors.shape[2]))
    return [slice(i, i + size) for i in range(0, len(errors), size)]


def as_columns(sample: Array) -> Array:
    """(series, h, n) as (n, series * h), a column per neuron."""
    return sample.reshape(-1, sample.shape[-1]).T
