"""Do sums, means and sample paths of cones hold as often as asked? M4 hourly, and generated panels, at 90 %.

    PIMETER_DATA=FOLDER python benchmarks/forecast_sums.py [--quick] [--save]

Cones of 24 steps with equal tails, one for each series, fitted to 400 windows that were known at the first origin, and
tried at rolling origins a day apart. Forecasts are seasonal naive (M4, seasonal) or the best linear ones (AR). The
interval of a path's maximum, minimum and sum is between the quantiles of 400 sample paths. Standard errors are those of
means over series. `--save` writes `results/forecast_sums.md`.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import warnings
from pathlib import Path

import numpy as np
from provenance import save

import pimeter as pm

H, LEVEL, N_FITTED, N_ORIGINS = 24, 0.9, 400, 7


def m4() -> np.ndarray:
    """The last hours of the training part, (series, hours)."""
    with gzip.open(Path(os.environ["PIMETER_DATA"]) / "m4" / "Hourly-train.csv.gz", "rt") as file:
        rows = list(csv.reader(file))[1:]
    n = H + N_FITTED + H - 1 + H * N_ORIGINS
    return np.array([[float(value) for value in row[1:] if value][-n:] for row in rows])


def autoregressive(rng: np.random.Generator, n_series: int, rho: float) -> np.ndarray:
    n = H + N_FITTED + H - 1 + H * N_ORIGINS
    y = np.zeros((n_series, n))
    y[:, 0] = rng.standard_normal(n_series) / np.sqrt(1.0 - rho**2)
    for t in range(1, n):
        y[:, t] = rho * y[:, t - 1] + rng.standard_normal(n_series)
    return y


def seasonal(rng: np.random.Generator, n_series: int) -> np.ndarray:
    noise = autoregressive(rng, n_series, 0.7)
    t = np.arange(noise.shape[1])
    phase = rng.uniform(0.0, 2.0 * np.pi, (n_series, 1))
    return 10.0 + 3.0 * np.sin(2.0 * np.pi * t / 24.0 + phase) + noise


def windows(y: np.ndarray, rho: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Targets and forecasts (series, windows, steps) from each hour after the first day."""
    held = np.lib.stride_tricks.sliding_window_view(y, 2 * H, axis=1)
    true = held[..., H:]
    if rho is None:
        return true, held[..., :H]
    return true, held[..., H - 1 : H] * rho ** np.arange(1, H + 1)


def rows_of(name: str, y: np.ndarray, rho: float | None) -> list[list[str]]:
    true, said = windows(y, rho)
    first = N_FITTED + H - 1  # when all targets of the windows that fit are known
    cone = pm.ForecastIntervals(LEVEL, tails="equal").fit(true[:, :N_FITTED], said[:, :N_FITTED])
    origins = first + H * np.arange(N_ORIGINS)
    true, said = true[:, origins[origins < true.shape[1]]], said[:, origins[origins < said.shape[1]]]
    kinds = {"sum of 24": cone.sum_interval(said), "mean of 24": cone.sum_interval(said, of="mean")}
    kinds["sum of the first 7"] = cone.sum_interval(said, weights=np.arange(H) < 7)
    happened = {
        "sum of 24": true.sum(axis=2),
        "mean of 24": true.mean(axis=2),
        "sum of the first 7": true[..., :7].sum(axis=2),
    }
    paths = cone.sample_paths(said, N_FITTED, random_state=0)
    tails = [(1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0]
    for what in ("max", "min", "sum"):
        kinds[f"{what} of paths"] = np.moveaxis(np.quantile(getattr(paths, what)(axis=3), tails, axis=2), 0, -1)
        happened[f"{what} of paths"] = getattr(true, what)(axis=2)
    drawn = np.moveaxis(np.quantile(paths, tails, axis=2, method="hazen"), 0, -1)
    bounds = cone.predict_interval(said)
    off = np.abs(drawn - bounds).max() / np.diff(bounds).mean()
    found = []
    for what, interval in kinds.items():
        inside = ((interval[..., 0] <= happened[what]) & (happened[what] <= interval[..., 1])).mean(axis=1)
        error = inside.std(ddof=1) / len(inside) ** 0.5
        found.append([name, what, f"{inside.mean():.3f}", f"{error:.3f}"])
        print(*found[-1], flush=True)
    found.append([name, "margins of paths less those of the cone, in widths, at most", f"{off:.1e}", ""])
    print(*found[-1], flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few series, nothing saved")
    parser.add_argument("--save", action="store_true", help="write the table to results/")
    options = parser.parse_args()
    warnings.simplefilter("ignore", pm.CoverageWarning)
    rng = np.random.default_rng(0)
    n_series = 10 if options.quick else 300
    panels = {
        "AR, .5": (autoregressive(rng, n_series, 0.5), 0.5),
        "AR, .9": (autoregressive(rng, n_series, 0.9), 0.9),
        "seasonal": (seasonal(rng, n_series), None),
    }
    if os.environ.get("PIMETER_DATA"):
        panels["M4 hourly"] = (m4()[: 10 if options.quick else None], None)
    rows = [row for name, (y, rho) in panels.items() for row in rows_of(name, y, rho)]
    cells = [["series", "interval", "coverage", "standard error"], ["---"] * 4, *rows]
    lines = ["# Sums, means and paths of cones", "", "`python benchmarks/forecast_sums.py --save`. Asked for: 0.9.", ""]
    text = "\n".join([*lines, *(f"| {' | '.join(cell)} |" for cell in cells), ""])
    print(text)
    if options.save and not options.quick:
        save(__file__, text, data=["m4/Hourly-train.csv.gz"] if os.environ.get("PIMETER_DATA") else [])


if __name__ == "__main__":
    main()
