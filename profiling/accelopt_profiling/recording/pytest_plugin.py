"""A plugin for pytest while it is recorded: passes over cases that would add nothing, and ends those that take long.

A test with hundreds of parameters is run until the kernels that its cases launched have all the shapes that are kept.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from types import FrameType
from typing import Any

import pytest

from accelopt_profiling.recording.start import current_observer

#: Seconds that one case may take: shapes for a GPU can take minutes on a CPU.
CASE_SECONDS = 90.0
#: Cases of one test that launch nothing to be recorded, before its others are passed over.
IDLE_CASES = 8


class CaseTimeoutError(BaseException):
    """A test case took longer than a recording waits.

    Not an ``Exception``, so that no library takes it for its own.
    """


class _Seen:
    """What the cases of one test launched so far."""

    def __init__(self) -> None:
        self.kernels: set[str] = set()
        self.idle = 0


class RecordingPlugin:
    """The hooks; ``passed_over`` counts the cases that were not run."""

    def __init__(self, observer: Any) -> None:
        self._observer = observer
        self._seen: dict[str, _Seen] = {}
        self.passed_over = 0

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Pass over a case whose test has shown all that is kept."""
        record = self._seen.get(_test_of(item))
        if record is None:
            return
        why = ""
        if record.kernels and self._observer.full(record.kernels):
            why = "its kernels have all the shapes that are kept"
        elif not record.kernels and record.idle >= IDLE_CASES:
            why = f"{record.idle} cases launched nothing that is to be recorded"
        if why:
            self.passed_over += 1
            pytest.skip(f"accelopt record: {why}")

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, None]:
        """Note which kernels the case launches, and end it in time."""
        record = self._seen.setdefault(_test_of(item), _Seen())
        before = self._observer.launches
        self._observer.begin_case(record.kernels)
        alarmed = threading.current_thread() is threading.main_thread()
        previous = signal.signal(signal.SIGALRM, _too_long) if alarmed else None
        if alarmed:
            signal.setitimer(signal.ITIMER_REAL, CASE_SECONDS)
        skipped = False
        try:
            outcome = yield
            skipped = outcome.excinfo is not None and issubclass(outcome.excinfo[0], pytest.skip.Exception)
        finally:
            if alarmed:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, previous)
            record.idle += (
                self._observer.launches == before and not skipped
            )  # its parameters do not fit each other

    def pytest_sessionfinish(self) -> None:
        """Say how many cases were passed over."""
        self._observer.passed_over(self.passed_over)


def _test_of(item: pytest.Item) -> str:
    return item.nodeid.split("[")[0]


def _too_long(number: int, frame: FrameType | None) -> None:
    raise CaseTimeoutError(f"accelopt record ends a case after {CASE_SECONDS:.0f} s")


def pytest_configure(config: pytest.Config) -> None:
    """Register the hooks in a process that is watched."""
    observer = current_observer()
    if observer is not None:
        config.pluginmanager.register(RecordingPlugin(observer), "accelopt-record")
