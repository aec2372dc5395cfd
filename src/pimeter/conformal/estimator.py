"""The life cycle of an estimator around another: a function, a frozen or trained model, or one that is yet to train."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import narwhals as nw
import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing, check_random_state, get_tags, indexable
from sklearn.utils.validation import _check_method_params, _num_samples, check_is_fitted, validate_data

from pimeter.arrays import coded, even_array, unmasked
from pimeter.conformal.guarantee import COPIES, GROUPS
from pimeter.coverage import warn_of_coverage
from pimeter.duplicates import copies
from pimeter.frames import column_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike, NDArray

    from pimeter.conformal.scores import CalibrationScores
    from pimeter.protocols import FeatureTable

    Index = NDArray[np.intp]
    Split = tuple[Index, Index]  # rows that train, and rows that are left out

HELD_OUT = 0.2  # fraction of rows that calibrate with cv=None, as in the paper
FEWEST_DATED = 10  # rows that chance does not put in the order of their dates


class Replaceable:
    """Works on a copy that replaces it only when all went well."""

    def _draft(self) -> Self:
        """A copy to work on, so that a failure leaves the original as it was."""
        return copy(self)

    def _become(self, draft: Self) -> Self:
        """Take over what the draft has learned, and forget what it has not."""
        self.__dict__ = draft.__dict__  # in one step: another thread may be predicting
        return self


class ConformalEstimator(Replaceable, BaseEstimator, ABC):
    """A model and its calibration.

    `estimator` is one of four things: a function or an object that only predicts; a ``FrozenEstimator``; a trained
    estimator; or one to train, of which `fit` trains a clone and `calibrate` needs it trained. `fit` and `calibrate` of
    subclasses work on a draft, and end in `_become`.
    """

    estimator: Any
    cv: Any
    shuffle: bool
    random_state: Any
    estimator_: Any

    def __sklearn_clone__(self) -> Self:
        params = self.get_params(deep=False)
        kept = {"estimator"} if is_function(self.estimator) else set()
        return type(self)(**{name: one if name in kept else clone(one, safe=False) for name, one in params.items()})

    @abstractmethod
    def _fit(
        self, X: FeatureTable, y: ArrayLike, by: ArrayLike | None, groups: ArrayLike | None, fit_params: dict[str, Any]
    ) -> None:
        """Train and calibrate on one split or in folds."""

    @abstractmethod
    def _calibrate(
        self, X: FeatureTable, y: ArrayLike, by: ArrayLike | None, groups: ArrayLike | None, *, is_first: bool
    ) -> None:
        """Calibrate the model at hand; `is_first` makes the columns of X those that later ones are compared with."""

    def _trained_or_calibrated(
        self, X: FeatureTable, y: ArrayLike, by: ArrayLike | None, groups: ArrayLike | None, fit_params: dict[str, Any]
    ) -> Self:
        """What `fit` does: train a clone if that can be trained, and calibrate."""
        draft = self._draft()
        if is_trainable(self.estimator):
            draft._fit(X, y, by, groups, fit_params)
        elif fit_params:
            msg = f"fit_params {sorted(fit_params)} are given, but this estimator is not trained; leave them out."
            raise ValueError(msg)
        else:
            draft._calibrate(X, y, by, groups, is_first=True)
        return self._become(draft)

    def _has_own_model(self) -> bool:
        """Whether `fit` has trained a model for this very estimator."""
        return is_trainable(self.estimator) and getattr(self, "_trained_from", None) is self.estimator

    def _model_to_calibrate(self) -> Any:
        """The one model that `calibrate` is about."""
        if not self._has_own_model():
            return trained(self.estimator)
        if len(self._models()) > 1 or self.estimator_ is not self._models()[0]:
            msg = "calibrate needs one model, but fit has trained one per fold (cv is set); call fit with all rows."
            raise ValueError(msg)
        return self.estimator_

    def _models(self) -> list[Any]:
        """The models that predict: one, or one for each fold."""
        return self.estimator_ if isinstance(self.estimator_, list) else [self.estimator_]

    def _trained_model(self, X: FeatureTable, y: NDArray[Any], rows: Index, fit_params: dict[str, Any]) -> Any:
        """A clone of the estimator, trained on some of the rows."""
        params = _check_method_params(X, fit_params, rows)
        return clone(self.estimator).fit(_safe_indexing(X, rows), y[rows], **params)

    def _seed_of_fit(self) -> int:
        """A seed from `random_state`."""
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _first_table(self, X: FeatureTable) -> Any:
        """X as it is, or a ValueError; its columns are those that later ones are compared with."""
        table = self._checked_table(X)
        validate_data(self, table, reset=True, skip_check_array=True)
        self._columns = _columns(table)
        return table

    def _same_table(self, X: FeatureTable) -> Any:
        """X as it is, or a ValueError if its columns are others than before."""
        table = self._checked_table(X)
        shape = getattr(table, "shape", (0, 1))
        if len(shape) == 1 and hasattr(self, "n_features_in_"):
            msg = f"X has shape {shape}. Reshape your data to (n, {self.n_features_in_}): X.reshape(1, -1) is one row."
            raise ValueError(msg)
        validate_data(self, table, reset=False, skip_check_array=True)
        columns = _columns(table)
        if columns and self._columns and columns != self._columns:
            msg = f"X has columns {columns[:5]}, but they were {self._columns[:5]} before. Give them in that order."
            raise ValueError(msg)
        return table

    def _checked_table(self, X: FeatureTable) -> Any:
        """X as it is, or a ValueError if there is nothing in it, or it is sparse and must not be."""
        (table,) = indexable(unmasked(X))
        if isinstance(table, list | tuple) and not table:
            msg = "X has 0 sample(s), while a minimum of 1 is required: give at least one row."
            raise ValueError(msg)
        shape = getattr(table, "shape", (0, 1))
        if len(shape) == 2 and shape[1] == 0:
            msg = f"X has 0 feature(s) (shape={shape}) while a minimum of 1 is required."
            raise ValueError(msg)
        if issparse(table) and not get_tags(self).input_tags.sparse:
            msg = "X is sparse, but sparse data is not supported by this estimator or width; use X.toarray()."
            raise ValueError(msg)
        return table

    def _doubts(
        self, method: str, X: FeatureTable, y: NDArray[Any], groups: Index | None, keys: Any
    ) -> tuple[str, ...]:
        """Why rows are not taken for exchangeable with new ones, because of copies; warns of these."""
        found = copies(keys, X, y, groups)
        if not found.n:
            return ()
        warn_of_coverage(found.warning(method, has_groups=groups is not None))
        return (COPIES,)

    def _splits(
        self,
        X: FeatureTable,
        y: ArrayLike,
        groups: ArrayLike | None,
        codes: Index | None,
        seed: int,
        *,
        are_copies: bool,
    ) -> list[Split]:
        """Rows that train and rows that are left out: one split, or folds."""
        splitter = self._splitter(_num_samples(X), codes, seed, are_copies=are_copies)
        return checked_splits(splitter.split(X, y, groups), _num_samples(X), codes)

    def _splitter(self, n: int, codes: Index | None, seed: int, *, are_copies: bool) -> Any:
        """One split of 80 to 20, folds of an integer, or the splitter given.

        Folds have equal numbers of rows; if groups are copies of one row, equal numbers of groups.
        """
        from sklearn.model_selection import (
            GroupKFold,
            GroupShuffleSplit,
            KFold,
            ShuffleSplit,
            check_cv,
            train_test_split,
        )

        if self.cv is None and not self.shuffle:
            return check_cv([train_test_split(np.arange(n), test_size=HELD_OUT, shuffle=False)])
        if self.cv is None:
            splitter = ShuffleSplit if codes is None else GroupShuffleSplit
            return splitter(1, test_size=HELD_OUT, random_state=seed)
        if not isinstance(self.cv, Integral):
            return check_cv(self.cv)
        folds, is_mixed = (KFold, self.shuffle) if codes is None else (GroupKFold, self.shuffle and are_copies)
        return folds(int(self.cv), shuffle=is_mixed, random_state=seed if is_mixed else None)

    def _warn_of_shuffled_dates(self, X: FeatureTable, y: ArrayLike, groups: ArrayLike | None) -> None:
        """Say that rows which are in the order of their dates are shuffled."""
        if not self.shuffle or groups is not None or not (self.cv is None or isinstance(self.cv, Integral)):
            return
        where = next((f"the index of {name}" for name, table in (("X", X), ("y", y)) if _is_dated(table)), None)
        where = where or _dated_column(X)
        if where is not None:
            warn_of_coverage(
                f"rows are in the order of their dates ({where}), and fit shuffles them: it calibrates on rows between "
                "those that it trains on, and rows to come may be covered far less often. Set shuffle=False, which "
                "calibrates on the last rows, or cv=TimeSeriesSplit(5). If time does not matter, shuffle the rows "
                "yourself."
            )


def is_function(estimator: object) -> bool:
    """Whether it is a function, or an object that only predicts: nothing to clone and nothing to train."""
    return not (hasattr(estimator, "fit") and hasattr(estimator, "get_params"))


def is_trainable(estimator: object) -> bool:
    """Whether `fit` trains a clone of it."""
    return not (is_function(estimator) or isinstance(estimator, FrozenEstimator))


def trained(estimator: object) -> Any:
    """The estimator itself, which has to be ready to predict."""
    if not is_function(estimator):
        try:
            check_is_fitted(estimator)
        except NotFittedError as unfitted:
            msg = (
                f"estimator is a {type(estimator).__name__} that is not fitted: call fit(X, y), which trains a clone "
                "of it, or fit the estimator first, whose answers are needed to calibrate it."
            )
            raise NotFittedError(msg) from unfitted
    return estimator


def category_labels(X: FeatureTable, by: ArrayLike | None, own: Any, name: str) -> NDArray[Any] | None:
    """Category of each row: given to a method or, as a column or a function of X, to the object of this name."""
    if by is not None and own is not None:
        msg = f"by is given twice: to the method, and as {name}(by={own!r}). Leave one of them out."
        raise ValueError(msg)
    if by is None and own is None:
        return None
    labels = even_array("by", by if by is not None else own(X) if callable(own) else column_of(X, own))
    if labels.shape != (_num_samples(X),):
        msg = f"by must give one category for each of the {_num_samples(X)} rows of X; got shape {labels.shape}."
        raise ValueError(msg)
    return labels


def group_codes(groups: ArrayLike | None, X: FeatureTable, *, n_least: int = 1) -> Index | None:
    """The number of each row's group."""
    if groups is None:
        return None
    labels = even_array("groups", groups)
    if labels.shape != (_num_samples(X),):
        msg = f"groups must hold one group for each of the {_num_samples(X)} rows of X; got shape {labels.shape}."
        raise ValueError(msg)
    names, codes = coded(labels)
    if None in names:
        msg = "groups has missing values. Give each such row a group of its own, or leave it out."
        raise ValueError(msg)
    if len(names) < n_least:
        msg = "groups has a single group: training and calibrating need rows of at least two."
        raise ValueError(msg)
    return codes


