"""Checks of how residuals are distributed: skewness, heavy tails and outliers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import fdtrc, ndtr

from pimeter.coverage import rounded
from pimeter.evaluation.diagnosis import symmetry
from pimeter.evaluation.diagnosis.check import (
    MIN_ROWS,
    UNUSUAL,
    Check,
    by_chance,
    count,
    in_percent,
    some_of,
    too_little,
)
from pimeter.evaluation.diagnosis.evidence import NUMBERED, PredictionEvidence, RowNames

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pimeter.clusters import Units
    from pimeter.findings import Finding
    from pimeter.protocols import Array, Index

TAIL = 0.05  # fraction of the residuals in each tail, or what intervals leave out there if that is more
MIN_ROWS_FOR_TAILS = 50
NORMAL_RATIO = 3.449  # of the 98 % point to the median of absolute residuals that are normal ...
LOG_RATIO_ERROR = 1.62  # ... and the standard error of its logarithm, times the root of the number of rows, at most
FAR_FROM_MEDIAN = 10.0  # interquartile ranges from the median: no normal residual is ever there
N_NAMED = 5  # rows, at most


class Skewness(Check[PredictionEvidence]):
    """Hogg's skewness, and a test for symmetry around an unknown centre."""

    name = "skew"
    question = "Are the residuals skewed?"
    looks_at = "up to 5,000 residuals, drawn at random"
    statistic = "how much farther one tail is from the middle half than the other (Hogg), by random signs"
    least_skewness = 0.075  # that matters: that of normal residuals 20 % larger on one side
    significance = 0.004

    def _judged(self, evidence: PredictionEvidence, _earlier: Mapping[str, Finding]) -> Finding:
        return self.judge(evidence.some_residuals, evidence.level, evidence.some_units)

    def judge(self, residuals: Array, level: float, units: Units | None = None) -> Finding:
        """From residuals, in units that are independent; tails hold as many as intervals leave out, or more."""
        m = len(residuals)
        if why := too_little(residuals):
            return self.finding(m, f"{why} to tell whether residuals are skewed.", reference=0.0)
        fraction = max((1.0 - level) / 2.0, TAIL)
        found = symmetry.tails(residuals, fraction)
        means = (found.skewness, found.upper, found.lower, found.middle)
        skewness, upper, lower, middle = (float(values[0]) for values in means)
        sentence = (
            f"On average the largest {in_percent(fraction)} of the residuals lie {rounded(upper - middle, 3)} above "
            f"the mean of the middle half, the smallest {rounded(middle - lower, 3)} below it"
        )
        p_value, advice = math.nan, ""
        if abs(skewness) < self.least_skewness:
            sentence += "; they differ too little to matter."
        elif (
            p_value := symmetry.p_value(residuals, fraction, None if units is None else units.labels)
        ) > self.significance:
            sentence += by_chance(p_value)
        else:
            sentence += ": residuals are skewed."
            farther, less = ("above", "below") if skewness > 0.0 else ("below", "above")
            advice = f"Residuals extend farther {farther} than {less}: learn the two bounds of the interval separately."
        return self.finding(
            m, sentence, advice, value=skewness, reference=0.0, p_value=p_value, threshold=self.least_skewness
        )


class TailRatio(NamedTuple):
    """How far the largest distances are beyond the median."""

    ratio: float  # of the 98 % point to the median; NaN if half of them or more are 0
    is_beyond: Array  # (2, m) 1 for those beyond the median, and beyond the 98 % point

    @classmethod
    def of(cls, distances: Array) -> TailRatio:
        """From distances of residuals from their centre."""
        half, tail = np.quantile(distances, [0.5, 0.98], method="hazen")
        is_beyond = np.stack([distances > half, distances > tail]).astype(np.float64)
        if half <= np.finfo(np.float64).tiny * tail:
            return cls(math.nan, is_beyond)
        # Quantiles of distances in steps jump from one to the next, and their ratio by as much. A line through the
        # middles of the jumps does not, and is the same where no two are tied: what both say is no matter of steps.
        values, counts = np.unique(distances, return_counts=True)
        places = (np.cumsum(counts) - counts / 2.0) / len(distances)
        half_way, tail_way = np.interp([0.5, 0.98], places, values)
        return cls(float(min(tail / half, tail_way / half_way)), is_beyond)


class HeavyTails(Check[PredictionEvidence]):
    """How far the 98 % point of absolute residuals is from their median, against normal residuals."""

    name = "heavy"
    question = "Are the residuals heavy-tailed?"
    looks_at = "up to 5,000 residuals, drawn at random"
    statistic = "98 % point of absolute residuals over their median"
    least_ratio = 4.5  # that matters
    significance = 0.003

    def _judged(self, evidence: PredictionEvidence, earlier: Mapping[str, Finding]) -> Finding:
        # A spread that varies has heavy tails when all rows are taken together.
        is_explained = earlier["width"].raised or earlier["gain"].raised
        return self.judge(evidence.some_residuals, evidence.some_units, is_explained=is_explained)

    def judge(self, residuals: Array, units: Units | None = None, *, is_explained: bool = False) -> Finding:
        """From residuals, in independent units; nothing is to be done if a spread that varies explains the tails."""
        m = len(residuals)
        if m < MIN_ROWS_FOR_TAILS:
            return self.finding(m, f"{count(m)} too few to know the tails.", reference=NORMAL_RATIO)
        # The median of two hills lies in one of them, near half of the residuals; the middle of the quartiles does not.
        low, median, high = np.quantile(residuals, [0.25, 0.5, 0.75])
        tails = [TailRatio.of(np.abs(residuals - centre)) for centre in (median, low / 2.0 + high / 2.0)]
        if any(math.isnan(one.ratio) for one in tails):
            return self.finding(m, "Half of the residuals or more are tied.", reference=NORMAL_RATIO)
        ratio, is_beyond = min(tails, key=lambda one: one.ratio)
        effective = m if units is None else m / float(units.design_effect(is_beyond).max())
        p_value = float(ndtr(math.log(NORMAL_RATIO / ratio) * math.sqrt(effective) / LOG_RATIO_ERROR))
        advice = ""
        if p_value <= self.significance and ratio > self.least_ratio and not is_explained:
            advice = (
                "Residuals are heavy-tailed: judge the model by its median residual and its margin rather than by "
                "RMSE, and expect rare residuals far outside of the intervals. Coverage is not affected."
            )
        sentence = (
            f"The 98 % point of the absolute residuals is {ratio:.3g} times their median; for normal residuals it is "
            "3.45."
        )
        threshold = self.least_ratio - NORMAL_RATIO
        return self.finding(
            m, sentence, advice, value=ratio, reference=NORMAL_RATIO, p_value=p_value, threshold=threshold
        )


