"""What the errors of a model say about it, one plain sentence each, and what to do."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from scipy.special import bdtr, bdtrc, betaincinv

from pimeter.arrays import real_array, some_rows
from pimeter.conformal.guarantee import rank_guarantee
from pimeter.coverage import percent, quantile_ranks, rows_needed
from pimeter.diagnosis import forest, order, symmetry
from pimeter.diagnosis.columns import Column, Given, categories, fifths
from pimeter.diagnosis.crossfit import Covered, CrossFit, interval_scores
from pimeter.duplicates import Copies, copies, row_keys
from pimeter.errors import signed_errors
from pimeter.findings import Diagnosis, Finding

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]

LARGEST = 1e305  # target or prediction, of which some can be added up
SOME = 5_000  # rows of the checks that would take long on all ...
LEARNED = 2_000  # ... and of those, the ones that a scaled width is tried on
# Each finding that rests on chance raises a false alarm this often at most; seven of them, so 2.1 % in all.
CHANCE = 0.003
SURE = 2.75  # standard errors of a normal law that chance exceeds that often, to one side
NORMAL_RATIO = 3.449  # of the 98 % point to the median of |error|, for normal errors ...
LOG_RATIO_ERROR = 1.5  # ... and the standard error of its logarithm, times the root of the number of rows
WITHIN = 0.02
GAP = 0.4  # least coverage gap worth a change of width, in units of 1 - p
GAIN = 0.05  # least gain of a scaled width worth the rows that it takes
BIAS = 0.05  # least median error worth a word, in radii
TAIL = 0.05  # share of the errors in each tail, or what intervals leave out there if that is more
LEANING = 0.075  # least skewness worth a change of tails: that of normal errors a fifth larger on one side
HEAVY = 4.5  # least ratio of the 98 % point to the median
AUTOCORRELATION = 0.1
SHIFT, CHANGE = 0.1, 1.25  # least drift worth a word: of the median, in radii; of the spread, as a ratio
STEP = 0.1  # least step between targets worth a word, in radii
FAR = 10.0  # interquartile ranges from the median: no normal error is ever there
ZEROS = 0.01  # share of errors that are exactly 0
FEWEST = 20  # rows, below which chance explains everything
NOWHERE = (math.nan, math.nan)

QUESTIONS = {
    "rows": "Are there enough rows for this level?",
    "alike": "Do targets and predictions vary?",
    "features": "What else of the rows was looked at?",
    "width": "Is a constant width enough?",
    "gain": "How much better is a width that follows the features?",
    "bias": "Is the model biased?",
    "skew": "Are the errors skewed?",
    "heavy": "Are the errors heavy-tailed?",
    "discrete": "Is the target discrete?",
    "outliers": "Are there outliers?",
    "zeros": "Are there copies of training rows?",
    "copies": "Are rows copies of others?",
    "drift": "Do the errors change in the course of the rows?",
    "serial": "Do errors depend on those shortly before?",
}

Widths = Literal["constant", "scaled", "grouped"]


def _finding(
    name: str,
    m: int,
    value: float,
    yardstick: float,
    sentence: str,
    advice: str = "",
    ends: tuple[float, float] = NOWHERE,
) -> Finding:
    return Finding(
        name=name,
        question=QUESTIONS[name],
        sentence=sentence,
        advice=advice,
        value=float(value),
        reference=float(yardstick),
        lower=ends[0],
        upper=ends[1],
        rows=m,
    )


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


class Judgement(NamedTuple):
    """What the residuals say about a model, and what `IntervalRegressor` should use."""

    diagnosis: Diagnosis
    subgroups: tuple[Subgroup, ...]
    width: str
    tails: str


def checked_rows(y_true: ArrayLike, y_pred: ArrayLike) -> tuple[Array, Array, Array]:
    """Targets, predictions and errors as columns of finite numbers."""
    target, prediction = real_array("y_true", y_true), real_array("y_pred", y_pred)
    target, prediction = (a[:, 0] if a.ndim == 2 and a.shape[1] == 1 else a for a in (target, prediction))
    errors = signed_errors(target, prediction)
    if target.ndim != 1:
        msg = f"y_true must have shape (m,); got {target.shape}. Measure each output by itself."
        raise ValueError(msg)
    largest = max(float(np.abs(values).max()) for values in (target, prediction))
    if largest > LARGEST:
        msg = f"y_true and y_pred must not exceed {LARGEST:g} in size; got {largest:g}. Use a larger unit."
        raise ValueError(msg)
    exact = {target.dtype, prediction.dtype} <= {np.dtype(np.float64)}
    target, prediction = (a.astype(np.float64, copy=False) for a in (target, prediction))
    return target, prediction, errors.astype(np.float64, copy=False) if exact else target - prediction


def equal_rows(target: Array, prediction: Array, X: Any) -> Copies:
    """Rows with the same features, where they are given, and target; else with the same pair, as ids hide copies."""
    if X is not None:
        found = copies(row_keys(X, target), X, target)
        if found.n:
            return found._replace(compared="X, y_true")
    pairs = copies(row_keys(prediction, target), None, target, prediction=prediction)
    if X is None or pairs.n:
        return pairs._replace(compared="np.column_stack([y_true, y_pred])")
    return found


class Named(NamedTuple):
    """Parts of all rows by one criterion, and how they are covered."""

    of: str
    labels: tuple[str, ...]
    covered: Covered


def cross_fitted(
    errors: Array, prediction: Array, labels: NDArray[Any] | None, levels: Array
) -> tuple[CrossFit, list[Named]]:
    """Radii at these levels, and coverage across fifths of the prediction and per category."""
    codes, names = fifths(prediction)
    fit = CrossFit.of(np.abs(errors), levels)
    named = [Named("prediction", names, fit.parts(codes, len(names)))]
    if labels is not None:
        codes, names = categories(labels)
        named.append(Named("by", names, fit.parts(codes, len(names))))
    return fit, named


def diagnosed(
    target: Array,
    prediction: Array,
    errors: Array,
    ordered: Array,
    fit: CrossFit,
    at: int,
    known: Given,
    named: list[Named],
    equal: Copies,
) -> Judgement:
    """All findings, for checked rows; columns are known of `SOME`, `at` is the place of the level asked about.

    `ordered` holds the errors in rising order.
    """
    table = known.columns
    level = float(fit.levels[at])
    rows = some_rows(len(errors), SOME)
    some = errors[rows]
    radius = float(fit.radius[at])
    counted = [(of, labels, found.rows, found.inside[:, at]) for of, labels, found in named]
    covered = fit.covered(rows, at)
    for column in table:
        codes, labels = column.parts
        n, inside = (np.bincount(held, minlength=len(labels)) for held in (codes, codes[covered]))
        counted.append((column.name, labels, n, inside))
    parts = _parts(counted) if len(errors) > 1 else ()
    usual = max(level, float(named[0].covered.inside[:, at].sum()) / len(errors))
    width, grouped = _width(parts, level, usual, len(errors), table)
    gain = _gain(some, prediction[rows], table, level)
    if width.raised or gain.raised:
        kind: Widths = "grouped" if grouped else "scaled"
    else:
        kind = "constant"
    discrete = _discrete(target[rows], radius)
    heavy = _heavy(some)
    if kind != "constant":
        heavy = replace(heavy, advice="")  # a spread that varies has heavy tails when all rows are taken together
    findings = (
        _rows(len(errors), level, fit.coverage_ranges[at], is_tied=bool(fit.is_tied[at])),
        _alike(target, prediction),
        _features(known, len(rows)),
        width,
        gain,
        _bias(ordered, radius),
        _skew(some, level),
        heavy,
        discrete,
        _outliers(ordered),
        _zeros(target, errors, radius, discrete.raised),
        _copies(equal, len(errors)),
        _drift(some, radius),
        _serial(errors[:SOME]),
    )
    raised = {finding.name for finding in findings if finding.raised}
    enough = rank_guarantee(len(errors), level, n_cuts=2).is_enough
    tails = "equal" if raised & {"bias", "skew"} and enough else "symmetric"
    code = _code(level, grouped or f'"{kind}"', tails, is_ordered=bool(raised & {"drift", "serial"}))
    otherwise = "Nothing to do: a constant width with symmetric tails is enough."
    return Judgement(Diagnosis.of(findings, otherwise, code), parts, kind, tails)


def _code(level: float, width: str, tails: str, *, is_ordered: bool) -> str:
    """A line to paste."""
    if is_ordered:
        return f"OnlineNeuron(confidence_level={level})"
    asked = "" if level == 0.95 else f"confidence_level={level}, "
    return f'IntervalRegressor(model, {asked}width={width}, tails="{tails}")'


def _parts(counted: list[tuple[str, tuple[str, ...], NDArray[np.intp], NDArray[np.intp]]]) -> tuple[Subgroup, ...]:
    """Coverage of each part, with intervals that hold together (Clopper-Pearson, chance shared out equally)."""
    known = [
        (of, label, int(n), int(inside))
        for of, labels, rows, insides in counted
        for label, n, inside in zip(labels, rows, insides, strict=True)
        if n
    ]
    *_, rows, inside = (np.array(column) for column in zip(*known, strict=True))
    low, high = together(inside, rows, len(known))
    return tuple(
        Subgroup(of, label, n, within / n, float(least), float(most))
        for (of, label, n, within), least, most in zip(known, low, high, strict=True)
    )


def together(inside: NDArray[np.intp], rows: NDArray[np.intp], n_parts: int) -> tuple[Array, Array]:
    """Ends of intervals of shares that hold for so many parts together; (0, 1) for a part without rows."""
    tail = CHANCE / 2 / n_parts
    low = np.where(inside > 0, betaincinv(np.maximum(inside, 1), rows - inside + 1, tail), 0.0)
    high = np.where(inside < rows, betaincinv(inside + 1, np.maximum(rows - inside, 1), 1.0 - tail), 1.0)
    return low, high


def _percent(share: float) -> str:
    return percent(share, 3)


def _count(m: int) -> str:
    return "1 row is" if m == 1 else f"{m:,} rows are"


def _is_constant(values: Array) -> bool:
    return bool(values.min() == values.max())


def _rows(m: int, level: float, share: Array, *, is_tied: bool) -> Finding:
    """Whether the rows can promise the level, and how many would say it precisely."""
    kept = rank_guarantee(m, level)
    wanted = rows_needed(level, WITHIN)
    low, high = share.tolist()
    reach = max(level - low, high - level)
    sentence = f"{_count(m)} enough to promise {_percent(level)} on average. "
    advice = ""
    if not kept.is_enough:
        sentence = (
            f"{_count(m)} too few to promise {_percent(level)}: they can promise {_percent(kept.level)}, and "
            f"{kept.needed} are needed. "
        )
        advice = (
            f"Hold out more rows: {kept.needed} to promise {_percent(level)}, {wanted} to come within 2 points of it."
        )
    if is_tied:
        sentence += f"The true share is between {_percent(low)} and {_percent(high)}, as errors are tied at the radius."
    else:
        sentence += f"The true share is within {100 * reach:.2g} points of it"
        sentence += f"; with {wanted:,} rows it would be within 2." if reach > WITHIN else "."
    return _finding("rows", m, m, kept.needed, sentence, advice, (low, high))


def _alike(target: Array, prediction: Array) -> Finding:
    """Whether there is anything to learn from targets and predictions."""
    m = len(target)
    same = [name for name, values in (("targets", target), ("predictions", prediction)) if _is_constant(values)]
    if not same or m == 1:
        sentence = "Targets and predictions vary." if m > 1 else "One row cannot vary."
        return _finding("alike", m, 0, 0, sentence)
    which = " and all ".join(same)
    sentence = f"All {which} are alike, so this says next to nothing about a model."
    return _finding("alike", m, len(same), 0, sentence, f"Measure rows whose {' and '.join(same)} differ.")


def _features(known: Given, m: int) -> Finding:
    """What was looked at beside the predictions, and what was not."""
    n = len(known.columns) + (known.labels is not None)
    sentence = f"{n:,} {'column was' if n == 1 else 'columns were'} looked at beside the prediction."
    return _finding("features", m, len(known.left_out), 0, " ".join([sentence, *known.left_out]))


def _width(parts: tuple[Subgroup, ...], level: float, usual: float, m: int, table: list[Column]) -> tuple[Finding, str]:
    """Coverage gap of the part with the strongest evidence, and code of a grouped width if categories explain it.

    Ties lift the coverage of all rows, `usual`, above the level: a part is covered too well only if it is above both.
    """
    if len(parts) < 2 or m < FEWEST:
        why = f"{_count(m)} too few" if m < FEWEST else "There are no parts of the rows"
        return _finding("width", m, math.nan, 0.0, f"{why} to say anything about coverage in parts of them."), ""
    # The largest gap that chance does not explain; without one the gap that is largest beside its interval.
    due = {part: min(max(part.coverage, level), usual) for part in parts}
    sure = [part for part in parts if not part.lower <= due[part] <= part.upper]
    worst = max(sure or parts, key=lambda part: abs(part.coverage - due[part]) / (1.0 if sure else _reach(part, level)))
    gap = worst.coverage - due[worst]
    ends = (worst.lower - due[worst], worst.upper - due[worst])
    what = "the prediction" if worst.of == "prediction" else worst.of
    place = f"where {what} is {worst.label}" if worst.of != "by" else f"in category {worst.label}"
    sentence = (
        f"Cross-fitted coverage differs most from {_percent(due[worst])} {place}: {_percent(worst.coverage)} of "
        f"{worst.rows:,} rows (between {_percent(worst.lower)} and {_percent(worst.upper)}, with "
        f"{_percent(1 - CHANCE)} confidence for all {len(parts)} parts together)"
    )
    if not sure:
        return _finding("width", m, gap, 0.0, f"{sentence}, which chance explains.", ends=ends), ""
    if abs(gap) < GAP * (1.0 - level):
        return _finding("width", m, gap, 0.0, f"{sentence}, too little to matter.", ends=ends), ""
    own = next((f"GroupedWidth(by={c.place!r})" for c in table if c.name == worst.of and not c.is_numeric), "")
    grouped = '"grouped"' if worst.of == "by" else own
    advice = f"A constant width is not enough {place}: coverage is {_percent(worst.coverage)} there. "
    if not grouped:
        advice += "Let the width follow the features."
    else:
        passed = ", and pass by= to calibrate and predict_interval" if worst.of == "by" else ""
        advice += f"Give each category a neuron of its own{passed}."
    return _finding("width", m, gap, 0.0, f"{sentence}.", advice, ends), grouped


def _reach(part: Subgroup, level: float) -> float:
    """How far the interval of a part reaches from its coverage towards the level."""
    return max(part.upper - part.coverage if part.coverage < level else part.coverage - part.lower, 1e-12)


def _gain(errors: Array, prediction: Array, table: list[Column], level: float) -> Finding:
    """Interval score of a scaled width against a constant one, on rows that neither of them has seen."""
    rows = some_rows(len(errors), LEARNED)
    errors, prediction, m = errors[rows], prediction[rows], len(rows)
    if m < 2 * FEWEST or _is_constant(np.abs(errors)):
        why = f"{_count(m)} too few to learn one" if m < 2 * FEWEST else "all errors have the same size"
        return _finding("gain", m, math.nan, 0.0, f"What a scaled width would gain is not known: {why}.")
    sizes = np.abs(errors) / np.abs(errors).max()
    bins = forest.binned([*(column.numbers[rows] for column in table), prediction])  # what a scaled width sees, too
    rng = np.random.default_rng(m)
    halves = np.array_split(rng.permutation(m), 2)
    scaled, constant = np.empty((2, m))
    for learned, judged in (halves, halves[::-1]):
        learned_scale = forest.learned_scale(bins, sizes, learned, rng)[judged]
        for scores, scale in ((scaled, learned_scale), (constant, 1.0)):
            fit = CrossFit.of(sizes[judged] / scale, np.array([level]))
            scores[judged] = interval_scores(sizes[judged], fit.radii[fit.fold, 0] * scale, level)
    less = constant - scaled
    base = float(constant.mean())
    gain = float(less.mean()) / base
    reach = SURE * float(less.std(ddof=1)) / math.sqrt(m) / base
    ends = (gain - reach, gain + reach)
    sentence = (
        f"A scaled width {'lowers' if gain > 0 else 'raises'} the interval score by {_percent(abs(gain))} (gain "
        f"between {_percent(ends[0])} and {_percent(ends[1])})"
    )
    if ends[0] <= 0.0 or gain < GAIN:
        return _finding("gain", m, gain, 0.0, f"{sentence}: not worth the rows that it takes to learn.", ends=ends)
    advice = f"Let the width follow the features: that lowers the interval score by {_percent(gain)}."
    return _finding("gain", m, gain, 0.0, f"{sentence}.", advice, ends)


def _bias(ordered: Array, radius: float) -> Finding:
    """Sign test on the median error."""
    m = len(ordered)
    low, high, exact = quantile_ranks(m, 0.5, 0.9)
    least, *middle, most = ordered[np.array([low, (m + 1) // 2, m // 2 + 1, high]) - 1]
    median = float(middle[0] / 2 + middle[1] / 2)
    ends = (float(least), float(most))
    n_below, n_above = int(np.searchsorted(ordered, 0.0)), m - int(np.searchsorted(ordered, 0.0, "right"))
    sentence = f"The median error is {median:.3g}"
    if m < FEWEST:
        return _finding("bias", m, median, 0.0, f"{sentence}, but {_count(m)} too few to tell it from 0.", ends=ends)
    sentence += f" (between {ends[0]:.3g} and {ends[1]:.3g} with {_percent(exact)} confidence)"
    if n_above + n_below == 0 or _sign_test(n_above, n_below) > CHANCE:
        return _finding("bias", m, median, 0.0, f"{sentence}, which chance explains.", ends=ends)
    if abs(median) < BIAS * radius:
        return _finding("bias", m, median, 0.0, f"{sentence}, too little to matter.", ends=ends)
    side, much = ("above", "little") if median > 0 else ("below", "much")
    advice = (
        f"Half of the targets are {abs(median):.3g} or more {side} their prediction: the model predicts too {much}. "
        "Mend it, or let the two ends of the interval learn by themselves."
    )
    return _finding("bias", m, median, 0.0, f"{sentence}.", advice, ends)


def _sign_test(n_above: int, n_below: int) -> float:
    """How often a fair coin falls at least as unevenly."""
    return min(1.0, 2.0 * float(bdtr(min(n_above, n_below), n_above + n_below, 0.5)))


def _skew(errors: Array, level: float) -> Finding:
    """Hogg's skewness, and a test for symmetry around an unknown middle."""
    m = len(errors)
    share = max((1.0 - level) / 2.0, TAIL)
    if m < FEWEST or _is_constant(errors):
        why = f"{_count(m)} too few" if m < FEWEST else "Errors that are all alike are too little"
        return _finding("skew", m, math.nan, 0.0, f"{why} to tell whether errors are skewed.")
    found = symmetry.tails(errors, share)
    skewness, upper, lower, middle = (float(values[0]) for values in (found.skewness, *found))
    sentence = (
        f"On average the largest {_percent(share)} of the errors lie {upper - middle:.3g} above the mean of the middle "
        f"half, the smallest {middle - lower:.3g} below it"
    )
    if abs(skewness) < LEANING:
        return _finding("skew", m, skewness, 0.0, f"{sentence}; they differ too little to matter.")
    if symmetry.p_value(errors, share) > CHANCE:
        return _finding("skew", m, skewness, 0.0, f"{sentence}, which chance explains.")
    farther, less = ("above", "below") if skewness > 0.0 else ("below", "above")
    advice = f"Errors reach farther {farther} than {less}: let the two ends of the interval learn by themselves."
    return _finding("skew", m, skewness, 0.0, f"{sentence}: errors are skewed.", advice)


