"""A classifier's report: metrics with their intervals, whether scores mean what they say, and what follows from it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.stats import hypergeom

from pimeter.arrays import real_array, unmasked
from pimeter.classification.calibration import calibration_error, reliability
from pimeter.classification.confusion import Cells, outcome_codes
from pimeter.classification.inputs import as_precise
from pimeter.classification.rates import FN, FP, METRICS, TN, TP, Rates, Share, clopper_pearson
from pimeter.classification.uncertainty import classification_uncertainty
from pimeter.classification.unlabelled import ALIKE
from pimeter.coverage import percent
from pimeter.diagnosis.columns import categories, labels_of
from pimeter.duplicates import copies, row_keys
from pimeter.frames import frame_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from pimeter.classification.uncertainty import ClassificationUncertainty

    Array = NDArray[np.float64]

N_BINS = 10  # of the reliability diagram, at most
BIN_ROWS = 20  # that each of them shall have
N_BARS = 40  # of the distributions of scores
N_CUTS = 19  # other thresholds
FEW = 10  # rows of a class that are too few to say much
OUTCOMES = {TN: "true negatives", FP: "false positives", FN: "false negatives", TP: "true positives"}
MEANING = {
    "accuracy": "right answers among all rows",
    "balanced_accuracy": "mean of both classes' shares of right answers",
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
class Finding:
    """An answer to one question; alarming or not."""

    question: str
    sentence: str
    is_alarm: bool = False


@dataclass(frozen=True)
class Scorecard:
    """What is known of a classifier.

    Attributes
    ----------
    headline : str
        The answer in words.
    uncertainty : dict
        Metrics and intervals, as `ClassificationUncertainty.to_dict` gives them.
    method : str
        The one that was asked for.
    n_labelled : int
        Rows with a label.
    findings : list of Finding
        What it means.
    reliability : dict or None
        Mean score, share of positives with its interval and whether it contradicts the score, in bins, and the p-value
        of all of them; None without labels.
    calibration_error : float or None
        Debiased, a lower bound, in the same bins.
    outcomes : list of dict
        Distributions of scores of the four outcomes at the first threshold; those of the two answers without labels.
    cuts : dict or None
        Accuracy, tpr and ppv at other thresholds.
    parts : list of dict
        Accuracy of each category, with intervals for all of them together.
    """

    headline: str
    uncertainty: dict[str, Any]
    method: str
    n_labelled: int
    findings: list[Finding]
    reliability: dict[str, Any] | None
    calibration_error: float | None
    outcomes: list[dict[str, Any]]
    cuts: dict[str, list[float | None]] | None
    parts: list[dict[str, Any]]

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        return asdict(self)

    def to_json(self) -> str:
        """All of it as JSON text."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def to_frame(self, library: Any = "pandas") -> Any:
        """The metrics with their intervals, a row for each of them and each threshold."""
        rows = self.uncertainty["rows"]
        columns = {key: [np.nan if row[key] is None else row[key] for row in rows] for key in rows[0]}
        return frame_of({**columns, "confidence_level": [self.uncertainty["confidence_level"]] * len(rows)}, library)


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
    """Metrics at each threshold, and at the first one what they mean.

    Parameters
    ----------
    y_true : array-like of shape (n,) or None
        Labels 0 and 1, NaN where there is none.
    y_score : array-like of shape (n,)
        Scores between 0 and 1.
    by : array-like of shape (n,), optional
        Category of each row.
    thresholds : tuple of float, default=(0.5,)
        Scores above predict 1.
    method, confidence_level, calibration, n_resamples
        As for `classification_uncertainty`.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter.scorecard import scorecard
    >>> rng = np.random.default_rng(0)
    >>> score = rng.uniform(size=500)
    >>> found = scorecard(rng.uniform(size=500) < score, score)
    >>> found.headline.split(" With ")[0]
    'The classifier is right for 72.5 to 79.9 % of rows like these (95 % confidence).'
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
    level = found.confidence_level
    kinds = labels_of(by, len(score))
    if kinds is not None and not is_known.any():
        msg = "by compares the accuracy of categories, which needs labels; give y_true, or leave by out."
        raise ValueError(msg)
    parts = [] if kinds is None else _parts(rows, kinds[is_known], thresholds[0], level)
    bins = _reliability(rows, level)
    error = None
    if bins is not None:
        error = calibration_error(rows.is_positive, rows.score, n_bins=_n_bins(rows), method="lower")
    return Scorecard(
        _headline(found, method, rows, thresholds[0]),
        found.to_dict(),
        method,
        len(rows.score),
        _findings(found, method, rows, bins, error, parts),
        bins,
        error,
        _outcomes(rows, score, thresholds[0]),
        _cuts(rows),
        parts,
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


def _headline(found: ClassificationUncertainty, method: str, rows: _Labelled, threshold: float) -> str:
    value, lower, upper = (column["accuracy"][0] for column in (found.value, found.lower, found.upper))
    right = f"With {len(rows.score):,} labelled rows and a threshold of {threshold:g}, {_percent(value)} % were right"
    if method == "pim":
        spread = (
            f"spread of scores is ±{_percent(upper - value)} points" if np.isfinite(upper) else "spread is not known"
        )
        return (
            f"The classifier is right for {_percent(value)} % of these rows. With method pim, the range beside each "
            f"metric is no confidence interval: it tells how widely scores are spread, and the {spread}."
        )
    if method == "calibrated":
        right = f"With {found.n_rows:,} rows and a threshold of {threshold:g}, {_percent(value)} % are expected to be"
        right += f" right, assuming {found.assumes}"
    elif method == "prediction-powered":
        right = f"With {len(rows.score):,} labels among {found.n_rows:,} rows, {_percent(value)} % is the best guess"
    else:
        right += f"; the commoner answer alone is right for {_percent(max(rows.n_by_class) / len(rows.score))} %"
    return (
        f"The classifier is right for {_percent(lower)} to {_percent(upper)} % of rows like these "
        f"({percent(found.confidence_level)} confidence). {right}."
    )


def _findings(
    found: ClassificationUncertainty,
    method: str,
    rows: _Labelled,
    bins: dict[str, Any] | None,
    error: float | None,
    parts: list[dict[str, Any]],
) -> list[Finding]:
    findings = []
    if method != "pim":
        findings += [*([_against_the_commoner(found, rows)] if len(rows.score) else []), *_in_words(found)]
    if bins is not None and error is not None:
        findings += [_few(rows), _calibration(bins, error, found.confidence_level)]
        findings += _copied(rows)
    odd = [part for part in parts if part["is_odd"]]
    if odd:
        names = ", ".join(f"{part['label']} ({_percent(part['accuracy'])} %)" for part in odd)
        findings.append(
            Finding("Is it as good everywhere?", f"No: {names} differ from the others by more than chance.", True)
        )
    elif parts:
        findings.append(
            Finding("Is it as good everywhere?", "No category differs from the others by more than chance.")
        )
    return findings


def _copied(rows: _Labelled) -> list[Finding]:
    """Scores and labels that are nearly all there a multiple of a number of times; a few copies may be chance."""
    label = rows.is_positive.astype(np.float64)
    found = copies(row_keys(rows.score, label), None, label, prediction=rows.score)
    if not found.n:
        return []
    sentence = (
        f"{found}: intervals count each of them, and are too narrow by a factor of {found.factor:.3g}. Leave the "
        "copies out: np.unique(duplicate_groups(X, y), return_index=True)[1] are the first rows of each kind."
    )
    return [Finding("Are rows copies of others?", sentence, True)]


def _against_the_commoner(found: ClassificationUncertainty, rows: _Labelled) -> Finding:
    """Accuracy is above the commoner class's share where most of the rows called the rarer class belong to it."""
    n_negative, n_positive = rows.n_by_class
    name, rarer = ("ppv", "positive") if n_positive <= n_negative else ("npv", "negative")
    lower, upper = found.lower[name][0], found.upper[name][0]
    question = "Is it better than always giving the commoner answer?"
    if np.isnan(found.value[name][0]):
        return Finding(
            question, f"No: it calls no row {rarer}, the rarer class. Another threshold may do better.", True
        )
    ends = f"{_percent(lower)} to {_percent(upper)} % of the rows that it calls {rarer}, the rarer class, are"
    if lower > 0.5:
        return Finding(question, f"Yes: {ends}, which is more than half.")
    if upper < 0.5:
        then = "Another threshold may do better; where misses cost more than false alarms, accuracy is no guide."
        return Finding(question, f"No: {ends}, less than half. {then}", True)
    return Finding(question, f"Not certain: {ends}; it would have to be more than half. More labelled rows tell.", True)


