"""The riskiest threshold that is accepted, or the safest one and why no other can be guaranteed."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pimeter.coverage import ROUNDING, counted, percent, rounded_up
from pimeter.risk.testing import (
    accepted,
    betting_p_value,
    binomial_p_value,
    first_rank,
    rows_that_would_do,
    rows_to_bet,
)

if TYPE_CHECKING:
    from pimeter.protocols import Array, Flags
    from pimeter.risk.losses import RowLosses
    from pimeter.risk.rates import Rate
    from pimeter.risk.testing import Candidates


MANY_ROWS, MANY_TIMES_THE_ROWS = 1_000_000, 1000  # beyond both nobody is told to bring more rows


class Choice(NamedTuple):
    """A threshold, with what is known of it."""

    threshold: float
    first: float  # the safest threshold that was accepted: all between the two are
    estimate: float  # of the metric, in these rows
    reason: str  # why nothing is guaranteed; empty where something is
    rows_needed: float


def rate_choice(name: str, rate: Rate, risk: float, is_positive: Flags, score: Array, delta: float | None) -> Choice:
    """The riskiest threshold with a rate of errors of at most `risk`, with confidence 1 - delta; None: on average."""
    found = rate.candidates(is_positive, score)
    first = 0
    if delta is None:
        p_values, limit = (found.errors + 1.0) / (found.rows + 1.0), risk + ROUNDING
    else:
        p_values, limit = binomial_p_value(found.errors, found.rows, risk), delta
        if rate.among == "declared":
            first = int(np.searchsorted(found.rows, first_rank(len(score), risk, delta)))
    kept = accepted(p_values, limit, first)
    if kept.stop <= kept.start or not found.rows[0]:
        return _no_rate(name, rate, found, len(score), risk, delta)
    last = kept.stop - 1
    error_rate = float(found.errors[last] / found.rows[last])
    estimate = 1.0 - error_rate if rate.is_better_high else error_rate
    return Choice(float(found.thresholds[last]), float(found.thresholds[first]), estimate, "", math.nan)


def _no_rate(name: str, rate: Rate, found: Candidates, n: int, risk: float, delta: float | None) -> Choice:
    """The safest threshold, and why no other one can be guaranteed."""
    rows = float(found.rows[0])
    if not rows:
        needed, because = math.inf, f"none of them is {rate.among}"
    else:
        needed = (1.0 / risk - 1.0) * n / rows if delta is None else rows_that_would_do(found, n, risk, delta)
        because = _more_rows(needed, n)
        if math.isinf(needed):
            because = "at each threshold they have more errors than that; it takes a better model, or another level"
        elif needed <= n:
            because = "there are too many errors among the rows with the safest scores"
    claim = f"{name.upper() if len(name) == 3 else name} {percent(1.0 - risk if rate.is_better_high else risk)}"
    reason = f"{claim} cannot be guaranteed with these {counted(n, 'row')}: {because}."
    return Choice(rate.safest, rate.safest, math.nan, reason[0].upper() + reason[1:], needed)


def loss_choice(name: str, losses: RowLosses, level: object, delta: float | None) -> Choice:
    """The riskiest threshold with a mean loss of at most `level`, with confidence 1 - delta; None: on average."""
    if not isinstance(level, Real) or float(level) >= losses.bound:
        msg = (
            f"level must be a number below {losses.bound:g}, which no loss exceeds: any other holds at each threshold; "
            f"got {level!r}."
        )
        raise ValueError(msg)
    risk = float(level) / losses.bound

    def is_accepted(place: int) -> bool:
        found = losses.at(place)
        if delta is None:
            return bool(found.sum() + 1.0 <= risk * (len(found) + 1.0) + ROUNDING)
        if losses.is_binary:
            return bool(binomial_p_value(found.sum(), np.array(float(len(found))), risk) <= delta)
        return betting_p_value(found, risk) <= delta

    last = _last_accepted(is_accepted, len(losses.thresholds), losses.is_monotone)
    if last < 0:
        return _no_loss(name, losses, float(level), delta)
    mean = float(losses.at(last).mean()) * losses.bound
    return Choice(float(losses.thresholds[last]), float(losses.thresholds[0]), mean, "", math.nan)


def _last_accepted(is_accepted: Callable[[int], bool], n: int, is_monotone: bool) -> int:
    """The last place before the first that is not accepted; -1 if that is the first one."""
    if not is_monotone:
        return next((place for place in range(n) if not is_accepted(place)), n) - 1
    low, high = -1, n
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_accepted(middle) else (low, middle)
    return low


def _no_loss(name: str, losses: RowLosses, level: float, delta: float | None) -> Choice:
    """The safest threshold, and why no other one can be guaranteed."""
    found, risk = losses.at(0), level / losses.bound
    mean, n = float(found.mean()), len(found)
    needed = math.inf
    if mean < risk:
        needed = (1.0 - risk) / (risk - mean) if delta is None else rows_to_bet(found, risk, delta)
    because = _more_rows(needed, n)
    if math.isinf(needed):
        because = "even at the first of the thresholds they lose more; it takes a better model, or another level"
    reason = f"A mean {name} of {level:g} cannot be guaranteed with these {counted(n, 'row')}: {because}."
    return Choice(losses.safest, losses.safest, math.nan, reason, needed)


def _more_rows(needed: float, n: int) -> str:
    """How many rows like these would do, or that it takes too many to bring."""
    most = max(MANY_ROWS, MANY_TIMES_THE_ROWS * n)
    if needed > most:
        return f"more than {most:,} rows like these would be needed; it takes a better model, or another level"
    return f"about {rounded_up(max(needed, n + 1.0))} rows like these would do"


def apart(low: Choice, high: Choice, score: Array) -> tuple[Choice, Choice]:
    """Two thresholds of a triage that do not overlap: rows that either could answer are divided between them.

    Any threshold between the first and the last that was accepted is guaranteed.
    """
    if low.threshold <= high.threshold:
        return low, high
    least, most = max(high.threshold, low.first), min(low.threshold, high.first)
    if least > most:  # with few rows only one of the two can answer
        if np.mean(score < low.threshold) >= np.mean(score > high.threshold):
            return low, high._replace(threshold=math.inf)
        return low._replace(threshold=-math.inf), high
    between = score[(score >= least) & (score <= most)]
    middle = float(np.median(between)) if len(between) else (least + most) / 2.0
    return low._replace(threshold=middle), high._replace(threshold=middle)
