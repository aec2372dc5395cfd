"""Errors of calibration rows, and the neurons that turn them into intervals at any level."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pimeter.promise import (
    CONFIDENCE,
    ROUNDING,
    CoverageWarning,
    Guarantee,
    Promise,
    cross_validated_level,
    neuron_level,
    promise,
    rank_below,
    rescaled_weights,
    shortage,
)
from pimeter.quantiles import quantile
from pimeter.regression.folds import Folds, ends

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


class Tails(NamedTuple):
    """What an interval leaves out at its two ends."""

    has_lower: bool = True
    has_upper: bool = True
    n_cuts: int = 1  # 2: misses are shared out to both ends of one sample
    is_signed: bool = True  # errors towards the other end count as negative
    is_parted: bool = False  # the errors towards either end are a sample of their own


MANY = 100_000  # errors from which on a subsample saves time

TAILS = {
    "symmetric": Tails(is_signed=False),
    "equal": Tails(n_cuts=2),
    "sided": Tails(is_parted=True),
    "lower": Tails(has_upper=False),
    "upper": Tails(has_lower=False),
}


@dataclass(frozen=True)
class Rows:
    """Calibration rows: their errors in units of their scale, and what else is known of them."""

    errors: Array  # (m, k), target minus prediction
    labels: NDArray[Any] | None = None  # (m,) categories
    weights: Array | None = None  # (m,) importance
    folds: Folds | None = None  # who left them out

    def joined(self, other: Rows) -> Rows:
        """These rows and others; rows without a weight weigh 1."""
        weights = labels = None
        if self.weights is not None or other.weights is not None:
            parts = [np.ones(len(rows.errors)) if rows.weights is None else rows.weights for rows in (self, other)]
            weights = np.concatenate(parts)
        if self.labels is not None and other.labels is not None:
            labels = np.concatenate([self.labels, other.labels])
        return Rows(np.concatenate([self.errors, other.errors]), labels, weights)

    def sample(self, output: int, members: Any = slice(None)) -> Sample:
        """Errors of one output, of some of the rows."""
        weights = None if self.weights is None else rescaled_weights(self.weights[members])
        unit = 1.0 if weights is None or self.weights is None else float(weights.sum() / self.weights[members].sum())
        lists = None if self.folds is None else self.folds.of_row[members]
        return Sample(self.errors[members, output], weights, unit, lists)


class Sample(NamedTuple):
    """Errors that one neuron learns from."""

    errors: Array
    weights: Array | None  # as counts
    unit: float  # what a row with importance weight 1 counts
    lists: NDArray[np.intp] | None
    sign: float = 0.0  # -1 and 1: towards the lower or the upper end; 0: in any direction

    @property
    def m(self) -> float:
        """Number of errors."""
        return float(len(self.errors) if self.weights is None else self.weights.sum())

    @property
    def sizes(self) -> Array:
        """How far the errors reach; not kept, so that a million errors are kept once."""
        return self.errors * self.sign if self.sign else np.abs(self.errors)

    def towards(self, sign: float) -> Sample:
        """Only the rows whose error is on this side."""
        rows = self.errors * sign > 0.0
        weights, unit = None, self.unit
        if self.weights is not None and rows.any():
            weights = rescaled_weights(self.weights[rows])
            unit *= float(weights.sum() / self.weights[rows].sum())
        return Sample(self.errors[rows], weights, unit, None if self.lists is None else self.lists[rows], sign)

    def ranked(self, places: Array) -> Array:
        """Errors of these ranks, which are cumulative weights; the largest beyond them."""
        if self.weights is None:
            return _order_statistics(self.sizes, np.clip(np.ceil(places - ROUNDING).astype(int), 1, len(self.errors)))
        sizes = self.sizes
        order = np.argsort(sizes, kind="stable")
        total = np.cumsum(self.weights[order])
        return np.asarray(sizes[order][np.minimum(np.searchsorted(total, places - ROUNDING), len(total) - 1)])


def _order_statistics(values: Array, ranks: NDArray[np.int64]) -> Array:
    """Values of these ranks from 1 on; among many only those between two pivots of a subsample are put in order."""
    first, last = ranks.min() - 1, ranks.max() - 1
    m = len(values)
    if m > MANY:
        step = int(m ** (1 / 3))
        some = np.sort(values[::step])
        reach = 2.0 * math.sqrt(len(some))  # four standard errors of a rank in the middle
        low = some[max(int(first / step - reach), 0)]
        high = some[min(int(last / step + reach), len(some) - 1)]
        n_below = int(np.count_nonzero(values < low))
        between = values[(values >= low) & (values <= high)]
        if n_below <= first and last < n_below + len(between):
            values, ranks = between, ranks - n_below
    return np.asarray(np.partition(values, np.unique(ranks - 1))[ranks - 1])


class Side(NamedTuple):
    """The neuron at one end of the interval: its errors, and the level that they are to reach there."""

    sample: Sample
    level: float
    promise: Promise
    guarantee: Guarantee

    def radius(self, new_weights: Array) -> Array:
        """How far the interval reaches for new rows of these weights, as counts."""
        m = self.promise.m
        if not m:
            return np.full(new_weights.shape, self.sample.sizes.max())
        if self.guarantee == "set":
            return self.sample.ranked(np.full(new_weights.shape, float(self.promise.rank)))
        places = (m + new_weights) * self.level
        if self.guarantee:
            return self.sample.ranked(places)
        low, high = self.sample.ranked(np.stack([np.maximum(np.floor(places + ROUNDING), 1.0), places]))
        levels = np.minimum(neuron_level(m, self.level) * (m + new_weights) / (m + 1.0), 1.0)
        return np.asarray(np.clip(quantile(self.sample.sizes, levels, weights=self.sample.weights), low, high))

    def end(self, centres: Array, scales: Array | None) -> Array:
        """Upper end of the interval among the models of all folds."""
        sizes, lists = self.sample.sizes, self.sample.lists
        assert lists is not None
        k = self.promise.rank or len(sizes)
        outer = ends(centres, scales, sizes, lists, k)
        below = rank_below(self.promise.m, self.level)
        if self.guarantee or below >= k:
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
    def weakest(self) -> Promise:
        """The promise of the side with fewer errors."""
        sides = [side.promise for side in (self.lower, self.upper) if side is not None]
        return min(sides, key=lambda promise: promise.m)

    @classmethod
    def of(cls, errors: Sample, tails: Tails, p: float, guarantee: Guarantee) -> Neuron:
        """Part the errors by their side and find what they promise at level p."""
        nothing = (math.nan, math.nan)
        level = (p + tails.n_cuts - 1.0) / tails.n_cuts
        if tails.is_parted:
            # Each side keeps its promise with confidence sqrt(.95), so both do with .95.
            parts = [errors.towards(sign) for sign in (-1.0, 1.0)]
            kept = [promise(part.m, p, guarantee=guarantee, confidence=math.sqrt(CONFIDENCE)) for part in parts]
            lower, upper = (
                Side(part if part.m else errors, level, one, guarantee) for part, one in zip(parts, kept, strict=True)
            )
            proven = errors.lists is None and all(one.is_kept for one in kept)
            return cls(lower, upper, min(one.level for one in kept) if proven else math.nan, nothing)
        one = promise(errors.m, p, guarantee=guarantee, n_cuts=tails.n_cuts)
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
        """Of new rows: whether all errors together weigh too little beside them to reach the level."""
        found = np.zeros(len(new_weights), bool)
        for side in (self.lower, self.upper):
            if side is not None:
                m, unit = side.sample.m, side.sample.unit
                found |= (m + new_weights * unit) * side.level > m + ROUNDING
        return found

    def typical(self) -> list[float]:
        """Radii for a new row that counts as one."""
        sample = (self.lower or self.upper).sample  # type: ignore[union-attr]
        return [float(radius[0]) for radius in self.radii(np.array([1.0 / sample.unit]))]

    def ends(self, centres: Array, scales: Array | None) -> tuple[Array, Array]:
        """Lower and upper end of intervals among the models of all folds."""
        infinite = np.full(centres.shape[1], np.inf)
        lower = -infinite if self.lower is None else -self.lower.end(-centres, scales)
        upper = infinite if self.upper is None else self.upper.end(centres, scales)
        crossed = lower > upper  # possible below 50 %
        middle = np.where(crossed, 0.5 * lower + 0.5 * upper, 0.0) if crossed.any() else 0.0
        return np.where(crossed, middle, lower), np.where(crossed, middle, upper)


class Category(NamedTuple):
    """One line of the table of categories."""

    category: Any
    rows: int
    level: float  # coverage that is promised to its rows
    source: str  # "own" neuron, or the one "shared" by all small categories and those never seen


@dataclass(frozen=True)
class Neurons:
    """All neurons at one level: one row per category with its own, one more that the other categories share."""

    table: list[list[Neuron]]  # (neurons, outputs)
    typical: Array  # (neurons, outputs, 2) radii down and up for new rows of weight 1
    level: float
    tails: Tails
    folds: Folds | None = None
    row_of: dict[Any, int] | None = None  # from category to its row of the table
    shared: int = 0  # row of the table for categories never seen
    counts: dict[Any, int] | None = None  # rows of each category

    @classmethod
    def of(cls, rows: Rows, tails: Tails, p: float, guarantee: Guarantee, min_rows: int | None) -> Neurons:
        """Learn from calibration rows: which categories have enough, and what they and all others promise."""

        def neurons(members: Any) -> list[Neuron]:
            return [Neuron.of(rows.sample(j, members), tails, p, guarantee) for j in range(rows.errors.shape[1])]

        if rows.labels is None:
            one = [neurons(slice(None))]
            return cls(one, _typical(one), p, tails, rows.folds)
        categories, codes = coded(rows.labels)
        counts = np.bincount(codes, minlength=len(categories))
        members = np.split(np.argsort(codes, kind="stable"), np.cumsum(counts)[:-1])
        table: list[list[Neuron]] = []
        row_of, small = {}, []
        for category, own in zip(categories, members, strict=True):
            found = neurons(own)
            enough = all(one.weakest.is_kept for one in found) if min_rows is None else len(own) >= min_rows
            if enough:
                row_of[category] = len(table)
                table.append(found)
            else:
                small.append((category, own))
        row_of |= {category: len(table) for category, _ in small}
        if small:
            table.append(neurons(np.concatenate([own for _, own in small])))
            shared = len(table) - 1
        else:
            shared = len(table)
            # Nothing is known of categories never seen: as far as any error, and no promise.
            nothing = promise(0, p, guarantee=guarantee, n_cuts=tails.n_cuts)
            table.append([_unknown(neuron, nothing) for neuron in neurons(slice(None))])
        rows_of = dict(zip(categories, counts.tolist(), strict=True))
        return cls(table, _typical(table), p, tails, rows.folds, row_of, shared, rows_of)

    def codes(self, labels: NDArray[Any] | None) -> NDArray[np.intp] | None:
        """Row of the table for each new row; warns of categories that nothing is known of."""
        if labels is None or self.row_of is None:
            return None
        categories, codes = coded(labels)
        unseen = [category for category in categories if category not in self.row_of]
        if unseen and self.table[self.shared][0].weakest.m == 0:
            names = ", ".join(map(repr, unseen[:3])) + (", ..." if len(unseen) > 3 else "")
            msg = (
                f"by holds {len(unseen)} categories never seen in calibration ({names}), and no small ones to learn "
                "from: their intervals reach as far as the largest error, and nothing is promised."
            )
            warnings.warn(msg, CoverageWarning, stacklevel=4)
        return np.array([self.row_of.get(category, self.shared) for category in categories], np.intp)[codes]

    @property
    def categories(self) -> list[Category]:
        """Rows, promised level and source of each category."""
        if self.row_of is None or self.counts is None:
            return []
        own = [row for row in range(len(self.table)) if row != self.shared]
        return [
            Category(c, n, self.promised(self.row_of[c]), "own" if self.row_of[c] in own else "shared")
            for c, n in self.counts.items()
        ]

    def promised(self, row: int) -> float:
        """Coverage that is promised to each output of a category."""
        return float(np.min([neuron.level for neuron in self.table[row]]))

    def per_category(self, values: Sequence[Any]) -> Array:
        """Values of the neurons, one for each category; the only one where there are no categories."""
        if self.row_of is None or self.counts is None:
            return np.asarray(values[0])
        return np.array([values[self.row_of[category]] for category in self.counts])

    def warn(self) -> None:
        """Say where errors are too few for the level."""
        used = range(len(self.table)) if self.row_of is None else sorted(set(self.row_of.values()))
        for row in used:
            weakest = min((neuron.weakest for neuron in self.table[row]), key=lambda promise: promise.m)
            if not weakest.is_kept:
                of = (
                    ""
                    if self.row_of is None
                    else " of the smaller categories"
                    if row == self.shared
                    else " of a category"
                )
                of += " on one side of the prediction" if self.tails.is_parted else ""
                warnings.warn(f"{shortage(weakest, self.level, of)}.", CoverageWarning, stacklevel=6)

    def intervals(
        self, prediction: Array, scale: Array | None, codes: NDArray[np.intp] | None, weights: Array | None, out: Array
    ) -> None:
        """Ends of intervals around predictions (n, k), into `out` (n, k, 2)."""
        for j in range(prediction.shape[1]):
            if weights is not None:
                lower, upper = self._weighted(j, np.zeros(len(weights), int) if codes is None else codes, weights)
            else:
                lower, upper = self.typical[0 if codes is None else codes, j].T
            if scale is not None:
                lower, upper = lower * scale[:, j], upper * scale[:, j]
            np.subtract(prediction[:, j], lower, out=out[:, j, 0])
            np.add(prediction[:, j], upper, out=out[:, j, 1])

    def _weighted(self, output: int, codes: NDArray[np.intp], weights: Array) -> Array:
        """Radii down and up for new rows of their own weights, (2, n)."""
        radii = np.empty((2, len(codes)))
        n_heavy = 0
        for row in np.unique(codes):
            rows, neuron = codes == row, self.table[row][output]
            radii[:, rows] = neuron.radii(weights[rows])
            n_heavy += int(np.count_nonzero(neuron.is_too_heavy(weights[rows])))
        if n_heavy:
            msg = (
                f"sample_weight of {n_heavy} of {len(codes)} new rows is so large that the calibration rows cannot "
                f"promise {100.0 * self.level:.6g} % for them; their intervals reach as far as the largest error."
            )
            warnings.warn(msg, CoverageWarning, stacklevel=5)
        return radii

    def fold_intervals(
        self, predictions: Array, scales: Array | None, codes: NDArray[np.intp] | None, out: Array
    ) -> None:
        """Ends of intervals among the predictions (models, n, k) of all folds, into `out` (n, k, 2)."""
        assert self.folds is not None
        for j in range(predictions.shape[2]):
            centres = self.folds.centres(predictions[:, :, j])
            spread = None if scales is None else self.folds.centres(scales[:, :, j])
            for row in [0] if codes is None else np.unique(codes):
                rows = slice(None) if codes is None else np.flatnonzero(codes == row)
                own = None if spread is None else spread[:, rows]
                out[rows, j, 0], out[rows, j, 1] = self.table[row][j].ends(centres[:, rows], own)


def _typical(table: list[list[Neuron]]) -> Array:
    """Radii of all neurons for a new row that counts as one."""
    return np.array([[neuron.typical() for neuron in row] for row in table])


def coded(labels: NDArray[Any]) -> tuple[list[Any], NDArray[np.intp]]:
    """Distinct labels and the number of each row's one among them; a missing label is None."""
    if labels.dtype.kind == "O":
        seen: dict[Any, int] = {}
        codes = [seen.setdefault(_known(label), len(seen)) for label in labels.tolist()]
        return list(seen), np.array(codes, np.intp)
    distinct, codes_ = np.unique(labels, return_inverse=True)
    return [_known(label) for label in distinct.tolist()], codes_.reshape(-1)


def _known(label: Any) -> Any:
    """The label, or None for NaN."""
    return None if isinstance(label, float) and math.isnan(label) else label


def _unknown(neuron: Neuron, nothing: Promise) -> Neuron:
    """The same errors, of which nothing is promised and the largest counts."""
    lower, upper = (None if side is None else side._replace(promise=nothing) for side in (neuron.lower, neuron.upper))
    return Neuron(lower, upper, math.nan, (math.nan, math.nan))
