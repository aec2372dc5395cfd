"""The synthetic problem of Table 1 and Figure 2: noise whose scale is 0.2 x^2, and the ideal bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array: TypeAlias = NDArray[np.float64]

LEVEL = 0.95
TAIL_LEVELS = np.array([(1 - LEVEL) / 2, (1 + LEVEL) / 2])
NOISES: dict[str, Any] = {"normal": stats.norm(), "beta": stats.beta(0.2, 0.3)}
CURVES: dict[str, Callable[[Array], Array]] = {
    "sin(x)": lambda x: 0.3 * np.sin(x),
    "sin(pi x)": lambda x: 0.3 * np.sin(np.pi * x),  # what the paper's scripts drew
}


@dataclass(frozen=True)
class Problem:
    """One noise, and the positions where bounds are wanted."""

    noise: str
    curve: str
    positions: Array

    def draw(self, x: Array, rng: np.random.Generator) -> Array:
        """Targets at x."""
        return np.asarray(CURVES[self.curve](x) + 0.2 * x**2 * NOISES[self.noise].rvs(x.shape, random_state=rng))

    def points(self, levels: Array) -> Array:
        """Quantiles of the target at each position, (position, level)."""
        x = self.positions[:, None]
        return np.asarray(CURVES[self.curve](x) + 0.2 * x**2 * NOISES[self.noise].ppf(levels))

    def rmse(self, bounds: Array) -> float:
        """Distance from the ideal bounds."""
        return float(np.sqrt(np.mean((bounds - self.points(TAIL_LEVELS)) ** 2)))

    def coverage(self, bounds: Array) -> float:
        """Fraction of targets inside, exactly, as a mean over positions where there is noise."""
        x = self.positions[:, None]
        noisy = np.abs(self.positions) > 1e-9
        below = NOISES[self.noise].cdf(((bounds - CURVES[self.curve](x)) / (0.2 * x**2 + ~noisy[:, None]))[noisy])
        return float(np.mean(below[:, 1] - below[:, 0]))


def deviation(values: Sequence[float]) -> float:
    """Median absolute deviation from the median."""
    return float(np.median(np.abs(np.array(values) - np.median(values))))
