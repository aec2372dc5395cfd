"""Chunks of dask collections: made anew for each read where that repeats no work, and added up by a tree."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any

import dask
import dask.array as da
import numpy as np
from dask.core import flatten
from dask.optimization import cull

if TYPE_CHECKING:
    from dask.delayed import Delayed
    from numpy.typing import NDArray

FAN_IN = 16  # partial results that are added at once


def summed(parts: list[Delayed], addition: Callable[..., Any] = lambda some: sum(some[1:], some[0])) -> Delayed:
    """One delayed sum, by a tree."""
    add = dask.delayed(addition, pure=True, traverse=True)
    while len(parts) > 1:
        parts = [add(parts[i : i + FAN_IN]) for i in range(0, len(parts), FAN_IN)]
    return parts[0]


class Source:
    """A chunk that is made each time it is asked for."""

    def __init__(self, graph: Mapping[Hashable, object], key: Hashable) -> None:
        self._graph, self._key = graph, key

    def load(self) -> NDArray[Any]:
        """The rows of one chunk, read from where they are."""
        chunk: NDArray[Any] = dask.get(self._graph, self._key)
        return chunk


def _is_work(node: object) -> bool:
    return type(node).__name__ not in {"DataNode", "Future"} and callable(getattr(node, "func", node))


def sources(x: da.Array) -> NDArray[Any]:
    """The chunks in their grid: sources, or delayed ones where sources would repeat work of others."""
    delayed = np.asarray(x.to_delayed())
    held = dict(x.__dask_graph__()).values()
    if any(type(getattr(node, "value", node)).__module__.startswith("distributed") for node in held):
        return delayed  # a client keeps them already, and its own optimizer would take them for granted
    ready = x.optimize() if hasattr(x, "optimize") else dask.optimize(x)[0]  # frames know better
    graph = dict(ready.__dask_graph__())
    work = {key for key, node in graph.items() if _is_work(node)}
    parts = [(key, cull(graph, [key])[0]) for key in flatten(ready.__dask_keys__())]
    if sum(len(work & part.keys()) for _, part in parts) > len(work):
        return delayed
    made_anew = np.empty(len(parts), object)
    made_anew[:] = [Source(dict(part), key) for key, part in parts]
    return made_anew.reshape(delayed.shape)


def made(block: Any) -> Any:
    """A chunk, whichever way it comes."""
    return block.load() if isinstance(block, Source) else block


def as_array(a: Any) -> da.Array:
    """A dask array of a dask array, series or frame."""
    return a.to_dask_array() if hasattr(a, "to_dask_array") else a
