"""How a cone would have done: fitted to the older windows of forecasts, tried on the newer ones as time went by."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from pimeter.arrays import real_array
from pimeter.coverage import counted
from pimeter.evaluation.backtest_checks import FRACTION_FITTED, Cone, Tried, judged
from pimeter.evaluation.results import Result
from pimeter.forecast import ForecastIntervals
from pimeter.forecast.window_arrays import ONE_PATH, windows_until_known
from pimeter.frames import refuse_other_order

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from pimeter.protocols import Array, Columns, Flags, Index

BLOCKS = 12  # of the newer windows, over which coverage is shown as time goes by


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Backtest(Result):
    """What the windows that a cone was not fitted to say about it.

    Attributes
    ----------
    headline, diagnosis : Headline, Diagnosis
        The answer, a claim and its evidence; findings, advice and code.
    confidence_level : float
        Fraction of targets that were to be covered.
    n_fitted, n_tested, n_scored : int
        Windows that the cone was fitted to, windows that it was tried on, and those of the latter that have a target
        and its forecast.
    static, updated : Cone
        Left as it was fitted, or updated with each target as it became known.
    margin : list of float
        How far intervals extend now, at each step ahead: margins of the updated cone, with all that is known.
    newest : dict
        Prediction, lower and upper bound of the newest window, and its targets as far as they are known.
    blocks : list of int
        First window of each block of `over_time`.
    block_names : list of str or None
        What these windows are called.
    stride : float
        Steps between the starts of windows, by which targets became known.
    """

    confidence_level: float
    n_fitted: int
    n_tested: int
    n_scored: int
    static: Cone
    updated: Cone
    margin: list[float]
    newest: dict[str, list[float | None]]
    blocks: list[int]
    block_names: list[str] | None
    stride: float

    def _table(self) -> Columns:
        """A row for each step ahead: the margin, what intervals covered, and the newest window."""
        columns: dict[str, Sequence[float | None]] = {
            "confidence_level": [self.confidence_level] * len(self.margin),
            "margin": self.margin,
            "static_coverage": self.static.by_step,
            "updated_coverage": self.updated.by_step,
            "static_width": self.static.width,
            "updated_width": self.updated.width,
            **self.newest,
        }
        known = {name: np.array(values, dtype=np.float64) for name, values in columns.items()}  # NaN for None
        return {"step": np.arange(1, len(self.margin) + 1), **known}

    def _page(self, about: Mapping[str, str]) -> str:
        from pimeter.report.cone import cone_html

        return cone_html(self.to_dict(), about)


def backtest(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    confidence_level: float = 0.95,
    stride: float = 1.0,
    until_known: ArrayLike | None = None,
    names: Sequence[str] | None = None,
) -> Backtest:
    """How would a cone have done? Fitted to the older half of the windows, tried on the others as time went by.

    A target counts as known only when its time has come: that of step j of a window when the first window is made that
    starts j steps later or more. So the cone is fitted without the targets that the newest of its windows still waited
    for. A stride that is too large uses targets before their time, one that is too small later than need be.

    Parameters
    ----------
    y_true : array-like of shape (n, h)
        Targets of windows made one after the other, the oldest first; NaN for what is not known.
    y_pred : array-like of shape (n, h)
        Their forecasts; NaN for steps that were not forecast, whose residuals are not known then.
    confidence_level : float, default=0.95
        Fraction of targets that intervals should cover.
    stride : float, default=1
        How many steps after the one before a window starts: 1 if one is made at each step, none left out.
    until_known : array of int of shape (h,), optional
        How many windows later the target of each step is known, where that is not by the stride: forecasts may begin
        several steps ahead.
    names : sequence of str of length n, optional
        What windows are called, such as the dates they were made on.

    Returns
    -------
    Backtest
        Coverage and width at each step ahead, of a cone left as it was fitted and of one that is updated. It prints as
        sentences; `to_html(path)` writes a report, `to_frame()` is a row for each step, `to_dict()` everything.

    Raises
    ------
    ValueError
        If shapes do not fit, a value is infinite, or there are too few windows.

    See Also
    --------
    ForecastIntervals : The cone itself.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter import backtest
    >>> rng = np.random.default_rng(0)
    >>> series = np.cumsum(rng.standard_normal(2000))
    >>> windows = np.lib.stride_tricks.sliding_window_view(series, 4)
    >>> found = backtest(windows[:, 1:], np.repeat(windows[:, :1], 3, axis=1), confidence_level=0.9)
    >>> print(found)
    90 % of targets are expected within ±1.76 one step ahead and ±2.9 at step 3. Over 999 windows that it had not seen,
    the cone covered 88 %; updated as targets became known, 89.5 %. The margins are those of the updated cone.
    <BLANKLINE>
    Nothing to do: the cone keeps its level.
    from pimeter import ForecastIntervals
    cone = ForecastIntervals(confidence_level=0.9).fit(y_true, y_pred)  # all windows; update it from here on
    >>> found.to_frame()["updated_coverage"].round(2).tolist()
    [0.89, 0.89, 0.9]
    """
    true, predicted = _checked(y_true, y_pred)
    n, h = true.shape
    is_forecast = ~np.isnan(predicted)
    true, predicted = np.where(is_forecast, true, np.nan), np.where(is_forecast, predicted, 0.0)
    n_fitted = int(n * FRACTION_FITTED)
    until_known = windows_until_known(h, stride) if until_known is None else _one_each("until_known", until_known, h)
    if until_known.dtype.kind not in "iu" or until_known.min() < 1:
        msg = f"until_known must hold integers from 1 up; got {until_known.tolist()}."
        raise ValueError(msg)
    names = None if names is None else _one_each("names", names, n).tolist()
    needed = 2 * (int(until_known.max()) + 1)
    if n < needed:
        few = f"{counted(n, 'window')} of {counted(h, 'step')} {'is' if n == 1 else 'are'} too few"
        msg = f"{few} to fit a cone to half of them: at least {needed} are needed."
        raise ValueError(msg)
    # When the first window is made that it is tried on.
    is_known = np.arange(n_fitted)[:, None] + until_known <= n_fitted
    cone = ForecastIntervals(confidence_level).fit(
        np.where(is_known, true[:n_fitted], np.nan), predicted[:n_fitted], stride=stride
    )
    n_effective = float(np.min(cone.n_effective_))
    tested = slice(n_fitted, n)
    static = cone.predict_interval(predicted[tested])
    updated = rolled_forward(cone, true, predicted, n_fitted, until_known)
    edges = np.linspace(0, n - n_fitted, min(BLOCKS, n - n_fitted) + 1).astype(int)
    blocks = (edges[:-1] + n_fitted).tolist()
    tried = Tried(
        float(confidence_level),
        n_fitted,
        n - n_fitted,
        int(np.count_nonzero(~np.isnan(true[tested]).all(axis=1))),
        n_effective,
        cone.margin_[:, 1].tolist(),
        _cone(static, true[tested], edges),
        _cone(updated, true[tested], edges),
    )
    return Backtest(
        headline=tried.headline,
        diagnosis=judged(tried, stride),
        confidence_level=tried.level,
        n_fitted=n_fitted,
        n_tested=tried.n_tested,
        n_scored=tried.n_scored,
        static=tried.static,
        updated=tried.updated,
        margin=tried.margin,
        newest=_newest(true[tested], predicted[tested], updated, is_forecast[tested]),
        blocks=blocks,
        block_names=None if names is None else [names[start] for start in blocks],
        stride=float(stride),
    )


def _one_each(name: str, values: ArrayLike, n: int) -> NDArray[Any]:
    """Values of shape (n,)."""
    found = np.asarray(values)
    if found.shape != (n,):
        msg = f"{name} must have shape ({n},); got {found.shape}."
        raise ValueError(msg)
    return found


def _checked(y_true: ArrayLike, y_pred: ArrayLike) -> tuple[Array, Array]:
    """Targets and forecasts of the same windows and steps, without infinities."""
    refuse_other_order("y_true", y_true, "y_pred", y_pred)
    true, predicted = (real_array(*given).astype(np.float64) for given in (("y_true", y_true), ("y_pred", y_pred)))
    if true.ndim != 2 or true.shape != predicted.shape:
        shapes = f"got {true.shape} and {predicted.shape}"
        msg = f"y_true and y_pred must have the same shape, (windows, steps); {shapes}. {ONE_PATH}"
        raise ValueError(msg)
    if np.isinf(true).any() or np.isinf(predicted).any():
        msg = "y_true or y_pred holds infinities; write NaN for what is not known."
        raise ValueError(msg)
    return true, predicted


def _newest(true: Array, predicted: Array, intervals: Array, is_forecast: Flags) -> dict[str, list[float | None]]:
    """The newest window with a forecast; its bounds as they were made, knowing nothing of the targets."""
    known = np.flatnonzero(is_forecast.any(axis=1))
    last = int(known[-1]) if known.size else -1
    lower, upper = intervals[last].T
    columns = {"prediction": predicted[last], "lower": lower, "upper": upper, "target": true[last]}
    return {
        name: [_known(value) for value in np.where(is_forecast[last], values, np.nan).tolist()]
        for name, values in columns.items()
    }


def rolled_forward(
    cone: ForecastIntervals, y_true: Array, y_pred: Array, first: int, until_known: Index | None = None
) -> Array:
    """Intervals for the windows from `first` on, each after all targets before it were learned, (n, h, 2).

    Until the next window is made one residual for each step ahead becomes known: with a window at each step the first
    step of the newest window, the second of the one before, and so on.
    """
    steps = np.arange(y_true.shape[1])
    until_known = windows_until_known(len(steps), 1.0) if until_known is None else until_known
    intervals = []
    for i in range(first, len(y_true)):
        intervals.append(cone.predict_interval(y_pred[i : i + 1])[0])
        known = i + 1 - until_known
        there = np.where(known >= 0, known, 0)
        now = np.where(known >= 0, y_true[there, steps], np.nan)
        cone.update(now[None], y_pred[there, steps][None])
    return np.array(intervals)


def _cone(intervals: Array, true: Array, edges: NDArray[np.int_]) -> Cone:
    """What intervals of windows covered, at each step and in blocks of windows between these edges."""
    lower, upper = np.moveaxis(intervals, -1, 0)
    inside = np.where(np.isnan(true), np.nan, (lower <= true) & (true <= upper))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Mean of empty slice", RuntimeWarning)  # nothing known of a step or block
        by_step = np.nanmean(inside, axis=0).tolist()
        over_time = [float(np.nanmean(inside[a:b])) for a, b in pairwise(edges)]
        total = float(np.nanmean(inside))
    return Cone(
        _known(total), list(map(_known, by_step)), (upper - lower).mean(axis=0).tolist(), list(map(_known, over_time))
    )


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
