"""Guess the grid of a kernel that no function of its file launches."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

#: A size, or a product of sizes.
_SIZE = re.compile(r"(?!(?:None|True|False)$)[A-Za-z_]\w*( \* [A-Za-z_]\w*)*")


def launch_grid(
    kernel: ast.FunctionDef, values: dict[str, str], rows: set[str], strides: Mapping[str, str]
) -> list[str]:
    """Return one expression for each axis that the kernel reads: its tiles of a size where the program's number is
    multiplied by a tile, the dimension where it is multiplied by the stride of one, the rows otherwise. ``values`` are
    the arguments that are no tensors, ``rows`` the sizes that tensors begin with, ``strides`` the dimensions that
    strides step along.
    """
    axes = _programs(kernel)
    sizes = [n for n, v in values.items() if _SIZE.fullmatch(v)]
    numbers = range(max(axes, default=0) + 1)
    return [
        _axis(kernel, axes.get(axis, ""), values=values, sizes=sizes, rows=rows, strides=strides)
        for axis in numbers
    ]


def indexed_grid(kernel: ast.FunctionDef) -> list[str]:
    """Return the grid of a kernel that indexes its arguments with the program's numbers, ``x[program_id(0)]``: one
    program for each index, an expression of the arguments for each axis. [] where it reads no axis so."""
    programs = {name: axis for axis, name in _programs(kernel).items() if name}
    parameters = {a.arg for a in (*kernel.args.posonlyargs, *kernel.args.args, *kernel.args.kwonlyargs)}
    axes: dict[int, str] = {}
    for node in ast.walk(kernel):
        if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
            continue
        entries = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for at, entry in enumerate(entries if node.value.id in parameters else []):
            if isinstance(entry, ast.Name) and entry.id in programs:
                axes.setdefault(programs[entry.id], f"{node.value.id}.shape[{at}]")
    return [axes.get(axis, "1") for axis in range(max(programs.values()) + 1)] if axes else []


def _programs(kernel: ast.FunctionDef) -> dict[int, str]:
    """Return the axes that the kernel reads the program's number of, and the names that it gives them."""
    axes: dict[int, str] = {}
    for node in ast.walk(kernel):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("program_id"):
            place = (
                node.args[0] if node.args else next((k.value for k in node.keywords if k.arg == "axis"), None)
            )
            axis = place.value if isinstance(place, ast.Constant) and type(place.value) is int else 0
            axes.setdefault(axis, "")
    for node in ast.walk(kernel):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            for axis in axes:
                if f"program_id({axis})" in ast.unparse(node.value).replace("axis=", ""):
                    axes[axis] = axes[axis] or node.targets[0].id
    return axes


def _axis(
    kernel: ast.FunctionDef,
    program: str,
    values: dict[str, str],
    sizes: list[str],
    rows: set[str],
    strides: Mapping[str, str],
) -> str:
    assigned = _single_assignments(kernel)
    for node in ast.walk(kernel):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            sides = [node.left, node.right]
            for one, tile in (sides, sides[::-1]):
                is_program = ast.unparse(one) == program or "program_id" in ast.unparse(one)
                product = _factors(tile, assigned) if is_program and not _names_stride(tile) else []
                if product and all(values.get(f, f).isdigit() for f in product):
                    product += _later_factors(kernel, node, assigned, values)
                    bound = _bound(kernel, sizes)
                    return f"cdiv({bound}, {' * '.join(product)})" if bound else "1"
    if tiles := _grouped_tiles(kernel, program, assigned):
        return " * ".join(tiles)
    for node in ast.walk(kernel):
        if program and isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            names = {ast.unparse(node.left), ast.unparse(node.right)}
            if program in names and (stepped := next((strides[n] for n in names if n in strides), "")):
                return stepped
    return next((n for n in sizes if values[n] in rows), "512")


def _names_stride(node: ast.expr) -> bool:
    return any(isinstance(n, ast.Name) and "stride" in n.id.lower() for n in ast.walk(node))


def _grouped_tiles(kernel: ast.FunctionDef, program: str, assigned: dict[str, ast.expr]) -> list[str]:
    """Return the numbers of tiles whose product numbers the programs of a kernel that takes its tile from the program's
    number by division, ``pid // tiles``; [] for another kernel."""
    divided = (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, (ast.FloorDiv, ast.Mod))
        and ast.unparse(node.left) == program
        for node in ast.walk(kernel)
    )
    if not program or not any(divided):
        return []
    loops = (n.iter for n in ast.walk(kernel) if isinstance(n, ast.For))
    looped = {n.id for bounds in loops for n in ast.walk(bounds) if isinstance(n, ast.Name)}
    return [
        ast.unparse(value).removeprefix("tl.").removeprefix("triton.")
        for name, value in assigned.items()
        if isinstance(value, ast.Call) and ast.unparse(value.func).endswith("cdiv") and name not in looped
    ]


def _single_assignments(kernel: ast.FunctionDef) -> dict[str, ast.expr]:
    """Return the values of the names that are assigned once."""
    values: dict[str, list[ast.expr]] = {}
    for node in ast.walk(kernel):
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(target, ast.Name) and node.value:
            values.setdefault(target.id, []).append(node.value)
    return {name: expressions[0] for name, expressions in values.items() if len(expressions) == 1}


def _factors(node: ast.expr, assigned: dict[str, ast.expr]) -> list[str]:
    """Return the names and numbers whose product a tile is, through names that hold such products; [] for another
    expression."""
    if isinstance(node, ast.Name):
        inner = _factors(assigned[node.id], {}) if node.id in assigned else []
        return inner or [node.id]
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return [str(node.value)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        left, right = _factors(node.left, assigned), _factors(node.right, assigned)
        return left + right if left and right else []
    return []


def _later_factors(
    kernel: ast.FunctionDef, start: ast.BinOp, assigned: dict[str, ast.expr], values: dict[str, str]
) -> list[str]:
    """Return what a program's first tile is multiplied by where offsets are made of it: ``block * BLOCK``."""
    holder = next((name for name, value in assigned.items() if value is start), None)
    for node in ast.walk(kernel):
        if holder and isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            sides = [node.left, node.right]
            for one, other in (sides, sides[::-1]):
                factors = _factors(other, assigned) if ast.unparse(one) == holder else []
                if factors and all(values.get(f, f).isdigit() for f in factors):
                    return factors
    return []


def _bound(kernel: ast.FunctionDef, sizes: list[str]) -> str | None:
    """Return the size that offsets are compared with."""
    for node in ast.walk(kernel):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Lt):
            right = ast.unparse(node.comparators[0])
            if right in sizes:
                return right
    return sizes[0] if sizes else None
