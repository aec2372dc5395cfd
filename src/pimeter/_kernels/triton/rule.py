"""Quantiles by the rule on a GPU.

Rows of up to LARGE errors (`short`) are sorted on the chip, and map and root follow in the next program. Of longer
ones (`long`) pivots from a subsample bound what is near the level; that is gathered in one read, sorted, and given to
the same map.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
import triton
import triton.language as tl
from torch import Tensor

from pimeter import bandwidth
from pimeter._kernels.torch import activation, fit_maps, hazen
from pimeter._kernels.triton.fixed import fixed
from pimeter._kernels.triton.formulas import both, distance_from_normal, resolution, roughness, shrunk, slope, widths
from pimeter._kernels.triton.root import (
    FINE,
    INFINITE,
    MANY_ROWS,
    MISSING,
    aligned,
    floor,
    loaded,
    next_try,
    precision,
    root,
    summed_outputs,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

AT_ONCE = 32768  # rows that are sorted before their quantiles are found
ERRORS_AT_ONCE = 256  # that a program of a long row looks through
ON_CHIP = 8192  # as many errors, of float32, are sorted there; more are sorted faster elsewhere


@triton.jit
def _side(n_bits: tl.constexpr, bit: tl.constexpr):
    return tl.reshape(tl.arange(0, 2), [1] * (n_bits - bit - 1) + [2] + [1] * bit) == 1


@triton.jit
def _xor(a, b):
    return a ^ b


@triton.jit
def _exchanged(x, bit: tl.constexpr, n_bits: tl.constexpr):
    """The smaller of two errors that differ in one bit of their places to its 0, the larger to its 1."""
    places = x.to(tl.int32, bitcast=True)
    other = (places ^ tl.reduce(places, n_bits - 1 - bit, _xor, keep_dims=True)).to(x.dtype, bitcast=True)
    return tl.where(_side(n_bits, bit), tl.maximum(x, other), tl.minimum(x, other))


@triton.jit
def _sorted(x, N_BITS: tl.constexpr, ORDER: tl.constexpr):
    """Bitonic sort, where places that a thread holds itself come first: most exchanges then need no other thread.

    As `tl.sort`, at half the instructions: falling runs are negated, so that each exchange is a minimum or a maximum.
    ORDER tells which bits of the places that x was loaded to are whose.
    """
    y = tl.permute(tl.reshape(x, [2] * N_BITS), ORDER.value)
    for k in tl.static_range(1, N_BITS + 1):
        if k < N_BITS:
            y = tl.where(_side(N_BITS, k), -y, y)
        for i in tl.static_range(k):
            y = _exchanged(y, k - 1 - i, N_BITS)
        if k < N_BITS:
            y = tl.where(_side(N_BITS, k), -y, y)
    return tl.reshape(y, x.shape)


@triton.jit
def sorted_rows(
    x_ptr, out_ptr, status_ptr, n, BLOCK: tl.constexpr, N_BITS: tl.constexpr, ORDER: tl.constexpr, ALIGN: tl.constexpr
):
    """Rows sorted on the chip as float32, and whether they hold NaN or infinities."""
    row = tl.program_id(0).to(tl.int64)
    x, begin, held = loaded(x_ptr, row, n, BLOCK, ALIGN, tl.float32)
    n_odd = tl.sum((held & (tl.abs(x) == float("inf"))).to(tl.int32) + 4096 * (x != x).to(tl.int32), 0)
    tl.store(status_ptr + row, tl.where(n_odd >= 4096, 1, tl.where(n_odd > 0, 2, 0)))
    tl.store(out_ptr + begin + tl.arange(0, BLOCK), _sorted(x, N_BITS, ORDER), mask=held)


@triton.jit
def _hazen(sorted_ptr, origin, factor, i, fraction):
    """Hazen's quantiles of sorted errors, seen from an origin, times a factor."""
    before = (tl.load(sorted_ptr + i).to(fraction.dtype) - origin) * factor
    after = (tl.load(sorted_ptr + i + 1).to(fraction.dtype) - origin) * factor
    return before + fraction * (after - before)


@triton.jit
def _listed(sorted_ptr, origin, factor, index_ptr, fraction_ptr, k):
    """Hazen's quantiles of ranks in tables."""
    return _hazen(sorted_ptr, origin, factor, tl.load(index_ptr + k), tl.load(fraction_ptr + k))


@triton.jit
def _ranked(sorted_ptr, origin, rank, number, F: tl.constexpr):
    """Hazen's quantile of a rank among so many."""
    first = tl.minimum(rank.to(tl.int64), number - 2)
    return _hazen(sorted_ptr, origin, 1.0, first, (rank - first).to(F))


