"""Drives the language server as an editor without a screen: opens, edits and saves files, and sends requests."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, Union

from lsprotocol import types
from pygls.lsp.client import LanguageClient
from pygls.protocol import default_converter
from pygls.workspace import TextDocument

from accelopt_lsp.own_process import own_process
from accelopt_profiling import __version__

_Answer = TypeVar("_Answer")

_ACTIONS = types.ClientCodeActionLiteralOptions(
    types.ClientCodeActionKindOptions([types.CodeActionKind.QuickFix, types.CodeActionKind.RefactorRewrite])
)
CAPABILITIES = types.ClientCapabilities(
    text_document=types.TextDocumentClientCapabilities(
        code_action=types.CodeActionClientCapabilities(
            code_action_literal_support=_ACTIONS,
            data_support=True,
            resolve_support=types.ClientCodeActionResolveOptions(["edit", "command"]),
        ),
        hover=types.HoverClientCapabilities(content_format=[types.MarkupKind.Markdown]),
        inlay_hint=types.InlayHintClientCapabilities(),
    ),
    workspace=types.WorkspaceClientCapabilities(
        workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=True), apply_edit=True
    ),
    window=types.WindowClientCapabilities(work_done_progress=True),
)


def client_converter() -> Any:
    """pygls' converter, reading an action that has a command as the action it is: lsprotocol 2025.0.0 takes every
    object with the key ``command`` for a bare command."""
    converter: Any = default_converter()  # type: ignore[no-untyped-call]  # pygls'

    def structure(value: dict[str, Any], _: Any) -> Any:
        bare = isinstance(value.get("command"), str)
        return converter.structure(value, types.Command if bare else types.CodeAction)

    for union in (Union[types.Command, types.CodeAction], Union[types.CodeAction, types.Command]):  # noqa: UP007  (the key that cattrs looks for)
        converter.register_structure_hook(union, structure)
    return converter


def timed_title(titles: Iterable[str]) -> str:
    """Return the first title of a lens that states a time; "" where none does."""
    return next((t for t in titles if " us" in t or " ms" in t), "")


class EditorError(Exception):
    """The server did not do what was waited for."""


#: Seconds within which the server answers a request, or ends.
_ANSWER = 120.0


class Editor:
    """One server process and the documents open in it. ``database`` is the memory it works with."""

    def __init__(self, folder: Path, database: Path) -> None:
        self.folder = folder
        self.diagnostics: dict[str, list[types.Diagnostic]] = {}
        self.messages: list[str] = []
        self._texts: dict[str, str] = {}
        self._versions: dict[str, int] = {}
        self._environment = {**os.environ, "ACCELOPT_DB": str(database)}
        self._client = LanguageClient("accelopt-demo", __version__, converter_factory=client_converter)
        self._listen()

    def _listen(self) -> None:
        handlers: dict[str, Callable[[Any], Any]] = {
            types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS: self._published,
            types.WINDOW_SHOW_MESSAGE: lambda params: self.messages.append(params.message),
            types.WINDOW_LOG_MESSAGE: lambda params: self.messages.append(params.message),
            types.WINDOW_WORK_DONE_PROGRESS_CREATE: lambda params: None,
            types.PROGRESS: lambda params: None,
            types.WORKSPACE_APPLY_EDIT: self._asked_to_apply,
        }
        for method, handler in handlers.items():
            self._client.feature(method)(partial(handler))

    def _published(self, params: types.PublishDiagnosticsParams) -> None:
        self.diagnostics[params.uri] = list(params.diagnostics)

    def _asked_to_apply(self, params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        self.apply(params.edit)
        return types.ApplyWorkspaceEditResult(applied=True)

    async def start(self) -> None:
        await self._client.start_io(*own_process("accelopt_lsp.lsp_command"), env=self._environment)
        await self._answer(
            self._client.initialize_async(
                types.InitializeParams(
                    capabilities=CAPABILITIES,
                    root_uri=self.folder.as_uri(),
                    process_id=os.getpid(),
                    initialization_options={"trusted": True},
                )
            )
        )
        self._client.initialized(types.InitializedParams())

    async def stop(self) -> None:
        """End the server.

        Raises:
            EditorError: it had ended before, or does not end.
        """
        await self._answer(self._client.shutdown_async(None))
        self._client.exit(None)
        await self._answer(self._client.stop())  # type: ignore[no-untyped-call]  # pygls'

    async def _answer(self, request: Awaitable[_Answer]) -> _Answer:
        """Wait for what the server answers.

        Raises:
            EditorError: it does not, or has ended.
        """
        try:
            return await asyncio.wait_for(request, _ANSWER)
        except asyncio.TimeoutError:
            raise EditorError(f"The server did not answer within {_ANSWER:g} s.") from None
        except RuntimeError as error:  # pygls' for a server that is gone
            raise EditorError(f"The server is gone: {error}") from error

    # Documents

    def open(self, path: Path) -> str:
        uri = path.as_uri()
        self._texts[uri], self._versions[uri] = path.read_text(encoding="utf-8"), 1
        item = types.TextDocumentItem(uri, "python", 1, self._texts[uri])
        self._client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return uri

    def edit(self, uri: str, text: str) -> None:
        """Replace the whole text of a document, unsaved."""
        self._texts[uri] = text
        self._versions[uri] += 1
        whole = types.TextDocumentContentChangeWholeDocument(text)
        identifier = types.VersionedTextDocumentIdentifier(self._versions[uri], uri)
        self._client.text_document_did_change(types.DidChangeTextDocumentParams(identifier, [whole]))

    def text(self, uri: str) -> str:
        return self._texts[uri]

    def save(self, uri: str) -> None:
        Path(uri.removeprefix("file://")).write_text(self._texts[uri], encoding="utf-8", newline="")
        self.saved(uri)

    def saved(self, uri: str) -> None:
        """Tell the server that the file on disk is what was saved, whatever is in it."""
        identifier = types.TextDocumentIdentifier(uri)
        self._client.text_document_did_save(types.DidSaveTextDocumentParams(identifier, self._texts[uri]))

    def apply(self, edit: types.WorkspaceEdit) -> None:
        """Make an edit as an editor does: in the document, then tell the server.

        Raises:
            EditorError: it is for another version of the document.
        """
        for change in edit.document_changes or ():
            assert isinstance(change, types.TextDocumentEdit)
            uri, version = change.text_document.uri, change.text_document.version
            if version != self._versions[uri]:
                raise EditorError(
                    f"The edit is for version {version} of {uri}, this is {self._versions[uri]}."
                )
            edits = [e for e in change.edits if isinstance(e, types.TextEdit)]
            self.edit(uri, edited_text(self._texts[uri], edits))

    # What an editor shows

    async def lenses(self, uri: str) -> list[types.CodeLens]:
        params = types.CodeLensParams(types.TextDocumentIdentifier(uri))
        lenses = await self._answer(self._client.text_document_code_lens_async(params))
        return list(lenses or [])

    async def lens_titles(self, uri: str) -> list[str]:
        return [lens.command.title for lens in await self.lenses(uri) if lens.command]

    async def hints(self, uri: str) -> list[tuple[int, str]]:
        """Return the line (1-based) and text of each inlay hint."""
        lines = self._texts[uri].count("\n") + 1
        whole = types.Range(types.Position(0, 0), types.Position(lines, 0))
        params = types.InlayHintParams(types.TextDocumentIdentifier(uri), whole)
        hints = await self._answer(self._client.text_document_inlay_hint_async(params)) or []
        return [
            (h.position.line + 1, h.label if isinstance(h.label, str) else h.label[0].value) for h in hints
        ]

    async def hover(self, uri: str, line: int) -> types.Hover | None:
        """Return the hover at the start of the 1-based ``line``."""
        at = types.Position(line - 1, 4)
        params = types.HoverParams(types.TextDocumentIdentifier(uri), at)
        return await self._answer(self._client.text_document_hover_async(params))

    async def actions(self, uri: str, line: int) -> list[types.CodeAction]:
        """Return the code actions at the 1-based ``line``."""
        at = types.Position(line - 1, 0)
        params = types.CodeActionParams(
            types.TextDocumentIdentifier(uri),
            types.Range(at, at),
            types.CodeActionContext(self.diagnostics.get(uri, [])),
        )
        actions = await self._answer(self._client.text_document_code_action_async(params)) or []
        return [a for a in actions if isinstance(a, types.CodeAction)]

    async def resolve(self, action: types.CodeAction) -> types.CodeAction:
        return await self._answer(self._client.code_action_resolve_async(action))

    async def execute(self, command: types.Command) -> Any:
        params = types.ExecuteCommandParams(command.command, command.arguments)
        return await self._answer(self._client.workspace_execute_command_async(params))

    async def until(
        self, what: str, condition: Callable[[list[str]], bool], uri: str, seconds: float = 600
    ) -> list[str]:
        """Ask for the lenses until ``condition`` holds for their titles.

        Raises:
            EditorError: it did not within ``seconds``.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while True:
            titles = await self.lens_titles(uri)
            if condition(titles):
                return titles
            if loop.time() > end:
                remark = f" The server said: {self.messages[-1]}" if self.messages else ""
                raise EditorError(f"{what} did not come within {seconds:g} s.{remark}")
            await asyncio.sleep(0.05)


def edited_text(text: str, edits: list[types.TextEdit]) -> str:
    """Return the text after edits, whose positions are in UTF-16 units of the text before."""
    document = TextDocument("file:///demo", text)
    spans = [
        (document.offset_at_position(e.range.start), document.offset_at_position(e.range.end), e.new_text)
        for e in edits
    ]
    for start, end, new in sorted(spans, reverse=True):
        text = text[:start] + new + text[end:]
    return text
