"""`measure`: how good is a model? One call on targets and predictions, and a result that speaks."""

from __future__ import annotations

import math
import platform
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from pimeter._kernels.dispatch import kernel
from pimeter.arrays import is_dask, some_rows
from pimeter.clusters import INDEPENDENT, Units, group_numbers, moment_numbers
from pimeter.evaluation.conditional import conditional_scores
from pimeter.evaluation.curves import Curves, RowAssumptions, floats, widened
from pimeter.evaluation.diagnosis.checks import beside_mean_error, judged
from pimeter.evaluation.diagnosis.columns import given
from pimeter.evaluation.diagnosis.crossfit import CrossFit
from pimeter.evaluation.diagnosis.evidence import (
    MAX_ROWS,
    PredictionEvidence,
    RowNames,
    checked_rows,
    covered_divisions,
    equal_rows,
)
from pimeter.evaluation.diagnosis.width import shown_divisions
from pimeter.evaluation.lazy_rows import LazyRows
from pimeter.evaluation.measurement import Measurement, Sample, Score
from pimeter.evaluation.ranges import MarginRanges, median_range
from pimeter.frames import refuse_other_orders
from pimeter.moments import Middle, Range
from pimeter.validation import one_level

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pimeter.duplicates import Copies
    from pimeter.evaluation.probabilistic import IntervalMeasurement
    from pimeter.findings import Diagnosis
    from pimeter.moments import Moments
    from pimeter.protocols import Array, FeatureTable, GivenIntervals, Index, Table

SLIDER_LEVELS = (*(i / 100 for i in range(50, 100)), 0.995, 0.999)
MAX_HISTOGRAM_BINS = 60
MAX_ROWS_TO_PLOT = 400
FEW_UNITS = 30  # below which ranges of mean absolute errors and the like hold the truth less often with long tails
SCORES_THAT_MAY_BE_NEGATIVE = ("mean_error", "median_error", "r2")
SCORES_AT_MOST_1 = ("coverage", "r2")
UNSAFE_IF_FEW_ARE_FAR = (
    "; no range is safe if tails are heavy: of t3 or lognormal residuals it holds the truth 8 times in 10, and less "
    "often where rare rows, of which few are here, are far larger"
)
ANY_DISTRIBUTION = "; any distribution"
BEYOND_INDEPENDENCE = {
    "coverage": ANY_DISTRIBUTION,
    "mean_width": ANY_DISTRIBUTION,
    "median_error": ANY_DISTRIBUTION,
    "interval_score": "; residuals beyond the margin fall off as those seen: no range is safe if tails are heavy",
    "mae": "; tails that have a variance",
    "mean_error": "; tails that have a variance",
    "rmse": UNSAFE_IF_FEW_ARE_FAR,
    "r2": UNSAFE_IF_FEW_ARE_FAR,
}
WHY_NO_RANGE = {"r2": "all targets are equal", "interval_score": "fewer than 2 misses are expected"}


