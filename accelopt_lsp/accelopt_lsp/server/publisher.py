"""Tell the editor when the state store has changed: push diagnostics, and have it fetch lenses and hints again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from accelopt_lsp.features.diagnostics import diagnostics
from accelopt_lsp.server import convert
from accelopt_lsp.server.session import Session
from accelopt_lsp.server.settings_sync import SettingsSync
from accelopt_lsp.state.state_store import Document

if TYPE_CHECKING:
    from lsprotocol import types


log = logging.getLogger(__name__)

#: Changes that come within so many seconds are told together.
TOGETHER = 0.05


class Publisher:
    def __init__(self, session: Session, settings: SettingsSync) -> None:
        self._editor, self._state, self._documents = session.editor, session.state, session.documents
        self._configuration = session.configuration
        self._published: dict[str, list[types.Diagnostic]] = {}
        self._pending: set[str] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._refresh = False
        self._asking: set[asyncio.Task[None]] = set()
        session.state.changed.listen(self._changed)
        settings.read.listen(self._changed)
        session.documents.closed.listen(self._clear)
        session.work.listen(self.refresh)

    def _changed(self, document: Document) -> None:
        self._pending.add(document.uri)
        self.refresh()

    def refresh(self) -> None:
        """Have the editor fetch lenses and hints again soon."""
        self._refresh = True
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TOGETHER, self._flush)

    def _clear(self, uri: str) -> None:
        """Take back the diagnostics of a document that was closed or deleted."""
        self._pending.discard(uri)
        if self._published.pop(uri, None):
            self._editor.publish(uri, [], None)

    def _flush(self) -> None:
        self._timer = None
        pending, self._pending = self._pending, set()
        for uri in pending:
            try:
                self._publish(uri)
            except Exception:
                log.exception("the diagnostics of %s could not be published", uri)
        if self._refresh:
            self._refresh = False
            for request in (self._editor.refresh_lenses(), self._editor.refresh_hints()):
                task = asyncio.get_running_loop().create_task(self._ask(request))
                self._asking.add(task)
                task.add_done_callback(self._asking.discard)

    def _publish(self, uri: str) -> None:
        state = self._state.get(uri)
        if state is None or not state.read:
            return
        text = self._documents.lines(self._documents.opened(uri))
        settings = self._configuration.cached(state.path)
        ignored, everything = (settings.ignored, settings.editor.findings) if settings else ((), True)
        items = diagnostics(state, ignored, everything)
        shown = convert.diagnostics(items, uri, text, self._editor.client)
        if shown != self._published.get(uri, []):
            self._published[uri] = shown
            self._editor.publish(uri, shown, self._documents.version(uri))

    async def _ask(self, request: Awaitable[None]) -> None:
        try:
            await request
        except Exception as error:
            log.warning("the client refused to refresh: %s", error)
