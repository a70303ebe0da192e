"""The search of a benchmark: it tries what promises nothing too, for a while, and checks at the end."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from support.toy_search import (
    FUSED,
    SLOW,
    TEXT,
    TINY,
    WIDE,
    WRONG,
    ToyCost,
    ToyGate,
    ToyProposer,
    measurement,
    planned,
    play,
    request,
)

from accelopt_agent.candidate import Candidate
from accelopt_agent.events import CandidateTried, SuggestionFound
from accelopt_agent.request import Budget
from accelopt_agent.search.node import Node
from accelopt_agent.search.strategies.step_expectation import TRIES_IN_VAIN, StepExpectation
from accelopt_agent.search.trial import Trial
from accelopt_memory.outcomes import Outcome, OutcomePrior
from accelopt_profiling.kernels import find_kernels


async def tried(patience: int) -> tuple[int, list[Any]]:
    search_request = planned(request(budget=Budget(seconds=600.0)), options={"patience": patience})
    events = await play([ToyProposer({**WIDE, **SLOW, **TINY})], search_request=search_request)
    suggestions = [e.suggestion for e in events if isinstance(e, SuggestionFound)]
    return sum(isinstance(e, CandidateTried) for e in events), suggestions


async def test_with_patience_what_promises_nothing_is_tried_too() -> None:
    (few, _), (more, _) = await tried(0), await tried(8)
    assert (
        few < more
    )  # the slow and the tiny step on the original, after the wide one has made that the slower one


@pytest.mark.parametrize("check_last", [False, True])
async def test_checks_may_wait_for_the_end(check_last: bool) -> None:
    gate, cost = ToyGate(), ToyCost()
    search_request = planned(request(), options={"check_last": check_last})
    events = await play([ToyProposer({**WIDE, **FUSED})], search_request=search_request, gate=gate, cost=cost)
    best = min(float(e.suggestion.fast.us or 0) for e in events if isinstance(e, SuggestionFound))
    assert best == 56  # both rules, one after the other
    assert (len(gate.seen) == 1) is check_last


async def test_a_refusal_at_the_end_leads_to_the_next_fastest() -> None:
    gate = ToyGate()
    search_request = planned(request(), options={"check_last": True})
    events = await play([ToyProposer({**WIDE, **WRONG})], search_request=search_request, gate=gate)
    suggestions = [e.suggestion for e in events if isinstance(e, SuggestionFound)]
    assert suggestions
    assert all("wrong" not in s.text for s in suggestions)
    assert any("wrong" in text for text in gate.seen)


def test_of_a_rule_that_gained_nothing_in_two_places_little_is_hoped_elsewhere() -> None:
    experience, root = StepExpectation(), node(100)
    trials = [trial(root, "rule:balance", f"move line {line}") for line in range(4)]
    gained = trial(root, "rule:wider", "load rows in full")
    experience.add_proposals([*trials, gained])
    for tried in trials[:2]:
        experience.add_result(tried, node(100))
    experience.add_result(gained, node(93))
    again = trial(root, "rule:wider", "load rows in full")
    assert experience.ratio(again) == pytest.approx(0.93)
    assert experience.ratio(trials[2]) > experience.ratio(again)
    assert experience.ratio(trials[2]) < 1  # it is tried all the same, later


def test_a_rule_that_brought_nothing_again_and_again_loses_its_turn() -> None:
    """Whatever its place in the catalogue and earlier searches let hope, until it gains or another unit limits."""
    root = node(100)
    prior = OutcomePrior([tried_elsewhere(str(task)) for task in range(9)])
    for experience in (StepExpectation(), StepExpectation(prior, "trn1")):
        trials = [trial(root, "rule:balance", f"move line {line}") for line in range(6)]
        experience.add_proposals(trials)
        for tried_now in trials[:TRIES_IN_VAIN]:
            assert experience.ratio(trials[-1]) < 1
            experience.add_result(tried_now, node(100))
        assert experience.ratio(trials[-1]) == 1
        other = trial(root, "rule:wider", "load rows in full")
        assert experience.ratio(other) < 1
        experience.add_result(trials[3], node(90))
        assert experience.ratio(trials[-1]) < 1
        for tried_now in trials[:TRIES_IN_VAIN]:
            experience.add_result(tried_now, node(101))
        assert experience.ratio(trials[-1]) == 1
        root.measurement = replace(root.measurement, bound="memory")
        assert experience.ratio(trials[-1]) < 1
        root.measurement = replace(root.measurement, bound=node(100).measurement.bound)


def tried_elsewhere(task: str) -> Outcome:
    return Outcome("rule:balance", task, "VectorE", "nki", "trn1", math.log(0.7))


def node(us: int) -> Node:
    text = TEXT.replace("time_us = 100", f"time_us = {us}")
    return Node(text, find_kernels(text).kernels[0], measurement(text))


def trial(parent: Node, origin: str, summary: str) -> Trial:
    return Trial(Candidate("kernel", parent.text, origin, summary), parent, f"{origin} {summary}")
