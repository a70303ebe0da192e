"""A job that runs and its current step, as the supervisor sees them: pipes, deadline, messages and outcome. A limit of
time leaves out how long the process stood ready and got no core, so that load decides nothing.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accelopt_profiling.jobs import Job, Limits, Step, StepError
from accelopt_profiling.plain import from_plain
from accelopt_profiling.worker.frames import ForgedMessageError, SealedDecoder, new_key

_KEPT_OUTPUT = 16_000
#: How many bytes of results a step may send; the profile of a large file takes a few of the 32 MiB.
_MOST_SENT = 32 << 20
#: Exit status of a step whose messages no longer reached anybody.
UNHEARD = 44
#: So long a process may live on whose messages have ended before its answer.
_SILENT_SECONDS = 5.0
#: A step ends after so many times its limit, however long it waited for a core. Our choice.
_LONGEST = 10
_FORGED = StepError(
    "tampered", "Code of the file wrote into the channel of the process's own messages, or closed it."
)


@dataclass
class RunningStep:
    """The process of one step.

    ``frames`` and ``output`` are the read ends of the child's pipes; ``answer`` is its result or error.

    The limit of its time leaves out what it waited for a core, so that the load of the host decides nothing;
    ``began`` and ``deadline`` are on the clock (``time.monotonic``).

    User code runs in the child and can write to either pipe. What it writes to ``frames`` lacks the seal, and a message
    after the answer, a second answer, or an end of the messages before it end the step.
    """

    token: str
    step: Step
    frames: int
    output: int
    began: float
    deadline: float
    key: bytes
    decoder: SealedDecoder
    pid: int | None = None
    ended: int | None = None  # exit status
    killed: StepError | None = None
    cancelled: bool = False
    answer: dict[str, Any] | None = None
    silent_until: float | None = None
    sent: int = 0
    printed: int = 0
    tail: bytes = b""
    open_pipes: set[int] = field(default_factory=set)

    @classmethod
    def prepare(cls, token: str, step: Step) -> tuple[RunningStep, int, int]:
        """Return a running step and the write ends of its two pipes."""
        frames_read, frames_write = os.pipe()
        output_read, output_write = os.pipe()
        os.set_blocking(frames_read, False)
        os.set_blocking(output_read, False)
        began, key = time.monotonic(), new_key()
        deadline = began + step.limits.seconds
        running = cls(token, step, frames_read, output_read, began, deadline, key, SealedDecoder(key))
        running.open_pipes = {frames_read, output_read}
        return running, frames_write, output_write

    def read_frames(self) -> list[dict[str, Any]]:
        """Return the partial results that have arrived. The result or error is kept in ``answer``."""
        data = self._read(self.frames)
        if not data and self.frames not in self.open_pipes and self.answer is None and self.ended is None:
            self.silent_until = time.monotonic() + _SILENT_SECONDS
        self.sent += len(data)
        if self.sent > _MOST_SENT:
            mib = _MOST_SENT >> 20
            why = f"The run sent more than {mib} MiB of results and was ended."
            self.kill(StepError("too-much-output", why))
            return []
        partial: list[dict[str, Any]] = []
        try:
            for message in self.decoder.feed(data):
                if self.answer is not None:
                    raise ForgedMessageError
                if message.get("type") == "partial":
                    partial.append(message)
                else:
                    self.answer = message
        except ForgedMessageError:
            self.kill(_FORGED)
        return partial

    def read_output(self) -> None:
        data = self._read(self.output)
        self.printed += len(data)
        self.tail = (self.tail + data)[-_KEPT_OUTPUT:]
        if self.printed > self.step.limits.output_bytes and self.killed is None:
            mib = self.step.limits.output_bytes / (1 << 20)
            self.kill(StepError("too-much-output", f"The run printed more than {mib:.0f} MiB and was ended."))

    def _read(self, descriptor: int) -> bytes:
        try:
            data = os.read(descriptor, 1 << 20)
        except BlockingIOError:
            return b""
        except OSError:
            data = b""
        if not data:
            self.open_pipes.discard(descriptor)
        return data

    def started(self, pid: int) -> None:
        """Note the child's process number.

        Its time runs from now, and a kill that came before takes effect.
        """
        self.pid = pid
        self.began = time.monotonic()
        self.deadline = self.began + self.step.limits.seconds
        if self.killed is not None or self.cancelled:
            self.kill(None)

    def enforce(self, now: float) -> None:
        """End the process when its time is over, or when its messages have ended and it has not."""
        limit = self.step.limits.seconds
        if now > self.deadline and self.pid is not None:
            waited = seconds_without_core(self.pid)
            self.deadline = self.began + min(limit + waited, _LONGEST * limit)
        if now > self.deadline:
            self.kill(StepError("timeout", f"The run took longer than {limit:g} s and was ended."))
        elif self.silent_until is not None and now > self.silent_until:
            self.kill(_FORGED)

    @property
    def due(self) -> float:
        """When ``enforce`` has something to do (``time.monotonic``)."""
        return self.deadline if self.silent_until is None else min(self.deadline, self.silent_until)

    def cancel(self) -> None:
        """End the child without an answer."""
        self.cancelled = True
        self.kill(None)

    def kill(self, why: StepError | None) -> None:
        """Kill the child and its process group; ``why`` becomes the step's answer."""
        self.killed = self.killed or why
        if self.pid is not None and self.ended is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, signal.SIGKILL)

    def drain(self) -> list[dict[str, Any]]:
        """Read what is left in the pipes after the child's end and close them, even if a stray process holds them."""
        partial: list[dict[str, Any]] = []
        before = -1
        while self.frames in self.open_pipes and self.killed is None and self.sent > before:
            before = self.sent
            partial += self.read_frames()
        self.read_output()
        os.close(self.frames)
        os.close(self.output)
        self.open_pipes.clear()
        return partial

    def outcome(self) -> dict[str, Any] | StepError:
        """Return the step's result message, or why there is none.

        A result counts only of a process that ended well.
        """
        if self.killed is not None:
            return self.killed
        if self.answer is not None and self.answer.get("type") == "result":
            return self.answer if self.ended == 0 and not self.decoder.unfinished else _FORGED
        if self.answer is not None and self.answer.get("type") == "error":
            try:
                return from_plain(StepError, self.answer.get("error"))
            except ValueError as error:
                return StepError(
                    "host-failed", f"The run ended with an error that cannot be read ({error}); try again."
                )
        return self._exit_error()

    def _exit_error(self) -> StepError:
        status = self.ended or 0
        printed = self.tail[-2000:].decode(errors="replace")
        if status == UNHEARD or (status >= 0 and self.decoder.unfinished):
            return _FORGED
        if status in (-signal.SIGALRM, -signal.SIGPROF):
            return StepError("timeout", "The run took longer than it may and was ended.", detail=printed)
        if status == -signal.SIGKILL:
            message = (
                "The system ended the process that ran it (SIGKILL), as it does when memory runs out, or when it "
                "used up its processor time; close what else runs, and try again."
            )
            return StepError("memory", message, detail=printed)
        if status < 0:
            try:
                name = signal.Signals(-status).name
            except ValueError:
                name = f"signal {-status}"
            return StepError("crashed", f"The process that ran it crashed with {name}.", detail=printed)
        message = f"The file ended its own process (exit {status})."
        if status == 0:
            message = "The process ended without its result: the file ended it (exit 0), or took the result's channel."
        return StepError("exited", message, detail=printed)


