"""Do stored rows still come out? Some units of work are computed anew and compared with what is stored.

Where sources have changed, a result is stale until all of it is computed again, which can take hours. If the change
was to alter no number, some units tell whether it did. `confirmed.json` keeps which ones were computed anew, and by
which code; that counts as long as the same code would run now.

Networks are trained to other digits on another kind of processor. Where units do not come out as they are stored, they
are also computed by the code that stored or last confirmed them, on this machine: if both codes agree, no change of
the code is why.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.commits import built
from benchmarks.provenance import Origin, is_in_history, write
from experiments.protocol import (
    Experiment,
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

FILE = "confirmed.json"
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
    numbers are off from those stored by a fraction of up to `off`. They took so many seconds of processor time.
    """

    units: Sequence[Unit]
    made: Origin
    then: str = ""
    off: float | None = None  # None: not known
    seconds: float | None = None  # None: of before this was kept


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
    confirmation = Confirmation(units, made, seconds=seconds)
    other = _differences(held, found, "stored")
    if other:
        earlier = kept(store.folder).get(experiment.file_name)
        is_linked = earlier is not None and set(units) <= set(earlier.units)  # to what is stored, by these very units
        then = _commit_of(earlier.made if earlier and is_linked else record.sessions[-1][1], other)
        other = _differences(_computed_at(then, experiment.file_name, units), found, f"at {then[:10]}")
        confirmation = Confirmation(units, made, then, _largest_difference(held, found), seconds)
    if other:
        msg = f"{other}. The result is not what the present code gives: run it again."
        raise RefusedError(msg)
    if units:
        every = kept(store.folder) | {experiment.file_name: confirmation}
        write({store.folder / FILE: json.dumps({name: asdict(one) for name, one in every.items()}, indent=1)})
    return confirmation


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
    if last.dirty or not (last.commit and is_in_history(last.commit)):
        msg = f"{difference}. The code that stored this is not in the history: run it again."
        raise RefusedError(msg)
    return last.commit


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
    for unit, rows in found.items():
        if len(held[unit]) != len(rows):
            return f"{unit}: {len(held[unit])} rows {when}, {len(rows)} now"
        for old, new in zip(held[unit], rows, strict=True):
            others = [
                f"{key} {old[key]} {when}, {new[key]} now"
                for key in old
                if not (key.endswith(TIMES) or _is_same(old[key], new[key]))
            ]
            if others:
                return f"{unit}: {'; '.join(others)}"
    return ""


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
