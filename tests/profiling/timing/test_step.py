"""The step that times, from the job that asks for it to its answer; only the device and Triton's hooks stand in."""

import random
from dataclasses import asdict, replace

import pytest
from support.clockwork_device import SHORT, FakeDevice
from support.worker_jobs import local_host

from accelopt_profiling.hosts.host import JobFailedError
from accelopt_profiling.jobs import JobFiles
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.plain import from_plain
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.step_context import StepContext, StepFailedError
from accelopt_profiling.timing import check_step, kept_outputs, time_step
from accelopt_profiling.timing.session import TimingSession
from accelopt_profiling.timing.time_step import TimeParams, time_launches
from accelopt_profiling.timing.timing_job import time_on, timing_job
from accelopt_profiling.worker.job_folders import write_sources

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


def source(us: float) -> JobFiles:
    return JobFiles("k.py", {"k.py": KERNEL.replace("{us}", str(us)), "problem.py": PROBLEM}, name="k.py")


def kernels():
    return find_kernels(KERNEL).kernels


@pytest.mark.slow
async def test_a_host_without_a_gpu_says_so():
    async with local_host() as host:
        with pytest.raises(JobFailedError, match="sees no GPU") as failed:
            await time_on(host, source(1), kernels(), REF)
        assert failed.value.error.code == "unsupported"


@pytest.fixture
def stand_ins(monkeypatch):
    """A device that is a clock, on which a file's calls of ``launched`` run; tensors stay where they are."""
    import torch

    device = FakeDevice()
    noise = random.Random(1)
    load = time_step.load_module

    def loaded(*arguments):
        module = load(*arguments)
        module.launched = lambda us: device.launch(us * noise.uniform(0.99, 1.01))
        return module

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(time_step, "TorchDevice", lambda torch: device)
    monkeypatch.setattr(time_step, "load_module", loaded)
    monkeypatch.setattr(time_step, "traced", lambda torch, call: None)
    monkeypatch.setattr(time_step, "read_conditions", lambda identifier: None)
    monkeypatch.setattr(time_step.time, "perf_counter", lambda: device.now)
    for module in (time_step, check_step):
        monkeypatch.setattr(module, "on_device", lambda value: value)


def run_job(job, folder, monkeypatch) -> TimingSession:
    """Both steps in this process, as the worker would call them with the job's parameters."""
    write_sources(folder / "src", job.source.files)
    monkeypatch.syspath_prepend(str(folder / "src"))
    context = StepContext(folder, job.source, print)
    assert [(one.name, one.device) for one in job.steps] == [("time", True), ("time.check", True)]
    params = from_plain(TimeParams, job.steps[0].params)
    assert asdict(params)["plan"] == asdict(SHORT)
    timing = from_plain(TimingSession, time_launches(context, params))
    checked = check_step.check_timed(context, from_plain(check_step.CheckTimedParams, job.steps[1].params))
    return replace(timing, checked=checked)


@pytest.mark.usefixtures("stand_ins")
@pytest.mark.parametrize(("ours", "theirs", "answer"), [(40.0, 80.0, "faster"), (80.0, 40.0, "slower")])
def test_a_file_against_its_baseline(tmp_path, monkeypatch, ours, theirs, answer):
    job = timing_job(source(ours), kernels(), REF, source(theirs).files["k.py"], SHORT)
    timing = run_job(job, tmp_path, monkeypatch)
    assert timing.comparison.answer == answer
    assert timing.call.us == pytest.approx(ours, rel=0.02)
    assert len(timing.samples_us) == timing.runs
    assert timing.device == FakeDevice.name
    assert timing.timings == {}  # nothing was launched through Triton
    assert timing.notes == ["Clocks, temperature and power are not known."]
    assert timing.checked.wrong == ""
    assert 1 <= timing.checked.runs <= kept_outputs.KEPT + 1


#: What a file may do in timed runs that it would not be caught at by its time alone.
CHEATS = {
    "remembers by address": "seen = {}\ndef work(x):\n    return seen.setdefault(x.data_ptr(), 2 * x)",
    "stops working": "calls = [0]\ndef work(x):\n    calls[0] += 1\n    return 2 * x if calls[0] < 6 else x",
    "one result for all": "seen = []\ndef work(x):\n    seen.append(2 * x)\n    return seen[0]",
}
HONEST = {
    "works": "def work(x):\n    return 2 * x",
    "changes its input": "def work(x):\n    x *= 2\n    return x",
    "writes into one buffer": "kept = torch.empty(64)\ndef work(x):\n    return torch.mul(x, 2, out=kept)",
}


@pytest.mark.usefixtures("stand_ins")
@pytest.mark.parametrize("name", [*CHEATS, *HONEST])
def test_outputs_of_timed_runs_are_compared_with_the_reference(tmp_path, monkeypatch, name):
    text = source(40.0).files["k.py"].replace("    return 2 * x", "    return work(x)")
    files = {"k.py": f"{text}\n{(CHEATS | HONEST)[name]}\n", "problem.py": PROBLEM}
    job = timing_job(JobFiles("k.py", files, name="k.py"), kernels(), REF, plan=SHORT)
    timing = run_job(job, tmp_path, monkeypatch)
    assert ("of the timing: output 0: the error of" in timing.checked.wrong) == (name in CHEATS)


@pytest.mark.usefixtures("stand_ins")
@pytest.mark.parametrize(("answer", "wrong"), [("2 * x", False), ("0 * x", True)])
def test_a_candidate_does_not_bring_its_own_reference(tmp_path, monkeypatch, answer, wrong):
    """The problem is written into the kernel file; the candidate's says that what it does is right."""
    honest = f"{source(40.0).files['k.py']}\n{PROBLEM}"
    mine = honest.replace("return 2 * x\n", f"return {answer}\n")
    assert (mine == honest) != wrong
    job = timing_job(
        JobFiles("k.py", {"k.py": mine}, name="k.py"),
        kernels(),
        ProblemRef("module", "k.py", "run"),
        honest,
        SHORT,
    )
    assert bool(run_job(job, tmp_path, monkeypatch).checked.wrong) == wrong


LAZY = """
class Lazy(torch.Tensor):
    pass
def work(x):
    return (2 * x).as_subclass(Lazy)
"""
PATCHED = "def work(x):\n    y = 2 * x\n    y.detach = lambda: y\n    return y"


@pytest.mark.usefixtures("stand_ins")
@pytest.mark.parametrize("text", [LAZY, PATCHED])
def test_a_tensor_of_its_own_kind_is_refused(tmp_path, monkeypatch, text):
    files = {"k.py": source(40.0).files["k.py"].replace("    return 2 * x", "    return work(x)") + text}
    job = timing_job(
        JobFiles("k.py", {**files, "problem.py": PROBLEM}, name="k.py"), kernels(), REF, plan=SHORT
    )
    with pytest.raises(StepFailedError, match="kind of tensor of its own"):
        run_job(job, tmp_path, monkeypatch)
