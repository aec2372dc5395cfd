"""`LocalWidth`: one neuron per prediction, on residuals weighted by how near their rows are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils._param_validation import StrOptions

from pimeter.conformal.scores import TAILS
from pimeter.regression.features import Features
from pimeter.regression.nearness import local_bounds, local_neurons
from pimeter.regression.width import IntervalShape, Width

if TYPE_CHECKING:
    from pimeter.protocols import Array, FeatureTable


class LocalWidth(Width):
    """One neuron per prediction: the residuals of rows like this one say how far off this one may be.

    Residuals on rows that do not calibrate are weighted by their nearness to the new row, and a neuron finds their
    quantile at the confidence level: the local margin. The quantile of calibration scores in units of local margins
    makes the guarantee of coverage hold, however good or bad the local ones are.

    Parameters
    ----------
    nearness : {"forest", "kernel"}, default="forest"
        "forest": rows are near that are in the new one's leaves in a forest that was grown on absolute residuals, so
        that only what matters for these counts. "kernel": rows near in all columns, standardised; the weight falls to 0
        at a number of neighbours that is chosen by leaving rows out. Both take categories and missing values, and look
        at the prediction as one more column.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter import IntervalRegressor, LocalWidth
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(4000, 2))
    >>> y = rng.normal(scale=np.where(X[:, 0] < 0.5, 1.0, 5.0))
    >>> width = LocalWidth(nearness="kernel")
    >>> model = IntervalRegressor(lambda X: np.zeros(len(X)), width=width, random_state=0).calibrate(X, y)
    >>> np.diff(model.predict_interval([[0.1, 0.5], [0.9, 0.5]]), axis=1).round(0)
    array([[ 3.],
           [20.]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"nearness": [StrOptions({"forest", "kernel"})]}

    learns = True

    def __init__(self, nearness: Literal["forest", "kernel"] = "forest") -> None:
        self.nearness = nearness

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
        """Keep the residuals in order, and what tells how near their rows are."""
        self.features_ = Features(for_distance=self.nearness == "kernel").fit(X, prediction)
        # Each sign separately is around the prediction itself: no band, as for absolute residuals.
        wanted = TAILS[tails]
        has_band = wanted.has_centre
        self.levels_ = wanted.bound_levels(confidence_level) if has_band else np.array([confidence_level])
        known = self.features_.transform(X, prediction)
        self.neurons_ = local_neurons(known, residuals, self.nearness, has_band, random_state)
        return self

    def shape(self, X: FeatureTable, prediction: Array) -> IntervalShape:
        """The local margin as scale; for signed ones a band between local quantiles, and half of it as scale."""
        bounds = local_bounds(self.neurons_, self.features_, X, prediction, self.levels_)
        if bounds is None:
            return IntervalShape()
        if self.levels_.size == 1:
            return IntervalShape(bounds[1])
        half = bounds.mean(axis=0)
        return IntervalShape(np.where(half > 0.0, half, 1.0), *bounds)