def in_groups(scores: CalibrationScores, codes: Index | None, *, are_copies: bool) -> CalibrationScores:
    """Rows of one group may resemble each other; if groups are copies of one row, each group counts once."""
    if codes is None:
        return scores
    first = np.unique(codes, return_index=True)[1]
    if not are_copies:
        return replace(scores, n_groups=len(first), doubts=(*scores.doubts, GROUPS))
    size = None if scores.effective_size is None else scores.effective_size * len(first) / len(codes)
    return replace(scores.rows(np.sort(first)), effective_size=size)


def checked_splits(splits: Iterable[Any], n: int, codes: Index | None = None) -> list[Split]:
    """Training rows and those left out, as numbers, of each split of n rows that divides no group; or a ValueError."""
    everyone = np.arange(n)
    found = [(everyone[rows], everyone[others]) for rows, others in splits]
    if not found:
        msg = "cv has no splits. A generator is used up by one fit: give a list, or a splitter such as KFold(5)."
        raise ValueError(msg)
    for rows, others in found:
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
                f"cv divides the rows of {n_divided} groups in one split. Use a splitter of groups, such as "
                "GroupKFold(5)."
            )
            raise ValueError(msg)
    return found


def rows_to_come(splits: list[Split], n: int) -> Index | None:
    """Rows to train the model of the future on, if each split leaves out later rows than it trains on; else None.

    They are all rows or, if the last split did not train on the first one, as many of the last rows as it trained on.
    """
    left_out = np.concatenate([others for _, others in splits])
    is_past = all(len(rows) and rows.max() < others.min() for rows, others in splits)
    if len(splits) == 1 or not is_past or len(np.unique(left_out)) < len(left_out):
        return None
    last, _ = max(splits, key=lambda split: int(split[1].max()))
    return np.arange(n)[0 if last.min() == 0 else n - len(last) :]


