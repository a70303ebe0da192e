"""The strategies as they decide, by hand and without a search around them."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.toy_search import TEXT, measurement

from accelopt_agent.candidate import Candidate
from accelopt_agent.search.node import Failure, Node
from accelopt_agent.search.strategies import STRATEGIES, strategy_named
from accelopt_agent.search.strategies.hybrid import Hybrid
from accelopt_agent.search.strategies.strategy import (
    AskProposer,
    CandidateMeasured,
    Capacity,
    NodeValidated,
    ProposalsReceived,
    SearchStep,
    Strategy,
    TryCandidate,
    ValidateNode,
)
from accelopt_agent.search.strategies.tree import Tree
from accelopt_agent.search.trial import Trial
from accelopt_benchmarks.search.comparators import REFLEXION, SAMPLING
from accelopt_memory.outcomes import Outcome, OutcomePrior
from accelopt_profiling.kernels import find_kernels

NAMES = [*sorted(STRATEGIES), REFLEXION, SAMPLING]


def made(parent: Node | None, us: int, number: int, **fields: object) -> Node:
    text = TEXT.replace("time_us = 100", f"time_us = {us}").replace("fused", f"fused{number}")
    kernel = next(k for k in find_kernels(text).kernels if k.name == "kernel")
    candidate = Candidate("kernel", text, "rule:toy", f"{number}", steps=("rule:toy",)) if parent else None
    node = Node(text, kernel, measurement(text), candidate, parent, ("rule:toy", str(number)), str(number))
    for name, value in fields.items():
        setattr(node, name, value)
    if parent is not None:
        parent.children.append(node)
    return node


def answer(strategy: Strategy, ask: AskProposer, *nodes: Node) -> None:
    """``ask`` is answered with rewrites that become ``nodes`` as soon as they are tried."""
    trials = [
        Trial(n.candidate, ask.node, n.fingerprint, n.remembered) for n in nodes if n.candidate is not None
    ]
    strategy.observe(ProposalsReceived(ask, trials))
    while isinstance(step := strategy.choose(Capacity(proposals=False)), (TryCandidate, ValidateNode)):
        if isinstance(step, ValidateNode):
            step.node.verdict = "accepted"
            strategy.observe(NodeValidated(step.node))
        else:
            children = step.trial.parent.children
            strategy.observe(
                CandidateMeasured(
                    step.trial, next(n for n in children if n.fingerprint == step.trial.fingerprint)
                )
            )


def asks(strategy: Strategy, most: int = 100) -> list[AskProposer]:
    steps: list[AskProposer] = []
    while len(steps) < most and isinstance(step := strategy.choose(Capacity()), AskProposer):
        steps.append(step)
    return steps


def test_beam_asks_so_often_about_so_many_and_the_incumbent_competes() -> None:
    root = made(None, 100, 0)
    beam = strategy_named("beam", root, ["model"], target="trn1", depth=16, width=2, breadth=3, rounds=2)
    first = asks(beam)
    assert [a.node for a in first] == [root] * 3
    good, slow = made(root, 50, 1, clearly_faster=True), made(root, 400, 2)
    answer(beam, first[0], good, slow)
    strategy_silent = [ProposalsReceived(a, ()) for a in first[1:]]
    for event in strategy_silent:
        beam.observe(event)
    step = beam.choose(Capacity())
    while isinstance(step, ValidateNode):
        step.node.verdict = "accepted"
        beam.observe(NodeValidated(step.node))
        step = beam.choose(Capacity())
    assert isinstance(step, AskProposer)
    second = [step, *asks(beam)]
    assert [a.node for a in second] == [good] * 3 + [root] * 3  # not the slow one
    for ask in second:
        beam.observe(ProposalsReceived(ask, ()))
    assert beam.choose(Capacity()) is None
    assert beam.best() is good


def test_accelopts_own_beam_forgets_its_incumbents_and_takes_one_sample_of_a_plan() -> None:
    root = made(None, 100, 0)
    beam = strategy_named(
        "beam", root, ["model"], target="trn1", depth=16, width=2, breadth=2, rounds=2, incumbents=False
    )
    first = asks(beam)
    one, same, other = made(root, 110, 1), made(root, 120, 1), made(root, 130, 2)
    same.fingerprint = "same plan"
    answer(beam, first[0], one, same)
    answer(beam, first[1], other)
    assert {a.node for a in asks(beam)} == {one, other}  # the original is faster than both


def test_after_a_wrong_result_the_gate_judges_halfway_what_other_versions_stand_on_too() -> None:
    root = made(None, 100, 0)
    way = [root]
    for number in range(1, 5):  # the second step is what goes wrong, as the gate will say
        way.append(made(way[-1], 100 - 10 * number, number, clearly_faster=True))
    wrong = made(
        way[-1], 40, 5, clearly_faster=True, verdict="refused", failure=Failure("wrong-result", "off")
    )
    others = [made(way[-1], 40 + n, 5 + n, clearly_faster=True) for n in range(1, 4)]
    strategy = strategy_named("hybrid", root, [], target="trn1", depth=16)
    strategy.nodes = [*way, wrong, *others]
    judged = []
    while isinstance(step := strategy.choose(Capacity()), ValidateNode):
        judged.append(way.index(step.node))
        step.node.verdict = "refused" if judged[-1] >= 2 else "accepted"
        step.node.failure = Failure("wrong-result", "off") if judged[-1] >= 2 else None
        strategy.observe(NodeValidated(step.node))
    assert judged == [2, 1]  # not one of the three others, and nothing above the step that is right


def test_without_near_misses_a_failed_version_is_asked_about_by_lot_alone() -> None:
    root = made(None, 100, 0)
    failed = made(root, 100, 1, failure=Failure("wrong-result", "row 3"), verdict="refused")
    trees = [Tree(root, ["model"], target="trn1", near_misses=credit) for credit in (True, False)]
    assert [tree.score(failed) for tree in trees] == [pytest.approx(102), float("inf")]


def test_tree_asks_about_the_root_only_so_often() -> None:
    root = made(None, 100, 0)
    tree = strategy_named("tree", root, ["model"], target="trn1", depth=16, epsilon=0.0, root_children=2)
    for number in (1, 2):
        ask = tree.choose(Capacity())
        assert isinstance(ask, AskProposer)
        assert ask.node is root
        answer(tree, ask, made(root, 200, number))
    ask = tree.choose(Capacity())
    assert isinstance(ask, AskProposer)
    assert ask.node is not root


def test_tree_closes_a_branch_whose_children_all_failed_and_credits_near_misses() -> None:
    root = made(None, 100, 0)
    tree = STRATEGIES["tree"](root, ["model"], target="trn1", epsilon=0.0, root_children=1, dead_after=2)
    ask = tree.choose(Capacity())
    assert isinstance(ask, AskProposer)
    good = made(root, 50, 1)
    answer(tree, ask, good)
    near, far = Failure("wrong-result", "row 3"), Failure("kernel-raised", "no")
    about = []
    for number in range(2, 6):
        ask = tree.choose(Capacity())
        assert isinstance(ask, AskProposer)
        about.append(ask.node)
        failed = made(ask.node, 10, number, failure=near if number == 2 else far, verdict="refused")
        failed.measurement = replace(failed.measurement)
        answer(tree, ask, failed)
    children = good.children
    assert about[:3] == [good, good, good]
    assert about[3] is children[0]  # the branch is closed: its near miss is repaired before anything else
    score = tree.score  # type: ignore[attr-defined]
    assert good.us < score(children[0]) < score(children[1]) < root.us


def test_tree_draws_leaves() -> None:
    root = made(None, 100, 0)
    tree = strategy_named("tree", root, ["model"], target="trn1", depth=16, epsilon=1.0, seed=1)
    ask = tree.choose(Capacity())
    assert isinstance(ask, AskProposer)
    leaves = [made(root, 100 + k, k) for k in range(1, 5)]
    answer(tree, ask, *leaves)
    about = [a.node for a in asks(tree, 4)]
    assert set(about) == set(leaves)


def test_hybrid_turns_to_a_slower_version_once_it_is_checked() -> None:
    """The fastest version leads nowhere, so a model's slower one has its turn, after the gate."""
    root = made(None, 100, 0)
    hybrid = strategy_named("hybrid", root, ["model"], target="trn1", depth=16, least_gain=-1.0)
    ask = hybrid.choose(Capacity())
    assert isinstance(ask, AskProposer)
    by_model = {"step": ("model:toy", "x")}
    fastest = made(root, 50, 1, clearly_faster=True, **by_model)
    slower = made(root, 60, 2, clearly_faster=True, **by_model)
    neutral = made(root, 100, 3, **by_model)
    for node in (fastest, slower, neutral):
        assert node.candidate is not None
        node.candidate = replace(node.candidate, origin="model:toy", steps=("model:toy",))
    answer(hybrid, ask, fastest, slower, neutral)
    about: list[Node] = []
    while len(about) < 12:
        step = hybrid.choose(Capacity())
        if isinstance(step, ValidateNode):
            step.node.verdict = "accepted"
            hybrid.observe(NodeValidated(step.node))
            continue
        assert isinstance(step, AskProposer)
        assert step.node.may_be_built_upon
        about.append(step.node)
        hybrid.observe(ProposalsReceived(step, ()))
    assert about[:3] == [fastest] * 3
    assert slower in about
    assert slower.verdict == "accepted"
    assert neutral.verdict is None  # it takes turns with what it was made from


