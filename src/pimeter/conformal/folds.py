"""CV+: bounds as order statistics over the models of all folds.

Each calibration row i was left out by some of the models; their mean is its own model f_i. The upper bound for a new
row x is the k-th smallest of ``f_i(x) + s_i(x) R_i`` over all i. Rows left out by the same models have one f_i, so
there are as many sorted lists of scores R as there are folds, and the k-th smallest is found by bisection over them, in
memory of the order of the lists and of one prediction per fold. With bootstrap resamples nearly every row has its own
f_i (jackknife+-after-bootstrap), and the values are written out in blocks instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pimeter.protocols import Array, Flags, Index

    Split = tuple[Index, Index]  # rows that train, and rows that are left out, as scikit-learn's splitters give them

VALUES_AT_A_TIME = 2_000_000  # that are written out
MIN_ROWS_TO_BISECT = 40  # rows in a list from which on bisection is faster than writing values out


@dataclass(frozen=True)
class FoldModels:
    """Which calibration rows were left out by which models."""

    list_of_row: Index  # (m,) rows of one list were left out by the same models
    means: Array  # (n_lists, n_models) the mean over these models, as a matrix
    is_complete: bool = True  # whether each model was trained on all rows that it did not leave out
    leave_out_all: bool = True  # whether these are all rows

    @classmethod
    def of(cls, left_out: Flags, *, is_complete: bool = True, leave_out_all: bool = True) -> FoldModels:
        """From a table (m, n_models) that says which model left out which row, each by at least one."""
        patterns, list_of_row = np.unique(left_out, axis=0, return_inverse=True)
        means = patterns / patterns.sum(axis=1, keepdims=True)
        return cls(list_of_row.reshape(-1), means, is_complete, leave_out_all)

    @classmethod
    def of_splits(cls, splits: Sequence[Split], n: int) -> FoldModels:
        """From splits of n rows: folds of those that were left out, by the models that were trained on the others."""
        left_out = np.zeros((n, len(splits)), bool)
        for i, (_, others) in enumerate(splits):
            left_out[others, i] = True
        seen = left_out.any(axis=1)
        is_complete = all(len(np.unique(rows)) + len(np.unique(others)) == n for rows, others in splits)
        return cls.of(left_out[seen], is_complete=is_complete, leave_out_all=bool(seen.all()))

    def rows(self, members: slice | NDArray[Any]) -> FoldModels:
        """Some of the rows."""
        return replace(self, list_of_row=self.list_of_row[members])

    @property
    def leave_out_once(self) -> bool:
        """Whether each row is left out by one model."""
        return bool(self.leave_out_all and (self.means.max(axis=1) == 1.0).all())

    @property
    def are_equal(self) -> bool:
        """Whether the folds that these rows are in differ by one row at most."""
        return bool(np.ptp(np.bincount(self.list_of_row, minlength=len(self.means))) <= 1)

    def averaged(self, values: Array) -> Array:
        """Predictions of all models (n_models, ...), averaged to those of each list's own model, (n_lists, ...)."""
        return np.asarray(np.tensordot(self.means, values, axes=1))


def kth_smallest(centres: Array, scales: Array | None, scores: Array, lists: Index, k: int) -> Array:
    """The k-th smallest of ``centre + scale * score`` over all m scores, each of a list, for each of n new rows.

    Centres and scales (None: 1) are (n_lists, n): what each list's own model says of each new row.
    """
    order = np.lexsort([scores, lists])
    found, starts = np.unique(lists[order], return_index=True)
    if len(scores) < MIN_ROWS_TO_BISECT * len(found):
        return _written_out(centres, scales, scores, lists, k)
    sorted_lists = np.split(scores[order], starts[1:])
    return _bisected(centres[found], None if scales is None else scales[found], sorted_lists, k)


def _written_out(centres: Array, scales: Array | None, scores: Array, lists: Index, k: int) -> Array:
    """All values of a block of new rows, partitioned."""
    n = centres.shape[1]
    found = np.empty(n)
    step = max(1, VALUES_AT_A_TIME // len(scores))
    for start in range(0, n, step):
        block = slice(start, start + step)
        spread = scores if scales is None else scales.T[block, lists] * scores
        values = centres.T[block, lists] + spread
        values.partition(k - 1, axis=1)
        found[block] = values[:, k - 1]
    return found


def _bisected(centres: Array, scales: Array | None, lists: list[Array], k: int) -> Array:
    """Halve the distance between a value below and one above until both are the same member of a list."""
    scale = np.ones((len(lists), 1)) if scales is None else scales
    total = sum(map(len, lists))

    def members(ranks: list[int]) -> Array:
        scores: Array = np.array([one[r - 1] for one, r in zip(lists, ranks, strict=True)])
        return centres + scale * scores[:, None]

    # At proportional ranks in each list: the largest of these members has k below or at it, the smallest fewer.
    low: Array = members([(k - 1) * len(one) // total + 1 for one in lists]).min(axis=0)
    high: Array = members([-(-k * len(one) // total) for one in lists]).max(axis=0)
    rows = np.flatnonzero(low < high)
    scores, own = np.concatenate(lists), np.repeat(np.arange(len(lists)), [len(one) for one in lists])
    while rows.size:
        before = low[rows], high[rows]
        centre, spread = centres[:, rows], scale if scales is None else scale[:, rows]
        middle = 0.5 * low[rows] + 0.5 * high[rows]
        count, below, above = np.zeros(rows.size, np.intp), np.full(rows.size, -np.inf), np.full(rows.size, np.inf)
        for one, c, s in zip(lists, centre, spread, strict=True):
            within = np.searchsorted(one, (middle - c) / s, side="right")
            count += within
            np.maximum(below, np.where(within > 0, c + s * one[within - 1], -np.inf), out=below)
            np.minimum(
                above, np.where(within < len(one), c + s * one[np.minimum(within, len(one) - 1)], np.inf), out=above
            )
        enough = count >= k
        # Rounding may place a member of another list one bit beyond the middle.
        high[rows] = np.where(enough, np.minimum(below, high[rows]), high[rows])
        low[rows] = np.where(enough, low[rows], np.minimum(np.maximum(above, low[rows]), high[rows]))
        goes_on = low[rows] < high[rows]
        stuck = goes_on & (low[rows] == before[0]) & (high[rows] == before[1])  # by rounding, among values like these
        left = rows[stuck]
        high[left] = _written_out(centres[:, left], None if scales is None else scales[:, left], scores, own, k)
        rows = rows[goes_on & ~stuck]
    return np.asarray(high)
