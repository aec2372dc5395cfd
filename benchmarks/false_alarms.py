"""How often do checks raise an alarm where there is nothing, and where there is something?

    python benchmarks/false_alarms.py [--quick] [--seed SEED] [--rounds N] [--jobs N]

A cell is a distribution, a number of rows, and what is asked of each draw: whole reports of `measure`, with no to 20
features (five and 20 are correlated, and two of five are words), also of rows in groups and in time ("spells" are of a
spread that comes and goes), or single findings. Where nothing is wrong, all findings of a report together shall raise
an alarm in 5 % of the draws at most: each rate is tested for that (binomial, one-sided), and the tests of all cells are
judged together (Holm). What a distribution has is no false alarm: `heavy` of t3 and lognormal residuals, `skew` of
lognormal ones, `discrete` of integers and ties, `serial` where time is not given. Where something is planted, the rate
is the power. Constants of the checks were chosen on other seeds than the one reported. A run that was interrupted goes
on.
"""

from __future__ import annotations

import argparse
import platform
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from itertools import product

import numpy as np
import polars as pl
from numpy.typing import NDArray
from provenance import Unfinished, save
from scipy.signal import lfilter
from scipy.stats import binomtest

from pimeter.clusters import Units
from pimeter.evaluation.diagnosis.bias import Bias
from pimeter.evaluation.diagnosis.checks import judged
from pimeter.evaluation.diagnosis.columns import given
from pimeter.evaluation.diagnosis.crossfit import CrossFit
from pimeter.evaluation.diagnosis.evidence import PredictionEvidence, covered_divisions, equal_rows
from pimeter.evaluation.diagnosis.order import Drift, SerialDependence
from pimeter.evaluation.diagnosis.shape import HeavyTails, Skewness
from pimeter.evaluation.diagnosis.targets import DiscreteTarget, ZeroResiduals

SEED = 20261116
N_ROUNDS = 20  # in each of which all cells have some draws
N_SINGLE = 100  # draws of single findings in a round
N_PLANTED = 25  # draws where something is planted
ENOUGH = 19  # groups, or rows, that can guarantee .95
ALLOWED = 0.05  # fraction of false alarms
ERROR = 0.05  # of all tests of it together

Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Array]


@dataclass(frozen=True)
class Cell:
    """Findings that are asked of each draw of so many rows, and whether something is planted in them."""

    situation: str
    n_rows: int
    names: tuple[str, ...]
    alarms: Callable[[np.random.Generator, int], set[str]]
    is_planted: bool = False
    n_draws: int = N_SINGLE


def of_errors(distribution: Draw) -> Callable[[np.random.Generator, int], set[str]]:
    """Findings about the shape of errors of this distribution, around predictions that are integers."""

    def alarms(rng: np.random.Generator, n: int) -> set[str]:
        errors = distribution(rng, n)
        radius = float(np.quantile(np.abs(errors), 0.95, method="inverted_cdf"))
        target = np.round(rng.uniform(0, 1e4, n)) + errors
        found = (
            Skewness().judge(errors, 0.95),
            HeavyTails().judge(errors),
            Bias().judge(errors, radius),
            ZeroResiduals().judge(target, errors, radius, is_discrete=DiscreteTarget().judge(target, radius).raised),
        )
        return {finding.name for finding in found if finding.raised}

    return alarms


def of_order(distribution: Draw) -> Callable[[np.random.Generator, int], set[str]]:
    """Findings about the order of errors of this distribution."""

    def alarms(rng: np.random.Generator, n: int) -> set[str]:
        errors = distribution(rng, n)
        radius = float(np.quantile(np.abs(errors), 0.95, method="inverted_cdf"))
        found = (Drift().judge(errors, radius), SerialDependence().judge(errors))
        return {finding.name for finding in found if finding.raised}

    return alarms


def has_words(X: Array, rng: np.random.Generator) -> pl.DataFrame:
    """Features of which two columns are categories."""
    words = {f"word {signs}": rng.choice(list(signs), len(X)) for signs in ("ab", "abcdefgh")}
    return pl.DataFrame({f"x{i}": X[:, i] for i in range(2, X.shape[1])} | words)


