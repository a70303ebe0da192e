"""Write an inferred call as a problem file, in torch or, for NKI, in NumPy, with a comment at each argument on its
reason.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from accelopt_profiling.problems.inference.arguments import InferredArgument, InferredCall, NoSizeError

_WIDTH = 108


def problem_text(call: InferredCall, remaining: str = "") -> str:
    """Return a problem file for ``call``, without a reference.

    ``remaining`` says what is still wrong with it.
    """
    name = call.entry
    lines = [
        f'"""Inputs of {name}, inferred from its source. Edit what does not fit: sizes, dtypes, values.',
        "",
        "There is no reference, so results are not checked. To check them, add a function `reference` that takes",
        "the same inputs and returns the right outputs in plain torch.",
        '"""',
        "",
        "import torch",
        "",
    ]
    if remaining:
        lines += [f"# Still to be mended: {' '.join(remaining.split())[:220]}", ""]
    lines.append(f'entry = "{name}"')
    lines.append("inferred = True  # remove it once the values are real: what goes wrong is then an error")
    if call.grid:
        lines += [
            "# The kernel is launched as it is: the inputs are its own arguments, and it runs one program a tile."
        ]
        lines.append(f"grid = {_listed(call.grid)}")
    if call.backward:
        lines.append("backward = True  # the gradients are computed too: their kernels run")
    if call.keywords:
        lines.append(f"keywords = {_listed(call.keywords)}")
    sizes = ", ".join(f"{name}={size}" for name, size in call.sizes.items())
    lines += ["", "", f"def get_inputs({sizes}):"]
    lines += [_line(call, argument) for argument in call.arguments]
    returned = "    return [" + ", ".join(_variable(a.name) for a in call.arguments) + "]"
    if len(returned) > _WIDTH:
        rows = "".join(f"        {_variable(a.name)},\n" for a in call.arguments)
        returned = f"    return [\n{rows}    ]"
    lines.append(returned)
    return "\n".join(lines) + "\n"


def _listed(names: list[str]) -> str:
    return "[" + ", ".join(f'"{name}"' for name in names) + "]"


def _variable(name: str) -> str:
    return f"{name}_" if name == "torch" else name


def _line(call: InferredCall, argument: InferredArgument) -> str:
    expression = argument.value if argument.kind == "value" else _tensor(call, argument)
    line = f"    {_variable(argument.name)} = {expression}"
    return f"{line}  # {argument.reason}" if argument.reason else line


def _tensor(call: InferredCall, argument: InferredArgument) -> str:
    shape = ", ".join(argument.dims)
    sized = f"({shape},)" if len(argument.dims) == 1 else f"({shape})"
    dtype, where = f"dtype=torch.{argument.dtype}", 'device="cuda"'
    if argument.fill == "offsets":
        count = argument.dims[0].removesuffix(" + 1") if argument.dims else "1"
        total = max(call.sizes.values(), default=1)
        longest = next((name for name, size in call.sizes.items() if size == total), str(total))
        step = f"{longest} // {count}" if count in call.sizes and count != longest else "1"
        return f"torch.arange({argument.dims[0]}, {where}, {dtype}) * ({step})"
    if argument.fill == "full":
        return f"torch.full({sized}, {_lowest(call)}, {where}, {dtype})"
    if argument.fill == "mask" or argument.dtype == "bool":
        return f"torch.rand({shape or '()'}, {where}) < 0.9"
    if argument.fill == "index":
        return f"torch.randint(0, {_lowest(call)}, {sized}, {where}, {dtype})"
    if argument.dtype.startswith(("int", "uint")):
        low = "0" if argument.dtype.startswith("uint") else "-8"
        return f"torch.randint({low}, 8, {sized}, {where}, {dtype})"
    if argument.dtype.startswith("float8"):
        return f"torch.randn({shape}, {where}).to(torch.{argument.dtype})"
    return f"torch.randn({shape or '()'}, {where}, {dtype})"


def _lowest(call: InferredCall) -> str:
    """Return the smallest size: an index below it is inside every dimension."""
    smallest = min((size for size in call.sizes.values() if size > 1), default=1)
    return next((name for name, size in call.sizes.items() if size == smallest), "1")


def nki_problem_text(
    call: InferredCall, remaining: str = "", module: str = "", involved: Collection[str] = ()
) -> str:
    """Return a problem file for ``call``, without a reference.

    ``remaining`` says what is still wrong with it, and ``involved`` are the arguments that the failing statement uses;
    ``module`` is the kernel file's name as a module.
    """
    lines = [
        f'"""Inputs of {call.entry}, inferred from its source. Edit what does not fit: sizes, dtypes, values.',
        "",
        "There is no reference, so results are not checked. To check them, add a function `reference` that takes",
        "the same inputs and returns the right outputs in plain NumPy.",
        '"""',
        "",
    ]
    marks = {name: "to be mended: " for name in involved if remaining}
    assignments = [
        f"    {a.name} = {argument_text(a, call)}  # {marks.get(a.name, '')}{a.reason or 'a guess'}"
        for a in call.arguments
    ]
    if any("ml_dtypes." in line for line in assignments):
        lines.append("import ml_dtypes")
    lines += ["import numpy as np", ""]
    if call.note:
        lines += [f"# {call.note}", ""]
    if call.imports:
        lines += [f"from {module} import {', '.join(call.imports)}", ""]
    if remaining:
        where = ", in the lines marked below" if marks else ""
        lines += [f"# Still to be mended{where}: {' '.join(remaining.split())[:220]}", ""]
    lines.append(f'entry = "{call.entry}"')
    lines.append("inferred = True  # remove it once the values are real: what goes wrong is then an error")
    if call.grid:
        lines.append(f"grid = {_listed(call.grid)}  # the programs of a launch, one expression an axis")
    if call.on_chip:
        lines.append(
            f"on_chip = {_listed(call.on_chip)}  # tiles in SBUF: they are loaded before the kernel begins"
        )
    if call.keywords:
        lines.append(f"keywords = {_listed(call.keywords)}")
    sizes = ", ".join(f"{name}={size}" for name, size in call.sizes.items())
    returned = ", ".join(a.name for a in call.arguments)
    return (
        "\n".join([*lines, "", "", f"def get_inputs({sizes}):", *assignments, f"    return [{returned}]"])
        + "\n"
    )


def argument_text(argument: InferredArgument, call: InferredCall) -> str:
    """Return the expression of an argument in NumPy. What only torch has becomes None."""
    if argument.kind == "value":
        value = re.sub(r"^torch\.(float32|float16|int32|int64)$", r"np.\1", argument.value)
        return "None" if "torch" in value or value == '"cuda"' else value
    shape = f"({', '.join(argument.dims)}{',' if len(argument.dims) == 1 else ''})"
    if argument.dtype == "bool":
        return f"np.random.random(size={shape}) < 0.9"
    if argument.dtype.startswith(("int", "uint")):
        bound = argument.bound or smallest_dimension(call)
        return f"np.random.randint(0, {bound}, size={shape}).astype(np.{argument.dtype})"
    normal = f"np.random.normal(size={shape})"
    in_numpy = argument.dtype in ("float16", "float32", "float64")
    return f"{normal}.astype({'np' if in_numpy else 'ml_dtypes'}.{argument.dtype})"


def smallest_dimension(call: InferredCall) -> int:
    """Return the smallest size: an index below it is inside every dimension."""
    sizes: list[int] = []
    for tensor in call.tensors:
        try:
            sizes += call.shape(tensor)
        except NoSizeError:
            continue
    return max(min((size for size in sizes if size > 1), default=2), 2)
