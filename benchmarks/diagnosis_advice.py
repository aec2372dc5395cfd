"""Does following the advice of `measure` make intervals better? And is what is planted found?

    python benchmarks/diagnosis_advice.py [--quick] [--seed SEED] [--draws N] [--jobs N]

The model is right but for what is planted: y = f(x) + noise, three features, a category of each row; situations that
plant the spread, the mean or the shape of residuals, and what happens in the course of the rows, alone and in pairs.
`measure` sees 2,000 rows, its code is executed as it stands, and the intervals of the next 3,000 rows are scored (mean
interval score, level .95); those that follow the order learn each target after its row. Beside them stand a constant
width and the best of seven widths (constant, grouped and scaled with symmetric and equal tails, and quantile), which
are calibrated on the same rows. Rows in groups are measured and calibrated with `groups=`, by the rivals as well. The
power at 1,000 rows is the fraction of draws in which a finding names what is planted. A run that was interrupted goes
on. Constants of the checks were chosen on other seeds than the one reported.
"""

# ruff: noqa: ARG005 - each change takes all that is known of the rows
from __future__ import annotations

import argparse
import platform
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray
from provenance import Unfinished, save

from pimeter import IntervalRegressor, interval_score, measure
from pimeter.regression import OnlineIntervals

SEED = 20261116
N_ROWS, N_NEW, LEVEL = 2000, 3000, 0.95
N_DRAWS, N_PLANTED = 5, 200
Array = NDArray[np.float64]
Rng = np.random.Generator


def autoregressive(noise: Array) -> Array:
    """Noise of the same distribution, roughly, whose neighbours resemble each other."""
    found = noise.copy()
    for i in range(1, len(found)):
        found[i] = 0.5 * found[i - 1] + 0.75**0.5 * noise[i]
    return found


GROUPED = "groups of 20 rows that resemble each other"


def in_groups(noise: Array) -> Array:
    """Noise of which rows of one group have a part in common."""
    groups, rng = groups_of(len(noise)), np.random.default_rng(np.frombuffer(noise[:4].tobytes(), np.uint32))
    common = rng.standard_normal(int(groups[-1]) + 1)
    return noise + 0.5 * noise.std() * common[groups]


def groups_of(n: int) -> NDArray[np.int64]:
    """The group of each row."""
    return np.arange(n) // 20


# What happens to noise, given features in [0, 1] and categories: its shape, its order, its spread, then its mean.
Change = Callable[[Array, Array, Array], Array]
CHANGES: dict[str, Change] = {
    "skewed": lambda e, X, by: np.expm1(0.8 * e) - np.expm1(0.32),
    "heavy tails": lambda e, X, by: e * np.abs(e) ** 0.7,
    "autocorrelation .5": lambda e, X, by: autoregressive(e),
    GROUPED: lambda e, X, by: in_groups(e),
    "spread 1 to 5 along a feature": lambda e, X, by: (1 + 4 * X[:, 0]) * e,
    "spread 3 in a category": lambda e, X, by: np.where(by == "b", 3, 1) * e,
    "bias .4": lambda e, X, by: e + 0.4 * e.std(),
    "bias +-.7 in two categories": lambda e, X, by: e + 0.7 * e.std() * ((by == "c") * 1.0 - (by == "d")),
    "slope .4 along a feature": lambda e, X, by: e + 0.4 * e.std() * (X[:, 2] - 0.5) * 12**0.5,
    "drift, 1 in the course of the rows": lambda e, X, by: e + e.std() * np.linspace(-0.5, 1.0, len(e)),
}
ORDER = ("autocorrelation .5", "drift, 1 in the course of the rows")  # which no width of the rivals follows
WIDTHS = (*product(("constant", "grouped", "scaled"), ("symmetric", "equal")), ("quantile", "equal"))


def model(X: Array) -> Array:
    return 4.0 * X[:, 0] + 4.0 * X[:, 1]


