"""Arguments of `quantile`, read and checked once for arrays, tensors and dask collections.

Checks of values take whatever answers comparisons number by number: an array, a tensor, a chunk.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from pimeter.validation import quantile_levels

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]

LARGEST_COUNT = 1e15  # of values, in all: beyond, floats no longer count one by one, and maps get too many knots


class Values(Protocol):
    """An array or a tensor of numbers."""

    def __ge__(self, other: float, /) -> Any: ...
    def __lt__(self, other: float, /) -> Any: ...
    def sum(self, axis: int, /) -> Any:
        """Sums along an axis."""


@dataclass(slots=True)  # frozen ones take a tenth of a short sample's time to make
class Arguments:
    """What is asked of a sample, or of samples along axes."""

    levels: list[float]
    shape: tuple[int, ...]  # in which the levels were given
    axes: tuple[int, ...]  # along which the samples lie
    h: float | None  # the bandwidth, 1/beta; None for the rule


def arguments(q: ArrayLike, axis: int | tuple[int, ...] | None, ndim: int, beta: float | str) -> Arguments:
    """The arguments of `quantile` for an array of so many axes, as plain numbers."""
    # A single level within bounds is the most frequent case, and this is quick.
    levels = np.array(q) if isinstance(q, float) and 0.0 <= q <= 1.0 else quantile_levels("q", q)
    return Arguments(levels.reshape(-1).tolist(), levels.shape, _axes(axis, ndim), _bandwidth(beta))


def check_counts(counts: Values) -> None:
    """Refuse weights that are no counts."""
    if not bool(((counts >= 0.0) & (counts < math.inf)).all()):
        msg = "weights are counts: finite and at least 0; got a negative, infinite or missing one."
        raise ValueError(msg)


def check_sample_counts(counts: Values) -> None:
    """Refuse counts (samples, values) that are none, or of which a sample has too many or none above 0."""
    check_counts(counts)
    with np.errstate(over="ignore"):
        totals = counts.sum(1)
    if bool((totals > LARGEST_COUNT).any()):
        msg = (
            f"weights are counts, of {LARGEST_COUNT:g} values at most; they add up to {float(totals.max()):g}. "
            "Make them smaller."
        )
        raise ValueError(msg)
    if not bool((totals > 0.0).all()):
        msg = "weights are 0 for a whole sample; a quantile needs at least one value that counts."
        raise ValueError(msg)


def check_absolute(a: Values) -> None:
    """Refuse negative values where absolute errors are expected."""
    if bool((a < 0.0).any()):
        msg = "reflect=True takes absolute errors, but a holds negative values; pass abs(a) or reflect=False."
        raise ValueError(msg)


def weights_shape(given: tuple[int, ...], shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """Shape in which weights are laid over an array of some shape, whose samples lie along axes."""
    if given == shape:
        return shape
    if len(given) == 1 == len(axes) and given[0] == shape[axes[0]]:
        return tuple(given[0] if i == axes[0] else 1 for i in range(len(shape)))
    msg = f"weights have shape {given}; expected that of a, {shape}, or one weight for each value along one axis."
    raise ValueError(msg)


def _bandwidth(beta: float | str) -> float | None:
    if isinstance(beta, str):
        if beta == "auto":
            return None
    elif isinstance(beta, Real) and 0.0 < beta < np.inf:
        return 1.0 / float(beta)
    msg = f'beta must be "auto" or a positive number in the unit of 1/a; got {beta!r}.'
    raise ValueError(msg)


def _axes(axis: int | tuple[int, ...] | None, ndim: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(ndim))
    try:
        given = [operator.index(one) for one in (axis if isinstance(axis, tuple | list) else (axis,))]
    except TypeError as wrong:
        msg = f"axis must be an integer, a tuple of integers or None; got {axis!r}."
        raise TypeError(msg) from wrong
    for one in given:
        if not -ndim <= one < ndim:
            raise np.exceptions.AxisError(one, ndim)
    axes = tuple(one % ndim for one in given)
    if len(set(axes)) < len(axes):
        msg = f"repeated axis: axis={axis!r} names one twice."
        raise ValueError(msg)
    return axes
