"""The formula of `reference.py` in native code, `pimeter._native` from `src/native`: the same functions.

They release the GIL; threads live for one call. Which thread takes which part leaves no trace in the results.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from pimeter import bandwidth
from pimeter._kernels.reference import NO_CODES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Status = NDArray[np.uint8]

_native: Any = import_module("pimeter._native")  # no Python source, so that no tool need look for it

learn, learn_columns, place = _native.learn, _native.learn_columns, _native.place


@lru_cache(maxsize=256)
def _knots(m: float) -> Any:
    return _native.Knots(*bandwidth.knots(max(m, 3.0)), bool(m > bandwidth.LARGE))


def automatic_rows(x: NDArray[np.floating], levels: Array, n_threads: int = 1) -> tuple[Array, Status | None]:
    """See `reference.automatic_rows`."""
    out, status = np.empty((len(x), levels.size)), np.empty(len(x), np.uint8)
    is_odd = _native.automatic_rows(x, _knots(float(x.shape[1])), levels, n_threads, out, status)
    return out, status if is_odd else None


def weighted_rows(x: Array, counts: Array, m: float, levels: Array, n_threads: int = 1) -> Array:
    """See `reference.weighted_rows`."""
    out = np.empty((len(counts), levels.size))
    _native.weighted_rows(x, counts, _knots(m), levels, n_threads, out)
    return out


def fixed_rows(x: NDArray[np.floating], levels: Array, h: float, n_threads: int = 1) -> tuple[Array, Status | None]:
    """See `reference.fixed_rows`."""
    out, status = np.empty((len(x), levels.size)), np.empty(len(x), np.uint8)
    is_odd = _native.fixed_rows(x, levels, h, n_threads, out, status)
    return out, status if is_odd else None


def order_statistics(x: Array, ranks: NDArray[np.intp], n_threads: int = 1) -> Array:
    """See `reference.order_statistics`."""
    rising, back = np.unique(ranks - 1, return_inverse=True)
    out = np.empty(rising.size)
    _native.order_statistics(x, rising, n_threads, out)
    return out[back]


def sorted_groups(x: Array, group: NDArray[np.uint8] = NO_CODES, n_groups: int = 1) -> list[Array]:
    """See `reference.sorted_groups`."""
    out, counts = np.empty(x.size), np.zeros(n_groups, np.intp)
    _native.sort_groups(x, group, counts, out)
    return np.split(out, np.cumsum(counts)[:-1])


def fixed_weighted(x: Array, counts: Array, levels: Array, h: float, starts: Array) -> Array:
    """See `reference.fixed_weighted`."""
    out = np.empty(levels.size)
    _native.fixed_weighted(x, counts, levels, h, starts, out)
    return out
