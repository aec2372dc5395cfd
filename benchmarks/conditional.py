"""Coverage where it matters: is it guaranteed, found where it fails, and explained?

    python benchmarks/conditional.py [--quick] [--only PART ...] [--draws PART=N ...] [--jobs 1] [--peers PYTHON]

`--draws` sets the number of draws of a part, which its table states; `--peers` names a Python with MAPIE 1.6 and cvxpy;
`--jobs` is how many rows of tables run at once: each has a random stream of its own, so that numbers are the same.

groups: 20 overlapping groups, 1,000 calibration rows, 90 %: the least coverage of a group over all draws, in three
designs (generated groups; numbers cut at thresholds, correlated as those of Communities; categories of five columns as
in Adult), deterministic and randomised.
peer: mean width and time for 1,000 new rows against MAPIE's ConditionalSplitConformalRegressor on the same groups
(left out without `--peers`; processor time, medians of repeats, all rows of both).
subgroup: how often a planted subgroup (8 % of 2,000 rows covered 70 %, all others 90 %) is found and confirmed by
`measure`, and how often this finding is raised where nothing is planted. Found means raised, and that the rows which
are named are covered less than 82 % in truth.
new: 40 groups of 25 rows with random effects: coverage of rows of a new group, at 90 %.
explain: how often the planted cause of the width is ranked first by `explain`.
Seeds are others than those that settings were chosen on.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from provenance import save
from scipy import stats

import pimeter as pm

SEED = 20261126
LEVEL, M = 0.9, 1000
N_NEW = 100
N_PEER_ROWS = 1000

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]


def zero(X: object) -> Array:
    """A model that knows nothing."""
    return np.zeros(len(X))  # type: ignore[arg-type]


def generated(rng: np.random.Generator, n: int) -> tuple[Flags, Array]:
    """20 groups, each of 5 to 50 % of the rows, by chance; every other makes targets vary more."""
    groups = rng.random((n, 20)) < np.linspace(0.05, 0.5, 20)
    return groups, np.exp(groups @ np.tile([0.35, 0.0], 10))


def communities(rng: np.random.Generator, n: int) -> tuple[Flags, Array]:
    """Rows below the 30 % and above the 70 % point of ten correlated numbers; heavy tails grow with two of them."""
    X = 0.6 * rng.standard_normal((n, 10)) + 0.8 * rng.standard_normal((n, 1))
    groups = np.concatenate([X < -0.52, X > 0.52], axis=1)
    return groups, np.exp(0.5 * X[:, 0] - 0.3 * X[:, 3])


def adult(rng: np.random.Generator, n: int) -> tuple[Flags, Array]:
    """Categories of five columns, 2 to 6 each and some of them rare; lognormal targets that differ between them."""
    fractions = (
        [0.67, 0.33],
        [0.85, 0.09, 0.04, 0.02],
        [0.35, 0.3, 0.2, 0.15],
        [0.3, 0.3, 0.2, 0.2],
        [0.4, 0.25, 0.15, 0.1, 0.06, 0.04],
    )
    codes = [rng.choice(len(p), n, p=p) for p in fractions]
    groups = np.concatenate(
        [code[:, None] == np.arange(len(p)) for code, p in zip(codes, fractions, strict=True)], axis=1
    )
    return groups, np.exp(0.4 * codes[3] - 0.5 * codes[0] + 0.2 * codes[4])


Design = Callable[[np.random.Generator, int], tuple[Flags, Array]]  # groups of rows, and the scale of their targets
DESIGNS: dict[str, tuple[Design, Any]] = {
    "generated": (generated, stats.norm()),
    "Communities-like": (communities, stats.t(4)),
    "Adult-like": (adult, stats.lognorm(0.7, loc=-1.0)),
}


def intervals_of(groups: Flags, y: Array, new: Flags, *, randomized: bool = False, seed: int = 0) -> Array:
    """Intervals around 0 that cover each group."""
    width = pm.GroupedWidth(randomized=randomized)
    model = pm.IntervalRegressor(zero, confidence_level=LEVEL, width=width, random_state=seed)
    found: Array = model.calibrate(groups.astype(float), y, by=groups).predict_interval(new.astype(float), by=new)
    return found


def group_rows(rng: np.random.Generator, name: str, n_draws: int) -> list[str]:
    """Least coverage of a group in a design."""
    (design, noise), lines = DESIGNS[name], []
    for randomized in (False, True):
        missed, rows = np.zeros((n_draws, 20)), np.zeros((n_draws, 20))
        for draw in range(n_draws):
            (groups, scale), (new, new_scale) = design(rng, M), design(rng, N_NEW)
            y = scale * noise.rvs(M, random_state=rng)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", pm.CoverageWarning)
                lower, upper = intervals_of(groups, y, new, randomized=randomized, seed=draw).T / new_scale
            missed[draw] = (1.0 - noise.cdf(upper) + noise.cdf(lower)) @ new
            rows[draw] = new.sum(axis=0)
        coverage = 1.0 - missed.sum(axis=0) / rows.sum(axis=0)
        worst = int(coverage.argmin())
        departure = missed[:, worst] - (1.0 - coverage[worst]) * rows[:, worst]
        error = np.sqrt((departure**2).sum()) / rows[:, worst].sum()
        kind = "randomised" if randomized else "deterministic"
        lines.append(f"| {name} | {kind} | {coverage[worst]:.4f} ({error:.4f}) | {coverage.mean():.4f} | {n_draws} |")
    return lines


PEER = """
import sys, time, warnings
import numpy as np
from mapie.conditional_conformal_prediction import ConditionalSplitConformalRegressor
from sklearn.dummy import DummyRegressor
warnings.simplefilter("ignore")
groups, y, new = (np.load(sys.argv[1])[name].astype(float) for name in ("groups", "y", "new"))
constant = DummyRegressor(strategy="constant", constant=0.0).fit(groups, y)
start = time.process_time()
peer = ConditionalSplitConformalRegressor(
    lambda X: np.column_stack([np.ones(len(X)), X]), constant, confidence_level=float(sys.argv[3])
).conformalize(groups, y)
_, bounds = peer.predict_interval(new)
np.savez(sys.argv[2], bounds=bounds[:, :, 0], time=time.process_time() - start)
"""


def by_peer(python: str, groups: Flags, y: Array, new: Flags) -> tuple[Array, float]:
    """Intervals of MAPIE and the processor time that they took, in an environment of its own."""
    with tempfile.TemporaryDirectory() as folder:
        given, told = Path(folder) / "given.npz", Path(folder) / "told.npz"
        np.savez(given, groups=groups, y=y, new=new)
        subprocess.run([python, "-c", PEER, given, told, str(LEVEL)], check=True)
        with np.load(told) as found:
            return found["bounds"], float(found["time"])


def peer_rows(rng: np.random.Generator, name: str, n_repeats: int, python: str, n_rows: int) -> list[str]:
    """Width and time against MAPIE in a design."""
    design, noise = DESIGNS[name]
    ratios, ours, theirs = [], [], []
    for _ in range(n_repeats):
        (groups, scale), (new, _) = design(rng, M), design(rng, 1000)
        y = scale * noise.rvs(M, random_state=rng)
        start = time.process_time()
        found = intervals_of(groups, y, new)
        ours.append(time.process_time() - start)
        bounds, spent = by_peer(python, groups, y, new[:n_rows])
        theirs.append(spent * 1000 / n_rows)
        widths = bounds[:, 1] - bounds[:, 0]
        is_finite = np.isfinite(widths)
        own = (found[:n_rows, 1] - found[:n_rows, 0])[is_finite]
        ratios.append(own.mean() / widths[is_finite].mean())
    speed = statistics.median(b / a for a, b in zip(ours, theirs, strict=True))
    ratio, own_time, peer_time = map(statistics.median, (ratios, ours, theirs))
    return [f"| {name} | {ratio:.4f} | {own_time:.2f} | {peer_time:.1f} | {speed:.0f} | {n_repeats} |"]


def searched(rng: np.random.Generator, kind: str, n: int = 2000) -> tuple[pd.DataFrame, Flags]:
    """Eight features, three of them words, and the planted subgroup, 8 % of the rows."""
    X = pd.DataFrame(rng.standard_normal((n, 5)), columns=list("abcde"))
    X["b"] = 0.6 * X["b"] + 0.8 * X["a"]
    X["region"], X["sex"], X["job"] = (
        rng.choice(list("nsewx"), n),
        rng.choice(list("fm"), n),
        rng.choice(list("12345678"), n),
    )
    rules = {
        "nothing": np.zeros(n, np.bool_),
        "a number and a category": (X["a"] > 0.2533) & (X["region"] == "n"),
        "one number": X["c"] > 1.4051,
        "two numbers": (X["a"] > 0.5740) & (X["d"] < -0.5740),
    }
    return X, np.asarray(rules[kind])


def subgroup_rows(rng: np.random.Generator, kind: str, n_draws: int) -> list[str]:
    """Power of the search, and false alarms where nothing is planted."""
    found: list[tuple[bool, bool, bool]] = []
    for _ in range(n_draws):
        X, is_hard = searched(rng, kind)
        spread = np.where(is_hard, 1.6449 / 1.0364, 1.0)  # 70 % of a normal distribution within the 90 % point
        y = spread * rng.standard_normal(len(X))
        bounds = np.tile([-1.6449, 1.6449], (len(X), 1))
        given = pm.measure(y, intervals=bounds, X=X, confidence_level=LEVEL).diagnosis["worst_subgroup"]
        centre = 1e-9 * rng.standard_normal(len(X))
        points = pm.measure(y, centre, X=X, confidence_level=LEVEL).diagnosis["worst_subgroup"]
        truth = [np.where(is_hard, 0.7, 0.9)[named(X, one.sentence)].mean() for one in (given, points)]
        is_found = [
            one.raised and (kind == "nothing" or own < 0.82) for one, own in zip((given, points), truth, strict=True)
        ]
        found.append((*is_found, bool(given.lower <= truth[0] <= given.upper)))
    rates = 100.0 * np.mean(found, axis=0)
    errors = np.sqrt(rates * (100.0 - rates) / n_draws)
    cells = " | ".join(f"{rate:.1f} ({error:.1f})" for rate, error in zip(rates, errors, strict=True))
    return [f"| {kind} | {cells} | {n_draws} |"]


def named(X: pd.DataFrame, sentence: str) -> Flags:
    """Rows that a sentence names; all where conditions are not on features."""
    words = sentence.partition("rows with ")[2].partition(":")[0]
    rows = np.ones(len(X), np.bool_)
    for one in words.split(" and ") if words else []:
        name, sign, value = one.rsplit(" ", 2)
        if name in X:
            rows &= np.asarray(
                X[name] == value if sign == "=" else X[name] > float(value) if sign == ">" else X[name] <= float(value)
            )
    return rows


def new_group_rows(rng: np.random.Generator, effect: str, n_sets: int) -> list[str]:
    """Coverage of rows of a new group."""
    group, deviation = np.repeat(np.arange(40), 25), float(effect)
    inside, level = [], np.nan
    for _ in range(n_sets):
        y = deviation * rng.standard_normal(40)[group] + rng.standard_normal(1000)
        X = rng.uniform(size=(1000, 1))
        model = pm.IntervalRegressor(zero, confidence_level=LEVEL).calibrate(X, y, groups=group)
        y_new = deviation * rng.standard_normal(200) + rng.standard_normal(200)
        inside.append(float(np.mean(np.abs(y_new) <= model.margin_[1])))
        level = model.guaranteed_level_
    error = np.std(inside) / np.sqrt(n_sets)
    return [f"| {effect} | {np.mean(inside):.4f} ({error:.4f}) | {level:g} | {n_sets} |"]


CAUSES: dict[str, Callable[[Array], Array]] = {
    "one feature of eight": lambda X: 0.5 + 2.0 * (X[:, 2] > 0.7),
    "one feature, smooth": lambda X: 0.3 + 2.0 * X[:, 2] ** 2,
    "one feature, beside a weaker one": lambda X: 0.3 + 2.0 * X[:, 2] ** 2 + 0.3 * X[:, 5],
}


def explained_rows(rng: np.random.Generator, cause: str, n_draws: int) -> list[str]:
    """How often the planted cause is ranked first."""
    hits = []
    for draw in range(n_draws):
        X = rng.uniform(size=(2000, 8))
        y = CAUSES[cause](X) * rng.standard_normal(2000)
        model = pm.IntervalRegressor(zero, confidence_level=LEVEL, width="scaled", random_state=draw).calibrate(X, y)
        row = rng.uniform(size=(1, 8))
        row[0, 2] = rng.uniform(0.85, 1.0)
        hits.append(model.explain(row).contributions[0].feature == "column 2")
    rate = 100.0 * np.mean(hits)
    return [f"| {cause} | {rate:.1f} ({np.sqrt(rate * (100 - rate) / n_draws):.1f}) | {n_draws} |"]


class Part(NamedTuple):
    """A table: its rows are made one by one."""

    title: str
    columns: str
    rows: Callable[..., list[str]]  # of a stream of random numbers, the name of the row, and draws
    names: tuple[str, ...]
    draws: int
    quick: int = 2


PARTS = {
    "groups": Part(
        "20 overlapping groups: least coverage of a group",
        "design | version | least coverage | mean coverage of groups | draws",
        group_rows,
        tuple(DESIGNS),
        500,
    ),
    "peer": Part(
        "Against MAPIE's ConditionalSplitConformalRegressor",
        "design | mean width over the peer's | time for 1,000 rows, s | the peer's | times faster | repeats",
        peer_rows,
        tuple(DESIGNS),
        3,
        1,
    ),
    "subgroup": Part(
        "Search for the worst subgroup, n = 2,000",
        "planted | given intervals: found, % | point predictions: found, % | range holds, % | draws",
        subgroup_rows,
        ("nothing", "a number and a category", "one number", "two numbers"),
        400,
    ),
    "new": Part(
        "New groups: 40 groups of 25 rows, random effects",
        "standard deviation of the groups' effects | coverage | guaranteed level | draws",
        new_group_rows,
        ("0.3", "1", "3"),
        1000,
        20,
    ),
    "explain": Part(
        "Why is this interval wide?", "planted cause | ranked first, % | draws", explained_rows, tuple(CAUSES), 100
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--draws", nargs="+", default=[], metavar="PART=N", help="draws of parts, if not all")
    parser.add_argument("--jobs", type=int, default=1, help="rows of tables that run at once")
    parser.add_argument("--peers", help="a Python that has MAPIE 1.6 or later and cvxpy")
    parser.add_argument("--seed", type=int, default=SEED)
    args = parser.parse_args()
    asked = {name: int(n) for name, n in (one.split("=") for one in args.draws)}
    lines = [
        "# Coverage where it matters",
        "",
        f"Seed {args.seed}, Python {platform.python_version()}, numpy {version('numpy')}. Standard errors in brackets.",
    ]
    with ProcessPoolExecutor(args.jobs, get_context("spawn")) as processes:
        running = {}
        for (name, part), stream in zip(PARTS.items(), np.random.default_rng(args.seed).spawn(len(PARTS)), strict=True):
            if name in args.only and (name != "peer" or args.peers):
                draws = part.quick if args.quick else asked.get(name, part.draws)
                more = (args.peers, 2 if args.quick else N_PEER_ROWS) if name == "peer" else ()
                running[name] = [
                    processes.submit(part.rows, rng, row, draws, *more)
                    for row, rng in zip(part.names, stream.spawn(len(part.names)), strict=True)
                ]
        for name, rows in running.items():
            columns = PARTS[name].columns
            lines += ["", f"## {PARTS[name].title}", "", f"| {columns} |", "|---" * len(columns.split("|")) + "|"]
            lines += [line for row in rows for line in row.result()]
    text = "\n".join(lines)
    print(text)
    if not args.quick and set(args.only) == set(PARTS):
        save(__file__, text)


if __name__ == "__main__":
    main()
