from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from accelopt_agent.experience.standing import standings_for_kernel, standings_with_words
from accelopt_lsp.errors import UserError
from accelopt_lsp.features.memory_list import memory_list, pair_texts
from accelopt_lsp.features.memory_page import forget_pair, memory_page
from accelopt_memory.features import kernel_features
from accelopt_memory.memory import Memory
from accelopt_memory.outcomes import Outcome
from accelopt_memory.records import Pair
from accelopt_profiling.measurement import Latency
from accelopt_profiling.quantity import Known

SLOW = """import triton
import triton.language as tl


@triton.jit
def double(x_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x_ptr + at, tl.load(x_ptr + at) * 2)
"""


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    memory = Memory.open(tmp_path / "m.db")
    memory.add_pair(
        Pair(
            "double", "triton", "h100", SLOW, SLOW.replace("* 2", "+ tl.load(x_ptr + at)"), "s", "f", "rule:add",
            "Add it to itself <img src=x> | ``` now", kernel_features(SLOW, "double"),
            Latency(9.0, 8.0, 10.0, Known.ESTIMATED), Latency(6.0, 5.0, 7.0, Known.ESTIMATED), ("rule:add",),
            bound="memory", edit="e1",
        )
    )  # fmt: skip
    for task, ratio in enumerate((0.5, 0.8, None)):
        memory.outcomes.add(
            Outcome(
                "edit:e1", f"t{task}", "memory", "triton", "h100", ratio and math.log(ratio), failed=not ratio
            )
        )
    return memory


def test_the_page_says_why_a_change_is_tried_and_shows_it_as_data(memory: Memory) -> None:
    (one,) = standings_for_kernel(memory, SLOW.replace("double", "twice"), "twice", "memory", "h100")
    page = memory_page("twice", [one])
    assert "Its slow side is 100 % like this kernel." in page
    assert "It was tried on 3 kernels, helped on 2, failed or was undone on 1." in page
    assert "+    tl.store(x_ptr + at, tl.load(x_ptr + at) + tl.load(x_ptr + at))" in page
    assert "<img" not in page.replace("\\<img", "")
    assert one.expected < 0.95
    assert [s.similarity for s in standings_with_words(memory, "itself")] == [None]
    assert "There is none" in memory_page("x", standings_with_words(memory, "nowhere"))


def test_a_pair_is_forgotten_by_the_beginning_of_its_id(memory: Memory) -> None:
    (pair,) = memory.pairs()
    for wrong in ("zzzz", ""):
        with pytest.raises(UserError, match="nothing was forgotten"):
            forget_pair(wrong, memory)
    assert forget_pair(pair.id[:6], memory) == f"Forgot the pair {pair.id}."
    assert memory.pairs() == []


def test_the_list_holds_a_projects_pairs_with_what_each_was_used_for(memory: Memory, tmp_path: Path) -> None:
    (first,) = memory.pairs()
    own, other = (
        replace(first, kernel=name, file=str(tmp_path / folder / "k.py"), created="")
        for name, folder in (("mine", "here"), ("theirs", "there"))
    )
    for pair in (own, other):
        memory.add_pair(pair)
    body = {"id": "s1", "run": "r", "file": "/x/k.py", "base_hash": "b", "kernel": "twice"}
    memory.save_suggestion({**body, "steps": ["rule:add", f"memory:{own.id}"]}, "accepted")
    memory.save_suggestion({**body, "id": "s2", "steps": ["rule:add"], "summary": f"memory:{own.id}"})
    (row,) = memory_list([str(tmp_path / "here")], memory)
    assert (row["id"], row["kernel"], row["gain"]) == (own.id, "mine", "1.50x estimated")
    assert row["tries"] == "It was tried on 3 kernels, helped on 2, failed or was undone on 1."
    assert row["uses"] == [{"id": "s1", "kernel": "twice", "file": "/x/k.py", "state": "accepted"}]
    assert [row["kernel"] for row in memory_list([str(tmp_path)], memory)] == ["theirs", "mine"]
    assert pair_texts(own.id, memory) == {"slow": own.slow_text, "fast": own.fast_text}
    with pytest.raises(UserError, match="no pair"):
        pair_texts("zzzz", memory)
