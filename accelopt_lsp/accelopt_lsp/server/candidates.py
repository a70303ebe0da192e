"""Documents that do not exist on disk: a file with a suggestion applied, for the right side of a diff.

``accelopt-candidate:/path/of/file.py?id=ID`` is the file as it is now with the suggestion in it; where the kernel has
changed meanwhile it is the whole file as the gate saw it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote, urlsplit

from lsprotocol import types

from accelopt_agent.suggestions.apply import ApplyRefusal, apply_to_text
from accelopt_lsp.errors import UserError
from accelopt_lsp.server.commands import Arguments

if TYPE_CHECKING:
    from accelopt_lsp.server.server import AccelOptServer

SCHEME = "accelopt-candidate"

#: The custom request with the same answer, for clients without ``workspace/textDocumentContent``.
METHOD = "accelopt/candidate"

#: So many candidates are kept fresh in the editor, the ones asked for last.
KEPT = 8


def suggestion_id(uri: str) -> str | None:
    """The id in a candidate's address; editors send the query percent-encoded (``?id%3D7``) or not."""
    parts = urlsplit(uri)
    if parts.scheme != SCHEME:
        return None
    return parse_qs(unquote(parts.query)).get("id", [None])[0]


class CandidateTexts:
    """The texts of candidates, and who asked for them: what the editor shows is told when the file is edited."""

    def __init__(self, server: AccelOptServer) -> None:
        self._server = server
        self._shown: OrderedDict[str, str] = OrderedDict()

    async def text(self, uri: str) -> str:
        """The text behind a candidate's address.

        Raises:
            UserError: the address names no suggestion.
        """
        named = suggestion_id(uri)
        if named is None:
            raise UserError(f"{uri} names no suggestion; it should read {SCHEME}:/FILE?id=ID.")
        suggestion, document_uri = await self._server.decisions.find(Arguments(id=named))
        self._shown[uri] = document_uri
        self._shown.move_to_end(uri)
        while len(self._shown) > KEPT:
            self._shown.popitem(last=False)
        try:
            document = await self._server.documents.text(document_uri)
        except (OSError, ValueError):
            return suggestion.text
        edits = await self._server.reader.edits_for(document.text, suggestion)
        return suggestion.text if isinstance(edits, ApplyRefusal) else apply_to_text(document.text, edits)

    def file_edited(self, document_uri: str) -> None:
        """Have the editor fetch the candidates for a file again that it was given before."""
        server = self._server
        if not server.client.has("workspace", "text_document_content"):
            return
        for uri, of in self._shown.items():
            if of == document_uri:
                refresh = types.TextDocumentContentRefreshParams(uri)
                server.background(
                    server.answer(server.workspace_text_document_content_refresh_async(refresh))
                )
