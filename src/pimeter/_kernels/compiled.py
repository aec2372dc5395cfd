"""The formula of `reference.py`, compiled by numba: short samples are sorted, long ones read once.

Never `parallel=True` (its OpenMP layer kills a forked child, its workqueue is not thread-safe): the functions release
the GIL, and `quantiles.py` hands them to threads. The rule is compiled from its very own lines.
"""

from __future__ import annotations

import math
import pickle
import warnings
import zlib
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numba
import numpy as np
from numba.core.caching import FunctionCache, IndexDataCacheFile

from pimeter._kernels import counting, stream

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

Function = TypeVar("Function", bound="Callable[..., Any]")

MAX_STEPS = 200
NEWTON_STEPS = 30  # from then on by halves, which always ends
TOLERANCE = 1e-5  # of h, for the last step of Newton's method: what is left is its square
PLATEAU = 1e-15  # a share this near to its level is at it: between distant errors all of a gap is
CHUNK = 1024
FULL = 48  # errors in a bucket
BUCKETS = 4096
UNKNOWN = np.uint64(2**62)
FINE, MISSING, INFINITE, NARROW = 0, 1, 2, 3  # what a kernel says of a sample

# Names of the rule, which `Kernel` adds to those of this file.
MARKS: int
BRACKET: float
LEAST: float
SATURATION: float
safe_factor: Any
standard_error: Any
shrunk: Any
widths: Any
strangeness: Any
roughness: Any
resolution: Any
large_resolution: Any
slope: Any

_sources: list[FunctionType] = []


def _compile(function: Function) -> Function:
    """Leave for `Kernel` to compile."""
    _sources.append(cast("FunctionType", function))
    return function


@_compile
def _exp_minus(z: float) -> Any:
    """exp(-z) for |z| <= 40: a series to the 128th power, because a loop without calls is vectorised."""
    y = z * (-1.0 / 128.0)
    e = 1 / 720 + y * (1 / 5040 + y * (1 / 40320 + y * (1 / 362880 + y * (1 / 3628800))))
    e = 1.0 + y * (1.0 + y * (1 / 2 + y * (1 / 6 + y * (1 / 24 + y * (1 / 120 + y * e)))))
    for _ in range(7):
        e *= e
    return e


@_compile
def _sum(a: Any) -> Any:
    """Sum in eight strands: as fast as one that the compiler reorders, and always in the same order."""
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    for i in range(a.size // 8):
        j = np.uint64(8 * i)
        s0 += a[j]
        s1 += a[j + np.uint64(1)]
        s2 += a[j + np.uint64(2)]
        s3 += a[j + np.uint64(3)]
        s4 += a[j + np.uint64(4)]
        s5 += a[j + np.uint64(5)]
        s6 += a[j + np.uint64(6)]
        s7 += a[j + np.uint64(7)]
    for i in range(a.size - a.size % 8, a.size):
        s0 += a[i]
    return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))


@_compile
def _share(t: float, positions: Any, counts: Any, h: float, end: float, shares: Any, slopes: Any) -> Any:
    """Sum of the activations at t, and its derivative; `shares` and `slopes` are room for the errors' own.

    The activation is the sigmoid of (t - position)/h, stretched a little so that it is 0 and 1 from +-end on.
    """
    sharpness = 1.0 / h
    for i in range(positions.size):
        z = (t - positions[i]) * sharpness
        z = z if z < end else end
        z = z if z > -end else -end
        e = _exp_minus(z)
        s = 1.0 / (1.0 + e)
        shares[i] = s
        slopes[i] = e * s * s if -end < z < end else 0.0
    floor = 1.0 / (1.0 + math.exp(end))
    total = float(positions.size)
    if counts.size:
        total = 0.0
        for i in range(positions.size):
            shares[i] *= counts[i]
            slopes[i] *= counts[i]
            total += counts[i]
    return (_sum(shares) - total * floor) / (1.0 - 2.0 * floor), _sum(slopes) / (h * (1.0 - 2.0 * floor))


