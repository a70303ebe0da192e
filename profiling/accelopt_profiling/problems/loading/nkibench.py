"""Load a problem in NKIBench's layout, as AccelOpt publishes it: NumPy functions beside an NKI kernel.

``get_inputs() -> list``, ``forward(*inputs)``, ``transform_to_nki_inputs(inputs) -> list`` (the kernel's
arguments) and ``transform_nki_outputs(result, reference) -> sequence`` (back to the reference's layout). The
kernel is called ``kernel`` or ``optimized_kernel``. NKIBench's own gate allows a relative L2 error of 2e-5
(its ``rel_tol``).
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from accelopt_profiling.jobs import Source
from accelopt_profiling.problems.discovery.problem_files import NKIBENCH
from accelopt_profiling.problems.loading.python_problem import PythonProblem, problem_module
from accelopt_profiling.problems.problem import Call, Problem, Tolerance
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.worker.step_context import StepContext

RELATIVE_TOLERANCE = 2e-5  # rel_tol of NKIBench's KernelWrapper, in float32


class NkiBenchProblem(PythonProblem):
    rearranges = True  # ``finish`` does something

    def __init__(self, module: ModuleType, file: str, entry: str | None, source: Source) -> None:
        super().__init__(module, file, NKIBENCH, source, entry, " (NKIBench's layout)")
        if getattr(module, "tolerance", None) is None:
            self.tolerance = Tolerance(RELATIVE_TOLERANCE)

    def reference(self, inputs: list[Any]) -> list[Any] | None:
        return self._outputs("forward", self._module.forward(*inputs))

    def call(self, inputs: list[Any]) -> tuple[Call, list[Any]]:
        changed = self._module.transform_to_nki_inputs(list(inputs))
        arguments = self._as_list("transform_to_nki_inputs", changed, "the kernel's arguments")
        return Call(self._entry_for(len(arguments))), arguments

    def finish(self, outputs: list[Any], expected: list[Any]) -> list[Any]:
        result = outputs[0] if len(outputs) == 1 else tuple(outputs)
        reference = expected[0] if len(expected) == 1 else tuple(expected)
        changed = self._module.transform_nki_outputs(result, reference)
        return self._as_list("transform_nki_outputs", changed, "the outputs in the reference's layout")


def load_nkibench_problem(context: StepContext, ref: ProblemRef, kernel_module: ModuleType | None) -> Problem:
    module, file = problem_module(context, ref, kernel_module)
    return NkiBenchProblem(module, file, ref.entry, context.source)
