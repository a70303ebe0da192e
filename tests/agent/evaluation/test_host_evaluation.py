"""The search's tools on a host that fails in the ways hosts fail."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from accelopt_agent.evaluation.evaluators import CostUnavailableError
from accelopt_agent.evaluation.host_evaluation import HostCost, HostGate
from accelopt_agent.events import BaselineMeasured, Event, Finished, ProgressText
from accelopt_agent.optimize import optimize
from accelopt_agent.request import OptimizeRequest
from accelopt_memory.memory import Memory
from accelopt_profiling.examination import examine
from accelopt_profiling.hosts.host import HostFacts, HostUnreachableError, JobFailedError, JobMessage
from accelopt_profiling.jobs import Job, StepError
from accelopt_profiling.measurement import KernelMeasurement, Latency
from accelopt_profiling.plain import to_plain
from accelopt_profiling.quantity import Known, estimated, executed

TEXT = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    return x


def get_inputs():
    return [1]


def reference(x):
    return x
"""


class PlayedHost:
    """Answers each job with the next of ``answers``: measurements to send, or an error to raise."""

    name = "far"
    remote = True

    def __init__(self, *answers: list[KernelMeasurement] | Exception) -> None:
        self.answers = list(answers)
        self.jobs: list[Job] = []

    async def facts(self) -> HostFacts:
        return HostFacts(self.name)

    async def run(self, job: Job) -> AsyncIterator[JobMessage]:
        self.jobs.append(job)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        for measurement in answer:
            yield JobMessage("profile", {"kernels": [to_plain(measurement)]})

    async def close(self) -> None:
        """Nothing to close."""


def measured(us: float | None, stage: str) -> KernelMeasurement:
    latency = Latency() if us is None else Latency(us, us / 2, us * 2, Known.ESTIMATED)
    return KernelMeasurement("kernel", 6, "nki", "trn1", latency=latency, stage=stage)


async def run(
    host: PlayedHost, tmp_path: Path, memory: Memory | None = None, checked: bool = False
) -> list[Event]:
    path = tmp_path / "k.py"
    path.write_text(TEXT)
    request = OptimizeRequest(examine(path, TEXT, project_root=tmp_path), "trn1", checked=checked)
    return [event async for event in optimize(request, host, memory)]


async def test_a_host_that_is_gone_ends_the_run_with_one_line(tmp_path: Path) -> None:
    memory = Memory.open(tmp_path / "memory.db")
    events = await run(PlayedHost(HostUnreachableError("far cannot be reached; is it on?")), tmp_path, memory)
    assert isinstance(events[-1], Finished)
    assert events[-1].reason == "far cannot be reached; is it on?"
    assert [r.status for r in memory.run_log.runs()] == ["failed"]


async def test_a_kernel_that_cannot_be_run_is_told_and_not_searched(tmp_path: Path) -> None:
    failed = JobFailedError("profile", StepError("user-error", "ValueError: no", "k.py", 7))
    events = await run(PlayedHost(failed), tmp_path)
    assert any("ValueError: no" in e.text for e in events if isinstance(e, ProgressText))
    assert not any(isinstance(e, BaselineMeasured) for e in events)
    assert isinstance(events[-1], Finished)


def extents(host: PlayedHost) -> list[str]:
    return [job.steps[0].params["options"]["extent"] for job in host.jobs]


async def test_the_original_is_compared_as_a_candidate_would_be(tmp_path: Path) -> None:
    host = PlayedHost(
        [measured(None, "traced"), measured(99.0, "executed"), measured(100.0, "checked")],
        [measured(101.0, "compiled")],
    )
    events = await run(host, tmp_path)
    base = next(e for e in events if isinstance(e, BaselineMeasured))
    assert base.measurement.latency.us == 101.0
    assert base.measurement.stage == "checked"
    assert extents(host)[:2] == ["all", "cost"]


