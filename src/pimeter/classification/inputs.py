"""Labels, scores, classes, thresholds and metrics of a classifier, checked and brought into one form."""

from __future__ import annotations

import re
import warnings
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from pimeter.arrays import even_array, is_missing, real_array
from pimeter.classification.rates import ALSO_CALLED, METRICS, Metric
from pimeter.classification.score_metrics import SCORE_METRICS
from pimeter.coverage import counted
from pimeter.frames import refuse_other_orders
from pimeter.validation import scores_between_0_and_1

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pimeter.protocols import Array, Flags, Index

MAX_STANDARD_ERRORS = 4.0  # by which ranks of the positive class may be lower without a warning
MIN_ROWS_TO_COMPARE = 10  # of each class, from which on these errors are known
SCORE_ROUNDING = 1e-9  # by which scores may be lower, which may be rounding
MAX_OFF_1 = 0.01  # by which the scores of two classes may miss 1, such as those of few digits

Metrics = str | Metric | Sequence[str | Metric] | Mapping[str, Metric]


class CodedClasses(NamedTuple):
    """Classes as numbers, and which rows have one."""

    codes: Index  # -1 where there is no label
    classes: list[Hashable]
    is_known: Flags

    def in_order(self, classes: list[Hashable]) -> CodedClasses:
        """Labels whose codes are places among these classes."""
        place = np.array([classes.index(label) for label in self.classes])
        codes = self.codes.copy()
        codes[self.is_known] = place[self.codes[self.is_known]]
        return CodedClasses(codes, classes, self.is_known)


class OneAgainstRest(NamedTuple):
    """Rows of one class among others, and their scores of it."""

    is_positive: Flags
    score: Array


class LabelledScores(NamedTuple):
    """Labels and scores of the rows that calibrate."""

    labels: CodedClasses
    score: Array

    def of_class(self, classes: list[Hashable], column: int) -> OneAgainstRest:
        """Which rows are of the class in this column, and their scores."""
        positive, other = classes[column], classes[1 - column]  # the other is None where nothing says what it is
        known = self.labels.classes
        has_both = len(known) == 2 and positive in known and (other is None or other in known)
        if self.score.ndim != 1 or not has_both:
            which = f"{positive!r} one of them" if other is None else f"{positive!r} and {other!r}"
            msg = (
                f"calibration needs one score per row and two classes, {which}; got scores of shape "
                f"{self.score.shape} and classes {known!r}."
            )
            raise ValueError(msg)
        return OneAgainstRest(self.labels.codes == known.index(positive), self.score)


class AskedMetrics(NamedTuple):
    """Metrics that are asked for, by what they are computed from."""

    of_scores: list[str]  # such as the area under the ROC curve
    of_rates: Metrics | None  # None: all that are built in


def metric_functions(given: Metrics | None) -> dict[str, Metric]:
    """Functions of the four rates by name; all that are built in where none are given."""
    if given is None:
        return dict(METRICS)
    if isinstance(given, Mapping):
        named: dict[str, str | Metric] = dict(given)
    else:
        listed = [given] if isinstance(given, str) or callable(given) else list(given)
        named = {one if isinstance(one, str) else getattr(one, "__name__", "<lambda>"): one for one in listed}
    if not named:
        msg = "metrics is empty; leave it out for all metrics."
        raise ValueError(msg)
    return {name: _metric_function(name, one) for name, one in named.items()}


def asked_metrics(given: Metrics | None) -> AskedMetrics:
    """Names of metrics of scores among those asked for, and the rest, which are metrics of the four rates."""
    if isinstance(given, str):
        return AskedMetrics([given], []) if given in SCORE_METRICS else AskedMetrics([], given)
    if given is None or callable(given) or isinstance(given, Mapping):
        return AskedMetrics([], given)
    listed = list(given)
    names = [one for one in listed if isinstance(one, str) and one in SCORE_METRICS]
    return AskedMetrics(names, [one for one in listed if one not in names])


def _metric_function(name: str, given: str | Metric) -> Metric:
    metric = METRICS.get(ALSO_CALLED.get(given, given)) if isinstance(given, str) else given
    if metric is None or not callable(metric):
        raise ValueError(_unknown_metric(given))
    if name == "<lambda>":
        msg = (
            'metrics: a lambda has no name to report it by; give a dict, such as {"youden": lambda r: r.tp + r.tn - 1}.'
        )
        raise ValueError(msg)
    return metric


