"""How an experiment runs: rows are saved with what made them, and a stopped run goes on.

An experiment is a list of units of work and a function from one unit to its rows. The rows go to NAME.csv, unit after
unit as they are finished. NAME.json, replaced in one step after each unit, says which settings, sources, data and
versions made them and where in the CSV each finished unit stops. Whatever lies behind the last of these bytes was cut
short and is done again, so an interruption at any moment loses no finished unit and doubles none. Each unit draws from
a stream of its own, keyed by the seed and the unit, so a run that was stopped, or spread over processes, gives the same
rows. A run may be asked for some units only; the others follow when they are asked for.

A run does not go on by itself where sources, data or versions have changed since: half of its rows would come from
other code than the rest. If it is told to, by `--mixed`, the record names each session and the units that it made.
"""

from __future__ import annotations

import csv
import fcntl
import hashlib
import inspect
import io
import json
import math
import multiprocessing
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import islice, takewhile
from multiprocessing import connection
from pathlib import Path
from threading import Thread
from typing import Any, BinaryIO, ClassVar, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.provenance import ROOT, Origin, changed_sources, narrowed, origin, write

Value: TypeAlias = str | int | float
Row: TypeAlias = Mapping[str, Value]
Unit: TypeAlias = tuple[str | int, ...]

PUBLISHED = Path(__file__).parent / "published"
USES = ["experiments.protocol.stream"]  # what makes the rows of any experiment beside its own file


class Settings(Protocol):
    """A frozen dataclass of JSON values with a seed."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def seed(self) -> int: ...


S = TypeVar("S", bound=Settings)


@dataclass(frozen=True)
class Experiment(Generic[S]):
    """What there is to know about one figure or table of the paper.

    `measure` gets the settings, a unit and the unit's own random stream; it must be a function of a module, so that
    other processes find it. `tables`, `headline` (one sentence), `finding` (a paragraph) and `figure` see stored rows
    only. `keys` are the columns by which rows meet those of `published/NAME.csv`; `unpublished` says why there is none.
    An experiment that makes some columns of a table only has a word for them in `columns`, and files of its own. What
    it reads are files below the folder PIMETER_DATA, or of this repository. With `by_split` its units are a dataset and
    the number of a split each, so that some of them can be asked for. Columns with `only_if_named` take hours, or data
    that few have.
    """

    name: str
    title: str
    settings: S
    quick: S
    units: Callable[[S], Sequence[Unit]]
    measure: Callable[[S, Unit, np.random.Generator], Sequence[Row]]
    tables: Callable[[Sequence[Row]], Mapping[str, Sequence[Row]]]
    headline: Callable[[Sequence[Row]], str]
    finding: Callable[[Sequence[Row]], str]
    figure: Callable[[Sequence[Row], Path], None] | None = None
    keys: tuple[str, ...] = ()
    unpublished: str = ""
    columns: str = ""
    reads: Callable[[S], Sequence[str]] = lambda _: ()
    by_split: bool = False
    only_if_named: bool = False
    packages: tuple[str, ...] = ("pimeter", "numpy", "scipy", "scikit-learn")

    @property
    def file_name(self) -> str:
        """Name of its files, without the ending."""
        return f"{self.name}-{self.columns}" if self.columns else self.name


class RefusedError(ValueError):
    """The run would mix rows that do not belong together."""


@dataclass(frozen=True)
class Record:
    """How rows were made, and the finished units with the byte of the CSV at which each stops.

    Each session has the number of units that were finished when it began. `seconds` has the processor time of units,
    but for those of records that were written before it was kept.
    """

    settings: Mapping[str, Any]
    sessions: tuple[tuple[int, Origin], ...]
    done: tuple[tuple[Unit, int], ...] = ()
    seconds: Mapping[Unit, float] = field(default_factory=dict)

    @property
    def last(self) -> Origin:
        """The session that made the latest rows."""
        return self.sessions[-1][1]


class Timed(NamedTuple):
    """Rows of a unit, and the seconds of processor time that they took."""

    rows: Sequence[Row]
    seconds: float


@dataclass(frozen=True)
class Store:
    """The two files of a run: rows, and the record that vouches for them."""

    folder: Path
    name: str

    @property
    def csv(self) -> Path:
        return self.folder / f"{self.name}.csv"

    @property
    def json(self) -> Path:
        return self.folder / f"{self.name}.json"

    def record(self) -> Record | None:
        """The record, less the units that the CSV has lost; None where nothing was run."""
        if not self.json.exists():
            return None
        held = json.loads(self.json.read_text())
        size = self.csv.stat().st_size if self.csv.exists() else 0
        done = takewhile(lambda item: item[1] <= size, held["done"].items())
        sessions = tuple((one.pop("units_before"), Origin(**one)) for one in held["sessions"])
        units = {tuple(json.loads(unit)): end for unit, end in done}
        took = {tuple(json.loads(unit)): seconds for unit, seconds in held.get("seconds", {}).items()}
        seconds = {unit: took[unit] for unit in units if unit in took}
        return Record(held["settings"], sessions, tuple(units.items()), seconds)

    def rows(self) -> list[Row]:
        """All rows of finished units, numbers as numbers."""
        record = self.record()
        if record is None or not record.done:
            return []
        with self.csv.open("rb") as file:
            return parsed(file.read(record.done[-1][1]).decode())

    @contextmanager
    def locked(self) -> Iterator[BinaryIO]:
        """The CSV opened for appending by this process alone; the lock lasts as long as the process."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.csv.open("ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                msg = f"Another run is writing {self.csv.name}; wait for it or stop it."
                raise RefusedError(msg) from None
            yield file

    def vouch(self, record: Record) -> None:
        """Replace the record in one step: a reader finds the old one or the new one, never half of one."""
        done, seconds = (
            {json.dumps(unit): value for unit, value in held} for held in (record.done, record.seconds.items())
        )
        sessions = [{"units_before": n, **asdict(one)} for n, one in record.sessions]
        made = {"settings": record.settings, "sessions": sessions, "done": done, "seconds": seconds}
        write({self.json: json.dumps(made, indent=1)})


