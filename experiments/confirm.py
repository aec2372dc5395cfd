"""Do stored rows still come out? Some units of work are computed anew and compared with what is stored.

Where sources have changed, a result is stale until all of it is computed again, which can take hours. If the change
was to alter no number, some units tell whether it did. `confirmed.json` keeps which ones were computed anew, and by
which code; that counts as long as the same code would run now, and the same rows are stored.

Networks are trained to other digits on another kind of processor. Where units do not come out as they are stored, they
are also computed by the code that stored or last confirmed them, on this machine: if both codes agree, no change of
the code is why.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.commits import built
from benchmarks.provenance import Origin, is_in_history, write
from experiments.protocol import (
    Experiment,
    Record,
    RefusedError,
    Row,
    Store,
    Unit,
    Value,
    as_json,
    made_by,
    parsed,
    timed,
)
from experiments.replay import FILE

CONFIRMED = "confirmed"  # the state of such a result
ROUNDING = 1e-6  # relative difference of numbers that the order of a sum explains
TIMES = "seconds"  # how names of columns end that are never the same twice
UNITS = """
import json, sys
from experiments.__main__ import EXPERIMENTS
from experiments.protocol import stream
experiment = EXPERIMENTS[sys.argv[1]]
settings = experiment.settings
for unit in map(tuple, json.loads(sys.argv[2])):
    rows = experiment.measure(settings, unit, stream(settings.seed, unit))
    print(json.dumps([dict(row) for row in rows], default=float))
