"""Which configurations of an autotuner are compiled."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from accelopt_profiling.targets import load_target
from accelopt_profiling.triton.estimation import autotune


def _tried(widest: int, warps: int, us: float) -> Any:
    counts = SimpleNamespace(widest=widest, sampled=1, us=us)
    fn = SimpleNamespace(params=[SimpleNamespace(name="BLOCK", is_constexpr=True)])
    options = {"num_warps": warps}
    launch = SimpleNamespace(fn=fn, constants={"BLOCK": widest}, grid=(warps,), options=options, args=())
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
    tried = [_tried(*configuration) for configuration in configurations]
    _stand_in(monkeypatch, tried)
    choices = autotune.try_all(tried, load_target("h100"), 1)
    assert [c.execution.launch.constants["BLOCK"] for c in choices] == compiled


def test_on_a_rewrite_only_what_competed_on_the_original_and_what_is_new_is_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried = [_tried(64, 2, 5.0), _tried(128, 4, 1.0), _tried(256, 4, 1.1), _tried(512, 8, 1.3)]
    _stand_in(monkeypatch, tried)
    choices = autotune.try_all(tried, load_target("h100"), 1)
    slow = autotune.slow(tried, choices)
    assert slow == ("BLOCK=64, num_warps=2", "BLOCK=512, num_warps=8")
    new = _tried(1024, 8, 9.0)
    rest = autotune.without_slow([*tried, new], slow)
    assert rest == [tried[1], tried[2], new]
    assert autotune.without_slow([tried[0]], slow) == [tried[0]]


def test_what_the_run_counted_is_not_counted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = [_tried(64, 2, 5.0), _tried(128, 4, 1.0)]
    ran = _tried(64, 2, 7.0)
    counted = _stand_in(monkeypatch, tried)
    choices = autotune.try_all(tried, load_target("h100"), 1, [ran])
    assert counted == [tried[1].launch]
    assert [c.estimate.latency.us for c in choices if c.estimate is not None] == [7.0, 1.0]


def _stand_in(monkeypatch: pytest.MonkeyPatch, tried: list[Any]) -> list[Any]:
    """Let times be what ``tried`` says; return the launches that are counted."""
    counted: list[Any] = []

    def count(launch: Any, _: int) -> Any:
        counted.append(launch)
        return next(t for t in tried if t.launch is launch)

    monkeypatch.setattr(autotune, "count_sample", count)
    monkeypatch.setattr(autotune, "compile_launch", lambda *_: SimpleNamespace(problem=None))
    monkeypatch.setattr(autotune, "estimate", lambda counts, *_: SimpleNamespace(latency=counts))
    return counted
