"""Newton's method on a GPU: smoothed proportions of errors around a try, and the next try.

Sums over many errors count what is surely below and add the tails of the sigmoids, so that float32 does.
"""

from __future__ import annotations

import math
import os
from functools import lru_cache
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

NEAR = 3e-4  # of h: Newton's last step with float32
MANY_ROWS = 128  # from here on one program a row is enough to keep the GPU busy
FINE, MISSING, INFINITE, NARROW = 0, 1, 2, 3
LOG2_E = tl.constexpr(math.log2(math.e))
FAST = tl.constexpr(torch.version.cuda is not None and os.environ.get("TRITON_INTERPRET") != "1")  # NVIDIA's own


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
    """log(1 + u), also for a tiny u: between distant errors outputs differ by next to nothing."""
    return tl.where(tl.abs(u) < 1e-3, u * (1.0 - u * (1.0 / 2.0 - u * (1.0 / 3.0 - u * 0.25))), tl.log(1.0 + u))


@triton.jit
def next_try(t, a, b, count, tails, rise, m, h, p, low, high, tolerance):
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
def root(x, counts, below, m, h, FLOOR: tl.constexpr, p, start, low, high, tolerance, max_steps, COUNTED: tl.constexpr):
    """Root of the smoothed proportion of errors on the chip, and why it is one; errors at infinity count nowhere."""
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
        t, a, b, stop = next_try(t, a, b, below + number.to(tl.float64), tails, rise, m, h, p, low, high, tolerance)
        steps += 1
    return t, stop


@triton.jit
def loaded(x_ptr, row, n, BLOCK: tl.constexpr, ALIGN: tl.constexpr, F: tl.constexpr):
    """A row on the chip, infinity beyond its end; where it begins, and which places it has."""
    begin = tl.multiple_of(row * n, ALIGN)
    i = tl.arange(0, BLOCK)
    held = i // ALIGN < n // ALIGN
    return tl.load(x_ptr + begin + i, mask=held, other=float("inf")).to(F), begin, held


@triton.jit
def summed_outputs(
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
    """One read of the errors [first, last): number below t, tails, derivative; if FULL, extremes and those at t."""
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
    # A name for the stretch would be a float32.
    sums = tl.reduce((number.to(tl.float64), tails.to(tl.float64), rise.to(tl.float64)), 0, _add)
    return (
        sums[0],
        sums[1] / (1.0 - 2.0 * FLOOR),
        sums[2] / (1.0 - 2.0 * FLOOR),
        tl.min(low, 0),
        tl.max(high, 0),
        tl.max(before, 0),
        tl.min(after, 0),
    )


def precision(x: Tensor, counts: Tensor | None) -> tuple[Any, torch.dtype, float]:
    """What sums are made in, and how near Newton's last step must come: what is left is its square."""
    if x.dtype == torch.float64 or counts is not None:
        return tl.float64, torch.float64, 1e-6
    return tl.float32, torch.float32, NEAR


@lru_cache(maxsize=256)
def numbers(a: tuple[float, ...], device: torch.device) -> Tensor:
    """A few numbers that stay on the device."""
    return torch.tensor(a, dtype=torch.float64, device=device)


def floor(end: float) -> float:
    return 1.0 / (1.0 + math.exp(end))


def aligned(x: Tensor, n: int) -> int:
    """How many errors can be read at once, 16 bytes at most, wherever a row of n begins."""
    return math.gcd(n, 16 // x.element_size())
