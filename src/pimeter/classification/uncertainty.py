"""`classification_uncertainty`: how sure we can be of a classifier's numbers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from pimeter.arrays import even_array, is_missing, real_array
from pimeter.classification.confusion import BINOMIAL, Cells, Estimate, Sampling, by_classes, by_rates, outcome_codes
from pimeter.classification.propagation import propagated
from pimeter.classification.rates import METRICS, Metric, Rates
from pimeter.classification.unlabelled import ALIKE, CALIBRATED, REFITS, Calibrator, calibrated, prediction_powered
from pimeter.conformal.guarantee import rank_guarantee
from pimeter.coverage import checked_proportion, percent
from pimeter.errors import outcome_errors
from pimeter.frames import frame_of
from pimeter.quantiles import quantile

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]

METHODS = (*BINOMIAL, "bootstrap", "pim", "calibrated", "prediction-powered")
OUTCOMES = ("true negatives", "true positives", "false negatives", "false positives")
N_ERRORS = 4.0  # standard errors by which ranks of the positive class may be lower without a word
N_TO_TELL = 10  # rows of each class from which on these errors are known
TINY = 1e-9  # by which scores may be lower, which may be rounding
SUM_OFF = 0.01  # by which the scores of two classes may miss 1, such as those of few digits
SPREAD = "spread of the scores, not a confidence interval"


@dataclass(frozen=True, repr=False)
class ClassificationUncertainty:
    """Metrics of a classifier with their intervals.

    Attributes
    ----------
    estimates : list of dict of str to Estimate
        One dict for each threshold.
    thresholds : tuple of float
        Empty for several classes, where the likeliest is predicted.
    is_single : bool
        Whether one threshold was asked for, so that entries are numbers.
    confidence_level : float
        Of the intervals.
    n_rows : int
        Rows that were looked at.
    assumes : str or None
        What has to be true beyond rows that are drawn alike.
    """

    estimates: list[dict[str, Estimate]]
    thresholds: tuple[float, ...]
    is_single: bool
    confidence_level: float
    n_rows: int
    assumes: str | None = None

    @property
    def value(self) -> dict[str, Any]:
        """The metrics: numbers, or arrays with an entry for each threshold."""
        return self._column("value")

    @property
    def lower(self) -> dict[str, Any]:
        """Lower ends."""
        return self._column("lower")

    @property
    def upper(self) -> dict[str, Any]:
        """Upper ends."""
        return self._column("upper")

    @property
    def method(self) -> dict[str, Any]:
        """How each interval was made: a word, or a list of words."""
        return self._column("method")

    @property
    def note(self) -> dict[str, Any]:
        """What to know about each interval; empty words where there is nothing."""
        return self._column("note")

    def _column(self, field: str) -> dict[str, Any]:
        if self.is_single:
            return {name: getattr(one, field) for name, one in self.estimates[0].items()}
        found = {name: [getattr(each[name], field) for each in self.estimates] for name in self.estimates[0]}
        return found if field in {"method", "note"} else {name: np.array(values) for name, values in found.items()}

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain words, numbers, lists and dicts; NaN as None."""
        return {
            "confidence_level": self.confidence_level,
            "n_rows": self.n_rows,
            "assumes": self.assumes,
            "rows": [
                {key: None if isinstance(cell, float) and np.isnan(cell) else cell for key, cell in row.items()}
                for row in self._rows()
            ],
        }

    def to_frame(self, library: Any = "pandas") -> Any:
        """A row for each metric (and threshold), as a frame.

        Parameters
        ----------
        library : str, default="pandas"
            Name of the frame library, such as "polars".
        """
        rows = self._rows()
        return frame_of({key: [row[key] for row in rows] for key in rows[0]}, library)

    def _rows(self) -> list[dict[str, Any]]:
        thresholds: Sequence[float | None] = self.thresholds or (None,)
        return [
            {
                **({} if threshold is None else {"threshold": threshold}),
                "metric": name,
                "value": one.value,
                "lower": one.lower,
                "upper": one.upper,
                "method": one.method,
                "note": one.note,
            }
            for threshold, each in zip(thresholds, self.estimates, strict=True)
            for name, one in each.items()
        ]

    @property
    def _headline(self) -> str:
        text = f"{self.n_rows:,} rows, intervals for {percent(self.confidence_level)}"
        return f"{text}, assuming {self.assumes}" if self.assumes else text

    def __repr__(self) -> str:
        rows = self._rows()
        width = max(len(row["metric"]) for row in rows)
        lines = [
            (f"{row['threshold']:<6.4g} " if not self.is_single else "")
            + f"{row['metric']:<{width}}  {row['value']:7.4f}  [{row['lower']:7.4f}, {row['upper']:7.4f}]"
            + f"  {row['method']}"
            + (f" ({row['note']})" if row["note"] else "")
            for row in rows
        ]
        return "\n".join([self._headline, *lines])

    def _repr_html_(self) -> str:
        rows = self._rows()
        head = "".join(f"<th>{escape(key)}</th>" for key in rows[0])
        body = "".join(
            "<tr>"
            + "".join(
                f"<td>{f'{cell:.4f}' if isinstance(cell, float) else escape(str(cell))}</td>" for cell in row.values()
            )
            + "</tr>"
            for row in rows
        )
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f"<div><p>{escape(self._headline)}</p>{table}</div>"


