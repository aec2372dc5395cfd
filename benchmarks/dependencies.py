"""What a script's numbers depend on: the definitions of this repository that it leads to by name, not whole files.

From the script, all of it, names are followed to what binds them at the top of a module: a function, a class with all
of its body, an assignment, an import. What is found is followed in turn: `pm.quantile` leads through the lazy names
of the package to the function, and on to all that its body names. Methods need not be named, as the class of an object
was named where the object was made. In doubt there is more than needed, never less:

- a module that is passed around, named in a string, or asked for an attribute that it does not bind, counts as a whole;
- statements that run on import count once their module is imported: loops, calls, and definitions with a decorator
  that may keep them in a list (all but `HARMLESS`);
- a string that is the name of a file beside the module counts as that file.

Docstrings, comments, type annotations and what only type checkers see change no number; annotations of classes, and of
functions that a decorator may look at, do.
"""

from __future__ import annotations

import ast
import hashlib
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import NamedTuple, TypeAlias, TypeGuard

FOLDERS = ("src", "benchmarks", "experiments", "examples", "tests", "CMakeLists.txt")
ENDINGS = (".py", ".html", ".js", ".css", ".cpp", ".hpp", ".txt")
EXTENSION, BUILT_FROM = "pimeter._native", ("src/native/", "CMakeLists.txt")
RECORDS = {"benchmarks/dependencies.py", "benchmarks/provenance.py"}  # they see all, and change no number
HARMLESS = {"abstractmethod", "cache", "cached_property", "classmethod", "contextmanager", "dataclass", "lru_cache",
            "overload", "property", "staticmethod", "total_ordering", "wraps"}  # fmt: skip
IMPORTED = -1
CONTENTS: dict[str, bytes] = {}  # of files that were committed, by git's names for them

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef
Assignment = ast.Assign | ast.AnnAssign | ast.AugAssign
Chain: TypeAlias = tuple[str, ...]  # a name and its attributes


class Part(NamedTuple):
    """A statement at the top of a file, or, in place of it, that the file is IMPORTED."""

    file: str
    place: int


class Asked(NamedTuple):
    """Attributes of a module, or all of it, as asked for by a file in a folder."""

    module: str
    attributes: Chain
    folder: str


class Statement:
    """One at the top of a module (of an import one for each name): what it binds, uses and imports."""

    def __init__(self, node: ast.stmt) -> None:
        self.node = node
        self.names = _bound(node)
        self.is_run = _is_run(node)
        self.chains = set(_chains(node))
        self.strings: set[str] = set()
        self.loads: set[str] = set()
        self.imports: dict[str, set[Chain]] = defaultdict(set)  # what names stand for: a module, a name in a module
        for one in ast.walk(node):
            if isinstance(one, ast.Constant) and isinstance(one.value, str):
                self.strings.add(one.value)
            elif isinstance(one, ast.Import):
                self.loads |= {alias.name for alias in one.names}
                for alias in one.names:
                    name = alias.name.partition(".")[0]
                    self.imports[alias.asname or name].add((alias.name if alias.asname else name,))
            elif isinstance(one, ast.ImportFrom) and one.module:
                self.loads |= {one.module, *(f"{one.module}.{alias.name}" for alias in one.names)}
                for alias in one.names:
                    self.imports[alias.asname or alias.name].add((one.module, alias.name))
        if isinstance(node, ast.ClassDef):  # an import of its own makes an attribute
            self.chains |= {(name,) for name in self.imports.keys() - {chain[0] for chain in self.chains}}

    @property
    def lines(self) -> tuple[int, int]:
        """Its first line, with decorators, and the one after its last."""
        above = self.node.decorator_list if isinstance(self.node, Definition) else []
        return min([self.node.lineno, *(one.lineno for one in above)]), (self.node.end_lineno or self.node.lineno) + 1

    @property
    def code(self) -> bytes:
        """What it does, however it is written."""
        return repr(_plain(self.node)).encode()


