"""How the width of intervals follows their rows: what a width has to know, and the one that knows nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

from sklearn.base import BaseEstimator

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]


class Width(BaseEstimator, ABC):
    """What makes one row's interval wider than another's: a scale of its errors, or a category with its own neuron.

    A width that learns does so on rows that do not calibrate: a scale that knows the calibration rows makes their
    errors look smaller than those of new rows.
    """

    @property
    @abstractmethod
    def learns(self) -> bool:
        """Whether `fit` needs rows that do not calibrate."""

    @abstractmethod
    def fit(self, X: Any, errors: Array, random_state: int) -> Self:
        """Learn from the errors (n, k) that a model made on rows that it had not seen."""

    @abstractmethod
    def scale(self, X: Any, prediction: Array) -> Array | None:
        """Size of the errors to be expected of each row, (n, k); None: the same for all."""

    @abstractmethod
    def labels(self, X: Any, by: ArrayLike | None) -> NDArray[Any] | None:
        """Category of each row; None: all are of one."""

    @property
    def min_rows(self) -> int | None:
        """Rows from which on a category has a neuron of its own; None: as many as the promise takes."""
        return None

    @property
    def takes_sparse(self) -> bool:
        """Whether X may be a sparse matrix."""
        return True


def no_labels(by: ArrayLike | None) -> None:
    """Refuse categories where the width has no use for them."""
    if by is not None:
        msg = 'by is given, but this width has no categories; set width="grouped" or leave by out.'
        raise ValueError(msg)


class ConstantWidth(Width):
    """One neuron in all."""

    learns = False

    def fit(self, X: Any, errors: Array, random_state: int) -> Self:  # noqa: ARG002
        """Nothing to learn."""
        return self

    def scale(self, X: Any, prediction: Array) -> None:
        """The same for all."""

    def labels(self, X: Any, by: ArrayLike | None) -> None:  # noqa: ARG002
        """All are of one."""
        no_labels(by)
