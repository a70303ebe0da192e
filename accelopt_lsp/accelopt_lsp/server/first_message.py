"""Read the editor's first message and answer it if it is ``initialize``; pygls then reads it again, and its own answer
is left out (``server.AnsweringProtocol``). The standard library only."""

from __future__ import annotations

import json
from typing import Any, BinaryIO

from accelopt_lsp.actions import ACTIONS, KINDS
from accelopt_profiling import __version__

#: The characters after which an editor asks for completions, and for the parameters of a call.
COMPLETION_TRIGGERS, SIGNATURE_TRIGGERS = (".", "="), ("(", ",")
_ENCODINGS = ("utf-8", "utf-16", "utf-32")


def initialize_result(params: object) -> dict[str, Any] | None:
    """Return the result of ``initialize``; None where ``params`` are not of the form that LSP asks for."""
    if not isinstance(params, dict) or not isinstance(client := params.get("capabilities"), dict):
        return None
    sync: dict[str, Any] = {"openClose": True, "change": 2, "save": True}
    synchronization = _object(_object(client.get("textDocument")).get("synchronization"))
    sync |= {
        name: False for name in ("willSave", "willSaveWaitUntil") if synchronization.get(name) is not None
    }
    encodings = _object(client.get("general")).get("positionEncodings")
    supported = [e for e in encodings if e in _ENCODINGS] if isinstance(encodings, list) else []
    capabilities = {
        "positionEncoding": supported[0] if supported else "utf-16",
        "textDocumentSync": sync,
        "completionProvider": {"triggerCharacters": list(COMPLETION_TRIGGERS), "resolveProvider": False},
        "hoverProvider": True,
        "signatureHelpProvider": {"triggerCharacters": list(SIGNATURE_TRIGGERS)},
        "codeActionProvider": {"codeActionKinds": list(KINDS), "resolveProvider": True},
        "codeLensProvider": {"resolveProvider": False},
        "executeCommandProvider": {"commands": [a.command for a in ACTIONS.values()]},
        "inlayHintProvider": {"resolveProvider": False},
        "workspace": {
            "workspaceFolders": {"supported": True, "changeNotifications": True},
            "fileOperations": {},
        },
    }
    return {"capabilities": capabilities, "serverInfo": {"name": "accelopt-lsp", "version": __version__}}


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def read_first(requests: BinaryIO) -> bytes:
    """Return the bytes of the first message, header included; fewer at the end of the input, or where they
    are no message.

    ``requests`` is unbuffered: nothing after the message is taken from it.
    """
    lines = [requests.readline()]
    while lines[-1] not in (b"\r\n", b""):
        lines.append(requests.readline())
    head = b"".join(lines)
    length = [line[15:].strip() for line in lines if line.lower().startswith(b"content-length:")]
    if lines[-1] == b"" or not length or not length[0].isdigit():
        return head
    body, size = b"", int(length[0])
    while len(body) < size and (more := requests.read(size - len(body))):
        body += more
    return head + body


def answer_first(message: bytes, answers: BinaryIO) -> int | str | None:
    """Answer ``initialize`` and return the id of that request; None where the message is something else."""
    try:
        request = json.loads(message.partition(b"\r\n\r\n")[2])
        number = request["id"]
        is_initialize = request["method"] == "initialize" and request.get("jsonrpc") == "2.0"
        result = initialize_result(request["params"]) if is_initialize else None
    except (ValueError, LookupError, TypeError, AttributeError):
        return None
    if result is None or not isinstance(number, (int, str)):
        return None
    answers.write(encoded({"jsonrpc": "2.0", "id": number, "result": result}))
    answers.flush()
    return number


def encoded(message: dict[str, Any]) -> bytes:
    body = json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
