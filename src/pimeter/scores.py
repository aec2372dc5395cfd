"""How good are intervals? Coverage, width, what joins the two, and scorers that let a search choose by them.

Axes follow the targets: with `y_true` of shape ``(n,)`` an interval array has shape ``(n, 2)``, or ``(n, 2, L)`` for L
levels; with ``(n, k)``, k outputs or steps, ``(n, k, 2)`` or ``(n, k, 2, L)``. Each output is scored by itself, then
they are averaged, unless `multioutput` says otherwise; levels are never averaged: an axis of levels gives a score each.
"""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from pimeter.arrays import real_array
from pimeter.bandwidth import safe_factor

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]

Multioutput = Literal["uniform_average", "raw_values"]

# Middles of 20 equal cells: the outermost two are the ends of the central 95 % interval.
CRPS_LEVELS = tuple((2 * i + 1) / 40 for i in range(20))
SAME = 1e-9  # coverage that misses its level by less than this is rounding


def coverage_score(
    y_true: ArrayLike,
    y_interval: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    multioutput: Multioutput = "uniform_average",
) -> Any:
    """Share of targets inside their interval (the paper's PICP); a target on a bound is inside.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, k)
        Observed targets.
    y_interval : array-like of shape (n[, k], 2[, L])
        Lower and upper bounds, for L levels if there is a last axis of levels. Bounds may be infinite.
    sample_weight : array-like of shape (n,), optional
        How much each row counts; a row of weight 0 is ignored.
    multioutput : {"uniform_average", "raw_values"}
        The mean over outputs, or one score per output.

    Returns
    -------
    float or ndarray of shape ([k,] [L])
        Between 0 and 1. Outputs count separately: this is not the share of rows with all outputs inside.

    Raises
    ------
    ValueError
        If shapes do not fit, a value is NaN, or a lower bound is above its upper bound.

    Examples
    --------
    >>> from pimeter import coverage_score
    >>> coverage_score([1, 2, 3, 4], [[0, 2], [0, 1], [2, 4], [3, 5]])
    0.75

    Two levels at once, narrow and wide:

    >>> coverage_score([1, 2], [[[0, -1], [2, 3]], [[0, 0], [1, 2]]])
    array([0.5, 1. ])
    """
    target, lower, upper, outputs, _ = _aligned(y_true, y_interval)
    inside = (lower <= target) & (target <= upper)
    return _over_outputs(_mean_row(inside, sample_weight), outputs, multioutput)


def mean_width_score(
    y_interval: ArrayLike,
    *,
    bound_axis: int | None = None,
    sample_weight: ArrayLike | None = None,
    multioutput: Multioutput = "uniform_average",
) -> Any:
    """Mean distance between the bounds (the paper's MPIW), in the unit of the targets.

    Parameters
    ----------
    y_interval : array-like of shape (n[, k], 2[, L])
        Lower and upper bounds, for L levels if there is a last axis of levels.
    bound_axis : int, optional
        Which axis holds the two bounds: 1 without outputs, 2 with. None finds it by its length; only shape (n, 2, 2) is
        two outputs or two levels alike, and has to be told.
    sample_weight : array-like of shape (n,), optional
        How much each row counts; a row of weight 0 is ignored.
    multioutput : {"uniform_average", "raw_values"}
        The mean over outputs, or one score per output. Outputs in different units have no mean worth having.

    Returns
    -------
    float or ndarray of shape ([k,] [L])
        Infinite if a bound is.

    Raises
    ------
    ValueError
        If the shape is none of the above, a value is NaN, or a lower bound is above its upper bound.

    Examples
    --------
    >>> from pimeter import mean_width_score
    >>> mean_width_score([[0, 2], [1, 5]])
    3.0
    >>> two_levels = [[[2, 1], [3, 4]], [[5, 5], [7, 8]]]  # sample, bound, level
    >>> mean_width_score(two_levels, bound_axis=1)
    array([1.5, 3. ])
    """
    interval = _numbers("y_interval", y_interval, infinite=True)
    axis = _bound_axis(interval.shape, bound_axis)
    lower, upper = _ordered(interval, axis)
    with np.errstate(over="ignore"):  # what is too large is refused at the end
        return _over_outputs(_mean_row(upper - lower, sample_weight), axis == 2, multioutput, interval)


