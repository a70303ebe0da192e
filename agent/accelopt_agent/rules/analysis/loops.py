"""Reads ``for`` loops of a kernel: variable, trip count; removes a loop that runs once."""

from __future__ import annotations

import libcst as cst

from accelopt_agent.rules.analysis.constants import number
from accelopt_agent.rules.analysis.data_flow import DataFlow
from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.parsed_source import ParsedSource
from accelopt_agent.rules.analysis.statement import Statement


def loop_variable(loop: cst.For) -> str | None:
    return loop.target.value if isinstance(loop.target, cst.Name) else None


def runs_each_iteration(statement: Statement, loop: cst.For) -> bool:
    """Return whether the statement stands directly in the loop's body, under no condition."""
    return statement.block is loop.body


def trip_count(flow: DataFlow, loop: cst.For) -> int | None:
    """Return the number of iterations of ``range(n)`` or ``affine_range(n)`` with a constant ``n``; None for other
    loops."""
    if not isinstance(loop.iter, cst.Call) or len(loop.iter.args) != 1:
        return None
    count = number(flow, loop.iter.args[0].value)
    return count if isinstance(count, int) else None


def unwrapped(source: ParsedSource, loop: cst.For) -> list[ByteEdit]:
    """Return the edits that take away a loop's header and move its body out by one level, for a loop that
    runs once."""
    body = loop.body
    if not isinstance(body, cst.IndentedBlock) or loop.orelse is not None:
        return []
    outer, inner = source.indent(loop), source.indent(body.body[0])
    start, first = source.line_start(source.start(loop)), source.line_start(source.start(body.body[0]))
    comment = source.comment(loop)
    edits = [
        ByteEdit(start, source.line_end(source.end(loop.iter)), f"{outer}{comment}\n" if comment else "")
    ]
    at, end = source.line_end(source.end(loop.iter)), source.line_end(source.end(body))
    while at < end:
        if source.data[at:end].startswith(inner.encode()):
            edits.append(ByteEdit(at, at + len(inner.encode()), outer))
        at = source.line_end(at)
    return edits if first >= edits[0].end else []
