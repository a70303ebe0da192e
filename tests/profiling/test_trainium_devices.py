"""The device adapters against stand-ins for Neuron's tools: arguments, answers, and every way to fail."""

import json
import os
import sys
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from trainium_stand_ins import RECORDED, neuron_host

from accelopt_profiling.hosts.host import HostFacts, Progress
from accelopt_profiling.jobs import Source
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.measurement import KernelMeasurement, Latency
from accelopt_profiling.plain import from_plain, to_plain
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.profiler import ProfileRequest, profile
from accelopt_profiling.quantity import Known, executed
from accelopt_profiling.trainium.beta1 import Beta1Device, view
from accelopt_profiling.trainium.bundle import environment as told_environment
from accelopt_profiling.trainium.bundle import write_bundle
from accelopt_profiling.trainium.current import CurrentDevice
from accelopt_profiling.trainium.failure import DeviceFailure, explained
from accelopt_profiling.trainium.measurement import device_measurement
from accelopt_profiling.trainium.request import DeviceRequest
from accelopt_profiling.trainium.samples import Samples, steadiest
from accelopt_profiling.trainium.step import DeviceParams, time_on_trainium
from accelopt_profiling.trainium.summary import bound, quantities, read_summary
from accelopt_profiling.trainium.toolchain import find_toolchain, open_device
from accelopt_profiling.worker.step import StepContext, StepFailed

BETA1_KERNEL = "import neuronxcc.nki as nki\n\n@nki.jit\ndef kernel(x, scale):\n    return x * scale\n"
CURRENT_KERNEL = "import nki\n\n@nki.jit\ndef kernel(x, scale):\n    return x * scale\n"
X = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture
def host(tmp_path):
    return neuron_host(tmp_path)


def request(host, kernel, **changes):
    folder = host.folder / "run"
    folder.mkdir(exist_ok=True)
    asked = DeviceRequest(host.kernel(kernel), "kernel", [X, 2.0], folder, runs=2, seconds=30)
    return replace(asked, **changes)


def beta1(host, profiler=None, **environment):
    path = profiler or host.profiler()
    return Beta1Device(sys.executable, str(path), {**host.environment, **environment}, {"neuronx-cc": "2.21"})


def current(host, explorer=True, nrtpy=True, **environment):
    path = host.explorer() if explorer is True else explorer
    return CurrentDevice(
        sys.executable, str(path) if path else None, sys.executable if nrtpy else None,
        {**host.environment, **environment}, {"nki": "0.7.0"},
    )  # fmt: skip


def failure(device, asked):
    with pytest.raises(DeviceFailure) as caught:
        device.run(asked)
    return caught.value


# What a run yields


def test_beta1_runs_times_and_reads_the_profile(host):
    run = beta1(host).run(request(host, BETA1_KERNEL))
    np.testing.assert_array_equal(run.outputs[0], 2 * X)
    assert run.samples == Samples(1.333, 1.333, 1.333, 2)
    calls = host.log
    assert [bool(c["baremetal"][0]) for c in calls] == [False, False, True, True]  # warm-ups keep no profile
    assert {c["baremetal"][2] for c in calls} == {"--disable-dge --logical-nc-config=1"}
    assert len({c["baremetal"][0] for c in calls[2:]}) == 2  # a NEFF and a trace of its own for each run
    assert {c["baremetal"][0].rsplit("/", 1)[1] for c in calls[2:]} == {"file.neff"}
    env = calls[0]["env"]
    assert env["NEURON_CC_FLAGS"] == "--auto-cast=none"
    assert (env["NEURON_RT_NUM_CORES"], env["NEURON_RT_VISIBLE_CORES"]) == ("1", "0")


def test_current_compiles_captures_and_times(host):
    run = current(host).run(request(host, CURRENT_KERNEL, target="trn2"))
    np.testing.assert_array_equal(run.outputs[0], 2 * X)
    assert run.samples == Samples(1.5, 1.49, 1.51, 10)
    assert run.summary.seconds == 0.001333
    assert run.notes == []


