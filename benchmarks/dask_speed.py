"""Is the distributed engine right, bounded in memory, and no slower than its data? Against `dask.array.percentile`.

    python benchmarks/dask_speed.py [--quick]

Standard normal errors are made lazily, chunk by chunk, on a LocalCluster of two processes with 1 GB each. Truth is
`pimeter.quantile` of the same data in memory, where it fits. The table goes to `results/dask_speed.md`.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import signal
import threading
import time
from collections.abc import Callable

import dask
import dask.array as da
import numpy as np
import psutil
from dask.distributed import Client, LocalCluster
from provenance import save

import pimeter as pm

LEVEL = 0.95
CHUNK = 2_000_000
GROUPS = 100_000
SEED = 7


def errors(n: int) -> da.Array:
    return da.random.default_rng(SEED).standard_normal(n, chunks=min(n, CHUNK))


def timed(collection: da.Array) -> tuple[float, float]:
    start = time.perf_counter()
    found = np.asarray(collection.compute()).ravel()[0]
    return float(found), time.perf_counter() - start


def in_memory(n: int) -> tuple[float, float]:
    """Our answer and the plain quantile, for the same data as one array here."""
    with dask.config.set(scheduler="threads"):
        x = errors(n).compute()
    return float(pm.quantile(x, LEVEL)), float(np.quantile(x, LEVEL))


def with_a_death(cluster: LocalCluster, n: int) -> float:
    """The answer when one of the workers is killed in the middle."""
    doomed = next(iter(cluster.workers.values()))
    timer = threading.Timer(1.0, os.kill, (doomed.pid, signal.SIGKILL))
    timer.start()
    found, _ = timed(pm.quantile(errors(n), LEVEL))
    timer.join()
    return found


def watched(call: Callable[[], object], pids: list[int]) -> tuple[object, str]:
    """What a call returns, and what it took: seconds, and memory of the largest of these processes."""
    most, ended = [0], threading.Event()

    def watch() -> None:
        while not ended.wait(0.1):
            most[0] = max(most[0], *(psutil.Process(pid).memory_info().rss for pid in pids if psutil.pid_exists(pid)))

    watcher = threading.Thread(target=watch)
    watcher.start()
    start = time.perf_counter()
    try:
        found = call()
    finally:
        ended.set()
        watcher.join()
    return found, f"{time.perf_counter() - start:.1f} s, at most {most[0] / 1e9:.2f} GB in a process"


def groups(n: int, n_groups: int, pids: list[int]) -> str:
    """A neuron for each group, and the distance to the answers in memory."""
    x = errors(n)
    by = da.random.default_rng(SEED + 1).integers(0, n_groups, n, chunks=x.chunks)
    found, cost = watched(lambda: pm.grouped_quantile(x, by, LEVEL), pids)
    with dask.config.set(scheduler="threads"):
        x, by = dask.compute(x, by)
    here = pm.grouped_quantile(x, by, LEVEL)
    off = float(np.abs(found.quantiles - here.quantiles).max())
    return (
        f"`grouped_quantile`, {n:,} errors in {len(found.labels):,} groups: {cost}; largest distance to the answers in "
        f"memory {off:.1e}."
    )


def rows(n: int, pids: list[int]) -> str:
    """`measure`, and the distance of its margin to the order statistic of all errors."""
    x = errors(n)
    found, cost = watched(lambda: pm.measure(x, da.zeros_like(x), confidence_level=LEVEL), pids)
    with dask.config.set(scheduler="threads"):
        absolute = abs(x).compute()
    rank = math.ceil((n + 1) * LEVEL - 1e-9) - 1
    off = abs(found.margin[0] - float(np.partition(absolute, rank)[rank]))
    return f"`measure`, {n:,} rows: {cost}; distance of its margin to the order statistic of all errors {off:.1e}."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small lengths on threads, nothing saved")
    quick = parser.parse_args().quick
    versions = f"dask {dask.__version__}, numpy {np.__version__}, Python {platform.python_version()}"
    print(versions)
    lengths = [100_000, 3_000_000] if quick else [1_000_000, 10_000_000, 100_000_000, 200_000_000, 1_000_000_000]
    head = "| errors | reads | pimeter, s | s per 1e6 | da.percentile, s | error of pimeter | error of percentile |"
    print(head)
    lines, notes = [], []

    def table() -> None:
        for n in lengths:
            found, seconds = timed(pm.quantile(errors(n), LEVEL))
            plain, plain_seconds = timed(da.percentile(errors(n), 100.0 * LEVEL, method="linear"))
            distances = [""] * 2  # more errors than are held in memory here
            if n <= 10_000_000:
                distances = [f"{abs(a - b):.1e}" for a, b in zip((found, plain), in_memory(n), strict=True)]
            reads = 1 if n <= CHUNK else 3
            times = f"{seconds:.1f} | {1e6 * seconds / n:.3f} | {plain_seconds:.1f}"
            lines.append(f"| {n:,} | {reads} | {times} | {' | '.join(distances)} |")
            print(lines[-1], flush=True)

    if quick:
        with dask.config.set(scheduler="threads"):
            table()
            print(groups(200_000, 5000, [os.getpid()]))
            print(rows(1_200_000, [os.getpid()]))
        return
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit="1GB", dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        table()
        n = 50_000_000
        whole, _ = timed(pm.quantile(errors(n), LEVEL))
        killed = with_a_death(cluster, n)
        notes.append(f"{n:,} errors: {whole!r}; with one worker killed after a second: {killed!r}.")
        print(notes[-1])
        pids = [worker.pid for worker in cluster.workers.values()]
        for note in (groups(20_000_000, GROUPS, pids), rows(20_000_000, pids)):
            notes.append(note)
            print(note)
    text = (
        f"# Quantiles of dask arrays\n\n`python benchmarks/dask_speed.py`, seed {SEED}, level {LEVEL}, standard normal "
        f"errors made lazily in chunks of {CHUNK:,}, LocalCluster of 2 processes with 1 GB each; "
        f"{os.cpu_count()} cores. {versions}. Errors are distances to the same method in "
        f"memory (`pimeter.quantile`, `numpy.quantile`).\n\n{head}\n{'|---' * 7}|\n"
    )
    save(__file__, text + "\n".join(lines) + "\n\n" + "\n\n".join(notes) + "\n", packages=["dask", "distributed"])


if __name__ == "__main__":
    main()
