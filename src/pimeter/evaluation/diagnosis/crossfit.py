"""Cross-fitting: margins from nine tenths of the rows, coverage on the tenth that they have not seen.

On its own rows a margin covers exactly k/m, whatever the data. Residuals are sorted once for all levels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import betaincinv

from pimeter._kernels.dispatch import kernel
from pimeter.arrays import some_rows
from pimeter.conformal.guarantee import rank, rank_guarantee
from pimeter.coverage import RANGE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pimeter.protocols import Array, Flags, Index

N_FOLDS = 10
N_COMPARED = 5000  # rows that tell whether residuals are tied
VALUES_IN_CACHE = 1 << 15


@dataclass(frozen=True)
class Covered:
    """How subgroups of the rows are covered, at each level, by margins that have not seen them."""

    rows: Index  # (subgroups,)
    inside: Index  # (subgroups, levels) rows within the margin
    margin: Array  # (subgroups, levels), learned from these rows alone; NaN for subgroups without rows


@dataclass(frozen=True)
class CrossFit:
    """Absolute residuals in folds, and the margins that the other folds give at some levels."""

    absolute: Array  # (m,) absolute residuals
    ordered: Array  # (m,) in rising order
    fold: NDArray[np.uint8]  # (m,)
    levels: Array  # (levels,)
    margin: Array  # (levels,) of all rows
    fold_margins: Array  # (folds, levels) of the rows of all other folds, NaN where there is no other row
    n_beyond: NDArray[np.uint8]  # (m,) at how many levels each row is farther out than its fold's margin

    @classmethod
    def of(cls, absolute: Array, levels: Array) -> CrossFit:
        """Put rows into folds and learn the margins."""
        m = len(absolute)
        n_folds = min(N_FOLDS, m)
        fold = folds(m, n_folds)
        ordered = kernel.sorted_groups(absolute)[0]
        margins = np.full((n_folds, len(levels)), np.nan)
        for i, own in enumerate(kernel.sorted_groups(absolute, fold, n_folds) if m > 1 else ()):
            margins[i] = _among_others(ordered, own, ranks(m - len(own), levels))
        n_beyond = np.empty(m, np.uint8)
        kernel.place(absolute, fold, margins, n_beyond)
        return cls(absolute, ordered, fold, levels, ordered[ranks(m, levels) - 1], margins, n_beyond)

    @property
    def largest(self) -> float:
        """The largest absolute residual."""
        return float(self.ordered[-1])

    @property
    def unit(self) -> float:
        """The largest absolute residual: in units of it no sum and no square can overflow."""
        return self.largest or 1.0

    def order_statistics(self, ranks: Index) -> Array:
        """Absolute residuals of these ranks among all rows."""
        return np.asarray(self.ordered[ranks - 1])

    @property
    def coverage_ranges(self) -> Array:
        """5 % and 95 % points of the true coverage of the margins, (levels, 2)."""
        m = len(self.absolute)
        some = self.absolute[some_rows(m, N_COMPARED)]
        is_tied = self.is_tied | (len(np.unique(some)) < len(some))
        return coverage_ranges(m, self.levels, np.searchsorted(self.ordered, self.margin, "right") + is_tied)

    @property
    def is_tied(self) -> Flags:
        """Whether several absolute residuals equal the margin, (levels,)."""
        n_up_to = np.searchsorted(self.ordered, self.margin, "right")
        return np.asarray(n_up_to - np.searchsorted(self.ordered, self.margin) > 1)

    def covered(self, rows: Index, level: int) -> Flags:
        """Which of these rows lie within the margin of the other folds."""
        return np.asarray(self.n_beyond[rows] <= level)

    def subgroups(self, codes: NDArray[np.integer[Any]], n_subgroups: int) -> Covered:
        """Coverage at all levels in each subgroup of the rows."""
        subgroup = codes.astype(np.uint8)
        n_beyond = _sums(subgroup, self.n_beyond, (n_subgroups, len(self.levels) + 1)).astype(np.intp)
        rows = n_beyond.sum(axis=1)
        held = np.flatnonzero(rows)
        margin = np.full((n_subgroups, len(self.levels)), np.nan)
        ordered = kernel.sorted_groups(self.absolute, subgroup, n_subgroups)
        margin[held] = [ordered[i][ranks(int(rows[i]), self.levels) - 1] for i in held]
        return Covered(rows, np.cumsum(n_beyond[:, :-1], axis=1), margin)

    def mean_interval_scores(self) -> Array:
        """Mean interval score of all rows at each level; NaN for a single row."""
        m, unit, near = len(self.n_beyond), self.unit, float(self.margin[0])
        shape, x = (len(self.fold_margins), len(self.levels) + 1), (self.absolute - near) / unit
        sums = np.stack([_sums(self.fold, self.n_beyond, shape, own) for own in (None, x)], axis=2)
        n_rows = sums[:, :, 0].sum(axis=1)[:, None]
        # Rows beyond the margin at a level: number and sum.
        n, total = np.moveaxis(np.cumsum(sums[:, :0:-1], axis=1)[:, ::-1], 2, 0)
        # Margins, as residuals, from what they are near to: those of a model with a large bias differ by little.
        centre, margins = (self.margin - near) / unit, (self.fold_margins - near) / unit
        penalty = 2.0 / (1.0 - self.levels) * np.maximum(total - n * margins, 0.0)
        shift = 2.0 * (margins - centre)  # around the margin of all rows, so that nothing cancels
        return np.asarray(2.0 * self.margin + (n_rows * shift + penalty).sum(axis=0) / m * unit)


def _among_others(ordered: Array, left_out: Array, ranks: Index) -> Array:
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
    for start in range(0, len(first), VALUES_IN_CACHE):
        block = slice(start, start + VALUES_IN_CACHE)
        pairs = first[block].astype(np.intp) * shape[1] + second[block]
        sums += np.bincount(pairs, None if values is None else values[block], sums.size).reshape(shape)
    return sums


def folds(m: int, n_folds: int) -> NDArray[np.uint8]:
    """Fold of each row: as many consecutive rows as folds take one turn each, beginning with a random one.

    Folds differ by one row at most, and no rhythm of the rows can fall in with that of the folds.
    """
    first = np.random.default_rng(m).integers(n_folds, size=-(-m // n_folds), dtype=np.uint8)
    turns = np.arange(n_folds, dtype=np.uint8)
    return np.take((turns[:, None] + turns) % np.uint8(n_folds), first, axis=0).ravel()[:m]


def ranks(m: int, levels: Array) -> Index:
    """Rank of the margin among m absolute residuals at each level, at most m."""
    return np.array([min(rank(m, float(p)), m) for p in levels], np.intp)


def coverage_ranges(m: int, levels: Array, covered_rank: Index) -> Array:
    """5 % and 95 % points of the true coverage of the margins of m rows, (levels, 2).

    Where residuals are never tied, a margin covers the proportion of its rank and nothing more. Where some are tied,
    new ones may equal the margin, too, and it covers up to the next larger one: `covered_rank` is the rank of that
    one, m + 1 if there is none. Otherwise it is the rank of the margin.
    """
    points = np.array([rank_guarantee(m, float(p)).coverage_range for p in levels])
    is_tied = covered_rank > ranks(m, levels)
    k = covered_rank[is_tied]
    points[is_tied, 1] = np.where(k > m, 1.0, betaincinv(k, np.maximum(m + 1 - k, 1), RANGE[1]))
    return points
