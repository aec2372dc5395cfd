"""Nonconformity scores of calibration rows, what else is known of these rows, and which scores bound an interval."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pimeter.arrays import label_list
from pimeter.conformal.guarantee import GROUPS, effective_counts
from pimeter.duplicates import tells_copies

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pimeter.conformal.folds import FoldModels
    from pimeter.protocols import Array, Hashes, Index


class Tails(NamedTuple):
    """Which score bounds each side of an interval.

    A direction of 0 is the absolute residual, which bounds both sides; -1 and 1 are residuals towards the lower and the
    upper bound, negative on the other side of the prediction.
    """

    directions: tuple[int, ...]
    n_cuts: int = 1  # 2: misses are divided between the two tails of one sample
    is_by_sign: bool = False  # each direction has a sample of its own, the residuals of that sign

    @property
    def has_lower(self) -> bool:
        """Whether there is a lower bound."""
        return min(self.directions) <= 0

    @property
    def has_upper(self) -> bool:
        """Whether there is an upper bound."""
        return max(self.directions) >= 0

    @property
    def is_signed(self) -> bool:
        """Whether residuals count with their sign."""
        return 0 not in self.directions

    @property
    def has_centre(self) -> bool:
        """Whether intervals may lie beside the prediction, so that their middle is not 0."""
        return self.is_signed and not self.is_by_sign

    def level(self, p: float) -> float:
        """Level of the quantile of the scores of each direction, for intervals at level p."""
        return (p + self.n_cuts - 1.0) / self.n_cuts

    def bound_levels(self, p: float) -> Array:
        """Levels of signed residuals between which a band of level p lies; with one bound as far on both sides."""
        level = (1.0 + p) / 2.0 if self.has_lower and self.has_upper else p
        return np.sort([1.0 - level, level])

    def scores(self, residuals: Array, direction: int) -> Array:
        """Scores of residuals in one direction; NaN for those that do not count there."""
        if direction == 0:
            return np.abs(residuals)
        towards = residuals * direction
        return np.where(towards > 0.0, towards, np.nan) if self.is_by_sign else towards

    def margins(self, quantiles: list[Array]) -> Array:
        """Quantiles (..., h) of the scores of each direction as margins below and above, (..., h, 2)."""
        margins = np.full((*quantiles[0].shape, 2), np.inf)
        for direction, one in zip(self.directions, quantiles, strict=True):
            if direction <= 0:
                margins[..., 0] = one
            if direction >= 0:
                margins[..., 1] = one
        return margins


TAILS = {
    "symmetric": Tails((0,)),
    "equal": Tails((-1, 1), n_cuts=2),
    "sided": Tails((-1, 1), is_by_sign=True),
    "lower": Tails((-1,)),
    "upper": Tails((1,)),
}


@dataclass(frozen=True)
class CalibrationScores:
    """Scores of m calibration rows for k outputs.

    A score says how far a target lies beyond the bound that a model without calibration would give: beyond the
    prediction itself, or beyond a band around it. For classes it is how badly the true class fits.
    """

    above: Array  # (m, k) beyond the upper bound
    below: Array | None = None  # (m, k) beyond the lower bound; None: as far, with the other sign
    labels: NDArray[Any] | None = None  # (m,) categories
    importance: Array | None = None  # (m,) importance weights, of which only ratios matter
    folds: FoldModels | None = None  # which models left the rows out; None: one model left out all
    doubts: tuple[str, ...] = ()  # why the rows are not exchangeable with new ones
    groups: Index | None = None  # (m,) of rows that resemble each other, each group counting once
    n_groups: int | None = None  # groups of rows that resemble each other
    effective_size: float | None = None  # of estimated importance weights; None: weights, if any, are known
    keys: Hashes | None = None  # (m,) equal for equal rows
    places: Index | None = None  # (m,) of the rows among those given, while scores are made; None: all, in their order
    is_joint: bool = False  # whether each score is the largest of several outputs'
    is_full_if_few: bool = False  # whether too few scores make the answer hold everything, as a set of all classes

    def __len__(self) -> int:
        return len(self.above)

    @property
    def values(self) -> Array:
        """Scores of the first output."""
        return self.above[:, 0]

    @property
    def counts(self) -> Array | None:
        """Importance weights as counts, which sum to the effective number of rows; None: each row counts once.

        Of rows in groups, each group counts once (hierarchical conformal prediction).
        """
        if self.groups is not None and self.importance is None:
            return np.asarray(1.0 / np.bincount(self.groups)[self.groups])
        return None if self.importance is None or not len(self) else effective_counts(self.importance)

    @property
    def n_counted(self) -> float:
        """Number of rows, of weighted ones the sum of their counts, of rows in groups the number of groups."""
        if self.groups is not None and self.importance is None:  # which the sum of their counts may miss by rounding
            return float(np.count_nonzero(np.bincount(self.groups)))
        counts = self.counts
        return float(len(self) if counts is None else counts.sum())

    @property
    def n_effective(self) -> float:
        """Effective number of rows, drawn where the new ones come from."""
        return self.n_counted if self.effective_size is None else self.effective_size

    def rows(self, members: slice | NDArray[Any]) -> CalibrationScores:
        """Some of the rows."""
        columns = {name: getattr(self, name) for name in ("above", "below", "labels", "importance", "groups", "keys")}
        some: dict[str, Any] = {name: None if column is None else column[members] for name, column in columns.items()}
        return replace(self, **some, folds=None if self.folds is None else self.folds.rows(members))

    def in_groups(self, codes: Index | None, *, are_copies: bool) -> CalibrationScores:
        """Each group counts once: it has one row if rows are copies of one, else all rows with equal parts of a count.

        Without groups (None) each row counts. Nothing is proven of rows that resemble each other where there are folds,
        categories or importance weights, too.
        """
        if codes is None:
            return self
        if not are_copies:
            n_groups = int(np.count_nonzero(np.bincount(codes)))
            if self.folds is not None or self.labels is not None or self.importance is not None:
                return replace(self, n_groups=n_groups, doubts=(*self.doubts, GROUPS))
            return replace(self, n_groups=n_groups, groups=codes)
        first = np.unique(codes, return_index=True)[1]
        size = None if self.effective_size is None else self.effective_size * len(first) / len(codes)
        return replace(self.rows(np.sort(first)), effective_size=size)

    def joined(self, other: CalibrationScores) -> CalibrationScores:
        """Scores of these rows and of others, by one model; rows without an importance weight weigh 1."""
        both = (self, other)
        importance = labels = None
        if any(scores.importance is not None for scores in both):
            parts = [np.ones(len(scores)) if scores.importance is None else scores.importance for scores in both]
            importance = np.concatenate(parts)
        if self.labels is not None and other.labels is not None:
            labels = np.concatenate([self.labels, other.labels])
            if self.labels.dtype.kind != other.labels.dtype.kind:  # numbers would become strings, and dates numbers
                labels = np.empty(len(labels), object)
                labels[:] = [*label_list(self.labels), *label_list(other.labels)]
        is_estimated = any(scores.effective_size is not None for scores in both)
        return replace(
            self,
            above=np.concatenate([self.above, other.above]),
            below=_joined(self.below, other.below),
            labels=labels,
            importance=importance,
            doubts=tuple(dict.fromkeys((*self.doubts, *other.doubts, *((GROUPS,) if self.groups is not None else ())))),
            effective_size=self.n_effective + other.n_effective if is_estimated else None,
            keys=_joined(self.keys, other.keys),
            groups=None,
        )

    def jointly(self) -> CalibrationScores:
        """One score for all outputs: the largest."""
        below = -self.above if self.below is None else self.below
        above, below = (side.max(axis=1, keepdims=True) for side in (self.above, below))
        return replace(self, above=above, below=below, is_joint=True)

    def signed(self) -> CalibrationScores:
        """Signed residuals around the middle of the band, in units of half its width."""
        if self.below is None:
            return self
        middle, half = (self.above - self.below) / 2.0, -(self.above + self.below) / 2.0
        return replace(self, above=middle / np.where(half > 0.0, half, 1.0), below=None)

    def towards(self, direction: int, output: int) -> CalibrationScores:
        """Scores of one output in one direction of `Tails`, as the only column."""
        above, below = self.above[:, output], None if self.below is None else self.below[:, output]
        if direction > 0:
            scores = above
        elif direction < 0:
            scores = -above if below is None else below
        else:
            scores = np.abs(above) if below is None else np.maximum(above, below)
        return replace(self, above=scores[:, None], below=None)

    def of_sign(self, direction: int, output: int) -> CalibrationScores:
        """Scores of one output, of the rows whose target is on this side of the prediction; there is no band then."""
        scores = self.above[:, output] * direction
        return replace(self, above=scores[:, None], below=None).rows(scores > 0.0)

    def numbers(self, members: slice | NDArray[Any], output: int, tails: Tails) -> list[float]:
        """Effective number of some of the scores: of each sign where signs are samples of their own, else of all."""
        if tails.is_by_sign:
            rows = self.rows(members)
            return [rows.of_sign(sign, output).n_counted for sign in tails.directions]
        if self.importance is not None or self.groups is not None:
            return [self.rows(members).n_counted]
        return [float(len(self) if isinstance(members, slice) else len(members))]

    def have_unequal_weights(self, members: slice | NDArray[Any] = slice(None)) -> bool:
        """Whether importance weights of some of the rows differ."""
        importance = None if self.importance is None else self.importance[members]
        return importance is not None and bool(len(importance) and np.ptp(importance) > 0.0)

    def n_copies(self, n_new: int) -> int:
        """How many rows are copies of others, if new ones, the last, are and chance does not explain it.

        Of earlier rows only scores are kept: they tell copies where the target or the prediction is continuous.
        """
        if self.keys is None:
            return 0
        old, new = np.split(self.keys, [len(self.keys) - n_new])
        if not np.isin(old, new).any() and len(np.unique(new)) == n_new:
            return 0
        return len(self.keys) - len(np.unique(self.keys)) if tells_copies(self.values, self.keys) else 0


def _joined(one: NDArray[Any] | None, other: NDArray[Any] | None) -> NDArray[Any] | None:
    return None if one is None or other is None else np.concatenate([one, other])
