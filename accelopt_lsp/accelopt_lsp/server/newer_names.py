"""Write Python's own functions where NKI has deprecated its names for them, in the editor's text."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from accelopt_lsp.errors import UserError
from accelopt_lsp.language.newer_names import newer_names
from accelopt_lsp.server import convert
from accelopt_lsp.server.commands import Arguments, Handler
from accelopt_lsp.server.session import Session
from accelopt_lsp.state.jobs import BackgroundJob


class NewerNames:
    def __init__(self, session: Session) -> None:
        self._editor, self._jobs = session.editor, session.jobs
        self._documents, self._versions = session.documents, session.versions

    def actions(self) -> Mapping[str, Handler]:
        return {"writeNewerNames": self.write}

    def write(self, args: Arguments) -> BackgroundJob:
        """Write them in the whole document, as one edit."""
        uri = args.document()
        return self._jobs.start(BackgroundJob.of("writeNewerNames", uri), self._run(uri))

    async def _run(self, uri: str) -> None:
        version, text = self._documents.version(uri), await self._documents.text(uri)
        nki = self._versions.cached(self._documents.path(uri)).nki
        try:
            edits = await asyncio.to_thread(newer_names, text, nki)
        except SyntaxError as error:
            raise UserError(f"The file does not parse: {error.msg}.") from None
        if not edits:
            raise UserError("No deprecated name of this file has one of Python's that is written alike.")
        if not self._editor.applies_edits:
            raise UserError(f"This editor applies no edits for a server; {len(edits)} calls can be renamed.")
        changes = convert.workspace_edit(
            uri, version, edits, self._documents.lines(text), self._editor.client
        )
        applied, why_not = await self._editor.apply_edit(changes, "AccelOpt: today's names")
        if not applied:
            raise UserError(f"The names were not written. {why_not}".strip())
