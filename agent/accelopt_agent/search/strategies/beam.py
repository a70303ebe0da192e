"""AccelOpt's beam search; by default repaired, so that the incumbents compete for the beam."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from accelopt_agent.search.node import Node
from accelopt_agent.search.strategies.frontier import Frontier
from accelopt_agent.search.strategies.strategy import ONCE_PER_SEARCH, PAID, AskProposer


class Beam(Frontier):
    """Every round asks about each of the ``width`` fastest versions ``breadth`` times, tries what comes back, and
    goes on with the fastest of all versions so far, for ``rounds`` rounds. The defaults are AccelOpt's for NKI
    (B, N, T; its K is the number of samples the proposer takes per plan). Proposers that always answer the same are
    asked once about each version.

    Without ``incumbents`` a round goes on with the versions of the round before alone, of each plan the fastest sample,
    as AccelOpt does: the beam may then get slower. Where they are too few, the versions that they were made from fill
    it.
    """

    def __init__(
        self,
        root: Node,
        sources: Sequence[str],
        *,
        target: str,
        depth: int = 16,
        random: Random | None = None,
        width: int = 6,
        breadth: int = 12,
        rounds: int = 16,
        incumbents: bool = True,
    ) -> None:
        super().__init__(root, sources, target=target, depth=depth, random=random)
        self.width, self.breadth, self.rounds = width, breadth, rounds
        self.incumbents = incumbents
        self._round = self._before = 0
        self._beam: list[Node] = []
        self._queue: list[AskProposer] = []

    def next_ask(self) -> AskProposer | None:
        if not self._queue and self._round_is_over() and self.wants_check() is None:
            self._begin_round()
        while self._queue:
            ask = self._queue.pop(0)
            if self.usable(ask.proposer):
                return ask
        return None

    def wants_check(self) -> Node | None:
        if not self._round_is_over():
            return None
        return next((n for n in self._fastest() if not n.may_be_built_upon), None)

    def _round_is_over(self) -> bool:
        return not (self._queue or self.begun or self.ideas)

    def _fastest(self) -> list[Node]:
        versions = sorted((n for n in self.nodes if n.sound), key=lambda n: (n.us, n.depth))
        if self.incumbents or not self._round:
            return versions[: self.width]
        newest = set(self.nodes[self._before :])
        of_plans: dict[tuple[Node | None, tuple[str, str] | None], Node] = {}
        for node in versions:
            if node in newest:
                of_plans.setdefault((node.parent, node.step), node)
        filling = [n for n in self._beam if n.sound and n not in newest]
        return [*of_plans.values(), *filling][: self.width]

    def _begin_round(self) -> None:
        if self._round == self.rounds:
            return
        beam = self._fastest()
        self._round += 1
        self._beam, self._before = beam, len(self.nodes)
        for node in beam:
            if node.depth >= self.depth:
                continue
            for name in self.sources:
                if name in PAID:
                    self._queue += [AskProposer(node, name) for _ in range(self.breadth)]
                elif name not in node.asked and (name not in ONCE_PER_SEARCH or node is self.root):
                    self._queue.append(AskProposer(node, name))
