"""Guess the grid and the strides of a kernel that no function of its file launches."""

from __future__ import annotations

import ast
import re


def launch_grid(kernel: ast.FunctionDef, values: dict[str, str]) -> list[str]:
    """Return one expression for each axis that the kernel reads: its tiles of a size where the program's number is
    multiplied by a tile, the rows otherwise. ``values`` are the arguments that are no tensors.
    """
    axes = _programs(kernel)
    sizes = [n for n, v in values.items() if re.fullmatch(r"[a-z_ *]+", v)]
    return [_axis(kernel, axes.get(axis, ""), values, sizes) for axis in range(max(axes, default=0) + 1)]


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


def _axis(kernel: ast.FunctionDef, program: str, values: dict[str, str], sizes: list[str]) -> str:
    for node in ast.walk(kernel):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            sides = [ast.unparse(node.left), ast.unparse(node.right)]
            tile = next((s for s in sides if values.get(s, "").isdigit() and s in values), None)
            if tile and (program in sides or any("program_id" in s for s in sides)):
                bound = _bound(kernel, sizes, tile)
                return f"cdiv({bound}, {tile})" if bound else "1"
    rows = next((n for n in sizes if values[n] == "rows"), None)
    return rows or "512"


def _bound(kernel: ast.FunctionDef, sizes: list[str], tile: str) -> str | None:
    """Return the size that offsets are compared with."""
    for node in ast.walk(kernel):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Lt):
            right = ast.unparse(node.comparators[0])
            if right in sizes:
                return right
    return sizes[0] if sizes else None


def stride_values(names: list[str]) -> dict[str, str]:
    """Return values for the parameters that are strides: of contiguous rows, the last of a tensor's is 1."""
    strides = [n for n in names if "stride" in n.lower()]
    groups: dict[str, list[str]] = {}
    for name in strides:
        groups.setdefault(name[:-1] if len(name) > 1 else name, []).append(name)
    values: dict[str, str] = {}
    for members in groups.values():
        for place, name in enumerate(reversed(members)):
            one = place == 0 and (len(members) > 1 or bool(re.search(r"(col|_n|_k|1)$", name.lower())))
            values[name] = "1" if one else "columns"
    return values
