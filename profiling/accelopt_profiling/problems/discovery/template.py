"""Guess the call of an NKI kernel from its text and docstring, and write it as a problem file, to be completed."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from accelopt_profiling.kernels import Kernel, find_kernels
from accelopt_profiling.problems.discovery.entry import launchable_kernels, launchers
from accelopt_profiling.problems.inference.arguments import InferredCall
from accelopt_profiling.problems.inference.entries import EntryCandidate
from accelopt_profiling.problems.inference.guess import guess_call
from accelopt_profiling.problems.inference.launch_grid import indexed_grid
from accelopt_profiling.problems.inference.problem_text import nki_problem_text
from accelopt_profiling.problems.inference.stated_sizes import (
    apply_defaults,
    apply_stated_relations,
    apply_stated_sizes,
    bound_sizes,
    merge_alike_sizes,
)
from accelopt_profiling.problems.inference.usage import function_uses
from accelopt_profiling.source_text import syntax_of

#: Elements of a tensor: what is checked computes with all of them.
_MOST_ELEMENTS = 1 << 22


def problem_template(text: str, kernel: Kernel, why: str = "") -> str:
    """Return a problem file for ``kernel`` of the file ``text``: ``get_inputs`` with guessed shapes, no reference.

    ``why`` is the reason that nothing was run, which it states.
    """
    function = entry_functions(text, [kernel])
    name = function[0].name if function else kernel.name.split(".")[-1]
    return nki_problem_text(guessed_call(text, function[0]) if function else InferredCall(name), why)


def guessed_call(text: str, function: ast.FunctionDef) -> InferredCall:
    """Guess the call of a kernel, or of a function that launches one, from how its text uses the parameters. Tensors
    are float32, as NumPy has them, where nothing is said about their type."""
    tree = syntax_of(text)
    functions = function_uses(tree, set())
    if function.name not in functions:
        return InferredCall(function.name)
    call = guess_call(text, EntryCandidate(function.name, function.name, "function"), functions)
    apply_stated_relations(call, ast.get_source_segment(text, function) or "")
    merge_alike_sizes(call)
    apply_defaults(call, function)
    apply_stated_sizes(call, tree, function)
    bound_sizes(call, _MOST_ELEMENTS)
    if function.name in {k.name for k in find_kernels(text).kernels}:
        call.grid = indexed_grid(function)
    use_plain_types(call)
    return call


def use_plain_types(call: InferredCall) -> None:
    """Make tensors float32 or int32, as NumPy has them, where nothing of the code said which type they have."""
    for tensor in call.tensors:
        if "dtype" not in tensor.reason:
            tensor.dtype = {"bfloat16": "float32", "int64": "int32"}.get(tensor.dtype, tensor.dtype)


def entry_functions(text: str, kernels: Sequence[Kernel]) -> list[ast.FunctionDef]:
    """Return the functions to call for ``kernels``, likeliest first: those that launch them, then they themselves, or
    the function that a kernel is defined in."""
    tree = syntax_of(text)
    functions = {n.name: n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    launching = [functions[n] for n in launchers(tree, set(launchable_kernels(find_kernels(text))))]
    outermost = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
    chosen: list[ast.FunctionDef] = []
    for kernel in kernels:
        outer, *inner = kernel.name.split("#")[0].split(".")
        own = outermost.get(outer) or functions.get(inner[-1] if inner else outer)
        called = [f for f in launching if own is not None and _launches(functions, f, own.name)]
        chosen += [f for f in [*called[:1], own] if f is not None and f not in chosen]
    return chosen


def _launches(
    functions: dict[str, ast.FunctionDef], function: ast.FunctionDef, kernel: str, depth: int = 4
) -> bool:
    names = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}
    if kernel in names:
        return True
    inner = [functions[n] for n in names if n in functions and n != function.name]
    return depth > 0 and any(_launches(functions, f, kernel, depth - 1) for f in inner)
