"""A classifier's report: metrics with their intervals, whether scores mean what they say, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.stats import hypergeom

from pimeter.arrays import real_array, unmasked
from pimeter.classification.calibration import calibration_error, reliability
from pimeter.classification.confusion import Cells, outcome_codes
from pimeter.classification.inputs import as_precise
from pimeter.classification.proportions import Proportion, clopper_pearson
from pimeter.classification.rates import FN, FP, METRICS, TN, TP, Rates
from pimeter.classification.uncertainty import classification_uncertainty
from pimeter.classification.unlabelled import SAME_POPULATION
from pimeter.coverage import percent, rounded
from pimeter.diagnosis.columns import categories, labels_of
from pimeter.duplicates import copies, row_keys
from pimeter.findings import Diagnosis, Finding, Headline
from pimeter.results import Result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    from pimeter.classification.estimates import ClassificationUncertainty

    Array = NDArray[np.float64]

N_BINS = 10  # of the reliability diagram, at most
ROWS_PER_BIN = 20  # that each of them shall have
N_BARS = 40  # of the distributions of scores
N_THRESHOLDS = 19  # other ones that are shown
FEW_OF_A_CLASS = 10  # rows that are too few to say much
OUTCOMES = {TN: "true negatives", FP: "false positives", FN: "false negatives", TP: "true positives"}
MEANING = {
    "accuracy": "right answers among all rows",
    "balanced_accuracy": "mean of both classes' fractions of right answers",
    "tpr": "positives that are found (sensitivity, recall)",
    "fpr": "negatives that are called positive",
    "tnr": "negatives that are called negative (specificity)",
    "fnr": "positives that are missed",
    "ppv": "positives among rows called positive (precision)",
    "npv": "negatives among rows called negative",
    "fdr": "negatives among rows called positive",
    "for": "positives among rows called negative",
    "f1": "harmonic mean of sensitivity and precision",
    "mcc": "correlation of answers and labels, from -1 to 1",
}


@dataclass(frozen=True)
class Category:
    """Accuracy in one category.

    Attributes
    ----------
    label : str
        Its name.
    rows : int
        Its labelled rows.
    accuracy, lower, upper : float
        Fraction of right answers, and bounds of an interval that holds for all categories together.
    p_value : float
        Fisher's exact test of this category against all others, two-sided.
    is_different : bool
        Whether chance does not explain how it differs from the others.
    """

    label: str
    rows: int
    accuracy: float
    lower: float
    upper: float
    p_value: float
    is_different: bool


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Scorecard(Result):
    """What is known of a classifier.

    Attributes
    ----------
    headline : Headline
        The answer: a claim and its evidence.
    diagnosis : Diagnosis
        Findings, advice and code.
    uncertainty : dict
        Metrics and intervals, as `ClassificationUncertainty.to_dict` gives them.
    method : str
        The one that was asked for.
    n_labelled : int
        Rows with a label.
    reliability : dict or None
        Mean score, fraction of positives with its interval and whether it contradicts the score, in bins, and the
        p-value of all of them; None without labels.
    calibration_error : float or None
        Debiased, a lower bound, in the same bins.
    outcomes : list of dict
        Distributions of scores of the four outcomes at the first threshold; those of the two answers without labels.
    cuts : dict or None
        Accuracy, tpr and ppv at other thresholds.
    categories : list of Category
        Accuracy of each category, with intervals for all of them together.
    """

    uncertainty: dict[str, Any]
    method: str
    n_labelled: int
    reliability: dict[str, Any] | None
    calibration_error: float | None
    outcomes: list[dict[str, Any]]
    cuts: dict[str, list[float | None]] | None
    categories: list[Category]

    def _table(self) -> dict[str, Any]:
        """A row for each metric and threshold, with its interval."""
        rows = self.uncertainty["rows"]
        columns = {key: [np.nan if row[key] is None else row[key] for row in rows] for key in rows[0]}
        return {**columns, "confidence_level": [self.uncertainty["confidence_level"]] * len(rows)}

    def _page(self, about: Mapping[str, str]) -> str:
        from pimeter.report.classifier import classifier_html

        return classifier_html(self.to_dict(), about, MEANING)


def scorecard(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    by: ArrayLike | None = None,
    thresholds: tuple[float, ...] = (0.5,),
    method: str = "wilson",
    confidence_level: float = 0.95,
    calibration: tuple[ArrayLike, ArrayLike] | None = None,
    n_resamples: int = 2000,
) -> Scorecard:
    """How good is a classifier? Its metrics with intervals at each threshold, and at the first one what they mean.

    Parameters
    ----------
    y_true : array-like of shape (n,) or None
        Labels 0 and 1, of rows that the classifier was not trained on; NaN where there is none.
    y_score : array-like of shape (n,)
        Scores of class 1, between 0 and 1.
    by : array-like of shape (n,), optional
        Category of each row, to find out whether the classifier is as good in all of them.
    thresholds : tuple of float, default=(0.5,)
        Scores above predict 1.
    method : str, default="wilson"
        How intervals are made; `classification_uncertainty` explains each method.
    confidence_level : float, default=0.95
        How often intervals shall hold the metric of all rows of this kind.
    calibration : tuple (y, score), optional
        For ``method="calibrated"``: labels and scores of the rows that the calibrator was fitted on.
    n_resamples : int, default=2000
        Resamples of the bootstrap.

    Returns
    -------
    Scorecard
        Metrics, findings and advice. It prints as sentences; `to_html(path)` writes a report, `to_frame()` is a row for
        each metric, `to_dict()` everything.

    Raises
    ------
    ValueError
        If shapes do not fit, scores are not between 0 and 1, or the method needs labels that are not there.

    See Also
    --------
    classification_uncertainty : The metrics alone, also of several classes.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter import scorecard
    >>> rng = np.random.default_rng(0)
    >>> score = rng.uniform(size=500)
    >>> found = scorecard(rng.uniform(size=500) < score, score)
    >>> print(found)
    The classifier is right for 72.5 to 79.9 % of rows like these (95 % confidence). With 500 labelled rows and a
    threshold of 0.5, 76.4 % were right; the commoner answer alone is right for 52.6 %.
    <BLANKLINE>
    Nothing to do: no check raises an alarm.
    >>> found.diagnosis["calibration"].sentence
    'Nothing speaks against it: none of 10 bins contradicts the score.'
    """
    score = real_array("y_score", y_score)
    found = classification_uncertainty(
        y_true,
        score,
        confidence_level=confidence_level,
        threshold=thresholds,
        method=method,
        labels=[0, 1],
        calibration=calibration,
        n_resamples=n_resamples,
        random_state=0,
    )
    label = np.full(len(score), np.nan) if y_true is None else np.asarray(unmasked(y_true), dtype=np.float64)
    is_known = ~np.isnan(label)
    rows = _Labelled(score[is_known], label[is_known] == 1.0)
    kinds = labels_of(by, len(score))
    if kinds is not None and not is_known.any():
        msg = "by compares the accuracy of categories, which needs labels; give y_true, or leave by out."
        raise ValueError(msg)
    judged = [] if kinds is None else _categories(rows, kinds[is_known], thresholds[0], found.confidence_level)
    bins = _reliability(rows, found.confidence_level)
    error = None
    if bins is not None:
        error = calibration_error(rows.is_positive, rows.score, n_bins=_n_bins(rows), method="lower")
    return Scorecard(
        headline=_headline(found, method, rows, thresholds[0]),
        diagnosis=_diagnosis(found, rows, bins, error, judged),
        uncertainty=found.to_dict(),
        method=method,
        n_labelled=len(rows.score),
        reliability=bins,
        calibration_error=error,
        outcomes=_outcomes(rows, score, thresholds[0]),
        cuts=_cuts(rows),
        categories=judged,
    )


class _Labelled(NamedTuple):
    """The rows that have a label."""

    score: NDArray[Any]  # in the precision that they came in
    is_positive: NDArray[np.bool_]

    def cells(self, threshold: float) -> Array:
        return Cells.counted(outcome_codes(self.is_positive, _is_above(self.score, threshold)), 4, None).rows

    @property
    def n_by_class(self) -> tuple[int, int]:
        n_positive = int(np.count_nonzero(self.is_positive))
        return len(self.score) - n_positive, n_positive


def _is_above(score: NDArray[Any], threshold: float) -> NDArray[np.bool_]:
    return np.asarray(score > as_precise(np.asarray(threshold), score))


def _headline(found: ClassificationUncertainty, method: str, rows: _Labelled, threshold: float) -> Headline:
    """How often the classifier is right, and what that rests on."""
    value, lower, upper = (column["accuracy"][0] for column in (found.value, found.lower, found.upper))
    n = len(rows.score)
    claim = (
        f"The classifier is right for {_points(lower)} to {_points(upper)} % of rows like these "
        f"({percent(found.confidence_level)} confidence)."
    )
    if method == "calibrated":
        evidence = (
            f"With {found.n_rows:,} rows and a threshold of {threshold:g}, {_points(value)} % are expected to be "
            f"right, assuming {found.assumes}."
        )
    elif method == "prediction-powered":
        evidence = f"With {n:,} labels among {found.n_rows:,} rows, {_points(value)} % is the best guess."
    else:
        evidence = (
            f"With {n:,} labelled rows and a threshold of {threshold:g}, {_points(value)} % were right; the commoner "
            f"answer alone is right for {_points(max(rows.n_by_class) / n)} %."
        )
    return Headline(claim, evidence)


def _diagnosis(
    found: ClassificationUncertainty,
    rows: _Labelled,
    bins: dict[str, Any] | None,
    error: float | None,
    judged: list[Category],
) -> Diagnosis:
    """What the metrics mean, and what to do."""
    findings = [*([_against_the_commoner(found, rows)] if len(rows.score) else []), *_in_words(found)]
    if bins is not None and error is not None:
        findings += [_few(rows), _calibration(bins, error, found.confidence_level, len(rows.score)), *_copied(rows)]
    if judged:
        findings.append(_everywhere(judged))
    return Diagnosis.of(findings, "Nothing to do: no check raises an alarm.")


def _everywhere(judged: list[Category]) -> Finding:
    """Whether accuracy is the same in all categories."""
    different = [category for category in judged if category.is_different]
    sentence, advice = "No category differs from the others by more than chance.", ""
    if different:
        names = ", ".join(f"{category.label} ({_points(category.accuracy)} %)" for category in different)
        sentence = f"No: {names} differ from the others by more than chance."
        advice = f"Do not rely on the accuracy of all rows for these categories: {names}."
    return Finding(
        name="categories",
        question="Is it as good everywhere?",
        sentence=sentence,
        advice=advice,
        value=len(different),
        reference=0.0,
        p_value=min(category.p_value for category in judged),
        rows=sum(category.rows for category in judged),
    )


def _copied(rows: _Labelled) -> list[Finding]:
    """Scores and labels that nearly all occur a multiple of a number of times; a few copies may be chance."""
    label = rows.is_positive.astype(np.float64)
    found = copies(row_keys(rows.score, label), None, label, prediction=rows.score)
    if not found.n:
        return []
    return [
        Finding(
            name="copies",
            question="Are rows copies of others?",
            sentence=f"{found}: intervals count each of them, and are too narrow by a factor of {found.factor:.3g}.",
            advice="Leave the copies out: keep the first row of each kind.",
            code="first_rows = np.unique(duplicate_groups(X, y), return_index=True)[1]",
            value=found.n,
            reference=0.0,
            rows=len(label),
        )
    ]


def _against_the_commoner(found: ClassificationUncertainty, rows: _Labelled) -> Finding:
    """Accuracy is above the commoner class's fraction where most of the rows called the rarer class belong to it."""
    n_negative, n_positive = rows.n_by_class
    name, rarer = ("ppv", "positive") if n_positive <= n_negative else ("npv", "negative")
    value, lower, upper = (column[name][0] for column in (found.value, found.lower, found.upper))
    bounds = f"{_points(lower)} to {_points(upper)} % of the rows that it calls {rarer}, the rarer class, are {rarer}"
    if np.isnan(value):
        sentence = f"No: it calls no row {rarer}, the rarer class."
        advice = "Try another threshold, which may do better."
    elif lower > 0.5:
        sentence, advice = f"Yes: {bounds}, more than half.", ""
    elif upper < 0.5:
        sentence = f"No: {bounds}, less than half."
        advice = (
            "Try another threshold, which may do better; where misses cost more than false alarms, accuracy is not "
            "the right guide."
        )
    else:
        sentence = f"Not certain: {bounds}; it would have to be more than half."
        advice = "Label more rows to tell whether it is better than always giving the commoner answer."
    return Finding(
        name="commoner",
        question="Is it better than always giving the commoner answer?",
        sentence=sentence,
        advice=advice,
        value=value,
        reference=0.5,
        lower=lower,
        upper=upper,
        rows=len(rows.score),
    )


