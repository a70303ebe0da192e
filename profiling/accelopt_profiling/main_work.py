"""Tell where a kernel's main work never ran: its products, or else the loop that goes over its tensors.

Only what holds the kernel's dominating kind of work counts. A kernel with products did its work if any product ran, one
without if it read anything. Of the latter a loop over tensors that went round no time is missed too, where no other
such loop ran and nothing that ran touched those tensors.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from accelopt_profiling.measurement import Finding, KernelMeasurement, finding_codes
from accelopt_profiling.nki.operations.table import operations
from accelopt_profiling.problems.catalogue import layout_of
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.ran import LineRecord, dependents, statements_of
from accelopt_profiling.triton.functions.table import functions_of

_PRODUCTS = functions_of("product") | {o.short for o in operations().values() if o.shape == "product"}
_ACCESSES = re.compile(r"load|store|atomic_|dma_|gather|scatter")
_MODULES = frozenset(("tl", "triton", "language", "nl", "nisa", "isa", "nki"))
#: What a program's own place and the values in memory decide: other programs may go another way.
_OWN = functions_of("place", "load")

_Block = tuple[ast.stmt, list[ast.stmt]]


@dataclass(frozen=True)
class MissedWork:
    """Where the way to the main work ended: at a loop without iterations, a branch that was not taken, a statement
    behind a return, or a grid that covers little of the output. ``text`` is what the loop goes over, the branch asks or
    the grid covers."""

    line: int
    what: Literal["loop", "branch", "statement", "grid"]
    text: str = ""


def missed_work(functions: list[ast.FunctionDef], record: LineRecord, certain: bool) -> MissedWork | None:
    """Return where the main work of a kernel was missed in all of its launches; None where it ran.

    ``functions`` are the kernel and what it calls, as ``ran.reachable`` gives them. Unless ``certain`` only a sample of
    the programs ran, or on stand-ins for values: then what those decide tells nothing.
    """
    if not functions or not record.lines:
        return None
    text = _Text(functions, record)
    gap = text.missed()
    if gap is None or certain:
        return gap
    return gap if text.same_for_all(gap) else None


def without_main_work(
    measured: KernelMeasurement, gap: MissedWork, problem: ProblemRef | None
) -> KernelMeasurement:
    """Return the measurement without a cost and what was found about it, with the finding that says why and how to get
    one."""
    how = {
        "loop": f"The main loop ({gap.text}) went round no time",
        "branch": f"The branch with the main work ({gap.text}) was not taken",
        "statement": "The kernel returned before its main work",
        "grid": f"The grid covers {gap.text}",
    }[gap.what]
    if gap.what == "grid":
        way = "Launch as many programs as cover it, or give sizes that this grid covers."
    elif problem is not None and problem.options.get("inferred"):
        way = (
            "These sizes were inferred: `accelopt problem` writes them to a file, where others can be given."
        )
    elif problem is not None and layout_of(problem).runs_itself:
        way = "Launch it with larger sizes, or give it a problem of its own with `accelopt problem`."
    else:
        way = "Give the problem's `get_inputs` other sizes, or another problem with `--problem`."
    at = f" at {measured.case}" if measured.case else ""
    message = f"{how} in this run{at}, so the kernel has no time here. {way}"
    finding = Finding("main-work-missed", gap.line, "warning", message)
    rest = [f for f in measured.findings if f.code == "capacity" or not _is_of_cost(f.code)]
    return replace(measured, findings=[finding, *rest])


def _is_of_cost(code: str) -> bool:
    return code == "inferred-size" or finding_codes().get(code, {}).get("about") == "cost"


class _Text:
    """The statements of a kernel's functions, with the blocks around each, from the outermost in."""

    def __init__(self, functions: list[ast.FunctionDef], record: LineRecord) -> None:
        self._record = record
        self._functions = {f.name: f for f in functions}
        self._around: dict[ast.stmt, tuple[ast.FunctionDef, list[_Block]]] = {}
        for function in functions:
            self._read(function, function.body, [])

    def _read(self, function: ast.FunctionDef, block: list[ast.stmt], around: list[_Block]) -> None:
        for statement in block:
            self._around[statement] = function, around
            for inner in _blocks(statement):
                self._read(function, inner, [*around, (statement, inner)])

    def _ran(self, statement: ast.stmt) -> bool:
        line, around = statement.lineno, self._around[statement][1]
        turned = all(
            self._record.trips.get(line, (1, 1))[1] for o, _ in around if o.lineno == line and _is_loop(o)
        )
        return line in self._record.lines and turned  # on the line of its loop, the loop is noted too

    def missed(self) -> MissedWork | None:
        products = [s for s in self._around if any(_name(c) in _PRODUCTS for c in self._calls(s))]
        main = products or [s for s in self._around if self._reads(s)]
        if main and not any(map(self._ran, main)):
            deepest = max(main, key=lambda s: sum(_is_loop(o) for o, _ in self._around[s][1]))
            return self._blame(deepest, set())
        if products:
            return None
        loops = [s for s in self._around if _is_loop(s) and self._tensors([s])]
        if any(self._ran(_blocks(loop)[0][0]) for loop in loops):
            return None
        accessed = self._tensors([s for s in self._around if self._ran(s) and not _is_loop(s)], inside=False)
        for loop in loops:
            if self._ran(loop) and not self._tensors([loop]) <= accessed:
                return MissedWork(loop.lineno, "loop", _shown(loop))
        return None

    def _blame(self, statement: ast.stmt, callers: set[str]) -> MissedWork | None:
        """Return what kept a statement from running."""
        function, around = self._around[statement]
        for owner, block in [*around, (statement, [statement])]:
            if not self._ran(owner):
                is_entered = any(map(self._ran, function.body))
                return (
                    MissedWork(owner.lineno, "statement")
                    if is_entered
                    else self._blame_calls(function, callers)
                )
            if not self._ran(block[0]):
                return MissedWork(owner.lineno, "loop" if _is_loop(owner) else "branch", _shown(owner))
        return None

    def _blame_calls(self, function: ast.FunctionDef, callers: set[str]) -> MissedWork | None:
        if function.name in callers:
            return None
        callers.add(function.name)
        calls = [s for s in self._around if any(_name(c) == function.name for c in self._calls(s))]
        blames = (self._blame(s, callers) for s in calls if not self._ran(s))
        return next((blame for blame in blames if blame is not None), None)

    def _calls(self, statement: ast.stmt) -> Iterator[ast.Call]:
        """Yield the calls of a statement without those of the statements inside of it."""
        inner = [s for block in _blocks(statement) for s in block]
        parts: list[ast.AST] = [c for c in ast.iter_child_nodes(statement) if c not in inner]
        while parts:
            part = parts.pop()
            if isinstance(part, ast.Call):
                yield part
            if not isinstance(part, ast.stmt):
                parts += ast.iter_child_nodes(part)

    def _tensors(
        self, statements: list[ast.stmt], inside: bool = True, above: frozenset[str] = frozenset()
    ) -> set[tuple[str, str]]:
        """Return the names in memory that statements access, by function, also those ``inside`` of them and of
        functions that they call."""
        tensors: set[tuple[str, str]] = set()
        for statement in statements:
            function = self._around[statement][0]
            for call in self._calls(statement):
                name = _name(call)
                if _ACCESSES.match(name) and name not in self._functions:
                    tensors |= {(function.name, root) for root in self._accessed(function, call)}
                elif inside and name in self._functions and name not in above:
                    body = self._functions[name].body
                    tensors |= self._tensors(body, True, above | {name})
            if inside:
                tensors |= self._tensors([s for block in _blocks(statement) for s in block], True, above)
        return tensors

    def _reads(self, statement: ast.stmt) -> bool:
        """Tell that a statement loads from a parameter of its function."""
        function = self._around[statement][0]
        parameters = {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)}
        loads = [c for c in self._calls(statement) if not _name(c).startswith(("store", "scatter"))]
        return any(
            self._accessed(function, call, read=True) & parameters
            for call in loads
            if _ACCESSES.match(_name(call)) and _name(call) not in self._functions
        )

    def _accessed(self, function: ast.FunctionDef, call: ast.Call, read: bool = False) -> set[str]:
        """Return the parameters, or names made of none, behind what a call loads or stores; only what it is to ``read``
        of one that copies."""
        copies = _name(call).startswith("dma_")
        names = ("src", "pointer") if read else ("dst", "src", "pointer")
        operands = call.args[copies and read : 1 + copies] + [
            k.value for k in call.keywords if k.arg in names
        ]
        if isinstance(call.func, ast.Attribute) and _root(call.func.value) not in _MODULES:
            operands = [call.func.value]
        return {self._origin(function, root) for o in operands if (root := _root(o))}

    def _origin(self, function: ast.FunctionDef, name: str) -> str:
        """Return the name that a pointer was first made of."""
        sources = {
            t.id: _root(s.value)
            for s in reversed(list(statements_of(function)))
            if isinstance(s, ast.Assign)
            for t in s.targets
            if isinstance(t, ast.Name)
        }
        names = {name}
        while (before := sources.get(name)) and before not in names and before not in _MODULES:
            names.add(before)
            name = before
        return name

    def same_for_all(self, gap: MissedWork) -> bool:
        """Tell that what was missed depends on the launch alone, not on a program's place or on values."""
        statement = next(s for s in self._around if s.lineno == gap.line)
        function = self._around[statement][0]
        if gap.what == "statement" or function is not next(iter(self._functions.values())):
            return False
        own = dependents(function, (), self._is_own)
        head = statement.iter if isinstance(statement, ast.For) else getattr(statement, "test", None)
        return head is not None and not self._is_own(head, own)

    def _is_own(self, expression: ast.AST, own: set[str]) -> bool:
        return any(
            (isinstance(n, ast.Name) and n.id in own)
            or (isinstance(n, ast.Call) and (_name(n) in _OWN or _name(n) in self._functions))
            for n in ast.walk(expression)
        )


