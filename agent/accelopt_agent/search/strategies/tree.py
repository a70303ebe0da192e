"""STARK's tree search: greedy with some chance of a leaf, few children of the root, dead branches closed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

from accelopt_agent.search.node import Node
from accelopt_agent.search.strategies.frontier import Frontier
from accelopt_agent.search.strategies.strategy import ONCE_PER_SEARCH, PAID, AskProposer, ValidateNode

#: How much worse than the version it was made from a failed one counts: one that ran to its end and was nearly
#: right, and any other.
NEAR_MISS, MISS = 1.02, 1.3


class Tree(Frontier):
    """Asks about the version with the best score, or with probability ``epsilon`` about a random leaf. The root is
    asked about at most ``root_children`` times while anything else is open; a version with more than ``dead_after``
    children that all failed is closed. The defaults are those reported for STARK.

    A failed version is open too, for repair. Its score is that of the version it was made from, a little worse: a near
    miss earns credit. Without ``near_misses`` it is infinite, as in STARK, and only the lot of a leaf falls on it.
    """

    def __init__(
        self,
        root: Node,
        sources: Sequence[str],
        *,
        target: str,
        depth: int = 16,
        random: Random | None = None,
        epsilon: float = 0.35,
        root_children: int = 5,
        dead_after: int = 3,
        near_misses: bool = True,
    ) -> None:
        super().__init__(root, sources, target=target, depth=depth, random=random)
        self.epsilon, self.root_children, self.dead_after = epsilon, root_children, dead_after
        self.near_misses = near_misses
        self._unchecked: Node | None = None

    def next_ask(self) -> AskProposer | None:
        if self.ideas or (self._unchecked is not None and self._unchecked.verdict is None):
            return None
        names = [n for n in self.sources if self.usable(n)]
        for name in [n for n in names if n not in PAID]:
            nodes = [n for n in self.nodes if name not in n.asked and n.sound and n.depth < self.depth]
            nodes = [n for n in nodes if n is self.root or name not in ONCE_PER_SEARCH]
            if nodes:
                return self._ask(min(nodes, key=self.score), name)
        paid = next((n for n in names if n in PAID), None)
        if paid is None:
            return None
        open_nodes = [n for n in self.nodes if self._open(n)]
        if len(open_nodes) > 1 and self.root.asked.get(paid, 0) >= self.root_children:
            open_nodes.remove(self.root)
        leaves = [n for n in open_nodes if not n.children and not n.asked.get(paid)]
        if leaves and self.random.random() < self.epsilon:
            return self._ask(self.random.choice(leaves), paid)
        return self._ask(min(open_nodes, key=lambda n: (self.score(n), n.depth)), paid)

    def score(self, node: Node) -> float:
        """Return the time in microseconds, or for a failed version what it earns; less is better."""
        if node.sound or node.parent is None:
            return node.us
        if not self.near_misses:
            return math.inf
        near = node.failure is not None and node.failure.near
        return self.score(node.parent) * (NEAR_MISS if near else MISS)

    def wants_check(self) -> Node | None:
        node = self._unchecked
        checking = any(isinstance(step, ValidateNode) and step.node is node for step in self.begun)
        return node if node is not None and node.verdict is None and not checking else None

    def _ask(self, node: Node, name: str) -> AskProposer | None:
        if node.sound and not node.may_be_built_upon:
            self._unchecked = node  # a model's rewrite is checked before it is built upon
            return None
        self._unchecked = None
        return AskProposer(node, name)

    def _open(self, node: Node) -> bool:
        if node is self.root:
            return True
        if node.depth >= self.depth:
            return False
        if not node.sound and (node.failure is None or (node.parent and node.parent.failure is not None)):
            return False
        failed = [c for c in node.children if not c.sound]
        fruitless = node.asked.get("model", 0) if not node.children else len(failed)
        return len(failed) < len(node.children) or fruitless <= self.dead_after
