"""Facts about a candidate's syntax tree, collected in one pass: every rule reads them and yields findings."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from accelopt_profiling.kernels import Kernel
from accelopt_profiling.name_paths import dotted_path, import_paths

Function = ast.FunctionDef | ast.AsyncFunctionDef
_LOOK_UPS = "delattr getattr globals id locals object open print setattr type vars"
BUILTINS = frozenset(f"__import__ breakpoint compile eval exec input {_LOOK_UPS}".split())


@dataclass(frozen=True)
class StaticFinding:
    """A finding at a 1-based ``line``.

    ``code`` is stable (see docs/explanation/gate.md), ``subject`` what the finding is about: a name in the text, or a
    kind. An original that has a finding with the same two does the same. One that is ``certain`` has no honest use in a
    kernel file and refuses the candidate; the others are worth knowing.
    """

    code: str
    subject: str
    line: int
    message: str
    certain: bool = False


def at(node: ast.AST, code: str, subject: str, message: str, certain: bool = False) -> StaticFinding:
    return StaticFinding(code, subject, line=getattr(node, "lineno", 1), message=message, certain=certain)


class Facts:
    """Where each node of a parsed file stands, what its names mean, and which nodes hold a launch.

    ``nodes`` are in the order of ``ast.walk``. ``kernels`` are names; ``traced`` tells that Python runs their bodies.
    ``bindings`` are what is bound to which value, ``stores`` the nodes that bind a name.
    """

    def __init__(self, kernels: Sequence[Kernel], tree: ast.Module) -> None:
        self.tree, self._kernels = tree, kernels
        self.kernels = {k.name.split(".")[-1].split("#")[0] for k in kernels}
        self.traced = any(k.dialect == "nki" for k in kernels)
        self.nodes: list[ast.AST] = [tree]
        self.parents: dict[ast.AST, ast.AST] = {}
        self.bindings: list[tuple[ast.expr | ast.arg, ast.expr]] = []
        self.stores: dict[str, list[ast.AST]] = defaultdict(list)
        self.imported: dict[str, str] = {}
        self.defined: set[str] = set()
        self.scopes: dict[ast.AST, ast.AST] = {}
        self._locals: dict[ast.AST | None, set[str]] = defaultdict(set)
        self._launching: set[ast.AST] = set()
        for node in self.nodes:  # grows while it is read
            scope = node if isinstance(node, (Function, ast.ClassDef)) else self.scopes.get(node)
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node
                if scope is not None:
                    self.scopes[child] = scope
                self.nodes.append(child)
            self._take(node)
        for node in self.nodes:
            if isinstance(node, (ast.Global, ast.Nonlocal)):
                self._locals[self.scopes.get(node)].difference_update(node.names)
        for target, value in self.bindings:
            match target, value:
                case _ if isinstance(self.parents[target], ast.AugAssign):
                    pass
                case ast.Tuple(several), ast.Tuple(values):
                    for part, held in zip(several, values, strict=False):
                        self._take_alias(part, held)
                case _:
                    self._take_alias(target, value)

    def _take(self, node: ast.AST) -> None:
        """Take in what ``node`` binds, and whether it is a launch."""
        scope = self._locals[self.scopes.get(node)]
        match node:
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
                self.defined.add(name)
                scope.add(name)
                if isinstance(node, Function):
                    self.bindings += _defaults(node.args)
            case ast.arg(name):
                self.stores[name].append(node)
                if not isinstance(self.parents[self.parents[node]], ast.Lambda):
                    scope.add(name)
            case ast.Name(name, ast.Store()):
                scope.add(name)
                self.stores[name].append(node)
            case ast.Assign(targets, value):
                self.bindings += [(target, value) for target in targets]
            case (
                ast.AugAssign(target, _, value)
                | ast.NamedExpr(target, value)
                | ast.AnnAssign(target, _, value)
            ):
                self.bindings += [(target, value)] if value is not None else []
            case (
                ast.Import() | ast.ImportFrom()
            ):  # a module of the file's own is read as the one of that name
                self.imported.update((name, path.lstrip(".")) for name, path in import_paths(node).items())
            case ast.Call(function):
                function = function.value if isinstance(function, ast.Subscript) else function
                match function:
                    case ast.Name(name) | ast.Attribute(ast.Name(name), "run" | "warmup"):
                        if name in self.kernels and node not in self._launching:
                            self._launching.update((node, *self.above(node)))

    def _take_alias(self, target: ast.AST, value: ast.expr) -> None:
        """``F = torch.nn.functional``"""
        name, dotted = getattr(target, "id", getattr(target, "arg", None)), self.dotted(value)
        is_plain = isinstance(value, ast.Name) and value.id not in self.imported and dotted not in BUILTINS
        if name and dotted and not is_plain and name not in self.imported and name not in self.defined:
            self.imported[name] = dotted

    def of(self, tree: ast.Module) -> Facts:
        """Return the facts about another spelling of the same file."""
        return Facts(self._kernels, tree)

    def dotted(self, node: ast.AST) -> str | None:
        """Return the dotted path of a name or attribute of something imported, or of a built-in; None for others."""
        return dotted_path(node, self._meaning)

    def _meaning(self, name: str) -> str | None:
        is_built_in = name in BUILTINS and name not in self.defined
        return self.imported.get(name, name if is_built_in else None)

    def called(self, node: ast.AST) -> str:
        """Return the dotted path of what is called, "" where that is not known or ``node`` is no call."""
        return self.dotted(node.func) or "" if isinstance(node, ast.Call) else ""

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield what ``node`` stands in, from the inside out."""
        while (parent := self.parents.get(node)) is not None:
            yield parent
            node = parent

    def functions(self, node: ast.AST | None) -> Iterator[Function]:
        """Yield the functions around ``node``, from the inside out."""
        while node is not None:
            node = self.scopes.get(node)
            if isinstance(node, Function):
                yield node

    def function_of(self, node: ast.AST) -> Function | None:
        return next(self.functions(node), None)

    def statement_of(self, node: ast.AST) -> ast.AST:
        return next((n for n in (node, *self.above(node)) if isinstance(n, ast.stmt)), self.tree)

    def scoped(self, node: ast.AST, name: str) -> str:
        """Return ``name`` as meant at ``node``: with its function's line unless it is a global."""
        around = (f"{name}@{f.lineno}" for f in self.functions(node) if name in self._locals[f])
        return next(around, name)

    def is_shared(self, node: ast.AST, name: str) -> bool:
        """Check whether ``name`` is none of some function around ``node``."""
        return any(name not in self._locals[f] for f in self.functions(node))

    def is_declared(self, node: ast.AST, name: str) -> bool:
        """Check whether a ``name`` that is bound at ``node`` is one of the outside."""
        function = self.function_of(node)
        return function is not None and name not in self._locals[function]

    def kernels_around(self, node: ast.AST) -> list[Function]:
        """Return the kernels that ``node`` belongs to, itself included."""
        itself = [node] if isinstance(node, Function) else []
        return [f for f in (*itself, *self.functions(node)) if f.name in self.kernels]

    def launches(self, *nodes: ast.AST) -> bool:
        """Check whether a kernel of the file is called somewhere below ``nodes``."""
        return any(node in self._launching for node in nodes)

    @cached_property
    def launchers(self) -> dict[str, Function]:
        """The functions of the file that launch a kernel, by name."""
        functions = (n for n in self.nodes if isinstance(n, Function))
        return {f.name: f for f in functions if f.name not in self.kernels and self.launches(f)}

    @cached_property
    def functions_at_top(self) -> dict[str, ast.FunctionDef]:
        return {node.name: node for node in self.tree.body if isinstance(node, ast.FunctionDef)}

    @cached_property
    def attributes(self) -> set[str]:
        return {node.attr for node in self.nodes if isinstance(node, ast.Attribute)}

    @cached_property
    def _moved(self) -> set[str | None]:
        """Fields of models that something else than ``__init__`` assigns to."""
        places = (n for n in self.nodes if isinstance(getattr(n, "ctx", None), (ast.Store, ast.Del)))
        return {None, *(_field(n) for n in places if getattr(self.function_of(n), "name", "") != "__init__")}

    def value_of(self, node: ast.AST) -> ast.expr | None:
        """Return what is assigned to a name whole, where ``node`` binds it.

        None where another thing is bound.
        """
        statement = self.parents[node]
        return statement.value if isinstance(statement, ast.Assign) else None

    def is_own_state(self, node: ast.AST | None) -> bool:
        """Check whether ``node`` is a model's own: ``self.a.b`` where only ``__init__`` assigns to ``a``, or a name
        for such, as weights are.
        """
        if isinstance(node, ast.Name):
            function = self.function_of(node)
            values = [self.value_of(s) for s in self.stores[node.id] if function in [*self.functions(s)]]
            return function is not None and bool(values) and all(map(self._is_field, values))
        return self._is_field(node)

    def _is_field(self, node: ast.AST | None) -> bool:
        return _field(node) not in self._moved


def _field(node: ast.AST | None) -> str | None:
    """``a`` of ``self.a.b`` or ``self.a[0]``; None for anything else."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            return node.attr
        node = node.value
    return None


def _defaults(arguments: ast.arguments) -> Iterator[tuple[ast.arg, ast.expr]]:
    """Yield the parameters that have a default, each with it."""
    ordered, values = [*arguments.posonlyargs, *arguments.args], arguments.defaults
    yield from zip(ordered[len(ordered) - len(values) :], values, strict=True)
    yield from ((a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d)


def parts(target: ast.AST) -> Iterator[ast.AST]:
    """Yield what stands in a target that may be a tuple."""
    for inner in getattr(target, "elts", ()):
        yield from parts(inner)
    if not isinstance(target, (ast.Tuple, ast.List)):
        yield target


def below(*nodes: ast.AST) -> Iterator[ast.AST]:
    """Yield ``nodes`` and what stands in them, the outer ones first."""
    return ast.walk(ast.Module(list(nodes), []))  # type: ignore[arg-type]
