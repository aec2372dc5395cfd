"""Which past windows of a series count for a forecast: those of the same moment of a season, and newer ones more.

Errors of windows are (series, h, windows), NaN where not known; weights (series, windows).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pimeter.forecast.window_arrays import series_blocks

if TYPE_CHECKING:
    from pimeter.protocols import Array, Index

WEIGHT_OF_NEAR = 0.5  # weight of windows made near the same moment of the season
VALUES_AT_A_TIME = 500_000  # errors whose quantiles are found together: what fits into a cache
LEAST_SCALE_OF_STEP = 0.02  # least scale of a step, in those of its series


@dataclass(frozen=True)
class Weighting:
    """How windows are weighted by how many steps before the forecast they were made."""

    season_length: int | None = None
    n_near: int = 0  # windows on either side of the same moment of the season that count half
    half_life: float = np.inf  # steps after which a window counts half

    def __call__(self, age: Array) -> Array:
        """Weights of windows (series, windows) of these ages, NaN for those that are not there."""
        weights = np.where(np.isnan(age), 0.0, 1.0)
        if self.season_length is not None:
            phase = np.where(np.isnan(age), 0.0, age) % self.season_length
            distance = np.minimum(phase, self.season_length - phase)
            seasonal = weights * np.where(distance == 0.0, 1.0, np.where(distance <= self.n_near, WEIGHT_OF_NEAR, 0.0))
            weights = np.where(seasonal.any(axis=1, keepdims=True), seasonal, weights)  # none of that moment: all count
        if np.isfinite(self.half_life):
            youngest = np.fmin.reduce(age, axis=1, initial=np.inf)[:, None]  # after a long gap all would be nearly 0
            older = np.where(np.isnan(age), 0.0, age - np.where(np.isinf(youngest), 0.0, youngest))
            weights = weights * 0.5 ** (older / self.half_life)
        return weights


class Spread(NamedTuple):
    """What the windows that count say of each series and step."""

    quantiles: Array  # (series, h, levels)
    median: Array  # (series, h)
    scale: Array  # (series, h) mean absolute distance from the median
    n_effective: Array  # (series, h) windows of equal weight that would tell as much


def spread(errors: Array, weights: Array, levels: Array) -> Spread:
    """Weighted quantiles, median and scale of errors (series, h, windows); NaN where a step has none."""
    parts = [_spread(errors[part], weights[part], levels) for part in series_blocks(errors, VALUES_AT_A_TIME)]
    return Spread(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def _spread(errors: Array, weights: Array, levels: Array) -> Spread:
    counts = (weights > 0.0).any(axis=0)  # windows that count for no series of the block are left out
    errors, weights = errors[..., counts], weights[:, counts]
    own = np.where(np.isnan(errors), 0.0, weights[:, None, :])
    total = own.sum(axis=-1)
    squares = (own**2).sum(axis=-1)
    n_effective = np.divide(total**2, squares, out=np.zeros_like(total), where=squares > 0.0)
    hidden = np.where(own > 0.0, errors, np.inf)
    order = np.argsort(hidden, axis=-1)
    values = np.take_along_axis(hidden, order, axis=-1)
    in_order = np.take_along_axis(own, order, axis=-1)
    divisor = np.where(total > 0.0, total, 1.0)[..., None]
    place = (np.cumsum(in_order, axis=-1) - 0.5 * in_order) / divisor
    n_known = np.count_nonzero(own > 0.0, axis=-1)
    found = _interpolated(values, place, n_known, np.append(levels, 0.5))
    median = found[..., -1]
    distance = np.abs(np.where(own > 0.0, errors, 0.0) - np.where(np.isnan(median), 0.0, median)[..., None])
    scale = (own * distance).sum(axis=-1) / divisor[..., 0]
    n_steps = np.count_nonzero(n_known, axis=1, keepdims=True)
    usual = np.where(n_known > 0, scale, 0.0).sum(axis=1, keepdims=True) / np.maximum(n_steps, 1)
    scale = np.where(n_known > 0, np.maximum(scale, LEAST_SCALE_OF_STEP * usual), np.nan)
    return Spread(found[..., :-1], median, scale, n_effective)


def _interpolated(values: Array, place: Array, n_known: Index, levels: Array) -> Array:
    """Quantiles at the levels, between neighbouring values; NaN where none is known."""
    last = np.maximum(n_known - 1, 0)
    found = np.full((*n_known.shape, len(levels)), np.nan)
    if not values.shape[-1]:
        return found
    for i, level in enumerate(levels.tolist()):
        above = np.minimum(np.count_nonzero(place < level, axis=-1), last)
        below = np.maximum(above - 1, 0)
        x0, x1 = (np.take_along_axis(place, each[..., None], axis=-1)[..., 0] for each in (below, above))
        y0, y1 = (np.take_along_axis(values, each[..., None], axis=-1)[..., 0] for each in (below, above))
        part = np.clip(np.divide(level - x0, x1 - x0, out=np.ones_like(x0), where=x1 > x0), 0.0, 1.0)
        with np.errstate(invalid="ignore"):  # nothing known
            found[..., i] = np.where(n_known > 0, y0 + part * (y1 - y0), np.nan)
    return found


def pooled_quantiles(values: Array, weights: Array, levels: Array) -> Array:
    """Quantiles of all values that are known, with these weights; NaN where none is."""
    is_known = ~np.isnan(values) & (weights > 0.0)
    values, weights = values[is_known], weights[is_known]
    if not values.size:
        return np.full(len(levels), np.nan)
    order = np.argsort(values)
    values, weights = values[order], weights[order]
    place = (np.cumsum(weights) - 0.5 * weights) / weights.sum()
    return np.interp(levels, place, values)
