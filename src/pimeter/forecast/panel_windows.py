"""Windows of a panel as arrays: errors of each series, step and window, the newest window last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pimeter.forecast.long_frames import chunks

if TYPE_CHECKING:
    from pimeter.forecast.long_frames import Rows
    from pimeter.protocols import Array, Index

WINDOWS_AT_A_TIME = 50_000


@dataclass(frozen=True)
class SeriesMoments:
    """What is known of the moments of each series, whichever windows they are in: (series, moments) each."""

    start: int  # number of the first moment
    targets: Array
    features: dict[str, Array]

    @property
    def last_known(self) -> Array:
        """Number of the last moment of each series whose target is known; -inf where there is none."""
        numbers = self.start + np.arange(self.targets.shape[1])
        return np.asarray(np.where(np.isnan(self.targets), -np.inf, numbers).max(axis=1, initial=-np.inf))

    @property
    def feature_table(self) -> Array:
        """Features (series, moments, q)."""
        return np.stack(list(self.features.values()), axis=-1) if self.features else np.zeros((*self.targets.shape, 0))

    @classmethod
    def of(cls, rows: Rows) -> SeriesMoments:
        """The moments of rows of past forecasts, in which a moment of a series has one target."""
        assert rows.target is not None  # rows of the past have targets
        start = int(rows.cutoff.min())
        shape = (len(rows.ids), int(rows.cutoff.max()) + int(rows.step.max()) - start + 1)
        columns = {"": rows.target, **rows.features}
        found = {name: np.full(shape, np.nan) for name in columns}
        for part in chunks(len(rows.series)):
            at = rows.series[part].astype(np.intp) * shape[1] + (rows.cutoff[part] + rows.step[part] - start)
            for name, values in columns.items():
                is_known = ~np.isnan(values[part])
                found[name].ravel()[at[is_known]] = values[part][is_known]
        return cls(start, found.pop(""), found)

    def joined(self, other: SeriesMoments, ids: list[Any]) -> SeriesMoments:
        """These moments and what became known later, of these series; refused where a target is not what it was."""
        start = min(self.start, other.start)
        end = max(one.start + one.targets.shape[1] for one in (self, other))

        def placed(one: SeriesMoments, values: Array) -> Array:
            whole = np.full((len(ids), end - start), np.nan)
            whole[: len(values), one.start - start :][:, : values.shape[1]] = values
            return whole

        held, given = placed(self, self.targets), placed(other, other.targets)
        _refuse_changed(held, given, ids, np.arange(len(ids)))
        features = {
            name: np.where(
                np.isnan(placed(other, other.features[name])), placed(self, values), placed(other, other.features[name])
            )
            for name, values in self.features.items()
        }
        return SeriesMoments(start, np.where(np.isnan(given), held, given), features)


@dataclass(frozen=True)
class PanelWindows:
    """Errors of a panel; series have windows from the right, the newest last, and NaN where they have fewer."""

    ids: list[Any]
    cutoffs: Array  # (series, windows), NaN where there is no window
    errors: dict[str, Array]  # of each model (series, h, windows)
    levels: dict[str, Array]  # of each model (series, windows): mean absolute forecast of the window
    moments: SeriesMoments

    @property
    def horizon(self) -> int:
        """Steps of the longest window."""
        return int(next(iter(self.errors.values())).shape[1])

    @classmethod
    def of(cls, rows: Rows) -> PanelWindows:
        """The windows of rows of past forecasts with their targets."""
        assert rows.target is not None  # rows of the past have targets
        h = int(rows.step.max())
        low = int(rows.cutoff.min())
        n_moments = int(rows.cutoff.max()) - low + 1
        key = rows.series.astype(np.intp) * n_moments + (rows.cutoff - low)
        begins = np.flatnonzero(np.append(True, key[1:] != key[:-1]))  # rows of a window mostly follow each other
        distinct, place = np.unique(key[begins], return_inverse=True)
        window = np.repeat(place.astype(np.int32), np.diff(np.append(begins, len(key))))
        del key
        series_of, cutoff_of = distinct // n_moments, distinct % n_moments + low
        cutoffs, column = _from_the_right(len(rows.ids), series_of, cutoff_of.astype(np.float64))
        shape = (len(rows.ids), h, cutoffs.shape[1])
        errors = {model: np.full(shape, np.nan) for model in rows.forecasts}
        total = {model: np.zeros((2, len(distinct))) for model in rows.forecasts}
        for part in chunks(len(window)):
            at = (series_of[window[part]] * h + rows.step[part] - 1) * shape[2] + column[window[part]]
            for model, forecast in rows.forecasts.items():
                errors[model].ravel()[at] = rows.target[part] - forecast[part]
                is_known = ~np.isnan(forecast[part])
                known = np.where(is_known, np.abs(forecast[part]), 0.0), is_known
                total[model] += [np.bincount(window[part], each, len(distinct)) for each in known]
        levels = {}
        for model, (sums, counts) in total.items():
            levels[model] = np.full(cutoffs.shape, np.nan)
            means = np.divide(sums, counts, out=np.full(len(distinct), np.nan), where=counts > 0.0)
            levels[model][series_of, column] = means
        return cls(rows.ids, cutoffs, errors, levels, SeriesMoments.of(rows))

    def joined(self, other: PanelWindows) -> PanelWindows:
        """These windows and those known later, of the same models; or a ValueError.

        Series are numbered as here and go on beyond. What is given again may not have changed.
        """
        if other.horizon > self.horizon:
            msg = (
                f"update holds step {other.horizon}; those of fit end at {self.horizon}. Fit anew with longer windows."
            )
            raise ValueError(msg)
        moments = self.moments.joined(other.moments, other.ids)
        parts = [_window_list(each) for each in (self, other)]
        low = min(int(cutoff.min()) for _, _, cutoff in parts)
        n_moments = max(int(cutoff.max()) for _, _, cutoff in parts) - low + 1
        keys = [series * n_moments + cutoff - low for series, _, cutoff in parts]
        distinct = np.unique(np.concatenate(keys))
        series_of, cutoff_of = distinct // n_moments, distinct % n_moments + low
        cutoffs, column = _from_the_right(len(other.ids), series_of, cutoff_of.astype(np.float64))
        errors: dict[str, Array] = {}
        levels: dict[str, Array] = {}
        for model in self.errors:
            errors[model] = np.full((len(other.ids), self.horizon, cutoffs.shape[1]), np.nan)
            levels[model] = np.full(cutoffs.shape, np.nan)
            for each, (series, own_column, _), key in zip((self, other), parts, keys, strict=True):
                to = column[np.searchsorted(distinct, key)]
                h = each.horizon
                for part in chunks(len(series), WINDOWS_AT_A_TIME):
                    rows, new = series[part], to[part]
                    given = each.errors[model][rows, :, own_column[part]]
                    held = errors[model][rows, :h, new]
                    _refuse_changed(held, given, each.ids, rows)
                    errors[model][rows, :h, new] = np.where(np.isnan(given), held, given)
                    n_given, n_held = (np.count_nonzero(~np.isnan(one), axis=1) for one in (given, held))
                    level = each.levels[model][rows, own_column[part]]
                    levels[model][rows, new] = _mean_level(levels[model][rows, new], n_held, level, n_given)
        return PanelWindows(other.ids, cutoffs, errors, levels, moments)


def _mean_level(held: Array, n_held: Index, given: Array, n_given: Index) -> Array:
    """Mean absolute forecasts of windows that come in parts, by the known steps of each; one where the other is NaN."""
    portion = n_given / np.maximum(n_held + n_given, 1)
    both = held + np.where(n_held + n_given == 0, 1.0, portion) * (given - held)
    return np.where(np.isnan(held), given, np.where(np.isnan(given), held, both))


def _refuse_changed(held: Array, given: Array, ids: list[Any], series: Index) -> None:
    """Refuse targets or errors that are known and not what they were."""
    with np.errstate(invalid="ignore"):
        changed = (np.abs(held - given) > 1e-9 * (np.abs(held) + np.abs(given))).any(axis=1)
    if changed.any():
        first = ids[int(series[changed][0])]
        msg = (
            f"targets or forecasts were given before with other values, the first of {first!r}. Leave out what was "
            "given, or fit anew with what is right now."
        )
        raise ValueError(msg)


def _window_list(windows: PanelWindows) -> tuple[Index, Index, Index]:
    """Series, column and cutoff of each window that there is."""
    series, column = np.nonzero(~np.isnan(windows.cutoffs))
    return series, column, windows.cutoffs[series, column].astype(np.intp)


def _from_the_right(n_series: int, series: Index, cutoff: Array) -> tuple[Array, Index]:
    """Cutoffs in the order of series and time as a table (series, windows), and the column of each."""
    n_windows = np.bincount(series, minlength=n_series)
    n_until = np.cumsum(n_windows)
    widest = int(n_windows.max(initial=1))
    column = widest - (n_until[series] - np.arange(len(series)))
    table = np.full((n_series, widest), np.nan)
    table[series, column] = cutoff
    return table, column
