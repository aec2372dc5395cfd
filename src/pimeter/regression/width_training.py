"""Models and widths of all splits: widths learn from residuals of models that have seen neither row nor fold."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from joblib import parallel_config
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import delayed

from pimeter.progress import results_of
from pimeter.regression.joint import JointWidth
from pimeter.regression.spread import tree_spread
from pimeter.regression.width import checked_residuals, predictions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pimeter.conformal.folds import Split
    from pimeter.protocols import Array, FeatureTable, Index
    from pimeter.regression.training import TrainedIntervals
    from pimeter.regression.width import Width

WIDTH_FOLDS = 5  # in which a width gets to see residuals on unseen rows, if those of CV+ cannot serve
MIN_PAIRED_FOLDS, MAX_PAIRED_FOLDS = 4, 10  # fewer leave few rows to train on, more have many pairs


class Unseen(NamedTuple):
    """What a model says of rows that it has not seen."""

    prediction: Array
    spread: Array | None  # of the trees of a forest
    model: Any = None  # kept where a width that learns asks another one for its shape


class ModelsAndWidths(NamedTuple):
    """A model for each split, and a width that has seen none of the rows that the split leaves out."""

    models: list[Any]
    widths: list[Width]


@dataclass(frozen=True)
class WidthTraining:
    """How a width learns from the rows that `fit` is given: from residuals of models that have not seen them."""

    intervals: TrainedIntervals  # whose model, level and tails these are
    width: Width  # cloned before it learns
    X: FeatureTable
    target: Array
    codes: Index | None  # of groups
    fit_params: dict[str, Any]

    def of_splits(self, splits: Sequence[Split]) -> ModelsAndWidths:
        """A model and a width for each split.

        The residuals that a width learns from are those of models that have seen neither their row nor the rows left
        out. With disjoint folds, the model without folds i and j serves the widths of both: K (K - 1) / 2 models, each
        trained on a proportion 1 - 2/K of the rows, and CV+ guarantees what it does without a width. With other splits
        each width has folds of its own.
        """
        training = [delayed(self._model)(rows) for rows, _ in splits]
        if not are_paired(splits, len(self.target)):
            learning = [delayed(self.of_rows)(rows) for rows, _ in splits]
            done = results_of([*training, *learning], "model or width", self.intervals)
            return ModelsAndWidths(done[: len(splits)], done[len(splits) :])
        pairs = list(combinations(range(len(splits)), 2))
        paired = [delayed(self._pair)(splits[i], splits[j]) for i, j in pairs]
        done = results_of([*training, *paired], "model", self.intervals)
        found = dict(zip(pairs, done[len(splits) :], strict=True))
        for i, j in pairs:
            found[j, i] = found[i, j][::-1]
        learning = [
            delayed(self._fitted)([(splits[j][1], found[i, j][1]) for j in range(len(splits)) if j != i])
            for i in range(len(splits))
        ]
        return ModelsAndWidths(done[: len(splits)], results_of(learning, "width", self.intervals))

    def of_rows(self, rows: Index) -> Width:
        """A width that knows these rows, by predictions in folds of its own."""
        from sklearn.model_selection import GroupKFold, KFold

        own = None if self.codes is None else self.codes[rows]
        n_folds = min(WIDTH_FOLDS, len(rows) if own is None else len(np.unique(own)))
        if n_folds < 2:  # nothing can be trained without these rows: no residuals
            return self._fitted([(rows, Unseen(self.target[rows].reshape(len(rows), -1), None))])
        seed = self.intervals._seed if self.intervals.shuffle else None
        folds = KFold(n_folds, shuffle=seed is not None, random_state=seed) if own is None else GroupKFold(n_folds)
        inner_splits = folds.split(rows, groups=own)
        return self._fitted(
            [(rows[left], self._unseen(self._model(rows[inner]), rows[left])) for inner, left in inner_splits]
        )

    def _model(self, rows: Index) -> Any:
        """A model that was trained on these rows."""
        return self.intervals._trained_model(self.X, self.target, rows, self.fit_params)

    def _pair(self, one: Split, other: Split) -> tuple[Unseen, Unseen]:
        """What a model without two folds says of the rows of each."""
        model = self._model(np.intersect1d(one[0], other[0]))
        return self._unseen(model, one[1]), self._unseen(model, other[1])

    def _unseen(self, model: Any, rows: Index) -> Unseen:
        """What a model says of rows that it has not seen."""
        part = _safe_indexing(self.X, rows)
        prediction = predictions(model, part, self.intervals._n_outputs)
        spread = tree_spread(model, part) if self.width._takes_spread else None
        return Unseen(prediction, spread, model if isinstance(self.width, JointWidth) else None)

    def _fitted(self, found: Sequence[tuple[Index, Unseen]]) -> Width:
        """A width that has learned from the residuals of rows, part by part; it sees them in their order."""
        every = np.concatenate([rows for rows, _ in found])
        order = np.argsort(every)
        rows, prediction = every[order], np.concatenate([one.prediction for _, one in found])[order]
        keywords = self.intervals._width_keywords(self.intervals._seed)
        spreads = [one.spread for _, one in found if one.spread is not None]
        if spreads:
            keywords["spread"] = np.concatenate(spreads)[order]
        residuals = checked_residuals(self.width, self.target[rows], prediction)
        width: Width = clone(self.width)
        if (model := found[0][1].model) is not None:
            width.of_model(model, self.intervals.confidence_level, self.intervals.tails)
        with parallel_config(n_jobs=self.intervals.n_jobs):
            width.fit(_safe_indexing(self.X, rows), prediction, residuals, **keywords)
        return width


def are_paired(splits: Sequence[Split], n: int) -> bool:
    """Whether these are disjoint folds of all n rows, neither too few nor too many to leave out two at a time."""
    if not MIN_PAIRED_FOLDS <= len(splits) <= MAX_PAIRED_FOLDS:
        return False
    left_out = np.concatenate([others for _, others in splits])
    is_disjoint = len(left_out) == n and len(np.unique(left_out)) == n
    return is_disjoint and all(len(np.unique(rows)) == n - len(others) for rows, others in splits)
