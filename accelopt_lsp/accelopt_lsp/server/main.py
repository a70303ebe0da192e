"""Start the server on standard streams or a TCP address.

On standard streams ``initialize`` is answered before the server itself is imported, and the parser's process starts
beside that. Until then this module needs the standard library only. The service's process starts when all that is
done: what it shows is not needed first, and beside the others it would slow them.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, BinaryIO, cast

from accelopt_lsp.own_process import PARSER
from accelopt_lsp.server.first_message import answer_first, read_first

if TYPE_CHECKING:
    from accelopt_lsp.server.server import AccelOptServer
    from accelopt_lsp.service.protocol import Service
    from accelopt_lsp.service.surface import Surface


def start(
    *, tcp: tuple[str, int] | None = None, open_service: Callable[[Surface], Service] | None = None
) -> None:
    """Serve one client until it says ``exit`` or goes away.

    Standard output carries nothing but the protocol: prints of this process and of its children go to standard error.
    pygls logs whole messages, source text included, below WARNING: that is switched off.
    """
    logging.getLogger("pygls").setLevel(logging.WARNING)
    if tcp is not None:
        _make(open_service).start_tcp(*tcp)
        return
    requests = os.fdopen(os.dup(0), "rb", buffering=0)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    parser_child = _child(PARSER)
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        first = read_first(requests)
        answered = answer_first(first, answers)
        server = _make(open_service, parser_child)
        import asyncio

        asyncio.run(_serve(server, first, answered=answered, requests=requests, answers=answers))


def _child(command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a part of this program ahead of its first request; the end of its input ends it."""
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def _make(
    open_service: Callable[[Surface], Service] | None, parser_child: subprocess.Popen[bytes] | None = None
) -> AccelOptServer:
    gc.disable()  # nothing that is imported is ever garbage: collections would walk it again and again
    _import_asyncio()
    from accelopt_lsp.server.lsp_types import import_lsp_types

    import_lsp_types()
    from accelopt_lsp.server.setup import build
    from accelopt_lsp.service.parser import ParserProcess

    if open_service is None:
        from accelopt_lsp.service.process import ProcessService

        open_service = cast("Callable[[Surface], Service]", ProcessService)
    server = build(open_service, ParserProcess(parser_child))
    sys.setswitchinterval(0.0005)  # of 5 ms: an answer waits that long for a thread that is busy
    gc.freeze()  # what is imported stays: a full collection would walk it for 30 ms, in the middle of an answer
    gc.enable()
    return server


def _import_asyncio() -> None:
    """Import asyncio without ssl, which would take a third of the time: nothing in this process speaks TLS."""
    if "ssl" in sys.modules:
        return
    sys.modules["ssl"] = None  # type: ignore[assignment]  # asyncio then finds that there is none
    try:
        import asyncio  # noqa: F401  (imported for its effect)
    finally:
        del sys.modules["ssl"]


async def _serve(
    server: AccelOptServer, first: bytes, answered: int | str | None, requests: BinaryIO, answers: BinaryIO
) -> None:
    """Serve until ``exit`` or the end of the input; an editor that was killed leaves nothing running either."""
    import threading

    from pygls.io_ import StdoutWriter, run_async

    from accelopt_lsp.server.request_stream import request_stream

    server.protocol.answered = answered
    server.protocol.set_writer(StdoutWriter(answers))
    try:
        await run_async(
            stop_event=threading.Event(),
            reader=request_stream(first, requests.fileno()),
            protocol=server.protocol,
            error_handler=server.report_server_error,
        )
    finally:
        await server.close()
