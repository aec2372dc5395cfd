"""Mean residuals with ranges and p-values: of all rows, and of the subgroup that departs most from them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import ndtr, stdtr, stdtrit

from pimeter.arrays import ranks
from pimeter.evaluation.diagnosis.check import sequential_test
from pimeter.moments import power_of_two

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pimeter.clusters import Units
    from pimeter.evaluation.diagnosis.columns import Subgroups
    from pimeter.protocols import Array, Flags

MEAN_CONFIDENCE = 0.9  # of the range of the mean of all residuals
PLACES = 0.006  # how often chance may make any place stand out, of all together


@dataclass(frozen=True)
class Criterion:
    """What divides rows into subgroups, such as a feature, and its values where they are numbers."""

    of: str  # "prediction", the name of a feature, or "by"
    subgroups: Subgroups
    values: Array | None

    @property
    def contrasts(self) -> list[tuple[int, Array]]:
        """Weights of rows that compare each subgroup with all rows, with its code; -1 for those that follow ranks."""
        codes, labels = self.subgroups.codes, self.subgroups.labels
        found = [(code, (codes == code).astype(np.float64)) for code in range(len(labels))]
        if self.values is not None:
            rank = ranks(self.values) / len(codes)
            found.append((-1, np.where(np.isnan(rank), np.nanmean(rank) if len(labels) > 1 else 0.0, rank)))
        centred = ((code, weights - weights.mean()) for code, weights in found)
        return [(code, weights) for code, weights in centred if weights.any()]


class Shift(NamedTuple):
    """A mean residual with a range, and how often chance makes one like it."""

    mean: float
    lower: float
    upper: float
    p_value: float
    criterion: Criterion | None = None  # that divides the rows; None for all rows
    label: str = ""  # of the subgroup
    departure: float = 0.0  # from the mean of all rows
    n_places: int = 1

    def explained(self, residuals: Array) -> float:
        """The fraction of the squared residuals that means of the subgroups explain."""
        if self.criterion is None:
            return 0.0
        codes, n_subgroups = self.criterion.subgroups.codes, len(self.criterion.subgroups.labels)
        x = residuals / power_of_two(float(np.abs(residuals).max()))
        centred, n = x - x.mean(), np.bincount(codes, minlength=n_subgroups)
        return float((np.bincount(codes, centred, n_subgroups) ** 2 / np.maximum(n, 1)).sum() / (centred @ centred))

    @property
    def place(self) -> str:
        """Where it is, in words."""
        return "" if self.criterion is None else place(self.criterion.of, self.label)


def place(of: str, label: str) -> str:
    """A subgroup of what divides the rows, in words."""
    if of == "by":
        return f"in category {label}"
    return f"where {'the prediction' if of == 'prediction' else of} is {label}"


def mean_residual(residuals: Array, units: Units | None = None) -> Shift:
    """The mean of all residuals with its range, and the larger of two p-values; of units that are independent.

    Student's t rejects 5 % of samples of 30 lognormal residuals where it should reject .6 %; Johnson's, which corrects
    for skewness, rejects too many where tails are heavy. Both together reject 1.6 % at most.
    """
    unit = power_of_two(float(np.abs(residuals).max()))
    x = residuals / unit
    mean = float(x.mean())
    x -= mean
    m, n = len(x), float(len(x))
    if units is not None:  # what each adds to the mean, as that of one of so many
        x, n = units.whole(units.sums(x)) * (units.n / m), units.n_equal or units.n
        m = units.n
    variance = float(x @ x) / m * n / (n - 1)
    if variance <= np.finfo(np.float64).tiny:
        return Shift(mean * unit, mean * unit, mean * unit, 1.0 if mean == 0.0 else 0.0)
    error = math.sqrt(variance / m)
    third = float((x * x) @ x) / m / variance
    t, johnson = mean / error, (mean + third / (6.0 * m) + third * mean * (mean / variance) / 3.0) / error
    agreed = min(abs(t), abs(johnson)) if t * johnson > 0.0 else 0.0
    half = float(stdtrit(n - 1, (1.0 + MEAN_CONFIDENCE) / 2.0)) * error
    p_value = 2.0 * float(stdtr(n - 1, -agreed))
    return Shift(mean * unit, (mean - half) * unit, (mean + half) * unit, p_value)


def local_shift(residuals: Array, criteria: Sequence[Criterion], units: Units | None = None) -> Shift | None:
    """The subgroup whose mean residual departs most from that of all rows, with a range that holds for all together.

    A sum of centred residuals over the root of the sum of their squares is normal whatever their spread, and rather
    smaller where tails are heavy (self-normalised sums). Shuffled residuals, which know of skewness and few rows, have
    to agree. Numbers also have a trend: the sum of residuals weighed by ranks. Of groups, or of stretches of time, sums
    over these are taken in the place of rows, with Student's quantiles. None without subgroups.
    """
    named = [(criterion, *contrast) for criterion in criteria for contrast in criterion.contrasts]
    if not named:
        return None
    weights = np.column_stack([one for *_, one in named])
    m, unit = len(residuals), power_of_two(float(np.abs(residuals).max()))
    x = residuals / unit
    centred = x - x.mean()
    if units is None:
        z = _studentised(centred[None], weights)[0]
        tail = ndtr(-z.max())
    else:
        z = _studentised_by_units(centred, weights, units)
        tail = stdtr(max(units.n - 1, 1), -z.max())
    p_value = min(1.0, 2.0 * len(named) * float(tail))
    if units is None and p_value <= PLACES:
        rng = np.random.default_rng(m)

        def shuffled(n: int) -> Array:
            samples = rng.permuted(np.tile(centred, (n, 1)), axis=1)
            return np.asarray(_studentised(samples, weights).max(axis=1))

        p_value = max(p_value, sequential_test(float(z.max()) * (1.0 - 1e-12), shuffled).p_value)
    criterion, code, _ = named[int(z.argmax())]
    codes, labels = criterion.subgroups.codes, criterion.subgroups.labels
    if code < 0:  # of a trend the subgroup that departs most
        n = np.maximum(np.bincount(codes, minlength=len(labels)), 1)
        code = int(np.argmax(np.abs(np.bincount(codes, centred, len(labels)) / n)))
    is_own = codes == code
    mean = float(x[is_own].mean())
    half = _half_width(np.where(is_own, x - mean, 0.0), is_own, PLACES / 2.0 / len(named), units, float(centred.std()))
    bounds = ((mean - half) * unit, (mean + half) * unit)
    departure = (mean - float(x.mean())) * unit
    return Shift(mean * unit, *bounds, p_value, criterion, labels[code], departure, len(named))


def _half_width(centred: Array, is_own: Flags, tail: float, units: Units | None, spread: float) -> float:
    """Half-width of Student's range of a mean of some rows, from their residuals less it, and 0 for all others.

    Of independent rows these spread as much as all rows at least (`_studentised`).
    """
    n_rows = n = int(np.count_nonzero(is_own))
    if units is not None and units.labels is not None:
        centred, n = units.whole(units.sums(centred)), len(np.unique(units.labels[is_own]))
    if n < 2:
        return math.inf
    squares = float(centred @ centred) * n / (n - 1)
    if units is None:
        squares = max(squares, n * spread**2)
    return float(stdtrit(n - 1, 1.0 - tail)) * math.sqrt(squares) / n_rows


def _studentised(centred: Array, weights: Array) -> Array:
    """Absolute weighted sums of residuals, (samples, m), over the root of the sum of squares, (samples, places).

    Of at least that which shuffled residuals have: where events are rare, a subgroup without one hardly varies.
    """
    squares = (centred * centred) @ (weights * weights)
    shuffled = (centred * centred).mean(axis=1)[:, None] * (weights * weights).sum(axis=0)
    squares = np.maximum(squares, shuffled)
    return np.asarray(np.abs(centred @ weights) / np.sqrt(np.where(squares > 0.0, squares, math.inf)))


def _studentised_by_units(centred: Array, weights: Array, units: Units) -> Array:
    """Absolute weighted sums of residuals over the root of the sum of squares of those of units, (places,)."""
    sums = units.whole(units.sums((centred[:, None] * weights).T))
    squares = (sums * sums).sum(axis=1)
    return np.asarray(np.abs(sums.sum(axis=1)) / np.sqrt(np.where(squares > 0.0, squares, math.inf)))
