"""Categories (Mondrian groups): which calibration rows stand for the new rows of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils.validation import _num_samples

from pimeter.arrays import as_frame, coded, even_array, label_list
from pimeter.frames import column_of, refuse_other_order

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from pimeter.conformal.guarantee import Guarantee
    from pimeter.protocols import FeatureTable, Index

GUARANTEED_TOGETHER = "guaranteed to all small categories and those never seen together, to none of them by itself"
LABEL_OF_UNSEEN = "(never seen)"


class CategoryLine(NamedTuple):
    """One line of the table of categories."""

    label: Any  # the category, or the class
    rows: int  # calibration rows
    level: float  # coverage that is guaranteed, to whom the note says; NaN where nothing is
    source: str  # "own" scores, those "shared" by all small categories and those never seen, or "none"
    note: str = ""


@dataclass(frozen=True)
class CategoryTable:
    """Lines of calibration rows: one for each category with enough of them, one for all small ones, one for others.

    Small categories have the rows of all small ones *and* of those that would be small with a row less: to a new row
    of a small category the two look the same once it counts itself, and without the latter, hard categories that are
    short of rows by chance would be fewer in the pool than among the new rows that it answers for.
    """

    rows: dict[Any, int]  # of each category
    line_of: dict[Any, int]  # from category to its line
    members: list[Any]  # calibration rows of each line
    pooled: frozenset[Any]  # categories whose rows stand for the small ones

    @property
    def shared(self) -> int:
        """Line of small categories; where there are none, that of categories never seen."""
        return len(self.members) - (2 if self.pooled else 1)

    @property
    def unseen(self) -> int:
        """Line of categories never seen, the last: the rows of small ones, or all rows where none are small."""
        return len(self.members) - 1

    @property
    def lines(self) -> list[int]:
        """Lines of all categories, in their order."""
        return [self.line_of[label] for label in self.rows]

    @classmethod
    def of(
        cls,
        labels: NDArray[Any],
        guarantees: Callable[[Index], list[Guarantee]],
        *,
        min_rows: int | None = None,
        expected: Sequence[Any] | None = None,
    ) -> CategoryTable:
        """Divide calibration rows into categories, by what rows guarantee to each output.

        A category has a line of its own from `min_rows` on; None: from as many as the guarantee takes. Where some are
        `expected`, they all have, in their order, also those without rows.
        """
        members = _members(labels, expected)
        lines: list[Any] = []
        line_of: dict[Any, int] = {}
        pooled: dict[Any, Index] = {}
        for label, own in members.items():
            if expected is not None:
                spare = 1.0
            elif min_rows is not None:
                spare = len(own) - min_rows
            else:
                spare = min(one.m - one.needed for one in guarantees(own))
            if spare >= 0.0:
                line_of[label] = len(lines)
                lines.append(own)
            if spare < 1.0:
                pooled[label] = own
        line_of |= {label: len(lines) for label in pooled if label not in line_of}
        lines += [np.concatenate(list(pooled.values()))] * 2 if pooled else [slice(None)]
        return cls({label: len(own) for label, own in members.items()}, line_of, lines, frozenset(pooled))


def _members(labels: NDArray[Any], expected: Sequence[Any] | None) -> dict[Any, Index]:
    """Rows of each category, of those expected where these are given, in their order."""
    found = coded(labels)
    order, counts = np.argsort(found.codes, kind="stable"), np.bincount(found.codes, minlength=len(found.labels))
    rows = dict(zip(found.labels, np.split(order, np.cumsum(counts)[:-1]), strict=True))
    return rows if expected is None else {label: rows.get(label, order[:0]) for label in expected}


def category_labels(X: FeatureTable, by: ArrayLike | None, own: Any, name: str) -> NDArray[Any] | None:
    """Category of each row: given to a method or, as a column or a function of X, to the object of this name."""
    if by is not None and own is not None:
        msg = f"by is given twice: to the method, and as {name}(by={own!r}). Leave one of them out."
        raise ValueError(msg)
    if by is None and own is None:
        return None
    refuse_other_order("X", X, "by", by)
    labels = even_array("by", by if by is not None else own(X) if callable(own) else column_of(X, own))
    if labels.shape != (_num_samples(X),):
        given = f"got shape {labels.shape}"
        if isinstance(by, str):
            given = f"got {by!r}. For a column of X use {name}(by={by!r})"
        msg = f"by must give one category for each of the {_num_samples(X)} rows of X; {given}."
        raise ValueError(msg)
    return labels


def group_labels(X: FeatureTable, by: ArrayLike | None, own: Any) -> NDArray[Any] | None:
    """Labels of each row in several groupings, (n, groupings); None where there is one alone."""
    n = _num_samples(X)
    if isinstance(own, list):
        if by is not None:
            msg = f"by is given twice: to the method, and as GroupedWidth(by={own!r}). Leave one of them out."
            raise ValueError(msg)
        return _own_labels(X, own, n)
    if by is None:
        return None
    refuse_other_order("X", X, "by", by)
    frame = as_frame(by)
    labels = even_array("by", by if frame is None else _side_by_side([one.to_numpy() for one in frame.iter_columns()]))
    if labels.ndim != 2:
        return None
    if len(labels) != n or not labels.shape[1]:
        msg = f"by of several groupings must have shape ({n}, groupings), a row for each of X; got {labels.shape}."
        raise ValueError(msg)
    return labels


def _own_labels(X: FeatureTable, own: list[Any], n: int) -> NDArray[Any]:
    """Labels of each of n rows by columns of X or functions of it, (n, groupings)."""
    if not own:
        msg = "GroupedWidth(by=[]) names no grouping; give columns of X or functions, or None."
        raise ValueError(msg)
    columns = [even_array("by", one(X) if callable(one) else column_of(X, one)) for one in own]
    wrong = [column.shape for column in columns if column.shape != (n,)]
    if wrong:
        msg = f"each of by={own!r} must give one label for each of the {n} rows of X; got shape {wrong[0]}."
        raise ValueError(msg)
    return _side_by_side(columns)


def _side_by_side(columns: list[NDArray[Any]]) -> NDArray[Any]:
    """Columns of one table, of truth values where all are, else of objects."""
    if all(column.dtype.kind == "b" for column in columns):
        return np.column_stack(columns)
    found = np.empty((len(columns[0]), len(columns)), object)
    for k, column in enumerate(columns):
        found[:, k] = label_list(column)
    return found
