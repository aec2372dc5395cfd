"""What a width knows of a row: its columns as numbers, whatever they were, and the prediction."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.random_projection import SparseRandomProjection

from pimeter.arrays import as_frame, columns_of, is_missing, numbers_of
from pimeter.bandwidth import safe_factor

if TYPE_CHECKING:
    from pimeter.protocols import Array, FeatureTable, SparseMatrix

    NumberTable = Array | sparse.csr_array[Any, Any]
    FeatureValues = Array | list[str | None]  # numbers with NaN, or strings with None, for what is missing

MAX_CATEGORIES = 20  # of a category that are told apart by distance
MAX_INDICATORS = 2000  # columns of zeros and ones of all categories together
MAX_COLUMNS = 200  # more are projected where `max_columns` says so, and a split of a tree looks at no more
LARGEST_FEATURE = 1e30  # numbers beyond this are as far away as this: trees know float32 alone


class Features:
    """Columns of any kind and the prediction as one table of numbers.

    Numbers, truth values, dates and durations are numbers; all else are categories. X that is not a table (texts,
    images) is left out: what remains is the prediction. For distances the table is standardised, with categories as
    columns of zeros and ones, and missing values filled in with a column that says so; if these are more than
    `max_columns`, it is projected at random on half as many. For trees categories are codes, missing values NaN.
    """

    def __init__(self, *, for_distance: bool, max_columns: int | None = None) -> None:
        self.for_distance = for_distance
        self.max_columns = max_columns

    def fit(self, X: FeatureTable, prediction: Array) -> Self:
        """Learn the columns' kinds, and their spread."""
        self.has_columns_, self.kinds_ = is_table(X), []
        if self.has_columns_ and not hasattr(X, "toarray"):
            # By frequency, and without a column for the rest: neither of scikit-learn's encoders does so.
            columns = _columns(X)
            n_words = max(1, sum(isinstance(column, list) for column in columns))
            most = max(1, min(MAX_CATEGORIES, MAX_INDICATORS // n_words)) if self.for_distance else None
            for column in columns:
                words = Counter(column).most_common(most) if isinstance(column, list) else None
                self.kinds_.append(None if words is None else {word: code for code, (word, _) in enumerate(words)})
        rows = self._numbers(X, prediction)
        if self.for_distance:
            filler = SimpleImputer(add_indicator=True, keep_empty_features=True)  # a column for each that has gaps
            steps: list[Any] = [filler, StandardScaler(with_mean=not hasattr(rows, "toarray"))]
            if self._is_projected(rows):
                steps.append(SparseRandomProjection((self.max_columns or 0) // 2, dense_output=True, random_state=0))
            self.scaler_ = make_pipeline(*steps).fit(rows)
        return self

    def transform(self, X: FeatureTable, prediction: Array) -> NumberTable:
        """The rows as numbers, one column for each output's prediction at the end; for trees sparse as X is."""
        rows = self._numbers(X, prediction)
        return self.scaler_.transform(rows) if self.for_distance else rows

    def _is_projected(self, table: SparseMatrix | Array) -> bool:
        """Whether there are too many columns."""
        return self.max_columns is not None and table.shape[1] > self.max_columns

    def _numbers(self, X: Any, prediction: Array) -> NumberTable:
        """All columns as numbers, those that are missing as NaN, and the predictions."""
        # In units of their own: a tree takes differences below 1e-7 for none; squares of extreme ones are not finite.
        if not hasattr(self, "unit_"):
            self.factor_ = safe_factor(float(np.abs(prediction).max(initial=0.0)))
            self.unit_ = StandardScaler().fit(prediction * self.factor_)
        last: Array = self.unit_.transform(prediction * self.factor_)
        if not self.has_columns_:
            return last
        if hasattr(X, "toarray"):
            table = X.tocsr().astype(np.float64)
            table.data = np.clip(table.data, -LARGEST_FEATURE, LARGEST_FEATURE)
            is_dense = self.for_distance and not self._is_projected(table)
            return beside(table.toarray() if is_dense else table, last)
        found: list[Array] = []
        for column, codes in zip(_columns(X), self.kinds_, strict=True):
            found += self._of_column(column, codes, len(last))
        return np.column_stack([*found, last])

    def _of_column(self, column: FeatureValues, codes: dict[str | None, int] | None, n: int) -> list[Array]:
        """A column as numbers: as it is, or categories as codes or as columns of zeros and ones."""
        if codes is None:
            numbers = column if isinstance(column, np.ndarray) else np.full(n, np.nan)
            return [np.clip(numbers, -LARGEST_FEATURE, LARGEST_FEATURE)]
        strings = column if isinstance(column, list) else [None] * n
        known = np.array([np.nan if one is None else codes.get(one, np.nan) for one in strings], np.float64)
        if not self.for_distance:
            return [known]
        return [(known == code).astype(np.float64) for code in range(len(codes))]


def beside(table: NumberTable, columns: Array) -> NumberTable:
    """A table with more columns, sparse if it is."""
    blocks: list[Any] = [table, columns]
    return sparse.hstack(blocks, format="csr") if hasattr(table, "toarray") else np.column_stack(blocks)


def is_table(X: FeatureTable) -> bool:
    """Whether X has columns: a frame, a sparse matrix, or an array of two dimensions."""
    if hasattr(X, "toarray") or as_frame(X) is not None:
        return True
    try:
        return np.asarray(X).ndim == 2
    except ValueError:  # rows of unequal length, such as texts as lists of words
        return False


def _columns(X: FeatureTable) -> list[FeatureValues]:
    """Each column as numbers or as strings."""
    found: list[FeatureValues] = []
    for values in columns_of(X).values():
        numbers = numbers_of(values)
        words = [None if is_missing(value) else str(value) for value in values.tolist()] if numbers is None else []
        found.append(words if numbers is None else numbers)
    return found
