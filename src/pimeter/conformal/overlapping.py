"""Overlapping groups: each of them is covered, whichever others its rows belong to as well."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pimeter.arrays import coded
from pimeter.conformal.categories import CategoryLine
from pimeter.conformal.group_regression import GroupRegression, independent
from pimeter.conformal.guarantee import Guarantee, guarantee, scores_needed
from pimeter.conformal.quantile import ScoreQuantile
from pimeter.coverage import percent, warn_of_coverage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pimeter.conformal.guarantee import GuaranteeKind
    from pimeter.conformal.scores import CalibrationScores, Tails
    from pimeter.protocols import Array, Flags, Index

NONE_LIKE_THEM = "no calibration row is in the same groups as some new ones"


@dataclass(frozen=True)
class Groups:
    """Groups that rows may belong to, several at a time: rows with one label in one grouping.

    Of a grouping of truth values only those that are true are a group.
    """

    keys: tuple[tuple[int, Any], ...]  # grouping and label
    names: tuple[str, ...]

    @classmethod
    def of(cls, labels: NDArray[Any], names: Sequence[str] | None) -> Groups:
        """All groups of labelled rows, (m, groupings)."""
        keys, found = [], []
        for k, column in enumerate(labels.T):
            of = f"group {k}" if names is None else names[k]
            is_flag = labels.dtype.kind == "b" or all(isinstance(one, bool | np.bool_) for one in column.tolist())
            for label in [True] if is_flag else coded(column).labels:
                keys.append((k, label))
                found.append(of if is_flag else f"{of} is missing" if label is None else f"{of} = {label}")
        return cls(tuple(keys), tuple(found))

    def holds(self, labels: NDArray[Any]) -> Array:
        """Whether each row is in each group, (n, groups), 1 or 0; the last is that of all rows."""
        found = np.ones((len(labels), len(self.keys) + 1))
        coded_columns = [coded(column) for column in labels.T]
        for i, (k, label) in enumerate(self.keys):
            column = coded_columns[k]
            found[:, i] = column.codes == column.labels.index(label) if label in column.labels else 0.0
        return found


@dataclass(frozen=True)
class OverlappingQuantile(ScoreQuantile):
    """How large scores of new rows are at most, for each combination of groups: lines are groups, or new rows."""

    names: tuple[str, ...] | None = None  # of groupings
    seed: int | None = None  # of the randomised version; None: the deterministic one
    new_rows: Array | None = None  # (lines, groups) whose margins are asked for
    new_lines: Index | None = None  # line of each new row
    source: OverlappingQuantile | None = None  # that has the fits, of which these are some margins

    @classmethod
    def of_groups(
        cls,
        scores: CalibrationScores,
        tails: Tails,
        level: float,
        kind: GuaranteeKind,
        names: tuple[str, ...] | None,
        seed: int | None,
    ) -> OverlappingQuantile:
        """The quantile of scores with several labels each; refuses what is not proven of overlapping groups."""
        for is_so, what, instead in (
            (kind != "marginal", f"guarantee={kind!r}", 'guarantee="marginal"'),
            (tails.is_by_sign, 'tails="sided"', 'tails="equal"'),
            (scores.folds is not None, "cv", "cv=None"),
            (scores.importance is not None, "importance_weight", "one grouping"),
        ):
            if is_so:
                msg = f"groups that overlap are not proven to be covered with {what}; use {instead}."
                raise ValueError(msg)
        found = cls(scores, tails, level, kind, None, names, seed)
        if not found.seen:
            msg = "by is False in all calibration rows: none is in any of the groups. Give groups that have rows."
            raise ValueError(msg)
        found._warn_of_empty()
        return found

    def _warn_of_empty(self) -> None:
        """Say which groups have no calibration row."""
        empty = [name for name, n in zip(self._groups.names, self._n_rows, strict=True) if not n]
        if empty:
            needed = scores_needed(self.level, n_cuts=self.tails.n_cuts)
            warn_of_coverage(
                f"{', '.join(empty[:3])}{', ...' * (len(empty) > 3)}: no calibration row is there, so that "
                f"{percent(self.level, 6)} cannot be guaranteed there; {needed} rows would do. Intervals there go as "
                "far as the largest score."
            )

    @cached_property
    def _groups(self) -> Groups:
        assert self.scores.labels is not None
        return Groups.of(self.scores.labels, self.names)

    @cached_property
    def _holds(self) -> Array:
        """Whether calibration rows are in each group, (m, groups), the last being that of all rows."""
        assert self.scores.labels is not None
        return self._groups.holds(self.scores.labels)

    @property
    def _n_rows(self) -> list[int]:
        """Calibration rows of each group."""
        return [int(n) for n in self._holds[:, :-1].sum(axis=0)]

    @cached_property
    def _kept(self) -> Index:
        """Groups that are not combinations of those before them."""
        return independent(self._holds)

    @cached_property
    def _combined(self) -> Array:
        """How each group is a combination of those that are kept."""
        found = np.linalg.lstsq(self._holds[:, self._kept], self._holds, rcond=None)[0]
        return np.asarray(found, np.float64)

    @cached_property
    def _fits(self) -> dict[tuple[int, int], GroupRegression]:
        """The fit to the scores of each output and direction."""
        level, holds = self.tails.level(self.level), self._holds[:, self._kept]
        return {
            (j, direction): GroupRegression(holds, self._without_labels.towards(direction, j).values, level)
            for j in range(self.scores.above.shape[1])
            for direction in self.tails.directions
        }

    @property
    def members(self) -> list[Any]:
        """Calibration rows of each group."""
        return [np.flatnonzero(column) for column in self._holds[:, :-1].T]

    @cached_property
    def guarantees(self) -> list[list[Guarantee]]:
        """What is guaranteed to each group and output."""
        needed = scores_needed(self.level, n_cuts=self.tails.n_cuts)
        is_cut = min(self._n_rows) < needed
        outputs = range(self.scores.above.shape[1])
        return [
            [
                guarantee(self.scores, own, j, self.tails, self.level, self.kind, is_overlapping=True, is_cut=is_cut)
                for j in outputs
            ]
            for own in self.members
        ]

    @property
    def seen(self) -> list[int]:
        """All groups with calibration rows."""
        return [i for i, n in enumerate(self._n_rows) if n]

    def per_category(self, values: Sequence[Any]) -> Array:
        """Values of all groups."""
        return np.array(values)

    def coverage_ranges(self) -> Array:
        """Not known for groups that overlap."""
        return np.full((len(self.members), 2), np.nan)

    def categories(self) -> list[CategoryLine]:
        """Rows and guaranteed level of each group."""
        levels = (self.guaranteed(i) if n else np.nan for i, n in enumerate(self._n_rows))
        lines = zip(self._groups.names, self._n_rows, levels, strict=True)
        return [CategoryLine(name, n, level, "own" if n else "none") for name, n, level in lines]

    def for_rows(self, labels: NDArray[Any] | None) -> OverlappingQuantile:
        """The quantile with a line for each combination of groups that new rows have."""
        assert labels is not None
        held = self._groups.holds(labels)
        if self.seed is not None:
            return replace(self, new_rows=held, new_lines=np.arange(len(held)), source=self)
        distinct, lines = np.unique(held, axis=0, return_inverse=True)
        return replace(self, new_rows=distinct, new_lines=lines.reshape(-1), source=self)

    def lines(self, labels: NDArray[Any] | None) -> Index | None:  # noqa: ARG002
        """Combination of groups of each new row that `for_rows` was given."""
        return self.new_lines

    @cached_property
    def margins(self) -> Array:
        """Margins below and above of each combination of groups, (lines, outputs, 2); NaN before any is asked for."""
        n_outputs = self.scores.above.shape[1]
        if self.new_rows is None or self.source is None:
            return np.full((len(self.members), n_outputs, 2), np.nan)
        source, new = self.source, self.new_rows
        found = np.full((len(new), n_outputs, 2), np.inf)
        is_known = np.abs(new[:, source._kept] @ source._combined - new).max(axis=1) < 1e-6
        if not is_known.all():
            warn_of_coverage(
                f"{NONE_LIKE_THEM}: their intervals go as far as the largest score; nothing is guaranteed."
            )
        for (j, direction), fit in source._fits.items():
            scores = self._without_labels.towards(direction, j).values
            sides = [side for side in (0, 1) if direction in {0, 2 * side - 1}]
            for i, margin in enumerate(self._largest_scores(fit, new[:, source._kept], is_known)):
                known = _largest(scores, source._holds, new[i]) if np.isinf(margin) else margin
                found[i, j, sides] = _at_score(known, scores)
        return found

    def _largest_scores(self, fit: GroupRegression, new: Array, is_known: Flags) -> list[float]:
        """Largest score of each line, infinite for those not known; each begins at the fit of a line like it."""
        level = self.tails.level(self.level)
        if self.seed is not None:
            t = np.random.default_rng(self.seed).uniform(level - 1.0, level, len(new)).tolist()
            lines = zip(new, t, is_known, strict=True)
            return [fit.largest_score(row, own) if known else np.inf for row, own, known in lines]
        found, last, last_row = [], fit, np.zeros(new.shape[1])
        for row, known in zip(new, is_known, strict=True):
            start = last if np.abs(row - last_row).sum() < row.sum() else fit
            own = start.with_row(row) if known else None
            found.append(np.inf if own is None else own.at(row))
            if own is not None:
                last, last_row = own, row
        return found


def _largest(scores: Array, holds: Array, row: Array) -> float:
    """The largest score of rows that are in a group of a new one; of all rows where none does."""
    is_near = (holds[:, :-1] @ row[:-1]) > 0.0
    return float(scores[is_near].max() if is_near.any() else scores.max())


def _at_score(margin: float, scores: Array) -> float:
    """The margin, or the score that it is but for rounding, so that a tied target is not lost."""
    nearest = float(scores[np.abs(scores - margin).argmin()])
    return nearest if abs(nearest - margin) <= 1e-12 * float(np.abs(scores).max()) else margin
