"""A problem in KernelBench's layout: ``Model``, ``get_inputs`` and ``get_init_inputs``, with ``ModelNew`` in the kernel
file.

``Model`` and ``ModelNew`` take the same arguments. As KernelBench does it, both are built after seeding the generators
alike, so that they draw the same weights when they make their parameters in the same order, and both stay in
training mode. What KernelBench compares loosely (1e-4 or 1e-2, one distribution) the gate's own rules compare.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from accelopt_profiling.problems.axes import integer_axes
from accelopt_profiling.problems.call import Call, perform, to_device
from accelopt_profiling.problems.module import as_list, parse_shapes, parse_tolerance
from accelopt_profiling.problems.problem import Problem, ProblemError
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.problems.seeding import seed_everything
from accelopt_profiling.worker.step import StepContext
from accelopt_profiling.worker.usercode import load_module

WEIGHT_SEED = 42  # seed_num of KernelBench's eval_kernel_against_ref


class KernelBenchProblem:
    def __init__(self, module: ModuleType, file: str, entry: str | None) -> None:
        self._module, self._file, self._entry = module, file, entry or "ModelNew"
        for name in ("Model", "get_inputs", "get_init_inputs"):
            if not callable(getattr(module, name, None)):
                raise ProblemError("problem-invalid", f"{file} has no `{name}` (KernelBench's layout).", file)
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
        import torch

        seed_everything(WEIGHT_SEED)
        model = self._module.Model(*self._construction())
        if any(isinstance(v, torch.Tensor) and v.dtype == torch.float64 for v in inputs):
            model = model.double()
        if torch.cuda.is_available():
            model, inputs = model.cuda(), [to_device(v) for v in inputs]
        seed_everything(WEIGHT_SEED)
        with torch.no_grad():
            result = model(*inputs)
        if result is None:
            raise ProblemError(
                "problem-empty", "`Model` returned nothing; return the right outputs.", self._file
            )
        return as_list(result)

    def run(self, module: ModuleType, inputs: list[Any]) -> list[Any]:
        call, arguments = self.call(inputs)
        return perform(module, call, arguments, self._file)

    def call(self, inputs: list[Any]) -> tuple[Call, list[Any]]:
        return Call(self._entry, "model", seed=WEIGHT_SEED), [self._construction(), list(inputs)]

    def finish(self, outputs: list[Any], expected: list[Any]) -> list[Any]:
        return outputs

    def _construction(self) -> list[Any]:
        arguments = self._module.get_init_inputs()
        if arguments is None:
            raise ProblemError(
                "problem-empty", "`get_init_inputs` returned nothing; return a list.", self._file
            )
        return as_list(arguments)


def load_kernelbench_problem(
    context: StepContext, ref: ProblemRef, kernel_module: ModuleType | None
) -> Problem:
    if ref.path is None or ref.path == context.source.kernel:
        return KernelBenchProblem(kernel_module or load_module(context), context.source.kernel, ref.entry)
    return KernelBenchProblem(load_module(context, ref.path), ref.path, ref.entry)
