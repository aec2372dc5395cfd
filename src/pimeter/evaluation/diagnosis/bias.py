"""The check of bias: mean residuals on the whole, and by prediction, feature and category."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pimeter.coverage import rounded
from pimeter.evaluation.diagnosis.check import MIN_ROWS, Check, by_chance, count, in_percent
from pimeter.evaluation.diagnosis.evidence import Evidence
from pimeter.evaluation.diagnosis.shifts import MEAN_CONFIDENCE, PLACES, Shift, mean_residual

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pimeter.clusters import Units
    from pimeter.findings import Finding
    from pimeter.protocols import Array


class Bias(Check[Evidence]):
    """Mean residuals of all rows and of subgroups, where they depart from it."""

    name = "bias"
    question = "Is the model biased, on the whole or somewhere?"
    looks_at = "residuals of all rows; of up to 5,000 by prediction, by each feature and by category"
    statistic = "mean residual (Student's t and Johnson's), and the largest departure from it, all places together"
    threshold = 0.05  # least mean residual that matters, in margins ...
    least_departure = 0.1  # ... and least departure of that of a subgroup
    significance = 2 * PLACES

    def _judged(self, evidence: Evidence, _earlier: Mapping[str, Finding]) -> Finding:
        return self.judge(evidence.residuals, evidence.margin, evidence.local_shift, evidence.units)

    def judge(self, residuals: Array, margin: float, local: Shift | None = None, units: Units | None = None) -> Finding:
        """From residuals, what is much, the subgroup that departs most, and what is independent of what."""
        m = len(residuals)
        if m < MIN_ROWS:
            return self.finding(m, f"{count(m)} too few to tell a mean residual from 0.", reference=0.0)
        if units is not None and units.n < 2:
            return self.finding(m, "All rows belong together: nothing tells a mean residual from 0.", reference=0.0)
        whole, found = mean_residual(residuals, units), None
        advice = []
        sentence = f"The mean residual is {_in_range(whole)} with {in_percent(MEAN_CONFIDENCE)} confidence)"
        if whole.p_value > PLACES:
            sentence += by_chance(whole.p_value)
        elif not self.is_overall(whole, margin):
            sentence += ", too little to matter."
        else:
            sentence, found = f"{sentence}.", whole
            side, much = ("above", "little") if whole.mean > 0 else ("below", "much")
            advice.append(
                f"Targets are {rounded(abs(whole.mean), 3)} {side} their prediction on average: the model "
                f"predicts too {much}. Train it anew, or learn the two bounds of the interval separately."
            )
        if local is not None and local.p_value > PLACES:
            sentence += f" It differs most {local.place}, where it is {rounded(local.mean, 3)}"
            sentence += by_chance(local.p_value)
        elif local is not None:
            sure = f"with {in_percent(1.0 - PLACES)} confidence for all {local.n_places} places together"
            sentence += f" It differs most {local.place}: {_in_range(local)}, {sure})"
            if not self.is_local(local, margin):
                sentence += ", too little to matter."
            else:
                sentence, found = f"{sentence}.", local
                advice.insert(0, _local_advice(local))
        shown = found or whole
        p_value = min(1.0, 2.0 * min(whole.p_value, 1.0 if local is None else local.p_value))
        return self.finding(
            m,
            sentence,
            " ".join(advice),
            value=shown.mean,
            reference=0.0,
            bounds=(shown.lower, shown.upper),
            p_value=p_value,
        )

    def is_overall(self, whole: Shift, margin: float) -> bool:
        """Whether the mean of all residuals is more than chance explains, and enough to matter."""
        return whole.p_value <= PLACES and abs(whole.mean) >= self.threshold * margin

    def is_local(self, local: Shift | None, margin: float) -> bool:
        """Whether a subgroup departs from the others by more than chance explains, and enough to matter."""
        if local is None or local.p_value > PLACES:
            return False
        return abs(local.departure) >= self.least_departure * margin


def _in_range(shift: Shift) -> str:
    return f"{rounded(shift.mean, 3)} (between {rounded(shift.lower, 3)} and {rounded(shift.upper, 3)}"


def _local_advice(local: Shift) -> str:
    """What to do about a subgroup."""
    side = "above" if local.mean > 0 else "below"
    shown = f"Targets are {rounded(abs(local.mean), 3)} {side} their prediction {local.place}"
    if local.criterion is None or local.criterion.values is None:
        return f"{shown}: correct the model by category, or give each category bounds of its own."
    what = "its own prediction" if local.criterion.of == "prediction" else local.criterion.of
    return f"{shown}: correct the model along {what}, or let the bounds learn from the features."
