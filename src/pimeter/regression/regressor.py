"""`IntervalRegressor`: any model and rows it was not trained on become prediction intervals."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from pimeter.conformal.estimator import check_calibrated, is_trainable
from pimeter.conformal.guarantee import GUARANTEES, GuaranteeKind
from pimeter.conformal.scores import TAILS
from pimeter.constraints import Level
from pimeter.frames import refuse_other_orders
from pimeter.regression.answers import IntervalAnswers
from pimeter.regression.frames import interval_frame
from pimeter.regression.shift import ShiftWeights, effective_size, importance_weights
from pimeter.regression.training import WIDTHS
from pimeter.regression.width import Width, write_bounds
from pimeter.validation import check_limits, one_or_more_levels

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pimeter.protocols import Array, FeatureTable


class IntervalRegressor(RegressorMixin, IntervalAnswers):
    """Prediction intervals for any regressor, from residuals on rows that it was not trained on: conformal prediction.

    Nothing about the model is assumed. If calibration rows and a new row are exchangeable (such as independent draws),
    the interval covers the new target with the confidence level or more, on average over calibration sets and rows.

    Parameters
    ----------
    estimator : regressor, FrozenEstimator, callable or list of regressors
        The model. `fit` trains a clone of a scikit-learn regressor; `calibrate` takes a fitted one as it is. A
        ``FrozenEstimator``, an object that only predicts and a function ``f(X)`` are never trained, and the latter two
        are kept by reference through ``clone``; so are trained torch modules, Keras models, boosters of XGBoost and
        LightGBM, results of statsmodels and sessions of ONNX Runtime. A list holds fitted regressors for quantiles.
    confidence_level : float, default=0.95
        Proportion of new targets that intervals should cover, between 0 and 1.
    width : {"constant", "scaled", "grouped", "local", "quantile", "auto", "estimator"} or Width, default="constant"
        How widths follow the rows: not at all; residuals normalised by a learned scale (`ScaledWidth`); scores of their
        own for each category (`GroupedWidth`, Mondrian); in units of a quantile of the residuals of rows like each
        (`LocalWidth`); a band between learned quantiles (`QuantileWidth`, conformalised quantile regression); several
        combined, by weights learned on rows that do not calibrate (`AutoWidth`); the intervals, quantiles or standard
        deviations that the model predicts itself (`EstimatorWidth`); or a `Width` of your own.
    tails : {"symmetric", "equal", "sided", "lower", "upper"}, default="symmetric"
        ``[f - r, f + r]`` from absolute residuals; signed residuals with half of the misses in either tail; the paper's
        two margins, each sign separately at the confidence level; one bound, the other `y_min`, `y_max` or infinite.
    cv : int, splitter, iterable or None, default=None
        None: `fit` trains on 80 % of the rows and calibrates on the others, as it does with a splitter that makes one
        split, such as ``PredefinedSplit``. Otherwise CV+: all rows do both, in folds. A splitter whose test parts
        overlap, such as bootstrap resamples with the rows they leave out, gives jackknife+-after-bootstrap. With one
        that leaves out later rows than it trains on, such as ``TimeSeriesSplit``, each of these rows is judged by a
        model of its past, and one more model, of all rows, predicts those to come (of as many of the last rows as the
        last split trained on, if it does not train on the first row).
    shuffle : bool, default=True
        Whether rows are shuffled before they are split. False, for rows in the order of time: with ``cv=None`` the
        last 20 % calibrate, an integer `cv` makes folds of rows that follow each other, and in `calibrate` a width
        learns on the first half. Then, and with ``TimeSeriesSplit``, `guaranteed_level_` is NaN: that residuals to come
        are like those of the past is an assumption about the series.
    guarantee : {"marginal", "training-conditional", "approximate"}, default="marginal"
        "marginal": the margin is one of the scores, that of rank ``ceil((m + 1) p)``, without smoothing.
        "training-conditional": the least rank that covers p with 95 % confidence for the calibration set at hand.
        "approximate": the neuron, smoothed, between the two scores next to rank ``(m + 1) p``; never wider than
        "marginal", its mean coverage within 1/(m + 1) of p (with equal tails twice that).
    joint : bool, default=False
        Whether intervals should cover all outputs of a row at once, by the largest of their scores, or each by itself.
    y_min, y_max : float or None, default=None
        Least and largest possible target; intervals are cut there.
    n_jobs : int or None, default=None
        Folds that are trained, and trees of a width that are grown, at the same time.
    random_state : int, RandomState or None, default=None
        Chooses the split, the folds of an integer `cv`, and the half that a width learns on.
    verbose : int, default=0
        1: `fit` prints a line for each model and width that is done. If interrupted, the estimator stays as it was.

    Attributes
    ----------
    estimator_ : object
        The model that predicts; with several folds a list.
    width_ : object
        The width with what it learned; with several folds a list.
    guaranteed_level_ : float
        Coverage that is guaranteed, the least over outputs and the categories seen in calibration: the confidence
        level; with too few scores what they can guarantee; with `cv` ``2 p - 1 - sqrt(2/n)`` (in practice about p, if
        the model hardly changes when a fold is left out) if each row is left out once, in folds of equal size, by a
        model of all rows outside of its fold; with ``guarantee="approximate"`` that of the score below; NaN where
        nothing is, as with estimated weights (`ShiftWeights`) and with copies of rows, of which a warning tells
        (`duplicate_groups` says which rows are equal, `pimeter.duplicates.copies` when that is not due to chance). With
        unequal weights that are a known ratio it holds if `predict_interval` is given the weights of the new rows, less
        the fraction of those too heavy for the calibration rows.
    guarantee_reason_ : str
        Why that is NaN, such as "some rows are copies of others"; empty where something is guaranteed.
    guaranteed_ : bool
        Whether that is the confidence level.
    coverage_range_ : ndarray of shape (2,) or, one for each line of `categories_`, (n_lines, 2)
        5 % and 95 % points of the coverage of this calibration set, by the Beta distribution of ranks (scores without
        ties; with ties coverage is higher); with ``guarantee="approximate"`` of the rank below and of that above. NaN
        with `cv`, `groups`, unequal weights, sided tails, and equal tails of `joint`, where no such distribution is
        known, and for small categories, whose scores are shared.
    margin_ : ndarray of shape ([n_lines,] [n_outputs,] 2)
        How far bounds lie below and above the prediction, in units of the scale; beyond the bounds of a band of
        quantiles, where it may be negative; with `cv` that of the out-of-fold scores.
    categories_ : list of CategoryLine
        Label, rows, guaranteed level, source of its scores ("own" or "shared") and a note for ``width="grouped"``; else
        empty. The last line is for all categories never seen in calibration: they are covered together with the small
        ones, and nothing is guaranteed to them by themselves (NaN). A frame library makes a table of it, such as
        ``pandas.DataFrame(model.categories_)``.
    n_calibration_ : int
        Number of calibration rows; of groups, if these are copies of one row each.
    n_features_in_ : int
        Number of columns of X, if it has columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns of X, if they have names.

    See Also
    --------
    QuantileNeuron : The smoothed quantile of errors.
    duplicate_groups : Groups of equal rows, for `fit` and `calibrate`.
    rows_needed : How many rows to hold out.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from pimeter import IntervalRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(1000, 3))
    >>> y = X @ [1.0, 2.0, 3.0] + rng.normal(scale=0.1, size=1000)
    >>> model = IntervalRegressor(LinearRegression(), confidence_level=0.9, random_state=0).fit(X, y)
    >>> model.predict_interval(X[:2]).round(2)
    array([[1.14, 1.47],
           [4.22, 4.55]])
    >>> model.guaranteed_level_, model.coverage_range_.round(3)
    (0.9, array([0.864, 0.933]))

    A model that is already trained, even a mere function, only needs rows that it has not seen:

    >>> trained = IntervalRegressor(lambda X: X @ [1.0, 2.0, 3.0], tails="upper").calibrate(X, y)
    >>> trained.predict_interval(X[:1]).round(2)
    array([[-inf, 1.47]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["predict"]), callable, HasMethods(["run", "get_inputs"]), list, tuple],
        "confidence_level": [Level()],
        "width": [StrOptions(set(WIDTHS)), Width],
        "tails": [StrOptions(set(TAILS))],
        "cv": ["cv_object"],
        "shuffle": ["boolean"],
        "guarantee": [StrOptions(set(GUARANTEES))],
        "joint": ["boolean"],
        "y_min": [Interval(Real, None, None, closed="neither"), None],
        "y_max": [Interval(Real, None, None, closed="neither"), None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        estimator: object,
        *,
        confidence_level: float = 0.95,
        width: str | Width = "constant",
        tails: Literal["symmetric", "equal", "sided", "lower", "upper"] = "symmetric",
        cv: Any = None,
        shuffle: bool = True,
        guarantee: GuaranteeKind = "marginal",
        joint: bool = False,
        y_min: float | None = None,
        y_max: float | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.confidence_level = confidence_level
        self.width = width
        self.tails = tails
        self.cv = cv
        self.shuffle = shuffle
        self.guarantee = guarantee
        self.joint = joint
        self.y_min = y_min
        self.y_max = y_max
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

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
        y : array-like of shape (n,) or (n, k)
            Targets; each column has its own scores, and its own guarantee.
        by : array-like of shape (n,), optional
            Categories of the rows, for ``width="grouped"``.
        groups : array-like of shape (n,), optional
            Rows of one group, such as those of one patient, are never divided by a split, as in scikit-learn. They may
            resemble each other, so that each group counts once: a row of a new group is covered as if groups were rows
            (hierarchical conformal prediction), but for `cv`, categories and weights, where `guaranteed_level_` is NaN.
            If the rows of each group are copies of one row, as with ``groups=duplicate_groups(X, y)``, each group
            calibrates once, and as much is guaranteed as without copies.
        **fit_params
            Passed to the estimator's `fit` alone; those with one value per row are split with the rows.

        Returns
        -------
        IntervalRegressor
            Itself.
        """
        estimated = [name for name, value in fit_params.items() if isinstance(value, ShiftWeights)]
        if estimated:
            msg = (
                f"{estimated[0]} of fit trains the model, but shift_weights weighs rows that calibrate: fit the model "
                f"first, then give them to calibrate. To train with them, give their attribute calibration."
            )
            raise ValueError(msg)
        return self._trained_or_calibrated(X, y, by, groups, fit_params)

    def calibrate(
        self,
        X: FeatureTable,
        y: ArrayLike,
        *,
        by: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        importance_weight: ArrayLike | ShiftWeights | None = None,
    ) -> Self:
        """Calibrate a trained model on rows that it was not trained on; replaces an earlier calibration.

        A width that learns takes half of the rows for itself, a random one or, with ``shuffle=False`` and without
        `groups`, the first; the other half calibrates.

        Parameters
        ----------
        X : array, frame or whatever the estimator takes, of m rows
            Features.
        y : array-like of shape (m,) or (m, k)
            Targets.
        by : array-like of shape (m,), optional
            Categories of the rows, for ``width="grouped"``.
        groups : array-like of shape (m,), optional
            Rows that belong together: they are not divided when a width takes its half, and each group counts once.
        importance_weight : array-like of shape (m,) or ShiftWeights, optional
            Importance of the rows: how much likelier each is where intervals are needed than here. Only their ratios
            matter; m becomes ``(sum w)^2 / sum w^2``. An array is taken for a ratio that is *known*: intervals of new
            rows with their own weights then cover as guaranteed (Tibshirani et al. 2019). Of the estimated ratio of
            `shift_weights`, given as it is, nothing is known for certain: `guaranteed_level_` is NaN.

        Returns
        -------
        IntervalRegressor
            Itself; as it was before if anything is wrong with the input.
        """
        draft = self._draft()
        refuse_other_orders({"X": X, "y": y, "importance_weight": importance_weight})
        weights = importance_weights(importance_weight, X)
        draft._calibrate(X, y, by, groups, weights, effective_size(importance_weight))
        return self._become(draft)

    def update(
        self,
        X: FeatureTable,
        y: ArrayLike,
        *,
        by: ArrayLike | None = None,
        importance_weight: ArrayLike | ShiftWeights | None = None,
    ) -> Self:
        """Add rows to the calibration set, without training anything.

        Parameters
        ----------
        X : array, frame or whatever the estimator takes, of m rows
            Features of rows that neither trained the model nor calibrate yet.
        y : array-like of shape (m,) or (m, k)
            Targets, of as many outputs as before.
        by : array-like of shape (m,), optional
            Categories of the rows, for ``width="grouped"``.
        importance_weight : array-like of shape (m,) or ShiftWeights, optional
            How much likelier each row is where intervals are needed than here, in the units of `calibrate`; rows
            without a weight weigh 1. Once some weights are estimated, nothing is guaranteed.

        Returns
        -------
        IntervalRegressor
            Itself; as it was before if anything is wrong with the input.
        """
        check_calibrated(self)
        draft = self._draft()
        draft._update(X, y, by, importance_weight)
        return self._become(draft)

    def predict(self, X: FeatureTable) -> Array:
        """What the model itself predicts; with `cv` the mean of the models of all folds.

        Parameters
        ----------
        X : array, frame or whatever the estimator takes, of n rows
            Features.

        Returns
        -------
        ndarray of shape (n,) or (n, k)
        """
        check_calibrated(self)
        X = self._same_table(X)
        return self._squeezed(self._predictions(X).mean(axis=0))

    def predict_interval(
        self,
        X: FeatureTable,
        confidence_level: ArrayLike | None = None,
        *,
        by: ArrayLike | None = None,
        importance_weight: ArrayLike | ShiftWeights | None = None,
        as_frame: bool = False,
    ) -> Any:
        """Prediction intervals.

        Parameters
        ----------
        X : array, frame or whatever the estimator takes, of n rows
            Features.
        confidence_level : float or array-like of shape (L,), optional
            Other levels than that of the estimator. The same categories have scores of their own at all of them, so
            that intervals of a higher level are never narrower.
        by : array-like of shape (n,), optional
            Categories of the rows, for ``width="grouped"``.
        importance_weight : array-like of shape (n,) or ShiftWeights, optional
            Importance of the new rows, in the units of `calibrate`: a row that is rare in calibration gets a wider
            interval. None: rows of average importance. Weights of a part of the rows that `shift_weights` saw are that
            part of its `new`.
        as_frame : bool, default=False
            A frame of X's library (pandas for arrays) with columns prediction, lower and upper; for several outputs or
            levels in long form, with columns row, output and level; with `importance_weight` also guaranteed_level: NaN
            for all rows if weights are estimated. If they are known, NaN for rows so heavy that their interval, which
            goes as far as the largest score, ought to be infinite, and if these are a fraction h of the rows at hand
            ``(p - h) / (1 - h)`` for the others.

        Returns
        -------
        ndarray of shape (n[, k], 2[, L]) or frame
            Lower and upper bounds.
        """
        check_calibrated(self)
        asked = self._quantile.level if confidence_level is None else confidence_level
        levels = one_or_more_levels("confidence_level", asked)
        given, X = X, self._same_table(X)
        labels = self._widths()[0].labels(X, by)
        importance = None if importance_weight is None else importance_weights(importance_weight, X, are_new=True)
        if importance is not None and self._scores_seen.importance is None:
            msg = "importance_weight is given for new rows, but calibration had none: pass it to calibrate, too."
            raise ValueError(msg)
        prediction = self._predictions(X)
        shape = self._shape(X, prediction)
        out = np.empty((*prediction.shape[1:], 2, levels.size))
        guaranteed = np.full((len(out), levels.size), np.nan)
        for i, level in enumerate(levels.ravel().tolist()):
            quantile = self._quantile_at(level).for_rows(labels)
            lines = quantile.lines(labels)
            write_bounds(quantile, prediction, shape, lines, importance, out[..., i])
            if importance is not None:
                are_estimated = isinstance(importance_weight, ShiftWeights)
                guaranteed[:, i] = quantile.guaranteed_to(lines, importance, are_estimated=are_estimated)
        if np.isfinite(self._cuts).any():
            np.clip(out, *self._cuts, out=out)
        if as_frame:
            return interval_frame(
                given,
                prediction.mean(axis=0),
                out,
                levels=None if levels.ndim == 0 else levels,
                has_outputs=self._n_outputs is not None,
                guaranteed=None if importance is None else guaranteed,
            )
        return self._squeezed(out if levels.ndim else out[..., 0])

    def _draft(self) -> Self:
        """A copy to work on, after a look at the settings."""
        self._validate_params()
        if self.guarantee == "training-conditional" and self.cv is not None and is_trainable(self.estimator):
            msg = 'guarantee="training-conditional" is about one calibration set, but cv makes folds; set cv=None.'
            raise ValueError(msg)
        check_limits(self.y_min, self.y_max)
        if self.joint and TAILS[self.tails].is_by_sign:
            msg = 'joint=True looks at all outputs at once, which have no common sign; tails="sided" needs one.'
            raise ValueError(msg)
        return super()._draft()