def classification_uncertainty(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    confidence_level: float = 0.95,
    threshold: float | ArrayLike = 0.5,
    method: str = "wilson",
    metrics: str | Sequence[str | Metric] | Mapping[str, Metric] | None = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = 1,
    sample_weight: ArrayLike | None = None,
    calibration: tuple[ArrayLike, ArrayLike] | None = None,
    n_resamples: int = 2000,
    random_state: Any = None,
) -> ClassificationUncertainty:
    """Accuracy, precision, F1 and other metrics of a classifier, each with an interval that means what it says.

    Parameters
    ----------
    y_true : array-like of shape (n,) or None
        True classes, of rows that the classifier was not trained on. NaN or None: not labelled, for
        ``method="prediction-powered"``. None in all: no labels, for ``method="calibrated"``.
    y_score : array-like of shape (n,) or (n, K)
        Scores of the positive class, or of each class, between 0 and 1; those of two classes add up to 1.
    confidence_level : float, default=0.95
        How often intervals shall hold the metric of all rows of this kind.
    threshold : float or array-like of shape (T,), default=0.5
        Scores above it predict the positive class; a score equal to it (in the precision of the scores) does not.
        Several give a result for each. With more than two classes the one with the highest score is predicted (of
        equals the first), and there is no threshold.
    method : str, default="wilson"
        ``"wilson"``
            Wilson's interval for shares of rows (accuracy and rates), bootstrap for all else.
        ``"clopper-pearson"``
            The exact one for shares, which covers at least as often as it says, with equal weights; bootstrap for all
            else.
        ``"normal"``
            The paper's ``z sqrt(mu (1 - mu) / n)`` for shares, slopes (delta method) for all else; of more than two
            classes micro averages have a bootstrap interval here too.
        ``"bootstrap"``
            BCa of resampled rows, with the neuron's quantile. Where all rows of a share have the same answer:
            Clopper-Pearson; where an outcome never occurred: with half a row more of each. The `note` says so.
        ``"pim"``
            The paper's four neurons and their propagation. This is **the spread of the scores, not a confidence
            interval**: it does not shrink with more rows.
        ``"calibrated"``
            From scores alone, if they are calibrated; labels, if given, check that and warn.
        ``"prediction-powered"``
            From some rows with labels and others without; scores are used as far as they help, and not where an
            outcome that matters has no labelled row.
    metrics : name, list of names and functions, or dict of name to function, optional
        Any of accuracy, balanced_accuracy, tpr, fpr, tnr, fnr, ppv, npv, fdr, for, f1, mcc; all by default. A function
        takes a `Rates` object ``r`` with the four rates ``r.tn``, ``r.tp``, ``r.fn``, ``r.fp`` and the proportions
        ``r.p_n`` and ``r.p_p`` of the classes, which may be arrays, and computes with ``+ - * / **`` and numpy's sqrt,
        exp and log.
    labels : sequence, optional
        The classes, in the order of the columns of `y_score`; by default those of `y_true`, or without it those of
        `calibration`, sorted. Where neither is given, the second of two columns is taken for that of class 1. They have
        to be given where `y_true` may lack a class; its rates are NaN then, from 0 to 1.
    pos_label : object, default=1
        The positive class where there are two: the one that a column of `y_score` is about. Scores that are clearly
        lower for this class make a warning.
    sample_weight : array-like of shape (n,), optional
        Importance of the rows. Only ratios matter: what unequal weights cost in certainty is accounted for.
    calibration : tuple (y, score), optional
        For ``method="calibrated"``: labels and scores of the rows that the calibrator was fitted on. `score` has to be
        on the scale of `y_score`, both before the calibrator or both after it. Platt's map is fitted on these rows
        (again, if scores are calibrated already, which changes next to nothing), and what it leaves unexplained there
        is added. So the estimate is right if these rows are drawn like those of `y_score`, or if the map fits. Refits
        on resamples add the variance of both.
    n_resamples : int, default=2000
        Resamples of the bootstrap, at least ``10 / (1 - confidence_level)`` where one is made: 2000 do for 99.5 %. The
        calibrator is refitted 200 times at most.
    random_state : int, Generator or None, default=None
        Seed of resamples.

    Returns
    -------
    ClassificationUncertainty
        Dicts `value`, `lower`, `upper`, `method` and `note` by metric. With K > 2 classes there is ``"tpr[label]"`` for
        each class against all others, ``"macro_tpr"`` and ``"micro_tpr"`` for averages, and ``"accuracy"``,
        ``"balanced_accuracy"`` and ``"mcc"`` overall. Averages over classes have an interval by jackknife, whatever the
        method; a class without rows may have any value there.

    See Also
    --------
    outcome_errors : What the four neurons of ``method="pim"`` see.
    calibration_error : How far scores are from being calibrated.
    SetClassifier : Sets of classes that hold the true one as often as asked for.

    Notes
    -----
    Intervals are for one metric at one threshold, not for all at once. Rows have to be drawn alike and independently.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter import classification_uncertainty
    >>> rng = np.random.default_rng(0)
    >>> score = rng.uniform(size=500)
    >>> y = rng.uniform(size=500) < score
    >>> found = classification_uncertainty(y, score, metrics=["accuracy", "f1"], random_state=0)
    >>> found
    500 rows, intervals for 95 %
    accuracy   0.7640  [ 0.7249,  0.7991]  wilson
    f1         0.7815  [ 0.7411,  0.8159]  bootstrap

    Any function of the four rates, at several thresholds:

    >>> youden = {"youden": lambda r: r.tp + r.tn - 1}
    >>> found = classification_uncertainty(y, score, threshold=[0.4, 0.6], metrics=youden, random_state=0)
    >>> found.value["youden"].round(3)
    array([0.51 , 0.496])
    """
    level, method, draws = _checked(confidence_level, method, n_resamples, random_state)
    chosen = _metrics(metrics)
    score = _scores("y_score", y_score)
    weights = _weights(sample_weight, len(score))
    if method != "calibrated" and calibration is not None:
        msg = f'calibration is for method="calibrated"; got method={method!r}. Leave it out.'
        raise ValueError(msg)
    if method == "prediction-powered" and weights is not None:
        msg = 'sample_weight cannot be used with method="prediction-powered"; leave it out.'
        raise ValueError(msg)
    known = _labels(y_true, len(score), method)
    others = None if calibration is None else _calibration_labels(calibration)
    classes = _classes(known, score, labels, pos_label, others)
    if score.ndim == 2 and score.shape[1] > 2:
        return _several(known, score, classes, weights, chosen, level, method, threshold, draws)
    column = _positive(classes, pos_label)
    if score.ndim == 2:
        score = score[:, column]
    is_positive = None if known is None else known.codes == column
    if known is not None and is_positive is not None:
        _tell_if_swapped("y_score", score, [is_positive, known.is_known & ~is_positive], weights, classes[column])
    rows = None
    if others is not None:
        rows = _calibration_rows(*others, classes, column)
        _tell_if_swapped("calibration score", rows[1], [rows[0], ~rows[0]], None, classes[column])
    thresholds = _thresholds(threshold)
    task = _Task(known, is_positive, score, weights, chosen, level, draws)
    solve: Callable[..., _Found] = _BY_METHOD.get(method, _from_cells)
    with np.errstate(invalid="ignore", divide="ignore"):  # metrics of one's own may divide by 0
        estimates, assumes = solve(task, method, as_precise(thresholds, y_score), rows)
    return ClassificationUncertainty(
        estimates, tuple(thresholds.ravel().tolist()), thresholds.ndim == 0, level, len(score), assumes
    )


