"""What was known when a forecast of a panel was made, and what it says of the error to come: a centre and a scale.

Two regressions for each step ahead, of all series together, in units of each series' mean absolute error. The first
predicts the error from the newest errors of the series, from the forecast beside the newest target and, with a season,
beside the targets of earlier seasons, all the more the more errors of that series made up for such differences before,
and from the caller's features. The second predicts the logarithm of what then
remains from how large errors were of late. Windows of `fit` are standardised by coefficients of the other half of the
time, so that they tell how large errors of windows to come will be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pimeter.forecast.context import MEAN_LOG, CentreAndScale

if TYPE_CHECKING:
    from collections.abc import Callable

    from pimeter.forecast.features import Standardised
    from pimeter.forecast.panel_windows import PanelWindows
    from pimeter.protocols import Array, Flags, Index

LAGS = 3  # newest errors that are looked at
RATES_OF_MEANS = (0.3, 0.1, 0.03)  # weights of the newest error in means of absolute ones
SEASONS = 4  # earlier ones whose targets are averaged
PENALTY = 30.0  # rows that speak for no centre, and for the usual scale
PENALTY_OF_RETURN = 10.0  # squared units that speak for a series whose forecasts are right
FAR_AWAY = 2.0  # units beyond which a forecast beside earlier seasons may count more, or less
MOST_UNITS = 10.0  # that an error counts at most
LEAST_REMAINDER = 0.02  # absolute value of which a logarithm is taken, in units
MAX_LOG_SCALE = 2.0
MAX_SERIES_TO_LEARN = 1000
MIN_ROWS_TO_LEARN = 50  # windows of all series that a step is learned from


class Ahead(NamedTuple):
    """Windows of forecasts: number of their series, number of the last moment they knew, and what was said then."""

    series: Index  # (n,)
    cutoff: Index  # (n,)
    forecasts: Array  # (n, h)
    features: Array  # (n, h, q) of the moments that steps are about

    def chosen(self, which: Flags) -> Ahead:
        """Some of the windows."""
        return Ahead(self.series[which], self.cutoff[which], self.forecasts[which], self.features[which])


class Coefficients(NamedTuple):
    """Coefficients of the regressions of each step, (h, inputs)."""

    centre: Array
    scale: Array


class History:
    """What the moments of each series tell of the errors of one model to come."""

    def __init__(self, windows: PanelWindows, model: str, season_length: int | None, features: Standardised) -> None:
        self._windows, self._model, self._season, self._features = windows, model, season_length, features
        errors = windows.errors[model]
        n_known = np.count_nonzero(~np.isnan(errors), axis=(1, 2))
        unit = np.nansum(np.abs(errors), axis=(1, 2)) / np.maximum(n_known, 1)
        self.unit = unit = np.where(unit > 0.0, unit, 1.0)
        fresh: Array = np.full_like(windows.moments.targets, np.nan)
        for j in range(windows.horizon, 0, -1):  # of a moment the error of the newest window that holds it
            step = self._by_moment(j)
            fresh = np.where(np.isnan(step), fresh, step)
        with np.errstate(invalid="ignore"):
            fresh = np.clip(fresh / unit[:, None], -MOST_UNITS, MOST_UNITS)
        self._fresh, self._newest = fresh, _carried(fresh)
        self._target = _carried(windows.moments.targets)
        self._magnitudes = _recent_means(np.abs(fresh))
        targets = windows.moments.targets
        self._of_season = None if season_length is None else _means_of_seasons(targets, season_length)
        self._returned = None
        if self._of_season is not None and season_length is not None:
            forecasts = targets - fresh * unit[:, None]
            self._returned = _returned(fresh, forecasts / unit[:, None], self._of_season / unit[:, None], season_length)

    def _by_moment(self, j: int) -> Array:
        """Errors of step j by the moment that they are of, (series, moments)."""
        windows = self._windows
        found: Array = np.full_like(windows.moments.targets, np.nan)
        series, column = np.nonzero(~np.isnan(windows.cutoffs))
        at = windows.cutoffs[series, column].astype(np.intp) + j - windows.moments.start
        inside = at < found.shape[1]
        found[series[inside], at[inside]] = windows.errors[self._model][series[inside], j - 1, column[inside]]
        return found

    def past(self, series: Index, column: Index) -> Ahead:
        """Windows that were given, with their forecasts as far as targets are known."""
        windows = self._windows
        cutoff = windows.cutoffs[series, column].astype(np.intp)
        at = cutoff[:, None] - windows.moments.start + np.arange(1, windows.horizon + 1)
        last = windows.moments.targets.shape[1] - 1
        is_beyond, place = at > last, (series[:, None], np.minimum(at, last))
        targets = np.where(is_beyond, np.nan, windows.moments.targets[place])
        features = [np.where(is_beyond, np.nan, grid[place]) for grid in windows.moments.features.values()]
        table = np.stack(features, axis=-1) if features else np.zeros((*targets.shape, 0))
        return Ahead(series, cutoff, targets - windows.errors[self._model][series, :, column], table)

    def inputs(self, ahead: Ahead, j: int) -> tuple[Array, Callable[[Array], Array]]:
        """What the error of step j is predicted from (n, d), and from that and a centre what the scale is."""
        series, forecast = ahead.series, ahead.forecasts[:, j - 1]
        last = self._fresh.shape[1] - 1
        now = ahead.cutoff - self._windows.moments.start
        lags = [self._newest[series, np.clip(now - lag, 0, last)] for lag in range(LAGS)]
        of_step = _carried(self._by_moment(j))[series, np.clip(now, 0, last)] / self.unit[series]
        beside = (forecast - self._target[series, np.clip(now, 0, last)]) / self.unit[series]
        found = [*lags, of_step, beside]
        season = self._season
        if self._of_season is not None and season is not None:
            then = now + j - season * -(-j // season)
            then = then - season * np.maximum(-(-(then - last) // season), 0)
            then = np.clip(then, 0, last)
            found += [self._fresh[series, then], (forecast - self._of_season[series, then]) / self.unit[series]]
        units = np.clip(np.nan_to_num(np.stack(found, axis=1)), -MOST_UNITS, MOST_UNITS)
        features = self._features.units(ahead.features[:, j - 1])
        ones = np.ones((len(series), 1))
        away, bent = np.zeros((2, len(series), 0))
        if self._returned is not None:
            own, away = self._returned[series, np.clip(now, 0, last)][:, None], units[:, -1:]
            bent = np.sign(away) * np.maximum(np.abs(away) - FAR_AWAY, 0.0)
            bent = np.concatenate([bent, own * away, own * bent], axis=1)
        for_centre = np.concatenate([ones, units, bent, features], axis=1)
        means = [one[series, np.clip(now, 0, last)] for one in self._magnitudes]
        magnitudes = np.log(np.maximum(np.nan_to_num(np.stack(means, axis=1), nan=1.0), LEAST_REMAINDER))
        far = np.log(np.abs(units) + 0.1)

        def for_scale(centre: Array) -> Array:
            moved = np.log(np.abs(centre) + 0.1)[:, None]
            sides = np.maximum(away, 0.0), np.maximum(-away, 0.0)
            return np.concatenate([ones, magnitudes, far, moved, *sides, features], axis=1)

        return for_centre, for_scale

    def has_known(self, ahead: Ahead) -> Flags:
        """Whether an error of the series was known when a window was made."""
        now = np.clip(ahead.cutoff - self._windows.moments.start, 0, self._fresh.shape[1] - 1)
        return np.asarray(~np.isnan(self._newest[ahead.series, now]))


@dataclass(frozen=True)
class PanelContext:
    """Coefficients of the older and the newer half of the windows of `fit`, and of all of them."""

    middle: float  # moment after which the newer half begins
    last: float  # newest moment at which a window of `fit` was made
    older: Coefficients
    newer: Coefficients
    every: Coefficients

    @classmethod
    def learned(cls, windows: PanelWindows, model: str, history: History) -> PanelContext:
        """Learn the coefficients from the windows of some series."""
        there = np.flatnonzero(~np.isnan(windows.errors[model]).all(axis=(1, 2)))
        if len(there) > MAX_SERIES_TO_LEARN:
            there = np.sort(np.random.default_rng(0).choice(there, MAX_SERIES_TO_LEARN, replace=False))
        made = windows.cutoffs[there]
        middle = float(np.nanmedian(made))
        rows, columns = np.nonzero(~np.isnan(made))
        ahead = history.past(there[rows], columns)
        errors = windows.errors[model][ahead.series, :, columns]
        parts = (ahead.cutoff <= middle, ahead.cutoff > middle, np.ones(len(rows), np.bool_))
        older, newer, every = (_learned(history, ahead, errors, part) for part in parts)
        return cls(middle, float(np.nanmax(made)), older, newer, every)

    def centre_and_scale(self, history: History, ahead: Ahead) -> CentreAndScale:
        """What is expected of windows (n, h); NaN where a series had no known error when its window was made."""
        is_older, is_later = ahead.cutoff <= self.middle, ahead.cutoff > self.last
        is_known = history.has_known(ahead)
        centre, scale = np.empty_like(ahead.forecasts), np.empty_like(ahead.forecasts)
        for j in range(1, ahead.forecasts.shape[1] + 1):
            inputs = history.inputs(ahead, j)
            newer, older, every = (_predicted(*inputs, one, j) for one in (self.newer, self.older, self.every))
            found = np.where(is_older, newer, np.where(is_later, every, older))  # none by its own half
            centre[:, j - 1], scale[:, j - 1] = np.where(is_known, found, np.nan) * history.unit[ahead.series]
        return CentreAndScale(centre, scale)


def _predicted(for_centre: Array, for_scale: Callable[[Array], Array], own: Coefficients, j: int) -> Array:
    """Centres and scales (2, n) in units."""
    centre = np.clip(for_centre @ own.centre[j - 1], -MOST_UNITS, MOST_UNITS)
    return np.stack([centre, np.exp(np.clip(for_scale(centre) @ own.scale[j - 1], -MAX_LOG_SCALE, MAX_LOG_SCALE))])


def _learned(history: History, ahead: Ahead, errors: Array, part: Flags) -> Coefficients:
    """Coefficients of a part of the windows by ridge regression, step by step."""
    centres, scales = [], []
    for j in range(1, errors.shape[1] + 1):
        known = part & ~np.isnan(errors[:, j - 1])
        if int(known.sum()) < MIN_ROWS_TO_LEARN:
            msg = (
                f"context='recent' takes {MIN_ROWS_TO_LEARN} windows, of all series together, with a known target of "
                f"step {j} in either half of the time; one has {int(known.sum())}. Give more, or leave the context out."
            )
            raise ValueError(msg)
        own = ahead.chosen(known)
        for_centre, for_scale = history.inputs(own, j)
        target = np.clip(errors[known, j - 1] / history.unit[own.series], -MOST_UNITS, MOST_UNITS)
        centre = ridge(for_centre, target)
        predicted = for_centre @ centre
        logs = np.log(np.maximum(np.abs(target - predicted), LEAST_REMAINDER)) - MEAN_LOG
        centres.append(centre)
        scales.append(ridge(for_scale(predicted), logs))
    return Coefficients(np.stack(centres), np.stack(scales))


def ridge(inputs: Array, targets: Array) -> Array:
    """Coefficients by least squares with a penalty on all but the first, which is of a constant."""
    penalty = np.full(inputs.shape[1], PENALTY)
    penalty[0] = 1e-6
    solved = np.linalg.solve(inputs.T @ inputs + np.diag(penalty), inputs.T @ targets)
    return np.asarray(solved, np.float64)


def _carried(values: Array) -> Array:
    """The last known value of each series (series, moments) at each moment, NaN before the first."""
    place = np.where(np.isnan(values), 0, np.arange(values.shape[1]))
    place = np.maximum.accumulate(place, axis=1)
    return np.take_along_axis(values, place, axis=1)


def _recent_means(values: Array) -> list[Array]:
    """Means that forget, (series, moments) for each rate, from a unit on; what is missing leaves them as they were."""
    found = []
    for rate in RATES_OF_MEANS:
        means, now = np.empty_like(values), np.ones(len(values))
        n_known = np.zeros(len(values))
        for t in range(values.shape[1]):
            is_known = ~np.isnan(values[:, t])
            n_known += is_known
            step = np.maximum(rate, 1.0 / (n_known + 5.0))
            now = np.where(is_known, now + step * (values[:, t] - now), now)
            means[:, t] = now
        found.append(means)
    return found


def _returned(errors: Array, forecasts: Array, of_season: Array, season: int) -> Array:
    """How much errors made up for the difference of forecasts from the mean of earlier seasons, by what was known then.

    The slope of a line through 0 for each series and moment: -1 where targets go back to that mean, whatever was
    forecast, 0 where forecasts are right about the difference.
    """
    away = np.full_like(errors, np.nan)
    away[:, season:] = forecasts[:, season:] - of_season[:, : max(errors.shape[1] - season, 0)]
    is_known = ~np.isnan(away) & ~np.isnan(errors)
    away = np.where(is_known, np.clip(away, -MOST_UNITS, MOST_UNITS), 0.0)
    products = np.cumsum(away * np.where(is_known, errors, 0.0), axis=1)
    return np.asarray(products / (np.cumsum(away**2, axis=1) + PENALTY_OF_RETURN))


def _means_of_seasons(targets: Array, season: int) -> Array:
    """Mean target of each moment and of those one, two and three seasons before it, as far as they are known."""
    total, n_known = np.zeros_like(targets), np.zeros_like(targets)
    for k in range(SEASONS):
        shift = k * season
        if shift >= targets.shape[1]:
            break
        before = targets[:, : targets.shape[1] - shift]
        total[:, shift:] += np.nan_to_num(before)
        n_known[:, shift:] += ~np.isnan(before)
    return np.divide(total, n_known, out=np.full_like(total, np.nan), where=n_known > 0.0)
