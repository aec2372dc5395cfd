"""`measure`: how good is a model? One call on targets and predictions, and a result that speaks."""

from __future__ import annotations

import json
import math
import platform
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from pimeter._kernels.dispatch import kernel
from pimeter.arrays import some_rows
from pimeter.conformal.guarantee import rank_guarantee
from pimeter.coverage import checked_proportion, percent, quantile_ranks, rounded
from pimeter.diagnosis.checks import judged
from pimeter.diagnosis.columns import given
from pimeter.diagnosis.crossfit import coverage_ranges, ranks
from pimeter.diagnosis.evidence import (
    MAX_ROWS,
    Division,
    Evidence,
    Subgroup,
    checked_rows,
    cross_fitted,
    equal_rows,
    simultaneous_bounds,
)
from pimeter.encoding import built, digest, with_names
from pimeter.findings import Headline
from pimeter.moments import NORMAL, Middle, Moments, power_of_two
from pimeter.quantiles import quantile
from pimeter.results import Result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray

    from pimeter.diagnosis.crossfit import CrossFit
    from pimeter.duplicates import Copies
    from pimeter.moments import Range

    Array = NDArray[np.float64]

MOST_ROWS = 1_000_000  # of dask collections that come here
# Where a report's slider stops.
STOPS = (*(i / 100 for i in range(50, 100)), 0.995, 0.999)
FORMAT, VERSION = "pimeter.Measurement", 2
N_BINS = 60  # of the picture of the errors, at most
N_SHOWN = 400  # rows that pictures show
SURE = 0.9  # confidence of the ranges of scores, that of the headline


@dataclass(frozen=True)
class Score:
    """A score, and where it would lie for very many such rows, with 90 % confidence; NaN where that is not known."""

    value: float
    lower: float
    upper: float
    meaning: str


@dataclass(frozen=True)
class PartCurves:
    """Parts of the rows by one criterion: at each level their cross-fitted coverage and the radius of their own."""

    of: str
    labels: tuple[str, ...]
    rows: tuple[int, ...]
    coverage: tuple[tuple[float, ...], ...]  # (part, level)
    low: tuple[tuple[float, ...], ...]  # (part, level), where the true share lies, for all parts together ...
    high: tuple[tuple[float, ...], ...]
    radius: tuple[tuple[float, ...], ...]  # (part, level), learned from the rows of the part alone


@dataclass(frozen=True)
class Curves:
    """What there is to say at each level: the stops of a report, and the level asked for."""

    levels: tuple[float, ...]
    headlines: tuple[Headline, ...]
    radius: tuple[float, ...]
    coverage: tuple[float, ...]  # cross-fitted
    coverage_low: tuple[float, ...]
    coverage_high: tuple[float, ...]
    guaranteed_level: tuple[float, ...]
    width_low: tuple[float, ...]  # ends of the scores' ranges
    width_high: tuple[float, ...]
    interval_score: tuple[float, ...]  # cross-fitted
    interval_score_low: tuple[float, ...]
    interval_score_high: tuple[float, ...]
    lower_quantile: tuple[float, ...]  # of the signed errors, by the neuron, at (1 - level) / 2
    upper_quantile: tuple[float, ...]  # ... and at (1 + level) / 2
    parts: tuple[PartCurves, ...]  # fifths of the prediction, then categories


