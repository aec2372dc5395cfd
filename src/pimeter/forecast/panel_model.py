"""What a panel knows of one model: errors of its windows, how they count, and quantiles of errors to come.

A sum over the horizon is one more step, whose errors are sums along windows that happened.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pimeter.forecast.panel_bounds import (
    MIN_OWN_WINDOWS,
    NewSeries,
    Rule,
    learned_rule,
    new_series_bounds,
    panel_pool,
    relative_unit,
    series_bounds,
)

if TYPE_CHECKING:
    from pimeter.forecast.panel_context import Ahead, History, PanelContext
    from pimeter.forecast.panel_windows import PanelWindows
    from pimeter.protocols import Array, Flags, Index

WINDOWS_AT_A_TIME = 200_000


class Known(NamedTuple):
    """What the context learned, and what it looks at."""

    context: PanelContext
    history: History


class ExpectedErrors(NamedTuple):
    """What is expected of errors of windows to come, (n, h) each: they lie around a centre, in a scale."""

    centre: Array
    scale: Array
    level: Array  # (n,) mean absolute forecast of each window

    def summed(self, weights: Array) -> ExpectedErrors:
        """What is expected of errors of sums of the steps."""
        return ExpectedErrors((self.centre @ weights)[:, None], (self.scale @ np.abs(weights))[:, None], self.level)


@dataclass(frozen=True)
class ModelErrors:
    """Errors (series, h, windows) of one model, as they are and as the context standardises them."""

    raw: Array
    errors: Array  # the same array without a context
    scales: Array | None  # of windows (series, h, windows), None for 1
    cutoffs: Array
    forecast_levels: Array  # (series, windows) mean absolute forecast
    until_known: Index  # (h,) steps after which errors are known

    @classmethod
    def of(cls, windows: PanelWindows, model: str, known: Known | None) -> ModelErrors:
        """The errors of all windows at hand, standardised if there is a context."""
        raw = windows.errors[model]
        errors, scales = (raw, None) if known is None else _standardised(windows, raw, known)
        steps = np.arange(1, windows.horizon + 1)
        return cls(raw, errors, scales, windows.cutoffs, windows.levels[model], steps)

    @cached_property
    def n_windows(self) -> Index:
        """Windows of each series with a known error."""
        return np.asarray(np.count_nonzero(~np.isnan(self.errors).all(axis=1), axis=1), np.intp)

    def rule(self, levels: Array, season_length: int | None, pseudo_windows: float | None) -> Rule:
        """How windows count and how series and panel are mixed, learned on the newer windows."""
        return learned_rule(self.errors, self.cutoffs, levels, season_length, pseudo_windows, self.until_known)

    def new(self, levels: Array) -> NewSeries:
        """Relative bounds of a series without windows of its own."""
        return new_series_bounds(self.raw, self.forecast_levels, levels)

    def pool(self, levels: Array, rule: Rule) -> Array:
        """Quantiles of the errors of all series, each in its own scale."""
        return panel_pool(self.errors, self.cutoffs, levels, rule)

    def summed(self, weights: Array) -> ModelErrors:
        """Sums of errors along windows, of which all steps that count are known, as those of a single step."""
        counts = weights != 0.0

        def along(errors: Array) -> Array:
            return np.asarray(np.tensordot(weights[counts], errors[:, counts], axes=(0, 1)))[:, None, :]

        scales = np.abs(weights).sum() if self.scales is None else np.einsum("j,sjw->sw", np.abs(weights), self.scales)
        scale = np.broadcast_to(scales, self.cutoffs.shape)[:, None, :]
        inner = self.raw if self.scales is None else self.errors * self.scales
        last = self.until_known[counts][-1:]
        return ModelErrors(along(self.raw), along(inner) / scale, None, self.cutoffs, self.forecast_levels, last)

    def has_own(self, series: Index) -> Flags:
        """Whether series, which may be new, have enough windows of their own."""
        is_known = series < len(self.raw)
        return is_known & (self.n_windows[np.where(is_known, series, 0)] >= MIN_OWN_WINDOWS)

    def bounds(
        self, ahead: Ahead, expected: ExpectedErrors, rule: Rule, pool: Array, new: NewSeries, levels: Array
    ) -> tuple[Array, Array]:
        """Lower and upper bounds (n, h, levels) of the errors of windows to come."""
        has_own = self.has_own(ahead.series)
        lower = np.full((len(ahead.series), self.raw.shape[1], len(levels)), np.nan)
        upper = lower.copy()
        if has_own.any():
            own = ahead.series[has_own]
            age = ahead.cutoff[has_own, None] - self.cutoffs[own]
            errors = self.errors if _is_all(own, len(self.errors)) else self.errors[own]
            found = series_bounds(errors, age, levels, rule, pool)
            centre, scale = expected.centre[has_own][..., None], expected.scale[has_own][..., None]
            lower[has_own], upper[has_own] = centre + scale * found.lower, centre + scale * found.upper
        unit = relative_unit(expected.level, self.forecast_levels)
        for bound, relative in ((lower, new.lower), (upper, new.upper)):
            pooled = unit[:, None, None] * relative
            bound[:] = np.where(np.isnan(bound), pooled, bound)
        return lower, upper


def expected_errors(ahead: Ahead, known: Known | None) -> ExpectedErrors:
    """What is expected of errors of windows to come; those of new series lie around 0."""
    n_known = np.count_nonzero(~np.isnan(ahead.forecasts), axis=1)
    level = np.nansum(np.abs(ahead.forecasts), axis=1) / np.maximum(n_known, 1)
    centre, scale = np.zeros_like(ahead.forecasts), np.ones_like(ahead.forecasts)
    if known is not None:
        old = ahead.series < len(known.history.unit)
        found = known.context.centre_and_scale(known.history, ahead.chosen(old))
        centre[old], scale[old] = found.centre, found.scale
    return ExpectedErrors(centre, scale, level)


def _standardised(windows: PanelWindows, raw: Array, known: Known) -> tuple[Array, Array]:
    """Errors around their centres in their scales, and these; NaN where no error was known when a window was made."""
    errors, scales = np.full_like(raw, np.nan), np.full_like(raw, np.nan)
    series, column = np.nonzero(~np.isnan(windows.cutoffs))
    for i in range(0, len(series), WINDOWS_AT_A_TIME):
        rows, columns = series[i : i + WINDOWS_AT_A_TIME], column[i : i + WINDOWS_AT_A_TIME]
        expected = known.context.centre_and_scale(known.history, known.history.past(rows, columns))
        errors[rows, :, columns] = (raw[rows, :, columns] - expected.centre) / expected.scale
        scales[rows, :, columns] = expected.scale
    return errors, scales


def _is_all(own: Index, n: int) -> bool:
    """Whether numbers are those of all n series in their order: then nothing needs to be copied."""
    return len(own) == n and bool((own == np.arange(n)).all())
