"""Mondrian groups: which calibration rows stand for the new rows of each category."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pimeter.arrays import coded

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from pimeter.conformal.guarantee import Guarantee

    Index = NDArray[np.intp]

TOGETHER = "guaranteed to all small categories and those never seen together, to none of them by itself"


class Group(NamedTuple):
    """One line of the table of groups."""

    label: Any  # the category, or the class
    rows: int  # calibration rows
    level: float  # coverage that is guaranteed, to whom the note says; NaN where nothing is
    source: str  # "own" scores, those "shared" by all small groups and those never seen, or "none"
    note: str = ""


@dataclass(frozen=True)
class GroupTable:
    """Lines of calibration rows: one for each group with enough of them, one for all small groups, one for others.

    Small groups have the rows of all small groups *and* of those that would be small with a row less: to a new row of
    a small group the two look the same once it counts itself, and without the latter, hard groups that are short of
    rows by chance would be fewer in the pool than among the new rows that it answers for.
    """

    rows: dict[Any, int]  # of each group
    line_of: dict[Any, int]  # from group to its line
    members: list[Any]  # calibration rows of each line
    pooled: frozenset[Any]  # groups whose rows stand for the small ones

    @property
    def shared(self) -> int:
        """Line of small groups; where there are none, that of groups never seen."""
        return len(self.members) - (2 if self.pooled else 1)

    @property
    def unseen(self) -> int:
        """Line of groups never seen, the last: the rows of small groups, or all rows where none are small."""
        return len(self.members) - 1

    @property
    def lines(self) -> list[int]:
        """Lines of all groups, in their order."""
        return [self.line_of[label] for label in self.rows]

    def spare(self, label: object) -> float:
        """Rows that a group has beyond those that it needs, as far as it matters: less than 0, 0 or 1."""
        if self.line_of.get(label, self.shared) == self.shared:
            return -1.0
        return 0.0 if label in self.pooled else 1.0

    @classmethod
    def of(
        cls,
        labels: NDArray[Any],
        guarantees: Callable[[Index], list[Guarantee]],
        *,
        min_rows: int | None = None,
        like: GroupTable | None = None,
        expected: Sequence[Any] | None = None,
    ) -> GroupTable:
        """Divide calibration rows into groups.

        Parameters
        ----------
        labels : ndarray of shape (m,)
            Group of each row.
        guarantees : callable
            What rows guarantee to each output.
        min_rows : int or None, default=None
            Rows from which on a group has a line of its own; None: as many as the guarantee takes.
        like : GroupTable or None, default=None
            The same groups have lines of their own as there, whatever the level.
        expected : sequence or None, default=None
            Groups in their order, also those without rows, which then all have lines of their own.
        """
        members = _members(labels, expected)
        lines: list[Any] = []
        line_of: dict[Any, int] = {}
        pooled: dict[Any, Index] = {}
        for label, own in members.items():
            if expected is not None:
                spare = 1.0
            elif like is not None:
                spare = like.spare(label)
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
    """Rows of each group, of those expected where these are given, in their order."""
    found, codes = coded(labels)
    order, counts = np.argsort(codes, kind="stable"), np.bincount(codes, minlength=len(found))
    rows = dict(zip(found, np.split(order, np.cumsum(counts)[:-1]), strict=True))
    return rows if expected is None else {label: rows.get(label, order[:0]) for label in expected}
