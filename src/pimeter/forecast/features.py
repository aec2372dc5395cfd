"""The caller's features of windows as numbers: dates become times of the day, week and year."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pimeter.arrays import as_frame, columns_of, numbers_of, real_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pimeter.protocols import Array, FeatureTable

PERIODS = {"day": 86_400.0, "week": 7 * 86_400.0, "year": 365.2425 * 86_400.0}  # in seconds
MOST_DEVIATIONS = 5.0  # standard deviations that a feature counts at most


class Standardised(NamedTuple):
    """Features are taken in standard deviations from their mean in `fit`; what is missing as the mean."""

    location: Array
    deviation: Array

    @classmethod
    def of(cls, features: Array) -> Standardised:
        """Location and deviation of the features of `fit` (n, k, q)."""
        known = features.reshape(features.shape[0] * features.shape[1], features.shape[2])
        n = np.maximum(np.count_nonzero(~np.isnan(known), axis=0), 1)
        location = np.nansum(known, axis=0) / n
        deviation = np.sqrt(np.nansum((known - location) ** 2, axis=0) / n)
        return cls(location, np.where(deviation > 0.0, deviation, 1.0))

    def units(self, features: Array) -> Array:
        """Features of these windows in standard deviations."""
        units = (features - self.location) / self.deviation
        return np.where(np.isnan(units), 0.0, np.clip(units, -MOST_DEVIATIONS, MOST_DEVIATIONS))


def feature_array(given: FeatureTable | None, n: int, n_series: int, h: int) -> Array:
    """Features (n, n_series * h, q) of n windows; q is 0 where none are given."""
    k = n_series * h
    if given is None:
        return np.zeros((n, k, 0))
    if as_frame(given) is not None:
        parts = [part for name, column in columns_of(given).items() for part in _numbers(str(name), column)]
        table = np.stack(parts, axis=-1) if parts else np.zeros((n, 0))
    else:
        table = real_array("features", np.asarray(given)).astype(np.float64)
    fits = table.ndim == 2 or (table.ndim == 3 and table.shape[1] == h)
    if not fits or len(table) != n:
        msg = f"features must have shape ({n}, q) or ({n}, {h}, q), a row for each window; got {table.shape}."
        raise ValueError(msg)
    if np.isinf(table).any():
        msg = "features hold infinities; write NaN for what is not known."
        raise ValueError(msg)
    of_steps = np.broadcast_to(table[:, None], (n, h, table.shape[-1])) if table.ndim == 2 else table
    return np.tile(of_steps, (1, n_series, 1))


def _numbers(name: str, column: NDArray[np.generic]) -> list[Array]:
    """A column as numbers: one of numbers, of dates two for each period."""
    if column.dtype.kind == "M":
        seconds = column.astype("datetime64[us]").astype(np.int64) / 1e6
        phases = [2.0 * np.pi * seconds / period for period in PERIODS.values()]
        return [np.where(np.isnat(column), np.nan, wave(phase)) for phase in phases for wave in (np.sin, np.cos)]
    values = numbers_of(column)
    if values is None:
        msg = f"features has a column {name!r} that holds neither numbers nor dates. Encode it first, or leave it out."
        raise ValueError(msg)
    return [values]
