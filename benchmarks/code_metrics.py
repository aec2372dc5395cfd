"""How hard is the code to read? Files, types, complexity, lines, words: counted in the tree as it is.

    python benchmarks/code_metrics.py [--words] [--quick]

`--words` lists where house words stand, by file. The table goes to `results/code_metrics.md`. How each row is counted:

- **Path**: `IntervalRegressor(LinearRegression()).fit(X, y).predict_interval(X)` is run under a profiler. Files are
  those of the package of which a function is called, types those of the package that a variable or a result has on
  the way, estimators left out. Leaves are counted beside them: kernels and the modules of the lowest layer of the
  import contract, which check or convert one thing for anyone and can be read by their names alone.
- **Complexity** is radon's count for each function or method, closures included, outside of kernels.
- **Lines** are those of Python files, empty ones and comments included, without kernels.
- **Any**: lines of functions' signatures in which `Any` stands, and those where it is bare, not `NDArray[Any]`.
- **Constants**: names in capitals that three or more files outside of kernels define, each with a meaning of its own.
- **House words** are those of `WORDS`, in names (`own_share` has one), comments, docstrings, messages and docs.
"""

from __future__ import annotations

import argparse
import ast
import re
import statistics
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
from provenance import ROOT, save
from radon.complexity import cc_visit
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression

import pimeter as pm

SOURCE = ROOT / "src" / "pimeter"
COMPLEX, LONG = 12, 400
WORDS = (
    "law", "laws", "fifth", "fifths", "share", "shares", "promise", "promises", "promised", "shortage", "reach",
    "reaches", "ends", "sizes", "alike", "whole number", "whole numbers", "mend", "mends", "mended", "soak", "strange",
    "strangeness", "peculiar", "peculiarity", "parted", "felt", "worth",
)  # fmt: skip
HOUSE = re.compile(rf"(?<![a-z])(?:{'|'.join(sorted(WORDS, key=len, reverse=True))})(?![a-z])", re.IGNORECASE)
CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
READ = ("src/**/*.py", "src/**/*.[ch]pp", "src/**/*.js", "src/**/*.html", "docs/*.md", "docs/*.rst", "README.md")


def python_files() -> list[Path]:
    return [path for path in sorted(SOURCE.rglob("*.py")) if not is_kernel(path)]


def is_kernel(path: Path) -> bool:
    return any(part.endswith("kernels") for part in path.relative_to(SOURCE).parts)


def is_leaf(file: str) -> bool:
    """Whether it is a kernel, or of the layer of leaves."""
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    (leaves,) = (layer.split(" : ") for layer in contract["layers"] if " : " in layer)
    return Path(file).parts[0].removesuffix(".py") in {"_kernels", *leaves}


def listed(names: Iterable[str]) -> str:
    """How many there are, and which."""
    ordered = sorted(names)
    return f"{len(ordered)}: {', '.join(ordered)}"


def path_of_a_call() -> tuple[set[str], set[str]]:
    """Files and types between `fit` and the bounds."""
    files, types = set(), set()

    def watch(frame: FrameType, event: str, result: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if not path.is_relative_to(SOURCE):
            return
        files.add(str(path.relative_to(SOURCE)))
        if event == "return":
            found = {type(value) for value in (*frame.f_locals.values(), result)}
            types.update(own for own in found if own.__module__.startswith("pimeter"))

    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 3)), rng.standard_normal(300)
    model = pm.IntervalRegressor(LinearRegression())
    sys.setprofile(watch)
    model.fit(X, y).predict_interval(X)
    sys.setprofile(None)
    return files, {own.__qualname__ for own in types if not issubclass(own, BaseEstimator)}


def complexities() -> list[tuple[int, str]]:
    """Count and name of each function, the most complex first."""
    found = []
    for path in python_files():
        blocks = [block for block in cc_visit(path.read_text()) if block.letter != "C"]  # its methods are in the list
        found += [(block.complexity, f"{path.relative_to(SOURCE)}:{block.fullname}") for block in blocks]
    return sorted(found, reverse=True)


