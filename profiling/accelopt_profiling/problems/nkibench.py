"""A problem in NKIBench's layout, as AccelOpt publishes it: NumPy functions beside an NKI kernel.

``get_inputs() -> list``, ``forward(*inputs)``, ``transform_to_nki_inputs(inputs) -> list`` (the kernel's
arguments) and ``transform_nki_outputs(result, reference) -> sequence`` (back to the reference's layout). The
kernel is called ``kernel`` or ``optimized_kernel``. NKIBench's own gate allows a relative L2 error of 2e-5
(its ``rel_tol``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from accelopt_profiling.problems.axes import integer_axes
from accelopt_profiling.problems.call import Call, perform
from accelopt_profiling.problems.entry import find_entry
from accelopt_profiling.problems.module import as_list, parse_shapes, parse_tolerance
from accelopt_profiling.problems.problem import Problem, ProblemError, Tolerance
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.problems.seeding import seed_everything
from accelopt_profiling.worker.step import StepContext
from accelopt_profiling.worker.usercode import load_module

FUNCTIONS = ("get_inputs", "forward", "transform_to_nki_inputs", "transform_nki_outputs")
RELATIVE_TOLERANCE = 2e-5  # rel_tol of NKIBench's KernelWrapper, in float32


class NkiBenchProblem:
    rearranges = True  # ``finish`` does something

    def __init__(self, module: ModuleType, file: str, entry: str | None, kernel_text: str) -> None:
        self._module, self._file, self._entry, self._kernel_text = module, file, entry, kernel_text
        for name in FUNCTIONS:
            if not callable(getattr(module, name, None)):
                raise ProblemError(
                    "problem-invalid", f"{file} has no function `{name}` (NKIBench's layout).", file
                )
        stated = getattr(module, "tolerance", None)
        self.tolerance = Tolerance(RELATIVE_TOLERANCE) if stated is None else parse_tolerance(stated, file)
        self.shapes: Sequence[Mapping[str, Any]] = parse_shapes(getattr(module, "shapes", []), file)
        self.axes = integer_axes(module.get_inputs)

    def inputs(self, seed: int, shape: Mapping[str, Any] | None = None) -> list[Any]:
        seed_everything(seed)
        return self._answer("get_inputs", self._module.get_inputs(**(shape or {})))

    def reference(self, inputs: list[Any]) -> list[Any] | None:
        return self._answer("forward", self._module.forward(*inputs))

    def run(self, module: ModuleType, inputs: list[Any]) -> list[Any]:
        call, arguments = self.call(inputs)
        return perform(module, call, arguments, self._file)

    def call(self, inputs: list[Any]) -> tuple[Call, list[Any]]:
        arguments = self._answer(
            "transform_to_nki_inputs", self._module.transform_to_nki_inputs(list(inputs))
        )
        return Call(self._entry or find_entry(self._kernel_text, len(arguments), self._file)), arguments

    def finish(self, outputs: list[Any], expected: list[Any]) -> list[Any]:
        result = outputs[0] if len(outputs) == 1 else tuple(outputs)
        reference = expected[0] if len(expected) == 1 else tuple(expected)
        changed = self._module.transform_nki_outputs(result, reference)
        return self._answer("transform_nki_outputs", changed)

    def _answer(self, name: str, value: Any) -> list[Any]:
        if value is None:
            raise ProblemError("problem-empty", f"`{name}` returned nothing.", self._file)
        return as_list(value)


def load_nkibench_problem(context: StepContext, ref: ProblemRef, kernel_module: ModuleType | None) -> Problem:
    text = context.source.files[context.source.kernel]
    if ref.path is None or ref.path == context.source.kernel:
        return NkiBenchProblem(kernel_module or load_module(context), context.source.kernel, ref.entry, text)
    return NkiBenchProblem(load_module(context, ref.path), ref.path, ref.entry, text)
