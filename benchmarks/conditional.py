"""Coverage where it matters: is it guaranteed, found where it fails, and explained?

    python benchmarks/conditional.py [--quick] [--only PART ...] [--seed SEED]

groups: 20 overlapping groups, 1,000 calibration rows, 90 %: the least coverage of a group over all draws, in three
designs (generated groups; numbers cut at thresholds, correlated as those of Communities; categories of five columns as
in Adult), deterministic and randomised.
peer: mean width and time for 1,000 new rows against MAPIE's ConditionalSplitConformalRegressor on the same groups (if
it and cvxpy are installed; processor time, medians of repeats; fewer rows for the peer, scaled).
subgroup: how often a planted subgroup (8 % of 2,000 rows covered 70 %, all others 90 %) is found and confirmed by
`measure`, and how often this finding is raised where nothing is planted. Found means raised, and that the rows which
are named are covered less than 82 % in truth.
new groups: 40 groups of 25 rows with random effects: coverage of rows of a new group, at 90 %.
explain: how often the planted cause of the width is ranked first by `explain`.
Standard errors in brackets. Seeds are others than those that settings were chosen on.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from provenance import save
from scipy import stats

import pimeter as pm

SEED = 20261126
LEVEL, M = 0.9, 1000
N_DRAWS, N_NEW = 500, 100
N_SEARCHES = 400
N_SETS = 1000
N_EXPLAINED = 100
N_REPEATS = 3
N_PEER_ROWS = 50

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


def group_rows(rng: np.random.Generator, n_draws: int) -> list[str]:
    """Least coverage of a group in each design."""
    lines = ["## 20 overlapping groups: least coverage of a group", ""]
    lines += ["| design | version | least coverage | mean coverage of groups | draws |", "|---|---|---|---|---|"]
    for name, (design, noise) in DESIGNS.items():
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
            lines.append(
                f"| {name} | {kind} | {coverage[worst]:.4f} ({error:.4f}) | {coverage.mean():.4f} | {n_draws} |"
            )
    return lines


def peer_rows(rng: np.random.Generator, n_repeats: int, n_rows: int) -> list[str]:
    """Width and time against MAPIE."""
    lines = ["", "## Against MAPIE's ConditionalSplitConformalRegressor", ""]
    try:
        import cvxpy  # noqa: F401
        from mapie.conditional_conformal_prediction import ConditionalSplitConformalRegressor
    except ImportError as missing:
        return [*lines, f"Not compared: {missing}."]
    from sklearn.dummy import DummyRegressor

    lines += [
        "| design | mean width over the peer's | time for 1,000 rows, s | the peer's | times faster |",
        "|---|---|---|---|---|",
    ]
    for name, (design, noise) in DESIGNS.items():
        ratios, ours, theirs = [], [], []
        for _ in range(n_repeats):
            (groups, scale), (new, _) = design(rng, M), design(rng, 1000)
            y = scale * noise.rvs(M, random_state=rng)
            start = time.process_time()
            found = intervals_of(groups, y, new)
            ours.append(time.process_time() - start)
            constant = DummyRegressor(strategy="constant", constant=0.0).fit(groups, y)
            start = time.process_time()
            peer = ConditionalSplitConformalRegressor(
                lambda X: np.column_stack([np.ones(len(X)), X]), constant, confidence_level=LEVEL
            ).conformalize(groups.astype(float), y)
            _, bounds = peer.predict_interval(new[:n_rows].astype(float))
            theirs.append((time.process_time() - start) * 1000 / n_rows)
            widths = bounds[:, 1, 0] - bounds[:, 0, 0]
            is_finite = np.isfinite(widths)
            own = (found[:n_rows, 1] - found[:n_rows, 0])[is_finite]
            ratios.append(own.mean() / widths[is_finite].mean())
        speed = statistics.median(b / a for a, b in zip(ours, theirs, strict=True))
        lines.append(
            f"| {name} | {statistics.median(ratios):.4f} | {statistics.median(ours):.2f} "
            f"| {statistics.median(theirs):.1f} | {speed:.0f} |"
        )
    return lines


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


def subgroup_rows(rng: np.random.Generator, n_draws: int) -> list[str]:
    """Power and false alarms of the search."""
    lines = ["", "## Search for the worst subgroup, n = 2,000", ""]
    lines += [
        "| planted | given intervals: found, % | point predictions: found, % | range holds, % | draws |",
        "|---|---|---|---|---|",
    ]
    for kind in ("nothing", "a number and a category", "one number", "two numbers"):
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
                one.raised and (kind == "nothing" or own < 0.82)
                for one, own in zip((given, points), truth, strict=True)
            ]
            found.append((*is_found, bool(given.lower <= truth[0] <= given.upper)))
        rates = 100.0 * np.mean(found, axis=0)
        errors = np.sqrt(rates * (100.0 - rates) / n_draws)
        cells = " | ".join(f"{rate:.1f} ({error:.1f})" for rate, error in zip(rates, errors, strict=True))
        lines.append(f"| {kind} | {cells} | {n_draws} |")
    return lines


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


def new_group_rows(rng: np.random.Generator, n_sets: int) -> list[str]:
    """Coverage of rows of a new group."""
    lines = ["", "## New groups: 40 groups of 25 rows, random effects", ""]
    lines += [
        "| standard deviation of the groups' effects | coverage | guaranteed level | draws |",
        "|---|---|---|---|",
    ]
    group = np.repeat(np.arange(40), 25)
    for effect in (0.3, 1.0, 3.0):
        inside, level = [], np.nan
        for _ in range(n_sets):
            y = effect * rng.standard_normal(40)[group] + rng.standard_normal(1000)
            X = rng.uniform(size=(1000, 1))
            model = pm.IntervalRegressor(zero, confidence_level=LEVEL).calibrate(X, y, groups=group)
            y_new = effect * rng.standard_normal(200) + rng.standard_normal(200)
            inside.append(float(np.mean(np.abs(y_new) <= model.margin_[1])))
            level = model.guaranteed_level_
        error = np.std(inside) / np.sqrt(n_sets)
        lines.append(f"| {effect:g} | {np.mean(inside):.4f} ({error:.4f}) | {level:g} | {n_sets} |")
    return lines


def explained_rows(rng: np.random.Generator, n_draws: int) -> list[str]:
    """How often the planted cause is ranked first."""
    lines = ["", "## Why is this interval wide?", "", "| planted cause | ranked first, % | draws |", "|---|---|---|"]
    causes: dict[str, Callable[[Array], Array]] = {
        "one feature of eight": lambda X: 0.5 + 2.0 * (X[:, 2] > 0.7),
        "one feature, smooth": lambda X: 0.3 + 2.0 * X[:, 2] ** 2,
        "one feature, beside a weaker one": lambda X: 0.3 + 2.0 * X[:, 2] ** 2 + 0.3 * X[:, 5],
    }
    for name, scale in causes.items():
        hits = []
        for draw in range(n_draws):
            X = rng.uniform(size=(2000, 8))
            y = scale(X) * rng.standard_normal(2000)
            model = pm.IntervalRegressor(zero, confidence_level=LEVEL, width="scaled", random_state=draw).calibrate(
                X, y
            )
            row = rng.uniform(size=(1, 8))
            row[0, 2] = rng.uniform(0.85, 1.0)
            hits.append(model.explain(row).contributions[0].feature == "column 2")
        rate = 100.0 * np.mean(hits)
        lines.append(f"| {name} | {rate:.1f} ({np.sqrt(rate * (100 - rate) / n_draws):.1f}) | {n_draws} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="+", default=None)
    parser.add_argument("--seed", type=int, default=SEED)
    args = parser.parse_args()
    few = args.quick
    parts: dict[str, Callable[[np.random.Generator], list[str]]] = {
        "groups": lambda rng: group_rows(rng, 2 if few else N_DRAWS),
        "peer": lambda rng: peer_rows(rng, 1 if few else N_REPEATS, 2 if few else N_PEER_ROWS),
        "subgroup": lambda rng: subgroup_rows(rng, 2 if few else N_SEARCHES),
        "new groups": lambda rng: new_group_rows(rng, 20 if few else N_SETS),
        "explain": lambda rng: explained_rows(rng, 2 if few else N_EXPLAINED),
    }
    lines = [
        "# Coverage where it matters",
        "",
        f"Seed {args.seed}, Python {platform.python_version()}, numpy {version('numpy')}.",
        "",
    ]
    streams = np.random.default_rng(args.seed).spawn(len(parts))
    for (name, part), rng in zip(parts.items(), streams, strict=True):
        if args.only is None or name in args.only:
            lines += part(rng)
    text = "\n".join(lines)
    print(text)
    if not few and args.only is None:
        save(__file__, text)


if __name__ == "__main__":
    main()