def _heavy(errors: Array) -> Finding:
    """How far the 98 % point of the sizes is from their median, against normal errors."""
    m = len(errors)
    sizes = np.abs(errors - np.median(errors))
    half, far = np.quantile(sizes, [0.5, 0.98], method="hazen")
    if m < 2.5 * FEWEST or half <= np.finfo(np.float64).tiny * far:
        why = "Half of the errors or more are alike" if m >= 2.5 * FEWEST else f"{_count(m)} too few to know the tails"
        return _finding("heavy", m, math.nan, NORMAL_RATIO, f"{why}.")
    # Quantiles of sizes in steps jump from one to the next, and their ratio by as much. A line through the middles of
    # the jumps does not, and is the same where no two sizes are alike: what both say is no matter of steps.
    values, counts = np.unique(sizes, return_counts=True)
    half_way, far_way = np.interp([0.5, 0.98], (np.cumsum(counts) - counts / 2.0) / m, values)
    ratio = float(min(far / half, far_way / half_way))
    chance = NORMAL_RATIO * math.exp(SURE * LOG_RATIO_ERROR / math.sqrt(m))
    sentence = f"The 98 % point of the errors' sizes is {ratio:.3g} times their median; for normal errors it is 3.45."
    advice = ""
    if ratio > max(chance, HEAVY):
        advice = (
            "Errors are heavy-tailed: judge the model by its median error and its radius rather than by RMSE, and "
            "expect rare errors far outside of the intervals. Coverage is not affected."
        )
    return _finding("heavy", m, ratio, NORMAL_RATIO, sentence, advice)


