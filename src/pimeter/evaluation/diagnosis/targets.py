"""Checks of the targets: whether they are discrete, and whether some are predicted too well to be true."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import bdtrc, ndtr

from pimeter.arrays import some_rows
from pimeter.coverage import rounded
from pimeter.evaluation.diagnosis.check import MIN_ROWS, Check, is_constant, some_of
from pimeter.evaluation.diagnosis.evidence import MAX_ROWS, PredictionEvidence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pimeter.findings import Finding
    from pimeter.protocols import Array, Flags

GEARY = 0.7979  # mean distance of normal residuals, in standard deviations ...
GEARY_ERROR = 0.2123  # ... and its standard error, times the root of the number of rows
COMMON, MIN_COMMON = 0.01, 5  # fraction and number of targets that have the same value, from which on it is no chance
LEAST_STEP = 0.1  # least step between targets that matters, in margins


class DiscreteTarget(Check[PredictionEvidence]):
    """Number of distinct targets, and how coarse they are compared with the margin."""

    name = "discrete"
    question = "Is the target discrete?"
    looks_at = "up to 5,000 targets, drawn at random"
    statistic = "how many are distinct, and the step between them"

    def _judged(self, evidence: PredictionEvidence, _earlier: Mapping[str, Finding]) -> Finding:
        return self.judge(evidence.target[evidence.some], evidence.margin)

    def judge(self, target: Array, margin: float) -> Finding:
        """From targets, and the margin that says what is coarse."""
        m, largest = len(target), float(np.abs(target).max())
        values = distinct(target, largest)
        n, step = len(values), grid_step(values, largest)
        sentence, advice = f"{some_of(n, m, 'targets')} distinct", ""
        n_others = m - int(np.unique(target, return_counts=True)[1].max())  # amounts may be 0 mostly, and else distinct
        coarse, most_distinct = LEAST_STEP * margin, 1 + n_others / 2
        typical = step if step >= coarse else float(np.median(np.diff(values))) if n > 1 else 0.0
        if m < MIN_ROWS or n > most_distinct or n == 1 or typical < coarse:
            return self.finding(m, f"{sentence}.", value=n, reference=m, threshold=most_distinct)
        if values.tolist() == [0.0, 1.0]:
            advice = "The targets are 0 and 1, which look like classes: for probabilities of a class use scorecard."
            return self.finding(m, f"{sentence}: 0 and 1.", advice, value=n, reference=m, threshold=most_distinct)
        if typical == step:
            sentence += f", in steps of {rounded(step, 3)}"
            advice = (
                f"The target comes in steps of {rounded(step, 3)}: move the bounds of intervals inwards to the nearest "
                "possible value, which loses no coverage."
            )
        else:
            advice = (
                f"The target takes few values, {n:,} in these rows, in no common steps: move the bounds of intervals "
                "inwards to the nearest of them, which loses no coverage if no others can occur."
            )
        advice += " Where predictions are discrete, too, intervals cover more than the level."
        said = f"{sentence}: the target is discrete."
        return self.finding(m, said, advice, value=n, reference=m, threshold=most_distinct)


class ZeroResiduals(Check[PredictionEvidence]):
    """Residuals of exactly 0, as copies of training rows give them, that no common bound or step explains."""

    name = "zeros"
    question = "Was the model trained on some of these rows?"
    looks_at = "residuals of all rows"
    statistic = "the fraction of them that is exactly 0"
    least_fraction = 0.01  # that matters
    significance = 0.003

    def _judged(self, evidence: PredictionEvidence, earlier: Mapping[str, Finding]) -> Finding:
        is_discrete = earlier["discrete"].raised
        return self.judge(evidence.target, evidence.residuals, evidence.margin, is_discrete=is_discrete)

    def judge(self, target: Array, residuals: Array, margin: float, *, is_discrete: bool) -> Finding:
        """From targets and residuals, the margin that says what is coarse, and whether targets are discrete."""
        m = len(residuals)
        zeros = target[residuals == 0.0]
        rows = some_rows(m, MAX_ROWS)
        n = int(np.count_nonzero(~_is_common(zeros, target)))
        # Where targets and predictions lie on one grid, residuals of one step are as common; on a coarse one most are 0
        largest = float(np.abs(target).max() + np.abs(residuals).max())
        step = grid_step(distinct(residuals[rows], largest), largest)
        is_coarse = is_discrete or step >= LEAST_STEP * margin
        n_beside = int(np.count_nonzero(np.abs(np.abs(residuals) - step) <= 0.01 * step))
        p_value = float(bdtrc(n - 1, n + n_beside, 0.5)) if n_beside else math.nan
        is_explained = is_coarse or p_value > self.significance
        advice = ""
        if n >= max(3, self.least_fraction * m) and not is_explained:
            advice = (
                f"Look at the {n:,} rows with a residual of exactly 0: was the model trained on them, or on copies? "
                "Then leave them out. A bound or a step that is the same for target and prediction, such as the last "
                "price, is no fault."
            )
        sentence = f"{some_of(len(zeros), m, 'residuals')} exactly 0.{small_residuals(residuals[rows])}"
        return self.finding(
            m, sentence, advice, value=len(zeros) / m, reference=0.0, p_value=p_value, threshold=self.least_fraction
        )


def _is_common(values: Array, target: Array) -> Flags:
    """Values that many targets have, or that are their bounds: a model may well hit them."""
    ordered = np.sort(target)
    n_equal = np.searchsorted(ordered, values, "right") - np.searchsorted(ordered, values)
    is_bound = (values == ordered[0]) | (values == ordered[-1])
    return np.asarray(is_bound | (n_equal >= max(MIN_COMMON, COMMON * len(target))))


def small_residuals(residuals: Array) -> str:
    """A sentence on more small residuals than normal ones have (Geary's ratio), which several things explain."""
    m, largest = len(residuals), float(np.abs(residuals).max())
    if m < MIN_ROWS or is_constant(residuals) or len(np.unique(residuals)) < m / 2:
        return ""
    x = residuals / largest
    ratio = float(np.abs(x - np.median(x)).mean() / x.std()) if x.std() > 0.0 else math.nan
    p_value = float(ndtr((ratio - GEARY) * math.sqrt(m) / GEARY_ERROR))
    if not p_value <= ZeroResiduals.significance:
        return ""
    return (
        f" Small ones are more frequent than among normal residuals (the mean distance from the median is {ratio:.3g} "
        f"standard deviations, not {GEARY:.3g}; p = {p_value:.2g}): rows that the model was trained on would do that, "
        "but so would heavy tails and a spread that differs, and residuals alone cannot tell which."
    )


def distinct(values: Array, largest: float) -> Array:
    """Values in order, once each; those that differ by rounding alone, of numbers up to the largest, count as one."""
    found = np.unique(values)
    return np.asarray(found[np.diff(found, prepend=-math.inf) > 4.0 * np.spacing(largest)])


def grid_step(values: Array, largest: float) -> float:
    """Step of the grid that distinct values lie on: the least distance, if all are multiples of it; NaN if not."""
    if len(values) < 3:
        return math.nan
    from_first = values - values[0]
    places = np.round(from_first / np.diff(values).min())
    step = float(from_first[-1] / places[-1])
    rounding = 1e-6 * step + float(np.finfo(np.float32).eps) * largest  # they may have been float32
    is_grid = np.abs(from_first - places * step).max() <= min(rounding, 0.01 * step)
    return step if is_grid else math.nan
