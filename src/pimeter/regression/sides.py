"""The neurons at the two ends of an interval: what they learn from, what they promise, how far they reach."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pimeter._kernels.dispatch import kernel
from pimeter.conformal.guarantee import (
    CONFIDENCE,
    Guarantee,
    GuaranteeKind,
    cross_validated_level,
    effective_counts,
    neuron_level,
    rank_below,
    rank_guarantee,
)
from pimeter.coverage import ROUNDING
from pimeter.quantiles import quantile
from pimeter.regression.folds import ends

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pimeter.conformal.tails import Tails
    from pimeter.regression.width import Shape

    Array = NDArray[np.float64]


class Sample(NamedTuple):
    """Errors that one neuron learns from."""

    above: Array  # how far they reach beyond the upper end of a band, which may be the prediction itself
    below: Array | None  # the same beyond the lower end; None: as far, with the other sign
    weights: Array | None  # as counts
    unit: float  # what a row with importance weight 1 counts
    lists: NDArray[np.intp] | None
    sign: float = 0.0  # -1 and 1: towards the lower or the upper end; 0: in any direction

    @property
    def m(self) -> float:
        """Number of errors."""
        return float(len(self.above) if self.weights is None else self.weights.sum())

    @property
    def sizes(self) -> Array:
        """How far the errors reach; not kept, so that a million errors are kept once."""
        if self.sign > 0.0:
            return self.above
        if self.below is None:
            return -self.above if self.sign else np.abs(self.above)
        return self.below if self.sign else np.maximum(self.above, self.below)

    def towards(self, sign: float) -> Sample:
        """Only the rows whose error is on this side of the prediction; there is no band then."""
        rows = self.above * sign > 0.0
        weights, unit = None, self.unit
        if self.weights is not None and rows.any():
            weights = effective_counts(self.weights[rows])
            unit *= float(weights.sum() / self.weights[rows].sum())
        lists = None if self.lists is None else self.lists[rows]
        return Sample(self.above[rows], None, weights, unit, lists, sign)

    def ranked(self, places: Array) -> Array:
        """Errors of these ranks, which are cumulative weights; the largest beyond them."""
        if self.weights is None:
            ranks = np.clip(np.ceil(places - ROUNDING).astype(np.intp), 1, len(self.above))
            return np.asarray(kernel.order_statistics(self.sizes, ranks))
        sizes = self.sizes
        order = np.argsort(sizes, kind="stable")
        total = np.cumsum(self.weights[order])
        return np.asarray(sizes[order][np.minimum(np.searchsorted(total, places - ROUNDING), len(total) - 1)])

    def shares(self, y: Array, centres: Array, scales: Array) -> Array:
        """Share of errors below that of y (n, g) around centres (n_lists, n, 1); ties and the new row count half."""
        total = np.full(y.shape, 0.5)
        for i in range(len(centres)):
            rows = slice(None) if self.lists is None else self.lists == i
            errors = self.above[rows]
            order = np.argsort(errors)
            errors = errors[order]
            weights = np.ones(len(errors)) if self.weights is None else self.weights[rows][order]
            below = np.concatenate([[0.0], np.cumsum(weights)])
            with np.errstate(over="ignore"):  # beyond all errors either way
                asked = (y - centres[i]) / scales[i]
            first = np.searchsorted(errors, asked)
            total += below[first]
            equal = np.flatnonzero(errors[np.minimum(first, len(errors) - 1)] == asked) if len(errors) else first[:0]
            last = np.searchsorted(errors, asked.flat[equal], side="right")
            total.flat[equal] += (below[last] - below[first.flat[equal]]) / 2.0
        shares = total / (self.m + 1.0)
        shares[np.isinf(y)] = y[np.isinf(y)] > 0.0
        return shares


class Side(NamedTuple):
    """The neuron at one end of the interval: its errors, and the level that they are to reach there."""

    sample: Sample
    level: float
    promise: Guarantee
    guarantee: GuaranteeKind

    def radius(self, new_weights: Array) -> Array:
        """How far the interval reaches for new rows of these weights, as counts."""
        m = self.promise.m
        if not m:
            return np.full(new_weights.shape, self.sample.sizes.max())
        if self.guarantee == "training-conditional":
            return self.sample.ranked(np.full(new_weights.shape, float(self.promise.rank)))
        places = (m + new_weights) * self.level
        if self.guarantee == "marginal":
            return self.sample.ranked(places)
        low, high = self.sample.ranked(np.stack([np.maximum(np.floor(places + ROUNDING), 1.0), places]))
        weights = self.sample.weights
        # Where weights differ, places between two errors are no ranks: the neuron stands at the place itself.
        is_rank = np.isclose(new_weights, 1.0) & (weights is None or np.ptp(weights) == 0.0)
        levels = np.where(is_rank, neuron_level(m, self.level), np.minimum(places / m, 1.0))
        return np.asarray(np.clip(quantile(self.sample.sizes, levels, weights=weights), low, high))

    def end(self, centres: Array, scales: Array | None) -> Array:
        """Upper end of the interval among the models of all folds."""
        sizes, lists = self.sample.sizes, self.sample.lists
        assert lists is not None
        k = self.promise.rank or len(sizes)
        outer = ends(centres, scales, sizes, lists, k)
        below = rank_below(self.promise.m, self.level)
        if self.guarantee != "approximate" or below >= k:
            return outer
        # The neuron says where between two errors it stands; the same part of the way is gone between the two ends.
        low, high = self.sample.ranked(np.array([below, k], float))
        t = (self.radius(np.ones(1))[0] - low) / (high - low) if low < high else 1.0
        return np.asarray((1.0 - t) * ends(centres, scales, sizes, lists, below) + t * outer)


class Neuron(NamedTuple):
    """What is learned for one output and category."""

    lower: Side | None
    upper: Side | None
    level: float  # coverage that is promised
    coverage_range: tuple[float, float]

    @property
    def weakest(self) -> Guarantee:
        """The promise of the side with fewer errors."""
        sides = [side.promise for side in (self.lower, self.upper) if side is not None]
        return min(sides, key=lambda promise: promise.m)

    @classmethod
    def of(cls, errors: Sample, tails: Tails, p: float, guarantee: GuaranteeKind) -> Neuron:
        """Part the errors by their side and find what they promise at level p."""
        nothing = (math.nan, math.nan)
        level = (p + tails.n_cuts - 1.0) / tails.n_cuts
        if tails.is_by_sign:
            # Each side keeps its promise with confidence sqrt(.95), so both do with .95.
            parts = [errors.towards(sign) for sign in (-1.0, 1.0)]
            kept = [rank_guarantee(part.m, p, kind=guarantee, confidence=math.sqrt(CONFIDENCE)) for part in parts]
            lower, upper = (
                Side(part if part.m else errors, level, one, guarantee) for part, one in zip(parts, kept, strict=True)
            )
            proven = errors.lists is None and all(one.is_enough for one in kept)
            return cls(lower, upper, min(one.level for one in kept) if proven else math.nan, nothing)
        one = rank_guarantee(errors.m, p, kind=guarantee, n_cuts=tails.n_cuts)
        if tails.is_signed:
            lower, upper = (Side(errors._replace(sign=sign), level, one, guarantee) for sign in (-1.0, 1.0))
        else:
            lower = upper = Side(errors, level, one, guarantee)
        promised, spanned = one.level, one.coverage_range
        if errors.lists is not None:
            promised, spanned = cross_validated_level(promised, errors.m, tails.n_cuts), nothing
        return cls(lower if tails.has_lower else None, upper if tails.has_upper else None, promised, spanned)

    def radii(self, new_weights: Array) -> tuple[Array, Array]:
        """How far the interval reaches down and up for new rows of these weights; infinitely far without an end."""

        def radius(side: Side | None) -> Array:
            if side is None:
                return np.full(len(new_weights), np.inf)
            return side.radius(new_weights * side.sample.unit)

        lower = radius(self.lower)
        return lower, lower if self.upper is self.lower else radius(self.upper)

    def is_too_heavy(self, new_weights: Array) -> NDArray[np.bool_]:
        """Whether all errors are light beside a new row of this weight.

        Its interval ought to be infinite; it reaches as far as the largest error instead.
        """
        found = np.zeros(len(new_weights), bool)
        for side in (self.lower, self.upper):
            if side is not None:
                m = side.sample.m
                found |= (m + side.sample.unit * new_weights) * side.level > m + ROUNDING
        return found

    def typical(self) -> list[float]:
        """Radii for a new row that counts as one."""
        lower, upper = (self.lower, None if self.upper is self.lower else self.upper)
        radii = [math.inf if side is None else float(side.radius(np.ones(1))[0]) for side in (lower, upper)]
        return [radii[0]] * 2 if self.upper is self.lower else radii

    def ends(self, centres: Array, shape: Shape) -> tuple[Array, Array]:
        """Lower and upper end of intervals among the models of all folds."""
        infinite = np.full(centres.shape[1], np.inf)
        start, end = (0.0 if part is None else part for part in (shape.lower, shape.upper))
        lower = -infinite if self.lower is None else -self.lower.end(start - centres, shape.scale)
        upper = infinite if self.upper is None else self.upper.end(centres + end, shape.scale)
        return uncrossed(lower, upper)


def uncrossed(lower: Array, upper: Array) -> tuple[Array, Array]:
    """Ends that crossed meet in the middle."""
    crossed = lower > upper
    if not crossed.any():
        return lower, upper
    middle = np.where(crossed, 0.5 * lower + 0.5 * upper, 0.0)
    return np.where(crossed, middle, lower), np.where(crossed, middle, upper)