def _unknown_metric(given: object) -> str:
    """What can be asked for instead; averages and single classes come with the metric itself."""
    alone = re.sub(r"^(macro|micro)_|\[.*\]$", "", given) if isinstance(given, str) else ""
    if alone != given and alone in {*METRICS, *ALSO_CALLED}:
        return (
            f"metrics: ask for {alone!r} instead of {given!r}. With more than two classes the answer has "
            f"'macro_{alone}', 'micro_{alone}' and '{alone}[label]' of each class."
        )
    names = ", ".join([*METRICS, *ALSO_CALLED, *SCORE_METRICS])
    return f"metrics: {given!r} is not known. Choose from {names}, or give a function of the four rates."


def class_scores(name: str, given: ArrayLike) -> Array:
    """Scores of the positive class (n,), or of each class (n, k); those of two classes add up to 1."""
    score = scores_between_0_and_1(name, given)
    if score.ndim == 2 and score.shape[1] == 2 and np.abs(score.sum(axis=1) - 1.0).max() > MAX_OFF_1:
        row = int(np.argmax(np.abs(score.sum(axis=1) - 1.0)))
        msg = (
            f"{name} has two columns that must add up to 1; row {row} adds up to {score[row].sum():g}. Give the column "
            "of the positive class alone, or divide each row by its sum."
        )
        raise ValueError(msg)
    return score


def class_labels(name: str, given: ArrayLike, n: int) -> CodedClasses:
    """Labels as codes of sorted classes; NaN and None are rows without a label."""
    labels = even_array(name, given)
    if labels.shape != (n,):
        msg = f"{name} must hold one label for each of the {n} rows of scores; got shape {labels.shape}."
        raise ValueError(msg)
    if labels.dtype.kind == "O":
        missing = np.array([is_missing(label) for label in labels.tolist()])
    else:
        missing = np.isnan(labels) if labels.dtype.kind == "f" else np.zeros(n, bool)
    try:
        classes, codes = np.unique(labels[~missing], return_inverse=True)
    except TypeError as mixed:
        msg = f"{name} mixes labels that cannot be sorted ({mixed}); use labels of one type."
        raise ValueError(msg) from mixed
    all_codes = np.full(n, -1, np.intp)
    all_codes[~missing] = codes.reshape(-1)
    return CodedClasses(all_codes, classes.tolist(), ~missing)


def refuse_missing(name: str, labels: CodedClasses) -> CodedClasses:
    """Labels of which no row lacks one, or a ValueError."""
    if not labels.is_known.all():
        n, first = int(np.count_nonzero(~labels.is_known)), int(np.argmin(labels.is_known))
        msg = (
            f"{name} has {counted(n, 'missing label')}, the first in row {first}. Leave these rows out, or use "
            'method="prediction-powered", which knows what to do with them.'
        )
        raise ValueError(msg)
    return labels


def calibration_rows(given: tuple[ArrayLike, ArrayLike]) -> LabelledScores:
    """Labels and scores of the rows that calibrate."""
    try:
        y, score = given
    except (TypeError, ValueError) as wrong:
        msg = "calibration must be a pair (y, score) of the rows that the calibrator was fitted on."
        raise ValueError(msg) from wrong
    refuse_other_orders({"calibration[0]": y, "calibration[1]": score})
    scores = class_scores("calibration score", score)
    return LabelledScores(refuse_missing("calibration y", class_labels("calibration y", y, len(scores))), scores)


def ordered_classes(
    known: CodedClasses | None,
    score: Array,
    labels: Sequence[Hashable] | None,
    pos_label: Hashable,
    calibration: LabelledScores | None = None,
) -> list[Hashable]:
    """The classes in the order of the columns of the score."""
    k = 2 if score.ndim == 1 else score.shape[1]
    if labels is not None:
        classes = named_classes(labels, k, "y_score")
    elif known is None:
        return _classes_without_labels(score, k, pos_label, calibration)
    else:
        classes = known.classes
    if known is not None:
        _check_classes(known, classes, k, labels is not None)
    return classes


def named_classes(labels: Sequence[Hashable], k: int, name: str) -> list[Any]:
    """Labels of the k columns of an argument, each named once."""
    classes: list[Any] = np.asarray(labels).tolist()
    if len(classes) != k or len(set(classes)) != k:
        msg = f"labels must name the {k} classes of the columns of {name}, each once; got {classes!r}."
        raise ValueError(msg)
    return classes


