"""Other intervals than those given: moved, widened, or of constant width, each row judged by what other rows taught."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtr

from pimeter.arrays import some_rows
from pimeter.conformal.guarantee import rank
from pimeter.coverage import rounded
from pimeter.evaluation.diagnosis.crossfit import folds
from pimeter.evaluation.interval_scores import ranged_interval_score
from pimeter.evaluation.paired import chance_of_gain
from pimeter.interval_arrays import interval_scores

if TYPE_CHECKING:
    from pimeter.clusters import Units
    from pimeter.protocols import Array

N_FOLDS = 10
MIN_FRACTION_DISTINCT = 0.8  # with fewer distinct scores margins jump from one to the next, and no range holds
ROWS_FOR_TIES = 1000
MIN_ROWS_FOR_TWO_FOLDS = 100_000  # from which on half of them teach as much as nine tenths


@dataclass(frozen=True)
class Alternative:
    """What other intervals would do, each row being judged by what other rows taught.

    Attributes
    ----------
    name : str
        As given, widened by a factor, moved by a constant, or constant around the same centre.
    value : float
        The factor, the constant, or the half-width, of all rows; NaN for the intervals as given.
    coverage, mean_width, interval_score : float
        Of these intervals.
    lower, upper : float
        Range of the interval score; NaN where it has none, and where targets are so discrete that `value` jumps.
    gain : float
        By how much the interval score is lower than that of the intervals as given.
    p_value : float
        How often chance alone gives such a gain.
    """

    name: str
    value: float
    coverage: float
    mean_width: float
    interval_score: float
    lower: float
    upper: float
    gain: float
    p_value: float


def alternatives(target: Array, centre: Array, bounds: Array, level: float, units: Units) -> tuple[Alternative, ...]:
    """Intervals as given, recalibrated in two ways, and constant ones; none where bounds are infinite."""
    if not np.isfinite(bounds).all() or len(target) < 2 * N_FOLDS:
        return ()
    lower, upper = bounds.T
    middle, half = (lower + upper) / 2.0, (upper - lower) / 2.0
    n_folds = N_FOLDS if len(target) < MIN_ROWS_FOR_TWO_FOLDS else 2
    fold = folds(len(target), n_folds)
    given = interval_scores(target, lower, upper, level)
    found = [_alternative("as given", math.nan, target, lower, upper, level, given, units)]
    ways = {"moved by": (np.maximum(lower - target, target - upper), lower, upper, np.ones_like(half))}
    if (half > 0.0).all():
        ways["widened by"] = (np.abs(target - middle) / half, middle, middle, half)
    ways["constant"] = (np.abs(target - centre), centre, centre, np.ones_like(half))
    for name, (scores, below, above, unit) in ways.items():
        margin = np.empty_like(scores)
        for i in range(n_folds):
            margin[fold == i] = _quantile(scores[fold != i], level)
        low, high = below - margin * unit, above + margin * unit
        low, high = (np.where(low > high, middle, bound) for bound in (low, high))
        own = _alternative(name, _quantile(scores, level), target, low, high, level, given, units)
        some = scores[some_rows(len(scores), ROWS_FOR_TIES)]
        is_tied = len(np.unique(some)) < MIN_FRACTION_DISTINCT * len(some)
        found.append(replace(own, lower=math.nan, upper=math.nan) if is_tied else own)
    return tuple(found)


def _quantile(scores: Array, level: float) -> float:
    """The order statistic of split conformal prediction, or the largest score."""
    k = min(rank(len(scores), level), len(scores))
    return float(np.partition(scores, k - 1)[k - 1])


def _alternative(
    name: str, value: float, target: Array, lower: Array, upper: Array, level: float, given: Array, units: Units
) -> Alternative:
    """Intervals, judged against those that were given."""
    width, below, above = upper - lower, np.maximum(lower - target, 0.0), np.maximum(target - upper, 0.0)
    score = ranged_interval_score(target, lower, upper, level, units)
    coverage = float(((below == 0.0) & (above == 0.0)).mean())
    gain = given - interval_scores(target, lower, upper, level)
    p_value = chance_of_gain(gain) if units.kind == "rows" else _chance_of_units(gain, units)
    ranged = (score.value, score.lower, score.upper)
    return Alternative(name, value, coverage, float(width.mean()), *ranged, float(gain.mean()), p_value)


def _chance_of_units(gain: Array, units: Units) -> float:
    """How often chance gives so large a mean gain, of groups or of rows in time; NaN where it cannot be told."""
    mean = float(gain.mean())
    error = math.sqrt(float(units.variance(units.sums(gain - mean)))) / len(gain)
    return math.nan if units.refusal or not error else float(stdtr(units.n - 1, -mean / error))


def shown(alternative: Alternative) -> str:
    """What an alternative does, in words."""
    way = "outwards" if alternative.value >= 0.0 else "inwards"
    return {
        "as given": "as given",
        "moved by": f"both bounds moved {way} by {rounded(abs(alternative.value), 3)}",
        "widened by": f"widths multiplied by {rounded(alternative.value, 3)}",
        "constant": f"a constant ±{rounded(alternative.value, 3)} around the same centre",
    }[alternative.name]
