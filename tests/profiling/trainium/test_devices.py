"""The device adapters against stand-ins for Neuron's tools: arguments, answers, and every way to fail."""

import json
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from support.trainium_stand_ins import BETA1_KERNEL, CURRENT_KERNEL, X, beta1, current, neuron_host, request

from accelopt_profiling.hosts.archive import worker_archive
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.measurement import KernelMeasurement
from accelopt_profiling.plain import from_plain, to_plain
from accelopt_profiling.quantity import Known
from accelopt_profiling.trainium.beta1 import view
from accelopt_profiling.trainium.device_run import Samples, steadiest
from accelopt_profiling.trainium.step import device_measurement
from accelopt_profiling.trainium.tools import DeviceError, explain_failure


@pytest.fixture
def host(tmp_path):
    return neuron_host(tmp_path)


def failure(device, device_request):
    with pytest.raises(DeviceError) as caught:
        device.run(device_request)
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


@pytest.mark.slow
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
    measurement = device_measurement(kernel, run, "trn1", roofline_us=533.2)
    assert measurement.latency.known is Known.MEASURED
    assert measurement.latency.us == pytest.approx(1333)
    assert measurement.percent_of_peak == pytest.approx(40, abs=0.1)
    assert measurement.bound == "memory"
    assert {q.known for q in measurement.quantities.values()} == {Known.MEASURED}
    assert measurement.quantities["dma_read_bytes"].value == 117440512
    assert measurement.quantities["ScalarE busy"].value == pytest.approx(0.6084 * 1333)
    assert "TensorE busy" not in measurement.quantities  # the engine was not used: the profiler leaves it out
    assert from_plain(KernelMeasurement, json.loads(json.dumps(to_plain(measurement)))) == measurement


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
    with pytest.raises(DeviceError) as caught:
        view(str(host.profiler(ending)), *files, seconds, host.environment)
    assert caught.value.code == code
    assert words in str(caught.value) + caught.value.detail


def test_a_failing_profiler_ends_the_run(host):
    error = failure(
        beta1(host, host.profiler("sys.exit('no')")), request(host, BETA1_KERNEL, runs=1, warmups=0)
    )
    assert error.code == "tool-failed"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["changed schema", "device busy"])
def test_current_says_how_the_profiler_failed_and_keeps_the_time(host, name):
    ending, code, words = ENDINGS[name]
    device_request = request(host, CURRENT_KERNEL)
    error = failure(current(host, host.explorer(ending), nrtpy=False), device_request)
    assert error.code == code
    run = current(host, host.explorer(ending)).run(device_request)
    assert run.samples.mean_ms == 1.5
    assert words in run.notes[0]


@pytest.mark.slow
def test_a_missing_tool_is_named(host):
    error = failure(beta1(host, host.folder / "bin" / "neuron-profile"), request(host, BETA1_KERNEL))
    assert error.code == "missing-tool"
    assert "aws-neuronx-tools" in str(error)
    error = failure(current(host, explorer=None, nrtpy=False), request(host, CURRENT_KERNEL))
    assert error.code == "missing-tool"
    assert "ACCELOPT_NRTPY_PYTHON" in str(error)


def test_a_kernel_that_raises_is_the_kernels_fault_with_its_own_words(host):
    error = failure(beta1(host), request(host, BETA1_KERNEL.replace("x * scale", "x.nothing")))
    assert error.code == "kernel-failed"
    assert "AttributeError" in str(error)
    assert "kernel.py" in error.detail


def test_a_kernel_that_ends_the_process_leaves_no_answer(host):
    kernel = BETA1_KERNEL.replace("return x * scale", "import os; os._exit(0)")
    error = failure(beta1(host), request(host, kernel))
    assert error.code == "tool-failed"
    assert "left no answer" in str(error)


@pytest.mark.slow
def test_a_kernel_that_hangs_is_ended(host):
    kernel = BETA1_KERNEL.replace("return x * scale", "import time; time.sleep(60)")
    assert failure(beta1(host), request(host, kernel, seconds=1.5)).code == "timeout"


@pytest.mark.parametrize(
    ("message", "code"),
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
def test_what_neurons_tools_say_of_a_device_is_explained(message, code):
    error = explain_failure(f"2026-Nov-21 ERROR {message}\nmore", DeviceError("tool-failed", "it failed"))
    assert error.code == code
    assert (message in error.detail) == (code != "tool-failed")


def test_what_the_sdk_raises_is_explained_too(host):
    # raised inside nki.baremetal, before the kernel is entered
    message = "TDRV:tdrv_get_dev_info No neuron device available"
    error = failure(beta1(host, STAND_IN_SDK_SAYS=message), request(host, BETA1_KERNEL))
    assert error.code == "driver-missing"


@pytest.mark.slow
def test_a_neff_that_was_not_kept_is_said(host):
    error = failure(beta1(host, STAND_IN_NO_FILES="1"), request(host, BETA1_KERNEL))
    assert "left no file.neff" in str(error)
    error = failure(current(host, STAND_IN_NEFFS="2"), request(host, CURRENT_KERNEL))
    assert "expected one NEFF" in str(error)


@pytest.mark.slow
def test_nrtpy_may_refuse_names_or_the_target(host):
    error = failure(current(host, STAND_IN_INPUTS="in0,in1"), request(host, CURRENT_KERNEL))
    assert "the NEFF takes in0, in1, the kernel has x" in str(error)
    error = failure(
        current(host, STAND_IN_NRT_SAYS="NrtError: NRT_FAILURE(6)"), request(host, CURRENT_KERNEL)
    )
    assert error.code == "wrong-target"


@pytest.mark.parametrize("kind", ["bfloat16", "float8_e4m3fn", "int4"])
def test_types_that_numpy_does_not_know_arrive_and_come_back(host, kind):
    values = X.astype(getattr(ml_dtypes, kind))
    kernel = BETA1_KERNEL.replace("x * scale", f"(x if x.dtype.name == {kind!r} else None)")
    run = beta1(host).run(request(host, kernel, arguments=[values, 2.0], runs=1, warmups=0, rounds=1))
    assert run.outputs[0].dtype == values.dtype
    np.testing.assert_array_equal(run.outputs[0].astype(np.float32), values.astype(np.float32))


def test_out_of_the_workers_archive_too(host):
    """As on a host over SSH, where no file of this package is on the disk."""
    (host.folder / "worker.zip").write_bytes(worker_archive())
    code = (
        "import os, pathlib, sys\nsys.path.insert(0, 'worker.zip')\n"
        "from accelopt_profiling.trainium.execution import execute\n"
        "from accelopt_profiling.trainium.device_run import DeviceRequest\n"
        "asked = DeviceRequest(pathlib.Path('kernel.py').resolve(), 'kernel', [3, 2.0], pathlib.Path('run'), runs=1)\n"
        "assert 'worker.zip' in execute.__code__.co_filename\n"
        "print(execute(asked, 'beta1', pathlib.Path('run').resolve(), dict(os.environ)).outputs)"
    )
    host.kernel(BETA1_KERNEL)
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command,
        cwd=host.folder,
        env={**host.environment, "PYTHONPATH": host.packages("beta1")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "[array(6.)]\n", done.stderr
