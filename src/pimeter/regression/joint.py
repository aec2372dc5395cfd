"""`joint=True`: several outputs covered all at once, by one neuron on the error that reaches farthest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from pimeter.quantiles import quantile
from pimeter.regression.width import Aim, Shape, Width

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]

LEAST = 1e-9  # smallest radius of an output, in that of the largest: an output without errors has none


class JointWidth(Width):
    """Another width, with each output in units of its own radius, so that errors of all outputs can be compared.

    The radii r_j are learned on rows that do not calibrate; the neuron on `max_j e_j / r_j` sees only the others.
    """

    learns = True

    def __init__(self, width: Width) -> None:
        self.width = width

    def fit(self, X: Any, prediction: Array, errors: Array, aim: Aim, random_state: int) -> Self:
        """Learn the width itself, then a radius for each output."""
        if self.width.learns:
            self.width.fit(X, prediction, errors, aim, random_state)
        scale = self.width.shape(X, prediction).scale
        sizes = np.abs(errors if scale is None else errors / scale)
        radius = np.asarray(quantile(sizes, aim.level, axis=0, reflect=True))
        self.margin_ = np.maximum(radius, LEAST * radius.max()) if radius.any() else np.ones_like(radius)
        return self

    def shape(self, X: Any, prediction: Array) -> Shape:
        """The same, with the radii as units."""
        shape = self.width.shape(X, prediction)
        unit = np.broadcast_to(self.margin_, prediction.shape)
        return shape._replace(scale=unit if shape.scale is None else shape.scale * unit)

    def labels(self, X: Any, by: ArrayLike | None) -> NDArray[Any] | None:
        """As the other width has it."""
        return self.width.labels(X, by)

    @property
    def min_rows(self) -> int | None:
        """As the other width has it."""
        return self.width.min_rows