def _distinct(values: Array, largest: float) -> Array:
    """Values in order, once each; those that differ by rounding alone, of numbers up to the largest, count as one."""
    found = np.unique(values)
    return np.asarray(found[np.diff(found, prepend=-math.inf) > 4.0 * np.spacing(largest)])


def _step(distinct: Array, largest: float) -> float:
    """Step of the grid that distinct values lie on: the least distance, if all are multiples of it; NaN if not."""
    if len(distinct) < 3:
        return math.nan
    from_first = distinct - distinct[0]
    places = np.round(from_first / np.diff(distinct).min())
    step = float(from_first[-1] / places[-1])
    rounding = 1e-6 * step + float(np.finfo(np.float32).eps) * largest  # they may have been float32
    is_grid = np.abs(from_first - places * step).max() <= min(rounding, 0.01 * step)
    return step if is_grid else math.nan


def _discrete(target: Array, radius: float) -> Finding:
    """Number of distinct targets, and how coarse they are beside the radius."""
    m, largest = len(target), float(np.abs(target).max())
    distinct = _distinct(target, largest)
    n, step = len(distinct), _step(distinct, largest)
    sentence = f"{n:,} of {m:,} targets are distinct"
    gap = step if step >= STEP * radius else float(np.median(np.diff(distinct))) if n > 1 else 0.0
    if m < FEWEST or n > m / 2 or n == 1 or gap < STEP * radius:
        return _finding("discrete", m, n, m, f"{sentence}.")
    if gap == step:
        sentence += f", in steps of {step:.3g}"
        advice = (
            f"The target comes in steps of {step:.3g}: move the ends of intervals inwards to the nearest possible "
            "value, which loses no coverage."
        )
    else:
        advice = (
            f"The target takes few values, {n:,} in these rows, in no common steps: move the ends of intervals inwards "
            "to the nearest of them, which loses no coverage if no others can occur."
        )
    advice += " Where predictions are discrete, too, intervals cover more than the level."
    return _finding("discrete", m, n, m, f"{sentence}: the target is discrete.", advice)


