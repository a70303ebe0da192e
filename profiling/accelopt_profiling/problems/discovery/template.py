"""Write a problem file for an NKI kernel from its signature: valid Python, to be completed."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from accelopt_profiling.kernels import Kernel, find_kernels
from accelopt_profiling.problems.discovery.entry import launchable_kernels, launchers
from accelopt_profiling.source_text import parse_python

#: Scalars by name: what a kernel's author most likely means by them.
_SCALARS = {
    "eps": "1e-5", "epsilon": "1e-5", "scale": "1.0", "sm_scale": "0.125", "alpha": "1.0", "beta": "0.0",
    "p": "0.5", "dropout_p": "0.0", "seed": "0", "lr": "1e-3", "causal": "True", "dim": "-1", "axis": "-1",
}  # fmt: skip


@dataclass(frozen=True)
class _Argument:
    name: str
    kind: str  # "tensor", "vector", "scalar"
    value: str = ""


def problem_template(text: str, kernel: Kernel) -> str:
    """Return a problem file for ``kernel`` of the file ``text``: ``get_inputs`` with guessed shapes, no reference."""
    function = _entry(text, kernel)
    arguments = [_argument(a) for a in _required(function)] if function else []
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
        *_inputs(arguments),
    ]
    return "\n".join(lines) + "\n"


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


def _required(function: ast.FunctionDef) -> list[ast.arg]:
    positional = [*function.args.posonlyargs, *function.args.args]
    return positional[: len(positional) - len(function.args.defaults)]


def _argument(argument: ast.arg) -> _Argument:
    """Classify an argument as tensor or number, from its annotation or its name."""
    name = argument.arg
    annotation = ast.unparse(argument.annotation) if argument.annotation else ""
    low = name.lower()
    if annotation in ("int", "float", "bool") or "constexpr" in annotation:
        default = {"float": "1.0", "bool": "False"}.get(annotation, "128")
        return _Argument(name, "scalar", _SCALARS.get(low, default))
    if "Tensor" in annotation or "tensor" in annotation:
        return _Argument(name, "vector" if _is_vector(low) else "tensor")
    if low in _SCALARS:
        return _Argument(name, "scalar", _SCALARS[low])
    if re.fullmatch(r"(n|m|k|n_?\w*(rows|cols|elements|size)|\w*stride\w*|block\w*|num_\w+)", low):
        return _Argument(name, "scalar", "1" if "stride" in low else "128")
    return _Argument(name, "vector" if _is_vector(low) else "tensor")


def _is_vector(name: str) -> bool:
    return bool(re.fullmatch(r"(w|b|weight|bias|gamma|beta|scale)(_?(ptr|tensor|in))?", name))


def _inputs(arguments: list[_Argument]) -> list[str]:
    sizes = ["rows=512", "columns=1024"]
    used = [s for s in sizes if s.startswith("columns") or any(a.kind == "tensor" for a in arguments)]
    made: list[str] = []
    for argument in arguments:
        if argument.kind == "scalar":
            made.append(f"    {argument.name} = {argument.value}")
            continue
        shape = "rows, columns" if argument.kind == "tensor" else "columns"
        size = f"({shape})" if "," in shape else f"({shape},)"
        made.append(f"    {argument.name} = np.random.normal(size={size}).astype(np.float32)")
    names = ", ".join(a.name for a in arguments)
    return [f"def get_inputs({', '.join(used if made else [])}):", *made, f"    return [{names}]"]
