"""The bootstrap of functions of a confusion matrix, by multinomial draws of its cells: BCa, with the neuron's quantile.

To draw n whole rows with replacement and to count them in cells is to draw the cells from a multinomial distribution,
so that n does not matter for the time. It is exact for whatever is computed from the counts, and for nothing else (the
area under a ROC curve, say, needs the scores).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr, ndtri

from pimeter.coverage import ROUNDING, percent
from pimeter.quantiles import quantile

if TYPE_CHECKING:
    from pimeter.protocols import Array, Index

MAX_COUNTS_HELD = 1_000_000  # at the same time
MIN_DEFINED = 0.5  # proportion of resamples in which a metric must be defined
MIN_BEYOND = 5  # resamples beyond each bound: of five the true miss is 1.1 times the one asked for, of one 1.8 times


class Resamples:
    """Cells of resampled rows, from rows in each cell and sums (k,) of their weights and of squared weights.

    Given the rows drawn from a cell, the sum of their weights is taken as normal: exact for equal weights.
    """

    def __init__(self, rows: Array, sums: Array, squares: Array, n_resamples: int, rng: np.random.Generator) -> None:
        self.rows, self.n_resamples, self.rng = rows, n_resamples, rng
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.where(rows > 0.0, sums / rows, 1.0)
            spread = np.where(rows > 0.0, squares / rows, 1.0) - mean**2
        self.mean, self.spread = mean, np.where(spread > 1e-12 * mean**2, spread, 0.0)

    def cells(self, size: int) -> Array:
        """Sums of weights, (k, size)."""
        total = self.rows.sum()
        n = max(round(total), 1)
        drawn = self.rng.multinomial(n, self.rows / total, size).T.astype(np.float64)
        sums: Array = drawn * self.mean[:, None]
        if self.spread.any():
            sums += np.sqrt(drawn * self.spread[:, None]) * self.rng.standard_normal(drawn.shape)
            np.maximum(sums, 0.0, out=sums)
        return sums

    def intervals(
        self, metrics: Callable[[Array], dict[str, Array]], confidence_level: float
    ) -> dict[str, tuple[float, float]]:
        """BCa intervals of metrics: a function of cells (k, B) that gives (B,) of each, NaN where it is not defined."""
        refuse_few_resamples(self.n_resamples, confidence_level)
        size = max(1, MAX_COUNTS_HELD // len(self.rows))
        blocks = [
            metrics(self.cells(min(size, self.n_resamples - start))) for start in range(0, self.n_resamples, size)
        ]
        sums = self.rows * self.mean
        present = np.flatnonzero(self.rows > 0.0)
        value = metrics(sums[:, None])
        left_out = [metrics(self._one_less(sums, present[i : i + size])) for i in range(0, len(present), size)]
        return {
            name: bca(
                np.concatenate([block[name] for block in blocks]),
                float(value[name][0]),
                np.concatenate([block[name] for block in left_out]),
                self.rows[present],
                confidence_level,
            )
            for name in value
        }

    def _one_less(self, sums: Array, which: Index) -> Array:
        """Sums with a row less in one of the cells each, (k, cells)."""
        less = np.repeat(sums[:, None], len(which), axis=1)
        less[which, np.arange(len(which))] -= self.mean[which] * np.minimum(1.0, self.rows[which])
        return less


def refuse_few_resamples(n_resamples: int, confidence_level: float) -> None:
    """Refuse resamples of which too few would lie beyond the bounds."""
    needed = math.ceil(2 * MIN_BEYOND / (1.0 - confidence_level) * (1.0 - ROUNDING))  # 1 - .9 is a little less than .1
    if n_resamples < needed:
        msg = (
            f"n_resamples={n_resamples} is too few for the bootstrap at {percent(confidence_level, 8)}: at "
            f"least {MIN_BEYOND} have to lie beyond each bound. Set n_resamples={needed} or more, or a lower "
            "level; accuracy and other proportions need no bootstrap if they are asked for alone, as metrics of "
            'method="wilson" or "clopper-pearson".'
        )
        raise ValueError(msg)


def bca(resamples: Array, value: float, left_out: Array, counts: Array, confidence_level: float) -> tuple[float, float]:
    """The bias-corrected and accelerated interval (Efron 1987); NaN if the metric is hardly ever defined.

    `left_out` is the metric with one row less of each cell, `counts` how many rows such a cell has: SciPy's bootstrap
    draws and leaves out whole rows, in a time that grows with their number.
    """
    kept = resamples[np.isfinite(resamples)]
    if not np.isfinite(value) or len(kept) < MIN_DEFINED * len(resamples) or not len(kept):
        return float("nan"), float("nan")
    # Values on a lattice are often met exactly: such resamples are half below.
    same = np.isclose(kept, value, rtol=1e-12, atol=1e-15)
    below = (np.count_nonzero((kept < value) & ~same) + 0.5 * np.count_nonzero(same)) / len(kept)
    bias = ndtri(np.clip(below, 0.5 / len(kept), 1.0 - 0.5 / len(kept)))
    known = np.isfinite(left_out)
    change, weight = left_out[known], counts[known]
    away = weight @ change / weight.sum() - change if len(change) else np.zeros(0)
    scale = (weight @ away**2) ** 1.5
    acceleration = (weight @ away**3) / (6.0 * scale) if scale > 0.0 else 0.0
    z = ndtri(np.array([1.0 - confidence_level, 1.0 + confidence_level]) / 2.0) + bias
    levels = ndtr(bias + z / (1.0 - acceleration * z))
    lower, upper = quantile(kept, levels)
    return float(lower), float(upper)
