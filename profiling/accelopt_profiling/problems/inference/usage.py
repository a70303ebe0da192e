"""Read from a file's syntax how each function uses its parameters: as tensors of a rank, numbers, flags, strings.

What a function passes on to another function of the file, to an autograd function or to a kernel counts as its own use.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from accelopt_profiling.problems.inference.conventions import usual_value
from accelopt_profiling.problems.inference.entries import given_before, is_torch_module
from accelopt_profiling.problems.inference.kernel_makers import made_function
from accelopt_profiling.problems.inference.parameter_use import (
    ParameterUse,
    compares_rank,
    parameter_of,
    read_choices,
    read_flags,
    read_statement,
)
from accelopt_profiling.problems.inference.pointers import (
    address_roots,
    byte_pointers,
    integer_pointers,
    integer_scalars,
    packed_pointers,
    pointers,
    single_pointers,
)

_PASSED_ON = 6


@dataclass
class FunctionUse:
    """A function of the file: its parameters in order, and how it uses them."""

    node: ast.FunctionDef
    parameters: dict[str, ParameterUse]
    keyword_only: list[str]
    kernel: bool = False


def function_uses(
    tree: ast.Module, kernels: set[str], imported: Mapping[str, ast.FunctionDef] | None = None
) -> dict[str, FunctionUse]:
    """Return the uses of the parameters of each function, by its name, methods of classes as ``Class.method``.

    ``imported`` are functions of other files that its kernels call, by the names that they have here.
    """
    imported = imported or {}
    helpers = {**imported, **{node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}}
    functions = {name: _own_uses(node, True, helpers) for name, node in imported.items()}
    waiting: list[tuple[str, ast.AST]] = [("", tree)]
    while waiting:
        prefix, owner = waiting.pop(0)
        for node in ast.iter_child_nodes(owner):
            if isinstance(node, ast.FunctionDef):
                functions.setdefault(f"{prefix}{node.name}", _own_uses(node, node.name in kernels, helpers))
                waiting.append(("", node))
            elif isinstance(node, ast.ClassDef):
                waiting.append((f"{node.name}.", node))
            elif isinstance(node, (ast.If, ast.Try, ast.With, ast.ExceptHandler)):
                waiting.append((prefix, node))
    for _ in range(_PASSED_ON):
        for function in functions.values():
            _pass_on(function, functions)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and f"{node.name}.forward" in functions and is_torch_module(node):
            functions[node.name] = _module_uses(
                functions.get(f"{node.name}.__init__"), functions[f"{node.name}.forward"]
            )
    for name, maker in list(functions.items()):
        inner = made_function(maker.node)
        if inner is not None and not maker.kernel:
            existing = functions.get(inner.name)
            own = (
                existing
                if existing is not None and existing.node is inner
                else _own_uses(inner, False, helpers)
            )
            functions[name] = _maker_uses(maker, own)
    return functions


def _module_uses(construction: FunctionUse | None, forward: FunctionUse) -> FunctionUse:
    """Return the parameters that a module is built with and has no default for, followed by those of its call."""
    built = [] if construction is None else list(construction.parameters.values())[1:]
    required = {  # whatever layers make of them, they are no tensors
        use.name: ParameterUse(
            use.name, use.annotation, whole=not use.annotation and usual_value(use.name) is None
        )
        for use in built
        if use.default is None
    }
    called = dict(list(forward.parameters.items())[1:])
    return FunctionUse(forward.node, {**required, **called}, forward.keyword_only, False)


def _maker_uses(maker: FunctionUse, inner: FunctionUse) -> FunctionUse:
    """Return the parameters of a function that makes a kernel: those that it requires, and those of the kernel."""
    required = {name: use for name, use in maker.parameters.items() if use.default is None}
    both = {**required, **inner.parameters}
    return FunctionUse(maker.node, both, inner.keyword_only, maker.kernel)


def _own_uses(node: ast.FunctionDef, kernel: bool, helpers: Mapping[str, ast.FunctionDef]) -> FunctionUse:
    positional = [*node.args.posonlyargs, *node.args.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(node.args.defaults))
    parameters: dict[str, ParameterUse] = {}
    arguments = [
        *zip(positional, [*defaults, *node.args.defaults], strict=True),
        *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True),
    ]
    for argument, default in arguments:
        annotation = ast.unparse(argument.annotation) if argument.annotation else ""
        parameters[argument.arg] = ParameterUse(argument.arg, annotation, default)
    use = FunctionUse(node, parameters, [a.arg for a in node.args.kwonlyargs], kernel)
    if kernel:
        loaded, packed, alone = integer_pointers(node), packed_pointers(node, helpers), single_pointers(node)
        types = byte_pointers(node)
        for name in pointers(node) & set(parameters):
            parameters[name].tensor = True
            parameters[name].integers = name in loaded
            parameters[name].packed = packed.get(name, "")
            parameters[name].single = name in alone
            parameters[name].byte_type = types.get(name, "")
        whole = integer_scalars(node)
        for inner in ast.walk(node):
            if isinstance(inner, ast.Compare):
                read_choices(inner, parameters)
            elif isinstance(inner, (ast.If, ast.IfExp)):
                read_flags(inner.test, parameters)
        for parameter in parameters.values():
            parameter.whole = not parameter.tensor and parameter.name in whole
            parameter.scalar = not parameter.tensor and "constexpr" not in parameter.annotation
        return use
    either = {id(inner) for n in ast.walk(node) if isinstance(n, ast.IfExp) for inner in ast.walk(n.test)}
    for statement in ast.walk(node):
        if id(statement) not in either or not compares_rank(statement, parameters):
            read_statement(statement, parameters)
    return use


def _pass_on(function: FunctionUse, functions: dict[str, FunctionUse]) -> None:
    for call in ast.walk(function.node):
        if not isinstance(call, ast.Call):
            continue
        target = call.func.value if isinstance(call.func, ast.Subscript) else call.func
        name = ""
        if isinstance(target, ast.Name):
            name = target.id
        elif (
            isinstance(target, ast.Attribute)
            and target.attr == "apply"
            and isinstance(target.value, ast.Name)
        ):
            name = f"{target.value.id}.forward"
        called = functions.get(name)
        if called is None or called is function:
            continue
        skip = given_before(called.node) if name.endswith(".forward") else 0
        names = list(called.parameters)[skip:]
        pairs = [*zip(names, call.args, strict=False), *((k.arg or "", k.value) for k in call.keywords)]
        for parameter, value in pairs:
            if parameter not in called.parameters:
                continue
            use, own = called.parameters[parameter], parameter_of(value, function.parameters)
            if own is not None and own.name:
                own.take(use)
            elif function.kernel and use.tensor:  # a function of the kernel's gets an address
                for name in address_roots(function.node, value) & set(function.parameters):
                    pointer = function.parameters[name]
                    pointer.tensor, pointer.whole, pointer.scalar = True, False, False
                    pointer.integers |= use.integers
                    pointer.byte_type = pointer.byte_type or use.byte_type
                    pointer.packed = pointer.packed or use.packed
