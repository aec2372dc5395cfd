"""Given intervals and distributions, measured: whether they hold, where not, and how much better they could be."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import betaincinv

from pimeter.arrays import some_rows
from pimeter.clusters import INDEPENDENT, Units, group_numbers, moment_numbers
from pimeter.coverage import percent
from pimeter.evaluation.alternatives import Alternative, alternatives
from pimeter.evaluation.diagnosis.columns import given
from pimeter.evaluation.diagnosis.evidence import MAX_ROWS, refuse_other_order
from pimeter.evaluation.losses import check_magnitude, crps_rows, is_distribution
from pimeter.evaluation.measurement import Score
from pimeter.evaluation.paired import mean_range
from pimeter.evaluation.probabilistic_checks import Cell, IntervalEvidence, judged
from pimeter.evaluation.ranges import CONFIDENCE, NORMAL, median_range
from pimeter.evaluation.results import Result
from pimeter.findings import Headline
from pimeter.predictive import predictive
from pimeter.validation import finite_numbers, one_level

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    from pimeter.evaluation.diagnosis.evidence import Subgroup
    from pimeter.predictive import Predictive
    from pimeter.protocols import FeatureTable

    Array = NDArray[np.float64]

DEFAULT_LEVEL = 0.95
FINITE = "; tails that have a variance"
HEAVY = "; excesses as those seen: no range is safe if tails are heavy"
MIN_MISSES = 5.0  # expected, below which nothing is said of the interval score
PRIOR_MISSES = 4.0  # with exponential excesses, that are added to those seen
NONE_SEEN = -math.log(0.1)  # misses that may be expected where none was seen
N_BLOCKS = 20  # of rows in the order of time, at most
MIN_BLOCK = 20  # rows of one
MIN_ROWS = 10  # below which nothing is claimed


@dataclass(frozen=True)
class Reliability:
    """How often a level that was given is covered, with a range for all levels together."""

    level: float
    coverage: float
    lower: float
    upper: float


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class IntervalMeasurement(Result):
    """What is known of intervals, quantiles, standard deviations or samples that a model gives.

    Attributes
    ----------
    headline : Headline
        The answer: a claim and its evidence.
    diagnosis : Diagnosis
        Findings, advice and code.
    kind : {"intervals", "quantiles", "normal", "samples"}
        What was given.
    confidence_level : float
        The level that is judged.
    n_rows : int
        Rows.
    coverage : float
        Fraction of targets inside.
    coverage_range : tuple of float
        Where the true coverage lies with 90 % confidence.
    scores : dict of str to Score
        Each with its range.
    reliability : tuple of Reliability
        Coverage of each level that was given, or of nine levels of a distribution.
    pit : tuple of Cell
        Rows between neighbouring quantiles, and the probability of that; empty for a single interval.
    subgroups : tuple of Subgroup
        Coverage across quintiles of the centre, of the width and of each feature, and per category.
    over_time : tuple of float
        Coverage in blocks of rows, the oldest first; empty where no time was given.
    alternatives : tuple of Alternative
        Intervals as given, recalibrated, and of constant width.
    """

    kind: str
    confidence_level: float
    n_rows: int
    coverage: float
    coverage_range: tuple[float, float]
    scores: dict[str, Score]
    reliability: tuple[Reliability, ...]
    pit: tuple[Cell, ...]
    subgroups: tuple[Subgroup, ...]
    over_time: tuple[float, ...]
    alternatives: tuple[Alternative, ...]

    def _table(self) -> dict[str, Any]:
        """The scores with their ranges."""
        rows = [asdict(score) for score in self.scores.values()]
        return {"score": [*self.scores], **{key: [row[key] for row in rows] for key in rows[0]}}

    def _page(self, about: Mapping[str, str]) -> str:
        from pimeter.report.probabilistic import probabilistic_html

        return probabilistic_html(self.to_dict(), about)


def measured_predictions(
    y_true: ArrayLike,
    said: Mapping[str, Any],
    *,
    X: FeatureTable | None,
    by: ArrayLike | None,
    groups: ArrayLike | None,
    time: ArrayLike | None,
    confidence_level: float | None,
) -> IntervalMeasurement:
    """Measure what a probabilistic model said of rows, given by the keywords of `predictive`."""
    for name, one in said.items():
        refuse_other_order(y_true, one, name)
    target = finite_numbers("y_true", y_true)
    if target.ndim != 1:
        msg = f"y_true must have shape (m,); got {target.shape}. Measure each output by itself."
        raise ValueError(msg)
    read = predictive(**said, confidence_level=confidence_level, n=len(target))
    check_magnitude(target, read.values)
    level = _level(read, confidence_level)
    bounds = read.bounds(level)
    moment = None if time is None else moment_numbers(time, len(target))
    order = None if moment is None else np.argsort(moment, kind="stable")
    is_inside = (bounds[:, 0] <= target) & (target <= bounds[:, 1])
    units = _units(is_inside, None if groups is None else group_numbers(groups, len(target)), moment)
    known = given(X, by, len(target), some_rows(len(target), MAX_ROWS))
    effect = _effect(is_inside, units)
    if units.kind == "groups":  # whose misses may all be of one side, and few
        sides = (target < bounds[:, 0], target > bounds[:, 1], target > read.centre)
        effect = max(effect, *(_effect(one, units) for one in sides))
    evidence = IntervalEvidence(target, read, bounds, level, known, order, effect)
    others = alternatives(target, read.centre, bounds, level, units)
    coverage_range = (math.nan, math.nan)
    if units.kind == "rows" or not units.refusal:
        coverage_range = exact_range(int(is_inside.sum()), len(target), CONFIDENCE, effect)
    return IntervalMeasurement(
        headline=_headline(level, float(is_inside.mean()), len(target), coverage_range, units),
        diagnosis=judged(evidence, others),
        kind=read.kind,
        confidence_level=level,
        n_rows=len(target),
        coverage=float(is_inside.mean()),
        coverage_range=coverage_range,
        scores=_scores(target, read, bounds, level, units),
        reliability=_reliability(target, read, level, effect),
        pit=evidence.cells,
        subgroups=evidence.subgroups,
        over_time=_over_time(is_inside, order),
        alternatives=others,
    )


def _level(said: Predictive, asked: float | None) -> float:
    """The level asked for; else .95 if it was given or draws hold it, else the highest one that was or that they do."""
    if asked is not None:
        return one_level("confidence_level", asked)
    known = said.confidence_levels
    if known and not np.isclose(known, DEFAULT_LEVEL).any():
        return known[-1]
    return min(DEFAULT_LEVEL, said.highest_level or DEFAULT_LEVEL)


def _units(is_inside: NDArray[np.bool_], group: NDArray[np.intp] | None, moment: NDArray[np.intp] | None) -> Units:
    """What is independent of what; stretches of time have numbers in the order of the rows as given."""
    if group is not None or moment is None:
        return Units.of(len(is_inside), group, None, is_inside.astype(np.float64))
    order = np.argsort(moment, kind="stable")
    found = Units.of_time(moment[order], is_inside[order].astype(np.float64))
    codes = np.empty(len(order), np.intp)
    codes[order] = 0 if found.codes is None else found.codes
    return Units("time", codes, found.n, found.refusal)


def exact_range(n_inside: int, n: int, confidence: float, effect: float = 1.0) -> tuple[float, float]:
    """Clopper and Pearson's range of a proportion, of so many fewer rows as dependence leaves."""
    tail = (1.0 - confidence) / 2.0
    k, rest = n_inside / effect, (n - n_inside) / effect
    lower = float(betaincinv(k, rest + 1.0, tail)) if n_inside else 0.0
    upper = float(betaincinv(k + 1.0, rest, 1.0 - tail)) if n_inside < n else 1.0
    return lower, upper


