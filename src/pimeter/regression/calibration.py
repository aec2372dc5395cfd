"""Errors of calibration rows, and the neurons that turn them into intervals at any level."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pimeter.arrays import coded, label_list
from pimeter.conformal.guarantee import Guarantee, GuaranteeKind, effective_counts, rank_guarantee, too_few
from pimeter.coverage import CoverageWarning, percent
from pimeter.duplicates import tells_copies
from pimeter.regression.sides import Neuron, Sample, uncrossed
from pimeter.regression.width import Shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pimeter.conformal.tails import Tails
    from pimeter.regression.folds import Folds

    Array = NDArray[np.float64]


ROUNDINGS = 6.0  # units in the last place that difference, quotient, product and sum may take from an end


@dataclass(frozen=True)
class Rows:
    """Calibration rows: their errors in units of their scale, and what else is known of them."""

    above: Array  # (m, k) how far targets lie beyond the upper end of a band, which may be the prediction itself
    below: Array | None = None  # (m, k) the same beyond the lower end; None: as far, with the other sign
    labels: NDArray[Any] | None = None  # (m,) categories
    weights: Array | None = None  # (m,) importance
    folds: Folds | None = None  # who left them out
    n_groups: int | None = None  # groups of rows that are alike, so that rows are not exchangeable one by one
    effective_size: float | None = None  # of estimated weights; None: weights, if any, are a known ratio
    keys: NDArray[np.uint64] | None = None  # (m,) equal for equal rows
    has_copies: bool = False  # whether rows are copies of others that calibrate or train
    is_ordered: bool = False  # whether time decides which rows calibrate: nothing is proven of those to come

    def joined(self, other: Rows) -> Rows:
        """These rows and others; rows without a weight weigh 1."""
        below = weights = labels = keys = None
        if self.weights is not None or other.weights is not None:
            parts = [np.ones(len(rows.above)) if rows.weights is None else rows.weights for rows in (self, other)]
            weights = np.concatenate(parts)
        if self.labels is not None and other.labels is not None:
            labels = np.concatenate([self.labels, other.labels])
            if self.labels.dtype.kind != other.labels.dtype.kind:  # numbers would become words, and dates numbers
                labels = np.empty(len(labels), object)
                labels[:] = [*label_list(self.labels), *label_list(other.labels)]
        if self.below is not None and other.below is not None:
            below = np.concatenate([self.below, other.below])
        above, size = np.concatenate([self.above, other.above]), None
        if self.effective_size is not None or other.effective_size is not None:
            size = self.worth() + other.worth()
        if self.keys is not None and other.keys is not None:
            keys = np.concatenate([self.keys, other.keys])
        return Rows(
            above,
            below,
            labels,
            weights,
            n_groups=self.n_groups,
            effective_size=size,
            keys=keys,
            has_copies=self.has_copies or other.has_copies,
            is_ordered=self.is_ordered,
        )

    def worth(self) -> float:
        """How many rows drawn where the new ones come from these are worth."""
        if self.effective_size is not None:
            return self.effective_size
        return float(len(self.above) if self.weights is None else effective_counts(self.weights).sum())

    def of(self, kept: NDArray[Any]) -> Rows:
        """Some of the rows."""
        below, labels, weights, keys = (
            None if a is None else a[kept] for a in (self.below, self.labels, self.weights, self.keys)
        )
        folds = None if self.folds is None else self.folds._replace(of_row=self.folds.of_row[kept])
        return replace(
            self, above=self.above[kept], below=below, labels=labels, weights=weights, folds=folds, keys=keys
        )

    def n_copies(self, n_new: int) -> int:
        """How many rows are copies of others, if new ones at the end are and chance does not explain it.

        Of earlier rows only scores are kept: they tell copies where the target or the prediction is continuous.
        """
        if self.keys is None:
            return 0
        old, new = np.split(self.keys, [len(self.keys) - n_new])
        if not np.isin(old, new).any() and len(np.unique(new)) == n_new:
            return 0
        return len(self.keys) - len(np.unique(self.keys)) if tells_copies(self.above[:, 0], self.keys) else 0

    def jointly(self) -> Rows:
        """One error for all outputs: the one that reaches farthest."""
        below = -self.above if self.below is None else self.below
        return replace(self, above=self.above.max(axis=1, keepdims=True), below=below.max(axis=1, keepdims=True))

    def signed(self) -> Rows:
        """Signed errors around the middle of the band, in units of half its width."""
        if self.below is None:
            return self
        middle, half = (self.above - self.below) / 2.0, -(self.above + self.below) / 2.0
        return replace(self, above=middle / np.where(half > 0.0, half, 1.0), below=None)

    def neuron(self, output: int, members: Any, tails: Tails, p: float, guarantee: GuaranteeKind) -> Neuron:
        """Learn from one output of some of the rows, and promise what is proven of rows like these."""
        found = Neuron.of(self.sample(output, members), tails, p, guarantee)
        is_fair = self.folds is None or self.folds.are_fair(members)
        is_known = self.effective_size is None and self.n_groups is None
        if self.has_copies or self.is_ordered or not (is_fair and is_known):
            return found._replace(level=math.nan, coverage_range=(math.nan, math.nan))
        if self.weights is not None and np.ptp(self.weights[members]) > 0.0:
            return found._replace(coverage_range=(math.nan, math.nan))
        return found

    def sample(self, output: int, members: Any) -> Sample:
        """Errors of one output, of some of the rows."""
        weights = None if self.weights is None else effective_counts(self.weights[members])
        unit = 1.0 if weights is None or self.weights is None else float(weights.sum() / self.weights[members].sum())
        lists = None if self.folds is None else self.folds.of_row[members]
        below = None if self.below is None else self.below[members, output]
        return Sample(self.above[members, output], below, weights, unit, lists)


class Shaped(NamedTuple):
    """Predictions for new rows, and the shapes of intervals around them."""

    prediction: Array  # (models, n, k)
    shapes: Shape  # parts of the same shape

    def around_the_middle(self) -> Shaped:
        """With the middle of the band as the prediction, and half its width as the scale."""
        centre, spread = self.shapes.spread(self.prediction)
        return Shaped(centre, Shape(spread))


class Category(NamedTuple):
    """One line of the table of categories."""

    category: Any  # in the last line `NEVER_SEEN`
    rows: int
    level: float  # coverage that is guaranteed, to whom the note says; NaN where nothing is
    source: str  # "own" neuron, the one "shared" by all small categories and those never seen, or "none"
    note: str = ""


NEVER_SEEN = "(never seen)"
TOGETHER = "guaranteed to all categories that share and those never seen together, to none of them by itself"
NOTHING = "nothing is guaranteed to categories never seen, taken by themselves"


@dataclass(frozen=True)
class Neurons:
    """All neurons at one level: one row per category with its own, one more that the other categories share."""

    table: list[list[Neuron]]  # (neurons, outputs)
    typical: Array  # (neurons, outputs, 2) radii down and up for new rows of weight 1
    level: float
    tails: Tails
    guarantee: GuaranteeKind
    folds: Folds | None = None
    row_of: dict[Any, int] | None = None  # from category to its row of the table
    shared: int = 0  # row of the table for small categories
    unseen: int = 0  # and for those never seen, of the same reach
    counts: dict[Any, int] | None = None  # rows of each category
    pooled: frozenset[Any] = frozenset()  # categories whose rows the shared neuron learns from

    @classmethod
    def of(
        cls,
        rows: Rows,
        tails: Tails,
        p: float,
        guarantee: GuaranteeKind,
        *,
        min_rows: int | None = None,
        like: Neurons | None = None,
    ) -> Neurons:
        """Learn from calibration rows: which categories have enough, and what they and all others promise.

        The shared neuron learns from the small categories *and* from those that would be small with a row less: to a
        new row of a small category the two look alike once it counts itself, and without the latter, hard categories
        that are short of rows by chance would be fewer in the pool than among the new rows that it answers for.
        With `like` the same categories have a neuron of their own as there, whatever the level.
        """

        def neurons(members: Any) -> list[Neuron]:
            return [rows.neuron(j, members, tails, p, guarantee) for j in range(rows.above.shape[1])]

        if rows.labels is None:
            one = [neurons(slice(None))]
            return cls(one, _typical(one), p, tails, guarantee, rows.folds)
        categories, codes = coded(rows.labels)
        counts = np.bincount(codes, minlength=len(categories))
        members = np.split(np.argsort(codes, kind="stable"), np.cumsum(counts)[:-1])
        table: list[list[Neuron]] = []
        row_of, pooled = {}, []
        for category, own in zip(categories, members, strict=True):
            found = neurons(own)
            if like is not None and like.row_of is not None:
                enough = like.row_of.get(category, like.shared) != like.shared
                spare = category not in like.pooled
            elif min_rows is None:
                weakest = [one.weakest for one in found]
                enough = all(one.is_enough for one in weakest)
                spare = all(one.m - 1.0 >= one.needed for one in weakest)
            else:
                enough, spare = len(own) >= min_rows, len(own) > min_rows
            if enough:
                row_of[category] = len(table)
                table.append(found)
            if not spare:
                pooled.append((category, own))
        shared = len(table)
        row_of |= {category: shared for category, _ in pooled if category not in row_of}
        if pooled:
            table.append(neurons(np.concatenate([own for _, own in pooled])))
            # New rows of small categories and of those never seen are covered together. The latter are the rarest, and
            # if these are the hardest, they are covered less.
            table.append([neuron._replace(level=math.nan) for neuron in table[shared]])
        else:
            # Nothing is known of categories never seen: as far as any error, and no promise.
            nothing = rank_guarantee(0, p, kind=guarantee, n_cuts=tails.n_cuts)
            table.append([_unknown(neuron, nothing) for neuron in neurons(slice(None))])
        rows_of = dict(zip(categories, counts.tolist(), strict=True))
        names = frozenset(category for category, _ in pooled)
        unseen = len(table) - 1
        return cls(table, _typical(table), p, tails, guarantee, rows.folds, row_of, shared, unseen, rows_of, names)

    def codes(self, labels: NDArray[Any] | None) -> NDArray[np.intp] | None:
        """Row of the table for each new row; warns of categories that nothing is known of."""
        if labels is None or self.row_of is None:
            return None
        categories, codes = coded(labels)
        unseen = [category for category in categories if category not in self.row_of]
        known = {str(category): category for category in self.row_of} if unseen else {}
        twins = [(category, known[str(category)]) for category in unseen if str(category) in known]
        others = [category for category in unseen if str(category) not in known]
        if twins:
            new, old = twins[0]
            msg = (
                f"by holds {new!r} ({type(new).__name__}), which calibration has not seen; it has seen {old!r} "
                f"({type(old).__name__}). These are two categories: if they are the same, give both in one type."
            )
            warnings.warn(msg, CoverageWarning, stacklevel=4)
        if others and not self.pooled:
            names = ", ".join(map(repr, others[:3])) + (", ..." if len(others) > 3 else "")
            msg = (
                f"by holds {len(others)} categories never seen in calibration ({names}), and no small ones to learn "
                "from: their intervals reach as far as the largest error, and nothing is promised."
            )
            warnings.warn(msg, CoverageWarning, stacklevel=4)
        return np.array([self.row_of.get(category, self.unseen) for category in categories], np.intp)[codes]

    @property
    def categories(self) -> list[Category]:
        """Rows, guaranteed level and source of each category, and of all those never seen in a last line."""
        if self.row_of is None or self.counts is None:
            return []
        lines = []
        for category, n in self.counts.items():
            row = self.row_of[category]
            source, note = ("shared", TOGETHER) if row == self.shared else ("own", "")
            lines.append(Category(category, n, self.promised(row), source, note))
        return [*lines, Category(NEVER_SEEN, 0, math.nan, "shared" if self.pooled else "none", NOTHING)]

    def promised(self, row: int) -> float:
        """Coverage that is promised to each output of a category."""
        return float(np.min([neuron.level for neuron in self.table[row]]))

    def per_category(self, values: Sequence[Any]) -> Array:
        """Values of the neurons, one for each line of `categories`; the only one where there are no categories."""
        if self.row_of is None or self.counts is None:
            return np.asarray(values[0])
        return np.array([values[row] for row in (*map(self.row_of.__getitem__, self.counts), self.unseen)])

    def warn(self) -> None:
        """Say where errors are too few for the level; once for all categories with a neuron of their own."""
        used = range(len(self.table)) if self.row_of is None else sorted(set(self.row_of.values()))
        short: dict[str, list[Guarantee]] = {}
        for row in used:
            weakest = min((neuron.weakest for neuron in self.table[row]), key=lambda promise: promise.m)
            if not weakest.is_enough:
                weakest = replace(weakest, level=self.promised(row))
                own = " of the smaller categories" if row == self.shared else " of a category"
                short.setdefault("" if self.row_of is None else own, []).append(weakest)
        for of, promises in short.items():
            least = min(promises, key=lambda promise: promise.m)
            several = f" (the smallest of {len(promises)} such)" if len(promises) > 1 else ""
            side = " on one side of the prediction" if self.tails.is_by_sign else ""
            most = "" if self.folds is None else " (with cv they guarantee 2 p - 1 at most)"
            msg = f"{too_few(least, self.level, of + several + side)}{most}."
            warnings.warn(msg, CoverageWarning, stacklevel=6)

    def neuron(self, row: int, output: int) -> Neuron:
        """The neuron of a category and an output; all outputs have the same if it is a joint one."""
        return self.table[row][output if len(self.table[row]) > 1 else 0]

    def intervals(self, found: Shaped, codes: NDArray[np.intp] | None, weights: Array | None, out: Array) -> None:
        """Ends of intervals, into `out` (n, k, 2)."""
        if self.folds is not None:
            self._fold_intervals(found, codes, out)
            return
        typical = np.broadcast_to(self.typical, (len(self.table), *out.shape[1:]))
        for j in range(out.shape[1]):
            if weights is not None:
                lower, upper = self._weighted(j, np.zeros(len(weights), int) if codes is None else codes, weights)
            else:
                lower, upper = typical[0 if codes is None else codes, j].T
            prediction = found.prediction[0, :, j]
            shape = Shape(*(None if part is None else part[0, :, j] for part in found.shapes))
            for side, (radius, band) in enumerate(((lower, shape.lower), (upper, shape.upper))):
                # If a difference, rounded, is at most r, then the difference is less than the next float above r, and
                # what is less than a number is at most that number rounded: so nothing is lost by going back.
                reach = np.nextafter(radius, np.inf)
                if shape.scale is not None:
                    reach = np.nextafter(reach * shape.scale, np.inf)
                if band is not None:
                    reach = np.nextafter(reach + band, np.inf)
                end = out[:, j, side]
                (np.add if side else np.subtract)(prediction, reach, out=end)
                if band is None:
                    # Coming back from the end, rounding may leave less than the radius, whose error the cdf would miss.
                    _go_on(end, _error_at(end, prediction, shape.scale, side) < radius, side)
            if shape.lower is not None or self.tails.n_cuts > 1:
                out[:, j, 0], out[:, j, 1] = uncrossed(out[:, j, 0], out[:, j, 1])

    def go_beyond(self, found: Shaped, codes: NDArray[np.intp] | None, ends: Array, side: int) -> None:
        """Move ends (n, k) to where the cdf counts all errors of the radius, ties among them, as passed.

        Where rounding leaves an end on the radius itself, or short of it, the next float is beyond. With folds ends
        have more slack than that already.
        """
        if self.folds is not None:
            return
        typical = np.broadcast_to(self.typical, (len(self.table), ends.shape[1], 2))
        for j in range(ends.shape[1]):
            scale = found.shapes.output(j).scale
            error = _error_at(ends[:, j], found.prediction[0, :, j], None if scale is None else scale[0], side)
            _go_on(ends[:, j], error <= typical[0 if codes is None else codes, j, side], side)

    def _weighted(self, output: int, codes: NDArray[np.intp], weights: Array) -> Array:
        """Radii down and up for new rows of their own weights, (2, n)."""
        radii = np.empty((2, len(codes)))
        for row in np.unique(codes):
            rows = codes == row
            radii[:, rows] = self.neuron(row, output).radii(weights[rows])
        return radii

    def promised_rows(self, codes: NDArray[np.intp] | None, weights: Array) -> Array:
        """Coverage that is promised to new rows of their own weights, the least over outputs; warns of heavy ones.

        A promise is an average over all rows, those among them that are too heavy counting as covered. Without these,
        a share h, ``(p - h) / (1 - h)`` is left to the others; on each side of the prediction h is not known.
        """
        codes = np.zeros(len(weights), np.intp) if codes is None else codes
        found, n_heavy = np.full(len(weights), np.nan), 0
        for row in np.unique(codes):
            rows = np.flatnonzero(codes == row)
            heavy = np.any([neuron.is_too_heavy(weights[rows]) for neuron in self.table[row]], axis=0)
            n_heavy += int(np.count_nonzero(heavy))
            if not heavy.any():
                found[rows] = self.promised(row)
            elif not heavy.all() and not self.tails.is_by_sign:
                share = float(heavy.mean())
                found[rows[~heavy]] = max(0.0, (self.promised(row) - share) / (1.0 - share))
        if n_heavy:
            msg = (
                f"sample_weight of {n_heavy} of {len(codes)} new rows is so large that the calibration rows cannot "
                f"promise {percent(self.level, 6)} for them; their intervals reach as far as the largest error."
            )
            warnings.warn(msg, CoverageWarning, stacklevel=4)
        return found

    def _fold_intervals(self, found: Shaped, codes: NDArray[np.intp] | None, out: Array) -> None:
        """The same among the predictions of all folds."""
        assert self.folds is not None
        for j in range(out.shape[1]):
            centres = self.folds.centres(found.prediction[:, :, j])
            shape = self.folds.shape(found.shapes.output(j))
            for row in [0] if codes is None else np.unique(codes):
                rows = slice(None) if codes is None else np.flatnonzero(codes == row)
                own = Shape(*(None if part is None else part[:, rows] for part in shape))
                ends = self.neuron(row, j).ends(centres[:, rows], own)
                for side, end in enumerate(ends):
                    size = np.maximum(np.abs(centres[:, rows]).max(axis=0), np.abs(end))
                    slack = np.spacing(size, where=np.isfinite(end), out=np.zeros_like(end))
                    out[rows, j, side] = end + (ROUNDINGS if side else -ROUNDINGS) * slack

    def shares(self, found: Shaped, codes: NDArray[np.intp] | None, y: Array) -> Array:
        """Share of signed errors below those that targets y (n, k, g) would have, the new row counting as half one."""
        shares = np.empty(y.shape)
        for j in range(y.shape[1]):
            scale = found.shapes.output(j).scale
            centres, spread = found.prediction[:, :, j], np.ones((1, 1)) if scale is None else scale
            if self.folds is not None:
                centres, spread = (
                    self.folds.centres(centres),
                    self.folds.centres(np.broadcast_to(spread, centres.shape)),
                )
            for row in [0] if codes is None else np.unique(codes):
                rows = slice(None) if codes is None else np.flatnonzero(codes == row)
                side = self.table[row][j].upper
                assert side is not None
                own = spread if spread.shape[1] == 1 else spread[:, rows]
                shares[rows, j] = side.sample.shares(y[rows, j], centres[:, rows, None], own[..., None])
        return shares


def _error_at(end: Array, prediction: Array, scale: Array | None, side: int) -> Array:
    """How far the cdf takes an end to be from the prediction, in units of the scale, towards its side."""
    with np.errstate(over="ignore"):
        error = end - prediction if side else prediction - end
        return error if scale is None else error / scale


def _go_on(ends: Array, where: NDArray[np.bool_], side: int) -> None:
    """Move some of the ends by one float away from the middle, in place."""
    ends[where] = np.nextafter(ends[where], np.inf if side else -np.inf)


def _typical(table: list[list[Neuron]]) -> Array:
    """Radii of all neurons for a new row that counts as one."""
    return np.array([[neuron.typical() for neuron in row] for row in table])


def _unknown(neuron: Neuron, nothing: Guarantee) -> Neuron:
    """The same errors, of which nothing is promised and the largest counts."""
    lower, upper = (None if side is None else side._replace(promise=nothing) for side in (neuron.lower, neuron.upper))
    return Neuron(lower, upper, math.nan, (math.nan, math.nan))