def test_hybrid_asks_the_memory_again_when_a_model_checked_something_elsewhere() -> None:
    root = made(None, 100, 0, asked={"memory": 1})
    hybrid = strategy_named("hybrid", root, ["memory"], target="trn1", depth=16)
    fastest = made(root, 40, 1, asked={})
    checked = made(root, 80, 2, clearly_faster=True, verdict="accepted", step=("model:toy", "x"))
    hybrid.nodes += [fastest, checked]
    ask = hybrid.choose(Capacity())
    assert isinstance(ask, AskProposer)
    assert (ask.node, ask.proposer) == (fastest, "memory")
    answer(hybrid, ask)
    assert hybrid.choose(Capacity()) is None  # once about each


def test_hybrid_goes_on_with_the_rules_where_a_remembered_change_leads_nowhere_else() -> None:
    root = made(None, 100, 0)
    hybrid = Hybrid(root, ["memory", "rules"], target="trn1", depth=16, patience=0)
    (first,) = asks(hybrid, 1)
    assert first.proposer == "memory"
    remembered = made(root, 50, 1, step=("memory:a", "1"), remembered=True)
    assert remembered.candidate is not None
    remembered.candidate = replace(remembered.candidate, origin="memory:a", steps=("memory:a",))
    answer(hybrid, first, remembered)
    block = made(root, 90, 2)
    for expected, gives in ((remembered, []), (root, [block]), (block, [made(block, 40, 3)])):
        (ask,) = asks(hybrid, 1)
        assert (ask.proposer, ask.node) == ("rules", expected)
        answer(hybrid, ask, *gives)
    assert hybrid.fastest.us == 40


