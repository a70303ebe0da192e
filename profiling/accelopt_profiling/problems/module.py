"""A problem as ``get_inputs()`` and ``reference(*inputs)``, in the kernel file or beside it.

Optional names: ``entry`` (function of the kernel file that takes the inputs, or its name), ``tolerance`` (a number,
or ``{"relative": ..., "absolute": ...}``), ``shapes`` (a list of keyword arguments for ``get_inputs``).
"""

from __future__ import annotations

import inspect
import random
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from accelopt_profiling.problems.problem import Problem, ProblemError, Tolerance
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.worker.step import StepContext
from accelopt_profiling.worker.usercode import load_module


def seed_everything(seed: int) -> None:
    """Seed every generator a problem may draw from: ``random``, NumPy, and torch where it is loaded."""
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % (1 << 32))
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)


def as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def parse_tolerance(value: Any, file: str | None) -> Tolerance:
    if value is None:
        return Tolerance()
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return Tolerance(relative=float(value))
    if isinstance(value, Mapping) and set(value) <= {"relative", "absolute"}:
        return Tolerance(**{k: float(v) for k, v in value.items()})
    message = "`tolerance` must be a number or {'relative': ..., 'absolute': ...}."
    raise ProblemError("problem-invalid", message, file)


class ModuleProblem:
    def __init__(self, module: ModuleType, file: str, entry: str | None) -> None:
        self._module, self._file = module, file
        for name in ("get_inputs", "reference"):
            if not callable(getattr(module, name, None)):
                raise ProblemError("problem-invalid", f"{file} has no function `{name}`.", file)
        named = entry or getattr(module, "entry", None)
        self._entry = named if isinstance(named, str) else getattr(named, "__name__", None)
        self.tolerance = parse_tolerance(getattr(module, "tolerance", None), file)
        shapes = getattr(module, "shapes", [])
        if not isinstance(shapes, Sequence) or not all(isinstance(s, Mapping) for s in shapes):
            message = "`shapes` must be a list of dictionaries: keyword arguments for `get_inputs`."
            raise ProblemError("problem-invalid", message, file)
        self.shapes: Sequence[Mapping[str, Any]] = shapes

    def inputs(self, seed: int, shape: Mapping[str, Any] | None = None) -> list[Any]:
        seed_everything(seed)
        drawn = self._module.get_inputs(**(shape or {}))
        if drawn is None:
            raise ProblemError("problem-empty", "`get_inputs` returned nothing; return a list of inputs.", self._file)
        return as_list(drawn)

    def reference(self, inputs: list[Any]) -> list[Any] | None:
        result = self._module.reference(*inputs)
        if result is None:
            raise ProblemError("problem-empty", "`reference` returned nothing; return the right outputs.", self._file)
        return as_list(result)

    def run(self, module: ModuleType, inputs: list[Any]) -> list[Any]:
        function = self._entry_point(module, len(inputs))
        result = function(*inputs)
        if result is None:
            name = getattr(function, "__name__", "the entry point")
            raise ProblemError("problem-empty", f"`{name}` returned nothing; return the outputs.", self._file)
        return as_list(result)

    def _entry_point(self, module: ModuleType, count: int) -> Any:
        if self._entry is not None:
            function = getattr(module, self._entry, None)
            if callable(function):
                return function
            raise ProblemError("problem-invalid", f"The kernel file has no function `{self._entry}` (`entry`).", self._file)
        from accelopt_profiling.problems.entry import guess_entry

        return guess_entry(module, count, self._file)


def load_module_problem(context: StepContext, ref: ProblemRef, kernel_module: ModuleType | None) -> Problem:
    if ref.path is None:
        module = kernel_module or load_module(context)
        return ModuleProblem(module, context.source.kernel, ref.entry)
    if inspect.getmodulename(ref.path) is None:
        raise ProblemError("problem-invalid", f"{ref.path} is not a Python file.", ref.path)
    return ModuleProblem(load_module(context, ref.path), ref.path, ref.entry)