def raised_of(
    target: Array,
    prediction: Array,
    X: object,
    by: object,
    groups: NDArray[np.int64] | None = None,
    *,
    has_time: bool = False,
) -> set[str]:
    """What `measure` would raise, without its numbers at other levels and their ranges, which take longer."""
    known, residuals = given(X, by, len(target), np.arange(len(target))), target - prediction
    fit = CrossFit.of(np.abs(residuals), np.array([0.95]))
    divisions = covered_divisions(fit, prediction, known.labels)
    equal, ordered = equal_rows(target, prediction, X), np.sort(residuals)
    evidence = PredictionEvidence(target, prediction, residuals, ordered, fit, 0, known, divisions, equal)
    if groups is not None:
        evidence = replace(evidence, has_groups=True, units=Units.of_groups(groups))
    if has_time:
        evidence = replace(evidence.in_stretches(), has_time=True)
    return set(judged(evidence).diagnosis.raised)


def of_reports(name: str, n_features: int, *, is_worded: bool) -> Callable[[np.random.Generator, int], set[str]]:
    """False alarms of whole reports, with a category of each row."""
    distribution, own = REPORTED[name]

    def alarms(rng: np.random.Generator, n: int) -> set[str]:
        X = rng.standard_normal((n, n_features))
        if n_features > 1:
            X = 0.6 * X + 0.8 * rng.standard_normal((n, 1))
        y_pred = 3.0 * rng.standard_normal(n) if n_features == 0 else 2.0 * X[:, 0] + X.sum(axis=1)
        if name in {"integers", "ties"}:
            y_pred = np.round(y_pred)
        features = has_words(X, rng) if is_worded else X if n_features else None
        by = rng.choice(list("abcd"), n) if n_features else None
        raised = raised_of(y_pred + distribution(rng, n), y_pred, features, by) - own
        return raised | ({"report"} if raised else set())

    return alarms


