"""Repeated sampling: every rewrite starts from the original. A baseline for comparison."""

from __future__ import annotations

from accelopt_agent.search.strategies.frontier import Frontier
from accelopt_agent.search.strategies.strategy import PAID, AskProposer


class Sampling(Frontier):
    """Asks about the original again and again, until the budget ends it."""

    def next_ask(self) -> AskProposer | None:
        if self.ideas:
            return None
        for name in self.sources:
            if self.usable(name) and (name in PAID or name not in self.root.asked):
                return AskProposer(self.root, name)
        return None
