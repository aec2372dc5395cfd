"""What there is to say of a model at each confidence level, of all rows and of subgroups."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pimeter.conformal.guarantee import rank_guarantee
from pimeter.coverage import percent, percent_range, rounded, tail_levels
from pimeter.evaluation.diagnosis.evidence import simultaneous_bounds
from pimeter.findings import Headline
from pimeter.quantiles import quantile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pimeter.clusters import Units
    from pimeter.duplicates import Copies
    from pimeter.evaluation.diagnosis.crossfit import CrossFit
    from pimeter.evaluation.diagnosis.evidence import CoveredDivision
    from pimeter.evaluation.ranges import MarginRanges
    from pimeter.protocols import Array


@dataclass(frozen=True)
class SubgroupCurves:
    """Coverage and margins of subgroups of the rows by one criterion, at each level.

    Attributes
    ----------
    of : str
        What divides the rows: the prediction, "by", or the name of a feature.
    labels : tuple of str
        What the subgroups are called.
    rows : tuple of int
        Their numbers of rows.
    coverage, lower, upper : tuple of tuple of float
        For each subgroup and level, cross-fitted coverage and bounds of it that hold for all subgroups together.
    margin : tuple of tuple of float
        For each subgroup and level, the margin that its rows alone would have.
    """

    of: str
    labels: tuple[str, ...]
    rows: tuple[int, ...]
    coverage: tuple[tuple[float, ...], ...]
    lower: tuple[tuple[float, ...], ...]
    upper: tuple[tuple[float, ...], ...]
    margin: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Curves:
    """What there is to say at each level: the stops of a report's slider, and the level asked for.

    Attributes
    ----------
    levels : tuple of float
        The levels; all other tuples have as many entries.
    headlines : tuple of Headline
        The answers.
    margin : tuple of float
        How far intervals extend below and above the prediction, learned from all rows.
    coverage, coverage_lower, coverage_upper : tuple of float
        Cross-fitted coverage, and 5 % and 95 % points of the true coverage of the margin.
    guaranteed_level : tuple of float
        Coverage that is guaranteed on average; NaN where nothing is, as rows depend on each other or are copies.
    width_lower, width_upper : tuple of float
        Bounds of the width for very many rows, 90 % confidence.
    interval_score, interval_score_lower, interval_score_upper : tuple of float
        Cross-fitted mean interval score, and bounds of that of the margin on fresh rows, 90 % confidence.
    lower_quantile, upper_quantile : tuple of float
        Quantiles of the residuals by the neuron, at ``(1 - level) / 2`` and ``(1 + level) / 2``.
    subgroups : tuple of SubgroupCurves
        Quintiles of the prediction, then categories, then those of the feature whose coverage differs most, which are
        of 5,000 rows at most.
    """

    levels: tuple[float, ...]
    headlines: tuple[Headline, ...]
    margin: tuple[float, ...]
    coverage: tuple[float, ...]
    coverage_lower: tuple[float, ...]
    coverage_upper: tuple[float, ...]
    guaranteed_level: tuple[float, ...]
    width_lower: tuple[float, ...]
    width_upper: tuple[float, ...]
    interval_score: tuple[float, ...]
    interval_score_lower: tuple[float, ...]
    interval_score_upper: tuple[float, ...]
    lower_quantile: tuple[float, ...]
    upper_quantile: tuple[float, ...]
    subgroups: tuple[SubgroupCurves, ...]

    @classmethod
    def of(
        cls,
        residuals: Array,
        fit: CrossFit,
        divisions: list[CoveredDivision],
        n_subgroups: int,
        ranges: MarginRanges,
        assumptions: RowAssumptions,
        effects: Mapping[tuple[str, int], float],
    ) -> Curves:
        """Curves of cross-fitted rows; bounds of subgroups hold for so many together, with their design effects."""
        m = len(residuals)
        coverage = divisions[0].covered.inside.sum(axis=0) / m if m > 1 else np.full(len(fit.levels), np.nan)
        lower, upper = np.split(np.asarray(quantile(residuals, tail_levels(fit.levels))), 2)
        score = fit.mean_interval_scores()
        return cls(
            levels=floats(fit.levels),
            coverage=floats(coverage),
            interval_score=floats(score),
            interval_score_lower=floats(np.minimum(ranges.interval_score[:, 0], score)),
            interval_score_upper=floats(np.maximum(ranges.interval_score[:, 1], score)),
            lower_quantile=floats(lower),
            upper_quantile=floats(upper),
            subgroups=tuple(_subgroup_curves(division, m, n_subgroups, effects) for division in divisions),
            **level_fields(m, fit.levels, fit.margin, ranges.margin, ranges.coverage, assumptions),
        )

    def with_copies(self, m: int, copies: Copies, assumptions: RowAssumptions) -> Curves:
        """Where rows are copies of others ranges are wider by a factor."""
        factor = copies.factor
        note = f"But {copies}: nothing is guaranteed, and the range is widened by a factor of {rounded(factor, 3)}."
        coverage = widened(None, self.coverage_lower, self.coverage_upper, factor, (0.0, 1.0))
        width = widened(2.0 * np.array(self.margin), self.width_lower, self.width_upper, factor, (0.0, math.inf))
        scores = (self.interval_score, self.interval_score_lower, self.interval_score_upper)
        interval_score = widened(*scores, factor, (0.0, math.inf))
        said = (
            headline(m, level, margin, (float(low), float(high)), assumptions)
            for level, margin, low, high in zip(self.levels, self.margin, *coverage, strict=True)
        )
        return replace(
            self,
            headlines=tuple(replace(one, evidence=f"{one.evidence} {note}") for one in said),
            coverage_lower=floats(coverage[0]),
            coverage_upper=floats(coverage[1]),
            width_lower=floats(width[0]),
            width_upper=floats(width[1]),
            interval_score_lower=floats(interval_score[0]),
            interval_score_upper=floats(interval_score[1]),
        )


@dataclass(frozen=True)
class RowAssumptions:
    """What a headline assumes of the rows: which are independent of each other, and what the diagnosis doubts."""

    units: Units
    doubt: str  # why future rows may be unlike these
    why_nothing: str  # why rows guarantee nothing: an order of them may be likelier than another

    @property
    def is_doubtful(self) -> bool:
        """Whether too little is known of future rows to claim anything of them."""
        return bool(self.doubt) or (self.units.kind != "rows" and bool(self.units.refusal))


def level_fields(
    m: int, levels: Array, margin: Array, margin_bounds: Array, coverage_bounds: Array, assumptions: RowAssumptions
) -> dict[str, Any]:
    """Fields of `Curves` that follow from margins of m rows, and bounds of these and of their coverage, (levels, 2)."""
    guaranteed = (rank_guarantee(m, float(p)).doubted(assumptions.why_nothing).level for p in levels)
    cells = zip(levels.tolist(), margin.tolist(), coverage_bounds.tolist(), strict=True)
    return {
        "headlines": tuple(headline(m, p, own, (low, high), assumptions) for p, own, (low, high) in cells),
        "margin": floats(margin),
        "coverage_lower": floats(coverage_bounds[:, 0]),
        "coverage_upper": floats(coverage_bounds[:, 1]),
        "guaranteed_level": tuple(guaranteed),
        "width_lower": floats(2.0 * margin_bounds[:, 0]),
        "width_upper": floats(2.0 * margin_bounds[:, 1]),
    }


def headline(m: int, level: float, margin: float, bounds: tuple[float, float], assumptions: RowAssumptions) -> Headline:
    """The answer in words, also where rows are too few for the level."""
    rows = "1 row" if m == 1 else f"{m:,} rows"
    guarantee = rank_guarantee(m, level)
    within = f"within ±{rounded(margin, 3)}"
    expected = f"{percent(guarantee.level)} of future residuals are expected {within}, the largest residual seen."
    claim = f"{percent(level)} of future residuals are expected {within}."
    if assumptions.is_doubtful:
        expected = f"All of these residuals lie {within}; nothing is claimed of future ones."
        claim = f"{percent(level)} of these residuals lie {within}; nothing is claimed of future ones."
    if m < guarantee.needed:
        few = (
            f"{rows} {'is' if m == 1 else 'are'} too few to guarantee {percent(level)}; {guarantee.needed} are needed."
        )
        claim = f"{few} {expected}"
    units = assumptions.units
    if units.kind == "groups" and units.n_groups < guarantee.needed <= m:
        groups = f"{units.n_groups:,} {'group is' if units.n_groups == 1 else 'groups are'} too few"
        seen = claim if assumptions.is_doubtful else f"{percent(level)} of these residuals lie {within}."
        claim = f"{groups} to guarantee {percent(level)}; {guarantee.needed} are needed. {seen}"
    if math.isnan(bounds[0]):
        return Headline(claim, f"The true coverage has no range: {units.refusal}.")
    low, high = percent_range(*bounds)
    between = f"between {low} and {high} % (90 % confidence)"
    if assumptions.doubt:
        return Headline(claim, f"{assumptions.doubt} Were it not so, the true coverage would lie {between}.")
    with_rows, resemble = {
        "rows": (f"With {rows}", "new rows resemble these"),
        "groups": (f"With {rows} in {units.n_groups:,} groups", "new groups resemble these"),
        "time": (f"With {rows} and allowing for their dependence,", "the future resembles their time"),
    }[units.kind]
    return Headline(claim, f"{with_rows} the true coverage lies {between}, if {resemble}.")


def _subgroup_curves(
    division: CoveredDivision, m: int, n_subgroups: int, effects: Mapping[tuple[str, int], float]
) -> SubgroupCurves:
    """Coverage of subgroups as fractions; NaN without rows, or if there is one row in all."""
    rows, inside = division.covered.rows, division.covered.inside
    with np.errstate(invalid="ignore"):
        coverage = inside / np.where(rows, rows, math.nan)[:, None] if m > 1 else np.full(inside.shape, np.nan)
    labels = division.subgroups.labels
    effect = np.array([effects[division.of, code] if effects else 1.0 for code in range(len(labels))])[:, None]
    effective = inside / effect, rows[:, None] / effect
    lower, upper = simultaneous_bounds(*effective, n_subgroups) if m > 1 else (coverage, coverage)
    curves = (tuple(map(floats, values)) for values in (coverage, lower, upper, division.covered.margin))
    return SubgroupCurves(division.of, labels, tuple(rows.tolist()), *curves)


def widened(
    centre: object, lower: object, upper: object, factor: float, limits: tuple[float, float]
) -> tuple[Array, Array]:
    """Bounds a factor farther from a centre, None for the middle between them, within limits; NaN stays NaN."""
    low, high = np.array(lower, float), np.array(upper, float)
    middle = (low + high) / 2.0 if centre is None else np.array(centre, float)
    is_known = ~(np.isnan(low) | np.isnan(high) | np.isnan(middle))
    wide_low = np.maximum(limits[0], middle - factor * (middle - low))
    wide_high = np.minimum(limits[1], middle + factor * (high - middle))
    return np.where(is_known, wide_low, low), np.where(is_known, wide_high, high)


def floats(values: Array) -> tuple[float, ...]:
    """Numbers of an array as Python's own."""
    return tuple(float(value) for value in values)
