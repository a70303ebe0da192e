"""What happens when a document is opened, edited, saved or closed. Handlers call these and return at once."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from accelopt_lsp.backend.protocol import FileText
from accelopt_lsp.errors import UserError
from accelopt_lsp.server.documents import DocumentText, file_path, read_source
from accelopt_lsp.state.line_map import LineMap
from accelopt_lsp.state.state_store import FileState
from accelopt_profiling.kernels import Discovery, may_hold_kernels
from accelopt_profiling.measurement import Finding
from accelopt_profiling.waiting import within

if TYPE_CHECKING:
    from accelopt_lsp.server.server import AccelOptServer

#: The text is read again when nothing was typed for so many seconds.
PAUSE = 0.2


class Editing:
    def __init__(self, server: AccelOptServer) -> None:
        self._server = server
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._flows: dict[str, asyncio.Task[None]] = {}
        self._edits: dict[str, asyncio.Event] = {}

    def opened(self, uri: str) -> None:
        """Show the last numbers at once, then profile what they do not cover."""
        path = file_path(uri)
        if path is not None:
            self._server.board.put(FileState(uri, path, trusted=self._server.client.trusted))
            self._server.watching.opened(uri)
            self._flow(uri, self._open(uri))

    def edited(self, uri: str, changes: list[types.TextDocumentContentChangeEvent]) -> None:
        """Only mark results as old; the kernels are found again after a pause."""
        moved = LineMap.of(changes)
        if self._server.board.edit(uri, moved) is None:
            return
        self._edits.pop(uri, asyncio.Event()).set()
        if timer := self._timers.pop(uri, None):
            timer.cancel()
        self._timers[uri] = asyncio.get_running_loop().call_later(PAUSE, self._read_again, uri)

    def saved(self, uri: str) -> None:
        """Profile the text as it is now, and the open files whose results depend on this one."""
        if timer := self._timers.pop(uri, None):
            timer.cancel()
        self._flow(uri, self._save(uri))

    def reconfigured(self, uri: str) -> None:
        """Other settings may mean other numbers: profile under them."""
        self._flow(uri, self._open(uri, again=True))

    def closed(self, uri: str) -> None:
        """Forget the document; what runs for it ends."""
        self._stop(uri)
        self._server.board.drop(uri)
        self._server.publisher.clear(uri)

    def deleted(self, uri: str) -> None:
        """The file is gone from the disk while the editor may still show it: end what runs, keep the numbers."""
        if any(self._server.jobs.running(uri)):
            self._server.say(f"{file_path(uri)} was deleted; what ran for it was stopped.")
        self._stop(uri)

    async def text_changes(self, uri: str, seconds: float) -> bool:
        """Wait until the document is edited; False when it was not within ``seconds``."""
        event = self._edits.setdefault(uri, asyncio.Event())
        try:
            await within(seconds, event.wait())
        except asyncio.TimeoutError:
            return False
        return True

    async def file(self, uri: str) -> FileText:
        """The text of a document and its kernels, for a command; the document may be closed.

        Raises:
            UserError: it cannot be read, is not text, or does not parse.
        """
        try:
            document = await self._server.documents.text(uri)
        except (OSError, ValueError) as error:
            raise UserError(f"{uri} cannot be read: {error}") from None
        found = await self._find(document)
        if self._server.board.get(uri) is None:
            trusted = self._server.client.trusted
            self._server.board.put(FileState(uri, document.path, trusted=trusted).with_text(found))
        for finding in found.findings:
            if finding.code == "syntax-error":
                raise UserError(f"{document.path}:{finding.line}: {finding.message}")
        return FileText(
            document.path, document.text, found, await self._server.configuration.of(document.path)
        )

    async def profile_dependents(self, paths: frozenset[str]) -> None:
        """Profile the open files whose results come from any of ``paths`` too, because they were written."""
        for other in self._server.board.files():
            if other.path in paths or not other.kernels:
                continue
            opened = await self._look(other.uri)
            if opened is not None and await self._server.backend.depends_on(opened, paths):
                self._profile(other.uri, opened, again=True)

    def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        for flow in self._flows.values():
            flow.cancel()

    async def _open(self, uri: str, again: bool = False) -> None:
        file = await self._look(uri, disk=True)
        if file is None:
            return
        await self.recall(uri, file)
        state = self._server.board.get(uri)
        unknown = state is not None and any(k.shown is None or k.old for k in state.kernels)
        if (unknown or again) and file.settings.editor.profile_on == "open and save":
            self._profile(uri, file, again)

    async def _save(self, uri: str) -> None:
        file = await self._look(uri, disk=True)
        if file is not None:
            if file.settings.editor.profile_on != "command":
                self._profile(uri, file)
            await self.recall(uri, file)
        if path := file_path(uri):
            await self.profile_dependents(frozenset((path,)))

    async def _look(self, uri: str, disk: bool = False) -> FileText | None:
        """Find the kernels of an open document and show them. None where there is nothing to profile: no kernel, or
        text that does not parse or (with ``disk``) is not text on disk."""
        document = self._server.documents.opened(uri)
        if document is None:
            return None
        found = await self._find(document)
        if disk and (finding := await self._unreadable(document)):
            found = replace(found, findings=(*found.findings, finding))
        await self._server.configuration.of(document.path)  # lenses and hints ask what is known of it
        now = self._server.documents.opened(uri)
        if now is not None and now.version == document.version:
            self._server.board.update(uri, lambda state: state.with_text(found))
            self._server.candidates.file_edited(uri)
        if not found.kernels or any(f.code in ("syntax-error", "not-text") for f in found.findings):
            return None
        return FileText(
            document.path, document.text, found, await self._server.configuration.of(document.path)
        )

    async def _find(self, document: DocumentText) -> Discovery:
        if not may_hold_kernels(document.text):
            return Discovery()
        return await self._server.reader.find_kernels(document.text)

    async def _unreadable(self, document: DocumentText) -> Finding | None:
        try:
            _, finding = await asyncio.to_thread(read_source, document.path)
        except OSError:
            return None  # never saved, or deleted: the editor's text is what counts
        return finding if finding and may_hold_kernels(document.text) else None

    async def recall(self, uri: str, file: FileText) -> None:
        """Show what the memory knows about ``file``, the text of the document ``uri``."""
        remembered = await self._server.backend.remembered(file)
        results = remembered.results

        def recall(state: FileState) -> FileState:
            if results is not None and not any(k.shown for k in state.kernels):
                state = state.with_results(replace(results, complete=True), file.found)
            for kernel in state.kernels:
                own = tuple(s for s in remembered.suggestions if s.kernel == kernel.kernel.name)
                known = {s.id for s in own}
                kept = tuple(s for s in kernel.suggestions if s.id not in known)
                ranked = tuple(sorted((*own, *kept), key=lambda s: -s.speedup.value))
                state = state.with_suggestions(kernel.kernel.name, ranked)
            return state.with_interrupted(remembered.interrupted)

        self._server.board.update(uri, recall)

    def _profile(self, uri: str, file: FileText, again: bool = False) -> None:
        """Profile, unless that very text is being profiled and nothing asks for it ``again``."""
        profiles = self._server.profiles
        if self._server.client.trusted and (again or not profiles.is_running_for(uri, file.text)):
            profiles.start(uri, file)

    def _read_again(self, uri: str) -> None:
        self._timers.pop(uri, None)
        self._server.watching.edited(uri)
        self._server.background(self._read(uri))

    async def _read(self, uri: str) -> None:
        await self._look(uri)

    def _flow(self, uri: str, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work`` for a document in place of the flow that still runs for it."""
        if earlier := self._flows.pop(uri, None):
            earlier.cancel()
        task = self._server.background(work)
        self._flows[uri] = task

    def _stop(self, uri: str) -> None:
        if timer := self._timers.pop(uri, None):
            timer.cancel()
        if flow := self._flows.pop(uri, None):
            flow.cancel()
        self._server.jobs.cancel_for(uri)
