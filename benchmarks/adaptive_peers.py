"""Intervals that follow the rows, on real data: pimeter's widths beside the methods of other libraries.

    python benchmarks/adaptive_peers.py [--quick] [--splits N]

Sets, splits, tables and measures are those of `width_peers.py`, which has to be run before: "same", one black box for
all, boosted trees with scikit-learn's settings; "own", each with its own best model, ours the one with the least
squared error out of fold on training rows. Level 90 %. Rows of the table are kept in `results/adaptive_peers.csv` as
they come and not measured again; compared are the splits that all methods have been measured on.
"""

from __future__ import annotations

import argparse
import platform
import sys
from collections import Counter
from functools import partial
from importlib.metadata import version

import numpy as np
from provenance import RESULTS, save, sessions
from width_peers import (
    LEVEL,
    PEERS,
    SETS,
    Method,
    Models,
    Row,
    Table,
    complete,
    csv_text,
    lines,
)

import pimeter as pm


def pimeter(width: object, cv: int | None = None) -> Method:
    def intervals(models: Models, X: Table, y: Table, new: Table, seed: int) -> Table:
        model = pm.IntervalRegressor(
            models.regressor(), confidence_level=LEVEL, width=width, cv=cv, random_state=seed, n_jobs=1
        )
        return model.fit(X, y).predict_interval(new)

    return intervals


OURS, ONE_SPLIT, CONSTANT = "pimeter auto, cv=5", "pimeter auto", "pimeter constant, cv=5"
METHODS = {
    OURS: pimeter("auto", 5),
    ONE_SPLIT: pimeter("auto"),
    CONSTANT: pimeter("constant", 5),
}
TITLES = {
    "same": "One black box for all",
    "own": "Each with its own best model",
}


def geometric(values: object) -> float:
    return float(np.exp(np.mean(np.log(list(values)))))


def complete_splits(rows: list[Row]) -> dict[str, list[str]]:
    """Splits of each set that all methods of both tables have been measured on."""
    n_methods = sum(len(METHODS) + len(peers) for peers in PEERS.values())
    measured = Counter((row["set"], row["split"]) for row in rows)
    return {
        name: sorted(split for (one, split), n in measured.items() if (one, n) == (name, n_methods)) for name in SETS
    }


def summary(table: str, rows: list[Row], splits: dict[str, list[str]]) -> str:
    """Means over splits, scores over that of the best peer of each set."""

    def mean(name: str, method: str, column: str) -> float:
        found = [row for row in rows if (row["set"], row["method"]) == (name, method) and row["split"] in splits[name]]
        return float(np.nanmean([float(row[column]) for row in found]))

    peers, every = PEERS[table], [*METHODS, *PEERS[table]]
    best = {name: min(peers, key=lambda method: mean(name, method, "score")) for name in SETS}
    ratios = {m: {name: mean(name, m, "score") / mean(name, best[name], "score") for name in SETS} for m in every}
    plain = {name: mean(name, OURS, "score") / mean(name, CONSTANT, "score") for name in SETS}
    worst, beside = max(ratios[OURS], key=ratios[OURS].__getitem__), max(plain, key=plain.__getitem__)
    text = f"""## {TITLES[table]}

Interval score of `width="auto"`, `cv=5` over that of the best of {len(peers)} peers chosen in hindsight per set:
**{geometric(ratios[OURS].values()):.3f}** geometric mean, worst set {worst} {ratios[OURS][worst]:.3f}; with one split
**{geometric(ratios[ONE_SPLIT].values()):.3f}**. Over a constant width with `cv=5`: {geometric(plain.values()):.3f},
worst set {beside} {plain[beside]:.3f}.

| set (splits) | best peer in hindsight | auto, cv=5 / best peer | auto / best peer | auto / constant, cv=5 |
|---|---|---|---|---|
"""
    for name, held in splits.items():
        cells = (ratios[OURS][name], ratios[ONE_SPLIT][name], plain[name])
        text += f"| {name} ({len(held)}) | {best[name]} | {' | '.join(f'{cell:.3f}' for cell in cells)} |\n"
    text += (
        "\n| method | score / best peer | worst set | coverage | least | worst slab | excess risk | width / best peer "
    )
    text += "| CPU seconds |\n|---|---|---|---|---|---|---|---|---|\n"
    for method in every:
        covered = [mean(name, method, "coverage") for name in SETS]
        slab, excess, seconds = (
            np.mean([mean(name, method, column) for name in SETS]) for column in ("worst_slab", "excess", "seconds")
        )
        width = geometric(mean(name, method, "width") / mean(name, best[name], "width") for name in SETS)
        score = f"{geometric(ratios[method].values()):.3f} | {max(ratios[method].values()):.3f}"
        text += f"| {method} | {score} | {np.mean(covered):.3f} | {min(covered):.3f} | {slab:.3f} | {excess:.4f} "
        text += f"| {width:.3f} | {seconds:.1f} |\n"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one small set, one split, no summary, nothing saved")
    parser.add_argument("--splits", type=int, default=max(SETS.values()), help="of each set, at most")
    arguments = parser.parse_args()
    if arguments.quick:
        complete([], {"diabetes": 1}, {"same": {ONE_SPLIT: METHODS[ONE_SPLIT]}}, lambda _: None)
        print(f"numpy {version('numpy')}. Nothing saved.")
        return
    path, theirs = RESULTS / "adaptive_peers.csv", RESULTS / "width_peers.csv"
    data = [f"regression/{name}.csv.gz" for name in SETS]
    kept = partial(save, __file__, data=[*data, theirs], earlier=sessions(path.with_suffix(".json")))
    rows, wanted = lines(path), {name: min(n, arguments.splits) for name, n in SETS.items()}
    complete(rows, wanted, dict.fromkeys(PEERS, METHODS), lambda found: kept({".csv": csv_text(found)}))
    every = rows + lines(theirs)
    splits = complete_splits(every)
    if not all(splits.values()):
        sys.exit("Some sets have no split that all methods were measured on: run width_peers.py first, and all sets.")
    versions = ", ".join(f"{name} {version(name)}" for name in ("pimeter", "scikit-learn"))
    text = f"""# Intervals that follow the rows, on real data

{versions}, Python {platform.python_version()}, {LEVEL:.0%}; peers and their versions in width_peers.md. At most 2,000
training and 2,000 test rows. "Worst slab" is the coverage of the worst slab, judged on rows that did not choose it,
"excess risk" how well features predict a miss (0: not at all); both are means over sets, and noisy with few test rows.

"""
    text += "\n".join(summary(table, [row for row in every if row["table"] == table], splits) for table in PEERS)
    print(text)
    kept({".md": text, ".csv": csv_text(rows)})


if __name__ == "__main__":
    main()
