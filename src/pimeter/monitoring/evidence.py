"""Evidence that events come more often than they may: bets against it, on each row, that began at any time.

While each row's event has a probability of `limit` at most, given all that came before, a bet that multiplies its stake
by q/limit at an event and by (1 - q)/(1 - limit) otherwise has an expected gain of 0 at most, whatever q >= limit is.
A capital of 1 is spread over several q, and over the times at which bets begin: a bet that began long before a change
has lost its stake by then. All bets on one q lose and gain together, so that one number holds their sum, and memory
does not grow. The capital is a nonnegative supermartingale: it ever attains 1/a with probability a at most (Ville).
With a stake of 1 at each time instead, the expected capital grows by 1 with each row at most, so that it takes N rows
or more on average until it attains N (the e-detector of Shin, Ramdas and Rinaldo, after Shiryaev and Roberts).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Sequence

# Odds of the event against those at the limit, for four bets: from .9 to coverages of .86, .8, .7 and .55. The two in
# the middle have a third of the capital each, the others a sixth.
ODDS_RATIOS = (1.5, 2.25, 3.86, 7.36)
START_ROWS = 5000.0  # half of the capital is at stake after so many rows
LARGEST_CAPITAL = 1e290  # a capital that is larger is cut: that loses nothing but digits
# Up to which fraction of an alarm's evidence is called what.
READINGS = ((0.05, "none"), (0.15, "hardly any"), (0.5, "some"), (math.inf, "strong"))


@dataclass(frozen=True)
class Evidence:
    """Evidence against the intervals, as an e-value.

    Attributes
    ----------
    value : float
        What a capital of 1 has become that was bet against the intervals, at odds that are fair or worse while they
        hold. With ``run_length`` a stake of 1 is added with each row. After an alarm its value then.
    threshold : float
        Value from which on there is an alarm.
    reading : str
        The value in words.

    Examples
    --------
    >>> from pimeter.monitoring.evidence import Evidence
    >>> print(Evidence.read(7.5, 20.0))
    7.5 of 20: some
    """

    value: float
    threshold: float
    reading: str

    @classmethod
    def read(cls, value: float, threshold: float, alarm_row: int | None = None) -> Self:
        """A value with its reading in words."""
        if alarm_row is not None:
            return cls(value, threshold, f"enough for an alarm, after {alarm_row:,} rows")
        return cls(value, threshold, next(text for most, text in READINGS if value <= most * threshold))

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return f"{self.value:.3g} of {self.threshold:.4g}: {self.reading}"


def kept_back(rows: int) -> float:
    """What of the capital is not yet at stake after so many rows."""
    return START_ROWS / (START_ROWS + rows)


def begun_at(rows: int, *, is_renewed: bool) -> float:
    """What is put at stake before the next row; 1 at each if the stakes are renewed."""
    return 1.0 if is_renewed else kept_back(rows) - kept_back(rows + 1)


def factors(limit: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """By what each bet is multiplied where the event happens, and where not."""
    rates = [limit * ratio / (1.0 - limit + limit * ratio) for ratio in ODDS_RATIOS]
    return tuple(q / limit for q in rates), tuple((1.0 - q) / (1.0 - limit) for q in rates)


def stepped(capitals: Sequence[Any], begun: float, gains: Sequence[Any]) -> list[Any]:
    """What the bets come to after a row; numbers, or arrays with a place for each of many streams."""
    (a, b, c, d), (of_a, of_b, of_c, of_d) = capitals, gains
    more, less = begun / 3.0, begun / 6.0
    return [(a + less) * of_a, (b + more) * of_b, (c + more) * of_c, (d + less) * of_d]


class RateEvidence:
    """Evidence that an event is likelier than `limit`, given the past; flat memory.

    Parameters
    ----------
    limit : float
        Largest probability that each row's event may have, between 0 and 1.
    is_renewed : bool, default=False
        Whether a stake of 1 begins at each row, for a bound on how often alarms come on average; else the stakes of
        all rows together are 1.

    Examples
    --------
    >>> from pimeter.monitoring.evidence import RateEvidence
    >>> healthy, changed = RateEvidence(0.1), RateEvidence(0.1)
    >>> for i in range(100):
    ...     healthy.update(i % 10 == 0)
    ...     changed.update(i % 3 == 0)
    >>> healthy.value < 1.1, changed.value > 1000.0
    (True, True)
    """

    __slots__ = ("_gains", "_is_renewed", "_kept", "capitals", "limit", "rows", "value")

    def __init__(self, limit: float, *, is_renewed: bool = False) -> None:
        self.limit = limit
        self.rows = 0
        self.capitals: list[float] = [0.0] * len(ODDS_RATIOS)
        self._is_renewed = is_renewed
        self._kept = 0.0 if is_renewed else 1.0
        self.value = self._kept  # all of the capital
        happened, not_happened = factors(limit)
        self._gains = (not_happened, happened)

    def update(self, event: bool) -> None:
        """Settle the bets on one row."""
        begun = 1.0
        self.rows += 1
        if not self._is_renewed:
            kept = kept_back(self.rows)
            begun = self._kept - kept
            self._kept = kept
        self.capitals = stepped(self.capitals, begun, self._gains[event])
        self.value = sum(self.capitals) + self._kept
        if self.value > LARGEST_CAPITAL:
            self.capitals = [min(held, LARGEST_CAPITAL) for held in self.capitals]

    def to_dict(self) -> dict[str, Any]:
        """What a bet goes on from, as plain values."""
        return {"rows": self.rows, "fortunes": self.capitals}  # the name in files of states

    def restore(self, values: dict[str, Any]) -> None:
        """Go on from what `to_dict` returned."""
        self.rows, self.capitals = int(values["rows"]), [float(held) for held in values["fortunes"]]
        self._kept = 0.0 if self._is_renewed else kept_back(self.rows)
        self.value = sum(self.capitals) + self._kept
