"""The step ``profile`` for NKI kernels: a trace for the first numbers, then values, compared with the reference."""

from __future__ import annotations

import re
import traceback
from collections.abc import Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np

from accelopt_profiling.comparison.outputs import check_outputs, copy_inputs
from accelopt_profiling.jobs import ProfileParams, StepError
from accelopt_profiling.kernels import Kernel
from accelopt_profiling.main_work import missed_work, without_main_work
from accelopt_profiling.measurement import Correctness, Finding, KernelMeasurement, Launchability, Severity
from accelopt_profiling.nki.current.versions import UnknownVersionError, emulated_version
from accelopt_profiling.nki.data.dtypes import dtype_named
from accelopt_profiling.nki.data.instruction import Trace
from accelopt_profiling.nki.emulator.diagnostics import KernelFaultError, ValuesNeededError
from accelopt_profiling.nki.frontend import jit as launching
from accelopt_profiling.nki.inference_step import infer_nki
from accelopt_profiling.nki.install import Emulation, emulated
from accelopt_profiling.nki.report import measurement
from accelopt_profiling.nki.sdk import real_packages
from accelopt_profiling.nki.time_model.estimate import TimeEstimate, estimate
from accelopt_profiling.nki.time_model.hardware import Hardware, hardware
from accelopt_profiling.nki.time_model.timeline import timeline
from accelopt_profiling.problems.call import run_problem
from accelopt_profiling.problems.catalogue import is_unreferenced, layout_of
from accelopt_profiling.problems.inference.inferred import InferParams
from accelopt_profiling.problems.inference.own_faults import is_of_type, own_fault_line
from accelopt_profiling.problems.loading.inferred import (
    INFER_CPU_SECONDS,
    floor_finding,
    instead_of_own_run,
    is_by_values,
    of_inferred,
    with_inferred,
)
from accelopt_profiling.problems.loading.load import load_problem
from accelopt_profiling.problems.loading.unlaunched import with_unlaunched
from accelopt_profiling.problems.problem import Problem, ProblemError
from accelopt_profiling.quantity import Known
from accelopt_profiling.ran import LineRecord, ran, reachable
from accelopt_profiling.source_text import syntax_of
from accelopt_profiling.step_context import StepContext, StepFailedError
from accelopt_profiling.targets.target import UnknownTargetError
from accelopt_profiling.worker.usercode import load_module, problem_errors, user_errors

#: An argument that is a tensor, ``x float32 1024x64``, and as many of them as say what a cost is stated for.
_TENSOR, _TENSORS_SHOWN = re.compile(r"(\w+) (\w+) (\d+(?:x\d+)*)"), 4
_TOOLCHAIN = {"nki": "emulated", "numpy": np.__version__}


def profile(context: StepContext, params: ProfileParams) -> list[KernelMeasurement]:
    """Measure the NKI kernels of a file: first numbers through ``context.emit``, the complete ones returned. Where a
    file runs itself and that launches nothing here, for want of a device or its framework, arguments are inferred.

    Raises:
        StepFailedError: the file or its problem cannot be run.
    """
    try:
        emulated_version()
        machine = hardware(params.target)
    except (UnknownTargetError, UnknownVersionError) as error:
        raise StepFailedError(StepError("unsupported", str(error))) from None
    run = _ProfileRun(context, params, machine)
    if params.problem is None or not layout_of(params.problem).runs_itself:

        def profile_apart(own: StepContext, own_params: ProfileParams, entry: str) -> list[KernelMeasurement]:
            return _ProfileRun(own, own_params, machine).perform()

        return with_unlaunched(context, params, run.perform(), infer_nki, profile_apart)
    stopped: StepFailedError | None = None
    measurements: list[KernelMeasurement] = []
    try:
        measurements = run.perform()
    except StepFailedError as failed:
        stopped = failed
    if stopped is None and (run.reached_a_kernel or real_packages()):
        return measurements
    inferred = replace(params, problem=instead_of_own_run(context, params.problem))
    try:
        return _ProfileRun(context, inferred, machine).perform()
    except StepFailedError:
        if stopped is not None:
            raise stopped from None
        return measurements


