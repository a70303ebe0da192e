"""A connection to one worker over a process's standard streams: jobs out, messages in.

The messages come from another machine, so anything may be in them.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from accelopt_profiling.hosts.host import (
    HostActivity,
    HostFacts,
    HostUnreachableError,
    JobFailedError,
    JobInterruptedError,
    JobMessage,
)
from accelopt_profiling.jobs import Job, Runtime, StepError
from accelopt_profiling.plain import from_plain, to_plain
from accelopt_profiling.waiting import within
from accelopt_profiling.worker.activity import WorkerActivity
from accelopt_profiling.worker.frames import Decoder, encode
from accelopt_profiling.worker.handshake import PROTOCOL
from accelopt_profiling.worker.isolation import Isolation

_KEPT_ERRORS = 4000
_SHOWN = 200
_PIECE = 1 << 16
#: How many messages of one job, and bytes of them, may wait to be read; a step sends at most 32 MiB.
_MOST_WAITING, _MOST_WAITING_BYTES = 10_000, 64 << 20


class _Inbox:
    """The messages of one job or question that nobody has read yet. None ends them."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[tuple[dict[str, Any] | None, int]] = asyncio.Queue()
        self._bytes = 0

    @property
    def too_full(self) -> bool:
        return self._queue.qsize() > _MOST_WAITING or self._bytes > _MOST_WAITING_BYTES

    def put(self, message: dict[str, Any] | None, size: int = 0) -> None:
        self._bytes += size
        self._queue.put_nowait((message, size))

    async def get(self) -> dict[str, Any] | None:
        message, size = await self._queue.get()
        self._bytes -= size
        return message


