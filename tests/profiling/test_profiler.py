"""What a host answers is not trusted: what cannot be read becomes one finding, and what was known before stays."""

import pytest

from accelopt_profiling.examination import examine
from accelopt_profiling.hosts.host import HostFacts, JobMessage
from accelopt_profiling.measurement import KernelMeasurement, Latency
from accelopt_profiling.plain import to_plain
from accelopt_profiling.profiler import ProfileRequest, profile
from accelopt_profiling.quantity import Known

KERNEL = "import triton\n\n@triton.jit\ndef k(x):\n    pass\n\ndef run(x):\n    k[(1,)](x)\n"
PROBLEM = "def get_inputs():\n    return [1]\n\ndef reference(x):\n    return x\n"
ESTIMATED = to_plain(
    KernelMeasurement("k", 4, "triton", "h100", latency=Latency(5.0, 4.0, 6.0, Known.ESTIMATED))
)


class Host:
    name, remote = "lab", True

    def __init__(self, answers):
        self._answers, self.closed = answers, False

    async def facts(self):
        return HostFacts("lab")

    async def run(self, job):
        try:
            for step, value in self._answers:
                yield JobMessage(step, value, True)
        finally:
            self.closed = True


@pytest.mark.parametrize(
    ("step", "value"),
    [
        ("profile", {"kernels": 3}),
        ("profile", {"kernels": [{"name": "k"}]}),
        ("profile", {"timings": ["k"]}),
        ("profile", {"timings": {"k": "fast"}}),
        ("profile", {"counters": [1]}),
        ("profile", {"counters": {"k": {"dram_bytes": 7}}}),
        ("time.check", {"runs": "many"}),
    ],
)
async def test_an_answer_that_cannot_be_read_is_one_finding(tmp_path, step, value):
    path = tmp_path / "f.py"
    path.write_text(KERNEL)
    (tmp_path / "f_problem.py").write_text(PROBLEM)
    host = Host([("profile", {"kernels": [ESTIMATED]}), (step, value), (step, value)])
    results = [m async for m in profile(host, ProfileRequest(examine(path, KERNEL), {"triton": "h100"}))]
    last = results[-1]
    assert last.complete
    assert host.closed
    (finding,) = last.findings
    assert finding.severity == "error"
    assert f"lab answered to the step {step} cannot be read" in finding.message
    assert [kernel.latency.us for kernel in last.kernels] == [5.0], "what was known before"
