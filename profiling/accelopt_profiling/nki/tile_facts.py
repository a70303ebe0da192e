"""The step ``nki.facts``: what each expression of a file's kernels is when they run: a tile, an index, a number.

The file's text is instrumented and run on the problem's inputs without values, so that a translation into the other
dialect knows shapes, types and memories that the text alone does not tell.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from accelopt_profiling.nki.data.index import Affine
from accelopt_profiling.nki.emulator.block_array import BlockArray
from accelopt_profiling.nki.emulator.machine import Mode, running_machine
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.equivalence import KernelPath, case_paths, turned_paths
from accelopt_profiling.nki.frontend.handle import taken
from accelopt_profiling.nki.install import emulated
from accelopt_profiling.nki.time_model.hardware import hardware
from accelopt_profiling.problems.call import run_problem
from accelopt_profiling.problems.loading.load import load_problem
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.step_context import StepContext, StepFailedError
from accelopt_profiling.worker.usercode import load_module, problem_errors, user_errors

FactKind = Literal["tile", "blocks", "index", "number", "other"]
_HOOK, _TRIPS = "__accelopt_fact__", "__accelopt_trips__"


@dataclass(frozen=True)
class FactsParams:
    """``problem`` says what to run; ``target`` for which core."""

    problem: ProblemRef
    target: str
    seed: int = 0


@dataclass(frozen=True)
class ExpressionFact:
    """What the expression at a place of the text was. ``memory`` is "sbuf", "psum" or "hbm" of a tile; ``blocks`` the
    number of its block dimensions; ``shapes`` all that were seen, at most eight."""

    line: int
    column: int
    end_line: int
    end_column: int
    kind: FactKind
    dtype: str = ""
    memory: str = ""
    blocks: int = 0
    shapes: list[list[int]] = field(default_factory=list)


@dataclass(frozen=True)
class LoopTrips:
    """How often the body of the loop at a line ran, each time that the loop did: all numbers that were seen."""

    line: int
    counts: list[int]


@dataclass(frozen=True)
class TileFacts:
    """The facts of all paths. ``stopped`` is why the profiled case ended early, "" where it did not."""

    facts: list[ExpressionFact]
    stopped: str = ""
    trips: list[LoopTrips] = field(default_factory=list)


_RECORDED = (ast.Name, ast.Subscript, ast.Call, ast.BinOp, ast.UnaryOp, ast.Attribute, ast.Compare)
_LOAD = ast.Load()


class _ExpressionRecorder(ast.NodeTransformer):
    """Hands the value of each expression inside functions to the hook, with the expression's number."""

    def __init__(self) -> None:
        self.places: list[ast.expr] = []
        self._inside = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self._inside += 1
        visited = [self.visit(statement) for statement in node.body]
        node.body = [s for one in visited for s in (one if isinstance(one, list) else [one])]
        self._inside -= 1
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        """``x += y`` reads ``x`` too, which its place in the tree does not show."""
        self.generic_visit(node)
        if not self._inside or not isinstance(node.target, ast.Name):
            return node
        self.places.append(ast.copy_location(ast.Constant(0), node.target))
        target = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        return [ast.copy_location(ast.Expr(self._call(_HOOK, target, len(self.places) - 1)), node), node]

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, (ast.FunctionDef, ast.AugAssign)):
            return super().visit(node)
        if isinstance(node, (ast.Lambda, ast.JoinedStr, ast.ListComp, ast.GeneratorExp, ast.DictComp)):
            return node
        if isinstance(node, ast.AnnAssign):
            node.value = None if node.value is None else self.visit(node.value)
            return node
        number = -1
        if self._inside and isinstance(node, _RECORDED) and isinstance(getattr(node, "ctx", _LOAD), ast.Load):
            number = len(self.places)
            self.places.append(ast.copy_location(ast.Constant(0), node))
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute):
                node.func.value = self.visit(node.func.value)
            node.args = [self.visit(a) for a in node.args]
            for keyword in node.keywords:
                keyword.value = self.visit(keyword.value)
        else:
            self.generic_visit(node)
        if isinstance(node, ast.For) and self._inside:
            node.iter = self._call(_TRIPS, node.iter, node.lineno)
        if number < 0 or not isinstance(node, ast.expr):
            return node
        return self._call(_HOOK, node, number)

    def _call(self, hook: str, node: ast.expr, number: int) -> ast.expr:
        call = ast.Call(ast.Name(hook, ast.Load()), [ast.Constant(number), node], [])
        return ast.fix_missing_locations(ast.copy_location(call, node))


