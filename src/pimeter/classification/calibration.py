"""Scores that mean probabilities: calibrators on plain scores, `ScalingBinning`, and how far off scores are."""

from __future__ import annotations

from itertools import pairwise
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted

from pimeter.arrays import real_array
from pimeter.classification.consistency import consistency
from pimeter.classification.platt import log_odds, platt_lines
from pimeter.coverage import proportion_bounds
from pimeter.frames import refuse_other_order
from pimeter.validation import integer, one_level, scores_between_0_and_1

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray
    from sklearn.utils import Tags

    from pimeter.protocols import Array, Flags, Index


class ScalingBinning(TransformerMixin, RegressorMixin, BaseEstimator):
    """Platt's map, then the mean of its values in bins of equally many rows (Kumar, Liang and Ma 2019).

    The output takes few values, so that its calibration error can be measured without a bias from binning; as smooth
    scores become steps, it is nothing for `pimeter.paper.score_spread`, which wants a continuous
    distribution.

    Parameters
    ----------
    n_bins : int, default=10
        Number of bins; fewer where scores are tied.

    Attributes
    ----------
    slope_, intercept_ : float
        Platt's map of the log-odds.
    edges_ : ndarray of shape (n_bins_ - 1,)
        Borders between bins, on the scale of probabilities.
    values_ : ndarray of shape (n_bins_,)
        Mean of the map in each bin.

    Notes
    -----
    The map, the bins and the means come from the same rows, as in the authors' software; their proof wants three parts.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter import ScalingBinning
    >>> rng = np.random.default_rng(0)
    >>> q = rng.uniform(size=2000)
    >>> y = rng.uniform(size=2000) < q
    >>> binned = ScalingBinning(n_bins=4).fit(q**2, y)  # scores that are too low
    >>> binned.values_.round(2)
    array([0.11, 0.39, 0.65, 0.87])
    >>> binned.transform([0.01, 0.9]).round(2)
    array([0.11, 0.87])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"n_bins": [Interval(Integral, 1, None, closed="left")]}

    def __init__(self, n_bins: int = 10) -> None:
        self.n_bins = n_bins

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn from scores between 0 and 1 and labels 0 and 1.

        Parameters
        ----------
        X : array-like of shape (n,) or (n, 1)
            Scores.
        y : array-like of shape (n,)
            Labels.

        Returns
        -------
        ScalingBinning
            Itself.
        """
        self._validate_params()
        score, label = _both(y, X, "X")
        lines = platt_lines(log_odds(score), label, np.ones((1, len(score))))
        self.slope_, self.intercept_ = float(lines.slopes[0]), float(lines.intercepts[0])
        q = expit(self.slope_ * log_odds(score) + self.intercept_)
        codes, edges = _equal_bins(q, int(self.n_bins))
        self.edges_ = edges
        self.values_ = np.bincount(codes, q) / np.bincount(codes)
        return self

    def transform(self, X: ArrayLike) -> Array:
        """Calibrated scores, (n,)."""
        check_is_fitted(self)
        q = expit(self.slope_ * log_odds(_score(X, "X")) + self.intercept_)
        found: Array = self.values_[np.searchsorted(self.edges_, q)]
        return found

    def predict(self, X: ArrayLike) -> Array:
        """Calibrated scores, (n,), as `transform` gives them."""
        return self.transform(X)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags


