"""Proposes what the rule catalogue makes of a version."""

from __future__ import annotations

import asyncio

from accelopt_agent.candidate import Candidate
from accelopt_agent.search.node import Node


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
