"""Do intervals keep their promise? Simulated calibrations, coverage from the known law of the errors.

    python benchmarks/interval_coverage.py [--quick]

Each output of y is one calibration: a batch of outputs shares its rows X, and standard errors are those of the batch
means, widened by Student's law. Coverage is averaged over a grid of new rows. A line is marked where it breaks a rule:

- coverage >= the promised level - 3 standard errors;
- guarantee=True on a split, without ties and with enough errors: also <= p + 1/(m + 1) (two tails 2/(m + 1), categories
  each with their own m) + 3 standard errors;
- cv=5: >= min(p, m/(m + 1)) - .02 - 3 standard errors (two tails (m - 1)/(m + 1), each sign m/(m + 2));
- guarantee="set" with enough errors: 95 % of calibration sets cover p, - 3 standard errors.
"""

from __future__ import annotations

import argparse
import platform
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from itertools import product
from pathlib import Path

import numpy as np
from scipy import stats
from sklearn.linear_model import LinearRegression, Ridge

import pimeter as pm

RESULTS = Path(__file__).parent / "results" / "interval_coverage.md"
SEED = 20261115
SIZES, LEVELS = (12, 40, 200), (0.9, 0.95)
TAILS = ("symmetric", "equal", "sided", "lower", "upper")
SHARES, SCALES = np.array([0.6, 0.3, 0.1]), np.array([1.0, 3.0, 10.0])  # of categories
STEP = 0.5  # of the law with ties


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
    cv: int | None = None
    learns: bool = False

    def guarantees(self) -> tuple[object, ...]:
        return (True, False, "set") if self.cv is None else (True, False)


def kinds(quick: bool) -> tuple[Kind, ...]:
    many, some, few = (200, 50, 10) if quick else (2000, 300, 50)
    grouped = pm.GroupedWidth(by=1)
    ridge = pm.ScaledWidth(Ridge())
    return (
        Kind("constant", "constant", constant_scale, many),
        Kind("grouped", grouped, category_scale, many),
        Kind("scaled, ridge", ridge, slope_scale, some, learns=True),
        Kind("constant", "constant", constant_scale, many if quick else 400, cv=5),
        Kind("grouped", grouped, category_scale, some, cv=5),
        Kind("scaled, ridge", ridge, slope_scale, few if quick else 100, cv=5, learns=True),
        Kind("scaled", "scaled", slope_scale, few, learns=True),
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
        folds = self.kind.cv is not None and self.coverage < min(self.p, reach) - 0.02 - 3 * self.error
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


def lines(kind: Kind, noise: Noise, tails: str, guarantee: object, m: int) -> Iterator[Line]:
    """Calibrate in batches and ask for both levels."""
    rng = np.random.default_rng([SEED, m, *map(ord, kind.name + noise.name + tails)])
    new, probability = grid()
    n_batches = 10
    n_each = max(1, kind.calibrations // n_batches)
    found: dict[float, list[tuple[np.ndarray, float, float, float]]] = {p: [] for p in LEVELS}
    for _ in range(n_batches):
        # A width that learns takes half of the rows, so that m are left.
        X = rows(rng, 2 * m if kind.learns and kind.cv is None else m)
        y = noise.sample(rng, (len(X), n_each)) * kind.scale(X)[:, None]
        model = LinearRegression() if kind.cv else lambda X: np.zeros((len(X), n_each))
        for p in LEVELS:
            regressor = pm.IntervalRegressor(
                model,
                confidence_level=p,
                width=kind.width,
                tails=tails,
                cv=kind.cv,
                guarantee=guarantee,
                random_state=0,
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", pm.CoverageWarning)
                regressor.fit(X, y)
                low, high = np.moveaxis(regressor.predict_interval(new), 2, 0)
            scale = kind.scale(new)[:, None]
            coverage = probability @ noise.within(low / scale, high / scale)
            ends = {"lower": -low, "upper": high}.get(tails, high - low)
            width = float((probability @ ends).mean() / (probability @ scale[:, 0]) / noise.ideal(tails, p))
            counts = [c.rows for c in regressor.categories_] or [m]
            shares = [SHARES[int(c.category)] for c in regressor.categories_] or [1.0]
            excess = (2 if tails in {"equal", "sided"} else 1) * float(
                sum(share / (count + 1) for share, count in zip(shares, counts, strict=True))
            )
            found[p].append((coverage, regressor.guaranteed_level_, width, excess))
    for p, batches in found.items():
        coverages = np.array([batch[0] for batch in batches])
        means = coverages.mean(axis=1)
        promised, width, excess = (float(np.mean([batch[i] for batch in batches])) for i in (1, 2, 3))
        # From few batches: widened so that three of them are as rare by Student's law as three normal ones.
        student = stats.t(len(means) - 1).ppf(stats.norm.cdf(3.0)) / 3.0
        error = float(student * means.std(ddof=1) / len(means) ** 0.5)
        share = float((coverages >= p - 1e-12).mean())
        cell = (kind, noise, tails, guarantee, m, p)
        yield Line(*cell, promised, float(means.mean()), error, share, coverages.size, width, excess)


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few calibrations and cells, nothing saved")
    quick = parser.parse_args().quick
    start = time.perf_counter()
    table = []
    for kind in kinds(quick):
        for tails, guarantee in product(TAILS, kind.guarantees()):
            if quick and (tails not in {"symmetric", "sided"} or guarantee is False):
                continue
            noises = NOISES[:1] if quick else NOISES
            # A forest takes a while: all laws with the defaults alone, other tails and guarantees with one law.
            if kind.name == "scaled" and (tails != "symmetric" or guarantee is not True):
                noises = noises[:1]
            for noise, m in product(noises, SIZES[:2] if quick else SIZES):
                table += lines(kind, noise, tails, guarantee, m)
    versions = ", ".join(f"{name} {version(name)}" for name in ("pimeter", "numpy", "scikit-learn"))
    broken = [line for line in table if line.broken()]
    seconds = time.perf_counter() - start
    covered = least_squares(5 if quick else 100)
    columns = (
        "width",
        "tails",
        "guarantee",
        "errors",
        "m",
        "p",
        "promised",
        "coverage",
        "sets >= p",
        "width/ideal",
        "broken",
    )
    head = f"""# Do intervals keep their promise?

{versions}, Python {platform.python_version()}, seed {SEED}, {seconds:.0f} s. What breaks a line is said in
`benchmarks/interval_coverage.py`.

{len(broken)} of {len(table)} cells break a rule. Least squares with n = d = 100, p = .9, cv=5 cover {covered:.3f}.

| {" | ".join(columns)} |
|{"---|" * len(columns)}"""
    text = "\n".join([head, *[line.text() for line in table], ""])
    print(text)
    if quick:
        print("Nothing saved.")
        return
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(text)


if __name__ == "__main__":
    main()
