"""The text of documents: as the editor has it, or as the disk does where the editor has not opened it."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from pathlib import Path

from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from accelopt_agent.syntax.lines import split_lines
from accelopt_lsp.errors import UserError
from accelopt_lsp.resources import read_source
from accelopt_lsp.server.convert import Text


@dataclass(frozen=True)
class DocumentText:
    """A document's text at one moment; ``version`` is the editor's, None for a text read from disk."""

    uri: str
    path: str
    text: str
    version: int | None

    @property
    def hash(self) -> str:
        return text_hash(self.text)


def text_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def file_path(uri: str) -> str | None:
    """Return the path of a ``file:`` URI; None for documents that are no file (``untitled:``, diff views)."""
    return to_fs_path(uri) if uri.startswith("file:") else None


class Documents:
    def __init__(self, server: LanguageServer) -> None:
        self._server = server

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders of the workspace, as they are now; none where the editor names none."""
        workspace = self._server.workspace
        paths = [file_path(uri) for uri in workspace.folders] or [workspace.root_path]
        return tuple(Path(path) for path in paths if path)

    def is_open(self, uri: str) -> bool:
        return uri in self._server.workspace.text_documents

    def opened(self, uri: str) -> DocumentText | None:
        """Return the text of a document that the editor has open; None for others."""
        path = file_path(uri)
        if path is None or not self.is_open(uri):
            return None
        document = self._server.workspace.get_text_document(uri)
        return DocumentText(uri, path, document.source, document.version)

    async def text(self, uri: str) -> DocumentText:
        """Return the text of a document, open or not. Raises UserError: it cannot be read."""
        if opened := self.opened(uri):
            return opened
        path = file_path(uri)
        if path is None:
            raise UserError(f"{uri} cannot be read: it is not a file yet. Save it as one first.")
        return DocumentText(uri, path, await asyncio.to_thread(read_source, Path(path)), None)

    def lines(self, uri: str) -> Text:
        """Return the lines of an open document to place things in; only line numbers hold where it is not
        open."""
        document = self.opened(uri)
        return Text(
            split_lines(document.text).texts if document else [], self._server.workspace.position_codec
        )

    def lines_of(self, document: DocumentText) -> Text:
        return Text(split_lines(document.text).texts, self._server.workspace.position_codec)