def _in_words(found: ClassificationUncertainty) -> list[Finding]:
    ends = {name: f"{_percent(found.lower[name][0])} to {_percent(found.upper[name][0])} %" for name in METRICS}
    width = found.upper["accuracy"][0] - found.lower["accuracy"][0]
    # Without labels of its own, or with few among many, what is known comes from those that calibrate or are there.
    scarce = found.assumes == ALIKE or found.method["accuracy"][0] == "prediction-powered"
    rows = "rows with a label" if scarce else "rows"
    return [
        Finding("What is a positive answer worth?", f"{ends['ppv']} of the rows called positive are positive."),
        Finding("How many positives does it find?", f"{ends['tpr']} of the positives are called positive."),
        Finding(
            "Would more rows help?",
            f"Accuracy is known to {_percent(width)} percentage points; four times as many {rows} about halve that.",
        ),
    ]


def _few(rows: _Labelled) -> Finding:
    n_negative, n_positive = rows.n_by_class
    text = f"{n_positive:,} positives and {n_negative:,} negatives have a label."
    if min(n_negative, n_positive) >= FEW:
        return Finding("Are there enough rows of each class?", text)
    return Finding(
        "Are there enough rows of each class?", f"{text} What is said of the rarer class rests on very few rows.", True
    )


def _calibration(bins: dict[str, Any], error: float, level: float) -> Finding:
    question = "Can scores be read as probabilities?"
    n_bins, n_off = len(bins["score"]), sum(bins["is_off"])
    if bins["p_value"] > 1.0 - level:
        return Finding(question, f"Nothing speaks against it: none of {n_bins} bins contradicts the score.")
    where = (
        f"in {n_off} of {n_bins} bins the share of positives contradicts the score"
        if n_off
        else f"the labels contradict them (p = {bins['p_value']:.2g}), though no single one of {n_bins} bins does"
    )
    size = f" Typically they are {_percent(error)} percentage points off (calibration error)." if error else ""
    has_both = 0.0 < sum(bins["share"]) < n_bins  # which a calibrator needs
    return Finding(question, f"No: {where}.{size}{' pm.calibrated_scores mends that.' if has_both else ''}", True)


