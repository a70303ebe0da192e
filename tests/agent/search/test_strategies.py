"""Each strategy in the toy world, and by its rules: what it asks about, what it tries, when it ends."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from support.toy_search import (
    FUSED,
    PATIENCE,
    TEXT,
    WIDE,
    WRONG,
    ToyCost,
    ToyModel,
    ToyProposer,
    faster,
    planned,
    play,
    request,
    start,
    us_of,
)

from accelopt_agent.candidate import Candidate
from accelopt_agent.events import CandidateTried, Finished, ProgressText, SuggestionFound
from accelopt_agent.request import Budget
from accelopt_agent.search.node import Node
from accelopt_agent.search.proposer import ProposerError
from accelopt_agent.search.strategies import STRATEGIES
from accelopt_benchmarks.search.comparators import REFLEXION, SAMPLING
from accelopt_memory.memory import Memory
from accelopt_profiling.measurement import FileMeasurement, KernelMeasurement

NAMES = [*sorted(STRATEGIES), REFLEXION, SAMPLING]


class Writer(ToyModel):
    """A model that makes the version 10 % faster each time, and every ``wrong``-th time wrong."""

    def __init__(self, wrong: int = 0) -> None:
        self.wrong, self.asked = wrong, 0
        self.about: list[str] = []

    def write(self, node: Node) -> str:
        self.asked += 1
        self.about.append(node.text)
        if node.failure is not None:
            return node.text.replace("wrong = 1\n    ", "")
        text = faster(node.text, 10).replace("return x", f"step{self.asked} = 1\n    return x")
        if self.wrong and self.asked % self.wrong == 0:
            text = text.replace("return x", "wrong = 1\n    return x")
        return text


@pytest.mark.parametrize("name", NAMES)
async def test_every_strategy_finds_what_rules_and_a_model_have_to_say(name: str) -> None:
    search_request = planned(request(budget=Budget(candidates=12, seconds=600.0)), strategy=name)
    events = await play(
        [ToyProposer({**WIDE, **FUSED, **WRONG}), Writer(wrong=3)], search_request=search_request
    )
    end = events[-1]
    assert isinstance(end, Finished)
    tried = [e for e in events if isinstance(e, CandidateTried)]
    assert end.usage.candidates == len(tried) <= 12
    suggestions = [e.suggestion for e in events if isinstance(e, SuggestionFound)]
    assert suggestions
    assert all("wrong" not in s.text for s in suggestions)
    if name != SAMPLING:
        assert any(len(s.steps) > 1 for s in suggestions)


@pytest.mark.parametrize("name", NAMES)
async def test_every_strategy_ends_when_nobody_has_anything_to_say(name: str) -> None:
    class Silent:
        name = "model"

        async def propose(self, node: Node) -> list[Candidate]:
            raise ProposerError("I do not know.")

    search_request = planned(request(), strategy=name)
    events = await asyncio.wait_for(
        play([ToyProposer(WIDE), Silent()], search_request=search_request), PATIENCE
    )
    assert isinstance(events[-1], Finished)
    assert [us_of(e.suggestion.text) for e in events if isinstance(e, SuggestionFound)] == [70]


@pytest.mark.parametrize("name", NAMES)
async def test_calls_and_costs_end_when_the_search_is_cancelled(name: str, memory: Memory) -> None:
    called = asyncio.Event()

    class Thinks:
        name = "model"

        async def propose(self, node: Node) -> list[Candidate]:
            called.set()
            await asyncio.Event().wait()
            return []

    cost = ToyCost(hang=asyncio.Event())
    run = start([Thinks()], memory, planned(request(), strategy=name), cost)

    async def read() -> None:
        async for _ in run:
            pass

    reading = asyncio.create_task(read())
    await called.wait()
    reading.cancel()  # the call and the cost never end by themselves
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(reading, PATIENCE)
    assert [r.status for r in memory.run_log.runs()] == ["cancelled"]


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
            raise ProposerError("Enough.", final=True)

    class Works(ToyCost):
        working = asyncio.Event()

        async def cost(self, text: str, kernel: str) -> KernelMeasurement:
            self.working.set()
            await release.wait()
            return await super().cost(text, kernel)

    cost = Works()
    playing = asyncio.create_task(
        play([Thinks()], search_request=planned(request(), strategy="beam"), cost=cost)
    )
    await asyncio.wait_for(both.wait(), PATIENCE)
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
            original = await super().baseline()
            return replace(original, kernels=[replace(k, percent_of_peak=40.0) for k in original.kernels])

        async def cost(self, text: str, kernel: str) -> KernelMeasurement:
            return replace(await super().cost(text, kernel), percent_of_peak=4000 / us_of(text))

    rules = {f"s{k}": (f"step{k} = 0", f"step{k} = 1", 20) for k in range(6)}
    text = TEXT.replace("    wide = False\n", "".join(f"    step{k} = 0\n" for k in range(6)))
    search_request = request(text, Budget(percent_of_peak=60.0))
    events = await play([ToyProposer(rules)], search_request=search_request, cost=Percent(text))
    assert any("enough (goal 60 %)" in e.text for e in events if isinstance(e, ProgressText))
    best = max(4000 / us_of(e.suggestion.text) for e in events if isinstance(e, SuggestionFound))
    whole = await play([ToyProposer(rules)], search_request=request(text), cost=Percent(text))
    assert best >= 60
    assert events[-1].usage.candidates < whole[-1].usage.candidates  # type: ignore[union-attr]


async def test_hybrid_goes_deep_before_wide() -> None:
    """Six steps that each gain: as good as one candidate per step, and not one per pair of steps."""
    rules = {f"s{k}": (f"step{k} = 0", f"step{k} = 1", 30) for k in range(6)}
    text = TEXT.replace("    wide = False\n", "".join(f"    step{k} = 0\n" for k in range(6)))
    cost = ToyCost(text)
    search_request = planned(request(text), parallel=1, options={"patience": 12})
    events = await play([ToyProposer(rules)], search_request=search_request, cost=cost)
    fastest = min(us_of(t) for t in cost.seen)
    assert max(len(e.suggestion.steps) for e in events if isinstance(e, SuggestionFound)) == 6
    assert [us_of(t) for t in cost.seen].index(fastest) + 1 == 6
    assert len(cost.seen) == 6 + 12  # then its patience, with older versions


async def test_hybrid_stops_asking_when_a_call_is_not_expected_to_pay() -> None:
    class Idle(Writer):
        def write(self, node: Node) -> str:
            self.asked += 1
            return node.text + f"# {self.asked}\nN{self.asked} = 1\n"

    idle = Idle()
    await play([ToyProposer(WIDE), idle], search_request=planned(request(), options={"model_share": 0.0}))
    assert idle.asked == 2
    await play([ToyProposer(WIDE), writer := Idle()])
    assert writer.asked == 18  # 30 % of 60 candidates are kept for it
    eager = Writer()
    await play([eager], search_request=request(budget=Budget(candidates=6)))
    assert eager.asked == 6  # each call pays
