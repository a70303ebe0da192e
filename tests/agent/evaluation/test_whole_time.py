"""The time of a version that changes more than one kernel: all that is launched, beside the same of the original."""

from __future__ import annotations

from dataclasses import replace

import pytest

from accelopt_agent.candidate import Candidate
from accelopt_agent.evaluation.whole_time import (
    ALL_LAUNCHES,
    AT_SCALE,
    REST,
    at_scale,
    same_amount,
    time_of,
    together_known,
    total,
    whole,
)
from accelopt_agent.search.node import Node
from accelopt_agent.search.trial import Trial, VersionTexts
from accelopt_agent.search.trial_result import candidate_outcome, lasting_steps, net_summary, node_of_trial
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.measurement import Correctness, KernelMeasurement, Latency, LaunchTime
from accelopt_profiling.quantity import Known, estimated, executed

HEAD = "import triton\n\n\n"
KERNEL = "@triton.jit\ndef {name}(x):\n    pass\n\n\n"


def text_of(*names: str) -> str:
    calls = "".join(f"    {name}[(1,)](x)\n" for name in names)
    return HEAD + "".join(KERNEL.format(name=n) for n in names) + f"def entry(x):\n{calls}"


def measured(name: str, us: float, status: str = "passed") -> KernelMeasurement:
    correct = Correctness(
        "failed" if status == "failed" else "passed", "row 3 is off" if status == "failed" else ""
    )
    return KernelMeasurement(
        name, 1, "triton", "h100", correctness=correct, latency=Latency(us, us / 2, us * 2, Known.ESTIMATED)
    )


def test_sums_are_known_as_badly_as_their_worst_part() -> None:
    parts = [Latency(1.0, 0.5, 2.0, Known.ESTIMATED), Latency(2.0, 2.0, 2.0, Known.MEASURED)]
    assert total(parts) == Latency(3.0, 2.5, 4.0, Known.ESTIMATED)
    assert total([*parts, Latency()]) == Latency()


def test_a_kernel_that_is_launched_often_counts_as_often() -> None:
    often = measured("k", 4.0)
    often.quantities[ALL_LAUNCHES] = estimated(12.0, 6.0, 24.0, "us")
    assert time_of(often).us == 12.0


@pytest.mark.parametrize(("us", "outcome"), [(12.0, "faster"), (26.0, "unclear"), (40.0, "slower")])
def test_a_fused_version_is_compared_with_all_that_it_stands_for(us: float, outcome: str) -> None:
    """It takes longer than the one kernel that is searched, and less than the three that it replaces."""
    base, fused = text_of("a", "b", "c"), text_of("abc")
    others = [measured("b", 8.0), measured("c", 8.0)]
    root = Node(base, find_kernels(base).kernels[0], measured("a", 10.0))
    whole_measurement = whole([measured("abc", us)], "a", others)
    assert whole_measurement.quantities[REST].value == 16.0
    trial = Trial(Candidate("a", fused, "model:x", "Fuse them"), root, "f")
    node = node_of_trial(trial, whole_measurement, root, VersionTexts(base, "a"), "h100")
    assert candidate_outcome(node, "h100") == outcome
    assert node.kernel.name == "abc"
    assert (node.us, root.us) == (us, 26.0)
    narrow = Node(base, root.kernel, measured("a", 5.0), trial.candidate, root)
    assert narrow.us == 21.0
    assert [t.us for t in narrow.beside(node)] == [21.0, us]
    assert [t.us for t in narrow.beside(root)] == [5.0, 10.0]


