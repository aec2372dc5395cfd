"""Intervals that follow the rows, on real data: pimeter's widths beside MAPIE's and crepes' methods.

    python benchmarks/adaptive_peers.py [--quick] [--sets NAME ...]

One black box for all, boosted trees with the same settings (quantile methods: the same trees with a quantile loss), the
same training and test rows for all methods of a split, confidence level 95 %. Large sets give 3,000 training rows, the
others 80 % of their rows; the rest tests. Rows of the table are kept in `results/adaptive_peers.csv` as they come and
not measured again. The sets are found through PIMETER_DATA; the quick run has one that ships with scikit-learn, and as
many methods as are installed.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import os
import platform
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from provenance import RESULTS, save, sessions
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.model_selection import ShuffleSplit, cross_val_predict, train_test_split

import pimeter as pm

LEVEL = 0.95
SETS = {  # name: splits
    "yacht": 5,
    "boston": 5,
    "energy": 5,
    "concrete": 5,
    "wine-red": 3,
    "kin8nm": 2,
    "power-plant": 2,
    "naval": 2,
    "protein": 2,
}
N_TRAIN = 3000
SEED = 20261200
COLUMNS = ("set", "split", "method", "coverage", "width", "score", "worst_fifth", "seconds")
OURS = "pimeter auto, cv=5"

Table = np.ndarray
Method = Callable[[Table, Table, Table, int], Table]  # training rows, targets, new rows, seed -> intervals


def black_box(loss: str = "squared_error", quantile: float | None = None) -> HistGradientBoostingRegressor:
    return HistGradientBoostingRegressor(loss=loss, quantile=quantile, random_state=0)


def pimeter(width: object, cv: int | None = None, tails: str = "symmetric") -> Method:
    def intervals(X: Table, y: Table, new: Table, seed: int) -> Table:
        model = pm.IntervalRegressor(
            black_box(), confidence_level=LEVEL, width=width, tails=tails, cv=cv, random_state=seed
        )
        return model.fit(X, y).predict_interval(new)

    return intervals


def halves(X: Table, y: Table, seed: int) -> list[Table]:
    """Proper training rows and calibration rows."""
    return train_test_split(X, y, test_size=0.2, random_state=seed)


def mapie_split(X: Table, y: Table, new: Table, seed: int) -> Table:
    from mapie.regression import SplitConformalRegressor

    X, X_cal, y, y_cal = halves(X, y, seed)
    model = SplitConformalRegressor(black_box(), confidence_level=LEVEL, prefit=False)
    return model.fit(X, y).conformalize(X_cal, y_cal).predict_interval(new)[1][:, :, 0]


def mapie_normalised(X: Table, y: Table, new: Table, seed: int) -> Table:
    from mapie.conformity_scores import ResidualNormalisedScore
    from mapie.regression import SplitConformalRegressor

    X, X_cal, y, y_cal = halves(X, y, seed)
    scale = RandomForestRegressor(min_samples_leaf=20, random_state=0)
    score = ResidualNormalisedScore(residual_estimator=scale, split_size=0.5, random_state=seed)
    model = SplitConformalRegressor(black_box().fit(X, y), confidence_level=LEVEL, conformity_score=score)
    return model.conformalize(X_cal, y_cal).predict_interval(new)[1][:, :, 0]


def mapie_cv_plus(X: Table, y: Table, new: Table, seed: int) -> Table:
    from mapie.regression import CrossConformalRegressor

    model = CrossConformalRegressor(black_box(), confidence_level=LEVEL, method="plus", cv=5, random_state=seed)
    return model.fit_conformalize(X, y).predict_interval(new)[1][:, :, 0]


def mapie_cqr(X: Table, y: Table, new: Table, seed: int) -> Table:
    from mapie.regression import ConformalizedQuantileRegressor

    X, X_cal, y, y_cal = halves(X, y, seed)
    model = ConformalizedQuantileRegressor(black_box("quantile", 0.5), confidence_level=LEVEL)
    return model.fit(X, y).conformalize(X_cal, y_cal).predict_interval(new)[1][:, :, 0]


def crepes(difficulty: str | None = None, bins: str | None = None) -> Method:
    def intervals(X: Table, y: Table, new: Table, seed: int) -> Table:
        from crepes import WrapRegressor
        from crepes.extras import DifficultyEstimator, MondrianCategorizer

        X, X_cal, y, y_cal = halves(X, y, seed)
        model = WrapRegressor(black_box())
        model.fit(X, y)
        hard = DifficultyEstimator()
        if difficulty == "targets":
            hard.fit(X, y=y, scaler=True)
        else:  # errors on rows that the model has not seen: more than crepes' own examples give it
            hard.fit(X, residuals=y - cross_val_predict(black_box(), X, y), scaler=True)
        kinds = None
        if bins:
            kinds = MondrianCategorizer()
            n_bins = max(2, min(5, len(y_cal) // 40))
            if bins == "prediction":
                kinds.fit(X_cal, f=model.predict, no_bins=n_bins)
            else:
                kinds.fit(X_cal, de=hard, no_bins=n_bins)
        model.calibrate(X_cal, y_cal, de=hard if difficulty else None, mc=kinds)
        return np.asarray(model.predict_int(new, confidence=LEVEL))

    return intervals


METHODS: dict[str, Method] = {
    "MAPIE split": mapie_split,
    "MAPIE normalised": mapie_normalised,
    "MAPIE CV+": mapie_cv_plus,
    "MAPIE CQR": mapie_cqr,
    "crepes normalised, errors": crepes("errors"),
    "crepes normalised, targets": crepes("targets"),
    "crepes Mondrian, prediction": crepes(bins="prediction"),
    "crepes Mondrian, difficulty": crepes(bins="difficulty"),
    "pimeter constant": pimeter("constant"),
    "pimeter scaled": pimeter("scaled"),
    "pimeter local": pimeter("local"),
    "pimeter local, kernel": pimeter(pm.LocalWidth(nearness="kernel")),
    "pimeter quantile": pimeter("quantile"),
    "pimeter auto": pimeter("auto"),
    "pimeter constant, cv=5": pimeter("constant", 5),
    OURS: pimeter("auto", 5),
}


def read(name: str) -> tuple[Table, Table]:
    """Features and target of a set."""
    if name == "diabetes":
        return load_diabetes(return_X_y=True)
    folder = os.environ.get("PIMETER_DATA")
    if not folder:
        sys.exit("PIMETER_DATA is not set: these benchmarks need the regression sets.")
    with gzip.open(Path(folder) / "regression" / f"{name}.csv.gz", "rt") as file:
        header = file.readline().strip().split(",")
        table = np.loadtxt(file, delimiter=",")
    features = [i for i, column in enumerate(header) if column.startswith("f")]
    return table[:, features], table[:, header.index("target")]


def measured(name: str, split: int, method: str) -> dict[str, object]:
    """One line of the table."""
    X, y = read(name)
    size = min(N_TRAIN, int(0.8 * len(y)))
    train, test = next(ShuffleSplit(1, train_size=size, random_state=SEED + split).split(X))
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        intervals = METHODS[method](X[train], y[train], X[test], split)
    seconds = time.perf_counter() - start
    # Infinite bounds, which some give for want of rows, are cut well beyond the training targets: in their favour.
    intervals = np.clip(intervals, y[train].min() - np.ptp(y[train]), y[train].max() + np.ptp(y[train]))
    lower, upper = np.sort(intervals, axis=1).T
    inside = (lower <= y[test]) & (y[test] <= upper)
    quintiles = np.array_split(np.argsort(lower + upper, kind="stable"), 5)
    values = (
        inside.mean(),
        (upper - lower).mean(),
        pm.interval_score(y[test], np.stack([lower, upper], axis=1), LEVEL),
        min(inside[quintile].mean() for quintile in quintiles),
        seconds,
    )
    return dict(zip(COLUMNS, (name, split, method, *(f"{value:.6g}" for value in values)), strict=True))


def methods(quick: bool) -> list[str]:
    """Names of the methods that can run here; the quick run leaves the slowest out."""
    missing = tuple(name for name in ("MAPIE", "crepes") if find_spec(name.lower()) is None)
    if missing and not quick:
        sys.exit(f"{' and '.join(missing)} are not installed: pip install mapie crepes.")
    return [name for name in METHODS if not (name.startswith(missing) or (quick and name == OURS))]


def lines(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def csv_text(table: list[dict[str, str]]) -> str:
    file = io.StringIO()
    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    return file.getvalue()


def summary(table: list[dict[str, str]], done: dict[str, int]) -> str:
    """Means over splits, scores over that of the best peer of each set."""

    def mean(name: str, method: str, column: str) -> float:
        return float(np.mean([float(r[column]) for r in table if (r["set"], r["method"]) == (name, method)]))

    peers = [method for method in METHODS if not method.startswith("pimeter")]
    best = {name: min(peers, key=lambda method: mean(name, method, "score")) for name in done}
    ratios = {m: {name: mean(name, m, "score") / mean(name, best[name], "score") for name in done} for m in METHODS}
    out = ["| set (splits) | best peer in hindsight | auto, cv=5 / best peer | auto / best peer |", "|---|---|---|---|"]
    out += [
        f"| {name} ({n}) | {best[name]} | {ratios[OURS][name]:.3f} | {ratios['pimeter auto'][name]:.3f} |"
        for name, n in done.items()
    ]

    def geometric(values: object) -> float:
        return float(np.exp(np.mean(np.log(list(values)))))

    worst = max(ratios[OURS], key=lambda name: ratios[OURS][name])
    text = f"""Interval score of `width="auto"`, `cv=5` over that of the best peer chosen in hindsight per set:
