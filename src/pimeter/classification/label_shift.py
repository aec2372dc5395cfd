"""Label shift: classes are more or less frequent among new rows, and rows of a class look as before."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from pimeter.classification.inputs import class_labels, named_classes, refuse_missing
from pimeter.coverage import warn_of_coverage
from pimeter.frames import refuse_other_order
from pimeter.validation import one_level, row_weights, scores_between_0_and_1

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import ArrayLike

    from pimeter.protocols import Array, Flags, Index

WORST_CONDITION = 100.0  # of the matrix of predictions by class, beyond which the estimate is mostly noise


def label_shift_ratios(
    y_true: ArrayLike, y_score: ArrayLike, new_score: ArrayLike, *, labels: Sequence[Hashable] | None = None
) -> Array:
    """How much more frequent each class is among new rows, from scores alone (black-box shift estimation).

    New scores are a mixture of those that rows of each class have (Lipton, Wang and Smola 2018): the mixture is solved
    for, by least squares without negative parts. It is an estimate, and nothing that is made with it is guaranteed.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Classes of labelled rows.
    y_score : array-like of shape (n, K)
        Probabilities of these rows, of a model that was not trained on them.
    new_score : array-like of shape (m, K)
        Probabilities of new rows, without labels.
    labels : sequence, optional
        The classes in the order of the columns; those of `y_true`, sorted, by default.

    Returns
    -------
    ndarray of shape (K,)
        Ratios of the frequencies of the classes, new to old.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter.classification import label_shift_ratios
    >>> rng = np.random.default_rng(0)
    >>> def rows(n, proportion):
    ...     y = rng.uniform(size=n) < proportion
    ...     p = 1 / (1 + np.exp(-rng.normal(loc=4 * y - 2)))
    ...     return y.astype(int), np.column_stack([1 - p, p])
    >>> y, score = rows(2000, 0.5)
    >>> _, new = rows(2000, 0.2)
    >>> label_shift_ratios(y, score, new).round(1)
    array([1.6, 0.4])
    """
    from scipy.optimize import nnls

    refuse_other_order("y_true", y_true, "y_score", y_score)
    score, new = _old_and_new(y_score, new_score)
    codes = _codes(y_true, score, labels)
    frequency = np.bincount(codes, minlength=score.shape[1]) / len(codes)
    if not frequency.all():
        msg = f"y_true has no row of {np.count_nonzero(frequency == 0.0)} of the classes; label some rows of each."
        raise ValueError(msg)
    # Mean probabilities of rows of each class, in proportion to all rows: (columns, classes).
    mixture = np.stack([(score * (codes == k)[:, None]).mean(axis=0) for k in range(score.shape[1])], axis=1)
    condition = float(np.linalg.cond(mixture / frequency))
    if condition > WORST_CONDITION:
        warn_of_coverage(
            f"The model hardly tells some classes apart (condition number {condition:.3g}), so that the ratios are "
            "mostly noise: take a better model, or fewer classes."
        )
    # One more equation: new frequencies add up to 1.
    found, _ = nnls(np.vstack([mixture, frequency]), np.append(new.mean(axis=0), 1.0))
    ratios: Array = found / float(found @ frequency)
    return ratios


def label_shift_sets(
    y_true: ArrayLike,
    y_score: ArrayLike,
    new_score: ArrayLike,
    class_ratio: ArrayLike,
    *,
    confidence_level: float = 0.95,
    labels: Sequence[Hashable] | None = None,
) -> Flags:
    """Sets of classes that hold the true one as often as asked for among new rows whose classes have other frequencies.

    Calibration rows count in proportion to the ratio of their class (Podkopaev and Ramdas 2021). With ratios that are
    known, the guarantee is that of split conformal prediction; with estimated ones there is none.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Classes of calibration rows.
    y_score : array-like of shape (n, K)
        Their probabilities, of a model that was not trained on them.
    new_score : array-like of shape (m, K)
        Probabilities of new rows.
    class_ratio : array-like of shape (K,)
        How much more frequent each class is among new rows; only proportions matter.
    confidence_level : float, default=0.95
        Proportion of new rows whose set should hold the true class.
    labels : sequence, optional
        The classes in the order of the columns; those of `y_true`, sorted, by default.

    Returns
    -------
    ndarray of bool, shape (m, K)
        Whether each class is in the set.

    See Also
    --------
    label_shift_ratios : Ratios estimated from scores of new rows.
    SetClassifier : With ``by="class"`` sets hold for any frequencies of the classes, and are larger.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter.classification import label_shift_sets
    >>> score = np.random.default_rng(0).dirichlet([1, 1], size=200)
    >>> y = (score[:, 1] > 0.5).astype(int)
    >>> label_shift_sets(y, score, [[0.9, 0.1], [0.5, 0.5]], [1.0, 3.0], confidence_level=0.9)
    array([[ True, False],
           [False, False]])
    """
    level = one_level("confidence_level", confidence_level)
    refuse_other_order("y_true", y_true, "y_score", y_score)
    score, new = _old_and_new(y_score, new_score)
    ratio = row_weights("class_ratio", class_ratio, score.shape[1])
    codes = _codes(y_true, score, labels)
    own = 1.0 - score[np.arange(len(codes)), codes]
    order = np.argsort(own)
    total = np.cumsum(ratio[codes][order])
    found = np.empty(new.shape, np.bool_)
    for k, weight in enumerate(ratio):
        # The new row counts as much as its class would, at a score above all.
        place = int(np.searchsorted(total, level * (total[-1] + weight) * (1.0 - 1e-12)))
        limit = own[order][place] if place < len(own) else math.inf
        found[:, k] = 1.0 - new[:, k] <= limit
    return found


def _old_and_new(y_score: ArrayLike, new_score: ArrayLike) -> tuple[Array, Array]:
    """Scores of labelled and of new rows, with a column for each class in both."""
    score, new = _probabilities("y_score", y_score), _probabilities("new_score", new_score)
    if score.shape[1] != new.shape[1]:
        msg = f"y_score has {score.shape[1]} columns and new_score has {new.shape[1]}; give one for each class in both."
        raise ValueError(msg)
    return score, new


def _probabilities(name: str, given: ArrayLike) -> Array:
    """Scores of each class, (n, K)."""
    score = scores_between_0_and_1(name, given)
    if score.ndim != 2:
        msg = f"{name} must have a column for each class, shape (n, n_classes); got {score.shape}."
        raise ValueError(msg)
    return score


def _codes(y_true: ArrayLike, score: Array, labels: Sequence[Hashable] | None) -> Index:
    """Column of the class of each row."""
    known = refuse_missing("y_true", class_labels("y_true", y_true, len(score)))
    classes = known.classes if labels is None else named_classes(labels, score.shape[1], "y_score")
    if len(set(classes)) != score.shape[1] or not set(known.classes) <= set(classes):
        msg = (
            f"y_true holds {known.classes[:5]!r}, which does not fit the {score.shape[1]} columns of y_score; give "
            "labels in their order."
        )
        raise ValueError(msg)
    return known.in_order(classes).codes
