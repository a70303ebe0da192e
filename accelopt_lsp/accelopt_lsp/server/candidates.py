"""Documents that do not exist on disk: a file with a suggestion applied, for the right side of a diff.

``accelopt-candidate:/path/of/file.py?id=ID`` is the file as it is now with the suggestion in it; where the kernel has
changed meanwhile it is the whole file as the gate saw it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote, unquote, urlsplit

from accelopt_agent.apply import Refusal, apply_to_text
from accelopt_agent.suggestion import Suggestion
from accelopt_lsp.server.backend import BackendProblem
from accelopt_lsp.server.commands import Arguments

if TYPE_CHECKING:
    from accelopt_lsp.server.server import AccelOptServer

SCHEME = "accelopt-candidate"

#: The custom request with the same answer, for clients without ``workspace/textDocumentContent``.
METHOD = "accelopt/candidate"


def candidate_uri(suggestion: Suggestion) -> str:
    """The address of the text of a suggestion."""
    path = suggestion.file if suggestion.file.startswith("/") else f"/{suggestion.file}"
    return f"{SCHEME}:{quote(path)}?id={quote(suggestion.id)}"


def suggestion_id(uri: str) -> str | None:
    """The id in a candidate's address; editors send the query percent-encoded (``?id%3D7``) or not."""
    parts = urlsplit(uri)
    if parts.scheme != SCHEME:
        return None
    return parse_qs(unquote(parts.query)).get("id", [None])[0]


async def candidate_text(server: AccelOptServer, uri: str) -> str:
    """The text behind a candidate's address.

    Raises:
        BackendProblem: the address names no suggestion.
    """
    named = suggestion_id(uri)
    if named is None:
        raise BackendProblem(f"{uri} names no suggestion; it should read {SCHEME}:/FILE?id=ID.")
    suggestion, document_uri = await server.decisions.find(Arguments(id=named))
    try:
        document = await server.documents.text(document_uri)
    except (OSError, ValueError):
        return suggestion.text
    edits = await server.reader.edits_for(document.text, suggestion)
    return suggestion.text if isinstance(edits, Refusal) else apply_to_text(document.text, edits)
