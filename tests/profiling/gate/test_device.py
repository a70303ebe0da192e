"""The gate's step on a Trainium device, with stand-ins for the SDKs, and what the decision makes of it."""

from __future__ import annotations

import numpy as np
import pytest
from support.problem_files import context_of
from support.trainium_stand_ins import BETA1_KERNEL, CURRENT_KERNEL, neuron_host

from accelopt_profiling.comparison.saved_values import load_values, save_values
from accelopt_profiling.gate.budget import GateBudget
from accelopt_profiling.gate.decision import decide
from accelopt_profiling.gate.evidence import CandidateKernels, Evidence
from accelopt_profiling.gate.gate import _job
from accelopt_profiling.gate.request import Case, GateRequest
from accelopt_profiling.gate.step_schemas import CaseCall, DeviceRunParams, DeviceRunResult
from accelopt_profiling.gate.steps.device import run_on_device
from accelopt_profiling.hosts.host import HostFacts
from accelopt_profiling.jobs import JobFiles
from accelopt_profiling.plain import to_plain
from accelopt_profiling.problems.problem import Call
from accelopt_profiling.problems.ref import ProblemRef

CASES = 8


def run(tmp_path, monkeypatch, kernel, installed, function="kernel"):
    host = neuron_host(tmp_path)
    host.profiler()
    host.explorer()
    monkeypatch.setenv("PATH", host.environment["PATH"])
    monkeypatch.setenv("STAND_IN_LOG", host.environment["STAND_IN_LOG"])
    monkeypatch.setenv("PYTHONPATH", host.packages(*installed))
    modules = {"beta1": "neuronxcc.nki", "current": "nki.isa"}
    monkeypatch.setattr(
        "accelopt_profiling.trainium.toolchain._importable", lambda m: m in {modules[i] for i in installed}
    )
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "neuron0").touch()
    folder = tmp_path / "job"
    for index in range(CASES):
        x = np.full((2, 2), index + 1, dtype=np.float32)
        case = folder / "gate" / str(index)
        save_values(case / "inputs", [x, 2.0])
        save_values(case / "call", [to_plain(CaseCall(Call(function), derived=index == 1))])
        save_values(case / "outputs", [2 * x])
    messages = []
    context = context_of(folder, {"kernel.py": kernel}, "kernel.py", messages.append)
    result = run_on_device(
        context, DeviceRunParams("nki", "trn1", CASES, GateBudget(), 30.0), tmp_path / "dev"
    )
    return result, folder, messages


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "installed"),
    [(BETA1_KERNEL, ["beta1"]), (CURRENT_KERNEL, ["current"]), (CURRENT_KERNEL, ["beta1", "current"])],
)
def test_a_candidate_runs_on_the_draws_of_the_gate(tmp_path, monkeypatch, kernel, installed):
    result, folder, messages = run(tmp_path, monkeypatch, kernel, installed)
    assert result == DeviceRunResult([0, 2, 3, 4, 5, 6])  # six of them, none at a shape of the gate's own
    for index in result.ran:
        (output,) = load_values(folder / "gate" / str(index) / "device")
        np.testing.assert_array_equal(output, np.full((2, 2), 2.0 * (index + 1), dtype=np.float32))
    assert [message["saved"][:2] for message in messages] == [[index, "device"] for index in result.ran]


def test_a_kernel_of_the_older_dialect_is_not_run_beside_the_newer_package(tmp_path, monkeypatch):
    result, _, _ = run(tmp_path, monkeypatch, BETA1_KERNEL, ["beta1", "current"])
    assert not result.ran
    assert "return zeros" in result.unavailable


def test_a_kernel_that_fails_on_the_device_is_told_from_a_device_that_is_not_there(tmp_path, monkeypatch):
    broken = CURRENT_KERNEL.replace("x * scale", "x.nothing")
    result, _, _ = run(tmp_path, monkeypatch, broken, ["current"])
    assert "nothing" in result.failed
    assert not result.unavailable


def test_host_code_cannot_be_run_on_the_device_alone(tmp_path, monkeypatch):
    result, _, _ = run(tmp_path, monkeypatch, CURRENT_KERNEL, ["current"], function="entry")
    assert "no NKI kernel" in result.unavailable


@pytest.mark.parametrize(
    ("device", "code"),
    [
        (DeviceRunResult([0], failed="it raised"), "failed-on-device"),
        (DeviceRunResult(unavailable="no tools"), "not-run-on-device"),
        (DeviceRunResult([0, 1, 2, 3, 4]), "run-on-device"),
    ],
)
def test_the_decision_tells_what_the_device_said(device, code):
    decision = decide(Evidence(device=device, complete=True), CandidateKernels(["kernel"]))
    kinds = [r.code for r in decision.reasons]
    assert (code in kinds) == (code == "failed-on-device")  # the rest is told of accepted candidates alone


@pytest.mark.parametrize("devices", [0, 1])
def test_the_step_is_part_of_a_check_where_the_host_has_a_device(devices):
    source = JobFiles("kernel.py", {"kernel.py": BETA1_KERNEL})
    request = GateRequest(source, source, ProblemRef("module", "p.py", "kernel"), "kernel", "nki", "trn1")
    facts = HostFacts("trn", resources={"neuron_devices": devices} if devices else {})
    steps = [(step.name, step.device) for step in _job(request, [Case("original", 1)], facts, 1).steps]
    assert (("gate.device", True) in steps) == bool(devices)
    assert [name for name, _ in steps][:2] == ["gate.draw", "gate.run"]
