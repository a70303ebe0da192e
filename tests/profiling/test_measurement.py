"""A measurement is the verdict on one version: with an error or a wrong result it states no cost, whoever made it."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from accelopt_profiling.measurement import (
    NO_TIME_BY,
    Correctness,
    CorrectnessStatus,
    FileMeasurement,
    Finding,
    KernelMeasurement,
    Latency,
    LaunchTime,
    Severity,
    finding_codes,
)
from accelopt_profiling.plain import from_plain, to_plain
from accelopt_profiling.quantity import Known, compiled, estimated

TIME = Latency(3.0, 2.0, 4.0, Known.ESTIMATED)
COSTLY = KernelMeasurement(
    "k", 1, "triton", "h100", latency=TIME, percent_of_peak=41.0, bound="memory", waiting="for line 3",
    quantities={"time_at_scale": estimated(1.0, 1.0, 1.0, "us"), "registers": compiled(32)},
    launches=(LaunchTime("x 4", TIME, TIME),),
)  # fmt: skip

findings = st.lists(
    st.builds(
        Finding,
        st.sampled_from(sorted(finding_codes())),
        st.integers(1, 99),
        st.sampled_from(get_args(Severity)),
        st.text(min_size=1),
    )
)


@given(findings, st.sampled_from(get_args(CorrectnessStatus)))
def test_a_version_with_an_error_has_no_cost(own_findings: list[Finding], status: CorrectnessStatus) -> None:
    measurement = replace(COSTLY, findings=own_findings, correctness=Correctness(status))
    timed = replace(replace(COSTLY, findings=own_findings, correctness=Correctness(status)), latency=TIME)
    stored = from_plain(KernelMeasurement, {**to_plain(measurement), "latency": to_plain(TIME)})
    refused = status == "failed" or any(f.severity == "error" for f in own_findings)
    without = refused or any(f.code in NO_TIME_BY for f in own_findings)
    for version in (measurement, timed, stored):
        assert (version.fault is not None) == refused
        assert (version.latency == Latency()) == without == (version.percent_of_peak is None)
        assert ("time_at_scale" not in version.quantities) == without == (version.launches == ())
        assert "registers" in version.quantities


@given(findings, findings)
def test_what_has_no_cost_says_why(own: list[Finding], of_run: list[Finding]) -> None:
    file = FileMeasurement("k.py", [replace(COSTLY, findings=own)], of_run)
    reason = file.refusal("k")
    errors = [f for f in own if f.severity == "error"]
    assert (reason is None) == (not errors and not any(f.code in NO_TIME_BY for f in own))
    assert reason is None or reason in (errors or [*own, *of_run])
    timeless = replace(file, kernels=[replace(COSTLY, findings=own, latency=Latency())])
    assert timeless.refusal("k") is not None
