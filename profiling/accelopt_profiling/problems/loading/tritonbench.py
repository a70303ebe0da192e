"""Load a tritonbench operator as a problem: ``get_input_iter`` gives the inputs, the baseline the expected results.

The benchmarks that launch the kernels are called one after another. A benchmark that returns more than the baseline (a
buffer for its own timing) is compared with the original's own result there, and one that returns nothing not at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from accelopt_profiling.comparison.values import leaves_in
from accelopt_profiling.problems.call import copied, seed_everything
from accelopt_profiling.problems.loading.operator_call import (
    built_operator,
    call_operator,
    cast_inputs,
    comparable,
    operator_class,
    run_benchmarks,
)
from accelopt_profiling.problems.problem import Call, Problem, ProblemError
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.step_context import StepContext
from accelopt_profiling.worker.usercode import load_module, user_errors

#: The argument of ``inputs``: the largest input of at most so many bytes is drawn.
_BYTES = "bytes"
#: The main case is the largest input up to so many bytes, of those that are drawn within _DRAWN bytes in all.
_LARGEST, _DRAWN = 64 << 20, 1 << 30
_INPUTS = 64
#: So many other inputs are further cases.
_OTHERS = 3


class OperatorInputs:
    """The inputs of an operator: items of its ``get_input_iter``, drawn once to know their ``sizes`` in bytes.

    ``names`` are those of the arguments that were drawn last, where they are passed by name.
    """

    def __init__(self, operator: Any, file: str) -> None:
        self._operator = operator
        self.names: list[str] = []
        sizes: list[int] = []
        seed_everything(0)
        with _zeros_for_random():
            for item in operator.get_input_iter():
                sizes.append(_bytes(item))
                if len(sizes) == _INPUTS or sizes[-1] > _LARGEST or sum(sizes) > _DRAWN:
                    break
        if not sizes:
            message = f"`get_input_iter` of {file} gives no inputs."
            raise ProblemError("problem-empty", message, file)
        self.sizes = [size for size in sizes if size <= _LARGEST] or sizes[:1]

    def draw(self, seed: int, shape: Mapping[str, Any] | None = None) -> list[Any]:
        """Draw the largest input of at most the bytes that ``shape`` says."""
        most = int(shape[_BYTES]) if shape else max(self.sizes)
        fitting = [n for n, size in enumerate(self.sizes) if size <= most]
        number = max(fitting, key=lambda n: self.sizes[n], default=self.sizes.index(min(self.sizes)))
        seed_everything(seed)
        drawn = iter(self._operator.get_input_iter())
        with _zeros_for_random():
            for _ in range(number):
                next(drawn)
        example = cast_inputs(self._operator, next(drawn))
        self.names = list(example) if isinstance(example, dict) else []
        values = list(example.values()) if isinstance(example, dict) else example
        return list(values) if isinstance(values, (list, tuple)) else [values]


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
    return sum(int(v.nbytes) for v in leaves_in(value) if hasattr(v, "nbytes"))


def load_tritonbench_problem(
    context: StepContext, ref: ProblemRef, kernel_module: ModuleType | None
) -> Problem:
    """Load the operator with the kernels of ``kernel_module``, or in the gate with those of the original.

    Raises:
        StepFailedError: the operator's file or its ``get_input_iter`` raised.
    """
    name, member, baseline = (str(ref.options[key]) for key in ("operator", "member", "baseline"))
    methods = [str(m) for m in ref.options["methods"]]
    file = ref.path or context.source.kernel
    with user_errors(context):
        module = load_module(context) if kernel_module is None else kernel_module
        operator = built_operator(operator_class(module, name, member))
        items = OperatorInputs(operator, file)
    shared: dict[str, Any] = {"model": operator}

    def call(inputs: list[Any]) -> tuple[Call, list[Any]]:
        return Call(name, "operator", methods=methods, member=member, keywords=items.names), inputs

    def own(inputs: list[Any]) -> list[list[Any]]:
        """Return what the original's benchmarks return. Of a call before, where there was one."""
        if "returned" not in shared:
            call_operator(module, call(inputs)[0], [copied(v) for v in inputs], shared)
        returned: list[list[Any]] = shared.pop("returned")
        return returned

    def reference(inputs: list[Any]) -> list[Any] | None:
        returned = own(inputs)
        if not baseline:
            return [value for values in returned for value in values]
        (result,) = run_benchmarks(operator, [baseline], inputs, items.names)
        right = comparable(result)
        expected = [(right[: len(values)] + values[len(right) :]) for values in returned]
        return [value for values in expected for value in values] or None

    others = sorted(set(items.sizes))[:-1]
    problem = Problem(
        items.draw, call, own_reference=bool(baseline), file=file, built=shared, may_be_empty=True
    )
    problem.axes = {_BYTES: max(items.sizes)}  # where a check does not fit, it is made on a smaller input
    problem.headline = f"an input of {max(items.sizes):,} bytes"
    problem.shapes = [{_BYTES: size} for size in others[:: max(1, -(-len(others) // _OTHERS))]]
    if baseline or kernel_module is None:
        problem.reference = reference
    return problem
