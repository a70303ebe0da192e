"""The simulated proposer has the skill it states, and the study counts what every contender needs in one world."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from support.toy_search import TEXT, ToyCost, faster, measurement, us_of

from accelopt_agent.candidate import Candidate
from accelopt_agent.evaluation.evaluators import CostUnavailableError
from accelopt_agent.request import Budget
from accelopt_agent.search.budget import Meter
from accelopt_agent.search.node import Failure, Node
from accelopt_agent.search.proposer import ProposerError
from accelopt_benchmarks.search import marks
from accelopt_benchmarks.search.landscape import explored, pair_of, remembered
from accelopt_benchmarks.search.playing import BEAM, CONTENDERS, HYBRID, TREE, play
from accelopt_benchmarks.search.proposer import CallTokens, SimulatedProposer
from accelopt_benchmarks.search.summary import mean_of, ratio_of
from accelopt_benchmarks.search.world import StudyKernel, World
from accelopt_benchmarks.simulated.team import Skill

STEPS = 5
SUBJECT = StudyKernel(
    "toy",
    Path("/k.py"),
    TEXT.replace("    wide = False\n", "".join(f"    step{k} = 0\n" for k in range(STEPS))),
    "trn1",
)


class ToyWorld(World):
    """Each step makes it 20 % faster, the last one slower."""

    def rewrites(self, text: str):  # type: ignore[no-untyped-def]
        candidates = []
        for k in range(STEPS):
            if f"step{k} = 0" in text:
                new = faster(text.replace(f"step{k} = 0", f"step{k} = 1"), 20 if k < STEPS - 1 else -50)
                candidates.append(Candidate("kernel", new, f"rule:s{k}", f"step {k}", steps=(f"rule:s{k}",)))
        return tuple(c for c in candidates if self._open_to is None or c.text in self._open_to)


def world(log: Path | None = None) -> tuple[World, ToyCost]:
    cost = ToyCost(SUBJECT.text)
    return ToyWorld(SUBJECT, cost, log), cost


def root() -> Node:
    return Node(SUBJECT.text, SUBJECT.kernel, measurement(SUBJECT.text))


async def test_the_same_seed_says_the_same() -> None:
    answers = []
    for _ in range(2):
        proposer = SimulatedProposer(world()[0].rewrites, Random(7), Meter(Budget()))
        answers.append([[c.text for c in await proposer.propose(root())] for _ in range(20)])
    assert answers[0] == answers[1]


async def test_the_shares_of_what_it_says_are_its_skill() -> None:
    skill, meter = Skill(knows=0.6, breaks=0.3, crashes=0.5, repairs=0.8), Meter(Budget())
    proposer = SimulatedProposer(
        world()[0].rewrites, Random(1), meter, skill=skill, samples=2, tokens=CallTokens((10, 1), (20, 2))
    )
    texts = [c.text for _ in range(500) for c in await proposer.propose(root())]
    faults = [marks.fault_of(t) for t in texts]
    knows = sum(us_of(t) != 100 for t in texts) / len(texts)
    assert knows == pytest.approx(skill.knows, abs=0.06)
    assert sum(f is not None for f in faults) / len(faults) == pytest.approx(skill.breaks, abs=0.06)
    assert faults.count("crash") / sum(f is not None for f in faults) == pytest.approx(0.5, abs=0.1)
    assert (meter.tokens_in, meter.tokens_out) == (500 * (10 + 2 * 20), 500 * (1 + 2 * 2))
    failed = Node(marks.broken(SUBJECT.text, "wrong", 1), SUBJECT.kernel, root().measurement)
    failed.failure = Failure("wrong-result", "off")
    repairs = [(await proposer.propose(failed))[0].text for _ in range(300)]
    assert sum(marks.fault_of(t) is None for t in repairs) / 300 == pytest.approx(0.8, abs=0.07)
    failed.text = SUBJECT.text
    with pytest.raises(ProposerError):
        await proposer.propose(failed)


async def test_a_broken_text_fails_as_its_mark_says_and_the_others_cost_what_they_cost(
    tmp_path: Path,
) -> None:
    toy, cost = world(tmp_path / "kept.jsonl")
    text = SUBJECT.text
    assert (await toy.cost(marks.same(text, 1), "kernel")).latency.us == 100
    with pytest.raises(CostUnavailableError):
        await toy.cost(marks.broken(text, "crash", 2), "kernel")
    assert (await toy.cost(marks.broken(text, "wrong", 3), "kernel")).correctness.status == "failed"
    assert (await toy.check(text, "kernel"))[0].accepted
    assert not (await toy.check(marks.broken(text, "wrong", 3), "kernel"))[0].accepted
    assert len(cost.seen) == 1
    again, other = world(tmp_path / "kept.jsonl")
    assert (await again.cost(text, "kernel")).latency.us == 100
    assert not other.seen


@pytest.mark.slow
async def test_every_contender_gets_there_and_hybrid_with_fewest_candidates() -> None:
    toy, cost = world()
    exploration = await explored(toy, 200)
    goal = exploration.least_us * 1.1
    assert exploration.least_us == us_of(faster(faster(faster(faster(TEXT, 20), 20), 20), 20))
    assert len(exploration.steps) == 4
    toy.close(exploration.texts)
    costs = len(cost.seen)
    needed = {}
    for contender in CONTENDERS:
        outcomes = [await play(toy, contender, seed, goal_us=goal, candidates=150) for seed in range(1)]
        needed[contender.name] = sum(o.candidates for o in outcomes)
        assert all(o.candidates <= 150 and o.best_us <= 100 for o in outcomes)
        if contender.strategy in ("hybrid", "tree"):
            assert all(o.reached for o in outcomes), contender.name
    assert len(cost.seen) == costs  # the world is closed: costs are found out once
    assert needed[HYBRID] <= min(needed[BEAM], needed[TREE])
    beam = next(c for c in CONTENDERS if c.name == BEAM)
    again = await play(toy, beam, 0, goal_us=goal, candidates=150)
    assert again == await play(toy, beam, 0, goal_us=goal, candidates=150)


async def test_a_world_is_open_to_what_was_explored_and_to_nothing_else_that_its_file_holds(
    tmp_path: Path,
) -> None:
    whole, _ = world(tmp_path / "kept.jsonl")
    everything = (await explored(whole, 200)).texts
    part, cost = world(tmp_path / "kept.jsonl")
    exploration = await explored(part, 6)
    assert len(exploration.texts) == 7 < len(everything)
    assert not cost.seen
    part.close(exploration.texts)
    reached = {c.text for text in exploration.texts for c in part.rewrites(text)}
    assert reached <= exploration.texts


async def test_what_was_found_on_another_kernel_is_remembered_and_its_neighbours_are_explored() -> None:
    toy, _ = world()
    exploration = await explored(toy, 3)
    pair = await pair_of(toy, exploration)
    assert pair is not None
    assert (pair.slow.us, pair.fast.us) == (100, exploration.least_us)
    here, cost = world()
    candidates = await remembered(here, [pair])
    assert candidates
    assert not cost.seen  # asking the memory costs nothing
    more = await explored(here, 0, candidates)
    assert {c.text for c in candidates} < more.texts
    assert await pair_of(here, await explored(here, 0)) is None  # nothing better than the original


def test_intervals_hold_the_mean() -> None:
    values = [1.0, 2.0, 3.0, 10.0]
    interval = mean_of(values, Random(0))
    assert interval.low < interval.mean == 4.0 < interval.high
    assert ratio_of(values, [2 * v for v in values], Random(0)).mean == pytest.approx(0.5)
    assert mean_of([5.0], Random(0)).low == 5.0
