"""Decides from a loop's source text if its iterations can be replayed: it keeps no state in Python between them.

The emulator records what a body does to tiles, but not what it does to Python's own objects. So a body may only bind
names that it reads in the same iteration, write to tiles, and call functions that are known to keep no state.
"""

from __future__ import annotations

import ast
import builtins
import linecache
import math
import sys
from dataclasses import dataclass, field
from functools import lru_cache
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import numpy as np

from accelopt_profiling.nki.data.index import Affine, Mask
from accelopt_profiling.nki.data.loop_counter import LoopCounter
from accelopt_profiling.nki.data.memory_space import Buffer, MemorySpace
from accelopt_profiling.nki.frontend.handle import Handle
from accelopt_profiling.nki.frontend.namespace import Namespace
from accelopt_profiling.nki.frontend.operators import NlOperation

_BUILTINS = frozenset(
    ("range", "len", "min", "max", "int", "float", "slice", "tuple", "abs", "bool", "divmod")
)
#: Methods of tiles and of NumPy's types.
_METHODS = frozenset((
    "reshape", "broadcast_to", "astype", "type", "permute", "broadcast", "expand_dim", "squeeze_dim", "reshape_dim",
    "flatten_dims", "slice", "select", "ap", "rearrange", "view",
))  # fmt: skip
#: Types that a body may read from outside: numbers and the like, tiles, indices, and packages.
_VALUES = (
    int, float, bool, str, slice, type(None), type(Ellipsis), np.generic, np.dtype, Handle, Affine, Mask,
    LoopCounter, Buffer, NlOperation, MemorySpace,
)  # fmt: skip
_STATEMENTS = (
    ast.Expr,
    ast.Assign,
    ast.AnnAssign,
    ast.AugAssign,
    ast.For,
    ast.If,
    ast.Pass,
    ast.Continue,
    ast.Assert,
)
_EXPRESSIONS = (
    ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.Slice, ast.Tuple, ast.List, ast.Call, ast.keyword,
    ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.IfExp, ast.operator, ast.unaryop, ast.cmpop, ast.boolop,
    ast.expr_context,
)  # fmt: skip


@dataclass
class _BodyRequirements:
    """Requirements of a loop on names: ``tiles`` are tiles, ``functions`` keep no state, ``names`` are values."""

    tiles: set[str] = field(default_factory=set)
    functions: set[tuple[str, ...]] = field(default_factory=set)
    names: set[str] = field(default_factory=set)


def is_replayable(frame: FrameType) -> bool:
    """Return True if the loop that ``frame`` is about to begin can be replayed from one of its iterations."""
    code = frame.f_code
    body = _bodies_in(code, code.co_filename, code.co_linetable).get(frame.f_lineno)
    if body is None:
        return False
    there = {**vars(builtins), **frame.f_globals, **frame.f_locals}
    return (
        all(isinstance(there.get(name), Handle) for name in body.tiles)
        and all(_is_value(there.get(name)) for name in body.names)
        and all(_is_harmless(there, path) for path in body.functions)
    )


@lru_cache(maxsize=64)
def _bodies_in(code: CodeType, file: str, lines: bytes) -> dict[int, _BodyRequirements]:
    """Return the loops in the file of ``code`` that can be replayed, by the line of what they loop over.

    ``file`` and ``lines`` tell code objects apart that are equal but for their places.
    """
    linecache.checkcache(file)
    text = "".join(linecache.getlines(file))
    return {line: body for line, (_, body) in loops_of(text).loops.items()}


@dataclass
class ReadFile:
    """A parsed file, and its loops that may be replayed, by the line of what they loop over."""

    tree: ast.Module
    loops: dict[int, tuple[ast.For, _BodyRequirements]]


