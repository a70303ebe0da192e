"""The worker's main loop: framed JSON in, framed JSON out; children are forked from warm parents, one per step.

The supervisor executes no user code and imports neither NumPy nor torch, so nothing a job does can block or end it.
``docs/worker_protocol.md`` describes the messages.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelopt_profiling.jobs import Job, Limits, Runtime, StepError
from accelopt_profiling.plain import from_plain, to_plain
from accelopt_profiling.worker.activity import Activity, RunningJob, all_activity, tell
from accelopt_profiling.worker.cell import isolation
from accelopt_profiling.worker.device_lock import DeviceLock
from accelopt_profiling.worker.frames import Decoder, encode
from accelopt_profiling.worker.hello import hello
from accelopt_profiling.worker.janitor import leave_a_janitor
from accelopt_profiling.worker.parent import Ended, Started, WarmParent
from accelopt_profiling.worker.running import RunningStep
from accelopt_profiling.worker.sources import pid_space, remove_stale_folders, write_sources

#: How often another worker's lock of the devices is tried again, in seconds.
_DEVICE_PATIENCE = 0.02


@dataclass
class _RunningJob:
    id: str
    job: Job
    folder: Path
    index: int = 0
    running: RunningStep | None = None
    since: float = 0.0  # when the current step began, or began to wait for the device


class Supervisor:
    """Serves one client on two descriptors until the input ends."""

    def __init__(self, read: int, write: int) -> None:
        self._read, self._write = read, write
        self._decoder = Decoder()
        self._selector = selectors.DefaultSelector()
        self._parents: dict[Runtime, WarmParent] = {}
        self._jobs: dict[str, _RunningJob] = {}
        self._waiting: deque[tuple[str, Job]] = deque()  # background jobs that wait for a place
        self._lock = DeviceLock()
        self._for_device: deque[_RunningJob] = deque()  # jobs whose step waits for the lock of the devices
        remove_stale_folders()
        self._base = Path(tempfile.mkdtemp(prefix=f"accelopt-{os.getpid()}-{pid_space()}-"))
        leave_a_janitor(self._base)
        self._isolation = isolation()
        self._places = max(1, (os.cpu_count() or 2) - 1)
        self._tokens = 0
        self._open = True

    def serve(self) -> None:
        """Serve until the input ends or the client says "shutdown"; then end everything and remove every file."""
        os.set_blocking(self._read, False)
        self._selector.register(self._read, selectors.EVENT_READ, self._hear_client)
        try:
            self._send(hello(self._isolation))
            while self._open:
                for key, _ in self._selector.select(self._patience()):
                    if key.fd in self._selector.get_map():
                        key.data()
                self._enforce_deadlines()
                self._start_on_device()
        except BrokenPipeError:
            pass
        finally:
            self._end()

    # -- the client ------------------------------------------------------------------------------------------------

    def _send(self, message: dict[str, Any]) -> None:
        data = memoryview(encode(message))
        while data:
            data = data[os.write(self._write, data) :]

    def _hear_client(self) -> None:
        data = os.read(self._read, 1 << 20)
        if not data:
            self._open = False
            return
        for message in self._decoder.feed(data):
            kind = message.get("type")
            if kind == "job":
                self._accept(str(message.get("id")), message.get("job"))
            elif kind == "cancel":
                self._cancel(str(message.get("id")))
            elif kind == "warm" and message.get("runtime") in ("numpy", "torch"):
                self._parent(message["runtime"])
            elif kind == "status":
                self._send({
                    "type": "status", "id": str(message.get("id")), "workers": to_plain(all_activity()),
                    "device": self._lock.holder(),
                })  # fmt: skip
            elif kind == "shutdown":
                self._open = False

    def _accept(self, job_id: str, data: Any) -> None:
        try:
            job = from_plain(Job, data)
        except (ValueError, TypeError) as error:
            self._fail(
                job_id, "", StepError("unsupported", f"The job does not fit this worker's protocol: {error}")
            )
            return
        if job.background and sum(r.job.background for r in self._jobs.values()) >= self._places:
            self._waiting.append((job_id, job))
            return
        self._start(job_id, job)

    def _cancel(self, job_id: str) -> None:
        self._waiting = deque(w for w in self._waiting if w[0] != job_id)
        if running := self._jobs.get(job_id):
            if running.running is None:
                self._finish(running)
            else:
                running.running.kill(StepError("cancelled", "The job was cancelled."))

    def _fail(self, job_id: str, step: str, error: StepError) -> None:
        self._send({"type": "failed", "id": job_id, "step": step, "error": to_plain(error)})

    # -- jobs ------------------------------------------------------------------------------------------------------

    def _start(self, job_id: str, job: Job) -> None:
        folder = Path(tempfile.mkdtemp(prefix="job-", dir=self._base))
        running = _RunningJob(job_id, job, folder)
        self._jobs[job_id] = running
        try:
            write_sources(folder / "src", job.source.files)
            self._start_step(running)
        except OSError as error:
            code = "disk-full" if error.errno in (27, 28, 122) else "internal"
            self._fail(
                job_id, "", StepError(code, f"The job's files could not be written on the host: {error}")
            )
            self._finish(running)
        except ValueError as error:
            self._fail(job_id, "", StepError("unsupported", str(error)))
            self._finish(running)

    def _start_step(self, job: _RunningJob) -> None:
        job.since = time.monotonic()
        if job.job.steps[job.index].device:
            self._parent(job.job.steps[job.index].runtime)  # so that it is warm when its turn comes
            self._for_device.append(job)
            self._start_on_device()
        else:
            self._fork_step(job)
        self._tell()

    def _start_on_device(self) -> None:
        """Start the first step that waits for the devices, if they are free."""
        while self._for_device and self._jobs.get(self._for_device[0].id) is not self._for_device[0]:
            self._for_device.popleft()  # cancelled in the meantime
        if not self._for_device:
            return
        job = self._for_device[0]
        try:
            taken = self._lock.try_take(job.job.source.name or job.job.source.kernel)
        except OSError as error:
            self._for_device.popleft()
            why = f"The lock of the host's devices cannot be used: {error}"
            self._fail(job.id, job.job.steps[job.index].name, StepError("internal", why))
            self._finish(job)
            return
        if taken:
            self._for_device.popleft()
            job.since = time.monotonic()
            self._fork_step(job)
            self._tell()

    def _tell(self) -> None:
        now, jobs = time.monotonic(), []
        for job in self._jobs.values():
            step = job.job.steps[min(job.index, len(job.job.steps) - 1)]
            device = ("holds" if job.running is not None else "waits") if step.device else ""
            kernel = job.job.source.name or job.job.source.kernel
            jobs.append(RunningJob(kernel, step.name, now - job.since, job.job.background, device))
        tell(self._base, Activity(os.getpid(), jobs, len(self._waiting)))

    def _fork_step(self, job: _RunningJob) -> None:
        step = job.job.steps[job.index]
        parent = self._parent(step.runtime)
        self._tokens += 1
        running, frames, output = RunningStep.prepare(str(self._tokens), step)
        job.running = running
        body = {
            "name": step.name, "params": step.params, "folder": str(job.folder), "background": job.job.background,
            "source": to_plain(job.job.source), "limits": to_plain(step.limits), "device": step.device,
        }  # fmt: skip
        try:
            if parent.missing is not None:
                running.killed, running.ended = _missing(parent), 1
            else:
                parent.request(running.token, body, job.folder, frames, output)
        except (BrokenPipeError, ConnectionResetError):
            running.killed, running.ended = _lost(parent), 1
        finally:
            os.close(frames)
            os.close(output)
        if running.ended is not None:
            self._end_step(job)
            return
        self._selector.register(running.frames, selectors.EVENT_READ, lambda: self._hear_frames(job, running))
        self._selector.register(running.output, selectors.EVENT_READ, lambda: self._hear_output(running))

    def _hear_frames(self, job: _RunningJob, running: RunningStep) -> None:
        for message in running.read_frames():
            self._forward(job, running, message)
        self._forget_closed(running)

    def _hear_output(self, running: RunningStep) -> None:
        running.read_output()
        self._forget_closed(running)

    def _forward(self, job: _RunningJob, running: RunningStep, message: dict[str, Any]) -> None:
        self._send(
            {"type": "partial", "id": job.id, "step": running.step.name, "value": message.get("value")}
        )

    def _forget_closed(self, running: RunningStep) -> None:
        for descriptor in (running.frames, running.output):
            if descriptor not in running.open_pipes:
                with contextlib.suppress(KeyError, ValueError):
                    self._selector.unregister(descriptor)

    def _end_step(self, job: _RunningJob) -> None:
        running = job.running
        assert running is not None
        for descriptor in (running.frames, running.output):
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(descriptor)
        for message in running.drain():
            self._forward(job, running, message)
        job.running = None
        if running.step.device:
            self._lock.release()
        outcome = running.outcome()
        if isinstance(outcome, StepError):
            if outcome.code != "cancelled":
                self._fail(job.id, running.step.name, outcome)
            self._finish(job)
            return
        last = job.index == len(job.job.steps) - 1
        self._send(
            {
                "type": "result",
                "id": job.id,
                "step": running.step.name,
                "value": outcome.get("value"),
                "last": last,
            }
        )
        if last:
            self._finish(job)
        else:
            job.index += 1
            self._start_step(job)

    def _finish(self, job: _RunningJob) -> None:
        self._jobs.pop(job.id, None)
        shutil.rmtree(job.folder, ignore_errors=True)
        self._tell()
        if job.job.background and self._waiting:
            self._start(*self._waiting.popleft())

    # -- warm parents ----------------------------------------------------------------------------------------------

    def _parent(self, runtime: Runtime) -> WarmParent:
        if runtime not in self._parents:
            parent = WarmParent(runtime, self._base, self._isolation.processes)
            self._parents[runtime] = parent
            self._selector.register(parent, selectors.EVENT_READ, self._hearing(parent))
        return self._parents[runtime]

    def _hearing(self, parent: WarmParent) -> Callable[[], None]:
        return lambda: self._hear_parent(parent)

    def _hear_parent(self, parent: WarmParent) -> None:
        heard = parent.hear()
        if heard is None:
            self._lose(parent)
            return
        if parent.ready and parent.missing is not None:
            for job in list(self._jobs.values()):
                if job.running is not None and job.running.step.runtime == parent.runtime:
                    job.running.kill(_missing(parent))
        by_token = {job.running.token: job for job in self._jobs.values() if job.running is not None}
        for word in heard:
            owner = by_token.get(word.token)
            if owner is None or owner.running is None:
                continue
            if isinstance(word, Started):
                owner.running.started(word.pid)
            elif isinstance(word, Ended):
                owner.running.ended = word.status
                owner.running.killed = owner.running.killed or _beyond(word.why, owner.running.step.limits)
                self._end_step(owner)

    def _lose(self, parent: WarmParent) -> None:
        self._selector.unregister(parent)
        parent.close()
        self._parents.pop(parent.runtime, None)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(parent.pid, 0)
        for job in list(self._jobs.values()):
            if job.running is not None and job.running.step.runtime == parent.runtime:
                job.running.killed = job.running.killed or _lost(parent)
                job.running.ended = 1
                self._end_step(job)

    # -- time ------------------------------------------------------------------------------------------------------

    def _patience(self) -> float | None:
        deadlines = [
            j.running.deadline for j in self._jobs.values() if j.running and j.running.killed is None
        ]
        patience = max(0.0, min(deadlines) - time.monotonic()) + 0.01 if deadlines else None
        if self._for_device:
            return min(patience or _DEVICE_PATIENCE, _DEVICE_PATIENCE)
        return patience

    def _enforce_deadlines(self) -> None:
        now = time.monotonic()
        for job in list(self._jobs.values()):
            running = job.running
            if (
                running is not None
                and running.killed is None
                and now > running.deadline
                and running.pid is not None
            ):
                limit = running.step.limits.seconds
                running.kill(StepError("timeout", f"The run took longer than {limit:g} s and was ended."))

    def _end(self) -> None:
        for job in self._jobs.values():
            if job.running is not None:
                job.running.kill(None)
        for parent in self._parents.values():
            parent.close()
        for parent in self._parents.values():
            with contextlib.suppress(ChildProcessError):
                os.waitpid(parent.pid, 0)
        shutil.rmtree(self._base, ignore_errors=True)


def _beyond(why: str, limits: Limits) -> StepError | None:
    if why == "memory":
        return StepError("memory", "The run used more memory than its limit, all its processes together.")
    if why == "processes":
        return StepError(
            "user-error", f"The run started more than {limits.processes} processes and was ended."
        )
    return None


def _lost(parent: WarmParent) -> StepError:
    return StepError(
        "crashed", f"The worker's {parent.runtime} process ended unexpectedly; save again to start it anew."
    )


def _missing(parent: WarmParent) -> StepError:
    what = f"{parent.missing} cannot be imported where kernels run"
    return StepError("missing-package", f"{what}: pip install 'accelopt-lsp[triton]' there, then save again.")