def test_hybrid_gives_a_rule_its_turn_that_only_an_older_version_has_room_for() -> None:
    """However many places of another rule were tried in vain on the fastest version."""
    root = made(None, 100, 0)
    hybrid = Hybrid(root, ["rules"], target="trn1", depth=16, patience=3)
    (first,) = asks(hybrid, 1)
    keep, block = _by(made(root, 60, 1), "rule:keep"), _by(made(root, 90, 2), "rule:block")
    answer(hybrid, first, keep)
    hybrid.observe(ProposalsReceived(AskProposer(root, "rules"), [_trial(block)]))
    (about_keep,) = asks(hybrid, 1)
    assert about_keep.node is keep
    answer(hybrid, about_keep, *(_by(made(keep, 60, k), "rule:engine") for k in range(3, 13)))
    assert block in hybrid.nodes
    assert hybrid.choose(Capacity(proposals=False)) is None


def test_hybrid_gives_other_rules_their_turn_where_one_fails_at_every_place() -> None:
    """A try that failed is a try."""
    root = made(None, 100, 0)
    hybrid = Hybrid(root, ["rules"], target="trn1", depth=16, patience=4)
    (first,) = asks(hybrid, 1)
    keep, block = _by(made(root, 60, 1), "rule:keep"), _by(made(root, 59, 2), "rule:keep")
    failing = [
        _by(made(root, 100, k, failure=Failure("wrong-result", "off"), verdict="refused"), "rule:fails")
        for k in range(3, 13)
    ]
    answer(hybrid, first, keep)
    hybrid.observe(ProposalsReceived(AskProposer(root, "rules"), [_trial(n) for n in (*failing, block)]))
    (about_keep,) = asks(hybrid, 1)
    made_of = {n.fingerprint: n for n in (*failing, block)}
    tried: list[Node] = []
    hybrid.observe(ProposalsReceived(about_keep, []))
    while isinstance(step := hybrid.choose(Capacity(proposals=False)), TryCandidate):
        node = made_of[step.trial.fingerprint]
        tried.append(node)
        hybrid.observe(CandidateMeasured(step.trial, node))
    assert block in tried
    assert 0 < sum(n in failing for n in tried) <= 4