def coverage_width_criterion(
    y_true: ArrayLike,
    y_interval: ArrayLike,
    confidence_level: ArrayLike,
    *,
    eta: float = 0.1,
    target_range: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    multioutput: Multioutput = "uniform_average",
) -> Any:
    """Width in units of the targets' range, at least doubled if the coverage misses its level (the paper's CWC).

    ``NMPIW (1 + gamma exp(-eta (PICP - p)))``: NMPIW is the mean width over the range of the target, gamma is 1 if the
    coverage PICP is below the level p, and 0 otherwise. Lower is better.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, k)
        Observed targets.
    y_interval : array-like of shape (n[, k], 2[, L])
        Lower and upper bounds, for L levels if there is a last axis of levels.
    confidence_level : float or array-like of shape (L,)
        The level p that the intervals aim at. There is no default: at any other level the score means nothing.
    eta : float, default=0.1
        How fast the penalty grows with the missing coverage. The paper's 0.1 makes it a step: the factor is between 2
        and 2.11, however much is missing. With 50 each missing percent of coverage multiplies it by 1.65.
    target_range : float or array-like of shape (k,), optional
        Range of the target. None takes that of `y_true`; give the range of the whole data to compare scores of
        different subsets.
    sample_weight : array-like of shape (n,), optional
        How much each row counts in coverage and width; a row of weight 0 is ignored.
    multioutput : {"uniform_average", "raw_values"}
        The mean over outputs, or one score per output.

    Returns
    -------
    float or ndarray of shape ([k,] [L])
        Without unit.

    Raises
    ------
    ValueError
        If shapes do not fit, a value is NaN, a lower bound is above its upper bound, or the targets have no range.

    See Also
    --------
    interval_score : Joins coverage and width without a constant to choose, and cannot be gamed.

    Examples
    --------
    >>> from pimeter import coverage_width_criterion
    >>> y_true = [0, 2, 6, 10]
    >>> coverage_width_criterion(y_true, [[0, 4], [0, 4], [4, 8], [8, 12]], 0.95)  # all covered: width 4 of range 10
    0.4
    >>> narrow = [[0, 1], [0, 1], [6, 7], [10, 11]]  # 3 of 4
    >>> round(coverage_width_criterion(y_true, narrow, 0.95), 4)
    0.202
    """
    if not (np.isfinite(eta) and eta >= 0):
        msg = f"eta must be a finite number, at least 0; got {eta!r}. The paper takes 0.1."
        raise ValueError(msg)
    target, lower, upper, outputs, n_levels = _aligned(y_true, y_interval)
    level = _levels_of(confidence_level, n_levels)
    coverage = _mean_row((lower <= target) & (target <= upper), sample_weight)
    with np.errstate(over="ignore"):  # what is too large is refused at the end
        share = _mean_row(upper - lower, sample_weight) / _extent(target, target_range, sample_weight)
        fined = (coverage < level - SAME) & (share > 0.0)  # 0 times a fine that no float holds is not a number
        penalty = np.where(fined, np.exp(-eta * (coverage - level)), 0.0)
        return _over_outputs(share * (1.0 + penalty), outputs, multioutput, lower, upper, penalty)


def interval_score(
    y_true: ArrayLike,
    y_interval: ArrayLike,
    confidence_level: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    multioutput: Multioutput = "uniform_average",
) -> Any:
    """Mean width plus a fine for each target outside, as large as it is far (Winkler's score); lower is better.

    ``(u - l) + 2 / (1 - p) * (distance of y from [l, u])``, in the unit of the targets. The score is proper: nothing
    has a smaller expectation than the true quantiles at ``(1 - p) / 2`` and ``(1 + p) / 2``, so neither wide nor narrow
    intervals can cheat it.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, k)
        Observed targets.
    y_interval : array-like of shape (n[, k], 2[, L])
        Lower and upper bounds, for L levels if there is a last axis of levels.
    confidence_level : float or array-like of shape (L,)
        The level p that the intervals aim at. There is no default: at any other level the score means nothing.
    sample_weight : array-like of shape (n,), optional
        How much each row counts; a row of weight 0 is ignored.
    multioutput : {"uniform_average", "raw_values"}
        The mean over outputs, or one score per output. Outputs in different units have no mean worth having.

    Returns
    -------
    float or ndarray of shape ([k,] [L])
        Infinite if a bound is, as with ``tails="lower"`` and ``"upper"`` without `y_min` and `y_max`: score the one
        finite bound with scikit-learn's ``mean_pinball_loss``.

    Raises
    ------
    ValueError
        If shapes do not fit, a value is NaN, or a lower bound is above its upper bound.

    See Also
    --------
    interval_scorer : The same for `GridSearchCV`.

    Examples
    --------
    Width 4, and one of two targets 1 outside, which costs 2 / (1 - 0.8) = 10:

    >>> from pimeter import interval_score
    >>> round(interval_score([3, 5], [[0, 4], [0, 4]], confidence_level=0.8), 6)
    9.0
    """
    target, lower, upper, outputs, n_levels = _aligned(y_true, y_interval)
    level = _levels_of(confidence_level, n_levels)
    with np.errstate(over="ignore"):  # what is too large is refused at the end
        outside = np.maximum(lower - target, 0.0) + np.maximum(target - upper, 0.0)
        score = upper - lower + 2.0 / (1.0 - level) * outside
        return _over_outputs(_mean_row(score, sample_weight), outputs, multioutput, lower, upper)


