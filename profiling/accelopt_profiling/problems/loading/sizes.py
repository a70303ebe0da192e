"""The sizes of a problem, and how to make them smaller: a check may not fit at the size that is profiled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import CodeType, ModuleType
from typing import Any

from accelopt_profiling.problems.problem import Problem

#: Sizes above these are made smaller in steps of the number beside them, so that edges stay edges of a tile.
_STEPS = ((256, 128), (32, 16), (1, 1))
_SMALLEST = 16


class ProblemSizes:
    """The integers that the shapes of a problem come from, as they are now.

    They are arguments of ``get_inputs`` with integer defaults, or names of the problem's module that its functions
    read (``batch_size = 4096``). ``given`` are the arguments of the case that is profiled.
    """

    def __init__(self, problem: Problem, given: Mapping[str, Any] | None = None) -> None:
        self._problem = problem
        self._given = dict(given or {})
        self._module: ModuleType | None = getattr(problem, "module", None)
        arguments: Mapping[str, int] = getattr(problem, "axes", {})
        arguments = {**arguments, **{n: v for n, v in self._given.items() if n in arguments}}
        constants: Mapping[str, int] = getattr(problem, "constants", {})
        self._full = dict(arguments) or dict(constants)
        self._as_arguments = bool(arguments)
        self._now = dict(self._full)

    def at(self, smaller: Mapping[str, int]) -> ProblemSizes:
        """Take these sizes in the place of the problem's own; returns itself."""
        self._now = {**self._full, **{n: v for n, v in smaller.items() if n in self._full}}
        return self

    def halve(self) -> bool:
        """Halve the largest size; False where none can be made smaller."""
        name = max(self._now, key=lambda n: self._now[n], default=None)
        if name is None or self._now[name] <= _SMALLEST:
            return False
        self._now[name] = halved(self._now[name])
        return True

    @property
    def full(self) -> dict[str, int]:
        """The problem's own sizes."""
        return dict(self._full)

    @property
    def smaller(self) -> dict[str, int]:
        """The sizes that are not the problem's own."""
        return {n: v for n, v in self._now.items() if v != self._full[n]}

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Let the problem's module have these sizes until the block ends."""
        changed = {} if self._as_arguments or self._module is None else self.smaller
        names = vars(self._module) if self._module is not None else {}
        before = {name: names[name] for name in changed}
        try:
            names.update(changed)
            yield
        finally:
            names.update(before)

    def inputs(self, seed: int) -> list[Any]:
        """Draw the inputs at these sizes; to be called while they are ``applied``."""
        changed = self.smaller if self._as_arguments else {}
        shape = {**self._given, **changed}
        return self._problem.inputs(seed, shape) if shape else self._problem.inputs(seed)

    def __str__(self) -> str:
        """Return the smaller sizes beside the full ones: ``dim=6144 instead of 393216``."""
        return ", ".join(f"{n}={v} instead of {self._full[n]}" for n, v in self.smaller.items())


def halved(size: int) -> int:
    """Return about half of ``size`` that leaves the same rest when it is divided into tiles."""
    step = next(step for limit, step in _STEPS if size > limit or limit == 1)
    return max(1, size // 2 // step * step + size % step)


def integer_constants(module: ModuleType, functions: Iterable[Callable[..., Any]]) -> dict[str, int]:
    """Return the integers above 1 of ``module`` that ``functions`` read by name, with their values."""
    names: dict[str, int] = {}
    for function in functions:
        code = getattr(function, "__code__", None)
        for name in _names_read(code) if isinstance(code, CodeType) else ():
            value = vars(module).get(name)
            if type(value) is int and value > 1:
                names[name] = value
    return names


def _names_read(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_read(constant)
