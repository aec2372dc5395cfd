"""A classifier's report: metrics with their intervals, whether scores mean what they say, and what follows from it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pimeter.arrays import real_array
from pimeter.classification.confusion import BINOMIAL, outcome_codes
from pimeter.classification.inputs import class_labels
from pimeter.classification.proportions import clopper_pearson, proportion
from pimeter.classification.rates import FN, FP, METRICS, PROPORTIONS, TN, TP, Rates
from pimeter.classification.score_metrics import MIN_ROWS_OF_CLASS, SCORE_METRICS, by_scores
from pimeter.classification.uncertainty import classification_uncertainty
from pimeter.coverage import counted, percent
from pimeter.evaluation.classifier_checks import judged, points
from pimeter.evaluation.classifier_evidence import Category, ClassifierEvidence, Labelled, is_above
from pimeter.evaluation.diagnosis.columns import labels_of
from pimeter.evaluation.results import Result
from pimeter.findings import Headline
from pimeter.frames import refuse_other_orders

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from numpy.typing import ArrayLike, NDArray

    from pimeter.classification.estimates import ClassificationUncertainty
    from pimeter.protocols import Columns


N_BARS = 40  # of the distributions of scores
N_OTHER_THRESHOLDS = 19  # other ones that are shown
# Bounds at each of them: of which metric, the lower one (0) or the upper one (1).
BOUNDS_BY_THRESHOLD = {"ppv_at_least": ("ppv", 0), "tpr_at_least": ("tpr", 0), "fpr_at_most": ("fpr", 1)}
FOR_TWO_CLASSES = "scorecard is for two classes"
USE_FOR_SEVERAL_CLASSES = (
    "Use classification_uncertainty, which has metrics for each class; y_score has a column for each of them there."
)
OUTCOMES = {TN: "true negatives", FP: "false positives", FN: "false negatives", TP: "true positives"}
METRIC_MEANINGS = {
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
    "roc_auc": "probability that a positive row has a higher score than a negative one",
    "average_precision": "mean of the precision at the scores of the positives",
    "brier": "mean squared distance of scores from labels; lower is better",
    "log_loss": "mean of minus the logarithm of the probability given to the true class; lower is better",
}


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Scorecard(Result):
    """What is known of a classifier.

    Attributes
    ----------
    headline, diagnosis : Headline, Diagnosis
        The answer, a claim and its evidence; findings, advice and code.
    uncertainty : dict
        Metrics and intervals, as `ClassificationUncertainty.to_dict` gives them, and below them those of scores (ROC
        AUC, average precision, Brier score, log loss), whose ``threshold`` is None, where all rows have a label and
        each class has 10 rows or more.
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
        Accuracy, tpr, ppv, fpr and the fraction of rows declared positive at other thresholds, with ``tpr_at_least``,
        ``ppv_at_least`` and ``fpr_at_most``, which hold at all of these thresholds at once with the confidence level.
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

    def _table(self) -> Columns:
        """A row for each metric and threshold, with its interval."""
        rows = self.uncertainty["rows"]
        columns = {key: [np.nan if row[key] is None else row[key] for row in rows] for key in rows[0]}
        return {**columns, "confidence_level": [self.uncertainty["confidence_level"]] * len(rows)}

    def _page(self, about: Mapping[str, str]) -> str:
        from pimeter.report.classifier import classifier_html

        return classifier_html(self.to_dict(), about, METRIC_MEANINGS)

    def __str__(self) -> str:
        from pimeter.report.text import scorecard_text

        return scorecard_text(self.to_dict())


