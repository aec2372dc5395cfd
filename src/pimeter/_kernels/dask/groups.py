"""Quantiles of many groups of dask collections, in three reads at most.

1. Rows of each group are counted.
2. Rows of one group are brought together, by dask's own shuffle, and solved where they are. Groups of more than
   MAX_GROUP_ROWS are not: their errors are counted by leading bits.
3. Those are counted again, in finer bins, so small that their means stand for the errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd

from pimeter._kernels.arrays import grouped_quantiles
from pimeter._kernels.dask.reads import first_read, next_read, second_plan, solved
from pimeter._kernels.dask.sources import Source, as_array, made, sources, summed

if TYPE_CHECKING:
    import dask.array as da
    from numpy.typing import NDArray

    from pimeter._kernels.dask.bins import Task

    Array = NDArray[np.float64]

MAX_GROUP_ROWS = 2**22  # rows of a group that are brought together, at most
ROWS_PER_PARTITION = 2**20  # rows of a partition of groups, about


@dataclass(frozen=True)
class FoundGroups:
    """Groups of rows, and quantiles of each."""

    labels: NDArray[Any]  # (groups,) in rising order
    rows: NDArray[np.intp]  # (groups,)
    quantiles: Array  # (groups, levels)


def quantiles(errors: da.Array | dd.Series, by: da.Array | dd.Series, task: Task) -> FoundGroups:
    """Labels in rising order, their rows, and their quantiles."""
    errors = as_array(errors)
    if errors.ndim != 1 or by.ndim != 1:
        msg = f"errors and by must have one dimension; got {errors.ndim} and {by.ndim}."
        raise ValueError(msg)
    pairs = list(zip(sources(errors), sources(by), strict=False))
    if not len(pairs) == errors.npartitions == by.npartitions:
        msg = f"errors have {errors.npartitions} partitions, by has {by.npartitions}; repartition one like the other."
        raise ValueError(msg)
    tally = dask.delayed(_tally, pure=True)
    counts = summed([tally(labels) for _, labels in pairs], _added).compute()
    if not len(counts):
        msg = "there are no rows; a quantile needs at least one."
        raise ValueError(msg)
    if counts.index.hasnans:
        msg = "by holds missing labels; drop such rows, or name them."
        raise ValueError(msg)
    counts = counts.sort_index()
    large = np.flatnonzero(counts.to_numpy() > MAX_GROUP_ROWS)
    table = dask.delayed(counts.index)
    code = dask.delayed(_coded, pure=True)
    blocks = [code(x, labels, table) for x, labels in pairs]
    flat = np.empty((len(counts), len(task.levels)))
    n_parts = max(1, -(-int(np.delete(counts.to_numpy(), large).sum()) // ROWS_PER_PARTITION))
    small = (
        dd.from_delayed(blocks, meta=_EMPTY, verify_meta=False)
        .map_partitions(_without, large, meta=_EMPTY)
        .shuffle("group", npartitions=n_parts)
        .map_partitions(_solved, task, meta=_answers(np.empty(0, np.int32), flat[:0]))
    )
    pick, first = (dask.delayed(f, pure=True) for f in (_samples, first_read))
    parts, bits = dask.compute(
        small.to_delayed(), summed([first(pick(block, large), None, task) for block in blocks]) if large.size else None
    )
    found = pd.concat(parts)
    flat[found["group"].to_numpy()] = found.drop(columns="group").to_numpy()
    if large.size:
        ranges = second_plan(bits, task)
        following = dask.delayed(next_read, pure=True)
        bins = summed([following(pick(block, large), None, task, ranges) for block in blocks]).compute()
        flat[large] = solved(bins, task, ranges, (large.size,)).T
    return FoundGroups(counts.index.to_numpy(), counts.to_numpy().astype(np.intp), flat)


_EMPTY = pd.DataFrame({"group": np.empty(0, np.int32), "error": np.empty(0)})


def _tally(labels: Source | NDArray[Any]) -> pd.Series:
    return pd.Series(np.asarray(made(labels))).value_counts(sort=False, dropna=False)


def _added(tallies: list[pd.Series]) -> pd.Series:
    return pd.concat(tallies).groupby(level=0, sort=False, dropna=False).sum()


def _coded(errors: Source | Array, labels: Source | NDArray[Any], table: pd.Index) -> pd.DataFrame:
    """Rows with the numbers of their groups."""
    x, own = np.asarray(made(errors), np.float64), np.asarray(made(labels))
    if len(x) != len(own):
        msg = f"rows per partition differ: {len(x)} errors and {len(own)} labels; repartition one like the other."
        raise ValueError(msg)
    return pd.DataFrame({"group": table.get_indexer(own).astype(np.int32), "error": x})


def _without(frame: pd.DataFrame, large: NDArray[np.intp]) -> pd.DataFrame:
    return frame[~frame["group"].isin(large)] if large.size else frame


def _samples(frame: pd.DataFrame, large: NDArray[np.intp]) -> list[Array]:
    return [frame["error"].to_numpy()[frame["group"].to_numpy() == code] for code in large]


def _solved(frame: pd.DataFrame, task: Task) -> pd.DataFrame:
    """Quantiles of the groups of a partition, all of whose rows are there."""
    groups, codes = np.unique(frame["group"].to_numpy(), return_inverse=True)
    beta = "auto" if task.h is None else 1.0 / task.h
    flat = grouped_quantiles(frame["error"].to_numpy(), codes, len(groups), list(task.levels), beta, task.reflect)
    return _answers(groups, flat)


def _answers(groups: NDArray[np.int32], flat: Array) -> pd.DataFrame:
    return pd.DataFrame({"group": groups, **{f"level {k}": column for k, column in enumerate(flat.T)}})
