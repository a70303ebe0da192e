"""The step ``nki.facts``: what each expression of a file's kernels is when they run: a tile, an index, a number.

The file's text is instrumented and run on the problem's inputs without values, so that a translation into the other
dialect knows shapes, types and memories that the text alone does not tell.
"""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from accelopt_profiling.nki.data.index import Affine
from accelopt_profiling.nki.emulator.block_array import BlockArray
from accelopt_profiling.nki.emulator.machine import Mode, running_machine
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.frontend.handle import taken
from accelopt_profiling.nki.install import emulated
from accelopt_profiling.nki.time_model.hardware import hardware
from accelopt_profiling.problems.loading.load import load_problem
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.worker.step_context import StepContext, StepFailedError
from accelopt_profiling.worker.usercode import load_module, problem_errors, user_errors

FactKind = Literal["tile", "blocks", "index", "number", "other"]
_HOOK = "__accelopt_fact__"


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
class TileFacts:
    """The facts of one run. ``stopped`` is why it ended early, "" where it did not."""

    facts: list[ExpressionFact]
    stopped: str = ""


_RECORDED = (ast.Name, ast.Subscript, ast.Call, ast.BinOp, ast.UnaryOp, ast.Attribute, ast.Compare)
_LOAD = ast.Load()


class _ExpressionRecorder(ast.NodeTransformer):
    """Hands the value of each expression inside functions to the hook, with the expression's number."""

    def __init__(self) -> None:
        self.places: list[ast.expr] = []
        self._inside = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self._inside += 1
        node.body = [self.visit(statement) for statement in node.body]
        self._inside -= 1
        return node

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.FunctionDef):
            return self.visit_FunctionDef(node)
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
        if number < 0 or not isinstance(node, ast.expr):
            return node
        hook = ast.Call(ast.Name(_HOOK, ast.Load()), [ast.Constant(number), node], [])
        return ast.fix_missing_locations(ast.copy_location(hook, node))


def tile_facts(context: StepContext, params: FactsParams) -> TileFacts:
    """Run the file on its problem's inputs, and return what its expressions were.

    Raises:
        StepFailedError: the file or its problem cannot be loaded.
    """
    text = context.source.files[context.source.kernel]
    recorder = _ExpressionRecorder()
    tree = recorder.visit(ast.parse(text))
    seen: dict[int, ExpressionFact] = {}

    def hook(number: int, value: Any) -> Any:
        if running_machine() is None:
            return value  # host code stays as it is
        known = seen.get(number)
        if known is None or len(known.shapes) < 8:
            fact = _fact(recorder.places[number], value)
            if known is None:
                seen[number] = fact
            elif fact.shapes and fact.shapes[0] not in known.shapes:
                known.shapes.append(fact.shapes[0])
        return value

    vars(builtins)[_HOOK] = hook
    context.write_generated(context.source.kernel, ast.unparse(tree))
    stopped = _run(context, params, "trace")
    if stopped:  # host code wants values
        stopped = _run(context, params, "full")
    return TileFacts(list(seen.values()), stopped)


def _run(context: StepContext, params: FactsParams, mode: Mode) -> str:
    """Run the instrumented file on the problem's inputs; return why it ended early, "" where it did not."""
    with emulated(mode, limits=hardware(params.target).limits, sdk=False, replaying=False):
        try:
            module = load_module(context)
        except StepFailedError as failed:
            if mode == "full":
                raise
            return failed.error.message
        with user_errors(context):
            problem = load_problem(context, params.problem, module)
        with problem_errors(context, "get_inputs"):
            inputs = problem.inputs(params.seed)
        try:
            problem.run(module, inputs)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return ""


def _fact(place: ast.expr, value: Any) -> ExpressionFact:
    at = (place.lineno, place.col_offset, place.end_lineno or 0, place.end_col_offset or 0)
    value = taken(value)
    if isinstance(value, Tile):
        return ExpressionFact(
            *at, "tile", value.dtype.name, value.block.info.memory.value, 0, [list(value.shape)]
        )
    if isinstance(value, BlockArray):
        blocks = len(value.shape) - len(value.tile_shape)
        return ExpressionFact(
            *at, "blocks", value.dtype.name, value.memory.value, blocks, [list(value.shape)]
        )
    if isinstance(value, (Affine, np.ndarray)):
        return ExpressionFact(*at, "index", shapes=[list(value.shape)])
    if isinstance(value, (int, float, np.number)) or type(value).__name__ == "LoopCounter":
        return ExpressionFact(*at, "number")
    return ExpressionFact(*at, "other")
