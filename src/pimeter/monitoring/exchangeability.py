"""Evidence that numbers are not exchangeable: bets against their conformal p-values, which are uniform if they are.

The first numbers place bins, and are not counted. Each later number is ranked among those counted before by its bin,
ties broken at random, so that its p-value is uniform and independent of those before (Vovk); memory does not grow. Bets
go to large and to small p-values, and to those at either side; a stake moves between them now and then (the Simple
Jumper).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import Any

import numpy as np

from pimeter.monitoring.evidence import LARGEST_CAPITAL, begun_at, kept_back

ROWS_TO_PLACE_BINS = 200
N_BINS = 20
SLOPES = (-1.5, 0.0, 1.5)
JUMP_RATE = 0.01
GOLDEN = 0x9E3779B97F4A7C15  # steps of the generator of random numbers, by Steele, Lea and Flood (SplitMix64)
WORD_MASK = (1 << 64) - 1
KEPT = ("edges", "first", "counts", "rows", "least", "least_at")  # beside the capitals, of what a bet goes on from


def uniform_at(number: int, seed: int) -> float:
    """A random number between 0 and 1, the same each time: no state has to be kept."""
    mixed = ((seed << 40) + number + 1) * GOLDEN & WORD_MASK
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & WORD_MASK
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & WORD_MASK
    return (mixed ^ mixed >> 31) / 2.0**64


class ExchangeabilityEvidence:
    """Evidence that numbers that come one by one are not exchangeable; flat memory.

    Parameters
    ----------
    is_renewed : bool, default=False
        Whether a stake of 1 begins at each row, for a bound on how often alarms come on average; else the stakes of
        all rows together are 1.
    seed : int, default=0
        Of the random numbers that break ties.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter.monitoring.exchangeability import ExchangeabilityEvidence
    >>> numbers = np.random.default_rng(1).standard_normal(2000)
    >>> numbers[1000:] += 1.0
    >>> evidence, values = ExchangeabilityEvidence(), []
    >>> for number in numbers:
    ...     evidence.update(number)
    ...     values.append(evidence.value)
    >>> max(values[:1000]) < 20.0, max(values) > 1e6
    (True, True)
    """

    def __init__(self, *, is_renewed: bool = False, seed: int = 0) -> None:
        self._is_renewed = is_renewed
        self._seed = seed
        self.edges: list[float] = []
        self.first: list[float] = []
        self.counts = [0] * N_BINS
        self.rows = 0  # that were counted
        self.capitals = [[0.0] * len(SLOPES), [0.0] * len(SLOPES)]
        self.least = LARGEST_CAPITAL  # the smallest so far, and after how many rows, those that placed bins included
        self.least_at = 0

    def update(self, number: float) -> None:
        """Settle the bets on one number."""
        if not self.edges:
            self.first.append(number)
            if len(self.first) == ROWS_TO_PLACE_BINS:
                self.edges = np.quantile(self.first, np.arange(1, N_BINS) / N_BINS).tolist()
                self.first = []
            return
        place = bisect_right(self.edges, number)
        n_larger, n_tied = sum(self.counts[place + 1 :]), self.counts[place] + 1
        p_value = (n_larger + uniform_at(self.rows, self._seed) * n_tied) / (self.rows + 1)
        begun = begun_at(self.rows, is_renewed=self._is_renewed) / (2 * len(SLOPES))
        self.capitals = [
            _jumped(capitals, begun, statistic)
            for capitals, statistic in zip(self.capitals, (p_value, abs(2.0 * p_value - 1.0)), strict=True)
        ]
        self.counts[place] += 1
        self.rows += 1
        if self.value <= self.least:
            self.least, self.least_at = self.value, self.rows + ROWS_TO_PLACE_BINS

    @property
    def value(self) -> float:
        """The capital: 1 at the start, or 0 where stakes are renewed."""
        return math.fsum(map(math.fsum, self.capitals)) + (0.0 if self._is_renewed else kept_back(self.rows))

    def to_dict(self) -> dict[str, Any]:
        """What a bet goes on from, as plain values."""
        kept = {name: getattr(self, name) for name in KEPT}
        return {**kept, "fortunes": self.capitals}  # the name in files of states

    def restore(self, values: dict[str, Any]) -> None:
        """Go on from plain values."""
        for name in KEPT:
            setattr(self, name, values[name])
        self.capitals = values["fortunes"]


def _jumped(capitals: list[float], begun: float, statistic: float) -> list[float]:
    """Bets after a statistic that is uniform if numbers are exchangeable; a fraction of all moves before."""
    total = sum(capitals) * JUMP_RATE / len(SLOPES)
    return [
        min(((1.0 - JUMP_RATE) * held + total + begun) * (1.0 + slope * (statistic - 0.5)), LARGEST_CAPITAL)
        for held, slope in zip(capitals, SLOPES, strict=True)
    ]
