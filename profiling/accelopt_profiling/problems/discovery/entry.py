"""Guess, by syntax, which function of a kernel file takes the problem's inputs."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from functools import lru_cache

from accelopt_profiling.kernels import KernelSource, find_kernels
from accelopt_profiling.measurement import Dialect
from accelopt_profiling.name_paths import import_paths
from accelopt_profiling.problems.inference.kernel_makers import makes_with
from accelopt_profiling.problems.problem import ProblemError
from accelopt_profiling.source_text import syntax_of

#: Functions that bind names at run time.
_BINDERS = frozenset({"globals", "locals", "vars", "setattr", "exec"})
_NOT_ENTRIES = ("_", "test_", "bench", "main", "reference", "get_inputs")
#: A check asks of one text for each of its cases.
_KEPT = 16


@lru_cache(_KEPT)
def find_entry(text: str, count: int, file: str | None = None) -> str:
    """Return the one public function that launches a kernel, or the one NKI kernel, if it takes ``count`` arguments.

    Where none does so by itself, a function that uses a kernel through a class or another name is looked for, and at
    last any public function: a run shows whether it launches anything.

    Raises:
        ProblemError: none or several fit; the message lists them and says how to choose.
    """
    tree, kernels = syntax_of(text), launchable_kernels(find_kernels(text))
    names = launchers(tree, set(kernels))
    functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
    if not names:
        names = [name for name, dialect in kernels.items() if dialect == "nki"]
    fitting = [n for n in names if n not in functions or accepts(functions[n], count)]
    for others in (reaching(tree, set(kernels)), [n for n in functions if n not in kernels]):
        fitting = fitting or [
            n for n in others if not n.startswith(_NOT_ENTRIES) and accepts(functions[n], count)
        ]
    if len(fitting) == 1:
        return fitting[0]
    for preferred in ("kernel", "optimized_kernel"):  # the names NKIBench gives its kernels
        if preferred in fitting:
            return preferred
    inputs = f"{count} input{'' if count == 1 else 's'}"
    if not fitting:
        tried = f" ({', '.join(names)}: no match)" if names else ""
        ways = unlisted_entries(tree, set(kernels))
        such = f", such as {', '.join(f'`{way}`' for way in ways[:4])}" if ways else ""
        message = f"No public function that launches a kernel takes {inputs}{tried}; "
        message += f'name one with `entry = "..."`{such}.'
    else:
        listed = ", ".join(fitting)
        message = f'Several functions could take the {inputs} ({listed}); name one with `entry = "..."`.'
    raise ProblemError("problem-invalid", message, file)


@lru_cache(_KEPT)
def check_entry(text: str, name: str, count: int | None, kernel_file: str, file: str | None = None) -> None:
    """Check by syntax that the kernel file ``text`` defines the entry point ``name`` that its problem states.

    ``count`` is the number of inputs that it has to take, None where the caller finds that out. A name that the file
    makes when it runs (a star import, ``globals()``, ``setattr``, ``exec``) counts as defined.

    Raises:
        ProblemError: no such name is bound at the file's top level, or the function takes another number of arguments.
    """
    tree = syntax_of(text)
    names = _TopLevelNames(tree)
    if names.dynamic:
        return
    if name.split(".")[0] not in names.bound:
        kernels = launchable_kernels(find_kernels(text))
        ways = [*launchers(tree, set(kernels)), *unlisted_entries(tree, set(kernels)), *kernels]
        such = f"; it has {', '.join(f'`{way}`' for way in dict.fromkeys(ways))}" if ways else ""
        message = f"The problem names the entry `{name}`, which {kernel_file} does not define{such}."
        raise ProblemError("problem-invalid", message, file)
    function = names.bound[name.split(".")[0]]
    if count is None or "." in name or not isinstance(function, ast.FunctionDef):
        return
    plain = not function.decorator_list or name in launchable_kernels(find_kernels(text))
    if plain and not accepts(function, count) and not makes_with(function, count):
        inputs = f"{count} input{'' if count == 1 else 's'}"
        message = f"The problem has {inputs}, but its entry `{name}` in {kernel_file} takes other arguments: "
        raise ProblemError("problem-invalid", f"{message}`{name}({ast.unparse(function.args)})`.", file)


class _TopLevelNames(ast.NodeVisitor):
    """Collects the names that a module's top level binds, each with the last statement that does.

    ``dynamic`` tells that the file may bind further names when it runs.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.bound: dict[str, ast.AST] = {}
        self.dynamic = any(
            isinstance(n, ast.Global) or (isinstance(n, ast.Name) and n.id in _BINDERS)
            for n in ast.walk(tree)
        )
        self.visit(tree)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.bound[node.name] = node
        self.dynamic |= node.name == "__getattr__"

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.bound[node.name] = node

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        self.dynamic |= any(alias.name == "*" for alias in node.names)
        self.bound.update(dict.fromkeys(import_paths(node), node))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self.visit_Import(node)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store):
            self.bound[node.id] = node