@overload
def measure(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    X: FeatureTable | None = None,
    by: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    time: ArrayLike | None = None,
    confidence_level: float | None = None,
) -> Measurement: ...
@overload
def measure(
    y_true: ArrayLike,
    y_pred: ArrayLike | None = None,
    *,
    intervals: GivenIntervals | None = None,
    quantiles: Table | None = None,
    levels: ArrayLike | None = None,
    std: ArrayLike | None = None,
    samples: Table | None = None,
    X: FeatureTable | None = None,
    by: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    time: ArrayLike | None = None,
    confidence_level: float | None = None,
) -> Measurement | IntervalMeasurement: ...
def measure(
    y_true: ArrayLike,
    y_pred: ArrayLike | None = None,
    *,
    intervals: GivenIntervals | None = None,
    quantiles: Table | None = None,
    levels: ArrayLike | None = None,
    std: ArrayLike | None = None,
    samples: Table | None = None,
    X: FeatureTable | None = None,
    by: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    time: ArrayLike | None = None,
    confidence_level: float | None = None,
) -> Measurement | IntervalMeasurement:
    """How good is a model? From what happened and what it said, on rows that it was not trained on.

    A model says one number for each row, or something of how uncertain it is: intervals, quantiles, a standard
    deviation or samples.

    Parameters
    ----------
    y_true : array-like of shape (m,)
        Observed targets, of rows that the model was not trained on, in their order in time if they have one and `time`
        is not given.
    y_pred : array-like of shape (m,)
        What the model predicts for these rows. Rows are matched by position, also where both are Series; the same
        index in another order is refused.
    intervals : array-like of shape (m, 2), frame with columns lower and upper, or mapping of these by level
        Intervals that the model gives; without a mapping their level is `confidence_level`, which must be given.
    quantiles, levels : array-like of shape (m, q) and (q,)
        Quantiles that the model gives, and their levels.
    std : array-like of shape (m,)
        Standard deviations around `y_pred`, of normal distributions.
    samples : array-like of shape (m, s)
        Draws from the distribution of each row.
    X : frame or array-like of shape (m, d), optional
        Features, to find out where the model is weak: numbers, dates (also as text, from the year down) or categories,
        missing values allowed. Columns that tell each row from all others, such as ids, are left out and named.
    by : array-like of shape (m,), optional
        A category of each row, each of which should be covered.
    groups : array-like of shape (m,), optional
        Rows of one group belong together, as those of a patient do. Ranges then count groups, not rows; none are given
        below 10 groups.
    time : array-like of shape (m,), optional
        When each row was: numbers, dates or ISO strings, equal ones allowed. Rows are put in this order, and ranges
        allow for dependence that fades with time; none are given where rows say as little as fewer than 30 independent
        ones. With `groups`, it only orders the rows.
    confidence_level : float, optional
        Fraction of new targets that intervals should cover, between 0 and 1: .95 if it is not given. Of intervals and
        quantiles at several levels it is the level to judge, .95 or else the highest one.

    Returns
    -------
    Measurement or IntervalMeasurement
        Of predictions: margin, coverage, scores with their own uncertainty, diagnosis and advice. Of what else a model
        may say: whether it holds, at which levels and where not, and how much better it could be. Both print as
        sentences; `to_html(path)` writes a report, `to_frame()` has the scores, `to_dict()` everything.

    Raises
    ------
    ValueError
        If shapes do not fit, nothing is given, or a target or prediction is NaN, infinite or not a number.

    Notes
    -----
    Every coverage is cross-fitted in ``min(10, m)`` folds: on its own rows a margin covers exactly k of m, whatever the
    data. With more than 5,000 rows the features, skew, tails, the target's steps and the drift are judged on 5,000 of
    them, drawn at random with a fixed seed and kept in their order, and the scaled width on 2,000 of these; serial
    dependence on the first 5,000 (`Finding.rows`). All else uses all rows.

    Dask arrays, series and frames of more than a million rows stay where they are and are read three times. `n_rows`,
    margins and their ranges (right to 2e-8 of themselves), what is guaranteed, and the scores but for two are of all
    rows; where residuals are tied, the upper bound of the true coverage may be larger than in memory. What looks at
    single rows is of a million of them, drawn at random in proportion from each partition: coverage and interval score
    (cross-fitted), subgroups, diagnosis and plots; `Finding.rows` says so. The quantiles of the residuals are order
    statistics then, not smoothed.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter import measure
    >>> rng = np.random.default_rng(0)
    >>> y_pred = rng.uniform(10, 20, size=442)
    >>> result = measure(y_pred + rng.normal(scale=1.6, size=442), y_pred)
    >>> print(result)  # doctest: +NORMALIZE_WHITESPACE
    95 % of future residuals are expected within ±2.96. With 442 rows the true coverage lies between 93 and 97 % (90 %
    confidence), if new rows resemble these.
    <BLANKLINE>
    Nothing to do: a constant width with symmetric tails is enough.
    from pimeter.regression import IntervalRegressor
    intervals = IntervalRegressor(model, confidence_level=0.95, width="constant",
                                  tails="symmetric").calibrate(X, y_true)
    lower, upper = intervals.predict_interval(X_new).T
    >>> round(result.scores["mae"].value, 2), result.to_frame().shape
    (1.21, (8, 6))
    """
    keywords = {"intervals": intervals, "quantiles": quantiles, "levels": levels, "std": std, "samples": samples}
    is_probabilistic = any(one is not None for one in keywords.values())
    known: dict[str, Any] = {"X": X, "by": by, "groups": groups, "time": time, "confidence_level": confidence_level}
    refuse_other_orders({"y_true": y_true, "y_pred": y_pred, **keywords, **known})
    if is_probabilistic:
        from pimeter.evaluation.probabilistic import measured_predictions

        return measured_predictions(y_true, {**keywords, "y_pred": y_pred}, **known)
    if y_pred is None:
        msg = "give what the model said of these rows: y_pred=, intervals=, quantiles= with levels=, or samples=."
        raise ValueError(msg)
    return measured_points(y_true, y_pred, **known)


