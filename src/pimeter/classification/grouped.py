"""Intervals of a classifier's metrics where rows belong together: groups take the place of rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pimeter.classification.confusion import NO_CLASS, PSEUDO_COUNT, Cells, binomial, including, number
from pimeter.classification.estimates import Estimate
from pimeter.classification.proportions import Proportion, normal_quantile, proportion
from pimeter.classification.rates import FN, FP, PROPORTIONS, TN, TP, Metric, Rates, builtin, metric_range
from pimeter.classification.resampling import bca, refuse_few_resamples
from pimeter.clusters import MIN_EXPECTED_MISSES
from pimeter.coverage import ROUNDING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pimeter.classification.confusion import Sampling
    from pimeter.clusters import Units
    from pimeter.protocols import Array

EMPTY = "an outcome never occurred: half a group was added to each"
RARE = "fewer than 2 groups are expected to have the rarer answer: each counts as one row"
SIDES = {  # of the confusion matrix, by their names
    "negatives": (TN, FP),
    "positives": (TP, FN),
    "predicted negatives": (TN, FN),
    "predicted positives": (TP, FP),
}


class GroupedCells(NamedTuple):
    """Cells TN, TP, FN, FP of all rows, and of each group of them."""

    cells: Cells
    table: Array  # (groups, 4) sums of weights
    units: Units

    @classmethod
    def counted(cls, codes: NDArray[np.integer], weights: Array | None, units: Units) -> GroupedCells:
        """Groups of rows, by the cell of each and its weight."""
        table = units.sums(np.where(codes == np.arange(4)[:, None], 1.0 if weights is None else weights, 0.0)).T
        return cls(Cells.counted(codes, 4, weights), table, units)

    def proportion(self, counted: tuple[int, ...], among: tuple[int, ...], confidence_level: float) -> Proportion:
        """A proportion, and the independent rows that vary as much; where all have one answer, each group is one.

        Each group departs from the proportion of all others (the jackknife), as a large one draws that of all to
        itself. Fewer rows where few groups, or few of equal size, hold those that are counted. Where fewer than two
        groups are expected to have the rarer answer, each counts as one row.
        """
        own = proportion(counted, among, self.cells.squares, self.cells.sums)
        if not own.n:
            return own
        inside, every = self.table[:, counted].sum(axis=1), self.table[:, among].sum(axis=1)
        total, n = float(every.sum()), int(np.count_nonzero(every))
        n_equal = total**2 / float(np.square(every).sum())
        wider = max(self.units.factor(confidence_level), replace(self.units, n_equal=n_equal).factor(confidence_level))
        if own.value in {0.0, 1.0} or n < 2:
            return Proportion(own.value, n_equal / wider**2)
        apart = (inside - own.value * every) / (1.0 - every / total)
        variance = (n - 1) / n * float(np.square(apart).sum()) / total**2
        wider = max(wider, float(self.units.stretch(apart, confidence_level)))
        most = own.value * (1.0 - own.value) / variance if variance > 0.0 else n_equal
        if self.is_rare(counted, among):
            most = min(most, self._n_equal(every))  # how rows go together is not known, whatever they seem to say
        return Proportion(own.value, min(most, own.n) / wider**2)

    def is_rare(self, counted: tuple[int, ...], among: tuple[int, ...]) -> bool:
        """Whether an answer occurs, but fewer than two groups of equal size are expected to have it."""
        inside, every = self.table[:, counted].sum(axis=1), self.table[:, among].sum(axis=1)
        value = float(inside.sum() / every.sum()) if every.any() else 0.0
        return 0.0 < self._n_equal(every) * min(value, 1.0 - value) < MIN_EXPECTED_MISSES * (1.0 - ROUNDING)

    def _n_equal(self, rows: Array) -> float:
        """Number of groups of equal size that vary as much as those with so many rows, of more than 1,000, too."""
        n_equal = float(rows.sum() ** 2 / np.square(rows).sum()) if rows.any() else 0.0
        return n_equal * max(self.units.n_equal / self.units.n, 1.0)

    @property
    def refusal(self) -> str:
        """Why metrics that are resampled have no interval: hardly a group tells of a class; empty if enough do."""
        for name, cells in SIDES.items():
            n_equal = self._n_equal(self.table[:, cells].sum(axis=1))
            if n_equal < MIN_EXPECTED_MISSES * (1.0 - ROUNDING):
                n = math.floor(10.0 * n_equal) / 10.0
                return (
                    f"{name} are in groups that say as little as {n:g} of equal size, at least "
                    f"{MIN_EXPECTED_MISSES:g} are needed: add rows of other groups"
                )
        return ""


def by_groups(
    groups: GroupedCells, metrics: Mapping[str, Metric], method: str, confidence_level: float, sampling: Sampling
) -> dict[str, Estimate]:
    """Estimates of metrics of two classes where rows of a group belong together.

    Proportions have the interval of as many independent rows as vary as much; all else that of resampled groups, or
    with ``method="normal"`` of the jackknife over groups. All are wider by the factor of Student's t for so many.
    """
    values = {name: number(name, metric(Rates.of(groups.cells.sums))) for name, metric in metrics.items()}
    if groups.units.refusal:
        return {name: _refused(value, method, groups.units.refusal) for name, value in values.items()}
    found, rest = dict[str, Estimate](), dict[str, Metric]()
    for name, metric in metrics.items():
        at_once = _at_once(groups, values[name], metric, method, confidence_level)
        if at_once is not None:
            found[name] = at_once
        elif groups.refusal:
            found[name] = _refused(values[name], method, groups.refusal)
        else:
            rest[name] = metric
    if rest:
        found |= _resampled(groups, values, rest, method, confidence_level, sampling)
    return {name: found[name] for name in metrics}


def _refused(value: float, method: str, why: str) -> Estimate:
    """A value without an interval."""
    return Estimate(value, np.nan, np.nan, method, f"no interval: {why}")


def _at_once(
    groups: GroupedCells, value: float, metric: Metric, method: str, confidence_level: float
) -> Estimate | None:
    """An estimate by a binomial interval, or one without a class; None for what is to be resampled."""
    kind = builtin(metric)
    if kind in PROPORTIONS:
        own = groups.proportion(*PROPORTIONS[kind], confidence_level)
        is_rare = groups.is_rare(*PROPORTIONS[kind])
        if method != "bootstrap" or not own.n or own.value in {0.0, 1.0} or is_rare:
            found = binomial(own, value, method, confidence_level)
            return replace(found, note=RARE) if is_rare else found
    if kind and np.isnan(value):
        return Estimate(np.nan, *metric_range(metric), method, NO_CLASS)
    return None


def _resampled(
    groups: GroupedCells,
    values: Mapping[str, float],
    metrics: Mapping[str, Metric],
    method: str,
    confidence_level: float,
    sampling: Sampling,
) -> dict[str, Estimate]:
    """Estimates from resampled groups (BCa) or the jackknife; half a group of each outcome more if one is missing."""
    table, n, total = groups.table, len(groups.table), groups.cells.sums
    extra = 0.0 if total.all() else PSEUDO_COUNT * float(total.sum()) / groups.units.n_equal

    def evaluated(cells: Array) -> dict[str, Array]:
        rates = Rates.of((cells + extra).T)
        return {name: np.broadcast_to(np.asarray(m(rates), np.float64), len(cells)) for name, m in metrics.items()}

    centre, left_out = evaluated(total[None]), evaluated(total - table)
    drawn: dict[str, Array] = {}
    if method != "normal":
        refuse_few_resamples(sampling.n_resamples, confidence_level)
        drawn = evaluated(sampling.rng.multinomial(n, np.full(n, 1.0 / n), sampling.n_resamples) @ table)
    found = {}
    for name, metric in metrics.items():
        middle, apart = float(centre[name][0]), left_out[name] - np.mean(left_out[name])
        wider = float(groups.units.stretch(np.nan_to_num(apart), confidence_level))
        deviation = float(np.sqrt((n - 1) * apart.var()))  # of the jackknife
        if method == "normal":
            half_width = normal_quantile(confidence_level) * deviation
            bounds = middle - half_width, middle + half_width
        else:
            bounds = bca(drawn[name], middle, left_out[name], np.ones(n), confidence_level)
            wider *= max(deviation / float(np.nanstd(drawn[name]) or math.inf), 1.0)
        lower, upper = (middle + wider * (bound - middle) for bound in bounds)
        least, most = metric_range(metric)
        used = "jackknife" if method == "normal" else "bootstrap"
        found[name] = including(values[name], max(lower, least), min(upper, most), used, EMPTY if extra else "")
    return found
