"""Do stored rows still come out? Some units of work are computed anew and compared with what is stored.

Where sources have changed, a result is stale until all of it is computed again, which can take hours. If the change
was to alter no number, some units tell whether it did. `confirmed.json` keeps which ones were computed anew, and by
which code; that counts as long as the same code would run now.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.provenance import Origin, write
from experiments.protocol import Experiment, RefusedError, Row, Store, Unit, Value, as_json, made_by, parsed, stream

FILE = "confirmed.json"
ROUNDING = 1e-6  # relative difference of numbers that the order of a sum explains
TIMES = "seconds"  # how names of columns end that are never the same twice


@dataclass(frozen=True)
class Confirmation:
    """Units that came out as they are stored, and the code that computed them."""

    units: Sequence[Unit]
    made: Origin


def kept(results: Path) -> dict[str, Confirmation]:
    """Confirmations by the name of the result."""
    path = results / FILE
    held = json.loads(path.read_text()) if path.exists() else {}
    return {
        name: Confirmation([tuple(unit) for unit in one["units"]], Origin(**one["made"])) for name, one in held.items()
    }


def confirm(experiment: Experiment[Any], store: Store, is_wanted: Callable[[Unit], bool]) -> Confirmation:
    """Compute the wanted units anew; refuses what differs from the stored rows, and keeps that the others do not."""
    record = store.record()
    if record is None or record.settings != as_json(experiment.settings):
        msg = f"{store.csv.name} holds no rows of the present settings: python -m experiments run computes them."
        raise RefusedError(msg)
    made, held = made_by(experiment, experiment.settings), _by_unit(store)
    units = [unit for unit in held if is_wanted(unit)]
    for unit in units:
        found = experiment.measure(experiment.settings, unit, stream(experiment.settings.seed, unit))
        _compare(unit, held[unit], found)
    confirmation = Confirmation(units, made)
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


def _compare(unit: Unit, held: Sequence[Row], found: Sequence[Row]) -> None:
    if len(held) != len(found):
        msg = f"{unit}: {len(held)} rows are stored, but {len(found)} come out now."
        raise RefusedError(msg)
    for old, new in zip(held, found, strict=True):
        others = [
            f"{key} {old[key]} stored, {new[key]} now"
            for key in old
            if not (key.endswith(TIMES) or _is_same(old[key], new[key]))
        ]
        if others:
            msg = f"{unit}: {'; '.join(others)}. The result is not what the present code gives: run it again."
            raise RefusedError(msg)


def _is_same(old: Value, new: Value) -> bool:
    """Whether numbers differ by rounding alone; a missing one is NaN in both."""
    if isinstance(old, str) or isinstance(new, str):
        return str(old) == str(new)
    return math.isclose(old, new, rel_tol=ROUNDING) or (math.isnan(old) and math.isnan(new))