class _ProfileRun:
    """One file under emulation: its module and problem, and what is known of its kernels so far."""

    def __init__(self, context: StepContext, params: ProfileParams, machine: Hardware) -> None:
        self.context, self.params, self.hardware = context, params, machine
        self.inferred = params.problem is not None and bool(params.problem.options.get("inferred"))
        self.toolchain = _TOOLCHAIN
        self.traced: Emulation | None = None
        self.fault: KernelFaultError | None = None
        self.findings: list[Finding] = []
        self.broke_off: Finding | None = None
        self.correctness = Correctness()
        self.stage = "traced"
        self.answers: dict[str, TimeEstimate] = {}
        self._tree = syntax_of(context.source.files[context.source.kernel])

    def perform(self) -> list[KernelMeasurement]:
        """Run the problem and return the measurements."""
        params = self.params
        sdk = real_packages()
        with emulated(limits=self.hardware.limits, sdk=False):
            if params.problem is not None and layout_of(params.problem).inferred:
                infer_params = InferParams(params.kernels, params.target, INFER_CPU_SECONDS)
                inference = infer_nki(self.context, infer_params)
                self.context, self.params = with_inferred(self.context, params, inference)
            self.load()
            if params.input_specs:
                self.trace(stand_ins(params.input_specs))
            if params.options.extent != "all" and self.traced is not None:
                return self.measurements()
            with problem_errors(self.context, "get_inputs"):
                inputs = self.problem.inputs(params.seed)
            specs = specs_of(inputs)
            if specs is not None and specs != params.input_specs:
                self.context.emit({"input_specs": specs})
                self.trace(stand_ins(specs))
            if params.options.extent != "all" and self.traced is not None:
                return self.measurements()
            if not sdk:
                self.check(inputs)
        if sdk:
            with emulated(limits=self.hardware.limits):
                self.load()
                self.toolchain = {"nki": f"simulator of the SDK ({', '.join(sdk)})", "numpy": np.__version__}
                self.check(inputs)
        return self.measurements()

    @property
    def reached_a_kernel(self) -> bool:
        """True if a kernel was launched, or stopped by a fault of its own."""
        launched = self.traced is not None and any(m.trace.instructions for m in self.traced.machines)
        return launched or (self.fault is not None and self._owned(self.fault.line))

    def load(self) -> None:
        """Load the file and its problem, with whatever ``nki`` is in place."""
        if self.params.problem is None:
            raise StepFailedError(StepError("no-problem", "No problem says what inputs this kernel takes."))
        self.module: ModuleType = self._load()
        ref = self.params.problem
        if layout_of(ref).runs_itself and ref.options.get(
            "module"
        ):  # its own statements launch: they run once more
            ref = replace(ref, options={**ref.options, "main": True})
        with user_errors(self.context):
            self.problem: Problem = load_problem(self.context, ref, self.module)

    def _load(self) -> ModuleType:
        try:
            with user_errors(self.context):
                return load_module(self.context)
        except StepFailedError as failed:
            cause = failed.__cause__
            if isinstance(cause, KernelFaultError):
                raise StepFailedError(
                    StepError(cause.code, cause.message, self.context.source.kernel, cause.line)
                ) from None
            raise

    def trace(self, inputs: list[Any]) -> None:
        """Run without values and emit first numbers. Host code that needs values just has to wait for them."""
        with emulated("trace", limits=self.hardware.limits, sdk=False) as emulation:
            try:
                self._run(inputs)
            except KernelFaultError as fault:
                if isinstance(fault, ValuesNeededError):
                    return
                self._stop(fault, emulation)
            except (Exception, SystemExit):
                return
        self.traced = emulation
        self.answers.clear()
        self._collect(emulation)
        self.context.emit({"kernels": self.measurements()})

    def _run(self, inputs: list[Any]) -> list[Any]:
        """Make the problem's call. Where there is nothing to compare, a function need not return what it launched
        kernels for."""
        try:
            return run_problem(self.problem, self.module, inputs)
        except ProblemError as empty:
            if (
                empty.code != "problem-empty"
                or self.params.problem is None
                or not is_unreferenced(self.params.problem)
            ):
                raise
            return []

    def check(self, inputs: list[Any]) -> None:
        """Run with values and compare the outputs with the reference. Where host code looks at values, so that it
        launches something else than without, the cost is of a run with them too."""
        if self.fault is not None:
            return
        originals = (
            inputs
            if self.params.problem is None or is_unreferenced(self.params.problem)
            else copy_inputs(inputs)
        )
        with emulated("full", self.traced is None, self.hardware.limits) as emulation:
            try:
                with user_errors(self.context):
                    outputs = self._run(inputs)
            except StepFailedError as failed:
                if isinstance(failed.__cause__, KernelFaultError):
                    self._stop(failed.__cause__, emulation)
                elif not self._broke_off(failed, emulation):
                    raise
                self.traced = self.traced or emulation
                self._collect(emulation)
                return
        if self.traced is not None and not emulation.real and _launched(emulation) != _launched(self.traced):
            self.traced = None
            self.answers.clear()
            self.findings.clear()
            with problem_errors(self.context, "get_inputs"):
                inputs = self.problem.inputs(self.params.seed)
            self.check(inputs)
            return
        if self.traced is None:
            self.traced = emulation
        self._collect(emulation)
        with problem_errors(self.context, "reference"):
            self.correctness = self._where_defined(check_outputs(self.problem, originals, outputs, inputs))
        self.stage = "checked"

    def _where_defined(self, correctness: Correctness) -> Correctness:
        """Return what a comparison says; nothing where results differ that depend on what is stood in for."""
        undefined = next((f for f in self.findings if f.code == "stand-in"), None)
        if undefined is None or correctness.status != "failed":
            return correctness
        return Correctness("not checked", f"Line {undefined.line}: {undefined.message}")

    def _stop(self, fault: KernelFaultError, emulation: Emulation) -> None:
        """Keep a violation; the launch that it ended has no cost."""
        self.fault = fault
        if emulation.machines:
            emulation.machines.pop()

    def _broke_off(self, failed: StepFailedError, emulation: Emulation) -> bool:
        """True if a file that runs itself failed outside of its kernels, after launches that keep their cost."""
        error = failed.error
        frames = traceback.extract_tb(failed.__cause__.__traceback__ if failed.__cause__ else None)
        of_kernel = any(frame.filename == launching.__file__ for frame in frames)
        selfrun = self.params.problem is not None and layout_of(self.params.problem).runs_itself
        if not selfrun or error.code != "user-error" or of_kernel or not emulation.machines:
            return False
        checked = isinstance(failed.__cause__, AssertionError)
        what = (
            "The file's own check failed" if checked else "The file's own run broke off after these launches"
        )
        message = f"{what}: {error.message.removesuffix('.')}."
        if checked:
            self.correctness = Correctness("failed", message)
        severity: Severity = "error" if checked else "warning"
        self.broke_off = Finding(
            "kernel-raised", error.line or self.params.kernels[0].line, severity, message
        )
        return True

    def _collect(self, emulation: Emulation) -> None:
        """Take over what a run found; one with values knows more of what was read before it was written."""
        if emulation.mode == "full":
            self.findings = [f for f in self.findings if f.code != "uninitialised-read"]
        for machine in emulation.machines:
            for finding in machine.findings:
                if finding not in self.findings:
                    self.findings.append(finding)

    def measurements(self) -> list[KernelMeasurement]:
        """Return the present measurement of each kernel."""
        return [self._measure(kernel, first=at == 0) for at, kernel in enumerate(self.params.kernels)]

    def _measure(self, kernel: Kernel, first: bool) -> KernelMeasurement:
        findings = [
            f
            for f in self.findings
            if kernel.first_line <= f.line <= kernel.end_line or (first and not f.line)
        ]
        faulty = self.fault is not None and (
            kernel.first_line <= self.fault.line <= kernel.end_line
            or (first and not self._owned(self.fault.line))
        )
        if faulty and self.fault is not None:
            line = self.fault.line or kernel.line
            finding = Finding(self.fault.code, line, "error", self.fault.message)
            findings.append(
                of_inferred(finding, finding.code) if self._is_by_arguments(self.fault) else finding
            )
        if self.broke_off is not None and first:
            findings.append(self.broke_off)
        if self.inferred:
            own = {self._own_fault_line} - {0}
            findings = [of_inferred(f, "capacity", own=own) for f in findings]
        if self.correctness.status == "passed":
            findings = [_of_right_results(f) for f in findings]
        answer = self._answer(kernel)
        launched = faulty or answer is not None
        if self.inferred and answer is not None and 2 * self.hardware.launch_ns >= 1000 * answer.us:
            findings.append(floor_finding(kernel.line))
        if self.broke_off is None and self.correctness.status == "failed" and launched:
            findings.append(
                Finding("wrong-result", kernel.line, "error", f"Wrong result: {self.correctness.detail}")
            )
        correctness = self.correctness if launched else Correctness()
        if faulty and self.fault is not None:
            by_arguments = self._is_by_arguments(self.fault)
            correctness = Correctness("not checked" if by_arguments else "failed", self.fault.message)
        if answer is not None:
            measured = measurement(
                kernel,
                self.params.target,
                self.params.host,
                answer,
                findings,
                correctness,
                self.stage,
                self.toolchain,
            )
            visible = (
                timeline(answer.schedule)
                if self.params.options.timeline and self.stage == "checked"
                else None
            )
            return self._with_what_ran(kernel, replace(measured, timeline=visible))
        has_no_room = faulty and self.fault is not None and self.fault.code == "capacity"
        launchable = Launchability("no", Known.EXECUTED) if has_no_room else Launchability()
        if not faulty:
            message = f"The problem never calls {kernel.name}, so nothing is known of its cost."
            if self.inferred:
                message = (
                    f"The inferred call does not launch {kernel.name}, so nothing is known of its cost. "
                    f"`accelopt profile --kernel {kernel.name}` infers arguments for it alone."
                )
            findings.append(Finding("never-launched", kernel.line, "information", message))
        return KernelMeasurement(
            kernel.name, kernel.line, "nki", self.params.target, self.params.host, correctness, findings=findings,
            content_hash=kernel.content_hash, stage=self.stage, toolchain=self.toolchain, launchable=launchable,
        )  # fmt: skip

    def _is_by_arguments(self, fault: KernelFaultError) -> bool:
        """Tell that inferred arguments may be at fault."""
        is_uncertain = is_by_values(fault.code) or (fault.code == "unsupported" and is_of_type(fault))
        return self.inferred and is_uncertain and not self._own_fault_line

    @property
    def _own_fault_line(self) -> int:
        """The line of a fault that is the file's own, whatever its arguments; 0 where there is none."""
        text = self.context.source.files[self.context.source.kernel]
        return own_fault_line(self.fault, str(self.context.kernel_path), text)

    def _with_what_ran(self, kernel: Kernel, measured: KernelMeasurement) -> KernelMeasurement:
        """Return a measurement with the launch that it is of; without a cost where the main work did not run."""
        launches = self._launches(kernel)
        record = LineRecord()
        for trace in launches:
            record.add(trace.ran)
        functions = reachable(self._tree, kernel.line)
        largest = max(launches, key=lambda t: t.input_bytes + t.output_bytes)
        tensors = [a for a in largest.arguments if _TENSOR.fullmatch(a)]
        measured = replace(
            measured,
            case=", ".join(_TENSOR.sub(r"\1 \3 \2", a) for a in tensors[:_TENSORS_SHOWN]),
            arguments=largest.arguments,
            ran=ran(functions, len(launches), record),
        )
        gap = missed_work(functions, record, certain=True)
        return measured if gap is None else without_main_work(measured, gap, self.params.problem)

    def _owned(self, line: int) -> bool:
        return any(k.first_line <= line <= k.end_line for k in self.params.kernels)

    def _answer(self, kernel: Kernel) -> TimeEstimate | None:
        """Return the model's answer for the kernel's launches; once per trace."""
        if kernel.name not in self.answers and (trace := self._trace_of(kernel)) is not None:
            self.answers[kernel.name] = estimate(trace, self.hardware)
        return self.answers.get(kernel.name)

    def _trace_of(self, kernel: Kernel) -> Trace | None:
        launches = self._launches(kernel)
        if not launches:
            return None
        return Trace(
            [i for t in launches for i in t.instructions], sum(t.input_bytes for t in launches),
            sum(t.output_bytes for t in launches), launches[0].kernel, dialect=launches[0].dialect,
        )  # fmt: skip

    def _launches(self, kernel: Kernel) -> list[Trace]:
        """Return the traces of the kernel's launches that did anything."""
        if self.traced is None:
            return []
        path = kernel.name.split("#")[0]
        name = path.rpartition(".")[2]
        launches = [m.trace for m in self.traced.machines if m.trace.kernel == name and m.trace.instructions]
        if sum(k.name.split("#")[0].rpartition(".")[2] == name for k in self.params.kernels) > 1:
            launches = [trace for trace in launches if trace.path == path]
        return launches


