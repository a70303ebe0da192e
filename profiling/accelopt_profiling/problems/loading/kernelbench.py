"""Load a problem in KernelBench's layout: ``Model``, ``get_inputs``, ``get_init_inputs``, for a kernel's ``ModelNew``.

``Model`` and ``ModelNew`` take the same arguments. As KernelBench does it, both are built after seeding the generators
alike, so that they draw the same weights when they make their parameters in the same order, and both stay in
training mode. What KernelBench compares loosely (1e-4 or 1e-2, one distribution) the gate's own rules compare.
"""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType
from typing import Any

from accelopt_profiling.jobs import Source
from accelopt_profiling.problems.discovery.entry import check_entry
from accelopt_profiling.problems.discovery.problem_files import KERNELBENCH
from accelopt_profiling.problems.loading.call import seed_everything, to_device
from accelopt_profiling.problems.loading.parameters import floating_buffers, parameter_shapes, redraw
from accelopt_profiling.problems.loading.python_problem import PythonProblem, problem_module
from accelopt_profiling.problems.problem import Call, Problem
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.worker.step_context import StepContext

WEIGHT_SEED = 42  # seed_num of KernelBench's eval_kernel_against_ref


class KernelBenchProblem(PythonProblem):
    def __init__(self, module: ModuleType, file: str, entry: str | None, source: Source) -> None:
        super().__init__(module, file, KERNELBENCH, source, entry, " (KernelBench's layout)")
        self.model = self._built

    def reference(self, inputs: list[Any]) -> list[Any] | None:
        import torch

        model = self._redrawn_model()
        if any(isinstance(v, torch.Tensor) and v.dtype == torch.float64 for v in inputs):
            model = model.double()
        if torch.cuda.is_available():
            model, inputs = model.cuda(), [to_device(v) for v in inputs]
        seed_everything(WEIGHT_SEED)
        with torch.no_grad():
            return self._outputs("Model", model(*inputs))

    def call(self, inputs: list[Any]) -> tuple[Call, list[Any]]:
        entry = self._entry or "ModelNew"
        if self._entry:
            check_entry(self._source.files[self._source.kernel], entry, None, self._source.kernel, self._file)
        return Call(entry, "model", seed=WEIGHT_SEED), [self._construction(), list(inputs)]

    def with_parameters(self, call: Call, seed: int) -> Call:
        """Return the call with parameters that are drawn anew from ``seed``, where the model has any."""
        model = self._built()
        shapes = parameter_shapes(model)
        return replace(call, parameters=shapes, parameter_seed=seed, buffers=floating_buffers(model))

    def parameters(self) -> list[Any]:
        """Return what the reference's model holds besides its inputs: its parameters and buffers."""
        model = self._redrawn_model()
        return [tensor.detach() for tensor in (*model.parameters(), *model.buffers())]

    def _redrawn_model(self) -> Any:
        model = self._built()
        if self.redrawn is not None:
            redraw(model, self.redrawn.parameters, self.redrawn.buffers, self.redrawn.parameter_seed)
        return model

    def _built(self) -> Any:
        """Return the reference's model, built as KernelBench builds it."""
        seed_everything(WEIGHT_SEED)
        return self._module.Model(*self._construction())

    def _construction(self) -> list[Any]:
        return self._as_list("get_init_inputs", self._module.get_init_inputs(), "a list")


def load_kernelbench_problem(
    context: StepContext, ref: ProblemRef, kernel_module: ModuleType | None
) -> Problem:
    module, file = problem_module(context, ref, kernel_module)
    return KernelBenchProblem(module, file, ref.entry, context.source)
