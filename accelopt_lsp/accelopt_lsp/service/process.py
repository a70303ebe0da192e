"""Run the service in a process of its own: profiles, searches and the memory never take the event loop's time.

A search parses and rewrites syntax trees for seconds; in the server's process it would hold up every answer to the
editor. The child runs ``process_main.py``. One that ends is started again by the next call.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import subprocess
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import TYPE_CHECKING, Any

from accelopt_agent.model.editor_request import Complete, EditorModelReply, no_models
from accelopt_agent.suggestions.suggestion import Suggestion
from accelopt_lsp.errors import UserError
from accelopt_lsp.own_process import SERVICE
from accelopt_lsp.service.messages import (
    CallbackMessage,
    CallEnd,
    CallItem,
    CallRequest,
    CancelCall,
    ModelReply,
    ModelRequest,
    WithdrawModelRequest,
    encode,
    read_message,
)
from accelopt_lsp.service.protocol import FileText, SearchEvent, SearchRequest, StoredSearches
from accelopt_lsp.settings.load import Settings
from accelopt_profiling.measurement import FileMeasurement
from accelopt_profiling.waiting import within

if TYPE_CHECKING:
    from accelopt_agent.migration.comparison import ComparedMigration
    from accelopt_profiling.problems.inference.inferred import InferredProblem

log = logging.getLogger(__name__)

#: How long the child may take to end what runs, in seconds.
PATIENCE = 8.0


class _Child:
    """A child process with its pipes on the event loop."""

    def __init__(
        self, popen: subprocess.Popen[bytes], stdin: asyncio.StreamWriter, stdout: asyncio.StreamReader
    ) -> None:
        self.popen, self.stdin, self.stdout = popen, stdin, stdout

    @classmethod
    async def of(cls, popen: subprocess.Popen[bytes]) -> _Child:
        loop, stdout = asyncio.get_running_loop(), asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdout), popen.stdout)
        transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, popen.stdin)
        return cls(popen, asyncio.StreamWriter(transport, protocol, None, loop), stdout)

    async def wait(self) -> int:
        """Wait for the end of the child; its exit code."""
        return await asyncio.to_thread(self.popen.wait)


class ProcessService:
    """A ``Service`` that lives in a child process, which ``command`` starts."""

    def __init__(self, command: Sequence[str] = SERVICE) -> None:
        self.host_problem: Callable[[str | None], None] = lambda reason: None
        self.memory_problem: Callable[[str], None] = lambda reason: None
        self.isolation_problem: Callable[[str], None] = lambda line: None
        self.complete: Complete = no_models
        self._questions: dict[tuple[int, int], asyncio.Task[None]] = {}
        self._command = command
        self._process: _Child | None = None
        self._reading: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._calls: dict[int, asyncio.Queue[CallItem | CallEnd]] = {}
        self._numbers = itertools.count()
        self._closed = False

    async def start(self) -> None:
        """Start the child ahead of the first call."""
        await self._running()

    async def stored_searches(self, file: FileText, saved: bool = False) -> StoredSearches:
        answer: StoredSearches = await self._value("stored_searches", file, saved)
        return answer

    def profile(self, file: FileText) -> AsyncGenerator[FileMeasurement, None]:
        return self._values("profile", file)

    async def migrate(self, file: FileText) -> ComparedMigration:
        answer: ComparedMigration = await self._value("migrate", file)
        return answer

    async def infer_problem(self, file: FileText, kernel: str) -> InferredProblem:
        answer: InferredProblem = await self._value("infer_problem", file, kernel)
        return answer

    def optimize(
        self, file: FileText, kernel: str, request: SearchRequest
    ) -> AsyncGenerator[SearchEvent, None]:
        return self._values("optimize", file, kernel, request)

    async def pause(self, job: str, on: bool) -> None:
        await self._value("pause", job, on)

    async def stop(self, job: str) -> None:
        await self._value("stop", job)

    async def memory_for_kernel(self, file: FileText, kernel: str, bound: str | None) -> str:
        return str(await self._value("memory_for_kernel", file, kernel, bound))

    async def memory_with_words(self, words: str, settings: Settings) -> str:
        return str(await self._value("memory_with_words", words, settings))

    async def forget(self, pair: str, settings: Settings) -> str:
        return str(await self._value("forget", pair, settings))

    async def past_runs(self, path: str, settings: Settings) -> str:
        return str(await self._value("past_runs", path, settings))

    async def suggestion(self, suggestion_id: str, settings: Settings) -> Suggestion | None:
        answer: Suggestion | None = await self._value("suggestion", suggestion_id, settings)
        return answer

    async def accept(self, suggestion: Suggestion, settings: Settings) -> str:
        return str(await self._value("accept", suggestion, settings))

    async def reject(self, suggestion: Suggestion, settings: Settings, reason: str = "") -> str:
        return str(await self._value("reject", suggestion, settings, reason))

    async def unreject(self, suggestion: Suggestion, settings: Settings) -> str:
        return str(await self._value("unreject", suggestion, settings))

    async def learn(self, file: FileText, slow: str, kernel: str) -> str:
        return str(await self._value("learn", file, slow, kernel))

    def explain(
        self, suggestion: Suggestion, settings: Settings, ask_model: bool
    ) -> AsyncGenerator[str, None]:
        return self._values("explain", suggestion, settings, ask_model)

    async def depends_on(self, file: FileText, paths: frozenset[str]) -> bool:
        return bool(await self._value("depends_on", file, paths))

    async def close(self) -> None:
        """End the child; at the end of its input it ends what runs and closes the memory."""
        self._closed = True
        process = self._process
        if process is None:
            return
        process.stdin.close()
        try:
            await within(PATIENCE, process.wait())
        except (TimeoutError, asyncio.TimeoutError):
            process.popen.kill()
            await process.wait()
        if self._reading is not None:
            await self._reading

    async def _value(self, method: str, *arguments: Any) -> Any:
        async with contextlib.aclosing(self._values(method, *arguments)) as values:
            answers = [value async for value in values]
        if not answers:
            raise UserError(
                "The process that profiles and searches ended before it answered. Save again to start it anew."
            )
        return answers[-1]

    async def _values(self, method: str, *arguments: Any) -> AsyncGenerator[Any, None]:
        process = await self._running()
        number, answers = next(self._numbers), asyncio.Queue[CallItem | CallEnd]()
        self._calls[number] = answers
        process.stdin.write(encode(CallRequest(number, method, arguments)))
        over = False
        try:
            while not over:
                answer = await answers.get()
                if isinstance(answer, CallItem):
                    yield answer.value
                    continue
                over = True
                if answer.error is not None:
                    raise answer.error
        finally:
            del self._calls[number]
            if not over and not process.stdin.is_closing():
                process.stdin.write(encode(CancelCall(number)))

    async def _running(self) -> _Child:
        async with self._starting:
            if self._closed:
                raise UserError("The server is ending.")
            if self._process is None or self._process.popen.poll() is not None:
                self._process = await _Child.of(await asyncio.to_thread(_start, self._command))
                self._reading = asyncio.create_task(self._read(self._process))
            return self._process

    async def _ask(self, process: _Child, asked: ModelRequest) -> None:
        """Have the editor's model asked for the child. The editor may fail in any way: the child gets a reply."""
        try:
            reply = await self.complete(asked.question)
        except Exception as bug:
            log.exception("the editor's model could not be asked")
            reply = EditorModelReply(fault="failed", message=str(bug))
        finally:
            self._questions.pop((process.popen.pid, asked.number), None)
        if not process.stdin.is_closing():
            process.stdin.write(encode(ModelReply(asked.number, reply)))

    def _take_back(self, pid: int, number: int) -> None:
        """Cancel the question of that number from the child ``pid``, unless it is answered."""
        if (question := self._questions.get((pid, number))) is not None:
            question.cancel()

    async def _read(self, process: _Child) -> None:
        while (message := await read_message(process.stdout)) is not None:
            if isinstance(message, CallbackMessage):
                getattr(self, message.callback)(message.reason)
            elif isinstance(message, (CallItem, CallEnd)) and (waiting := self._calls.get(message.number)):
                waiting.put_nowait(message)
            elif isinstance(message, ModelRequest):
                self._questions[process.popen.pid, message.number] = asyncio.create_task(
                    self._ask(process, message)
                )
            elif isinstance(message, WithdrawModelRequest):
                self._take_back(process.popen.pid, message.number)
        for pid, number in list(self._questions):
            if pid == process.popen.pid:
                self._take_back(pid, number)
        code = await process.wait()
        if self._closed:
            why = UserError("The server is ending.")
        else:
            log.error("the engine ended with code %s", code)
            why = UserError(
                f"The process that profiles and searches ended (code {code}). Save again to start it anew; the log of"
                " the server has the details."
            )
        for number, waiting in self._calls.items():
            waiting.put_nowait(CallEnd(number, why))


def _start(command: Sequence[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