def drawn(names: tuple[str, ...], rng: Rng, n: int) -> tuple[Array, Array, Array]:
    """Features, categories and targets in the order of time."""
    X, by = rng.uniform(size=(n, 3)), rng.choice(list("abcd"), n)
    noise = rng.standard_normal(n)
    for name in names:
        noise = CHANGES[name](noise, X, by)
    return X, by, model(X) + noise


def followed(X: Array, by: Array, y: Array, groups: NDArray[np.int64] | None) -> tuple[float, str]:
    """Interval score of new rows with the code that `measure` gives, executed as it stands; and the width."""
    old, new = slice(N_ROWS), slice(N_ROWS, None)
    found = measure(y[old], model(X[old]), X=X[old], by=by[old], groups=groups)
    held = {"model": model, "X": X[old], "y_true": y[old], "by": by[old], "X_new": X[new], "by_new": by[new]}
    held["groups"] = groups
    exec(found.code, held)
    bounds = np.column_stack([held["lower"], held["upper"]])
    chosen = f"{found.recommended_width}, {found.recommended_tails}"
    online = held.get("online")
    if isinstance(online, OnlineIntervals):
        passed = {"by": by[new]} if found.recommended_width == "grouped" else {}
        bounds, chosen = online.follow(X[new], y[new], **passed), f"{chosen}, online"
    return float(interval_score(y[new], bounds, LEVEL)), chosen


def scored(X: Array, by: Array, y: Array, groups: NDArray[np.int64] | None, width: str, tails: str) -> float:
    """Interval score of new rows with this width."""
    old, new = slice(N_ROWS), slice(N_ROWS, None)
    labels = [by[part] if width == "grouped" else None for part in (old, new)]
    regressor = IntervalRegressor(model, width=width, tails=tails, random_state=0)
    bounds = regressor.calibrate(X[old], y[old], by=labels[0], groups=groups).predict_interval(X[new], by=labels[1])
    return float(interval_score(y[new], bounds, LEVEL))


def situations() -> Iterator[tuple[str, ...]]:
    yield ()
    for name in CHANGES:
        yield (name,)
    yield from combinations(CHANGES, 2)


def scores(names: tuple[str, ...], i: int, seed: int) -> tuple[list[float], str]:
    """Scores of the advice and of each width in draw i; and what is advised."""
    row = drawn(names, np.random.default_rng([seed, i, *map(ord, " ".join(names))]), N_ROWS + N_NEW)
    groups = groups_of(N_ROWS) if GROUPED in names else None
    own, chosen = followed(*row, groups)
    return [own, *(scored(*row, groups, *kind) for kind in WIDTHS)], chosen


def compared(draws: list[tuple[list[float], str]]) -> tuple[float, float, float, str]:
    """Score of the advice over that of a constant width, its standard error, over the best; and what is advised."""
    rows = np.array([row for row, _ in draws])
    mean = rows.mean(axis=0)
    ratio = mean[0] / mean[1]
    error = np.std(rows[:, 0] - ratio * rows[:, 1]) / mean[1] / max(len(rows) - 1, 1) ** 0.5
    return float(ratio), float(error), float(mean[0] / mean[1:].min()), draws[-1][1]


PLANTED: dict[str, tuple[str, Callable[[Array, Array, Array], Array]]] = {
    "bias +-.7 in two of four categories": ("bias", CHANGES["bias +-.7 in two categories"]),
    "residuals that correlate .4 with the prediction": (
        "bias",
        lambda e, X, by: 0.84**0.5 * e + 0.4 * (model(X) - 4.0) / (32 / 12) ** 0.5,
    ),
    "residuals that correlate .4 with a feature": (
        "bias",
        lambda e, X, by: 0.84**0.5 * e + 0.4 * (X[:, 2] - 0.5) * 12**0.5,
    ),
    "standard deviation 2 in 20 % of the rows": ("width", lambda e, X, by: np.where(by == "rare", 2.0, 1.0) * e),
    "drift of 0 to .5 in the course of the rows": ("drift", lambda e, X, by: e + np.linspace(0.0, 0.5, len(e))),
    f"drift of 0 to 1 in the course of {GROUPED}": (
        "drift",
        lambda e, X, by: in_groups(e) + np.linspace(0.0, 1.0, len(e)),
    ),
}


