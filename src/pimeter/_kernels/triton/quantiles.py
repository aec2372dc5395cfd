"""Quantiles of rows on a GPU: passes over the errors are fused, and rows that fit stay on the chip for all of them.

Nothing waits for the GPU within a loop. In the end rows that were marked (infinities; too narrow bounds) are solved
another way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pimeter import bandwidth
from pimeter._kernels.arguments import check_absolute, check_sample_counts
from pimeter._kernels.arrays import checked_quantiles
from pimeter._kernels.triton.fixed import fixed
from pimeter._kernels.triton.root import INFINITE, MISSING, NARROW, numbers
from pimeter._kernels.triton.rule import cells_near, counted, from_sorted, long, short

if TYPE_CHECKING:
    from collections.abc import Sequence


def quantiles(x: Tensor, counts: Tensor | None, levels: Sequence[float], h: float | None, reflect: bool) -> Tensor:
    """Quantiles of each row at each level, float64, on the rows' device."""
    x = x.contiguous()
    if counts is not None:
        counts = counts.contiguous()
        check_sample_counts(counts)
    held = x if counts is None else torch.where(counts > 0.0, x, torch.inf)
    if reflect:
        check_absolute(x)
        twice = None if counts is None else torch.cat([counts, counts], 1)
        inner = quantiles(torch.cat([-x, x], 1), twice, [(1.0 + p) / 2.0 for p in levels], h, False)
        low = held.amin(1, keepdim=True).double()
        inner[:, [k for k, p in enumerate(levels) if p == 0.0]] = low
        return inner.maximum(low)
    inner = [k for k, p in enumerate(levels) if 0.0 < p < 1.0]
    found, status = _inner_quantiles(x, counts, [levels[k] for k in inner], h)
    if status is not None and int(status.amax()) > MISSING:  # the only wait for the GPU, after all its work
        for why, again in ((NARROW, _sorted_whole), (INFINITE, _on_the_cpu)):
            odd = (status == why).nonzero().flatten()
            if len(odd):
                own = None if counts is None else counts[odd]
                found[odd] = again(x[odd], own, [levels[k] for k in inner], h)
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


def _sorted_whole(x: Tensor, counts: Tensor | None, levels: list[float], h: float | None) -> Tensor:
    """Rows of which a subsample did not tell where to look, or that took too many passes."""
    if h is not None:
        return _on_the_cpu(x, counts, levels, h)
    n = x.shape[1]
    parts = [from_sorted(x, p, cells_near(n, p, n)) for p in levels]
    found, status = (torch.stack(some, 1) for some in zip(*parts, strict=True))
    odd = status.amax(1).nonzero().flatten()
    if len(odd):  # with many ties more than what is near may matter
        found[odd] = _on_the_cpu(x[odd], None, levels, None)
    return found


def _on_the_cpu(x: Tensor, counts: Tensor | None, levels: list[float], h: float | None) -> Tensor:
    own = None if counts is None else counts.cpu().numpy()
    return torch.from_numpy(checked_quantiles(x.double().cpu().numpy(), own, levels, h, False)).to(x.device)


def _inner_quantiles(
    x: Tensor, counts: Tensor | None, levels: list[float], h: float | None
) -> tuple[Tensor, Tensor | None]:
    """Quantiles at levels inside (0, 1), and what is odd about a row."""
    n = x.shape[1]
    if n == 1 or not levels or not len(x):
        return x[:, :1].double().repeat(1, len(levels)), None
    if h is not None:
        return fixed(x, counts, numbers(tuple(levels), x.device), h, 40.0)
    if counts is not None:
        return counted(x, counts, levels)
    if n <= bandwidth.LARGE:  # 2048 at most fit in one warp
        return short(x, levels)
    parts = [long(x, p) for p in levels]
    return torch.stack([found for found, _ in parts], 1), torch.stack([status for _, status in parts], 1).amax(1)
