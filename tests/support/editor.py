"""An editor to test with: a pytest-lsp client that keeps what the server asks of it and edits its documents."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import lsprotocol.types as t
from pytest_lsp import LanguageClient, client_capabilities
from pytest_lsp.client import register_lsp_features

from accelopt_lsp.demo.editor import client_converter, edited_text
from support.waiting import PATIENCE, until

T = TypeVar("T")

#: The program that serves the scripted service.
SCRIPTED = str(Path(__file__).parent / "scripted_server.py")

CLIENTS = ["none", "neovim", "emacs", "vscode"]


def capabilities(name: str) -> t.ClientCapabilities:
    """What an editor can do: files of pytest-lsp for Neovim and Emacs, our own for VS Code's newest client."""
    if name == "none":
        return t.ClientCapabilities()
    if name == "vscode":
        data = json.loads((Path(__file__).parent / "vscode_languageclient_11.json").read_text())
        return client_converter().structure(data["capabilities"], t.ClientCapabilities)
    return client_capabilities(name)


class Editor(LanguageClient):
    """Applies edits only when they are for the version it has, as VS Code, Helix and Emacs do."""

    def __init__(self) -> None:
        super().__init__(converter_factory=client_converter)
        register_lsp_features(self)
        self.registers_nothing = False
        self.registrations: list[t.Registration] = []
        self.statuses: list[Any] = []
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.answers: list[str] = []
        self.listed: list[str] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.questions: list[t.ShowMessageRequestParams] = []
        self.patience = PATIENCE
        self.refreshed = {"lens": 0, "hint": 0}
        self.shown: list[str] = []
        self.newer: list[str] = []

        @self.feature(t.CLIENT_REGISTER_CAPABILITY)
        async def register(params: t.RegistrationParams) -> None:
            if self.registers_nothing:
                raise asyncio.CancelledError  # the one error that does not end the test's client
            self.registrations += params.registrations

        @self.feature(t.WORKSPACE_APPLY_EDIT)
        def apply(params: t.ApplyWorkspaceEditParams) -> t.ApplyWorkspaceEditResult:
            return t.ApplyWorkspaceEditResult(applied=self.apply(params.edit))

        @self.feature(t.WORKSPACE_CODE_LENS_REFRESH)
        def lens(params: None = None) -> None:
            self.refreshed["lens"] += 1

        @self.feature(t.WORKSPACE_INLAY_HINT_REFRESH)
        def hint(params: None = None) -> None:
            self.refreshed["hint"] += 1

        @self.feature(t.WINDOW_SHOW_MESSAGE_REQUEST)
        async def ask(params: t.ShowMessageRequestParams) -> t.MessageActionItem | None:
            self.questions.append(params)
            await self.may_answer.wait()
            return t.MessageActionItem(self.answers.pop(0)) if self.answers else None

        @self.feature("accelopt/show")
        def show(params: Any) -> None:
            self.shown.append(params.uri)

        @self.feature("accelopt/versions")
        def versions(params: Any) -> None:
            self.listed.append(params.uri)

        @self.feature(t.WORKSPACE_TEXT_DOCUMENT_CONTENT_REFRESH)
        def newer(params: t.TextDocumentContentRefreshParams) -> None:
            self.newer.append(params.uri)

        @self.feature("accelopt/status")
        def status(params: Any) -> None:
            self.statuses.append(params)

    async def begin(
        self, name: str, root: Path, *, folders: tuple[Path, ...] = (), **options: Any
    ) -> t.InitializeResult:
        workspace_folders = [t.WorkspaceFolder(uri=folder.as_uri(), name=folder.name) for folder in folders]
        params = t.InitializeParams(
            capabilities=capabilities(name),
            root_uri=root.as_uri(),
            workspace_folders=workspace_folders or None,
            initialization_options={"trusted": True, **options}
            if options.get("trusted", True) is not None
            else None,
        )
        result = await self.initialize_session(params)
        self.name = name
        return result

    async def end(self) -> None:
        """Shut the server down; it has to exit by itself, with code 0."""
        await self.shutdown_session()
        assert self._server is not None
        code = await asyncio.wait_for(self._server.wait(), PATIENCE)
        await self.stop()
        assert code == 0, f"the server exited with {code}"

    def open(self, path: Path, text: str | None = None) -> str:
        """Open a file; ``text`` is written to it first."""
        if text is not None:
            path.write_bytes(text.encode())
        uri = path.as_uri()
        self.texts[uri], self.versions[uri] = path.read_bytes().decode("utf-8", "replace"), 1
        item = t.TextDocumentItem(uri, "python", 1, self.texts[uri])
        self.text_document_did_open(t.DidOpenTextDocumentParams(item))
        return uri

    def replace(self, uri: str, old: str, new: str) -> None:
        """Edit the one place where ``old`` stands, as an incremental change."""
        text = self.texts[uri]
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times"
        start = text.index(old)
        self.texts[uri] = text.replace(old, new)
        self.versions[uri] += 1
        span = t.Range(_position(text, start), _position(text, start + len(old)))
        self._tell(uri, [t.TextDocumentContentChangePartial(range=span, text=new)])

    def set_text(self, uri: str, text: str) -> None:
        """Replace the whole text, as an editor does that reloads a file."""
        self.texts[uri] = text
        self.versions[uri] += 1
        self._tell(uri, [t.TextDocumentContentChangeWholeDocument(text=text)])

    def save(self, uri: str) -> None:
        path_of(uri).write_bytes(self.texts[uri].encode())
        self.text_document_did_save(t.DidSaveTextDocumentParams(t.TextDocumentIdentifier(uri)))

    def close(self, uri: str) -> None:
        del self.texts[uri]
        self.text_document_did_close(t.DidCloseTextDocumentParams(t.TextDocumentIdentifier(uri)))

    def hold_answers(self) -> asyncio.Event:
        """Answer no question until the event is set."""
        self.may_answer.clear()
        return self.may_answer

    async def text_document_content(self, uri: str) -> str:
        """A document of the server's own."""
        document = await self.workspace_text_document_content_async(t.TextDocumentContentParams(uri))
        return document.text

    def apply(self, edit: t.WorkspaceEdit) -> bool:
        """Apply an edit to the open documents, or nothing of it where a version is wrong."""
        changes: list[tuple[str, list[t.TextEdit]]] = []
        for change in edit.document_changes or []:
            assert isinstance(change, t.TextDocumentEdit)
            if change.text_document.version != self.versions[change.text_document.uri]:
                return False
            changes.append((change.text_document.uri, list(change.edits)))  # type: ignore[arg-type]
        changes += [(uri, list(edits)) for uri, edits in (edit.changes or {}).items()]
        for uri, edits in changes:
            self.set_text(uri, edited_text(self.texts[uri], edits))
        return True

    async def titles(self, uri: str) -> list[str]:
        lenses = await self.text_document_code_lens_async(t.CodeLensParams(t.TextDocumentIdentifier(uri)))
        return [lens.command.title for lens in lenses or [] if lens.command]

    async def title(self, uri: str, has: str, line: int | None = None) -> str:
        """The first lens that holds ``has``, as soon as there is one."""

        async def look() -> str | None:
            return next((title for title in await self.titles(uri) if has in title), None)

        return await self.until(look, f"a lens with {has!r}")

    async def diagnostic(self, uri: str, code: str) -> t.Diagnostic:
        async def look() -> t.Diagnostic | None:
            return next((d for d in self.diagnostics.get(uri, []) if d.code == code), None)

        return await self.until(look, f"a diagnostic {code}")

    async def no_diagnostic(self, uri: str, code: str) -> None:
        async def look() -> bool:
            return all(d.code != code for d in self.diagnostics.get(uri, []))

        await self.until(look, f"no diagnostic {code}")

    async def message(self, has: str) -> str:
        async def look() -> str | None:
            return next((m.message for m in self.messages if has in m.message), None)

        return await self.until(look, f"a message with {has!r}")

    async def logged(self, has: str) -> str:
        """The line of the log that holds ``has``, as soon as there is one."""

        async def look() -> str | None:
            return next((m.message for m in self.log_messages if has in m.message), None)

        return await self.until(look, f"a line of the log with {has!r}")

    async def await_questions(self, count: int = 1) -> list[t.ShowMessageRequestParams]:
        """The questions, as soon as there are ``count``: a title says that an answer is missing before one is asked."""

        async def look() -> bool:
            return len(self.questions) == count

        await self.until(look, f"question {count}")
        return self.questions

    async def actions(
        self, uri: str, line: int, only: list[str] | None = None
    ) -> list[t.CodeAction | t.Command]:
        at = t.Range(t.Position(line - 1, 0), t.Position(line - 1, 0))
        context = t.CodeActionContext(diagnostics=self.diagnostics.get(uri, []), only=only)
        params = t.CodeActionParams(t.TextDocumentIdentifier(uri), at, context)
        return list(await self.text_document_code_action_async(params) or [])

    async def action(self, uri: str, line: int, has: str) -> t.CodeAction | t.Command:
        async def look() -> t.CodeAction | t.Command | None:
            return next((a for a in await self.actions(uri, line) if has in a.title), None)

        return await self.until(look, f"an action with {has!r}")

    async def execute(self, name: str, *arguments: Any) -> Any:
        params = t.ExecuteCommandParams(f"accelopt.server.{name}", list(arguments))
        return await self.workspace_execute_command_async(params)

    async def until(self, look: Callable[[], Any], what: str) -> Any:
        try:
            return await until(look, what, self.patience)
        except AssertionError as error:
            raise AssertionError(f"{error}: {await self._scene()}") from None

    async def _scene(self) -> str:
        lenses = [await self.titles(uri) for uri in self.texts]
        findings_by_uri = {
            uri: [(d.code, d.message) for d in diagnostics] for uri, diagnostics in self.diagnostics.items()
        }
        return (
            f"lenses {lenses}, diagnostics {findings_by_uri}, messages {[m.message for m in self.messages]}"
        )

    def _tell(self, uri: str, changes: list[Any]) -> None:
        document = t.VersionedTextDocumentIdentifier(version=self.versions[uri], uri=uri)
        self.text_document_did_change(t.DidChangeTextDocumentParams(document, changes))


def path_of(uri: str) -> Path:
    from pygls.uris import to_fs_path

    path = to_fs_path(uri)
    assert path is not None
    return Path(path)


def _position(text: str, offset: int) -> t.Position:
    before = text[:offset]
    return t.Position(before.count("\n"), offset - (before.rfind("\n") + 1))
