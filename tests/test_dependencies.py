"""What a script's numbers depend on is found by name: nothing too few, and little too much."""

from __future__ import annotations

import ast
import inspect
import subprocess
from pathlib import Path

import pytest

from benchmarks.dependencies import Tree, _module, committed, standing
from experiments.__main__ import EXPERIMENTS
from experiments.protocol import starts

ROOT = Path(__file__).parents[1]
SCRIPT = "benchmarks/script.py"
LIBRARY = {
    "src/lib/__init__.py": """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from lib.plain import f, g
    from lib.shapes import Square
else:
    _MODULE_OF = {"f": "plain", "g": "plain", "Square": "shapes"}
    def __getattr__(name): return _MODULE_OF[name]
""",
    "src/lib/plain.py": """
from math import pi
LEVEL = 1
TABLE = {"a": LEVEL}
TABLE["b"] = 2
def f(): return g()
def g(x: Hidden = LEVEL): return pi
def h(): return f"{x}"
class Hidden: pass
""",
    "src/lib/shapes.py": """
from lib.plain import LEVEL as level
import lib.plain as p
class Shape:
    size: Length
    def area(self): return p.h()
class Square(Shape): side = level
class Length: pass
KINDS = {"square": Square}
def made(kind): return KINDS[kind]()
def unused(): return p.g()
""",
    "src/lib/sub/__init__.py": "from lib.sub.deep import low, high as top\nfrom lib.sub import tool\n",
    "src/lib/sub/deep.py": "def low(): return open('page.html')\ndef high(): return 2\n",
    "src/lib/sub/tool.py": "def work(): return globals()['rest']\ndef rest(): pass\n",
    "src/lib/sub/page.html": "{% include 'head.html' %}",
    "src/lib/sub/head.html": "<head>",
    "src/lib/sub/other.html": "<html>",
    "src/lib/registry.py": """
from functools import cache, singledispatch
FOUND = []
def register(one): FOUND.append(one); return one
@singledispatch
def show(x): return 0
@show.register
def _(x: int): return whole()
@register
def entry(): return helper()
@cache
def kept(): return 1
def whole(): pass
def helper(): pass
def lone(): pass
if __name__ == "__main__":
    lone()
""",
    "src/lib/fallback.py": """
try:
    from lib.plain import g as best
except ImportError:
    def best(): return 0
for _ in range(3):
    step()
def step(): return 1
def late():
    from lib.registry import kept
    return kept()
def named():
    return "lib.sub.tool"
def runs(): return "tool.py"
""",
    "src/lib/kernel.py": "from importlib import import_module\ncode = import_module('pimeter._native')\n",
    "src/native/fast.cpp": "int x;",
    "CMakeLists.txt": "project",
    "benchmarks/beside.py": "N = 1\ndef draw(): return N\n",
}


def reached(text, *uses, **changed):
    """Names of definitions, by file; the script's own are left out."""
    files = {name: one.encode() for name, one in (LIBRARY | {SCRIPT: text}).items()}
    tree = Tree(files)
    found = {}
    for file, first, end in sorted(tree.places([SCRIPT, *uses])):
        if file != SCRIPT:
            found.setdefault(file.removeprefix("src/"), []).extend(
                files[file].decode().split("\n")[first - 1 : end - 1]
            )
    return {file: "\n".join(lines) for file, lines in found.items()}, set(tree.digests([SCRIPT, *uses]))


def held(text, *uses):
    """Names that are defined where something counts, as far as they are told apart by a word."""
    return reached(text, *uses)[0]


