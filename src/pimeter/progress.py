"""Jobs that run at the same time, and a line for each that is done."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from sklearn.utils.parallel import Parallel


def results_of(jobs: list[Any], what: str, estimator: Any) -> list[Any]:
    """Results of delayed jobs, as many at a time as `n_jobs` of the estimator says; with its `verbose` a line each."""
    start, found = perf_counter(), []
    for one in Parallel(n_jobs=estimator.n_jobs, return_as="generator")(jobs):
        found.append(one)
        if estimator.verbose:
            done = f"{what} {len(found)} of {len(jobs)}, {perf_counter() - start:.1f} s"
            print(f"[{type(estimator).__name__}] {done}", flush=True)  # noqa: T201 (asked for)
    return found
