"""Given intervals and distributions, measured: whether they hold, where not, and how much better they could be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pimeter.arrays import some_rows
from pimeter.clusters import INDEPENDENT, Units, group_numbers, moment_numbers
from pimeter.coverage import counted, percent
from pimeter.evaluation.alternatives import Alternative, alternatives
from pimeter.evaluation.conditional import conditional_scores
from pimeter.evaluation.decomposition import Decomposition, decomposition
from pimeter.evaluation.diagnosis.columns import given
from pimeter.evaluation.diagnosis.evidence import MAX_ROWS, exact_range
from pimeter.evaluation.interval_evidence import Cell, IntervalEvidence, divisions
from pimeter.evaluation.interval_scores import design_effect, scores
from pimeter.evaluation.losses import check_magnitude, is_distribution
from pimeter.evaluation.measurement import score_table
from pimeter.evaluation.probabilistic_checks import judged
from pimeter.evaluation.ranges import CONFIDENCE
from pimeter.evaluation.results import Result
from pimeter.evaluation.wide_intervals import WideIntervals, widest
from pimeter.findings import Diagnosis, Headline
from pimeter.predictive import predictive
from pimeter.validation import finite_numbers, one_level

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike

    from pimeter.evaluation.diagnosis.evidence import Subgroup
    from pimeter.evaluation.measurement import Score
    from pimeter.predictive import Predictive
    from pimeter.protocols import Columns, FeatureTable, Flags, Index

DEFAULT_LEVEL = 0.95
MIN_ROWS = 10  # below which nothing is claimed


@dataclass(frozen=True)
class Reliability:
    """How intervals of a level that was given do.

    Attributes
    ----------
    level : float
        What the level says.
    coverage : float
        Fraction of targets inside; `lower` and `upper` are its range, for all levels together.
    misses_below, misses_above : float
        Fractions of targets below and above their interval.
    mean_width, interval_score : float
        How sharp the intervals are, and width plus a penalty for misses (Winkler).
    subgroups : tuple of Subgroup
        Coverage in subgroups of the rows.
    over_time : tuple of float
        Coverage in blocks of rows, the oldest first.
    """

    level: float
    coverage: float
    lower: float
    upper: float
    misses_below: float
    misses_above: float
    mean_width: float
    interval_score: float
    subgroups: tuple[Subgroup, ...]
    over_time: tuple[float, ...]


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class IntervalMeasurement(Result):
    """What is known of intervals, quantiles, standard deviations or samples that a model gives.

    Attributes
    ----------
    headline, diagnosis : Headline, Diagnosis
        The answer, a claim and its evidence; findings, advice and code.
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
    decomposition : Decomposition or None
        The CRPS as miscalibration, discrimination and uncertainty; None where no whole distribution is known.
    wide : WideIntervals or None
        What features add to the widest intervals; None without features, or where they do not explain the widths.
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
    decomposition: Decomposition | None
    wide: WideIntervals | None

    def _table(self) -> Columns:
        """The scores with their ranges."""
        return score_table(self.scores)

    def _page(self, about: Mapping[str, str]) -> str:
        from pimeter.report.probabilistic import probabilistic_html

        return probabilistic_html(self.to_dict(), about)


def measured_predictions(
    y_true: ArrayLike,
    keywords: Mapping[str, Any],
    *,
    X: FeatureTable | None,
    by: ArrayLike | None,
    groups: ArrayLike | None,
    time: ArrayLike | None,
    confidence_level: float | None,
) -> IntervalMeasurement:
    """Measure what a probabilistic model said of rows, given by the keywords of `predictive`."""
    target = finite_numbers("y_true", y_true)
    if target.ndim != 1:
        msg = f"y_true must have shape (m,); got {target.shape}. Measure each output by itself."
        raise ValueError(msg)
    predictions = predictive(**keywords, confidence_level=confidence_level, n=len(target))
    check_magnitude(target, predictions.values)
    level = _level(predictions, confidence_level)
    bounds = predictions.bounds(level)
    moment = None if time is None else moment_numbers(time, len(target))
    order = None if moment is None else np.argsort(moment, kind="stable")
    is_inside = (bounds[:, 0] <= target) & (target <= bounds[:, 1])
    units = _units(is_inside, None if groups is None else group_numbers(groups, len(target)), moment)
    some = some_rows(len(target), MAX_ROWS)
    known = given(X, by, len(target), some)
    # Misses of a group, or of a stretch of time, may all be of one side, and few.
    sides = (is_inside, target < bounds[:, 0], target > bounds[:, 1], target > predictions.centre)
    effect = max(design_effect(one, units, level) for one in sides)
    evidence = IntervalEvidence(
        target,
        predictions,
        bounds,
        level,
        divisions(predictions, bounds, known),
        known,
        order,
        effect,
        units,
    )
    parts = decomposition(target, predictions) if is_distribution(predictions) else None
    others = alternatives(target, predictions.centre, bounds, level, units)
    found = scores(target, predictions, bounds, level, units)
    coverage_range = (found["coverage"].lower, found["coverage"].upper)
    diagnosis = judged(evidence, others, parts)
    return IntervalMeasurement(
        headline=_headline(evidence, coverage_range, units, diagnosis),
        diagnosis=diagnosis,
        kind=predictions.kind,
        confidence_level=level,
        n_rows=len(target),
        coverage=float(is_inside.mean()),
        coverage_range=coverage_range,
        scores=found | conditional_scores(known.columns, is_inside[some], level, units.kind),
        reliability=_reliability(evidence),
        pit=evidence.cells,
        subgroups=evidence.subgroups,
        over_time=evidence.over_time,
        alternatives=others,
        decomposition=parts,
        wide=widest(known.columns, bounds[:, 1] - bounds[:, 0], some),
    )