def taken(rows: Index, *columns: Any) -> list[Any]:
    """Some rows of each column; None stays None."""
    return [None if column is None else np.asarray(column)[rows] for column in columns]


def _columns(table: Any) -> list[Any]:
    """Names of columns; scikit-learn looks at strings alone, and pyarrow's columns are the data."""
    return list(getattr(table, "column_names", getattr(table, "columns", [])))


def _is_dated(table: Any) -> bool:
    """Whether a frame or series of pandas has dates for its index, and they rise."""
    index = getattr(table, "index", None)
    kind = str(getattr(index, "dtype", ""))
    if not kind.startswith(("datetime64", "period")) or len(table) < FEWEST_DATED:
        return False
    return bool(table.index.is_monotonic_increasing and table.index[0] < table.index[-1])


def _dated_column(X: FeatureTable) -> str | None:
    """The first column of a frame with dates that rise."""
    try:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
    except nw.exceptions.DuplicateError:  # columns of one name
        return None
    if not isinstance(frame, nw.DataFrame) or len(frame) < FEWEST_DATED:
        return None
    for column in frame.iter_columns():
        is_date = isinstance(column.dtype, nw.Date | nw.Datetime)
        if is_date and not column.null_count() and column.is_sorted() and column[0] < column[-1]:
            return f"column {column.name!r}"
    return None
