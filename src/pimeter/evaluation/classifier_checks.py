"""The checks of a classifier, in the order in which they are shown, and what they look at."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.stats import hypergeom

from pimeter.classification.calibration import calibration_error, reliability
from pimeter.classification.confusion import Cells, outcome_codes
from pimeter.classification.inputs import as_precise
from pimeter.classification.proportions import Proportion, clopper_pearson
from pimeter.classification.unlabelled import SAME_POPULATION
from pimeter.coverage import counted, rounded
from pimeter.duplicates import copies, row_keys
from pimeter.evaluation.diagnosis.check import Check
from pimeter.evaluation.diagnosis.columns import categories
from pimeter.findings import Diagnosis

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from pimeter.classification.estimates import ClassificationUncertainty
    from pimeter.findings import Finding

    Array = NDArray[np.float64]

N_RELIABILITY_BINS = 10  # of the reliability diagram, at most
ROWS_PER_BIN = 20  # that each of them shall have
NOTHING_TO_DO = "Nothing to do: no check raises an alarm."


@dataclass(frozen=True)
class Category:
    """Accuracy in one category."""

    label: str
    rows: int  # that have a label
    accuracy: float
    lower: float  # bounds of an interval that holds for all categories together
    upper: float
    p_value: float  # of Fisher's exact test of this category against all others, two-sided
    is_different: bool  # whether chance does not explain how it differs from the others


@dataclass(frozen=True)
class Labelled:
    """The rows that have a label: scores in the precision that they came in, and whether they are positive."""

    score: NDArray[Any]
    is_positive: NDArray[np.bool_]

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.score)

    @property
    def n_by_class(self) -> tuple[int, int]:
        """Numbers of negatives and of positives."""
        n_positive = int(np.count_nonzero(self.is_positive))
        return self.n - n_positive, n_positive

    @property
    def n_bins(self) -> int:
        """Bins of a reliability diagram."""
        return min(N_RELIABILITY_BINS, max(1, self.n // ROWS_PER_BIN))

    def cells(self, threshold: float) -> Array:
        """Numbers of rows of the four outcomes."""
        return Cells.counted(outcome_codes(self.is_positive, is_above(self.score, threshold)), 4, None).rows

    def reliability(self, level: float) -> dict[str, Any] | None:
        """Scores against labels in bins, with intervals of this level; None without rows."""
        if not self.n:
            return None
        found = reliability(self.is_positive, self.score, n_bins=self.n_bins, confidence_level=level)
        return {name: np.asarray(column).tolist() for name, column in found._asdict().items()}

    def calibration_error(self) -> float | None:
        """Debiased, a lower bound, in the same bins; None without rows."""
        if not self.n:
            return None
        return float(calibration_error(self.is_positive, self.score, n_bins=self.n_bins, method="lower"))

    def categories(self, by: NDArray[Any], threshold: float, level: float) -> list[Category]:
        """Accuracy of each category beside that of all others; intervals hold for all categories together."""
        codes, labels = categories(by)
        is_right = self.is_positive == is_above(self.score, threshold)
        counts = np.bincount(codes, minlength=len(labels))
        right = np.bincount(codes, is_right, minlength=len(labels))
        chance = (1.0 - level) / max(len(labels), 1)
        # Were all categories the same, each would hold a random draw of the right answers: Fisher's exact test.
        draws = hypergeom(self.n, int(right.sum()), counts)
        p_values = np.minimum(1.0, 2.0 * np.minimum(draws.cdf(right), draws.sf(right - 1)))
        found = []
        for label, n, hits, p_value in zip(labels, counts.tolist(), right.tolist(), p_values.tolist(), strict=True):
            lower, upper = clopper_pearson(Proportion(hits / n, float(n)), 1.0 - chance)
            found.append(Category(label, n, hits / n, lower, upper, p_value, p_value < chance))
        return found


@dataclass(frozen=True)
class ClassifierEvidence:
    """What the checks of a classifier may look at."""

    uncertainty: ClassificationUncertainty  # metrics at each threshold, of which checks look at the first
    labelled: Labelled
    reliability: dict[str, Any] | None  # scores against labels in bins
    calibration_error: float | None  # how far scores are from being calibrated, at least
    categories: list[Category]

    def metric(self, name: str) -> tuple[float, float, float]:
        """Value, lower and upper bound of a metric at the first threshold."""
        found = self.uncertainty
        return found.value[name][0], found.lower[name][0], found.upper[name][0]


class CheckOfLabels(Check[ClassifierEvidence]):
    """A check that looks at labels."""

    def applies(self, evidence: ClassifierEvidence) -> bool:
        """Whether there are any."""
        return evidence.labelled.n > 0


class BeatsMajorityClass(CheckOfLabels):
    """Accuracy is above that of one answer for all where most rows called the rarer class belong to it."""

    name = "majority"
    question = "Is it better than always predicting the majority class?"
    looks_at = "rows that are called the rarer class"
    statistic = "the fraction of them that belongs to it, with an interval"

    def _judged(self, evidence: ClassifierEvidence, _earlier: Mapping[str, Finding]) -> Finding:
        n_negative, n_positive = evidence.labelled.n_by_class
        if not min(n_negative, n_positive):
            only = "positive" if n_positive else "negative"
            return self.finding(evidence.labelled.n, f"Not known: all rows with a label are {only}.", reference=0.5)
        metric, rarer = ("ppv", "positive") if n_positive <= n_negative else ("npv", "negative")
        value, lower, upper = evidence.metric(metric)
        bounds = f"{points(lower)} to {points(upper)} % of the rows that it calls {rarer}, the rarer class, are {rarer}"
        advice = ""
        if math.isnan(value):
            sentence = f"No: it calls no row {rarer}, the rarer class."
            advice = "Try another threshold, which may do better."
        elif lower > 0.5:
            sentence = f"Yes: {bounds}, more than half."
            majority, least = max(n_negative, n_positive) / evidence.labelled.n, evidence.metric("accuracy")[1]
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
        return self.finding(rows, sentence, advice, value=value, reference=0.5, bounds=(lower, upper))


class MetricInWords(Check[ClassifierEvidence]):
    """A metric with its interval, as a sentence."""

    looks_at = "all rows"
    statistic = "the metric at the first threshold, with its interval"
    says: ClassVar[str]

    def _judged(self, evidence: ClassifierEvidence, _earlier: Mapping[str, Finding]) -> Finding:
        value, lower, upper = evidence.metric(self.name)
        sentence = f"{points(lower)} to {points(upper)} % {self.says}"
        return self.finding(evidence.uncertainty.n_rows, sentence, value=value, bounds=(lower, upper))


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

    name = "precision"
    question = "Would more rows help?"
    looks_at = "the interval of accuracy"
    statistic = "its width"

    def _judged(self, evidence: ClassifierEvidence, _earlier: Mapping[str, Finding]) -> Finding:
        found = evidence.uncertainty
        _, lower, upper = evidence.metric("accuracy")
        # Without labels of its own, or with few among many, what is known comes from those that calibrate or are there.
        scarce = found.assumes == SAME_POPULATION or found.method["accuracy"][0] == "prediction-powered"
        more = "rows with a label" if scarce else "rows"
        width = points(upper - lower)
        sentence = (
            f"The interval of accuracy is {width} percentage points wide; four times as many {more} about halve it."
        )
        return self.finding(found.n_rows, sentence, value=upper - lower)


class EnoughOfEachClass(CheckOfLabels):
    """Whether both classes have enough labelled rows."""

    name = "classes"
    question = "Are there enough rows of each class?"
    looks_at = "labels"
    statistic = "rows of the rarer class"
    threshold = 10  # rows below which little can be said of a class

    def _judged(self, evidence: ClassifierEvidence, _earlier: Mapping[str, Finding]) -> Finding:
        n_negative, n_positive = evidence.labelled.n_by_class
        fewest = min(n_negative, n_positive)
        sentence = f"{counted(n_positive, 'positive')} and {counted(n_negative, 'negative')} have a label."
        advice = ""
        if not fewest:
            advice = "Label rows of the other class, too: they are needed to judge a classifier."
        elif fewest < self.threshold:
            advice = "Label more rows of the rarer class: what is said of it rests on very few rows."
        return self.finding(evidence.labelled.n, sentence, advice, value=fewest)


class Calibration(CheckOfLabels):
    """Whether scores are calibrated, by the test of all bins together."""

    name = "calibration"
    question = "Can scores be read as probabilities?"
    looks_at = "scores and labels in bins of equally many rows"
    statistic = "the calibration error, and the p-value of all bins together"

    def _judged(self, evidence: ClassifierEvidence, _earlier: Mapping[str, Finding]) -> Finding:
        bins, error = evidence.reliability, evidence.calibration_error
        assert bins is not None
        assert error is not None
        n_bins, n_off, p_value = len(bins["score"]), sum(bins["is_off"]), bins["p_value"]
        none = f"none of {n_bins} bins contradicts the score" if n_bins > 1 else "labels do not contradict the scores"
        few = "" if evidence.labelled.n >= ROWS_PER_BIN else ", but such few rows say little"
        sentence, advice, code = f"Nothing speaks against it: {none}{few}.", "", ""
        if p_value <= 1.0 - evidence.uncertainty.confidence_level:
            where = (
                f"in {n_off} of {n_bins} bins the fraction of positives contradicts the score"
                if n_off
                else f"the labels contradict them (p = {p_value:.2g}), though no single one of {n_bins} bins does"
            )
            size = f" Typically they are {points(error)} percentage points off (calibration error)." if error else ""
            sentence = f"No: {where}.{size}"
            if min(evidence.labelled.n_by_class):
                advice = "Do not read scores as probabilities; calibrate those of new rows."
                code = (
                    "from pimeter import calibrated_scores\n"
                    "new_probability = calibrated_scores(y_true, y_score, new_score)"
                )
            else:
                advice = "Do not read scores as probabilities; calibrating them needs labels of both classes."
        return self.finding(
            evidence.labelled.n, sentence, advice, code=code, value=error, reference=0.0, p_value=p_value
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
            code="first_rows = np.unique(duplicate_groups(X, y), return_index=True)[1]",
            value=equal.n,
            reference=0,
        )


class SameEverywhere(Check[ClassifierEvidence]):
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
    Calibration(),
    CopiedLabels(),
    SameEverywhere(),
)


def judged(evidence: ClassifierEvidence) -> Diagnosis:
    """Make all checks that apply."""
    found: dict[str, Finding] = {}
    for check in CHECKS:
        if check.applies(evidence):
            found[check.name] = check(evidence, found)
    return Diagnosis.of(found.values(), NOTHING_TO_DO)


def is_above(score: NDArray[Any], threshold: float) -> NDArray[np.bool_]:
    """Which scores predict the positive class, in the precision of the scores."""
    return np.asarray(score > as_precise(np.asarray(threshold), score))


def points(fraction: float) -> str:
    """A fraction in percentage points, without a unit; a question mark where it is not known."""
    return "?" if math.isnan(fraction) else rounded(100.0 * fraction, 3, whole=100.0)
