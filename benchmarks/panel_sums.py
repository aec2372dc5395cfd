"""Do sums and sample paths of panels hold as often as asked, and those of cones that remember? At 90 %.

    PIMETER_DATA=FOLDER python benchmarks/panel_sums.py [--quick] [--save]

Windows of 24 steps, series of `forecast_sums.py`. Panel intervals are fitted to all that was known at the first of
rolling origins a day apart, and updated. Cones that remember, one for each series, go on learning.
The interval of a path's maximum, minimum and sum is between quantiles of 400 sample paths. A mean of 24 steps holds as
often as their sum. Standard errors are those of XX"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Iterator

import numpy as np
import polars as pl
from forecast_sums import LEVEL, N_FITTED, H, autoregressive, m4, seasonal, windows
from provenance import save

import pimeter as pm

FIRST = N_FITTED + H - 1  # window that is made when all targets of those that fit are known
TAILS = [(1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0]
SEVEN = (np.arange(H) < 7).astype(float)
N_ORIGINS, N_SERIES = 7, 250  # origins of a whole week


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


CASES = [
    ("M4 hourly", "panel", of_panel, None),
    ("seasonal", 'cones, context="recent"', of_cones, "recent"),
    ("seasonal", "panel", of_panel, None),
    ("seasonal", 'panel, context="recent"', of_panel, "recent"),
    ("M4 hourly", 'panel, context="recent"', of_panel, "recent"),
    ("M4 hourly", 'cones, context="recent"', of_cones, "recent"),
    ("AR, .9", "panel", of_panel, None),
    ("AR, .9", 'panel, context="recent"', of_panel, "recent"),
]


def rows_of(
    name: str, method: str, answers: Iterator[Answer], true: np.ndarray, origins: np.ndarray
) -> list[list[str]]:
    """Coverage of what a method says of these windows."""
    inside: dict[str, list[np.ndarray]] = {}
    off = 0.0
    for at, answer in zip(origins, answers, strict=True):
        then, paths, steps = true[:, at], answer.pop("paths"), answer.pop("steps")
        happened = {"sum of 24": then.sum(axis=1), "sum of the first 7": then @ SEVEN}
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
    found = []
    for what, each in inside.items():
        means = np.mean(each, axis=0)
        error = means.std(ddof=1) / len(means) ** 0.5
        found.append([name, method, what, f"{means.mean():.3f}", f"{error:.3f}"])
    found.append([name, method, "margins of paths less those of the intervals, in widths", f"{off:.0e}", ""])
    for row in found:
        print(*row, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few series, nothing saved")
    parser.add_argument("--save", action="store_true", help="write the table to results/")
    options = parser.parse_args()
    warnings.simplefilter("ignore", pm.CoverageWarning)
    n_series, n_origins = (6, 1) if options.quick else (N_SERIES, N_ORIGINS)
    rng = np.random.default_rng(0)
    kinds = {"AR, .9": (autoregressive(rng, n_series, 0.9), 0.9), "seasonal": (seasonal(rng, n_series), None)}
    if os.environ.get("PIMETER_DATA"):
        kinds["M4 hourly"] = (m4()[: 6 if options.quick else None], None)
    rows = []
    for name, method, answers, context in CASES:
        if name in kinds:
            true, said = windows(*kinds[name])
            origins = FIRST + H * np.arange(n_origins)
            rows += rows_of(name, method, answers(true, said, origins, context), true, origins)
    cells = [["series", "method", "interval", "coverage", "standard error"], ["---"] * 5, *rows]
    lines = ["# Sums and paths of panels", "", "`python benchmarks/panel_sums.py --save`.", ""]
    kept = " and ".join(f"{len(y)} series ({name})" for name, (y, _) in kinds.items())
    lines += [f"Asked for: {LEVEL:g}. {kept}, {n_origins} origins each.", ""]
    text = "\n".join([*lines, *(f"| {' | '.join(cell)} |" for cell in cells), ""])
    print(text)
    if options.save and not options.quick:
        save(__file__, text, data=["m4/Hourly-train.csv.gz"] if os.environ.get("PIMETER_DATA") else [])


if __name__ == "__main__":
    main()
