"""The text of documents: as the editor has it, or as the disk does where the editor has not opened it."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from pathlib import Path

from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from accelopt_agent.syntax.lines import split_lines
from accelopt_lsp.server.convert import Text
from accelopt_profiling.measurement import Finding
from accelopt_profiling.source_text import decode_source, read_regular


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
        """Return the text of a document, open or not.

        Raises:
            OSError: it is not open and cannot be read.
            ValueError: it is no file, or not text.
        """
        if opened := self.opened(uri):
            return opened
        path = file_path(uri)
        if path is None:
            raise ValueError("it is not a file yet. Save it as one first.")
        text, finding = await asyncio.to_thread(read_source, path)
        if finding is not None:
            raise ValueError(f"{path}: {finding.message}")
        return DocumentText(uri, path, text, None)

    def lines(self, uri: str) -> Text:
        """Return the lines of an open document to place things in; only line numbers hold where it is not
        open."""
        document = self.opened(uri)
        return Text(
            split_lines(document.text).texts if document else [], self._server.workspace.position_codec
        )

    def lines_of(self, document: DocumentText) -> Text:
        return Text(split_lines(document.text).texts, self._server.workspace.position_codec)


def read_source(path: str) -> tuple[str, Finding | None]:
    """Return a Python file as text, line ends as they are; with a finding where its bytes are not what it
    declares to be.

    Raises:
        OSError: it cannot be read.
    """
    data = read_regular(Path(path))
    try:
        return decode_source(data)[0], None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = (
            f"The file is not {error.encoding.upper()}: byte 0x{data[error.start]:02x} at offset {error.start}. "
            "Save it as UTF-8; until then nothing is profiled."
        )
        return data.decode("utf-8", "replace"), Finding("not-text", line, "error", message)
    except (SyntaxError, LookupError) as error:  # the first two lines decide the encoding
        line = _undecodable_line(data)
        message = f"The encoding of the file cannot be told: {error}. Save it as UTF-8; until then nothing is profiled."
        return data.decode("utf-8", "replace"), Finding("not-text", line, "error", message)


def _undecodable_line(data: bytes) -> int:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return data.count(b"\n", 0, error.start) + 1
    return 1
