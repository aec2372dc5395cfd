"""How a neuron sees its sample: a sigmoid of each error, their mean, its slope, and what that says of a quantile."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import betainc

from pimeter import bandwidth
from pimeter._kernels import reference
from pimeter.coverage import ROUNDING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pimeter.protocols import Array

MIN_BEYOND = 5.0  # errors on either side of the quantile, on average, from which on its standard error is known
SATURATION = 40.0  # where the sigmoid of a numeric beta saturates: exp(-40) is nothing beside 1 in floats


def counts_or_empty(counts: Array | None) -> Array:
    """Counts as the kernels want them: no counts are an empty array."""
    return np.empty(0) if counts is None else counts


class Smoother(NamedTuple):
    """The axis on which a neuron measures errors, and how steeply its sigmoid rises there."""

    error_map: reference.Map | None  # None: the errors' own axis
    factor: float  # errors are multiplied by this before they meet the map
    steepness: float  # infinite: a step
    saturation: float  # argument from which on the sigmoid is 0 or 1

    def positions(self, errors: Array) -> Array:
        """Errors as places on the axis."""
        return errors if self.error_map is None else self.error_map.position(errors * self.factor)

    def errors(self, positions: Array) -> Array:
        """Places on the axis as errors."""
        return positions if self.error_map is None else self.error_map.error(positions) / self.factor

    def slope(self, weight: float) -> float:
        """Units of the axis per unit of error."""
        if self.error_map is None:
            return 1.0
        cell = int(np.searchsorted(self.error_map.knots, weight * self.factor, side="right")) - 1
        return float(self.error_map.slopes[min(max(cell, 0), self.error_map.slopes.size - 1)]) * self.factor

    def outputs(self, weight: float, errors: Array) -> Array:
        """Sigmoid of each error: what it adds to the neuron's output."""
        with np.errstate(over="ignore"):
            ahead = self.positions(np.asarray(weight)) - self.positions(errors)
            steep = np.sign(ahead) * self.saturation if math.isinf(self.steepness) else ahead * self.steepness
        # Rounding may leave a little more than 1, and densities would be negative.
        return np.minimum(reference.activation(steep, self.saturation), 1.0)


class SmoothedSample(NamedTuple):
    """The sample of one neuron, sorted, its mirror image before it if it is reflected, and how the neuron sees it."""

    x: Array
    counts: Array | None
    n_mirrored: int
    smoother: Smoother
    automatic: Smoother  # that of beta="auto"

    @classmethod
    def of(cls, errors: NDArray[np.floating], counts: Array | None, beta: float | str, reflect: bool) -> SmoothedSample:
        """Sort, mirror and lay the map on."""
        x = errors.astype(np.float64)
        x, counts = (np.sort(x), None) if counts is None else reference.in_order(x, counts)
        if reflect:
            x = np.concatenate([-x[::-1], x])
            counts = None if counts is None else np.concatenate([counts[::-1], counts])
        factor = bandwidth.safe_factor(max(-x[0], x[-1]))
        error_map = reference.fit_map(factor * x, counts_or_empty(counts))
        steepness = math.inf if error_map is None else 1.0 / error_map.h
        automatic = Smoother(error_map, factor, steepness, bandwidth.SATURATION)
        smoother = automatic if isinstance(beta, str) else Smoother(None, 1.0, float(beta), SATURATION)
        return cls(x, counts, errors.size if reflect else 0, smoother, automatic)

    @property
    def m(self) -> float:
        """Number of errors, mirror images among them."""
        return float(self.x.size if self.counts is None else self.counts.sum())

    def hazen(self, *levels: float) -> Array:
        """Plain quantiles, never below the smallest error of a mirrored sample."""
        plain: Array = reference.hazen(self.x, counts_or_empty(self.counts), np.array(levels))
        bounded: Array = np.maximum(plain, self.x[self.n_mirrored])
        return bounded

    def middle(self) -> float:
        """Halfway between the quartiles of the errors."""
        own = slice(self.n_mirrored, None)
        quartiles = reference.hazen(self.x[own], counts_or_empty(self.counts)[own], np.array([0.25, 0.75]))
        return float(quartiles @ [0.5, 0.5])

    def output(self, weight: float) -> float:
        """Output of the neuron: the smoothed proportion of errors below its weight."""
        return float(np.average(self.smoother.outputs(weight, self.x), weights=self.counts))

    def density(self, weight: float) -> float:
        """Smoothed density of the sample, as sharp as the neuron sees it or as the errors allow."""
        blunter = self.blunter(weight)
        output = blunter.outputs(weight, self.x)
        mean = float(np.average(output * (1.0 - output), weights=self.counts))
        return mean * blunter.steepness * blunter.slope(weight)

    def blunter(self, weight: float) -> Smoother:
        """The neuron's own smoother or that of beta="auto", whichever is less sharp at this weight."""
        return min(self.automatic, self.smoother, key=lambda one: one.steepness * one.slope(weight))

    def standard_error(self, weight: float, level: float) -> float:
        """Standard error of the quantile by ranks or, where the neuron is less sharp than errors allow, of its root.

        NaN with too few errors beyond the quantile, or where that root is the smallest or largest error.
        """
        x, counts = self.x[self.n_mirrored :], None if self.counts is None else self.counts[self.n_mirrored :]
        m = float(x.size if counts is None else counts.sum())
        if m * min(level, 1.0 - level) < MIN_BEYOND - ROUNDING:
            return math.nan
        density = self.density(weight)
        if self.blunter(weight) is self.automatic or density <= 0.0:
            return _standard_error_of_ranks(x, counts, level)
        if not x[0] < weight < x[-1]:
            return math.nan
        output = self.smoother.outputs(weight, self.x)
        if self.n_mirrored:  # an error and its mirror image are one observation
            output = (output[: self.n_mirrored][::-1] + output[self.n_mirrored :]) / 2.0
        variance = np.average((output - np.average(output, weights=counts)) ** 2, weights=counts) / (m - 1.0)
        return math.sqrt(variance) / density

    def ranked(self, *ranks: int) -> Array:
        """Errors of these ranks, integer counts being copies."""
        places = np.array(ranks) - 1
        if self.counts is not None:
            places = np.searchsorted(np.cumsum(self.counts[self.n_mirrored :]), ranks)
        ranked: Array = self.x[self.n_mirrored :][places]
        return ranked


def _standard_error_of_ranks(x: Array, counts: Array | None, level: float) -> float:
    """Standard deviation of errors under the Beta distribution of their ranks (Maritz and Jarrett, Harrell's weights).

    As `scipy.stats.mstats.mjci`, but with counts, and only of the errors that matter.
    """
    edges = np.arange(x.size + 1.0) if counts is None else np.append(0.0, np.cumsum(counts))
    m = edges[-1]
    window = 9.0 * math.sqrt(m * level * (1.0 - level)) + 40.0  # what is farther away is less likely than 1e-15
    first, last = np.searchsorted(edges[1:-1], [m * level - window, m * level + window])
    weights = np.diff(betainc((m + 1.0) * level, (m + 1.0) * (1.0 - level), edges[first : last + 2] / m))
    weights /= weights.sum()
    distance = x[first : last + 1] - weights @ x[first : last + 1]
    unit = float(np.abs(distance).max()) or 1.0  # squares of extreme errors leave the floats
    return unit * math.sqrt(weights @ (distance / unit) ** 2)
