"""`SetClassifier`: sets of classes that hold the true one as often as asked for."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable
from copy import copy
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GroupKFold, GroupShuffleSplit, KFold, ShuffleSplit, check_cv, train_test_split
from sklearn.utils import _safe_indexing, check_random_state, get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import (
    _check_method_params,
    _num_samples,
    check_is_fitted,
    column_or_1d,
)

from pimeter.arrays import even_array, is_missing, label_list
from pimeter.classification.conformity import SCORES, Penalty, chosen_penalty
from pimeter.classification.draws import row_draws
from pimeter.classification.limits import Limits
from pimeter.conformal.guarantee import GUARANTEES, GuaranteeKind
from pimeter.coverage import CoverageWarning, checked_proportion
from pimeter.duplicates import are_copies, copies, row_keys
from pimeter.frames import column_of, frame_of, library_of
from pimeter.tables import checked_splits, checked_table, group_codes, rows_to_come, warn_of_dates

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]
    Index = NDArray[np.intp]

HELD_OUT = 0.2  # share of rows that calibrate with cv=None
TUNING = 0.2  # of the calibration rows, which RAPS chooses its constants with


class _Settings(NamedTuple):
    """What sets were calibrated with: parameters that are changed later count from the next calibration on."""

    conformity_score: str
    by: Any
    randomized: bool
    guarantee: Any

    @property
    def is_by_class(self) -> bool:
        return isinstance(self.by, str) and self.by == "class"


class _Counted(NamedTuple):
    """Which calibration rows count, and whether they are taken for exchangeable."""

    groups: Index | None  # groups of copies, each of which counts once
    is_proven: bool

    @property
    def is_once(self) -> bool:
        return self.groups is not None

    def kept(self, rows: Index) -> Index:
        """The first row of each group."""
        if self.groups is None:
            return rows
        return rows[np.sort(np.unique(self.groups[rows], return_index=True)[1])]


class SetClassifier(ClassifierMixin, BaseEstimator):
    """Sets of classes for any classifier, from its scores on rows that it was not trained on.

    If the calibration rows and a new row are exchangeable (such as independent draws from one source), the set holds
    the true class with the confidence level or more, on average over calibration sets and new rows. Sets are large
    where the classifier is unsure. They may be **empty** with ``conformity_score="lac"`` and with ``randomized=True``:
    no class fits the row as well as it should, and such sets are part of the share that may miss.

    Parameters
    ----------
    estimator : classifier, FrozenEstimator or callable
        The model, with ``predict_proba``. `fit` trains a clone; `calibrate` takes a fitted one as it is. A
        ``FrozenEstimator``, an object that only predicts and a function ``f(X)`` that returns probabilities are never
        trained; without ``classes_`` the classes are those of the columns, 0, 1, ...
    confidence_level : float, default=0.95
        Share of new rows whose set shall hold the true class.
    conformity_score : {"lac", "aps", "raps"}, default="lac"
        How badly a class fits: 1 - its probability (smallest sets on average); the probability of all classes that are
        likelier (sets that follow how hard the row is, and always hold the likeliest class unless they are randomized);
        the same with a penalty for long sets, whose two constants come from a fifth of the calibration rows, which then
        do not calibrate (of few rows there may be no penalty: see `penalty_`).
    by : "class", column, callable or None, default=None
        Who the promise is made to: all rows together; with "class" each class; else each category, of a column of X (a
        name, or a position in an array) or of a function of X. Categories may also be passed as `by` to each method.
    randomized : bool, default=False
        For "aps" and "raps": whether a random part of the class's own probability counts, in calibration and in
        prediction, so that coverage is not above the level by more than 1/(m + 1), if rows differ. The draw is made
        from `random_state` and the row itself: neither batch nor order matter, and equal rows have the same one.
    cv : int, splitter, iterable or None, default=None
        None: `fit` trains on 80 % of the rows and calibrates on the others. Otherwise CV+: all rows do both, in folds.
        With a splitter that leaves out later rows than it trains on, such as ``TimeSeriesSplit``, each of these rows is
        judged by a model of its past, and one more model, of all rows, predicts those to come.
    shuffle : bool, default=True
        Whether rows are shuffled before they are split. False, for rows in the order of time: with ``cv=None`` the
        last 20 % calibrate, and an integer `cv` makes folds of rows that follow each other. Then, and with
        ``TimeSeriesSplit``, `guaranteed_level_` is NaN: that scores to come are like those of the past is an assumption
        about the series.
    guarantee : {"marginal", "training-conditional", "approximate"}, default="marginal"
        "marginal": the limit is one of the scores, that of rank ``ceil((m + 1) p)``. "training-conditional": the least
        rank that covers p with 95 % confidence for the calibration set at hand. "approximate": the neuron between the
        two scores next to rank ``(m + 1) p``.
    random_state : int, RandomState or None, default=None
        Chooses splits and draws.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Classes in the order of columns.
    estimator_ : object
        The model that predicts; with `cv` a list.
    limit_ : float or ndarray
        Largest score of a class in the set; infinite where rows are too few, so that the set is full; one for each of
        `categories_`. NaN with `cv`, where each new row has its own.
    guaranteed_level_ : float
        Coverage that is promised: the confidence level, also where sets are full for want of rows; with `cv` ``2 p - 1
        - sqrt(2/n)`` if folds have equal sizes, also those of each class or category, else NaN; with
        ``guarantee="approximate"`` that of the score below; NaN with copies of rows, of which a warning tells, and
        `groups`.
    coverage_range_ : ndarray of shape (2,) or (n_categories, 2)
        5 % and 95 % points of the coverage of this calibration set, for scores without ties; with "approximate"
        of the rank below and of that above. NaN with `cv` and for full sets.
    categories_ : list of Category
        Rows, promised level and source for each class or category; else empty.
    penalty_ : Penalty
        RAPS's constants.
    n_calibration_ : int
        Number of calibration rows.
    n_features_in_ : int
        Number of columns of X, if it has columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns of X, if they have names.

    See Also
    --------
    classification_uncertainty : Intervals for a classifier's metrics.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from pimeter import SetClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SetClassifier(LogisticRegression(max_iter=1000), confidence_level=0.9, random_state=0).fit(X, y)
    >>> model.predict_set(X[[0, 77, 120]])  # no class fits the second row well enough
    array([[ True, False, False],
           [False, False, False],
           [False, False,  True]])
    >>> model.guaranteed_level_, model.coverage_range_.round(3)
    (0.9, array([0.805, 0.972]))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["predict_proba"]), HasMethods(["fit"]), callable],
        "confidence_level": [Interval(Real, 0, 1, closed="neither")],
        "conformity_score": [StrOptions(set(SCORES))],
        "by": [Hashable, callable, None],
        "randomized": ["boolean"],
        "cv": ["cv_object"],
        "shuffle": ["boolean"],
        "guarantee": [StrOptions(set(GUARANTEES))],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: Any,
        *,
        confidence_level: float = 0.95,
        conformity_score: Literal["lac", "aps", "raps"] = "lac",
        by: Hashable | Callable[[Any], ArrayLike] | None = None,
        randomized: bool = False,
        cv: Any = None,
        shuffle: bool = True,
        guarantee: GuaranteeKind = "marginal",
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.confidence_level = confidence_level
        self.conformity_score = conformity_score
        self.by = by
        self.randomized = randomized
        self.cv = cv
        self.shuffle = shuffle
        self.guarantee = guarantee
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike, *, by: ArrayLike | None = None, groups: Any = None, **fit_params: Any) -> Self:
        """Train the model and calibrate it on rows that it was not trained on.

        Parameters
        ----------
        X : array, frame or whatever the estimator takes, of n rows
            Features.
        y : array-like of shape (n,)
            Classes.
        by : array-like of shape (n,), optional
            Categories of the rows.
        groups : array-like of shape (n,), optional
            Rows of one group, such as those of one patient, are never parted by a split. They may be alike, so that
            nothing is promised to rows of new groups: `guaranteed_level_` is NaN. If the rows of each group are copies
            of one row, as with ``groups=duplicate_groups(X, y)``, each group calibrates once, and as much is promised
            as without copies.
        **fit_params
            Passed to the estimator's `fit` alone; those with one value per row are split with the rows.

        Returns
        -------
        SetClassifier
            Itself; as it was before if anything is wrong with the input.
        """
        draft = self._draft()
        if self._is_trainable():
            draft._fit(X, y, by, groups, fit_params)
        elif fit_params:
            msg = f"fit_params {sorted(fit_params)} are given, but this estimator is not trained; leave them out."
            raise ValueError(msg)
        else:
            draft._calibrate(X, y, by, groups, reset=True)
        return self._become(draft)

    def calibrate(self, X: Any, y: ArrayLike, *, by: ArrayLike | None = None, groups: Any = None) -> Self:
        """Calibrate a trained model on rows that it was not trained on; replaces an earlier calibration.

        Parameters
        ----------
        X : array, frame or whatever the estimator takes, of m rows
            Features.
        y : array-like of shape (m,)
            Classes.
        by : array-like of shape (m,), optional
            Categories of the rows.
        groups : array-like of shape (m,), optional
            As in `fit`: nothing is promised to rows of new groups, but copies of a row count once.

        Returns
        -------
        SetClassifier
            Itself; as it was before if anything is wrong with the input.
        """
        draft = self._draft()
        draft._calibrate(X, y, by, groups, reset=not self._is_own_model())
        return self._become(draft)

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class of each row."""
        found: NDArray[Any] = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[found])

    def predict_proba(self, X: Any) -> Array:
        """The model's own probabilities, (n, n_classes); with `cv` the mean of the models of all folds."""
        check_is_fitted(self)
        X = checked_table(self, X, reset=False)
        mean: Array = np.mean([self._probabilities(model, X) for model in self._models()], axis=0)
        return mean

    def predict_set(
        self, X: Any, confidence_level: float | None = None, *, by: ArrayLike | None = None, as_frame: bool = False
    ) -> Any:
        """Sets of classes.

        Parameters
        ----------
        X : array, frame or whatever the estimator takes, of n rows
            Features.
        confidence_level : float, optional
            Another level than that of the estimator. The same categories have scores of their own at all levels, so
            that sets of a higher one are never smaller.
        by : array-like of shape (n,), optional
            Categories of the rows.
        as_frame : bool, default=False
            A frame of X's library (pandas for arrays) with a column for each class.

        Returns
        -------
        ndarray of bool, shape (n, n_classes), or frame
            Whether each class is in the set; no row needs to have one.
        """
        check_is_fitted(self)
        level = (
            self._limits.level if confidence_level is None else checked_proportion("confidence_level", confidence_level)
        )
        given, X = X, checked_table(self, X, reset=False)
        labels = self._labels(X, by)
        limits = self._limits if level == self._limits.level else self._learned(level, like=self._limits)
        draws = self._draws(X)
        score = SCORES[self._settings.conformity_score]
        scores = [score(self._probabilities(model, X), draws, self.penalty_) for model in self._models()]
        found = limits.sets(scores, labels)
        if not as_frame:
            return found
        columns = {str(label): found[:, i] for i, label in enumerate(self.classes_.tolist())}
        table = frame_of(columns, library_of(given))
        if hasattr(given, "iloc"):
            table.index = given.index
        return table

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_limits")

    def __sklearn_clone__(self) -> Self:
        params = self.get_params(deep=False)
        keep = {"estimator"} if self._is_function() else set()
        return type(self)(**{name: v if name in keep else clone(v, safe=False) for name, v in params.items()})

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if not self._is_function():
            inner = get_tags(self.estimator)
            tags.input_tags = copy(inner.input_tags)
            tags.classifier_tags = copy(inner.classifier_tags) or tags.classifier_tags
        tags.target_tags.multi_output = False
        tags.classifier_tags.multi_label = False
        return tags

    def _is_function(self) -> bool:
        """Whether there is nothing to clone and nothing to train."""
        return not (hasattr(self.estimator, "fit") and hasattr(self.estimator, "get_params"))

    def _is_trainable(self) -> bool:
        return not (self._is_function() or isinstance(self.estimator, FrozenEstimator))

    def _is_own_model(self) -> bool:
        """Whether `fit` has trained a model for this very estimator."""
        return self._is_trainable() and getattr(self, "_trained_from", None) is self.estimator

    def _models(self) -> list[Any]:
        return self.estimator_ if isinstance(self.estimator_, list) else [self.estimator_]

    def _draft(self) -> Self:
        """A copy to work on, so that a failure leaves the estimator as it was."""
        self._validate_params()
        if not hasattr(self.estimator, "predict_proba") and not self._is_function():
            msg = (
                f"estimator {type(self.estimator).__name__} has no predict_proba, which sets are made "
                "from. Choose another, "
                "or wrap it in sklearn.calibration.CalibratedClassifierCV."
            )
            raise ValueError(msg)
        if self.cv is not None and self.guarantee != "marginal" and self._is_trainable():
            msg = (
                f"guarantee={self.guarantee!r} is about one calibration set, but cv makes folds; set cv=None, or "
                'guarantee="marginal".'
            )
            raise ValueError(msg)
        if self.randomized and self.conformity_score == "lac":
            msg = 'randomized=True has no meaning for conformity_score="lac", which draws nothing; use "aps" or "raps".'
            raise ValueError(msg)
        draft = copy(self)
        draft._settings = _Settings(self.conformity_score, self.by, self.randomized, self.guarantee)
        return draft

    def _become(self, draft: Self) -> Self:
        """Take over what the draft has learned, and forget what it has not."""
        self.__dict__.clear()
        self.__dict__.update(draft.__dict__)
        return self

    def _targets(self, X: Any, y: Any) -> NDArray[Any]:
        if y is None:
            msg = f"{type(self).__name__} requires y to be passed, but the target y is None; give one class per row."
            raise ValueError(msg)
        target: NDArray[Any] = column_or_1d(even_array("y", y), warn=True)
        n = _num_samples(X)
        if len(target) != n:
            msg = f"y has {len(target)} rows, but X has {n}: give one class for each row of X."
            raise ValueError(msg)
        if not n:
            msg = "y has 0 sample(s), while a minimum of 1 is required: give at least one row."
            raise ValueError(msg)
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
                "as words, such as with astype(str)."
            )
            raise ValueError(msg)
        check_classification_targets(target)
        return target

    def _labels(self, X: Any, by: ArrayLike | None) -> NDArray[Any] | None:
        """Category of each row; None if there are none, or if classes take their place."""
        own = self._settings.by
        if by is not None and own is not None:
            msg = f"by is given twice: to the method, and as SetClassifier(by={own!r}). Leave one of them out."
            raise ValueError(msg)
        if by is None and (own is None or self._settings.is_by_class):
            if own is None and getattr(self, "_has_labels", False):
                msg = "by is missing: calibration had a category per row, so new rows need one, too. Pass by=..."
                raise ValueError(msg)
            return None
        if by is not None and not getattr(self, "_has_labels", True):
            msg = "by is given for new rows, but calibration had none: pass it to fit or calibrate, too."
            raise ValueError(msg)
        given = by if by is not None else own(X) if callable(own) else column_of(X, own)
        labels = even_array("by", given)
        if labels.shape != (_num_samples(X),):
            msg = f"by must give one category for each of the {_num_samples(X)} rows of X; got shape {labels.shape}."
            raise ValueError(msg)
        found: NDArray[Any] = np.empty(len(labels), object)
        found[:] = label_list(labels)
        return found

    def _draws(self, X: Any) -> Array | None:
        return row_draws(X, self._seed) if self._settings.randomized else None

    def _fit(self, X: Any, y: Any, by: ArrayLike | None, groups: Any, fit_params: dict[str, Any]) -> None:
        target = self._targets(X, y)
        X = checked_table(self, X, reset=True)
        n = len(target)
        if n < 2:
            msg = "n_samples=1: training and calibrating need at least 2 rows. Call calibrate on a trained model."
            raise ValueError(msg)
        self.classes_ = unique_labels(target)
        if len(self.classes_) < 2:
            msg = f"y holds one class only ({self.classes_[0]!r}); a classifier needs at least two classes."
            raise ValueError(msg)
        self.__dict__.pop("_has_labels", None)
        labels, given, groups = self._labels(X, by), groups, group_codes(groups, X)
        if groups is not None and groups.max() == 0:
            msg = "groups has a single group: training and calibrating need rows of at least two."
            raise ValueError(msg)
        self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        counted = self._counted("fit", X, target, groups)
        if self.shuffle and groups is None and (self.cv is None or isinstance(self.cv, Integral)):
            warn_of_dates(X, y)
        n_tuning = int(n * TUNING * HELD_OUT) if self._settings.conformity_score == "raps" else 0
        tuning, rest = self._apart(n, n_tuning, groups)
        own, seen = (None if a is None else np.asarray(a)[rest] for a in (groups, given))
        splitter = self._splitter(len(rest), own, are_alike=not counted.is_once)
        splits = checked_splits(splitter.split(_safe_indexing(X, rest), target[rest], seen), len(rest), own)

        def model(rows: Index) -> Any:
            params = _check_method_params(X, fit_params, rest[rows])
            return clone(self.estimator).fit(_safe_indexing(X, rest[rows]), target[rest[rows]], **params)

        models, parts = [model(train) for train, _ in splits], [rest[left] for _, left in splits]
        to_come = rows_to_come(splits, len(rest))
        if to_come is None and len(parts) > 1 and not np.array_equal(np.sort(np.concatenate(parts)), rest):
            msg = (
                "cv leaves some rows out several times, or never; CV+ needs folds in which each row has one turn, such "
                "as KFold, or splits that leave out later rows than they train on, such as TimeSeriesSplit."
            )
            raise ValueError(msg)
        last = models[0] if to_come is None else model(to_come)
        self.estimator_: Any = models if self.cv is not None and to_come is None else last
        self._trained_from = self.estimator
        self._is_proven = counted.is_proven and self.shuffle and to_come is None
        self._learn_penalty(last, X, target, tuning)
        self._learn(X, target, labels, models, [counted.kept(rows) for rows in parts], is_joined=to_come is not None)

    def _counted(self, method: str, X: Any, target: NDArray[Any], groups: Index | None) -> _Counted:
        """Which rows count, and whether they are taken for exchangeable; warns of copies."""
        keys = row_keys(X, target)
        found = copies(keys, X, target, groups)
        if found.n:
            warnings.warn(found.warning(method, has_groups=groups is not None), CoverageWarning, stacklevel=4)
        is_once = groups is not None and are_copies(groups, keys)
        return _Counted(groups if is_once else None, is_proven=not found.n and (groups is None or is_once))

    def _apart(self, n: int, n_tuning: int, groups: Index | None) -> tuple[Index, Index]:
        """So many rows or fewer, of whole groups, and the others; the first ones if rows are in the order of time."""
        rows = np.arange(n)
        if self.shuffle:
            rows = np.random.default_rng(self._seed).permutation(n)
        if groups is not None:
            place = np.empty(int(groups.max()) + 1, np.intp)
            known, first = np.unique(groups[rows], return_index=True)
            place[known] = first
            rows = np.argsort(place[groups], kind="stable")
            ends = np.flatnonzero(np.diff(groups[rows])) + 1
            n_tuning = int(max(ends[ends <= n_tuning], default=0))
        return rows[:n_tuning], np.sort(rows[n_tuning:])

    def _splitter(self, n: int, groups: Index | None, *, are_alike: bool) -> Any:
        """One split of 80 to 20, folds of an integer, or the splitter given."""
        if self.cv is None and not self.shuffle:
            return check_cv([train_test_split(np.arange(n), test_size=HELD_OUT, shuffle=False)])
        if self.cv is None:
            splitter = ShuffleSplit if groups is None else GroupShuffleSplit
            return splitter(1, test_size=HELD_OUT, random_state=self._seed)
        if not isinstance(self.cv, Integral):
            return check_cv(self.cv)
        folds, is_mixed = (KFold, self.shuffle) if groups is None else (GroupKFold, self.shuffle and not are_alike)
        return folds(int(self.cv), shuffle=is_mixed, random_state=self._seed if is_mixed else None)

    def _calibrate(self, X: Any, y: Any, by: ArrayLike | None, groups: Any, *, reset: bool) -> None:
        if self._is_own_model() and isinstance(self.estimator_, list):
            msg = "calibrate needs one model, but fit has trained one per fold (cv is set); call fit with all rows."
            raise ValueError(msg)
        if not self._is_own_model():
            self.estimator_ = self._trained()
        target = self._targets(X, y)
        X = checked_table(self, X, reset=reset)
        self.__dict__.pop("_has_labels", None)
        labels, groups = self._labels(X, by), group_codes(groups, X)
        counted = self._counted("calibrate", X, target, groups)
        self._is_proven = counted.is_proven and self.shuffle
        model = self.estimator_
        if hasattr(model, "classes_"):
            self.classes_ = np.asarray(model.classes_)
        else:
            shape = np.shape(_asked(model, _safe_indexing(X, np.arange(1))))
            if len(shape) != 2:
                msg = f"estimator returns {shape} for one row; it has to return (n, n_classes) probabilities."
                raise ValueError(msg)
            self.classes_ = np.arange(shape[1])
        self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        n_tuning = int(TUNING * len(target)) if self._settings.conformity_score == "raps" else 0
        tuning, rest = self._apart(len(target), n_tuning, groups)
        self._learn_penalty(model, X, target, tuning)
        self._learn(X, target, labels, [model], [counted.kept(rest)])

    def _trained(self) -> Any:
        if not self._is_function():
            try:
                check_is_fitted(self.estimator)
            except NotFittedError as unfitted:
                msg = (
                    f"estimator is a {type(self.estimator).__name__} that is not fitted: call fit(X, y), "
                    "which trains a "
                    "clone of it, or fit the estimator first."
                )
                raise NotFittedError(msg) from unfitted
        return self.estimator

    def _probabilities(self, model: Any, X: Any) -> Array:
        """Probabilities (n, n_classes); 0 for a class that the model has not seen."""
        found = np.asarray(_asked(model, X), dtype=np.float64)
        own = np.asarray(getattr(model, "classes_", self.classes_))
        if found.shape != (_num_samples(X), len(own)):
            msg = (
                f"estimator returns probabilities of shape {found.shape} for {_num_samples(X)} rows; "
                "expected one column "
                f"for each of {len(own)} classes."
            )
            raise ValueError(msg)
        if not np.isfinite(found).all() or (found < 0.0).any():
            msg = "estimator returns probabilities that are negative or not finite. Mend it, or leave such rows out."
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
        place = self._places()
        unknown = sorted({label for label in np.unique(target).tolist() if label not in place}, key=str)
        if unknown:
            known = self.classes_.tolist()[:5]
            msg = f"y holds classes that the model does not know: {unknown[:5]!r}. It knows {known!r}."
            raise ValueError(msg)
        return np.array([place[label] for label in target.tolist()], np.intp)

    def _learn_penalty(self, model: Any, X: Any, target: NDArray[Any], rows: Index) -> None:
        self.penalty_ = Penalty()
        if self._settings.conformity_score == "raps" and len(rows):
            part = _safe_indexing(X, rows)
            found, codes = self._probabilities(model, part), self._codes(target[rows])
            self.penalty_ = chosen_penalty(found, codes, self._draws(part), float(self.confidence_level))

    def _learn(
        self,
        X: Any,
        target: NDArray[Any],
        labels: NDArray[Any] | None,
        models: list[Any],
        parts: list[Index],
        *,
        is_joined: bool = False,
    ) -> None:
        """Set everything that calibration is known by; scores of several models may be taken for those of one."""
        self._folds = []
        for model, rows in zip(models, parts, strict=True):
            part = _safe_indexing(X, rows)
            scores = SCORES[self._settings.conformity_score](
                self._probabilities(model, part), self._draws(part), self.penalty_
            )
            codes = self._codes(target[rows])
            own = codes if self._settings.is_by_class else None if labels is None else labels[rows]
            self._folds.append((scores[np.arange(len(rows)), codes], own))
        if is_joined:
            every, owners = zip(*self._folds, strict=True)
            self._folds = [(np.concatenate(every), None if owners[0] is None else np.concatenate(owners))]
        self._has_labels = labels is not None
        self._limits = limits = self._learned(float(self.confidence_level))
        self.categories_ = limits.categories()
        self.n_calibration_ = sum(len(scores) for scores, _ in self._folds)
        levels = [one.level for one in self.categories_] or [limits.promised(None)]
        self.guaranteed_level_ = float(np.min(levels))
        groups = list(limits.counts) or [None]
        ends, ranges = (np.array([part(group) for group in groups]) for part in (limits.limit, limits.coverage_range))
        self.limit_: Any = ends if self.categories_ else float(ends[0])
        self.coverage_range_ = ranges if self.categories_ else ranges[0]

    def _learned(self, level: float, like: Limits | None = None) -> Limits:
        is_by_class = self._settings.is_by_class
        groups = range(len(self.classes_)) if is_by_class else None
        names = self.classes_.tolist() if is_by_class else None
        settings = self._settings
        limits = Limits(self._folds, level, settings.guarantee, groups, names, like, is_proven=self._is_proven)
        limits.warn()
        return limits


def _asked(model: Any, X: Any) -> Any:
    """What an object or a function says of rows."""
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model(X)
