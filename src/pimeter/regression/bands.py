"""How intervals with a margin lie around what a probabilistic model says: bands that one margin moves.

All of them are nested: a larger margin never gives a narrower interval, so that the order of scores is all that
calibration needs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from pimeter.conformal.scores import CalibrationScores

if TYPE_CHECKING:
    from pimeter.predictive import Predictive
    from pimeter.protocols import Array

ROUNDINGS = 8.0  # units in the last place that the way from a score back to its bound may take
MIN_ROWS_TO_MOVE = 20  # rows with a finite bound
BLENDS = (0.0, 0.25, 0.5, 0.75, 1.0)
MIN_HALF_WIDTH = 0.02  # smallest half-width that is learned, in typical ones
MAX_DEVIATIONS = 5.0  # standard deviations up to which a learned bound follows centre and width
PENALTY = 0.1  # on the coefficients, in units of 1 / sqrt(n)


class Shape(Protocol):
    """What turns predictions and targets into scores, and predictions and margins into bounds."""

    def scores(self, said: Predictive, y: Array) -> CalibrationScores:
        """How far each target lies beyond the lower and the upper bound."""

    def bounds(self, said: Predictive, margin: Array) -> Array:
        """Bounds (n, 2) for margins below and above."""


class Band(NamedTuple):
    """``[lower - scale t, upper + scale t]``, of n rows; an infinite bound stays where it is."""

    lower: Array
    upper: Array
    scale: Array


@dataclass(frozen=True)
class MovedBand(ABC):
    """A band whose bounds are moved out by the margin, in units of a scale of each row."""

    level: float

    @abstractmethod
    def band(self, said: Predictive) -> Band:
        """The band of each row, before calibration moves it."""

    def scores(self, said: Predictive, y: Array) -> CalibrationScores:
        """How far each target lies beyond the lower and the upper bound, in units of the scale."""
        lower, upper, scale = self.band(said)
        with np.errstate(over="ignore"):
            return CalibrationScores(((y - upper) / scale)[:, None], ((lower - y) / scale)[:, None])

    def bounds(self, said: Predictive, margin: Array) -> Array:
        """Bounds (n, 2) for margins below and above; those that would cross meet in the middle."""
        lower, upper, scale = self.band(said)
        with np.errstate(over="ignore", invalid="ignore"):
            middle = np.where(np.isfinite(lower), np.where(np.isfinite(upper), lower / 2.0 + upper / 2.0, lower), upper)
            low, high = np.minimum(lower - scale * margin[0], middle), np.maximum(upper + scale * margin[1], middle)
            largest = np.where(np.isfinite([low, high, lower, upper]), np.abs([low, high, lower, upper]), 0.0).max(
                axis=0
            )
        low, high = _outwards(low, -1.0, largest), _outwards(high, 1.0, largest)
        return np.stack([_open(low, lower), _open(high, upper)], axis=1)


class Additive(MovedBand):
    """The band at a level, both bounds moved by the same distance (conformalised quantile regression)."""

    def band(self, said: Predictive) -> Band:
        """The intervals at the level, moved by a constant."""
        lower, upper = said.band(self.level).T
        return Band(lower, upper, np.ones(len(said)))


class Multiplicative(MovedBand):
    """The band at a level, both bounds moved by a multiple of its width."""

    def band(self, said: Predictive) -> Band:
        """The intervals at the level, moved in units of their width."""
        lower, upper = said.band(self.level).T
        return Band(lower, upper, _scale(lower, upper))


class Normalised(MovedBand):
    """Around the centre, in units of half the width of the band at a level: for a normal one, a multiple of its std."""

    def band(self, said: Predictive) -> Band:
        """A band of no width at the centre, with half of the interval as scale."""
        lower, upper = said.band(self.level).T
        centre = said.centre
        scale = _scale(lower, upper) / 2.0
        return Band(_open(centre, lower), _open(centre, upper), scale)


@dataclass(frozen=True)
class Distributional:
    """Between two quantiles of each row's distribution: the margin is a normal quantile, the same for all rows."""

    level: float

    def scores(self, said: Predictive, y: Array) -> CalibrationScores:
        """Normal quantiles of the probability integral transform."""
        _refuse_no_width(said.values[:, 0], said.values[:, -1])
        return CalibrationScores(said.z(y)[:, None])

    def bounds(self, said: Predictive, margin: Array) -> Array:
        """Quantiles of each row."""
        _refuse_no_width(said.values[:, 0], said.values[:, -1])
        least, most = _outwards(np.sort([-margin[0], margin[1]]), np.array([-1.0, 1.0]))
        # Where a quantile is infinite, nothing is known between it and the next one.
        is_open = np.isinf(said.values).any(axis=1)
        below = np.where(is_open, min(least, said.knots[0]), least)
        above = np.where(is_open, max(most, said.knots[-1]), most)
        found = np.stack([said.from_z(below), said.from_z(above)], axis=1)
        low, high = _outwards(found[:, 0], -1.0), _outwards(found[:, 1], 1.0)
        return np.stack([_open(low, said.values[:, 0]), _open(high, said.values[:, -1])], axis=1)


