"""`QuantileSketch`: a summary of bounded size of a stream."""

from __future__ import annotations

import math
import struct
import zlib
from typing import TYPE_CHECKING, Self

import numpy as np

from pimeter._kernels.arguments import LARGEST_COUNT, check_counts
from pimeter.arrays import real_array
from pimeter.quantiles import quantile
from pimeter.validation import quantile_levels

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pimeter.protocols import Array, Index

LARGEST_VALUE = 1e300  # absolute value and weight: sums and differences stay finite
MAGIC, VERSION = b"PIMQ", 1
HEADER = struct.Struct("<4sHHIIdd")  # magic, version, is it exact, size, means, smallest, largest; a checksum follows
CHECKSUM = 4  # bytes
UNEVEN = 8.0  # ratio of neighbouring distances from which on a mean no longer stands for the middle of its values
BUFFERED = 4  # times the size: errors that wait to be merged


class QuantileSketch:
    """A summary of bounded size of a stream, for places without an engine: a daily job, a fleet of devices.

    It keeps means of neighbouring errors and how many each stands for, at equal distances on the map of
    `pimeter.bandwidth`: fine towards levels 0 and 1, where quantiles are hard. Up to `size` errors nothing is merged,
    and quantiles are those of `quantile`, with the same weights; later they are interpolated. Where errors differ by
    orders of magnitude, one in the middle of its neighbours stands for them instead of their mean.

    Parameters
    ----------
    size : int, default=2048
        Means that are kept at most; each takes 16 bytes.

    Notes
    -----
    Levels are off by ``pi/size`` at most for up to seven merged parts (``4/size`` where values are tied), by
    ``2 pi/size`` for longer streams and more parts, whatever the spread, order and weights of the errors. That is
    measured, not proven (`benchmarks/sketch_spread.py`): errors chosen to mislead it may do worse. Normal, exponential
    and Cauchy errors were off by .35 ``pi/size`` at most. Levels 0 and 1 are the smallest and the largest error.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter import QuantileSketch
    >>> rng = np.random.default_rng(0)
    >>> days = [QuantileSketch(256).update(rng.standard_normal(10_000)) for _ in range(7)]
    >>> sent = [day.to_bytes() for day in days]
    >>> week = QuantileSketch(256)
    >>> for day in sent:
    ...     week = week.merge(QuantileSketch.from_bytes(day))
    >>> week.count, max(len(day) for day in sent) < 5000, round(float(week.quantile(0.95)), 2)
    (70000.0, True, 1.63)
    """

    def __init__(self, size: int = 2048) -> None:
        if not isinstance(size, int | np.integer) or not 16 <= size <= 2**24:
            msg = f"size must be an integer between 16 and 16,777,216; got {size!r}."
            raise ValueError(msg)
        self.size = int(size)
        # Means and counts: the merged ones, then those that wait. One tuple, so that threads may read at the same time.
        self._parts: tuple[tuple[Array, Array], ...] = ((np.empty(0), np.empty(0)),)
        self._extremes = (math.inf, -math.inf)
        self._is_exact = True  # as long as no two errors became one mean

    @property
    def count(self) -> float:
        """How many errors it has seen, or the sum of their weights."""
        return float(sum(counts.sum() for _, counts in self._parts))

    def update(self, values: ArrayLike, weights: ArrayLike | None = None) -> Self:
        """Add errors.

        Parameters
        ----------
        values : array-like of any shape
            Finite numbers.
        weights : array-like of the same shape, optional
            Counts: 2 equals the value twice, 0 leaves it out.

        Returns
        -------
        QuantileSketch
            The sketch itself.
        """
        x = np.array(real_array("values", values), dtype=np.float64)
        counts = np.ones(x.shape) if weights is None else np.array(real_array("weights", weights), np.float64)
        if counts.shape != x.shape:
            msg = f"weights have shape {counts.shape}, values {x.shape}; give one for each value, in the same shape."
            raise ValueError(msg)
        check_counts(counts)
        x, counts = x[counts > 0.0], counts[counts > 0.0]
        if not ((np.abs(x) <= LARGEST_VALUE) & (counts <= LARGEST_VALUE)).all():
            msg = (
                f"values must be finite, and they and their weights at most {LARGEST_VALUE:g} in size; drop NaN and "
                "infinities first."
            )
            raise ValueError(msg)
        if x.size:
            self._add(x, counts, float(x.min()), float(x.max()))
        return self

    def merge(self, other: QuantileSketch) -> QuantileSketch:
        """A new sketch of what both have seen, as small as the smaller one; neither changes."""
        if not isinstance(other, QuantileSketch):
            msg = f"other must be a QuantileSketch; got a {type(other).__name__}."
            raise TypeError(msg)
        merged = QuantileSketch(min(self.size, other.size))
        for sketch in (self, other):
            for means, counts in sketch._parts:
                if means.size:
                    merged._add(means, counts, *sketch._extremes)
            merged._is_exact = merged._is_exact and sketch._is_exact
        return merged

    def quantile(self, q: ArrayLike) -> Array:
        """Quantiles at levels in [0, 1], in the shape of `q`."""
        levels = quantile_levels("q", q)
        means, counts = self._merged()
        if not means.size:
            msg = "the sketch is empty; update it with errors first."
            raise ValueError(msg)
        cumulative = np.cumsum(counts)
        if self._is_exact:
            return np.asarray(
                quantile(means, levels, weights=counts * (LARGEST_COUNT / max(LARGEST_COUNT, cumulative[-1])))
            )
        level = np.clip((cumulative - counts / 2.0) / cumulative[-1], 0.0, 1.0)
        cell = cumulative[-1] * np.sqrt(level * (1.0 - level)) * (math.pi / self.size)
        half = np.minimum(counts / 2.0, np.maximum(cell, 0.5))  # a value with more than two cells' counts is one value
        stands = np.stack([cumulative - counts + half, cumulative - half], axis=1).ravel()
        at = np.concatenate([[0.0], stands, cumulative[-1:]]) / cumulative[-1]  # else slopes overflow at tiny counts
        known = np.concatenate([self._extremes[:1], np.repeat(means, 2), self._extremes[1:]])
        return np.asarray(np.interp(levels, at, known))

    def to_bytes(self) -> bytes:
        """The sketch as bytes, the same on every machine; no pickle."""
        means, counts = self._merged()
        body = means.astype("<f8").tobytes() + counts.astype("<f8").tobytes()
        header = HEADER.pack(MAGIC, VERSION, self._is_exact, self.size, means.size, *self._extremes)
        return header + zlib.crc32(header + body).to_bytes(CHECKSUM, "little") + body

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The sketch that `to_bytes` wrote; a `ValueError` if these are other bytes, or broken ones."""
        if len(data) < HEADER.size + CHECKSUM or data[:4] != MAGIC:
            msg = f"these {len(data):,} bytes are not a QuantileSketch."
            raise ValueError(msg)
        _, version, is_exact, size, n, low, high = HEADER.unpack_from(data)
        if version != VERSION:
            msg = f"this QuantileSketch has version {version}; this pimeter reads version {VERSION}: update pimeter."
            raise ValueError(msg)
        header, body = bytes(data[: HEADER.size]), bytes(data[HEADER.size + CHECKSUM :])
        checksum = int.from_bytes(data[HEADER.size : HEADER.size + CHECKSUM], "little")
        if len(body) != 16 * n or zlib.crc32(header + body) != checksum or n > size:
            msg = "these bytes of a QuantileSketch are broken: their length or checksum is wrong."
            raise ValueError(msg)
        sketch = cls(size)
        numbers = np.frombuffer(body, "<f8").astype(np.float64)
        sketch._parts, sketch._extremes, sketch._is_exact = ((numbers[:n], numbers[n:]),), (low, high), is_exact == 1
        return sketch

    def _add(self, means: Array, counts: Array, low: float, high: float) -> None:
        self._extremes = (min(self._extremes[0], low), max(self._extremes[1], high))
        self._parts = (*self._parts, (means, counts))
        if sum(waiting.size for waiting, _ in self._parts[1:]) > BUFFERED * self.size:
            self._merged()

    def _merged(self) -> tuple[Array, Array]:
        """Bring all together, and merge what lies in one cell of the map."""
        parts = self._parts
        if len(parts) == 1:
            return parts[0]
        means, counts = (np.concatenate(some) for some in zip(*parts, strict=True))
        order = np.lexsort([counts, means])
        means, counts = means[order], counts[order]
        if means.size > self.size:
            cumulative = np.cumsum(counts)
            level = np.clip((cumulative - counts / 2.0) / cumulative[-1], 0.0, 1.0)
            cell = np.minimum((np.arccos(1.0 - 2.0 * level) * (self.size / math.pi)).astype(np.intp), self.size - 1)
            first = np.flatnonzero(np.diff(cell, prepend=-1))
            means, counts = _merge_cells(means, counts, cumulative, first)
            self._is_exact = False  # before the parts: who reads them next must know
        self._parts = ((means, counts),)
        return means, counts


def _merge_cells(means: Array, counts: Array, cumulative: Array, first: Index) -> tuple[Array, Array]:
    """One value for each cell of sorted means, of which the first ones are given: their mean, or one in their middle.

    The mean is best where values are spread evenly. Where distances differ by orders of magnitude from cell to cell it
    is that of the largest values alone, beyond nearly all of the cell; there the cell keeps the value that has half of
    the counts on either side, which no monotone map of the values would change.
    """
    last = np.append(first[1:], means.size) - 1
    sums = np.add.reduceat(counts, first)
    origin = means[first]  # sums of differences: means of distant errors keep their digits
    lengths = last + 1 - first
    fraction = counts / np.repeat(sums, lengths)
    mean = origin + np.add.reduceat(fraction * (means - np.repeat(origin, lengths)), first)
    middle = np.clip(np.searchsorted(cumulative, cumulative[last] - sums / 2.0), first, last)
    if mean.size == 1:
        return mean, sums
    gaps = np.diff(mean)
    before, after = np.append(gaps[:1], gaps), np.append(gaps, gaps[-1:])
    is_even = np.maximum(before, after) <= UNEVEN * np.minimum(before, after)
    return np.where(is_even, np.clip(mean, origin, means[last]), means[middle]), sums
