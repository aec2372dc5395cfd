"""Checks at the public edge: levels, weights, finite numbers and integers, each written once.

Each takes the name of the argument, which its message begins with, and returns what was given in the form that the
library computes with.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING

import numpy as np

from pimeter.arrays import real_array

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from pimeter.protocols import Array, Flags

LEAVE_OUT = "Leave these rows out."


def first_index(mask: Flags) -> str:
    """Index of the first True as one writes it: 3, or 3, 1."""
    return ", ".join(str(i) for i in np.argwhere(mask)[0])


def per_cent_hint(given: object) -> str:
    """What to do with a level that seems to be given in per cent; empty for all else."""
    try:
        values = np.atleast_1d(np.asarray(given))
    except ValueError:  # rows of several lengths
        return ""
    is_meant = values.dtype.kind in "fiu" and values.size and values.min() >= 0.0 and 1.0 < values.max() <= 100.0
    return " For per cent divide by 100." if is_meant else ""


def one_level(name: str, value: float) -> float:
    """A number between 0 and 1, both excluded."""
    if isinstance(value, bool) or not (isinstance(value, Real) and 0.0 < value < 1.0):
        is_list = hasattr(value, "__len__") and not isinstance(value, str)
        hint = " One level is taken here, not a list." if is_list else per_cent_hint(value)
        msg = f"{name} must lie between 0 and 1; got {value!r}.{hint}"
        raise ValueError(msg)
    return float(value)


def levels_array(name: str, given: ArrayLike) -> Array:
    """Levels between 0 and 1, both excluded, in the shape in which they are given."""
    levels: Array = real_array(name, given).astype(np.float64)
    if not ((levels > 0.0) & (levels < 1.0)).all():
        msg = f"{name} must lie between 0 and 1; got {given!r}.{per_cent_hint(given)}"
        raise ValueError(msg)
    return levels


def one_or_more_levels(name: str, given: ArrayLike) -> Array:
    """A level or a list of levels between 0 and 1, both excluded: shape () or (L,)."""
    levels = levels_array(name, given)
    if levels.ndim > 1 or not levels.size:
        msg = f"{name} must be a level, or a list of levels, between 0 and 1; got {given!r}."
        raise ValueError(msg)
    return levels


def distinct_levels(name: str, given: ArrayLike) -> Array:
    """Levels between 0 and 1, both excluded, of which none is given twice: shape (q,)."""
    levels = np.atleast_1d(levels_array(name, given))
    if levels.ndim != 1 or not levels.size or np.unique(levels).size < levels.size:
        msg = f"{name} must be one row of different numbers; got {given!r}. Give each level once, with its quantiles."
        raise ValueError(msg)
    return levels


def quantile_levels(name: str, given: ArrayLike) -> Array:
    """Levels of quantiles, from 0 to 1 inclusive, in the shape in which they are given."""
    levels: Array = real_array(name, given).astype(np.float64, copy=False)
    if levels.size and not (levels.min() >= 0.0 and levels.max() <= 1.0):
        msg = f"{name} must lie in [0, 1]; got {given!r}.{per_cent_hint(given)}"
        raise ValueError(msg)
    return levels


def not_empty(name: str, array: NDArray[np.generic]) -> None:
    """Refuse an array without values."""
    if array.size == 0:
        msg = f"{name} must hold at least one value; got shape {array.shape}. Give the rows of a held-out set."
        raise ValueError(msg)


def check_finite(name: str, array: NDArray[np.floating], remedy: str = LEAVE_OUT) -> None:
    """Refuse NaN and infinite values, naming the first."""
    if not np.isfinite(array).all():
        _refuse(name, "be finite", array, ~np.isfinite(array), remedy)


def check_finite_rows(name: str, values: Array, remedy: str) -> None:
    """Refuse NaN and infinite values of rows, naming the first row; with "NaN" and "infinity", as scikit-learn asks."""
    if not np.isfinite(values).all():
        row = int(np.argwhere(~np.isfinite(values))[0, 0])
        kind = "NaN" if np.isnan(values).any() else "infinity"
        msg = f"{name} contains {kind}, first in row {row}. {remedy}"
        raise ValueError(msg)


def finite_numbers(name: str, values: ArrayLike) -> Array:
    """Finite numbers as float64, at least one."""
    numbers = real_array(name, values).astype(np.float64, copy=False)
    not_empty(name, numbers)
    check_finite(name, numbers)
    return numbers


def known_numbers(name: str, values: ArrayLike) -> Array:
    """Numbers as float64, at least one, of which none is NaN; they may be infinite."""
    numbers = real_array(name, values).astype(np.float64, copy=False)
    not_empty(name, numbers)
    if np.isnan(numbers).any():
        _refuse(name, "not be NaN", numbers, np.isnan(numbers), LEAVE_OUT)
    return numbers


def _refuse(name: str, what: str, array: NDArray[np.floating], bad: Flags, remedy: str) -> None:
    where = f"{name}[{first_index(bad)}] is {array[bad][0]} ({bad.sum()} such of {bad.size} values)"
    msg = f"{name} must {what}; {where}. {remedy}"
    raise ValueError(msg)


def row_weights(name: str, given: ArrayLike, n: int, *, may_all_be_zero: bool = False) -> Array:
    """Weights of n rows: finite, none negative, not all 0 unless they may be."""
    weights: Array = real_array(name, given).astype(np.float64)
    if weights.shape != (n,):
        msg = f"{name} must hold one weight for each of the {n} rows; got shape {weights.shape}."
        raise ValueError(msg)
    check_finite(name, weights)
    if (weights < 0.0).any() or not (may_all_be_zero or weights.any()):
        what = "not negative" if may_all_be_zero else "not negative and not all 0"
        msg = f"{name} must be {what}; got {weights.min():g} to {weights.max():g}."
        raise ValueError(msg)
    return weights


def scores_between_0_and_1(name: str, given: ArrayLike) -> Array:
    """Scores of shape (n,), or (n, k) for k classes; a single column becomes (n,)."""
    score = real_array(name, given)
    if score.ndim not in {1, 2} or not score.size:
        msg = f"{name} must have shape (n,) or (n, n_classes), with at least one row; got {score.shape}."
        raise ValueError(msg)
    score = score.astype(np.float64, copy=False)
    if score.ndim == 2 and score.shape[1] == 1:
        score = score[:, 0]
    if not (score.min() >= 0.0 and score.max() <= 1.0):
        wrong = ~((score >= 0.0) & (score <= 1.0))
        msg = (
            f"{name} must be scores between 0 and 1; {name}[{first_index(wrong)}] is {score[wrong][0]:g}. Of other "
            "scores take a sigmoid first, such as scipy.special.expit of a decision function; leave out rows with NaN."
        )
        raise ValueError(msg)
    return score


def check_limits(y_min: float | None, y_max: float | None) -> None:
    """Refuse limits that leave nothing between them, or are not finite numbers."""
    for name, limit in (("y_min", y_min), ("y_max", y_max)):
        if limit is not None and not np.isfinite(limit):
            msg = f"{name} must be a finite number, or None for no limit; got {limit!r}."
            raise ValueError(msg)
    if y_min is not None and y_max is not None and y_min >= y_max:
        msg = f"y_min must be less than y_max; got y_min={y_min:g} and y_max={y_max:g}."
        raise ValueError(msg)


def integer(name: str, value: int, *, at_least: int) -> int:
    """An integer that is not too small."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < at_least:
        msg = f"{name} must be an integer of at least {at_least}; got {value!r}."
        raise ValueError(msg)
    return int(value)
