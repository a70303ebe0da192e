"""What a role is told about a kernel: items by similarity times expected gain, short differences, known failures."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from accelopt_agent.experience.experience import (
    choose_experience,
    policies,
    policy_named,
    short_change,
    track_record,
)
from accelopt_agent.model.answer import Answer
from accelopt_agent.model.experience_source import ExperienceSource, coder_text, experience_text
from accelopt_agent.model.proposer import ModelProposer
from accelopt_agent.model.settings import ModelSettings
from accelopt_agent.request import Budget
from accelopt_agent.search.budget import Meter
from accelopt_agent.search.node import Node
from accelopt_agent.search.proposer import ProposerError
from accelopt_memory.features import kernel_features
from accelopt_memory.memory import Memory
from accelopt_memory.outcomes import Outcome, OutcomePrior
from accelopt_memory.records import LikeFailure, Match, Pair, Trap
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.measurement import KernelMeasurement, Latency
from accelopt_profiling.quantity import CounterMove, Known

SLOW = """\
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(y_ptr + at, x * 2.0, mask=at < n)


def scale(x, y):
    scale_kernel[(triton.cdiv(x.numel(), 128),)](x, y, x.numel(), BLOCK=128)
"""
FAST = SLOW.replace("128", "1024").replace(
    "    x = tl.load(x_ptr + at, mask=at < n)\n",
    "    keep = at < n\n    x = tl.load(x_ptr + at, mask=keep)\n",
)
OTHER = SLOW.replace("scale_kernel", "half_kernel").replace("x_ptr", "source").replace("* 2.0", "* 0.5")

#: Outcomes on other kernels: what rule:good does helps, what rule:bad does hurts.
OUTCOMES = [
    Outcome(item, f"task{k}", "memory", "triton", "h100", math.log(ratio))
    for item, ratio in (("rule:good", 0.6), ("rule:bad", 1.2))
    for k in range(4)
]


def pair(number: int = 0, ratio: float = 2.0, **changes: object) -> Pair:
    us = 100.0 / ratio
    record = Pair(
        kernel="scale_kernel", dialect="triton", target="h100", slow_text=SLOW,
        fast_text=f"{FAST}# {number}\n", slow_hash="slow", fast_hash=f"fast{number}", origin="person",
        summary=f"change {number}", features=kernel_features(SLOW, "scale_kernel", "memory"),
        slow=Latency(100.0, 90.0, 110.0, Known.ESTIMATED), fast=Latency(us, us * 0.9, us * 1.1, Known.ESTIMATED),
        steps=("person",), bound="memory", edit=f"edit{number}",
    )  # fmt: skip
    return replace(record, **changes)  # type: ignore[arg-type]


def chosen(near: list[Match], prior: OutcomePrior | None = None, policy: str = "ours") -> list[str]:
    newest = [match.pair for match in near]
    experience = choose_experience(
        policy_named(policy), near, newest, [], prior or OutcomePrior(()), "memory", "h100"
    )
    return [item.summary for item in experience.items]


def test_similarity_counts_as_much_as_the_expected_gain() -> None:
    near = [Match(pair(1, 1.05), 0.9), Match(pair(2, 3.0), 0.8), Match(pair(3, 3.0), 0.3)]
    assert chosen(near) == ["change 2", "change 3", "change 1"]


def test_what_outcomes_say_outweighs_the_gain_of_one_pair() -> None:
    good, bad = (pair(k, 1.5, steps=(f"rule:{n}",)) for k, n in enumerate(("good", "bad")))
    assert chosen([Match(bad, 0.9), Match(good, 0.8)], OutcomePrior(OUTCOMES)) == ["change 0"]


def test_one_item_for_each_edit_and_no_more_than_four() -> None:
    same = [Match(pair(k, edit="one"), 0.9) for k in range(3)]
    different = [Match(pair(k), 0.5) for k in range(10, 16)]
    summaries = chosen([*same, *different])
    assert len(summaries) == 4
    assert sum(name in ("change 0", "change 1", "change 2") for name in summaries) == 1


@pytest.mark.parametrize(("policy", "count"), [("none", 0), ("fifo-16", 16), ("random-16", 16), ("ours", 4)])
def test_the_policies_of_others_are_data(policy: str, count: int) -> None:
    near = [Match(pair(k, 2.0 - k / 100), 0.5) for k in range(40)]
    assert len(chosen(near, policy=policy)) == count
    assert policies()[policy].what


def test_first_in_first_out_keeps_the_newest_and_random_only_the_newest_round() -> None:
    near = [Match(pair(k), 0.5) for k in range(40)]
    assert chosen(near, policy="fifo-16") == [f"change {k}" for k in range(24, 40)]
    random = chosen(near, policy="random-16")
    assert {f"change {k}" for k in range(32, 40)} < set(random)
    assert random == chosen(near, policy="random-16")


def test_a_kernel_where_it_helped_once_does_not_count_as_failed() -> None:
    tries = [OUTCOMES[0], replace(OUTCOMES[0], rewrite="b", failed=True), replace(OUTCOMES[1], failed=True)]
    record = track_record(tries)
    assert (record.tasks, record.helped, record.failed) == (2, 1, 1)


def test_a_change_is_shown_in_eight_lines_of_both_sides() -> None:
    slow = "".join(f"a = tl.load(p{k})\n" for k in range(20))
    fast = "import os\n# remark\n" + "".join(f"b{k} = 1\n" for k in range(20))
    lines, left_out = short_change(slow, fast)
    assert len(lines) == 8
    assert left_out == 32
    assert [line[0] for line in lines] == ["-"] * 4 + ["+"] * 4
    assert not any("import" in line or "remark" in line for line in lines)


def test_the_text_tells_gain_bounds_counters_record_and_failures_without_paths() -> None:
    own_pair = pair(
        1, fast_bound="latency", moved=(CounterMove("global_bytes", 2e6, 1e6, "B", Known.EXECUTED),),
        lesson="Fewer programs are launched; see /home/me/secret/notes.txt", steps=("rule:good",),
    )  # fmt: skip
    trap = Trap("h", "c", "h100", "model:m", "wrong-result", "element 7 is off", summary="Drop the mask")
    experience = choose_experience(
        policy_named("ours"), [Match(own_pair, 0.9)], [], [LikeFailure(trap, 0.8)], OutcomePrior(OUTCOMES),
        "memory", "h100",
    )  # fmt: skip
    text = experience_text(experience)
    for words in (
        "2.00x (estimated) on h100", "limited by memory before, by latency after",
        "global_bytes 2e+06 to 1e+06 B (executed)", "helped 4 of 4 kernels", "+keep = at < n",
        "Drop the mask: wrong-result: element 7 is off", "notes.txt",
    ):  # fmt: skip
        assert words in text
    assert "/home/me" not in text


def test_the_text_keeps_to_its_budget_of_tokens() -> None:
    near = [Match(pair(k), 0.9 - k / 10) for k in range(4)]
    experience = choose_experience(policy_named("ours"), near, [], [], OutcomePrior(()), "memory", "h100")
    whole, short = experience_text(experience), experience_text(experience, 200)
    assert 0 < len(short) <= 800 < len(whole)
    assert "change 0" in short


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "memory.db") as opened:
        yield opened


def node_of(text: str) -> Node:
    kernel = find_kernels(text).kernels[0]
    measurement = KernelMeasurement(kernel.name, kernel.line, "triton", "h100", bound="memory")
    return Node(text, kernel, measurement)


def test_experience_comes_from_the_memory_and_the_coder_sees_it_in_its_own_names(memory: Memory) -> None:
    memory.add_pair(pair(1, summary="Larger blocks, mask computed once"))
    memory.kernels.note("other", kernel_features(SLOW, "scale_kernel", "memory"))
    memory.add_trap(Trap("other", "c", "h100", "rule:x", "slower", "9 us instead of 8 us", summary="8 warps"))
    node = node_of(OTHER)
    experience = asyncio.run(ExperienceSource(memory, "h100").of(node))
    assert [(i.summary, f.what) for i, f in zip(experience.items, experience.failures, strict=True)] == [
        ("Larger blocks, mask computed once", "8 warps")
    ]
    text = coder_text(experience, node, "Use larger blocks")
    assert "x = tl.load(source + at, mask=keep)" in text
    assert "x_ptr" not in text
    assert coder_text(experience, node, "Nothing alike") == ""


def test_a_kernel_is_not_told_the_change_that_made_it(memory: Memory) -> None:
    node = node_of(FAST)
    memory.add_pair(pair(1, fast_text=FAST, fast_hash=node.kernel.content_hash))
    assert asyncio.run(ExperienceSource(memory, "h100").of(node)).items == ()


@pytest.mark.parametrize(("place", "is_shown"), [("project", True), ("elsewhere", False)])
def test_code_of_other_projects_is_not_told_to_a_model_elsewhere(
    memory: Memory, tmp_path: Path, place: str, is_shown: bool
) -> None:
    memory.add_pair(pair(1, file=str(tmp_path / place / "k.py"), lesson="the mask was computed twice"))
    source = ExperienceSource(memory, "h100", within=tmp_path / "project")
    node = node_of(OTHER)
    experience = asyncio.run(source.of(node))
    text = source.planner_text(experience) + source.coder_text(experience, node, "change")
    assert "change 1" in text
    assert ("keep" in text, "twice" in text) == (is_shown, is_shown)


def test_with_the_kernel_alone_shared_no_launch_is_shown(memory: Memory) -> None:
    memory.add_pair(pair(1))
    source = ExperienceSource(memory, "h100", share="kernel")
    node = node_of(OTHER)
    experience = asyncio.run(source.of(node))
    text = source.planner_text(experience) + source.coder_text(experience, node, "change")
    assert "keep = at < n" in text
    assert "cdiv" not in text


def test_planner_and_coder_are_told_of_the_memory(memory: Memory) -> None:
    memory.add_pair(pair(1, summary="Larger blocks, mask computed once"))
    prompts: list[str] = []

    async def model(
        settings: ModelSettings, system: str, user: str, *, backoff_seconds: float = 1.0, **_: object
    ) -> Answer:
        prompts.append(user)
        return Answer("LINES 8-8\nLarger blocks: compute the mask once.", 1, 1)

    proposer = ModelProposer(
        ModelSettings("http://127.0.0.1:1", "toy"), Meter(Budget()), "h100",
        query=model, experience=ExperienceSource(memory, "h100"),
    )  # fmt: skip
    with pytest.raises(ProposerError):  # the coder's answer is none
        asyncio.run(proposer.propose(node_of(OTHER)))
    assert "+keep = at < n" in prompts[0]
    assert "tl.load(source + at, mask=keep)" in prompts[1]


def test_without_a_memory_there_is_no_experience() -> None:
    assert asyncio.run(ExperienceSource(None, "h100").of(node_of(SLOW))).items == ()


def test_an_unknown_policy_is_named_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match="fifo-16"):
        policy_named("lifo")
