"""What a probabilistic model says of each row: intervals, quantiles, a standard deviation or samples, read once.

Whatever is given becomes quantiles at common levels. Between these, and beyond them, quantiles are linear in the normal
quantile z of their level: exact for a normal distribution, of which the quantiles at z = -1 and 1 are kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from pimeter.arrays import as_frame
from pimeter.coverage import ROUNDING, counted, percent
from pimeter.frames import named_columns, refuse_other_order
from pimeter.validation import distinct_levels, finite_numbers, known_numbers, one_level

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from pimeter.protocols import Array, GivenIntervals, Table

Kind = Literal["intervals", "quantiles", "normal", "samples"]
ONE_OF = "intervals=, quantiles= with levels=, y_pred= with std=, or samples="


@dataclass(frozen=True)
class Predictive:
    """Predictive distributions of m rows, known by their quantiles.

    Attributes
    ----------
    kind : {"intervals", "quantiles", "normal", "samples"}
        What was given.
    levels : ndarray of shape (q,)
        Levels of the quantiles kept, in rising order.
    knots : ndarray of shape (q,)
        The normal quantiles of these levels.
    values : ndarray of shape (m, q)
        The quantiles, none of which cross; they may be infinite.

    Examples
    --------
    >>> from pimeter.predictive import predictive
    >>> said = predictive(intervals=[[0, 4], [1, 3]], confidence_level=0.9)
    >>> said.confidence_levels, said.centre, said.bounds(0.9).tolist()
    ((0.9,), array([2., 2.]), [[0.0, 4.0], [1.0, 3.0]])
    >>> said.z([4.0, 3.0]).round(2)
    array([1.64, 1.64])
    """

    kind: Kind
    levels: Array
    knots: Array
    values: Array

    def __len__(self) -> int:
        return len(self.values)

    @property
    def confidence_levels(self) -> tuple[float, ...]:
        """Levels of the central intervals that were given, rising; none for a normal distribution or samples."""
        if self.kind in {"normal", "samples"}:
            return ()
        upper = self.levels[self.levels > 0.5]
        has_both = np.isclose(self.levels, 1.0 - upper[:, None], rtol=0.0, atol=ROUNDING).any(axis=1)
        return tuple((2.0 * upper[has_both] - 1.0).round(12).tolist())

    @property
    def highest_level(self) -> float | None:
        """Highest level of central intervals that s draws hold, (s - 1) / (s + 1); None where nothing limits it."""
        return 1.0 - 2.0 / (len(self.levels) + 1.0) if self.kind == "samples" else None

    @property
    def centre(self) -> Array:
        """The median: given, or between the quantiles next to it; where one of these is infinite, the other one."""
        right = min(max(int(np.searchsorted(self.knots, 0.0)), 1), len(self.knots) - 1)
        pair = self.values[:, right - 1 : right + 1]
        with np.errstate(invalid="ignore"):
            # Through z the middle of -1 and 1 would be 4e-16.
            is_symmetric = abs(self.levels[right - 1] + self.levels[right] - 1.0) < ROUNDING
            found = pair[:, 0] / 2.0 + pair[:, 1] / 2.0 if is_symmetric else self.at(0.5)
        if np.isfinite(found).all():
            return found
        known = np.where(np.isfinite(pair), pair, np.nan)
        only = np.where(np.isnan(known).all(axis=1), 0.0, np.nansum(known, axis=1))
        return np.where(np.isfinite(found), found, only)

    @property
    def spread(self) -> Array:
        """Distance between the outermost quantiles in units of a standard deviation; of a normal distribution, that."""
        with np.errstate(invalid="ignore"):
            wide = self.values[:, -1] - self.values[:, 0]
        return np.asarray(wide / (self.knots[-1] - self.knots[0]))

    @property
    def n_infinite(self) -> int:
        """Number of rows with an infinite quantile."""
        return int(np.count_nonzero(np.isinf(self.values).any(axis=1)))

    def rows(self, rows: slice | NDArray[Any]) -> Predictive:
        """Some of the rows."""
        return Predictive(self.kind, self.levels, self.knots, self.values[rows])

    def bounds(self, confidence_level: float) -> Array:
        """Central intervals (m, 2) at a level that was given; any of a normal distribution; those that draws hold."""
        p = one_level("confidence_level", confidence_level)
        given = self.confidence_levels
        if self.kind in {"intervals", "quantiles"} and not np.isclose(given, p, rtol=0.0, atol=ROUNDING).any():
            known = ", ".join(percent(one) for one in given) or "none"
            msg = (
                f"{self.kind} were not given at {percent(p)}, which takes the quantiles at levels "
                f"{(1.0 - p) / 2.0:.6g} and {(1.0 + p) / 2.0:.6g}; central intervals that were given: {known}. Ask for "
                "one of these, or give the level that you ask for."
            )
            raise ValueError(msg)
        highest = self.highest_level
        if highest is not None and p > highest + ROUNDING:
            msg = (
                f"{len(self.levels)} draws hold intervals of up to {percent(highest, 3)}; {percent(p)} takes "
                f"{math.ceil(2.0 / (1.0 - p) - 1.0 - ROUNDING)} or more. Ask for a lower level, or give more samples."
            )
            raise ValueError(msg)
        return self.band(p)

    def band(self, confidence_level: float) -> Array:
        """Central intervals (m, 2) at any level, between what was given and beyond."""
        return np.stack([self.at((1.0 + sign * confidence_level) / 2.0) for sign in (-1.0, 1.0)], axis=1)

    def at(self, level: float) -> Array:
        """Quantile of each row at a level."""
        same = np.flatnonzero(np.abs(self.levels - level) < ROUNDING)
        return self.values[:, same[0]] if same.size else self.from_z(np.full(len(self), NormalDist().inv_cdf(level)))

    def from_z(self, z: Array) -> Array:
        """Quantiles at normal quantiles z (m,), one for each row."""
        right = np.clip(np.searchsorted(self.knots, z), 1, len(self.knots) - 1)
        rows = np.arange(len(self))
        low, high = self.values[rows, right - 1], self.values[rows, right]
        way = (z - self.knots[right - 1]) / (self.knots[right] - self.knots[right - 1])
        with np.errstate(invalid="ignore", over="ignore"):
            inside = np.where(way == 1.0, high, low + way * (high - low))
            below = self.values[:, 0] - (self.knots[0] - z) * self._slope(0)
            above = self.values[:, -1] + (z - self.knots[-1]) * self._slope(1)
        found = np.where(z < self.knots[0], below, np.where(z > self.knots[-1], above, inside))
        found = np.where(np.isnan(found), np.where(np.isnan(low), high, low), found)
        return np.where(np.isinf(z), z, found)

    def z(self, y_true: ArrayLike) -> Array:
        """Normal quantile of the probability that each row's distribution gives to less than its target, (m,)."""
        y = np.asarray(y_true, np.float64)
        rows, last = np.arange(len(self)), len(self.knots) - 1
        first, end = (self.values < y[:, None]).sum(axis=1), (self.values <= y[:, None]).sum(axis=1)
        right = np.clip(first, 1, last)
        low, high = self.values[rows, right - 1], self.values[rows, right]
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            way = np.nan_to_num((y - low) / (high - low), nan=0.5)
            found = self.knots[right - 1] + way * (self.knots[right] - self.knots[right - 1])
            below = self.knots[0] - np.nan_to_num((self.values[:, 0] - y) / self._slope(0), nan=0.0, posinf=np.inf)
            above = self.knots[-1] + np.nan_to_num((y - self.values[:, -1]) / self._slope(1), nan=0.0, posinf=np.inf)
        # A target that equals several quantiles lies in the middle of their levels.
        tied = end > first
        found[tied] = (self.knots[first[tied]] + self.knots[end[tied] - 1]) / 2.0
        return np.asarray(np.where(first > last, above, np.where(end == 0, below, found)))

    def _slope(self, side: int) -> Array:
        """Change with z of quantiles beyond the first (0) or the last (1) one: as from the centre to there."""
        middle = min(int(np.searchsorted(self.knots, 0.0, side="right")), len(self.knots) - 1)
        near = middle if side == 0 else max(middle - 1, 0)
        end = -side
        near = near if self.knots[near] != self.knots[end] else -1 - end
        with np.errstate(invalid="ignore"):
            slope = (self.values[:, end] - self.values[:, near]) / (self.knots[end] - self.knots[near])
        return np.asarray(np.where(np.isnan(slope), np.inf, slope))


