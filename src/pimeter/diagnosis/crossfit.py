"""Cross-fitting: radii from nine tenths of the rows, coverage on the tenth that they have not seen.

On its own rows a radius covers exactly k/m, whatever the data. One sort of the errors of each fold serves all levels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from scipy.sparse import csc_array

from pimeter.promise import rank

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

N_FOLDS = 10
MANY = 200_000  # values from which on threads are worth their start

T = TypeVar("T")
R = TypeVar("R")


class Covered(NamedTuple):
    """What radii that have not seen them do for some of the rows, at each level."""

    rows: NDArray[np.intp]  # (parts,)
    inside: NDArray[np.intp]  # (parts, levels) rows within the radius
    radius: Array  # (parts, levels), learned from these rows alone; NaN for parts without rows


@dataclass(frozen=True)
class CrossFit:
    """Sizes of errors in parts and folds, and the radii that the other folds give at some levels."""

    sizes: Array  # (m,)
    fold: NDArray[np.uint8]  # (m,)
    levels: Array  # (levels,)
    groups: list[list[Array]]  # sizes in order, for each part and in it for each fold
    wholes: list[Array]  # sizes of each part in order
    ordered: Array  # (m,) all sizes in order
    radii: Array  # (folds, levels), NaN where there is no other row

    @classmethod
    def of(
        cls, sizes: Array, levels: Array, parts: NDArray[np.integer[Any]] | None = None, n_parts: int = 1
    ) -> CrossFit:
        """Put rows into folds, those of each part by themselves, and learn the radii."""
        m = len(sizes)
        n_folds = min(N_FOLDS, m)
        fold = folds(m, n_folds)
        groups = _grouped(sizes, parts, n_parts, fold, n_folds)
        wholes = _each(_merged, groups, m)
        ordered = _merged(wholes)
        radii = np.full((n_folds, len(levels)), np.nan)
        if m > 1:
            for i, own in enumerate(zip(*groups, strict=True)):
                radii[i] = _without(ordered, own, ranks(m - sum(map(len, own)), levels))
        return cls(sizes, fold, levels, groups, wholes, ordered, radii)

    def regrouped(self, parts: NDArray[np.integer[Any]], n_parts: int) -> CrossFit:
        """The same folds and radii, with other parts."""
        groups = _grouped(self.sizes, parts, n_parts, self.fold, len(self.radii))
        return replace(self, groups=groups, wholes=_each(_merged, groups, len(self.sizes)))

    @property
    def radius(self) -> Array:
        """Radius of all rows at each level."""
        return np.asarray(self.ordered[ranks(len(self.ordered), self.levels) - 1])

    @property
    def unit(self) -> float:
        """The largest error: in units of it no sum and no square can overflow."""
        return float(self.ordered[-1]) or 1.0

    def covered(self, rows: NDArray[np.intp], level: int) -> NDArray[np.bool_]:
        """Which of these rows lie within the radius of the other folds."""
        return np.asarray(self.sizes[rows] <= self.radii[self.fold[rows], level])

    def parts(self) -> Covered:
        """Coverage at all levels in each part."""
        inside = np.zeros((len(self.groups), len(self.levels)), np.intp)
        radius = np.full(inside.shape, np.nan)
        for i, (part, whole) in enumerate(zip(self.groups, self.wholes, strict=True)):
            for own, reach in zip(part, self.radii, strict=True):
                inside[i] += np.searchsorted(own, reach, side="right")
            if len(whole):
                radius[i] = whole[ranks(len(whole), self.levels) - 1]
        return Covered(np.array([len(whole) for whole in self.wholes]), inside, radius)

    def mean_interval_scores(self) -> tuple[Array, Array]:
        """Mean interval score of all rows at each level, and its standard error, which is NaN for a single row."""
        m, unit = len(self.sizes), self.unit
        fine, middle = 2.0 / (1.0 - self.levels), self.radius / unit
        total, squares = np.zeros(len(self.levels)), np.zeros(len(self.levels))
        for part in self.groups:
            for own, radius in zip(part, self.radii, strict=True):
                reach = radius / unit
                n, sums, sums_of_squares = _beyond(own, radius, unit)
                fines = fine * np.maximum(sums - n * reach, 0.0)
                fines_squared = fine**2 * np.maximum(sums_of_squares - 2.0 * reach * sums + n * reach**2, 0.0)
                shift = 2.0 * (reach - middle)  # around the radius of all rows, so that nothing cancels
                total += len(own) * shift + fines
                squares += len(own) * shift**2 + 2.0 * shift * fines + fines_squared
        mean = (2.0 * middle + total / m) * unit
        if m < 2:
            return mean, np.full(len(mean), math.nan)
        return mean, np.sqrt(np.maximum(squares - total**2 / m, 0.0) / (m - 1) / m) * unit


def folds(m: int, n_folds: int) -> NDArray[np.uint8]:
    """Fold of each row: as many consecutive rows as folds take one turn each, beginning with a random one.

    The sizes of folds differ by one at most, and no rhythm of the rows can fall in with that of the folds.
    """
    n_turns = -(-m // n_folds)
    first = np.random.default_rng(m).integers(n_folds, size=(n_turns, 1), dtype=np.uint8)
    turns = np.mod(first + np.arange(n_folds, dtype=np.uint8), n_folds, dtype=np.uint8)
    return turns.ravel()[:m]


def ranks(m: int, levels: Array) -> NDArray[np.intp]:
    """Rank of the radius among m errors at each level, at most m."""
    return np.array([min(rank(m, float(p)), m) for p in levels], np.intp)


def interval_scores(sizes: Array, reach: Array, level: float) -> Array:
    """Interval score of rows with errors of these sizes and half widths."""
    return np.asarray(2.0 * reach + 2.0 / (1.0 - level) * np.maximum(sizes - reach, 0.0))


def _grouped(
    sizes: Array, parts: NDArray[np.integer[Any]] | None, n_parts: int, fold: NDArray[np.uint8], n_folds: int
) -> list[list[Array]]:
    """Sizes in order, for each part and in it for each fold."""
    code = fold.astype(np.int32) if parts is None else parts.astype(np.int32) * np.int32(n_folds) + fold
    # One value in each column: the same matrix by rows has them in groups, which is faster than to sort the codes.
    places = np.arange(len(sizes) + 1, dtype=np.int32)
    table = csc_array((sizes, code, places), shape=(n_parts * n_folds, len(sizes))).tocsr()
    groups = np.split(table.data, table.indptr[1:-1])
    _each(np.ndarray.sort, groups, len(sizes))
    return [groups[i * n_folds : (i + 1) * n_folds] for i in range(n_parts)]


def _each(work: Callable[[T], R], lists: list[T], m: int) -> list[R]:
    """The work on each list, at the same time if there are many values; the answer is the same."""
    if m < MANY:
        return [work(one) for one in lists]
    with ThreadPoolExecutor() as pool:
        return list(pool.map(work, lists))


def _merged(runs: list[Array]) -> Array:
    """Sorted lists as one; numpy's stable sort finds the runs and merges them."""
    return np.sort(np.concatenate(runs), kind="stable")