def scorecard(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    by: ArrayLike | None = None,
    threshold: float | ArrayLike = 0.5,
    pos_label: Hashable = 1,
    method: str = "wilson",
    confidence_level: float = 0.95,
    calibration: tuple[ArrayLike, ArrayLike] | None = None,
    n_resamples: int = 2000,
) -> Scorecard:
    """How good is a classifier? Its metrics with intervals at each threshold, and at the first one what they mean.

    Parameters
    ----------
    y_true : array-like of shape (n,) or None
        Labels of two classes, such as 0 and 1, of rows that the classifier was not trained on; NaN or None where
        there is none.
    y_score : array-like of shape (n,)
        Scores of the positive class, between 0 and 1.
    by : array-like of shape (n,), optional
        Category of each row, to find out whether the classifier is as good in all of them.
    threshold : float or array-like of shape (T,), default=0.5
        Scores above it predict the positive class. Several give metrics for each; plots and findings are of the first.
    pos_label : object, default=1
        The positive class, which scores are about, such as ``"yes"``.
    method : str, default="wilson"
        How intervals are made; `classification_uncertainty` explains each method.
    confidence_level : float, default=0.95
        How often intervals should hold the metric of all rows of this kind.
    calibration : tuple (y, score), optional
        For ``method="calibrated"``: labels and scores of the rows that the calibrator was fitted on.
    n_resamples : int, default=2000
        Resamples of the bootstrap.

    Returns
    -------
    Scorecard
        Metrics, findings and advice. It prints as sentences and a table; `to_html(path)` writes a report, `to_frame()`
        is a row for each metric, `to_dict()` everything.

    Raises
    ------
    ValueError
        If shapes do not fit, scores are not between 0 and 1, there are more than two classes, or the method needs
        labels that are not there.

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
    threshold of 0.5, 76.4 % were right; always predicting the majority class is right for 52.6 %.
    <BLANKLINE>
    metric              value  95 % interval     method
    accuracy           0.7640  0.7249 to 0.7991  wilson
    ...
    <BLANKLINE>
    Is it better than always predicting the majority class? Yes: at least 72.5 % right, against 52.6 % for always
    predicting the majority class.
    ...
    <BLANKLINE>
    Nothing to do: no check raises an alarm.
    >>> found.diagnosis["calibration"].sentence
    'Nothing speaks against it: none of 10 bins contradicts the score.'
    """
    refuse_other_orders({"y_true": y_true, "y_score": y_score, "by": by})
    score = _one_score(y_score)
    labels = None if y_true is None else class_labels("y_true", y_true, len(score))
    found = classification_uncertainty(
        y_true,
        score,
        confidence_level=confidence_level,
        threshold=np.atleast_1d(threshold),
        method=method,
        labels=None if labels is None else _two_classes(labels.classes, pos_label),
        pos_label=pos_label,
        calibration=calibration,
        n_resamples=n_resamples,
        random_state=0,
    )
    is_known = np.zeros(len(score), np.bool_) if labels is None else labels.is_known
    is_positive = is_known
    if labels is not None and pos_label in labels.classes:
        is_positive = labels.codes == labels.classes.index(pos_label)
    elif labels is not None:
        is_positive = np.zeros(len(score), np.bool_)
    rows = Labelled(score[is_known], is_positive[is_known])
    kinds = labels_of(by, len(score))
    if kinds is not None and not is_known.any():
        msg = "by compares the accuracy of categories, which needs labels; give y_true, or leave by out."
        raise ValueError(msg)
    first, level = found.thresholds[0], found.confidence_level
    evidence = ClassifierEvidence(
        found,
        rows,
        rows.reliability(level),
        rows.calibration_error(),
        [] if kinds is None else rows.categories(kinds[is_known], first, level),
    )
    return Scorecard(
        headline=_headline(found, method, rows, first),
        diagnosis=judged(evidence),
        uncertainty={**found.to_dict(), "rows": [*found.to_dict()["rows"], *_of_scores(rows, method, level)]},
        method=method,
        n_labelled=rows.n,
        reliability=evidence.reliability,
        calibration_error=evidence.calibration_error,
        outcomes=_outcomes(rows, score, first),
        cuts=_cuts(rows, level),
        categories=evidence.categories,
    )


def _one_score(given: ArrayLike) -> NDArray[Any]:
    """Scores of the positive class alone, in their own precision."""
    score = real_array("y_score", given)
    if score.ndim == 2 and score.shape[1] > 2:
        msg = f"{FOR_TWO_CLASSES}; y_score has {score.shape[1]} columns. {USE_FOR_SEVERAL_CLASSES}"
        raise ValueError(msg)
    if score.ndim != 1:
        msg = (
            f"y_score must hold one score for each row, that of the positive class, such as y_score[:, 1]; got shape "
            f"{score.shape}."
        )
        raise ValueError(msg)
    return score


