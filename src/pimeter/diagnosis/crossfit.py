"""Cross-fitting: radii from nine tenths of the rows, coverage on the tenth that they have not seen.

On its own rows a radius covers exactly k/m, whatever the data. One sort of the errors of each fold serves all levels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pimeter.promise import rank

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

N_FOLDS = 10


class Covered(NamedTuple):
    """What radii that have not seen them do for some of the rows, at each level."""

    rows: NDArray[np.intp]  # (parts,)
    inside: NDArray[np.intp]  # (parts, levels) rows within the radius
    radius: Array  # (parts, levels), learned from these rows alone; NaN for parts without rows


@dataclass(frozen=True)
class CrossFit:
    """Sizes of errors in folds, and the radii that the other folds give at some levels."""

    sizes: Array  # (m,)
    fold: NDArray[np.uint8]  # (m,)
    levels: Array  # (levels,)
    ordered: Array  # (m,) all sizes in order
    own: list[Array]  # sizes of each fold in order
    radii: Array  # (folds, levels), NaN where there is no other row

    @classmethod
    def of(cls, sizes: Array, levels: Array) -> CrossFit:
        """Put rows into folds and learn the radii."""
        m = len(sizes)
        n_folds = min(N_FOLDS, m)
        fold = folds(m, n_folds)
        ordered = np.sort(sizes)
        own = _sorted_groups(sizes, fold, n_folds)
        radii = np.full((n_folds, len(levels)), np.nan)
        if m > 1:
            for i, seen in enumerate(own):
                radii[i] = _without(ordered, seen, ranks(m - len(seen), levels))
        return cls(sizes, fold, levels, ordered, own, radii)

    @property
    def radius(self) -> Array:
        """Radius of all rows at each level."""
        return np.asarray(self.ordered[ranks(len(self.ordered), self.levels) - 1])

    def covered(self, level: int) -> NDArray[np.bool_]:
        """Which rows lie within the radius of the other folds."""
        return np.asarray(self.sizes <= self.radii[self.fold, level])

    def interval_scores(self, level: int) -> Array:
        """Interval score of each row."""
        return interval_scores(self.sizes, self.radii[self.fold, level], float(self.levels[level]))

    def mean_interval_scores(self) -> Array:
        """Mean interval score of all rows at each level."""
        total = np.zeros(len(self.levels))
        for seen, reach in zip(self.own, self.radii, strict=True):
            above = np.concatenate([np.cumsum(seen[::-1])[::-1], [0.0]])
            first = np.searchsorted(seen, reach, side="right")
            beyond = np.maximum(above[first] - reach * (len(seen) - first), 0.0)
            total += 2.0 * len(seen) * reach + 2.0 / (1.0 - self.levels) * beyond
        return total / len(self.sizes)

    def parts(self, codes: NDArray[Any], n_parts: int) -> Covered:
        """Coverage at all levels, in each part of the rows."""
        n_folds = len(self.radii)
        group = (codes * n_folds + self.fold).astype(np.uint16)  # few bits sort fast
        inside = np.zeros((n_parts, len(self.levels)), np.intp)
        groups = _sorted_groups(self.sizes, group, n_parts * n_folds)
        radius = np.full(inside.shape, np.nan)
        rows = np.zeros(n_parts, np.intp)
        for part in range(n_parts):
            own = groups[part * n_folds : (part + 1) * n_folds]
            for seen, reach in zip(own, self.radii, strict=True):
                inside[part] += np.searchsorted(seen, reach, side="right")
            together = np.sort(np.concatenate(own))
            rows[part] = len(together)
            if len(together):
                radius[part] = together[ranks(len(together), self.levels) - 1]
        return Covered(rows, inside, radius)


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


def _sorted_groups(values: Array, group: NDArray[Any], n_groups: int) -> list[Array]:
    """Values of each group, in order."""
    gathered = values[np.argsort(group, kind="stable")]
    parts = np.split(gathered, np.cumsum(np.bincount(group, minlength=n_groups))[:-1])
    for part in parts:
        part.sort()
    return parts


def _without(ordered: Array, own: Array, ranks: NDArray[np.intp]) -> Array:
    """Order statistics of these ranks among all values but a fold's own, by bisection over their places among all."""
    low, high = np.zeros(len(ranks), np.intp), np.full(len(ranks), len(ordered) - 1)
    for _ in range(math.ceil(math.log2(len(ordered))) + 1):
        middle = (low + high) // 2
        value = ordered[middle]
        n_others = np.searchsorted(ordered, value, side="right") - np.searchsorted(own, value, side="right")
        enough = n_others >= ranks
        high = np.where(enough, middle, high)
        low = np.where(enough, low, np.minimum(middle + 1, high))
    return np.asarray(ordered[high])
