"""Do cones that remember keep their level, and how narrow are they? Air quality, hostile series, and the time it takes.

    PIMETER_DATA=FOLDER python benchmarks/forecast_state.py [--quick] [--save]

Hourly PM2.5 of three Beijing stations, predicted by ridge from the other measurements of the same hour, in the protocol
of the published comparison (HopCPT, arXiv 2303.12783): the first 34 % of the hours train, the next 33 % calibrate, the
last 33 % test, and each error is known an hour later. Winkler scores at 90 % are those of split conformal's fraction;
published means over twelve stations are NexCP .91, EnbPI .87, SPCI .48, HopCPT .35. All was chosen on Aotizhongxin.

Ten hostile series of bounded errors, 20,000 after 1,000 of a fit, at 90 %: coverage, that of the worst block of 1,000,
and the score beside that of the best constant interval in hindsight. `--save` writes `results/forecast_state.md`.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from provenance import save
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import pimeter as pm

STATIONS = ("Aotizhongxin", "Changping", "Dingling")
LEFT_OUT = {"No", "year", "month", "day", "hour", "station", "PM10", "PM2.5", "wd"}
WINDS = ("N", "NNE", "NE", "ENE", "E", "ESE", "SE", "SSE", "S", "SSW", "SW", "WSW", "W", "WNW", "NW", "NNW")
LEVEL = 0.9
BLOCK, BOUND = 1000, 10.0


class Station(NamedTuple):
    """Hours of a station after the training part."""

    y: np.ndarray
    prediction: np.ndarray
    features: np.ndarray
    month: np.ndarray
    n_calibration: int


def station(name: str) -> Station:
    with gzip.open(Path(os.environ["PIMETER_DATA"]) / "air" / f"{name}.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    missing = {"", "NA"}
    known = {key: next(row[key] for row in rows if row[key] not in missing) for key in rows[0]}  # before any is known
    for row in rows:  # the last known value stays
        known = known | {key: value for key, value in row.items() if value not in missing}
        row.update(known)
    wind = 2.0 * np.pi / 16.0 * np.array([WINDS.index(row["wd"]) for row in rows])
    columns = [np.array([float(row[key]) for row in rows]) for key in rows[0] if key not in LEFT_OUT]
    X = np.stack([*columns, np.sin(wind), np.cos(wind)], axis=1)
    y = np.array([float(row["PM2.5"]) for row in rows])
    month = np.array([12 * int(row["year"]) + int(row["month"]) for row in rows])
    trained, calibrated = int(0.34 * len(y)), int(0.67 * len(y))
    model = make_pipeline(StandardScaler(), Ridge()).fit(X[:trained], y[:trained])
    after = slice(trained, None)
    return Station(y[after], model.predict(X[after]), X[after], month[after], calibrated - trained)


def air(name: str, n_test: int | None) -> list[list[str]]:
    """Rows of a station: method, Winkler against split conformal, coverage, worst month, misses below and above."""
    y, prediction, features, month, n = station(name)
    end = None if n_test is None else n + n_test
    past, later = slice(0, n), slice(n, end)
    true, predicted = y[:, None], prediction[:, None]
    split = pm.ForecastIntervals(LEVEL).fit(true[past], predicted[past]).predict_interval(predicted[later])[:, 0]
    base = pm.interval_score(y[later], split, LEVEL)
    methods: dict[str, tuple[dict[str, object], bool]] = {
        "cone, updated": ({}, False),
        'context="recent"': ({"tails": "equal", "context": "recent", "y_min": 0.0}, False),
        'context="recent", weather as features': ({"tails": "equal", "context": "recent", "y_min": 0.0}, True),
    }
    found = [["split conformal", split]]
    for method, (settings, has_features) in methods.items():
        cone = pm.ForecastIntervals(LEVEL, **settings)
        known = [{"features": features[part]} if has_features else {} for part in (past, later)]
        cone.fit(true[past], predicted[past], **known[0])
        found.append([method, cone.follow(true[later], predicted[later], **known[1])[:, 0]])
    rows = []
    for method, bounds in found:
        inside = (bounds[:, 0] <= y[later]) & (y[later] <= bounds[:, 1])
        months = [inside[month[later] == one].mean() for one in np.unique(month[later])]
        score = pm.interval_score(y[later], bounds, LEVEL) / base
        misses = (np.mean(y[later] < bounds[:, 0]), np.mean(y[later] > bounds[:, 1]))
        rows.append([name, method, *(f"{value:.3f}" for value in (score, inside.mean(), min(months), *misses))])
        print(*rows[-1], flush=True)
    return rows


Opponent = Callable[[int, np.ndarray, np.random.Generator], float]


def hostile(n: int, rng: np.random.Generator) -> dict[str, np.ndarray | Opponent]:
    """Errors of n moments, all within the bound, or who answers an interval with one."""
    t, noise = np.arange(n), rng.standard_normal(n)
    walk = np.cumsum(0.05 * noise)
    regime = np.cumsum(rng.random(n) < 1 / 500) % 2
    lasting = np.zeros(n)
    for i in range(1, n):
        lasting[i] = (0.95 if regime[i] else -0.8) * lasting[i - 1] + noise[i]
    bursts = np.where(rng.random(n) < 0.002, 1.0, 0.0)
    burst = np.convolve(bursts, np.ones(50))[:n] > 0
    series = {
        "independent": noise,
        "level jumps": noise + 4.0 * rng.choice([-1.0, 0.0, 1.0], n // 700 + 1)[t // 700],
        "trend up and down": noise + 8.0 * np.abs((t / 5000.0) % 2.0 - 1.0) - 4.0,
        "scale switches tenfold": noise * np.where((t // 900) % 2, 2.0, 0.2),
        "scale by the season": noise * (1.1 + np.sin(2.0 * np.pi * t / 168.0)),
        "memory switches sign": lasting,
        "bounded random walk": 5.0 * np.abs((walk / 5.0 + 1.0) % 4.0 - 2.0) - 5.0,
        "bursts": noise * np.where(burst, 4.0, 0.2),
    }

    def beyond(_i: int, interval: np.ndarray, rng: np.random.Generator) -> float:
        """Twice as many misses as allowed, each just beyond a bound."""
        lower, upper = interval
        if rng.random() < 2.0 * (1.0 - LEVEL):
            return float(
                upper + 0.05 * (upper - lower) + 0.01 if rng.random() < 0.5 else lower - 0.05 * (upper - lower) - 0.01
            )
        return float(rng.uniform(lower, upper))

    def away(i: int, interval: np.ndarray, rng: np.random.Generator) -> float:
        """On the side away from where the interval went, in streaks that begin when they are least expected."""
        side = -1.0 if interval.mean() > 0.0 else 1.0
        return float(side * abs(rng.standard_normal()) * (3.0 if (i // 37) % 5 == 0 else 1.0))

    return {name: np.clip(errors, -BOUND, BOUND) for name, errors in series.items()} | {
        "opponent beyond the bounds": beyond,
        "opponent against the centre": away,
    }


def against(name: str, errors: np.ndarray | Opponent, n_fit: int, n: int, rng: np.random.Generator) -> list[str]:
    """Coverage, the worst block of 1,000, and the score beside the best constant interval."""
    cone = pm.ForecastIntervals(LEVEL, tails="equal", context="recent")
    zeros = np.zeros((n_fit + n, 1))
    if isinstance(errors, np.ndarray):
        cone.fit(errors[:n_fit, None], zeros[:n_fit])
        happened = errors[n_fit:]
        bounds = cone.follow(happened[:, None], zeros[n_fit:])[:, 0]
    else:
        cone.fit(rng.standard_normal((n_fit, 1)), zeros[:n_fit])
        happened, bounds = np.zeros(n), np.zeros((n, 2))
        for i in range(n):
            bounds[i] = cone.predict_interval(zeros[:1])[0, 0]
            happened[i] = np.clip(errors(i, bounds[i], rng), -BOUND, BOUND)
            cone.update(happened[i, None, None], zeros[:1])
    inside = (bounds[:, 0] <= happened) & (happened <= bounds[:, 1])
    blocks = inside[: n // BLOCK * BLOCK].reshape(-1, BLOCK).mean(axis=1)
    worst = blocks[np.abs(blocks - LEVEL).argmax()]
    best = np.quantile(happened, [(1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0])
    ratio = pm.interval_score(happened, bounds, LEVEL) / pm.interval_score(happened, np.tile(best, (n, 1)), LEVEL)
    row = [name, f"{inside.mean():.4f}", f"{worst:.3f}", f"{ratio:.3f}"]
    print(*row, flush=True)
    return row


def cost(h: int, n: int) -> list[str]:
    """Milliseconds of an update and of an interval, with and without a context."""
    rng = np.random.default_rng(0)
    errors = rng.standard_normal((600, h))
    took = []
    for context in (None, "recent"):
        cone = pm.ForecastIntervals(LEVEL, tails="equal", context=context).fit(errors[:300], 0 * errors[:300])
        for act in (
            lambda i, c=cone: c.update(errors[i : i + 1], 0 * errors[:1]),
            lambda i, c=cone: c.predict_interval(errors[i : i + 1]),
        ):
            times = []
            for i in range(n):
                start = time.process_time()
                act(300 + i)
                times.append(time.process_time() - start)
            took.append(1e3 * float(np.median(times)))
    row = [str(h), *(f"{value:.2f}" for value in took)]
    print(*row, flush=True)
    return row


def table(header: str, rows: list[list[str]]) -> list[str]:
    cells = [header.split(" | "), ["---"] * len(rows[0]) if rows else [], *rows]
    return [*(f"| {' | '.join(cell)} |" for cell in cells if cell), ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few moments, nothing saved")
    parser.add_argument("--save", action="store_true", help="write the table to results/")
    parser.add_argument("--only", choices=["air", "hostile", "cost"], help="one part, nothing saved")
    parser.add_argument("--stations", nargs="*", default=STATIONS, help="some of the stations")
    options = parser.parse_args()
    lines = ["# Cones that remember", "", "`python benchmarks/forecast_state.py --save`.", ""]
    data = [f"air/{name}.csv.gz" for name in STATIONS] if os.environ.get("PIMETER_DATA") else []
    if data and options.only in {None, "air"}:
        rows = [row for name in options.stations for row in air(name, 300 if options.quick else None)]
        header = "station | method | Winkler / split conformal | coverage | worst month | misses below | misses above"
        lines += ["## PM2.5 with ridge, 90 %", "", *table(header, rows)]
    if options.only in {None, "hostile"}:
        n = BLOCK if options.quick else 20_000
        series = hostile(1000 + n, np.random.default_rng(1))
        streams = np.random.default_rng(2).spawn(len(series))
        rows = [
            against(name, errors, 1000, n, rng) for (name, errors), rng in zip(series.items(), streams, strict=True)
        ]
        header = f"series | coverage | worst block of {BLOCK} | score / best constant interval"
        lines += [f"## Hostile series, {n:,} errors, 90 %", "", *table(header, rows)]
    if options.only in {None, "cost"}:
        header = "steps | update, plain | interval, plain | update, context | interval, context"
        rows = [cost(h, 20 if options.quick else 200) for h in (1, 24)]
        lines += ["## Milliseconds of one window, equal tails", "", *table(header, rows)]
    text = "\n".join(lines)
    print(text)
    if options.save and not options.quick and options.only is None:
        save(__file__, text, data=data)


if __name__ == "__main__":
    main()
