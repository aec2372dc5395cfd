"""Rows of dask collections: a sample that comes here, and what all rows say that stay where they are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pimeter.coverage import quantile_ranks, tail_levels
from pimeter.evaluation.curves import RowAssumptions, floats, level_fields
from pimeter.evaluation.diagnosis.crossfit import coverage_ranges, ranks
from pimeter.evaluation.diagnosis.evidence import checked_rows
from pimeter.evaluation.ranges import CONFIDENCE, margin_ranks
from pimeter.moments import Middle, Range, power_of_two

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pimeter._kernels.dask.rows import Extremes
    from pimeter.moments import Moments
    from pimeter.protocols import Array, FeatureTable, Index

MAX_ROWS_TO_COLLECT = 1_000_000  # of dask collections


class SampledRows(NamedTuple):
    """Rows that came here, as they would be in memory; None for what was not given."""

    y_true: Array
    y_pred: Array
    X: FeatureTable | None
    by: ArrayLike | None


@dataclass(frozen=True)
class LazyRows:
    """What was read of targets, predictions, features and categories that are dask collections.

    Attributes
    ----------
    levels : array of shape (L,)
        Confidence levels asked about.
    sample : SampledRows
        Up to a million rows.
    n : int
        Number of all rows.
    absolute, signed : array
        Order statistics of absolute residuals and of residuals, those of `asked_ranks`; empty if all rows came here.
    moments : Moments
        Sums over all rows; None if all rows came here.
    """

    levels: Array
    sample: SampledRows
    n: int
    absolute: Array
    signed: Array
    moments: Moments

    @classmethod
    def read(cls, levels: Array, y_true: object, y_pred: object, X: object, by: object) -> LazyRows:
        """Read all partitions three times, or once if they hold few rows."""
        from pimeter._kernels.dask.rows import read_rows

        found = read_rows(
            [y_true, y_pred, X, by], MAX_ROWS_TO_COLLECT, checked_rows, partial(asked_ranks, levels), _near_first_look
        )
        return cls(levels, SampledRows(*found.sample), found.n, found.absolute, found.signed, found.sums)

    @property
    def median(self) -> Range:
        """Median residual, and bounds of it."""
        lower, before, after, upper = self.signed[-4:].tolist()
        return Range(before / 2 + after / 2, lower, upper)

    def level_fields(self, assumptions: RowAssumptions) -> dict[str, Any]:
        """Fields of `Curves` that all rows tell, from their order statistics."""
        n_levels = len(self.levels)
        margin, margin_bounds, _ = np.split(self.absolute, [n_levels, 3 * n_levels])
        is_sure = margin_ranks(self.n, self.levels).confidence >= CONFIDENCE
        margin_bounds = np.where(is_sure[:, None], margin_bounds.reshape(-1, 2), math.nan)
        known, first = np.unique(asked_ranks(self.levels, self.n)[0], return_index=True)
        values = self.absolute[first]
        low, high = (np.searchsorted(values, margin, side) for side in ("left", "right"))
        is_tied = bool((np.diff(values) == 0.0).any())
        covered_rank = np.where(is_tied, np.append(known, self.n + 1)[high], known[low])
        coverage = coverage_ranges(self.n, self.levels, covered_rank)
        lower, upper = np.split(self.signed[:-4], 2)  # quantiles of residuals at the bounds of equal-tailed intervals
        return {
            "lower_quantile": floats(lower),
            "upper_quantile": floats(upper),
            **level_fields(self.n, self.levels, margin, margin_bounds, coverage, assumptions),
        }


def asked_ranks(levels: Array, n: int) -> tuple[Index, Index]:
    """Ranks among n rows that are to be found, of absolute residuals and of residuals.

    Those of absolute residuals are for margins, bounds of these and neighbours; of residuals for tails and the median.
    """
    median = quantile_ranks(n, 0.5, CONFIDENCE)
    tails = np.clip(np.ceil(n * tail_levels(levels)), 1, n)
    kept = ranks(n, levels)
    return (
        np.clip(np.concatenate([kept, margin_ranks(n, levels).ranks.ravel(), kept - 1, kept + 1]), 1, n),
        np.concatenate([tails, [median.low, (n + 1) // 2, n // 2 + 1, median.high]]).astype(np.intp),
    )


def _near_first_look(seen: Extremes) -> Middle:
    """Units and what sums are near to, from a first look at all rows."""
    unit, target_unit = power_of_two(seen.largest), power_of_two(max(seen.high - seen.low, seen.largest))
    size, error, target = seen.means
    near = np.array([size / unit, (size / unit) ** 2, error / unit])
    middle = (target - seen.low) / target_unit
    return Middle(unit, near, target_unit, seen.low, middle, 0.0, seen.low == seen.high)
