"""How large the residual of a row is expected to be, from a forest small enough to be grown at once.

It stands for the one of `ScaledWidth` where the question is only whether that would pay. scikit-learn, which grows the
other one, takes longer to load than all checks take together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pimeter.arrays import ranks

if TYPE_CHECKING:
    from pimeter.protocols import Array, Index

N_TREES = 50  # half as many as a scaled width has, enough to see a gain
N_FEATURE_BINS = 65  # of each feature: all but the last have as many rows each, the last one holds missing values
IN_TREE = 0.632  # fraction of the rows that a tree learns from: that of distinct ones in a bootstrap sample
# As `ScaledWidth` has them:
IN_LEAF = 20  # rows, at least
MIN_SCALE, POWER = 0.05, 0.75  # of the scale


def binned(features: list[Array]) -> Index:
    """Bins of features by their ranks, which have no unit that could overflow, (m, d)."""
    bins = []
    for values in features:
        rank = ranks(values)
        n = int(np.isfinite(rank).sum())
        bins.append(np.nan_to_num((rank - 0.5) * (N_FEATURE_BINS - 1) / max(n, 1), nan=N_FEATURE_BINS - 1))
    return np.column_stack(bins).astype(np.intp)


def learned_scale(bins: Index, absolute: Array, learned: Index, rng: np.random.Generator) -> Array:
    """Scale of every row, (m,), from the absolute residuals of some; those of other rows are not looked at."""
    mean = float(absolute[learned].mean()) or 1.0
    found = expected(bins, absolute, learned, rng) / mean
    return np.asarray(np.maximum(found, MIN_SCALE) ** POWER)


def expected(bins: Index, values: Array, learned: Index, rng: np.random.Generator, in_leaf: int = IN_LEAF) -> Array:
    """Expected value of every row, (m,), from the values of some; those of other rows are not looked at."""
    total = np.zeros(len(bins))
    for _ in range(N_TREES):
        own = rng.choice(learned, round(IN_TREE * len(learned)), replace=False, shuffle=False)
        leaf = _leaves(bins, own, values[own], in_leaf)
        total += (np.bincount(leaf[own], values[own]) / np.bincount(leaf[own]))[leaf]
    return total / N_TREES


def _leaves(bins: Index, own: Index, values: Array, in_leaf: int) -> Index:
    """Leaf of every row in a tree that is grown, level by level, on some rows and their values.

    A leaf is split where the means on both sides differ most, as long as each has rows enough. One that is not split is
    not looked at again.
    """
    m, d = bins.shape
    leaf, n_leaves = np.zeros(m, np.intp), 1
    open_leaves, rows = np.zeros(1, np.intp), np.arange(m)  # that may be split, and all rows in them
    cells = bins[own] + N_FEATURE_BINS * np.arange(d)
    while True:
        shape = (len(open_leaves), d, N_FEATURE_BINS)
        at = np.full(n_leaves, -1)
        at[open_leaves] = np.arange(len(open_leaves))
        places = (cells + at[leaf[own], None] * (d * N_FEATURE_BINS)).ravel()
        below, total = (
            np.cumsum(np.bincount(places, weights, shape[0] * d * N_FEATURE_BINS).reshape(shape), axis=2)
            for weights in (None, np.repeat(values, d))
        )
        n = below[:, :1, -1:]
        above, mean = n - below, total[:, :1, -1:] / n
        between = (total - below * mean) ** 2 / np.maximum(below * above, 1)  # sum of squares between sides, over n
        between[np.minimum(below, above) < in_leaf] = 0.0
        splits = between.reshape(shape[0], -1)
        feature, border = np.divmod(splits.argmax(axis=1), N_FEATURE_BINS)
        is_split = splits.max(axis=1) > 0.0
        if not is_split.any():
            return leaf
        rows = rows[is_split[at[leaf[rows]]]]
        is_kept = is_split[at[leaf[own]]]
        own, cells, values = own[is_kept], cells[is_kept], values[is_kept]
        new = np.full(shape[0], -1)
        new[is_split] = n_leaves + np.arange(np.count_nonzero(is_split))
        old = at[leaf[rows]]
        leaf[rows] = np.where(bins[rows, feature[old]] > border[old], new[old], leaf[rows])
        n_leaves += int(np.count_nonzero(is_split))
        open_leaves = np.concatenate([open_leaves[is_split], new[is_split]])
