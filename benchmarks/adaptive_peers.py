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
from itertools import product

import numpy as np
from models import MODELS, quantile_model
from provenance import RESULTS, save, sessions
from width_peers import (
    ANY_MODEL,
    COLUMNS,
    LEVEL,
    PEERS,
    SETS,
    Method,
    Models,
    Row,
    Table,
    csv_text,
    lines,
    measured,
    parts,
)

import pimeter as pm

THEIRS = RESULTS / "width_peers.csv"


def pimeter(width: object, cv: int | None = None) -> Method:
    def intervals(models: Models, X: Table, y: Table, new: Table, seed: int) -> Table:
        model = pm.IntervalRegressor(
            models.regressor(), confidence_level=LEVEL, width=width, cv=cv, random_state=seed, n_jobs=1
        )
        return model.fit(X, y).predict_interval(new)

    return intervals


def chosen(name: str, split: int) -> Models:
    """The model that `width_peers.py` has found to be the best one for the training rows of this split."""
    wanted = (name, str(split), "own", next(iter(ANY_MODEL)))
    found = [row["model"] for row in lines(THEIRS) if tuple(row[key] for key in COLUMNS[:4]) == wanted]
    if not found:
        sys.exit(f"No model was chosen for {name}, split {split}: run width_peers.py first.")
    model, n_columns = found[0].partition(" (")[0], parts(name, split)[0].shape[1]
    return Models(model, partial(MODELS[model], n_columns), quantile_model)


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


def ours(name: str, split: int, table: str, method: str) -> Row:
    """One line of the table."""
    run = METHODS[method]
    if table == "same":
        return measured(name, split, table, method, run)
    models = chosen(name, split)  # in place of those that `measured` hands on
    return measured(name, split, "same", method, lambda _, *rows: run(models, *rows)) | {
        "table": table,
        "model": models.name,
    }


def geometric(values: object) -> float:
    return float(np.exp(np.mean(np.log(list(values)))))


def complete_splits(rows: list[Row]) -> dict[str, list[str]]:
    """Splits of each set that all methods of both tables have been measured on."""
    n_methods = sum(len(METHODS) + len(peers) for peers in PEERS.values())
    counts = Counter((row["set"], row["split"]) for row in rows)
    return {name: sorted(split for (one, split), n in counts.items() if (one, n) == (name, n_methods)) for name in SETS}


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
        print(*ours("diabetes", 0, "same", ONE_SPLIT).values())
        print(f"numpy {version('numpy')}. Nothing saved.")
        return
    path = RESULTS / "adaptive_peers.csv"
    data = [f"regression/{name}.csv.gz" for name in SETS]
    kept = partial(save, __file__, data=[*data, THEIRS], earlier=sessions(path.with_suffix(".json")))
    rows = lines(path)
    have = {tuple(row[key] for key in COLUMNS[:4]) for row in rows}
    for split, name, table, method in product(range(arguments.splits), SETS, PEERS, METHODS):
        if split < SETS[name] and (name, str(split), table, method) not in have:
            rows.append(ours(name, split, table, method))
            print(*rows[-1].values(), flush=True)
            kept({".csv": csv_text(rows)})
    every = rows + lines(THEIRS)
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