class _Labels(NamedTuple):
    """Classes as numbers, and which rows have one."""

    codes: NDArray[np.intp]
    classes: list[Any]
    is_known: NDArray[np.bool_]


class _Task(NamedTuple):
    """Checked input."""

    known: _Labels | None
    is_positive: NDArray[np.bool_] | None
    score: Array
    weights: Array | None
    metrics: dict[str, Metric]
    level: float
    draws: Sampling


_Found = tuple[list[dict[str, Estimate]], str | None]


def _from_cells(task: _Task, method: str, thresholds: Array, *_: Any) -> _Found:
    assert task.is_positive is not None
    estimates = []
    for threshold in thresholds.ravel():
        cells = Cells.counted(outcome_codes(task.is_positive, task.score > threshold), 4, task.weights)
        estimates.append(by_rates(cells, task.metrics, method, task.level, task.draws))
    return estimates, None


def _pim(task: _Task, method: str, thresholds: Array, *_: Any) -> _Found:
    assert task.is_positive is not None
    if task.weights is not None and np.ptp(task.weights) > 0.0:
        msg = 'sample_weight cannot be used with method="pim", whose neurons count rows; leave it out.'
        raise ValueError(msg)
    estimates = []
    for threshold in thresholds.ravel():
        errors = outcome_errors(task.is_positive, task.score, threshold=threshold)
        enough = [rank_guarantee(len(part), task.level).is_enough for part in errors]
        radii = [
            float(quantile(part, task.level, reflect=True)) if kept else np.nan
            for part, kept in zip(errors, enough, strict=True)
        ]
        few = [f"{len(part)} {name}" for part, name, kept in zip(errors, OUTCOMES, enough, strict=True) if not kept]
        rates = Rates.of(np.array([len(part) for part in errors], float))
        found = {}
        for name, metric in task.metrics.items():
            value = float(metric(rates))
            delta = propagated(
                lambda *r, metric=metric, rates=rates: metric(Rates(r[0], r[1], r[2], r[3], rates.p_n, rates.p_p)),
                np.array(rates[:4]),
                np.array(radii) / 2.0,
            )
            note = SPREAD if np.isfinite(delta) else f"too few errors for a neuron at {task.level:g}: {', '.join(few)}"
            found[name] = Estimate(value, value - delta, value + delta, method, note)
        estimates.append(found)
    return estimates, None