@dataclass(frozen=True)
class Blended(MovedBand):
    """Half-widths between those of the model and a constant one, around its centre; both bounds may be moved.

    ``centre - multiple (blend below + (1 - blend) typical)`` and so on: a blend of 1 is multiplicative, 0 constant,
    and one between them much like additive. The moves are linear in centre and width.
    """

    blend: float
    multiple: float
    typical: float
    location: float = 0.0
    deviation: float = 1.0
    moves: Array | None = None  # (2, 3): intercept, centre and width, for both bounds, in units of the typical width

    def band(self, said: Predictive) -> Band:
        """The learned band, with half its width as scale."""
        centre, below, above = _halves(said, self.level, self.typical)
        halves = (self.multiple * self._blended(half) for half in (below, above))
        lower, upper = (centre + sign * half for sign, half in zip((-1.0, 1.0), halves, strict=True))
        if self.moves is not None:
            moved = self.typical * (self.known(centre, below, above) @ self.moves.T)
            lower, upper = lower + moved[:, 0], upper + moved[:, 1]
        middle, half = lower / 2.0 + upper / 2.0, np.maximum(upper / 2.0 - lower / 2.0, MIN_HALF_WIDTH * self.typical)
        given = said.band(self.level)
        return Band(_open(middle - half, given[:, 0]), _open(middle + half, given[:, 1]), half)

    def _blended(self, half: Array) -> Array:
        """Half-widths, of which none is 0."""
        return np.maximum(self.blend * half + (1.0 - self.blend) * self.typical, MIN_HALF_WIDTH * self.typical)

    def known(self, centre: Array, below: Array, above: Array) -> Array:
        """What moves are learned from, (n, 3)."""
        columns = (centre - self.location) / self.deviation, (below + above) / (2.0 * self.typical)
        clipped = (np.clip(column, -MAX_DEVIATIONS, MAX_DEVIATIONS) for column in columns)
        return np.stack([np.ones(len(centre)), *clipped], axis=1)

    @classmethod
    def learned(cls, said: Predictive, y: Array, level: float, *, moves: bool) -> Blended:
        """The blend with the best interval score on rows that do not calibrate, and how to move its bounds."""
        centre, below, above = _halves(said, level, 0.0)
        typical = float(np.median(below + above) / 2.0) or float(np.abs(y - centre).mean()) or 1.0
        centre, below, above = _halves(said, level, typical)
        unit = float(np.abs(centre).max()) or 1.0  # squares of huge numbers are infinite
        deviation = unit * float((centre / unit).std()) or 1.0
        found = []
        for blend in BLENDS:
            one = cls(level, blend, 1.0, typical, unit * float((centre / unit).mean()), deviation)
            down, up = one._blended(below), one._blended(above)
            multiple = float(np.quantile(np.maximum((centre - y) / down, (y - centre) / up), level, method="higher"))
            missed = np.maximum(centre - multiple * down - y, 0.0) + np.maximum(y - centre - multiple * up, 0.0)
            loss = float(np.mean(multiple * (down + up) + 2.0 / (1.0 - level) * missed))
            found.append((loss, replace(one, multiple=multiple)))
        best = min(found, key=lambda pair: pair[0])[1]
        return best._with_moves(said, y) if moves else best

    def _with_moves(self, said: Predictive, y: Array) -> Blended:
        """Bounds at both quantiles of the targets, by linear quantile regression with a penalty on the moves."""
        from sklearn.linear_model import QuantileRegressor

        band, known = self.band(said), self.known(*_halves(said, self.level, self.typical))
        moves = np.zeros((2, 3))
        for move, bound, p in zip(moves, band[:2], ((1.0 - self.level) / 2.0, (1.0 + self.level) / 2.0), strict=True):
            rows = np.isfinite(bound)
            if rows.sum() < MIN_ROWS_TO_MOVE:
                continue
            model = QuantileRegressor(quantile=p, alpha=PENALTY / rows.sum() ** 0.5)
            model.fit(known[rows, 1:], (y - bound)[rows] / self.typical)
            move[:] = model.intercept_, *model.coef_
        return replace(self, moves=moves)


def _halves(said: Predictive, level: float, typical: float) -> tuple[Array, Array, Array]:
    """Centre, and how far the band at the level goes below and above; an infinite side as far as the other one."""
    lower, upper = said.band(level).T
    centre = said.centre
    below, above = centre - lower, upper - centre
    sides = np.where(np.isfinite(below), below, above), np.where(np.isfinite(above), above, below)
    below, above = (np.where(np.isfinite(side), side, typical) for side in sides)
    return centre, below, above


def _scale(lower: Array, upper: Array) -> Array:
    """Widths, of which none may be 0; 1 where a bound is infinite."""
    _refuse_no_width(lower, upper)
    with np.errstate(invalid="ignore", over="ignore"):
        wide = upper - lower
    return np.where(np.isfinite(wide), wide, 1.0)


def _refuse_no_width(lower: Array, upper: Array) -> None:
    """A ValueError if rows have no width but for rounding: no multiple of it would be one."""
    with np.errstate(invalid="ignore", over="ignore"):
        least = ROUNDINGS * np.spacing(np.maximum(np.abs(lower), np.abs(upper)))
        missing = np.flatnonzero(upper - lower <= least)
    if missing.size:
        first = missing[0]
        msg = (
            f"intervals have no width in {missing.size} of {len(lower)} rows, the first is row {first} "
            f"({lower[first]:g} to {upper[first]:g}): no multiple of it covers other targets, and margins get huge "
            'for all rows. Use method="additive", "auto" of IntervalCalibrator, or leave such rows out, old and new.'
        )
        raise ValueError(msg)


def _outwards(values: Array, sign: float | Array, largest: Array | None = None) -> Array:
    """Values moved out by what rounding may take from them, given the largest numbers on the way; not infinite ones."""
    with np.errstate(over="ignore", invalid="ignore"):
        slack = ROUNDINGS * np.spacing(np.abs(values) if largest is None else largest)
        return np.where(np.isfinite(values) & np.isfinite(slack), values + sign * slack, values)


def _open(bound: Array, given: Array) -> Array:
    """A bound that is infinite where the given one is."""
    return np.where(np.isinf(given), given, bound)
