"""A confidence sequence for a rate: an interval for the mean that holds at every time, however often one looks."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pimeter.coverage import counted

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pimeter.protocols import Array

# Where the sequence is narrowest: some hundreds to some thousands of rows. Chosen so that it is about equally wide,
# against an exact interval of a fixed time, after 100 and after 10,000 rows.
PRIOR_ROWS = 80.0
N_NODES = 40
HALVINGS = 32
LARGEST_LOG_ODDS = 60.0  # log odds ratio
LARGEST_SCALE = 2.0  # of log odds ratios, for rates near 0 or 1


class CoverageEstimate(NamedTuple):
    """A coverage with bounds that hold at every time together.

    Attributes
    ----------
    value : float
        Coverage of the rows seen.
    lower, upper : float
        Bounds of the confidence sequence; 0 and 1 before the first row.
    rows : int
        Number of rows.
    """

    value: float
    lower: float
    upper: float
    rows: int

    def __str__(self) -> str:
        if not self.rows:
            return "coverage: no rows yet"
        return f"coverage {self.value:.3f} ({self.lower:.3f} to {self.upper:.3f}, {counted(self.rows, 'row')})"


def log_evidence_against(rate: ArrayLike, events: ArrayLike, rows: ArrayLike, scale: float) -> Array:
    """Log of the evidence that the mean of the conditional rates so far is not `rate`.

    For each number t the product of ``exp(t x_i) / (1 - q_i + q_i exp(t))`` over rows is a martingale, and as log is
    concave it is no smaller with the mean of all q_i in the place of each: what is computed here, averaged over normal
    log odds ratios t of standard deviation `scale`, exceeds 1/a at any time with probability a at most.
    """
    q, k, n = np.broadcast_arrays(*(np.asarray(value, dtype=np.float64) for value in (rate, events, rows)))
    low, high = np.full(q.shape, -LARGEST_LOG_ODDS), np.full(q.shape, LARGEST_LOG_ODDS)
    for _ in range(HALVINGS):  # the mode of the integrand, whose logarithm is concave
        middle = (low + high) / 2.0
        rises = k - n * _tilted(q, middle) - middle / scale**2 > 0.0
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    mode = (low + high) / 2.0
    at_mode = _tilted(q, mode)
    spread = 1.0 / np.sqrt(n * at_mode * (1.0 - at_mode) + 1.0 / scale**2)
    nodes, weights = _nodes()
    t = mode[..., None] + spread[..., None] * nodes
    exponent = k[..., None] * t - n[..., None] * np.log1p(q[..., None] * np.expm1(t)) - (t / scale) ** 2 / 2.0
    terms = exponent + nodes**2 / 2.0 + np.log(weights)
    largest = terms.max(axis=-1)
    total = np.log(np.exp(terms - largest[..., None]).sum(axis=-1)) + largest
    found: Array = total + np.log(spread / scale) - math.log(2.0 * math.pi) / 2.0
    return found


def rate_bounds(events: ArrayLike, rows: ArrayLike, usual: float, level: float = 0.95) -> tuple[Array, Array]:
    """Bounds of the mean conditional rate at each of these counts of events; `usual` is where they are narrowest."""
    k, n = np.broadcast_arrays(*(np.asarray(value, dtype=np.float64) for value in (events, rows)))
    scale = min(1.0 / math.sqrt(PRIOR_ROWS * usual * (1.0 - usual)), LARGEST_SCALE)
    limit = -math.log1p(-level)
    seen = k / np.maximum(n, 1.0)
    found = []
    for outside in (0.0, 1.0):
        far, near = np.full(k.shape, outside), seen.copy()
        for _ in range(HALVINGS):
            middle = (far + near) / 2.0
            is_refuted = log_evidence_against(middle, k, n, scale) >= limit
            far, near = np.where(is_refuted, middle, far), np.where(is_refuted, near, middle)
        found.append(np.where(seen == outside, outside, np.where(n > 0, far, outside)))
    return found[0], found[1]


def coverage_estimate(misses: int, rows: int, confidence_level: float) -> CoverageEstimate:
    """Coverage of the rows so far, as a confidence sequence at 95 %.

    Examples
    --------
    >>> from pimeter.monitoring.sequence import coverage_estimate
    >>> print(coverage_estimate(100, 1000, 0.9))
    coverage 0.900 (0.869 to 0.926, 1,000 rows)
    """
    if not rows:
        return CoverageEstimate(math.nan, 0.0, 1.0, 0)
    low, high = rate_bounds(misses, rows, 1.0 - confidence_level)
    return CoverageEstimate(1.0 - misses / rows, float(1.0 - high), float(1.0 - low), rows)


@cache
def _nodes() -> tuple[Array, Array]:
    """Nodes and weights of Gauss and Hermite."""
    return np.polynomial.hermite_e.hermegauss(N_NODES)


def _tilted(rate: Array, t: Array) -> Array:
    """The rate whose odds are exp(t) times as large."""
    found: Array = rate / (rate + (1.0 - rate) * np.exp(-t))
    return found
