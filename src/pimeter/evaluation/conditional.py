"""Coverage given the features: that of the worst slab, how well features predict a miss, and the worst subgroup."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pimeter.arrays import ranks, some_rows
from pimeter.clusters import INDEPENDENT
from pimeter.evaluation.diagnosis import forest
from pimeter.evaluation.diagnosis.columns import categories, columns, given
from pimeter.evaluation.diagnosis.evidence import MAX_ROWS, exact_range
from pimeter.evaluation.diagnosis.subgroup_search import WorstSubgroup, found_subgroup
from pimeter.evaluation.measurement import Score
from pimeter.evaluation.ranges import CONFIDENCE
from pimeter.frames import refuse_other_orders
from pimeter.interval_arrays import aligned
from pimeter.validation import one_level

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from pimeter.evaluation.diagnosis.columns import Column
    from pimeter.protocols import Array, FeatureTable, Flags

N_DIRECTIONS = 500
MAX_ROWS_FOR_SLABS = 1_000  # of one half, for a slab
N_SLAB_LENGTHS = 16  # of slabs that are tried in each direction
MIN_FRACTION_OF_SLAB = 0.1  # of the rows that a slab holds
MAX_ROWS_TO_PREDICT_MISSES = 2_000  # from which misses are predicted
N_FOLDS_OF_MISSES = 4
MAX_LEAVES = 25  # of a tree that predicts misses, at most
MIN_ROWS_GIVEN_FEATURES = 40  # below which nothing is said


class Slab(NamedTuple):
    """Rows of one half between two parallel planes that the other half chose."""

    rows: int
    inside: int


def worst_slab_coverage_score(
    X: FeatureTable, y_true: ArrayLike, y_interval: ArrayLike, *, min_fraction: float = MIN_FRACTION_OF_SLAB
) -> float:
    """Coverage of the worst slab: rows between two parallel planes in the space of features (Cauchois et al. 2021).

    Of 500 random directions, and all slabs across each that hold `min_fraction` of the rows or more, the one covered
    least is chosen on one half of the rows and judged on the other, as otherwise chance would choose it (Romano et al.
    2020). Intervals that keep their level given the features have about that level here; those that keep it on average
    alone have less.

    Parameters
    ----------
    X : frame or array-like of shape (n, d)
        Features: numbers by their ranks, so that units do not matter, and categories as 0 or 1 each.
    y_true : array-like of shape (n,)
        Observed targets.
    y_interval : array-like of shape (n, 2)
        Lower and upper bounds.
    min_fraction : float, default=0.1
        Least fraction of the rows in a slab, between 0 and 1.

    Returns
    -------
    float
        Between 0 and 1; NaN where the chosen slab has no rows in the other half. With more than 1,000 rows in the half
        that chooses, 1,000 of them do. The same rows give the same score: directions have a fixed seed.

    Raises
    ------
    ValueError
        If shapes do not fit, or there are fewer than 40 rows.

    See Also
    --------
    excess_risk_score : How well features predict a miss.
    worst_subgroup : The subgroup covered least, in words.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter import worst_slab_coverage_score
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(4000, 2))
    >>> y = rng.normal(scale=0.5 + X[:, 0])  # residuals grow with the first feature, intervals do not
    >>> intervals = np.tile([-1.7, 1.7], (4000, 1))
    >>> round(float(np.mean(np.abs(y) <= 1.7)), 2), round(worst_slab_coverage_score(X, y, intervals), 2)
    (0.9, 0.78)
    """
    fraction = one_level("min_fraction", min_fraction)
    is_inside = _inside(X, y_true, y_interval)
    slab = worst_slab(_given_columns(X, len(is_inside)), is_inside[some_rows(len(is_inside), MAX_ROWS)], fraction)
    return slab.inside / slab.rows if slab.rows else math.nan


def excess_risk_score(X: FeatureTable, y_true: ArrayLike, y_interval: ArrayLike, confidence_level: float) -> float:
    """How well the features predict a miss: excess risk of the target coverage (ERT, Braun et al. 2025).

    The Brier score of the constant `confidence_level` as a forecast of whether a target is inside its interval, less
    that of a forest of small trees that sees the features, each row predicted by trees of other rows, which are trusted
    as far as they were right about rows they had not seen. With a perfect forecast this is ``mean((coverage given x -
    confidence_level)**2)``, whose root says by how much, typically, the coverage of a row departs from the level.
    Trees of so few rows are not perfect: on average the score is *less* than that, often by far, so that it is a lower
    bound of what features could tell, and no estimate. Intervals that keep their level given the features score about
    0. There is no range: the usual one, by the variance of rows, held too rarely in simulations.

    Parameters
    ----------
    X : frame or array-like of shape (n, d)
        Features: numbers, dates or categories, missing values allowed.
    y_true : array-like of shape (n,)
        Observed targets.
    y_interval : array-like of shape (n, 2)
        Lower and upper bounds.
    confidence_level : float
        The level that intervals should keep.

    Returns
    -------
    float
        At most ``max(level, 1 - level)**2``; of 2,000 rows, drawn with a fixed seed, where there are more.

    Raises
    ------
    ValueError
        If shapes do not fit, or there are fewer than 40 rows.

    See Also
    --------
    worst_slab_coverage_score : Coverage between the two planes between which it is lowest.
    worst_subgroup : The subgroup covered least, in words.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter import excess_risk_score
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(2000, 2))
    >>> scale = 0.5 + X[:, 0]
    >>> y = rng.normal(scale=scale)
    >>> constant, scaled = np.tile([-1.7, 1.7], (2000, 1)), np.outer(scale, [-1.645, 1.645])
    >>> round(excess_risk_score(X, y, constant, 0.9), 4), round(excess_risk_score(X, y, scaled, 0.9), 4)
    (0.0056, -0.0002)
    """
    level = one_level("confidence_level", confidence_level)
    is_inside = _inside(X, y_true, y_interval)
    return float(
        excess_risks(_given_columns(X, len(is_inside)), is_inside[some_rows(len(is_inside), MAX_ROWS)], level).mean()
    )


def worst_subgroup(X: FeatureTable, y_true: ArrayLike, y_interval: ArrayLike) -> WorstSubgroup | None:
    """The subgroup of rows that is covered least, in words, with an honest range and a p-value for the whole search.

    Subgroups are all that one or two conditions on columns describe ("age > 60", "region = north") and that hold 5 % of
    the rows or more. One half of the rows chooses, the other tells how well the choice is covered; the p-value, from
    all rows, counts every subgroup that was looked at.

    Parameters
    ----------
    X : frame or array-like of shape (n, d)
        Features: numbers, dates or categories, missing values allowed; ids are left out.
    y_true : array-like of shape (n,)
        Observed targets.
    y_interval : array-like of shape (n, 2)
        Lower and upper bounds.

    Returns
    -------
    WorstSubgroup or None
        Its conditions, rows, coverage with a range, and p-value; it prints as a sentence. None where there are fewer
        than 5 misses, or no subgroups to look at. Of 3,000 rows, drawn with a fixed seed, where there are more.

    Raises
    ------
    ValueError
        If shapes do not fit, or there are fewer than 40 rows.

    See Also
    --------
    measure : All checks of intervals at once, within one budget of false alarms.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter import worst_subgroup
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.integers(20, 80, 4000), rng.integers(0, 4, 4000)])
    >>> y = rng.normal(scale=np.where((X[:, 0] > 60) & (X[:, 1] == 3), 1.6, 1.0))
    >>> found = worst_subgroup(X, y, np.tile([-1.645, 1.645], (4000, 1)))
    >>> print(found)
    rows with column 0 > 62 and column 1 > 2: 71.3 % of 108, range 61.8 % to 79.6 %
    >>> round(found.p_value, 4)
    0.0034
    """
    is_inside = _inside(X, y_true, y_interval)
    return found_subgroup(_given_columns(X, len(is_inside)), is_inside[some_rows(len(is_inside), MAX_ROWS)])


def _inside(X: FeatureTable, y_true: ArrayLike, y_interval: ArrayLike) -> Flags:
    """Which targets are inside their interval."""
    refuse_other_orders({"X": X, "y_true": y_true, "y_interval": y_interval})
    rows = aligned(y_true, y_interval)
    if rows.outputs or rows.n_levels is not None:
        msg = (
            f"y_true must have shape (n,) and y_interval (n, 2); got {np.shape(y_true)} and {np.shape(y_interval)}. "
            "Give one output and one level at a time."
        )
        raise ValueError(msg)
    n = len(rows.target)
    if n < MIN_ROWS_GIVEN_FEATURES:
        msg = f"{n} rows say nothing of coverage given the features; give {MIN_ROWS_GIVEN_FEATURES} or more."
        raise ValueError(msg)
    return np.asarray((rows.lower <= rows.target) & (rows.target <= rows.upper))


def _given_columns(X: FeatureTable, n: int) -> list[Column]:
    """Columns of up to 5,000 rows of X; all of them, if ids would leave none."""
    rows = some_rows(n, MAX_ROWS)
    return given(X, None, n, rows).columns or columns(X, n, rows)


def worst_slab(given_columns: Sequence[Column], is_inside: Flags, fraction: float = MIN_FRACTION_OF_SLAB) -> Slab:
    """The slab that one half of the rows chooses, in the other half."""
    points = _points(given_columns)
    rng = np.random.default_rng([len(points), points.shape[1]])
    order = rng.permutation(len(points))
    searched, judged = order[: min(len(order) // 2, MAX_ROWS_FOR_SLABS)], order[len(order) // 2 :]
    directions = rng.standard_normal((points.shape[1], N_DIRECTIONS))
    along = points[searched] @ directions
    order = np.argsort(along, axis=0)
    covered = np.vstack([np.zeros(N_DIRECTIONS), np.cumsum(is_inside[searched][order], axis=0)])
    n, least = len(searched), max(1, math.ceil(fraction * len(searched)))
    best = (math.inf, 0, 0, 0)
    # The mean of a slab is that of its parts: one of the least length to twice that is the worst.
    for length in np.unique(np.linspace(least, min(2 * least - 1, n), N_SLAB_LENGTHS).astype(np.intp)).tolist():
        mean = (covered[length:] - covered[:-length]) / length
        at = int(mean.argmin())
        best = min(best, (float(mean.flat[at]), *divmod(at, N_DIRECTIONS), length))
    _, start, direction, length = best
    low, high = (along[order[i, direction], direction] for i in (start, start + length - 1))
    place = points[judged] @ directions[:, direction]
    is_in_slab = (low <= place) & (place <= high)
    return Slab(int(is_in_slab.sum()), int((is_in_slab & is_inside[judged]).sum()))


def _points(given_columns: Sequence[Column]) -> Array:
    """Features as numbers with about the same variance: ranks, with the middle for what is missing, and categories."""
    found: list[Array] = []
    for column in given_columns:
        if column.is_numeric:
            rank = ranks(column.numbers)
            found.append(np.nan_to_num((rank - np.nanmean(rank)) / len(rank)) if np.isfinite(rank).any() else rank * 0)
        else:
            subgroups = categories(column.values)
            held = (subgroups.codes == i for i in range(len(subgroups.labels)))
            found += [is_own - np.mean(is_own) for is_own in held]
    points = np.nan_to_num(np.column_stack(found))
    return np.asarray(points / np.maximum(points.std(axis=0), 1e-12))


def excess_risks(given_columns: Sequence[Column], is_inside: Flags, level: float) -> Array:
    """By how much the Brier score of the level exceeds that of trees of other rows, for each of up to 2,000 rows.

    What trees say beyond the mean is shrunk by the factor that would have been best for the rows of the other folds.
    """
    rows = some_rows(len(is_inside), MAX_ROWS_TO_PREDICT_MISSES)
    inside = is_inside[rows].astype(np.float64)
    bins = forest.binned([column.numbers[rows] for column in given_columns])
    rng = np.random.default_rng(len(rows))
    folds = np.array_split(rng.permutation(len(rows)), N_FOLDS_OF_MISSES)
    mean, beyond = np.empty((2, len(rows)))
    for fold in folds:
        learned = np.setdiff1d(np.arange(len(rows)), fold, assume_unique=True)
        in_leaf = max(forest.IN_LEAF, len(learned) // MAX_LEAVES)
        mean[fold] = inside[learned].mean()
        beyond[fold] = forest.expected(bins, inside, learned, rng, in_leaf)[fold] - mean[fold]
    predicted = mean.copy()
    for fold in folds:
        others = np.setdiff1d(np.arange(len(rows)), fold, assume_unique=True)
        squares = float(beyond[others] @ beyond[others])
        best = float(beyond[others] @ (inside - mean)[others]) / squares if squares else 0.0
        predicted[fold] += min(max(best, 0.0), 1.0) * beyond[fold]
    return np.asarray((level - inside) ** 2 - (predicted - inside) ** 2)


def conditional_scores(given_columns: Sequence[Column], is_inside: Flags, level: float, kind: str) -> dict[str, Score]:
    """Coverage of the worst slab, with a range where rows are independent of each other, and excess risk."""
    if not given_columns or len(is_inside) < MIN_ROWS_GIVEN_FEATURES:
        return {}
    slab, risks = worst_slab(given_columns, is_inside), excess_risks(given_columns, is_inside, level)
    is_plain = kind == "rows"
    unknown, why = (math.nan, math.nan), "no range: rows depend on each other"
    slab_range = exact_range(slab.inside, slab.rows, CONFIDENCE) if is_plain and slab.rows else unknown
    return {
        "worst_slab_coverage": Score(
            slab.inside / slab.rows if slab.rows else math.nan,
            *slab_range,
            f"covered rows of {slab.rows:,} between two planes in the space of features, which other rows chose as the "
            "worst; range: of this slab",
            INDEPENDENT["rows"] if is_plain else why,
        ),
        "excess_risk": Score(
            float(risks.mean()),
            *unknown,
            "how much better trees predict a miss from features than the level does (Brier score, ERT), on average a "
            "lower bound: its root is how far, at least, the coverage of a row typically is from the level; about 0 if "
            "features say nothing",
            "no range: no valid one is known",
        ),
    }
