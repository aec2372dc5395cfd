"""How good are panel intervals on the hourly series of the M4 competition? Its interval score, MSIS, at 95 %.

    PIMETER_DATA=FOLDER python benchmarks/m4.py [--quick] [--save] [--valid]

A seasonal naive forecast of 48 hours; each hour of the training part is a window. `--valid` tries the
last 48 hours of the training part, on which everything was chosen; without it the test part is run. The
competition's own: naive 71.2, ETS 17.5, ARIMA 7.54, Smyl 7.93, the best 6.14; a seasonal naive forecast, as later
recomputed, 9.23. Sums and means of 24 hours, and paths, are of rolling origins in the last weeks of the training part.
`--save` writes `results/m4.md`.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import time
import warnings
from pathlib import Path

import numpy as np
import polars as pl
from provenance import save

import pimeter as pm

H, SEASON, LEVEL = 48, 24, 0.95


def series(part: str) -> dict[str, np.ndarray]:
    with gzip.open(Path(os.environ["PIMETER_DATA"]) / "m4" / f"Hourly-{part}.csv.gz", "rt") as file:
        rows = list(csv.reader(file))[1:]
    return {row[0]: np.array([float(value) for value in row[1:] if value]) for row in rows}


def past_forecasts(known: dict[str, np.ndarray], stride: int = 1) -> pl.DataFrame:
    """Seasonal naive forecasts from each hour, as far as targets are known."""
    parts = []
    for name, y in known.items():
        made = np.arange(len(y) - 1, SEASON - 2, -stride)[::-1]  # the last hour that a forecast knew
        steps = np.arange(1, H + 1)
        at = made[:, None] + steps
        is_known = at < len(y)
        forecast = y[made[:, None] - SEASON + 1 + (steps - 1) % SEASON]
        cutoff = np.broadcast_to(made[:, None], at.shape)
        parts.append(
            pl.DataFrame(
                {
                    "cutoff": cutoff[is_known],
                    "ds": at[is_known],
                    "y": y[at[is_known]],
                    "seasonal naive": forecast[is_known],
                }
            ).select(pl.lit(name).alias("unique_id"), pl.all())
        )
    return pl.concat(parts)


def forecasts(known: dict[str, np.ndarray]) -> pl.DataFrame:
    hours = np.arange(H)
    return pl.concat(
        pl.DataFrame({"ds": len(y) + hours, "seasonal naive": y[-SEASON:][hours % SEASON]}).select(
            pl.lit(name).alias("unique_id"), pl.all()
        )
        for name, y in known.items()
    )


def row(method: str, lower: np.ndarray, upper: np.ndarray, true: np.ndarray, unit: np.ndarray) -> list[str]:
    """MSIS and coverage of bounds (series, h)."""
    missed = np.maximum(lower - true, 0.0) + np.maximum(true - upper, 0.0)
    score = ((upper - lower + 2.0 / (1.0 - LEVEL) * missed).mean(axis=1) / unit).mean()
    found = [method, f"{score:.3f}", f"{((lower <= true) & (true <= upper)).mean():.4f}"]
    print(*found, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few series, nothing saved")
    parser.add_argument("--save", action="store_true", help="write the table to results/")
    parser.add_argument("--valid", action="store_true", help="the last 48 hours of the training part instead")
    options = parser.parse_args()
    warnings.simplefilter("ignore", pm.CoverageWarning)
    if not os.environ.get("PIMETER_DATA"):
        print("no data: PIMETER_DATA names the folder")
        return
    train, test = series("train"), series("test")
    if options.valid or options.quick:
        train, test = {key: y[:-H] for key, y in train.items()}, {key: y[-H:] for key, y in train.items()}
    if options.quick:
        train = {key: train[key][-300:] for key in list(train)[:8]}
    true = np.array([test[key] for key in train])
    unit = np.array([np.abs(y[SEASON:] - y[:-SEASON]).mean() for y in train.values()])
    start = time.process_time()
    past, future = past_forecasts(train), forecasts(train)
    took = [time.process_time() - start]
    rows = []
    for name, settings in {
        "PanelIntervals(season_length=24)": {"season_length": SEASON},
        "PanelIntervals()": {},
    }.items():
        start = time.process_time()
        intervals = pm.PanelIntervals(LEVEL, **settings).fit(past)
        found = intervals.predict_interval(future)
        took.append(time.process_time() - start)
        print(intervals.rules_)
        lower, upper = (found[f"seasonal naive-{side}-95"].to_numpy().reshape(-1, H) for side in ("lo", "hi"))
        rows.append([*row(name, lower, upper, true, unit), f"{took[-1]:.0f}"])
    centre = np.array([y[-SEASON:][np.arange(H) % SEASON] for y in train.values()])
    for name, tails in (("ForecastIntervals, equal tails", "equal"), ("ForecastIntervals, symmetric", "symmetric")):
        start = time.process_time()
        bounds = []
        for key, y in train.items():
            windows = past.filter(pl.col("unique_id") == key)
            n = len(y) - SEASON + 1 - H
            full = windows.filter(pl.col("cutoff") < SEASON - 1 + n)
            targets, said = (full[column].to_numpy().reshape(n, H) for column in ("y", "seasonal naive"))
            forecast = y[-SEASON:][np.arange(H) % SEASON][None]
            bounds.append(pm.ForecastIntervals(LEVEL, tails=tails).fit(targets, said).predict_interval(forecast)[0])
        lower, upper = np.moveaxis(np.array(bounds), -1, 0)
        rows.append([*row(name, lower, upper, true, unit), f"{time.process_time() - start:.0f}"])
    assert centre.shape == true.shape
    header = ["method", "MSIS", "coverage", "seconds"]
    lines = [
        "# Intervals for the hourly series of M4",
        "",
        "`python benchmarks/m4.py --save`.",
        "",
        f"{len(train)} series, seasonal naive forecasts of {H} hours, {100 * LEVEL:g} %; test part.",
        "",
        *(f"| {' | '.join(cell)} |" for cell in [header, ["---"] * 4, *rows]),
        "",
    ]
    text = "\n".join(lines)
    print(text)
    if options.save and not (options.quick or options.valid):
        save(__file__, text, data=[f"m4/Hourly-{part}.csv.gz" for part in ("train", "test")])


if __name__ == "__main__":
    main()
