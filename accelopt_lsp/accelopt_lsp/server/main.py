"""Start the server on standard streams or a TCP address."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import sys
import threading
from typing import BinaryIO

from pygls.io_ import StdinAsyncReader, StdoutWriter, run_async

from accelopt_lsp.backend.protocol import Backend
from accelopt_lsp.server.server import AccelOptServer
from accelopt_lsp.server.setup import build


def start(*, tcp: tuple[str, int] | None = None, backend: Backend | None = None) -> None:
    """Serve one client until it says ``exit`` or goes away.

    Standard output carries nothing but the protocol: prints of this process and of its children go to standard error.
    pygls logs whole messages, source text included, below WARNING: that is switched off.
    """
    logging.getLogger("pygls").setLevel(logging.WARNING)
    if backend is None:
        from accelopt_lsp.backend.process import ProcessBackend

        backend = ProcessBackend()
    server = build(backend)
    sys.setswitchinterval(0.0005)  # of 5 ms: an answer waits that long for a thread that is busy
    gc.freeze()  # what is imported stays: a full collection would walk it for 30 ms, in the middle of an answer
    if tcp is not None:
        server.start_tcp(*tcp)
        return
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        asyncio.run(_serve(server, requests, answers))


async def _serve(server: AccelOptServer, requests: BinaryIO, answers: BinaryIO) -> None:
    """Serve until ``exit`` or the end of the input; an editor that was killed leaves nothing running either."""
    server.protocol.set_writer(StdoutWriter(answers))
    try:
        await run_async(
            stop_event=threading.Event(),
            reader=StdinAsyncReader(requests),
            protocol=server.protocol,
            error_handler=server.report_server_error,
        )
    finally:
        await server.close()
