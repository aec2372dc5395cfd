"""Do intervals know where the model is weak? Coverage there and under shift; time of local neurons and of the cdf.

    python benchmarks/adaptive_widths.py [--quick]

Errors are normal with a standard deviation that grows tenfold along one of five columns; coverage of the tenth of rows
with the largest one, from the known distribution. Under covariate shift new rows have larger errors than calibration
rows, and the ratio of their densities is known, or learned from the rows. Times are medians of ratios, both measured
back to back in the same run: local neurons over a query of all neighbours by scikit-learn's `KNeighborsRegressor`,
`predict_cdf` over crepes' predictive system (left out where crepes is not installed).
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec

import numpy as np
from provenance import save
from scipy import stats
from sklearn.neighbors import KNeighborsRegressor

import pimeter as pm

SEED = 20261117
LEVEL = 0.9
WIDTHS: dict[str, object] = {
    "constant": "constant",
    "scaled": "scaled",
    "local": "local",
    "local, kernel": pm.LocalWidth(nearness="kernel"),
    "quantile": "quantile",
    "auto": "auto",
}


def zero(X: np.ndarray) -> np.ndarray:
    return np.zeros(len(X))


def weakest(width: object, n: int, n_draws: int) -> tuple[float, float, float, float]:
    """Coverage of all rows and of the weakest tenth, its standard error over draws, and width over the ideal one."""
    found = []
    for draw in range(n_draws):
        rng = np.random.default_rng([SEED, n, draw])
        X, new = rng.uniform(size=(n, 5)), rng.uniform(size=(2000, 5))
        y = rng.normal(scale=10 ** X[:, 0])
        model = pm.IntervalRegressor(zero, confidence_level=LEVEL, width=width, random_state=draw).calibrate(X, y)
        low, high = model.predict_interval(new).T / 10 ** new[:, 0]
        coverage = stats.norm.cdf(high) - stats.norm.cdf(low)
        ideal = 2 * stats.norm.ppf((1 + LEVEL) / 2) * 10 ** new[:, 0]
        wide = np.sum((high - low) * 10 ** new[:, 0]) / ideal.sum()
        found.append((coverage.mean(), coverage[new[:, 0] > 0.9].mean(), wide))
    overall, tenth, wide = np.array(found).T
    return overall.mean(), tenth.mean(), tenth.std(ddof=1) / n_draws**0.5, wide.mean()


def shifted(m: int, n_draws: int) -> dict[str, tuple[float, float]]:
    """Coverage and its standard error where new rows are shifted by one standard deviation."""
    found: dict[str, list[float]] = {"known ratio": [], "learned ratio": [], "no weights": []}
    for draw in range(n_draws):
        rng = np.random.default_rng([SEED, m, draw, 1])
        X, new = rng.normal(size=(m, 3)), rng.normal([1.0, 0.0, 0.0], size=(500, 3))
        y = rng.normal(scale=np.exp(X[:, 0]))
        learned = pm.shift_weights(X, new, random_state=draw)
        weights = {
            "known ratio": (np.exp(X[:, 0] - 0.5), np.exp(new[:, 0] - 0.5)),
            "learned ratio": (learned, learned),
            "no weights": (None, None),
        }
        for name, (old, new_ones) in weights.items():
            model = pm.IntervalRegressor(zero, confidence_level=LEVEL).calibrate(X, y, importance_weight=old)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", pm.CoverageWarning)
                low, high = model.predict_interval(new, importance_weight=new_ones).T / np.exp(new[:, 0])
            found[name].append(float((stats.norm.cdf(high) - stats.norm.cdf(low)).mean()))
    return {name: (float(np.mean(v)), float(np.std(v, ddof=1) / n_draws**0.5)) for name, v in found.items()}


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def local_ratio(kind: str, m: int, n: int, repeats: int) -> tuple[float, float]:
    """Time of local intervals for n rows over a query of all m neighbours; extra memory of ours in MB."""
    rng = np.random.default_rng(SEED)
    X, new = rng.normal(size=(2 * m, 8)), rng.normal(size=(n, 8))
    y = rng.normal(scale=np.exp(X[:, 0] / 2))
    # A width that learns takes half of the rows: m of them are weighted for each prediction.
    width = pm.LocalWidth(nearness=kind)
    model = pm.IntervalRegressor(zero, width=width, random_state=0).calibrate(X, y)
    model.predict_interval(new[:10])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model.predict_interval(new)
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    query = KNeighborsRegressor(m, n_jobs=2).fit(X[:m], y[:m])
    ratios = [
        seconds(lambda: model.predict_interval(new)) / seconds(lambda: query.kneighbors(new)) for _ in range(repeats)
    ]
    return float(np.median(ratios)), memory


def cdf_ratio(m: int, n: int, repeats: int) -> tuple[float, float]:
    """Time of crepes' predictive system over that of `predict_cdf`, and the largest difference of the answers."""
    from crepes import ConformalPredictiveSystem

    rng = np.random.default_rng(SEED)
    errors, y = rng.normal(size=m), rng.normal(size=n)
    X, new = np.zeros((m, 1)), np.zeros((n, 1))
    model = pm.IntervalRegressor(zero).calibrate(X, errors)
    theirs = ConformalPredictiveSystem().fit(errors)
    ratios = []
    for _ in range(repeats):
        ours = seconds(lambda: model.predict_cdf(new, y))
        ratios.append(seconds(lambda: theirs.predict_p(np.zeros(n), y, smoothing=False)) / ours)
    gap = np.abs(model.predict_cdf(new, y) - theirs.predict_p(np.zeros(n), y, smoothing=False)).max()
    return float(np.median(ratios)), float(gap)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small samples, few draws, nothing saved")
    quick = parser.parse_args().quick
    versions = ", ".join(f"{name} {version(name)}" for name in ("pimeter", "numpy", "scikit-learn"))
    out = [
        "# Where the model is weak\n",
        f"`python benchmarks/adaptive_widths.py`, {versions}, Python {platform.python_version()}, level {LEVEL}.\n",
        "Standard deviation 1 to 10 along one of five columns; half of n rows learn, the other half calibrates.\n",
        "| width | n | coverage | coverage of the weakest tenth | width / ideal |",
        "|---|---|---|---|---|",
    ]
    for n in (400,) if quick else (1000, 4000):
        for name, width in WIDTHS.items():
            overall, tenth, error, wide = weakest(width, n, 2 if quick else 20)
            out.append(f"| {name} | {n} | {overall:.3f} | {tenth:.3f} ± {error:.3f} | {wide:.3f} |")
    out += ["\nCovariate shift of one standard deviation:\n", "| weights | m | coverage |", "|---|---|---|"]
    for m in (200,) if quick else (200, 1000):
        for name, (coverage, error) in shifted(m, 5 if quick else 100).items():
            out.append(f"| {name} | {m} | {coverage:.3f} ± {error:.3f} |")
    out += ["\n| time | ratio |", "|---|---|"]
    m, n, repeats = (500, 1000, 1) if quick else (5000, 10_000, 5)
    for kind in ("forest", "kernel"):
        ratio, memory = local_ratio(kind, m, n, repeats)
        out.append(
            f"| local, {kind}: {m} x {n}, d = 8, over a query of all neighbours | {ratio:.2f} (+{memory:.0f} MB) |"
        )
    if find_spec("crepes"):
        m, n = (1000, 10_000) if quick else (100_000, 1_000_000)
        ratio, gap = cdf_ratio(m, n, 1 if quick else 3)
        out.append(
            f"| crepes' predictive system over predict_cdf, {m} errors, {n} rows | {ratio:.0f} (differ by {gap:.1g}) |"
        )
    out.append(f"\nLoad at the end {os.getloadavg()[0]:.1f}.")
    text = "\n".join([*out, ""])
    print(text)
    if quick or not find_spec("crepes"):
        print("Nothing saved: quick, or crepes is missing.")
        return
    save(__file__, text, packages=["crepes"])


if __name__ == "__main__":
    main()
