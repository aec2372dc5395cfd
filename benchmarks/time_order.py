"""Are rows to come covered? Random splits against splits in the order of time, for series whose neighbours are similar.

    python benchmarks/time_order.py [--quick]

600 rows of a series are there, and the next 100 are predicted at once, at .9: by the mean of the three nearest rows in
time, which interpolates between rows that calibrate if these are shuffled, and by a line through the last value, whose
residuals are independent. Coverage is the mean over series. The table goes to `results/time_order.md`.
"""

from __future__ import annotations

import argparse
import platform

import numpy as np
from provenance import save
from scipy.signal import lfilter
from sklearn.linear_model import Ridge
from sklearn.model_selection import TimeSeriesSplit
from sklearn.neighbors import KNeighborsRegressor

import pimeter as pm

SEED = 20261116
N, N_TO_COME, LEVEL = 600, 100, 0.9
FACTORS = {"AR(.7)": 0.7, "AR(.95)": 0.95, "random walk": 1.0}
SETTINGS = {
    "shuffled": {},
    "cv=5": {"cv": 5},
    "shuffle=False": {"shuffle": False},
    "cv=5, shuffle=False": {"cv": 5, "shuffle": False},
    "TimeSeriesSplit(5)": {"cv": TimeSeriesSplit(5)},
    "TimeSeriesSplit(5, max_train_size=200)": {"cv": TimeSeriesSplit(5, max_train_size=200)},
}


def coverage(factor: float, model: str, settings: dict[str, object], rng: np.random.Generator) -> float:
    y = lfilter([1.0], [1.0, -factor], rng.normal(size=N + N_TO_COME + 501))[500:]
    X, y = (np.arange(N + N_TO_COME, dtype=float) if model == "3-NN of time" else y[:-1])[:, None], y[1:]
    estimator = KNeighborsRegressor(3) if model == "3-NN of time" else Ridge()
    own = pm.IntervalRegressor(estimator, confidence_level=LEVEL, random_state=0, **settings).fit(X[:N], y[:N])
    return pm.coverage_score(y[N:], own.predict_interval(X[N:]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few series, nothing saved")
    quick = parser.parse_args().quick
    n_series = 3 if quick else 200
    print(f"numpy {np.__version__}")
    lines = []
    for series, factor in FACTORS.items():
        for model in ("3-NN of time", "line through the last value"):
            for name, settings in SETTINGS.items():
                streams = np.random.default_rng(SEED).spawn(n_series)
                found = [coverage(factor, model, settings, rng) for rng in streams]
                error = np.std(found, ddof=1) / np.sqrt(n_series)
                lines.append(f"| {series}, {model}, {name} | {100 * np.mean(found):.1f} | {100 * error:.1f} |")
                print(lines[-1], flush=True)
    if quick:
        print("Nothing saved: quick.")
        return
    text = (
        f"# Rows to come\n\n`python benchmarks/time_order.py`: coverage in per cent of the next {N_TO_COME} rows at "
        f"{100 * LEVEL:g} %, after {N} rows; means of {n_series} series and their standard errors. "
        f"numpy {np.__version__}, Python {platform.python_version()}.\n\n"
        "| series, model, split | coverage | +- |\n|---|---|---|\n"
    )
    save(__file__, text + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
