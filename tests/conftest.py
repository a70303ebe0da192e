"""For all tests: nothing says how fast this machine is, and what many processes need is made once."""

import gc
import json
import os
import re
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from support.shared_host import SharedHost, SharedWorkers

from accelopt_profiling.worker.environment import IDLE_THREADS

# Before NumPy and torch are imported here, and for all processes that tests start.
os.environ.update(IDLE_THREADS)

# Hypothesis's own deadline is too short on a busy machine. In CI it draws the same examples each time.
settings.register_profile(
    "patient", settings.get_profile("ci" if os.environ.get("CI") else "default"), deadline=None
)
settings.load_profile("patient")

# Python keeps what it compiled, whatever the environment says: the tests start hundreds of processes, and each would
# compile the project anew. The workers of pytest-xdist and all they start inherit this.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


@pytest.fixture(scope="session")
def workers() -> Iterator[SharedWorkers]:
    workers = SharedWorkers()
    yield workers
    workers.close()


@pytest.fixture
def shared_host(workers: SharedWorkers) -> SharedHost:
    """A local host whose worker all tests have in common."""
    return workers.host()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Thousands of tests, and the modules that they import, stay to the end: collecting garbage finds none there."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


#: Seconds of the tests that took more than ``LONG`` of them when they last ran with ``NOTE_DURATIONS`` set.
DURATIONS, LONG = Path(__file__).with_name("durations.json"), 20.0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the longest tests first: at the end of a run all workers still have something to do."""
    seconds = json.loads(DURATIONS.read_text())
    items.sort(key=lambda item: -seconds.get(item.nodeid, 0.0))


def _started() -> int:
    """Return how many processes and threads this machine has started since it runs."""
    return int(re.findall(r"^processes (\d+)", Path("/proc/stat").read_text(), re.MULTILINE)[0])


_STARTED_BEFORE = _started()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(
        f"{_started() - _STARTED_BEFORE:,} processes and threads started on this machine meanwhile"
    )
    if os.environ.get("NOTE_DURATIONS"):
        ran: dict[str, float] = {}
        for report in terminalreporter.getreports("passed"):
            ran[report.nodeid] = ran.get(report.nodeid, 0.0) + report.duration
        seconds = json.loads(DURATIONS.read_text()) | ran
        long = {test: round(time) for test, time in seconds.items() if time > LONG}
        DURATIONS.write_text(json.dumps(dict(sorted(long.items())), indent=0) + "\n")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    """In CI a test that is skipped has failed: what it needs is installed there."""
    report = yield
    return _refuse_skips(report)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, Any, Any]:
    """A module that is skipped as a whole."""
    report = yield
    return _refuse_skips(report)


def _refuse_skips(report: Any) -> Any:
    if report.skipped and os.environ.get("CI"):
        report.outcome, report.longrepr = "failed", f"skipped in CI: {report.longrepr[2]}"
    return report
