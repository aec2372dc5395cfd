"""Checks of how residuals are distributed: bias, skewness, heavy tails and outliers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import bdtr

from pimeter.coverage import quantile_ranks
from pimeter.evaluation.diagnosis import symmetry
from pimeter.evaluation.diagnosis.check import MIN_ROWS, Check, count, in_percent, too_little
from pimeter.evaluation.diagnosis.evidence import SIGNIFICANCE, Evidence
from pimeter.evaluation.diagnosis.width import STANDARD_ERRORS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from pimeter.findings import Finding

    Array = NDArray[np.float64]

TAIL = 0.05  # fraction of the residuals in each tail, or what intervals leave out there if that is more
MIN_ROWS_FOR_TAILS = 50
NORMAL_RATIO = 3.449  # of the 98 % point to the median of absolute residuals that are normal ...
LOG_RATIO_ERROR = 1.5  # ... and the standard error of its logarithm, times the root of the number of rows
FAR = 10.0  # interquartile ranges from the median: no normal residual is ever there


class Bias(Check[Evidence]):
    """Sign test on the median residual."""

    name = "bias"
    question = "Is the model biased?"
    looks_at = "residuals of all rows"
    statistic = "their median, by the sign test"
    threshold = 0.05  # least median that matters, in margins

    def _judged(self, evidence: Evidence, _earlier: Mapping[str, Finding]) -> Finding:
        return self.judge(evidence.ordered, evidence.margin)

    def judge(self, ordered: Array, margin: float) -> Finding:
        """From residuals in rising order, and the margin that says what is much."""
        m = len(ordered)
        low, high, exact = quantile_ranks(m, 0.5, 0.9)
        lower, before, after, upper = ordered[np.array([low, (m + 1) // 2, m // 2 + 1, high]) - 1].tolist()
        median = before / 2 + after / 2
        n_below, n_up_to = (int(np.searchsorted(ordered, 0.0, side)) for side in ("left", "right"))
        p_value = sign_test(m - n_up_to, n_below) if m >= MIN_ROWS else math.nan
        sentence, advice = f"The median residual is {median:.3g}", ""
        if m < MIN_ROWS:
            sentence += f", but {count(m)} too few to tell it from 0."
        else:
            sentence += f" (between {lower:.3g} and {upper:.3g} with {in_percent(exact)} confidence)"
            if p_value > SIGNIFICANCE:
                sentence += ", which chance explains."
            elif abs(median) < self.threshold * margin:
                sentence += ", too little to matter."
            else:
                sentence += "."
                side, much = ("above", "little") if median > 0 else ("below", "much")
                advice = (
                    f"Half of the targets are {abs(median):.3g} or more {side} their prediction: the model predicts "
                    f"too {much}. Fix it, or let the two bounds of the interval learn by themselves."
                )
        return self.finding(m, sentence, advice, value=median, reference=0.0, bounds=(lower, upper), p_value=p_value)


def sign_test(n_above: int, n_below: int) -> float:
    """How often a fair coin falls at least as unevenly; 1 if it is never thrown."""
    if n_above + n_below == 0:
        return 1.0
    return min(1.0, 2.0 * float(bdtr(min(n_above, n_below), n_above + n_below, 0.5)))


class Skewness(Check[Evidence]):
    """Hogg's skewness, and a test for symmetry around an unknown centre."""

    name = "skew"
    question = "Are the residuals skewed?"
    looks_at = "up to 5,000 residuals, drawn at random"
    statistic = "how much farther one tail is from the middle half than the other (Hogg), by random signs"
    threshold = 0.075  # least skewness that matters: that of normal residuals 20 % larger on one side

    def _judged(self, evidence: Evidence, _earlier: Mapping[str, Finding]) -> Finding:
        return self.judge(evidence.some_residuals, evidence.level)

    def judge(self, residuals: Array, level: float) -> Finding:
        """From residuals; tails hold as many of them as intervals leave out, or more."""
        m = len(residuals)
        if why := too_little(residuals):
            return self.finding(m, f"{why} to tell whether residuals are skewed.", reference=0.0)
        fraction = max((1.0 - level) / 2.0, TAIL)
        found = symmetry.tails(residuals, fraction)
        skewness, upper, lower, middle = (float(values[0]) for values in (found.skewness, *found))
        sentence = (
            f"On average the largest {in_percent(fraction)} of the residuals lie {upper - middle:.3g} above the mean "
            f"of the middle half, the smallest {middle - lower:.3g} below it"
        )
        p_value, advice = math.nan, ""
        if abs(skewness) < self.threshold:
            sentence += "; they differ too little to matter."
        elif (p_value := symmetry.p_value(residuals, fraction)) > SIGNIFICANCE:
            sentence += ", which chance explains."
        else:
            sentence += ": residuals are skewed."
            farther, less = ("above", "below") if skewness > 0.0 else ("below", "above")
            advice = (
                f"Residuals extend farther {farther} than {less}: let the two bounds of the interval learn by "
                "themselves."
            )
        return self.finding(m, sentence, advice, value=skewness, reference=0.0, p_value=p_value)


