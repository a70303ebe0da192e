"""A problem as ``get_inputs()`` and ``reference(*inputs)``, in the kernel file or beside it.

Optional names: ``entry`` (function of the kernel file that takes the inputs, or its name), ``tolerance`` (a
number, or ``{"relative": ..., "absolute": ...}``), ``shapes`` (a list of keyword arguments for
``get_inputs``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from accelopt_profiling.problems.axes import integer_axes
from accelopt_profiling.problems.call import Call, perform
from accelopt_profiling.problems.entry import find_entry
from accelopt_profiling.problems.problem import Problem, ProblemError, Tolerance
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.problems.seeding import seed_everything
from accelopt_profiling.worker.step import StepContext
from accelopt_profiling.worker.usercode import load_module


def as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def parse_tolerance(value: Any, file: str | None) -> Tolerance:
    """``None``, a relative tolerance, or ``{"relative": ..., "absolute": ...}``, each finite and not
    negative.
    """
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
        not isinstance(value, Sequence)
        or isinstance(value, str)
        or not all(isinstance(s, Mapping) for s in value)
    ):
        message = "`shapes` must be a list of dictionaries: keyword arguments for `get_inputs`."
        raise ProblemError("problem-invalid", message, file)
    return list(value)


class ModuleProblem:
    """``kernel_text`` is the kernel file's text, in which the entry point is looked for."""

    def __init__(self, module: ModuleType, file: str, entry: str | None, kernel_text: str) -> None:
        self._module, self._file, self._kernel_text = module, file, kernel_text
        for name in ("get_inputs", "reference"):
            if not callable(getattr(module, name, None)):
                raise ProblemError("problem-invalid", f"{file} has no function `{name}`; add one.", file)
        named = entry or getattr(module, "entry", None)
        self._entry = named if isinstance(named, str) else getattr(named, "__name__", None)
        self.tolerance = parse_tolerance(getattr(module, "tolerance", None), file)
        self.shapes: Sequence[Mapping[str, Any]] = parse_shapes(getattr(module, "shapes", []), file)
        self.axes = integer_axes(module.get_inputs)

    def inputs(self, seed: int, shape: Mapping[str, Any] | None = None) -> list[Any]:
        seed_everything(seed)
        drawn = self._module.get_inputs(**(shape or {}))
        if drawn is None:
            raise ProblemError(
                "problem-empty", "`get_inputs` returned nothing; return a list of inputs.", self._file
            )
        return as_list(drawn)

    def reference(self, inputs: list[Any]) -> list[Any] | None:
        result = self._module.reference(*inputs)
        if result is None:
            raise ProblemError(
                "problem-empty", "`reference` returned nothing; return the right outputs.", self._file
            )
        return as_list(result)

    def run(self, module: ModuleType, inputs: list[Any]) -> list[Any]:
        call, arguments = self.call(inputs)
        return perform(module, call, arguments, self._file)

    def call(self, inputs: list[Any]) -> tuple[Call, list[Any]]:
        return Call(self._entry or find_entry(self._kernel_text, len(inputs), self._file)), inputs

    def finish(self, outputs: list[Any], expected: list[Any]) -> list[Any]:
        return outputs


def load_module_problem(context: StepContext, ref: ProblemRef, kernel_module: ModuleType | None) -> Problem:
    text = context.source.files[context.source.kernel]
    if ref.path is None or ref.path == context.source.kernel:
        module = kernel_module or load_module(context)
        return ModuleProblem(module, context.source.kernel, ref.entry, text)
    return ModuleProblem(load_module(context, ref.path), ref.path, ref.entry, text)