async def test_a_time_that_depends_on_the_inputs_is_compared_on_the_inputs(tmp_path: Path) -> None:
    host = PlayedHost(
        [measured(100.0, "checked")], [measured(60.0, "compiled")], [measured(98.0, "executed")]
    )
    events = await run(host, tmp_path)
    base = next(e for e in events if isinstance(e, BaselineMeasured))
    assert base.measurement.latency.us == 98.0
    assert extents(host)[:3] == ["all", "cost", "cost on inputs"]


@pytest.mark.parametrize(("count", "has_total"), [(2, True), (2, False)])
async def test_a_version_launched_for_parts_of_the_output_is_never_compared_by_one_launch(
    tmp_path: Path, count: int, has_total: bool
) -> None:
    def launched(times: int, us: float) -> KernelMeasurement:
        measurement = measured(us, "compiled")
        measurement.quantities["launches"] = executed(times, "launches")
        if has_total:
            measurement.quantities["all_launches_time"] = estimated(times * us, us, 9 * us, "us")
        return measurement

    host = PlayedHost([launched(1, 100.0)], [launched(1, 100.0)], [launched(count, 50.0)])
    path = tmp_path / "k.py"
    path.write_text(TEXT)
    cost = HostCost(host, OptimizeRequest(examine(path, TEXT, project_root=tmp_path), "trn1"))
    await cost.baseline()
    measuring = cost.cost(TEXT + "\nPARTS = 2\n", "kernel")
    if has_total:
        assert (await measuring).latency.us == 100.0
    else:
        with pytest.raises(CostUnavailableError, match="2 times"):
            await measuring


async def test_an_original_that_is_checked_is_not_checked_again(tmp_path: Path) -> None:
    host = PlayedHost([measured(None, "traced"), measured(100.0, "executed")])
    events = await run(host, tmp_path, checked=True)
    base = next(e for e in events if isinstance(e, BaselineMeasured))
    assert (base.measurement.latency.us, base.measurement.stage) == (100.0, "executed")
    assert extents(host)[0] == "cost"


@pytest.mark.parametrize("code", ["timeout", "crashed"])
async def test_a_kernel_that_is_known_only_in_part_is_told(tmp_path: Path, code: str) -> None:
    events = await run(PlayedHost(JobFailedError("profile", StepError(code, "It took too long."))), tmp_path)
    assert any("It took too long" in e.text for e in events if isinstance(e, ProgressText))


@pytest.mark.parametrize(
    ("step", "error", "code"),
    [
        ("gate.draw", "timeout", "problem-timeout"), ("gate.original", "timeout", "problem-timeout"),
        ("gate.reference", "timeout", "problem-timeout"), ("gate.run", "disk-full", "gate-failed"),
        ("gate.judge", "memory", "gate-failed"),
    ],
)  # fmt: skip
async def test_a_failure_of_the_problem_or_the_host_is_no_verdict_on_a_candidate(
    tmp_path: Path, step: str, error: str, code: str
) -> None:
    host = PlayedHost(JobFailedError(step, StepError(error, "It ended early.")))
    request = OptimizeRequest(examine(tmp_path / "f.py", TEXT), "trn1")
    with pytest.raises(CostUnavailableError) as raised:
        await HostGate(host, request).check(TEXT + "\nx = 1\n", "kernel")  # type: ignore[arg-type]
    assert (raised.value.code, raised.value.lasting) == (code, False)


async def test_a_failure_of_the_candidate_is_a_verdict(tmp_path: Path) -> None:
    host = PlayedHost(JobFailedError("gate.run", StepError("timeout", "The run took too long.")))
    request = OptimizeRequest(examine(tmp_path / "f.py", TEXT), "trn1")
    verdict, _ = await HostGate(host, request).check(TEXT + "\nx = 1\n", "kernel")  # type: ignore[arg-type]
    assert not verdict.accepted
    assert not verdict.invalid_problem
