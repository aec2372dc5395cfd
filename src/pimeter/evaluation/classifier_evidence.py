"""What checks of a classifier look at: rows with a label, their scores in bins, and accuracy by category."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import bdtrc

from pimeter.classification.calibration import calibration_error, reliability
from pimeter.classification.confusion import Cells, outcome_codes
from pimeter.classification.inputs import as_precise
from pimeter.classification.proportions import Proportion, clopper_pearson
from pimeter.evaluation.diagnosis.columns import categories
from pimeter.evaluation.diagnosis.targets import distinct, grid_step
from pimeter.evaluation.miss_tests import hypergeometric_p

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pimeter.classification.estimates import ClassificationUncertainty, Estimate
    from pimeter.protocols import Array, Flags

N_RELIABILITY_BINS = 10  # of the reliability diagram, at most
ROWS_PER_BIN = 20  # that each of them should have


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


class CertainRows(NamedTuple):
    """Rows with a score of 0 or 1."""

    n: int
    n_wrong: int  # of the other class
    chance: float  # how often as many are: never, but for rounding


@dataclass(frozen=True)
class Labelled:
    """The rows that have a label: scores in the precision that they came in, and whether they are positive."""

    score: NDArray[Any]
    is_positive: Flags

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.score)

    @property
    def n_positive(self) -> int:
        """Number of positives."""
        return int(np.count_nonzero(self.is_positive))

    @property
    def n_negative(self) -> int:
        """Number of negatives."""
        return self.n - self.n_positive

    @property
    def n_rarer(self) -> int:
        """Number of rows of the rarer class."""
        return min(self.n_negative, self.n_positive)

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
        """Debiased calibration error in the bins of `reliability`, which estimates a lower bound; None without rows."""
        if not self.n:
            return None
        return float(calibration_error(self.is_positive, self.score, n_bins=self.n_bins, method="lower"))

    def certain(self) -> CertainRows:
        """Rows with a score of 0 or 1, which on a grid may have been half a step away from it."""
        score = self.score.astype(np.float64)
        is_wrong = np.where(self.is_positive, score == 0.0, score == 1.0)
        n_certain, n_wrong = (int(np.count_nonzero(own)) for own in ((score == 0.0) | (score == 1.0), is_wrong))
        if not n_wrong:
            return CertainRows(n_certain, 0, 1.0)
        step = grid_step(distinct(score, 1.0), 1.0)
        chance = 0.0 if math.isnan(step) else float(bdtrc(n_wrong - 1, n_certain, step / 2.0))
        return CertainRows(n_certain, n_wrong, chance)

    def categories(self, by: NDArray[Any], threshold: float, level: float) -> list[Category]:
        """Accuracy of each category, tested against that of all others; intervals hold for all categories together."""
        subgroups = categories(by)
        codes, labels = subgroups.codes, subgroups.labels
        is_right = self.is_positive == is_above(self.score, threshold)
        counts = np.bincount(codes, minlength=len(labels))
        right = np.bincount(codes[is_right], minlength=len(labels))
        chance = (1.0 - level) / max(len(labels), 1)
        # Were all categories the same, each would hold a random draw of the right answers: Fisher's exact test.
        total = int(right.sum())
        found = []
        for label, n, hits in zip(labels, counts.tolist(), right.tolist(), strict=True):
            p_value = hypergeometric_p(hits, n, total, self.n)
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

    def metric(self, name: str) -> Estimate:
        """A metric at the first threshold, with its interval."""
        return self.uncertainty.estimates[0][name]


def is_above(score: NDArray[Any], threshold: float) -> Flags:
    """Which scores predict the positive class, in the precision of the scores."""
    return np.asarray(score > as_precise(np.asarray(threshold), score))
