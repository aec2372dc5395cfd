"""`grouped_quantile`: one neuron for each of many groups, from rows that are here or spread over a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from pimeter._kernels.arguments import arguments
from pimeter._kernels.arrays import grouped_quantiles
from pimeter.arrays import even_array, has_missing, is_dask, real_array
from pimeter.frames import refuse_other_order

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from pimeter.protocols import Array, Index


class GroupQuantiles(NamedTuple):
    """The quantile of the errors of each group, which `grouped_quantile` returns."""

    labels: NDArray[Any]  # (groups,) in rising order
    rows: Index  # (groups,)
    quantiles: Array  # (groups,), with the shape of q first


def grouped_quantile(
    errors: ArrayLike, by: ArrayLike, q: ArrayLike, *, beta: float | Literal["auto"] = "auto", reflect: bool = False
) -> GroupQuantiles:
    """Quantiles of the errors of each group: a neuron for each store, sensor or customer, a million of them if need be.

    Parameters
    ----------
    errors : array-like of shape (m,)
        A sample of each group, in any order. A dask array or series stays where it is.
    by : array-like of shape (m,)
        The group of each row: numbers or strings, none missing. With a dask collection, one with the same partitions.
    q : float or array-like
        Levels in [0, 1].
    beta : "auto" or float
        How sharply the neuron distinguishes: "auto" follows each sample; a number is the paper's, in its own unit.
    reflect : bool
        The values are absolute errors, whose density goes on below 0 as its mirror image.

    Returns
    -------
    GroupQuantiles
        A named tuple: `labels` of the groups in rising order, `rows` in each, and `quantiles` of shape (groups,), with
        the shape of `q` first. NaN for a group that holds NaN.

    Raises
    ------
    ValueError
        If there are no rows, shapes or partitions do not fit, or a label is missing.
    TypeError
        If one is a dask collection and the other is not, or labels cannot be put in order.

    Notes
    -----
    Dask collections are read two times, or three if a group has more than four million rows. The first read counts
    the rows of each group, and these counts come here. In the second one rows of the same group are brought together by
    dask's own shuffle, spread over the workers and kept on disk where there is no room. The largest groups are never
    brought together: they are counted in bins, as by `quantile`.

    Examples
    --------
    >>> import numpy as np
    >>> from pimeter import grouped_quantile
    >>> rng = np.random.default_rng(0)
    >>> store = rng.choice(["north", "south"], 2000)
    >>> errors = np.abs(rng.normal(size=2000)) * np.where(store == "south", 3, 1)
    >>> found = grouped_quantile(errors, store, 0.95)
    >>> [(str(label), int(n), round(float(w), 1)) for label, n, w in zip(*found, strict=True)]
    [('north', 957, 2.0), ('south', 1043, 5.8)]
    """
    asked = arguments(q, None, 1, beta)
    lazy = [is_dask(given) for given in (errors, by)]
    if any(lazy):
        if not all(lazy):
            msg = "one of errors and by is a dask collection, the other is not; give both as such."
            raise TypeError(msg)
        from pimeter._kernels.dask import groups as lazy_groups
        from pimeter._kernels.dask.bins import Task

        task = Task(tuple(asked.levels), asked.h, reflect)
        found = lazy_groups.quantiles(errors, by, task)
        labels, rows, flat = found.labels, found.rows, found.quantiles
    else:
        refuse_other_order("errors", errors, "by", by)
        values, groups = real_array("errors", errors), even_array("by", by)
        if values.ndim != 1 or values.shape != groups.shape:
            msg = f"errors and by must be of one shape (m,); got {values.shape} and {groups.shape}."
            raise ValueError(msg)
        if not values.size:
            msg = "there are no rows; a quantile needs at least one."
            raise ValueError(msg)
        if has_missing(groups):
            msg = "by holds missing labels; drop such rows, or name them."
            raise ValueError(msg)
        try:
            labels, codes, rows = np.unique(groups, return_inverse=True, return_counts=True)
        except TypeError as mixed:
            msg = f"by holds labels that cannot be put in order ({mixed}); give numbers or strings."
            raise TypeError(msg) from mixed
        flat = grouped_quantiles(values, codes, len(labels), asked.levels, beta, reflect)
    return GroupQuantiles(labels, rows, flat.T.reshape(*asked.shape, len(labels)))
