"""How `IntervalRegressor` comes by its calibration scores: models and widths, trained on other rows than those."""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples, check_array

from pimeter.arrays import real_array, unmasked
from pimeter.conformal.estimator import ConformalEstimator, group_codes, in_groups, is_function, rows_to_come, taken
from pimeter.conformal.folds import FoldModels
from pimeter.conformal.guarantee import ORDER
from pimeter.duplicates import are_copies, row_keys
from pimeter.regression.auto import AutoWidth
from pimeter.regression.cqr import QuantileWidth
from pimeter.regression.grouped import GroupedWidth
from pimeter.regression.joint import JointWidth
from pimeter.regression.local import LocalWidth
from pimeter.regression.scaled import ScaledWidth
from pimeter.regression.shift import ShiftWeights, effective_size, importance_weights
from pimeter.regression.width import MISSING, ConstantWidth, IntervalShape, Width
from pimeter.validation import check_finite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray
    from sklearn.utils import Tags

    from pimeter.conformal.estimator import Split
    from pimeter.conformal.scores import CalibrationScores
    from pimeter.protocols import FeatureTable, Model

    Array = NDArray[np.float64]
    Index = NDArray[np.intp]

WIDTHS: dict[str, type[Width]] = {
    "constant": ConstantWidth,
    "scaled": ScaledWidth,
    "grouped": GroupedWidth,
    "local": LocalWidth,
    "quantile": QuantileWidth,
    "auto": AutoWidth,
}
REMEDY = "The estimator has no finite answer there: fix it, or leave such rows out."
LARGEST_TO_SQUARE = 1e150  # prediction or residual of which squares can be added up
WIDTH_FOLDS = 5  # in which a width gets to see residuals on unseen rows


