"""Measures a case: the cost of its kernel (the time model) and its correctness (the gate)."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from accelopt_profiling.gate.gate import check
from accelopt_profiling.gate.request import GateRequest
from accelopt_profiling.gate.verdict import Verdict
from accelopt_profiling.hosts.host import Host, JobFailedError
from accelopt_profiling.job_files import job_files
from accelopt_profiling.jobs import Job, JobFiles, Limits, MeasureOptions, Step
from accelopt_profiling.kernels import Kernel, KernelSource
from accelopt_profiling.measurement import Finding, KernelMeasurement, worst
from accelopt_profiling.plain import from_plain, to_plain
from accelopt_profiling.profiler import ProfileRequest, profile
from accelopt_profiling.receipt import Receipt
from accelopt_profiling.trainium.step import DeviceParams
from nkibench.case import BenchmarkCase

#: A step at the published sizes needs longer than a step in the editor, and more memory.
FULL_SIZE = Limits(seconds=1200.0, memory_bytes=24 << 30)


@dataclass(frozen=True)
class Cost:
    """``measurement`` is None when nothing is known of the cost.

    ``findings`` then say why.

    ``profile`` holds the fields of a device's profiler, empty without a device.
    """

    measurement: KernelMeasurement | None
    findings: list[Finding] = field(default_factory=list)
    profile: dict[str, Any] = field(default_factory=dict)

    @property
    def why(self) -> str:
        """The worst finding in one line, empty when there is none."""
        reason = worst(self.findings)
        return "" if reason is None else f"line {reason.line}: {reason.message}"


def request_for(case: BenchmarkCase, target: str, text: str | None = None) -> ProfileRequest:
    """Return the profile of the case's kernel file, or of ``text`` in its place.

    Raises:
        UnreadableFileError: the file is gone.
    """
    return ProfileRequest(
        case.examined(text),
        {"nki": target, "triton": target},
        limits=FULL_SIZE,
        options=MeasureOptions(detail=False),
        background=True,
    )


async def cost(host: Host, case: BenchmarkCase, target: str, text: str | None = None) -> Cost:
    """Return the first known latency of the kernel: a device's where the host has one, else the time model's.

    A kernel that cannot be run has findings instead.

    Raises:
        HostUnreachableError: the host was lost.
    """
    request = await asyncio.to_thread(request_for, case, target, text)
    if (await host.facts()).resources.get("neuron_devices"):
        return await _on_device(host, request, target)
    findings: list[Finding] = []
    async with aclosing(profile(host, request)) as growing:
        async for measurement in growing:
            findings = [*(f for k in measurement.kernels for f in k.findings), *measurement.findings]
            for kernel in measurement.kernels:
                if kernel.fault is not None:
                    return Cost(None, findings)
                if kernel.latency.us is not None:
                    return Cost(kernel, findings)
    return Cost(None, findings)


async def _on_device(host: Host, request: ProfileRequest, target: str) -> Cost:
    """Return the kernel's latency on the host's Trainium (not yet run on hardware)."""
    examined = request.file
    ref = examined.problem.ref
    if ref is None or not examined.launched:
        return Cost(None, examined.findings)
    source = job_files(examined, ship_imports=host.remote)
    params = DeviceParams(examined.launched, ref, target, host.name)
    step = Step("trainium", "numpy", to_plain(params), request.limits, device=True)
    try:
        async with aclosing(host.run(Job(source, [step]))) as messages:
            answer = [message.value async for message in messages if message.final][-1]
        measurement = from_plain(KernelMeasurement, answer["measurement"])
        return Cost(measurement, measurement.findings, dict(answer["profile"]))
    except JobFailedError as failed:
        line = failed.error.line or examined.launched[0].line
        return Cost(None, [Finding(failed.error.code, line, "error", failed.error.message)])
    except (ValueError, KeyError, IndexError, TypeError) as error:
        message = f"The host's answer about its device cannot be read: {error!r}."
        return Cost(None, [Finding("device-answer", examined.launched[0].line, "error", message)])


async def judge(
    host: Host,
    case: BenchmarkCase,
    target: str,
    candidate: str | None = None,
    tolerance: float | None = None,
) -> tuple[Verdict, Receipt]:
    """Return whether the kernel, or ``candidate`` in its place, is correct, complete and honest.

    ``tolerance`` is used where the reference states none: that of our task of the same name unless given.

    Raises:
        HostUnreachableError: the host was lost.
        NoKernelError: there is nothing to judge.
    """
    examined = (await asyncio.to_thread(request_for, case, target)).file
    kernel = only_kernel(examined)
    ref = examined.problem.ref
    assert ref is not None
    texts = (examined.text if candidate is None else candidate, examined.text)
    new, original = (
        _with_tolerance(job_files(examined, ship_imports=host.remote, text=text), case, tolerance)
        for text in texts
    )
    request = GateRequest(
        new,
        original,
        problem=ref,
        kernel=kernel.name,
        dialect=kernel.dialect,
        target=target,
        limits=FULL_SIZE,
    )
    return await check(host, request)


class NoKernelError(Exception):
    """A file has no kernel or no reference to go with it. The message says which."""


def only_kernel(examined: KernelSource) -> Kernel:
    """Return the kernel a benchmark file is about: ``kernel`` or ``optimized_kernel``, or its only one."""
    faults = [f"line {f.line}: {f.message}" for f in examined.findings if f.severity == "error"]
    if examined.problem.ref is None or not examined.launched:
        raise NoKernelError("; ".join(faults) or "the file has no NKI kernel")
    by_name = {k.name: k for k in examined.launched}
    for name in ("kernel", "optimized_kernel"):
        if name in by_name:
            return by_name[name]
    return examined.launched[0]


def _with_tolerance(source: JobFiles, case: BenchmarkCase, tolerance: float | None) -> JobFiles:
    """Return the same files. A reference of others that states no tolerance gets ours."""
    if tolerance is None and case.task is not None:
        tolerance = case.task.gate_tolerance
    path = case.reference.relative_to(case.root).as_posix()
    text = source.files.get(path)
    if tolerance is None or text is None or "\ntolerance =" in text:
        return source
    files = {**source.files, path: f"{text}\n\ntolerance = {tolerance!r}\n"}
    return JobFiles(source.kernel, files, source.import_paths, source.name)
