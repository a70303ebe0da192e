"""One latency is clearly below another only where the difference is larger than what is not known about both."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelopt_agent.speedup import clearly_faster, resolution, speedup
from accelopt_profiling.measurement import Latency
from accelopt_profiling.quantity import Known


def estimate(us: float) -> Latency:
    return Latency(us, us * 0.75, us * 1.33, Known.ESTIMATED)


def measurement(us: float, spread: float = 0.0) -> Latency:
    return Latency(us, us * (1 - spread), us * (1 + spread), Known.MEASURED)


@pytest.mark.parametrize(
    ("slow", "fast", "target", "clear"),
    [
        (estimate(100), estimate(95), "trn1", False),
        (estimate(100), estimate(89), "trn1", True),
        (estimate(100), estimate(110), "trn1", False),
        (Latency(100, 50, 150, Known.ESTIMATED), Latency(80, 70, 90, Known.ESTIMATED), "h100", False),
        (Latency(100, 90, 150, Known.ESTIMATED), Latency(60, 55, 65, Known.ESTIMATED), "h100", True),
        (Latency(565, 400, 800, Known.ESTIMATED), Latency(424, 400, 600, Known.ESTIMATED), "h100", True),
        (Latency(565, 400, 800, Known.ESTIMATED), Latency(424, 410, 600, Known.ESTIMATED), "h100", False),
        (measurement(100), measurement(98), "h100", True),
        (measurement(100), measurement(99.5), "h100", False),
        (measurement(100, 0.05), measurement(96, 0.05), "h100", False),
        (measurement(500), measurement(450), "trn1", False),  # within one step of its clock on either side
        (measurement(500), measurement(350), "trn1", True),
        (measurement(100), estimate(90), "h100", False),  # the estimate may be off by a third
        (estimate(100), Latency(), "h100", False),
        (Latency(), estimate(100), "h100", False),
    ],
)
def test_clearly_faster(slow: Latency, fast: Latency, target: str, clear: bool) -> None:
    assert clearly_faster(slow, fast, target) == clear


times = st.floats(0.1, 1e6)


@given(times, times, st.sampled_from([estimate, measurement]), st.sampled_from([estimate, measurement]))
def test_the_interval_holds_the_value_and_is_known_as_badly_as_the_worse_side(slow, fast, a, b) -> None:  # type: ignore[no-untyped-def]
    ratio = speedup(a(slow), b(fast), "trn1")
    assert ratio is not None
    assert 0 <= ratio.low <= ratio.value <= ratio.high
    assert ratio.known is (Known.MEASURED if (a, b) == (measurement, measurement) else Known.ESTIMATED)


@given(times, times)
def test_never_is_each_of_two_clearly_faster_than_the_other(a: float, b: float) -> None:
    for kind in (estimate, measurement):
        assert not (clearly_faster(kind(a), kind(b), "trn1") and clearly_faster(kind(b), kind(a), "trn1"))


def test_every_figure_names_its_source() -> None:
    facts = resolution()
    for figure in ("estimated", "measured"):
        assert facts[f"{figure}_relative"] > 0
        assert facts[f"{figure}_source"]
    assert facts["clock_step_source"]
