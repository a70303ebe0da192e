"""Do the first part of an iteration before the second part of the one before, so that engines work side by side."""

from __future__ import annotations

from collections.abc import Iterator

from accelopt_agent.rules.analysis.constants import factor
from accelopt_agent.rules.analysis.edits import ByteEdit, apply_edits
from accelopt_agent.rules.analysis.nki.kernel import NkiKernel, open_current
from accelopt_agent.rules.analysis.nki.loop_parts import SCALAR, TENSOR, VECTOR, LoopParts, cuts
from accelopt_agent.rules.analysis.rule_context import Rewrite, RuleContext


def rewrites(subject: RuleContext) -> Iterator[Rewrite]:
    kernel = open_current(subject)
    if kernel is None:
        return
    for parts in cuts(kernel, frozenset({TENSOR, SCALAR, VECTOR})):
        if (edit := _ahead(kernel, parts)) is not None:
            over = parts.variable
            summary = f"Make {' and '.join(parts.crossing)} one iteration of {over} ahead."
            yield Rewrite((edit,), summary, moves={f"{parts.waiting} waits": "down"})


def _ahead(kernel: NkiKernel, parts: LoopParts) -> ByteEdit | None:
    source, flow, loop, v = kernel.source, kernel.flow, parts.loop, parts.variable
    ahead = f"{v}_ahead"
    lists = {name: f"{name}_of_{v}" for name in parts.crossing}
    if any(flow.occurrences(name) for name in (ahead, *lists.values())) or _has_long_strings(kernel, parts):
        return None
    body = source.line_end(source.end(loop.iter))
    cut, end = source.block_end(parts.first[-1].node), source.block_end(loop)
    uses = [
        source.replace(n, f"{lists[name]}[{v}]")
        for name in lists
        for n in flow.occurrences(name)
        if source.start(n) >= cut
    ]
    outer, inner = source.indent(loop), source.indent(parts.first[0].node)
    deeper = inner + inner.removeprefix(outer)
    lines = [f"{outer}{kept} = []" for kept in lists.values()]
    header = f"for {ahead} in range({factor(parts.count)} + 1):"
    lines += [outer + source.with_comment(loop, header)]
    lines += [f"{inner}if {ahead} < {factor(parts.count)}:", f"{deeper}{v} = {ahead}"]
    lines += _indented(source.data[body:cut], inner, deeper)
    lines += [f"{deeper}{kept}.append({name})" for name, kept in lists.items()]
    lines += [f"{inner}if {ahead} > 0:", f"{deeper}{v} = {ahead} - 1"]
    lines += [f"{deeper}{source.code(s.node)}" for s in parts.positions]
    shifted = [ByteEdit(e.start - cut, e.end - cut, e.text) for e in uses]
    lines += _indented(apply_edits(source.data[cut:end], shifted), inner, deeper)
    start = source.line_start(source.start(loop))
    return ByteEdit(start, end, "".join(f"{line}\n" for line in lines))


def _indented(code: bytes, old: str, new: str) -> list[str]:
    """Return lines of code at another depth."""
    lines = code.decode().splitlines()
    return [new + line.removeprefix(old) if line.startswith(old) else line for line in lines]


def _has_long_strings(kernel: NkiKernel, parts: LoopParts) -> bool:
    """Return whether a string of several lines stands in the loop, which another indent would change."""
    return '"""' in kernel.source.code(parts.loop) or "'''" in kernel.source.code(parts.loop)