def _mean_score(values: Array, units: Units, meaning: str) -> Score:
    """A mean with its range."""
    if units.kind == "rows" and not units.refusal:
        return Score(*mean_range(values, CONFIDENCE), meaning, INDEPENDENT["rows"] + FINITE)
    mean = float(values.mean())
    if units.refusal:
        return Score(mean, math.nan, math.nan, meaning, f"no range: {units.refusal}")
    margin = NORMAL * units.factor() * math.sqrt(float(units.variance(units.sums(values - mean)))) / len(values)
    return Score(mean, mean - margin, mean + margin, meaning, INDEPENDENT[units.kind] + FINITE)


def _headline(level: float, coverage: float, n: int, bounds: tuple[float, float], units: Units) -> Headline:
    """Whether the level is kept, as far as so many rows can tell."""
    low, high = bounds
    seen = f"{percent(coverage, 3)} of {n:,} targets"
    if math.isnan(low):
        return Headline(f"Intervals of {percent(level)} cover {seen}.", f"Nothing more can be said: {units.refusal}.")
    if n < MIN_ROWS:
        claim = f"Intervals of {percent(level)} cover {seen}: so few rows say next to nothing."
    elif high < level:
        claim = f"Intervals of {percent(level)} cover too little: {seen}."
    elif low > level:
        claim = f"Intervals of {percent(level)} cover more than they say: {seen}."
    else:
        claim = f"Intervals of {percent(level)} cover {seen}: they may well hold."
    return Headline(
        claim,
        f"The true coverage lies between {percent(low, 3)} and {percent(high, 3)} ({percent(CONFIDENCE)} confidence), "
        f"if new rows resemble these, assuming {INDEPENDENT[units.kind]}.",
    )


