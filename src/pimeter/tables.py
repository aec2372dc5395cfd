"""X of an estimator around another: with rows to index, and with the columns that it had before."""

from __future__ import annotations

from typing import Any

from scipy.sparse import issparse
from sklearn.utils import get_tags, indexable
from sklearn.utils.validation import validate_data

from pimeter.arrays import unmasked


def checked_table(estimator: Any, X: Any, *, reset: bool) -> Any:
    """X as it is, or a ValueError; `reset` makes its columns those that later ones are compared with."""
    (table,) = indexable(unmasked(X))
    if isinstance(table, list | tuple) and not table:
        msg = "X has 0 sample(s), while a minimum of 1 is required: give at least one row."
        raise ValueError(msg)
    shape = getattr(table, "shape", (0, 1))
    if len(shape) == 1 and not reset and hasattr(estimator, "n_features_in_"):
        msg = f"X has shape {shape}. Reshape your data to (n, {estimator.n_features_in_}): X.reshape(1, -1) is one row."
        raise ValueError(msg)
    if len(shape) == 2 and shape[1] == 0:
        msg = f"X has 0 feature(s) (shape={shape}) while a minimum of 1 is required."
        raise ValueError(msg)
    if issparse(table) and not get_tags(estimator).input_tags.sparse:
        msg = "X is sparse, but sparse data is not supported by this estimator or width; use X.toarray()."
        raise ValueError(msg)
    validate_data(estimator, table, reset=reset, skip_check_array=True)
    columns = list(getattr(table, "columns", []))  # scikit-learn looks at names that are words alone
    if reset:
        estimator._columns = columns
    elif columns and estimator._columns and columns != estimator._columns:
        msg = f"X has columns {columns[:5]}, but they were {estimator._columns[:5]} before. Give them in that order."
        raise ValueError(msg)
    return table
