"""Local neurons: quantiles of the errors of rows that are near, for each new row its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import euclidean_distances

from pimeter._kernels.arrays import nearby_quantiles
from pimeter.regression.scaled import LEAST_SCALE, ROWS_IN_LEAF, grown_forest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pimeter.protocols import FeatureTable
    from pimeter.regression.features import Features

    Array = NDArray[np.float64]

WEIGHTS_AT_ONCE = 4_000_000  # weights that are held at a time
PILOT = 1000  # rows that choose the number of neighbours
SAME = 1e-9  # squared distance, in standard deviations, below which rows are at the same place
MIN_NEIGHBOURS = 25  # neighbours to choose from: this many, twice, four times ... as many


class Nearness(Protocol):
    """Tells how near the rows are that errors are known of."""

    def weights(self, known: Any) -> Array:
        """For each new row and each row, (n, m)."""


class LocalNeurons(NamedTuple):
    """Errors of one output in order, and the nearness of their rows."""

    near: Nearness
    order: NDArray[np.intp]
    values: Array
    mean: float

    def margins(self, known: Any, levels: Array) -> Array:
        """Local quantiles of new rows as margins below and above, (2, n); never quite 0.

        Two levels are the lower and the upper bound; one alone serves for both.
        """
        n, m = known.shape[0], len(self.values)
        found = np.empty((n, levels.size))
        step = max(1, WEIGHTS_AT_ONCE // m)
        for start in range(0, n, step):
            weights = self.near.weights(known[start : start + step])[:, self.order]
            found[start : start + step] = nearby_quantiles(self.values, weights, levels)
        lower, upper = -found[:, 0] if levels.size > 1 else found[:, 0], found[:, -1]
        short = np.maximum(LEAST_SCALE * self.mean - (lower + upper) / 2.0, 0.0)
        return np.stack([lower + short, upper + short])


def local_neurons(
    known: Any,
    residuals: Array,
    kind: Literal["forest", "kernel"],
    forests: dict[int, Any] | None,
    is_signed: bool,
    random_state: int,
) -> list[LocalNeurons | None]:
    """For each output of residuals (m, k) of rows that this table tells of; None if they are too few, or all 0."""
    found: list[LocalNeurons | None] = []
    for j, column in enumerate(residuals.T):
        absolute = np.abs(column)
        mean = float(absolute.mean())
        if len(absolute) < ROWS_IN_LEAF or mean == 0.0:
            found.append(None)
            continue
        near: Nearness
        # In units of their mean: what is learned does not depend on the unit of y.
        if kind == "forest":
            near = Leaves.of(grown_forest(known, absolute / mean, j, forests, random_state), known)
        else:
            near = Neighbours.chosen(known, absolute / mean, random_state)
        values = column if is_signed else absolute
        order = np.argsort(values, kind="stable")
        found.append(LocalNeurons(near, order, values[order], mean))
    return found


def local_bounds(
    neurons: Sequence[LocalNeurons | None], features: Features, X: FeatureTable, prediction: Array, levels: Array
) -> Array | None:
    """Local quantiles of all outputs as margins below and above, (2, n, k); None if nothing was learned."""
    if all(one is None for one in neurons):
        return None
    known = features.transform(X, prediction)
    bounds = np.full((2, *prediction.shape), 1.0 if levels.size == 1 else 0.0)
    for j, one in enumerate(neurons):
        if one is not None:
            bounds[..., j] = one.margins(known, levels)
    return bounds


class Leaves(NamedTuple):
    """Nearness as common leaves of a forest, in which each leaf weighs the same."""

    forest: Any
    starts: NDArray[np.intp]  # of each tree's leaves among all
    members: csr_array[Any, Any]  # (leaves, m)

    @classmethod
    def of(cls, forest: Any, known: Any) -> Leaves:
        """A forest, and the rows in its leaves."""
        starts = np.cumsum([0, *(tree.tree_.node_count for tree in forest.estimators_)])
        leaves = forest.apply(known) + starts[:-1]
        m, n_trees = leaves.shape
        counts = np.bincount(leaves.ravel(), minlength=starts[-1])
        fraction = 1.0 / counts[leaves.ravel()]
        rows = np.repeat(np.arange(m), n_trees)
        return cls(forest, starts[:-1], csr_array((fraction, (leaves.ravel(), rows)), shape=(starts[-1], m)))

    def weights(self, known: Any) -> Array:
        """For each new row and each row, (n, m): the fraction that it is of the new one's leaf, averaged over trees."""
        leaves = self.forest.apply(known) + self.starts
        n, n_trees = leaves.shape
        ones = np.full(leaves.size, 1.0 / n_trees)
        chosen = csr_array((ones, leaves.ravel(), np.arange(0, leaves.size + 1, n_trees)), (n, self.members.shape[0]))
        return np.asarray((chosen @ self.members).toarray())


class Neighbours(NamedTuple):
    """Nearness as 1 - (d/d_k)^2, with the distance d_k of the k-th neighbour: 0 from there on."""

    rows: Array
    k: int

    @classmethod
    def chosen(cls, known: Array, absolute: Array, random_state: int) -> Neighbours:
        """With the number of neighbours that tells most of each other's errors, among some of the rows."""
        m = len(absolute)
        pilot = np.random.default_rng(random_state).permutation(m)[:PILOT]
        choices = [MIN_NEIGHBOURS * 2**i for i in range(20) if MIN_NEIGHBOURS * 2**i < m - 2] + [m - 2]
        losses = np.zeros(len(choices))
        for some in np.array_split(pilot, -(-len(pilot) * m // WEIGHTS_AT_ONCE)):
            distances = euclidean_distances(known[some], known, squared=True)
            distances[np.arange(len(some)), some] = np.inf  # left out
            for i, k in enumerate(choices):
                weights = _within(distances, k)
                expected = np.maximum((weights @ absolute) / weights.sum(axis=1), LEAST_SCALE)
                losses[i] += np.sum(np.log(expected) + absolute[some] / expected)
        return cls(known, choices[int(np.argmin(losses))])

    def weights(self, known: Array) -> Array:
        """For each new row and each row, (n, m), by their distance."""
        return _within(euclidean_distances(known, self.rows, squared=True), self.k)


def _within(distances: Array, k: int) -> Array:
    """Weights of rows up to the k-th neighbour; of as many as are just as near where that one is no distance away."""
    farthest = np.partition(distances, k, axis=1)[:, k, None]
    weights = distances / np.maximum(farthest * (1.0 + 1e-9), SAME)
    np.subtract(1.0, weights, out=weights)
    return np.maximum(weights, 0.0, out=weights)
