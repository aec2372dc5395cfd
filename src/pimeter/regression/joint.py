"""`joint=True`: several outputs covered all at once, by one quantile of the largest of their scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from pimeter.quantiles import quantile
from pimeter.regression.width import IntervalShape, Width

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from pimeter.protocols import Array, FeatureTable

MIN_MARGIN = 1e-9  # smallest margin of an output, in that of the largest: an output without errors has none


class JointWidth(Width):
    """Another width, with each output in units of its own margin, so that scores of all outputs can be compared.

    The margins r_j are learned on rows that do not calibrate; scores ``max_j e_j / r_j`` are of the others.
    """

    learns = True

    def __init__(self, width: Width) -> None:
        self.width = width

    def fit(self, X: FeatureTable, prediction: Array, residuals: Array, **wanted: Any) -> Self:
        """Learn the width itself, then a margin for each output."""
        if self.width.learns:
            self.width.fit(X, prediction, residuals, **wanted)
        scale = self.width.checked_shape(X, prediction).scale
        scores = np.abs(residuals if scale is None else residuals / scale)
        margin = np.asarray(quantile(scores, wanted["confidence_level"], axis=0, reflect=True))
        self.margin_ = np.maximum(margin, MIN_MARGIN * margin.max()) if margin.any() else np.ones_like(margin)
        return self

    def of_model(self, model: object, confidence_level: float, tails: str) -> Self:
        """Set the trained model in the width itself."""
        self.width.of_model(model, confidence_level, tails)
        return self

    def shape(self, X: FeatureTable, prediction: Array) -> IntervalShape:
        """The shape of the width inside, in units of the margins of the outputs."""
        shape = self.width.checked_shape(X, prediction)
        unit = np.broadcast_to(self.margin_, prediction.shape)
        return shape._replace(scale=unit if shape.scale is None else shape.scale * unit)

    def labels(self, X: FeatureTable, by: ArrayLike | None) -> NDArray[Any] | None:
        """Categories of the width itself."""
        return self.width.labels(X, by)

    @property
    def min_rows(self) -> int | None:
        """Rows from which on a category of the width itself has scores of its own."""
        return self.width.min_rows

    @property
    def grouping_names(self) -> tuple[str, ...] | None:
        """What each of several groupings of the width itself is called."""
        return self.width.grouping_names

    @property
    def is_randomized(self) -> bool:
        """Whether the width itself draws intervals for groups that overlap at random."""
        return self.width.is_randomized
