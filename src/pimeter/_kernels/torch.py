"""Quantiles of tensors, on their own device and with gradients.

Values come from an operator that torch does not look into: tensors of the CPU are solved by the kernels for NumPy,
those of a GPU by `triton.py`. Gradients come from one step of Newton's method at the solution, written in plain tensor
operations: it moves nothing, but its derivative is that of the root (the implicit function theorem), through bandwidth,
level and map. So `torch.func` and `torch.compile` need no rules of ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, TypeVar

import torch
from torch import Tensor

from pimeter import bandwidth
from pimeter._kernels.arguments import arguments, weights_shape
from pimeter._kernels.arrays import checked_quantiles

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Function = TypeVar("Function", bound="Callable[..., Any]")

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
STEEP = 40.0  # the sigmoid with a given bandwidth is 0 or 1 beyond this
AT_AN_END = 1e-6  # of the bracket: a root this near to its end is the end


def constant(function: Function) -> Function:
    """What `torch.compile` calls while it traces, as `torch.compiler.assume_constant_result`, which loads a lot."""
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function


def is_wrapped(x: Tensor) -> bool:
    """Whether `torch.func` is at work."""
    return bool(torch._C._functorch.is_functorch_wrapped_tensor(x))


def is_tracked(x: Tensor) -> bool:
    """Whether somebody wants a gradient: autograd, or `torch.func` at any of its levels."""
    while not torch.compiler.is_compiling() and is_wrapped(x):
        if torch._C._functorch.is_gradtrackingtensor(x):
            return True
        x = torch._C._functorch.get_unwrapped(x)
    return bool(x.requires_grad)


def hazen(x: Tensor, counts: Tensor | None, level: Tensor) -> Tensor:
    """Hazen's quantiles, (rows, levels), of sorted rows; see `reference.hazen`."""
    n = x.shape[1]
    if counts is None:
        rank = (level * n - 0.5).clamp(0.0, n - 1.0)
        i = rank.long().clamp(max=max(n - 2, 0))
        before, after = x[:, i], x[:, (i + 1).clamp(max=n - 1)]
        return before + (rank - i) * (after - before)
    up_to = counts.cumsum(1)
    half = counts.clamp(max=1.0) / 2.0
    stands = torch.stack([up_to - counts + half, up_to - half], 2).flatten(1)
    values = torch.stack([x, x], 2).flatten(1)
    position = level * up_to[:, -1:]
    j = torch.searchsorted(stands, position).clamp(1, 2 * n - 1)
    left, right = stands.gather(1, j - 1), stands.gather(1, j)
    fraction = ((position - left) / (right - left).clamp(min=1e-300)).clamp(0.0, 1.0)
    before, after = values.gather(1, j - 1), values.gather(1, j)
    return before + fraction * (after - before)


class Maps(NamedTuple):
    """Maps of sorted rows; see `reference.Map`."""

    knots: Tensor  # (rows, J + 1)
    at: Tensor  # (rows, J + 1)
    slopes: Tensor  # (rows, J)
    h: Any  # (rows, 1) or a number
    is_tied: Tensor  # (rows, 1) without spread: nothing of this holds

    def cell(self, x: Tensor) -> Tensor:
        """Cell in which errors lie."""
        last = self.slopes.shape[1] - 1
        return (torch.searchsorted(self.knots.detach().clone(), x.detach(), right=True) - 1).clamp(0, last)

    def position(self, x: Tensor) -> Tensor:
        """Where errors lie on the map."""
        j = self.cell(x)
        return self.at.gather(1, j) + (x - self.knots.gather(1, j)) * self.slopes.gather(1, j)


def activation(z: Tensor, end: float) -> tuple[Tensor, Tensor]:
    """The stretched sigmoid of `reference.activation`, and its derivative."""
    floor = 1.0 / (1.0 + math.exp(end))
    s = torch.sigmoid(z.clamp(-end, end))
    slope = torch.where(z.abs() < end, s * (1.0 - s), 0.0)
    return (s - floor) / (1.0 - 2.0 * floor), slope / (1.0 - 2.0 * floor)


_arguments = constant(arguments)


