"""Multiply a tile by the reciprocal of a column instead of dividing the tile by it."""

from __future__ import annotations

from collections.abc import Iterator

from accelopt_agent.rules.analysis.nki.elementwise import scalar_steps
from accelopt_agent.rules.analysis.nki.kernel import NISA, NL, NkiCall, NkiKernel
from accelopt_agent.rules.analysis.nki.operand_kind import kind
from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.statement import root_name


def rewrites(kernel: NkiKernel) -> Iterator[Rewrite]:
    for instruction in kernel.instructions:
        for engine in (None, "vector_engine"):
            rewrite = _multiplied(kernel, instruction, engine)
            if rewrite is not None:
                yield rewrite


def _multiplied(kernel: NkiKernel, instruction: NkiCall, engine: str | None) -> Rewrite | None:
    """Return the multiply on ``engine``, or on the one that the compiler chooses."""
    source, steps = kernel.source, scalar_steps(kernel, instruction)
    if steps is None or instruction.path != f"{NL}.divide" or kind(kernel, steps.data) != "tile":
        return None
    (step,) = steps.steps
    multiply = kernel.spelled(f"{NL}.multiply")
    engine_name = kernel.spelled(f"{NISA}.{engine}") if engine else None
    if (
        step.reverse
        or kind(kernel, step.operand) != "column"
        or multiply is None
        or (engine and engine_name is None)
    ):
        return None
    name = f"reciprocal_{root_name(step.operand)}"
    reciprocal = kernel.spell("nisa.reciprocal", source.code(step.operand))
    text = kernel.spell(
        "nisa.tensor_scalar",
        source.code(steps.data),
        multiply,
        name,
        dtype=kernel.code(instruction.get("dtype")),
        mask=kernel.code(instruction.get("mask")),
        engine=engine_name,
    )
    statement = kernel.flow.statement_of(instruction.call)
    if text is None or reciprocal is None or statement is None or kernel.flow.occurrences(name):
        return None
    edits = (
        source.before(statement.node, f"{name} = {reciprocal}"),
        source.replace_with_parentheses(instruction.call, text),
    )
    where = ", on VectorE" if engine else ""
    return Rewrite(edits, f"Multiply by the column's reciprocal{where}: one divide per row, not per element.")
