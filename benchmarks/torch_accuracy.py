"""Do tensors give the numbers of NumPy arrays? On a GPU if there is one, where the kernels are others; else on the CPU.

    python benchmarks/torch_accuracy.py [--quick] [--out FOLDER]

Each line is one way through the kernels: the largest distance of all levels, in units of the answer or, if that is
larger, of the middle half of the sample. It stops with an error if one is above its limit, 1e-5 for float32 and 1e-9
for float64. The table goes to `results/torch_accuracy_<device>.md`. Needs numpy and torch alone.
"""

from __future__ import annotations

import argparse
import platform
import re
import sys
from pathlib import Path

import numpy as np
import torch
from provenance import RESULTS, save

import pimeter as pm

LEVELS = [0.05, 0.5, 0.9, 0.97]
LIMITS = {torch.float32: 1e-5, torch.float64: 1e-9}
DISTRIBUTIONS = {
    "normal": lambda rng, shape: 100.0 + 3.0 * rng.standard_normal(shape),
    "cauchy": lambda rng, shape: rng.standard_cauchy(shape),
    "tied": lambda rng, shape: rng.integers(0, 6, shape).astype(float),
    "far": lambda rng, shape: np.where(np.arange(shape[1]) % 40 == 39, 1e6, rng.standard_normal(shape)),
}


def distance(distribution: str, shape: tuple[int, int], dtype: torch.dtype, device: str, kind: str) -> float:
    """Largest distance to the answers for the same numbers as a float64 array."""
    rng = np.random.default_rng(7)
    x = torch.tensor(DISTRIBUTIONS[distribution](rng, shape), dtype=dtype)
    options = {"beta": 1.0} if "beta" in kind else {}
    if "reflect" in kind:
        x, options = x.abs(), options | {"reflect": True}
    weights = rng.choice([0.0, 0.25, 1.0, 2.0, 3.5], shape) if "weights" in kind else None
    if "odd" in kind:
        x[0, 1], x[1, :2] = torch.nan, torch.inf
    own = None if weights is None else torch.tensor(weights, device=device)
    ours = pm.quantile(x.to(device), LEVELS, 1, weights=own, **options).double().cpu().numpy()
    plain = x.double().numpy()
    expected = np.asarray(pm.quantile(plain, LEVELS, 1, weights=weights, **options))
    middle = np.subtract(*np.nanquantile(np.where(np.isfinite(plain), plain, np.nan), [0.75, 0.25], axis=1))
    is_same = (ours == expected) | (np.isnan(ours) & np.isnan(expected))
    with np.errstate(invalid="ignore"):
        off = np.abs(ours - expected) / np.maximum(np.abs(expected), middle)
    return float(np.where(is_same, 0.0, np.where(np.isnan(off), np.inf, off)).max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="short rows, nothing saved")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the table")
    given = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    name = torch.cuda.get_device_name() if device == "cuda" else "CPU"
    versions = f"torch {torch.__version__}, numpy {np.__version__}, Python {platform.python_version()}"
    print(name, versions)
    head = f"| what | neurons x errors | dtype | {' | '.join(DISTRIBUTIONS)} |"
    print(head)
    cases = [("rule", (3, 3)), ("rule", (5, 200)), ("beta", (5, 200)), ("weights", (3, 60)), ("weights, beta", (3, 60))]
    cases += [("reflect", (3, 80)), ("odd", (3, 40)), ("odd, beta", (3, 40))]
    if not given.quick:
        cases += [("rule", (3, n)) for n in (1000, 2000, 3000, 40_000)] + [("beta", (3, 1000)), ("beta", (3, 30_000))]
        cases += [("beta", (130, 9000)), ("rule", (130, 9000)), ("odd", (3, 3000)), ("odd, beta", (3, 9000))]
    lines, is_fine = [], True
    for kind, shape in cases:
        for dtype, limit in LIMITS.items():
            found = [distance(distribution, shape, dtype, device, kind) for distribution in DISTRIBUTIONS]
            is_fine &= max(found) <= limit
            numbers = " | ".join(f"{off:.0e}" + ("" if off <= limit else " **above**") for off in found)
            lines.append(f"| {kind} | {shape[0]:,} x {shape[1]:,} | {str(dtype)[6:]} | {numbers} |")
            print(lines[-1], flush=True)
    if not given.quick:
        slug = re.sub(r"\W+", "_", name.lower())
        text = f"# Tensors against NumPy arrays: {name}\n\n`python benchmarks/torch_accuracy.py`. {versions}.\n"
        rows = "\n".join(lines)
        table = f"{text}\n{head}\n{'|---' * (3 + len(DISTRIBUTIONS))}|\n{rows}\n"
        save(__file__, table, name=f"torch_accuracy_{slug}", packages=["torch", "triton"], folder=given.out)
    if not is_fine:
        sys.exit("Some numbers are above their limit.")


if __name__ == "__main__":
    main()