@triton.jit
def _on_map(x, cell, origin, knots_ptr, slopes_ptr, at_ptr):
    """Where errors of these cells lie on the map, seen from that end of the cell which is nearer to its origin."""
    end = cell + (cell < origin).to(tl.int32)
    return tl.load(at_ptr + end) + (x - tl.load(knots_ptr + end)) * tl.load(slopes_ptr + cell)


@triton.jit
def _off_map(t, cell, origin, knots_ptr, slopes_ptr, at_ptr):
    """Errors of places on the map, the inverse of `_on_map`."""
    end = cell + (cell < origin).to(tl.int32)
    return tl.load(knots_ptr + end) + (t - tl.load(at_ptr + end)) / tl.load(slopes_ptr + cell)


@triton.jit
def _last(is_up_to, n_cells):
    """The last of the cells up to somewhere, or the first."""
    return tl.minimum(tl.maximum(tl.sum(is_up_to.to(tl.int32), 0) - 1, 0), tl.maximum(n_cells - 1, 0))


@triton.jit
def _power_of_two(a):
    """The one below a positive number, for the sake of exact quotients."""
    if a.dtype == tl.float64:
        p = (a.to(tl.int64, bitcast=True) & 0x7FF0000000000000).to(tl.float64, bitcast=True)
        p = tl.minimum(tl.maximum(p, 2.0**-1022), 2.0**1021)
    else:
        p = (a.to(tl.int32, bitcast=True) & 0x7F800000).to(tl.float32, bitcast=True)
        p = tl.minimum(tl.maximum(p, 2.0**-126), 2.0**125)
    return p


@triton.jit
def _positions(lengths, before, j, origin):
    """Where cells start on the map, counted from one of them, from their lengths and those of the cells before.

    Far-off errors may take much of it, and digits: nothing is added to be taken away.
    """
    right = tl.where(j > origin, before, 0.0)
    left = tl.where(j < origin, lengths, 0.0)
    return tl.cumsum(right, 0) - tl.cumsum(left, 0, reverse=True)


@triton.jit
def _shifted(a, scratch_ptr, j):
    """The values of the places before."""
    tl.debug_barrier()
    tl.store(scratch_ptr + j, a)
    tl.debug_barrier()
    return tl.load(scratch_ptr + tl.maximum(j - 1, 0))


