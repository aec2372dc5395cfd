"""How do updated cones compare with MAPIE's ACI and EnbPI, with ACI and conformal PID control, and with river?

    PIMETER_DATA=FOLDER python benchmarks/forecast_peers.py [--quick] [--save]

The series are the daily closes of General Electric, the forecast is that the last close stays, 1 or 10 days ahead. The
first half of the rows from 2001 on calibrates; on the second half each method predicts a day, and learns it once it is
known. A random walk replaces the closes where there is no data.

Hourly PM2.5 with ridge, in the protocol of `forecast_state.py`, at 90 %: the first 4,000 hours of the test part of each
station; and hours of M4 with seasonal naive forecasts, in that of `m4.py`, at 95 %: every fourth series. Adaptive
conformal inference (ACI, Gibbs and Candes 2021) and conformal PID control (Angelopoulos and others 2023; its quantile
tracker and integrator, without a scorecaster) are written from their papers, with usual rates (.005, .1) and with those
that had the best score before the test part: on the second half of the calibration rows, and on the last 48 hours of
the training part. Peers not installed are left out; `make bench-peers` has them all. `--save` writes
`results/forecast_peers.md`.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import platform
import time
import warnings
from bisect import insort
from collections.abc import Callable, Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import m4
import numpy as np
import polars as pl
from forecast_state import LEVEL as AIR_LEVEL
from forecast_state import STATIONS, station
from provenance import save
from sklearn.base import BaseEstimator, RegressorMixin

import pimeter as pm

LEVEL, WINDOW, GAMMA = 0.95, 500, 0.05
FIRST = 9840  # row of the validation part
AHEAD = (1, 10)

PUBLISHED = """\
Published for the whole test part, means over twelve stations (HopCPT, arXiv 2303.12783): NexCP .91, EnbPI .87, SPCI
.48, HopCPT .35."""

Follower = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray, int], Iterator[tuple[float, float]]]


class Stay(RegressorMixin, BaseEstimator):
    """The last close, the only feature, stays; `fitted_` is what MAPIE looks for."""

    fitted_ = True

    def fit(self, _X: np.ndarray, _y: np.ndarray) -> Stay:
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return X[:, 0]


def closes() -> tuple[np.ndarray, str]:
    folder = os.environ.get("PIMETER_DATA")
    if not folder:
        walk = np.cumsum(np.random.default_rng(0).standard_t(4, FIRST + 4218))
        return walk, "a random walk with t4 steps (no PIMETER_DATA)"
    with gzip.open(Path(folder) / "time_series" / "ge.csv.gz", "rt") as file:
        return np.array([float(row["Close"]) for row in csv.DictReader(file)]), "General Electric's closes"


def cone(learning_rate: str) -> Follower:
    def follow(
        past: np.ndarray, happened: np.ndarray, now: np.ndarray, then: np.ndarray, ahead: int
    ) -> Iterator[tuple[float, float]]:
        model = pm.ForecastIntervals(LEVEL, learning_rate=learning_rate).fit(happened[:, None], past[:, None])
        for i in range(len(now)):
            if i >= ahead:
                model.update(then[i - ahead, None, None], now[i - ahead, None, None])
            yield tuple(model.predict_interval(now[i, None, None])[0, 0])

    return follow


def online(
    past: np.ndarray, happened: np.ndarray, now: np.ndarray, then: np.ndarray, ahead: int
) -> Iterator[tuple[float, float]]:
    neuron = pm.OnlineNeuron(LEVEL, horizon=ahead).learn_many(np.abs(happened - past))
    for i in range(len(now)):
        if i >= ahead:
            neuron.learn_one(abs(then[i - ahead] - now[i - ahead]))
        yield now[i] - neuron.quantile_, now[i] + neuron.quantile_


def static(
    past: np.ndarray, happened: np.ndarray, now: np.ndarray, _then: np.ndarray, _ahead: int
) -> Iterator[tuple[float, float]]:
    radius = np.quantile(np.abs(happened - past), LEVEL)
    yield from zip(now - radius, now + radius, strict=True)


def mapie(method: str, level: float = LEVEL) -> Follower:
    def follow(
        past: np.ndarray, happened: np.ndarray, now: np.ndarray, then: np.ndarray, ahead: int
    ) -> Iterator[tuple[float, float]]:
        from mapie.regression import TimeSeriesRegressor
        from mapie.subsample import BlockBootstrap

        blocks = BlockBootstrap(n_resamplings=30, n_blocks=20, overlapping=False, random_state=0)
        model = TimeSeriesRegressor(Stay(), method=method, cv="prefit" if method == "aci" else blocks)
        model.fit(past[:, None], happened)
        for i in range(len(now)):
            if i >= ahead:
                row, target = now[i - ahead, None, None], then[i - ahead, None]
                if method == "aci":
                    model.adapt_conformal_inference(row, target, gamma=GAMMA, confidence_level=level)
                model.update(row, target)
            found = model.predict(now[i, None, None], confidence_level=level, allow_infinite_bounds=True)[1]
            yield found[0, 0, 0], found[0, 1, 0]

    return follow


def river(kind: str) -> Follower:
    def follow(
        past: np.ndarray, happened: np.ndarray, now: np.ndarray, then: np.ndarray, ahead: int
    ) -> Iterator[tuple[float, float]]:
        from river import stats

        quantile = stats.Quantile(LEVEL) if kind == "Quantile" else stats.RollingQuantile(LEVEL, window_size=WINDOW)
        for error in np.abs(happened - past):
            quantile.update(float(error))
        for i in range(len(now)):
            if i >= ahead:
                quantile.update(float(abs(then[i - ahead] - now[i - ahead])))
            yield now[i] - quantile.get(), now[i] + quantile.get()

    return follow


METHODS: dict[str, tuple[str, Follower]] = {
    "pimeter ForecastIntervals, adaptive step": ("pimeter", cone("adaptive")),
    "pimeter ForecastIntervals, decaying step": ("pimeter", cone("decaying")),
    "pimeter OnlineNeuron": ("pimeter", online),
    "numpy.quantile, never updated": ("numpy", static),
    f"MAPIE ACI, gamma {GAMMA}": ("mapie", mapie("aci")),
    "MAPIE EnbPI": ("mapie", mapie("enbpi")),
    "river Quantile (P square)": ("river", river("Quantile")),
    f"river RollingQuantile, {WINDOW} errors": ("river", river("RollingQuantile")),
}


def rows(series: np.ndarray, ahead: int, n_test: int | None) -> list[list[str]]:
    now, then = series[FIRST - ahead : -ahead], series[FIRST:]
    half = len(now) // 2
    past, happened = now[: half - ahead + 1], then[: half - ahead + 1]
    now, then = now[half:][:n_test], then[half:][:n_test]
    found = []
    for name, (package, follow) in METHODS.items():
        if find_spec(package) is None:
            continue
        list(follow(past[-200:], happened[-200:], now[: 2 * ahead], then[: 2 * ahead], ahead))  # warm
        start = time.process_time()
        bounds = np.array(list(follow(past, happened, now, then, ahead)))
        took = time.process_time() - start
        inside = (then >= bounds[:, 0]) & (then <= bounds[:, 1])
        size = len(inside) // 8
        blocks = inside[: 8 * size].reshape(8, size).mean(axis=1)
        finite = np.isfinite(bounds).all(axis=1)
        found.append(
            [
                name,
                f"{inside.mean():.3f}",
                f"{blocks.min():.3f} to {blocks.max():.3f}",
                f"{np.ptp(bounds[finite], axis=1).mean():.3f}",
                f"{1 - finite.mean():.3f}",
                f"{pm.interval_score(then[finite], bounds[finite], LEVEL):.3f}",
                f"{1e6 * took / len(now):.0f}",
            ]
        )
        print(ahead, *found[-1], flush=True)
    return found


RATES = {"ACI": (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1), "PID": (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)}
HOURS = 4000
USUAL = {"ACI": 0.005, "PID": 0.1}


def aci(scores: np.ndarray, n_fit: int, level: float, rate: float) -> np.ndarray:
    """Margins for the scores after the first ones, and for the one after all: the largest known where infinite."""
    known, alpha, found = sorted(scores[:n_fit].tolist()), 1.0 - level, []
    for score in [*scores[n_fit:].tolist(), np.nan]:
        rank = int(np.ceil((1.0 - alpha) * (len(known) + 1)))
        found.append(known[min(rank, len(known)) - 1] if rank > 0 else 0.0)
        alpha += rate * (1.0 - level - (score > found[-1]))
        insort(known, score)
    return np.array(found)


def pid(scores: np.ndarray, n_fit: int, level: float, rate: float) -> np.ndarray:
    """Margins of a quantile tracker, its step in units of the largest of 100 scores, and of the error integrator."""
    margin, largest = np.quantile(scores[:n_fit], level, axis=0), scores[:n_fit].max(axis=0)
    total, correction, found = np.zeros_like(margin), np.zeros_like(margin), []
    n = len(scores) - n_fit
    saturation = 2.0 / np.pi * (np.ceil(np.log(n + 2) * 0.01) - 1.0 / np.log(n + 2))
    for i in range(n):
        found.append(margin + correction)
        excess = (scores[n_fit + i] > found[-1]) - (1.0 - level)
        total = total + excess
        margin = margin + rate * scores[max(n_fit + i - 99, 0) : n_fit + i + 1].max(axis=0) * excess
        angle = np.clip(total * np.log(i + 2) / (saturation * (i + 2)), -1.5, 1.5)
        correction = largest * np.tan(angle)
    return np.maximum([*found, margin + correction], 0.0)


STREAMS = {"ACI": aci, "PID": pid}


def air_rows(name: str, n_test: int | None) -> list[list[str]]:
    """Winkler score against split conformal prediction, and coverage, of one station."""
    y, prediction, _, _, n = station(name)
    end = None if n_test is None else n + n_test
    true, said = y[:end, None], prediction[:end, None]
    errors, later = np.abs(true - said)[:, 0], slice(n, None)
    methods: dict[str, np.ndarray] = {}
    split = pm.ForecastIntervals(AIR_LEVEL).fit(true[:n], said[:n]).predict_interval(said[later])[:, 0]
    methods["split conformal"] = split
    for label, settings in {
        "pimeter, cone": {},
        'pimeter, context="recent"': {"tails": "equal", "context": "recent", "y_min": 0.0},
    }.items():
        cone = pm.ForecastIntervals(AIR_LEVEL, **settings).fit(true[:n], said[:n])
        methods[label] = cone.follow(true[later], said[later])[:, 0]
    centre = said[later, 0]
    for label, margins in STREAMS.items():
        half = n // 2

        def loss(rate: float, margins: Callable[..., np.ndarray] = margins, half: int = half) -> float:
            radius = margins(errors[:n], half, AIR_LEVEL, rate)[:-1]
            return pm.interval_score(
                true[half:n, 0], np.stack([said[half:n, 0] - radius, said[half:n, 0] + radius], axis=1), AIR_LEVEL
            )

        best = min(RATES[label], key=loss)
        for rate, how in ((USUAL[label], "usual"), (best, "tuned")):
            radius = margins(errors, n, AIR_LEVEL, rate)[:-1]
            methods[f"{label}, {how} rate"] = np.stack([centre - radius, centre + radius], axis=1)
        print(name, label, "tuned rate", best, flush=True)
    if find_spec("mapie"):
        for label, method in (("MAPIE ACI", "aci"), ("MAPIE EnbPI", "enbpi")):
            follow = mapie(method, AIR_LEVEL)
            methods[label] = np.array(list(follow(said[:n, 0], true[:n, 0], centre, true[later, 0], 1)))
    base = pm.interval_score(true[later, 0], split, AIR_LEVEL)
    found = []
    for label, bounds in methods.items():
        finite = np.isfinite(bounds).all(axis=1)
        inside = (bounds[:, 0] <= true[later, 0]) & (true[later, 0] <= bounds[:, 1])
        score = pm.interval_score(true[later, 0][finite], bounds[finite], AIR_LEVEL) / base
        found.append([name, label, f"{score:.3f}", f"{inside.mean():.3f}", f"{1 - finite.mean():.3f}"])
        print(*found[-1], flush=True)
    return found


def m4_rows(n_series: int | None) -> list[list[str]]:
    """MSIS and coverage on some of the hourly series, each step of each series a stream of its own."""
    train, test = m4.series("train"), m4.series("test")
    train = {key: train[key] for key in list(train)[::4][:n_series]}
    valid = {key: y[: -m4.H] for key, y in train.items()}, {key: y[-m4.H :] for key, y in train.items()}
    found = []
    for known, then, is_test in ((*valid, False), (train, {key: test[key] for key in train}, True)):
        true = np.array([then[key] for key in known])
        unit = np.array([np.abs(y[m4.SEASON :] - y[: -m4.SEASON]).mean() for y in known.values()])
        centre = np.array([y[-m4.SEASON :][np.arange(m4.H) % m4.SEASON] for y in known.values()])
        if not is_test:
            scores = {}
            for label in STREAMS:
                margins = {rate: stream_margins(known, label, rate) for rate in RATES[label]}
                for rate, radius in margins.items():
                    scores[label, rate] = float(
                        m4.row(f"{label} {rate}", centre - radius, centre + radius, true, unit)[1]
                    )
            continue
        past, future = m4.past_forecasts(known), m4.forecasts(known)
        own = pm.PanelIntervals(m4.LEVEL, season_length=m4.SEASON).fit(past).predict_interval(future)
        lower, upper = (own[f"seasonal naive-{side}-95"].to_numpy().reshape(-1, m4.H) for side in ("lo", "hi"))
        found.append(m4.row("pimeter, PanelIntervals(season_length=24)", lower, upper, true, unit))
        radius = np.array([cone_margins(past.filter(pl.col("unique_id") == key)) for key in known])
        found.append(m4.row("split conformal (cone)", centre - radius, centre + radius, true, unit))
        for label in STREAMS:
            best = min(RATES[label], key=lambda rate, label=label: scores[label, rate])
            for rate, how in ((USUAL[label], "usual"), (best, "tuned")):
                radius = stream_margins(known, label, rate)
                found.append(m4.row(f"{label}, {how} rate", centre - radius, centre + radius, true, unit))
    return found


def cone_margins(windows: pl.DataFrame) -> np.ndarray:
    """Half-widths of a cone fitted to the whole windows of a series."""
    whole = windows.filter(pl.len().over("cutoff") == m4.H)
    targets, said = (whole[name].to_numpy().reshape(-1, m4.H) for name in ("y", "seasonal naive"))
    return pm.ForecastIntervals(m4.LEVEL).fit(targets, said).margin_[:, 1]


def stream_margins(known: dict[str, np.ndarray], label: str, rate: float) -> np.ndarray:
    """Margins (series, h) of streams of absolute errors, the first half of which is the start.

    Errors of a seasonal naive forecast are the same at all steps of a season, but for how many are known.
    """
    seasons = -(-np.arange(1, m4.H + 1) // m4.SEASON)
    found = np.empty((len(known), m4.H))
    for i, y in enumerate(known.values()):
        for season in np.unique(seasons).tolist():
            scores = np.abs(y[m4.SEASON * season :] - y[: -m4.SEASON * season])
            found[i, seasons == season] = STREAMS[label](scores, len(scores) // 2, m4.LEVEL, rate)[-1]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few days, nothing saved")
    parser.add_argument("--save", action="store_true", help="write the table to results/")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # CoverageWarning, and what MAPIE says at each update
    series, source = closes()
    packages = ["numpy", "scikit-learn", "pimeter", *(p for p in ("mapie", "river") if find_spec(p))]
    header = "method | coverage | of eight parts | width | infinite | interval score | microseconds a day"
    lines = [
        "# Updated intervals beside those of other libraries",
        "",
        f"`python benchmarks/forecast_peers.py --save`. {platform.machine()}; Python {platform.python_version()}, "
        + ", ".join(f"{package} {version(package)}" for package in packages)
        + ".",
        "",
        (
            f"{source}; the forecast is the last close; asked for {LEVEL}. Each method learns a day once it is known. "
            "Width and score are those of finite intervals. Processor time; other programs ran beside it."
        ),
        "",
    ]
    for ahead in AHEAD:
        table = rows(series, ahead, 100 if options.quick else None)
        cells = [header.split(" | "), ["---"] * 7, *table]
        days = "1 day" if ahead == 1 else f"{ahead} days"
        lines += [f"## {days} ahead", "", *(f"| {' | '.join(cell)} |" for cell in cells), ""]
    data = []
    if os.environ.get("PIMETER_DATA"):
        data = ["time_series/ge.csv.gz", *(f"air/{name}.csv.gz" for name in STATIONS)]
        data += [f"m4/Hourly-{part}.csv.gz" for part in ("train", "test")]
        n = 50 if options.quick else HOURS
        table = [row for name in STATIONS[: 1 if options.quick else None] for row in air_rows(name, n)]
        cells = [["station", "method", "Winkler / split conformal", "coverage", "infinite"], ["---"] * 5, *table]
        said = f"The first {n:,} hours of the test part. {PUBLISHED}"
        lines += ["## PM2.5 with ridge, 90 %", "", said, ""]
        lines += [*(f"| {' | '.join(cell)} |" for cell in cells), ""]
        table = m4_rows(2 if options.quick else None)
        cells = [["method", "MSIS", "coverage"], ["---"] * 3, *table]
        lines += ["## M4 hourly, seasonal naive forecasts, 95 %", "", "Every fourth series; test part.", ""]
        lines += [*(f"| {' | '.join(cell)} |" for cell in cells), ""]
    text = "\n".join(lines)
    print(text)
    if options.save and not options.quick:
        save(__file__, text, packages=["mapie", "river"], data=data)


if __name__ == "__main__":
    main()
