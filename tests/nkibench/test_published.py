"""Our figures beside AccelOpt's: how far the estimate is off, what a search comes to, and how it got there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from accelopt_profiling.measurement import Latency
from accelopt_profiling.quantity import Known
from nkibench.published import against_published, published_summary, published_table
from nkibench.report import progress, progress_table
from nkibench.result import Best, TaskResult


def latency(us: float) -> Latency:
    return Latency(us, us, us, Known.ESTIMATED)


SILU = TaskResult(
    "silu", "silu", "trn1", "beta1", "k.py", "passed", latency=latency(1600), peak_us=533, published_ms=1.333,
    published_best=0.687,
    best=Best(latency(800), ("rule:a",), tried=40, progress=((2, 1200.0), (5, 700.0), (9, 800.0))),
)  # fmt: skip


def test_the_estimate_is_compared_with_the_published_time_and_the_gain_carried_over() -> None:
    (task,) = against_published([SILU, replace(SILU, status="wrong"), replace(SILU, published_ms=None)])
    assert task.off == pytest.approx(1.2, abs=0.001)
    assert (task.gain, task.published_percent) == (2.0, pytest.approx(40.0, abs=0.1))
    assert task.carried == pytest.approx(80.0, abs=0.1)
    summary = published_summary([task])
    assert summary is not None
    assert (summary.tasks, summary.within, summary.published_best) == (1, 1, pytest.approx(68.7))
    text = published_table([task])
    assert "ours are estimated" in text
    assert "| silu | 1.333 | 1.600 | 1.20 | 40.0 | 68.7 | 33.3 | 66.6 | 2.00x | 80.0 |" in text
    assert published_table([]) == ""


def test_progress_counts_no_version_that_was_refused() -> None:
    """700 us came in the fifth try, but what was checked at the end takes 800."""
    means = progress([SILU])
    assert means == {
        1: 1.0,
        2: pytest.approx(4 / 3),
        5: pytest.approx(4 / 3),
        10: 2.0,
        20: 2.0,
        30: 2.0,
        40: 2.0,
    }
    table = progress_table(
        {"everything": [SILU], "no memory": [replace(SILU, best=Best(latency(1600), tried=4))]}
    )
    assert "| candidates | everything | no memory |" in table
    assert "| 10 | 2.000x |  |" in table
    assert progress_table({"": [replace(SILU, best=None)]}) == ""
