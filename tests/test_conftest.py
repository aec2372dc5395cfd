"""In CI a skip fails the run, unless its reason is one that CI cannot help."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def outcome(tmp_path):
    """Run a test file under this suite's conftest.py: exit status and what was printed."""
    (tmp_path / "conftest.py").write_text(Path(__file__).with_name("conftest.py").read_text())

    def run(source: str, *options: str, **variables: str) -> tuple[int, str]:
        (tmp_path / "test_it.py").write_text(source)
        env = {name: value for name, value in os.environ.items() if not name.startswith(("PIMETER_", "PYTEST_"))}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
        done = subprocess.run(command, cwd=tmp_path, env=env | variables, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    return run


def skipping(reason: str) -> str:
    return (
        f"import pytest\n\ndef test_fine(): pass\n\n@pytest.mark.skip(reason={reason!r})\ndef test_left_out(): pass\n"
    )


WORKERS = pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["one process", "xdist"])


@WORKERS
def test_a_skip_fails_in_ci_and_is_named(outcome, workers):
    status, printed = outcome(skipping("on holiday"), *workers, PIMETER_CI="1")
    assert status == pytest.ExitCode.TESTS_FAILED
    assert "test_it.py::test_left_out: on holiday" in printed


@WORKERS
def test_a_module_that_skips_itself_fails_in_ci(outcome, workers):
    source = "import pytest\n\npytest.importorskip('no_such_package')\n"
    status, printed = outcome(source, *workers, PIMETER_CI="1")
    assert status == pytest.ExitCode.TESTS_FAILED
    assert "could not import 'no_such_package'" in printed.rsplit("skips that fail the run", 1)[1]


def test_a_skip_is_fine_outside_ci(outcome):
    assert outcome(skipping("on holiday"))[0] == pytest.ExitCode.OK


def test_no_gpu_and_expected_failures_are_fine_in_ci(outcome):
    source = skipping("no GPU") + "\n@pytest.mark.xfail\ndef test_wrong(): assert False\n"
    assert outcome(source, PIMETER_CI="1")[0] == pytest.ExitCode.OK


@pytest.mark.parametrize("reason", ["no data: nothing there", "no Chromium"])
def test_data_and_chromium_may_be_missing_only_where_they_cannot_be_had(outcome, reason):
    assert outcome(skipping(reason), PIMETER_CI="1")[0] == pytest.ExitCode.OK
    with_data = pytest.ExitCode.TESTS_FAILED if os.geteuid() == 0 else pytest.ExitCode.OK
    assert outcome(skipping(reason), PIMETER_CI="1", PIMETER_DATA="data")[0] == with_data


def test_data_dir_skips_without_data_and_finds_it_with(outcome, tmp_path):
    source = "def test_data(data_dir): assert data_dir.is_dir()\n"
    assert "no data: PIMETER_DATA is not set" in outcome(source, "-rs")[1]
    assert "1 passed" in outcome(source, PIMETER_DATA=str(tmp_path))[1]