def usage_error(why: str, limits: Limits) -> StepError | None:
    """Return the answer of a step whose processes together went beyond a limit (``StepEnded.why``)."""
    if why == "memory":
        return StepError("memory", "The run used more memory than its limit, all its processes together.")
    if why == "processes":
        return StepError(
            "user-error", f"The run started more than {limits.processes} processes and was ended."
        )
    if why == "written":
        message = f"The run wrote more than {limits.written_bytes >> 20} MiB to files and was ended."
        return StepError("user-error", message)
    return None


@dataclass(eq=False)
class ActiveJob:
    """A job and its current step.

    ``running`` is the step's process, None while it waits for the devices.

    ``since`` is when the step began, or began to wait (``time.monotonic``).
    """

    id: str
    job: Job
    folder: Path
    index: int = 0
    running: RunningStep | None = None
    since: float = 0.0

    @property
    def step(self) -> Step:
        return self.job.steps[self.index]

    @property
    def last(self) -> bool:
        return self.index == len(self.job.steps) - 1

    @property
    def name(self) -> str:
        return self.job.source.name or self.job.source.kernel


_PROC = Path("/proc")


def seconds_without_core(pid: int) -> float:
    """Return the seconds that the step with the main process ``pid`` was ready to run and waited for a core.

    The kernel counts the waits per thread (second field of ``/proc/PID/schedstat``, in ns; Linux, "Scheduler
    Statistics"). Those of the main thread count, and beside them the longest of any other thread or process that it
    started: while one waits for the other only one of them is ready. 0 where the kernel does not tell.
    """
    main, *others = [_waited(thread) for thread in _threads(pid)] or [0.0]
    return main + max(others, default=0.0)


def _threads(pid: int) -> Iterator[Path]:
    """Yield the threads of a process, the main one first, then those of the processes that they started."""
    folder = _PROC / str(pid) / "task"
    with contextlib.suppress(OSError, ValueError):
        threads = sorted((int(t.name) != pid, t) for t in folder.iterdir())
        yield from (thread for _, thread in threads)
        for _, thread in threads:
            for child in (thread / "children").read_text().split():
                yield from _threads(int(child))


def _waited(thread: Path) -> float:
    try:
        return int((thread / "schedstat").read_text().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0
