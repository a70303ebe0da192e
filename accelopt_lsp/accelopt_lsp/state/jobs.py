"""Run long work: each profile and each search is a task in one registry, with an id that cancels it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any, TypeVar
from urllib.parse import unquote
from uuid import uuid4

from accelopt_lsp.actions import ACTIONS

log = logging.getLogger(__name__)

T = TypeVar("T")

#: How long a job that is cancelled may take to end with what it has, in seconds: more than a search needs.
STOPPING_SECONDS = 15.0


@dataclass(frozen=True)
class BackgroundJob:
    """One piece of long work: the name of its action, its document, and its title for people.

    A ``paused`` search begins nothing new. ``started`` is in seconds since the epoch; ``progress`` is how far a search
    is, as plain data.
    """

    kind: str
    uri: str
    title: str
    kernel: str | None = None
    paused: bool = False
    started: float = field(default_factory=time.time)
    progress: dict[str, Any] | None = None
    id: str = field(default_factory=lambda: uuid4().hex[:12])

    @classmethod
    def of(cls, action: str, uri: str, kernel: str | None = None, **words: str) -> BackgroundJob:
        """Return the job that an action starts; the kernel's or the file's name, and ``words``, fill its title."""
        file = PurePosixPath(unquote(uri)).name
        title = ACTIONS[action].job.format(**{"file": file, "kernel": kernel or file, **words})
        return cls(action, uri, title.strip(), kernel)


async def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Await ``work`` whole, even where the caller is cancelled meanwhile; the caller is cancelled after it."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


@dataclass
class JobRegistry:
    """The running tasks by job id. Strong references: the event loop alone would let a task be collected.

    ``changed`` is called after a job starts or ends, ``failed`` with a job and what it raised.
    """

    changed: Callable[[], None] = lambda: None
    failed: Callable[[BackgroundJob, Exception], None] = lambda job, error: None
    _running: dict[str, tuple[BackgroundJob, asyncio.Task[None]]] = field(default_factory=dict)
    _stops: dict[str, Callable[[], None]] = field(default_factory=dict)

    def start(self, job: BackgroundJob, work: Coroutine[Any, Any, None]) -> BackgroundJob:
        """Run ``work`` as ``job`` on the running event loop; what it raises goes to ``failed``."""
        task = asyncio.get_running_loop().create_task(self._guarded(job, work), name=f"{job.kind} {job.uri}")
        self._running[job.id] = (job, task)
        task.add_done_callback(lambda _: self._ended(job, work))
        self.changed()
        return job

    def cancel(self, job_id: str, at_once: bool = False) -> bool:
        """Cancel one job; False when it is not running (any more). One that has ``ends_with`` gets time to end with
        what it has, unless it is cancelled ``at_once`` or again."""
        running, stop = self._running.get(job_id), self._stops.pop(job_id, None)
        if running is None or stop is None or at_once:
            return running is not None and running[1].cancel()
        stop()
        asyncio.get_running_loop().call_later(STOPPING_SECONDS, running[1].cancel)
        return True

    def ends_with(self, job_id: str, stop: Callable[[], None] | None) -> None:
        """Note what asks a job to end with what it has; None where nothing does (any more)."""
        self._stops.pop(job_id, None)
        if stop is not None:
            self._stops[job_id] = stop

    def mark(self, job_id: str, paused: bool) -> bool:
        """Note that a job rests, or goes on; False when it is not running (any more)."""
        if job_id not in self._running:
            return False
        self._change(job_id, paused=paused)
        self.changed()
        return True

    def note(self, job_id: str, progress: dict[str, Any]) -> None:
        """Note how far a running job is; ``changed`` is not told of it."""
        self._change(job_id, progress=progress)

    def _change(self, job_id: str, **fields: Any) -> None:
        job, task = self._running[job_id]
        self._running[job_id] = (replace(job, **fields), task)

    def cancel_for(self, uri: str, kind: str | None = None) -> list[asyncio.Task[None]]:
        """Cancel the jobs of a document, all or of one kind; returns their tasks, which may still be cleaning up."""
        tasks = [task for job, task in self._running.values() if job.uri == uri and kind in (None, job.kind)]
        for task in tasks:
            task.cancel()
        return tasks

    def running(self, uri: str | None = None, kind: str | None = None) -> Iterator[BackgroundJob]:
        """Yield the jobs that run, oldest first."""
        for job, task in list(self._running.values()):
            if not task.done() and uri in (None, job.uri) and kind in (None, job.kind):
                yield job

    async def close(self, seconds: float = 2.0) -> None:
        """Cancel everything and wait, at most ``seconds``, until it has cleaned up."""
        tasks = [task for _, task in self._running.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)

    async def _guarded(self, job: BackgroundJob, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:
            log.exception("%s of %s failed", job.kind, job.uri)
            self.failed(job, error)

    def _ended(self, job: BackgroundJob, work: Coroutine[Any, Any, None]) -> None:
        work.close()  # a task that is cancelled before its first step never awaits it
        self._running.pop(job.id, None)
        self._stops.pop(job.id, None)
        self.changed()


class BackgroundTasks:
    """Quick follow-up work of handlers. What it raises is logged, goes to ``failed`` and ends nothing else."""

    def __init__(self, failed: Callable[[BaseException], None] = lambda error: None) -> None:
        self._failed = failed
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run ``work`` on the running event loop."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def close(self) -> None:
        """Cancel everything."""
        for task in self._tasks:
            task.cancel()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("background work failed", exc_info=error)
            self._failed(error)
