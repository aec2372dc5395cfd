"""Results that know where they come from: `save` writes a result with a record of what made it.

    save(__file__, text)  # results/NAME.md, and the record NAME.json beside it

The record names the commit, the source files and the data files with a hash of each, versions, the date and the kind of
machine. Of a source its code is hashed, without comments and docstrings. Source files are found by following imports
from the script through the repository: what is loaded in one process would say nothing of its workers. Of
`import pimeter as pm` those names count that the script uses, `pm.quantile` and so on. Imports inside of functions
count whether they are reached or not, so there may be some files too many, and none too few; what a script starts by
name (`python -m pimeter`) it has to name in `uses`.

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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar, cast

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PACKAGES = ("pimeter", "numpy", "scipy", "scikit-learn")
EDITED = "edited while it ran"
STARTED = time.time()
T = TypeVar("T")


@dataclass(frozen=True)
class Origin:
    """What made a result, in one session.

    `dirty` are source files that differed from the commit. `sources` and `data` have a hash for each file.
    `environment` is the name of the virtual environment: versions are only comparable within one. `machine` is
    its kind, which matters to times alone.
    """

    commit: str | None
    dirty: Sequence[str]
    date: str
    environment: str
    versions: Mapping[str, str]
    sources: Mapping[str, str]
    data: Mapping[str, str]
    machine: str = ""  # of records that were written before it was kept

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
        The file to follow imports from.
    packages
        Distributions whose versions are kept.
    data
        Files that were read: paths, or names below the folder PIMETER_DATA; those that are not there were not read.
    uses
        Modules beyond what the script imports, such as those it starts as programs.
    """
    paths = sources(script, uses)
    names = [str(path.relative_to(ROOT)) for path in paths]
    if _is_elsewhere():
        print(f"pimeter is not that of {ROOT.name}: the record will not say which sources made this.", file=sys.stderr)
        names, paths = [], []
    return Origin(
        commit=_git("rev-parse", "HEAD") or os.environ.get("PIMETER_COMMIT"),
        dirty=[line[3:] for line in _git("status", "--porcelain", "-uall", "--", *names).splitlines()] if names else [],
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        environment=Path(sys.prefix).name,
        versions=versions(packages),
        sources={
            name: EDITED if path.stat().st_mtime > STARTED else code_digest(path)
            for name, path in zip(names, paths, strict=True)
        },
        data={_data_name(path): digest(_data_path(path)) for path in map(str, data) if _data_path(path).exists()},
        machine=f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs",
    )


def changes(made: Origin) -> list[str]:
    """What is not as it was when the result was made; empty if all is."""
    found = []
    files = {name: ROOT / name for name in made.sources}
    changed = [name for name, path in files.items() if not (path.exists() and _is_same(made, name, path))]
    edited = [name for name in changed if made.sources[name] == EDITED]
    if edited:
        found.append(f"{EDITED}: {', '.join(edited)}")
    if len(changed) > len(edited):
        found.append(f"changed since: {', '.join(name for name in changed if name not in edited)}")
    read = {name: _data_path(name) for name in made.data}
    other = [name for name, path in read.items() if path.exists() and digest(path) != made.data[name]]
    if other:
        found.append(f"other data: {', '.join(other)}")
    if made.environment == Path(sys.prefix).name:
        now = versions(name for name in made.versions if name != "python")
        moved = [f"{name} {old} then, {now[name]} now" for name, old in made.versions.items() if old != now[name]]
        if moved:
            found.append(f"other versions: {', '.join(moved)}")
    return found


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
        "files": {file: hashlib.sha256(text.encode()).hexdigest()[:16] for file, text in files.items()},
        "sessions": [asdict(one) for one in joined(earlier, made)],
    }
    write({folder / file: text for file, text in (files | {f"{name}.json": json.dumps(record, indent=1)}).items()})


class Unfinished:
    """What a long run has found so far, by name, kept in a file: another run of the very same sources goes on there.

    With ``kept=False``, for a quick look, nothing is read or written.
    """

    def __init__(self, script: str | Path, *settings: object, kept: bool = True) -> None:
        self._path = ROOT / "benchmarks" / ".parts" / f"{Path(script).stem}.jsonl"
        self._is_kept = kept
        self._found: dict[str, object] = {}
        if kept:
            held = json.dumps([{str(path): digest(path) for path in sources(script)}, *map(str, settings)])
            mark = json.dumps(hashlib.sha256(held.encode()).hexdigest()[:16])
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
            found[package] = "not installed"
    return found


