"""The life cycle of an estimator around another: a function, a frozen or trained model, or one that is yet to train."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy, deepcopy
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing, check_random_state, get_tags, indexable
from sklearn.utils.validation import _check_method_params, _num_samples, check_is_fitted, validate_data

from pimeter.arrays import taken, unmasked
from pimeter.clusters import group_numbers
from pimeter.conformal.exchangeability import warn_of_shuffled_dates
from pimeter.conformal.guarantee import COPIES, ORDER
from pimeter.conformal.model import for_the_model, metadata_router, trained
from pimeter.conformal.quantile import Calibrated
from pimeter.coverage import counted, warn_of_coverage
from pimeter.duplicates import are_copies, copies
from pimeter.frames import check_pair, column_names, refuse_lazy, refuse_other_orders
from pimeter.prediction import columns_named
from pimeter.row_hashes import row_keys

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray
    from sklearn.utils import Tags
    from sklearn.utils.metadata_routing import MetadataRouter

    from pimeter.conformal.folds import Split
    from pimeter.conformal.guarantee import GuaranteeKind
    from pimeter.conformal.quantile import ScoreQuantile
    from pimeter.conformal.scores import CalibrationScores
    from pimeter.protocols import Array, FeatureTable, Hashes, Index, Model

    Values = NDArray[Any]  # targets of any kind, or categories

HELD_OUT = 0.2  # fraction of rows that calibrate with cv=None, as in the paper


class Replaceable:
    """Works on a copy that replaces it only when all went well."""

    def _draft(self) -> Self:
        """A copy to work on, so that a failure leaves the original as it was."""
        return copy(self)

    def _become(self, draft: Self) -> Self:
        """Take over what the draft has learned, and forget what it has not."""
        self.__dict__ = draft.__dict__  # in one step: another thread may be predicting
        return self


class ConformalEstimator(Replaceable, Calibrated, BaseEstimator, ABC):
    """A model and its calibration.

    `estimator` is one of four things: a function or an object that only predicts; a ``FrozenEstimator``; a trained
    estimator; or one to train, of which `fit` trains a clone and `calibrate` needs it trained. `fit` and `calibrate`
    work on a draft, and end in `_become`. Subclasses say what targets are, how models are trained and scored, and what
    follows from a quantile of scores.
    """

    estimator: Any
    confidence_level: float
    cv: Any
    shuffle: bool
    guarantee: GuaranteeKind
    random_state: Any
    estimator_: Any
    _target_word: ClassVar[str]  # what a target is called in messages
    _why_fewer_to_split: ClassVar[str] = ""  # a sentence, where `_rows_to_split` sets rows apart
    _settings: dict[str, Any]  # what was calibrated with: changed parameters count from the next calibration on

    def __sklearn_clone__(self) -> Self:
        params = self.get_params(deep=False)
        kept = {"estimator"} if is_function(self.estimator) else set()
        found = type(self)(**{name: one if name in kept else clone(one, safe=False) for name, one in params.items()})
        if hasattr(self, "_metadata_request"):
            found._metadata_request = deepcopy(self._metadata_request)
        if hasattr(self, "_skl_callbacks"):  # callbacks of scikit-learn, which follow all clones
            found._skl_callbacks = self._skl_callbacks
        return found

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_quantile")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if not is_function(self.estimator):
            tags.input_tags = copy(get_tags(self.estimator).input_tags)
        return tags

    def get_metadata_routing(self) -> MetadataRouter:
        """What scikit-learn's metadata routing hands on: `by` and `groups` to this, other arguments to the model."""
        return metadata_router(self, self.estimator if is_trainable(self.estimator) else None)

    def _targets(self, X: FeatureTable, y: ArrayLike) -> Values:
        """Targets that can be learned from, one for each row; or a ValueError."""
        if y is None:
            one = f"give one {self._target_word} per row"
            msg = f"{type(self).__name__} requires y to be passed, but the target y is None; {one}."
            raise ValueError(msg)
        check_pair(X, y)
        target, n = self._target_array(y), _num_samples(X)
        if len(target) != n:
            msg = f"y has {len(target)} rows, but X has {n}: give one {self._target_word} for each row of X."
            raise ValueError(msg)
        if not n:
            msg = "y has 0 sample(s), while a minimum of 1 is required: give at least one row."
            raise ValueError(msg)
        return self._checked_targets(target)

    @abstractmethod
    def _target_array(self, y: ArrayLike) -> Values:
        """Targets as an array whose first axis is that of rows; or a ValueError."""

    @abstractmethod
    def _checked_targets(self, target: Values) -> Values:
        """Targets, one for each row, as they are learned from; or a ValueError."""

    @abstractmethod
    def _remember_targets(self, X: FeatureTable, target: Values, model: Model | None) -> None:
        """Remember what targets look like; `model` is None if one is yet to train."""

    @abstractmethod
    def _categories_of(self, X: FeatureTable, by: ArrayLike | None) -> Values | None:
        """Category of each row; None: all are of one."""

    def _labels(self, target: Values, categories: Values | None) -> Values | None:  # noqa: ARG002
        """What each row has scores of its own by: its category, or its class."""
        return categories

    @abstractmethod
    def _train(
        self,
        X: FeatureTable,
        target: Values,
        codes: Index | None,
        splits: list[Split],
        to_come: Index | None,
        fit_params: dict[str, Any],
    ) -> CalibrationScores:
        """Scores of rows left out, and their places, by models trained on each split, and on those named to come.

        Sets `estimator_` and what else was learned for predictions.
        """

    @abstractmethod
    def _score(self, model: Model, X: FeatureTable, target: Values, codes: Index | None) -> CalibrationScores:
        """Scores and places of the rows that calibrate a model: all that nothing else is learned from.

        Sets what else was learned for predictions.
        """

    def _remember(self, X: FeatureTable, target: NDArray[Any], places: Index | None) -> None:
        """Keep some of the rows that calibrate, where they are needed later; None: all rows do."""

    @abstractmethod
    def _quantile_of(self, scores: CalibrationScores) -> ScoreQuantile:
        """The quantile of scores at the confidence level."""

    @abstractmethod
    def _settings_now(self) -> dict[str, Any]:
        """Parameters that stay as they are from one calibration to the next, by their names."""

    def _trained_or_calibrated(
        self, X: FeatureTable, y: ArrayLike, by: ArrayLike | None, groups: ArrayLike | None, fit_params: dict[str, Any]
    ) -> Self:
        """What `fit` does: train a clone if that can be trained, and calibrate."""
        draft = self._draft()
        if is_trainable(self.estimator):
            draft._fit(X, y, by, groups, for_the_model(self, fit_params) if fit_params else {})
            return self._become(draft)
        if fit_params:
            msg = f"fit_params {sorted(fit_params)} are given, but this estimator is not trained; leave them out."
            raise ValueError(msg)
        if self.cv is not None:
            msg = f"cv={self.cv!r} is given, but this estimator is not trained: there are no folds. Set cv=None."
            raise ValueError(msg)
        draft._calibrate(X, y, by, groups)
        return self._become(draft)

    def _fit(
        self, X: FeatureTable, y: ArrayLike, by: ArrayLike | None, groups: ArrayLike | None, fit_params: dict[str, Any]
    ) -> None:
        """Train and calibrate on one split or in folds."""
        self._settings = self._settings_now()
        target = self._targets(X, y)
        refuse_other_orders({"X": X, "y": y, "by": by, "groups": groups, **fit_params})
        X = self._first_table(X)
        if len(target) < 2:
            msg = "n_samples=1: training and calibrating need at least 2 rows. Call calibrate on a trained model."
            raise ValueError(msg)
        categories = self._categories_of(X, by)
        self._remember_targets(X, target, None)
        labels = self._labels(target, categories)
        codes = None if groups is None else _several_groups(groups, len(target))
        self._seed = self._seed_of_fit()
        keys, doubts = self._keys_and_doubts("fit", X, target, codes)
        is_copied = are_copies(codes, keys)
        is_shuffled = self.shuffle and groups is None and (self.cv is None or isinstance(self.cv, Integral))
        if is_shuffled and not (isinstance(X, np.ndarray) and isinstance(y, np.ndarray)):  # which have no dates
            warn_of_shuffled_dates(X, y)
        rest = self._rows_to_split(len(target), codes)
        how = {"has_groups": codes is not None, "are_copies": is_copied, "shuffle": self.shuffle}
        splitter = splitter_of(self.cv, len(rest), self._seed, **how)
        splits = checked_splits(splitter, X, target, groups, codes, rest, why_fewer=self._why_fewer_to_split)
        to_come = rows_to_come(splits, rest)
        scores = self._train(X, target, codes, splits, to_come, fit_params)
        self._trained_from = self.estimator
        self._remember(X, target, scores.places)
        if to_come is not None:
            doubts = tuple(dict.fromkeys((*doubts, ORDER)))
        labels, keys, codes = taken(scores.places, labels, keys, codes)
        scores = replace(scores, labels=labels, keys=keys, doubts=doubts, places=None)
        self._learn(scores.in_groups(codes, are_copies=is_copied))

    def _calibrate(
        self,
        X: FeatureTable,
        y: ArrayLike,
        by: ArrayLike | None,
        groups: ArrayLike | None,
        importance: Array | None = None,
        effective_size: float | None = None,
    ) -> None:
        """Calibrate the model at hand."""
        self._settings, model = self._settings_now(), self._model_to_calibrate()
        target = self._targets(X, y)
        refuse_other_orders({"X": X, "y": y, "by": by, "groups": groups})
        X = self._same_table(X) if self._has_own_model() else self._first_table(X)
        categories = self._categories_of(X, by)
        self._remember_targets(X, target, model)
        labels = self._labels(target, categories)
        codes = None if groups is None else group_numbers(groups, len(target))
        m = len(target)
        if importance is not None and not importance.all():
            kept = np.flatnonzero(importance)
            X, target = _safe_indexing(X, kept), target[kept]
            labels, codes, importance = taken(kept, labels, codes, importance)
        keys, doubts = self._keys_and_doubts("calibrate", X, target, codes)
        is_copied = are_copies(codes, keys) and (importance is None or are_copies(codes, importance))
        scores = self._score(model, X, target, codes)
        self.estimator_ = model
        self._remember(X, target, scores.places)
        labels, codes, keys, importance = taken(scores.places, labels, codes, keys, importance)
        size = None if effective_size is None else effective_size * len(scores) / m
        known = {"labels": labels, "importance": importance, "keys": keys, "effective_size": size, "doubts": doubts}
        scores = replace(scores, **known, places=None)
        self._learn(scores.in_groups(codes, are_copies=is_copied))

    def _learn(self, scores: CalibrationScores) -> None:
        """Set everything that calibration is known by."""
        self._scores_seen = scores
        self._know(self._quantile_of(scores))
        self.categories_ = self._quantile.categories()

    def _rows_to_split(self, n: int, codes: Index | None) -> Index:  # noqa: ARG002
        """Rows that train models and calibrate, in their order: all that nothing else is learned from."""
        return np.arange(n)

    def _has_own_model(self) -> bool:
        """Whether `fit` has trained a model for this very estimator."""
        return is_trainable(self.estimator) and getattr(self, "_trained_from", None) is self.estimator

    def _model_to_calibrate(self) -> Any:
        """The one model that `calibrate` is about."""
        if not self._has_own_model():
            return self.estimator if is_function(self.estimator) else trained(self.estimator)
        if len(self._models()) > 1:
            msg = "calibrate needs one model, but fit has trained one per fold (cv is set); call fit with all rows."
            raise ValueError(msg)
        return self.estimator_

    def _models(self) -> list[Any]:
        """The models that predict: one, or one for each fold."""
        return self.estimator_ if isinstance(self.estimator_, list) else [self.estimator_]

    def _trained_model(self, X: FeatureTable, y: Values, rows: Index, fit_params: dict[str, Any]) -> Any:
        """A clone of the estimator, trained on some of the rows."""
        params = _check_method_params(X, fit_params, rows)
        with columns_named(X):
            return clone(self.estimator).fit(_safe_indexing(X, rows), y[rows], **params)

    def _seed_of_fit(self) -> int:
        """A seed from `random_state`."""
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _first_table(self, X: FeatureTable) -> FeatureTable:
        """X as it is, or a ValueError; its columns are those that later ones are compared with."""
        table = self._checked_table(X)
        validate_data(self, table, reset=True, skip_check_array=True)
        self._columns = column_names(table)
        return table

    def _same_table(self, X: FeatureTable) -> FeatureTable:
        """X as it is, or a ValueError if its columns are others than before."""
        table = self._checked_table(X)
        if len(shape := getattr(table, "shape", (0, 1))) == 1 and hasattr(self, "n_features_in_"):
            msg = f"X has shape {shape}. Reshape your data to (n, {self.n_features_in_}): X.reshape(1, -1) is one row."
            raise ValueError(msg)
        validate_data(self, table, reset=False, skip_check_array=True)
        columns = column_names(table)
        if columns and self._columns and columns != self._columns:
            msg = f"X has columns {columns[:5]}, but they were {self._columns[:5]} before. Give them in that order."
            raise ValueError(msg)
        return table

    def _checked_table(self, X: FeatureTable) -> FeatureTable:
        """X as it is, or a ValueError if there is nothing in it, or it is sparse and must not be."""
        refuse_lazy(X)
        table: FeatureTable = indexable(unmasked(X))[0]
        if isinstance(table, list | tuple) and not table:
            msg = "X has 0 sample(s), while a minimum of 1 is required: give at least one row."
            raise ValueError(msg)
        if len(shape := getattr(table, "shape", (0, 1))) == 2 and shape[1] == 0:
            msg = f"X has 0 feature(s) (shape={shape}) while a minimum of 1 is required."
            raise ValueError(msg)
        if issparse(table) and not get_tags(self).input_tags.sparse:
            msg = "X is sparse, but sparse data is not supported by this estimator or width; use X.toarray()."
            raise ValueError(msg)
        return table

    def _keys_and_doubts(
        self, method: str, X: FeatureTable, target: Values, codes: Index | None
    ) -> tuple[Hashes | None, tuple[str, ...]]:
        """Hashes of rows, and why rows are not taken for exchangeable with new ones; warns of copies."""
        keys = row_keys(X, target)
        found = copies(keys, X, target, codes)
        if found.n:
            warn_of_coverage(found.warning(method, has_groups=codes is not None))
        return keys, (*((COPIES,) if found.n else ()), *(() if self.shuffle else (ORDER,)))


