"""How do pimeter's intervals compare with those of MAPIE and crepes (and puncc)? Width, coverage, time and memory.

    python benchmarks/regression_peers.py [--quick] [--save NAME]

All get the same rows in the same run. Ratios of times are medians over repeats of (ours / peer's), the pair measured
back to back; memory is the growth of the resident peak in a fresh process, median of three. Peers not installed
are left out; `make bench-peers` has them all. The tables go to `results/NAME.md` if MAPIE and crepes are there.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import re
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from interval_coverage import NOISES, Noise
from provenance import save
from scipy import stats
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold

import pimeter as pm

SEED = 20261116
LEVEL = 0.95
DISTRIBUTIONS = (
    *(
        Noise(*distribution)
        for distribution in (("normal", stats.norm()), ("laplace", stats.laplace()), ("t3", stats.t(3)))
    ),
    *(Noise(*distribution) for distribution in (("uniform", stats.uniform(-1, 2)), ("exponential", stats.expon()))),
)
SETS = (DISTRIBUTIONS, NOISES)  # the distributions of the accuracy benchmark, and those of the coverage benchmark
LENGTHS = (30, 50, 100)
FOLDS, FEATURES = 5, 8

Predictor = Callable[[np.ndarray], np.ndarray]  # rows -> (n, 2)
Method = Callable[[np.ndarray, np.ndarray], Predictor]  # calibration (or training) rows and targets


def column(X: np.ndarray) -> np.ndarray:
    return X[:, 0]


class Column(RegressorMixin, BaseEstimator):
    """The model as an object, for those who want one; `fitted_` is what MAPIE looks for."""

    fitted_ = True

    def fit(self, _X: np.ndarray, _y: np.ndarray) -> Column:
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return column(X)


def pimeter_split(X: np.ndarray, y: np.ndarray, guarantee: str = "marginal") -> Predictor:
    return pm.IntervalRegressor(column, confidence_level=LEVEL, guarantee=guarantee).calibrate(X, y).predict_interval


def mapie_split(X: np.ndarray, y: np.ndarray) -> Predictor:
    from mapie.regression import SplitConformalRegressor

    model = SplitConformalRegressor(Column(), confidence_level=LEVEL, prefit=True).conformalize(X, y)
    return lambda rows: model.predict_interval(rows)[1][:, :, 0]


def crepes_split(X: np.ndarray, y: np.ndarray) -> Predictor:
    from crepes import WrapRegressor

    model = WrapRegressor(Column())
    model.calibrate(X, y)
    return lambda rows: model.predict_int(rows, confidence=LEVEL)


def puncc_split(X: np.ndarray, y: np.ndarray) -> Predictor:
    from deel.puncc.api.prediction import BasePredictor
    from deel.puncc.regression import SplitCP

    model = SplitCP(BasePredictor(Column(), is_trained=True), train=False)
    model.fit(X_calib=X, y_calib=y)
    return lambda rows: np.stack(model.predict(rows, alpha=1 - LEVEL)[1:], axis=-1)  # one row comes without its axis


def pimeter_cross(X: np.ndarray, y: np.ndarray) -> Predictor:
    return pm.IntervalRegressor(LinearRegression(), confidence_level=LEVEL, cv=KFold(FOLDS)).fit(X, y).predict_interval


def mapie_cross(X: np.ndarray, y: np.ndarray) -> Predictor:
    from mapie.regression import CrossConformalRegressor

    model = CrossConformalRegressor(LinearRegression(), confidence_level=LEVEL, method="plus", cv=KFold(FOLDS))
    model.fit_conformalize(X, y)
    return lambda rows: model.predict_interval(rows)[1][:, :, 0]


SPLIT: dict[str, Method] = {
    "pimeter": pimeter_split,
    "MAPIE": mapie_split,
    "crepes": crepes_split,
    "puncc": puncc_split,
}
CROSS: dict[str, Method] = {"pimeter": pimeter_cross, "MAPIE": mapie_cross}
MODULES = {"MAPIE": "mapie", "crepes": "crepes", "puncc": "deel"}
MISSING = [name for name, module in MODULES.items() if find_spec(module) is None]


def installed(methods: dict[str, Method]) -> dict[str, Method]:
    return {name: method for name, method in methods.items() if name not in MISSING}


@dataclass(frozen=True)
class Task:
    """What is timed and weighed: by name, so that a fresh process can repeat it."""

    kind: str  # "split": calibrate and predict; "cross": predict with models that are fitted already
    n_fit: int
    n_new: int
    n_columns: int

    def rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        rng = np.random.default_rng([SEED, self.n_columns])
        X, new = rng.standard_normal((self.n_fit, self.n_columns)), rng.standard_normal((self.n_new, self.n_columns))
        return X, X[:, 0] + rng.standard_normal(self.n_fit), new, new[:, 0] + rng.standard_normal(self.n_new)

    @property
    def methods(self) -> dict[str, Method]:
        return installed(SPLIT if self.kind == "split" else CROSS)

    def runs(self, *names: str) -> dict[str, Callable[[], np.ndarray]]:
        """The work of these methods, or of all; everything else is done before."""
        X, y, new, _ = self.rows()
        methods = {name: self.methods[name] for name in names or self.methods}
        if self.kind == "split":
            return {name: lambda method=method: method(X, y)(new) for name, method in methods.items()}
        fitted = {name: method(X, y) for name, method in methods.items()}
        return {name: lambda predict=predict: predict(new) for name, predict in fitted.items()}


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def times(task: Task, repeats: int) -> dict[str, np.ndarray]:
    runs = task.runs()
    for run in runs.values():
        run()  # warm
    rounds = np.array([[seconds(run) for run in runs.values()] for _ in range(repeats)])
    return dict(zip(runs, rounds.T, strict=True))


def status(field: str) -> int:
    """A size of this process, in bytes."""
    found = re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return 1024 * int(found[1]) if found else 0


def growth(task: Task, name: str) -> int:
    """Growth of the resident peak in this process, which has done nothing else than a small task before."""
    Task(task.kind, 500, 500, task.n_columns).runs(name)[name]()
    run = task.runs(name)[name]
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    before = status("VmRSS")
    run()
    return status("VmHWM") - before


def memory(task: Task, repeats: int) -> dict[str, float]:
    def fresh(name: str) -> int:
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            return process.submit(growth, task, name).result()

    return {name: float(np.median([fresh(name) for _ in range(repeats)])) for name in task.methods}


@dataclass(frozen=True)
class Cell:
    """Radii of many calibrations of one distribution and size, by method."""

    distribution: Noise
    m: int
    radii: dict[str, np.ndarray]

    def coverage(self, name: str) -> tuple[float, float]:
        """Mean over calibrations of the fraction that the distribution puts inside, and its standard error."""
        inside = self.distribution.within(-self.radii[name], self.radii[name])
        return float(inside.mean()), float(inside.std(ddof=1) / math.sqrt(inside.size))

    def width(self, ours: str, peers: str) -> float:
        return float(self.radii[ours].mean() / self.radii[peers].mean())

    def enough(self, name: str) -> bool:
        coverage, error = self.coverage(name)
        return coverage >= LEVEL - 3 * error


def cells(draws: int, distributions: tuple[Noise, ...], lengths: tuple[int, ...], seed: int) -> list[Cell]:
    """Every method on the same errors: the model predicts 0, the interval for one new row gives the radius."""
    found = []
    for number, distribution in enumerate(distributions):
        for m in lengths:
            print(f"\rwidths: {distribution.name:<12} m = {m:<4}", end="", flush=True)
            errors = distribution.sample(np.random.default_rng([SEED, seed, number, m]), (draws, m))
            X, new = np.zeros((m, 1)), np.zeros((1, 1))
            methods = {
                "marginal": pimeter_split,
                "approximate": lambda X, y: pimeter_split(X, y, guarantee="approximate"),
            }
            methods |= {other: method for other, method in installed(SPLIT).items() if other != "pimeter"}
            radii = {
                label: np.array([np.ptp(method(X, y)(new)) / 2 for y in errors]) for label, method in methods.items()
            }
            radii["weibull"] = np.quantile(np.abs(errors), LEVEL, axis=1, method="weibull")
            found.append(Cell(distribution, m, radii))
    print()
    return found


def geometric_mean(values: list[float]) -> float:
    return math.exp(float(np.mean(np.log(values))))


def table(header: str, rows: list[list[str]]) -> list[str]:
    lines = [header.split(" | "), ["---"] * len(header.split(" | ")), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def names(found: list[Cell]) -> str:
    return ", ".join(dict.fromkeys(c.distribution.name for c in found))


def width_tables(sets: list[list[Cell]], draws: int) -> list[str]:
    rows = []
    every = [cell for found in sets for cell in found]
    for peer in (name for name in MODULES if name not in MISSING):
        off = max(float(np.abs(c.radii["marginal"] / c.radii[peer] - 1).max()) for c in every)
        label = f'`guarantee="marginal"` against {peer}: largest deviation of a ratio of widths from 1'
        rows.append([label, f"{off:.1e}", "1e-9" if peer == "MAPIE" else ""])
    for found in sets:
        ratio = geometric_mean([c.width("approximate", "weibull") for c in found])
        label = (
            '`guarantee="approximate"` against interpolation at rank (m+1)p (weibull): ratio of widths, geometric mean'
        )
        rows.append([f"{label} over {names(found)}", f"{ratio:.4f}", "1.00"])
    for name, found in product(("marginal", "approximate"), sets):
        short = [f"{c.distribution.name} {c.m}" for c in found if not c.enough(name)]
        label = (
            f'`guarantee="{name}"`, {names(found)}: cells that cover less than p - 3 standard errors, of {len(found)}'
        )
        rows.append([label, f"{len(short)} {', '.join(short)}".strip(), "0"])
    lines = [
        "## Width and coverage on the same split",
        "",
        f"p = {LEVEL}, {draws} calibrations a cell, constant width; coverage from the known distribution.",
        "Exponential errors are positive in the first set of distributions, around their median in the second.",
        "",
        *table("what | measured | at most", rows),
        "",
    ]
    for found in sets:
        each = [
            [
                c.distribution.name,
                str(c.m),
                *(f"{c.coverage(name)[0]:.4f}" for name in ("marginal", "approximate", "weibull")),
                f"{c.coverage('approximate')[1]:.4f}",
                *(f"{c.width('approximate', name):.4f}" for name in ("weibull", "marginal")),
            ]
            for c in found
        ]
        header = (
            "errors | m | coverage, marginal | approximate | weibull | standard error | "
            "width, approximate / weibull | approximate / marginal"
        )
        lines += [*table(header, each), ""]
    return lines


def cost_table(title: str, task: Task, repeats: int, asked: str) -> list[str]:
    """Time, memory, coverage and width of each method, and ours as a ratio to it."""
    print(title, flush=True)
    took, grown = times(task, repeats), memory(task, 1 if repeats < 5 else 3)
    target = task.rows()[3]
    intervals = {name: run() for name, run in task.runs().items()}
    width = {name: pm.mean_width_score(interval) for name, interval in intervals.items()}
    rows = [
        [
            name,
            f"{np.median(took[name]):.4f}",
            f"{np.median(took['pimeter'] / took[name]):.3f}",
            f"{grown[name] / 1e6:.1f}",
            f"{grown['pimeter'] / max(grown[name], 1):.3f}",
            f"{pm.coverage_score(target, intervals[name]):.4f}",
            f"{width['pimeter'] / width[name]:.9f}",
        ]
        for name in took
    ]
    header = "library | seconds | ours / it | peak growth, MB | ours / it | coverage | width, ours / it"
    lines = [f"## {title}", "", f"Asked for: {asked}. Times are medians of {repeats}.", "", *table(header, rows), ""]
    if task.kind == "cross" and "MAPIE" in intervals:
        off = np.abs(intervals["pimeter"] - intervals["MAPIE"])[:500].max()
        lines += [f"The bounds of the first 500 rows differ from MAPIE's by at most {off:.1e} (asked for: 1e-9).", ""]
    return lines


def head(name: str) -> list[str]:
    packages = ["numpy", "scipy", "scikit-learn", "pimeter", *(p.lower() for p in MODULES if p not in MISSING)]
    return [
        "# Intervals beside those of other libraries",
        "",
        f"`python benchmarks/regression_peers.py --save {name}`, seed {SEED}. "
        f"{platform.machine()}, {len(os.sched_getaffinity(0))} threads, load {os.getloadavg()[1]:.1f}; "
        f"Python {platform.python_version()}, "
        + ", ".join(f"{package} {version(package)}" for package in packages)
        + ".",
        "",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small samples, nothing saved")
    parser.add_argument("--save", default="regression_peers", help="name of the file in results/")
    options = parser.parse_args()
    for name in MISSING:
        print(f"{name} is not installed and left out; make bench-peers has it.")
    quick = options.quick
    draws, repeats, n, n_cross = (20, 3, 20_000, 500) if quick else (1000, 11, 1_000_000, 8000)
    lines = head(options.save)
    n_distributions, lengths = (2, LENGTHS[:1]) if quick else (None, LENGTHS)
    sets = [cells(draws, distributions[:n_distributions], lengths, seed) for seed, distributions in enumerate(SETS)]
    lines += width_tables(sets, draws)
    for n_columns in (1, FEATURES):
        title = f"A callable that returns column 0 of {n_columns}, {n:,} calibration and {n:,} test rows"
        asked = "at most 0.8 times the time of the faster of MAPIE and crepes, no more memory"
        lines += cost_table(title, Task("split", n, n, n_columns), repeats, asked)
    title = f"CV+, {FOLDS} folds, LinearRegression, {FEATURES} features, {n_cross:,} x {n_cross:,} rows, fits excluded"
    asked = "at least 10 times faster than MAPIE (ratio 0.1), less than 200 MB"
    lines += cost_table(title, Task("cross", n_cross, n_cross, FEATURES), min(repeats, 5), asked)
    text = "\n".join(lines)
    print(text)
    if quick or {"MAPIE", "crepes"} & set(MISSING):
        print("Nothing saved.")
        return
    save(__file__, text, name=options.save, packages=["mapie", "crepes", "puncc"])


if __name__ == "__main__":
    main()