class WorkerConnection:
    """Starts a worker with ``command``, sends it ``preamble`` (a remote one's archive) and speaks frames with it.

    ``patience`` is how many seconds its first message and an answer may take; after ``silence`` seconds without a
    message about a job it is asked for its status. One connection serves any number of jobs at a
    time. When the worker ends, jobs in flight raise JobInterruptedError. A ``beside`` worker shares this machine: it
    stays in this process's session, because Linux divides the cores between sessions first, and its low priority would
    count for nothing against the editor's server from a session of its own.
    """

    def __init__(self, name: str, command: Sequence[str], preamble: bytes = b"", patience: float = 30.0,
                 environment: dict[str, str] | None = None, silence: float = 30.0,
                 beside: bool = False) -> None:  # fmt: skip
        self._name, self._command, self._preamble, self._patience = name, list(command), preamble, patience
        self._environment, self._silence, self._beside = environment, silence, beside
        self._process: asyncio.subprocess.Process | None = None
        self._facts: HostFacts | None = None
        self._queues: dict[str, _Inbox] = {}
        self._numbers = itertools.count(1)
        self._errors = b""
        self._readers: list[asyncio.Task[None]] = []
        self._decoder = Decoder()
        self._lost = self._closed = False

    @property
    def alive(self) -> bool:
        return self._facts is not None and not self._lost

    @property
    def process(self) -> int | None:
        """The process that ``start`` started, None before."""
        return self._process.pid if self._process is not None else None

    @property
    def facts(self) -> HostFacts:
        """The facts in the worker's first message. Raises HostUnreachableError before it."""
        if self._facts is None:
            raise HostUnreachableError(f"{self._name} is not connected.")
        return self._facts

    async def start(self) -> HostFacts:
        """Start the worker and wait for its handshake.

        Raises:
            HostUnreachableError: the command failed, the worker said nothing in time, or speaks another protocol.
        """
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE, env=self._environment, start_new_session=not self._beside,
            )  # fmt: skip
        except OSError as error:
            raise HostUnreachableError(
                f"{self._name}: {self._command[0]} could not be started: {error}"
            ) from error
        first: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._readers = [
            asyncio.create_task(self._read_messages(first)),
            asyncio.create_task(self._read_errors()),
        ]
        try:
            await self._write_preamble()
            facts = self._introduced(await within(self._patience, first))
            if self._closed:
                raise HostUnreachableError(f"{self._name} was closed while it was started.")
        except (TimeoutError, asyncio.TimeoutError):
            await self.close()
            raise HostUnreachableError(
                f"{self._name} did not answer within {self._patience:g} s.{self._evidence()}"
            ) from None
        except ConnectionError:
            await self.close()
            raise HostUnreachableError(f"{self._name} closed the connection.{self._evidence()}") from None
        except BaseException:
            await self.close()
            raise
        self._facts = facts
        return facts

    async def _write_preamble(self) -> None:
        """Send the preamble. Raises TimeoutError: the process read nothing of it for ``patience`` seconds."""
        with contextlib.suppress(JobInterruptedError):  # it may have ended with a reason, which is read next
            for at in range(0, len(self._preamble), _PIECE):
                await within(self._patience, self._write(self._preamble[at : at + _PIECE]))

    def _introduced(self, message: dict[str, Any]) -> HostFacts:
        if message.get("type") == "refused":
            raise HostUnreachableError(f"{self._name}: {printable(str(message.get('message')))}")
        if message.get("protocol") != PROTOCOL:
            protocol = printable(str(message.get("protocol")))[:_SHOWN]
            raise HostUnreachableError(f"{self._name} speaks protocol {protocol}, this is {PROTOCOL}.")
        try:
            return facts_in(self._name, message)
        except ValueError as error:
            raise HostUnreachableError(
                f"{self._name} introduced itself in a way that cannot be read: {error}."
            ) from None

    async def preload(self, runtime: Runtime) -> None:
        """Ask the worker to import a runtime's packages ahead of the first job that needs them."""
        await self._write(encode({"type": "warm", "runtime": runtime}))

    async def activity(self) -> HostActivity:
        """Ask what all workers of this user do on the host. Raises HostUnreachableError."""
        number = str(next(self._numbers))
        queue = _Inbox()
        self._queues[number] = queue
        try:
            await self._write(encode({"type": "status", "id": number}))
            message = await within(self._patience, queue.get())
        except (TimeoutError, asyncio.TimeoutError):
            raise HostUnreachableError(f"{self._name} did not answer within {self._patience:g} s.") from None
        finally:
            self._queues.pop(number, None)
        if message is None:
            raise HostUnreachableError(f"The connection to {self._name} was lost.{self._evidence()}", 0.0)
        try:
            return activity_in(message)
        except ValueError as error:
            raise HostUnreachableError(f"{self._name} gave an answer that cannot be read: {error}.") from None

    async def run(self, job: Job) -> AsyncGenerator[JobMessage, None]:
        """Run a job as ``Host.run`` does."""
        job_id = str(next(self._numbers))
        queue = _Inbox()
        self._queues[job_id] = queue
        finished = False
        try:
            await self._write(encode({"type": "job", "id": job_id, "job": to_plain(job)}))
            while not finished:
                message = await self._next(queue)
                if message is None:
                    finished = True
                    raise JobInterruptedError(
                        f"The connection to {self._name} was lost.{self._evidence()}", 0.0
                    )
                kind, step = message.get("type"), str(message.get("step", ""))
                if kind == "failed":
                    finished = True
                    raise JobFailedError(step, step_error_in(message))
                if kind in ("partial", "result"):  # a newer worker may say more
                    finished = kind == "result" and bool(message.get("last"))
                    yield JobMessage(step, message.get("value"), kind == "result")
        finally:
            self._queues.pop(job_id, None)
            if not finished and self.alive:
                with contextlib.suppress(ConnectionError, HostUnreachableError):
                    self._write_soon(encode({"type": "cancel", "id": job_id}))

    async def _next(self, queue: _Inbox) -> dict[str, Any] | None:
        """Return the next message of a job, None when the worker is lost: also one that hangs, which a
        question shows."""
        while True:
            try:
                return await within(self._silence, queue.get())
            except (TimeoutError, asyncio.TimeoutError):
                try:
                    await self.activity()
                except JobInterruptedError:
                    return None
                except HostUnreachableError:
                    self._errors += f"\nno answer within {self._patience:g} s while a job ran\n".encode()
                    self._lost = True
                    if self._process is not None:
                        with contextlib.suppress(ProcessLookupError):
                            self._process.kill()
                    return None

    async def close(self) -> None:
        """End the worker: close its input, and kill it if that is not enough."""
        self._closed = True
        process = self._process
        if process is not None and process.returncode is None:
            if process.stdin is not None:
                with contextlib.suppress(OSError, RuntimeError):
                    process.stdin.close()
            try:
                await within(3, process.wait())
            except (TimeoutError, asyncio.TimeoutError):
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        for reader in self._readers:
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)
        self._readers = []

    def _write_soon(self, data: bytes) -> None:
        process = self._process
        if process is None or process.stdin is None or self._lost:
            raise JobInterruptedError(f"The connection to {self._name} was lost.{self._evidence()}", 0.0)
        process.stdin.write(data)

    async def _write(self, data: bytes) -> None:
        self._write_soon(data)
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            await self._process.stdin.drain()
        except ConnectionError:
            self._lost = True
            raise JobInterruptedError(
                f"The connection to {self._name} was lost.{self._evidence()}", 0.0
            ) from None

    async def _read_messages(self, first: asyncio.Future[dict[str, Any]]) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        try:
            unread = 0  # bytes since the last message
            while data := await self._process.stdout.read(1 << 20):
                unread += len(data)
                for message in self._decoder.feed(data):
                    if not first.done():
                        first.set_result(message)
                    elif queue := self._queues.get(str(message.get("id"))):
                        queue.put(message, unread)
                        unread = 0
                        if queue.too_full:
                            self._errors += b"\nit sent messages faster than they can be read\n"
                            self._process.kill()
                            return
        finally:
            self._lost = True
            if not first.done():
                with contextlib.suppress(asyncio.TimeoutError, TimeoutError):
                    await asyncio.wait_for(self._process.wait(), 2)  # its last words come before
            if not first.done():
                first.set_exception(ConnectionError())
                first.exception()  # somebody may wait for it, or nobody any more
            for queue in self._queues.values():
                queue.put(None)

    async def _read_errors(self) -> None:
        assert self._process is not None
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(1 << 16):
            self._errors = (self._errors + data)[-_KEPT_ERRORS:]

    def _evidence(self) -> str:
        """Return the last lines that the worker's side printed, for messages."""
        printed = (
            self._errors.decode(errors="replace").strip()
            or self._decoder.noise.decode(errors="replace").strip()
        )
        lines = [printable(line) for line in printed.splitlines()]
        tail = [line[:_SHOWN] for line in lines if line][-3:]
        return f" It said: {' / '.join(tail)}" if tail else ""