def is_function(estimator: object) -> bool:
    """Whether it is a function, or an object that only predicts: nothing to clone and nothing to train."""
    return not (hasattr(estimator, "fit") and hasattr(estimator, "get_params"))


def is_trainable(estimator: object) -> bool:
    """Whether `fit` trains a clone of it."""
    return not (is_function(estimator) or isinstance(estimator, FrozenEstimator))


def check_calibrated(estimator: object) -> None:
    """Refuse to answer before `fit` or `calibrate`."""
    how = "call 'fit', or 'calibrate' for a model that is trained already"
    check_is_fitted(estimator, msg=f"This %(name)s instance is not fitted yet: {how}, before you ask for answers.")


def _several_groups(groups: ArrayLike, n: int) -> Index:
    """The group of each of n rows, by its number; or a ValueError if there is one alone."""
    codes = group_numbers(groups, n)
    if not codes.any():
        msg = "groups has a single group: training and calibrating need rows of at least two."
        raise ValueError(msg)
    return codes


def _check_split(rows: Index, others: Index, codes: Index | None) -> None:
    """Refuse a split whose two parts have rows in common, that leaves none out, or that divides a group."""
    n_shared = len(np.intersect1d(rows, others))
    if n_shared:
        msg = f"cv trains on {n_shared} of the rows that it leaves out, which then say nothing about new rows."
        raise ValueError(msg)
    if not len(others):
        msg = "cv has a split that leaves no row out of training: nothing to calibrate with. Use other splits."
        raise ValueError(msg)
    n_divided = 0 if codes is None else len(np.intersect1d(codes[rows], codes[others]))
    if n_divided:
        msg = (
            f"A split divides the rows of {counted(n_divided, 'group')}. Use a splitter of groups, such as "
            "cv=GroupKFold(5). "
            "(shuffle=False without cv calibrates on the last 20 % of the rows: a group has to begin there.)"
        )
        raise ValueError(msg)


