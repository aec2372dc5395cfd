"""What checks may look at: rows, their residuals, cross-fitted coverage and subgroups, each computed once."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import ndtri, stdtrit

from pimeter.arrays import CONVERT, real_array, some_rows
from pimeter.clusters import Units
from pimeter.coverage import proportion_bounds, rounded
from pimeter.duplicates import Copies, copies
from pimeter.errors import signed_errors
from pimeter.evaluation.diagnosis.columns import categories, quintiles
from pimeter.evaluation.diagnosis.shifts import Criterion, Shift, local_shift
from pimeter.frames import refuse_other_order
from pimeter.row_hashes import row_keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from pimeter.evaluation.diagnosis.columns import Given, Subgroups
    from pimeter.evaluation.diagnosis.crossfit import Covered, CrossFit
    from pimeter.moments import Range
    from pimeter.protocols import Array, FeatureTable, Index

LARGEST_TO_ADD = 1e305  # target or prediction, of which some can be added up
NO_NUMBERS = f"{CONVERT} For classes use scorecard."
MAX_ROWS = 5_000  # of the checks that would take long on all
SIGNIFICANCE = 0.003  # how often chance may make any subgroup's coverage stand out, of all together


@dataclass(frozen=True)
class Subgroup:
    """Cross-fitted coverage in a subgroup of the rows, with an interval that holds for all subgroups together.

    Attributes
    ----------
    of : str
        What divides the rows: the prediction, the name of a feature, or "by".
    label : str
        Which of them these are.
    rows : int
        Their number.
    coverage, lower, upper : float
        The fraction of these rows within their interval, and bounds of a confidence interval for it.
    """

    of: str
    label: str
    rows: int
    coverage: float
    lower: float
    upper: float


class RowNames(NamedTuple):
    """What rows are called: by the labels of their index, or by their numbers, from 0."""

    labels: Sequence[Any] | NDArray[Any] | None = (
        None  # of each row; None if they are the numbers of rows in this order
    )
    is_index: bool = False
    is_known: bool = True  # which rows these are; not where they are a sample

    @classmethod
    def of(cls, y_true: object) -> RowNames:
        """Labels of the index of a Series, unless that only counts rows."""
        index: Any = getattr(y_true, "index", None)
        if not hasattr(index, "equals") or np.array_equal(np.asarray(index), np.arange(len(index))):
            return NUMBERED
        return cls(index, is_index=True)

    def take(self, order: Index) -> RowNames:
        """Names of these rows."""
        return self._replace(labels=order if self.labels is None else [self.labels[i] for i in order])

    def __call__(self, row: int, residual: float) -> str:
        """A row in words, and its residual."""
        if not self.is_known:
            return f"{rounded(residual, 3)}"
        label = row if self.labels is None else self.labels[row]
        return f"{'index' if self.is_index else 'row'} {label} ({rounded(residual, 3)})"

    @property
    def note(self) -> str:
        """How numbers of rows are counted."""
        return " (counted from 0)" if self.is_known and not self.is_index else ""


NUMBERED = RowNames()


class CoveredDivision(NamedTuple):
    """All rows divided by one criterion, and how each subgroup is covered at each level."""

    of: str
    subgroups: Subgroups
    covered: Covered

    @classmethod
    def of_subgroups(cls, of: str, subgroups: Subgroups, fit: CrossFit) -> CoveredDivision:
        """Coverage of the subgroups that a criterion of this name makes of the rows of a cross-fit."""
        return cls(of, subgroups, fit.subgroups(subgroups.codes, len(subgroups.labels)))


@dataclass(frozen=True)
class PredictionEvidence:
    """Rows that a model was not trained on, and what is known of them.

    Attributes
    ----------
    target, prediction : array of shape (m,)
        What happened, and what the model said.
    residuals, ordered : array of shape (m,)
        Target minus prediction, in the order of rows and in rising order.
    fit : CrossFit
        Margins at some levels, and which rows they cover that they have not seen.
    at : int
        Index of the level asked about among those of `fit`.
    given : Given
        Features of `some` rows, a category of each row, and what was left out.
    divisions : list of CoveredDivision
        Coverage across quintiles of the prediction and per category.
    copies : Copies
        Rows that equal others.
    units : Units, optional
        Groups of rows, stretches of time or rows with their copies that are independent of each other; None for
        independent rows.
    names : RowNames
        What rows are called.
    has_groups : bool
        Whether it was said which rows belong together.
    has_time : bool
        Whether it was said when each row was; rows are in this order then.
    mean_range : Range, optional
        The mean residual, with the range that its score has; NaN where there is none.
    """

    target: Array
    prediction: Array
    residuals: Array
    ordered: Array
    fit: CrossFit
    at: int
    given: Given
    divisions: list[CoveredDivision]
    copies: Copies
    names: RowNames = NUMBERED
    has_groups: bool = False
    units: Units | None = None
    has_time: bool = False
    mean_range: Range | None = None

    @property
    def m(self) -> int:
        """Number of rows."""
        return len(self.target)

    @property
    def level(self) -> float:
        """The confidence level asked about."""
        return float(self.fit.levels[self.at])

    @property
    def margin(self) -> float:
        """How far intervals of this level extend below and above the prediction."""
        return float(self.fit.margin[self.at])

    def in_stretches(self) -> PredictionEvidence:
        """Evidence in which stretches of time count as independent of each other, about, and not single rows."""
        return replace(self, units=Units.of_time(np.arange(self.m), self.residuals))

    @cached_property
    def some(self) -> Index:
        """Up to 5,000 rows, drawn at random and kept in their order."""
        return some_rows(self.m, MAX_ROWS)

    @cached_property
    def some_residuals(self) -> Array:
        """Residuals of `some` rows."""
        return self.residuals[self.some]

    @cached_property
    def rows_in_order(self) -> Index:
        """Rows whose order may say something: all, but of rows that are copies the first ones."""
        if self.copies.codes is None:
            return np.arange(self.m)
        return np.sort(np.unique(self.copies.codes, return_index=True)[1])

    @cached_property
    def is_sorted(self) -> bool:
        """Whether rows are sorted by their target and no time is given: their order is then that of a table."""
        steps = np.diff(self.target)
        return not self.has_time and bool(steps.any() and ((steps >= 0.0).all() or (steps <= 0.0).all()))

    @property
    def stretches(self) -> Index | None:
        """The stretch of time of each row; None if time is not given."""
        return None if self.units is None or self.units.kind != "time" else self.units.labels

    @cached_property
    def by_feature(self) -> list[Criterion]:
        """Features of `some` rows, divided into quintiles or categories."""
        columns = self.given.columns
        return [Criterion(one.name, one.subgroups, one.numbers if one.is_numeric else None) for one in columns]

    @cached_property
    def criteria(self) -> list[Criterion]:
        """What divides `some` rows into subgroups: the prediction, features, and categories."""
        prediction = self.prediction[self.some]
        criteria = [Criterion("prediction", quintiles(prediction), prediction), *self.by_feature]
        if self.given.labels is not None:
            criteria.append(Criterion("by", categories(self.given.labels[self.some]), None))
        return criteria

    @cached_property
    def local_shift(self) -> Shift | None:
        """The subgroup of `some` rows whose mean residual departs most from that of all."""
        return local_shift(self.some_residuals, self.criteria, self.some_units)

    @cached_property
    def some_units(self) -> Units | None:
        """Units of `some` rows."""
        return None if self.units is None else self.units.of_rows_at(self.some)

    @cached_property
    def effects(self) -> dict[tuple[str, int], float]:
        """By how much more the coverage of each subgroup, by its code, varies than of independent rows.

        Of the rows that are counted in it: all, or `some` for those of a feature. Empty for independent rows.
        """
        if self.units is None or self.units.labels is None:
            return {}
        divided = [(one.of, one.subgroups, np.arange(self.m)) for one in self.divisions]
        divided += [(one.of, one.subgroups, self.some) for one in self.by_feature]
        n_all = sum(len(subgroups.labels) for _, subgroups, _ in divided)
        found: dict[tuple[str, int], float] = {}
        for of, subgroups, rows in divided:
            units, is_covered = self.units.of_rows_at(rows), self.fit.covered(rows, self.at).astype(np.float64)
            effects = _design_effects(is_covered, subgroups, units, 1.0 - SIGNIFICANCE / 2.0 / n_all)
            found |= {(of, code): effect for code, effect in enumerate(effects)}
        return found

    @cached_property
    def subgroups(self) -> tuple[Subgroup, ...]:
        """Coverage across quintiles of the prediction and of each feature, and per category; none of a single row."""
        if self.m == 1:
            return ()
        counted = [
            (one.of, one.subgroups.labels, one.covered.rows, one.covered.inside[:, self.at]) for one in self.divisions
        ]
        is_covered = self.fit.covered(self.some, self.at)
        for criterion in self.by_feature:
            codes, labels = criterion.subgroups.codes, criterion.subgroups.labels
            n, inside = (np.bincount(held, minlength=len(labels)) for held in (codes, codes[is_covered]))
            counted.append((criterion.of, labels, n, inside))
        known = [
            (of, label, int(n), int(inside), self.effects[of, code] if self.effects else 1.0)
            for of, labels, rows, insides in counted
            for code, (label, n, inside) in enumerate(zip(labels, rows, insides, strict=True))
            if n
        ]
        rows, inside, effect = (np.array(column) for column in list(zip(*known, strict=True))[2:])
        lower, upper = simultaneous_bounds(inside / effect, rows / effect, len(known))
        return tuple(
            Subgroup(of, label, n, within / n, float(low), float(high))
            for (of, label, n, within, _), low, high in zip(known, lower, upper, strict=True)
        )

    @property
    def coverage(self) -> float:
        """Cross-fitted coverage of all rows, or the level where that is more: ties lift it above the level."""
        return max(self.level, float(self.divisions[0].covered.inside[:, self.at].sum()) / self.m)


def _design_effects(is_covered: Array, subgroups: Subgroups, units: Units, point: float) -> list[float]:
    """Of the coverage of each subgroup: that of all rows at least, as few misses may seem independent.

    Larger where a subgroup has rows of few units, by Student's quantile at this point; at most its number of rows.
    """
    least, labels = float(units.design_effect(is_covered)), np.asarray(units.labels)
    found = []
    for code in range(len(subgroups.labels)):
        own = subgroups.codes == code
        n, k = int(own.sum()), len(np.unique(labels[own]))
        covered = float(is_covered[own].mean()) if n else 0.0
        variance = float(units.variance(units.sums(np.where(own, is_covered - covered, 0.0))))
        independent = n * covered * (1.0 - covered)
        effect = max(variance / independent, least) if 0.0 < covered < 1.0 else least
        wider = float(stdtrit(k - 1, point) / ndtri(point)) ** 2 if k > 1 else math.inf
        found.append(min(effect * wider, max(float(n), 1.0)))
    return found


def simultaneous_bounds(inside: Index | Array, rows: Index | Array, n_subgroups: int) -> tuple[Array, Array]:
    """Clopper-Pearson bounds of proportions that hold for so many subgroups together; (0, 1) for one without rows."""
    return proportion_bounds(inside, rows, SIGNIFICANCE / 2 / n_subgroups)


def exact_range(n_inside: int, n: int, confidence: float, effect: float = 1.0) -> tuple[float, float]:
    """Clopper and Pearson's range of a proportion, of so many fewer rows as dependence leaves."""
    lower, upper = proportion_bounds(n_inside / effect, n / effect, (1.0 - confidence) / 2.0)
    return float(lower), float(upper)