def measured_points(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    X: FeatureTable | None,
    by: ArrayLike | None,
    groups: ArrayLike | None,
    time: ArrayLike | None,
    confidence_level: float | None,
    names: RowNames | None = None,
) -> Measurement:
    """Measure one prediction for each row; rows are called by these names, if not by their index or number."""
    level = 0.95 if confidence_level is None else one_level("confidence_level", confidence_level)
    stops = np.array(sorted({*SLIDER_LEVELS, level}))
    at = int(np.searchsorted(stops, level))
    lazy = None
    if is_dask(y_true):
        _refuse_lazy(groups, time)
        lazy = LazyRows.read(stops, y_true, y_pred, X, by)
        y_true, y_pred, X, by = lazy.sample.y_true, lazy.sample.y_pred, lazy.sample.X, lazy.sample.by
        names = RowNames(is_known=False)
    names = names or RowNames.of(y_true)
    checked = checked_rows(y_true, y_pred)
    target, prediction, residuals = checked.target, checked.prediction, checked.residuals
    m = len(target)
    group = None if groups is None else group_numbers(groups, m)
    moment = None
    if time is not None:
        moment = moment_numbers(time, m)
        order = np.argsort(moment, kind="stable")
        target, prediction, residuals, moment = target[order], prediction[order], residuals[order], moment[order]
        X, by, group = _in_order(order, X, by, group)
        names = names.take(order)
    known = given(X, by, m, some_rows(m, MAX_ROWS))
    fit = CrossFit.of(np.abs(residuals), stops)
    ordered = kernel.sorted_groups(residuals)[0]
    equal = equal_rows(target, prediction, X)
    if lazy is not None:
        equal = equal.of_sample(lazy.n)
    units = Units.of(m, group, moment, residuals)
    moments = Middle.of(target, residuals, fit.largest)(target, residuals, units)
    evidence = PredictionEvidence(
        target=target,
        prediction=prediction,
        residuals=residuals,
        ordered=ordered,
        fit=fit,
        at=at,
        given=known,
        divisions=covered_divisions(fit, prediction, known.labels),
        copies=equal,
        names=names,
        has_groups=group is not None,
        units=_together(units, equal),
        has_time=moment is not None,
        mean_range=_moments_of_checks(moments, target, residuals, equal).errors.signed,
    )
    judgement = judged(evidence)
    assumptions = RowAssumptions(units, _doubt(judgement.diagnosis, units), judgement.why_nothing)
    shown, ranges = shown_divisions(evidence), MarginRanges.of(fit, units)
    curves = Curves.of(residuals, fit, shown, len(evidence.subgroups), ranges, assumptions, evidence.effects)
    if lazy is not None and lazy.n > m:
        curves = replace(curves, **lazy.level_fields(assumptions))
        scores = _scores(lazy.moments, curves, at, lazy.median, f", of {m:,} rows drawn at random")
        n_rows = lazy.n
    else:
        median = float(ordered[(m - 1) // 2] / 2.0 + ordered[m // 2] / 2.0)
        scores = _scores(moments, curves, at, Range(median, *median_range(ordered, residuals, units)))
        n_rows = m
    if equal.n:
        curves = curves.with_copies(n_rows, equal, assumptions)
        scores = {name: _with_copies(name, score, equal.factor) for name, score in scores.items()}
    kind = "copies" if equal.n else units.kind
    scores |= conditional_scores(known.columns, fit.covered(evidence.some, at), level, kind)
    margin, mean = curves.margin[at], scores["mean_error"]
    return Measurement(
        headline=curves.headlines[at],
        diagnosis=beside_mean_error(judgement.diagnosis, mean.value, mean.lower, mean.upper),
        confidence_level=level,
        n_rows=n_rows,
        n_folds=len(fit.fold_margins),
        margin=(margin, margin),
        coverage=curves.coverage[at],
        coverage_range=(curves.coverage_lower[at], curves.coverage_upper[at]),
        guaranteed_level=curves.guaranteed_level[at],
        mean_width=2.0 * margin,
        scores=scores,
        subgroups=evidence.subgroups,
        recommended_width=judgement.width,
        recommended_tails=judgement.tails,
        curves=curves,
        sample=_sample(target, prediction, residuals, ordered),
        versions=dict(_versions()),
    )


def _together(units: Units, equal: Copies) -> Units | None:
    """Groups, stretches of time, or copies as groups; None where each row stands for itself."""
    return units.if_dependent or (None if equal.codes is None else Units.of_groups(equal.codes))


def _moments_of_checks(moments: Moments, target: Array, residuals: Array, equal: Copies) -> Moments:
    """Moments in the units that checks count, which copies are where neither groups nor time are given."""
    together = _together(moments.units, equal)
    is_same = together is None or together is moments.units
    return moments if is_same else moments.middle(target, residuals, together)


def _refuse_lazy(groups: object, time: object) -> None:
    """Refuse what needs all rows in memory."""
    if groups is not None or time is not None:
        msg = "groups and time need rows in memory; y_true is a dask collection. Give y_true.compute() and so on."
        raise ValueError(msg)


def _in_order(order: Index, *columns: object) -> list[Any]:
    """Frames and columns in this order of their rows; None stays None."""
    from sklearn.utils import _safe_indexing  # takes long to load

    return [None if one is None else _safe_indexing(one, order) for one in columns]


def _doubt(diagnosis: Diagnosis, units: Units) -> str:
    """Why the headline claims nothing of future rows; empty if nothing speaks against it, or ranges allow for it."""
    if "drift" in diagnosis.raised:
        return "Residuals drift in the order given, so the future may be unlike these rows."
    if units.kind == "rows" and "serial" in diagnosis.raised:
        return "Residuals depend on those before them: give time (or groups) for ranges that allow for it."
    if "zeros" in diagnosis.raised:
        return "Many residuals are exactly 0, as on rows that the model was trained on."
    return ""


@cache
def _versions() -> tuple[tuple[str, str], ...]:
    """Versions of what makes the numbers."""
    packages = ("pimeter", "numpy", "scipy", "scikit-learn")
    return ("python", platform.python_version()), *((name, version(name)) for name in packages)


def _scores(moments: Moments, curves: Curves, at: int, median: Range, of_rows: str = "") -> dict[str, Score]:
    """Scores at the level asked for, each with its range; `of_rows` says which rows cross-fitting took, if not all."""
    errors = moments.errors
    explained = moments.explained()
    fraction = "fraction of the targets' variance that the model explains (R squared)"
    if explained is None:
        explained, fraction = Range(*(math.nan,) * 3), f"{fraction}; none, as all targets are equal"
    found = {
        "coverage": (
            Range(curves.coverage[at], curves.coverage_lower[at], curves.coverage_upper[at]),
            f"cross-fitted fraction of rows within the margin{of_rows}; range: of the margin of all rows",
        ),
        "mean_width": (
            Range(2.0 * curves.margin[at], curves.width_lower[at], curves.width_upper[at]),
            "width of the intervals; range: of very many rows",
        ),
        "interval_score": (
            Range(curves.interval_score[at], curves.interval_score_lower[at], curves.interval_score_upper[at]),
            f"cross-fitted width plus penalties for misses{of_rows}; range: of these intervals on new rows",
        ),
        "mae": (errors.absolute, "mean absolute error"),
        "rmse": (errors.root_square, "root of the mean squared error"),
        "mean_error": (errors.signed, "mean residual, of target minus prediction"),
        "median_error": (median, "median residual"),
        "r2": (explained, fraction),
    }
    units = moments.units
    return {
        name: Score(
            own.value, own.lower, own.upper, meaning, _assumptions(name, units, is_known=not math.isnan(own.lower))
        )
        for name, (own, meaning) in found.items()
    }


def _assumptions(name: str, units: Units, *, is_known: bool) -> str:
    """What a range assumes, or why there is none."""
    if not is_known:
        return f"no range: {units.refusal or WHY_NO_RANGE.get(name, 'too few rows for this level')}"
    beyond = BEYOND_INDEPENDENCE.get(name, "")
    if name in ("mae", "rmse") and units.n < FEW_UNITS:
        beyond += (
            f"; tails of normal ones, as there are fewer than {FEW_UNITS} {'groups' if units.n_groups else 'rows'}"
        )
    is_estimated = beyond == ANY_DISTRIBUTION and units.kind != "rows"  # how much groups, or stretches of time, vary
    return f"{INDEPENDENT[units.kind]}{beyond}{', approximately' if is_estimated else ''}"


def _with_copies(name: str, score: Score, factor: float) -> Score:
    """A score whose range is wider by a factor, as rows are copies of others."""
    limits = (-math.inf if name in SCORES_THAT_MAY_BE_NEGATIVE else 0.0, 1.0 if name in SCORES_AT_MOST_1 else math.inf)
    centre = None if name == "coverage" else score.value
    lower, upper = widened(centre, score.lower, score.upper, factor, limits)
    return replace(
        score, lower=float(lower), upper=float(upper), meaning=f"{score.meaning}; range widened for copies of rows"
    )


def _sample(target: Array, prediction: Array, residuals: Array, ordered: Array) -> Sample:
    """Some rows, and the residuals in bins that leave out the farthest of them."""
    m = len(residuals)
    shown = np.random.default_rng(m).choice(m, min(m, MAX_ROWS_TO_PLOT), replace=False)
    some = residuals[some_rows(m, MAX_ROWS)]
    low, high = np.quantile(some, [0.002, 0.998])
    if not low < high:
        low, high = float(some.min()), float(some.max())
    if low == high:
        low, high = low - max(abs(low), 1.0) / 2.0, high + max(abs(high), 1.0) / 2.0
    n_bins = min(MAX_HISTOGRAM_BINS, max(10, round(3.0 * m ** (1.0 / 3.0))))
    edges = np.linspace(low, high, n_bins + 1)
    counts = np.diff([*np.searchsorted(ordered, edges[:-1]), np.searchsorted(ordered, edges[-1], "right")])
    return Sample(
        floats(target[shown]),
        floats(prediction[shown]),
        floats(edges),
        tuple(counts.tolist()),
        m - int(counts.sum()),
    )
