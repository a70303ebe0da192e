"""Each strategy in the toy world, and by its rules: what it asks about, what it tries, when it ends."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from toy_search import (
    FUSED,
    TEXT,
    WIDE,
    WRONG,
    ToyCost,
    ToyProposer,
    faster,
    measurement,
    play,
    request,
    start,
    us_of,
)

from accelopt_agent.candidate import Candidate
from accelopt_agent.events import CandidateTried, Finished, ProgressText, SuggestionFound
from accelopt_agent.node import Failure, Node
from accelopt_agent.proposer import ProposerFailed
from accelopt_agent.request import Budget
from accelopt_agent.strategies import STRATEGIES, strategy_named
from accelopt_agent.strategy import Answered, Ask, Judge, Judged, Room, Step, Strategy, Tried, Try
from accelopt_agent.trial import Trial
from accelopt_memory.memory import Memory
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.measurement import FileMeasurement

NAMES = sorted(STRATEGIES)


class Writer:
    """A model that makes the version 10 % faster each time, and every ``wrong``-th time wrong."""

    name = "model"

    def __init__(self, wrong: int = 0) -> None:
        self.wrong, self.asked = wrong, 0
        self.about: list[str] = []

    async def propose(self, node: Node) -> list[Candidate]:
        self.asked += 1
        self.about.append(node.text)
        if node.failure is not None:
            return [self._said(node, node.text.replace("wrong = 1\n    ", ""))]
        text = faster(node.text, 10).replace("return x", f"step{self.asked} = 1\n    return x")
        if self.wrong and self.asked % self.wrong == 0:
            text = text.replace("return x", "wrong = 1\n    return x")
        return [self._said(node, text)]

    def _said(self, node: Node, text: str) -> Candidate:
        return Candidate("kernel", text, "model:toy", f"step {self.asked}")


@pytest.mark.parametrize("name", NAMES)
async def test_every_strategy_finds_what_rules_and_a_model_have_to_say(name: str) -> None:
    asked = replace(request(budget=Budget(candidates=12, seconds=60.0)), strategy=name)
    events = await play([ToyProposer({**WIDE, **FUSED, **WRONG}), Writer(wrong=3)], asked=asked)
    end = events[-1]
    assert isinstance(end, Finished)
    tried = [e for e in events if isinstance(e, CandidateTried)]
    assert end.usage.candidates == len(tried) <= 12
    found = [e.suggestion for e in events if isinstance(e, SuggestionFound)]
    assert found
    assert all("wrong" not in s.text for s in found)
    if name != "sampling":
        assert any(len(s.steps) > 1 for s in found)


@pytest.mark.parametrize("name", NAMES)
async def test_every_strategy_ends_when_nobody_has_anything_to_say(name: str) -> None:
    class Silent:
        name = "model"

        async def propose(self, node: Node) -> list[Candidate]:
            raise ProposerFailed("I do not know.")

    asked = replace(request(), strategy=name)
    events = await asyncio.wait_for(play([ToyProposer(WIDE), Silent()], asked=asked), 30)
    assert isinstance(events[-1], Finished)
    assert [us_of(e.suggestion.text) for e in events if isinstance(e, SuggestionFound)] == [70]


@pytest.mark.parametrize("name", NAMES)
async def test_calls_and_costs_end_within_a_second_of_cancelling(name: str, memory: Memory) -> None:
    called = asyncio.Event()

    class Thinks:
        name = "model"

        async def propose(self, node: Node) -> list[Candidate]:
            called.set()
            await asyncio.Event().wait()
            return []

    cost = ToyCost(hang=asyncio.Event())
    run = start([Thinks()], memory, replace(request(), strategy=name), cost)

    async def read() -> None:
        async for _ in run:
            pass

    reading = asyncio.create_task(read())
    await called.wait()
    began = time.monotonic()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert time.monotonic() - began < 1.0
    assert [r.status for r in memory.runs()] == ["cancelled"]


@pytest.fixture
def memory(tmp_path: object) -> Memory:
    from pathlib import Path

    assert isinstance(tmp_path, Path)
    return Memory.open(tmp_path / "memory.db")


async def test_a_model_thinks_while_the_device_works() -> None:
    both = asyncio.Event()
    release = asyncio.Event()

    class Thinks:
        name, asked = "model", 0

        async def propose(self, node: Node) -> list[Candidate]:
            self.asked += 1
            if self.asked == 1:
                return [Candidate("kernel", faster(node.text, 10), "model:toy", "first")]
            await cost.working.wait()
            both.set()
            raise ProposerFailed("Enough.", final=True)

    class Works(ToyCost):
        working = asyncio.Event()

        async def cost(self, text: str, kernel: str):  # type: ignore[no-untyped-def]
            self.working.set()
            await release.wait()
            return await super().cost(text, kernel)

    cost = Works()
    playing = asyncio.create_task(play([Thinks()], asked=replace(request(), strategy="beam"), cost=cost))
    await asyncio.wait_for(both.wait(), 5)
    release.set()
    await playing


async def test_answers_that_were_paid_for_are_not_paid_for_again(memory: Memory) -> None:
    first = Writer()
    interrupted = start([first], memory)
    tried = 0
    async for event in interrupted:
        tried += isinstance(event, CandidateTried)
        if tried == 3:
            break
    await interrupted.aclose()  # type: ignore[attr-defined]
    second = Writer()
    second.asked = first.asked
    cost = ToyCost()
    events = await play([second], memory, replace(request(budget=Budget(candidates=2)), resume=True), cost)
    usage = events[-1].usage  # type: ignore[union-attr]
    assert usage.remembered == 3
    assert not set(second.about) & set(first.about[:3])
    assert usage.candidates == len(cost.seen) == 2


async def test_a_search_ends_at_the_percent_of_peak_that_is_enough() -> None:
    class Percent(ToyCost):
        async def baseline(self) -> FileMeasurement:
            known = await super().baseline()
            return replace(known, kernels=[replace(k, percent_of_peak=40.0) for k in known.kernels])

        async def cost(self, text: str, kernel: str):  # type: ignore[no-untyped-def]
            return replace(await super().cost(text, kernel), percent_of_peak=4000 / us_of(text))

    rules = {f"s{k}": (f"step{k} = 0", f"step{k} = 1", 20) for k in range(6)}
    text = TEXT.replace("    wide = False\n", "".join(f"    step{k} = 0\n" for k in range(6)))
    asked = request(text, Budget(percent_of_peak=60.0))
    events = await play([ToyProposer(rules)], asked=asked, cost=Percent(text))
    assert any("enough (goal 60 %)" in e.text for e in events if isinstance(e, ProgressText))
    best = max(4000 / us_of(e.suggestion.text) for e in events if isinstance(e, SuggestionFound))
    whole = await play([ToyProposer(rules)], asked=request(text), cost=Percent(text))
    assert best >= 60
    assert events[-1].usage.candidates < whole[-1].usage.candidates  # type: ignore[union-attr]


async def test_hybrid_goes_deep_before_wide() -> None:
    """Six steps that each gain: as good as one candidate per step, and not one per pair of steps."""
    rules = {f"s{k}": (f"step{k} = 0", f"step{k} = 1", 30) for k in range(6)}
    text = TEXT.replace("    wide = False\n", "".join(f"    step{k} = 0\n" for k in range(6)))
    cost = ToyCost(text)
    events = await play([ToyProposer(rules)], asked=replace(request(text), parallel=1), cost=cost)
    fastest = min(us_of(t) for t in cost.seen)
    assert max(len(e.suggestion.steps) for e in events if isinstance(e, SuggestionFound)) == 6
    assert [us_of(t) for t in cost.seen].index(fastest) + 1 == 6
    assert len(cost.seen) == 6


async def test_hybrid_stops_asking_when_a_call_is_not_expected_to_pay() -> None:
    class Idle(Writer):
        async def propose(self, node: Node) -> list[Candidate]:
            self.asked += 1
            return [
                Candidate("kernel", node.text + f"# {self.asked}\nN{self.asked} = 1\n", "model:toy", "idle")
            ]

    idle = Idle()
    await play([ToyProposer(WIDE), idle])
    assert idle.asked == 2
    eager = Writer()
    await play([eager], asked=request(budget=Budget(candidates=6)))
    assert eager.asked == 6  # each call pays


# By hand: the strategies as they decide, without a search around them


def made(parent: Node | None, us: int, number: int, **known: object) -> Node:
    text = TEXT.replace("time_us = 100", f"time_us = {us}").replace("fused", f"fused{number}")
    kernel = next(k for k in find_kernels(text).kernels if k.name == "kernel")
    candidate = Candidate("kernel", text, "rule:toy", f"{number}", steps=("rule:toy",)) if parent else None
    node = Node(text, kernel, measurement(text), candidate, parent, ("rule:toy", str(number)), str(number))
    for name, value in known.items():
        setattr(node, name, value)
    if parent is not None:
        parent.children.append(node)
    return node


def answer(strategy: Strategy, ask: Ask, *nodes: Node) -> None:
    """``ask`` is answered with rewrites that become ``nodes`` as soon as they are tried."""
    trials = [Trial(n.candidate, ask.node, n.fingerprint) for n in nodes if n.candidate is not None]
    strategy.observe(Answered(ask, trials))
    becomes = dict(zip(map(id, trials), nodes, strict=True))
    while isinstance(step := strategy.choose(Room(asks=False)), (Try, Judge)):
        if isinstance(step, Judge):
            step.node.proof = "accepted"
            strategy.observe(Judged(step.node))
        else:
            strategy.observe(Tried(step.trial, becomes[id(step.trial)]))


def asks(strategy: Strategy, most: int = 100) -> list[Ask]:
    found: list[Ask] = []
    while len(found) < most and isinstance(step := strategy.choose(Room()), Ask):
        found.append(step)
    return found


def test_beam_asks_so_often_about_so_many_and_the_incumbent_competes() -> None:
    root = made(None, 100, 0)
    beam = strategy_named("beam", root, ["model"], target="trn1", depth=16, width=2, breadth=3, rounds=2)
    first = asks(beam)
    assert [a.node for a in first] == [root] * 3
    good, slow = made(root, 50, 1, clearly_faster=True), made(root, 400, 2)
    answer(beam, first[0], good, slow)
    strategy_silent = [Answered(a, ()) for a in first[1:]]
    for seen in strategy_silent:
        beam.observe(seen)
    step = beam.choose(Room())
    while isinstance(step, Judge):
        step.node.proof = "accepted"
        beam.observe(Judged(step.node))
        step = beam.choose(Room())
    assert isinstance(step, Ask)
    second = [step, *asks(beam)]
    assert [a.node for a in second] == [good] * 3 + [root] * 3  # not the slow one
    for ask in second:
        beam.observe(Answered(ask, ()))
    assert beam.choose(Room()) is None
    assert beam.best() is good


def test_tree_asks_about_the_root_only_so_often() -> None:
    root = made(None, 100, 0)
    tree = strategy_named("tree", root, ["model"], target="trn1", depth=16, epsilon=0.0, root_children=2)
    for number in (1, 2):
        ask = tree.choose(Room())
        assert isinstance(ask, Ask)
        assert ask.node is root
        answer(tree, ask, made(root, 200, number))
    ask = tree.choose(Room())
    assert isinstance(ask, Ask)
    assert ask.node is not root


def test_tree_closes_a_branch_whose_children_all_failed_and_credits_near_misses() -> None:
    root = made(None, 100, 0)
    tree = STRATEGIES["tree"](root, ["model"], target="trn1", epsilon=0.0, root_children=1, dead_after=2)
    ask = tree.choose(Room())
    assert isinstance(ask, Ask)
    good = made(root, 50, 1)
    answer(tree, ask, good)
    near, far = Failure("wrong-result", "row 3"), Failure("kernel-raised", "no")
    about = []
    for number in range(2, 6):
        ask = tree.choose(Room())
        assert isinstance(ask, Ask)
        about.append(ask.node)
        failed = made(ask.node, 10, number, failure=near if number == 2 else far, proof="refused")
        failed.measurement = replace(failed.measurement)
        answer(tree, ask, failed)
    children = good.children
    assert about[:3] == [good, good, good]
    assert about[3] is children[0]  # the branch is closed: its near miss is repaired before anything else
    score = tree.score  # type: ignore[attr-defined]
    assert good.us < score(children[0]) < score(children[1]) < root.us


def test_tree_draws_leaves() -> None:
    root = made(None, 100, 0)
    tree = strategy_named("tree", root, ["model"], target="trn1", depth=16, epsilon=1.0, seed=1)
    ask = tree.choose(Room())
    assert isinstance(ask, Ask)
    leaves = [made(root, 100 + k, k) for k in range(1, 5)]
    answer(tree, ask, *leaves)
    about = [a.node for a in asks(tree, 4)]
    assert set(about) == set(leaves)


@settings(max_examples=40, deadline=None)
@example("reflexion", 0, [1, 297, 1, 33, 1, 33, 1])  # a chain of repairs ended one version too deep
@given(st.sampled_from(NAMES), st.integers(0, 2**32), st.lists(st.integers(1, 300), min_size=1, max_size=30))
def test_no_strategy_stands_still_or_asks_about_what_is_unsound(
    name: str, seed: int, times: list[int]
) -> None:
    root, random = made(None, 100, 0), Random(seed)
    strategy = strategy_named(name, root, ["rules", "model"], target="trn1", depth=8, seed=seed)
    begun: list[Step] = []
    number = 0
    for us in times * 3:
        while len(begun) < 4 and (step := strategy.choose(Room())) is not None:
            begun.append(step)
        if not begun:
            assert strategy.choose(Room()) is None
            return
        step = begun.pop(random.randrange(len(begun)))
        if isinstance(step, Ask):
            assert step.node.sound or step.node.failure is not None
            assert step.node.depth <= 8
            number += 1
            origin = f"rule:r{number % 5}" if step.proposer == "rules" else "model:toy"
            candidate = Candidate("kernel", f"{number}", origin, f"{number % 7}", steps=(origin,))
            strategy.observe(Answered(step, [Trial(candidate, step.node, f"{number}")]))
        elif isinstance(step, Try):
            node = made(step.trial.parent, us, number)
            node.candidate, node.step = step.trial.composed, step.trial.step
            node.clearly_faster = us < 80
            node.repair = step.trial.repairs
            if us % 3 == 0:
                node.failure, node.proof = Failure("wrong-result", "off"), "refused"
            strategy.observe(Tried(step.trial, node))
        else:
            step.node.proof = "accepted" if us % 2 else "refused"
            if step.node.proof == "refused":
                step.node.failure = Failure("wrong-result", "off")
            strategy.observe(Judged(step.node))
    assert strategy.best().proof == "accepted" or strategy.best() is root


def test_there_is_no_other_strategy() -> None:
    with pytest.raises(KeyError):
        strategy_named("guessing", made(None, 100, 0), [], target="trn1", depth=1)
