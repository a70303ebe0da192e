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
from accelopt_lsp.server.documents import Documents
from accelopt_lsp.server.language_versions import LanguageVersionsCache
from accelopt_lsp.service.parser import ParserProcess
from accelopt_lsp.service.protocol import FileRequest
from accelopt_lsp.settings.load import Settings
from accelopt_lsp.state.state_store import Document, StateStore
from accelopt_profiling.kernels import KernelSource, may_hold_kernels
from accelopt_profiling.language_calls import call_findings
from accelopt_profiling.measurement import Finding
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
        versions: LanguageVersionsCache,
    ) -> None:
        self._editor, self._state, self._documents = editor, state, documents
        self._configuration, self._parser, self._versions = configuration, parser, versions

    async def read(self, uri: str) -> FileRequest:
        """Return the text of a document and its kernels, for a command; the document may be closed.

        Raises:
            UserError: it cannot be read, is not text, or does not parse.
        """
        text, path = await self._documents.text(uri), self._documents.path(uri)
        file = await self._examine(uri, text)
        if self._state.get(uri) is None:
            document = Document(uri, path, untrusted=file.settings.untrusted)
            self._state.put(document.with_text(file.source))
        if (fault := file.source.syntax_error) is not None:
            raise UserError(f"{path}:{fault.line}: {fault.message}")
        return file

    async def update(self, uri: str, disk: bool = False) -> tuple[FileRequest | None, bool]:
        """Examine an open document and write its kernels to the state store.

        Returns the file to profile, None where there is none: no kernel, or text that does not parse or (with
        ``disk``) is not text on disk; and whether the state store was changed, which it is not for a text that was
        edited meanwhile.
        """
        version, text = self._documents.version(uri), self._documents.opened(uri)
        if text is None:
            return None, False
        file = await self._examine(uri, text)
        source = file.source
        if disk and (finding := await self._unreadable(uri, text)):
            source = replace(source, text_findings=(*source.text_findings, finding))
        changed = self._show(uri, version, source)
        if not source.kernels or any(f.code in ("syntax-error", "not-text") for f in source.text_findings):
            return None, changed
        return file, changed

    async def find_kernels(self, uri: str) -> bool:
        """Find the kernels of an open document while it is edited; whether the state store was changed."""
        version, text = self._documents.version(uri), self._documents.opened(uri)
        if text is None:
            return False
        source = await self._parser.find_kernels(text) if may_hold_kernels(text) else KernelSource(text)
        await self._settings(uri)  # lenses and hints read the settings known by then
        return self._show(uri, version, source)

    def _show(self, uri: str, version: int | None, source: KernelSource) -> bool:
        """Write what a version of a document holds, unless the editor has another one by now."""
        current = self._documents.is_open(uri) and self._documents.version(uri) == version
        if current:
            versions = self._versions.cached(self._documents.path(uri))
            calls = call_findings(source.version_calls, versions.nki, versions.triton)
            source = replace(source, text_findings=(*source.text_findings, *calls))
            self._state.update(uri, lambda document: document.with_text(source))
        return current

    async def _examine(self, uri: str, text: str) -> FileRequest:
        read_at, path = time.time(), Path(self._documents.path(uri))
        settings = await self._settings(uri)
        await self._versions.read(settings)
        if not may_hold_kernels(text):
            return FileRequest(KernelSource(text, path=path), settings)
        return replace(await self._parser.examine(path, text, settings), read_at=read_at)

    async def _settings(self, uri: str) -> Settings:
        settings = await self._configuration.of(self._documents.path(uri))
        self._state.update(uri, lambda document: replace(document, untrusted=settings.untrusted))
        return settings

    async def _unreadable(self, uri: str, text: str) -> Finding | None:
        try:
            await asyncio.to_thread(read_text, Path(self._documents.path(uri)))
        except UnreadableFileError as error:
            if error.code == "not-text" and may_hold_kernels(text):
                advice = "Save it as UTF-8; until then nothing is profiled."
                return Finding("not-text", error.line, "error", f"The file {error.why}. {advice}")
        return None  # one that was never saved, or is deleted: the editor's text is what counts
