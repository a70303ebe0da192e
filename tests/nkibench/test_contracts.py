"""AccelOpt's ``NKIKernel`` as a drop-in, and the same kernel on a host with a device."""

import asyncio
import json

import pytest
from support.synthetic_checkout import kernel, write_checkout

from accelopt_profiling.hosts.host import HostFacts, JobFailedError, JobMessage
from accelopt_profiling.jobs import StepError
from accelopt_profiling.measurement import Correctness, KernelMeasurement, Latency
from accelopt_profiling.plain import to_plain
from accelopt_profiling.quantity import Known
from nkibench.accelopt_kernel import NKIKernel, profile_fields
from nkibench.dataset import read_dataset
from nkibench.measuring import cost

SAVED_FIELDS = [
    "hbm_read_bytes", "hbm_write_bytes", "psum_read_bytes", "spill_reload_bytes", "spill_save_bytes", "hardware_flops",
    "scalar_engine_active_time_percent", "vector_engine_active_time_percent",
]  # fmt: skip


@pytest.mark.slow
def test_a_right_kernel_has_accelopts_attributes_and_fields(tmp_path):
    folder = write_checkout(tmp_path, ("scale",))
    program = NKIKernel(
        str(folder / "kernels/scale_M256_N512_0.py"), str(folder / "reference/scale_M256_N512_numpy_2.py")
    )
    assert (program.rel_tol, program.perf_tol) == (2e-5, 0.01)
    program.rel_tol = 1e-4
    res = program.profile(SAVED_FIELDS)
    assert res is program.res
    assert (res.compiled, res.correct, res.runnable) == (True, True, True)
    metadata = res.metadata
    assert metadata["min_ms"] <= metadata["latency"] <= metadata["max_ms"]
    assert metadata["rel_diffs"] == pytest.approx(
        (metadata["max_ms"] - metadata["min_ms"]) / metadata["min_ms"]
    )
    assert metadata["known"] == "estimated"
    assert metadata["hbm_read_bytes"] == metadata["hbm_write_bytes"] == 256 * 512 * 4
    assert metadata["spill_save_bytes"] == 0
    busy = [metadata.get(f"{engine}_engine_active_time_percent", 0) for engine in ("scalar", "vector")]
    assert 0 < max(busy) < 1
    assert "hardware_flops" not in metadata  # known on a device only
    json.dumps(metadata)  # as AccelOpt writes it into its CSV


@pytest.mark.slow
def test_wrong_and_broken_kernels_say_so_where_accelopt_looks(tmp_path):
    folder = write_checkout(tmp_path, ("scale",))
    task = folder / "reference/scale_M256_N512_numpy_2.py"
    program = (
        tmp_path / "elsewhere" / "candidate.py"
    )  # AccelOpt writes candidates to the system's temporary folder
    program.parent.mkdir()

    def profiled(text):
        program.write_text(text)
        return NKIKernel(str(program), str(task)).profile([])

    assert profiled(kernel(name="optimized_kernel")).correct
    wrong = profiled(kernel(value="v4"))
    assert (wrong.compiled, wrong.runnable, wrong.correct) == (True, True, False)
    assert any("wrong-result" in line for line in wrong.metadata["correctness_error"])
    assert "latency" not in wrong.metadata
    broken = profiled(kernel(value="nl.no_such_function(v5)"))
    assert (broken.compiled, broken.correct) == (False, False)
    assert "no_such_function" in broken.metadata["compilation_error"]
    assert isinstance(broken.metadata["compilation_traceback"], str)
    no_python = profiled("def kernel(:\n")
    assert "compilation_error" in no_python.metadata


@pytest.mark.parametrize("missing", ["program", "reference"])
def test_a_file_that_is_not_there_is_named(tmp_path, missing):
    folder = write_checkout(tmp_path, ("scale",))
    paths = {
        "program": folder / "kernels/scale_M256_N512_0.py",
        "reference": folder / "reference/scale_M256_N512_numpy_2.py",
        missing: tmp_path / "gone.py",
    }
    res = NKIKernel(str(paths["program"]), str(paths["reference"])).profile()
    assert res.metadata["compilation_error"] == f"{tmp_path / 'gone.py'}: does not exist"
    assert not res.compiled


class DeviceHost:
    """A host with a Trainium, which answers as the step ``trainium`` does (or fails as it does)."""

    name, remote = "trn", True

    def __init__(self, answer):
        self.answer, self.jobs = answer, []

    async def facts(self):
        return HostFacts("trn", resources={"neuron_devices": 1})

    async def run(self, job):
        self.jobs.append(job)
        if isinstance(self.answer, Exception):
            raise self.answer
        yield JobMessage("trainium", self.answer, final=True)


MEASURED = KernelMeasurement(
    "kernel", 12, "nki", "trn1", "trn", Correctness("passed"), Latency(1333, 1330, 1340, Known.MEASURED)
)


def test_a_host_with_a_device_is_measured_and_its_profile_is_kept(tmp_path):
    subject = read_dataset(write_checkout(tmp_path, ("scale",))).ready[0]
    profile = {"total_time": 0.001333, "hbm_read_bytes": 7, "hardware_flops": 5.0}
    host = DeviceHost({"measurement": to_plain(MEASURED), "profile": profile})
    measured_cost = asyncio.run(cost(host, subject, "trn1"))
    assert measured_cost.measurement.latency.known is Known.MEASURED
    step = host.jobs[0].steps[0]
    assert (step.name, step.device, len(host.jobs[0].steps)) == ("trainium", True, 1)
    assert step.params["kernels"][0]["name"] == "kernel"
    assert profile_fields(measured_cost, ["hardware_flops", "hbm_read_bytes", "spill_save_bytes"]) == {
        "hardware_flops": 5.0, "hbm_read_bytes": 7,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            JobFailedError("trainium", StepError("device-busy", "Another process holds the NeuronCores")),
            "Another process",
        ),
        ({}, "cannot be read"),
        ({"measurement": {"name": 3}, "profile": {}}, "cannot be read"),
        (None, "cannot be read"),
    ],
)
def test_a_device_that_fails_is_told_and_not_replaced_by_an_estimate(tmp_path, answer, words):
    subject = read_dataset(write_checkout(tmp_path, ("scale",))).ready[0]
    measured_cost = asyncio.run(cost(DeviceHost(answer), subject, "trn1"))
    assert measured_cost.measurement is None
    assert words in measured_cost.why
