"""Exact derivatives: how a change of the four rates changes what is computed from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from pimeter.protocols import Array

# SciPy's differentiate takes finite steps, out of [0, 1] at its edges; here nothing but rounding is lost.


class Series:
    """A value with its first and second derivative, carried through arithmetic: a Taylor series of three terms."""

    __slots__ = ("first", "second", "value")

    def __init__(self, value: float, first: float = 0.0, second: float = 0.0) -> None:
        self.value, self.first, self.second = value, first, second  # f, f' and f'' / 2

    def _of(self, value: float, slope: float, curvature: float) -> Series:
        """A function of this series, from its derivatives at the value."""
        return Series(value, slope * self.first, slope * self.second + 0.5 * curvature * self.first**2)

    def __add__(self, other: Series | float) -> Series:
        b = _series(other)
        return Series(self.value + b.value, self.first + b.first, self.second + b.second)

    def __neg__(self) -> Series:
        return Series(-self.value, -self.first, -self.second)

    def __sub__(self, other: Series | float) -> Series:
        return self + -_series(other)

    def __rsub__(self, other: Series | float) -> Series:
        return _series(other) - self

    def __mul__(self, other: Series | float) -> Series:
        b = _series(other)
        return Series(
            self.value * b.value,
            self.value * b.first + self.first * b.value,
            self.value * b.second + self.first * b.first + self.second * b.value,
        )

    def __truediv__(self, other: Series | float) -> Series:
        return self * (_series(other) ** -1.0)

    def __rtruediv__(self, other: Series | float) -> Series:
        return _series(other) * (self**-1.0)

    def __pow__(self, power: float) -> Series:
        x, n = np.float64(self.value), float(power)
        with np.errstate(all="ignore"):
            slope = n * x ** (n - 1.0) if n else 0.0
            curvature = n * (n - 1.0) * x ** (n - 2.0) if n not in {0.0, 1.0} else 0.0
            return self._of(float(x**n), float(slope), float(curvature))

    def sqrt(self) -> Series:
        """What ``numpy.sqrt`` calls."""
        return self**0.5

    def exp(self) -> Series:
        """What ``numpy.exp`` calls."""
        found = float(np.exp(self.value))
        return self._of(found, found, found)

    def log(self) -> Series:
        """What ``numpy.log`` calls."""
        x = np.float64(self.value)
        with np.errstate(all="ignore"):
            return self._of(float(np.log(x)), float(1.0 / x), float(-1.0 / x**2))

    def __abs__(self) -> Series:
        return -self if self.value < 0.0 else self

    __radd__ = __add__
    __rmul__ = __mul__


def _series(value: Series | float) -> Series:
    return value if isinstance(value, Series) else Series(float(value))


class Derivatives(NamedTuple):
    """Derivatives of a function with respect to each of its arguments."""

    first: Array
    second: Array


def derivatives(function: Callable[..., Any], at: Array) -> Derivatives:
    """First and second derivatives of a function of several numbers with respect to each; NaN where there is none."""
    found = []
    for i in range(len(at)):
        try:
            with np.errstate(all="ignore"):
                one = _series(function(*(Series(float(x), float(i == j)) for j, x in enumerate(at))))
        except TypeError as unknown:
            msg = (
                f"A metric computes something whose derivative is not known ({unknown}). Use + - * / ** and numpy's "
                'sqrt, exp and log, or method="bootstrap".'
            )
            raise TypeError(msg) from unknown
        found.append((one.first, 2.0 * one.second))
    return Derivatives(*np.array(found).T)