def _level(predictions: Predictive, asked: float | None) -> float:
    """The level asked for; else .95 if it was given or draws hold it, else the highest one that was or that they do."""
    if asked is not None:
        return one_level("confidence_level", asked)
    known = predictions.confidence_levels
    if known and not np.isclose(known, DEFAULT_LEVEL).any():
        return known[-1]
    return min(DEFAULT_LEVEL, predictions.highest_level or DEFAULT_LEVEL)


def _units(is_inside: Flags, group: Index | None, moment: Index | None) -> Units:
    """What is independent of what; stretches of time have numbers in the order of the rows as given."""
    if group is not None or moment is None:
        return Units.of(len(is_inside), group, None, is_inside.astype(np.float64))
    order = np.argsort(moment, kind="stable")
    found = Units.of_time(moment[order], is_inside[order].astype(np.float64))
    codes = np.empty(len(order), np.intp)
    codes[order] = 0 if found.codes is None else found.codes
    return Units("time", codes, found.n, found.refusal)


def _headline(evidence: IntervalEvidence, bounds: tuple[float, float], units: Units, diagnosis: Diagnosis) -> Headline:
    """Whether the level is kept, as far as so many rows can tell; what raises no alarm may be so."""
    low, high = bounds
    is_sure = diagnosis["coverage"].raised
    level, n = percent(evidence.level), evidence.n
    seen = f"{percent(float(evidence.is_inside.mean()), 3)} of {counted(n, 'target')}"
    if math.isnan(low):
        return Headline(f"{level} intervals cover {seen}.", f"Nothing more can be said: {units.refusal}.")
    if n < MIN_ROWS and not is_sure:
        claim = f"{level} intervals cover {seen}: too few rows to judge them."
    elif high < evidence.level:
        claim = f"{level} intervals {'cover' if is_sure else 'may cover'} too little: {seen}."
    elif low > evidence.level and not evidence.is_covering_by_ties:
        claim = f"{level} intervals {'cover' if is_sure else 'may cover'} too much: {seen}."
    elif diagnosis.raised:
        claim = f"{level} intervals cover {seen}: right on the whole, but see what else was found."
    else:
        claim = f"{level} intervals cover {seen}: nothing speaks against them."
    return Headline(
        claim,
        f"The true coverage lies between {percent(low, 3)} and {percent(high, 3)} ({percent(CONFIDENCE)} confidence), "
        f"if new rows resemble these, assuming {INDEPENDENT[units.kind]}.",
    )


def _reliability(evidence: IntervalEvidence) -> tuple[Reliability, ...]:
    """Coverage of each level given, of nine levels of a whole distribution, with ranges for all of them together."""
    predictions, n = evidence.predictions, evidence.n
    held = (i / 10 for i in range(1, 10) if i / 10 <= (predictions.highest_level or 1.0))
    levels = predictions.confidence_levels or tuple(sorted({*held, evidence.level}))
    confidence = 1.0 - (1.0 - CONFIDENCE) / len(levels)
    found = []
    for level in levels:
        own = evidence.at(level)
        n_inside = int(np.count_nonzero(own.is_inside))
        below, above = (float(is_so.mean()) for is_so in (own.is_below, own.is_above))
        bounds = exact_range(n_inside, n, confidence, evidence.effect)
        found.append(
            Reliability(
                level,
                n_inside / n,
                *bounds,
                below,
                above,
                own.mean_width,
                own.mean_interval_score,
                own.subgroups,
                own.over_time,
            )
        )
    return tuple(found)
