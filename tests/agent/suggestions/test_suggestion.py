"""The order in which suggestions are listed."""

from __future__ import annotations

import pytest

from accelopt_agent.suggestions.suggestion import Speedup, Suggestion, best_first
from accelopt_profiling.gate.verdict import Verdict
from accelopt_profiling.measurement import Latency
from accelopt_profiling.quantity import Known


def version(name: str, speedup: float, steps: int) -> Suggestion:
    return Suggestion(
        name, "run", "k.py", "kernel", "triton", "0", "", "", "", "rule:x", "", Speedup(speedup, 1, 3, Known.ESTIMATED),
        Latency(), Latency(), Verdict(True), "h100", "local", steps=("rule:x",) * steps,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("versions", "order"),
    [
        ([("slow", 1.5, 1), ("fast", 2.0, 3)], "fast slow"),
        ([("long", 2.00, 4), ("short", 1.99, 2)], "short long"),
        ([("a", 2.00, 3), ("b", 1.985, 1), ("c", 1.97, 2)], "b a c"),
        ([], ""),
    ],
)
def test_of_equally_fast_versions_the_one_with_fewest_steps_is_first(
    versions: list[tuple[str, float, int]], order: str
) -> None:
    ranked = best_first(version(*v) for v in versions)
    assert [s.id for s in ranked] == order.split()
