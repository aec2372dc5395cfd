"""Cross-fitting: radii from nine tenths of the rows, coverage on the tenth that they have not seen.

On its own rows a radius covers exactly k/m, whatever the data. Errors are sorted once for all levels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import betaincinv

from pimeter._kernels.dispatch import kernel
from pimeter.arrays import some_rows
from pimeter.conformal.guarantee import rank, rank_guarantee
from pimeter.coverage import RANGE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

N_FOLDS = 10
N_COMPARED = 5000  # rows that tell whether errors repeat
AT_ONCE = 1 << 15  # values that stay in the cache


class Covered(NamedTuple):
    """What radii that have not seen them do for some of the rows, at each level."""

    rows: NDArray[np.intp]  # (parts,)
    inside: NDArray[np.intp]  # (parts, levels) rows within the radius
    radius: Array  # (parts, levels), learned from these rows alone; NaN for parts without rows


@dataclass(frozen=True)
class CrossFit:
    """Sizes of errors in folds, and the radii that the other folds give at some levels."""

    sizes: Array  # (m,)
    ordered: Array  # (m,) sizes in rising order
    fold: NDArray[np.uint8]  # (m,)
    levels: Array  # (levels,)
    radius: Array  # (levels,) of all rows
    radii: Array  # (folds, levels), NaN where there is no other row
    n_beyond: NDArray[np.uint8]  # (m,) at how many levels each row is farther out than the radius of the other folds

    @classmethod
    def of(cls, sizes: Array, levels: Array) -> CrossFit:
        """Put rows into folds and learn the radii."""
        m = len(sizes)
        n_folds = min(N_FOLDS, m)
        fold = folds(m, n_folds)
        ordered = kernel.sorted_groups(sizes)[0]
        radii = np.full((n_folds, len(levels)), np.nan)
        for i, own in enumerate(kernel.sorted_groups(sizes, fold, n_folds) if m > 1 else ()):
            radii[i] = _among_others(ordered, own, ranks(m - len(own), levels))
        n_beyond = np.empty(m, np.uint8)
        kernel.place(sizes, fold, radii, n_beyond)
        return cls(sizes, ordered, fold, levels, ordered[ranks(m, levels) - 1], radii, n_beyond)

    @property
    def largest(self) -> float:
        """The largest size."""
        return float(self.ordered[-1])

    @property
    def unit(self) -> float:
        """The largest error: in units of it no sum and no square can overflow."""
        return self.largest or 1.0

    def order_statistics(self, ranks: NDArray[np.intp]) -> Array:
        """Sizes of these ranks among all rows."""
        return np.asarray(self.ordered[ranks - 1])

    @property
    def coverage_ranges(self) -> Array:
        """Where the true coverage of the radii lies, (levels, 2)."""
        m = len(self.sizes)
        some = self.sizes[some_rows(m, N_COMPARED)]
        is_tied = self.is_tied | (len(np.unique(some)) < len(some))
        return coverage_ranges(m, self.levels, np.searchsorted(self.ordered, self.radius, "right") + is_tied)

    @property
    def is_tied(self) -> NDArray[np.bool_]:
        """Whether several errors equal the radius, (levels,)."""
        n_up_to = np.searchsorted(self.ordered, self.radius, "right")
        return np.asarray(n_up_to - np.searchsorted(self.ordered, self.radius) > 1)

    def covered(self, rows: NDArray[np.intp], level: int) -> NDArray[np.bool_]:
        """Which of these rows lie within the radius of the other folds."""
        return np.asarray(self.n_beyond[rows] <= level)

    def parts(self, codes: NDArray[np.integer[Any]], n_parts: int) -> Covered:
        """Coverage at all levels in each part of the rows."""
        part = codes.astype(np.uint8)
        n_beyond = _sums(part, self.n_beyond, (n_parts, len(self.levels) + 1)).astype(np.intp)
        rows = n_beyond.sum(axis=1)
        held = np.flatnonzero(rows)
        radius = np.full((n_parts, len(self.levels)), np.nan)
        ordered = kernel.sorted_groups(self.sizes, part, n_parts)
        radius[held] = [ordered[i][ranks(int(rows[i]), self.levels) - 1] for i in held]
        return Covered(rows, np.cumsum(n_beyond[:, :-1], axis=1), radius)

    def mean_interval_scores(self) -> tuple[Array, Array]:
        """Mean interval score of all rows at each level, and its standard error, which is NaN for a single row."""
        m, unit, near = len(self.n_beyond), self.unit, float(self.radius[0])
        shape, x = (len(self.radii), len(self.levels) + 1), (self.sizes - near) / unit
        sums = np.stack([_sums(self.fold, self.n_beyond, shape, own) for own in (None, x, x * x)], axis=2)
        n_rows = sums[:, :, 0].sum(axis=1)[:, None]
        # Rows beyond the radius at a level: number, sum and sum of squares.
        n, total, squares = np.moveaxis(np.cumsum(sums[:, :0:-1], axis=1)[:, ::-1], 2, 0)
        # Radii, as errors, from what they are near to: those of a model with a large bias differ by little.
        fine, middle, reach = 2.0 / (1.0 - self.levels), (self.radius - near) / unit, (self.radii - near) / unit
        fines = fine * np.maximum(total - n * reach, 0.0)
        fines_squared = fine**2 * np.maximum(squares - 2.0 * reach * total + n * reach**2, 0.0)
        shift = 2.0 * (reach - middle)  # around the radius of all rows, so that nothing cancels
        first = (n_rows * shift + fines).sum(axis=0)
        second = (n_rows * shift**2 + 2.0 * shift * fines + fines_squared).sum(axis=0)
        mean = 2.0 * self.radius + first / m * unit
        if m < 2:
            return mean, np.full(len(mean), math.nan)
        return mean, np.sqrt(np.maximum(second - first**2 / m, 0.0) / (m - 1) / m) * unit


def _among_others(ordered: Array, left_out: Array, ranks: NDArray[np.intp]) -> Array:
    """Values of these ranks, from 1 up, among sorted values without some of them, which are sorted, too.

    Each value left out up to there moves the rank among all by one, until none is left to do so.
    """
    found = ordered[ranks - 1]
    while True:
        before, found = found, ordered[ranks - 1 + np.searchsorted(left_out, found, "right")]
        if (found == before).all():
            return np.asarray(found)


def _sums(
    first: NDArray[np.uint8], second: NDArray[np.uint8], shape: tuple[int, int], values: Array | None = None
) -> Array:
    """Sums of values, or how many there are, for each pair of codes."""
    sums = np.zeros(shape)
    for start in range(0, len(first), AT_ONCE):
        block = slice(start, start + AT_ONCE)
        pairs = first[block].astype(np.intp) * shape[1] + second[block]
        sums += np.bincount(pairs, None if values is None else values[block], sums.size).reshape(shape)
    return sums


def folds(m: int, n_folds: int) -> NDArray[np.uint8]:
    """Fold of each row: as many consecutive rows as folds take one turn each, beginning with a random one.

    The sizes of folds differ by one at most, and no rhythm of the rows can fall in with that of the folds.
    """
    first = np.random.default_rng(m).integers(n_folds, size=-(-m // n_folds), dtype=np.uint8)
    turns = np.arange(n_folds, dtype=np.uint8)
    return np.take((turns[:, None] + turns) % np.uint8(n_folds), first, axis=0).ravel()[:m]


def ranks(m: int, levels: Array) -> NDArray[np.intp]:
    """Rank of the radius among m errors at each level, at most m."""
    return np.array([min(rank(m, float(p)), m) for p in levels], np.intp)


def coverage_ranges(m: int, levels: Array, reached: NDArray[np.intp]) -> Array:
    """5 % and 95 % points of the true coverage of the radii of m rows, (levels, 2).

    Errors that are never alike leave nothing between a radius and the share of its rank. Where some are alike, new ones
    may equal the radius, too, and it covers up to the next larger one: `reached` is the rank of that one, m + 1 if
    there is none. Otherwise it is the rank of the radius.
    """
    ends = np.array([rank_guarantee(m, float(p)).coverage_range for p in levels])
    is_tied = reached > ranks(m, levels)
    k = reached[is_tied]
    ends[is_tied, 1] = np.where(k > m, 1.0, betaincinv(k, np.maximum(m + 1 - k, 1), RANGE[1]))
    return ends


def interval_scores(sizes: Array, reach: Array, level: float) -> Array:
    """Interval score of rows with errors of these sizes and half widths."""
    return np.asarray(2.0 * reach + 2.0 / (1.0 - level) * np.maximum(sizes - reach, 0.0))