def group_codes(order: str, rng: np.random.Generator, n: int) -> NDArray[np.int64]:
    """Groups of n rows: of unequal size, or single rows before groups of 20."""
    if order == "after single rows":
        return np.append(np.arange(n // 2), n // 2 + np.arange(n - n // 2) // 20)
    weights = rng.exponential(size=max(20, n // 20))
    codes = np.sort(rng.choice(len(weights), n, p=weights / weights.sum()))
    return np.unique(rng.permutation(codes) if order == "in any order" else codes, return_inverse=True)[1]


def of_groups(name: str, order: str) -> Callable[[np.random.Generator, int], set[str]]:
    """False alarms of reports on rows in groups, of which half of the variance is in common."""
    distribution, own = REPORTED[name]

    def alarms(rng: np.random.Generator, n: int) -> set[str]:
        codes = group_codes(order, rng, n)
        X = rng.standard_normal((n, 3))
        y_pred = 2.0 * X[:, 0] + X.sum(axis=1)
        residuals = distribution(rng, n) + distribution(rng, int(codes.max()) + 1)[codes]
        few = {"rows"} if codes.max() + 1 < ENOUGH else set()  # groups, which is no false alarm
        raised = raised_of(y_pred + residuals, y_pred, X, rng.choice(list("abcd"), n), codes) - own - few
        return raised | ({"report"} if raised else set())

    return alarms


def of_volumes(rng: np.random.Generator, n: int) -> set[str]:
    """False alarms of reports on many rows in 60 groups, each with a spread of its own."""
    codes = np.repeat(np.arange(60), -(-n // 60))[:n]
    y_pred = rng.standard_normal(60)[codes] + 0.1 * rng.standard_normal(n)
    residuals = rng.standard_normal(n) * np.exp(0.8 * rng.standard_normal(60))[codes]
    raised = raised_of(y_pred + residuals, y_pred, None, None, codes) - {"heavy"}
    return raised | ({"report"} if raised else set())


def autoregressive(rng: np.random.Generator, n: int, a: float) -> Array:
    return np.asarray(lfilter([np.sqrt(1.0 - a * a)], [1.0, -a], rng.standard_normal(n + 500))[500:])


def of_series(name: str, *, has_time: bool) -> Callable[[np.random.Generator, int], set[str]]:
    """False alarms of reports on residuals that depend on those before them, whether time is given or not.

    Features are as slow, and say nothing.
    """

    def alarms(rng: np.random.Generator, n: int) -> set[str]:
        X = np.column_stack([autoregressive(rng, n, 0.97) for _ in range(2)])
        y_pred = 3.0 * rng.standard_normal(n)
        residuals, own = autoregressive(rng, n, 0.5), {"serial"}
        if name == "spells":
            residuals, own = rng.standard_normal(n) * np.exp(0.8 * autoregressive(rng, n, 0.97)), {"serial", "heavy"}
        raised = raised_of(y_pred + residuals, y_pred, X, None, has_time=has_time) - own
        return raised | ({"report"} if raised else set())

    return alarms


def integers(most: int) -> Draw:
    return lambda rng, n: rng.integers(-most, most + 1, n).astype(float)


def rounded(spread: float, middle: float = 0.0) -> Draw:
    return lambda rng, n: np.round(middle + spread * rng.standard_normal(n)) - middle


SYMMETRIC: dict[str, Draw] = {
    "-1 or 1": lambda rng, n: rng.choice([-1.0, 1.0], n),
    "uniform on -1..1": integers(1),
    "uniform on -2..2": integers(2),
    "uniform on -5..5": integers(5),
    "uniform on -50..50": integers(50),
    "-3, -1, 1 or 3": lambda rng, n: rng.choice([-3.0, -1.0, 1.0, 3.0], n),
    "normal, sd .5, rounded": rounded(0.5),
    "normal, sd .8, rounded": rounded(0.8),
    "normal, sd 1, rounded": rounded(1.0),
    "normal, sd 1, rounded to halves": rounded(1.0, 0.5),
    "normal, sd 2.1, rounded": rounded(2.1),
    "normal, sd 20, rounded": rounded(20.0),
    "Poisson(1) less Poisson(1)": lambda rng, n: (rng.poisson(1.0, n) - rng.poisson(1.0, n)).astype(float),
    "binomial(6, .5) less 3": lambda rng, n: rng.binomial(6, 0.5, n) - 3.0,
    "normal": lambda rng, n: rng.standard_normal(n),
    "uniform": lambda rng, n: rng.uniform(-1.0, 1.0, n),
    "arcsine": lambda rng, n: np.sin(rng.uniform(-np.pi, np.pi, n)),
    "two normal hills": lambda rng, n: rng.choice([-2.0, 2.0], n) + 0.5 * rng.standard_normal(n),
}
HEAVY: dict[str, Draw] = {
    "Laplace": lambda rng, n: rng.laplace(size=n),
    "t2": lambda rng, n: rng.standard_t(2, n),
    "Cauchy": lambda rng, n: rng.standard_cauchy(n),
    "t3, rounded": lambda rng, n: np.round(rng.standard_t(3, n)),
    "t3, sd 5, rounded": lambda rng, n: np.round(5.0 * rng.standard_t(3, n)),
}
SKEWED: dict[str, Draw] = {
    "exponential": lambda rng, n: rng.exponential(size=n) - 1.0,
    "lognormal(.5)": lambda rng, n: rng.lognormal(sigma=0.5, size=n),
    "lognormal(.25)": lambda rng, n: rng.lognormal(sigma=0.25, size=n),
    "gamma(4)": lambda rng, n: rng.gamma(4.0, size=n),
    "beta(2, 5)": lambda rng, n: rng.beta(2.0, 5.0, n),
    "Poisson(1)": lambda rng, n: rng.poisson(1.0, n) - 1.0,
    "Poisson(2)": lambda rng, n: rng.poisson(2.0, n) - 2.0,
    "Poisson(5)": lambda rng, n: rng.poisson(5.0, n) - 5.0,
    "geometric(.3)": lambda rng, n: rng.geometric(0.3, n) - 1.0 / 0.3,
    "exponential, mean 2, rounded, negative": lambda rng, n: -np.round(2.0 * rng.exponential(size=n)),
}
REPORTED: dict[str, tuple[Draw, set[str]]] = {  # residuals, and what they have
    "normal": (lambda rng, n: rng.standard_normal(n), set()),
    "t3": (lambda rng, n: rng.standard_t(3, n), {"heavy"}),
    "lognormal": (lambda rng, n: rng.lognormal(size=n) - np.exp(0.5), {"heavy", "skew"}),
    "integers": (rounded(2.1), {"discrete"}),
    "ties": (integers(1), {"discrete"}),
}
FEATURES = {
    "no features": (0, False),
    "1 feature": (1, False),
    "5, 2 words": (5, True),
    "20": (20, False),
}
N_ROWS = (200,)
GROUPED = ("one after the other", "in any order", "after single rows")  # groups, in the order of rows
N_REPORTS = 100  # draws of reports in a round
REPORT_ROWS, MANY = (30, 100, 1000, 5000), 1000  # of more rows, which take long, the fewest and the most features
SHAPE = ("skew", "heavy", "bias", "zeros")


def reports() -> Iterator[Cell]:
    for n in REPORT_ROWS:
        for name in REPORTED:
            for features, (n_features, is_worded) in FEATURES.items():
                if n > MANY and n_features not in {0, 20}:
                    continue
                alarms = of_reports(name, n_features, is_worded=is_worded)
                yield Cell(f"{name}, {features}", n, ("report",), alarms, n_draws=N_REPORTS)
    for n, name, order in product(REPORT_ROWS[1:3], ("normal", "t3", "lognormal"), GROUPED):
        alarms = of_groups(name, order)
        yield Cell(f"{name}, groups {order}", n, ("report",), alarms, n_draws=N_REPORTS)
    yield Cell("normal, 60 groups, each with its spread", 10_000, ("report",), of_volumes, n_draws=N_REPORTS)
    for name, has_time in product(("AR(.5)", "spells"), (True, False)):
        alarms = of_series(name, has_time=has_time)
        yield Cell(f"{name}, {'time' if has_time else 'no time'} given", 2000, ("report",), alarms, n_draws=N_REPORTS)


def cells() -> Iterator[Cell]:
    for name, distribution in SYMMETRIC.items():
        for n in N_ROWS:
            yield Cell(name, n, SHAPE, of_errors(distribution))
    for name, distribution in HEAVY.items():
        for n in N_ROWS:
            yield Cell(name, n, ("skew", "bias", "zeros"), of_errors(distribution))
    for name in ("-1 or 1", "uniform on -2..2", "normal, sd .5, rounded", "normal, sd 1, rounded"):
        yield Cell(name, 200, ("drift", "serial"), of_order(SYMMETRIC[name]))
    for name, distribution in SKEWED.items():
        for n in N_ROWS:
            yield Cell(name, n, ("skew",), of_errors(distribution), True, N_PLANTED)
    for name, distribution in HEAVY.items():
        for n in N_ROWS:
            yield Cell(name, n, ("heavy",), of_errors(distribution), True, N_PLANTED)


CELLS = (*reports(), *cells())


def counted(cell: Cell, n_draws: int, seed: int, i: int) -> Counter[str]:
    """How often each finding raises an alarm in round i."""
    rng = np.random.default_rng([seed, i, cell.n_rows, *map(ord, cell.situation)])
    return Counter(name for _ in range(n_draws) for name in cell.alarms(rng, cell.n_rows))


def rejected(p_values: list[float]) -> list[bool]:
    """Which tests reject, judged together by Holm's rule."""
    order = np.argsort(p_values)
    limits = ERROR / np.arange(len(p_values), 0, -1)
    held = np.cumprod(np.array(p_values)[order] <= limits).astype(bool)
    return held[np.argsort(order)].tolist()


def tables(found: list[tuple[Cell, Counter[str], int]]) -> str:
    """For each finding a table: a line for each situation, a column for each number of rows."""
    rates = {(name, c.situation, c.n_rows): counts[name] / n for c, counts, n in found for name in c.names}
    lines = []
    for name in dict.fromkeys(name for name, *_ in rates):
        rows = sorted({n for own, _, n in rates if own == name})
        lines += [f"\n| {name} | " + " | ".join(f"{n:,} rows" for n in rows) + " |", "|---" * (len(rows) + 1) + "|"]
        for situation in dict.fromkeys(situation for own, situation, _ in rates if own == name):
            shown = (rates.get((name, situation, n)) for n in rows)
            lines.append(f"| {situation} | {' | '.join('' if rate is None else f'{rate:.2%}' for rate in shown)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two draws of each cell, nothing saved")
    parser.add_argument("--seed", type=int, default=SEED, help="another seed saves nothing")
    parser.add_argument("--rounds", type=int, default=N_ROUNDS, help="of draws; those of an interrupted run are kept")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    asked = parser.parse_args()
    n_rounds = 1 if asked.quick else asked.rounds
    unfinished = Unfinished(__file__, asked.seed, kept=not asked.quick)
    alarms: list[Counter[str]] = [Counter() for _ in CELLS]
    tasks, cell_of = {}, {}
    for i, (k, cell) in product(range(n_rounds), enumerate(CELLS)):
        name = f"{cell.situation}, {cell.n_rows} rows, {cell.names}, {i}"
        tasks[name] = partial(counted, cell, 2 if asked.quick else cell.n_draws, asked.seed, i)
        cell_of[name] = k
    for n_done, (name, own) in enumerate(unfinished.each(tasks, asked.jobs), 1):
        alarms[cell_of[name]].update(own)
        if n_done % len(CELLS) == 0:
            print(f"{n_done // len(CELLS)} of {n_rounds} rounds", flush=True)
    found = [
        (cell, own, n_rounds * (2 if asked.quick else cell.n_draws)) for cell, own in zip(CELLS, alarms, strict=True)
    ]
    false, planted = ([one for one in found if one[0].is_planted == kind] for kind in (False, True))
    tests = [(cell, name, counts[name], n) for cell, counts, n in false for name in cell.names]
    p_values = [binomtest(k, n, ALLOWED, alternative="greater").pvalue for *_, k, n in tests]
    too_many = [
        f"{name}, {cell.situation}, {cell.n_rows} rows ({k / n:.1%})"
        for (cell, name, k, n), is_rejected in zip(tests, rejected(p_values), strict=True)
        if is_rejected
    ]
    most = max(tests, key=lambda test: test[2] / test[3])
    of_report = [k / n for _, name, k, n in tests if name == "report"]
    versions = ", ".join(f"{name} {version(name)}" for name in ("pimeter", "numpy", "scipy"))
    text = f"""# How often do checks raise an alarm?

{versions}, Python {platform.python_version()}.

Seed {asked.seed}; draws of each cell: {n_rounds * N_REPORTS:,} of reports, {n_rounds * N_SINGLE:,} of single findings,
{n_rounds * N_PLANTED:,} where something is planted.

## Where there is nothing

{len(tests)} rates of false alarms, each tested against {ALLOWED:.0%} (binomial, one-sided), all together by Holm's rule
with {ERROR:.0%}: {len(too_many)} are larger{"".join(f"; {one}" for one in too_many)}. The largest is
{most[2] / most[3]:.1%} ({most[1]}, {most[0].situation}, {most[0].n_rows:,} rows);
{np.mean(of_report):.1%} of the reports raise one on average.
{tables(false)}

## Where there is something
{tables(planted)}
"""
    if asked.quick or asked.seed != SEED:
        print(f"{text}\n{versions}. Nothing saved.")
        return
    save(__file__, text)
    unfinished.close()


if __name__ == "__main__":
    main()