def tile_facts(context: StepContext, params: FactsParams) -> TileFacts:
    """Run the file on its problem's inputs, and return what its expressions were.

    Raises:
        StepFailedError: the file or its problem cannot be loaded.
    """
    text = context.source.files[context.source.kernel]
    recorder = _ExpressionRecorder()
    tree = recorder.visit(ast.parse(text))
    facts: dict[int, ExpressionFact] = {}
    current_path: list[KernelPath] = []

    def hook(number: int, value: Any) -> Any:
        if running_machine() is None:
            return value  # host code stays as it is
        earlier = facts.get(number)
        profiled = current_path == [KernelPath()]
        if earlier is None or (profiled and len(earlier.shapes) < 8):
            fact = _fact(recorder.places[number], value)
            if earlier is None:
                facts[number] = fact
            elif fact.shapes and fact.shapes[0] not in earlier.shapes:
                earlier.shapes.append(fact.shapes[0])
        return value

    trips: dict[int, set[int]] = {}

    def count(line: int, values: Any) -> Any:
        return _counted(values, trips.setdefault(line, set())) if running_machine() is not None else values

    vars(builtins).update({_HOOK: hook, _TRIPS: count})
    context.write_generated(context.source.kernel, ast.unparse(tree))
    reason = _run(context, params, "trace", current_path)
    if reason:  # host code wants values
        reason = _run(context, params, "full", current_path)
    loops = [LoopTrips(line, sorted(counts)) for line, counts in sorted(trips.items())]
    return TileFacts(list(facts.values()), reason, loops)


def _counted(values: Iterable[Any], counts: set[int]) -> Iterator[Any]:
    count = 0
    for value in values:
        count += 1
        yield value
    counts.add(count)


def _run(context: StepContext, params: FactsParams, mode: Mode, current_path: list[KernelPath]) -> str:
    """Run the instrumented file on all paths; return why the profiled case ended early, "" where it did not.

    ``current_path`` holds the path under way.
    """
    limits = hardware(params.target).limits
    with emulated(mode, limits=limits, sdk=False, replaying=False):
        try:
            module = load_module(context)
        except StepFailedError as failed:
            if mode == "full":
                raise
            return failed.error.message
        with user_errors(context):
            problem = load_problem(context, params.problem, module)
        paths = case_paths(problem)
        for path in paths:
            current_path[:] = [path]
            with problem_errors(context, "get_inputs"):
                inputs = problem.inputs(params.seed, path.shape)
            with emulated(
                mode, limits=limits, sdk=False, replaying=False, turned_flags=path.turned
            ) as emulation:
                try:
                    run_problem(problem, module, inputs)
                except Exception as error:
                    if path == KernelPath():
                        return f"{type(error).__name__}: {error}"
            if path == KernelPath():
                paths += turned_paths(emulation)
    return ""


def _fact(place: ast.expr, value: Any) -> ExpressionFact:
    at = (place.lineno, place.col_offset, place.end_lineno or 0, place.end_col_offset or 0)
    value = taken(value)
    if isinstance(value, Tile):
        return ExpressionFact(
            *at, "tile", value.dtype.name, value.block.info.memory.value, 0, [list(value.shape)]
        )
    if isinstance(value, BlockArray):
        return ExpressionFact(
            *at, "blocks", value.dtype.name, value.buffer.value, len(value.sizes), [list(value.shape)]
        )
    if isinstance(value, (Affine, np.ndarray)):
        return ExpressionFact(*at, "index", shapes=[list(value.shape)])
    if isinstance(value, (int, float, np.number)) or type(value).__name__ == "LoopCounter":
        return ExpressionFact(*at, "number")
    return ExpressionFact(*at, "other")