def calibrated_scores(
    y: ArrayLike,
    score: ArrayLike,
    new_score: ArrayLike,
    *,
    method: Literal["sigmoid", "isotonic", "temperature", "scaling-binning"] = "sigmoid",
) -> Array:
    """Scores turned into probabilities by a calibrator that is fitted on other rows, in one call.

    Parameters
    ----------
    y : array-like of shape (m,)
        Labels 0 and 1 of rows that the classifier was not trained on.
    score : array-like of shape (m,)
        Their scores, between 0 and 1.
    new_score : array-like of shape (n,)
        Scores of other rows.
    method : {"sigmoid", "isotonic", "temperature", "scaling-binning"}, default="sigmoid"
        The first three (the first is Platt's) are scikit-learn's, on log-odds.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter import calibrated_scores, calibration_error
    >>> rng = np.random.default_rng(0)
    >>> q = rng.uniform(size=4000)
    >>> y = rng.uniform(size=4000) < q
    >>> score = q**3 / (q**3 + (1 - q) ** 3)  # a classifier that is too sure of itself
    >>> round(calibration_error(y[2000:], score[2000:]), 3)
    0.167
    >>> new = calibrated_scores(y[:2000], score[:2000], score[2000:])
    >>> round(calibration_error(y[2000:], new), 3)
    0.0
    """
    if method not in {"sigmoid", "isotonic", "temperature", "scaling-binning"}:
        msg = f"method must be sigmoid, isotonic, temperature or scaling-binning; got {method!r}."
        raise ValueError(msg)
    known, label = _both(y, score, "score")
    new = _score(new_score, "new_score")
    if method == "scaling-binning":
        return ScalingBinning().fit(known, label).transform(new)
    from sklearn.calibration import CalibratedClassifierCV

    rows = np.arange(len(known))  # all in one fold: the classifier is not trained
    frozen = FrozenEstimator(_LogOdds().fit(known[:, None], label))
    model = CalibratedClassifierCV(frozen, method=method, cv=[(rows, rows)])
    found: Array = model.fit(known[:, None], label).predict_proba(new[:, None])[:, 1]
    return found


class _LogOdds(ClassifierMixin, BaseEstimator):
    """A classifier whose only feature is the score, for calibrators that want a classifier."""

    def fit(self, _X: Array, y: NDArray[Any]) -> Self:
        """Nothing but the classes."""
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X: Array) -> Array:
        return log_odds(X[:, 0])

    def predict(self, X: Array) -> NDArray[Any]:
        found: NDArray[Any] = self.classes_[(X[:, 0] > 0.5).astype(int)]
        return found


class ReliabilityBins(NamedTuple):
    """What scores say and what happened, in bins of equally many rows."""

    rows: Array
    score: Array  # mean score
    proportion: Array  # of positive labels
    lower: Array  # Clopper-Pearson interval of the mean probability of the bin's rows, each bin by itself
    upper: Array
    is_off: Flags  # whether labels contradict the scores, and this bin by itself does
    p_value: float  # of the labels, were scores probabilities


def reliability(
    y_true: ArrayLike, y_score: ArrayLike, *, n_bins: int = 10, confidence_level: float = 0.95
) -> ReliabilityBins:
    """Mean score and proportion of positives in bins of equally many rows, and whether the two contradict each other.

    Intervals are Clopper-Pearson's, of each bin by itself: they hold the mean probability of the bin's rows as often as
    they say or more, also where these rows have different ones (Hoeffding 1956), and also near 0 and 1, if rows are
    independent. `is_off` and `p_value` are about all bins together, see `consistency`.
    """
    score, label = _pair(y_true, y_score, "y_true", "y_score")
    codes, _ = _equal_bins(score, integer("n_bins", n_bins, at_least=1))
    rows = np.bincount(codes).astype(np.float64)
    mean, proportion = np.bincount(codes, score) / rows, np.bincount(codes, label) / rows
    level = one_level("confidence_level", confidence_level)
    lower, upper = proportion_bounds(np.bincount(codes, label), rows, (1.0 - level) / 2.0)
    found = consistency(score, label, codes, level)
    is_off = (found.by_bin <= 1.0 - level) & (found.p_value <= 1.0 - level)
    return ReliabilityBins(rows, mean, proportion, lower, upper, is_off, found.p_value)


