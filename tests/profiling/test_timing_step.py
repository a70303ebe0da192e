"""The step that times, from the job that asks for it to its answer; only the device and Triton's hooks stand in."""

import random
from dataclasses import asdict

import pytest
from clockwork_device import SHORT, FakeDevice

from accelopt_profiling.hosts.host import JobFailed
from accelopt_profiling.hosts.local import LocalHost
from accelopt_profiling.jobs import Source
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.plain import from_plain
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.timing import step
from accelopt_profiling.timing.asking import time_on, timing_job
from accelopt_profiling.timing.session import Session
from accelopt_profiling.timing.step import TimeParams, time_launches
from accelopt_profiling.worker.sources import write_sources
from accelopt_profiling.worker.step import StepContext

KERNEL = """
import torch
import triton
import triton.language as tl

@triton.jit
def scale(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)

launched = lambda us: None

def run(x):
    launched({us})
    return 2 * x
"""
PROBLEM = (
    "import torch\ndef get_inputs():\n    return [torch.rand(64)]\ndef reference(x):\n    return 2 * x\n"
)
REF = ProblemRef("module", "problem.py", "run")


def source(us: float) -> Source:
    return Source("k.py", {"k.py": KERNEL.replace("{us}", str(us)), "problem.py": PROBLEM}, name="k.py")


def kernels():
    return find_kernels(KERNEL).kernels


async def test_a_host_without_a_gpu_says_so():
    host = LocalHost()
    try:
        with pytest.raises(JobFailed, match="sees no GPU") as failed:
            await time_on(host, source(1), kernels(), REF)
        assert failed.value.error.code == "unsupported"
    finally:
        await host.close()


@pytest.mark.parametrize(("ours", "theirs", "answer"), [(40.0, 80.0, "faster"), (80.0, 40.0, "slower")])
def test_a_file_against_its_baseline(tmp_path, monkeypatch, ours, theirs, answer):
    """The whole step in this process, as the worker would call it with the job's parameters."""
    import torch

    device = FakeDevice()
    noise = random.Random(1)
    load = step.load_module

    def loaded(*arguments):
        module = load(*arguments)
        module.launched = lambda us: device.launch(us * noise.uniform(0.99, 1.01))
        return module

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(step, "TorchDevice", lambda torch: device)
    monkeypatch.setattr(step, "load_module", loaded)
    monkeypatch.setattr(step, "traced", lambda torch, call: None)
    monkeypatch.setattr(step, "read_conditions", lambda identifier: None)
    monkeypatch.setattr(step.time, "perf_counter", lambda: device.now)
    job = timing_job(source(ours), kernels(), REF, source(theirs).files["k.py"], SHORT)
    assert (job.steps[0].device, job.steps[0].name) == (True, "time")
    write_sources(tmp_path / "src", job.source.files)
    monkeypatch.syspath_prepend(str(tmp_path / "src"))
    params = from_plain(TimeParams, job.steps[0].params)
    assert asdict(params)["plan"] == asdict(SHORT)
    found = from_plain(Session, time_launches(StepContext(tmp_path, job.source, print), params))
    assert found.comparison.answer == answer
    assert found.call.us == pytest.approx(ours, rel=0.02)
    assert found.device == FakeDevice.name
    assert found.timings == {}  # nothing was launched through Triton
    assert found.notes == ["Clocks, temperature and power are not known."]
