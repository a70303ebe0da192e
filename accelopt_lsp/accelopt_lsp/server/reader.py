"""Read kernel files in a process of its own: parsing 20,000 lines would hold up every answer to the editor.

The child runs ``read.py``. It gets a request and gives an answer, one at a time, as length-prefixed JSON; it executes
none of the text. A child that dies is replaced at the next request.
"""

from __future__ import annotations

import asyncio
import json
import struct
import sys
from typing import Any

from accelopt_agent.apply import Refusal, TextEdit
from accelopt_agent.suggestion import Suggestion
from accelopt_profiling.kernels import Discovery
from accelopt_profiling.measurement import Finding
from accelopt_profiling.plain import from_plain, to_plain

_SECONDS = 30.0


class ReaderDied(Exception):
    """The child ended or gave no answer: the text is too deeply nested for Python's parser, or too large."""


class Reader:
    def __init__(self) -> None:
        self._child: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()
        self._exchanges: set[asyncio.Task[Any]] = set()

    async def find_kernels(self, text: str) -> Discovery:
        """``kernels.find_kernels(text)``; text that the parser cannot survive gives one finding."""
        try:
            return from_plain(Discovery, await self._ask({"do": "find", "text": text}))
        except ReaderDied as error:
            finding = Finding("syntax-error", 1, "error", f"The file could not be read: {error}.")
            return Discovery(findings=(finding,))

    async def edits_for(self, text: str, suggestion: Suggestion) -> list[TextEdit] | Refusal:
        """``apply.edits_for(text, suggestion)``."""
        try:
            answer = await self._ask({"do": "edits", "text": text, "suggestion": to_plain(suggestion)})
        except ReaderDied as error:
            return Refusal(f"The file could not be read: {error}.")
        if "refused" in answer:
            return Refusal(answer["refused"])
        return [from_plain(TextEdit, edit) for edit in answer["edits"]]

    async def holds(self, text: str, suggestion: Suggestion) -> bool:
        """Whether ``text`` holds the suggestion: each function that it changes reads as it wants."""
        try:
            answer = await self._ask({"do": "holds", "text": text, "suggestion": to_plain(suggestion)})
        except ReaderDied:
            return False
        return bool(answer)

    async def start(self) -> None:
        """Start the child ahead of the first request."""
        async with self._turn:
            await self._running_child()

    async def close(self) -> None:
        child, self._child = self._child, None
        if child is not None and child.returncode is None:
            child.kill()
            await child.wait()

    async def _ask(self, request: dict[str, Any]) -> Any:
        """A request whose caller is cancelled goes on to its end, so that no answer meets the wrong request."""
        exchange = asyncio.get_running_loop().create_task(self._exchange(request))
        self._exchanges.add(exchange)
        exchange.add_done_callback(self._exchanged)
        return await asyncio.shield(exchange)

    def _exchanged(self, exchange: asyncio.Task[Any]) -> None:
        self._exchanges.discard(exchange)
        if not exchange.cancelled():
            exchange.exception()  # seen, in case nobody waits for it any more

    async def _exchange(self, request: dict[str, Any]) -> Any:
        body = json.dumps(request).encode()
        async with self._turn:
            child = await self._running_child()
            assert child.stdin is not None
            assert child.stdout is not None
            try:
                child.stdin.write(struct.pack(">I", len(body)) + body)
                await child.stdin.drain()
                head = await asyncio.wait_for(child.stdout.readexactly(4), _SECONDS)
                answer = json.loads(await child.stdout.readexactly(struct.unpack(">I", head)[0]))
            except asyncio.TimeoutError:
                await self.close()
                raise ReaderDied(f"no answer within {_SECONDS:.0f} s") from None
            except (OSError, asyncio.IncompleteReadError):
                await self.close()
                raise ReaderDied("Python's parser crashed on it") from None
        if "raised" in answer:
            raise ReaderDied(answer["raised"])
        return answer["answer"]

    async def _running_child(self) -> asyncio.subprocess.Process:
        if self._child is None or self._child.returncode is not None:
            pipe = asyncio.subprocess.PIPE
            command = [sys.executable, "-m", "accelopt_lsp.server.read"]
            self._child = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
        return self._child
