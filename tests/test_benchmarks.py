"""The benchmarks run; what they say is judged by people, on the committed results."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import provenance

FOLDER = Path(__file__).parents[1] / "benchmarks"
# Runs a script as if by itself, and says at the end what it has loaded.
WATCHED = """
import runpy, sys
sys.argv = sys.argv[1:]
sys.path[0] = sys.argv[0].rpartition("/")[0]
runpy.run_path(sys.argv[0], run_name="__main__")
files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
print("loaded:", *filter(None, files), sep="\\n")
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
    # The record of its result names all files of the repository that it has loaded.
    loaded = [Path(line) for line in done.stdout.partition("loaded:")[2].split("\n")]
    own = {path for path in loaded if path.is_relative_to(provenance.ROOT) and "site-packages" not in path.parts}
    found = provenance.sources(FOLDER / f"{script}.py")
    assert own - {Path(provenance.__file__)} <= set(found)
