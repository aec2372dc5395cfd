"""How long do panel intervals take for 10,000 series, 100 windows of each and 28 steps, and how much memory?

    python benchmarks/panel_speed.py [--quick] [--save]

Processor time of all threads, so that other programs beside it count little, and the largest memory of the process,
less what it held before. The frame of 28 million rows is of polars; `update` brings a day of targets for all series. A
context was not asked for; its own row is of a tenth of the series. `--save` writes `results/panel_speed.md`.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
import polars as pl
from provenance import save

import pimeter as pm

N_SERIES, N_WINDOWS, H = 10_000, 100, 28


def frame(y: np.ndarray, first: int, last: int, known: int) -> pl.DataFrame:
    """Windows made from one moment to another, as far as targets are known: the mean of the last seven stays."""
    made = np.arange(first, last)
    at = made[:, None] + np.arange(1, H + 1)
    held = at <= known
    mean = np.lib.stride_tricks.sliding_window_view(y, 7, axis=1).mean(axis=2)[:, made - 6]
    return pl.DataFrame(
        {
            "unique_id": np.repeat(np.arange(len(y), dtype=np.int32), held.sum()),
            "cutoff": np.tile(np.broadcast_to(made[:, None], at.shape)[held].astype(np.int32), len(y)),
            "ds": np.tile(at[held].astype(np.int32), len(y)),
            "y": y[:, at[held]].ravel(),
            "mean": np.broadcast_to(mean[..., None], (*mean.shape, H))[:, held].ravel(),
        }
    )


def gigabytes() -> float:
    """Largest memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def measured(n_series: int, n_windows: int, context: str | None) -> list[str]:
    """Seconds of fit, predict and update, and gigabytes beside the frame, in this process."""
    warnings.simplefilter("ignore", pm.CoverageWarning)
    rng = np.random.default_rng(0)
    n = 7 + n_windows + H
    y = 100.0 * np.exp(rng.standard_normal((n_series, 1))) + rng.standard_normal((n_series, n))
    known = n - 2
    past = frame(y, 6, 6 + n_windows, known)
    newest = frame(y, n - 1 - H, n - 1, n - 1).filter(pl.col("ds") == n - 1)
    mean = y[:, -7:].mean(axis=1)
    future = pl.DataFrame(
        {
            "unique_id": np.repeat(np.arange(n_series, dtype=np.int32), H),
            "ds": np.tile(np.arange(n, n + H, dtype=np.int32), n_series),
            "mean": np.repeat(mean, H),
        }
    )
    before, took = gigabytes(), []

    def timed(act: Callable[[], object]) -> None:
        start = time.process_time()
        act()
        took.append(time.process_time() - start)

    intervals = pm.PanelIntervals(context=context)
    timed(lambda: intervals.fit(past))
    timed(lambda: intervals.update(newest))
    timed(lambda: intervals.predict_interval(future))
    fit, update, predict = took
    memory = gigabytes() - before
    shape = [f"{n_series:,}", f"{n_windows} x {H}", context or "no"]
    return [*shape, *(f"{value:.1f}" for value in (fit, predict, update, memory, gigabytes()))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few series, nothing saved")
    parser.add_argument("--save", action="store_true", help="write the table to results/")
    parser.add_argument("--one", nargs=3, metavar=("SERIES", "WINDOWS", "CONTEXT"), help="one row, in this process")
    options = parser.parse_args()
    if options.one:
        n_series, n_windows, context = options.one
        print("|".join(measured(int(n_series), int(n_windows), None if context == "no" else context)))
        return
    cases = [(40, 20, "no"), (40, 20, "recent")] if options.quick else [
        (N_SERIES, N_WINDOWS, "no"),
        (N_SERIES // 10, N_WINDOWS, "recent"),
    ]  # fmt: skip
    rows = []
    for case in cases:
        command = [sys.executable, __file__, "--one", *map(str, case)]
        rows.append(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip().split("|"))
        print(*rows[-1], flush=True)
    header = "series | windows x steps | context | fit, s | predict, s | update, s | GB beside the frames | GB in all"
    cells = [header.split(" | "), ["---"] * 8, *rows]
    lines = [
        "# Speed and memory of panels",
        "",
        "`python benchmarks/panel_speed.py --save`. Processor time; other programs ran beside it.",
        "",
        *(f"| {' | '.join(cell)} |" for cell in cells),
        "",
    ]
    text = "\n".join(lines)
    print(text)
    if options.save and not options.quick:
        save(__file__, text)


if __name__ == "__main__":
    main()
