"""Do intervals keep their guarantee? Simulated calibrations, coverage from the known distribution of errors.

    python benchmarks/interval_coverage.py [--adaptive | --auto] [--quick]

Each output of y is one calibration: a batch of outputs has one set of rows X, and standard errors are those of the
batch means, widened by Student's t. All tails, guarantees and levels are tried on the same calibrations. Neither the
model nor a learned scale depends on them; local neurons and bands of quantiles do, and learn anew for each, but forests
and regressors that were trained on the very same rows before are remembered. Coverage is averaged over a grid of new
rows; of several outputs at once it is that of all, and weighted rows have a density that grows with their scale. What
is done is kept in `.parts` until the code changes, so that a run goes on where it stopped. A line is marked where it
breaks a rule:

- coverage >= the guaranteed level - 3 standard errors;
- guarantee="marginal" on a split, without ties and with enough errors: also <= p + 1/(m + 1) (two tails 2/(m + 1),
  categories each with their own m) + 3 standard errors;
- cv=5: >= min(p, m/(m + 1)) - .02, m being all rows. The largest errors of m cover no more than that on average;
  with two tails it is (m - 1)/(m + 1), with each sign by itself m/(m + 2);
- guarantee="training-conditional" with enough errors: 95 % of calibration sets cover p, - 3 standard errors.

`--auto` is the part of `--adaptive` that tells of `width="auto"` with rows enough to combine widths (200; with 12 and
40 it is constant by rule): three distributions, two tails and 25 calibrations of each, so that it takes minutes instead
of hours.

Among thousands of cells some break a rule by chance, most of all the third, which leaves nothing to chance: 50
calibrations have a standard error of about .01. A cell that breaks one is tried again, and both are shown.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from copy import copy
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib.metadata import version
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from provenance import save, write
from scipy import stats
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression, QuantileRegressor, Ridge

import pimeter as pm
import pimeter.regression.nearness
import pimeter.regression.scaled

PARTS = Path(__file__).parent / ".parts"
SEED = 20261115
LENGTHS, LEVELS = (12, 40, 200), (0.9, 0.95)
TAILS = ("symmetric", "equal", "sided", "lower", "upper")
JOINT = ("symmetric", "equal", "lower", "upper")
FRACTIONS, SCALES = np.array([0.6, 0.3, 0.1]), np.array([1.0, 3.0, 10.0])  # of categories
STEP = 0.5  # of the distribution with ties
BATCHES = 25
AGAIN = 10  # times as many calibrations for cells that broke a rule


class Remembers:
    """What was asked of a learner with these settings and rows before is answered from memory."""

    memory: dict[tuple[object, ...], object] = {}  # noqa: RUF012 (one for all, emptied for each batch)

    def fit(self, X: np.ndarray, y: np.ndarray) -> object:
        self.rows = (type(self), repr(self), X.tobytes(), y.tobytes())
        if self.rows not in self.memory:
            self.memory[self.rows] = super().fit(X, y).__dict__
        self.__dict__.update(self.memory[self.rows])
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self._asked("predict", X)

    def _asked(self, what: str, X: np.ndarray) -> np.ndarray:
        question = (*self.rows, what, X.tobytes())
        if question not in self.memory:
            self.memory[question] = getattr(super(), what)(X)
        return self.memory[question]


class Forest(Remembers, RandomForestRegressor):
    def apply(self, X: np.ndarray) -> np.ndarray:
        return self._asked("apply", X)


class Trees(Remembers, ExtraTreesRegressor):
    pass


class LinearQuantiles(Remembers, QuantileRegressor):
    pass


@dataclass(frozen=True)
class Noise:
    """A distribution of errors: draws, probability of a closed interval, quantiles."""

    name: str
    distribution: stats.rv_continuous
    has_ties: bool = False

    def sample(self, rng: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
        values = self.distribution.rvs(size=size, random_state=rng)
        return np.round(values / STEP) * STEP if self.has_ties else values

    def within(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        if self.has_ties:
            low, high = (np.ceil(low / STEP - 1e-9) - 0.5) * STEP, (np.floor(high / STEP + 1e-9) + 0.5) * STEP
        return np.maximum(self.distribution.cdf(high) - self.distribution.cdf(low), 0.0)

    @cache  # noqa: B019
    def ideal(self, tails: str, p: float) -> float:
        """Width of the best interval of this kind around 0; with one end its distance from 0."""
        draws = np.sort(self.sample(np.random.default_rng(0), (400_000,)))
        if tails == "symmetric":
            return 2.0 * float(np.quantile(np.abs(draws), p))
        if tails == "equal":
            return float(np.diff(np.quantile(draws, [(1 - p) / 2, (1 + p) / 2]))[0])
        chosen = {"lower": draws < np.inf, "upper": draws < np.inf, "sided": draws < 0}
        below = -float(np.quantile(draws[chosen[tails]], 1 - p))
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
    has_shift: bool = False  # new rows are likelier the larger their scale is, and weighted so
    outputs: int = 1  # that are to be covered at once

    def guarantees(self) -> tuple[object, ...]:
        return (
            ("marginal", "approximate")
            if self.cv or self.has_shift
            else ("marginal", "approximate", "training-conditional")
        )

    def weights(self, X: np.ndarray) -> np.ndarray:
        """Density of new rows over that of calibration rows."""
        return self.scale(X) if self.has_shift else np.ones(len(X))


def kinds(quick: bool) -> tuple[Kind, ...]:
    many, some, few = (100, 25, 25) if quick else (2000, 300, 50)
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
    many, some, few = (100, 25, 25) if quick else (2000, 300, 50)
    linear, kernel = pm.QuantileWidth(LinearQuantiles(alpha=0)), pm.LocalWidth(nearness="kernel")
    learners = (
        ("local, kernel", kernel, some),
        ("quantile, linear", linear, some),
        ("local", "local", few),
        ("quantile", "quantile", few),
        ("auto", "auto", few),
    )
    return (
        Kind("weighted", "constant", slope_scale, many, has_shift=True),
        *(
            Kind("joint, 3 outputs", "constant", constant_scale, some, learns=True, cv=cv, tails=JOINT, outputs=3)
            for cv in (None, 5)
        ),
        *(
            Kind(name, width, slope_scale, number, learns=True, cv=cv, aims=True)
            for cv in (None, 5)
            for name, width, number in learners
        ),
    )


def auto_kinds(quick: bool) -> tuple[Kind, ...]:
    number, tails = (25, ("symmetric",)) if quick else (25, ("symmetric", "equal"))
    return tuple(
        Kind("auto", "auto", slope_scale, number, learns=True, cv=cv, aims=True, tails=tails) for cv in (None, 5)
    )


PARTS_OF = {"": kinds, "adaptive": adaptive_kinds, "auto": auto_kinds}


def rows(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.column_stack([rng.uniform(size=n), rng.choice(len(FRACTIONS), size=n, p=FRACTIONS)])


def grid() -> tuple[np.ndarray, np.ndarray]:
    """New rows and their probabilities."""
    x, category = np.meshgrid((np.arange(8) + 0.5) / 8, np.arange(len(FRACTIONS)), indexing="ij")
    return np.column_stack([x.ravel(), category.ravel()]), FRACTIONS[category.ravel()] / 8


@dataclass(frozen=True)
class Line:
    """One cell of the table."""

    kind: Kind
    noise: Noise
    tails: str
    guarantee: object
    m: int
    p: float
    guaranteed: float
    coverage: float
    error: float
    fraction: float  # of calibrations that cover p
    calibrations: int
    width: float  # over the ideal one
    excess: float  # most that exact ranks may cover beyond p

    def broken(self) -> str:
        below = self.coverage < self.guaranteed - 3 * self.error
        exact = (
            self.guarantee == "marginal"
            and self.kind.cv is None
            and not self.noise.has_ties
            and self.guaranteed == self.p
        )
        above = exact and self.coverage > self.p + self.excess + 3 * self.error
        most = {"equal": (self.m - 1) / (self.m + 1), "sided": self.m / (self.m + 2)}.get(
            self.tails, self.m / (self.m + 1)
        )
        folds = self.kind.cv is not None and self.coverage < min(self.p, most) - 0.02
        spread = 3 * (0.95 * 0.05 / self.calibrations) ** 0.5
        sets = self.guarantee == "training-conditional" and self.guaranteed == self.p and self.fraction < 0.95 - spread
        return " ".join(n for n, b in (("BELOW", below), ("ABOVE", above), ("CV", folds), ("SET", sets)) if b)

    def text(self) -> str:
        guaranteed = "none" if np.isnan(self.guaranteed) else f"{self.guaranteed:.3f}"
        name = self.kind.name + (f", cv={self.kind.cv}" if self.kind.cv else "")
        fraction = f"{self.fraction:.3f}" if self.guarantee == "training-conditional" else ""
        coverage = f"{self.coverage:.4f} ± {self.error:.4f}"
        cells = [name, self.tails, self.guarantee, self.noise.name, self.m, self.p, guaranteed, coverage, fraction]
        cells += [f"{self.width:.3f}", self.broken()]
        return "| " + " | ".join(map(str, cells)) + " |"


def drawn(kind: Kind, noise: Noise, m: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows and targets of a batch of calibrations, one for each output, or of one with several outputs at once."""
    n_each = kind.outputs if kind.outputs > 1 else kind.calibrations // BATCHES
    # A width that learns takes half of the rows, so that m are left.
    X = rows(rng, 2 * m if kind.learns and kind.cv is None else m)
    return X, noise.sample(rng, (len(X), n_each)) * kind.scale(X)[:, None]


