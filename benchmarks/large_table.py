"""How long do `calibrate` and `predict_interval` take on a table of Song Year's shape? Generated, 515,345 x 90.

    python benchmarks/large_table.py [--quick]

20 % of the 463,715 training rows calibrates, 51,630 rows are predicted, as in the table's published split. The model
is a matrix product, so that next to all time is ours. Times are ratios to the yardstick in the same run: the model's
predictions for these rows and one `np.quantile` of the errors. Each width runs in a process of its own; memory is what
it takes beyond the table. A learned scale takes minutes, so it has one round.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from importlib.metadata import version

import numpy as np
from provenance import save

import pimeter as pm

SEED = 20261115
N_FEATURES = 90
N_CALIBRATION, N_NEW = 92_743, 51_630
ROUNDS = {"constant": 3, "scaled": 1}


def peak() -> float:
    """Most memory so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured(width: str, n: int, n_new: int) -> dict[str, float]:
    """Seconds and memory of one width."""
    rng = np.random.default_rng([SEED, n])
    X = rng.standard_normal((n + n_new, N_FEATURES))
    weights = rng.uniform(size=N_FEATURES)
    y = X @ weights + rng.standard_normal(len(X)) * (0.5 + np.abs(X[:, 0]))
    pm.IntervalRegressor(lambda X: X @ weights).calibrate(X[:100], y[:100]).predict_interval(X[:10])  # compiled code
    start = time.perf_counter()
    np.quantile(np.abs(y[:n] - X[:n] @ weights), 0.95)
    X[n:] @ weights
    yardstick = time.perf_counter() - start
    before = peak()
    model = pm.IntervalRegressor(lambda X: X @ weights, width=width, random_state=0)
    start = time.perf_counter()
    model.calibrate(X[:n], y[:n])
    calibrated = time.perf_counter() - start
    start = time.perf_counter()
    bounds = model.predict_interval(X[n:])
    predicted = time.perf_counter() - start
    return {
        "yardstick": yardstick,
        "calibrate": calibrated,
        "predict": predicted,
        "memory": peak() - before,
        "table": X.nbytes / 2**20,
        "coverage": float(pm.coverage_score(y[n:], bounds)),
    }


def in_a_process(width: str, n: int, n_new: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--one", width, str(n), str(n_new)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rows, nothing saved")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(measured(asked.one[0], int(asked.one[1]), int(asked.one[2]))))
        return
    n, n_new = (600, 100) if asked.quick else (N_CALIBRATION, N_NEW)
    lines = []
    for width, n_rounds in ROUNDS.items():
        rounds = [in_a_process(width, n, n_new) for _ in range(1 if asked.quick else n_rounds)]
        found = {key: float(np.median([one[key] for one in rounds])) for key in rounds[0]}
        lines.append(
            f"| {width} | {1e3 * found['yardstick']:.0f} ms | {found['calibrate']:.2f} s | "
            f"{found['calibrate'] / found['yardstick']:.0f} | {found['predict']:.2f} s | "
            f"{found['predict'] / found['yardstick']:.0f} | {found['memory']:.0f} MB | {found['coverage']:.3f} |"
        )
        print(lines[-1], flush=True)
    versions = ", ".join(f"{name} {version(name)}" for name in ("pimeter", "numpy", "scikit-learn"))
    print(f"{versions}.")
    if asked.quick:
        return
    head = f"""# How long does a table of Song Year's shape take?

{versions}, Python {platform.python_version()}, {os.cpu_count()} cores with {os.getloadavg()[0]:.0f} processes on them,
seed {SEED}; medians of 3 rounds, one of the scaled width. {N_CALIBRATION:,} of 515,345 generated rows with {N_FEATURES}
features calibrate, {N_NEW:,} are predicted ({found["table"]:.0f} MB in all). The yardstick is the model's predictions
and one `np.quantile`; memory is beyond the table.

| width | yardstick | calibrate | ratio | predict_interval | ratio | memory | coverage |
|---|---|---|---|---|---|---|---|"""
    save(__file__, "\n".join([head, *lines, ""]))


if __name__ == "__main__":
    main()
