"""Runs one contender, a strategy with its settings and proposal sources, in a world: the real search, with the
simulated proposer instead of a model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from accelopt_agent.candidate import Candidate
from accelopt_agent.events import CandidateTried
from accelopt_agent.request import Budget, OptimizeRequest, SearchPlan
from accelopt_agent.search.budget import BudgetExhaustedError, Meter
from accelopt_agent.search.kernel_search import KernelSearch
from accelopt_agent.search.node import Node
from accelopt_agent.search.proposer import Proposer
from accelopt_agent.search.recorder import Recorder
from accelopt_agent.search.search_run import SearchRun
from accelopt_agent.search.strategies import strategy_named
from accelopt_agent.search.trial import VersionTexts
from accelopt_benchmarks.search import marks
from accelopt_benchmarks.search.comparators import REFLEXION, SAMPLING
from accelopt_benchmarks.search.proposer import CallTokens, SimulatedProposer
from accelopt_benchmarks.search.world import World
from accelopt_benchmarks.simulated.team import Skill
from accelopt_profiling.examination import examine
from accelopt_profiling.kernels import Kernel

#: Rewrites of rewrites of the original, at most.
DEPTH = 16


@dataclass(frozen=True)
class RunOutcome:
    """One run.

    ``candidates``, ``tokens`` and ``calls`` were spent when the goal was reached, or at the end where it was not: see
    ``reached``.
    """

    contender: str
    subject: str
    seed: int
    candidates: int
    tokens: int
    calls: int
    reached: bool
    best_us: float


class MarkedTexts(VersionTexts):
    """Reads texts with marks as those without, which are read once for all runs of a study."""

    def __init__(self, base_text: str, kernel: str) -> None:
        super().__init__(base_text, kernel)
        self._prints: dict[str, tuple[str, str]] = {}
        self._kernels: dict[str, Kernel | None] = {}

    def fingerprints(self, text: str) -> tuple[str, str]:
        plain = marks.plain(text)
        if plain not in self._prints:
            self._prints[plain] = super().fingerprints(plain)
        file, rewrite = self._prints[plain]
        own_marks = marks.marks_of(text)
        return (f"{file} {own_marks}", f"{rewrite} {own_marks}") if own_marks else (file, rewrite)

    def kernel(self, text: str, name: str = "") -> Kernel | None:
        if name not in ("", self.name):
            return super().kernel(text, name)
        plain = marks.plain(text)  # marks stand after everything, so that the kernel's lines are the same
        if plain not in self._kernels:
            self._kernels[plain] = super().kernel(plain)
        return self._kernels[plain]


class SomeRules:
    """The rule catalogue without the rules that are withheld."""

    name = "rules"

    def __init__(self, world: World, withheld: frozenset[str] = frozenset()) -> None:
        self._world, self._withheld = world, withheld

    async def propose(self, node: Node) -> list[Candidate]:
        rewrites = self._world.rewrites(marks.plain(node.text))
        return [
            replace(c, text=marks.marked_as(c.text, node.text))
            for c in rewrites
            if c.origin not in self._withheld
        ]


class Remembering:
    """What the memory says of the original (``landscape.remembered``)."""

    name = "memory"

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self._found = list(candidates)

    async def propose(self, node: Node) -> list[Candidate]:
        return self._found


async def play(
    world: World,
    contender: Contender,
    seed: int,
    *,
    goal_us: float,
    candidates: int,
    skill: Skill | None = None,
    tokens: CallTokens | None = None,
    texts: MarkedTexts | None = None,
    memory: Sequence[Candidate] = (),
    rules: Proposer | None = None,
) -> RunOutcome:
    """Return one run of ``contender`` until a right version takes ``goal_us`` or less, or ``candidates`` are
    tried. ``texts`` is shared by the runs on one subject; ``rules`` takes the place of the catalogue."""
    random, subject = Random(f"{seed} {world.subject.name} {contender.name}"), world.subject
    base = (await world.baseline()).kernels[0]
    budget = Budget(candidates=candidates, seconds=None, tokens=None)
    file = examine(Path(subject.path), subject.text)
    request = OptimizeRequest(file, subject.target, budget=budget, plan=SearchPlan(depth=DEPTH))
    meter = Meter(budget)
    sources: list[Proposer] = [Remembering(memory)] if contender.memory else []
    if rules is not None:
        sources.append(rules)
    elif contender.rules:
        sources.append(SomeRules(world, _withheld(world, 1 - contender.rules, random)))
    if contender.proposer:
        sources.append(
            SimulatedProposer(
                world.rewrites, random, meter, skill=skill, samples=contender.samples, tokens=tokens
            )
        )
    root = Node(subject.text, subject.kernel, base)
    strategy = strategy_named(
        contender.strategy, root, [s.name for s in sources],
        target=subject.target, depth=DEPTH, seed=random.randrange(1 << 30), **contender.options,
    )  # fmt: skip
    run = SearchRun(request, world, world, Recorder(None), meter, id="study", host="simulated")
    search = KernelSearch(run, root, strategy, sources, texts)
    best = math.inf if base.latency.us is None else base.latency.us
    try:
        async with aclosing(search.run()) as events:
            async for event in events:
                if isinstance(event, CandidateTried) and event.outcome != "failed":
                    best = min(best, math.inf if event.latency.us is None else event.latency.us)
                if best <= goal_us:
                    break
    except BudgetExhaustedError:
        pass
    spent, calls = meter.tokens_in + meter.tokens_out, len(meter.calls)
    return RunOutcome(
        contender.name,
        subject.name,
        seed=seed,
        candidates=meter.candidates,
        tokens=spent,
        calls=calls,
        reached=best <= goal_us,
        best_us=best,
    )


def _withheld(world: World, share: float, random: Random) -> frozenset[str]:
    """Return the rules that are kept from the rule proposer: ``share`` of those that apply to the kernel or
    to what one rewrite makes of it."""
    first = world.rewrites(world.subject.text)
    names = sorted({c.origin for c in first} | {c.origin for f in first for c in world.rewrites(f.text)})
    return frozenset(random.sample(names, round(share * len(names))))


@dataclass(frozen=True)
class Contender:
    """A strategy with its settings.

    ``rules`` is the share of the rule catalogue that is asked (drawn anew for each seed), ``memory`` whether what was
    found on the other kernels is remembered, ``proposer`` whether the simulated proposer is asked; ``samples`` are its
    tries per plan.
    """

    name: str
    strategy: str
    rules: float = 0.0
    memory: bool = False
    proposer: bool = True
    samples: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)


#: Goes on asking whatever a call brings, so that all contenders run until they are there.
_TIRELESS = {"least_gain": -1.0}

HYBRID, BEAM, TREE = "hybrid", "beam (AccelOpt: B6 N12 K2 T16)", "tree (STARK)"

CONTENDERS: tuple[Contender, ...] = (
    Contender(HYBRID, "hybrid", rules=1.0, options=_TIRELESS),
    Contender(f"{HYBRID} with memory", "hybrid", rules=1.0, memory=True, options=_TIRELESS),
    Contender(f"{HYBRID}, half the rules", "hybrid", rules=0.5, options=_TIRELESS),
    Contender(f"{HYBRID}, no proposer", "hybrid", rules=1.0, proposer=False),
    Contender(f"{HYBRID}, no rules", "hybrid", options=_TIRELESS),
    Contender(f"{HYBRID}, no rules, with memory", "hybrid", memory=True, options=_TIRELESS),
    Contender(BEAM, "beam", samples=2),
    Contender("beam with the rules", "beam", rules=1.0, samples=2),
    Contender(TREE, "tree"),
    Contender("tree with the rules", "tree", rules=1.0),
    Contender("reflexion", REFLEXION),
    Contender("sampling", SAMPLING),
)