def _outliers(ordered: Array) -> Finding:
    """Errors farther from the median than any usual noise explains, among all rows: they are rare."""
    m = len(ordered)
    places = 1.0 + (m - 1) * np.array([0.25, 0.5, 0.75])
    ranks = np.array([1, *np.floor(places), *np.ceil(places), m], np.intp)
    least, *inner, most = ordered[ranks - 1].tolist()
    low, median, high = (a + (b - a) * t for a, b, t in zip(inner[:3], inner[3:], places % 1.0, strict=True))
    reach = FAR * (high - low)
    n = 0
    if high > low and m >= FEWEST:
        n_up_to = int(np.searchsorted(ordered, median + reach, "right"))
        n = int(np.searchsorted(ordered, median - reach)) + m - n_up_to
    sentence = f"{n:,} of {m:,} errors are farther than {FAR:.0f} interquartile ranges from the median."
    advice = ""
    if n:
        worst = max(least, most, key=lambda error: abs(error - median))
        advice = (
            f"Look at the {n:,} rows with extreme errors, such as {worst:.3g}: a slip in the data, or a rare event?"
        )
    return _finding("outliers", m, n, 0, sentence, advice)


def _zeros(target: Array, errors: Array, radius: float, is_discrete: bool) -> Finding:
    """Errors of exactly 0, as copies of training rows give them, and a bound or a step that target and model share."""
    m = len(errors)
    zeros = target[errors == 0.0]
    sentence = f"{len(zeros):,} of {m:,} errors are exactly 0."
    rows = some_rows(m, SOME)
    values, counts = np.unique(target[rows], return_counts=True)
    bound = values[np.argmax(counts)] if counts.max() > 1 else math.nan
    n = int(np.count_nonzero(zeros != bound))
    # On a grid that targets and predictions share, errors of one step are as common; if it is coarse, most are 0.
    largest = float(np.abs(target).max() + np.abs(errors).max())
    step = _step(_distinct(errors[rows], largest), largest)
    is_coarse = is_discrete or step >= STEP * radius
    n_beside = int(np.count_nonzero(np.abs(np.abs(errors) - step) <= 0.01 * step))
    is_explained = n_beside > 0 and bdtrc(n - 1, n + n_beside, 0.5) > CHANCE
    advice = ""
    if n >= max(3, ZEROS * m) and not is_coarse and not is_explained:
        advice = (
            f"Look at the {n:,} rows with an error of exactly 0: was the model trained on them, or on copies? Then "
            "leave them out. A bound or a step that target and prediction share, such as the last price, is no fault."
        )
    return _finding("zeros", m, len(zeros) / m, 0.0, sentence, advice)


