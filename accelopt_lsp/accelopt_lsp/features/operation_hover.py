"""What a function of NKI or Triton does, takes and is limited by, as Markdown or as plain text."""

from __future__ import annotations

from collections.abc import Sequence

from accelopt_lsp.language.cursor import imported_names, name_at, path_of
from accelopt_lsp.language.vocabulary import Function, LanguageVersions, function_at


def operation_hover(
    text: str, lines: Sequence[str], line: int, column: int, versions: LanguageVersions, markdown: bool
) -> str | None:
    """Return what is known about the function under a 0-based place; None where there is none."""
    names = imported_names(text)
    name = name_at(lines, line, column) if names else ""
    path = path_of(name, names) if name else ""
    function = function_at(path, versions) if path else None
    if function is None:
        return None
    signature = f"```python\n{function.signature}\n```" if markdown else function.signature
    return "\n\n".join([signature, function.about, *details(function, markdown)])


def details(function: Function, markdown: bool) -> list[str]:
    """Return the parts below a function's signature: facts, an example, the page."""
    parts = ["\n".join(f"- {name}: {text}" for name, text in function.facts.items())]
    if function.example:
        parts.append(
            f"```python\n{function.example}\n```" if markdown else f"For example: {function.example}"
        )
    if function.page:
        parts.append(f"[Documentation]({function.page})" if markdown else function.page)
    return [part for part in parts if part]
