"""The parameters of the call around a cursor, and which of them is being written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from accelopt_lsp.features.operation_hover import details
from accelopt_lsp.language.cursor import EnclosingCall, cursor_at, imported_names, path_of
from accelopt_lsp.language.vocabulary import Function, LanguageVersions, function_at


@dataclass(frozen=True)
class SignatureHelp:
    """A function's signature, its parameters as they stand in it, and the index of the one at the cursor, or None."""

    signature: str
    parameters: tuple[str, ...]
    active: int | None
    about: str


def signature_help(
    text: str, lines: Sequence[str], line: int, column: int, versions: LanguageVersions, markdown: bool
) -> SignatureHelp | None:
    """Return the signature of the innermost call around a 0-based place; None where its function is not known."""
    names = imported_names(text)
    cursor = cursor_at(lines, line, column) if names else None
    if cursor is None or cursor.call is None:
        return None
    path = path_of(cursor.call.function, names)
    function = function_at(path, versions) if path else None
    if function is None:
        return None
    parameters = tuple(argument.text for argument in function.arguments)
    about = "\n\n".join([function.about, *details(function, markdown)])
    return SignatureHelp(function.signature, parameters, _active(function, cursor.call), about)


def _active(function: Function, call: EnclosingCall) -> int | None:
    names = [argument.name for argument in function.arguments]
    if call.keyword:
        return names.index(call.keyword) if call.keyword in names else None
    if call.keywords:
        return None  # nothing follows a keyword by position
    for index, argument in enumerate(function.arguments):
        if argument.text.startswith("*") or (argument.positional and index == call.position):
            return index
    return None
