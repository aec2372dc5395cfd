"""`IntervalRegressor`: any model and rows it was not trained on become prediction intervals."""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.model_selection import GroupKFold, GroupShuffleSplit, KFold, ShuffleSplit, check_cv, train_test_split
from sklearn.utils import _safe_indexing, check_random_state, get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import (
    _num_samples,
    check_array,
    check_is_fitted,
)

from pimeter.arrays import real_array, unmasked
from pimeter.conformal.guarantee import GUARANTEES, GuaranteeKind, rank_guarantee
from pimeter.conformal.tails import TAILS, Tails
from pimeter.coverage import CoverageWarning, percent
from pimeter.duplicates import UNPROVEN, are_copies, copies, row_keys
from pimeter.regression.auto import AutoWidth
from pimeter.regression.calibration import Neurons, Rows, Shaped
from pimeter.regression.cqr import QuantileWidth
from pimeter.regression.frames import interval_frame
from pimeter.regression.grouped import GroupedWidth
from pimeter.regression.joint import JointWidth
from pimeter.regression.local import LocalWidth
from pimeter.regression.model import REMEDY, check_finite, is_plain, is_trainable, predictions, trained
from pimeter.regression.scaled import ScaledWidth
from pimeter.regression.shift import ShiftWeights
from pimeter.regression.training import Task, train
from pimeter.regression.width import Aim, ConstantWidth, Shape, Width
from pimeter.tables import checked_splits, checked_table, group_codes, rows_to_come, warn_of_dates

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]

WIDTHS: dict[str, type[Width]] = {
    "constant": ConstantWidth,
    "scaled": ScaledWidth,
    "grouped": GroupedWidth,
    "local": LocalWidth,
    "quantile": QuantileWidth,
    "auto": AutoWidth,
}
HELD_OUT = 0.2  # share of rows that calibrate with cv=None, as in the paper
ENOUGH_ESTIMATED = 5  # times the rows that a guarantee takes: with fewer effective ones estimated weights may fail
LARGEST_WEIGHT = 1e100  # and its inverse is the least: sums and ratios of weights stay numbers


