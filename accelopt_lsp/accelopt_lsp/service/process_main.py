"""Run ``LocalService`` in the child process of ``process.py``: answer calls from standard input until that ends."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import BinaryIO

from accelopt_agent.model.editor_request import EditorModelReply, EditorModelRequest
from accelopt_lsp.errors import HostUnavailableError
from accelopt_lsp.service.peer import Peer
from accelopt_lsp.service.protocol import Service
from accelopt_lsp.service.surface import Surface


class PipedSurface(Surface):
    """What a service tells and asks goes to the process that started it."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    def host_problem(self, reason: str | None) -> None:
        self._peer.tell("host_problem", reason)

    def memory_problem(self, reason: str) -> None:
        self._peer.tell("memory_problem", reason)

    def isolation_problem(self, line: str) -> None:
        self._peer.tell("isolation_problem", line)

    async def complete(self, question: EditorModelRequest) -> EditorModelReply:
        try:
            reply: EditorModelReply = await self._peer.value("complete", question)
            return reply
        except Exception as bug:  # the editor may fail in any way
            return EditorModelReply(fault="failed", message=str(bug))


class CommandSurface(PipedSurface):
    """As a command line's: whoever names a host wants that one."""

    def host_problem(self, reason: str | None) -> None:
        if reason is not None:
            raise HostUnavailableError(reason)


async def serve(
    open_service: Callable[[Surface], Service],
    requests: BinaryIO,
    answers: BinaryIO,
    surface: type[PipedSurface] = PipedSurface,
) -> None:
    """Answer calls until the end of ``requests``; then end what still runs and close the service."""
    peer = await Peer.of(lambda peer: open_service(surface(peer)), requests, answers)
    await peer.run()
    await peer.target.close()


def main() -> None:
    from accelopt_lsp.service.local import LocalService

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server decides when this process ends
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # prints of libraries go to the log
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    in_editor = sys.argv[1:] == ["editor"]
    surface = PipedSurface if in_editor else CommandSurface
    asyncio.run(serve(partial(LocalService, in_editor=in_editor), requests, answers, surface))


if __name__ == "__main__":
    main()
