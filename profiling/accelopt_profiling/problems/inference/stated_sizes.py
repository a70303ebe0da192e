"""Give the sizes of an inferred call the values that assertions in the text of its entry state."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from math import prod

from accelopt_profiling.problems.inference.arguments import InferredCall, names_in, rename
from accelopt_profiling.problems.inference.conventions import bare_name, meaning_of_size

#: What kernels write for the sizes of the machine.
_MACHINE = {"pmax": 128, "gemm_stationary_fmax": 128, "gemm_moving_fmax": 512, "psum_fmax": 512}


def apply_stated_relations(call: InferredCall, text: str) -> None:
    """Express sizes by others where ``text``, the function's own with its comments, says how they are computed:
    ``d_cache = d_rope + d_c``, or by a name like ``BH`` where there are ``B`` and ``H``."""
    for name, expression in re.findall(r"\b(\w+)\s*==?\s*(\w+(?:\s*(?:\*|\+|//)\s*\w+)+)", text):
        if (
            name in call.sizes
            and names_in(expression)
            and set(names_in(expression)) <= {*call.sizes} - {name}
        ):
            _express(call, name, " ".join(expression.split()))
    for name in list(call.sizes):
        parts = next(
            ((a, b) for a in call.sizes for b in call.sizes if name in (f"{a}{b}", f"{a}x{b}", f"{a}_{b}")),
            None,
        )
        if parts is not None and name not in parts:
            _express(call, name, f"{parts[0]} * {parts[1]}")


def _express(call: InferredCall, name: str, expression: str) -> None:
    """Put ``expression`` in place of the size ``name``."""
    call.sizes.pop(name)
    for argument in call.arguments:
        argument.dims = [
            expression if d == name else rename(d, name, f"({expression})") for d in argument.dims
        ]
        if argument.kind == "value":
            argument.value = rename(argument.value, name, f"({expression})")


def apply_defaults(call: InferredCall, function: ast.FunctionDef) -> None:
    """Give sizes the numbers that parameters of their name, or of one that means the same, have by default."""
    arguments = function.args
    parameters = [*arguments.posonlyargs, *arguments.args]
    pairs = [*zip(reversed(parameters), reversed(arguments.defaults), strict=False)]
    pairs += [
        (a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None
    ]
    for parameter, default in pairs:
        number = _number(default, {})
        meaning = meaning_of_size(parameter.arg) or parameter.arg
        if number is None or number < 1:
            continue
        for name in call.sizes:
            if name == parameter.arg or meaning_of_size(name) == meaning:
                call.sizes[name] = number


def merge_alike_sizes(call: InferredCall) -> None:
    """Make sizes one that mean the same, two names of a batch or of sequences: a call with all of them equal is the
    one that works most often."""
    names: dict[str, str] = {}
    for name in list(call.sizes):
        meaning = meaning_of_size(name) or bare_name(name)
        if (first := names.setdefault(meaning, name)) != name:
            call.merge(first, name)


def bound_sizes(call: InferredCall, elements: int) -> None:
    """Halve the largest sizes until no tensor of the call has more than ``elements``."""
    while any(prod(call.shape(t)) > elements for t in call.tensors):
        largest = max(call.sizes, key=lambda name: call.sizes[name])
        if call.sizes[largest] <= 2:
            return
        call.sizes[largest] //= 2


def apply_stated_sizes(call: InferredCall, tree: ast.Module, function: ast.FunctionDef) -> None:
    """Change ``call.sizes``: ``assert K == 128`` sets one, ``assert M % 128 == 0`` rounds one up, ``assert K == L``
    makes two one, and ``assert K <= 128`` bounds one."""
    constants = _constants([*tree.body, *ast.walk(function)])
    names = _dimension_names(call, function)
    for test in _assertions(function):
        for compare in _comparisons(test):
            _apply(call, compare, names, constants)


def _constants(nodes: list[ast.AST]) -> dict[str, int]:
    """Return the whole numbers that names are assigned."""
    constants: dict[str, int] = {}
    for node in nodes:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            number = _number(node.value, constants)
            if number is not None:
                constants.setdefault(node.targets[0].id, number)
    return constants


def _number(node: ast.expr, constants: dict[str, int]) -> int | None:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name):
        return constants.get(node.id)
    if isinstance(node, ast.Attribute):
        return _MACHINE.get(node.attr)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        left, right = _number(node.left, constants), _number(node.right, constants)
        return None if left is None or right is None else left * right
    return None


def _dimension_names(call: InferredCall, function: ast.FunctionDef) -> dict[str, str]:
    """Return the size behind each expression of a shape: ``K`` of ``K, M = x.shape``, and ``x.shape[0]``."""
    dims = {a.name: a.dims for a in call.tensors}
    names = {f"{name}.shape[{at}]": size for name, sizes in dims.items() for at, size in enumerate(sizes)}
    names |= {
        f"{name}.shape[{at - len(sizes)}]": size
        for name, sizes in dims.items()
        for at, size in enumerate(sizes)
    }
    for node in ast.walk(function):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target, value = node.targets[0], ast.unparse(node.value)
        if isinstance(target, ast.Name) and value in names:
            names[target.id] = names[value]
        elif isinstance(target, (ast.Tuple, ast.List)) and value.endswith(".shape"):
            sizes = dims.get(value.removesuffix(".shape"), [])
            if len(sizes) == len(target.elts):
                names |= {ast.unparse(e): size for e, size in zip(target.elts, sizes, strict=True)}
    return names


def _assertions(function: ast.FunctionDef) -> Iterator[ast.expr]:
    """Yield what is asserted, by the statement or by a function whose name says so."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            yield node.test
        elif isinstance(node, ast.Call) and node.args and "assert" in ast.unparse(node.func):
            yield node.args[0]


def _comparisons(test: ast.expr) -> Iterator[tuple[ast.expr, ast.cmpop, ast.expr]]:
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        for value in test.values:
            yield from _comparisons(value)
    elif isinstance(test, ast.Compare):
        left = test.left
        for operator, right in zip(test.ops, test.comparators, strict=True):
            if (
                isinstance(left, ast.Tuple)
                and isinstance(right, ast.Tuple)
                and len(left.elts) == len(right.elts)
            ):
                yield from ((a, operator, b) for a, b in zip(left.elts, right.elts, strict=True))
            else:
                yield left, operator, right
            left = right


def _apply(
    call: InferredCall,
    compare: tuple[ast.expr, ast.cmpop, ast.expr],
    names: dict[str, str],
    constants: dict[str, int],
) -> None:
    left, operator, right = compare
    if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mod):
        size, factor = names.get(ast.unparse(left.left), ""), _number(left.right, constants)
        if size in call.sizes and factor and factor > 0 and _number(right, constants) == 0:
            call.sizes[size] = -(-call.sizes[size] // factor) * factor
        return
    size = names.get(ast.unparse(left), "")
    number = _number(right, constants)
    if size not in call.sizes:
        return
    other = names.get(ast.unparse(right), "")
    if isinstance(operator, ast.Eq) and other in call.sizes and other != size:
        call.merge(size, other)
        names.update({text: size for text, name in names.items() if name == other})
    elif number is not None and isinstance(operator, ast.Eq) and number > 0:
        call.sizes[size] = number
    elif number is not None and isinstance(operator, (ast.LtE, ast.Lt)):
        call.sizes[size] = max(1, min(call.sizes[size], number - isinstance(operator, ast.Lt)))
    elif number is not None and isinstance(operator, (ast.GtE, ast.Gt)):
        call.sizes[size] = max(call.sizes[size], number + isinstance(operator, ast.Gt))