def launchable_kernels(file: KernelSource) -> dict[str, Dialect]:
    """Return the kernels of a file that host code launches, with their dialects."""
    return {k.name: k.dialect for k in file.launched}


def launchers(tree: ast.Module, kernels: set[str]) -> list[str]:
    """Return the public top-level functions that launch a kernel of the file, directly or through another one.

    A function that another launcher calls is left out, and so are classes' methods.
    """
    functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name not in kernels}
    calls = {name: called_names(node) for name, node in functions.items()}
    public = {n for n in reached(calls, kernels) - kernels if not n.startswith(_NOT_ENTRIES)}
    inner = {c for name in public for c in calls[name]}
    return [n for n in functions if n in public and n not in inner]


def is_driver(name: str) -> bool:
    """Return whether a function of this name calls others to test, time or compare them."""
    return name.startswith(tuple(n for n in _NOT_ENTRIES if n != "_"))


def reaching(tree: ast.Module, kernels: set[str]) -> list[str]:
    """Return the top-level functions that name a kernel, or something that does: a class, an alias, a function."""
    names = reached(names_used(tree.body), kernels) - kernels
    return [n.name for n in tree.body if isinstance(n, ast.FunctionDef) and n.name in names]


def names_used(statements: Sequence[ast.stmt]) -> dict[str, set[str]]:
    """Return what the functions, classes and assigned names among ``statements`` use, by their names."""
    used: dict[str, set[str]] = {}
    for node in statements:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            used[node.name] = used_names(node)
        elif isinstance(node, ast.Assign):
            used.update({t.id: used_names(node.value) for t in node.targets if isinstance(t, ast.Name)})
    return used


def used_names(node: ast.AST) -> set[str]:
    """Return the names anywhere below ``node``."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def reached(used: Mapping[str, set[str]], names: set[str]) -> set[str]:
    """Return ``names`` with all that use one of them, directly or through one another."""
    reaching = set(names)
    while more := {name for name, others in used.items() if others & reaching} - reaching:
        reaching |= more
    return reaching


def unlisted_entries(tree: ast.Module, kernels: set[str]) -> list[str]:
    """Return entry points that count only when they are named: ``apply`` of autograd functions, private functions."""
    functions = [n for n in reaching(tree, kernels) if n.startswith("_") and not n.startswith("__")]
    classes = [
        f"{node.name}.apply"
        for node in tree.body
        if isinstance(node, ast.ClassDef)
        and any(ast.unparse(base).endswith("autograd.Function") for base in node.bases)
    ]
    return [*classes, *functions]


def called_names(node: ast.AST) -> set[str]:
    """Return the names called anywhere below ``node``: ``f(...)``, ``f[grid](...)`` and, as ``nki.simulate(f)(...)`` or
    ``nki.simulate_kernel(f, ...)``, through another call."""
    names: set[str] = set()
    for call in ast.walk(node):
        if isinstance(call, ast.Call):
            target = call.func.value if isinstance(call.func, ast.Subscript) else call.func
            through = target if isinstance(target, ast.Call) else call if _simulates(target) else None
            if through is not None:
                names |= {a.id for a in through.args[:1] if isinstance(a, ast.Name)}
            elif isinstance(target, ast.Name):
                names.add(target.id)
            elif (
                isinstance(target, ast.Attribute)
                and target.attr in ("run", "warmup")
                and isinstance(target.value, ast.Name)
            ):
                names.add(target.value.id)
    return names


def _simulates(called: ast.expr) -> bool:
    return isinstance(called, ast.Attribute) and called.attr == "simulate_kernel"


def accepts(function: ast.FunctionDef, count: int) -> bool:
    """Return True if ``function`` can be called with ``count`` positional arguments."""
    positional = len(function.args.posonlyargs) + len(function.args.args)
    required = positional - len(function.args.defaults)
    if any(default is None for default in function.args.kw_defaults):
        return False  # a keyword-only argument without a default
    return required <= count and (function.args.vararg is not None or count <= positional)
