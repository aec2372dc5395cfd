"""What a user, an interpreter and a type checker see of `pimeter`: the same names, nothing loaded too early."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import pimeter

ROOT = Path(__file__).parents[1]
INIT = Path(pimeter.__file__)


def fresh_interpreter(source: str) -> str:
    """What the source prints in an interpreter that has imported nothing yet."""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_table_type_checking_imports_and_all_agree():
    branches = [node for node in ast.parse(INIT.read_text()).body if isinstance(node, ast.If)]
    imports = [node for branch in branches for node in branch.body if isinstance(node, ast.ImportFrom)]
    seen = {alias.asname or alias.name: node.module for node in imports for alias in node.names}
    assert seen == {name: f"pimeter.{module}" for name, module in pimeter._MODULE_OF.items()}
    assert sorted(seen) == sorted(pimeter.__all__)


def test_dir_lists_every_public_name():
    assert set(pimeter.__all__) | {"__version__"} <= set(dir(pimeter))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'pimeter' has no attribute 'quantil'"):
        pimeter.quantil  # noqa: B018


def test_every_public_name_works_twice_after_all_submodules_were_imported():
    printed = fresh_interpreter("""
import importlib, pkgutil, types
import pimeter

optional = {"dask", "pimeter._native", "skpro", "sktime", "torch", "triton"}
for module in pkgutil.walk_packages(pimeter.__path__, "pimeter."):
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        if error.name not in optional:
            raise
for name in pimeter.__all__:
    first, second = getattr(pimeter, name), getattr(pimeter, name)
    assert first is second and callable(first) and not isinstance(first, types.ModuleType), name
    print(name)
""")
    assert printed.split() == pimeter.__all__


def test_import_loads_numpy_at_most():
    printed = fresh_interpreter("""
import sys

before = set(sys.modules)
import pimeter

roots = {name.partition(".")[0] for name in set(sys.modules) - before}
print(*roots - set(sys.stdlib_module_names))
""")
    assert set(printed.split()) <= {"pimeter", "numpy"}


def test_first_quantile_loads_numpy_alone():
    printed = fresh_interpreter("""
import sys

before = set(sys.modules)
import pimeter

pimeter.quantile([3.0, 1.0, 2.0, 5.0, 4.0], 0.5)
roots = {name.partition(".")[0] for name in set(sys.modules) - before if "cython" not in name}  # what NumPy brings
print(*roots - set(sys.stdlib_module_names))
""")
    assert set(printed.split()) == {"pimeter", "numpy"}


@pytest.mark.slow
def test_type_checker_sees_what_users_see(tmp_path):
    names = "\n".join(f"reveal_type(pm.{name})" for name in pimeter.__all__)
    snippet = tmp_path / "snippet.py"
    snippet.write_text(f"import pimeter as pm\n{names}\npm.quantil\npm.absolute_errors([1.0])\n")
    command = [sys.executable, "-m", "mypy", "--no-error-summary", str(snippet)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if snippet.name in line]
    revealed = lines[: len(pimeter.__all__)]
    assert all("Revealed type is " in line and '"Any"' not in line for line in revealed), done.stdout
    unknown, incomplete = (line for line in lines[len(revealed) :] if ": error: " in line)
    assert 'Module has no attribute "quantil"' in unknown
    assert 'Missing positional argument "y_pred"' in incomplete


def test_no_class_has_the_name_of_another():
    found: dict[str, list[str]] = {}
    # Kernels say the same thing in the arrays of each library, and nobody above them knows their classes.
    for path in sorted(path for path in INIT.parent.rglob("*.py") if "_kernels" not in path.parts):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(path.name)
    twice = {name: paths for name, paths in found.items() if len(paths) > 1}
    assert not twice
