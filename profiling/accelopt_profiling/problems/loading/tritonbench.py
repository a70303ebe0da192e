"""Load a tritonbench operator as a problem: ``get_input_iter`` gives the inputs, the baseline the expected results.

The benchmarks that launch the kernels are called one after another. A benchmark that returns more than the baseline (a
buffer for its own timing) is compared with the original's own result there, and one that returns nothing not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from types import ModuleType
from typing import Any

from accelopt_profiling.problems.loading.call import copied, seed_everything
from accelopt_profiling.problems.loading.operator_call import (
    built_operator,
    cast_inputs,
    comparable,
    operator_class,
    run_benchmarks,
)
from accelopt_profiling.problems.problem import Call, Problem, ProblemError
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.worker.step_context import StepContext
from accelopt_profiling.worker.usercode import load_module, user_errors

#: The argument of ``inputs``: the largest input of at most so many bytes is drawn.
_BYTES = "bytes"
#: The main case is the largest input up to so many bytes, of those that are drawn within _DRAWN bytes in all.
_LARGEST, _DRAWN = 64 << 20, 1 << 30
_INPUTS = 64
#: So many other inputs are further cases.
_OTHERS = 3


class TritonBenchProblem(Problem):
    """Inputs are one item of the operator's ``get_input_iter``."""

    def __init__(
        self, load: Callable[[], ModuleType], options: Mapping[str, Any], file: str, checked: bool
    ) -> None:
        self._load, self._file, self._checked = load, file, checked
        self._class, self._member = str(options["operator"]), str(options["member"])
        self._methods, self._baseline = [str(m) for m in options["methods"]], str(options["baseline"])
        self.own_reference = bool(self._baseline)
        self._returned: list[list[Any]] | None = None
        self._names: list[str] = []
        self._operator: Any = None
        self._sizes: list[int] = []

    def draw_sizes(self) -> None:
        """Build the operator and draw its inputs once, to know the bytes of each that is used."""
        sizes: list[int] = []
        self._operator = built_operator(operator_class(self._load(), self._class, self._member))
        seed_everything(0)
        with _zeros_for_random():
            for item in self._operator.get_input_iter():
                sizes.append(_bytes(item))
                if len(sizes) == _INPUTS or sizes[-1] > _LARGEST or sum(sizes) > _DRAWN:
                    break
        if not sizes:
            message = f"`get_input_iter` of {self._file} gives no inputs."
            raise ProblemError("problem-empty", message, self._file)
        self._sizes = [size for size in sizes if size <= _LARGEST] or sizes[:1]
        self.axes = {_BYTES: max(self._sizes)}  # where a check does not fit, it is made on a smaller input
        self.headline = f"an input of {max(self._sizes):,} bytes"
        others = sorted(set(self._sizes))[:-1]
        self.shapes = [{_BYTES: size} for size in others[:: max(1, -(-len(others) // _OTHERS))]]

    def inputs(self, seed: int, shape: Mapping[str, Any] | None = None) -> list[Any]:
        most = int(shape[_BYTES]) if shape else max(self._sizes)
        fitting = [n for n, size in enumerate(self._sizes) if size <= most]
        number = max(fitting, key=lambda n: self._sizes[n], default=self._sizes.index(min(self._sizes)))
        seed_everything(seed)
        drawn = iter(self._operator.get_input_iter())
        with _zeros_for_random():
            for _ in range(number):
                next(drawn)
        item = next(drawn)
        given = cast_inputs(self._operator, item)
        self._names = list(given) if isinstance(given, dict) else []
        values = list(given.values()) if isinstance(given, dict) else given
        return list(values) if isinstance(values, (list, tuple)) else [values]

    def reference(self, inputs: list[Any]) -> list[Any] | None:
        if not self._baseline and not self._checked:
            return None
        own = self._own(inputs)
        if not self._baseline:
            return [value for values in own for value in values]
        (result,) = run_benchmarks(self._operator, [self._baseline], inputs, self._names)
        right = comparable(result)
        expected = [(right[: len(values)] + values[len(right) :]) for values in own]
        return [value for values in expected for value in values] or None

    def _own(self, inputs: list[Any]) -> list[list[Any]]:
        """Return what the original's benchmarks return; of a call before, where there was one."""
        if self._returned is None:
            given = [copied(v) for v in inputs]
            results = run_benchmarks(self._operator, self._methods, given, self._names)
            self._returned = [comparable(result) for result in results]
        found, self._returned = self._returned, None
        return found

    def run(self, module: ModuleType, inputs: list[Any]) -> list[Any]:
        results = run_benchmarks(self._operator, self._methods, inputs, self._names)
        self._returned = [comparable(result) for result in results]
        return [value for values in self._returned for value in values]

    def call(self, inputs: list[Any]) -> tuple[Call, list[Any]]:
        call = Call(self._class, "operator", methods=self._methods, member=self._member, keywords=self._names)
        return call, inputs


@contextmanager
def _zeros_for_random() -> Iterator[None]:
    """Let random tensors be zeros, which cost no time: they are not used."""
    import torch

    def zeros(*size: Any, generator: Any = None, **options: Any) -> Any:
        return torch.zeros(*size, **options)

    before = {name: getattr(torch, name) for name in ("rand", "randn")}
    try:
        for name in before:
            setattr(torch, name, zeros)
        yield
    finally:
        for name, function in before.items():
            setattr(torch, name, function)


def _bytes(value: Any) -> int:
    if isinstance(value, dict):
        return _bytes(list(value.values()))
    if isinstance(value, (list, tuple)):
        return sum(map(_bytes, value))
    return int(value.nbytes) if hasattr(value, "nbytes") else 0


def load_tritonbench_problem(
    context: StepContext, ref: ProblemRef, kernel_module: ModuleType | None
) -> Problem:
    """Load the operator with the kernels of ``kernel_module``, or in the gate with those of the original.

    Raises:
        StepFailedError: the operator's file or its ``get_input_iter`` raised.
    """
    load = cache(partial(load_module, context)) if kernel_module is None else (lambda: kernel_module)
    file = ref.path or context.source.kernel
    problem = TritonBenchProblem(load, ref.options, file, checked=kernel_module is None)
    with user_errors(context):
        problem.draw_sizes()
    return problem
