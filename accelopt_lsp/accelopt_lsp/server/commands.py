"""Read the arguments of the server commands: one object, or a bare document URI, and say what answers them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from accelopt_lsp.actions import Action
from accelopt_lsp.errors import UserError

if TYPE_CHECKING:
    from accelopt_lsp.state.jobs import BackgroundJob


@dataclass(frozen=True)
class Arguments:
    """What an action was called with. ``apply`` asks the server to make the edit itself; ``ask`` to ask first.

    ``line`` is 1-based; it chooses a kernel where no name is given. ``instructions`` are a sentence from the person
    to the model that proposes rewrites, ``query`` are words to look for, ``test`` is a test's path in the project, and
    ``scope`` says where something holds. ``against`` names what to compare with, ``text`` is a whole file in its place.
    ``timeline`` asks for the schedule of each engine; ``shown`` is false once nobody looks at the answer any more.
    ``without`` is the step of a version to leave out, from 1.
    """

    action: Action
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
    scope: str = "line"
    against: str = ""
    text: str = ""
    timeline: bool = False
    shown: bool = True
    without: int | None = None

    @classmethod
    def of(cls, action: Action, values: Sequence[Any]) -> Arguments:
        """Read the arguments of ``workspace/executeCommand``.

        Raises:
            UserError: they are of no form that the action takes.
        """
        first = values[0] if values else {}
        if isinstance(first, str):
            if "://" not in first and not first.startswith(("file:", "untitled:")):
                return cls(action, job=first) if action.arguments[0] == "job?" else cls(action, id=first)
            line = values[1] if len(values) > 1 else None
            return cls(action, uri=first, line=line if _is(line, int) else None)
        if not isinstance(first, dict):
            raise UserError(f"{action.command} takes one object or a document URI, not {first!r}.")
        wrong = [
            f"`{name}` must be {kind.__name__}"
            for name, kind in _FIELDS.items()
            if first.get(name) is not None and not _is(first[name], kind)
        ]
        if wrong:
            raise UserError(f"{action.command}: {', '.join(wrong)}.")
        return cls(action, **{name: first[name] for name in _FIELDS if first.get(name) is not None})

    def document(self) -> str:
        """Return the URI, which the action cannot do without. Raises UserError."""
        if self.uri is None:
            raise UserError(f'{self.action.command} needs a document: {{"uri": "file:///..."}}.')
        return self.uri


#: Does an action: returns the job that it started, or the answer to the command, perhaps later. Raises UserError.
Handler = Callable[[Arguments], "BackgroundJob | dict[str, Any] | Awaitable[dict[str, Any]]"]


class Feature(Protocol):
    """A part of the server that does some of the actions of ``actions.json``."""

    def actions(self) -> Mapping[str, Handler]:
        """Return the handler of each action that it does, by name."""


def _is(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not (kind is int and isinstance(value, bool))


_FIELDS: dict[str, type] = {
    "uri": str, "kernel": str, "line": int, "id": str, "job": str, "apply": bool, "ask": bool,
    "instructions": str, "query": str, "test": str, "scope": str, "against": str, "text": str, "timeline": bool,
    "shown": bool, "without": int,
}  # fmt: skip
