"""The worker's main loop: framed JSON in, framed JSON out; children are forked from warm parents, one per step.

The supervisor executes no user code and imports neither NumPy nor torch, so nothing a job does can block or end it.
``docs/explanation/worker-protocol.md`` describes the messages.
"""

from __future__ import annotations

import os
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from accelopt_profiling.jobs import Job, Runtime, StepError
from accelopt_profiling.plain import from_plain, to_plain
from accelopt_profiling.worker import activity
from accelopt_profiling.worker.device_queue import DeviceQueue
from accelopt_profiling.worker.frames import Decoder, encode
from accelopt_profiling.worker.hello import hello
from accelopt_profiling.worker.isolation import isolation
from accelopt_profiling.worker.janitor import leave_a_janitor
from accelopt_profiling.worker.listening import Listening
from accelopt_profiling.worker.parent import Ended, Started, WarmParent
from accelopt_profiling.worker.places import Places
from accelopt_profiling.worker.running import RunningStep, beyond
from accelopt_profiling.worker.running_job import RunningJob
from accelopt_profiling.worker.sources import pid_space, remove_folder, remove_stale_folders, write_sources
from accelopt_profiling.worker.step import host_error


class Supervisor:
    """Serves one client on two descriptors until the input ends."""

    def __init__(self, read: int, write: int) -> None:
        self._read, self._write = read, write
        self._decoder = Decoder()
        self._listening = Listening()
        self._parents: dict[Runtime, WarmParent] = {}
        self._jobs: dict[str, RunningJob] = {}
        self._places = Places()
        self._devices: DeviceQueue[RunningJob] = DeviceQueue()
        remove_stale_folders()
        self._base = Path(tempfile.mkdtemp(prefix=f"accelopt-{os.getpid()}-{pid_space()}-"))
        leave_a_janitor(self._base)
        self._isolation = isolation()
        self._tokens = 0
        self._open = True

    def serve(self) -> None:
        """Serve until the input ends or the client says "shutdown"; then end everything and remove every file."""
        self._listening.hear(self._read, self._hear_client)
        try:
            self._send(hello(self._isolation))
            while self._open:
                self._listening.wait(self._patience())
                self._enforce_deadlines()
                self._start_on_device()
                self._start_waiting()
        except ConnectionError:
            pass  # the client has gone
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
                    "type": "status", "id": str(message.get("id")), "workers": to_plain(activity.all_activity()),
                    "device": self._devices.holder(),
                })  # fmt: skip
            elif kind == "shutdown":
                self._open = False

    def _accept(self, job_id: str, data: Any) -> None:
        try:
            job = from_plain(Job, data)
            if not job.steps:
                raise ValueError("it has no steps")
        except (ValueError, TypeError) as error:
            why = f"The job does not fit this worker's protocol: {error}"
            self._fail(job_id, "", StepError("unsupported", why))
            return
        if self._places.free_for(job, self._running()):
            self._start(job_id, job)
        else:
            self._places.wait(job_id, job)

    def _running(self) -> list[Job]:
        return [job.job for job in self._jobs.values()]

    def _cancel(self, job_id: str) -> None:
        self._places.leave(job_id)
        if job := self._jobs.get(job_id):
            if job.running is None:
                self._finish(job)
            else:
                job.running.cancel()

    def _fail(self, job_id: str, step: str, error: StepError) -> None:
        self._send({"type": "failed", "id": job_id, "step": step, "error": to_plain(error)})

    # -- jobs ------------------------------------------------------------------------------------------------------

    def _start(self, job_id: str, job: Job) -> None:
        try:
            folder = Path(tempfile.mkdtemp(prefix="job-", dir=self._base))
        except OSError as error:
            self._fail(job_id, "", host_error("The job got no folder on the host", error))
            return
        running = RunningJob(job_id, job, folder)
        self._jobs[job_id] = running
        try:
            write_sources(folder / "src", job.source.files)
        except OSError as error:
            self._give_up(running, host_error("The job's files could not be written on the host", error), "")
        except ValueError as error:
            self._give_up(running, StepError("unsupported", str(error)), "")
        else:
            self._start_step(running)

    def _start_step(self, job: RunningJob) -> None:
        job.since = time.monotonic()
        if job.step.device:
            self._parent(job.step.runtime)  # so that it is warm when its turn comes
            self._devices.join(job, job.name)
            self._start_on_device()
        else:
            self._fork_step(job)
        self._tell()

    def _start_on_device(self) -> None:
        """Start the first step that waits for the devices, if they are free."""
        try:
            job = self._devices.next()
        except OSError as error:
            if (first := self._devices.first()) is not None:
                self._give_up(first, host_error("The lock of the host's devices cannot be used", error))
            return
        if job is not None:
            job.since = time.monotonic()
            self._fork_step(job)
            self._tell()

    def _fork_step(self, job: RunningJob) -> None:
        step = job.step
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
                running.killed = parent.lacks
            else:
                parent.request(running.token, body, self._base, frames, output)
        except ConnectionError:
            running.killed = parent.lost
        except OSError as error:
            running.killed = host_error(f"The step {step.name} could not be started on the host", error)
        finally:
            os.close(frames)
            os.close(output)
        if running.killed is not None:
            running.ended = 1
            self._end_step(job)
            return
        self._listening.hear(running.frames, partial(self._hear_frames, job, running))
        self._listening.hear(running.output, partial(self._hear_output, running))

    def _hear_frames(self, job: RunningJob, running: RunningStep) -> None:
        for message in running.read_frames():
            self._forward(job, running, message)
        self._forget_closed(running)

    def _hear_output(self, running: RunningStep) -> None:
        running.read_output()
        self._forget_closed(running)

    def _forward(self, job: RunningJob, running: RunningStep, message: dict[str, Any]) -> None:
        value = message.get("value")
        try:
            self._send({"type": "partial", "id": job.id, "step": running.step.name, "value": value})
        except (ValueError, RecursionError) as error:
            running.kill(_unsendable(error))

    def _forget_closed(self, running: RunningStep) -> None:
        for descriptor in (running.frames, running.output):
            if descriptor not in running.open_pipes:
                self._listening.forget(descriptor)

    def _end_step(self, job: RunningJob) -> None:
        running = job.running
        assert running is not None
        for descriptor in (running.frames, running.output):
            self._listening.forget(descriptor)
        for message in running.drain():
            self._forward(job, running, message)
        job.running = None
        if running.step.device:
            self._devices.release()
        outcome = running.outcome()
        if running.cancelled:
            self._finish(job)
        elif isinstance(outcome, StepError):
            self._give_up(job, outcome)
        else:
            self._answer(job, outcome.get("value"))

    def _answer(self, job: RunningJob, value: Any) -> None:
        try:
            self._send({
                "type": "result", "id": job.id, "step": job.step.name, "value": value, "last": job.last
            })  # fmt: skip
        except (ValueError, RecursionError) as error:
            self._give_up(job, _unsendable(error))
            return
        if job.last:
            self._finish(job)
        else:
            job.index += 1
            self._start_step(job)

    def _give_up(self, job: RunningJob, error: StepError, step: str | None = None) -> None:
        self._fail(job.id, job.step.name if step is None else step, error)
        self._finish(job)

    def _finish(self, job: RunningJob) -> None:
        self._jobs.pop(job.id, None)
        self._devices.leave(job)
        remove_folder(job.folder)
        self._tell()

    def _start_waiting(self) -> None:
        while waiting := self._places.next(self._running()):
            self._start(*waiting)

    def _tell(self) -> None:
        now, jobs = time.monotonic(), []
        for job in self._jobs.values():
            device = ("holds" if job.running is not None else "waits") if job.step.device else ""
            jobs.append(
                activity.RunningJob(job.name, job.step.name, now - job.since, job.job.background, device)
            )
        activity.tell(self._base, activity.Activity(os.getpid(), jobs, len(self._places)))

    # -- warm parents ----------------------------------------------------------------------------------------------

    def _parent(self, runtime: Runtime) -> WarmParent:
        if runtime not in self._parents:
            parent = WarmParent(runtime, self._base, self._isolation.processes)
            self._parents[runtime] = parent
            self._listening.hear(parent, partial(self._hear_parent, parent))
        return self._parents[runtime]

    def _hear_parent(self, parent: WarmParent) -> None:
        heard = parent.hear()
        if heard is None:
            self._lose(parent)
            return
        if parent.ready and parent.missing is not None:
            for _, running in self._steps_of(parent):
                running.kill(parent.lacks)
        for word in heard:
            for job, running in self._steps_of(parent):
                if running.token == word.token:
                    self._hear_of(job, running, word)

    def _hear_of(self, job: RunningJob, running: RunningStep, word: Started | Ended) -> None:
        if isinstance(word, Started):
            running.started(word.pid)
        else:
            running.ended = word.status
            running.killed = running.killed or beyond(word.why, running.step.limits)
            self._end_step(job)

    def _lose(self, parent: WarmParent) -> None:
        self._listening.forget(parent)
        parent.close()
        self._parents.pop(parent.runtime, None)
        parent.wait()
        for job, running in self._steps_of(parent):
            running.killed = running.killed or parent.lost
            running.ended = 1
            self._end_step(job)

    def _steps_of(self, parent: WarmParent) -> list[tuple[RunningJob, RunningStep]]:
        running = [(job, job.running) for job in self._jobs.values() if job.running is not None]
        return [(job, step) for job, step in running if step.step.runtime == parent.runtime]

    # -- time ------------------------------------------------------------------------------------------------------

    def _patience(self) -> float | None:
        """How long there is nothing to do unless something is heard, in seconds; None: forever."""
        running = [job.running for job in self._jobs.values() if job.running is not None]
        deadlines = [r.deadline for r in running if r.pid is not None and r.killed is None]
        deadlines += [parent.deadline for parent in self._parents.values() if not parent.ready]
        now = time.monotonic()
        patience = max(0.0, min(deadlines) - now) + 0.01 if deadlines else None
        if self._devices:
            return min(patience or self._devices.PAUSE, self._devices.PAUSE)
        return patience

    def _enforce_deadlines(self) -> None:
        now = time.monotonic()
        for job in list(self._jobs.values()):
            running = job.running
            if running is None or running.killed is not None or running.pid is None:
                continue
            if now > running.deadline:
                limit = running.step.limits.seconds
                running.kill(StepError("timeout", f"The run took longer than {limit:g} s and was ended."))
        for parent in list(self._parents.values()):
            if not parent.ready and now > parent.deadline:
                parent.kill()

    def _end(self) -> None:
        for job in self._jobs.values():
            if job.running is not None:
                job.running.kill(None)
        for parent in self._parents.values():
            parent.close()
        for parent in self._parents.values():
            parent.wait()
        remove_folder(self._base)


def _unsendable(error: Exception) -> StepError:
    return StepError("internal", f"The step answered with what cannot be sent on: {error}")