def launched(counts: int, us: float, stored: float, each_known: bool = True) -> KernelMeasurement:
    """A kernel that the problem launches so often, the stated launch taking ``us`` and writing ``stored`` bytes."""
    measurement = measured("a", us)
    measurement.quantities["launches"] = executed(counts, "launches")
    measurement.quantities["store_bytes"] = estimated(stored, stored, stored, "bytes")
    measurement.quantities[AT_SCALE] = estimated(us / 2, us / 4, us, "us")
    if not each_known:
        return measurement
    if counts > 1:
        measurement.quantities[ALL_LAUNCHES] = estimated(counts * us, us, 4 * counts * us, "us")
    share = Latency(us / 2, us / 4, us, Known.ESTIMATED)
    return replace(measurement, launches=(LaunchTime("x 4x4", measurement.latency, share),) * counts)


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ((1, 8.0, 1000.0), (1, 4.0, 500.0), True), ((2, 8.0, 1000.0), (2, 4.0, 1000.0), True),
        ((1, 8.0, 1000.0), (2, 4.0, 500.0), False), ((2, 8.0, 1000.0), (1, 9.0, 2000.0), False),
        ((2, 8.0, 1000.0), (2, 4.0, 500.0), False),
    ],
)  # fmt: skip
def test_launches_that_compute_other_amounts_are_compared_all_together(
    before: tuple[int, float, float], after: tuple[int, float, float], same: bool
) -> None:
    base = text_of("a")
    old, new = launched(*before), launched(*after)
    assert same_amount(old, new) is same
    assert together_known(old)
    assert together_known(new)
    root = Node(base, find_kernels(base).kernels[0], old)
    trial = Trial(Candidate("a", base + "# parts\n", "model:x", "Parts"), root, "f")
    node = node_of_trial(trial, whole([new], "a", []), root, VersionTexts(base, "a"), "h100")
    assert node.compared.us == after[0] * after[1]
    assert node.original_compared().us == before[0] * before[1]
    assert at_scale(new).us == after[0] * after[1] / 2
    assert not together_known(launched(2, 4.0, 500.0, each_known=False))


def test_all_launches_of_a_kernel_stand_beside_all_that_is_launched() -> None:
    """A file launches both of its kernels twice: a version of one, measured as a whole, is no slower for that."""

    def twice(name: str, us: float) -> KernelMeasurement:
        measurement = measured(name, us)
        measurement.quantities[ALL_LAUNCHES] = estimated(2 * us, us, 4 * us, "us")
        return measurement

    base = text_of("a", "b")
    root = Node(base, find_kernels(base).kernels[0], twice("a", 7.0))
    trial = Trial(Candidate("a", base + "# quicker\n", "rule:x", "Quicker"), root, "f")
    measurement = whole([twice("a", 5.0), twice("b", 7.0)], "a", [twice("b", 7.0)])
    node = node_of_trial(trial, measurement, root, VersionTexts(base, "a"), "h100")
    assert (node.us, root.us, node.original_compared().us) == (24.0, 28.0, 28.0)
    assert [t.us for t in root.beside(node)] == [28.0, 24.0]
    assert candidate_outcome(node, "h100") == "faster"


def test_a_step_that_a_later_one_overwrote_is_not_told() -> None:
    """A rule's step, a redesign that leaves one line in ten of it and fails, and the repair of that."""
    versions = [
        f"{HEAD}{line}\n"
        for line in ("x = 0", "y = 1\nz = 2\nv = 3\nw = 4\nu = 5", "u = 5\na = b", "u = 5\na = 3")
    ]
    kernel = find_kernels(text_of("k")).kernels[0]
    path = [Node(versions[0], kernel, measured("k", 1.0))]
    for text, summary, repair in zip(
        versions[1:], ("Hoist", "Redo it all", "repaired"), (False, False, True), strict=True
    ):
        step = ("model:m", summary)
        path.append(Node(text, kernel, measured("k", 1.0), parent=path[-1], step=step, repair=repair))
    assert lasting_steps(path[3]) == ["Redo it all"]
    assert lasting_steps(path[1]) == ["Hoist"]


def test_the_net_difference_is_one_sentence() -> None:
    base, fused = text_of("a", "b"), text_of("ab")
    assert net_summary(base, fused, ["Fuse them."]) == "ab in place of a and b: Fuse them"
    assert (
        net_summary(base, base, ["One; then: Two", "One", "Three", "Four"])
        == "One; then: Two; then: Three; and 1 more"
    )
