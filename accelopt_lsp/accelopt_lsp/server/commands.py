"""Read the arguments of the server commands: one object, or a bare document URI."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from accelopt_lsp.errors import UserError


@dataclass(frozen=True)
class Arguments:
    """What a command was called with. ``apply`` asks the server to make the edit itself; ``ask`` to ask first.

    ``line`` is 1-based; it chooses a kernel where no name is given. ``instructions`` are a sentence from the person
    to the model that proposes rewrites, ``query`` are words to look for, ``test`` is a test's path in the project.
    """

    uri: str | None = None
    kernel: str | None = None
    line: int | None = None
    id: str | None = None
    job: str | None = None
    apply: bool = False
    ask: bool = False
    instructions: str = ""
    query: str = ""
    test: str | None = None

    @classmethod
    def of(cls, command: str, given: Sequence[Any]) -> Arguments:
        """Read the arguments of ``workspace/executeCommand``.

        Raises:
            UserError: they are of no form that the command takes.
        """
        first = given[0] if given else {}
        if isinstance(first, str):
            if "://" not in first and not first.startswith(("file:", "untitled:")):
                return cls(job=first) if command in ("cancel", "pause", "resume") else cls(id=first)
            line = given[1] if len(given) > 1 else None
            return cls(uri=first, line=line if _is(line, int) else None)
        if not isinstance(first, dict):
            raise UserError(f"accelopt.server.{command} takes one object or a document URI, not {first!r}.")
        wrong = [
            f"`{name}` must be {kind.__name__}"
            for name, kind in _FIELDS.items()
            if first.get(name) is not None and not _is(first[name], kind)
        ]
        if wrong:
            raise UserError(f"accelopt.server.{command}: {', '.join(wrong)}.")
        return cls(**{name: first[name] for name in _FIELDS if first.get(name) is not None})

    def document(self, command: str) -> str:
        """Return the URI, which the command cannot do without. Raises UserError."""
        if self.uri is None:
            raise UserError(f'accelopt.server.{command} needs a document: {{"uri": "file:///..."}}.')
        return self.uri


def _is(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not (kind is int and isinstance(value, bool))


_FIELDS: dict[str, type] = {
    "uri": str, "kernel": str, "line": int, "id": str, "job": str, "apply": bool, "ask": bool,
    "instructions": str, "query": str, "test": str,
}  # fmt: skip
