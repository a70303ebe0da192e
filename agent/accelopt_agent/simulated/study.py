"""How many candidates and tokens each strategy needs to come near the best version that is known."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from accelopt_agent.budget import BudgetSpent, Meter
from accelopt_agent.candidate import Candidate
from accelopt_agent.events import CandidateTried
from accelopt_agent.node import Node
from accelopt_agent.proposer import Proposer
from accelopt_agent.recorder import Recorder
from accelopt_agent.request import Budget, OptimizeRequest
from accelopt_agent.search import KernelSearch
from accelopt_agent.simulated import marks
from accelopt_agent.simulated.proposer import CallTokens, SimulatedProposer, Skill
from accelopt_agent.simulated.world import World
from accelopt_agent.strategies import strategy_named
from accelopt_agent.texts import Texts
from accelopt_agent.tools import CostUnknown
from accelopt_profiling.kernels import Kernel


@dataclass(frozen=True)
class Contender:
    """A strategy with its settings as it takes part in the study. ``rules`` is the share of the rule catalogue that
    is asked beside the simulated proposer (drawn anew for each seed); ``samples`` are the tries per plan."""

    name: str
    strategy: str
    rules: float = 0.0
    samples: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)


#: Goes on asking whatever a call brings, so that all contenders run until they are there.
_TIRELESS = {"least_gain": -1.0}

CONTENDERS: tuple[Contender, ...] = (
    Contender("hybrid", "hybrid", rules=1.0, options=_TIRELESS),
    Contender("hybrid, half the rules", "hybrid", rules=0.5, options=_TIRELESS),
    Contender("hybrid, no rules", "hybrid", options=_TIRELESS),
    Contender("beam (AccelOpt: B6 N12 K2 T16)", "beam", samples=2),
    Contender("tree (STARK)", "tree"),
    Contender("reflexion", "reflexion"),
    Contender("sampling", "sampling"),
)


@dataclass(frozen=True)
class Outcome:
    """One run. ``candidates`` and ``tokens`` were spent when the goal was reached, or at the end: see
    ``reached``."""

    contender: str
    subject: str
    seed: int
    candidates: int
    tokens: int
    calls: int
    reached: bool
    best_us: float


class MarkedTexts(Texts):
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
        said = marks.marks_of(text)
        return (f"{file} {said}", f"{rewrite} {said}") if said else (file, rewrite)

    def kernel(self, text: str) -> Kernel | None:
        plain = marks.plain(text)  # marks stand after everything, so that the kernel's lines are the same
        if plain not in self._kernels:
            self._kernels[plain] = super().kernel(plain)
        return self._kernels[plain]


class SomeRules:
    """The rule catalogue without the rules that are withheld."""

    name = "rules"

    def __init__(self, world: World, withheld: frozenset[str]) -> None:
        self._world, self._withheld = world, withheld

    async def propose(self, node: Node) -> list[Candidate]:
        known = self._world.rewrites(marks.plain(node.text))
        return [
            replace(c, text=marks.marked_as(c.text, node.text))
            for c in known
            if c.origin not in self._withheld
        ]


async def explored(world: World, texts: int) -> float:
    """Find out the costs of up to ``texts`` rule compositions, building on the fastest first; the least time in
    microseconds. The world is closed then."""
    base = (await world.baseline()).kernels[0]
    best = base.latency.us or math.inf
    await world.cost(world.subject.text, world.subject.kernel.name)
    heap, seen, asked = [(best, world.subject.text)], {world.subject.text}, 0
    while heap and asked < texts:
        _, text = heapq.heappop(heap)
        for candidate in world.rewrites(text):
            if candidate.text in seen or asked >= texts:
                continue
            seen.add(candidate.text)
            asked += 1
            try:
                found = await world.cost(candidate.text, candidate.kernel)
            except CostUnknown:
                continue
            if found.correctness.status == "failed" or found.latency.us is None:
                continue
            best = min(best, found.latency.us)
            heapq.heappush(heap, (found.latency.us, candidate.text))
    world.close()
    return best


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
) -> Outcome:
    """One run of ``contender`` until a right version takes ``goal_us`` or less, or ``candidates`` are tried.
    ``texts`` is shared by the runs on one subject."""
    random, subject = Random(f"{seed} {world.subject.name} {contender.name}"), world.subject
    base = (await world.baseline()).kernels[0]
    budget = Budget(candidates=candidates, seconds=None, tokens=None)
    request = OptimizeRequest(Path(subject.path), subject.text, subject.target, budget=budget, depth=16)
    meter = Meter(budget)
    sources: list[Proposer] = []
    if contender.rules:
        sources.append(SomeRules(world, _withheld(world, 1 - contender.rules, random)))
    sources.append(
        SimulatedProposer(
            world.rewrites, random, meter, skill=skill, samples=contender.samples, tokens=tokens
        )
    )
    root = Node(subject.text, subject.kernel, base)
    strategy = strategy_named(
        contender.strategy, root, [s.name for s in sources],
        target=subject.target, depth=16, seed=random.randrange(1 << 30), **contender.options,
    )  # fmt: skip
    search = KernelSearch(
        request, root, strategy, sources,
        cost=world, gate=world, recorder=Recorder(None), meter=meter, run="study", host="simulated", texts=texts,
    )  # fmt: skip
    best, reached = base.latency.us or math.inf, False
    try:
        async with aclosing(search.run()) as events:
            async for event in events:
                if isinstance(event, CandidateTried) and event.outcome != "failed":
                    best = min(best, event.latency.us or math.inf)
                if best <= goal_us:
                    reached = True
                    break
    except BudgetSpent:
        pass
    spent = meter.tokens_in + meter.tokens_out
    return Outcome(
        contender.name, subject.name, seed, meter.candidates, spent, len(meter.calls), reached, best
    )


def _withheld(world: World, share: float, random: Random) -> frozenset[str]:
    """The rules that are kept from the rule proposer: ``share`` of those that apply to the kernel or to what one
    rewrite makes of it."""
    first = world.rewrites(world.subject.text)
    names = sorted({c.origin for c in first} | {c.origin for f in first for c in world.rewrites(f.text)})
    return frozenset(random.sample(names, round(share * len(names))))


@dataclass(frozen=True)
class Interval:
    """A mean and its 95 % confidence interval."""

    mean: float
    low: float
    high: float


def mean_of(values: Sequence[float], random: Random, draws: int = 2000) -> Interval:
    """The mean over ``values`` with the percentile bootstrap's 95 % interval (Efron 1979)."""
    mean = sum(values) / len(values)
    means = sorted(sum(random.choices(values, k=len(values))) / len(values) for _ in range(draws))
    return Interval(mean, means[int(0.025 * draws)], means[int(0.975 * draws) - 1])


def ratio_of(over: Sequence[float], under: Sequence[float], random: Random, draws: int = 2000) -> Interval:
    """The quotient of two means of paired values with the percentile bootstrap's 95 % interval."""
    pairs = list(zip(over, under, strict=True))

    def quotient(chosen: Sequence[tuple[float, float]]) -> float:
        return sum(a for a, _ in chosen) / max(1e-12, sum(b for _, b in chosen))

    drawn = sorted(quotient(random.choices(pairs, k=len(pairs))) for _ in range(draws))
    return Interval(quotient(pairs), drawn[int(0.025 * draws)], drawn[int(0.975 * draws) - 1])
