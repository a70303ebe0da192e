"""Where rewrites come from."""

from __future__ import annotations

import asyncio
from typing import Protocol

from accelopt_agent.candidate import Candidate
from accelopt_agent.search.node import Node


class ProposerFailed(Exception):
    """A proposer has nothing to say, with the reason as one line; the run goes on without this answer."""

    def __init__(self, message: str, *, final: bool = False) -> None:
        super().__init__(message)
        self.final = final  # asking again in this run is of no use


class Proposer(Protocol):
    name: str

    async def propose(self, node: Node) -> list[Candidate]:
        """Rewrites of ``node``, most promising first. Raises ProposerFailed."""


class RuleProposer:
    """The rule catalogue."""

    name = "rules"

    def __init__(self, target: str) -> None:
        self._target = target

    async def propose(self, node: Node) -> list[Candidate]:
        return await asyncio.to_thread(self._all, node)

    def _all(self, node: Node) -> list[Candidate]:
        from accelopt_agent.rules.catalogue import proposals

        return list(proposals(node.text, node.kernel, node.measurement, self._target))
