"""Calibration scores of `SetClassifier`, by classifiers that were trained on other rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import _num_samples, column_or_1d

from pimeter.arrays import even_array, is_missing, label_list
from pimeter.classification.conformity import SCORES, Penalty, chosen_penalty
from pimeter.conformal.categories import category_labels
from pimeter.conformal.estimator import HELD_OUT, ConformalEstimator
from pimeter.conformal.folds import FoldModels
from pimeter.conformal.scores import CalibrationScores
from pimeter.row_hashes import row_draws

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from pimeter.conformal.folds import Split
    from pimeter.protocols import Array, FeatureTable, Index, Model

TUNING_FRACTION = 0.2  # of the calibration rows, which RAPS chooses its constants with


class TrainedSets(ConformalEstimator):
    """The part of `SetClassifier` that trains models, and finds calibration scores."""

    conformity_score: str
    by: Any
    randomized: bool
    classes_: NDArray[Any]
    _target_word = "class"
    _why_fewer_to_split: ClassVar[str] = (
        " Rows that choose RAPS's constants are set apart before: it needs a splitter, and no list of rows."
    )

    def _target_array(self, y: ArrayLike) -> NDArray[Any]:
        """Classes as a column of labels."""
        target: NDArray[Any] = column_or_1d(even_array("y", y), warn=True)
        return target

    def _checked_targets(self, target: NDArray[Any]) -> NDArray[Any]:
        """Classes of rows, none missing, all as numbers or all as strings."""
        kind = target.dtype.kind
        if kind in "fmM" and not np.isfinite(target).all():
            what = "NaN" if np.isnan(target).any() else "infinity"
            msg = f"y contains {what}, first in row {int(np.argmin(np.isfinite(target)))}. Leave such rows out."
            raise ValueError(msg)
        objects = target.tolist() if kind == "O" else []
        missing = list(map(is_missing, objects))
        if any(missing):
            msg = f"y holds missing labels, first in row {missing.index(True)}. Leave such rows out."
            raise ValueError(msg)
        if kind in "cV" or not all(isinstance(label, str) for label in objects):
            msg = (
                f"Unknown label type: y has dtype {target.dtype}; give one class for each row, all as numbers or all "
                "as strings, such as with astype(str)."
            )
            raise ValueError(msg)
        check_classification_targets(target)
        return target

    def _settings_now(self) -> dict[str, Any]:
        """Settings that sets are calibrated with."""
        return {name: getattr(self, name) for name in ("conformity_score", "by", "randomized")}

    def _is_by_class(self) -> bool:
        """Whether each class has scores of its own."""
        by = self._settings["by"]
        return isinstance(by, str) and by == "class"

    def _categories_of(self, X: FeatureTable, by: ArrayLike | None) -> NDArray[Any] | None:
        """Category of each row; None if there are none, or if classes take their place."""
        if by is None and self._is_by_class():
            return None
        labels = category_labels(X, by, self._settings["by"], "SetClassifier")
        if labels is None:
            return None
        found: NDArray[Any] = np.empty(len(labels), object)
        found[:] = label_list(labels)
        return found

    def _remember_targets(self, X: FeatureTable, target: NDArray[Any], model: Model | None) -> None:
        """Remember the classes."""
        self.classes_ = _trained_classes(target) if model is None else _classes(model, X)

    def _labels(self, target: NDArray[Any], categories: NDArray[Any] | None) -> NDArray[Any] | None:
        """What each row has scores of its own by: its category, or its class."""
        return self._codes(target) if self._is_by_class() else categories

    def _rows_to_split(self, n: int, codes: Index | None) -> Index:
        """Rows that do not choose RAPS's penalty."""
        return self._apart_to_fit(n, codes)[1]

    def _train(
        self,
        X: FeatureTable,
        target: NDArray[Any],
        codes: Index | None,
        splits: list[Split],
        to_come: Index | None,
        fit_params: dict[str, Any],
    ) -> CalibrationScores:
        """Train on each split, and score the rows that it leaves out."""
        models = [self._trained_model(X, target, rows, fit_params) for rows, _ in splits]
        parts, folds = [others for _, others in splits], None
        self.estimator_ = models[0] if len(models) == 1 else models
        if to_come is not None:
            self.estimator_ = self._trained_model(X, target, to_come, fit_params)
        elif len(splits) > 1:
            folds = _disjoint_folds(splits)
        tuning, _ = self._apart_to_fit(len(target), codes)
        self._learn_penalty(self._models()[0], X, target, tuning)
        scores = [self._scores(model, X, target, rows) for model, rows in zip(models, parts, strict=True)]
        places = np.concatenate(parts)
        return CalibrationScores(np.concatenate(scores), folds=folds, places=places, is_full_if_few=True)

    def _score(self, model: Model, X: FeatureTable, target: NDArray[Any], codes: Index | None) -> CalibrationScores:
        """Scores and places of the rows that calibrate: all but those that choose RAPS's penalty."""
        self._seed = self._seed_of_fit()
        tuning, rest = self._apart(len(target), int(TUNING_FRACTION * len(target)), codes)
        self._learn_penalty(model, X, target, tuning)
        return CalibrationScores(self._scores(model, X, target, rest), places=rest, is_full_if_few=True)

    def _apart_to_fit(self, n: int, codes: Index | None) -> tuple[Index, Index]:
        """Of all rows of `fit` those that choose RAPS's penalty, as many as of one calibration set, and the others."""
        return self._apart(n, int(n * TUNING_FRACTION * HELD_OUT), codes)

    def _apart(self, n: int, n_tuning: int, codes: Index | None) -> tuple[Index, Index]:
        """Rows that choose RAPS's penalty, so many or fewer, of whole groups, and the others; in time the first."""
        n_tuning = n_tuning if self._settings["conformity_score"] == "raps" else 0
        rows = np.arange(n)
        if self.shuffle:
            rows = np.random.default_rng(self._seed).permutation(n)
        if codes is not None:
            place = np.empty(int(codes.max()) + 1, np.intp)
            known, first = np.unique(codes[rows], return_index=True)
            place[known] = first
            rows = np.argsort(place[codes], kind="stable")
            borders = np.flatnonzero(np.diff(codes[rows])) + 1
            n_tuning = int(max(borders[borders <= n_tuning], default=0))
        return rows[:n_tuning], np.sort(rows[n_tuning:])

    def _class_scores(self, model: Model, X: FeatureTable) -> Array:
        """Nonconformity scores of all classes, (n, n_classes)."""
        draws = row_draws(X, self._seed) if self._settings["randomized"] else None
        return SCORES[self._settings["conformity_score"]](self._probabilities(model, X), draws, self.penalty_)

    def _scores(self, model: Model, X: FeatureTable, target: NDArray[Any], rows: Index) -> Array:
        """Scores of the true classes of some rows, as a column."""
        scores = self._class_scores(model, _safe_indexing(X, rows))
        return np.take_along_axis(scores, self._codes(target[rows])[:, None], axis=1)

    def _probabilities(self, model: Model, X: FeatureTable) -> Array:
        """Probabilities (n, n_classes); 0 for a class that the model has not seen."""
        found = _asked(model, X)
        own = np.asarray(getattr(model, "classes_", self.classes_))
        if found.shape != (_num_samples(X), len(own)):
            msg = (
                f"estimator returns probabilities of shape {found.shape} for {_num_samples(X)} rows; expected one "
                f"column for each of {len(own)} classes."
            )
            raise ValueError(msg)
        if not np.isfinite(found).all() or (found < 0.0).any():
            msg = "estimator returns probabilities that are negative or not finite. Fix it, or leave such rows out."
            raise ValueError(msg)
        if own.tolist() == self.classes_.tolist():
            return found
        place = self._places()
        extra = [label for label in own.tolist() if label not in place]
        if extra:
            msg = (
                f"estimator has classes that y does not hold: {extra[:5]!r}. Train it on the labels of y, or fit it "
                "first and call calibrate."
            )
            raise ValueError(msg)
        table = np.zeros((len(found), len(self.classes_)))
        table[:, [place[label] for label in own.tolist()]] = found
        return table

    def _places(self) -> dict[Any, int]:
        """Column of each class."""
        return {label: i for i, label in enumerate(self.classes_.tolist())}

    def _codes(self, target: NDArray[Any]) -> Index:
        """Column of each row's class."""
        place = self._places()
        unknown = sorted({label for label in np.unique(target).tolist() if label not in place}, key=str)
        if unknown:
            known = self.classes_.tolist()[:5]
            msg = f"y holds classes that the model does not know: {unknown[:5]!r}. It knows {known!r}."
            if self.classes_.tolist() == list(range(len(self.classes_))):
                msg += (
                    " Of a function the classes are the numbers of its columns: give these as y, or an object with "
                    "predict_proba and classes_."
                )
            raise ValueError(msg)
        return np.array([place[label] for label in target.tolist()], np.intp)

    def _learn_penalty(self, model: Model, X: FeatureTable, target: NDArray[Any], rows: Index) -> None:
        """RAPS's constants, from rows that do not calibrate."""
        self.penalty_ = Penalty()
        if len(rows):
            part = _safe_indexing(X, rows)
            draws = row_draws(part, self._seed) if self._settings["randomized"] else None
            found, codes = self._probabilities(model, part), self._codes(target[rows])
            self.penalty_ = chosen_penalty(found, codes, draws, float(self.confidence_level))


