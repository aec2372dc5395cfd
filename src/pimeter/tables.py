"""What an estimator around another takes: X with the columns that it had before, and splits of its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import get_tags, indexable
from sklearn.utils.validation import validate_data

from pimeter.arrays import unmasked

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    Index = NDArray[np.intp]


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
    # scikit-learn looks at names that are words alone; pyarrow's columns are the data.
    columns = list(getattr(table, "column_names", getattr(table, "columns", [])))
    if reset:
        estimator._columns = columns
    elif columns and estimator._columns and columns != estimator._columns:
        msg = f"X has columns {columns[:5]}, but they were {estimator._columns[:5]} before. Give them in that order."
        raise ValueError(msg)
    return table


def checked_splits(splits: Iterable[Any], n: int) -> list[tuple[Index, Index]]:
    """Training rows and those left out, as numbers, of each split of n rows; or a ValueError."""
    everyone = np.arange(n)
    found = [(everyone[rows], everyone[others]) for rows, others in splits]
    if not found:
        msg = "cv has no splits. A generator is used up by one fit: give a list, or a splitter such as KFold(5)."
        raise ValueError(msg)
    for rows, others in found:
        n_shared = len(np.intersect1d(rows, others))
        if n_shared:
            msg = f"cv trains on {n_shared} of the rows that it leaves out, which then say nothing about new rows."
            raise ValueError(msg)
        if not len(others):
            msg = "cv has a split that leaves no row out of training: nothing to calibrate with. Use other splits."
            raise ValueError(msg)
    return found
