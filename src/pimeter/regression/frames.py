"""Intervals as a data frame, in the library of the rows they belong to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pimeter.frames import frame_of, library_of

if TYPE_CHECKING:
    from pimeter.protocols import Array


def interval_frame(
    X: Any, prediction: Array, intervals: Array, *, levels: Array | None, has_outputs: bool, guaranteed: Array | None
) -> Any:
    """Columns prediction, lower and upper of intervals (n, k, 2, L); in long form also row, output and level.

    The frame is of the library of X, with the index of a pandas one, repeated in long form. A level or an output has a
    column where there are several, and the coverage guaranteed to each row (n, L) where it is given.
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
    if hasattr(X, "iloc"):
        found.index = X.index.repeat(k * n_levels)
    return found
