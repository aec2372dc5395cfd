"""`WaitingRows`: intervals that wait for their targets, in a database of SQLite, on disk or in memory.

A target that is observed gets the next number. The monitor counts rows in the order of these numbers and keeps the last
one with its own state: after a crash it goes on with the next, so that no row is lost and none is counted twice.
"""

from __future__ import annotations

import json
import math
import sqlite3
import time as clock
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pimeter.monitoring.rows import Intervals
    from pimeter.monitoring.stream import Label

TABLES_VERSION = 1
TABLES = """
CREATE TABLE IF NOT EXISTS rows (
    id TEXT PRIMARY KEY, place INTEGER NOT NULL, lower REAL NOT NULL, upper REAL NOT NULL, label TEXT NOT NULL,
    expected REAL NOT NULL, target REAL, number INTEGER, observed REAL
);
CREATE INDEX IF NOT EXISTS by_number ON rows (number);
CREATE INDEX IF NOT EXISTS by_time ON rows (expected);
CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, value REAL NOT NULL);
"""
AT_ONCE = 500  # ids in one question


class Observed(NamedTuple):
    """A row whose target has come."""

    number: int
    place: int  # among all that were expected
    target: float
    lower: float
    upper: float
    label: Label


class KeptRow(NamedTuple):
    """What is kept of an id."""

    lower: float
    upper: float
    target: float | None


class WaitingRows:
    """Rows that were expected, by id, until some time after their target came, or did not come."""

    def __init__(self, path: Path | None, expire_after: float) -> None:
        self._expire_after = expire_after
        try:
            self._connection = sqlite3.connect(":memory:" if path is None else path, isolation_level=None)
            version = self._connection.execute("PRAGMA user_version").fetchone()[0]
            if version not in {0, TABLES_VERSION}:
                msg = f"{path} has version {version}, expected {TABLES_VERSION}: another version of pimeter wrote it."
                raise ValueError(msg)
            self._connection.executescript(TABLES)
            self._connection.execute(f"PRAGMA user_version = {TABLES_VERSION}")
        except sqlite3.Error as why:
            msg = f"{path} cannot be used as a database of rows that wait for their targets: {why}."
            raise ValueError(msg) from why

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    def expect(self, ids: Sequence[str], intervals: Intervals, time: float | None) -> None:
        """Keep intervals until their targets come; nothing if an id is known already."""
        with self._transaction(time) as now:
            known = self.known(ids)
            if known:
                one = next(iter(known))
                before = f"[{known[one].lower:g}, {known[one].upper:g}]"
                msg = f"id {one} was expected before, with interval {before}; give each row once."
                raise ValueError(msg)
            labels = map(json.dumps, intervals.labels)
            first = int(self.counter("place")) + 1
            places = range(first, first + len(ids))
            rows = zip(ids, places, intervals.lower, intervals.upper, labels, [now] * len(ids), strict=True)
            insert = "INSERT INTO rows (id, place, lower, upper, label, expected) VALUES (?, ?, ?, ?, ?, ?)"
            self._connection.executemany(insert, rows)
            self.count("place", len(ids))

    def observe(self, ids: Sequence[str], targets: Sequence[float], time: float | None) -> None:
        """Note targets, in their order; nothing if one was never expected, or has come before."""
        with self._transaction(time) as now:
            known = self.known(ids)
            for one, target in zip(ids, targets, strict=True):
                _refuse_wrong(one, target, known.get(one))
            first = int(self.counter("number"))
            rows = [(target, first + i, now, one) for i, (one, target) in enumerate(zip(ids, targets, strict=True), 1)]
            self._connection.executemany("UPDATE rows SET target = ?, number = ?, observed = ? WHERE id = ?", rows)
            self.count("number", len(rows))

    def known(self, ids: Sequence[str]) -> dict[str, KeptRow]:
        """What is kept of those ids that are known."""
        found: dict[str, KeptRow] = {}
        for start in range(0, len(ids), AT_ONCE):
            some = ids[start : start + AT_ONCE]
            places = ", ".join("?" * len(some))
            select = f"SELECT id, lower, upper, target FROM rows WHERE id IN ({places})"
            found |= {row[0]: KeptRow(*row[1:]) for row in self._connection.execute(select, some)}
        return found

    def after(self, number: int) -> Iterator[Observed]:
        """Rows with targets whose numbers are larger, in their order."""
        select = "SELECT number, place, target, lower, upper, label FROM rows WHERE number > ? ORDER BY number"
        for row in self._connection.execute(select, (number,)).fetchall():
            yield Observed(*row)._replace(label=json.loads(row[-1]))

    @property
    def n_waiting(self) -> int:
        """Rows that wait for their target."""
        return int(self._connection.execute("SELECT count(*) FROM rows WHERE number IS NULL").fetchone()[0])

    def counter(self, name: str) -> float:
        """A number that is kept, such as that of the last target ("number") and the "time" of the last call."""
        row = self._connection.execute("SELECT value FROM counters WHERE name = ?", (name,)).fetchone()
        return float(row[0]) if row else 0.0

    def forget(self, number: int, now: float) -> None:
        """Drop rows whose time is over: those without target, and those with one that was counted."""
        limit = now - self._expire_after
        gone = self._connection.execute("DELETE FROM rows WHERE number IS NULL AND expected < ?", (limit,)).rowcount
        delete = "DELETE FROM rows WHERE number <= ? AND observed < ?"
        old = self._connection.execute(delete, (number, limit)).rowcount
        self.count("expired", gone)
        self.count("forgotten", gone + old)

    def count(self, name: str, more: float) -> None:
        """Add to a number that is kept."""
        insert = "INSERT INTO counters VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + ?"
        self._connection.execute(insert, (name, more, more))

    @contextmanager
    def _transaction(self, time: float | None) -> Iterator[float]:
        """All of it or nothing, at a time that is not before that of an earlier call."""
        before = self.counter("time")
        now = max(clock.time(), before) if time is None else float(time)  # clocks are put back now and then
        if not math.isfinite(now) or now < before:
            msg = f"time must not go back: {now:.17g} comes after {before:.17g}. Check the order of calls."
            raise ValueError(msg)
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield now
            self._connection.execute("INSERT OR REPLACE INTO counters VALUES ('time', ?)", (now,))
            self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:  # something went wrong
                self._connection.execute("ROLLBACK")


def _refuse_wrong(one: str, target: float, known: KeptRow | None) -> None:
    """Refuse a target that nobody waits for."""
    if known is None:
        msg = f"id {one} was never expected, or its time is over; call expect before observe."
        raise ValueError(msg)
    if known.target is not None and known.target == target:
        msg = f"id {one} was observed before; give each target once."
        raise ValueError(msg)
    if known.target is not None:
        msg = (
            f"id {one} was observed as {known.target:g} before, now as {target:g}; a target that counted cannot change."
        )
        raise ValueError(msg)
