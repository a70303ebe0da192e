"""Tell by syntax which parameters of a Triton kernel are pointers, which point to integers, and which are integers."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from accelopt_profiling.triton.functions.table import functions_of

#: Functions whose first argument is, or begins at, a pointer.
_ACCESSES = functions_of("load", "store", "atomic", "address") | {"multiple_of", "assume"}


def pointers(kernel: ast.FunctionDef) -> set[str]:
    """Return the parameters that addresses of the kernel start from, also those passed on in such a place."""
    return {name for address in _addresses(kernel) for name in address_roots(kernel, address)}


def integer_pointers(kernel: ast.FunctionDef) -> set[str]:
    """Return the pointers whose loaded values are part of another address, a loop's bounds or a mask."""
    assigned, loaded = _assigned(kernel), _loaded(kernel)
    reached = dict(loaded)
    for name, value in assigned:  # once more through plain arithmetic
        if isinstance(value, (ast.BinOp, ast.Call)) and not _calls_load(value):
            for used in _names(value) & set(loaded):
                reached.setdefault(name, loaded[used])
    whole: set[str] = set()
    for address in _addresses(kernel):
        for name in _names(address) & set(reached):
            whole |= reached[name] - address_roots(kernel, address)
    for node in ast.walk(kernel):
        if isinstance(node, ast.Call) and _name(node) in ("range", "cdiv", "arange"):
            for name in {n for a in node.args for n in _names(a)} & set(reached):
                whole |= reached[name]
    return whole


def integer_scalars(kernel: ast.FunctionDef) -> set[str]:
    """Return the names that offsets are computed from or compared with, and those of whole-number arithmetic."""
    offsets: set[str] = set()
    for _ in range(3):  # offsets of offsets of the program's number
        offsets |= {
            name
            for name, value in _assigned(kernel)
            if not _calls_load(value) and (_names(value) & offsets or _numbers_programs(value))
        }
    whole: set[str] = set()
    for node in ast.walk(kernel):
        if isinstance(node, ast.Call) and _name(node) in ("range", "cdiv", "next_power_of_2"):
            whole |= {a.id for a in node.args if isinstance(a, ast.Name)}
        sides: list[ast.expr] = []
        if isinstance(node, ast.BinOp):
            sides = [node.left, node.right]
            if isinstance(node.op, (ast.FloorDiv, ast.Mod)):
                whole |= {s.id for s in sides if isinstance(s, ast.Name)}
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
        if any(not _calls_load(s) and (_names(s) & offsets or _numbers_programs(s)) for s in sides):
            whole |= {s.id for s in sides if isinstance(s, ast.Name)}
    return whole - offsets


def _numbers_programs(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Call) and _name(n) in functions_of("place", "range") for n in ast.walk(node))


def packed_pointers(kernel: ast.FunctionDef, helpers: Mapping[str, ast.FunctionDef]) -> dict[str, str]:
    """Return the pointers whose loaded values are shifted or masked, here or by one of ``helpers`` that they are passed
    to: several numbers are packed into each. With them the type, that of a byte where no bit beyond is looked at.
    """
    loaded = _loaded(kernel)
    types: dict[str, str] = {}
    for name, kind in _taken_apart(kernel) + _passed_apart(kernel, helpers):
        for pointer in loaded.get(name, ()):
            types[pointer] = kind if types.get(pointer, kind) == kind else "int32"
    return types


def _taken_apart(function: ast.FunctionDef) -> list[tuple[str, str]]:
    """Return the names that a function shifts or masks, with the type that the amounts ask for."""
    names: list[tuple[str, str]] = []
    for node in ast.walk(function):
        if isinstance(node, ast.BinOp) and (
            isinstance(node.op, (ast.RShift, ast.LShift))
            or (isinstance(node.op, ast.BitAnd) and _mask(node.right))
        ):
            most = 0xFF if isinstance(node.op, ast.BitAnd) else 7
            amount = node.right.value if isinstance(node.right, ast.Constant) else None
            kind = "uint8" if isinstance(amount, int) and amount <= most else "int32"
            names += [(name, kind) for name in _cast_names(node.left)]
    return names


def _passed_apart(kernel: ast.FunctionDef, helpers: Mapping[str, ast.FunctionDef]) -> list[tuple[str, str]]:
    """Return the names that are passed to functions which shift or mask them."""
    names: list[tuple[str, str]] = []
    for call in ast.walk(kernel):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in helpers:
            helper = helpers[call.func.id]
            arguments = dict(zip((a.arg for a in helper.args.args), call.args, strict=False))
            arguments |= {k.arg: k.value for k in call.keywords if k.arg}
            for parameter, kind in _taken_apart(helper):
                if isinstance(value := arguments.get(parameter), ast.Name):
                    names.append((value.id, kind))
    return names