@constant
def knots_on(m: float, device: torch.device) -> list[Tensor]:
    """`bandwidth.knots` on a device."""
    return [torch.tensor(a, device=device) for a in bandwidth.knots(max(m, 3.0))]


@torch.library.custom_op("pimeter::quantiles", mutates_args=())
def _operator(
    x: Tensor,
    weights: Optional[Tensor],  # noqa: UP045 - torch reads this
    levels: Sequence[float],
    h: Optional[float],  # noqa: UP045
    reflect: bool,
) -> Tensor:
    return _quantiles(x, weights, levels, h, reflect)


@_operator.register_fake
def _(
    x: Tensor,
    weights: Tensor | None,  # noqa: ARG001
    levels: Sequence[float],
    h: float | None,  # noqa: ARG001
    reflect: bool,  # noqa: ARG001
) -> Tensor:
    return x.new_empty((x.shape[0], len(levels)), dtype=torch.float64)


@_operator.register_vmap
def _(
    info: Any,
    in_dims: tuple[int | None, ...],
    x: Tensor,
    weights: Tensor | None,
    levels: Sequence[float],
    h: float | None,
    reflect: bool,
) -> tuple[Tensor, int]:
    """A batch of calls is one call with more rows."""

    def many(a: Tensor | None, dim: int | None) -> Tensor | None:
        if a is None:
            return None
        a = a.expand(info.batch_size, *a.shape) if dim is None else a.movedim(dim, 0)
        return a.reshape(-1, a.shape[-1])

    flat = _operator(many(x, in_dims[0]), many(weights, in_dims[1]), levels, h, reflect)
    return flat.reshape(info.batch_size, -1, len(levels)), 0


def _quantiles(x: Tensor, counts: Tensor | None, levels: Sequence[float], h: float | None, reflect: bool) -> Tensor:
    """Quantiles of plain rows, (rows, levels), float64."""
    if x.is_cuda:
        from pimeter._kernels.triton.quantiles import quantiles

        return quantiles(x, counts, levels, h, reflect)
    rows = (x.float() if x.dtype == torch.bfloat16 else x).numpy()
    own = None if counts is None else counts.numpy()
    return torch.from_numpy(checked_quantiles(rows, own, levels, h, reflect))


def quantile(
    a: Tensor,
    q: ArrayLike,
    axis: int | tuple[int, ...] | None,
    weights: Tensor | ArrayLike | None,
    beta: float | str,
    reflect: bool,
    keepdims: bool,
) -> Tensor:
    """Quantiles of a tensor along axes, with gradients; `pimeter.quantile` documents the parameters."""
    if a.dtype not in FLOATS:
        msg = f"a is a tensor of {a.dtype}; quantiles are for floats: convert it with a.double()."
        raise TypeError(msg)
    if isinstance(q, Tensor):
        q = q.tolist()
    asked = _arguments(q, axis, a.ndim, beta)
    levels, axes, h = asked.levels, asked.axes, asked.h
    others = tuple(i for i in range(a.ndim) if i not in axes)
    kept = [1 if i in axes else n for i, n in enumerate(a.shape) if keepdims or i in others]
    length = math.prod([a.shape[i] for i in axes])
    if length == 0:
        msg = f"a has shape {tuple(a.shape)}: no values along axis {axis}; a quantile needs at least one."
        raise ValueError(msg)

    def rows(t: Tensor) -> Tensor:
        return t.permute(others + axes).reshape(-1, length)

    x = rows(a)
    counts = None if weights is None else rows(_counts(weights, a, axes)).double()
    is_plain = not torch.compiler.is_compiling() and not is_wrapped(x) and (counts is None or not is_wrapped(counts))
    w = (_quantiles if is_plain else _operator)(x.detach(), counts, levels, h, reflect)
    if is_tracked(x):
        levels = torch.tensor(levels, dtype=torch.float64, device=a.device)
        w = _with_gradient(x.double(), counts, w, levels, h, reflect)
    return w.to(a.dtype).T.reshape([*asked.shape, *kept])


