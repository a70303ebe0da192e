"""What the names and expressions of a file may hold: sizes, places, and what an honest result cannot depend on (the
environment, the clock, chance, an address, ...).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from accelopt_profiling.gate.reading.facts import Facts, Function, parts
from accelopt_profiling.gate.reading.vocabulary import SOURCES, WORDS, entry_of
from accelopt_profiling.triton.functions.table import functions_of

#: Bytes of the widest access of a device that alignment matters to: a warp's line of its cache (CUDA C++ Programming
#: Guide, "Device Memory Accesses").
_WIDEST_ACCESS = 128
#: Steps from name to name that a cause is followed.
_ROUNDS = 8
_SIZES = frozenset(["shape", "size", "numel", "nelement", "ndim", "stride"])
_PLACES = functions_of("place", "range")
_ACCESSES = functions_of("load", "store", "atomic") | {"dma_copy"}


class Flow:
    """What expressions depend on. Causes are those of ``rules.json``: "ENVIRONMENT", ..."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._places: dict[Function, set[str]] = {}

    def cause(self, node: ast.AST) -> str | None:
        """Return what ``node`` depends on: a source in it, or what holds one."""
        keys, source = self._reads(node)
        return next((self.held[key] for key in keys if key in self.held), source)

    @cached_property
    def held(self) -> dict[str, str]:
        """Causes of names, attributes and functions' results, directly or through others."""
        held: dict[str, str] = {}
        bindings = [
            (key, self._reads(value)) for key, value in self._bindings()
            # int(os.environ.get("BLOCK", 128)) is a tuning parameter, not a switch
            if not (isinstance(value, ast.Call) and getattr(value.func, "id", "") in ("int", "float"))
        ]  # fmt: skip
        for _ in range(_ROUNDS):
            for key, (keys, source) in bindings:
                cause = next((held[k] for k in keys if k in held), source)
                if cause and key not in held:
                    held[key] = cause
        return held

    def _reads(self, node: ast.AST) -> tuple[list[str], str | None]:
        """Return the keys that ``node`` reads until its first source, and that source's cause."""
        keys = []
        for inner in ast.walk(node):
            match self.facts.parents.get(inner):
                case ast.Call(read) | ast.Compare(_, [ast.In() | ast.NotIn(), *_], [read, *_]) if (
                    read is inner
                ):
                    pass  # a call's result is read; ``key not in chosen`` asks for a key, whatever chose the values
                case _ if key := self.key(inner):
                    keys.append(key)
            if cause := self.source(inner):
                return keys, cause
        return keys, None

    def key(self, node: ast.AST) -> str | None:
        """Return what holds a value: a name where it is bound, or an attribute of whatever object; a call holds what
        its function returns.
        """
        match node:
            case ast.Call(function):
                return f"{held}()" if (held := self.key(function)) else None
            case ast.Attribute(attr=name):
                return f".{name}"
            case ast.Name(name) | ast.arg(name):
                return self.facts.scoped(node, name)
        return None

    def source(self, node: ast.AST) -> str | None:
        """Return the cause that ``node`` itself asks for."""
        cause = None
        match node:
            case ast.Call(ast.Attribute(owner, name)):
                cause = SOURCES.get(f"*.{name}()")
            case ast.Attribute(owner, name):
                cause = SOURCES.get(f"*.{name}")
                if not cause and name in WORDS["makings"] and self._is_foreign(owner):
                    return "MAKING"
        if cause == "ADDRESS" and self.facts.is_own_state(owner):
            return None
        if not cause and isinstance(node, (ast.Name, ast.Attribute)):
            cause = entry_of(self.facts.dotted(node) or "", SOURCES)
        return None if cause == "ADDRESS" and self._is_alignment(node) else cause

    def _is_foreign(self, node: ast.expr) -> bool:
        """Check whether ``node`` is an object of a library, a kernel, or the class of one: ``nki``,
        ``type(triton.runtime.driver.active)``."""
        match node:
            case ast.Call(_, [inner, *_]) if self.facts.called(node) == "type":
                return self._is_foreign(inner)
            case ast.Attribute(inner, name) if name in WORDS["makings"]:
                return self._is_foreign(inner)
        return self.facts.dotted(node) is not None or getattr(node, "id", None) in self.facts.kernels

    def _is_alignment(self, node: ast.AST) -> bool:
        """``x.data_ptr() % 16``: whether memory is aligned is a fair question, as far as an access can be wide."""
        for parent in self.facts.above(node):
            match parent:
                case ast.Call() | ast.Attribute() | ast.BinOp(op=ast.BitOr()):
                    node = parent
                case ast.BinOp(left, ast.Mod() | ast.BitAnd() as operator, right):
                    match right if left is node else left:
                        case ast.Constant(int() as width):
                            return width <= _WIDEST_ACCESS - isinstance(operator, ast.BitAnd)
                        case other:
                            return isinstance(other, (ast.Name, ast.Attribute, ast.Call))
                case _:
                    return False
        return False

    def _bindings(self) -> Iterator[tuple[str, ast.expr]]:
        """Yield what holds which expression: assignments, fields of classes, arguments by keyword, and what functions
        return.
        """
        facts = self.facts
        for target, value in facts.bindings:
            for part in parts(target):
                held = self.key(part.value if isinstance(part, ast.Subscript) else part)
                if held is not None:
                    yield held, value
                    if isinstance(value, ast.Lambda):
                        yield f"{held}()", value.body
                    if isinstance(facts.scopes.get(part), ast.ClassDef):
                        yield f".{getattr(part, 'id', held)}", value
        for node in facts.nodes:
            match node, facts.function_of(node):
                case ast.Call(ast.Name(name), _, keywords), _ if name in facts.defined and name[0].isupper():
                    yield from ((f".{k.arg}", k.value) for k in keywords if k.arg)
                case ast.Return(ast.expr() as value), function if (
                    function and function.name not in facts.kernels
                ):
                    is_method = isinstance(facts.parents.get(function), ast.ClassDef)
                    is_property = any("property" in ast.dump(d) for d in function.decorator_list)
                    name = f".{function.name}" if is_method else facts.scoped(function, function.name)
                    yield name if is_property else f"{name}()", value

    def counts(self, node: ast.AST) -> bool:
        """Check whether ``node`` looks at something that counts calls."""
        return any(self._counter(inner) in self._counters for inner in ast.walk(node))

    @cached_property
    def _counters(self) -> set[str | None]:
        """What functions advance each time they are called: names of the outside, attributes, elements, lengths."""
        facts, counters = self.facts, set[str | None]()
        for node in facts.nodes:
            counter: ast.AST | None = None
            match node:
                case ast.AugAssign(target, ast.Add() | ast.Sub()):
                    counter = target
                case ast.Assign([target], ast.BinOp(left, ast.Add() | ast.Sub(), right)):
                    counter = target if ast.unparse(target) in map(ast.unparse, (left, right)) else None
                case ast.Call(ast.Name("next"), [ast.Name(name), *_]) if facts.is_shared(node, name):
                    counters.add(self._counter(node))
                case ast.Call(ast.Attribute(ast.Name(name), "append")) if facts.is_shared(node, name):
                    counters.add(f"len({facts.scoped(node, name)})")
            match counter:
                case ast.Attribute() if facts.function_of(node):
                    counters.add(self._counter(counter))
                case ast.Name(name) if facts.is_declared(node, name):
                    counters.add(self._counter(counter))
                case ast.Subscript(ast.Name(name)) if facts.is_shared(node, name):
                    counters.add(self._counter(counter))
        return counters - {None}

    def _counter(self, node: ast.AST) -> str | None:
        """Return the name of what may count: ``x``, ``x.y``, ``x[]``, ``len(x)`` or ``next(x)``."""
        match node:
            case ast.Name(name):
                return self.facts.scoped(node, name)
            case ast.Attribute(ast.Name(name), field):
                return f"{name}.{field}"
            case ast.Subscript(ast.Name(name)):
                return f"{self.facts.scoped(node, name)}[]"
            case ast.Call(ast.Name(function), [ast.Name(name), *_]):
                return f"{function}({self.facts.scoped(node, name)})"
        return None

    def has_size(self, node: ast.AST) -> bool:
        """Check whether an expression has a size in it."""
        return _has_size(node, self._sizes)

    @cached_property
    def _sizes(self) -> set[str]:
        sizes: set[str] = set()
        for node in self.facts.nodes:
            if isinstance(node, ast.Assign) and _has_size(node.value, sizes):
                sizes |= {n.id for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name)}
        return sizes

    def is_place(self, node: ast.AST, kernel: Function) -> bool:
        """Check whether ``node`` is where a program of ``kernel`` is, or a size."""
        while isinstance(node, ast.Subscript):
            node = node.value
        if isinstance(node, ast.Attribute):
            return node.attr in _SIZES
        return isinstance(node, ast.Name) and node.id in self._places_of(kernel)

    def follows_place(self, node: ast.AST, kernel: Function) -> bool:
        """Check whether an expression is computed from where a program is, and from no data."""
        called = self._called_in(node)
        of_place = called & _PLACES or any(self.is_place(n, kernel) for n in ast.walk(node))
        return bool(of_place) and "load" not in called

    def _places_of(self, kernel: Function) -> set[str]:
        """Return the names that hold where a program is, and parameters that are no addresses."""
        if kernel not in self._places:
            places = {a.arg for a in (*kernel.args.posonlyargs, *kernel.args.args, *kernel.args.kwonlyargs)}
            calls = [n for n in ast.walk(kernel) if isinstance(n, ast.Call) and n.args]
            places -= {_base(c.args[0]) for c in calls if self._is_access(self.facts.called(c))}
            for node in ast.walk(kernel):
                match node:
                    case ast.Assign([ast.Name(name), *_], value):
                        called = self._called_in(value)
                        if called & _PLACES and "load" not in called:
                            places.add(name)
            self._places[kernel] = places
        return self._places[kernel]

    def _is_access(self, called: str) -> bool:
        return called.rpartition(".")[2] in _ACCESSES

    def _called_in(self, node: ast.AST) -> set[str]:
        return {self.facts.called(n).rpartition(".")[2] for n in ast.walk(node) if isinstance(n, ast.Call)}


def _has_size(node: ast.AST, names: set[str]) -> bool:
    return any(getattr(n, "attr", "") in _SIZES or getattr(n, "id", "") in names for n in ast.walk(node))


def _base(address: ast.expr) -> str:
    """Return the name that an address starts with: ``x_ptr`` of ``x_ptr + row * n + columns``."""
    while isinstance(address, (ast.BinOp, ast.Subscript)):
        address = address.left if isinstance(address, ast.BinOp) else address.value
    return getattr(address, "id", "")
