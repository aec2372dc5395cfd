"""Why does `joint=True` learn margins on other rows than those that its last neuron sees?

    python benchmarks/joint_margins.py [--quick]

Five independent outputs with normal errors, all of which an interval has to hold at once. Each output has a margin by
a neuron of its own, and a rank is taken of the error that is farthest out, `max_j e_j / r_j`: on the same rows, or,
as `joint=True` does it, on the other half of them. Coverage is known from the distribution.
"""

from __future__ import annotations

import argparse
import math
import platform
from importlib.metadata import version

import numpy as np
from provenance import save
from scipy import stats

import pimeter as pm

SEED = 20261130
LEVEL = 0.95
OUTPUTS = 5


def zero(X: np.ndarray) -> np.ndarray:
    return np.zeros((len(X), OUTPUTS))


def ranked(errors: np.ndarray) -> float:
    """The error of the rank that guarantees the level."""
    place = min(math.ceil((len(errors) + 1) * LEVEL), len(errors))
    return np.sort(errors)[place - 1]


def coverage(margin: np.ndarray) -> float:
    """Of all outputs at once."""
    return float(np.prod(2.0 * stats.norm.cdf(margin) - 1.0))


def both(m: int, draw: int) -> tuple[float, float]:
    """Coverage with one and the same rows for both jobs, and with `joint=True`."""
    rng = np.random.default_rng([SEED, m, draw])
    errors = rng.standard_normal((m, OUTPUTS))
    margins = pm.quantile(np.abs(errors), LEVEL, 0, reflect=True)
    farthest = ranked((np.abs(errors) / margins).max(axis=1))
    X = rng.uniform(size=(m, 1))
    model = pm.IntervalRegressor(zero, confidence_level=LEVEL, joint=True, random_state=draw).calibrate(X, errors)
    return coverage(farthest * margins), coverage(model.predict_interval(X[:1])[0, :, 1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few draws, nothing saved")
    quick = parser.parse_args().quick
    n_draws = 20 if quick else 2000
    versions = ", ".join(f"{name} {version(name)}" for name in ("pimeter", "numpy", "scipy"))
    lines = [
        "# Margins of outputs, and of all at once, from the same rows?\n",
        f"`python benchmarks/joint_margins.py`, seed {SEED}; {versions}, Python {platform.python_version()}.\n",
        f"{OUTPUTS} outputs, asked for {LEVEL} of all at once; {n_draws:,} draws, ± standard error.\n",
        "| m | the same rows, coverage | joint=True, coverage |",
        "|---|---|---|",
    ]
    for m in (40, 100, 400):
        found = np.array([both(m, draw) for draw in range(n_draws)])
        cells = [
            f"{mean:.3f} ± {error:.3f}"
            for mean, error in zip(found.mean(axis=0), stats.sem(found, axis=0), strict=True)
        ]
        lines.append(f"| {m} | {' | '.join(cells)} |")
    text = "\n".join([*lines, ""])
    print(text)
    if not quick:
        save(__file__, text)


if __name__ == "__main__":
    main()
