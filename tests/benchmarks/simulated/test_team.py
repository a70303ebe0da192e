"""The simulated team talks through the real client, and what it said is recorded and played again."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.toy_search import ToyCost, ToyGate

from accelopt_agent.events import CandidateTried, Event, Finished, ProgressText, SuggestionFound
from accelopt_agent.model.proposer import ModelProposer
from accelopt_agent.model.settings import ModelSettings
from accelopt_agent.optimize import drive
from accelopt_agent.request import Budget, OptimizeRequest, SearchPlan
from accelopt_agent.search.budget import Meter
from accelopt_agent.search.proposer import Proposer
from accelopt_benchmarks.simulated.serving import (
    Conversation,
    NotRecordedError,
    Turn,
    read_conversation,
    serving,
)
from accelopt_benchmarks.simulated.team import Question, SimulatedTeam, Skill
from accelopt_profiling.examination import examine

#: A kernel that rules have something to say about; its time is written in it, as the toy world wants it.
TEXT = '''\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a, b):
    """time_us = 100"""
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(8):
        x = nl.load(a[i * 128 : (i + 1) * 128, 0:512])
        w = nl.load(b[0:128, 0:512])
        y = nl.multiply(x, w)
        z = nl.add(y, w)
        nl.store(out[i * 128 : (i + 1) * 128, 0:512], z)
    return out
'''


async def run(url: str, budget: int = 4) -> list[Event]:
    search_request = OptimizeRequest(
        examine(Path("/k.py"), TEXT), "trn1", budget=Budget(candidates=budget, seconds=None),
        plan=SearchPlan(options={"least_gain": -1.0}, depth=6),
    )  # fmt: skip
    settings = ModelSettings(url, "simulated", attempts=1)

    def team(meter: Meter) -> list[Proposer]:
        return [ModelProposer(settings, meter, "trn1", backoff_seconds=0.0)]

    return [e async for e in drive(search_request, ToyCost(TEXT), ToyGate(), None, "toy", team)]


def tried(events: list[Event]) -> list[str]:
    return [e.candidate.text for e in events if isinstance(e, CandidateTried)]


@pytest.mark.slow
async def test_its_answers_become_candidates_that_are_the_same_for_the_same_seed() -> None:
    runs = []
    for seed in (3, 3, 4):
        with serving(SimulatedTeam(seed=seed).answer, "simulated") as url:
            runs.append(await run(url))
    end = runs[0][-1]
    assert isinstance(end, Finished)
    assert {c.role for c in end.calls} >= {"planner", "coder"}
    assert all(c.tokens_in > 0 and not c.estimated for c in end.calls if not c.fault)
    assert len(tried(runs[0])) == 4
    assert tried(runs[0]) == tried(runs[1]) != tried(runs[2])
    assert all("def kernel(a, b)" in text for text in tried(runs[0]))


@pytest.mark.slow
@pytest.mark.parametrize(("breaks", "names"), [(0.0, False), (1.0, True)])
async def test_broken_answers_are_as_frequent_as_the_skill_says(breaks: float, names: bool) -> None:
    skill = Skill(knows=1.0, breaks=breaks, crashes=1.0, repairs=0.0)
    with serving(SimulatedTeam(skill).answer, "simulated") as url:
        texts = tried(await run(url, 3))
    assert texts
    assert all(("not_defined" in text) == names for text in texts)


async def test_what_it_broke_it_repairs() -> None:
    team = SimulatedTeam(Skill(knows=1.0, breaks=1.0, crashes=1.0, repairs=1.0))
    planner = Question(system("planner"), f"kernel `kernel`\n```python\n{numbered(TEXT)}\n```\n")
    plan = team.answer(planner, 0)
    broken = team.answer(
        Question(system("coder"), f"the kernel `kernel`\n```python\nx\n```\n\n{said(plan)}"), 0
    )
    from accelopt_agent.model.edits import apply_edits, apply_plan_answer, parse_anchors, read_edits

    text = apply_plan_answer(TEXT, parse_anchors(plan, TEXT), broken)
    assert "not_defined" in text
    repair = team.answer(Question(system("debugger"), f"the kernel `kernel`\n```python\n{text}\n```\n"), 0)
    right = apply_edits(text, read_edits(repair))
    assert "not_defined" not in right
    assert right != TEXT


async def test_a_coder_that_is_alone_gets_an_idea_and_carries_it_out() -> None:
    from accelopt_agent.model.prompt_templates import render

    alone = render("alone", digest="", more="")
    question = Question(system("coder"), f"the kernel `kernel`\n```python\n{TEXT}```\n{alone}")
    answer = SimulatedTeam(Skill(knows=1.0, breaks=0.0)).answer(question, 0)
    assert answer.startswith("```python\n")
    assert "def kernel(a, b)" in answer
    assert TEXT.strip() not in answer


def system(role: str) -> str:
    from accelopt_agent.model.prompt_templates import placeholders, render

    return render(f"nki/{role}", **dict.fromkeys(placeholders(f"nki/{role}"), "trn1"))


def numbered(text: str) -> str:
    from accelopt_agent.model.edits import numbered

    return numbered(text.rstrip())


def said(plan: str) -> str:
    return plan.partition("\n")[2]


@pytest.mark.slow
async def test_a_recorded_conversation_is_played_again_and_says_who_spoke(tmp_path: Path) -> None:
    conversation = Conversation(
        "Recorded from the simulated team, not from a model.", "2026-11-21", "simulated"
    )
    with serving(conversation.recording(SimulatedTeam(seed=5).answer), "simulated") as url:
        first = await run(url)
    conversation.save(tmp_path / "said.json")
    again = read_conversation(tmp_path / "said.json")
    assert again == conversation
    assert "not from a model" in (tmp_path / "said.json").read_text()
    with serving(again.answer, again.model) as url:
        second = await run(url)
    assert tried(second) == tried(first)
    assert second[-1].usage.tokens_in == first[-1].usage.tokens_in  # type: ignore[union-attr]
    assert [e.suggestion.id for e in first if isinstance(e, SuggestionFound)] == [
        e.suggestion.id for e in second if isinstance(e, SuggestionFound)
    ]


async def test_a_question_that_was_not_recorded_ends_the_calls_with_one_line() -> None:
    nothing = Conversation("nobody", "2026-11-21", "simulated")
    with serving(nothing.answer, "simulated") as url:
        events = await run(url)
    assert not tried(events)
    assert any("no answer to the planner about kernel; record it again" in e.text for e in events
               if isinstance(e, ProgressText))  # fmt: skip


def test_the_same_code_is_the_same_question_however_it_is_worded_and_counted() -> None:
    one = Question(system("planner"), "the kernel `k`\n\n```python\n1 x = 1\n```\n\n- time: 3 us\n")
    two = Question(system("planner").replace("trn1", "trn2") + "\nMore.", one.user.replace("3 us", "5 us"))
    other = Question(system("planner"), one.user.replace("x = 1", "x = 2"))
    assert one.key == two.key != other.key
    assert [one.role, Question("something else", "").role] == ["planner", None]
    conversation = Conversation(
        "s", "d", "m", [Turn("planner", "k", one.key, 0, "first"), Turn("planner", "k", one.key, 1, "x")]
    )
    assert conversation.answer(two, 0) == "first"
    with pytest.raises(NotRecordedError):
        conversation.answer(two, 2)


@pytest.mark.parametrize("text", ["", "[]", '{"turns": 3}', '{"source": 1'])
def test_a_file_that_is_no_conversation_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(text)
    with pytest.raises(ValueError, match=r"c\.json is no recorded conversation"):
        read_conversation(tmp_path / "c.json")
