"""Read kernel files: a document's text, the kernels found in it and the settings that hold, for profiles, searches and
problem files."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path

from accelopt_lsp.errors import UserError
from accelopt_lsp.server.configuration import SettingsCache
from accelopt_lsp.server.connection import EditorConnection
from accelopt_lsp.server.documents import Documents, DocumentText
from accelopt_lsp.service.parser import ParserProcess
from accelopt_lsp.service.protocol import FileText
from accelopt_lsp.settings.load import Settings
from accelopt_lsp.state.state_store import FileState, StateStore
from accelopt_profiling.kernel_file import KernelFile
from accelopt_profiling.kernels import Discovery, may_hold_kernels
from accelopt_profiling.measurement import Finding
from accelopt_profiling.problems.ref import ProblemLookup
from accelopt_profiling.source_text import UnreadableFileError, read_text


class KernelFiles:
    """Examines each state of a document once, writes its kernels to the state store and hands the result on."""

    def __init__(
        self,
        editor: EditorConnection,
        state: StateStore,
        documents: Documents,
        configuration: SettingsCache,
        parser: ParserProcess,
    ) -> None:
        self._editor, self._state, self._documents = editor, state, documents
        self._configuration, self._parser = configuration, parser

    async def read(self, uri: str) -> FileText:
        """Return the text of a document and its kernels, for a command; the document may be closed.

        Raises:
            UserError: it cannot be read, is not text, or does not parse.
        """
        document = await self._documents.text(uri)
        file = await self._examine(document)
        discovery = file.found
        if self._state.get(uri) is None:
            self._state.put(
                FileState(uri, document.path, untrusted=file.settings.untrusted).with_text(discovery)
            )
        for finding in discovery.findings:
            if finding.code == "syntax-error":
                raise UserError(f"{document.path}:{finding.line}: {finding.message}")
        return file

    async def update(self, uri: str, disk: bool = False) -> tuple[FileText | None, bool]:
        """Examine an open document and write its kernels to the state store.

        Returns the file to profile, None where there is none: no kernel, or text that does not parse or (with
        ``disk``) is not text on disk; and whether the state store was changed, which it is not for a text that was
        edited meanwhile.
        """
        document = self._documents.opened(uri)
        if document is None:
            return None, False
        file = await self._examine(document)
        discovery = file.found
        if disk and (finding := await self._unreadable(document)):
            discovery = replace(discovery, findings=(*discovery.findings, finding))
        changed = self._show(document, discovery)
        if not discovery.kernels or any(f.code in ("syntax-error", "not-text") for f in discovery.findings):
            return None, changed
        return file, changed

    async def find_kernels(self, uri: str) -> bool:
        """Find the kernels of an open document while it is edited; whether the state store was changed."""
        document = self._documents.opened(uri)
        if document is None:
            return False
        may = may_hold_kernels(document.text)
        discovery = await self._parser.find_kernels(document.text) if may else Discovery()
        await self._settings(document)  # lenses and hints read the settings known by then
        return self._show(document, discovery)

    def _show(self, document: DocumentText, discovery: Discovery) -> bool:
        now = self._documents.opened(document.uri)
        current = now is not None and now.version == document.version
        if current:
            self._state.update(document.uri, lambda state: state.with_text(discovery))
        return current

    async def _examine(self, document: DocumentText) -> FileText:
        read_at = time.time()
        settings = await self._settings(document)
        path, text = Path(document.path), document.text
        if not may_hold_kernels(text):
            return FileText(KernelFile(path, text, Discovery(), ProblemLookup(None)), settings)
        return replace(await self._parser.examine(path, text, settings), read_at=read_at)

    async def _settings(self, document: DocumentText) -> Settings:
        settings = await self._configuration.of(document.path)
        self._state.update(document.uri, lambda state: replace(state, untrusted=settings.untrusted))
        return settings

    async def _unreadable(self, document: DocumentText) -> Finding | None:
        try:
            await asyncio.to_thread(read_text, Path(document.path))
        except UnreadableFileError as error:
            if error.code == "not-text" and may_hold_kernels(document.text):
                advice = "Save it as UTF-8; until then nothing is profiled."
                return Finding("not-text", error.line, "error", f"The file {error.why}. {advice}")
        return None  # one that was never saved, or is deleted: the editor's text is what counts