**{geometric(ratios[OURS].values()):.3f}** geometric mean, worst set {worst} {ratios[OURS][worst]:.3f}.
That trains five models where all peers but CV+ train one; with one split, `width="auto"` has
**{geometric(ratios["pimeter auto"].values()):.3f}**.

"""
    text += "\n".join(out)
    text += "\n\n| method | score / best peer | coverage | worst set | worst quintile | width / best peer | seconds |\n"
    text += "|---|---|---|---|---|---|---|\n"
    for method in METHODS:
        covered = [mean(name, method, "coverage") for name in done]
        quintile = np.mean([mean(name, method, "worst_fifth") for name in done])
        width = geometric(mean(name, method, "width") / mean(name, best[name], "width") for name in done)
        seconds = np.mean([mean(name, method, "seconds") for name in done])
        text += (
            f"| {method} | {geometric(ratios[method].values()):.3f} | {np.mean(covered):.3f} | {min(covered):.3f} "
            f"| {quintile:.3f} | {width:.3f} | {seconds:.1f} |\n"
        )
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one small set, one split, no summary, nothing saved")
    parser.add_argument("--sets", nargs="*", choices=SETS, default=list(SETS))
    arguments = parser.parse_args()
    path = RESULTS / "adaptive_peers.csv"
    kept = partial(
        save,
        __file__,
        packages=["mapie", "crepes"],
        data=[f"regression/{name}.csv.gz" for name in arguments.sets],
        earlier=sessions(path.with_suffix(".json")),
    )
    wanted = {"diabetes": 1} if arguments.quick else {name: SETS[name] for name in arguments.sets}
    table = [] if arguments.quick else lines(path)
    have = {(row["set"], int(row["split"]), row["method"]) for row in table}
    for name, n_splits in wanted.items():
        for split in range(n_splits):
            for method in methods(arguments.quick):
                if (name, split, method) in have:
                    continue
                row = measured(name, split, method)
                print(*row.values(), flush=True)
                table.append({column: str(value) for column, value in row.items()})
                if not arguments.quick:
                    kept({".csv": csv_text(table)})
    if arguments.quick:
        print(f"numpy {version('numpy')}. Nothing saved.")
        return
    text = summary(table, wanted)
    print(text)
    if set(wanted) != set(SETS):
        print("Nothing saved but the rows.")
        return
    versions = ", ".join(f"{name} {version(name)}" for name in ("pimeter", "mapie", "crepes", "scikit-learn"))
    head = (
        f"# Intervals that follow the rows, on real data\n\n{versions}, Python {platform.python_version()}, 95 %.\n\n"
    )
    kept({".md": head + text, ".csv": csv_text(table)})


if __name__ == "__main__":
    main()
