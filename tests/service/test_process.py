"""The service in a process of its own: the same answers, and a child that ends takes nothing with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import pytest
from support.forked import Parent
from support.waiting import PATIENCE

from accelopt_agent.events import Event, Finished, SuggestionFound
from accelopt_agent.model.editor_request import Complete, EditorModelReply, EditorModelRequest, no_models
from accelopt_lsp.errors import HostUnavailableError, UserError
from accelopt_lsp.service.peer import Peer
from accelopt_lsp.service.process import ProcessService
from accelopt_lsp.service.protocol import FileRequest, SearchRequest
from accelopt_lsp.service.surface import Surface
from accelopt_lsp.settings.load import load_settings
from accelopt_profiling.examination import examine

KERNEL = """
from triton import jit

@jit
def scale(x):
    COST = 900
"""


def file(text: str = KERNEL) -> FileRequest:
    return FileRequest(examine(Path("/k.py"), text), load_settings())


class Recorded(Surface):
    """Keeps what is said of the memory, and asks ``ask`` for models."""

    def __init__(self, ask: Complete = no_models) -> None:
        self.said: list[str] = []
        self.ask = ask

    def memory_problem(self, reason: str) -> None:
        self.said.append(reason)

    async def complete(self, question: EditorModelRequest) -> EditorModelReply:
        return await self.ask(question)


@pytest.fixture
async def engine(imported: Parent) -> AsyncGenerator[ProcessService, None]:
    engine = ProcessService(command=imported.command("support.scripted_engine"))
    yield engine
    await asyncio.wait_for(engine.close(), PATIENCE)


@pytest.mark.slow
async def test_results_come_as_they_grow(engine: ProcessService) -> None:
    measurements = [results async for results in engine.profile(file())]
    assert [r.complete for r in measurements] == [False, True]
    assert measurements[-1].kernels[0].latency.us == 900


async def test_a_search_offers_and_ends(engine: ProcessService) -> None:
    events = [event async for event in engine.optimize(file(), "scale", SearchRequest(job="j"))]
    assert isinstance(events[-1], Finished)
    (offered,) = [e.suggestion for e in events if isinstance(e, SuggestionFound)]
    assert await engine.suggestion(offered.id, load_settings()) == offered


async def test_a_search_rests_and_goes_on(engine: ProcessService) -> None:
    wish = SearchRequest(resume=True, job="j")
    async with aclosing(engine.optimize(file(KERNEL + "HOLD = 1\n"), "scale", wish)) as events:
        await asyncio.wait_for(events.__anext__(), PATIENCE)
        await engine.pause("j", True)
        await engine.pause("j", False)
        rest = [event async for event in events]
    assert isinstance(rest[-1], Finished)
    assert rest[-1].reason.endswith("Resumed.")


async def test_problems_are_raised_as_what_they_are(engine: ProcessService) -> None:
    with pytest.raises(HostUnavailableError):
        async for _ in engine.profile(file(KERNEL + "DOWN = 1\n")):
            pass
    with pytest.raises(RuntimeError, match="bug"):
        async for _ in engine.profile(file(KERNEL + "BUG = 1\n")):
            pass
    with pytest.raises(UserError, match="Permission denied: /k/inputs"):
        async for _ in engine.profile(file(KERNEL + "DENIED = 1\n")):
            pass


async def test_closing_a_stream_stops_the_work_and_others_go_on(engine: ProcessService) -> None:
    async with aclosing(engine.profile(file(KERNEL + "HOLD = 1\n"))) as held:
        await asyncio.wait_for(held.__anext__(), PATIENCE)
    assert [r.complete async for r in engine.profile(file())] == [False, True]


async def test_callbacks_reach_the_server(engine: ProcessService) -> None:
    surface = Recorded()
    engine.surface = surface
    await engine.stored_searches(file())
    assert surface.said == ["the disk is full"]


ASKING = KERNEL + "ASK = 1\n"


async def test_the_childs_questions_reach_the_editors_model(engine: ProcessService) -> None:
    async def complete(question: EditorModelRequest) -> EditorModelReply:
        return EditorModelReply(f"{question.system} {question.user}.", 3, 4)

    surface = Recorded()
    engine.surface = surface
    events = [event async for event in engine.optimize(file(ASKING), "scale", SearchRequest(job="j"))]
    assert "unsupported" in events[-1].reason  # nobody lends one yet
    surface.ask = complete
    events = [event async for event in engine.optimize(file(ASKING), "scale", SearchRequest(job="j"))]
    assert isinstance(events[-1], Finished)
    assert "You plan. The kernel scale." in events[-1].reason


async def test_a_question_that_fails_is_answered_all_the_same(engine: ProcessService) -> None:
    async def broken(question: EditorModelRequest) -> EditorModelReply:
        raise OSError("no wire")

    engine.surface = Recorded(broken)
    events = [event async for event in engine.optimize(file(ASKING), "scale", SearchRequest(job="j"))]
    assert "no wire" in events[-1].reason


async def test_cancelling_takes_the_question_back(engine: ProcessService) -> None:
    asked, taken_back = asyncio.Event(), asyncio.Event()

    async def never(question: EditorModelRequest) -> EditorModelReply:
        asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            taken_back.set()
            raise
        raise AssertionError

    engine.surface = Recorded(never)
    async with aclosing(engine.optimize(file(ASKING), "scale", SearchRequest(job="j"))) as events:
        searching = asyncio.ensure_future(_last(events))
        await asyncio.wait_for(asked.wait(), PATIENCE)
        searching.cancel()
        await asyncio.wait([searching])
    await asyncio.wait_for(taken_back.wait(), PATIENCE)


async def _last(events: AsyncGenerator[Event, None]) -> None:
    async for _ in events:
        pass


async def test_a_child_that_dies_fails_what_waits_and_is_started_again(engine: ProcessService) -> None:
    async with aclosing(engine.profile(file(KERNEL + "HOLD = 1\n"))) as held:
        await asyncio.wait_for(held.__anext__(), PATIENCE)
        with pytest.raises(UserError, match="code 7"):
            await asyncio.wait_for(engine.stored_searches(file("DIE = 1\n")), PATIENCE)
        with pytest.raises(UserError, match="ended"):
            await asyncio.wait_for(held.__anext__(), PATIENCE)
    assert [r.complete async for r in engine.profile(file())] == [False, True]


async def test_nothing_starts_after_the_end(engine: ProcessService) -> None:
    await engine.start()
    await engine.close()
    with pytest.raises(UserError, match="ending"):
        await engine.stored_searches(file())


async def test_an_engine_that_ends_without_an_answer_is_a_sentence(
    engine: ProcessService, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_answers(*arguments: object) -> AsyncGenerator[object, None]:
        for nothing in ():
            yield nothing

    monkeypatch.setattr(Peer, "values", no_answers)
    with pytest.raises(UserError, match="ended before it answered"):
        await engine.migrate(file())