def test_without_nrtpy_the_profiled_execution_is_the_latency_and_that_is_said(host):
    run = current(host, nrtpy=False).run(request(host, CURRENT_KERNEL))
    assert run.samples.mean_ms == pytest.approx(1.333)
    assert "one profiled execution" in run.notes[0]


@pytest.mark.slow
def test_without_a_profiler_there_is_a_time_and_no_profile(host):
    run = current(host, explorer=None).run(request(host, CURRENT_KERNEL))
    assert run.summary is None
    assert run.samples.mean_ms == 1.5
    assert "neuron-explorer is not installed" in run.notes[0]


def test_a_device_run_becomes_the_same_measurement_as_everything_else(host):
    run = beta1(host).run(request(host, BETA1_KERNEL))
    kernel = find_kernels(BETA1_KERNEL).kernels[0]
    found = device_measurement(kernel, run, "trn1", roofline_us=533.2)
    assert found.latency.known is Known.MEASURED
    assert found.latency.us == pytest.approx(1333)
    assert found.percent_of_peak == pytest.approx(40, abs=0.1)
    assert found.bound == "memory"
    assert {q.known for q in found.quantities.values()} == {Known.MEASURED}
    assert found.quantities["dma_read_bytes"].value == 117440512
    assert found.quantities["ScalarE busy"].value == pytest.approx(0.6084 * 1333)
    assert "TensorE busy" not in found.quantities  # the engine was not used: the profiler leaves it out
    assert from_plain(KernelMeasurement, json.loads(json.dumps(to_plain(found)))) == found


def test_rounds_are_measured_anew_until_one_is_steady_and_the_steadiest_counts():
    rounds = iter(
        [Samples(2, 1, 3, 5), Samples(2, 1.9, 2.1, 5), Samples(2, 1.5, 2.5, 5), Samples(9, 9, 9, 5)]
    )
    assert steadiest(lambda: next(rounds), 0.01, 3).min_ms == 1.9
    assert steadiest(lambda: next(rounds), 0.01, 3).mean_ms == 9


# Every way to fail

ENDINGS = {
    "non-zero exit": ("sys.exit('cannot read the trace')", "tool-failed", "cannot read the trace"),
    "a crash": ("os.kill(os.getpid(), 11)", "tool-failed", "signal 11"),
    "empty": ("pass", "bad-profile", "empty"),
    "not JSON": ("print('Profile written to output')", "bad-profile", "no valid JSON"),
    "cut off": ("print('{\"n\": {\"total_time\": 0.0013, \"hbm')", "bad-profile", "no valid JSON"),
    "changed schema": ("print('{\"n\": {\"duration\": 1.3}}')", "bad-profile", "no 'total_time'"),
    "no time": ("print('{\"n\": {\"total_time\": 0}}')", "bad-profile", "no time"),
    "text for a number": ("print('{\"n\": {\"total_time\": \"1.3 ms\"}}')", "bad-profile", "no time"),
    "not a number": ("print('{\"n\": {\"total_time\": NaN}}')", "bad-profile", "no time"),
    "too slow": ("import time; time.sleep(60)", "timeout", "did not end within"),
    "device busy": (
        "sys.exit('ERROR NRT:nrt_allocate_neuron_cores NeuronCore(s) not available - Requested:2 Available:0')",
        "device-busy", "neuron-ls",
    ),
    "driver missing": (
        "sys.exit('ERROR TDRV:tdrv_get_dev_info No neuron device available')", "driver-missing", "aws-neuronx-dkms",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDINGS)
def test_the_profiler_may_fail_in_any_way(host, name):
    ending, code, words = ENDINGS[name]
    files = [host.folder / "file.neff", host.folder / "file.ntff"]
    for path in files:
        path.write_text("recorded")
    seconds = 0.5 if code == "timeout" else 30
    with pytest.raises(DeviceFailure) as caught:
        view(str(host.profiler(ending)), *files, seconds, host.environment)
    assert caught.value.code == code
    assert words in str(caught.value) + caught.value.detail


def test_a_failing_profiler_ends_the_run(host):
    found = failure(
        beta1(host, host.profiler("sys.exit('no')")), request(host, BETA1_KERNEL, runs=1, warmups=0)
    )
    assert found.code == "tool-failed"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["changed schema", "device busy"])
