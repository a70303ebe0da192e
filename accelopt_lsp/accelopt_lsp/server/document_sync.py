"""React to documents that are opened, edited, saved or closed. Handlers call these methods and return at once."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from accelopt_agent.suggestions.suggestion import best_first
from accelopt_lsp.server.documents import file_path
from accelopt_lsp.server.profiles import Profiles
from accelopt_lsp.server.session import Session
from accelopt_lsp.server.settings_sync import SettingsSync
from accelopt_lsp.server.workspace_trust import WorkspaceTrust
from accelopt_lsp.service.protocol import FileRequest
from accelopt_lsp.state.line_map import LineMap
from accelopt_lsp.state.state_store import Document
from accelopt_profiling.waiting import within

#: The text is read again when nothing was typed for so many seconds.
PAUSE = 0.2


class DocumentSync:
    """Reads and profiles documents as they are opened, edited and saved, and tells by ``Documents`` what it did."""

    def __init__(
        self, session: Session, profiles: Profiles, trust: WorkspaceTrust, settings: SettingsSync
    ) -> None:
        self._editor, self._state = session.editor, session.state
        self._jobs, self._tasks = session.jobs, session.tasks
        self._service, self._files, self._documents = session.service, session.files, session.documents
        self._profiles, self._trust = profiles, trust
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._flows: dict[str, asyncio.Task[None]] = {}
        self._edits: dict[str, asyncio.Event] = {}
        settings.changed.listen(self._reconfigured)
        session.closing.listen(self._close)

    def opened(self, uri: str) -> None:
        """Show the last numbers at once, then profile what they do not cover."""
        path = file_path(uri)
        if path is not None:
            self._state.put(Document(uri, path))
            self._flow(uri, self._open(uri))

    def edited(self, uri: str, moved: LineMap) -> None:
        """Mark results as old; the kernels are found again after a pause."""
        if self._state.edit(uri, moved) is None:
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

    def _reconfigured(self, uri: str) -> None:
        """Profile a document again because other settings hold for it."""
        self._flow(uri, self._open(uri, again=True))

    def closed(self, uri: str) -> None:
        """Forget the document; what runs for it ends."""
        self._stop(uri)
        self._state.drop(uri)
        self._profiles.forget(uri)
        self._documents.closed(uri)

    def deleted(self, uri: str) -> None:
        """End what runs for a file that is gone from the disk; its numbers stay while the editor still shows it."""
        if any(self._jobs.running(uri)):
            self._editor.say(f"{file_path(uri)} was deleted; what ran for it was stopped.")
        self._stop(uri)

    async def text_changes(self, uri: str, seconds: float) -> bool:
        """Wait until the document is edited; False when it was not within ``seconds``."""
        event = self._edits.setdefault(uri, asyncio.Event())
        try:
            await within(seconds, event.wait())
        except asyncio.TimeoutError:
            return False
        return True

    async def profile_dependents(self, paths: frozenset[str]) -> None:
        """Profile the open files whose results come from any of ``paths`` too, because they were written."""
        for other in self._state.files():
            if other.path in paths or not other.kernels:
                continue
            opened = await self._update(other.uri)
            if opened is not None and await self._service.depends_on(opened, paths):
                self._profile(other.uri, opened, again=True)

    def _close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        for flow in self._flows.values():
            flow.cancel()

    async def _open(self, uri: str, again: bool = False) -> None:
        file = await self._update(uri, disk=True)
        if file is None:
            self._documents.shown(uri)
            return
        self._show_stored(uri, file)
        try:
            await self._recall(uri, file)
        finally:
            self._documents.shown(uri)
        state = self._state.get(uri)
        unknown = state is not None and any(k.shown is None or k.old for k in state.kernels)
        if (unknown or again) and file.settings.editor.profile_on == "open and save":
            self._profile(uri, file, again)

    async def _save(self, uri: str) -> None:
        file = await self._update(uri, disk=True)
        if file is not None:
            if file.settings.editor.profile_on != "command":
                self._profile(uri, file)
            await self._recall(uri, file, saved=True)
            self._documents.saved(uri)
        if path := file_path(uri):
            await self.profile_dependents(frozenset((path,)))

    async def _update(self, uri: str, disk: bool = False) -> FileRequest | None:
        file, current = await self._files.update(uri, disk)
        if current:
            self._documents.read(uri)
        return file

    def _show_stored(self, uri: str, file: FileRequest) -> None:
        """Show the stored profile of ``file``, the text of the document ``uri``, where nothing newer is shown."""
        state = self._state.get(uri)
        if file.stored is not None and state is not None and not any(k.shown for k in state.kernels):
            self._profiles.texts.note(uri, file.source)
            self._state.show(uri, file.stored, file.source)

    async def _recall(self, uri: str, file: FileRequest, saved: bool = False) -> None:
        """Show what the memory knows of the searches for ``file``, the text of the document ``uri``."""
        stored = await self._service.stored_searches(file, saved)

        def recall(state: Document) -> Document:
            for kernel in state.kernels:
                own = tuple(s for s in stored.suggestions if s.kernel == kernel.kernel.name)
                ids = {s.id for s in own}
                others = tuple(s for s in kernel.suggestions if s.id not in ids)
                state = state.with_suggestions(kernel.kernel.name, tuple(best_first((*own, *others))))
            return state.with_decided(stored.accepted).with_interrupted(stored.interrupted)

        self._state.update(uri, recall)

    def _profile(self, uri: str, file: FileRequest, again: bool = False) -> None:
        """Profile, unless that very text is being profiled and nothing asks for it ``again``."""
        if (folder := file.settings.untrusted) is not None:
            self._trust.needed(folder)
        elif again or not self._profiles.is_running_for(uri, file.text):
            self._profiles.start(uri, file)

    def _read_again(self, uri: str) -> None:
        self._timers.pop(uri, None)
        self._documents.settled(uri)
        self._tasks.start(self._read(uri))

    async def _read(self, uri: str) -> None:
        if await self._files.find_kernels(uri):
            self._documents.read(uri)

    def _flow(self, uri: str, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work`` for a document in place of the flow that still runs for it."""
        if earlier := self._flows.pop(uri, None):
            earlier.cancel()
        self._flows[uri] = self._tasks.start(work)

    def _stop(self, uri: str) -> None:
        if timer := self._timers.pop(uri, None):
            timer.cancel()
        if flow := self._flows.pop(uri, None):
            flow.cancel()
        self._jobs.cancel_for(uri)