def crps_score(
    y_true: ArrayLike,
    quantiles: ArrayLike,
    levels: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    multioutput: Multioutput = "uniform_average",
) -> Any:
    """Continuous ranked probability score of a distribution known by its quantiles; lower is better.

    Twice the pinball loss, averaged over the levels from 0 to 1, in the unit of the targets. It is proper: the true
    quantiles have the smallest expectation. Of a point forecast it is the mean absolute error.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, k)
        Observed targets.
    quantiles : array-like of shape (n[, k], L)
        Predicted quantiles, the last axis in the order of `levels`. They may cross.
    levels : array-like of shape (L,)
        Levels of the quantiles, between 0 and 1, all different, spaced as you like. A single number goes with
        `quantiles` of the shape of `y_true`.
    sample_weight : array-like of shape (n,), optional
        How much each row counts; a row of weight 0 is ignored.
    multioutput : {"uniform_average", "raw_values"}
        The mean over outputs, or one score per output. Outputs in different units have no mean worth having.

    Returns
    -------
    float or ndarray of shape (k,)
        The score.

    Raises
    ------
    ValueError
        If shapes do not fit, a value is not finite, or a level is not between 0 and 1 or comes twice.

    Notes
    -----
    Each level stands for the levels that are nearest to it, so its weight is half the distance between its two
    neighbours; the outermost ones reach to 0 and 1. Hence unevenly spaced levels do not count more where they are
    dense, and the weights sum to 1. On the middles ``(i - 1/2) / L`` all weights are equal, and the score is exactly
    the CRPS of the L quantiles as an ensemble. The expected CRPS of the true normal law is met within 0.3 % by 20 such
    middles, 0.1 % by the 99 percents, 5 % by the nine deciles, and 3 % by .05, .25, .5, .75, .95.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import norm
    >>> from pimeter import crps_score
    >>> levels = np.arange(1, 100) / 100
    >>> y_true = np.random.default_rng(0).normal(size=1000)
    >>> sharp, wide = (np.tile(norm.ppf(levels, scale=scale), (1000, 1)) for scale in (1, 3))
    >>> round(crps_score(y_true, sharp, levels), 3), round(crps_score(y_true, wide, levels), 3)
    (0.55, 0.826)

    The median alone is a point forecast:

    >>> crps_score([1.0, 4.0], [2.0, 2.0], 0.5)
    1.5
    """
    target, predicted = _targets(y_true), _numbers("quantiles", quantiles)
    level = real_array("levels", levels).astype(np.float64)
    if level.ndim == 0:
        level, predicted = level[None], predicted[..., None]
    _check_levels("levels", level)
    if level.ndim != 1 or np.unique(level).size < level.size or level.size == 0:
        msg = f"levels must be one row of different numbers; got {levels!r}. Give each level once, with its quantiles."
        raise ValueError(msg)
    if predicted.shape != (*target.shape, level.size):
        msg = (
            f"quantiles must have shape {(*target.shape, level.size)}, a value per target and level, the levels last; "
            f"got {predicted.shape}."
        )
        raise ValueError(msg)
    from sklearn.metrics import mean_pinball_loss

    weight = _checked_weight(sample_weight, len(target))
    with np.errstate(over="ignore", invalid="ignore"):  # what is too large is refused at the end
        losses = [
            mean_pinball_loss(target, predicted[..., i], sample_weight=weight, alpha=p, multioutput="raw_values")
            for i, p in enumerate(level)
        ]
        score = 2.0 * _level_weights(level) @ np.stack(losses)
        return _over_outputs(score if target.ndim == 2 else score[0], target.ndim == 2, multioutput)


