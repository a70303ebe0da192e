"""Run ``LocalService`` in the child process of ``process.py``: answer calls from standard input until that ends."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from functools import partial
from types import SimpleNamespace
from typing import BinaryIO, cast

from accelopt_agent.model.editor_request import EditorModelReply, EditorModelRequest
from accelopt_lsp.service.peer import Peer, methods
from accelopt_lsp.service.protocol import Service
from accelopt_lsp.service.surface import Surface


async def serve(service: Service, requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer calls until the end of ``requests``; then end what still runs and close the service."""
    peer = await Peer.of(service, requests, answers)
    calls = {name: partial(peer.tell, name) for name in methods(Surface)}

    async def complete(question: EditorModelRequest) -> EditorModelReply:
        try:
            reply: EditorModelReply = await peer.value("complete", question)
            return reply
        except Exception as bug:  # the editor may fail in any way
            return EditorModelReply(fault="failed", message=str(bug))

    service.surface = cast(Surface, SimpleNamespace(**{**calls, "complete": complete}))
    await peer.run()
    await service.close()


def main() -> None:
    from accelopt_lsp.service.local import LocalService

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server decides when this process ends
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # prints of libraries go to the log
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    asyncio.run(serve(LocalService(in_editor=True), requests, answers))


if __name__ == "__main__":
    main()