@_compile
def _root(
    positions: Any,
    counts: Any,
    below: float,
    m: float,
    h: float,
    end: float,
    p: float,
    start: float,
    low: float,
    high: float,
) -> Any:
    """Root of the smoothed share, kept in [low, high]: Newton's method on the logit scale, bisection where it fails."""
    shares, slopes = np.empty(positions.size), np.empty(positions.size)
    a, b, t = -math.inf, math.inf, start
    target = math.log(p / (1.0 - p))
    for n_steps in range(MAX_STEPS):
        share, slope = _share(t, positions, counts, h, end, shares, slopes)
        share, slope = (below + share) / m, slope / m
        step = -math.inf if share < p else math.inf
        if 0.0 < share < 1.0 and slope > 0.0:
            step = (math.log(share / (1.0 - share)) - target) * share * (1.0 - share) / slope
        new = min(max(t - step, low), high)
        if abs(share - p) <= PLATEAU:
            return t
        if abs(step) <= TOLERANCE * h or (t == low and share >= p) or (t == high and share <= p):
            return new
        if share > p:
            b = t
        else:
            a = t
        if n_steps >= NEWTON_STEPS or not a < new < b:
            new = 0.5 * max(a, low) + 0.5 * min(b, high)
        if new == t:
            return new
        t = new
    return t


@_compile
def _sort_by_shells(x: Any) -> None:
    gap = x.size
    while gap > 1:
        gap = max(int(gap / 2.25), 1)
        for i in range(gap, x.size):
            value = x[i]
            j = i
            while j >= gap and x[j - gap] > value:
                x[j] = x[j - gap]
                j -= gap
            x[j] = value


