"""Tell the editor when what is known has changed: push diagnostics, and ask it to fetch lenses and hints again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from lsprotocol import types

from accelopt_lsp.features.diagnostics import findings
from accelopt_lsp.server import convert
from accelopt_lsp.state.state_store import FileState

if TYPE_CHECKING:
    from accelopt_lsp.server.server import AccelOptServer

log = logging.getLogger(__name__)

#: Changes that come within so many seconds are told together.
TOGETHER = 0.05


class Publisher:
    def __init__(self, server: AccelOptServer) -> None:
        self._server = server
        self._published: dict[str, list[types.Diagnostic]] = {}
        self._pending: set[str] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._refresh = False
        self._asking: set[asyncio.Task[None]] = set()

    def state_changed(self, old: FileState | None, new: FileState) -> None:
        self._pending.add(new.uri)
        self.refresh()

    def refresh(self) -> None:
        """Have the editor fetch lenses and hints again soon."""
        self._refresh = True
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TOGETHER, self._flush)

    def clear(self, uri: str) -> None:
        """Take back the diagnostics of a document that was closed or deleted."""
        self._pending.discard(uri)
        if self._published.pop(uri, None):
            self._send(uri, [], None)

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
            for part, ask in (
                ("code_lens", self._server.workspace_code_lens_refresh_async),
                ("inlay_hint", self._server.workspace_inlay_hint_refresh_async),
            ):
                if self._server.client.has("workspace", part, "refresh_support"):
                    task = asyncio.get_running_loop().create_task(self._ask(ask(None)))
                    self._asking.add(task)
                    task.add_done_callback(self._asking.discard)

    def _publish(self, uri: str) -> None:
        state = self._server.board.get(uri)
        if state is None or not state.read:
            return
        text = self._server.documents.lines(uri)
        diagnostics = convert.diagnostics(findings(state), text, self._server.client)
        if diagnostics != self._published.get(uri, []):
            self._published[uri] = diagnostics
            opened = self._server.documents.opened(uri)
            self._send(uri, diagnostics, opened.version if opened else None)

    def _send(self, uri: str, diagnostics: list[types.Diagnostic], version: int | None) -> None:
        versions = self._server.client.has("text_document", "publish_diagnostics", "version_support")
        self._server.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri, diagnostics, version if versions else None)
        )

    async def _ask(self, request: Awaitable[None]) -> None:
        try:
            await request
        except Exception as error:
            log.warning("the client refused to refresh: %s", error)
