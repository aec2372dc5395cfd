"""What an estimator around another takes: X with the columns that it had before, groups and splits of its rows."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from scipy.sparse import issparse
from sklearn.utils import get_tags, indexable
from sklearn.utils.validation import _num_samples, validate_data

from pimeter.arrays import coded, even_array, unmasked
from pimeter.coverage import CoverageWarning

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    Index = NDArray[np.intp]

FEWEST_DATED = 10  # rows that chance does not put in the order of their dates


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


def group_codes(groups: Any, X: Any) -> Index | None:
    """The number of each row's group."""
    if groups is None:
        return None
    labels = even_array("groups", groups)
    if labels.shape != (_num_samples(X),):
        msg = f"groups must hold one group for each of the {_num_samples(X)} rows of X; got shape {labels.shape}."
        raise ValueError(msg)
    names, codes = coded(labels)
    if None in names:
        msg = "groups has missing values. Give each such row a group of its own, or leave it out."
        raise ValueError(msg)
    return codes


def checked_splits(splits: Iterable[Any], n: int, groups: Index | None = None) -> list[tuple[Index, Index]]:
    """Training rows and those left out, as numbers, of each split of n rows, which parts no group; or a ValueError."""
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
        n_parted = 0 if groups is None else len(np.intersect1d(groups[rows], groups[others]))
        if n_parted:
            msg = (
                f"cv parts the rows of {n_parted} groups in one split. Use a splitter of groups, such as GroupKFold(5)."
            )
            raise ValueError(msg)
    return found


def rows_to_come(splits: list[tuple[Index, Index]], n: int) -> Index | None:
    """Rows to train the model of the future on, if each split leaves out later rows than it trains on; else None.

    They are all rows or, if the last split did not train on the first one, as many of the last rows as it trained on.
    """
    left_out = np.concatenate([others for _, others in splits])
    is_past = all(len(rows) and rows.max() < others.min() for rows, others in splits)
    if len(splits) == 1 or not is_past or len(np.unique(left_out)) < len(left_out):
        return None
    last, _ = max(splits, key=lambda split: int(split[1].max()))
    return np.arange(n)[0 if last.min() == 0 else n - len(last) :]


def warn_of_dates(X: Any, y: Any) -> None:
    """Say that rows which are in the order of their dates are shuffled."""
    where = next((f"the index of {name}" for name, table in (("X", X), ("y", y)) if _is_dated(table)), None)
    where = where or _dated_column(X)
    if where is not None:
        msg = (
            f"rows are in the order of their dates ({where}), and fit shuffles them: it calibrates on rows between "
            "those that it trains on, and rows to come may be covered far less often. Set shuffle=False, which "
            "calibrates on the last rows, or cv=TimeSeriesSplit(5). If time does not matter, shuffle the rows yourself."
        )
        warnings.warn(msg, CoverageWarning, stacklevel=4)


def _is_dated(table: Any) -> bool:
    """Whether a frame or series of pandas has dates for its index, and they rise."""
    index = getattr(table, "index", None)
    kind = str(getattr(index, "dtype", ""))
    if not kind.startswith(("datetime64", "period")) or len(table) < FEWEST_DATED:
        return False
    return bool(table.index.is_monotonic_increasing and table.index[0] < table.index[-1])


def _dated_column(X: Any) -> str | None:
    """The first column of a frame with dates that rise."""
    try:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
    except nw.exceptions.DuplicateError:  # columns of one name
        return None
    if not isinstance(frame, nw.DataFrame) or len(frame) < FEWEST_DATED:
        return None
    for column in frame.iter_columns():
        is_date = isinstance(column.dtype, nw.Date | nw.Datetime)
        if is_date and not column.null_count() and column.is_sorted() and column[0] < column[-1]:
            return f"column {column.name!r}"
    return None
