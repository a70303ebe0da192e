"""Encode the messages between the server and the service's process: pickled, each after its length.

They are named tuples, as a dataclass takes five times as long to define, and the server's start waits for that.

Pickle is right here and nowhere else: both ends are this program, parent and child on one pipe. What came from hosts,
files or models was read into this program's own types before it gets here.
"""

from __future__ import annotations

import asyncio
import pickle
import struct
from typing import Any, NamedTuple

from accelopt_agent.model.editor_request import EditorModelReply, EditorModelRequest

_LENGTH = struct.Struct(">I")


class CallRequest(NamedTuple):
    """Call ``method`` of the service; its answers carry ``number``."""

    number: int
    method: str
    arguments: tuple[Any, ...]


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


class CallbackMessage(NamedTuple):
    """The service calls one of its callbacks, ``host_problem``, ``memory_problem`` or ``isolation_problem``."""

    callback: str
    reason: str | None


class ModelRequest(NamedTuple):
    """The service asks the editor's model; the reply carries ``number``."""

    number: int
    question: EditorModelRequest


class ModelReply(NamedTuple):
    """What the editor's model said to the question of that number."""

    number: int
    reply: EditorModelReply


class WithdrawModelRequest(NamedTuple):
    """The question of that number needs no reply any more."""

    number: int


Message = (
    CallRequest
    | CancelCall
    | CallItem
    | CallEnd
    | CallbackMessage
    | ModelRequest
    | ModelReply
    | WithdrawModelRequest
)


def encode(message: Message) -> bytes:
    body = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(body)) + body


async def read_message(stream: asyncio.StreamReader) -> Message | None:
    """Return the next message; None at the end of the stream."""
    try:
        (length,) = _LENGTH.unpack(await stream.readexactly(_LENGTH.size))
        message: Message = pickle.loads(await stream.readexactly(length))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    return message
