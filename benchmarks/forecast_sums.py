"""Do sums, means and sample paths of cones and panels hold as often as asked? M4 hourly, and generated series, at 90 %.

    PIMETER_DATA=FOLDER python benchmarks/forecast_sums.py [--quick] [--save]

Windows of 24 steps. Cones with equal tails, one for each series, are fitted to 400 windows that were known at the first
origin, and tried at rolling origins a day apart; with a context they go on learning. Panel intervals are fitted to all
that was known at the first origin, and updated. Forecasts are seasonal naive (M4, seasonal) or the best linear ones
(AR). The interval of a path is between quantiles of 400 sample paths, for its maximum, minimum and sum. Standard errors
are those of means over series. A mean of 24 steps holds as often as their sum. Cones that remember, which take
longest, are tried on two kinds of series. `--save` writes `results/forecast_sums.md`.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
from provenance import save

import pimeter as pm

H, LEVEL, N_FITTED, N_ORIGINS = 24, 0.9, 400, 7
FIRST = N_FITTED + H - 1  # window that is made when all targets of those that fit are known
TAILS = [(1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0]
SEVEN = (np.arange(H) < 7).astype(float)


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


Answer = dict[str, np.ndarray]  # intervals (series, 2) of what is named, of "steps" (series, h, 2), and "paths"


def of_cones(true: np.ndarray, said: np.ndarray, origins: np.ndarray, context: str | None) -> Iterator[Answer]:
    """Answers of a cone for each series at one origin after the other."""
    n = N_FITTED if context is None else FIRST
    cone = pm.ForecastIntervals(LEVEL, tails="equal", context=context).fit(true[:, :n], said[:, :n])
    for at in origins:
        now = said[:, at : at + 1]
        yield {
            "steps": cone.predict_interval(now)[:, 0],
            "sum of 24": cone.sum_interval(now)[:, 0],
            "sum of the first 7": cone.sum_interval(now, weights=SEVEN)[:, 0],
            "paths": cone.sample_paths(now, N_FITTED, random_state=0)[:, 0],
        }
        if context is not None:
            cone.follow(true[:, at : at + H], said[:, at : at + H])


def long_frame(true: np.ndarray, said: np.ndarray, made: range, known: int | None) -> pl.DataFrame:
    """A row for each series, window and step, as far as targets are known by the moment; all steps without targets."""
    at = np.asarray(made)[:, None] + np.arange(1, H + 1)
    held = np.ones_like(at, bool) if known is None else at <= known
    n = len(true)
    targets = true[:, made][:, held].ravel() if known is not None else np.nan
    return pl.DataFrame(
        {
            "unique_id": np.repeat(np.arange(n), held.sum()),
            "cutoff": np.tile(np.broadcast_to(np.asarray(made)[:, None], at.shape)[held], n),
            "ds": np.tile(at[held], n),
            "y": targets,
            "f": said[:, made][:, held].ravel(),
        }
    )


def bounds(frame: pl.DataFrame) -> np.ndarray:
    return np.stack([frame[f"f-{side}-90"].to_numpy() for side in ("lo", "hi")], axis=1)


def of_panel(true: np.ndarray, said: np.ndarray, origins: np.ndarray, context: str | None) -> Iterator[Answer]:
    """Answers of panel intervals, updated from origin to origin."""
    intervals = pm.PanelIntervals(LEVEL, season_length=H, context=context)
    for at in origins.tolist():
        if at == origins[0]:
            intervals.fit(long_frame(true, said, range(at), at))
        else:
            newest = long_frame(true, said, range(at - 2 * H + 1, at), at)
            intervals.update(newest.filter(pl.col("ds") > at - H))
        future = long_frame(true, said, range(at, at + 1), None).drop("y")
        paths = intervals.sample_paths(future, N_FITTED, random_state=0)["f"].to_numpy()
        yield {
            "steps": bounds(intervals.predict_interval(future)).reshape(-1, H, 2),
            "sum of 24": bounds(intervals.sum_interval(future)),
            "sum of the first 7": bounds(intervals.sum_interval(future, weights=SEVEN)),
            "paths": paths.reshape(N_FITTED, -1, H).transpose(1, 0, 2),
        }


REMEMBERED = ("AR, .9", "seasonal")
METHODS = {
    "cones": (of_cones, None),
    'cones, context="recent"': (of_cones, "recent"),
    "panel": (of_panel, None),
    'panel, context="recent"': (of_panel, "recent"),
}


def rows_of(name: str, y: np.ndarray, rho: float | None, n_origins: int) -> list[list[str]]:
    true, said = windows(y, rho)
    origins = FIRST + H * np.arange(n_origins)
    origins = origins[origins < true.shape[1]]
    found = []
    for method, (answers, context) in METHODS.items():
        if name not in REMEMBERED and (answers, context) == (of_cones, "recent"):
            continue
        inside: dict[str, list[np.ndarray]] = {}
        off = 0.0
        for at, answer in zip(origins, answers(true, said, origins, context), strict=True):
            then, paths, steps = true[:, at], answer.pop("paths"), answer.pop("steps")
            happened = {
                "sum of 24": then.sum(axis=1),
                "sum of the first 7": then @ SEVEN,
            }
            for what in ("max", "min", "sum"):
                answer[f"{what} of paths"] = np.quantile(getattr(paths, what)(axis=2), TAILS, axis=1).T
                happened[f"{what} of paths"] = getattr(then, what)(axis=1)
            drawn = np.moveaxis(np.quantile(paths, TAILS, axis=1, method="hazen"), 0, -1)
            off = max(off, float(np.abs(drawn - steps).max() / np.diff(steps).mean()))
            is_inside = (steps[..., 0] <= then) & (then <= steps[..., 1])
            inside.setdefault("single steps", []).append(is_inside.mean(axis=1))
            for what, interval in answer.items():
                held = (interval[:, 0] <= happened[what]) & (happened[what] <= interval[:, 1])
                inside.setdefault(what, []).append(held)
        for what, each in inside.items():
            means = np.mean(each, axis=0)
            error = means.std(ddof=1) / len(means) ** 0.5
            found.append([name, method, what, f"{means.mean():.3f}", f"{error:.3f}"])
            print(*found[-1], flush=True)
        found.append([name, method, "margins of paths less those of the intervals, in widths", f"{off:.0e}", ""])
        print(*found[-1], flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few series, nothing saved")
    parser.add_argument("--save", action="store_true", help="write the table to results/")
    options = parser.parse_args()
    warnings.simplefilter("ignore", pm.CoverageWarning)
    rng = np.random.default_rng(0)
    n_series, n_origins = (6, 1) if options.quick else (150, N_ORIGINS)
    panels = {
        "AR, .5": (autoregressive(rng, n_series, 0.5), 0.5),
        "AR, .9": (autoregressive(rng, n_series, 0.9), 0.9),
        "seasonal": (seasonal(rng, n_series), None),
    }
    if os.environ.get("PIMETER_DATA"):
        panels["M4 hourly"] = (m4()[: 6 if options.quick else None], None)
    rows = [row for name, (y, rho) in panels.items() for row in rows_of(name, y, rho, n_origins)]
    cells = [["series", "method", "interval", "coverage", "standard error"], ["---"] * 5, *rows]
    lines = ["# Sums, means and paths of cones and panels", "", "`python benchmarks/forecast_sums.py --save`.", ""]
    lines += [f"Asked for: {LEVEL:g}. {n_series} generated series each; {n_origins} origins.", ""]
    text = "\n".join([*lines, *(f"| {' | '.join(cell)} |" for cell in cells), ""])
    print(text)
    if options.save and not options.quick:
        save(__file__, text, data=["m4/Hourly-train.csv.gz"] if os.environ.get("PIMETER_DATA") else [])


if __name__ == "__main__":
    main()
