"""The registry of long work: ids, cancelling, failures, the end."""

from __future__ import annotations

import asyncio
import gc

from accelopt_lsp.state.jobs import BackgroundJob, JobRegistry


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
