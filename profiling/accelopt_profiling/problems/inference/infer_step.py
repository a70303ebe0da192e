"""The step ``infer``: find inputs with which a file's Triton kernels run, by running them in this child process.

Tries are small, so that they are quick; what runs is given the sizes that such kernels have in use.
"""

from __future__ import annotations

import ast
import os
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelopt_profiling.problems.inference.arguments import InferredCall
from accelopt_profiling.problems.inference.enlarge import enlarged_calls
from accelopt_profiling.problems.inference.entries import EntryCandidate, entry_candidates, is_jitted
from accelopt_profiling.problems.inference.failure_site import error_text, failure_sites
from accelopt_profiling.problems.inference.guess import guess_call
from accelopt_profiling.problems.inference.inferred import InferParams, InferredProblem
from accelopt_profiling.problems.inference.problem_text import problem_text
from accelopt_profiling.problems.inference.repair_loop import InferenceRun, RepairLoop
from accelopt_profiling.problems.inference.usage import function_uses
from accelopt_profiling.problems.loading.call import seed_everything
from accelopt_profiling.worker.step_context import StepContext
from accelopt_profiling.worker.usercode import load_module

_ENTRIES = 8


@dataclass
class _TritonRun(InferenceRun):
    executions: list[Any]
    kernel_file: Path

    @property
    def score(self) -> tuple[bool, bool, bool]:
        good = any(e.error is None and not e.faults for e in self.executions)
        return (good and self.error is None, good, bool(self.executions))

    @property
    def launched(self) -> list[str]:
        return sorted({e.launch.name for e in self.executions})

    @property
    def remaining(self) -> str:
        if self.error is not None:
            return f"{error_text(self.error)}{_where(self.error, self.kernel_file)}"
        fault = next((e for e in self.executions if e.error is not None or e.faults), None)
        if fault is None:
            return "" if self.executions else "no kernel was launched"
        if fault.error is not None:
            return (
                f"{fault.launch.name} raised {error_text(fault.error)}{_where(fault.error, self.kernel_file)}"
            )
        from accelopt_profiling.triton.capture.session import describe

        return describe(fault.faults[0])


def infer(context: StepContext, params: InferParams) -> InferredProblem:
    """Return the best problem that was found; each better one is emitted as well.

    Raises:
        StepFailedError: the file cannot be loaded, or has nothing that could be called.
    """
    from accelopt_profiling.triton.capture.session import emulated

    with emulated(params.target, sample=1):
        module = load_module(context)
    return _TritonLoop(context, params, module).run()


class _TritonLoop(RepairLoop[_TritonRun]):
    attempts = 24
    attempts_in_all = 64

    def __init__(self, context: StepContext, params: InferParams, module: Any) -> None:
        tree = ast.parse(context.source.files[context.source.kernel])
        names = [k.name.split("#")[0].split(".")[-1] for k in params.kernels]
        super().__init__(context, params, module, entry_candidates(tree, names)[:_ENTRIES])
        jitted = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and is_jitted(n)}
        self._functions = function_uses(tree, jitted | set(names))
        self._kernels = {n: f.node for n, f in self._functions.items() if f.kernel}

    def first_call(self, entry: EntryCandidate) -> InferredCall:
        return guess_call(self._text, entry, self._functions)

    def written(self, call: InferredCall, remaining: str = "") -> str:
        return problem_text(call, remaining)

    def arguments(self, call: InferredCall) -> dict[str, Any]:
        namespace: dict[str, Any] = {}
        exec(compile(problem_text(call), "<inferred>", "exec"), namespace)  # noqa: S102  (written here, in the sandbox)
        seed_everything(0)
        return dict(zip((a.name for a in call.arguments), namespace["get_inputs"](), strict=True))

    def attempt(self, call: InferredCall, entry: EntryCandidate, hollow: bool = False) -> _TritonRun:
        from accelopt_profiling.triton.capture.session import emulated

        with emulated(self._params.target, sample=1, seconds=0.0, hollow=hollow) as session:
            values, error = self.run_entry(call, "launch" if entry.kind == "kernel" else "returns")
        executions = [e for e in session.executions if not e.tuning]
        return _TritonRun(error, values, executions, self._context.kernel_path)

    def mend(
        self, call: InferredCall, entry: EntryCandidate, run: _TritonRun, reverse: bool = False
    ) -> str | None:
        from accelopt_profiling.problems.inference.kernel_repair import repair_launch
        from accelopt_profiling.problems.inference.repair import repair
        from accelopt_profiling.problems.inference.subjects import CallSubjects

        subjects = CallSubjects(call, self._text, self._functions[entry.function], entry, run.values)
        subjects.reverse = reverse
        for execution in run.executions:
            if made := repair_launch(execution, subjects, self._kernels):
                return made
            if execution.error is not None and (made := repair(execution.error, subjects)):
                return made
        return repair(run.error, subjects) if run.error is not None else None

    def improve(self, call: InferredCall, entry: EntryCandidate, run: _TritonRun, changes: list[str]) -> None:
        """Send the call with its gradients, where computing them launches further kernels, and with the sizes of a
        kernel in use, as many of them as it runs with just as well."""
        if entry.kind != "kernel":
            further = deepcopy(call)
            further.backward = True
            again = self.attempt(further, entry)
            if again.complete and set(again.launched) > set(run.launched):
                self.send(further, again, changes)
                call, run = further, again
        for larger in enlarged_calls(call):
            again = self.attempt(larger, entry, hollow=True)
            if again.complete and again.launched == run.launched:
                self.send(larger, again, changes)
                return


def _where(error: BaseException, kernel_file: Path) -> str:
    """Return the innermost line that an exception passed through in the kernel file, or in another of the user's."""
    sites = failure_sites(error)
    own = [s for s in sites if os.path.realpath(s.file) == os.path.realpath(kernel_file)]
    if own:
        return f" (line {own[0].statement.lineno})"
    return f" ({Path(sites[0].file).name}, line {sites[0].statement.lineno})" if sites else ""
