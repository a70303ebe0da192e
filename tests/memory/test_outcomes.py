"""What became of every try is kept once, and the expectations that follow from it."""

from __future__ import annotations

import dataclasses
import math
import random
from pathlib import Path

import pytest

from accelopt_memory.memory import Memory
from accelopt_memory.outcomes import MOST_LOG, Outcome, OutcomePrior


def tried(
    item: str, task: str, ratio: float | None, bound: str = "dma", target: str = "trn1", **more: bool
) -> Outcome:
    log = None if ratio is None else math.log(ratio)
    return Outcome(
        item, task, bound, "nki", target, log, f"{item} {task} {ratio}", failed=ratio is None, **more
    )


def test_a_try_is_kept_once_and_a_decision_is_noted(path: Path) -> None:
    one = tried("rule:a", "k1", 0.5)
    with Memory.open(path) as memory:
        for _ in range(2):
            memory.outcomes.add(one)
        memory.outcomes.add(tried("rule:a", "k2", 0.5))
        memory.outcomes.mark(["rule:a"], "k1", "trn1", accepted=True)
        memory.outcomes.refuse("k2", "trn1", "rule:a k2 0.5")
        outcomes = memory.outcomes.all("nki")
        assert [(o.task, o.accepted, o.failed) for o in outcomes] == [
            ("k1", True, False),
            ("k2", False, True),
        ]
        assert memory.outcomes.all("triton") == []
        (summary,) = memory.outcomes.summaries()
        assert (summary.tasks, summary.tries, summary.failed, summary.accepted) == (2, 2, 1, 1)
        assert memory.outcomes.prior("nki").expected("rule:a", "dma", "trn1") < 0.97


def test_the_same_history_in_any_order_gives_the_same_expectations() -> None:
    history = [tried(f"rule:{k % 5}", f"k{k % 7}", 0.5 + k / 40, bound=f"b{k % 2}") for k in range(40)]
    shuffled = random.Random(3).sample(history, len(history))
    for item in ("rule:0", "rule:4", "rule:never"):
        assert OutcomePrior(history).expected(item, "b1", "trn1") == OutcomePrior(shuffled).expected(
            item, "b1", "trn1"
        )


def test_every_task_has_one_vote() -> None:
    many = [dataclasses.replace(tried("rule:a", "k1", 0.5), rewrite=str(k)) for k in range(50)]
    once = OutcomePrior([many[0], tried("rule:a", "k2", 1.0)])
    often = OutcomePrior([*many, tried("rule:a", "k2", 1.0)])
    assert often.expected("rule:a", "dma", "trn1") == pytest.approx(once.expected("rule:a", "dma", "trn1"))


def test_one_lucky_kernel_is_clipped_and_few_outcomes_are_shrunk() -> None:
    lucky = OutcomePrior([tried("rule:a", "k1", 0.001)])
    quarter = OutcomePrior([tried("rule:a", "k1", 0.25)])
    assert lucky.expected("rule:a", "dma", "trn1") == quarter.expected("rule:a", "dma", "trn1") > 0.25
    more = OutcomePrior([tried("rule:a", f"k{k}", 0.25) for k in range(30)])
    assert more.expected("rule:a", "dma", "trn1") < quarter.expected("rule:a", "dma", "trn1")


def test_what_bounds_a_kernel_counts_and_other_bounds_and_targets_count_less() -> None:
    prior = OutcomePrior(
        [tried("rule:a", f"k{k}", 0.5, "dma") for k in range(4)]
        + [tried("rule:a", f"m{k}", 1.2, "tensor") for k in range(4)]
    )
    here, there = (prior.expected("rule:a", bound, "trn1") for bound in ("dma", "tensor"))
    assert here < prior.expected("rule:a", "dma", "trn2") < prior.expected("rule:a", "scalar", "trn1") < there


def test_accepted_counts_double_and_undone_against() -> None:
    base = [tried("rule:a", "k2", 1.0)]

    def expected(**decision: bool) -> float:
        one = tried("rule:a", "k1", 0.6, **decision)
        return OutcomePrior([*base, one]).expected("rule:a", "dma", "trn1")

    assert expected(accepted=True) < expected() < expected(undone=True)
    assert tried("rule:a", "k1", 0.01, undone=True).vote == (MOST_LOG, 2.0)


def test_an_item_never_tried_gets_a_small_bonus() -> None:
    prior = OutcomePrior([tried("rule:a", f"k{k}", 0.9) for k in range(20)])
    assert 0.95 < prior.expected("rule:new", "dma", "trn1") / math.exp(math.log(0.9)) < 1.02


def test_within_a_search_the_estimate_starts_at_the_hope_and_moves_with_the_evidence() -> None:
    empty = OutcomePrior([])
    assert empty.expected_here("rule:x", None, "trn1", 0.8) == pytest.approx(0.8)
    one, many = (
        OutcomePrior([Outcome("rule:x", f"k{k}", None, "nki", "trn1", math.log(0.5)) for k in range(count)])
        for count in (1, 30)
    )
    ratios = [prior.expected_here("rule:x", None, "trn1", 0.9) for prior in (empty, one, many)]
    assert ratios[0] == pytest.approx(0.9)
    assert ratios[0] > ratios[1] > ratios[2] > 0.5
    tried = [many.expected_here("rule:x", None, "trn1", 0.9, [1.2] * count) for count in range(4)]
    assert tried == sorted(tried), "each try here that gained nothing counts against it"
    assert tried[-1] < 1.0
