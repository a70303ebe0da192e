"""Problems of a file that runs its own kernels: in a ``__main__`` block, in its statements, tests or benchmarks.

There is no reference. To profile, ``ScriptProblem`` runs the file and the emulation watches its launches. To check a
candidate, ``RecordedCallsProblem`` records the calls that the original's own run makes of its functions, and candidate
and original get the same arguments.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from accelopt_profiling.problems.loading.call import copied, perform, seed_everything
from accelopt_profiling.problems.loading.script_run import record_calls, run_as_main, run_functions
from accelopt_profiling.problems.problem import Call, Problem, Tolerance
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.worker.step_context import StepContext
from accelopt_profiling.worker.usercode import load_module


class ScriptProblem:
    """Runs the file. ``run`` returns no outputs: the emulation measures the launches that it sees."""

    tolerance = Tolerance()
    shapes: Sequence[Mapping[str, Any]] = ()

    def __init__(self, path: str, file: str, options: Mapping[str, Any]) -> None:
        self._path, self._file = path, file
        self._main = bool(options.get("main"))
        self._functions = [str(name) for name in options.get("functions", [])]

    def inputs(self, seed: int, shape: Mapping[str, Any] | None = None) -> list[Any]:
        seed_everything(seed)
        return []

    def reference(self, inputs: list[Any]) -> list[Any] | None:
        return None

    def run(self, module: ModuleType, inputs: list[Any]) -> list[Any]:
        """Run the ``__main__`` block and the tests; the module's own statements ran when it was imported."""
        if self._main:
            run_as_main(
                self._path,
                ast.parse(Path(self._path).read_text(encoding="utf-8")),
                package=module.__package__,
            )
        run_functions(module, self._functions)
        return []

    def call(self, inputs: list[Any]) -> tuple[Call, list[Any]]:
        return Call("", "script"), []

    def finish(self, outputs: list[Any], expected: list[Any]) -> list[Any]:
        return outputs


class RecordedCallsProblem:
    """Repeats recorded calls.

    Inputs are ``[function name, argument, ...]`` of one call; further calls of other shapes are ``shapes``. The
    reference is the original function itself, which cannot be run in float64. Of a function that was called for
    gradients these are computed and compared too.
    """

    tolerance = Tolerance()
    float64 = False

    def __init__(self, context: StepContext, options: Mapping[str, Any]) -> None:
        self._context, self._options = context, options
        self._file = context.source.kernel
        self._calls: tuple[list[list[Any]], set[str]] | None = None
        self._original: ModuleType | None = None

    @property
    def shapes(self) -> Sequence[Mapping[str, Any]]:
        return [{"call": n} for n in range(1, len(self._recorded()[0]))]

    def inputs(self, seed: int, shape: Mapping[str, Any] | None = None) -> list[Any]:
        chosen = self._recorded()[0][int((shape or {}).get("call", 0))]
        seed_everything(seed)
        return [chosen[0], *(copied(v) for v in chosen[1:])]

    def reference(self, inputs: list[Any]) -> list[Any] | None:
        if self._original is None:
            self._original = load_module(self._context)
        return perform(self._original, *self.call(inputs), self._file)

    def run(self, module: ModuleType, inputs: list[Any]) -> list[Any]:
        return perform(module, *self.call(inputs), self._file)

    def call(self, inputs: list[Any]) -> tuple[Call, list[Any]]:
        name = str(inputs[0])
        return Call(name, backward=name in self._recorded()[1]), inputs[1:]

    def finish(self, outputs: list[Any], expected: list[Any]) -> list[Any]:
        return outputs

    def _recorded(self) -> tuple[list[list[Any]], set[str]]:
        if self._calls is None:
            self._calls = record_calls(self._context, self._options)
        return self._calls


def load_script_problem(context: StepContext, ref: ProblemRef, kernel_module: ModuleType | None) -> Problem:
    """Return the file as it runs itself; without the kernel's module (in the gate), the original's recorded calls."""
    if kernel_module is not None:
        return ScriptProblem(str(context.kernel_path), context.source.kernel, ref.options)
    return RecordedCallsProblem(context, ref.options)
