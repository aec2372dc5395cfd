"""Types of what callers hand over: tables of features, and models that predict from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike


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


class Model(Protocol):
    """What predicts targets from features."""

    def predict(self, X: FeatureTable, /) -> ArrayLike:
        """Predictions, one for each row."""