@lru_cache(maxsize=16)
def loops_of(text: str) -> ReadFile:
    """Return the loops of a file that can be replayed where names are what their bodies need."""
    loops: dict[int, tuple[ast.For, _BodyRequirements]] = {}
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return ReadFile(ast.Module([], []), loops)
    read_on: dict[str, list[int]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            read_on.setdefault(node.id, []).append(node.lineno)
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Call):
            line, inside = node.iter.lineno, range(node.lineno, (node.end_lineno or node.lineno) + 1)
            reader = _Reader()
            if line in lines:
                loops.pop(line, None)  # two on one line cannot be told apart
            elif reader.loop(node) and all(
                at in inside for name in reader.left_behind for at in read_on.get(name, ())
            ):
                loops[line] = node, reader.body
            lines.add(line)
    return ReadFile(tree, loops)


class _Reader:
    def __init__(self) -> None:
        self.body = _BodyRequirements()
        self.bound: set[str] = set()  # anywhere in the loop
        self.results: dict[str, bool] = {}  # name -> whether all that is bound to it are results of calls
        #: Names that an iteration may leave as an earlier one bound them, to something that a counter may be in.
        self.left_behind: set[str] = set()
        self._depth = 0

    def loop(self, loop: ast.For) -> bool:
        added: set[int] = set()  # the names that ``+=`` adds to
        for node in ast.walk(loop):
            if not isinstance(node, (*_STATEMENTS, *_EXPRESSIONS)):
                return False
            if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
                added.add(id(node.target))
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in added:
                self.bound.add(node.id)
        return self._for(loop, set())

    def _for(self, loop: ast.For, bound_names: set[str]) -> bool:
        if loop.orelse or not isinstance(loop.target, ast.Name):
            return False
        return self._block(loop.body, {*bound_names, loop.target.id})

    def _block(self, statements: list[ast.stmt], bound_names: set[str]) -> bool:
        """True if statements can be replayed where ``bound_names`` are bound in the iteration; adds to them."""
        return all(self._statement(statement, bound_names) for statement in statements)

    def _statement(self, node: ast.stmt, bound_names: set[str]) -> bool:
        if isinstance(node, (ast.For, ast.If)):
            self._depth += 1
            try:
                return self._nested(node, bound_names)
            finally:
                self._depth -= 1
        if isinstance(node, ast.AugAssign):
            return self._reads(node.value, bound_names) and self._augmented(node, bound_names)
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if node.value is None or not self._reads(node.value, bound_names):
                return False
            return all(self._binds(target, node.value, bound_names) for target in targets)
        return all(self._reads(part, bound_names) for part in ast.iter_child_nodes(node))

    def _nested(self, node: ast.For | ast.If, bound_names: set[str]) -> bool:
        if isinstance(node, ast.For):
            return self._reads(node.iter, bound_names) and self._for(node, set(bound_names))
        then, other = set(bound_names), set(bound_names)
        if not (
            self._reads(node.test, bound_names)
            and self._block(node.body, then)
            and self._block(node.orelse, other)
        ):
            return False
        bound_names |= then & other
        return True

    def _augmented(self, node: ast.AugAssign, bound_names: set[str]) -> bool:
        """``x += y`` leaves a tile where it is; anything else binds a name anew."""
        if isinstance(node.target, ast.Subscript):
            return self._written(node.target, bound_names)
        if not isinstance(node.target, ast.Name):
            return False
        if node.target.id in self.bound:
            return node.target.id in bound_names
        self.body.tiles.add(node.target.id)
        return True

    def _binds(self, target: ast.expr, value: ast.expr, bound_names: set[str]) -> bool:
        if isinstance(target, ast.Name):
            bound_names.add(target.id)
            fresh = isinstance(value, ast.Call)
            if self._depth and not (isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)):
                self.left_behind.add(target.id)
            self.results[target.id] = self.results.get(target.id, True) and fresh
            return True
        if isinstance(target, ast.Tuple):
            return all(self._binds(part, target, bound_names) for part in target.elts)
        return isinstance(target, ast.Subscript) and self._written(target, bound_names)

    def _written(self, target: ast.Subscript, bound_names: set[str]) -> bool:
        """True if the target of an assignment is a tile."""
        node: ast.expr = target
        while isinstance(node, ast.Subscript):
            if not self._reads(node.slice, bound_names):
                return False
            node = node.value
        return self._is_tile(node, bound_names)

    def _is_tile(self, node: ast.expr, bound_names: set[str]) -> bool:
        """True if an expression is a tile: from before the loop, or the result of a call in the iteration."""
        while isinstance(node, ast.Subscript):
            node = node.value
        if not isinstance(node, ast.Name):
            return isinstance(node, ast.Call)
        if node.id in self.bound:
            return node.id in bound_names and self.results.get(node.id, False)
        self.body.tiles.add(node.id)
        return True

    def _reads(self, node: ast.AST, bound_names: set[str]) -> bool:
        """True if an expression reads nothing that another iteration bound, and calls nothing that keeps state."""
        called: set[int] = set()  # names of functions
        for part in ast.walk(node):
            if isinstance(part, ast.Call):
                path, root = _path(part.func)
                outside = isinstance(root, ast.Name) and root.id not in self.bound
                if (
                    len(path) == 1
                    and path[0] in _METHODS
                    and not outside
                    and self._is_tile(root, bound_names)
                ):
                    continue
                if not isinstance(root, ast.Name) or root.id in self.bound:
                    return False
                self.body.functions.add((root.id, *path))
                called.add(id(root))
            elif isinstance(part, ast.Name) and id(part) not in called:
                if part.id not in self.bound:
                    self.body.names.add(part.id)
                elif part.id not in bound_names:
                    return False
        return True