class HeavyTails(Check[Evidence]):
    """How far the 98 % point of absolute residuals is from their median, against normal residuals."""

    name = "heavy"
    question = "Are the residuals heavy-tailed?"
    looks_at = "up to 5,000 residuals, drawn at random"
    statistic = "98 % point of absolute residuals over their median"
    threshold = 4.5  # least ratio that matters

    def _judged(self, evidence: Evidence, earlier: Mapping[str, Finding]) -> Finding:
        # A spread that varies has heavy tails when all rows are taken together.
        is_explained = earlier["width"].raised or earlier["gain"].raised
        return self.judge(evidence.some_residuals, is_explained=is_explained)

    def judge(self, residuals: Array, *, is_explained: bool = False) -> Finding:
        """From residuals; nothing is to be done if a spread that varies explains the tails."""
        m = len(residuals)
        distances = np.abs(residuals - np.median(residuals))
        half, tail = np.quantile(distances, [0.5, 0.98], method="hazen")
        if m < MIN_ROWS_FOR_TAILS:
            return self.finding(m, f"{count(m)} too few to know the tails.", reference=NORMAL_RATIO)
        if half <= np.finfo(np.float64).tiny * tail:
            return self.finding(m, "Half of the residuals or more are tied.", reference=NORMAL_RATIO)
        # Quantiles of distances in steps jump from one to the next, and their ratio by as much. A line through the
        # middles of the jumps does not, and is the same where no two are tied: what both say is no matter of steps.
        values, counts = np.unique(distances, return_counts=True)
        half_way, tail_way = np.interp([0.5, 0.98], (np.cumsum(counts) - counts / 2.0) / m, values)
        ratio = float(min(tail / half, tail_way / half_way))
        chance = NORMAL_RATIO * math.exp(STANDARD_ERRORS * LOG_RATIO_ERROR / math.sqrt(m))
        advice = ""
        if ratio > max(chance, self.threshold) and not is_explained:
            advice = (
                "Residuals are heavy-tailed: judge the model by its median residual and its margin rather than by "
                "RMSE, and expect rare residuals far outside of the intervals. Coverage is not affected."
            )
        sentence = (
            f"The 98 % point of the absolute residuals is {ratio:.3g} times their median; for normal residuals it is "
            "3.45."
        )
        return self.finding(m, sentence, advice, value=ratio, reference=NORMAL_RATIO)


class Outliers(Check[Evidence]):
    """Residuals farther from the median than any usual noise explains, among all rows: they are rare."""

    name = "outliers"
    question = "Are there outliers?"
    looks_at = "residuals of all rows"
    statistic = "how many are farther than ten interquartile ranges from the median"

    def _judged(self, evidence: Evidence, _earlier: Mapping[str, Finding]) -> Finding:
        return self.judge(evidence.ordered)

    def judge(self, ordered: Array) -> Finding:
        """From residuals in rising order."""
        m = len(ordered)
        places = 1.0 + (m - 1) * np.array([0.25, 0.5, 0.75])
        ranks = np.array([1, *np.floor(places), *np.ceil(places), m], np.intp)
        smallest, *inner, largest = ordered[ranks - 1].tolist()
        low, median, high = (a + (b - a) * t for a, b, t in zip(inner[:3], inner[3:], places % 1.0, strict=True))
        far = FAR * (high - low)
        n = 0
        if high > low and m >= MIN_ROWS:
            n_up_to = int(np.searchsorted(ordered, median + far, "right"))
            n = int(np.searchsorted(ordered, median - far)) + m - n_up_to
        advice = ""
        if n:
            worst = max(smallest, largest, key=lambda residual: abs(residual - median))
            advice = (
                f"Look at the {n:,} rows with extreme residuals, such as {worst:.3g}: a slip in the data, or a rare "
                "event?"
            )
        sentence = f"{n:,} of {m:,} residuals are farther than {FAR:.0f} interquartile ranges from the median."
        return self.finding(m, sentence, advice, value=n, reference=0)