def interval_scorer(estimator: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
    """Score an estimator by its intervals, for `GridSearchCV`: minus the interval score, so greater is better.

    Parameters
    ----------
    estimator : object with `predict_interval` and `confidence_level`
        Such as a fitted `IntervalRegressor`, also as the last step of a pipeline or inside another search.
    X : array-like
        Features of rows that the estimator has not seen.
    y : array-like of shape (n,) or (n, k)
        Their targets.
    sample_weight : array-like of shape (n,), optional
        How much each row counts in the score.

    Returns
    -------
    float
        ``-interval_score(y, estimator.predict_interval(X), estimator.confidence_level)``, where `predict_interval` is
        asked for that level if it takes one. Only scores at the same level can be compared, so do not search over
        `confidence_level`.

    Raises
    ------
    TypeError
        If the estimator has no `predict_interval` or no `confidence_level`.

    Examples
    --------
    Errors that grow with the target want intervals that do, too:

    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from sklearn.model_selection import GridSearchCV
    >>> from pimeter import IntervalRegressor, interval_scorer
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(1, 9, size=(600, 1))
    >>> y = X[:, 0] * rng.normal(1, 0.1, size=600)
    >>> model = IntervalRegressor(LinearRegression(), random_state=0)
    >>> search = GridSearchCV(model, {"width": ["constant", "scaled"]}, scoring=interval_scorer)
    >>> search.fit(X, y).best_params_
    {'width': 'scaled'}
    """
    model, features = _holder(estimator, X, "predict_interval")
    level = getattr(model, "confidence_level", None)
    if level is None:
        msg = (
            f"interval_scorer needs to know the level of the intervals, but {type(model).__name__} has no "
            f"confidence_level. Use an IntervalRegressor, or call interval_score with the level."
        )
        raise TypeError(msg)
    # An estimator that is told another level after its fit goes on with the old one unless it is asked for it.
    asked = {"confidence_level": level} if "confidence_level" in signature(model.predict_interval).parameters else {}
    return -float(interval_score(y, model.predict_interval(features, **asked), level, sample_weight=sample_weight))


def coverage_scorer(estimator: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
    """Coverage of an estimator's intervals, for `cross_validate` and as a second metric of `GridSearchCV`.

    A search that maximises coverage alone takes the widest intervals: let it refit by `interval_scorer`.

    Parameters
    ----------
    estimator : object with `predict_interval`
        Such as a fitted `IntervalRegressor`, also as the last step of a pipeline or inside another search.
    X : array-like
        Features of rows that the estimator has not seen.
    y : array-like of shape (n,) or (n, k)
        Their targets.
    sample_weight : array-like of shape (n,), optional
        How much each row counts in the score.

    Returns
    -------
    float
        ``coverage_score(y, estimator.predict_interval(X))``.

    Raises
    ------
    TypeError
        If the estimator has no `predict_interval`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> from pimeter import IntervalRegressor, coverage_scorer
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(1, 9, size=(600, 1))
    >>> y = X[:, 0] + rng.normal(size=600)
    >>> model = IntervalRegressor(LinearRegression(), confidence_level=0.9, random_state=0)
    >>> round(float(cross_val_score(model, X, y, scoring=coverage_scorer).mean()), 2)
    0.91
    """
    model, features = _holder(estimator, X, "predict_interval")
    return float(coverage_score(y, model.predict_interval(features), sample_weight=sample_weight))


def crps_scorer(estimator: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
    """Score an estimator by its predictive distribution: minus the CRPS, greater is better.

    Parameters
    ----------
    estimator : object with `predict_quantile`
        Such as a fitted `IntervalRegressor`, also as the last step of a pipeline or inside another search.
    X : array-like
        Features of rows that the estimator has not seen.
    y : array-like of shape (n,) or (n, k)
        Their targets.
    sample_weight : array-like of shape (n,), optional
        How much each row counts in the score.

    Returns
    -------
    float
        Minus `crps_score` of the quantiles at 20 levels, .025, .075, ... .975.

    Raises
    ------
    TypeError
        If the estimator has no `predict_quantile`.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter import crps_scorer
    >>> class Uniform:
    ...     def predict_quantile(self, X, q):
    ...         return np.tile(q, (len(X), 1))
    >>> X, y = np.zeros((3, 1)), [0.2, 0.5, 0.8]
    >>> round(crps_scorer(Uniform(), X, y), 4)  # the exact CRPS is 0.1433
    -0.1437
    """
    model, features = _holder(estimator, X, "predict_quantile")
    levels = np.array(CRPS_LEVELS)
    return -float(crps_score(y, model.predict_quantile(features, levels), levels, sample_weight=sample_weight))


def _holder(estimator: Any, X: Any, method: str) -> tuple[Any, Any]:
    """Who has the method, inside pipelines and searches, and the features as they arrive there."""
    if hasattr(estimator, method):
        return estimator, X
    if hasattr(estimator, "best_estimator_"):
        return _holder(estimator.best_estimator_, X, method)
    from sklearn.pipeline import Pipeline

    if isinstance(estimator, Pipeline):
        return _holder(estimator[-1], estimator[:-1].transform(X) if len(estimator) > 1 else X, method)
    scorer, remedy = (
        ("crps_scorer", "Score its intervals with interval_scorer instead")
        if method == "predict_quantile" and hasattr(estimator, "predict_interval")
        else (
            f"A scorer of {method.removeprefix('predict_')}s",
            f"Wrap it: IntervalRegressor({type(estimator).__name__}(...))",
        )
    )
    msg = f"{scorer} calls {method}, which {type(estimator).__name__} does not have. {remedy}."
    raise TypeError(msg)


class _Aligned(NamedTuple):
    """Targets and bounds that broadcast."""

    target: Array
    lower: Array
    upper: Array
    outputs: bool  # whether the second axis is one of outputs
    n_levels: int | None  # length of the last axis where it is one of levels


def _aligned(y_true: ArrayLike, y_interval: ArrayLike) -> _Aligned:
    """Validate both; the targets get a last axis of length 1 where the intervals have levels."""
    target, interval = _targets(y_true), _numbers("y_interval", y_interval, infinite=True)
    axis = target.ndim
    fits = interval.ndim in {axis + 1, axis + 2} and interval.shape[:axis] == target.shape and interval.shape[axis] == 2
    if not fits:
        shape = ", ".join(map(str, target.shape))
        msg = (
            f"For y_true of shape {target.shape} y_interval must have shape ({shape}, 2), or ({shape}, 2, L) for L "
            f"levels; got {interval.shape}. Give the lower and the upper bound of each target; ravel() makes a single "
            f"column of targets (n,), and of a frame take the columns lower and upper."
        )
        raise ValueError(msg)
    lower, upper = _ordered(interval, axis)
    if interval.ndim == axis + 1:
        return _Aligned(target, lower, upper, axis == 2, None)
    return _Aligned(target[..., None], lower, upper, axis == 2, interval.shape[-1])


def _ordered(interval: Array, axis: int) -> tuple[Array, Array]:
    """Lower and upper bounds, or a ValueError where no number lies between them."""
    lower, upper = np.moveaxis(interval, axis, 0)
    empty = (lower > upper) | (lower == np.inf) | (upper == -np.inf)
    if empty.any():
        where = ", ".join(str(i) for i in np.argwhere(empty)[0])
        msg = (
            f"A lower bound must not exceed its upper bound; at [{where}] they are {lower[empty][0]} and "
            f"{upper[empty][0]} ({empty.sum()} such of {empty.size}). Check the order of the bounds."
        )
        raise ValueError(msg)
    return lower, upper


def _bound_axis(shape: tuple[int, ...], given: int | None) -> int:
    """Which axis holds the bounds, found by its length or as told."""
    possible = [axis for axis in (1, 2) if len(shape) - axis in {1, 2} and shape[axis] == 2]
    if given is not None and given in possible:
        return given
    if given is not None or not possible:
        told = "" if given is None else f" and bound_axis={given}"
        expected = "(n, 2) or (n, k, 2), or (n, 2, L) or (n, k, 2, L) with L levels"
        msg = f"y_interval must have shape {expected}; got {shape}{told}."
        raise ValueError(msg)
    if len(possible) > 1:
        msg = (
            f"y_interval of shape {shape} may be two outputs or two levels. Say which axis holds the bounds: "
            f"bound_axis=2 for outputs, bound_axis=1 for levels."
        )
        raise ValueError(msg)
    return possible[0]


def _targets(y_true: ArrayLike) -> Array:
    target = _numbers("y_true", y_true)
    if target.ndim not in {1, 2}:
        msg = f"y_true must have shape (n,) or (n, k); got {target.shape}."
        raise ValueError(msg)
    return target


def _numbers(name: str, values: ArrayLike, infinite: bool = False) -> Array:
    """Real numbers as float64, or a ValueError that names the array."""
    array = real_array(name, values)
    if array.size == 0:
        msg = f"{name} must hold at least one value; got shape {array.shape}."
        raise ValueError(msg)
    numbers: Array = array.astype(np.float64, copy=False)
    bad = np.isnan(numbers) if infinite else ~np.isfinite(numbers)
    if bad.any():
        where = ", ".join(str(i) for i in np.argwhere(bad)[0])
        msg = (
            f"{name} must {'not be NaN' if infinite else 'be finite'}; {name}[{where}] is {numbers[bad][0]} "
            f"({bad.sum()} such of {bad.size} values). Leave these rows out."
        )
        raise ValueError(msg)
    return numbers


def _check_levels(name: str, level: Array) -> None:
    if not ((level > 0) & (level < 1)).all():
        msg = f"{name} must be between 0 and 1, both excluded; got {level.tolist()}. 95 % is 0.95."
        raise ValueError(msg)


def _levels_of(confidence_level: ArrayLike, n_levels: int | None) -> Array:
    """The level of each interval: a number, or one for each place on the axis of levels."""
    level = real_array("confidence_level", confidence_level).astype(np.float64)
    _check_levels("confidence_level", level)
    if level.shape not in ({()} if n_levels is None else {(n_levels,), ()} if n_levels == 1 else {(n_levels,)}):
        expected = "a number, as y_interval has no axis of levels" if n_levels is None else f"{n_levels} numbers"
        msg = f"confidence_level must be {expected}; got {level.tolist()}. Give the levels that y_interval aims at."
        raise ValueError(msg)
    return level


def _level_weights(levels: Array) -> Array:
    """Length of the part of (0, 1) that is nearest to each level."""
    order = np.argsort(levels)
    inner = (levels[order][1:] + levels[order][:-1]) / 2.0
    weights = np.empty_like(levels)
    weights[order] = np.diff(np.concatenate([[0.0], inner, [1.0]]))
    return weights


def _checked_weight(sample_weight: ArrayLike | None, n: int) -> Array | None:
    if sample_weight is None:
        return None
    weight = _numbers("sample_weight", sample_weight)
    if weight.shape != (n,) or (weight < 0).any() or not weight.any():
        msg = (
            f"sample_weight must be {n} numbers, one per row, none negative, not all 0; got shape {weight.shape} from "
            f"{weight.min()} to {weight.max()}."
        )
        raise ValueError(msg)
    return weight * safe_factor(float(weight.max()))  # only ratios count, and sums of the largest floats are none


def _mean_row(values: NDArray[Any], sample_weight: ArrayLike | None) -> Array:
    """Mean over rows; those of weight 0 are left out, as 0 times an infinite width is not a number."""
    weight = _checked_weight(sample_weight, len(values))
    if weight is None:
        return np.asarray(values.mean(axis=0))
    return np.asarray(np.average(values[weight > 0], axis=0, weights=weight[weight > 0]))


def _extent(target: Array, target_range: ArrayLike | None, sample_weight: ArrayLike | None) -> Array:
    """Range of each output's target, as given or of the rows that count, in the shape of a mean row."""
    if target_range is None:
        weight = _checked_weight(sample_weight, len(target))
        extent = np.asarray(np.ptp(target if weight is None else target[weight > 0], axis=0))
    else:
        extent = _numbers("target_range", target_range)
        if extent.ndim and extent.shape != target.shape[1:2]:
            msg = f"target_range must be a number or one per output; got shape {extent.shape}."
            raise ValueError(msg)
        if target.ndim == 3 and extent.ndim:
            extent = extent[:, None]  # beside the levels
    if not ((extent > 0) & (extent < np.inf)).all():
        whose = "y_true" if target_range is None else "target_range"
        msg = (
            f"The width is measured in units of the target's range, positive and finite; that of {whose} is "
            f"{extent.squeeze()}. Give target_range, such as the range of all targets known."
        )
        raise ValueError(msg)
    return extent


def _over_outputs(score: Array, has_outputs: bool, multioutput: Multioutput, *origins: Array) -> Any:
    """Mean over outputs if there are any and it is asked for; what is one number becomes a float."""
    if multioutput not in {"uniform_average", "raw_values"}:
        msg = f"multioutput must be 'uniform_average' or 'raw_values'; got {multioutput!r}."
        raise ValueError(msg)
    if has_outputs and multioutput == "uniform_average":
        score = score.mean(axis=0)
    if not np.isfinite(score).all() and all(np.isfinite(part).all() for part in origins):
        msg = "The score is too large for float64: measure y_true and the intervals or quantiles in a larger unit."
        raise ValueError(msg)
    return score if np.ndim(score) else float(score)