class TrainedIntervals(ConformalEstimator):
    """The part of `IntervalRegressor` that trains models and widths, and finds calibration scores."""

    confidence_level: float
    width: str | Width
    tails: str
    joint: bool
    y_min: float | None
    y_max: float | None
    n_jobs: int | None
    width_: Any

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        width = self._width() if isinstance(self.width, Width) or self.width in WIDTHS else ConstantWidth()
        if not is_function(self.estimator):
            inner = get_tags(self.estimator)
            tags.input_tags = copy(inner.input_tags)
            tags.target_tags.multi_output = inner.target_tags.multi_output
            tags.target_tags.positive_only = inner.target_tags.positive_only
        tags.input_tags.sparse = tags.input_tags.sparse and width.takes_sparse
        return tags

    def _fit(
        self, X: FeatureTable, y: ArrayLike, by: ArrayLike | None, groups: ArrayLike | None, fit_params: dict[str, Any]
    ) -> None:
        """Train and calibrate on one split or in folds."""
        target = self._targets(X, y)
        X = self._first_table(X)
        if len(target) < 2:
            msg = "n_samples=1: training and calibrating need at least 2 rows. Call calibrate on a trained model."
            raise ValueError(msg)
        self._take_target(target)
        width = self._new_width()
        labels, codes = width.labels(X, by), group_codes(groups, X, n_least=2)
        seed, keys = self._seed_of_fit(), row_keys(X, target)
        doubts = self._doubts("fit", X, target, codes, keys)
        is_copied = codes is not None and are_copies(codes, keys)
        self._warn_of_shuffled_dates(X, y, groups)
        splits = self._splits(X, target, groups, codes, seed, are_copies=is_copied)
        scores = self._out_of_fold_scores(width, X, target, codes, fit_params, splits, seed)
        to_come = rows_to_come(splits, len(target))
        if to_come is not None:
            self.estimator_ = self._trained_model(X, target, to_come, fit_params)
            self.width_ = self._learned_width(width, X, target, codes, fit_params, to_come, seed)
        elif self.cv is None:
            self.estimator_, self.width_ = self.estimator_[0], self.width_[0]
        self._trained_from = self.estimator
        seen = np.unique(np.concatenate([others for _, others in splits]))
        if to_come is not None or not self.shuffle:
            doubts = (*doubts, ORDER)
        labels, keys, codes = taken(seen, labels, keys, codes)
        folds = scores.folds if isinstance(self.estimator_, list) else None
        scores = replace(scores, folds=folds, labels=labels, keys=keys, doubts=doubts)
        self._learn(in_groups(scores, codes, are_copies=is_copied))

    def _calibrate(
        self,
        X: FeatureTable,
        y: ArrayLike,
        by: ArrayLike | None,
        groups: ArrayLike | None,
        *,
        is_first: bool,
        importance_weight: ArrayLike | ShiftWeights | None = None,
    ) -> None:
        """Calibrate the model at hand; a width that learns takes half of the rows."""
        model = self._model_to_calibrate()
        target = self._targets(X, y)
        X = self._first_table(X) if is_first else self._same_table(X)
        self._take_target(target)
        width = self._new_width()
        labels, codes = width.labels(X, by), group_codes(groups, X)
        importance, m = None if importance_weight is None else importance_weights(importance_weight, X), len(target)
        if importance is not None and not importance.all():
            kept = np.flatnonzero(importance)
            X, target = _safe_indexing(X, kept), target[kept]
            labels, codes, importance = taken(kept, labels, codes, importance)
        keys = row_keys(X, target)
        doubts = self._doubts("calibrate", X, target, codes, keys)
        is_copied = codes is not None and are_copies(codes, keys)
        if codes is not None and importance is not None:
            is_copied = is_copied and are_copies(codes, importance)
        if width.learns:
            rest = self._rows_left_by(width, model, X, target, codes)
            X, target = _safe_indexing(X, rest), target[rest]
            labels, importance, codes, keys = taken(rest, labels, importance, codes, keys)
        scores = self._scores(model, width, X, target)
        size = effective_size(importance_weight)
        scores = replace(
            scores,
            labels=labels,
            importance=importance,
            keys=keys,
            effective_size=None if size is None else size * len(target) / m,  # of those that the width has left
            doubts=doubts if self.shuffle else (*doubts, ORDER),
        )
        self.estimator_, self.width_ = model, width
        self._learn(in_groups(scores, codes, are_copies=is_copied))

    @abstractmethod
    def _learn(self, scores: CalibrationScores) -> None:
        """Set everything that calibration is known by."""

    def _rows_left_by(self, width: Width, model: Model, X: FeatureTable, target: Array, codes: Index | None) -> Index:
        """Rows that calibrate: the half that a width has not learned from."""
        n = len(target)
        if codes is not None and len(set(codes.tolist())) < 2:
            msg = "groups has a single group, but this width needs rows of another one to learn from; leave groups out."
            raise ValueError(msg)
        if n == 1:
            nothing = np.zeros((n, self._n_outputs or 1))
            width.fit(X, nothing, nothing, **self._wanted(0))
            return np.arange(n)
        seed = self._seed_of_fit()
        if self.shuffle or codes is not None:
            from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit

            splitter = ShuffleSplit if codes is None else GroupShuffleSplit
            rest, half = next(splitter(1, test_size=n // 2 / n, random_state=seed).split(X, target, codes))
        else:
            half, rest = np.split(np.arange(n), [n // 2])
        part = _safe_indexing(X, half)
        found = predictions(model, part, self._n_outputs)
        width.fit(part, found, self._residuals(width, target[half], found), **self._wanted(seed))
        return np.asarray(rest)

    def _wanted(self, seed: int) -> dict[str, Any]:
        """What widths are learned for."""
        return {"confidence_level": float(self.confidence_level), "tails": self.tails, "random_state": seed}

    def _take_target(self, target: Array) -> None:
        """Remember how many outputs there are, and what bounds are cut at."""
        self._n_outputs = None if target.ndim == 1 else target.shape[1]
        self._cuts = self._cuts_of(target)

    def _scores(self, model: Model, width: Width, X: FeatureTable, target: Array) -> CalibrationScores:
        """Scores of calibration rows."""
        prediction = predictions(model, X, self._n_outputs)
        with np.errstate(over="ignore"):
            residuals = target.reshape(prediction.shape) - prediction
        check_finite("prediction", residuals, REMEDY)
        scores = width.checked_shape(X, prediction).scores(residuals)
        check_finite("y in units of its width", scores.above, "It is too far from the prediction: leave such rows out.")
        return scores

    def _out_of_fold_scores(
        self,
        width: Width,
        X: FeatureTable,
        target: Array,
        codes: Index | None,
        fit_params: dict[str, Any],
        splits: list[Split],
        seed: int,
    ) -> CalibrationScores:
        """Train on each split, and score the rows that are left out by the mean of the models that left them out."""
        done = Parallel(n_jobs=self.n_jobs)(
            delayed(self._fold)(width, X, target, codes, fit_params, split, seed) for split in splits
        )
        self.estimator_, self.width_, found, shapes = (list(part) for part in zip(*done, strict=True))
        n, k = len(target), found[0].shape[1]
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
        parts = zip(zip(*shapes, strict=True), MISSING, strict=True)
        shape = IntervalShape(*(mean(part, missing) for part, missing in parts))
        scores = shape.scores(target[seen].reshape(prediction.shape) - prediction)
        if self.cv is None:
            return scores
        is_complete = all(len(np.unique(rows)) + len(np.unique(others)) == n for rows, others in splits)
        return replace(scores, folds=FoldModels.of(left_out[seen], is_complete=is_complete and bool(seen.all())))

    def _fold(
        self,
        width: Width,
        X: FeatureTable,
        target: Array,
        codes: Index | None,
        fit_params: dict[str, Any],
        split: Split,
        seed: int,
    ) -> tuple[Any, Width, Array, IntervalShape]:
        """Train model and width on some rows; predictions and shapes of the others."""
        rows, others = split
        model = self._trained_model(X, target, rows, fit_params)
        learned = self._learned_width(width, X, target, codes, fit_params, rows, seed)
        part = _safe_indexing(X, others)
        found = predictions(model, part, self._n_outputs)
        self._residuals(learned, target[others], found)
        return model, learned, found, learned.checked_shape(part, found)

    def _learned_width(
        self,
        width: Width,
        X: FeatureTable,
        target: Array,
        codes: Index | None,
        fit_params: dict[str, Any],
        rows: Index,
        seed: int,
    ) -> Width:
        """A width that knows the training rows, by the residuals of models that have not seen them."""
        learned: Width = clone(width)
        if not learned.learns:
            return learned
        from sklearn.model_selection import GroupKFold, KFold

        found, residuals = np.zeros((2, len(rows), self._n_outputs or 1))
        own = None if codes is None else codes[rows]
        n_folds = min(WIDTH_FOLDS, len(rows) if own is None else len(np.unique(own)))
        if n_folds > 1:
            mixed: dict[str, Any] = {"shuffle": True, "random_state": seed} if self.shuffle else {}
            folds = KFold(n_folds, **mixed) if own is None else GroupKFold(n_folds)
            for inner, left in folds.split(rows, groups=own):
                model = self._trained_model(X, target, rows[inner], fit_params)
                found[left] = predictions(model, _safe_indexing(X, rows[left]), self._n_outputs)
                residuals[left] = self._residuals(learned, target[rows[left]], found[left])
        return learned.fit(_safe_indexing(X, rows), found, residuals, **self._wanted(seed))

    def _residuals(self, width: Width, target: Array, prediction: Array) -> Array:
        """Residuals (n, k), finite, and small enough to learn from where the width learns."""
        with np.errstate(over="ignore"):
            residuals = target.reshape(prediction.shape) - prediction
        check_finite("prediction", residuals, REMEDY)
        largest = np.maximum(np.abs(prediction), np.abs(residuals)).max(initial=0.0) if width.learns else 0.0
        if largest > LARGEST_TO_SQUARE:
            msg = (
                f"predictions and residuals must not exceed {LARGEST_TO_SQUARE:g} in size to learn a width. Use a "
                "larger unit for y."
            )
            raise ValueError(msg)
        return residuals

    def _width(self) -> Width:
        """The width as an object of its own."""
        if isinstance(self.width, str):
            return WIDTHS[self.width]()
        width: Width = clone(self.width)
        width._validate_params()
        return width

    def _new_width(self) -> Width:
        """The width to learn; with several outputs that are to be covered at once in units of their margins."""
        is_joint = self.joint and self._n_outputs is not None and self._n_outputs > 1
        return JointWidth(self._width()) if is_joint else self._width()

    def _targets(self, X: FeatureTable, y: ArrayLike) -> Array:
        """Finite targets of shape (n,) or (n, k), within `y_min` and `y_max`."""
        if y is None:
            msg = f"{type(self).__name__} requires y to be passed, but the target y is None; give one target per row."
            raise ValueError(msg)
        given = check_array(
            unmasked(y), ensure_2d=False, dtype=None, ensure_all_finite=False, allow_nd=True, ensure_min_samples=0
        )
        try:
            target = real_array("y", given if given.dtype.kind != "O" else given.astype(np.float64))
        except (TypeError, ValueError) as why:
            msg = f"y must hold real numbers, one for each row of X: {why}"
            raise ValueError(msg) from why
        target = target.astype(np.float64, copy=False)
        if target.ndim not in {1, 2}:
            msg = f"y must have shape (n,) or (n, k); got {target.shape}."
            raise ValueError(msg)
        if len(target) != _num_samples(X):
            msg = f"y has {len(target)} rows, but X has {_num_samples(X)}: give one target for each row of X."
            raise ValueError(msg)
        if not len(target):
            msg = "y has 0 sample(s), while a minimum of 1 is required: give at least one row."
            raise ValueError(msg)
        check_finite("y", target, "Leave such rows out.")
        self._check_range(target, given.dtype if given.dtype.kind == "f" else target.dtype)
        return target

    def _check_range(self, target: Array, dtype: Any) -> None:
        """Refuse targets beyond `y_min` and `y_max` in the precision of y: .3 in single precision is above .3."""
        with np.errstate(over="ignore"):
            low = dtype.type(-np.inf if self.y_min is None else self.y_min)
            high = dtype.type(np.inf if self.y_max is None else self.y_max)
        if target.min() < low or target.max() > high:
            msg = (
                f"y goes from {target.min():.6g} to {target.max():.6g}, beyond y_min={self.y_min} or "
                f"y_max={self.y_max}: these are the least and the largest possible target, in the unit of y."
            )
            raise ValueError(msg)

    def _cuts_of(self, target: Array) -> tuple[float, float]:
        """What bounds are cut at; a limit that was rounded to the precision of y does not cut off a target."""
        return (
            -np.inf if self.y_min is None else min(float(self.y_min), float(target.min())),
            np.inf if self.y_max is None else max(float(self.y_max), float(target.max())),
        )


def predictions(model: Any, X: Any, n_outputs: int | None) -> Array:
    """Predictions of shape (n, k), finite, for targets of shape (n,) if `n_outputs` is None, else (n, n_outputs)."""
    predict = getattr(model, "predict", None)
    found = np.asarray(model(X) if predict is None else predict(X))
    if found.dtype.kind not in "fiub":
        msg = f"estimator predicts values of dtype {found.dtype}; intervals need real numbers."
        raise ValueError(msg)
    n = _num_samples(X)
    expected = (n,) if n_outputs is None else (n, n_outputs)
    if found.shape != expected and not (n_outputs == 1 and found.shape == (n,)):
        msg = (
            f"estimator returns predictions of shape {found.shape} for {n} rows of X; expected {expected}, one per "
            "target. Return one column per output; ravel() turns a single column into shape (n,)."
        )
        raise ValueError(msg)
    table: Array = found.reshape(n, n_outputs or 1).astype(np.float64, copy=False)
    return table