def predictive(
    *,
    intervals: GivenIntervals | None = None,
    quantiles: Table | None = None,
    levels: ArrayLike | None = None,
    y_pred: ArrayLike | None = None,
    std: ArrayLike | None = None,
    samples: Table | None = None,
    confidence_level: float | None = None,
    n: int | None = None,
) -> Predictive:
    """Read what a probabilistic model says, given in one of four ways.

    Parameters
    ----------
    intervals : array-like of shape (m, 2), frame with columns lower and upper, or mapping of these by level
        Central intervals; without a mapping their level is `confidence_level`, which must be given.
    quantiles : array-like or frame of shape (m, q)
        Quantiles, a column for each of `levels`, which do not cross.
    levels : array-like of shape (q,)
        Levels of the quantiles, in any order.
    y_pred, std : array-like of shape (m,)
        Means and standard deviations of normal distributions.
    samples : array-like or frame of shape (m, s)
        Draws from each row's distribution.
    confidence_level : float, optional
        Level of bare `intervals`.
    n : int, optional
        Number of rows that there have to be: that of the targets.

    Returns
    -------
    Predictive

    Raises
    ------
    ValueError
        If nothing or too much is given, shapes do not fit, bounds or quantiles cross, a value is NaN, a standard
        deviation is not positive or lost in rounding, or a level is missing.
    """
    name = _only({"intervals": intervals, "quantiles": quantiles, "std": std, "samples": samples}, levels, y_pred)
    if intervals is not None:
        found = _from_intervals(intervals, confidence_level)
    elif quantiles is not None:
        found = _from_quantiles(quantiles, cast("ArrayLike", levels))
    elif std is not None:
        found = _from_moments(y_pred, std)
    else:
        found = _from_samples(cast("Table", samples))
    if n is not None and len(found) != n:
        msg = f"{name} has {counted(len(found), 'row')}, but there are {n} targets: give one row for each target."
        raise ValueError(msg)
    return found


