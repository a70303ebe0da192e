"""The default strategy: memory first, then rules best-first to depth, then the model where they stall."""

from __future__ import annotations

from collections.abc import Sequence

from accelopt_agent.comparing import clearly_faster
from accelopt_agent.node import Node
from accelopt_agent.strategy import Expand, Judge, Step


class Hybrid:
    """``proposers`` are asked in their order: one is asked about the best nodes that gained something until
    ``patience`` answers in a row have not made the best node faster, then the next. Those in ``once`` are asked
    about the original only.

    A node goes through the gate when it is clearly faster than the best proved one, so that a suggestion appears
    early; what is left then goes through it at the end if it is faster at all than the best proved one.
    """

    def __init__(
        self,
        root: Node,
        proposers: Sequence[str],
        *,
        target: str,
        depth: int = 6,
        patience: int = 2,
        once: frozenset[str] = frozenset({"memory"}),
    ) -> None:
        self.root, self.target, self.depth, self.patience, self.once = root, target, depth, patience, once
        self._proposers = list(proposers)
        self._nodes = [root]
        self._stalled = 0
        self._fastest_at_last_ask = root

    def observe(self, node: Node) -> None:
        if node not in self._nodes:
            self._nodes.append(node)

    def give_up(self, proposer: str) -> None:
        if proposer in self._proposers:
            self._proposers.remove(proposer)
            self._stalled = 0

    def best(self) -> Node:
        proved = [n for n in self._nodes if n.proof == "accepted"]
        return min([self.root, *proved], key=lambda n: n.us)

    def choose(self) -> Step | None:
        waiting = sorted((n for n in self._nodes if self._may_be_judged(n)), key=lambda n: n.us)
        best = self.best()
        for node in waiting:
            if clearly_faster(best.measurement.latency, node.measurement.latency, self.target):
                return Judge(node)
        while self._proposers:
            if (step := self._expansion(self._proposers[0])) is not None:
                return step
            del self._proposers[0]
            self._stalled = 0
        return Judge(waiting[0]) if waiting and waiting[0].faster_than(best) else None

    def _may_be_judged(self, node: Node) -> bool:
        return node.proof is None and node.clearly_faster and node.sound

    def _expansion(self, proposer: str) -> Expand | None:
        open_nodes = [n for n in self._nodes if n.may_be_built_upon and n.gained and n.depth < self.depth]
        fastest = min(open_nodes, key=lambda n: n.us, default=self.root)
        if any(proposer in n.asked for n in self._nodes):
            self._stalled = 0 if fastest.faster_than(self._fastest_at_last_ask) else self._stalled + 1
        if self._stalled >= self.patience:
            return None
        self._fastest_at_last_ask = fastest
        unasked = [n for n in open_nodes if proposer not in n.asked]
        if proposer in self.once:
            unasked = [n for n in unasked if n is self.root]
        return Expand(min(unasked, key=lambda n: (n.us, n.depth)), proposer) if unasked else None
