"""Does the order of rows matter? Permutation tests for drift and for serial dependence, and the checks that use them.

Both look at the ranks of residuals (their level) and at those of their distances from the median (their spread), and
take the larger of the two. Seeds are fixed, so the same rows give the same answer.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pimeter.arrays import ranks, some_rows
from pimeter.evaluation.diagnosis.check import Check, by_chance, sequential_test, too_little
from pimeter.evaluation.diagnosis.evidence import MAX_ROWS, PredictionEvidence

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pimeter.findings import Finding
    from pimeter.protocols import Array, Index

OR_GROUPS = "If rows resemble each other because they belong together, give groups instead."
GROUPED = "Rows belong to groups, whose rows resemble each other: what depends on neighbours is not looked at."
SORTED = "Rows are sorted by their target: their order is not looked at. If it is that of time, give time."
N_LAGS = 10
ROWS_PER_BLOCK = (
    20  # that are shuffled as one where time is not given, so that serial dependence does not pass for drift
)
N_STRETCHES = 10  # of the rows whose own level is taken off, so that drift does not pass for serial dependence
MIN_ROWS_PER_STRETCH = 20
TREND_PER_DEPARTURE = 1.5  # trend, as a normal deviate, that counts as much as a cumulative departure of 1
NORMAL_MARGIN = 2.906  # of normal residuals at the level .95, in median distances from the median


class OrderTest(NamedTuple):
    """A statistic, its typical value by chance (rows shuffled, or signs drawn), and how often chance exceeds it."""

    value: float
    shuffled: float  # median
    p_value: float


class Drift(Check[PredictionEvidence]):
    """Whether the level or the spread of residuals changes in the course of the rows."""

    name = "drift"
    question = "Do the residuals change in the course of the rows?"
    looks_at = "up to 5,000 residuals, drawn at random and kept in their order"
    statistic = (
        "largest cumulative departure of their ranks from the mean, or trend of them, by permutation of blocks; of "
        "groups the sum of their trends, by signs drawn for each"
    )
    least_shift = 0.1  # of the level that matters, in margins, or those of normal residuals if smaller ...
    least_ratio = 1.25  # ... or least ratio of the spreads of two stretches of the rows
    significance = 0.01

    def _judged(self, evidence: PredictionEvidence, _earlier: Mapping[str, Finding]) -> Finding:
        if evidence.is_sorted:
            return self.finding(evidence.m, SORTED)
        if evidence.has_groups and evidence.units is not None and evidence.units.labels is not None:
            if evidence.units.refusal:
                return self.finding(evidence.m, f"Too few groups to see a drift: {evidence.units.refusal}.")
            residuals = evidence.residuals[evidence.some]
            groups = evidence.units.labels[evidence.some]
            return self._of_test(residuals, evidence.margin, lambda: drift_of_groups(residuals, groups))
        rows = evidence.rows_in_order
        rows = rows[some_rows(len(rows), MAX_ROWS)]
        blocks = None if evidence.stretches is None else evidence.stretches[rows]
        return self.judge(evidence.residuals[rows], evidence.margin, blocks)

    def judge(self, residuals: Array, margin: float, blocks: Index | None = None) -> Finding:
        """From residuals in their order, the margin that says what is much, and the stretch of time of each row."""
        return self._of_test(residuals, margin, lambda: drift(residuals, blocks))

    def _of_test(self, residuals: Array, margin: float, tested: Callable[[], OrderTest]) -> Finding:
        """From residuals in their order, the margin that says what is much, and a test of them."""
        m = len(residuals)
        if why := too_little(residuals):
            return self.finding(m, f"{why} to see a drift.")
        test = tested()
        sentence = (
            f"Departures of residuals from their mean, summed up in the order given, come to {test.value:.2g} "
            f"(by chance {test.shuffled:.2g})"
        )
        advice = ""
        if test.p_value > self.significance:
            sentence += by_chance(test.p_value)
        elif not self._is_much(residuals, margin):
            sentence += ": a drift too small to matter."
        else:
            sentence += ": residuals drift."
            advice = (
                "Residuals drift in the order given, so the past does not guarantee the future: let intervals follow "
                "each new residual, and train the model anew. If the order has no meaning, find out what it stands for."
            )
        return self.finding(m, sentence, advice, value=test.value, reference=test.shuffled, p_value=test.p_value)

    def _is_much(self, residuals: Array, margin: float) -> bool:
        """Whether a trend, or medians or spreads of five stretches of the rows, differ by enough to matter.

        Some rows of a larger spread make the margin of all large, next to which what matters to the others looks small.
        """
        stretches, middle, ramp = np.array_split(residuals, 5), np.median(residuals), np.linspace(-1, 1, len(residuals))
        margin = min(margin, NORMAL_MARGIN * float(np.median(np.abs(residuals - middle))) or margin)
        trend = np.clip(residuals - middle, -margin, margin) @ (ramp / (ramp @ ramp))
        shift = max(abs(float(one)) for one in (trend, *(np.median(own) - middle for own in stretches)))
        spreads = [float(np.median(np.abs(own - np.median(own)))) for own in stretches]
        ratio = max(spreads) / min(spreads) if min(spreads) > 0.0 else math.inf
        return shift >= self.least_shift * margin or ratio >= self.least_ratio


class SerialDependence(Check[PredictionEvidence]):
    """Whether residuals resemble those shortly before."""

    name = "serial"
    question = "Do residuals depend on those shortly before?"
    looks_at = "the first 5,000 residuals, which follow each other"
    statistic = "largest autocorrelation of their ranks over ten lags, by permutation"
    least_autocorrelation = 0.1  # that matters
    significance = 0.003

    def _judged(self, evidence: PredictionEvidence, _earlier: Mapping[str, Finding]) -> Finding:
        if evidence.is_sorted or evidence.has_groups:
            return self.finding(evidence.m, SORTED if evidence.is_sorted else GROUPED)
        found = self.judge(evidence.residuals[evidence.rows_in_order[:MAX_ROWS]])
        if not found.raised or evidence.has_time:
            return found
        return replace(found, advice=f"{found.advice} {OR_GROUPS}")

    def judge(self, residuals: Array) -> Finding:
        """From residuals that follow each other."""
        m = len(residuals)
        if why := too_little(residuals):
            return self.finding(m, f"{why} to see serial dependence.")
        test = serial_dependence(residuals)
        sentence = f"The largest autocorrelation of ranks is {test.value:.2f} (shuffled {test.shuffled:.2f})"
        advice = ""
        if test.p_value > self.significance:
            sentence += by_chance(test.p_value)
        elif test.value < self.least_autocorrelation:
            sentence += ": too little to matter."
        else:
            sentence += ": residuals depend on each other."
            advice = (
                "Residuals depend on those before them, so these rows guarantee less than their number says: let "
                "intervals follow each new residual, or let the model know its last ones."
            )
        return self.finding(
            m,
            sentence,
            advice,
            value=test.value,
            reference=test.shuffled,
            p_value=test.p_value,
            threshold=max(self.least_autocorrelation - test.shuffled, 0.0),
        )


def drift(residuals: Array, blocks: Index | None = None) -> OrderTest:
    """Cumulative departure or linear trend of ranks, whichever is farther from what chance makes.

    Blocks of rows are shuffled: stretches of time where these are known, as rows of one moment have much in common.
    """
    if blocks is None:
        length = min(max(len(residuals) // 25, 1), ROWS_PER_BLOCK)
        blocks = np.arange(len(residuals) // length * length) // length  # of the newest rows
    codes = np.unique(blocks, return_inverse=True)[1]
    n_blocks = int(codes[-1]) + 1
    centred = np.array([np.bincount(codes, own[-len(codes) :]) for own in _ranks(residuals)], np.float64)
    centred -= centred.mean(axis=1, keepdims=True)
    spread = np.sqrt((centred**2).sum(axis=1, keepdims=True))
    centred /= np.where(spread > 0.0, spread, 1.0)
    ramp = np.linspace(-1.0, 1.0, n_blocks)
    ramp /= TREND_PER_DEPARTURE * np.sqrt(ramp @ ramp / max(n_blocks - 1, 1))
    rng = np.random.default_rng(len(residuals))

    def largest(order: Index) -> Array:
        ordered = centred[:, order]
        departure = np.abs(np.cumsum(ordered, axis=2)).max(axis=(0, 2))
        return np.asarray(np.maximum(departure, np.abs(ordered @ ramp).max(axis=0)))

    def shuffled(n: int) -> Array:
        return largest(np.argsort(rng.random((n, n_blocks)), axis=1))

    return _judged(float(largest(np.arange(n_blocks)[None])[0]), shuffled)


def drift_of_groups(residuals: Array, groups: Index) -> OrderTest:
    """Linear trend of ranks in the order of rows, of which those of one group belong together.

    The sum of the trends of all groups over the root of the sum of their squares; without a drift the trend of a group
    has either sign. Squares are of trends that each group would have around a line through all others (CR3), as a large
    group draws that line to itself.
    """
    codes, m = np.unique(groups, return_inverse=True)[1], len(residuals)
    ramp = np.linspace(-1.0, 1.0, m)
    trends = np.array([np.bincount(codes, ramp * own) for own in _ranks(residuals)], np.float64)
    leverage = np.bincount(codes) / m + np.bincount(codes, ramp**2) / (ramp @ ramp)
    alone = trends / np.maximum(1.0 - leverage, 1e-9)
    power = np.sqrt((alone**2).sum(axis=1, keepdims=True))
    power[power == 0.0] = 1.0
    rng = np.random.default_rng(m)

    def signed(n: int) -> Array:
        return np.asarray(np.abs(alone / power @ rng.choice((-1.0, 1.0), (len(leverage), n))).max(axis=0))

    return _judged(float((np.abs(trends.sum(axis=1)) / power[:, 0]).max()), signed)


def serial_dependence(residuals: Array) -> OrderTest:
    """Largest autocorrelation of ranks over the first lags, each stretch of the rows around its own mean."""
    m = len(residuals)
    n_lags = min(N_LAGS, m // 4)
    stretch = np.arange(m) * min(N_STRETCHES, m // MIN_ROWS_PER_STRETCH) // m
    starts = np.flatnonzero(np.diff(stretch, prepend=-1))
    counts = np.diff(starts, append=m)
    both = _ranks(residuals)
    rng = np.random.default_rng(m)

    def largest(order: Index) -> Array:
        found = np.zeros(len(order))
        for own in both:
            ordered = own[order]
            ordered -= (np.add.reduceat(ordered, starts, axis=1) / counts)[:, stretch]
            power = np.einsum("ij,ij->i", ordered, ordered)
            power[power == 0.0] = 1.0
            for lag in range(1, n_lags + 1):
                product = np.einsum("ij,ij->i", ordered[:, lag:], ordered[:, :-lag])
                found = np.maximum(found, np.abs(product) / power)
        return found

    def shuffled(n: int) -> Array:
        order = np.tile(np.arange(m), (n, 1))
        return largest(rng.permuted(order, axis=1, out=order))

    return _judged(float(largest(np.arange(m)[None])[0]), shuffled)


def _ranks(residuals: Array) -> list[Array]:
    """Centred ranks of residuals and of their distances from the median."""
    distances = np.abs(residuals - np.median(residuals))
    return [ranks(values) - (len(residuals) + 1) / 2 for values in (residuals, distances)]


def _judged(value: float, shuffled: Callable[[int], Array]) -> OrderTest:
    """A statistic, compared with those of shuffled rows."""
    test = sequential_test(value * (1.0 - 1e-12), shuffled)
    return OrderTest(value, test.median, test.p_value)
