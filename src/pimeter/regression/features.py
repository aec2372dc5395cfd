"""What a width knows of a row: its columns as numbers, whatever they were, and the prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import narwhals as nw
import numpy as np
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

MOST_KINDS = 20  # of a category that are told apart by distance


class Features:
    """Columns of any kind and the prediction as one table of numbers.

    X that is no table (lists of texts, images) is left out: what remains is the prediction.

    Parameters
    ----------
    for_distance : bool
        Whether the table is for distances: standardised, categories as columns of zeros and ones, missing values
        filled in with a column that says so. Otherwise for trees: categories as codes, missing values as NaN.
    """

    def __init__(self, *, for_distance: bool) -> None:
        self.for_distance = for_distance

    def fit(self, X: Any, prediction: Array) -> Self:
        """Learn the columns' kinds, and their sizes."""
        table = self._table(X)
        self.encoder_ = None if table is None else self._encoder().fit(table)
        self.scaler_ = StandardScaler().fit(prediction)
        return self

    def transform(self, X: Any, prediction: Array) -> Any:
        """The rows as numbers, one column for each output's prediction at the end; for trees sparse as X is."""
        last = self.scaler_.transform(prediction)
        if self.encoder_ is None:
            return last
        columns: Any = self.encoder_.transform(self._table(X))
        if hasattr(columns, "tocsr"):
            return sparse.hstack([columns, sparse.csr_array(last)], format="csr")
        return np.column_stack([np.asarray(columns, np.float64), last])

    def _table(self, X: Any) -> Any:
        """A frame, a sparse matrix or an array of numbers; None if X is none of these."""
        if hasattr(X, "toarray"):  # sparse
            return X.toarray() if self.for_distance else X
        if isinstance(nw.from_native(X, eager_only=True, pass_through=True), nw.DataFrame):
            return X
        table = np.asarray(X)
        if table.ndim == 2 and table.dtype.kind == "O":
            try:
                table = table.astype(np.float64)
            except (TypeError, ValueError):  # texts, or other objects
                return None
        return table if table.ndim == 2 and table.dtype.kind in "fiub" else None

    def _encoder(self) -> Any:
        if not self.for_distance:
            codes = OrdinalEncoder(
                handle_unknown="use_encoded_value", unknown_value=np.nan, encoded_missing_value=np.nan
            )
            return ColumnTransformer([("codes", codes, _not_numeric)], remainder="passthrough")
        filled = make_pipeline(SimpleImputer(add_indicator=True, keep_empty_features=True), StandardScaler())
        kinds = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=MOST_KINDS, sparse_output=False)
        return ColumnTransformer([("kinds", kinds, _not_numeric)], remainder=filled, sparse_threshold=0.0)


def _not_numeric(X: Any) -> list[Any]:
    """Columns of a frame that are neither numbers nor truth values."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return []
    return [name for name, kind in frame.schema.items() if not (kind.is_numeric() or kind == nw.Boolean)]
