"""Multiply a tile by the reciprocal of a column instead of dividing the tile by it."""

from __future__ import annotations

from collections.abc import Iterator

from accelopt_agent.rules.elementwise import scalar_steps
from accelopt_agent.rules.flow import root_name
from accelopt_agent.rules.instructions import NL, open_nki
from accelopt_agent.rules.subject import Rewrite, Subject
from accelopt_agent.rules.tiles import kind


def rewrites(subject: Subject) -> Iterator[Rewrite]:
    kernel = open_nki(subject)
    if kernel is None:
        return
    source = kernel.source
    for instruction in kernel.instructions:
        found = scalar_steps(kernel, instruction)
        if found is None or instruction.path != f"{NL}.divide" or kind(kernel, found.data) != "tile":
            continue
        (step,) = found.steps
        multiply = kernel.names.spelled(f"{NL}.multiply")
        if step.reverse or kind(kernel, step.operand) != "column" or multiply is None:
            continue
        name = f"reciprocal_{root_name(step.operand)}"
        reciprocal = kernel.spell("nisa.reciprocal", source.code(step.operand))
        text = kernel.spell(
            "nisa.tensor_scalar",
            source.code(found.data),
            multiply,
            name,
            dtype=kernel.code(instruction.get("dtype")),
            mask=kernel.code(instruction.get("mask")),
        )
        statement = kernel.flow.statement_of(instruction.call)
        if text is None or reciprocal is None or statement is None or kernel.flow.occurrences(name):
            continue
        edits = (
            source.before(statement.node, f"{name} = {reciprocal}"),
            source.replace_with_parentheses(instruction.call, text),
        )
        yield Rewrite(edits, "Multiply by the column's reciprocal: one divide per row, not per element.")