def _calibrated(task: _Task, _method: str, thresholds: Array, rows: tuple[NDArray[np.bool_], Array] | None) -> _Found:
    calibrator = None
    if rows is not None:
        calibrator = Calibrator.fitted(*rows, thresholds, min(task.draws.n_resamples, REFITS), task.draws.rng)
    estimates = calibrated(task.score, task.is_positive, thresholds, task.weights, task.metrics, task.level, calibrator)
    return estimates, CALIBRATED if calibrator is None else ALIKE


def _prediction_powered(task: _Task, _method: str, thresholds: Array, *_: Any) -> _Found:
    assert task.is_positive is not None
    assert task.known is not None
    is_labelled = task.known.is_known
    if is_labelled.all() or is_labelled.sum() < 2:
        msg = (
            'method="prediction-powered" needs rows with and without a label (NaN in y_true); got '
            f"{is_labelled.sum()} with and "
            f'{np.count_nonzero(~is_labelled)} without. With labels for all rows use method="wilson".'
        )
        raise ValueError(msg)
    rows = (task.score, is_labelled, task.is_positive)
    how = (task.metrics, task.level, task.draws)
    return [prediction_powered(*rows, float(one), *how) for one in thresholds.ravel()], None


_BY_METHOD: dict[str, Callable[..., _Found]] = {
    "pim": _pim,
    "calibrated": _calibrated,
    "prediction-powered": _prediction_powered,
}


