"""Rows of a log that grows, some of them without their target yet: what is new of them is counted, once."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pimeter.monitoring.rows import id_list, interval_lists, target_list

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pimeter.monitoring.monitor import CoverageMonitor
    from pimeter.monitoring.waiting import KeptRow
    from pimeter.protocols import Array, Labels

ROWS_BY_NUMBER, ROWS_BY_ID = "rows of the log", "rows of the log with ids"
NEVER = 1e12  # seconds until rows of a log are forgotten: they stay in the log, where they would be new again


class LogRows(NamedTuple):
    """What was new in a log."""

    n_new: int  # rows that were not there before
    n_counted: int  # rows whose target was not there before


def count_log(
    monitor: CoverageMonitor, targets: Array, intervals: Array, by: Labels | None, ids: Labels | None
) -> LogRows:
    """Count what is new of all rows of a log, where targets that have not come are NaN.

    Without ids rows may only be added at the end. The monitor must not forget rows (``expire_after=NEVER``).
    """
    names, kind = (id_list(range(len(targets))), ROWS_BY_NUMBER) if ids is None else (id_list(ids), ROWS_BY_ID)
    n_before = _rows_before(monitor, kind, len(names))
    given = interval_lists(intervals, by, len(names))
    known = monitor._waiting().known(names)
    values = targets.tolist()
    has_come = ~np.isnan(targets)
    if has_come.any():
        target_list(targets[has_come])  # refused before anything is noted
    _refuse_changes(names, known, values, given.lower, given.upper)
    held = [known.get(name) for name in names]
    new = [i for i, one in enumerate(held) if one is None]
    come = [i for i, one in enumerate(held) if _has_come(values[i], one)]
    if new:
        some = None if by is None else [given.labels[i] for i in new]
        monitor.expect(_ids(names, new), intervals[new], by=some)
    monitor._waiting().count(kind, len(names) - n_before)
    if come:
        monitor.observe(_ids(names, come), targets[come])
    return LogRows(len(new), len(come))


def _ids(names: Sequence[str], rows: Sequence[int]) -> list[str | int | float | bool]:
    """Ids of some rows, as they were given."""
    return [json.loads(names[i]) for i in rows]


def _rows_before(monitor: CoverageMonitor, kind: str, n: int) -> int:
    """Rows of the log when it was read before; a ValueError if rows cannot be told from those."""
    before = {name: int(monitor._waiting().counter(name)) for name in (ROWS_BY_NUMBER, ROWS_BY_ID)}
    n_before = before.pop(kind)
    if any(before.values()):
        now, then = ("without", "with") if kind == ROWS_BY_NUMBER else ("with", "without")
        msg = f"this --state was begun {then} --id, and the log is now read {now}: all of its rows would count twice."
        raise ValueError(msg)
    if kind == ROWS_BY_NUMBER and n < n_before:
        msg = (
            f"the log has {n:,} rows, fewer than the {n_before:,} that were read before. To remove rows from a log, "
            "begin another --state and give the column of ids with --id."
        )
        raise ValueError(msg)
    return n_before


def _has_come(target: float, held: KeptRow | None) -> bool:
    """Whether there is a target that was not there before."""
    return not math.isnan(target) and (held is None or held.target is None)


def _refuse_changes(
    names: Sequence[str],
    known: dict[str, KeptRow],
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
