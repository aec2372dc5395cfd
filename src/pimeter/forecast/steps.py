"""Scores of windows of forecasts, step by step: their quantiles, and how many independent ones they are as good as."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betaincinv
from scipy.stats import rankdata

from pimeter.arrays import real_array
from pimeter.bandwidth import safe_factor
from pimeter.boxes import Box
from pimeter.conformal.guarantee import scores_needed
from pimeter.coverage import RANGE, ROUNDING, counted, percent, warn_of_coverage
from pimeter.dependence import MIN_VALUES, autocorrelation, variance_inflation
from pimeter.quantiles import quantile

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from pimeter.conformal.scores import Tails

    Array = NDArray[np.float64]

WINDOW, DEGREE = 7, 2  # steps and degree of the polynomial through which margins are smoothed
LARGEST_ERROR = 1e300  # error: distances and steps of online learning stay finite
THINNEST = 1e-9  # side of a joint cone, in units of its widest
ONE_PATH = "One-step forecasts are y[:, None], one path of h steps is y[None]; of a Series take to_numpy() first."
MOST_ERRORS_TO_LOOK_AT = 30_000  # for the effective number at `fit`: it takes ten times as long as margins
SCORES_AT_A_TIME = 250_000  # what fits into a cache is not read twice


def effective_numbers(seen: Array, tails: Tails, quantiles: list[Array], overlaps: NDArray[np.intp]) -> Array:
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


def _are_tied(sample: Array) -> NDArray[np.bool_]:
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


def series_blocks(errors: Array) -> list[slice]:
    """Blocks of series, whose errors (series, h, n) fit into a cache."""
    size = max(1, SCORES_AT_A_TIME // (errors.shape[1] * errors.shape[2]))
    return [slice(i, i + size) for i in range(0, len(errors), size)]


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


def window_errors(y_true: ArrayLike, y_pred: ArrayLike) -> tuple[Array, bool]:
    """Signed errors (series, h, n), NaN where not known, and whether there was an axis of series."""
    target, forecast = real_array("y_true", y_true), real_array("y_pred", y_pred)
    if target.ndim not in {2, 3} or target.shape != forecast.shape or target.size == 0:
        msg = (
            "y_true and y_pred must have the same shape (n, h) or (n_series, n, h), windows of h steps; got "
            f"{target.shape} and {forecast.shape}. {ONE_PATH}"
        )
        raise ValueError(msg)
    has_series = target.ndim == 3
    if not has_series:
        target, forecast = target[None], forecast[None]
    n_series, n, h = target.shape
    errors = np.empty((n_series, h, n))
    for part in series_blocks(errors):
        block = errors[part]
        with np.errstate(over="ignore", invalid="ignore"):
            block[:] = np.subtract(target[part], forecast[part], dtype=np.float64).transpose(0, 2, 1)
            fine = np.abs(block) <= LARGEST_ERROR
        if not fine.all() and (
            np.isinf(target[part]).any() or np.isinf(forecast[part]).any() or not (fine | np.isnan(block)).all()
        ):
            msg = (
                "y_true and y_pred must be finite, or NaN where a step is not known; got infinite values, or errors "
                f"of more than {LARGEST_ERROR:g}."
            )
            raise ValueError(msg)
    return errors, has_series


def n_missing(errors: Array) -> int:
    """Number of errors not known; a ValueError where a step has none at all."""
    missing = [np.isnan(errors[part]) for part in series_blocks(errors)]
    if not any(part.any() for part in missing):
        return 0
    known = errors.shape[-1] - np.concatenate([np.count_nonzero(part, axis=-1) for part in missing])
    if not known.all():
        series, step = np.argwhere(known == 0)[0]
        of = "" if len(errors) == 1 else f" of series {series}"
        msg = f"Step {step + 1}{of} is NaN in all windows; each step needs at least one known error."
        raise ValueError(msg)
    return int(errors.size - known.sum())


def smoothed(margins: Array, tails: Tails) -> Array:
    """Margins (series, h, 2), smoothed along the horizon; those of absolute errors stay positive."""
    h = margins.shape[1]
    window = min(WINDOW, h - 1 + h % 2)
    if window <= DEGREE:
        return margins
    from scipy.signal import savgol_filter

    smooth = margins.copy()
    for side in (0, 1):
        if np.isfinite(margins[..., side]).all():
            factor = safe_factor(float(np.abs(margins[..., side]).max()))
            smooth[..., side] = savgol_filter(factor * margins[..., side], window, DEGREE, axis=1) / factor
    return smooth if tails.has_centre else np.maximum(smooth, 0.0)


def learned_boxes(errors: Array, tails: Tails, p: float, *, is_smooth: bool) -> list[Box]:
    """The shape of the cone for each series, learned from errors (series, h, n)."""
    if not errors.size or np.isnan(errors).all(axis=-1).any():
        msg = (
            f"joint=True learns the shape of the cone from the first half of the windows, {errors.shape[-1]} here; "
            f"each step has to be known in at least one of them."
        )
        raise ValueError(msg)
    sides = tails.margins(step_quantiles(errors, tails, p))
    sides = smoothed(sides, tails) if is_smooth else sides
    centre = known_quantile(errors, 0.5) if tails.has_centre else np.zeros(errors.shape[:2])
    # No side is without any width: one error beyond it would make the whole cone infinite.
    shape = np.maximum(sides + np.stack([centre, -centre], axis=-1), 0.0)
    largest = np.where(np.isfinite(shape), shape, 0.0).max(axis=(1, 2), keepdims=True)
    least = np.where(largest > 0.0, np.maximum(THINNEST * largest, np.finfo(np.float64).tiny), 1.0)
    below, above = np.moveaxis(np.maximum(shape, least), -1, 0)
    return [Box(*own) for own in zip(below, above, centre, strict=True)]


def box_scores(boxes: list[Box], errors: Array) -> Array:
    """What the joint neurons see of errors (series, h, n): (series, 1, n)."""
    found = np.stack([box.scores(own.T) for box, own in zip(boxes, errors, strict=True)])[:, None, :]
    if (found > LARGEST_ERROR).any():
        msg = f"errors of one window are more than {LARGEST_ERROR:g} times as large as usual. Leave it out."
        raise ValueError(msg)
    return found


def finite_forecasts(y_pred: ArrayLike, n_series: int | None, h: int) -> Array:
    """Finite forecasts ([n_series,] n, h) of the horizon and series of `fit`."""
    forecast: Array = real_array("y_pred", y_pred).astype(np.float64, copy=False)
    fits = forecast.ndim == (2 if n_series is None else 3) and forecast.shape[-1] == h
    if not fits or (n_series is not None and len(forecast) != n_series):
        expected = f"(n, {h})" if n_series is None else f"({n_series}, n, {h})"
        msg = f"y_pred must have shape {expected}, as in fit; got {forecast.shape}. One path is y_pred[None]."
        raise ValueError(msg)
    wrong = ~(np.abs(forecast) <= LARGEST_ERROR)
    if wrong.any():
        n_wrong = np.count_nonzero(wrong)
        what = f"NaN or infinite, or beyond {LARGEST_ERROR:g}"
        msg = f"y_pred must be finite; {n_wrong} of {forecast.size} values are {what}."
        raise ValueError(msg)
    return forecast


def uncrossed(lower: Array, upper: Array) -> tuple[Array, Array]:
    """Bounds that meet in the middle where they cross: possible below 50 %, and while signed neurons learn."""
    crossed = lower > upper
    with np.errstate(invalid="ignore"):  # bounds that are both infinite do not cross
        middle = np.where(crossed, 0.5 * lower + 0.5 * upper, 0.0)
    return np.where(crossed, middle, lower), np.where(crossed, middle, upper)


def warn_of_few(
    seen: Array, tails: Tails, quantiles: list[Array], overlaps: NDArray[np.intp], p: float, n_series: int | None
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


def deviation(errors: Array, axes: tuple[int, ...]) -> Array:
    """Standard deviation of the errors that are known."""
    known = np.count_nonzero(~np.isnan(errors), axis=axes)
    if (known < 2).any():
        msg = f"A standard deviation takes at least 2 known errors of a series or window; got {known.min()}."
        raise ValueError(msg)
    factor = safe_factor(float(np.nanmax(np.abs(errors))))
    return np.asarray(np.nanstd(factor * errors, axis=axes, ddof=1) / factor)


def windows_until_known(h: int, stride: float) -> NDArray[np.intp]:
    """How many windows later the target of each of h steps is known, if windows start `stride` steps apart.

    Raises
    ------
    ValueError
        If the stride is no positive number.

    Examples
    --------
    >>> from pimeter.conformal.steps import windows_until_known
    >>> windows_until_known(4, 1).tolist(), windows_until_known(4, 3).tolist(), windows_until_known(2, 1 / 24).tolist()
    ([1, 2, 3, 4], [1, 1, 1, 2], [24, 48])
    """
    if isinstance(stride, bool) or not (isinstance(stride, Real) and 0.0 < stride < np.inf):
        msg = f"stride must be how many steps windows are apart, more than 0; got {stride!r}. One at each step is 1."
        raise ValueError(msg)
    return np.ceil(np.arange(1, h + 1) / float(stride) - ROUNDING).astype(np.intp)


def as_columns(sample: Array) -> Array:
    """(series, h, n) as (n, series * h), a column per neuron."""
    return sample.reshape(-1, sample.shape[-1]).T
