"""What `measure` asks of dask collections: order statistics, sums, and a random sample of rows, in three reads.

Floats in rising order are integers in rising order, by their bits. Each read counts errors by the next few bits of
those whose first bits are those of an error that is asked for: partial results are counts, and add up. After the third
read 38 bits are known. Of the errors that have these the largest in absolute value is taken: right to 2e-8 of itself,
right to the last bit where errors are tied, and never too small to cover as many errors as guaranteed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd

from pimeter._kernels.dask.sources import summed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Bits = NDArray[np.uint64]

BITS = 14, 12, 12  # that each read finds
_TOP, _REST = np.uint64(2**63), np.int64(2**63 - 1)


class Found(NamedTuple):
    """What was found: of all rows, unless they are so few that all of them are in the sample."""

    sample: list[Any]
    n: int
    absolute: Array  # order statistics that were asked for
    signed: Array
    sums: Any


@dataclass(frozen=True)
class KnownBits:
    """The first bits of some order statistics, and their ranks among errors that begin with these."""

    heads: Bits
    ranks: NDArray[np.intp]
    n_bits: int = 0

    def count(self, x: Array, n_bits: int) -> NDArray[np.intp]:
        """How often each of the next bits follows, (distinct heads, 2**n_bits)."""
        return self._table(self._cells(x, n_bits)[0], n_bits)

    def last_count(self, x: Array, n_bits: int) -> tuple[NDArray[np.intp], Array]:
        """How often each of the next bits follows, and the largest absolute value of an error counted there."""
        cells, own = self._cells(x, n_bits)
        counts = self._table(cells, n_bits)
        largest = np.zeros(counts.shape)
        np.maximum.at(largest.reshape(-1), cells, np.abs(own))
        return counts, largest

    def _table(self, cells: NDArray[np.intp], n_bits: int) -> NDArray[np.intp]:
        n_heads = np.unique(self.heads).size
        return np.bincount(cells, minlength=n_heads << n_bits).reshape(n_heads, -1)

    def _cells(self, x: Array, n_bits: int) -> tuple[NDArray[np.intp], Array]:
        """Head and next bits of errors that begin with one of the heads, as one number, and these errors."""
        bits = (x + 0.0).view(np.int64)
        rising = (bits ^ ((bits >> 63) & _REST)).view(np.uint64) ^ _TOP
        heads = np.unique(self.heads)
        own = rising >> np.uint64(64 - self.n_bits) if self.n_bits else np.zeros_like(rising)
        place = np.minimum(np.searchsorted(heads, own), heads.size - 1)
        is_own = heads[place] == own
        following = (rising[is_own] >> np.uint64(64 - self.n_bits - n_bits)) & np.uint64(2**n_bits - 1)
        return (place[is_own] << n_bits) + following.astype(np.intp), x[is_own]

    def narrowed(self, counts: NDArray[np.intp]) -> KnownBits:
        """What is known after a read: also the bits that these counts tell."""
        up_to = np.cumsum(counts, axis=1)[np.searchsorted(np.unique(self.heads), self.heads)]
        found = np.array([np.searchsorted(own, rank) for own, rank in zip(up_to, self.ranks, strict=True)], np.intp)
        before = np.where(found > 0, up_to[np.arange(found.size), found - 1], 0)
        n_bits = counts.shape[1].bit_length() - 1
        heads = (self.heads << np.uint64(n_bits)) | found.astype(np.uint64)
        return KnownBits(heads, self.ranks - before, self.n_bits + n_bits)

    def values(self, counts: NDArray[np.intp], largest: Array) -> Array:
        """The errors, or one farther from 0 that has all bits that the last counts tell."""
        found = self.narrowed(counts)
        place = np.searchsorted(np.unique(self.heads), self.heads)
        size = largest[place, (found.heads & np.uint64(counts.shape[1] - 1)).astype(np.intp)]
        return np.where(found.heads >> np.uint64(found.n_bits - 1) == 0, -size, size)


class Extremes(NamedTuple):
    """What a first look at rows tells; `_joined` makes one of several."""

    n: int
    largest: float  # absolute error
    low: float  # of targets
    high: float
    means: Array  # of absolute errors, errors, targets
    counts: tuple[NDArray[np.intp], ...]  # absolute errors and errors by leading bits


def _joined(some: list[Extremes]) -> Extremes:
    n = sum(extremes.n for extremes in some)
    means = np.sum([extremes.n / max(n, 1) * extremes.means for extremes in some], axis=0)
    counts = tuple(sum(arrays[1:], arrays[0]) for arrays in zip(*(extremes.counts for extremes in some), strict=True))
    outer = (
        max(extremes.largest for extremes in some),
        min(extremes.low for extremes in some),
        max(extremes.high for extremes in some),
    )
    return Extremes(n, *outer, means, counts)


def _look(parts: tuple[Any, ...], check: Callable[..., Any]) -> Extremes:
    if not len(parts[0]) and not len(parts[1]):
        nothing = np.zeros((1, 2 ** BITS[0]), np.intp)
        return Extremes(0, 0.0, np.inf, -np.inf, np.zeros(3), (nothing, nothing))
    checked = check(*parts)
    target, errors = checked.target, checked.residuals
    absolute, n, start = np.abs(errors), len(errors), KnownBits(np.zeros(1, np.uint64), np.ones(1, np.intp))
    means = np.array([(x / n).sum() for x in (absolute, errors, target)])
    counts = start.count(absolute, BITS[0]), start.count(errors, BITS[0])
    return Extremes(n, float(absolute.max()), float(target.min()), float(target.max()), means, counts)


def _count(
    parts: tuple[Any, ...], known: tuple[KnownBits, ...], n_bits: int, check: Callable[..., Any], summing: Any
) -> list[Any]:
    target, errors = _targets_and_errors(parts, check)
    counts = [one.count(x, n_bits) for one, x in zip(known, (np.abs(errors), errors), strict=True)]
    return [*counts, summing(target, errors)]


def _added(some: list[list[Any]]) -> list[Any]:
    return [sum(values[1:], values[0]) for values in zip(*some, strict=True)]


def _count_last(
    parts: tuple[Any, ...], known: tuple[KnownBits, ...], n_bits: int, check: Callable[..., Any]
) -> list[Any]:
    errors = _targets_and_errors(parts, check)[1]
    return [one.last_count(x, n_bits) for one, x in zip(known, (np.abs(errors), errors), strict=True)]


def _last_added(some: list[list[Any]]) -> list[Any]:
    both = [zip(*own, strict=True) for own in zip(*some, strict=True)]
    return [(np.sum(counts, axis=0), np.max(largest, axis=0)) for counts, largest in both]


def _targets_and_errors(parts: tuple[Any, ...], check: Callable[..., Any]) -> tuple[Array, Array]:
    if not len(parts[0]):
        return np.empty(0), np.empty(0)
    checked = check(*parts[:2])
    return checked.target, checked.residuals


def _take(parts: tuple[Any, ...], n: int, seed: tuple[int, int]) -> list[Any]:
    """Some rows at random, in their order."""
    size = len(parts[0])
    if any(len(part) != size for part in parts):
        msg = f"rows per partition differ: {[len(part) for part in parts]}; repartition one like the other."
        raise ValueError(msg)
    rows = np.arange(size)
    if n < size:
        rows = np.sort(np.random.default_rng(seed).choice(size, n, replace=False, shuffle=False))
    return [part.iloc[rows] if hasattr(part, "iloc") else np.asarray(part)[rows] for part in parts]


def _partitions(tables: Sequence[Any]) -> list[Any]:
    """Delayed tuples of partitions: frames from the same files are read together."""
    if all(isinstance(table, dd.DataFrame | dd.Series) for table in tables):
        empty = pd.Series([], dtype=object)
        joined = dd.map_partitions(_tuple, *tables, meta=empty, align_dataframes=False, enforce_metadata=False)
        return list(joined.to_delayed())
    some = dask.delayed(_tuple, pure=True)
    return [some(*parts) for parts in zip(*(np.ravel(table.to_delayed()) for table in tables), strict=True)]


def _tuple(*parts: Any) -> tuple[Any, ...]:
    return parts


def _checked(tables: Sequence[Any]) -> None:
    for table in tables:
        if not type(table).__module__.startswith("dask"):
            msg = f"y_true is a dask collection, another argument a {type(table).__name__}; give all as such."
            raise TypeError(msg)
        if getattr(table, "ndim", 1) > 1 and hasattr(table, "chunks") and table.numblocks[1] > 1:
            msg = "X has several chunks of columns; rechunk it with X.rechunk({1: -1})."
            raise ValueError(msg)
    numbers = {table.npartitions for table in tables}
    if len(numbers) > 1:
        msg = f"rows are in different numbers of partitions, {sorted(numbers)}; repartition one like the other."
        raise ValueError(msg)


def read_rows(
    tables: Sequence[Any],
    limit: int,
    check: Callable[..., Any],
    asked: Callable[[int], tuple[NDArray[np.intp], NDArray[np.intp]]],
    summing: Callable[[Extremes], Any],
) -> Found:
    """Targets, predictions, and what else there is of the same rows; None stays None.

    Up to `limit` rows come here as they are, else so many of them at random: from each partition in proportion. `check`
    makes an object with the `target` and `residuals` of a partition, `asked` says which ranks of absolute errors and of
    errors are asked for among n rows, and what `summing` makes of a first look turns targets and errors into sums.
    """
    given = [table for table in tables if table is not None]
    _checked(given)
    look, count, count_last, take = (dask.delayed(f, pure=True) for f in (_look, _count, _count_last, _take))
    looked = [look(rows, check) for rows in _partitions(given[:2])]
    extremes, lengths = dask.compute(summed(looked, _joined), [one[0] for one in looked])
    if extremes.n == 0:
        msg = "there are no rows: all partitions are empty."
        raise ValueError(msg)
    is_whole = extremes.n <= limit
    before = np.concatenate([[0.0], np.cumsum(lengths, dtype=np.float64)]) * min(1.0, limit / extremes.n)
    shift = 0.0 if is_whole else np.random.default_rng(extremes.n).uniform()
    quota = np.diff(np.floor(before + shift)).astype(int)
    rows = _partitions(given)
    pieces = [take(part, int(n), (extremes.n, i)) for i, (part, n) in enumerate(zip(rows, quota, strict=True))]
    counted, known = None, tuple[KnownBits, ...]()
    if not is_whole:
        start = tuple(KnownBits(np.zeros(ranks.size, np.uint64), ranks) for ranks in asked(extremes.n))
        known = tuple(one.narrowed(counts) for one, counts in zip(start, extremes.counts, strict=True))
        counted = summed([count(part, known, BITS[1], check, summing(extremes)) for part in rows], _added)
    taken, second = dask.compute(pieces, counted)
    columns = iter([_stacked(parts) for parts in zip(*taken, strict=True)])
    sample = [None if table is None else next(columns) for table in tables]
    if is_whole:
        return Found(sample, extremes.n, np.empty(0), np.empty(0), None)
    *counts, sums = second
    known = tuple(one.narrowed(own) for one, own in zip(known, counts, strict=True))
    third = [count_last(part, known, BITS[2], check) for part in _partitions(given[:2])]
    last = summed(third, _last_added).compute()
    absolute, signed = (one.values(*own) for one, own in zip(known, last, strict=True))
    return Found(sample, extremes.n, absolute, signed, sums)


def _stacked(parts: Sequence[Any]) -> Any:
    return pd.concat(parts, ignore_index=True) if hasattr(parts[0], "iloc") else np.concatenate(parts)