def _only(given: dict[str, Any], levels: ArrayLike | None, y_pred: ArrayLike | None) -> str:
    """The way in which something is given; a ValueError if there are none or several, or if something does not fit."""
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        what = " and ".join(named) or ("y_pred alone" if y_pred is not None else "nothing")
        msg = f"give what the model says in one of four ways: {ONE_OF}; got {what}."
        raise ValueError(msg)
    if (levels is None) != (named[0] != "quantiles"):
        msg = "quantiles and levels go together: give levels=, one for each column of quantiles, and no levels without."
        raise ValueError(msg)
    if y_pred is not None and named[0] != "std":
        msg = f"y_pred goes with std=; {named[0]} have a centre of their own, which is used. Leave y_pred out."
        raise ValueError(msg)
    return named[0]


def _from_intervals(intervals: GivenIntervals, confidence_level: float | None) -> Predictive:
    """Lower and upper bounds at one level or several, as quantiles."""
    by_level = _by_level(intervals, confidence_level)
    rising = sorted(by_level)
    tables = [_bounds("intervals" if len(rising) == 1 else f"intervals[{p:g}]", by_level[p]) for p in rising]
    if len({len(table) for table in tables}) > 1:
        msg = f"intervals have {[len(table) for table in tables]} rows at levels {rising}; expected as many at each."
        raise ValueError(msg)
    values = np.hstack([*(table[:, :1] for table in tables[::-1]), *(table[:, 1:] for table in tables)])
    _refuse_crossed("intervals", values, "levels", "An interval of a higher level must hold that of a lower one.")
    tails = np.array(rising)
    return _made("intervals", np.concatenate([(1.0 - tails[::-1]) / 2.0, (1.0 + tails) / 2.0]), values)


def _by_level(intervals: GivenIntervals, confidence_level: float | None) -> dict[float, Any]:
    """Intervals by their level."""
    if isinstance(intervals, Mapping) and as_frame(intervals) is None:
        if not intervals:
            msg = "intervals is an empty mapping; give at least one level, such as {0.9: bounds}."
            raise ValueError(msg)
        return {one_level("a level of intervals", level): bounds for level, bounds in intervals.items()}
    if confidence_level is None:
        msg = "intervals need their level: give confidence_level=, such as 0.9, or a mapping {0.9: intervals}."
        raise ValueError(msg)
    return {one_level("confidence_level", confidence_level): intervals}


def _bounds(name: str, given: Table) -> Array:
    """Lower and upper bounds, (m, 2), in their order."""
    table = _numbers(name, given, ("lower", "upper"))
    if table.ndim != 2 or table.shape[1] != 2:
        msg = (
            f"{name} must have shape (m, 2), lower and upper bounds; got {table.shape}. Give np.column_stack([lower, "
            "upper])."
        )
        raise ValueError(msg)
    _refuse_crossed(name, table, "bounds", "Give the lower bound first.")
    return table


