"""`classification_uncertainty`: how sure we can be of a classifier's numbers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pimeter.classification.confusion import BINOMIAL, Cells, Sampling, by_rates, outcome_codes
from pimeter.classification.estimates import ClassificationUncertainty, Estimate
from pimeter.classification.grouped import GroupedCells, by_groups
from pimeter.classification.inputs import (
    CodedClasses,
    OneAgainstRest,
    as_precise,
    asked_metrics,
    calibration_rows,
    checked_thresholds,
    class_labels,
    class_scores,
    metric_functions,
    ordered_classes,
    positive_column,
    refuse_missing,
    warn_if_swapped,
)
from pimeter.classification.score_metrics import by_scores
from pimeter.classification.several_classes import by_classes
from pimeter.classification.unlabelled import (
    CALIBRATED,
    REFITS,
    SAME_POPULATION,
    Calibrator,
    calibrated,
    prediction_powered,
)
from pimeter.clusters import Units, group_numbers
from pimeter.frames import refuse_other_orders
from pimeter.validation import integer, one_level, row_weights

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pimeter.classification.rates import Metric
    from pimeter.protocols import Array, Flags

METHODS = (*BINOMIAL, "bootstrap", "calibrated", "prediction-powered")


def classification_uncertainty(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    confidence_level: float = 0.95,
    threshold: float | ArrayLike = 0.5,
    method: str = "wilson",
    metrics: str | Sequence[str | Metric] | Mapping[str, Metric] | None = None,
    labels: Sequence[Hashable] | None = None,
    pos_label: Hashable = 1,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    calibration: tuple[ArrayLike, ArrayLike] | None = None,
    n_resamples: int = 2000,
    random_state: int | np.random.Generator | None = None,
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
        How often intervals should hold the metric of all rows of this kind.
    threshold : float or array-like of shape (T,), default=0.5
        Scores above it predict the positive class; a score equal to it (in the precision of the scores) does not.
        Several give a result for each. With more than two classes the one with the highest score is predicted (of
        equals the first), and there is no threshold.
    method : str, default="wilson"
        ``"wilson"``
            Wilson's interval for proportions (accuracy and rates), bootstrap for all else.
        ``"clopper-pearson"``
            The exact one for proportions, which covers at least as often as it says, with equal weights; bootstrap for
            all else.
        ``"normal"``
            The paper's ``z sqrt(mu (1 - mu) / n)`` for proportions, slopes (delta method) for all else; of more than
            two classes micro averages have a bootstrap interval here too.
        ``"bootstrap"``
            BCa of resampled rows, with the neuron's quantile. Where all rows of a proportion have the same answer:
            Clopper-Pearson; where an outcome never occurred: with half a row more of each. The `note` says so.
        ``"calibrated"``
            From scores alone, if they are calibrated; labels, if given, check that and warn.
        ``"prediction-powered"``
            From some rows with labels and others without; scores are used as far as they help, and not where an
            outcome that matters has no labelled row.
    metrics : name, list of names and functions, or dict of name to function, optional
        Any of accuracy, balanced_accuracy, tpr, fpr, tnr, fnr, ppv, npv, fdr, for, f1, mcc; all by default. Also
        precision (ppv), recall and sensitivity (tpr) and specificity (tnr), by the name asked for. And metrics of
        scores, which know no threshold: roc_auc (DeLong's variance), average_precision, brier and log_loss, of two
        classes with 10 rows or more of each, at confidence levels as they are common (.9 to .99). A function takes
        a `Rates` object ``r`` with the four rates ``r.tn``, ``r.tp``, ``r.fn``, ``r.fp`` and the proportions ``r.p_n``
        and ``r.p_p`` of the classes, which may be arrays, and computes with ``+ - * / **`` and numpy's sqrt, exp and
        log.
    labels : sequence, optional
        The classes, in the order of the columns of `y_score`; by default those of `y_true`, or without it those of
        `calibration`, sorted. Where neither is given, the second of two columns is taken for that of class 1. They have
        to be given where `y_true` may lack a class; its rates are NaN then, from 0 to 1.
    pos_label : object, default=1
        The positive class where there are two: the one that a column of `y_score` is about. Scores that are clearly
        lower for this class make a warning.
    sample_weight : array-like of shape (n,), optional
        Importance of the rows. Only ratios matter: what unequal weights cost in certainty is accounted for.
    groups : array-like of shape (n,), optional
        Rows of one group belong together, as those of a patient do, and intervals count groups: proportions by as many
        independent rows as vary as much, all else by resampled groups, none with fewer than 10 groups. Where fewer than
        two groups of equal size are expected to have the rarer answer, a proportion counts each group as one row; where
        fewer than two hold a class, or predictions of it, what is resampled has no interval, and the `note` says so. If
        an outcome never occurred, half a group of each is added. For two classes, and not for ``method="calibrated"``
        and ``"prediction-powered"``.
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
    pimeter.paper.score_spread : The paper's ranges of metrics: how widely scores are spread, not how sure metrics are.
    calibration_error : How far scores are from being calibrated.
    SetClassifier : Sets of classes that hold the true one as often as asked for.

    Notes
    -----
    Intervals are for one metric at one threshold, not for all at once. Rows have to be from one distribution, and
    independent, or in `groups` that are.

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
    refuse_other_orders({"y_true": y_true, "y_score": y_score, "sample_weight": sample_weight, "groups": groups})
    level = one_level("confidence_level", confidence_level)
    if method not in METHODS:
        msg = f"method must be one of {', '.join(METHODS)}; got {method!r}."
        raise ValueError(msg)
    draws = Sampling(integer("n_resamples", n_resamples, at_least=100), np.random.default_rng(random_state))
    asked = asked_metrics(metrics)
    chosen = {} if asked.of_scores and not asked.of_rates else metric_functions(asked.of_rates)
    score = class_scores("y_score", y_score)
    weights = _relative_weights(sample_weight, len(score))
    _refuse_unused(method, weights, calibration)
    _refuse_for_scores(asked.of_scores, method, score, weights, groups)
    units = None if groups is None else _groups(groups, score, method)
    known = _labels(y_true, len(score), method)
    others = None if calibration is None else calibration_rows(calibration)
    classes = ordered_classes(known, score, labels, pos_label, others)
    known = None if known is None else known.in_order(classes)
    if score.ndim == 2 and score.shape[1] > 2:
        return _several(_Task(known, None, score, weights, chosen, level, draws, None), method, threshold)
    column = positive_column(classes, pos_label)
    if score.ndim == 2:
        score = score[:, column]
    is_positive = None if known is None else _is_of_class(known, column, score, weights)
    rows = None
    if others is not None:
        rows = others.of_class(classes, column)
        sides = [rows.is_positive, ~rows.is_positive]
        warn_if_swapped("calibration score", rows.score, sides, None, classes[column])
    thresholds = checked_thresholds(threshold)
    task = _Task(known, is_positive, score, weights, chosen, level, draws, units)
    solve: Callable[..., _Found] = _BY_METHOD.get(method, _from_cells)
    with np.errstate(invalid="ignore", divide="ignore"):  # metrics of the caller's may divide by 0
        estimates, assumes = solve(task, method, as_precise(thresholds, y_score), rows)
    return ClassificationUncertainty(
        _with_scores(estimates, asked.of_scores, task),
        tuple(thresholds.ravel().tolist()),
        thresholds.ndim == 0,
        level,
        len(score),
        assumes,
    )


class _Task(NamedTuple):
    """What `classification_uncertainty` was asked, checked."""

    known: CodedClasses | None
    is_positive: Flags | None
    score: Array
    weights: Array | None
    metrics: dict[str, Metric]
    level: float
    draws: Sampling
    units: Units | None  # groups of rows


def _is_of_class(known: CodedClasses, column: int, score: Array, weights: Array | None) -> Flags:
    """Which rows are of the class in this column; warns of scores that seem to be about the other one."""
    found: Flags = known.codes == column
    warn_if_swapped("y_score", score, [found, known.is_known & ~found], weights, known.classes[column], stacklevel=4)
    return found


def _with_scores(estimates: list[dict[str, Estimate]], names: list[str], task: _Task) -> list[dict[str, Estimate]]:
    """Estimates at each threshold, and beside them those of metrics that know no threshold."""
    if not names or task.is_positive is None:
        return estimates
    more = by_scores(names, task.is_positive, task.score, task.level)
    return [own | more for own in estimates]


_Found = tuple[list[dict[str, Estimate]], str | None]


def _labels(y_true: ArrayLike | None, n: int, method: str) -> CodedClasses | None:
    """Labels, which may be missing where the method allows it."""
    if y_true is None:
        if method == "calibrated":
            return None
        msg = f'y_true is None, which only method="calibrated" can do without; got method={method!r}.'
        raise ValueError(msg)
    labels = class_labels("y_true", y_true, n)
    return labels if method == "prediction-powered" else refuse_missing("y_true", labels)


def _groups(groups: ArrayLike, score: Array, method: str) -> Units:
    """Groups of rows, where they can be accounted for."""
    if method in _BY_METHOD or (score.ndim == 2 and score.shape[1] > 2):
        msg = (
            'groups needs two classes, and not method="calibrated" or "prediction-powered"; got '
            f"method={method!r} and y_score of shape {score.shape}. Ask for one class against all others."
        )
        raise ValueError(msg)
    return Units.of_groups(group_numbers(groups, len(score)))


def _relative_weights(sample_weight: ArrayLike | None, n: int) -> Array | None:
    """Weights of which the largest is 1, so that neither squares nor sums leave the range of floats."""
    if sample_weight is None:
        return None
    weights = row_weights("sample_weight", sample_weight, n)
    weights /= weights.max()
    return weights


def _refuse_unused(method: str, weights: Array | None, calibration: object) -> None:
    """Refuse what the method would ignore."""
    if method != "calibrated" and calibration is not None:
        msg = f'calibration is for method="calibrated"; got method={method!r}. Leave it out.'
        raise ValueError(msg)
    if method == "prediction-powered" and weights is not None:
        msg = 'sample_weight cannot be used with method="prediction-powered"; leave it out.'
        raise ValueError(msg)


def _refuse_for_scores(
    names: list[str], method: str, score: Array, weights: Array | None, groups: ArrayLike | None
) -> None:
    """Refuse what metrics of scores cannot account for."""
    is_plain = method in {*BINOMIAL, "bootstrap"} and weights is None and groups is None
    if names and (not is_plain or (score.ndim == 2 and score.shape[1] > 2)):
        msg = (
            f"{', '.join(names)}: for labels and scores of two classes, without sample_weight and groups, and not for "
            f'method="calibrated" or "prediction-powered"; got method={method!r} and scores of shape {score.shape}. Of '
            "several classes compare one with all others: y_true == label, with its column of y_score."
        )
        raise ValueError(msg)


def _from_cells(task: _Task, method: str, thresholds: Array, *_: object) -> _Found:
    assert task.is_positive is not None
    estimates = []
    for threshold in thresholds.ravel():
        codes = outcome_codes(task.is_positive, task.score > threshold)
        how = (task.metrics, method, task.level, task.draws)
        if task.units is None:
            estimates.append(by_rates(Cells.counted(codes, 4, task.weights), *how))
        else:
            estimates.append(by_groups(GroupedCells.counted(codes, task.weights, task.units), *how))
    return estimates, None


def _calibrated(task: _Task, _method: str, thresholds: Array, rows: OneAgainstRest | None) -> _Found:
    calibrator = None
    if rows is not None:
        calibrator = Calibrator.fitted(
            rows.is_positive, rows.score, thresholds, min(task.draws.n_resamples, REFITS), task.draws.rng
        )
    estimates = calibrated(task.score, task.is_positive, thresholds, task.weights, task.metrics, task.level, calibrator)
    return estimates, CALIBRATED if calibrator is None else SAME_POPULATION


def _prediction_powered(task: _Task, _method: str, thresholds: Array, *_: object) -> _Found:
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


_BY_METHOD: dict[str, Callable[..., _Found]] = {"calibrated": _calibrated, "prediction-powered": _prediction_powered}


def _several(task: _Task, method: str, threshold: float | ArrayLike) -> ClassificationUncertainty:
    """Estimates for more than two classes: overall, averages, and each class against all others."""
    k = task.score.shape[1]
    if method not in {*BINOMIAL, "bootstrap"}:
        msg = (
            f"method={method!r} needs two classes; y_score has {k} columns. Ask for one class against all others: "
            "y_true == label, with its column of y_score."
        )
        raise ValueError(msg)
    if np.ndim(threshold) or threshold != 0.5:
        msg = f"threshold={threshold!r} has no meaning for {k} classes: the likeliest is predicted; leave it out."
        raise ValueError(msg)
    assert task.known is not None
    cells = Cells.counted(task.known.codes * k + task.score.argmax(axis=1), k * k, task.weights)
    with np.errstate(invalid="ignore", divide="ignore"):  # metrics of the caller's may divide by 0
        found = by_classes(cells, task.known.classes, task.metrics, method, task.level, task.draws)
    return ClassificationUncertainty([found], (), True, task.level, len(task.score))