def _in_words(found: ClassificationUncertainty) -> list[Finding]:
    """Precision and sensitivity, and how precisely accuracy is known."""
    width = found.upper["accuracy"][0] - found.lower["accuracy"][0]
    # Without labels of its own, or with few among many, what is known comes from those that calibrate or are there.
    scarce = found.assumes == SAME_POPULATION or found.method["accuracy"][0] == "prediction-powered"
    more = "rows with a label" if scarce else "rows"
    return [
        _metric(found, "ppv", "What is a positive answer worth?", "of the rows called positive are positive."),
        _metric(found, "tpr", "How many positives does it find?", "of the positives are called positive."),
        Finding(
            name="precision",
            question="Would more rows help?",
            sentence=f"Accuracy is known to {_points(width)} percentage points; four times as many {more} about halve "
            "that.",
            value=width,
            rows=found.n_rows,
        ),
    ]


def _metric(found: ClassificationUncertainty, name: str, question: str, what: str) -> Finding:
    """A metric in words."""
    value, lower, upper = (column[name][0] for column in (found.value, found.lower, found.upper))
    return Finding(
        name=name,
        question=question,
        sentence=f"{_points(lower)} to {_points(upper)} % {what}",
        value=value,
        lower=lower,
        upper=upper,
        rows=found.n_rows,
    )


