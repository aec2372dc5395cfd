"""Local neurons: quantiles of the errors of rows that are near, for each new row its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np
from scipy.sparse import csr_array
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.metrics.pairwise import euclidean_distances

from pimeter._kernels.arrays import nearby_quantiles
from pimeter.regression.features import MAX_COLUMNS
from pimeter.regression.scaled import MIN_SCALE, ROWS_IN_LEAF, ROWS_OF_TREE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pimeter.protocols import Array, FeatureTable, Flags, Index
    from pimeter.regression.features import Features, NumberTable

WEIGHTS_AT_ONCE = 4_000_000  # weights that are held at a time
ROWS_TO_CHOOSE_BY = 1000  # rows that choose the number of neighbours
MIN_SQUARED_DISTANCE = 1e-9  # squared distance, in standard deviations, below which rows are at the same place
TARGETS_IN_LEAF = 5  # at least in a leaf, where targets are learned: they tell more of each other than residuals do
ROWS_OF_TARGET_TREE = 2000  # that are enough for each tree of targets
TREES_OF_LEAVES = 60  # enough for quantiles, whose rows are weighted by common leaves
COLUMNS_TO_SEARCH = 12  # of which a split is the best of all
MIN_NEIGHBOURS = 25  # neighbours to choose from: this many, twice, four times ... as many


class Nearness(Protocol):
    """Tells how near the rows are that errors are known of."""

    def weights(self, known: NumberTable) -> Array:
        """Weights of the known rows for each new row, (n, m)."""


class LocalNeurons(NamedTuple):
    """Errors of one output in order, and the nearness of their rows."""

    near: Nearness
    order: Index
    values: Array
    mean: float

    def margins(self, known: NumberTable, levels: Array) -> Array:
        """Local quantiles of new rows as margins below and above, (2, n); never quite 0.

        Two levels are the lower and the upper bound; one alone serves for both.
        """
        return self._margins(known.shape[0], levels, lambda block: self.near.weights(known[block]))

    def margins_unseen(self, known: NumberTable, rows: Index, levels: Array) -> Array | None:
        """Margins (2, n) of some of the rows whose errors are kept here, as if they were new; None if not known."""
        if not isinstance(self.near, Leaves):
            return None
        near = self.near
        unseen = near.out_of_bag()[rows]
        return self._margins(len(rows), levels, lambda block: near.weights_unseen(known, rows[block], unseen[block]))

    def _margins(self, n: int, levels: Array, weights_of: Callable[[slice], Array]) -> Array:
        """Local quantiles of n rows, by the weights of some of them at a time."""
        found = np.empty((n, levels.size))
        step = max(1, WEIGHTS_AT_ONCE // len(self.values))
        for start in range(0, n, step):
            block = slice(start, min(start + step, n))
            found[block] = nearby_quantiles(self.values, weights_of(block)[:, self.order], levels)
        lower, upper = -found[:, 0] if levels.size > 1 else found[:, 0], found[:, -1]
        short = np.maximum(MIN_SCALE * self.mean - (lower + upper) / 2.0, 0.0)
        return np.stack([lower + short, upper + short])


def local_neurons(
    known: NumberTable,
    residuals: Array,
    kind: Literal["forest", "kernel"],
    is_signed: bool,
    random_state: int,
) -> list[LocalNeurons | None]:
    """Neurons of each output of residuals (m, k), of the rows of this table; None if they are too few, or all 0."""
    found: list[LocalNeurons | None] = []
    for column in residuals.T:
        absolute = np.abs(column)
        mean = float(absolute.mean())
        if len(absolute) < ROWS_IN_LEAF or mean == 0.0:
            found.append(None)
            continue
        near: Nearness
        # In units of their mean: what is learned does not depend on the unit of y.
        if kind == "forest":
            near = Leaves.of(_forest(known.shape, random_state).fit(known, absolute / mean), known)
        else:
            near = Neighbours.chosen(known, absolute / mean, random_state)
        values = column if is_signed else absolute
        order = np.argsort(values, kind="stable")
        found.append(LocalNeurons(near, order, values[order], mean))
    return found


def neurons_of_targets(
    known: NumberTable, targets: Array, residuals: Array, random_state: int
) -> list[LocalNeurons | None]:
    """Neurons of each output of targets (m, k), by trees grown on these; None if too few, or all residuals are 0."""
    found: list[LocalNeurons | None] = []
    for column, mean in zip(targets.T, np.abs(residuals).mean(axis=0).tolist(), strict=True):
        if len(column) < ROWS_IN_LEAF or mean == 0.0:
            found.append(None)
            continue
        forest = _target_trees(known.shape, random_state).fit(known, (column - column.mean()) / mean)
        order = np.argsort(column, kind="stable")
        found.append(LocalNeurons(Leaves.of(forest, known), order, column[order], mean))
    return found


def local_bounds(
    neurons: Sequence[LocalNeurons | None], features: Features, X: FeatureTable, prediction: Array, levels: Array
) -> Array | None:
    """Local quantiles of all outputs as margins below and above, (2, n, k); None if nothing was learned."""
    if all(one is None for one in neurons):
        return None
    known = features.transform(X, prediction)
    return _of_outputs(
        [None if one is None else one.margins(known, levels) for one in neurons], len(prediction), levels
    )


def local_bounds_unseen(
    neurons: Sequence[LocalNeurons | None],
    features: Features,
    X: FeatureTable,
    prediction: Array,
    rows: Index,
    levels: Array,
) -> Array | None:
    """Margins (2, n, k) of some of the rows that this was learned from, as if they were new; None if not known."""
    known = features.transform(X, prediction)
    found = [None if one is None else one.margins_unseen(known, rows, levels) for one in neurons]
    return None if all(one is None for one in found) else _of_outputs(found, len(rows), levels)


def _of_outputs(margins: Sequence[Array | None], n: int, levels: Array) -> Array:
    """Margins of each output, (2, n), as (2, n, k)."""
    bounds = np.full((2, n, len(margins)), 1.0 if levels.size == 1 else 0.0)
    for j, one in enumerate(margins):
        if one is not None:
            bounds[..., j] = one
    return bounds


class Leaves(NamedTuple):
    """Nearness as common leaves of a forest, in which each leaf weighs the same."""

    forest: Any
    starts: Index  # of each tree's leaves among all
    members: csr_array[Any, Any]  # (leaves, m)

    @classmethod
    def of(cls, forest: Any, known: NumberTable) -> Leaves:
        """A forest, and the rows in its leaves."""
        starts = np.cumsum([0, *(tree.tree_.node_count for tree in forest.estimators_)])
        leaves = forest.apply(known) + starts[:-1]
        m, n_trees = leaves.shape
        counts = np.bincount(leaves.ravel(), minlength=starts[-1])
        fraction = 1.0 / counts[leaves.ravel()]
        rows = np.repeat(np.arange(m), n_trees)
        return cls(forest, starts[:-1], csr_array((fraction, (leaves.ravel(), rows)), shape=(starts[-1], m)))

    def weights(self, known: NumberTable) -> Array:
        """Weights (n, m) of known rows for new ones: which fraction of the new one's leaf each is, on average."""
        leaves = self.forest.apply(known) + self.starts
        return self._averaged(leaves, np.ones(leaves.shape))

    def weights_unseen(self, known: NumberTable, rows: Index, unseen: Flags) -> Array:
        """Weights (n, m) for some of the known rows, by trees that have not seen them, and without themselves."""
        leaves = self.forest.apply(known[rows]) + self.starts
        weights = self._averaged(leaves, unseen.astype(np.float64))
        weights[np.arange(len(rows)), rows] = 0.0
        weights[weights.sum(axis=1) <= 0.0] = 1.0  # seen by all trees, or alone in its leaves
        return weights

    def out_of_bag(self) -> Flags:
        """Which of the rows each tree has not seen, (m, n_trees)."""
        unseen = np.ones((self.members.shape[1], len(self.forest.estimators_)), bool)
        for column, seen in zip(unseen.T, self.forest.estimators_samples_, strict=True):
            column[seen] = False
        return unseen

    def _averaged(self, leaves: Index, counts: Array) -> Array:
        """Members of leaves (n, n_trees), each of which counts this much."""
        n, n_trees = leaves.shape
        starts = np.arange(0, leaves.size + 1, n_trees)
        chosen = csr_array((counts.ravel() / n_trees, leaves.ravel(), starts), (n, self.members.shape[0]))
        return np.asarray((chosen @ self.members).toarray())