def facts_in(name: str, hello: dict[str, Any]) -> HostFacts:
    """Read the facts in a worker's first message. Raises ValueError naming what is malformed."""
    devices = hello.get("devices", [])
    if not isinstance(devices, list) or not all(isinstance(device, dict) for device in devices):
        raise ValueError("its devices are no list of objects")
    try:
        isolation = from_plain(Isolation, hello.get("isolation"))
    except ValueError:
        isolation = Isolation(note="The worker did not say.")
    return HostFacts(
        name=name, python=str(hello.get("python", "")), devices=devices, isolation=isolation,
        versions={package: str(version) for package, version in _object(hello, "versions").items()},
        memory_bytes=int(_number(hello.get("memory_bytes", 0))),
        memory_free_bytes=int(_number(hello.get("memory_free_bytes", 0))),
        resources={name: _number(amount) for name, amount in _object(hello, "resources").items()},
    )  # fmt: skip


def activity_in(answer: dict[str, Any]) -> HostActivity:
    """Read the answer to "status". Raises ValueError naming what is malformed."""
    holder = answer.get("device")
    device = printable(str(holder.get("what", "another program"))) if isinstance(holder, dict) else ""
    free = {name: _number(amount) for name, amount in _object(answer, "resources_free").items()}
    return HostActivity(from_plain(list[WorkerActivity], answer.get("workers", [])), device, free)


def step_error_in(failed: dict[str, Any]) -> StepError:
    try:
        return from_plain(StepError, failed.get("error"))
    except ValueError:
        return StepError(
            "host-failed", f"The worker sent an error that cannot be read: {failed.get('error')!r:.200}"
        )


def printable(text: str) -> str:
    """Replace control characters, which a terminal would obey, by spaces."""
    return "".join(c if c.isprintable() else " " for c in text).strip()


def _object(message: dict[str, Any], name: str) -> dict[str, Any]:
    value = message.get(name, {})
    if not isinstance(value, dict):
        raise ValueError(f"its {name} are no object")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e300:
        raise ValueError(f"{value!r:.40} is no amount")
    return value