@dataclass(frozen=True)
class CheckedRows:
    """Finite numbers, one of each kind per row."""

    target: Array
    prediction: Array
    residuals: Array  # target minus prediction


def checked_rows(y_true: ArrayLike, y_pred: ArrayLike) -> CheckedRows:
    """Targets, predictions and residuals as columns of finite numbers."""
    refuse_other_order("y_true", y_true, "y_pred", y_pred)
    target, prediction = (real_array(name, one, NO_NUMBERS) for name, one in (("y_true", y_true), ("y_pred", y_pred)))
    target, prediction = (a[:, 0] if a.ndim == 2 and a.shape[1] == 1 else a for a in (target, prediction))
    residuals = signed_errors(target, prediction)
    if target.ndim != 1:
        msg = f"y_true must have shape (m,); got {target.shape}. Measure each output by itself."
        raise ValueError(msg)
    largest = max(float(np.abs(values).max()) for values in (target, prediction))
    if largest > LARGEST_TO_ADD:
        msg = f"y_true and y_pred must not exceed {LARGEST_TO_ADD:g} in size; got {largest:g}. Use a larger unit."
        raise ValueError(msg)
    exact = {target.dtype, prediction.dtype} <= {np.dtype(np.float64)}
    target, prediction = (a.astype(np.float64, copy=False) for a in (target, prediction))
    return CheckedRows(target, prediction, residuals.astype(np.float64, copy=False) if exact else target - prediction)


def equal_rows(target: Array, prediction: Array, X: FeatureTable | None) -> Copies:
    """Rows with the same features, where they are given, and target; else with the same pair, as ids hide copies."""
    keys = None if X is None else row_keys(X, target)
    found = Copies(0, 0, 0) if X is None else copies(keys, X, target)._replace(compared="X, y_true")
    if not found.n:
        keys = row_keys(prediction, target)
        pairs = copies(keys, None, target, prediction=prediction)
        if X is None or pairs.n:
            found = pairs._replace(compared="np.column_stack([y_true, y_pred])")
    return found._replace(codes=np.unique(keys, return_inverse=True)[1]) if found.n and keys is not None else found


def covered_divisions(fit: CrossFit, prediction: Array, labels: NDArray[Any] | None) -> list[CoveredDivision]:
    """Cross-fitted coverage across quintiles of the prediction, and per category where these are given."""
    found = [CoveredDivision.of_subgroups("prediction", quintiles(prediction), fit)]
    if labels is not None:
        found.append(CoveredDivision.of_subgroups("by", categories(labels), fit))
    return found
