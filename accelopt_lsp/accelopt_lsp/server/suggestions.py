"""Accept and reject: a suggestion becomes text in the editor and a row in the memory, or a rewrite not wanted."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from accelopt_agent.suggestions.apply import ApplyRefusal
from accelopt_agent.suggestions.suggestion import Suggestion
from accelopt_lsp.errors import UserError
from accelopt_lsp.features.wording import origin, speedup
from accelopt_lsp.server import convert
from accelopt_lsp.server.commands import Arguments
from accelopt_lsp.server.documents import DocumentText, file_path
from accelopt_lsp.server.patches import write_patch
from accelopt_lsp.settings.load import Settings
from accelopt_lsp.state.jobs import BackgroundJob, JobKind

if TYPE_CHECKING:
    from accelopt_lsp.server.server import AccelOptServer

#: How long an edit that the editor says it makes may take to arrive, in seconds.
EDIT_ARRIVES = 3.0

_APPLY, _SHOW, _LATER = "Apply", "Show diff", "Not now"


class Decisions:
    def __init__(self, server: AccelOptServer) -> None:
        self._server = server

    def accept(self, args: Arguments) -> BackgroundJob:
        """Record a suggestion as accepted; with ``apply`` make its edit first, with ``ask`` ask before that."""
        return self._start("accept", args, self.settle)

    def reject(self, args: Arguments) -> BackgroundJob:
        return self._start("reject", args, self._reject)

    async def edit_of(self, suggestion: Suggestion, uri: str) -> types.WorkspaceEdit | ApplyRefusal:
        """The edit that brings a suggestion into the current text of ``uri``, or why there is none."""
        try:
            document = await self._server.documents.text(uri)
        except (OSError, ValueError) as error:
            return ApplyRefusal(f"{uri} cannot be read: {error}")
        edits = await self._server.reader.edits_for(document.text, suggestion)
        if isinstance(edits, ApplyRefusal):
            return edits
        now = self._server.documents.opened(uri)
        if now is not None and now.version != document.version:
            return ApplyRefusal("The file was edited just now; try again.")
        lines = self._server.documents.lines_of(document)
        return convert.workspace_edit(uri, document.version, edits, lines, self._server.client)

    async def find(self, args: Arguments) -> tuple[Suggestion, str]:
        """The suggestion and the document it is for.

        Raises:
            UserError: there is none of that id.
        """
        if args.id is None:
            raise UserError('A suggestion is named by its id: {"id": "..."}.')
        known = self._server.board.suggestion(args.id)
        if known is not None:
            state, _, suggestion = known
            return suggestion, args.uri or state.uri
        remembered = await self._server.backend.suggestion(args.id, await self._settings(args.uri))
        if remembered is None:
            raise UserError(f"There is no suggestion {args.id}; optimize the kernel again.")
        return remembered, args.uri or Path(remembered.file).absolute().as_uri()

    def _start(
        self, kind: JobKind, args: Arguments, run: Callable[[Arguments], Coroutine[Any, Any, None]]
    ) -> BackgroundJob:
        title = f"{kind.capitalize()} suggestion {args.id or ''}".strip()
        known = self._server.board.suggestion(args.id) if args.id else None
        uri = args.uri or (known[0].uri if known else "")
        job = BackgroundJob(kind, uri, title, known[2].kernel if known else None)
        return self._server.jobs.start(job, run(args))

    async def settle(self, args: Arguments) -> None:
        """``accept`` inside a job. Raises UserError: it cannot be, and why."""
        suggestion, uri = await self.find(args)
        if args.ask and not await self._agreed(suggestion):
            return
        if args.apply or args.ask:
            if not await self._apply(suggestion, uri):
                return
        elif not await self._is_applied(suggestion, uri):
            raise UserError(
                f"{suggestion.kernel} does not hold suggestion {suggestion.id}, so it was not remembered as accepted. "
                'Send {"id": ..., "apply": true} to have the server apply it.'
            )
        self._server.note(await self._server.backend.accept(suggestion, await self._settings(uri)))
        self._forget(uri, suggestion)

    async def _reject(self, args: Arguments) -> None:
        suggestion, uri = await self.find(args)
        self._server.note(await self._server.backend.reject(suggestion, await self._settings(uri)))
        self._forget(uri, suggestion)

    async def _apply(self, suggestion: Suggestion, uri: str) -> bool:
        server = self._server
        if not server.client.has("workspace", "apply_edit"):
            raise UserError("This editor applies no edits for a server; use `accelopt accept` in a terminal.")
        edit = await self.edit_of(suggestion, uri)
        if isinstance(edit, ApplyRefusal):
            server.say(edit.reason, types.MessageType.Warning)
            return False
        label = f"AccelOpt: {suggestion.summary}"
        wanted = types.ApplyWorkspaceEditParams(edit, label=label)
        answer = await server.answer(server.workspace_apply_edit_async(wanted))
        if not answer.applied:
            reason = (
                f": {answer.failure_reason}"
                if answer.failure_reason
                else "; it may have been edited just now"
            )
            server.say(
                f"The editor did not apply the suggestion{reason}. Try again.", types.MessageType.Warning
            )
        return bool(answer.applied)

    async def _is_applied(self, suggestion: Suggestion, uri: str) -> bool:
        """Whether the document holds the suggestion; an edit on its way is waited for."""
        while True:
            document = await self._text(uri)
            if await self._server.reader.holds(document.text, suggestion):
                return True
            if not await self._server.editing.text_changes(uri, EDIT_ARRIVES):
                return False

    async def _text(self, uri: str) -> DocumentText:
        try:
            return await self._server.documents.text(uri)
        except (OSError, ValueError) as error:
            raise UserError(f"{uri} cannot be read: {error}") from None

    async def _agreed(self, suggestion: Suggestion) -> bool:
        """Ask the person, with the diff on request."""
        server = self._server
        how = f"{speedup(suggestion.speedup)}, {origin(suggestion)}"
        message = f"{suggestion.summary} {how}. Apply it to {suggestion.kernel}?"
        choices = [_APPLY, _SHOW, _LATER]
        while True:
            items = [types.MessageActionItem(choice) for choice in choices]
            params = types.ShowMessageRequestParams(types.MessageType.Info, message, items)
            answer = await server.answer(server.window_show_message_request_async(params))
            if answer is None or answer.title != _SHOW:
                return answer is not None and answer.title == _APPLY
            choices = [_APPLY, _LATER]
            if server.client.has("window", "show_document", "support"):
                patch = await write_patch(suggestion)
                await server.show_file(patch)
            else:
                server.note(suggestion.diff, types.MessageType.Info)

    async def _settings(self, uri: str | None) -> Settings:
        path = file_path(uri) if uri else None
        root = self._server.workspace.root_path
        return await self._server.configuration.of(path or str(Path(root or Path.cwd()) / "file.py"))

    def _forget(self, uri: str, suggestion: Suggestion) -> None:
        state = self._server.board.get(uri)
        kernel = state.kernel(suggestion.kernel) if state else None
        if kernel is not None:
            left = tuple(s for s in kernel.suggestions if s.id != suggestion.id)
            self._server.board.suggest(uri, suggestion.kernel, left)
