"""How often do the ranges of `measure` hold the truth? Nominal 90 %, each score, independent and dependent rows.

    python benchmarks/measure_ranges.py [--quick] [--jobs N]

Independent rows of six distributions, n = 30, 50, 100 and 1,000, and of two more; 60 clusters of 10 rows, and 25
unequal ones, with `groups`; autoregressive residuals with `time`. The truth of a score is its expected value on fresh
rows: of coverage and interval score, that of the very intervals that these rows gave; of the mean width, twice the
quantile of absolute residuals. Coverage counts among samples that have a range; a cell misses its floor if chance
explains that less than 5 % of the time (Holm over all cells). The diagnosis is left out, as no range depends on it.
Constants of the ranges were chosen on other seeds, also with exponential, Laplace, gamma and rounded residuals. The
table goes to `results/measure_ranges.md`; a run that was interrupted goes on.
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version

import numpy as np
from provenance import Unfinished, save
from scipy import stats
from scipy.signal import lfilter
from statsmodels.stats.multitest import multipletests

import pimeter as pm
from pimeter.evaluation import measuring
from pimeter.evaluation.diagnosis.checks import Judgement
from pimeter.findings import Diagnosis

SEED = 20261116  # others were looked at
LENGTHS = (30, 50, 100, 1000)
N_REFERENCE = 4_000_000  # absolute residuals that tell the true coverage and excess of a margin
HEAVY = ("t3", "lognormal")
LEVEL = 0.95
Rows = tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]  # predictions, residuals, keywords of `measure`


@dataclass(frozen=True)
class Setting:
    """Where rows come from, and what is true of them."""

    name: str
    n: int
    draw: Callable[[np.random.Generator, int], Rows]
    deviation: float  # of residuals
    floor: float = 0.85

    def truths(self, n: int) -> tuple[dict[str, float], np.ndarray]:
        """True scores that do not depend on the margin, and n absolute residuals in rising order."""
        predicted, residuals, _ = self.draw(np.random.default_rng(SEED + 1), n)
        absolute = np.sort(np.abs(residuals))
        square = self.deviation**2
        found = {
            "mae": float(absolute.mean()),
            "rmse": self.deviation,
            "mean_error": 0.0,
            "median_error": float(np.median(residuals)),
            "r2": 1.0 - square / (square + float(predicted.var())),
            "mean_width": 2.0 * float(absolute[int(np.ceil(LEVEL * n)) - 1]),
        }
        return found, absolute


def independent(draw: Callable[[np.random.Generator, int], np.ndarray], deviation: float) -> Callable[..., Rows]:
    """Residuals of a distribution around predictions that vary as much, on a grid: integer residuals stay tied."""
    return lambda rng, n: (np.round(deviation * rng.standard_normal(n) * 2**20) / 2**20, draw(rng, n), {})


def heteroscedastic(rng: np.random.Generator, n: int) -> Rows:
    """Residuals that grow with the prediction."""
    predicted = rng.standard_normal(n)
    return predicted, (0.3 + np.abs(predicted)) * rng.standard_normal(n), {}


def clusters(rng: np.random.Generator, n: int) -> Rows:
    """Rows of one cluster have .7 of the variance in common."""
    of_cluster = np.repeat(rng.standard_normal((2, -(-n // 10))), 10, axis=1)[:, :n]
    own = rng.standard_normal((2, n))
    predicted, residuals = np.sqrt(0.7) * of_cluster + np.sqrt(0.3) * own
    return predicted, residuals, {"groups": np.arange(n) // 10}


def unequal_clusters(rng: np.random.Generator, n: int) -> Rows:
    """Rows of clusters of 24 on average, of which the largest hold most, and have half of the variance in common."""
    weights = rng.exponential(size=n // 24)
    of_row = np.sort(rng.choice(len(weights), n, p=weights / weights.sum()))
    common, own = rng.standard_normal((2, len(weights)))[:, of_row], rng.standard_normal((2, n))
    predicted, residuals = np.sqrt(0.5) * (common + own)
    return predicted, residuals, {"groups": of_row}


def autoregressive(correlation: float) -> Callable[..., Rows]:
    """Residuals of variance 1, each a part of the one before plus noise."""

    def draw(rng: np.random.Generator, n: int) -> Rows:
        start = rng.standard_normal(1)
        noise = np.sqrt(1.0 - correlation**2) * rng.standard_normal(n)
        residuals, _ = lfilter([1.0], [1.0, -correlation], noise, zi=correlation * start)
        return rng.standard_normal(n), residuals, {"time": np.arange(n)}

    return draw


HETEROSCEDASTIC = float(np.sqrt(0.09 + 1.0 + 0.6 * np.sqrt(2.0 / np.pi)))
DISTRIBUTIONS: dict[str, tuple[Callable[..., Rows], float]] = {
    "normal": (independent(lambda rng, n: rng.standard_normal(n), 1.0), 1.0),
    "t3": (independent(lambda rng, n: rng.standard_t(3, n), 3**0.5), 3**0.5),
    "lognormal": (
        independent(lambda rng, n: np.exp(rng.standard_normal(n)) - np.e**0.5, ((np.e - 1) * np.e) ** 0.5),
        float(((np.e - 1.0) * np.e) ** 0.5),
    ),
    "discrete": (independent(lambda rng, n: rng.poisson(2.0, n) - 2.0, 2**0.5), 2**0.5),
    "heteroscedastic": (heteroscedastic, HETEROSCEDASTIC),
    "mixture": (
        independent(lambda rng, n: np.where(rng.random(n) < 0.1, 3.0, 1.0) * rng.standard_normal(n), 1.8**0.5),
        1.8**0.5,
    ),
}
SETTINGS = [Setting(name, n, *held) for name, held in DISTRIBUTIONS.items() for n in LENGTHS]
RARE = "1 % ten times as large"  # which few samples hold: shown, not judged
BEYOND = [
    *(
        Setting("arcsine", n, independent(lambda rng, n: rng.beta(0.5, 0.5, n) - 0.5, 0.125**0.5), 0.125**0.5)
        for n in (50, 100)
    ),
    *(
        Setting(
            RARE,
            n,
            independent(lambda rng, n: np.where(rng.random(n) < 0.01, 10.0, 1.0) * rng.standard_normal(n), 1.99**0.5),
            1.99**0.5,
            0.0,
        )
        for n in (50, 100, 1000)
    ),
]
DEPENDENT = [
    Setting("60 clusters of 10", 600, clusters, 1.0, 0.84),
    Setting("25 unequal clusters", 600, unequal_clusters, 1.0, 0.84),
    Setting("AR(.5)", 200, autoregressive(0.5), 1.0, 0.84),
    Setting("AR(.9)", 2000, autoregressive(0.9), 1.0, 0.84),
]


def without_diagnosis() -> None:
    """Let `measure` skip its checks, which take most of its time."""
    nothing = Judgement(Diagnosis((), (), ""), "constant", "symmetric", "")
    measuring.judged = lambda _evidence: nothing
    measuring.beside_mean_error = lambda diagnosis, *_: diagnosis


def held(setting: Setting, draws: int) -> dict[str, list[float]]:
    """Of each score and draw: 1 if its range holds the truth, 0 if not, NaN if there is none."""
    n = N_REFERENCE if draws > 100 else N_REFERENCE // 100
    truths, absolute = setting.truths(n)
    beyond = np.append(np.cumsum(absolute[::-1])[::-1], 0.0)
    found: dict[str, list[float]] = {}
    for i in range(draws):
        rng = np.random.default_rng([SEED, setting.n, i, *setting.name.encode()])
        predicted, residuals, keywords = setting.draw(rng, setting.n)
        result = pm.measure(predicted + residuals, predicted, confidence_level=LEVEL, **keywords)
        margin = result.margin[0]
        n_within = int(np.searchsorted(absolute, margin * (1.0 + 1e-12), "right"))
        excess = (beyond[n_within] - (n - n_within) * margin) / n
        own = truths | {
            "coverage": n_within / n,
            "interval_score": 2.0 * margin + 2.0 / (1.0 - LEVEL) * excess,
        }
        for name, score in result.scores.items():
            is_held = score.lower <= own[name] <= score.upper
            found.setdefault(name, []).append(float("nan") if np.isnan(score.lower) else float(is_held))
    return found


def floor_of(setting: Setting, score: str) -> float | None:
    """Least coverage of a range; None where that is not asked."""
    if setting.name in HEAVY and score == "rmse":
        return 0.75
    return setting.floor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few draws, nothing saved")
    parser.add_argument("--draws", type=int, default=2000, help="in each cell; other than 2,000 saves nothing")
    parser.add_argument("--only", default="", help="settings whose name holds this; saves nothing")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    asked = parser.parse_args()
    draws = 20 if asked.quick else asked.draws
    without_diagnosis()
    settings = [one for one in SETTINGS + BEYOND + DEPENDENT if asked.only in one.name]
    if asked.quick:
        settings = [replace(one, n=min(one.n, 600)) for one in settings if one.n != 1000]
    lines: list[str] = []
    cells: list[tuple[Setting, str, float, float, float]] = []  # given, coverage among these, p-value
    names: list[str] = []
    unfinished = Unfinished(__file__, draws, kept=draws == 2000)
    tasks = {f"{setting.name}, {setting.n}": partial(held, setting, draws) for setting in settings}
    results = {}
    for name, one in unfinished.each(tasks, asked.jobs):
        results[name] = one
        print(name, flush=True)
    for setting in settings:
        found = results[f"{setting.name}, {setting.n}"]
        names = list(found)
        row = []
        for name, own in found.items():
            values = np.array(own)
            given = values[~np.isnan(values)]
            proportion = float(given.mean()) if len(given) else float("nan")
            floor = floor_of(setting, name)
            p_value = stats.binomtest(int(given.sum()), len(given), floor, "less").pvalue if len(given) else 1.0
            cells.append((setting, name, len(given) / draws, proportion, float(p_value)))
            row.append(
                "none"
                if not len(given)
                else f"{proportion:.3f}" + (f" ({len(given) / draws:.2f})" if len(given) < draws else "")
            )
        lines.append(f"| {setting.name} | {setting.n:,} | {' | '.join(row)} |")
        print(lines[-1], flush=True)
    is_below = multipletests([cell[-1] for cell in cells], alpha=0.05, method="holm")[0]
    text = report(cells, [cell for cell, low in zip(cells, is_below, strict=True) if low], names, lines, draws)
    print(text)
    if not asked.quick and draws == 2000 and not asked.only:
        save(__file__, text, packages=["statsmodels"])
        unfinished.close()


def report(cells: list, below: list, names: list[str], lines: list[str], draws: int) -> str:
    """The four rows, and the table behind them."""
    asked = ("interval_score", "mae", "mean_error", "r2", "rmse")
    one = [c for c in cells if c[0].floor == 0.85]
    normal = [c[2] for c in one if c[0].name == "normal" and c[0].n >= 50]
    light = [c for c in one if c[1] in asked and not (c[1] == "rmse" and c[0].name in HEAVY) and c[2]]
    heavy = [c for c in one if c[1] == "rmse" and c[0].name in HEAVY]
    dependent = [c for c in cells if c[0].floor == 0.84 and c[2]]
    rare = [c for c in cells if c[0].name == RARE and c[2]]

    def worst(some: list) -> str:
        if not some:
            return "-"
        least = min(some, key=lambda c: c[3])
        return f"{least[3]:.3f} ({least[1].replace('_', ' ')}, {least[0].name}, n = {least[0].n:,})"

    def mean(some: list) -> str:
        return f"{np.mean([c[3] for c in some]):.3f}" if some else "-"

    rows = [
        (
            "ranges given: proportion of normal samples with n >= 50, least over scores",
            f"{min(normal, default=0):.3f}",
            "",
        ),
        ("interval score, mae, mean error, r2; rmse of light tails", worst(light), mean(light)),
        ("rmse, t3 and lognormal", worst(heavy), mean(heavy)),
        ("clusters with `groups`; AR(.5), AR(.9) with `time`; all scores", worst(dependent), mean(dependent)),
        (f"normal residuals of which {RARE}; all scores", worst(rare), mean(rare)),
    ]
    missed = "; ".join(f"{c[1].replace('_', ' ')}, {c[0].name}, n = {c[0].n:,}: {c[3]:.3f}" for c in below) or "none"
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return (
        f"""# Do the ranges of `measure` hold the truth?

`python benchmarks/measure_ranges.py`: nominal 90 %, {draws:,} draws in each cell, level .95. pimeter
{version("pimeter")}, numpy {np.__version__}, Python {platform.python_version()}. Cells below their floor (Holm, 5 %),
which is .85, of rmse with t3 and lognormal .75, of dependent rows .84: {missed}.

| what | least | mean |
|---|---|---|
{table}

How often ranges held the truth; in parentheses, in which proportion of samples one was given, if not in all:

| residuals | n | {" | ".join(name.replace("_", " ") for name in names)} |
|---|---|{"---|" * len(names)}
"""
        + "\n".join(lines)
        + "\n"
    )


if __name__ == "__main__":
    main()
