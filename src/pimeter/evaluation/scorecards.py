"""A classifier's report: metrics with their intervals, whether scores mean what they say, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pimeter.arrays import real_array, unmasked
from pimeter.classification.confusion import outcome_codes
from pimeter.classification.rates import FN, FP, METRICS, TN, TP, Rates
from pimeter.classification.uncertainty import classification_uncertainty
from pimeter.coverage import percent
from pimeter.evaluation.classifier_checks import Category, ClassifierEvidence, Labelled, is_above, judged, points
from pimeter.evaluation.diagnosis.columns import labels_of
from pimeter.evaluation.results import Result
from pimeter.findings import Headline

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    from pimeter.classification.estimates import ClassificationUncertainty


N_BARS = 40  # of the distributions of scores
N_THRESHOLDS = 19  # other ones that are shown
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
    rows = Labelled(score[is_known], label[is_known] == 1.0)
    kinds = labels_of(by, len(score))
    if kinds is not None and not is_known.any():
        msg = "by compares the accuracy of categories, which needs labels; give y_true, or leave by out."
        raise ValueError(msg)
    level = found.confidence_level
    evidence = ClassifierEvidence(
        found,
        rows,
        rows.reliability(level),
        rows.calibration_error(),
        [] if kinds is None else rows.categories(kinds[is_known], thresholds[0], level),
    )
    return Scorecard(
        headline=_headline(found, method, rows, thresholds[0]),
        diagnosis=judged(evidence),
        uncertainty=found.to_dict(),
        method=method,
        n_labelled=rows.n,
        reliability=evidence.reliability,
        calibration_error=evidence.calibration_error,
        outcomes=_outcomes(rows, score, thresholds[0]),
        cuts=_cuts(rows),
        categories=evidence.categories,
    )


def _headline(found: ClassificationUncertainty, method: str, rows: Labelled, threshold: float) -> Headline:
    """How often the classifier is right, and what that rests on."""
    value, lower, upper = (column["accuracy"][0] for column in (found.value, found.lower, found.upper))
    n = rows.n
    claim = (
        f"The classifier is right for {points(lower)} to {points(upper)} % of rows like these "
        f"({percent(found.confidence_level)} confidence)."
    )
    if method == "calibrated":
        evidence = (
            f"With {found.n_rows:,} rows and a threshold of {threshold:g}, {points(value)} % are expected to be "
            f"right, assuming {found.assumes}."
        )
    elif method == "prediction-powered":
        evidence = f"With {n:,} labels among {found.n_rows:,} rows, {points(value)} % is the best guess."
    else:
        evidence = (
            f"With {n:,} labelled rows and a threshold of {threshold:g}, {points(value)} % were right; the commoner "
            f"answer alone is right for {points(max(rows.n_by_class) / n)} %."
        )
    return Headline(claim, evidence)


def _outcomes(rows: Labelled, score: NDArray[Any], threshold: float) -> list[dict[str, Any]]:
    """Scores of each outcome in bars, rows by the true class and columns by the answer."""
    edges = np.linspace(0.0, 1.0, N_BARS + 1)
    if rows.n:
        codes = outcome_codes(rows.is_positive, is_above(rows.score, threshold))
        groups = {name: rows.score[codes == code] for code, name in OUTCOMES.items()}
        wrong = {OUTCOMES[FP], OUTCOMES[FN]}
    else:
        is_called = is_above(score, threshold)
        groups = {"called negative": score[~is_called], "called positive": score[is_called]}
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


def _cuts(rows: Labelled) -> dict[str, list[float | None]] | None:
    """Accuracy, sensitivity and precision at other thresholds; None without labels."""
    if not rows.n:
        return None
    cuts = [round((i + 1) / (N_THRESHOLDS + 1), 12) for i in range(N_THRESHOLDS)]
    rates = [Rates.of(rows.cells(cut)) for cut in cuts]
    values = {name: [float(METRICS[name](each)) for each in rates] for name in ("accuracy", "tpr", "ppv")}
    known = {name: [None if np.isnan(value) else value for value in column] for name, column in values.items()}
    return {"threshold": list(cuts), **known}
