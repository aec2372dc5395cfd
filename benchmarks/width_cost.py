"""What does a width that learns cost? Time of `fit` over that of CV+, and of `scaled` on large tables.

    python benchmarks/width_cost.py [--quick]

The model is a forest of 100 extremely random trees on one core, and times are CPU seconds of this process, so that
other processes on the machine count little: those of `fit` with `cv=5` and a width over that of `cv=5` without one, in
the same run. Large tables are calibrated around a function that is known, so that all time is the width's; half of the
rows learn. Coverage there is that of 50,000 new rows.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import time
from collections.abc import Callable
from importlib.metadata import version

import numpy as np
from provenance import save
from sklearn.ensemble import ExtraTreesRegressor

import pimeter as pm

SEED = 20261118
LEVEL = 0.9
SHAPES, TABLES = ((2000, 20), (2000, 128), (10_000, 8)), ((92_743, 90), (1_000_000, 20))
WIDTHS = ("scaled", "auto")


def rows(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Noise that grows along the third column, around two others."""
    rng = np.random.default_rng([SEED, n, d, seed])
    X = rng.normal(size=(n, d)).astype(np.float32)
    return X, signal(X) + np.exp(X[:, 2] / 2) * rng.normal(size=n)


def signal(X: np.ndarray) -> np.ndarray:
    return np.sin(2 * X[:, 0]) + X[:, 1]


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def cost_of_fit(n: int, d: int, width: str) -> float:
    X, y = rows(n, d, 0)
    model = ExtraTreesRegressor(100, n_jobs=1, random_state=0)
    return seconds(
        lambda: pm.IntervalRegressor(model, confidence_level=LEVEL, width=width, cv=5, random_state=0).fit(X, y)
    )


def cost_of_table(n: int, d: int) -> tuple[float, float, float, float]:
    """CPU seconds of calibrate and of predictions, coverage of new rows, memory beyond the table in MB."""
    X, y = rows(n, d, 0)
    new, y_new = rows(50_000, d, 1)
    model = pm.IntervalRegressor(signal, confidence_level=LEVEL, width="scaled", random_state=0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    calibrate = seconds(lambda: model.calibrate(X, y))
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    intervals: list[np.ndarray] = []
    predict = seconds(lambda: intervals.append(model.predict_interval(new)))
    return calibrate, predict, pm.coverage_score(y_new, intervals[0]), memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small tables, nothing saved")
    quick = parser.parse_args().quick
    versions = ", ".join(f"{name} {version(name)}" for name in ("pimeter", "numpy", "scikit-learn"))
    out = [
        "# What a width costs\n",
        f"`python benchmarks/width_cost.py`, {versions}, Python {platform.python_version()}, level {LEVEL}.\n",
        "CPU seconds. `scaled`, calibrated around a function that is known:\n",
        "| rows x columns | calibrate | predict 50,000 rows | coverage | memory beyond the tables |",
        "|---|---|---|---|---|",
    ]
    # First of all, and the smaller first: the memory of a process is the most that it ever had.
    for n, d in ((3000, 5),) if quick else TABLES:
        calibrate, predict, coverage, memory = cost_of_table(n, d)
        out.append(f"| {n:,} x {d} | {calibrate:.1f} s | {predict:.2f} s | {coverage:.3f} | {memory:.0f} MB |")
        print(out[-1], flush=True)
    out += [
        "\n`fit` of 100 extremely random trees with `cv=5`, without a width and with one:\n",
        "| rows x columns | CV+ | scaled, cv=5 | ratio | auto, cv=5 | ratio |",
        "|---|---|---|---|---|---|",
    ]
    for n, d in ((300, 5),) if quick else SHAPES:
        plain, *others = (cost_of_fit(n, d, width) for width in ("constant", *WIDTHS))
        cells = " | ".join(f"{one:.1f} s | {one / plain:.2f}" for one in others)
        out.append(f"| {n:,} x {d} | {plain:.1f} s | {cells} |")
        print(out[-1], flush=True)
    out.append(f"\nLoad at the end {os.getloadavg()[0]:.1f}.")
    text = "\n".join([*out, ""])
    print(text)
    if not quick:
        save(__file__, text)


if __name__ == "__main__":
    main()