def power(name: str, n_draws: int, seed: int) -> float:
    """How often 1,000 rows name what is planted."""
    finding, change = PLANTED[name]
    n_found = 0
    for i in range(n_draws):
        rng = np.random.default_rng([seed, i, *map(ord, name)])
        X = rng.uniform(size=(1000, 3))
        by = rng.choice(["rare", *"abcd"], 1000) if finding == "width" else rng.choice(list("abcd"), 1000)
        y_true = model(X) + change(rng.standard_normal(1000), X, by)
        groups = groups_of(1000) if GROUPED in name else None
        n_found += measure(y_true, model(X), X=X, by=by, groups=groups).diagnosis[finding].raised
    return n_found / n_draws


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one draw of few situations, nothing saved")
    parser.add_argument("--seed", type=int, default=SEED, help="another seed saves nothing")
    parser.add_argument("--draws", type=int, default=N_DRAWS, help="of each situation")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    asked = parser.parse_args()
    n_draws, n_planted = (1, 2) if asked.quick else (asked.draws, N_PLANTED)
    unfinished = Unfinished(__file__, asked.seed, kept=not asked.quick)
    names_of = [*situations()][:: 15 if asked.quick else 1]
    powers = dict(unfinished.each({name: partial(power, name, n_planted, asked.seed) for name in PLANTED}, asked.jobs))
    tasks = {f"{names}, {i}": partial(scores, names, i, asked.seed) for i, names in product(range(n_draws), names_of)}
    held: dict[str, tuple[list[float], str]] = {}
    for name, own in unfinished.each(tasks, asked.jobs):
        held[name] = own
        print(f"{name}: {own[0][0] / own[0][1]:.3f} of a constant width, {own[1]}", flush=True)
    found = {names: compared([held[f"{names}, {i}"] for i in range(n_draws)]) for names in names_of}
    constant, error, best = (np.array([line[i] for line in found.values()]) for i in (0, 1, 2))
    is_unordered = np.array([not {*names} & {*ORDER} for names in found])
    worst = int(constant.argmax())
    versions = ", ".join(f"{name} {version(name)}" for name in ("pimeter", "numpy", "scikit-learn"))
    lines = [f"| {name} | {fraction:.1%} |" for name, fraction in powers.items()]
    rows = [
        f"| {' and '.join(k) or 'nothing'} | {a:.3f} | {e:.3f} | {b:.3f} | {c} |" for k, (a, e, b, c) in found.items()
    ]
    text = f"""# Does following the advice of `measure` make intervals better?

{versions}, Python {platform.python_version()}. Seed {asked.seed}, level {LEVEL}.

## What is planted is found

{n_planted} draws of 1,000 rows each, three features and a category.

| planted | found |
|---|---|
{chr(10).join(lines)}

## Interval score on fresh rows

{N_ROWS:,} rows to measure, {N_NEW:,} to score, {n_draws} draws of each situation; below 1 the advice is better.

| summary | score of the advice |
|---|---|
| over a constant width, worst situation | {constant.max():.3f} |
| its standard error | {error[worst]:.3f} |
| over a constant width, mean | {constant.mean():.3f} |
| over the best width, mean | {best.mean():.3f} |
| over the best width, mean of situations that are the same at all times | {best[is_unordered].mean():.3f} |
| over the best width, worst situation | {best.max():.3f} |

| planted | over a constant width | standard error | over the best width | advised in the last draw |
|---|---|---|---|---|
{chr(10).join(rows)}
"""
    if asked.quick or asked.seed != SEED:
        print(f"{text}\n{versions}. Nothing saved.")
        return
    save(__file__, text)
    unfinished.close()


if __name__ == "__main__":
    main()