class Outliers(Check[PredictionEvidence]):
    """Residuals far out that a gap divides from the others, wider than tails explain however heavy they are."""

    name = "outliers"
    question = "Are there outliers?"
    looks_at = "residuals of all rows"
    statistic = "how many are beyond a gap in the farthest ones, ten interquartile ranges or more from the median"
    significance = 0.004

    def _judged(self, evidence: PredictionEvidence, _earlier: Mapping[str, Finding]) -> Finding:
        unit_of_row = None if evidence.units is None else evidence.units.labels
        return self.judge(evidence.ordered, evidence.residuals, evidence.names, unit_of_row)

    def judge(
        self, ordered: Array, residuals: Array, names: RowNames = NUMBERED, unit_of_row: Index | None = None
    ) -> Finding:
        """From residuals in rising order, in that of the rows, what these are called, and which belong together.

        Of rows that do, such as those of a group, the farthest counts.
        """
        m = len(ordered)
        places = 1.0 + (m - 1) * np.array([0.25, 0.5, 0.75])
        inner = ordered[np.array([*np.floor(places), *np.ceil(places)], np.intp) - 1].tolist()
        low, median, high = (a + (b - a) * t for a, b, t in zip(inner[:3], inner[3:], places % 1.0, strict=True))
        n, p_value, advice = 0, math.nan, ""
        if high > low and m >= MIN_ROWS:
            far = FAR_FROM_MEDIAN * (high - low)
            n = int(np.searchsorted(ordered, median - far)) + m - int(np.searchsorted(ordered, median + far, "right"))
        if n:
            distances = _farthest(ordered, residuals, median, unit_of_row)
            n_far = n if unit_of_row is None else int((distances > far / 2.0).sum())
            p_value, n_beyond = gap(distances, min(n_far, len(distances) // 2))
        sentence = (
            f"{some_of(n, m, 'residuals')} farther than {FAR_FROM_MEDIAN:.0f} interquartile ranges from the median"
        )
        if n and p_value > self.significance:
            sentence += ", as heavy tails may have them" if p_value > UNUSUAL else f" (p = {p_value:.2g})"
        elif n:
            rows = np.argsort(-np.abs(residuals / 2.0 - median / 2.0), kind="stable")[: min(n_beyond, N_NAMED)].tolist()
            named = ", ".join(names(row, float(residuals[row])) for row in rows)
            sentence += f", {n_beyond:,} of them beyond a gap that no heavy tail explains"
            advice = (
                f"Look at the rows with extreme residuals, such as {named}{names.note}: a slip in the data, or a rare "
                "event?"
            )
        return self.finding(m, f"{sentence}.", advice, value=n, reference=0, p_value=p_value)


def _farthest(ordered: Array, residuals: Array, median: float, unit_of_row: Index | None) -> Array:
    """Halves of the distances from the median of a quarter of the rows, or of half of the units, in falling order."""
    if unit_of_row is not None:
        distances = np.zeros(int(unit_of_row.max()) + 1)
        np.maximum.at(distances, unit_of_row, np.abs(residuals / 2.0 - median / 2.0))
        distances = np.sort(distances[distances > 0.0])[::-1]
        return distances[: len(distances) // 2 + 1]
    size = len(ordered) // 4
    tails = np.concatenate([ordered[: size + 1], ordered[len(ordered) - size - 1 :]]) / 2.0 - median / 2.0
    return np.sort(np.abs(tails))[: -size - 2 : -1]


def gap(distances: Array, n_far: int) -> tuple[float, int]:
    """How often a tail has a gap like the widest after one of the far distances, in falling order, and after which.

    In a tail that falls like a power i times the logarithm of the i-th distance over the next one is exponential, with
    one mean for all i; in a lighter tail the first are smaller. So a gap over the mean of those after it has an F
    distribution at most. The j-th gap is allowed 1 / (j (j + 1)) of the errors.
    """
    j = np.arange(1, len(distances))
    with np.errstate(all="ignore"):
        gaps = j * np.log(distances[:-1] / distances[1:])
        after = (np.cumsum(gaps[::-1])[::-1] - gaps) / (len(j) - j)
        p_values = (fdtrc(2, 2 * (len(j) - j), gaps / after) * j * (j + 1))[: max(n_far, 1)]
    best = int(np.nanargmin([*p_values, 1.0]))
    return (float(p_values[best]), best + 1) if best < len(p_values) else (1.0, n_far)
