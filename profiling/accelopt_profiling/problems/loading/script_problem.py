"""Problems of a file that runs its own kernels: in a ``__main__`` block, in its statements, tests or benchmarks.

There is no reference. To profile, ``ScriptProblem`` runs the file and the emulation watches its launches. To check a
candidate, ``RecordedCallsProblem`` records the calls that the original's own run makes of its functions, and candidate
and original get the same arguments.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from accelopt_profiling.problems.loading.call import copied, perform, seed_everything
from accelopt_profiling.problems.loading.script_run import (
    RecordedRun,
    main_module,
    record_calls,
    run_as_main,
    run_functions,
)
from accelopt_profiling.problems.problem import Call, Problem
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.worker.step_context import StepContext


class ScriptProblem(Problem):
    """Runs the file. ``run`` returns no outputs: the emulation measures the launches that it sees."""

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
            tree = ast.parse(Path(self._path).read_bytes())
            run_as_main(main_module(self._path, module.__package__), tree)
        run_functions(module, self._functions)
        return []

    def call(self, inputs: list[Any]) -> tuple[Call, list[Any]]:
        return Call("", "script"), []


class RecordedCallsProblem(Problem):
    """Repeats recorded calls.

    Inputs are ``[function name, argument, ...]`` of one call; further calls of other shapes are ``shapes``. The
    reference is the original function itself, which cannot be run in float64. Of a function that was called for
    gradients these are computed and compared too.
    """

    own_reference = False

    def __init__(self, context: StepContext, options: Mapping[str, Any]) -> None:
        self._context, self._options = context, options
        self._file = context.source.kernel
        self._run: RecordedRun | None = None
        self.shapes = _FurtherCalls(self._recorded)

    def inputs(self, seed: int, shape: Mapping[str, Any] | None = None) -> list[Any]:
        chosen = self._recorded().calls[int((shape or {}).get("call", 0))]
        seed_everything(seed)
        return [chosen[0], *(copied(v) for v in chosen[1:])]

    def reference(self, inputs: list[Any]) -> list[Any] | None:
        return self.run(self._recorded().module, inputs)

    def run(self, module: ModuleType, inputs: list[Any]) -> list[Any]:
        return perform(module, *self.call(inputs), self._file)

    def call(self, inputs: list[Any]) -> tuple[Call, list[Any]]:
        name, recorded = str(inputs[0]), self._recorded()
        return Call(name, backward=name in recorded.differentiated, own_check=recorded.own_check), inputs[1:]

    def _recorded(self) -> RecordedRun:
        if self._run is None:
            self._run = record_calls(self._context, self._options)
        return self._run


class _FurtherCalls(Sequence[Mapping[str, Any]]):
    """The cases of a recorded run, which is made when they are first asked for."""

    def __init__(self, recorded: Callable[[], RecordedRun]) -> None:
        self._recorded = recorded

    def __len__(self) -> int:
        return max(0, len(self._recorded().calls) - 1)

    def __getitem__(self, number: Any) -> Any:
        return [{"call": n} for n in range(1, len(self) + 1)][number]


def load_script_problem(context: StepContext, ref: ProblemRef, kernel_module: ModuleType | None) -> Problem:
    """Return the file as it runs itself; without the kernel's module (in the gate), the original's recorded calls."""
    if kernel_module is not None:
        return ScriptProblem(str(context.kernel_path), context.source.kernel, ref.options)
    return RecordedCallsProblem(context, ref.options)
