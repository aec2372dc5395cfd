"""Losses of single rows that a threshold decides on: shortfalls, set size, and functions of your own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pimeter.arrays import real_array
from pimeter.coverage import counted
from pimeter.validation import first_index

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from pimeter.protocols import Array

N_MARGINS = 4097  # of orders, between that of the least and that of the largest possible target
LOSS_ROUNDING = 1e-12  # of a loss in proportion to its bound

OwnLoss = Callable[..., "ArrayLike"]


class RowLosses(NamedTuple):
    """Losses at each of some thresholds, in proportion to their bound; thresholds from the safest to the riskiest."""

    thresholds: Array
    at: Callable[[int], Array]  # losses (n,) at the threshold in this place, between 0 and 1
    bound: float
    safest: float
    is_monotone: bool
    is_binary: bool = False


def shortfall(y: Array, prediction: Array, y_min: float, y_max: float) -> RowLosses:
    """Losses of orders, which are the prediction plus a margin: by how much targets exceed them."""
    bound = y_max - y_min
    possible = order(prediction, 0.0, y_min, y_max)
    margins = np.linspace(y_max - possible.min(), y_min - possible.max(), N_MARGINS)

    def at(place: int) -> Array:
        short: Array = np.maximum(y - order(prediction, float(margins[place]), y_min, y_max), 0.0) / bound
        return short

    return RowLosses(margins, at, bound, np.inf, True)


def order(prediction: Array, margin: float, y_min: float, y_max: float) -> Array:
    """The prediction plus a margin, both cut at the possible targets."""
    found: Array = np.clip(np.clip(prediction, y_min, y_max) + margin, y_min, y_max)
    return found


def set_size(score: Array) -> RowLosses:
    """How many classes have a score above the threshold."""
    cuts = np.append(np.unique(score)[::-1], -np.inf)

    def at(place: int) -> Array:
        size: Array = (score > cuts[place]).mean(axis=1)
        return size

    return RowLosses(cuts, at, float(score.shape[1]), np.inf, True)


def own_loss(loss: OwnLoss, y: NDArray[Any], score: NDArray[Any], thresholds: Array, bound: float) -> RowLosses:
    """Losses by a function of targets, scores and a threshold, each checked."""
    columns = [_checked(loss(y, score, one), len(y), bound, one) for one in thresholds.tolist()]
    table = np.stack([column / bound for column in columns])
    is_monotone = bool((np.diff(table, axis=0) >= -LOSS_ROUNDING).all())
    is_binary = bound == 1.0 and all(column.dtype == np.bool_ for column in columns)
    return RowLosses(thresholds, table.__getitem__, bound, float("nan"), is_monotone, is_binary)


def _checked(losses: ArrayLike, n: int, bound: float, threshold: float) -> NDArray[Any]:
    """Losses of all rows between 0 and the bound."""
    found = real_array("the loss", losses)
    if found.shape != (n,):
        msg = (
            f"The loss at threshold {threshold:g} has shape {found.shape}; return one number for each of the "
            f"{counted(n, 'row')}."
        )
        raise ValueError(msg)
    wrong = ~((found >= 0.0) & (found <= bound * (1.0 + LOSS_ROUNDING)))
    if wrong.any():
        msg = (
            f"The loss at threshold {threshold:g} is {found[wrong][0]:g} in row {first_index(wrong)}; losses must lie "
            f"between 0 and bound={bound:g}. Nothing can be guaranteed of an unbounded loss: clip it, such as with "
            "numpy.minimum(loss, bound), or give the largest value that it can have as bound."
        )
        raise ValueError(msg)
    return found if found.dtype == np.bool_ else np.minimum(found, bound)
