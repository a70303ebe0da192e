"""Calls that a file makes of its own functions when it runs, as a problem: the original's answers are the reference."""

from __future__ import annotations

import ast
import copy
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from accelopt_profiling.problems.call import Call, perform
from accelopt_profiling.problems.problem import ProblemError, Tolerance
from accelopt_profiling.problems.seeding import seed_everything
from accelopt_profiling.problems.selfrun import run_as_main, run_functions
from accelopt_profiling.worker.packages import package_for
from accelopt_profiling.worker.step import StepContext
from accelopt_profiling.worker.usercode import load_module

MAX_CALLS = 8
_HOOK = "__accelopt_recorded__"


class RecordedProblem:
    """Inputs are ``[function name, argument, ...]`` of a recorded call; further calls of other shapes are ``shapes``.

    The reference is the original function itself, so it cannot be asked for float64.
    """

    tolerance = Tolerance()
    float64 = False

    def __init__(self, context: StepContext, options: Mapping[str, Any]) -> None:
        self._context, self._options = context, options
        self._file = context.source.kernel
        self._calls: list[list[Any]] | None = None
        self._original: ModuleType | None = None

    @property
    def shapes(self) -> Sequence[Mapping[str, Any]]:
        return [{"call": n} for n in range(1, len(self._recorded()))]

    def inputs(self, seed: int, shape: Mapping[str, Any] | None = None) -> list[Any]:
        chosen = self._recorded()[int((shape or {}).get("call", 0))]
        seed_everything(seed)
        return [chosen[0], *(copied(v) for v in chosen[1:])]

    def reference(self, inputs: list[Any]) -> list[Any] | None:
        if self._original is None:
            self._original = load_module(self._context)
        return perform(self._original, Call(str(inputs[0])), inputs[1:], self._file)

    def run(self, module: ModuleType, inputs: list[Any]) -> list[Any]:
        return perform(module, Call(str(inputs[0])), inputs[1:], self._file)

    def call(self, inputs: list[Any]) -> tuple[Call, list[Any]]:
        return Call(str(inputs[0])), inputs[1:]

    def finish(self, outputs: list[Any], expected: list[Any]) -> list[Any]:
        return outputs

    def _recorded(self) -> list[list[Any]]:
        if self._calls is None:
            self._calls = record_calls(self._context, self._options)
        return self._calls


def record_calls(context: StepContext, options: Mapping[str, Any]) -> list[list[Any]]:
    """Run the file and keep the arguments of the first call of each shape of its recorded functions.

    Raises:
        ProblemError: none of them was called with arguments, so a candidate has nothing to be compared on.
    """
    names = [str(n) for n in options.get("recorded", [])]
    recorder = _Recorder()
    path = str(context.kernel_path)
    text = context.source.files[context.source.kernel]
    functions = [str(n) for n in options.get("functions", [])]
    tree = instrument(text, names)
    package = package_for(context.source.kernel, context.source.files, context.folder / "src")
    run_functions(run_as_main(path, tree, {_HOOK: recorder.wrap}, package), functions)
    if not recorder.calls:
        listed = (
            f"none of {', '.join(f'`{n}`' for n in names)}" if names else "no function that takes the tensors"
        )
        message = (
            f"Running the file called {listed} with arguments, so a rewrite has nothing to be compared on. "
            "Add get_inputs() and reference(), or launch the kernel from a function that takes its inputs."
        )
        raise ProblemError("problem-invalid", message, context.source.kernel)
    return recorder.calls


def instrument(text: str, names: Sequence[str]) -> ast.Module:
    """The file's tree with each top-level function in ``names`` handed to the recorder right after its definition."""
    tree = ast.parse(text)
    body: list[ast.stmt] = []
    for node in tree.body:
        body.append(node)
        name = defined_name(node)
        if name in names:
            call = ast.Call(ast.Name(_HOOK, ast.Load()), [ast.Name(name, ast.Load()), ast.Constant(name)], [])
            wrapped = ast.Assign([ast.Name(name, ast.Store())], call)
            body.append(ast.fix_missing_locations(ast.copy_location(wrapped, node)))
    tree.body = body
    return tree


def defined_name(node: ast.stmt) -> str:
    """The name that a function definition or a plain assignment binds; "" for everything else."""
    if isinstance(node, ast.FunctionDef):
        return node.name
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return ""


class _Recorder:
    def __init__(self) -> None:
        self.calls: list[list[Any]] = []
        self._seen: set[str] = set()
        self.depth = 0

    def wrap(self, function: Callable[..., Any], name: str) -> Any:
        return _Recorded(function, name, self)

    def note(self, function: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if kwargs:
            try:
                bound = inspect.signature(function).bind(*args, **kwargs)
            except (TypeError, ValueError):
                return
            args, kwargs = bound.args, bound.kwargs
        if kwargs or not args or len(self.calls) >= MAX_CALLS:
            return
        key = name + repr([_form(v) for v in args])
        if key not in self._seen:
            self._seen.add(key)
            self.calls.append([name, *(copied(v) for v in args)])


class _Recorded:
    """Stands in for a function: notes its calls from outside recorded functions, passes everything else on."""

    def __init__(self, function: Any, name: str, recorder: _Recorder) -> None:
        self._function, self._name, self._recorder = function, name, recorder

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._recorder.depth == 0:
            self._recorder.note(self._function, self._name, args, kwargs)
        self._recorder.depth += 1
        try:
            return self._function(*args, **kwargs)
        finally:
            self._recorder.depth -= 1

    def __getitem__(self, grid: Any) -> Any:
        return self._function[grid]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)


def _form(value: Any) -> str:
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{value.dtype}{tuple(value.shape)}"
    return repr(value)[:80]


def copied(value: Any) -> Any:
    """A copy with its own memory, so that what the call does to its arguments is not recorded."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    return copy.deepcopy(value)
