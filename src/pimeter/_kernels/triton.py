"""Quantiles of rows on a GPU: passes over the errors are fused, and rows that fit stay on the chip for all of them.

With a bandwidth of the caller's (`fixed`): rows of up to ON_CHIP errors are read once, by one program each. Longer ones
start from the solution of a strided subsample, so that two or three reads suffice; one program a row, or, for a few
long rows, many. By the rule: up to LARGE errors (`short`) are sorted on the chip, and ruler and root follow in the
next program. Of longer rows, pivots from a subsample bound what is near the level; that is gathered in one read,
sorted, and given to the same ruler.

Nothing waits for the GPU within a loop. In the end rows that were marked (infinities; too narrow bounds) are solved
another way. Sums over many errors count what is surely below and add the tails of the sigmoids, so that float32 does.
"""

from __future__ import annotations

import math
import os
from functools import lru_cache
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
import triton
import triton.language as tl
from torch import Tensor

from pimeter._kernels.torch import activation, hazen

if TYPE_CHECKING:
    from collections.abc import Sequence

ON_CHIP = 8192  # errors of a row that one program holds
SAMPLE = 4096  # errors from which a long row starts
NEAR = 3e-4  # of h: Newton's last step with float32
MAX_PASSES = 64  # over a few long rows, each of several programs
AT_ONCE = 32768  # rows that are sorted before their quantiles are found
MANY_ROWS = 128  # from here on one program a row is enough to keep the GPU busy
FINE, MISSING, INFINITE, NARROW = 0, 1, 2, 3
LOG2_E = tl.constexpr(math.log2(math.e))
FAST = tl.constexpr(torch.version.cuda is not None and os.environ.get("TRITON_INTERPRET") != "1")  # NVIDIA's own


@triton.jit
def _power(a, exponent):
    return tl.exp2(exponent * tl.log2(a))


@triton.jit
def _absolute(a):
    return tl.abs(a)


# The rule's formulas, which `load_rule` compiles from their very own lines.
rule_widths: Any
rule_both: Any
rule_strangeness: Any
rule_roughness: Any
rule_resolution: Any
rule_slope: Any
rule_shrunk: Any


@lru_cache(maxsize=1)
def load_rule(rule: Any) -> None:
    """Make the formulas of a module like `pimeter.bandwidth` known to the functions below."""
    names: dict[str, Any] = {
        "tl": tl,
        "abs": _absolute,
        "Numbers": tl.tensor,
        "Windows": tl.tensor,
        "__name__": rule.__name__,
    }
    for name, value in vars(rule).items():
        if isinstance(value, int | float):
            names[name] = tl.constexpr(value)
        elif isinstance(value, FunctionType) and value.__module__ == rule.__name__:
            function = FunctionType(value.__code__, names, name, value.__defaults__)
            function.__qualname__ = name
            names[name] = triton.jit(function)
    names["power"] = _power
    names["LEAST"] = tl.constexpr(1e-30)  # float32 has nothing as small as the rule's
    globals().update({f"rule_{name}": function for name, function in names.items()})


@triton.jit
def _add(a0, a1, a2, b0, b1, b2):
    return a0 + b0, a1 + b1, a2 + b2


@triton.jit
def _exp2(x):
    if FAST and x.dtype == tl.float32:
        y = tl.inline_asm_elementwise("ex2.approx.ftz.f32 $0, $1;", "=r,r", [x], tl.float32, is_pure=True, pack=1)
    else:
        y = tl.exp2(x)
    return y


@triton.jit
def _inverse(x):
    if FAST and x.dtype == tl.float32:
        y = tl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=r,r", [x], tl.float32, is_pure=True, pack=1)
    else:
        y = 1.0 / x
    return y


@triton.jit
def _activations(z, FLOOR: tl.constexpr):
    """1 for errors below, what the sigmoid takes from it or adds to errors above, and its derivative, for z log2(e).

    Both tails end where they have fallen to FLOOR; they are still to be stretched by 1/(1 - 2 FLOOR).
    """
    e = _exp2(-tl.abs(z))
    s = _inverse(1.0 + e)
    tail = e * s
    if FLOOR > 1e-9:
        tail = tl.maximum(tail - FLOOR, 0.0)
    is_below = z >= 0.0
    return is_below.to(z.dtype), tl.where(is_below, -tail, tail), tail * s


@triton.jit
def _log1p(u):
    """log(1 + u), also for a tiny u: between distant errors shares differ by next to nothing."""
    return tl.where(tl.abs(u) < 1e-3, u * (1.0 - u * (1.0 / 2.0 - u * (1.0 / 3.0 - u * 0.25))), tl.log(1.0 + u))


@triton.jit
def _next(t, a, b, count, tails, rise, m, h, p, low, high, tolerance):
    """One step of Newton's method on the logit scale, or of bisection: the next t and its bracket, and why to stop.

    Stops: 1 at a plateau, 2 at the root, 0 not yet. Counts and level are float64, all else as wide as t.
    """
    one_error = 1.0 / m
    excess = (((count - p * m) + tails.to(tl.float64)) * one_error).to(t.dtype)
    level = p.to(t.dtype)
    gain, loss = excess * (1.0 / level), excess * (1.0 / (1.0 - level))
    is_steep = (gain > -1.0) & (loss < 1.0) & (rise > 0.0)
    logit = _log1p(tl.where(is_steep, gain, 0.0)) - _log1p(tl.where(is_steep, -loss, 0.0))
    slope = tl.where(is_steep, rise, 1.0) * one_error.to(t.dtype)
    step = logit * (level + excess) * (1.0 - level - excess) * h / slope
    step = tl.where(is_steep, step, tl.where(excess < 0.0, -float("inf"), float("inf")))
    new = tl.minimum(tl.maximum(t - step, low), high)
    is_hit = tl.abs(excess) <= 1e-15
    is_flat = is_hit & (rise <= 1e-12 * m)
    is_end = ((t == low) & (excess >= 0.0)) | ((t == high) & (excess <= 0.0))
    is_done = (tl.abs(step) <= tolerance * h + 1e-7 * tolerance * tl.abs(t)) | is_end
    b = tl.where(excess > 0.0, t, b)
    a = tl.where(excess > 0.0, a, t)
    middle = 0.5 * tl.maximum(a, low) + 0.5 * tl.minimum(b, high)
    next_t = tl.where(is_done | ((a < new) & (new < b)), new, middle)
    stop = tl.where(is_flat, 1, tl.where(is_hit | is_done | (next_t == t), 2, 0))
    return tl.where(is_hit, t, next_t), a, b, stop


