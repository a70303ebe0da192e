"""Parse kernel files in a process of its own, which looks up their stored profiles too: parsing 20,000 lines would hold
up every answer to the editor.

The child runs ``parser_main.py``. It answers one request at a time, as length-prefixed JSON, and executes
none of the text. A thread talks to it, so that cancelling a caller disturbs nothing; a child that dies is replaced at
the next request.
"""

from __future__ import annotations

import asyncio
import json
import struct
import subprocess
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from accelopt_agent.suggestions.suggestion import Suggestion
from accelopt_agent.suggestions.text_edit import ApplyRefusal, TextEdit
from accelopt_lsp.own_process import PARSER
from accelopt_lsp.service.cache_key import run_conditions
from accelopt_lsp.service.protocol import FileRequest
from accelopt_lsp.settings.load import Settings
from accelopt_profiling.kernels import KernelSource, unread
from accelopt_profiling.measurement import FileMeasurement
from accelopt_profiling.plain import from_plain, to_plain

T = TypeVar("T")

#: How long one answer may take.
SECONDS = 30.0

#: So many suggestions the child keeps; then it begins anew.
SUGGESTIONS_KEPT = 64


class ParserProcessError(Exception):
    """The child ended or gave no answer: the text is too deeply nested for Python's parser, or too large."""


class ParserProcess:
    """The child process: ``child``, if it was started already, or one that the first request or ``start`` starts."""

    def __init__(self, child: subprocess.Popen[bytes] | None = None) -> None:
        self._child = child
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="parser")
        self._closed = False
        self._sent: set[str] = set()

    async def find_kernels(self, text: str) -> KernelSource:
        """``kernels.find_kernels(text)``; text that the parser cannot survive gives one finding."""
        try:
            return await self._ask({"do": "find", "text": text}, lambda plain: _source(plain, text))
        except ParserProcessError as error:
            return _unread(text, error)

    async def examine(self, path: Path, text: str, settings: Settings) -> FileRequest:
        """``examination.examine``, and the stored profile; text that the parser cannot survive gives one finding and no
        problem."""
        root, problem = settings.project_root, settings.problem
        request = {
            "do": "examine",
            "path": str(path),
            "text": text,
            "root": str(root) if root else None,
            "problem": dict(problem) if isinstance(problem, Mapping) else problem,
            "conditions": run_conditions(settings),
            "python": settings.interpreter.path if settings.host == "local" else "",
            "database": str(settings.memory_path),
        }

        def read(answer: dict[str, Any]) -> FileRequest:
            source = _source(answer["file"], text)
            return FileRequest(source, settings, answer["key"], _stored(answer["stored"]))

        try:
            return await self._ask(request, read)
        except ParserProcessError as error:
            return FileRequest(replace(_unread(text, error), path=path), settings)

    async def edits_for(self, text: str, suggestion: Suggestion) -> list[TextEdit] | ApplyRefusal:
        """``apply.edits_for(text, suggestion)``."""
        try:
            answer = await self._ask_of(suggestion, {"do": "edits", "text": text}, dict)
        except ParserProcessError as error:
            return ApplyRefusal(f"The file could not be read: {error}.")
        if "refused" in answer:
            return ApplyRefusal(answer["refused"])
        return [from_plain(TextEdit, edit) for edit in answer["edits"]]

    async def holds(self, text: str, suggestion: Suggestion) -> bool:
        """Return whether ``text`` holds the suggestion: each function that it changes reads as it wants."""
        try:
            return await self._ask_of(suggestion, {"do": "holds", "text": text}, bool)
        except ParserProcessError:
            return False

    async def start(self) -> None:
        """Start the child ahead of the first request."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._running_child)

    def close(self) -> None:
        """End the child; a request that waits for it fails."""
        self._closed = True
        if self._child is not None:
            self._child.kill()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _ask(self, request: dict[str, Any], read: Callable[[Any], T]) -> T:
        """Return the child's answer; ``read`` turns it into this program's types, on the thread that waits
        for it."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, lambda: read(self._exchange(request)))

    async def _ask_of(self, suggestion: Suggestion, request: dict[str, Any], read: Callable[[Any], T]) -> T:
        """``_ask`` about a suggestion, which is sent by its id where the child has it already."""
        loop = asyncio.get_running_loop()

        def exchange() -> Any:
            child = self._running_child()
            is_there = suggestion.id in self._sent
            if len(self._sent) == SUGGESTIONS_KEPT and not is_there:
                self._sent.clear()
            request["suggestion"] = suggestion.id if is_there else to_plain(suggestion)
            request["alone"] = not self._sent
            answer = self._exchange(request)
            if child is self._child:
                self._sent.add(suggestion.id)
            return answer

        return await loop.run_in_executor(self._thread, lambda: read(exchange()))

    def _exchange(self, request: dict[str, Any]) -> Any:
        body = json.dumps(request).encode()
        child = self._running_child()
        assert child.stdin is not None
        assert child.stdout is not None
        limit = threading.Timer(SECONDS, child.kill)
        limit.start()
        try:
            child.stdin.write(struct.pack(">I", len(body)) + body)
            child.stdin.flush()
            head = child.stdout.read(4)
            data = child.stdout.read(struct.unpack(">I", head)[0]) if len(head) == 4 else b""
            answer = json.loads(data)
        except (OSError, ValueError):
            child.kill()
            child.wait()
            raise ParserProcessError(
                f"Python's parser crashed on it, or took longer than {SECONDS:.0f} s"
            ) from None
        finally:
            limit.cancel()
        if "raised" in answer:
            raise ParserProcessError(answer["raised"])
        return answer["answer"]

    def _running_child(self) -> subprocess.Popen[bytes]:
        if self._closed:
            raise ParserProcessError("the server is ending")
        if self._child is None or self._child.poll() is not None:
            self._child = subprocess.Popen(PARSER, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self._sent.clear()
        return self._child


def _stored(profile: Any) -> FileMeasurement | None:
    """Return a stored profile; None where there is none, or another version wrote it in another shape."""
    if profile is None:
        return None
    try:
        return replace(from_plain(FileMeasurement, profile), complete=True)
    except ValueError:
        return None


def _source(plain: Any, text: str) -> KernelSource:
    """Return what the child read of ``text``, which it does not send back."""
    return replace(from_plain(KernelSource, plain), text=text)


def _unread(text: str, error: ParserProcessError) -> KernelSource:
    return unread(text, f"The file could not be read: {error}.")