def _scores(target: Array, said: Predictive, bounds: Array, level: float, units: Units) -> dict[str, Score]:
    """Numbers that describe intervals, each with a range."""
    width = bounds[:, 1] - bounds[:, 0]
    below, above = np.maximum(bounds[:, 0] - target, 0.0), np.maximum(target - bounds[:, 1], 0.0)
    found = {}
    for name, is_so, meaning in (
        ("coverage", (below == 0.0) & (above == 0.0), "targets inside their interval"),
        ("misses_below", below > 0.0, "targets below their interval"),
        ("misses_above", above > 0.0, "targets above their interval"),
    ):
        found[name] = _proportion(is_so, units, meaning)
    is_finite = bool(np.isfinite(width).all())
    if is_finite:
        found["mean_width"] = _mean_score(width, units, "mean width of the intervals")
    found["median_width"] = _median_score(width, units)
    if is_finite:
        found["interval_score"] = _interval_score(width, below, above, level, units)
    if said.kind in {"intervals", "quantiles"} and np.isfinite(said.values).all():
        found["pinball"] = _pinball(target, said, found["interval_score"], level, units)
    if is_distribution(said) and np.isfinite(said.values).all():
        found["crps"] = _mean_score(crps_rows(target, said), units, "score of the whole distribution; lower is better")
    return found


def _pinball(target: Array, said: Predictive, interval_score: Score, level: float, units: Units) -> Score:
    """Mean pinball loss of the quantiles given; of the bounds of one interval it is a part of the interval score."""
    meaning = "mean pinball loss of the quantiles given; lower is better"
    if len(said.levels) == 2:
        part = (1.0 - level) / 4.0
        values = {key: part * getattr(interval_score, key) for key in ("value", "lower", "upper")}
        return replace(interval_score, **values, meaning=meaning)
    beyond = target[:, None] - said.values
    loss = np.maximum(said.levels * beyond, (said.levels - 1.0) * beyond).mean(axis=1)
    return _mean_score(loss, units, meaning)


def _proportion(is_so: NDArray[np.bool_], units: Units, meaning: str) -> Score:
    """A proportion with an exact range, of fewer rows where these depend on each other."""
    value = float(is_so.mean())
    if units.kind != "rows" and units.refusal:
        return Score(value, math.nan, math.nan, meaning, f"no range: {units.refusal}")
    bounds = exact_range(int(is_so.sum()), len(is_so), CONFIDENCE, _effect(is_so, units))
    return Score(value, *bounds, meaning, INDEPENDENT[units.kind])


