"""Call a tritonbench operator: the class is built as its runner builds it, and each benchmark's function is called."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

from accelopt_profiling.comparison.values import leaves_in
from accelopt_profiling.problems.problem import Call, ProblemError
from accelopt_profiling.worker.project_modules import enter_package_root

#: What the runner's command line says where nobody says anything; all other options are None.
_OPTIONS = {"mode": "fwd", "device": "cuda", "precision": "bypass", "input_id": 0, "only_match_mode": "exact"}
#: By precision, the method of an operator that casts its inputs.
_CASTS = {"fp16": "enable_fp16", "bf16": "enable_bf16"}


class _Options(argparse.Namespace):
    """The runner's options, of whatever version: those that are not known are None."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return None


def operator_class(module: ModuleType, name: str, member: str) -> Any:
    """Return the operator's class: of the module itself, or where ``member`` is given of that member of its package."""
    if member:
        above = str(Path(str(module.__file__)).resolve().parents[member.count(".")])
        enter_package_root(member.split(".")[0], Path(above))
        module = importlib.import_module(member)
    operator = getattr(module, name, None)
    if operator is None:
        raise ProblemError("problem-invalid", f"There is no operator `{name}` to run.")
    return operator


def built_operator(cls: Any) -> Any:
    """Return an operator. Its inputs are not counted: that draws them all."""
    uncounted = {"count_example_inputs": lambda _: 1, "__module__": cls.__module__}
    return type(cls)(cls.__name__, (cls,), uncounted)(_Options(**_OPTIONS), [])


def cast_inputs(operator: Any, inputs: Any) -> Any:
    """Return the inputs in the operator's own precision, as the runner casts them."""
    operator.example_inputs = inputs
    cast = getattr(operator, _CASTS.get(str(operator.tb_args.precision), ""), None)
    if callable(cast):
        cast()
    return operator.example_inputs


def run_benchmarks(operator: Any, methods: list[str], arguments: list[Any], names: list[str]) -> list[Any]:
    """Return what each benchmark's function returns. ``names`` are those of the last arguments."""
    split = len(arguments) - len(names)
    positional, keywords = arguments[:split], dict(zip(names, arguments[split:], strict=True))
    operator.example_inputs = keywords if names else tuple(positional)
    results: list[Any] = []
    for name in methods:
        result = getattr(operator, name)(*positional, **keywords)
        results.append(result() if callable(result) else result)
    return results


def call_operator(module: ModuleType, call: Call, arguments: list[Any], built: dict[str, Any]) -> list[Any]:
    """Make a call of the style "operator" and return the tensors and numbers of all its benchmarks. Those of each are
    left in ``built`` under "returned"."""
    if "model" not in built:
        built["model"] = built_operator(operator_class(module, call.function, call.member))
    results = run_benchmarks(built["model"], call.methods, arguments, call.keywords)
    built["returned"] = [comparable(result) for result in results]
    return [value for values in built["returned"] for value in values]


def comparable(value: Any) -> list[Any]:
    """Return the tensors and numbers in what a call returned, however deep."""
    return [
        v
        for v in leaves_in(value)
        if type(v) in (int, float) or (hasattr(v, "dtype") and hasattr(v, "shape"))
    ]