def trained(kind: Kind, X: np.ndarray, y: np.ndarray, **aim: object) -> pm.IntervalRegressor:
    model = LinearRegression() if kind.cv else lambda X: np.zeros((len(X), y.shape[1]))
    found = pm.IntervalRegressor(model, width=kind.width, cv=kind.cv, joint=kind.outputs > 1, random_state=0, **aim)
    if kind.has_shift:
        return found.calibrate(X, y, importance_weight=kind.weights(X))
    return found.fit(X, y)


def relearned(model: pm.IntervalRegressor, tails: str, guarantee: object, p: float) -> pm.IntervalRegressor:
    """A copy of a calibrated model that learns its margins anew, from the errors that it has seen."""
    other = copy(model).set_params(tails=tails, guarantee=guarantee, confidence_level=p)
    other._learn(model._scores_seen)
    return other


def covered(kind: Kind, noise: Noise, m: int, model: pm.IntervalRegressor) -> tuple[np.ndarray, float, float, float]:
    """Coverage of each calibration, what was guaranteed, mean width over the ideal one, the most beyond p."""
    new, probability = grid()
    weights = kind.weights(new)
    probability = probability * weights / (probability @ weights)
    low, high = np.moveaxis(model.predict_interval(new, importance_weight=weights if kind.has_shift else None), 2, 0)
    scale = kind.scale(new)[:, None]
    inside = noise.within(low / scale, high / scale)
    coverage = probability @ (inside.prod(axis=1, keepdims=True) if kind.outputs > 1 else inside)
    lengths = {"lower": -low, "upper": high}.get(model.tails, high - low)
    ideal = noise.ideal(model.tails, model.confidence_level)
    width = float((probability @ lengths).mean() / (probability @ scale[:, 0]) / ideal)
    counts = [c.rows for c in model.categories_[:-1]] or [m]
    fractions = [FRACTIONS[int(c.label)] for c in model.categories_[:-1]] or [1.0]
    n_cuts = 2 if model.tails in {"equal", "sided"} else 1
    excess = n_cuts * float(sum(fraction / (count + 1) for fraction, count in zip(fractions, counts, strict=True)))
    if kind.has_shift or (kind.outputs > 1 and n_cuts > 1):
        excess = np.inf  # ranks of weights, or two bounds that may miss at once: nothing says how much more is covered
    guaranteed = model.guaranteed_level_
    if kind.has_shift:
        # Rows too heavy for the calibration rows would need an infinite interval: sure is p less their fraction.
        heavy = float(probability @ np.isnan(model._quantile.guaranteed_to(None, weights)))
        guaranteed = max(guaranteed - heavy, 0.0)
    return coverage, guaranteed, width, excess


