"""The search in a toy world: what is tried, what goes through the gate, what is offered and what is remembered."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import TypeVar

import pytest
from support.toy_search import (
    FUSED,
    RAISES,
    SLOW,
    TEXT,
    TINY,
    WIDE,
    WRONG,
    ToyCost,
    ToyGate,
    ToyProposer,
    planned,
    play,
    request,
    start,
    us_of,
)

from accelopt_agent.candidate import Candidate
from accelopt_agent.events import (
    BaselineMeasured,
    CandidateJudged,
    CandidateTried,
    Event,
    Finished,
    ProgressText,
    SuggestionFound,
)
from accelopt_agent.request import Budget
from accelopt_agent.search.budget import Meter
from accelopt_agent.search.node import Node
from accelopt_agent.search.proposer import ProposerError
from accelopt_agent.suggestions.suggestion import Suggestion
from accelopt_memory.memory import Memory
from accelopt_profiling.gate.request import Tell, untold
from accelopt_profiling.gate.verdict import Verdict
from accelopt_profiling.measurement import KernelMeasurement
from accelopt_profiling.plain import from_plain
from accelopt_profiling.quantity import Known
from accelopt_profiling.receipt import Receipt

E = TypeVar("E", bound=Event)


def of(kind: type[E], events: list[Event]) -> list[E]:
    return [e for e in events if isinstance(e, kind)]


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory.open(tmp_path / "memory.db")


async def test_each_step_of_a_running_check_is_told_with_what_it_checks() -> None:
    events = await play([ToyProposer(WIDE)])
    last = of(CandidateTried, events)[-1].candidate.last_step
    told = [e.text for e in of(ProgressText, events)]
    assert f"kernel: checking, comparing outputs: {last}" in told


async def test_rules_are_composed_and_the_best_is_offered_with_its_evidence() -> None:
    events = await play([ToyProposer({**WIDE, **FUSED})])
    assert isinstance(events[0], BaselineMeasured)
    suggestions = [e.suggestion for e in of(SuggestionFound, events)]
    best = min(suggestions, key=lambda s: s.fast.us or 0)
    assert best.steps in {("rule:wide", "rule:fused"), ("rule:fused", "rule:wide")}
    assert best.fast.us == 56
    assert best.speedup.value == pytest.approx(100 / 56)
    assert best.speedup.low <= best.speedup.value <= best.speedup.high
    assert best.speedup.known is Known.ESTIMATED
    assert best.gate.accepted
    assert best.gate.receipt
    assert {"-    wide = False", "+    wide = True"} <= set(best.diff.splitlines())
    finished = events[-1]
    assert isinstance(finished, Finished)
    assert finished.usage.candidates == len(of(CandidateTried, events)) == 3
    assert finished.usage.skipped == 1  # the same two rewrites in the other order


async def test_each_step_of_a_version_says_what_it_gained_and_which_version_ends_with_it() -> None:
    events = await play([ToyProposer({**WIDE, **FUSED})])
    suggestions = {e.suggestion.id: e.suggestion for e in of(SuggestionFound, events)}
    best = min(suggestions.values(), key=lambda s: s.fast.us or 0)
    assert best.steps == tuple(origin for step in best.way for origin in step.origins)
    times = [(step.before.us, step.after.us) for step in best.way]
    assert times in ([(100, 70), (70, 56)], [(100, 80), (80, 56)])
    assert best.way[-1].id == best.id
    assert all(step.after.known is Known.ESTIMATED for step in best.way)
    before = suggestions.get(best.way[0].id)
    assert before is None or before.fast == best.way[0].after


async def test_a_candidate_that_fails_the_gate_is_never_offered_nor_what_was_built_upon_it() -> None:
    gate = ToyGate()
    events = await play([ToyProposer({**WRONG, **WIDE})], gate=gate)
    suggestions = [e.suggestion for e in of(SuggestionFound, events)]
    assert [us_of(s.text) for s in suggestions] == [70]
    assert all("wrong" not in s.text for s in suggestions)
    judged = of(CandidateJudged, events)
    assert [e.verdict.accepted for e in judged] == [False, True]
    assert (
        len([text for text in gate.seen if "wrong" in text]) == 1
    )  # what was built upon it meanwhile is left


async def test_only_what_is_clearly_faster_goes_through_the_gate() -> None:
    gate = ToyGate()
    events = await play([ToyProposer({**TINY, **SLOW, **RAISES})], gate=gate)
    assert not gate.seen
    assert not of(SuggestionFound, events)
    assert {e.candidate.origin: e.outcome for e in of(CandidateTried, events)} == {
        "rule:tiny": "unclear",
        "rule:slow": "slower",
        "rule:raises": "failed",
    }
    assert "nothing faster" in events[-1].reason  # type: ignore[union-attr]


SMALL = {f"s{k}": (f"step{k} = 0", f"step{k} = 1", 5) for k in range(4)}
SMALL_STEPS = "".join(f"    step{k} = 0\n" for k in range(4))


async def test_small_gains_add_up_to_a_clear_one() -> None:
    text = TEXT.replace("    wide = False\n", SMALL_STEPS)
    events = await play([ToyProposer(SMALL)], search_request=request(text))
    assert max(len(e.suggestion.steps) for e in of(SuggestionFound, events)) == 4
    assert all(len(e.suggestion.steps) >= 2 for e in of(SuggestionFound, events))


async def test_a_suggestion_is_told_as_soon_as_it_is_checked() -> None:
    text = TEXT.replace("    wide = False\n", f"    wide = False\n{SMALL_STEPS}")
    events = await play([ToyProposer({**WIDE, **SMALL})], search_request=request(text))
    kinds = [type(e).__name__ for e in events]
    first = kinds.index("SuggestionFound")
    assert kinds[first - 1] == "CandidateJudged"
    assert "CandidateTried" in kinds[first:]


async def test_a_busy_machine_finds_the_same_in_the_same_order() -> None:
    """Nothing that a search does depends on which of two steps ends first."""
    random = Random(0)

    class BusyCost(ToyCost):
        async def cost(self, text: str, kernel: str) -> KernelMeasurement:
            await asyncio.sleep(random.random() / 50)
            return await super().cost(text, kernel)

    class BusyGate(ToyGate):
        async def check(self, text: str, kernel: str, tell: Tell = untold) -> tuple[Verdict, Receipt]:
            await asyncio.sleep(random.random() / 10)
            return await super().check(text, kernel)  # what it tells comes when it comes

    text = TEXT.replace("    wide = False\n", f"    wide = False\n{SMALL_STEPS}")
    outcomes = []
    for _ in range(3):
        events = await play([ToyProposer({**WIDE, **SMALL})], None, request(text), BusyCost(), BusyGate())
        tried = [(e.number, e.candidate.steps) for e in of(CandidateTried, events)]
        outcomes.append((tried, [type(e) for e in events]))
    assert outcomes[0] == outcomes[1] == outcomes[2]


async def test_duplicates_by_syntax_are_not_tried_twice() -> None:
    class Twins:
        name = "rules"

        async def propose(self, node: Node) -> list[Candidate]:
            plain = node.text.replace("time_us = 100", "time_us = 50")
            return [
                Candidate("kernel", plain, "rule:a", "a"),
                Candidate("kernel", plain.replace("wide = False", "wide = False  # why"), "rule:b", "b"),
                Candidate("kernel", plain.replace("fused", "joined"), "rule:c", "c"),
                Candidate("kernel", node.text.replace("wide", "broad"), "rule:d", "nothing changes"),
                Candidate("kernel", "def kernel(:", "rule:e", "does not parse"),
            ]

    cost = ToyCost()
    events = await play([Twins()], cost=cost)
    assert len(cost.seen) == 1
    assert events[-1].usage.candidates == 1  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("budget", "says"),
    [(Budget(candidates=2, seconds=None), "2 candidates"), (Budget(seconds=0.0), "0 s")],
)
async def test_a_spent_budget_ends_the_run_with_what_it_has(budget: Budget, says: str) -> None:
    events = await play([ToyProposer({**WIDE, **FUSED, **SLOW})], search_request=request(budget=budget))
    finished = events[-1]
    assert isinstance(finished, Finished)
    assert says in finished.reason
    assert finished.usage.candidates <= budget.candidates


@pytest.mark.slow
async def test_the_time_budget_ends_a_cost_that_does_not_come() -> None:
    cost = ToyCost(hang=asyncio.Event())
    events = await play([ToyProposer(WIDE)], search_request=request(budget=Budget(seconds=1.0)), cost=cost)
    assert cost.cancelled == 1
    assert "time" in events[-1].reason  # type: ignore[union-attr]


class SlowGate(ToyGate):
    """Every check takes ``seconds`` of ``clock``."""

    def __init__(self, clock: list[float], seconds: float) -> None:
        super().__init__()
        self._clock, self._seconds = clock, seconds

    async def check(self, text: str, kernel: str, tell: Tell = untold) -> tuple[Verdict, Receipt]:
        self._clock[0] += self._seconds
        return await super().check(text, kernel, tell)


class SlowCost(ToyCost):
    """Every measurement takes ``seconds`` of ``clock``."""

    def __init__(self, clock: list[float], seconds: float) -> None:
        super().__init__()
        self._clock, self._seconds = clock, seconds

    async def cost(self, text: str, kernel: str) -> KernelMeasurement:
        self._clock[0] += self._seconds
        return await super().cost(text, kernel)


@pytest.mark.parametrize(
    ("cost", "check", "checked"),
    [(303.0, 2.0, True), (10.0, 295.0, True), (230.0, 40.0, True), (310.0, 40.0, False)],
    ids=["just after the end", "over the end", "in the time kept for it", "too late"],
)
async def test_the_best_version_is_checked_at_the_end(
    monkeypatch: pytest.MonkeyPatch, cost: float, check: float, checked: bool
) -> None:
    clock = [0.0]
    monkeypatch.setattr("accelopt_agent.optimize.Meter", partial(Meter, clock=lambda: clock[0]))
    gate, slow = SlowGate(clock, check), SlowCost(clock, cost)
    search_request = request(budget=Budget(seconds=300.0))
    events = await play([ToyProposer(WIDE)], search_request=search_request, cost=slow, gate=gate)
    assert len(of(SuggestionFound, events)) == checked
    assert ("the time of 300 s is used up" in of(Finished, events)[0].reason) == (cost != 230.0)


async def test_closing_the_iterator_ends_everything_at_once(memory: Memory) -> None:
    cost = ToyCost(hang=asyncio.Event())
    run = start([ToyProposer({**WIDE, **FUSED})], memory, cost=cost)

    async def read() -> None:
        async for _ in run:
            pass

    reading = asyncio.create_task(read())
    await cost.busy.wait()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert (cost.running, cost.cancelled) == (0, 2)
    assert [r.status for r in memory.run_log.runs()] == ["cancelled"]


async def test_closing_between_two_events_is_a_cancelled_run(memory: Memory) -> None:
    run = start([ToyProposer(WIDE)], memory)
    async for event in run:
        if isinstance(event, CandidateTried):
            break
    await run.aclose()  # type: ignore[attr-defined]
    assert [r.status for r in memory.run_log.runs()] == ["cancelled"]


async def test_everything_is_in_the_memory_when_it_is_told(memory: Memory) -> None:
    async for event in start([ToyProposer({**SLOW, **WIDE, **WRONG})], memory):
        run = memory.run_log.runs()[0].id
        kinds = [e.kind for e in memory.run_log.events(run)]
        if isinstance(event, CandidateTried):
            assert kinds.count("candidate tried") == event.number
        if isinstance(event, CandidateJudged):
            assert event.verdict.receipt
            assert memory.receipt(event.verdict.receipt) is not None
        if isinstance(event, SuggestionFound):
            stored = memory.suggestion(event.suggestion.id)
            assert stored is not None
            assert from_plain(Suggestion, stored.body) == event.suggestion
    assert {t.code for t in memory.traps()} == {"slower", "wrong-result"}
    assert memory.run_log.runs()[0].status == "finished"


async def test_a_trap_is_not_tried_again(memory: Memory) -> None:
    rules = [ToyProposer({**RAISES, **SLOW, **WIDE, **WRONG})]
    # with depth 1: of a rewrite and what is built upon it, the gate may see either first
    await play(rules, memory, search_request=planned(request(), depth=1))
    cost, gate = ToyCost(TEXT + "\nMORE = 1\n"), ToyGate()
    search_request = planned(request(TEXT + "\nMORE = 1\n"), depth=1)
    events = await play(rules, memory, search_request=search_request, cost=cost, gate=gate)
    assert [e.candidate.origin for e in of(CandidateTried, events)][:1] == ["rule:wide"]
    assert not [t for t in cost.seen if "wide = False" in t]
    assert not [t for t in gate.seen if "wide = False" in t]


async def test_a_run_without_memory_offers_the_same_as_one_with_a_memory_that_cannot_be_written(
    tmp_path: Path,
) -> None:
    path = tmp_path / "memory.db"
    Memory.open(path).close()
    memory = Memory.open(path, read_only=True)
    rules = [ToyProposer({**WIDE, **FUSED})]
    without = [e.suggestion.text for e in of(SuggestionFound, await play(rules))]
    events = await play(rules, memory)
    assert [e.suggestion.text for e in of(SuggestionFound, events)] == without
    assert sum("memory" in e.text for e in of(ProgressText, events)) == 1


async def test_a_kernel_that_is_wrong_is_not_optimized() -> None:
    events = await play([ToyProposer(WIDE)], cost=ToyCost(correct=False))
    assert not of(CandidateTried, events)
    assert any("row 3 is off" in e.text for e in of(ProgressText, events))


async def test_a_file_without_the_kernel_ends_with_one_line() -> None:
    events = await play([ToyProposer(WIDE)], search_request=request("x = 1\n"), cost=ToyCost(TEXT))
    assert len(events) == 1
    assert "no kernel" in events[0].reason  # type: ignore[union-attr]


async def test_a_proposer_that_fails_does_not_end_the_run() -> None:
    class Fails:
        name = "memory"

        async def propose(self, node: Node) -> list[Candidate]:
            raise ProposerError("The memory is locked.")

    events = await play([Fails(), ToyProposer(WIDE)])
    assert len(of(SuggestionFound, events)) == 1
    assert "The memory is locked." in [e.text for e in of(ProgressText, events)]


async def test_what_a_model_wrote_is_built_upon_only_once_it_is_checked_and_stays_labelled() -> None:
    model = ToyProposer({"gpt": ("wide = False", "wide = 2", 30)}, name="model", kind="model")
    events = await play([ToyProposer(FUSED), model])
    both = [e.suggestion for e in of(SuggestionFound, events) if len(e.suggestion.steps) == 2]
    assert {s.origin for s in both} == {"model:gpt"}
    assert all(us_of(s.text) == 56 for s in both)


async def test_an_interrupted_run_goes_on_without_paying_twice(memory: Memory) -> None:
    rules = [ToyProposer({**WIDE, **FUSED})]
    whole = [e.suggestion.text for e in of(SuggestionFound, await play(rules))]
    interrupted = start(rules, memory)
    async for event in interrupted:
        if isinstance(event, SuggestionFound):
            accepted = event.suggestion.text  # which version is the first depends on what ends first
            break
    await interrupted.aclose()  # type: ignore[attr-defined]
    cost, gate = ToyCost(), ToyGate()
    search_request = replace(request(), resume=True)
    events = await play(rules, memory, search_request=search_request, cost=cost, gate=gate)
    assert of(SuggestionFound, events)[-1].suggestion.text == whole[-1]
    usage = events[-1].usage  # type: ignore[union-attr]
    assert usage.remembered >= 2
    assert usage.candidates == len(cost.seen) == 3 - usage.remembered
    assert accepted not in gate.seen
    again = await play(rules, memory, search_request=search_request, cost=cost)
    assert again[-1].usage.remembered == 3  # type: ignore[union-attr]  # one that came to its end is run again for nothing
    assert again[-1].usage.candidates == 0  # type: ignore[union-attr]
