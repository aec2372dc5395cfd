"""How do updated cones compare with MAPIE's ACI and EnbPI and with river's quantiles? Coverage, width and time.

    PIMETER_DATA=FOLDER python benchmarks/forecast_peers.py [--quick] [--save]

The series are the daily closes of General Electric, the forecast is that the last close stays, 1 or 10 days ahead. The
first half of the rows from 2001 on calibrates; on the second half each method predicts a day, and learns it once it is
known. A random walk replaces the closes where there is no data. Peers not installed are left out; `make bench-peers`
has them all. `--save` writes `results/forecast_peers.md`.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import platform
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from provenance import save
from sklearn.base import BaseEstimator, RegressorMixin

import pimeter as pm

LEVEL, WINDOW, GAMMA = 0.95, 500, 0.05
FIRST = 9840  # row of the validation part
AHEAD = (1, 10)

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


def mapie(method: str) -> Follower:
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
                    model.adapt_conformal_inference(row, target, gamma=GAMMA, confidence_level=LEVEL)
                model.update(row, target)
            found = model.predict(now[i, None, None], confidence_level=LEVEL, allow_infinite_bounds=True)[1]
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
        start = time.perf_counter()
        bounds = np.array(list(follow(past, happened, now, then, ahead)))
        took = time.perf_counter() - start
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few days, nothing saved")
    parser.add_argument("--save", action="store_true", help="write the table to results/")
    options = parser.parse_args()
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
            "Width and score are those of finite intervals."
        ),
        "",
    ]
    for ahead in AHEAD:
        table = rows(series, ahead, 100 if options.quick else None)
        cells = [header.split(" | "), ["---"] * 7, *table]
        days = "1 day" if ahead == 1 else f"{ahead} days"
        lines += [f"## {days} ahead", "", *(f"| {' | '.join(cell)} |" for cell in cells), ""]
    text = "\n".join(lines)
    print(text)
    if options.save and not options.quick:
        data = ["time_series/ge.csv.gz"] if os.environ.get("PIMETER_DATA") else []
        save(__file__, text, packages=["mapie", "river"], data=data)


if __name__ == "__main__":
    main()
