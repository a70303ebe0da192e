"""Configurations that autotuners could choose, and which of them no device does."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from accelopt_profiling.gate.observe.autotuning import AutotuneTurns
from accelopt_profiling.triton.interpreter.compiler_hints import StaticAssertionError


def tuner(kernel: Any) -> Any:
    return SimpleNamespace(base_fn=kernel, cache={}, cache_results=False, best_config=None)


def failure(kernel: Any) -> Exception:
    failed, cause = Exception("the step failed"), StaticAssertionError("B has to divide N")
    cause.kernel, failed.__cause__ = kernel, cause
    return failed


def test_a_configuration_that_fails_its_own_assertion_is_chosen_by_nobody() -> None:
    kernel = SimpleNamespace(__name__="sums")
    turns, one = AutotuneTurns(), tuner(kernel)
    assert [turns.prefers(one, name) for name in ("a", "b", "c")] == [True, False, False]
    assert turns.refuse(failure(kernel))
    turns.next_case(0)
    assert [turns.prefers(one, name) for name in ("a", "b", "c")] == [None, True, False]
    one.best_config = "b"
    turns.chosen()
    assert turns.refused() == {"sums": ["a"]}
    assert turns.tried() == {"sums": ["b"]}
    assert turns.left() == {"sums": ["c"]}


def test_other_failures_and_the_only_configuration_count_against_it() -> None:
    kernel = SimpleNamespace(__name__="sums")
    turns, one = AutotuneTurns(), tuner(kernel)
    assert turns.prefers(one, "a")
    assert not turns.refuse(failure(kernel))
    turns.prefers(one, "b")
    assert not turns.refuse(Exception("something else"))
    assert not turns.refuse(failure(SimpleNamespace(__name__="another")))
    assert turns.refused() == {}


def test_a_call_that_is_repeated_runs_in_the_configuration_of_its_first() -> None:
    turns, one = AutotuneTurns(), tuner(SimpleNamespace(__name__="sums"))
    for case, name in enumerate("ab"):
        turns.next_case(case)
        chosen = [n for n in ("a", "b") if turns.prefers(one, n)]
        assert chosen == [name]
        one.best_config = name
        turns.chosen()
    turns.repeat_case(0)
    assert [turns.prefers(one, name) for name in ("a", "b")] == [True, False]
