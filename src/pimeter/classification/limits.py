"""How high the score of a class in a set may be: for all rows, each class or each category; one model or folds."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pimeter.conformal.guarantee import (
    Guarantee,
    cross_validated_level,
    neuron_level,
    rank_below,
    rank_guarantee,
    too_few,
)
from pimeter.coverage import CoverageWarning
from pimeter.quantiles import quantile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

SHARED = "shared"  # by all categories that are too small, and those never seen


class Category(NamedTuple):
    """One line of the table of categories (or classes)."""

    category: Any
    rows: int
    level: float  # coverage that is promised to its rows
    source: str  # "own" scores, those "shared" by small categories, or "none": the set is full


class Limits:
    """What scores of calibration rows say of new ones, at one level.

    A class is in the set if fewer than k calibration scores are below its own; each of them is compared with the score
    by the model that has not seen its row. With one model this says that the score is at most that of rank k. With
    `like` the same categories have scores of their own as there, whatever the level. `is_proven` says whether rows are
    taken for exchangeable.
    """

    def __init__(
        self,
        folds: list[tuple[Array, NDArray[Any] | None]],
        level: float,
        guarantee: Any,
        classes: Any,
        names: list[Any] | None,
        like: Limits | None = None,
        *,
        is_proven: bool = True,
    ) -> None:
        self.level, self.guarantee, self.names, self.is_proven = level, guarantee, names, is_proven
        self.is_by_class, self.has_folds = classes is not None, len(folds) > 1
        every = [scores for scores, _ in folds]
        counts: dict[Any, int] = dict.fromkeys(classes, 0) if self.is_by_class else {}
        for _, labels in folds:
            if labels is not None:
                for label, n in zip(*_counted(labels), strict=True):
                    counts[label] = counts.get(label, 0) + n
        self.counts = counts
        if not counts:
            self.scores: dict[Any, list[Array]] = {None: [np.sort(part) for part in every]}
            return
        # Those that would be small with a row less lend their scores to the small ones, see `regression.calibration`.
        self.small: set[Any] = set() if like is None else like.small
        self.lent: set[Any] = set() if like is None else like.lent
        if like is None and not self.is_by_class:
            self.small = {label for label, n in counts.items() if not self.promise_of(n).is_enough}
            self.lent = {label for label, n in counts.items() if n == self.promise_of(n).needed}
        self.group_of = {label: SHARED if label in self.small else ("own", label) for label in counts}
        self.scores = {group: [] for group in [SHARED, *self.group_of.values()]}
        for scores, labels in folds:
            assert labels is not None
            members: dict[Any, list[int]] = {}
            for i, label in enumerate(labels.tolist()):
                members.setdefault(self.group_of[label], []).append(i)
                if label in self.lent:
                    members.setdefault(SHARED, []).append(i)
            for group, parts in self.scores.items():
                parts.append(np.sort(scores[members.get(group, [])]))

    def promise_of(self, m: int) -> Guarantee:
        """What m scores promise."""
        return rank_guarantee(m, self.level, kind=self.guarantee)

    def _group(self, label: Any) -> Any:
        return None if not self.counts else self.group_of.get(label, SHARED)

    def _m(self, label: Any) -> int:
        return sum(len(part) for part in self.scores[self._group(label)])

    def promised(self, label: Any) -> float:
        """Coverage that is promised: a full set keeps any promise."""
        own = self.promise_of(self._m(label))
        if not own.is_enough:
            return self.level
        if not self.is_proven:
            return np.nan
        if self.has_folds:
            sizes = [len(part) for part in self.scores[self._group(label)]]
            return cross_validated_level(self.level, own.m) if max(sizes) - min(sizes) <= 1 else np.nan
        return self.level if self.guarantee == "marginal" else own.level

    def coverage_range(self, label: Any) -> tuple[float, float]:
        """5 % and 95 % points of the coverage of this calibration set."""
        own = self.promise_of(self._m(label))
        is_known = self.is_proven and not self.has_folds and own.is_enough
        return own.coverage_range if is_known else (np.nan, np.nan)

    def limit(self, label: Any) -> float:
        """Largest score in the set, of one model."""
        if self.has_folds:
            return np.nan
        (sizes,) = self.scores[self._group(label)]
        own = self.promise_of(len(sizes))
        if not own.is_enough:
            return np.inf
        if self.guarantee != "approximate":
            return float(sizes[own.rank - 1])
        low, high = sizes[rank_below(own.m, self.level) - 1], sizes[own.rank - 1]
        return float(np.clip(quantile(sizes, neuron_level(own.m, self.level)), low, high))

    def _is_in(self, scores: list[Array], label: Any) -> NDArray[np.bool_]:
        """Whether scores of classes, one array for each model, are low enough."""
        if not self.has_folds:
            return np.asarray(scores[0] <= self.limit(label))
        own = self.promise_of(self._m(label))
        if not own.is_enough:
            return np.ones(scores[0].shape, bool)
        below = sum(
            np.searchsorted(part, found, side="left")
            for part, found in zip(self.scores[self._group(label)], scores, strict=True)
        )
        return np.asarray(below < own.rank)

    def sets(self, scores: list[Array], labels: NDArray[Any] | None) -> NDArray[np.bool_]:
        """Sets (n, n_classes) from scores of all models."""
        if self.is_by_class:
            return np.stack([self._is_in([s[:, j] for s in scores], j) for j in range(scores[0].shape[1])], axis=1)
        if labels is None:
            return self._is_in(scores, None)
        members: dict[Any, list[int]] = {}
        for i, label in enumerate(labels.tolist()):
            members.setdefault(label, []).append(i)
        unseen = [label for label in members if label not in self.counts]
        if unseen and not self.promise_of(self._m(unseen[0])).is_enough:
            names = ", ".join(map(repr, unseen[:3])) + (", ..." if len(unseen) > 3 else "")
            msg = (
                f"by holds {len(unseen)} categories never seen in calibration ({names}), and too few small ones to "
                "learn from: their sets are full."
            )
            warnings.warn(msg, CoverageWarning, stacklevel=3)
        found = np.empty(scores[0].shape, bool)
        for label, rows in members.items():
            found[rows] = self._is_in([s[rows] for s in scores], label)
        return found

    def categories(self) -> list[Category]:
        """Rows, promised level and source of each class or category."""
        lines = []
        for label, n in self.counts.items():
            group = self._group(label)
            source = "none" if not self.promise_of(self._m(label)).is_enough else "shared" if group == SHARED else "own"
            name = label if self.names is None else self.names[label]
            lines.append(Category(name, n, self.promised(label), source))
        return lines

    def warn(self) -> None:
        """Say where sets are full for want of rows."""
        bare = [label for label in (self.counts or [None]) if not self.promise_of(self._m(label)).is_enough]
        if bare:
            where = (
                ""
                if bare == [None]
                else f" of {len(bare)} of {len(self.counts)} {'classes' if self.is_by_class else 'categories'}"
            )
            own = self.promise_of(min(self._m(label) for label in bare))
            what = "that class is in every set" if self.is_by_class else "their sets are full"
            warnings.warn(f"{too_few(own, self.level, where)}: {what}.", CoverageWarning, stacklevel=5)


def _counted(labels: NDArray[Any]) -> tuple[list[Any], list[int]]:
    counts: dict[Any, int] = {}
    for label in labels.tolist():
        counts[label] = counts.get(label, 0) + 1
    return list(counts), list(counts.values())
