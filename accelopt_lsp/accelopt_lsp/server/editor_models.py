"""Ask the editor to ask one of its models: the request ``accelopt/model/complete``.

Only while a search or an explanation runs, which nothing but a person begins: saving a file asks nobody.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from accelopt_agent.model.editor_models import FAULTS, EditorModelReply, EditorModelRequest

if TYPE_CHECKING:
    from accelopt_lsp.server.server import AccelOptServer

log = logging.getLogger(__name__)

METHOD = "accelopt/model/complete"

#: What the editor may show the person when it asks whether its model may be used.
WHY = "AccelOpt asks for faster versions of your kernel, or for the reason why one is faster."


class EditorQuestions:
    def __init__(self, server: AccelOptServer) -> None:
        self._server = server

    async def complete(self, question: EditorModelRequest) -> EditorModelReply:
        """The editor's reply. Being cancelled takes the question back."""
        server = self._server
        if not server.client.models:
            return EditorModelReply(fault="unsupported")
        if not any(job.kind in ("optimize", "explain") for job in server.jobs.running()):
            return EditorModelReply(fault="not-asked-for")
        params = {
            "model": question.model,
            "system": question.system,
            "user": question.user,
            "answerTokens": question.answer_tokens,
            "justification": WHY,
        }
        number = str(uuid4())
        waiting = server.protocol.send_request_async(METHOD, params, msg_id=number)
        try:
            return _reply(await asyncio.shield(waiting))
        except JsonRpcException as error:
            return EditorModelReply(fault="failed", message=str(error.message))
        except asyncio.CancelledError:
            waiting.add_done_callback(_forget)
            server.protocol.notify(types.CANCEL_REQUEST, types.CancelParams(number))
            raise


def _reply(answer: Any) -> EditorModelReply:
    """The client's answer; anything of a wrong type counts as missing."""
    text, fault, message = (getattr(answer, name, None) for name in ("text", "fault", "message"))
    read, written = _count(getattr(answer, "tokensIn", None)), _count(getattr(answer, "tokensOut", None))
    if isinstance(fault, str) and fault:
        return EditorModelReply(
            _text(text), read, written, fault if fault in FAULTS else "failed", _text(message)
        )
    if not isinstance(text, str):
        return EditorModelReply(fault="failed", message="the editor answered what is no answer")
    return EditorModelReply(text, read, written)


def _count(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _forget(waiting: asyncio.Future[Any]) -> None:
    if not waiting.cancelled():
        waiting.exception()
