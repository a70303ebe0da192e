"""The default strategy: rules and remembered changes first, then the model.

Rewrites are tried one at a time and deep, in queues ordered by what they promise; where these stall the model is asked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from random import Random

from accelopt_agent.search.node import Node
from accelopt_agent.search.strategies.frontier import Frontier
from accelopt_agent.search.strategies.step_expectation import BEST_HOPE, NEUTRAL, WORTHWHILE, StepExpectation
from accelopt_agent.search.strategies.strategy import (
    ONCE_PER_SEARCH,
    PAID,
    AskProposer,
    CandidateMeasured,
    Capacity,
    NodeValidated,
    ProposalsReceived,
    SearchStep,
    StepResult,
    TryCandidate,
    ValidateNode,
)
from accelopt_agent.search.trial import Trial, repeats
from accelopt_memory.outcomes import OutcomePrior

#: How much slower a version counts for each time that a paid proposer was asked about it: others get their turn.
ASKED_BEFORE = 0.05

#: The share of the candidates that is kept for a paid proposer.
MODEL_SHARE = 0.30

#: After so many tries that changed no time a paid proposer is asked before the next one, even where rules are left.
UNCLEAR_TRIES = 6

#: After so many answers in a row that nothing could be made of, a paid proposer is asked no more.
MOST_UNANSWERED = 8


class Hybrid(Frontier):
    """A rewrite is tried while what is to be expected of it beats the fastest version: what its step did to
    other versions of this kernel (``StepExpectation``), times the time of the version it would change. So a step that
    gained is built upon at once, and what is left of older versions is forgotten. What is expected of a step that was
    not tried on this kernel is what its place in the catalogue lets hope, moved by the outcomes of this search.

    There are two queues. What is taken from the one of rules alone depends on nothing that was remembered: neither on
    what it proposed, nor on the versions that this led to, nor on ``prior``, the outcomes of earlier searches. The
    other one holds all rewrites, ordered with the ``prior`` too, and what it tries is marked as remembered. It has its
    turn before each try of the first one, and again as long as it makes the fastest version faster. What both would try
    is measured once. So with twice as many tries as without a memory, a search reaches at least the same.

    A paid proposer is asked when nothing else promises anything: first to mend its own versions that failed,
    ``repairs`` times for each idea, then about the fastest version that it was not asked about too often (rewrites that
    changed no time share what they were made from in this). What a model made faster than what it was shown may have
    its turn too, when the gate has accepted it: where the fastest version leads nowhere, the way on begins at a slower
    one. It is asked again while the expected gain of a call, as a share of the time, is above ``least_gain``: else the
    call does not pay. That expectation starts at ``first_gain`` and moves halfway to what each call brought.

    Of all candidates the share ``model_share`` is kept for a paid proposer: rules and remembered edits get no more than
    the rest while it answers, and it is asked until it has tried its share, whatever is expected; where nobody else
    proposes, its share is all of them. It is asked before further rules where each rule was tried once, or
    ``UNCLEAR_TRIES`` tries were made, and none changed the time. An answer that could not be read says nothing about
    what the next one will bring.

    A version that took as long as the one it was made from is built upon too where another unit limits it now: work of
    VectorE that went to TensorE gains nothing until TensorE has less to do.

    What promises nothing is tried too, before anybody is paid, since a rule that pays on a slow version only may open
    the way to a fast one: the rule that was tried least first, in turn on the version that was changed least and on the
    one that promises most, until ``patience`` such tries in a row have brought no faster version, and once more after
    each paid answer. It waits until nothing else runs, so that no check and no suggestion comes later for it. Where a
    remembered version is the fastest, as many such tries follow from all versions.
    """

    def __init__(
        self,
        root: Node,
        sources: Sequence[str],
        *,
        target: str,
        depth: int = 6,
        random: Random | None = None,
        first_gain: float = 0.06,
        least_gain: float = 0.02,
        repairs: int = 1,
        patience: int = 30,
        model_share: float = MODEL_SHARE,
        check_last: bool = False,
        prior: OutcomePrior | None = None,
    ) -> None:
        super().__init__(root, sources, target=target, depth=depth, random=random, check_last=check_last)
        self.least_gain, self.repairs = least_gain, repairs
        self.model_share = model_share if set(sources) - PAID else 1.0
        self._paid_tries = self._unanswered = 0
        self._left = math.inf
        self._has_prior = prior is not None
        self._by_rules = TrialQueue(StepExpectation(None, target), patience)
        self._by_memory = TrialQueue(StepExpectation(prior, target), patience)
        self._memory_waits = False  # it has tried in vain since the last try of the rules
        self._expected = dict.fromkeys(PAID, first_gain)
        self._us_at_ask: dict[str, float] = {}
        self._to_check: Node | None = None

    def observe(self, result: StepResult) -> None:
        if isinstance(result, CandidateMeasured):
            trial, node = result.trial, result.node
            self._paid_tries += not repeats(trial.step)
            fastest = self.fastest
            self._by_memory.add_result(trial, node, fastest)
            if not trial.remembered:
                self._by_rules.add_result(trial, node, self.fastest_by_rules)
            elif node.may_be_built_upon and node.us < fastest.us * (1 - WORTHWHILE):
                self._memory_waits = False
        super().observe(result)
        if isinstance(result, ProposalsReceived):
            self._by_memory.expectation.add_proposals(result.trials)
            self._by_rules.expectation.add_proposals([t for t in result.trials if not t.remembered])
            if result.ask.proposer in PAID:
                self._unanswered = 0 if result.answered else self._unanswered + 1
                if self._unanswered >= MOST_UNANSWERED:
                    self.silent.add(result.ask.proposer)
                if not result.answered:
                    self._us_at_ask.pop(result.ask.proposer, None)
                for queue in (self._by_rules, self._by_memory):
                    queue.renew()
        elif isinstance(result, NodeValidated):
            node = result.node
            for twin in self.nodes:
                if twin.fingerprint == node.fingerprint and twin is not node:
                    twin.verdict, twin.failure = node.verdict, node.failure
                    twin.clearly_faster, twin.comparison = node.clearly_faster, node.comparison

    @property
    def fastest(self) -> Node:
        """The fastest version that may be built upon."""
        return min((n for n in self.nodes if n.may_be_built_upon), key=lambda n: n.us, default=self.root)

    @property
    def fastest_by_rules(self) -> Node:
        """The fastest version that may be built upon and that nothing remembered led to."""
        nodes = [n for n in self.nodes if n.may_be_built_upon and not n.remembered]
        return min(nodes, key=lambda n: n.us, default=self.root)

    def next_idea(self) -> Trial | None:
        written = [i for i in self.ideas if i.candidate.origin.startswith("model:")]
        if written:
            return written[0]
        if self._waits_for_model():
            return None
        of_rules = self._next_by_rules()
        if of_rules is not None:
            waits = self._runs(of_rules)  # its time is known soon
        else:
            may_explore = self._by_rules.patient and bool(self._ideas_of_rules())
            waits = self._asks_left() or (bool(self.begun) and may_explore)
        remembered = self._by_memory.promising(self._all_ideas(), self.fastest)
        if remembered is not None and not (self._memory_waits and (waits or of_rules is not None)):
            return self._take_as_remembered(remembered)
        if of_rules is not None and not waits:
            self._memory_waits = False
            return of_rules
        if waits or self.begun or not self.fastest.faster_than(self.fastest_by_rules):
            return None
        explored = self._by_memory.least_tried(self._all_ideas())
        return self._take_as_remembered(explored) if explored is not None else None

    def _next_by_rules(self) -> Trial | None:
        """Return what is tried next as if nothing were remembered.

        What was measured already is taken in before; where that is to be asked about, nothing is tried yet.
        """
        while True:
            ideas = self._ideas_of_rules()
            trial = self._by_rules.promising(ideas, self.fastest_by_rules)
            if trial is None and not self.begun and not self._asks_left():
                trial = self._by_rules.least_tried(ideas)
            twin = next((n for n in self.nodes if trial and n.fingerprint == trial.fingerprint), None)
            if trial is None or twin is None:
                return trial
            self._take_in(trial, twin)
            if self._asks_left():
                return None

    def _take_in(self, trial: Trial, twin: Node) -> None:
        """Make ``twin``, which was measured as a remembered version, what the rules' own ``trial`` became."""
        fastest = self.fastest_by_rules
        self.ideas.remove(trial)
        if twin.parent is trial.parent and twin.step == trial.step:
            twin.remembered = False
            twin.asked = {name: count for name, count in twin.asked.items() if name in PAID}
            self._by_rules.add_result(trial, twin, fastest)
            return
        node = replace(
            twin, candidate=trial.composed, parent=trial.parent, step=trial.step, remembered=False,
            asked={}, children=[],
        )  # fmt: skip
        trial.parent.children.append(node)
        self.nodes.append(node)
        self._by_rules.add_result(trial, node, fastest)

    def _take_as_remembered(self, trial: Trial) -> Trial:
        """Return ``trial`` as one of the memory's. The rules keep theirs for their own turn."""
        self._memory_waits = True
        if trial.remembered:
            return trial
        copy = replace(trial, remembered=True)
        self.ideas.append(copy)
        return copy

    def _ideas_of_rules(self) -> list[Trial]:
        return [i for i in self.ideas if not i.remembered and i.parent.may_be_built_upon]

    def _all_ideas(self) -> list[Trial]:
        """Return what was tried by neither queue; nothing where nothing is remembered."""
        if not self._has_prior and not any(idea.remembered for idea in self.ideas):
            return []
        tried = {n.fingerprint for n in self.nodes}
        return [
            i for i in self.ideas
            if i.parent.may_be_built_upon and i.fingerprint not in tried and not self._runs(i)
        ]  # fmt: skip

    def _runs(self, trial: Trial) -> bool:
        """Return whether the same text is being measured."""
        return any(
            isinstance(s, TryCandidate) and s.trial.fingerprint == trial.fingerprint for s in self.begun
        )

    def choose(self, free: Capacity) -> SearchStep | None:
        self._left = free.candidates
        return super().choose(free)

    @property
    def _reserved(self) -> float:
        """How many of the candidates that are left are kept for a paid proposer."""
        if math.isinf(self._left) or not any(self.usable(name) for name in PAID):
            return 0.0
        tried = len(self.nodes) - 1 + sum(isinstance(step, TryCandidate) for step in self.begun)
        return self.model_share * (tried + self._left) - self._paid_tries

    def _waits_for_model(self) -> bool:
        """Return whether the next candidate is to be a paid proposer's."""
        name = next((name for name in self.sources if name in PAID and self.usable(name)), None)
        if name is None or not self.model_share:
            return False
        if self._reserved >= max(1.0, self._left):
            return True
        is_asked = any(isinstance(step, AskProposer) and step.proposer == name for step in self.begun)
        return not is_asked and self._unclear() and self._expected[name] > self.least_gain

    def _unclear(self) -> bool:
        """Return whether no version changed the time yet, though each rule was tried or enough of them."""
        tried = [n.step for n in self.nodes if n.parent is not None and n.step and repeats(n.step)]
        if any(n.us < self.root.us * (1 - NEUTRAL) for n in self.nodes) or not tried:
            return False
        waiting = {i.candidate.origin for i in self.ideas} | {
            step.trial.candidate.origin for step in self.begun if isinstance(step, TryCandidate)
        }
        return len(tried) >= UNCLEAR_TRIES or waiting <= {origin for origin, _ in tried}

    def _asks_left(self) -> bool:
        """Return whether somebody who costs nothing is left to be asked."""
        free = [name for name in self.sources if name not in PAID]
        return any(self._node_not_asked_about(name) is not None for name in free)

    def next_ask(self) -> AskProposer | None:
        for name in self.sources:
            if not self.usable(name):
                continue
            if name in PAID:
                if self.begun:  # what has begun may change what is worth asking
                    return None
                if (node := self._worth_paying_for(name)) is not None:
                    return AskProposer(node, name)
            elif (node := self._node_not_asked_about(name)) is not None:
                return AskProposer(node, name)
        return None

    def _node_not_asked_about(self, name: str) -> Node | None:
        fastest = self.fastest
        if name in ONCE_PER_SEARCH:
            return self._node_to_teach(name, fastest) if name in self.root.asked else self.root
        least = self.fastest_by_rules.us
        nodes = [
            n for n in self.nodes
            if name not in n.asked and n.may_be_built_upon and (n.gained or _moves_limit(n)) and n.depth < self.depth
            and n.us * BEST_HOPE < (fastest.us if n.remembered else least)
        ]  # fmt: skip
        return min(nodes, key=lambda n: (not n.gained, n.us, n.depth), default=None)

    def _node_to_teach(self, name: str, fastest: Node) -> Node | None:
        """Return the fastest version where a rewrite of a model was checked elsewhere since: it may fit there too."""
        way = fastest.way
        by_models = [
            n for n in self.nodes
            if n.verdict == "accepted" and n.clearly_faster and n.step is not None and not repeats(n.step)
        ]  # fmt: skip
        elsewhere = any(n not in way for n in by_models)
        return fastest if elsewhere and name not in fastest.asked and fastest.depth < self.depth else None

    def _worth_paying_for(self, name: str) -> Node | None:
        fastest = self.fastest
        if name in self._us_at_ask:
            gain = 1 - fastest.us / self._us_at_ask[name]
            self._expected[name] = (self._expected[name] + gain) / 2
            del self._us_at_ask[name]
        if self._expected[name] <= self.least_gain and self._reserved < 1:
            return None
        node = self._to_repair(name) or self._to_build_upon(name)
        if node.sound and not node.may_be_built_upon:
            self._to_check = node
            return None
        self._us_at_ask[name] = fastest.us
        return node

    def _to_repair(self, name: str) -> Node | None:
        """Return the failed version to be mended next, wherever it stands: near misses first, then what was made
        from the fastest version, then the newest. All attempts at one idea count together."""
        failed = [
            (not n.failure.near, n.failures[-1].parent.us, -k, n)
            for k, n in enumerate(self.nodes)
            if n.failure is not None and n.failure.mendable and n.step is not None
            and not repeats(n.step) and n.depth < self.depth
            and sum(f.asked.get(name, 0) for f in n.failures) < self.repairs
            and not any(c.failure is None for c in n.children)
            and n.failures[-1].parent is not None and n.failures[-1].parent.sound
        ]  # fmt: skip
        return min(failed, key=lambda f: f[:3], default=(0, 0, 0, None))[3]

    def _to_build_upon(self, name: str) -> Node:
        nodes = [
            n for n in self.nodes if n.sound and n.depth < self.depth and (n.may_be_built_upon or n.gained)
        ]
        questions: dict[Node, int] = {}
        for node in self.nodes:
            questions[_alike(node)] = questions.get(_alike(node), 0) + node.asked.get(name, 0)
        return min(nodes, key=lambda n: n.us * (1 + ASKED_BEFORE * questions[_alike(n)]))

    def wants_check(self) -> Node | None:
        """Return a model's version that is faster than what may be built upon, though not clearly, or the one to be
        asked about next."""
        at_the_gate = [step.node for step in self.begun if isinstance(step, ValidateNode)]
        fastest, asked_for = self.fastest, self._to_check
        if self.has_begun(AskProposer) or self.has_begun(TryCandidate):
            return None
        if (
            asked_for is not None
            and asked_for.verdict is None
            and asked_for.sound
            and asked_for not in at_the_gate
        ):
            return asked_for
        nodes = [
            n for n in self.nodes
            if n.verdict is None and n.sound and not n.may_be_built_upon and n.faster_than(fastest)
            and n not in at_the_gate
        ]  # fmt: skip
        return min(nodes, key=lambda n: n.us, default=None)


