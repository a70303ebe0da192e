"""What the steps of a job send becomes one measurement: here, what a step that failed leaves behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from accelopt_profiling.examination import examine
from accelopt_profiling.jobs import StepError
from accelopt_profiling.measurement import Correctness, KernelMeasurement, Latency
from accelopt_profiling.measurement_builder import MeasurementBuilder
from accelopt_profiling.plain import to_plain
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
    builder = MeasurementBuilder(file, file.kernels, {"triton": "h100"}, "local")
    checked = Correctness(status)  # type: ignore[arg-type]
    known = KernelMeasurement("kernel", 5, "triton", "h100", latency=latency, correctness=checked)
    builder.add("profile", {"kernels": [to_plain(known)]})
    builder.fail(
        "profile", StepError("timeout", "The run took longer than 60 s and was ended."), file.kernels
    )
    finding = builder.measurement().findings[-1]
    assert (finding.code, finding.severity, finding.quickfix) == ("timeout", severity, "raiseLimit")
    assert says in finding.message
