"""Losses of each row and model: what scores are means of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from pimeter.arrays import even_array, is_missing
from pimeter.predictive import Predictive, predictive
from pimeter.scores import level_weights
from pimeter.validation import finite_numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pimeter.protocols import Array, Flags

CLIP = 1e-15  # probabilities are at least so far from 0 and 1 in the log loss
LARGEST_TO_RAISE = 1e70  # size of targets and predictions: fourth powers of it are floats
ROWS_OF_LOSSES_AT_ONCE = 1 << 12  # whose losses stay in the cache
MIN_ROWS_OF_CLASS = 10  # below which nothing is said of an AUC
KEYWORDS = {"intervals", "quantiles", "levels", "y_pred", "std", "samples"}


class Losses(NamedTuple):
    """Losses of each score by row and model, (rows, models), and a number by which rows are put in order."""

    columns: dict[str, NDArray[Any]]
    centre: Array  # (rows,) mean prediction


def losses_of(target: NDArray[Any], models: Mapping[str, Any], level: float) -> Losses:
    """Losses of classifiers if targets are classes and predictions classes or probabilities; else of regressors."""
    plain = [_plain(name, one, target) for name, one in models.items() if not isinstance(one, Mapping)]
    if len(plain) == len(models) and all(one.shape == target.shape for one in plain):
        if target.dtype.kind in "OUS":
            return _of_answers(target, dict(zip(models, plain, strict=True)))
        if _is_binary(target) and all(map(_are_probabilities, plain)):
            return _of_probabilities(target == 1, np.stack([one.astype(np.float64) for one in plain], axis=1))
    return _of_predictions(finite_numbers("y_true", target), models, level)


def _plain(name: str, predicted: object, target: NDArray[Any]) -> NDArray[Any]:
    """What a model says as an array with a row for each target."""
    found = even_array(name, predicted)
    if found.shape[:1] != target.shape:
        rows = f"{len(found)} rows" if found.ndim else "no rows"
        msg = f"{name!r} has {rows}, but there are {len(target)} targets: give one row for each target."
        raise ValueError(msg)
    return found


def _is_binary(target: NDArray[Any]) -> bool:
    """Whether targets are both of 0 and 1, and nothing else."""
    return bool(np.isin(target, (0, 1)).all()) and len(np.unique(target)) == 2


def _are_probabilities(predicted: NDArray[Any]) -> bool:
    """Whether all are numbers from 0 to 1."""
    return predicted.dtype.kind in "fiub" and bool(((predicted >= 0) & (predicted <= 1)).all())


def _of_answers(target: NDArray[Any], answers: Mapping[str, NDArray[Any]]) -> Losses:
    """Accuracy of answers: whether each class is the true one."""
    for name, labels in {"y_true": target, **answers}.items():
        if any(map(is_missing, labels.tolist())):
            msg = f"{name} has missing classes; leave these rows out."
            raise ValueError(msg)
        if labels.dtype.kind not in "OUS":
            msg = f"{name} holds numbers, and y_true strings: give the classes that y_true has."
            raise ValueError(msg)
    is_right = np.stack([labels == target for labels in answers.values()], axis=1)
    return Losses({"accuracy": is_right}, is_right.mean(axis=1))


def _of_probabilities(is_positive: Flags, scores: Array) -> Losses:
    """Losses of probabilities; answers of 0 and 1 alone have no log loss and no AUC."""
    found: dict[str, NDArray[Any]] = {}
    if not np.isin(scores, (0.0, 1.0)).all():
        probability = np.clip(np.where(is_positive[:, None], scores, 1.0 - scores), CLIP, 1.0)
        found = {"log_loss": -np.log(probability), "brier": (scores - is_positive[:, None]) ** 2}
        if MIN_ROWS_OF_CLASS <= np.count_nonzero(is_positive) <= len(is_positive) - MIN_ROWS_OF_CLASS:
            found["auc"] = scores
    return Losses({**found, "accuracy": (scores > 0.5) == is_positive[:, None]}, scores.mean(axis=1))


def _of_predictions(target: Array, models: Mapping[str, Any], level: float) -> Losses:
    """Losses of points, and of intervals and distributions where all models have some."""
    predictions = {name: _read(name, held, level, len(target)) for name, held in models.items()}
    points = np.stack([one.centre if isinstance(one, Predictive) else one for one in predictions.values()], axis=1)
    check_magnitude(target, points)
    errors = target[:, None] - points
    found: dict[str, NDArray[Any]] = {"mae": np.abs(errors), "rmse": errors**2}
    known = [one for one in predictions.values() if isinstance(one, Predictive)]
    if len(known) == len(predictions):
        found |= _of_intervals(target, known, level)
    return Losses(found, points.mean(axis=1))


def check_magnitude(*arrays: Array) -> None:
    """Refuse finite numbers whose fourth powers are none."""
    largest = max(_largest(values) for values in arrays)
    if largest > LARGEST_TO_RAISE:
        msg = (
            f"y_true and predictions must not exceed {LARGEST_TO_RAISE:g} in size; got {largest:g}. Use a larger unit."
        )
        raise ValueError(msg)


def _largest(values: Array) -> float:
    """Size of the largest finite number; 0 without any."""
    found = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    return found if np.isfinite(found) else float(np.abs(values[np.isfinite(values)]).max(initial=0.0))


def _of_intervals(target: Array, known: list[Predictive], level: float) -> dict[str, NDArray[Any]]:
    """Losses of intervals at a level, and of distributions where all models have one."""
    bounds = np.stack([one.bounds(level) for one in known], axis=1)
    width = _without_rounding(bounds[..., 1] - bounds[..., 0])
    outside = np.maximum(bounds[..., 0] - target[:, None], 0.0) + np.maximum(target[:, None] - bounds[..., 1], 0.0)
    found: dict[str, NDArray[Any]] = {"coverage": outside == 0.0}
    if (width <= LARGEST_TO_RAISE).all():
        found |= {"mean_width": width, "interval_score": width + 2.0 / (1.0 - level) * outside}
    if all(is_distribution(one) and np.isfinite(one.values).all() for one in known):
        found["crps"] = np.stack([crps_rows(target, one) for one in known], axis=1)
    return found


def _without_rounding(width: Array) -> Array:
    """Widths of one model that differ by rounding alone are the same."""
    finite = np.where(np.isfinite(width), width, 0.0)
    unit = 2.0 ** (np.floor(np.log2(max(float(finite.max()), np.finfo(np.float64).tiny))) - 40.0)
    return np.where(np.isfinite(width), np.round(width / unit) * unit, width)


def _read(name: str, predicted: Any, level: float, n: int) -> Predictive | Array:
    """What one model says: points, or something that has intervals."""
    if isinstance(predicted, Mapping):
        if set(predicted) <= KEYWORDS:
            return predictive(**predicted, confidence_level=level, n=n)
        keywords = "give keywords such as intervals=, quantiles= and levels=, or samples="
        msg = f"{name!r} is a dict with {[*predicted]}; {keywords}."
        raise ValueError(msg)
    shape = np.shape(predicted)
    if len(shape) == 1:
        return finite_numbers(name, predicted)
    if len(shape) == 2 and shape[1] == 1:
        return finite_numbers(name, predicted)[:, 0]
    if len(shape) == 2 and shape[1] == 2:
        return predictive(intervals=predicted, confidence_level=level, n=n)
    msg = (
        f"{name!r} has shape {shape}: predictions have shape (m,) and intervals (m, 2). Quantiles and samples "
        f"are given as a dict: {{{name!r}: {{'quantiles': ..., 'levels': ...}}}} or {{{name!r}: {{'samples': ...}}}}."
    )
    raise ValueError(msg)


def is_distribution(one: Predictive) -> bool:
    """Whether so many quantiles are known that their mean loss is that of a distribution."""
    return one.kind in {"normal", "samples"} or len(one.levels) >= 5


def crps_rows(target: Array, predictions: Predictive) -> Array:
    """Continuous ranked probability score of each row: of a normal distribution, of samples, or of quantiles."""
    if predictions.kind == "normal":
        z, spread = (target - predictions.centre) / predictions.spread, predictions.spread
        density = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
        return np.asarray(spread * (z * (2.0 * ndtr(z) - 1.0) + 2.0 * density - 1.0 / np.sqrt(np.pi)))
    n = predictions.values.shape[1]
    levels = (np.arange(n) + 0.5) / n if predictions.kind == "samples" else predictions.levels
    return 2.0 * pinball_rows(target, predictions.values, levels, level_weights(levels))


def pinball_rows(target: Array, quantiles: Array, levels: Array, weights: Array) -> Array:
    """Weighted sum over levels of the pinball losses of each row."""
    found = np.empty(len(target))
    for start in range(0, len(target), ROWS_OF_LOSSES_AT_ONCE):
        some = slice(start, start + ROWS_OF_LOSSES_AT_ONCE)
        beyond = target[some, None] - quantiles[some]
        found[some] = np.maximum(levels * beyond, (levels - 1.0) * beyond) @ weights
    return found
