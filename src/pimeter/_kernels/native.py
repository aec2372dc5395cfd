"""The formula of `reference.py` in native code, `pimeter._native` from `src/native`: the same functions.

They release the GIL; threads live for one call. Which thread takes which part leaves no trace in the results.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from pimeter import bandwidth
from pimeter._kernels import reference, stream
from pimeter._kernels.reference import NO_CODES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Status = NDArray[np.uint8]

_native: Any = import_module("pimeter._native")  # no Python source, so that no tool need look for it

# All at once: an older build, which lacks some, is noticed here.
learn_columns, place, _automatic, _weighted, _fixed, _fixed_weighted, _select, _sort_groups, _Knots = attrgetter(
    "learn_columns", "place", "automatic_rows", "weighted_rows", "fixed_rows", "fixed_weighted",
    "order_statistics", "sort_groups", "Knots",
)(_native)  # fmt: skip

for (_module, _name), _value in _native.constants().items():
    if getattr({"bandwidth": bandwidth, "reference": reference, "stream": stream}[_module], _name) != _value:
        msg = f"it was built where {_module}.{_name} was {_value}"
        raise ImportError(msg)


def _knots(m: float) -> Any:
    """Knots of samples of a size, kept unless these are very many."""
    return _kept_knots(m) if m <= bandwidth.LARGEST_KEPT else _kept_knots.__wrapped__(m)


@lru_cache(maxsize=256)
def _kept_knots(m: float) -> Any:
    return _Knots(*bandwidth.knots(max(m, 3.0)), bool(m > bandwidth.LARGE))


def automatic_rows(x: NDArray[np.floating], levels: Array, n_threads: int = 1) -> tuple[Array, Status | None]:
    """Quantiles of each row, in any order, at rising levels; and which rows hold NaN (1) or infinities (2), if any."""
    out, status = np.empty((len(x), levels.size)), np.empty(len(x), np.uint8)
    is_odd = _automatic(x, _knots(float(x.shape[1])), levels, n_threads, out, status)
    return out, status if is_odd else None


def weighted_rows(x: Array, counts: Array, m: float, levels: Array, n_threads: int = 1) -> Array:
    """Quantiles of one sorted finite sample for each row of counts, which sum to m."""
    out = np.empty((len(counts), levels.size))
    _weighted(x, counts, _knots(m), levels, n_threads, out)
    return out


def fixed_rows(x: NDArray[np.floating], levels: Array, h: float, n_threads: int = 1) -> tuple[Array, Status | None]:
    """Roots of mean sigmoid((w - x)/h) = level of each row; and which rows hold NaN (1) or infinities (2), if any."""
    out, status = np.empty((len(x), levels.size)), np.empty(len(x), np.uint8)
    is_odd = _fixed(x, levels, h, n_threads, out, status)
    return out, status if is_odd else None


def order_statistics(x: Array, ranks: NDArray[np.intp], n_threads: int = 1) -> Array:
    """Values of these ranks, from 1 up, in any order; none of the values is NaN."""
    # Looking up one rank takes longer than selecting it in a short sample.
    rising, back = np.unique(ranks - 1, return_inverse=True) if ranks.size > 1 else (ranks - 1, slice(None))
    out = np.empty(rising.size)
    _select(x, rising, n_threads, out)
    return out[back]


def sorted_groups(x: Array, group: NDArray[np.uint8] = NO_CODES, n_groups: int = 1) -> list[Array]:
    """Finite values of each group, sorted; without codes all are of one group."""
    out, counts = np.empty(x.size), np.zeros(n_groups, np.intp)
    _sort_groups(x, group, counts, out)
    return np.split(out, np.cumsum(counts)[:-1])


def fixed_weighted(x: Array, counts: Array, levels: Array, h: float, starts: Array) -> Array:
    """Roots of mean sigmoid((w - x)/h) = level of one sorted finite sample with counts, from these starts."""
    out = np.empty(levels.size)
    _fixed_weighted(x, counts, levels, h, starts, out)
    return out
