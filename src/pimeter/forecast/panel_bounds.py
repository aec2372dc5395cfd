"""Bounds of the series of a panel: between what a series' own windows say and what all series say together.

A series' own quantiles and the panel's, in units of the series' own scale around its own median, are mixed by how many
windows the series has; how windows count, how they are mixed and how much wider bounds have to be is learned on newer
windows from older ones. A series that is new or short gets relative errors of the panel instead: each series counts
once, whatever its number of windows, so that a new one that is exchangeable with them is covered (hierarchical
conformal prediction).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pimeter.conformal.guarantee import scores_needed
from pimeter.coverage import ROUNDING, percent, tail_levels, warn_of_coverage
from pimeter.forecast.window_weights import Spread, Weighting, pooled_quantiles, spread
from pimeter.interval_arrays import interval_scores

if TYPE_CHECKING:
    from pimeter.protocols import Array, Index

MIN_OWN_WINDOWS = 5  # of which a median and a scale are taken
PSEUDO_WINDOWS = (0.0, 10.0, 30.0, 100.0, 300.0)  # of the panel, added to those of a series
HALF_LIVES = (np.inf, 0.5, 0.25, 0.125)  # in spans of time that windows are of
NEAR_WINDOWS = (0, 1, 2, 3)  # on either side of the same moment of the season
MAX_SERIES_TO_LEARN, MAX_STEPS_TO_LEARN, MAX_TRIALS = 200, 8, 8  # of which the rule is learned
MAX_POOLED_VALUES, MIN_SERIES_TO_POOL = 1_000_000, 100
MIN_VALUES_FOR_FACTOR = 200
RANGE_OF_FACTORS = (0.5, 3.0)
FRACTION_OF_FACTOR = 0.5  # that is taken of what newest windows ask for: they are few, and depend on each other


@dataclass(frozen=True)
class Rule:
    """How windows count, how many of the panel are added to those of a series, and how much wider bounds are."""

    weighting: Weighting
    pseudo_windows: float
    factors: tuple[float, ...]  # of each level


class SeriesBounds(NamedTuple):
    """Bounds of errors, (series, h, levels), NaN where nothing is known; and how many windows tell of each step."""

    lower: Array
    upper: Array
    median: Array
    n_effective: Array


def series_bounds(errors: Array, age: Array, levels: Array, rule: Rule, of_panel: Array | None = None) -> SeriesBounds:
    """Bounds of errors of series (series, h, windows) whose windows were made so many steps ago."""
    weights = rule.weighting(age)
    found = spread(errors, weights, tail_levels(levels))
    return mixed(found, pool(errors, weights, found, levels) if of_panel is None else of_panel, rule)


def panel_pool(errors: Array, cutoffs: Array, levels: Array, rule: Rule) -> Array:
    """Quantiles of the errors of series drawn at random, around their medians and in their scales."""
    n_some = max(MIN_SERIES_TO_POOL, MAX_POOLED_VALUES // max(1, errors.shape[1] * errors.shape[2]))
    some = np.arange(len(errors))
    if len(some) > n_some:
        some = np.sort(np.random.default_rng(0).choice(len(errors), n_some, replace=False))
    newest = np.fmax.reduce(cutoffs[some], axis=1, initial=-np.inf)[:, None]
    weights = rule.weighting(newest - cutoffs[some])
    return pool(errors[some], weights, spread(errors[some], weights, tail_levels(levels)), levels)


def pool(errors: Array, weights: Array, found: Spread, levels: Array) -> Array:
    """Quantiles of the errors of all series around their medians, in their scales; each series counts the same."""
    total = weights.sum(axis=1, keepdims=True)
    portions = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0.0)
    scale = np.where(found.scale > 0.0, found.scale, np.nan)  # series without any error tell nothing
    standardised = (errors - found.median[..., None]) / scale[..., None]
    return pooled_quantiles(standardised, np.broadcast_to(portions[:, None], standardised.shape), tail_levels(levels))


def mixed(found: Spread, of_panel: Array, rule: Rule) -> SeriesBounds:
    """Own quantiles and those of the panel, by how many windows tell of a step."""
    n = found.n_effective
    if np.isinf(rule.pseudo_windows):
        own = np.zeros_like(n)
    else:
        own = np.divide(n, n + rule.pseudo_windows, out=np.zeros_like(n), where=n > 0.0)
    median = found.median[..., None]
    both = own[..., None] * found.quantiles + (1.0 - own[..., None]) * (median + found.scale[..., None] * of_panel)
    bounds = median + np.tile(rule.factors, 2) * (both - median)
    half = bounds.shape[-1] // 2
    # Factors are learned level by level: the interval of a higher level holds that of a lower one all the same.
    lower, upper = (
        np.minimum.accumulate(bounds[..., :half], axis=-1),
        np.maximum.accumulate(bounds[..., half:], axis=-1),
    )
    return SeriesBounds(lower, upper, found.median, n)


class Trial(NamedTuple):
    """Errors of one window of each series, and those that were known when it was made."""

    errors: Array  # (series, h, windows)
    age: Array  # (series, windows)
    then: Array  # (series, h)
    unit: Array  # (series,)


def learned_rule(
    errors: Array,
    cutoffs: Array,
    levels: Array,
    season_length: int | None,
    pseudo_windows: float | None,
    until_known: Index | None = None,
) -> Rule:
    """The rule with the best interval score on newer windows, of those before them; then how much wider to make it.

    Errors (series, h, windows) are known so many steps after their window was made; 1, 2, ... h if not given.
    """
    trials = _trials(errors, cutoffs, np.arange(1, errors.shape[1] + 1) if until_known is None else until_known)
    plain = Rule(Weighting(), 30.0 if pseudo_windows is None else pseudo_windows, (1.0,) * len(levels))
    if not trials:
        return plain
    mixes = PSEUDO_WINDOWS if pseudo_windows is None else (pseudo_windows,)
    best, least = plain, np.inf
    highest = levels[-1:]
    for weighting in _weightings(cutoffs, season_length):
        spreads = [spread(trial.errors, weighting(trial.age), tail_levels(highest)) for trial in trials]
        pools = [
            pool(trial.errors, weighting(trial.age), found, highest)
            for trial, found in zip(trials, spreads, strict=True)
        ]
        for n_pseudo in mixes:
            rule = Rule(weighting, n_pseudo, (1.0,))
            losses = [
                _loss(trial, mixed(found, of_panel, rule), float(highest[0]))
                for trial, found, of_panel in zip(trials, spreads, pools, strict=True)
            ]
            loss = float(np.nanmean(np.concatenate(losses)))
            if loss < least:
                best, least = replace(rule, factors=plain.factors), loss
    return replace(best, factors=_factors(trials, best, levels))


def _weightings(cutoffs: Array, season_length: int | None) -> list[Weighting]:
    """Weights of windows that are tried."""
    span = float(np.nanmax(np.nanmax(cutoffs, axis=1) - np.nanmin(cutoffs, axis=1)))
    near = [(None, 0)] if season_length is None else [(None, 0), *((season_length, n) for n in NEAR_WINDOWS)]
    return [Weighting(season, n, part * span) for season, n in near for part in HALF_LIVES if part * span > 0.0]


def _trials(errors: Array, cutoffs: Array, until_known: Index) -> list[Trial]:
    """Some of the newest windows, for some steps of some series that have enough windows before them."""
    n_windows = np.count_nonzero(~np.isnan(cutoffs), axis=1)
    usual = float(np.median(n_windows))
    enough = np.flatnonzero(n_windows >= max(MIN_OWN_WINDOWS + 2, 0.5 * usual))
    if not enough.size:
        return []
    rng = np.random.default_rng(0)
    some = np.sort(rng.choice(enough, min(MAX_SERIES_TO_LEARN, len(enough)), replace=False))
    h = errors.shape[1]
    steps = np.unique(np.linspace(0, h - 1, min(MAX_STEPS_TO_LEARN, h)).astype(int))
    own, made = errors[np.ix_(some, steps)], cutoffs[some]
    n_known = np.count_nonzero(~np.isnan(own), axis=(1, 2))
    unit = np.nansum(np.abs(own), axis=(1, 2)) / np.maximum(n_known, 1)  # 0 for series without a known error
    gap = max(1, int(usual) // (4 * MAX_TRIALS))
    trials = []
    for back in range(0, MAX_TRIALS * gap, gap):
        column = errors.shape[2] - 1 - back
        if column < MIN_OWN_WINDOWS:
            break
        age = made[:, column : column + 1] - made
        age = np.where(age > 0.0, age, np.nan)
        is_known = age[:, None, :] >= until_known[steps][:, None]
        known = np.where(is_known, own, np.nan)
        is_tried = (np.count_nonzero(~np.isnan(known).all(axis=1), axis=1) >= MIN_OWN_WINDOWS) & (unit > 0.0)
        then = np.where(is_tried[:, None], own[..., column], np.nan)
        if is_tried.any() and not np.isnan(then).all():
            trials.append(Trial(known[is_tried], age[is_tried], then[is_tried], unit[is_tried]))
    return trials


def _loss(trial: Trial, bounds: SeriesBounds, level: float) -> Array:
    """Interval scores in units of the series."""
    scores = interval_scores(trial.then, bounds.lower[..., -1], bounds.upper[..., -1], level)
    return np.asarray((scores / trial.unit[:, None]).ravel())


def _factors(trials: list[Trial], rule: Rule, levels: Array) -> tuple[float, ...]:
    """How much wider bounds have to be to hold as often as asked, around their medians."""
    found = [series_bounds(trial.errors, trial.age, levels, rule) for trial in trials]
    factors = []
    for i, level in enumerate(levels.tolist()):
        ratios = []
        for trial, bounds in zip(trials, found, strict=True):
            off = trial.then - bounds.median
            side = np.where(off < 0.0, bounds.lower[..., i] - bounds.median, bounds.upper[..., i] - bounds.median)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratios.append(np.where(off == 0.0, 0.0, off / side).ravel())
        every = np.concatenate(ratios)
        every = every[~np.isnan(every)]
        factor = float(np.quantile(np.where(every < 0.0, np.inf, every), level, method="higher")) if every.size else 1.0
        factor = float(np.clip(factor, *RANGE_OF_FACTORS)) if every.size >= MIN_VALUES_FOR_FACTOR else 1.0
        factors.append(1.0 + FRACTION_OF_FACTOR * (factor - 1.0))
    return tuple(factors)


class NewSeries(NamedTuple):
    """Bounds for a series without windows of its own, in units of the mean absolute forecast of its window."""

    lower: Array  # (h, levels)
    upper: Array
    n_series: Index  # (h,) that they rest on


def new_series_bounds(errors: Array, forecast_levels: Array, levels: Array) -> NewSeries:
    """Quantiles of relative errors of the panel, in which each series counts once, one more being infinite.

    They are those of `ScoreQuantile` with series as groups, here from one order for all levels.
    """
    unit = relative_unit(forecast_levels, forecast_levels)
    if len(errors) > MAX_SERIES_TO_LEARN * 5:
        some = np.sort(np.random.default_rng(0).choice(len(errors), MAX_SERIES_TO_LEARN * 5, replace=False))
        errors, unit = errors[some], unit[some]
    h = errors.shape[1]
    bounds = np.full((2, h, len(levels)), np.nan)
    n_series = np.zeros(h, np.intp)
    for j in range(h):
        relative = errors[:, j] / unit
        is_known = ~np.isnan(relative)
        n_own = is_known.sum(axis=1)
        k = n_series[j] = int((n_own > 0).sum())
        if not k:
            continue
        counts = (1.0 / np.maximum(n_own, 1))[:, None] * is_known
        for side, sign in enumerate((-1.0, 1.0)):
            values, own = (sign * relative)[is_known], counts[is_known]
            order = np.argsort(values)
            total = np.cumsum(own[order])
            places = np.searchsorted(total, (k + 1.0) * (1.0 + levels) / 2.0 - ROUNDING)
            bounds[side, j] = sign * values[order][np.minimum(places, len(values) - 1)]
    return NewSeries(bounds[0], bounds[1], n_series)


def relative_unit(levels: Array, panel: Array) -> Array:
    """Mean absolute forecasts, none of them nearly 0 compared with those of the panel."""
    usual = float(np.nanmedian(panel)) if not np.isnan(panel).all() else 0.0
    return np.maximum(levels, 1e-3 * usual) if usual > 0.0 else np.where(np.isnan(levels), np.nan, 1.0)


def warn_of_pooled(n_pooled: int, n: int, new: list[NewSeries], level: float, *, only_if_few: bool = False) -> None:
    """Say that series get the panel's answer, and whether it is of too few series for the level."""
    fewest, needed = min(int(one.n_series.min()) for one in new), scores_needed(level, n_cuts=2)
    are_few = fewest < needed
    if n_pooled and (are_few or not only_if_few):
        have, they = ("is new or has", "it gets") if n_pooled == 1 else ("are new or have", "they get")
        few = f" These are too few: {percent(level)} takes {needed}." if are_few else ""
        warn_of_coverage(
            f"{n_pooled:,} of {n:,} series {have} fewer than {MIN_OWN_WINDOWS} windows: {they} the panel's intervals, "
            f"from relative errors of {fewest:,} series.{few}"
        )
