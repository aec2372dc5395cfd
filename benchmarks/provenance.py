"""Results that know where they come from: `save` writes a result with a record of what made it.

    save(__file__, text)  # results/NAME.md, and the record NAME.json beside it

The record names the commit, the source files and the data files with a hash of each, versions, the date and the kind of
machine. Of a source file those definitions are hashed that the script depends on: `dependencies.py` follows names from
the script through the repository, as what is loaded in one process would say nothing of its workers. What a script
starts by name (`python -m pimeter`) it has to name in `uses`.

What differs from the record now is said by `changes`, for all results by `python -m experiments status`.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING or __package__:
    from benchmarks.dependencies import BUILT_FROM, committed, standing
else:  # of a script, which imports what lies beside it
    from dependencies import BUILT_FROM, committed, standing

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PACKAGES = ("pimeter", "numpy", "scipy", "scikit-learn")
EDITED = "edited while it ran"
NOT_BUILT = "not built into what ran"
MISSING = "not installed"
STARTED = time.time()
T = TypeVar("T")


@dataclass(frozen=True)
class Origin:
    """What made a result, in one session.

    `dirty` are source files that differed from the commit. `sources` and `data` have a hash for each file: of data its
    content, of a source what `starts` depend on in it, which are the script and what it names in `uses`. In place of
    a hash, EDITED or NOT_BUILT says why there is none, the latter of native code where an older build or NumPy's kernel
    ran. There are no sources where files outside of the repository made the result. Records that were written before
    `starts` was kept have hashes of whole source files. `environment` is the name of the virtual environment: versions
    are only comparable within one. `machine` is its kind, which matters to times alone.
    """

    commit: str | None
    dirty: Sequence[str]
    date: str
    environment: str
    versions: Mapping[str, str]
    sources: Mapping[str, str]
    data: Mapping[str, str]
    machine: str = ""  # of records that were written before it was kept
    starts: Sequence[str] = ()

    @property
    def is_committed(self) -> bool:
        """Whether its commit says what made the result."""
        marks = {EDITED, NOT_BUILT}.intersection(self.sources.values())
        return bool(self.sources and self.commit and not self.dirty and not marks)

    def is_like(self, other: Origin) -> bool:
        """Whether they differ by no more than the date and the machine."""
        apart = {"date": "", "machine": ""}
        return asdict(self) | apart == asdict(other) | apart


def origin(
    script: str | Path, *, packages: Iterable[str] = PACKAGES, data: Iterable[str | Path] = (), uses: Iterable[str] = ()
) -> Origin:
    """Where the numbers of this script come from, as things stand.

    Parameters
    ----------
    script
        The file to follow names from.
    packages
        Distributions whose versions are kept.
    data
        Files that were read: paths, or names below the folder PIMETER_DATA; those that are not there were not read.
    uses
        Modules and definitions beyond what the script names, such as programs that it starts.
    """
    starts = [_name(script), *uses]
    held = _as_run(sources(script, uses))
    outside = [name for name in starts if name.endswith(".py") and name not in held]
    if _is_elsewhere() or outside:
        what = ", ".join(dict.fromkeys(outside)) or "pimeter"
        print(f"{what} is not of {ROOT.name}: the record will not say which sources made this.", file=sys.stderr)
        held = {}
    elif NOT_BUILT in held.values():
        print("src/native is not what ran: make builds it. The record will say so.", file=sys.stderr)
    return Origin(
        commit=_git("rev-parse", "HEAD") or os.environ.get("PIMETER_COMMIT"),
        dirty=[line[3:] for line in _git("status", "--porcelain", "-uall", "--", *held).splitlines()] if held else [],
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        environment=Path(sys.prefix).name,
        versions=versions(packages),
        sources=held,
        data=_digests(data),
        machine=f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs",
        starts=starts,
    )


def changes(made: Origin, starts: Sequence[str] = ()) -> list[str]:
    """What is not as it was when the result was made; empty if all is.

    Of a record that does not say what it starts from, `starts` may.
    """
    found = []
    marked = {mark: [name for name, held in made.sources.items() if held == mark] for mark in (EDITED, NOT_BUILT)}
    found += [f"{mark}: {', '.join(names)}" for mark, names in marked.items() if names]
    changed = [name for name in changed_sources(made, starts) if made.sources.get(name) not in marked]
    if changed:
        found.append(f"changed since: {', '.join(changed)}")
    read = {name: _data_path(name) for name in made.data}
    other = [name for name, path in read.items() if path.exists() and digest(path) != made.data[name]]
    if other:
        found.append(f"other data: {', '.join(other)}")
    if made.environment == Path(sys.prefix).name:
        now = versions(name for name in made.versions if name != "python")
        moved = [
            f"{name} {old} then, {now[name]} now"
            for name, old in made.versions.items()
            if now[name] not in {old, MISSING}
        ]
        if moved:
            found.append(f"other versions: {', '.join(moved)}")
    return found


def narrowed(made: Origin, starts: Sequence[str]) -> Origin:
    """The record as it would be from other starts, such as a function in place of its file: its commit says so.

    As it stands where the commit does not say it: sources were edited, or the commit is not in this history.
    """
    if list(made.starts) == list(starts) or not (made.is_committed and is_in_history(str(made.commit))):
        return made
    return replace(made, sources=committed(ROOT, str(made.commit)).digests(starts), starts=starts)


def changed_sources(made: Origin, starts: Sequence[str] = ()) -> list[str]:
    """Source files in which something that counts is not as it was; `starts` as in `changes`."""
    now = standing(ROOT).digests(made.starts or starts)
    if made.starts:
        return _differing(made.sources, now)
    # Hashes of whole files: where some of those that count differ, the commit says whether what counts in them does.
    changed = [name for name in now or made.sources if not _is_same(ROOT / name, made.sources.get(name))]
    if not (changed and starts and made.is_committed and is_in_history(str(made.commit))):
        return changed
    return _differing(committed(ROOT, str(made.commit)).digests(starts), now)


def joined(earlier: Iterable[Origin], last: Origin) -> list[Origin]:
    """All sessions, each once: a later one that differs by its date alone is the same one."""
    kept: list[Origin] = []
    for one in (*earlier, last):
        if not any(one.is_like(other) for other in kept):
            kept.append(one)
    return kept


def save(
    script: str | Path,
    texts: str | Mapping[str, str],
    *,
    name: str | None = None,
    packages: Iterable[str] = (),
    data: Iterable[str | Path] = (),
    uses: Iterable[str] = (),
    earlier: Iterable[Origin] = (),
    folder: Path | None = None,
) -> None:
    """Write a result and its record: whole files, or what was there before.

    Parameters
    ----------
    script
        `__file__` of the benchmark.
    texts
        The table in Markdown, or what belongs into each ending: `{".md": table, ".csv": rows}`.
    name
        Of the files, without an ending; that of the script if not given.
    packages
        Distributions beyond numpy, scipy and scikit-learn whose versions matter.
    data, uses
        As in `origin`.
    earlier
        Sessions that made some of the rows.
    folder
        Where to; `benchmarks/results` if not given.
    """
    folder = folder or RESULTS
    name = name or Path(script).stem
    held = {".md": texts} if isinstance(texts, str) else dict(texts)
    made = origin(script, packages=(*PACKAGES, *packages), data=data, uses=uses)
    files = {f"{name}{ending}": text for ending, text in held.items()}
    record = {
        "files": {file: _text_digest(text) for file, text in files.items()},
        "sessions": [asdict(one) for one in joined(earlier, made)],
    }
    write({folder / file: text for file, text in (files | {f"{name}.json": json.dumps(record, indent=1)}).items()})


class Unfinished:
    """What a long run has found so far, by name, kept in a file: another run of the same sources goes on there.

    So it does with the same versions of all that is installed, and the same `data`, named as in `origin`. Other
    settings have a file of their own. With ``kept=False``, for a quick look, nothing is read or written.
    """

    def __init__(
        self, script: str | Path, *settings: object, kept: bool = True, data: Iterable[str | Path] = ()
    ) -> None:
        name = f"{Path(script).stem}-{_text_digest(json.dumps([*map(str, settings)]))}.jsonl"
        self._path = ROOT / "benchmarks" / ".parts" / name
        self._is_kept = kept
        self._found: dict[str, object] = {}
        if kept:
            installed = versions(one.name for one in metadata.distributions())
            held = [_as_run(sources(script)), installed, _digests(data)]
            mark = json.dumps(_text_digest(json.dumps(held, sort_keys=True)))
            lines = self._path.read_text().split("\n")[:-1] if self._path.exists() else []  # the last may be cut off
            same = lines if lines[:1] == [mark] else [mark]
            self._found = dict(json.loads(line) for line in same[1:])
            write({self._path: "".join(f"{line}\n" for line in same)})

    def __call__(self, name: str, find: Callable[[], T]) -> T:
        """What was found under this name, or what is found now."""
        return dict(self.each({name: find}))[name]

    def each(self, tasks: Mapping[str, Callable[[], T]], jobs: int = 1) -> Iterator[tuple[str, T]]:
        """Names with what was found under them, then, as they end, those that are found now by so many processes."""
        missing = {name: find for name, find in tasks.items() if name not in self._found}
        yield from ((name, cast("T", self._found[name])) for name in tasks if name in self._found)
        computed = _in_processes(missing, jobs) if jobs > 1 else ((name, find()) for name, find in missing.items())
        for name, found in computed:
            self._found[name] = found
            if self._is_kept:
                with self._path.open("a") as file:
                    file.write(json.dumps([name, found]) + "\n")
            yield name, found

    def close(self) -> None:
        """All is found: forget it."""
        if self._is_kept:
            self._path.unlink(missing_ok=True)


_tasks: dict[str, Callable[[], object]] = {}  # of forked processes: functions that a pickle could not carry


def _in_processes(tasks: Mapping[str, Callable[[], T]], jobs: int) -> Iterator[tuple[str, T]]:
    _tasks.update(tasks)
    with ProcessPoolExecutor(jobs, get_context("fork")) as processes:
        running = {processes.submit(_task, name): name for name in tasks}
        for future in as_completed(running):
            yield running[future], cast("T", future.result())


def _task(name: str) -> object:
    return _tasks[name]()


def write(texts: Mapping[Path, str]) -> None:
    """Replace all these files, each in one step, once all of them are on disk; the last one vouches for the others."""
    drafts = {path.with_name(f".{path.name}.{os.getpid()}"): path for path in texts}
    try:
        for draft, path in drafts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with draft.open("w", newline="") as file:
                file.write(texts[path])
                file.flush()
                os.fsync(file.fileno())
        for draft, path in drafts.items():
            draft.replace(path)
    finally:
        for draft in drafts:
            draft.unlink(missing_ok=True)


def sessions(path: Path) -> list[Origin]:
    """The sessions of a record; none where there is no record."""
    return [Origin(**one) for one in json.loads(path.read_text()).get("sessions", [])] if path.exists() else []


def strangers(record: Path) -> list[str]:
    """Files beside a record of a benchmark that are not those that it was written with."""
    held: dict[str, str] = json.loads(record.read_text())["files"]
    there = {path.name: digest(path) for path in record.parent.glob(f"{record.stem}.*") if path != record}
    return sorted(name for name in held | there if held.get(name) != there.get(name))


def is_in_history(commit: str) -> bool:
    """Whether the present commit comes from this one; a rebase leaves the old ones behind."""
    return _git("merge-base", commit, "HEAD") == commit


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Versions of Python and of the packages that make the numbers."""
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = MISSING
    return found


