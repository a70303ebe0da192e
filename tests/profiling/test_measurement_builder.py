"""What the steps of a job send becomes one measurement: here, what a step that failed leaves behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from accelopt_profiling.examination import examine
from accelopt_profiling.jobs import StepError
from accelopt_profiling.measurement import Correctness, Finding, KernelMeasurement, Latency
from accelopt_profiling.measurement_builder import MeasurementBuilder
from accelopt_profiling.plain import to_plain
from accelopt_profiling.problems.inference.inferred import InferredProblem, to_be_inferred
from accelopt_profiling.quantity import Known

TEXT = """import triton


@triton.jit
def kernel(x):
    pass
"""
EST = Latency(100.0, 80.0, 120.0, Known.ESTIMATED)


@pytest.mark.parametrize(
    ("latency", "status", "severity", "says"),
    [
        (EST, "not checked", "information", "the result was not checked: raise `limits.seconds`"),
        (EST, "passed", "information", "the check of the result stand, but details are missing"),
        (Latency(), "not checked", "error", "The run took longer than 60 s and was ended."),
    ],
)
def test_a_timeout_beside_an_estimate_is_information(
    tmp_path: Path, latency: Latency, status: str, severity: str, says: str
) -> None:
    file = examine(tmp_path / "k.py", TEXT)
    builder = MeasurementBuilder(file, file.launched, {"triton": "h100"}, "local")
    checked = Correctness(status)  # type: ignore[arg-type]
    measurement = KernelMeasurement("kernel", 5, "triton", "h100", latency=latency, correctness=checked)
    builder.add("profile", {"kernels": [to_plain(measurement)]})
    builder.fail(
        "profile", StepError("timeout", "The run took longer than 60 s and was ended."), file.launched
    )
    finding = builder.measurement().findings[-1]
    assert (finding.code, finding.severity) == ("timeout", severity)
    assert says in finding.message


@pytest.mark.parametrize("problem", ["no-problem", "problem-invalid"])
def test_that_inputs_could_not_be_inferred_is_said_where_that_is_what_failed(
    tmp_path: Path, problem: str
) -> None:
    file = to_be_inferred(examine(tmp_path / "k.py", TEXT))

    def finding(code: str, message: str) -> Finding:
        builder = MeasurementBuilder(file, file.launched, {"triton": "h100"}, "local")
        builder.fail("profile", StepError(code, message, "k.py", 5), file.launched)
        return builder.measurement().findings[-1]

    assert "could not be inferred (nothing fits)" in finding(problem, "nothing fits").message
    for code, expected in {
        "user-error": "kernel-raised", "missing-package": "missing-package", "timeout": "timeout",
        "crashed": "kernel-crashed", "host": "host",
    }.items():  # fmt: skip
        other = finding(code, "It failed.")
        assert (other.code, other.severity, other.message) == (expected, "error", "It failed.")


@pytest.mark.parametrize(("fault_line", "severity"), [(0, "information"), (5, "error")])
def test_what_fails_with_inferred_arguments_is_told_as_theirs(
    tmp_path: Path, fault_line: int, severity: str
) -> None:
    file = to_be_inferred(examine(tmp_path / "k.py", TEXT))
    builder = MeasurementBuilder(file, file.launched, {"triton": "h100"}, "local")
    inferred = InferredProblem("kernel", "", ["kernel"], fault_line=fault_line)
    builder.add("profile", {"inferred": to_plain(inferred)})
    builder.fail("profile", StepError("user-error", "An int has no dtype.", "k.py", 5), file.launched)
    finding = builder.measurement().findings[-1]
    assert (finding.code, finding.severity) == ("kernel-raised", severity)
    assert finding.message.startswith("With the inferred arguments: ") == (severity == "information")
