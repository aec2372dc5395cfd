"""The examples run as they stand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_runs(example, tmp_path):
    if example.stem in {"narrow_intervals", "with_pytorch"}:
        pytest.importorskip("torch")
    command = [sys.executable, example, *(["1"] if example.stem == "narrow_intervals" else [])]  # one split
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "covered" in done.stdout or "expected within" in done.stdout
    assert list(tmp_path.iterdir()) == []
