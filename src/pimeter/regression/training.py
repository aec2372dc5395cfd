"""Calibration scores of `IntervalRegressor`, by models and widths that were trained on other rows."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from joblib import parallel_config
from sklearn.base import clone, is_classifier
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import check_array

from pimeter.arrays import real_array, some_rows, unmasked
from pimeter.conformal.estimator import ConformalEstimator, is_function
from pimeter.conformal.folds import FoldModels
from pimeter.conformal.guarantee import COPIES, warn_of_few_groups
from pimeter.conformal.overlapping import OverlappingQuantile
from pimeter.conformal.quantile import ScoreQuantile
from pimeter.conformal.scores import TAILS
from pimeter.coverage import warn_of_coverage
from pimeter.duplicates import UNPROVEN
from pimeter.frames import column_values, refuse_other_orders
from pimeter.progress import FollowedFit, results_of
from pimeter.regression.auto import AutoWidth
from pimeter.regression.cqr import QuantileWidth
from pimeter.regression.grouped import GroupedWidth
from pimeter.regression.joint import JointWidth
from pimeter.regression.local import LocalWidth
from pimeter.regression.models import EstimatorWidth, QuantileModels
from pimeter.regression.scaled import ScaledWidth
from pimeter.regression.shift import ShiftWeights, effective_size, importance_weights
from pimeter.regression.spread import tree_spread
from pimeter.regression.width import REMEDY, ConstantWidth, IntervalShape, Width, checked_residuals, predictions
from pimeter.regression.width_training import WidthTraining
from pimeter.row_hashes import row_keys
from pimeter.validation import check_finite_rows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray
    from sklearn.utils import Tags

    from pimeter.conformal.folds import Split
    from pimeter.conformal.scores import CalibrationScores
    from pimeter.protocols import Array, FeatureTable, Index, Model

WIDTHS: dict[str, type[Width]] = {
    "constant": ConstantWidth,
    "scaled": ScaledWidth,
    "grouped": GroupedWidth,
    "local": LocalWidth,
    "quantile": QuantileWidth,
    "auto": AutoWidth,
    "estimator": EstimatorWidth,
}


MAX_ROWS_TO_REMEMBER = 500  # calibration rows that an explanation compares with


class Remembered(NamedTuple):
    """Some of the calibration rows; of a frame the values of each column, which any file can hold."""

    X: Any
    target: Array
    rows: Index


class TrainedIntervals(FollowedFit, ConformalEstimator):
    """The part of `IntervalRegressor` that trains models and widths, and finds calibration scores."""

    _target_word = "target"
    width: str | Width
    tails: str
    joint: bool
    y_min: float | None
    y_max: float | None
    n_jobs: int | None
    verbose: int
    width_: Any
    _n_outputs: int | None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        width = self._width() if isinstance(self.width, Width) or self.width in WIDTHS else ConstantWidth()
        if not is_function(self.estimator):
            inner = get_tags(self.estimator).target_tags
            tags.target_tags.multi_output, tags.target_tags.positive_only = inner.multi_output, inner.positive_only
        tags.input_tags.sparse = tags.input_tags.sparse and width.takes_sparse
        return tags

    def set_params(self, **params: Any) -> Self:
        """Change parameters; ``width__power=2`` and the like also where the width is a string, such as "scaled".

        Parameters
        ----------
        **params
            By name; those of the model are ``estimator__alpha`` and so on.

        Returns
        -------
        IntervalRegressor
            Itself.
        """
        width = params.get("width", self.width)
        if isinstance(width, str) and width in WIDTHS and any(name.startswith("width__") for name in params):
            params["width"] = WIDTHS[width]()
        super().set_params(**params)
        return self

    def _draft(self) -> Self:
        """A copy to work on, unless the model answers with classes, which have no residuals."""
        if not is_function(self.estimator) and is_classifier(self.estimator):
            kind = type(self.estimator).__name__
            msg = f"estimator {kind} is a classifier; expected a regressor. For sets of classes use SetClassifier."
            raise ValueError(msg)
        return super()._draft()

    def _settings_now(self) -> dict[str, Any]:
        """Settings that a width is learned with."""
        return {"width": repr(self.width), "tails": self.tails, "joint": self.joint}

    def _remember_targets(self, X: FeatureTable, target: Array, model: Model | None) -> None:  # noqa: ARG002
        """Remember how many outputs there are, and what bounds are cut at."""
        self._n_outputs = None if target.ndim == 1 else target.shape[1]
        self._cuts = self._cuts_of(target)

    def _categories_of(self, X: FeatureTable, by: ArrayLike | None) -> NDArray[Any] | None:
        """Category of each row; None: all are of one."""
        return self._width().labels(X, by)

    def _model_to_calibrate(self) -> Any:
        """The one model that `calibrate` is about; a list of regressors for quantiles as one."""
        model = super()._model_to_calibrate()
        return QuantileModels(model) if isinstance(model, list | tuple) else model

    def _train(
        self,
        X: FeatureTable,
        target: Array,
        codes: Index | None,
        splits: list[Split],
        to_come: Index | None,
        fit_params: dict[str, Any],
    ) -> CalibrationScores:
        """Train on each split, and for rows to come on those named; scores and places of the rows left out."""
        width = self._new_width()
        training = WidthTraining(self, width, X, target, codes, fit_params) if width.learns else None
        if training is not None:
            trained = training.of_splits(splits)
            models, widths = trained.models, trained.widths
        else:
            jobs = [delayed(self._trained_model)(X, target, rows, fit_params) for rows, _ in splits]
            models, widths = results_of(jobs, "model", self), [clone(width) for _ in splits]
        scores = self._scores_left_out(models, widths, splits, X, target)
        self.estimator_, self.width_ = models, widths
        if to_come is not None:
            self.estimator_ = self._trained_model(X, target, to_come, fit_params)
            self.width_ = width if training is None else training.of_rows(to_come)
            self.width_.of_model(self.estimator_, self.confidence_level, self.tails)
        elif len(splits) == 1:  # the rows left out are one calibration set, whoever chose them
            self.estimator_, self.width_ = models[0], widths[0]
        else:
            scores = replace(scores, folds=FoldModels.of_splits(splits, len(target)))
        return scores

    def _scores_left_out(
        self, models: list[Model], widths: list[Width], splits: list[Split], X: FeatureTable, target: Array
    ) -> CalibrationScores:
        """Scores and places of the rows that some split leaves out, by the mean of the models that left them out."""
        found, shapes = [], []
        for model, width, (_, others) in zip(models, widths, splits, strict=True):
            part = _safe_indexing(X, others)
            found.append(predictions(model, part, self._n_outputs))
            checked_residuals(width, target[others], found[-1])
            width.of_model(model, self.confidence_level, self.tails)
            shapes.append(width.checked_shape(part, found[-1]))
        times = np.zeros((len(target), 1))
        for _, others in splits:
            times[others] += 1.0
        places = np.flatnonzero(times)

        def mean(parts: list[Array]) -> Array:
            """Mean of what the models say of the rows that they left out."""
            total: Array = np.zeros((len(target), parts[0].shape[1]))
            for (_, others), part in zip(splits, parts, strict=True):
                total[others] += part
            return np.asarray(total[places] / times[places])

        prediction = mean(found)
        shape = IntervalShape.merged(shapes, [one.shape for one in found], mean)
        return replace(shape.scores(target[places].reshape(prediction.shape) - prediction), places=places)

    def _score(self, model: Model, X: FeatureTable, target: Array, codes: Index | None) -> CalibrationScores:
        """Scores and places of the rows that calibrate; a width that learns takes half of the rows for itself."""
        rows = None
        self.width_ = self._new_width().of_model(model, self.confidence_level, self.tails)
        if self.width_.learns:
            rows = self._fit_width_on_half(self.width_, model, X, target, codes)
            X, target = _safe_indexing(X, rows), target[rows]
        return replace(self._scores(model, self.width_, X, target), places=rows)

    def _remember(self, X: FeatureTable, target: NDArray[Any], places: Index | None) -> None:
        """Keep some of the rows that calibrate, for `explain`."""
        every = np.arange(len(target)) if places is None else places
        some = every[some_rows(len(every), MAX_ROWS_TO_REMEMBER)]
        self._remembered = Remembered(column_values(_safe_indexing(X, some)), target[some], some)

    def _update(
        self, X: FeatureTable, y: ArrayLike, by: ArrayLike | None, importance_weight: ArrayLike | ShiftWeights | None
    ) -> None:
        """Add rows to the calibration set."""
        if self._scores_seen.folds is not None:
            msg = "update cannot add rows to folds that are already trained (cv is set); call fit with all rows."
            raise ValueError(msg)
        if self._settings_now() != self._settings:
            msg = "width, tails or joint were changed after calibration, and update learns no width; call calibrate."
            raise ValueError(msg)
        target = self._targets(X, y)
        refuse_other_orders({"X": X, "y": y, "by": by, "importance_weight": importance_weight})
        X = self._same_table(X)
        if (None if target.ndim == 1 else target.shape[1]) != self._n_outputs:
            msg = f"y has shape {target.shape}; expected as many outputs as in calibration."
            raise ValueError(msg)
        cuts = (self._cuts, self._cuts_of(target))
        self._cuts = (min(low for low, _ in cuts), max(high for _, high in cuts))
        importance = importance_weights(importance_weight, X)
        new = replace(
            self._scores(self.estimator_, self.width_, X, target),
            labels=self.width_.labels(X, by),
            importance=importance,
            keys=row_keys(X, target),
            effective_size=effective_size(importance_weight),
        )
        new = new if importance is None else new.rows(importance > 0.0)
        scores = self._scores_seen.joined(new)
        n_copies = 0 if COPIES in scores.doubts else scores.n_copies(len(new))
        if n_copies:
            warn_of_coverage(
                f"{n_copies:,} of {len(scores):,} calibration rows are copies of others, now that those of update "
                f"are among them: {UNPROVEN}. Give update rows that do not calibrate yet."
            )
            scores = replace(scores, doubts=(*scores.doubts, COPIES))
        self._learn(scores)

    def _learn(self, scores: CalibrationScores) -> None:
        """Set everything that calibration is known by."""
        super()._learn(scores)
        warn_of_few_groups(self._quantile)
        self.guaranteed_ = bool(self.guaranteed_level_ >= self.confidence_level)
        margin = self._quantile.per_category(list(self._quantile.margins))
        if scores.above.shape[1] > self._quantile.margins.shape[1]:
            margin = margin * np.mean([width.margin_ for width in self._widths()], axis=0)[:, None]
        self.margin_ = margin[..., 0, :] if self._n_outputs is None else margin

    def _quantile_of(self, scores: CalibrationScores) -> ScoreQuantile:
        """The quantile of scores at the confidence level, of all outputs at once where these are covered jointly."""
        are_weighted = scores.have_unequal_weights() or scores.effective_size is not None
        if self.guarantee == "training-conditional" and are_weighted:
            msg = (
                'guarantee="training-conditional" takes the distribution of ranks, which is not known for unequal or '
                'estimated importance_weight; set guarantee="marginal".'
            )
            raise ValueError(msg)
        width, tails, level = self._widths()[0], TAILS[self.tails], float(self.confidence_level)
        scores = scores.jointly() if isinstance(width, JointWidth) else scores
        if scores.labels is not None and scores.labels.ndim == 2:
            seed = self._seed_of_fit() if width.is_randomized else None
            return OverlappingQuantile.of_groups(scores, tails, level, self.guarantee, width.grouping_names, seed)
        return ScoreQuantile.in_categories(scores, tails, level, self.guarantee, min_rows=width.min_rows)

    def _widths(self) -> list[Width]:
        """The widths that have learned, one for each model."""
        return self.width_ if isinstance(self.width_, list) else [self.width_]

    def _shape(self, X: FeatureTable, prediction: Array) -> IntervalShape:
        """Shapes of intervals around the predictions of all models."""
        if not prediction.shape[1]:
            return IntervalShape()  # most estimators refuse to shape nothing
        shapes = [width.checked_shape(X, one) for width, one in zip(self._widths(), prediction, strict=True)]
        return IntervalShape.merged(shapes, [one.shape for one in prediction], np.stack)

    def _predictions(self, X: FeatureTable) -> Array:
        """Predictions of all models, (models, n, k)."""
        found = [predictions(model, X, self._n_outputs) for model in self._models()]
        table = found[0][None] if len(found) == 1 else np.stack(found)
        with np.errstate(over="ignore"):
            check_finite_rows("prediction", table[0] if len(found) == 1 else table.mean(axis=0), REMEDY)
        return table

    def _squeezed(self, values: Array) -> Array:
        """Without the axis of outputs if the target has none."""
        return values[:, 0] if self._n_outputs is None else values

    def _fit_width_on_half(
        self, width: Width, model: Model, X: FeatureTable, target: Array, codes: Index | None
    ) -> Index:
        """Let a width learn from half of the rows; the other half, which calibrates."""
        n = len(target)
        if codes is not None and len(set(codes.tolist())) < 2:
            msg = "groups has a single group, but this width needs rows of another one to learn from; leave groups out."
            raise ValueError(msg)
        if n == 1:
            nothing = np.zeros((n, self._n_outputs or 1))
            width.fit(X, nothing, nothing, **self._width_keywords(0))
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
        keywords = self._width_keywords(seed) | ({"spread": tree_spread(model, part)} if width._takes_spread else {})
        with parallel_config(n_jobs=self.n_jobs):
            width.fit(part, found, checked_residuals(width, target[half], found), **keywords)
        width.of_model(model, self.confidence_level, self.tails)
        return np.asarray(rest)

    def _width_keywords(self, seed: int) -> dict[str, Any]:
        """Keywords of `Width.fit`: which intervals are wanted, and a seed."""
        return {"confidence_level": float(self.confidence_level), "tails": self.tails, "random_state": seed}

    def _scores(self, model: Model, width: Width, X: FeatureTable, target: Array) -> CalibrationScores:
        """Scores of calibration rows."""
        prediction = predictions(model, X, self._n_outputs)
        scores = width.checked_shape(X, prediction).scores(checked_residuals(None, target, prediction))
        check_finite_rows(
            "y in units of its width", scores.above, "It is too far from the prediction: leave such rows out."
        )
        return scores

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

    def _target_array(self, y: ArrayLike) -> NDArray[Any]:
        """Real numbers of shape (n,) or (n, k), in their own precision."""
        given = check_array(
            unmasked(y), ensure_2d=False, dtype=None, ensure_all_finite=False, allow_nd=True, ensure_min_samples=0
        )
        try:
            target = real_array("y", given if given.dtype.kind != "O" else given.astype(np.float64))
        except (TypeError, ValueError) as why:
            msg = f"y must hold real numbers, one for each row; got dtype {given.dtype}. For classes use SetClassifier."
            raise ValueError(msg) from why
        if given.dtype.kind == "b":
            warnings.warn("y is boolean, taken for 0 and 1; for classes use SetClassifier.", stacklevel=5)
        if target.ndim not in {1, 2}:
            msg = f"y must have shape (n,) or (n, k); got {target.shape}."
            raise ValueError(msg)
        return target

    def _checked_targets(self, target: NDArray[Any]) -> Array:
        """Finite targets within `y_min` and `y_max`."""
        dtype = target.dtype if target.dtype.kind == "f" else np.dtype(np.float64)
        target = target.astype(np.float64, copy=False)
        check_finite_rows("y", target, "Leave such rows out.")
        self._check_range(target, dtype)
        return target

    def _check_range(self, target: Array, dtype: np.dtype[Any]) -> None:
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
