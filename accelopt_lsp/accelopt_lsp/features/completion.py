"""What can be written at a cursor: names of NKI's and Triton's modules, keywords of a call, values of a parameter.

Where a type checker finds a package it completes the names and keywords of it itself; then only values are offered,
which no type says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from accelopt_lsp.language.cursor import EnclosingCall, cursor_at, imported_names, path_of
from accelopt_lsp.language.vocabulary import LanguageVersions, function_at, members, values


@dataclass(frozen=True)
class Completion:
    """A text to write. ``kind`` is what it is, ``about`` one line about it; ``order`` sorts before the text."""

    text: str
    kind: Literal["function", "value", "member", "module", "keyword"]
    about: str = ""
    order: str = "1"
    deprecated: bool = False


def completions(
    text: str, lines: Sequence[str], line: int, column: int, versions: LanguageVersions
) -> list[Completion]:
    """Return what can be written at a 0-based place of a text, by the names that it imports; values first."""
    names = imported_names(text)
    cursor = cursor_at(lines, line, column) if names else None
    if cursor is None:
        return []
    offers: list[Completion] = []
    if cursor.call is not None:
        offers += _of_call(cursor.call, cursor.typed, names, versions)
    owner = path_of(cursor.typed.rpartition(".")[0], names)
    if owner and owner.partition(".")[0] not in versions.typed:
        offers += (
            Completion(m.name, m.kind, m.about, deprecated=m.deprecated) for m in members(owner, versions)
        )
    return list({c.text: c for c in reversed(offers)}.values())[::-1]


def _of_call(
    call: EnclosingCall, typed: str, names: Mapping[str, str], versions: LanguageVersions
) -> Iterator[Completion]:
    """Yield the values of the argument at the cursor, or the keywords that are left."""
    path = path_of(call.function, names)
    function = function_at(path, versions) if path and not call.begun else None
    if function is None:
        return
    positional = [a.name for a in function.arguments if a.positional]
    parameter = call.keyword or (positional[call.position] if call.position < len(positional) else "")
    owner = typed.rpartition(".")[0]
    for value in values(path, parameter, lambda dotted: _spelled(dotted, names)):
        # the editor replaces the part after the last dot
        if not owner or value.startswith(f"{owner}."):
            label = value[len(owner) + 1 :] if owner else value
            yield Completion(label, "value", f"{parameter} of {function.name}", order="0")
    if call.keyword or owner or path.partition(".")[0] in versions.typed:
        return
    present = {*call.keywords, *positional[: call.position]}
    for argument in function.arguments:
        if argument.name not in present and not argument.text.startswith("*"):
            yield Completion(f"{argument.name}=", "keyword", argument.text)


def _spelled(dotted: str, names: Mapping[str, str]) -> str:
    """Write a dotted path by the shortest name that the file's imports give it; the path itself without one."""
    spellings = [
        name + dotted[len(path) :] for name, path in names.items() if f"{dotted}.".startswith(f"{path}.")
    ]
    return min(spellings, key=len, default=dotted)
