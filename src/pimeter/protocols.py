"""Types of what callers hand over: tables of features, and models that predict from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
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
        """It by rows."""


if TYPE_CHECKING:
    FeatureTable = ArrayLike | Frame | SparseMatrix


class Model(Protocol):
    """What predicts targets from features."""

    def predict(self, X: FeatureTable, /) -> ArrayLike:
        """Predictions, one for each row."""