def run(
    experiment: Experiment[S],
    settings: S,
    store: Store,
    *,
    fresh: bool = False,
    mixed: bool = False,
    n_jobs: int = 1,
    is_wanted: Callable[[Unit], bool] = lambda _: True,
    seconds: float = math.inf,
) -> Sequence[Row]:
    """Measure the wanted units that are not stored yet and return all rows as stored.

    Stored rows are discarded if `fresh`, and with `mixed` others are added to them also where sources have changed. No
    unit is begun after so many seconds; those that were are finished.
    """
    deadline = time.monotonic() + seconds
    units = [tuple(unit) for unit in experiment.units(settings)]
    with store.locked() as file:
        record = _resumed(experiment, settings, units, store, fresh=fresh, mixed=mixed)
        store.vouch(record)
        done, took = list(record.done), dict(record.seconds)
        file.seek(file.truncate(done[-1][1] if done else 0))
        columns = [*next(iter(store.rows()), {})]
        held = {unit for unit, _ in done}
        left = [unit for unit in units if unit not in held and is_wanted(unit)]
        with closing(_measured(experiment, settings, left, n_jobs, deadline)) as measured:
            for unit, found in _shown(measured, len(done), len(done) + len(left)):
                file.write(_csv_text(found.rows, columns, header=not file.tell()).encode())
                file.flush()
                os.fsync(file.fileno())
                done.append((unit, file.tell()))
                took[unit] = round(found.seconds, 1)
                store.vouch(replace(record, done=tuple(done), seconds=took))
    return store.rows()


def timed(measure: Callable[[S, Unit, np.random.Generator], Sequence[Row]], settings: S, unit: Unit) -> Timed:
    """The rows of a unit, and how long a processor took for them."""
    began = time.process_time()
    rows = measure(settings, unit, stream(settings.seed, unit))
    return Timed(rows, time.process_time() - began)


def stream(seed: int, unit: Unit) -> np.random.Generator:
    """The unit's own random stream; it depends on no other unit and no order."""
    key = hashlib.sha256(json.dumps(unit).encode()).digest()
    return np.random.default_rng([seed, int.from_bytes(key[:16])])


def parsed(text: str) -> list[Row]:
    """The rows of a CSV, numbers as numbers."""
    return [{key: _value(cell) for key, cell in row.items()} for row in csv.DictReader(io.StringIO(text))]


def paper_rows(name: str, key: str) -> dict[str, Row]:
    """The paper's rows of a table, by the column that names them."""
    return {str(row[key]): row for row in parsed((PUBLISHED / f"{name}.csv").read_text())}


def made_by(experiment: Experiment[S], settings: S) -> Origin:
    """What would make its rows now."""
    folder, *uses = starts(experiment)
    return origin(ROOT / folder, packages=experiment.packages, data=experiment.reads(settings), uses=uses)


def starts(experiment: Experiment[Any]) -> list[str]:
    """What its rows depend on: how units are listed and measured, settings, streams, but not what is said of rows."""
    definitions = (experiment.measure, experiment.units, type(experiment.settings))
    return ["experiments", *(_name(one) for one in definitions), *USES]


def _name(definition: Callable[..., object]) -> str:
    """Of a function or class in a file of the repository, with its module; the path of another file."""
    file = Path(inspect.getfile(definition)).resolve()
    if not file.is_relative_to(ROOT):
        return str(file)
    return ".".join([*file.relative_to(ROOT).with_suffix("").parts, definition.__qualname__])


