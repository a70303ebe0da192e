"""The registry of long work: ids, cancelling, failures, the end."""

from __future__ import annotations

import asyncio
import gc

import pytest

from accelopt_lsp.state.jobs import BackgroundJob, JobRegistry, to_its_end


async def test_a_job_is_listed_while_it_runs_and_cancelled_by_its_id() -> None:
    jobs, reached = JobRegistry(), asyncio.Event()

    async def work() -> None:
        reached.set()
        await asyncio.Event().wait()

    job = jobs.start(BackgroundJob("profile", "file:///k.py", "Profiling k.py"), work())
    await reached.wait()
    assert list(jobs.running("file:///k.py", "profile")) == [job]
    assert list(jobs.running("file:///other.py")) == []
    assert jobs.cancel(job.id)
    await jobs.close()
    assert not jobs.cancel(job.id)
    assert list(jobs.running()) == []


async def test_a_job_cancelled_before_it_began_leaves_no_unawaited_work(recwarn: object) -> None:
    jobs = JobRegistry()

    async def work() -> None:
        raise AssertionError("it never began")

    jobs.start(BackgroundJob("profile", "file:///k.py", ""), work())
    await asyncio.wait(jobs.cancel_for("file:///k.py"))
    gc.collect()
    assert not [w for w in recwarn if "never awaited" in str(w.message)]  # type: ignore[attr-defined]


async def test_a_failing_job_is_told_and_ends_nothing_else() -> None:
    failures: list[tuple[BackgroundJob, Exception]] = []
    changes: list[int] = []
    jobs = JobRegistry(
        changed=lambda: changes.append(1), failed=lambda job, error: failures.append((job, error))
    )

    async def fail() -> None:
        raise RuntimeError("a bug")

    job = jobs.start(BackgroundJob("optimize", "file:///k.py", ""), fail())
    [task] = [task for _, task in jobs._running.values()]
    await task
    assert [(j, str(e)) for j, e in failures] == [(job, "a bug")]
    assert len(changes) == 2


@pytest.mark.parametrize("way", ["it ends", "it does not end", "cancelled again", "cancelled at once"])
async def test_a_job_that_can_end_with_what_it_has_gets_time_for_it(
    monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(
        "accelopt_lsp.state.jobs.STOPPING_SECONDS", 0.01 if way == "it does not end" else 3600
    )
    jobs, end_request, ends = JobRegistry(), asyncio.Event(), asyncio.Event()
    whole: list[bool] = []

    async def work() -> None:
        await ends.wait()
        whole.append(True)

    job = jobs.start(BackgroundJob("optimize", "file:///k.py", ""), work())
    jobs.ends_with(job.id, end_request.set)
    [task] = [task for _, task in jobs._running.values()]
    assert jobs.cancel(job.id, at_once=way == "cancelled at once")
    assert end_request.is_set() == (way != "cancelled at once")
    if way == "it ends":
        ends.set()
    if way == "cancelled again":
        assert jobs.cancel(job.id)
    await asyncio.wait_for(asyncio.wait([task]), 60)
    assert (task.cancelled(), whole) == (way != "it ends", [True] if way == "it ends" else [])


@pytest.mark.parametrize("cancelled", [False, True])
async def test_what_is_awaited_to_its_end_is_done_though_the_job_is_cancelled(cancelled: bool) -> None:
    jobs, reached, steps = JobRegistry(), asyncio.Event(), []

    async def write() -> None:
        reached.set()
        await asyncio.sleep(0.01)
        steps.append("written")

    async def work() -> None:
        await to_its_end(write())
        steps.append("told")

    job = jobs.start(BackgroundJob("accept", "file:///k.py", ""), work())
    await reached.wait()
    [task] = [task for _, task in jobs._running.values()]
    if cancelled:
        jobs.cancel(job.id)
    await asyncio.wait([task])
    assert steps == (["written"] if cancelled else ["written", "told"])
