"""The default strategy: rules and remembered changes one at a time and deep, then the model where they stall."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

from accelopt_agent.search.node import ROUNDING, Node, is_remembered
from accelopt_agent.search.strategies.frontier import Frontier
from accelopt_agent.search.strategies.strategy import (
    ONCE_PER_SEARCH,
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
from accelopt_memory.outcomes import OutcomePrior

#: What is hoped of a rule's step that was never tried: the first of an answer, the last, and of anything at all.
FIRST, LAST, BEST_HOPE = 0.80, 0.95, 0.80

#: No more than this is expected of a step that was never tried on this kernel.
HOPELESS = 0.99

#: A step that changed the time by less than this once is tried once more, on the fastest version, when nothing
#: else is left.
NEUTRAL = 0.02

#: A gain by less than this share of the time does not count as one where tries are counted that brought none.
WORTHWHILE = 0.005

#: A rule that brought nothing so often in a row, on versions of this kernel that the same unit limits, has no turn
#: there while anything else promises something.
TRIES_IN_VAIN = 3


class Experience:
    """Time after over time before, per step, per rule and per what bounds the version it was tried on; ``prior`` is
    what earlier searches let expect on ``target``."""

    best_hope = BEST_HOPE

    def __init__(self, prior: OutcomePrior | None = None, target: str = "") -> None:
        self._prior, self._target = prior, target
        self._hopes: dict[int, float] = {}
        self._ratios: dict[tuple[str, str], list[tuple[float, str | None]]] = {}
        self._failed: dict[str, int] = {}
        self._of_rule: dict[str, list[float]] = {}
        self._by_bound: dict[
            tuple[str, str | None], list[float]
        ] = {}  # as _of_rule, by what limits the version
        self._in_vain: dict[tuple[str, str | None], int] = {}  # by rule and bound: tries since the last gain

    def add_proposals(self, trials: Sequence[Trial]) -> None:
        """Take what came first in an answer as most promising."""
        for rank, trial in enumerate(trials):
            self._hopes[id(trial)] = FIRST + (LAST - FIRST) * rank / max(1, len(trials))

    def add_result(self, trial: Trial, node: Node) -> None:
        if node.failure is not None:
            self._failed[trial.candidate.origin] = self._failed.get(trial.candidate.origin, 0) + 1
            return
        if trial.parent.failure is not None:
            return
        ratio = node.us / trial.parent.us
        self._ratios.setdefault(trial.step, []).append((ratio, trial.parent.measurement.bound))
        self._of_rule.setdefault(trial.candidate.origin, []).append(ratio)
        rule = trial.candidate.origin, trial.parent.measurement.bound
        self._by_bound.setdefault(rule, []).append(ratio)
        self._in_vain[rule] = 0 if ratio < 1 - WORTHWHILE else self._in_vain.get(rule, 0) + 1

    def tries(self, trial: Trial) -> int:
        """Return how often the rule of ``trial`` was tried, where it failed too."""
        origin = trial.candidate.origin
        return len(self._of_rule.get(origin, [])) + self._failed.get(origin, 0)

    def ratio(self, trial: Trial, by_catalogue: bool = False) -> float:
        """Return the time after over the time before to be expected of ``trial``; 1 or more: not worth trying.
        ``by_catalogue``: as if nothing were known from earlier searches."""
        known, limit = self._ratios.get(trial.step), trial.parent.measurement.bound
        if not known or (
            known[-1][0] >= 1 - ROUNDING and known[-1][1] != limit
        ):  # nothing is known of such a version
            rule = trial.candidate.origin, limit
            if self._in_vain.get(rule, 0) >= TRIES_IN_VAIN and _by_rule(trial):
                return 1.0
            hope = self._hopes.get(id(trial), LAST)
            if self._prior is not None and not by_catalogue:
                tries = self._by_bound.get(rule, [])
                expected = self._prior.expected_here(trial.item, limit, self._target, hope, tries)
                hope = min(HOPELESS, expected)
            hope = max(hope, self._elsewhere(rule))
            return min(1.0, hope + 0.1 * self._failed.get(trial.candidate.origin, 0))
        ratio, _ = known[-1]
        if ratio < 1 - ROUNDING:
            return ratio
        return 1 - ROUNDING if ratio < 1 + NEUTRAL and len(known) < 2 else 1.0

    def _elsewhere(self, rule: tuple[str, str | None]) -> float:
        """Return the best ratio that any step of a rule reached on versions that the same unit limits, once two were
        tried: no more is expected of its other steps, so that a rule with many places that gains nothing waits
        behind one that has gained."""
        ratios = self._by_bound.get(rule, [])
        return min(*ratios, LAST) if len(ratios) > 1 and rule[0].startswith("rule:") else 0.0


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
    other versions of this kernel (``Experience``), times the time of the version it would change. So a step that
    gained is built upon at once, and what is left of older versions is forgotten. Rules, remembered edits and sequences
    of rules stand in one queue. What is expected of a step that was not tried on this kernel is what its place in the
    catalogue lets hope, moved by the outcomes of earlier searches (``prior``) and of this one; the first try is the
    catalogue's.

    A paid proposer is asked when nothing else promises anything: first to mend its own versions that failed,
    ``repairs`` times for each idea, then about the fastest version that it was not asked about too often (rewrites that
    changed no time share what they were made from in this). What a model made faster than what it was shown may have
    its turn too, when the gate has accepted it: where the fastest version leads nowhere, the way on begins at a slower
    one. It is asked again while the expected gain of a call, as a share of the time, is above ``least_gain``: else the
    call does not pay. That expectation starts at ``first_gain`` and moves halfway to what each call brought.

    Of all candidates the share ``model_share`` is kept for a paid proposer: rules and remembered edits get no more than
    the rest while it answers, and it is asked until it has tried its share, whatever is expected; where nobody else
    proposes, its share is all of them. It is asked before
    further rules where each rule was tried once, or ``UNCLEAR_TRIES`` tries were made, and none changed the time. An
    answer that could not be read says nothing about what the next one will bring.

    What was remembered of another kernel may lead to a fast version from which a faster one cannot be reached. So where
    nothing promises anything any more and a remembered change led to the fastest version, the search goes on with the
    fastest one that rules alone led to, as if nothing had been remembered.

    A version that took as long as the one it was made from is built upon too where another unit limits it now: work of
    VectorE that went to TensorE gains nothing until TensorE has less to do.

    What promises nothing is tried too, before anybody is paid, since a rule that pays on a slow version only may open
    the way to a fast one: the rule that was tried least first, in turn on the version that was changed least and on the
    one that promises most, until ``patience`` such tries in a row have brought no faster version, and once more after
    each paid answer. It waits until nothing else runs, so that no proof and no suggestion comes later for it.
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
        prove_last: bool = False,
        prior: OutcomePrior | None = None,
    ) -> None:
        super().__init__(root, sources, target=target, depth=depth, random=random, prove_last=prove_last)
        self.least_gain, self.repairs, self.patience = least_gain, repairs, patience
        self.model_share = model_share if set(sources) - PAID else 1.0
        self._fruitless_tries = self._choices = self._paid_tries = self._unanswered = 0
        self._explores = False  # whether the idea chosen last promised nothing
        self._left = math.inf
        self.experience = Experience(prior, target)
        self._plain_experience = Experience(prior, target)  # of what no remembered change led to
        self._expected = dict.fromkeys(PAID, first_gain)
        self._us_at_ask: dict[str, float] = {}
        self._to_prove: Node | None = None

    def observe(self, result: StepResult) -> None:
        if isinstance(result, CandidateMeasured):
            self._paid_tries += not repeats(result.trial.step)
            gained = result.node.may_be_built_upon and result.node.us < self.fastest.us * (1 - WORTHWHILE)
            tried_in_vain = self._explores and _by_rule(result.trial)
            self._fruitless_tries = 0 if gained else self._fruitless_tries + tried_in_vain
        super().observe(result)
        if isinstance(result, ProposalsReceived):
            self.experience.add_proposals(result.trials)
            self._plain_experience.add_proposals(result.trials)
            if result.ask.proposer in PAID:
                self._unanswered = 0 if result.answered else self._unanswered + 1
                if self._unanswered >= MOST_UNANSWERED:
                    self.silent.add(result.ask.proposer)
                if not result.answered:
                    self._us_at_ask.pop(result.ask.proposer, None)
                self._fruitless_tries = min(self._fruitless_tries, max(0, self.patience - 1))
        elif isinstance(result, CandidateMeasured):
            self.experience.add_result(result.trial, result.node)
            if not result.node.remembered:
                self._plain_experience.add_result(result.trial, result.node)

    @property
    def fastest(self) -> Node:
        """The fastest version that may be built upon."""
        return min((n for n in self.nodes if n.may_be_built_upon), key=lambda n: n.us, default=self.root)

    @property
    def fastest_unremembered(self) -> Node:
        """The fastest version that may be built upon and that no remembered change led to."""
        nodes = [n for n in self.nodes if n.may_be_built_upon and not n.remembered]
        return min(nodes, key=lambda n: n.us, default=self.root)

    def next_idea(self) -> Trial | None:
        fastest = self.fastest
        written = [i for i in self.ideas if i.candidate.origin.startswith("model:")]
        if written:
            return written[0]
        if self._waits_for_model():
            return None
        open_ideas = [i for i in self.ideas if i.parent.may_be_built_upon]
        if not open_ideas:
            return None
        first = self._choices == 0
        promises = [(i.parent.us * self.experience.ratio(i, first), k) for k, i in enumerate(open_ideas)]
        promise, k = min(promises)
        chosen: Trial | None = open_ideas[k]
        self._explores = False
        if promise >= fastest.us:
            if not self._all_asked():
                return None
            chosen = self._plain_idea()
            if chosen is None and self._fruitless_tries < self.patience:
                *_, k = min((*self._last_resort(open_ideas[k]), promise, k) for promise, k in promises)
                chosen, self._explores = open_ideas[k], True
        self._choices += chosen is not None
        return chosen

    def _last_resort(self, trial: Trial) -> tuple[int, int]:
        """Return how often its rule was tried and, each other time, how many steps its version is from the original."""
        tries = self.experience.tries(trial)
        return tries, 0 if tries % 2 else trial.parent.depth

    def _plain_idea(self) -> Trial | None:
        """Return what promises to beat the fastest version of rules alone, as far as their own tries tell."""
        plain = [i for i in self.ideas if i.parent.may_be_built_upon and _plain(i)]
        promises = [(i.parent.us * self._plain_experience.ratio(i), k) for k, i in enumerate(plain)]
        promise, k = min(promises, default=(math.inf, -1))
        return plain[k] if promise < self.fastest_unremembered.us else None

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
        asked = any(isinstance(step, AskProposer) and step.proposer == name for step in self.begun)
        return not asked and self._unclear() and self._expected[name] > self.least_gain

    def _unclear(self) -> bool:
        """Return whether no version changed the time yet, though each rule was tried or enough of them."""
        tried = [n.step for n in self.nodes if n.parent is not None and n.step and repeats(n.step)]
        if any(n.us < self.root.us * (1 - NEUTRAL) for n in self.nodes) or not tried:
            return False
        waiting = {i.candidate.origin for i in self.ideas} | {
            step.trial.candidate.origin for step in self.begun if isinstance(step, TryCandidate)
        }
        return len(tried) >= UNCLEAR_TRIES or waiting <= {origin for origin, _ in tried}

    def _all_asked(self) -> bool:
        """Return whether nothing runs and nobody who costs nothing is left to be asked."""
        free = [name for name in self.sources if name not in PAID]
        return not self.begun and all(self._node_not_asked_about(name) is None for name in free)

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
        least = self.fastest_unremembered.us
        nodes = [
            n for n in self.nodes
            if name not in n.asked and n.may_be_built_upon and (n.gained or _moves_limit(n)) and n.depth < self.depth
            and n.us * self.experience.best_hope < (fastest.us if n.remembered else least)
        ]  # fmt: skip
        return min(nodes, key=lambda n: (not n.gained, n.us, n.depth), default=None)

    def _node_to_teach(self, name: str, fastest: Node) -> Node | None:
        """Return the fastest version where a rewrite of a model was proved elsewhere since: it may fit there too."""
        way = fastest.way
        proved = [
            n for n in self.nodes
            if n.proof == "accepted" and n.clearly_faster and n.step is not None and not repeats(n.step)
        ]  # fmt: skip
        elsewhere = any(n not in way for n in proved)
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
            self._to_prove = node
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
        asked: dict[Node, int] = {}
        for node in self.nodes:
            asked[_alike(node)] = asked.get(_alike(node), 0) + node.asked.get(name, 0)
        return min(nodes, key=lambda n: n.us * (1 + ASKED_BEFORE * asked[_alike(n)]))

    def wants_proof(self) -> Node | None:
        """Return a model's version that is faster than what may be built upon, though not clearly, or the one to be
        asked about next."""
        at_the_gate = [step.node for step in self.begun if isinstance(step, ValidateNode)]
        fastest, asked_for = self.fastest, self._to_prove
        if self.has_begun(AskProposer) or self.has_begun(TryCandidate):
            return None
        if (
            asked_for is not None
            and asked_for.proof is None
            and asked_for.sound
            and asked_for not in at_the_gate
        ):
            return asked_for
        nodes = [
            n for n in self.nodes
            if n.proof is None and n.sound and not n.may_be_built_upon and n.faster_than(fastest)
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


def _plain(trial: Trial) -> bool:
    """Return whether no remembered change leads to it."""
    return not is_remembered(trial.candidate.origin, trial.candidate.steps) and not trial.parent.remembered


def _by_rule(trial: Trial) -> bool:
    return trial.candidate.origin.startswith("rule:")
