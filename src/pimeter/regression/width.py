"""How the width of intervals follows their rows: what a width has to know, and the one that knows nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from pimeter.conformal.tails import Tails

    Array = NDArray[np.float64]


class Aim(NamedTuple):
    """What intervals a width is learned for."""

    level: float
    tails: Tails
    forests: dict[int, Any] | None = (
        None  # grown on the very same rows for each output, where several widths share them
    )


MISSING = (1.0, 0.0, 0.0)  # what None stands for in a shape


class Shape(NamedTuple):
    """How an interval of reach r lies around a prediction f: ``[f - lower - scale r, f + upper + scale r]``.

    All are of shape (n, k), or None: a scale of 1, no band between `-lower` and `upper`. A band has both of its ends,
    which do not cross.
    """

    scale: Array | None = None
    lower: Array | None = None
    upper: Array | None = None

    def scores(self, errors: Array) -> tuple[Array, Array | None]:
        """How far errors reach beyond the upper end and beyond the lower one; None: the same with the other sign."""
        above, below = errors, None
        if self.lower is not None and self.upper is not None:
            above, below = errors - self.upper, -errors - self.lower
        if self.scale is None:
            return above, below
        with np.errstate(over="ignore"):
            return above / self.scale, None if below is None else below / self.scale

    def spread(self, prediction: Array) -> tuple[Array, Array | None]:
        """Centre and half width of the band; where there is none, the prediction and the scale."""
        if self.lower is None or self.upper is None:
            return prediction, self.scale
        half, scale = (self.upper + self.lower) / 2.0, 1.0 if self.scale is None else self.scale
        return prediction + (self.upper - self.lower) / 2.0, np.where(half > 0.0, half, scale)

    def output(self, j: int) -> Shape:
        """Of one output alone."""
        return Shape(*(None if part is None else part[..., j] for part in self))

    @classmethod
    def merged(cls, shapes: Sequence[Shape], sizes: Sequence[tuple[int, ...]], how: Callable[..., Array]) -> Shape:
        """Several shapes, whose parts are of these sizes, as one: stacked, or one after the other."""

        def part(parts: Sequence[Array | None], missing: float) -> Array | None:
            if all(one is None for one in parts):
                return None
            return how([np.full(size, missing) if one is None else one for one, size in zip(parts, sizes, strict=True)])

        return cls(*map(part, zip(*shapes, strict=True), MISSING))


class Width(BaseEstimator, ABC):
    """What makes one row's interval wider than another's: a shape of its own, or a category with its own neuron.

    A width that learns does so on rows that do not calibrate: a scale that knows the calibration rows makes their
    errors look smaller than those of new rows.
    """

    @property
    @abstractmethod
    def learns(self) -> bool:
        """Whether `fit` needs rows that do not calibrate."""

    @abstractmethod
    def fit(self, X: Any, prediction: Array, errors: Array, aim: Aim, random_state: int) -> Self:
        """Learn from predictions and errors (n, k) of a model on rows that it had not seen."""

    @abstractmethod
    def shape(self, X: Any, prediction: Array) -> Shape:
        """How intervals lie around predictions (n, k)."""

    def labels(self, X: Any, by: ArrayLike | None) -> NDArray[Any] | None:  # noqa: ARG002
        """Category of each row; None: all are of one."""
        if by is not None:
            msg = 'by is given, but this width has no categories; set width="grouped" or leave by out.'
            raise ValueError(msg)
        return None

    @property
    def min_rows(self) -> int | None:
        """Rows from which on a category has a neuron of its own; None: as many as the promise takes."""
        return None

    @property
    def takes_sparse(self) -> bool:
        """Whether X may be a sparse matrix."""
        return True


class ConstantWidth(Width):
    """One neuron in all."""

    learns = False

    def fit(self, X: Any, prediction: Array, errors: Array, aim: Aim, random_state: int) -> Self:  # noqa: ARG002
        """Nothing to learn."""
        return self

    def shape(self, X: Any, prediction: Array) -> Shape:  # noqa: ARG002
        """The same for all."""
        return Shape()