@dataclass(frozen=True)
class Sample:
    """What pictures show: some rows in random order, and how all errors are distributed."""

    y_true: tuple[float, ...]
    y_pred: tuple[float, ...]
    bin_edges: tuple[float, ...]  # of the errors, target minus prediction
    bin_counts: tuple[int, ...]
    n_beyond: int  # errors outside of the bins


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Measurement(Result):
    """How good a model is: what `measure` found, as plain numbers and words.

    Attributes
    ----------
    headline : Headline
        The answer: a claim and its evidence.
    diagnosis : Diagnosis
        Findings, advice and code.
    confidence_level : float
        Share of new targets that intervals shall cover.
    n_rows, n_folds : int
        Number of rows, and of folds for cross-fitting.
    radius : tuple of float
        How far intervals reach below and above the prediction, learned from all rows.
    coverage : float
        Cross-fitted share of rows within the radius: each row is judged by a radius that has not seen it. NaN if there
        is one row alone.
    coverage_range : tuple of float
        5 % and 95 % points of the true coverage of `radius`, by the Beta law of ranks; where some errors are alike, the
        upper one is that of the next larger error.
    guaranteed_level : float
        Coverage that is promised on average: the confidence level, or what so few rows can promise; NaN, not known, if
        rows are copies of others. All ranges but those of the diagnosis are then wider by a factor that accounts for
        them, approximately.
    mean_width : float
        Width of the intervals.
    scores : dict of str to Score
        Each with its range; `meaning` says what it is.
    subgroups : tuple of Subgroup
        Cross-fitted coverage across quintiles of the prediction and of each feature, and per category.
    recommended_width, recommended_tails : str
        What `IntervalRegressor` should use.
    curves : Curves
        The same numbers at levels .50 to .99 by .01, .995 and .999, also for parts of the rows.
    sample : Sample
        What pictures show.
    versions : dict of str to str
        What made the numbers.
    """

    confidence_level: float
    n_rows: int
    n_folds: int
    radius: tuple[float, float]
    coverage: float
    coverage_range: tuple[float, float]
    guaranteed_level: float
    mean_width: float
    scores: dict[str, Score]
    subgroups: tuple[Subgroup, ...]
    recommended_width: str
    recommended_tails: str
    curves: Curves
    sample: Sample
    versions: dict[str, str]

    def _table(self) -> dict[str, Any]:
        """The scores with their ranges."""
        rows = [asdict(score) for score in self.scores.values()]
        return {"score": [*self.scores], **{key: [row[key] for row in rows] for key in rows[0]}}

    def _page(self, about: Mapping[str, str]) -> str:
        """A page with a slider for the confidence level."""
        from pimeter.report.page import page_html

        return page_html(self.to_dict(), about)

    def to_json(self) -> str:
        """Everything as JSON text, which `from_json` turns into the same bits again."""
        values = with_names(self.to_dict())
        return json.dumps(
            {"format": FORMAT, "version": VERSION, "sha256": digest(values), "measurement": values}, allow_nan=False
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote; nothing is executed.

        Raises
        ------
        ValueError
            If the text is not such JSON, of another version, or was changed.
        """
        try:
            held = json.loads(text)
        except (TypeError, ValueError, RecursionError) as why:
            msg = f"text is not JSON: {why}. Give what to_json() returned."
            raise ValueError(msg) from why
        if not isinstance(held, dict) or held.get("format") != FORMAT:
            msg = f"text is JSON, but not a measurement: its format is not {FORMAT!r}. Give what to_json() returned."
            raise ValueError(msg)
        if held.get("version") != VERSION or isinstance(held["version"], bool):
            msg = (
                f"text is a measurement of version {held.get('version')!r}; this pimeter reads version {VERSION}. "
                "Measure again, or use the pimeter that wrote it."
            )
            raise ValueError(msg)
        values = held.get("measurement")
        if held.get("sha256") != digest(values):
            msg = "text was changed after it was written: its check sum does not fit. Measure again."
            raise ValueError(msg)
        found: Self = built(cls, values, "measurement")
        if found.confidence_level not in found.curves.levels:
            msg = "text is not a complete measurement: its curves leave out its own confidence level."
            raise ValueError(msg)
        return found

    def plot(self, axes: NDArray[Any] | None = None) -> NDArray[Any]:
        """Four pictures: the errors, coverage against level, coverage in parts of the rows, errors by prediction.

        Parameters
        ----------
        axes : array of four matplotlib axes, optional
            Where to draw; None makes a new figure.

        Returns
        -------
        ndarray of shape (2, 2)
            The axes.
        """
        from pimeter.report.plots import draw_overview

        return draw_overview(self.to_dict(), axes)

    def plot_coverage(self, ax: Axes | None = None) -> Axes:
        """Cross-fitted coverage against the level asked for, on new axes or those given."""
        from pimeter.report.plots import draw_coverage

        return draw_coverage(self.to_dict(), ax)

    def plot_intervals(self, ax: Axes | None = None) -> Axes:
        """Targets of some rows with their intervals, in the order of the prediction, on new axes or those given."""
        from pimeter.report.plots import draw_intervals

        return draw_intervals(self.to_dict(), ax)


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
        Features, to find out where the model is weak: numbers, dates (also in words, from the year down) or categories,
        missing values allowed. Columns that tell each row from all others, such as ids, are left out and named.
    by : array-like of shape (m,), optional
        A category of each row, each of which shall be covered.
    confidence_level : float, default=0.95
        Share of new targets that intervals shall cover, between 0 and 1.

    Returns
    -------
    Measurement
        Radius, coverage, scores with their own uncertainty, diagnosis and advice; it prints as words and draws itself.

    Raises
    ------
    ValueError
        If shapes do not fit, nothing is given, or a target or prediction is NaN, infinite or no number.

    Notes
    -----
    Every coverage is cross-fitted in ``min(10, m)`` folds: on its own rows a radius covers exactly k of m, whatever the
    data. With more than 5,000 rows the features, skew, tails, the target's steps and the drift are judged on 5,000 of
    them, drawn at random with a fixed seed and kept in their order, and the scaled width on 2,000 of these; serial
    dependence on the first 5,000 (`Finding.rows`). All else uses all rows.

    Dask arrays, series and frames of more than a million rows stay where they are and are read three times. `n_rows`,
    radii and their ranges (right to 2e-8 of themselves), what is promised, and the scores but for two are of all rows;
    where errors are alike, the upper end of the true share may be larger than in memory.
    What looks at single rows is of a million of them, drawn at random from each partition by its share: coverage and
    interval score (cross-fitted), parts of the rows, diagnosis and pictures; `Finding.rows` says so. The quantiles of
    the signed errors are order statistics then, not smoothed.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter import measure
    >>> rng = np.random.default_rng(0)
    >>> y_pred = rng.uniform(10, 20, size=442)
    >>> result = measure(y_pred + rng.normal(scale=1.6, size=442), y_pred)
    >>> print(result)
    95 % of future errors are expected within ±2.96. With 442 rows the true share lies between 93 and 97 % (90 %
    confidence), if new rows resemble these.
    <BLANKLINE>
    Nothing to do: a constant width with symmetric tails is enough.
    IntervalRegressor(model, width="constant", tails="symmetric")
    >>> round(result.scores["mae"].value, 2), result.to_frame().shape
    (1.21, (8, 5))
    """
    level = checked_proportion("confidence_level", confidence_level)
    levels = np.array(sorted({*STOPS, level}))
    found = None
    if type(y_true).__module__.partition(".")[0] == "dask":
        from pimeter._kernels.dask_rows import read_rows

        asked = partial(_asked, levels)
        found = read_rows([y_true, y_pred, X, by], MOST_ROWS, checked_rows, asked, _middle)
        y_true, y_pred, X, by = found.sample
    target, prediction, errors = checked_rows(y_true, y_pred)
    m = len(target)
    known = given(X, by, m, some_rows(m, MAX_ROWS))
    at = int(np.searchsorted(levels, level))
    fit, named = cross_fitted(errors, prediction, known.labels, levels)
    ordered = kernel.sorted_groups(errors)[0]
    equal = equal_rows(target, prediction, X)
    if found is not None:
        equal = equal.of_sample(found.n)
    evidence = Evidence(target, prediction, errors, ordered, fit, at, known, named, equal)
    judgement = judged(evidence)
    curves = _curves(errors, fit, named, len(evidence.subgroups))
    bias = judgement.diagnosis["bias"]
    median, moments, of_rows = (bias.value, bias.lower, bias.upper), None, ""
    if found is not None and found.n > m:
        curves = replace(curves, **_of_all(levels, found))
        low, before, after, high = found.signed[-4:].tolist()
        median, moments, of_rows = (before / 2 + after / 2, low, high), found.sums, f", of {m:,} rows drawn at random"
    if moments is None:
        moments = Middle.of(target, errors, fit.largest)(target, errors)
    scores = _scores(moments, curves, at, median, of_rows)
    if equal.n:
        curves = _with_copies(curves, moments.m, equal)
        scores = {name: _widened(name, score, equal.factor) for name, score in scores.items()}
    radius = curves.radius[at]
    return Measurement(
        headline=curves.headlines[at],
        diagnosis=judgement.diagnosis,
        confidence_level=level,
        n_rows=moments.m,
        n_folds=len(fit.radii),
        radius=(radius, radius),
        coverage=curves.coverage[at],
        coverage_range=(curves.coverage_low[at], curves.coverage_high[at]),
        guaranteed_level=curves.guaranteed_level[at],
        mean_width=2.0 * radius,
        scores=scores,
        subgroups=evidence.subgroups,
        recommended_width=judgement.width,
        recommended_tails=judgement.tails,
        curves=curves,
        sample=_sample(target, prediction, errors, ordered),
        versions=dict(_versions()),
    )


def _asked(levels: Array, n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Ranks among n rows: of sizes, for radii, ends of their ranges and neighbours; of errors, for tails and median."""
    low, high, _ = quantile_ranks(n, 0.5, SURE)
    tails = np.clip(np.ceil(n * _tails(levels)), 1, n)
    kept = ranks(n, levels)
    return (
        np.clip(np.concatenate([kept, _range_ranks(n, levels)[0].ravel(), kept - 1, kept + 1]), 1, n),
        np.concatenate([tails, [low, (n + 1) // 2, n // 2 + 1, high]]).astype(np.intp),
    )


def _middle(ends: Any) -> Middle:
    """From a first look at rows of dask collections."""
    unit, target_unit = power_of_two(ends.largest), power_of_two(max(ends.high - ends.low, ends.largest))
    size, error, target = ends.means
    near = np.array([size / unit, (size / unit) ** 2, error / unit])
    middle = (target - ends.low) / target_unit
    near_target = np.array([(size / target_unit) ** 2, 0.0])
    return Middle(unit, near, target_unit, ends.low, middle, near_target, ends.low == ends.high)


def _of_all(levels: Array, found: Any) -> dict[str, tuple[Any, ...]]:
    """Curves of all rows of dask collections, from their order statistics."""
    radius, reaches, _ = np.split(found.absolute, [len(levels), 3 * len(levels)])
    known, first = np.unique(_asked(levels, found.n)[0], return_index=True)
    sizes = found.absolute[first]
    low, high = (np.searchsorted(sizes, radius, side) for side in ("left", "right"))
    is_tied = bool((np.diff(sizes) == 0.0).any())
    reached = np.where(is_tied, np.append(known, found.n + 1)[high], known[low])
    shares = coverage_ranges(found.n, levels, reached)
    lower, upper = np.split(found.signed[:-4], 2)
    return _level_numbers(found.n, levels, radius, reaches.reshape(-1, 2), shares) | {
        "lower_quantile": _floats(lower),
        "upper_quantile": _floats(upper),
    }


@cache
def _versions() -> tuple[tuple[str, str], ...]:
    """Of what makes the numbers."""
    packages = ("pimeter", "numpy", "scipy", "scikit-learn")
    return ("python", platform.python_version()), *((name, version(name)) for name in packages)


def _curves(errors: Array, fit: CrossFit, named: list[Division], n_parts: int) -> Curves:
    """All that depends on the level, at each level."""
    m = len(errors)
    radius = fit.radius
    coverage = named[0].covered.inside.sum(axis=0) / m if m > 1 else np.full(len(radius), np.nan)
    lower, upper = np.split(np.asarray(quantile(errors, _tails(fit.levels))), 2)
    ends = fit.order_statistics(_range_ranks(m, fit.levels)[0].ravel())
    score, error = fit.mean_interval_scores()
    return Curves(
        levels=_floats(fit.levels),
        **_level_numbers(m, fit.levels, radius, ends.reshape(-1, 2), fit.coverage_ranges),
        coverage=_floats(coverage),
        interval_score=_floats(score),
        interval_score_low=_floats(score - NORMAL * error),
        interval_score_high=_floats(score + NORMAL * error),
        lower_quantile=_floats(lower),
        upper_quantile=_floats(upper),
        parts=tuple(_part_curves(part, m, n_parts) for part in named),
    )


def _tails(levels: Array) -> Array:
    """Levels of the signed errors: lower ends, then upper ones."""
    return np.concatenate([(1.0 - levels) / 2.0, (1.0 + levels) / 2.0])


def _range_ranks(m: int, levels: Array) -> tuple[NDArray[np.intp], Array]:
    """Ranks of the ends of the ranges of radii, (levels, 2), and how sure these ranges are."""
    found = np.array([quantile_ranks(m, float(p), SURE) for p in levels])
    return found[:, :2].astype(np.intp), found[:, 2]


def _level_numbers(m: int, levels: Array, radius: Array, reaches: Array, shares: Array) -> dict[str, tuple[Any, ...]]:
    """What m rows say at each level, with their radii, the ends of ranges of these, and those of true coverage."""
    promises = [rank_guarantee(m, float(p)) for p in levels]
    is_known = _range_ranks(m, levels)[1] >= SURE  # a range for any law, if these rows can tell it
    widths = np.where(is_known[:, None], 2.0 * reaches, math.nan)
    return {
        "headlines": tuple(
            _headline(m, float(p), float(r), made.level, made.needed, (float(low), float(high)))
            for p, r, made, (low, high) in zip(levels, radius, promises, shares, strict=True)
        ),
        "radius": _floats(radius),
        "coverage_low": _floats(shares[:, 0]),
        "coverage_high": _floats(shares[:, 1]),
        "guaranteed_level": tuple(made.level for made in promises),
        "width_low": _floats(widths[:, 0]),
        "width_high": _floats(widths[:, 1]),
    }


def _part_curves(part: Division, m: int, n_parts: int) -> PartCurves:
    """Coverage of parts as shares; NaN without rows, or if there is one row in all."""
    rows, inside, radius = part.covered
    with np.errstate(invalid="ignore"):
        coverage = inside / np.where(rows, rows, math.nan)[:, None] if m > 1 else np.full(inside.shape, np.nan)
    low, high = simultaneous_bounds(inside, rows[:, None], n_parts) if m > 1 else (coverage, coverage)
    shares = (tuple(map(_floats, values)) for values in (coverage, low, high, radius))
    return PartCurves(part.of, part.labels, tuple(rows.tolist()), *shares)


def _headline(m: int, level: float, radius: float, promised: float, needed: int, ends: tuple[float, float]) -> Headline:
    """The answer in words, also where rows are too few for the level."""
    rows = "1 row" if m == 1 else f"{m:,} rows"
    if m < needed:
        first = (
            f"{rows} {'is' if m == 1 else 'are'} too few to promise {percent(level)}; {needed} are needed. "
            f"{percent(promised)} of future errors are expected within ±{radius:.3g}, the largest error seen."
        )
    else:
        first = f"{percent(level)} of future errors are expected within ±{radius:.3g}."
    low, high = _range_text(*ends)
    return Headline(
        first,
        f"With {rows} the true share lies between {low} and {high} % (90 % confidence), if new rows resemble these.",
    )


def _range_text(low: float, high: float) -> tuple[str, str]:
    """Both ends in per cent, with as many decimals as it takes to tell them apart, and from 0 and 100."""
    decimals = max(0, math.ceil(-math.log10(max(100.0 * (high - low), 1e-6))))
    low_text, high_text = (
        text if share in {0.0, 1.0} or 0.0 < float(text) < 100.0 else rounded(100.0 * share, 2, whole=100.0)
        for share, text in ((share, f"{100.0 * share:.{decimals}f}") for share in (low, high))
    )
    return low_text, high_text


def _scores(moments: Moments, curves: Curves, at: int, median: Range, of_rows: str) -> dict[str, Score]:
    """Scores at the level asked for, each with its range; `of_rows` says which rows cross-fitting took."""
    within = f"cross-fitted share of rows within the radius{of_rows}; range: Beta law of ranks"
    explained = moments.explained()
    sizes, roots, signed = moments.errors()
    meaning = "share of the targets' variance that the model explains (R squared)"
    return {
        "coverage": Score(curves.coverage[at], curves.coverage_low[at], curves.coverage_high[at], within),
        "mean_width": Score(
            2.0 * curves.radius[at],
            curves.width_low[at],
            curves.width_high[at],
            "width of the intervals; range: ranks, for any law",
        ),
        "interval_score": Score(
            curves.interval_score[at],
            curves.interval_score_low[at],
            curves.interval_score_high[at],
            f"cross-fitted width plus fines for misses{of_rows}",
        ),
        "mae": Score(*sizes, "mean absolute error"),
        "rmse": Score(*roots, "root of the mean squared error"),
        "mean_error": Score(*signed, "mean of target minus prediction"),
        "median_error": Score(*median, "median of target minus prediction; range: ranks"),
        "r2": Score(*explained, meaning)
        if explained
        else Score(math.nan, math.nan, math.nan, f"{meaning}; none, as all targets are alike"),
    }


def _with_copies(curves: Curves, m: int, equal: Copies) -> Curves:
    """The same where rows are copies of others: nothing is guaranteed, and ranges are wider by a factor."""
    factor = equal.factor
    note = f"But {equal}: nothing is guaranteed, and the range is widened by a factor of {factor:.3g}."
    rows = zip(
        curves.levels, curves.radius, curves.guaranteed_level, curves.coverage_low, curves.coverage_high, strict=True
    )
    shares, headlines = [], []
    for level, radius, promised, low, high in rows:
        shares.append(_stretched((low + high) / 2.0, low, high, factor, (0.0, 1.0)))
        said = _headline(m, level, radius, promised, rank_guarantee(m, level).needed, shares[-1])
        headlines.append(replace(said, evidence=f"{said.evidence} {note}"))
    parts = []
    for part in curves.parts:
        ends = [
            [_stretched(*row, factor, (0.0, 1.0)) for row in zip(*of_part, strict=True)]
            for of_part in zip(part.coverage, part.low, part.high, strict=True)
        ]
        lows, highs = (tuple(tuple(pair[i] for pair in row) for row in ends) for i in (0, 1))
        parts.append(replace(part, low=lows, high=highs))
    widths = [
        _stretched(2.0 * radius, low, high, factor, (0.0, math.inf))
        for radius, low, high in zip(curves.radius, curves.width_low, curves.width_high, strict=True)
    ]
    scores = [
        _stretched(*row, factor, (0.0, math.inf))
        for row in zip(curves.interval_score, curves.interval_score_low, curves.interval_score_high, strict=True)
    ]
    return replace(
        curves,
        headlines=tuple(headlines),
        coverage_low=tuple(low for low, _ in shares),
        coverage_high=tuple(high for _, high in shares),
        guaranteed_level=(math.nan,) * len(curves.levels),
        width_low=tuple(low for low, _ in widths),
        width_high=tuple(high for _, high in widths),
        interval_score_low=tuple(low for low, _ in scores),
        interval_score_high=tuple(high for _, high in scores),
        parts=tuple(parts),
    )


def _widened(name: str, score: Score, factor: float) -> Score:
    """A score whose range is wider by a factor."""
    least = -math.inf if name in {"mean_error", "median_error", "r2"} else 0.0
    most = 1.0 if name in {"coverage", "r2"} else math.inf
    middle = (score.lower + score.upper) / 2.0 if name == "coverage" else score.value
    lower, upper = _stretched(middle, score.lower, score.upper, factor, (least, most))
    return replace(score, lower=lower, upper=upper, meaning=f"{score.meaning}; range widened for copies of rows")


def _stretched(
    middle: float, low: float, high: float, factor: float, limits: tuple[float, float]
) -> tuple[float, float]:
    """A range around a middle, wider by a factor, within limits; NaN stays NaN."""
    if math.isnan(low) or math.isnan(high) or math.isnan(middle):
        return low, high
    least, most = limits
    return max(least, middle - factor * (middle - low)), min(most, middle + factor * (high - middle))


def _sample(target: Array, prediction: Array, errors: Array, ordered: Array) -> Sample:
    """Some rows, and the errors in bins that leave out the farthest of them."""
    m = len(errors)
    shown = np.random.default_rng(m).choice(m, min(m, N_SHOWN), replace=False)
    some = errors[some_rows(m, MAX_ROWS)]
    low, high = np.quantile(some, [0.002, 0.998])
    if not low < high:
        low, high = float(some.min()), float(some.max())
    if low == high:
        low, high = low - max(abs(low), 1.0) / 2.0, high + max(abs(high), 1.0) / 2.0
    n_bins = min(N_BINS, max(10, round(3.0 * m ** (1.0 / 3.0))))
    edges = np.linspace(low, high, n_bins + 1)
    counts = np.diff([*np.searchsorted(ordered, edges[:-1]), np.searchsorted(ordered, edges[-1], "right")])
    return Sample(
        _floats(target[shown]),
        _floats(prediction[shown]),
        _floats(edges),
        tuple(counts.tolist()),
        m - int(counts.sum()),
    )


def _floats(values: Array) -> tuple[float, ...]:
    return tuple(float(value) for value in values)