def _classes_without_labels(
    score: Array, k: int, pos_label: Hashable, calibration: LabelledScores | None
) -> list[Hashable]:
    """Classes where neither labels nor names of classes are given: those of the rows that calibrate, or numbers."""
    if score.shape[1:] == (2,) and calibration is not None and len(calibration.labels.classes) == 2:
        return calibration.labels.classes
    if score.shape[1:] == (2,) and pos_label != 1:
        msg = (
            "y_score has two columns, and without y_true nothing says which of them is about "
            f"pos_label={pos_label!r}. Give labels in the order of the columns, or the column of the "
            "positive class alone."
        )
        raise ValueError(msg)
    return [None, pos_label] if k == 2 else list(range(k))


def _check_classes(known: CodedClasses, classes: list[Hashable], k: int, are_named: bool) -> None:
    """Refuse labels that do not fit the classes of the scores."""
    if len(known.classes) < 2 and not are_named:
        msg = (
            f"y_true holds one class only ({known.classes}). Name all classes, such as labels=[0, 1]: what rows say "
            "nothing of is then not known. Or give rows of other classes, too."
        )
        raise ValueError(msg)
    unknown = [label for label in known.classes if label not in classes]
    if unknown or len(classes) != k:
        what = f"labels {classes!r}" if are_named else f"scores for {k} classes"
        msg = (
            f"y_true holds {len(known.classes)} classes ({', '.join(map(repr, known.classes[:5]))}, ...), "
            f"which do not fit {what}. Give y_score of shape (n, n_classes), and labels in the order of its columns."
        )
        raise ValueError(msg)


def positive_column(classes: list[Hashable], pos_label: Hashable) -> int:
    """Which of two classes is the positive one."""
    if pos_label not in classes:
        msg = f"pos_label={pos_label!r} is not one of the classes {classes!r}; say which of them is the positive one."
        raise ValueError(msg)
    return classes.index(pos_label)


def warn_if_swapped(
    name: str, score: Array, groups: list[Flags], weights: Array | None, label: Hashable, *, stacklevel: int = 3
) -> None:
    """Warn of scores that are clearly lower for the class they are about: every rate would be another one.

    Ranks are compared, as by Mann and Whitney: means of few skewed scores are low more often than high.
    """
    counts = [members if weights is None else members & (weights > 0.0) for members in groups]
    if min(map(np.count_nonzero, counts)) < MIN_ROWS_TO_COMPARE:
        return
    every = counts[0] | counts[1]
    ranks = np.full(len(score), np.nan)
    ranks[every] = rankdata(score[every])
    means, error = [], 0.0
    for members in counts:
        own = np.ones(np.count_nonzero(members)) if weights is None else weights[members]
        means.append(np.average(ranks[members], weights=own))
        error += np.var(ranks[every]) * (own @ own) / own.sum() ** 2
    middles = [float(np.median(score[members])) for members in counts]
    if means[0] < means[1] - MAX_STANDARD_ERRORS * np.sqrt(error) and middles[0] < middles[1] - SCORE_ROUNDING:
        msg = (
            f"{name} is lower where the label is {label!r} (median {middles[0]:.3g}, elsewhere {middles[1]:.3g}), but "
            "it is read as the score of that class. Is it about the other one? Then give that as pos_label."
        )
        warnings.warn(msg, UserWarning, stacklevel=stacklevel)


def checked_thresholds(given: float | ArrayLike) -> Array:
    """A threshold or a list of thresholds, from 0 to 1 inclusive."""
    thresholds: Array = real_array("threshold", given).astype(np.float64)
    if thresholds.ndim > 1 or not thresholds.size or not ((thresholds >= 0.0) & (thresholds <= 1.0)).all():
        msg = f"threshold must be a number, or a list of numbers, between 0 and 1; got {given!r}."
        raise ValueError(msg)
    return thresholds


def as_precise(thresholds: Array, score: ArrayLike) -> Array:
    """Thresholds as scores of few digits would have them: .3 in single precision is not above .3."""
    dtype = np.asarray(score).dtype
    return thresholds.astype(dtype).astype(np.float64) if dtype.kind == "f" else thresholds
