"""Checks of the width: whether a constant one is enough everywhere, and what one that follows the features gains."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from pimeter.arrays import ranks, some_rows
from pimeter.conformal.guarantee import rank_guarantee
from pimeter.evaluation.diagnosis import forest
from pimeter.evaluation.diagnosis.check import MIN_ROWS, Check, by_chance, count, in_percent, is_constant
from pimeter.evaluation.diagnosis.columns import OWN, Column
from pimeter.evaluation.diagnosis.crossfit import CrossFit
from pimeter.evaluation.diagnosis.evidence import SIGNIFICANCE, CoveredDivision, PredictionEvidence
from pimeter.evaluation.diagnosis.shifts import place
from pimeter.evaluation.diagnosis.subgroup_search import FEW_MISSES, MAX_ROWS_TO_DIVIDE, found_subgroup
from pimeter.interval_arrays import interval_scores

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from pimeter.evaluation.diagnosis.evidence import Subgroup
    from pimeter.findings import Finding
    from pimeter.protocols import Array, Index

    Halves = tuple[Index, Index]

MAX_ROWS_TO_LEARN = 2_000  # that a scaled width is tried on
PROMISING = 1.0  # normal deviate of the first half, from which on the other one is looked at, too
STANDARD_ERRORS = 2.75  # of the gain, to either side: its range
FOLLOW = "Let the width follow the features"
FOLLOW_FEATURES = "follow features"  # remedy of several findings: the first of them says so at length


class Gap(NamedTuple):
    """The subgroup whose coverage is farthest from what is due."""

    subgroup: Subgroup
    due: float
    is_sure: bool  # whether chance does not explain it

    @classmethod
    def of(cls, subgroups: tuple[Subgroup, ...], level: float, coverage: float) -> Gap:
        """The largest gap that chance does not explain; without one the gap that is largest relative to its interval.

        Ties lift the coverage of all rows above the level: a subgroup is covered too well only if it is above both.
        """
        due = {one: min(max(one.coverage, level), coverage) for one in subgroups}
        sure = [one for one in subgroups if not one.lower <= due[one] <= one.upper]

        def gap(one: Subgroup) -> float:
            towards = one.upper - one.coverage if one.coverage < level else one.coverage - one.lower
            return abs(one.coverage - due[one]) / (1.0 if sure else max(towards, 1e-12))

        worst = max(sure or subgroups, key=gap)
        return cls(worst, due[worst], bool(sure))

    @property
    def place(self) -> str:
        """Where it is, in words."""
        return place(self.subgroup.of, self.subgroup.label)

    def grouped_width(self, columns: list[Column]) -> str:
        """Code of a width that explains it: one for each category; empty if it is a matter of numbers."""
        if self.subgroup.of == "by":
            return '"grouped"'
        own = (column for column in columns if column.name == self.subgroup.of and not column.is_numeric)
        return next((f"GroupedWidth(by={column.place!r})" for column in own), "")


def shown_divisions(evidence: PredictionEvidence) -> list[CoveredDivision]:
    """Coverage across quintiles of the prediction, per category, and by the feature that has the largest gap."""
    of_features = tuple(one for one in evidence.subgroups if one.of not in OWN)
    if not of_features:
        return evidence.divisions
    worst = Gap.of(of_features, evidence.level, evidence.coverage).subgroup.of
    subgroups = next(one.subgroups for one in evidence.by_feature if one.of == worst)
    fit, some = evidence.fit, evidence.some
    of_some = replace(fit, absolute=fit.absolute[some], n_beyond=fit.n_beyond[some])
    return [*evidence.divisions, CoveredDivision.of_subgroups(worst, subgroups, of_some)]


class CoverageGap(Check[PredictionEvidence]):
    """Coverage of the subgroup with the strongest evidence against a constant width."""

    name = "width"
    question = "Is a constant width enough?"
    looks_at = "cross-fitted coverage across quintiles of the prediction and of each feature, and per category"
    statistic = "the largest gap to the level, with an interval that holds for all subgroups together"
    least_gap = 0.4  # that matters, in units of 1 - p
    significance = SIGNIFICANCE

    def _judged(self, evidence: PredictionEvidence, _earlier: Mapping[str, Finding]) -> Finding:
        subgroups, level, m = evidence.subgroups, evidence.level, evidence.m
        if len(subgroups) < 2 or m < MIN_ROWS:
            why = f"{count(m)} too few" if m < MIN_ROWS else "There are no subgroups of the rows"
            return self.finding(m, f"{why} to say anything about coverage in subgroups of them.", reference=0.0)
        gap = Gap.of(subgroups, level, evidence.coverage)
        worst, place = gap.subgroup, gap.place
        value = worst.coverage - gap.due
        bounds = (worst.lower - gap.due, worst.upper - gap.due)
        sentence = (
            f"Cross-fitted coverage differs most from {in_percent(gap.due)} {place}: {in_percent(worst.coverage)} of "
            f"{worst.rows:,} rows (between {in_percent(worst.lower)} and {in_percent(worst.upper)}, with "
            f"{in_percent(1 - SIGNIFICANCE)} confidence for all {len(subgroups)} subgroups together)"
        )
        advice, remedy, threshold = "", "", self.least_gap * (1.0 - level)
        if not gap.is_sure:
            sentence += ", which chance explains."
        elif abs(value) < threshold:
            sentence += ", too little to matter."
        else:
            sentence += "."
            advice = f"A constant width is not enough {place}: coverage is {in_percent(worst.coverage)} there. "
            if gap.grouped_width(evidence.given.columns):
                advice += "Give each category a margin of its own."
            else:
                advice, remedy = f"{advice}{FOLLOW}.", FOLLOW_FEATURES
        return self.finding(
            m, sentence, advice, value=value, reference=0.0, bounds=bounds, threshold=threshold, remedy=remedy
        )


class LeastCovered(Check[PredictionEvidence]):
    """Coverage of the worst subgroup that one or two conditions on the features describe."""

    name = "worst_subgroup"
    question = "Which rows are covered least?"
    looks_at = "up to 3,000 rows, and all subgroups of 5 % of them or more that one or two conditions describe"
    statistic = "coverage of the worst one, found on one half of the rows and told by the other; misses, permuted"
    significance = 0.004

    def _judged(self, evidence: PredictionEvidence, earlier: Mapping[str, Finding]) -> Finding:
        if evidence.units is not None:  # by rows, a search would find what groups, or stretches of time, have in common
            return self.finding(evidence.m, "Rows that belong together are not searched.", reference=evidence.level)
        prediction = Column("prediction", None, evidence.prediction[evidence.some], True)
        columns = [*evidence.given.columns, prediction] if evidence.given.columns else []
        is_inside, level = evidence.fit.covered(evidence.some, evidence.at), evidence.level
        found = found_subgroup(columns, is_inside)
        if found is None:
            why = FEW_MISSES if columns else evidence.given.why_no_columns
            return self.finding(len(is_inside), why, reference=level)
        sentence = f"Covered least are {found}"
        is_less = found.coverage < level and found.p_value <= self.significance
        sentence += f" (p = {found.p_value:.2g}, of the whole search)." if is_less else by_chance(found.p_value)
        covered = f"{in_percent(found.coverage)} of {found.words} are covered."
        advice = f"Only {covered}" if _is_said(earlier) else f"{FOLLOW}: {covered}"
        return self.finding(
            min(len(is_inside), MAX_ROWS_TO_DIVIDE),
            sentence,
            advice if is_less else "",
            value=found.coverage,
            reference=level,
            bounds=(found.lower, found.upper),
            p_value=found.p_value,
            remedy=FOLLOW_FEATURES if is_less else "",
        )


class ScaledGain(Check[PredictionEvidence]):
    """Interval score of a scaled width against a constant one, on rows that neither of them has seen."""

    name = "gain"
    question = "How much better is a width that follows the features?"
    looks_at = "up to 2,000 rows, one half of which learns and the other half judges, in turns"
    statistic = "by which fraction a scaled width lowers the interval score"
    least_gain = 0.05  # that matters: a scaled width takes rows to learn
    significance = 0.004

    def _judged(self, evidence: PredictionEvidence, earlier: Mapping[str, Finding]) -> Finding:
        units, rows = evidence.some_units, some_rows(len(evidence.some), MAX_ROWS_TO_LEARN)
        residuals, prediction = evidence.some_residuals[rows], evidence.prediction[evidence.some][rows]
        m = len(rows)
        labels = np.arange(m)
        if units is not None and units.labels is not None:
            labels = np.unique(units.labels[rows], return_inverse=True)[1]
        rng = np.random.default_rng(m)
        halves = _halves(labels, rng)
        if why := _unknown_gain(residuals, halves):
            return self.finding(m, f"What a scaled width would gain is not known: {why}.", reference=0.0)
        bins = forest.binned([*(column.numbers[rows] for column in evidence.given.columns), prediction])
        absolute = np.abs(residuals) / np.abs(residuals).max()
        judged, constant, scaled, z = _scores(absolute, bins, evidence.level, labels, halves, rng)
        less, base, p_value = constant - scaled, float(constant.mean()), float(ndtr(-z))
        gain = float(less.mean()) / base
        sums = np.bincount(labels[judged], less - less.mean())
        n_units = len(np.unique(labels[judged]))
        error = STANDARD_ERRORS * math.sqrt(float(sums @ sums) * n_units / max(n_units - 1, 1)) / len(less) / base
        bounds = (gain - error, gain + error)
        sentence = (
            f"A scaled width {'lowers' if gain > 0 else 'raises'} the interval score by {in_percent(abs(gain))} (gain "
            f"between {in_percent(bounds[0])} and {in_percent(bounds[1])})"
        )
        advice = remedy = ""
        if bounds[0] <= 0.0 or gain < self.least_gain or p_value > self.significance:
            sentence += ": not enough for the rows that it takes to learn."
        else:
            sentence += "."
            first = "A width that follows the features" if _is_said(earlier) else f"{FOLLOW}: that"
            advice, remedy = f"{first} lowers the interval score by {in_percent(gain)}.", FOLLOW_FEATURES
        return self.finding(
            m,
            sentence,
            advice,
            value=gain,
            reference=0.0,
            bounds=bounds,
            p_value=p_value,
            threshold=self.least_gain,
            remedy=remedy,
        )


def _halves(units: Index, rng: np.random.Generator) -> Halves:
    """Rows in random order, those of one half of the units and of the other."""
    is_first = np.zeros(int(units.max()) + 1, bool)
    drawn = rng.permutation(len(is_first))
    is_first[drawn[: -(-len(drawn) // 2)]] = True
    shuffled = drawn if len(drawn) == len(units) else rng.permutation(len(units))
    return shuffled[is_first[units[shuffled]]], shuffled[~is_first[units[shuffled]]]


def _unknown_gain(residuals: Array, halves: Halves) -> str:
    """Why no width can be learned on one half and judged on the other; empty if one can."""
    if len(residuals) < 2 * MIN_ROWS:
        return f"{count(len(residuals))} too few to learn one"
    if min(map(len, halves)) < MIN_ROWS:
        return "too many rows belong together to learn one on some groups and judge it on others"
    return "all residuals have the same size" if is_constant(np.abs(residuals)) else ""


def _is_said(earlier: Mapping[str, Finding]) -> bool:
    """Whether a finding before this one says what to let the width follow: the features, or the category."""
    return earlier["width"].raised or any(one.remedy == FOLLOW_FEATURES for one in earlier.values())


def grouped_gain(residuals: Array, codes: NDArray[np.integer[Any]], level: float, is_signed: bool) -> float:
    """By which fraction bounds of each category by itself lower the interval score, on rows that they have not seen.

    Signed residuals have a bound on either side, with half of the misses each.
    """
    x = residuals / np.abs(residuals).max()
    tails = [(-x, (1.0 + level) / 2.0), (x, (1.0 + level) / 2.0)] if is_signed else [(np.abs(x), level)] * 2
    halves = np.array_split(np.random.default_rng(len(x)).permutation(len(x)), 2)
    totals = np.zeros(2)
    for learned, judged in (halves, halves[::-1]):
        for own, p in tails:
            margins = np.empty((2, len(judged)))
            margins[:] = np.quantile(own[learned], p)
            for code in np.unique(codes[judged]):
                known = own[learned[codes[learned] == code]]
                if rank_guarantee(len(known), p).is_enough:
                    margins[1, codes[judged] == code] = np.quantile(known, p)
            totals += (margins + np.maximum(own[judged] - margins, 0.0) / (1.0 - p)).sum(axis=1)
    return float(1.0 - totals[1] / totals[0])


def _scores(
    absolute: Array,
    bins: Index,
    level: float,
    units: Index,
    halves: Halves,
    rng: np.random.Generator,
) -> tuple[Index, Array, Array, float]:
    """Rows that were judged, their scores with a constant width and a scaled one, and whether the scale says anything.

    That is the rank correlation of scales and absolute residuals that they have not seen, as a normal deviate: the mean
    of both halves, which say much the same and so have the variance of one at most. Where the first says that there is
    nothing to gain, its own rows are all that is looked at. Rows of one unit are in one half, and their products of
    ranks are one.
    """
    rows: list[Index] = []
    constant: list[Array] = []
    scaled: list[Array] = []
    deviates: list[float] = []
    for learned, judged in (halves, halves[::-1]):
        rows.append(judged)
        own = absolute[judged]
        learned_scale = forest.learned_scale(bins, absolute, learned, rng)[judged]
        for scores, scale in ((scaled, learned_scale), (constant, np.ones(len(own)))):
            fit = CrossFit.of(own / scale, np.array([level]))
            margin = fit.fold_margins[fit.fold, 0] * scale
            scores.append(interval_scores(own, -margin, margin, level))
        is_known = not (is_constant(learned_scale) or is_constant(own))
        deviates.append(_rank_correlation(learned_scale, own, units[judged]) if is_known else 0.0)
        if deviates[0] < PROMISING:
            break
    return np.concatenate(rows), np.concatenate(constant), np.concatenate(scaled), float(np.mean(deviates))


def _rank_correlation(scale: Array, absolute: Array, units: Index) -> float:
    """Correlation of ranks as a normal deviate; of units of several rows, the sum of their products over its error."""
    first, second = (ranks(values) - (len(values) + 1) / 2.0 for values in (scale, absolute))
    if len(np.unique(units)) == len(units):
        return float(math.sqrt(len(first) - 1) * (first @ second) / math.sqrt((first @ first) * (second @ second)))
    sums = np.bincount(units, first * second)
    return float(sums.sum() / math.sqrt(sums @ sums))
