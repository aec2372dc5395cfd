"""What there is to say of a model at each confidence level, of all rows and of subgroups."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pimeter.conformal.guarantee import rank_guarantee
from pimeter.coverage import percent, quantile_ranks, rounded
from pimeter.evaluation.diagnosis.evidence import simultaneous_bounds
from pimeter.findings import Headline
from pimeter.moments import NORMAL
from pimeter.quantiles import quantile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pimeter.duplicates import Copies
    from pimeter.evaluation.diagnosis.crossfit import CrossFit
    from pimeter.evaluation.diagnosis.evidence import Division

    Array = NDArray[np.float64]
    Ranks = NDArray[np.intp]

CONFIDENCE = 0.9  # of the ranges of scores, that of the headline


@dataclass(frozen=True)
class SubgroupCurves:
    """Coverage and margins of subgroups of the rows by one criterion, at each level.

    Attributes
    ----------
    of : str
        What divides the rows: the prediction, or "by".
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
        Coverage that is guaranteed on average; NaN where nothing is.
    width_lower, width_upper : tuple of float
        Bounds of the width for very many rows, 90 % confidence.
    interval_score, interval_score_lower, interval_score_upper : tuple of float
        Cross-fitted mean interval score, and bounds of it, 90 % confidence.
    lower_quantile, upper_quantile : tuple of float
        Quantiles of the residuals by the neuron, at ``(1 - level) / 2`` and ``(1 + level) / 2``.
    subgroups : tuple of SubgroupCurves
        Quintiles of the prediction, then categories.
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
    def of(cls, residuals: Array, fit: CrossFit, divisions: list[Division], n_subgroups: int) -> Curves:
        """From cross-fitted rows; bounds of subgroups hold for so many of them together."""
        m = len(residuals)
        coverage = divisions[0].covered.inside.sum(axis=0) / m if m > 1 else np.full(len(fit.levels), np.nan)
        lower, upper = np.split(np.asarray(quantile(residuals, tail_levels(fit.levels))), 2)
        margin_bounds = fit.order_statistics(range_ranks(m, fit.levels)[0].ravel()).reshape(-1, 2)
        score, error = fit.mean_interval_scores()
        made = LevelNumbers.of(m, fit.levels, fit.margin, margin_bounds, fit.coverage_ranges)
        return cls(
            levels=floats(fit.levels),
            headlines=made.headlines,
            margin=floats(made.margin),
            coverage=floats(coverage),
            coverage_lower=floats(made.coverage_bounds[:, 0]),
            coverage_upper=floats(made.coverage_bounds[:, 1]),
            guaranteed_level=made.guaranteed_level,
            width_lower=floats(made.width_bounds[:, 0]),
            width_upper=floats(made.width_bounds[:, 1]),
            interval_score=floats(score),
            interval_score_lower=floats(score - NORMAL * error),
            interval_score_upper=floats(score + NORMAL * error),
            lower_quantile=floats(lower),
            upper_quantile=floats(upper),
            subgroups=tuple(_subgroup_curves(division, m, n_subgroups) for division in divisions),
        )

    def with_levels(self, made: LevelNumbers, quantiles: tuple[Array, Array]) -> Curves:
        """Margins and what follows from them in the place of what a sample of the rows says, and quantiles."""
        return replace(
            self,
            headlines=made.headlines,
            margin=floats(made.margin),
            coverage_lower=floats(made.coverage_bounds[:, 0]),
            coverage_upper=floats(made.coverage_bounds[:, 1]),
            guaranteed_level=made.guaranteed_level,
            width_lower=floats(made.width_bounds[:, 0]),
            width_upper=floats(made.width_bounds[:, 1]),
            lower_quantile=floats(quantiles[0]),
            upper_quantile=floats(quantiles[1]),
        )

    def with_copies(self, m: int, copies: Copies) -> Curves:
        """Where rows are copies of others nothing is guaranteed, and ranges are wider by a factor."""
        factor = copies.factor
        note = f"But {copies}: nothing is guaranteed, and the range is widened by a factor of {factor:.3g}."
        coverage = widened(None, self.coverage_lower, self.coverage_upper, factor, (0.0, 1.0))
        width = widened(2.0 * np.array(self.margin), self.width_lower, self.width_upper, factor, (0.0, math.inf))
        scores = (self.interval_score, self.interval_score_lower, self.interval_score_upper)
        interval_score = widened(*scores, factor, (0.0, math.inf))
        said = (
            headline(m, level, margin, guaranteed, (float(low), float(high)))
            for level, margin, guaranteed, low, high in zip(
                self.levels, self.margin, self.guaranteed_level, *coverage, strict=True
            )
        )
        return replace(
            self,
            headlines=tuple(replace(one, evidence=f"{one.evidence} {note}") for one in said),
            coverage_lower=floats(coverage[0]),
            coverage_upper=floats(coverage[1]),
            guaranteed_level=(math.nan,) * len(self.levels),
            width_lower=floats(width[0]),
            width_upper=floats(width[1]),
            interval_score_lower=floats(interval_score[0]),
            interval_score_upper=floats(interval_score[1]),
            subgroups=tuple(_with_wider_bounds(one, factor) for one in self.subgroups),
        )


