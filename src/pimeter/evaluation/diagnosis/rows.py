"""Checks of the rows themselves: whether there are enough, whether they vary, what is known of them, and copies."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from pimeter.conformal.guarantee import rank_guarantee
from pimeter.coverage import rows_needed
from pimeter.evaluation.diagnosis.check import Check, count, in_percent, is_constant, some_of
from pimeter.evaluation.diagnosis.evidence import PredictionEvidence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pimeter.findings import Finding

SAID = {  # of rows that are not exchangeable, by the finding that says so
    "drift": "residuals drift in the order given",
    "serial": "residuals depend on those before them",
    "zeros": "many residuals are exactly 0, as on rows that the model was trained on",
}


class EnoughRows(Check[PredictionEvidence]):
    """Whether the rows can guarantee the level, and how many would say it precisely."""

    name = "rows"
    question = "Are there enough rows for this level?"
    looks_at = "the number of rows"
    statistic = "their number, against the one that can guarantee the level; an interval for the true coverage"
    near_level = 0.02  # how near to it the true coverage should be

    def _judged(self, evidence: PredictionEvidence, earlier: Mapping[str, Finding]) -> Finding:
        fit, at = evidence.fit, evidence.at
        lower, upper = fit.coverage_ranges[at].tolist()
        found = self.judge(evidence.m, evidence.level, (lower, upper), is_tied=bool(fit.is_tied[at]))
        why = why_not_exchangeable(evidence, earlier)
        if not why:
            return found
        sentence, advice = f"{count(evidence.m)} there, but {why}: nothing is guaranteed.", found.advice
        if evidence.has_groups and evidence.units is not None and not evidence.copies.n:
            n_groups, guarantee = evidence.units.n_groups, rank_guarantee(evidence.units.n_groups, evidence.level)
            asked = f"to guarantee {in_percent(evidence.level)} with one row of each"
            groups = "1 group is" if n_groups == 1 else f"{n_groups:,} groups are"
            if guarantee.is_enough:
                sentence += f" {groups} enough {asked}."
            else:
                sentence += f" {groups} too few {asked}: {guarantee.needed} are needed."
                advice = f"Hold out rows of more groups: {guarantee.needed} {asked}."
        return replace(found, sentence=sentence, advice=advice, lower=math.nan, upper=math.nan)

    def judge(self, m: int, level: float, bounds: tuple[float, float], *, is_tied: bool) -> Finding:
        """From the number of rows, the level, and bounds of the true coverage."""
        guarantee = rank_guarantee(m, level)
        wanted = rows_needed(level, self.near_level)
        lower, upper = bounds
        asked, advice = in_percent(level), ""
        sentence = f"{count(m)} enough to guarantee {asked} on average. "
        if not guarantee.is_enough:
            sentence = (
                f"{count(m)} too few to guarantee {asked}: {'it' if m == 1 else 'they'} can guarantee "
                f"{in_percent(guarantee.level)}, and {guarantee.needed} are needed. "
            )
            advice = (
                f"Hold out more rows: {guarantee.needed} to guarantee {asked}, {wanted} to come within 2 points of it."
            )
        off = max(level - lower, upper - level)
        if is_tied:
            between = f"between {in_percent(lower)} and {in_percent(upper)}"
            sentence += f"The true coverage is {between}, as residuals are tied at the margin."
        else:
            sentence += f"The true coverage is within {100 * off:.2g} points of it"
            sentence += f"; with {wanted:,} rows it would be within 2." if off > self.near_level else "."
        return self.finding(m, sentence, advice, value=m, reference=guarantee.needed, bounds=bounds)


def why_not_exchangeable(evidence: PredictionEvidence, earlier: Mapping[str, Finding]) -> str:
    """Why rows guarantee less than their number says, as far as is known; empty if nothing speaks against it."""
    if evidence.copies.n:
        return str(evidence.copies)
    if evidence.has_groups:
        return "rows of a group may resemble each other"
    if evidence.has_time:
        return "rows may depend on those before them"
    return next((why for name, why in SAID.items() if name in earlier and earlier[name].raised), "")


class Variation(Check[PredictionEvidence]):
    """Whether there is anything to learn from targets and predictions."""

    name = "variation"
    question = "Do targets and predictions vary?"
    looks_at = "targets and predictions of all rows"
    statistic = "how many of the two are constant"

    def _judged(self, evidence: PredictionEvidence, _earlier: Mapping[str, Finding]) -> Finding:
        m, known = evidence.m, {"targets": evidence.target, "predictions": evidence.prediction}
        same = [name for name, values in known.items() if is_constant(values)]
        if not same or m == 1:
            sentence = "Targets and predictions vary." if m > 1 else "One row cannot vary."
            return self.finding(m, sentence, value=0, reference=0)
        sentence = f"All {' and all '.join(same)} are equal, so this says next to nothing about a model."
        advice = f"Measure rows whose {' and '.join(same)} differ."
        if same == ["predictions"]:
            advice = (
                "The model says the same for all rows: was it trained, and is this the column of its predictions? If "
                "so, measure rows whose predictions differ."
            )
        return self.finding(m, sentence, advice, value=len(same), reference=0)


class GivenFeatures(Check[PredictionEvidence]):
    """What was looked at besides the predictions, and what was not."""

    name = "features"
    question = "What else of the rows was looked at?"
    looks_at = "columns of X, and by"
    statistic = "how many were left out, as ids tell rows apart and nothing else"

    def _judged(self, evidence: PredictionEvidence, _earlier: Mapping[str, Finding]) -> Finding:
        given = evidence.given
        n = len(given.columns) + (given.labels is not None)
        sentence = f"{n:,} {'column was' if n == 1 else 'columns were'} looked at besides the prediction."
        sentence = " ".join([sentence, *given.left_out])
        return self.finding(len(evidence.some), sentence, value=len(given.left_out), reference=0)


class CopiedRows(Check[PredictionEvidence]):
    """Rows that occur more than once, where chance does not explain it."""

    name = "copies"
    question = "Are rows copies of others?"
    looks_at = "features and targets of all rows, or predictions and targets"
    statistic = "how many are copies, where few possible values do not explain it"

    def _judged(self, evidence: PredictionEvidence, _earlier: Mapping[str, Finding]) -> Finding:
        equal, m = evidence.copies, evidence.m
        if not equal.n:
            chance = ", as rows of few possible values are" if equal.n_equal else ""
            same = f"{some_of(equal.n_equal, m, 'rows')} equal to others"
            return self.finding(m, f"{same}{chance}.", value=0, reference=0)
        return self.finding(
            m,
            f"{equal}, so that ranges are wider by a factor of {equal.factor:.3g}.",
            f"{equal}, which say nothing new: measure each row once, and calibrate with copies as one group.",
            value=equal.n,
            reference=0,
        )
