"""Quantiles of calibration scores at one level: the margins of intervals, and the limits of sets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pimeter._kernels.dispatch import kernel
from pimeter.arrays import coded
from pimeter.conformal.folds import kth_smallest
from pimeter.conformal.groups import GroupTable
from pimeter.conformal.guarantee import Guarantee, confidence_of, neuron_level, rank_below, rank_guarantee, without
from pimeter.coverage import ROUNDING, warn_of_coverage
from pimeter.quantiles import quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pimeter.conformal.guarantee import GuaranteeKind
    from pimeter.conformal.scores import CalibrationScores, Tails

    Array = NDArray[np.float64]
    Index = NDArray[np.intp]

NO_SUCH_SIGN = "no calibration row has a residual of this sign"
NEVER_SEEN = "nothing is guaranteed to categories never seen, taken by themselves"


@dataclass(frozen=True)
class ScoreQuantile:
    """How large scores of new rows are at most, at one level: for each line of a table of groups, and each output."""

    scores: CalibrationScores
    tails: Tails
    level: float
    kind: GuaranteeKind
    members: list[Any]  # calibration rows of each line
    guarantees: list[list[Guarantee]]  # (lines, outputs)
    groups: GroupTable | None  # None: one line for all rows
    margins: Array  # (lines, outputs, 2) below and above, for new rows of average importance

    @classmethod
    def of(
        cls,
        scores: CalibrationScores,
        tails: Tails,
        level: float,
        kind: GuaranteeKind,
        *,
        min_rows: int | None = None,
        like: ScoreQuantile | None = None,
        expected: Sequence[Any] | None = None,
    ) -> ScoreQuantile:
        """From calibration scores; `min_rows`, `like` and `expected` are those of `GroupTable.of`."""
        known: dict[int, list[Guarantee]] = {}  # of members that the table of groups holds, by identity

        def guarantees(members: slice | NDArray[Any]) -> list[Guarantee]:
            if id(members) not in known:
                outputs = range(scores.above.shape[1])
                known[id(members)] = [scores.guarantee(members, j, tails, level, kind) for j in outputs]
            return known[id(members)]

        groups, members = None, [slice(None)]
        if scores.labels is not None:
            same = None if like is None else like.groups
            groups = GroupTable.of(scores.labels, guarantees, min_rows=min_rows, like=same, expected=expected)
            members = groups.members
        found = [guarantees(own) for own in members]
        if groups is not None:
            # New rows of small groups and of those never seen are covered together. The latter are the rarest, and if
            # these are the hardest, they are covered less. Where no group is small, nothing is known of others: as far
            # as any score.
            nothing = rank_guarantee(0, level, kind=kind, n_cuts=tails.n_cuts)
            found[-1] = [without(one, NEVER_SEEN) if groups.pooled else nothing for one in found[-1]]
        draft = cls(scores, tails, level, kind, members, found, groups, np.empty(0))
        typical = [
            [[side[0] for side in draft._margins(line, j, np.ones(1))] for j in range(scores.above.shape[1])]
            for line in range(len(members))
        ]
        return replace(draft, margins=np.array(typical))

    def guaranteed(self, line: int) -> float:
        """Coverage that is guaranteed to each output of a line."""
        return float(np.min([one.level for one in self.guarantees[line]]))

    def weakest(self, line: int) -> Guarantee:
        """The guarantee of the output with the fewest scores."""
        return min(self.guarantees[line], key=lambda one: one.m)

    def reason(self) -> str:
        """Why nothing is guaranteed to some output or group seen in calibration; empty where something is to all."""
        lines = [0] if self.groups is None else self.groups.lines
        return next((one.reason for line in lines for one in self.guarantees[line] if one.reason), "")

    def coverage_ranges(self) -> list[tuple[float, float]]:
        """Of the first output, for each line; NaN where small groups have common scores: none has them by itself."""
        found = [line[0].coverage_range for line in self.guarantees]
        if self.groups is not None:
            found[self.groups.shared] = found[self.groups.unseen] = (np.nan, np.nan)
        return found

    def per_group(self, values: Sequence[Any]) -> Array:
        """Values of all lines, one for each group and one for those never seen; the only one where there are none."""
        if self.groups is None:
            return np.asarray(values[0])
        return np.array([values[line] for line in (*self.groups.lines, self.groups.unseen)])

    def lines(self, labels: NDArray[Any] | None, consequence: str) -> Index | None:
        """Line of each new row; warns of groups of which nothing is known, with what follows from that."""
        if labels is None or self.groups is None:
            return None
        table = self.groups
        found, codes = coded(labels)
        self._warn_of_unseen([label for label in found if label not in table.line_of], consequence)
        return np.array([table.line_of.get(label, table.unseen) for label in found], np.intp)[codes]

    def _warn_of_unseen(self, unseen: list[Any], consequence: str) -> None:
        """Say that groups were never seen: perhaps they were, as another type, or nothing is known of such groups."""
        table = self.groups
        assert table is not None
        known = {str(label): label for label in table.line_of} if unseen else {}
        twins = [(label, known[str(label)]) for label in unseen if str(label) in known]
        others = [label for label in unseen if str(label) not in known]
        if twins:
            new, old = twins[0]
            warn_of_coverage(
                f"by holds {new!r} ({type(new).__name__}), which calibration has not seen; it has seen {old!r} "
                f"({type(old).__name__}). These are two categories: if they are the same, give both in one type."
            )
        is_known = self.weakest(table.unseen).is_enough if self.scores.is_full_if_few else bool(table.pooled)
        if others and not is_known:
            names = _listed(others)
            warn_of_coverage(
                f"by holds {len(others)} categories never seen in calibration ({names}), and {consequence}."
            )

    def weighted_margins(self, lines: Index, output: int, importance: Array) -> Array:
        """Margins below and above for new rows with importance weights of their own, (2, n)."""
        margins = np.empty((2, len(lines)))
        for line in np.unique(lines):
            rows = lines == line
            margins[:, rows] = self._margins(int(line), output, importance[rows], is_importance=True)
        return margins

    def are_too_heavy(self, line: int, importance: Array) -> NDArray[np.bool_]:
        """Whether all scores together are light beside new rows of this importance.

        The margin ought to be infinite then; it is the largest score instead.
        """
        found = np.zeros(len(importance), bool)
        for j in range(len(self.guarantees[line])):
            for direction in self.tails.directions:
                sample = self._sample(line, j, direction)
                m = sample.n_counted
                found |= (m + _unit(sample) * importance) * self.tails.level(self.level) > m + ROUNDING
        return found

    def fold_bound(self, line: int, output: int, side: int, centres: Array, scales: Array | None) -> Array:
        """Upper bound, with `side` 0 of mirrored values, among what the models of all folds say, (n_lists, n)."""
        if not (self.tails.has_upper if side else self.tails.has_lower):
            return np.full(centres.shape[1], np.inf)
        direction = self.tails.directions[-1 if side else 0]
        sample = self._sample(line, output, direction)
        assert sample.folds is not None
        lists, scores = sample.folds.list_of_row, sample.values
        own = self._rank(line, sample)
        k = own.rank or len(scores)
        outer = kth_smallest(centres, scales, scores, lists, k)
        below = rank_below(own.m, self.tails.level(self.level))
        if self.kind != "approximate" or below >= k:
            return outer
        # The neuron says where between two scores it stands; the same part of the way is gone between the two bounds.
        low, high = _at_ranks(sample, np.array([below, k], float))
        t = (self._margin(own, sample, np.ones(1))[0] - low) / (high - low) if low < high else 1.0
        return np.asarray((1.0 - t) * kth_smallest(centres, scales, scores, lists, below) + t * outer)

    def limit(self, line: int) -> float:
        """Largest score of a class in a set; infinite where scores are too few, so that the set is full."""
        return float(self.margins[line, 0, 1]) if self.weakest(line).is_enough else np.inf

    def fold_holds(self, line: int, scores: Array) -> NDArray[np.bool_]:
        """Whether new scores by the models of all folds (n_models, ...) are small enough for a set.

        They are if fewer calibration scores than the rank are below, each compared by the model that left its row out.
        """
        own = self.guarantees[line][0]
        if not own.is_enough:
            return np.ones(scores.shape[1:], bool)
        sample = self._sample(line, 0, 1)
        assert sample.folds is not None
        below = np.zeros(scores.shape[1:], np.intp)
        for i, new in enumerate(scores):
            below += np.searchsorted(np.sort(sample.values[sample.folds.list_of_row == i]), new, side="left")
        return np.asarray(below < own.rank)

    def cdf(self, line: int, output: int, y: Array, centres: Array, scales: Array) -> Array:
        """Proportion of scores below those of targets y (n, g) around centres (n_lists, n, 1).

        Ties count half, as does the new row itself.
        """
        sample = self._sample(line, output, 1)
        total = np.full(y.shape, 0.5)
        counts = np.ones(len(sample)) if sample.counts is None else sample.counts
        for i in range(len(centres)):
            rows = slice(None) if sample.folds is None else sample.folds.list_of_row == i
            order = np.argsort(sample.values[rows])
            scores = sample.values[rows][order]
            below = np.concatenate([[0.0], np.cumsum(counts[rows][order])])
            with np.errstate(over="ignore"):  # beyond all scores either way
                asked = (y - centres[i]) / scales[i]
            first = np.searchsorted(scores, asked)
            total += below[first]
            equal = np.flatnonzero(scores[np.minimum(first, len(scores) - 1)] == asked) if len(scores) else first[:0]
            last = np.searchsorted(scores, asked.flat[equal], side="right")
            total.flat[equal] += (below[last] - below[first.flat[equal]]) / 2.0
        proportions = total / (sample.n_counted + 1.0)
        proportions[np.isinf(y)] = y[np.isinf(y)] > 0.0
        return proportions

    def _sample(self, line: int, output: int, direction: int) -> CalibrationScores:
        """Scores that bound one side; without any of its sign all absolute ones."""
        rows, output = self.scores.rows(self.members[line]), self._column(output)
        if not self.tails.is_by_sign:
            return rows.towards(direction, output)
        of_sign = rows.of_sign(direction, output)
        return of_sign if len(of_sign) else replace(rows.towards(0, output), doubts=(NO_SUCH_SIGN,))

    def _column(self, output: int) -> int:
        """Column of scores for an output; all outputs have the same if they are covered jointly."""
        return min(output, int(self.scores.above.shape[1]) - 1)

    def _rank(self, line: int, sample: CalibrationScores) -> Guarantee:
        """Rank of the score that bounds one side; 0 where nothing is known of rows like the new ones."""
        is_unknown = self.groups is not None and line == self.groups.unseen and not self.groups.pooled
        is_unknown = is_unknown or NO_SUCH_SIGN in sample.doubts
        m, confidence = 0.0 if is_unknown else sample.n_counted, confidence_of(self.tails)
        return rank_guarantee(m, self.level, kind=self.kind, n_cuts=self.tails.n_cuts, confidence=confidence)

    def _margins(self, line: int, output: int, new: Array, *, is_importance: bool = False) -> list[Array]:
        """Margins below and above for new rows of these counts or importance weights; infinite without a bound."""
        found = [np.full(len(new), np.inf), np.full(len(new), np.inf)]
        for direction in self.tails.directions:
            sample = self._sample(line, output, direction)
            own = self._rank(line, sample)
            margin = self._margin(own, sample, new * _unit(sample) if is_importance else new)
            for side in (0, 1):
                if direction in {0, 2 * side - 1}:
                    found[side] = margin
        return found

    def _margin(self, own: Guarantee, sample: CalibrationScores, new_counts: Array) -> Array:
        """Quantile of a sample of scores, by its rank, for new rows of these counts."""
        if not own.m:
            return np.full(new_counts.shape, sample.values.max() if len(sample) else np.inf)
        if self.kind == "training-conditional":
            return _at_ranks(sample, np.full(new_counts.shape, float(own.rank)))
        level = self.tails.level(self.level)
        places = (own.m + new_counts) * level
        if self.kind == "marginal":
            return _at_ranks(sample, places)
        low, high = _at_ranks(sample, np.stack([np.maximum(np.floor(places + ROUNDING), 1.0), places]))
        counts = sample.counts
        # Where weights differ, places between two scores are no ranks: the neuron stands at the place itself.
        is_rank = np.isclose(new_counts, 1.0) & (counts is None or np.ptp(counts) == 0.0)
        levels = np.where(is_rank, neuron_level(own.m, level), np.minimum(places / own.m, 1.0))
        return np.asarray(np.clip(quantile(sample.values, levels, weights=counts), low, high))


def _listed(labels: list[Any]) -> str:
    """The first three labels."""
    return ", ".join(map(repr, labels[:3])) + (", ..." if len(labels) > 3 else "")


def _unit(sample: CalibrationScores) -> float:
    """What a row with importance weight 1 counts."""
    counts = sample.counts
    return 1.0 if counts is None or sample.importance is None else float(counts.sum() / sample.importance.sum())


def _at_ranks(sample: CalibrationScores, places: Array) -> Array:
    """Scores of these ranks, which are cumulative counts; the largest beyond them."""
    counts, scores = sample.counts, sample.values
    if counts is None:
        ranks = np.clip(np.ceil(places - ROUNDING).astype(np.intp), 1, len(scores))
        return np.asarray(kernel.order_statistics(scores, ranks))
    order = np.argsort(scores, kind="stable")
    total = np.cumsum(counts[order])
    return np.asarray(scores[order][np.minimum(np.searchsorted(total, places - ROUNDING), len(total) - 1)])
