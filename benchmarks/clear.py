"""Intervals at 95 % beside the published results of CLEAR, on its own splits.

    python benchmarks/clear.py [--quick] [--seeds N] [--sets NAME ...] [--methods NAME ...]

CLEAR (arXiv 2507.08150) publishes interval score, coverage and width for each set and seed; compared is the better of
its variants a and c for each set, in hindsight. Training and test rows are those of its protocol, ``train_test_split``
with ``test_size=.2`` and ``random_state=777 + seed``; a method may use the training rows as it likes. The model is the
best of a few by cross-validation on the training rows alone (squared error, at most 2,000 of them, see `models.py`), or
always a forest of extremely random trees. Rows of the table are kept in `results/clear.csv` as they come and not
measured again; ratios are of means over the seeds that were measured, and the published ones over the same seeds.
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
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path

import numpy as np
from models import MODELS, best_model
from provenance import RESULTS, save, sessions
from sklearn.model_selection import train_test_split

import pimeter as pm

LEVEL = 0.95
SETS = ("insurance", "concrete", "energy_efficiency", "airfoil", "powerplant", "kin8nm", "naval_propulsion")
METHODS = {  # name: (width, cv, whether the model is the best one)
    "auto, cv=5": ("auto", 5, True),
    "auto": ("auto", None, True),
    "constant, cv=5": ("constant", 5, True),
    "auto, cv=5, extra trees": ("auto", 5, False),
}
COLUMNS = ("set", "seed", "method", "model", "score", "coverage", "width", "seconds")

Table = np.ndarray


def read(name: str) -> tuple[Table, Table]:
    """Features and target of a set; the quick run makes its own."""
    if name == "generated":
        X = np.random.default_rng(0).normal(size=(400, 3))
        return X, X[:, 0] + np.exp(X[:, 1] / 2) * np.random.default_rng(1).normal(size=400)
    folder = os.environ.get("PIMETER_DATA")
    if not folder:
        sys.exit("PIMETER_DATA is not set: this benchmark needs the sets of CLEAR.")
    with gzip.open(Path(folder) / "clear" / f"{name}.csv.gz", "rt") as file:
        table = np.loadtxt(file, delimiter=",", skiprows=1)
    return table[:, :-1], table[:, -1]


def published(metric: str) -> dict[tuple[str, str, int], float]:
    """Values of CLEAR by set, variant and seed."""
    with gzip.open(Path(os.environ["PIMETER_DATA"]) / "clear" / "published.csv.gz", "rt") as file:
        rows = [row for row in csv.DictReader(file) if (row["method"], row["metric"]) == ("clear", metric)]
    return {(row["set"], row["variant"], int(row["seed"])): float(row["value"]) for row in rows}


@cache
def parts(name: str, seed: int) -> tuple[Table, Table, Table, Table, str]:
    """Training and test rows, training and test targets, and the best model for the training rows."""
    X, X_test, y, y_test = train_test_split(*read(name), test_size=0.2, random_state=777 + seed)
    return X, X_test, y, y_test, best_model(X, y)


def measured(name: str, seed: int, method: str) -> dict[str, str]:
    """One line of the table; CPU seconds are those of fit and prediction, without the choice of a model."""
    width, cv, is_best = METHODS[method]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        X, X_test, y, y_test, best = parts(name, seed)
        model = best if is_best else "extra trees"
        start = time.process_time()
        regressor = pm.IntervalRegressor(
            MODELS[model](X.shape[1]), confidence_level=LEVEL, width=width, cv=cv, random_state=seed
        )
        intervals = regressor.fit(X, y).predict_interval(X_test)
    values = (
        pm.interval_score(y_test, intervals, LEVEL),
        pm.coverage_score(y_test, intervals),
        np.diff(intervals, axis=1).mean(),
        time.process_time() - start,
    )
    return dict(zip(COLUMNS, (name, str(seed), method, model, *(f"{value:.6g}" for value in values)), strict=True))


def geometric(values: object) -> float:
    return float(np.exp(np.mean(np.log(list(values)))))


def summary(table: list[dict[str, str]]) -> str:
    """Ratios of means over the same seeds, by set, and their geometric means."""
    theirs, out = published("intervalscoreloss"), []
    for method in METHODS:
        ratios, covered, lines = {}, [], []
        for name in SETS:
            rows = [row for row in table if (row["set"], row["method"]) == (name, method)]
            if not rows:
                continue
            variants = {}
            for variant in "ac":
                both = [(float(r["score"]), theirs.get((name, variant, int(r["seed"])))) for r in rows]
                both = [pair for pair in both if pair[1] is not None]
                if both:
                    variants[variant] = (np.mean(both, axis=0), len(both))
            best = min(variants, key=lambda one: variants[one][0][1])
            (ours, other), n = variants[best]
            ratios[name] = ours / other
            coverage = np.mean([float(row["coverage"]) for row in rows])
            covered.append(coverage)
            models = ", ".join(sorted({row["model"] for row in rows}))
            lines.append(
                f"| {name} | {n} | {models} | {best} | {other:.4g} | {ours:.4g} | {ratios[name]:.3f} | {coverage:.3f} |"
            )
        if ratios:
            worst = max(ratios, key=ratios.__getitem__)
            whole = (
                f"{len(ratios)} sets: **{geometric(ratios.values()):.3f}** of CLEAR's interval score (geometric mean), "
                f"worst set {worst} {ratios[worst]:.3f}; mean coverage {np.mean(covered):.3f}.\n"
            )
            out += [
                f"## {method}\n",
                whole,
                "| set | seeds | model | variant | CLEAR | ours | ratio | coverage |",
                "|---|---|---|---|---|---|---|---|",
                *lines,
                "",
            ]
    return "\n".join([*out, against_constant(table)])


def against_constant(table: list[dict[str, str]]) -> str:
    """`auto` over a constant width, on the same rows and models."""

    def scores(method: str) -> dict[tuple[str, str], float]:
        return {(row["set"], row["seed"]): float(row["score"]) for row in table if row["method"] == method}

    ours, plain = scores("auto, cv=5"), scores("constant, cv=5")
    shared = sorted(set(ours) & set(plain))
    by_set = {
        name: np.mean([ours[key] for key in shared if key[0] == name])
        / np.mean([plain[key] for key in shared if key[0] == name])
        for name in dict(shared)
    }
    if not by_set:
        return ""
    worst = max(by_set, key=by_set.__getitem__)
    return (
        f"`auto` over a constant width, cv=5, same model: {geometric(by_set.values()):.3f}, worst set {worst} "
        f"{by_set[worst]:.3f}.\n"
    )


def csv_text(table: list[dict[str, str]]) -> str:
    file = io.StringIO()
    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    return file.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one small generated set, nothing saved")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--sets", nargs="*", choices=SETS, default=list(SETS))
    parser.add_argument("--methods", nargs="*", choices=list(METHODS), default=list(METHODS))
    arguments = parser.parse_args()
    if arguments.quick:
        print(*measured("generated", 0, "auto").values(), f"numpy {version('numpy')}. Nothing saved.")
        return
    path = RESULTS / "clear.csv"
    table: list[dict[str, str]] = []
    if path.exists():
        with path.open(newline="") as file:
            table = list(csv.DictReader(file))
    kept = partial(
        save,
        __file__,
        data=["clear/published.csv.gz", *(f"clear/{name}.csv.gz" for name in SETS)],
        earlier=sessions(path.with_suffix(".json")),
    )
    have = {(row["set"], int(row["seed"]), row["method"]) for row in table}
    for seed in range(arguments.seeds):
        for name in arguments.sets:
            for method in arguments.methods:
                if (name, seed, method) not in have:
                    table.append(measured(name, seed, method))
                    print(*table[-1].values(), flush=True)
                    kept({".csv": csv_text(table)})
    versions = ", ".join(f"{name} {version(name)}" for name in ("pimeter", "numpy", "scikit-learn"))
    head = f"# Beside CLEAR, on its own splits\n\n{versions}, Python {platform.python_version()}, 95 %.\n\n"
    text = head + summary(table)
    print(text)
    kept({".md": text, ".csv": csv_text(table)})


if __name__ == "__main__":
    main()