@dataclass(frozen=True)
class LevelNumbers:
    """What the number of rows and the order statistics of absolute residuals say at each level."""

    headlines: tuple[Headline, ...]
    margin: Array  # (levels,)
    coverage_bounds: Array  # (levels, 2)
    guaranteed_level: tuple[float, ...]
    width_bounds: Array  # (levels, 2), NaN where so few rows cannot tell

    @classmethod
    def of(cls, m: int, levels: Array, margin: Array, margin_bounds: Array, coverage_bounds: Array) -> LevelNumbers:
        """From margins of m rows, bounds of these, (levels, 2), and those of their true coverage, (levels, 2)."""
        guaranteed = tuple(rank_guarantee(m, float(p)).level for p in levels)
        is_known = range_ranks(m, levels)[1] >= CONFIDENCE  # for any distribution, if these rows can tell it
        said = tuple(
            headline(m, float(p), float(own), level, (float(low), float(high)))
            for p, own, level, (low, high) in zip(levels, margin, guaranteed, coverage_bounds, strict=True)
        )
        width_bounds = np.where(is_known[:, None], 2.0 * margin_bounds, math.nan)
        return cls(said, margin, coverage_bounds, guaranteed, width_bounds)


def tail_levels(levels: Array) -> Array:
    """Levels of the residuals' quantiles: lower bounds of intervals, then upper ones."""
    return np.concatenate([(1.0 - levels) / 2.0, (1.0 + levels) / 2.0])


def range_ranks(m: int, levels: Array) -> tuple[Ranks, Array]:
    """Ranks of the bounds of margins, (levels, 2), and how confident these are."""
    found = np.array([quantile_ranks(m, float(p), CONFIDENCE) for p in levels])
    return found[:, :2].astype(np.intp), found[:, 2]


def headline(m: int, level: float, margin: float, guaranteed: float, bounds: tuple[float, float]) -> Headline:
    """The answer in words, also where rows are too few for the level."""
    rows = "1 row" if m == 1 else f"{m:,} rows"
    needed = rank_guarantee(m, level).needed
    claim = f"{percent(level)} of future residuals are expected within ±{margin:.3g}."
    if m < needed:
        claim = (
            f"{rows} {'is' if m == 1 else 'are'} too few to guarantee {percent(level)}; {needed} are needed. "
            f"{percent(guaranteed)} of future residuals are expected within ±{margin:.3g}, the largest residual seen."
        )
    low, high = _in_per_cent(*bounds)
    return Headline(
        claim,
        f"With {rows} the true coverage lies between {low} and {high} % (90 % confidence), if new rows resemble these.",
    )


def _in_per_cent(low: float, high: float) -> tuple[str, str]:
    """Two fractions in per cent, with as many decimals as it takes to tell them apart, and from 0 and 100."""
    decimals = max(0, math.ceil(-math.log10(max(100.0 * (high - low), 1e-6))))
    low_text, high_text = (
        text if fraction in {0.0, 1.0} or 0.0 < float(text) < 100.0 else rounded(100.0 * fraction, 2, whole=100.0)
        for fraction, text in ((fraction, f"{100.0 * fraction:.{decimals}f}") for fraction in (low, high))
    )
    return low_text, high_text


def _subgroup_curves(division: Division, m: int, n_subgroups: int) -> SubgroupCurves:
    """Coverage of subgroups as fractions; NaN without rows, or if there is one row in all."""
    rows, inside, margin = division.covered
    with np.errstate(invalid="ignore"):
        coverage = inside / np.where(rows, rows, math.nan)[:, None] if m > 1 else np.full(inside.shape, np.nan)
    lower, upper = simultaneous_bounds(inside, rows[:, None], n_subgroups) if m > 1 else (coverage, coverage)
    curves = (tuple(map(floats, values)) for values in (coverage, lower, upper, margin))
    return SubgroupCurves(division.of, division.labels, tuple(rows.tolist()), *curves)


def _with_wider_bounds(curves: SubgroupCurves, factor: float) -> SubgroupCurves:
    lower, upper = widened(curves.coverage, curves.lower, curves.upper, factor, (0.0, 1.0))
    return replace(curves, lower=tuple(map(floats, lower)), upper=tuple(map(floats, upper)))


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