def _beyond(own: Array, radius: Array, unit: float) -> tuple[NDArray[np.intp], Array, Array]:
    """At each radius, in rising order: number of values beyond it, their sum and that of their squares, in a unit."""
    first = np.searchsorted(own, radius, side="right")
    tail = np.append(own[first[0] :] / unit, 0.0)  # a segment may begin where the values end
    start = first - first[0]
    is_empty = np.append(start[1:] == start[:-1], False)

    def summed(values: Array) -> Array:
        segments = np.where(is_empty, 0.0, np.add.reduceat(values, start))
        return np.asarray(np.cumsum(segments[::-1])[::-1])

    return len(own) - first, summed(tail), summed(tail**2)


def _without(ordered: Array, own: tuple[Array, ...], ranks: NDArray[np.intp]) -> Array:
    """Order statistics of these ranks among all values but some lists, by bisection over their places among all."""
    low, high = np.zeros(len(ranks), np.intp), np.full(len(ranks), len(ordered) - 1)
    for _ in range(math.ceil(math.log2(len(ordered))) + 1):
        middle = (low + high) // 2
        value = ordered[middle]
        n_others = np.searchsorted(ordered, value, side="right")
        for one in own:
            n_others -= np.searchsorted(one, value, side="right")
        enough = n_others >= ranks
        high = np.where(enough, middle, high)
        low = np.where(enough, low, np.minimum(middle + 1, high))
    return np.asarray(ordered[high])
