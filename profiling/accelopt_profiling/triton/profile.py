"""Profile the Triton kernels of one file, in a child process that was forked for it.

Results are sent as they come: first a hollow run (inputs drawn as zeros, four programs of each launch) gives counts
and an estimate, then the compiler's facts, then a run on the real inputs whose results are compared with the
problem's reference, then the facts per line of machine code.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from types import ModuleType
from typing import Any

from accelopt_profiling.comparison.inplace_outputs import returned
from accelopt_profiling.comparison.memory import byte_count
from accelopt_profiling.comparison.outputs import check_outputs
from accelopt_profiling.jobs import ProfileParams, StepError
from accelopt_profiling.kernels import Kernel
from accelopt_profiling.measurement import Correctness, Finding, KernelMeasurement, LineCost, Severity
from accelopt_profiling.problems.loading import python_problem as _python_problems  # noqa: F401 - for the preloaded parent
from accelopt_profiling.problems.loading.cases import ProblemCase, profiled_cases
from accelopt_profiling.problems.loading.inferred import INFER_CPU_SECONDS, of_inferred, with_inferred
from accelopt_profiling.problems.loading.load import load_problem
from accelopt_profiling.problems.loading.sizes import ProblemSizes
from accelopt_profiling.problems.problem import Problem
from accelopt_profiling.quantity import Quantity, estimated, executed
from accelopt_profiling.targets import GpuTarget, UnknownTargetError, load_gpu
from accelopt_profiling.triton import hints
from accelopt_profiling.triton.capture.launch import (
    describe_arguments,
    describe_configuration,
    largest_tensor,
)
from accelopt_profiling.triton.capture.session import CaptureSession, LaunchExecution, emulated, interpreter
from accelopt_profiling.triton.check_size import CheckSize, check_size
from accelopt_profiling.triton.compilation.compile import compile_launch, compile_with_machine_code
from accelopt_profiling.triton.compilation.compiled import CompiledFacts
from accelopt_profiling.triton.compilation.machine_code import DisassemblyError
from accelopt_profiling.triton.estimation import autotune
from accelopt_profiling.triton.estimation.causes import cost_findings
from accelopt_profiling.triton.estimation.estimate import LaunchEstimate, estimate
from accelopt_profiling.triton.estimation.scale import time_at_scale
from accelopt_profiling.triton.findings import (
    compile_findings,
    execution_findings,
    own_run_finding,
    smaller_check_finding,
)
from accelopt_profiling.triton.interpreter import coverage
from accelopt_profiling.worker.step_context import StepContext, StepFailedError
from accelopt_profiling.worker.usercode import load_module, problem_errors, user_errors

#: Programs of each launch that are counted, and the seconds within which a whole launch is checked instead.
SAMPLE = 4
CHECK_SECONDS = 2.0

interpreter().prepare()  # a preloaded parent imports this module once, so that no child has to


def profile(context: StepContext, params: ProfileParams) -> list[KernelMeasurement]:
    """Profile ``params.kernels``; each partial result is emitted as ``{"kernels": [...]}``, the last is returned.

    Raises:
        StepFailedError: the file or its problem cannot be loaded or run, or the target is not a GPU.
    """
    try:
        target = load_gpu(params.target)
    except UnknownTargetError as error:
        raise StepFailedError(StepError("unsupported", str(error))) from error
    return _Profile(context, params, target).run()


@dataclasses.dataclass
class _KernelResults:
    """The results for one kernel so far. ``checks`` are launches at smaller sizes, whose results were compared."""

    kernel: Kernel
    executions: list[LaunchExecution] = dataclasses.field(default_factory=list)
    checks: list[LaunchExecution] = dataclasses.field(default_factory=list)
    tried: list[LaunchExecution] = dataclasses.field(default_factory=list)
    configurations: list[autotune.AutotuneConfiguration] = dataclasses.field(default_factory=list)
    chosen: autotune.AutotuneConfiguration | None = None
    compiled: CompiledFacts | None = None
    correctness: Correctness = dataclasses.field(default_factory=Correctness)
    stage: str = "traced"


class _Profile:
    def __init__(self, context: StepContext, params: ProfileParams, target: GpuTarget) -> None:
        self.context, self.params, self.target = context, params, target
        self.known = {k.name: _KernelResults(k) for k in params.kernels}
        self._modules: tuple[ModuleType, Problem] | None = None
        self._broke_off: Finding | None = None
        self._case = ProblemCase()
        self._check: CheckSize | None = None
        self._smaller = ""
        self._inferred = params.problem is not None and bool(params.problem.options.get("inferred"))

    def run(self) -> list[KernelMeasurement]:
        ref = self.params.problem
        if ref is None:
            return [self._without_problem(known.kernel) for known in self.known.values()]
        if ref.kind == "inferred":
            self._infer()
        if ref.kind == "selfrun":
            self._self_run()
            self._compile(compile_launch)
            self._tune()
        elif self.params.extent != "all":
            self._cost_run()
        else:
            self._hollow_run()
            self._compile(compile_launch)
            self._checked_run()
            self._tune()
        if self.params.detail:
            self._compile(_with_machine_code)
        return self.measurements()

    def _without_problem(self, kernel: Kernel) -> KernelMeasurement:
        message = f"No problem was found for {kernel.name}; write `get_inputs` and `reference` for it."
        finding = Finding("no-problem", kernel.line, "information", message, "create-problem")
        return KernelMeasurement(kernel.name, kernel.line, "triton", self.target.name, findings=[finding])

    def _infer(self) -> None:
        """Infer the problem first, and go on as if it had been written down beside the kernel file."""
        from accelopt_profiling.problems.inference.infer_step import infer
        from accelopt_profiling.problems.inference.inferred import InferParams

        inferred = infer(self.context, InferParams(self.params.kernels, self.target.name, INFER_CPU_SECONDS))
        self.context, self.params = with_inferred(self.context, self.params, inferred)

    # the runs

    def _cost_run(self) -> None:
        """Count and compile, on zeros for inputs where each kernel runs with them; compare nothing."""
        if self.params.extent == "cost":
            self._hollow_run()
        if not all(_counted(known) for known in self.known.values()):
            self._sampled_run()
        self._compile(compile_launch)
        self._tune()

    def _sampled_run(self) -> None:
        """Count with the problem's inputs of the profiled case, four programs of each launch."""
        with emulated(self.target.name, hollow=True), suppress(StepFailedError), user_errors(self.context):
            if self._case == ProblemCase():
                self._case = profiled_cases(self._loaded()[1], self.params.seed)[0]
        with emulated(self.target.name, sample=SAMPLE) as session:
            with user_errors(self.context):
                module, problem = self._loaded()
            with problem_errors(self.context, "get_inputs"):
                inputs = ProblemSizes(problem, self._case.shape).inputs(self.params.seed)
            with user_errors(self.context):
                problem.run(module, inputs)
        self._take(session)
        self._emit("executed")

    def _hollow_run(self) -> None:
        """Count with zeros for inputs; an error here is ignored, as the real inputs follow."""
        with emulated(self.target.name, sample=SAMPLE, hollow=True) as session:
            _, problem = self._loaded()
            with suppress(StepFailedError), user_errors(self.context):
                # Zeros are not the user's data: an error that they cause is not reported.
                cases = profiled_cases(problem, self.params.seed)
                self._case = cases[0]
                for case in cases:
                    check = self._counted_run(session, ProblemSizes(problem, case.shape))
                    if session.launches:
                        self._case, self._check = case, check
                        break
        if not session.launches:
            return
        self._take(session)
        self._emit("executed")

    def _counted_run(self, session: CaptureSession, sizes: ProblemSizes) -> CheckSize:
        """Run on hollow inputs of these sizes; return what a check of their results would take."""
        module, problem = self._loaded()
        with sizes.applied():
            inputs = sizes.inputs(self.params.seed)
            problem.run(module, inputs)
        return check_size(session.executions, byte_count(inputs))

    def _checked_run(self) -> None:
        """Run on the real inputs, then compare with the reference; at smaller sizes where that does not fit."""
        with emulated(self.target.name):
            _, problem = self._loaded()
        sizes = ProblemSizes(problem, self._case.shape)
        if self._check is not None and not self._check.fits and not self._make_smaller(sizes):
            self._not_checked(self._check)
            return
        with sizes.applied(), emulated(self.target.name, sample=SAMPLE, seconds=CHECK_SECONDS) as session:
            self._checked_at(session, sizes)

    def _make_smaller(self, sizes: ProblemSizes) -> bool:
        """Make ``sizes`` smaller until a check fits; False where that is not possible."""
        size = self._check
        while size is not None and not size.fits:
            if not sizes.halve():
                return False
            size = None
            with emulated(self.target.name, sample=SAMPLE, hollow=True) as session:
                with suppress(StepFailedError), user_errors(self.context):
                    size = self._counted_run(session, sizes)
                if not session.launches:
                    return False
        self._smaller = str(sizes)
        return size is not None

    def _not_checked(self, size: CheckSize) -> None:
        unreferenced = self.params.problem is not None and self.params.problem.unreferenced
        why = (
            "The problem has no reference."
            if unreferenced
            else (
                f"at this size {size.excess}, and no smaller one is known: give `get_inputs` integer arguments with "
                "defaults, from which its shapes come"
            )
        )
        for known in self.known.values():
            if known.executions:
                known.correctness = Correctness("not checked", why)
        self._emit("checked")

    def _checked_at(self, session: CaptureSession, sizes: ProblemSizes) -> None:
        with user_errors(self.context):
            module, problem = self._loaded()
        with problem_errors(self.context, "get_inputs"):
            inputs = sizes.inputs(self.params.seed)
        kept = _copy(inputs)
        with user_errors(self.context):
            outputs = returned(partial(problem.run, module, inputs))
        self._take(session, checks=bool(sizes.smaller))
        self._emit("executed")
        failed = [e.launch.name for e in session.executions if e.error is not None]
        verdict = Correctness("not checked", f"{failed[0]} did not run to its end") if failed else None
        with problem_errors(self.context, "reference"):
            known_elements = partial(coverage.known_elements, session.coverage)
            verdict = verdict or check_outputs(problem, kept, outputs, inputs, known_elements)
        if sizes.smaller:
            verdict = dataclasses.replace(verdict, detail=f"{verdict.detail}, at {sizes}")
        for known in self.known.values():
            if known.executions:
                known.correctness = verdict
        self._emit("checked")

    def _self_run(self) -> None:
        """Run the file as a program and keep its launches, also those before an error."""
        seen: set[int] = set()

        def first_of_a_kernel(execution: LaunchExecution) -> None:
            if execution.launch.line not in seen:
                seen.add(execution.launch.line)
                self._take(session)
                self._emit("executed")

        seconds = CHECK_SECONDS if self.params.extent == "all" else 0.0
        with emulated(
            self.target.name, sample=SAMPLE, seconds=seconds, lenient=True, observe=first_of_a_kernel
        ) as session:
            try:
                module, problem = self._loaded()
                with user_errors(self.context):
                    problem.run(module, problem.inputs(self.params.seed))
            except StepFailedError as failed:
                if not session.launches:
                    raise
                first = next(iter(self.known.values())).kernel
                self._broke_off = own_run_finding(failed, session.coverage.sampled, first.line)
        self._take(session)
        self._emit("executed")

    def _loaded(self) -> tuple[ModuleType, Problem]:
        """Load the kernel's module and its problem, once and inside an emulation, as loading may use the device."""
        if self._modules is None:
            assert self.params.problem is not None
            module = load_module(self.context)
            with user_errors(self.context):
                self._modules = (module, load_problem(self.context, self.params.problem, module))
        return self._modules

    def _take(self, session: CaptureSession, checks: bool = False) -> None:
        """Assign a session's launches to the kernels of this file by the line of their ``def``; those of ``checks`` at
        smaller sizes beside the ones that the cost is stated for.
        """
        path = str(self.context.kernel_path)
        for known in self.known.values():
            mine = [
                e
                for e in session.executions
                if e.launch.line == known.kernel.line and _same_file(e.launch.file, path)
            ]
            if checks:
                known.checks = [e for e in mine if not e.tuning]
                continue
            known.executions = [e for e in mine if not e.tuning]
            known.tried = known.tried or [t for e in known.executions for t in autotune.tried_for(e, mine)]

    def _compile(self, how: Callable[[Any, GpuTarget], CompiledFacts]) -> None:
        """Compile the representative launch of each kernel."""
        for known in self.known.values():
            chosen = self._representative(known)
            if chosen is not None:
                known.compiled = how(chosen[0].launch, self.target)
                known.stage = "compiled" if known.stage != "checked" else known.stage
        self._emit("compiled")

    def _tune(self) -> None:
        """Choose among autotuners' configurations by their estimates; all are compiled, none is run."""
        tuned = [known for known in self.known.values() if known.tried]
        for known in tuned:
            known.configurations = autotune.try_all(known.tried, self.target, SAMPLE)
            known.chosen = autotune.best(known.configurations)
            if known.chosen is not None:
                known.compiled = known.chosen.compiled
        if tuned:
            self._emit("compiled")

    # measurements

    def _representative(self, known: _KernelResults) -> tuple[LaunchExecution, LaunchEstimate | None] | None:
        """Return the launch with the longest estimate; of an autotuned kernel the chosen configuration."""
        if known.chosen is not None:
            return known.chosen.execution, self._estimate(known.chosen.execution, known.compiled)
        best: tuple[LaunchExecution, LaunchEstimate | None] | None = None
        for execution in known.executions:
            made = self._estimate(execution, known.compiled)
            if best is None or (made and (best[1] is None or _us(made) > _us(best[1]))):
                best = (execution, made)
        return best

    def _estimate(self, execution: LaunchExecution, compiled: CompiledFacts | None) -> LaunchEstimate | None:
        counts = execution.counts
        if counts is None or counts.sampled < 1:
            return None
        return estimate(counts, compiled, self.target)

    def _emit(self, stage: str) -> None:
        order = ["traced", "executed", "compiled", "checked"]
        for known in self.known.values():
            if known.executions and order.index(stage) > order.index(known.stage):
                known.stage = stage
        if any(known.executions for known in self.known.values()):
            self.context.emit({"kernels": self.measurements()})

    def measurements(self) -> list[KernelMeasurement]:
        """Return the present results of every kernel."""
        return [self._measurement(known) for known in self.known.values()]

    def _measurement(self, known: _KernelResults) -> KernelMeasurement:
        kernel = known.kernel
        measurement = KernelMeasurement(
            kernel.name,
            kernel.line,
            "triton",
            self.target.name,
            correctness=known.correctness,
            content_hash=kernel.content_hash,
            stage=known.stage,
        )
        chosen = self._representative(known)
        if chosen is None:
            run = "with the inferred arguments" if self._inferred else "by the problem's run"
            message = f"{kernel.name} was not launched {run}, so nothing is known about its cost."
            severity: Severity = "information" if self._inferred else "warning"
            finding = Finding("never-launched", kernel.line, severity, message)
            return dataclasses.replace(measurement, findings=[finding])
        execution, made = chosen
        findings = [f for e in known.checks or known.executions for f in execution_findings(e)]
        if self._broke_off is not None and known is next(iter(self.known.values())):
            findings.append(self._broke_off)
        quantities = {"launches": executed(len(known.executions), "launches")}
        if known.tried:
            quantities["autotune_configurations"] = executed(len(known.tried), "configurations")
        if self._smaller and self._check is not None:
            compared = known.correctness.status != "not checked"
            findings.append(smaller_check_finding(self._check, self._smaller, kernel.line, compared))
        findings += autotune.configuration_findings(known.configurations, kernel.line)
        lines: list[LineCost] = []
        if execution.counts is not None:
            quantities |= hints.launch_quantities(execution, execution.counts)
            lines = hints.line_costs(execution, execution.counts)
            outside = {fault.line for fault in execution.faults}
            findings += [f for f in hints.line_findings(execution.counts) if f.line not in outside]
        if known.compiled is not None:
            lines = hints.with_code(lines, known.compiled)
        if made is not None and execution.counts is not None:
            lines = hints.with_hints(lines, execution.counts, known.compiled, made)
        if known.chosen is not None:
            lines.insert(0, known.chosen.line(known.configurations, len(known.tried), kernel.line))
        if known.compiled is not None:
            if execution.error is None:  # the compiler would say the same again
                findings += compile_findings(known.compiled, kernel.line)
            quantities |= known.compiled.quantities()
        if known.correctness.status == "failed":
            findings.append(Finding("wrong-result", kernel.line, "error", known.correctness.detail))
        if made is not None and execution.counts is not None:
            findings += cost_findings(execution.counts, made, self.target, kernel.line)
            quantities |= made.quantities
            quantities["percent_of_peak"] = made.percent_of_peak
            quantities["time_at_scale"] = time_at_scale(execution.counts, known.compiled, self.target)
            if (together := self._all_launches(known)) is not None:
                quantities["all_launches_time"] = together
            measurement = dataclasses.replace(
                measurement,
                case=self._case_text(execution),
                configuration=describe_configuration(execution.launch),
                arguments=describe_arguments(execution.launch),
                latency=made.latency,
                bound=made.bound,
                waiting=hints.latency_cause(made),
                percent_of_peak=made.percent_of_peak.value,
            )
        return dataclasses.replace(
            measurement,
            quantities=quantities,
            lines=lines,
            findings=list(dict.fromkeys(map(of_inferred, findings) if self._inferred else findings)),
            toolchain=known.compiled.toolchain if known.compiled else {},
        )

    def _all_launches(self, known: _KernelResults) -> Quantity | None:
        """Return the time of all launches of a kernel together; None of one alone, or where one has no estimate."""
        made = [self._estimate(e, known.compiled) for e in known.executions]
        times = [m.latency for m in made if m is not None and m.latency.us is not None]
        if known.chosen is not None or not 1 < len(known.executions) == len(times):
            return None
        ends = [
            sum(t or 0.0 for t in end)
            for end in zip(*((t.us, t.low_us, t.high_us) for t in times), strict=True)
        ]
        return estimated(ends[0], ends[1], ends[2], "us")

    def _case_text(self, execution: LaunchExecution) -> str:
        chosen = f" ({self._case.chosen})" if self._case.chosen else ""
        return largest_tensor(execution.launch) + chosen


def _counted(known: _KernelResults) -> bool:
    """Return whether every launch of a kernel ran to its end inside its tensors and was counted."""
    ran = [e for e in known.executions if e.counts is not None and e.error is None and not e.faults]
    return bool(ran) and len(ran) == len(known.executions)


def _us(made: LaunchEstimate) -> float:
    return made.latency.us or 0.0


def _with_machine_code(launch: Any, target: GpuTarget) -> CompiledFacts:
    try:
        return compile_with_machine_code(launch, target)
    except DisassemblyError:
        return compile_launch(launch, target)


def _same_file(name: str, path: str) -> bool:
    import os

    return name == path or os.path.realpath(name) == os.path.realpath(path)


def _copy(values: Sequence[Any]) -> list[Any]:
    """Return the inputs as they are now: a kernel may write to them before the reference reads them."""
    return [v.detach().clone().requires_grad_(v.requires_grad) if hasattr(v, "detach") else v for v in values]
