"""How a cone would have done: fitted to the older windows of forecasts, tried on the newer ones as time went by."""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from pimeter.arrays import real_array
from pimeter.coverage import percent
from pimeter.forecast import ForecastIntervals, windows_until_known
from pimeter.frames import frame_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]

FITTED = 0.5  # share of the windows, the oldest, that the cone is fitted to
FAR = 0.3  # from its level, in roots of the share of misses: 7 % at 95, 10 % at 90
BLOCKS = 12  # of the newer windows, over which coverage is shown as time goes by


@dataclass(frozen=True)
class Cone:
    """What one kind of cone covered, and how wide it was; None where nothing is known."""

    coverage: float | None
    by_step: list[float | None]
    width: list[float]
    over_time: list[float | None]


@dataclass(frozen=True)
class Backtest:
    """What the windows that the cone was not fitted to say about it.

    Attributes
    ----------
    confidence_level : float
        Share of targets that were to be covered.
    n_fitted, n_tested : int
        Windows that the cone was fitted to, and windows that it was tried on.
    static, updated : Cone
        Left as it was fitted, or updated with each target as it became known.
    radius : list of float
        How far intervals reach now, at each step ahead, with all that is known.
    last : dict
        Prediction, lower and upper end of the newest window, and its targets as far as they are known.
    blocks : list of int
        First window of each block of `over_time`.
    stride : float
        Steps between the starts of windows, by which targets became known.
    """

    confidence_level: float
    n_fitted: int
    n_tested: int
    static: Cone
    updated: Cone
    radius: list[float]
    last: dict[str, list[float | None]]
    blocks: list[int]
    stride: float

    @property
    def headline(self) -> str:
        """The answer in words."""
        first, end, h = self.radius[0], self.radius[-1], len(self.radius)
        reach = f"±{first:.3g} one step ahead" + (f" and ±{end:.3g} at step {h}" if h > 1 else "")
        shares = [
            percent(cone.coverage, 3) if cone.coverage is not None else "an unknown share"
            for cone in (self.static, self.updated)
        ]
        asked = percent(self.confidence_level)
        covered = self.updated.coverage
        if covered is None or abs(covered - self.confidence_level) <= FAR * (1.0 - self.confidence_level) ** 0.5:
            answer = f"{asked} of targets are expected within {reach}."
        else:
            answer = f"The cone does not keep its {asked}: it now reaches {reach}, but do not trust that."
        return (
            f"{answer} Over {self.n_tested:,} windows that it had not seen, the cone covered {shares[0]}; updated as "
            f"targets became known, {shares[1]}."
        )

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {**asdict(self), "headline": self.headline}

    def to_json(self) -> str:
        """All of it as JSON text."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def to_frame(self, library: Any = "pandas") -> Any:
        """The cone, a row for each step ahead: how far it reaches, what it covered, and the newest window."""
        columns: dict[str, Sequence[float | None]] = {
            "confidence_level": [self.confidence_level] * len(self.radius),
            "radius": self.radius,
            "static_coverage": self.static.by_step,
            "updated_coverage": self.updated.by_step,
            "static_width": self.static.width,
            "updated_width": self.updated.width,
            **self.last,
        }
        known = {name: np.array(values, dtype=np.float64) for name, values in columns.items()}  # NaN for None
        return frame_of({"step": np.arange(1, len(self.radius) + 1), **known}, library)


def backtest(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    confidence_level: float = 0.95,
    stride: float = 1.0,
    until_known: NDArray[np.intp] | None = None,
) -> Backtest:
    """Fit a cone to the older half of the windows, and try it on the others, with and without updates.

    A target counts as known only when its time has come: that of step j of a window when the first window is made that
    starts j steps later or more. So the cone is fitted without the targets that the newest of its windows still waited
    for. A stride that is too large uses targets before their time, one that is too small later than need be.

    Parameters
    ----------
    y_true : array-like of shape (n, h)
        Targets of windows made one after the other, the oldest first; NaN for what is not known.
    y_pred : array-like of shape (n, h)
        Their forecasts; NaN for steps that were not forecast, whose errors are not known then.
    confidence_level : float, default=0.95
        Share of targets that intervals shall cover.
    stride : float, default=1
        How many steps after the one before a window starts: 1 if one is made at each step, none left out.
    until_known : array of int of shape (h,), optional
        How many windows later the target of each step is known, where that is not by the stride: forecasts may begin
        several steps ahead.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter.backtest import backtest
    >>> rng = np.random.default_rng(0)
    >>> series = np.cumsum(rng.standard_normal(2000))
    >>> windows = np.lib.stride_tricks.sliding_window_view(series, 4)
    >>> found = backtest(windows[:, 1:], np.repeat(windows[:, :1], 3, axis=1), confidence_level=0.9)
    >>> len(found.radius), abs(found.updated.coverage - 0.9) < 0.02
    (3, True)
    """
    true, predicted = (
        real_array(name, values).astype(np.float64) for name, values in (("y_true", y_true), ("y_pred", y_pred))
    )
    if true.ndim != 2 or true.shape != predicted.shape:
        msg = f"y_true and y_pred must have the same shape, (windows, steps); got {true.shape} and {predicted.shape}."
        raise ValueError(msg)
    if np.isinf(true).any() or np.isinf(predicted).any():
        msg = "y_true or y_pred holds infinities; write NaN for what is not known."
        raise ValueError(msg)
    is_forecast = ~np.isnan(predicted)
    true, predicted = np.where(is_forecast, true, np.nan), np.where(is_forecast, predicted, 0.0)
    n, h = true.shape
    n_fitted = int(n * FITTED)
    if until_known is None:
        until_known = windows_until_known(h, stride)
    least = 2 * (int(until_known.max()) + 1)
    if n < least:
        msg = f"{n} windows of {h} steps are too few to fit a cone to half of them: at least {least} are needed."
        raise ValueError(msg)
    is_known = (
        np.arange(n_fitted)[:, None] + until_known <= n_fitted
    )  # when the first window is made that it is tried on
    cone = ForecastIntervals(confidence_level).fit(
        np.where(is_known, true[:n_fitted], np.nan), predicted[:n_fitted], stride=stride
    )
    tested = slice(n_fitted, n)
    static = cone.predict_interval(predicted[tested])
    updated = rolled_forward(cone, true, predicted, n_fitted, until_known)
    radius = cone.margin_[:, 1].tolist()
    edges = np.linspace(0, n - n_fitted, min(BLOCKS, n - n_fitted) + 1).astype(int)
    forecasted = np.flatnonzero(is_forecast[tested].any(axis=1))
    newest = n_fitted + int(forecasted[-1] if forecasted.size else -1)
    ends = updated[newest - n_fitted].T  # as they were made, knowing nothing of the targets
    shown = is_forecast[newest]
    return Backtest(
        float(confidence_level),
        n_fitted,
        n - n_fitted,
        _cone(static, true[tested], edges),
        _cone(updated, true[tested], edges),
        radius,
        {
            name: [_known(value) for value in np.where(shown, values, np.nan).tolist()]
            for name, values in (
                ("prediction", predicted[newest]),
                ("lower", ends[0]),
                ("upper", ends[1]),
                ("target", true[newest]),
            )
        },
        (edges[:-1] + n_fitted).tolist(),
        float(stride),
    )


def rolled_forward(
    cone: ForecastIntervals, y_true: Array, y_pred: Array, first: int, until_known: NDArray[np.intp] | None = None
) -> Array:
    """Intervals for the windows from `first` on, each after all targets before it were learned, (n, h, 2).

    Until the next window is made one error for each neuron becomes known: with a window at each step the first step of
    the newest window, the second of the one before, and so on.
    """
    steps = np.arange(y_true.shape[1])
    if until_known is None:
        until_known = windows_until_known(len(steps), 1.0)
    ends = []
    for i in range(first, len(y_true)):
        ends.append(cone.predict_interval(y_pred[i : i + 1])[0])
        known = i + 1 - until_known
        there = np.where(known >= 0, known, 0)
        now = np.where(known >= 0, y_true[there, steps], np.nan)
        cone.update(now[None], y_pred[there, steps][None])
    return np.array(ends)


def _cone(intervals: Array, true: Array, edges: NDArray[np.int_]) -> Cone:
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
