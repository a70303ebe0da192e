"""A search that rests, goes on, is interrupted and goes on again, and is looked back at."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest
from support.toy_search import (
    FUSED,
    PATIENCE,
    TEXT,
    WIDE,
    WRONG,
    ToyCost,
    ToyGate,
    ToyProposer,
    planned,
    play,
    request,
)

from accelopt_agent.events import CandidateTried, Event, Finished, ProgressText, SuggestionFound
from accelopt_agent.optimize import drive
from accelopt_agent.request import Budget, OptimizeRequest
from accelopt_agent.search.budget import Meter
from accelopt_agent.search.control import SearchControl
from accelopt_agent.search.history import interrupted, past_runs
from accelopt_agent.search.paid import run_content
from accelopt_agent.search.resumable_run import ResumableRun
from accelopt_memory.memory import Memory
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.measurement import KernelMeasurement

E = TypeVar("E")
HASH = find_kernels(TEXT).kernels[0].content_hash


def resumable(memory: Memory) -> ResumableRun | None:
    """The run that an editor offers to continue."""
    return interrupted(memory, HASH, "trn1", "toy", run_content(request()))


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory.open(tmp_path / "memory.db")


RULES = [ToyProposer({**WIDE, **FUSED, **WRONG})]


class Held(ToyCost):
    """Says when it was asked, and answers when it is let go."""

    def __init__(self) -> None:
        super().__init__(hang=asyncio.Event())
        self.asked = asyncio.Event()

    async def cost(self, text: str, kernel: str) -> KernelMeasurement:
        self.asked.set()
        return await super().cost(text, kernel)


def begun(
    memory: Memory | None,
    pause: SearchControl,
    cost: ToyCost | None = None,
    search_request: OptimizeRequest | None = None,
) -> AsyncGenerator[Event, None]:
    rules = [ToyProposer({**WIDE, **FUSED, **WRONG})]
    return drive(
        search_request or request(), cost or ToyCost(), ToyGate(), memory, "toy", lambda meter: rules, pause
    )


def of(kind: type[E], events: list[Event]) -> list[E]:
    return [e for e in events if isinstance(e, kind)]


async def until(events: AsyncGenerator[Event, None], text: str) -> list[Event]:
    """The events up to the line that holds ``text``."""
    earlier: list[Event] = []
    async for event in events:
        earlier.append(event)
        if isinstance(event, ProgressText) and text in event.text:
            return earlier
    raise AssertionError(f"{text!r} was never said; {earlier}")


async def test_what_runs_is_finished_and_nothing_new_begins(memory: Memory) -> None:
    """The switch is thrown while two candidates are being tried: both are taken in, and no third begins."""
    hang = asyncio.Event()
    cost, pause = ToyCost(hang=hang), SearchControl()
    events = begun(memory, pause, cost)
    rest = asyncio.ensure_future(until(events, "paused"))
    await asyncio.wait_for(cost.busy.wait(), PATIENCE)
    pause.pause()
    hang.set()
    run_events = await asyncio.wait_for(rest, PATIENCE)
    assert len(of(CandidateTried, run_events)) == len(cost.seen) == 2
    waiting = asyncio.ensure_future(events.__anext__())
    done, _ = await asyncio.wait([waiting], timeout=0.1)
    assert not done
    pause.go_on()
    message = await asyncio.wait_for(waiting, PATIENCE)
    assert "going on" in cast(ProgressText, message).text
    rest_of_it = await _all(events)
    assert of(Finished, rest_of_it)[0].reason == of(Finished, await play(RULES))[0].reason
    kinds = [e.kind for e in memory.run_log.events(memory.run_log.runs()[0].id)]
    assert (kinds.count("paused"), kinds.count("went on")) == (1, 1)


async def test_going_on_wakes_a_search_whose_last_candidate_still_runs() -> None:
    cost, pause = Held(), SearchControl(on=True)
    events = begun(None, pause, cost, planned(request(), parallel=1))
    await until(events, "paused")
    pause.go_on()
    rest = asyncio.ensure_future(_all(events))
    await asyncio.wait_for(cost.asked.wait(), PATIENCE)
    pause.pause()
    pause.go_on()
    assert cost.hang is not None
    cost.hang.set()
    assert of(Finished, await asyncio.wait_for(rest, PATIENCE))


async def test_a_pause_uses_no_time() -> None:
    clock = iter(range(0, 1000, 100))
    meter = Meter(Budget(seconds=250.0), clock=lambda: float(next(clock)))  # starts at 0
    with meter.resting():  # from 100 to 200
        pass
    assert meter.seconds_left == 50.0  # at 300, of which 100 do not count


async def test_a_paused_search_is_cancelled_at_once(memory: Memory) -> None:
    events = begun(memory, SearchControl(on=True))
    await until(events, "paused")
    await asyncio.wait_for(events.aclose(), PATIENCE)
    assert memory.run_log.runs()[0].status == "cancelled"
    assert resumable(memory) is None  # it had found out nothing


async def test_a_run_interrupted_twice_pays_for_nothing_twice(memory: Memory) -> None:
    """The second run is ended before it has repeated what the first one knew."""
    first = begun(memory, SearchControl())
    tried = 0
    async for event in first:
        tried += isinstance(event, CandidateTried)
        if tried == 3:
            break
    await first.aclose()
    resumable_run = resumable(memory)
    assert resumable_run is not None
    assert (resumable_run.kernel, resumable_run.tried) == ("kernel", 3)

    search_request = replace(request(), resume=True, instructions="keep it")
    second = begun(memory, SearchControl(), search_request=search_request)
    async for event in second:
        if isinstance(event, CandidateTried):
            break
    await second.aclose()
    again = resumable(memory)
    assert again is not None
    assert (again.tried, again.instructions, again.run != resumable_run.run) == (1, "keep it", True)

    cost = ToyCost()
    third = [e async for e in begun(memory, SearchControl(), cost, replace(request(), resume=True))]
    usage = of(Finished, third)[0].usage
    assert usage.remembered == 3
    assert len(cost.seen) == usage.candidates
    whole = [e.suggestion.id for e in of(SuggestionFound, await play(RULES))]
    assert {e.suggestion.id for e in of(SuggestionFound, third)} == set(whole)
    assert resumable(memory) is None  # the last run came to its end


async def test_runs_are_looked_back_at_step_by_step(memory: Memory) -> None:
    suggestions = of(SuggestionFound, await _all(begun(memory, SearchControl())))
    (run,) = past_runs(memory, "/k.py")
    assert past_runs(memory, "/other.py") == []
    steps = [f"{s.what}: {s.outcome}" for s in run.steps]
    assert steps[0] == "took kernel as it was: "
    assert any(line.startswith("tried do wide: faster") for line in steps)
    assert any("refused by the gate: element 7 is off" in line for line in steps)
    assert list(run.suggestions) == [e.suggestion.id for e in suggestions]
    assert run.tried == sum(s.what.startswith("tried") for s in run.steps) > 3
    assert [s.number for s in run.steps] == sorted(s.number for s in run.steps)


def test_events_of_another_version_are_left_out(memory: Memory) -> None:
    run = memory.run_log.start("/k.py", "kernel", HASH, "trn1", "toy", {"instructions": 7})
    broken: list[tuple[str, dict[str, Any]]] = [
        ("baseline", {}), ("candidate tried", {"summary": 3}), ("candidate judged", {"verdict": []}), ("new kind", {}),
    ]  # fmt: skip
    for number, (kind, data) in enumerate(broken):
        memory.run_log.add_event(run, kind, data, f"key {number}")
    assert [s.what for s in past_runs(memory)[0].steps] == ["new kind"]


async def _all(events: AsyncGenerator[Event, None]) -> list[Event]:
    return [e async for e in events]
