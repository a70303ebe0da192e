"""Profile the Triton kernels of one file, in a child process that was forked for it.

Results are sent as they come: first a hollow run (inputs drawn as zeros, four programs of each launch) gives counts
and an estimate, then the compiler's facts, then a run on the real inputs whose results are compared with the
problem's reference, then the facts per line of machine code.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import ModuleType
from typing import Any

import torch

from accelopt_profiling.comparison.inplace_outputs import returned
from accelopt_profiling.comparison.leaves import flattened, leaves_of
from accelopt_profiling.comparison.memory import byte_count, is_unwritten
from accelopt_profiling.comparison.outputs import check_outputs, copy_inputs
from accelopt_profiling.jobs import ProfileParams, StepError
from accelopt_profiling.main_work import without_main_work
from accelopt_profiling.measurement import Correctness, Finding, KernelMeasurement
from accelopt_profiling.problems.call import run_problem
from accelopt_profiling.problems.catalogue import is_unreferenced, layout_of
from accelopt_profiling.problems.loading import python_problem as _python_problems  # noqa: F401 - for the preloaded parent
from accelopt_profiling.problems.loading.cases import ProblemCase, profiled_cases
from accelopt_profiling.problems.loading.inferred import (
    INFER_CPU_SECONDS,
    instead_of_own_run,
    with_inferred,
)
from accelopt_profiling.problems.loading.load import load_problem
from accelopt_profiling.problems.loading.sizes import ProblemSizes
from accelopt_profiling.problems.loading.unlaunched import with_unlaunched
from accelopt_profiling.problems.problem import Problem
from accelopt_profiling.step_context import StepContext, StepFailedError
from accelopt_profiling.targets import GpuTarget, UnknownTargetError, load_gpu
from accelopt_profiling.triton.capture.install import emulated
from accelopt_profiling.triton.capture.session import CaptureSession, LaunchExecution, interpreter
from accelopt_profiling.triton.check_size import CheckSize, check_size
from accelopt_profiling.triton.compilation.compile import compile_launch, compile_with_machine_code
from accelopt_profiling.triton.compilation.compiled import CompiledFacts
from accelopt_profiling.triton.compilation.machine_code import DisassemblyError
from accelopt_profiling.triton.findings import own_checks, own_run_finding, smaller_check_finding
from accelopt_profiling.triton.interpreter import coverage
from accelopt_profiling.triton.interpreter.work import SECOND
from accelopt_profiling.triton.kernel_results import KernelResults
from accelopt_profiling.worker.usercode import load_module, problem_errors, user_errors

#: Programs of each launch that are counted, and the work within which a whole launch is checked instead.
SAMPLE = 4
CHECK_WORK = 2 * SECOND
#: Work of a launch, where nothing is compared, after which its long loops are sampled.
LOOP_WORK = 5 * SECOND

interpreter().prepare()  # a preloaded parent imports this module once, so that no child has to


def profile(context: StepContext, params: ProfileParams) -> list[KernelMeasurement]:
    """Profile ``params.kernels``.

    Each partial result is emitted as ``{"kernels": [...]}``, the last is returned. Of a file whose own run launches
    nothing the arguments are inferred.

    Raises:
        StepFailedError: the file or its problem cannot be loaded or run, or the target is not a GPU.
    """
    try:
        target = load_gpu(params.target)
    except UnknownTargetError as error:
        raise StepFailedError(StepError("unsupported", str(error))) from error
    run, problem = _Profile(context, params, target), params.problem
    measurements = run.run()
    if problem is None or params.options.extent != "all":
        return measurements
    if layout_of(problem).runs_itself and not any(result.executions for result in run.results):
        problem = instead_of_own_run(context, problem)
        params = dataclasses.replace(params, problem=problem)
        try:
            measurements = _Profile(context, params, target).run()
        except StepFailedError:
            return measurements

    from accelopt_profiling.problems.inference.infer_step import infer

    def profile_apart(own: StepContext, own_params: ProfileParams, entry: str) -> list[KernelMeasurement]:
        return _Profile(dataclasses.replace(own, emit=context.emit), own_params, target, entry).run()

    return with_unlaunched(context, params, results=measurements, infer=infer, profile=profile_apart)


class _Profile:
    """One run of the problem of ``params``.

    ``apart`` is the function that it calls where the file's own problem does not launch these kernels.
    """

    def __init__(
        self, context: StepContext, params: ProfileParams, target: GpuTarget, apart: str = ""
    ) -> None:
        self.context, self.params, self.target, self._apart = context, params, target, apart
        text = context.source.files[context.source.kernel]
        self.results = [
            KernelResults(
                k,
                target,
                text=text,
                wanted=params.options.launches.get(k.name),
                slow=params.options.slow_configurations.get(k.name, ()),
            )
            for k in params.kernels
        ]
        self._modules: tuple[ModuleType, Problem] | None = None
        self._broke_off: Finding | None = None
        self._case = ProblemCase()
        self._check: CheckSize | None = None
        self._smaller = ""
        self._inferred = params.problem is not None and bool(params.problem.options.get("inferred"))

    def run(self) -> list[KernelMeasurement]:
        ref = self.params.problem
        if ref is None:
            return [result.without_problem() for result in self.results]
        if layout_of(ref).inferred:
            self._infer()
        if layout_of(ref).runs_itself:
            self._self_run()
            self._compile(compile_launch)
            self._tune()
        elif self.params.options.extent != "all":
            self._cost_run()
        else:
            self._hollow_run()
            if any(
                result.empty for result in self.results
            ):  # a grid may come from values, which are zeros there
                with suppress(StepFailedError):
                    self._sampled_run()
            self._compile(compile_launch)
            self._checked_run()
            self._tune()
        for result in self.results:
            result.compile_each()
        if self.params.options.detail:
            self._compile(_with_machine_code)
        return self.measurements()

    def _infer(self) -> None:
        """Infer the problem first, and go on as if it had been written down beside the kernel file."""
        from accelopt_profiling.problems.inference.infer_step import infer
        from accelopt_profiling.problems.inference.inferred import InferParams

        inferred = infer(self.context, InferParams(self.params.kernels, self.target.name, INFER_CPU_SECONDS))
        self.context, self.params = with_inferred(self.context, self.params, inferred)

    # the runs

    def _cost_run(self) -> None:
        """Count and compile, on zeros for inputs where each kernel runs with them; compare nothing."""
        if self.params.options.extent == "cost":
            self._hollow_run()
        if not all(result.counted for result in self.results):
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
                returned(partial(run_problem, problem, module, inputs))
        self._take(session)
        self._emit("executed")

    def _hollow_run(self) -> None:
        """Count with zeros for inputs. An error here is ignored, as the real inputs follow."""
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
        """Run on hollow inputs of these sizes. Return what a check of their results would take."""
        module, problem = self._loaded()
        with sizes.applied():
            inputs = sizes.inputs(self.params.seed)
            run_problem(problem, module, inputs)
        return check_size(session.executions, byte_count(inputs))

    def _checked_run(self) -> None:
        """Run on the real inputs, then compare with the reference.

        At smaller sizes where that does not fit.
        """
        with emulated(self.target.name):
            _, problem = self._loaded()
        sizes = ProblemSizes(problem, self._case.shape)
        if self._check is not None and not self._check.fits and not self._make_smaller(sizes):
            self._not_checked(self._check)
            return
        compared = self.params.problem is None or not is_unreferenced(self.params.problem)
        limit = None if compared else LOOP_WORK
        with sizes.applied(), emulated(
            self.target.name, sample=SAMPLE, whole_work=CHECK_WORK, loop_work=limit
        ) as session:  # fmt: skip
            self._checked_at(session, sizes)

    def _make_smaller(self, sizes: ProblemSizes) -> bool:
        """Make ``sizes`` smaller until a check fits. False where that is not possible."""
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
        unreferenced = self.params.problem is not None and is_unreferenced(self.params.problem)
        why = (
            "The problem has no reference."
            if unreferenced
            else (
                f"at this size {size.excess}, and no smaller one is known: give `get_inputs` integer arguments with "
                "defaults, from which its shapes come"
            )
        )
        for result in self.results:
            if result.executions:
                result.correctness = Correctness("not checked", why)
        self._emit("checked")

    def _checked_at(self, session: CaptureSession, sizes: ProblemSizes) -> None:
        with user_errors(self.context):
            module, problem = self._loaded()
        with problem_errors(self.context, "get_inputs"):
            inputs = sizes.inputs(self.params.seed)
        originals = copy_inputs(inputs)
        with user_errors(self.context):
            outputs = returned(partial(run_problem, problem, module, inputs))
        self._take(session, checks=bool(sizes.smaller))
        self._emit("executed")
        failed = [e.launch.name for e in session.executions if e.error is not None]
        verdict = Correctness("not checked", f"{failed[0]} did not run to its end") if failed else None
        with problem_errors(self.context, "reference"):
            known_elements = partial(coverage.known_elements, session.coverage)
            verdict = verdict or check_outputs(
                problem, originals, outputs=outputs, inputs_after=inputs, masks_of=known_elements
            )
        if verdict.status == "not checked":
            self._look_for_unwritten(outputs)
        if sizes.smaller and verdict.status != "not checked":
            verdict = dataclasses.replace(verdict, detail=f"{verdict.detail}, at {sizes}")
        for result in self.results:
            if result.executions:
                result.correctness = verdict
        self._emit("checked")

    def _look_for_unwritten(self, outputs: list[Any] | None) -> None:
        """Note which kernels wrote less than half of an output that nothing else wrote: without a reference nothing
        else tells that."""
        for _, tensor in flattened(outputs or []):
            if not isinstance(tensor, torch.Tensor) or not tensor.numel():
                continue
            (leaf,) = leaves_of([tensor])
            written = tensor.numel() - int(is_unwritten(leaf.values, leaf.dtype).sum())
            if 2 * written < tensor.numel():
                for result in self.results:
                    result.write_little(tensor, written)

    def _self_run(self) -> None:
        """Run the file as a program and keep its launches, also those before an error."""
        lines: set[int] = set()

        def first_of_a_kernel(execution: LaunchExecution) -> None:
            if execution.launch.line not in lines:
                lines.add(execution.launch.line)
                self._take(session)
                self._emit("executed")

        whole, loops = (CHECK_WORK, LOOP_WORK) if self.params.options.extent == "all" else (0, 0)
        with emulated(
            self.target.name, sample=SAMPLE, whole_work=whole, lenient=True, observe=first_of_a_kernel,
            loop_work=loops,
        ) as session:  # fmt: skip
            try:
                module, problem = self._loaded()
                with user_errors(self.context):
                    run_problem(problem, module, problem.inputs(self.params.seed))
            except StepFailedError as failed:
                if not session.launches:
                    raise
                first = self.results[0].kernel
                self._broke_off = own_run_finding(failed, session, first.line)
        self._take(session)
        for result in self.results:
            if result.executions:
                result.correctness = Correctness("not checked", own_checks(session))
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
        for result in self.results:
            mine = [
                e
                for e in session.executions
                if e.launch.line == result.kernel.line and _same_file(e.launch.file, path)
            ]
            if checks:
                result.checks = [e for e in mine if not e.tuning]
                continue
            result.take(mine, not session.hollow)

    def _compile(self, how: Callable[[Any, GpuTarget], CompiledFacts]) -> None:
        """Compile the representative launch of each kernel."""
        for result in self.results:
            chosen = result.representative()
            if chosen is not None:
                result.compiled = how(chosen[0].launch, self.target)
        self._emit("compiled")

    def _tune(self) -> None:
        """Choose among autotuners' configurations by their estimates. All are compiled, none is run."""
        tuned = [result for result in self.results if result.tried]
        for result in tuned:
            result.tune(SAMPLE)
        if tuned:
            self._emit("compiled")

    def _emit(self, stage: str) -> None:
        for result in self.results:
            result.reach(stage)
        if any(result.executions for result in self.results):
            self.context.emit({"kernels": self.measurements()})

    def measurements(self) -> list[KernelMeasurement]:
        """Return the present results of every kernel."""
        measured = []
        for result in self.results:
            kernel = result.measurement(self._case.chosen, self._inferred, self._run_findings(result))
            missed = result.missed_work()
            measured.append(
                kernel if missed is None else without_main_work(kernel, missed, self.params.problem)
            )
        return measured

    def _run_findings(self, result: KernelResults) -> list[Finding]:
        """Return what the run tells at a kernel's line: that it broke off, once, and that a check was smaller."""
        findings = []
        if self._apart:
            message = "Arguments were inferred for this kernel apart, no result is checked."
            findings.append(Finding("inferred-problem", result.kernel.line, "information", message))
        if self._broke_off is not None and result is self.results[0]:
            findings.append(self._broke_off)
        if self._smaller and self._check is not None:
            compared = result.correctness.status != "not checked"
            findings.append(smaller_check_finding(self._check, self._smaller, result.kernel.line, compared))
        return findings


def _with_machine_code(launch: Any, target: GpuTarget) -> CompiledFacts:
    try:
        return compile_with_machine_code(launch, target)
    except DisassemblyError:
        return compile_launch(launch, target)


def _same_file(name: str, path: str) -> bool:
    import os

    return name == path or os.path.realpath(name) == os.path.realpath(path)
