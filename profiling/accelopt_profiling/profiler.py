"""A file in, measurements out: what the editor, the command line and the search call to profile kernels."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncGenerator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from accelopt_profiling.hosts.host import Host, HostFacts, JobFailedError
from accelopt_profiling.jobs import Job, Limits, ProfileParams, Runtime, Source, Step, StepError
from accelopt_profiling.kernel_file import KernelFile
from accelopt_profiling.kernels import Kernel
from accelopt_profiling.measurement import (
    Correctness,
    Dialect,
    FileMeasurement,
    Finding,
    KernelMeasurement,
    Latency,
)
from accelopt_profiling.plain import from_plain, to_plain
from accelopt_profiling.quantity import Quantity
from accelopt_profiling.receipt import Receipt
from accelopt_profiling.targets import GpuTarget
from accelopt_profiling.targets.load import load_target
from accelopt_profiling.timing.asking import timing_steps
from accelopt_profiling.timing.checking import CheckedRuns
from accelopt_profiling.timing.floor import floor_us, impossible, target_of_device
from accelopt_profiling.timing.step import TimeParams

RUNTIMES: dict[Dialect, Runtime] = {"nki": "numpy", "triton": "torch"}

#: The finding that a step's error becomes.
_FINDING_CODES = {
    "user-error": "kernel-raised", "memory": "out-of-memory", "crashed": "kernel-crashed", "exited": "kernel-exited",
}  # fmt: skip


@dataclass(frozen=True)
class ProfileRequest:
    """What to profile: an examined kernel file, for one target per dialect.

    ``kernels`` restricts to kernels of those names. ``input_specs`` remembers shapes per problem between requests, so
    that first numbers need not wait for the inputs.
    """

    file: KernelFile
    targets: Mapping[Dialect, str]
    kernels: Sequence[str] | None = None
    limits: Limits = Limits()
    detail: bool = True
    background: bool = False
    timeline: bool = False
    input_specs: MutableMapping[str, list[dict[str, Any]]] = field(default_factory=dict)

    @property
    def wanted(self) -> list[Kernel]:
        """The kernels of the file that are to be profiled."""
        return [k for k in self.file.kernels if self.kernels is None or k.name in self.kernels]


async def profile(host: Host, request: ProfileRequest) -> AsyncGenerator[FileMeasurement, None]:
    """Profile a file's kernels on ``host``; yields the growing measurement, the last one ``complete``.

    What is wrong with the file, its problem or its run becomes findings. Closing the generator kills the work.

    Raises:
        HostUnreachableError: the host cannot be reached or was lost.
    """
    growing = _GrowingMeasurement(request, host)
    if not request.wanted or request.file.problem.ref is None:
        yield growing.measurement(complete=True)
        return
    by_dialect: dict[Dialect, list[Kernel]] = {}
    for kernel in request.wanted:
        by_dialect.setdefault(kernel.dialect, []).append(kernel)
    source = await asyncio.to_thread(request.file.source, ship_imports=host.remote)
    for dialect, group in by_dialect.items():
        job = _job(request, source, dialect, group, await host.facts())
        try:
            async with contextlib.aclosing(host.run(job)) as messages:
                async for message in messages:
                    try:
                        changed = growing.take(message.step, message.value)
                    except ValueError as error:
                        why = f"What {host.name} answered to the step {message.step} cannot be read: {error}."
                        raise JobFailedError(message.step, StepError("internal", why)) from error
                    if changed:
                        yield growing.measurement()
        except JobFailedError as failed:
            growing.fail(failed.error, group)
    growing.seal(source)
    yield growing.measurement(complete=True)


def _job(
    request: ProfileRequest,
    source: Source,
    dialect: Dialect,
    kernels: list[Kernel],
    host: HostFacts,
) -> Job:
    ref = request.file.problem.ref
    assert ref is not None
    specs = request.input_specs.get(ref.content_hash)
    params = ProfileParams(
        kernels, ref, request.targets[dialect], host.name, specs, request.detail, timeline=request.timeline
    )
    steps = [Step("profile", RUNTIMES[dialect], to_plain(params), request.limits)]
    if dialect == "triton" and host.devices and ref.kind != "selfrun":
        steps += timing_steps(TimeParams(kernels, ref), request.limits)
    if dialect == "nki" and host.resources.get("neuron_devices") and ref.kind != "selfrun":
        # here, since it brings NumPy, which an editor's start need not wait for
        from accelopt_profiling.trainium.step import DeviceParams

        on_device = DeviceParams(kernels, ref, request.targets[dialect], host.name)
        steps.append(Step("trainium", "numpy", to_plain(on_device), request.limits, device=True))
    return Job(source, steps, request.background)


class _GrowingMeasurement:
    """The measurement of one file while its parts arrive."""

    def __init__(self, request: ProfileRequest, host: Host) -> None:
        self._request, self._file, self._host = request, request.file, host
        self._kernels: dict[str, KernelMeasurement] = {}
        self._findings = list(self._file.findings)
        self._receipts: list[Receipt] = []
        self._timed: dict[str, Any] = {}
        self._evidence: dict[str, dict[str, Any]] = {}
        self._hashes = {k.name: k.content_hash for k in self._file.kernels}

    def take(self, step: str, value: Any) -> bool:
        """Take in what a step sent; True when a measurement changed.

        Raises:
            ValueError: it does not have the shape that it should have.
        """
        if not isinstance(value, dict):
            return False
        ref = self._file.problem.ref
        if ref is not None and isinstance(value.get("input_specs"), list):
            self._request.input_specs[ref.content_hash] = value["input_specs"]
        changed = False
        for measured in from_plain(list[KernelMeasurement], value.get("kernels", [])):
            if measured.name in self._hashes:
                self._kernels[measured.name] = dataclasses.replace(
                    measured, content_hash=self._hashes[measured.name], host=self._host.name
                )
                changed = True
        if step == "time":
            self._timed = value  # a time counts once the outputs of its runs were looked at
        elif step == "time.check":
            changed = self._time(self._timed, from_plain(CheckedRuns, value)) or changed
        else:
            changed = self._time(value) or changed
        for name, counters in from_plain(dict[str, dict[str, Quantity]], value.get("counters", {})).items():
            if name in self._kernels:
                estimate = self._kernels[name]
                self._kernels[name] = dataclasses.replace(
                    estimate, quantities={**estimate.quantities, **counters}
                )
                changed = True
        return changed

    def _time(self, timed: dict[str, Any], checked: CheckedRuns | None = None) -> bool:
        timings, device = (
            from_plain(dict[str, Latency], timed.get("timings", {})),
            str(timed.get("device", "")),
        )
        known = {name: latency for name, latency in timings.items() if name in self._kernels}
        for name, latency in known.items():
            measured = _timed(self._kernels[name], latency, device)
            self._kernels[name] = measured if checked is None else _checked(measured, checked)
            self._evidence[name] = {**timed, "checked": to_plain(checked)}
        return bool(known)

    def fail(self, error: StepError, kernels: list[Kernel]) -> None:
        """Turn a failed step into one finding; what was known before stays."""
        own = error.file is None or error.file == self._kernel_file()
        ref = self._file.problem.ref
        in_problem = not own and ref is not None and error.file == ref.path
        code = _FINDING_CODES.get(error.code, error.code)
        if in_problem and code == "kernel-raised":
            code = "problem-raised"
        line = f", line {error.line}" if error.line else ""
        where = "" if own or str(error.file) in error.message else f"{error.file}{line}: "
        at = error.line if own and error.line else kernels[0].line
        self._findings.append(Finding(code, at, "error", f"{where}{error.message}"))

    def _kernel_file(self) -> str:
        return self._file.path.resolve().relative_to(self._file.root).as_posix()

    def seal(self, source: Source) -> None:
        """Give every measurement its receipt."""
        for name, measured in self._kernels.items():
            receipt = Receipt(
                "profile",
                {
                    "source": to_plain(source),
                    "measurement": to_plain(dataclasses.replace(measured, timeline=None)),
                    **({"timing": self._evidence[name]} if name in self._evidence else {}),
                },
            )
            self._receipts.append(receipt)
            self._kernels[name] = dataclasses.replace(measured, receipt=receipt.id)

    def measurement(self, complete: bool = False) -> FileMeasurement:
        kernels = [self._kernels.get(k.name) or self._unmeasured(k) for k in self._request.wanted]
        return FileMeasurement(
            str(self._file.path), kernels, list(self._findings), complete, list(self._receipts)
        )

    def _unmeasured(self, kernel: Kernel) -> KernelMeasurement:
        target = self._request.targets[kernel.dialect]
        return KernelMeasurement(
            kernel.name,
            kernel.line,
            kernel.dialect,
            target,
            self._host.name,
            content_hash=kernel.content_hash,
        )


def _timed(estimate: KernelMeasurement, latency: Latency, device: str) -> KernelMeasurement:
    """A measurement with a device's time in place of the model's, which stays among the quantities.

    Percent of peak keeps its roofline: it scales with the time. A time below what the work needs at the target's peaks
    is refused; when the ``device`` is another than the target, neither is said.
    """
    model, share = estimate.latency, estimate.percent_of_peak
    target = load_target(estimate.target)
    same = isinstance(target, GpuTarget) and target_of_device(device) == target.name
    if same and isinstance(target, GpuTarget) and impossible(latency, floor := floor_us(estimate, target)):
        message = (
            f"The device's clock says {latency.us:.3g} us, but the work that was executed needs {floor:.3g} us at the"
            f" peaks of {target.title}: the time is refused. Does all of the work run before the call returns?"
        )
        finding = Finding("impossible-time", estimate.line, "warning", message)
        return dataclasses.replace(estimate, findings=[*estimate.findings, finding])
    quantities = dict(estimate.quantities)
    if model.us is not None:
        quantities["estimated_time"] = Quantity(model.us, model.known, "us", model.low_us, model.high_us)
        if share is not None and latency.us:
            share = share * model.us / latency.us if same or device == target.name else None
    return dataclasses.replace(
        estimate, latency=latency, quantities=quantities, percent_of_peak=share, stage="timed"
    )


def _checked(timed: KernelMeasurement, checked: CheckedRuns) -> KernelMeasurement:
    """A measurement with what was found out about the outputs of the timed runs."""
    if not checked.wrong:
        return timed
    wrong = Correctness("failed", f"On the device: {checked.wrong}", 1.0)
    message = f"On the device its results are wrong. {checked.wrong}"
    finding = Finding("wrong-result", timed.line, "error", message)
    return dataclasses.replace(timed, correctness=wrong, findings=[*timed.findings, finding])