def _several(
    known: _Labels | None,
    score: Array,
    classes: list[Any],
    weights: Array | None,
    metrics: dict[str, Metric],
    level: float,
    method: str,
    threshold: Any,
    draws: Sampling,
) -> ClassificationUncertainty:
    """More than two classes."""
    if method not in {*BINOMIAL, "bootstrap"}:
        msg = (
            f"method={method!r} needs two classes; y_score has {score.shape[1]} columns. Ask for one "
            "class against all others: "
            "y_true == label, with its column of y_score."
        )
        raise ValueError(msg)
    if np.ndim(threshold) or threshold != 0.5:
        msg = (
            f"threshold={threshold!r} has no meaning for {len(classes)} classes, of which the likeliest is "
            "predicted; leave it out."
        )
        raise ValueError(msg)
    assert known is not None
    k = len(classes)
    cells = Cells.counted(known.codes * k + score.argmax(axis=1), k * k, weights)
    with np.errstate(invalid="ignore", divide="ignore"):  # metrics of one's own may divide by 0
        found = by_classes(cells, classes, metrics, method, level, draws)
    return ClassificationUncertainty([found], (), True, level, len(score))


def _checked(confidence_level: float, method: str, n_resamples: int, random_state: Any) -> tuple[float, str, Sampling]:
    level = checked_proportion("confidence_level", confidence_level)
    if method not in METHODS:
        msg = f"method must be one of {', '.join(METHODS)}; got {method!r}."
        raise ValueError(msg)
    if not isinstance(n_resamples, Integral) or n_resamples < 100:
        msg = f"n_resamples must be a whole number of at least 100; got {n_resamples!r}."
        raise ValueError(msg)
    return level, method, Sampling(int(n_resamples), np.random.default_rng(random_state))


def _metrics(given: Any) -> dict[str, Metric]:
    """Names and functions."""
    if given is None:
        return dict(METRICS)
    if isinstance(given, Mapping):
        chosen = dict(given)
    else:
        listed = [given] if isinstance(given, str) or callable(given) else list(given)
        chosen = {one if isinstance(one, str) else getattr(one, "__name__", "<lambda>"): one for one in listed}
    found = {}
    for name, one in chosen.items():
        metric = METRICS.get(one) if isinstance(one, str) else one
        if metric is None or not callable(metric):
            msg = (
                f"metrics: {one!r} is not known. Choose from {', '.join(METRICS)}, or give a function of the "
                "four rates."
            )
            raise ValueError(msg)
        if name == "<lambda>":
            msg = (
                "metrics: a lambda has no name to report it by; give a dict, such as "
                '{"youden": lambda r: r.tp + r.tn - 1}.'
            )
            raise ValueError(msg)
        found[name] = metric
    if not found:
        msg = "metrics is empty; leave it out for all metrics."
        raise ValueError(msg)
    return found


