"""Sample paths of the series of a panel.

Paths to come are past windows, of the series and of the panel, whose values at each step are replaced by quantiles of
that step of the same rank: they have the margins of the intervals and the dependence of the past (rank reordering, the
Schaake shuffle).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pimeter.forecast.panel_bounds import MIN_OWN_WINDOWS
from pimeter.forecast.paths import LEAST_PATHS, margins_kept

if TYPE_CHECKING:
    from pimeter.forecast.panel_bounds import Rule
    from pimeter.forecast.panel_context import Ahead
    from pimeter.forecast.panel_model import ExpectedErrors, ModelErrors
    from pimeter.protocols import Array, Index

FINE_LEVELS = np.concatenate([np.arange(0.04, 0.96, 0.04), [0.96, 0.97, 0.98, 0.99, 0.995]])
MAX_PANEL_PATHS = 2000  # windows of all series that stand for the dependence between steps


class Paths:
    """Sample paths of errors of windows to come."""

    def __init__(self, model: ModelErrors, rule: Rule, levels: Array, rng: np.random.RandomState) -> None:
        self._model, self._rng = model, rng
        self._levels = np.unique(np.concatenate([FINE_LEVELS, levels]))
        self._exact = np.concatenate([(1.0 - levels[::-1]) / 2.0, (1.0 + levels) / 2.0])
        factors = np.interp(self._levels, levels, rule.factors)
        self._rule = replace(rule, factors=tuple(factors.tolist()))
        self._pool = model.pool(self._levels, self._rule)
        self._new = model.new(self._levels)
        self._of_panel = self._panel_paths()

    def _panel_paths(self) -> Array:
        """Whole windows (n, h) of series drawn at random, each step around its median in the scale of its series."""
        model, rng = self._model, self._rng
        whole = np.asarray(~np.isnan(model.errors).any(axis=1))  # (series, windows)
        own = np.flatnonzero(whole.sum(axis=1) >= MIN_OWN_WINDOWS)
        if not own.size:
            return np.zeros((0, model.errors.shape[1]))
        found = []
        for i in rng.choice(own, min(MAX_PANEL_PATHS, 5 * len(own))):
            windows = model.errors[i][:, whole[i]]
            newest = model.cutoffs[i][whole[i]].max()
            weights = self._rule.weighting((newest - model.cutoffs[i][whole[i]])[None])[0]
            chosen = rng.choice(len(weights), p=weights / weights.sum())
            found.append(_ranked(windows, weights)[chosen])
        return np.array(found)

    def __call__(self, ahead: Ahead, expected: ExpectedErrors, n_paths: int) -> Array:
        """Errors (n, n_paths, h); few paths are some of more, so that a single one is not always the median."""
        if n_paths < LEAST_PATHS:
            return self(ahead, expected, LEAST_PATHS)[:, self._rng.choice(LEAST_PATHS, n_paths, replace=False)]
        lower, upper = self._model.bounds(ahead, expected, self._rule, self._pool, self._new, self._levels)
        at = np.concatenate([(1.0 - self._levels[::-1]) / 2.0, (1.0 + self._levels) / 2.0])
        quantiles = np.concatenate([lower[..., ::-1], upper], axis=-1)  # (n, h, 2 levels)
        has_own = self._model.has_own(ahead.series)
        found = np.empty((len(ahead.series), n_paths, ahead.forecasts.shape[1]))
        for i, (series, cutoff) in enumerate(zip(ahead.series.tolist(), ahead.cutoff.tolist(), strict=True)):
            ranks = self._template(series if has_own[i] else None, cutoff, n_paths)
            for j, own in enumerate(quantiles[i]):
                found[i, :, j] = margins_kept(own, at, self._exact, n_paths)[ranks[:, j]]
        return found

    def _template(self, series: int | None, cutoff: int, n_paths: int) -> Index:
        """Ranks (n_paths, h) from 0 at each step of windows drawn from those of the series and of the panel."""
        model = self._model
        own, weights = np.zeros((0, model.errors.shape[1])), np.zeros(0)
        if series is not None:
            whole = ~np.isnan(model.errors[series]).any(axis=0)
            weights = self._rule.weighting((cutoff - model.cutoffs[series][whole])[None])[0]
            own = _ranked(model.errors[series][:, whole], weights)
        n_own = n_paths
        total = weights.sum()
        n_effective = total**2 / (weights**2).sum() if total > 0.0 else 0.0
        if not n_effective:  # a series without whole windows
            n_own = 0
        elif len(self._of_panel):
            n_own = round(n_paths * n_effective / (n_effective + self._rule.pseudo_windows))
        if not n_own + len(self._of_panel):
            msg = "sample paths need windows of which all steps are known, five of them of one series."
            raise ValueError(msg)
        parts = []
        if n_own:
            parts.append(own[_drawn(weights / total, n_own, self._rng)])
        if n_own < n_paths:
            n = len(self._of_panel)
            parts.append(self._of_panel[_drawn(np.full(n, 1.0 / n), n_paths - n_own, self._rng)])
        drawn = self._rng.permutation(np.concatenate(parts))
        tied = drawn + 1e-9 * self._rng.uniform(size=drawn.shape)
        return np.argsort(np.argsort(tied, axis=0), axis=0)


def _ranked(windows: Array, weights: Array) -> Array:
    """Windows (h, n) as ranks of each step between 0 and 1, (n, h), by their weights."""
    order = np.argsort(windows, axis=1)
    in_order = weights[order]
    place = (np.cumsum(in_order, axis=1) - 0.5 * in_order) / max(float(weights.sum()), 1e-300)
    found = np.empty_like(place)
    np.put_along_axis(found, order, place, axis=1)
    return found.T


def _drawn(portions: Array, n: int, rng: np.random.RandomState) -> Index:
    """Numbers of n draws, each as often as its portion says but for one (systematic sampling)."""
    at = (np.arange(n) + rng.uniform()) / n
    return np.minimum(np.searchsorted(np.cumsum(portions), at), len(portions) - 1)