def test_current_says_how_the_profiler_failed_and_keeps_the_time(host, name):
    ending, code, words = ENDINGS[name]
    asked = request(host, CURRENT_KERNEL)
    found = failure(current(host, host.explorer(ending), nrtpy=False), asked)
    assert found.code == code
    run = current(host, host.explorer(ending)).run(asked)
    assert run.samples.mean_ms == 1.5
    assert words in run.notes[0]


@pytest.mark.slow
def test_a_missing_tool_is_named(host):
    found = failure(beta1(host, host.folder / "bin" / "neuron-profile"), request(host, BETA1_KERNEL))
    assert found.code == "missing-tool"
    assert "aws-neuronx-tools" in str(found)
    found = failure(current(host, explorer=None, nrtpy=False), request(host, CURRENT_KERNEL))
    assert found.code == "missing-tool"
    assert "ACCELOPT_NRTPY_PYTHON" in str(found)


def test_a_kernel_that_raises_is_the_kernels_fault_with_its_own_words(host):
    found = failure(beta1(host), request(host, BETA1_KERNEL.replace("x * scale", "x.nothing")))
    assert found.code == "kernel-failed"
    assert "AttributeError" in str(found)
    assert "kernel.py" in found.detail


def test_a_kernel_that_ends_the_process_leaves_no_answer(host):
    kernel = BETA1_KERNEL.replace("return x * scale", "import os; os._exit(0)")
    found = failure(beta1(host), request(host, kernel))
    assert found.code == "tool-failed"
    assert "left no answer" in str(found)


@pytest.mark.slow
def test_a_kernel_that_hangs_is_ended(host):
    kernel = BETA1_KERNEL.replace("return x * scale", "import time; time.sleep(60)")
    assert failure(beta1(host), request(host, kernel, seconds=1.5)).code == "timeout"


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (
            "NRT:nrt_allocate_neuron_cores Logical NeuronCore(s) not available - Requested:1 Available:0",
            "device-busy",
        ),
        ("TDRV:tdrv_get_dev_info No neuron device available", "driver-missing"),
        ("Failed to alloc DEVICE memory: 4194304", "device-memory"),
        ("something nobody has seen", "tool-failed"),
    ],
)
def test_what_neurons_tools_say_of_a_device_is_explained(said, code):
    found = explained(f"2026-Nov-21 ERROR {said}\nmore", DeviceFailure("tool-failed", "it failed"))
    assert found.code == code
    assert (said in found.detail) == (code != "tool-failed")


def test_what_the_sdk_raises_is_explained_too(host):
    # raised inside nki.baremetal, before the kernel is entered
    said = "TDRV:tdrv_get_dev_info No neuron device available"
    found = failure(beta1(host, STAND_IN_SDK_SAYS=said), request(host, BETA1_KERNEL))
    assert found.code == "driver-missing"


@pytest.mark.slow
def test_a_neff_that_was_not_kept_is_said(host):
    found = failure(beta1(host, STAND_IN_NO_FILES="1"), request(host, BETA1_KERNEL))
    assert "left no file.neff" in str(found)
    found = failure(current(host, STAND_IN_NEFFS="2"), request(host, CURRENT_KERNEL))
    assert "expected one NEFF" in str(found)


@pytest.mark.slow
def test_nrtpy_may_refuse_names_or_the_target(host):
    found = failure(current(host, STAND_IN_INPUTS="in0,in1"), request(host, CURRENT_KERNEL))
    assert "the NEFF takes in0, in1, the kernel has x" in str(found)
    found = failure(
        current(host, STAND_IN_NRT_SAYS="NrtError: NRT_FAILURE(6)"), request(host, CURRENT_KERNEL)
    )
    assert found.code == "wrong-target"


