"""Stacking: the weights of several pairs of bounds whose mean has the least interval score."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pimeter.conformal.scores import Tails
    from pimeter.protocols import Array

DESCENT_STEPS = 300  # of mirror descent, from equal weights; their mean is shrunk towards these a little
FIRST_STEP = 2.0  # in units of the loss of the first bounds


class Bounds(NamedTuple):
    """How far bounds lie below and above predictions, (n, k) each; negative beyond the prediction."""

    lower: Array
    upper: Array

    @classmethod
    def mean(cls, bounds: Sequence[Bounds], weights: Array) -> Bounds:
        """The weighted mean of several bounds of the same rows."""
        return cls(*(np.tensordot(weights, np.stack(sides), axes=1) for sides in zip(*bounds, strict=True)))


def interval_losses(bounds: Sequence[Bounds], residuals: Array, level: float, tails: Tails) -> Array:
    """Interval score of each pair of bounds, row and output, (b, n, k).

    With both bounds residuals cancel; with one this is the pinball loss, which the unit of y cannot shift.
    """
    present = [tails.has_lower, tails.has_upper]
    penalty = sum(present) / (1.0 - level)
    scores = np.zeros((len(bounds), *residuals.shape))
    for i, pair in enumerate(bounds):
        for sign, bound, is_there in zip((-1.0, 1.0), pair, present, strict=True):
            if is_there:
                scores[i] += bound - sign * residuals + penalty * np.maximum(sign * residuals - bound, 0.0)
    return scores


def stacked_weights(bounds: Sequence[Bounds], residuals: Array, unit: Array, level: float, tails: Tails) -> Array:
    """Weights, which sum to 1, of the bounds whose mean has the least interval score in units (k,) of each output.

    The score is convex in the weights: exponentiated gradients from equal weights, averaged over all steps.
    """
    present = [tails.has_lower, tails.has_upper]
    penalty = sum(present) / (1.0 - level)
    sides = [
        (sign, np.stack([pair[i] / unit for pair in bounds]).reshape(len(bounds), -1))
        for i, sign in enumerate((-1.0, 1.0))
        if present[i]
    ]
    targets = (residuals / unit).ravel()
    logs, total = np.zeros(len(bounds)), np.zeros(len(bounds))  # as logarithms, weights that were 0 can come back
    weights = np.full(len(bounds), 1.0 / len(bounds))
    for step in range(1, DESCENT_STEPS + 1):
        gradient = np.zeros(len(bounds))
        for sign, side in sides:
            gradient += side @ (1.0 - penalty * (sign * targets > weights @ side)) / len(targets)
        logs -= FIRST_STEP / step**0.5 * gradient
        logs -= logs.max()
        weights = np.exp(logs)
        weights /= weights.sum()
        total += weights
    return total / DESCENT_STEPS
