"""Do intervals keep their promise? Simulated calibrations, coverage from the known law of the errors.

    python benchmarks/interval_coverage.py [--adaptive] [--quick]

Each output of y is one calibration: a batch of outputs shares its rows X, and standard errors are those of the batch
means, widened by Student's law. Neither the model nor a learned scale depends on tails, guarantee and level, so these
are all tried on the same calibrations; local neurons and bands of quantiles do, and learn anew for each. Coverage is
averaged over a grid of new rows; of several outputs at once it is that of all, and weighted rows have a density that
grows with their scale. A line is marked where it breaks a rule:

- coverage >= the promised level - 3 standard errors;
- guarantee=True on a split, without ties and with enough errors: also <= p + 1/(m + 1) (two tails 2/(m + 1), categories
  each with their own m) + 3 standard errors;
- cv=5: >= min(p, m/(m + 1)) - .02, m being all rows. The largest errors of m reach no farther than that on average;
  with two tails it is (m - 1)/(m + 1), with each sign by itself m/(m + 2);
- guarantee="set" with enough errors: 95 % of calibration sets cover p, - 3 standard errors.

Among thousands of cells some break a rule by chance, most of all the third, which leaves nothing to chance: 50
calibrations have a standard error of about .01. A cell that breaks one is tried again, and both are shown.
"""

from __future__ import annotations

import argparse
import platform
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from scipy import stats
from sklearn.linear_model import LinearRegression, QuantileRegressor, Ridge

import pimeter as pm

RESULTS = Path(__file__).parent / "results" / "interval_coverage.md"
SEED = 20261115
SIZES, LEVELS = (12, 40, 200), (0.9, 0.95)
TAILS = ("symmetric", "equal", "sided", "lower", "upper")
JOINT = ("symmetric", "equal", "lower", "upper")
SHARES, SCALES = np.array([0.6, 0.3, 0.1]), np.array([1.0, 3.0, 10.0])  # of categories
STEP = 0.5  # of the law with ties
BATCHES = 25
AGAIN = 10  # times as many calibrations for cells that broke a rule


