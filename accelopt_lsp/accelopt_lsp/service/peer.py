"""Let two processes call each other's methods over pipes: each message is pickled, after its length.

Pickle is right here and nowhere else: both ends are this program, parent and child. What came from hosts, files or
models was read into this program's own types before it gets here. Messages are named tuples, as a dataclass takes five
times as long to define, and the server's start waits for that.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import logging
import pickle
import struct
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import IO, Any, NamedTuple

from accelopt_lsp.errors import UserError, file_fault

log = logging.getLogger(__name__)

_LENGTH = struct.Struct(">I")


class CallRequest(NamedTuple):
    """Call ``method``; the answers carry ``number``."""

    number: int
    method: str
    arguments: tuple[Any, ...]
    options: dict[str, Any]


class CancelCall(NamedTuple):
    """Cancel the call of that number."""

    number: int


class CallItem(NamedTuple):
    """The result of a call, or the next of several."""

    number: int
    value: Any


class CallEnd(NamedTuple):
    """A call is over. ``error`` is what it raised."""

    number: int
    error: Exception | None = None


def methods(protocol: type) -> dict[str, Callable[..., Any]]:
    """Return the public methods that a class declares, by name."""
    declared = vars(protocol).items()
    return {name: method for name, method in declared if inspect.isfunction(method) and name[0] != "_"}


class Peer:
    """One end of two pipes: calls methods of the other end, and answers its calls with those of its target."""

    def __init__(
        self,
        target_of: Callable[[Peer], object],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._reader, self._writer = reader, writer
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Queue[CallItem | CallEnd]] = {}
        self._running: dict[int, asyncio.Task[None]] = {}
        self.target: Any = target_of(self)

    @classmethod
    async def of(
        cls, target_of: Callable[[Peer], object], incoming: IO[bytes] | None, outgoing: IO[bytes] | None
    ) -> Peer:
        """Return the end that reads and writes these pipes; ``target_of`` it is what the other end calls."""
        loop, reader = asyncio.get_running_loop(), asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), incoming)
        transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, outgoing)
        return cls(target_of, reader, asyncio.StreamWriter(transport, protocol, None, loop))

    def tell(self, method: str, *arguments: Any) -> None:
        """Call a method whose answer nobody needs."""
        self._send(CallRequest(next(self._numbers), method, arguments, {}))

    async def value(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Return the answer of a method.

        Raises:
            UserError: what the method raised, or there is no answer. RuntimeError: a bug.
        """
        async with aclosing(self.values(method, *arguments, **options)) as values:
            answers = [value async for value in values]
        if not answers:
            raise UserError(
                "The process that profiles and searches ended before it answered. Save again to start it anew."
            )
        return answers[-1]

    async def values(self, method: str, *arguments: Any, **options: Any) -> AsyncGenerator[Any, None]:
        """Yield what a method yields, or its one answer. Closing it cancels the call."""
        number, answers = next(self._numbers), asyncio.Queue[CallItem | CallEnd]()
        self._waiting[number] = answers
        self._send(CallRequest(number, method, arguments, options))
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
            del self._waiting[number]
            if not over:
                self._send(CancelCall(number))

    async def run(self) -> None:
        """Answer calls and hand on answers until the other end closes; then end what still runs for it."""
        while (message := await self._next()) is not None:
            if isinstance(message, CallRequest):
                self._running[message.number] = asyncio.create_task(self._answer(message))
            elif isinstance(message, CancelCall):
                if (task := self._running.get(message.number)) is not None:
                    task.cancel()
            elif (answers := self._waiting.get(message.number)) is not None:
                answers.put_nowait(message)
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def fail(self, error: Exception) -> None:
        """Raise ``error`` in whoever waits for the other end."""
        for number, answers in self._waiting.items():
            answers.put_nowait(CallEnd(number, error))

    def close(self) -> None:
        """Close the outgoing pipe: the other end then ends what it does."""
        self._writer.close()

    async def _answer(self, call: CallRequest) -> None:
        error: Exception | None = None
        try:
            result = getattr(self.target, call.method)(*call.arguments, **call.options)
            if inspect.isasyncgen(result):
                async with aclosing(result) as values:
                    async for value in values:
                        self._send(CallItem(call.number, value))
                        await self._writer.drain()
            else:
                value = await result if inspect.isawaitable(result) else result
                self._send(CallItem(call.number, value))
        except UserError as problem:
            error = problem
        except Exception as bug:
            log.exception("%s failed", call.method)
            sentence = file_fault(bug)
            error = UserError(sentence) if sentence else RuntimeError(f"{type(bug).__name__}: {bug}")
        finally:
            self._running.pop(call.number, None)
            self._send(CallEnd(call.number, error))

    def _send(self, message: CallRequest | CancelCall | CallItem | CallEnd) -> None:
        if not self._writer.is_closing():
            body = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
            self._writer.write(_LENGTH.pack(len(body)) + body)

    async def _next(self) -> Any:
        """Return the next message; None at the end of the stream."""
        try:
            (length,) = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))
            return pickle.loads(await self._reader.readexactly(length))
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