def _few(rows: _Labelled) -> Finding:
    """Whether both classes have rows enough."""
    n_negative, n_positive = rows.n_by_class
    fewest = min(n_negative, n_positive)
    advice = ""
    if fewest < FEW_OF_A_CLASS:
        advice = "Label more rows of the rarer class: what is said of it rests on very few rows."
    return Finding(
        name="classes",
        question="Are there enough rows of each class?",
        sentence=f"{n_positive:,} positives and {n_negative:,} negatives have a label.",
        advice=advice,
        value=fewest,
        threshold=FEW_OF_A_CLASS,
        rows=len(rows.score),
    )


def _calibration(bins: dict[str, Any], error: float, level: float, n: int) -> Finding:
    """Whether scores are calibrated, by the test of all bins together."""
    n_bins, n_off = len(bins["score"]), sum(bins["is_off"])
    sentence, advice, code = f"Nothing speaks against it: none of {n_bins} bins contradicts the score.", "", ""
    if bins["p_value"] <= 1.0 - level:
        where = (
            f"in {n_off} of {n_bins} bins the fraction of positives contradicts the score"
            if n_off
            else f"the labels contradict them (p = {bins['p_value']:.2g}), though no single one of {n_bins} bins does"
        )
        size = f" Typically they are {_points(error)} percentage points off (calibration error)." if error else ""
        sentence = f"No: {where}.{size}"
        if 0.0 < sum(bins["share"]) < n_bins:
            advice = "Do not read scores as probabilities; calibrate those of new rows."
            code = "calibrated_scores(y_true, y_score, new_score)"
        else:
            advice = "Do not read scores as probabilities; calibrating them needs labels of both classes."
    return Finding(
        name="calibration",
        question="Can scores be read as probabilities?",
        sentence=sentence,
        advice=advice,
        code=code,
        value=error,
        reference=0.0,
        p_value=bins["p_value"],
        threshold=1.0 - level,
        rows=n,
    )


