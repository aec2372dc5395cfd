"""Do benchmarks print what they printed? Their quick runs, at the commit that stored a result and now.

A full run may take an hour. Where a change of the code was to alter no number, `python -m experiments confirm
benchmarks/NAME` says whether it did: the script as it was, with the library as it was, has to print in its quick run
what it prints now, to the last digit. `confirmed.json` keeps that it did, which counts as long as the same code would
run, and the result is that of the same commit. Results that are times can only be measured again.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks import provenance
from benchmarks.commits import built
from benchmarks.provenance import Origin, is_in_history, origin, sessions, write
from experiments.protocol import RefusedError

FILE = "confirmed.json"  # of a folder of results: which were confirmed, and how
NUMBER = re.compile(r"(?<![\w.])\d*\.?\d+")
# What takes no seed, as code that `measure` prints, draws the same both times.
SEEDED = "import runpy, sys, numpy; numpy.random.seed(0); sys.argv = sys.argv[1:]; sys.path[0] = 'benchmarks'; "
SEEDED += "runpy.run_path(sys.argv[0], run_name='__main__')"
LEAST_NUMBERS = 10  # in the tables of a quick run; fewer could agree by chance, as could versions and seeds


@dataclass(frozen=True)
class Replay:
    """A quick run that printed the same numbers at an earlier commit and by the code of `made`."""

    then: str
    n_numbers: int
    made: Origin


def replays(folder: Path) -> dict[str, Replay]:
    """Those that are kept, by the name of the result."""
    path = folder / FILE
    held = json.loads(path.read_text()) if path.exists() else {}
    return {name: Replay(one["then"], one["n_numbers"], Origin(**one["made"])) for name, one in held.items()}


def replay(name: str, folder: Path | None = None) -> Replay:
    """Run the script of a result both ways; refuses a result whose script prints something else now."""
    folder = folder or provenance.RESULTS
    made_by = sessions(folder / f"{name}.json")
    commit = _commit(name, made_by)
    script, options = _script(name, folder)
    made = origin(
        provenance.ROOT / script,
        packages=[package for package in made_by[-1].versions if package != "python"],
        data=made_by[-1].data,
        uses=made_by[-1].starts[1:],
    )
    with built(commit) as tree:
        before = _printed(tree, script, options)
    now = _printed(provenance.ROOT, script, options)
    if before != now:
        lines = difflib.unified_diff(before.splitlines(), now.splitlines(), commit[:10], "now", lineterm="", n=0)
        msg = f"{script} does not print what it printed; run it again.\n" + "\n".join([*lines][:20])
        raise RefusedError(msg)
    n_numbers = sum(len(NUMBER.findall(line)) for line in now.splitlines() if line.startswith("|"))
    if n_numbers < LEAST_NUMBERS:
        msg = f"Tables of the quick run of {script} have {n_numbers} numbers, too few to confirm by; run it in full."
        raise RefusedError(msg)
    found = Replay(commit, n_numbers, made)
    every: Mapping[str, Replay] = replays(folder) | {name: found}
    write({folder / FILE: json.dumps({key: asdict(one) for key, one in sorted(every.items())}, indent=1)})
    return found


def _commit(name: str, made_by: Sequence[Origin]) -> str:
    """The one that made a result; the last one, if a run went on at others with the same sources."""
    if not made_by:
        msg = f"{name} has no record of what made it; run it again."
        raise RefusedError(msg)
    last = made_by[-1]
    if any(not one.is_committed or one.sources != last.sources for one in made_by):
        msg = f"{name} was not made by the code of one commit; run it again."
        raise RefusedError(msg)
    commit = str(last.commit)
    if not is_in_history(commit):
        msg = f"{name} was made at {commit[:10]}, which is not in this history; run it again."
        raise RefusedError(msg)
    return commit


def is_of(found: Replay, made_by: Sequence[Origin]) -> bool:
    """Whether it repeats what these sessions made."""
    try:
        return found.then == _commit("", made_by)
    except RefusedError:
        return False


def script_of(name: str, folder: Path) -> str:
    """The script whose result in this folder has a name that begins with its own; empty if there is none."""
    stems = [path.stem for path in folder.parent.glob("*.py") if f"{name}_".startswith(f"{path.stem}_")]
    return f"{folder.parent.name}/{max(stems, key=len)}.py" if stems else ""


def _script(name: str, folder: Path) -> tuple[str, list[str]]:
    """The script of a result; the rest of its name is an option, such as --auto."""
    script = script_of(name, folder)
    if not script:
        msg = f"There is no script of a result {name!r}."
        raise RefusedError(msg)
    option = name[len(Path(script).stem) + 1 :]
    return script, [f"--{option}"] if option else []


def _printed(tree: Path, script: str, options: Sequence[str]) -> str:
    """What the quick run prints with the library of a folder."""
    environment = os.environ | {"PYTHONPATH": str(tree / "src"), "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-c", SEEDED, script, "--quick", *options]
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        msg = f"{' '.join(command[3:])} failed in {tree}:\n{done.stderr[-2000:]}"
        raise RefusedError(msg)
    return done.stdout
