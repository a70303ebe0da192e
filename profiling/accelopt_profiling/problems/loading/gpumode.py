"""Load a GPU MODE task for ``custom_kernel`` of a submission: ``generate_input`` and ``ref_kernel`` of its reference.

The first benchmark is the main case, and the other cases of ``task.yml`` are further shapes. A task that has only
``check_implementation`` tells nobody what the right result is: then the original's results are compared with. The
tolerance is that of the dtypes; the one inside ``check_implementation`` cannot be read.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from types import ModuleType
from typing import Any

from accelopt_profiling.problems.loading.call import perform, seed_everything
from accelopt_profiling.problems.problem import Call, Problem, ProblemError
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.worker.step_context import StepContext
from accelopt_profiling.worker.usercode import load_module


class GpuModeProblem(Problem):
    """The inputs are one value: the ``data`` that ``custom_kernel`` takes."""

    def __init__(
        self,
        module: ModuleType,
        cases: Sequence[Mapping[str, Any]],
        entry: str,
        file: str,
        original: Callable[[], ModuleType] | None,
    ) -> None:
        if not callable(getattr(module, "generate_input", None)):
            message = f"{file} has no function `generate_input` (GPU MODE's layout); add one."
            raise ProblemError("problem-invalid", message, file)
        self._module, self._cases, self._entry, self._file = module, cases, entry, file
        self._original = original
        self.own_reference = callable(getattr(module, "ref_kernel", None))
        self.shapes: Sequence[Mapping[str, Any]] = [{"case": n} for n in range(1, len(cases))]

    def inputs(self, seed: int, shape: Mapping[str, Any] | None = None) -> list[Any]:
        case = dict(self._cases[int((shape or {}).get("case", 0))])
        if "seed" in inspect.signature(self._module.generate_input).parameters:
            case["seed"] = (int(case.get("seed", 0)) + seed) % (1 << 31)
        seed_everything(seed)
        return [self._module.generate_input(**case)]

    def reference(self, inputs: list[Any]) -> list[Any] | None:
        if self.own_reference:
            return _as_list(self._module.ref_kernel(inputs[0]))
        return self.run(self._original(), inputs) if self._original else None

    def run(self, module: ModuleType, inputs: list[Any]) -> list[Any]:
        return perform(module, Call(self._entry), inputs, self._file)

    def call(self, inputs: list[Any]) -> tuple[Call, list[Any]]:
        return Call(self._entry), inputs


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def load_gpumode_problem(context: StepContext, ref: ProblemRef, kernel_module: ModuleType | None) -> Problem:
    """Load the task's ``reference.py``. Raises ProblemError, StepFailedError: what is wrong with it."""
    file = str(ref.path)
    module = load_module(context, file)
    original = cache(partial(load_module, context)) if kernel_module is None else None
    return GpuModeProblem(module, ref.options["cases"], ref.entry or "custom_kernel", file, original)
