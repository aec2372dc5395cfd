"""Models trained on some rows, and their errors on the others: one split, or folds in which every row has its turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_method_params

from pimeter.regression.folds import Folds
from pimeter.regression.model import REMEDY, check_finite, predictions
from pimeter.regression.width import MISSING, Aim, Shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pimeter.regression.width import Width

    Array = NDArray[np.float64]
    Index = NDArray[np.intp]

LARGEST = 1e150  # prediction or error of which squares can be added up
INNER = 5  # folds in which a width gets to see errors on unseen rows


class Task(NamedTuple):
    """What there is to train, and on what."""

    estimator: Any
    width: Width
    X: Any
    y: Array  # (n,) or (n, k)
    groups: NDArray[np.intp] | None
    fit_params: dict[str, Any]
    aim: Aim
    seed: int
    shuffle: bool = True

    @property
    def n_outputs(self) -> int | None:
        """Columns of y; None if it has one dimension."""
        return None if self.y.ndim == 1 else self.y.shape[1]

    def model(self, rows: Index) -> Any:
        """A clone, trained on some of the rows."""
        params = _check_method_params(self.X, self.fit_params, rows)
        return clone(self.estimator).fit(_safe_indexing(self.X, rows), self.y[rows], **params)

    def errors(self, model: Any, rows: Index) -> tuple[Any, Array, Array]:
        """Some rows of X, what the model predicts for them and its errors, both (n, k)."""
        part = _safe_indexing(self.X, rows)
        found = predictions(model, part, self.n_outputs)
        with np.errstate(over="ignore"):
            errors = self.y[rows].reshape(found.shape) - found
        check_finite("prediction", errors, REMEDY)
        if self.width.learns and np.maximum(np.abs(found), np.abs(errors)).max(initial=0.0) > LARGEST:
            msg = (
                f"predictions and errors must not exceed {LARGEST:g} in size to learn a width. Use a larger unit for y."
            )
            raise ValueError(msg)
        return part, found, errors

    def learned_width(self, rows: Index) -> Width:
        """A width that knows the training rows, by the errors of clones that have not seen them."""
        width: Width = clone(self.width)
        if not width.learns:
            return width
        found, errors = np.zeros((2, len(rows), self.n_outputs or 1))
        own = None if self.groups is None else self.groups[rows]
        n_folds = min(INNER, len(rows) if own is None else len(np.unique(own)))
        if n_folds > 1:
            mixed: dict[str, Any] = {"shuffle": True, "random_state": self.seed} if self.shuffle else {}
            folds = KFold(n_folds, **mixed) if own is None else GroupKFold(n_folds)
            for inner, left in folds.split(rows, groups=own):
                _, found[left], errors[left] = self.errors(self.model(rows[inner]), rows[left])
        return width.fit(_safe_indexing(self.X, rows), found, errors, self.aim, self.seed)

    def fold(self, rows: Index, others: Index) -> tuple[Any, Width, Array, Shape]:
        """Train model and width on some rows; predictions and shapes of the others."""
        model, width = self.model(rows), self.learned_width(rows)
        part, found, _ = self.errors(model, others)
        return model, width, found, width.shape(part, found)


class Trained(NamedTuple):
    """Models with their widths, and the rows that at least one of them has not seen."""

    models: list[Any]
    widths: list[Width]
    scores: tuple[Array, Array | None]  # (m, k) how far errors reach up and down, in units of their shape
    seen: NDArray[np.bool_]  # (n,) the rows that the errors belong to
    folds: Folds


def train(task: Task, splits: list[tuple[Index, Index]], n_jobs: int | None) -> Trained:
    """Train on each split; a row left out by several models gets the mean of their predictions and shapes."""
    done = Parallel(n_jobs=n_jobs)(delayed(task.fold)(rows, others) for rows, others in splits)
    models, widths, found, shapes = (list(part) for part in zip(*done, strict=True))
    n, k = len(task.y), found[0].shape[1]
    left_out = np.zeros((n, len(splits)), bool)
    for i, (_, others) in enumerate(splits):
        left_out[others, i] = True
    times = left_out.sum(axis=1)
    seen = times > 0

    def mean(parts: Sequence[Array | None], missing: float) -> Array | None:
        """Of what the models say of the rows that they left out."""
        if all(part is None for part in parts):
            return None
        total: Array = np.zeros((n, k))
        for (_, others), part in zip(splits, parts, strict=True):
            total[others] += missing if part is None else part
        return np.asarray(total[seen] / times[seen, None])

    prediction = mean(found, 0.0)
    assert prediction is not None
    shape = Shape(*(mean(parts, missing) for parts, missing in zip(zip(*shapes, strict=True), MISSING, strict=True)))
    errors = task.y[seen].reshape(prediction.shape) - prediction
    is_whole = all(len(np.unique(rows)) + len(np.unique(others)) == n for rows, others in splits)
    folds = Folds.of(left_out[seen], is_whole=is_whole and bool(seen.all()))
    return Trained(models, widths, shape.scores(errors), seen, folds)
