"""Is the error of Appendix A.1, an equality to first order, that of the trained weight?

The paper prints |r_p - w| = sigma_p / (2 c_p rho(r_p)^2), sigma_p being the gradient at which training stops:
sigma_p / (2 c_p) = |F - p| rho(w). F is what the neuron has, the smoothed distribution of the sample. Three densities
are tried: the known one; that estimated from the sample at the weight, for both, which `DescendingNeuron.error_bound_`
has; and for rho(w) the slope of F itself, so that sigma_p is the gradient that is left. With beta = 1000 this is also
small wherever there are no errors within a few thousandths. Neurons as printed learn from absolute normal errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit
from scipy.stats import halfnorm

from experiments.printed import BETA, start, trained
from experiments.protocol import Experiment, Row, Unit
from experiments.theory import LEVEL, Z
from pimeter import quantile

DENSITIES = KNOWN, ESTIMATED, LEFT = "known density", "estimated density", "gradient that is left"
TARGETS = ROOT, TRUTH = "the root", "r_p"
NEAR = 1.25  # a ratio within this factor of 1


@dataclass(frozen=True)
class Settings:
    """Sample lengths, and descents of each."""

    seed: int = 0
    lengths: tuple[int, ...] = (20, 100, 1000, 10_000)
    n_descents: int = 100


QUICK = Settings(lengths=(20, 100), n_descents=5)


def units(settings: Settings) -> list[Unit]:
    """One per sample length."""
    return [(m,) for m in settings.lengths]


def measure(settings: Settings, unit: Unit, rng: np.random.Generator) -> list[Row]:
    """A row for each descent: whether it arrived, weight and root, |F - p| and the slope of F, the estimated error."""
    m = int(unit[0])
    errors = np.abs(rng.standard_normal((m, settings.n_descents)))
    found, arrived, bounds = trained(errors, LEVEL)
    weights = np.where(np.isnan(found), start(LEVEL), found)
    root = np.asarray(quantile(errors, LEVEL, axis=0, beta=BETA))
    at = BETA * (weights - errors)
    held = {
        "arrived": arrived.astype(int),
        "weight": weights,
        "root": root,
        "gap": np.abs(expit(at).mean(axis=0) - LEVEL),
        "slope": BETA * (expit(at) * expit(-at)).mean(axis=0),
        "estimated": bounds,
    }
    return [{"m": m} | {key: column[i].item() for key, column in held.items()} for i in range(len(weights))]


# What the rows say.


def printed(row: Row, density: str) -> float:
    """What the paper prints for the error of a descent."""
    weight, gap = float(row["weight"]), float(row["gap"])
    if density == ESTIMATED:
        return float(row["estimated"])
    slope = float(row["slope"]) if density == LEFT else float(halfnorm.pdf(weight))
    return gap * slope / float(halfnorm.pdf(Z)) ** 2


def ratios(rows: Sequence[Row], density: str, target: str, m: int | None = None) -> list[float]:
    """Quartiles of the distance to the root, or to the true quantile, by what is printed."""
    found = []
    for row in (row for row in rows if m in (None, row["m"])):
        distance = abs(float(row["weight"]) - (float(row["root"]) if target == ROOT else Z))
        value = printed(row, density)
        found.append(distance / value if value else np.inf)
    return [float(one) for one in np.quantile(found, (0.25, 0.5, 0.75), method="inverted_cdf")]


def lengths(rows: Sequence[Row]) -> list[int]:
    """Sample lengths, the shortest first."""
    return sorted({int(row["m"]) for row in rows})


def is_near(ratio: float) -> bool:
    """Whether a ratio is about 1."""
    return 1 / NEAR <= ratio <= NEAR


def tables(rows: Sequence[Row]) -> dict[str, Sequence[Row]]:
    """By target, sample length and density: median and quartiles of the ratio."""
    found: dict[str, Sequence[Row]] = {}
    for target in TARGETS:
        lines: list[Row] = []
        for m in lengths(rows):
            held = [row for row in rows if row["m"] == m]
            line = {"m": m, "descents": len(held), "arrived": sum(int(row["arrived"]) for row in held)}
            lines.append(line | {density: said(ratios(held, density, target)) for density in DENSITIES})
        found[f"Distance to {target} by the printed error, median (quartiles)"] = lines
    return found


def said(quartiles: Sequence[float]) -> str:
    """Median and quartiles in words."""
    low, middle, high = (f"{one:.{2 * (one < 10)}f}" if one < 1000 else f"{one:.0e}" for one in quartiles)
    return f"{middle} ({low} to {high})"


def headline(rows: Sequence[Row]) -> str:
    """How near the ratio is to 1, in one sentence."""
    few, most = min(lengths(rows)), max(lengths(rows))
    parts = [
        f"{said(ratios(rows, KNOWN, target, m))} for {target} at m = {m:,}" for m in (few, most) for target in TARGETS
    ]
    return f"Distance by printed error with the known density, median and quartiles: {'; '.join(parts)}."


def finding(rows: Sequence[Row]) -> str:
    """What that says of the equality."""
    parts = [f"{said(ratios(rows, ESTIMATED, ROOT, m))} at m = {m:,}" for m in lengths(rows)]
    near = [f"{m:,}" for m in lengths(rows) if is_near(ratios(rows, KNOWN, ROOT, m)[1])]
    return (
        f"{headline(rows)} To the root the median is within a factor of {NEAR:g} of 1 at m = "
        f"{', '.join(near) or 'none'}; a descent that stops early is far from where an expansion to first order holds. "
        "The distance to r_p also has the error of the sample, which no gradient knows. With the density that is "
        f"estimated at the weight, for both, the ratio to the root is {'; '.join(parts)}. The gradient that is left is "
        "next to 0 between errors."
    )


EXPERIMENT = Experiment(
    name="theory",
    columns="bound",
    title="the first-order error of Appendix A.1 beside that of the trained weight",
    settings=Settings(),
    quick=QUICK,
    units=units,
    measure=measure,
    tables=tables,
    headline=headline,
    finding=finding,
    unpublished="The paper measures no error of a descent.",
)