def lines_with_any(text: str, pattern: str) -> int:
    """How many lines of signatures have `Any` as the pattern says."""
    lines = text.splitlines()
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    own = {i for node in functions for i in range(node.lineno - 1, max(node.lineno, node.body[0].lineno - 1))}
    return sum(re.search(pattern, lines[i]) is not None for i in own)


def repeated_constants() -> dict[str, list[str]]:
    """Names in capitals that three or more files give a value, with these files; lists of checks are of one kind."""
    found: dict[str, list[str]] = {}
    for path in python_files():
        for node in ast.parse(path.read_text()).body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            names = [name.id for target in targets if target for name in ast.walk(target) if isinstance(name, ast.Name)]
            for name in {name for name in names if name.isupper()} - {"CHECKS"}:
                found.setdefault(name, []).append(str(path.relative_to(SOURCE)))
    return {name: files for name, files in sorted(found.items()) if len(files) > 2}


class HouseWord(NamedTuple):
    """A house word and where it stands."""

    path: str
    number: int  # of the line, from 1 up
    word: str
    line: str


def house_words(patterns: Iterable[str] = READ) -> Iterator[HouseWord]:
    """Each house word in the files of these patterns."""
    for pattern in patterns:
        for path in sorted(ROOT.glob(pattern)):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                for word in HOUSE.findall(CAMEL.sub(" ", line)):
                    yield HouseWord(str(path.relative_to(ROOT)), number, word.lower(), line.strip())


def rows() -> list[tuple[str, str]]:
    files, types = path_of_a_call()
    leaves = {file for file in files if is_leaf(file)}
    complex_ones = complexities()
    too_complex = [count for count, _ in complex_ones if count > COMPLEX]
    texts = {path: path.read_text() for path in python_files()}
    lengths = {path: len(text.splitlines()) for path, text in texts.items()}
    n_long = sum(length > LONG for length in lengths.values())
    n_any, n_bare = (
        sum(lines_with_any(path.read_text(), pattern) for path in SOURCE.rglob("*.py"))
        for pattern in (r"\bAny\b", r"(?<!\[)\bAny\b(?!\])")
    )
    words = Counter(found.word for found in house_words())
    return [
        ("files from `IntervalRegressor.fit` to bounds", listed(files - leaves)),
        ("leaves on the way", listed(leaves)),
        ("types on the way", listed(types)),
        (f"functions of a complexity > {COMPLEX} outside of kernels; of", f"{len(too_complex)}; {len(complex_ones):,}"),
        ("highest complexity", "{}: {}".format(*complex_ones[0])),
        (f"files > {LONG} lines outside of kernels; median", f"{n_long}; {statistics.median(lengths.values()):g}"),
        ("lines without kernels", f"{sum(lengths.values()):,}"),
        ("signature lines with `Any`; bare", f"{n_any}; {n_bare}"),
        ("names of constants in three files or more", listed(repeated_constants())),
        ("public names at the top", f"{len(pm.__all__)}"),
        ("house words", f"{words.total():,}: {', '.join(f'{word} {n}' for word, n in words.most_common())}"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--words", action="store_true", help="list lines with house words, and nothing else")
    parser.add_argument("--quick", action="store_true", help="save nothing")
    options = parser.parse_args()
    if options.words:
        for path, number, word, line in house_words():
            print(f"{path}:{number}: {word}: {line}")
        return
    found = rows()
    for what, figure in found:
        print(f"{what:<64} {figure}")
    if not options.quick:
        head = ["# Code metrics", "", "`python benchmarks/code_metrics.py`, which says how each row is counted.", ""]
        table = ["| what | figure |", "|---|---|", *(f"| {what} | {figure} |" for what, figure in found), ""]
        save(__file__, "\n".join([*head, *table]))


if __name__ == "__main__":
    main()
