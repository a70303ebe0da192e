"""Run the service in a process of its own: profiles, searches and the memory never take the event loop's time.

A search parses and rewrites syntax trees for seconds; in the server's process it would hold up every answer to the
editor. The child runs ``process_main.py``. One that ends is started again by the next call.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import subprocess
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any

from accelopt_lsp.errors import UserError
from accelopt_lsp.own_process import SERVICE
from accelopt_lsp.service.peer import Peer, methods
from accelopt_lsp.service.protocol import Service
from accelopt_lsp.service.surface import Surface
from accelopt_profiling.waiting import within

log = logging.getLogger(__name__)

#: How long the child may take to end what runs, in seconds.
PATIENCE = 8.0


class ProcessService:
    """A ``Service`` that lives in a child process, which ``command`` starts; its methods are those of the protocol."""

    def __init__(self, surface: Surface | None = None, command: Sequence[str] = SERVICE) -> None:
        self.surface = surface or Surface()
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._peer: Peer | None = None
        self._reading: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._closed = False

    def __getattr__(self, method: str) -> Any:
        """Return a method of the protocol, which calls it in the child."""
        if (declared := methods(Service).get(method)) is None:
            raise AttributeError(method)
        return partial(self._value if inspect.iscoroutinefunction(declared) else self._values, method)

    async def start(self) -> None:
        """Start the child ahead of the first call."""
        await self._running()

    async def close(self) -> None:
        """End the child; at the end of its input it ends what runs and closes the memory."""
        self._closed = True
        if self._process is None or self._peer is None:
            return
        self._peer.close()
        ended = asyncio.ensure_future(asyncio.to_thread(self._process.wait))
        try:
            await within(PATIENCE, asyncio.shield(ended))
        except (TimeoutError, asyncio.TimeoutError):
            self._process.kill()
            await ended
        if self._reading is not None:
            await self._reading

    async def _value(self, method: str, *arguments: Any, **options: Any) -> Any:
        return await (await self._running()).value(method, *arguments, **options)

    async def _values(self, method: str, *arguments: Any, **options: Any) -> AsyncGenerator[Any, None]:
        peer = await self._running()
        async with aclosing(peer.values(method, *arguments, **options)) as values:
            async for value in values:
                yield value

    async def _running(self) -> Peer:
        async with self._starting:
            if self._closed:
                raise UserError("The server is ending.")
            if self._peer is None or self._process is None or self._process.poll() is not None:
                self._process = await asyncio.to_thread(_start, self._command)
                self._peer = await Peer.of(lambda _: self.surface, self._process.stdout, self._process.stdin)
                self._reading = asyncio.create_task(self._read(self._process, self._peer))
            return self._peer

    async def _read(self, process: subprocess.Popen[bytes], peer: Peer) -> None:
        await peer.run()
        code = await asyncio.to_thread(process.wait)
        if self._closed:
            why = "The server is ending."
        else:
            log.error("the engine ended with code %s", code)
            why = (
                f"The process that profiles and searches ended (code {code}). Save again to start it anew; the log of"
                " the server has the details."
            )
        peer.fail(UserError(why))


def _start(command: Sequence[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
