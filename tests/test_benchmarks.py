"""The benchmarks run; what they say is judged by people, on the committed results."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"


SCRIPTS = sorted(path.stem for path in FOLDER.glob("*_*.py"))


@pytest.mark.parametrize("script", SCRIPTS)
def test_quick_run(script):
    if script.startswith("torch_"):
        pytest.importorskip("torch")
    before = {path: path.stat().st_mtime_ns for path in (FOLDER / "results").glob("*")}
    done = subprocess.run(
        [sys.executable, FOLDER / f"{script}.py", "--quick"], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "numpy" in done.stdout
    assert {path: path.stat().st_mtime_ns for path in (FOLDER / "results").glob("*")} == before
