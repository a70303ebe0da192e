"""Find host code that treats some shapes differently without refusing them, and the numbers that a file compares sizes
with: above and below them it may take another way.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping

from accelopt_profiling.gate.reading.names import ResolvedNames, StaticFinding

_SIZES = frozenset(["shape", "size", "numel", "nelement", "ndim", "stride"])


def special_shapes(names: ResolvedNames) -> Iterator[StaticFinding]:
    """Yield branches on sizes against numbers of which one returns, sizes capped by a number, and kernels that
    compare their place or a size with a number.

    None of it is certain: it matters where the candidate turns out wrong at another shape.
    """
    sizes = _names_of_sizes(names)
    for node in ast.walk(names.tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name in names.kernels:
            yield from _in_kernel(names, node)
        if names.in_kernel(node):
            continue
        if isinstance(node, ast.If) and _compares(node.test, sizes) and not _refuses(node):
            returns = any(isinstance(s, ast.Return) for s in [*node.body, *node.orelse])
            if returns:
                message = "It treats some sizes in a way of their own."
                yield StaticFinding("special-shape", "branch", node.lineno, message)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "min":
            capped = any(_is_size(a, sizes) for a in node.args)
            if capped and any(isinstance(a, ast.Constant) for a in node.args):
                yield StaticFinding("special-shape", "cap", node.lineno, "It caps a size with a number.")


def _in_kernel(
    names: ResolvedNames, kernel: ast.FunctionDef | ast.AsyncFunctionDef
) -> Iterator[StaticFinding]:
    places = _places(names, kernel)
    for node in ast.walk(kernel):
        operands: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and (names.dotted(node.func) or ast.unparse(node.func)) in _CAPS:
            operands = list(node.args)
        numbers = [n.value for n in operands if isinstance(n, ast.Constant) and type(n.value) is int]
        if any(n > 1 for n in numbers) and any(_is_place(o, places) for o in operands):
            message = "A kernel compares its place or a size with a number."
            yield StaticFinding("special-shape", "kernel", getattr(node, "lineno", 1), message)


_CAPS = ("min", "triton.language.minimum")


def _places(names: ResolvedNames, kernel: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Names that hold where a program is, and parameters that are no addresses."""
    pointers: set[str] = set()
    for call, called in names.calls(kernel):
        if called.split(".")[-1] in ("load", "store", "dma_copy") or called.startswith(
            "triton.language.atomic"
        ):
            pointers |= {base for a in call.args[:1] if (base := _base(a)) is not None}
    arguments = {a.arg for a in [*kernel.args.posonlyargs, *kernel.args.args, *kernel.args.kwonlyargs]}
    found = arguments - pointers
    for node in ast.walk(kernel):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            called_here = {called.split(".")[-1] for _, called in names.calls(node.value)}
            if called_here & {"program_id", "arange"} and "load" not in called_here:
                found.add(node.targets[0].id)
    return found


def _base(address: ast.expr) -> str | None:
    """Return the name that an address starts with: ``x_ptr`` of ``x_ptr + row * n + columns``."""
    while isinstance(address, (ast.BinOp, ast.Subscript)):
        address = address.left if isinstance(address, ast.BinOp) else address.value
    return address.id if isinstance(address, ast.Name) else None


def _is_place(node: ast.expr, places: set[str]) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in _SIZES
    if isinstance(node, ast.Subscript):
        return _is_place(node.value, places)
    return isinstance(node, ast.Name) and node.id in places


def _names_of_sizes(names: ResolvedNames) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(names.tree):
        if isinstance(node, ast.Assign) and _is_size(node.value, found):
            for target in node.targets:
                found |= {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
    return found


def _is_size(node: ast.AST, sizes: set[str]) -> bool:
    return any(
        (isinstance(n, ast.Attribute) and n.attr in _SIZES) or (isinstance(n, ast.Name) and n.id in sizes)
        for n in ast.walk(node)
    )


def _compares(test: ast.expr, sizes: set[str]) -> bool:
    for node in ast.walk(test):
        if isinstance(node, ast.Compare) and _is_size(node, sizes):
            numbers = [n for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, int)]
            if any(n.value > 1 for n in numbers if isinstance(n.value, int)):
                return True
    return False


