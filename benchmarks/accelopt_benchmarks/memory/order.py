"""Compares orders of trying rewrites: the catalogue's, a random one, and what outcomes elsewhere let expect."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean

from accelopt_agent.candidate import Candidate
from accelopt_agent.evaluation.evaluators import CostUnavailableError
from accelopt_agent.search.node import Node
from accelopt_benchmarks.result import GoalResult
from accelopt_benchmarks.search.landscape import Explored
from accelopt_benchmarks.search.playing import Contender, MarkedTexts, SomeRules, play
from accelopt_benchmarks.search.study import NEAR
from accelopt_benchmarks.search.world import World
from accelopt_memory.outcomes import Outcome, OutcomePrior

CATALOGUE, RANDOM, LEARNED = "catalogue", "random", "learned"

#: The share of the other kernels whose outcomes a seed knows, so that the seeds differ.
KNOWN_SHARE = 0.7


@dataclass(frozen=True)
class OrderRun:
    """The candidates that one order needed on one kernel with one seed."""

    kernel: str
    order: str
    seed: int
    candidates: int
    reached: bool


class ShuffledRules(SomeRules):
    """The rule catalogue in an order drawn by lot."""

    def __init__(self, world: World, random: Random) -> None:
        super().__init__(world)
        self._random = random

    async def propose(self, node: Node) -> list[Candidate]:
        known = await super().propose(node)
        return self._random.sample(known, len(known))


async def outcomes_of(world: World, explored: Explored) -> list[Outcome]:
    """Return what each rewrite between two versions of known cost did."""
    kernel = world.subject.kernel
    us: dict[str, float | None] = {}
    bounds: dict[str, str | None] = {}
    for text in sorted(explored.texts | {world.subject.text}):
        try:
            found = await world.cost(text, kernel.name)
        except CostUnavailableError:
            us[text] = None
            continue
        right = found.correctness.status != "failed"
        us[text], bounds[text] = (found.latency.us if right else None), found.bound
    outcomes = []
    for text, before in us.items():
        for candidate in world.rewrites(text) if before else ():
            if before and candidate.text in us:
                after = us[candidate.text]
                ratio = math.log(after / before) if after else None
                outcomes.append(
                    Outcome(
                        candidate.origin, kernel.content_hash, bounds[text], kernel.dialect, world.subject.target,
                        ratio, candidate.id, failed=after is None,
                    )
                )  # fmt: skip
    return outcomes


async def compare_orders(
    worlds: Mapping[str, World], explored: Mapping[str, Explored], seeds: int, most: int = 100
) -> list[OrderRun]:
    """Search each kernel with every order and seed, knowing the outcomes of some of the others, never its own."""
    known = {name: await outcomes_of(world, explored[name]) for name, world in worlds.items()}
    runs = []
    for name, world in worlds.items():
        world.close(explored[name].texts)
        texts = MarkedTexts(world.subject.text, world.subject.kernel.name)
        others = sorted(n for n in worlds if n != name and worlds[n].subject.target == world.subject.target)
        base = (await world.baseline()).kernels[0].latency.us
        goal = explored[name].least_us * NEAR
        if base is None or base <= goal:
            continue
        for seed in range(seeds):
            random = Random(f"{seed} {name}")
            few = random.sample(others, math.ceil(KNOWN_SHARE * len(others)))
            prior = OutcomePrior([o for other in sorted(few) for o in known[other]])
            for order in (CATALOGUE, RANDOM, LEARNED):
                options = {"prior": prior} if order == LEARNED and prior.outcomes else {}
                contender = Contender(order, "hybrid", rules=1.0, proposer=False, options=options)
                outcome = await play(
                    world, contender, seed, goal_us=goal, candidates=most, texts=texts,
                    rules=ShuffledRules(world, random) if order == RANDOM else None,
                )  # fmt: skip
                count = outcome.candidates if outcome.reached else most
                runs.append(OrderRun(name, order, seed, count, outcome.reached))
    return runs


def interval(
    runs: Sequence[OrderRun], order: str, other: str, draws: int = 1000
) -> tuple[float, float, float]:
    """Return the mean candidates of one order over another's, each kernel counting as much, and the 95 % interval
    over draws of kernels and seeds."""
    cells: dict[str, dict[str, list[int]]] = {}
    for run in runs:
        cells.setdefault(run.kernel, {}).setdefault(run.order, []).append(run.candidates)
    random, ratios = Random(0), []
    for draw in range(draws + 1):
        kernels = sorted(cells) if not draw else random.choices(sorted(cells), k=len(cells))
        logs = []
        for kernel in kernels:
            mine, theirs = cells[kernel][order], cells[kernel][other]
            if draw:
                mine, theirs = random.choices(mine, k=len(mine)), random.choices(theirs, k=len(theirs))
            logs.append(math.log(fmean(mine) / fmean(theirs)))
        ratios.append(math.exp(fmean(logs)))
    low, high = sorted(ratios[1:])[int(0.025 * draws)], sorted(ratios[1:])[int(0.975 * draws) - 1]
    return ratios[0], low, high


def order_rows(runs: Sequence[OrderRun]) -> list[GoalResult]:
    """Return how the learned order does beside a random one and beside the catalogue's, with the worst kernel."""
    results = []
    for other, goal in ((RANDOM, 1 / 3), (CATALOGUE, 1.0)):
        value, low, high = interval(runs, LEARNED, other)
        results.append(
            GoalResult(
                f"candidates to 95 % of the best, of those of the {other} order", f"<= {goal:.2g}", value, "x",
                value <= goal, f"95 % interval {low:.2f} to {high:.2f}",
            )
        )  # fmt: skip
    return results