@triton.jit
def _root(
    x,
    counts,
    below,
    m,
    h,
    FLOOR: tl.constexpr,
    p,
    start,
    low,
    high,
    tolerance,
    max_steps,
    COUNTED: tl.constexpr,
):
    """Root of the smoothed share of errors on the chip, and why it is one; errors at infinity are felt nowhere."""
    sharpness = LOG2_E / h
    scaled = x * sharpness
    t = start
    a = t - float("inf")
    b = t + float("inf")
    stop = 0
    steps = 0
    while (stop == 0) & (steps < max_steps):
        number, tails, rise = _activations(t * sharpness - scaled, FLOOR)
        if COUNTED:
            number, tails, rise = number * counts, tails * counts, rise * counts
        number, tails, rise = tl.reduce((number, tails, rise), 0, _add)
        tails *= 1.0 / (1.0 - 2.0 * FLOOR)
        rise *= 1.0 / (1.0 - 2.0 * FLOOR)
        t, a, b, stop = _next(t, a, b, below + number.to(tl.float64), tails, rise, m, h, p, low, high, tolerance)
        steps += 1
    return t, stop


@triton.jit
def _selected(x, counts, rank):
    """The smallest error up to which so many are counted, by bisection of the floats themselves, as whole numbers."""
    if x.dtype == tl.float64:
        low = (x.to(tl.int64, bitcast=True) * 0).max(0) + -0x7FF0000000000001
        high = (low ^ low) + 0x7FF0000000000000
        while low < high:
            middle = (low & high) + ((low ^ high) >> 1)
            value = (middle ^ ((middle >> 63) & 0x7FFFFFFFFFFFFFFF)).to(tl.float64, bitcast=True)
            number = tl.sum(tl.where(x <= value, counts, 0.0), 0).to(tl.float64)
            high = tl.where(number >= rank, middle, high)
            low = tl.where(number >= rank, low, middle + 1)
        found = (low ^ ((low >> 63) & 0x7FFFFFFFFFFFFFFF)).to(tl.float64, bitcast=True)
    else:
        low = (x.to(tl.int32, bitcast=True) * 0).max(0) + -0x7F800001
        high = (low ^ low) + 0x7F800000
        while low < high:
            middle = (low & high) + ((low ^ high) >> 1)
            value = (middle ^ ((middle >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)
            number = tl.sum(tl.where(x <= value, counts, 0.0), 0).to(tl.float64)
            high = tl.where(number >= rank, middle, high)
            low = tl.where(number >= rank, low, middle + 1)
        found = (low ^ ((low >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)
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
    begin = tl.multiple_of(row * n, ALIGN)
    i = tl.arange(0, BLOCK)
    held = i // ALIGN < n // ALIGN
    x = tl.load(x_ptr + begin + i, mask=held, other=float("inf")).to(F)
    h = tl.load(width_ptr).to(F)
    counts = x
    if COUNTED:
        counts = tl.load(counts_ptr + begin + i, mask=held, other=0.0).to(F)
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
            start, _stop = _root(
                few, few, 0.0, size, h, FLOOR, p, start, low, high, 0.1, tl.minimum(max_steps, 8), False
            )
        t, stop = _root(x, counts, 0.0, m, h, FLOOR, p, start, low, high, tolerance, max_steps, COUNTED)
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
def _share(
    x_ptr,
    counts_ptr,
    first,
    last,
    t,
    h,
    FLOOR: tl.constexpr,
    BLOCK: tl.constexpr,
    COUNTED: tl.constexpr,
    FULL: tl.constexpr,
):
    """One read of the errors [first, last): number below t, tails, derivative; if FULL, ends and those next to t."""
    i = tl.arange(0, BLOCK)
    zero = tl.zeros([BLOCK], t.dtype)
    number, tails, rise = zero, zero, zero
    low, high = zero + float("inf"), zero - float("inf")
    before, after = high, low
    sharpness = LOG2_E / h
    center = t * sharpness
    for start in range(first, last, BLOCK):
        held = start + i < last
        x = tl.load(x_ptr + start + i, mask=held, other=float("inf")).to(t.dtype)
        one, tail, slope = _activations(center - x * sharpness, FLOOR)
        if COUNTED:
            counts = tl.load(counts_ptr + start + i, mask=held, other=0.0).to(t.dtype)
            held = held & (counts > 0.0)
            one, tail, slope = one * counts, tail * counts, slope * counts
        number += one
        tails += tail  # NaN if there is one
        rise += slope
        if FULL:
            low = tl.minimum(low, tl.where(held, x, float("inf")))
            high = tl.maximum(high, tl.where(held, x, -float("inf")))
            before = tl.maximum(before, tl.where(held & (x <= t), x, -float("inf")))
            after = tl.minimum(after, tl.where(held & (x > t), x, float("inf")))
    stretch = 1.0 / (1.0 - 2.0 * FLOOR)
    sums = tl.reduce((number.to(tl.float64), tails.to(tl.float64), rise.to(tl.float64)), 0, _add)
    return (
        sums[0],
        sums[1] * stretch,
        sums[2] * stretch,
        tl.min(low, 0),
        tl.max(high, 0),
        tl.max(before, 0),
        tl.min(after, 0),
    )


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
    start, _stop = _root(few, few, 0.0, size, h, FLOOR, p, start, low, high, 1e-2, max_steps, False)
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
    number, tails, rise, low, high, before, after = _share(x_ptr, counts_ptr, 0, n, t, h, FLOOR, BLOCK, COUNTED, True)
    status = _oddness(tails, low, high)
    t, a, b, stop = _next(
        t, t - float("inf"), t + float("inf"), number, tails, rise.to(F), m, h, p, low, high, tolerance
    )
    steps = 0
    while (stop == 0) & (status == 0) & (steps < 200):
        number, tails, rise, _l, _h, _b, _a = _share(x_ptr, counts_ptr, 0, n, t, h, FLOOR, BLOCK, COUNTED, False)
        t, a, b, stop = _next(t, a, b, number, tails, rise.to(F), m, h, p, low, high, tolerance)
        steps += 1
    if (stop == 1) & (status == 0):
        number, tails, rise, low, high, before, after = _share(
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
    """Where passes over long rows of several programs each start: t, its bracket, no reason to stop yet, the ends."""
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
def partial_shares(
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
        sums = _share(
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
            t, a, b, stop = _next(
                t, a, b, number, tails, rise, tl.load(m_ptr + row * own_m), tl.load(width_ptr), p, low, high, tolerance
            )
            status = _oddness(tails, low, high)
            tl.store(state_ptr, t)
            tl.store(state_ptr + 1, a)
            tl.store(state_ptr + 2, b)
            tl.store(state_ptr + 3, tl.where(status > 0, 2.0, stop.to(tl.float64)))
            tl.store(status_ptr + row, tl.where((status == 0) & (stop == 0), 3, status))
            tl.store(out_ptr + at, tl.where(status == 1, float("nan"), t))


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
    x_ptr,
    out_ptr,
    status_ptr,
    n,
    BLOCK: tl.constexpr,
    N_BITS: tl.constexpr,
    ORDER: tl.constexpr,
    ALIGN: tl.constexpr,
):
    """Rows sorted on the chip as float32, and whether they hold NaN or infinities."""
    row = tl.program_id(0).to(tl.int64)
    begin = tl.multiple_of(row * n, ALIGN)
    i = tl.arange(0, BLOCK)
    held = i // ALIGN < n // ALIGN
    x = tl.load(x_ptr + begin + i, mask=held, other=float("inf")).to(tl.float32)
    n_odd = tl.sum((held & (tl.abs(x) == float("inf"))).to(tl.int32) + 4096 * (x != x).to(tl.int32), 0)
    tl.store(status_ptr + row, tl.where(n_odd >= 4096, 1, tl.where(n_odd > 0, 2, 0)))
    tl.store(out_ptr + begin + i, _sorted(x, N_BITS, ORDER), mask=held)


@triton.jit
def _hazen(sorted_ptr, origin, factor, i, share):
    """Hazen's quantiles of sorted errors, seen from an origin, times a factor."""
    before = (tl.load(sorted_ptr + i).to(share.dtype) - origin) * factor
    after = (tl.load(sorted_ptr + i + 1).to(share.dtype) - origin) * factor
    return before + share * (after - before)


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
def _positions(lengths, j, origin):
    """Where cells start on the ruler, counted from one of them: far-off errors may take much of it, and digits."""
    right = tl.where(j >= origin, lengths, 0.0)
    left = tl.where(j < origin, lengths, 0.0)
    return (tl.cumsum(right, 0) - right) - tl.cumsum(left, 0, reverse=True)


@triton.jit
def short_rows(
    sorted_ptr,
    out_ptr,
    status_ptr,
    scratch_ptr,
    index_ptr,
    share_ptr,
    cells_ptr,
    cell_of_ptr,
    levels_ptr,
    taken_ptr,
    n,
    n_cells,
    n_levels,
    tolerance,
    MARKS: tl.constexpr,
    FLOOR: tl.constexpr,
    BLOCK: tl.constexpr,
    CELLS: tl.constexpr,
    F: tl.constexpr,
):
    """Quantiles of sorted rows by the rule; see `reference.Kernel.automatic`.

    Which order statistics are asked for depends on n alone, so that the tables hold their indices: of the marks
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
    marks_ptr = scratch_ptr + row * 3 * CELLS
    slopes_ptr = marks_ptr + CELLS
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
    mark = _hazen(
        sorted_ptr,
        middle,
        scale,
        tl.load(index_ptr + j, mask=j <= n_cells, other=0),
        tl.load(share_ptr + j, mask=j <= n_cells, other=0.0),
    )
    tl.store(marks_ptr + j, mark)
    quartile_1 = _hazen(sorted_ptr, middle, scale, tl.load(index_ptr + CELLS), tl.load(share_ptr + CELLS))
    quartile_3 = _hazen(sorted_ptr, middle, scale, tl.load(index_ptr + CELLS + 1), tl.load(share_ptr + CELLS + 1))
    quartiles = (quartile_3 - quartile_1) / 1.349
    deviation = x / tl.where(quartiles > 0.0, quartiles, 1.0)
    deviation = tl.where(i < n, tl.minimum(tl.maximum(deviation, -1e15), 1e15), 0.0)
    total, square = tl.sum(deviation, 0), tl.sum(deviation * deviation, 0)
    variance = tl.maximum((square - total * total / size) / (size - 1.0), 0.0)
    spread = quartiles * tl.minimum(tl.sqrt(variance), 1.0)
    is_tied = (spread == 0.0) | (n < 3)
    spread = tl.where(is_tied, 1.0, spread)
    tl.debug_barrier()
    before = tl.load(marks_ptr + tl.maximum(j - MARKS, 0), mask=is_cell, other=0.0)
    start = tl.load(marks_ptr + j, mask=is_cell, other=0.0)
    end = tl.load(marks_ptr + j + 1, mask=is_cell, other=1.0)
    after = tl.load(marks_ptr + tl.minimum(j + 1 + MARKS, n_cells), mask=is_cell, other=1.0)
    measured = ((end - before) / spread, (after - start) / spread, (end - start) / spread)
    error = rule_widths(measured[0], measured[1], measured[2])
    strange = rule_strangeness(rule_both(measured), rule_both(normal)) * weight
    rough = rule_roughness(error, level, normal, size) * weight
    h, worth = rule_resolution(tl.sum(strange, 0), tl.sum(rough, 0), size)
    slopes = rule_slope(error, level, normal, unit, worth, size) / spread
    lengths = tl.where(is_cell, (end - start) * slopes, 0.0)
    tl.store(slopes_ptr + j, slopes)
    cell = tl.load(cell_of_ptr + i, mask=i < n, other=0).to(tl.int32)
    for k in range(n_levels):
        p = tl.load(levels_ptr + k)
        at = _positions(lengths, j, tl.load(cell_of_ptr + n + 3 * k + 1))
        tl.debug_barrier()
        tl.store(at_ptr + j, at)
        tl.debug_barrier()
        positions = tl.load(at_ptr + cell) + (x - tl.load(marks_ptr + cell)) * tl.load(slopes_ptr + cell)
        three = CELLS + 2 + 3 * k
        low = _hazen(sorted_ptr, middle, scale, tl.load(index_ptr + three), tl.load(share_ptr + three))
        here = _hazen(sorted_ptr, middle, scale, tl.load(index_ptr + three + 1), tl.load(share_ptr + three + 1))
        high = _hazen(sorted_ptr, middle, scale, tl.load(index_ptr + three + 2), tl.load(share_ptr + three + 2))
        c = tl.load(cell_of_ptr + n + 3 * k).to(tl.int32)
        t_low = tl.load(at_ptr + c) + (low - tl.load(marks_ptr + c)) * tl.load(slopes_ptr + c)
        c = tl.load(cell_of_ptr + n + 3 * k + 1).to(tl.int32)
        t_here = tl.load(at_ptr + c) + (here - tl.load(marks_ptr + c)) * tl.load(slopes_ptr + c)
        c = tl.load(cell_of_ptr + n + 3 * k + 2).to(tl.int32)
        t_high = tl.load(at_ptr + c) + (high - tl.load(marks_ptr + c)) * tl.load(slopes_ptr + c)
        sought = rule_shrunk(p, h.to(tl.float64))
        t, _stop = _root(
            positions, positions, 0.0, m, h, FLOOR, sought, t_here, t_low, t_high, tolerance, max_steps, False
        )
        c = tl.minimum(tl.maximum(tl.sum((is_cell & (at <= t)).to(tl.int32), 0) - 1, 0), n_cells - 1)
        w = tl.load(marks_ptr + c) + (t - tl.load(at_ptr + c)) / tl.load(slopes_ptr + c)
        w = tl.where(is_tied, here, tl.minimum(tl.maximum(w, low), high))
        answer = w.to(tl.float64) * factor.to(tl.float64) + middle.to(tl.float64)
        taken = tl.load(sorted_ptr + tl.load(taken_ptr + k)).to(tl.float64)  # of errors with infinities
        answer = tl.where(status == 0, answer, tl.where(status == 1, float("nan"), taken))
        tl.store(out_ptr + row * n_levels + k, answer)


@triton.jit
def gathered(
    x_ptr,
    bounds_ptr,
    kept_ptr,
    counts_ptr,
    n,
    length,
    room,
    LINES: tl.constexpr,
    BLOCK: tl.constexpr,
    ALIGN: tl.constexpr,
):
    """Keep what lies between two bounds, in any order; count what lies below and what is kept, NaN and infinities."""
    part = tl.program_id(0).to(tl.int64)
    row = tl.program_id(1).to(tl.int64)
    low = tl.load(bounds_ptr + 2 * row)
    high = tl.load(bounds_ptr + 2 * row + 1)
    i = tl.arange(0, LINES)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]  # one warp a line: none waits for another
    begin = tl.multiple_of(row * n, ALIGN)
    below = tl.zeros([LINES, BLOCK], tl.int32)
    odd = tl.zeros([LINES, BLOCK], tl.float32)
    for start in range(part * length, tl.minimum((part + 1) * length, n), LINES * BLOCK):
        held = (start + i < n) & (start + i < (part + 1) * length)
        x = tl.load(x_ptr + begin + start + i, mask=held, other=0.0)
        is_kept = held & (x >= low) & (x <= high)
        below += (held & (x < low)).to(tl.int32)
        odd += (x - x).to(tl.float32)  # NaN for NaN and infinities
        place = tl.cumsum(is_kept.to(tl.int32), 1)
        number = tl.sum(is_kept.to(tl.int32), 1)
        base = tl.atomic_add(
            counts_ptr + 4 * row + 1 + tl.zeros([LINES], tl.int32), number.to(tl.int64), mask=number > 0
        )
        place = base[:, None] + place
        tl.store(kept_ptr + row * room + place - 1, x, mask=is_kept & (place <= room))
    tl.atomic_add(counts_ptr + 4 * row, tl.sum(tl.sum(below, 1), 0).to(tl.int64))
    n_odd = tl.sum(tl.sum((odd != odd).to(tl.int32), 1), 0)
    if n_odd > 0:
        tl.atomic_add(counts_ptr + 4 * row + 2, n_odd.to(tl.int64))


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
    MARKS: tl.constexpr,
    END: tl.constexpr,
    FLOOR: tl.constexpr,
    BLOCK: tl.constexpr,
    CELLS: tl.constexpr,
    F: tl.constexpr,
):
    """One quantile of each long row by the rule, from its sorted errors near the level; see `compiled.long_sample`.

    `ranks` holds where, among all sorted errors, the marks of the cells near the level stand (2 CELLS of them, with
    those of the windows beyond), and the three points of the level.
    """
    row = tl.program_id(0).to(tl.int64)
    sorted_ptr += row * room
    positions_ptr += row * room
    counts_ptr += 4 * row
    scratch_ptr += row * 4 * CELLS
    marks_ptr = scratch_ptr
    slopes_ptr = marks_ptr + 2 * CELLS
    at_ptr = slopes_ptr + CELLS
    offset = tl.load(counts_ptr)
    number = tl.load(counts_ptr + 1)
    m = tl.load(numbers_ptr)
    h = tl.load(numbers_ptr + 1).to(F)
    sought = tl.load(numbers_ptr + 2)
    j = tl.arange(0, CELLS)
    is_cell = j < n_cells
    n_marks = n_cells + 1 + 2 * MARKS
    rank_first = tl.load(ranks_ptr) - offset
    rank_last = tl.load(ranks_ptr + n_marks - 1) - offset
    is_narrow = (number > room) | (number < 2) | (rank_first < 0.0) | (rank_last > number - 1.0)
    status = tl.where(tl.load(counts_ptr + 2) > 0, 2, tl.where(is_narrow, 3, 0))
    if status != 0:
        tl.store(status_ptr + row, status)
        tl.store(out_ptr + row, float("nan"))
        return
    rank = tl.load(ranks_ptr + 2 * CELLS + 1) - offset
    first = tl.minimum(rank.to(tl.int64), number - 2)
    middle = tl.load(sorted_ptr + first).to(F)
    here = _hazen(sorted_ptr, middle, 1.0, first, (rank - first).to(F))
    rank = tl.load(ranks_ptr + 2 * CELLS) - offset
    first = tl.minimum(rank.to(tl.int64), number - 2)
    low = _hazen(sorted_ptr, middle, 1.0, first, (rank - first).to(F))
    rank = tl.load(ranks_ptr + 2 * CELLS + 2) - offset
    first = tl.minimum(rank.to(tl.int64), number - 2)
    high = _hazen(sorted_ptr, middle, 1.0, first, (rank - first).to(F))
    k = tl.arange(0, 2 * CELLS)
    ranks = tl.load(ranks_ptr + k, mask=k < n_marks, other=offset) - offset
    places = tl.minimum(ranks.to(tl.int64), number - 2)
    tl.store(marks_ptr + k, _hazen(sorted_ptr, middle, 1.0, places, (ranks - places).to(F)))
    tl.debug_barrier()
    before = tl.load(marks_ptr + j, mask=is_cell, other=0.0)
    start = tl.load(marks_ptr + j + MARKS, mask=is_cell, other=0.0)
    end = tl.load(marks_ptr + j + MARKS + 1, mask=is_cell, other=1.0)
    after = tl.load(marks_ptr + j + 2 * MARKS + 1, mask=is_cell, other=1.0)
    spread = tl.load(marks_ptr + n_marks - 1) - tl.load(marks_ptr)
    is_tied = spread == 0.0
    spread = _power_of_two(tl.where(is_tied, 1.0, spread))
    level = (tl.load(cells_ptr + j), tl.load(cells_ptr + CELLS + j), tl.load(cells_ptr + 2 * CELLS + j))
    unit = tl.load(cells_ptr + 3 * CELLS + j)
    error = rule_widths((end - before) / spread, (after - start) / spread, (end - start) / spread)
    slopes = rule_slope(error, level, level, unit, 0.0, m.to(F)) / spread
    lengths = tl.where(is_cell, (end - start) * slopes, 0.0)
    at = _positions(lengths, j, origin)
    tl.debug_barrier()
    tl.store(marks_ptr + j, start)
    tl.store(slopes_ptr + j, slopes)
    tl.store(at_ptr + j, at)
    tl.debug_barrier()
    last = tl.maximum(n_cells - 1, 0)
    c = tl.minimum(tl.maximum(tl.sum((is_cell & (start <= low)).to(tl.int32), 0) - 1, 0), last)
    t_low = tl.load(at_ptr + c) + (low - tl.load(marks_ptr + c)) * tl.load(slopes_ptr + c)
    c = tl.minimum(tl.maximum(tl.sum((is_cell & (start <= here)).to(tl.int32), 0) - 1, 0), last)
    t = tl.load(at_ptr + c) + (here - tl.load(marks_ptr + c)) * tl.load(slopes_ptr + c)
    c = tl.minimum(tl.maximum(tl.sum((is_cell & (start <= high)).to(tl.int32), 0) - 1, 0), last)
    t_high = tl.load(at_ptr + c) + (high - tl.load(marks_ptr + c)) * tl.load(slopes_ptr + c)
    reach = END * h
    at_first = tl.load(at_ptr)
    at_last = tl.load(at_ptr + last) + tl.sum(tl.where(j == last, lengths, 0.0), 0)
    is_short = ((offset > 0) & (t_low - reach < at_first)) | ((offset + number < m) & (t_high + reach > at_last))
    i = tl.arange(0, BLOCK)
    for begin in range(0, number, BLOCK):
        held = begin + i < number
        x = tl.load(sorted_ptr + begin + i, mask=held, other=0.0).to(F) - middle
        cell = tl.zeros([BLOCK], tl.int32)
        bit = CELLS // 2
        while bit > 0:
            tried = cell + bit
            mark = tl.load(marks_ptr + tl.minimum(tried, CELLS - 1))
            cell = tl.where((tried < n_cells) & (mark <= x), tried, cell)
            bit = bit // 2
        position = tl.load(at_ptr + cell) + (x - tl.load(marks_ptr + cell)) * tl.load(slopes_ptr + cell)
        tl.store(positions_ptr + begin + i, position, mask=held)
    tl.debug_barrier()
    a = t - float("inf")
    b = t + float("inf")
    stop = 0
    steps = 0
    while (stop == 0) & (steps < 200):
        inside, tails, rise, _, _, _, _ = _share(
            positions_ptr, positions_ptr, 0, number, t, h, FLOOR, BLOCK, False, False
        )
        t, a, b, stop = _next(t, a, b, offset + inside, tails, rise.to(F), m, h, sought, t_low, t_high, tolerance)
        steps += 1
    c = tl.minimum(tl.maximum(tl.sum((is_cell & (at <= t)).to(tl.int32), 0) - 1, 0), last)
    w = tl.load(marks_ptr + c) + (t - tl.load(at_ptr + c)) / tl.load(slopes_ptr + c)
    w = tl.where(is_tied, here, tl.minimum(tl.maximum(w, low), high))
    tl.store(out_ptr + row, w.to(tl.float64) + middle.to(tl.float64))
    tl.store(status_ptr + row, tl.where(is_short & (is_tied == 0), 3, 0))


def quantiles(
    kernel: Any, x: Tensor, counts: Tensor | None, levels: Sequence[float], h: float | None, reflect: bool
) -> Tensor:
    """Quantiles of each row at each level, float64, on the rows' device."""
    load_rule(kernel.rule)
    x = x.contiguous()
    if counts is not None:
        counts = counts.contiguous()
        if not bool((torch.isfinite(counts) & (counts >= 0.0)).all()):
            msg = "weights are counts: finite and at least 0; got a negative, infinite or missing one."
            raise ValueError(msg)
        if not bool((counts.sum(1) > 0.0).all()):
            msg = "weights are 0 for a whole sample; a quantile needs at least one value that counts."
            raise ValueError(msg)
    held = x if counts is None else torch.where(counts > 0.0, x, torch.inf)
    if reflect:
        if bool((x < 0.0).any()):
            msg = "reflect=True takes absolute errors, but a holds negative values; pass a.abs() or reflect=False."
            raise ValueError(msg)
        twice = None if counts is None else torch.cat([counts, counts], 1)
        inner = quantiles(kernel, torch.cat([-x, x], 1), twice, [(1.0 + p) / 2.0 for p in levels], h, False)
        low = held.amin(1, keepdim=True).double()
        inner[:, [k for k, p in enumerate(levels) if p == 0.0]] = low
        return inner.maximum(low)
    inner = [k for k, p in enumerate(levels) if 0.0 < p < 1.0]
    found, status = _inner_quantiles(kernel, x, counts, [levels[k] for k in inner], h)
    if status is not None and int(status.amax()) > MISSING:  # the only wait for the GPU, after all its work
        for why, again in ((NARROW, _sorted_whole), (INFINITE, _on_the_cpu)):
            odd = (status == why).nonzero().flatten()
            if len(odd):
                own = None if counts is None else counts[odd]
                found[odd] = again(kernel, x[odd], own, [levels[k] for k in inner], h)
    if len(inner) == len(levels):
        return found
    out = torch.empty((len(x), len(levels)), dtype=torch.float64, device=x.device)
    for k, p in enumerate(levels):
        if p == 0.0:
            out[:, k] = held.amin(1)
        elif p == 1.0:
            out[:, k] = (x if counts is None else torch.where(counts > 0.0, x, -torch.inf)).amax(1)
        else:
            out[:, k] = found[:, inner.index(k)]
    return out


def _sorted_whole(kernel: Any, x: Tensor, counts: Tensor | None, levels: list[float], h: float | None) -> Tensor:
    """Rows of which a subsample did not tell where to look, or that took too many passes."""
    if h is not None:
        return _on_the_cpu(kernel, x, counts, levels, h)
    n = x.shape[1]
    parts = [_from_sorted(kernel.rule, x, p, _near(kernel.rule, n, p, n)) for p in levels]
    found, status = (torch.stack(some, 1) for some in zip(*parts, strict=True))
    odd = status.amax(1).nonzero().flatten()
    if len(odd):  # with many ties more than what is near may be felt
        found[odd] = _on_the_cpu(kernel, x[odd], None, levels, None)
    return found


def _on_the_cpu(kernel: Any, x: Tensor, counts: Tensor | None, levels: list[float], h: float | None) -> Tensor:
    own = None if counts is None else counts.cpu().numpy()
    return torch.from_numpy(kernel.solve_arrays(x.double().cpu().numpy(), own, levels, h, False)).to(x.device)


def _inner_quantiles(
    kernel: Any, x: Tensor, counts: Tensor | None, levels: list[float], h: float | None
) -> tuple[Tensor, Tensor | None]:
    """Quantiles at levels inside (0, 1), and what is odd about a row."""
    n = x.shape[1]
    if n == 1 or not levels or not len(x):
        return x[:, :1].double().repeat(1, len(levels)), None
    if h is not None:
        return fixed(x, counts, _numbers(tuple(levels), x.device), h, 40.0)
    if counts is not None:
        return _counted(kernel, x, counts, levels)
    if n <= kernel.rule.LARGE:  # 2048 at most fit in one warp
        return short(kernel.rule, x, levels)
    parts = [long(kernel.rule, x, p) for p in levels]
    return torch.stack([found for found, _ in parts], 1), torch.stack([status for _, status in parts], 1).amax(1)


def _width(x: Tensor, counts: Tensor | None) -> tuple[Any, torch.dtype, float]:
    """What sums are made in, and how near Newton's last step must come: what is left is its square."""
    if x.dtype == torch.float64 or counts is not None:
        return tl.float64, torch.float64, 1e-6
    return tl.float32, torch.float32, NEAR


@lru_cache(maxsize=256)
def _numbers(a: tuple[float, ...], device: torch.device) -> Tensor:
    """A few numbers that stay on the device."""
    return torch.tensor(a, dtype=torch.float64, device=device)


def _floor(end: float) -> float:
    return 1.0 / (1.0 + math.exp(end))


def fixed(x: Tensor, counts: Tensor | None, levels: Tensor, h: float, end: float) -> tuple[Tensor, Tensor | None]:
    """Roots for a given bandwidth, kept in the range of each row; levels for all rows, or for each its own."""
    rows, n = x.shape
    n_levels, own = levels.shape[-1], levels.shape[-1] if levels.ndim > 1 else 0
    m, own_m = (_numbers((float(n),), x.device), 0) if counts is None else (counts.sum(1), 1)
    out = torch.empty((rows, n_levels), dtype=torch.float64, device=x.device)
    width = _numbers((h,), x.device)
    F, dtype, tolerance = _width(x, counts)
    c = x if counts is None else counts
    common = {"FLOOR": _floor(end), "F": F}
    common |= {"COUNTED": counts is not None}
    if n <= ON_CHIP:
        block = triton.next_power_of_2(n)
        fixed_rows[(rows,)](
            x,
            c,
            m,
            levels,
            out,
            n,
            n_levels,
            own,
            own_m,
            width,
            tolerance,
            BLOCK=block,
            ALIGN=_aligned(x, n),
            FEW=128 if n >= 512 and counts is None else 0,
            num_warps=max(1, min(16, block // 1024)),
            maxnreg=96 if dtype == torch.float32 else 168,
            **common,
        )
        return out, None
    status = torch.zeros(rows, dtype=torch.int32, device=x.device)
    if rows >= MANY_ROWS:
        streamed_rows[(rows, n_levels)](
            x,
            c,
            m,
            levels,
            out,
            status,
            n,
            n_levels,
            own,
            own_m,
            width,
            tolerance,
            BLOCK=8192,
            SIZE=SAMPLE,
            num_warps=16,
            **common,
        )
    else:
        n_parts = min(1024, triton.cdiv(n, 16384), max(1, 2048 // rows))
        length = triton.cdiv(triton.cdiv(n, n_parts), 4096) * 4096
        n_parts = triton.cdiv(n, length)
        state = torch.empty((rows, n_levels, 6), dtype=torch.float64, device=x.device)
        parts = torch.empty((rows, n_levels, n_parts, 7), dtype=torch.float64, device=x.device)
        first_tries[(rows, n_levels)](
            x, levels, state, n, n_levels, own, width, FLOOR=_floor(end), F=F, SIZE=2 * SAMPLE, num_warps=8
        )
        for k in range(MAX_PASSES + 1):
            which = {"FULL": k in {0, MAX_PASSES}, "STOP": int(k == MAX_PASSES)}
            partial_shares[(n_parts, rows, n_levels)](
                x, c, state, parts, n, n_levels, width, length, BLOCK=4096, num_warps=8, **which, **common
            )
            next_tries[(rows, n_levels)](
                state,
                parts,
                m,
                levels,
                out,
                status,
                n_levels,
                own,
                own_m,
                n_parts,
                width,
                tolerance,
                PARTS=triton.next_power_of_2(n_parts),
                **which,
            )
    return out, status


def _aligned(x: Tensor, n: int) -> int:
    """How many errors can be read at once, 16 bytes at most, wherever a row of n begins."""
    return math.gcd(n, 16 // x.element_size())


def _order(block: int, together: int) -> tuple[int, ...]:
    """Dimensions of a block, one for each bit of its places: first those between threads, then a thread's own."""
    n_bits, read = block.bit_length() - 1, together.bit_length() - 1
    between = range(read, read + 5)
    own = [bit for bit in range(n_bits) if bit not in between]
    return tuple(n_bits - 1 - bit for group in (between, own) for bit in sorted(group, reverse=True))


class Places(NamedTuple):
    """Which order statistics of a short row are asked for, and the ruler's windows: tables for `short_rows`."""

    index: Tensor
    share: Tensor
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
def _places(rule: Any, n: int, levels: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Places:
    ruler = rule.ruler(max(float(n), 3.0))
    k, n_cells = rule.MARKS, ruler.unit.size
    block = triton.next_power_of_2(n_cells + 1)

    def ranks(level: Any) -> Any:
        return np.clip(np.asarray(level) * n - 0.5, 0.0, n - 1.0)

    marks = ranks(ruler.level[k:-k])
    p = np.array(levels)
    error = rule.BRACKET * rule.standard_error(p, float(n))
    three = ranks(np.stack([p - error, p, p + error], 1).ravel())
    asked = np.concatenate([np.pad(marks, (0, block - marks.size)), ranks([0.25, 0.75]), three])
    index = np.minimum(asked.astype(np.int64), n - 2)
    cell_of = np.clip(np.searchsorted(marks, np.concatenate([np.arange(n), three]), "right") - 1, 0, n_cells - 1)
    rows = [*_windows(ruler.level, k), *_windows(ruler.normal, k), ruler.unit]
    cells = np.stack(
        [np.pad(row, (0, block - n_cells), constant_values=1.0) for row in rows]
        + [np.pad(ruler.unit / ruler.unit.sum(), (0, block - n_cells))]
    )
    tensors = (
        torch.tensor(index, dtype=torch.int32),
        torch.tensor(asked - index, dtype=dtype),
        torch.tensor(cells, dtype=dtype),
        torch.tensor(cell_of, dtype=torch.int16),
        torch.tensor(p, dtype=torch.float64),
        torch.tensor(np.ceil(p * n) - 1.0, dtype=torch.int32),
    )
    index, share, windows, cell, level, taken = (t.to(device) for t in tensors)
    return Places(index, share, windows, cell, level, taken, n_cells)


def _sort_rows(x: Tensor, out: Tensor, status: Tensor) -> None:
    """By one warp each: exchanges between warps are slow."""
    together = _aligned(x, x.shape[1])
    block = max(32 * together, triton.next_power_of_2(x.shape[1]))
    sorted_rows[(len(x),)](
        x,
        out,
        status,
        x.shape[1],
        BLOCK=block,
        N_BITS=block.bit_length() - 1,
        ALIGN=together,
        ORDER=_order(block, together),
        num_warps=1,
    )


def short(rule: Any, x: Tensor, levels: Sequence[float]) -> tuple[Tensor, None]:
    """Quantiles by the rule of rows that are sorted on the chip."""
    rows, n = x.shape
    F, dtype, tolerance = _width(x, None)
    places = _places(rule, n, tuple(levels), dtype, x.device)
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
        short_rows[(len(x[part]),)](
            held,
            out[part],
            status[part],
            scratch,
            places.index,
            places.share,
            places.cells,
            places.cell_of,
            places.levels,
            places.taken,
            n,
            places.n_cells,
            len(levels),
            tolerance,
            MARKS=rule.MARKS,
            FLOOR=_floor(rule.SATURATION),
            BLOCK=triton.next_power_of_2(n),
            CELLS=cells,
            F=F,
            num_warps=2,
        )
    return out, None


class Near(NamedTuple):
    """Cells of the ruler near a level of a long row, and pivots of a subsample that bound them."""

    first: int
    last: int
    n_sub: int
    low: int  # pivots; -1 and n_sub for none
    high: int


def _near(rule: Any, n: int, p: float, n_sub: int) -> Near:
    """As in `compiled.long_sample`."""
    ruler = rule.ruler(float(n))
    first, last = rule.near(float(n), p)
    u, v = ruler.level[first], ruler.level[last + 2 * rule.MARKS]
    low = int(u * n_sub - 4.0 * math.sqrt(u * (1.0 - u) * n_sub) - 2.0) if first > 0 else -1
    high = int(v * n_sub + 4.0 * math.sqrt(v * (1.0 - v) * n_sub) + 2.0) + 1 if last < ruler.unit.size else n_sub
    return Near(first, last, n_sub, max(low, -1), min(high, n_sub))


def long(rule: Any, x: Tensor, p: float) -> tuple[Tensor, Tensor]:
    """Quantiles by the rule of long rows, from what is near the level; where that fails, rows are sorted as a whole."""
    rows, n = x.shape
    n_sub = min(int(n**0.75), 4096 if rows >= MANY_ROWS else 2**20)
    near = _near(rule, n, p, n_sub)
    share = (min(near.high, n_sub) - max(near.low, 0)) / n_sub
    if share > 0.5:
        return _from_sorted(rule, x, p, near)
    pivots = x[:, :: n // n_sub][:, :n_sub].sort(1).values
    bounds = torch.empty((rows, 2), dtype=x.dtype, device=x.device)
    bounds[:, 0] = pivots[:, near.low] if near.low >= 0 else -torch.inf
    bounds[:, 1] = pivots[:, near.high] if near.high < n_sub else torch.inf
    room = int(1.1 * share * n + 4.0 * n / math.sqrt(n_sub) * math.sqrt(share) + 64) // 4 * 4
    kept = torch.full((rows, room), torch.inf, dtype=x.dtype, device=x.device)
    counts = torch.zeros((rows, 4), dtype=torch.int64, device=x.device)
    n_parts = min(triton.cdiv(n, 16384), 8192)
    length = triton.cdiv(triton.cdiv(n, n_parts), 4096) * 4096
    gathered[(triton.cdiv(n, length), rows)](
        x, bounds, kept, counts, n, length, room, LINES=8, BLOCK=32 * _aligned(x, n), ALIGN=_aligned(x, n), num_warps=8
    )
    return _through_ruler(rule, kept.sort(1).values, counts, n, p, near)


def _from_sorted(rule: Any, x: Tensor, p: float, near: Near) -> tuple[Tensor, Tensor]:
    rows, n = x.shape
    level = rule.ruler(float(n)).level
    first = max(int(level[near.first] * n - 2.0), 0)
    last = min(int(level[near.last + 2 * rule.MARKS] * n + 3.0), n)
    counts = torch.zeros((rows, 4), dtype=torch.int64, device=x.device)
    counts[:, 0], counts[:, 1] = first, last - first
    counts[:, 2] = (~x.isfinite()).any(1)
    return _through_ruler(rule, x.sort(1).values[:, first:last].contiguous(), counts, n, p, near)


class NearPlaces(NamedTuple):
    """Tables for `near_rows`."""

    ranks: Tensor
    cells: Tensor
    numbers: Tensor
    origin: int


@lru_cache(maxsize=64)
def _near_places(rule: Any, n: int, p: float, near: Near, dtype: torch.dtype, device: torch.device) -> NearPlaces:
    ruler, k = rule.ruler(float(n)), rule.MARKS
    n_cells = near.last - near.first
    cells = triton.next_power_of_2(max(n_cells, 2 * k + 1) + 1)
    level = ruler.level[near.first : near.last + 2 * k + 1]
    error = rule.BRACKET * rule.standard_error(p, float(n))
    ranks = np.zeros(2 * cells + 3)
    ranks[: level.size], ranks[2 * cells :] = level, (p - error, p, p + error)
    ranks = np.clip(ranks * n - 0.5, 0.0, n - 1.0)
    origin = int(np.clip(np.searchsorted(ranks[k : k + n_cells], ranks[2 * cells + 1], "right") - 1, 0, n_cells - 1))
    tables = np.stack(
        [
            np.pad(a, (0, cells - n_cells), constant_values=1.0)
            for a in [*_windows(level, k), ruler.unit[near.first : near.last]]
        ]
    )
    h = rule.large_resolution(float(n))
    return NearPlaces(
        torch.tensor(ranks, device=device),
        torch.tensor(tables, dtype=dtype, device=device),
        torch.tensor([float(n), h, rule.shrunk(p, h)], dtype=torch.float64, device=device),
        origin,
    )


def _through_ruler(rule: Any, band: Tensor, counts: Tensor, n: int, p: float, near: Near) -> tuple[Tensor, Tensor]:
    """Quantiles from sorted rows of errors near the level, and how many there are below and within."""
    F, dtype, tolerance = _width(band, None)
    rows, room = band.shape
    tables = _near_places(rule, n, p, near, dtype, band.device)
    cells = tables.cells.shape[1]
    out = torch.empty(rows, dtype=torch.float64, device=band.device)
    status = torch.empty(rows, dtype=torch.int32, device=band.device)
    scratch = torch.empty((rows, 4 * cells), dtype=dtype, device=band.device)
    positions = torch.empty((rows, room), dtype=dtype, device=band.device)
    end = rule.SATURATION
    near_rows[(rows,)](
        band,
        positions,
        counts,
        out,
        status,
        scratch,
        tables.ranks,
        tables.cells,
        room,
        near.last - near.first,
        tables.origin,
        tables.numbers,
        tolerance,
        MARKS=rule.MARKS,
        END=end,
        FLOOR=_floor(end),
        BLOCK=2048,
        CELLS=cells,
        F=F,
        num_warps=8,
    )
    return out, status


def _counted(kernel: Any, x: Tensor, counts: Tensor, levels: list[float]) -> tuple[Tensor, Tensor]:
    """Quantiles by the rule of rows with counts, whose sums decide how long their rulers are."""
    out = torch.empty((len(x), len(levels)), dtype=torch.float64, device=x.device)
    status = torch.zeros(len(x), dtype=torch.int32, device=x.device)
    held = counts > 0.0
    is_missing = (x.isnan() & held).any(1)
    is_infinite = (x.isinf() & held).any(1)
    status[is_infinite] = INFINITE
    status[is_missing] = MISSING
    x = torch.where(status[:, None] > 0, 0.0, x.double())
    high = torch.where(held, x, -torch.inf).amax(1, keepdim=True)
    order = torch.where(held, x, torch.inf).argsort(dim=1, stable=True)
    x, counts = torch.where(held, x, high).gather(1, order), counts.gather(1, order)
    sizes = counts.sum(1)
    p = torch.tensor(levels, dtype=torch.float64, device=x.device)
    for m in sizes.unique():
        i = (sizes == m).nonzero().flatten()
        out[i] = _counted_alike(kernel, x[i], counts[i], p, float(m))
    out[is_missing] = torch.nan
    return out, status


def _counted_alike(kernel: Any, x: Tensor, counts: Tensor, p: Tensor, m: float) -> Tensor:
    """Sorted rows with counts of one sum."""
    rule = kernel.rule
    error = rule.BRACKET * rule.standard_error(p, m)
    low, here, high = (hazen(x, counts, level) for level in (p - error, p, p + error))
    if m < 3.0 or x.shape[1] < 2:
        return torch.as_tensor(here)
    ruler = kernel.lay(x, counts, m)
    h = ruler.h if isinstance(ruler.h, Tensor) else torch.full_like(low[:, :1], ruler.h)
    positions = ruler.position(x) / h
    sought = rule.shrunk(p, h)
    t, _ = fixed(positions.contiguous(), counts, sought.contiguous(), 1.0, rule.SATURATION)
    t_low, t_here, t_high = (ruler.position(a) / h for a in (low, here, high))
    plain = activation(t_here[..., None] - positions[:, None], rule.SATURATION)[0] * counts[:, None]
    is_flat = (plain.sum(2) / m - sought).abs() <= 1e-15
    t = torch.where(is_flat, t_here, t.maximum(t_low).minimum(t_high))
    j = (torch.searchsorted(ruler.at / h, t, right=True) - 1).clamp(0, ruler.slopes.shape[1] - 1)
    w = ruler.marks.gather(1, j) + (t * h - ruler.at.gather(1, j)) / ruler.slopes.gather(1, j)
    return torch.where(ruler.is_tied, here, w.maximum(low).minimum(high))
