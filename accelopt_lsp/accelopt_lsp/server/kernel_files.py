"""Read kernel files: a document's text, the kernels found in it and the settings that hold, for profiles, searches and
problem files."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import replace

from accelopt_lsp.backend.parser import ParserProcess
from accelopt_lsp.backend.protocol import FileText
from accelopt_lsp.errors import UserError
from accelopt_lsp.server.configuration import SettingsCache
from accelopt_lsp.server.connection import EditorConnection
from accelopt_lsp.server.documents import Documents, DocumentText, read_source
from accelopt_lsp.state.state_store import FileState, StateStore
from accelopt_profiling.kernels import Discovery, may_hold_kernels
from accelopt_profiling.measurement import Finding


class KernelFiles:
    """Finds the kernels of each text once (``ParserProcess`` keeps them by text) and writes them to the state store."""

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
        self._numbers = itertools.count(1)

    async def read(self, uri: str) -> FileText:
        """The text of a document and its kernels, for a command; the document may be closed.

        Raises:
            UserError: it cannot be read, is not text, or does not parse.
        """
        try:
            document = await self._documents.text(uri)
        except (OSError, ValueError) as error:
            raise UserError(f"{uri} cannot be read: {error}") from None
        found = await self._discover(document)
        if self._state.get(uri) is None:
            trusted = self._editor.client.trusted
            self._state.put(FileState(uri, document.path, trusted=trusted).with_text(found))
        for finding in found.findings:
            if finding.code == "syntax-error":
                raise UserError(f"{document.path}:{finding.line}: {finding.message}")
        return await self._file_text(document, found)

    async def update(self, uri: str, disk: bool = False) -> tuple[FileText | None, bool]:
        """Find the kernels of an open document and write them to the state store.

        Returns the text to profile, None where there is none: no kernel, or text that does not parse or (with
        ``disk``) is not text on disk; and whether the state store was changed, which it is not for a text that was
        edited meanwhile.
        """
        document = self._documents.opened(uri)
        if document is None:
            return None, False
        found = await self._discover(document)
        if disk and (finding := await self._unreadable(document)):
            found = replace(found, findings=(*found.findings, finding))
        await self._configuration.of(document.path)  # lenses and hints read the settings known by then
        now = self._documents.opened(uri)
        current = now is not None and now.version == document.version
        if current:
            self._state.update(uri, lambda state: state.with_text(found))
        if not found.kernels or any(f.code in ("syntax-error", "not-text") for f in found.findings):
            return None, current
        return await self._file_text(document, found), current

    async def _file_text(self, document: DocumentText, found: Discovery) -> FileText:
        settings = await self._configuration.of(document.path)
        return FileText(document.path, document.text, found, settings, examination=next(self._numbers))

    async def _discover(self, document: DocumentText) -> Discovery:
        if not may_hold_kernels(document.text):
            return Discovery()
        return await self._parser.find_kernels(document.text)

    async def _unreadable(self, document: DocumentText) -> Finding | None:
        try:
            _, finding = await asyncio.to_thread(read_source, document.path)
        except OSError:
            return None  # never saved, or deleted: the editor's text is what counts
        return finding if finding and may_hold_kernels(document.text) else None
