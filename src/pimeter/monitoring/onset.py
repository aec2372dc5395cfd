"""When did a rate change? The posterior distribution of the row, from recent rows and a count of those before."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pimeter.protocols import Array, Flags

CONFIDENCE_OF_ONSET = 0.9
JEFFREYS = 0.5  # pseudo-counts of events and of other rows


class Since(NamedTuple):
    """When a change most likely began, as the number of rows that came before it.

    Attributes
    ----------
    row : int
        The first row after the change, counted from 0 as they came.
    lower, upper : int
        Range of that row, at a level of 90 %: a posterior distribution in which each row is equally likely before.
        It is found at the time of the alarm, and the true row is rather later than earlier.
    """

    row: int
    lower: int
    upper: int

    def __str__(self) -> str:
        return f"row {self.row:,} (between {self.lower:,} and {self.upper:,})"


def onset(events: Flags, numbers: NDArray[np.int64], before: tuple[int, int]) -> Since:
    """When the rate of an event rose.

    Parameters
    ----------
    events : bool array of shape (n,)
        Whether it happened, in recent rows.
    numbers : integer array of shape (n,)
        The number of each of these rows.
    before : tuple of int
        How many rows came before these, and how many events among them.
    """
    n_before, k_before = before
    i = np.arange(len(events))  # the change comes right before row i
    k0 = k_before + np.concatenate([[0], np.cumsum(events)])[:-1]
    n0 = n_before + i
    n1, k1 = n_before + len(events) - n0, k_before + int(events.sum()) - k0
    log_posterior = _log_beta(k0, n0) + _log_beta(k1, n1)
    rises = k1 * np.maximum(n0, 1) > k0 * n1
    log_posterior = np.where(rises, log_posterior, -np.inf) if rises.any() else log_posterior
    posterior = np.exp(log_posterior - log_posterior.max())
    cumulative = np.cumsum(posterior) / posterior.sum()
    tail = (1.0 - CONFIDENCE_OF_ONSET) / 2.0
    low, middle, high = (min(int(np.searchsorted(cumulative, at)), len(i) - 1) for at in (tail, 0.5, 1.0 - tail))
    return Since(int(numbers[middle]), int(numbers[low]), int(numbers[high]))


def _log_beta(events: NDArray[np.int64], rows: NDArray[np.int64]) -> Array:
    """Log of the likelihood of these counts, averaged over all rates."""
    found: Array = _log_gamma(events, JEFFREYS) + _log_gamma(rows - events, JEFFREYS)
    found -= _log_gamma(rows, 2.0 * JEFFREYS)
    return found


def _log_gamma(counts: NDArray[np.int64], shift: float) -> Array:
    """Log of the gamma function of counts plus a shift; SciPy's takes long to load."""
    return np.array([math.lgamma(count + shift) for count in counts.tolist()], np.float64)
