"""A search ends when its time is up or somebody stops it, whatever runs at that moment."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from support.toy_search import FUSED, PATIENCE, TEXT, WIDE, ToyCost, ToyGate, ToyProposer, request

from accelopt_agent.candidate import Candidate
from accelopt_agent.events import CandidateTried, Event, Finished, SuggestionFound
from accelopt_agent.model.answer import Answer
from accelopt_agent.model.proposer import ModelProposer
from accelopt_agent.model.settings import ModelSettings
from accelopt_agent.optimize import drive, optimize
from accelopt_agent.request import Budget
from accelopt_agent.search import control as stopping
from accelopt_agent.search.budget import Meter
from accelopt_agent.search.control import SearchControl
from accelopt_agent.search.history import past_run
from accelopt_agent.search.node import Node
from accelopt_memory.memory import Memory
from accelopt_profiling.examination import examine
from accelopt_profiling.gate.request import Tell, untold
from accelopt_profiling.gate.verdict import Verdict
from accelopt_profiling.hosts.host import HostFacts, JobMessage
from accelopt_profiling.jobs import Job
from accelopt_profiling.measurement import FileMeasurement, KernelMeasurement
from accelopt_profiling.receipt import Receipt
from accelopt_profiling.waiting import interruptible


async def _never(stubborn: bool) -> None:
    """Do not return; where it is ``stubborn``, not when it is cancelled either, until the test is over."""
    over, cancelled = _OVER[-1], False
    while not over.is_set():
        try:
            await over.wait()
        except asyncio.CancelledError:
            if not stubborn:
                raise
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError


_OVER: list[asyncio.Event] = []


class Clock:
    """Counts the seconds since what never ends has begun: a busy machine takes its time until then."""

    def __init__(self, reached: asyncio.Event) -> None:
        self._reached, self._began = reached, 0.0

    def __call__(self) -> float:
        if not self._reached.is_set():
            return 0.0
        self._began = self._began or time.monotonic()
        return time.monotonic() - self._began


_CLOCKS: list[Clock] = []


@dataclass
class World:
    """A search in which what stands in ``stuck`` never ends. ``reached`` is set when it begins."""

    stuck: str
    stubborn: bool = False
    reached: asyncio.Event = field(default_factory=asyncio.Event)

    async def at(self, stage: str) -> None:
        if stage == self.stuck:
            self.reached.set()
            await _never(self.stubborn)


class Cost(ToyCost):
    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    async def baseline(self) -> FileMeasurement:
        await self._world.at("baseline")
        return await super().baseline()

    async def cost(self, text: str, kernel: str) -> KernelMeasurement:
        if "fused = True" in text:
            await self._world.at("measuring")
        return await super().cost(text, kernel)


class Gate(ToyGate):
    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    async def check(self, text: str, kernel: str, tell: Tell = untold) -> tuple[Verdict, Receipt]:
        await self._world.at("checking")
        return await super().check(text, kernel, tell)


class Burning:
    """A rule that loops; ``ended`` is set when it is ended."""

    name = "rules"

    def __init__(self, reached: asyncio.Event) -> None:
        self._reached, self.ended = reached, threading.Event()

    async def propose(self, node: Node) -> list[Candidate]:
        self._reached.set()
        return await interruptible(self._loop)

    def _loop(self) -> list[Candidate]:
        try:
            while True:
                pass
        finally:
            self.ended.set()


class Silent:
    """A model that never answers."""

    name = "model"

    def __init__(self, world: World) -> None:
        self._world = world

    async def propose(self, node: Node) -> list[Candidate]:
        await self._world.at("a model's answer")
        return []


WAYS: dict[str, tuple[str, str]] = {"deadline": ("early", "is used up"), "stop": ("stopped", "a signal")}
STAGES = ["baseline", "measuring", "checking", "a model's answer"]


async def ended(
    way: str, reached: asyncio.Event, start: Callable[[Budget, SearchControl], AsyncGenerator[Event, None]]
) -> list[Event]:
    """All events of a search whose time is up after something never ended, or that is stopped then."""
    control, over = SearchControl(), asyncio.Event()
    _OVER.append(over)
    _CLOCKS.append(Clock(reached))
    events = start(Budget(seconds=0.5 if way == "deadline" else None), control)
    reading = asyncio.ensure_future(_all(events))
    await asyncio.wait_for(reached.wait(), PATIENCE)
    if way == "stop":
        control.stop("a signal")
    try:
        return await asyncio.wait_for(reading, PATIENCE)
    finally:
        over.set()


async def _all(events: AsyncGenerator[Event, None]) -> list[Event]:
    return [event async for event in events]


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (
        stopping.LAST_CHECK + 2 * stopping.PATIENCE < 15
    )  # the end of a search, and of its run in the memory
    for name in ("LAST_CHECK", "PATIENCE"):
        monkeypatch.setattr(stopping, name, 0.1)
    monkeypatch.setattr("accelopt_agent.optimize.Meter", lambda budget: Meter(budget, _CLOCKS[-1]))


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory.open(tmp_path / "memory.db")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stubborn", [False, True], ids=["", "stubborn"])
@pytest.mark.parametrize("stage", STAGES)
async def test_whatever_runs_a_search_ends_with_what_it_has(
    memory: Memory, way: str, stage: str, stubborn: bool
) -> None:
    world = World(stage, stubborn)
    proposers = [ToyProposer({**WIDE, **FUSED}), Silent(world)]

    def start(budget: Budget, control: SearchControl) -> AsyncGenerator[Event, None]:
        search_request = request(budget=budget)
        return drive(
            search_request, Cost(world), Gate(world), memory, "toy", lambda meter: proposers, control
        )

    events = await ended(way, world.reached, start)
    last = events[-1]
    assert isinstance(last, Finished)
    assert (last.ending, WAYS[way][1] in last.reason) == (WAYS[way][0], True)
    tried = [e for e in events if isinstance(e, CandidateTried)]
    assert last.usage.candidates >= len(tried)
    assert "no rewrite was proposed" not in last.reason
    checked = {e.suggestion.text for e in events if isinstance(e, SuggestionFound)}
    faster = {e.candidate.text for e in tried if e.outcome == "faster"}
    assert {v.candidate.text for v in last.unchecked} == faster - checked
    assert stage != "checking" or last.unchecked
    (run,) = memory.run_log.runs()
    assert (run.id, run.status) == (last.run, "finished" if way == "deadline" else "cancelled")
    assert past_run(memory, run).can_continue


@pytest.mark.parametrize("way", WAYS)
async def test_a_rule_that_loops_is_ended_too(memory: Memory, way: str) -> None:
    reached = asyncio.Event()
    rule = Burning(reached)

    def start(budget: Budget, control: SearchControl) -> AsyncGenerator[Event, None]:
        search_request = request(budget=budget)
        return drive(search_request, ToyCost(), ToyGate(), memory, "toy", lambda meter: [rule], control)

    events = await ended(way, reached, start)
    assert isinstance(events[-1], Finished)
    assert events[-1].ending == WAYS[way][0]
    assert await asyncio.to_thread(rule.ended.wait, PATIENCE)


class StuckMemory:
    """A memory that answers nothing until it is let go."""

    def __init__(self, reached: Callable[[], None]) -> None:
        self._reached, self.going = reached, threading.Event()

    def __getattr__(self, name: str) -> Any:
        self._reached()
        self.going.wait(PATIENCE)
        raise AttributeError(name)


@pytest.mark.parametrize("way", WAYS)
async def test_a_memory_that_does_not_answer_holds_up_no_end(way: str) -> None:
    reached, loop = asyncio.Event(), asyncio.get_running_loop()
    memory = StuckMemory(lambda: loop.call_soon_threadsafe(reached.set))

    def start(budget: Budget, control: SearchControl) -> AsyncGenerator[Event, None]:
        search_request, rules = request(budget=budget), [ToyProposer(WIDE)]
        return drive(search_request, ToyCost(), ToyGate(), memory, "toy", lambda meter: rules, control)  # type: ignore[arg-type]

    try:
        events = await ended(way, reached, start)
    finally:
        memory.going.set()
    assert isinstance(events[-1], Finished)
    assert events[-1].ending == WAYS[way][0]


class StuckHost:
    """A host whose jobs never end."""

    name, remote = "stuck", False

    def __init__(self) -> None:
        self.reached = asyncio.Event()

    async def facts(self) -> HostFacts:
        return HostFacts("stuck")

    async def run(self, job: Job) -> AsyncGenerator[JobMessage, None]:
        self.reached.set()
        await _never(True)
        yield JobMessage("", None)

    async def preload(self, runtime: Any) -> None:
        pass


PROBLEM = """
def get_inputs():
    return []


