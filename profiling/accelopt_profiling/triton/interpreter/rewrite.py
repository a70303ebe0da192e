"""Turn the source of a ``@triton.jit`` function into a Python function that runs on the interpreter's values."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

import triton.language as tl

from accelopt_profiling.ran import RunRecorder, note_lines
from accelopt_profiling.triton_adapter.runtime import defined_at

_BOTH, _EITHER, _INVERTED = "__accelopt_and__", "__accelopt_or__", "__accelopt_not__"


class Operators(ast.NodeTransformer):
    """Turn ``and``, ``or`` and ``not`` into calls that evaluate operands lazily, element by element on tensors."""

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        none = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        name = _BOTH if isinstance(node.op, ast.And) else _EITHER
        parts: list[ast.expr] = [ast.copy_location(ast.Lambda(none, value), value) for value in node.values]
        return ast.copy_location(ast.Call(ast.Name(name, ast.Load()), parts, []), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Not):
            return node
        return ast.copy_location(ast.Call(ast.Name(_INVERTED, ast.Load()), [node.operand], []), node)


def _joined(decides: bool, combine: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Return an operator that stops at a compile-time value whose truth is ``decides`` and combines the tensors."""

    def operator(*parts: Callable[[], Any]) -> Any:
        tensors, value = [], None
        for part in parts:
            value = part()
            if isinstance(value, tl.tensor):
                tensors.append(_truth(value))
            elif bool(value) is decides:
                return value
        while len(tensors) > 1:
            right = tensors.pop()
            tensors.append(combine(tensors.pop(), right))
        return tensors[0] if tensors else value

    return operator


def _inverted(value: Any) -> Any:
    return value == 0 if isinstance(value, tl.tensor) else not value


def _truth(value: Any) -> Any:
    return value if value.dtype == tl.int1 else value != 0


#: The names under which a rewritten function finds the operators.
OPERATORS: dict[str, Callable[..., Any]] = {
    _BOTH: _joined(False, lambda left, right: left & right),
    _EITHER: _joined(True, lambda left, right: left | right),
    _INVERTED: _inverted,
}


#: The name under which a rewritten function finds the conversion of assigned values.
_TO_TENSOR = "__accelopt_to_tensor__"


class _Assignments(ast.NodeTransformer):
    """Wrap assigned values: ``x = 5`` gives ``x`` a tensor, as it does in compiled code."""

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        node.value = ast.Call(ast.Name(_TO_TENSOR, ast.Load()), [node.value], [])
        return node


def rewrite(
    fn: Any, to_tensor: Callable[[Any], Any], replace: Callable[[Any], Any], recorder: RunRecorder
) -> tuple[Callable[..., Any], dict[str, Any]]:
    """Return the body of the JITFunction ``fn`` as a plain function with the file and lines of the user's source.

    ``to_tensor`` converts assigned values; ``replace`` gives the substitute for every global and closure value.
    The function gets a copy of the globals, so that nothing leaks into the user's module. The second value is that
    copy. What runs is noted in ``recorder``.

    Raises:
        SyntaxError, OSError: the source cannot be read.
    """
    file, line = defined_at(fn)
    tree = ast.parse(fn.src)
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        raise SyntaxError(f"{fn.__name__} is not a function")
    definition.decorator_list = []
    definition.returns = None
    arguments = definition.args
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        argument.annotation = None
    defaults = {p.name: p.default for p in fn.signature.parameters.values() if p.default is not p.empty}
    arguments.defaults, arguments.kw_defaults = [], [None] * len(arguments.kwonlyargs)
    tree = ast.fix_missing_locations(Operators().visit(_Assignments().visit(tree)))
    ast.increment_lineno(tree, line - 1)
    note_lines(tree, lambda name: ast.Name(name, ast.Load()))
    scope = {name: replace(value) for name, value in globals_of(fn).items()}
    scope |= {_TO_TENSOR: to_tensor, **OPERATORS, **recorder.hooks(file)}
    namespace: dict[str, Any] = {}
    exec(compile(tree, file, "exec", dont_inherit=True), scope, namespace)  # noqa: S102 - the user's own kernel
    body = namespace[definition.name]
    _set_defaults(body, defaults)
    return body, scope


def globals_of(fn: Any) -> Mapping[str, Any]:
    """Return the names that a kernel's body can see: its module's globals and its closure."""
    scope: dict[str, Any] = dict(fn.fn.__globals__)
    cells = zip(fn.fn.__code__.co_freevars, fn.fn.__closure__ or (), strict=True)
    for name, cell in cells:
        try:
            scope[name] = cell.cell_contents
        except ValueError:  # not bound yet
            continue
    return scope


def _set_defaults(body: Any, defaults: Mapping[str, Any]) -> None:
    code = body.__code__
    names = code.co_varnames[: code.co_argcount]
    trailing = []
    for name in reversed(names):
        if name not in defaults:
            break
        trailing.append(defaults[name])
    body.__defaults__ = tuple(reversed(trailing)) or None
    keywords = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    body.__kwdefaults__ = {n: defaults[n] for n in keywords if n in defaults} or None
