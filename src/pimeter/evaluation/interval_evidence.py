"""Targets, and the intervals and distributions that were given for them: what checks and pages look at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from pimeter.arrays import some_rows
from pimeter.evaluation.diagnosis.columns import Column, categories, quintiles
from pimeter.evaluation.diagnosis.evidence import MAX_ROWS, Subgroup, simultaneous_bounds
from pimeter.evaluation.diagnosis.subgroup_search import found_subgroup
from pimeter.interval_arrays import interval_scores

if TYPE_CHECKING:
    from pimeter.clusters import Units
    from pimeter.evaluation.diagnosis.columns import Given, Subgroups
    from pimeter.evaluation.diagnosis.subgroup_search import WorstSubgroup
    from pimeter.predictive import Predictive
    from pimeter.protocols import Array, Flags, Index

N_CELLS = 10  # of equal probability, in which targets of whole distributions are counted
MAX_TIED = 0.01  # fraction of targets on bounds or quantiles
N_BLOCKS = 20  # of rows in the order of time, at most
MIN_BLOCK = 20  # rows of one


@dataclass(frozen=True)
class Division:
    """A way to divide rows into subgroups."""

    of: str
    subgroups: Subgroups
    rows: Index  # that were looked at


@dataclass(frozen=True)
class Cell:
    """Rows whose targets lie between two neighbouring quantiles of their distributions, and the probability of that."""

    rows: int
    probability: float


@dataclass(frozen=True)
class IntervalEvidence:
    """Targets, intervals and distributions that were given for them, and what is known of the rows."""

    target: Array
    predictions: Predictive
    bounds: Array  # (rows, 2) at the level judged
    level: float
    divisions: tuple[Division, ...]
    known: Given
    order: Index | None  # of time
    effect: float  # rows of groups or in time say as much as so many times fewer independent ones
    units: Units

    def at(self, level: float) -> IntervalEvidence:
        """Evidence on the intervals of another level, of these rows and subgroups."""
        return self if level == self.level else replace(self, level=level, bounds=self.predictions.bounds(level))

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.target)

    @property
    def has_groups(self) -> bool:
        """Whether it is given which rows belong together."""
        return self.units.kind == "groups"

    @cached_property
    def is_below(self) -> Flags:
        """Targets below their interval."""
        return np.asarray(self.target < self.bounds[:, 0])

    @cached_property
    def is_above(self) -> Flags:
        """Targets above their interval."""
        return np.asarray(self.target > self.bounds[:, 1])

    @cached_property
    def is_inside(self) -> Flags:
        """Targets inside their interval."""
        return ~(self.is_below | self.is_above)

    @cached_property
    def is_tied(self) -> bool:
        """Whether targets lie on bounds or quantiles: what is discrete need not be spread as these say."""
        values = self.bounds if len(self.edges) < 3 else self.predictions.values
        return bool((self.target[:, None] == values).any(axis=1).mean() > MAX_TIED)

    @cached_property
    def is_covering_by_ties(self) -> bool:
        """Whether more targets than the level are inside, but not without those on a bound: no bounds may do better."""
        strictly = (self.bounds[:, 0] < self.target) & (self.target < self.bounds[:, 1])
        return bool(self.is_tied and strictly.mean() <= self.level < self.is_inside.mean())

    @cached_property
    def edges(self) -> Array:
        """Probabilities at which the distributions are cut into cells."""
        if self.predictions.kind == "normal" or (
            self.predictions.kind == "samples" and len(self.predictions.levels) >= N_CELLS - 1
        ):
            return np.arange(1, N_CELLS) / N_CELLS
        return self.predictions.levels

    @cached_property
    def cell(self) -> Index:
        """The cell of its distribution that each target is in, on a border by chance that on one side."""
        first, last = np.zeros((2, self.n), np.intp)
        for edge in self.edges:
            value = self.predictions.at(float(edge))
            first += self.target > value
            last += self.target >= value
        chance = np.random.default_rng(0).random(self.n)
        return np.asarray(first + np.floor(chance * (last - first + 1)).astype(np.intp))

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Targets in each cell of the distributions; none of two cuts."""
        if len(self.edges) < 3:
            return ()
        counts = np.bincount(self.cell, minlength=len(self.edges) + 1).tolist()
        probabilities = np.diff(np.concatenate([[0.0], self.edges, [1.0]])).tolist()
        return tuple(map(Cell, counts, probabilities))

    @cached_property
    def effect_of_cells(self) -> float:
        """By how much more counts of cells vary than those of independent rows, on average (Rao and Scott's test)."""
        if self.units.kind == "rows" or self.units.refusal:
            return self.effect
        counted = ((self.cell == cell).astype(np.float64) for cell in range(len(self.edges) + 1))
        return max(self.effect, float(np.mean([self.units.widened_effect(one) for one in counted])))

    @cached_property
    def worst_subgroup(self) -> WorstSubgroup | None:
        """The subgroup covered least, of those that one or two conditions describe; None without features."""
        if not self.known.columns:
            return None
        some = some_rows(self.n, MAX_ROWS)
        own = [Column("prediction", None, self.predictions.centre[some], True)]
        width = (self.bounds[:, 1] - self.bounds[:, 0])[some]
        if np.isfinite(width).all() and np.ptp(width) > 1e-9 * width.max():
            own.append(Column("interval width", None, width, True))
        return found_subgroup([*self.known.columns, *own], self.is_inside[some], self.effect)

    @cached_property
    def subgroups(self) -> tuple[Subgroup, ...]:
        """Coverage in each of them, with ranges for all together."""
        counted = []
        for one in self.divisions:
            codes, labels = one.subgroups.codes, one.subgroups.labels
            n_rows = np.bincount(codes, minlength=len(labels)).tolist()
            n_inside = np.bincount(codes[self.is_inside[one.rows]], minlength=len(labels)).tolist()
            of_each = zip([one.of] * len(labels), labels, n_rows, n_inside, strict=True)
            counted += [row for row in of_each if row[2]]
        rows, within = (np.array([one[i] for one in counted]) for i in (2, 3))
        lower, upper = simultaneous_bounds(within / self.effect, rows / self.effect, len(counted))
        return tuple(
            Subgroup(of, label, n, k / n, float(low), float(high))
            for (of, label, n, k), low, high in zip(counted, lower, upper, strict=True)
        )

    @property
    def mean_width(self) -> float:
        """Mean distance between the bounds."""
        return float((self.bounds[:, 1] - self.bounds[:, 0]).mean())

    @property
    def mean_interval_score(self) -> float:
        """Mean width, and what misses add to it."""
        return float(interval_scores(self.target, self.bounds[:, 0], self.bounds[:, 1], self.level).mean())

    @property
    def over_time(self) -> tuple[float, ...]:
        """Coverage in blocks of rows, the oldest first; none without a time, or for few rows."""
        if self.order is None or self.n < 2 * MIN_BLOCK:
            return ()
        blocks = np.array_split(self.is_inside[self.order], min(N_BLOCKS, self.n // MIN_BLOCK))
        return tuple(float(block.mean()) for block in blocks)


def divisions(predictions: Predictive, bounds: Array, known: Given) -> tuple[Division, ...]:
    """Quintiles of the centre, of the width at one level and of features, and categories."""
    every, some = np.arange(len(bounds)), some_rows(len(bounds), MAX_ROWS)
    found = [Division("prediction", quintiles(predictions.centre), every)]
    width = bounds[:, 1] - bounds[:, 0]
    if predictions.kind != "samples" and np.isfinite(width).all() and np.ptp(width) > 1e-9 * width.max():
        found.append(Division("interval width", quintiles(width), every))
    if known.labels is not None:
        found.append(Division("by", categories(known.labels), every))
    return (*found, *(Division(column.name, column.subgroups, some) for column in known.columns))
