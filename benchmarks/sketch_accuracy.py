"""How good is a summary of bounded size? `QuantileSketch` against t-digest, KLL and DDSketch at equal size in bytes.

    python benchmarks/sketch_accuracy.py [--quick]

A million errors arrive in a hundred sketches, which go through bytes and are merged in random order. The error is that
of the level, |fraction below the answer - level|, in per cent, the mean over seeds. Peers are Apache's `datasketches`
and `ddsketch`; one that is not installed is left out. The table goes to `results/sketch_accuracy.md`.
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from provenance import save

import pimeter as pm

LEVELS = (0.5, 0.9, 0.95, 0.99, 0.999)
DISTRIBUTIONS = ("standard_normal", "standard_cauchy", "standard_exponential", "two humps")
PARTS = 100


def draw(distribution: str, n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if distribution == "two humps":
        return rng.choice([-10.0, 10.0], n) + rng.standard_normal(n)
    return getattr(rng, distribution)(n)


def ours(parts: list[np.ndarray], order: np.ndarray) -> tuple[np.ndarray, int]:
    sent = [pm.QuantileSketch(1024).update(part).to_bytes() for part in parts]
    whole = pm.QuantileSketch(1024)
    for i in order:
        whole = whole.merge(pm.QuantileSketch.from_bytes(sent[i]))
    return whole.quantile(LEVELS), len(whole.to_bytes())


def of_datasketches(kind: str, k: int) -> Callable[[list[np.ndarray], np.ndarray], tuple[np.ndarray, int]]:
    def run(parts: list[np.ndarray], order: np.ndarray) -> tuple[np.ndarray, int]:
        import datasketches

        make = getattr(datasketches, kind)
        sent = []
        for part in parts:
            sketch = make(k)
            sketch.update(part)
            sent.append(sketch.serialize())
        whole = make(k)
        for i in order:
            whole.merge(make.deserialize(sent[i]))
        return np.array([whole.get_quantile(p) for p in LEVELS]), len(whole.serialize())

    return run


def ddsketch(parts: list[np.ndarray], order: np.ndarray) -> tuple[np.ndarray, int]:
    """Merged without bytes: its package writes none of its own; a bin is counted as 8 bytes."""
    from ddsketch import DDSketch

    whole: Any = DDSketch(0.004)
    for i in order:
        own: Any = DDSketch(0.004)
        for value in parts[i].tolist():
            own.add(value)
        whole.merge(own)
    n_bins = sum(1 for store in (whole._store, whole._negative_store) for count in store.bins if count)
    return np.array([whole.get_quantile_value(p) for p in LEVELS]), 8 * n_bins


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small samples, nothing saved")
    quick = parser.parse_args().quick
    n, seeds = (20_000, 1) if quick else (1_000_000, 5)
    peers: dict[str, Callable[..., tuple[np.ndarray, int]]] = {"QuantileSketch(1024)": ours}
    if find_spec("datasketches"):
        peers["t-digest, k = 880"] = of_datasketches("tdigest_double", 880)
        peers["KLL, k = 820"] = of_datasketches("kll_doubles_sketch", 820)
    if find_spec("ddsketch"):
        peers["DDSketch, 0.4 %"] = ddsketch
    print(f"numpy {np.__version__}")
    lines = []
    for distribution in DISTRIBUTIONS:
        for name, run in peers.items():
            found = []
            for seed in range(1 if name.startswith("DD") else seeds):
                x = draw(distribution, n, seed)
                order = np.random.default_rng(seed).permutation(PARTS)
                answers, size = run(np.array_split(x, PARTS), order)
                found.append(np.abs(np.searchsorted(np.sort(x), answers) / n - LEVELS))
            errors = " | ".join(f"{100.0 * error:.4f}" for error in np.mean(found, axis=0))
            lines.append(f"| {distribution.replace('_', ' ')} | {name} | {size:,} | {errors} |")
            print(lines[-1], flush=True)
    if quick or not (find_spec("datasketches") and find_spec("ddsketch")):
        print("Nothing saved: quick, or a peer is missing (make bench-peers has them all).")
    else:
        head = f"| distribution | sketch | bytes | {' | '.join(map(str, LEVELS))} |\n{'|---' * (3 + len(LEVELS))}|\n"
        text = (
            f"# Sketches of equal size\n\n`python benchmarks/sketch_accuracy.py`: errors of level in per cent, {n:,} "
            f"errors in {PARTS} sketches, merged in random order, means of {seeds} seeds (DDSketch one). "
            f"numpy {np.__version__}, Python {platform.python_version()}.\n\n"
        )
        save(__file__, text + head + "\n".join(lines) + "\n", packages=["datasketches", "ddsketch"])


if __name__ == "__main__":
    main()
