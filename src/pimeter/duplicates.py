"""Copies of rows: a hash of each row finds them, and the other rows say whether chance explains them.

Copies are not independent: a model that was trained on a row knows its copies, and a calibration row that is there
three times counts three times. Rows that are equal because few values are possible are another matter: they are
exchangeable like any others.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pimeter.arrays import is_new
from pimeter.chance import (
    are_few_values,
    are_multiples,
    counts_of_copies,
    have_a_pair,
    is_on_a_grid,
    is_one_variable,
    pure_counts,
    runs,
    unexplained_counts,
)
from pimeter.hashing import STEP, hashed_rows, mixed, table_columns, value_bits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]
    Bits = NDArray[np.uint64]
    Column = NDArray[np.generic]
    Index = NDArray[np.intp]

UNPROVEN = "nothing is guaranteed (guaranteed_level_ is NaN)"


def duplicate_groups(X: object, y: ArrayLike | None = None) -> Index:
    """The group of each row: rows that are equal in all columns of X, and in y, belong to one.

    For ``groups=`` of `IntervalRegressor.fit`, so that no model is calibrated on copies of rows that it was trained on.
    ``np.unique(duplicate_groups(X, y), return_index=True)[1]`` are the first rows of all groups: the rows without
    copies.

    Parameters
    ----------
    X : frame, array, sparse matrix or list, of n rows
        Features. Numbers are compared by value whatever their type, so that -0.0 is 0.0; everything else as text. A
        missing value equals any other.
    y : array-like of shape (n,) or (n, k), optional
        Targets. Without them rows of the same features are one group, whatever their targets are.

    Returns
    -------
    ndarray of int, shape (n,)
        Numbers from 0 on, in the order in which groups appear. Rows are compared by a hash of 64 bits: that two
        different ones among a million have the same has a probability of 3e-8.

    Raises
    ------
    ValueError
        If X has no rows, or y not one target for each.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter import duplicate_groups
    >>> X = np.array([[1.0, np.nan], [2.0, 5.0], [1.0, np.nan], [2.0, 5.0]])
    >>> duplicate_groups(X)
    array([0, 1, 0, 1])
    >>> duplicate_groups(X, [7, 8, 7, 9])
    array([0, 1, 0, 2])
    """
    _, first, codes = np.unique(hashed_rows(table_columns(X, y)), return_index=True, return_inverse=True)
    place = np.empty(len(first), np.intp)
    place[np.argsort(first)] = np.arange(len(first))
    return place[codes.reshape(-1)]


class Copies(NamedTuple):
    """Rows that equal others."""

    n: int  # rows that are copies of one before them, where chance does not explain it
    n_equal: int  # all rows that equal one before them
    n_rows: int
    factor: float = 1.0  # by which ranges that count each row are too narrow: the root of the mean number of its copies
    compared: str = "X, y"  # what was compared

    def __str__(self) -> str:
        kind = "is a copy of another" if self.n == 1 else "are copies of others"
        return f"{self.n:,} of {self.n_rows:,} rows {kind}"

    def of_sample(self, n: int) -> Copies:
        """Copies among n rows of which these were drawn at random: there each row has more copies."""
        n_copies = (self.factor**2 - 1.0) * n / max(self.n_rows, 1)
        return self._replace(factor=math.sqrt(1.0 + n_copies))

    def warning(self, method: str, *, has_groups: bool) -> str:
        """What it means for a method that trains and calibrates, or calibrates only, and what to do."""
        if method == "fit":
            harm = "a model knows the copies of rows that it was trained on, so that it looks better than it is"
        else:
            harm = "copies say nothing new, so that the rows count for less than their number"
        together = (
            "give copies the same group"
            if has_groups
            else f"keep them together and count them once: {method}(X, y, groups=duplicate_groups(X, y))"
        )
        where = " of other groups" if has_groups else ""
        return f"{self}{where}, target included: {harm}, and {UNPROVEN}. Drop them, or {together}."


def copies(
    keys: Bits | None, X: object, y: ArrayLike | None, groups: Index | None = None, prediction: Array | None = None
) -> Copies:
    """Copies among the rows, or among rows of different groups, and whether chance explains them.

    Equal rows are no chance if one of these holds.

    - A column of numbers, or the target, tells rows apart: the values in it that occur in several rows, 3 or more of
      them, occur in equal rows alone, with one exception in 11 at most. Values of more than 5 % of rows do not count.
      Neither do columns whose values lie on a grid, where chance meets the same value as easily as the next one: the
      smallest gap between two values is that of a tenth of all, or of half as many as there are repeated values. Where
      fewer are repeated than of random numbers on that grid, as with the number of a row, they count.
    - In the target and in another column, a number, be it a single one, occurs in equal rows alone, and both hold
      decimals of which a hundred times as many are possible as there are pairs of rows, or more. Zeros, missing values
      and extremes of three rows or more do not count.
    - Nine tenths of the distinct rows, of at least 20, are there a multiple of 2, 3, 5 or 7 times.
    - There are 5 columns or more, and rows that agree in two thirds of them agree in all, again with one exception in
      11 at most, whichever third is left out (random thirds, ten times). Rounded measurements are so. A column on a
      grid that determines all others explains this, too.

    The first point says nothing where all columns are the same one or constant, as if there were no features, and
    values have two rows or more on average, but not all as many: then they are few.

    So 5 % of copies among 100 rows or more are found wherever one column is continuous, and independent rows of
    discrete columns raise no alarm, unless one that is on no grid determines all others and the target. Fewer than 10
    rows cannot tell whether values lie on a grid: only the third point says something of them. One pair of copies is
    found if the target is continuous, too: in a single column it may be one of a few hundred irregular values. Of more
    than 100,000 rows so many are looked at, drawn at random, and of very many columns the first.

    `keys` are the `row_keys` of X, y and the prediction; without them, as some models take what is no table, nothing
    is found. A `prediction` is a function of X: it tells rows apart only beside a target that does. X may be None.
    """
    if keys is None:
        return Copies(0, 0, 0)
    n_distinct = int(np.count_nonzero(is_new(np.sort(keys))))
    if n_distinct == len(keys):
        return Copies(0, 0, len(keys))
    columns = table_columns(y, None) if X is None else table_columns(X, y)
    n_targets = 0 if y is None else len(columns) if X is None else int(np.prod(np.shape(y)[1:]))
    if prediction is not None:
        columns.append(prediction)
    if groups is not None:
        with np.errstate(over="ignore"):
            pairs = mixed(keys + mixed(groups.astype(np.uint64) * STEP))
        rows = np.unique(pairs, return_index=True)[1]
        columns, keys = [column[rows] for column in columns], keys[rows]
    n, n_equal = len(keys), len(keys) - n_distinct
    counts = np.zeros(0, np.intp)
    if n_equal:
        counts = _copy_counts(columns, keys, n_targets, has_prediction=prediction is not None)
    n_copies = int(counts.sum()) - len(counts)
    n_pairs = float(counts.astype(np.float64) @ (counts - 1.0))  # of a row and another one that is its copy
    return Copies(n_copies, n_equal, n, math.sqrt(1.0 + n_pairs / n))


def _copy_counts(columns: Sequence[Column], keys: Bits, n_targets: int, *, has_prediction: bool) -> Index:
    """How many rows each group of copies has, of those that chance does not explain; see `copies`."""
    counts = np.zeros(0, np.intp)
    if not (is_one_variable(columns) and are_few_values(keys)):
        counts = unexplained_counts(columns[:-1] if has_prediction else columns, keys)
    if not len(counts) and (are_multiples(keys) or have_a_pair(columns, keys, n_targets)):
        counts = counts_of_copies(keys, keys)
    return counts


def row_keys(X: object, y: ArrayLike | None = None) -> Bits | None:
    """A hash of each row by itself, equal for equal rows; None for what is no table."""
    try:
        return hashed_rows(table_columns(X, y))
    except (TypeError, ValueError):
        return None


def are_copies(groups: Index, keys: Column | None) -> bool:
    """Whether all rows of a group have the same key."""
    return keys is not None and bool(runs(groups.astype(np.uint64), keys)[0].all())


def tells_copies(values: Column, keys: Bits) -> bool:
    """Whether values of this column occur several times in copies alone, by their keys, and no grid explains it."""
    counts = pure_counts(value_bits(values), keys)
    return counts is not None and not is_on_a_grid(values, len(counts)) and not are_few_values(keys)
