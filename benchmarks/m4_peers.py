"""Are panel intervals around the forecasts of statsforecast better than its own? Hourly series of M4, MSIS at 95 %.

    PIMETER_DATA=FOLDER python benchmarks/m4_peers.py [--quick] [--save] [--valid]

Theta forecasts 48 hours. Its own intervals are the parametric ones of its model, and `ConformalIntervals` with its
default of two windows and with ten. Panel intervals are fitted to forecasts that Theta made every twelve hours of the
last 22 days, each refitted to what was known by then. `--valid` tries the last 48 hours of the training part, on which
all was chosen; without it the test part is run. Forecasts are kept in `.parts`, so that a run goes on where it stopped.
statsforecast has an environment of its own: `make bench-forecasters`. `--save` writes `results/m4_peers.md`.
"""

from __future__ import annotations

import argparse
import os
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import polars as pl
from m4 import LEVEL, SEASON, H, row, series
from provenance import save

import pimeter as pm

PARTS = Path(__file__).parent / ".parts" / "m4_peers"
EVERY, N_CUTOFFS = 12, 45  # hours between forecasts, and how many there are of each series
N_WINDOWS = (2, 10)  # of statsforecast's ConformalIntervals
ORIGINS = {"valid": H, "test": 0}  # hours before the end of the training part
THETA = "Theta"


def forecasts(name: str, y: np.ndarray) -> dict[str, np.ndarray]:
    """Forecasts of a series from all cutoffs (cutoffs, h), and bounds (h, 2) of its own intervals from both origins."""
    path = PARTS / f"{name}.npz"
    if not path.exists():
        from statsforecast.models import Theta
        from statsforecast.utils import ConformalIntervals

        model = Theta(season_length=SEASON)
        found = {"mean": np.stack([model.forecast(y[: len(y) - EVERY * k], H)["mean"] for k in range(N_CUTOFFS)])}
        for origin, back in ORIGINS.items():
            known = y[: len(y) - back]
            for kind in ("parametric", *N_WINDOWS):
                conformal = None if kind == "parametric" else ConformalIntervals(kind, H)
                own = Theta(season_length=SEASON, prediction_intervals=conformal).forecast(known, H, level=[95])
                found[f"{origin} {kind}"] = np.stack([own["lo-95"], own["hi-95"]], axis=1)
        PARTS.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(path, **found)
    with np.load(path) as held:
        return dict(held)


def past(known: dict[str, np.ndarray], made: dict[str, np.ndarray], back: int) -> pl.DataFrame:
    """A row for each forecast whose target was known `back` hours before the end of the training part."""
    parts = []
    for name, y in known.items():
        cutoff = len(y) + back - 1 - EVERY * np.arange(N_CUTOFFS)
        at = cutoff[:, None] + np.arange(1, H + 1)
        held = at < len(y)
        parts.append(
            pl.DataFrame(
                {
                    "cutoff": np.broadcast_to(cutoff[:, None], at.shape)[held],
                    "ds": at[held],
                    "y": y[at[held]],
                    THETA: made[name][held],
                }
            ).select(pl.lit(name).alias("unique_id"), pl.all())
        )
    return pl.concat(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few series, nothing saved")
    parser.add_argument("--save", action="store_true", help="write the table to results/")
    parser.add_argument("--valid", action="store_true", help="the last 48 hours of the training part instead")
    parser.add_argument("--forecasts", action="store_true", help="only make and keep the forecasts")
    options = parser.parse_args()
    warnings.simplefilter("ignore", pm.CoverageWarning)
    if not os.environ.get("PIMETER_DATA") or find_spec("statsforecast") is None:
        print("no data, or no statsforecast: PIMETER_DATA names the folder, make bench-forecasters installs it")
        return
    train, test = series("train"), series("test")
    if options.quick:
        train = {key: train[key] for key in list(train)[:3]}
    held = {}
    for i, (key, y) in enumerate(train.items()):
        held[key] = forecasts(key, y)
        if i % 20 == 0:
            print(i, flush=True)
    if options.forecasts:
        return
    origin = "valid" if options.valid or options.quick else "test"
    back = ORIGINS[origin]
    if back:
        train, test = {key: y[:-back] for key, y in train.items()}, {key: y[-back:] for key, y in train.items()}
    true = np.array([test[key][:H] for key in train])
    unit = np.array([np.abs(y[SEASON:] - y[:-SEASON]).mean() for y in train.values()])
    rows = []
    for kind in ("parametric", *N_WINDOWS):
        name = "Theta's own" if kind == "parametric" else f"ConformalIntervals(n_windows={kind})"
        own = np.array([held[key][f"{origin} {kind}"] for key in train])
        rows.append(row(f"statsforecast, {name}", own[..., 0], own[..., 1], true, unit))
    known = past(train, {key: one["mean"] for key, one in held.items()}, back)
    first = back // EVERY
    future = pl.concat(
        pl.DataFrame({"ds": len(y) + np.arange(H), THETA: held[key]["mean"][first]}).select(
            pl.lit(key).alias("unique_id"), pl.all()
        )
        for key, y in train.items()
    )
    for name, settings in {
        "PanelIntervals()": {},
        "PanelIntervals(season_length=24)": {"season_length": SEASON},
        'PanelIntervals(season_length=24, context="recent")': {"season_length": SEASON, "context": "recent"},
    }.items():
        intervals = pm.PanelIntervals(LEVEL, **settings).fit(known)
        print(intervals.rules_)
        found = intervals.predict_interval(future)
        lower, upper = (found[f"{THETA}-{side}-95"].to_numpy().reshape(-1, H) for side in ("lo", "hi"))
        rows.append(row(name, lower, upper, true, unit))
    best = min(float(one[1]) for one in rows[: 1 + len(N_WINDOWS)])
    cells = [[*one, f"{float(one[1]) / best:.3f}"] for one in rows]
    header = ["method", "MSIS", "coverage", "/ best of statsforecast"]
    text = "\n".join(
        [
            "# Intervals around forecasts of statsforecast, hourly series of M4",
            "",
            "`python benchmarks/m4_peers.py --save`.",
            "",
            f"{len(train)} series, forecasts of Theta for {H} hours, {100 * LEVEL:g} %; {origin} part.",
            "",
            *(f"| {' | '.join(cell)} |" for cell in [header, ["---"] * 4, *cells]),
            "",
        ]
    )
    print(text)
    if options.save and origin == "test":
        save(
            __file__, text, packages=["statsforecast"], data=[f"m4/Hourly-{part}.csv.gz" for part in ("train", "test")]
        )


if __name__ == "__main__":
    main()
