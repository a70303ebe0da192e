"""Which configurations of an autotuner are compiled."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from accelopt_profiling.targets import load_target
from accelopt_profiling.triton.estimation import autotune


def _tried(widest: int, warps: int, us: float) -> Any:
    counts = SimpleNamespace(widest=widest, sampled=1, us=us)
    launch = SimpleNamespace(constants={"BLOCK": widest}, grid=(warps,), options={"num_warps": warps})
    return SimpleNamespace(
        launch=launch, counts=counts, line_tensors={}, program_bytes=0, faults=[], error=None
    )


@pytest.mark.parametrize(
    ("configurations", "compiled"),
    [
        ([(4096, 4, 3.0), (1 << 18, 8, 1.0), (8192, 4, 2.0)], [4096, 8192]),
        ([(1 << 18, 8, 1.0), (1 << 16, 8, 1.0)], [1 << 16]),
        ([(1 << 18, 8, 1.0)], [1 << 18]),
    ],
    ids=["crowded beside others", "one that fits its threads", "nothing else"],
)
def test_what_no_thread_can_hold_is_compiled_only_where_nothing_else_is(
    monkeypatch: pytest.MonkeyPatch, configurations: list[tuple[int, int, float]], compiled: list[int]
) -> None:
    monkeypatch.setattr(
        autotune, "count_sample", lambda launch, _: next(t for t in tried if t.launch is launch)
    )
    monkeypatch.setattr(autotune, "compile_launch", lambda *_: SimpleNamespace(problem=None))
    monkeypatch.setattr(autotune, "estimate", lambda counts, *_: SimpleNamespace(latency=counts))
    tried = [_tried(*configuration) for configuration in configurations]
    made = autotune.try_all(tried, load_target("h100"), 1)
    assert [c.execution.launch.constants["BLOCK"] for c in made] == compiled
