"""A problem as ``get_inputs()`` and ``reference(*inputs)``, in the kernel file or beside it.

Optional names: ``entry`` (function of the kernel file that takes the inputs, or its name), and those of every problem
in Python (``in_python``).
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from accelopt_profiling.problems.call import Call
from accelopt_profiling.problems.entry import find_entry
from accelopt_profiling.problems.in_python import PythonProblem, problem_module
from accelopt_profiling.problems.problem import Problem
from accelopt_profiling.problems.recognise import MODULE
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.worker.step import StepContext


class ModuleProblem(PythonProblem):
    """``kernel_text`` is the kernel file's text, in which the entry point is looked for."""

    def __init__(self, module: ModuleType, file: str, entry: str | None, kernel_text: str) -> None:
        super().__init__(module, file, MODULE)
        named = entry or getattr(module, "entry", None)
        self._entry = named if isinstance(named, str) else getattr(named, "__name__", None)
        self._kernel_text = kernel_text

    def reference(self, inputs: list[Any]) -> list[Any] | None:
        return self._answer("reference", self._module.reference(*inputs))

    def call(self, inputs: list[Any]) -> tuple[Call, list[Any]]:
        return Call(self._entry or find_entry(self._kernel_text, len(inputs), self._file)), inputs


def load_module_problem(context: StepContext, ref: ProblemRef, kernel_module: ModuleType | None) -> Problem:
    module, file = problem_module(context, ref, kernel_module)
    return ModuleProblem(module, file, ref.entry, context.source.files[context.source.kernel])
