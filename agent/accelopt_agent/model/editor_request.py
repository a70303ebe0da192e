"""The question to one of the editor's own models and the editor's reply: what server and backend exchange."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class EditorModelRequest:
    """A query that the editor should send to ``model``, named VENDOR/FAMILY or by the editor's id of it."""

    model: str
    system: str
    user: str
    answer_tokens: int


@dataclass(frozen=True)
class EditorModelReply:
    """The editor's answer: ``text``, with its tokens as the editor counted them (None where it cannot), or a ``fault``,
    one of ``FAULTS``, with the editor's ``message``."""

    text: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    fault: str = ""
    message: str = ""


Complete = Callable[[EditorModelRequest], Awaitable[EditorModelReply]]

#: The faults of an editor: the message about the model, and whether another query in this run is useless.
FAULTS: dict[str, tuple[str, bool]] = {
    "unsupported": ("is not asked: this editor lends no models", True),
    "not-asked-for": ("is not asked: nobody chose to optimize or to explain", True),
    "no-model": ("is not there", True),
    "no-permission": ("is not asked: the editor was not allowed to lend it", True),
    "blocked": ("refuses to answer, or its quota is used up", True),
    "cancelled": ("is not asked any more: the question was cancelled in the editor", True),
    "failed": ("failed", False),
}


async def no_models(question: EditorModelRequest) -> EditorModelReply:
    """Return the reply where nobody lends models."""
    return EditorModelReply(fault="unsupported")