def calibration_error(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    n_bins: int = 10,
    method: Literal["debiased", "plugin", "lower"] = "debiased",
) -> float:
    """How far scores are from the proportion of positives at that score: root mean square, by bins.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels, 0 or 1.
    y_score : array-like of shape (n,)
        Scores between 0 and 1.
    n_bins : int, default=10
        Bins of equally many rows; the authors' software has 15.
    method : {"debiased", "plugin", "lower"}, default="debiased"
        ``"plugin"``
            Mean squares of the gaps in bins: too large, also for perfect scores, as labels are random.
        ``"debiased"``
            Mean squares less the labels' own variance. Scores of few values (at most a tenth as many as rows, such as
            those of `ScalingBinning`) are their own bins: the square is unbiased then. Other scores are binned as in
            "lower".
        ``"lower"``
            As "debiased", in bins of equally many rows for any scores (Kumar, Liang and Ma 2019; Table 3 of the paper,
            in per cent and 15 bins). Gaps of different sign within a bin cancel, so for smooth scores it estimates a
            lower bound.

    Returns
    -------
    float
        Not negative: a square below zero gives 0.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter import calibration_error
    >>> rng = np.random.default_rng(0)
    >>> q = rng.uniform(size=1000)
    >>> y = rng.uniform(size=1000) < q  # perfectly calibrated
    >>> [round(calibration_error(y, q, method=method), 3) for method in ("plugin", "debiased")]
    [0.038, 0.0]
    """
    if method not in {"debiased", "plugin", "lower"}:
        msg = f"method must be debiased, plugin or lower; got {method!r}."
        raise ValueError(msg)
    score, label = _pair(y_true, y_score, "y_true", "y_score")
    codes, _ = _equal_bins(score, integer("n_bins", n_bins, at_least=1))
    if method == "debiased":
        values, own = np.unique(score, return_inverse=True)
        if 10 * len(values) <= len(score):
            codes = own.reshape(-1)
    rows = np.bincount(codes)
    proportion, mean = np.bincount(codes, label) / rows, np.bincount(codes, score) / rows
    squares = (proportion - mean) ** 2
    if method != "plugin":
        # A single row says nothing about its variance, and is left out, as by the authors.
        squares = np.where(rows > 1, squares - proportion * (1.0 - proportion) / np.maximum(rows - 1, 1), 0.0)
    mean_square = float(rows @ squares) / len(score)
    return float(max(mean_square, 0.0) ** 0.5)


def _equal_bins(score: Array, n_bins: int) -> tuple[Index, Array]:
    """Bin of each row, and the borders between bins: about equally many rows in each, ties never divided."""
    ordered = np.sort(score)
    parts = [part for part in np.array_split(ordered, n_bins) if len(part)]
    edges = np.unique([(left[-1] + right[0]) / 2.0 for left, right in pairwise(parts)])
    codes = np.searchsorted(edges, score)
    used, dense = np.unique(codes, return_inverse=True)
    return dense.reshape(-1), edges[used[1:] - 1] if len(edges) else edges


@np.errstate(invalid="ignore")  # scikit-learn adds up infinities to find them
def _score(given: ArrayLike, name: str) -> Array:
    checked = check_array(real_array(name, given), ensure_2d=False, dtype=np.float64, input_name=name)
    score = scores_between_0_and_1(name, checked)
    if score.ndim != 1:
        msg = f"{name} must be scores between 0 and 1, one per row; got shape {score.shape}."
        raise ValueError(msg)
    return score


@np.errstate(invalid="ignore")  # scikit-learn adds up infinities to find them
def _pair(y: ArrayLike, score: ArrayLike, y_name: str, score_name: str) -> tuple[Array, Flags]:
    """Scores, and labels as truth values."""
    refuse_other_order(y_name, y, score_name, score)
    scores = _score(score, score_name)
    label: Array = check_array(real_array(y_name, y), ensure_2d=False, dtype=np.float64, input_name=y_name)
    check_consistent_length(scores, label)
    if label.ndim != 1 or not ((label == 0.0) | (label == 1.0)).all():
        found = f"shape {label.shape}, values such as {label.ravel()[:5]}"
        msg = f"{y_name} must hold labels 0 and 1, one per row; got {found}."
        raise ValueError(msg)
    return scores, label == 1.0


def _both(y: ArrayLike, score: ArrayLike, score_name: str) -> tuple[Array, Flags]:
    """Scores, and labels of both classes as truth values: without both there is no calibrator."""
    scores, label = _pair(y, score, "y", score_name)
    if not label.any() or label.all():
        msg = "y holds one class only; a calibrator needs rows of both."
        raise ValueError(msg)
    return scores, label
