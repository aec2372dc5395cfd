"""How many independent errors do windows of forecasts stand for that overlap? Does `coverage_range_` hold?

    python benchmarks/forecast_worth.py [--quick] [--seed SEED]

Many series of windows are drawn, a cone is fitted to each, and its true coverage at each step is known from the
distribution of the errors. The range is to hold that coverage in 90 % of the draws. The estimate was chosen on seeds 1
to 7 and 20261116; this is another one. The tables go to `results/forecast_worth.md`.
"""

from __future__ import annotations

import argparse
import platform
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import NamedTuple

import numpy as np
from provenance import save
from scipy.signal import lfilter
from scipy.stats import binom, norm

import pimeter as pm

SEED = 20261117
DRAWS, FEWEST = 2000, 300  # in a cell, and in one of many errors
ERRORS_AT_ONCE = 3_000_000  # errors that are drawn at a time, and ...
WHOLE = 4_000_000  # ... in a cell, or there are fewer draws
ASKED = 0.9  # that a range is to hold
SIGNIFICANT = 0.05  # of all cells together (Holm)
FADED = 300  # values before a series begins
REFERENCE = 4_000_000  # errors that stand for a distribution without a formula

Draw = Callable[[int, int, np.random.Generator], np.ndarray]


class Found(NamedTuple):
    """What the draws of one cell found."""

    n_draws: int
    inside: float  # fraction of draws whose range holds the coverage, at the step where fewest do
    below: float  # fraction whose coverage lies below the range, there
    n_equivalent: float  # p (1 - p) over the mean squared distance of the coverage from p, at the step with the least
    n_effective: float  # median

    @property
    def p_value(self) -> float:
        """That of so few draws inside, were it 90 %."""
        return float(binom.cdf(round(self.inside * self.n_draws), self.n_draws, ASKED))

    def cells(self) -> list[str]:
        return [
            f"{self.n_draws:,}",
            f"{self.n_equivalent:.0f}",
            f"{self.n_effective:.0f}",
            f"{self.inside:.3f}",
            f"{self.below:.3f}",
        ]