@_compile
def _settle(x: Any) -> None:
    """Sort what is nearly in order: neighbours change places, all pairs at once, until none do."""
    n_swaps = x.size
    while n_swaps > 1:
        n_swaps = 1
        for odd in range(2):
            for k in range((x.size - odd) // 2):
                i = np.uint64(odd + 2 * k)
                a, b = x[i], x[i + np.uint64(1)]
                swap = a > b
                n_swaps += swap
                x[i] = b if swap else a
                x[i + np.uint64(1)] = a if swap else b


@_compile
def _into_buckets(x: Any, out: Any, ends: Any) -> Any:
    """Put x in buckets of equal width and tell their ends in `out`; how many the fullest holds, 0 if there are none."""
    n, n_buckets = x.size, ends.size - 1
    low, high = x[0], x[0]
    for i in range(n):
        low = x[i] if x[i] < low else low
        high = x[i] if x[i] > high else high
    scale = (n_buckets - 1) / (float(high) - float(low)) if high > low else 0.0
    if not 0.0 < scale < math.inf or high - low == math.inf:
        return 0
    bucket = np.empty(n, np.uint32)
    for i in range(n):
        bucket[i] = np.uint32(np.int32((x[i] - low) * scale))
    for i in range(n_buckets + 1):
        ends[i] = 0
    for i in range(n):
        ends[bucket[i] + np.uint32(1)] += 1
    fullest, total = 0, 0
    for i in range(n_buckets):
        count = ends[i + 1]
        fullest = count if count > fullest else fullest
        total += count
        ends[i + 1] = total
    for i in range(n):
        out[np.uint32(ends[bucket[i]])] = x[i]
        ends[bucket[i]] += 1
    return fullest


@_compile
def _sort_part(x: Any) -> None:
    """Sort what fills one bucket: by buckets once more, or by comparison if they do not part it either."""
    ends, part = np.empty(2 * x.size + 1, np.int32), x.copy()
    fullest = _into_buckets(part, x, ends)
    if 0 < fullest <= FULL:
        _settle(x)
    elif fullest or part.max() > part.min():
        _sort_by_shells(x)


@_compile
def _sort(x: Any, out: Any) -> None:
    """Sort by buckets, half as full as there are errors on average, and settle what is in them.

    Settling has no branches and is vectorised, but takes as many turns as the fullest bucket holds: one that holds very
    many, where errors cluster, is sorted on its own.
    """
    ends = np.empty(min(2 * x.size, 2**30) + 1, np.int32)
    fullest = _into_buckets(x, out, ends)
    if not fullest:
        for i in range(x.size):
            out[i] = x[i]
        _sort_by_shells(out)
        return
    if fullest > FULL:
        start = 0
        for i in range(ends.size - 1):
            if ends[i] - start > FULL:
                _sort_part(out[start : ends[i]])
            start = ends[i]
    start = 0
    for last in range(CHUNK - 1, ends.size + CHUNK - 2, CHUNK):
        end = ends[min(last, ends.size - 2)]
        _settle(out[start:end])
        start = end


@_compile
def _hazen(x: Any, ends: Any, position: float) -> Any:
    """Hazen's quantile of sorted values: the i-th stands at i - 1/2, or, with counts, over the middle of its share."""
    if ends.size:
        i = min(np.searchsorted(ends, position), x.size - 1)  # ends: running sums of the counts
        half = 0.5 * min(1.0, ends[i] - (ends[i - 1] if i else 0.0))
        first, last = (ends[i - 1] if i else 0.0) + half, ends[i] - half
        if position < first and i > 0:
            before = ends[i - 1] - 0.5 * min(1.0, ends[i - 1] - (ends[i - 2] if i > 1 else 0.0))
            return x[i - 1] + (position - before) / (first - before) * (x[i] - x[i - 1])
        if position > last and i < x.size - 1:
            after = ends[i] + 0.5 * min(1.0, ends[i + 1] - ends[i])
            return x[i] + (position - last) / (after - last) * (x[i + 1] - x[i])
        return x[i]
    rank = min(max(position - 0.5, 0.0), x.size - 1.0)
    i = min(int(rank), x.size - 2)
    return min(x[i] + (rank - i) * (x[i + 1] - x[i]), x[i + 1])  # the sum may round beyond the next value


@_compile
def _spread(x: Any, counts: Any, ends: Any, m: float) -> Any:
    """The smaller of the standard deviation and the normal-consistent interquartile range; 0 for too few errors."""
    if m < 3.0:
        return 0.0
    quartiles = (_hazen(x, ends, 0.75 * m) - _hazen(x, ends, 0.25 * m)) / 1.349
    if quartiles <= LEAST * (x[-1] - x[0]):
        return 0.0
    middle = x[x.size // 2]
    first, second = np.empty(x.size), np.empty(x.size)
    for i in range(x.size):
        d = (x[i] - middle) / quartiles
        first[i] = d
        second[i] = d * d
    if counts.size:
        for i in range(x.size):
            first[i] *= counts[i]
            second[i] *= counts[i]
    mean, square = _sum(first), _sum(second)
    deviation = math.sqrt((square - mean * mean / m) / (m - 1.0))
    return deviation * quartiles if deviation < 1.0 else quartiles


@_compile
def _cell(marks: Any, x: float) -> Any:
    """Cell of the ruler in which x lies; what is outside belongs to the first or the last."""
    return min(max(np.searchsorted(marks, x, side="right") - 1, 0), marks.size - 2)


@_compile
def _through_ruler(
    x: Any,
    counts: Any,
    ends: Any,
    offset: float,
    m: float,
    marks: Any,
    slopes: Any,
    h: float,
    is_large: bool,
    levels: Any,
    out: Any,
) -> Any:
    """Quantiles of sorted x, of which `offset` errors are known to lie below, by a ruler with these marks.

    For a large sample x may be the part near some levels: positions then count from the cell of each level's plain
    quantile, so that a level gives the same bits whatever else is asked for. Returns False if the ruler is too short:
    an error outside x might still be felt.
    """
    at = np.empty(marks.size)
    positions = np.empty(x.size)
    n_found = 0
    reach = SATURATION * h
    is_last = offset + (ends[-1] if ends.size else x.size) >= m
    for k in range(levels.size):
        p = levels[k]
        error = BRACKET * standard_error(p, m)
        low = _hazen(x, ends, (p - error) * m - offset)
        high = _hazen(x, ends, (p + error) * m - offset)
        here = _hazen(x, ends, p * m - offset)
        if is_large or k == 0:
            origin = _cell(marks, here) if is_large else 0
            at[origin] = 0.0
            for j in range(origin, slopes.size):
                at[j + 1] = at[j] + (marks[j + 1] - marks[j]) * slopes[j]
            for j in range(origin - 1, -1, -1):
                at[j] = at[j + 1] - (marks[j + 1] - marks[j]) * slopes[j]
        j = _cell(marks, here)
        t_here = at[j] + (here - marks[j]) * slopes[j]
        j = _cell(marks, low)
        t_low = at[j] + (low - marks[j]) * slopes[j]
        j = _cell(marks, high)
        t_high = at[j] + (high - marks[j]) * slopes[j]
        if (offset > 0.0 and t_low - reach < at[0]) or (not is_last and t_high + reach > at[-1]):
            return False
        j = _cell(at, t_high + reach)
        last = np.searchsorted(x, marks[j] + (t_high + reach - at[j]) / slopes[j], side="right")
        j = _cell(at, t_low - reach)
        first = np.searchsorted(x, marks[j] + (t_low - reach - at[j]) / slopes[j])
        # Of a small sample the positions are the same at all levels, which rise: those found before are kept.
        for i in range(first if is_large else max(first, n_found), last):
            while j < slopes.size - 1 and x[i] > marks[j + 1]:
                j += 1
            positions[i] = at[j] + (x[i] - marks[j]) * slopes[j]
        n_found = max(n_found, last)
        below = offset + (first if not ends.size else (ends[first - 1] if first else 0.0))
        part = counts[first:last] if counts.size else counts
        t = _root(positions[first:last], part, below, m, h, SATURATION, shrunk(p, h), t_here, t_low, t_high)
        j = _cell(at, t)
        out[k] = min(max(marks[j] + (t - at[j]) / slopes[j], low), high)
    return True


@_compile
def _unit(width: float) -> Any:
    """The power of 2 below a width: dividing by it changes no bits."""
    return math.ldexp(0.5, math.frexp(width)[1])


@_compile
def _windows(a: Any, j: int) -> Any:
    """Widths left and right of cell j, each with the cell, and of the cell alone; `a` has MARKS more at its ends."""
    start, end = a[j + MARKS], a[j + MARKS + 1]
    return end - a[j], a[j + 2 * MARKS + 1] - start, end - start


@_compile
def _measured(marks: Any, j: int, spread: float) -> Any:
    """The same in errors."""
    left, right, own = _windows(marks, j)
    return widths(left / spread, right / spread, own / spread)


@_compile
def _slopes(marks: Any, spread: float, worth: float, level: Any, normal: Any, unit: Any, m: float) -> Any:
    """Units of the ruler per unit of error in each cell.

    Cells of a large sample, which need no reference (`worth` is 0), have a unit each, the width of their windows: the
    spread of the marks at hand, which depends on the levels asked for, would be felt where it is 1e90 times as large.
    """
    slopes = np.empty(unit.size)
    for j in range(unit.size):
        width = marks[j + 2 * MARKS + 1] - marks[j]
        own = _unit(width) if worth == 0.0 and width > 0.0 else spread
        slopes[j] = slope(_measured(marks, j, own), _windows(level, j), _windows(normal, j), unit[j], worth, m) / own
    return slopes


@_compile
def sorted_sample(
    x: Any, counts: Any, level: Any, normal: Any, unit: Any, is_large: bool, levels: Any, out: Any
) -> None:
    """Quantiles of one sorted finite sample; `counts` may be empty; level, normal and unit are `bandwidth.ruler`'s."""
    ends = np.cumsum(counts)
    m = ends[-1] if counts.size else float(x.size)
    if x.size == 1:
        for k in range(levels.size):
            out[k] = x[0]
        return
    marks = np.empty(level.size)
    for j in range(level.size):
        marks[j] = _hazen(x, ends, level[j] * m)
    spread = _unit(marks[-1] - marks[0]) if is_large else _spread(x, counts, ends, m)
    if spread == 0.0:
        for k in range(levels.size):
            out[k] = _hazen(x, ends, levels[k] * m)
        return
    h, worth = large_resolution(m), 0.0
    if not is_large:
        strange, rough = np.empty(unit.size), np.empty(unit.size)
        for j in range(unit.size):
            k = j + 2 * MARKS + 1
            strange[j] = unit[j] * strangeness((marks[k] - marks[j]) / spread, normal[k] - normal[j])
            rough[j] = unit[j] * roughness(_measured(marks, j, spread), _windows(level, j), _windows(normal, j), m)
        total = _sum(unit)
        h, worth = resolution(_sum(strange) / total, _sum(rough) / total, m)
    slopes = _slopes(marks, spread, worth, level, normal, unit, m)
    _through_ruler(x, counts, ends, 0.0, m, marks[MARKS:-MARKS], slopes, h, is_large, levels, out)


@_compile
def rows(x: Any, level: Any, normal: Any, unit: Any, is_large: bool, levels: Any, out: Any, status: Any) -> None:
    """Quantiles of each row, in any order; rows with NaN or infinity are only marked."""
    ordered, no_counts = np.empty(x.shape[1]), np.empty(0)
    for i in range(x.shape[0]):
        row = x[i]
        for j in range(row.size):
            ordered[j] = row[j] - row[j]  # NaN for NaN and infinities
        if _sum(ordered) != 0.0:
            n_missing = 0
            for j in range(row.size):
                n_missing += row[j] != row[j]
            status[i] = MISSING if n_missing else INFINITE
            continue
        _sort(row, ordered)
        low, high = ordered[0], ordered[-1]
        factor = safe_factor(max(abs(low), abs(high)))
        if factor != 1.0:
            for j in range(row.size):
                ordered[j] *= factor  # the least of them may become 0
        sorted_sample(ordered, no_counts, level, normal, unit, is_large, levels, out[i])
        if factor != 1.0:
            for k in range(levels.size):
                out[i, k] = min(max(out[i, k] / factor, low), high)


@_compile
def weighted_rows(
    x: Any, counts: Any, level: Any, normal: Any, unit: Any, is_large: bool, levels: Any, out: Any
) -> None:
    """Quantiles of one sorted sample for each row of counts; a value without a count is left out."""
    held, own = np.empty(x.size), np.empty(x.size)
    for i in range(counts.shape[0]):
        n = 0
        for j in range(x.size):
            held[n] = x[j]
            own[n] = counts[i, j]
            n += counts[i, j] > 0.0
        sorted_sample(held[:n], own[:n], level, normal, unit, is_large, levels, out[i])


@_compile
def _code(bounds: Any, x: float) -> Any:
    """How many bounds lie before x; the bounds themselves belong to their pair."""
    c = np.searchsorted(bounds, x)
    return c + 1 if c % 2 == 0 and c < bounds.size and bounds[c] == x else c


@_compile
def _between(x: Any, bounds: Any, starts: Any, kept: Any, counts: Any) -> Any:
    """Keep what lies within pairs of bounds, in one read; count what lies before, in and after them.

    Pair i is kept from `kept[starts[i]]` on. Returns FINE, MISSING or INFINITE if x holds such values, NARROW if a pair
    holds more than there is room for.
    """
    n_pairs = bounds.size // 2
    # Buckets of equal width know the one code (2 i + 1 in pair i, 2 i before it) of all their values, but for a few.
    table = np.full(BUCKETS, UNKNOWN, np.uint64)  # unsigned: numba need not look for negative indices
    base = bounds[0] if bounds[0] > -np.inf else bounds[1]
    top = bounds[-1] if bounds[-1] < np.inf else bounds[-2]
    scale = (BUCKETS - 1) / (top - base) if top > base else 0.0
    scale = scale if scale < np.inf else 0.0
    for i in range(BUCKETS if scale > 0.0 and n_pairs > 1 else 0):
        start, end = base + (i - 0.01) / scale, base + (i + 1.01) / scale
        if i == 0:
            start = -np.inf
        if i == BUCKETS - 1:
            end = np.inf
        c: Any = _code(bounds, start)
        if c == _code(bounds, end):
            table[i] = c
    base_of = np.full(2 * n_pairs + 1, np.uint64(kept.size - 1), np.uint64)
    mask_of = np.zeros(2 * n_pairs + 1, np.uint64)
    for pair in range(n_pairs):
        base_of[2 * pair + 1] = starts[pair]
        mask_of[2 * pair + 1] = np.uint64(2**62 - 1)
    bucket = np.empty(CHUNK, np.uint32)
    status = FINE
    for begin in range(0, x.size, CHUNK):
        chunk = x[begin : begin + CHUNK]
        n_odd = 0
        for i in range(chunk.size):
            n_odd += chunk[i] - chunk[i] != 0.0  # NaN and infinities
        if n_odd:
            status = INFINITE
            for i in range(chunk.size):
                if chunk[i] != chunk[i]:
                    return MISSING
        for pair in range(n_pairs):
            if starts[pair] + counts[2 * pair + 1] + chunk.size > starts[pair + 1]:
                return NARROW
        if n_pairs == 1:
            low, high = bounds[0], bounds[1]
            n_before = 0
            for i in range(chunk.size):
                n_before += chunk[i] < low
            counts[0] += n_before
            position = starts[0] + counts[1]
            for i in range(chunk.size):
                kept[position] = chunk[i]
                position += (chunk[i] >= low) & (chunk[i] <= high)
            counts[1] = position - starts[0]
        else:
            for i in range(chunk.size):
                z = (chunk[i] - base) * scale
                z = z if z > 0.0 else 0.0
                z = z if z < BUCKETS - 1.0 else BUCKETS - 1.0
                bucket[i] = np.uint32(np.int32(z))
            for i in range(chunk.size):
                c = table[bucket[i]]
                if c == UNKNOWN:
                    c = np.uint64(_code(bounds, chunk[i]))
                kept[base_of[c] + (np.uint64(counts[c]) & mask_of[c])] = chunk[
                    i
                ]  # without a branch: what is in between is lost
                counts[c] += 1
    return status


@_compile
def long_sample(x: Any, level: Any, unit: Any, levels: Any, out: Any) -> Any:
    """Quantiles of a long sample in any order at rising levels, from the errors near each level alone.

    Pivots from a strided subsample bound what is kept. Returns NARROW where that would be about everything, or does not
    reach far enough on the ruler: the sample is then to be sorted as a whole.
    """
    m = float(x.size)
    h = large_resolution(m)
    edge = math.acos(1.0 - 1.0 / m)
    step = (math.pi - 2.0 * edge) / unit.size
    reach = int(1.3 * (SATURATION * h + 2.0 * BRACKET / math.sqrt(m)) / step) + 1
    n_sub = int(m**0.75)
    strided = np.empty(n_sub)
    for i in range(n_sub):
        strided[i] = x[i * (x.size // n_sub)]
        if strided[i] != strided[i]:
            return MISSING
    pivots = np.empty(n_sub)
    _sort(strided, pivots)

    # Ranges of cells, [first, last), and of the pivots that bound them; what overlaps becomes one range.
    n_ranges = 0
    first, last = np.empty(levels.size, np.int64), np.empty(levels.size, np.int64)
    low, high = np.empty(levels.size, np.int64), np.empty(levels.size, np.int64)
    range_of = np.empty(levels.size, np.int64)
    for k in range(levels.size):
        cell = int((math.acos(1.0 - 2.0 * levels[k]) - edge) / step)
        a, b = max(cell - reach, 0), min(cell + 1 + reach, unit.size)
        u, v = level[a], level[b + 2 * MARKS]
        margin = 3.0 * math.sqrt(u * (1.0 - u) * n_sub) + 2.0
        i = int(u * n_sub - margin) if a > 0 else -1
        margin = 3.0 * math.sqrt(v * (1.0 - v) * n_sub) + 2.0
        j = int(v * n_sub + margin) + 1 if b < unit.size else n_sub
        if n_ranges and i <= high[n_ranges - 1]:
            last[n_ranges - 1] = max(last[n_ranges - 1], b)
            high[n_ranges - 1] = max(high[n_ranges - 1], j)
        else:
            first[n_ranges], last[n_ranges], low[n_ranges], high[n_ranges] = a, b, i, j
            n_ranges += 1
        range_of[k] = n_ranges - 1

    bounds = np.empty(2 * n_ranges)
    starts = np.zeros(n_ranges + 1, np.int64)
    total = 0.0
    for r in range(n_ranges):
        bounds[2 * r] = pivots[low[r]] if low[r] >= 0 else -np.inf
        bounds[2 * r + 1] = pivots[high[r]] if high[r] < n_sub else np.inf
        share = (min(high[r], n_sub) - max(low[r], 0)) / n_sub
        total += share
        starts[r + 1] = starts[r] + int(1.1 * share * m + 4.0 * m / math.sqrt(n_sub) * math.sqrt(share)) + 2 * CHUNK
    if total > 0.75:
        return NARROW
    kept = np.empty(starts[-1] + 1)
    counts = np.zeros(2 * n_ranges + 1, np.int64)
    status = _between(x, bounds, starts, kept, counts)
    if status != FINE:
        return status

    no_counts = np.empty(0)
    offset = 0
    k = 0
    for r in range(n_ranges):
        offset += counts[2 * r]
        near = np.empty(counts[2 * r + 1])
        a, b = first[r], last[r]
        marked = level[a : b + 2 * MARKS + 1]
        if near.size < 2 or (offset and marked[0] * m < offset + 1.0):
            return NARROW
        if offset + near.size < m and marked[-1] * m > offset + near.size - 1.0:
            return NARROW
        _sort(kept[starts[r] : starts[r] + near.size], near)
        marks = np.empty(marked.size)
        for j in range(marks.size):
            marks[j] = _hazen(near, no_counts, marked[j] * m - offset)
        end = k
        while end < levels.size and range_of[end] == r:
            end += 1
        if safe_factor(max(abs(near[0]), abs(near[-1]))) != 1.0:
            return NARROW
        if marks[-1] == marks[0]:
            for j in range(k, end):
                out[j] = marks[0]
        else:
            slopes = _slopes(marks, _unit(marks[-1] - marks[0]), 0.0, marked, marked, unit[a:b], m)
            inner = marks[MARKS : marks.size - MARKS]
            if not _through_ruler(
                near, no_counts, no_counts, float(offset), m, inner, slopes, h, True, levels[k:end], out[k:end]
            ):
                return NARROW
        offset += near.size
        k = end
    return FINE


@_compile
def fixed_sample(x: Any, counts: Any, levels: Any, h: float, starts: Any, out: Any) -> None:
    """Roots of the paper's own share for one finite sample in any order, kept in its range."""
    m = counts.sum() if counts.size else float(x.size)
    low, high = x.min(), x.max()
    for k in range(levels.size):
        out[k] = _root(x, counts, 0.0, m, h, 40.0, levels[k], starts[k], low, high)


@_compile
def fixed_rows(x: Any, nothing: Any, levels: Any, h: float, starts: Any, out: Any) -> None:
    """The same for each row, without counts."""
    for i in range(x.shape[0]):
        fixed_sample(x[i], nothing, levels, h, starts[i], out[i])


class _Sealed(IndexDataCacheFile):
    """Numba's cache on disk with a checksum behind each pickle: a broken one is as none, and is written anew.

    Numba would run whatever machine code it finds.
    """

    def _dump(self, obj: Any) -> bytes:
        data: bytes = super()._dump(obj)
        return data + zlib.crc32(data).to_bytes(4, "little")

    def _load_index(self) -> Any:
        version, path = pickle.dumps(self._version, protocol=-1), Path(self._index_path)
        data = path.read_bytes() if path.exists() else b""
        return super()._load_index() if data.startswith(version) and _is_whole(data[len(version) :]) else {}

    def _load_data(self, name: str) -> Any:
        if not _is_whole(Path(self._data_path(name)).read_bytes()):
            raise FileNotFoundError  # numba then compiles
        return super()._load_data(name)


def _is_whole(data: bytes) -> bool:
    return zlib.crc32(data[:-4]).to_bytes(4, "little") == data[-4:]


class Kernel:
    """The compiled functions for one rule, a module like `pimeter.bandwidth`.

    They are loaded from numba's cache on disk; without a place for it they are compiled in memory, with one warning.
    """

    def __init__(self, rule: ModuleType) -> None:
        self._rule: Any = rule
        try:
            self._load(cache=True)
        except (RuntimeError, OSError) as reason:  # no directory to write in, a full disk
            self._load(cache=False)
            msg = f"no cache of compiled code ({reason}): pimeter compiles in memory, some seconds in each new process."
            warnings.warn(msg, stacklevel=4)

    def _load(self, *, cache: bool) -> None:
        here = {name: value for name, value in globals().items() if not name.startswith("__")}
        plain = (self._rule, stream, counting)
        names = {name: value for module in plain for name, value in vars(module).items()} | here
        formulas = [f for module in plain for f in vars(module).values() if isinstance(f, FunctionType)]
        # Numba looks for changes in a function's own file alone, so that the name on disk holds a hash of the rule.
        stamp = zlib.crc32(Path(self._rule.__file__).read_bytes())
        for source in (*formulas, *_sources):
            function = FunctionType(source.__code__, names, source.__name__, source.__defaults__)
            function.__qualname__ = f"{source.__name__}_{stamp:x}"
            compiled: Any = numba.njit(nogil=True, cache=cache, error_model="numpy")(function)
            if isinstance(getattr(compiled, "_cache", None), FunctionCache):
                compiled._cache._cache_file.__class__ = _Sealed
            names[source.__name__] = compiled
        self._compiled: Any = SimpleNamespace(**names)

        sample, levels, out = np.linspace(0.0, 1.0, 8), np.array([0.5]), np.empty((1, 1))
        self.automatic(sample, sample + 1.0, levels)
        self.fixed(sample, np.empty(0), levels, 0.1, levels)
        self.fixed_rows(sample[None], levels, 0.1, levels[None])
        self.weighted_rows(sample, sample[None] + 1.0, 12.0, levels, out)
        self.automatic_rows(sample[None], levels, out)
        for width in (np.float32, np.float64):
            self.automatic_rows(np.linspace(0.0, 1.0, 4096, dtype=width)[None], levels, out)
        self.learn(sample, 0.5, stream.ADAPT, 0.0, (0.0, 0.0, 0.0, 0.0))
        self.learn_columns(sample[None], 0.5, stream.ADAPT, np.zeros((8, 4)))
        self._count(sample)

    def automatic_rows(self, x: Any, levels: Any, out: Any) -> Any:
        """See `reference.Kernel`."""
        ruler = self._rule.ruler(max(float(x.shape[1]), 3.0))
        is_large = x.shape[1] > self._rule.LARGE
        status = np.zeros(len(x), np.int8)
        if not is_large:
            self._compiled.rows(x, *ruler, False, levels, out, status)
            return status
        for i in range(len(x)):
            status[i] = self._compiled.long_sample(x[i], ruler.level, ruler.unit, levels, out[i])
            if status[i] == NARROW:
                status[i] = FINE
                self._compiled.rows(
                    x[i : i + 1].astype(np.float64), *ruler, True, levels, out[i : i + 1], status[i : i + 1]
                )
        return status

    def automatic(self, x: Any, counts: Any, levels: Any) -> Any:
        """See `reference.Kernel`."""
        out = np.empty(levels.size)
        m = float(counts.sum())
        self._compiled.sorted_sample(x, counts, *self._rule.ruler(max(m, 3.0)), m > self._rule.LARGE, levels, out)
        return out

    def weighted_rows(self, x: Any, counts: Any, m: float, levels: Any, out: Any) -> None:
        """See `reference.Kernel`."""
        self._compiled.weighted_rows(x, counts, *self._rule.ruler(max(m, 3.0)), m > self._rule.LARGE, levels, out)

    def fixed(self, x: Any, counts: Any, levels: Any, h: float, starts: Any) -> Any:
        """See `reference.Kernel`."""
        out = np.empty(levels.size)
        self._compiled.fixed_sample(x, counts, levels, h, starts, out)
        return out

    def fixed_rows(self, x: Any, levels: Any, h: float, starts: Any) -> Any:
        """See `reference.Kernel`."""
        out = np.empty(starts.shape)
        self._compiled.fixed_rows(x, np.empty(0), levels, h, starts, out)
        return out

    @property
    def counting(self) -> Any:
        """The functions of `counting`, compiled."""
        return self._compiled

    def _count(self, sample: Any) -> None:
        """Call each of them."""
        bits, group, counts = sample.view(np.int64), np.zeros(sample.size, np.uint8), np.zeros((1, 2), np.intp)
        scale = (0, 62, 0)
        self.counting.count_buckets(bits, group, *scale, counts)
        self.counting.keep_buckets(bits, *scale, np.zeros(2, bool), np.empty(1, np.intp))
        self.counting.place(sample, bits, group, *scale, sample[None, :1], np.zeros((1, 2), np.uint8), group)
        self.counting.count_pairs(group, group, counts)
        self.counting.sum_places(sample, 0.0, 1.0, group, group, np.zeros((1, 2, 3)))
        self.counting.sum_powers(sample, 1.0, sample, np.zeros((2, 3)))
        self.counting.sum_squares(sample, sample, 0.0, 1.0, 0.0, sample, np.zeros(6))

    def learn(self, errors: Any, p: float, kind: int, rate: float, state: tuple[float, float, float, float]) -> Any:
        """See `stream`."""
        return self._compiled.learn(errors, p, kind, rate, state)

    def learn_columns(self, errors: Any, p: float, kind: int, states: Any) -> None:
        """See `stream`."""
        self._compiled.learn_columns(errors, p, kind, states)
