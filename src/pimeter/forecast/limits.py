"""Targets that are never below or above a number: `y_min` and `y_max`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pimeter.protocols import Array


def check_within(y_true: ArrayLike, y_min: float | None, y_max: float | None) -> None:
    """Refuse targets beyond the limits: intervals that end there would miss them."""
    if y_min is None and y_max is None:
        return
    target = np.asarray(y_true, np.float64)
    with np.errstate(invalid="ignore"):
        beyond = (target < (-np.inf if y_min is None else y_min)) | (target > (np.inf if y_max is None else y_max))
    if beyond.any():
        msg = (
            f"{np.count_nonzero(beyond)} of {beyond.size} targets lie beyond y_min={y_min} or y_max={y_max}, the first "
            f"is {target[beyond][0]:g}. Intervals would end before them: correct the limit, or these targets."
        )
        raise ValueError(msg)


def within_limits(bounds: Array, y_min: float | None, y_max: float | None) -> Array:
    """Bounds that end at the limits."""
    if y_min is None and y_max is None:
        return bounds
    return np.clip(bounds, -np.inf if y_min is None else y_min, np.inf if y_max is None else y_max)
