"""Plans and answers that cannot be used: who hears of them, what they cost, and what the next question says."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.played_model import PATIENCE, Reply, playing, says
from support.toy_search import TEXT, ToyCost, ToyGate, measurement, planned, request, us_of

from accelopt_agent.events import CandidateTried, Event, ProgressText, SuggestionFound
from accelopt_agent.model.proposer import ModelProposer
from accelopt_agent.model.settings import ModelSettings
from accelopt_agent.model.team import same_for_all
from accelopt_agent.optimize import drive
from accelopt_agent.request import Budget
from accelopt_agent.search.budget import Meter
from accelopt_agent.search.node import Node
from accelopt_agent.search.proposer import ProposerError
from accelopt_memory.memory import Memory
from accelopt_profiling.kernels import find_kernels

PLAN = says("LINES 7-8\nMake it wide, so that fewer loads are waited for.")
WIDE = says("<<<<<<< CHANGE 1\n    time_us = 60\n    wide = True\n>>>>>>>")
REWRITE = says("REWRITE kernel\nOne pass over the data instead of two.")
ANEW = TEXT.replace("time_us = 100", "time_us = 50").replace("wide = False", "wide = True")


def root(text: str = TEXT) -> Node:
    return Node(text, find_kernels(text).kernels[0], measurement(text))


async def asked_of(
    replies: list[Reply], times: int = 1, **options: Any
) -> tuple[list[str], list[str], list[str]]:
    """Return the texts that were proposed, the roles that were asked, and the questions."""
    meter, node, texts = Meter(Budget()), root(), list[str]()
    with playing(replies) as played:
        team = replace(same_for_all(ModelSettings(played.url, "toy", seconds=PATIENCE)), **options)
        proposer = ModelProposer(team, meter, "trn1", backoff_seconds=0.001)
        for _ in range(times):
            try:
                texts += [c.text for c in await proposer.propose(node)]
            except ProposerError as error:
                texts.append(str(error))
        questions = ["\n".join(m["content"] for m in question["messages"]) for question in played.asked]
    return texts, [call.role for call in meter.calls], questions


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        ("Make it wide.", "names no lines"),
        ("LINES 13-14\nDrop it.", "line 13 may not change: the problem does not run other"),
        ("REWRITE other\nFaster.", "other may not change"),
        ("LINES 7-90\nMake it wide.", "lines 7-90 of 14"),
    ],
)
async def test_a_plan_that_cannot_be_carried_out_goes_back_to_the_planner_before_a_coder_is_asked(
    plan: str, why: str
) -> None:
    texts, roles, questions = await asked_of([says(plan), PLAN, WIDE])
    assert roles == ["planner", "planner", "coder"]
    assert why in questions[1]
    assert [us_of(text) for text in texts] == [60]


async def test_what_could_not_be_used_is_told_in_the_next_question() -> None:
    _, roles, questions = await asked_of([says("Make it wide."), says("Wider!"), PLAN, WIDE], times=2)
    assert roles == ["planner", "planner", "planner", "coder"]
    assert "names no lines" in questions[2]
    assert questions[0] != questions[2]


async def test_no_two_questions_about_one_version_are_the_same() -> None:
    _, _, questions = await asked_of([PLAN, WIDE, PLAN, WIDE, PLAN, WIDE], times=3)
    planners = [text for text in questions if "You plan" in text]
    assert len(planners) == len(set(planners)) == 3


@pytest.mark.parametrize(
    "answer",
    [
        f"```python\n{ANEW}```",
        "Here:\n\n```python\n" + ANEW.partition("\n\n\n")[2].partition("\n\n\ndef other")[0] + "\n```\n",
    ],
    ids=["the whole file", "the function"],
)
@pytest.mark.parametrize("plan", [PLAN, REWRITE], ids=["for lines", "for a rewrite"])
async def test_code_as_an_answer_is_read(answer: str, plan: Reply) -> None:
    texts, roles, _ = await asked_of([plan, says(answer)])
    assert [us_of(text) for text in texts] == [50]
    assert roles == ["planner", "coder"]


async def test_an_edit_that_misses_the_planned_lines_by_one_goes_to_the_debugger() -> None:
    missed = says("<<<<<<< SEARCH\n    fused = False\n=======\n    fused = True\n>>>>>>> REPLACE")
    texts, roles, questions = await asked_of([PLAN, missed, WIDE])
    assert roles == ["planner", "coder", "debugger"]
    assert "reaches out of the planned lines, to line 9" in questions[2]
    assert [us_of(text) for text in texts] == [60]


async def test_what_could_not_be_used_before_an_interruption_is_told_after_it(tmp_path: Path) -> None:
    with (
        playing([says("Make it wide."), PLAN, WIDE]) as played,
        Memory.open(tmp_path / "memory.db") as memory,
    ):
        settings = ModelSettings(played.url, "toy", seconds=PATIENCE)

        def start(resume: bool) -> AsyncGenerator[Event, None]:
            search_request = replace(planned(request(TEXT, Budget(candidates=2)), calls=1), resume=resume)
            return drive(
                search_request, ToyCost(), ToyGate(), memory, "toy",
                lambda meter: [ModelProposer(settings, meter, "trn1", backoff_seconds=0.001)],
            )  # fmt: skip

        async with aclosing(start(resume=False)) as events:
            async for event in events:
                if isinstance(event, CandidateTried):
                    break
        paid = len(played.asked)
        async with aclosing(start(resume=True)) as events:
            async for _ in events:
                pass
        questions = ["\n".join(m["content"] for m in question["messages"]) for question in played.asked]
    assert "You plan" in questions[paid]  # the answers before the interruption are not asked for again
    assert "no usable plan, the plan names no lines" in questions[paid]


async def searched(replies: list[Reply], budget: Budget) -> list[Event]:
    with playing(replies) as played:
        settings = ModelSettings(played.url, "toy", seconds=PATIENCE)
        return [
            e async for e in drive(
                request(TEXT, budget), ToyCost(), ToyGate(), None, "toy",
                lambda meter: [ModelProposer(settings, meter, "trn1", backoff_seconds=0.001)],
            )
        ]  # fmt: skip


async def test_a_function_that_the_dialect_has_not_fails_and_is_repaired() -> None:
    missing = says("<<<<<<< CHANGE 1\n    time_us = 60\n    raise AttributeError\n>>>>>>>")
    repair = says("<<<<<<< SEARCH\n    raise AttributeError\n=======\n    wide = True\n>>>>>>> REPLACE")
    events = await searched([PLAN, missing, repair], Budget(candidates=2))
    assert [e.outcome for e in events if isinstance(e, CandidateTried)] == ["failed", "faster"]
    offered = [e.suggestion for e in events if isinstance(e, SuggestionFound)]
    assert [us_of(s.text) for s in offered] == [60]
    assert offered[0].summary == "Make it wide, so that fewer loads are waited for"


async def test_the_person_hears_who_is_asked_and_why_versions_failed() -> None:
    missing = says("<<<<<<< CHANGE 1\n    time_us = 60\n    raise AttributeError\n>>>>>>>")
    events = await searched([PLAN, missing], Budget(candidates=1))
    lines = [e.text for e in events if isinstance(e, ProgressText)]
    assert any("asking the planner (about " in line for line in lines)
    assert any("the coder answered after" in line and "100 tokens read, 20 written" in line for line in lines)
    assert any(line.startswith("1 failed: ") for line in lines)