def _two_classes(found: list[Hashable], pos_label: Hashable) -> list[Hashable]:
    """The other class and the positive one; None for the other where no row has it."""
    if len(found) > 2:
        held = f"{len(found)} ({', '.join(map(repr, found[:5]))})"
        msg = f"{FOR_TWO_CLASSES}; y_true holds {held}. {USE_FOR_SEVERAL_CLASSES}"
        raise ValueError(msg)
    others = [one for one in found if one != pos_label]
    is_told = len(others) < 2 and (pos_label in found or pos_label != 1 or others in ([], [0], [-1]))
    if not is_told:
        msg = f"y_true holds {' and '.join(map(repr, found))}: say with pos_label which class the scores are about."
        raise ValueError(msg)
    return [others[0] if others else None, pos_label]


def _headline(found: ClassificationUncertainty, method: str, rows: Labelled, threshold: float) -> Headline:
    """How often the classifier is right, and what that rests on."""
    accuracy, n = found.estimates[0]["accuracy"], rows.n
    right = f"{points(accuracy.value)} %"
    claim = (
        f"The classifier is right for {points(accuracy.lower)} to {points(accuracy.upper)} % of rows like these "
        f"({percent(found.confidence_level)} confidence)."
    )
    if method == "calibrated":
        evidence = (
            f"With {counted(found.n_rows, 'row')} and a threshold of {threshold:g}, {right} are expected to "
            f"be right, assuming {found.assumes}."
        )
    elif method == "prediction-powered":
        evidence = f"With {counted(n, 'label')} among {found.n_rows:,} rows, {right} is the best guess."
    else:
        evidence = (
            f"With {counted(n, 'labelled row')} and a threshold of {threshold:g}, {right} were right; "
            f"always predicting the majority class is right for {points((n - rows.n_rarer) / n)} %."
        )
    return Headline(claim, evidence)


def _of_scores(rows: Labelled, method: str, confidence_level: float) -> list[dict[str, Any]]:
    """Metrics that know no threshold; none where some rows have no label or a class has too few of them."""
    if method not in {*BINOMIAL, "bootstrap"} or rows.n_rarer < MIN_ROWS_OF_CLASS:
        return []
    found = by_scores([*SCORE_METRICS], rows.is_positive, rows.score.astype(np.float64), confidence_level)
    return [
        {
            key: None if isinstance(cell, float) and math.isnan(cell) else cell
            for key, cell in {"threshold": None, "metric": name, **asdict(one)}.items()
        }
        for name, one in found.items()
    ]


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


def _cuts(rows: Labelled, confidence_level: float) -> dict[str, list[float | None]] | None:
    """Metrics at other thresholds, with bounds that hold for all of them at once; None without labels.

    Each bound is Clopper's and Pearson's, with its part of what may fail (Bonferroni): so any of the thresholds may be
    chosen by them.
    """
    if not rows.n:
        return None
    cuts = [round((i + 1) / (N_OTHER_THRESHOLDS + 1), 12) for i in range(N_OTHER_THRESHOLDS)]
    cells = [rows.cells(cut) for cut in cuts]
    rates = [Rates.of(each) for each in cells]
    values = {name: [float(METRICS[name](each)) for each in rates] for name in ("accuracy", "tpr", "ppv", "fpr")}
    values["declared"] = [float((each[TP] + each[FP]) / rows.n) for each in cells]
    two_sided = 1.0 - 2.0 * (1.0 - confidence_level) / (len(BOUNDS_BY_THRESHOLD) * len(cuts))
    values |= {name: _bounds(cells, metric, side, two_sided) for name, (metric, side) in BOUNDS_BY_THRESHOLD.items()}
    known_values = {name: [None if np.isnan(value) else value for value in column] for name, column in values.items()}
    return {"threshold": list(cuts), **known_values}


def _bounds(cells: list[NDArray[Any]], name: str, side: int, confidence_level: float) -> list[float]:
    """Clopper's and Pearson's lower (0) or upper (1) bound of a rate at each threshold; NaN where no row is in it."""
    found = [proportion(*PROPORTIONS[name], each, each) for each in cells]
    return [clopper_pearson(one, confidence_level)[side] if one.n else math.nan for one in found]
