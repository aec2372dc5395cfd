"""The distributions that quantile estimators are judged on.

`TUNING` distributions may be looked at while a rule is shaped (on pilot seeds); `HELD_OUT` distributions are only ever
used to report. The first ten of `TUNING` were fixed before any rule was tuned. The next twelve were held out then;
their worst cells (the centre of a spike, the shoulder of a hump) led to a second round of tuning, before which the
present `HELD_OUT` were written down.

Each distribution knows its sampler and its distribution function, so that exact quantiles of the signed values and of
their absolute values come from one bisection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats
from scipy.optimize import brentq

LENGTHS = (10, 20, 50, 100, 200, 500, 1000)
SIGNED_LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
ABSOLUTE_LEVELS = (0.5, 0.8, 0.9, 0.95)


@dataclass(frozen=True)
class Distribution:
    """A continuous distribution with its sampler."""

    name: str
    sample: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
    cdf: Callable[[float], float]

    def quantiles(self, levels: Sequence[float], absolute: bool) -> np.ndarray:
        """Exact quantiles of the values, or of their absolute values."""
        cdf = (lambda x: self.cdf(x) - self.cdf(-x)) if absolute else self.cdf
        low = 0.0 if absolute else -1e4
        return np.array([brentq(lambda x, p=p: cdf(x) - p, low, 1e4, xtol=1e-14, rtol=1e-14) for p in levels])


def _scipy(name: str, frozen: stats.rv_continuous) -> Distribution:
    return Distribution(name, lambda rng, size: frozen.rvs(size=size, random_state=rng), frozen.cdf)


def _normals(name: str, *parts: tuple[float, float, float]) -> Distribution:
    """A mixture of normals, each part (fraction, mean, sd)."""
    fraction, mean, sd = (np.array(column) for column in zip(*parts, strict=True))

    def sample(rng: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
        part = rng.choice(len(fraction), size=size, p=fraction)
        return mean[part] + sd[part] * rng.standard_normal(size)

    return Distribution(name, sample, lambda x: float(fraction @ stats.norm.cdf(x, mean, sd)))


TUNING = (
    _scipy("normal", stats.norm()),
    _scipy("t3", stats.t(3)),
    _scipy("exponential", stats.expon()),
    _scipy("lognormal", stats.lognorm(1)),
    _scipy("uniform", stats.uniform(-1, 2)),
    _scipy("beta(.2,.3)", stats.beta(0.2, 0.3)),
    _normals("two humps", (0.5, -2, 0.7), (0.5, 2, 0.7)),
    _normals("spiked", (0.7, 0, 1), (0.3, 0.5, 0.05)),
    _scipy("laplace", stats.laplace()),
    _scipy("gumbel", stats.gumbel_r()),
    # Held out in the first round:
    _scipy("logistic", stats.logistic()),
    _scipy("t2.5", stats.t(2.5)),
    _scipy("gamma(2)", stats.gamma(2)),
    _scipy("weibull(.7)", stats.weibull_min(0.7)),
    _scipy("triangular", stats.triang(0.2, -0.2)),
    _scipy("arcsine", stats.beta(0.5, 0.5, -0.5)),
    _normals("uneven humps", (0.3, -3, 0.5), (0.7, 1, 1)),
    _normals("spike at zero", (0.8, 0, 1), (0.2, 0, 0.05)),
    _normals("contaminated", (0.9, 0, 1), (0.1, 0, 5)),
    _scipy("skew normal", stats.skewnorm(4, -0.8)),
    _normals("three humps", (0.3, -3, 0.6), (0.4, 0, 0.6), (0.3, 3, 0.6)),
    _scipy("pareto(4)", stats.lomax(4)),
)
HELD_OUT = (
    _scipy("shifted t4", stats.t(4, 0.3)),
    _scipy("gamma(.5)", stats.gamma(0.5)),
    _scipy("beta(2,5)", stats.beta(2, 5, -0.3)),
    _scipy("inverse gaussian", stats.invgauss(1, -0.5)),
    _scipy("hyperbolic secant", stats.hypsecant()),
    _scipy("semicircle", stats.semicircular()),
    _normals("four humps", (0.1, -4, 0.5), (0.4, -1, 0.5), (0.3, 1.5, 0.4), (0.2, 4, 0.6)),
    _normals("narrow and wide", (0.5, -1, 0.1), (0.5, 1, 0.6)),
    _normals("comb", *((0.2, centre, 0.15) for centre in (-2, -1, 0, 1, 2))),
    _normals("off-centre spike", (0.85, 0, 1), (0.15, 1.2, 0.03)),
    _normals("outliers", (0.95, 0, 1), (0.05, 0, 10)),
    _normals("two spikes", (0.6, 0, 1), (0.2, -0.8, 0.04), (0.2, 0.8, 0.04)),
)
