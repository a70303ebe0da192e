"""A statement of a kernel: the names that it binds, reads and writes."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import libcst as cst


@dataclass(eq=False)
class Statement:
    """A statement of a kernel.

    ``loops`` are the ``for`` statements around it, outermost first.

    ``reads`` and ``writes`` are names, those in the blocks below a compound statement included; ``stores`` are those
    whose contents change, not only what the name stands for. ``destination`` is what an instruction without a result
    writes (today's NKI): the argument of ``call``, the whole statement, that it overwrites.
    """

    node: cst.SimpleStatementLine | cst.BaseCompoundStatement
    block: cst.CSTNode
    loops: tuple[cst.For, ...]
    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)
    stores: set[str] = field(default_factory=set)
    destination: cst.BaseExpression | None = None
    call: cst.Call | None = None

    @cached_property
    def assign(self) -> cst.Assign | None:
        """The statement as ``target = value``, if it is that alone on its line."""
        body = self.node.body if isinstance(self.node, cst.SimpleStatementLine) else ()
        only = body[0] if len(body) == 1 else None
        return only if isinstance(only, cst.Assign) and len(only.targets) == 1 else None

    @cached_property
    def simple(self) -> bool:
        return isinstance(self.node, cst.SimpleStatementLine)

    def binds(self, name: str) -> bool:
        """Return whether the statement itself gives ``name`` a value: as its target, in a tuple, or as its loop
        variable."""
        return name in self.bound_names

    @cached_property
    def bound_names(self) -> frozenset[str]:
        """The names that the statement itself gives a value."""
        target: cst.CSTNode | None = self.node.target if isinstance(self.node, cst.For) else self.bound
        parts = [e.value for e in target.elements] if isinstance(target, cst.Tuple) else [target]
        return frozenset(part.value for part in parts if isinstance(part, cst.Name))

    @property
    def bound(self) -> cst.BaseAssignTargetExpression | None:
        """What an assignment stands for from here on, or stores to."""
        return self.assign.targets[0].target if self.assign else None

    @property
    def target(self) -> cst.BaseExpression | None:
        """What the statement gives a value: the target of an assignment, or an instruction's destination."""
        return self.bound if self.assign else self.destination

    @property
    def in_memory(self) -> bool:
        """Whether the statement writes a tensor that was made before, not a variable."""
        return self.destination is not None or isinstance(self.bound, cst.Subscript)

    @property
    def value(self) -> cst.BaseExpression | None:
        return self.assign.value if self.assign else self.call

    @property
    def target_name(self) -> str | None:
        """The variable that is bound or, with an index, stored to."""
        return root_name(self.target) if self.target is not None else None


def root_name(node: cst.BaseExpression) -> str | None:
    """Return ``x`` for ``x``, ``x[...]`` and ``x[...][...]``."""
    while isinstance(node, cst.Subscript):
        node = node.value
    return node.value if isinstance(node, cst.Name) else None


def is_string(node: cst.CSTNode) -> bool:
    """Return whether a statement is a lone string: documentation."""
    if not isinstance(node, cst.SimpleStatementLine):
        return False
    return all(
        isinstance(s, cst.Expr) and isinstance(s.value, (cst.SimpleString, cst.ConcatenatedString))
        for s in node.body
    )
