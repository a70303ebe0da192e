"""What a search checked teaches at once: marked, until a person accepts it, and withdrawn when one does not want it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.toy_search import TEXT, ToyProposer, planned, play, request

from accelopt_agent.candidate import Candidate
from accelopt_agent.events import CandidateTried, SuggestionFound
from accelopt_agent.request import Budget
from accelopt_agent.search.node import Node
from accelopt_agent.suggestions.accept import accept, reject
from accelopt_agent.suggestions.suggestion import Suggestion
from accelopt_agent.transfer.proposer import MemoryProposer
from accelopt_memory.memory import Memory

#: Another kernel, whose time is written in the same way.
OTHER = TEXT.replace("def kernel(x)", "def kernel(values, count)").replace(
    "return x", "kept = values\n    return kept"
)


class Once:
    """A model with one idea, for the original."""

    name = "model"

    async def propose(self, node: Node) -> list[Candidate]:
        if node.parent is not None:
            return []
        text = node.text.replace("time_us = 100", "time_us = 50").replace("wide = False", "wide = True")
        return [Candidate("kernel", text, "model:toy", "load rows in full", steps=("model:toy",))]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "memory.db") as opened:
        yield opened


async def checked(memory: Memory) -> Suggestion:
    events = await play([Once()], memory, request(budget=Budget(candidates=4)))
    (suggestion,) = [e.suggestion for e in events if isinstance(e, SuggestionFound)]
    return suggestion


async def test_what_was_checked_is_tried_on_the_next_kernel_before_anybody_accepted_it(
    memory: Memory,
) -> None:
    await checked(memory)
    assert [p.checked for p in memory.pairs(checked=True)] == [True]
    assert memory.pairs() == []
    assert (memory.stats().pairs, memory.stats().checked) == (0, 1)
    assert "checked, not accepted" in memory.search("load")[0].summary
    events = await play([MemoryProposer(memory)], memory, request(OTHER, Budget(candidates=4)))
    (tried,) = [e for e in events if isinstance(e, CandidateTried)]
    assert tried.candidate.origin.startswith("memory:")
    assert "from a checked change of kernel" in tried.candidate.summary
    assert any("time_us = 50" in e.suggestion.text for e in events if isinstance(e, SuggestionFound))


async def test_a_person_makes_it_an_accepted_pair_or_withdraws_it(memory: Memory) -> None:
    suggestion = await checked(memory)
    accept(memory, suggestion)
    assert [p.checked for p in memory.pairs(checked=True)] == [False]
    reject(memory, suggestion)
    assert len(memory.pairs()) == 1  # which is undone in another way
    memory.forget(memory.pairs()[0].id)
    await play([Once()], memory, request(TEXT.replace("return x", "return x, 1"), Budget(candidates=4)))
    (pair,) = memory.pairs(checked=True)
    reject(
        memory, replace(suggestion, base_text=pair.slow_text, text=pair.fast_text, base_hash=pair.slow_hash)
    )
    assert memory.pairs(checked=True) == []


async def test_of_steps_on_one_way_the_last_teaches(memory: Memory) -> None:
    rules = {"a": ("wide = False", "wide = True", 30), "b": ("fused = False", "fused = True", 30)}
    events = await play([ToyProposer(rules)], memory, planned(request(), parallel=1))
    steps = [e.suggestion.steps for e in events if isinstance(e, SuggestionFound)]
    assert len(steps) == 2
    assert [p.steps for p in memory.pairs(checked=True)] == [steps[-1]]
