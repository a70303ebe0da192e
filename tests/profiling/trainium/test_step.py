"""The step that runs a kernel on the host's Trainium, and what a profile makes of its answer."""

import pytest
from support.problem_files import context_of
from support.trainium_stand_ins import BETA1_KERNEL, neuron_host

from accelopt_profiling.examination import examine
from accelopt_profiling.hosts.host import HostFacts, JobMessage
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.measurement import Correctness, KernelMeasurement, Latency
from accelopt_profiling.plain import from_plain, to_plain
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.profiler import ProfileRequest, profile
from accelopt_profiling.quantity import Known, executed
from accelopt_profiling.step_context import StepFailedError
from accelopt_profiling.trainium.step import DeviceParams, time_on_trainium
from accelopt_profiling.worker.environment import step_environment


@pytest.fixture
def host(tmp_path):
    return neuron_host(tmp_path)


PROBLEM = """
import numpy as np

def get_inputs():
    return [np.random.normal(size=(3, 4)).astype(np.float32), 2.0]

def reference(x, scale):
    return {answer}
"""


def stepped(host, monkeypatch, tmp_path, kernel, answer="x * scale", packages=("beta1",)):
    source = {"kernel.py": kernel, "problem.py": PROBLEM.format(answer=answer)}
    context = context_of(tmp_path / "job", source, "kernel.py")
    for name, value in host.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYTHONPATH", host.packages(*packages))
    monkeypatch.setattr("accelopt_profiling.trainium.toolchain._importable", lambda m: m == "neuronxcc.nki")
    devices = tmp_path / "dev"
    devices.mkdir()
    (devices / "neuron0").touch()
    params = DeviceParams(find_kernels(kernel).kernels, ProblemRef("module", "problem.py", "kernel"), "trn1")
    return time_on_trainium(context, params, devices)


def test_the_step_times_checks_and_profiles_on_the_device(host, monkeypatch, tmp_path):
    host.profiler()
    answer = stepped(host, monkeypatch, tmp_path, BETA1_KERNEL)
    kernel = from_plain(KernelMeasurement, answer["measurement"])
    assert kernel.correctness.status == "passed"
    assert kernel.latency.known is Known.MEASURED
    assert answer["timings"]["kernel"]["us"] == pytest.approx(1333)
    assert kernel.quantities["runs"].value == 10


def test_zeros_of_a_mixed_environment_are_wrong_results(host, monkeypatch, tmp_path):
    """Where today's package is there and was overlooked, the comparison tells."""
    host.profiler()
    answer = stepped(host, monkeypatch, tmp_path, BETA1_KERNEL, packages=("beta1", "current"))
    assert answer["correctness"]["kernel"]["status"] == "failed"


@pytest.mark.slow
def test_the_step_says_what_is_wrong(host, monkeypatch, tmp_path):
    host.profiler()
    wrong = from_plain(
        KernelMeasurement,
        stepped(host, monkeypatch, tmp_path / "a", BETA1_KERNEL, "x + scale")["measurement"],
    )
    assert wrong.correctness.status == "failed"
    with pytest.raises(StepFailedError) as caught:
        stepped(host, monkeypatch, tmp_path / "b", BETA1_KERNEL.replace("x * scale", "x.nothing"))
    assert caught.value.error.code == "user-error"
    host.profiler("sys.exit('NeuronCore(s) not available')")
    with pytest.raises(StepFailedError) as caught:
        stepped(host, monkeypatch, tmp_path / "c", BETA1_KERNEL)
    assert caught.value.error.code == "device-busy"


@pytest.mark.parametrize("status", ["passed", "failed"])
async def test_a_profile_on_a_host_with_a_device_ends_with_what_the_device_says(tmp_path, status):
    measured = {"us": 1333.0, "low_us": 1330.0, "high_us": 1340.0, "known": "measured"}
    counters = {"dma_read_bytes": {"value": 7, "known": "measured", "unit": "B"}}
    estimate = KernelMeasurement(
        "kernel", 4, "nki", "trn1", latency=Latency(1000, 800, 1200, Known.ESTIMATED), percent_of_peak=50.0,
        quantities={"dma_read_bytes": executed(9, "B"), "sbuf_peak": executed(5)},
        correctness=Correctness("passed", "", 4, 4),
    )  # fmt: skip

    class DeviceHost:
        name, remote = "trn", True

        async def facts(self):
            return HostFacts("trn", resources={"neuron_devices": 1})

        async def run(self, job):
            assert [(s.name, s.device) for s in job.steps] == [("profile", False), ("trainium", True)]
            yield JobMessage("profile", {"kernels": [to_plain(estimate)]}, final=True)
            answer = {
                "timings": {"kernel": measured}, "counters": {"kernel": counters}, "device": "trn1",
                "correctness": {"kernel": {"status": status, "detail": "zeros", "checked": 1.0}},
            }  # fmt: skip
            yield JobMessage("trainium", answer, final=True)

    path = tmp_path / "kernel.py"
    path.write_text(BETA1_KERNEL + PROBLEM.format(answer="x * scale"))
    request = ProfileRequest(examine(path, path.read_text()), {"nki": "trn1", "triton": "h100"})
    measurement = [m async for m in profile(DeviceHost(), request)][-1].kernels[0]
    assert measurement.stage == "timed"
    assert measurement.quantities["dma_read_bytes"].value == 7
    assert measurement.quantities["sbuf_peak"].value == 5
    if status == "failed":
        assert (measurement.latency, measurement.percent_of_peak) == (Latency(), None)
    else:
        assert measurement.latency == Latency(1333.0, 1330.0, 1340.0, Known.MEASURED)
        assert measurement.percent_of_peak == pytest.approx(50 * 1000 / 1333)
        assert measurement.quantities["estimated_time"].known is Known.ESTIMATED
    assert (measurement.correctness.status, measurement.correctness.device) == (status, status)
    assert ("wrong-result" in [f.code for f in measurement.findings]) == (status == "failed")


def test_the_settings_of_the_hosts_reach_the_step(tmp_path):
    environment = {
        "ACCELOPT_NRTPY_PYTHON": "/nrtpy/bin/python",
        "NEURON_RT_LOG_LEVEL": "ERROR",
        "HF_TOKEN": "s3cret",
    }
    assert set(environment) - set(step_environment(tmp_path, environment)) == {"HF_TOKEN"}
