"""What a verdict covered is said from its checks alone: draws, sizes, the share of the output, what was left out."""

from __future__ import annotations

from typing import Any

import pytest

from accelopt_profiling.gate.scope import scope, scope_line
from accelopt_profiling.gate.verdict import Reason, Verdict


def case(distribution: str = "original", rows: int = 8, checked: float = 1.0, **more: Any) -> dict[str, Any]:
    return {
        "case": distribution, "distribution": distribution, "shapes": [[rows, 4], []], "outcome": "passed",
        "checked": checked, "compared": int(checked * rows * 4), "of": rows * 4, "bitwise_repeatable": True, **more,
    }  # fmt: skip


WHOLE = Verdict(True, [], [case(), case("large"), case("large", rows=17)])
PARTLY = Verdict(
    True, [], [case(), case("small", checked=0.25), case("rows", outcome="left out", why="too large")]
)


def test_draws_kinds_and_sizes_are_counted() -> None:
    sentences = scope(WHOLE, "triton")
    assert sentences[0] == "3 draws of inputs, of 2 kinds (original, large), agree with the reference."
    assert sentences[1] == "Checked at 2 sizes: 8x4; 17x4."
    assert "Every element of the output was compared in each." in sentences
    assert scope_line(WHOLE) == "3 draws of inputs at 2 sizes, all of the output"


def test_what_was_compared_in_part_or_left_out_is_said() -> None:
    sentences = scope(PARTLY, "nki")
    assert any("In 1 of them not every element" in s and "at the fewest 8 of 32" in s for s in sentences)
    assert "Not checked: 1 draw (too large)." in sentences
    assert scope_line(PARTLY) == "2 draws of inputs at 1 size, 8 of 32 elements or more"


@pytest.mark.parametrize(
    ("verdict", "dialect", "sentence", "present"),
    [
        (WHOLE, "triton", "what others write", True),
        (WHOLE, "nki", "what others write", False),
        (WHOLE, "numpy", "Loops that promise", False),
        (WHOLE, "nki", "Not run on a device.", True),
        (Verdict(True, [Reason("run-on-device", "")], WHOLE.checks), "nki", "Not run on a device.", False),
        (WHOLE, "nki", "A second run on the same data gave the same bits.", True),
        (Verdict(True, [], [case(bitwise_repeatable=False)]), "nki", "gave the same bits", False),
        (Verdict(True, [], [case(bitwise_repeatable=None)]), "nki", "gave the same bits", False),
    ],
)
def test_a_sentence_stands_where_it_is_true(
    verdict: Verdict, dialect: str, sentence: str, present: bool
) -> None:
    assert any(sentence in line for line in scope(verdict, dialect)) is present


@pytest.mark.parametrize("verdict", [Verdict(True), Verdict(False, [], [case(outcome="failed")])])
def test_nothing_is_claimed_without_a_check_that_passed(verdict: Verdict) -> None:
    assert (scope(verdict, "triton"), scope_line(verdict)) == ([], "")
