"""Scores of windows of forecasts, step by step: their quantiles, and how many independent ones they are as good as."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betaincinv
from scipy.stats import rankdata

from pimeter.bandwidth import safe_factor
from pimeter.conformal.guarantee import scores_needed
from pimeter.coverage import RANGE, counted, percent, warn_of_coverage
from pimeter.dependence import MIN_VALUES, autocorrelation, variance_inflation
from pimeter.forecast.window_arrays import series_blocks
from pimeter.quantiles import quantile

if TYPE_CHECKING:
    from pimeter.conformal.scores import Tails
    from pimeter.protocols import Array, Flags, Index

SMOOTHING_STEPS, SMOOTHING_DEGREE = 7, 2  # of the polynomial through which margins are smoothed
MOST_ERRORS_TO_LOOK_AT = 30_000  # for the effective number at `fit`: it takes ten times as long as margins


def effective_numbers(seen: Array, tails: Tails, quantiles: list[Array], overlaps: Index) -> Array:
    """About how many independent errors those of each series (series, h, n) are, at the step that has the fewest."""
    first = np.flatnonzero(np.diff(overlaps, prepend=0))  # of the steps that overlap equally many windows
    n_steps = np.diff(first, append=len(overlaps))
    fewest = np.full(len(seen), np.inf)
    samples = [tails.scores(seen, direction) for direction in tails.directions]
    ranks = [rankdata(np.where(np.isnan(one), np.inf, one), axis=-1) for one in samples]
    inside = [one <= most[..., None] for one, most in zip(samples, quantiles, strict=True)]
    neurons = list(zip(samples, ranks, inside, strict=True))
    if tails.n_cuts == 2:  # each tail by itself, and both together: errors far out, whether below or above
        neurons.append((samples[0], np.maximum(*ranks), np.logical_and(*inside)))
    for sample, *of_sample in neurons:
        is_known = ~np.isnan(sample)
        n_known = np.count_nonzero(is_known, axis=-1)
        inflation = np.ones(seen.shape[:2])
        for values in of_sample:
            correlations = autocorrelation(np.where(is_known, values, np.nan))
            pooled = np.add.reduceat(correlations, first, axis=1) / n_steps[:, None]
            inflation = np.maximum(inflation, np.repeat(variance_inflation(pooled), n_steps, axis=1))
        each = np.maximum(n_known / inflation, 1.0)
        says_nothing = (n_known < MIN_VALUES) | _are_tied(sample)
        each = np.where(says_nothing, np.minimum(n_known, 1.0), each)
        fewest = np.minimum(fewest, each.min(axis=-1))
    return fewest


def _are_tied(sample: Array) -> Flags:
    """Whether all that is known along the last axis is the same value, such as the errors of a forecast that sticks."""
    highest, lowest = np.fmax.reduce(sample, axis=-1), np.fmin.reduce(sample, axis=-1)
    return np.asarray(highest == lowest)


def coverage_ranges(n_effective: Array, p: float, n_cuts: int) -> Array:
    """5 % and 95 % points of the coverage within quantiles of so many independent errors, (series, 2).

    The quantile at level p of m errors lies between ranks, at the place ``m p + 1/2``: Hazen's rule.
    """
    beyond = n_effective * (1.0 - p) + n_cuts / 2.0
    within = n_effective + 1.0 - beyond
    points = [betaincinv(np.where(n_effective > 0.0, within, np.nan), beyond, point) for point in RANGE]
    return np.stack(points, axis=-1)


def step_quantiles(errors: Array, tails: Tails, p: float) -> list[Array]:
    """Quantiles of the scores of each direction, from errors (series, h, n): (series, h)."""
    level = tails.level(p)
    found = []
    for direction in tails.directions:
        blocks = [known_quantile(tails.scores(errors[part], direction), level) for part in series_blocks(errors)]
        own = np.concatenate(blocks)
        if np.isnan(own).any():  # a side without errors: as far as any error
            own = np.where(np.isnan(own), np.nanmax(np.abs(errors), axis=-1), own)
        found.append(own)
    return found


def known_quantile(sample: Array, level: float) -> Array:
    """Quantile along the last axis of what is known; NaN where nothing is."""
    found = np.asarray(quantile(sample, level, axis=-1))
    for where in np.argwhere(np.isnan(found)):
        row = sample[tuple(where)]
        row = row[~np.isnan(row)]
        if row.size:
            found[tuple(where)] = quantile(row, level)
    return found


def smoothed(margins: Array, tails: Tails) -> Array:
    """Margins (series, h, 2), smoothed along the horizon; those of absolute errors stay positive."""
    h = margins.shape[1]
    window = min(SMOOTHING_STEPS, h - 1 + h % 2)
    if window <= SMOOTHING_DEGREE:
        return margins
    from scipy.signal import savgol_filter

    smooth = margins.copy()
    for side in (0, 1):
        if np.isfinite(margins[..., side]).all():
            factor = safe_factor(float(np.abs(margins[..., side]).max()))
            smooth[..., side] = savgol_filter(factor * margins[..., side], window, SMOOTHING_DEGREE, axis=1) / factor
    return smooth if tails.has_centre else np.maximum(smooth, 0.0)


def warn_of_few(
    seen: Array, tails: Tails, quantiles: list[Array], overlaps: Index, p: float, n_series: int | None
) -> None:
    """Warn if errors (series, h, n) are effectively too few for the level; of many some series drawn at random."""
    if seen.size > MOST_ERRORS_TO_LOOK_AT:
        n_some = min(len(seen), max(1, MOST_ERRORS_TO_LOOK_AT // seen.shape[-1]))
        some = np.random.default_rng(0).choice(len(seen), n_some, replace=False)
        quantiles = [one[some, -1:] for one in quantiles]
        seen, overlaps = seen[some, -1:], overlaps[-1:]
    found = effective_numbers(seen, tails, quantiles, overlaps)
    needed = scores_needed(p, n_cuts=tails.n_cuts)
    n_short = np.count_nonzero(found < needed)
    if n_short:
        whose = "" if n_series is None else f" of {n_short} of {len(found)} series"
        warn_of_coverage(
            f"{counted(seen.shape[-1], 'window')}{whose} {'is' if seen.shape[-1] == 1 else 'are'} as good as about "
            f"{counted(found.min(), 'independent error', 3)} (n_effective_); {percent(p, 6)} takes {needed}. Take "
            "more windows, or a lower confidence_level."
        )