def _resumed(
    experiment: Experiment[S], settings: S, units: list[Unit], store: Store, *, fresh: bool, mixed: bool
) -> Record:
    """The stored record or a new one; refuses to mix rows made in different ways."""
    wanted = as_json(settings)
    record = None if fresh else store.record()
    if record is None:
        if not fresh and store.csv.stat().st_size:
            msg = f"{store.csv.name} has no {store.json.name} to say how it was made; --fresh starts anew."
            raise RefusedError(msg)
        return Record(wanted, ((0, made_by(experiment, settings)),))
    if record.settings != wanted:
        changed = differing(record.settings, wanted)
        msg = f"{store.csv.name} was made with other settings ({changed}); --fresh starts anew and discards its rows."
        raise RefusedError(msg)
    if not {unit for unit, _ in record.done} <= set(units):
        msg = f"The units of work in {store.json.name} are not those of {experiment.name} now; --fresh starts anew."
        raise RefusedError(msg)
    if len(record.done) == len(units):
        return record
    now = made_by(experiment, settings)
    sessions = [(n, one) for n, one in record.sessions if n < len(record.done)]
    if sessions and sessions[-1][1].is_like(now):
        return replace(record, sessions=tuple(sessions))
    if sessions and not mixed:
        _refuse_other_origin(store, sessions[-1][1], now)
    return replace(record, sessions=(*sessions, (len(record.done), now)))


def _refuse_other_origin(store: Store, then: Origin, now: Origin) -> None:
    """Raise where rows would come from different code, data or versions; another commit alone is no difference."""
    others = []
    data = [name for name in {**then.data, **now.data} if then.data.get(name) != now.data.get(name)]
    for what, names in (("sources", changed_sources(narrowed(then, now.starts), now.starts)), ("data", data)):
        if names:
            others.append(
                f"other {what} ({', '.join(names)})" if getattr(then, what) else f"{what} that were not recorded"
            )
    if then.versions != now.versions:
        others.append(f"other versions ({differing(then.versions, now.versions)})")
    if others:
        msg = (
            f"{store.csv.name} was made with {' and '.join(others)}; --fresh starts anew and discards its rows, "
            "--mixed goes on and records both."
        )
        raise RefusedError(msg)


def as_json(settings: Settings) -> dict[str, Any]:
    """Settings as they are stored."""
    held: dict[str, Any] = json.loads(json.dumps(asdict(settings)))
    return held


def differing(held: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """What is not the same in both."""
    names = [key for key in {**held, **wanted} if held.get(key) != wanted.get(key)]
    return "; ".join(f"{key}: {held.get(key)} there, {wanted.get(key)} here" for key in names)


def _measured(
    experiment: Experiment[S], settings: S, units: Sequence[Unit], n_jobs: int, deadline: float
) -> Generator[tuple[Unit, Timed]]:
    """Units with their rows, in the order of the units; none is begun after the deadline."""
    tasks = takewhile(lambda _: time.monotonic() < deadline, units)
    if n_jobs == 1 or len(units) < 2:
        for unit in tasks:
            yield unit, timed(experiment.measure, settings, unit)
        return
    # Not forked: a forked child inherits locks that other threads hold.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(n_jobs, len(units)), mp_context=context, initializer=_prepared)
    begun: deque[tuple[Unit, Future[Timed]]] = deque()
    try:
        while True:
            begun += (
                (unit, pool.submit(timed, experiment.measure, settings, unit))
                for unit in islice(tasks, n_jobs - len(begun))
            )
            if not begun:
                return
            unit, found = begun.popleft()
            yield unit, found.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _prepared() -> None:
    """One thread in each worker: threads of several workers that wait for the same cores take ten times as long."""
    threadpool_limits(1)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # of libraries that are loaded later
        os.environ.setdefault(name, "1")
    _end_with_parent()


def _end_with_parent() -> None:
    """Let a worker go quietly: at Ctrl-C, and when its parent was killed and will never ask for results."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    Thread(target=wait, daemon=True).start()


def _shown(items: Iterator[tuple[Unit, Timed]], n_done: int, n_units: int) -> Iterator[tuple[Unit, Timed]]:
    """Items as they come, with a progress bar on a terminal."""
    if not sys.stderr.isatty():
        yield from items
        return
    began = time.monotonic()

    def show(n_new: int) -> None:
        n, seconds = n_done + n_new, time.monotonic() - began
        left = f", about {seconds / n_new * (n_units - n):.0f} s left" if n_new and n < n_units else ""
        bar = "#" * (30 * n // n_units)
        print(f"\r[{bar:.<30}] {n}/{n_units}, {seconds:.0f} s{left}\033[K", end="", file=sys.stderr, flush=True)

    show(0)
    for n_new, item in enumerate(items, start=1):
        yield item
        show(n_new)
    print(file=sys.stderr)


def _csv_text(rows: Sequence[Row], columns: list[str], *, header: bool) -> str:
    """Rows as text; the first row of all sets the columns."""
    columns += [] if columns or not rows else rows[0]
    for row in rows:
        if list(row) != columns:
            msg = f"All rows of an experiment have the same columns; got {list(row)} after {columns}."
            raise ValueError(msg)
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    if header and rows:
        writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _value(text: str) -> Value:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