def _alike(node: Node) -> Node:
    """Return the first version on the way here after which no rewrite changed the time: they take turns as
    one."""
    while node.parent is not None and not node.faster_than(node.parent) and not node.parent.faster_than(node):
        node = node.parent
    return node


def _moves_limit(node: Node) -> bool:
    """Return whether a version takes as long as the one it was made from, which gained, and another unit limits it."""
    before = node.parent
    if before is None or not before.gained or node.us >= before.us * (1 + NEUTRAL):
        return False
    return node.measurement.bound != before.measurement.bound


class TrialQueue:
    """Gives first what is expected to beat the fastest version, then what promises nothing, until ``patience`` such
    tries in a row have brought no faster version."""

    def __init__(self, expectation: StepExpectation, patience: int) -> None:
        self.expectation, self._patience = expectation, patience
        self._tries_in_vain = 0
        self._explored = ""

    @property
    def patient(self) -> bool:
        return self._tries_in_vain < self._patience

    def renew(self) -> None:
        """Allow one more try of what promises nothing."""
        self._tries_in_vain = min(self._tries_in_vain, max(0, self._patience - 1))

    def promising(self, ideas: Sequence[Trial], fastest: Node) -> Trial | None:
        """Return the rewrite that promises most, if that beats the ``fastest`` version."""
        promises = self._promises(ideas)
        promise, k = min(promises, default=(fastest.us, -1))
        return ideas[k] if promise < fastest.us else None

    def least_tried(self, ideas: Sequence[Trial]) -> Trial | None:
        """Return a rewrite of the rule that was tried least, in turn on the version that was changed least and on the
        one that promises most."""
        if not ideas or not self.patient:
            return None
        _, _, _, k = min((*self._last_resort(ideas[k]), promise, k) for promise, k in self._promises(ideas))
        self._explored = ideas[k].fingerprint
        return ideas[k]

    def add_result(self, trial: Trial, node: Node, fastest: Node) -> None:
        """Take in what became of ``trial``; ``fastest`` was the fastest version before."""
        if node.may_be_built_upon and node.us < fastest.us * (1 - WORTHWHILE):
            self._tries_in_vain = 0
        elif trial.fingerprint == self._explored:
            self._tries_in_vain += 1
        self.expectation.add_result(trial, node)

    def _promises(self, ideas: Sequence[Trial]) -> list[tuple[float, int]]:
        return [(i.parent.us * self.expectation.ratio(i), k) for k, i in enumerate(ideas)]

    def _last_resort(self, trial: Trial) -> tuple[int, int]:
        """Return how often its rule was tried and, each other time, how many steps its version is from the original."""
        tries = self.expectation.tries(trial)
        return tries, 0 if tries % 2 else trial.parent.depth
