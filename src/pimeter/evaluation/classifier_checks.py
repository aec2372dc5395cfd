"""The checks of a classifier, in the order in which they are shown."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from pimeter.classification.unlabelled import SAME_POPULATION
from pimeter.coverage import counted, rounded
from pimeter.duplicates import copies
from pimeter.evaluation.classifier_evidence import ROWS_PER_BIN, ClassifierEvidence
from pimeter.evaluation.diagnosis.check import Check, answers
from pimeter.findings import Diagnosis
from pimeter.row_hashes import row_keys

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pimeter.findings import Finding

NOTHING_TO_DO = "Nothing to do: no check raises an alarm."


class CheckOfLabels(Check[ClassifierEvidence]):
    """A check that looks at labels."""

    def applies(self, evidence: ClassifierEvidence) -> bool:
        """Whether some rows have a label."""
        return evidence.labelled.n > 0


class BeatsMajorityClass(CheckOfLabels):
    """Accuracy is above that of one answer for all where most rows called the rarer class belong to it."""

    name = "majority"
    question = "Is it better than always predicting the majority class?"
    looks_at = "rows that are called the rarer class"
    statistic = "the fraction of them that belongs to it, with an interval"

    def _judged(self, evidence: ClassifierEvidence, _earlier: Mapping[str, Finding]) -> Finding:
        n_negative, n_positive = evidence.labelled.n_negative, evidence.labelled.n_positive
        if not evidence.labelled.n_rarer:
            only = "positive" if n_positive else "negative"
            return self.finding(evidence.labelled.n, f"Not known: all rows with a label are {only}.", reference=0.5)
        metric, rarer = ("ppv", "positive") if n_positive <= n_negative else ("npv", "negative")
        found = evidence.metric(metric)
        lower, upper = found.lower, found.upper
        bounds = f"{points(lower)} to {points(upper)} % of the rows that it calls {rarer}, the rarer class, are {rarer}"
        advice = ""
        if math.isnan(found.value):
            sentence = f"No: it calls no row {rarer}, the rarer class."
            advice = "Try another threshold, which may do better."
        elif lower > 0.5:
            sentence = f"Yes: {bounds}, more than half."
            majority, least = max(n_negative, n_positive) / evidence.labelled.n, evidence.metric("accuracy").lower
            if least > majority:
                sentence = (
                    f"Yes: at least {points(least)} % right, against {points(majority)} % for always predicting the "
                    "majority class."
                )
        elif upper < 0.5:
            sentence = f"No: {bounds}, less than half."
            advice = (
                "Try another threshold, which may do better; where misses cost more than false alarms, accuracy is not "
                "the right guide."
            )
        else:
            sentence = f"Not certain: {bounds}; it would have to be more than half."
            advice = "Label more rows to tell whether it is better than always predicting the majority class."
        rows = evidence.labelled.n
        return self.finding(rows, sentence, advice, value=found.value, reference=0.5, bounds=(lower, upper))


class MetricInWords(Check[ClassifierEvidence]):
    """A metric with its interval, as a sentence."""

    looks_at = "all rows"
    statistic = "the metric at the first threshold, with its interval"
    says: ClassVar[str]

    def _judged(self, evidence: ClassifierEvidence, _earlier: Mapping[str, Finding]) -> Finding:
        found = evidence.metric(self.name)
        sentence = f"{points(found.lower)} to {points(found.upper)} % {self.says}"
        bounds = (found.lower, found.upper)
        return self.finding(evidence.uncertainty.n_rows, sentence, value=found.value, bounds=bounds)


class Precision(MetricInWords):
    """Positives among the rows that are called positive."""

    name = "ppv"
    question = "What does a positive answer mean?"
    says = "of the rows called positive are positive."


class Sensitivity(MetricInWords):
    """Positives that are found."""

    name = "tpr"
    question = "How many positives does it find?"
    says = "of the positives are called positive."


class MoreRows(Check[ClassifierEvidence]):
    """How precisely accuracy is known, and what would make it more precise."""

    name = "more_rows"
    question = "Would more rows help?"
    looks_at = "the interval of accuracy"
    statistic = "its width"

    def _judged(self, evidence: ClassifierEvidence, _earlier: Mapping[str, Finding]) -> Finding:
        found, accuracy = evidence.uncertainty, evidence.metric("accuracy")
        # Without labels of its own, or with few among many, what is known comes from those that calibrate or are there.
        scarce = found.assumes == SAME_POPULATION or accuracy.method == "prediction-powered"
        more = "rows with a label" if scarce else "rows"
        width = accuracy.upper - accuracy.lower
        wide = f"The interval of accuracy is {points(width)} percentage points wide"
        return self.finding(found.n_rows, f"{wide}; four times as many {more} about halve it.", value=width)


class EnoughOfEachClass(CheckOfLabels):
    """Whether both classes have enough labelled rows."""

    name = "classes"
    question = "Are there enough rows of each class?"
    looks_at = "labels"
    statistic = "rows of the rarer class"
    least_rows = 10  # below which little can be said of a class

    def _judged(self, evidence: ClassifierEvidence, _earlier: Mapping[str, Finding]) -> Finding:
        n_negative, n_positive = evidence.labelled.n_negative, evidence.labelled.n_positive
        fewest = evidence.labelled.n_rarer
        sentence = f"{counted(n_positive, 'positive')} and {counted(n_negative, 'negative')} have a label."
        advice = ""
        if not fewest:
            advice = "Label rows of the other class, too: they are needed to judge a classifier."
        elif fewest < self.least_rows:
            advice = "Label more rows of the rarer class: what is said of it rests on very few rows."
        return self.finding(evidence.labelled.n, sentence, advice, value=fewest)


class CalibratedScores(CheckOfLabels):
    """Whether scores are calibrated, by the test of all bins together."""

    name = "calibration"
    question = "Can scores be read as probabilities?"
    looks_at = "scores and labels in bins of equally many rows"
    statistic = "the calibration error, and the p-value of all bins together; scores of 0 and 1 that are wrong"

    def _judged(self, evidence: ClassifierEvidence, _earlier: Mapping[str, Finding]) -> Finding:
        bins, error = evidence.reliability, evidence.calibration_error
        assert bins is not None
        assert error is not None
        n_bins, n_off, p_value = len(bins["score"]), sum(bins["is_off"]), bins["p_value"]
        none = f"none of {n_bins} bins contradicts the score" if n_bins > 1 else "labels do not contradict the scores"
        few = "" if evidence.labelled.n >= ROWS_PER_BIN else ", but such few rows say little"
        certain = evidence.labelled.certain()
        verb = "is" if certain.n_wrong == 1 else "are"
        wrong = f"{certain.n_wrong:,} of {counted(certain.n, 'row')} with a score of 0 or 1 {verb}"
        rounding = f"; {wrong} of the other class, as rounded scores may be" if certain.n_wrong else ""
        sentence, advice, code = f"Nothing speaks against it: {none}{few}{rounding}.", "", ""
        significance = 1.0 - evidence.uncertainty.confidence_level
        if min(p_value, certain.chance) <= significance:
            where = (
                f"in {n_off} of {n_bins} bins the fraction of positives contradicts the score"
                if n_off
                else f"{wrong} of the other class, which no such probability allows"
                if certain.chance <= significance
                else f"the labels contradict them (p = {p_value:.2g}), though no single one of {n_bins} bins does"
            )
            size = f" Typically they are {points(error)} percentage points off (calibration error)." if error else ""
            sentence = f"No: {where}.{size}"
            if evidence.labelled.n_rarer:
                advice = "Do not read scores as probabilities; calibrate those of new rows."
                code = (
                    "from pimeter import calibrated_scores\n"
                    "new_probability = calibrated_scores(y_true, y_score, new_score)"
                )
            else:
                advice = "Do not read scores as probabilities; calibrating them needs labels of both classes."
        return self.finding(
            evidence.labelled.n,
            sentence,
            advice,
            code=code,
            value=error,
            reference=0.0,
            p_value=min(p_value, certain.chance),
        )


FIRST_ROWS = (
    "import numpy as np\n"
    "from pimeter import duplicate_groups\n"
    "first_rows = np.unique(duplicate_groups(y_score, y_true), return_index=True)[1]"
)


class CopiedLabels(CheckOfLabels):
    """Scores and labels that nearly all occur a multiple of a number of times; a few copies may be chance."""

    name = "copies"
    question = "Are rows copies of others?"
    looks_at = "scores and labels"
    statistic = "how many are copies, where chance does not explain it"

    def _judged(self, evidence: ClassifierEvidence, _earlier: Mapping[str, Finding]) -> Finding:
        rows = evidence.labelled
        label = rows.is_positive.astype(np.float64)
        equal = copies(row_keys(rows.score, label), None, label, prediction=rows.score)
        if not equal.n:
            chance = ", as they may by chance" if equal.n_equal else ""
            sentence = f"{equal.n_equal:,} of {rows.n:,} rows have the score and the label of others{chance}."
            return self.finding(rows.n, sentence, value=0, reference=0)
        return self.finding(
            rows.n,
            f"{equal}: intervals count each of them, and are too narrow by a factor of {equal.factor:.3g}.",
            "Leave the copies out: keep the first row of each kind.",
            code=FIRST_ROWS,
            value=equal.n,
            reference=0,
        )


class SameAccuracy(Check[ClassifierEvidence]):
    """Whether accuracy is the same in all categories."""

    name = "categories"
    question = "Is it as good everywhere?"
    looks_at = "accuracy of each category against all others"
    statistic = "how many categories differ by Fisher's exact test, and the smallest p-value"

    def applies(self, evidence: ClassifierEvidence) -> bool:
        """Whether categories are given."""
        return bool(evidence.categories)

    def _judged(self, evidence: ClassifierEvidence, _earlier: Mapping[str, Finding]) -> Finding:
        judged = evidence.categories
        different = [category for category in judged if category.is_different]
        sentence, advice = "No category differs from the others by more than chance.", ""
        if different:
            names = ", ".join(f"{category.label} ({points(category.accuracy)} %)" for category in different)
            sentence = f"No: {names} differ from the others by more than chance."
            advice = "Do not rely on the accuracy of all rows there: judge these categories separately."
        p_value = min(category.p_value for category in judged)
        rows = sum(category.rows for category in judged)
        return self.finding(rows, sentence, advice, value=len(different), reference=0, p_value=p_value)


CHECKS: tuple[Check[ClassifierEvidence], ...] = (
    BeatsMajorityClass(),
    Precision(),
    Sensitivity(),
    MoreRows(),
    EnoughOfEachClass(),
    CalibratedScores(),
    CopiedLabels(),
    SameAccuracy(),
)


def judged(evidence: ClassifierEvidence) -> Diagnosis:
    """Make all checks that apply."""
    return Diagnosis.of(answers(CHECKS, evidence).values(), NOTHING_TO_DO)


def points(fraction: float) -> str:
    """A fraction in percentage points, without a unit; a question mark where it is not known."""
    return "?" if math.isnan(fraction) else rounded(100.0 * fraction, 3, whole=100.0)