def _scores(name: str, given: ArrayLike) -> Array:
    score = real_array(name, given)
    if score.ndim not in {1, 2} or not score.size:
        msg = f"{name} must have shape (n,) or (n, n_classes), with at least one row; got {score.shape}."
        raise ValueError(msg)
    score = score.astype(np.float64, copy=False)
    if score.ndim == 2 and score.shape[1] == 1:
        score = score[:, 0]
    if not (score.min() >= 0.0 and score.max() <= 1.0):
        wrong = ~((score >= 0.0) & (score <= 1.0))
        where = ", ".join(str(i) for i in np.argwhere(wrong)[0])
        msg = (
            f"{name} must be scores between 0 and 1; {name}[{where}] is {score[wrong][0]:g}. For other "
            "scores take a sigmoid first, "
            "such as scipy.special.expit of a decision function; leave out rows with NaN."
        )
        raise ValueError(msg)
    if score.ndim == 2 and score.shape[1] == 2 and np.abs(score.sum(axis=1) - 1.0).max() > SUM_OFF:
        row = int(np.argmax(np.abs(score.sum(axis=1) - 1.0)))
        msg = (
            f"{name} has two columns that must add up to 1; row {row} adds up to {score[row].sum():g}. Give the column "
            "of the positive class alone, or divide each row by its sum."
        )
        raise ValueError(msg)
    return score


def _weights(given: ArrayLike | None, n: int) -> Array | None:
    if given is None:
        return None
    weights: Array = real_array("sample_weight", given).astype(np.float64)
    if weights.shape != (n,):
        msg = f"sample_weight must hold one weight for each of the {n} rows; got shape {weights.shape}."
        raise ValueError(msg)
    if not np.isfinite(weights).all() or (weights < 0.0).any() or not weights.any():
        msg = f"sample_weight must be finite, not negative and not all 0; got {weights.min():g} to {weights.max():g}."
        raise ValueError(msg)
    weights /= weights.max()  # so that neither squares nor sums leave the range of floats
    return weights


def _labels(given: ArrayLike | None, n: int, method: str, name: str = "y_true") -> _Labels | None:
    """Labels as codes of sorted classes; rows without one where the method allows it."""
    if given is None:
        if method == "calibrated":
            return None
        msg = f'{name} is None, which only method="calibrated" can do without; got method={method!r}.'
        raise ValueError(msg)
    labels = even_array(name, given)
    if labels.shape != (n,):
        msg = f"{name} must hold one label for each of the {n} rows of scores; got shape {labels.shape}."
        raise ValueError(msg)
    if labels.dtype.kind == "O":
        missing = np.array([is_missing(label) for label in labels.tolist()])
    else:
        missing = np.isnan(labels) if labels.dtype.kind == "f" else np.zeros(n, bool)
    if missing.any() and method != "prediction-powered":
        msg = (
            f"{name} has {missing.sum()} missing labels, the first in row {int(np.argmax(missing))}. "
            "Leave these rows out, or use "
            'method="prediction-powered", which knows what to do with them.'
        )
        raise ValueError(msg)
    try:
        classes, codes = np.unique(labels[~missing], return_inverse=True)
    except TypeError as mixed:
        msg = f"{name} mixes labels that cannot be sorted ({mixed}); use labels of one type."
        raise ValueError(msg) from mixed
    all_codes = np.full(n, -1, np.intp)
    all_codes[~missing] = codes.reshape(-1)
    return _Labels(all_codes, classes.tolist(), ~missing)


def _classes(
    known: _Labels | None,
    score: Array,
    labels: Sequence[Any] | None,
    pos_label: Any,
    others: tuple[_Labels, Array] | None,
) -> list[Any]:
    """The classes in the order of columns of the score; codes are changed to it."""
    k = 2 if score.ndim == 1 else score.shape[1]
    if labels is not None:
        classes = list(np.asarray(labels).tolist())
        if len(classes) != k or len(set(classes)) != k:
            msg = f"labels must name the {k} classes that y_score is about; got {classes!r}."
            raise ValueError(msg)
    elif known is None:
        classes = [None, pos_label] if k == 2 else list(range(k))
        if score.shape[1:] == (2,) and others is not None and len(others[0].classes) == 2:
            classes = others[0].classes
        elif score.shape[1:] == (2,) and pos_label != 1:
            msg = (
                "y_score has two columns, and without y_true nothing says which of them is about "
                f"pos_label={pos_label!r}. Give labels in the order of the columns, or the column of the "
                "positive class alone."
            )
            raise ValueError(msg)
    else:
        classes = known.classes
    if known is None:
        return classes
    if len(known.classes) < 2 and labels is None:
        msg = (
            f"y_true holds one class only ({known.classes}). Name all classes, such as labels=[0, 1]: what rows say "
            "nothing of is then not known. Or give rows of other classes, too."
        )
        raise ValueError(msg)
    unknown = [label for label in known.classes if label not in classes]
    if unknown or len(classes) != k:
        what = f"labels {classes!r}" if labels is not None else f"scores for {k} classes"
        msg = (
            f"y_true holds {len(known.classes)} classes ({', '.join(map(repr, known.classes[:5]))}, ...), "
            f"which do not fit {what}. Give y_score of "
            "shape (n, n_classes), and labels in the order of its columns."
        )
        raise ValueError(msg)
    place = np.array([classes.index(label) for label in known.classes])
    known.codes[known.is_known] = place[known.codes[known.is_known]]
    return classes


