"""Run ``LocalService`` in the child process of ``process.py``: answer calls from standard input until that ends."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import logging
import os
import signal
import sys
from collections.abc import Callable
from contextlib import aclosing
from typing import BinaryIO

from accelopt_agent.model.editor_request import Complete, EditorModelReply, EditorModelRequest
from accelopt_lsp.errors import UserError, file_fault
from accelopt_lsp.service.messages import (
    CallbackMessage,
    CallEnd,
    CallItem,
    CallRequest,
    CancelCall,
    Message,
    ModelReply,
    ModelRequest,
    WithdrawModelRequest,
    encode,
    read_message,
)
from accelopt_lsp.service.protocol import Service

log = logging.getLogger(__name__)


async def serve(service: Service, requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer calls until the end of ``requests``; then end what still runs and close the service."""
    loop = asyncio.get_running_loop()
    stream = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stream), requests)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, answers)
    writer = asyncio.StreamWriter(transport, protocol, None, loop)

    def send(message: Message) -> None:
        writer.write(encode(message))

    service.host_problem = lambda reason: send(CallbackMessage("host_problem", reason))
    service.memory_problem = lambda reason: send(CallbackMessage("memory_problem", reason))
    service.isolation_problem = lambda line: send(CallbackMessage("isolation_problem", line))
    service.complete, replies = _asking(send)
    calls: dict[int, asyncio.Task[None]] = {}

    async def answer(call: CallRequest) -> None:
        error: Exception | None = None
        try:
            result = getattr(service, call.method)(*call.arguments)
            if inspect.isasyncgen(result):
                async with aclosing(result) as values:
                    async for value in values:
                        send(CallItem(call.number, value))
                        await writer.drain()
            else:
                send(CallItem(call.number, await result))
        except UserError as problem:
            error = problem
        except Exception as bug:
            log.exception("%s failed", call.method)
            sentence = file_fault(bug)
            error = UserError(sentence) if sentence else RuntimeError(f"{type(bug).__name__}: {bug}")
        finally:
            calls.pop(call.number, None)
            send(CallEnd(call.number, error))

    while (message := await read_message(stream)) is not None:
        if isinstance(message, CallRequest):
            calls[message.number] = asyncio.create_task(answer(message))
        elif isinstance(message, CancelCall) and message.number in calls:
            calls[message.number].cancel()
        elif isinstance(message, ModelReply) and message.number in replies:
            replies.pop(message.number).set_result(message.reply)
    running = list(calls.values())
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    await service.close()


def _asking(send: Callable[[Message], None]) -> tuple[Complete, dict[int, asyncio.Future[EditorModelReply]]]:
    """Return what asks the editor's models through the server, and where their replies are waited for."""
    waiting: dict[int, asyncio.Future[EditorModelReply]] = {}
    numbers = itertools.count()

    async def complete(question: EditorModelRequest) -> EditorModelReply:
        number, reply = next(numbers), asyncio.get_running_loop().create_future()
        waiting[number] = reply
        send(ModelRequest(number, question))
        try:
            answer: EditorModelReply = await reply
        except asyncio.CancelledError:
            waiting.pop(number, None)  # there is none where the reply has just come
            send(WithdrawModelRequest(number))
            raise
        return answer

    return complete, waiting


def main() -> None:
    from accelopt_lsp.service.local import LocalService

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server decides when this process ends
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # prints of libraries go to the log
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    asyncio.run(serve(LocalService(), requests, answers))


if __name__ == "__main__":
    main()
