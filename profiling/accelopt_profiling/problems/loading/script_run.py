"""Run a kernel file as a script: its ``__main__`` block, its tests and benchmarks."""

from __future__ import annotations

import inspect
import sys
import unittest
from collections.abc import MutableMapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from accelopt_profiling.problems.problem import ProblemError

_WITH_A_VALUE = (
    inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY,
)  # fmt: skip


def run_script(module: ModuleType, path: str, functions: Sequence[str]) -> None:
    """Run what a file's import did not: its ``__main__`` block where ``path`` names the file, then ``functions``."""
    if path:
        main = main_module(path, module.__package__)
        run_as_main(main, vars(main))
    run_functions(module, functions)


def main_module(path: str, package: str | None) -> ModuleType:
    """Return an empty module for ``run_as_main``.

    ``package`` is the one that its relative imports start from.
    """
    module = ModuleType("__main__")
    module.__file__, module.__package__ = path, package
    return module


def run_as_main(module: ModuleType, bindings: MutableMapping[str, Any]) -> None:
    """Run the file of ``module`` as the main program with an empty command line; an exit without an error is no error.

    Its statements bind their names in ``bindings``, which is the module's dictionary or writes to it.
    """
    path = str(module.__file__)
    previous, argv = sys.modules.get("__main__"), sys.argv
    sys.modules["__main__"], sys.argv = module, [path]
    try:
        code = compile(Path(path).read_bytes(), path, "exec", dont_inherit=True)
        exec(code, vars(module), bindings)  # noqa: S102  (the user's own file)
    except SystemExit as stop:
        if stop.code not in (None, 0):
            raise
    finally:
        sys.argv = argv
        if previous is not None:
            sys.modules["__main__"] = previous


def run_functions(module: ModuleType, names: Sequence[str]) -> None:
    """Call tests and benchmarks, each with the first values of its parametrization."""
    for name in names:
        owner, _, method = name.rpartition(".")
        function = getattr(module, owner or name, None)
        if owner and isinstance(function, type) and issubclass(function, unittest.TestCase):
            _run_test(function(method))
        elif callable(function) and not owner:
            function(**first_parameters(function))


def _run_test(test: unittest.TestCase) -> None:
    """Run one test of unittest as it is written: skipped where it says so, and failing where that is expected."""
    function = getattr(test, test._testMethodName)
    marks = {getattr(mark, "name", "") for mark in getattr(function, "pytestmark", [])}
    expected = getattr(function, "__unittest_expecting_failure__", False) or "xfail" in marks
    try:
        test.debug()
    except unittest.SkipTest:
        return
    except Exception:
        if not expected:
            raise


def first_parameters(function: Any) -> dict[str, Any]:
    """Return the first value of each ``pytest.mark.parametrize`` of a test, by argument name.

    Raises:
        ProblemError: the test wants an argument that nothing gives.
    """
    arguments: dict[str, Any] = {}
    for mark in getattr(function, "pytestmark", []):
        if getattr(mark, "name", "") != "parametrize" or len(mark.args) < 2:
            continue
        names, rows = mark.args[0], list(mark.args[1])
        listed = [n.strip() for n in names.split(",")] if isinstance(names, str) else list(names)
        if rows:
            row = getattr(rows[0], "values", rows[0]) if not isinstance(rows[0], dict) else rows[0]
            values = list(row) if len(listed) > 1 or hasattr(rows[0], "marks") else [row]
            arguments.update(zip(listed, values, strict=False))
    for name, parameter in inspect.signature(function).parameters.items():
        if name not in arguments and parameter.default is parameter.empty and parameter.kind in _WITH_A_VALUE:
            message = (
                f"`{function.__name__}` wants the argument `{name}`, which only its test runner can give."
            )
            raise ProblemError("problem-invalid", message)
    return arguments