@dataclass(frozen=True)
class Noise:
    """A law of errors: draws, probability of a closed interval, quantiles."""

    name: str
    law: stats.rv_continuous
    has_ties: bool = False

    def sample(self, rng: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
        values = self.law.rvs(size=size, random_state=rng)
        return np.round(values / STEP) * STEP if self.has_ties else values

    def within(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        if self.has_ties:
            low, high = (np.ceil(low / STEP - 1e-9) - 0.5) * STEP, (np.floor(high / STEP + 1e-9) + 0.5) * STEP
        return np.maximum(self.law.cdf(high) - self.law.cdf(low), 0.0)

    @cache  # noqa: B019
    def ideal(self, tails: str, p: float) -> float:
        """Width of the best interval of this kind around 0; with one end its distance from 0."""
        draws = np.sort(self.sample(np.random.default_rng(0), (400_000,)))
        if tails == "symmetric":
            return 2.0 * float(np.quantile(np.abs(draws), p))
        if tails == "equal":
            return float(np.diff(np.quantile(draws, [(1 - p) / 2, (1 + p) / 2]))[0])
        ends = {"lower": draws < np.inf, "upper": draws < np.inf, "sided": draws < 0}
        below = -float(np.quantile(draws[ends[tails]], 1 - p))
        above = float(np.quantile(draws[draws > 0] if tails == "sided" else draws, p))
        return {"lower": below, "upper": above, "sided": below + above}[tails]


NOISES = (
    Noise("normal", stats.norm()),
    Noise("t2", stats.t(2)),
    Noise("exponential", stats.expon(-np.log(2))),
    Noise("uniform", stats.uniform(-1, 2)),
    Noise("ties", stats.norm(), has_ties=True),
)


def constant_scale(X: np.ndarray) -> np.ndarray:
    return np.ones(len(X))


def slope_scale(X: np.ndarray) -> np.ndarray:
    return 0.5 + X[:, 0]


def category_scale(X: np.ndarray) -> np.ndarray:
    return SCALES[X[:, 1].astype(int)]


@dataclass(frozen=True)
class Kind:
    """A width, the data it is made for, and how often it is tried."""

    name: str
    width: object
    scale: Callable[[np.ndarray], np.ndarray]
    calibrations: int
    learns: bool = False
    cv: int | None = None
    aims: bool = False  # what it learns depends on tails and level
    tails: tuple[str, ...] = TAILS
    laws: int = 5  # that are tried, the first ones
    sizes: tuple[int, ...] = SIZES
    has_shift: bool = False  # new rows are likelier the larger their scale is, and weighted so
    outputs: int = 1  # that are to be covered at once

    def guarantees(self) -> tuple[object, ...]:
        return (True, False) if self.cv or self.has_shift else (True, False, "set")

    def weights(self, X: np.ndarray) -> np.ndarray:
        """Density of new rows over that of calibration rows."""
        return self.scale(X) if self.has_shift else np.ones(len(X))


def kinds(quick: bool) -> tuple[Kind, ...]:
    many, some, few = (200, 50, 25) if quick else (2000, 300, 50)
    return tuple(
        kind
        for cv in (None, 5)
        for kind in (
            Kind("constant", "constant", constant_scale, many, cv=cv),
            Kind("grouped", pm.GroupedWidth(by=1), category_scale, many, cv=cv),
            Kind("scaled, ridge", pm.ScaledWidth(Ridge()), slope_scale, some, learns=True, cv=cv),
            Kind("scaled", "scaled", slope_scale, few, learns=True, cv=cv),
        )
    )


def adaptive_kinds(quick: bool) -> tuple[Kind, ...]:
    """Widths that learn for one aim take long: fewer calibrations, tails and, with folds, laws and sizes."""
    many, less, few = (200, 25, 25) if quick else (2000, 100, 50)
    symmetric, equal = TAILS[:1], TAILS[1:2]
    linear, kernel = pm.QuantileWidth(QuantileRegressor(alpha=0)), pm.LocalWidth(nearness="kernel")
    two = {"laws": 2, "sizes": SIZES[1:2]}
    return (
        Kind("weighted", "constant", slope_scale, many, has_shift=True),
        Kind("joint, 3 outputs", "constant", constant_scale, less, learns=True, tails=JOINT, outputs=3),
        Kind("local, kernel", kernel, slope_scale, less, learns=True, aims=True),
        Kind("quantile, linear", linear, slope_scale, few, learns=True, aims=True),
        Kind("local", "local", slope_scale, few, learns=True, aims=True, tails=symmetric),
        Kind("quantile", "quantile", slope_scale, few, learns=True, aims=True, tails=equal),
        Kind("auto", "auto", slope_scale, few, learns=True, aims=True, tails=symmetric),
        Kind("joint, 3 outputs", "constant", constant_scale, less, learns=True, cv=5, tails=JOINT, outputs=3),
        Kind("local, kernel", kernel, slope_scale, few, learns=True, cv=5, aims=True, tails=symmetric),
        Kind("quantile, linear", linear, slope_scale, few, learns=True, cv=5, aims=True, tails=symmetric, **two),
        Kind("local", "local", slope_scale, few, learns=True, cv=5, aims=True, tails=symmetric, **two),
        Kind("quantile", "quantile", slope_scale, few, learns=True, cv=5, aims=True, tails=equal, **two),
        Kind("auto", "auto", slope_scale, few, True, 5, True, symmetric, laws=1, sizes=SIZES[2:]),
    )


def rows(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.column_stack([rng.uniform(size=n), rng.choice(len(SHARES), size=n, p=SHARES)])


def grid() -> tuple[np.ndarray, np.ndarray]:
    """New rows and their probabilities."""
    x, category = np.meshgrid((np.arange(8) + 0.5) / 8, np.arange(len(SHARES)), indexing="ij")
    return np.column_stack([x.ravel(), category.ravel()]), SHARES[category.ravel()] / 8


@dataclass(frozen=True)
class Line:
    """One cell of the table."""

    kind: Kind
    noise: Noise
    tails: str
    guarantee: object
    m: int
    p: float
    promised: float
    coverage: float
    error: float
    share: float  # of calibrations that cover p
    calibrations: int
    width: float  # over the ideal one
    excess: float  # most that exact ranks may cover beyond p

    def broken(self) -> str:
        below = self.coverage < self.promised - 3 * self.error
        exact = self.guarantee is True and self.kind.cv is None and not self.noise.has_ties and self.promised == self.p
        above = exact and self.coverage > self.p + self.excess + 3 * self.error
        reach = {"equal": (self.m - 1) / (self.m + 1), "sided": self.m / (self.m + 2)}.get(
            self.tails, self.m / (self.m + 1)
        )
        folds = self.kind.cv is not None and self.coverage < min(self.p, reach) - 0.02
        spread = 3 * (0.95 * 0.05 / self.calibrations) ** 0.5
        sets = self.guarantee == "set" and self.promised == self.p and self.share < 0.95 - spread
        return " ".join(n for n, b in (("BELOW", below), ("ABOVE", above), ("CV", folds), ("SET", sets)) if b)

    def text(self) -> str:
        promised = "none" if np.isnan(self.promised) else f"{self.promised:.3f}"
        name = self.kind.name + (f", cv={self.kind.cv}" if self.kind.cv else "")
        share = f"{self.share:.3f}" if self.guarantee == "set" else ""
        coverage = f"{self.coverage:.4f} ± {self.error:.4f}"
        cells = [name, self.tails, self.guarantee, self.noise.name, self.m, self.p, promised, coverage, share]
        cells += [f"{self.width:.3f}", self.broken()]
        return "| " + " | ".join(map(str, cells)) + " |"


class Remembered:
    """A trained scale that is only ever asked about the grid, and answers from memory the second time."""

    def __init__(self, scale: object) -> None:
        self.scale, self.answer = scale, None

    def predict(self, X: np.ndarray) -> np.ndarray:
        self.answer = self.scale.predict(X) if self.answer is None else self.answer
        return self.answer


def trained(kind: Kind, noise: Noise, m: int, rng: np.random.Generator, **aim: object) -> pm.IntervalRegressor:
    """A batch of calibrations, one for each output, or one of several outputs at once."""
    n_each = kind.outputs if kind.outputs > 1 else kind.calibrations // BATCHES
    # A width that learns takes half of the rows, so that m are left.
    X = rows(rng, 2 * m if kind.learns and kind.cv is None else m)
    y = noise.sample(rng, (len(X), n_each)) * kind.scale(X)[:, None]
    model = LinearRegression() if kind.cv else lambda X: np.zeros((len(X), n_each))
    found = pm.IntervalRegressor(model, width=kind.width, cv=kind.cv, joint=kind.outputs > 1, random_state=0, **aim)
    if kind.has_shift:
        return found.calibrate(X, y, sample_weight=kind.weights(X))
    found.fit(X, y)
    for width in found.width_ if kind.cv else [found.width_]:
        if kind.learns and isinstance(width, pm.ScaledWidth):
            width.models_ = [scale and Remembered(scale) for scale in width.models_]
    return found


def relearned(model: pm.IntervalRegressor, tails: str, guarantee: object, p: float) -> pm.IntervalRegressor:
    """The same errors of the same models, other neurons."""
    other = copy(model).set_params(tails=tails, guarantee=guarantee, confidence_level=p)
    other._learn(model._rows)
    return other


def covered(kind: Kind, noise: Noise, m: int, model: pm.IntervalRegressor) -> tuple[np.ndarray, float, float, float]:
    """Coverage of each calibration, what was promised, mean width over the ideal one, the most beyond p."""
    new, probability = grid()
    weights = kind.weights(new)
    probability = probability * weights / (probability @ weights)
    low, high = np.moveaxis(model.predict_interval(new, sample_weight=weights if kind.has_shift else None), 2, 0)
    scale = kind.scale(new)[:, None]
    inside = noise.within(low / scale, high / scale)
    coverage = probability @ (inside.prod(axis=1, keepdims=True) if kind.outputs > 1 else inside)
    ends = {"lower": -low, "upper": high}.get(model.tails, high - low)
    ideal = noise.ideal(model.tails, model.confidence_level)
    width = float((probability @ ends).mean() / (probability @ scale[:, 0]) / ideal)
    counts = [c.rows for c in model.categories_] or [m]
    shares = [SHARES[int(c.category)] for c in model.categories_] or [1.0]
    n_cuts = 2 if model.tails in {"equal", "sided"} else 1
    excess = n_cuts * float(sum(share / (count + 1) for share, count in zip(shares, counts, strict=True)))
    if kind.has_shift or (kind.outputs > 1 and n_cuts > 1):
        excess = np.inf  # ranks of weights, or two ends that may miss at once: no law says how much more is covered
    promised = model.guaranteed_level_
    if kind.has_shift:
        # Rows too heavy for the calibration rows would need an infinite interval: what is sure is p less their share.
        heavy = float(probability @ np.isnan(model._neurons.promised_rows(None, weights)))
        promised = max(promised - heavy, 0.0)
    return coverage, promised, width, excess


def lines(kind: Kind, noise: Noise, m: int, quick: bool, seed: int) -> list[Line]:
    """All tails, guarantees and levels of one width, law and size."""
    warnings.simplefilter("ignore", pm.CoverageWarning)
    rng = np.random.default_rng([seed, m, kind.cv or 0, *map(ord, kind.name + noise.name)])
    tails, guarantees = (kind.tails[::2], (True,)) if quick else (kind.tails, kind.guarantees())
    # Several outputs at once are one calibration each, so that a batch takes many; the radii of outputs know the level.
    n_each = kind.calibrations // BATCHES if kind.outputs > 1 else 1
    aims = [{}]
    if kind.aims:
        aims = [{"tails": t, "confidence_level": p} for t, p in product(tails, LEVELS)]
    elif kind.outputs > 1:
        aims = [{"confidence_level": p} for p in LEVELS]
    models = {
        tuple(aim.values()): [[trained(kind, noise, m, rng, **aim) for _ in range(n_each)] for _ in range(BATCHES)]
        for aim in aims
    }
    # From few batches: widened so that three of them are as rare by Student's law as three normal ones.
    student = stats.t(BATCHES - 1).ppf(stats.norm.cdf(3.0)) / 3.0
    table = []
    for cell in product(tails, guarantees, LEVELS):
        own = (cell[0], cell[2]) if kind.aims else (cell[2],) if kind.outputs > 1 else ()
        found = [[covered(kind, noise, m, relearned(one, *cell)) for one in batch] for batch in models[own]]
        coverages = np.array([np.concatenate([one[0] for one in batch]) for batch in found])
        means = coverages.mean(axis=1)
        promised, width, excess = (float(np.mean([one[i] for batch in found for one in batch])) for i in (1, 2, 3))
        error = float(student * means.std(ddof=1) / BATCHES**0.5)
        share = float((coverages >= cell[-1] - 1e-12).mean())
        of = (kind, noise, *cell[:2], m, cell[-1])
        table.append(Line(*of, promised, float(means.mean()), error, share, coverages.size, width, excess))
    return table


def task(adaptive: bool, quick: bool, kind: int, noise: int, m: int) -> tuple[list[Line], list[Line]]:
    """By number, so that each process finds its own laws and what they remember; what is broken is tried again."""
    one = (adaptive_kinds if adaptive else kinds)(quick)[kind]
    once = lines(one, NOISES[noise], m, quick, SEED)
    if not any(line.broken() for line in once):
        return once, []
    more = replace(one, calibrations=AGAIN * one.calibrations)
    again = lines(more, NOISES[noise], m, quick, SEED + 1)
    return once, [line for line, before in zip(again, once, strict=True) if before.broken()]


def least_squares(n_draws: int) -> float:
    """Coverage of CV+ where pooled out-of-fold errors around one model cover 23 %: n = d = 100, p = .9."""
    rng = np.random.default_rng(SEED)
    covered = []
    for _ in range(n_draws):
        X, new = rng.standard_normal((2, 100, 100))
        beta = rng.standard_normal(100) / 10
        y, y_new = (table @ beta + rng.standard_normal(100) for table in (X, new))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pm.CoverageWarning)
            model = pm.IntervalRegressor(LinearRegression(), confidence_level=0.9, cv=5, random_state=0).fit(X, y)
        covered.append(pm.coverage_score(y_new, model.predict_interval(new)))
    return float(np.mean(covered))


def report(table: list[Line], again: list[Line], squares: float) -> str:
    versions = ", ".join(f"{name} {version(name)}" for name in ("pimeter", "numpy", "scikit-learn"))
    broken = [line for line in table if line.broken()]
    head = f"""# Do intervals keep their promise?

`python benchmarks/interval_coverage.py`, {versions}, Python {platform.python_version()}, seed {SEED}.
What breaks a line is said in `benchmarks/interval_coverage.py`.

Least squares with n = d = 100, p = .9, cv=5 cover {squares:.3f}.

{len(broken)} of {len(table)} cells break a rule. Of these, with another seed and {AGAIN} times as many calibrations,
{sum(bool(line.broken()) for line in again)} do:
"""
    columns = [
        "| width | tails | guarantee | errors | m | p | promised | coverage | sets >= p | width/ideal | broken |"
    ]
    columns += ["|" + "---|" * 11]
    tables = [[*columns, *(line.text() for line in found)] for found in (again, table)]
    return "\n".join([head, *tables[0], "", "All cells:", "", *tables[1], ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few calibrations and cells, nothing saved")
    parser.add_argument("--adaptive", action="store_true", help="widths that follow the rows, weights, joint outputs")
    arguments = parser.parse_args()
    quick, adaptive = arguments.quick, arguments.adaptive
    cells = [
        (number, noise, m)
        for number, kind in enumerate((adaptive_kinds if adaptive else kinds)(quick))
        for noise, m in product(range(kind.laws), kind.sizes)
        if not quick or (noise == 0 and m < SIZES[-1])
    ]
    table, again = [], []
    with ProcessPoolExecutor(2, get_context("spawn")) as processes:
        work = processes.map(task, *zip(*((adaptive, quick, *cell) for cell in cells), strict=True))
        for number, (found, repeated) in enumerate(work):
            table += found
            again += repeated
            print(f"\r{number + 1} of {len(cells)}", end="", flush=True)
    text = report(table, again, least_squares(5 if quick else 100))
    print(f"\n{text}")
    if quick:
        print("Nothing saved.")
        return
    RESULTS.parent.mkdir(exist_ok=True)
    (RESULTS.with_stem(f"{RESULTS.stem}_adaptive") if adaptive else RESULTS).write_text(text)


if __name__ == "__main__":
    main()
