"""What stands at the head of a suggestion's diff: each step with what it gained."""

from __future__ import annotations

import pytest
from support.toy_search import FUSED, WIDE, ToyProposer, play

from accelopt_agent.events import SuggestionFound
from accelopt_agent.suggestions.suggestion import VersionStep
from accelopt_lsp.features.review import review
from accelopt_lsp.features.wording import step_gain
from accelopt_profiling.measurement import Latency
from accelopt_profiling.quantity import Known


async def test_the_steps_of_a_version_are_rows_with_the_gain_of_each() -> None:
    events = await play([ToyProposer({**WIDE, **FUSED})])
    best = max((e.suggestion for e in events if isinstance(e, SuggestionFound)), key=lambda s: len(s.way))
    assert len(best.way) == 2
    head, *rest = review(best).splitlines()
    assert "1.79x est." in head
    for number, step in enumerate(best.way, 1):
        row = (
            f"{number}. {step.summary} ({step.origins[0].replace(':', ' ')}): {step_gain(step, best.target)}"
        )
        assert row in rest


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (100.0, 50.0, "2.0x est., est. 50 us"),
        (100.0, 100.0, "no gain by itself, est. 100 us"),
        (50.0, 100.0, "2.0x est. slower, est. 100 us"),
        (100.0, None, "not timed by itself"),
    ],
)
def test_a_step_without_a_gain_says_so(before: float, after: float | None, words: str) -> None:
    earlier, later = (
        Latency() if us is None else Latency(us, us, us, Known.ESTIMATED) for us in (before, after)
    )
    step = VersionStep(("rule:x",), "do x", before=earlier, after=later, id="x")
    assert step_gain(step, "trn1") == words
