"""Find the tritonbench operator that runs a file's kernels, by syntax only: a subclass of ``BenchmarkOperator`` in the
file itself or in ``operator.py`` beside it, with methods that are registered as benchmarks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_BASE = "BenchmarkOperator"
_REGISTERS = "register_benchmark"
OPERATOR_FILE = "operator.py"


@dataclass(frozen=True)
class BenchmarkedOperator:
    """``operator`` is the class, ``methods`` are those of its benchmarks that launch the file's kernels. Their results
    should be that of ``baseline``; "" where there is none that does not launch them itself.
    """

    operator: str
    baseline: str
    methods: list[str]


def benchmarked_operator(tree: ast.Module, kernels: set[str]) -> BenchmarkedOperator | None:
    """Return the first operator of a file with a benchmark that uses one of the names ``kernels``."""
    classes = [n for n in tree.body if isinstance(n, ast.ClassDef)]
    for node in classes:
        if not any(ast.unparse(base).split(".")[-1] == _BASE for base in node.bases):
            continue
        reaching = _reaching([*tree.body, *node.body], kernels)
        registered = dict(_registered(node))
        methods = [name for name in registered if name in reaching]
        baseline = next((name for name in reversed(registered) if registered[name]), "")
        others = [name for name in methods if name != baseline]
        if others:
            return BenchmarkedOperator(node.name, baseline, others)
        if methods:
            return BenchmarkedOperator(node.name, "", methods)
    return None


def names_from(tree: ast.Module, stem: str) -> set[str]:
    """Return the names that a file imports from the module ``stem``, or that module by."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[-1] == stem:
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names if alias.name == stem}
    return names


def dotted_name(file: Path) -> tuple[str, Path]:
    """Return the name by which a file is imported as a member of its packages, and the folder above these."""
    names, folder = [file.stem], file.parent
    while (folder / "__init__.py").is_file() and folder.parent != folder:
        names.append(folder.name)
        folder = folder.parent
    return ".".join(reversed(names)), folder


def _registered(operator: ast.ClassDef) -> Iterator[tuple[str, bool]]:
    """Yield the enabled benchmarks of an operator, and whether each is its baseline."""
    for node in operator.body:
        if not isinstance(node, ast.FunctionDef):
            continue
        for decorator in node.decorator_list:
            if not (isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith(_REGISTERS)):
                continue
            said = {k.arg: k.value.value for k in decorator.keywords if isinstance(k.value, ast.Constant)}
            if said.get("enabled") is not False:
                yield node.name, said.get("baseline") is True


def _reaching(statements: list[ast.stmt], kernels: set[str]) -> set[str]:
    """Return the functions, methods and classes among ``statements`` that use one of ``kernels``, or one that does."""
    used = {
        node.name: {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        | {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
        for node in statements
        if isinstance(node, (ast.FunctionDef, ast.ClassDef))
    }
    reaching = set(kernels)
    while more := {name for name, names in used.items() if names & reaching} - reaching:
        reaching |= more
    return reaching
