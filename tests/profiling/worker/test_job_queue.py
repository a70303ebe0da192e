"""Background jobs wait for a core, all jobs for a place, and start in the order in which they came."""

import os

import pytest

from accelopt_profiling.jobs import Job, JobFiles, Step
from accelopt_profiling.worker.job_scheduler import JobQueue


def job(name: str, background: bool = False) -> Job:
    return Job(JobFiles(name, {}), [Step("load", "numpy")], background)


def test_background_jobs_leave_a_core_and_others_pass_them():
    queue, running = JobQueue(), []
    cores = max(1, (os.cpu_count() or 2) - 1)
    while queue.has_place(job("search", background=True), running):
        running.append(job("search", background=True))
    assert len(running) == cores
    assert queue.has_place(job("save"), running)
    queue.add("1", job("later", background=True))
    queue.add("2", job("save"))
    assert queue.pop(running) == ("2", job("save"))
    assert queue.pop(running) is None
    assert queue.pop(running[1:]) == ("1", job("later", background=True))


@pytest.mark.parametrize("gone", ["2", "none"])
def test_all_jobs_together_are_bounded_and_served_in_order(gone):
    queue = JobQueue()
    running = [job("k")] * 64
    assert not queue.has_place(job("k"), running)
    for number in range(1, 4):
        queue.add(str(number), job("k"))
    queue.remove(gone)
    assert len(queue) == 3 - (gone == "2")
    assert queue.pop(running) is None
    served = [queue.pop(running[1:]) for _ in range(len(queue))]
    assert [number for number, _ in served] == [n for n in "123" if n != gone]