def _positive(classes: list[Any], pos_label: Any) -> int:
    if pos_label not in classes:
        msg = f"pos_label={pos_label!r} is not one of the classes {classes!r}; say which of them is the positive one."
        raise ValueError(msg)
    return classes.index(pos_label)


def _tell_if_swapped(
    name: str, score: Array, groups: list[NDArray[np.bool_]], weights: Array | None, label: Any
) -> None:
    """Scores about the other class would turn every rate into another one.

    Ranks are compared, as by Mann and Whitney: means of few skewed scores are low more often than high.
    """
    counts = [members if weights is None else members & (weights > 0.0) for members in groups]
    if min(map(np.count_nonzero, counts)) < N_TO_TELL:
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
    if means[0] < means[1] - N_ERRORS * np.sqrt(error) and middles[0] < middles[1] - TINY:
        msg = (
            f"{name} is lower where the label is {label!r} (median {middles[0]:.3g}, elsewhere {middles[1]:.3g}), but "
            "it is read as the score of that class. Is it about the other one? Then give that as pos_label."
        )
        warnings.warn(msg, UserWarning, stacklevel=3)


def _thresholds(given: Any) -> Array:
    thresholds: Array = real_array("threshold", given).astype(np.float64)
    if thresholds.ndim > 1 or not thresholds.size or not ((thresholds >= 0.0) & (thresholds <= 1.0)).all():
        msg = f"threshold must be a number, or a list of numbers, between 0 and 1; got {given!r}."
        raise ValueError(msg)
    return thresholds


def as_precise(thresholds: Array, score: ArrayLike) -> Array:
    """Thresholds as scores of few digits would have them: .3 in single precision is not above .3."""
    dtype = np.asarray(score).dtype
    return thresholds.astype(dtype).astype(np.float64) if dtype.kind == "f" else thresholds


def _calibration_labels(given: Any) -> tuple[_Labels, Array]:
    """Labels and scores of the rows that calibrate."""
    try:
        y, score = given
    except (TypeError, ValueError) as wrong:
        msg = "calibration must be a pair (y, score) of the rows that the calibrator was fitted on."
        raise ValueError(msg) from wrong
    scores = _scores("calibration score", score)
    known = _labels(y, len(scores), "", "calibration y")
    assert known is not None
    return known, scores


def _calibration_rows(
    known: _Labels, scores: Array, classes: list[Any], column: int
) -> tuple[NDArray[np.bool_], Array]:
    """Which rows are positive, and their scores."""
    positive, other = classes[column], classes[1 - column]  # the other is None where nothing says what it is
    is_fit = len(known.classes) == 2 and positive in known.classes and (other is None or other in known.classes)
    if scores.ndim != 1 or not is_fit:
        which = f"{positive!r} one of them" if other is None else f"{positive!r} and {other!r}"
        msg = (
            f"calibration needs one score per row and two classes, {which}; got scores "
            f"of shape {scores.shape} and "
            f"classes {known.classes!r}."
        )
        raise ValueError(msg)
    return known.codes == known.classes.index(positive), scores
