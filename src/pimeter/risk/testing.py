"""Learn, then test: p-values of "the risk is too high", and the order in which thresholds are tested.

Thresholds are tested from the safest to the riskiest, each at the whole level, and the first one that is not accepted
stops it (fixed-sequence testing): to accept a threshold that is too risky, the first such has to be accepted, so that
any number of thresholds costs no more than one.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import betainc, logsumexp

if TYPE_CHECKING:
    from pimeter.protocols import Array

# A small number of first rows allows no error at all, so that good scores fail by chance; a large one includes rows
# that are not good enough. Chosen on simulated scores (levels .8 to .95, 100 to 5,000 rows) that nothing else uses.
ROWS_PER_FIRST = 20
MOST_FIRST = 3
N_STAKES = 24
MAX_ROWS = 10**9  # that are called enough


class Candidates(NamedTuple):
    """Thresholds from the safest to the riskiest: rows that each is judged by, and those of them that are wrong."""

    thresholds: Array
    rows: Array
    errors: Array


def binomial_p_value(errors: Array, rows: Array, risk: float) -> Array:
    """Probability of so few errors, or fewer, if each row is one with probability `risk`."""
    few = np.minimum(errors, rows - 1.0)
    found: Array = np.where(errors >= rows, 1.0, betainc(np.maximum(rows - few, 1.0), few + 1.0, 1.0 - risk))
    return found


def betting_p_value(losses: Array, risk: float) -> float:
    """p-value of losses between 0 and 1 if their mean is `risk` or more, by a bet against that.

    The mean over several stakes s of the fortunes ``prod(1 + s (risk - loss))`` is 1 at most in expectation if the
    mean loss is `risk` or more (Waudby-Smith and Ramdas 2024, with stakes that do not look at the rows). It falls in
    each loss, so that a riskier threshold of a monotone loss never has a smaller p-value, and the order of the rows
    does not matter.
    """
    fortunes = np.array([np.log1p(stake * (risk - losses)).sum() for stake in _stakes(risk)])
    return math.exp(min(0.0, math.log(N_STAKES) - float(logsumexp(fortunes))))


def rows_to_bet(losses: Array, risk: float, delta: float) -> float:
    """About how many rows of such losses are accepted by betting; infinite if none are."""
    growth = max(float(np.log1p(stake * (risk - losses)).mean()) for stake in _stakes(risk))
    return math.log(N_STAKES / delta) / growth if growth > 0.0 else math.inf


def _stakes(risk: float) -> Array:
    """Stakes of which none can lose everything: a loss of 1 leaves a part of the fortune."""
    stakes: Array = (np.arange(N_STAKES) + 0.5) / N_STAKES / (1.0 - risk)
    return stakes


@lru_cache(maxsize=1000)
def fewest_rows(risk: float, delta: float, errors: int = 0) -> int:
    """Least number of rows among which so many errors are accepted."""
    few, enough = errors, errors + 1
    while enough < MAX_ROWS and not _is_accepted(errors, enough, risk, delta):
        few, enough = enough, 2 * enough
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (few, middle) if _is_accepted(errors, middle, risk, delta) else (middle, enough)
    return enough


def first_rank(n: int, risk: float, delta: float) -> int:
    """How many rows the first threshold should leave: enough to accept it, and with many rows with some errors."""
    least = fewest_rows(risk, delta)
    wanted = min(n / ROWS_PER_FIRST, MOST_FIRST * least)
    errors, rank = 0, least
    while rank < wanted:
        errors += 1
        rank = fewest_rows(risk, delta, errors)
    return rank


def accepted(p_values: Array, delta: float, first: int = 0) -> slice:
    """Places of the thresholds that are accepted, in the order in which they are tested; empty if none is."""
    failed = np.flatnonzero(p_values[first:] > delta)
    return slice(first, first + int(failed[0]) if len(failed) else len(p_values))


def rows_that_would_do(found: Candidates, n: int, risk: float, delta: float) -> float:
    """About how many rows would do if they were like these; infinite if the risk is too high at each threshold.

    By the exponent of the binomial tail, at the threshold that is best for it, with half an error more in one row more:
    the few best rows are often without an error by chance. Of all rows together, if the risk allows them less than one
    error, it is half of what it allows: rows without an error are too few then, not too bad.
    """
    more = min(0.5, risk * float(found.rows.max()) / 2.0)
    rate = (found.errors + more) / (found.rows + 2.0 * more)
    is_low = (rate < risk) & (found.rows > 0.0)
    if not is_low.any():
        return math.inf
    rate, fraction = rate[is_low], found.rows[is_low] / n
    exponent = rate * np.log(rate / risk) + (1.0 - rate) * np.log((1.0 - rate) / (1.0 - risk))
    return float(np.min(-math.log(delta) / (np.maximum(exponent, 1e-12) * fraction)))


def _is_accepted(errors: int, rows: int, risk: float, delta: float) -> bool:
    return bool(binomial_p_value(np.array(float(errors)), np.array(float(rows)), risk) <= delta)
