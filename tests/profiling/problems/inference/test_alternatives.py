"""Calls near one that failed: what the error names comes first, and a call's numbers are only changed in one place."""

from __future__ import annotations

from itertools import islice

from accelopt_profiling.problems.inference.alternatives import alternatives, smaller_calls
from accelopt_profiling.problems.inference.arguments import InferredArgument, InferredCall


def call() -> InferredCall:
    x = InferredArgument("x", "tensor", ["rows", "columns"])
    bias = InferredArgument("bias", "tensor", ["columns"])
    return InferredCall(
        "k", [x, bias, InferredArgument("causal", "value", value="False")], {"rows": 64, "columns": 32}
    )


def test_a_number_of_the_message_comes_first_for_the_argument_of_the_statement() -> None:
    first = call()
    change, other = next(alternatives(first, "The pattern reaches element 255", [first.arguments[1]]))
    assert change == "bias.shape[0] is 255"
    assert [change for change, _ in islice(alternatives(first, "reaches 255", [first.arguments[1]]), 2)][
        1
    ].endswith("256")
    assert other.shape(other.arguments[0]) == [64, 32]  # the others stay
    assert first.arguments[1].dims == ["columns"]


def test_flags_sizes_and_ranks_are_tried() -> None:
    changes = [change for change, _ in alternatives(call(), "", call().tensors)]
    assert {"causal is True", "rows is 128", "columns is 96", "x has 3 dimensions", "bias is int32"} <= set(
        changes
    )


def test_smaller_calls_change_one_size_wherever_it_stands() -> None:
    first = call()
    first.arguments[1].dims = ["64"]
    change, other = next(smaller_calls(first))
    assert change == "64 became 8"
    assert (other.shape(other.arguments[0]), other.shape(other.arguments[1])) == ([8, 32], [8])


def test_a_dimension_that_is_computed_as_nothing_gets_a_size() -> None:
    first = call()
    first.arguments[1].dims = ["columns // 512"]
    first.fill_dimensions()
    assert first.shape(first.arguments[1]) == [1]
