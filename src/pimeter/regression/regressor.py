"""`IntervalRegressor`: any model and rows it was not trained on become prediction intervals."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from pimeter.arrays import check_finite, real_array
from pimeter.conformal.estimator import is_function, is_trainable
from pimeter.conformal.groups import Group
from pimeter.conformal.guarantee import COPIES, GUARANTEES, GuaranteeKind, rank_guarantee, too_few
from pimeter.conformal.quantile import NEVER_SEEN, ScoreQuantile
from pimeter.conformal.tails import TAILS
from pimeter.coverage import percent, warn_of_coverage
from pimeter.duplicates import UNPROVEN, row_keys
from pimeter.regression.bounds import cdf_values, guaranteed_levels, move_beyond, write_bounds
from pimeter.regression.frames import interval_frame
from pimeter.regression.joint import JointWidth
from pimeter.regression.shift import ShiftWeights, effective_size, importance_weights
from pimeter.regression.training import REMEDY, WIDTHS, TrainedIntervals, predictions
from pimeter.regression.width import ConstantWidth, IntervalShape, Width

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from pimeter.conformal.scores import CalibrationScores

    Array = NDArray[np.float64]

ENOUGH_ESTIMATED = 5  # times the rows that a guarantee takes: with fewer effective ones estimated weights may fail
LABEL_OF_UNSEEN = "(never seen)"
TOGETHER = "guaranteed to all categories that share and those never seen together, to none of them by itself"
UNSEEN_ARE_UNKNOWN = (
    "no small ones to learn from: their intervals go as far as the largest score, and nothing is guaranteed"
)


class IntervalRegressor(RegressorMixin, TrainedIntervals):
    """Prediction intervals for any regressor, from its errors on rows that it was not trained on.

    Nothing about the model is assumed. If the calibration rows and a new row are exchangeable (such as independent
    draws from one source), the interval covers the new target with the confidence level or more, on average over
    calibration sets and new rows.

    Parameters
    ----------
    estimator : regressor, FrozenEstimator or callable
        The model. `fit` trains a clone of a scikit-learn regressor; `calibrate` takes a fitted one as it is. A
        ``FrozenEstimator``, an object that only predicts and a function ``f(X)`` are never trained, and the latter two
        are kept by reference through ``clone``.
    confidence_level : float, default=0.95
        Share of new targets that intervals shall cover, between 0 and 1.
    width : {"constant", "scaled", "grouped", "local", "quantile", "auto"} or width object, default="constant"
        How widths follow the rows: one neuron in all; one on errors divided by a learned scale (`ScaledWidth`); one
        per category (`GroupedWidth`); one per prediction, on the errors of rows like it (`LocalWidth`); one that moves
        a band between learned quantiles (`QuantileWidth`); whichever wins on rows that do not calibrate, without
        categories (`AutoWidth`).
    tails : {"symmetric", "equal", "sided", "lower", "upper"}, default="symmetric"
        ``[f - r, f + r]`` with one neuron on absolute errors; signed errors with half of the misses at either end; the
        paper's two neurons, each sign separately at the confidence level; one bound, the other being `y_min` or
        `y_max` or infinite.
    cv : int, splitter, iterable or None, default=None
        None: `fit` trains on 80 % of the rows and calibrates on the others. Otherwise CV+: all rows do both, in folds.
        A splitter whose test parts overlap, such as bootstrap resamples with the rows they leave out, gives
        jackknife+-after-bootstrap. With one that leaves out later rows than it trains on, such as ``TimeSeriesSplit``,
        each of these rows is judged by a model of its past, and one more model, of all rows, predicts those to come
        (of as many of the last rows as the last split trained on, if it does not train on the first row).
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
        Whether intervals shall cover all outputs of a row at once, by one more neuron on the error that reaches
        farthest; otherwise each output separately.
    y_min, y_max : float or None, default=None
        Least and largest possible target; intervals are cut there.
    n_jobs : int or None, default=None
        Folds that are trained at the same time.
    random_state : int, RandomState or None, default=None
        Chooses the split, the folds of an integer `cv`, and the half that a width learns on.

    Attributes
    ----------
    estimator_ : object
        The model that predicts; with `cv` a list, one for each fold.
    width_ : object
        The width with what it learned; with `cv` a list.
    guaranteed_level_ : float
        Coverage that is promised, the least over outputs and the categories seen in calibration: the confidence level;
        with too few errors what they can promise; with `cv` ``2 p - 1 - sqrt(2/n)`` (in practice about p, if the model
        hardly changes when a fold is left out) if each row is left out once, in folds of equal size; with
        ``guarantee="approximate"`` that of the error below; NaN where nothing is, as with estimated weights
        (`ShiftWeights`) and with copies of rows, of which a warning tells (`duplicate_groups` says which rows are
        equal, `pimeter.duplicates.copies` when that is no chance). With unequal weights that are a known ratio it holds
        if `predict_interval` is given the weights of the new rows, less the share of those too heavy for the
        calibration rows.
    guaranteed_ : bool
        Whether that is the confidence level.
    coverage_range_ : ndarray of shape (2,) or, one for each line of `categories_`, (n_lines, 2)
        5 % and 95 % points of the coverage of this calibration set, by the Beta law of ranks (errors without ties; with
        ties coverage is higher); with ``guarantee="approximate"`` of the rank below and of that above. NaN with `cv`
        and for sided tails, `groups` and unequal weights, where no such law is known.
    margin_ : ndarray of shape ([n_lines,] [n_outputs,] 2)
        How far intervals reach below and above the prediction, in units of the scale; beyond the ends of a band of
        quantiles, where it may be negative; with `cv` that of the out-of-fold errors.
    categories_ : list of Category
        Category, rows, guaranteed level, source of its neuron ("own" or "shared") and a note for ``width="grouped"``;
        else empty. The last line is for all categories never seen in calibration: they are covered together with the
        small ones that share, and nothing is guaranteed to them by themselves (NaN). A frame library makes a table of
        it, such as ``pandas.DataFrame(model.categories_)``.
    n_calibration_ : int
        Number of calibration rows; of groups, if these are copies of one row each.
    n_features_in_ : int
        Number of columns of X, if it has columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns of X, if they have names.

    See Also
    --------
    QuantileNeuron : The neuron itself, on errors.
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
        "estimator": [HasMethods(["predict"]), callable],
        "confidence_level": [Interval(Real, 0, 1, closed="neither")],
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
    }

    def __init__(
        self,
        estimator: Any,
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
        random_state: Any = None,
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

    def fit(self, X: Any, y: ArrayLike, *, by: ArrayLike | None = None, groups: Any = None, **fit_params: Any) -> Self:
        """Train the model and calibrate it on rows that it was not trained on.

        Parameters
        ----------
        X : array, frame or whatever the estimator takes, of n rows
            Features.
        y : array-like of shape (n,) or (n, k)
            Targets; each column has its own neuron, and its own promise.
        by : array-like of shape (n,), optional
            Categories of the rows, for ``width="grouped"``.
        groups : array-like of shape (n,), optional
            Rows of one group, such as those of one patient, are never parted by a split, as in scikit-learn. They may
            be alike, so that nothing is promised to rows of new groups: `guaranteed_level_` is NaN, and a warning says
            so where groups are fewer than errors would have to be. If the rows of each group are copies of one row, as
            with ``groups=duplicate_groups(X, y)``, each group calibrates once, and as much is promised as without
            copies.
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
        X: Any,
        y: ArrayLike,
        *,
        by: ArrayLike | None = None,
        groups: Any = None,
        sample_weight: ArrayLike | ShiftWeights | None = None,
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
            As in `fit`: rows of one group are not parted when a width takes its half, and copies of a row count once.
        sample_weight : array-like of shape (m,) or ShiftWeights, optional
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
        draft._calibrate(X, y, by, groups, is_first=not self._has_own_model(), sample_weight=sample_weight)
        return self._become(draft)

    def update(
        self,
        X: Any,
        y: ArrayLike,
        *,
        by: ArrayLike | None = None,
        sample_weight: ArrayLike | ShiftWeights | None = None,
    ) -> Self:
        """Add rows to the calibration set, without training anything.

        Parameters
        ----------
        X, y, by, sample_weight
            As in `calibrate`; rows without a weight weigh 1. Once some weights are estimated, nothing is guaranteed.

        Returns
        -------
        IntervalRegressor
            Itself; as it was before if anything is wrong with the input.
        """
        check_is_fitted(self)
        if self._scores_seen.folds is not None:
            msg = "update cannot add rows to folds that are already trained (cv is set); call fit with all rows."
            raise ValueError(msg)
        draft = self._draft()
        if self._shaped_by() != self._made_by:
            msg = "width, tails or joint were changed after calibration, and update learns no width; call calibrate."
            raise ValueError(msg)
        target = draft._targets(X, y)
        (low, high), (lower, upper) = self._cuts, draft._cuts_of(target)
        draft._cuts = (min(low, lower), max(high, upper))
        X = draft._same_table(X)
        if (None if target.ndim == 1 else target.shape[1]) != self._n_outputs:
            msg = f"y has shape {target.shape}; expected as many outputs as in calibration."
            raise ValueError(msg)
        importance = importance_weights(sample_weight, X)
        new = replace(
            draft._scores(draft.estimator_, draft.width_, X, target),
            labels=draft.width_.labels(X, by),
            importance=importance,
            keys=row_keys(X, target),
            effective_size=effective_size(sample_weight),
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
        draft._learn(scores)
        return self._become(draft)

    def predict(self, X: Any) -> Array:
        """What the model itself predicts; with `cv` the mean of the models of all folds.

        Parameters
        ----------
        X : array, frame or whatever the estimator takes, of n rows
            Features.

        Returns
        -------
        ndarray of shape (n,) or (n, k)
        """
        check_is_fitted(self)
        X = self._same_table(X)
        return self._squeezed(self._predictions(X).mean(axis=0))

    def predict_interval(
        self,
        X: Any,
        confidence_level: ArrayLike | None = None,
        *,
        by: ArrayLike | None = None,
        sample_weight: ArrayLike | ShiftWeights | None = None,
        as_frame: bool = False,
    ) -> Any:
        """Prediction intervals.

        Parameters
        ----------
        X : array, frame or whatever the estimator takes, of n rows
            Features.
        confidence_level : float or array-like of shape (L,), optional
            Other levels than that of the estimator. The same categories have a neuron of their own at all of them, so
            that intervals of a higher level are never narrower.
        by : array-like of shape (n,), optional
            Categories of the rows, for ``width="grouped"``.
        sample_weight : array-like of shape (n,) or ShiftWeights, optional
            Importance of the new rows, in the units of `calibrate`: a row that is rare in calibration gets a wider
            interval. None: rows of average importance. Weights of a part of the rows that `shift_weights` saw are that
            part of its `new`.
        as_frame : bool, default=False
            A frame of X's library (pandas for arrays) with columns prediction, lower and upper; for several outputs or
            levels in long form, with columns row, output and level; with `sample_weight` also guaranteed_level: NaN
            for all rows if weights are estimated. If they are known, NaN for rows so heavy that their interval, which
            reaches as far as the largest error, ought to be infinite, and if these are a share h of the rows at hand
            ``(p - h) / (1 - h)`` for the others.

        Returns
        -------
        ndarray of shape (n[, k], 2[, L]) or frame
            Lower and upper ends.
        """
        check_is_fitted(self)
        levels = _levels("confidence_level", self._quantile.level if confidence_level is None else confidence_level)
        given, X = X, self._same_table(X)
        labels = self._widths()[0].labels(X, by)
        importance = importance_weights(sample_weight, X, are_new=True)
        if importance is not None and self._scores_seen.importance is None:
            msg = "sample_weight is given for new rows, but calibration had none: pass it to calibrate, too."
            raise ValueError(msg)
        prediction = self._predictions(X)
        shape = self._shape(X, prediction)
        out = np.empty((*prediction.shape[1:], 2, levels.size))
        guaranteed = np.full((len(out), levels.size), np.nan)
        for i, level in enumerate(levels.ravel().tolist()):
            quantile = self._quantile if level == self._quantile.level else self._quantile_at(level)
            lines = quantile.lines(labels, UNSEEN_ARE_UNKNOWN)
            self._write_bounds(quantile, prediction, shape, lines, importance, out[..., i])
            if importance is not None:
                guaranteed[:, i] = guaranteed_levels(quantile, lines, importance)
        if isinstance(sample_weight, ShiftWeights):
            guaranteed[:] = np.nan
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

    def predict_quantile(self, X: Any, q: ArrayLike, *, by: ArrayLike | None = None) -> Array:
        """Quantiles of the target's distribution, from signed errors; after weights, of rows of average importance.

        Each is the bound of a one-sided interval: a share q of targets or more lies below it for q of .5 and more, a
        share 1 - q or more above it for a smaller one, as `guarantee` says. So it is the upper end of ``tails="upper"``
        at level q, or the lower end of ``tails="lower"`` at level 1 - q, and the quantiles at (1 - p)/2 and (1 + p)/2
        are the ends of ``tails="equal"`` at level p (not with ``guarantee="training-conditional"`` or `joint`, which
        look at both ends or all outputs at once), to the last bit or the next float beyond: `predict_cdf` there is q or
        more for q of .5 and more, q or less for a smaller one, if there are enough rows for the level and `guarantee`
        is not "approximate". A band of quantiles is not moved here, as it is in `predict_interval`, but stretched:
        widths "quantile" and, with signed tails, "local".

        Parameters
        ----------
        X : array, frame or whatever the estimator takes, of n rows
            Features.
        q : float or array-like of shape (L,)
            Levels between 0 and 1. Quantiles of a higher level are never lower.
        by : array-like of shape (n,), optional
            Categories of the rows, for ``width="grouped"``.

        Returns
        -------
        ndarray of shape (n[, k][, L])
        """
        check_is_fitted(self)
        levels = _levels("q", q)
        X = self._same_table(X)
        labels = self._widths()[0].labels(X, by)
        prediction = self._predictions(X)
        band = self._shape(X, prediction)
        prediction, shape = band.middle(prediction), band.without_band()
        out = np.empty((*prediction.shape[1:], levels.size))
        both = np.empty((*out.shape[:2], 2))
        for i, level in enumerate(levels.ravel().tolist()):
            side = int(level >= 0.5)
            quantile = self._one_sided(max(level, 1.0 - level), "upper" if side else "lower")
            _warn_of_few_scores(quantile)
            lines = quantile.lines(labels, UNSEEN_ARE_UNKNOWN)
            self._write_bounds(quantile, prediction, shape, lines, None, both)
            out[..., i] = both[..., side]
            move_beyond(quantile, prediction, shape, lines, out[..., i], side)
        np.clip(out, *self._cuts, out=out)
        return self._squeezed(out if levels.ndim else out[..., 0])

    def predict_cdf(self, X: Any, y: ArrayLike, *, by: ArrayLike | None = None) -> Array:
        """Probability that the target lies below y, from signed errors; after weights, in rows of average importance.

        Of m calibration errors, those less than that of y count 1 and equal ones 1/2, as does the new row itself, out
        of m + 1. Of observed targets these are p-values: for exchangeable rows without ties they are spread evenly
        between 0 and 1, so that ``F + 1/(2m + 2) <= a`` has at most probability a.

        Parameters
        ----------
        X : array, frame or whatever the estimator takes, of n rows
            Features.
        y : float or array-like of shape (n,) or (n, g)
            Where to ask: at one value for all rows, at one for each row, or at g for each row. For k outputs of shape
            (n, k) or (n, k, g).
        by : array-like of shape (n,), optional
            Categories of the rows, for ``width="grouped"``.

        Returns
        -------
        ndarray of the shape of y; for a scalar (n,) or (n, k)
        """
        check_is_fitted(self)
        X = self._same_table(X)
        labels = self._widths()[0].labels(X, by)
        prediction = self._predictions(X)
        band = self._shape(X, prediction)
        prediction, shape = band.middle(prediction), band.without_band()
        size = prediction.shape[1:]
        asked = _places(y, size if self._n_outputs is not None else size[:1])
        quantile = self._one_sided(self._quantile.level, "upper")
        table = asked.reshape(*size, -1)
        found = cdf_values(quantile, prediction, shape, quantile.lines(labels, UNSEEN_ARE_UNKNOWN), table)
        low, high = self._cuts
        found[table < low] = 0.0
        found[table >= high] = 1.0
        return found.reshape(asked.shape)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_scores_seen")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        width = self._width() if isinstance(self.width, Width) or self.width in WIDTHS else ConstantWidth()
        if not is_function(self.estimator):
            inner = get_tags(self.estimator)
            tags.input_tags = copy(inner.input_tags)
            tags.target_tags.multi_output = inner.target_tags.multi_output
            tags.target_tags.positive_only = inner.target_tags.positive_only
        tags.input_tags.sparse = tags.input_tags.sparse and width.takes_sparse
        return tags

    def _draft(self) -> Self:
        """A copy to work on, after a look at the settings."""
        self._validate_params()
        if self.guarantee == "training-conditional" and self.cv is not None and is_trainable(self.estimator):
            msg = 'guarantee="training-conditional" is about one calibration set, but cv makes folds; set cv=None.'
            raise ValueError(msg)
        if self.y_min is not None and self.y_max is not None and self.y_min >= self.y_max:
            msg = f"y_min={self.y_min} must be less than y_max={self.y_max}."
            raise ValueError(msg)
        if self.joint and TAILS[self.tails].is_by_sign:
            msg = 'joint=True looks at all outputs at once, which have no common sign; tails="sided" needs one.'
            raise ValueError(msg)
        return super()._draft()

    def _widths(self) -> list[Width]:
        """The widths that have learned, one for each model."""
        return self.width_ if isinstance(self.width_, list) else [self.width_]

    def _shaped_by(self) -> tuple[str, str, bool]:
        """Settings that a width is learned with."""
        return repr(self.width), self.tails, self.joint

    def _quantile_at(self, level: float) -> ScoreQuantile:
        """Quantiles at another level, with the settings and groups of calibration; warns of too few scores."""
        quantile, width = self._quantile, self._widths()[0]
        found = ScoreQuantile.of(
            quantile.scores, quantile.tails, level, quantile.kind, min_rows=width.min_rows, like=quantile
        )
        _warn_of_few_scores(found)
        return found

    def _one_sided(self, level: float, tails: str) -> ScoreQuantile:
        """Quantiles of signed scores; the same groups have a line at all levels, so that quantiles do not cross."""
        scores, like = self._scores_seen.signed(), self._quantile
        return ScoreQuantile.of(scores, TAILS[tails], level, like.kind, like=like)

    def _learn(self, scores: CalibrationScores) -> None:
        """Set everything that calibration is known by."""
        are_unequal = scores.importance is not None and np.ptp(scores.importance) > 0.0
        if self.guarantee == "training-conditional" and (are_unequal or scores.effective_size is not None):
            msg = (
                'guarantee="training-conditional" takes the distribution of ranks, which is not known for unequal or '
                'estimated sample_weight; set guarantee="marginal".'
            )
            raise ValueError(msg)
        is_joint = isinstance(self._widths()[0], JointWidth)
        level, min_rows = float(self.confidence_level), self._widths()[0].min_rows
        quantile = ScoreQuantile.of(
            scores.jointly() if is_joint else scores, TAILS[self.tails], level, self.guarantee, min_rows=min_rows
        )
        _warn_of_few_scores(quantile)
        _warn_of_few_groups(quantile)
        self._scores_seen, self._quantile, self._made_by = scores, quantile, self._shaped_by()
        self.categories_ = _categories(quantile)
        lines = [0] if quantile.groups is None else quantile.groups.lines
        self.guaranteed_level_ = float(np.min([quantile.guaranteed(line) for line in lines]))
        self.guaranteed_ = bool(self.guaranteed_level_ >= self.confidence_level)
        self.coverage_range_ = quantile.per_group(_coverage_ranges(quantile))
        margin = quantile.per_group(list(quantile.margins))
        if is_joint:
            margin = margin * np.mean([width.margin_ for width in self._widths()], axis=0)[:, None]
        self.margin_ = margin[..., 0, :] if self._n_outputs is None else margin
        self.n_calibration_ = len(scores)

    def _shape(self, X: Any, prediction: Array) -> IntervalShape:
        """Shapes of intervals around the predictions of all models."""
        if not prediction.shape[1]:
            return IntervalShape()  # most estimators refuse to shape nothing
        shapes = [width.shape(X, one) for width, one in zip(self._widths(), prediction, strict=True)]
        return IntervalShape.merged(shapes, [one.shape for one in prediction], np.stack)

    def _predictions(self, X: Any) -> Array:
        """Predictions of all models, (models, n, k)."""
        found = [predictions(model, X, self._n_outputs) for model in self._models()]
        table = found[0][None] if len(found) == 1 else np.stack(found)
        with np.errstate(over="ignore"):
            check_finite("prediction", table[0] if len(found) == 1 else table.mean(axis=0), REMEDY)
        return table

    def _squeezed(self, values: Array) -> Array:
        """Without the axis of outputs if the target has none."""
        return values[:, 0] if self._n_outputs is None else values

    def _write_bounds(
        self,
        quantile: ScoreQuantile,
        prediction: Array,
        shape: IntervalShape,
        lines: NDArray[np.intp] | None,
        importance: Array | None,
        out: Array,
    ) -> None:
        """Bounds of intervals, into `out` (n, k, 2), cut at the least and the largest possible target."""
        try:
            with np.errstate(over="raise"):
                write_bounds(quantile, prediction, shape, lines, importance, out)
        except FloatingPointError as beyond:
            msg = (
                "an interval ends beyond all floats: the prediction or the width is too large. Use a larger unit for y."
            )
            raise ValueError(msg) from beyond
        if np.isfinite(self._cuts).any():
            np.clip(out, *self._cuts, out=out)


def _levels(name: str, given: ArrayLike) -> Array:
    """Levels asked for."""
    levels: Array = real_array(name, given).astype(np.float64)
    if levels.ndim > 1 or not levels.size or not ((levels > 0.0) & (levels < 1.0)).all():
        msg = f"{name} must be a level, or a list of levels, between 0 and 1; got {given!r}."
        raise ValueError(msg)
    return levels


def _places(y: ArrayLike, size: tuple[int, ...]) -> Array:
    """Where a distribution is asked for: a value for all rows, one for each of `size`, or several for each."""
    asked: Array = real_array("y", y).astype(np.float64)
    if asked.ndim == 0:
        asked = np.full(size, asked)
    if asked.shape[: len(size)] != size or asked.ndim > len(size) + 1:
        msg = f"y has shape {asked.shape}; expected a number, {size}, or {size} with one more axis for several values."
        raise ValueError(msg)
    if np.isnan(asked).any():
        msg = "y contains NaN, where no proportion of targets can be told; leave such values out."
        raise ValueError(msg)
    return asked


def _categories(quantile: ScoreQuantile) -> list[Group]:
    """Rows, guaranteed level and source of each category, and of all those never seen in a last line."""
    table = quantile.groups
    if table is None:
        return []
    found = []
    for label, n in table.rows.items():
        line = table.line_of[label]
        source, note = ("shared", TOGETHER) if line == table.shared else ("own", "")
        found.append(Group(label, n, quantile.guaranteed(line), source, note))
    return [*found, Group(LABEL_OF_UNSEEN, 0, np.nan, "shared" if table.pooled else "none", NEVER_SEEN)]


def _coverage_ranges(quantile: ScoreQuantile) -> list[tuple[float, float]]:
    """Of the first output, for each line; NaN where groups share scores: it is of none of them by itself."""
    found = [line[0].coverage_range for line in quantile.guarantees]
    if quantile.groups is not None:
        found[quantile.groups.shared] = found[quantile.groups.unseen] = (np.nan, np.nan)
    return found


def _warn_of_few_groups(quantile: ScoreQuantile) -> None:
    """Say that groups of rows which resemble each other are fewer than scores would have to be."""
    n_groups, level = quantile.scores.n_groups, quantile.level
    needed = rank_guarantee(1, level, n_cuts=quantile.tails.n_cuts).needed
    if n_groups is not None and n_groups < needed:
        warn_of_coverage(
            f"scores of {n_groups} groups calibrate, and rows of one group may resemble each other: nothing is "
            f"guaranteed to rows of new groups, of which {percent(level, 6)} intervals may cover far less. {needed} "
            "groups or more do better."
        )


def _warn_of_few_scores(quantile: ScoreQuantile) -> None:
    """Say where scores are too few for a guarantee or, with estimated weights, to come near the level."""
    size, level = quantile.scores.effective_size, quantile.level
    enough = ENOUGH_ESTIMATED * rank_guarantee(1, level, n_cuts=quantile.tails.n_cuts).needed
    if size is not None:
        if size < enough:
            warn_of_coverage(
                f"by their estimated weights the calibration rows are about as good as {size:.3g} rows like the new "
                f"ones: {percent(level, 6)} intervals may cover far less, and nothing is guaranteed. As a rule of "
                f"thumb take {enough} or more: calibrate on more rows, or on rows more like the new ones."
            )
        return
    table = quantile.groups
    for of, lines in (
        ("", [0] if table is None else []),
        (" of a category", [] if table is None else sorted(set(table.lines) - {table.shared})),
        (" of the smaller categories", [] if table is None else sorted(set(table.lines) & {table.shared})),
    ):
        few = [
            replace(quantile.weakest(line), level=quantile.guaranteed(line))
            for line in lines
            if not quantile.weakest(line).is_enough
        ]
        if few:
            several = f" (the smallest of {len(few)} such)" if len(few) > 1 else ""
            side = " on one side of the prediction" if quantile.tails.is_by_sign else ""
            most = "" if quantile.scores.folds is None else " (with cv they guarantee 2 p - 1 at most)"
            least = min(few, key=lambda one: one.m)
            warn_of_coverage(f"{too_few(least, level, of + several + side)}{most}.")
