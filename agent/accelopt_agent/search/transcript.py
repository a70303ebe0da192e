"""What a paid proposer was told so far for one answer, kept as it comes: a kill between two calls costs neither."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from accelopt_agent.candidate import Candidate
from accelopt_agent.search.node import Node


@dataclass(frozen=True)
class Turn:
    """``role`` said ``text`` about the version whose text has the hash ``about``."""

    role: str
    about: str
    text: str


class Said:
    """The turns of one answer: those of an interrupted run are recalled in their order, new ones are handed to
    ``keep`` before anything is made of them."""

    def __init__(
        self, turns: Sequence[Turn] = (), keep: Callable[[Turn], Awaitable[None]] | None = None
    ) -> None:
        self._before, self._keep = list(turns), keep

    def recalled(self, role: str, node: Node) -> str | None:
        """What ``role`` said next about ``node`` in the interrupted run; None where it is to be asked. When somebody
        else spoke then, or about another text, the rest is of no use."""
        if not self._before:
            return None
        turn = self._before.pop(0)
        if (turn.role, turn.about) == (role, _hash(node)):
            return turn.text
        self._before.clear()
        return None

    async def add(self, role: str, node: Node, text: str) -> None:
        if self._keep is not None:
            await self._keep(Turn(role, _hash(node), text))


@runtime_checkable
class Talks(Protocol):
    """A proposer whose one answer takes several paid calls."""

    async def talked_over(self, node: Node, said: Said) -> list[Candidate]:
        """As ``propose``, with what was ``said`` already."""


def _hash(node: Node) -> str:
    return hashlib.sha256(node.text.encode()).hexdigest()[:16]
