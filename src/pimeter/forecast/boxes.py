"""`Box`: the shape of a cone that holds all steps of a window at once, whose size one more neuron learns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pimeter.forecast.steps import known_quantile, smoothed, step_quantiles
from pimeter.forecast.window_arrays import LARGEST_ERROR

if TYPE_CHECKING:
    from pimeter.conformal.scores import Tails
    from pimeter.protocols import Array

THINNEST_SIDE = 1e-9  # side of a joint cone, in units of its widest


@dataclass(frozen=True)
class Box:
    """The shape of a joint interval over k steps: one more neuron learns how large the box has to be.

    That neuron sees the `scores` of rows from which the shape was not learned: on its own rows the shape fits too well
    (5 steps, 40 rows, 95 %: 91 % covered). A new row is inside the box of size r at all steps at once if and only
    if its score is at most r, so that what holds for one neuron on scores holds for the whole row.
    """

    below: Array  # (k,), margins of the box of size 1 below its centre, not negative; infinite for no bound there
    above: Array
    centre: Array  # (k,), residual in the middle, such as the median; 0 for an interval around the prediction

    def scores(self, errors: Array) -> Array:
        """Least size of the box that holds all k errors of a row, (m,) for signed errors (m, k); NaN if one is NaN."""
        distance = errors - self.centre
        margin = np.where(distance < 0.0, self.below, self.above)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            needed = np.where(distance == 0.0, 0.0, np.abs(distance) / margin)
        largest: Array = needed.max(axis=1)
        return largest

    def margins(self, size: float) -> Array:
        """Margins of the box of this size below and above the prediction, (k, 2)."""
        sides = np.stack([self.below, self.above], axis=1)
        scaled = np.full(sides.shape, np.inf)
        if math.isfinite(size):
            with np.errstate(over="ignore"):  # a box beyond all floats has no bound
                np.multiply(sides, size, out=scaled, where=np.isfinite(sides))
        return np.asarray(scaled + self.centre[:, None] * [-1.0, 1.0])


def learned_boxes(errors: Array, tails: Tails, p: float, *, is_smooth: bool) -> list[Box]:
    """The shape of the cone for each series, learned from errors (series, h, n)."""
    if not errors.size or np.isnan(errors).all(axis=-1).any():
        msg = (
            f"joint=True learns the shape of the cone from the first half of the windows, {errors.shape[-1]} here; "
            f"each step has to be known in at least one of them."
        )
        raise ValueError(msg)
    sides = tails.margins(step_quantiles(errors, tails, p))
    sides = smoothed(sides, tails) if is_smooth else sides
    centre = known_quantile(errors, 0.5) if tails.has_centre else np.zeros(errors.shape[:2])
    # No side is without any width: one error beyond it would make the whole cone infinite.
    shape = np.maximum(sides + np.stack([centre, -centre], axis=-1), 0.0)
    largest = np.where(np.isfinite(shape), shape, 0.0).max(axis=(1, 2), keepdims=True)
    least = np.where(largest > 0.0, np.maximum(THINNEST_SIDE * largest, np.finfo(np.float64).tiny), 1.0)
    below, above = np.moveaxis(np.maximum(shape, least), -1, 0)
    return [Box(*own) for own in zip(below, above, centre, strict=True)]


def box_scores(boxes: list[Box], errors: Array) -> Array:
    """What the joint neurons see of errors (series, h, n): (series, 1, n)."""
    found = np.stack([box.scores(own.T) for box, own in zip(boxes, errors, strict=True)])[:, None, :]
    if (found > LARGEST_ERROR).any():
        msg = f"errors of one window are more than {LARGEST_ERROR:g} times as large as usual. Leave it out."
        raise ValueError(msg)
    return found
