"""The share of a launch in a much larger one: starting counts for nothing, work counts in full."""

import dataclasses

import pytest

from accelopt_profiling.quantity import Known
from accelopt_profiling.targets import load_gpu
from accelopt_profiling.triton.estimation.estimate import estimate, time_at_scale
from accelopt_profiling.triton.interpreter.counting import LaunchCounts, LineCounts

H100 = load_gpu("h100")


def small(sectors: int = 64, programs: int = 4, **work: int) -> LaunchCounts:
    """Programs that each read and write their own sectors, and do some work besides."""
    line = LineCounts(load_sectors=4 * sectors, store_sectors=4 * sectors, **work)
    size = 32 * sectors * programs
    return LaunchCounts(
        programs, 4, {7: line}, {"x": 4 * sectors}, {"y": 4 * sectors}, {"x": size, "y": size},
        {"x": 4 * sectors}, {"y": 4 * sectors}, widest=1024,
    )  # fmt: skip


def at_scale(counts: LaunchCounts) -> float:
    value = time_at_scale(counts, None, H100).value
    assert value is not None
    return value


def test_a_launch_that_is_all_start_differs_at_scale_by_what_it_does() -> None:
    little, much = small(), small(special=40_000)
    before, after = (estimate(counts, None, H100) for counts in (little, much))
    assert before.bound == after.bound == "launch"
    assert after.latency.us == pytest.approx(before.latency.us, rel=0.1)
    assert at_scale(much) > 1.5 * at_scale(little)


def test_a_streaming_copy_takes_its_bytes_at_the_reachable_bandwidth() -> None:
    counts = small(sectors=256)
    bytes_moved = 2 * 32 * 256 * 4
    assert at_scale(counts) == pytest.approx(1e6 * bytes_moved / (0.9 * 3352e9), rel=0.05)


def test_twice_the_programs_are_twice_the_share() -> None:
    one, two = small(programs=4), small(programs=8)
    assert at_scale(two) == pytest.approx(2 * at_scale(one), rel=0.01)


def test_it_is_an_estimate_with_an_interval() -> None:
    time = time_at_scale(small(), None, H100)
    assert time.known is Known.ESTIMATED
    assert time.low is not None
    assert time.high is not None
    assert time.value is not None
    assert time.low <= time.value <= time.high


def test_nothing_is_known_without_a_sample() -> None:
    with pytest.raises(ValueError, match="no program"):
        time_at_scale(dataclasses.replace(small(), sampled=0), None, H100)
