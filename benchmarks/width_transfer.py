"""Does `width="auto"` hold up on tables that had no part in its making?

    python benchmarks/width_transfer.py [--quick]

Tables that are here for other reasons become regressions: of each classification set, and of two that scikit-learn
ships, the column with the most distinct values (the first of these) is the target and the others are features; of the
air of three stations PM2.5 is, given the weather and the hour. One black box, 100 extremely random trees, at 90 %, at
most 2,000 training and 2,000 test rows, one split each, against the best of five methods of other libraries chosen in
hindsight for each set: MAPIE's CV+ and CQR, crepes twice, and quantile-forest.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import sys
import warnings
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from provenance import Unfinished, save
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.model_selection import train_test_split
from width_peers import (
    ANY_MODEL,
    LEVEL,
    MAX_ROWS,
    OWN_MODEL,
    QUANTILE_MODELS,
    Method,
    Models,
    Table,
    quantile_model,
)

import pimeter as pm

LABELLED = (
    "sonar",
    "heart_disease",
    "ionosphere",
    "musk1",
    "breast_cancer",
    "pima_diabetes",
    "spambase",
    "phoneme",
    "mammography",
)
STATIONS = ("Aotizhongxin", "Changping", "Dingling")
WEATHER = ("month", "hour", "TEMP", "PRES", "DEWP", "RAIN", "WSPM")
SHIPPED = {"breast tumours": load_breast_cancer, "wine": load_wine}
SEED = 20261301
PACKAGES = ("mapie", "crepes", "quantile-forest")


def pimeter(**options: object) -> Method:
    def intervals(models: Models, X: Table, y: Table, new: Table, seed: int) -> Table:
        model = pm.IntervalRegressor(models.regressor(), confidence_level=LEVEL, random_state=seed, **options)
        return model.fit(X, y).predict_interval(new)

    return intervals


PEERS = {name: ANY_MODEL[name] for name in ("MAPIE CV+", "MAPIE CQR", "crepes normalised", "crepes Mondrian")}
PEERS["quantile-forest"] = OWN_MODEL["quantile-forest"]
OURS = {
    "auto, cv=5": pimeter(width="auto", cv=5),
    "auto": pimeter(width="auto"),
    "constant, cv=5": pimeter(cv=5),
    "constant": pimeter(),
}


def numbers(path: Path) -> tuple[list[str], Table]:
    """Columns of numbers of a file, without rows that miss one."""
    with gzip.open(path, "rt", newline="") as file:
        rows = list(csv.DictReader(file))
    names = [name for name in rows[0] if all(_is_number(row[name]) for row in rows[:50])]
    full = [row for row in rows if all(_is_number(row[name]) for name in names)]
    return names, np.array([[float(row[name]) for name in names] for row in full])


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).replace("-", "", 2).replace("e", "", 1).isdigit()


def read(name: str, folder: Path) -> tuple[Table, Table]:
    """Features and target of a set."""
    if name == "diabetes":
        return load_diabetes(return_X_y=True)
    if name in SHIPPED:
        table = SHIPPED[name]().data
    elif name in STATIONS:
        names, table = numbers(folder / "air" / f"{name}.csv.gz")
        at = names.index("PM2.5")
        keep = [i for i, column in enumerate(names) if i != at and column in WEATHER]
        return table[:, keep], table[:, at]
    else:
        names, table = numbers(folder / "classification" / f"{name}.csv.gz")
        table = table[:, [i for i, column in enumerate(names) if column != "target"]]
    at = int(np.argmax([len(np.unique(column)) for column in table.T]))
    return np.delete(table, at, axis=1), table[:, at]


def measured(name: str, folder: Path, run: Method) -> tuple[float, float]:
    """Interval score and coverage on the test rows of one split."""
    X, y = read(name, folder)
    n = min(MAX_ROWS, int(0.75 * len(y)))
    X, X_test, y, y_test = train_test_split(X, y, train_size=n, test_size=min(MAX_ROWS, len(y) - n), random_state=SEED)
    models = Models(
        "extra trees",
        partial(ExtraTreesRegressor, 100, random_state=0),
        partial(quantile_model, QUANTILE_MODELS["boosted trees"]),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        intervals = run(models, X, y, X_test, 0)
    # Infinite bounds are cut, in favour of whoever gives them.
    intervals = np.sort(np.clip(intervals, y.min() - np.ptp(y), y.max() + np.ptp(y)), axis=1)
    return float(pm.interval_score(y_test, intervals, LEVEL)), float(pm.coverage_score(y_test, intervals))


def main(say: Callable[[str], None] = print) -> None:
    parser = argparse.ArgumentParser(description="Compare width='auto' with other libraries on tables nobody tuned on.")
    parser.add_argument("--quick", action="store_true", help="one small set without other libraries, nothing is saved")
    options = parser.parse_args()
    if options.quick:
        score, coverage = measured("wine", Path(), OURS["auto"])
        say(f"wine, auto: {score:.4g}, coverage {coverage:.3f}, numpy {version('numpy')}. Nothing saved.")
        return
    missing = [name for name in PACKAGES if find_spec(name.replace("-", "_")) is None]
    if missing:
        sys.exit(f"Not installed: {', '.join(missing)}. `make bench-peers` installs them.")
    folder = os.environ.get("PIMETER_DATA")
    if not folder:
        sys.exit("PIMETER_DATA is not set: this benchmark needs the sets.")
    found: dict[str, dict[str, list[float]]] = {}
    kept = Unfinished(__file__)
    for name in (*LABELLED, *STATIONS, "diabetes", *SHIPPED):
        found[name] = {}
        for method, run in (PEERS | OURS).items():
            found[name][method] = kept(
                f"{name}, {method}", lambda name=name, run=run: measured(name, Path(folder), run)
            )
        say(f"{name}: " + ", ".join(f"{method} {score:.4g}" for method, (score, _) in found[name].items()))
    text = page(found)
    say(text)
    data = [f"classification/{name}.csv.gz" for name in LABELLED] + [f"air/{name}.csv.gz" for name in STATIONS]
    save(__file__, text, packages=PACKAGES, data=data)
    kept.close()


def page(found: dict[str, dict[str, list[float]]]) -> str:
    """The table."""
    best = {name: min(PEERS, key=lambda peer: held[peer][0]) for name, held in found.items()}
    versions = ", ".join(f"{name} {version(name)}" for name in ("pimeter", *PACKAGES))
    lines = [
        "# Widths on tables that had no part in their making",
        "",
        f"`python benchmarks/width_transfer.py`, {versions}; {LEVEL:.0%}, one split of each set. Interval scores.",
        "",
        "| method | / best peer in hindsight | worst set | / constant, cv=5 | worst set | coverage | least |",
        "|---|---|---|---|---|---|---|",
    ]
    for method in (*OURS, *PEERS):
        cells = []
        for other in (best, dict.fromkeys(found, "constant, cv=5")):
            ratios = {name: held[method][0] / held[other[name]][0] for name, held in found.items()}
            worst = max(ratios, key=ratios.__getitem__)
            cells += [f"{np.exp(np.mean(np.log(list(ratios.values())))):.3f}", f"{worst} {ratios[worst]:.3f}"]
        covered = [held[method][1] for held in found.values()]
        cells += [f"{np.mean(covered):.3f}", f"{min(covered):.3f}"]
        lines.append(f"| {method} | {' | '.join(cells)} |")
    lines += [
        "",
        "| set | best peer | auto, cv=5 / best peer | / constant, cv=5 | auto / constant |",
        "|---|---|---|---|---|",
    ]
    for name, held in found.items():
        auto = held["auto, cv=5"][0]
        ratios = (auto / held[best[name]][0], auto / held["constant, cv=5"][0], held["auto"][0] / held["constant"][0])
        lines.append(f"| {name} | {best[name]} | {' | '.join(f'{ratio:.3f}' for ratio in ratios)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