# Reading summaries


def test_a_summary_is_read_whatever_comes_before_it_and_unknown_fields_are_kept():
    text = (RECORDED / "summary_7_4.json").read_text()
    summary = read_summary(f"WARNING: deprecated, use neuron-explorer\n{text}", "neuron-profile")
    assert summary.fields["some_new_field"] == {"nested": [1, 2]}
    assert bound(summary) == "memory"
    assert quantities(summary)["memory_bandwidth_utilisation"].value == 0.43
    flat = read_summary(json.dumps({"summary": [{"total_time": 2e-3}], "instruction": []}), "neuron-profile")
    assert flat.seconds == 2e-3
    assert quantities(flat) == {}
    assert bound(flat) is None


# Choosing by what the host has


def found_on(host, modules, tmp_path, devices=1, **environment):
    folder = tmp_path / "dev"
    folder.mkdir()
    for number in range(devices):
        (folder / f"neuron{number}").touch()
    return find_toolchain(
        {**host.environment, **environment}, importable=lambda m: m in modules, device_folder=folder
    )


def test_the_device_follows_from_what_is_installed(host, tmp_path):
    host.profiler()
    host.explorer()
    assert isinstance(open_device(found_on(host, {"neuronxcc.nki"}, tmp_path)), Beta1Device)
    found = replace(found_on(host, {"nki.isa"}, host.folder / "bin"), nrtpy_python="/venv/bin/python")
    device = open_device(found)
    assert isinstance(device, CurrentDevice)
    assert device.nrtpy_python == "/venv/bin/python"


@pytest.mark.parametrize(
    ("modules", "devices", "code"),
    [
        ({"nki.isa"}, 0, "driver-missing"),
        (set(), 1, "no-toolchain"),
        ({"neuronxcc.nki"}, 1, "missing-tool"),
        ({"nki.isa"}, 1, "missing-tool"),
    ],
)
def test_what_is_missing_is_said_before_anything_is_run(host, tmp_path, modules, devices, code):
    with pytest.raises(DeviceFailure) as caught:
        open_device(found_on(host, modules, tmp_path, devices))
    assert caught.value.code == code
    assert caught.value.fix


# The bundle