def lines(kind: Kind, noise: Noise, m: int, quick: bool, seed: int) -> list[Line]:
    """All tails, guarantees and levels of one width, distribution and size."""
    warnings.simplefilter("ignore", pm.CoverageWarning)
    pimeter.regression.nearness.RandomForestRegressor = Forest
    pimeter.regression.scaled.ExtraTreesRegressor = Trees
    rng = np.random.default_rng([seed, m, kind.cv or 0, *map(ord, kind.name + noise.name)])
    tails, guarantees = (kind.tails[::2], ("marginal",)) if quick else (kind.tails, kind.guarantees())
    cells = list(product(tails, guarantees, LEVELS))
    # Several outputs at once are one calibration each, so that a batch takes many; the radii of outputs know the level.
    n_each = kind.calibrations // BATCHES if kind.outputs > 1 else 1
    found = {cell: [] for cell in cells}
    for _ in range(BATCHES):
        batch = [drawn(kind, noise, m, rng) for _ in range(n_each)]
        models = {}
        for cell in cells:
            tail, _, p = cell
            aim = {"tails": tail, "confidence_level": p} if kind.aims else {}
            aim = {"confidence_level": p} if kind.outputs > 1 else aim
            key = tuple(aim.values())
            if key not in models:
                models[key] = [trained(kind, *rows_of_one, **aim) for rows_of_one in batch]
            found[cell].append([covered(kind, noise, m, relearned(one, *cell)) for one in models[key]])
        Remembers.memory.clear()
    # From few batches: widened so that three of them are as rare by Student's t as three normal ones.
    student = stats.t(BATCHES - 1).ppf(stats.norm.cdf(3.0)) / 3.0
    table = []
    for cell, batches in found.items():
        coverages = np.array([np.concatenate([one[0] for one in batch]) for batch in batches])
        means = coverages.mean(axis=1)
        guaranteed, width, excess = (float(np.mean([one[i] for batch in batches for one in batch])) for i in (1, 2, 3))
        error = float(student * means.std(ddof=1) / BATCHES**0.5)
        fraction = float((coverages >= cell[-1] - 1e-12).mean())
        of = (kind, noise, *cell[:2], m, cell[-1])
        table.append(Line(*of, guaranteed, float(means.mean()), error, fraction, coverages.size, width, excess))
    return table


