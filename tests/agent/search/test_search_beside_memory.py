"""What the hybrid search reaches beside a memory: no less than without one, and sooner where the memory is right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from support.toy_search import TEXT, measurement

from accelopt_agent.candidate import Candidate
from accelopt_agent.search.node import Failure, Node
from accelopt_agent.search.strategies.hybrid import Hybrid
from accelopt_agent.search.strategies.strategy import (
    AskProposer,
    CandidateMeasured,
    Capacity,
    ProposalsReceived,
    TryCandidate,
)
from accelopt_agent.search.trial import Trial
from accelopt_memory.outcomes import Outcome, OutcomePrior
from accelopt_profiling.kernels import find_kernels

KERNEL = find_kernels(TEXT).kernels[0]
RULES = tuple("abcdefg")


@dataclass
class World:
    """Versions are sets of steps; ``times`` are those of sets, other versions take as long as the best of these that
    they contain, or 100 us. Whatever contains a set of ``broken`` fails. ``sequences`` are what the memory proposes."""

    times: Mapping[frozenset[str], int]
    broken: frozenset[frozenset[str]] = frozenset()
    sequences: tuple[str, ...] = ()
    prior: OutcomePrior | None = None
    tried: list[tuple[str, int]] = field(default_factory=list)

    def us(self, done: frozenset[str]) -> int:
        return min((us for steps, us in self.times.items() if steps <= done), default=100)

    def search(self, patience: int, most: int = 10_000) -> Hybrid:
        """Return the strategy at the end of a search whose proposers need no time."""
        root = Node(TEXT, KERNEL, measurement(TEXT))
        hybrid = Hybrid(
            root, ["memory", "rules"], target="trn1", depth=5, patience=patience, prior=self.prior
        )
        self.tried, visited = [], {("", False)}
        while len(self.tried) < most:
            none = Capacity(measurements=False, validations=False)
            step = hybrid.choose(none) or hybrid.choose(replace(none, measurements=True))
            if isinstance(step, AskProposer):
                trials = [t for t in self.proposals(step) if not {(t.fingerprint, False), key(t)} & visited]
                visited |= {key(t) for t in trials}
                hybrid.observe(ProposalsReceived(step, trials))
            elif isinstance(step, TryCandidate):
                node = self.made(step.trial)
                self.tried.append((node.fingerprint, int(node.us)))
                step.trial.parent.children.append(node)
                hybrid.observe(CandidateMeasured(step.trial, node))
            else:
                assert step is None
                break
        return hybrid

    def proposals(self, ask: AskProposer) -> list[Trial]:
        done, names = frozenset(ask.node.fingerprint), self.sequences if ask.proposer == "memory" else RULES
        trials = []
        for name in names:
            if not done & set(name):
                origin = "memory:x" if ask.proposer == "memory" else f"rule:{name}"
                item = f"sequence:{name}" if ask.proposer == "memory" else origin
                steps = tuple(f"rule:{step}" for step in name)
                candidate = Candidate("kernel", TEXT, origin, name, {}, steps, item)
                text = "".join(sorted(done | set(name)))
                remembered = ask.node.remembered or ask.proposer == "memory"
                trials.append(Trial(candidate, ask.node, text, remembered))
        return trials

    def made(self, trial: Trial) -> Node:
        done = frozenset(trial.fingerprint)
        text = TEXT.replace("time_us = 100", f"time_us = {self.us(done)}")
        node = Node(
            text, KERNEL, measurement(text), trial.composed, trial.parent, trial.step, trial.fingerprint,
            remembered=trial.remembered,
        )  # fmt: skip
        if any(steps <= done for steps in self.broken):
            node.failure, node.verdict = Failure("launch-failed", "off"), "refused"
        return node


def key(trial: Trial) -> tuple[str, bool]:
    return trial.fingerprint, trial.remembered


def best_after(tried: list[tuple[str, int]], most: int) -> int:
    return min((us for _, us in tried[:most]), default=100)


def gains(tried: list[tuple[str, int]]) -> int:
    return sum(us < best_after(tried, k) for k, (_, us) in enumerate(tried))


def any_world(random: Random) -> World:
    sets = [frozenset(random.sample(RULES, random.randint(1, 4))) for _ in range(8)]
    broken = frozenset(frozenset(random.sample(RULES, 3)) for _ in range(random.randint(0, 2)))
    return World({steps: random.randint(30, 110) for steps in sets}, broken)


def any_memory(random: Random) -> tuple[tuple[str, ...], OutcomePrior]:
    sequences = tuple("".join(random.sample(RULES, random.randint(1, 4))) for _ in range(6))
    items = [f"rule:{name}" for name in RULES] + [f"sequence:{name}" for name in sequences]
    outcomes = [
        Outcome(item, f"task{k}", None, "nki", "trn1", random.uniform(-1, 0.3), f"{item} {k}")
        for item in items for k in range(random.randint(0, 5))
    ]  # fmt: skip
    return sequences, OutcomePrior(outcomes)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0, 3, 8]))
def test_no_memory_takes_anything_from_what_rules_reach_alone(seed: int, patience: int) -> None:
    """The rules' own tries are the same ones, and of twice as many tries and one for each gain the fastest version is
    at least as fast."""
    random = Random(seed)
    alone = any_world(random)
    own = {n.fingerprint for n in alone.search(patience).nodes}
    sequences, prior = any_memory(random)
    beside = World(alone.times, alone.broken, sequences, prior)
    assert {n.fingerprint for n in beside.search(patience).nodes if not n.remembered} == own
    tried = [text for text, _ in beside.tried]
    assert len(tried) == len(set(tried))  # nothing is measured twice
    for most in range(1, len(alone.tried) + 1):
        reach = 2 * most + gains(beside.tried)
        assert best_after(beside.tried, reach) <= best_after(alone.tried, most)


def test_a_misleading_sequence_does_not_stop_what_rules_would_have_found() -> None:
    """It is faster than any single rule, and what makes the best version no longer fits on it."""
    times = {frozenset("ab"): 60, frozenset("c"): 80, frozenset("cd"): 40}
    alone, beside = World(times), World(times, broken=frozenset({frozenset("ac")}), sequences=("ab",))
    assert alone.search(patience=4).fastest.us == 40
    fastest = beside.search(patience=4).fastest
    assert (fastest.us, fastest.remembered) == (40, False)
    assert best_after(beside.tried, 2) == 60  # and the memory had its say


def test_a_memory_that_is_right_leads_there_sooner() -> None:
    times = {frozenset("def"): 40}
    alone, beside = World(times), World(times, sequences=("def",))
    alone.search(patience=30)
    assert best_after(alone.tried, 10) == 100
    assert beside.search(patience=30).fastest.us == 40
    assert best_after(beside.tried, 2) == 40


def test_outcomes_elsewhere_bring_a_late_rule_forward() -> None:
    outcomes = [Outcome("rule:g", f"task{k}", None, "nki", "trn1", -1.0, str(k)) for k in range(3)]
    alone, beside = World({frozenset("g"): 50}), World({frozenset("g"): 50}, prior=OutcomePrior(outcomes))
    alone.search(patience=0)
    beside.search(patience=0)
    assert [text for text, _ in alone.tried].index("g") == 6
    assert [text for text, _ in beside.tried].index("g") == 0
