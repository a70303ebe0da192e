"""The team behind a real HTTP server: who is asked what, and what the debugger is for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support.played_model import PATIENCE, Reply, playing, says
from support.toy_search import TEXT, ToyCost, ToyGate, measurement, request, us_of

from accelopt_agent.candidate import Candidate
from accelopt_agent.events import Event, SuggestionFound
from accelopt_agent.model.proposer import ModelProposer
from accelopt_agent.model.role_context import coder_window, debugger_window, planner_window
from accelopt_agent.model.role_prompts import mistakes, near_mistakes
from accelopt_agent.model.settings import ModelSettings
from accelopt_agent.model.team import same_for_all
from accelopt_agent.optimize import drive
from accelopt_agent.request import Budget
from accelopt_agent.search.budget import Meter
from accelopt_agent.search.node import Failure, Node
from accelopt_agent.search.proposer import ProposerError
from accelopt_profiling.kernels import find_kernels

PLAN = says("LINES 7-8\nMake it wide, so that fewer loads are waited for.")


def change(*lines: str) -> Reply:
    return says("<<<<<<< CHANGE 1\n" + "\n".join(lines) + "\n>>>>>>>")


WIDE = change("    time_us = 60", "    wide = True")
UNTOUCHED = change("    time_us = 100", "    wide = False")


def node(text: str = TEXT, parent: Node | None = None, summary: str = "", **fields: Any) -> Node:
    kernel = next(k for k in find_kernels(text).kernels if k.name == "kernel")
    candidate = Candidate("kernel", text, "model:toy", summary) if parent else None
    new_node = Node(
        text, kernel, measurement(text), candidate, parent, ("model:toy", summary), text, **fields
    )
    if parent is not None:
        parent.children.append(new_node)
    return new_node


async def proposed(
    replies: list[Reply], about: Node, **options: Any
) -> tuple[list[str], list[str], list[dict[str, Any]]]:
    """The texts proposed, the roles asked, and the questions."""
    meter = Meter(Budget())
    with playing(replies) as played:
        settings = ModelSettings(played.url, "toy", seconds=PATIENCE)
        team = replace(same_for_all(settings), **options)
        candidates = await ModelProposer(team, meter, "trn1", backoff_seconds=0.001).propose(about)
    return [c.text for c in candidates], [call.role for call in meter.calls], played.asked


def said_to(question: dict[str, Any]) -> str:
    return "\n".join(m["content"] for m in question["messages"])


async def test_the_planner_names_lines_and_the_coder_fills_them() -> None:
    texts, roles, questions = await proposed([PLAN, WIDE], node())
    assert texts == [TEXT.replace("time_us = 100", "time_us = 60").replace("wide = False", "wide = True")]
    assert roles == ["planner", "coder"]
    assert "\n7     time_us = 100" in said_to(questions[0])
    assert "# <<< change 1\n    time_us = 100\n    wide = False\n# >>> change 1" in said_to(questions[1])


@pytest.mark.parametrize("first", [UNTOUCHED, says("No."), says("<<<<<<< CHANGE 2\nx\n>>>>>>>")])
async def test_the_debugger_puts_right_what_the_machine_caught(first: Reply) -> None:
    texts, roles, questions = await proposed([PLAN, first, WIDE], node())
    assert [us_of(t) for t in texts] == [60]
    assert roles == ["planner", "coder", "debugger"]
    assert "cannot be used" in said_to(questions[2])


async def test_what_stays_wrong_is_left_out_with_the_reason() -> None:
    with pytest.raises(ProposerError, match="left as it was"):
        await proposed([PLAN, UNTOUCHED], node())
    with pytest.raises(ProposerError, match="names no lines"):
        await proposed([says("Make it wide.")], node())


async def test_a_version_that_failed_is_repaired_with_the_exact_error_and_its_siblings() -> None:
    root = node()
    failed = node(
        TEXT.replace("wide = False", "wide = 7"),
        root,
        "Widen",
        failure=Failure("kernel-raised", "wide is 7!"),
    )
    node(TEXT.replace("fused = False", "fused = 9"), root, "Fuse it", failure=Failure("capacity", "no room"))
    answer = says("<<<<<<< SEARCH\n    wide = 7\n=======\n    wide = True\n>>>>>>> REPLACE")
    texts, roles, questions = await proposed([answer], failed)
    assert roles == ["debugger"]
    assert "wide = True" in texts[0]
    prompt = said_to(questions[0])
    assert "kernel-raised: wide is 7!" in prompt
    assert "Fuse it: failed, no room" in prompt
    assert "+    wide = 7" in prompt


async def test_a_plan_may_be_carried_out_twice_and_nothing_repaired() -> None:
    with playing([PLAN, WIDE, UNTOUCHED]) as played:
        team = same_for_all(ModelSettings(played.url, "toy", seconds=PATIENCE))
        meter = Meter(Budget())
        team = replace(team, samples=2, repairs=0)
        candidates = await ModelProposer(team, meter, "trn1").propose(node())
    assert [us_of(c.text) for c in candidates] == [60]
    assert [c.role for c in meter.calls] == ["planner", "coder", "coder"]


async def test_each_role_has_its_own_temperature() -> None:
    with playing([PLAN, WIDE]) as played:
        model = ModelSettings(played.url, "toy", seconds=PATIENCE)
        team = replace(same_for_all(replace(model, temperature=0.1)), planner=replace(model, temperature=0.8))
        await ModelProposer(team, Meter(Budget()), "trn1").propose(node())
    assert [a["temperature"] for a in played.asked] == [0.8, 0.1]


async def test_a_coder_that_is_alone_is_told_what_a_planner_would_know() -> None:
    answer = says(
        f"```python\n{TEXT.replace('time_us = 100', 'time_us = 60').replace('wide = False', 'wide = True')}```"
    )
    with playing([answer]) as played:
        team = replace(same_for_all(ModelSettings(played.url, "toy", seconds=PATIENCE)), alone=True)
        meter = Meter(Budget())
        candidates = await ModelProposer(team, meter, "trn1").propose(node())
    assert [us_of(c.text) for c in candidates] == [60]
    assert [c.role for c in meter.calls] == ["coder"]
    assert "100 us" in said_to(played.asked[0])


def test_each_role_has_its_own_window() -> None:
    root = node()
    one = node(TEXT.replace("time_us = 100", "time_us = 70"), root, "Load the tile once")
    two = node(TEXT.replace("time_us = 100", "time_us = 90"), root, "Drop a copy")
    cousin = node(TEXT.replace("time_us = 100", "time_us = 65"), one, "Widen the loop to 512 columns")
    assert "Load the tile once: 70 us, 1.43x" in planner_window(root)
    assert "Widen the loop" in planner_window(two)  # by the leaderboard
    assert "+    time_us = 65" in coder_window(two, "widen the loop columns")
    assert coder_window(two, "transpose before") == ""
    assert "Drop a copy" in debugger_window(one)
    assert "Load" not in debugger_window(one)
    assert cousin.root is root


async def test_a_question_begins_with_what_stays_the_same() -> None:
    root = node()
    _, _, first = await proposed([PLAN, WIDE], root)
    node(TEXT.replace("time_us = 100", "time_us = 70"), root, "Load the tile once")
    _, _, second = await proposed([PLAN, WIDE], root)
    a, b = said_to(first[0]), said_to(second[0])
    same = next(k for k, (x, y) in enumerate(zip(a, b, strict=False)) if x != y)
    assert same > 0.9 * len(a)


def test_known_mistakes_are_told_only_where_one_is_near() -> None:
    assert all(m.source and m.text for m in mistakes())
    assert {m.dialect for m in mistakes()} == {"nki", "triton"}
    assert not near_mistakes("nki", "x = 1")
    assert any("power of two" in m.text for m in near_mistakes("triton", "tl.arange(0, 96)"))
    everything = "nl.load arange matmul psum affine_range activation divide"
    assert len(near_mistakes("nki", everything)) == 2
    (first, _) = near_mistakes("nki", everything, "Fold the bias into the activation.")
    assert "nisa.activation" in first.text  # what is planned counts before what is there


async def test_a_repaired_version_is_checked_before_it_is_offered() -> None:
    """The coder's version raises; the debugger's is right: it goes through the gate and is a suggestion."""
    raising = change("    time_us = 60", "    raise ValueError")
    repair = says("<<<<<<< SEARCH\n    raise ValueError\n=======\n    wide = True\n>>>>>>> REPLACE")
    with playing([PLAN, raising, repair]) as played:
        settings = ModelSettings(played.url, "toy", seconds=PATIENCE)
        events: list[Event] = [
            e async for e in drive(
                request(), ToyCost(), ToyGate(), None, "toy",
                lambda meter: [ModelProposer(settings, meter, "trn1", backoff_seconds=0.001)],
            )
        ]  # fmt: skip
    offered = [e.suggestion for e in events if isinstance(e, SuggestionFound)]
    assert [us_of(s.text) for s in offered] == [60]
    assert offered[0].origin == "model:toy"