def _launched(emulation: Emulation) -> list[tuple[str, tuple[str, ...]]]:
    return [(m.trace.kernel, m.trace.arguments) for m in emulation.machines]


def _of_right_results(finding: Finding) -> Finding:
    """Return a finding as it is where the results are right: what is read of memory that nothing wrote is NaN here, or
    4, and nothing that is compared depends on it."""
    if finding.code != "uninitialised-read" or finding.severity != "error":
        return finding
    message = f"{finding.message} The compared results do not depend on that."
    return replace(finding, severity="warning", message=message)


# Inputs as shapes and types: a trace needs no values, so first numbers need not wait for values to be drawn

_PLAIN_TYPES = (bool, int, float, str, type(None))


def specs_of(inputs: Sequence[Any]) -> list[dict[str, Any]] | None:
    """Return the specifications of drawn inputs; None when one of them is neither an array nor a plain
    value."""
    specs: list[dict[str, Any]] = []
    for value in inputs:
        if hasattr(value, "shape") and hasattr(value, "dtype"):
            name = str(value.dtype).rpartition(".")[2]
            specs.append({"shape": [int(n) for n in value.shape], "dtype": name})
        elif isinstance(value, _PLAIN_TYPES):
            specs.append({"value": value})
        else:
            return None
    return specs


def stand_ins(specs: Sequence[dict[str, Any]]) -> list[Any]:
    """Return arrays of the given shapes that take no memory: one zero seen everywhere."""
    return [
        np.broadcast_to(np.zeros((), dtype=dtype_named(s["dtype"])), tuple(s["shape"]))
        if "shape" in s
        else s["value"]
        for s in specs
    ]
