"""What a `RiskController` is given, checked and brought into one form."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from pimeter.classification.inputs import class_labels, refuse_missing
from pimeter.risk.losses import OwnLoss, RowLosses, own_loss, shortfall
from pimeter.risk.rates import RATES
from pimeter.validation import finite_numbers, one_level

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pimeter.protocols import Array, Flags

LARGEST_TARGET = 1e300  # target: distances stay finite


def rate_risk(name: str, level: Any, guarantee: str) -> float:
    """Largest rate of errors that a level of this rate allows."""
    level = one_level(f"level of {name!r}", level)
    if guarantee == "marginal" and RATES[name].among == "declared":
        msg = (
            f'guarantee="marginal" is for losses of single rows, and {name!r} is a ratio among the rows that are '
            'declared, which may rise and fall with the threshold. Use guarantee="training-conditional".'
        )
        raise ValueError(msg)
    return RATES[name].risk(level)


def one_score(given: ArrayLike) -> Array:
    """A finite score for each row."""
    score = finite_numbers("score", given)
    if score.ndim != 1:
        msg = f"score must hold one number for each row, such as y_score[:, 1]; got shape {score.shape}."
        raise ValueError(msg)
    return score


def class_score(given: ArrayLike) -> Array:
    """A finite score for each row and class."""
    score = finite_numbers("score", given)
    if score.ndim != 2:
        msg = f'"set_size" needs a score for each class, of shape (n, n_classes); got shape {score.shape}.'
        raise ValueError(msg)
    return score


def positives(y_true: ArrayLike | None, n: int, pos_label: Hashable) -> Flags:
    """Which rows are of the positive class, of two."""
    labels = refuse_missing("y_true", class_labels("y_true", _given(y_true), n))
    others = [label for label in labels.classes if label != pos_label]
    if len(others) > 1 or (pos_label not in labels.classes and others not in ([0], [-1])):
        msg = (
            f"y_true must hold pos_label={pos_label!r} and one other class; got {labels.classes[:5]!r}. Say with "
            "pos_label which class scores are about; of several classes compare one with all others."
        )
        raise ValueError(msg)
    if pos_label not in labels.classes:
        return np.zeros(n, bool)
    return np.asarray(labels.codes == labels.classes.index(pos_label))


def beyond(y_true: ArrayLike | None, n: int, limit: float | None) -> Flags:
    """Which targets are above the limit."""
    if limit is None or not math.isfinite(limit):
        msg = f'"exceedance" needs limit, a number: targets above it are not safe; got limit={limit!r}.'
        raise ValueError(msg)
    return np.asarray(_targets(y_true, n) > limit)


def shortfalls(y_true: ArrayLike | None, prediction: Array, y_min: float, y_max: float | None) -> RowLosses:
    """What orders lack, where possible targets are bounded."""
    y = _targets(y_true, len(prediction))
    if y_max is None or not math.isfinite(y_max):
        msg = (
            '"shortfall" needs y_max, the largest possible target: a shortfall without a bound can be so large and so '
            "rare that no number of rows guarantees its mean. Give y_max, or have a quantile guaranteed instead: "
            'IntervalRegressor(model, tails="upper").'
        )
        raise ValueError(msg)
    if max(abs(y_min), abs(y_max)) > LARGEST_TARGET:
        msg = f"y_min={y_min:g} and y_max={y_max:g} are too large to compute with; choose a larger unit."
        raise ValueError(msg)
    if not (math.isfinite(y_min) and y_min <= y.min() and y.max() <= y_max and y_min < y_max):
        msg = f"Targets must lie between y_min={y_min:g} and y_max={y_max:g}; got {y.min():g} to {y.max():g}."
        raise ValueError(msg)
    return shortfall(y, prediction, float(y_min), float(y_max))


def own_losses(
    loss: OwnLoss,
    y_true: ArrayLike | None,
    score: ArrayLike,
    bound: float | None,
    thresholds: ArrayLike | None,
    guarantee: str,
) -> RowLosses:
    """Losses by a function of the caller's."""
    if bound is None or not math.isfinite(bound):
        msg = (
            "A loss function of your own needs bound, the largest value that it can have: nothing can be guaranteed of "
            "the mean of an unbounded loss. Clip it, such as with numpy.minimum(loss, 10), and give bound=10."
        )
        raise ValueError(msg)
    if thresholds is None:
        msg = (
            "A loss function of your own needs thresholds, from the safest to the riskiest, chosen without a look at "
            "these rows, such as numpy.linspace(1, 0, 101)."
        )
        raise ValueError(msg)
    tried = np.atleast_1d(finite_numbers("thresholds", thresholds))
    y, scores = np.asarray(_given(y_true)), np.asarray(score)
    if tried.ndim != 1 or y.ndim == 0 or scores.ndim == 0 or len(y) != len(scores) or not len(y):
        msg = (
            "y_true and score must have one value for each row, and thresholds must be one row of numbers; got shapes "
            f"{y.shape}, {scores.shape} and {tried.shape}."
        )
        raise ValueError(msg)
    found = own_loss(loss, y, scores, tried, float(bound))
    if guarantee == "marginal" and not found.is_monotone:
        msg = (
            'guarantee="marginal" needs a loss that falls in no row from one of the thresholds to the next; this one '
            "does. Turn the thresholds round if they go from the riskiest to the safest; else use "
            'guarantee="training-conditional", which needs no monotone loss.'
        )
        raise ValueError(msg)
    return found


def _given(y_true: ArrayLike | None) -> ArrayLike:
    if y_true is None:
        msg = 'y_true is None, which only "set_size" can do without.'
        raise ValueError(msg)
    return y_true


def _targets(y_true: ArrayLike | None, n: int) -> Array:
    y = finite_numbers("y_true", _given(y_true))
    if y.shape != (n,):
        msg = f"y_true must hold one target for each of the {n} rows of score; got shape {y.shape}."
        raise ValueError(msg)
    return y
