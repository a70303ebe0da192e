"""The interface of a source of rewrites, as the search calls it."""

from __future__ import annotations

from typing import Protocol

from accelopt_agent.candidate import Candidate
from accelopt_agent.search.node import Node


class ProposerError(Exception):
    """A proposer has nothing to say, with the reason as one line; the run goes on without this answer."""

    def __init__(self, message: str, *, final: bool = False) -> None:
        super().__init__(message)
        self.final = final  # asking again in this run is of no use


class Proposer(Protocol):
    name: str

    async def propose(self, node: Node) -> list[Candidate]:
        """Rewrites of ``node``, most promising first. Raises ProposerError."""
