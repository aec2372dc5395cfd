"""What surrounds a row: how far its nearest known rows are, and what their targets and errors say of its prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.neighbors import NearestNeighbors

from pimeter.regression.features import LARGEST_FEATURE, MAX_COLUMNS, Features, beside, is_table

if TYPE_CHECKING:
    from pimeter.protocols import Array, FeatureTable, Index
    from pimeter.regression.features import NumberTable

NEIGHBOURS = (1, 5, 10)  # neighbours: the nearest one, some, and all that are looked at
ROWS_TO_SEARCH = 10_000  # rows that are enough to find neighbours among


class Surroundings:
    """`Features` for trees, and columns that tell of each row's neighbours among the rows that errors are known of.

    Those are the distances of neighbours 1, 5 and 10, their mean absolute errors, and how far their targets lie
    from the row's prediction and from each other.
    """

    def __init__(self, X: FeatureTable, prediction: Array, errors: Array, random_state: int) -> None:
        self.plain = Features(for_distance=False).fit(X, prediction)
        self.places = Features(for_distance=True, max_columns=MAX_COLUMNS).fit(X, _beside(X, prediction))
        unit = np.abs(errors).mean(axis=0)
        self.unit = np.where(unit > 0.0, unit, 1.0)
        self.rows = np.sort(np.random.default_rng(random_state).permutation(len(errors))[:ROWS_TO_SEARCH])
        self.absolute, self.targets = np.abs(errors)[self.rows], (prediction + errors)[self.rows]
        self.near = NearestNeighbors(n_neighbors=min(NEIGHBOURS[-1], len(self.rows) - 1))
        self.near.fit(self._places(X, prediction)[self.rows])

    def known(self, X: FeatureTable, prediction: Array) -> NumberTable:
        """The very rows that this was learned from, each of them without itself among its neighbours."""
        own = self._columns(prediction[self.rows], *self.near.kneighbors())
        columns = np.empty((len(prediction), own.shape[1]))
        columns[self.rows] = own
        others = np.setdiff1d(np.arange(len(prediction)), self.rows)
        if others.size:
            found = self.near.kneighbors(self._places(X, prediction)[others])
            columns[others] = self._columns(prediction[others], *found)
        return self._joined(X, prediction, columns)

    def transform(self, X: FeatureTable, prediction: Array) -> NumberTable:
        """What is known of new rows: their features, and residuals of rows near them."""
        found = self.near.kneighbors(self._places(X, prediction))
        return self._joined(X, prediction, self._columns(prediction, *found))

    def _joined(self, X: FeatureTable, prediction: Array, columns: Array) -> NumberTable:
        return beside(self.plain.transform(X, prediction), np.clip(columns, -LARGEST_FEATURE, LARGEST_FEATURE))

    def _places(self, X: FeatureTable, prediction: Array) -> Array:
        return np.asarray(self.places.transform(X, _beside(X, prediction)))

    def _columns(self, prediction: Array, distances: Array, rows: Index) -> Array:
        absolute = self.absolute[rows] / self.unit  # (n, neighbours, k)
        targets = self.targets[rows]
        apart = np.abs(targets - prediction[:, None]) / self.unit
        first, some, most = NEIGHBOURS
        return np.column_stack(
            [
                *(distances[:, min(k, distances.shape[1]) - 1] for k in NEIGHBOURS),
                *(absolute[:, :k].mean(axis=1) for k in (some, most)),
                *(apart[:, :k].mean(axis=1) for k in (first, some)),
                targets.std(axis=1) / self.unit,
            ]
        )


def _beside(X: FeatureTable, prediction: Array) -> Array:
    """What else tells where a row is: its prediction if X has no columns.

    Otherwise two rows at one place are twins, even if models that have not seen them predict different things there.
    """
    return np.zeros((len(prediction), 1)) if is_table(X) else prediction
