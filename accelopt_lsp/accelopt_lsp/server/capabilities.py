"""Answer ``initialize`` before anything heavy is imported: pygls' types alone take longer than other servers' start.

The answer is plain data and equals what pygls computes from the registered features; a test compares them for the
capabilities of several editors. It depends on the client in two places only.
"""

from __future__ import annotations

from typing import Any

from accelopt_lsp.actions import ACTIONS, KINDS
from accelopt_profiling import __version__

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
        "hoverProvider": True,
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
