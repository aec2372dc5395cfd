"""Many values counted and summed up by group; `src/native/counting.hpp` says the same in C++."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.uint8]
    Counts = NDArray[np.intp]

AT_ONCE = 1 << 15  # values, which stay in the cache


def _blocks(n: int) -> Iterator[slice]:
    return (slice(start, start + AT_ONCE) for start in range(0, n, AT_ONCE))


def _add_pairs(first: Any, second: Any, sums: NDArray[Any], values: Array | None = None) -> None:
    """Add one, or a value, where each pair of codes is."""
    pairs = first.astype(np.intp) * sums.shape[1] + second
    sums += np.bincount(pairs, values, sums.size).reshape(sums.shape)


def place(values: Array, group: Codes, bounds: Array, places: Codes) -> None:
    """How many of its group's bounds, (groups, bounds), rising and fewer than 255, lie below each value."""
    for own, at in enumerate(bounds):
        rows = np.flatnonzero(group == own)
        places[rows] = np.searchsorted(at, values[rows])


def count_pairs(first: Codes, second: Codes, counts: Counts) -> None:
    """How often each pair of codes occurs."""
    for block in _blocks(first.size):
        _add_pairs(first[block], second[block], counts)


def sum_places(values: Array, near: float, unit: float, group: Codes, places: Codes, sums: Array) -> None:
    """Number, sum and sum of squares of the values of each group and place, from what they are near to, in a unit."""
    for block in _blocks(values.size):
        x = (values[block] - near) / unit
        for power, own in enumerate((None, x, x * x)):
            _add_pairs(group[block], places[block], sums[:, :, power], own)


def sum_powers(errors: Array, unit: float, near: Array, sums: Array) -> None:
    """Sums of |x|, x^2 and x less what they are near to, then of the squares of these, x being errors in a unit."""
    for block in _blocks(errors.size):
        x = errors[block] / unit
        powers = np.stack([np.abs(x) - near[0], x * x - near[1], x - near[2]])
        sums[0] += powers.sum(axis=1)
        sums[1] += (powers * powers).sum(axis=1)


def sum_squares(
    errors: Array, targets: Array, least: float, unit: float, middle: float, near: Array, sums: Array
) -> None:
    """The same of squared errors and squared distances of targets from their middle, of their product, of distances.

    Targets are counted from the least of them: near each other and far from 0 they would lose their digits to a unit.
    """
    for block in _blocks(errors.size):
        x, y = errors[block] / unit, (targets[block] - least) / unit - middle
        error, base = x * x - near[0], y * y - near[1]
        sums += [error.sum(), base.sum(), error @ error, base @ base, error @ base, y.sum()]
