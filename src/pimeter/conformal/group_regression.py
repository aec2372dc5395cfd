"""Quantile regression of scores over indicators of groups, with a new row of its own among them.

The dual problem has one variable for each calibration row, between p - 1 and p, and one equation for each group:

    maximise  sum_i x_i score_i   subject to   sum_i x_i holds_i + t holds_new = 0

where t is the variable of the new row. It is p, its upper bound, once the new row's score is beyond the fitted
quantile, so that the largest score that is not beyond is the fit at the new row for t just below p: one linear program
for each combination of groups that new rows have, and no search over imputed scores (Gibbs, Cherian and Candès 2023,
whose randomised version takes t at random between p - 1 and p). All variables have bounds, so that every basis is a
start for the dual simplex method; from the fit without a new row it takes some ten steps to that with one.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pimeter.protocols import Array, Index

TIE_BREAK = 1e-9  # of the range of scores, by which tied ones are told apart
BOUND_TOLERANCE = 1e-11  # by which a variable may be beyond its bound
LIMIT_GAP = 1e-8  # how far t stays below p, as a limit from below
MIN_COEFFICIENT = 1e-9  # coefficient of a row in an equation
BLOCKING_ROWS_SORTED = 24  # rows that block a step, of which the first are enough in most cases
STEPS_TO_RENEW = 50  # after which the inverse is computed afresh


class GroupRegression:
    """The fit to calibration scores, from which fits with one more row are found in a few steps."""

    def __init__(self, holds: Array, scores: Array, level: float) -> None:
        """Fit the scores (m,) of rows; `holds`, (m, g) of full rank, says which groups each is in."""
        self._holds, self._scores, self._high, self._low = holds, scores, level, level - 1.0
        spread = float(np.ptp(scores)) or 1.0
        self._cost = scores + TIE_BREAK * spread * np.random.default_rng(0).uniform(size=len(scores))
        nearest = np.argsort(np.abs(self._cost - np.quantile(self._cost, level)))
        self._basis = nearest[independent(holds[nearest].T)]
        self._inverse = np.linalg.inv(holds[self._basis])
        self._is_basic = np.zeros(len(scores), np.bool_)
        self._is_basic[self._basis] = True
        self._n_steps = 0
        self._residual = self._cost - holds @ (self._inverse @ self._cost[self._basis])
        self._x = np.where(self._residual > 0.0, self._high, self._low)
        self._renew()
        self._settle(np.zeros(holds.shape[1]))

    def largest_score(self, holds: Array, t: float | None = None) -> float:
        """Largest score that a new row in these groups, (g,), may have; infinite where its groups are too small.

        `t`, between p - 1 and p, is drawn at random for the randomised version; None: that of the deterministic one.
        """
        own = self.with_row(holds, t)
        return np.inf if own is None else own.at(holds)

    def with_row(self, holds: Array, t: float | None = None) -> GroupRegression | None:
        """The fit with a new row in these groups, from which that of a row in similar groups is near; None if none is.

        Whatever fit it is asked of, the answer is the same.
        """
        own = copy(self)
        for name in ("_basis", "_inverse", "_x", "_is_basic", "_residual", "_fixed"):
            setattr(own, name, getattr(self, name).copy())
        return own if own._settle(-(self._high - LIMIT_GAP if t is None else t) * holds) else None

    def at(self, holds: Array) -> float:
        """The fitted quantile of a row in these groups."""
        return float(holds @ np.linalg.solve(self._holds[self._basis], self._scores[self._basis]))

    def _renew(self) -> None:
        """Compute afresh what each step changes a little: the inverse, residuals, sums over rows at their bounds."""
        self._inverse = np.linalg.inv(self._holds[self._basis])
        self._residual = self._cost - self._holds @ (self._inverse @ self._cost[self._basis])
        self._fixed = self._holds.T @ np.where(self._is_basic, 0.0, self._x)

    def _settle(self, total: Array) -> bool:
        """Change the basis until all variables are within their bounds, with these sums over groups; False if none is.

        Each step makes the dual objective larger, as no two scores are tied: no basis comes twice.
        """
        while True:
            basic = (total - self._fixed) @ self._inverse
            beyond = np.maximum(basic - self._high, self._low - basic)
            place = int(beyond.argmax())
            if beyond[place] <= BOUND_TOLERANCE:
                return True
            if not self._step(place, float(beyond[place]), is_high=bool(basic[place] > self._high)):
                return False

    def _step(self, place: int, beyond: float, *, is_high: bool) -> bool:
        """Let a row leave the basis towards the bound that it is beyond; False if no row can take its place.

        Rows whose residual would change its sign on the way go to their other bound, as long as that leaves the one
        that goes beyond its own: the bound flipping ratio test.
        """
        rate = self._holds @ self._inverse[:, place]
        way = rate if is_high else -rate  # of the residuals, while that of the leaving row grows
        rows = np.flatnonzero((np.where(self._x > 0.0, -way, way) > MIN_COEFFICIENT) & ~self._is_basic)
        times = -self._residual[rows] / way[rows]
        for n in (BLOCKING_ROWS_SORTED, len(rows)):  # all, if the first do not suffice
            first = np.argpartition(times, n)[:n] if n < len(rows) else np.arange(len(rows))
            order = first[np.argsort(times[first])]
            passed = int(np.searchsorted(np.cumsum(np.abs(rate[rows[order]])), beyond - BOUND_TOLERANCE))
            if passed < len(order):
                break
        else:
            return False
        flipped, entering, leaving = rows[order[:passed]], rows[order[passed]], self._basis[place]
        old = self._x[flipped]
        self._x[flipped] = self._high + self._low - old
        self._x[leaving] = self._high if is_high else self._low
        self._is_basic[leaving], self._is_basic[entering] = False, True
        self._basis[place] = entering
        self._n_steps += 1
        if self._n_steps % STEPS_TO_RENEW == 0:
            self._renew()
            return True
        self._residual += times[order[passed]] * way
        self._fixed += self._x[leaving] * self._holds[leaving] - self._x[entering] * self._holds[entering]
        self._fixed += (self._x[flipped] - old) @ self._holds[flipped]
        along = self._holds[entering] @ self._inverse
        column = self._inverse[:, place] / along[place]
        self._inverse -= np.outer(column, along)
        self._inverse[:, place] = column
        return True


def independent(vectors: Array) -> Index:
    """Which columns of (d, n) are not combinations of those before them."""
    kept: list[int] = []
    directions = np.zeros((0, len(vectors)))
    for i, vector in enumerate(vectors.T):
        rest = vector - directions.T @ (directions @ vector)
        rest -= directions.T @ (directions @ rest)
        size = float(np.sqrt(rest @ rest))
        if size > 1e-7 * max(1.0, float(np.sqrt(vector @ vector))):
            directions = np.vstack([directions, rest / size])
            kept.append(i)
            if len(kept) == len(vectors):
                break
    return np.array(kept, np.intp)
