"""The time below which no run can be, and which device a target describes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.clockwork_device import FakeDevice

from accelopt_profiling.examination import examine
from accelopt_profiling.hosts.host import HostFacts, JobFailedError, JobMessage
from accelopt_profiling.jobs import StepError
from accelopt_profiling.measurement import KernelMeasurement, Latency
from accelopt_profiling.measurement_builder import (
    floor_us,
    impossible,
    target_of_device,
    with_checked_outputs,
    with_device_time,
)
from accelopt_profiling.plain import to_plain
from accelopt_profiling.profiler import ProfileRequest, profile
from accelopt_profiling.quantity import Known, estimated
from accelopt_profiling.targets import load_target
from accelopt_profiling.timing.check_step import CheckedRuns
from accelopt_profiling.timing.statistics import latency

TIMES = st.floats(0.1, 1e6)


def measurement(dram_bytes=1e9, bound="memory", us=400.0, share=75.0):
    moved = estimated(dram_bytes, dram_bytes, 2 * dram_bytes, "bytes")
    time = Latency(us, us / 2, 2 * us, Known.ESTIMATED)
    quantities = {"dram_bytes": moved}
    return KernelMeasurement(
        "k", 3, "triton", "h100", latency=time, percent_of_peak=share, bound=bound, quantities=quantities
    )


def test_the_floor_is_bytes_or_arithmetic():
    h100 = load_target("h100")
    assert floor_us(measurement(), h100) == pytest.approx((1e9 - 50e6) / 3352e9 * 1e6)
    assert floor_us(measurement(dram_bytes=1e6), h100) == 0
    assert floor_us(measurement(bound="tensor core"), h100) == pytest.approx(300)


@given(TIMES, TIMES)
def test_only_a_whole_interval_below_the_floor_is_impossible(us, floor):
    assert impossible(latency([us]), floor) == (us < 0.9 * floor)
    assert not impossible(Latency(us, us, max(us, floor), Known.MEASURED), floor)


def test_an_impossible_time_is_refused_with_a_finding():
    refused = with_device_time(measurement(), latency([20.0, 21.0, 22.0]), FakeDevice.name)
    assert refused.latency.known is Known.ESTIMATED
    assert [f.code for f in refused.findings] == ["impossible-time"]
    timed = with_device_time(measurement(), latency([400.0, 410.0, 420.0]), FakeDevice.name)
    assert (timed.latency.us, timed.stage) == (410.0, "timed")
    assert timed.percent_of_peak == pytest.approx(75 * 400 / 410)


def test_another_device_than_the_target_has_no_floor_and_no_peak():
    timed = with_device_time(measurement(), latency([20.0, 21.0, 22.0]), "NVIDIA B200")
    assert (timed.latency.us, timed.percent_of_peak) == (21.0, None)


@pytest.mark.parametrize(
    ("device", "target"),
    [
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA H100 PCIe", "h100_pcie"),
        ("NVIDIA H200", "h200"),
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("NVIDIA GeForce RTX 4090", "rtx4090"),
        ("AMD Instinct MI300X", "mi300x"),
        ("NVIDIA L40S", "l40s"),
        ("NVIDIA B200", "b200"),
        ("Tesla T4", None),
        ("", None),
    ],
)
def test_devices_find_their_targets(device, target):
    assert target_of_device(device) == target


def test_wrong_outputs_of_timed_runs_fail_the_kernel():
    assert with_checked_outputs(measurement(), CheckedRuns(4)) == measurement()
    result = with_checked_outputs(measurement(), CheckedRuns(2, "Run 3 of the timing: The output differs."))
    assert result.correctness.status == "failed"
    assert [(f.code, f.severity) for f in result.findings] == [("wrong-result", "error")]


class Steps:
    """A host with a device, on which the steps answer as they are told to; the last one may fail."""

    name, remote = "local", False

    def __init__(self, checked):
        self.checked, self.asked = checked, []

    async def facts(self):
        return HostFacts("local", devices=[{"name": FakeDevice.name}])

    async def run(self, job):
        self.asked = [step.name for step in job.steps]
        timed = {"device": FakeDevice.name, "timings": {"k": to_plain(latency([500.0]))}, "notes": ["n"]}
        yield JobMessage("profile", {"kernels": [to_plain(measurement())]}, True)
        yield JobMessage("time", timed, True)
        if self.checked is None:
            raise JobFailedError("time.check", StepError("host-failed", "Outputs cannot be read."))
        yield JobMessage("time.check", to_plain(self.checked), True)


KERNEL = "import triton\n\n@triton.jit\ndef k(x):\n    pass\n\ndef run(x):\n    k[(1,)](x)\n"
PROBLEM = "def get_inputs():\n    return [1]\n\ndef reference(x):\n    return x\n"


@pytest.mark.parametrize(
    ("checked", "certainty", "status"),
    [
        (CheckedRuns(4), Known.MEASURED, "not checked"),
        (CheckedRuns(4, "Run 3 of the timing: The output differs."), Known.NOT_MEASURED, "failed"),
        (None, Known.ESTIMATED, "not checked"),
    ],
)
async def test_a_time_counts_once_the_outputs_of_its_runs_were_looked_at(
    tmp_path, checked, certainty, status
):
    (tmp_path / "f_problem.py").write_text(PROBLEM)
    host, results = Steps(checked), []
    async for result in profile(
        host, ProfileRequest(examine(tmp_path / "f.py", KERNEL), {"triton": "h100", "nki": "trn1"})
    ):
        results.append(result.kernels[0])
    assert host.asked == ["profile", "time", "time.check"]
    assert [k.latency.known for k in results[:-1] if k.stage != "timed"] == [Known.ESTIMATED]
    last = results[-1]
    assert (last.latency.known, last.correctness.status) == (certainty, status)
    evidence = [r.body.get("timing") for r in result.receipts]
    assert [e and e["notes"] for e in evidence] == ([["n"]] if checked else [None])
    assert [f.code for f in result.findings] == ([] if checked else ["host-failed"])
