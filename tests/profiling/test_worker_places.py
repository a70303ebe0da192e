"""Which jobs run and which wait: background ones for a core, all for a place, in the order in which they came."""

import os

import pytest

from accelopt_profiling.jobs import Job, Source, Step
from accelopt_profiling.worker.places import Places


def job(name: str, background: bool = False) -> Job:
    return Job(Source(name, {}), [Step("load", "numpy")], background)


def test_background_jobs_leave_a_core_and_others_pass_them():
    places, running = Places(), []
    cores = max(1, (os.cpu_count() or 2) - 1)
    while places.free_for(job("search", background=True), running):
        running.append(job("search", background=True))
    assert len(running) == cores
    assert places.free_for(job("save"), running)
    places.wait("1", job("later", background=True))
    places.wait("2", job("save"))
    assert places.next(running) == ("2", job("save"))
    assert places.next(running) is None
    assert places.next(running[1:]) == ("1", job("later", background=True))


@pytest.mark.parametrize("gone", ["2", "none"])
def test_all_jobs_together_are_bounded_and_served_in_order(gone):
    places = Places()
    running = [job("k")] * 64
    assert not places.free_for(job("k"), running)
    for number in range(1, 4):
        places.wait(str(number), job("k"))
    places.leave(gone)
    assert len(places) == 3 - (gone == "2")
    assert places.next(running) is None
    served = [places.next(running[1:]) for _ in range(len(places))]
    assert [number for number, _ in served] == [n for n in "123" if n != gone]
