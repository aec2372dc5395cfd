"""`SetClassifier`: sets of classes that hold the true one as often as asked for."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, StrOptions

from pimeter.classification.conformity import SCORES
from pimeter.classification.set_training import TrainedSets
from pimeter.conformal.estimator import check_calibrated, is_function, is_trainable
from pimeter.conformal.guarantee import GUARANTEES, GuaranteeKind, rank_guarantee, too_few
from pimeter.conformal.quantile import ScoreQuantile
from pimeter.conformal.scores import TAILS
from pimeter.constraints import Level
from pimeter.coverage import warn_of_coverage
from pimeter.frames import frame_of, library_of
from pimeter.validation import one_level

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray
    from sklearn.utils import Tags

    from pimeter.conformal.scores import CalibrationScores
    from pimeter.protocols import Array, FeatureTable, Flags


class SetClassifier(ClassifierMixin, TrainedSets):
    """Sets of classes for any classifier, from its scores on rows that it was not trained on.

    If the calibration rows and a new row are exchangeable (such as independent draws from one source), the set holds
    the true class with the confidence level or more, on average over calibration sets and new rows. Sets are large
    where the classifier is unsure. They may be **empty** with ``conformity_score="lac"`` and with ``randomized=True``:
    no class fits the row as well as it should, and such sets are among those that may miss.

    Parameters
    ----------
    estimator : classifier, FrozenEstimator or callable
        The model, with ``predict_proba``. `fit` trains a clone; `calibrate` takes a fitted one as it is. A
        ``FrozenEstimator``, an object that only predicts and a function ``f(X)`` that returns probabilities are never
        trained; without ``classes_`` the classes are those of the columns, 0, 1, ...
    confidence_level : float, default=0.95
        Proportion of new rows whose set should hold the true class.
    conformity_score : {"lac", "aps", "raps"}, default="lac"
        How badly a class fits: 1 - its probability (smallest sets on average); the probability of all classes that are
        likelier (sets that follow how hard the row is, and always hold the likeliest class unless they are randomized);
        the same with a penalty for long sets, whose two constants come from 20 % of the calibration rows, which then
        do not calibrate (of few rows there may be no penalty: see `penalty_`).
    by : "class", column, callable or None, default=None
        Whom the guarantee is made to: all rows together; with "class" each class; else each category, of a column of X
        (a name, or a position in an array) or of a function of X. Categories may also be passed as `by` to each method.
    randomized : bool, default=False
        For "aps" and "raps": whether a random part of the class's own probability counts, in calibration and in
        prediction, so that coverage is not above the level by more than 1/(m + 1), if rows differ. The draw is made
        from `random_state` and the row itself: neither batch nor order matter, and equal rows have the same one.
    cv : int, splitter, iterable or None, default=None
        None: `fit` trains on 80 % of the rows and calibrates on the others, as it does with a splitter that makes one
        split, such as ``PredefinedSplit``. Otherwise CV+: all rows do both, in folds.
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
        The model that predicts; with several folds a list.
    limit_ : float or ndarray
        Largest score of a class in the set; infinite where rows are too few, so that the set is full; one for each of
        `categories_`. NaN with `cv`, where each new row has its own.
    guaranteed_level_ : float
        Coverage that is guaranteed: the confidence level, also where sets are full for want of rows; with `cv` ``2 p -
        1 - sqrt(2/n)`` if folds are equally large, also those of each class or category, and each model was trained on
        all rows outside of its fold, else NaN; with ``guarantee="approximate"`` that of the score below; NaN with
        copies of rows, of which a warning tells, and with `groups` beside `cv`, classes, categories or another
        guarantee than "marginal".
    guarantee_reason_ : str
        Why that is NaN, such as "some rows are copies of others"; empty where something is guaranteed.
    coverage_range_ : ndarray of shape (2,) or (n_categories, 2)
        5 % and 95 % points of the coverage of this calibration set, for scores without ties; with "approximate"
        of the rank below and of that above. NaN with `cv` and `groups`, for full sets, and for small categories, whose
        scores are shared.
    categories_ : list of CategoryLine
        Rows, guaranteed level and source for each class or category; else empty.
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
        "confidence_level": [Level()],
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
        estimator: object,
        *,
        confidence_level: float = 0.95,
        conformity_score: Literal["lac", "aps", "raps"] = "lac",
        by: Hashable | Callable[[Any], ArrayLike] | None = None,
        randomized: bool = False,
        cv: Any = None,
        shuffle: bool = True,
        guarantee: GuaranteeKind = "marginal",
        random_state: int | np.random.RandomState | None = None,
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

    def fit(
        self,
        X: FeatureTable,
        y: ArrayLike,
        *,
        by: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        **fit_params: Any,
    ) -> Self:
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
            Rows of one group, such as those of one patient, are never divided by a split. They may resemble each other,
            so that each group counts once: the set of a row of a new group holds its class as if groups were rows
            (hierarchical conformal prediction), but for `cv`, classes and categories, where `guaranteed_level_` is NaN.
            If the rows of each group are copies of one row, as with ``groups=duplicate_groups(X, y)``, each group
            calibrates once, and as much is guaranteed as without copies.
        **fit_params
            Passed to the estimator's `fit` alone; those with one value per row are split with the rows.

        Returns
        -------
        SetClassifier
            Itself; as it was before if anything is wrong with the input.
        """
        return self._trained_or_calibrated(X, y, by, groups, fit_params)

    def calibrate(
        self, X: FeatureTable, y: ArrayLike, *, by: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Self:
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
            Rows that belong together, of which each group counts once.

        Returns
        -------
        SetClassifier
            Itself; as it was before if anything is wrong with the input.
        """
        draft = self._draft()
        draft._calibrate(X, y, by, groups)
        return self._become(draft)

    def predict(self, X: FeatureTable) -> NDArray[Any]:
        """The likeliest class of each row."""
        found: NDArray[Any] = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[found])

    def predict_proba(self, X: FeatureTable) -> Array:
        """The model's own probabilities, (n, n_classes); with `cv` the mean of the models of all folds."""
        check_calibrated(self)
        X = self._same_table(X)
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
        check_calibrated(self)
        level = self._quantile.level
        if confidence_level is not None:
            level = one_level("confidence_level", confidence_level)
        given, X = X, self._same_table(X)
        labels = self._labels_of_new(X, by)
        quantile = self._quantile_at(level)
        scores = np.stack([self._class_scores(model, X) for model in self._models()])
        found = self._sets(quantile, scores, labels)
        if not as_frame:
            return found
        columns = {str(label): found[:, i] for i, label in enumerate(self.classes_.tolist())}
        table = frame_of(columns, library_of(given))
        if hasattr(given, "iloc"):
            table.index = given.index
        return table

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if not is_function(self.estimator):
            tags.classifier_tags = copy(get_tags(self.estimator).classifier_tags) or tags.classifier_tags
        tags.target_tags.multi_output = False
        tags.classifier_tags.multi_label = False
        return tags

    def _draft(self) -> Self:
        """A copy to work on, after a look at the settings."""
        self._validate_params()
        if not hasattr(self.estimator, "predict_proba") and not is_function(self.estimator):
            msg = (
                f"estimator {type(self.estimator).__name__} has no predict_proba, which sets are made from. Choose "
                "another, or wrap it in sklearn.calibration.CalibratedClassifierCV."
            )
            raise ValueError(msg)
        if self.cv is not None and self.guarantee != "marginal" and is_trainable(self.estimator):
            msg = (
                f"guarantee={self.guarantee!r} is about one calibration set, but cv makes folds; set cv=None, or "
                'guarantee="marginal".'
            )
            raise ValueError(msg)
        if self.randomized and self.conformity_score == "lac":
            msg = 'randomized=True has no meaning for conformity_score="lac", which draws nothing; use "aps" or "raps".'
            raise ValueError(msg)
        return super()._draft()

    def _learn(self, scores: CalibrationScores) -> None:
        """Set everything that calibration is known by."""
        super()._learn(scores)
        if self._is_by_class():
            names = self.classes_.tolist()
            self.categories_ = [one._replace(label=names[one.label]) for one in self.categories_]
        limits = [np.nan if scores.folds is not None else self._quantile.limit(line) for line in self._quantile.seen]
        self.limit_: Any = np.array(limits) if self.categories_ else float(limits[0])

    def _quantile_of(self, scores: CalibrationScores) -> ScoreQuantile:
        """The quantile of scores at the confidence level, for each class or category where these are asked for."""
        classes = range(len(self.classes_)) if self._is_by_class() else None
        level = float(self.confidence_level)
        return ScoreQuantile.in_categories(scores, TAILS["upper"], level, self.guarantee, expected=classes)

    def _warn_of_few(self, quantile: ScoreQuantile) -> None:
        """Say where scores are too few to leave any class out."""
        few = [quantile.weakest(line) for line in quantile.seen if not quantile.weakest(line).is_enough]
        if few:
            what, then = "categories", "their sets are full"
            if self._is_by_class():
                what, then = "classes", "that class is in every set"
            where = "" if quantile.table is None else f" of {len(few)} of {len(quantile.seen)} {what}"
            least = rank_guarantee(min(one.m for one in few), quantile.level, kind=quantile.kind)
            warn_of_coverage(f"{too_few(least, quantile.level, where)}: {then}.")

    def _labels_of_new(self, X: FeatureTable, by: ArrayLike | None) -> NDArray[Any] | None:
        """Category of each new row; or a ValueError if calibration had some and these have none, or the reverse."""
        had_some = self._scores_seen.labels is not None
        if self._settings["by"] is None and (by is not None) != had_some:
            msg = "by is given for new rows, but calibration had none: pass it to fit or calibrate, too."
            if had_some:
                msg = "by is missing: calibration had a category per row, so new rows need one, too. Pass by=..."
            raise ValueError(msg)
        return self._categories_of(X, by)

    def _sets(self, quantile: ScoreQuantile, scores: Array, labels: NDArray[Any] | None) -> Flags:
        """Sets (n, n_classes) from scores of all models, (models, n, n_classes)."""
        shape = scores.shape[1:]
        if quantile.table is None:
            lines = np.zeros(shape, np.intp)
        elif labels is None:
            lines = np.broadcast_to(np.array(quantile.table.lines, np.intp), shape)
        else:
            of_rows = quantile.lines(labels)
            assert of_rows is not None
            lines = np.broadcast_to(of_rows[:, None], shape)
        if quantile.scores.folds is None:
            limits = np.array([quantile.limit(line) for line in range(len(quantile.members))])
            return np.asarray(scores[0] <= limits[lines])
        found = np.empty(shape, bool)
        for line in np.unique(lines).tolist():
            found[lines == line] = quantile.fold_holds(line, scores[:, lines == line])
        return found
