"""Record the calls that a kernel file makes of its own functions when it is run as a script."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from accelopt_profiling.problems.inference.failure_site import failed_check
from accelopt_profiling.problems.loading.call import copied
from accelopt_profiling.problems.loading.script_run import main_module, run_as_main, run_functions
from accelopt_profiling.problems.problem import ProblemError
from accelopt_profiling.worker.relative_imports import package_for
from accelopt_profiling.worker.step_context import StepContext

#: Calls of different shapes that are kept of one run.
MAX_CALLS = 8
_HOOK = "__accelopt_recorded__"


@dataclass(frozen=True)
class RecordedRun:
    """``module`` is the file after its run, ``calls`` are ``[function name, argument, ...]`` of the first call of each
    shape. ``differentiated`` are the functions that were called for gradients: of arguments that have one, with a
    result that has one. ``own_check`` is the check of the file's own that ended the run by failing, "" where none did.
    """

    module: ModuleType
    calls: list[list[Any]]
    differentiated: set[str]
    own_check: str = ""


def record_calls(context: StepContext, options: Mapping[str, Any]) -> RecordedRun:
    """Run the file and record the calls of its functions.

    A check of the file's own that fails ends its run, and what was recorded counts: versions are compared with the
    original, and what such a check compares with is computed on the CPU here, in half precision also where it sums.

    Raises:
        AssertionError: the file's own check failed before any call.
        ProblemError: none of them was called with arguments, so a candidate has nothing to be compared on.
    """
    names = [str(n) for n in options.get("recorded", [])]
    recorder = _Recorder()
    path = str(context.kernel_path)
    text = context.source.files[context.source.kernel]
    functions = [str(n) for n in options.get("functions", [])]
    tree = instrument(text, names)
    module = main_module(
        path, package_for(context.source.kernel, context.source.files, context.folder / "src")
    )
    module.__dict__[_HOOK] = recorder.wrap
    own_check = ""
    try:
        run_as_main(module, tree)
        run_functions(module, functions)
    except AssertionError as error:
        own_check = failed_check(error, path)
        if not recorder.calls:
            raise
    if not recorder.calls:
        listed = (
            f"none of {', '.join(f'`{n}`' for n in names)}" if names else "no function that takes the tensors"
        )
        message = (
            f"Running the file called {listed} with arguments, so a rewrite has nothing to be compared on. "
            "Add get_inputs() and reference(), or launch the kernel from a function that takes its inputs."
        )
        raise ProblemError("problem-invalid", message, context.source.kernel)
    vars(module).update({n: f.function for n, f in vars(module).items() if isinstance(f, _RecordedFunction)})
    for held in vars(module).values():
        if isinstance(held, type) and isinstance(method := vars(held).get("apply"), _RecordedApply):
            method.restore()
    return RecordedRun(module, recorder.calls, recorder.differentiated, own_check)


def instrument(text: str, names: Sequence[str]) -> ast.Module:
    """Return the file's tree in which each top-level function in ``names``, or ``Class.apply`` of an autograd function,
    is wrapped right after its definition."""
    tree = ast.parse(text)
    body: list[ast.stmt] = []
    for node in tree.body:
        body.append(node)
        of_class = isinstance(node, ast.ClassDef)
        plain = node.name if isinstance(node, ast.ClassDef) else defined_name(node)
        name = f"{plain}.apply" if of_class else plain
        if name in names:
            (wrapped,) = ast.parse(f"{name} = {_HOOK}({plain}, {name!r})").body
            body.append(wrapped)
            for inner in ast.walk(wrapped):
                ast.copy_location(inner, node)
    tree.body = body
    return tree


def defined_name(node: ast.stmt) -> str:
    """Return the name that a function definition or a plain assignment binds; "" for everything else."""
    if isinstance(node, ast.FunctionDef):
        return node.name
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return ""


class _Recorder:
    def __init__(self) -> None:
        self.calls: list[list[Any]] = []
        self.differentiated: set[str] = set()
        self._seen: set[str] = set()
        self.depth = 0

    def wrap(self, function: Callable[..., Any], name: str) -> Any:
        """Return what takes the place of a function, or of the ``apply`` of a class."""
        wrapper = _RecordedApply if isinstance(function, type) else _RecordedFunction
        return wrapper(function, name, self)

    def record(self, function: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
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


class _RecordedFunction:
    """Wraps a function: records its calls from outside recorded functions, passes everything else on."""

    def __init__(self, function: Any, name: str, recorder: _Recorder) -> None:
        self.function, self._name, self._recorder = function, name, recorder

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._recorder.depth == 0:
            self._recorder.record(self.function, self._name, args, kwargs)
        self._recorder.depth += 1
        try:
            result = self.function(*args, **kwargs)
        finally:
            self._recorder.depth -= 1
        outputs = result if isinstance(result, (list, tuple)) else [result]
        if _any_gradient([*args, *kwargs.values()]) and _any_gradient(outputs):
            self._recorder.differentiated.add(self._name)
        return result

    def __getitem__(self, grid: Any) -> Any:
        return self.function[grid]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.function, name)


class _RecordedApply:
    """Wraps the ``apply`` of one class, its own or an inherited one; classes that inherit from it have the original."""

    def __init__(self, owner: Any, name: str, recorder: _Recorder) -> None:
        self._owner, self._name, self._recorder = owner, name, recorder
        self._own = vars(owner).get("apply")

    def __get__(self, instance: Any, owner: Any) -> Any:
        inherited: Any = super(self._owner, owner)
        original = inherited.apply if self._own is None else self._own.__get__(instance, owner)
        return _RecordedFunction(original, self._name, self._recorder) if owner is self._owner else original

    def restore(self) -> None:
        """Give the class what it had."""
        if self._own is None:
            del self._owner.apply
        else:
            self._owner.apply = self._own


def _any_gradient(values: Sequence[Any]) -> bool:
    return any(getattr(value, "requires_grad", False) is True for value in values)


def _form(value: Any) -> str:
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{value.dtype}{tuple(value.shape)}"
    return repr(value)[:80]
