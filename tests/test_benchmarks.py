"""The benchmarks run; what they say is judged by people, on the committed results."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import dependencies, provenance

FOLDER = Path(__file__).parents[1] / "benchmarks"
# Runs a script as if by itself, and says at the end what it has loaded, and called but for what is called on import.
WATCHED = """
import runpy, sys, threading
called = set()

def watch(frame, event, _):
    code = frame.f_code
    if event != "call" or code in called or code.co_name == "<module>" or "site-packages" in code.co_filename:
        return
    above = frame
    while above and above.f_code.co_name != "<module>":
        above = above.f_back
    if above is None or above.f_globals.get("__name__") == "__main__":
        called.add(code)

sys.argv = sys.argv[1:]
sys.path[0] = sys.argv[0].rpartition("/")[0]
threading.setprofile(watch)
sys.setprofile(watch)
runpy.run_path(sys.argv[0], run_name="__main__")
sys.setprofile(None)
files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
print("loaded:", *filter(None, files), sep="\\n")
print("called:", *{f"{code.co_filename}:{code.co_firstlineno}" for code in called}, sep="\\n")
"""
SCRIPTS = sorted(
    [*(path.stem for path in FOLDER.glob("*_*.py")), "clear", "monitoring", "recalibration", "conditional"]
)


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS)
def test_quick_run(script, tmp_path):
    if script.startswith("torch_"):
        pytest.importorskip("torch")
    before = {path: path.stat().st_mtime_ns for path in (FOLDER / "results").glob("*")}
    (tmp_path / "watched.py").write_text(WATCHED)
    command = [sys.executable, tmp_path / "watched.py", FOLDER / f"{script}.py", "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "numpy" in done.stdout
    assert {path: path.stat().st_mtime_ns for path in (FOLDER / "results").glob("*")} == before
    # Its result is said to depend on all functions of the repository that it has called, in files that it has loaded.
    loaded, _, called = done.stdout.partition("loaded:\n")[2].partition("called:\n")
    tree = dependencies.standing(provenance.ROOT)
    known = {part.file for part in tree.reached([f"benchmarks/{script}.py"])}
    unused = {f"src/pimeter/_kernels/{name}.py" for name in ("native", "reference", "stream")}  # dispatch loads one
    assert set(own_files(loaded)) - unused <= known
    counted = {(file, line) for file, *lines in tree.places([f"benchmarks/{script}.py"]) for line in range(*lines)}
    used = {(file, int(line)) for file, line in (one.split(":") for one in own_files(called))}
    # The package's own module finds names lazily; what they lead to counts without it.
    assert {(file, line) for file, line in used - counted if file != "src/pimeter/__init__.py"} == set()


def own_files(text):
    """Paths within the repository, less those that write records."""
    within = f"{provenance.ROOT}/"
    lines = (line.removeprefix(within) for line in text.splitlines() if line.startswith(within))
    others = ("site-packages", ".so", *dependencies.RECORDS)
    return [line for line in lines if not any(other in line for other in others)]
