"""Are copies of rows found, is chance left alone, and do groups of copies restore coverage?

    python benchmarks/row_copies.py [--quick]

Three tables. Independent rows with few possible values, which are equal by chance: how often an alarm is raised; none
of the cells may exceed 5 % (binomial tests, Holm over all cells). Rows of which one column or more is continuous, or
many are rounded, with 5 % of them overwritten by others, or each there three times: how often copies are found. And
coverage at .9 of models that remember their rows, with and without `groups=duplicate_groups(X, y)`.

The rule was chosen on other seeds, and on fewer designs. The last discrete design shows where it fails: a column on no
grid that determines all others and the target. The tables go to `results/row_copies.md`.
"""

from __future__ import annotations

import argparse
import platform
import warnings
from collections.abc import Callable

import numpy as np
from designs import CONTINUOUS, DISCRETE, LIMIT, Rng, Rows, overwritten, sine, thrice
from provenance import save
from scipy.stats import binom
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor

import pimeter as pm
from pimeter.duplicates import copies
from pimeter.row_hashes import row_keys

SEED = 20261116
MOST_ALARMS = 0.05


def is_found(X: np.ndarray, y: np.ndarray) -> bool:
    return copies(row_keys(X, y), X, y).n > 0


def rate(
    make: Callable[[int, Rng], Rows], n: int, n_draws: int, key: int, taken: Callable[..., np.ndarray] | None
) -> int:
    n_found = 0
    for rng in np.random.default_rng([SEED, key, n]).spawn(n_draws):
        X, y = make(n, rng)
        rows = slice(None) if taken is None else taken(n, rng)
        n_found += is_found(X[rows], y[rows])
    return n_found


def alarms(lengths: dict[int, int]) -> list[str]:
    """A line for each discrete design, and what Holm's test says of all cells but those of the known limit."""
    lines, cells = [], []
    for key, (name, make) in enumerate(DISCRETE.items()):
        found = [rate(make, n, n_draws, key, None) for n, n_draws in lengths.items()]
        if name != LIMIT:
            cells += [binom.sf(k - 1, n_draws, MOST_ALARMS) for k, n_draws in zip(found, lengths.values(), strict=True)]
        fractions = " | ".join(f"{k / n_draws:.4f}" for k, n_draws in zip(found, lengths.values(), strict=True))
        lines.append(f"| {name} | {fractions} |")
        print(lines[-1], flush=True)
    in_order = np.sort(cells) * np.arange(len(cells), 0, -1)
    n_beyond = int(np.count_nonzero(np.maximum.accumulate(in_order) < 0.05))
    said = f"Cells with more than 5 % of alarms (Holm over {len(cells)} cells, the last line left out): {n_beyond}."
    print(said)
    return [*lines, "", said]


def finds(lengths: dict[int, int]) -> list[str]:
    lines = []
    for key, (name, make) in enumerate(CONTINUOUS.items()):
        for how, taken in (("5 % copies", overwritten), ("each three times", thrice), ("none", None)):
            found = [rate(make, n, n_draws, 1000 + key, taken) / n_draws for n, n_draws in lengths.items()]
            lines.append(f"| {name} | {how} | {' | '.join(f'{fraction:.4f}' for fraction in found)} |")
            print(lines[-1], flush=True)
    return lines


def coverages(n_draws: int) -> list[str]:
    models = {
        "decision tree": DecisionTreeRegressor(random_state=0),
        "1-NN": KNeighborsRegressor(1),
        "ridge": Ridge(),
    }
    lines = []
    for name, model in models.items():
        for cv in (5, None):
            for how, taken in (("5 % copies", overwritten), ("each three times", thrice)):
                found: dict[bool, list[float]] = {False: [], True: []}
                for rng in np.random.default_rng([SEED, 1]).spawn(n_draws):
                    X, y = sine(300, rng)
                    rows = taken(300, rng)
                    X, y = X[rows], y[rows]
                    new = sine(2000, rng)
                    for has_groups, own in found.items():
                        groups = pm.duplicate_groups(X, y) if has_groups else None
                        fitted = pm.IntervalRegressor(clone(model), confidence_level=0.9, cv=cv, random_state=0)
                        own.append(pm.coverage_score(new[1], fitted.fit(X, y, groups=groups).predict_interval(new[0])))
                numbers = " | ".join(
                    f"{np.mean(own):.3f} | {np.std(own, ddof=1) / np.sqrt(n_draws):.3f}" for own in found.values()
                )
                lines.append(f"| {name} | {cv} | {how} | {numbers} | {fitted.guaranteed_level_:.3f} |")
                print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few draws, nothing saved")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore", pm.CoverageWarning)
    print(f"numpy {np.__version__}")
    lengths = {100: 3, 1000: 2} if quick else {100: 2000, 1000: 500, 10_000: 40, 100_000: 4}
    columns = " | ".join(f"{n:,} rows" for n in lengths)
    discrete = alarms(lengths)
    found = finds(lengths if quick else {100: 500, 1000: 200, 10_000: 20, 100_000: 4})
    covered = coverages(3 if quick else 100)
    if quick:
        print("Nothing saved: quick.")
        return
    draws = ", ".join(f"{k:,} draws of {n:,} rows" for n, k in lengths.items())
    text = "\n".join(
        [
            "# Copies of rows",
            "",
            f"`python benchmarks/row_copies.py`. numpy {np.__version__}, Python {platform.python_version()}.",
            "",
            f"## Fraction of alarms where rows are equal by chance ({draws})",
            "",
            f"| independent rows | {columns} |",
            f"{'|---' * (1 + len(lengths))}|",
            *discrete,
            "",
            "## Fraction of tables whose copies are found (500, 200, 20 and 4 draws)",
            "",
            f"| rows | copies | {columns} |",
            f"{'|---' * (2 + len(lengths))}|",
            *found,
            "",
            "## Coverage at .9 of 300 rows with copies, of new rows (means of 100 sets and their standard errors)",
            "",
            "| model | cv | copies | without groups | +- | duplicate_groups | +- | guaranteed_level_ with groups |",
            f"{'|---' * 8}|",
            *covered,
        ]
    )
    save(__file__, text + "\n")


if __name__ == "__main__":
    main()
