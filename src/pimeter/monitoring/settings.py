"""What a monitor is to hold: levels, tolerances, and how the false alarms are divided between its watches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, NamedTuple

from pimeter.conformal.guarantee import rank
from pimeter.validation import integer, one_level, per_cent_hint

if TYPE_CHECKING:
    from collections.abc import Sequence

MISSES, FEW, BOUNDS, WIDTHS, RESIDUALS = "misses", "few misses", "bounds", "widths", "residuals"
WATCHES = (MISSES, FEW, BOUNDS, WIDTHS, RESIDUALS)
SUBGROUPS = "subgroups"
# Which part of the false alarms each watch has, if it is on; what is left is that of all misses.
PROPORTIONS = {FEW: 0.1, BOUNDS: 0.15, WIDTHS: 0.05, RESIDUALS: 0.15, SUBGROUPS: 0.3}
PROPORTION_OF_CALIBRATION = 0.2  # of the false alarms: of calibration sets that cover less than the tolerance allows


def watch_names(watch: Sequence[str]) -> tuple[str, ...]:
    """Names of what is watched; a single string is not taken for its letters."""
    if isinstance(watch, str):
        msg = f"watch must be a list of names, of {', '.join(map(repr, WATCHES))}; got the string {watch!r}."
        raise TypeError(msg)
    return tuple(watch)


class Limits(NamedTuple):
    """Probabilities of what is counted, at most, while intervals hold."""

    miss: float  # of a target outside its interval
    inside: float  # of a target strictly between its bounds
    bound: float  # of a miss at either bound


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a monitor is to hold."""

    confidence_level: float
    false_alarm_rate: float = 0.05
    run_length: int | None = None
    tolerance: float | None = None
    few_tolerance: float | None = None
    n_calibration: int | None = None
    watch: tuple[str, ...] = (MISSES, FEW)
    expire_after: float = 90 * 86400.0

    def __post_init__(self) -> None:
        p = one_level("confidence_level", self.confidence_level)
        plain = {  # as JSON has them, not as numpy's
            "confidence_level": p,
            "false_alarm_rate": one_level("false_alarm_rate", self.false_alarm_rate),
            "run_length": None if self.run_length is None else integer("run_length", self.run_length, at_least=2),
            "n_calibration": None
            if self.n_calibration is None
            else integer("n_calibration", self.n_calibration, at_least=1),
            "tolerance": _tolerance("tolerance", self.tolerance, p, "the confidence level"),
            "few_tolerance": _tolerance("few_tolerance", self.few_tolerance, 1.0, "1"),
        }
        for name, value in plain.items():
            object.__setattr__(self, name, value)
        unknown = [name for name in self.watch if name not in WATCHES]
        if unknown or MISSES not in self.watch:
            msg = f"watch must hold 'misses' and any of {', '.join(map(repr, WATCHES[1:]))}; got {self.watch!r}."
            raise ValueError(msg)
        if (
            isinstance(self.expire_after, bool)
            or not isinstance(self.expire_after, Real)
            or not 0.0 < self.expire_after < math.inf
        ):
            msg = f"expire_after must be a number of seconds above 0; got {self.expire_after!r}."
            raise ValueError(msg)

    @property
    def is_renewed(self) -> bool:
        """Whether alarms are bounded on average over rows, not for all times together."""
        return self.run_length is not None

    @property
    def threshold(self) -> float:
        """Evidence from which on there is an alarm."""
        if self.run_length is not None:
            return float(self.run_length)
        follows_calibration = self.n_calibration is not None and None in {self.tolerance, self.few_tolerance}
        return 1.0 / (self.false_alarm_rate * (1.0 - PROPORTION_OF_CALIBRATION if follows_calibration else 1.0))

    @property
    def limits(self) -> Limits:
        """Largest healthy probabilities of a miss, of a target strictly inside, and of a miss at one bound."""
        p = self.confidence_level
        low, high = self._calibration_range()
        few = self.few_tolerance if self.few_tolerance is not None else max((1.0 - p) / 2.0, high - p)
        many = self.tolerance if self.tolerance is not None else max(p - low, 0.0)
        return Limits(1.0 - p + many, p + few, (1.0 - p) / 2.0 + many)

    def _calibration_range(self) -> tuple[float, float]:
        """What split-conformal intervals of so many rows cover, by the Beta distribution; all but a few of them."""
        p, m = self.confidence_level, self.n_calibration
        if m is None or None not in {self.tolerance, self.few_tolerance}:
            return p, p
        from scipy.special import betaincinv  # takes long to load

        k = min(rank(m, p), m)
        tail = PROPORTION_OF_CALIBRATION * self.false_alarm_rate / 2.0
        low, high = (float(betaincinv(k, m + 1 - k, at)) for at in (tail, 1.0 - tail))
        return low, high

    def proportion(self, name: str, *, has_subgroups: bool) -> float:
        """Which part of the false alarms a watch has."""
        on = [one for one in PROPORTIONS if one in self.watch or (one == SUBGROUPS and has_subgroups)]
        return 1.0 - sum(PROPORTIONS[one] for one in on) if name == MISSES else PROPORTIONS[name]


def _tolerance(name: str, value: float | None, most: float, what: str) -> float | None:
    """A tolerance, or a ValueError for what is none."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 <= value < most:
        msg = f"{name} must be a number from 0 to less than {what}; got {value!r}.{per_cent_hint(value)}"
        raise ValueError(msg)
    return float(value)
