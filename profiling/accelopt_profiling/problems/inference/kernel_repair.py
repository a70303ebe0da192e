"""Repair an inferred call by what its launches met in the kernel: accesses out of bounds, and errors of the kernel."""

from __future__ import annotations

import ast
import re
from typing import Any

import torch

from accelopt_profiling.problems.inference.arguments import InferredArgument
from accelopt_profiling.problems.inference.pointers import pointers
from accelopt_profiling.problems.inference.subjects import CallSubjects


def repair_launch(execution: Any, subjects: CallSubjects, kernels: dict[str, ast.FunctionDef]) -> str | None:
    """Change the call by a ``LaunchExecution`` that failed or left its tensors; return what was changed, or None."""
    launch = execution.launch
    given = dict(zip(launch.fn.arg_names, launch.args, strict=False))
    if execution.error is None:
        return _first_enlarged(execution.faults, given, subjects)
    text = f"{type(execution.error).__name__}: {execution.error}"
    kernel = kernels.get(launch.fn.fn.__name__)
    if kernel is not None and re.search(r"ptr type|pointer|NoneType|no attribute", text):
        for name in pointers(kernel):
            if (
                name in given
                and not isinstance(given[name], torch.Tensor)
                and (own := _host_name(name, subjects))
            ) and (made := subjects.make_tensor(own, f"a pointer of {kernel.name}")):
                return made
    if matched := re.search(r"[Ee]xpected dtype \[?.*'fp32'.* but got (bf16|fp16)", text):
        short = {"bf16": "bfloat16", "fp16": "float16"}[matched[1]]
        changed = [t for t in subjects.call.tensors if t.dtype == short]
        for tensor in changed:
            subjects.set_dtype(tensor, "float32", f"{launch.name} takes no {short}")
        return "float32 in place of " + short if changed else None
    if "power of 2" in text or "power of two" in text:
        for size, value in subjects.call.sizes.items():
            if value & (value - 1):
                subjects.call.sizes[size] = 1 << value.bit_length()
                return f"{size} is a power of two"
    if matched := re.search(r"(?:K|M|N) >= (\d+)", text):
        small = [n for n, size in subjects.call.sizes.items() if 1 < size < int(matched[1])]
        if small:
            return subjects.resize(
                subjects.call.sizes[small[0]], int(matched[1]), "the least that tl.dot takes"
            )
    return _first_enlarged(execution.faults, given, subjects)


def _first_enlarged(faults: list[Any], given: dict[str, Any], subjects: CallSubjects) -> str | None:
    made = (_enlarge(given, fault.tensor, fault.element, subjects) for fault in faults)
    return next(filter(None, made), None)


def _enlarge(given: dict[str, Any], name: str, element: int, subjects: CallSubjects) -> str | None:
    """Give the tensor that an access left the shape of the largest one of the launch; fewer elements for none."""
    argument = subjects.argument_of(given.get(name))
    if argument is None:
        return _lower_indices(subjects)
    own = subjects.call.shape(argument)
    larger = [
        t
        for t in subjects.call.tensors
        if t is not argument and _count(t, subjects) > _count(argument, subjects)
    ]
    fitting = [t for t in larger if _count(t, subjects) > element]
    if fitting and argument.dtype not in ("int32", "int64"):
        smallest = min(fitting, key=lambda t: _count(t, subjects))
        return subjects.set_dims(
            argument, subjects.call.shape(smallest), f"as large as {smallest.name}: it is read there"
        )
    if fitting and element < 1 << 24:
        smallest = min(fitting, key=lambda t: _count(t, subjects))
        return subjects.set_dims(
            argument, subjects.call.shape(smallest)[: max(1, len(own))], "as large as it is read"
        )
    if len(own) == 1 and element < 1 << 24:
        wanted = 1 << element.bit_length()
        return subjects.set_dims(argument, [wanted], "as large as it is read")
    return _lower_indices(subjects)


def _lower_indices(subjects: CallSubjects) -> str | None:
    """Point all indices at the first element: a larger one left a tensor."""
    for argument in subjects.call.tensors:
        if argument.fill in ("index", "full") and "1" not in argument.value:
            argument.fill, argument.value = "index", "1"
            return f"{argument.name} holds zeros"
    return None


def _count(argument: InferredArgument, subjects: CallSubjects) -> int:
    count = 1
    for size in subjects.call.shape(argument):
        count *= size
    return count


def _host_name(pointer: str, subjects: CallSubjects) -> str | None:
    """Return the parameter of the entry that has the name of a kernel's pointer, without its ending."""
    plain = pointer.lower().removesuffix("_ptr").removesuffix("_pointer").removesuffix("ptr").strip("_")
    names = {name.lower().strip("_"): name for name in subjects.parameters}
    return names.get(plain) or names.get(pointer.lower())
