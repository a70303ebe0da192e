"""Rank the functions of a file that a person would call to launch its kernels."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Literal

_BACKWARD = ("bwd", "backward", "grad")
_NEVER = ("test_", "bench", "main", "get_inputs", "reference", "__")

EntryKind = Literal["function", "autograd", "module", "kernel"]


@dataclass(frozen=True)
class EntryCandidate:
    """``name`` is what a call names.

    ``function`` the one whose parameters it has (``Class.forward`` of an autograd function). ``skip`` parameters are
    not the caller's.
    """

    name: str
    function: str
    kind: EntryKind
    skip: int = 0


def entry_candidates(tree: ast.Module, kernels: list[str]) -> list[EntryCandidate]:
    """Return the entries that reach one of ``kernels`` (plain names), likeliest first.

    Public functions, and autograd functions whose backward pass launches kernels as well, come before other autograd
    functions and modules, private functions and the kernels themselves; those that nothing else of the file calls
    before those that something does; forward before backward. A kernel that is launched with nothing but a grid comes
    last.
    """
    functions = {n.name: n for n in _top_level(tree) if isinstance(n, ast.FunctionDef)}
    classes = {n.name: n for n in _top_level(tree) if isinstance(n, ast.ClassDef)}
    used = {name: _names(node) - {name} for name, node in (functions | classes).items()}
    used |= {
        target.id: _names(node.value)
        for node in _top_level(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    reaching = set(kernels)
    nested = {
        name
        for name, node in functions.items()
        if name not in kernels
        and any(isinstance(n, ast.FunctionDef) and n.name in kernels for n in ast.walk(node))
    }
    reaching |= nested
    while more := {name for name, names in used.items() if names & reaching} - reaching:
        reaching |= more
    jitted = {name for name, node in functions.items() if is_jitted(node)}
    callers: dict[str, int] = {}
    for name, names in used.items():
        if name in reaching and name not in kernels:
            for used_name in names:
                callers[used_name] = callers.get(used_name, 0) + 1
    ranked: list[tuple[tuple[int, int, int, int], EntryCandidate]] = []
    for name, node in functions.items():
        if name not in reaching or name in jitted or name in kernels or name.startswith(_NEVER):
            continue
        private = 2 if name.startswith("_") else 0
        inner = 1 if callers.get(name) else 0
        ranked.append(
            ((_is_backward(name), private, inner, _required(node)), EntryCandidate(name, name, "function"))
        )
    for name, owner in classes.items():
        forward = next(
            (n for n in owner.body if isinstance(n, ast.FunctionDef) and n.name == "forward"), None
        )
        autograd = any(ast.unparse(b).endswith("Function") for b in owner.bases)
        backward = next(
            (n for n in owner.body if isinstance(n, ast.FunctionDef) and n.name == "backward"), None
        )
        if forward is not None and autograd and _names(forward) & reaching:
            candidate = EntryCandidate(f"{name}.apply", f"{name}.forward", "autograd", given_before(forward))
            private = 0 if backward is not None and _names(backward) & reaching else 1
            ranked.append(((_is_backward(name), private, 0, _required(forward)), candidate))
        elif forward is not None and is_torch_module(owner) and name in reaching:
            ranked.append(((0, 1, 0, _required(forward)), EntryCandidate(name, name, "module")))
    called = set().union(*(_names(functions[n]) for n in jitted)) if jitted else set()
    for name in kernels:
        if name in functions and name not in called:
            ranked.append(((2 + _is_backward(name), 3, 0, 0), EntryCandidate(name, name, "kernel")))
    ranked.sort(key=lambda item: item[0])
    return [candidate for _, candidate in ranked]


def _top_level(tree: ast.Module) -> list[ast.stmt]:
    statements: list[ast.stmt] = []
    waiting = list(tree.body)
    while waiting:
        node = waiting.pop(0)
        statements.append(node)
        if isinstance(node, ast.If):
            waiting = [*node.body, *node.orelse, *waiting]
        elif isinstance(node, ast.Try):
            waiting = [*node.body, *(s for h in node.handlers for s in h.body), *node.orelse, *waiting]
    return statements


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def is_jitted(node: ast.FunctionDef) -> bool:
    """Return whether a decorator of a function is named after ``jit``."""
    return any("jit" in ast.unparse(d).split("(")[0].split(".")[-1] for d in node.decorator_list)


def is_torch_module(owner: ast.ClassDef) -> bool:
    """Return whether a class is called as ``torch.nn`` calls modules, by its bases' names."""
    return any(ast.unparse(base).split(".")[-1] == "Module" for base in owner.bases)


def given_before(forward: ast.FunctionDef) -> int:
    """Return how many arguments of an autograd function's ``forward`` come before its caller's: the context, and the
    class where it is a method of that."""
    return 1 + any(ast.unparse(d) == "classmethod" for d in forward.decorator_list)


def _is_backward(name: str) -> int:
    return 1 if any(word in name.lower() for word in _BACKWARD) else 0


def _required(function: ast.FunctionDef) -> int:
    arguments = function.args
    positional = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
    return positional + sum(d is None for d in arguments.kw_defaults)