class TestNames:
    def test_a_function_and_what_it_calls(self):
        found = held("import lib\nlib.f()\n")
        assert set(found) == {"lib/plain.py"}
        assert all(one in found["lib/plain.py"] for one in ("def f", "def g", "LEVEL = 1", "import pi"))
        assert "def h" not in found["lib/plain.py"]
        assert "class Hidden" not in found["lib/plain.py"]  # an annotation

    @pytest.mark.parametrize(
        "text",
        [
            "from lib import g\ng()",
            "import lib as l\nl.g",
            "import lib.plain\nlib.plain.g",
            "from lib import plain\nplain.g()",
            "def a():\n    from lib.plain import g as x\n    return x()",
            "import lib.plain as p\np.g = None",
            "class A:\n    from lib.plain import g",
            "lazy = lambda: __import__('x')\nfrom lib.plain import g as h\nh()",
        ],
    )
    def test_ways_to_import(self, text):
        found = held(text)
        assert set(found) == {"lib/plain.py"}
        assert "def g" in found["lib/plain.py"]
        assert "def f" not in found["lib/plain.py"]

    def test_a_constant_and_what_is_done_to_it_on_import(self):
        found = held("from lib.plain import TABLE\nTABLE")["lib/plain.py"]
        assert all(one in found for one in ("LEVEL = 1", 'TABLE["b"] = 2', "TABLE = "))
        assert "def" not in found

    def test_a_class_with_bases_methods_and_fields(self):
        found = held("import lib\nlib.Square")
        assert all(f"class {one}" in found["lib/shapes.py"] for one in ("Square", "Shape", "Length"))
        assert "def h" in found["lib/plain.py"]  # of a method of the base
        assert "def made" not in found["lib/shapes.py"]
        assert "def g" not in found["lib/plain.py"]  # of a function that is not used

    def test_a_class_that_is_named_in_a_table_alone(self):
        assert "class Square" in held("from lib.shapes import made\nmade('square')")["lib/shapes.py"]

    def test_names_that_a_package_hands_on(self):
        found = held("from lib.sub import top\ntop()")
        assert "def high" in found["lib/sub/deep.py"]
        assert "def low" not in found["lib/sub/deep.py"]
        assert found["lib/sub/__init__.py"].count("import") == 1
        assert "lib/sub/tool.py" not in found

    def test_a_package_that_imports_its_own_module(self):
        assert "def rest" in held("import lib.sub\nlib.sub.tool.work()")["lib/sub/tool.py"]

    def test_what_lies_beside_a_script(self):
        assert held("from beside import draw\ndraw()")["benchmarks/beside.py"] == "N = 1\ndef draw(): return N"

    def test_names_within_a_block(self):
        found = held("from lib.fallback import best\nbest()")
        assert "def g" in found["lib/plain.py"]
        assert "def step" in found["lib/fallback.py"]  # runs on import
        assert "def late" not in found["lib/fallback.py"]


class TestInDoubt:
    @pytest.mark.parametrize(
        "text",
        ["import lib.plain as p\nvars(p)", "from lib import plain\nx = plain", "import lib.plain as p\np.unknown"],
    )
    def test_a_module_that_is_used_as_a_whole(self, text):
        assert "def h" in held(text)["lib/plain.py"]

    def test_a_lazy_package_that_is_used_as_a_whole(self):
        found = held("import lib\ngetattr(lib, name)")
        assert "def f" in found["lib/plain.py"]
        assert "class Square" in found["lib/shapes.py"]

    def test_a_lazy_package_of_which_one_name_is_used(self):
        assert "lib/shapes.py" not in held("import lib\nlib.f, lib.__file__")

    def test_a_decorator_that_may_keep_what_it_gets(self):
        found = held("from lib.registry import FOUND")["lib/registry.py"]
        assert "def entry" in found
        assert "def helper" in found
        assert "def _" in found
        assert "def whole" in found
        assert "def kept" not in found
        assert "def lone" not in found  # of the script that it can also be

    def test_an_import_for_what_it_does(self):
        assert "def helper" in held("import lib.registry")["lib/registry.py"]

    def test_an_import_within_a_function(self):
        found = held("from lib.fallback import late\nlate()")
        assert "def kept" in found["lib/registry.py"]
        assert "def helper" in found["lib/registry.py"]

    @pytest.mark.parametrize("text", ["from lib.fallback import named\nnamed()", "import_module('lib.sub.tool')"])
    def test_a_module_that_a_string_names(self, text):
        assert "def rest" in held(text)["lib/sub/tool.py"]

    def test_a_script_that_a_string_names(self):
        assert "def draw" in held("run('beside.py')")["benchmarks/beside.py"]

    @pytest.mark.parametrize("name", ["lib.sub.tool", "lib.sub.deep.low", "lib.sub.top"])
    def test_what_is_started_by_name(self, name):
        assert any(one in str(held("", name)) for one in ("def work", "def low", "def high"))

    def test_globals(self):
        assert "def rest" in held("from lib.sub.tool import work\nwork()")["lib/sub/tool.py"]

    def test_pages_that_are_read_and_pages_in_them(self):
        _, files = reached("from lib.sub import low\nlow()")
        assert {"src/lib/sub/page.html", "src/lib/sub/head.html"} <= files
        assert "src/lib/sub/other.html" not in files
        assert not any(name.endswith(".html") for name in reached("from lib.sub import top\ntop()")[1])

    def test_sources_of_the_extension(self):
        assert {"src/native/fast.cpp", "CMakeLists.txt"} <= reached("from lib.kernel import code\ncode.f()")[1]
        assert "CMakeLists.txt" not in reached("import lib.kernel")[1]


