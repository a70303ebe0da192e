"""Compute a float32 product as three products of bfloat16 parts: TensorE passes over a float32 product four times.

Each operand is the sum of its value in bfloat16 and of what that leaves over. The product of the two remainders is left
out: the result has about 16 of float32's 24 bits, and the tolerance of the problem decides whether that is enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import libcst as cst

from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.nki.kernel import NISA, NL, NkiCall, NkiKernel
from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.statement import Statement, root_name

#: The parts of the two operands that are multiplied, the largest product first.
_PRODUCTS = (("_high", "_high"), ("_high", "_low"), ("_low", "_high"))

_WORDS = ("bfloat16", "subtract", "copy")


def rewrites(kernel: NkiKernel) -> Iterator[Rewrite]:
    products = list(_products(kernel))
    for chosen in (products, *([p] for p in products if len(products) > 1)):
        if (rewrite := _split(kernel, chosen)) is not None:
            yield rewrite


def _split(kernel: NkiKernel, chosen: list[NkiCall]) -> Rewrite | None:
    splitting = _Splitting(kernel)
    products = [p for p in chosen if splitting.takes(p)]
    if not products or not kernel.spelled(f"{NL}.bfloat16"):
        return None
    lines = ", ".join(str(kernel.source.line(p.call)) for p in products)
    edits = (*splitting.edits, *(_in_parts(kernel, p) for p in products))
    return Rewrite(
        edits, f"Compute the product in line {lines} as three of bfloat16 parts, to about 16 bits."
    )


def _products(kernel: NkiKernel) -> Iterator[NkiCall]:
    """Yield the products that add to a sum in PSUM and have no other options."""
    if kernel.dialect.mutates:
        yield from (p for p in kernel.of(f"{NISA}.nc_matmul") if p.args.keys() == {"stationary", "moving"})
        return
    for statement in kernel.flow.simple():
        only = statement.node.body[0] if isinstance(statement.node, cst.SimpleStatementLine) else None
        if not isinstance(only, cst.AugAssign) or not isinstance(only.operator, cst.AddAssign):
            continue
        product = kernel.instruction(only.value, statement)
        if product is None:
            continue
        turned = kernel.code(product.get("transpose_x")) == "True" and product.args.keys() == {
            "x",
            "y",
            "transpose_x",
        }
        plain = product.path == f"{NISA}.nc_matmul" and product.args.keys() == {"stationary", "moving"}
        if plain or (product.path == f"{NL}.matmul" and turned):
            yield product


def _operands(product: NkiCall) -> tuple[cst.BaseExpression, cst.BaseExpression]:
    names = ("stationary", "moving") if "stationary" in product.args else ("x", "y")
    return product[names[0]], product[names[1]]


def _in_parts(kernel: NkiKernel, product: NkiCall) -> ByteEdit:
    """Return the statement of a product three times, each with other parts of its operands."""
    source, statement = kernel.source, product.statement
    assert statement is not None
    indent, lines = source.indent(statement.node), []
    for suffixes in _PRODUCTS:
        roots = [_root(operand) for operand in _operands(product)]
        edits = [
            source.replace(r, f"{r.value}{s}") for r, s in zip(roots, suffixes, strict=True) if r is not None
        ]
        lines.append(source.edited(statement.node, *edits))
    return source.replace(statement.node, f"\n{indent}".join(lines))


def _root(node: cst.BaseExpression) -> cst.Name | None:
    while isinstance(node, cst.Subscript):
        node = node.value
    return node if isinstance(node, cst.Name) else None


@dataclass
class _Splitting:
    """The edits that make the parts of tiles.

    ``known`` has the statement after which a tile's parts are there, None for a tile that cannot be split.
    """

    kernel: NkiKernel
    edits: list[ByteEdit] = field(default_factory=list)
    known: dict[str, Statement | None] = field(default_factory=dict)

    def takes(self, product: NkiCall) -> bool:
        """Return whether both operands of a product can be split before it, and do it."""
        roots = [_root(operand) for operand in _operands(product)]
        names = [root.value for root in roots if root is not None]
        if len(names) != 2 or not all(self._can(name) for name in names):
            return False
        splits = [self._made(name) for name in dict.fromkeys(names)]
        source = self.kernel.source
        return all(m is not None and source.end(m.node) <= source.start(product.call) for m in splits)

    def _made(self, name: str) -> Statement | None:
        if name not in self.known:
            self.known[name] = self._split(name)
        return self.known[name]

    def _can(self, name: str) -> bool:
        """Return whether the parts' names are free, and nothing says that a tile is narrow already."""
        flow = self.kernel.flow
        return len(flow.binding(name)) == 1 and not any(flow.occurrences(name + s) for s in ("_high", "_low"))

    def _split(self, name: str) -> Statement | None:
        (bound,) = self.kernel.flow.binding(name)
        if isinstance(bound.value, cst.List):
            return self._split_list(name, bound)
        allocation = self.kernel.flow.allocation(name)
        if allocation is not None:
            return (self._split_tile if self.kernel.dialect.mutates else self._split_tensor)(name, allocation)
        return self._split_value(name, bound)

    def _split_list(self, name: str, bound: Statement) -> Statement | None:
        """A list of tiles has a list of each part beside it."""
        source, flow = self.kernel.source, self.kernel.flow
        assert isinstance(bound.value, cst.List)
        appends = [call for use in flow.occurrences(name) if (call := self._append(use)) is not None]
        one = appends[0].args[0].value if len(appends) == 1 else None
        where = flow.statement_of(appends[0]) if one is not None else None
        if bound.value.elements or not isinstance(one, cst.Name) or where is None or not self._can(one.value):
            return None
        split = self._made(one.value)
        if split is None:
            return None
        last = max(split, where, key=lambda s: source.start(s.node))
        # The lists of a list's parts are there before they are filled.
        there = where if isinstance(flow.binding(one.value)[0].value, cst.List) else last
        if there.block is not where.block:
            return None
        self.edits.append(source.after(bound.node, f"{name}_high = []\n{name}_low = []"))
        added = f"{name}_high.append({one.value}_high)\n{name}_low.append({one.value}_low)"
        self.edits.append(source.after(there.node, added))
        return last

    def _append(self, use: cst.Name) -> cst.Call | None:
        method = self.kernel.source.parent(use)
        call = self.kernel.source.parent(method) if isinstance(method, cst.Attribute) else None
        appends = isinstance(method, cst.Attribute) and method.attr.value == "append"
        return call if appends and isinstance(call, cst.Call) and len(call.args) == 1 else None

    def _split_tile(self, name: str, allocation: Statement) -> Statement | None:
        """Today's dialect: two tiles of the same shape, written once the tile is complete."""
        kernel, source, flow = self.kernel, self.kernel.source, self.kernel.flow
        narrow = self._narrowed(allocation)
        writers = [
            i.statement
            for i in kernel.instructions
            if i.destination is not None and root_name(i.destination) == name
        ]
        if narrow is None or not writers:
            return None
        around = [
            [s for s in flow.statements if s.block is allocation.block and self._holds(s, w)]
            for w in writers
            if w
        ]
        last = max((s[0] for s in around if s), key=lambda s: source.start(s.node), default=None)
        copy = kernel.spell(f"{NISA}.tensor_copy", f"{name}_high", name)
        words = kernel.spelled(f"{NL}.subtract")
        rest = kernel.spell(f"{NISA}.tensor_tensor", f"{name}_low", name, f"{name}_high", words or "")
        if last is None or any(not s for s in around) or copy is None or rest is None:
            return None
        lines = [f"{name}_high = {narrow}", copy, f"{name}_low = {narrow}", rest]
        self.edits.append(source.after(last.node, "\n".join(lines)))
        return last

    def _holds(self, one: Statement, other: Statement) -> bool:
        return one is other or one.node in self.kernel.source.parents(other.node)

    def _narrowed(self, allocation: Statement) -> str | None:
        """Return the allocation of a tile in SBUF with the type bfloat16.

        None where it has a narrow type already.
        """
        kernel = self.kernel
        instruction = kernel.instruction(allocation.value) if allocation.value is not None else None
        dtype, buffer = (instruction.get("dtype"), instruction.get("buffer")) if instruction else (None, None)
        bfloat16 = kernel.spelled(f"{NL}.bfloat16")
        if allocation.value is None or dtype is None or bfloat16 is None:
            return None
        if buffer is not None and kernel.path(buffer) != f"{NL}.sbuf":
            return None
        if (kernel.path(dtype) or "").startswith((f"{NL}.bfloat", f"{NL}.float16", f"{NL}.float8")):
            return None
        return kernel.source.edited(allocation.value, kernel.source.replace(dtype, bfloat16))

    def _split_tensor(self, name: str, allocation: Statement) -> Statement | None:
        """Beta 1: two tensors of the same shape, written where the tensor is."""
        source, narrow = self.kernel.source, self._narrowed(allocation)
        writers = [s for s in self.kernel.flow.simple() if name in s.stores and s is not allocation]
        if narrow is None or len(writers) != 1 or writers[0].assign is None:
            return None
        place = writers[0].target
        if not isinstance(place, cst.Subscript) or root_name(place) != name:
            return None
        index = source.code(place).removeprefix(name)
        lines = self._parts(name, index)
        if lines is None:
            return None
        self.edits.append(source.after(allocation.node, f"{name}_high = {narrow}\n{name}_low = {narrow}"))
        self.edits.append(source.after(writers[0].node, lines))
        return writers[0]

    def _split_value(self, name: str, bound: Statement) -> Statement | None:
        """Beta 1: two variables more."""
        value = self.kernel.instruction(bound.value) if bound.value is not None else None
        lines = self._parts(name, "")
        if not isinstance(bound.target, cst.Name) or value is None or lines is None:
            return None
        self.edits.append(self.kernel.source.after(bound.node, lines))
        return bound

    def _parts(self, name: str, index: str) -> str | None:
        words = {w: self.kernel.spelled(f"{NL}.{w}") for w in _WORDS}
        if None in words.values():
            return None
        high, low, whole = f"{name}_high{index}", f"{name}_low{index}", f"{name}{index}"
        narrow = f"dtype={words['bfloat16']}"
        return (
            f"{high} = {words['copy']}({whole}, {narrow})\n"
            f"{low} = {words['subtract']}({whole}, {high}, {narrow})"
        )
