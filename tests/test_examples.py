"""The examples run as they stand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_runs(example, tmp_path):
    if example.stem in {"narrow_intervals", "with_pytorch"}:
        pytest.importorskip("torch")
    command, environment = [sys.executable, example], dict(os.environ)
    if example.stem == "narrow_intervals":  # one split of few rows
        command.append("1")
        environment.pop("PIMETER_DATA", None)
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "covered" in done.stdout or "expected within" in done.stdout
    assert list(tmp_path.iterdir()) == []
