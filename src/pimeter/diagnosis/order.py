"""Does the order of rows matter? Permutation tests for drift and for serial dependence.

Both look at the ranks of the errors (their level) and at the ranks of their sizes (their spread), and take the larger
of the two. Seeds are fixed, so the same rows give the same answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pimeter.arrays import ranks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

N_SHUFFLES = 499
N_LAGS = 10
BLOCK = 20  # rows that are shuffled as one, so that serial dependence does not pass for drift
TRENDS = 10  # parts of the rows whose own level is taken off, so that drift does not pass for serial dependence
LEAST = 20  # rows in such a part


class OrderTest(NamedTuple):
    """A statistic, its typical value under shuffling, and how often shuffling exceeds it."""

    value: float
    shuffled: float  # median
    p_value: float


def drift(errors: Array) -> OrderTest:
    """Largest cumulative departure of ranks from their mean, in units of a random walk's standard deviation."""
    length = min(max(len(errors) // 25, 1), BLOCK)
    n_blocks = len(errors) // length
    sums = [own[: n_blocks * length].reshape(n_blocks, length).sum(axis=1) for own in _ranks(errors)]
    rng = np.random.default_rng(len(errors))
    order = np.argsort(rng.random((N_SHUFFLES, n_blocks)), axis=1)
    order = np.vstack([np.arange(n_blocks), order])
    largest = np.zeros(N_SHUFFLES + 1)
    for one in sums:
        centred = one - one.mean()
        spread = float(np.sqrt(centred @ centred)) or 1.0
        largest = np.maximum(largest, np.abs(np.cumsum(centred[order], axis=1)).max(axis=1) / spread)
    return _judged(largest)


def serial_dependence(errors: Array) -> OrderTest:
    """Largest autocorrelation of ranks over the first lags, each part of the rows around its own mean."""
    m = len(errors)
    n_lags = min(N_LAGS, m // 4)
    part = np.arange(m) * min(TRENDS, m // LEAST) // m
    starts = np.flatnonzero(np.diff(part, prepend=-1))
    counts = np.diff(starts, append=m)
    rng = np.random.default_rng(m)
    order = np.tile(np.arange(m), (N_SHUFFLES + 1, 1))
    rng.permuted(order[1:], axis=1, out=order[1:])
    largest = np.zeros(N_SHUFFLES + 1)
    for own in _ranks(errors):
        shuffled = own[order]
        shuffled -= (np.add.reduceat(shuffled, starts, axis=1) / counts)[:, part]
        power = np.einsum("ij,ij->i", shuffled, shuffled)
        power[power == 0.0] = 1.0
        for lag in range(1, n_lags + 1):
            product = np.einsum("ij,ij->i", shuffled[:, lag:], shuffled[:, :-lag])
            largest = np.maximum(largest, np.abs(product) / power)
    return _judged(largest)


def _ranks(errors: Array) -> list[Array]:
    """Centred ranks of errors and of their sizes around the median."""
    sizes = np.abs(errors - np.median(errors))
    return [ranks(values) - (len(errors) + 1) / 2 for values in (errors, sizes)]


def _judged(statistics: Array) -> OrderTest:
    """The first one beside the others, which were shuffled."""
    first, others = statistics[0], statistics[1:]
    exceeded = int(np.count_nonzero(others >= first * (1.0 - 1e-12)))
    return OrderTest(float(first), float(np.median(others)), (1 + exceeded) / (1 + len(others)))