def _path(function: ast.expr) -> tuple[list[str], ast.expr]:
    """Return the attributes of a called expression, outermost last, and what they are attributes of."""
    path: list[str] = []
    while isinstance(function, ast.Attribute):
        path.insert(0, function.attr)
        function = function.value
    return path, function


def _is_value(value: Any) -> bool:
    """True if reading and computing with ``value`` changes nothing."""
    if isinstance(value, (tuple, list)):
        return _is_known(type(value)) and all(map(_is_value, value))
    if isinstance(value, ModuleType):
        return isinstance(value, Namespace) or value in (np, math)
    return _is_type(value) or (isinstance(value, _VALUES) and _is_known(type(value)))


def _is_harmless(there: dict[str, Any], path: tuple[str, ...]) -> bool:
    """True if a name, or an attribute of a package, is a function that keeps no state."""
    value = there.get(path[0])
    if isinstance(value, Handle):
        return len(path) == 2 and path[1] in _METHODS
    if len(path) == 1 and path[0] in _BUILTINS:
        return value is vars(builtins)[path[0]]
    for name in path[1:]:
        if not isinstance(value, ModuleType):
            return False
        value = vars(value).get(name)
    if isinstance(value, FunctionType):
        return _is_ours(value.__globals__)
    if isinstance(value, NlOperation):
        return _is_known(type(value))
    if value is range:  # ``nl.range``
        return True
    if isinstance(value, type):  # but not ``type``: it would tell a counter from a number
        ours = value.__module__.startswith("accelopt_profiling.nki.")
        return _is_known(value) and (ours or issubclass(value, (np.generic, np.dtype)))
    return isinstance(value, BuiltinFunctionType) and value in vars(math).values()


def _is_type(value: Any) -> bool:
    """True if ``value`` is a type of NumPy's or of the emulator's."""
    return isinstance(value, type) and _is_known(value)


def _is_known(kind: type) -> bool:
    """True if a class is Python's, NumPy's or the emulator's own, and not one that a kernel file made."""
    home = sys.modules.get(kind.__module__)
    if home is None or getattr(home, kind.__name__, None) is not kind:
        return kind in (type(None), type(Ellipsis)) or issubclass(kind, np.dtype)
    return kind.__module__.partition(".")[0] in ("builtins", "numpy", "ml_dtypes") or _is_ours(vars(home))


def _is_ours(names: dict[str, Any]) -> bool:
    """True if these are the global names of one of the emulator's modules."""
    module = str(names.get("__name__"))
    home = sys.modules.get(module) if module.startswith("accelopt_profiling.nki.") else None
    return home is not None and names is vars(home)
