"""How fast is `measure`? Time on many rows as a ratio to sorting the errors once with `np.sort`, in the same run.

    python benchmarks/measure_speed.py [--quick]

With more than 5,000 rows some checks look at 5,000 of them at most (the gain of a width at 2,000, the worst subgroup at
3,000). Their time hardly depends on the number of rows and is shown by itself: it is that of the checks, and of the
columns of features they read, as `measure` itself calls them. The rest is what has to stay below 6.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version

import numpy as np
from provenance import save

from pimeter import measure
from pimeter.evaluation import measuring
from pimeter.evaluation.diagnosis import checks

SEED = 20261115
ON_SUBSAMPLE = ("worst_subgroup", "gain", "skew", "heavy", "discrete", "drift", "serial")  # "bias" also sees all rows


class TimedCheck:
    """A check that adds its time to what was spent."""

    def __init__(self, check: object, spent: list[float]) -> None:
        self.check, self.name, self.spent = check, check.name, spent

    def applies(self, evidence: object) -> bool:
        return self.check.applies(evidence)

    def __call__(self, *args: object) -> object:
        start = time.perf_counter()
        found = self.check(*args)
        self.spent[0] += time.perf_counter() - start
        return found


@contextmanager
def timed_checks(spent: list[float]) -> Iterator[None]:
    """Add up the time of the checks that look at a subsample, and of the columns of features there."""
    all_checks, given = checks.CHECKS, measuring.given

    def timed_given(*args: object) -> object:
        start = time.perf_counter()
        found = given(*args)
        spent[0] += time.perf_counter() - start
        return found

    try:
        checks.CHECKS = tuple(TimedCheck(one, spent) if one.name in ON_SUBSAMPLE else one for one in all_checks)
        measuring.given = timed_given
        yield
    finally:
        checks.CHECKS, measuring.given = all_checks, given


def medians(n: int, n_features: int, repeats: int) -> tuple[float, float, float]:
    """Seconds to sort the errors, of `measure`, and of its checks on a subsample."""
    rng = np.random.default_rng([SEED, n])
    X = rng.standard_normal((n, n_features))
    y_pred = X @ rng.uniform(size=n_features)
    y_true = y_pred + rng.standard_normal(n)
    errors = y_true - y_pred
    measure(y_true[:1000], y_pred[:1000], X=X[:1000])  # imports and compiled code
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        np.sort(errors)
        sorting = time.perf_counter() - start
        spent = [0.0]
        with timed_checks(spent):
            start = time.perf_counter()
            measure(y_true, y_pred, X=X)
            found.append((sorting, time.perf_counter() - start, spent[0]))
    sorting, whole, checking = np.median(np.array(found), axis=0)
    return float(sorting), float(whole), float(checking)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rows, nothing saved")
    quick = parser.parse_args().quick
    lines = []
    for n in (20_000,) if quick else (100_000, 1_000_000):
        sorting, whole, checking = medians(n, n_features=10, repeats=1 if quick else 7)
        ratio = (whole - checking) / sorting
        lines.append(f"| {n:,} | {1e3 * sorting:.1f} ms | {ratio:.2f} | {checking:.2f} s |")
        print(lines[-1], flush=True)
    versions = ", ".join(f"{name} {version(name)}" for name in ("pimeter", "numpy", "scikit-learn", "statsmodels"))
    if quick:
        print(f"{versions}. Nothing saved.")
        return
    head = f"""# How fast is `measure`?

{versions}, Python {platform.python_version()}, seed {SEED}; medians of repeats. Ten features.

| rows | np.sort of the errors | `measure` without the checks on 5,000 rows, ratio to it | these checks |
|---|---|---|---|"""
    save(__file__, "\n".join([head, *lines, ""]), packages=["statsmodels"])


if __name__ == "__main__":
    main()
