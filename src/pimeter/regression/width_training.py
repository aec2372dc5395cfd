"""Models and widths of all splits: widths learn from residuals of models that have seen neither row nor fold."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from joblib import parallel_config
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import delayed

from pimeter.conformal.estimator import ConformalEstimator
from pimeter.progress import FollowedFit, results_of
from pimeter.regression.spread import tree_spread
from pimeter.regression.width import Width, checked_residuals, predictions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pimeter.conformal.estimator import Split
    from pimeter.protocols import Array, Index

WIDTH_FOLDS = 5  # in which a width gets to see residuals on unseen rows, if those of CV+ cannot serve
MIN_PAIRED_FOLDS, MAX_PAIRED_FOLDS = 4, 10  # fewer leave few rows to train on, more have many pairs


class TrainingRows(NamedTuple):
    """What models are trained on."""

    X: Any
    target: Array
    codes: Index | None  # of groups
    fit_params: dict[str, Any]


class Unseen(NamedTuple):
    """What a model says of rows that it has not seen."""

    prediction: Array
    spread: Array | None  # of the trees of a forest


class WidthTraining(FollowedFit, ConformalEstimator):
    """The part of `IntervalRegressor` that trains a model and a width for each split."""

    tails: str
    n_jobs: int | None
    verbose: int
    _n_outputs: int | None

    def _models_and_widths(
        self, width: Width, known: TrainingRows, splits: Sequence[Split]
    ) -> tuple[list[Any], list[Width]]:
        """A model for each split, and a width that has seen none of the rows that the split leaves out.

        The residuals that a width learns from are those of models that have seen neither their row nor the rows left
        out. With disjoint folds, the model without folds i and j serves the widths of both: K (K - 1) / 2 models, each
        trained on a proportion 1 - 2/K of the rows, and CV+ guarantees what it does without a width. With other splits
        each width has folds of its own.
        """
        training = [delayed(self._trained_model)(known.X, known.target, rows, known.fit_params) for rows, _ in splits]
        if not are_paired(splits, len(known.target)):
            learning = [delayed(self._learned_width)(width, known, rows) for rows, _ in splits]
            done = results_of([*training, *learning], "model or width", self)
            return done[: len(splits)], done[len(splits) :]
        pairs = list(combinations(range(len(splits)), 2))
        paired = [delayed(self._pair)(width, known, splits[i], splits[j]) for i, j in pairs]
        done = results_of([*training, *paired], "model", self)
        found = dict(zip(pairs, done[len(splits) :], strict=True))
        for i, j in pairs:
            found[j, i] = found[i, j][::-1]
        learning = [
            delayed(self._fitted_width)(
                clone(width), known, [(splits[j][1], found[i, j][1]) for j in range(len(splits)) if j != i]
            )
            for i in range(len(splits))
        ]
        return done[: len(splits)], results_of(learning, "width", self)

    def _pair(self, width: Width, known: TrainingRows, one: Split, other: Split) -> tuple[Unseen, Unseen]:
        """What a model without two folds says of the rows of each."""
        rows = np.intersect1d(one[0], other[0])
        model = self._trained_model(known.X, known.target, rows, known.fit_params)
        return self._unseen(width, model, known, one[1]), self._unseen(width, model, known, other[1])

    def _unseen(self, width: Width, model: Any, known: TrainingRows, rows: Index) -> Unseen:
        """What a model says of rows that it has not seen."""
        part = _safe_indexing(known.X, rows)
        return Unseen(
            predictions(model, part, self._n_outputs), tree_spread(model, part) if width._takes_spread else None
        )

    def _learned_width(self, width: Width, known: TrainingRows, rows: Index) -> Width:
        """A width that knows these rows, by predictions in folds of its own."""
        learned: Width = clone(width)
        if not learned.learns:
            return learned
        from sklearn.model_selection import GroupKFold, KFold

        own = None if known.codes is None else known.codes[rows]
        n_folds = min(WIDTH_FOLDS, len(rows) if own is None else len(np.unique(own)))
        if n_folds < 2:  # nothing can be trained without these rows: no residuals
            return self._fitted_width(learned, known, [(rows, Unseen(known.target[rows].reshape(len(rows), -1), None))])
        mixed: dict[str, Any] = {"shuffle": True, "random_state": self._seed} if self.shuffle else {}
        folds = KFold(n_folds, **mixed) if own is None else GroupKFold(n_folds)
        found = []
        for inner, left in folds.split(rows, groups=own):
            model = self._trained_model(known.X, known.target, rows[inner], known.fit_params)
            found.append((rows[left], self._unseen(learned, model, known, rows[left])))
        return self._fitted_width(learned, known, found)

    def _fitted_width(self, width: Width, known: TrainingRows, found: Sequence[tuple[Index, Unseen]]) -> Width:
        """A width that has learned from the residuals of rows, part by part; it sees them in their order."""
        every = np.concatenate([rows for rows, _ in found])
        order = np.argsort(every)
        rows, prediction = every[order], np.concatenate([one.prediction for _, one in found])[order]
        wanted, spreads = self._wanted(self._seed), [one.spread for _, one in found if one.spread is not None]
        if spreads:
            wanted["spread"] = np.concatenate(spreads)[order]
        residuals = checked_residuals(width, known.target[rows], prediction)
        with parallel_config(n_jobs=self.n_jobs):
            return width.fit(_safe_indexing(known.X, rows), prediction, residuals, **wanted)

    def _wanted(self, seed: int) -> dict[str, Any]:
        """Keywords of `Width.fit`: which intervals are wanted, and a seed."""
        return {"confidence_level": float(self.confidence_level), "tails": self.tails, "random_state": seed}


def are_paired(splits: Sequence[Split], n: int) -> bool:
    """Whether these are disjoint folds of all n rows, neither too few nor too many to leave out two at a time."""
    if not MIN_PAIRED_FOLDS <= len(splits) <= MAX_PAIRED_FOLDS:
        return False
    left_out = np.concatenate([others for _, others in splits])
    is_disjoint = len(left_out) == n and len(np.unique(left_out)) == n
    return is_disjoint and all(len(np.unique(rows)) == n - len(others) for rows, others in splits)
