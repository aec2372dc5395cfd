"""The check of bias: mean residuals on the whole, and by prediction, feature and category."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pimeter.coverage import rounded
from pimeter.evaluation.diagnosis.check import MIN_ROWS, Check, by_chance, count, in_percent
from pimeter.evaluation.diagnosis.evidence import PredictionEvidence
from pimeter.evaluation.diagnosis.shifts import MEAN_CONFIDENCE, PLACES, Shift, mean_residual

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pimeter.clusters import Units
    from pimeter.findings import Finding
    from pimeter.moments import Range
    from pimeter.protocols import Array


class Bias(Check[PredictionEvidence]):
    """Mean residuals of all rows and of subgroups, where they depart from it."""

    name = "bias"
    question = "Is the model biased, on the whole or somewhere?"
    looks_at = "residuals of all rows; of up to 5,000 by prediction, by each feature and by category"
    statistic = "mean residual (Student's t and Johnson's), and the largest departure from it, all places together"
    least_mean = 0.05  # mean residual that matters, in margins ...
    least_departure = 0.1  # ... and departure of that of a subgroup
    significance = 2 * PLACES

    def _judged(self, evidence: PredictionEvidence, _earlier: Mapping[str, Finding]) -> Finding:
        shown = evidence.mean_range
        return self.judge(evidence.residuals, evidence.margin, evidence.local_shift, evidence.units, shown)

    def judge(
        self,
        residuals: Array,
        margin: float,
        local: Shift | None = None,
        units: Units | None = None,
        mean_range: Range | None = None,
    ) -> Finding:
        """From residuals, what is much, the subgroup that departs most, and what is independent of what.

        Of the mean of all that range is shown which its score has, where there is one.
        """
        m = len(residuals)
        if m < MIN_ROWS:
            return self.finding(m, f"{count(m)} too few to tell a mean residual from 0.", reference=0.0)
        if units is not None and units.n < 2:
            return self.finding(m, "All rows belong together: nothing tells a mean residual from 0.", reference=0.0)
        whole = mean_residual(residuals, units)
        if mean_range is not None:
            whole = whole._replace(lower=mean_range.lower, upper=mean_range.upper)
        is_overall, is_local = self.is_overall(whole, margin), self.is_local(local, margin)
        sentence = _of_all(whole, is_much=is_overall)
        advice = [_overall_advice(whole)] if is_overall else []
        if local is not None:
            sentence += f" It differs most {_of_place(local, is_much=is_local)}"
            advice = [_local_advice(local), *advice] if is_local else advice
        shown, reference, least = whole, 0.0, self.least_mean
        if local is not None and is_local:
            shown, reference, least = local, local.mean - local.departure, self.least_departure
        p_value = min(1.0, 2.0 * min(whole.p_value, 1.0 if local is None else local.p_value))
        return self.finding(
            m,
            sentence,
            " ".join(advice),
            value=shown.mean,
            reference=reference,
            bounds=(shown.lower, shown.upper),
            p_value=p_value,
            threshold=least * margin,
        )

    def is_overall(self, whole: Shift, margin: float) -> bool:
        """Whether the mean of all residuals is more than chance explains, and enough to matter."""
        return whole.p_value <= PLACES and abs(whole.mean) >= self.least_mean * margin

    def is_local(self, local: Shift | None, margin: float) -> bool:
        """Whether a subgroup departs from the others by more than chance explains, and enough to matter."""
        if local is None or local.p_value > PLACES:
            return False
        return abs(local.departure) >= self.least_departure * margin


def _in_range(shift: Shift) -> str:
    return f"{rounded(shift.mean, 3)} (between {rounded(shift.lower, 3)} and {rounded(shift.upper, 3)}"


def _of_all(whole: Shift, *, is_much: bool) -> str:
    """What is said of the mean of all residuals."""
    sentence = f"The mean residual is {_in_range(whole)} with {in_percent(MEAN_CONFIDENCE)} confidence)"
    if math.isnan(whole.lower):
        sentence = f"The mean residual is {rounded(whole.mean, 3)} (its range is not known)"
    if whole.p_value > PLACES:
        return sentence + by_chance(whole.p_value)
    return sentence + ("." if is_much else ", too little to matter.")


def _of_place(local: Shift, *, is_much: bool) -> str:
    """What is said of the subgroup that departs most; a range only of what chance does not explain."""
    if local.p_value > PLACES:
        return f"{local.place}, where it is {rounded(local.mean, 3)}{by_chance(local.p_value)}"
    sure = f"with {in_percent(1.0 - PLACES)} confidence for all {local.n_places} places together"
    return f"{local.place}: {_in_range(local)}, {sure}){'.' if is_much else ', too little to matter.'}"


def _overall_advice(whole: Shift) -> str:
    """What to do about the mean of all residuals."""
    side, much = ("above", "little") if whole.mean > 0 else ("below", "much")
    return (
        f"Targets are {rounded(abs(whole.mean), 3)} {side} their prediction on average: the model predicts too {much}. "
        "Train it anew, or learn the two bounds of the interval separately."
    )


def _local_advice(local: Shift) -> str:
    """What to do about a subgroup."""
    side = "above" if local.mean > 0 else "below"
    shown = f"Targets are {rounded(abs(local.mean), 3)} {side} their prediction {local.place}"
    if local.criterion is None or local.criterion.values is None:
        return f"{shown}: correct the model by category, or give each category bounds of its own."
    what = "its own prediction" if local.criterion.of == "prediction" else local.criterion.of
    return f"{shown}: correct the model along {what}, or let the bounds learn from the features."
