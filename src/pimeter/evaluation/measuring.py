"""`measure`: how good is a model? One call on targets and predictions, and a result that speaks."""

from __future__ import annotations

import math
import platform
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from pimeter._kernels.dispatch import kernel
from pimeter.arrays import some_rows
from pimeter.evaluation.curves import Curves, floats, widened
from pimeter.evaluation.diagnosis.checks import judged
from pimeter.evaluation.diagnosis.columns import given
from pimeter.evaluation.diagnosis.evidence import MAX_ROWS, Evidence, checked_rows, cross_fitted, equal_rows
from pimeter.evaluation.lazy_rows import LazyRows
from pimeter.evaluation.measurement import Measurement, Sample, Score
from pimeter.moments import Middle
from pimeter.validation import one_level

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from pimeter.moments import Moments, Range

    Array = NDArray[np.float64]

# Where a report's slider stops.
STOPS = (*(i / 100 for i in range(50, 100)), 0.995, 0.999)
N_BINS = 60  # of the histogram of residuals, at most
N_SHOWN = 400  # rows that plots show
SIGNED = ("mean_error", "median_error", "r2")  # scores that may be negative
AT_MOST_1 = ("coverage", "r2")  # scores


def measure(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    X: Any = None,
    by: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> Measurement:
    """How good is a model? From what happened and what it said, on rows that it was not trained on.

    Parameters
    ----------
    y_true : array-like of shape (m,)
        Observed targets, of rows that the model was not trained on, in their order in time if they have one.
    y_pred : array-like of shape (m,)
        What the model predicts for these rows.
    X : frame or array-like of shape (m, d), optional
        Features, to find out where the model is weak: numbers, dates (also as text, from the year down) or categories,
        missing values allowed. Columns that tell each row from all others, such as ids, are left out and named.
    by : array-like of shape (m,), optional
        A category of each row, each of which shall be covered.
    confidence_level : float, default=0.95
        Fraction of new targets that intervals shall cover, between 0 and 1.

    Returns
    -------
    Measurement
        Margin, coverage, scores with their own uncertainty, diagnosis and advice. It prints as sentences;
        `to_html(path)` writes a report, `to_frame()` has the scores, `to_dict()` everything, `plot()` draws.

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
    >>> print(result)
    95 % of future residuals are expected within ±2.96. With 442 rows the true coverage lies between 93 and 97 % (90 %
    confidence), if new rows resemble these.
    <BLANKLINE>
    Nothing to do: a constant width with symmetric tails is enough.
    IntervalRegressor(model, width="constant", tails="symmetric")
    >>> round(result.scores["mae"].value, 2), result.to_frame().shape
    (1.21, (8, 5))
    """
    level = one_level("confidence_level", confidence_level)
    levels = np.array(sorted({*STOPS, level}))
    at = int(np.searchsorted(levels, level))
    lazy = None
    if type(y_true).__module__.partition(".")[0] == "dask":
        lazy = LazyRows.read(levels, y_true, y_pred, X, by)
        y_true, y_pred, X, by = lazy.sample
    target, prediction, residuals = checked_rows(y_true, y_pred)
    m = len(target)
    known = given(X, by, m, some_rows(m, MAX_ROWS))
    fit, divisions = cross_fitted(residuals, prediction, known.labels, levels)
    ordered = kernel.sorted_groups(residuals)[0]
    equal = equal_rows(target, prediction, X)
    if lazy is not None:
        equal = equal.of_sample(lazy.n)
    evidence = Evidence(target, prediction, residuals, ordered, fit, at, known, divisions, equal)
    judgement = judged(evidence)
    curves = Curves.of(residuals, fit, divisions, len(evidence.subgroups))
    if lazy is not None and lazy.n > m:
        curves = curves.with_levels(lazy.level_numbers, lazy.residual_quantiles)
        scores = _scores(lazy.moments, curves, at, lazy.median, f", of {m:,} rows drawn at random")
        n_rows = lazy.n
    else:
        moments = Middle.of(target, residuals, fit.largest)(target, residuals)
        bias = judgement.diagnosis["bias"]
        scores = _scores(moments, curves, at, (bias.value, bias.lower, bias.upper))
        n_rows = m
    if equal.n:
        curves = curves.with_copies(n_rows, equal)
        scores = {name: _with_copies(name, score, equal.factor) for name, score in scores.items()}
    margin = curves.margin[at]
    return Measurement(
        headline=curves.headlines[at],
        diagnosis=judgement.diagnosis,
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


@cache
def _versions() -> tuple[tuple[str, str], ...]:
    """Of what makes the numbers."""
    packages = ("pimeter", "numpy", "scipy", "scikit-learn")
    return ("python", platform.python_version()), *((name, version(name)) for name in packages)


def _scores(moments: Moments, curves: Curves, at: int, median: Range, of_rows: str = "") -> dict[str, Score]:
    """Scores at the level asked for, each with its range; `of_rows` says which rows cross-fitting took, if not all."""
    absolute, roots, signed = moments.errors()
    explained = moments.explained()
    fraction = "fraction of the targets' variance that the model explains (R squared)"
    unknown = (math.nan, math.nan, math.nan)
    return {
        "coverage": Score(
            curves.coverage[at],
            curves.coverage_lower[at],
            curves.coverage_upper[at],
            f"cross-fitted fraction of rows within the margin{of_rows}; range: Beta distribution of ranks",
        ),
        "mean_width": Score(
            2.0 * curves.margin[at],
            curves.width_lower[at],
            curves.width_upper[at],
            "width of the intervals; range: ranks, for any distribution",
        ),
        "interval_score": Score(
            curves.interval_score[at],
            curves.interval_score_lower[at],
            curves.interval_score_upper[at],
            f"cross-fitted width plus penalties for misses{of_rows}",
        ),
        "mae": Score(*absolute, "mean absolute error"),
        "rmse": Score(*roots, "root of the mean squared error"),
        "mean_error": Score(*signed, "mean residual, of target minus prediction"),
        "median_error": Score(*median, "median residual; range: ranks"),
        "r2": Score(*explained, fraction)
        if explained
        else Score(*unknown, f"{fraction}; none, as all targets are equal"),
    }


def _with_copies(name: str, score: Score, factor: float) -> Score:
    """A score whose range is wider by a factor, as rows are copies of others."""
    limits = (-math.inf if name in SIGNED else 0.0, 1.0 if name in AT_MOST_1 else math.inf)
    centre = None if name == "coverage" else score.value
    lower, upper = widened(centre, score.lower, score.upper, factor, limits)
    return replace(
        score, lower=float(lower), upper=float(upper), meaning=f"{score.meaning}; range widened for copies of rows"
    )


def _sample(target: Array, prediction: Array, residuals: Array, ordered: Array) -> Sample:
    """Some rows, and the residuals in bins that leave out the farthest of them."""
    m = len(residuals)
    shown = np.random.default_rng(m).choice(m, min(m, N_SHOWN), replace=False)
    some = residuals[some_rows(m, MAX_ROWS)]
    low, high = np.quantile(some, [0.002, 0.998])
    if not low < high:
        low, high = float(some.min()), float(some.max())
    if low == high:
        low, high = low - max(abs(low), 1.0) / 2.0, high + max(abs(high), 1.0) / 2.0
    n_bins = min(N_BINS, max(10, round(3.0 * m ** (1.0 / 3.0))))
    edges = np.linspace(low, high, n_bins + 1)
    counts = np.diff([*np.searchsorted(ordered, edges[:-1]), np.searchsorted(ordered, edges[-1], "right")])
    return Sample(
        floats(target[shown]),
        floats(prediction[shown]),
        floats(edges),
        tuple(counts.tolist()),
        m - int(counts.sum()),
    )
