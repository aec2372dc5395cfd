"""Quantiles of calibration scores at one level: the margins of intervals, and the limits of sets."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from pimeter._kernels.dispatch import kernel
from pimeter.arrays import coded
from pimeter.conformal.categories import GUARANTEED_TOGETHER, LABEL_OF_UNSEEN, CategoryLine, CategoryTable
from pimeter.conformal.folds import kth_smallest
from pimeter.conformal.guarantee import (
    ESTIMATED,
    Guarantee,
    confidence_of,
    guarantee,
    neuron_level,
    rank_below,
    rank_guarantee,
    warn_of_few_scores,
)
from pimeter.coverage import ROUNDING, percent, warn_of_coverage
from pimeter.quantiles import quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pimeter.conformal.guarantee import GuaranteeKind
    from pimeter.conformal.scores import CalibrationScores, Tails
    from pimeter.protocols import Array, Flags, Index

NO_SUCH_SIGN = "no calibration row has a residual of this sign"
SETS_ARE_FULL = "too few small ones to learn from: their sets are full"
INTERVALS_ARE_WIDE = (
    "no small ones to learn from: their intervals go as far as the largest score, and nothing is guaranteed"
)


@dataclass(frozen=True)
class ScoreQuantile:
    """How large scores of new rows are at most, at one level: for each line of a table of categories, and output."""

    scores: CalibrationScores
    tails: Tails
    level: float
    kind: GuaranteeKind
    table: CategoryTable | None = None  # None: one line for all rows

    @classmethod
    def in_categories(
        cls,
        scores: CalibrationScores,
        tails: Tails,
        level: float,
        kind: GuaranteeKind,
        *,
        min_rows: int | None = None,
        expected: Sequence[Any] | None = None,
    ) -> ScoreQuantile:
        """The quantile in each category of the scores, if they have any; `CategoryTable.of` takes the keywords."""
        found = cls(scores, tails, level, kind)
        if scores.labels is None:
            return found
        return replace(
            found, table=CategoryTable.of(scores.labels, found._guarantees_of, min_rows=min_rows, expected=expected)
        )

    def at(self, level: float) -> ScoreQuantile:
        """The quantile at another level; categories keep their lines, so that a higher level is never narrower."""
        return self if level == self.level else replace(self, level=level)

    @property
    def members(self) -> list[Any]:
        """Calibration rows of each line."""
        return [slice(None)] if self.table is None else self.table.members

    @cached_property
    def guarantees(self) -> list[list[Guarantee]]:
        """What each line guarantees to each output, (lines, outputs)."""
        if self.table is None:
            return [self._guarantees_of(slice(None))]
        *seen, last = self.table.members
        # Where no category is small, nothing is known of those never seen: no score tells of them.
        unseen = self._guarantees_of(last if self.table.pooled else np.arange(0), is_unseen=True)
        return [*map(self._guarantees_of, seen), unseen]

    def _guarantees_of(self, members: slice | Index, *, is_unseen: bool = False, heavy: float = 0.0) -> list[Guarantee]:
        """What some calibration rows guarantee to each output."""
        return [
            guarantee(self.scores, members, j, self.tails, self.level, self.kind, is_unseen=is_unseen, heavy=heavy)
            for j in range(self.scores.above.shape[1])
        ]

    @cached_property
    def margins(self) -> Array:
        """Margins below and above for new rows of average importance, (lines, outputs, 2)."""
        outputs, one = range(self.scores.above.shape[1]), np.ones(1)
        return np.array([[self._margins(line, j, one)[0] for j in outputs] for line in range(len(self.members))])

    def guaranteed(self, line: int) -> float:
        """Coverage that is guaranteed to each output of a line."""
        return _least_level(self.guarantees[line])

    def guaranteed_to(self, lines: Index | None, importance: Array, *, are_estimated: bool = False) -> Array:
        """Coverage that is guaranteed to new rows of their own importance, the least over outputs; warns of heavy ones.

        NaN for rows that are too heavy: their intervals, which go as far as the largest score, ought to be infinite.
        """
        doubts = (*self.scores.doubts, ESTIMATED) if are_estimated else self.scores.doubts
        known = replace(self, scores=replace(self.scores, doubts=doubts))
        every = np.zeros(len(importance), np.intp) if lines is None else lines
        found, n_heavy = np.full(len(importance), np.nan), 0
        for line in np.unique(every).tolist():
            rows = np.flatnonzero(every == line)
            heavy = self.are_too_heavy(line, importance[rows])
            n_heavy += int(np.count_nonzero(heavy))
            if not heavy.all():
                is_unseen = self.table is not None and line == self.table.unseen
                own = known._guarantees_of(self.members[line], is_unseen=is_unseen, heavy=float(heavy.mean()))
                found[rows[~heavy]] = _least_level(own)
        if n_heavy:
            warn_of_coverage(
                f"importance_weight of {n_heavy} of {len(every)} new rows is so large that the calibration rows cannot "
                f"guarantee {percent(self.level, 6)} for them; their intervals go as far as the largest score."
            )
        return found

    def weakest(self, line: int) -> Guarantee:
        """The guarantee of the output with the fewest scores."""
        return min(self.guarantees[line], key=attrgetter("m"))

    @property
    def seen(self) -> list[int]:
        """Lines of all categories seen in calibration, or the only one."""
        return [0] if self.table is None else self.table.lines

    def reason(self) -> str:
        """Why nothing is guaranteed to some output or category seen in calibration; empty where something is to all."""
        return next((one.reason for line in self.seen for one in self.guarantees[line] if one.reason), "")

    def coverage_ranges(self) -> Array:
        """Coverage ranges of the first output, by category; NaN where small ones have common scores, none by itself."""
        found = [line[0].coverage_range for line in self.guarantees]
        if self.table is not None:
            found[self.table.shared] = found[self.table.unseen] = (np.nan, np.nan)
        return self.per_category(found)

    def per_category(self, values: Sequence[Any]) -> Array:
        """Values of all lines, one for each category and, for intervals, one for those never seen; or the only one."""
        if self.table is None:
            return np.asarray(values[0])
        last = [] if self.scores.is_full_if_few else [self.table.unseen]
        return np.array([values[line] for line in (*self.table.lines, *last)])

    def categories(self) -> list[CategoryLine]:
        """Rows, guaranteed level and source of each category and, for intervals, of those never seen in a last line."""
        if self.table is None:
            return []
        found, is_set = [], self.scores.is_full_if_few
        for label, n in self.table.rows.items():
            line = self.table.line_of[label]
            source = "shared" if line == self.table.shared else "own"
            source = "none" if is_set and not self.weakest(line).is_enough else source
            found.append(
                CategoryLine(label, n, self.guaranteed(line), source, GUARANTEED_TOGETHER if source == "shared" else "")
            )
        level, why = self.guaranteed(self.table.unseen), self.weakest(self.table.unseen).reason
        unseen = CategoryLine(LABEL_OF_UNSEEN, 0, level, "shared" if self.table.pooled else "none", why)
        return found if is_set else [*found, unseen]

    def for_rows(self, labels: NDArray[Any] | None) -> ScoreQuantile:  # noqa: ARG002
        """The quantile with a line for each new row with these labels; the same for all where categories have lines."""
        return self

    def lines(self, labels: NDArray[Any] | None) -> Index | None:
        """Line of each new row; warns of categories of which nothing is known."""
        table = self.table
        if labels is None or table is None:
            return None
        new = coded(labels)
        self._warn_of_unseen(table, [label for label in new.labels if label not in table.line_of])
        return np.array([table.line_of.get(label, table.unseen) for label in new.labels], np.intp)[new.codes]

    def _warn_of_unseen(self, table: CategoryTable, unseen: list[Any]) -> None:
        """Say that categories were never seen: perhaps they were, as another type, or nothing is known of them."""
        known = {str(label): label for label in table.line_of} if unseen else {}
        namesakes = [(label, known[str(label)]) for label in unseen if str(label) in known]
        others = [label for label in unseen if str(label) not in known]
        if namesakes:
            new, old = namesakes[0]
            warn_of_coverage(
                f"by holds {new!r} ({type(new).__name__}), which calibration has not seen; it has seen {old!r} "
                f"({type(old).__name__}). These are two categories: if they are the same, give both in one type."
            )
        is_known, then = bool(table.pooled), INTERVALS_ARE_WIDE
        if self.scores.is_full_if_few:
            is_known, then = self.weakest(table.unseen).is_enough, SETS_ARE_FULL
        if others and not is_known:
            names = ", ".join(map(repr, others[:3])) + ", ..." * (len(others) > 3)
            n = "a category" if len(others) == 1 else f"{len(others)} categories"
            warn_of_coverage(f"by holds {n} never seen in calibration ({names}), and {then}.")

    def weighted_margins(self, lines: Index, output: int, importance: Array) -> Array:
        """Margins below and above for new rows with importance weights of their own, (2, n)."""
        margins = np.empty((2, len(lines)))
        for line in np.unique(lines):
            rows = lines == line
            margins[:, rows] = self._margins(int(line), output, importance[rows], is_importance=True).T
        return margins

    def are_too_heavy(self, line: int, importance: Array) -> Flags:
        """Whether all scores together are light beside new rows of this importance.

        The margin ought to be infinite then; it is the largest score instead.
        """
        found = np.zeros(len(importance), bool)
        for j in range(len(self.guarantees[line])):
            for direction in self.tails.directions:
                sample = self.sample(line, j, direction)
                m = sample.n_counted
                found |= (m + _unit(sample) * importance) * self.tails.level(self.level) > m + ROUNDING
        return found

    def fold_bound(self, line: int, output: int, side: int, centres: Array, scales: Array | None) -> Array:
        """Upper bound, with `side` 0 of mirrored values, among what the models of all folds say, (n_lists, n)."""
        if not (self.tails.has_upper if side else self.tails.has_lower):
            return np.full(centres.shape[1], np.inf)
        direction = self.tails.directions[-1 if side else 0]
        sample = self.sample(line, output, direction)
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

    def fold_holds(self, line: int, scores: Array) -> Flags:
        """Whether new scores by the models of all folds (n_models, ...) are small enough for a set.

        They are if fewer calibration scores than the rank are below, each compared by the model that left its row out.
        """
        own = self.guarantees[line][0]
        if not own.is_enough:
            return np.ones(scores.shape[1:], bool)
        sample = self.sample(line, 0, 1)
        assert sample.folds is not None
        below = np.zeros(scores.shape[1:], np.intp)
        for i, new in enumerate(scores):
            below += np.searchsorted(np.sort(sample.values[sample.folds.list_of_row == i]), new, side="left")
        return np.asarray(below < own.rank)

    def sample(self, line: int, output: int, direction: int) -> CalibrationScores:
        """Scores that bound one side; without any of its sign all absolute ones."""
        rows, output = self._without_labels.rows(self.members[line]), self._column(output)
        if not self.tails.is_by_sign:
            return rows.towards(direction, output)
        of_sign = rows.of_sign(direction, output)
        return of_sign if len(of_sign) else replace(rows.towards(0, output), doubts=(NO_SUCH_SIGN,))

    @cached_property
    def _without_labels(self) -> CalibrationScores:
        """Scores without what is told of each row, which would be copied for each category."""
        return replace(self.scores, labels=None, keys=None)

    def _column(self, output: int) -> int:
        """Column of scores for an output; all outputs have the same if they are covered jointly."""
        return min(output, int(self.scores.above.shape[1]) - 1)

    def _rank(self, line: int, sample: CalibrationScores) -> Guarantee:
        """Rank of the score that bounds one side; 0 where nothing is known of rows like the new ones."""
        is_unknown = self.table is not None and line == self.table.unseen and not self.table.pooled
        is_unknown = is_unknown or NO_SUCH_SIGN in sample.doubts
        m, confidence = 0.0 if is_unknown else sample.n_counted, confidence_of(self.tails)
        return rank_guarantee(m, self.level, kind=self.kind, n_cuts=self.tails.n_cuts, confidence=confidence)

    def _margins(self, line: int, output: int, new: Array, *, is_importance: bool = False) -> Array:
        """Margins below and above, (n, 2), for rows of these counts or importance weights; infinite without a bound."""
        found = []
        for direction in self.tails.directions:
            sample = self.sample(line, output, direction)
            counts = new * _unit(sample) if is_importance else new
            found.append(self._margin(self._rank(line, sample), sample, counts))
        return self.tails.margins(found)

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
        # Where weights differ, places between two scores are not ranks: the neuron stands at the place itself.
        is_rank = np.isclose(new_counts, 1.0) & (counts is None or np.ptp(counts) == 0.0)
        levels = np.where(is_rank, neuron_level(own.m, level), np.minimum(places / own.m, 1.0))
        return np.asarray(np.clip(quantile(sample.values, levels, weights=counts), low, high))


def _unit(sample: CalibrationScores) -> float:
    """What a row with importance weight 1 counts."""
    counts = sample.counts
    return 1.0 if counts is None or sample.importance is None else float(counts.sum() / sample.importance.sum())


def _at_ranks(sample: CalibrationScores, places: Array) -> Array:
    """Scores of these ranks, which are cumulative counts; the largest beyond them."""
    counts, scores = sample.counts, sample.values
    if counts is None:
        ranks = np.minimum(np.maximum(np.ceil(places - ROUNDING), 1.0), len(scores)).astype(np.intp)
        return np.asarray(kernel.order_statistics(scores, ranks))
    order = np.argsort(scores, kind="stable")
    total = np.cumsum(counts[order])
    return np.asarray(scores[order][np.minimum(np.searchsorted(total, places - ROUNDING), len(total) - 1)])


def _least_level(guarantees: list[Guarantee]) -> float:
    """The least level; NaN if one is."""
    levels = [one.level for one in guarantees]
    return math.nan if any(map(math.isnan, levels)) else min(levels)


class Calibrated:
    """Answers by a quantile of calibration scores, and says what that guarantees."""

    _quantile: ScoreQuantile

    def _know(self, quantile: ScoreQuantile) -> None:
        """Set what calibration is known by."""
        self._quantile, self.n_calibration_ = quantile, len(quantile.scores)
        self._warn_of_few(quantile)
        self.guaranteed_level_ = float(np.min([quantile.guaranteed(line) for line in quantile.seen]))
        self.guarantee_reason_ = quantile.reason()
        self.coverage_range_ = quantile.coverage_ranges()

    def _quantile_at(self, level: float) -> ScoreQuantile:
        """The quantile of the scores seen at another level; warns where they are too few for it."""
        found = self._quantile.at(level)
        if found is not self._quantile:
            self._warn_of_few(found)
        return found

    def _warn_of_few(self, quantile: ScoreQuantile) -> None:
        """Say where scores are too few for the level."""
        warn_of_few_scores(quantile)