def checked_splits(
    splitter: Any,
    X: FeatureTable,
    target: Values,
    groups: ArrayLike | None,
    codes: Index | None,
    rest: Index,
    *,
    why_fewer: str = "",
) -> list[Split]:
    """Rows that train and rows that are left out, of `rest`, which are in order; no group is divided.

    `why_fewer` is a sentence on why `rest` are fewer rows than were given.
    """
    n = len(target)
    if len(rest) < n:
        X, target = _safe_indexing(X, rest), target[rest]
        codes, groups = taken(rest, codes, groups)
    try:
        found = [tuple(np.arange(len(rest))[part] for part in split) for split in splitter.split(X, target, groups)]
    except IndexError as beyond:
        msg = (
            f"cv names rows that are not among the {len(rest)} to split ({beyond}); give places from 0 to "
            f"{len(rest) - 1}, or a splitter such as KFold(5).{why_fewer if len(rest) < n else ''}"
        )
        raise ValueError(msg) from beyond
    if not found:
        msg = "cv has no splits. A generator is used up by one fit: give a list, or a splitter such as KFold(5)."
        raise ValueError(msg)
    for rows, others in found:
        _check_split(rows, others, codes)
    return [(rest[rows], rest[others]) for rows, others in found]


def splitter_of(cv: object, n: int, seed: int, *, has_groups: bool, are_copies: bool, shuffle: bool) -> Any:
    """One split of 80 to 20, folds of an integer, equal in rows or, if groups are copies, in groups, or `cv` itself."""
    from sklearn.model_selection import GroupKFold, GroupShuffleSplit, KFold, ShuffleSplit, check_cv, train_test_split

    if cv is None and not shuffle:
        return check_cv([train_test_split(np.arange(n), test_size=HELD_OUT, shuffle=False)])
    if cv is None:
        return (GroupShuffleSplit if has_groups else ShuffleSplit)(1, test_size=HELD_OUT, random_state=seed)
    if not isinstance(cv, Integral):
        return check_cv(cv)
    is_mixed = shuffle and (are_copies or not has_groups)
    return (GroupKFold if has_groups else KFold)(int(cv), shuffle=is_mixed, random_state=seed if is_mixed else None)


def rows_to_come(splits: list[Split], every: Index) -> Index | None:
    """Rows to train the model of the future on, if each split leaves out later rows than it trains on; else None.

    They are all rows, which are in order, or, if the last split did not train on the first one, as many of the last
    rows as it trained on.
    """
    left_out = np.concatenate([others for _, others in splits])
    is_past = all(len(rows) and rows.max() < others.min() for rows, others in splits)
    if len(splits) == 1 or not is_past or len(np.unique(left_out)) < len(left_out):
        return None
    last, _ = max(splits, key=lambda split: int(split[1].max()))
    return every if last.min() == every[0] else every[len(every) - len(last) :]