class TestHashes:
    def digest(self, **changed):
        files = LIBRARY | {SCRIPT: "from lib.plain import g\nfrom lib.shapes import Square\ng(Square)\n"} | changed
        return Tree({name: text.encode() for name, text in files.items()}).digests([SCRIPT])

    def altered(self, old, new, name="src/lib/plain.py"):
        assert old in LIBRARY[name]
        return self.digest() != self.digest(**{name: LIBRARY[name].replace(old, new)})

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("return pi", "return pi  # a comment"),
            ("return pi", '\n    """A docstring."""\n    return pi'),
            ("x: Hidden", "x: int"),
            ("return g()", "return 2"),
            ("class Hidden: pass", "class Hidden: x = 1"),
            ("\nLEVEL = 1", "\n\n\nLEVEL = (\n    1\n)"),
        ],
    )
    def test_what_changes_no_number(self, old, new):
        assert not self.altered(old, new)

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("return pi", "return -pi"),
            ("LEVEL = 1", "LEVEL = 2"),
            ("from math import pi", "from cmath import pi"),
            ("from math import pi", "from math import tau as pi"),
            ('TABLE["b"] = 2', 'TABLE["b"] = 3'),
            ("def h(): return", "def h(): yield"),
        ],
    )
    def test_what_may(self, old, new):
        assert self.altered(old, new)

    def test_fields_of_a_class(self):
        assert self.altered("size: Length", "size: int", "src/lib/shapes.py")
        assert self.altered("class Length: pass", "class Length: x = 1", "src/lib/shapes.py")


def test_as_it_was_committed(tmp_path):
    for name, text in LIBRARY.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for command in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    then = standing(tmp_path)
    (tmp_path / "benchmarks" / "beside.py").write_text("")
    assert committed(tmp_path, head.strip()).files == then.files != standing(tmp_path).files
    assert committed(tmp_path, "0" * 40).files == {}


def test_the_command_line_leads_to_all_pages_and_sources_of_the_extension():
    found = standing(ROOT).digests(["benchmarks/start_up.py", "pimeter.__main__"])
    pages = [path for path in (ROOT / "src" / "pimeter").rglob("*") if path.suffix in {".html", ".js", ".css"}]
    native = [path for path in (ROOT / "src" / "native").iterdir() if path.is_file()]
    assert pages
    assert native
    assert {path.relative_to(ROOT).as_posix() for path in [*pages, *native]} <= set(found)


def test_an_array_needs_no_intervals():
    """Quantiles are at the bottom of the library: what is above them counts for nobody who asks for one."""
    found = standing(ROOT).digests(["benchmarks/sketch_accuracy.py"])
    assert "src/pimeter/quantiles.py" in found
    assert not [name for name in found if "conformal" in name or "regression" in name or "evaluation" in name]


def test_another_version_of_python_hashes_the_same(monkeypatch):
    """Syntax trees get fields that are empty, and pieces of text are divided in other places."""
    tree = Tree({"src/one.py": b"def f(x): return f'{x:<{x}} of a b'\nclass A: pass"})
    before = tree.digests(["src/one.py"])
    for kind in (ast.FunctionDef, ast.ClassDef):
        monkeypatch.setattr(kind, "_fields", (*kind._fields, "type_params"))
        monkeypatch.setattr(kind, "type_params", [], raising=False)
    divided = [ast.Constant(" of a "), ast.Constant("b"), ast.Constant("")]
    parsed = ast.parse
    monkeypatch.setattr(ast, "parse", lambda content: Divided(divided).visit(parsed(content)))
    _module.cache_clear()
    assert Tree(tree.files).digests(["src/one.py"]) == before
    _module.cache_clear()


class Divided(ast.NodeTransformer):
    """Text after the last value of an f-string in pieces."""

    def __init__(self, pieces):
        self.pieces = pieces

    def visit_JoinedStr(self, node):
        is_last = isinstance(node.values[-1], ast.Constant) and node.values[-1].value == " of a b"
        return ast.JoinedStr([*node.values[:-1], *self.pieces]) if is_last else node


@pytest.mark.parametrize("name", [*EXPERIMENTS])
def test_methods_of_settings_count(name):
    settings = type(EXPERIMENTS[name].settings)
    places = standing(ROOT).places(starts(EXPERIMENTS[name]))
    file = Path(inspect.getfile(settings)).relative_to(ROOT).as_posix()
    assert (file, inspect.getsourcelines(settings)[1]) in {(file, first) for file, first, _ in places}