def task(part_of: str, quick: bool, kind: int, noise: int, m: int) -> tuple[list[Line], list[Line]]:
    """By number, so that each process has its own distributions and what they remember; broken ones are tried again."""
    one, errors = PARTS_OF[part_of](quick)[kind], NOISES[noise]
    part = PARTS / f"{code()}_{part_of}_{kind}_{noise}_{m}.json"
    if not quick and part.exists():
        once, again = ([Line(one, errors, *cells) for cells in table] for table in json.loads(part.read_text()))
        return once, again
    once, again = lines(one, errors, m, quick, SEED), []
    broken = {(line.tails, line.guarantee, line.p) for line in once if line.broken()}
    if broken and not quick:
        tails = tuple(tail for tail in one.tails if any(tail == cell[0] for cell in broken))
        more = replace(one, calibrations=AGAIN * one.calibrations, tails=tails)
        again = [
            replace(line, kind=one)
            for line in lines(more, errors, m, False, SEED + 1)
            if (line.tails, line.guarantee, line.p) in broken
        ]
    if not quick:
        names = [field.name for field in fields(Line)][2:]
        write({part: json.dumps([[[getattr(line, n) for n in names] for line in t] for t in (once, again)])})
    return once, again


@cache
def code() -> str:
    """Changes when anything does that the figures come from."""
    sources = [Path(__file__), *sorted(Path(pm.__file__).parent.rglob("*.py"))]
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]


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


def report(table: list[Line], again: list[Line], squares: float, part_of: str) -> str:
    versions = ", ".join(f"{name} {version(name)}" for name in ("pimeter", "numpy", "scikit-learn"))
    broken = [line for line in table if line.broken()]
    command = f"python benchmarks/interval_coverage.py{f' --{part_of}' if part_of else ''}"
    head = f"""# Do intervals keep their guarantee?

`{command}`, {versions}, Python {platform.python_version()}, seed {SEED}.
What breaks a line is said in `benchmarks/interval_coverage.py`.

Least squares with n = d = 100, p = .9, cv=5 cover {squares:.3f}.

{len(broken)} of {len(table)} cells break a rule. Of these, with another seed and {AGAIN} times as many calibrations,
{sum(bool(line.broken()) for line in again)} do:
"""
    columns = [
        "| width | tails | guarantee | errors | m | p | guaranteed | coverage | sets >= p | width/ideal | broken |"
    ]
    columns += ["|" + "---|" * 11]
    tables = [[*columns, *(line.text() for line in found)] for found in (again, table)]
    return "\n".join([head, *tables[0], "", "All cells:", "", *tables[1], ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few calibrations and cells, nothing saved")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--adaptive", action="store_true", help="widths that follow the rows, weights, joint outputs")
    which.add_argument("--auto", action="store_true", help='a bounded part of these: width="auto"')
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    arguments = parser.parse_args()
    quick = arguments.quick
    part_of = "auto" if arguments.auto else "adaptive" if arguments.adaptive else ""
    noises, lengths = (3, LENGTHS[-1:]) if part_of == "auto" else (len(NOISES), LENGTHS)
    cells = [
        (number, noise, m)
        for number in range(len(PARTS_OF[part_of](quick)))
        for noise, m in product(range(noises), lengths)
        if not quick or (noise == 0 and (m < LENGTHS[-1] or part_of == "auto"))
    ]
    table, again = [], []
    with ProcessPoolExecutor(arguments.jobs, get_context("spawn")) as processes:
        work = processes.map(task, *zip(*((part_of, quick, *cell) for cell in cells), strict=True))
        for number, (found, repeated) in enumerate(work):
            table += found
            again += repeated
            print(f"\r{number + 1} of {len(cells)}", end="", flush=True)
    text = report(table, again, least_squares(5 if quick else 100), part_of)
    print(f"\n{text}")
    if quick:
        print("Nothing saved.")
        return
    save(__file__, text, name="_".join(filter(None, ("interval_coverage", part_of))))


if __name__ == "__main__":
    main()