class Module:
    """A source file: its statements, where names are bound, and the modules of names that it hands on lazily."""

    def __init__(self, content: bytes) -> None:
        tree = ast.parse(content)
        hidden = [one for node in tree.body if _is_for_checkers(node) for one in node.body]
        _strip(tree)
        self.statements = list(_statements(tree.body))
        self.bound: dict[str, list[int]] = defaultdict(list)
        for i, one in enumerate(self.statements):
            for name in one.names:
                self.bound[name].append(i)
        self.lazy: dict[str, str] = {}
        if "__getattr__" in self.bound:
            imports = [node for node in hidden if isinstance(node, ast.ImportFrom)]
            self.lazy = {alias.name: str(node.module) for node in imports for alias in node.names}
        self._digests: dict[int, bytes] = {}

    def digest(self, i: int) -> bytes:
        """A hash of a statement."""
        if i not in self._digests:
            self._digests[i] = hashlib.sha256(self.statements[i].code).digest()
        return self._digests[i]


class Tree:
    """The files of the repository at one time, by name."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = files
        self._folders: dict[str, list[str]] = defaultdict(list)
        for file in files:
            self._folders[_folder(file)].append(file)
        self._next: dict[Part | Asked, set[Part | Asked]] = {}

    def digests(self, starts: Sequence[str]) -> dict[str, str]:
        """A hash for each file of what is reached in it."""
        found: dict[str, list[bytes]] = {}
        for file, place in sorted(self.reached(starts)):
            if place != IMPORTED:
                own = _module(self.files[file]).digest(place) if file.endswith(".py") else self.files[file]
                found.setdefault(file, []).append(own)
        return {file: hashlib.sha256(b"".join(held)).hexdigest()[:16] for file, held in found.items()}

    def places(self, starts: Sequence[str]) -> set[tuple[str, int, int]]:
        """The lines of all statements that count: file, first line, and the one after the last."""
        parts = [part for part in self.reached(starts) if part.place != IMPORTED and part.file.endswith(".py")]
        return {(part.file, *_module(self.files[part.file]).statements[part.place].lines) for part in parts}

    def reached(self, starts: Sequence[str]) -> set[Part]:
        """All that counts for a script, the first of these, with modules and definitions that it starts by name."""
        found: set[Part | Asked] = set()
        waiting: set[Part | Asked] = {part for name in starts if name in self.files for part in self._all(name)}
        named = [name.split(".") for name in starts[1:]]
        waiting |= {Asked(package, tuple(inner), _folder(starts[0])) for package, *inner in named}
        while waiting:
            one = waiting.pop()
            found.add(one)
            if one not in self._next:
                self._next[one] = self._in_module(one) if isinstance(one, Asked) else self._after(one)
            waiting |= self._next[one] - found
        return {one for one in found if isinstance(one, Part)}

    def _after(self, part: Part) -> set[Part | Asked]:
        """What one statement leads to, or the import of a file."""
        file, place = part
        if not file.endswith(".py"):
            text = self.files[file].decode()
            return {Part(other, 0) for other in self._folders[_folder(file)] if PurePosixPath(other).name in text}
        module = _module(self.files[file])
        if place == IMPORTED:
            packages = {f"{folder}/__init__.py" for folder in PurePosixPath(file).parents} & self.files.keys()
            found: set[Part | Asked] = {Part(package, IMPORTED) for package in packages}
            found |= {Part(file, i) for i, one in enumerate(module.statements) if one.is_run}
            return found | self._loaded(file, [s for s in module.statements if not isinstance(s.node, Definition)])
        one = module.statements[place]
        found = {Part(file, IMPORTED), *self._loaded(file, [one])}
        for chain in one.chains:
            found |= self._of_name(file, chain, one)
        for string in one.strings:
            found |= self._of_string(string, _folder(file))
        return found | (self._all(file) if ("globals",) in one.chains else set())

    def _loaded(self, file: str, statements: Iterable[Statement]) -> set[Part]:
        """Files that these statements import."""
        names = {name for one in statements for name in one.loads}
        return {Part(other, IMPORTED) for name in names if (other := self._file(name, _folder(file)))}

    def _of_name(self, file: str, chain: Chain, within: Statement | None = None) -> set[Part | Asked]:
        """What binds a name at the top of a file, and what it was imported as, there or within a statement."""
        module = _module(self.files[file])
        places = module.bound.get(chain[0], [])
        found: set[Part | Asked] = {Part(file, place) for place in places}
        for one in [*(module.statements[place] for place in places), *([within] if within else [])]:
            for name, *attributes in one.imports.get(chain[0], ()):
                inner = [name] if not attributes or self._file(name, "") != file else [f"{name}.{attributes.pop()}"]
                found.add(Asked(inner[0], (*attributes, *chain[1:]), _folder(file)))
        return found

    def _in_module(self, asked: Asked) -> set[Part | Asked]:
        """What attributes of a module lead to; without any, all of it with what it hands on from others."""
        name, attributes, folder = asked
        if name == EXTENSION:
            return {Part(file, 0) for file in self.files if file.startswith(BUILT_FROM)}
        file = self._file(name, folder)
        module = _module(self.files.get(file, b""))
        found: set[Part | Asked] = {Part(file, IMPORTED)} if file else set()
        first = attributes[0] if attributes else ""
        inner = f"{name}.{first}"
        if first in module.lazy:
            return found | {Asked(module.lazy[first], attributes, folder)}
        if first in module.bound:
            return found | self._of_name(file, attributes)
        if first and (not file or inner == EXTENSION or self._file(inner, folder)):
            return found | {Asked(inner, attributes[1:], folder)}
        if not file or first in {"__doc__", "__file__", "__name__"}:
            return found
        found |= self._all(file)
        for one in module.statements:
            named = {name for name, of in one.imports.items() if any(len(chain) > 1 for chain in of)}
            found = found.union(*(self._of_name(file, (name,)) for name in named))
        return found | {Asked(home, (name,), folder) for name, home in module.lazy.items()}

    def _all(self, file: str) -> set[Part | Asked]:
        """A file as a whole."""
        content = self.files.get(file, b"")
        return {Part(file, i) for i in range(len(_module(content).statements) if file.endswith(".py") else 1)}

    def _of_string(self, string: str, folder: str) -> set[Part | Asked]:
        """The module, or the file beside this one, that is named."""
        if "." not in string:
            return set()
        beside = f"{folder}/{string}"
        return {Asked(string, (), folder)} | (self._all(beside) if {beside} & self.files.keys() - RECORDS else set())

    def _file(self, module: str, folder: str) -> str:
        """The file of a module, empty if it is not of this repository."""
        name = module.replace(".", "/")
        beside = [] if f"{folder}/__init__.py" in self.files else [f"{folder}/"]  # scripts import what lies beside them
        paths = (f"{base}{name}{end}" for base in (*beside, "src/", "") for end in ("/__init__.py", ".py"))
        return next((path for path in paths if path in self.files and path not in RECORDS), "")


def standing(root: Path) -> Tree:
    """The files as they stand."""
    paths = [path for one in FOLDERS for path in (root / one, *(root / one).rglob("*")) if path.suffix in ENDINGS]
    files = {path.relative_to(root).as_posix(): path.read_bytes() for path in paths if path.is_file()}
    return _tree(frozenset(files.items()))


@cache
def committed(root: Path, commit: str) -> Tree:
    """The files as they were committed; none where git does not know the commit."""
    lines = _git(root, "ls-tree", "-r", "-z", commit, "--", *FOLDERS).decode().split("\0")[:-1]
    blobs = {name: what.split()[2] for what, _, name in (line.partition("\t") for line in lines)}
    blobs = {name: blob for name, blob in blobs.items() if name.endswith(ENDINGS)}
    new = sorted(set(blobs.values()) - CONTENTS.keys())
    answer = _git(root, "cat-file", "--batch", given="".join(f"{blob}\n" for blob in new))
    start = 0
    for blob in new:  # a line with the size last, the content, a line feed
        size = int(answer[start : (end := answer.index(b"\n", start))].split()[2])
        CONTENTS[blob] = answer[end + 1 : (start := end + 2 + size) - 1]
    return Tree({name: CONTENTS[blob] for name, blob in blobs.items()})


def _git(root: Path, *arguments: str, given: str = "") -> bytes:
    try:
        done = subprocess.run(["git", *arguments], cwd=root, input=given.encode(), capture_output=True, check=False)
    except OSError:
        return b""
    return done.stdout


_tree = lru_cache(maxsize=8)(lambda files: Tree(dict(files)))
_module = cache(Module)


def _plain(node: object) -> object:
    """A syntax tree as every version of Python has it: without fields that are empty, pieces of text in one."""
    if isinstance(node, list):
        return [_plain(one) for one in node]
    if not isinstance(node, ast.AST):
        return node
    if isinstance(node, ast.JoinedStr):
        texts: list[object] = []
        for is_text, some in groupby(node.values, lambda one: isinstance(one, ast.Constant)):
            values = list(some)
            texts.append("".join(ast.literal_eval(one) for one in values) if is_text else _plain(values))
        return "f-string", [text for text in texts if text]
    fields = ((name, _plain(value)) for name, value in ast.iter_fields(node))
    return type(node).__name__, [(name, value) for name, value in fields if value is not None and value != []]


def _folder(file: str) -> str:
    return str(PurePosixPath(file).parent)


def _statements(body: Iterable[ast.stmt]) -> Iterator[Statement]:
    """Statements at the top of a module, but for those that type checkers alone see."""
    for node in body:
        if _is_for_checkers(node):
            yield from _statements(node.orelse)
        elif isinstance(node, ast.Import):
            yield from (Statement(ast.copy_location(ast.Import([alias]), node)) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield Statement(ast.copy_location(ast.ImportFrom(node.module, [alias], node.level), node))
        else:
            yield Statement(node)


def _is_for_checkers(node: ast.AST) -> TypeGuard[ast.If]:
    return isinstance(node, ast.If) and ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


def _is_main(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'"


def _is_kept(node: Definition) -> bool:
    """Whether a decorator may keep it somewhere, or look at its annotations."""
    chains = (chain for one in node.decorator_list for chain in [next(_chains(one), ("",))])
    return any(chain[-1] not in HARMLESS for chain in chains)


def _is_run(node: ast.stmt) -> bool:
    """Whether it does something on import beyond binding names."""
    if isinstance(node, Definition):
        return _is_kept(node) or bool(isinstance(node, ast.ClassDef) and node.keywords)
    if isinstance(node, Assignment):
        return any(isinstance(one, ast.Attribute | ast.Subscript) for to in _targets(node) for one in ast.walk(to))
    return not (isinstance(node, ast.Import | ast.ImportFrom) or _is_main(node))


def _bound(node: ast.stmt) -> set[str]:
    """Names that a statement binds at the top of a module."""
    if isinstance(node, Definition):
        return {node.name}
    found = set()
    for one in (one for to in ([] if _is_main(node) else _targets(node)) for one in ast.walk(to)):
        if isinstance(one, Definition):
            found.add(one.name)
        elif isinstance(one, ast.alias):
            found.add(one.asname or one.name.partition(".")[0])
        elif isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
            found.add(one.id)
    return found


def _targets(node: ast.stmt) -> list[ast.AST]:
    """Where a statement binds names: all of it, unless it is an assignment."""
    if isinstance(node, ast.Assign):
        return [*node.targets]
    return [node.target] if isinstance(node, ast.AnnAssign | ast.AugAssign) else [node]


def _chains(node: ast.AST) -> Iterator[Chain]:
    """Names with their attributes, as long as they are."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        attributes: list[str] = []
        while isinstance(one, ast.Attribute):
            attributes.insert(0, one.attr)
            one = one.value
        if isinstance(one, ast.Name):
            yield one.id, *attributes
        else:
            waiting += ast.iter_child_nodes(one)


def _strip(tree: ast.Module) -> None:
    """Take away what changes no number."""
    fields: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | Definition):
            node.body = node.body[ast.get_docstring(node, clean=False) is not None :]
        if isinstance(node, ast.ClassDef):
            fields |= {id(one) for one in node.body}
        elif isinstance(node, ast.AnnAssign) and id(node) not in fields:
            node.annotation = ast.Constant(None)
        elif isinstance(node, Function) and not _is_kept(node):
            node.returns = None
            given = node.args
            for one in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg):
                if one:
                    one.annotation = None
        elif _is_for_checkers(node):
            node.body = []