class IntervalRegressor(RegressorMixin, BaseEstimator):
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
        draft = self._draft()
        estimated = [name for name, value in fit_params.items() if isinstance(value, ShiftWeights)]
        if estimated:
            msg = (
                f"{estimated[0]} of fit trains the model, but shift_weights weighs rows that calibrate: fit the model "
                f"first, then give them to calibrate. To train with them, give their attribute calibration."
            )
            raise ValueError(msg)
        if not is_trainable(self.estimator):
            if fit_params:
                msg = f"fit_params {sorted(fit_params)} are given, but this estimator is not trained; leave them out."
                raise ValueError(msg)
            draft._calibrate(X, y, by, groups, None, reset=True)
        else:
            draft._fit(X, y, by, groups, fit_params)
        return self._become(draft)

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
        draft._calibrate(X, y, by, groups, sample_weight, reset=not self._is_own_model())
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
        if self._rows.folds is not None:
            msg = "update cannot add rows to folds that are already trained (cv is set); call fit with all rows."
            raise ValueError(msg)
        draft = self._draft()
        if self._shaped_by() != self._made_by:
            msg = "width, tails or joint were changed after calibration, and update learns no width; call calibrate."
            raise ValueError(msg)
        (low, high), target = self._cuts, draft._targets(X, y)
        draft._cuts = (min(low, draft._cuts[0]), max(high, draft._cuts[1]))
        X = checked_table(draft, X, reset=False)
        if (None if target.ndim == 1 else target.shape[1]) != self._n_outputs:
            msg = f"y has shape {target.shape}; expected as many outputs as in calibration."
            raise ValueError(msg)
        labels = draft.width_.labels(X, by)
        weights, size = _importance(sample_weight, X), _effective_size(sample_weight)
        keys = row_keys(X, target)
        new = draft._measured(draft.estimator_, draft.width_, X, target, labels, weights, keys)
        rows = self._rows.joined(replace(new, effective_size=size))
        n_copies = 0 if rows.has_copies else rows.n_copies(len(new.above))
        if n_copies:
            msg = (
                f"{n_copies:,} of {len(rows.above):,} calibration rows are copies of others, now that those of update "
                f"are among them: {UNPROVEN}. Give update rows that do not calibrate yet."
            )
            warnings.warn(msg, CoverageWarning, stacklevel=2)
            rows = replace(rows, has_copies=True)
        draft._learn(rows)
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
        X = checked_table(self, X, reset=False)
        found: Array = self._predictions(X).mean(axis=0)
        return found[:, 0] if self._n_outputs is None else found

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
        asked = self._neurons.level if confidence_level is None else confidence_level
        levels = self._levels("confidence_level", asked)
        given, X = X, checked_table(self, X, reset=False)
        labels = self._widths()[0].labels(X, by)
        weights = _importance(sample_weight, X, are_new=True)
        if weights is not None and self._rows.weights is None:
            msg = "sample_weight is given for new rows, but calibration had none: pass it to calibrate, too."
            raise ValueError(msg)
        found = self._shaped(X)
        out = np.empty((*found.prediction.shape[1:], 2, levels.size))
        promised = np.full((len(out), levels.size), np.nan)
        for i, level in enumerate(levels.ravel()):
            neurons = self._neurons
            if level != neurons.level:
                neurons = self._learned(self._rows, float(level), like=self._neurons)
            codes = neurons.codes(labels)
            self._ends(neurons, found, codes, weights, out[..., i])
            if weights is not None:
                promised[:, i] = neurons.promised_rows(codes, weights)
        if isinstance(sample_weight, ShiftWeights):
            promised[:] = np.nan
        if as_frame:
            several = None if levels.ndim == 0 else levels
            return interval_frame(
                given,
                found.prediction.mean(axis=0),
                out,
                levels=several,
                has_outputs=self._n_outputs is not None,
                promised=None if weights is None else promised,
            )
        ends = out if levels.ndim else out[..., 0]
        return ends[:, 0] if self._n_outputs is None else ends

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
        levels = self._levels("q", q)
        X = checked_table(self, X, reset=False)
        labels = self._widths()[0].labels(X, by)
        found = self._shaped(X).around_the_middle()
        out = np.empty((*found.prediction.shape[1:], levels.size))
        both = np.empty((*out.shape[:2], 2))
        for i, level in enumerate(levels.ravel()):
            side = int(level >= 0.5)
            neurons = self._one_sided(max(level, 1.0 - level), "upper" if side else "lower")
            _warn_of_few_rows(neurons, self._rows.effective_size)
            codes = neurons.codes(labels)
            self._ends(neurons, found, codes, None, both)
            out[..., i] = both[..., side]
            neurons.go_beyond(found, codes, out[..., i], side)
        np.clip(out, *self._cuts, out=out)
        quantiles = out if levels.ndim else out[..., 0]
        return quantiles[:, 0] if self._n_outputs is None else quantiles

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
        X = checked_table(self, X, reset=False)
        labels = self._widths()[0].labels(X, by)
        found = self._shaped(X).around_the_middle()
        size = found.prediction.shape[1:]
        asked = _places(y, size if self._n_outputs is not None else size[:1])
        neurons = self._one_sided(self._neurons.level, "upper")
        table = asked.reshape(*size, -1)
        shares = neurons.shares(found, neurons.codes(labels), table)
        low, high = self._cuts
        shares[table < low] = 0.0
        shares[table >= high] = 1.0
        return shares.reshape(asked.shape)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_rows")

    def __sklearn_clone__(self) -> Self:
        params = self.get_params(deep=False)
        if is_plain(self.estimator):
            params = {
                name: value if name == "estimator" else clone(value, safe=False) for name, value in params.items()
            }
        else:
            params = {name: clone(value, safe=False) for name, value in params.items()}
        return type(self)(**params)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        width = self._width() if isinstance(self.width, Width) or self.width in WIDTHS else ConstantWidth()
        if not is_plain(self.estimator):
            inner = get_tags(self.estimator)
            tags.input_tags = copy(inner.input_tags)
            tags.target_tags.multi_output = inner.target_tags.multi_output
            tags.target_tags.positive_only = inner.target_tags.positive_only
        tags.input_tags.sparse = tags.input_tags.sparse and width.takes_sparse
        return tags

    def _draft(self) -> Self:
        """A copy to work on, so that a failure leaves the estimator as it was."""
        self._validate_params()
        if self.guarantee == "training-conditional" and self.cv is not None and is_trainable(self.estimator):
            msg = 'guarantee="training-conditional" is about one calibration set, but cv makes folds; set cv=None.'
            raise ValueError(msg)
        if self.y_min is not None and self.y_max is not None and self.y_min >= self.y_max:
            msg = f"y_min={self.y_min} must be less than y_max={self.y_max}."
            raise ValueError(msg)
        if self.joint and TAILS[self.tails].is_by_sign:
            msg = 'joint=True looks at all outputs at once, whose errors have no common sign; tails="sided" needs one.'
            raise ValueError(msg)
        return copy(self)

    def _become(self, draft: Self) -> Self:
        """Take over what the draft has learned, and forget what it has not."""
        self.__dict__.clear()
        self.__dict__.update(draft.__dict__)
        return self

    def _width(self) -> Width:
        """The width as an object of its own."""
        if isinstance(self.width, str):
            return WIDTHS[self.width]()
        width: Width = clone(self.width)
        width._validate_params()
        return width

    def _widths(self) -> list[Width]:
        """The widths that have learned, one for each model."""
        return self.width_ if isinstance(self.width_, list) else [self.width_]

    def _new_width(self) -> Width:
        """The width to learn; with several outputs that are to be covered at once in units of their radii."""
        is_joint = self.joint and self._n_outputs is not None and self._n_outputs > 1
        return JointWidth(self._width()) if is_joint else self._width()

    def _shaped_by(self) -> tuple[str, str, bool]:
        """Settings that a width is learned with."""
        return repr(self.width), self.tails, self.joint

    def _is_joint(self) -> bool:
        """Whether one neuron is for all outputs."""
        return isinstance(self._widths()[0], JointWidth)

    def _aim(self) -> Aim:
        """What widths are learned for."""
        return Aim(float(self.confidence_level), TAILS[self.tails])

    def _targets(self, X: Any, y: Any) -> Array:
        """Finite targets of shape (n,) or (n, k)."""
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
        kind = given.dtype if given.dtype.kind == "f" else target.dtype  # .3 in single precision is above .3
        with np.errstate(over="ignore"):
            low = kind.type(-np.inf if self.y_min is None else self.y_min)
            high = kind.type(np.inf if self.y_max is None else self.y_max)
        if target.min() < low or target.max() > high:
            msg = (
                f"y goes from {target.min():.6g} to {target.max():.6g}, beyond y_min={self.y_min} or "
                f"y_max={self.y_max}: these are the least and the largest possible target, in the unit of y."
            )
            raise ValueError(msg)
        # What is seen at an end is not cut off: the end itself may have been rounded to the precision of y.
        self._cuts = (
            -np.inf if self.y_min is None else min(float(self.y_min), float(target.min())),
            np.inf if self.y_max is None else max(float(self.y_max), float(target.max())),
        )
        return target

    def _levels(self, name: str, given: ArrayLike) -> Array:
        """Levels asked for."""
        levels: Array = real_array(name, given).astype(np.float64)
        if levels.ndim > 1 or not levels.size or not ((levels > 0.0) & (levels < 1.0)).all():
            msg = f"{name} must be a level, or a list of levels, between 0 and 1; got {given!r}."
            raise ValueError(msg)
        return levels

    def _is_own_model(self) -> bool:
        """Whether `fit` has trained a model for this very estimator."""
        return is_trainable(self.estimator) and getattr(self, "_trained_from", None) is self.estimator

    def _fit(self, X: Any, y: Any, by: ArrayLike | None, groups: Any, fit_params: dict[str, Any]) -> None:
        """Train and calibrate on one split or in folds."""
        target = self._targets(X, y)
        X = checked_table(self, X, reset=True)
        if len(target) < 2:
            msg = "n_samples=1: training and calibrating need at least 2 rows. Call calibrate on a trained model."
            raise ValueError(msg)
        self._n_outputs = None if target.ndim == 1 else target.shape[1]
        width = self._new_width()
        labels, given, groups = width.labels(X, by), groups, group_codes(groups, X)
        if groups is not None and groups.max() == 0:
            msg = "groups has a single group: training and calibrating need rows of at least two."
            raise ValueError(msg)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        keys = row_keys(X, target)
        found = copies(keys, X, target, groups)
        if found.n:
            warnings.warn(found.warning("fit", has_groups=groups is not None), CoverageWarning, stacklevel=3)
        is_copied = groups is not None and are_copies(groups, keys)
        if self.shuffle and groups is None and (self.cv is None or isinstance(self.cv, Integral)):
            warn_of_dates(X, y)
        task = Task(self.estimator, width, X, target, groups, fit_params, self._aim(), seed, self.shuffle)
        splitter = self._splitter(len(target), groups, seed, are_alike=not is_copied)
        splits = checked_splits(splitter.split(X, target, given), len(target), groups)
        to_come = rows_to_come(splits, len(target))
        models, widths, (above, below), seen, folds = train(task, splits, self.n_jobs)
        if to_come is not None:
            models, widths = [task.model(to_come)], [task.learned_width(to_come)]
        is_single = self.cv is None or to_come is not None
        self._trained_from = self.estimator
        self.estimator_: Any = models[0] if is_single else models
        self.width_: Any = widths[0] if is_single else widths
        labels, keys, groups = (None if a is None else a[seen] for a in (labels, keys, groups))
        left_out = None if is_single else folds
        rows = Rows(
            above,
            below,
            labels,
            folds=left_out,
            keys=keys,
            has_copies=found.n > 0,
            is_ordered=to_come is not None or not self.shuffle,
        )
        self._learn(_in_groups(rows, groups, is_copied=is_copied))

    def _splitter(self, n: int, groups: Any, seed: int, *, are_alike: bool) -> Any:
        """One split of 80 to 20, folds of an integer, or the splitter given.

        Folds have equal numbers of rows; if groups are copies of one row, equal numbers of groups.
        """
        if self.cv is None and not self.shuffle:
            return check_cv([train_test_split(np.arange(n), test_size=HELD_OUT, shuffle=False)])
        if self.cv is None:
            splitter = ShuffleSplit if groups is None else GroupShuffleSplit
            return splitter(1, test_size=HELD_OUT, random_state=seed)
        if isinstance(self.cv, Integral):
            if groups is not None:
                mixed = {} if are_alike or not self.shuffle else {"shuffle": True, "random_state": seed}
                return GroupKFold(int(self.cv), **mixed)
            return KFold(int(self.cv), shuffle=self.shuffle, random_state=seed if self.shuffle else None)
        return check_cv(self.cv)

    def _calibrate(
        self,
        X: Any,
        y: Any,
        by: ArrayLike | None,
        groups: Any,
        sample_weight: ArrayLike | ShiftWeights | None,
        *,
        reset: bool,
    ) -> None:
        """Calibrate the model at hand; a width that learns takes half of the rows."""
        if self._is_own_model() and self._rows.folds is not None:
            msg = "calibrate needs one model, but fit has trained one per fold (cv is set); call fit with all rows."
            raise ValueError(msg)
        model = self.estimator_ if self._is_own_model() else trained(self.estimator)
        target = self._targets(X, y)
        X = checked_table(self, X, reset=reset)
        self._n_outputs = None if target.ndim == 1 else target.shape[1]
        width = self._new_width()
        labels, groups = width.labels(X, by), group_codes(groups, X)
        weights, size, m = _importance(sample_weight, X), _effective_size(sample_weight), len(target)
        if weights is not None and not weights.all():
            kept = np.flatnonzero(weights)
            X, target, weights = _safe_indexing(X, kept), target[kept], weights[kept]
            labels, groups = (None if a is None else a[kept] for a in (labels, groups))
        n = len(target)
        keys = row_keys(X, target)
        found = copies(keys, X, target, groups)
        if found.n:
            warnings.warn(found.warning("calibrate", has_groups=groups is not None), CoverageWarning, stacklevel=3)
        is_copied = groups is not None and are_copies(groups, keys)
        if is_copied and weights is not None:
            is_copied = are_copies(groups, weights)
        if width.learns and groups is not None and len(set(groups)) < 2:
            msg = "groups has a single group, but this width needs rows of another one to learn from; leave groups out."
            raise ValueError(msg)
        if width.learns and n > 1:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
            if self.shuffle or groups is not None:
                splitter = ShuffleSplit if groups is None else GroupShuffleSplit
                rest, half = next(splitter(1, test_size=n // 2 / n, random_state=seed).split(X, target, groups))
            else:
                half, rest = np.split(np.arange(n), [n // 2])
            task = Task(None, width, X, target, groups, {}, self._aim(), seed)
            width.fit(*task.errors(model, half), self._aim(), seed)
            X, target = _safe_indexing(X, rest), target[rest]
            labels, weights, groups, keys = (None if a is None else a[rest] for a in (labels, weights, groups, keys))
        elif width.learns:
            nothing = np.zeros((n, self._n_outputs or 1))
            width.fit(X, nothing, nothing, self._aim(), 0)
        rows = self._measured(model, width, X, target, labels, weights, keys)
        if size is not None:
            rows = replace(rows, effective_size=size * len(target) / m)  # of those that the width has left
        self.estimator_, self.width_ = model, width
        rows = replace(rows, has_copies=found.n > 0, is_ordered=not self.shuffle)
        self._learn(_in_groups(rows, groups, is_copied=is_copied))

    def _measured(
        self,
        model: Any,
        width: Width,
        X: Any,
        target: Array,
        labels: NDArray[Any] | None,
        weights: Array | None,
        keys: NDArray[np.uint64] | None,
    ) -> Rows:
        """Errors of calibration rows, in units of their shape."""
        prediction = predictions(model, X, self._n_outputs)
        with np.errstate(over="ignore"):
            errors = target.reshape(prediction.shape) - prediction
        check_finite("prediction", errors, REMEDY)
        rows = Rows(*width.shape(X, prediction).scores(errors), labels, weights, keys=keys)
        check_finite("y in units of its width", rows.above, "It is too far from the prediction: leave such rows out.")
        return rows if weights is None or weights.all() else rows.of(weights > 0.0)

    def _learned(self, rows: Rows, level: float, like: Neurons | None = None) -> Neurons:
        """Neurons at a level, with the same categories as others where these are given; warns of too few errors."""
        rows = rows.jointly() if self._is_joint() else rows
        min_rows = self._widths()[0].min_rows
        # Settings that were changed after calibration count from the next one on.
        tails, guarantee = (TAILS[self.tails], self.guarantee) if like is None else (like.tails, like.guarantee)
        neurons = Neurons.of(rows, tails, level, guarantee, min_rows=min_rows, like=like)
        _warn_of_few_rows(neurons, rows.effective_size)
        return neurons

    def _one_sided(self, level: float, tails: str) -> Neurons:
        """Neurons on signed errors; the same categories have one at all levels, so that quantiles do not cross."""
        return Neurons.of(self._rows.signed(), TAILS[tails], level, self._neurons.guarantee, like=self._neurons)

    def _learn(self, rows: Rows) -> None:
        """Set everything that calibration is known by."""
        are_unequal = rows.weights is not None and np.ptp(rows.weights) > 0.0
        if self.guarantee == "training-conditional" and (are_unequal or rows.effective_size is not None):
            msg = (
                'guarantee="training-conditional" takes the distribution of ranks, which is not known for unequal or '
                'estimated sample_weight; set guarantee="marginal".'
            )
            raise ValueError(msg)
        neurons = self._learned(rows, float(self.confidence_level))
        _warn_of_few_groups(rows.n_groups, float(self.confidence_level), neurons.tails)
        self._rows, self._neurons, self._made_by = rows, neurons, self._shaped_by()
        categories = neurons.categories
        used = [neurons.promised(0)] if not categories else [category.level for category in categories if category.rows]
        self.guaranteed_level_ = float(np.min(used))
        self.guaranteed_ = bool(self.guaranteed_level_ >= self.confidence_level)
        ranges = [row[0].coverage_range for row in neurons.table]
        if categories:
            # Those of the shared neuron are of all small categories together, and of none by itself.
            ranges[neurons.shared] = ranges[neurons.unseen] = (np.nan, np.nan)
        self.coverage_range_ = neurons.per_category(ranges)
        if self._is_joint() and neurons.tails.n_cuts > 1:
            self.coverage_range_ = np.full_like(self.coverage_range_, np.nan)  # both ends may miss at once
        radius = neurons.per_category(list(neurons.typical))
        if self._is_joint():
            radius = radius * np.mean([width.margin_ for width in self._widths()], axis=0)[:, None]
        self.margin_ = radius[..., 0, :] if self._n_outputs is None else radius
        self.categories_ = categories
        self.n_calibration_ = len(rows.above)

    def _shaped(self, X: Any) -> Shaped:
        """Predictions of all models, and the shapes of intervals around them."""
        table = self._predictions(X)
        if not table.shape[1]:
            return Shaped(table, Shape())  # most estimators refuse to shape nothing
        shapes = [width.shape(X, one) for width, one in zip(self._widths(), table, strict=True)]
        return Shaped(table, Shape.merged(shapes, [one.shape for one in table], np.stack))

    def _predictions(self, X: Any) -> Array:
        """Predictions of all models, (models, n, k)."""
        models = self.estimator_ if isinstance(self.estimator_, list) else [self.estimator_]
        found = [predictions(model, X, self._n_outputs) for model in models]
        table = found[0][None] if len(found) == 1 else np.stack(found)
        with np.errstate(over="ignore"):
            check_finite("prediction", table[0] if len(found) == 1 else table.mean(axis=0), REMEDY)
        return table

    def _ends(
        self, neurons: Neurons, found: Shaped, codes: NDArray[np.intp] | None, weights: Array | None, out: Array
    ) -> None:
        """Ends of intervals, into `out` (n, k, 2), cut at the least and the largest possible target."""
        try:
            with np.errstate(over="raise"):
                neurons.intervals(found, codes, weights, out)
        except FloatingPointError as beyond:
            msg = (
                "an interval ends beyond all floats: the prediction or the width is too large. Use a larger unit for y."
            )
            raise ValueError(msg) from beyond
        if np.isfinite(self._cuts).any():
            np.clip(out, *self._cuts, out=out)


def _places(y: ArrayLike, size: tuple[int, ...]) -> Array:
    """Where a distribution is asked for: a value for all rows, one for each of `size`, or several for each."""
    asked: Array = real_array("y", y).astype(np.float64)
    if asked.ndim == 0:
        asked = np.full(size, asked)
    if asked.shape[: len(size)] != size or asked.ndim > len(size) + 1:
        msg = f"y has shape {asked.shape}; expected a number, {size}, or {size} with one more axis for several values."
        raise ValueError(msg)
    if np.isnan(asked).any():
        msg = "y contains NaN, where no share of targets can be told; leave such values out."
        raise ValueError(msg)
    return asked


def _in_groups(rows: Rows, groups: NDArray[np.intp] | None, *, is_copied: bool) -> Rows:
    """Rows of the same groups may be alike; if groups are copies of one row, each counts once."""
    if groups is None:
        return rows
    first = np.unique(groups, return_index=True)[1]
    if not is_copied:
        return replace(rows, n_groups=len(first))
    size = None if rows.effective_size is None else rows.effective_size * len(first) / len(groups)
    return replace(rows.of(np.sort(first)), effective_size=size)


def _warn_of_few_groups(n_groups: int | None, level: float, tails: Tails) -> None:
    needed = rank_guarantee(1, level, n_cuts=tails.n_cuts).needed
    if n_groups is not None and n_groups < needed:
        msg = (
            f"errors of {n_groups} groups calibrate, and rows of one group may be alike: nothing is promised to rows "
            f"of new groups, of which {percent(level, 6)} intervals may cover far less. {needed} groups or more do "
            "better."
        )
        warnings.warn(msg, CoverageWarning, stacklevel=5)


def _warn_of_few_rows(neurons: Neurons, effective_size: float | None) -> None:
    """Say where calibration rows are too few for a guarantee or, with estimated weights, to come near the level."""
    if effective_size is None:
        neurons.warn()
        return
    enough = ENOUGH_ESTIMATED * rank_guarantee(1, neurons.level, n_cuts=neurons.tails.n_cuts).needed
    if effective_size < enough:
        msg = (
            f"by their estimated weights the calibration rows are worth about {effective_size:.3g} rows like the new "
            f"ones: {percent(neurons.level, 6)} intervals may cover far less, and nothing is guaranteed. As a rule "
            f"of thumb take {enough} or more: calibrate on more rows, or on rows more like the new ones."
        )
        warnings.warn(msg, CoverageWarning, stacklevel=6)


def _effective_size(sample_weight: Any) -> float | None:
    """Size of estimated weights; None: they are known, or there are none."""
    return sample_weight.effective_size if isinstance(sample_weight, ShiftWeights) else None


@np.errstate(invalid="ignore")  # scikit-learn adds up infinities to find them
def _importance(sample_weight: ArrayLike | ShiftWeights | None, X: Any, *, are_new: bool = False) -> Array | None:
    """Importance weights, one per row."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, ShiftWeights):
        kind = "new" if are_new else "calibration"
        sample_weight = sample_weight.new if are_new else sample_weight.calibration
        if len(sample_weight) != _num_samples(X):
            part = "; for a part of them give that part of its attribute new" if are_new else ""
            msg = (
                f"sample_weight is for the {len(sample_weight)} {kind} rows that shift_weights has seen, but X has "
                f"{_num_samples(X)} rows. Call shift_weights with the rows of X{part}."
            )
            raise ValueError(msg)
    weights: Array = check_array(
        real_array("sample_weight", sample_weight), ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    if weights.shape != (_num_samples(X),):
        msg = f"sample_weight must hold one weight for each of the {_num_samples(X)} rows of X; got {weights.shape}."
        raise ValueError(msg)
    if (weights < 0.0).any() or not (are_new or weights.any()):  # among new rows none needs another one
        msg = f"sample_weight must not be negative nor all 0; got {weights.min():g} to {weights.max():g}."
        raise ValueError(msg)
    if ((weights > LARGEST_WEIGHT) | ((weights < 1.0 / LARGEST_WEIGHT) & (weights > 0.0))).any():
        msg = (
            f"sample_weight must be 0 or from {1.0 / LARGEST_WEIGHT:g} to {LARGEST_WEIGHT:g}; got "
            f"{weights.min():g} to {weights.max():g}. Only ratios count: divide by the mean."
        )
        raise ValueError(msg)
    return weights
