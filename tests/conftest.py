"""Fixtures, and the rule that in CI a test may only be skipped for a reason that CI cannot help.

Tests say why they skip with a reason that starts with "no GPU", "no peer" (a large library that only docs mention), "no
data" or "no Chromium". Under PIMETER_CI=1 every other skip fails the run. A machine without data has no PIMETER_DATA; a
user who is not root may not be able to read the data or to start Chromium.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

# A busy machine is no failure. CI draws the same examples each time, people draw new ones.
settings.register_profile("pimeter", deadline=None, derandomize=os.environ.get("PIMETER_CI") == "1")
settings.load_profile("pimeter")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder of the real datasets."""
    folder = os.environ.get("PIMETER_DATA")
    if not folder:
        pytest.skip("no data: PIMETER_DATA is not set")
    if not os.access(folder, os.R_OK | os.X_OK):
        pytest.skip(f"no data: PIMETER_DATA={folder} cannot be read")
    return Path(folder)


def _is_accepted(reason: str) -> bool:
    accepted = ["no GPU", "no peer"]
    if not os.environ.get("PIMETER_DATA") or os.geteuid() != 0:
        accepted += ["no data", "no Chromium"]
    return reason.startswith(tuple(accepted))


class _SkipWatch:
    """Gathers skips where all reports arrive: in the only process, or in the one that leads the xdist workers."""

    def __init__(self) -> None:
        self.unaccepted: set[tuple[str, str]] = set()

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            reason = report.longrepr[2].removeprefix("Skipped: ")
            if not _is_accepted(reason):
                self.unaccepted.add((report.nodeid, reason))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.unaccepted and session.exitstatus in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.unaccepted:
            terminalreporter.section("skips that fail the run (PIMETER_CI=1)", red=True)
            for nodeid, reason in sorted(self.unaccepted):
                terminalreporter.line(f"{nodeid}: {reason}")


def pytest_configure(config: pytest.Config) -> None:
    is_worker = hasattr(config, "workerinput")
    if os.environ.get("PIMETER_CI") == "1" and not is_worker:
        config.pluginmanager.register(_SkipWatch(), "skip-watch")


@pytest.fixture(autouse=True, scope="session")
def _can_be_interrupted():
    """Also in the background, where shells have Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
