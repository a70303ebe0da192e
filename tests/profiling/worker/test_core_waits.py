"""The limit of a step's time: what the step waited for a core does not count."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from accelopt_profiling.jobs import Limits, Step
from accelopt_profiling.worker import running_step
from accelopt_profiling.worker.running_step import RunningStep, seconds_without_core

BUSY = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\nwhile True: pass"


@pytest.mark.skipif(not os.path.exists("/proc/self/schedstat"), reason="the kernel does not count waits")
def test_a_process_that_shares_its_core_waited_and_one_that_sleeps_did_not():
    both = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(2)]
    sleeping = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 10
        while seconds_without_core(both[0].pid) < 0.1 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert seconds_without_core(both[0].pid) >= 0.1
        before = seconds_without_core(sleeping.pid)
        time.sleep(0.1)
        assert seconds_without_core(sleeping.pid) - before < 0.05
    finally:
        for process in (*both, sleeping):
            process.kill()
            process.communicate()


def test_a_process_that_is_gone_waited_for_nothing():
    assert seconds_without_core(1 << 30) == 0


@pytest.mark.parametrize(
    ("waited", "after", "ends"),
    [(0.0, 11, True), (5.0, 14, False), (5.0, 16, True), (1e9, 99, False), (1e9, 101, True)],
)
def test_a_step_is_ended_by_its_own_time_and_at_last_by_the_clock(monkeypatch, waited, after, ends):
    monkeypatch.setattr(running_step, "seconds_without_core", lambda pid: waited)
    running, *write_ends = RunningStep.prepare("1", Step("profile", "numpy", limits=Limits(seconds=10)))
    running.pid, running.ended = 1 << 30, 0
    running.enforce(running.began + after)
    assert (running.killed is not None) is ends
    assert ends or running.due > running.began + after
    for descriptor in (running.frames, running.output, *write_ends):
        os.close(descriptor)
