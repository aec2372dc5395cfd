"""Errors of calibration rows, and the neurons that turn them into intervals at any level."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pimeter.promise import CoverageWarning, Guarantee, Promise, promise, rescaled_weights, shortage
from pimeter.regression.sides import Neuron, Sample, Tails

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pimeter.regression.folds import Folds

    Array = NDArray[np.float64]


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
