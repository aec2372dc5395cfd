"""The example that is no page of the gallery runs as it stands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_narrow_intervals_runs_with_one_split_of_few_rows(tmp_path):
    pytest.importorskip("torch")
    example = Path(__file__).parents[1] / "examples" / "narrow_intervals.py"
    environment = {name: value for name, value in os.environ.items() if name != "PIMETER_DATA"}
    command = [sys.executable, example, "1"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "covered" in done.stdout
    assert list(tmp_path.iterdir()) == []
