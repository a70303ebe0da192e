"""Which versions a lesson is written about, and where it is kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.played_model import PATIENCE, playing, says
from support.toy_search import TEXT, ToyCost, ToyGate, measurement, request

from accelopt_agent.events import SuggestionFound
from accelopt_agent.model.proposer import ModelProposer
from accelopt_agent.model.settings import ModelSettings
from accelopt_agent.optimize import drive
from accelopt_agent.request import Budget, LessonLimits
from accelopt_agent.search.node import Failure, Node
from accelopt_agent.search.trial_result import lessons_due
from accelopt_agent.suggestions.lesson import lesson_line, lesson_of
from accelopt_memory.memory import Memory
from accelopt_profiling.kernels import find_kernels


def node(us: int, parent: Node | None = None, failure: Failure | None = None, checked: bool = False) -> Node:
    text = TEXT.replace("time_us = 100", f"time_us = {us}")
    new_node = Node(text, find_kernels(text).kernels[0], measurement(text), parent=parent, failure=failure)
    new_node.verdict = "accepted" if checked else None
    if parent is not None:
        parent.children.append(new_node)
    return new_node


def test_lessons_are_about_checked_gains_and_clear_losses() -> None:
    root = node(100)
    fast, faster = node(80, root, checked=True), node(60, root, checked=True)
    node(40, root)  # not checked
    node(98, root, checked=True)  # too little
    node(110, root)  # too little as well
    slow, slower = node(130, root), node(200, fast)
    node(300, root, Failure("capacity", "no room"))
    due = list(lessons_due(root, LessonLimits()))
    assert due == [(root, faster, faster), (root, fast, fast), (slower, fast, slower), (slow, root, slow)]
    assert len(list(lessons_due(root, LessonLimits(most=1)))) == 1
    assert not list(lessons_due(root, LessonLimits(most=0)))


async def test_a_lesson_is_kept_with_what_was_checked(tmp_path: Path) -> None:
    memory = Memory.open(tmp_path / "memory.db")
    plan = says("LINES 7-8\nMake it wide, so that fewer loads are waited for.")
    wide = says("<<<<<<< CHANGE 1\n    time_us = 60\n    wide = True\n>>>>>>>")
    with playing([plan, wide, says("Made wide, it waits for fewer.")]) as played:
        settings = ModelSettings(played.url, "toy", seconds=PATIENCE)
        events = [
            e async for e in drive(
                request(TEXT, Budget(candidates=1)), ToyCost(), ToyGate(), memory, "toy",
                lambda meter: [ModelProposer(settings, meter, "trn1", backoff_seconds=0.001)],
            )
        ]  # fmt: skip
    suggestions = [e.suggestion for e in events if isinstance(e, SuggestionFound)]
    assert lesson_of(memory, suggestions[0]) == "Made wide, it waits for fewer."


SLOW = "COLUMNS = 512  # the new version\ntile = nl.load(x)\n"


@pytest.mark.parametrize(
    ("text", "lesson"),
    [
        ("COLUMNS doubles.\n\nHalf as many descriptors.", "COLUMNS doubles. Half as many descriptors."),
        ("Each of them has 1024 now.", "Each of them has 1024 now."),
        ("It loads less often.", "It loads less often."),
        ("Fewer DMA transfers.", "Fewer DMA transfers."),
        ("I cannot help with that.", ""),
        ("The new version is faster than the old version, as it is better optimised.", ""),
        ("Sure! Here is why:", ""),
        ("", ""),
    ],
)
def test_a_lesson_names_something_of_the_change(text: str, lesson: str) -> None:
    assert lesson_line(text, SLOW, SLOW.replace("512", "1024"), ["dma_bytes"]) == lesson