def test_the_bundle_holds_what_a_report_needs_and_no_secret(host, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    host.program(
        "neuron-ls", f"#!{sys.executable}\nimport sys\nassert sys.argv[1:] == ['--json-output']\nprint('[]')"
    )
    host.profiler()
    secrets = {
        "NEURON_API_KEY": "s3cret",
        "AWS_SECRET_ACCESS_KEY": "s3cret",
        "ACCELOPT_MODEL_URL": "https://u:s3cret@h",
    }
    found = found_on(host, {"nki.isa"}, tmp_path, NEURON_RT_NUM_CORES="2", **secrets)
    path = tmp_path / "bundle.zip"
    names = write_bundle(path, found, [{"name": "Python"}], tmp_path)
    archive = zipfile.ZipFile(path)
    texts = {name: archive.read(name).decode() for name in archive.namelist()}
    assert set(names) == set(texts) >= {"about.json", "doctor.json", "environment.json", "neuron-ls.txt"}
    assert "s3cret" not in "".join(texts.values())
    assert str(tmp_path) not in "".join(texts.values())
    assert json.loads(texts["environment.json"])["NEURON_RT_NUM_CORES"] == "2"
    assert json.loads(texts["about.json"])["adapters"] == "not yet run on hardware"
    assert "unexpected arguments" in texts["neuron-profile.txt"]  # a tool that fails is told of, not fatal


def test_no_variable_that_is_not_about_neuron_is_told():
    assert "PATH" not in told_environment(dict(os.environ))


# The step on a host

PROBLEM = """
import numpy as np

def get_inputs():
    return [np.random.normal(size=(3, 4)).astype(np.float32), 2.0]

def reference(x, scale):
    return {answer}
"""


def stepped(host, monkeypatch, tmp_path, kernel, answer="x * scale"):
    source = {"kernel.py": kernel, "problem.py": PROBLEM.format(answer=answer)}
    folder = tmp_path / "job"
    for name, text in source.items():
        path = folder / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for name, value in host.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("accelopt_profiling.trainium.toolchain._importable", lambda m: m == "neuronxcc.nki")
    devices = tmp_path / "dev"
    devices.mkdir()
    (devices / "neuron0").touch()
    context = StepContext(folder, Source("kernel.py", source), lambda value: None)
    params = DeviceParams(find_kernels(kernel).kernels, ProblemRef("module", "problem.py", "kernel"), "trn1")
    return time_on_trainium(context, params, devices)


def test_the_step_times_checks_and_profiles_on_the_device(host, monkeypatch, tmp_path):
    host.profiler()
    found = stepped(host, monkeypatch, tmp_path, BETA1_KERNEL)
    kernel = from_plain(KernelMeasurement, found["measurement"])
    assert kernel.correctness.status == "passed"
    assert kernel.latency.known is Known.MEASURED
    assert found["timings"]["kernel"]["us"] == pytest.approx(1333)
    assert kernel.quantities["runs"].value == 10


@pytest.mark.slow
def test_the_step_says_what_is_wrong(host, monkeypatch, tmp_path):
    host.profiler()
    wrong = from_plain(
        KernelMeasurement,
        stepped(host, monkeypatch, tmp_path / "a", BETA1_KERNEL, "x + scale")["measurement"],
    )
    assert wrong.correctness.status == "failed"
    with pytest.raises(StepFailed) as caught:
        stepped(host, monkeypatch, tmp_path / "b", BETA1_KERNEL.replace("x * scale", "x.nothing"))
    assert caught.value.error.code == "user-error"
    host.profiler("sys.exit('NeuronCore(s) not available')")
    with pytest.raises(StepFailed) as caught:
        stepped(host, monkeypatch, tmp_path / "c", BETA1_KERNEL)
    assert caught.value.error.code == "device-busy"


async def test_a_profile_on_a_host_with_a_device_ends_with_what_the_device_says(tmp_path):
    measured = {"us": 1333.0, "low_us": 1330.0, "high_us": 1340.0, "known": "measured"}
    counters = {"dma_read_bytes": {"value": 7, "known": "measured", "unit": "B"}}
    estimate = KernelMeasurement(
        "kernel", 4, "nki", "trn1", latency=Latency(1000, 800, 1200, Known.ESTIMATED), percent_of_peak=50.0,
        quantities={"dma_read_bytes": executed(9, "B"), "sbuf_peak": executed(5)},
    )  # fmt: skip

    class DeviceHost:
        name, remote = "trn", True

        async def facts(self):
            return HostFacts("trn", resources={"neuron_devices": 1})

        async def run(self, job):
            assert [(s.name, s.device) for s in job.steps] == [("profile", False), ("trainium", True)]
            yield Progress("profile", {"kernels": [to_plain(estimate)]}, final=True)
            answer = {"timings": {"kernel": measured}, "counters": {"kernel": counters}, "device": "trn1"}
            yield Progress("trainium", answer, final=True)

    path = tmp_path / "kernel.py"
    path.write_text(BETA1_KERNEL + PROBLEM.format(answer="x * scale"))
    request = ProfileRequest(path, path.read_text(), {"nki": "trn1", "triton": "h100"})
    found = [m async for m in profile(DeviceHost(), request)][-1].kernels[0]
    assert found.latency == Latency(1333.0, 1330.0, 1340.0, Known.MEASURED)
    assert found.stage == "timed"
    assert found.percent_of_peak == pytest.approx(50 * 1000 / 1333)
    assert found.quantities["dma_read_bytes"].value == 7
    assert found.quantities["sbuf_peak"].value == 5
    assert found.quantities["estimated_time"].known is Known.ESTIMATED