def test_hybrid_tries_other_sizes_on_the_way_to_the_fastest_version_before_all_on_the_original() -> None:
    """Of a rule that gained once and promises nothing more: here tiles of another size."""
    root = made(None, 100, 0)
    hybrid = Hybrid(root, ["rules"], target="trn1", depth=16, patience=4)
    (first,) = asks(hybrid, 1)
    stack = _by(made(root, 60, 1), "rule:stack")
    others = [_by(made(root, 95, k), "rule:tiles") for k in range(2, 12)]
    answer(hybrid, first, stack)
    (about_stack,) = asks(hybrid, 1)
    wide, wider = _by(made(stack, 30, 12), "rule:tiles"), _by(made(stack, 20, 13), "rule:tiles")
    hybrid.observe(ProposalsReceived(AskProposer(root, "rules"), [_trial(node) for node in others]))
    hybrid.observe(ProposalsReceived(about_stack, [_trial(node) for node in (wide, wider)]))
    hybrid.observe(CandidateMeasured(_trial(wide), wide))
    made_of = {n.fingerprint: n for n in (*others, wide, wider)}
    tried: list[Node] = []
    while isinstance(step := hybrid.choose(Capacity()), (TryCandidate, AskProposer)):
        if isinstance(step, AskProposer):
            hybrid.observe(ProposalsReceived(step, []))
            continue
        tried.append(made_of[step.trial.fingerprint])
        hybrid.observe(CandidateMeasured(step.trial, tried[-1]))
    assert wider in tried


def test_hybrid_builds_upon_a_version_that_gained_nothing_where_another_unit_limits_it() -> None:
    """One that the same unit limits, or that took clearly longer, leads nowhere."""
    root = made(None, 100, 0)
    hybrid = Hybrid(root, ["rules"], target="trn1", depth=16, patience=0)
    (first,) = asks(hybrid, 1)
    fast = made(root, 90, 1)
    same, moved, slower = made(root, 100, 2), made(root, 101, 3), made(root, 103, 4)
    for node, bound in ((root, "VectorE"), (same, "VectorE"), (moved, "TensorE"), (slower, "TensorE")):
        node.measurement = replace(node.measurement, bound=bound)
    answer(hybrid, first, fast, same, moved, slower)
    hybrid.nodes += [n for n in (same, moved, slower) if n not in hybrid.nodes]
    (about_fast,) = asks(hybrid, 1)
    assert about_fast.node is fast
    answer(hybrid, about_fast)
    (about_moved,) = asks(hybrid, 1)
    assert about_moved.node is moved
    answer(hybrid, about_moved, _by(made(moved, 60, 5), "rule:block"))
    assert hybrid.fastest.us == 60
    answer(hybrid, asks(hybrid, 1)[0])  # about that one
    assert asks(hybrid) == []


def _by(node: Node, rule: str) -> Node:
    assert node.candidate is not None
    node.candidate = replace(node.candidate, origin=rule, steps=(rule,))
    node.step = (rule, node.candidate.summary)
    return node


def _trial(node: Node) -> Trial:
    assert node.candidate is not None
    assert node.parent is not None
    return Trial(node.candidate, node.parent, node.fingerprint)


def test_hybrid_tries_once_more_what_promises_nothing_after_each_paid_answer() -> None:
    root, patience = made(None, 100, 0), 3
    hybrid = Hybrid(root, ["rules", "model"], target="trn1", least_gain=-1.0, patience=patience)
    first = hybrid.choose(Capacity())
    assert isinstance(first, AskProposer)
    fast, *slow = made(root, 50, 1), *(made(root, 200, k) for k in range(2, 13))
    answer(hybrid, first, fast, *slow)
    again = hybrid.choose(Capacity())
    assert isinstance(again, AskProposer)
    assert (again.node, again.proposer) == (fast, "rules")
    answer(hybrid, again)
    remaining = []
    for _ in range(4):
        remaining.append(len(hybrid.ideas))
        paid = hybrid.choose(Capacity())
        assert isinstance(paid, AskProposer)
        assert paid.proposer == "model"
        answer(hybrid, paid)
    assert remaining[0] == len(slow) - patience
    assert remaining == [remaining[0] - k for k in range(4)]