def batches(n: int, h: int, stride: int, n_draws: int) -> Iterator[int]:
    """Numbers of draws that fit into memory together."""
    size = max(1, ERRORS_AT_ONCE // (max(h, stride) * n))
    left = min(n_draws, max(FEWEST, WHOLE // (h * n)))
    while left > 0:
        yield min(size, left)
        left -= size


def autoregressive(rho: float, size: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    noise = rng.standard_normal((size[0], size[1] + FADED))
    return np.asarray(lfilter([1.0], [1.0, -rho], noise, axis=1)[:, FADED:])


def windows(kind: str, rho: float, n: int, h: int, stride: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """Errors (size, n, h) in units of their standard deviation."""
    length = (n - 1) * stride + h + 1
    if kind == "last value":  # of a random walk
        series = np.cumsum(rng.standard_normal((size, length)), axis=1)
    else:
        series = autoregressive(rho, (size, length), rng)
    steps = np.arange(1, h + 1)
    start = stride * np.arange(n)
    now, then = series[:, start, None], series[:, start[:, None] + steps]
    variance = 1.0 / (1.0 - rho**2) if rho < 1.0 else 0.0
    if kind == "mean":
        return then / variance**0.5
    if kind == "best":
        return (then - rho**steps * now) / (variance * (1.0 - rho ** (2 * steps))) ** 0.5
    if kind == "last of AR":
        return (then - now) / (2.0 * variance * (1.0 - rho**steps)) ** 0.5
    return (then - now) / steps**0.5


def judged(
    errors: Callable[[int], np.ndarray],
    batch: Iterator[int],
    coverage: Callable[[np.ndarray], np.ndarray],
    level: float,
    stride: float = 1.0,
    tails: str = "symmetric",
) -> Found:
    """Fit a cone to each draw of errors (size, n, h); `coverage` of its radii (size, h, 2) is the truth."""
    true, ranges, effective = [], [], []
    for size in batch:
        drawn = errors(size)
        cone = pm.ForecastIntervals(level, tails=tails)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pm.CoverageWarning)
            cone.fit(drawn, np.zeros_like(drawn), stride=stride)
        true.append(coverage(cone.margin_))
        ranges.append(cone.coverage_range_)
        effective.append(cone.n_effective_)
    covered, (low, high) = np.concatenate(true), np.concatenate(ranges).T[:, :, None]
    inside = ((low <= covered) & (covered <= high)).mean(axis=0)
    worst = int(inside.argmin())
    return Found(
        len(covered),
        float(inside[worst]),
        float((covered < low)[:, worst].mean()),
        float((level * (1.0 - level) / ((covered - level) ** 2).mean(axis=0)).min()),
        float(np.median(np.concatenate(effective))),
    )


def normal_coverage(radius: np.ndarray) -> np.ndarray:
    return norm.cdf(radius[..., 1]) - norm.cdf(-radius[..., 0])


def main_cells(n_draws: int, quick: bool, seed: int) -> list[tuple[list[str], Found]]:
    kinds = {
        "mean": (0.0, 0.5, 0.9),
        "best": (0.5, 0.9),
        "last of AR": (0.5, 0.9),
        "last value": (1.0,),
    }
    found = []
    for level in (0.95,) if quick else (0.8, 0.95):
        for kind, rhos in kinds.items():
            for rho in rhos:
                for h in (1, 7) if quick else (1, 7, 30):
                    for stride in sorted({1, h}):
                        for n in (100,) if quick else (100, 300, 1000):
                            rng = np.random.default_rng([seed, round(100 * level), round(10 * rho), h, stride, n])
                            cell = judged(
                                lambda size: windows(kind, rho, n, h, stride, size, rng),  # noqa: B023 - used at once
                                batches(n, h, stride, n_draws),
                                normal_coverage,
                                level,
                                stride,
                            )
                            names = [f"{level}", kind, f"{rho}", f"{h}", f"{stride}", f"{n:,}"]
                            found.append((names, cell))
                            print(*names, cell, flush=True)
    return found


def skewed(size: int, n: int, rng: np.random.Generator) -> np.ndarray:
    noise = rng.standard_exponential((size, n + FADED)) - 1.0
    return np.asarray(lfilter([1.0], [1.0, -0.7], noise, axis=1)[:, FADED:])


def heavy(size: int, n: int, rng: np.random.Generator) -> np.ndarray:
    noise = rng.standard_t(3, (size, n + FADED))
    return np.asarray(lfilter([1.0], [1.0, -0.7], noise, axis=1)[:, FADED:])


def alternating(size: int, n: int, rng: np.random.Generator) -> np.ndarray:
    return autoregressive(-0.7, (size, n), rng)


def weekly(fraction: float) -> Draw:
    def draw(size: int, n: int, rng: np.random.Generator) -> np.ndarray:
        noise = rng.standard_normal((size, n + 7 * FADED))
        return np.asarray(lfilter([1.0], [1.0, *[0.0] * 6, -fraction], noise, axis=1)[:, 7 * FADED :])

    return draw


def garch(size: int, n: int, rng: np.random.Generator) -> np.ndarray:
    noise = rng.standard_normal((n + FADED, size))
    variance = np.ones(size)
    errors = np.empty_like(noise)
    for t, now in enumerate(noise):
        errors[t] = np.sqrt(variance) * now
        variance = 0.05 + 0.1 * errors[t] ** 2 + 0.85 * variance
    return errors[FADED:].T


def bursts(size: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Ten times as large in 5 % of the time, ten steps each on average."""
    noise, chance = rng.standard_normal((n, size)), rng.uniform(size=(n, size))
    is_large = rng.uniform(size=size) < 0.05
    errors = np.empty_like(noise)
    for t, now in enumerate(noise):
        errors[t] = np.where(is_large, 10.0, 1.0) * now
        is_large = np.where(is_large, chance[t] > 0.1, chance[t] < 0.1 * 0.05 / 0.95)
    return errors.T


DISTRIBUTIONS: dict[str, Draw] = {
    "skewed, AR(.7)": skewed,
    "t3, AR(.7)": heavy,
    "AR(-.7)": alternating,
    "weekly, .5 of a week before": weekly(0.5),
    "weekly, .9 of a week before": weekly(0.9),
    "GARCH(.1, .85)": garch,
    "bursts": bursts,
}


def distribution_cells(n_draws: int, quick: bool, seed: int) -> list[tuple[list[str], Found]]:
    found = []
    for i, (name, draw) in enumerate(DISTRIBUTIONS.items()):
        reference = np.sort(draw(1000, REFERENCE // 1000, np.random.default_rng([seed, 99, i])).ravel())

        def coverage(radius: np.ndarray, reference: np.ndarray = reference) -> np.ndarray:
            below = np.searchsorted(reference, radius[..., 1], "right")
            return (below - np.searchsorted(reference, -radius[..., 0])) / len(reference)

        for j, tails in enumerate(("symmetric", "equal", "upper")):
            for n in (100,) if quick else (100, 300, 1000):
                rng = np.random.default_rng([seed, i, j, n])
                cell = judged(
                    lambda size: draw(size, n, rng)[..., None],  # noqa: B023 - used at once
                    batches(n, 1, 1, n_draws),
                    coverage,
                    0.95,
                    tails=tails,
                )
                found.append(([name, tails, f"{n:,}"], cell))
                print(name, tails, n, cell, flush=True)
    return found


def table(names: str, rows: list[tuple[list[str], Found]]) -> list[str]:
    """Cells that hold in significantly fewer than 90 % of the draws, all of the table together, are marked."""
    order = np.argsort([found.p_value for _, found in rows])
    missed: set[int] = set()
    for place, i in enumerate(order):
        if rows[i][1].p_value > SIGNIFICANT / (len(rows) - place):
            break
        missed.add(int(i))
    header = [*names.split(" | "), "draws", "equivalent", "`n_effective_`", "range holds", "too low", ""]
    lines = [header, ["---"] * len(header)]
    lines += [[*cells, *found.cells(), "below 90 %" if i in missed else ""] for i, (cells, found) in enumerate(rows)]
    fractions = [found.inside for _, found in rows]
    large = [found.inside for _, found in rows if found.n_equivalent >= 20.0]
    return [
        *(f"| {' | '.join(line)} |" for line in lines),
        "",
        (
            f"{len(missed)} of {len(rows)} cells hold in fewer than 90 % (Holm over the table, 5 %); the least is "
            f"{min(fractions):.3f}, among cells whose windows stand for 20 errors or more {min(large):.3f}."
        ),
        "",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few draws, nothing saved")
    parser.add_argument("--seed", type=int, default=SEED, help="another one than that of the results saves nothing")
    options = parser.parse_args()
    n_draws = 50 if options.quick else DRAWS
    lines = [
        "# How many errors windows of forecasts stand for",
        "",
        (
            f"`python benchmarks/forecast_worth.py`, seed {options.seed}. {platform.machine()}; Python "
            f"{platform.python_version()}, numpy {version('numpy')}, scipy {version('scipy')}."
        ),
        "",
        (
            "A cone is fitted to each draw of n windows. *equivalent*: so many independent errors would "
            "give a coverage as "
            "far from its level, p (1 - p) over the mean squared distance, at the step with the fewest. *range holds*: "
            "fraction of draws whose `coverage_range_` (5 % and 95 % points) has the true coverage inside, at the step "
            "where the fewest do; *too low*: whose coverage lies below it, there."
        ),
        "",
        "## Normal errors of autoregressive series",
        "",
        (
            "Forecasts of an AR(rho) series: its mean, so that errors are the series itself; the best forecast; the "
            "last value. rho = 1 is a random walk. Windows start `stride` steps apart, which `fit` is told."
        ),
        "",
        *table("level | forecast | rho | h | stride | n", main_cells(n_draws, options.quick, options.seed)),
        "## Other distributions, one step ahead, level .95",
        "",
        *table("errors | tails | n", distribution_cells(n_draws, options.quick, options.seed)),
    ]
    text = "\n".join(lines)
    print(text)
    if not options.quick and options.seed == SEED:
        save(__file__, text)


if __name__ == "__main__":
    main()
