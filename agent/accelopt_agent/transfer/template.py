"""An edit learned from a slow-fast pair: statements before and after, with holes where kernels may differ.

The two sides are anti-unified by syntax (G. Plotkin, "A note on inductive generalization", 1970): an expression
that occurs more than once across both sides becomes one hole, and so does every local name; API names, operators
and other constants stay as they are.
"""

from __future__ import annotations

import ast
import builtins
import copy
import difflib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

Function = ast.FunctionDef | ast.AsyncFunctionDef
Statements = tuple[ast.stmt, ...]

#: Calls that declare a buffer without filling it with anything that depends on the input.
_DECLARING = frozenset({"ndarray", "zeros", "ones", "full", "empty"})


@dataclass(frozen=True)
class Template:
    """``before`` becomes ``after``. Names that begin with ``$`` are holes; ``holes`` maps them to what they stood
    for in the pair. ``fresh`` are new local names that ``after`` assigns."""

    before: Statements
    after: Statements
    holes: dict[str, ast.expr] = field(default_factory=dict)
    fresh: tuple[str, ...] = ()


def templates_of(slow: Function, fast: Function, modules: frozenset[str]) -> list[Template]:
    """Return the edits between two versions of a function, largest first. ``modules`` are names that mean an
    API.

    Edits that only remove declarations are left out (a declaration that an edit makes useless is dropped where the
    edit is applied), and so are pure insertions, edits whose new names cannot be explained, and edits that need a
    new buffer: what its shape should be in another kernel cannot be read off the pair.
    """
    new_buffers = declarations(fast).keys() - declarations(slow).keys()
    found = []
    for before, after in fragments(slow.body, fast.body):
        if before and not all(declared_name(s) for s in before) and not names_in(*after) & new_buffers:
            template = _abstract(tuple(before), tuple(after), modules)
            if template is not None:
                found.append(template)
    return sorted(found, key=lambda t: -len(t.before))


def fragments(
    slow: Sequence[ast.stmt], fast: Sequence[ast.stmt]
) -> Iterator[tuple[list[ast.stmt], list[ast.stmt]]]:
    """Pairs of statement runs that differ, as deep in the tree as the whole change fits."""
    slow, fast = telling(slow), telling(fast)
    matcher = difflib.SequenceMatcher(
        None, [shape(s) for s in slow], [shape(s) for s in fast], autojunk=False
    )
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            continue
        a, b = slow[i1:i2], fast[j1:j2]
        if len(a) == len(b) and all(_same_header(x, y) for x, y in zip(a, b, strict=True)):
            for x, y in zip(a, b, strict=True):
                for block in ("body", "orelse"):
                    yield from fragments(getattr(x, block, []), getattr(y, block, []))
        else:
            yield a, b


def telling(statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return the statements that do something: no docstrings and no lone constants."""
    return [s for s in statements if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]


def shape(node: ast.AST) -> str:
    """Return the node's syntax as text, blind to position and to whether it is read or written."""
    return ast.dump(node, annotate_fields=False).replace("Store()", "Load()")


def is_api(node: ast.AST, modules: frozenset[str]) -> bool:
    """Return whether ``node`` names something of an imported module, or a builtin."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and (node.id in modules or hasattr(builtins, node.id))


def names_in(*nodes: ast.AST) -> set[str]:
    return {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)}


def declarations(function: Function) -> dict[str, ast.Assign]:
    """Return the statements of the function's outermost block that declare a buffer, by the buffer's name."""
    found = {}
    for statement in function.body:
        if isinstance(statement, ast.Assign) and (name := declared_name(statement)):
            found[name] = statement
    return found


def declared_name(statement: ast.stmt) -> str | None:
    """Return the name of the buffer that ``statement`` declares, if it is ``name = module.ndarray(...)`` or
    the like."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Attribute(attr=call))):
            return name if call in _DECLARING else None
    return None


def _same_header(a: ast.stmt, b: ast.stmt) -> bool:
    if type(a) is not type(b) or not isinstance(a, (ast.For, ast.While, ast.If, ast.With)):
        return False
    return shape(_without_blocks(a)) == shape(_without_blocks(b))


def _without_blocks(statement: ast.stmt) -> ast.stmt:
    bare = copy.copy(statement)
    for block in ("body", "orelse"):
        if hasattr(bare, block):
            setattr(bare, block, [])
    return bare


def _abstract(before: Statements, after: Statements, modules: frozenset[str]) -> Template | None:
    """Return the template of one edit; None when ``after`` uses names that nothing explains."""
    sides = (*before, *after)
    for node in (n for s in sides for n in ast.walk(s)):
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.Expr)):
            node.value.whole = True  # type: ignore[attr-defined]  # what a statement does is never a hole
    counts = Counter(shape(e) for s in sides for e in ast.walk(s) if isinstance(e, ast.expr))
    maker = _HoleMaker(modules, names_in(*before), counts)
    slow: Statements = tuple(cast(ast.stmt, maker.visit(copy.deepcopy(s))) for s in before)
    fast: Statements = tuple(cast(ast.stmt, maker.visit(copy.deepcopy(s))) for s in after)
    new = {n for n in names_in(*fast) - names_in(*before) if not n.startswith("$")}
    new = {n for n in new if n not in modules and not hasattr(builtins, n)}
    if not {n for n in names_in(*fast) if n.startswith("$")} <= names_in(*slow):
        return None
    assigned = {
        n.id for s in fast for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    if not new <= assigned:
        return None
    return Template(slow, fast, maker.holes, tuple(sorted(new)))


class _HoleMaker(ast.NodeTransformer):
    def __init__(self, modules: frozenset[str], known: set[str], counts: Counter[str]) -> None:
        self._modules, self._known, self._counts = modules, known, counts
        self._names: dict[str, str] = {}
        self.holes: dict[str, ast.expr] = {}

    def visit(self, node: ast.AST) -> ast.AST:
        if not isinstance(node, ast.expr) or not self._is_hole(node):
            visited: ast.AST = self.generic_visit(node)
            return visited
        name = self._names.setdefault(shape(node), f"${len(self._names)}")
        self.holes.setdefault(name, node)
        return ast.copy_location(ast.Name(name, getattr(node, "ctx", ast.Load())), node)

    def _is_hole(self, node: ast.expr) -> bool:
        if is_api(node, self._modules):
            return False
        if isinstance(node, ast.Name):
            return node.id in self._known
        if not isinstance(node, (ast.Subscript, ast.BinOp, ast.Call)) or hasattr(node, "whole"):
            return False
        free = {n for n in names_in(node) if n not in self._modules and not hasattr(builtins, n)}
        return self._counts[shape(node)] > 1 and bool(free) and free <= self._known
