"""Versions of a kernel whose time is mostly its launch are compared as parts of a larger launch."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.toy_search import TEXT

from accelopt_agent.candidate import Candidate
from accelopt_agent.search.node import Node
from accelopt_agent.search.strategies.hybrid import Hybrid
from accelopt_agent.search.strategies.strategy import CandidateMeasured, Capacity, ValidateNode
from accelopt_agent.search.trial import Trial, VersionTexts
from accelopt_agent.search.trial_result import candidate_outcome, node_of_trial
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.measurement import KernelMeasurement, Latency, LaunchTime
from accelopt_profiling.quantity import Known, estimated

KERNEL = find_kernels(TEXT).kernels[0]


def measured(us: float, at_scale: float, bound: str = "launch") -> KernelMeasurement:
    measurement = KernelMeasurement(KERNEL.name, KERNEL.line, KERNEL.dialect, "h100", bound=bound)
    return replace(
        measurement,
        latency=Latency(us, 0.9 * us, 1.1 * us, Known.ESTIMATED),
        quantities={"time_at_scale": estimated(at_scale, 0.9 * at_scale, 1.1 * at_scale, "us")},
    )


def outcome(before: KernelMeasurement, after: KernelMeasurement) -> str:
    root = Node(TEXT, KERNEL, before)
    trial = Trial(Candidate(KERNEL.name, TEXT + "\n# again", "rule:x", "X.", {}), root, "f")
    node = node_of_trial(trial, after, root, VersionTexts(TEXT, KERNEL.name), "h100")
    assert node.clearly_faster is (candidate_outcome(node, "h100") == "faster")
    return candidate_outcome(node, "h100")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (measured(6.9, 0.2), measured(6.9, 0.1), "faster"),  # half the work, which the launch hides
        (measured(6.9, 0.1), measured(6.9, 0.2), "slower"),
        (measured(6.9, 0.2), measured(8.0, 0.1), "unclear"),  # must not lose in the file's own case
        (measured(8.0, 0.2), measured(6.9, 0.2), "faster"),
        (measured(8.0, 0.1), measured(6.9, 0.2), "slower"),  # good for the profiled case alone
        (measured(69, 0.2, "memory"), measured(69, 0.1, "memory"), "unclear"),  # the launch hides nothing
        (measured(69, 0.2, "memory"), measured(50, 0.4, "memory"), "faster"),
    ],
)
def test_what_counts(before: KernelMeasurement, after: KernelMeasurement, expected: str) -> None:
    assert outcome(before, after) == expected


@pytest.mark.parametrize(
    ("after", "checked"),
    [
        (measured(6.9, 0.2), True),
        (measured(8.0, 0.1), True),
        (measured(6.9, 0.4), False),
        (measured(8.0, 0.2), False),
    ],
    ids=["as it is", "as a part of a larger launch", "as it is alone", "nowhere"],
)
def test_what_gains_in_either_way_is_checked(after: KernelMeasurement, checked: bool) -> None:
    root = Node(TEXT, KERNEL, measured(8.0, 0.2))
    strategy = Hybrid(root, ["rules"], target="h100")
    trial = Trial(Candidate(KERNEL.name, TEXT + "\n# again", "rule:x", "X.", {}), root, "f")
    node = node_of_trial(trial, after, root, VersionTexts(TEXT, KERNEL.name), "h100")
    strategy.observe(CandidateMeasured(trial, node))
    assert strategy.unchecked() is (node if checked else None)
    step = strategy.choose(Capacity(False, False, True))
    assert isinstance(step, ValidateNode) is checked


def test_a_measured_time_is_not_compared_by_an_estimate() -> None:
    before = replace(measured(6.9, 0.2), latency=Latency(6.9, 6.8, 7.0, Known.MEASURED))
    assert not Node(TEXT, KERNEL, before).compared_at_scale


def with_launches(measurement: KernelMeasurement, *times: tuple[float, float]) -> KernelMeasurement:
    def latency(us: float) -> Latency:
        return Latency(us, 0.9 * us, 1.1 * us, Known.ESTIMATED)

    return replace(
        measurement, launches=tuple(LaunchTime("x 8 fp32", latency(us), latency(at)) for us, at in times)
    )


@pytest.mark.parametrize(
    ("launches", "expected"),
    [
        (((6.9, 0.1), (6.9, 1.0)), "faster"),
        (((6.9, 0.1), (6.9, 1.2)), "unclear"),  # another launch of the run loses as part of a larger one
        (((6.9, 0.1), (9.0, 1.0)), "unclear"),  # or as it is
        (((6.9, 0.1),), "faster"),  # another number of launches: they are not compared
    ],
)
def test_no_launch_of_the_run_may_lose(launches: tuple[tuple[float, float], ...], expected: str) -> None:
    before = with_launches(measured(6.9, 0.2), (6.9, 0.2), (6.9, 1.0))
    assert outcome(before, with_launches(measured(6.9, 0.1), *launches)) == expected
