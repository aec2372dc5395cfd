"""Intervals as a data frame, in the library of the rows they belong to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pimeter.frames import frame_of, library_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


def interval_frame(
    X: Any, prediction: Array, intervals: Array, *, levels: Array | None, has_outputs: bool, guaranteed: Array | None
) -> Any:
    """Columns prediction, lower and upper; in long form also row, output and level where there are several.

    Parameters
    ----------
    X : frame or array
        Its library is that of the result, its index that of a pandas one; pandas where X is no frame.
    prediction : ndarray of shape (n, k)
    intervals : ndarray of shape (n, k, 2, L)
    levels : ndarray of shape (L,) or None
        None: one level that needs no column.
    has_outputs : bool
        Whether outputs need a column.
    guaranteed : ndarray of shape (n, L) or None
        Coverage guaranteed to each row; None: the same to all, no column.
    """
    n, k, _, n_levels = intervals.shape
    columns: dict[str, Any] = {}
    place = np.indices((n, k, n_levels)).reshape(3, -1)
    is_long = has_outputs or levels is not None
    if is_long:
        columns["row"] = place[0]
    if has_outputs:
        columns["output"] = place[1]
    if levels is not None:
        columns["level"] = levels[place[2]]
    columns["prediction"] = prediction[place[0], place[1]]
    columns |= {name: intervals[:, :, i].ravel() for i, name in enumerate(("lower", "upper"))}
    if guaranteed is not None:
        columns["guaranteed_level"] = guaranteed[place[0], place[2]]
    found = frame_of(columns, library_of(X))
    if not is_long and hasattr(X, "iloc"):
        found.index = X.index
    return found
