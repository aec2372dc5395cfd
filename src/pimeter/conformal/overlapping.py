"""Overlapping groups: each of them is covered, whichever others its rows belong to as well."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from pimeter.arrays import coded
from pimeter.conformal.categories import CategoryLine
from pimeter.conformal.group_regression import GroupRegression, independent
from pimeter.conformal.guarantee import Guarantee, guarantee, scores_needed
from pimeter.conformal.quantile import ScoreQuantile
from pimeter.coverage import ROUNDING, percent, warn_of_coverage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pimeter.conformal.guarantee import GuaranteeKind
    from pimeter.conformal.scores import CalibrationScores, Tails
    from pimeter.protocols import Array, Flags, Index

NONE_LIKE_THEM = "no calibration row is in the same groups as some new ones"
MAX_COMBINATIONS = 64  # of groups, each of which is a linear program where a bound on all of them does not suffice


@dataclass(frozen=True)
class Groups:
    """Groups that rows may belong to, several at a time: rows with one label in one grouping.

    Of a grouping of truth values only those that are true are a group.
    """

    keys: tuple[tuple[int, Any], ...]  # grouping and label
    names: tuple[str, ...]
    flags: frozenset[int] = frozenset()  # groupings of truth values

    @classmethod
    def of(cls, labels: NDArray[Any], names: Sequence[str] | None) -> Groups:
        """All groups of labelled rows, (m, groupings)."""
        keys, found, flags = [], [], set()
        for k, column in enumerate(labels.T):
            of = f"group {k}" if names is None else names[k]
            is_flag = labels.dtype.kind == "b" or all(isinstance(one, bool | np.bool_) for one in column.tolist())
            flags |= {k} if is_flag else set()
            for label in [True] if is_flag else coded(column).labels:
                keys.append((k, label))
                found.append(of if is_flag else f"{of} is missing" if label is None else f"{of} = {label}")
        return cls(tuple(keys), tuple(found), frozenset(flags))

    def holds(self, labels: NDArray[Any]) -> Array:
        """Whether each row is in each group, (n, groups), 1 or 0; the last is that of all rows."""
        found = np.ones((len(labels), len(self.keys) + 1))
        coded_columns = [coded(column) for column in labels.T]
        for i, (k, label) in enumerate(self.keys):
            column = coded_columns[k]
            found[:, i] = column.codes == column.labels.index(label) if label in column.labels else 0.0
        return found

    def choices(self) -> list[Array]:
        """What a row may be of each grouping: one row of (choices, groups) for each label, for flags also none.

        A combination of groups that new rows may have is one choice of each grouping, and the group of all rows.
        """
        one_of_each = np.eye(len(self.keys), len(self.keys) + 1)
        groupings = np.array([k for k, _ in self.keys])
        none = np.zeros((1, one_of_each.shape[1]))
        of_groupings = [(k, one_of_each[groupings == k]) for k in dict.fromkeys(groupings.tolist())]
        return [np.concatenate([own, none]) if k in self.flags else own for k, own in of_groupings]


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

    @cached_property
    def _are_all_bounded(self) -> bool:
        """Whether no margin ought to be infinite, whatever groups a new row is in, and whichever row is the new one.

        A new row counts up to p, its variable in the dual problem. Here it has to be outweighed if it counts 1: then
        this holds, among the calibration rows and the new one, for all of them or for none, as p and the 1 - p of a row
        that changes places with it are 1 in all. So a set of rows that could be cut is never taken for one that cannot.
        """
        high, choices = self.tails.level(self.level), self._groups.choices()
        if len(choices) == 1:  # groups that do not overlap
            return min(self._n_rows) >= scores_needed(self.level, n_cuts=self.tails.n_cuts)
        if min(self._n_rows) * (1.0 - high) < 1.0 - ROUNDING or len(self._kept) < 1 + sum(len(a) - 1 for a in choices):
            return False
        if self._are_outweighed_at_once(choices, high):
            return True
        if prod(map(len, choices)) > MAX_COMBINATIONS:
            return False
        fit, every = next(iter(self._fits.values())), np.eye(self._holds.shape[1])[-1]
        rows = (every + np.sum(combination, axis=0) for combination in product(*choices))
        return all(fit.with_row(row[self._kept], 1.0) is not None for row in rows)

    def _are_outweighed_at_once(self, choices: Sequence[Array], high: float) -> bool:
        """Whether one vector of weights of the calibration rows, linear in the groups, outweighs every new row."""
        kept = self._holds[:, self._kept]
        weight = np.zeros((len(np.unique(kept, axis=0)), self._holds.shape[1]))
        weight[:, self._kept] = np.linalg.solve(kept.T @ kept, np.unique(kept, axis=0).T).T
        of_choices = [weight @ own.T for own in choices]
        most, least = (weight[:, -1] + sum(how(own, axis=1) for own in of_choices) for how in (np.max, np.min))
        return bool(most.max() <= 1.0 - high + ROUNDING and least.min() >= -high - ROUNDING)

    @property
    def members(self) -> list[Any]:
        """Calibration rows of each group."""
        return [np.flatnonzero(column) for column in self._holds[:, :-1].T]

    @cached_property
    def guarantees(self) -> list[list[Guarantee]]:
        """What is guaranteed to each group and output."""
        is_cut = not self._are_all_bounded
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
