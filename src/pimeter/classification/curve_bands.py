"""Bands that hold a whole ROC or precision-recall curve, whatever the distribution of scores.

The scores of each class have an unknown distribution function, which lies within a known distance of that of the
sample everywhere at once (Kolmogorov and Smirnov). At each threshold the true point of the curve is therefore in a
rectangle, and the band is all of these rectangles.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from pimeter.classification.inputs import class_labels, ordered_classes, positive_column, refuse_missing
from pimeter.classification.proportions import Proportion, clopper_pearson
from pimeter.classification.score_metrics import refuse_few_of_a_class
from pimeter.frames import refuse_other_order
from pimeter.validation import finite_numbers, integer, one_level

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import ArrayLike

    from pimeter.protocols import Array


@dataclass(frozen=True)
class CurveBand:
    """A curve with a band that holds all of it at once.

    Attributes
    ----------
    x : ndarray of shape (k,)
        Rising values of the axis: the false-positive rate, or the recall.
    value : ndarray of shape (k,)
        The curve of these rows: the true-positive rate, or the precision.
    lower, upper : ndarray of shape (k,)
        Bounds at each x.
    confidence_level : float
        How often the whole curve of all rows like these lies within the bounds.
    """

    x: Array
    value: Array
    lower: Array
    upper: Array
    confidence_level: float


def roc_band(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    confidence_level: float = 0.95,
    pos_label: Hashable = 1,
    n_points: int = 101,
) -> CurveBand:
    """ROC curve with a band that holds all of the true curve at once.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels of two classes, at least 10 rows of each.
    y_score : array-like of shape (n,)
        Scores of the positive class, on any scale.
    confidence_level : float, default=0.95
        How often, or more often, the band holds the whole curve.
    pos_label : object, default=1
        The positive class.
    n_points : int, default=101
        Points of the curve.

    Returns
    -------
    CurveBand
        True-positive rates at evenly spaced false-positive rates.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter.classification import roc_band
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(400) % 2
    >>> band = roc_band(y, rng.normal(loc=2 * y), n_points=5)
    >>> band.value.round(2), band.lower.round(2)
    (array([0.22, 0.94, 0.98, 1.  , 1.  ]), array([0.  , 0.75, 0.88, 0.89, 0.89]))
    """
    level = one_level("confidence_level", confidence_level)
    classes = _Classes.of(y_true, y_score, pos_label)
    x = np.linspace(0.0, 1.0, integer("n_points", n_points, at_least=2))
    distances = [_distance(len(one), level**0.5) for one in (classes.negative, classes.positive)]
    fpr, tpr = classes.rates()
    # At a false-positive rate x the true threshold is one whose rate in these rows is at most a distance away.
    low = _at_least(tpr, fpr, x - distances[0]) - distances[1]
    high = _at_most(tpr, fpr, x + distances[0]) + distances[1]
    return CurveBand(x, _at_most(tpr, fpr, x), np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0), level)


def precision_recall_band(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    confidence_level: float = 0.95,
    pos_label: Hashable = 1,
    n_points: int = 101,
) -> CurveBand:
    """Precision-recall curve with a band that holds all of the true curve at once.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels of two classes, at least 10 rows of each, as frequent as among the rows that the curve is about.
    y_score : array-like of shape (n,)
        Scores of the positive class, on any scale.
    confidence_level : float, default=0.95
        How often, or more often, the band holds the whole curve.
    pos_label : object, default=1
        The positive class.
    n_points : int, default=101
        Points of the curve.

    Returns
    -------
    CurveBand
        Precision at evenly spaced recalls; at a recall of 0 that of the highest scores.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter.classification import precision_recall_band
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(400) % 2
    >>> band = precision_recall_band(y, rng.normal(loc=2 * y), n_points=5)
    >>> band.value.round(2), band.lower.round(2)
    (array([1.  , 0.98, 0.99, 0.91, 0.51]), array([0.  , 0.63, 0.74, 0.69, 0.44]))
    """
    level = one_level("confidence_level", confidence_level)
    classes = _Classes.of(y_true, y_score, pos_label)
    x = np.linspace(0.0, 1.0, integer("n_points", n_points, at_least=2))
    each = level ** (1.0 / 3.0)
    distances = [_distance(len(one), each) for one in (classes.negative, classes.positive)]
    n = len(classes.positive) + len(classes.negative)
    prevalence = len(classes.positive) / n
    rare, common = clopper_pearson(Proportion(prevalence, float(n)), each)
    fpr, tpr = classes.rates()
    # A recall of x has a threshold whose recall in these rows is at most a distance away: the first and the last such.
    first = np.searchsorted(tpr, x - distances[1], "left")
    last = np.searchsorted(tpr, x + distances[1], "right") - 1
    lower = _precision(rare, x, np.minimum(fpr[last] + distances[0], 1.0))
    upper = _precision(common, x, np.maximum(fpr[first] - distances[0], 0.0))
    own = np.maximum(np.searchsorted(tpr, x - 1e-12, "left"), 1)
    value = _precision(prevalence, tpr[own], fpr[own])
    return CurveBand(x, value, lower, upper, level)


@dataclass(frozen=True)
class _Classes:
    """Scores of the two classes."""

    negative: Array
    positive: Array

    @classmethod
    def of(cls, y_true: ArrayLike, y_score: ArrayLike, pos_label: Hashable) -> _Classes:
        refuse_other_order("y_true", y_true, "y_score", y_score)
        score = finite_numbers("y_score", y_score)
        if score.ndim != 1:
            msg = f"y_score must hold one score for each row, such as y_score[:, 1]; got shape {score.shape}."
            raise ValueError(msg)
        labels = refuse_missing("y_true", class_labels("y_true", y_true, len(score)))
        classes = ordered_classes(labels, score, None, pos_label)
        is_positive = labels.codes == positive_column(classes, pos_label)
        found = cls(score[~is_positive], score[is_positive])
        refuse_few_of_a_class("A band", len(found.positive), len(found.negative))
        return found

    def rates(self) -> tuple[Array, Array]:
        """False- and true-positive rates at each threshold, from that above all scores to that below all."""
        cuts = np.append(np.unique(np.concatenate([self.negative, self.positive]))[::-1], -np.inf)
        return tuple(
            1.0 - np.searchsorted(np.sort(one), cuts, "right") / len(one) for one in (self.negative, self.positive)
        )  # type: ignore[return-value]


@lru_cache(maxsize=1000)
def _distance(n: int, level: float) -> float:
    """How far the distribution function of n values is from the true one at most, with this confidence."""
    from scipy.stats import kstwo

    return float(kstwo.ppf(level, n))


def _at_least(tpr: Array, fpr: Array, x: Array) -> Array:
    """Least true-positive rate of thresholds with a false-positive rate of x or more; 0 where x is not positive."""
    found: Array = tpr[np.minimum(np.searchsorted(fpr, x, "left"), len(fpr) - 1)]
    return np.where(x > 0.0, found, 0.0)


def _at_most(tpr: Array, fpr: Array, x: Array) -> Array:
    """Largest true-positive rate of thresholds with a false-positive rate of x or less."""
    found: Array = tpr[np.searchsorted(fpr, x + 1e-12, "right") - 1]
    return found


def _precision(prevalence: float, recall: Array, false_positive_rate: Array) -> Array:
    """Positives among rows declared positive; 1 where none is declared."""
    hits, others = prevalence * recall, (1.0 - prevalence) * false_positive_rate
    declared = hits + others
    return np.divide(hits, declared, out=np.ones_like(declared), where=declared > 0.0)
