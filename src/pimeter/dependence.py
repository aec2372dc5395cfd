"""Dependence of values that follow each other in time: how much more their mean varies than of independent ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import fft

if TYPE_CHECKING:
    from pimeter.protocols import Array

MIN_VALUES = 4  # values in a row, below which nothing is known of their dependence, and all together count as one
MAX_LAG_FRACTION, MAX_LAG_ROOTS = 0.25, 8.0  # of the lags, and roots of their number: span of Bartlett's window
MIN_LEFT = 0.2  # of the true sum, which is what is left of the sample's at worst


def autocorrelation(values: Array) -> Array:
    """Autocorrelations (..., n) at lags 0, 1, ... of values (..., n) in the order of time; NaN for one not known.

    Pairs of which one value is not known count as 0 and the sum over a lag is divided by that over lag 0, so that they
    add up to the variance of the mean of the known values. Values that are all equal have what independent ones have on
    average, around the sample's own mean: -(n - k) / (n (n - 1)) at lag k. (statsmodels' acf is not a dependency.)
    """
    is_known = ~np.isnan(values)
    n_known = np.maximum(np.count_nonzero(is_known, axis=-1, keepdims=True), 1)
    mean = np.where(is_known, values, 0.0).sum(axis=-1, keepdims=True) / n_known
    centred = np.where(is_known, values - mean, 0.0)
    n = values.shape[-1]
    size = fft.next_fast_len(2 * n, real=True)
    spectrum = np.abs(fft.rfft(centred, size, axis=-1)) ** 2
    sums = fft.irfft(spectrum, size, axis=-1)[..., :n]
    variance = (centred**2).sum(axis=-1, keepdims=True)
    independent = -(1.0 - np.arange(n) / n) / max(n - 1, 1)
    found: Array = np.divide(sums, variance, out=np.broadcast_to(independent, sums.shape).copy(), where=variance > 0.0)
    found[..., 0] = 1.0
    return found


def variance_inflation(correlations: Array) -> Array:
    """Times by which dependence multiplies the variance of a mean, from 1 to n: ``1 + 2 (rho_1 + rho_2 + ...)``.

    The larger of two estimates. The initial monotone sequence (Geyer 1992) adds up pairs of lags as long as they are
    positive and do not grow, which suits correlations that fade. Bartlett's window (Newey and West 1987) over up to a
    quarter of the lags (Kiefer and Vogelsang 2005) also sees those that come back, such as those of a week.
    Correlations around a sample's own mean are too small by a part of their sum, which is put right. It is rather too
    large than too small: fewer than four values, which say nothing of their dependence, count as if they were all one.
    """
    n = correlations.shape[-1]
    if n < MIN_VALUES:
        return np.full(correlations.shape[:-1], float(n))
    pairs = correlations[..., : n - n % 2].reshape(*correlations.shape[:-1], -1, 2).sum(axis=-1)
    is_summed = np.logical_and.accumulate(pairs > 0.0, axis=-1)
    fading = 2.0 * np.where(is_summed, np.minimum.accumulate(pairs, axis=-1), 0.0).sum(axis=-1) - 1.0
    n_summed = 4.0 * np.count_nonzero(is_summed, axis=-1) - 1.0  # lags to both sides
    window = int(min(MAX_LAG_FRACTION * n, MAX_LAG_ROOTS * n**0.5)) + 1
    weights = 1.0 - np.arange(window) / window
    returning = 2.0 * correlations[..., :window] @ weights - 1.0
    estimates = fading / np.maximum(1.0 - n_summed / n, MIN_LEFT), returning / (1.0 - window / n)
    largest: Array = np.clip(np.maximum(*estimates), 1.0, n)
    return largest