def _with_gradient(
    x: Tensor, counts: Tensor | None, w: Tensor, levels: Tensor, h: float | None, reflect: bool
) -> Tensor:
    """The quantiles w, which torch takes for constants, as a function of x."""
    is_odd = ~torch.isfinite(x).all(1, keepdim=True)
    # Of rows with infinities a value is taken; the step below is for finite rows, where nothing becomes NaN.
    taken = torch.where(is_odd[..., None] & (x[:, None] == w[..., None]), x[:, None], 0.0)
    taken = taken.sum(2) / (taken != 0.0).sum(2).clamp(min=1)
    x = torch.where(is_odd, 0.0, x)
    unit = x.detach().abs().amax(1, keepdim=True)
    unit = torch.where(unit > 0.0, unit, 1.0)
    known = torch.where(is_odd, 0.0, w) / unit
    held = x / unit
    low, high = held.amin(1, keepdim=True), held.amax(1, keepdim=True)
    if counts is not None:
        low = torch.where(counts > 0.0, held, torch.inf).amin(1, keepdim=True)
        high = torch.where(counts > 0.0, held, -torch.inf).amax(1, keepdim=True)
        held = torch.where(counts > 0.0, held, high)
    if reflect:
        mirrored = torch.cat([-held, held], 1)
        step = _step(
            mirrored,
            None if counts is None else torch.cat([counts, counts], 1),
            known,
            (1.0 + levels) / 2.0,
            h,
            unit,
        )
    else:
        step = _step(held, counts, known, levels, h, unit)
    step = torch.where(
        (known <= low) | (levels == 0.0), low, torch.where((known >= high) | (levels == 1.0), high, step)
    )
    step = torch.where(is_odd, taken, step * unit)
    return w + (step - step.detach())


def _step(x: Tensor, counts: Tensor | None, w: Tensor, levels: Tensor, h: float | None, unit: Tensor) -> Tensor:
    if h is not None:
        return _fixed_step(x, counts, w, levels, h / unit)
    if counts is None:
        return _automatic_step(x, None, w, levels, float(x.shape[1]))
    totals = counts.sum(1)
    if not is_wrapped(totals) and len(totals) > 1:
        step = torch.empty_like(w)
        for m in totals.unique():
            i = (totals == m).nonzero().flatten()
            step = step.index_copy(0, i, _automatic_step(x[i], counts[i], w[i], levels, float(m)))
        return step
    return _automatic_step(x, counts, w, levels, float(totals[0]))


def _automatic_step(x: Tensor, counts: Tensor | None, w: Tensor, levels: Tensor, m: float) -> Tensor:
    order = (x if counts is None else torch.where(counts > 0.0, x, torch.inf)).detach().argsort(dim=1, stable=True)
    x, counts = x.gather(1, order), None if counts is None else counts.gather(1, order)
    error = bandwidth.BRACKET * bandwidth.standard_error(levels, m)
    low, here, high = (hazen(x, counts, level) for level in (levels - error, levels, levels + error))
    if x.shape[1] < 2 or m < 3.0:
        return here
    maps = fit_maps(x, counts, m)
    slope = maps.slopes.gather(1, maps.cell(w)).detach()
    t, h = maps.position(w), maps.h
    step = w - _excess(maps.position(x), counts, t, h, bandwidth.SATURATION, bandwidth.shrunk(levels, h), slope)
    margin = AT_AN_END * (high - low).detach()
    step = torch.where(w <= low + margin, low, torch.where(w >= high - margin, high, step))
    return torch.where(maps.is_tied, here, step)