@triton.jit
def short_rows(
    sorted_ptr,
    out_ptr,
    status_ptr,
    scratch_ptr,
    index_ptr,
    fraction_ptr,
    cells_ptr,
    cell_of_ptr,
    levels_ptr,
    taken_ptr,
    n,
    n_cells,
    n_levels,
    tolerance,
    LEAST_WIDTH: tl.constexpr,
    KNOTS: tl.constexpr,
    FLOOR: tl.constexpr,
    BLOCK: tl.constexpr,
    CELLS: tl.constexpr,
    F: tl.constexpr,
):
    """Quantiles of sorted rows by the rule; see `reference.automatic_rows`.

    Which order statistics are asked for depends on n alone, so that the tables hold their indices: of the knots
    (CELLS of them), of the two quartiles, and of three points (bracket and plain quantile) for each level.
    """
    i = tl.arange(0, BLOCK)
    j = tl.arange(0, CELLS)
    is_cell = j < n_cells
    level = (tl.load(cells_ptr + j), tl.load(cells_ptr + CELLS + j), tl.load(cells_ptr + 2 * CELLS + j))
    normal = (
        tl.load(cells_ptr + 3 * CELLS + j),
        tl.load(cells_ptr + 4 * CELLS + j),
        tl.load(cells_ptr + 5 * CELLS + j),
    )
    unit = tl.load(cells_ptr + 6 * CELLS + j)
    weight = tl.load(cells_ptr + 7 * CELLS + j)
    row = tl.program_id(0).to(tl.int64)
    sorted_ptr += row * n
    knots_ptr = scratch_ptr + row * 3 * CELLS
    slopes_ptr = knots_ptr + CELLS
    at_ptr = slopes_ptr + CELLS
    m = tl.load(index_ptr).to(tl.float64) * 0.0 + n
    size = m.to(F)
    status = tl.load(status_ptr + row)
    max_steps = tl.where(status > 0, 0, 200)
    x = tl.load(sorted_ptr + i, mask=i < n, other=float("inf")).to(F)
    middle = tl.load(sorted_ptr + n // 2).to(F)
    factor = _power_of_two(tl.maximum(tl.abs(tl.load(sorted_ptr)), tl.abs(tl.load(sorted_ptr + n - 1))).to(F))
    scale = 1.0 / factor
    x = (x - middle) * scale
    knot = _hazen(
        sorted_ptr,
        middle,
        scale,
        tl.load(index_ptr + j, mask=j <= n_cells, other=0),
        tl.load(fraction_ptr + j, mask=j <= n_cells, other=0.0),
    )
    tl.store(knots_ptr + j, knot)
    quartile_1 = _listed(sorted_ptr, middle, scale, index_ptr, fraction_ptr, CELLS)
    quartile_3 = _listed(sorted_ptr, middle, scale, index_ptr, fraction_ptr, CELLS + 1)
    quartiles = (quartile_3 - quartile_1) / 1.349
    margin = tl.load(sorted_ptr + n - 1).to(F) * scale - tl.load(sorted_ptr).to(F) * scale
    deviation = x / tl.where(quartiles > 0.0, quartiles, 1.0)
    deviation = tl.where(i < n, tl.minimum(tl.maximum(deviation, -1e15), 1e15), 0.0)
    total, square = tl.sum(deviation, 0), tl.sum(deviation * deviation, 0)
    variance = tl.maximum((square - total * total / size) / (size - 1.0), 0.0)
    spread = quartiles * tl.minimum(tl.sqrt(variance), 1.0)
    is_tied = (quartiles <= LEAST_WIDTH * margin) | (spread == 0.0) | (n < 3)
    spread = tl.where(is_tied, 1.0, spread)
    tl.debug_barrier()
    before = tl.load(knots_ptr + tl.maximum(j - KNOTS, 0), mask=is_cell, other=0.0)
    start = tl.load(knots_ptr + j, mask=is_cell, other=0.0)
    end = tl.load(knots_ptr + j + 1, mask=is_cell, other=1.0)
    after = tl.load(knots_ptr + tl.minimum(j + 1 + KNOTS, n_cells), mask=is_cell, other=1.0)
    measured = ((end - before) / spread, (after - start) / spread, (end - start) / spread)
    error = widths(measured[0], measured[1], measured[2])
    distance = distance_from_normal(both(measured), both(normal)) * weight
    rough = roughness(error, level, normal, size, 1.0) * weight
    h, pseudo_count = resolution(tl.sum(distance, 0), tl.sum(rough, 0), size)
    slopes = slope(error, level, normal, unit, pseudo_count, size) / spread
    lengths = tl.where(is_cell, (end - start) * slopes, 0.0)
    lengths_before = _shifted(lengths, at_ptr, j)
    tl.store(slopes_ptr + j, slopes)
    cell = tl.load(cell_of_ptr + i, mask=i < n, other=0).to(tl.int32)
    for k in range(n_levels):
        p = tl.load(levels_ptr + k)
        origin = tl.load(cell_of_ptr + n + 3 * k + 1).to(tl.int32)
        at = _positions(lengths, lengths_before, j, origin)
        tl.debug_barrier()
        tl.store(at_ptr + j, at)
        tl.debug_barrier()
        positions = _on_map(x, cell, origin, knots_ptr, slopes_ptr, at_ptr)
        three = CELLS + 2 + 3 * k
        low = _listed(sorted_ptr, middle, scale, index_ptr, fraction_ptr, three)
        here = _listed(sorted_ptr, middle, scale, index_ptr, fraction_ptr, three + 1)
        high = _listed(sorted_ptr, middle, scale, index_ptr, fraction_ptr, three + 2)
        own_ptr = cell_of_ptr + n + 3 * k
        t_low = _on_map(low, tl.load(own_ptr).to(tl.int32), origin, knots_ptr, slopes_ptr, at_ptr)
        t_here = _on_map(here, origin, origin, knots_ptr, slopes_ptr, at_ptr)
        t_high = _on_map(high, tl.load(own_ptr + 2).to(tl.int32), origin, knots_ptr, slopes_ptr, at_ptr)
        sought = shrunk(p, h.to(tl.float64))
        t, _stop = root(
            positions, positions, 0.0, m, h, FLOOR, sought, t_here, t_low, t_high, tolerance, max_steps, False
        )
        w = _off_map(t, _last(is_cell & (at <= t), n_cells), origin, knots_ptr, slopes_ptr, at_ptr)
        w = tl.where(is_tied, here, tl.minimum(tl.maximum(w, low), high))
        answer = w.to(tl.float64) * factor.to(tl.float64) + middle.to(tl.float64)
        taken = tl.load(sorted_ptr + tl.load(taken_ptr + k)).to(tl.float64)  # of errors with infinities
        answer = tl.where(status == 0, answer, tl.where(status == 1, float("nan"), taken))
        tl.store(out_ptr + row * n_levels + k, answer)


@triton.jit
def gathered(
    x_ptr,
    pivots_ptr,
    kept_ptr,
    counts_ptr,
    n,
    length,
    room,
    n_sub,
    first,
    last,
    SLOTS: tl.constexpr,
    BLOCK: tl.constexpr,
    ALIGN: tl.constexpr,
):
    """Keep what lies between two pivots, in any order; count what lies below and what is kept, NaN and infinities.

    Blocks take turns at the row's slots, of which each has its own room and counts: few wait for the same counter.
    """
    part = tl.program_id(0).to(tl.int64)
    row = tl.program_id(1).to(tl.int64)
    low = tl.load(pivots_ptr + row * n_sub + first, mask=first >= 0, other=-float("inf"))
    high = tl.load(pivots_ptr + row * n_sub + last, mask=last < n_sub, other=float("inf"))
    i = tl.arange(0, BLOCK)
    x_ptr += tl.multiple_of(row * n, ALIGN)
    kept_ptr += row * SLOTS * room
    counts_ptr += row * SLOTS * 4
    end = tl.minimum((part + 1) * length, n)
    below = tl.zeros([BLOCK], tl.int32)
    odd = tl.zeros([BLOCK], tl.float32)
    for start in range(part * length, end, BLOCK):
        held = i < tl.minimum(end - start, BLOCK).to(tl.int32)
        x = tl.load(x_ptr + start + i, mask=held, other=float("nan"))
        is_enough = (x >= low) & (x <= high)
        below += (x < low).to(tl.int32)
        odd += tl.where(held, (x - x).to(tl.float32), 0.0)  # NaN for NaN and infinities
        number = tl.sum(is_enough.to(tl.int32), 0)
        if number > 0:
            slot = (start // BLOCK) % SLOTS
            place = tl.atomic_add(counts_ptr + 4 * slot + 1, number.to(tl.int64)) + tl.cumsum(is_enough.to(tl.int32), 0)
            tl.store(kept_ptr + slot * room + place - 1, x, mask=is_enough & (place <= room))
    tl.atomic_add(counts_ptr + 4 * (part % SLOTS), tl.sum(below, 0).to(tl.int64))
    n_odd = tl.sum((odd != odd).to(tl.int32), 0)
    if n_odd > 0:
        tl.atomic_add(counts_ptr + 2, n_odd.to(tl.int64))


@triton.jit
def near_rows(
    sorted_ptr,
    positions_ptr,
    counts_ptr,
    out_ptr,
    status_ptr,
    scratch_ptr,
    ranks_ptr,
    cells_ptr,
    room,
    n_cells,
    origin,
    numbers_ptr,
    tolerance,
    KNOTS: tl.constexpr,
    SLOTS: tl.constexpr,
    END: tl.constexpr,
    FLOOR: tl.constexpr,
    BLOCK: tl.constexpr,
    CELLS: tl.constexpr,
    F: tl.constexpr,
):
    """One quantile of each long row by the rule, from its sorted errors near the level; see `long_sample.hpp`.

    `ranks` holds where, among all sorted errors, the knots of the cells near the level stand (2 CELLS of them, with
    those of the windows beyond), and the three points of the level.
    """
    row = tl.program_id(0).to(tl.int64)
    sorted_ptr += row * SLOTS * room
    positions_ptr += row * SLOTS * room
    slots_ptr = counts_ptr + 4 * (row * SLOTS + tl.arange(0, SLOTS))
    scratch_ptr += row * 4 * CELLS
    knots_ptr = scratch_ptr
    slopes_ptr = knots_ptr + 2 * CELLS
    at_ptr = slopes_ptr + CELLS
    offset = tl.sum(tl.load(slots_ptr), 0)
    numbers = tl.load(slots_ptr + 1)
    number = tl.sum(numbers, 0)
    m = tl.load(numbers_ptr)
    h = tl.load(numbers_ptr + 1).to(F)
    sought = tl.load(numbers_ptr + 2)
    j = tl.arange(0, CELLS)
    is_cell = j < n_cells
    n_marks = n_cells + 1 + 2 * KNOTS
    rank_first = tl.load(ranks_ptr) - offset
    rank_last = tl.load(ranks_ptr + n_marks - 1) - offset
    is_narrow = (tl.max(numbers, 0) > room) | (number < 2) | (rank_first < 0.0) | (rank_last > number - 1.0)
    status = tl.where(tl.sum(tl.load(slots_ptr + 2), 0) > 0, 2, tl.where(is_narrow, 3, 0))
    if status != 0:
        tl.store(status_ptr + row, status)
        tl.store(out_ptr + row, float("nan"))
        return
    rank = tl.load(ranks_ptr + 2 * CELLS + 1) - offset
    middle = tl.load(sorted_ptr + tl.minimum(rank.to(tl.int64), number - 2)).to(F)
    here = _ranked(sorted_ptr, middle, rank, number, F)
    low = _ranked(sorted_ptr, middle, tl.load(ranks_ptr + 2 * CELLS) - offset, number, F)
    high = _ranked(sorted_ptr, middle, tl.load(ranks_ptr + 2 * CELLS + 2) - offset, number, F)
    k = tl.arange(0, 2 * CELLS)
    ranks = tl.load(ranks_ptr + k, mask=k < n_marks, other=offset) - offset
    tl.store(knots_ptr + k, _ranked(sorted_ptr, middle, ranks, number, F))
    tl.debug_barrier()
    before = tl.load(knots_ptr + j, mask=is_cell, other=0.0)
    start = tl.load(knots_ptr + j + KNOTS, mask=is_cell, other=0.0)
    end = tl.load(knots_ptr + j + KNOTS + 1, mask=is_cell, other=1.0)
    after = tl.load(knots_ptr + j + 2 * KNOTS + 1, mask=is_cell, other=1.0)
    spread = tl.load(knots_ptr + n_marks - 1) - tl.load(knots_ptr)
    is_tied = spread == 0.0
    spread = _power_of_two(tl.where(is_tied, 1.0, spread))
    level = (tl.load(cells_ptr + j), tl.load(cells_ptr + CELLS + j), tl.load(cells_ptr + 2 * CELLS + j))
    unit = tl.load(cells_ptr + 3 * CELLS + j)
    error = widths((end - before) / spread, (after - start) / spread, (end - start) / spread)
    slopes = slope(error, level, level, unit, 0.0, m.to(F)) / spread
    lengths = tl.where(is_cell, (end - start) * slopes, 0.0)
    at = _positions(lengths, _shifted(lengths, at_ptr, j), j, origin)
    tl.debug_barrier()
    tl.store(knots_ptr + j, start)
    tl.store(slopes_ptr + j, slopes)
    tl.store(at_ptr + j, at)
    tl.debug_barrier()
    last = tl.maximum(n_cells - 1, 0)
    t_low = _on_map(low, _last(is_cell & (start <= low), n_cells), origin, knots_ptr, slopes_ptr, at_ptr)
    t = _on_map(here, _last(is_cell & (start <= here), n_cells), origin, knots_ptr, slopes_ptr, at_ptr)
    t_high = _on_map(high, _last(is_cell & (start <= high), n_cells), origin, knots_ptr, slopes_ptr, at_ptr)
    margin = END * h
    at_first = tl.load(at_ptr)
    at_last = tl.load(at_ptr + last) + tl.sum(tl.where(j == last, lengths, 0.0), 0)
    is_short = ((offset > 0) & (t_low - margin < at_first)) | ((offset + number < m) & (t_high + margin > at_last))
    i = tl.arange(0, BLOCK)
    for begin in range(0, number, BLOCK):
        held = begin + i < number
        x = tl.load(sorted_ptr + begin + i, mask=held, other=0.0).to(F) - middle
        cell = tl.zeros([BLOCK], tl.int32)
        bit = CELLS // 2
        while bit > 0:
            tried = cell + bit
            knot = tl.load(knots_ptr + tl.minimum(tried, CELLS - 1))
            cell = tl.where((tried < n_cells) & (knot <= x), tried, cell)
            bit = bit // 2
        tl.store(positions_ptr + begin + i, _on_map(x, cell, origin, knots_ptr, slopes_ptr, at_ptr), mask=held)
    tl.debug_barrier()
    a = t - float("inf")
    b = t + float("inf")
    stop = 0
    steps = 0
    while (stop == 0) & (steps < 200):
        inside, tails, rise, _, _, _, _ = summed_outputs(
            positions_ptr, positions_ptr, 0, number, t, h, FLOOR, BLOCK, False, False
        )
        t, a, b, stop = next_try(t, a, b, offset + inside, tails, rise.to(F), m, h, sought, t_low, t_high, tolerance)
        steps += 1
    w = _off_map(t, _last(is_cell & (at <= t), n_cells), origin, knots_ptr, slopes_ptr, at_ptr)
    w = tl.where(is_tied, here, tl.minimum(tl.maximum(w, low), high))
    tl.store(out_ptr + row, w.to(tl.float64) + middle.to(tl.float64))
    tl.store(status_ptr + row, tl.where(is_short & (is_tied == 0), 3, 0))


def _order(block: int, together: int, n_warps: int) -> tuple[int, ...]:
    """Dimensions of a block, one for each bit of its places: first those between threads, then a thread's own."""
    n_bits, read = block.bit_length() - 1, together.bit_length() - 1
    between = range(read, read + 4 + n_warps.bit_length())
    own = [bit for bit in range(n_bits) if bit not in between]
    return tuple(n_bits - 1 - bit for group in (between, own) for bit in sorted(group, reverse=True))


class Places(NamedTuple):
    """Which order statistics of a short row are asked for, and the map's windows: tables for `short_rows`."""

    index: Tensor
    fraction: Tensor
    cells: Tensor
    cell_of: Tensor
    levels: Tensor
    taken: Tensor
    n_cells: int


def _windows(a: Any, k: int) -> list[Any]:
    n = a.size - 2 * k - 1
    before, start, end, after = a[:n], a[k : k + n], a[k + 1 : k + 1 + n], a[2 * k + 1 :]
    return [end - before, after - start, end - start]


@lru_cache(maxsize=64)
def _places(n: int, levels: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Places:
    at_levels = bandwidth.knots(max(float(n), 3.0))
    k, n_cells = bandwidth.KNOTS, at_levels.unit.size
    block = triton.next_power_of_2(n_cells + 1)

    def ranks(level: Any) -> Any:
        return np.clip(np.asarray(level) * n - 0.5, 0.0, n - 1.0)

    knots = ranks(at_levels.level[k:-k])
    p = np.array(levels)
    error = bandwidth.BRACKET * bandwidth.standard_error(p, float(n))
    three = ranks(np.stack([p - error, p, p + error], 1).ravel())
    asked = np.concatenate([np.pad(knots, (0, block - knots.size)), ranks([0.25, 0.75]), three])
    index = np.minimum(asked.astype(np.int64), n - 2)
    cell_of = np.clip(np.searchsorted(knots, np.concatenate([np.arange(n), three]), "right") - 1, 0, n_cells - 1)
    rows = [*_windows(at_levels.level, k), *_windows(at_levels.normal, k), at_levels.unit]
    cells = np.stack(
        [np.pad(row, (0, block - n_cells), constant_values=1.0) for row in rows]
        + [np.pad(at_levels.unit / at_levels.unit.sum(), (0, block - n_cells))]
    )
    tensors = (
        torch.tensor(index, dtype=torch.int32),
        torch.tensor(asked - index, dtype=dtype),
        torch.tensor(cells, dtype=dtype),
        torch.tensor(cell_of, dtype=torch.int16),
        torch.tensor(p, dtype=torch.float64),
        torch.tensor(np.ceil(p * n) - 1.0, dtype=torch.int32),
    )
    index, fraction, windows, cell, level, taken = (t.to(device) for t in tensors)
    return Places(index, fraction, windows, cell, level, taken, n_cells)


def _sort_rows(x: Tensor, out: Tensor, status: Tensor) -> None:
    """By one warp each, or two for long ones: exchanges between warps are slow."""
    together = aligned(x, x.shape[1])
    block = max(32 * together, triton.next_power_of_2(x.shape[1]))
    n_warps = 1 if block <= 2048 else 2
    order = _order(block, together, n_warps)
    blocks = {"BLOCK": block, "N_BITS": block.bit_length() - 1, "ALIGN": together, "ORDER": order}
    sorted_rows[(len(x),)](x, out, status, x.shape[1], num_warps=n_warps, **blocks)


def short(x: Tensor, levels: Sequence[float]) -> tuple[Tensor, None]:
    """Quantiles by the rule of rows that are sorted on the chip."""
    rows, n = x.shape
    F, dtype, tolerance = precision(x, None)
    places = _places(n, tuple(levels), dtype, x.device)
    cells = places.cells.shape[1]
    held = torch.empty((min(rows, AT_ONCE), n), dtype=dtype, device=x.device)
    scratch = torch.empty((len(held), 3 * cells), dtype=dtype, device=x.device)
    out = torch.empty((rows, len(levels)), dtype=torch.float64, device=x.device)
    status = torch.empty(rows, dtype=torch.int32, device=x.device)
    for first in range(0, rows, AT_ONCE):
        part = slice(first, first + AT_ONCE)
        if dtype == torch.float32:
            _sort_rows(x[part], held, status[part])
        else:  # minima and maxima of float64 are slow
            held = x[part].sort(1).values
            status[part] = torch.where(held.isnan().any(1), MISSING, torch.where(held.isinf().any(1), INFINITE, FINE))
        least = bandwidth.LEAST_WIDTH if dtype == torch.float64 else 0.0  # float32 has nothing as small
        blocks = {"KNOTS": bandwidth.KNOTS, "BLOCK": triton.next_power_of_2(n), "CELLS": cells}
        given = (held, out[part], status[part], scratch, *places[:-1], n, places.n_cells, len(levels), tolerance)
        short_rows[(len(x[part]),)](
            *given, LEAST_WIDTH=least, FLOOR=floor(bandwidth.SATURATION), F=F, num_warps=2, **blocks
        )
    return out, None


class Near(NamedTuple):
    """Cells of the map near a level of a long row, and pivots of a subsample that bound them."""

    first: int
    last: int
    n_sub: int
    low: int  # pivots; -1 and n_sub for none
    high: int


def cells_near(n: int, p: float, n_sub: int) -> Near:
    """Cells whose errors may affect the quantile at level p, and pivots 4 standard errors beyond them."""
    at_levels = bandwidth.knots(float(n))
    first, last = bandwidth.near(float(n), p)
    u, v = at_levels.level[first], at_levels.level[last + 2 * bandwidth.KNOTS]
    low = int(u * n_sub - 4.0 * math.sqrt(u * (1.0 - u) * n_sub) - 2.0) if first > 0 else -1
    high = int(v * n_sub + 4.0 * math.sqrt(v * (1.0 - v) * n_sub) + 2.0) + 1 if last < at_levels.unit.size else n_sub
    return Near(first, last, n_sub, max(low, -1), min(high, n_sub))


def long(x: Tensor, p: float) -> tuple[Tensor, Tensor]:
    """Quantiles by the rule of long rows, from what is near the level; where that fails, rows are sorted as a whole."""
    rows, n = x.shape
    n_sub = min(int(n**0.75), 4096 if rows >= MANY_ROWS else 2**20)
    near = cells_near(n, p, n_sub)
    fraction = (min(near.high, n_sub) - max(near.low, 0)) / n_sub
    if fraction > 0.5:
        return from_sorted(x, p, near)
    pivots = _sorted_values(x[:, :: n // n_sub][:, :n_sub].contiguous())
    slots = 64 if rows < MANY_ROWS and n >= 2**22 else 1
    spread = n * math.sqrt(fraction * (1.0 - fraction) / n_sub)
    room = int(fraction * n + 3.75 * spread) // slots // 4 * 4 + 4  # too little for one row in 10,000
    room += (slots > 1) * 4 * ERRORS_AT_ONCE  # sorted errors come by blocks, others by chance
    kept = torch.full((rows, slots * room), torch.inf, dtype=x.dtype, device=x.device)
    counts = torch.zeros((rows, slots, 4), dtype=torch.int64, device=x.device)
    length = triton.cdiv(max(n // 65536, 8192), 8192) * 8192
    given = (x, pivots, kept, counts, n, length, room, n_sub, near.low, near.high)
    how = {"SLOTS": slots, "BLOCK": ERRORS_AT_ONCE, "ALIGN": aligned(x, n), "num_warps": 1}
    gathered[(triton.cdiv(n, length), rows)](*given, **how)
    return _through_map(_sorted_values(kept), counts, n, p, near)


def _sorted_values(x: Tensor) -> Tensor:
    """Rows without NaN in rising order."""
    n = x.shape[1]
    if x.dtype != torch.float32 or n > ON_CHIP or len(x) < MANY_ROWS:
        return x.sort(1).values
    out = torch.empty_like(x)
    _sort_rows(x, out, torch.empty(len(x), dtype=torch.int32, device=x.device))
    return out


def from_sorted(x: Tensor, p: float, near: Near) -> tuple[Tensor, Tensor]:
    rows, n = x.shape
    level = bandwidth.knots(float(n)).level
    first = max(int(level[near.first] * n - 2.0), 0)
    last = min(int(level[near.last + 2 * bandwidth.KNOTS] * n + 3.0), n)
    counts = torch.zeros((rows, 1, 4), dtype=torch.int64, device=x.device)
    counts[..., 0], counts[..., 1] = first, last - first
    counts[:, 0, 2] = (~x.isfinite()).any(1)
    return _through_map(x.sort(1).values[:, first:last].contiguous(), counts, n, p, near)


class NearPlaces(NamedTuple):
    """Tables by which `near_rows` finds the errors around each level."""

    ranks: Tensor
    cells: Tensor
    numbers: Tensor
    origin: int


@lru_cache(maxsize=64)
def _near_places(n: int, p: float, near: Near, dtype: torch.dtype, device: torch.device) -> NearPlaces:
    at_levels, k = bandwidth.knots(float(n)), bandwidth.KNOTS
    n_cells = near.last - near.first
    cells = triton.next_power_of_2(max(n_cells, 2 * k + 1) + 1)
    level = at_levels.level[near.first : near.last + 2 * k + 1]
    error = bandwidth.BRACKET * bandwidth.standard_error(p, float(n))
    ranks = np.zeros(2 * cells + 3)
    ranks[: level.size], ranks[2 * cells :] = level, (p - error, p, p + error)
    ranks = np.clip(ranks * n - 0.5, 0.0, n - 1.0)
    origin = int(np.clip(np.searchsorted(ranks[k : k + n_cells], ranks[2 * cells + 1], "right") - 1, 0, n_cells - 1))
    tables = np.stack(
        [
            np.pad(a, (0, cells - n_cells), constant_values=1.0)
            for a in [*_windows(level, k), at_levels.unit[near.first : near.last]]
        ]
    )
    h = bandwidth.large_resolution(float(n))
    return NearPlaces(
        torch.tensor(ranks, device=device),
        torch.tensor(tables, dtype=dtype, device=device),
        torch.tensor([float(n), h, bandwidth.shrunk(p, h)], dtype=torch.float64, device=device),
        origin,
    )


def _through_map(band: Tensor, counts: Tensor, n: int, p: float, near: Near) -> tuple[Tensor, Tensor]:
    """Quantiles from sorted rows of errors near the level, and how many there are below and within, by slots."""
    F, dtype, tolerance = precision(band, None)
    rows, length = band.shape
    slots = counts.shape[1]
    tables = _near_places(n, p, near, dtype, band.device)
    cells = tables.cells.shape[1]
    out = torch.empty(rows, dtype=torch.float64, device=band.device)
    status = torch.empty(rows, dtype=torch.int32, device=band.device)
    scratch = torch.empty((rows, 4 * cells), dtype=dtype, device=band.device)
    positions = torch.empty((rows, length), dtype=dtype, device=band.device)
    given = (band, positions, counts, out, status, scratch, tables.ranks, tables.cells)
    numbers = (length // slots, near.last - near.first, tables.origin, tables.numbers, tolerance)
    n_warps = 8 if rows >= MANY_ROWS else 32
    blocks = {"KNOTS": bandwidth.KNOTS, "SLOTS": slots, "BLOCK": 256 * n_warps, "CELLS": cells}
    end = bandwidth.SATURATION
    near_rows[(rows,)](*given, *numbers, END=end, FLOOR=floor(end), F=F, num_warps=n_warps, **blocks)
    return out, status


def counted(x: Tensor, counts: Tensor, levels: list[float]) -> tuple[Tensor, Tensor]:
    """Quantiles by the rule of rows with counts, whose sums decide how long their maps are."""
    out = torch.empty((len(x), len(levels)), dtype=torch.float64, device=x.device)
    status = torch.zeros(len(x), dtype=torch.int32, device=x.device)
    held = counts > 0.0
    is_missing = (x.isnan() & held).any(1)
    is_infinite = (x.isinf() & held).any(1)
    status[is_infinite] = INFINITE
    status[is_missing] = MISSING
    x = torch.where(status[:, None] > 0, 0.0, x.double())
    high = torch.where(held, x, -torch.inf).amax(1, keepdim=True)
    key, order = torch.where(held, x, torch.inf).sort(dim=1, stable=True)
    x, counts = torch.where(held, x, high).gather(1, order), _even(key, counts.gather(1, order))
    totals = counts.sum(1)
    p = torch.tensor(levels, dtype=torch.float64, device=x.device)
    for m in totals.unique():
        i = (totals == m).nonzero().flatten()
        out[i] = _counted_equally(x[i], counts[i], p, float(m))
    out[is_missing] = torch.nan
    return out, status


def _even(x: Tensor, counts: Tensor) -> Tensor:
    """Counts of sorted rows; see `reference.even`."""
    start, stop = torch.searchsorted(x, x), torch.searchsorted(x, x, right=True)
    total = torch.nn.functional.pad(counts.cumsum(1), (1, 0))
    mean = (total.gather(1, stop) - total.gather(1, start)) / (stop - start)
    return torch.where(stop - start > 1, mean, counts)


def _counted_equally(x: Tensor, counts: Tensor, p: Tensor, m: float) -> Tensor:
    """Sorted rows with counts of one sum."""
    error = bandwidth.BRACKET * bandwidth.standard_error(p, m)
    low, here, high = (hazen(x, counts, level) for level in (p - error, p, p + error))
    if m < 3.0 or x.shape[1] < 2:
        return torch.as_tensor(here)
    maps = fit_maps(x, counts, m)
    h = maps.h if isinstance(maps.h, Tensor) else torch.full_like(low[:, :1], maps.h)
    positions = maps.position(x) / h
    sought = bandwidth.shrunk(p, h)
    t, _ = fixed(positions.contiguous(), counts, sought.contiguous(), 1.0, bandwidth.SATURATION)
    t_low, t_here, t_high = (maps.position(a) / h for a in (low, here, high))
    plain = activation(t_here[..., None] - positions[:, None], bandwidth.SATURATION)[0] * counts[:, None]
    is_flat = (plain.sum(2) / m - sought).abs() <= 1e-15
    t = torch.where(is_flat, t_here, t.maximum(t_low).minimum(t_high))
    j = (torch.searchsorted(maps.at / h, t, right=True) - 1).clamp(0, maps.slopes.shape[1] - 1)
    w = maps.knots.gather(1, j) + (t * h - maps.at.gather(1, j)) / maps.slopes.gather(1, j)
    return torch.where(maps.is_tied, here, w.maximum(low).minimum(high))
