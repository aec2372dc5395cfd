"""Rows as they are given to a monitor, checked as a whole before any of them counts."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from pimeter.arrays import as_frame, even_array, label_list
from pimeter.frames import named_columns
from pimeter.interval_arrays import lower_and_upper
from pimeter.validation import finite_numbers

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pimeter.monitoring.stream import Label
    from pimeter.protocols import Array, Labels, Table

LARGEST_NUMBER = 1e300  # of targets and bounds: widths and their sums stay finite


class Intervals(NamedTuple):
    """Lower and upper bounds and subgroups of rows."""

    lower: list[float]
    upper: list[float]
    labels: list[Label]


def target_list(y_true: ArrayLike) -> list[float]:
    """Finite targets, one for each row; a single number is one row."""
    if type(y_true) is float and abs(y_true) <= LARGEST_NUMBER:
        return [y_true]
    targets = finite_numbers("y_true", [float(y_true)] if isinstance(y_true, int | float) else y_true)
    targets = np.atleast_1d(targets)  # arrays of shape ()
    if targets.ndim != 1:
        msg = f"y_true must be a number or have shape (n,); got shape {targets.shape}. Watch outputs one by one."
        raise ValueError(msg)
    _refuse_large("y_true", targets)
    return [float(value) for value in targets.tolist()]


def interval_lists(intervals: Table, by: Labels | None, n: int) -> Intervals:
    """Finite bounds of n rows, in order, and the subgroup of each row, None without `by`."""
    if n == 1 and by is None and _is_one_row(intervals):
        lower, upper = cast("tuple[float, float]", intervals)
        return Intervals([lower], [upper], [None])
    frame = as_frame(intervals)
    given: Any = intervals if frame is None else named_columns("intervals", frame, ("lower", "upper"))
    table = finite_numbers("intervals", given)
    table = table[None] if table.ndim == 1 else table
    if table.ndim != 2 or table.shape[1] != 2 or len(table) != n:
        msg = f"intervals must have shape ({n}, 2), a lower and an upper bound for each row; got {np.shape(given)}."
        raise ValueError(msg)
    _refuse_large("intervals", table)
    bounds = lower_and_upper(table, 1)
    lower_list, upper_list = (side.tolist() for side in bounds)
    return Intervals(lower_list, upper_list, label_lists("by", by, len(table)))


def _is_one_row(given: object) -> bool:
    """Whether this is a tuple of two floats that are right as they are, which saves most of the time of one row."""
    if type(given) is not tuple or len(given) != 2:
        return False
    lower, upper = given
    return type(lower) is float and type(upper) is float and -LARGEST_NUMBER <= lower <= upper <= LARGEST_NUMBER


def label_lists(name: str, given: Labels | None, n: int) -> list[Label]:
    """A label for each of n rows, None for all without labels and for a missing one; dates and the like as strings."""
    if given is None:
        return [None] * n
    labels = np.atleast_1d(even_array(name, given))
    if labels.shape != (n,):
        msg = f"{name} must hold one label for each of the {n} rows; got shape {labels.shape}."
        raise ValueError(msg)
    return [label if _is_plain(label) else str(label) for label in label_list(labels)]


def _is_plain(label: object) -> bool:
    """Whether JSON can hold a label as it is: a finite number, a string or None."""
    return math.isfinite(label) if isinstance(label, float) else label is None or isinstance(label, str | int)


def id_list(ids: Labels) -> list[str]:
    """Ids as JSON text, which tells 1 from "1"; each once."""
    given = np.atleast_1d(even_array("ids", ids))
    if given.ndim != 1 or not given.size:
        msg = f"ids must have shape (n,), an id for each row; got shape {given.shape}."
        raise ValueError(msg)
    found = label_lists("ids", given, len(given))
    for i, one in enumerate(found):
        if one is None:
            msg = f"ids[{i}] is missing; each row needs an id."
            raise ValueError(msg)
    texts = [json.dumps(one) for one in found]
    if len(set(texts)) < len(texts):
        twice = Counter(texts).most_common(1)[0][0]
        msg = f"id {twice} is given twice in one call; give each row once."
        raise ValueError(msg)
    return texts


def _refuse_large(name: str, values: Array) -> None:
    """Refuse numbers whose differences may not be finite."""
    if np.abs(values).max() > LARGEST_NUMBER:
        msg = f"{name} must lie between -1e300 and 1e300; got {values.ravel()[np.abs(values).argmax()]:g}."
        raise ValueError(msg)