def _n_bins(rows: _Labelled) -> int:
    return min(N_BINS, max(1, len(rows.score) // BIN_ROWS))


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
    cuts = [round((i + 1) / (N_CUTS + 1), 12) for i in range(N_CUTS)]
    rates = [Rates.of(rows.cells(cut)) for cut in cuts]
    values = {name: [float(METRICS[name](each)) for each in rates] for name in ("accuracy", "tpr", "ppv")}
    known = {name: [None if np.isnan(value) else value for value in column] for name, column in values.items()}
    return {"threshold": list(cuts), **known}


def _parts(rows: _Labelled, by: NDArray[Any], threshold: float, level: float) -> list[dict[str, Any]]:
    """Accuracy of each category beside that of all others; intervals hold for all categories together."""
    codes, labels = categories(by)
    is_right = rows.is_positive == _is_above(rows.score, threshold)
    counts = np.bincount(codes, minlength=len(labels))
    right = np.bincount(codes, is_right, minlength=len(labels))
    shared = 1.0 - (1.0 - level) / max(len(labels), 1)
    # Were all categories alike, each would hold a random draw of the right answers: Fisher's exact test.
    law = hypergeom(len(is_right), int(right.sum()), counts)
    by_chance = 2.0 * np.minimum(law.cdf(right), law.sf(right - 1))
    found = []
    for label, n, hits, chance in zip(labels, counts.tolist(), right.tolist(), by_chance, strict=True):
        lower, upper = clopper_pearson(Share(hits / n, float(n)), shared)
        found.append(
            {
                "label": label,
                "rows": n,
                "accuracy": hits / n,
                "lower": lower,
                "upper": upper,
                "is_odd": bool(chance < 1.0 - shared),
            }
        )
    return found


def _percent(share: float) -> str:
    return "?" if np.isnan(share) else percent(share, 3).removesuffix(" %")
