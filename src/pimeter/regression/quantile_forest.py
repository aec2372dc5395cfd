"""`QuantileForestWidth`: a band between quantiles of the targets of similar rows (quantile regression forest)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np

from pimeter.conformal.scores import TAILS
from pimeter.regression.features import Features
from pimeter.regression.nearness import local_bounds, local_bounds_unseen, neurons_of_targets
from pimeter.regression.width import IntervalShape, Width

if TYPE_CHECKING:
    from pimeter.protocols import Array, FeatureTable, Index


class QuantileForestWidth(Width):
    """A band between two quantiles of the *targets* given X and the prediction, moved by calibration.

    A forest is grown on the targets of rows that do not calibrate, with the prediction as one more column, and the
    targets in a new row's leaves are taken for its distribution (quantile regression forest). Where the model is good,
    a width that learns from residuals is better; where it has few rows or misses something, or where targets take few
    values, this one often is, and `AutoWidth` weighs them. Scores and guarantee are those of `QuantileWidth`.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter import IntervalRegressor
    >>> from pimeter.regression import QuantileForestWidth
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(2000, 1))
    >>> y = np.where(X[:, 0] < 0.5, rng.integers(0, 2, 2000), rng.integers(0, 10, 2000))
    >>> width = QuantileForestWidth()
    >>> model = IntervalRegressor(lambda X: np.ones(len(X)), width=width, random_state=0).calibrate(X, y)
    >>> np.diff(model.predict_interval([[0.1], [0.9]]), axis=1).round(0)
    array([[3.],
           [9.]])
    """

    learns = True

    def fit(
        self,
        X: FeatureTable,
        prediction: Array,
        residuals: Array,
        *,
        confidence_level: float,
        tails: str,
        random_state: int,
    ) -> Self:
        """Grow a forest on the targets of each output."""
        wanted = TAILS[tails]
        self.levels_, self.has_band_ = wanted.bound_levels(confidence_level), not wanted.is_by_sign
        self.features_ = Features(for_distance=False).fit(X, prediction)
        known = self.features_.transform(X, prediction)
        self.neurons_ = neurons_of_targets(known, prediction + residuals, residuals, random_state)
        return self

    def shape(self, X: FeatureTable, prediction: Array) -> IntervalShape:
        """The band between quantiles of the targets, around the prediction."""
        found = local_bounds(self.neurons_, self.features_, X, prediction, self.levels_)
        return IntervalShape() if found is None else self._shape(found, prediction)

    def shape_unseen(self, X: FeatureTable, prediction: Array, rows: Index) -> IntervalShape | None:
        """The band of rows that it learned from, by trees that have not seen them."""
        found = local_bounds_unseen(self.neurons_, self.features_, X, prediction, rows, self.levels_)
        return None if found is None else self._shape(found, prediction[rows])

    def _shape(self, bounds: Array, prediction: Array) -> IntervalShape:
        """The band; where each sign is taken separately, half its width as scale."""
        if self.has_band_:
            is_known = np.array([one is not None for one in self.neurons_])
            shift = np.where(is_known, prediction, 0.0)
            return IntervalShape(None, bounds[0] + shift, bounds[1] - shift)
        half = bounds.mean(axis=0)
        return IntervalShape(np.where(half > 0.0, half, 1.0))

    @property
    def takes_sparse(self) -> bool:
        """Trees take sparse matrices."""
        return True
