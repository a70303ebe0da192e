"""Run jobs step by step: each step is forked from its preloaded parent, one at a time on the devices.

Nothing here executes user code or imports NumPy or torch, so nothing that a job does can block or end the worker.
"""

from __future__ import annotations

import errno
import os
import tempfile
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from accelopt_profiling.folder_tree import size_of_tree
from accelopt_profiling.jobs import Job, Runtime, StepError
from accelopt_profiling.plain import from_plain, to_plain
from accelopt_profiling.step_context import host_error
from accelopt_profiling.worker.activity import JobActivity, WorkerActivity, write_activity
from accelopt_profiling.worker.confinement import Confinement
from accelopt_profiling.worker.descriptor_events import DescriptorEvents
from accelopt_profiling.worker.device_lock import DeviceQueue
from accelopt_profiling.worker.job_folders import FolderRemover, write_sources
from accelopt_profiling.worker.limits import FOLDER_SECONDS
from accelopt_profiling.worker.preloaded_parent import PreloadedParent, StepEnded, StepStarted
from accelopt_profiling.worker.running_step import ActiveJob, RunningStep, usage_error
from accelopt_profiling.worker.sandbox_plan import ProjectFolders, SandboxPlan

#: How many jobs run at once; each takes descriptors and a process.
_MOST_JOBS = 64


class JobQueue:
    """The jobs that wait for a place, in the order they came.

    Background jobs have one place per core but one; all jobs together have 64.
    """

    def __init__(self) -> None:
        self._background_places = max(1, (os.cpu_count() or 2) - 1)
        self._waiting: deque[tuple[str, Job]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, job_id: str, job: Job) -> None:
        self._waiting.append((job_id, job))

    def remove(self, job_id: str) -> None:
        """Forget a job; nothing happens when it does not wait."""
        self._waiting = deque(waiting for waiting in self._waiting if waiting[0] != job_id)

    def has_place(self, job: Job, running: Collection[Job]) -> bool:
        """Return whether ``job`` may run beside the jobs that run now."""
        if job.background and sum(other.background for other in running) >= self._background_places:
            return False
        return len(running) < _MOST_JOBS

    def pop(self, running: Collection[Job]) -> tuple[str, Job] | None:
        """Remove and return the first job that may run beside those that do; None when there is none."""
        for waiting in self._waiting:
            if self.has_place(waiting[1], running):
                self._waiting.remove(waiting)
                return waiting
        return None


