"""Build the measurement of a file from what the steps of its job send: estimates, device times, checks, failures."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

from accelopt_profiling.duration import duration_text
from accelopt_profiling.jobs import JobFiles, ProfileParams, StepError
from accelopt_profiling.kernels import Kernel, KernelSource
from accelopt_profiling.measurement import (
    LIMITS,
    OWN_FAULTS,
    Correctness,
    Dialect,
    FileMeasurement,
    Finding,
    KernelMeasurement,
    Latency,
)
from accelopt_profiling.plain import from_plain, to_plain
from accelopt_profiling.problems.catalogue import layout_of
from accelopt_profiling.problems.inference.inferred import (
    InferredProblem,
    inferred_finding,
    not_inferred_finding,
)
from accelopt_profiling.problems.loading.inferred import of_inferred
from accelopt_profiling.quantity import Quantity
from accelopt_profiling.receipt import Receipt
from accelopt_profiling.source_text import source_lines
from accelopt_profiling.targets import GpuTarget
from accelopt_profiling.targets.target import load_target, target_names
from accelopt_profiling.timing.check_step import CheckedRuns

#: A device may run a little above its datasheet.
ALLOWANCE = 0.9
_ARITHMETIC = ("tensor core", "fp32", "special functions")
_MICROSECONDS = 1e6


def floor_us(estimate: KernelMeasurement, target: GpuTarget) -> float:
    """Return the microseconds that the executed work needs at the datasheet's peaks.

    0 when nothing is known.

    Bytes: what must cross DRAM (the low end of the estimate's interval) less the L2 cache, which may still hold what
    was written last. Arithmetic: the time at peak, where that is what bounds the kernel.
    """
    moved = estimate.quantities.get("dram_bytes")
    low = moved.low if moved is not None and moved.low is not None else 0.0
    floor = max(0.0, low - target["l2_bytes"]) / target["dram_bandwidth"] * _MICROSECONDS
    if estimate.bound in _ARITHMETIC and estimate.percent_of_peak and estimate.latency.us:
        floor = max(floor, estimate.percent_of_peak / 100 * estimate.latency.us)
    return floor


def impossible(latency: Latency, floor: float) -> bool:
    """Check whether a measured time is one that the device cannot reach, its whole interval below the floor."""
    high = latency.high_us if latency.high_us is not None else latency.us
    return high is not None and high < ALLOWANCE * floor


def target_of_device(name: str) -> str | None:
    """Return the target that a device's own name ("NVIDIA H100 80GB HBM3") belongs to; None when none fits
    for sure."""
    words = set(re.findall(r"[a-z]+[0-9]+[a-z]*|[a-z]+|[0-9]+", name.lower().replace("geforce rtx ", "rtx")))
    fitting = []
    for candidate in target_names("gpu"):
        parts = candidate.split("_")
        if all(part in words for part in parts):
            fitting.append((len(parts), candidate))
    if not fitting:
        return None
    return max(fitting)[1]


#: The finding that a step's error becomes.
_FINDING_CODES = {
    "user-error": "kernel-raised", "memory": "out-of-memory", "crashed": "kernel-crashed", "exited": "kernel-exited",
}  # fmt: skip


#: An import of what every run of a kernel needs.
_NEEDED_IMPORT = re.compile(r"\s*(import|from)\s+(torch|triton|numpy)\b")


def _import_line(text: str) -> int | None:
    """Return the 1-based line that first imports a package which all runs need."""
    lines = enumerate(source_lines(text), 1)
    return next((number for number, line in lines if _NEEDED_IMPORT.match(line)), None)


class MeasurementBuilder:
    """Builds the measurement of ``kernels`` of one file from the messages of its steps on the host ``host``."""

    def __init__(
        self, file: KernelSource, kernels: Sequence[Kernel], targets: Mapping[Dialect, str], host: str
    ) -> None:
        self._file, self._wanted, self._targets, self._host = file, kernels, targets, host
        self._kernels: dict[str, KernelMeasurement] = {}
        self._findings = list(self._file.findings)
        self._receipts: list[Receipt] = []
        self._inferred: InferredProblem | None = None
        self._timed: dict[str, Any] = {}
        self._evidence: dict[str, dict[str, Any]] = {}
        self._hashes = {k.name: k.content_hash for k in self._file.launched}

    def add(self, step: str, value: Any) -> bool:
        """Add a message of a step; return True when a measurement changed.

        Raises:
            ValueError: the message does not have the form that it should have.
        """
        if not isinstance(value, dict):
            return False
        changed = False
        if "inferred" in value:
            self._inferred = from_plain(InferredProblem, value["inferred"])
            self._findings.append(inferred_finding(self._file, self._inferred))
        for measured in from_plain(list[KernelMeasurement], value.get("kernels", [])):
            if measured.name in self._hashes:
                self._kernels[measured.name] = dataclasses.replace(
                    measured, content_hash=self._hashes[measured.name], host=self._host
                )
                changed = True
        if step == "time":
            self._timed = value  # a time counts once the outputs of its runs were checked
        elif step == "time.check":
            changed = self._add_times(self._timed, from_plain(CheckedRuns, value)) or changed
        else:
            changed = self._add_times(value) or changed
        for name, correctness in from_plain(dict[str, Correctness], value.get("correctness", {})).items():
            if name in self._kernels:
                self._kernels[name] = with_device_outputs(self._kernels[name], correctness)
                changed = True
        for name, counters in from_plain(dict[str, dict[str, Quantity]], value.get("counters", {})).items():
            if name in self._kernels:
                estimate = self._kernels[name]
                self._kernels[name] = dataclasses.replace(
                    estimate, quantities={**estimate.quantities, **counters}
                )
                changed = True
        return changed

    def _add_times(self, timed: dict[str, Any], checked: CheckedRuns | None = None) -> bool:
        timings, device = (
            from_plain(dict[str, Latency], timed.get("timings", {})),
            str(timed.get("device", "")),
        )
        latencies = {name: latency for name, latency in timings.items() if name in self._kernels}
        for name, latency in latencies.items():
            measured = with_device_time(self._kernels[name], latency, device)
            self._kernels[name] = measured if checked is None else with_checked_outputs(measured, checked)
            self._evidence[name] = {**timed, "checked": to_plain(checked)}
        return bool(latencies)

    def fail(self, step: str, error: StepError, kernels: list[Kernel]) -> None:
        """Turn a failed step into one finding.

        What was measured before stays; but where a kernel's own file raised or ended the run that profiles it, the
        kernel has no cost.
        """
        ref = self._file.problem.ref
        nothing = error.code in ("no-problem", "problem-invalid")  # else the file or its run failed
        if ref is not None and layout_of(ref).inferred and not self._kernels and nothing:
            self._findings.append(not_inferred_finding(kernels[0], error.message))
            return
        own = error.file is None or error.file == self._kernel_file()
        in_problem = not own and ref is not None and error.file == ref.path
        code = _FINDING_CODES.get(error.code, error.code)
        if in_problem and code == "kernel-raised":
            code = "problem-raised"
        line = f", line {error.line}" if error.line else ""
        where = "" if own or str(error.file) in error.message else f"{error.file}{line}: "
        at = error.line if own and error.line else kernels[0].line
        if code == "missing-package" and error.line is None:
            at = _import_line(self._file.text) or at
        setting = LIMITS.get(code)
        finding = Finding(code, at, "error", f"{where}{error.message}")
        if self._inferred is not None:
            finding = of_inferred(finding, own={self._inferred.fault_line})
        if setting and any(self._estimated(kernel) for kernel in kernels):
            statuses = {k.correctness.status for k in self._kernels.values()}
            stands = (
                "The estimate stands, but the result was not checked"
                if "not checked" in statuses
                else "The estimate and the check of the result stand, but details are missing"
            )
            message = f"{finding.message} {stands}: raise `{setting}`."
            finding = dataclasses.replace(finding, severity="information", message=message)
        if step == "profile" and own and code in OWN_FAULTS:
            for kernel in kernels:
                if kernel.name in self._kernels:
                    self._kernels[kernel.name] = self._kernels[kernel.name].without_cost()
        self._findings.append(finding)

    def _estimated(self, kernel: Kernel) -> bool:
        measurement = self._kernels.get(kernel.name)
        return measurement is not None and measurement.latency.us is not None

    def _kernel_file(self) -> str:
        return self._file.path.resolve().relative_to(self._file.root).as_posix()

    def seal(self, source: JobFiles, params: Mapping[Dialect, ProfileParams]) -> None:
        """Give every measurement its receipt.

        ``source`` holds all files of the project that are needed, ``params`` the parameters of each dialect's job.
        """
        for name, measured in self._kernels.items():
            run_params = params[measured.dialect]
            own = [kernel for kernel in run_params.kernels if kernel.name == name]
            receipt = Receipt(
                "profile",
                {
                    "source": to_plain(JobFiles(source.kernel, source.files)),
                    "params": to_plain(dataclasses.replace(run_params, kernels=own, input_specs=None)),
                    "measurement": to_plain(dataclasses.replace(measured, timeline=None)),
                    **({"timing": self._evidence[name]} if name in self._evidence else {}),
                },
            )
            self._receipts.append(receipt)
            self._kernels[name] = dataclasses.replace(measured, receipt=receipt.id)

    def measurement(self, complete: bool = False) -> FileMeasurement:
        """Return what is known so far."""
        kernels = [self._kernels.get(k.name) or self._unmeasured(k) for k in self._wanted]
        return FileMeasurement(
            str(self._file.path),
            kernels,
            findings=list(self._findings),
            complete=complete,
            receipts=list(self._receipts),
        )

    def _unmeasured(self, kernel: Kernel) -> KernelMeasurement:
        target = self._targets[kernel.dialect]
        return KernelMeasurement(
            kernel.name,
            kernel.line,
            dialect=kernel.dialect,
            target=target,
            host=self._host,
            content_hash=kernel.content_hash,
        )


def with_device_time(estimate: KernelMeasurement, latency: Latency, device: str) -> KernelMeasurement:
    """Return a measurement with a device's time in place of the model's, which stays among the quantities.

    The percent of peak keeps its roofline, so it scales with the time. A time below what the work needs at the target's
    peaks is refused. Where ``device`` is not the target, the time is not refused and the percent of peak is dropped.
    """
    model, share = estimate.latency, estimate.percent_of_peak
    target = load_target(estimate.target)
    same = isinstance(target, GpuTarget) and target_of_device(device) == target.name
    if same and isinstance(target, GpuTarget) and impossible(latency, floor := floor_us(estimate, target)):
        message = (
            f"The device's clock says {duration_text(latency.us or 0.0)}, but the work that was executed needs "
            f"{duration_text(floor)} at the peaks of {target.title}: the time is refused. Does all of the work run "
            "before the call returns?"
        )
        finding = Finding("impossible-time", estimate.line, "warning", message)
        return dataclasses.replace(estimate, findings=[*estimate.findings, finding])
    quantities = dict(estimate.quantities)
    if model.us is not None:
        quantities["estimated_time"] = Quantity(
            model.us, model.known, unit="us", low=model.low_us, high=model.high_us
        )
        if share is not None and latency.us:
            share = share * model.us / latency.us if same or device == target.name else None
    return dataclasses.replace(
        estimate, latency=latency, quantities=quantities, percent_of_peak=share, stage="timed"
    )


def with_device_outputs(timed: KernelMeasurement, on_device: Correctness) -> KernelMeasurement:
    """Return a measurement with the check of what the device computed: where that is wrong, the kernel is wrong,
    whatever its emulation gave.
    """
    before = timed.correctness
    if on_device.status == "failed":
        detail = f"On the device: {on_device.detail}"
        wrong = dataclasses.replace(on_device, detail=detail, device="failed")
        message = f"On the device its results are wrong. {on_device.detail}"
        finding = Finding("wrong-result", timed.line, "error", message)
        return dataclasses.replace(timed, correctness=wrong, findings=[*timed.findings, finding])
    if on_device.status == "passed" and before.status == "not checked":
        return dataclasses.replace(timed, correctness=dataclasses.replace(on_device, device="passed"))
    return dataclasses.replace(timed, correctness=dataclasses.replace(before, device=on_device.status))


def with_checked_outputs(timed: KernelMeasurement, checked: CheckedRuns) -> KernelMeasurement:
    """Return a measurement that fails where the outputs of the timed runs are wrong."""
    if not checked.wrong:
        return timed
    wrong = Correctness("failed", f"On the device: {checked.wrong}", device="failed")
    message = f"On the device its results are wrong. {checked.wrong}"
    finding = Finding("wrong-result", timed.line, "error", message)
    return dataclasses.replace(timed, correctness=wrong, findings=[*timed.findings, finding])
