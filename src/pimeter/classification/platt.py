"""Platt's map from scores to probabilities, fitted many times at once on resampled rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import expit, logit

if TYPE_CHECKING:
    from pimeter.protocols import Array, Flags

MIN_SCORE = 1e-7  # scores of 0 and 1 have no logarithm of their odds
MAX_STEPS = 50
SLOPE_PENALTY = 1e-3  # of standardised slopes to 0, in observations
TOLERANCE = 1e-9


class PlattLines(NamedTuple):
    """Lines on the scale of log-odds, one for each resample."""

    slopes: Array  # (B,)
    intercepts: Array  # (B,)


def log_odds(score: Array) -> Array:
    """Scores on the scale on which Platt's map is a line."""
    return np.asarray(logit(np.clip(score, MIN_SCORE, 1.0 - MIN_SCORE)))


def platt_lines(odds: Array, is_positive: Flags, counts: Array, start: tuple[float, float] = (0.0, 0.0)) -> PlattLines:
    """Lines of ``expit(slope odds + intercept)``, one for each row of counts (B, m), which say how often a row counts.

    This is the likeliest map, with a very weak pull of the slope to 0 for classes that scores separate. The targets of
    Platt (1999), a little inside of 0 and 1, would take half a standard error off the mean probability at 200 rows;
    scikit-learn's sigmoid has them, and fits one map at a time.
    """
    target = is_positive.astype(np.float64)
    centre = odds.mean()
    scale = max(float(odds.std()), 1e-12)
    x = (odds - centre) / scale
    slope = np.full(len(counts), start[0] * scale)
    intercept = np.full(len(counts), start[1] + start[0] * centre)

    def loss(a: Array, b: Array) -> Array:
        z = a[:, None] * x + b[:, None]
        return np.asarray((counts * (np.logaddexp(0.0, z) - target * z)).sum(axis=1) + 0.5 * SLOPE_PENALTY * a**2)

    now = loss(slope, intercept)
    for _ in range(MAX_STEPS):
        p = expit(slope[:, None] * x + intercept[:, None])
        error, curve = counts * (p - target), counts * (p * (1.0 - p))
        g_a, g_b = error @ x + SLOPE_PENALTY * slope, error.sum(axis=1)
        h_aa, h_ab, h_bb = curve @ x**2 + SLOPE_PENALTY, curve @ x, curve.sum(axis=1) + 1e-12
        det = np.maximum(h_aa * h_bb - h_ab**2, 1e-300)
        step_a, step_b = (h_bb * g_a - h_ab * g_b) / det, (h_aa * g_b - h_ab * g_a) / det
        size = np.ones(len(counts))
        for _ in range(60):  # halve steps that lead uphill
            after = loss(slope - size * step_a, intercept - size * step_b)
            worse = after > now + 1e-12 * np.abs(now)
            if not worse.any():
                break
            size[worse] /= 2.0
        slope, intercept, now = slope - size * step_a, intercept - size * step_b, after
        if max(np.abs(step_a).max(), np.abs(step_b).max()) < TOLERANCE:
            break
    return PlattLines(slope / scale, intercept - slope / scale * centre)
