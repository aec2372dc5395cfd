"""Copies of rows: hashes of rows find them, and the other rows say whether chance explains them.

Copies are not independent: a model that was trained on a row knows its copies, and a calibration row that is there
three times counts three times. Rows that are equal because few values are possible are another matter: they are
exchangeable like any others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import pdtr

from pimeter.arrays import is_new, numbers_of, some_rows
from pimeter.frames import refuse_other_order
from pimeter.row_hashes import bits_of_bytes, compared_columns, hashes, value_bits

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from pimeter.protocols import Array, Flags, Hashes, Index

    ColumnValues = NDArray[Any]

UNPROVEN = "nothing is guaranteed (guaranteed_level_ is NaN)"
MAX_ROWS_COMPARED = 100_000  # drawn at random; all rows are counted
MAX_VALUES_COMPARED = 20_000_000  # one column at a time


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
    refuse_other_order("X", X, "y", y)
    _, first, codes = np.unique(hashes(compared_columns(X, y)), return_index=True, return_inverse=True)
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
    codes: Index | None = None  # (n_rows,) which row each one equals, where copies should count once

    def __str__(self) -> str:
        kind = "is a copy of another" if self.n == 1 else "are copies of others"
        return f"{self.n:,} of {self.n_rows:,} rows {kind}"

    def of_sample(self, n: int) -> Copies:
        """Copies among n rows of which these were drawn at random: there each row has more copies."""
        n_copies = (self.factor**2 - 1.0) * n / max(self.n_rows, 1)
        return self._replace(factor=math.sqrt(1.0 + n_copies))

    def warning(self, method: str, *, has_groups: bool, has_features: bool = True) -> str:
        """What it means for a method that trains and calibrates, or calibrates only, and what to do.

        Without features, rows were compared by prediction and target, of which equal ones may be no copies.
        """
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
        if not has_features:
            cure = f", or {together}" if has_groups else ""
            return f"{self}{where}, by prediction and target: {harm}, and {UNPROVEN}. Leave copies out{cure}."
        return f"{self}{where}, target included: {harm}, and {UNPROVEN}. Drop them, or {together}."


def copies(
    keys: Hashes | None, X: object, y: ArrayLike | None, groups: Index | None = None, prediction: Array | None = None
) -> Copies:
    """Copies among the rows, or among rows of different groups, where one of these says that chance is no reason.

    - Nine tenths of the distinct rows, of at least 20, are there a multiple of 2, 3, 5 or 7 times.
    - Values of one column that occur in several rows, 3 of them or more, occur in equal rows alone, with one exception
      in 11 at most; values of more than 5 % of rows apart. A column of numbers on a grid does not count: there chance
      meets the same value as easily as the next one. The number of a row, which chance would repeat more often, does.
    - There are 5 columns or more, and rows that agree in two thirds of them agree in all, with as few exceptions,
      whichever third is left out. Rounded measurements are so.
    - A number of the target and one of another column, both of more than 12 digits and on no grid, occur in equal rows
      alone: a single pair of rows is enough.

    So 5 % of copies among 100 rows or more are found wherever one column is continuous, and independent rows of
    discrete columns raise no alarm, unless one that is on no grid determines all others and the target.

    `keys` are the `row_keys` of X, y and the prediction; without them, as some models take what is not a table, nothing
    is found. A `prediction` is a function of X: it tells rows apart only beside a target that does. X may be None.
    """
    if keys is None:
        return Copies(0, 0, 0)
    n_distinct = int(np.count_nonzero(is_new(np.sort(keys))))
    if n_distinct == len(keys):
        return Copies(0, 0, len(keys))
    columns = compared_columns(y, None) if X is None else compared_columns(X, y)
    n_targets = 0 if y is None else len(columns) if X is None else int(np.prod(np.shape(y)[1:]))
    others = columns[n_targets:] if prediction is None else [*columns[n_targets:], prediction]
    if groups is not None:
        rows = np.unique(hashes([keys.view("V8"), groups]), return_index=True)[1]
        columns, others, keys = [c[rows] for c in columns], [c[rows] for c in others], keys[rows]
    n = len(keys)
    counts = _copy_counts(columns, columns[:n_targets], others, keys) if n > n_distinct else np.zeros(0, np.intp)
    n_copies = int(counts.sum()) - len(counts)
    n_pairs = float(counts.astype(np.float64) @ (counts - 1.0))  # of a row and another one that is its copy
    return Copies(n_copies, n - n_distinct, n, math.sqrt(1.0 + n_pairs / n))


def _copy_counts(
    columns: Sequence[ColumnValues], targets: Sequence[ColumnValues], others: Sequence[ColumnValues], keys: Hashes
) -> Index:
    """How many rows each group of copies has, of those that chance does not explain; `copies` says when it does."""
    counts = np.unique(keys, return_counts=True)[1]
    repeated = counts[counts > 1]
    if len(counts) >= 20 and max(np.mean(counts % k == 0) for k in (2, 3, 5, 7)) >= 0.9:
        return repeated
    rows = some_rows(len(keys), MAX_ROWS_COMPARED)
    n_compared = max(1, MAX_VALUES_COMPARED // len(rows))
    if not _are_few_values(keys, [*targets, *others]):
        for column in columns[:n_compared]:
            if _is_key(numbers_of(column[rows]), keys[rows]):
                n_rows, is_pure = _ties(value_bits(column), keys)
                return n_rows[is_pure & (n_rows > 1)]
        if _do_thirds_agree([column[rows] for column in columns], keys[rows]):
            return repeated
    pairs = (any(_has_a_pair(column, keys) for column in some) for some in (targets, others[:n_compared]))
    return repeated if all(pairs) else repeated[:0]


def are_copies(groups: Index | None, keys: ColumnValues | None) -> bool:
    """Whether there are groups, and all rows of each have the same key."""
    return groups is not None and keys is not None and bool(_ties(groups.astype(np.uint64), keys)[1].all())


def tells_copies(values: Array, keys: Hashes) -> bool:
    """Whether rows with the same number are copies, by their keys, as far as the numbers tell."""
    return _is_key(values, keys) and not _are_few_values(keys)


def _is_key(values: Array | None, keys: Hashes) -> bool:
    """Whether numbers occur several times in equal rows alone, and no grid explains it."""
    n_pure = 0 if values is None else _n_pure(value_bits(values), keys)
    return values is not None and n_pure > 0 and not _is_on_a_grid(values, n_pure)


def _n_pure(bits: Hashes, keys: Hashes) -> int:
    """How many values occur in several equal rows alone, if they are nearly all that occur more than once; else 0."""
    counts, is_pure = _ties(bits, keys)
    n_impure = int(np.count_nonzero(~is_pure & (counts <= max(2, len(bits) // 20))))  # without 0, a bound, or none
    n_pure = int(np.count_nonzero(is_pure & (counts > 1)))
    return n_pure if n_pure >= max(3, 10 * n_impure) else 0


def _ties(bits: Hashes, keys: ColumnValues) -> tuple[Index, Flags]:
    """Number of rows of each distinct value, and whether these are equal, by their keys."""
    order = np.argsort(bits)
    starts = np.flatnonzero(is_new(bits[order]))
    keys = keys[order]
    is_pure = np.maximum.reduceat(keys, starts) == np.minimum.reduceat(keys, starts)
    return np.diff(starts, append=len(bits)), is_pure


def _are_few_values(keys: Hashes, columns: Sequence[ColumnValues] = ()) -> bool:
    """Whether values have two rows or more on average, not as equally many as copies, and columns are one variable."""
    counts = np.unique(keys, return_counts=True)[1]
    if counts.mean() < 2.0 or counts.var() < counts.mean() / 4.0:
        return False
    return len({bits_of_bytes(bits.tobytes()) for bits in map(value_bits, columns) if (bits != bits[0]).any()}) < 2


def _do_thirds_agree(columns: Sequence[ColumnValues], keys: Hashes) -> bool:
    """Whether rows that agree in two thirds of the columns agree in all, whichever third is left out."""
    d = len(columns)
    rng = np.random.default_rng([d, len(keys)])
    kept = (rng.permutation(d)[-(-d // 3) :] for _ in range(30))
    return d >= 5 and all(_n_pure(hashes([columns[i] for i in some]), keys) for some in kept)


def _has_a_pair(values: ColumnValues, keys: Hashes) -> bool:
    """Whether numbers of more than 12 digits, on no grid, occur several times in equal rows alone."""
    if values.dtype.kind != "f":
        return False
    bits = value_bits(values)
    counts, is_pure = _ties(bits, keys)
    held = np.unique(bits).view(np.float64)
    is_long = np.array([math.isfinite(x) and float(f"{x:.12g}") != x for x in held[counts > 1]], bool)
    return bool(
        is_long.any()
        and is_pure[counts > 1][is_long].all()
        and not _is_on_a_grid(values.astype(np.float64), len(held) / 5)
    )


def _is_on_a_grid(values: Array, n_tied: float) -> bool:
    """Whether the smallest gap is so frequent that chance may tie n values; also in units of the decade."""
    values = values[np.isfinite(values)]
    known = np.unique(values)
    if len(known) < 10:  # which cannot tell
        return True
    n, size = len(values), np.abs(known)
    with np.errstate(over="ignore"):  # of gaps from one end of all floats to the other
        gaps = np.diff(known)
        n_cells = float((known[-1] - known[0]) / gaps.min()) + 1.0
    # The number of a row is repeated more rarely than random ones of its range.
    if n_cells < 1e15 and pdtr(n - len(known), n + n_cells * math.expm1(n * math.log1p(-1.0 / n_cells))) < 1e-6:
        return False
    rounding = 8.0 * np.finfo(np.float64).eps * size.max()
    low = np.minimum(size[:-1], size[1:])
    is_gap = (gaps > rounding) & (low > 0.0)
    for unit in (1.0, 10.0 ** np.floor(np.log10(low[is_gap]))):
        scaled = gaps[is_gap] / unit
        n_smallest = np.count_nonzero(scaled <= scaled.min(initial=np.inf) * (1.0 + 1e-6) + rounding / unit)
        if n_tied <= 2 * n_smallest:
            return True
    return False
