"""Rows of a log that grows, some of them without their target yet: what is new of them is counted, once."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pimeter.monitoring.rows import id_list, interval_lists, target_list

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pimeter.monitoring.monitor import CoverageMonitor
    from pimeter.monitoring.waiting import Known

    Array = NDArray[np.float64]

ROWS_READ = "rows of the log"


class LogRows(NamedTuple):
    """What was new in a log."""

    n_new: int  # rows that were not there before
    n_counted: int  # rows whose target was not there before


def count_log(monitor: CoverageMonitor, targets: Array, intervals: Array, by: Any, ids: Any) -> LogRows:
    """Count what is new of all rows of a log, where targets that have not come are NaN.

    Without ids rows may only be added at the end.
    """
    n_before = int(monitor._waiting().counter(ROWS_READ))
    names = [json.dumps(i) for i in range(len(targets))] if ids is None else id_list(ids)
    if ids is None and len(names) < n_before:
        msg = (
            f"the log has {len(names):,} rows, fewer than the {n_before:,} that were read before. If rows are removed "
            "from it, give the column of ids with --id; or begin another --state."
        )
        raise ValueError(msg)
    given = interval_lists(intervals, by, len(names))
    known = monitor._waiting().known(names)
    values = targets.tolist()
    has_come = ~np.isnan(targets)
    if has_come.any():
        target_list(targets[has_come])  # refused before anything is noted
    _refuse_changes(names, known, values, given.lower, given.upper)
    first = n_before if ids is None else _first_not_forgotten(monitor, names, known)
    new = [i for i, name in enumerate(names) if name not in known and i >= first]
    come = [
        i
        for i, name in enumerate(names)
        if not math.isnan(values[i]) and (known[name].target is None if name in known else i >= first)
    ]
    if new:
        some = [given.labels[i] for i in new] if by is not None else None
        monitor.expect([json.loads(names[i]) for i in new], intervals[new], by=some)
    if come:
        monitor.observe([json.loads(names[i]) for i in come], targets[come])
    monitor._waiting().count(ROWS_READ, len(names) - n_before)
    return LogRows(len(new), len(come))


def _first_not_forgotten(monitor: CoverageMonitor, names: Sequence[str], known: dict[str, Known]) -> int:
    """The first row that is not one whose time is over: such rows stand before all that are known."""
    if not known or not monitor._waiting().counter("forgotten"):
        return 0
    return next(i for i, name in enumerate(names) if name in known)


def _refuse_changes(
    names: Sequence[str],
    known: dict[str, Known],
    targets: Sequence[float],
    lower: Sequence[float],
    upper: Sequence[float],
) -> None:
    """A ValueError if a row that was read before is another one now."""
    for i, name in enumerate(names):
        held = known.get(name)
        if held is None:
            continue
        if (held.lower, held.upper) != (lower[i], upper[i]):
            before, now = f"the interval [{held.lower:g}, {held.upper:g}]", f"[{lower[i]:g}, {upper[i]:g}]"
        elif held.target is not None and held.target != targets[i]:
            before, now = f"the target {held.target:g}", f"{targets[i]:g}"
        else:
            continue
        which = f"the row with id {name} (without --id: with this number, counted from 0)"
        msg = f"{which} had {before} before, and now {now}; what was read cannot change."
        raise ValueError(msg)