def _blocks(statement: ast.stmt) -> list[list[ast.stmt]]:
    """Return the blocks of statements directly inside of a statement. None of a function's."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return []
    blocks = [getattr(statement, name, None) or [] for name in ("body", "orelse", "finalbody")]
    blocks += [part.body for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ()))]
    return [block for block in blocks if block]


def _is_loop(statement: ast.stmt) -> bool:
    return isinstance(statement, (ast.For, ast.While))


def _shown(statement: ast.stmt) -> str:
    """Return the head of a loop or a branch, ``for k in range(K // 128)``."""
    head = ast.unparse(statement).partition("\n")[0].removesuffix(":")
    return f"`{head[:80]}`"


def _name(call: ast.Call) -> str:
    """Return the last part of what is called."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _root(node: ast.AST | None) -> str:
    """Return the name that an expression begins with, through operators, subscripts and calls, "" without one."""
    while node is not None and not isinstance(node, ast.Name):
        if isinstance(node, ast.BinOp):
            node = node.left
        elif isinstance(node, (ast.Subscript, ast.Starred, ast.Attribute)):
            node = node.value
        elif isinstance(node, ast.IfExp):
            node = node.body
        elif isinstance(node, ast.Call):
            method = isinstance(node.func, ast.Attribute) and _root(node.func.value) not in _MODULES
            operands = [*node.args, *(k.value for k in node.keywords if k.arg in ("base", "pointer"))]
            node = node.func if method else operands[0] if operands else None
        else:
            return ""
    return node.id if isinstance(node, ast.Name) else ""
