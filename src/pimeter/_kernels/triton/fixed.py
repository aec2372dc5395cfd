"""Roots for a bandwidth of the caller's on a GPU.

Rows of up to ON_CHIP errors are read once, by one program each. Longer ones start from the solution of a strided
subsample, so that two or three reads suffice; one program a row, or, for a few long rows, many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl

from pimeter._kernels.triton.root import (
    MANY_ROWS,
    aligned,
    floor,
    loaded,
    next_try,
    numbers,
    precision,
    root,
    summed_outputs,
)

if TYPE_CHECKING:
    from torch import Tensor

ON_CHIP = 8192  # errors of a row that one program holds
SAMPLE = 4096  # errors from which a long row starts
MAX_PASSES = 64  # over a few long rows, each of several programs


@triton.jit
def _bisected(x, counts, rank, WHOLE: tl.constexpr, SIGN: tl.constexpr, REST: tl.constexpr, END: tl.constexpr):
    low = (x.to(WHOLE, bitcast=True) * 0).max(0) - END - 1
    high = (low ^ low) + END
    while low < high:
        middle = (low & high) + ((low ^ high) >> 1)
        value = (middle ^ ((middle >> SIGN) & REST)).to(x.dtype, bitcast=True)
        number = tl.sum(tl.where(x <= value, counts, 0.0), 0).to(tl.float64)
        high = tl.where(number >= rank, middle, high)
        low = tl.where(number >= rank, low, middle + 1)
    return (low ^ ((low >> SIGN) & REST)).to(x.dtype, bitcast=True)


@triton.jit
def _selected(x, counts, rank):
    """The smallest error up to which so many are counted, by bisection of the floats themselves, as integers."""
    if x.dtype == tl.float64:
        found = _bisected(x, counts, rank, tl.int64, 63, 0x7FFFFFFFFFFFFFFF, 0x7FF0000000000000)
    else:
        found = _bisected(x, counts, rank, tl.int32, 31, 0x7FFFFFFF, 0x7F800000)
    return found


@triton.jit
def fixed_rows(
    x_ptr,
    counts_ptr,
    m_ptr,
    levels_ptr,
    out_ptr,
    n,
    n_levels,
    own_levels,
    own_m,
    width_ptr,
    tolerance,
    FLOOR: tl.constexpr,
    BLOCK: tl.constexpr,
    FEW: tl.constexpr,
    ALIGN: tl.constexpr,
    COUNTED: tl.constexpr,
    F: tl.constexpr,
):
    """Roots of rows that fit on the chip, for a given bandwidth; the first try is the root of a few of the errors."""
    row = tl.program_id(0).to(tl.int64)
    x, begin, held = loaded(x_ptr, row, n, BLOCK, ALIGN, F)
    h = tl.load(width_ptr).to(F)
    counts = x
    if COUNTED:
        counts = tl.load(counts_ptr + begin + tl.arange(0, BLOCK), mask=held, other=0.0).to(F)
        held = held & (counts > 0.0)
        x = tl.where(held, x, float("inf"))
    low = tl.min(x, 0)
    high = tl.max(tl.where(held, x, -float("inf")), 0)
    is_infinite = (low == -float("inf")) | (high == float("inf"))
    is_missing = tl.sum((x != x).to(tl.int32), 0) > 0
    m = tl.load(m_ptr + row * own_m)
    max_steps = tl.where(is_missing | is_infinite, 0, 200)
    for k in range(n_levels):
        p = tl.load(levels_ptr + row * own_levels + k)
        start = 0.5 * low + 0.5 * high
        if FEW > 0:
            few = tl.load(x_ptr + begin + tl.arange(0, FEW) * n // FEW).to(F)
            size = (low * 0.0 + FEW).to(tl.float64)
            start = tl.sum(few, 0) / FEW
            start, _stop = root(
                few, few, 0.0, size, h, FLOOR, p, start, low, high, 0.1, tl.minimum(max_steps, 8), False
            )
        t, stop = root(x, counts, 0.0, m, h, FLOOR, p, start, low, high, tolerance, max_steps, COUNTED)
        if stop == 1:
            before = tl.max(tl.where(held & (x <= t), x, -float("inf")), 0)
            after = tl.min(tl.where(held & (x > t), x, float("inf")), 0)
            t = 0.5 * before + 0.5 * after
        if is_infinite:
            if COUNTED:
                t = _selected(x, counts, p * m)
            else:
                t = _selected(x, held.to(F), p * m)
        tl.store(out_ptr + row * n_levels + k, tl.where(is_missing, float("nan"), t.to(tl.float64)))


@triton.jit
def _first_try(x_ptr, n, p, h, FLOOR: tl.constexpr, SIZE: tl.constexpr, F: tl.constexpr):
    """The root of a strided subsample, or some value of it."""
    j = tl.arange(0, SIZE).to(tl.int64) * n // SIZE
    few = tl.load(x_ptr + j).to(F)
    is_fine = tl.abs(few) < float("inf")
    size = tl.sum(is_fine.to(tl.float64), 0)
    low, high = tl.min(tl.where(is_fine, few, float("inf")), 0), tl.max(tl.where(is_fine, few, -float("inf")), 0)
    few = tl.where(is_fine, few, float("inf"))
    start = tl.where(size > 0.0, 0.5 * low + 0.5 * high, 0.0)
    max_steps = tl.where(size > 0.0, 40, 0)
    start, _stop = root(few, few, 0.0, size, h, FLOOR, p, start, low, high, 1e-2, max_steps, False)
    return start


@triton.jit
def _oddness(tails, low, high):
    return tl.where(tails != tails, 1, tl.where((low == -float("inf")) | (high == float("inf")), 2, 0))


@triton.jit
def streamed_rows(
    x_ptr,
    counts_ptr,
    m_ptr,
    levels_ptr,
    out_ptr,
    status_ptr,
    n,
    n_levels,
    own_levels,
    own_m,
    width_ptr,
    tolerance,
    FLOOR: tl.constexpr,
    BLOCK: tl.constexpr,
    SIZE: tl.constexpr,
    COUNTED: tl.constexpr,
    F: tl.constexpr,
):
    """Roots of long rows, one program each, for a given bandwidth."""
    row = tl.program_id(0).to(tl.int64)
    level = tl.program_id(1)
    x_ptr += row * n
    counts_ptr += row * n
    m = tl.load(m_ptr + row * own_m)
    p = tl.load(levels_ptr + row * own_levels + level)
    h = tl.load(width_ptr).to(F)
    t = _first_try(x_ptr, n, p, h, FLOOR, SIZE, F)
    number, tails, rise, low, high, before, after = summed_outputs(
        x_ptr, counts_ptr, 0, n, t, h, FLOOR, BLOCK, COUNTED, True
    )
    status = _oddness(tails, low, high)
    t, a, b, stop = next_try(
        t, t - float("inf"), t + float("inf"), number, tails, rise.to(F), m, h, p, low, high, tolerance
    )
    steps = 0
    while (stop == 0) & (status == 0) & (steps < 200):
        number, tails, rise, _l, _h, _b, _a = summed_outputs(
            x_ptr, counts_ptr, 0, n, t, h, FLOOR, BLOCK, COUNTED, False
        )
        t, a, b, stop = next_try(t, a, b, number, tails, rise.to(F), m, h, p, low, high, tolerance)
        steps += 1
    if (stop == 1) & (status == 0):
        number, tails, rise, low, high, before, after = summed_outputs(
            x_ptr, counts_ptr, 0, n, t, h, FLOOR, BLOCK, COUNTED, True
        )
        t = 0.5 * before + 0.5 * after
    tl.store(status_ptr + row, status)
    tl.store(out_ptr + row * n_levels + level, tl.where(status == 1, float("nan"), t.to(tl.float64)))


@triton.jit
def first_tries(
    x_ptr,
    levels_ptr,
    state_ptr,
    n,
    n_levels,
    own_levels,
    width_ptr,
    FLOOR: tl.constexpr,
    SIZE: tl.constexpr,
    F: tl.constexpr,
):
    """Where passes over long rows of several programs each start: t, its bracket, no reason to stop yet, extremes."""
    row = tl.program_id(0).to(tl.int64)
    level = tl.program_id(1)
    p = tl.load(levels_ptr + row * own_levels + level)
    t = _first_try(x_ptr + row * n, n, p, tl.load(width_ptr).to(F), FLOOR, SIZE, F).to(tl.float64)
    state_ptr += 6 * (row * n_levels + level)
    tl.store(state_ptr, t)
    tl.store(state_ptr + 1, -float("inf"))
    tl.store(state_ptr + 2, float("inf"))
    tl.store(state_ptr + 3, 0.0)


@triton.jit
def partial_outputs(
    x_ptr,
    counts_ptr,
    state_ptr,
    parts_ptr,
    n,
    n_levels,
    width_ptr,
    length,
    FLOOR: tl.constexpr,
    BLOCK: tl.constexpr,
    COUNTED: tl.constexpr,
    F: tl.constexpr,
    FULL: tl.constexpr,
    STOP: tl.constexpr,
):
    """One pass over a part of a row, if its state is still STOP."""
    part = tl.program_id(0).to(tl.int64)
    row = tl.program_id(1).to(tl.int64)
    at = row * n_levels + tl.program_id(2)
    if tl.load(state_ptr + 6 * at + 3) == STOP:
        t = tl.load(state_ptr + 6 * at).to(F)
        sums = summed_outputs(
            x_ptr + row * n,
            counts_ptr + row * n,
            part * length,
            tl.minimum((part + 1) * length, n),
            t,
            tl.load(width_ptr).to(F),
            FLOOR,
            BLOCK,
            COUNTED,
            FULL,
        )
        parts_ptr += 7 * (at * tl.num_programs(0) + part)
        for k in tl.static_range(7):
            tl.store(parts_ptr + k, sums[k].to(tl.float64))


@triton.jit
def next_tries(
    state_ptr,
    parts_ptr,
    m_ptr,
    levels_ptr,
    out_ptr,
    status_ptr,
    n_levels,
    own_levels,
    own_m,
    n_parts,
    width_ptr,
    tolerance,
    PARTS: tl.constexpr,
    FULL: tl.constexpr,
    STOP: tl.constexpr,
):
    """Adds up a pass, and makes a step."""
    row = tl.program_id(0).to(tl.int64)
    level = tl.program_id(1)
    at = row * n_levels + level
    state_ptr += 6 * at
    if tl.load(state_ptr + 3) == STOP:
        i = tl.arange(0, PARTS)
        parts_ptr += 7 * at * n_parts
        held = i < n_parts
        number = tl.sum(tl.load(parts_ptr + 7 * i, mask=held, other=0.0), 0)
        tails = tl.sum(tl.load(parts_ptr + 7 * i + 1, mask=held, other=0.0), 0)
        rise = tl.sum(tl.load(parts_ptr + 7 * i + 2, mask=held, other=0.0), 0)
        if FULL:
            low = tl.min(tl.load(parts_ptr + 7 * i + 3, mask=held, other=float("inf")), 0)
            high = tl.max(tl.load(parts_ptr + 7 * i + 4, mask=held, other=-float("inf")), 0)
            tl.store(state_ptr + 4, low)
            tl.store(state_ptr + 5, high)
        else:
            low = tl.load(state_ptr + 4)
            high = tl.load(state_ptr + 5)
        t = tl.load(state_ptr)
        if STOP == 1:
            before = tl.max(tl.load(parts_ptr + 7 * i + 5, mask=held, other=-float("inf")), 0)
            after = tl.min(tl.load(parts_ptr + 7 * i + 6, mask=held, other=float("inf")), 0)
            tl.store(out_ptr + at, 0.5 * before + 0.5 * after)
        else:
            a = tl.load(state_ptr + 1)
            b = tl.load(state_ptr + 2)
            p = tl.load(levels_ptr + row * own_levels + level)
            t, a, b, stop = next_try(
                t, a, b, number, tails, rise, tl.load(m_ptr + row * own_m), tl.load(width_ptr), p, low, high, tolerance
            )
            status = _oddness(tails, low, high)
            tl.store(state_ptr, t)
            tl.store(state_ptr + 1, a)
            tl.store(state_ptr + 2, b)
            tl.store(state_ptr + 3, tl.where(status > 0, 2.0, stop.to(tl.float64)))
            tl.store(status_ptr + row, tl.where((status == 0) & (stop == 0), 3, status))
            tl.store(out_ptr + at, tl.where(status == 1, float("nan"), t))


def fixed(x: Tensor, counts: Tensor | None, levels: Tensor, h: float, end: float) -> tuple[Tensor, Tensor | None]:
    """Roots for a given bandwidth, kept in the range of each row; levels for all rows, or for each its own."""
    rows, n = x.shape
    n_levels, own = levels.shape[-1], levels.shape[-1] if levels.ndim > 1 else 0
    m, own_m = (numbers((float(n),), x.device), 0) if counts is None else (counts.sum(1), 1)
    out = torch.empty((rows, n_levels), dtype=torch.float64, device=x.device)
    width = numbers((h,), x.device)
    F, dtype, tolerance = precision(x, counts)
    c = x if counts is None else counts
    common = {"FLOOR": floor(end), "F": F, "COUNTED": counts is not None}
    given, settings = (x, c, m, levels, out), (n, n_levels, own, own_m, width, tolerance)
    if n <= ON_CHIP:
        block = triton.next_power_of_2(n)
        few = 128 if n >= 512 and counts is None else 0
        warps = {"num_warps": max(1, min(16, block // 1024)), "maxnreg": 96 if dtype == torch.float32 else 168}
        fixed_rows[(rows,)](*given, *settings, BLOCK=block, ALIGN=aligned(x, n), FEW=few, **warps, **common)
        return out, None
    status = torch.zeros(rows, dtype=torch.int32, device=x.device)
    if rows >= MANY_ROWS:
        streamed_rows[(rows, n_levels)](*given, status, *settings, BLOCK=8192, SIZE=SAMPLE, num_warps=16, **common)
    else:
        n_parts = min(1024, triton.cdiv(n, 16384), max(1, 2048 // rows))
        length = triton.cdiv(triton.cdiv(n, n_parts), 4096) * 4096
        n_parts = triton.cdiv(n, length)
        state = torch.empty((rows, n_levels, 6), dtype=torch.float64, device=x.device)
        parts = torch.empty((rows, n_levels, n_parts, 7), dtype=torch.float64, device=x.device)
        first_tries[(rows, n_levels)](
            x, levels, state, n, n_levels, own, width, FLOOR=floor(end), F=F, SIZE=2 * SAMPLE, num_warps=8
        )
        for k in range(MAX_PASSES + 1):
            which = {"FULL": k in {0, MAX_PASSES}, "STOP": int(k == MAX_PASSES)}
            partial_outputs[(n_parts, rows, n_levels)](
                x, c, state, parts, n, n_levels, width, length, BLOCK=4096, num_warps=8, **which, **common
            )
            held = (state, parts, m, levels, out, status)
            next_tries[(rows, n_levels)](
                *held, n_levels, own, own_m, n_parts, width, tolerance, PARTS=triton.next_power_of_2(n_parts), **which
            )
    return out, status
