"""The final word: a version and the original in one session, where a device times them."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.toy_search import WIDE, ToyGate, ToyProposer, play

from accelopt_agent.evaluation.evaluators import CostUnavailableError
from accelopt_agent.evaluation.host_evaluation import HostGate
from accelopt_agent.events import CandidateJudged, ProgressText, SuggestionFound
from accelopt_agent.request import OptimizeRequest
from accelopt_memory.memory import Memory
from accelopt_profiling.examination import examine
from accelopt_profiling.hosts.host import HostFacts, JobFailedError, JobMessage
from accelopt_profiling.jobs import Job, StepError
from accelopt_profiling.measurement import Latency
from accelopt_profiling.plain import to_plain
from accelopt_profiling.quantity import Known
from accelopt_profiling.timing.check_step import CheckedRuns
from accelopt_profiling.timing.session import TimingSession
from accelopt_profiling.timing.statistics import TimeComparison


class OnDevice(ToyGate):
    """A gate whose host has a device, on which every candidate compares as it is told."""

    def __init__(self, comparison: TimeComparison | CostUnavailableError | None) -> None:
        super().__init__()
        self.comparison, self.compared = comparison, 0

    async def compare(self, text: str, kernel: str) -> TimeComparison | None:
        self.compared += 1
        if isinstance(self.comparison, CostUnavailableError):
            raise self.comparison
        return self.comparison


@pytest.mark.parametrize(
    ("comparison", "offered"),
    [
        (TimeComparison(1.21, 1.2, 1.22, "faster", 40), (1.21, 1.2, 1.22, Known.MEASURED)),
        (TimeComparison(1.001, 0.99, 1.02, "within noise", 40), None),
        (TimeComparison(0.8, 0.79, 0.81, "slower", 40), None),
    ],
)
async def test_what_is_not_faster_side_by_side_is_not_offered(comparison, offered) -> None:
    gate = OnDevice(comparison)
    events = await play([ToyProposer(WIDE)], gate=gate)
    speedups = [e.suggestion.speedup for e in events if isinstance(e, SuggestionFound)]
    assert [(s.value, s.low, s.high, s.known) for s in speedups] == ([offered] if offered else [])
    assert gate.compared == 1
    messages = [e.text for e in events if isinstance(e, ProgressText) and "beside the original" in e.text]
    assert [comparison.answer in text for text in messages] == ([] if offered else [True])


@pytest.mark.parametrize("lasting", [True, False])
async def test_what_cannot_be_timed_beside_the_original_was_still_judged(tmp_path, lasting) -> None:
    gate = OnDevice(CostUnavailableError("wrong-result", "On the device: Run 3", lasting=lasting))
    with Memory.open(tmp_path / "memory.db") as memory:
        events = await play([ToyProposer(WIDE)], gate=gate, memory=memory)
        (run,) = memory.run_log.runs()
        kinds = [event.kind for event in memory.run_log.events(run.id)]
        traps = [trap.code for trap in memory.traps(run.kernel_hash)]
    assert not [e for e in events if isinstance(e, SuggestionFound)]
    assert [e.verdict.accepted for e in events if isinstance(e, CandidateJudged)] == [True]
    (message,) = [e.text for e in events if isinstance(e, ProgressText) and "beside the original" in e.text]
    assert "On the device: Run 3" in message
    assert {"candidate judged", "side by side"} <= set(kinds)
    assert traps == ["wrong-result"] * lasting


async def test_without_a_device_the_estimates_decide() -> None:
    events = await play([ToyProposer(WIDE)], gate=OnDevice(None))
    (speedup,) = [e.suggestion.speedup for e in events if isinstance(e, SuggestionFound)]
    assert speedup.known is Known.ESTIMATED


KERNEL = "import triton\n\n@triton.jit\ndef k(x):\n    pass\n\ndef run(x):\n    k[(1,)](x)\n"
PROBLEM = "def get_inputs():\n    return [1]\n\ndef reference(x):\n    return x\n"
FASTER = TimeComparison(1.5, 1.4, 1.6, "faster", 40)


class Host:
    name, remote = "lab", True

    def __init__(self, devices=1, wrong="", fails=False) -> None:
        self.devices, self.wrong, self.fails = devices, wrong, fails
        self.jobs: list[Job] = []

    async def facts(self) -> HostFacts:
        return HostFacts("lab", devices=[{"name": "GPU"}] * self.devices)

    async def run(self, job: Job):
        self.jobs.append(job)
        if self.fails:
            raise JobFailedError("time", StepError("user-error", "It raised."))
        us = Latency(1.0, 1.0, 1.0, Known.MEASURED)
        yield JobMessage("time", to_plain(TimingSession("GPU", {}, us, us, 20, 16, comparison=FASTER)), True)
        yield JobMessage("time.check", to_plain(CheckedRuns(4, self.wrong)), True)


@pytest.fixture
def search_request(tmp_path: Path) -> OptimizeRequest:
    (tmp_path / "f_problem.py").write_text(PROBLEM)
    return OptimizeRequest(examine(tmp_path / "f.py", KERNEL), "h100")


async def test_both_texts_travel_in_one_job(search_request) -> None:
    host = Host()
    candidate = KERNEL.replace("pass", "return")
    assert await HostGate(host, search_request).compare(candidate, "k") == FASTER
    (job,) = host.jobs
    assert {job.source.files["f.py"], job.source.files["accelopt_baseline.py"]} == {candidate, KERNEL}
    assert [step.device for step in job.steps] == [True, True]


@pytest.mark.parametrize(
    ("host", "code"), [(Host(wrong="Run 3"), "wrong-result"), (Host(fails=True), "user-error")]
)
async def test_what_goes_wrong_on_the_device_leaves_the_candidate_out(search_request, host, code) -> None:
    with pytest.raises(CostUnavailableError) as unknown:
        await HostGate(host, search_request).compare(KERNEL, "k")
    assert unknown.value.code == code


async def test_a_host_without_a_device_is_not_asked(search_request) -> None:
    host = Host(devices=0)
    assert await HostGate(host, search_request).compare(KERNEL, "k") is None
    assert host.jobs == []
