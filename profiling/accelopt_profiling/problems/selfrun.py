"""A file that runs its own kernels: its ``__main__`` block, its own statements, its tests and benchmarks.

There is no reference. To profile, the file is run and its launches are watched. To check a candidate, the calls that
the original's own run makes of its functions are recorded, and candidate and original get the same arguments.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from accelopt_profiling.problems.call import Call
from accelopt_profiling.problems.problem import Problem, ProblemError, Tolerance
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.problems.seeding import seed_everything
from accelopt_profiling.worker.step import StepContext

_WITH_A_VALUE = (
    inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY,
)  # fmt: skip


class SelfrunProblem:
    """Runs the file. ``run`` returns no outputs: what counts are the launches that the emulation sees."""

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


def run_as_main(
    path: str, tree: ast.Module, names: Mapping[str, Any] | None = None, package: str | None = None
) -> ModuleType:
    """Run a file's tree as the main program with an empty command line; an exit without an error is no error.

    ``names`` are bound in the module before it runs; ``package`` is the one that its relative imports start from.
    """
    module = ModuleType("__main__")
    module.__file__, module.__package__ = path, package
    module.__dict__.update(names or {})
    previous, argv = sys.modules.get("__main__"), sys.argv
    sys.modules["__main__"], sys.argv = module, [path]
    try:
        exec(compile(tree, path, "exec", dont_inherit=True), module.__dict__)  # noqa: S102  (the user's own file)
    except SystemExit as stop:
        if stop.code not in (None, 0):
            raise
    finally:
        sys.argv = argv
        if previous is not None:
            sys.modules["__main__"] = previous
    return module


def run_functions(module: ModuleType, names: Sequence[str]) -> None:
    """Call tests and benchmarks, each with the first values of its parametrization."""
    for name in names:
        function = getattr(module, name, None)
        if callable(function):
            function(**first_parameters(function))


def first_parameters(function: Any) -> dict[str, Any]:
    """The first value of each ``pytest.mark.parametrize`` of a test, by argument name.

    Raises:
        ProblemError: the test wants an argument that nothing gives.
    """
    given: dict[str, Any] = {}
    for mark in getattr(function, "pytestmark", []):
        if getattr(mark, "name", "") != "parametrize" or len(mark.args) < 2:
            continue
        names, rows = mark.args[0], list(mark.args[1])
        listed = [n.strip() for n in names.split(",")] if isinstance(names, str) else list(names)
        if rows:
            row = getattr(rows[0], "values", rows[0]) if not isinstance(rows[0], dict) else rows[0]
            values = list(row) if len(listed) > 1 or hasattr(rows[0], "marks") else [row]
            given.update(zip(listed, values, strict=False))
    for name, parameter in inspect.signature(function).parameters.items():
        if name not in given and parameter.default is parameter.empty and parameter.kind in _WITH_A_VALUE:
            message = (
                f"`{function.__name__}` wants the argument `{name}`, which only its test runner can give."
            )
            raise ProblemError("problem-invalid", message)
    return given


def load_selfrun_problem(context: StepContext, ref: ProblemRef, kernel_module: ModuleType | None) -> Problem:
    """With the kernel's module, the file as it runs itself; without, the recorded calls of the original (the gate)."""
    path = str(context.kernel_path)
    if kernel_module is not None:
        return SelfrunProblem(path, context.source.kernel, ref.options)
    from accelopt_profiling.problems.recorded import RecordedProblem

    return RecordedProblem(context, ref.options)
