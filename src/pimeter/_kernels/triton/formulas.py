"""The rule of `pimeter.bandwidth` for the GPU's compiler: the same names in the same order, and its very numbers.

`tests/test_tensors.py` holds the two together where there is a GPU.
"""

from __future__ import annotations

import triton
import triton.language as tl

from pimeter import bandwidth

SHARP = tl.constexpr(bandwidth.SHARP)
GROWTH = tl.constexpr(bandwidth.GROWTH)
SHARPEST = tl.constexpr(bandwidth.SHARPEST)
ROUGH = tl.constexpr(bandwidth.ROUGH)
SIGNIFICANT = tl.constexpr(bandwidth.SIGNIFICANT)
ISOLATED = tl.constexpr(bandwidth.ISOLATED)
HALF = tl.constexpr(bandwidth.HALF)
SHIFT = tl.constexpr(bandwidth.SHIFT)
TIED = tl.constexpr(bandwidth.TIED)
LEAST_WIDTH = tl.constexpr(1e-30)  # float32 has nothing as small as the rule's


@triton.jit
def _power(a, exponent):
    return tl.exp2(exponent * tl.log2(a))


@triton.jit
def _squared(a):
    return a * a


@triton.jit
def shrunk(p, h):
    square = _squared(SHIFT * h)
    return 0.5 + (p - 0.5) / (1.0 + square / 6.0 * (1.0 + square / 20.0 * (1.0 + square / 42.0)))


@triton.jit
def _positive(a):
    return (a + tl.abs(a)) / 2.0


@triton.jit
def _contrast(a, b):
    return 2.0 * (a - b) / (a + b)


@triton.jit
def both(windows):
    return windows[0] + windows[1] - windows[2]


@triton.jit
def widths(left, right, own):
    least = TIED * both((left, right, own)) + LEAST_WIDTH
    return left + least, right + least, own + least


@triton.jit
def noise(level, m):
    return 1.0 / (m * level)


@triton.jit
def distance_from_normal(error, normal):
    return _squared(_contrast(normal, error + LEAST_WIDTH))


@triton.jit
def roughness(error, level, normal, m, noises):
    difference = _contrast(normal[0] * error[1], normal[1] * error[0])
    return _squared(difference) - noises * (noise(level[0], m) + noise(level[1], m))


@triton.jit
def resolution(distance, rough, m):
    c = SHARP * _power(m / 100.0, GROWTH) / _power(1.0 + _positive(rough) / ROUGH, 0.5)
    return (SHARPEST + _positive(c - SHARPEST)) / _power(m + 1.0, 0.5), 1.0 / (distance + TIED)


@triton.jit
def _beyond(excess):
    above = _positive(excess)
    return above / (above + HALF)


@triton.jit
def isolation(error, level, normal, m):
    difference = _contrast(normal[2] * both(error), both(normal) * error[2])
    return _squared(difference) - ISOLATED * (noise(level[2], m) - noise(both(level), m))


@triton.jit
def slope(error, level, normal, unit, pseudo_count, m):
    left, right, own = level[0] / error[0], level[1] / error[1], level[2] / error[2]
    count_left, count_right = m * level[0], m * level[1]
    shrunk_left = (count_left * left + pseudo_count * level[0] / normal[0]) / (count_left + pseudo_count)
    shrunk_right = (count_right * right + pseudo_count * level[1] / normal[1]) / (count_right + pseudo_count)
    denser = (left + right + tl.abs(left - right)) / 2.0
    split = _beyond(roughness(error, level, normal, m, SIGNIFICANT))
    density = (1.0 - split) * (shrunk_left + shrunk_right) / 2.0 + split * denser
    alone = _beyond(isolation(error, level, normal, m))
    return ((1.0 - alone) * density + alone * own) / unit