@settings(max_examples=40, deadline=None)
@example("tree", 49, [1, 1, 1, 1, 2, 2, 1, 18, 1])  # a parent refused while its child is asked about
@example(REFLEXION, 0, [1, 297, 1, 33, 1, 33, 1])  # a chain of repairs ended one version too deep
@given(st.sampled_from(NAMES), st.integers(0, 2**32), st.lists(st.integers(1, 300), min_size=1, max_size=30))
def test_no_strategy_stands_still_or_asks_about_what_is_unsound(
    name: str, seed: int, times: list[int]
) -> None:
    root, random = made(None, 100, 0), Random(seed)
    strategy = strategy_named(name, root, ["rules", "model"], target="trn1", depth=8, seed=seed)
    begun: list[SearchStep] = []
    number = 0
    for us in times * 3:
        while len(begun) < 4 and (step := strategy.choose(Capacity())) is not None:
            if isinstance(
                step, AskProposer
            ):  # what it was made from may be refused while the question is under way
                assert step.node.sound or step.node.failure is not None
                assert step.node.depth <= 8
            begun.append(step)
        if not begun:
            assert strategy.choose(Capacity()) is None
            return
        step = begun.pop(random.randrange(len(begun)))
        if isinstance(step, AskProposer):
            number += 1
            origin = f"rule:r{number % 5}" if step.proposer == "rules" else "model:toy"
            candidate = Candidate("kernel", f"{number}", origin, f"{number % 7}", steps=(origin,))
            strategy.observe(ProposalsReceived(step, [Trial(candidate, step.node, f"{number}")]))
        elif isinstance(step, TryCandidate):
            node = made(step.trial.parent, us, number)
            node.candidate, node.step = step.trial.composed, step.trial.step
            node.clearly_faster = us < 80
            node.repair = step.trial.repairs
            if us % 3 == 0:
                node.failure, node.verdict = Failure("wrong-result", "off"), "refused"
            strategy.observe(CandidateMeasured(step.trial, node))
        else:
            step.node.verdict = "accepted" if us % 2 else "refused"
            if step.node.verdict == "refused":
                step.node.failure = Failure("wrong-result", "off")
            strategy.observe(NodeValidated(step.node))
    assert strategy.best().verdict == "accepted" or strategy.best() is root


def test_there_is_no_other_strategy() -> None:
    with pytest.raises(KeyError):
        strategy_named("guessing", made(None, 100, 0), [], target="trn1", depth=1)


def order_of(items: list[str], prior: OutcomePrior | None) -> list[str]:
    """The origins of rewrites that gain nothing, in the order in which hybrid tries them."""
    root = made(None, 100, 0)
    strategy = strategy_named("hybrid", root, ["rules"], target="trn1", depth=6, prior=prior)
    ask = strategy.choose(Capacity())
    assert isinstance(ask, AskProposer)
    texts = [TEXT.replace("fused", f"fused{k}") for k in range(len(items))]
    candidates = [Candidate("kernel", t, o, o) for o, t in zip(items, texts, strict=True)]
    trials = [Trial(c, root, c.origin) for c in candidates]
    strategy.observe(ProposalsReceived(ask, trials))
    tried = []
    while isinstance(step := strategy.choose(Capacity(proposals=False)), TryCandidate):
        tried.append(step.trial.candidate.origin)
        node = replace(made(root, 101, len(tried)), step=step.trial.step)
        strategy.observe(CandidateMeasured(step.trial, node))
    return tried


def test_outcomes_elsewhere_decide_the_order_in_turn_with_the_catalogue() -> None:
    items = [f"rule:{name}" for name in "abcdef"]
    good = [Outcome("rule:f", f"k{k}", None, "nki", "trn1", -1.0, str(k)) for k in range(3)]
    better = [Outcome("memory:e", f"k{k}", None, "nki", "trn1", -0.5, str(k)) for k in range(3)]
    items[4] = "memory:e"
    assert order_of(items, None) == items
    assert order_of(items, OutcomePrior([*good, *better]))[:4] == ["rule:f", "rule:a", "memory:e", "rule:b"]
