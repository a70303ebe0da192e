"""Write a problem file for an NKI kernel from its text and docstring: valid Python, to be completed."""

from __future__ import annotations

import ast
import re

from accelopt_profiling.kernels import Kernel, find_kernels
from accelopt_profiling.problems.discovery.entry import launchable_kernels, launchers
from accelopt_profiling.problems.inference.arguments import InferredArgument, InferredCall
from accelopt_profiling.problems.inference.entries import EntryCandidate
from accelopt_profiling.problems.inference.guess import guess_call
from accelopt_profiling.problems.inference.stated_sizes import apply_stated_sizes
from accelopt_profiling.problems.inference.usage import function_uses
from accelopt_profiling.source_text import parse_python


def problem_template(text: str, kernel: Kernel) -> str:
    """Return a problem file for ``kernel`` of the file ``text``: ``get_inputs`` with guessed shapes, no reference."""
    function = _entry(text, kernel)
    entry = function.name if function else kernel.name.split(".")[-1]
    lines = [
        f'"""Inputs of {entry}, guessed from its arguments. Edit what does not fit: sizes, dtypes, values.',
        "",
        "There is no reference, so results are not checked. To check them, add a function `reference` that takes",
        "the same inputs and returns the right outputs in plain NumPy.",
        '"""',
        "",
        "import numpy as np",
        "",
        f'entry = "{entry}"',
        "",
        "",
        *_inputs(InferredCall(entry) if function is None else _call(text, function)),
    ]
    return "\n".join(lines) + "\n"


def _call(text: str, function: ast.FunctionDef) -> InferredCall:
    """Guess the call of a kernel, or of a function that launches one, from how its text uses the parameters."""
    tree = parse_python(text)
    functions = function_uses(tree, set())
    if function.name not in functions:
        return InferredCall(function.name)
    call = guess_call(text, EntryCandidate(function.name, function.name, "function"), functions)
    apply_stated_sizes(call, tree, function)
    return call


def _entry(text: str, kernel: Kernel) -> ast.FunctionDef | None:
    """Return the function to call."""
    tree = parse_python(text)
    functions = {n.name: n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    own = functions.get(kernel.name.split("#")[0].split(".")[-1])
    called = [
        functions[n]
        for n in launchers(tree, set(launchable_kernels(find_kernels(text))))
        if own is not None and _launches(functions, functions[n], own.name)
    ]
    return called[0] if called else own


def _launches(
    functions: dict[str, ast.FunctionDef], function: ast.FunctionDef, kernel: str, depth: int = 4
) -> bool:
    names = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}
    if kernel in names:
        return True
    inner = [functions[n] for n in names if n in functions and n != function.name]
    return depth > 0 and any(_launches(functions, f, kernel, depth - 1) for f in inner)


def _inputs(call: InferredCall) -> list[str]:
    sizes = ", ".join(f"{name}={size}" for name, size in call.sizes.items())
    made = [f"    {a.name} = {_value(a, call)}  # {a.reason or 'a guess'}" for a in call.arguments]
    listed = ", ".join(a.name for a in call.arguments)
    return [f"def get_inputs({sizes}):", *made, f"    return [{listed}]"]


def _value(argument: InferredArgument, call: InferredCall) -> str:
    """Return an argument in NumPy. Floating-point tensors are float32; what only torch has becomes None."""
    if argument.kind == "value":
        value = re.sub(r"^torch\.(float32|float16|int32|int64)$", r"np.\1", argument.value)
        return "None" if "torch" in value or value == '"cuda"' else value
    shape = f"({', '.join(argument.dims)}{',' if len(argument.dims) == 1 else ''})"
    if argument.dtype.startswith(("int", "uint", "bool")):
        low = min((call.size_of(d) for t in call.tensors for d in t.dims if d in call.sizes), default=2)
        return f"np.random.randint(0, {max(low, 2)}, size={shape}).astype(np.int32)"
    return f"np.random.normal(size={shape}).astype(np.float32)"
