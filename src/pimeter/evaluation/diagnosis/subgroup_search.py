"""The subgroup with the lowest coverage: searched for among conditions on one or two columns, and named in words.

Whether there is one at all is tested on all rows: how often is the worst of all subgroups as bad when the same number
of misses is dealt to rows at random? That is exact where misses are exchangeable, and counts every subgroup that was
looked at. How bad the subgroup is, is told by rows that did not choose it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pimeter.arrays import coded, some_rows
from pimeter.coverage import percent
from pimeter.evaluation.diagnosis.check import sequential_test
from pimeter.evaluation.diagnosis.columns import MISSING, categories, distinct_texts
from pimeter.evaluation.diagnosis.evidence import exact_range

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pimeter.evaluation.diagnosis.columns import Column
    from pimeter.protocols import Array, Flags, Index

    Matrix = NDArray[np.float32]

N_BORDERS = 9  # of a column of numbers, at equal distances in rank
MAX_CONDITIONS = 400  # of which all pairs are looked at; of more, each by itself
MIN_FRACTION_OF_SUBGROUP, MIN_ROWS_OF_SUBGROUP = 0.05, 20  # of the rows that a subgroup has
MIN_EXPECTED_MISSES = 2.0  # that are expected in it
SECOND_CONDITION = 1.0  # standard errors by which a second condition has to make it worse
MAX_PERMUTATIONS = 296  # a p-value of 1/297 if none is as bad
MAX_ROWS_TO_DIVIDE = 3_000
CONFIDENCE_OF_RANGE = 0.9  # confidence of the range
FEW_MISSES = "There are too few misses, or too few rows inside, to tell."  # why there is none, where there are features
MIN_MISSES_IN_ALL = 5  # misses of all rows, below which nothing can be found


class Condition(NamedTuple):
    """Something that holds for some rows, in words."""

    words: str
    holds: Flags


@dataclass(frozen=True)
class WorstSubgroup:
    """The subgroup of rows that is covered least, as far as can be told.

    Attributes
    ----------
    conditions : tuple of str
        What its rows have in common, such as ``("age > 60", "region = north")``. It was chosen on one half of the rows.
    rows, coverage : int, float
        Its rows in the other half, which did not choose it, and the fraction of them that is covered.
    lower, upper : float
        Where its true coverage lies with 90 % confidence: exact (Clopper and Pearson), for the choices of both halves
        together, of which the one that the other half confirms more clearly is told.
    p_value : float
        How often the worst of all subgroups is as bad by chance, if all rows are equally likely to be missed.
    """

    conditions: tuple[str, ...]
    rows: int
    coverage: float
    lower: float
    upper: float
    p_value: float

    @property
    def words(self) -> str:
        """Which rows these are: the conditions on them, joined."""
        return f"rows with {' and '.join(self.conditions)}"

    def __str__(self) -> str:
        return (
            f"{self.words}: {percent(self.coverage, 3)} of {self.rows:,}, range "
            f"{percent(self.lower, 3)} to {percent(self.upper, 3)}"
        )


def found_subgroup(columns: Sequence[Column], is_inside: Flags, effect: float = 1.0) -> WorstSubgroup | None:
    """The subgroup covered least; None where there are no conditions, or too few misses to find anything.

    Rows that depend on each other say as much as `effect` times fewer independent ones.
    """
    rows = some_rows(len(is_inside), MAX_ROWS_TO_DIVIDE)
    is_inside = is_inside[rows]
    n, n_misses = len(is_inside), int(np.count_nonzero(~is_inside))
    conditions = _conditions([column._replace(values=column.values[rows]) for column in columns])
    if not conditions or n_misses < MIN_MISSES_IN_ALL * effect or n_misses == n:
        return None
    search = _Search.of(np.stack([one.holds for one in conditions], axis=1), n_misses / n)
    if not search.is_possible:
        return None
    rng = np.random.default_rng(n)
    worst = search.worst(np.flatnonzero(~is_inside)).excess / math.sqrt(effect)

    def drawn(size: int) -> Array:
        return np.array([search.worst(rng.choice(n, n_misses, replace=False)).excess for _ in range(size)])

    p_value = sequential_test(worst, drawn, MAX_PERMUTATIONS).p_value
    is_first = np.zeros(n, np.bool_)
    is_first[rng.permutation(n)[: n // 2]] = True
    halves = [_confirmed(search, is_inside, is_half) for is_half in (is_first, ~is_first)]
    best = min(halves, key=lambda one: (one.inside - (1.0 - search.rate) * one.rows) / one.rows**0.5)
    lower, upper = exact_range(best.inside, best.rows, (1.0 + CONFIDENCE_OF_RANGE) / 2.0, effect)
    words = tuple(conditions[i].words for i in best.conditions)
    return WorstSubgroup(words, best.rows, best.inside / best.rows, lower, upper, p_value)


def _conditions(columns: Sequence[Column]) -> list[Condition]:
    """What may be said of each column, the fewer the more columns there are."""
    found: list[Condition] = []
    for column in columns:
        if column.is_numeric:
            found += _borders(column, max(1, min(N_BORDERS, MAX_CONDITIONS // (2 * len(columns)))))
        else:
            subgroups = categories(column.values)
            has_rest = len(coded(column.values).labels) > len(
                subgroups.labels
            )  # the last label stands for several small ones
            n_labels = len(subgroups.labels) - has_rest
            own = enumerate(subgroups.labels[:n_labels])
            found += [Condition(_is(column.name, label), subgroups.codes == i) for i, label in own]
    return [one for one in found if 0 < np.count_nonzero(one.holds) < len(one.holds)]


def _is(name: str, label: str) -> str:
    return f"{name} is missing" if label == MISSING else f"{name} = {label}"


def _borders(column: Column, n_borders: int) -> list[Condition]:
    """Numbers above and below some borders, and those that are missing."""
    values, is_missing = column.numbers, np.isnan(column.numbers)
    found = [Condition(_is(column.name, MISSING), is_missing)]
    known = values[~is_missing]
    if not len(known):
        return found
    at = np.arange(1, n_borders + 1) / (n_borders + 1)
    borders = np.unique(np.quantile(known, at, method="inverted_cdf")).tolist()
    texts = distinct_texts(borders) if column.text is None else [column.text(border) for border in borders]
    for border, text in zip(borders, texts, strict=True):
        found.append(Condition(f"{column.name} > {text}", values > border))
        found.append(Condition(f"{column.name} <= {text}", values <= border))
    return found


class _Worst(NamedTuple):
    """One or two conditions, and by how many standard errors there are more misses than expected."""

    conditions: tuple[int, ...]
    excess: float


@dataclass(frozen=True)
class _Search:
    """Conditions and pairs of them, with what is expected of each: only misses are left to count."""

    holds: Matrix  # (rows, conditions)
    expected: Matrix  # misses of each pair, (conditions, conditions), or condition, (1, conditions); infinite if small
    per_error: Matrix  # 1 over the standard error of their number
    rate: float  # of misses

    @classmethod
    def of(cls, holds: Flags, rate: float) -> _Search:
        """All pairs where these are not too many."""
        flags = holds.astype(np.float32)
        rows = flags.T @ flags if flags.shape[1] <= MAX_CONDITIONS else flags.sum(axis=0)[None]
        least = max(MIN_ROWS_OF_SUBGROUP, MIN_FRACTION_OF_SUBGROUP * len(flags), MIN_EXPECTED_MISSES / rate)
        expected = np.where(rows >= least, rows * rate, np.inf).astype(np.float32)
        per_error = 1.0 / np.sqrt(np.maximum(rows, 1.0) * rate * (1.0 - rate))
        return cls(flags, expected, per_error.astype(np.float32), rate)

    @property
    def is_possible(self) -> bool:
        """Whether any subgroup is large enough."""
        return bool(np.isfinite(self.expected).any())

    def worst(self, missed: Index, part: float = 1.0) -> _Worst:
        """Where the rows that are missed, out of a part of all rows, are most in excess."""
        own = self.holds[missed]
        is_paired = len(self.expected) > 1
        excess = own.T @ own if is_paired else own.sum(axis=0)[None]
        excess -= self.expected if part == 1.0 else np.float32(part) * self.expected
        excess *= self.per_error if part == 1.0 else np.float32(part**-0.5) * self.per_error
        alone = np.diagonal(excess) if is_paired else excess[0]
        single, pair = int(alone.argmax()), int(excess.argmax())
        if not is_paired or alone[single] + SECOND_CONDITION >= excess.flat[pair]:
            return _Worst((single,), float(alone[single]))
        return _Worst(divmod(pair, len(excess)), float(excess.flat[pair]) - SECOND_CONDITION)


class _Confirmed(NamedTuple):
    """Conditions that one half of the rows chose, and the rows of the other half for which they hold."""

    conditions: tuple[int, ...]
    rows: int
    inside: int


def _confirmed(search: _Search, is_inside: Flags, is_half: Flags) -> _Confirmed:
    """The choice of one half, in the other."""
    chosen = search.worst(np.flatnonzero(~is_inside & is_half), 0.5).conditions
    holds = (search.holds[:, chosen] > 0.0).all(axis=1) & ~is_half
    return _Confirmed(chosen, max(int(holds.sum()), 1), int((holds & is_inside).sum()))
