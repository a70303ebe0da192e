"""Send messages and requests to the editor, as far as its capabilities allow. Everything that the server begins goes
through here, so the parts behind it need no LSP types."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar
from uuid import uuid4

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from accelopt_lsp.server.client import Client
from accelopt_lsp.server.progress import WorkDoneProgress

log = logging.getLogger(__name__)

T = TypeVar("T")

MessageKind = Literal["error", "warning", "info", "log"]

_KIND: dict[MessageKind, types.MessageType] = {
    "error": types.MessageType.Error,
    "warning": types.MessageType.Warning,
    "info": types.MessageType.Info,
    "log": types.MessageType.Log,
}


class EditorRefusedError(Exception):
    """The editor answered a request with an error; the message is the editor's."""


class EditorConnection:
    """The editor's side of ``server``. ``client`` is what it can do, known from ``initialize`` on."""

    def __init__(self, server: LanguageServer) -> None:
        self._server = server
        self.client = Client()

    def say(self, message: str, kind: MessageKind = "info") -> None:
        """Show a message to the person: the answer to a request of theirs, or something that they must know."""
        self._server.window_show_message(types.ShowMessageParams(_KIND[kind], message))

    def note(self, message: str, kind: MessageKind = "log") -> None:
        """Write a line to the editor's log of this server."""
        self._server.window_log_message(types.LogMessageParams(_KIND[kind], message))

    def notify(self, method: str, params: object) -> None:
        """Send a notification of AccelOpt's own."""
        self._server.protocol.notify(method, params)

    def progress(self, title: str, cancel: Callable[[], object], delay: float = 0.0) -> WorkDoneProgress:
        """Return the progress of one job, which appears after ``delay`` seconds; silent where the editor
        shows none."""
        shows = self.client.has("window", "work_done_progress")
        return WorkDoneProgress(self._server, shows, title=title, cancel=cancel, delay=delay)

    async def ask(self, question: str, choices: Sequence[str]) -> str | None:
        """Ask the person; None when they chose nothing.

        Raises:
            EditorRefusedError
        """
        items = [types.MessageActionItem(choice) for choice in choices]
        params = types.ShowMessageRequestParams(types.MessageType.Info, question, items)
        try:
            answer = await self._answer(self._server.window_show_message_request_async(params))
        except JsonRpcException as error:
            raise EditorRefusedError(str(error)) from None
        return answer.title if answer is not None else None

    @property
    def asks(self) -> bool:
        """Whether the editor can ask the person a question."""
        return self.client.has("window", "show_message")

    @property
    def shows_files(self) -> bool:
        return self.client.has("window", "show_document", "support")

    async def show_file(
        self, path: Path, take_focus: bool | None = None, selected: tuple[int, int, int] | None = None
    ) -> None:
        """Open a file in the editor, with the 0-based line's columns selected; only where it ``shows_files``."""
        selection = None
        if selected is not None:
            line, begin, end = selected
            selection = types.Range(types.Position(line, begin), types.Position(line, end))
        params = types.ShowDocumentParams(path.as_uri(), take_focus=take_focus, selection=selection)
        await self._answer(self._server.window_show_document_async(params))

    @property
    def applies_edits(self) -> bool:
        return self.client.has("workspace", "apply_edit")

    async def apply_edit(self, edit: types.WorkspaceEdit, label: str) -> tuple[bool, str]:
        """Have the editor apply an edit; whether it did, and its reason where it did not."""
        params = types.ApplyWorkspaceEditParams(edit, label=label)
        answer = await self._answer(self._server.workspace_apply_edit_async(params))
        return bool(answer.applied), answer.failure_reason or ""

    @property
    def shows_own_documents(self) -> bool:
        """Whether the editor opens documents whose text comes from this server, and takes newer text of them."""
        return self.client.has("workspace", "text_document_content")

    async def renew_document(self, uri: str) -> None:
        """Have the editor fetch a document of this server again."""
        params = types.TextDocumentContentRefreshParams(uri)
        await self._answer(self._server.workspace_text_document_content_refresh_async(params))

    async def refresh_lenses(self) -> None:
        """Have the editor fetch code lenses again, where it can be told to."""
        if self.client.has("workspace", "code_lens", "refresh_support"):
            await self._server.workspace_code_lens_refresh_async(None)

    async def refresh_hints(self) -> None:
        """Have the editor fetch inlay hints again, where it can be told to."""
        if self.client.has("workspace", "inlay_hint", "refresh_support"):
            await self._server.workspace_inlay_hint_refresh_async(None)

    def publish(self, uri: str, diagnostics: list[types.Diagnostic], version: int | None) -> None:
        """Show exactly these diagnostics for a document."""
        versions = self.client.has("text_document", "publish_diagnostics", "version_support")
        params = types.PublishDiagnosticsParams(uri, diagnostics, version if versions else None)
        self._server.text_document_publish_diagnostics(params)

    async def settings(self) -> Any:
        """Return the editor's settings in the section ``accelopt``; None where it cannot be asked for
        them."""
        if not self.client.has("workspace", "configuration"):
            return None
        item = types.ConfigurationItem(section="accelopt")
        answer = await self._server.workspace_configuration_async(types.ConfigurationParams([item]))
        return answer[0] if answer else None

    async def serve_documents(self, schemes: Sequence[str]) -> None:
        """Have the editor ask this server for documents of these schemes."""
        if self.client.has("workspace", "text_document_content", "dynamic_registration"):
            options = types.TextDocumentContentRegistrationOptions(schemes=list(schemes))
            await self._register("accelopt-candidates", types.WORKSPACE_TEXT_DOCUMENT_CONTENT, options)

    async def watch_settings(self) -> None:
        """Have the editor tell when its settings change."""
        if self.client.has("workspace", "did_change_configuration", "dynamic_registration"):
            method = types.WORKSPACE_DID_CHANGE_CONFIGURATION
            await self._register("accelopt-settings", method, {"section": "accelopt"})

    async def watch_files(self, patterns: Sequence[str]) -> bool:
        """Have the editor tell of files that change outside of it; False where it does not."""
        if not self.client.has("workspace", "did_change_watched_files", "dynamic_registration"):
            return False
        watchers = [types.FileSystemWatcher(glob_pattern=pattern) for pattern in patterns]
        options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
        try:
            await self._register("accelopt-watch", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
        except JsonRpcException as error:
            log.warning("the client does not watch files: %s", error)
            return False
        return True

    async def request(self, method: str, params: object) -> Any:
        """Send a request of AccelOpt's own. Being cancelled takes the request back.

        Raises:
            EditorRefusedError
        """
        number = str(uuid4())
        waiting = self._server.protocol.send_request_async(method, params, msg_id=number)
        try:
            return await asyncio.shield(waiting)
        except JsonRpcException as error:
            raise EditorRefusedError(str(error.message)) from None
        except asyncio.CancelledError:
            waiting.add_done_callback(_read_result)
            self._server.protocol.notify(types.CANCEL_REQUEST, types.CancelParams(number))
            raise

    async def _register(self, name: str, method: str, options: object) -> None:
        registration = types.Registration(name, method, options)
        await self._server.client_register_capability_async(types.RegistrationParams([registration]))

    async def _answer(self, request: Coroutine[Any, Any, T]) -> T:
        """Return the answer to a request. Being cancelled stops the waiting, not the request: pygls fails on
        an answer to one that was taken back."""
        waiting = asyncio.ensure_future(request)
        waiting.add_done_callback(_read_result)
        return await asyncio.shield(waiting)


def _read_result(waiting: asyncio.Future[Any]) -> None:
    """Look at a result that nobody waits for any more, so that asyncio does not report it."""
    if not waiting.cancelled():
        waiting.exception()
