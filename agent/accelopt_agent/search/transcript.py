"""Keeps the calls of one paid answer. Completed model calls survive a kill: each is stored before it is used."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from accelopt_agent.candidate import Candidate
from accelopt_agent.search.node import Node


@dataclass(frozen=True)
class TranscriptEntry:
    """``role`` answered ``text`` about the version whose text has the hash ``about``."""

    role: str
    about: str
    text: str


class Transcript:
    """The calls behind one answer: ``entries`` of an interrupted run are replayed in their order, new ones are passed
    to ``store`` before anything is made of them."""

    def __init__(
        self,
        entries: Sequence[TranscriptEntry] = (),
        store: Callable[[TranscriptEntry], Awaitable[None]] | None = None,
    ) -> None:
        self._stored, self._store = list(entries), store

    def replay(self, role: str, node: Node) -> str | None:
        """Return the next stored answer if it is one of ``role`` about ``node``; None where the model must be
        asked. After an entry of another role or text, the remaining entries are dropped."""
        if not self._stored:
            return None
        entry = self._stored.pop(0)
        if (entry.role, entry.about) == (role, _hash(node)):
            return entry.text
        self._stored.clear()
        return None

    async def add(self, role: str, node: Node, text: str) -> None:
        """Store a new answer."""
        if self._store is not None:
            await self._store(TranscriptEntry(role, _hash(node), text))


@runtime_checkable
class TranscriptProposer(Protocol):
    """A proposer whose one answer takes several paid calls."""

    async def propose_with(self, node: Node, transcript: Transcript) -> list[Candidate]:
        """Propose as ``Proposer.propose`` does, without repeating the calls that are in ``transcript``."""


def _hash(node: Node) -> str:
    return hashlib.sha256(node.text.encode()).hexdigest()[:16]
