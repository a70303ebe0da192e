"""A configured model gets its share: candidates are kept for it, and it is asked first where rules change nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support.toy_search import TEXT, ToyCost, ToyModel, ToyProposer, planned, play, request, start

from accelopt_agent.candidate import Candidate
from accelopt_agent.evaluation.evaluators import CostUnavailableError
from accelopt_agent.events import CandidateTried, SuggestionFound
from accelopt_agent.request import Budget
from accelopt_agent.search.node import Node
from accelopt_memory.memory import Memory
from accelopt_profiling.measurement import KernelMeasurement

#: Steps of which the first gains, so that all promise something, and the others nothing.
MANY = {f"r{k}": ("return x", f"r = {k}\n    return x", 5 if k == 0 else 0) for k in range(40)}
UNCLEAR = {f"r{k}": ("return x", f"r = {k}\n    return x", 0) for k in range(40)}


class Author(ToyModel):
    """Writes what ``writes`` says of the node and the number of the question."""

    def __init__(self, writes: Callable[[Node, int], str | None]) -> None:
        self.writes, self.asked = writes, 0
        self.repairs: list[str] = []

    def write(self, node: Node) -> str | None:
        self.asked += 1
        if node.failure is not None:
            self.repairs.append(node.failure.message)
        return self.writes(node, self.asked)


def idle(node: Node, count: int) -> str:
    return node.text.replace("return x", f"m = {count + 100}\n    return x")


def origins(events: list[object]) -> list[str]:
    return [e.candidate.steps[-1].partition(":")[0] for e in events if isinstance(e, CandidateTried)]


async def test_rules_leave_the_model_its_share_of_the_candidates() -> None:
    events = await play(
        [ToyProposer(MANY), Author(idle)],
        search_request=planned(request(budget=Budget(candidates=20)), parallel=1),
    )
    assert origins(events).count("model") == 6
    assert len(origins(events)) == 20


async def test_the_model_is_asked_before_further_rules_where_they_change_nothing() -> None:
    cost = ToyCost()
    tried: list[int] = []  # when it was asked

    class Asked(Author):
        async def propose(self, node: Node) -> list[Candidate]:
            tried.append(len(cost.seen))
            return await super().propose(node)

    search_request = planned(request(budget=Budget(candidates=40)), parallel=1)
    await play([ToyProposer(UNCLEAR), Asked(idle)], None, search_request, cost)
    assert tried[0] in (6, 7)  # one more begins with the question


async def test_a_model_that_stops_answering_leaves_its_share_to_the_rules() -> None:
    silent = Author(lambda node, count: None)
    events = await play(
        [ToyProposer(MANY), silent], search_request=planned(request(budget=Budget(candidates=20)), parallel=1)
    )
    assert silent.asked == 8
    assert origins(events) == ["rule"] * 14 or len(origins(events)) > 14


async def test_answers_that_cannot_be_read_do_not_end_its_turn() -> None:
    def late(node: Node, count: int) -> str | None:
        return None if count < 6 else node.text.replace("time_us = 100", "time_us = 50")

    events = await play([Author(late)], search_request=request(budget=Budget(candidates=6)))
    assert any(isinstance(e, SuggestionFound) for e in events)


async def test_a_model_that_searches_alone_has_the_whole_budget() -> None:
    alone = Author(idle)
    events = await play([alone], search_request=planned(request(budget=Budget(candidates=20)), parallel=1))
    assert origins(events) == ["model"] * 20


async def test_what_failed_is_mended_wherever_it_stands() -> None:
    """Of two samples one fails and the other is faster: the repair is not of anything below the fastest version."""

    class Twice(Author):
        async def propose(self, node: Node) -> list[Candidate]:
            if node.failure is not None or self.asked:
                return await super().propose(node)
            texts = [
                node.text.replace("return x", "raise ValueError"),
                node.text.replace("time_us = 100", "time_us = 60"),
            ]
            self.asked += 1
            return [Candidate("kernel", text, "model:toy", "one plan") for text in texts]

    author = Twice(
        lambda node, count: (
            node.text.replace("raise ValueError", "return x").replace("time_us = 100", "time_us = 40")
            if node.failure is not None
            else idle(node, count)
        )
    )
    search_request = planned(request(budget=Budget(candidates=6)), calls=1, parallel=1)
    events = await play([author], search_request=search_request)
    assert author.repairs == ["The kernel raised ValueError."]
    assert any("time_us = 40" in e.suggestion.text for e in events if isinstance(e, SuggestionFound))


async def test_a_limit_is_not_repaired() -> None:
    class Slow(ToyCost):
        async def cost(self, text: str, kernel: str) -> KernelMeasurement:
            raise CostUnavailableError("timeout", "It took too long.", lasting=False)

    author = Author(idle)
    await play([author], search_request=request(budget=Budget(candidates=3)), cost=Slow())
    assert author.repairs == []


@pytest.mark.parametrize("cut", [1, 2])
async def test_what_failed_before_an_interruption_is_still_known_and_mended(tmp_path: Path, cut: int) -> None:
    def writes(node: Node, count: int) -> str:
        if node.failure is not None:
            return node.text.replace("raise ValueError", "return x").replace("time_us = 100", "time_us = 40")
        if node.parent is not None:
            return idle(node, count)
        return node.text.replace("return x", "raise ValueError")

    memory = Memory.open(tmp_path / "memory.db")
    try:
        search_request = planned(request(TEXT, Budget(candidates=cut)), calls=1)
        tried = 0
        interrupted = start([Author(writes)], memory, search_request)
        async for event in interrupted:
            tried += isinstance(event, CandidateTried)
            if tried == cut:
                break
        await interrupted.aclose()  # type: ignore[attr-defined]
        author = Author(writes)
        again = replace(planned(request(TEXT, Budget(candidates=3)), calls=1), resume=True)
        events = await play([author], memory, again)
    finally:
        memory.close()
    tries = [e for e in events if isinstance(e, CandidateTried)]
    assert tries[0].outcome == "failed"
    assert any("time_us = 40" in e.suggestion.text for e in events if isinstance(e, SuggestionFound))
    assert len(author.repairs) == (1 if cut == 1 else 0)  # the second was paid for