def _from_quantiles(quantiles: Table, levels: ArrayLike) -> Predictive:
    """Quantiles at any levels, in rising order."""
    asked = distinct_levels("levels", levels)
    table = _numbers("quantiles", quantiles)
    if table.ndim != 2 or table.shape[1] != len(asked):
        msg = f"quantiles must have shape (m, {len(asked)}), a column for each of the levels; got {table.shape}."
        raise ValueError(msg)
    if len(asked) < 2:
        msg = "quantiles at one level make no distribution; give at least two, such as levels=[0.05, 0.95]."
        raise ValueError(msg)
    order = np.argsort(asked)
    values = table[:, order]
    _refuse_crossed("quantiles", values, "quantiles", "np.sort(quantiles, axis=1) puts rising levels in order.")
    return _made("quantiles", asked[order], values)


def _from_moments(y_pred: ArrayLike | None, std: ArrayLike) -> Predictive:
    """Means and standard deviations of normal distributions, as quantiles."""
    if y_pred is None:
        msg = "std needs the predictions that it is about: give y_pred=."
        raise ValueError(msg)
    refuse_other_order("y_pred", y_pred, "std", std)
    mean, deviation = finite_numbers("y_pred", y_pred), finite_numbers("std", std)
    if mean.ndim != 1 or deviation.shape != mean.shape:
        msg = (
            f"y_pred and std must both have shape (m,), one value for each row; got {mean.shape} and {deviation.shape}."
        )
        raise ValueError(msg)
    wrong = np.flatnonzero(deviation <= 0.0)
    if wrong.size:
        msg = (
            f"std must be positive; {wrong.size} of {len(deviation)} are not, the first in row {wrong[0]} "
            f"({deviation[wrong[0]]:g}). Give standard deviations, or leave such rows out."
        )
        raise ValueError(msg)
    apart = np.spacing(np.abs(mean))
    lost = np.flatnonzero(deviation < apart)
    if lost.size:
        first = lost[0]
        msg = (
            f"std is lost in rounding in {lost.size} of {len(mean)} rows, the first is row {first}: "
            f"{deviation[first]:g} beside y_pred {mean[first]:g}, where neighbouring numbers are {apart[first]:.3g} "
            "apart. Subtract a constant from targets and y_pred, or give larger standard deviations."
        )
        raise ValueError(msg)
    levels = np.array([NormalDist().cdf(-1.0), NormalDist().cdf(1.0)])
    return _made("normal", levels, np.stack([mean - deviation, mean + deviation], axis=1), np.array([-1.0, 1.0]))


def _from_samples(samples: Table) -> Predictive:
    """Draws: s of them, in order, are quantiles at the levels i / (s + 1), by which new draws are divided equally."""
    table = _numbers("samples", samples)
    if table.ndim != 2 or table.shape[1] < 2:
        msg = (
            f"samples must have shape (m, s), at least two draws for each row; got {table.shape}. Point predictions "
            "are y_pred."
        )
        raise ValueError(msg)
    s = table.shape[1]
    return _made("samples", np.arange(1.0, s + 1.0) / (s + 1.0), np.sort(table, axis=1))


def _made(kind: Kind, levels: Array, values: Array, knots: Array | None = None) -> Predictive:
    """What a model says, with normal quantiles of the levels as knots unless others are given."""
    from scipy.special import ndtri

    return Predictive(kind, levels, np.asarray(ndtri(levels)) if knots is None else knots, values)


def _numbers(name: str, given: Table, columns: tuple[str, ...] | None = None) -> Array:
    """Numbers of an array or a frame, of which none is NaN."""
    frame = as_frame(given)
    return known_numbers(name, cast("ArrayLike", given) if frame is None else named_columns(name, frame, columns))


def _refuse_crossed(name: str, values: Array, what: str, remedy: str) -> None:
    """A ValueError if values of a row fall, which says how many rows do and which is the first."""
    crossed = np.flatnonzero((values[:, 1:] < values[:, :-1]).any(axis=1))
    if crossed.size:
        first = ", ".join(f"{value:.6g}" for value in values[crossed[0]][:9])
        where = f"in {crossed.size} of {len(values)} rows, first in row {crossed[0]} ({first})"
        msg = f"{name}: {what} cross {where}. {remedy}"
        raise ValueError(msg)
