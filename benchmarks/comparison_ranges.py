"""Do the ranges of `compare` contain the true differences, and does it tell models apart that differ?

    python benchmarks/comparison_ranges.py [--quick] [--seed SEED]

Two models (three in some cells) on the same rows: their errors have the noise in common and differ in what they miss.
The true difference of each score is that of 20 million rows, or of a long stretch where rows depend on each other. Each
cell has 2,000 draws of 100 rows; with `time`, 200 and 500 rows of autoregressive noise and predictions. Coverage
below and above the bounds is tested (binomial), each for all cells together (Holm). A range that is too short misleads;
one that is too long is conservative, and that of a difference of coverages has to be where it rests on a handful of
rows that one model alone covers: their number is discrete. Constants were chosen on other seeds and other noise.
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Iterator
from importlib.metadata import version

import numpy as np
from provenance import save
from scipy.signal import lfilter
from scipy.stats import binomtest

import pimeter as pm

SEED = 20261118
N_DRAWS, N_ROWS, N_TRUTH = 2000, 100, 4_000_000
LEVEL = 0.9
BOUNDS = {False: (0.93, 0.97), True: (0.91, 0.97)}  # by whether rows depend on each other
ERROR = 0.05  # of all cells together
NOISE = {
    "normal": lambda rng, n: rng.normal(size=n),
    "t4": lambda rng, n: rng.standard_t(4, n) / 2**0.5,
    "gumbel": lambda rng, n: (rng.gumbel(size=n) - np.euler_gamma) * 6**0.5 / np.pi,
    "heteroscedastic": lambda rng, n: rng.normal(size=n) * rng.uniform(0.2, 1.6, n),
}
# What the two models miss of two independent parts of the signal, and their bias.
MODELS = {
    "similar": ((0.3, 0.0, 0.0), (0.3, 0.15, 0.0)),
    "independent": ((0.4, 0.0, 0.0), (0.0, 0.5, 0.0)),
    "biased": ((0.25, 0.0, 0.0), (0.25, 0.0, 0.3)),
}
HALF_WIDTHS = (1.75, 2.0)


def draw(rng: np.random.Generator, noise: str, models: str, n: int, phi: float = 0.0) -> tuple[np.ndarray, dict]:
    """Targets, and the intervals of two models."""
    a, b = rng.normal(size=(2, n + 200))
    errors = NOISE[noise](rng, n + 200)
    if phi:
        a, b, errors = (lfilter([(1 - phi**2) ** 0.5], [1, -phi], x) for x in (a, b, errors))
    a, b, errors = a[200:], b[200:], errors[200:]
    said = {}
    for name, (of_a, of_b, bias), half in zip("pq", MODELS[models], HALF_WIDTHS, strict=True):
        missed = of_a * a + of_b * b + bias
        said[name] = np.stack([missed - half, missed + half], axis=1)
    return errors, said


def truth(noise: str, models: str, phi: float, n: int) -> dict[str, float]:
    """Differences of scores on very many rows."""
    y, said = draw(np.random.default_rng(0), noise, models, n, phi)
    found = pm.compare(y, said, confidence_level=LEVEL)
    return {one.score: one.value for one in found.contrasts}


def cells(quick: bool) -> Iterator[tuple[str, str, float, int]]:
    for noise in NOISE:
        for models in MODELS:
            yield noise, models, 0.0, N_ROWS
            if quick:
                return
    for phi, n in ((0.5, 200), (0.8, 500)):
        for models in MODELS:
            yield "normal", models, phi, n


def rejected(rows: list[dict], side: str) -> list[dict]:
    """Cells whose p-value of one side is too small, for all cells together (Holm)."""
    ordered = sorted(rows, key=lambda row: row[side])
    n = next((k for k, row in enumerate(ordered) if row[side] > ERROR / (len(rows) - k)), len(rows))
    return ordered[:n]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one cell, few draws; nothing is written")
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    n_draws = 50 if options.quick else N_DRAWS
    rows = []
    for i, (noise, models, phi, n) in enumerate(cells(options.quick)):
        true = truth(noise, models, phi, N_TRUTH // (40 if options.quick else 1))
        rng = np.random.default_rng([options.seed, i])
        hits = dict.fromkeys(true, 0)
        told = dict.fromkeys(true, 0)
        for _ in range(n_draws):
            y, said = draw(rng, noise, models, n, phi)
            found = pm.compare(y, said, confidence_level=LEVEL, time=np.arange(n) if phi else None)
            for one in found.contrasts:
                hits[one.score] += one.lower <= true[one.score] <= one.upper
                told[one.score] += bool(one.better)
        for score, hit in hits.items():
            if score == "mean_width":  # constant here
                continue
            low, high = BOUNDS[bool(phi)]
            rate = hit / n_draws
            p_values = {
                "too_low": float(binomtest(hit, n_draws, low, alternative="less").pvalue),
                "too_high": float(binomtest(hit, n_draws, high, alternative="greater").pvalue),
            }
            rows.append(
                {"noise": noise, "models": models, "phi": phi, "rows": n, "score": score, "coverage": rate}
                | {"true_difference": true[score], "told": told[score] / n_draws, "is_off": ""}
                | p_values
            )
        print(*(f"{r['score']} {r['coverage']:.3f}" for r in rows[-5:]), noise, models, phi, n, flush=True)
    too_low, too_high = (rejected(rows, side) for side in ("too_low", "too_high"))
    for row in rows:
        row["is_off"] = "too low" if row in too_low else "conservative" if row in too_high else ""
    lines = [
        "| noise | models | phi | rows | score | coverage of ranges | outside | true difference | told apart |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {r['noise']} | {r['models']} | {r['phi']:g} | {r['rows']} | {r['score']} | {r['coverage']:.3f} "
        f"| {r['is_off']} | {r['true_difference']:.4f} | {r['told']:.2f} |"
        for r in rows
    ]
    for is_dependent in (False, True):
        held = [r["coverage"] for r in rows if bool(r["phi"]) == is_dependent]
        if held:
            low, high = BOUNDS[is_dependent]
            kind = "dependent" if is_dependent else "independent"
            lines += ["", f"{kind} rows: {min(held):.3f} to {max(held):.3f}, {np.mean(held):.3f} on average; asked: "]
            lines[-1] += f"{low} to {high}, nominal .95, {n_draws:,} draws a cell."
    of_coverage = sum(row["score"] == "coverage" for row in too_high)
    lines += ["", "| cells, judged together (Holm, 5 %) | number | of |", "|---|---|---|"]
    lines += [f"| below the bounds | {len(too_low)} | {len(rows)} |"]
    lines += [f"| above the bounds (conservative) | {len(too_high)} | {len(rows)} |"]
    lines += [f"| of these differences of coverage | {of_coverage} | {len(too_high)} |"]
    print("\n".join(lines[-10:]))
    if not options.quick:
        title = f"Seed {options.seed}, Python {platform.python_version()}, numpy {version('numpy')}."
        save(__file__, "\n".join(["# Ranges of `compare`", "", title, "", *lines]) + "\n")


if __name__ == "__main__":
    main()