def _classes(model: Model, X: FeatureTable) -> NDArray[Any]:
    """Classes of a model; of one that does not tell, the numbers of its columns."""
    if hasattr(model, "classes_"):
        return np.asarray(model.classes_)
    shape = _asked(model, _safe_indexing(X, np.arange(1))).shape
    if len(shape) != 2:
        msg = f"estimator returns {shape} for one row; it has to return (n, n_classes) probabilities."
        raise ValueError(msg)
    return np.arange(shape[1])


def _asked(model: Any, X: FeatureTable) -> Array:
    """What an object or a function says of rows."""
    return np.asarray(model.predict_proba(X) if hasattr(model, "predict_proba") else model(X), dtype=np.float64)


def _trained_classes(target: NDArray[Any]) -> NDArray[Any]:
    """Classes to train on, at least two."""
    classes: NDArray[Any] = unique_labels(target)
    if len(classes) < 2:
        msg = f"y holds one class only ({classes.tolist()[0]!r}); a classifier needs at least two classes."
        raise ValueError(msg)
    return classes


def _disjoint_folds(splits: list[Split]) -> FoldModels:
    """Folds, one after the other, in which each of the rows has one turn; or a ValueError."""
    parts = [others for _, others in splits]
    every = np.unique(np.concatenate([rows for split in splits for rows in split]))
    if not np.array_equal(np.sort(np.concatenate(parts)), every):
        msg = (
            "cv leaves some rows out several times, or never; CV+ needs folds in which each row has one turn, such as "
            "KFold, or splits that leave out later rows than they train on, such as TimeSeriesSplit."
        )
        raise ValueError(msg)
    is_complete = all(len(np.unique(rows)) + len(others) == len(every) for rows, others in splits)
    lists = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    return FoldModels(lists, np.eye(len(parts)), is_complete)
