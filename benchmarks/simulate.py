"""Is every guarantee of docs/guarantees.md kept? Millions of simulated calibrations, one test for each and each cell.

    python benchmarks/simulate.py [--minutes 60] [--jobs 2] [--quick]

A *cell* is a guarantee, a setting, a distribution of errors, a number m of calibration rows and a level p. Cells take
turns. What is done is kept in `.parts` until the code changes, so that a run goes on where it stopped. It stops by the
clock, or when all cells have what they need, never because of what was found. Of each calibration one knows either

- its coverage, exactly or averaged over new rows: a number between 0 and 1 whose mean is guaranteed to be c or more.
  The test bets against that: from a fortune of 1 a fixed fraction s is put on each calibration to cover less than c, so
  that the fortune is multiplied by 1 + s (c - coverage). If the guarantee is kept, the expected fortune is 1 at most,
  and 1/fortune is a p-value: Markov's inequality, no normal approximation, whatever the distribution of the coverage
  is. Calibrations with rows or labels in common count as one, by their mean;
- or a hit or a miss, a hit being guaranteed with probability c: the one-sided binomial test;
- or whether a bound holds that has no probability: a single failure rejects it.

All cells of a guarantee whose errors have no ties, where coverage is at its lowest, are also tested together: a normal
test of the mean margin, cells weighted by their number and expected variance, settings of one cell, which have
calibrations in common, taken for one and the same. Holm's correction over all tests, of cells and of guarantees, holds
the probability of any false alarm below 1e-3. The power of a test is the probability that it would notice, by itself
and at the smallest level that Holm uses, coverage .005 below what is guaranteed (in all of its cells), with the spread
that was seen.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import platform
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.metadata import version
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from interval_coverage import (
    NOISES,
    Forest,
    Kind,
    LinearQuantiles,
    Noise,
    Remembers,
    covered,
    grid,
    slope_scale,
    trained,
)
from provenance import Origin, joined, origin, save, write
from scipy import stats
from scipy.special import softmax
from sklearn.linear_model import Ridge

import pimeter as pm
import pimeter.regression.nearness
from pimeter.classification import label_shift_sets
from pimeter.conformal.guarantee import rank_guarantee

PARTS = Path(__file__).parent / ".parts"
SEED = 20261116
FAMILY = 1e-3  # probability of any false alarm
SHORTFALL = 0.005
# Guarantees that were changed because a run had rejected them; the seed is still the one that rejected them.
REVISED = {
    "QuantileSketch": "a run of 960 sketches found one, of tied values, whose levels are off by more than pi/size; "
    "since then 4/size is guaranteed where values are tied",
}
TURNS = 10  # that a cell's calibrations are shared out to
LENGTHS = (1, 3, 10, 40, 200, 1000, 10_000)
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99, 0.999)
GUARANTEES = ("marginal", "approximate", "training-conditional")
TAILS = ("symmetric", "equal", "sided", "lower", "upper")
ALL_NOISES = (
    *NOISES,
    Noise("cauchy", stats.cauchy()),
    Noise("lognormal", stats.lognorm(1.5, -1.0)),
    Noise("three values", stats.uniform(-0.7, 1.4), has_ties=True),
)


@dataclass
class Tally:
    """What is known of one guarantee in one cell."""

    guaranteed: float
    kind: str  # "mean" of coverages, "fraction" of hits, "bound" that always holds, "none": nothing is guaranteed
    stake: float = 0.0
    calibrations: int = 0
    n: int = 0
    total: float = 0.0
    squares: float = 0.0
    log_fortune: float = 0.0

    def add(self, other: Tally) -> None:
        assert (self.kind, self.stake) == (other.kind, other.stake)
        assert self.guaranteed == other.guaranteed or self.kind == "none"
        for name in ("calibrations", "n", "total", "squares", "log_fortune"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def mean(self) -> float:
        return self.total / self.n

    @property
    def deviation(self) -> float:
        return max(self.squares / self.n - self.mean**2, 0.0) ** 0.5

    @property
    def p_value(self) -> float:
        if self.kind == "mean":
            return float(np.exp(min(-self.log_fortune, 0.0)))
        if self.kind == "fraction":
            return float(stats.binom.cdf(round(self.total), self.n, self.guaranteed))
        return float(self.kind == "none" or self.total == self.n)

    def power(self, level: float) -> float:
        """Probability to notice a shortfall at this level of the test."""
        if self.kind == "fraction":
            rejected = stats.binom.ppf(level, self.n, self.guaranteed) - 1
            return float(stats.binom.cdf(rejected, self.n, self.guaranteed - SHORTFALL))
        growth = self.stake * SHORTFALL - self.stake**2 * (self.deviation**2 + SHORTFALL**2) / 2
        spread = max(self.stake * self.deviation, 1e-12)
        return float(stats.norm.cdf((self.n * growth + np.log(level)) / (spread * self.n**0.5)))

    @property
    def weight(self) -> float:
        """Number of calibrations over the variance that was expected before any was drawn."""
        stake = self.stake or SHORTFALL / (self.guaranteed * (1.0 - self.guaranteed))
        return self.n * stake / SHORTFALL


@dataclass
class Found:
    """Tallies of one cell by (guarantee, setting)."""

    tallies: dict[tuple[str, str], Tally] = field(default_factory=dict)

    def means(
        self,
        name: str,
        setting: str,
        guaranteed: float,
        values: np.ndarray,
        *,
        variance: float,
        each: int = 1,
        most=1.0,
    ) -> None:
        """Independent values between 0 and `most` whose mean is guaranteed; `variance` only decides how much is bet."""
        stake = min(SHORTFALL / variance, 0.9 / (most - guaranteed)) if guaranteed < most else 1.0
        fortune = float(np.log1p(stake * (guaranteed - values)).sum())
        self._add(name, setting, Tally(guaranteed, "mean", stake), values, each, fortune)

    def fractions(self, name: str, setting: str, guaranteed: float, hits: np.ndarray) -> None:
        """Independent hits, guaranteed with this probability."""
        self._add(name, setting, Tally(guaranteed, "fraction"), hits.astype(float), 1, 0.0)

    def bounds(self, name: str, setting: str, held: np.ndarray, *, guaranteed: float = 1.0) -> None:
        self._add(name, setting, Tally(guaranteed, "bound"), np.asarray(held, float), 1, 0.0)

    def nothing(self, name: str, setting: str, values: np.ndarray) -> None:
        """Coverages of which nothing is guaranteed."""
        self._add(name, setting, Tally(np.nan, "none"), values, 1, 0.0)

    def _add(self, name: str, setting: str, new: Tally, values: np.ndarray, each: int, fortune: float) -> None:
        # No test rejects NaN, and among others it would hide those that are rejected.
        assert np.isfinite(values).all(), (name, setting)
        assert np.isfinite(new.guaranteed) or new.kind == "none", (name, setting)
        if values.size:
            new.calibrations, new.n = each * values.size, values.size
            new.total, new.squares, new.log_fortune = float(values.sum()), float((values**2).sum()), fortune
            self.tallies[name, setting] = new


@dataclass(frozen=True)
class Cell:
    """What is simulated, and how often."""

    name: str
    simulate: Callable[[Cell, np.random.Generator, int], Found]  # so many calibrations
    noise: Noise
    m: int
    p: float
    calibrations: int
    settings: dict[str, object] = field(default_factory=dict)

    @property
    def key(self) -> str:
        more = " ".join(f"{name}={value}" for name, value in self.settings.items())
        return "|".join([self.name, more, self.noise.name, str(self.m), str(self.p)])

    @property
    def variance(self) -> float:
        """That of the coverage of a set of m rows, by the Beta distribution."""
        return self.p * (1.0 - self.p) / (self.m + 2.0)


def enough(m: int, p: float, most: int) -> int:
    """Calibrations that notice a shortfall in nine of ten runs, with coverage known and 3,000 tests."""
    needed = (np.sqrt(2.0 * np.log(3000 / FAMILY)) + 1.3) ** 2 * p * (1.0 - p) / (m + 2.0) / SHORTFALL**2
    return int(np.clip(needed, 300, most))


def zero(k: int) -> Callable[[np.ndarray], np.ndarray]:
    return lambda X: np.zeros((len(X), k))


def batches(cell: Cell, n: int, values: int = 200_000) -> Iterator[int]:
    """Numbers of calibrations in batches that fit into the memory's faster part."""
    most = max(1, min(2000, values // cell.m))
    while n > 0:
        yield min(n, most)
        n -= most


def calibrated(cell: Cell, rng: np.random.Generator, k: int, **more: object) -> pm.IntervalRegressor:
    """One calibration for each output."""
    model = pm.IntervalRegressor(zero(k), confidence_level=cell.p, **{**cell.settings, **more})
    return model.calibrate(np.zeros((cell.m, 1)), cell.noise.sample(rng, (cell.m, k)))


def predicted_bounds(model: pm.IntervalRegressor) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of the intervals of all outputs."""
    found = model.predict_interval(np.zeros((1, 1)))[0]
    return found[:, 0], found[:, 1]


def gathered(parts: list[Found]) -> Found:
    whole = Found()
    for part in parts:
        for key, tally in part.tallies.items():
            if key in whole.tallies:
                whole.tallies[key].add(tally)
            else:
                whole.tallies[key] = tally
    return whole


def on_the_page(
    m: int, p: float, tails: object = "symmetric", guarantee: object = "marginal", *, in_folds: bool = False
) -> float:
    """Coverage that docs/guarantees.md guarantees to m rows, whatever the model says of itself."""
    cuts = 2 if tails == "equal" else 1
    if in_folds:
        return max(0.0, 2 * p - 1 - cuts * math.sqrt(2 / m))
    if guarantee != "approximate":
        return p if m >= (p + cuts - 1) / (1 - p) - 1e-9 else (m + 1 - cuts) / (m + 1)
    below = min(max(1, math.floor((m + 1) * (p + cuts - 1) / cuts + 1e-9)), m)
    return (cuts * below - (cuts - 1) * (m + 1)) / (m + 1)


def split(cell: Cell, rng: np.random.Generator, n: int) -> Found:
    """Constant width: all tails and guarantees."""
    parts = []
    tails, guarantee = cell.settings["tails"], cell.settings["guarantee"]
    setting = f"{tails}, guarantee={guarantee!r}"
    for k in batches(cell, n):
        found, same = Found(), deepcopy(rng)
        model = calibrated(cell, rng, k)
        low, high = predicted_bounds(model)
        coverage = cell.noise.within(low, high)
        if tails == "sided":
            sided(cell, found, model, setting)
        elif guarantee == "training-conditional":
            assert model.guaranteed_
            found.fractions('guarantee="training-conditional"', setting, 0.95, coverage >= cell.p - 1e-12)
        else:
            guaranteed = on_the_page(cell.m, cell.p, tails, guarantee)
            assert np.isclose(model.guaranteed_level_, guaranteed)
            few = on_the_page(cell.m, cell.p, tails) < cell.p
            is_rank = guarantee == "marginal"
            name = "too few rows" if few and is_rank else f'guarantee="{guarantee}"'
            found.means(name, setting, guaranteed, coverage, variance=cell.variance)
            if is_rank and not few and not cell.noise.has_ties:
                excess = (2 if tails == "equal" else 1) / (cell.m + 1)
                found.means("at most", setting, 1 - cell.p - excess, 1 - coverage, variance=cell.variance)
            if not few:
                least, most = model.coverage_range_
                found.fractions("coverage_range_", f"{setting}, 5 % point", 0.95, coverage >= least)
                if not cell.noise.has_ties:
                    found.fractions("coverage_range_", f"{setting}, 95 % point", 0.95, coverage <= most)
            if not is_rank:
                far, wide = predicted_bounds(calibrated(cell, same, k, guarantee="marginal"))
                found.bounds(name, f"{setting}, no wider", (low >= far) & (high <= wide))
        parts.append(found)
    return gathered(parts)


def sided(cell: Cell, found: Found, model: pm.IntervalRegressor, setting: str) -> None:
    """Targets below the prediction and above it, where there are enough of each among calibration rows."""
    low, high = predicted_bounds(model)
    kept = ~np.isnan([output.level for output in model._quantile.guarantees[0]])
    tiny = 1e-6  # of errors with steps 0 belongs to neither side
    below = cell.noise.within(low, np.full_like(low, -tiny)) / cell.noise.within(np.array(-np.inf), np.array(-tiny))
    above = cell.noise.within(np.full_like(high, tiny), high) / cell.noise.within(np.array(tiny), np.array(np.inf))
    name = 'tails="sided"'
    if model.guarantee == "training-conditional":
        hits = (below >= cell.p - 1e-12) & (above >= cell.p - 1e-12)
        found.fractions(name, f"{setting}, both", 0.95, hits[kept])
        return
    levels = np.array([output.level for output in model._quantile.guarantees[0]])[kept]
    for side, coverage in (("below", below[kept]), ("above", above[kept])):
        if model.guarantee == "marginal":
            found.means(name, f"{setting}, {side}", cell.p, coverage, variance=2 * cell.variance)
        elif kept.any():  # the level of the neuron depends on how many errors are on its side
            shifted = coverage + cell.p - levels
            found.means(name, f"{setting}, {side}", cell.p, shifted, variance=2 * cell.variance, most=2.0)


def cut(cell: Cell, rng: np.random.Generator, n: int) -> Found:
    """Intervals that end at the largest possible target or, where there is none, at the least."""
    parts = []
    least, most = map(float, cell.noise.distribution.support())
    end, limit = ("y_max", most) if np.isfinite(most) else ("y_min", least)
    for k in batches(cell, n):
        found = Found()
        coverage = cell.noise.within(*predicted_bounds(calibrated(cell, rng, k, **{end: limit})))
        found.means("y_min, y_max", end, on_the_page(cell.m, cell.p), coverage, variance=cell.variance)
        parts.append(found)
    return gathered(parts)


def updated(cell: Cell, rng: np.random.Generator, n: int) -> Found:
    """A third of the rows calibrate, the others come later."""
    parts = []
    first = max(1, cell.m // 3)
    for k in batches(cell, n):
        found = Found()
        y = cell.noise.sample(rng, (cell.m, k))
        model = pm.IntervalRegressor(zero(k), confidence_level=cell.p).calibrate(np.zeros((first, 1)), y[:first])
        model.update(np.zeros((cell.m - first, 1)), y[first:])
        coverage = cell.noise.within(*predicted_bounds(model))
        found.means("update", "symmetric", on_the_page(cell.m, cell.p), coverage, variance=cell.variance)
        parts.append(found)
    return gathered(parts)


def distribution(cell: Cell, rng: np.random.Generator, n: int) -> Found:
    """Quantiles at p and 1 - p, and p-values of targets at or below 1 - p."""
    parts = []
    far = np.inf
    for k in batches(cell, n):
        found = Found()
        model = calibrated(cell, rng, k)
        low, high = model.predict_quantile(np.zeros((1, 1)), [1 - cell.p, cell.p])[0].T
        if cell.m >= cell.p / (1 - cell.p) - 1e-9:
            # The quantile at 1/2 is an upper one.
            for setting, own_bounds in (("upper", (-far, high)), ("lower", (low, far)))[: 1 + (cell.p > 0.5)]:
                coverage = cell.noise.within(*map(np.asarray, own_bounds))
                found.means("predict_quantile", setting, cell.p, coverage, variance=cell.variance)
        if not cell.noise.has_ties:
            fraction = model.predict_cdf(np.zeros((1, 1)), cell.noise.sample(rng, (1, k)))[0]
            hits = fraction + 0.5 / (cell.m + 1) > 1 - cell.p + 1e-12
            found.fractions("predict_cdf", "p-value", cell.p, hits)
        parts.append(found)
    return gathered(parts)


def rows_needed(cell: Cell, rng: np.random.Generator, n: int) -> Found:
    """Coverage of the set at hand, from so many rows."""
    within = cell.settings["within"]
    parts = []
    for k in batches(cell, n):
        found = Found()
        model = pm.IntervalRegressor(zero(k), confidence_level=cell.p)
        model.calibrate(np.zeros((cell.m, 1)), cell.noise.sample(rng, (cell.m, k)))
        coverage = cell.noise.within(*predicted_bounds(model))
        found.fractions("rows_needed", f"within {within}, below", 0.95, coverage >= cell.p - within)
        if not cell.noise.has_ties:
            found.fractions("rows_needed", f"within {within}, above", 0.95, coverage <= cell.p + within)
        parts.append(found)
    return gathered(parts)


CATEGORY_SCALES = np.array([1.0, 5.0, 0.2])


def grouped(cell: Cell, rng: np.random.Generator, n: int) -> Found:
    """Three categories of m, 2 m and 4 m rows, each covered by itself."""
    parts = []
    labels = np.repeat([0, 1, 2], [cell.m, 2 * cell.m, 4 * cell.m])
    for k in batches(cell, n, 30_000):
        found = Found()
        y = cell.noise.sample(rng, (len(labels), k)) * CATEGORY_SCALES[labels][:, None]
        model = pm.IntervalRegressor(zero(k), confidence_level=cell.p, width=pm.GroupedWidth(by=0), **cell.settings)
        other = cell.p / 2 + 0.2  # a lower level than the model was calibrated for
        bounds = model.calibrate(labels[:, None], y).predict_interval(np.arange(3)[:, None], [cell.p, other])
        for line, scale, own_bounds in zip(model.categories_[:-1], CATEGORY_SCALES, bounds, strict=True):
            setting = f"{model.tails}, guarantee={model.guarantee!r}, {line.rows} rows"
            for p, (low, high) in zip((cell.p, other), own_bounds.T / scale, strict=True):
                if p == cell.p or (line.source == "own" and model.guarantee == "marginal" and model.tails != "sided"):
                    coverage = cell.noise.within(low, high)
                    guaranteed = on_the_page(line.rows, p, model.tails, model.guarantee)
                    assert p != cell.p or np.isclose(line.level, guaranteed)
                    name = setting if p == cell.p else f"{setting}, asked for another level"
                    found.means('width="grouped"', name, guaranteed, coverage, variance=p * (1 - p) / (cell.m + 2))
        parts.append(found)
    return gathered(parts)


def small_categories(cell: Cell, rng: np.random.Generator, n: int) -> Found:
    """Categories that are large or small by chance, the hard ones with m rows on average, the easy ones with few.

    New rows of large categories count as covered with p, so that the mean is p or more if small ones are.
    """
    fraction = np.repeat([float(cell.m), 1.5], [8, 25])
    size, fraction = int(fraction.sum()), fraction / fraction.sum()
    scale = np.repeat([100.0, 1.0], [8, 25])
    needed = rank_guarantee(1, cell.p).needed
    values, each = [], 2
    for _ in range(n // each):
        labels = rng.choice(len(fraction), size, p=fraction)
        y = cell.noise.sample(rng, (size, each)) * scale[labels][:, None]
        model = pm.IntervalRegressor(zero(each), confidence_level=cell.p, width=pm.GroupedWidth(by=0))
        bounds = model.calibrate(labels[:, None], y).predict_interval(np.arange(len(fraction))[:, None])
        counts = np.bincount(labels, minlength=len(fraction))
        is_small = counts < needed
        coverage = cell.noise.within(bounds[..., 0] / scale[:, None], bounds[..., 1] / scale[:, None]).mean(axis=1)
        if counts[counts <= needed].sum() >= needed:
            values.append(fraction @ np.where(is_small, coverage, cell.p))
    found = Found()
    found.means("small categories", "together", cell.p, np.array(values), variance=0.002, each=each)
    return found


MEMBERSHIP = np.array(list(product((False, True), repeat=3)))  # of rows in three groups, independent of each other
IN_GROUP = np.array([0.5, 0.35, 0.6])


def overlapping(cell: Cell, rng: np.random.Generator, n: int) -> Found:
    """Three groups that overlap, of m rows in all; scales depend on the groups, each of which is covered."""
    fraction = np.where(MEMBERSHIP, IN_GROUP, 1.0 - IN_GROUP).prod(axis=1)
    scale = np.exp(MEMBERSHIP @ [0.8, -0.6, 0.4])
    values = np.empty((n, 3))
    for i in range(n):
        kind = rng.choice(len(fraction), cell.m, p=fraction)
        y = cell.noise.sample(rng, (cell.m, 1))[:, 0] * scale[kind]
        model = pm.IntervalRegressor(lambda X: np.zeros(len(X)), confidence_level=cell.p, width="grouped")
        model.calibrate(kind[:, None], y, by=MEMBERSHIP[kind])
        low, high = model.predict_interval(np.arange(8)[:, None], by=MEMBERSHIP).T / scale
        coverage = cell.noise.within(low, high)
        values[i] = (fraction * coverage) @ MEMBERSHIP / IN_GROUP
    found = Found()
    for group, own in enumerate(values.T):
        found.means("overlapping groups", f"group {group}", cell.p, own, variance=2 * cell.variance)
    return found


THIN_CELLS = np.array([["a", "x"], ["a", "y"], ["b", "y"]])
THIN_FRACTION, THIN_SCALE = np.array([0.42, 0.05, 0.53]), np.array([1.0, 20.0, 1.0])


def thin_combination(cell: Cell, rng: np.random.Generator, n: int) -> Found:
    """Groups of two groupings, all large, whose rarest combination is the hardest: none covers less than it says.

    Its margin ought to be infinite and is cut, which the guaranteed level has to say in each of the calibration sets.
    """
    names = ["a", "b", "x", "y"]
    is_in = (THIN_CELLS[:, :, None] == names).any(axis=1)
    values = np.empty((n, len(names)))
    for i in range(n):
        kind = rng.choice(len(THIN_CELLS), cell.m, p=THIN_FRACTION)
        y = cell.noise.sample(rng, (cell.m, 1))[:, 0] * THIN_SCALE[kind]
        model = pm.IntervalRegressor(lambda X: np.zeros(len(X)), confidence_level=cell.p, width="grouped")
        model.calibrate(kind[:, None], y, by=THIN_CELLS[kind])
        low, high = model.predict_interval(np.arange(3)[:, None], by=THIN_CELLS).T / THIN_SCALE
        coverage = cell.noise.within(low, high)
        levels = {line.label[-1]: line.level for line in model.categories_}
        own = (THIN_FRACTION * coverage) @ is_in / (THIN_FRACTION @ is_in)
        values[i] = own + cell.p - [levels[name] for name in names]
    found = Found()
    for name, own in zip(names, values.T, strict=True):
        found.means(
            "overlapping groups", f"a thin combination, {name}", cell.p, own, variance=2 * cell.variance, most=2
        )
    return found


def new_groups(cell: Cell, rng: np.random.Generator, n: int) -> Found:
    """m groups, whose rows are the more the smaller their targets are: a row of a new group, whatever its size."""
    each, values = 10, []
    guaranteed = on_the_page(cell.m, cell.p)
    for _ in range(n // each):
        kind = rng.choice(3, cell.m)
        codes = np.repeat(np.arange(cell.m), rng.integers(1, np.array([4, 2, 12])[kind]))
        effect = cell.noise.sample(rng, (cell.m, each))[codes] * CATEGORY_SCALES[kind][codes][:, None]
        sign = np.where(rng.uniform(size=effect.shape) < 0.5, 1.0, -1.0)
        model = pm.IntervalRegressor(zero(each), confidence_level=cell.p)
        model.calibrate(np.zeros((len(codes), 1)), sign * effect, groups=codes)
        low, high = (bound / CATEGORY_SCALES[:, None] for bound in predicted_bounds(model))
        values.append(float(cell.noise.within(low, high).mean() + cell.noise.within(-high, -low).mean()) / 2)
        assert np.isclose(model.guaranteed_level_, guaranteed)
    found = Found()
    found.means("new groups", "random effects", guaranteed, np.array(values), variance=cell.variance, each=each)
    return found


def shaped(cell: Cell, rng: np.random.Generator, n: int) -> Found:
    """Widths that learn, folds, weights, several outputs at once: the kinds of benchmarks/interval_coverage.py.

    New rows are the points of its grid, and calibration rows are drawn from them.
    """
    pimeter.regression.nearness.RandomForestRegressor = Forest
    kind, aim = KINDS[cell.name], {**cell.settings, "confidence_level": cell.p}
    new, probability = grid()
    each = 1 if kind.outputs > 1 else 20
    # Of rows too heavy for the calibration rows nothing is guaranteed, so p less their fraction is.
    guaranteed = (
        cell.p if kind.has_shift else on_the_page(cell.m, cell.p, cell.settings["tails"], in_folds=bool(kind.cv))
    )
    values = []
    for _ in range(max(1, n // each)):
        X = new[rng.choice(len(new), (2 if kind.learns and kind.cv is None else 1) * cell.m, p=probability)]
        y = cell.noise.sample(rng, (len(X), max(each, kind.outputs))) * kind.scale(X)[:, None]
        model = trained(kind, X, y, **aim)
        coverage, level, _, _ = covered(kind, cell.noise, cell.m, model)
        assert kind.has_shift or np.isclose(level, guaranteed)
        values.append(coverage.mean() + (cell.p - level if kind.has_shift else 0.0))
        Remembers.memory.clear()
    found = Found()
    setting = ", ".join(f"{name}={value!r}" for name, value in cell.settings.items())
    found.means(
        cell.name,
        setting,
        guaranteed,
        np.array(values),
        variance=cell.variance / 3,
        each=each,
        most=1.0 + kind.has_shift,
    )
    return found


_LINEAR = pm.QuantileWidth(LinearQuantiles(alpha=0))
KINDS = {
    'width="scaled"': Kind("", pm.ScaledWidth(Ridge()), slope_scale, 0, learns=True),
    'width="local"': Kind("", pm.LocalWidth(nearness="kernel"), slope_scale, 0, learns=True),
    'width="quantile"': Kind("", _LINEAR, slope_scale, 0, learns=True),
    'width="auto"': Kind("", pm.AutoWidth([pm.ScaledWidth(Ridge()), _LINEAR]), slope_scale, 0, learns=True),
    "cv": Kind("", "constant", slope_scale, 0, cv=5),
    'cv, width="scaled"': Kind("", pm.ScaledWidth(Ridge()), slope_scale, 0, learns=True, cv=5),
    "importance_weight": Kind("", "constant", slope_scale, 0, has_shift=True),
    "joint=True": Kind("", "constant", slope_scale, 0, learns=True, outputs=3),
}

CENTRES = np.array([[0.0, 0.0], [1.5, 0.0], [0.0, 2.0]])
PRIOR = np.array([0.6, 0.3, 0.1])


def probabilities(X: np.ndarray) -> np.ndarray:
    """Of an overconfident classifier."""
    return softmax(2.0 * (X @ CENTRES.T - (CENTRES**2).sum(axis=1) / 2) + np.log(PRIOR), axis=1)


def coarse(X: np.ndarray) -> np.ndarray:
    """Probabilities in steps of .2: most scores are equal."""
    steps = np.round(5 * probabilities(X)) + 0.1
    return steps / steps.sum(axis=1, keepdims=True)


def sets(cell: Cell, rng: np.random.Generator, n: int) -> Found:
    """Sets of classes, on new rows: for all, each class and each category."""
    settings = dict(cell.settings)
    by, ties = settings.pop("by", None), cell.noise.has_ties
    values: dict[tuple[float, str], list[float]] = {}
    for _ in range(n):
        parts = (cell.m, 150)
        drawn = []
        for size in parts:
            y = rng.choice(3, size, p=PRIOR)
            drawn.append((CENTRES[y] + rng.normal(size=(size, 2)), y, rng.choice(2, size, p=[0.7, 0.3])))
        (X, y, kind), (new, true, new_kind) = drawn
        settings["by"] = "class" if by == "class" else None
        model = pm.SetClassifier(coarse if ties else probabilities, confidence_level=cell.p, random_state=0, **settings)
        given = by == "category"
        model.calibrate(X, y, by=kind if given else None)
        groups = {"class": true, "category": new_kind}.get(str(by), np.zeros(len(true), int))
        for p in (cell.p, 0.7) if given else (cell.p,):
            hits = model.predict_set(new, p, by=new_kind if given else None)[np.arange(len(true)), true]
            for group in np.unique(groups):
                values.setdefault((p, f"{by} {group}" if by else "all"), []).append(float(hits[groups == group].mean()))
    found = Found()
    name = {"class": 'sets, by="class"', "category": "sets, by=column"}.get(str(by), "sets")
    text = ", ".join(f"{key}={value!r}" for key, value in settings.items() if key != "by")
    for (p, group), fractions in values.items():
        wide = cell.variance + cell.p * (1 - cell.p) / 40
        setting = f"{text}, {group}" if p == cell.p else f"{text}, {group}, asked for {p}"
        found.means(name, setting, p, np.array(fractions), variance=wide)
        if settings.get("randomized") and by is None and not ties:
            m = cell.m - (cell.m // 5 if settings["conformity_score"] == "raps" else 0)
            guaranteed = 1 - cell.p - 1 / (m + 1)
            found.means("sets, randomized", text, guaranteed, 1 - np.array(fractions), variance=wide)
    return found


def sets_at_hand(cell: Cell, rng: np.random.Generator, n: int) -> Found:
    """One class with scores that are uniform numbers, so that coverage is the limit itself."""
    hits = np.empty(n, bool)
    for i in range(n):
        score = rng.uniform(size=(cell.m, 1))
        model = pm.SetClassifier(
            lambda X: np.hstack([1 - X, X]), confidence_level=cell.p, guarantee="training-conditional"
        )
        hits[i] = model.calibrate(score, np.zeros(cell.m, int)).limit_ >= cell.p
    found = Found()
    found.fractions('sets, guarantee="training-conditional"', "lac", 0.95, hits)
    return found


def sets_in_folds(cell: Cell, rng: np.random.Generator, n: int) -> Found:
    """CV+ for classes, with a model that learns."""
    from sklearn.naive_bayes import GaussianNB

    values, guaranteed = np.empty(n), on_the_page(cell.m, cell.p, in_folds=True)
    for i in range(n):
        y, true = rng.choice(3, cell.m), rng.choice(3, 100)
        X = CENTRES[y] + rng.normal(size=(cell.m, 2))
        new = CENTRES[true] + rng.normal(size=(100, 2))
        model = pm.SetClassifier(GaussianNB(), confidence_level=cell.p, cv=5, random_state=0).fit(X, y)
        values[i] = model.predict_set(new)[np.arange(100), true].mean()
        assert np.isclose(model.guaranteed_level_, guaranteed)
    found = Found()
    found.means("sets, cv", "lac", guaranteed, values, variance=cell.variance)
    return found


def shifted_sets(cell: Cell, rng: np.random.Generator, n: int) -> Found:
    """Sets for classes of other frequencies than those of the calibration rows, in a known ratio."""
    shifted = PRIOR[::-1]
    values = np.empty(n)
    for i in range(n):
        y, true = rng.choice(3, cell.m, p=PRIOR), rng.choice(3, 150, p=shifted)
        score, new = (probabilities(CENTRES[labels] + rng.normal(size=(len(labels), 2))) for labels in (y, true))
        made = label_shift_sets(y, score, new, shifted / PRIOR, confidence_level=cell.p, labels=[0, 1, 2])
        values[i] = made[np.arange(150), true].mean()
    found = Found()
    found.means("label_shift_sets", "known ratio", cell.p, values, variance=cell.variance + cell.p * (1 - cell.p) / 40)
    return found


def controlled(cell: Cell, rng: np.random.Generator, n: int) -> Found:
    """Precision and recall of the threshold that a controller chooses; scores are uniform, and calibrated."""
    metric, hits = str(cell.settings["metric"]), np.empty(n, bool)
    for i in range(n):
        score = rng.uniform(size=cell.m)
        control = pm.RiskController(metric, 0.8, confidence_level=cell.p).fit(rng.uniform(size=cell.m) < score, score)
        t = float(np.clip(control.threshold_, 0.0, 1.0))
        hits[i] = (1.0 + t) / 2.0 >= 0.8 - 1e-12 if metric == "precision" else 1.0 - t**2 >= 0.8 - 1e-12
    found = Found()
    found.fractions("RiskController", metric, cell.p, hits)
    return found


def quantile_ranges(cell: Cell, rng: np.random.Generator, n: int) -> Found:
    """Ranges of the true quantile, from the ranks of two errors."""
    parts = []
    true = float(cell.noise.distribution.ppf(cell.p))
    if cell.noise.has_ties:
        values = np.arange(-40, 41) * 0.5
        true = float(values[np.searchsorted(np.cumsum(cell.noise.within(values, values)), cell.p - 1e-12)])
    for k in batches(cell, n):
        found = Found()
        neuron = pm.QuantileNeuron(cell.p).fit(cell.noise.sample(rng, (cell.m, k)))
        low, high = np.atleast_2d(neuron.quantile_range_).T
        if neuron.quantile_range_level_ > 0:
            found.fractions("quantile_range_", "", neuron.quantile_range_level_, (low <= true) & (true <= high))
        parts.append(found)
    return gathered(parts)


def quantiles(cell: Cell, rng: np.random.Generator, n: int) -> Found:
    """What holds of the neuron's quantile for every sample."""
    levels = np.linspace(0.0, 1.0, 101)
    found = Found()
    x = cell.noise.sample(rng, (cell.m, n))
    q = np.asarray(pm.quantile(x, levels, axis=0))
    bracket = 0.75 * np.sqrt(levels * (1 - levels) / (cell.m + 1))
    low, high = (np.quantile(x, np.clip(levels + s * bracket, 0, 1), axis=0, method="hazen") for s in (-1, 1))
    tiny = 1e-9 * np.abs(x).max(axis=0)
    near = ((q >= low - tiny) & (q <= high + tiny)).all(axis=0)
    found.bounds("quantile", "never crosses", (np.diff(q, axis=0) >= 0).all(axis=0))
    found.bounds("quantile", "within the sample", ((q >= x.min(axis=0)) & (q <= x.max(axis=0))).all(axis=0))
    found.bounds("quantile", "within 3/4 of a standard error of Hazen's", near)
    return found


def streams(cell: Cell, rng: np.random.Generator, n: int) -> Found:
    """The bound of a fixed step: errors of one distribution, in drift, and of an opponent who sees the weight."""
    series: dict[str, list[bool]] = {"drawn": [], "drift": [], "opponent": []}
    for name, held in series.items():
        for _ in range(n):
            eta, top = 10.0 ** rng.uniform(-2, 0.5), 10.0 ** rng.uniform(-3, 3)
            neuron = pm.OnlineNeuron(cell.p, learning_rate=eta * top)
            drawn = np.abs(cell.noise.sample(rng, (cell.m + 1,)))
            if name == "drift":
                drawn = drawn * np.exp(np.cumsum(rng.normal(scale=0.2, size=cell.m + 1)))
            errors = np.clip(drawn / 10.0, 0.0, 1.0) * top
            neuron.learn_one(errors[0])
            inside = 0
            for error in errors[1:]:
                weight = neuron.quantile_
                given = error if name != "opponent" else min(max(weight * (1 + 1e-9) + 1e-12 * top, 0.0), top)
                inside += given <= weight
                neuron.learn_one(given)
            held.append(abs(inside / cell.m - cell.p) <= (1 + eta) / (eta * cell.m) + 1e-12)
    found = Found()
    for name, held in series.items():
        found.bounds("OnlineNeuron(learning_rate=eta)", name, np.array(held))
    return found


def forecasts(cell: Cell, rng: np.random.Generator, n: int) -> Found:
    """Cones of a random walk whose steps grow fivefold: nothing is guaranteed."""
    h, found = 5, Found()
    fractions: dict[str, list[float]] = {"fit, steady": [], "fit, drift": [], "update, drift": [], "joint, steady": []}
    for i, (name, values) in enumerate(fractions.items()):
        for _ in range(n):
            steps = cell.noise.sample(rng, (2 * cell.m + h,))
            steps = steps * np.linspace(1, 5, len(steps)) if "drift" in name else steps
            windows = np.lib.stride_tricks.sliding_window_view(np.cumsum(steps), h + 1)
            true, said = windows[:, 1:], np.repeat(windows[:, :1], h, axis=1)
            cone = pm.ForecastIntervals(cell.p, joint=i == 3).fit(true[: cell.m], said[: cell.m])
            inside = []
            for t in range(cell.m + h, len(true), h):
                if name.startswith("update"):
                    cone.update(true[t - 2 * h + 1 : t - h + 1], said[t - 2 * h + 1 : t - h + 1])
                low, high = np.moveaxis(cone.predict_interval(said[t : t + 1])[0], 1, 0)
                hit = (low <= true[t]) & (true[t] <= high)
                inside.append(hit.all() if cone.joint else hit.mean())
            values.append(float(np.mean(inside)))
        found.nothing("ForecastIntervals", name, np.array(values))
    return found


def sketches(cell: Cell, rng: np.random.Generator, n: int) -> Found:
    """Levels of sketched quantiles: parts of a stream in drift, in order or not, merged in random order."""
    held: list[bool] = []
    size, levels = 64, np.linspace(0.01, 0.99, 99)
    for i in range(n):
        x = cell.noise.sample(rng, (cell.m,)) + (np.linspace(0, 5, cell.m) if i % 2 else 0.0)
        x = np.sort(x) if i % 3 == 0 else x
        x = np.sinh(300.0 * np.arctan(x)) if i % 5 == 0 else x  # over 200 orders of magnitude on either side of 0
        parts = [pm.QuantileSketch(size).update(part) for part in np.array_split(x, 7)]
        whole = parts[0]
        for j in rng.permutation(np.arange(1, 7)):
            whole = whole.merge(parts[j])
        q = whole.quantile(levels)
        x = np.sort(x)
        below, above = (np.searchsorted(x, q, side) / cell.m for side in ("left", "right"))
        off = np.maximum(below - levels, levels - above)
        held.append(bool(off.max() <= (4.0 if cell.noise.has_ties else np.pi) / size))
    found = Found()
    found.bounds("QuantileSketch", f"size {size}", np.array(held))
    return found


def enumerated(cell: Cell, rng: np.random.Generator, n: int) -> Found:  # noqa: ARG001
    """By enumeration: all counts of right answers, all rates on a grid."""
    rates = (np.arange(1000) + 0.5) / 1000
    found = Found()
    y = np.arange(cell.m) % 2
    for method in ("clopper-pearson", "wilson"):
        coverage = np.zeros(len(rates))
        for right in range(cell.m + 1):
            score = np.where((np.arange(cell.m) < right) == y, 0.75, 0.25)
            one = pm.classification_uncertainty(y, score, method=method, metrics="accuracy", confidence_level=cell.p)
            inside = (one.lower["accuracy"] <= rates) & (rates <= one.upper["accuracy"])
            coverage += np.where(inside, stats.binom.pmf(right, cell.m, rates), 0.0)
        if method == "wilson":
            found.bounds("wilson", "mean over rates", np.array([coverage.mean() >= cell.p - 0.01]))
        else:
            found.bounds("clopper-pearson", "each rate", coverage >= cell.p - 1e-9)
    return found


def metrics(cell: Cell, rng: np.random.Generator, n: int) -> Found:
    """Bootstrap, calibrated scores, and some labels: measured, not proven."""
    method = str(cell.settings["method"])
    truth = 0.5 + 1.0 / np.pi  # accuracy: mean of max(q, 1 - q) for Beta(1/2, 1/2)
    hits = []
    for i in range(n):
        q, q_more = rng.beta(0.5, 0.5, size=(2, cell.m))
        y, y_more = (rng.uniform(size=cell.m) < part for part in (q, q_more))
        more: dict[str, object] = {}
        labels, score = y.astype(float), q
        if method == "calibrated":
            labels, more["calibration"] = None, (y_more, q_more)
        elif method == "prediction-powered":
            labels, score = np.concatenate([labels, np.full(cell.m, np.nan)]), np.concatenate([q, q_more])
        one = pm.classification_uncertainty(
            labels, score, method=method, metrics=["accuracy"], confidence_level=cell.p, random_state=i, **more
        )
        hits.append(one.lower["accuracy"] <= truth <= one.upper["accuracy"])
    found = Found()
    found.fractions("bootstrap, calibrated, prediction-powered", method, cell.p - 0.03, np.array(hits))
    return found


def cells() -> list[Cell]:
    """All cells, those of a guarantee one after the other."""
    found = [
        Cell("split", split, noise, m, p, enough(m, p, 20_000), {"tails": "symmetric", "guarantee": "marginal"})
        for noise, m, p in product(ALL_NOISES, LENGTHS, LEVELS)
    ]
    others = [(tails, guarantee) for tails, guarantee in product(TAILS, GUARANTEES)][1:]
    for (i, (m, p)), (j, (tails, guarantee)) in product(enumerate(product(LENGTHS, LEVELS)), enumerate(others)):
        n_cuts = 2 if tails == "equal" else 1
        if (
            guarantee == "training-conditional"
            and not rank_guarantee(
                m / 2 if tails == "sided" else m, p, kind="training-conditional", n_cuts=n_cuts
            ).is_enough
        ):
            continue  # nothing is guaranteed
        n = min(40_000, 4_000_000 // m) if guarantee == "training-conditional" else enough(m, p, 10_000)
        found.append(
            Cell(
                "split", split, ALL_NOISES[(i + j) % len(ALL_NOISES)], m, p, n, {"tails": tails, "guarantee": guarantee}
            )
        )
    normal, t2, skewed, uniform, ties, cauchy, lognormal, three = ALL_NOISES
    some = tuple(product((10, 100), (0.5, 0.9, 0.95)))
    found += [Cell("y_min", cut, noise, m, p, enough(m, p, 5000)) for noise in (skewed, uniform) for m, p in some]
    found += [Cell("update", updated, noise, m, p, enough(m, p, 5000)) for noise in (t2, ties) for m, p in some]
    found += [Cell("distribution", distribution, noise, m, p, 5000) for noise in ALL_NOISES for m, p in some]
    found += [
        Cell("rows_needed", rows_needed, noise, pm.rows_needed(p, within), p, 20_000, {"within": within})
        for noise in (normal, lognormal, ties)
        for p, within in ((0.5, 0.1), (0.8, 0.1), (0.9, 0.05), (0.95, 0.03), (0.99, 0.02))
    ]
    found += [
        Cell("grouped", grouped, noise, m, p, enough(m, p, 5000), {"tails": tails, "guarantee": guarantee})
        for noise in ALL_NOISES
        for (m, p), (tails, guarantee) in zip(
            product((10, 60), (0.5, 0.9)),
            (
                ("symmetric", "marginal"),
                ("equal", "approximate"),
                ("symmetric", "approximate"),
                ("equal", "marginal"),
            ),
            strict=True,
        )
    ]
    found += [
        Cell("overlapping", overlapping, noise, m, p, 1000)
        for noise, m, p in product((normal, lognormal, ties), (80, 200), (0.8, 0.9))
    ]
    found += [
        Cell("thin combination", thin_combination, noise, m, p, 1000)
        for noise, (m, p) in product((normal, ties), ((60, 0.95), (100, 0.9), (400, 0.95)))
    ]
    found += [
        Cell("new groups", new_groups, noise, m, p, 6000)
        for noise, m, p in product((normal, t2, ties), (10, 60), (0.8, 0.95))
    ]
    found += [Cell("small", small_categories, noise, 5, 0.8, 2000) for noise in ALL_NOISES]
    for name, n in (
        ('width="scaled"', 4000),
        ('width="local"', 800),
        ('width="quantile"', 800),
        ('width="auto"', 400),
        ("cv", 4000),
        ('cv, width="scaled"', 800),
        ("importance_weight", 8000),
        ("joint=True", 800),
    ):
        tails = TAILS[:2] if name != "importance_weight" else TAILS[:1]
        found += [
            Cell(name, shaped, noise, m, p, n, {"tails": tail})
            for (noise, m), p, tail in product(((t2, 20), (ties, 20), (lognormal, 100)), (0.8, 0.9), tails)
        ]
    for score, by in (("lac", None), ("aps", None), ("raps", None), ("lac", "class"), ("aps", "category")):
        found += [
            Cell("sets", sets, noise, m, p, 2000, {"conformity_score": score, **more, **({"by": by} if by else {})})
            for (noise, m), p in product(((normal, 30), (normal, 150), (ties, 30)), (0.5, 0.8, 0.95))
            for more in ([{}] if score == "lac" else [{}, {"randomized": True}])
        ]
    found += [Cell("sets at hand", sets_at_hand, uniform, m, p, 4000) for m, p in ((60, 0.9), (100, 0.95), (300, 0.99))]
    found += [Cell("sets in folds", sets_in_folds, normal, 60, p, 300) for p in (0.8, 0.95)]
    found += [Cell("shifted sets", shifted_sets, normal, m, p, 2000) for m, p in product((30, 150), (0.8, 0.95))]
    found += [
        Cell("controlled", controlled, uniform, m, p, 2000, {"metric": metric})
        for metric, m, p in product(("precision", "recall"), (50, 400), (0.8, 0.95))
    ]
    found += [
        Cell("quantile ranges", quantile_ranges, noise, m, p, 20_000)
        for noise, m, p in product(ALL_NOISES, (3, 20, 200, 2000), (0.5, 0.95))
    ]
    found += [
        Cell("quantiles", quantiles, noise, m, 0.5, min(2000, 200_000 // m))
        for noise, m in product(ALL_NOISES, (2, 10, 100, 1000))
    ]
    found += [
        Cell("streams", streams, noise, m, p, 60)
        for noise, m, p in product((normal, cauchy, three), (1, 30, 1000), (0.5, 0.95, 0.999))
    ]
    found += [Cell("forecasts", forecasts, noise, 300, 0.9, 40) for noise in (normal, t2)]
    found += [Cell("sketches", sketches, noise, m, 0.5, 60) for noise, m in product(ALL_NOISES, (1000, 20_000))]
    found += [Cell("enumerated", enumerated, uniform, m, p, 1) for m, p in product((10, 30, 100), (0.8, 0.95, 0.99))]
    found += [
        Cell("metrics", metrics, uniform, m, p, 500, {"method": method})
        for method, m, p in product(("bootstrap", "calibrated", "prediction-powered"), (100, 400), (0.8, 0.95))
    ]
    return found


def quick_cells() -> list[Cell]:
    """A few small ones of each kind."""
    kinds: dict[str, list[Cell]] = {}
    for cell in cells():
        if cell.m <= 1000:
            few = cell.m < cell.p / (1.0 - cell.p)
            kinds.setdefault(f"{cell.name} {cell.settings} {few}", []).append(cell)
    return [some[len(some) // 3] for some in kinds.values()]


def turn(cell: Cell, number: int, n: int) -> Found:
    """Some calibrations of a cell, the same whenever this turn is taken."""
    warnings.simplefilter("ignore", pm.CoverageWarning)
    return cell.simulate(cell, np.random.default_rng([SEED, number, *cell.key.encode()]), n)


def numbered_turn(index: int, number: int) -> tuple[int, int, Found]:
    """By number, so that each process makes its own cells."""
    cell = all_cells()[index]
    return index, number, turn(cell, number, n_in_turn(cell, number))


def n_in_turn(cell: Cell, number: int) -> int:
    """Calibrations of one turn."""
    return cell.calibrations * (number + 1) // TURNS - cell.calibrations * number // TURNS


all_cells = cache(cells)


@dataclass
class State:
    """Which turns are taken, what they found, and the sessions in which."""

    path: Path
    turns: dict[str, list[int]] = field(default_factory=dict)
    found: dict[str, Found] = field(default_factory=dict)
    sessions: list[Origin] = field(default_factory=list)

    @classmethod
    def kept(cls) -> State:
        sources = [
            Path(__file__),
            Path(__file__).with_name("interval_coverage.py"),
            *sorted(Path(pm.__file__).parent.rglob("*.py")),
        ]
        code = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]
        state = cls(PARTS / f"simulate_{code}.json")
        if state.path.exists():
            held = json.loads(state.path.read_text())
            state.sessions = [Origin(**one) for one in held["sessions"]]
            for key, (turns, rows) in held["cells"].items():
                state.turns[key] = turns
                state.found[key] = Found({(name, setting): Tally(*rest) for name, setting, *rest in rows})
        state.sessions = joined(state.sessions, origin(__file__))
        return state

    def add(self, cell: Cell, number: int, found: Found) -> None:
        self.turns.setdefault(cell.key, []).append(number)
        self.found[cell.key] = gathered([self.found.get(cell.key, Found()), found])

    def save(self) -> None:
        cells = {
            key: [turns, [[*names, *vars(tally).values()] for names, tally in self.found[key].tallies.items()]]
            for key, turns in self.turns.items()
        }
        write({self.path: json.dumps({"sessions": [asdict(one) for one in self.sessions], "cells": cells})})


def simulated(minutes: float, jobs: int) -> State:
    """Take turns until the time is over."""
    end = time.monotonic() + 60.0 * minutes
    state = State.kept()
    every = all_cells()
    work = [
        (i, number)
        for number in reversed(range(TURNS))  # the last turn has what is left of few calibrations
        for i, cell in enumerate(every)
        if n_in_turn(cell, number) and number not in state.turns.get(cell.key, [])
    ]
    with ProcessPoolExecutor(jobs, get_context("spawn")) as processes:
        waiting = {processes.submit(numbered_turn, *one) for one in work[: 4 * jobs]}
        rest = iter(work[4 * jobs :])
        saved = time.monotonic()
        done = 0
        while waiting:
            for future in as_completed(waiting):
                waiting.discard(future)
                index, number, found = future.result()
                state.add(every[index], number, found)
                done += 1
                following = next(rest, None) if time.monotonic() < end else None
                if following is not None:
                    waiting.add(processes.submit(numbered_turn, *following))
                break
            if time.monotonic() - saved > 20.0:
                state.save()
                saved = time.monotonic()
                print(f"\r{done} of {len(work)} turns", end="", flush=True)
    state.save()
    print(f"\r{done} of {len(work)} turns")
    return state


@dataclass(frozen=True)
class Row:
    """One guarantee in one cell."""

    name: str
    setting: str
    cell: Cell
    tally: Tally
    adjusted: float
    power: float


@dataclass(frozen=True)
class Whole:
    """One guarantee in all its cells."""

    rows: list[Row]
    adjusted: float
    power: float


def tested(found: list[tuple[Cell, Found]]) -> dict[str, Whole]:
    """All tests by guarantee, with p-values after Holm's correction and their power."""
    flat = [(name, setting, cell, tally) for cell, f in found for (name, setting), tally in f.tallies.items()]
    p_values: dict[object, float] = {i: one[3].p_value for i, one in enumerate(flat) if one[3].kind != "none"}
    errors = {}
    for name in dict.fromkeys(one[0] for one in flat):
        cells_: dict[str, list[Tally]] = {}
        for other, _, cell, tally in flat:
            if other == name and tally.kind in {"mean", "fraction"} and not cell.noise.has_ties:
                cells_.setdefault(cell.key, []).append(tally)
        if cells_:
            weight = np.array([np.mean([t.weight for t in some]) for some in cells_.values()])
            margin = np.array([np.mean([t.mean - t.guaranteed for t in some]) for some in cells_.values()])
            error = np.array([np.mean([t.deviation / t.n**0.5 for t in some]) for some in cells_.values()])
            errors[name] = max(float(np.sum((weight * error) ** 2) ** 0.5 / weight.sum()), 1e-12)
            p_values[name] = float(stats.norm.cdf(weight @ margin / weight.sum() / errors[name]))
    assert not np.isnan(list(p_values.values())).any(), "NaN has no place in Holm's order"
    adjusted, largest = {}, 0.0
    for rank, key in enumerate(sorted(p_values, key=lambda key: p_values[key])):
        largest = adjusted[key] = max(largest, min(1.0, (len(p_values) - rank) * p_values[key]))
    level = FAMILY / max(len(p_values), 1)
    wholes = {}
    for name in dict.fromkeys(one[0] for one in flat):
        rows = [
            Row(*one, adjusted.get(i, np.nan), one[3].power(level) if one[3].kind in {"mean", "fraction"} else np.nan)
            for i, one in enumerate(flat)
            if one[0] == name
        ]
        power = float(stats.norm.cdf(SHORTFALL / errors[name] + stats.norm.ppf(level))) if name in errors else np.nan
        wholes[name] = Whole(rows, adjusted.get(name, np.nan), power)
    return wholes


def rejected(wholes: dict[str, Whole]) -> list[str]:
    """Guarantees that a test rejects, in one cell or in all."""
    return [
        name
        for name, whole in wholes.items()
        if whole.adjusted <= FAMILY or any(row.adjusted <= FAMILY for row in whole.rows)
    ]


def summary(wholes: dict[str, Whole], turns: float) -> str:
    """The table of guarantees."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("pimeter", "numpy", "scipy", "scikit-learn"))
    every = [row for whole in wholes.values() for row in whole.rows]
    drawn: dict[str, int] = {}
    for row in every:  # the same calibrations are behind several guarantees of a cell
        drawn[row.cell.key] = max(drawn.get(row.cell.key, 0), row.tally.calibrations)
    n_tests = sum(row.tally.kind != "none" for row in every) + sum(not np.isnan(w.adjusted) for w in wholes.values())
    broken = rejected(wholes)
    revised = "; ".join(f"{name}: {what}" for name, what in REVISED.items())
    head = f"""# Are the guarantees kept?

`python benchmarks/simulate.py`, seed {SEED}; {versions}, Python {platform.python_version()}.

**{sum(drawn.values()):,} simulated calibrations** in {len(drawn):,} cells, {turns:.0%} of what a full run takes;
{n_tests:,} tests at a family error of {FAMILY:g} (Holm). **Guarantees rejected: {", ".join(broken) or "none"}.**

What is tested, and how, is said in `benchmarks/simulate.py`; what is guaranteed, in
[the docs](../../docs/guarantees.md);
`simulate.csv` has a line for each cell. *Margin*: mean of what was found minus what is guaranteed, over all cells, and
the least of a cell; chance alone makes some negative. *Power*: to notice coverage .005 short, of the test of all cells
together and, median, of one cell; a bound that always holds has none. The same calibrations serve several guarantees.

Guarantees that were changed after a run had rejected them, and are tested on the same draws since:
{revised}.

| guarantee | m | levels | cells | calibrations | margin | least | p, all cells | p, least | power | of a cell |
|---|---|---|---|---|---|---|---|---|---|---|"""
    lines = [head]
    for name, whole in wholes.items():
        some = [row for row in whole.rows if row.tally.kind != "none"]
        rows, levels = ({getattr(row.cell, what) for row in whole.rows} for what in ("m", "p"))
        where = f"{min(rows):,} to {max(rows):,} | {min(levels):g} to {max(levels):g}"
        calibrations = sum({row.cell.key: row.tally.calibrations for row in whole.rows}.values())
        where = f"| {name} | {where} | {len({row.cell.key for row in whole.rows}):,} | {calibrations:,} |"
        if not some:
            means = ", ".join(f"{row.setting} ({row.cell.noise.name}) {row.tally.mean:.2f}" for row in whole.rows)
            lines.append(f"{where} nothing is guaranteed: {means} | | | | | |")
            continue
        margins = [row.tally.mean - row.tally.guaranteed for row in some]
        usual = np.median([row.power for row in some if not np.isnan(row.power)] or [np.nan])
        power = ["" if np.isnan(p) else f"{p:.2f}" for p in (whole.power, usual)]
        together = "" if np.isnan(whole.adjusted) else f"{whole.adjusted:.2g}"
        least = f"{min(row.adjusted for row in some):.2g}"
        lines.append(
            f"{where} {np.mean(margins):+.4f} | {min(margins):+.4f} | {together} | {least} | {' | '.join(power)} |"
        )
    return "\n".join([*lines, ""])


def table(wholes: dict[str, Whole]) -> str:
    """All cells as lines of a file."""
    lines = ["guarantee,setting,errors,m,p,test,guaranteed,mean,deviation,values,calibrations,p_value,holm,power"]
    for row in (row for whole in wholes.values() for row in whole.rows):
        t, cell = row.tally, row.cell
        names = ",".join(f'"{text.replace(chr(34), chr(39))}"' for text in (row.name, row.setting, cell.noise.name))
        numbers = f"{t.guaranteed:.6g},{t.mean:.6g},{t.deviation:.3g},{t.n},{t.calibrations}"
        lines.append(f"{names},{cell.m},{cell.p},{t.kind},{numbers},{t.p_value:.3g},{row.adjusted:.3g},{row.power:.3g}")
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few calibrations and cells, nothing saved")
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after so long; a later run goes on")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    arguments = parser.parse_args()
    if arguments.quick:
        print(summary(tested([(cell, turn(cell, 0, min(cell.calibrations, 20))) for cell in quick_cells()]), 0.0))
        print("Nothing saved.")
        return
    state = simulated(arguments.minutes, arguments.jobs)
    every = all_cells()
    taken = sum(map(len, state.turns.values())) / sum(n_in_turn(cell, t) > 0 for cell in every for t in range(TURNS))
    wholes = tested([(cell, state.found[cell.key]) for cell in every if cell.key in state.found])
    text = summary(wholes, taken)
    save(__file__, {".md": text, ".csv": table(wholes)}, earlier=state.sessions)
    print(text)


if __name__ == "__main__":
    main()
