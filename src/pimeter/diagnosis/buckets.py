"""Order statistics and shares of many values, exactly, without sorting them: most buckets need only be counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from pimeter._kernels.counting import LOOK, bucket
from pimeter._kernels.dispatch import kernel
from pimeter.arrays import some_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Counts = NDArray[np.intp]

MOST = 16  # powers of two of buckets, at most ...
FEW = 64  # ... and values in one of them, about
N_SOME = 10_000  # values that tell where buckets are needed
TAILS = 100, 1000  # one of so many values, at the low and at the high end, shares a bucket with all beyond it


@dataclass(frozen=True)
class Buckets:
    """Finite values of some groups, counted in buckets that follow their size."""

    values: Array  # (m,)
    group: NDArray[np.uint8]  # (m,)
    scale: tuple[int, int, int]  # bits of the least size told from 0, bits that a bucket leaves out, bucket of 0
    counts: Counts  # (groups, buckets)

    @classmethod
    def of(cls, values: Array, group: NDArray[np.uint8] | None = None, n_groups: int = 1) -> Buckets:
        """Count the values of each group."""
        m = len(values)
        group = np.zeros(m, np.uint8) if group is None else group
        n_buckets = 1 << min((m // FEW).bit_length(), MOST)
        middle = n_buckets // 2 if values.min() < 0.0 else 0
        some = np.sort(np.abs(values[some_rows(m, N_SOME)]))
        ends = some[[len(some) // TAILS[0], -1 - len(some) // TAILS[1]]].view(np.int64)
        shift = max(0, int(ends[1] - ends[0]).bit_length() - (n_buckets - middle).bit_length() + 1)
        counts = np.zeros((n_groups, n_buckets), np.intp)
        scale = (int(ends[0]), shift, middle)
        kernel.count_buckets(values, group, *scale, counts)
        return cls(values, group, scale, counts)

    def order_statistics(self, members: NDArray[np.bool_], ranks: Counts) -> Array:
        """Values of these ranks, from 1 up, (sets, ranks), in each of some sets of groups, (sets, groups)."""
        up_to = _added(members, self.counts)
        bucket = np.array([np.searchsorted(own, rank) for own, rank in zip(up_to, ranks, strict=True)])
        values, rows, is_enough = self._sorted(bucket)
        groups = self.group[rows]
        skipped = _added(members, np.where(is_enough, 0, self.counts))
        found = np.empty(ranks.shape)
        for i, member in enumerate(members):
            n_kept = np.cumsum(member[groups])
            found[i] = values[np.searchsorted(n_kept, ranks[i] - skipped[i, bucket[i]])]
        return found

    def n_below(self, bounds: Array, side: Literal["left", "right"] = "left") -> Counts:
        """How many of all values lie below each bound, or up to it with side="right"."""
        bucket = self._bucket(bounds)
        values, _, is_enough = self._sorted(bucket)
        skipped = np.cumsum(np.where(is_enough, 0, self.counts.sum(axis=0)))
        return np.asarray(skipped[bucket] + np.searchsorted(values, bounds, side=side))

    def places(self, bounds: Array) -> NDArray[np.uint8]:
        """How many bounds of its own group, (groups, bounds), rising and fewer than 255, lie below each value."""
        bucket = self._bucket(bounds)
        known = np.empty(self.counts.shape, np.uint8)
        for one, at in zip(known, bucket, strict=True):
            one[:] = np.searchsorted(at, np.arange(len(one)))
            one[at] = LOOK
        places = np.empty(len(self.values), np.uint8)
        kernel.place(self.values, self.group, *self.scale, bounds, known, places)
        return places

    def _bucket(self, values: Array) -> Counts:
        return np.maximum(bucket(values, *self.scale, self.counts.shape[1] - 1), 0)

    def _sorted(self, wanted: Counts) -> tuple[Array, Counts, NDArray[np.bool_]]:
        """Values of the wanted buckets in order, their rows, and which buckets these are."""
        is_wanted = np.zeros(self.counts.shape[1], bool)
        is_wanted[wanted] = True
        rows = np.empty(int(self.counts[:, is_wanted].sum()) + 1, np.intp)
        kernel.keep_buckets(self.values, *self.scale, is_wanted, rows)
        values = self.values[rows[:-1]]
        order = np.argsort(values)
        return values[order], rows[order], is_wanted


def _added(members: NDArray[np.bool_], counts: Counts) -> Counts:
    """Number of values up to each bucket, in sets of groups."""
    return (members.astype(np.float64) @ np.cumsum(counts, axis=1, dtype=np.float64)).astype(np.intp)
