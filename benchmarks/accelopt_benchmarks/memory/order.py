"""Compares orders of trying rewrites: the catalogue's, a random one, and what outcomes elsewhere let expect."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from random import Random

from accelopt_agent.candidate import Candidate
from accelopt_agent.search.node import Node
from accelopt_benchmarks.memory.evaluation import KNOWN_SHARE, SimulatedRun, interval, recorded_kernel
from accelopt_benchmarks.result import GoalResult
from accelopt_benchmarks.search.landscape import Explored
from accelopt_benchmarks.search.playing import Contender, MarkedTexts, SomeRules, play
from accelopt_benchmarks.search.study import NEAR
from accelopt_benchmarks.search.world import World
from accelopt_memory.outcomes import OutcomePrior

CATALOGUE, RANDOM, LEARNED = "catalogue", "random", "learned"


class ShuffledRules(SomeRules):
    """The rule catalogue in an order drawn by lot."""

    def __init__(self, world: World, random: Random) -> None:
        super().__init__(world)
        self._random = random

    async def propose(self, node: Node) -> list[Candidate]:
        known = await super().propose(node)
        return self._random.sample(known, len(known))


async def compare_orders(
    worlds: Mapping[str, World], explored: Mapping[str, Explored], seeds: int, most: int = 100
) -> list[SimulatedRun]:
    """Search each kernel with every order and seed, knowing the outcomes of some of the others, never its own."""
    recorded = {name: await recorded_kernel(world, explored[name]) for name, world in worlds.items()}
    known = {name: kernel for name, kernel in recorded.items() if kernel is not None}
    runs = []
    for name, kernel in known.items():
        world, goal = worlds[name], kernel.least_us * NEAR
        world.close(explored[name].texts)
        texts = MarkedTexts(world.subject.text, world.subject.kernel.name)
        others = sorted(n for n, other in known.items() if n != name and other.target == kernel.target)
        for seed in range(seeds):
            random = Random(f"{seed} {name}")
            few = random.sample(others, math.ceil(KNOWN_SHARE * len(others)))
            prior = OutcomePrior([o for other in sorted(few) for o in known[other].outcomes])
            for order in (CATALOGUE, RANDOM, LEARNED):
                options = {"prior": prior} if order == LEARNED and prior.outcomes else {}
                contender = Contender(order, "hybrid", rules=1.0, proposer=False, options=options)
                outcome = await play(
                    world, contender, seed, goal_us=goal, candidates=most, texts=texts,
                    rules=ShuffledRules(world, random) if order == RANDOM else None,
                )  # fmt: skip
                count = outcome.candidates if outcome.reached else most
                runs.append(SimulatedRun(name, order, seed, count, outcome.best_us / kernel.least_us))
    return runs


def order_rows(runs: Sequence[SimulatedRun]) -> list[GoalResult]:
    """Return how the learned order does beside a random one and beside the catalogue's, with the worst kernel."""
    results = []
    for other, goal in ((RANDOM, 1 / 3), (CATALOGUE, 1.0)):
        value, low, high, worst = interval(runs, LEARNED, other, lambda run: float(run.candidates))
        results.append(
            GoalResult(
                f"candidates to 95 % of the best, of those of the {other} order", f"<= {goal:.2g}", value, "x",
                value <= goal, f"95 % interval {low:.2f} to {high:.2f}; worst kernel {worst:.2f}",
            )
        )  # fmt: skip
    return results