"""


@dataclass(frozen=True)
class Confirmation:
    """Units that came out the same, and the code that computed them.

    The same as they are stored; or, if `then` is a commit, as by the code of that commit on the same machine, where
    numbers are off from those stored by a fraction of up to `off`. `then` has several commits, with spaces between, if
    these stored the units. They took so many seconds of processor time. `rows` is a hash of all that was stored:
    nothing is said of other rows.
    """

    units: Sequence[Unit]
    made: Origin
    then: str = ""
    off: float | None = None  # None: not known
    seconds: float | None = None  # None: of before this was kept
    rows: str = ""  # so, too


def kept(results: Path) -> dict[str, Confirmation]:
    """Confirmations by the name of the result."""
    path = results / FILE
    held = json.loads(path.read_text()) if path.exists() else {}
    return {
        name: Confirmation([tuple(unit) for unit in one.pop("units")], Origin(**one.pop("made")), **one)
        for name, one in held.items()
    }


def confirm(experiment: Experiment[Any], store: Store, is_wanted: Callable[[Unit], bool]) -> Confirmation:
    """Compute the wanted units anew; refuses what differs, and keeps which units do not."""
    record = store.record()
    if record is None or record.settings != as_json(experiment.settings):
        msg = f"{store.csv.name} holds no rows of the present settings: python -m experiments run computes them."
        raise RefusedError(msg)
    made, held = made_by(experiment, experiment.settings), _by_unit(store)
    units = [unit for unit in held if is_wanted(unit)]
    settings = experiment.settings
    by_unit = {unit: timed(experiment.measure, settings, unit) for unit in units}
    found = {unit: one.rows for unit, one in by_unit.items()}
    seconds = round(sum(one.seconds for one in by_unit.values()), 1)
    confirmation = Confirmation(units, made, seconds=seconds, rows=rows_digest(store))
    other = _differences(held, found, "stored")
    if other and not _other_lengths(held, found, "stored"):  # no machine explains those
        at: dict[str, list[Unit]] = {}
        for unit, session in _makers(record, units, kept(store.folder).get(store.name), confirmation.rows).items():
            at.setdefault(_commit_of(session, other), []).append(unit)
        computed = ((commit, _computed_at(commit, store.name, some)) for commit, some in at.items())
        others = (_differences(then, {unit: found[unit] for unit in then}, f"at {one[:10]}") for one, then in computed)
        other = next(filter(None, others), "")
        confirmation = replace(confirmation, then=" ".join(at), off=_largest_difference(held, found))
    if other:
        msg = f"{other}. The result is not what the present code gives: run it again."
        raise RefusedError(msg)
    if units:
        every = kept(store.folder) | {experiment.file_name: confirmation}
        write({store.folder / FILE: json.dumps({name: asdict(one) for name, one in every.items()}, indent=1)})
    return confirmation


def rows_digest(store: Store) -> str:
    """A hash of all rows of finished units."""
    record = store.record()
    end = record.done[-1][1] if record and record.done else 0
    return hashlib.sha256(store.csv.read_bytes()[:end]).hexdigest()[:16] if end else ""


def _makers(record: Record, units: Sequence[Unit], earlier: Confirmation | None, rows: str) -> Mapping[Unit, Origin]:
    """The code that stored each unit, or that confirmed these very units of what is stored."""
    if earlier and earlier.rows == rows and set(units) <= set(earlier.units):
        return dict.fromkeys(units, earlier.made)
    numbers = {unit: i for i, (unit, _) in enumerate(record.done)}
    return {unit: next(one for n, one in reversed(record.sessions) if n <= numbers[unit]) for unit in units}


def _by_unit(store: Store) -> Mapping[Unit, Sequence[Row]]:
    """Stored rows of each finished unit."""
    record, content = store.record(), store.csv.read_bytes()
    start = content.index(b"\n") + 1
    head, found = content[:start], {}
    for unit, end in record.done if record else ():
        found[unit] = parsed((head + content[start:end]).decode())
        start = max(start, end)
    return found


def _commit_of(last: Origin, difference: str) -> str:
    """The commit whose code stored or confirmed rows, if it can be built."""
    commit = str(last.commit)
    if not (last.is_committed and is_in_history(commit)):
        msg = f"{difference}. The code that stored this is not in the history: run it again."
        raise RefusedError(msg)
    return commit


def _computed_at(commit: str, name: str, units: Sequence[Unit]) -> Mapping[Unit, Sequence[Row]]:
    """Rows of units by the code of a commit."""
    with built(commit) as tree:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tree / "src"), str(tree)])}
        command = [sys.executable, "-c", UNITS, name, json.dumps(units)]
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        msg = f"{name} cannot be computed by the code of {commit[:10]}:\n{done.stderr[-2000:]}"
        raise RefusedError(msg)
    rows = [json.loads(line) for line in done.stdout.splitlines()[-len(units) :]]
    return dict(zip(units, rows, strict=True))


def _differences(held: Mapping[Unit, Sequence[Row]], found: Mapping[Unit, Sequence[Row]], when: str) -> str:
    """What of the rows found is not as it was, of the first unit that differs; empty if all is."""
    lengths = _other_lengths(held, found, when)
    if lengths:
        return lengths
    for unit, rows in found.items():
        for old, new in zip(held[unit], rows, strict=True):
            others = [
                f"{key} {old[key]} {when}, {new[key]} now"
                for key in old
                if not (key.endswith(TIMES) or _is_same(old[key], new[key]))
            ]
            if others:
                return f"{unit}: {'; '.join(others)}"
    return ""


def _other_lengths(held: Mapping[Unit, Sequence[Row]], found: Mapping[Unit, Sequence[Row]], when: str) -> str:
    """The first unit with another number of rows, and these; empty if there is none."""
    others = (
        f"{unit}: {len(held[unit])} rows {when}, {len(rows)} now"
        for unit, rows in found.items()
        if len(held[unit]) != len(rows)
    )
    return next(others, "")


def _largest_difference(held: Mapping[Unit, Sequence[Row]], found: Mapping[Unit, Sequence[Row]]) -> float:
    """By which fraction of the larger one numbers of the units differ at most; 1 where one is missing."""
    pairs = [
        (old[key], new[key])
        for unit, rows in found.items()
        for old, new in zip(held[unit], rows, strict=True)
        for key in old
        if not key.endswith(TIMES)
    ]
    numbers = [(a, b) for a, b in pairs if not isinstance(a, str) and not isinstance(b, str) and not _is_same(a, b)]
    differences = [abs(a - b) / max(abs(a), abs(b)) for a, b in numbers]
    return max((1.0 if math.isnan(one) else one for one in differences), default=0.0)


def _is_same(old: Value, new: Value) -> bool:
    """Whether numbers differ by rounding alone; a missing one is NaN in both."""
    if isinstance(old, str) or isinstance(new, str):
        return str(old) == str(new)
    return math.isclose(old, new, rel_tol=ROUNDING) or (math.isnan(old) and math.isnan(new))