def _refuses(node: ast.If) -> bool:
    return any(isinstance(s, ast.Raise) for s in node.body)


#: Smaller numbers are ranks and counts of arguments; larger ones no size that anybody can check.
_LEAST, _MOST = 16, 1 << 40
_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Mult: operator.mul, ast.Add: operator.add, ast.Sub: operator.sub, ast.FloorDiv: operator.floordiv,
}  # fmt: skip
_ORDER = (ast.Gt, ast.GtE, ast.Lt, ast.LtE)


#: The largest numbers of the integers that a place may be cut to.
_NARROW = {"int8": 127, "uint8": 255, "int16": 32767, "uint16": 65535}


def size_limits(names: ResolvedNames) -> Iterator[int]:
    """Yield the whole numbers that anything is compared with by order, in host code, heuristics and kernels, but for
    what only raises, and the largest ones of the types that kernels cut places to.
    """
    yield from _narrow_places(names)
    constants = _constants(names.tree)
    for node in ast.walk(names.tree):
        if not isinstance(node, ast.Compare) or not any(isinstance(op, _ORDER) for op in node.ops):
            continue
        parent = names.parents.get(node)
        if isinstance(parent, ast.Assert) or (isinstance(parent, ast.If) and _only_raises(parent)):
            continue
        values = [_value(side, constants) for side in (node.left, *node.comparators)]
        if None in values:  # the other side is what is looked at
            yield from (v for v in values if v is not None and _LEAST <= v <= _MOST)


def _narrow_places(names: ResolvedNames) -> Iterator[int]:
    for kernel in ast.walk(names.tree):
        if (
            not isinstance(kernel, (ast.FunctionDef, ast.AsyncFunctionDef))
            or kernel.name not in names.kernels
        ):
            continue
        places = _places(names, kernel)
        for call, called in names.calls(kernel):
            method = isinstance(call.func, ast.Attribute) and call.func.attr == "to"
            if not call.args or not (method or called == "triton.language.cast"):
                continue
            source: ast.expr = call.args[0] if called else getattr(call.func, "value", call)
            name = (names.dotted(call.args[-1] if called else call.args[0]) or "").rpartition(".")[2]
            if name in _NARROW and _follows_place(names, source, places):
                yield _NARROW[name]


def _follows_place(names: ResolvedNames, source: ast.expr, places: set[str]) -> bool:
    """Check whether an expression is computed from where a program is, and from no data."""
    parts = {called.rpartition(".")[2] for _, called in names.calls(source)}
    inner = any(isinstance(n, ast.expr) and _is_place(n, places) for n in ast.walk(source))
    return "load" not in parts and (inner or bool(parts & {"program_id", "arange"}))


def _only_raises(node: ast.If) -> bool:
    return not node.orelse and all(isinstance(s, ast.Raise) for s in node.body)


def _constants(tree: ast.Module) -> dict[str, int]:
    """Return the module's names of whole numbers, so far as they follow from the text."""
    found: dict[str, int] = {}
    for node in tree.body:
        value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        number = _value(value, found) if value is not None else None
        if isinstance(target, ast.Name) and number is not None:
            found[target.id] = number
    return found


def _value(node: ast.expr, constants: Mapping[str, int]) -> int | None:
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.Name):
        return constants.get(node.id)
    if isinstance(node, ast.Call) and len(node.args) == 1 and ast.unparse(node.func).endswith("constexpr"):
        return _value(node.args[0], constants)
    if not isinstance(node, ast.BinOp):
        return None
    left, right = _value(node.left, constants), _value(node.right, constants)
    if left is None or right is None:
        return None
    if isinstance(node.op, (ast.LShift, ast.Pow)):
        bits = right if isinstance(node.op, ast.LShift) else right * max(1, left.bit_length())
        if not 0 <= bits <= 64 or right < 0:
            return None
        return left << right if isinstance(node.op, ast.LShift) else int(left**right)
    operate = _OPERATORS.get(type(node.op))
    return None if operate is None or (right == 0 and operate is operator.floordiv) else operate(left, right)
