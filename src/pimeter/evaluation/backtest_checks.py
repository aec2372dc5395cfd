"""The checks of cones, or of the intervals of a panel, on windows that they were not fitted to."""

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
MAX_MISS_RATIO = 3.0  # times as many as allowed, of the series with the lowest coverage
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


@dataclass(frozen=True)
class ModelCoverage:
    """What intervals around one model of a panel covered, and how wide they were."""

    coverage: float
    width: float  # mean
    by_step: list[float | None]  # fraction of targets inside at each step ahead; None where it was not tried
    over_time: list[float | None]  # for windows made at each moment, the oldest first


@dataclass(frozen=True)
class SeriesCoverage:
    """What the intervals of one series covered."""

    series: str
    coverage: float
    n: int  # targets
    width: float  # mean


class TriedPanel(NamedTuple):
    """Intervals of a panel that were tried on windows: what its checks look at."""

    level: float
    models: dict[str, ModelCoverage]  # the first is the one that matters
    worst: SeriesCoverage
    n_windows: int
    has_season: bool  # whether it is given after how many steps a pattern repeats


class LevelsOfModels(Check[TriedPanel]):
    """Whether intervals around each model keep their level."""

    name = "coverage"
    question = "Is the level kept around each model?"
    looks_at = "windows that intervals were not fitted to, with an update as targets became known"
    statistic = "the fraction of targets inside, around the model where it is farthest from the level"

    def _judged(self, tried: TriedPanel, _earlier: Mapping[str, Finding]) -> Finding:
        level, main = tried.level, next(iter(tried.models))
        failing = [name for name, one in tried.models.items() if not is_near(one.coverage, level)]
        covered = ", ".join(f"{name} {percent(one.coverage, 3)}" for name, one in tried.models.items())
        advice = ""
        if failing:
            advice = "Look at the series with the lowest coverage first."
            if failing[0] != main:
                advice = f"Nothing to do around {main}; around {', '.join(failing)} the level is not kept."
            if not tried.has_season:
                advice += " If a pattern repeats, say after how many steps: season_length, or --season."
        farthest = max((one.coverage for one in tried.models.values()), key=lambda one: abs(one - level))
        return self.finding(
            tried.n_windows,
            f"Targets inside, where {percent(level)} were asked for: {covered}.",
            advice,
            value=farthest,
            reference=level,
            threshold=far_from(level),
        )


class WorstSeries(Check[TriedPanel]):
    """Whether one series is missed far too often, though the level is kept for all of them together."""

    name = "worst_series"
    question = "Is a series missed far too often?"
    looks_at = "targets of each series, around the first model"
    statistic = "the lowest fraction of targets inside"

    def _judged(self, tried: TriedPanel, earlier: Mapping[str, Finding]) -> Finding:
        worst, allowed = tried.worst, 1.0 - tried.level
        sentence = (
            f"Lowest coverage of a series: {percent(worst.coverage, 3)} ({worst.series}, {counted(worst.n, 'target')})."
        )
        advice = ""
        if not earlier["coverage"].raised and 1.0 - worst.coverage > MAX_MISS_RATIO * allowed:
            missed = percent(1.0 - worst.coverage, 3)
            advice = f"Look at {worst.series}: {missed} of its targets were missed. All series together keep the level."
        return self.finding(
            worst.n,
            sentence,
            advice,
            value=worst.coverage,
            reference=tried.level,
            threshold=(MAX_MISS_RATIO - 1.0) * allowed,
        )


CHECKS_OF_PANELS: tuple[Check[TriedPanel], ...] = (LevelsOfModels(), WorstSeries())


def judged_panel(tried: TriedPanel, code: str) -> Diagnosis:
    """Make all checks of a panel."""
    return Diagnosis.of(answers(CHECKS_OF_PANELS, tried).values(), "Nothing to do: the level is kept.", code)


def judged(tried: Tried, stride: float) -> Diagnosis:
    """Make all checks, and give code that fits a cone to windows that start so many steps apart."""
    found = answers(CHECKS, tried)
    spaced = "" if stride == 1.0 else f", stride={stride:g}"
    fitted = f"ForecastIntervals(confidence_level={tried.level:g}).fit(y_true, y_pred{spaced})"
    code = f"from pimeter import ForecastIntervals\ncone = {fitted}  # all windows; update it from here on"
    return Diagnosis.of(found.values(), "Nothing to do: the cone keeps its level.", code)
