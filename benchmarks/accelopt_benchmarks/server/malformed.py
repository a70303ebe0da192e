"""Send malformed messages to the server: drawn at random, and right ones that were damaged. It must live and answer."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from accelopt_benchmarks.result import GoalResult
from accelopt_benchmarks.server.process_tree import memory_mb
from accelopt_benchmarks.server.stdio_editor import StdioEditor
from accelopt_lsp.actions import ACTIONS

MESSAGES, SEED = 100_000, 37
#: Messages that are sent before an answer is read: what the server writes meanwhile must fit into a pipe.
_AT_ONCE = 40
#: Seconds within which the last requests are answered: a command may wait for the engine.
_PATIENCE_S = 60.0
#: JSON-RPC's code of an internal error.
_INTERNAL = -32603
FILE = "nki_silu.py"
_TEXT = "textDocument/"
_REQUESTS = (
    "initialize", "workspace/executeCommand", "workspace/textDocumentContent", "accelopt/candidate",
    "codeAction/resolve", "no/such/method", "",
    *(_TEXT + name for name in (
        "codeLens", "inlayHint", "hover", "completion", "signatureHelp", "codeAction", "documentSymbol", "diagnostic",
    )),
)  # fmt: skip
_NOTIFICATIONS = (
    "initialized", "workspace/didChangeConfiguration", "workspace/didChangeWatchedFiles",
    "workspace/didChangeWorkspaceFolders", "$/cancelRequest", "$/setTrace", "$/progress",
    "window/workDoneProgress/cancel", *(_TEXT + name for name in ("didOpen", "didChange", "didSave", "didClose")),
)  # fmt: skip
_STRANGE: tuple[Any, ...] = (
    None, True, False, 0, -1, 1 << 31, 1 << 70, 1.5, float("nan"), "", "x", "\ud800", "file:///", "file:///none.py",
    "untitled:1", "accelopt-candidate:/x?id=1", "accelopt-page:/x", [], {}, [[]], [{}], {"": None}, "x" * 3000,
)  # fmt: skip


def right_params(uri: str, lot: random.Random) -> dict[str, Any]:
    """Return parameters of which each method finds those that it reads."""
    at = {"line": lot.randrange(40), "character": lot.randrange(60)}
    end = {"line": at["line"] + lot.randrange(3), "character": lot.randrange(60)}
    action = lot.choice(list(ACTIONS.values()))
    return {
        "textDocument": {"uri": uri, "languageId": "python", "version": lot.randrange(1 << 20), "text": "x = 1\n"},
        "position": at, "range": {"start": at, "end": end}, "context": {"diagnostics": [], "only": ["quickfix"]},
        "contentChanges": [{"range": {"start": at, "end": end}, "text": lot.choice(["", "a", "\n", "(", "é𝒳"])}],
        "changes": [{"uri": uri, "type": lot.randrange(1, 4)}], "settings": {"accelopt": {"editor": {"lens": True}}},
        "event": {"added": [], "removed": []}, "capabilities": {}, "processId": None, "rootUri": None,
        "command": action.command, "arguments": [{name.rstrip("?"): lot.choice(_STRANGE) for name in action.arguments}],
        "uri": uri, "id": lot.choice(_STRANGE), "title": "x", "data": {"uri": uri, "id": "none"}, "token": "x",
        "value": "off", "text": "x = 1\n",
    }  # fmt: skip


def damaged(value: Any, lot: random.Random) -> Any:
    """Return a value with one part of it left out, replaced by a strange one, or repeated."""
    if isinstance(value, dict) and value and lot.random() < 0.9:
        name = lot.choice(list(value))
        kept = dict(value)
        if lot.random() < 0.25:
            del kept[name]
        else:
            kept[name] = damaged(kept[name], lot)
        return kept
    if isinstance(value, list) and value and lot.random() < 0.8:
        place = lot.randrange(len(value))
        return [*value[:place], damaged(value[place], lot), *value[place + lot.randrange(2) :]]
    return lot.choice(_STRANGE)


def _scrambled(body: bytes, lot: random.Random) -> bytes:
    """Return the bytes of a message, cut, or with some of them changed."""
    if lot.random() < 0.3:
        return body[: lot.randrange(len(body))]
    changed = bytearray(body)
    for _ in range(lot.randrange(1, 6)):
        changed[lot.randrange(len(changed))] = lot.randrange(256)
    return bytes(changed)


def messages(uri: str, seed: int = SEED) -> Iterator[tuple[bytes, str | None]]:
    """Yield bodies of messages without end, the same for a seed; with the id of those that ask for an answer."""
    lot = random.Random(seed)
    number = 0
    while True:
        number += 1
        method = lot.choice(_REQUESTS + _NOTIFICATIONS)
        params = right_params(uri, lot)
        for _ in range(lot.randrange(4)):
            params = damaged(params, lot)
        message: Any = {"jsonrpc": "2.0", "method": method, "params": params}
        if method not in _NOTIFICATIONS:
            message["id"] = f"bad-{number}"
        whole = lot.random() < 0.8
        if not whole:
            message = damaged(message, lot)
        body = json.dumps(message).encode("utf-8", "surrogatepass")
        if lot.random() < 0.2:
            yield _scrambled(body, lot), None
        else:
            yield body, message.get("id") if whole else None


async def malformed(examples: Path, count: int = MESSAGES) -> list[GoalResult]:
    """Return a row on whether the server outlives ``count`` messages, and one on its memory."""
    return await asyncio.to_thread(_malformed, examples, count)


def _malformed(examples: Path, count: int) -> list[GoalResult]:
    with tempfile.TemporaryDirectory(prefix="accelopt-bench-") as name:
        folder = Path(name)
        shutil.copy(examples / FILE, folder)
        environment = {
            **os.environ, "ACCELOPT_DB": str(folder / "memory.db"), "ACCELOPT_CONFIG": str(folder / "none"),
        }  # fmt: skip
        editor, memory = StdioEditor(folder, environment), []
        end, sent, asked, codes, faults = 0.0, 0, set[str](), Counter[int | None](), Counter[str]()
        try:
            editor.initialize(folder, {})
            editor.notify("initialized")
            uri = editor.open(folder / FILE)
            bodies = messages(uri)
            while sent < count or (asked and time.monotonic() < end):
                batch = [next(bodies) for _ in range(_AT_ONCE)] if sent < count else []
                if not _alive(editor, [body for body, _ in batch]):
                    break
                sent += len(batch)
                asked |= {number for _, number in batch if number is not None}
                for answer in editor.other_answers:
                    asked.discard(str(answer.get("id")))
                    codes[answer.get("error", {}).get("code")] += 1
                    if answer.get("error", {}).get("code") == _INTERNAL:
                        faults[str(answer["error"]["message"])[:100]] += 1
                editor.other_answers.clear()
                if not batch:
                    time.sleep(0.05)
                elif sent % (count // 20) < _AT_ONCE:
                    memory.append(memory_mb(editor.pid))
                    end = time.monotonic() + _PATIENCE_S
            fine = editor.ask("textDocument/hover", _hover_of(uri)) is not None or editor.error is None
        except (EOFError, BrokenPipeError):
            fine = False
        finally:
            editor.close()
    grown = memory[-1] - memory[len(memory) // 4] if len(memory) > 4 else 0.0
    return [
        GoalResult("malformed messages that the server outlives", f"all of {count:,}", sent, "messages",
                   fine and sent >= count, f"seed {SEED}; a request after each {_AT_ONCE} was answered"),
        GoalResult("memory that it grows by after the first quarter of them", "<= 5 MB", grown, "MB", grown <= 5,
                   f"resident {memory[0]:.0f} to {memory[-1]:.0f} MB"),
        GoalResult("requests among them without an answer", "0", len(asked), "requests", not asked,
                   ", ".join(f"{code or 'a result'}: {number:,}" for code, number in codes.most_common())),
        GoalResult("answers of a fault of the server's own", "0", codes[_INTERNAL], "answers", not codes[_INTERNAL],
                   "; ".join(f"{number} {message}" for message, number in faults.most_common(5))),
    ]  # fmt: skip


def _hover_of(uri: str) -> dict[str, Any]:
    return {"textDocument": {"uri": uri}, "position": {"line": 10, "character": 5}}


def _alive(editor: StdioEditor, bodies: Sequence[bytes]) -> bool:
    """Send bodies, then say whether a right request is still answered."""
    try:
        for body in bodies:
            editor.send_raw(body)
        editor.ask("textDocument/codeLens", {"textDocument": {"uri": "file:///none.py"}})
    except (EOFError, BrokenPipeError):
        return False
    return True
