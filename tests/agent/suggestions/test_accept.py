"""What accepting and rejecting a suggestion leave in the memory."""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support.toy_search import FUSED, TEXT, WIDE, ToyProposer, play, request

from accelopt_agent.events import SuggestionFound
from accelopt_agent.learn import accept_learned
from accelopt_agent.suggestions.accept import accept, notice_undone, offer_again, reject
from accelopt_agent.suggestions.suggestion import Suggestion
from accelopt_memory.errors import MemoryUnavailableError
from accelopt_memory.memory import Memory
from accelopt_profiling.kernels import find_kernels


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory.open(tmp_path / "memory.db")


async def best(memory: Memory, text: str = TEXT) -> list[Suggestion]:
    events = await play([ToyProposer({**WIDE, **FUSED})], memory, search_request=request(text))
    suggestions = [e.suggestion for e in events if isinstance(e, SuggestionFound)]
    return sorted(suggestions, key=lambda s: s.fast.us or 0)


async def test_an_accepted_suggestion_is_a_pair_with_its_evidence(memory: Memory) -> None:
    suggestion = (await best(memory))[0]
    pair_id = accept(memory, suggestion)
    assert accept(memory, suggestion) == pair_id
    pair = memory.pair(pair_id)
    assert pair is not None
    assert len(memory.pairs()) == 1
    assert (pair.slow_text, pair.fast_text) == (suggestion.base_text, suggestion.text)
    assert pair.slow_hash == suggestion.base_hash != pair.fast_hash
    assert pair.steps == suggestion.steps
    assert pair.speedup == pytest.approx(suggestion.speedup.value)
    assert [memory.receipt(r) is not None for r in pair.receipts] == [True]
    assert pair.edit
    assert not pair.example
    outcomes = {o.item: o for o in memory.outcomes.all()}
    assert outcomes[f"edit:{pair.edit}"].accepted
    assert outcomes[f"edit:{pair.edit}"].log_ratio == pytest.approx(-math.log(suggestion.speedup.value))
    assert all(outcomes[step].accepted and outcomes[step].task == pair.slow_hash for step in suggestion.steps)
    stored = memory.suggestion(suggestion.id)
    assert stored is not None
    assert stored.state == "accepted"


async def test_a_rejected_suggestion_is_not_offered_again_even_after_other_code_changed(
    memory: Memory,
) -> None:
    unwanted = await best(memory)
    for suggestion in unwanted:
        reject(memory, suggestion, "too clever")
    assert {r.reason for r in memory.rejected()} == {"too clever"}
    offered = await best(memory, TEXT.replace("return 1", "return 2"))
    assert not {s.steps for s in offered} & {s.steps for s in unwanted}
    assert len(await best(memory, TEXT.replace("return x", "return 2 * x"))) > 0  # another kernel


async def test_a_suggestion_without_its_kernel_is_not_remembered(memory: Memory) -> None:
    suggestion = (await best(memory))[0]
    broken = Suggestion(**{**vars(suggestion), "text": "x = 1\n"})
    with pytest.raises(ValueError, match="does not hold"):
        accept(memory, broken)
    assert memory.pairs() == []


def _killed_at_save(path: Path, suggestion: Suggestion, save: str, decide: Callable[..., str]) -> int:
    """Decide in a child that kills itself where ``Memory.<save>`` has just saved; its exit status."""
    child = os.fork()
    if not child:
        memory = Memory.open(path)
        real = getattr(memory, save)

        def last(*arguments: object, **keywords: object) -> None:
            real(*arguments, **keywords)
            os.kill(os.getpid(), signal.SIGKILL)

        setattr(memory, save, last)
        try:
            decide(memory, suggestion)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize(
    ("decide", "save"),
    [
        (accept, "add_pair"),
        (accept, "save_suggestion"),
        (reject, "add_rejection"),
        (reject, "save_suggestion"),
    ],
)
async def test_a_kill_between_the_writes_of_a_decision_leaves_none_of_them(
    memory: Memory, tmp_path: Path, decide: Callable[..., str], save: str
) -> None:
    suggestion = (await best(memory))[0]
    assert _killed_at_save(tmp_path / "memory.db", suggestion, save, decide) == -signal.SIGKILL
    stored = memory.suggestion(suggestion.id)
    assert stored is not None
    assert (memory.pairs(), memory.rejected(), stored.state) == ([], [], "offered")
    decide(memory, suggestion)
    decided = memory.suggestion(suggestion.id)
    assert decided is not None
    assert (len(memory.pairs()) + len(memory.rejected()), decided.state) == (1, f"{decide.__name__}ed")


