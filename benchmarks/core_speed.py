"""How fast is the way from `fit` to bounds, and `measure`? Processor time as a ratio to NumPy's, now and at a commit.

    python benchmarks/core_speed.py [--quick] [--rounds 5] [--against COMMIT]

Each line is what a user calls, the peer what NumPy takes to sort or to select the same number of values in the same
process. Times are those of all threads of the process, so that neighbours on shared cores hardly count; ratios are
medians over rounds. With `--against` another commit is built in a folder of its own, and both are timed in turn, in
processes of their own: the last column is how many times as long it takes now. The lines call nothing but
`IntervalRegressor` and `measure`, whose names have not changed since there is native code.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np
from commits import ROOT, built
from provenance import save
from sklearn.linear_model import LinearRegression

import pimeter as pm

SEED = 20261118
N_FOLDS = 10
PARTS = 16  # in which the peer of CV+ selects, so that its table needs little memory


class Line(NamedTuple):
    """What is timed, and NumPy's work beside it."""

    what: str
    run: Callable[[], object]
    peer: Callable[[], object]


def lines(n: int, n_cv: int) -> list[Line]:
    rng = np.random.default_rng(SEED)
    X = rng.standard_normal((2 * n, 3))
    y = X @ [1.0, 2.0, 3.0] + rng.standard_normal(2 * n)
    prediction, noise = y[:n] - rng.standard_normal(n), rng.standard_normal(n)
    table = rng.standard_normal((n_cv // PARTS, n_cv))

    def split() -> object:
        return pm.IntervalRegressor(LinearRegression(), random_state=0).fit(X[:n], y[:n]).predict_interval(X[n:])

    def folds() -> object:
        model = pm.IntervalRegressor(LinearRegression(), cv=N_FOLDS, random_state=0)
        return model.fit(X[:n_cv], y[:n_cv]).predict_interval(X[n_cv : 2 * n_cv])

    def partition() -> object:
        return [np.partition(table, int(0.95 * n_cv), axis=1) for _ in range(PARTS)]

    return [
        Line(f"fit + predict_interval, {n:,} + {n:,} rows / sort of {n:,}", split, lambda: np.sort(noise)),
        Line(f"CV+ of {N_FOLDS} folds, {n_cv:,} + {n_cv:,} rows / {n_cv:,} selections of {n_cv:,}", folds, partition),
        Line(f"measure, {n:,} rows / sort of {n:,}", lambda: pm.measure(y[:n], prediction), lambda: np.sort(noise)),
    ]


def processor_time(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def ratios(n: int, n_cv: int, rounds: int) -> dict[str, float]:
    """Of each line, the median over rounds; the first round, in which packages are loaded, is left out."""
    every = lines(n, n_cv)
    for line in every:
        line.run()
    return {
        line.what: statistics.median(processor_time(line.run) / processor_time(line.peer) for _ in range(rounds))
        for line in every
    }


def ratios_of(source: Path, arguments: list[str]) -> dict[str, float]:
    """What this script prints for the package in a folder."""
    environment = os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--json", *arguments]
    found = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    answer: dict[str, float] = json.loads(found.stdout)
    return answer


def compared(commit: str, arguments: list[str], repeats: int) -> tuple[dict[str, float], dict[str, float]]:
    """Medians of the ratios of another commit and of the tree as it is, timed in turn."""
    with built(commit) as before:
        found = [[ratios_of(tree / "src", arguments) for tree in (before, ROOT)] for _ in range(repeats)]
    old, new = ([pair[i] for pair in found] for i in (0, 1))
    return tuple({what: statistics.median(one[what] for one in each) for what in each[0]} for each in (old, new))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rows, and nothing is saved")
    parser.add_argument("--rounds", type=int, default=5, help="how often each line is timed in a process")
    parser.add_argument("--against", metavar="COMMIT", help="also time this commit, built in a folder of its own")
    parser.add_argument("--repeats", type=int, default=3, help="processes of each commit with --against")
    parser.add_argument("--json", action="store_true", help="print ratios alone, as --against reads them")
    options = parser.parse_args()
    n, n_cv = (20_000, 800) if options.quick else (1_000_000, 8_000)
    if options.json:
        print(json.dumps(ratios(n, n_cv, options.rounds)))
        return
    arguments = ["--rounds", str(options.rounds), *(["--quick"] if options.quick else [])]
    head = ["# Speed of the core", "", "`python benchmarks/core_speed.py`, which says how it is timed.", ""]
    if options.against:
        old, new = compared(options.against, arguments, options.repeats)
        table = [f"| processor time | at {options.against} | now | now / then |", "|---|---|---|---|"]
        table += [f"| {what} | {old[what]:.3g} | {new[what]:.3g} | {new[what] / old[what]:.2f} |" for what in new]
    else:
        new = ratios_of(ROOT / "src", arguments)
        table = ["| processor time | now |", "|---|---|", *(f"| {what} | {ratio:.3g} |" for what, ratio in new.items())]
    versions = f"numpy {version('numpy')}, scikit-learn {version('scikit-learn')}, {platform.machine()}"
    text = "\n".join([*head, *table, "", f"Median of {options.rounds} rounds; {versions}.", ""])
    print(text)
    if not options.quick:
        save(__file__, text)


if __name__ == "__main__":
    main()
