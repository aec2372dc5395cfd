"""The checks of a model, in the order in which they are made and shown, and what follows from their findings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from pimeter.conformal.guarantee import rank_guarantee
from pimeter.evaluation.diagnosis.bias import Bias
from pimeter.evaluation.diagnosis.order import Drift, SerialDependence
from pimeter.evaluation.diagnosis.rows import CopiedRows, EnoughRows, Features, Variation
from pimeter.evaluation.diagnosis.shape import HeavyTails, Outliers, Skewness
from pimeter.evaluation.diagnosis.targets import DiscreteTarget, ZeroResiduals
from pimeter.evaluation.diagnosis.width import CoverageGap, Gap, ScaledGain
from pimeter.findings import Diagnosis

if TYPE_CHECKING:
    from pimeter.evaluation.diagnosis.check import Check
    from pimeter.evaluation.diagnosis.evidence import Evidence
    from pimeter.findings import Finding

CHECKS: tuple[Check[Evidence], ...] = (
    EnoughRows(),
    Variation(),
    Features(),
    CoverageGap(),
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
NOTHING = "Nothing to do: a constant width with symmetric tails is enough."


class Judgement(NamedTuple):
    """What the checks found, and what `IntervalRegressor` should use."""

    diagnosis: Diagnosis
    width: Literal["constant", "scaled", "grouped"]
    tails: Literal["symmetric", "equal"]


def judged(evidence: Evidence) -> Judgement:
    """Make all checks, and say what follows."""
    found: dict[str, Finding] = {}
    for check in CHECKS:
        found[check.name] = check(evidence, found)
    raised = {name for name, finding in found.items() if finding.raised}
    width: Literal["constant", "scaled", "grouped"] = "constant"
    code = ""
    if "width" in raised:
        code = Gap.of(evidence.subgroups, evidence.level, evidence.coverage).grouped_width(evidence.given.columns)
    if raised & {"width", "gain"}:
        width = "grouped" if code else "scaled"
    is_enough = rank_guarantee(evidence.m, evidence.level, n_cuts=2).is_enough
    tails: Literal["symmetric", "equal"] = "equal" if raised & {"bias", "skew"} and is_enough else "symmetric"
    if raised & {"drift", "serial"}:
        line = f"OnlineNeuron(confidence_level={evidence.level})"
    else:
        asked = "" if evidence.level == 0.95 else f"confidence_level={evidence.level}, "
        chosen = code or f'"{width}"'
        line = f'IntervalRegressor(model, {asked}width={chosen}, tails="{tails}")'
    return Judgement(Diagnosis.of(found.values(), NOTHING, line), width, tails)


def beside_mean_error(diagnosis: Diagnosis, mean: float, lower: float, upper: float) -> Diagnosis:
    """Where nothing is to be done, a word on a mean error whose range does not hold 0."""
    if diagnosis.raised or not (lower > 0.0 or upper < 0.0):
        return diagnosis
    why = "too little to matter beside the margin."
    if diagnosis["bias"].p_value > Bias.significance:
        why = "by itself that would be no chance, but a report asks much at once. More rows would tell."
    said = f"Targets are {abs(mean):.3g} {'above' if mean > 0.0 else 'below'} their prediction on average (between "
    return replace(diagnosis, advice=(*diagnosis.advice, f"{said}{lower:.3g} and {upper:.3g}, 90 % confidence): {why}"))
