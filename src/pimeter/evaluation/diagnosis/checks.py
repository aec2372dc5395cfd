"""The checks of a model, in the order in which they are made and shown, and what follows from their findings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from pimeter.coverage import rounded
from pimeter.evaluation.diagnosis.bias import Bias
from pimeter.evaluation.diagnosis.check import answers
from pimeter.evaluation.diagnosis.order import Drift, SerialDependence
from pimeter.evaluation.diagnosis.recommendation import recommended
from pimeter.evaluation.diagnosis.rows import CopiedRows, EnoughRows, GivenFeatures, Variation, why_not_exchangeable
from pimeter.evaluation.diagnosis.shape import HeavyTails, Outliers, Skewness
from pimeter.evaluation.diagnosis.targets import DiscreteTarget, ZeroResiduals
from pimeter.evaluation.diagnosis.width import CoverageGap, LeastCovered, ScaledGain
from pimeter.findings import Diagnosis

if TYPE_CHECKING:
    from pimeter.evaluation.diagnosis.check import Check
    from pimeter.evaluation.diagnosis.evidence import PredictionEvidence

CHECKS: tuple[Check[PredictionEvidence], ...] = (
    EnoughRows(),
    Variation(),
    GivenFeatures(),
    CoverageGap(),
    LeastCovered(),
    ScaledGain(),
    Bias(),
    Skewness(),
    HeavyTails(),
    DiscreteTarget(),
    Outliers(),
    ZeroResiduals(),
    CopiedRows(),
    Drift(),
    SerialDependence(),
)
OF_STRETCHES = ("width", "worst_subgroup", "gain", "bias", "skew", "heavy", "drift")
CUT = "No target is negative, but intervals would go below 0: cut them there (y_min=0), unless some can be."
OF_WIDTH = {"width", "worst_subgroup", "gain"}
KEPT = "The code keeps a constant width: with so few rows or groups another one would lose more than it gains."
CONSTANT_IS_ENOUGH = "A constant width with symmetric tails is enough."
NOTHING_TO_DO = "Nothing to do: a constant width with symmetric tails is enough."


class Judgement(NamedTuple):
    """What the checks found, how to make intervals, and why rows guarantee nothing (empty if they do)."""

    diagnosis: Diagnosis
    width: str
    tails: str
    why_nothing: str


def judged(evidence: PredictionEvidence) -> Judgement:
    """Make all checks, and say what follows.

    Some are made once more in the light of the others: where residuals turn out to depend on those before them,
    stretches of rows count, and what was found of the order makes rows guarantee less than their number says.
    """
    found = answers(CHECKS, evidence)
    if found["serial"].raised and evidence.units is None:
        evidence = evidence.in_stretches()
        again = [check for check in CHECKS if check.name in OF_STRETCHES]
        found |= answers(again, evidence, {name: one for name, one in found.items() if name not in OF_STRETCHES})
    found["rows"] = EnoughRows()(evidence, found)
    recommendation = recommended(evidence, found)
    diagnosis = Diagnosis.of(found.values(), NOTHING_TO_DO, recommendation.code(evidence.level))
    is_kept = recommendation.width == "constant" and OF_WIDTH.intersection(diagnosis.raised)
    beside = (*([KEPT] if is_kept else []), *([] if recommendation.y_min is None else [CUT]))
    level_end = len(diagnosis.code) - len(recommendation.after_level)
    diagnosis = replace(
        diagnosis,
        advice=(*diagnosis.advice, *beside),
        options=recommendation.options,
        level_span=(level_end - len(repr(evidence.level)), level_end),
    )
    return Judgement(diagnosis, recommendation.width, recommendation.tails, why_not_exchangeable(evidence, found))


def beside_mean_error(diagnosis: Diagnosis, mean: float, lower: float, upper: float) -> Diagnosis:
    """Where nothing is to be done, a word on a mean error whose range does not hold 0."""
    if diagnosis.raised or not (lower > 0.0 or upper < 0.0):
        return diagnosis
    why, first = "too little to matter compared with the margin.", NOTHING_TO_DO
    if diagnosis["bias"].p_value > Bias.significance:
        why = (
            "on its own this would be unlikely by chance, but a report runs many checks at once. More rows would tell."
        )
        first = CONSTANT_IS_ENOUGH
    side = "above" if mean > 0.0 else "below"
    said = f"Targets are {rounded(abs(mean), 3)} {side} their prediction on average"
    where = f"between {rounded(lower, 3)} and {rounded(upper, 3)}, 90 % confidence"
    return replace(diagnosis, advice=(first, *diagnosis.advice[1:], f"{said} ({where}): {why}"))
