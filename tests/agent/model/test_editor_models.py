"""The editor's own models behind the team: every fault becomes one line, and every call is in the ledger."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.played_model import playing, says
from support.toy_search import TEXT, WIDE, ToyCost, ToyGate, ToyProposer, request, us_of

from accelopt_agent.events import Event, Finished, ProgressText, SuggestionFound
from accelopt_agent.model.client import ModelCallError, query_model
from accelopt_agent.model.consent import ConsentStore, required_consent
from accelopt_agent.model.editor_models import EditorModels
from accelopt_agent.model.editor_request import FAULTS, EditorModelReply, EditorModelRequest, no_models
from accelopt_agent.model.proposer import ModelProposer
from accelopt_agent.model.settings import EDITOR, ModelSettings
from accelopt_agent.optimize import drive
from accelopt_agent.search.budget import Meter

OWN = ModelSettings(EDITOR, "acme/large", price_in=1.0, price_out=2.0)
PLAN = "LINES 7-8\nMake it wide."
WIDER = "<<<<<<< CHANGE 1\n    time_us = 60\n    wide = True\n>>>>>>>"


class Played:
    """An editor whose model gives these replies, the last one again and again."""

    def __init__(self, *replies: EditorModelReply) -> None:
        self.asked: list[EditorModelRequest] = []
        self._replies = list(replies)

    async def __call__(self, question: EditorModelRequest) -> EditorModelReply:
        self.asked.append(question)
        return self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]


async def searched(editor: Played, rules: bool = True) -> list[Event]:
    def proposers(meter: Meter) -> list[ToyProposer | ModelProposer]:
        team = ModelProposer(OWN, meter, "trn1", backoff_seconds=0.001, query=EditorModels(editor))
        return [*([ToyProposer(WIDE)] if rules else []), team]

    return [e async for e in drive(request(), ToyCost(), ToyGate(), None, "toy", proposers)]


def ended(events: list[Event]) -> Finished:
    assert isinstance(events[-1], Finished)
    return events[-1]


async def test_the_team_asks_the_editor_and_its_tokens_are_in_the_ledger() -> None:
    editor = Played(
        EditorModelReply(PLAN, 200, 10),
        EditorModelReply(WIDER, 100, 20),
        EditorModelReply(fault="blocked", message="quota"),
    )
    events = await searched(editor, rules=False)
    assert [us_of(e.suggestion.text) for e in events if isinstance(e, SuggestionFound)] == [60]
    calls = ended(events).calls
    assert [(c.role, c.model, c.tokens_in, c.tokens_out, c.estimated) for c in calls[:2]] == [
        ("planner", "acme/large", 200, 10, False),
        ("coder", "acme/large", 100, 20, False),
    ]
    assert calls[0].money == pytest.approx((200 * 1.0 + 10 * 2.0) / 1e6)
    assert {q.model for q in editor.asked} == {"acme/large"}
    assert "planner" not in editor.asked[0].user
    assert TEXT.splitlines()[6] in editor.asked[0].user


@pytest.mark.parametrize("fault", FAULTS)
async def test_each_fault_is_one_line_and_the_run_goes_on(fault: str) -> None:
    message = "because\nof <this>"
    events = await searched(Played(EditorModelReply(fault=fault, message=message)))
    lines = [e.text for e in events if isinstance(e, ProgressText) and "acme/large" in e.text]
    what, final = FAULTS[fault]
    assert lines[0] == f"The editor's model acme/large {what}: because of <this>"
    assert [us_of(e.suggestion.text) for e in events if isinstance(e, SuggestionFound)] == [70]
    calls = ended(events).calls
    assert all(c.fault and c.tokens_in == 0 for c in calls)
    assert (len(calls) == 1) == final


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (" \n", "gave an empty answer"),
        ("again and again " * 400, "repeats itself"),
        ("".join(chr(97 + i % 26) + str(i) for i in range(30_000)), "writes far more"),
    ],
)
async def test_useless_answers_are_faults_that_were_paid_for(text: str, says: str) -> None:
    with pytest.raises(ModelCallError, match=says) as caught:
        await EditorModels(Played(EditorModelReply(text)))(OWN, "s", "u")
    assert caught.value.estimated
    assert caught.value.tokens_out == -(-len(text) // 4)


async def test_an_editor_that_is_never_done_is_given_up() -> None:
    async def never(question: EditorModelRequest) -> EditorModelReply:
        await asyncio.Event().wait()
        raise AssertionError

    slow = ModelSettings(EDITOR, "acme/large", longest_seconds=0.05)
    with pytest.raises(ModelCallError, match=r"not done after 0\.05 s"):
        await EditorModels(never)(slow, "s", "u")


async def test_tokens_that_the_editor_does_not_count_are_estimated_and_say_so() -> None:
    answer = await EditorModels(Played(EditorModelReply("eight ch")))(OWN, "1234", "5678")
    assert (answer.tokens_in, answer.tokens_out, answer.estimated) == (2, 2, True)


async def test_addresses_are_asked_over_http_as_ever() -> None:
    with playing([says("hello")]) as played:
        answer = await EditorModels(no_models)(ModelSettings(played.url, "toy"), "s", "u")
    assert answer.text == "hello"


async def test_without_an_editor_there_is_no_editors_model() -> None:
    with pytest.raises(ModelCallError, match="there is no editor here"):
        await query_model(OWN, "s", "u")


def test_the_editors_models_need_an_agreement_of_their_own(tmp_path: Path) -> None:
    consents = ConsentStore(tmp_path / "c.json")
    assert "is sent to the models of the editor" in (consents.missing(OWN, tmp_path) or "")
    consents.give(required_consent(OWN, tmp_path))
    assert consents.missing(OWN, tmp_path) is None
    assert consents.missing(ModelSettings("https://models.example.org/v1", "m"), tmp_path) is not None
