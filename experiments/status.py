"""Which stored results are still what the code would give? One line each, of experiments and of benchmarks."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import provenance
from benchmarks.provenance import Origin, changes, is_in_history, narrowed, sessions, strangers
from experiments.confirm import CONFIRMED, kept, rows_digest
from experiments.protocol import Experiment, Store, as_json, differing, starts
from experiments.quoted import quoted
from experiments.replay import is_of, replays, script_of


@dataclass(frozen=True)
class Status:
    """Of one result: what made it, whether it is what the code gives, and why.

    The state is "current", "confirmed" (since the code changed, some of its units, or the quick run of a benchmark,
    were computed anew and gave the same numbers), "stale", "unknown" or "not run".
    """

    name: str
    state: str
    made: str = ""
    why: str = ""

    @property
    def short(self) -> str:
        """The state, and the first of the reasons, for a page."""
        return f"{self.state}: {self.reason}" if self.why else self.state

    @property
    def reason(self) -> str:
        """The first of the reasons."""
        return textwrap.shorten(self.why, 200, placeholder=" ...")


def of_all(experiments: Iterable[Experiment[Any]], results: Path) -> list[Status]:
    """All experiments, then all benchmarks."""
    found = [of_experiment(experiment, Store(results, experiment.file_name)) for experiment in experiments]
    return found + of_benchmarks(provenance.RESULTS)


def of_experiment(experiment: Experiment[Any], store: Store) -> Status:
    """Of the stored rows."""
    name = f"experiments/{experiment.file_name}"
    record = store.record()
    if record is None:
        return Status(name, "not run")
    from_here = starts(experiment)
    found = _of_sessions(name, [narrowed(one, from_here) for _, one in record.sessions], from_here)
    reasons = [found.why] if found.why else []
    wanted = as_json(experiment.settings)
    n_units = len(experiment.units(experiment.settings))
    if len(record.done) < n_units:
        reasons.insert(0, f"unfinished, {len(record.done)} of {n_units} units")
    if record.settings != wanted:
        reasons.insert(0, f"other settings: {differing(record.settings, wanted)}")
    state = "stale" if found.state == "current" and reasons else found.state
    confirmed = kept(store.folder).get(experiment.file_name)
    if (
        state in {"stale", "unknown"}
        and record.settings == wanted
        and len(record.done) == n_units
        and confirmed
        and confirmed.rows == rows_digest(store)
        and not changes(narrowed(confirmed.made, from_here))
    ):
        commits = " and ".join(commit[:10] for commit in confirmed.then.split())
        there = f" as by the code of {commits} on that machine" if commits else ""
        there += "" if confirmed.off is None else f", where they are off from those stored by up to {confirmed.off:.1%}"
        said = f"{len(confirmed.units)} of {n_units} units come out the same at {_made(confirmed.made)}{there}"
        return Status(name, CONFIRMED, found.made, "; ".join([said, *reasons]))
    return Status(name, state, found.made, "; ".join(reasons))


def of_benchmarks(folder: Path) -> list[Status]:
    """Of each result in the folder, and of scripts that have none."""
    names = {path.stem for path in folder.iterdir() if path.suffix in {".md", ".csv"}}
    scripts = {path.relative_to(provenance.ROOT).as_posix(): path.stem for path in folder.parent.glob("*_*.py")}
    run = {script_of(name, folder) for name in names}
    missing = [Status(f"benchmarks/{stem}", "not run") for script, stem in scripts.items() if script not in run]
    return sorted([*(of_benchmark(folder, name) for name in names), *missing], key=lambda one: one.name)


def of_benchmark(folder: Path, name: str) -> Status:
    """Of one result of a benchmark."""
    record = folder / f"{name}.json"
    if not record.exists():
        return Status(f"benchmarks/{name}", "unknown", why="no record")
    others = strangers(record)
    if others:
        return Status(f"benchmarks/{name}", "unknown", why=f"not what the record was written with: {', '.join(others)}")
    made, script = sessions(record), script_of(name, folder)
    own = [script] if script else []
    found = _of_sessions(f"benchmarks/{name}", made, own)
    repeated = replays(folder).get(name)
    if found.state == "stale" and repeated and is_of(repeated, made) and not changes(repeated.made, own):
        said = f"{repeated.n_numbers} numbers of its quick run are the same at {_made(repeated.made)}"
        return Status(found.name, CONFIRMED, found.made, f"{said}; {found.why}")
    return found


def _of_sessions(name: str, made: Sequence[Origin], from_here: Sequence[str]) -> Status:
    """Stale if one of the sessions is; `from_here` is what records that do not say so start from."""
    if not all(one.sources for one in made):
        return Status(name, "unknown", why="no record of its sources")
    reasons = list(dict.fromkeys(reason for one in made for reason in changes(one, from_here)))
    said = ", ".join(_made(one) for one in made)
    return Status(name, "stale" if reasons else "current", said, "; ".join(reasons))


def _made(one: Origin) -> str:
    """Commit and date; "+" for sources that were not committed, "?" for a commit that is not in this history."""
    commit = (one.commit or "no commit")[:10] + ("+" if one.dirty else "")
    return f"{commit}{'' if one.commit and is_in_history(one.commit) else '?'} {one.date[:10]}"


def of_quoted(found: Sequence[Status], pages: Iterable[Path]) -> list[str]:
    """A line for each result that README and docs quote and that is not current, with the numbers."""
    numbers: dict[str, list[str]] = {}
    for page in pages:
        for one in quoted(page):
            numbers.setdefault(one.name, []).append(f"{one.text} ({one.page}:{one.line})")
    states = {name: state_of(found, name) for name in numbers}
    return [f"{name}, {states[name]}: {', '.join(held)}" for name, held in numbers.items() if states[name] != "current"]


def state_of(found: Sequence[Status], name: str) -> str:
    """The state of a result by its name, the worst of its parts if it joins several."""
    states = {one.name.partition("/")[2]: one.state for one in found}
    # A page that joins several experiments has no record of its own.
    of = [states[name]] if name in states else [states[one] for one in states if one.startswith(f"{name}-")]
    return next((one for one in ("stale", "unknown", "not run") if one in of), "current")


def note(found: Sequence[Status], page: Path) -> str:
    """What a page says of numbers that it quotes from results which are not current; nothing where all are."""
    names = dict.fromkeys(one.name for one in quoted(page))
    old = [name for name in names if state_of(found, name) != "current"]
    if not old:
        return ""
    return f"*Measured with an earlier state of the code: {', '.join(old)}; `make results-status` says what changed.*"


def table(found: Sequence[Status], width: int = 120) -> str:
    """One line for each result, and how many there are of each kind."""
    wide = [max(len(getattr(one, what)) for one in found) for what in ("name", "state", "made")]
    lines = []
    for one in found:
        start = "  ".join(text.ljust(n) for text, n in zip((one.name, one.state, one.made), wide, strict=True))
        lines += [start.rstrip(), *textwrap.wrap(one.reason, width, initial_indent="    ", subsequent_indent="    ")]
    states = [one.state for one in found]
    counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(sorted(states)))
    return "\n".join([*lines, "", f"{len(found)} results: {counts}."])