def byte_pointers(kernel: ast.FunctionDef) -> dict[str, str]:
    """Return the pointers whose loaded values are made bytes at once, ``tl.load(p).to(tl.uint8)``, with that type."""
    types: dict[str, str] = {}
    for node in ast.walk(kernel):
        if isinstance(node, ast.Call) and _name(node) == "to" and isinstance(node.func, ast.Attribute):
            load, kind = node.func.value, ast.unparse(node.args[0]) if node.args else ""
            if kind in ("tl.uint8", "tl.int8") and isinstance(load, ast.Call) and _name(load) == "load":
                names = address_roots(kernel, load.args[0]) if load.args else set()
                types |= dict.fromkeys(names, kind.removeprefix("tl."))
    return types


def _cast_names(node: ast.expr) -> set[str]:
    """Return the names in an expression, not those that a function makes something else of: ``f(x) << 4``."""
    if isinstance(node, ast.Call):
        method = isinstance(node.func, ast.Attribute) and not _names(node.func.value) & {"tl"}
        return _cast_names(node.func.value) if method and isinstance(node.func, ast.Attribute) else set()
    inner = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
    own = {node.id} if isinstance(node, ast.Name) else set()
    return own.union(*map(_cast_names, inner))


def _mask(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value > 1


def _assigned(kernel: ast.FunctionDef) -> list[tuple[str, ast.expr]]:
    return [
        (node.targets[0].id, node.value)
        for node in ast.walk(kernel)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    ]


def _loaded(kernel: ast.FunctionDef) -> dict[str, set[str]]:
    """Return the names that hold what was loaded, each with the pointers that it was loaded from."""
    loaded: dict[str, set[str]] = {}
    for name, value in _assigned(kernel):
        for call in ast.walk(value):
            if isinstance(call, ast.Call) and _name(call) == "load" and call.args:
                loaded.setdefault(name, set()).update(address_roots(kernel, call.args[0]))
    return loaded


def single_pointers(kernel: ast.FunctionDef) -> set[str]:
    """Return the pointers that are only read or written without an offset: to one number."""
    addresses = _addresses(kernel)
    plain = {a.id for a in addresses if isinstance(a, ast.Name)}
    offset = {n for a in addresses if not isinstance(a, ast.Name) for n in _names(a)}
    return plain - offset - _outside_of_accesses(kernel)


def _outside_of_accesses(kernel: ast.FunctionDef) -> set[str]:
    """Return the names that the body uses in anything but a load or a store."""
    names: set[str] = set()
    waiting: list[ast.AST] = list(kernel.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name):
            names.add(node.id)
        address = node.args[:1] if isinstance(node, ast.Call) and _name(node) in ("load", "store") else []
        waiting += [child for child in ast.iter_child_nodes(node) if child not in address]
    return names


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _addresses(kernel: ast.FunctionDef) -> list[ast.expr]:
    addresses: list[ast.expr] = []
    for node in ast.walk(kernel):
        if isinstance(node, ast.Call) and _name(node) in _ACCESSES:
            addresses += node.args[:1]
            addresses += [k.value for k in node.keywords if k.arg in ("base", "pointer")]
    return addresses


def address_roots(kernel: ast.FunctionDef, address: ast.expr) -> set[str]:
    """Return the names that an address starts from: the leftmost term of a sum, through earlier
    assignments."""
    starts: dict[str, list[ast.expr]] = {}
    for node in ast.walk(kernel):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            starts.setdefault(node.targets[0].id, []).append(node.value)
    names, waiting = set(), [address]
    while waiting:
        node = _leftmost(waiting.pop())
        if isinstance(node, ast.IfExp):
            waiting += [node.body, node.orelse]
        elif isinstance(node, ast.Name) and node.id not in names:
            names.add(node.id)
            waiting += starts.get(node.id, [])
    return names


def _leftmost(node: ast.expr) -> ast.expr:
    while True:
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            node = node.left
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("to", "cast")
        ):
            on_type = isinstance(node.func.value, ast.Name) and node.func.value.id == "tl"
            if on_type and not node.args:
                return node
            node = node.args[0] if on_type else node.func.value
        elif isinstance(node, ast.Call) and _name(node) in functions_of("address"):
            if not node.args:
                base = next((k.value for k in node.keywords if k.arg == "base"), None)
                if base is None:
                    return node
                node = base
            else:
                node = node.args[0]
        else:
            return node


def _calls_load(node: ast.expr) -> bool:
    return any(isinstance(n, ast.Call) and _name(n) == "load" for n in ast.walk(node))


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
