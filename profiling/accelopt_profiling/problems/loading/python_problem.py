"""What problems in Python files have in common, whatever their layout: inputs, the call, and what they state.

Optional names of such a file: ``tolerance`` (a number, or ``{"relative": ..., "absolute": ...}``) and ``shapes`` (a
list of keyword arguments for ``get_inputs``).
"""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from accelopt_profiling.problems.discovery.entry import find_entry
from accelopt_profiling.problems.discovery.problem_files import MODULE
from accelopt_profiling.problems.loading.call import perform, seed_everything
from accelopt_profiling.problems.problem import Call, Problem, ProblemError, Tolerance
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.worker.step_context import StepContext
from accelopt_profiling.worker.usercode import load_module


class PythonProblem(ABC):
    """A problem whose functions and classes ``module``, imported from ``file``, holds under ``names``.

    Raises:
        ProblemError: one of them is missing, or ``tolerance`` or ``shapes`` are not what they should be.
    """

    def __init__(self, module: ModuleType, file: str, names: Sequence[str], layout: str = "") -> None:
        self._module, self._file = module, file
        for name in names:
            if not callable(getattr(module, name, None)):
                what = "class" if name[0].isupper() else "function"
                message = f"{file} has no {what} `{name}`{layout}; add one."
                raise ProblemError("problem-invalid", message, file)
        self.tolerance = parse_tolerance(getattr(module, "tolerance", None), file)
        self.shapes: Sequence[Mapping[str, Any]] = parse_shapes(getattr(module, "shapes", []), file)
        self.axes = integer_axes(module.get_inputs)

    def inputs(self, seed: int, shape: Mapping[str, Any] | None = None) -> list[Any]:
        seed_everything(seed)
        drawn = self._module.get_inputs(**(shape or {}))
        return self._answer("get_inputs", drawn, "a list of inputs")

    @abstractmethod
    def reference(self, inputs: list[Any]) -> list[Any] | None:
        """See ``Problem``."""

    @abstractmethod
    def call(self, inputs: list[Any]) -> tuple[Call, list[Any]]:
        """See ``Problem``."""

    def run(self, module: ModuleType, inputs: list[Any]) -> list[Any]:
        call, arguments = self.call(inputs)
        return perform(module, call, arguments, self._file)

    def finish(self, outputs: list[Any], expected: list[Any]) -> list[Any]:
        return outputs

    def _answer(self, name: str, value: Any, wanted: str = "the right outputs") -> list[Any]:
        if value is None:
            raise ProblemError("problem-empty", f"`{name}` returned nothing; return {wanted}.", self._file)
        return list(value) if isinstance(value, (list, tuple)) else [value]


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


def problem_module(
    context: StepContext, ref: ProblemRef, kernel_module: ModuleType | None
) -> tuple[ModuleType, str]:
    """The imported file that holds the problem, and its path in the job: often the kernel file itself."""
    if ref.path is None or ref.path == context.source.kernel:
        return kernel_module or load_module(context), context.source.kernel
    return load_module(context, ref.path), ref.path


def parse_tolerance(value: Any, file: str | None) -> Tolerance:
    """``None``, a relative tolerance, or ``{"relative": ..., "absolute": ...}``, each finite and not negative."""
    if value is None:
        return Tolerance()
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = {"relative": value}
    if isinstance(value, Mapping) and set(value) <= {"relative", "absolute"}:
        numbers = {k: v for k, v in value.items() if v is not None}
        if all(isinstance(v, (int, float)) and math.isfinite(v) and v >= 0 for v in numbers.values()):
            return Tolerance(**{k: float(v) for k, v in numbers.items()})
    message = "`tolerance` must be a number >= 0 or {'relative': ..., 'absolute': ...}."
    raise ProblemError("problem-invalid", message, file)


def parse_shapes(value: Any, file: str | None) -> list[Mapping[str, Any]]:
    if (
        isinstance(value, Sequence)
        and not isinstance(value, str)
        and all(isinstance(s, Mapping) for s in value)
    ):
        return list(value)
    message = "`shapes` must be a list of dictionaries: keyword arguments for `get_inputs`."
    raise ProblemError("problem-invalid", message, file)


def integer_axes(get_inputs: Callable[..., Any]) -> Mapping[str, int]:
    """The arguments of ``get_inputs`` whose default is an integer above 1, with that default."""
    try:
        parameters = inspect.signature(get_inputs).parameters.values()
    except (TypeError, ValueError):
        return {}
    return {p.name: p.default for p in parameters if type(p.default) is int and p.default > 1}


def load_module_problem(context: StepContext, ref: ProblemRef, kernel_module: ModuleType | None) -> Problem:
    module, file = problem_module(context, ref, kernel_module)
    return ModuleProblem(module, file, ref.entry, context.source.files[context.source.kernel])
