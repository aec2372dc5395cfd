"""Many values counted in buckets, and summed up: plain lines, which the compiled kernel compiles as they are.

The bits of a positive float, as an integer, rise with it. Their leading ones, less those of the least size that is told
from 0, are the bucket: as many buckets for each power of two. Negative floats go the same way down from the middle.
"""

from __future__ import annotations

from typing import Any

import numpy as np

SIZE = 2**63 - 1  # the bits without the sign
LOOK = 255


def bucket(bits: Any, least: int, shift: int, middle: int, last: int) -> Any:
    """Bucket of a float with these bits; the first one and `last` hold all that lies farther out."""
    distance = min(max((bits & SIZE) - least, 0) >> shift, last - middle)
    return middle - distance if bits < 0 else middle + distance


def count_buckets(bits: Any, group: Any, least: int, shift: int, middle: int, counts: Any) -> None:
    """Add each value to the count of its group and bucket."""
    last = counts.shape[1] - 1
    for i in range(bits.size):
        counts[group[i], bucket(bits[i], least, shift, middle, last)] += 1


def keep_buckets(bits: Any, least: int, shift: int, middle: int, is_wanted: Any, rows: Any) -> None:
    """Where values of the buckets that are wanted are; there is room for one row more than there are."""
    last = is_wanted.size - 1
    n = 0
    for i in range(bits.size):
        rows[n] = i
        n += is_wanted[bucket(bits[i], least, shift, middle, last)]


def place(
    values: Any, bits: Any, group: Any, least: int, shift: int, middle: int, bounds: Any, known: Any, places: Any
) -> None:
    """How many of its group's bounds, which rise, lie below each value; `known` says it of a whole bucket, or LOOK."""
    last = known.shape[1] - 1
    for i in range(bits.size):
        g = group[i]
        n = known[g, bucket(bits[i], least, shift, middle, last)]
        places[i] = np.searchsorted(bounds[g], values[i]) if n == LOOK else n


def sum_places(values: Any, near: float, unit: float, group: Any, places: Any, sums: Any) -> None:
    """Number, sum and sum of squares of the values of each group and place, from what they are near to, in a unit."""
    for i in range(values.size):
        x = (values[i] - near) / unit
        g, p = group[i], places[i]
        sums[g, p, 0] += 1.0
        sums[g, p, 1] += x
        sums[g, p, 2] += x * x


def count_pairs(first: Any, second: Any, counts: Any) -> None:
    """How often each pair of codes occurs."""
    for i in range(first.size):
        counts[first[i], second[i]] += 1


def sum_powers(errors: Any, unit: float, near: Any, sums: Any) -> None:
    """Sums of |x|, x^2 and x less what they are near to, then of the squares of these, x being errors in a unit."""
    for i in range(errors.size):
        x = errors[i] / unit
        size, square, own = abs(x) - near[0], x * x - near[1], x - near[2]
        sums[0, 0] += size
        sums[0, 1] += square
        sums[0, 2] += own
        sums[1, 0] += size * size
        sums[1, 1] += square * square
        sums[1, 2] += own * own


def sum_squares(errors: Any, targets: Any, least: float, unit: float, middle: float, near: Any, sums: Any) -> None:
    """The same of squared errors and squared distances of targets from their middle, of their product, of distances.

    Targets are counted from the least of them: near each other and far from 0 they would lose their digits to a unit.
    """
    for i in range(errors.size):
        x, y = errors[i] / unit, (targets[i] - least) / unit - middle
        error, base = x * x - near[0], y * y - near[1]
        sums[0] += error
        sums[1] += base
        sums[2] += error * error
        sums[3] += base * base
        sums[4] += error * base
        sums[5] += y
