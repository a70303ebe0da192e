"""Detect by syntax how a file runs its own kernels: ``__main__`` block, top-level statements, tests, benchmarks."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from accelopt_profiling.kernels import KernelSource
from accelopt_profiling.problems.discovery.entry import (
    called_names,
    is_driver,
    launchable_kernels,
    launchers,
    names_used,
    reached,
    used_names,
)
from accelopt_profiling.source_text import is_main_guard


@dataclass(frozen=True)
class OwnRuns:
    """The ways in which a file launches its own kernels.

    ``main`` and ``module`` tell of a ``__main__`` block and of module-level launches; ``functions`` names
    tests (``Class.method`` for those of unittest) and benchmarks that need no arguments. ``recorded`` are the
    functions whose calls make a candidate comparable.
    """

    main: bool = False
    module: bool = False
    functions: list[str] = field(default_factory=list)
    recorded: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return self.main or self.module or bool(self.functions)


def own_runs(tree: ast.Module, file: KernelSource) -> OwnRuns:
    """Find what of a kernel file, with the syntax ``tree``, launches its kernels when it is run."""
    kernels = launchable_kernels(file)
    if not kernels:
        return OwnRuns()
    nki = {name for name, dialect in kernels.items() if dialect == "nki"}
    functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name not in kernels}
    classes = {n.name: n for n in tree.body if isinstance(n, ast.ClassDef)}
    reaching = reached(names_used(tree.body), set(kernels))
    main = any(is_main_guard(n) and used_names(n) & reaching for n in tree.body)
    statements = [
        n for n in tree.body if isinstance(n, (ast.Expr, ast.Assign, ast.For, ast.With, ast.Assert, ast.If))
    ]
    module = any(_called_by(n) & reaching for n in statements if not is_main_guard(n))
    tests = [
        name
        for name, node in functions.items()
        if name in reaching and name.startswith(("test", "bench")) and _runs_alone(node)
    ]
    tests += [f"{name}.{test}" for name, node in classes.items() for test in _test_methods(node)]
    recorded = _with_arguments(functions, launchers(tree, set(kernels)))
    recorded += [  # ``attention = Attention.apply`` of an autograd function
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "apply"
        for target in node.targets
        if isinstance(target, ast.Name) and target.id in reaching
    ]
    applied = {ast.unparse(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
    recorded += [f"{name}.apply" for name in classes if name in reaching and f"{name}.apply" in applied]
    if not recorded:  # private ones, and those that go through a class
        entries = _with_arguments(functions, functions)
        recorded = [*(n for n in entries if n in reaching and not is_driver(n)), *sorted(nki)]
    return OwnRuns(main, module, tests, recorded)


def _with_arguments(functions: Mapping[str, ast.FunctionDef], names: Iterable[str]) -> list[str]:
    return [n for n in names if functions[n].args.args or functions[n].args.vararg]


def _called_by(statement: ast.stmt) -> set[str]:
    """Return the names that a statement calls when it is run: in a function that it defines, as under ``if``, only what
    it calls itself."""
    defined: dict[str, ast.AST] = {}
    rest: list[ast.AST] = [statement]
    called: set[str] = set()
    while rest:
        node = rest.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            defined[node.name] = ast.Module(node.body, [])
            continue
        if isinstance(node, ast.Call):
            called |= called_names(node)
        rest += ast.iter_child_nodes(node)
        if not rest:
            rest += [defined.pop(name) for name in called & defined.keys()]
    return called


def _test_methods(node: ast.ClassDef) -> list[str]:
    """Return the tests of a ``unittest.TestCase``."""
    if not any(ast.unparse(base).endswith("TestCase") for base in node.bases):
        return []
    return [n.name for n in node.body if isinstance(n, ast.FunctionDef) and n.name.startswith("test")]


def _runs_alone(function: ast.FunctionDef) -> bool:
    """Return True if it needs no arguments, or ``pytest.mark.parametrize`` gives all of them."""
    needed = {a.arg for a in function.args.args[: len(function.args.args) - len(function.args.defaults)]}
    for decorator in function.decorator_list:
        if not (
            isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Attribute) and decorator.args
        ):
            continue
        if decorator.func.attr == "parametrize":
            needed -= _names_in(decorator.args[0])
    return not needed


def _names_in(argument: ast.expr) -> set[str]:
    """Return the arguments that a parametrization names, as "a, b" or as a sequence; none for anything else."""
    try:
        names = ast.literal_eval(argument)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return set()
    listed = names.split(",") if isinstance(names, str) else names if isinstance(names, (list, tuple)) else []
    return {name.strip() for name in listed if isinstance(name, str)}
