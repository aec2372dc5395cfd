"""What a check is: a question, what it looks at, a statistic, what chance may do, and sentences."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

import numpy as np

from pimeter.coverage import percent
from pimeter.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pimeter.protocols import Array

E = TypeVar("E")
MIN_ROWS = 20  # below which chance explains everything
FALSE_ALARMS = 0.05  # how often, at most, a report on a model without faults raises any alarm, all checks together
UNUSUAL = 0.05  # p-value of a single check, from which on chance is no longer the first explanation
N_DRAWS, BATCH, N_EXTREME = 999, 37, 10  # samples drawn at most, at a time, and as extreme ones that say enough


class Check(ABC, Generic[E]):
    """One question about a model, asked of evidence such as its residuals.

    Called, it picks out of all the evidence what it looks at; where others have that at hand as well, `judge` takes it
    as it is. A check asks for something to be done only where chance is an unlikely explanation and the trouble is
    large enough to matter.

    Attributes
    ----------
    name : str
        One word for it, by which the finding is looked up.
    question : str
        What is asked.
    looks_at : str
        Which rows or numbers it looks at.
    statistic : str
        What is computed from them.
    significance : float
        How often, at most, chance alone may make it raise an alarm: its part of `FALSE_ALARMS`. 0 where chance cannot.
    """

    name: ClassVar[str]
    question: ClassVar[str]
    looks_at: ClassVar[str]
    statistic: ClassVar[str]
    significance: ClassVar[float] = 0.0

    def applies(self, _evidence: E) -> bool:
        """Whether there is anything to look at."""
        return True

    def __call__(self, evidence: E, earlier: Mapping[str, Finding]) -> Finding:
        """The answer; `earlier` holds those of the checks before this one."""
        return self._judged(evidence, earlier)

    @abstractmethod
    def _judged(self, evidence: E, earlier: Mapping[str, Finding]) -> Finding:
        """Pick out of the evidence what the check looks at, and answer."""

    def finding(
        self,
        rows: int,
        sentence: str,
        advice: str = "",
        *,
        code: str = "",
        value: float = math.nan,
        reference: float = math.nan,
        bounds: tuple[float, float] = (math.nan, math.nan),
        p_value: float = math.nan,
        threshold: float = math.nan,
        remedy: str = "",
    ) -> Finding:
        """What this check found on so many rows."""
        return Finding(
            name=self.name,
            question=self.question,
            sentence=sentence,
            advice=advice,
            code=code,
            value=float(value),
            reference=float(reference),
            lower=float(bounds[0]),
            upper=float(bounds[1]),
            p_value=float(p_value),
            threshold=float(threshold),
            significance=self.significance or math.nan,
            remedy=remedy,
            rows=rows,
        )


def answers(
    checks: Sequence[Check[E]], evidence: E, earlier: Mapping[str, Finding] | None = None
) -> dict[str, Finding]:
    """Earlier findings and those of all checks that apply, by their names, in the order in which they are made."""
    found = dict(earlier or {})
    for check in checks:
        if check.applies(evidence):
            found[check.name] = check(evidence, found)
    return found


def count(m: int) -> str:
    """A number of rows and its verb."""
    return "1 row is" if m == 1 else f"{m:,} rows are"


def some_of(n: int, m: int, nouns: str) -> str:
    """Some of all and the verb: 1 of 8 residuals is, 2 of 8 are."""
    return f"{n:,} of {m:,} {nouns} {'is' if n == 1 else 'are'}"


def in_percent(fraction: float) -> str:
    """A fraction in per cent, in three digits."""
    return percent(fraction, 3)


def is_constant(values: Array) -> bool:
    """Whether all values are equal."""
    return bool(values.min() == values.max())


def too_little(residuals: Array) -> str:
    """Why residuals cannot be judged at all; empty if they can."""
    if len(residuals) < MIN_ROWS:
        return f"{count(len(residuals))} too few"
    return "Residuals that are all equal are too little" if is_constant(residuals) else ""


def by_chance(p_value: float) -> str:
    """End of a sentence on something that raises no alarm: what chance has to do with it."""
    if p_value > UNUSUAL:
        return ", which chance explains."
    return f": unusual on its own (p = {p_value:.2g}), but not among the many checks of a report."


@dataclass(frozen=True)
class SequentialTest:
    """A statistic among those of samples that were drawn under the null hypothesis."""

    p_value: float  # how often samples are as extreme
    median: float  # of their statistics


def sequential_test(observed: float, drawn: Callable[[int], Array], most: int = N_DRAWS) -> SequentialTest:
    """How often samples under the null hypothesis are as extreme (Besag and Clifford), and their median.

    `drawn` gives statistics of so many samples, `most` of them in all. What is clear early is not drawn to the end, as
    SciPy's permutation_test would.
    """
    found = drawn(BATCH)
    while len(found) < most and np.count_nonzero(found >= observed) < N_EXTREME:
        found = np.append(found, drawn(BATCH))
    exceeded = int(np.count_nonzero(found >= observed))
    return SequentialTest((1 + exceeded) / (1 + len(found)), float(np.median(found)))