def fit_maps(x: Tensor, counts: Tensor | None, m: float) -> Maps:
    """Variance-stabilising maps of sorted rows of m values each, as `reference.fit_map` makes one of a single row."""
    level, normal, unit = knots_on(m, x.device)

    def windows(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        k, n = bandwidth.KNOTS, unit.shape[0]
        before, start, end, after = a[..., :n], a[..., k : k + n], a[..., k + 1 : k + 1 + n], a[..., 2 * k + 1 :]
        return end - before, after - start, end - start

    knots = hazen(x, counts, level)
    spread = _spread(x, counts, m, bandwidth.LEAST_WIDTH) if m <= bandwidth.LARGE else knots[:, -1:] - knots[:, :1]
    is_tied = spread == 0.0
    spread = torch.where(is_tied, 1.0, spread)
    measured, levels, normals = windows(knots / spread), windows(level), windows(normal)
    error = bandwidth.widths(*measured)
    h, pseudo_count = bandwidth.large_resolution(m), 0.0
    if m <= bandwidth.LARGE:
        weight = unit / unit.sum()
        distance = (bandwidth.distance_from_normal(bandwidth.both(measured), bandwidth.both(normals)) * weight).sum(
            1, keepdim=True
        )
        rough = (bandwidth.roughness(error, levels, normals, m) * weight).sum(1, keepdim=True)
        h, pseudo_count = bandwidth.resolution(distance, rough, m)
    slopes = bandwidth.slope(error, levels, normals, unit, pseudo_count, m) / spread
    knots = knots[:, bandwidth.KNOTS : -bandwidth.KNOTS]
    at = torch.cat([torch.zeros_like(spread), (knots.diff(dim=1) * slopes).cumsum(1)], 1)
    return Maps(knots, at, slopes, h, is_tied)


def _fixed_step(x: Tensor, counts: Tensor | None, w: Tensor, levels: Tensor, h: Tensor) -> Tensor:
    """Roots where the bandwidth is so small that no error matters at w: the middle of the gap."""
    step = _excess(x, counts, w, h, STEEP, levels, 1.0)
    is_below = x[:, None] <= w[..., None]
    before = torch.where(is_below, x[:, None], -torch.inf).amax(2)
    after = torch.where(is_below, torch.inf, x[:, None]).amin(2)
    matters = ((w - before) / h < STEEP) | ((after - w) / h < STEEP)
    return torch.where(matters, w - step, (before + after) / 2.0)


def _spread(x: Tensor, counts: Tensor | None, m: float, least: float) -> Tensor:
    """The smaller of the standard deviation and the normal-consistent interquartile range of sorted rows, (rows, 1)."""
    quartiles = hazen(x, counts, torch.tensor([0.25, 0.75], dtype=x.dtype, device=x.device)).diff(dim=1) / 1.349
    is_none = quartiles <= least * (x[:, -1:] - x[:, :1])
    safe = torch.where(is_none, 1.0, quartiles)
    deviation = (x - x[:, x.shape[1] // 2 :][:, :1]) / safe
    c = torch.ones_like(x) if counts is None else counts
    square = (c * deviation**2).sum(1, keepdim=True) - (c * deviation).sum(1, keepdim=True) ** 2 / m
    square = torch.where(is_none, 1.0, square / (m - 1.0))
    return torch.where(is_none, 0.0, quartiles * square.clamp(max=1.0).sqrt())


def _excess(
    positions: Tensor, counts: Tensor | None, t: Tensor, h: Tensor | float, end: float, p: Tensor, slope: Tensor | float
) -> Tensor:
    """Newton's step at t, with the derivative of the output there as a constant."""
    z = (t[..., None] - positions[:, None]) / (h[..., None] if isinstance(h, Tensor) else h)
    fraction, rise = activation(z, end)
    if counts is not None:
        fraction, rise = fraction * counts[:, None], rise * counts[:, None]
    m = float(positions.shape[1]) if counts is None else counts.sum(1, keepdim=True)
    rise = (rise.sum(2) / (m * h) * slope).detach()
    return (fraction.sum(2) / m - p) / torch.where(rise > 0.0, rise, 1.0)


def _counts(weights: Tensor, a: Tensor, axes: tuple[int, ...]) -> Tensor:
    """Weights in the shape of a."""
    if not isinstance(weights, Tensor):
        weights = torch.as_tensor(weights, device=a.device)
    if weights.device != a.device:
        msg = f"a is on {a.device}, weights are on {weights.device}; move one to the other's device."
        raise ValueError(msg)
    if weights.requires_grad:
        msg = "weights are counts and carry no gradient; pass weights.detach()."
        raise ValueError(msg)
    return weights.reshape(weights_shape(tuple(weights.shape), tuple(a.shape), axes)).expand(a.shape)