def digest(path: Path) -> str:
    """A hash of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def _text_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _digests(data: Iterable[str | Path]) -> dict[str, str]:
    """A hash of each of these data files that is there."""
    return {_data_name(path): digest(_data_path(path)) for path in map(str, data) if _data_path(path).exists()}


def code_digest(path: Path) -> str:
    """A hash of what a source file does: comments, docstrings and the breaking of lines change no number."""
    return _code(path.read_bytes()) if path.suffix == ".py" else digest(path)


@cache
def _code(content: bytes) -> str:
    tree = ast.parse(content)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = node.body[ast.get_docstring(node, clean=False) is not None :]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()[:16]


def _differing(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Files that changed or are gone; a file that something else began or ceased to need is named for lack of those."""
    others = [name for name in sorted({**then, **now}) if then.get(name) != now.get(name)]
    return [name for name in others if (name in then and name in now) or not (ROOT / name).exists()] or others


def _is_same(path: Path, held: str | None) -> bool:
    return path.exists() and held in {code_digest(path), digest(path)}


def sources(script: str | Path, uses: Iterable[str] = ()) -> dict[str, str]:
    """Source files that a script depends on, each with a hash of what counts in it."""
    return standing(ROOT).digests([_name(script), *uses])


def _as_run(held: Mapping[str, str]) -> dict[str, str]:
    """Hashes of source files, with a mark in place of each that may not be of what runs."""
    files = {name: (ROOT / name).stat().st_mtime for name in held}
    native = [name for name in held if name.startswith(BUILT_FROM)]
    built = _built() if native else 0.0
    marks = dict.fromkeys((name for name in native if files[name] > built), NOT_BUILT)
    return {**held, **marks} | {name: EDITED for name, changed in files.items() if changed > STARTED}