def _effect(is_so: NDArray[np.bool_], units: Units) -> float:
    """How many times fewer independent rows say as much, also of how they vary; as one where that cannot be told."""
    if units.kind == "rows":
        return 1.0
    if units.refusal:
        return float(len(is_so))
    return float(units.design_effect(is_so.astype(np.float64))) * units.factor() ** 2


def _median_score(width: Array, units: Units) -> Score:
    """The median width, with a range by ranks."""
    lower, upper = median_range(np.sort(width), width, units)
    middle = float(np.median(width))
    assumes = INDEPENDENT[units.kind] if not math.isnan(lower) else "no range: too few rows"
    return Score(middle, lower, upper, "median width of the intervals", assumes)


def _interval_score(width: Array, below: Array, above: Array, level: float, units: Units) -> Score:
    """Winkler's score: the range of a mean, extended to one that models the excesses on either side."""
    n, factor = len(width), 2.0 / (1.0 - level)
    found = _mean_score(
        width + factor * (below + above), units, "width plus a penalty for misses (Winkler); lower is better"
    )
    if math.isnan(found.lower):
        return found
    n_independent = units.n_equal or n / _effect((below + above) > 0.0, units)
    if n_independent * (1.0 - level) < MIN_MISSES * (1.0 - 1e-9):
        why = f"no range: fewer than {MIN_MISSES:g} misses are expected"
        return replace(found, lower=math.nan, upper=math.nan, assumes=why)
    if units.kind != "rows":
        return found
    farthest = float(max(below.max(), above.max()))
    sides = [_excess(own[own > 0.0], n, farthest) for own in (below, above)]
    downward = math.hypot(*(max(side[0] - side[1], 0.0) for side in sides))
    upward = math.hypot(*(max(side[2] - side[0], 0.0) for side in sides))
    lower = max(min(found.lower, found.value - factor * downward), 0.0)
    upper = max(found.upper, found.value + factor * upward)
    return replace(found, lower=lower, upper=upper, assumes=INDEPENDENT["rows"] + HEAVY)


def _excess(excess: Array, n: int, farthest: float) -> tuple[float, float, float]:
    """Mean excess over n rows on one side, and its bounds: a count times a mean, both Gamma on the log scale."""
    from scipy.special import digamma, polygamma

    k = len(excess)
    if k == 0:
        return 0.0, 0.0, NONE_SEEN / n * farthest
    mean, variance = float(excess.mean()), float(excess.var(ddof=1)) if k > 1 else 0.0
    heavier = max((PRIOR_MISSES + k * variance / mean**2) / (PRIOR_MISSES + k), 1.0)
    middle = math.log((k + 1) / n * mean) + float(digamma(k + 1)) - math.log(k + 1) + math.log(k) - float(digamma(k))
    away = NORMAL * math.sqrt(float(polygamma(1, k + 1.0)) + heavier * float(polygamma(1, float(k))))
    return k * mean / n, math.exp(middle - away), math.exp(middle + away)


def _reliability(target: Array, said: Predictive, level: float, effect: float) -> tuple[Reliability, ...]:
    """Coverage of each level given, of nine levels of a whole distribution, with ranges for all of them together."""
    held = (i / 10 for i in range(1, 10) if i / 10 <= (said.highest_level or 1.0))
    levels = said.confidence_levels or tuple(sorted({*held, level}))
    confidence = 1.0 - (1.0 - CONFIDENCE) / len(levels)
    found = []
    for p in levels:
        bounds = said.bounds(p)
        inside = int(np.count_nonzero((bounds[:, 0] <= target) & (target <= bounds[:, 1])))
        found.append(Reliability(p, inside / len(target), *exact_range(inside, len(target), confidence, effect)))
    return tuple(found)


def _over_time(is_inside: NDArray[np.bool_], order: NDArray[np.intp] | None) -> tuple[float, ...]:
    """Coverage in blocks of rows."""
    if order is None or len(order) < 2 * MIN_BLOCK:
        return ()
    blocks = np.array_split(is_inside[order], min(N_BLOCKS, len(order) // MIN_BLOCK))
    return tuple(float(block.mean()) for block in blocks)