def _copies(equal: Copies, m: int) -> Finding:
    """Rows that are there more than once, where chance does not explain it."""
    if not equal.n:
        sentence = f"{equal.n_equal:,} of {m:,} rows equal others{', as they may by chance' if equal.n_equal else ''}."
        return _finding("copies", m, 0, 0, sentence)
    sentence = f"{equal}: ranges count each of them, and are too narrow by a factor of {equal.factor:.3g}."
    advice = f"{equal}, which say nothing new: measure each row once, the first of each kind."
    code = f"first_rows = np.unique(duplicate_groups({equal.compared}), return_index=True)[1]"
    return replace(_finding("copies", m, equal.n, 0, sentence, advice), code=code)


def _drift(errors: Array, radius: float) -> Finding:
    """Permutation test for a level or a spread that changes in the course of the rows."""
    m = len(errors)
    if m < FEWEST or _is_constant(errors):
        why = f"{_count(m)} too few" if m < FEWEST else "Errors that are all alike are too little"
        return _finding("drift", m, math.nan, math.nan, f"{why} to see a drift.")
    test = order.drift(errors)
    fifth = np.array_split(errors, 5)
    shift = max(abs(float(np.median(part) - np.median(errors))) for part in fifth)
    sizes = [float(np.median(np.abs(part - np.median(part)))) for part in fifth]
    change = max(sizes) / min(sizes) if min(sizes) > 0.0 else math.inf
    sentence = (
        f"Departures of errors from their mean, summed up in the order given, reach {test.value:.2g} (shuffled "
        f"{test.shuffled:.2g}, p = {test.p_value:.2g})"
    )
    if test.p_value > CHANCE:
        return _finding("drift", m, test.value, test.shuffled, f"{sentence}: no drift.")
    if shift < SHIFT * radius and change < CHANGE:
        return _finding("drift", m, test.value, test.shuffled, f"{sentence}: a drift too small to matter.")
    advice = (
        "Errors drift in the order given, so the past does not promise the future: learn on with each new error (an "
        "online neuron), and train the model anew. If the order has no meaning, find out what it stands for."
    )
    return _finding("drift", m, test.value, test.shuffled, f"{sentence}: errors drift.", advice)


def _serial(errors: Array) -> Finding:
    """Permutation test for errors that resemble those shortly before."""
    m = len(errors)
    if m < FEWEST or _is_constant(errors):
        why = f"{_count(m)} too few" if m < FEWEST else "Errors that are all alike are too little"
        return _finding("serial", m, math.nan, math.nan, f"{why} to see serial dependence.")
    test = order.serial_dependence(errors)
    shuffled = f"shuffled {test.shuffled:.2f}, p = {test.p_value:.2g}"
    sentence = f"The largest autocorrelation of ranks is {test.value:.2f} ({shuffled})"
    if test.p_value > CHANCE:
        return _finding("serial", m, test.value, test.shuffled, f"{sentence}: no serial dependence.")
    if test.value < AUTOCORRELATION:
        return _finding("serial", m, test.value, test.shuffled, f"{sentence}: too little to matter.")
    advice = (
        "Errors depend on those before them, so these rows promise less than their number says: learn on with each new "
        "error (an online neuron), and let the model know its last errors."
    )
    return _finding("serial", m, test.value, test.shuffled, f"{sentence}: errors depend on each other.", advice)
