"""Documents that do not exist on disk: a file with a suggestion applied, for the right side of a diff.

``accelopt-candidate:/path/of/file.py?id=ID`` is the file as it is now with the suggestion in it; where the kernel has
changed meanwhile it is the whole file as the gate saw it.
"""

from __future__ import annotations

from collections import OrderedDict
from urllib.parse import parse_qs, unquote, urlsplit

from accelopt_agent.suggestions.text_edit import ApplyRefusal, apply_to_text
from accelopt_lsp.errors import UserError
from accelopt_lsp.server.session import Session
from accelopt_lsp.server.suggestions import SuggestionActions

SCHEME = "accelopt-candidate"

#: The custom request with the same answer, for clients without ``workspace/textDocumentContent``.
METHOD = "accelopt/candidate"

#: So many candidates are kept fresh in the editor, the ones asked for last.
KEPT = 8


def suggestion_id(uri: str) -> str | None:
    """Return the id in a candidate's address; editors send the query percent-encoded (``?id%3D7``) or not."""
    parts = urlsplit(uri)
    if parts.scheme != SCHEME:
        return None
    return parse_qs(unquote(parts.query)).get("id", [None])[0]


class CandidateTexts:
    """The texts of candidates, and who asked for them: what the editor shows is told when the file is edited."""

    def __init__(self, session: Session, suggestions: SuggestionActions) -> None:
        self._editor, self._tasks, self._documents = session.editor, session.tasks, session.documents
        self._parser, self._suggestions = session.parser, suggestions
        self._shown: OrderedDict[str, str] = OrderedDict()
        session.documents.read.listen(self._file_read)

    async def text(self, uri: str) -> str:
        """Return the text behind a candidate's address.

        Raises:
            UserError: the address names no suggestion.
        """
        identifier = suggestion_id(uri)
        if identifier is None:
            raise UserError(f"{uri} names no suggestion; it should read {SCHEME}:/FILE?id=ID.")
        suggestion, document_uri = await self._suggestions.find(identifier)
        self._shown[uri] = document_uri
        self._shown.move_to_end(uri)
        while len(self._shown) > KEPT:
            self._shown.popitem(last=False)
        try:
            text = await self._documents.text(document_uri)
        except UserError:
            return suggestion.text
        edits = await self._parser.edits_for(text, suggestion)
        return suggestion.text if isinstance(edits, ApplyRefusal) else apply_to_text(text, edits)

    def _file_read(self, document_uri: str) -> None:
        """Have the editor fetch the candidates for a file again that it was given before."""
        if not self._editor.shows_own_documents:
            return
        for uri, of in self._shown.items():
            if of == document_uri:
                self._tasks.start(self._editor.renew_document(uri))