class JobScheduler:
    """Runs the jobs of one client.

    ``plan`` is what its sandboxes have in common, ``sandboxed`` whether each step gets namespaces of its own. Messages
    for the client go through ``send``; ``events`` calls back when a step or a preloaded parent has written something;
    ``remover`` removes the folders of jobs that have ended.
    """

    def __init__(
        self,
        plan: SandboxPlan,
        sandboxed: bool,
        send: Callable[[dict[str, Any]], None],
        events: DescriptorEvents,
        remover: FolderRemover,
    ) -> None:
        self._plan, self._sandboxed, self._send, self._events = plan, sandboxed, send, events
        self._remover = remover
        self._base, self._projects = plan.base, ProjectFolders(plan)
        self._parents: dict[Runtime, PreloadedParent] = {}
        self._jobs: dict[str, ActiveJob] = {}
        self._queue = JobQueue()
        self._devices: DeviceQueue[ActiveJob] = DeviceQueue()
        self._tokens = 0

    # -- requests of the client ------------------------------------------------------------------------------------

    def submit(self, job_id: str, data: Any) -> None:
        """Start the job in a client's message, or let it wait for a place; a malformed one fails at once."""
        try:
            job = from_plain(Job, data)
            if not job.steps:
                raise ValueError("it has no steps")
        except (ValueError, TypeError) as error:
            why = f"The job does not fit this worker's protocol: {error}"
            self._send_failure(job_id, "", StepError("unsupported", why))
            return
        if self._queue.has_place(job, self._running_jobs()):
            self._start(job_id, job)
        else:
            self._queue.add(job_id, job)

    def cancel(self, job_id: str) -> None:
        """End a job without an answer."""
        self._queue.remove(job_id)
        if job := self._jobs.get(job_id):
            if job.running is None:
                self._finish(job)
            else:
                job.running.cancel()

    def device_holder(self) -> dict[str, Any] | None:
        """Return which worker's step has the host's devices; see ``DeviceLock.holder``."""
        return self._devices.holder()

    def preload(self, runtime: Runtime) -> PreloadedParent:
        """Start the preloaded parent of a runtime unless it is there."""
        if runtime not in self._parents:
            parent = PreloadedParent(runtime, self._plan, self._sandboxed)
            self._parents[runtime] = parent
            self._events.add(parent, partial(self._read_parent, parent))
        return self._parents[runtime]

    # -- the loop --------------------------------------------------------------------------------------------------

    def advance(self) -> None:
        """End what took too long, then start what may run now."""
        self._enforce_deadlines()
        self._start_on_device()
        while waiting := self._queue.pop(self._running_jobs()):
            self._start(*waiting)

    def seconds_until_due(self) -> float | None:
        """Return for how long ``advance`` has nothing to do unless a descriptor can be read; None: forever."""
        running = [job.running for job in self._jobs.values() if job.running is not None]
        deadlines = [r.due for r in running if r.pid is not None and r.killed is None]
        deadlines += [parent.deadline for parent in self._parents.values() if not parent.ready]
        seconds = max(0.0, min(deadlines) - time.monotonic()) + 0.01 if deadlines else None
        if not self._sandboxed and running:
            seconds = min(seconds or FOLDER_SECONDS, FOLDER_SECONDS)
        if self._devices:
            return min(seconds or self._devices.PAUSE, self._devices.PAUSE)
        return seconds

    def close(self) -> None:
        """Kill all steps and end all preloaded parents."""
        for job in self._jobs.values():
            if job.running is not None:
                job.running.kill(None)
        for parent in self._parents.values():
            parent.close()
        for parent in self._parents.values():
            parent.wait()

    def _enforce_deadlines(self) -> None:
        now = time.monotonic()
        for job in list(self._jobs.values()):
            running = job.running
            if running is None or running.killed is not None or running.pid is None:
                continue
            if not self._sandboxed and size_of_tree(str(job.folder)) > running.step.limits.written_bytes:
                running.kill(usage_error("written", running.step.limits))
            running.enforce(now)
        for parent in list(self._parents.values()):
            if not parent.ready and now > parent.deadline:
                parent.kill()

    # -- jobs ------------------------------------------------------------------------------------------------------

    def _running_jobs(self) -> list[Job]:
        return [job.job for job in self._jobs.values()]

    def _start(self, job_id: str, job: Job) -> None:
        try:
            folder = Path(tempfile.mkdtemp(prefix="job-", dir=self._base))
        except OSError as error:
            self._send_failure(job_id, "", host_error("The job got no folder on the host", error))
            return
        active = ActiveJob(job_id, job, folder)
        self._jobs[job_id] = active
        try:
            self._write(folder / "src", job.source.files)
        except OSError as error:
            self._fail(active, host_error("The job's files could not be written on the host", error), "")
        except ValueError as error:
            self._fail(active, StepError("unsupported", str(error)), "")
        else:
            self._start_step(active)

    def _write(self, root: Path, files: Mapping[str, str]) -> None:
        """Write a job's files. On a full disk once more, when what ended jobs had left is removed."""
        try:
            write_sources(root, files)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            self._remover.wait({job.folder.name for job in self._jobs.values()})
            write_sources(root, files)

    def _start_step(self, job: ActiveJob) -> None:
        job.since = time.monotonic()
        if job.step.device:
            self.preload(job.step.runtime)  # it imports while the step waits for the devices
            self._devices.add(job, job.name)
            self._start_on_device()
        else:
            self._fork_step(job)
        self._write_activity()

    def _start_on_device(self) -> None:
        """Start the first step that waits for the devices, if they are free."""
        try:
            job = self._devices.acquire_for_next()
        except OSError as error:
            if (first := self._devices.first()) is not None:
                self._fail(first, host_error("The lock of the host's devices cannot be used", error))
            return
        if job is not None:
            job.since = time.monotonic()
            self._fork_step(job)
            self._write_activity()

    def _fork_step(self, job: ActiveJob) -> None:
        step = job.step
        parent = self.preload(step.runtime)
        self._tokens += 1
        running, frames, output = RunningStep.prepare(str(self._tokens), step)
        job.running = running
        needs = Confinement(*self._projects.of_job(job.job.source.import_paths), step.device)
        body = {
            "name": step.name, "params": step.params, "folder": str(job.folder), "background": job.job.background,
            "source": to_plain(job.job.source), "limits": to_plain(step.limits), "key": running.key.hex(),
            "needs": to_plain(needs),
        }  # fmt: skip
        try:
            if parent.missing is not None:
                running.killed = parent.missing_error
            else:
                parent.request(running.token, body, self._base, frames, output)
        except ConnectionError:
            running.killed = parent.ended_error
        except OSError as error:
            running.killed = host_error(f"The step {step.name} could not be started on the host", error)
        finally:
            os.close(frames)
            os.close(output)
        if running.killed is not None:
            running.ended = 1
            self._end_step(job)
            return
        self._events.add(running.frames, partial(self._read_frames, job, running))
        self._events.add(running.output, partial(self._read_output, running))

    def _read_frames(self, job: ActiveJob, running: RunningStep) -> None:
        for message in running.read_frames():
            self._forward(job, running, message)
        self._remove_closed(running)

    def _read_output(self, running: RunningStep) -> None:
        running.read_output()
        self._remove_closed(running)

    def _forward(self, job: ActiveJob, running: RunningStep, message: dict[str, Any]) -> None:
        value = message.get("value")
        try:
            self._send({"type": "partial", "id": job.id, "step": running.step.name, "value": value})
        except (ValueError, RecursionError) as error:
            running.kill(_encoding_error(error))

    def _remove_closed(self, running: RunningStep) -> None:
        for descriptor in (running.frames, running.output):
            if descriptor not in running.open_pipes:
                self._events.remove(descriptor)

    def _end_step(self, job: ActiveJob) -> None:
        running = job.running
        assert running is not None
        for descriptor in (running.frames, running.output):
            self._events.remove(descriptor)
        for message in running.drain():
            self._forward(job, running, message)
        job.running = None
        if running.step.device:
            self._devices.release()
        outcome = running.outcome()
        if running.cancelled:
            self._finish(job)
        elif isinstance(outcome, StepError):
            self._fail(job, outcome)
        else:
            self._send_result(job, outcome.get("value"))

    def _send_result(self, job: ActiveJob, value: Any) -> None:
        try:
            self._send({
                "type": "result", "id": job.id, "step": job.step.name, "value": value, "last": job.last
            })  # fmt: skip
        except (ValueError, RecursionError) as error:
            self._fail(job, _encoding_error(error))
            return
        if job.last:
            self._finish(job)
        else:
            job.index += 1
            self._start_step(job)

    def _send_failure(self, job_id: str, step: str, error: StepError) -> None:
        self._send({"type": "failed", "id": job_id, "step": step, "error": to_plain(error)})

    def _fail(self, job: ActiveJob, error: StepError, step: str | None = None) -> None:
        self._send_failure(job.id, job.step.name if step is None else step, error)
        self._finish(job)

    def _finish(self, job: ActiveJob) -> None:
        self._jobs.pop(job.id, None)
        self._devices.remove(job)
        self._remover.remove(job.folder.name)
        self._write_activity()

    def _write_activity(self) -> None:
        now, jobs = time.monotonic(), []
        for job in self._jobs.values():
            device = ("holds" if job.running is not None else "waits") if job.step.device else ""
            jobs.append(
                JobActivity(
                    job.name,
                    job.step.name,
                    seconds=now - job.since,
                    background=job.job.background,
                    device=device,
                )
            )
        write_activity(self._base, WorkerActivity(os.getpid(), jobs, len(self._queue)))

    # -- preloaded parents -----------------------------------------------------------------------------------------

    def _read_parent(self, parent: PreloadedParent) -> None:
        messages = parent.read()
        if messages is None:
            self._remove_parent(parent)
            return
        if parent.ready and parent.missing is not None:
            for _, running in self._steps_of(parent):
                running.kill(parent.missing_error)
        for message in messages:
            for job, running in self._steps_of(parent):
                if running.token == message.token:
                    self._update_step(job, running, message)

    def _update_step(self, job: ActiveJob, running: RunningStep, message: StepStarted | StepEnded) -> None:
        if isinstance(message, StepStarted):
            running.started(message.pid)
        else:
            running.ended = message.status
            limits = running.step.limits
            beyond = message.why or (
                "written" if size_of_tree(str(job.folder)) > limits.written_bytes else ""
            )
            running.killed = running.killed or usage_error(beyond, limits)
            self._end_step(job)

    def _remove_parent(self, parent: PreloadedParent) -> None:
        """Fail the steps of a preloaded parent that has ended. The next request starts another."""
        self._events.remove(parent)
        parent.close()
        self._parents.pop(parent.runtime, None)
        parent.wait()
        for job, running in self._steps_of(parent):
            running.killed = running.killed or parent.ended_error
            running.ended = 1
            self._end_step(job)

    def _steps_of(self, parent: PreloadedParent) -> list[tuple[ActiveJob, RunningStep]]:
        running = [(job, job.running) for job in self._jobs.values() if job.running is not None]
        return [(job, step) for job, step in running if step.step.runtime == parent.runtime]


def _encoding_error(error: Exception) -> StepError:
    return StepError("unsupported", f"The run answered with values that cannot be sent on: {error}.")
