"""The part that all strategies share: nodes, untried rewrites, running steps, and when to validate a node."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from random import Random

from accelopt_agent.search.node import Node
from accelopt_agent.search.strategies.strategy import (
    PAID,
    AskProposer,
    CandidateMeasured,
    Capacity,
    ProposalsReceived,
    SearchStep,
    StepResult,
    TryCandidate,
    ValidateNode,
)
from accelopt_agent.search.trial import Trial, repeats
from accelopt_agent.speedup import clearly_faster, direction
from accelopt_agent.suggestions.suggestion import EQUAL

#: So many answers of a paid proposer in a row without anything new, and it is asked no more.
MOST_FRUITLESS = 24


class Frontier(ABC):
    """Validates a node when it is clearly faster than the best checked one, so that a suggestion appears early. At the
    end it validates what is left, if it is faster than the best checked one by more than ``EQUAL``. With ``check_last``
    everything waits for the end, when one validation is often enough: for runs whose suggestions nobody waits for."""

    def __init__(
        self,
        root: Node,
        sources: Sequence[str],
        *,
        target: str,
        depth: int = 6,
        random: Random | None = None,
        check_last: bool = False,
    ) -> None:
        self.root, self.sources, self.target, self.depth = root, tuple(sources), target, depth
        self.check_last = check_last
        self.random = random or Random(0)
        self.nodes = [root]
        self.ideas: list[Trial] = []
        self.begun: list[SearchStep] = []
        self.silent: set[str] = set()
        self._fruitless: dict[str, int] = {}

    @abstractmethod
    def next_ask(self) -> AskProposer | None:
        """Choose a proposer and the node to ask it about. None for no query now."""

    def next_idea(self) -> Trial | None:
        """Choose the rewrite to try next, one of ``ideas``. None for none of them."""
        return self.ideas[0] if self.ideas else None

    def choose(self, free: Capacity) -> SearchStep | None:
        step: SearchStep | None = None
        if free.validations and (suspect := self._suspect()) is not None:
            step = ValidateNode(suspect)
        elif free.validations and not self.check_last and (node := self._due_for_check()) is not None:
            step = ValidateNode(node)
        elif free.measurements and (trial := self.next_idea()) is not None:
            self.ideas.remove(trial)
            step = TryCandidate(trial)
        elif free.validations and (candidate := self.wants_check()) is not None:
            step = ValidateNode(candidate)
        elif free.proposals and (ask := self.next_ask()) is not None:
            ask.node.asked[ask.proposer] = ask.node.asked.get(ask.proposer, 0) + 1
            step = ask
        elif free.validations and (candidate := self.wants_check()) is not None:  # the question needs it
            step = ValidateNode(candidate)
        elif not self.begun and (last := self.unchecked()) is not None:
            step = ValidateNode(last)
        if step is not None:
            self.begun.append(step)
        return step

    def observe(self, result: StepResult) -> None:
        self.begun = [step for step in self.begun if not _is_of(step, result)]
        if isinstance(result, ProposalsReceived):
            self.ideas += result.trials
            name = result.ask.proposer
            self._fruitless[name] = 0 if result.trials else self._fruitless.get(name, 0) + 1
            tired = name in PAID and self._fruitless[name] >= MOST_FRUITLESS
            if result.silent or tired:
                self.silent.add(name)
        elif isinstance(result, CandidateMeasured):
            self.nodes.append(result.node)
        elif result.node.verdict == "refused" and result.node.step and repeats(result.node.step):
            step, before = result.node.step, result.node.parent
            remembered = before is not None and before.remembered
            self.ideas = [i for i in self.ideas if i.step != step or i.parent.remembered < remembered]

    def best(self) -> Node:
        right = [n for n in self.nodes if n.verdict == "accepted"]
        return min([self.root, *right], key=lambda n: n.us)

    def unchecked(self) -> Node | None:
        """Return the fastest version that could be offered if the gate accepted it, where it beats the best checked one
        by more than ``EQUAL`` and was not sent there yet; else one that beats all of those in the profiled case."""
        waiting = self._waiting()
        if waiting and waiting[0].us < self.best().us * (1 - EQUAL):
            return waiting[0]
        return next((node for node in waiting if self._beats_as_profiled(node)), None)

    def _beats_as_profiled(self, node: Node) -> bool:
        """Return whether versions are ranked as parts of a larger launch, where this one does not lose, and it is
        clearly faster than all checked ones in the profiled case."""
        if not node.compared_at_scale or node.changes_more:
            return False
        right = [n for n in self.nodes if n.verdict == "accepted" and not n.changes_more]
        fastest = min([self.root, *right], key=lambda n: n.measurement.latency.us or math.inf)
        return direction(*self.best().beside(node), self.target) != "slower" and clearly_faster(
            fastest.measurement.latency, node.measurement.latency, self.target
        )

    def wants_check(self) -> Node | None:
        """Return a node that must be checked before the strategy builds upon it, if any."""
        return None

    def usable(self, name: str) -> bool:
        """Return whether the proposer may still be asked."""
        return name in self.sources and name not in self.silent

    def has_begun(self, kind: type[SearchStep]) -> bool:
        return any(isinstance(step, kind) for step in self.begun)

    def _suspect(self) -> Node | None:
        """Return the version halfway between a right one and one with a wrong result, of those that versions which wait
        for the gate are made from too: one verdict says of all of these whether they can be right."""
        waiting = self._waiting()
        for wrong in self.nodes:
            failure, between = wrong.failure, []
            if wrong.verdict != "refused" or failure is None or not failure.near:
                continue
            if wrong.step is None or not repeats(wrong.step):
                continue
            node = wrong.parent
            while node is not None and node.parent is not None and node.verdict is None:
                between.append(node)
                node = node.parent
            shared = [n for n in between if n.sound and any(n in w.way for w in waiting)]
            if shared:
                suspect = shared[len(shared) // 2]
                at_the_gate = any(isinstance(s, ValidateNode) and s.node in between for s in self.begun)
                return None if at_the_gate else suspect
        return None

    def _due_for_check(self) -> Node | None:
        best = self.best()
        for node in self._waiting():
            if clearly_faster(*best.beside(node), self.target) or self._beats_as_profiled(node):
                return node
        return None

    def _waiting(self) -> list[Node]:
        at_the_gate = [step.node for step in self.begun if isinstance(step, ValidateNode)]
        waiting = [
            n for n in self.nodes
            if n.verdict is None and n.clearly_faster and n.sound and n not in at_the_gate
        ]  # fmt: skip
        waiting.sort(key=lambda n: n.us)
        equal = [n for n in waiting if n.us <= waiting[0].us * (1 + EQUAL)]
        shortest = sorted(equal, key=lambda n: (n.depth, n.us))
        return shortest + waiting[len(equal) :]


def _is_of(step: SearchStep, result: StepResult) -> bool:
    if isinstance(result, ProposalsReceived):
        return step is result.ask
    if isinstance(result, CandidateMeasured):
        return isinstance(step, TryCandidate) and step.trial is result.trial
    return isinstance(step, ValidateNode) and step.node is result.node