def _built() -> float:
    """When the native code that runs was built; 0 where NumPy's kernel runs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pimeter._kernels.dispatch import _native_file, kernel
    return _native_file().stat().st_mtime if kernel.__name__.endswith(".native") else 0.0


def _name(script: str | Path) -> str:
    """Of a file of the repository; all of the path of another one."""
    path = Path(script).resolve()
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else str(path)


def _is_elsewhere() -> bool:
    """Whether the library that runs is another one than that of the repository."""
    spec = find_spec("pimeter")
    return spec is not None and Path(str(spec.origin)).resolve() != ROOT / "src" / "pimeter" / "__init__.py"


def _data_path(name: str) -> Path:
    """A file of the repository, or of the folder PIMETER_DATA."""
    own = ROOT / name
    return own if own.exists() else Path(os.environ.get("PIMETER_DATA", ROOT), name)


def _data_name(name: str) -> str:
    """Relative to the repository, or to the folder PIMETER_DATA."""
    path = _data_path(name).resolve()
    base = ROOT if path.is_relative_to(ROOT) else Path(os.environ.get("PIMETER_DATA", ROOT)).resolve()
    return str(path.relative_to(base))


def _git(*arguments: str) -> str:
    """What git says of the repository, without the last line feed; nothing where there is no git."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    except OSError:
        return ""
    return done.stdout.rstrip("\n") if done.returncode == 0 else ""
