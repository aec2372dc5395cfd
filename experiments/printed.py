"""The paper's neuron exactly as it is printed: beta = 1000, learning rate .005, descent to the closest approach.

The text names beta and rate ("for most of the experiments"); the first weight z_p / sqrt(5000) is that of its scripts.
Appendix A.1 stops at the epoch of closest approach. A weight that has hardly moved counts as "NA" (section C.4). What
`pimeter.quantile` finds is the root of the same equation with a beta that follows the errors.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.exceptions import ConvergenceWarning

from pimeter.paper import DescendingNeuron

Array: TypeAlias = NDArray[np.float64]

BETA = 1000.0
LEARNING_RATE = 0.005
N_START = 5000
UNMOVED = 1e-7  # a weight so near to its start is not available


def start(level: float) -> float:
    """The first weight: a normal quantile of absolute errors, over the root of 5,000."""
    return float(ndtri((1.0 + level) / 2.0) / np.sqrt(N_START))


def printed_neuron(level: float) -> DescendingNeuron:
    """A neuron with the paper's settings."""
    return DescendingNeuron(level, beta=BETA, learning_rate=LEARNING_RATE, start=start(level))


class Trained(NamedTuple):
    """Weights, NaN where they have not moved; whether each arrived; the paper's bound of its error (A.1)."""

    weights: Array
    arrived: NDArray[np.bool_]
    bounds: Array


def descended(errors: Array, level: float) -> DescendingNeuron:
    """A trained neuron for each column of absolute errors (m, k)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # counted by the caller
        return printed_neuron(level).fit(errors)


def after(neurons: DescendingNeuron, n_steps: int) -> Array:
    """Weights of the closest approach within the first steps."""
    losses, weights = neurons.loss_curve_[: n_steps + 1], neurons.weight_curve_[: n_steps + 1]
    best = np.nanargmin(losses, axis=0)[None]
    return np.asarray(np.take_along_axis(weights, best, axis=0)[0])


def trained(errors: Array, level: float) -> Trained:
    """Weights of a neuron for each column of absolute errors (m, k)."""
    neuron = descended(errors, level)
    weights = np.asarray(neuron.quantile_, float)
    moved = np.abs(weights - start(level)) > UNMOVED
    return Trained(np.where(moved, weights, np.nan), np.asarray(neuron.converged_), np.asarray(neuron.error_bound_))


def weight(errors: Array, level: float) -> float:
    """The weight of one neuron; NaN without errors, or where it has not moved."""
    return float(trained(errors[:, None], level).weights[0]) if len(errors) else float("nan")
