"""Strategies that others are compared with: one chain of answers, and repeated sampling."""

from __future__ import annotations

from accelopt_agent.search.node import Node
from accelopt_agent.search.strategies.frontier import Frontier
from accelopt_agent.search.strategies.strategy import PAID, AskProposer


class Reflexion(Frontier):
    """Asks about the last version, to repair it when it failed.

    After a version that was refused or slower, or ``repairs`` failed repairs, the chain goes on from the fastest one.
    """

    repairs = 3

    def next_ask(self) -> AskProposer | None:
        if self.ideas or self.begun:
            return None
        node = self._last()
        if node.sound and not node.may_be_built_upon:
            return None
        for name in self.sources:
            if self.usable(name) and (name in PAID or (node.sound and name not in node.asked)):
                return AskProposer(node, name)
        return None

    def wants_check(self) -> Node | None:
        node = self._last()
        return node if not self.begun and node.sound and not node.may_be_built_upon else None

    def _last(self) -> Node:
        last, failures = self.nodes[-1], 0
        node: Node | None = last
        while node is not None and node.failure is not None:
            node, failures = node.parent, failures + 1
        fruitless = max(last.asked.values(), default=0)
        goes_on = failures <= self.repairs and fruitless <= self.repairs and last.depth < self.depth
        if last.failure is not None and goes_on:
            return last
        sound = [n for n in self.nodes if n.sound and n.depth < self.depth]
        if last in sound and last.gained:
            return last
        return min(sound, key=lambda n: n.us)


class Sampling(Frontier):
    """Asks about the original again and again, until the budget ends it."""

    def next_ask(self) -> AskProposer | None:
        if self.ideas:
            return None
        for name in self.sources:
            if self.usable(name) and (name in PAID or name not in self.root.asked):
                return AskProposer(self.root, name)
        return None


REFLEXION, SAMPLING = (f"{__name__}:{kind.__name__}" for kind in (Reflexion, Sampling))
