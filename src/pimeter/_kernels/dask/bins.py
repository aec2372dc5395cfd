"""Bins in which errors are counted: by leading bits at first, then cut into finer ones where a quantile is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

BITS = 14
BINS = 2**BITS  # of the first read
MAX_SMALL = 2**16  # errors of a sample that may as well be brought together
MIN_WIDTH = 5e-324  # of a bin
_SIGN = np.int64(2**63 - 1)


@dataclass(frozen=True)
class Counts:
    """What one read finds for each quantile: numbers add up, and of extremes the outer one stays."""

    below: Array  # (Q,) errors below the bins
    bins: Array  # (Q, bins)
    sums: Array  # (Q, bins) of places within a bin, from 0 to 1
    extremes: (
        Array  # (2, Q, BINS) the smallest error of each bin of the first read, and the largest with its sign changed
    )
    odd: Array  # (Q, 2) NaN and infinite ones
    held: tuple[tuple[Array, Array], ...] = ()  # errors and their counts, of small samples

    def __add__(self, other: Counts) -> Counts:
        """Two parts of the data as one."""
        return Counts(
            self.below + other.below,
            self.bins + other.bins,
            self.sums + other.sums,
            np.minimum(self.extremes, other.extremes),
            self.odd + other.odd,
            tuple(
                (np.concatenate([a, c]), np.concatenate([b, d]))
                for (a, b), (c, d) in zip(self.held, other.held, strict=True)
            ),
        )


@dataclass(frozen=True)
class Task:
    """Quantiles of samples (columns), one for each column and level."""

    levels: tuple[float, ...]
    h: float | None  # the bandwidth, or None for the rule
    reflect: bool
    axes: tuple[int, ...] = (0,)

    def quantiles(self, k: int) -> list[tuple[int, float]]:
        """Column and level of each."""
        return [(column, p) for column in range(k) for p in self.levels]


@dataclass(frozen=True)
class Grid:
    """Bins of one read, cut into finer ones of equal width each."""

    skip: int  # number of the first that is cut
    start: Array  # (cut,)
    width: Array  # (cut,) of their finer bins
    before: NDArray[np.intp]  # (cut + 1,) finer bins up to each of them
    last: Array  # (cut,) the last place in each, in finer bins

    @property
    def stop(self) -> int:
        """Number after the last that is cut."""
        return self.skip + self.start.size

    def places(self, x: Array, bins: NDArray[np.intp]) -> tuple[NDArray[np.intp], Array]:
        """Finer bins of errors that are in these bins, and where in them, from 0 to 1."""
        own = bins - self.skip
        place = (x - self.start.take(own)) / self.width.take(own)
        place = np.minimum(np.maximum(place, 0.0), self.last.take(own))
        integer = place.astype(np.intp)
        return self.before.take(own) + integer, place - integer

    def starts(self) -> tuple[Array, Array]:
        """Where finer bins start, and their widths."""
        n = np.diff(self.before)
        width = np.repeat(self.width, n)
        return np.repeat(self.start, n) + (np.arange(width.size) - np.repeat(self.before[:-1], n)) * width, width

    def means(self, counts: Array, sums: Array) -> tuple[Array, Array]:
        """Mean of the errors in each finer bin, and how many they are."""
        start, width = self.starts()
        counts, sums = counts[: start.size], sums[: start.size]
        return start + width * (sums / np.where(counts > 0.0, counts, 1.0)), counts


def cut(skip: int, start: Array, width: Array, counts: Array, relevant: Array, n_bins: int) -> Grid:
    """Bins that hold errors, cut into so many in all: by errors, by those that are relevant, and by width."""
    used = counts > 0.0
    claims = np.stack([counts, relevant, width / (width.max() or 1.0)]) * (used & (width > MIN_WIDTH))
    claim = (claims / np.maximum(claims.sum(axis=1, keepdims=True), MIN_WIDTH)).mean(axis=0)
    n = used + (claim * (n_bins - np.count_nonzero(used))).astype(np.intp)
    finer = np.maximum(width / np.maximum(n, 1), MIN_WIDTH)
    last = np.nextafter(n.astype(np.float64), 0.0)
    return Grid(skip, start, finer, np.concatenate([[0], np.cumsum(n)]), last)


@dataclass(frozen=True)
class Range:
    """Where to count for one quantile, and what is known of its sample."""

    m: float
    extremes: tuple[float, float]  # of the sample
    n_bins: int
    is_infinite: bool
    is_missing: bool
    low: float = 0.0
    high: float = 0.0
    grids: tuple[Grid, ...] = ()  # of the second read, and of the third
    root: float = math.nan

    @property
    def is_small(self) -> bool:
        """Few enough to be brought together."""
        return self.m <= MAX_SMALL


def codes_of(x: Array) -> NDArray[np.int64]:
    """Bins of equal leading bits, rising with x."""
    bits = (x + 0.0).view(np.int64)
    return np.asarray(((bits ^ ((bits >> 63) & _SIGN)) >> (64 - BITS)) + BINS // 2)
