"""Record the calls that a kernel file makes of its own functions when it is run as a script."""

from __future__ import annotations

import inspect
from collections import UserDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from accelopt_profiling.failure_site import failed_check
from accelopt_profiling.problems.call import copied
from accelopt_profiling.problems.loading.script_run import main_module, run_as_main, run_functions
from accelopt_profiling.problems.problem import ProblemError
from accelopt_profiling.step_context import StepContext
from accelopt_profiling.worker.relative_imports import package_for

#: Calls of different shapes that are kept of one run.
MAX_CALLS = 8


@dataclass
class RecordedRun:
    """``module`` is the file after its run, ``calls`` are ``[function name, argument, ...]`` of the first call of each
    shape. ``differentiated`` are the functions that were called for gradients: of arguments that have one, with a
    result that has one. ``own_check`` is the check of the file's own that ended the run by failing, "" where none did.
    """

    module: ModuleType
    calls: list[list[Any]] = field(default_factory=list)
    differentiated: set[str] = field(default_factory=set)
    own_check: str = ""
    _seen: set[str] = field(default_factory=set)
    _depth: int = 0

    def call(self, function: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make a call of the file's function ``name``.

        Record it if it comes from outside of recorded functions.
        """
        if self._depth == 0:
            self._record(function, name, args, kwargs)
        self._depth += 1
        try:
            result = function(*args, **kwargs)
        finally:
            self._depth -= 1
        outputs = result if isinstance(result, (list, tuple)) else [result]
        if _any_gradient([*args, *kwargs.values()]) and _any_gradient(outputs):
            self.differentiated.add(name)
        return result

    def _record(self, function: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if kwargs:
            try:
                bound = inspect.signature(function).bind(*args, **kwargs)
            except (TypeError, ValueError):
                return
            args, kwargs = bound.args, bound.kwargs
        key = name + repr([_form(v) for v in args])
        if kwargs or not args or len(self.calls) >= MAX_CALLS or key in self._seen:
            return
        self._seen.add(key)
        self.calls.append([name, *(copied(v) for v in args)])


def record_calls(context: StepContext, options: Mapping[str, Any]) -> RecordedRun:
    """Run the file and record the calls of its functions.

    A check of the file's own that fails ends its run, and what was recorded counts: versions are compared with the
    original, and what such a check compares with is computed on the CPU here, in half precision also where it sums.

    Raises:
        AssertionError: the file's own check failed before any call.
        ProblemError: none of them was called with arguments, so a candidate has nothing to be compared on.
    """
    names, source = [str(n) for n in options.get("recorded", [])], context.source
    path = str(context.kernel_path)
    module = main_module(path, package_for(source.kernel, source.files, context.folder / "src"))
    run = RecordedRun(module)
    bindings = _Bindings(run, names)
    try:
        run_as_main(module, bindings)
        run_functions(module, [str(n) for n in options.get("functions", [])])
    except AssertionError as error:
        run.own_check = failed_check(error, path)
        if not run.calls:
            raise
    if not run.calls:
        listed = (
            f"none of {', '.join(f'`{n}`' for n in names)}" if names else "no function that takes the tensors"
        )
        message = (
            f"Running the file called {listed} with arguments, so a rewrite has nothing to be compared on. "
            "Add get_inputs() and reference(), or launch the kernel from a function that takes its inputs."
        )
        raise ProblemError("problem-invalid", message, source.kernel)
    bindings.restore()
    return run


class _Bindings(UserDict[str, Any]):
    """The names of a file while its statements run: what they bind under one of ``names``, a function or
    ``Class.apply`` of an autograd function, is recorded from then on.
    """

    def __init__(self, run: RecordedRun, names: Sequence[str]) -> None:
        self.data, self._run, self._names = vars(run.module), run, names

    def __setitem__(self, name: str, value: Any) -> None:
        method = f"{name}.apply"
        if isinstance(value, type) and method in self._names:
            setattr(value, "apply", _RecordedApply(value, method, self._run))  # noqa: B010 - of any class
        self.data[name] = _RecordedFunction(value, name, self._run) if name in self._names else value

    def restore(self) -> None:
        """Give the module what it would have without the recording."""
        for name, value in list(self.data.items()):
            if type(value) is _RecordedFunction:
                self.data[name] = value.recorded_function
            elif isinstance(value, type) and isinstance(method := vars(value).get("apply"), _RecordedApply):
                method.restore()


class _RecordedFunction:
    """Wraps a function: its calls go through the run, everything else is passed on, its class as well. So that nothing
    of it is hidden, no attribute here has a usual name.
    """

    def __init__(self, function: Any, name: str, run: RecordedRun) -> None:
        self.recorded_function, self.__name, self.__run = function, name, run

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__run.call(self.recorded_function, self.__name, args, kwargs)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # a kernel stays one for its toolchain
        return type(self.recorded_function)

    def __getitem__(self, grid: Any) -> Any:
        return self.recorded_function[grid]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.recorded_function, name)


class _RecordedApply:
    """Wraps the ``apply`` of one class, its own or an inherited one.

    Classes that inherit from it have the original.
    """

    def __init__(self, owner: Any, name: str, run: RecordedRun) -> None:
        self._owner, self._name, self._run = owner, name, run
        self._own = vars(owner).get("apply")

    def __get__(self, instance: Any, owner: Any) -> Any:
        inherited: Any = super(self._owner, owner)
        original = inherited.apply if self._own is None else self._own.__get__(instance, owner)
        return _RecordedFunction(original, self._name, self._run) if owner is self._owner else original

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
