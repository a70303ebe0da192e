"""Device timing without a device: the statistics, and the launch hooks with a clock of our own."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelopt_profiling.quantity import Known
from accelopt_profiling.timing.launches import LaunchTimer
from accelopt_profiling.timing.statistics import latency, median_interval


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([3.0], (3.0, 3.0, 3.0)),
        ([1.0, 2.0, 9.0], (2.0, 1.0, 9.0)),
        (list(range(1, 6)), (3.0, 1.0, 5.0)),
        # n = 20: the 6th and 15th order statistics bound the median with 95.9 %
        (list(range(1, 21)), (10.5, 6.0, 15.0)),
        # n = 2000, as many as a plan allows: 1000 -+ 1.96 * sqrt(2000) / 2 on either side
        (list(range(1, 2001)), (1000.5, 956.0, 1045.0)),
    ],
)
def test_median_and_interval(samples, expected):
    assert median_interval(samples) == expected


@given(st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=200))
def test_the_interval_holds_the_median(samples):
    middle, low, high = median_interval(samples)
    assert min(samples) <= low <= middle <= high <= max(samples)


def test_no_samples_is_an_error():
    with pytest.raises(ValueError, match="no samples"):
        median_interval([])


def test_a_latency_is_measured():
    assert latency([5.0, 6.0, 7.0]).known is Known.MEASURED


class Tick:
    """An event whose time is the number of records before it, in milliseconds."""

    clock = itertools.count()

    def record(self) -> None:
        self.at = next(Tick.clock)

    def elapsed_time(self, end: "Tick") -> float:
        return float(end.at - self.at)


def test_launches_of_one_run_are_summed_per_kernel():
    waited = []
    timer = LaunchTimer(Tick, lambda: waited.append(True))
    for name in ("a", "b", "a"):
        timer.enter({"name": name})
        timer.exit({"name": name})
    assert timer.finish() == {"a": 2000.0, "b": 1000.0}
    assert waited
    assert timer.finish() == {}
