"""The interface of a source of rewrites, as the search calls it."""

from __future__ import annotations

from typing import Protocol

from accelopt_agent.candidate import Candidate
from accelopt_agent.search.node import Node


class ProposerError(Exception):
    """A proposer gave no answer; the message says why in one line. The run goes on without it."""

    def __init__(self, message: str, *, final: bool = False) -> None:
        super().__init__(message)
        self.final = final  # asking again in this run is of no use


class Proposer(Protocol):
    name: str

    async def propose(self, node: Node) -> list[Candidate]:
        """Return rewrites of ``node``, most promising first. Raises ProposerError."""
