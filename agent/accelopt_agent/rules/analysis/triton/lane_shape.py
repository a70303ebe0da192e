"""Rewrites a kernel of one row per program for a tile of rows: what depends on the row gets a second axis."""

from __future__ import annotations

import libcst as cst

from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.triton.kernel import TritonKernel
from accelopt_agent.rules.analysis.triton.values import Evaluation
from accelopt_profiling.triton.functions.table import functions_of

#: Functions of which every lane is computed from that lane of the arguments.
ELEMENTWISE = functions_of("elementwise") | {"multiple_of", "max_contiguous"}
_REDUCTIONS = frozenset({"sum", "max", "min"})
_ROWS = "{ROWS}"


def is_elementwise(path: str) -> bool:
    """Return whether the function at an import path computes lane by lane: one of Triton or of its libdevice, or one of
    a library that carries the name of such a function."""
    name = path.removeprefix("triton.language.").removeprefix("math.")
    library = not path.startswith("triton.") and path.rpartition(".")[2] in ELEMENTWISE
    return name in ELEMENTWISE or ".libdevice." in path or library


class Shapes:
    """What of a kernel depends on the variable ``row``, and which ranges and reductions run along its lanes."""

    def __init__(self, kernel: TritonKernel, values: Evaluation, row: str) -> None:
        self.kernel, self.values, self.row = kernel, values, row
        self.has_lanes = bool(kernel.calls(*functions_of("range", "create")))
        self.depends = self._dependent()

    def _dependent(self) -> set[str]:
        """Return the variables that depend on the row."""
        names = {self.row}
        while True:
            more = {name for s in self.kernel.flow.simple() if s.reads & names for name in s.writes} - names
            if not more:
                return names
            names |= more

    def edits(self, limit: str) -> list[ByteEdit] | None:
        """Return the edits for a tile of ``{ROWS}`` rows before ``limit``.

        None where the kernel does not allow it.
        """
        kernel = self.kernel
        edits: list[ByteEdit] = []
        if not self._plain():
            return None
        for call in kernel.source.walk(kernel.function.body, cst.Call):
            call_edits = self._call(call, limit)
            if call_edits is None:
                return None
            edits += call_edits
        started = self._carried()
        if started is None:
            return None
        return [*edits, *started]

    def _plain(self) -> bool:
        """Return whether no control flow depends on the row, and nothing is subscripted."""
        kernel = self.kernel
        for statement in kernel.flow.statements:
            node = statement.node
            if isinstance(node, (cst.While, cst.With, cst.Try)):
                return False
            tests = [node.test] if isinstance(node, cst.If) else []
            tests += [node.iter] if isinstance(node, cst.For) else []
            if any(kernel.flow.variables(test) & self.depends for test in tests):
                return False
        for below in kernel.source.below(kernel.function.body):
            if isinstance(below, (cst.Subscript, cst.Assert)):
                return False
            if isinstance(below, cst.Return) and not self._ends(below):
                return False
            choice = below.test if isinstance(below, cst.IfExp) else below
            if isinstance(below, (cst.IfExp, cst.BooleanOperation)) and self._is_dependent(choice):
                return False
        return True

    def _ends(self, node: cst.Return) -> bool:
        """Return whether it is the kernel's last statement, and gives nothing back."""
        last = self.kernel.function.body.body[-1]
        return node.value is None and isinstance(last, cst.SimpleStatementLine) and node in last.body

    def _call(self, call: cst.Call, limit: str) -> list[ByteEdit] | None:
        """Return what becomes of a call. None for one that has no meaning on tiles."""
        kernel, source = self.kernel, self.kernel.source
        path = kernel.names.path(call.func) or ""
        name = path.removeprefix("triton.language.")
        if name == "arange":
            return [ByteEdit(source.end(call), source.end(call), "[None, :]")]
        if name in ("load", "store", "atomic_add"):
            return self._access(call, limit)
        if name in ("zeros", "full") and call.args:
            shape = call.args[0].value
            if not isinstance(shape, (cst.Tuple, cst.List)) or len(shape.elements) != 1:
                return None
            length = shape.elements[0].value
            return [ByteEdit(source.start(length), source.start(length), f"{_ROWS}, ")]
        if name in _REDUCTIONS:
            return self._reduction(call)
        if is_elementwise(path) or name in functions_of("place", "grid") | {"range", "static_range"}:
            return []
        builtin = source.code(call.func) in ("range", "float", "min", "max")
        method = isinstance(call.func, cst.Attribute) and call.func.attr.value == "to"
        return [] if builtin or (method and not path) else None

    def _reduction(self, call: cst.Call) -> list[ByteEdit] | None:
        source = self.kernel.source
        if not self.kernel.flow.variables(call) or not self._is_dependent(call.args[0].value):
            return None
        axis = next((a for a in call.args[1:] if a.keyword is None or a.keyword.value == "axis"), None)
        if any(a is not axis for a in call.args[1:]) or len(call.args) > 2:
            return None
        if axis is not None and source.code(axis.value) not in ("0", "-1"):
            return None
        end = source.end(call.args[0])
        return [ByteEdit(end, source.end(call.args[-1]), ", axis=1, keep_dims=True")]

    def _access(self, call: cst.Call, limit: str) -> list[ByteEdit] | None:
        """Return a load or store that depends on the row leaves out the rows at and past ``limit``."""
        kernel, source = self.kernel, self.kernel.source
        if not call.args or any(a.star for a in call.args):
            return None
        if not kernel.is_call(call, "load") and not self._is_dependent(call.args[0].value):
            return None  # all rows would write to one place
        if not self._is_dependent(call.args[0].value):
            return []
        placed = [a for a in call.args if a.keyword is None]
        least = 1 if kernel.is_call(call, "load") else 2
        mask = next((a for a in call.args if a.keyword is not None and a.keyword.value == "mask"), None)
        mask = mask if mask is not None else (placed[least] if len(placed) > least else None)
        bound = f"{self.row} < {limit}"
        if mask is None:
            if len(placed) < least:
                return None
            at = source.end(placed[least - 1])
            return [ByteEdit(at, at, f", mask={bound}")]
        start, end = source.start(mask.value), source.end(mask.value)
        if isinstance(mask.value, cst.Name):
            return [ByteEdit(start, start, f"({bound}) & ")]
        return [ByteEdit(start, start, f"({bound}) & ("), ByteEdit(end, end, ")")]

    def _is_dependent(self, node: cst.CSTNode) -> bool:
        return bool(self.kernel.flow.variables(node) & self.depends)

    def _carried(self) -> list[ByteEdit] | None:
        """Numbers that a loop goes on from become columns of them, as the loop makes one number per row of them."""
        kernel, source = self.kernel, self.kernel.source
        edits: list[ByteEdit] = []
        loops = [s for s in kernel.flow.statements if isinstance(s.node, cst.For)]
        for loop in loops:
            for name in loop.writes & loop.reads & self.depends:
                starts = [s for s in kernel.flow.simple() if s.binds(name) and s.block is loop.block]
                starts = [s for s in starts if source.start(s.node) < source.start(loop.node)]
                if not starts or starts[-1].value is None:
                    continue
                value = starts[-1].value
                meaning = self.values.of(value)
                if meaning is not None and isinstance(meaning.number, int):
                    return None
                if meaning is None or meaning.number is None:
                    if not self._is_dependent(value) and not any(
                        kernel.is_call(c, "zeros", "full") for c in source.walk(value, cst.Call)
                    ):
                        return None
                    continue
                shape = f"[{_ROWS}, 1]" if self.has_lanes else f"[{_ROWS}]"
                full, single = kernel.spell("full"), kernel.spell("float32")
                edits.append(source.replace(value, f"{full}({shape}, {source.code(value)}, {single})"))
        return edits
