"""The checks of a cone that was tried on windows which it was not fitted to, and what they look at."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pimeter.conformal.guarantee import scores_needed
from pimeter.coverage import counted, percent, rounded
from pimeter.evaluation.diagnosis.check import Check, answers
from pimeter.findings import Diagnosis, Headline

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pimeter.findings import Finding

FRACTION_FITTED = 0.5  # of the windows, or of the moments at which they were made: the oldest
FAR_FROM_LEVEL = 0.3  # from its level, in roots of the fraction of misses: 7 % at 95, 10 % at 90


def far_from(level: float) -> float:
    """How far coverage may be from the level and still be called kept."""
    return FAR_FROM_LEVEL * math.sqrt(1.0 - level)


def is_near(coverage: float, level: float) -> bool:
    """Whether coverage is so near the level that it is called kept."""
    return abs(coverage - level) <= far_from(level)


@dataclass(frozen=True)
class Cone:
    """What one kind of cone covered, and how wide it was."""

    coverage: float | None  # fraction of all targets inside; None where no target is known
    by_step: list[float | None]  # fraction of targets inside at each step ahead
    width: list[float]  # mean at each step ahead
    over_time: list[float | None]  # fraction of targets inside in blocks of windows, the oldest first

    @property
    def percent(self) -> str:
        """Coverage in per cent, as text."""
        return "an unknown fraction" if self.coverage is None else percent(self.coverage, 3)


class Tried(NamedTuple):
    """A cone that was tried on windows: what its checks look at."""

    level: float
    n_fitted: int
    n_tested: int
    n_scored: int
    n_effective: float  # independent errors that the windows of the fit are as good as
    margin: list[float]
    static: Cone
    updated: Cone

    @property
    def headline(self) -> Headline:
        """How far intervals extend, and what they covered."""
        first, last, h = self.margin[0], self.margin[-1], len(self.margin)
        margins = f"±{rounded(first, 3)} one step ahead" + (f" and ±{rounded(last, 3)} at step {h}" if h > 1 else "")
        asked = percent(self.level)
        claim = f"{asked} of targets are expected within {margins}."
        if not self.is_kept(self.updated):
            claim = f"The cone does not keep its {asked}: its margin is now {margins}, but do not trust that."
        evidence = (
            f"Over {self.windows}, the cone covered {self.static.percent}; updated as targets became known, "
            f"{self.updated.percent}. The margins are those of the updated cone."
        )
        return Headline(claim, evidence)

    @property
    def windows(self) -> str:
        """What the cone was tried on, in words."""
        if self.n_scored == self.n_tested:
            return f"{counted(self.n_tested, 'window')} that it had not seen"
        return f"{self.n_scored:,} of {self.n_tested:,} windows that it had not seen, which have targets and forecasts"

    def is_kept(self, cone: Cone) -> bool:
        """Whether coverage is near the level, as far as it is known."""
        return cone.coverage is None or is_near(cone.coverage, self.level)


class CheckOfCone(Check[Tried]):
    """Whether a cone keeps its level."""

    statistic = "the fraction of targets inside"

    def judge(self, tried: Tried, cone: Cone, how: str, advice: str) -> Finding:
        """The finding on a cone, from what it covered."""
        sentence = f"{how}, the cone covered {cone.percent} of targets; {percent(tried.level)} were asked for."
        value = math.nan if cone.coverage is None else cone.coverage
        return self.finding(
            tried.n_scored, sentence, advice, value=value, reference=tried.level, threshold=far_from(tried.level)
        )


class UpdatedCone(CheckOfCone):
    """Whether a cone that is updated keeps its level."""

    name = "updated"
    question = "Does a cone that is updated keep its level?"
    looks_at = "windows that it was not fitted to, with an update by each target as it became known"

    def _judged(self, tried: Tried, _earlier: Mapping[str, Finding]) -> Finding:
        advice = (
            f"Do not trust the cone: updated, it covered {tried.updated.percent} where {percent(tried.level)} were "
            "asked for. Train the model on newer rows, and find out what changed."
        )
        is_kept = tried.is_kept(tried.updated)
        return self.judge(tried, tried.updated, "Updated as targets became known", "" if is_kept else advice)


class StaticCone(CheckOfCone):
    """Whether a cone that is left as it was fitted keeps its level."""

    name = "static"
    question = "Does a cone that is left as it is keep its level?"
    looks_at = "windows that it was not fitted to"

    def _judged(self, tried: Tried, earlier: Mapping[str, Finding]) -> Finding:
        advice = "Update the cone with each target as it becomes known: left as it is, it does not keep its level."
        is_fine = earlier["updated"].raised or tried.is_kept(tried.static)
        return self.judge(tried, tried.static, "Left as it was fitted", "" if is_fine else advice)


class EnoughErrors(Check[Tried]):
    """Whether the windows that the cone was fitted to are effectively enough for the level."""

    name = "errors"
    question = "Are there enough windows for this level?"
    looks_at = "residuals of the windows that it was fitted to"
    statistic = "the effective number of independent ones, against the number that the level takes"

    def _judged(self, tried: Tried, _earlier: Mapping[str, Finding]) -> Finding:
        needed = scores_needed(tried.level)
        is_enough = tried.n_effective >= needed
        sentence = (
            f"{counted(tried.n_fitted, 'window')} to fit the cone to, as good as about "
            f"{counted(tried.n_effective, 'independent residual', 3)}; {percent(tried.level)} takes {needed}."
        )
        advice = "" if is_enough else "Take more windows, or a lower confidence level: these say too little."
        return self.finding(tried.n_fitted, sentence, advice, value=tried.n_effective, reference=needed)


CHECKS: tuple[Check[Tried], ...] = (UpdatedCone(), StaticCone(), EnoughErrors())


def judged(tried: Tried, stride: float) -> Diagnosis:
    """Make all checks, and give code that fits a cone to windows that start so many steps apart."""
    found = answers(CHECKS, tried)
    spaced = "" if stride == 1.0 else f", stride={stride:g}"
    fitted = f"ForecastIntervals(confidence_level={tried.level:g}).fit(y_true, y_pred{spaced})"
    code = f"from pimeter import ForecastIntervals\ncone = {fitted}  # all windows; update it from here on"
    return Diagnosis.of(found.values(), "Nothing to do: the cone keeps its level.", code)