def _forest(shape: tuple[int, int], random_state: int) -> RandomForestRegressor:
    """Trees with large leaves, for a table of this shape; a split is the best of half of many columns, at most 200."""
    n, d = shape
    most, n_columns = ROWS_OF_TREE if n > ROWS_OF_TREE else None, min(d, max(COLUMNS_TO_SEARCH, d // 2), MAX_COLUMNS)
    options = {"min_samples_leaf": ROWS_IN_LEAF, "max_features": n_columns, "max_samples": most}
    return RandomForestRegressor(TREES_OF_LEAVES, random_state=random_state, **options)


def _target_trees(shape: tuple[int, int], random_state: int) -> ExtraTreesRegressor:
    """Extremely random trees with small leaves: as good as a forest for quantiles of targets, and cheaper."""
    n, d = shape
    most = ROWS_OF_TARGET_TREE if n > ROWS_OF_TARGET_TREE else None
    options = {"min_samples_leaf": TARGETS_IN_LEAF, "max_features": min(d, MAX_COLUMNS), "max_samples": most}
    return ExtraTreesRegressor(TREES_OF_LEAVES, bootstrap=True, random_state=random_state, **options)


class Neighbours(NamedTuple):
    """Nearness as 1 - (d/d_k)^2, with the distance d_k of the k-th neighbour: 0 from there on."""

    rows: Array
    k: int

    @classmethod
    def chosen(cls, known: Any, absolute: Array, random_state: int) -> Neighbours:
        """Neighbours in the number that tells most of each other's errors, tried on some of the rows."""
        m = len(absolute)
        pilot = np.random.default_rng(random_state).permutation(m)[:ROWS_TO_CHOOSE_BY]
        choices = [MIN_NEIGHBOURS * 2**i for i in range(20) if MIN_NEIGHBOURS * 2**i < m - 2] + [m - 2]
        losses = np.zeros(len(choices))
        for some in np.array_split(pilot, -(-len(pilot) * m // WEIGHTS_AT_ONCE)):
            distances = euclidean_distances(known[some], known, squared=True)
            distances[np.arange(len(some)), some] = np.inf  # left out
            for i, k in enumerate(choices):
                weights = _within(distances, k)
                expected = np.maximum((weights @ absolute) / weights.sum(axis=1), MIN_SCALE)
                losses[i] += np.sum(np.log(expected) + absolute[some] / expected)
        return cls(known, choices[int(np.argmin(losses))])

    def weights(self, known: NumberTable) -> Array:
        """Weights of the known rows for each new row, (n, m), by their distance."""
        return _within(euclidean_distances(known, self.rows, squared=True), self.k)


def _within(distances: Array, k: int) -> Array:
    """Weights of rows up to the k-th neighbour; of as many as are just as near where that one is no distance away."""
    farthest = np.partition(distances, k, axis=1)[:, k, None]
    weights = distances / np.maximum(farthest * (1.0 + 1e-9), MIN_SQUARED_DISTANCE)
    np.subtract(1.0, weights, out=weights)
    return np.maximum(weights, 0.0, out=weights)