def digest(path: Path) -> str:
    """A hash of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


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


def _is_same(made: Origin, name: str, path: Path) -> bool:
    """Whether a source does what it did; of records with a hash of the whole file the commit is asked."""
    held = made.sources[name]
    if held in (code_digest(path), digest(path)):
        return True
    if not made.commit or path.suffix != ".py":
        return False
    then = _committed(made.commit, name)
    return hashlib.sha256(then).hexdigest()[:16] == held and _code(then) == code_digest(path)


@cache
def _committed(commit: str, name: str) -> bytes:
    """A file as it was committed; nothing where git does not know it."""
    return _git("show", f"{commit}:{name}", is_whole=True).encode()


def sources(script: str | Path, uses: Iterable[str] = ()) -> list[Path]:
    """The script and all files of the repository that it depends on, but for this one, which changes no number."""
    start = Path(script).resolve()
    found = {start}
    waiting = [start, *(path for name in uses for path in _files(name, start.parent))]
    while waiting:
        path = waiting.pop()
        found.add(path)
        waiting += [other for other in imported(path) if other not in found]
    # Pages and styles that a package is shipped with.
    packages = {path.parent for path in found if path.is_relative_to(ROOT / "src")}
    shipped = (path for package in packages for path in package.iterdir() if path.is_file() and path.suffix != ".py")
    found |= {path for path in shipped if path.stat().st_size}
    return sorted(path for path in found if path.is_relative_to(ROOT) and path != Path(__file__).resolve())


def imported(path: Path) -> set[Path]:
    """Files of the repository that a module imports, at its top or in a function; not those for type checkers alone."""
    return _imported(path, path.stat().st_mtime_ns) if path.suffix == ".py" else set()


@cache
def _imported(path: Path, _changed: int) -> set[Path]:
    tree = ast.parse(path.read_text())
    names: set[str] = set()
    for node in _run(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                names.add(alias.name)
                names |= _attributes(tree, alias)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names |= {_home(node.module, alias.name) for alias in node.names}
    return {file for name in names for file in _files(name, path.parent)}


def _run(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes but what stands under `if TYPE_CHECKING`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            for other in child.orelse:
                yield from _run(other)
        else:
            yield child
            yield from _run(child)


def _attributes(tree: ast.Module, alias: ast.alias) -> set[str]:
    """Modules behind the attributes of an imported package that are used; all, where it is used as a whole."""
    name = alias.asname or alias.name.partition(".")[0]
    package = alias.name if alias.asname else name
    lazy = _lazy(package)
    if not lazy:
        return set()
    nodes = list(ast.walk(tree))
    uses = [node for node in nodes if isinstance(node, ast.Name) and node.id == name]
    used = [n.attr for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value in uses]
    return {_home(package, attribute) for attribute in (used if len(used) == len(uses) else lazy)}


def _home(module: str, name: str) -> str:
    """The module that a name comes from if this module hands it on lazily; else a module of this name, if any."""
    return _lazy(module).get(name, f"{module}.{name}")


@cache
def _lazy(package: str) -> dict[str, str]:
    """Names that a package imports when they are asked for: those that it shows to type checkers alone."""
    path = ROOT / "src" / package.replace(".", "/") / "__init__.py"
    if not path.exists():
        return {}
    hidden = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.If)]
    imports = (node for one in hidden for node in one.body if isinstance(node, ast.ImportFrom))
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def _files(module: str, folder: Path) -> list[Path]:
    """The file of a module and those of the packages that it is in; none if it is not of this repository."""
    parts = module.split(".")
    beside = [] if (folder / "__init__.py").exists() else [folder]  # scripts import what lies beside them
    for base in (*beside, ROOT / "src", ROOT):
        whole = base.joinpath(*parts)
        if whole.with_suffix(".py").is_file() or whole.is_dir():
            packages = [base.joinpath(*parts[:n], "__init__.py") for n in range(1, len(parts) + 1)]
            return [path for path in (*packages, whole.with_suffix(".py")) if path.is_file()]
    return []


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


def _git(*arguments: str, is_whole: bool = False) -> str:
    """What git says of the repository, as a whole or without the last line feed; nothing where there is no git."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    except OSError:
        return ""
    return (done.stdout if is_whole else done.stdout.rstrip("\n")) if done.returncode == 0 else ""
