"""How good are sets of classes? Coverage, size, and coverage of sets of each size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pimeter.arrays import even_array
from pimeter.classification.inputs import class_labels, named_classes, refuse_missing
from pimeter.frames import refuse_other_order
from pimeter.validation import integer

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import ArrayLike

    from pimeter.protocols import Flags


def set_coverage_score(y_true: ArrayLike, y_set: ArrayLike, *, labels: Sequence[Hashable] | None = None) -> float:
    """Proportion of rows whose set holds the true class.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True classes.
    y_set : array-like of bool, shape (n, n_classes)
        Whether each class is in the set, as `SetClassifier.predict_set` returns it.
    labels : sequence, optional
        The classes in the order of the columns, such as `classes_`; 0, 1, ... by default. A class that is none of them
        is in no set.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from pimeter.classification import set_coverage_score
    >>> set_coverage_score(["a", "b", "a"], [[True, False], [True, False], [True, True]], labels=["a", "b"])
    0.6666666666666666
    """
    refuse_other_order("y_true", y_true, "y_set", y_set)
    return float(_is_covered(y_true, _sets(y_set), labels).mean())


def mean_set_size_score(y_set: ArrayLike) -> float:
    """Mean number of classes in a set.

    Parameters
    ----------
    y_set : array-like of bool, shape (n, n_classes)
        Whether each class is in the set.

    Returns
    -------
    float
        Between 0 and the number of classes.

    Examples
    --------
    >>> from pimeter.classification import mean_set_size_score
    >>> mean_set_size_score([[True, False], [True, True]])
    1.5
    """
    return float(_sets(y_set).sum(axis=1).mean())


def size_stratified_coverage_score(
    y_true: ArrayLike, y_set: ArrayLike, *, labels: Sequence[Hashable] | None = None, min_rows: int = 20
) -> float:
    """Lowest coverage among sets of one size (size-stratified coverage): below the level, where sets are too sure.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True classes.
    y_set : array-like of bool, shape (n, n_classes)
        Whether each class is in the set.
    labels : sequence, optional
        The classes in the order of the columns; 0, 1, ... by default.
    min_rows : int, default=20
        Sets of a size with fewer rows are left out, whose coverage is mostly chance; all count together if no size has
        so many. Empty sets, which cover nothing, are a size like others.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from pimeter.classification import size_stratified_coverage_score
    >>> sets = [[True, False], [True, False], [True, True], [True, True]]
    >>> size_stratified_coverage_score([0, 1, 0, 1], sets, min_rows=1)
    0.5
    """
    least = integer("min_rows", min_rows, at_least=1)
    refuse_other_order("y_true", y_true, "y_set", y_set)
    sets = _sets(y_set)
    is_covered, size = _is_covered(y_true, sets, labels), sets.sum(axis=1)
    rows = np.bincount(size)
    coverage = np.bincount(size, is_covered) / np.maximum(rows, 1)
    return float(coverage[rows >= least].min()) if (rows >= least).any() else float(is_covered.mean())


def _sets(given: ArrayLike) -> Flags:
    """Sets as truth values, (n, n_classes)."""
    found = even_array("y_set", given)
    is_01 = found.dtype.kind in "iuf" and np.isin(found, (0, 1)).all()
    if found.ndim != 2 or not found.size or not (found.dtype == np.bool_ or is_01):
        msg = (
            "y_set must hold True or False for each row and class, shape (n, n_classes), as predict_set returns it; "
            f"got dtype {found.dtype} of shape {found.shape}."
        )
        raise ValueError(msg)
    return found.astype(np.bool_)


def _is_covered(y_true: ArrayLike, sets: Flags, labels: Sequence[Hashable] | None) -> Flags:
    """Whether each row's set holds its class."""
    known = refuse_missing("y_true", class_labels("y_true", y_true, len(sets)))
    k = sets.shape[1]
    classes: list[Any] = list(range(k)) if labels is None else named_classes(labels, k, "y_set")
    if not set(known.classes) & set(classes):
        msg = f"y_true holds {known.classes[:5]!r}, none of the classes {classes[:5]!r}; give labels=model.classes_."
        raise ValueError(msg)
    place = np.array([classes.index(label) if label in classes else -1 for label in known.classes])[known.codes]
    return np.asarray((place >= 0) & sets[np.arange(len(sets)), place])
