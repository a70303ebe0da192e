"""A version is made again from its steps: with one left out, or in a text that has changed since."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.toy_search import (
    FUSED,
    RAISES,
    SLOW,
    TEXT,
    WIDE,
    WRONG,
    ToyCost,
    ToyGate,
    ToyProposer,
    faster,
    planned,
    request,
)

from accelopt_agent import repetition as module
from accelopt_agent.candidate import Candidate
from accelopt_agent.events import CandidateTried, Event, Finished, SuggestionFound
from accelopt_agent.optimize import _proposers, drive
from accelopt_agent.request import OptimizeRequest, Repetition
from accelopt_agent.search.history import interrupted, past_runs
from accelopt_agent.search.paid import content_of
from accelopt_agent.suggestions.suggestion import Suggestion
from accelopt_memory.memory import Memory
from accelopt_profiling.examination import examine

RULES = {**WIDE, **FUSED, **SLOW, **WRONG, **RAISES}


@pytest.fixture(autouse=True)
def rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules of the toy world in the place of the catalogue."""

    def repeat(rule: str, text: str, kernel: object, *_: object, **__: object) -> Candidate | None:
        old, new, percent = RULES[rule]
        if old not in text:
            return None
        return Candidate("kernel", faster(text.replace(old, new), percent), f"rule:{rule}", f"do {rule}")

    monkeypatch.setattr(module, "repeat_rule", repeat)


async def searched(
    memory: Memory | None, rules: dict[str, tuple[str, str, int]], text: str = TEXT
) -> Suggestion:
    events = await played(planned(request(text)), memory, [ToyProposer(rules)])
    found = [e.suggestion for e in events if isinstance(e, SuggestionFound)]
    return max(found, key=lambda s: len(s.way))


async def played(
    asked: OptimizeRequest,
    memory: Memory | None,
    proposers: list[ToyProposer] | None = None,
    gate: ToyGate | None = None,
) -> list[Event]:
    def make(meter):  # type: ignore[no-untyped-def]
        return proposers or _proposers(asked, memory, model=None, meter=meter, query=None)  # type: ignore[arg-type]

    cost = ToyCost(asked.text)
    return [e async for e in drive(asked, cost, gate or ToyGate(), memory, "toy", make)]


async def again(
    version: Suggestion, kept: tuple[int, ...] | None = None, text: str = TEXT, memory: Memory | None = None
) -> tuple[Suggestion | None, Finished, int]:
    repetition = Repetition.of(version) if kept is None else Repetition(version, kept)
    events = await played(replace(request(text), repetition=repetition), memory)
    end = events[-1]
    assert isinstance(end, Finished)
    tried = sum(isinstance(e, CandidateTried) for e in events)
    return next((e.suggestion for e in events if isinstance(e, SuggestionFound)), None), end, tried


async def test_without_one_of_its_steps_a_version_is_checked_as_any_other() -> None:
    version = await searched(None, {**WIDE, **FUSED})
    for left_out in (0, 1):
        rest, end, tried = await again(version, tuple({0, 1} - {left_out}))
        assert rest is not None, end.reason
        assert tried == 1
        assert rest.steps == version.way[1 - left_out].origins
        assert ("wide = True" in rest.text) != ("fused = True" in rest.text)
        assert rest.gate.receipt
        assert rest.speedup.value < version.speedup.value


async def test_the_first_steps_alone_are_the_version_that_is_known_by_that_name() -> None:
    version = await searched(None, {**WIDE, **FUSED})
    first, _, _ = await again(version, (0,))
    assert first is not None
    assert first.id == version.way[0].id


async def test_after_an_edit_elsewhere_the_version_is_carried_over_and_checked() -> None:
    version = await searched(None, {**WIDE, **FUSED})
    text = TEXT.replace("return 1", "return 2").replace("\n\n\n", "\nLIMIT = 3\n\n\n", 1)
    gate = ToyGate()
    events = await played(replace(request(text), repetition=Repetition.of(version)), None, gate=gate)
    (found,) = [e.suggestion for e in events if isinstance(e, SuggestionFound)]
    assert gate.seen == [found.text]
    assert (found.id, found.way, found.steps) == (version.id, version.way, version.steps)
    assert found.base_text == text
    assert "return 2" in found.text
    assert "wide = True" in found.text


async def test_after_an_edit_of_the_kernel_the_same_steps_are_taken_in_the_new_text() -> None:
    version = await searched(None, {**WIDE, **FUSED})
    text = TEXT.replace("time_us = 100", "time_us = 200")
    found, _, tried = await again(version, text=text)
    assert found is not None
    assert tried == 2
    assert (found.slow.us, found.fast.us) == (200, 112)
    assert [s.origins for s in found.way] == [s.origins for s in version.way]
    assert found.base_hash != version.base_hash


async def test_a_step_that_does_not_apply_any_more_is_named() -> None:
    version = await searched(None, {**WIDE, **FUSED})
    text = TEXT.replace("time_us = 100\n    wide = False", "time_us = 90")
    found, end, _ = await again(version, text=text)
    assert found is None
    number = [step.origins for step in version.way].index(("rule:wide",)) + 1
    assert end.reason == f"Step {number} (do wide) does not apply to this text."


async def test_what_is_wrong_now_is_not_offered() -> None:
    version = await searched(None, WIDE)
    found, end, _ = await again(version, text=TEXT.replace("return 1", "return 'wrong'"))
    assert found is None
    assert end.ending == "done"
    assert "refused by the gate" in end.reason


async def test_a_step_of_a_model_is_repeated_in_an_unchanged_kernel_only() -> None:
    version = await searched(None, WIDE)
    way = tuple(replace(step, origins=("model:m",)) for step in version.way)
    version = replace(version, way=way, steps=("model:m",), origin="model:m")
    found, _, _ = await again(version, text=TEXT.replace("return 1", "return 2"))
    assert found is not None
    assert found.origin == "model:m"
    found, end, _ = await again(version, text=TEXT.replace("time_us = 100", "time_us = 200"))
    assert found is None
    assert "is no rule's (model:m)" in end.reason


async def test_a_check_is_no_search_to_be_resumed_or_listed(tmp_path: Path) -> None:
    memory = Memory.open(tmp_path / "memory.db")
    version = await searched(memory, {**WIDE, **FUSED})
    before = past_runs(memory)
    text = TEXT.replace("time_us = 100\n    wide = False", "time_us = 90")
    await again(version, text=text, memory=memory)
    assert past_runs(memory) == before
    for source in (TEXT, text):
        kernel = examine(Path("/k.py"), source).kernels[0].content_hash
        content = content_of(examine(Path("/k.py"), source))
        assert interrupted(memory, kernel, target="trn1", host="toy", content=content) is None


async def test_a_trap_of_the_original_search_does_not_keep_a_step_from_being_taken(tmp_path: Path) -> None:
    """A step that is slower by itself may lead to one that gains."""
    memory = Memory.open(tmp_path / "memory.db")
    version = await searched(None, {**WIDE, **FUSED})
    slow = replace(version.way[0], origins=("rule:slow",), summary="do slow")
    version = replace(version, way=(slow, *version.way))
    await played(planned(request()), memory, [ToyProposer(SLOW)])
    assert memory.traps(version.base_hash)
    _, end, tried = await again(version, (0,), memory=memory)
    assert tried == 1, end.reason
