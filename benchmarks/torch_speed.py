"""How fast are quantiles of tensors? Against `torch.quantile` (or `torch.sort`, where it refuses) in the same run.

    python benchmarks/torch_speed.py [--quick] [--out FOLDER]

On the CPU, and on a GPU if there is one; a ratio is the peer's time over ours. On a GPU one read of the same memory (a
sum) is the limit. The table goes to `results/torch_speed_<device>.md`. Needs numpy and torch alone.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import torch
from provenance import RESULTS, save

import pimeter as pm

LEVEL = 0.95
TORCH_LIMIT = 2**24  # torch.quantile refuses more values than this in all
BETA = 10.0  # of standard normal errors
CALLS = 5  # on a GPU


def cpu_milliseconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return 1e3 * (time.perf_counter() - start)


def cuda_milliseconds(function: Callable[[], object]) -> float:
    """By the GPU's own clock, for calls back to back: the data is larger than any cache."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(CALLS):
        function()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / CALLS


def peer(x: torch.Tensor) -> tuple[str, Callable[[], object]]:
    if x.numel() > TORCH_LIMIT and x.shape[0] == 1:
        return "torch.sort", partial(torch.sort, x, dim=1)
    return "torch.quantile", partial(torch.quantile, x, LEVEL, dim=1)


def compare(x: torch.Tensor, clock: Callable[[Callable[[], object]], float], repeats: int) -> list[str]:
    """Lines of the table for one tensor; each repeat measures all competitors back to back."""
    is_huge = x.numel() >= 10**9
    name, theirs = ("none: one read", x.sum) if is_huge else peer(x)
    ours = {
        f"beta = {BETA:g}": partial(pm.quantile, x, LEVEL, 1, beta=BETA),
        '"auto"': partial(pm.quantile, x, LEVEL, 1),
    }
    for function in (theirs, x.sum, *ours.values()):
        function()
        function()
    times = [[clock(f) for f in (theirs, x.sum, *ours.values())] for _ in range(repeats)]
    lines = []
    for k, label in enumerate(ours):
        ratio = median(row[0] / row[2 + k] for row in times)
        mine, peers, read = (median(row[i] for row in times) for i in (2 + k, 0, 1))
        lines.append(
            f"| {x.shape[0]:,} x {x.shape[1]:,} | {str(x.dtype)[6:]} | {label} | {name} | {peers:.3f} | {mine:.3f} "
            f"| {ratio:.2f} | {mine / read:.1f} |"
        )
        print(lines[-1], flush=True)
    return lines


def run(device: str, shapes: list[tuple[int, int]], dtypes: list[torch.dtype], repeats: int) -> list[str]:
    lines = []
    clock = cuda_milliseconds if device == "cuda" else cpu_milliseconds
    generator = torch.Generator(device=device).manual_seed(7)
    for shape in shapes:
        for dtype in dtypes:
            lines += compare(torch.randn(shape, device=device, dtype=dtype, generator=generator), clock, repeats)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small samples, nothing saved")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the table")
    given = parser.parse_args()
    quick = given.quick
    versions = f"torch {torch.__version__}, numpy {np.__version__}, Python {platform.python_version()}"
    jobs = {"cpu": ([(200, 1000), (1, 10_000_000)], [torch.float32, torch.float64], 15)}
    if torch.cuda.is_available():
        jobs = {"cuda": ([(100_000, 1000), (1000, 100_000), (1, 1_000_000_000)], [torch.float32], 31)}
    for device, (shapes, dtypes, repeats) in jobs.items():
        name = torch.cuda.get_device_name() if device == "cuda" else f"CPU, {len(os.sched_getaffinity(0))} threads"
        print(name, versions)
        head = "| neurons x errors | dtype | pimeter | peer | peer, ms | pimeter, ms | times faster | reads of memory |"
        print(head)
        chosen = [(20, 1000), (1, 10_000)] if quick else shapes
        lines = run(device, chosen, dtypes, 3 if quick else repeats)
        if not quick:
            slug = re.sub(r"\W+", "_", name.split(",")[0].lower())
            text = (
                f"# Quantiles of tensors: {name}\n\n`python benchmarks/torch_speed.py`, level {LEVEL}, standard normal "
                f"errors, medians of {repeats} paired repeats. {versions}.\n\n{head}\n{'|---' * 8}|\n"
            )
            text += "\n".join(lines) + "\n"
            save(__file__, text, name=f"torch_speed_{slug}", packages=["torch", "triton"], folder=given.out)


if __name__ == "__main__":
    main()
