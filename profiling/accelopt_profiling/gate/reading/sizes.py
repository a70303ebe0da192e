"""Find host code that treats some shapes differently without refusing them, and the numbers that a file compares sizes
with: above and below them it may take another way.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from accelopt_profiling.gate.reading.constants import Value, constant
from accelopt_profiling.gate.reading.facts import Facts, StaticFinding, at
from accelopt_profiling.gate.reading.flow import Flow

#: Smaller numbers are ranks and counts of arguments; larger ones no size that anybody can check.
_LEAST, _MOST = 16, 1 << 40
_ORDER = (ast.Gt, ast.GtE, ast.Lt, ast.LtE)
#: The largest numbers of the integers that a place may be cut to.
_NARROW = {"int8": 127, "uint8": 255, "int16": 32767, "uint16": 65535}


def special_shapes(flow: Flow, node: ast.AST) -> Iterator[StaticFinding]:
    """Yield branches on sizes against numbers of which one returns, sizes capped by a number, and kernels that
    compare their place or a size with a number.

    None of it is certain: it matters where the candidate turns out wrong at another shape.
    """
    kernels, code = flow.facts.kernels_around(node), "special-shape"
    match node:
        case ast.If(test, body, orelse) if not kernels and any(
            isinstance(s, ast.Return) for s in body + orelse
        ):
            if not any(isinstance(s, ast.Raise) for s in body) and _compares(flow, test):
                yield at(node, code, "branch", "It treats some sizes in a way of their own.")
        case ast.Call(ast.Name("min"), arguments) if not kernels and any(map(flow.has_size, arguments)):
            if any(isinstance(a, ast.Constant) for a in arguments):
                yield at(node, code, "cap", "It caps a size with a number.")
    for kernel in kernels:
        operands = _operands(flow, node)
        numbers = [o.value for o in operands if isinstance(o, ast.Constant) and type(o.value) is int]
        if any(n > 1 for n in numbers) and any(flow.is_place(o, kernel) for o in operands):
            yield at(node, code, "kernel", "A kernel compares its place or a size with a number.")


def _operands(flow: Flow, node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.Compare(left, _, others):
            return [left, *others]
        case ast.Call(function, arguments):
            is_cap = (flow.facts.called(node) or ast.unparse(function)) in ("min", "triton.language.minimum")
            return arguments if is_cap else []
    return []


def _compares(flow: Flow, test: ast.expr) -> bool:
    compared = (n for n in ast.walk(test) if isinstance(n, ast.Compare) and flow.has_size(n))
    numbers = (getattr(n, "value", None) for c in compared for n in ast.walk(c))
    return any(isinstance(number, int) and number > 1 for number in numbers)


def size_limits(facts: Facts) -> Iterator[int]:
    """Yield the whole numbers that anything is compared with by order, in host code, heuristics and kernels, but for
    what only raises, and the largest ones of the types that kernels cut places to.
    """
    flow, names = Flow(facts), _numbers(facts.tree)
    for node in facts.nodes:
        match node, facts.parents.get(node):
            case ast.Compare(), ast.Assert():
                pass
            case ast.Compare(), ast.If(_, body, []) if all(isinstance(s, ast.Raise) for s in body):
                pass
            case ast.Compare(left, operators, others), _ if any(isinstance(op, _ORDER) for op in operators):
                values = [constant(side, names) for side in (left, *others)]
                if None in values:  # the other side is what is looked at
                    yield from (v for v in values if isinstance(v, int) and _LEAST <= v <= _MOST)
            case ast.Call(function, [*_, last] as arguments), _:
                called = facts.called(node)
                if called == "triton.language.cast" or getattr(function, "attr", "") == "to":
                    source = arguments[0] if called else getattr(function, "value", node)
                    name = (facts.dotted(last if called else arguments[0]) or "").rpartition(".")[2]
                    kernels = facts.kernels_around(node) if name in _NARROW else []
                    if any(flow.follows_place(source, kernel) for kernel in kernels):
                        yield _NARROW[name]


def _numbers(tree: ast.Module) -> dict[str, Value]:
    """Return the module's names of whole numbers, so far as they follow from the text."""
    numbers: dict[str, Value] = {}
    for node in tree.body:
        match node:
            case ast.Assign([ast.Name(name), *_], value) | ast.AnnAssign(ast.Name(name), _, value):
                if isinstance(number := constant(value, numbers), int):
                    numbers[name] = number
    return numbers
