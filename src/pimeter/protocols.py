"""Types of what is handed from place to place: arrays, tables of features, and models that predict from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]
    Index = NDArray[np.intp]  # numbers of rows, ranks and counts
    Flags = NDArray[np.bool_]
    Hashes = NDArray[np.uint64]
    Columns = Mapping[str, Collection[object]]  # of a table, by their names, equally long


class Frame(Protocol):
    """A table with named columns, of any library."""

    @property
    def columns(self) -> object:
        """Names of its columns."""

    def __len__(self) -> int: ...


class SparseMatrix(Protocol):
    """A sparse matrix or array of SciPy's."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""

    def tocsr(self) -> object:
        """The matrix, stored by rows."""


if TYPE_CHECKING:
    Table = ArrayLike | Frame
    FeatureTable = Table | SparseMatrix
    GivenIntervals = Table | Mapping[float, Table]
    Labels = ArrayLike | Sequence[str | int | float | bool | None]  # of rows; a single one is that of one row


class Model(Protocol):
    """What predicts targets from features."""

    def predict(self, X: FeatureTable, /) -> ArrayLike:
        """Predictions, one for each row."""


class IntervalPredictor(Model, Protocol):
    """What predicts targets and intervals from features, at a level of its own or at others."""

    confidence_level: float

    @property
    def predict_interval(self) -> Callable[..., ArrayLike]:
        """Lower and upper bounds, of X and, by name, confidence_level and by."""