def _n_bins(rows: _Labelled) -> int:
    return min(N_BINS, max(1, len(rows.score) // ROWS_PER_BIN))


def _reliability(rows: _Labelled, level: float) -> dict[str, Any] | None:
    if not len(rows.score):
        return None
    found = reliability(rows.is_positive, rows.score, n_bins=_n_bins(rows), confidence_level=level)
    return {name: np.asarray(column).tolist() for name, column in found._asdict().items()}


def _outcomes(rows: _Labelled, score: NDArray[Any], threshold: float) -> list[dict[str, Any]]:
    """Scores of each outcome in bars, rows by the true class and columns by the answer."""
    edges = np.linspace(0.0, 1.0, N_BARS + 1)
    if len(rows.score):
        codes = outcome_codes(rows.is_positive, _is_above(rows.score, threshold))
        groups = {name: rows.score[codes == code] for code, name in OUTCOMES.items()}
        wrong = {OUTCOMES[FP], OUTCOMES[FN]}
    else:
        is_above = _is_above(score, threshold)
        groups = {"called negative": score[~is_above], "called positive": score[is_above]}
        wrong = set()
    return [
        {
            "name": name,
            "rows": len(some),
            "is_wrong": name in wrong,
            "counts": np.histogram(some, edges)[0].tolist(),
            "threshold": threshold,
        }
        for name, some in groups.items()
    ]


def _cuts(rows: _Labelled) -> dict[str, list[float | None]] | None:
    if not len(rows.score):
        return None
    cuts = [round((i + 1) / (N_THRESHOLDS + 1), 12) for i in range(N_THRESHOLDS)]
    rates = [Rates.of(rows.cells(cut)) for cut in cuts]
    values = {name: [float(METRICS[name](each)) for each in rates] for name in ("accuracy", "tpr", "ppv")}
    known = {name: [None if np.isnan(value) else value for value in column] for name, column in values.items()}
    return {"threshold": list(cuts), **known}


def _categories(rows: _Labelled, by: NDArray[Any], threshold: float, level: float) -> list[Category]:
    """Accuracy of each category beside that of all others; intervals hold for all categories together."""
    codes, labels = categories(by)
    is_right = rows.is_positive == _is_above(rows.score, threshold)
    counts = np.bincount(codes, minlength=len(labels))
    right = np.bincount(codes, is_right, minlength=len(labels))
    shared = 1.0 - (1.0 - level) / max(len(labels), 1)
    # Were all categories the same, each would hold a random draw of the right answers: Fisher's exact test.
    draws = hypergeom(len(is_right), int(right.sum()), counts)
    p_values = np.minimum(1.0, 2.0 * np.minimum(draws.cdf(right), draws.sf(right - 1)))
    found = []
    for label, n, hits, p_value in zip(labels, counts.tolist(), right.tolist(), p_values.tolist(), strict=True):
        lower, upper = clopper_pearson(Proportion(hits / n, float(n)), shared)
        found.append(Category(label, n, hits / n, lower, upper, p_value, p_value < 1.0 - shared))
    return found


def _points(fraction: float) -> str:
    """A fraction in percentage points, without a unit; a question mark where it is not known."""
    return "?" if np.isnan(fraction) else rounded(100.0 * fraction, 3, whole=100.0)
