"""Which cases of a test count as ones that launch nothing, so that its others are passed over."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from accelopt_profiling.recording.pytest_plugin import IDLE_CASES, RecordingPlugin


class _Observer:
    launches = 0

    def begin_case(self, kernels: set[str]) -> None:
        """Nothing is launched."""

    def full(self, kernels: set[str]) -> bool:
        return False


def run_cases(plugin: RecordingPlugin, error: type[BaseException] | None, count: int) -> None:
    outcome = SimpleNamespace(excinfo=(error, None, None) if error else None)
    for number in range(count):
        item: Any = SimpleNamespace(nodeid=f"test_k.py::test_k[{number}]")
        plugin.pytest_runtest_setup(item)
        case = plugin.pytest_runtest_call(item)
        next(case)
        with pytest.raises(StopIteration):
            case.send(outcome)


@pytest.mark.parametrize("error", [None, ValueError])
def test_the_cases_after_some_that_launch_nothing_are_passed_over(error: type[BaseException] | None) -> None:
    plugin = RecordingPlugin(_Observer())
    run_cases(plugin, error, IDLE_CASES)
    with pytest.raises(pytest.skip.Exception, match="launched nothing"):
        run_cases(plugin, error, 1)
    assert plugin.passed_over == 1


def test_cases_that_skip_themselves_do_not_count() -> None:
    plugin = RecordingPlugin(_Observer())
    run_cases(plugin, pytest.skip.Exception, 3 * IDLE_CASES)
    assert plugin.passed_over == 0
