"""The text of documents: as the editor has it, or as the disk does where the editor has not opened it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from accelopt_agent.syntax.lines import split_lines
from accelopt_lsp.errors import UserError
from accelopt_lsp.resources import read_source
from accelopt_lsp.server.convert import Text
from accelopt_lsp.state.signal import Signal


def text_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def file_path(uri: str) -> str | None:
    """Return the path of a ``file:`` URI; None for documents that are no file (``untitled:``, diff views)."""
    return to_fs_path(uri) if uri.startswith("file:") else None


class TextPlace(NamedTuple):
    """A 0-based line and column, in characters, of a text that is split into lines without their ends."""

    text: str
    lines: Sequence[str]
    line: int
    column: int


class Documents:
    """The editor's documents.

    ``shown`` tells that what is stored of one is shown, ``read`` that its kernels were found anew, ``settled`` that
    typing in it has paused, ``saved`` that its saved text was read, and ``closed`` that it was closed.
    """

    def __init__(self, server: LanguageServer) -> None:
        self._server = server
        self.shown: Signal[[str]] = Signal()
        self.read: Signal[[str]] = Signal()
        self.settled: Signal[[str]] = Signal()
        self.saved: Signal[[str]] = Signal()
        self.closed: Signal[[str]] = Signal()

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders of the workspace, as they are now; none where the editor names none."""
        workspace = self._server.workspace
        paths = [file_path(uri) for uri in workspace.folders] or [workspace.root_path]
        return tuple(Path(path) for path in paths if path)

    def is_open(self, uri: str) -> bool:
        return uri in self._server.workspace.text_documents

    def opened(self, uri: str) -> str | None:
        """Return the text of a file that the editor has open; None for others."""
        return self._server.workspace.get_text_document(uri).source if self._is_open_file(uri) else None

    def version(self, uri: str) -> int | None:
        """Return the editor's version of a file that it has open; None for others."""
        return self._server.workspace.get_text_document(uri).version if self._is_open_file(uri) else None

    async def text(self, uri: str) -> str:
        """Return the text of a document, open or not. Raises UserError: it cannot be read."""
        if (text := self.opened(uri)) is not None:
            return text
        return await asyncio.to_thread(read_source, Path(self.path(uri)))

    def path(self, uri: str) -> str:
        """Return the path of a document. Raises UserError: it is no file."""
        if (path := file_path(uri)) is None:
            raise UserError(f"{uri} cannot be read: it is not a file yet. Save it as one first.")
        return path

    def lines(self, text: str | None) -> Text:
        """Return the lines of a text to place things in; without one only line numbers hold."""
        return Text(split_lines(text).texts if text else [], self._server.workspace.position_codec)

    def place(self, uri: str, position: types.Position) -> TextPlace | None:
        """Return a position in an open file, in characters; None for other documents."""
        if (text := self.opened(uri)) is None:
            return None
        lines = split_lines(text).texts
        codec = self._server.workspace.position_codec
        at = codec.position_from_client_units(lines, position)
        return TextPlace(text, lines, at.line, at.character)

    def _is_open_file(self, uri: str) -> bool:
        return file_path(uri) is not None and self.is_open(uri)