def reference():
    return None
"""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("text", [TEXT, TEXT + PROBLEM], ids=["inference", "the first profile"])
async def test_a_host_whose_jobs_never_end(way: str, text: str, tmp_path: Path) -> None:
    host = StuckHost()

    def start(budget: Budget, control: SearchControl) -> AsyncGenerator[Event, None]:
        search_request = replace(request(text, budget=budget), file=examine(tmp_path / "k.py", text))
        return optimize(search_request, host, None, control=control)  # type: ignore[arg-type]

    began = time.monotonic()
    events = await ended(way, host.reached, start)
    last = events[-1]
    assert isinstance(last, Finished)
    assert last.ending == WAYS[way][0]
    assert "not measured yet" in last.reason
    assert last.usage.seconds <= time.monotonic() - began


@pytest.mark.parametrize("way", WAYS)
async def test_a_question_without_an_answer_is_in_the_ledger(way: str) -> None:
    reached = asyncio.Event()

    async def asked(*question: Any, **options: Any) -> Answer:
        reached.set()
        await asyncio.Event().wait()
        raise AssertionError("nobody answers")

    def start(budget: Budget, control: SearchControl) -> AsyncGenerator[Event, None]:
        model = ModelSettings("http://127.0.0.1:1/v1", "toy", price_in=1.0, price_out=10.0)

        def team(meter: Meter) -> list[ModelProposer]:
            return [ModelProposer(model, meter, "trn1", query=asked)]

        return drive(request(budget=budget), ToyCost(), ToyGate(), None, "toy", team, control)

    last = (await ended(way, reached, start))[-1]
    assert isinstance(last, Finished)
    (call,) = last.calls
    assert (call.role, call.estimated, call.tokens_out) == ("planner", True, 0)
    assert call.tokens_in > 100
    assert call.money is not None
    assert "before the answer" in call.fault