async def test_a_decision_that_fails_half_way_leaves_nothing(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    suggestion = (await best(memory))[0]

    def full(*arguments: object) -> str:
        raise MemoryUnavailableError("disk-full", memory.path, "database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(memory, "save_suggestion", full)
        with pytest.raises(MemoryUnavailableError):
            accept(memory, suggestion)
    assert memory.pairs() == []
    assert accept(memory, suggestion) == memory.pairs()[0].id


async def test_an_undone_suggestion_is_withdrawn_counts_against_and_is_offered_again(memory: Memory) -> None:
    suggestion = (await best(memory))[0]
    before = time.time()
    pair = accept(memory, suggestion)
    targets = {suggestion.base_hash: suggestion.target}
    (fast,) = (k.content_hash for k in find_kernels(suggestion.text).kernels if k.name == suggestion.kernel)
    assert notice_undone(memory, suggestion.file, {fast: suggestion.target}, time.time()) == []
    assert (
        notice_undone(memory, suggestion.file, targets, before) == []
    )  # that text was read before the acceptance
    assert [s.id for s in notice_undone(memory, suggestion.file, targets, time.time())] == [suggestion.id]
    assert memory.pair(pair) is None
    stored = memory.suggestion(suggestion.id)
    assert stored is not None
    assert stored.state == "offered"
    assert {o.item for o in memory.outcomes.all() if o.undone} >= {*suggestion.steps}
    assert notice_undone(memory, suggestion.file, targets, time.time()) == []
    assert accept(memory, suggestion) == pair
    assert not any(o.undone for o in memory.outcomes.all())


@pytest.mark.parametrize("moved", [False, True])
async def test_a_file_that_is_opened_tells_of_an_undo_unless_git_moved(
    memory: Memory, tmp_path: Path, moved: bool
) -> None:
    suggestion = replace((await best(memory))[0], id="here", file=str(tmp_path / "project" / "k.py"))
    head = tmp_path / "project" / ".git" / "HEAD"
    head.parent.mkdir(parents=True)
    head.write_text("ref: refs/heads/main")
    os.utime(head, (0, 0))
    accept(memory, suggestion)
    if moved:
        os.utime(head, (time.time() + 5,) * 2)  # a file system may be behind the clock
    targets = {suggestion.base_hash: suggestion.target}
    undone = notice_undone(memory, suggestion.file, targets, time.time(), opened=True)
    assert [s.id for s in undone] == ([] if moved else [suggestion.id])


async def test_a_rejection_can_get_a_reason_and_be_undone(memory: Memory) -> None:
    suggestion = (await best(memory))[0]
    reject(memory, suggestion)
    reject(memory, suggestion, "unreadable")
    assert [r.reason for r in memory.rejected()] == ["unreadable"]
    offer_again(memory, suggestion)
    assert memory.rejected() == []
    assert suggestion.id in {s.id for s in memory.suggestions(state="offered")}


@pytest.mark.parametrize("edited", [True, False])
async def test_a_suggestion_that_a_person_edited_counts_as_edited(memory: Memory, edited: bool) -> None:
    suggestion = (await best(memory))[0]
    text = (
        suggestion.text.replace("    return x", "    y = x\n    return y") if edited else suggestion.base_text
    )
    own = replace(suggestion, id="own", text=text.replace("time_us = 100", "time_us = 90"), steps=("person",))
    accept_learned(memory, replace(own, origin="person"))
    marked = {o.item for o in memory.outcomes.all() if o.edited}
    assert marked == (set(suggestion.steps) if edited else set())
    stored = memory.suggestion(suggestion.id)
    assert stored is not None
    assert stored.state == ("accepted" if edited else "offered")
