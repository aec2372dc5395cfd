"""Does the order of rows matter? Permutation tests for drift and for serial dependence, and the checks that use them.

Both look at the ranks of residuals (their level) and at those of their distances from the median (their spread), and
take the larger of the two. Seeds are fixed, so the same rows give the same answer.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pimeter.arrays import ranks
from pimeter.evaluation.diagnosis.check import Check, too_little
from pimeter.evaluation.diagnosis.evidence import SIGNIFICANCE, Evidence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from pimeter.findings import Finding

    Array = NDArray[np.float64]

N_SHUFFLES = 499
N_LAGS = 10
ROWS_PER_BLOCK = 20  # that are shuffled as one, so that serial dependence does not pass for drift
N_STRETCHES = 10  # of the rows whose own level is taken off, so that drift does not pass for serial dependence
MIN_ROWS_PER_STRETCH = 20


class OrderTest(NamedTuple):
    """A statistic, its typical value under shuffling, and how often shuffling exceeds it."""

    value: float
    shuffled: float  # median
    p_value: float


class Drift(Check[Evidence]):
    """Whether the level or the spread of residuals changes in the course of the rows."""

    name = "drift"
    question = "Do the residuals change in the course of the rows?"
    looks_at = "up to 5,000 residuals, drawn at random and kept in their order"
    statistic = "largest cumulative departure of their ranks from the mean, by permutation of blocks"
    threshold = 0.1  # least shift of the median that matters, in margins ...
    least_ratio = 1.25  # ... or least ratio of the spreads of two stretches of the rows

    def _judged(self, evidence: Evidence, _earlier: Mapping[str, Finding]) -> Finding:
        return self.judge(evidence.some_residuals, evidence.margin)

    def judge(self, residuals: Array, margin: float) -> Finding:
        """From residuals in their order, and the margin that says what is much."""
        m = len(residuals)
        if why := too_little(residuals):
            return self.finding(m, f"{why} to see a drift.")
        test = drift(residuals)
        sentence = (
            f"Departures of residuals from their mean, summed up in the order given, come to {test.value:.2g} "
            f"(shuffled {test.shuffled:.2g}, p = {test.p_value:.2g})"
        )
        advice = ""
        if test.p_value > SIGNIFICANCE:
            sentence += ": no drift."
        elif not self._is_much(residuals, margin):
            sentence += ": a drift too small to matter."
        else:
            sentence += ": residuals drift."
            advice = (
                "Residuals drift in the order given, so the past does not guarantee the future: learn on with each new "
                "residual (an online neuron), and train the model anew. If the order has no meaning, find out what it "
                "stands for."
            )
        return self.finding(m, sentence, advice, value=test.value, reference=test.shuffled, p_value=test.p_value)

    def _is_much(self, residuals: Array, margin: float) -> bool:
        """Whether medians or spreads of five stretches of the rows differ by enough to matter."""
        stretches = np.array_split(residuals, 5)
        shift = max(abs(float(np.median(own) - np.median(residuals))) for own in stretches)
        spreads = [float(np.median(np.abs(own - np.median(own)))) for own in stretches]
        ratio = max(spreads) / min(spreads) if min(spreads) > 0.0 else math.inf
        return shift >= self.threshold * margin or ratio >= self.least_ratio


class SerialDependence(Check[Evidence]):
    """Whether residuals resemble those shortly before."""

    name = "serial"
    question = "Do residuals depend on those shortly before?"
    looks_at = "the first 5,000 residuals, which follow each other"
    statistic = "largest autocorrelation of their ranks over ten lags, by permutation"
    threshold = 0.1  # least autocorrelation that matters

    def _judged(self, evidence: Evidence, _earlier: Mapping[str, Finding]) -> Finding:
        return self.judge(evidence.first_residuals)

    def judge(self, residuals: Array) -> Finding:
        """From residuals that follow each other."""
        m = len(residuals)
        if why := too_little(residuals):
            return self.finding(m, f"{why} to see serial dependence.")
        test = serial_dependence(residuals)
        shuffled = f"shuffled {test.shuffled:.2f}, p = {test.p_value:.2g}"
        sentence, advice = f"The largest autocorrelation of ranks is {test.value:.2f} ({shuffled})", ""
        if test.p_value > SIGNIFICANCE:
            sentence += ": no serial dependence."
        elif test.value < self.threshold:
            sentence += ": too little to matter."
        else:
            sentence += ": residuals depend on each other."
            advice = (
                "Residuals depend on those before them, so these rows guarantee less than their number says: learn on "
                "with each new residual (an online neuron), and let the model know its last residuals."
            )
        return self.finding(m, sentence, advice, value=test.value, reference=test.shuffled, p_value=test.p_value)


def drift(residuals: Array) -> OrderTest:
    """Largest cumulative departure of ranks from their mean, in units of a random walk's standard deviation."""
    length = min(max(len(residuals) // 25, 1), ROWS_PER_BLOCK)
    n_blocks = len(residuals) // length
    sums = [own[: n_blocks * length].reshape(n_blocks, length).sum(axis=1) for own in _ranks(residuals)]
    rng = np.random.default_rng(len(residuals))
    order = np.argsort(rng.random((N_SHUFFLES, n_blocks)), axis=1)
    order = np.vstack([np.arange(n_blocks), order])
    largest = np.zeros(N_SHUFFLES + 1)
    for one in sums:
        centred = one - one.mean()
        spread = float(np.sqrt(centred @ centred)) or 1.0
        largest = np.maximum(largest, np.abs(np.cumsum(centred[order], axis=1)).max(axis=1) / spread)
    return _judged(largest)


def serial_dependence(residuals: Array) -> OrderTest:
    """Largest autocorrelation of ranks over the first lags, each stretch of the rows around its own mean."""
    m = len(residuals)
    n_lags = min(N_LAGS, m // 4)
    stretch = np.arange(m) * min(N_STRETCHES, m // MIN_ROWS_PER_STRETCH) // m
    starts = np.flatnonzero(np.diff(stretch, prepend=-1))
    counts = np.diff(starts, append=m)
    rng = np.random.default_rng(m)
    order = np.tile(np.arange(m), (N_SHUFFLES + 1, 1))
    rng.permuted(order[1:], axis=1, out=order[1:])
    largest = np.zeros(N_SHUFFLES + 1)
    for own in _ranks(residuals):
        shuffled = own[order]
        shuffled -= (np.add.reduceat(shuffled, starts, axis=1) / counts)[:, stretch]
        power = np.einsum("ij,ij->i", shuffled, shuffled)
        power[power == 0.0] = 1.0
        for lag in range(1, n_lags + 1):
            product = np.einsum("ij,ij->i", shuffled[:, lag:], shuffled[:, :-lag])
            largest = np.maximum(largest, np.abs(product) / power)
    return _judged(largest)


def _ranks(residuals: Array) -> list[Array]:
    """Centred ranks of residuals and of their distances from the median."""
    distances = np.abs(residuals - np.median(residuals))
    return [ranks(values) - (len(residuals) + 1) / 2 for values in (residuals, distances)]


def _judged(statistics: Array) -> OrderTest:
    """The first one beside the others, which were shuffled."""
    first, others = statistics[0], statistics[1:]
    exceeded = int(np.count_nonzero(others >= first * (1.0 - 1e-12)))
    return OrderTest(float(first), float(np.median(others)), (1 + exceeded) / (1 + len(others)))
